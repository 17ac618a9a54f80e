//! Views, which are the lake's own, and external tables, which are ours.

use arrow_schema::Schema;
use uuid::Uuid;

use super::change::CatalogChange;
use super::object_rows::ObjectRows;
use super::relations;
use super::tables::{created, make_room, object_entry};
use crate::connection::params;
use crate::error::{CatalogError, Result};
use crate::model::{Created, ExternalTable, IfExists, TableInfo, TableKind, TableName};

/// The dialect of our views. DuckDB reads them as its own; most SQL is valid in both.
const DIALECT: &str = "datafusion";

/// Creates a view.
pub(crate) fn create_view(
    change: &mut CatalogChange<'_>,
    name: &TableName,
    sql: &str,
    default_database: &str,
    schema: &Schema,
    if_exists: IfExists,
) -> Result<Created<TableInfo>> {
    let Some(schema_id) = make_room(change, name, TableKind::View, if_exists)? else { return Ok(Created::Existing) };
    let connection = change.connection();
    let view_id = change.new_object_id();
    connection.prepare_cached("INSERT INTO ducklake_view VALUES (?, ?, ?, NULL, ?, ?, ?, ?, '')")?.execute(params![
        view_id,
        Uuid::now_v7().to_string(),
        change.snapshot(),
        schema_id,
        name.table,
        DIALECT,
        sql,
    ])?;
    connection.prepare_cached("INSERT INTO querent_view VALUES (?, ?)")?.execute(params![view_id, default_database])?;
    let mut rows = ObjectRows::default();
    relations::insert_described_columns(connection, &mut rows, view_id, schema)?;
    rows.flush(connection)?;
    change.record_schema(format!("created_view:{}", object_entry(change, schema_id, &name.table)?));
    created(change, view_id)
}

/// Creates an external table. It is recorded as a created table, so that DuckDB sees that the name is taken.
pub(crate) fn create_external(
    change: &mut CatalogChange<'_>,
    name: &TableName,
    table: &ExternalTable,
    schema: &Schema,
    if_exists: IfExists,
) -> Result<Created<TableInfo>> {
    let Some(schema_id) = make_room(change, name, TableKind::External, if_exists)? else {
        return Ok(Created::Existing);
    };
    let mut rows = ObjectRows::default();
    let object_id = insert_external(change, &mut rows, schema_id, &name.table, table, schema)?;
    rows.flush(change.connection())?;
    change.record_schema(format!("created_table:{}", object_entry(change, schema_id, &name.table)?));
    created(change, object_id)
}

/// Adds the rows of a new external table and returns its id. The caller records it ([`object_entry`]).
pub(super) fn insert_external(
    change: &mut CatalogChange<'_>,
    rows: &mut ObjectRows,
    schema_id: i64,
    name: &str,
    table: &ExternalTable,
    schema: &Schema,
) -> Result<i64> {
    let connection = change.connection();
    let definition = serde_json::to_string(table).map_err(|error| CatalogError::Internal(error.to_string()))?;
    let object_id = change.new_object_id();
    let uuid = Uuid::now_v7().to_string();
    let row = params![object_id, uuid, change.snapshot(), schema_id, name, definition];
    rows.external_tables.add(connection, row)?;
    relations::insert_described_columns(connection, rows, object_id, schema)?;
    Ok(object_id)
}
