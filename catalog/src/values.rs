//! Sampled values of columns: the distinct values of low-cardinality text columns, by which a literal in a question
//! finds its column, and sketches of key columns, by which inferred relationships are weighted.
//!
//! The engine collects values after a table was written or read, never inside a write; they may lag behind the table.
//! Whoever sees a table's rows all, and a column as it is, is told its values.

pub(crate) mod rows;

use std::collections::HashMap;

use serde::Serialize;

use crate::error::Result;
use crate::leases::WorkLease;
use crate::model::TableName;
use crate::principal::Principal;
use crate::store::resolve::visible_objects;
use crate::store::{Store, name_key};

/// The most distinct values of a column that are kept; of a column with more, none are.
pub const MAX_VALUES: usize = 100;
/// Longer values are not kept.
pub const MAX_VALUE_BYTES: usize = 64;
/// The most text columns of a table whose values are kept.
pub const MAX_VALUE_COLUMNS: usize = 64;
/// The most shapes that are kept of a column of codes with too many values.
pub const MAX_SHAPES: usize = 12;
/// A longer value has no shape.
const MAX_SHAPE_CHARS: usize = 32;
/// Hashes in a sketch.
pub const SKETCH_HASHES: usize = 64;
/// Literals that one call looks up.
const MAX_LITERALS: usize = 16;

/// The result of sampling a table by a bounded read.
#[derive(Debug, Clone, PartialEq)]
pub struct TableProfile {
    /// [`crate::TableInfo::id`].
    pub table_id: i64,
    /// The state of the table when it was read, as [`CatalogValues::unprofiled`] gave it.
    pub state: String,
    /// Its columns.
    pub columns: Vec<ColumnProfile>,
}

/// The result of sampling a column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnProfile {
    /// The column.
    pub name: String,
    /// All values and their frequencies, if they are few and short; empty otherwise.
    pub values: Vec<(String, u64)>,
    /// If there are too many values: the [`value_shape`]s of all values, each with an example, if the shapes are few.
    pub shapes: Vec<(String, String)>,
    /// Whether every row was read.
    pub is_complete: bool,
    /// The [`SKETCH_HASHES`] smallest [`value_hash`]es of the values, ascending.
    pub sketch: Vec<u64>,
}

/// A table whose values were never sampled, or changed since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unprofiled {
    /// [`crate::TableInfo::id`].
    pub table_id: i64,
    /// Its name.
    pub name: TableName,
    /// The state to record the profile with.
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
    /// The value as spelled in the column.
    pub value: String,
    /// Whether it is only an example of the same shape: the column holds too many values to keep, all codes of few
    /// shapes.
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
    /// The tables among `ids` that changed since their values were sampled, or never were; views are left out.
    pub async fn unprofiled(self, ids: &[i64]) -> Result<Vec<Unprofiled>> {
        let ids = ids.to_vec();
        self.store.view(move |view| rows::unprofiled(view, &ids)).await
    }

    /// Records a table's values in place of older ones. Keeps none if the table was dropped meanwhile, or it or a column was
    /// renamed since the profile's state was read. `lease` is
    /// that for [`LeasedWork::ColumnValues`](crate::LeasedWork::ColumnValues). Errors: `conflict` where another server
    /// has it by now.
    pub async fn store_profile(self, profile: TableProfile, lease: &WorkLease) -> Result<()> {
        lease.write(self.store, move |connection| rows::replace(connection, &profile)).await
    }

    /// The columns visible to the caller that hold one of the first 16 literals, ignoring case; at most `limit` for
    /// each literal. The flag tells whether there are more.
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
                let visible = visible_objects(view, &who, database.as_deref())?;
                rows::find(view, &who, &visible, &literals, limit)
            })
            .await
    }

    /// The most frequent kept values of the columns of tables by id, at most `per_column` of each, of columns whose values
    /// the caller may know.
    pub async fn sample(self, who: &Principal, ids: &[i64], per_column: usize) -> Result<HashMap<i64, ColumnSamples>> {
        let (who, ids) = (who.clone(), ids.to_vec());
        self.store.view(move |view| rows::samples(view, &who, &ids, per_column)).await
    }

    /// How many columns whose values the caller may know have them kept, counted up to `limit`.
    pub async fn count_columns(self, who: &Principal, database: Option<&str>, limit: usize) -> Result<usize> {
        let (who, database) = (who.clone(), database.map(str::to_string));
        self.store
            .view(move |view| {
                let visible = visible_objects(view, &who, database.as_deref())?;
                rows::count_columns(view, &who, &visible, limit)
            })
            .await
    }
}

/// The hash of a value in a sketch. It is stored, so it never changes: FNV-1a with a finaliser that spreads it.
pub fn value_hash(text: &str) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

/// The shape of a code, such as `A99999` of `N14228`: letters become `A`, digits `9`, other characters stay. `None` for
/// a value that is not a code, which has letters and digits and no space.
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

/// The key of a shape; it starts with a character that no value's key starts with.
pub(crate) fn shape_key(shape: &str) -> String {
    format!("\u{1}{shape}")
}

/// The key of a value.
pub(crate) fn value_key(value: &str) -> String {
    name_key(value.trim())
}

/// The share of the values of one column that the other contains, estimated from their sketches; `None` where the
/// estimate is too uncertain: few values, or an incompletely read other column.
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
    // Unread rows could only raise the share.
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
