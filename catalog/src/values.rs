//! What columns hold: the few distinct values of low-cardinality text columns, by which a literal in a question finds
//! its column, and a sketch of key columns, by which inferred relationships are judged.
//!
//! Values are collected by the engine after a table was written or looked at, never inside a write; they may lag
//! behind the table, and say what is worth asking it. Who may see a table's database may see its values.

pub(crate) mod rows;

use std::collections::HashMap;

use serde::Serialize;

use crate::error::Result;
use crate::model::TableName;
use crate::principal::Principal;
use crate::store::resolve::visible_databases;
use crate::store::{Store, name_key};

/// Distinct values of a column that are kept; a column with more is not low-cardinality, and none of its are.
pub const MAX_VALUES: usize = 100;
/// Longer values are not kept.
pub const MAX_VALUE_BYTES: usize = 64;
/// Text columns of a table whose values are kept.
pub const MAX_VALUE_COLUMNS: usize = 64;
/// Shapes of a column of codes that are kept, where its values are too many.
pub const MAX_SHAPES: usize = 12;
/// A longer value has no shape.
const MAX_SHAPE_CHARS: usize = 32;
/// Hashes in a sketch.
pub const SKETCH_HASHES: usize = 64;
/// Literals that one call looks up.
const MAX_LITERALS: usize = 16;

/// What a bounded read of a table found out.
#[derive(Debug, Clone, PartialEq)]
pub struct TableProfile {
    /// [`crate::TableInfo::id`].
    pub table_id: i64,
    /// The state of the table that was read, as [`CatalogValues::unprofiled`] gave it.
    pub state: String,
    /// Of its columns.
    pub columns: Vec<ColumnProfile>,
}

/// What a bounded read of a column found out.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnProfile {
    /// The column.
    pub name: String,
    /// All values that were read and how often, if they are few and short; empty otherwise.
    pub values: Vec<(String, u64)>,
    /// Where they are too many: the [`value_shape`]s that all values have, each with a value, if those are few.
    pub shapes: Vec<(String, String)>,
    /// Whether every row was read.
    pub is_complete: bool,
    /// The [`SKETCH_HASHES`] smallest [`value_hash`]es of the values that were read, ascending.
    pub sketch: Vec<u64>,
}

/// A table whose values are not known, or no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unprofiled {
    /// [`crate::TableInfo::id`].
    pub table_id: i64,
    /// Its name.
    pub name: TableName,
    /// What to record the profile under.
    pub state: String,
}

/// A column that holds a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ValueHit {
    /// [`crate::TableInfo::id`].
    #[serde(skip)]
    pub table_id: i64,
    /// The table.
    #[serde(flatten)]
    pub table: TableName,
    /// Its column.
    pub column: String,
    /// The value as it is spelled there.
    pub value: String,
    /// It is only a value like the one looked for: the column holds too many to keep, all of them codes of few shapes.
    pub is_like: bool,
}

/// Columns of a table, each with some of its values.
pub type ColumnSamples = Vec<(String, Vec<String>)>;

/// Values of columns. Made by [`Catalog::values`](crate::Catalog::values).
#[derive(Clone, Copy)]
pub struct CatalogValues<'a> {
    pub(crate) store: &'a Store,
}

impl CatalogValues<'_> {
    /// Which of the tables of a list of ids have changed since their values were collected, or never had them
    /// collected; views are left out.
    pub async fn unprofiled(self, ids: &[i64]) -> Result<Vec<Unprofiled>> {
        let ids = ids.to_vec();
        self.store.view(move |view| rows::unprofiled(view, &ids)).await
    }

    /// Records a table's values in place of older ones. A table that is gone meanwhile is passed over.
    pub async fn store_profile(self, profile: TableProfile) -> Result<()> {
        self.store.write_rows(move |connection| rows::replace(connection, &profile)).await
    }

    /// The columns that hold one of the literals, case aside, of what the caller may see; at most `limit` a literal,
    /// 16 literals. The flag says whether there are more.
    pub async fn find(
        self,
        who: &Principal,
        database: Option<&str>,
        literals: &[String],
        limit: usize,
    ) -> Result<(Vec<ValueHit>, bool)> {
        let (who, database) = (who.clone(), database.map(str::to_string));
        let literals: Vec<String> = literals.iter().take(MAX_LITERALS).cloned().collect();
        self.store
            .view(move |view| {
                let visible = visible_databases(view, &who, database.as_deref())?;
                rows::find(view, visible.as_deref(), &literals, limit)
            })
            .await
    }

    /// The most frequent values of the columns of tables by id whose values are kept, at most `per_column` of each.
    /// The caller has seen to it that the tables may be seen.
    pub async fn sample(self, ids: &[i64], per_column: usize) -> Result<HashMap<i64, ColumnSamples>> {
        let ids = ids.to_vec();
        self.store.read(move |connection| rows::samples(connection, &ids, per_column)).await
    }

    /// How many columns of what the caller may see have their values kept, counted up to `limit`.
    pub async fn count_columns(self, who: &Principal, database: Option<&str>, limit: usize) -> Result<usize> {
        let (who, database) = (who.clone(), database.map(str::to_string));
        self.store
            .view(move |view| {
                let visible = visible_databases(view, &who, database.as_deref())?;
                rows::count_columns(view, visible.as_deref(), limit)
            })
            .await
    }
}

/// The hash of a value's text in a sketch. Stored, so it never changes: FNV-1a with a finaliser that spreads it.
pub fn value_hash(text: &str) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

/// The shape of a code, `A99999` of `N14228`: a letter is `A`, a digit `9`, other signs stay. `None` for what is no
/// code: it has letters and digits and no space.
pub fn value_shape(value: &str) -> Option<String> {
    let is_code = value.chars().any(|c| c.is_ascii_digit())
        && value.chars().any(char::is_alphabetic)
        && !value.chars().any(|c| c.is_whitespace() || c.is_control())
        && value.chars().count() <= MAX_SHAPE_CHARS;
    let shape = value.chars().map(|c| match c {
        c if c.is_ascii_digit() => '9',
        c if c.is_alphabetic() => 'A',
        c => c,
    });
    is_code.then(|| shape.collect())
}

/// What a shape is looked up by: begins with what no value's key begins with.
pub(crate) fn shape_key(shape: &str) -> String {
    format!("\u{1}{shape}")
}

/// What a value is looked up by.
pub(crate) fn value_key(value: &str) -> String {
    name_key(value.trim())
}

/// The share of the one column's values that the other holds, told from their sketches; `None` where they tell too
/// little: few values, or an other column that was not read whole.
pub(crate) fn containment(from: &[u64], to: &[u64], to_is_complete: bool) -> Option<f32> {
    const FEWEST: usize = 3;
    // Below the smaller of the two horizons both sketches hold every hash.
    let horizon =
        |sketch: &[u64]| if sketch.len() < SKETCH_HASHES { u64::MAX } else { sketch.last().copied().unwrap_or(0) };
    let horizon = horizon(from).min(horizon(to));
    let comparable: Vec<u64> = from.iter().copied().filter(|hash| *hash <= horizon).collect();
    if comparable.len() < FEWEST || to.is_empty() {
        return None;
    }
    let shared = comparable.iter().filter(|hash| to.binary_search(hash).is_ok()).count();
    let share = shared as f32 / comparable.len() as f32;
    // What an unread row may hold speaks for a match, never against one.
    (to_is_complete || share > 0.5).then_some(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(values: impl Iterator<Item = u32>) -> Vec<u64> {
        let mut hashes: Vec<u64> = values.map(|value| value_hash(&value.to_string())).collect();
        hashes.sort_unstable();
        hashes.truncate(SKETCH_HASHES);
        hashes
    }

    #[test]
    fn codes_have_shapes() {
        assert_eq!(value_shape("N14228").as_deref(), Some("A99999"));
        assert_eq!(value_shape("ord-7B").as_deref(), Some("AAA-9A"));
        for other in ["New York 2", "12345", "checkout-svc", ""] {
            assert_eq!(value_shape(other), None, "{other}");
        }
    }

    #[test]
    fn sketches_tell_how_much_is_shared() {
        let all = sketch(0..50_000);
        let some = sketch((0..50_000).step_by(7));
        let half = sketch(25_000..75_000);
        let none = sketch(100_000..150_000);
        assert_eq!(containment(&some, &all, true), Some(1.0));
        assert_eq!(containment(&none, &all, true), Some(0.0));
        assert!((0.25..0.75).contains(&containment(&half, &all, true).unwrap()));
        assert_eq!(containment(&none, &all, false), None, "unread rows may hold them");
        assert_eq!(containment(&sketch(0..2), &all, true), None, "too few to tell");
    }
}
