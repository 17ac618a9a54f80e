//! Which columns join the tables of a prompt. The catalog holds no foreign keys, so equal names are read as such
//! where they look like keys: told too many, a small model joins by the year.

use querent_catalog::{ColumnInfo, TableInfo};

use crate::tools::quote_identifier;

/// Names that many tables share and few join by.
const GENERIC: [&str; 34] = [
    "active",
    "amount",
    "category",
    "code",
    "comment",
    "count",
    "country",
    "created",
    "created_at",
    "date",
    "day",
    "description",
    "email",
    "hour",
    "id",
    "key",
    "kind",
    "label",
    "minute",
    "month",
    "name",
    "notes",
    "price",
    "rowid",
    "source",
    "state",
    "status",
    "time",
    "timestamp",
    "title",
    "type",
    "updated_at",
    "value",
    "year",
];

/// `a.x = b.y` for every pair of tables that a column joins, the order of the tables kept.
pub(super) fn conditions(tables: &[&TableInfo]) -> Vec<String> {
    let mut conditions = Vec::new();
    for (position, left) in tables.iter().enumerate() {
        for right in &tables[position + 1..] {
            if let Some((left_column, right_column)) = joining_columns(left, right) {
                conditions.push(format!("{} = {}", qualified(left, left_column), qualified(right, right_column)));
            }
        }
    }
    conditions
}

/// Whether a column looks as if other tables refer to it, or it to them.
pub(super) fn looks_like_key(column: &ColumnInfo) -> bool {
    let name = column.name.to_lowercase();
    name == "id" || ["_id", "_key", "_code", "_no", "_num", "_uuid"].iter().any(|ending| name.ends_with(ending))
}

fn joining_columns<'a>(left: &'a TableInfo, right: &'a TableInfo) -> Option<(&'a ColumnInfo, &'a ColumnInfo)> {
    let shared = left.columns.iter().find_map(|column| {
        let other = right.columns.iter().find(|other| other.name.eq_ignore_ascii_case(&column.name))?;
        let generic = GENERIC.contains(&column.name.to_lowercase().as_str());
        let keyed = looks_like_key(column) || is_first(left, column) || is_first(right, other);
        (!generic && keyed && joins(column, other)).then_some((column, other))
    });
    shared
        .or_else(|| references(left, right))
        .or_else(|| references(right, left).map(|(referring, referred)| (referred, referring)))
}

/// `orders.customer_id` refers to `customers.id`, or to `customer.id`.
fn references<'a>(from: &'a TableInfo, to: &'a TableInfo) -> Option<(&'a ColumnInfo, &'a ColumnInfo)> {
    let target = to.name.table.to_lowercase();
    let id = to.columns.iter().find(|column| column.name.eq_ignore_ascii_case("id"))?;
    from.columns.iter().find_map(|column| {
        let name = column.name.to_lowercase();
        let stem = name.strip_suffix("_id")?;
        let plural = target.strip_prefix(stem).is_some_and(|ending| matches!(ending, "" | "s" | "es"));
        (plural && joins(column, id)).then_some((column, id))
    })
}

/// A dimension's key is its first column.
fn is_first(table: &TableInfo, column: &ColumnInfo) -> bool {
    table.columns.first().is_some_and(|first| first.name == column.name)
}

fn joins(left: &ColumnInfo, right: &ColumnInfo) -> bool {
    let text = |column: &ColumnInfo| column.data_type.is_string();
    let number = |column: &ColumnInfo| column.data_type.is_integer();
    (text(left) && text(right)) || (number(left) && number(right)) || left.data_type == right.data_type
}

fn qualified(table: &TableInfo, column: &ColumnInfo) -> String {
    format!("{}.{}", quote_identifier(&table.name.table), quote_identifier(&column.name))
}
