//! GetPrimaryKeys, GetExportedKeys, GetImportedKeys and GetCrossReference: the keys that the catalog records.
//!
//! Invariant: a table that does not exist, or that the caller may not see, has no keys; that is no error, as JDBC has it.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray, UInt8Array};
use arrow_flight::sql::{
    CommandGetCrossReference, CommandGetExportedKeys, CommandGetImportedKeys, CommandGetPrimaryKeys, UpdateDeleteRules,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use futures::{StreamExt, stream};
use querent_catalog::{CATALOG_NAME, Catalog, KeyConstraint, KeyFilter, KeyKind, PageRequest, Principal, TableFilter};
use querent_engine::Engine;
use tonic::Status;

use super::listing::{BatchStream, catalog_matches};
use crate::error::ApiError;

/// The keys that are read from the catalog at once.
const PAGE: usize = 1_000;

/// Returns the schema of GetPrimaryKeys.
pub(super) fn primary_keys_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("catalog_name", DataType::Utf8, true),
        Field::new("db_schema_name", DataType::Utf8, true),
        Field::new("table_name", DataType::Utf8, false),
        Field::new("column_name", DataType::Utf8, false),
        Field::new("key_name", DataType::Utf8, true),
        Field::new("key_sequence", DataType::Int32, false),
    ]))
}

/// Returns the schema of the three commands about foreign keys.
pub(super) fn foreign_keys_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("pk_catalog_name", DataType::Utf8, true),
        Field::new("pk_db_schema_name", DataType::Utf8, true),
        Field::new("pk_table_name", DataType::Utf8, false),
        Field::new("pk_column_name", DataType::Utf8, false),
        Field::new("fk_catalog_name", DataType::Utf8, true),
        Field::new("fk_db_schema_name", DataType::Utf8, true),
        Field::new("fk_table_name", DataType::Utf8, false),
        Field::new("fk_column_name", DataType::Utf8, false),
        Field::new("key_sequence", DataType::Int32, false),
        Field::new("fk_key_name", DataType::Utf8, true),
        Field::new("pk_key_name", DataType::Utf8, true),
        Field::new("update_rule", DataType::UInt8, false),
        Field::new("delete_rule", DataType::UInt8, false),
    ]))
}

/// Returns the columns of a table's primary key, in order.
pub(super) fn primary_keys(engine: &Engine, caller: Principal, command: CommandGetPrimaryKeys) -> BatchStream {
    let filter = table_filter(command.catalog, command.db_schema, command.table).map(|table| KeyFilter {
        table,
        kinds: vec![KeyKind::Primary],
        ..KeyFilter::default()
    });
    batches(engine, caller, filter, |keys| {
        let mut rows: Vec<PrimaryKeyRow<'_>> = keys.iter().flat_map(primary_key_rows).collect();
        rows.sort();
        primary_key_batch(&rows)
    })
}

/// Returns the foreign keys that refer to a table, ordered by the tables that have them.
pub(super) fn exported_keys(engine: &Engine, caller: Principal, command: CommandGetExportedKeys) -> BatchStream {
    let filter = table_filter(command.catalog, command.db_schema, command.table)
        .map(|referred| foreign(TableFilter::default(), Some(referred)));
    batches(engine, caller, filter, |keys| {
        let mut rows: Vec<ForeignKeyRow<'_>> = keys.iter().flat_map(foreign_key_rows).collect();
        rows.sort_by_key(|row| (row.fk_schema, row.fk_table, row.fk_name, row.sequence));
        foreign_key_batch(&rows)
    })
}

/// Returns the foreign keys that a table has, ordered by the tables that they refer to.
pub(super) fn imported_keys(engine: &Engine, caller: Principal, command: CommandGetImportedKeys) -> BatchStream {
    let filter = table_filter(command.catalog, command.db_schema, command.table).map(|table| foreign(table, None));
    by_referred_table(engine, caller, filter)
}

/// Returns the foreign keys that one table has to another.
pub(super) fn cross_reference(engine: &Engine, caller: Principal, command: CommandGetCrossReference) -> BatchStream {
    let table = table_filter(command.fk_catalog, command.fk_db_schema, command.fk_table);
    let referred = table_filter(command.pk_catalog, command.pk_db_schema, command.pk_table);
    let filter = table.zip(referred).map(|(table, referred)| foreign(table, Some(referred)));
    by_referred_table(engine, caller, filter)
}

fn by_referred_table(engine: &Engine, caller: Principal, filter: Option<KeyFilter>) -> BatchStream {
    batches(engine, caller, filter, |keys| {
        let mut rows: Vec<ForeignKeyRow<'_>> = keys.iter().flat_map(foreign_key_rows).collect();
        // What the protocol leaves open is decided by the foreign key, so that its rows keep together.
        rows.sort_by_key(|row| (row.pk_schema, row.pk_table, row.pk_name, row.sequence, row.fk_table, row.fk_name));
        foreign_key_batch(&rows)
    })
}

fn foreign(table: TableFilter, referred: Option<TableFilter>) -> KeyFilter {
    KeyFilter { table, referred, kinds: vec![KeyKind::Foreign] }
}

/// Returns the table that a command names; `None` where it can be none of ours: an empty catalog or schema asks for tables
/// without one.
fn table_filter(catalog: Option<String>, db_schema: Option<String>, table: String) -> Option<TableFilter> {
    let exists = catalog_matches(catalog.as_deref()) && db_schema.as_deref() != Some("");
    exists.then(|| TableFilter { database: db_schema, name: Some(table), ..TableFilter::default() })
}

/// Returns one batch of the keys that match: the protocol orders them, so all are read first.
fn batches(
    engine: &Engine,
    caller: Principal,
    filter: Option<KeyFilter>,
    batch: impl FnOnce(&[KeyConstraint]) -> Result<RecordBatch, ArrowError> + Send + 'static,
) -> BatchStream {
    let catalog = Arc::clone(engine.catalog());
    stream::once(async move {
        let keys = match filter {
            Some(filter) => all_keys(&catalog, &caller, &filter).await?,
            None => Vec::new(),
        };
        batch(&keys).map_err(ApiError::internal)
    })
    .map(|batch: Result<RecordBatch, ApiError>| batch.map_err(Status::from))
    .boxed()
}

async fn all_keys(catalog: &Catalog, caller: &Principal, filter: &KeyFilter) -> Result<Vec<KeyConstraint>, ApiError> {
    let mut keys = Vec::new();
    let mut request = PageRequest::first(PAGE);
    loop {
        let page = catalog.keys().list(caller, filter, request).await?;
        keys.extend(page.items);
        match page.next {
            Some(next) => request = PageRequest { limit: PAGE, after: Some(next) },
            None => return Ok(keys),
        }
    }
}

/// A column of a primary key. Its fields are in the order that the protocol sorts by.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PrimaryKeyRow<'a> {
    schema: &'a str,
    table: &'a str,
    name: &'a str,
    sequence: i32,
    column: &'a str,
}

fn primary_key_rows(key: &KeyConstraint) -> impl Iterator<Item = PrimaryKeyRow<'_>> {
    key.columns.iter().zip(1..).map(|(column, sequence)| PrimaryKeyRow {
        schema: &key.table.database,
        table: &key.table.table,
        name: &key.name,
        sequence,
        column,
    })
}

fn primary_key_batch(rows: &[PrimaryKeyRow<'_>]) -> Result<RecordBatch, ArrowError> {
    let columns: Vec<ArrayRef> = vec![
        text(rows, |_| CATALOG_NAME),
        text(rows, |row| row.schema),
        text(rows, |row| row.table),
        text(rows, |row| row.column),
        text(rows, |row| row.name),
        Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.sequence))),
    ];
    RecordBatch::try_new(primary_keys_schema(), columns)
}

/// A column of a foreign key, and the column that it refers to.
#[derive(Debug)]
struct ForeignKeyRow<'a> {
    pk_schema: &'a str,
    pk_table: &'a str,
    pk_column: &'a str,
    pk_name: Option<&'a str>,
    fk_schema: &'a str,
    fk_table: &'a str,
    fk_column: &'a str,
    fk_name: &'a str,
    sequence: i32,
}

fn foreign_key_rows(key: &KeyConstraint) -> impl Iterator<Item = ForeignKeyRow<'_>> {
    key.referred.iter().flat_map(move |referred| {
        key.columns.iter().zip(&referred.columns).zip(1..).map(move |((fk_column, pk_column), sequence)| {
            ForeignKeyRow {
                pk_schema: &referred.table.database,
                pk_table: &referred.table.table,
                pk_column,
                pk_name: referred.key.as_deref(),
                fk_schema: &key.table.database,
                fk_table: &key.table.table,
                fk_column,
                fk_name: &key.name,
                sequence,
            }
        })
    })
}

fn foreign_key_batch(rows: &[ForeignKeyRow<'_>]) -> Result<RecordBatch, ArrowError> {
    let pk_names: StringArray = rows.iter().map(|row| row.pk_name).collect();
    let rules = UInt8Array::from_iter_values(std::iter::repeat_n(UpdateDeleteRules::NoAction as u8, rows.len()));
    let rules: ArrayRef = Arc::new(rules);
    let columns: Vec<ArrayRef> = vec![
        text(rows, |_| CATALOG_NAME),
        text(rows, |row| row.pk_schema),
        text(rows, |row| row.pk_table),
        text(rows, |row| row.pk_column),
        text(rows, |_| CATALOG_NAME),
        text(rows, |row| row.fk_schema),
        text(rows, |row| row.fk_table),
        text(rows, |row| row.fk_column),
        Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.sequence))),
        text(rows, |row| row.fk_name),
        Arc::new(pk_names),
        Arc::clone(&rules),
        rules,
    ];
    RecordBatch::try_new(foreign_keys_schema(), columns)
}

fn text<R>(rows: &[R], value: impl Fn(&R) -> &str) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(rows.iter().map(value)))
}
