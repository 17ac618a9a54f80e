//! Values of parameters in types that SQL has.
//!
//! A client without types of its own sends a union of those that it knows, of which it uses one (flightsql-dbapi, and with
//! it SQLAlchemy and Superset): what is bound is the value. UUIDs and booleans of eight bits are text and booleans, as they
//! are in tables.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StringArray, UInt32Array, new_null_array};
use arrow::compute::take;
use arrow::datatypes::Int8Type;
use arrow_schema::{DataType, Field, Schema};
use uuid::Uuid;

/// The names of the extension types that become others.
const UUID: &str = "arrow.uuid";
const BOOL8: &str = "arrow.bool8";

/// Returns the rows with their values in types that SQL has. The error says which column has values of several types.
pub(super) fn plain_values(rows: RecordBatch) -> Result<RecordBatch, String> {
    let schema = rows.schema();
    let (mut fields, mut columns) = (schema.fields().to_vec(), rows.columns().to_vec());
    let mut is_plain = true;
    for (field, column) in fields.iter_mut().zip(&mut columns) {
        if let Some(values) = plain_column(field, column)? {
            is_plain = false;
            *field = Arc::new(Field::new(field.name(), values.data_type().clone(), true));
            *column = values;
        }
    }
    if is_plain {
        return Ok(rows);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(|error| error.to_string())
}

/// Returns the values of a column in another type; `None` where SQL has its own.
fn plain_column(field: &Field, column: &ArrayRef) -> Result<Option<ArrayRef>, String> {
    match (field.extension_type_name(), column.data_type()) {
        (_, DataType::Union(_, _)) => union_values(field, column).map(Some),
        (Some(UUID), DataType::FixedSizeBinary(16)) => {
            let values = column.as_fixed_size_binary().iter();
            let texts = values.map(|bytes| Some(Uuid::from_slice(bytes?).ok()?.to_string()));
            Ok(Some(Arc::new(texts.collect::<StringArray>())))
        }
        (Some(BOOL8), DataType::Int8) => {
            let values = column.as_primitive::<Int8Type>().iter();
            Ok(Some(Arc::new(values.map(|value| Some(value? != 0)).collect::<BooleanArray>())))
        }
        _ => Ok(None),
    }
}

fn union_values(field: &Field, column: &ArrayRef) -> Result<ArrayRef, String> {
    let union = column.as_union();
    let type_ids = union.type_ids();
    // A null of no type is one of the type of the others.
    let is_typed = |id: &&i8| !union.child(**id).data_type().is_null();
    let Some(chosen) = type_ids.iter().find(is_typed).or(type_ids.first()) else {
        return Ok(new_null_array(&DataType::Null, 0));
    };
    if type_ids.iter().filter(is_typed).any(|id| id != chosen) {
        let name = field.name();
        return Err(format!("the values of parameter `{name}` have several types; bind rows of one type at a time"));
    }
    let values = union.child(*chosen);
    if union.offsets().is_none() && type_ids.iter().all(|id| id == chosen) {
        return Ok(ArrayRef::clone(values));
    }
    let places = type_ids.iter().enumerate().map(|(row, id)| match id == chosen {
        // The array's validation has seen that they lie in its values.
        true => u32::try_from(union.value_offset(row)).ok(),
        false => None,
    });
    take(values.as_ref(), &places.collect::<UInt32Array>(), None).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use arrow::array::{FixedSizeBinaryArray, Int8Array, Int64Array, UnionArray};
    use arrow_schema::UnionFields;

    use super::*;

    fn union(type_ids: Vec<i8>, offsets: Option<Vec<i32>>) -> RecordBatch {
        let fields = [(3, Field::new("i", DataType::Int64, true)), (5, Field::new("s", DataType::Utf8, true))];
        let fields: UnionFields = fields.into_iter().map(|(id, field)| (id, Arc::new(field))).collect();
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), None]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["x", "y"]));
        let offsets = offsets.map(Into::into);
        let union = UnionArray::try_new(fields, type_ids.into(), offsets, vec![numbers, texts]).unwrap();
        RecordBatch::try_from_iter([("a", Arc::new(union) as ArrayRef)]).unwrap()
    }

    #[test]
    fn what_sql_has_no_type_for_is_text_or_a_boolean() {
        let extension = |name: &str| [("ARROW:extension:name".to_owned(), name.to_owned())].into_iter().collect();
        let fields = vec![
            Field::new("0", DataType::FixedSizeBinary(16), true).with_metadata(extension(UUID)),
            Field::new("1", DataType::Int8, true).with_metadata(extension(BOOL8)),
            Field::new("2", DataType::Int8, true),
        ];
        let number = Uuid::from_u128(0x00112233_4455_6677_8899_aabbccddeeff);
        let bytes = [Some(number.as_bytes().as_slice()), None].into_iter();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes, 16).unwrap()),
            Arc::new(Int8Array::from(vec![Some(2), Some(0)])),
            Arc::new(Int8Array::from(vec![Some(2), None])),
        ];
        let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
        let plain = plain_values(rows.clone()).unwrap();
        let texts = StringArray::from(vec![Some("00112233-4455-6677-8899-aabbccddeeff"), None]);
        assert_eq!(plain.column(0).as_ref(), &texts);
        assert_eq!(plain.column(1).as_ref(), &BooleanArray::from(vec![true, false]));
        assert_eq!(plain.column(2), rows.column(2));
    }

    #[test]
    fn a_union_of_one_type_is_its_values() {
        let texts = plain_values(union(vec![5, 5, 5], Some(vec![1, 0, 1]))).unwrap();
        assert_eq!(texts.column(0).as_ref(), &StringArray::from(vec!["y", "x", "y"]));
        let numbers = plain_values(union(vec![3, 3], None)).unwrap();
        assert_eq!(numbers.column(0).as_ref(), &Int64Array::from(vec![Some(7), None]));
        let none = plain_values(union(Vec::new(), Some(Vec::new()))).unwrap();
        assert_eq!((none.num_rows(), none.schema().field(0).data_type()), (0, &DataType::Null));
    }

    #[test]
    fn a_null_of_no_type_is_one_among_the_values_of_a_union() {
        let fields = [(0, Field::new("n", DataType::Null, true)), (1, Field::new("i", DataType::Int64, true))];
        let fields: UnionFields = fields.into_iter().map(|(id, field)| (id, Arc::new(field))).collect();
        let rows = |type_ids: Vec<i8>, offsets: Option<Vec<i32>>| {
            let length = if offsets.is_some() { 2 } else { type_ids.len() };
            let numbers: ArrayRef = Arc::new((7_i64..).take(length).collect::<Int64Array>());
            let children = vec![new_null_array(&DataType::Null, length), numbers];
            let union = UnionArray::try_new(fields.clone(), type_ids.into(), offsets.map(Into::into), children);
            RecordBatch::try_from_iter([("a", Arc::new(union.unwrap()) as ArrayRef)]).unwrap()
        };
        let dense = plain_values(rows(vec![1, 0, 1], Some(vec![1, 0, 0]))).unwrap();
        assert_eq!(dense.column(0).as_ref(), &Int64Array::from(vec![Some(8), None, Some(7)]));
        let sparse = plain_values(rows(vec![0, 1, 0], None)).unwrap();
        assert_eq!(sparse.column(0).as_ref(), &Int64Array::from(vec![None, Some(8), None]));
        let nulls = plain_values(rows(vec![0, 0], None)).unwrap();
        assert_eq!((nulls.num_rows(), nulls.schema().field(0).data_type()), (2, &DataType::Null));
    }

    #[test]
    fn a_union_of_several_types_is_refused() {
        assert!(plain_values(union(vec![3, 5], Some(vec![0, 0]))).unwrap_err().contains("parameter `a`"));
    }
}
