//! Values as tables hold them, where a client's library has other types for them: decimals of 128 bits, since a few narrower ones
//! have a sum that wraps around, bytes of any number, UUIDs as text. What is encoded is decoded: a value is one value.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use arrow::error::ArrowError;

use crate::error::Result;
use crate::functions::prepared_for_cast;
use crate::tables::external::{held_type_of, plain_type};

/// Returns the rows in the types in which tables hold values, also within lists, structs and maps.
pub(super) fn with_held_types(rows: RecordBatch) -> Result<RecordBatch> {
    let schema = rows.schema();
    let fields: Vec<FieldRef> = schema.fields().iter().map(held_field).collect();
    if fields.iter().eq(schema.fields().iter()) {
        return Ok(rows);
    }
    let columns = rows.columns().iter().zip(&fields).map(|(column, field)| {
        let held = field.data_type();
        cast(&prepared_for_cast(column, held, false)?, held)
    });
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
    let held = held_type_of(field, &DataType::Null);
    let held = plain_type(&held);
    match *held == *field.data_type() {
        true => Arc::clone(field),
        false => Arc::new(Field::new(field.name(), held.clone(), field.is_nullable())),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        ArrayRef, AsArray, BooleanArray, Decimal32Array, DictionaryArray, FixedSizeBinaryArray, Int8Array, Int64Array,
        ListArray, ListViewArray, StringArray, StructArray, Time32SecondArray, Time64MicrosecondArray,
    };
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::{Decimal128Type, Int8Type};

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

    #[test]
    fn what_clients_have_types_of_their_own_for_is_what_sql_has_also_within_lists() {
        let extension = |name: &str| [("ARROW:extension:name".to_owned(), name.to_owned())].into_iter().collect();
        let ids: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter([[0x11_u8; 16], [0x22; 16]].iter()).unwrap());
        let id = Field::new("item", ids.data_type().clone(), true).with_metadata(extension("arrow.uuid"));
        let flags: ArrayRef = Arc::new(Int8Array::from(vec![7, 0]));
        let flag = Field::new("item", DataType::Int8, true).with_metadata(extension("arrow.bool8"));
        let words = DictionaryArray::<Int8Type>::new(
            Int8Array::from(vec![1, 0]),
            Arc::new(BooleanArray::from(vec![true, false])),
        );
        let columns: Vec<(&str, ArrayRef)> = vec![
            // The second list begins before the first.
            ("ids", Arc::new(ListViewArray::new(Arc::new(id), vec![1, 0].into(), vec![1, 2].into(), ids, None))),
            ("flags", Arc::new(ListArray::new(Arc::new(flag), OffsetBuffer::from_lengths([2, 0]), flags, None))),
            ("words", Arc::new(words)),
            ("time", Arc::new(Time32SecondArray::from(vec![Some(3), None]))),
        ];
        let rows = with_held_types(RecordBatch::try_from_iter(columns).unwrap()).unwrap();
        let [ids, flags, words, time] = rows.columns() else { panic!("four columns") };
        let [ones, twos] = ["11", "22"].map(|digits| {
            let [four, two] = [4, 2].map(|bytes| digits.repeat(bytes));
            format!("{four}-{two}-{two}-{two}-{four}{two}")
        });
        assert_eq!(ids.as_list::<i32>().value(0).as_ref(), &StringArray::from(vec![twos.clone()]));
        assert_eq!(ids.as_list::<i32>().value(1).as_ref(), &StringArray::from(vec![ones, twos]));
        assert_eq!(flags.as_list::<i32>().value(0).as_ref(), &BooleanArray::from(vec![true, false]));
        assert_eq!(words.as_ref(), &BooleanArray::from(vec![false, true]));
        assert_eq!(time.as_ref(), &Time64MicrosecondArray::from(vec![Some(3_000_000), None]));
    }
}
