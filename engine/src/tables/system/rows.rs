//! Catalog objects as rows of the system tables.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, StringArray, TimestampMicrosecondArray, UInt64Array,
    new_null_array,
};
use arrow::datatypes::{DataType, SchemaRef};
use querent_catalog::{
    CATALOG_NAME, ColumnDefault, ColumnInfo, DatabaseInfo, ResolvedTable, RunRecord, TableInfo, TableName, TableSource,
    TableSummary,
};

use super::filters::kind_name;
use crate::error::Result;
use crate::limits::QueryUsage;
use crate::timestamp::fraction_digits;
use crate::type_names::sql_name;

pub(super) fn runs(schema: &SchemaRef, runs: &[RunRecord]) -> Result<RecordBatch> {
    let started = runs.iter().map(|run| Some(run.started_at.timestamp_micros()));
    let finished = runs.iter().map(|run| run.finished_at.map(|time| time.timestamp_micros()));
    let times = |times: TimestampMicrosecondArray| Arc::new(times.with_timezone("UTC")) as ArrayRef;
    let columns = vec![
        text(runs.iter().map(|run| run.run_id.to_string())),
        text(runs.iter().map(|run| &run.question)),
        text(runs.iter().map(|run| &run.model_id)),
        text(runs.iter().map(|run| run.status.as_str())),
        times(started.collect()),
        times(finished.collect()),
        text(runs.iter().map(|run| &run.usage_json)),
        text(runs.iter().map(|run| &run.trace_json)),
        text(runs.iter().map(|run| &run.protocol)),
        maybe(runs.iter().map(|run| run.conversation.as_ref().map(|key| key.id.as_str()))),
    ];
    batch(schema, columns, runs.len())
}

pub(super) fn started_runs(schema: &SchemaRef, runs: &[RunRecord]) -> Result<RecordBatch> {
    let started = runs.iter().map(|run| Some(run.started_at.timestamp_micros()));
    let finished = runs.iter().map(|run| run.finished_at.map(|time| time.timestamp_micros()));
    let times = |times: TimestampMicrosecondArray| Arc::new(times.with_timezone("UTC")) as ArrayRef;
    let columns = vec![
        text(runs.iter().map(|run| run.run_id.to_string())),
        text(runs.iter().map(|run| &run.subject)),
        text(runs.iter().map(|run| &run.question)),
        text(runs.iter().map(|run| &run.model_id)),
        text(runs.iter().map(|run| run.status.as_str())),
        times(started.collect()),
        times(finished.collect()),
        text(runs.iter().map(|run| &run.protocol)),
    ];
    batch(schema, columns, runs.len())
}

pub(super) fn queries(schema: &SchemaRef, running: &[Arc<QueryUsage>]) -> Result<RecordBatch> {
    let started: TimestampMicrosecondArray =
        running.iter().map(|query| Some(query.started_at().timestamp_micros())).collect();
    let columns = vec![
        Arc::new(running.iter().map(|query| Some(query.id())).collect::<UInt64Array>()) as ArrayRef,
        text(running.iter().map(|query| &query.label().subject)),
        text(running.iter().map(|query| &query.label().database)),
        text(running.iter().map(|query| &query.label().text)),
        Arc::new(started.with_timezone("UTC")),
        Arc::new(running.iter().map(|query| Some(query.held_bytes() as u64)).collect::<UInt64Array>()),
    ];
    batch(schema, columns, running.len())
}

pub(super) fn databases(schema: &SchemaRef, databases: &[DatabaseInfo]) -> Result<RecordBatch> {
    let columns = vec![
        text(databases.iter().map(|database| &database.name)),
        maybe(databases.iter().map(|database| database.comment.as_deref())),
    ];
    batch(schema, columns, databases.len())
}

pub(super) fn schemata(schema: &SchemaRef, databases: &[DatabaseInfo]) -> Result<RecordBatch> {
    let mut columns =
        vec![text(databases.iter().map(|_| CATALOG_NAME)), text(databases.iter().map(|database| &database.name))];
    columns.resize(schema.fields().len(), new_null_array(&DataType::Utf8, databases.len()));
    batch(schema, columns, databases.len())
}

pub(super) fn tables(schema: &SchemaRef, tables: &[TableSummary]) -> Result<RecordBatch> {
    let columns = vec![
        text(tables.iter().map(|table| &table.name.database)),
        text(tables.iter().map(|table| &table.name.table)),
        text(tables.iter().map(|table| kind_name(table.kind))),
        maybe(tables.iter().map(|table| table.comment.as_deref())),
        Arc::new(tables.iter().map(|table| table.row_count).collect::<UInt64Array>()),
    ];
    batch(schema, columns, tables.len())
}

pub(super) fn standard_tables(schema: &SchemaRef, tables: &[TableSummary]) -> Result<RecordBatch> {
    let columns = vec![
        text(tables.iter().map(|_| CATALOG_NAME)),
        text(tables.iter().map(|table| &table.name.database)),
        text(tables.iter().map(|table| &table.name.table)),
        text(tables.iter().map(|table| table.kind.table_type())),
    ];
    batch(schema, columns, tables.len())
}

pub(super) fn views(
    schema: &SchemaRef,
    names: &[TableName],
    resolved: &[Option<ResolvedTable>],
) -> Result<RecordBatch> {
    let definitions = resolved.iter().map(|view| match view.as_ref().map(|view| &view.source) {
        Some(TableSource::View { sql, .. }) => Some(sql.as_str()),
        Some(TableSource::Managed(_) | TableSource::External(_)) | None => None,
    });
    let definitions = maybe(definitions);
    let columns = vec![
        text(names.iter().map(|_| CATALOG_NAME)),
        text(names.iter().map(|name| &name.database)),
        text(names.iter().map(|name| &name.table)),
        Arc::clone(&definitions),
        definitions,
        text(names.iter().map(|_| "NONE")),
        text(names.iter().map(|_| "NO")),
    ];
    batch(schema, columns, names.len())
}

/// A table, the ordinal of one of its columns from 1, and the column.
type OrdinalColumn<'a> = (&'a TableName, u64, &'a ColumnInfo);

fn ordinal_columns(tables: &[TableInfo]) -> Vec<OrdinalColumn<'_>> {
    tables
        .iter()
        .flat_map(|table| (1..).zip(&table.columns).map(|(ordinal, column)| (&table.name, ordinal, column)))
        .collect()
}

pub(super) fn columns(schema: &SchemaRef, tables: &[TableInfo]) -> Result<RecordBatch> {
    let all = ordinal_columns(tables);
    let columns = vec![
        text(all.iter().map(|(table, ..)| &table.database)),
        text(all.iter().map(|(table, ..)| &table.table)),
        text(all.iter().map(|(_, _, column)| &column.name)),
        Arc::new(all.iter().map(|(_, ordinal, _)| Some(*ordinal)).collect::<UInt64Array>()),
        text(all.iter().map(|(_, _, column)| column.data_type.to_string())),
        Arc::new(all.iter().map(|(_, _, column)| Some(column.nullable)).collect::<BooleanArray>()),
        maybe(all.iter().map(|(_, _, column)| column.comment.as_deref())),
    ];
    batch(schema, columns, all.len())
}

pub(super) fn standard_columns(schema: &SchemaRef, tables: &[TableInfo]) -> Result<RecordBatch> {
    let all = ordinal_columns(tables);
    let numbers = |of: fn(&DataType) -> Option<u64>| {
        Arc::new(all.iter().map(|(_, _, column)| of(&column.data_type)).collect::<UInt64Array>()) as ArrayRef
    };
    let columns = vec![
        text(all.iter().map(|_| CATALOG_NAME)),
        text(all.iter().map(|(table, ..)| &table.database)),
        text(all.iter().map(|(table, ..)| &table.table)),
        text(all.iter().map(|(_, _, column)| &column.name)),
        Arc::new(all.iter().map(|(_, ordinal, _)| Some(*ordinal)).collect::<UInt64Array>()),
        Arc::new(StringArray::from_iter(
            all.iter().map(|(_, _, column)| column.default.as_ref().map(ColumnDefault::to_sql)),
        )),
        text(all.iter().map(|(_, _, column)| if column.nullable { "YES" } else { "NO" })),
        text(all.iter().map(|(_, _, column)| sql_name(&column.data_type))),
        new_null_array(&DataType::UInt64, all.len()),
        numbers(octet_length),
        numbers(|data_type| numeric(data_type).map(|(precision, ..)| precision)),
        numbers(|data_type| numeric(data_type).map(|(_, radix, _)| radix)),
        numbers(|data_type| numeric(data_type).and_then(|(.., scale)| scale)),
        numbers(datetime_precision),
        new_null_array(&DataType::Utf8, all.len()),
    ];
    batch(schema, columns, all.len())
}

fn octet_length(data_type: &DataType) -> Option<u64> {
    match data_type {
        DataType::Utf8 | DataType::Binary => Some(i32::MAX as u64),
        DataType::LargeUtf8 | DataType::LargeBinary => Some(i64::MAX as u64),
        _ => None,
    }
}

/// Precision, its radix, and the scale of an exact type.
fn numeric(data_type: &DataType) -> Option<(u64, u64, Option<u64>)> {
    Some(match data_type {
        DataType::Int8 | DataType::UInt8 => (8, 2, Some(0)),
        DataType::Int16 | DataType::UInt16 => (16, 2, Some(0)),
        DataType::Int32 | DataType::UInt32 => (32, 2, Some(0)),
        DataType::Int64 | DataType::UInt64 => (64, 2, Some(0)),
        DataType::Float32 => (24, 2, None),
        DataType::Float64 => (53, 2, None),
        DataType::Decimal128(precision, scale) => (u64::from(*precision), 10, u64::try_from(*scale).ok()),
        _ => return None,
    })
}

/// Digits of a second's fraction.
fn datetime_precision(data_type: &DataType) -> Option<u64> {
    match data_type {
        DataType::Date32 => Some(0),
        DataType::Timestamp(unit, _) | DataType::Time32(unit) | DataType::Time64(unit) => {
            Some(fraction_digits(*unit).into())
        }
        _ => None,
    }
}

pub(super) fn text(values: impl Iterator<Item = impl AsRef<str>>) -> ArrayRef {
    Arc::new(values.map(Some).collect::<StringArray>())
}

pub(super) fn maybe<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

pub(super) fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}
