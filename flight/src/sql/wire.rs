//! Converts schemas and batches for the wire. Old clients read plain Arrow types only, so views, dictionaries, run-end
//! encoding and large lists are converted to the types that they stand for, at any depth.
//!
//! Invariant: `FlightInfo.schema` and the stream's schema both come from [`wire_schema`], so they are equal,
//! nullability included. ADBC refuses a stream if they differ.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::compute::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema, SchemaRef};

/// Returns the schema that a client sees.
pub(super) fn wire_schema(schema: &Schema) -> SchemaRef {
    let fields: Fields = schema.fields().iter().map(wire_field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Casts `batch` to the types of `schema`, which [`wire_schema`] made from the batch's own.
pub(super) fn to_wire(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let columns = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(column, field)| match column.data_type() == field.data_type() {
            true => Ok(Arc::clone(column)),
            false => cast_with_options(column, field.data_type(), &options),
        })
        .collect::<Result<Vec<_>, _>>()?;
    let row_count = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &row_count)
}

fn wire_field(field: &FieldRef) -> FieldRef {
    let data_type = wire_type(field.data_type());
    match &data_type == field.data_type() {
        true => Arc::clone(field),
        false => {
            Arc::new(Field::new(field.name(), data_type, field.is_nullable()).with_metadata(field.metadata().clone()))
        }
    }
}

fn wire_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::Dictionary(_, value) => wire_type(value),
        DataType::RunEndEncoded(_, value) => wire_type(value.data_type()),
        // arrow-ipc 58 declares a large list as a list in the schema message (arrow-rs 10298).
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) | DataType::LargeListView(item) => {
            DataType::List(wire_field(item))
        }
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(wire_field(item), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(wire_field).collect()),
        DataType::Map(entries, sorted) => DataType::Map(wire_field(entries), *sorted),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, DictionaryArray, LargeListArray, StringViewArray};
    use arrow::datatypes::{Int8Type, Int32Type};

    use super::*;

    #[test]
    fn what_old_clients_cannot_read_becomes_plain() {
        let view: ArrayRef = Arc::new(StringViewArray::from(vec![Some("a string longer than twelve bytes"), None]));
        let dictionary: ArrayRef = Arc::new(vec!["x", "y"].into_iter().collect::<DictionaryArray<Int8Type>>());
        let large: ArrayRef =
            Arc::new(LargeListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None]));
        let schema = Schema::new(vec![
            Field::new("v", view.data_type().clone(), true),
            Field::new("d", dictionary.data_type().clone(), false),
            Field::new("l", large.data_type().clone(), true),
        ]);
        let batch = RecordBatch::try_new(Arc::new(schema), vec![view, dictionary, large]).unwrap();

        let schema = wire_schema(&batch.schema());
        let sent = to_wire(batch, &schema).unwrap();

        assert_eq!(sent.schema().field(0).data_type(), &DataType::Utf8);
        assert_eq!(sent.schema().field(1), &Field::new("d", DataType::Utf8, false));
        assert!(matches!(sent.schema().field(2).data_type(), DataType::List(_)));
        assert_eq!(sent.num_rows(), 2);
    }
}
