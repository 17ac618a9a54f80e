//! Which objects to list, as a statement's filters say.

use std::collections::BTreeMap;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Like, Operator};
use querent_catalog::{TableFilter, TableKind};

/// The most combinations of names that are looked up one by one.
const MAX_LOOKUPS: usize = 256;

/// One listing of the catalog.
#[derive(Debug, Clone, Default)]
pub(super) struct Lookup {
    /// The conditions.
    pub filter: TableFilter,
    /// Whether the tables are those that the listed foreign keys refer to.
    pub referring: bool,
}

impl Lookup {
    /// Returns the condition on databases as a pattern.
    pub(super) fn database_like(&self) -> Option<String> {
        match &self.filter.database {
            Some(name) => Some(escaped(name)),
            None => self.filter.database_like.clone(),
        }
    }
}

/// A condition that every listed object must meet.
#[derive(Debug, Clone, PartialEq)]
enum Condition {
    /// One of these.
    Names(Vec<String>),
    /// A `LIKE` pattern.
    Like(String),
}

/// Returns the listings that together have every object that can pass the filters, none twice. `keys` are the columns of
/// database, name and kind.
pub(super) fn lookups(filters: &[Expr], keys: [Option<&str>; 3]) -> Vec<Lookup> {
    let conjuncts: Vec<&Expr> = filters.iter().flat_map(split_conjunction).collect();
    let [database, name, kind] = keys.map(|key| {
        let key = key?;
        let mut found: Vec<Condition> = conjuncts.iter().filter_map(|filter| condition(filter, key)).collect();
        // A lookup of names is cheaper than a walk over the matches of a pattern.
        found.sort_by_key(|condition| matches!(condition, Condition::Like(_)));
        found.into_iter().next()
    });
    let kinds = match kind {
        Some(Condition::Names(names)) => {
            let kinds: Vec<TableKind> =
                ALL_KINDS.into_iter().filter(|kind| names.iter().any(|name| is_named(*kind, name))).collect();
            if kinds.is_empty() {
                return Vec::new();
            }
            kinds
        }
        Some(Condition::Like(_)) | None => Vec::new(),
    };
    let base = TableFilter { kinds, ..TableFilter::default() };
    let by_database = expand(vec![base], database, |filter, name, like| {
        filter.database = name;
        filter.database_like = like;
    });
    let by_name = expand(by_database, name, |filter, name, like| {
        filter.name = name;
        filter.name_like = like;
    });
    by_name.into_iter().map(|filter| Lookup { filter, referring: false }).collect()
}

const ALL_KINDS: [TableKind; 3] = [TableKind::Managed, TableKind::External, TableKind::View];

/// Returns the kind as `system.tables` spells it.
pub(super) fn kind_name(kind: TableKind) -> &'static str {
    match kind {
        TableKind::Managed => "managed",
        TableKind::External => "external",
        TableKind::View => "view",
    }
}

fn is_named(kind: TableKind, name: &str) -> bool {
    name == kind_name(kind) || name == kind.table_type()
}

fn expand(
    filters: Vec<TableFilter>,
    condition: Option<Condition>,
    set: impl Fn(&mut TableFilter, Option<String>, Option<String>),
) -> Vec<TableFilter> {
    match condition {
        Some(Condition::Names(names)) if filters.len() * names.len() <= MAX_LOOKUPS => filters
            .iter()
            .flat_map(|filter| names.iter().map(move |name| (filter.clone(), name.clone())))
            .map(|(mut filter, name)| {
                set(&mut filter, Some(name), None);
                filter
            })
            .collect(),
        Some(Condition::Like(pattern)) => filters
            .into_iter()
            .map(|mut filter| {
                set(&mut filter, None, Some(pattern.clone()));
                filter
            })
            .collect(),
        Some(Condition::Names(_)) | None => filters,
    }
}

/// Returns what `filter` says about the column `key`, if the catalog can look that up.
fn condition(filter: &Expr, key: &str) -> Option<Condition> {
    match filter {
        Expr::Like(Like { negated: false, expr, pattern, escape_char: None | Some('\\'), .. })
            if is_column(expr, key) =>
        {
            Some(Condition::Like(text(pattern)?))
        }
        _ => Some(Condition::Names(distinct(names(filter, key)?))),
    }
}

/// Returns the values of `key = 'a'`, `key IN ('a', 'b')` and `key = 'a' OR key = 'b'`.
fn names(filter: &Expr, key: &str) -> Option<Vec<String>> {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            if is_column(left, key) {
                return Some(vec![text(right)?]);
            }
            is_column(right, key).then(|| text(left)).flatten().map(|name| vec![name])
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let mut either = names(left, key)?;
            either.extend(names(right, key)?);
            Some(either)
        }
        Expr::InList(InList { expr, list, negated: false }) if is_column(expr, key) => list.iter().map(text).collect(),
        _ => None,
    }
}

/// Removes names that differ in case only, for which the catalog would list the same object twice.
fn distinct(names: Vec<String>) -> Vec<String> {
    let by_key: BTreeMap<String, String> = names.into_iter().map(|name| (name.to_lowercase(), name)).collect();
    by_key.into_values().collect()
}

fn is_column(expr: &Expr, key: &str) -> bool {
    matches!(expr, Expr::Column(column) if column.name == key)
}

fn text(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Literal(
            ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) | ScalarValue::LargeUtf8(Some(text)),
            _,
        ) => Some(text.clone()),
        _ => None,
    }
}

/// Returns a pattern that only `name` matches.
fn escaped(name: &str) -> String {
    let mut pattern = String::with_capacity(name.len());
    for letter in name.chars() {
        if matches!(letter, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};

    use super::*;

    const KEYS: [Option<&str>; 3] = [Some("database"), Some("name"), Some("kind")];

    #[test]
    fn equalities_become_lookups() {
        let filter =
            col("database").eq(lit("Sales")).and(col("name").in_list(vec![lit("a"), lit("A"), lit("b")], false));
        let found: Vec<TableFilter> = lookups(&[filter], KEYS).into_iter().map(|lookup| lookup.filter).collect();
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|filter| filter.database.as_deref() == Some("Sales")));
    }

    #[test]
    fn alternatives_of_one_column_are_names_and_of_two_are_nothing() {
        let same = col("name").eq(lit("a")).or(col("name").eq(lit("b")));
        assert_eq!(lookups(&[same], KEYS).len(), 2);
        let mixed = col("name").eq(lit("a")).or(col("database").eq(lit("b")));
        let found = lookups(&[mixed], KEYS);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].filter, TableFilter::default());
    }

    #[test]
    fn patterns_and_kinds_are_pushed_down_and_an_impossible_kind_lists_nothing() {
        let found = lookups(&[col("name").like(lit("otel%")), col("kind").eq(lit("view"))], KEYS);
        assert_eq!(found[0].filter.name_like.as_deref(), Some("otel%"));
        assert_eq!(found[0].filter.kinds, [TableKind::View]);
        assert!(lookups(&[col("kind").eq(lit("sequence"))], KEYS).is_empty());
        assert_eq!(escaped("a_b%"), "a\\_b\\%");
    }
}
