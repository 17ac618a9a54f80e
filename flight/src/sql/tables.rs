//! GetTables: tables, external tables and views, in pages, with their schemas if the command asks for them; and the
//! temporary tables of the caller's session, which are in no catalog and no schema.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, RecordBatch, StringArray, new_null_array};
use arrow::compute::{filter_record_batch, ilike};
use arrow_flight::sql::CommandGetTables;
use arrow_flight::{IpcMessage, SchemaAsIpc};
use arrow_ipc::writer::IpcWriteOptions;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use futures::StreamExt;
use querent_catalog::{CATALOG_NAME, ColumnInfo, PageRequest, Principal, TableFilter, TableInfo, TableKind, TableName};
use querent_engine::{Engine, ResultTypes};
use tonic::Status;

use super::listing::{BatchStream, catalog_matches};
use super::sql_types::column_type;
use crate::error::ApiError;

/// Every value of the `table_type` column.
pub(super) const TABLE_TYPES: &[&str] = &["BASE TABLE", "EXTERNAL TABLE", LOCAL_TEMPORARY, "VIEW"];
/// The type of a session's own table.
const LOCAL_TEMPORARY: &str = "LOCAL TEMPORARY";

/// The tables of one batch, without and with their schemas.
const PAGE: usize = 2_000;
const PAGE_WITH_SCHEMAS: usize = 250;

/// Returns the tables that match the command and that `caller` may see, after those of its session.
pub(super) fn batches(
    schema: SchemaRef,
    engine: &Engine,
    caller: Principal,
    command: CommandGetTables,
    temporary: Vec<(String, SchemaRef)>,
) -> BatchStream {
    let catalog = Arc::clone(engine.catalog());
    async_stream::try_stream! {
        if let Some(rows) = temporary_tables(&schema, &command, &temporary).map_err(ApiError::internal)? {
            yield rows;
        }
        let Some(filter) = filter_of(&command) else { return };
        let page_size = if command.include_schema { PAGE_WITH_SCHEMAS } else { PAGE };
        let mut request = PageRequest::first(page_size);
        loop {
            let (rows, next) = if command.include_schema {
                let page = catalog.tables().list_with_columns(&caller, &filter, request).await.map_err(ApiError::from)?;
                (batch_with_schemas(&schema, &page.items), page.next)
            } else {
                let page = catalog.tables().list(&caller, &filter, request).await.map_err(ApiError::from)?;
                let rows = columns_of(page.items.iter().map(|table| (&table.name, table.kind)));
                (RecordBatch::try_new(Arc::clone(&schema), rows), page.next)
            };
            yield rows.map_err(ApiError::internal)?;
            let Some(next) = next else { break };
            request = PageRequest { limit: page_size, after: Some(next) };
        }
    }
    .map(|batch: Result<RecordBatch, ApiError>| batch.map_err(Status::from))
    .boxed()
}

/// Returns the session's tables that match the command; `None` where none does. A filter of catalogs or of schemas matches
/// no table that is in none.
fn temporary_tables(
    schema: &SchemaRef,
    command: &CommandGetTables,
    tables: &[(String, SchemaRef)],
) -> Result<Option<RecordBatch>, ArrowError> {
    let is_wanted = |wanted: &String| wanted.eq_ignore_ascii_case(LOCAL_TEMPORARY);
    let has_type = command.table_types.is_empty() || command.table_types.iter().any(is_wanted);
    let named = |filter: &Option<String>| filter.as_deref().is_some_and(|name| !name.is_empty());
    if tables.is_empty() || !has_type || named(&command.catalog) || named(&command.db_schema_filter_pattern) {
        return Ok(None);
    }
    let names = StringArray::from_iter_values(tables.iter().map(|(name, _)| name));
    let pattern = command.table_name_filter_pattern.as_deref().unwrap_or("%");
    let matching = ilike(&names, &StringArray::new_scalar(pattern))?;
    let nowhere = new_null_array(&DataType::Utf8, tables.len());
    let types = StringArray::from_iter_values(tables.iter().map(|_| LOCAL_TEMPORARY));
    let mut columns: Vec<ArrayRef> = vec![ArrayRef::clone(&nowhere), nowhere, Arc::new(names), Arc::new(types)];
    if command.include_schema {
        let schemas = tables.iter().map(|(_, table)| plain_schema_message(table)).collect::<Result<Vec<_>, _>>()?;
        columns.push(Arc::new(BinaryArray::from_iter_values(schemas)));
    }
    let rows = filter_record_batch(&RecordBatch::try_new(Arc::clone(schema), columns)?, &matching)?;
    Ok(Some(rows).filter(|rows| rows.num_rows() > 0))
}

/// Converts the command's filters to the catalog's; `None` if nothing can match.
fn filter_of(command: &CommandGetTables) -> Option<TableFilter> {
    let kinds: Vec<_> = [TableKind::Managed, TableKind::External, TableKind::View]
        .into_iter()
        .filter(|kind| command.table_types.iter().any(|wanted| is_type(*kind, wanted)))
        .collect();
    let no_such_type = kinds.is_empty() && !command.table_types.is_empty();
    if no_such_type || !catalog_matches(command.catalog.as_deref()) {
        return None;
    }
    Some(TableFilter {
        database_like: command.db_schema_filter_pattern.clone(),
        name_like: command.table_name_filter_pattern.clone(),
        kinds,
        ..TableFilter::default()
    })
}

/// Whether tables of a kind are wanted. `TABLE` is what the protocol and JDBC call every table that is no view.
fn is_type(kind: TableKind, wanted: &str) -> bool {
    wanted.eq_ignore_ascii_case(kind.table_type()) || (wanted.eq_ignore_ascii_case("table") && kind != TableKind::View)
}

fn batch_with_schemas(schema: &SchemaRef, tables: &[TableInfo]) -> Result<RecordBatch, ArrowError> {
    let mut columns = columns_of(tables.iter().map(|table| (&table.name, table.kind)));
    let schemas = tables.iter().map(schema_message).collect::<Result<Vec<_>, _>>()?;
    columns.push(Arc::new(BinaryArray::from_iter_values(schemas)));
    RecordBatch::try_new(Arc::clone(schema), columns)
}

/// Returns the four columns that every GetTables answer has.
fn columns_of<'a>(tables: impl Iterator<Item = (&'a TableName, TableKind)> + Clone) -> Vec<ArrayRef> {
    vec![
        Arc::new(StringArray::from_iter_values(tables.clone().map(|_| CATALOG_NAME))),
        Arc::new(StringArray::from_iter_values(tables.clone().map(|(name, _)| name.database.as_str()))),
        Arc::new(StringArray::from_iter_values(tables.clone().map(|(name, _)| name.table.as_str()))),
        Arc::new(StringArray::from_iter_values(tables.map(|(_, kind)| kind.table_type()))),
    ]
}

/// Encodes a table's schema as an encapsulated IPC message, with the column metadata that the protocol names.
fn schema_message(table: &TableInfo) -> Result<Vec<u8>, ArrowError> {
    let fields: Vec<_> = table
        .columns
        .iter()
        .map(|column| {
            Field::new(&column.name, column.data_type.clone(), column.nullable)
                .with_metadata(column_metadata(table, column))
        })
        .collect();
    plain_schema_message(&Schema::new(fields))
}

/// Encodes a schema with the types that clients get.
fn plain_schema_message(schema: &Schema) -> Result<Vec<u8>, ArrowError> {
    let schema = ResultTypes::default().result_schema(schema);
    let IpcMessage(message) = SchemaAsIpc::new(&schema, &IpcWriteOptions::default()).try_into()?;
    Ok(message.to_vec())
}

/// Returns what the protocol says of a column in its field's metadata.
fn column_metadata(table: &TableInfo, column: &ColumnInfo) -> HashMap<String, String> {
    let flag = |value: bool| Some(if value { "1" } else { "0" }.to_owned());
    let number = |value: Option<i32>| value.map(|value| value.to_string());
    let column_type = column_type(&column.data_type);
    let entries = [
        ("CATALOG_NAME", Some(CATALOG_NAME.to_owned())),
        ("DB_SCHEMA_NAME", Some(table.name.database.clone())),
        // The name that Java's client library reads.
        ("SCHEMA_NAME", Some(table.name.database.clone())),
        ("TABLE_NAME", Some(table.name.table.clone())),
        ("TYPE_NAME", Some(column_type.name)),
        ("PRECISION", number(column_type.precision)),
        ("SCALE", number(column_type.scale)),
        ("IS_AUTO_INCREMENT", flag(false)),
        ("IS_CASE_SENSITIVE", flag(column_type.is_case_sensitive)),
        ("IS_READ_ONLY", flag(table.kind != TableKind::Managed)),
        ("IS_SEARCHABLE", flag(true)),
        ("REMARKS", column.comment.clone()),
    ];
    entries.into_iter().filter_map(|(key, value)| Some((format!("ARROW:FLIGHT:SQL:{key}"), value?))).collect()
}
