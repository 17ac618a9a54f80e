//! Vector indexes as rows of `system.vector_indexes`.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, TimestampMicrosecondArray, UInt64Array};
use arrow::datatypes::{DataType, Field, SchemaRef, TimeUnit};
use querent_catalog::VectorIndexInfo;

use super::rows::{batch, text};
use crate::error::Result;

pub(super) fn fields() -> Vec<Field> {
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let count = |name: &str| Field::new(name, DataType::UInt64, false);
    vec![
        text("database"),
        text("table"),
        text("name"),
        text("column"),
        text("metric"),
        count("dimension"),
        text("state"),
        Field::new("indexed_rows", DataType::UInt64, true),
        Field::new("indexed_files", DataType::UInt64, true),
        Field::new("created_at", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), false),
    ]
}

pub(super) fn rows(schema: &SchemaRef, indexes: &[VectorIndexInfo]) -> Result<RecordBatch> {
    let counts = |count: fn(&VectorIndexInfo) -> Option<u64>| {
        Arc::new(indexes.iter().map(count).collect::<UInt64Array>()) as ArrayRef
    };
    let created = indexes.iter().map(|index| index.created_at.timestamp_micros());
    let columns = vec![
        text(indexes.iter().map(|index| &index.table.database)),
        text(indexes.iter().map(|index| &index.table.table)),
        text(indexes.iter().map(|index| &index.name)),
        text(indexes.iter().map(|index| &index.column)),
        text(indexes.iter().map(|index| index.metric.as_str())),
        counts(|index| Some(index.dimension as u64)),
        text(indexes.iter().map(state)),
        counts(|index| (!index.is_of_part).then_some(index.indexed_rows)),
        counts(|index| (!index.is_of_part).then_some(index.indexed_files)),
        Arc::new(TimestampMicrosecondArray::from_iter_values(created).with_timezone("UTC")),
    ];
    batch(schema, columns, indexes.len())
}

/// An index that covers nothing has too few rows, or is yet to be built after a restore. Whether it does says how many rows there
/// are, so whoever sees a part of the table is not told.
fn state(index: &VectorIndexInfo) -> &'static str {
    match (index.is_damaged, index.indexed_files) {
        (true, _) => "damaged",
        (false, 0) if !index.is_of_part => "empty",
        (false, _) => "ready",
    }
}
