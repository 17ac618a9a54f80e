//! Hive partition columns: `key=value` folders as typed columns.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use chrono::NaiveDate;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::table_schema::TableSchema;

use super::LocatedFile;
use crate::error::{EngineError, Result};

/// The partition columns of a table, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Partitioning {
    /// Name and type.
    pub fields: Vec<FieldRef>,
}

impl Partitioning {
    /// The columns in the files, then those of the folders.
    pub(super) fn table_schema(&self, file_schema: SchemaRef) -> TableSchema {
        TableSchema::new(file_schema, self.fields.clone())
    }

    /// Those that every file's folders name; with `named` exactly those, in that order. Types are declared, or the
    /// narrowest of bigint, date and text; digits that a bigint would lose, as in 00501, are text.
    pub(crate) fn from_files(
        location: &str,
        files: &[LocatedFile],
        named: &[String],
        declared: Option<&Schema>,
    ) -> Result<Self> {
        let found: Vec<String> = match files.first() {
            Some(first) if named.is_empty() => first.partition.iter().map(|(key, _)| key.clone()).collect(),
            _ => named.to_vec(),
        };
        for file in files {
            let missing = found.iter().find(|name| !file.partition.iter().any(|(key, _)| key == *name));
            if let Some(name) = missing {
                return Err(disagreement(location, file, &format!("no folder `{name}=...` on its path")));
            }
            if named.is_empty() && file.partition.len() != found.len() {
                return Err(disagreement(location, file, "partition folders that other files do not have"));
            }
        }
        let fields = found
            .into_iter()
            .map(|name| {
                let declared_type = declared
                    .and_then(|schema| schema.fields().iter().find(|field| field.name().eq_ignore_ascii_case(&name)))
                    .map(|field| field.data_type().clone());
                let data_type = declared_type.unwrap_or_else(|| narrowest(files, &name));
                Arc::new(Field::new(name, data_type, true))
            })
            .collect();
        Ok(Self { fields })
    }

    /// The columns of a table known to have them.
    pub(crate) fn with_fields(fields: Vec<FieldRef>) -> Self {
        Self { fields }
    }

    /// Whether a column comes from folders.
    pub(crate) fn names(&self, column: &str) -> bool {
        self.fields.iter().any(|field| field.name().eq_ignore_ascii_case(column))
    }

    /// The columns of files but for those that have the name of a folder.
    pub(crate) fn without_hidden(&self, file: &Schema) -> Schema {
        let own = file.fields().iter().filter(|field| !self.names(field.name()));
        Schema::new(own.cloned().collect::<Vec<_>>())
    }

    /// A file's values of the columns.
    pub(crate) fn values(&self, file: &LocatedFile) -> Result<Vec<ScalarValue>> {
        self.fields.iter().map(|field| value(file, field)).collect()
    }
}

/// Gives a file with the values of its folders the statistics of its own columns. DataFusion adds those of the folders, of which
/// it takes none for null.
pub(super) fn with_statistics(file: PartitionedFile, own: Arc<Statistics>) -> PartitionedFile {
    let mut file = file.with_statistics(own);
    if !file.partition_values.iter().any(ScalarValue::is_null) {
        return file;
    }
    let Some(all) = file.statistics.take() else { return file };
    let mut all = Arc::unwrap_or_clone(all);
    let rows = all.num_rows;
    let first = all.column_statistics.len().saturating_sub(file.partition_values.len());
    for (value, column) in file.partition_values.iter().zip(all.column_statistics.iter_mut().skip(first)) {
        if value.is_null() {
            *column = ColumnStatistics { null_count: rows, ..ColumnStatistics::new_unknown() };
        }
    }
    file.statistics = Some(Arc::new(all));
    file
}

fn value(file: &LocatedFile, field: &Field) -> Result<ScalarValue> {
    let bad = |detail: String| EngineError::BadData { location: file.path.display().to_string(), detail };
    let Some((_, text)) = file.partition.iter().find(|(key, _)| key.eq_ignore_ascii_case(field.name())) else {
        return Err(bad(format!("no folder `{}=...` on its path", field.name())));
    };
    let parsed = match text {
        Some(text) => ScalarValue::try_from_string(text.clone(), field.data_type()),
        None => ScalarValue::try_from(field.data_type()),
    };
    match parsed {
        Ok(value) if text.is_none() || !value.is_null() => Ok(value),
        _ => Err(bad(format!(
            "folder `{}={}` is not of type {}",
            field.name(),
            text.as_deref().unwrap_or_default(),
            field.data_type()
        ))),
    }
}

fn narrowest(files: &[LocatedFile], name: &str) -> DataType {
    let values = || {
        files.iter().filter_map(|file| {
            let (_, value) = file.partition.iter().find(|(key, _)| key == name)?;
            value.as_deref()
        })
    };
    if values().next().is_none() {
        DataType::Utf8
    } else if values().all(is_number) {
        DataType::Int64
    } else if values().all(|value| NaiveDate::parse_from_str(value, "%Y-%m-%d").is_ok()) {
        DataType::Date32
    } else {
        DataType::Utf8
    }
}

/// Returns whether a folder's value is a number: one that is written otherwise, as the postal code 00501, is none, but for
/// the two digits of months, days and hours.
fn is_number(value: &str) -> bool {
    value.parse::<i64>().is_ok_and(|number| value.len() <= 2 || number.to_string() == value)
}

fn disagreement(location: &str, file: &LocatedFile, detail: &str) -> EngineError {
    EngineError::BadData { location: location.to_string(), detail: format!("{} has {detail}", file.path.display()) }
}
