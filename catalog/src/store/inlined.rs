//! Rows that DuckDB keeps in the catalog itself, a table for each version of a table's columns. The database
//! may have fewer types: what it cannot hold, DuckDB writes as text. A value that does not read back exactly refuses the table.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array,
    new_null_array,
};
use arrow::compute::{CastOptions, cast_with_options, concat_batches};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::change::CatalogChange;
use super::columns::{self, ColumnRow, LoadedColumns};
use super::files::{FLUSH_HINT, RefusedTable};
use crate::connection::{DatabaseResult, OptionalRow, OwnedValue, StoreConnection, params};
use crate::error::{CatalogError, Result};
use crate::model::{ColumnInfo, ManagedTable, SnapshotId, quote_identifier};

/// Tables that one statement looks into.
const TABLES_OF_A_STATEMENT: usize = 50;
/// The rows that live at a snapshot.
const LIVE: &str = "begin_snapshot <= ?1 AND (end_snapshot IS NULL OR end_snapshot > ?1)";

/// The tables in which DuckDB keeps a table's rows, each with the version of the columns that it has, in the order in which they
/// are read.
pub(super) fn data_tables(connection: &StoreConnection, table_id: i64) -> Result<Vec<(String, i64)>> {
    let mut statement = connection.prepare_cached(
        "SELECT table_name, schema_version FROM ducklake_inlined_data_tables WHERE table_id = ?
           AND table_name IN (SELECT name FROM sqlite_master WHERE type = 'table') ORDER BY schema_version",
    )?;
    let tables = statement.query_map([table_id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(tables.collect::<DatabaseResult<_>>()?)
}

/// Those of many tables, a JSON list of ids, of which DuckDB keeps rows, live ones or not.
pub(super) fn tables_with_rows(connection: &StoreConnection, table_ids: &str) -> Result<Vec<i64>> {
    let mut statement = connection.prepare_cached(
        "SELECT table_id, table_name FROM ducklake_inlined_data_tables
         WHERE table_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))
           AND table_name IN (SELECT name FROM sqlite_master WHERE type = 'table')",
    )?;
    let kept = statement.query_map([table_ids], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let kept: Vec<(i64, String)> = kept.collect::<DatabaseResult<_>>()?;
    let mut found = Vec::new();
    for tables in kept.chunks(TABLES_OF_A_STATEMENT) {
        let has_rows = tables.iter().map(|(id, name)| {
            format!("SELECT {id} AS table_id WHERE EXISTS (SELECT 1 FROM {})", quote_identifier(name))
        });
        let mut statement = connection.prepare(&has_rows.collect::<Vec<_>>().join(" UNION ALL "))?;
        let ids = statement.query_map([], |row| row.get::<i64>(0))?;
        found.extend(ids.collect::<DatabaseResult<Vec<i64>>>()?);
    }
    Ok(found)
}

/// Makes the table in which DuckDB keeps rows of the columns that the change makes: it writes to the newest, in the order of the
/// columns. One that DuckDB makes itself for a table that was altered before, it reads by the columns that were first.
pub(super) fn add_version(change: &CatalogChange<'_>, table_id: i64) -> Result<()> {
    let connection = change.connection();
    let rows = columns::load_rows(connection, table_id, change.snapshot())?;
    let whole: Vec<&ColumnRow> = rows.iter().filter(|row| row.is_whole_column()).collect();
    // Beside columns of these names DuckDB keeps no rows in the catalog either.
    let is_reserved = |row: &&ColumnRow| RESERVED.iter().any(|name| row.name.eq_ignore_ascii_case(name));
    if whole.iter().any(is_reserved) {
        return Ok(());
    }
    let version = change.schema_version();
    let name = format!("ducklake_inlined_data_{table_id}_{version}");
    let own =
        whole.iter().map(|row| format!("{} {}", quote_identifier(&row.name), kept_type(connection, &row.column_type)));
    let columns: Vec<String> = RESERVED.iter().map(|name| format!("{name} BIGINT")).chain(own).collect();
    connection.execute(&format!("CREATE TABLE {}({})", quote_identifier(&name), columns.join(", ")), [])?;
    connection
        .prepare_cached("INSERT INTO ducklake_inlined_data_tables VALUES (?, ?, ?)")?
        .execute(params![table_id, name, version])?;
    Ok(())
}

/// The columns before those of the table.
const RESERVED: [&str; 3] = ["row_id", "begin_snapshot", "end_snapshot"];

/// As what DuckDB keeps values of a type in the catalog's database.
fn kept_type(connection: &StoreConnection, column_type: &str) -> String {
    match connection.is_remote() {
        true => postgres_type(column_type),
        false => sqlite_type(column_type).to_owned(),
    }
}

fn sqlite_type(column_type: &str) -> &'static str {
    match column_type {
        "int8" | "int16" | "int32" | "int64" | "uint8" | "uint16" | "uint32" | "boolean" => "BIGINT",
        "blob" => "BLOB",
        _ => "VARCHAR",
    }
}

/// Texts are bytes, since a text of PostgreSQL holds no zero, and times are texts, since it has fewer of them.
fn postgres_type(column_type: &str) -> String {
    let kept = match column_type {
        "boolean" => "BOOLEAN",
        "int8" | "int16" => "SMALLINT",
        "int32" | "uint8" | "uint16" => "INTEGER",
        "int64" | "uint32" => "BIGINT",
        "float32" => "REAL",
        "float64" => "DOUBLE PRECISION",
        "varchar" | "json" | "blob" => "BYTEA",
        "time" => "TIME",
        "uuid" => "UUID",
        "interval" => "INTERVAL",
        decimal => {
            return decimal.strip_prefix("decimal").map_or("VARCHAR".into(), |digits| format!("NUMERIC{digits}"));
        }
    };
    kept.to_owned()
}

/// A column as it is read: what the connection does not read is read as text.
fn readable(connection: &StoreConnection, name: &str, column: &ColumnInfo) -> String {
    let is_text = column.is_uuid || matches!(column.data_type, DataType::Decimal128(..) | DataType::Time64(_));
    match connection.is_remote() && is_text {
        true => format!("CAST({} AS TEXT)", quote_identifier(name)),
        false => quote_identifier(name),
    }
}

/// Where each of the rows that [`read`] returns is kept, in the same order: the table and the row's id in it.
pub(super) fn row_ids(connection: &StoreConnection, table: &ManagedTable) -> Result<Vec<(String, i64)>> {
    let mut all = Vec::new();
    for (name, _) in data_tables(connection, table.id)? {
        let sql = format!("SELECT row_id FROM {} WHERE {LIVE} ORDER BY row_id", quote_identifier(&name));
        let mut statement = connection.prepare(&sql)?;
        let ids = statement.query_map([table.snapshot], |row| row.get::<i64>(0))?;
        for id in ids {
            all.push((name.clone(), id?));
        }
    }
    Ok(all)
}

/// The rows at the table's snapshot, with the table's columns; `None` where there are none.
pub(super) fn read(refusal: &RefusedTable<'_>, loaded: &LoadedColumns) -> Result<Option<RecordBatch>> {
    let fields: Vec<Field> =
        loaded.columns.iter().map(|column| Field::new(&column.name, column.data_type.clone(), true)).collect();
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    let tables = data_tables(refusal.connection, refusal.table.id)?;
    let mut batches = Vec::new();
    for (name, version) in tables {
        let live = LIVE;
        let is_empty: bool = refusal.connection.query_row(
            &format!("SELECT NOT EXISTS (SELECT 1 FROM {} WHERE {live})", quote_identifier(&name)),
            [refusal.table.snapshot],
            |row| row.get(0),
        )?;
        if !is_empty {
            let columns = columns_of(refusal, version, loaded)?;
            batches.push(rows(refusal, &name, live, &columns, &schema)?);
        }
    }
    match batches.is_empty() {
        true => Ok(None),
        false => {
            let all = concat_batches(&schema, &batches);
            Ok(Some(all.map_err(|error| CatalogError::Internal(error.to_string()))?))
        }
    }
}

/// What each of the table's columns is in a version, in SQL: where it did not exist, what it is in older rows.
fn columns_of(refusal: &RefusedTable<'_>, version: i64, loaded: &LoadedColumns) -> Result<Vec<String>> {
    let connection = refusal.connection;
    let since: Option<SnapshotId> = connection
        .prepare_cached(
            // The version is the lake's when the table of the rows was created; the columns are the table's newest by
            // then.
            "SELECT begin_snapshot FROM ducklake_schema_versions WHERE table_id = ? AND schema_version <= ?
             ORDER BY schema_version DESC LIMIT 1",
        )?
        .query_row([refusal.table.id, version], |row| row.get(0))
        .optional()?;
    let Some(since) = since else {
        return Err(refusal.because("inlined rows (of columns that are not known any more)", FLUSH_HINT));
    };
    let mut names = Vec::with_capacity(loaded.columns.len());
    for column in &loaded.columns {
        let name: Option<String> = connection
            .prepare_cached(
                "SELECT column_name FROM ducklake_column
                 WHERE table_id = ?1 AND column_id = ?2 AND begin_snapshot <= ?3
                   AND (end_snapshot IS NULL OR end_snapshot > ?3)",
            )?
            .query_row(params![refusal.table.id, column.id, since], |row| row.get(0))
            .optional()?;
        names.push(match (name, &column.initial_default) {
            (Some(name), _) => readable(connection, &name, column),
            (None, Some(default)) => {
                let text = default.replace('\'', "''");
                match loaded.rows.iter().find(|row| row.id == column.id).map(|row| sqlite_type(&row.column_type)) {
                    Some("BIGINT") if column.data_type == DataType::Boolean => {
                        format!("CASE lower('{text}') WHEN 'true' THEN 1 WHEN 't' THEN 1 ELSE 0 END")
                    }
                    Some("BIGINT") => format!("CAST('{text}' AS BIGINT)"),
                    Some("BLOB") => bytes_literal(connection, default),
                    _ => format!("'{text}'"),
                }
            }
            (None, None) => "NULL".to_owned(),
        });
    }
    Ok(names)
}

/// Returns bytes in SQL, of a text in which `\xAA` is a byte and all else is its text.
fn bytes_literal(connection: &StoreConnection, text: &str) -> String {
    let (mut digits, mut rest) = (String::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        match after {
            [b'x', high, low, after @ ..] if *first == b'\\' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                digits.extend([char::from(*high), char::from(*low)]);
                rest = after;
            }
            _ => {
                digits += &format!("{first:02X}");
                rest = after;
            }
        }
    }
    match connection.is_remote() {
        true => format!("'\\x{digits}'::BYTEA"),
        false => format!("X'{digits}'"),
    }
}

fn rows(
    refusal: &RefusedTable<'_>,
    name: &str,
    live: &str,
    columns: &[String],
    schema: &SchemaRef,
) -> Result<RecordBatch> {
    let sql = format!("SELECT {} FROM {} WHERE {live} ORDER BY row_id", columns.join(", "), quote_identifier(name));
    let mut statement = refusal.connection.prepare(&sql)?;
    let mut cells: Vec<Vec<OwnedValue>> = vec![Vec::new(); columns.len()];
    let mut found = statement.query([refusal.table.snapshot])?;
    while let Some(row) = found.next()? {
        for (index, column) in cells.iter_mut().enumerate() {
            column.push(row.get(index)?);
        }
    }
    let mut arrays = Vec::with_capacity(columns.len());
    for (values, field) in cells.into_iter().zip(schema.fields()) {
        let array = array(values, field.data_type());
        let what = || format!("inlined rows (a {} in column `{}`)", field.data_type(), field.name());
        arrays.push(array.ok_or_else(|| refusal.because(&what(), FLUSH_HINT))?);
    }
    RecordBatch::try_new(Arc::clone(schema), arrays).map_err(|error| CatalogError::Internal(error.to_string()))
}

/// The values as `data_type`; `None` when one of them cannot be read as it.
fn array(values: Vec<OwnedValue>, data_type: &DataType) -> Option<ArrayRef> {
    if values.iter().all(|value| matches!(value, OwnedValue::Null)) {
        return Some(new_null_array(data_type, values.len()));
    }
    Some(match data_type {
        DataType::Boolean => Arc::new(BooleanArray::from(all(values, |value| match value {
            OwnedValue::Integer(0) => Some(false),
            OwnedValue::Integer(1) => Some(true),
            _ => None,
        })?)),
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32 => {
            let numbers = Int64Array::from(all(values, |value| match value {
                OwnedValue::Integer(number) => Some(number),
                _ => None,
            })?);
            exact(&(Arc::new(numbers) as ArrayRef), data_type)?
        }
        DataType::UInt64 => Arc::new(UInt64Array::from(all(values, |value| match value {
            OwnedValue::Integer(number) => u64::try_from(number).ok(),
            OwnedValue::Text(text) => text.parse().ok(),
            _ => None,
        })?)),
        DataType::Float32 => Arc::new(Float32Array::from(all(values, |value| match value {
            // Read from four bytes, so that nothing is lost.
            OwnedValue::Real(number) => Some(number as f32),
            other => number_text(other)?.parse().ok(),
        })?)),
        DataType::Float64 => Arc::new(Float64Array::from(all(values, |value| match value {
            OwnedValue::Real(number) => Some(number),
            other => number_text(other)?.parse().ok(),
        })?)),
        DataType::Utf8 => Arc::new(StringArray::from(all(values, text)?)),
        DataType::Binary => {
            let bytes = all(values, |value| match value {
                OwnedValue::Blob(bytes) => Some(bytes),
                _ => None,
            })?;
            Arc::new(BinaryArray::from_iter(bytes))
        }
        DataType::Date32 | DataType::Timestamp(..) | DataType::Time64(_) | DataType::Decimal128(..) => {
            exact(&(Arc::new(StringArray::from(all(values, number_text)?)) as ArrayRef), data_type)?
        }
        _ => return None,
    })
}

fn text(value: OwnedValue) -> Option<String> {
    match value {
        OwnedValue::Text(text) => Some(text),
        OwnedValue::Blob(bytes) => String::from_utf8(bytes).ok(),
        _ => None,
    }
}

/// A number may be of the time when its column was one of integers.
fn number_text(value: OwnedValue) -> Option<String> {
    match value {
        OwnedValue::Integer(number) => Some(number.to_string()),
        other => text(other),
    }
}

/// Each value read, nulls kept; `None` when one cannot be.
fn all<T>(values: Vec<OwnedValue>, read: impl Fn(OwnedValue) -> Option<T>) -> Option<Vec<Option<T>>> {
    values
        .into_iter()
        .map(|value| match value {
            OwnedValue::Null => Some(None),
            value => read(value).map(Some),
        })
        .collect()
}

fn exact(array: &ArrayRef, data_type: &DataType) -> Option<ArrayRef> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, data_type, &options).ok()
}
