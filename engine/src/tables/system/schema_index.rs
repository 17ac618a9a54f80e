//! The state of the schema index as rows of `system.index`.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use arrow::datatypes::{DataType, Field, SchemaRef};
use querent_catalog::SchemaIndexStatus;

use super::rows::{batch, maybe, text};
use crate::error::Result;

pub(super) fn fields() -> Vec<Field> {
    vec![
        Field::new("objects", DataType::Utf8, false),
        Field::new("state", DataType::Utf8, false),
        Field::new("model", DataType::Utf8, true),
        Field::new("in_memory", DataType::UInt64, false),
        Field::new("without_vector", DataType::UInt64, false),
        Field::new("missing_meaning", DataType::Utf8, true),
    ]
}

/// `missing` is why searches do not use meaning, where they do not.
pub(super) fn rows(schema: &SchemaRef, parts: &[SchemaIndexStatus], missing: Option<&str>) -> Result<RecordBatch> {
    let counts = |count: fn(&SchemaIndexStatus) -> u64| {
        Arc::new(UInt64Array::from_iter_values(parts.iter().map(count))) as ArrayRef
    };
    let columns = vec![
        text(parts.iter().map(|part| part.objects)),
        text(parts.iter().map(|part| part.state)),
        maybe(parts.iter().map(|part| part.model.as_deref())),
        counts(|part| part.in_memory),
        counts(|part| part.without_vector),
        maybe(parts.iter().map(|_| missing)),
    ];
    batch(schema, columns, parts.len())
}
