//! Keys as rows of the standard's tables about constraints.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use arrow::datatypes::SchemaRef;
use querent_catalog::{CATALOG_NAME, KeyConstraint, KeyKind, TableName};

use super::rows::{batch, maybe, text};
use crate::error::Result;

pub(super) fn table_constraints(schema: &SchemaRef, keys: &[KeyConstraint]) -> Result<RecordBatch> {
    let mut columns = names(keys.iter().map(|key| (&key.table, key.name.as_str())));
    columns.extend(table_names(keys.iter().map(|key| &key.table)));
    columns.extend([
        text(keys.iter().map(|key| key.kind.constraint_type())),
        text(keys.iter().map(|_| "NO")),
        text(keys.iter().map(|_| "NO")),
        // Keys are recorded and not enforced.
        text(keys.iter().map(|_| "NO")),
        maybe(keys.iter().map(|key| (key.kind == KeyKind::Unique).then_some("YES"))),
    ]);
    batch(schema, columns, keys.len())
}

pub(super) fn key_column_usage(schema: &SchemaRef, keys: &[KeyConstraint]) -> Result<RecordBatch> {
    let rows: Vec<(&KeyConstraint, usize)> =
        keys.iter().flat_map(|key| (0..key.columns.len()).map(move |index| (key, index))).collect();
    let ordinals = rows.iter().map(|(_, index)| Some(*index as u64 + 1));
    let mut columns = names(rows.iter().map(|(key, _)| (&key.table, key.name.as_str())));
    columns.extend(table_names(rows.iter().map(|(key, _)| &key.table)));
    columns.extend([
        text(rows.iter().filter_map(|(key, index)| key.columns.get(*index))),
        Arc::new(ordinals.collect::<UInt64Array>()) as ArrayRef,
        Arc::new(rows.iter().map(|(key, index)| position_in_key(key, *index)).collect::<UInt64Array>()),
    ]);
    batch(schema, columns, rows.len())
}

/// Returns the ordinal, in the unique key, of the column that a foreign key's column refers to.
fn position_in_key(key: &KeyConstraint, index: usize) -> Option<u64> {
    let referred = key.referred.as_ref()?;
    let column = referred.columns.get(index)?;
    referred.key_columns.iter().zip(1..).find(|(other, _)| *other == column).map(|(_, ordinal)| ordinal)
}

pub(super) fn referential_constraints(schema: &SchemaRef, keys: &[KeyConstraint]) -> Result<RecordBatch> {
    let unique_keys: Vec<Option<(&str, &str)>> = keys
        .iter()
        .map(|key| {
            let referred = key.referred.as_ref()?;
            Some((referred.table.database.as_str(), referred.key.as_deref()?))
        })
        .collect();
    let mut columns = names(keys.iter().map(|key| (&key.table, key.name.as_str())));
    columns.extend([
        maybe(unique_keys.iter().map(|key| key.map(|_| CATALOG_NAME))),
        maybe(unique_keys.iter().map(|key| key.map(|(database, _)| database))),
        maybe(unique_keys.iter().map(|key| key.map(|(_, name)| name))),
        text(keys.iter().map(|_| "NONE")),
        text(keys.iter().map(|_| "NO ACTION")),
        text(keys.iter().map(|_| "NO ACTION")),
    ]);
    batch(schema, columns, keys.len())
}

/// The columns that a constraint uses: those of a unique key, or those that a foreign key refers to.
pub(super) fn constraint_column_usage(schema: &SchemaRef, keys: &[KeyConstraint]) -> Result<RecordBatch> {
    let rows: Vec<(&KeyConstraint, &TableName, &String)> = keys
        .iter()
        .flat_map(|key| {
            let (table, columns) = match &key.referred {
                Some(referred) => (&referred.table, &referred.columns),
                None => (&key.table, &key.columns),
            };
            columns.iter().map(move |column| (key, table, column))
        })
        .collect();
    let mut columns = table_names(rows.iter().map(|(_, table, _)| *table));
    columns.push(text(rows.iter().map(|(.., column)| column)));
    columns.extend(names(rows.iter().map(|(key, ..)| (&key.table, key.name.as_str()))));
    batch(schema, columns, rows.len())
}

/// Returns the catalog, schema and name of constraints: they are in the schema of their table.
fn names<'a>(keys: impl Iterator<Item = (&'a TableName, &'a str)> + Clone) -> Vec<ArrayRef> {
    vec![
        text(keys.clone().map(|_| CATALOG_NAME)),
        text(keys.clone().map(|(table, _)| &table.database)),
        text(keys.map(|(_, name)| name)),
    ]
}

fn table_names<'a>(tables: impl Iterator<Item = &'a TableName> + Clone) -> Vec<ArrayRef> {
    vec![
        text(tables.clone().map(|_| CATALOG_NAME)),
        text(tables.clone().map(|table| &table.database)),
        text(tables.map(|table| &table.table)),
    ]
}
