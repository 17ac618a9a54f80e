//! Values as tables hold them, where a client's library has other types for them: decimals of 128 bits, since a few narrower ones
//! have a sum that wraps around, and bytes of any number.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Schema};
use arrow::error::ArrowError;

use crate::error::Result;
use crate::tables::external::held_type;

/// Returns the rows in the types in which tables hold values, also within lists, structs and maps.
pub(super) fn with_held_types(rows: RecordBatch) -> Result<RecordBatch> {
    let schema = rows.schema();
    let fields: Vec<FieldRef> = schema.fields().iter().map(held_field).collect();
    if fields.iter().eq(schema.fields().iter()) {
        return Ok(rows);
    }
    let columns = rows.columns().iter().zip(&fields).map(|(column, field)| cast(column, field.data_type()));
    let columns = columns.collect::<std::result::Result<Vec<_>, ArrowError>>()?;
    // A dictionary without a null among its keys may have one among its values.
    let fields: Vec<FieldRef> = fields
        .into_iter()
        .zip(&columns)
        .map(|(field, column)| match column.null_count() > 0 && !field.is_nullable() {
            true => Arc::new(field.as_ref().clone().with_nullable(true)),
            false => field,
        })
        .collect();
    let held = Schema::new_with_metadata(fields, schema.metadata().clone());
    Ok(RecordBatch::try_new(Arc::new(held), columns)?)
}

fn held_field(field: &FieldRef) -> FieldRef {
    let held = held_type_of(field.data_type());
    match held == *field.data_type() {
        true => Arc::clone(field),
        false => Arc::new(field.as_ref().clone().with_data_type(held)),
    }
}

fn held_type_of(data_type: &DataType) -> DataType {
    let of_values = |values: &DataType| {
        let held = held_type(values);
        if held == *values { data_type.clone() } else { held }
    };
    match data_type {
        DataType::List(item) => DataType::List(held_field(item)),
        DataType::LargeList(item) => DataType::LargeList(held_field(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(held_field(item), *length),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(held_field).collect()),
        DataType::Map(entries, is_sorted) => DataType::Map(held_field(entries), *is_sorted),
        DataType::Dictionary(_, values) => of_values(values),
        DataType::RunEndEncoded(_, values) => of_values(values.data_type()),
        other => held_type(other),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        ArrayRef, AsArray, Decimal32Array, DictionaryArray, FixedSizeBinaryArray, Int8Array, Int64Array, ListArray,
        StructArray,
    };
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::{Decimal128Type, Field, Int8Type};

    use super::*;

    #[test]
    fn values_have_the_types_of_tables_wherever_they_are() {
        let narrow = Decimal32Array::from(vec![Some(125), None]).with_precision_and_scale(5, 2).unwrap();
        let narrow: ArrayRef = Arc::new(narrow);
        let field = Arc::new(Field::new("d", narrow.data_type().clone(), true));
        let list = ListArray::new(Arc::clone(&field), OffsetBuffer::from_lengths([2, 0]), Arc::clone(&narrow), None);
        let record = StructArray::from(vec![(field, Arc::clone(&narrow))]);
        let keys = Int8Array::from(vec![0, 1]);
        let words = DictionaryArray::<Int8Type>::new(keys, Arc::clone(&narrow));
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("plain", narrow),
            ("list", Arc::new(list)),
            ("record", Arc::new(record)),
            ("words", Arc::new(words)),
            ("number", Arc::new(Int64Array::from(vec![1, 2]))),
            ("bytes", Arc::new(FixedSizeBinaryArray::try_from_iter([b"xy", b"zz"].into_iter()).unwrap())),
        ];
        let rows = with_held_types(RecordBatch::try_from_iter(columns).unwrap()).unwrap();
        let wide = DataType::Decimal128(5, 2);
        let [plain, list, record, words, number, bytes] = rows.columns() else { panic!("six columns") };
        assert_eq!((plain.data_type(), words.data_type()), (&wide, &wide));
        assert_eq!(list.as_list::<i32>().values().data_type(), &wide);
        assert_eq!(record.as_struct().column(0).data_type(), &wide);
        assert_eq!((number.data_type(), bytes.data_type()), (&DataType::Int64, &DataType::Binary));
        assert_eq!(plain.as_primitive::<Decimal128Type>().value(0), 125);
        assert!(plain.is_null(1) && words.is_null(1));
    }
}
