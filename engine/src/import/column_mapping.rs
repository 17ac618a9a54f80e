//! Which column of a file becomes which column of a table.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, new_null_array};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion::common::ScalarValue;

use crate::tables::external::Partitioning;
use crate::{EngineError, Result};

/// An arrangement of a file's columns and its folders' values as a table's columns.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    /// What comes out.
    pub table: SchemaRef,
    /// The file's columns, with the types to read their text as.
    pub read: SchemaRef,
    places: Vec<Place>,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    File(usize),
    Folder(usize),
    Nowhere,
}

impl Columns {
    /// The file's columns, then the folders'.
    pub(super) fn as_they_are(file: &SchemaRef, partitioning: &Partitioning) -> Self {
        let mut places = Vec::new();
        let mut fields: Vec<FieldRef> = Vec::new();
        for (index, field) in file.fields().iter().enumerate() {
            if !partitioning.names(field.name()) {
                places.push(Place::File(index));
                fields.push(Arc::new(with_types(field)));
            }
        }
        for (index, field) in partitioning.fields.iter().enumerate() {
            places.push(Place::Folder(index));
            fields.push(Arc::clone(field));
        }
        let read = file.fields().iter().map(|field| with_types(field)).collect::<Vec<_>>();
        Self { table: Arc::new(Schema::new(fields)), read: Arc::new(Schema::new(read)), places }
    }

    /// The columns of an existing table by name; those that the file lacks are null, those that the table lacks an error.
    pub(super) fn into_table(
        file: &SchemaRef,
        partitioning: &Partitioning,
        table: &SchemaRef,
        location: &str,
    ) -> Result<Self> {
        let same = |left: &str, right: &str| left.to_lowercase() == right.to_lowercase();
        let given = || file.fields().iter().chain(&partitioning.fields);
        if let Some(extra) = given().find(|field| !table.fields().iter().any(|own| same(own.name(), field.name()))) {
            let names: Vec<&str> = table.fields().iter().map(|field| field.name().as_str()).collect();
            return Err(EngineError::BadData {
                location: location.to_string(),
                detail: format!(
                    "column `{}` is not in the table, whose columns are {}",
                    extra.name(),
                    names.join(", ")
                ),
            });
        }
        let mut places = Vec::new();
        for own in table.fields() {
            let folder = partitioning.fields.iter().position(|field| same(field.name(), own.name()));
            let column = file.fields().iter().position(|field| same(field.name(), own.name()));
            let place = folder.map(Place::Folder).or(column.map(Place::File)).unwrap_or(Place::Nowhere);
            if matches!(place, Place::Nowhere) && !own.is_nullable() {
                return Err(EngineError::BadData {
                    location: location.to_string(),
                    detail: format!("column `{}` is missing and may not be null", own.name()),
                });
            }
            places.push(place);
        }
        let read: Vec<Field> = file
            .fields()
            .iter()
            .map(|field| {
                let own = table.fields().iter().find(|own| same(own.name(), field.name()));
                Field::new(field.name(), own.unwrap_or(field).data_type().clone(), true)
            })
            .collect();
        Ok(Self { table: Arc::clone(table), read: Arc::new(Schema::new(read)), places })
    }

    /// A batch of the file's columns as the table's. Types may still differ; the writer casts.
    pub(super) fn arrange(&self, columns: &[ArrayRef], rows: usize, folders: &[ArrayRef]) -> Result<RecordBatch> {
        let mut fields = Vec::with_capacity(self.places.len());
        let mut arranged = Vec::with_capacity(self.places.len());
        for (place, field) in self.places.iter().zip(self.table.fields()) {
            let missing = || EngineError::Internal(format!("no source for column `{}`", field.name()));
            let array = match place {
                Place::File(index) => Arc::clone(columns.get(*index).ok_or_else(missing)?),
                Place::Folder(index) => Arc::clone(folders.get(*index).ok_or_else(missing)?),
                Place::Nowhere => new_null_array(field.data_type(), rows),
            };
            fields.push(Field::new(field.name(), array.data_type().clone(), true));
            arranged.push(array);
        }
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arranged, &options)?)
    }
}

/// The folders' values of a file as columns.
pub(super) fn repeated(folders: &[ScalarValue], rows: usize) -> Result<Vec<ArrayRef>> {
    folders.iter().map(|value| Ok(value.to_array_of_size(rows)?)).collect()
}

/// Columns in which no value was ever seen are text; every imported column may be null.
fn with_types(field: &Field) -> Field {
    Field::new(field.name(), seen(field.data_type()), true)
}

fn seen(data_type: &DataType) -> DataType {
    let inner = |field: &FieldRef| Arc::new(field.as_ref().clone().with_data_type(seen(field.data_type())));
    match data_type {
        DataType::Null => DataType::Utf8,
        DataType::Dictionary(_, values) => seen(values),
        DataType::List(item) => DataType::List(inner(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect::<Fields>()),
        other => other.clone(),
    }
}
