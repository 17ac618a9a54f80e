//! Which column of a file becomes which column of a table.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, new_null_array};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion::common::ScalarValue;

use super::BatchSender;
use crate::error::{EngineError, Result};
use crate::identifiers::same_name;
use crate::tables::external::Partitioning;

/// How the columns of a file and the values of its partition folders become the columns of a table.
#[derive(Debug, Clone)]
pub(super) struct ColumnMapping {
    /// The table's columns.
    pub table: SchemaRef,
    /// The file's columns, with the types that they are read as.
    pub read: SchemaRef,
    sources: Vec<ColumnSource>,
}

/// Where the values of a table's column come from.
#[derive(Debug, Clone, Copy)]
enum ColumnSource {
    /// The column of the file at this index.
    File(usize),
    /// The partition column at this index.
    Folder(usize),
    /// Nothing: the column is null.
    Null,
}

impl ColumnMapping {
    /// Returns what takes the batches of a file in these folders: each is arranged and sent on.
    pub(super) fn sending<'s>(
        &'s self,
        partition: &'s [ScalarValue],
        output: &'s BatchSender,
    ) -> impl FnMut(RecordBatch) -> Result<bool> + 's {
        move |batch| {
            let folders = repeated(partition, batch.num_rows())?;
            output.send(self.arrange(batch.columns(), batch.num_rows(), &folders)?)?;
            Ok(true)
        }
    }

    /// Maps to a new table: the file's columns, then those of the partition folders.
    pub(super) fn from_file(file: &SchemaRef, partitioning: &Partitioning) -> Self {
        let mut sources = Vec::new();
        let mut fields: Vec<FieldRef> = Vec::new();
        for (index, field) in file.fields().iter().enumerate() {
            if !partitioning.names(field.name()) {
                sources.push(ColumnSource::File(index));
                fields.push(Arc::new(with_types(field)));
            }
        }
        for (index, field) in partitioning.fields.iter().enumerate() {
            sources.push(ColumnSource::Folder(index));
            fields.push(Arc::clone(field));
        }
        let read = file.fields().iter().map(|field| with_types(field)).collect::<Vec<_>>();
        Self { table: Arc::new(Schema::new(fields)), read: Arc::new(Schema::new(read)), sources }
    }

    /// Maps to an existing table by name: columns that the file lacks are null, and columns that the table lacks are an error.
    pub(super) fn into_table(
        file: &SchemaRef,
        partitioning: &Partitioning,
        table: &SchemaRef,
        location: &str,
    ) -> Result<Self> {
        let given = || file.fields().iter().chain(&partitioning.fields);
        if let Some(extra) = given().find(|field| !table.fields().iter().any(|own| same_name(own.name(), field.name())))
        {
            let names: Vec<&str> = table.fields().iter().map(|field| field.name().as_str()).collect();
            let mut places = file.fields().iter().zip(1..);
            let hint = match places.all(|(field, place)| *field.name() == format!("column_{place}")) {
                true => {
                    "; the file has no header: COPY table FROM 'file' takes its columns in the order of the table's, and \
                     the option header says that line 1 is one"
                }
                false => "",
            };
            return Err(EngineError::BadData {
                location: location.to_string(),
                detail: format!(
                    "column `{}` is not in the table, whose columns are {}{hint}",
                    extra.name(),
                    names.join(", ")
                ),
            });
        }
        let mut sources = Vec::new();
        for own in table.fields() {
            let folder = partitioning.fields.iter().position(|field| same_name(field.name(), own.name()));
            let column = file.fields().iter().position(|field| same_name(field.name(), own.name()));
            let source =
                folder.map(ColumnSource::Folder).or(column.map(ColumnSource::File)).unwrap_or(ColumnSource::Null);
            if matches!(source, ColumnSource::Null) && !own.is_nullable() {
                return Err(EngineError::BadData {
                    location: location.to_string(),
                    detail: format!("column `{}` is missing and may not be null", own.name()),
                });
            }
            sources.push(source);
        }
        let read: Vec<Field> = file
            .fields()
            .iter()
            .map(|field| {
                let own = table.fields().iter().find(|own| same_name(own.name(), field.name()));
                Field::new(field.name(), own.unwrap_or(field).data_type().clone(), true)
            })
            .collect();
        Ok(Self { table: Arc::clone(table), read: Arc::new(Schema::new(read)), sources })
    }

    /// Returns a batch of the table's columns from the file's. Types may still differ; the writer casts them.
    pub(super) fn arrange(&self, columns: &[ArrayRef], rows: usize, folders: &[ArrayRef]) -> Result<RecordBatch> {
        let mut fields = Vec::with_capacity(self.sources.len());
        let mut arranged = Vec::with_capacity(self.sources.len());
        for (source, field) in self.sources.iter().zip(self.table.fields()) {
            let missing = || EngineError::Internal(format!("no source for column `{}`", field.name()));
            let array = match source {
                ColumnSource::File(index) => Arc::clone(columns.get(*index).ok_or_else(missing)?),
                ColumnSource::Folder(index) => Arc::clone(folders.get(*index).ok_or_else(missing)?),
                ColumnSource::Null => new_null_array(field.data_type(), rows),
            };
            fields.push(Field::new(field.name(), array.data_type().clone(), true));
            arranged.push(array);
        }
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arranged, &options)?)
    }
}

/// Returns the partition values of a file as columns.
pub(super) fn repeated(folders: &[ScalarValue], rows: usize) -> Result<Vec<ArrayRef>> {
    folders.iter().map(|value| Ok(value.to_array_of_size(rows)?)).collect()
}

/// Returns the field as it is imported: as a string where no value was seen, and always nullable.
fn with_types(field: &Field) -> Field {
    Field::new(field.name(), concrete_type(field.data_type()), true)
}

fn concrete_type(data_type: &DataType) -> DataType {
    let inner = |field: &FieldRef| Arc::new(field.as_ref().clone().with_data_type(concrete_type(field.data_type())));
    match data_type {
        DataType::Null => DataType::Utf8,
        DataType::Dictionary(_, values) => concrete_type(values),
        DataType::List(item) => DataType::List(inner(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect::<Fields>()),
        other => other.clone(),
    }
}
