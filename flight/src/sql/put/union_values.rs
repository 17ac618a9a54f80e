//! Values of clients without types of their own: each comes as a union of the types that the client knows, of which it
//! uses one (flightsql-dbapi, and with it SQLAlchemy and Superset). What is bound is the value.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array, new_null_array};
use arrow::compute::take;
use arrow_schema::{DataType, Field, Schema};

/// Returns the rows with values in place of unions. The error says which column has values of several types.
pub(super) fn without_unions(rows: RecordBatch) -> Result<RecordBatch, String> {
    let is_union = |column: &ArrayRef| matches!(column.data_type(), DataType::Union(_, _));
    if !rows.columns().iter().any(is_union) {
        return Ok(rows);
    }
    let schema = rows.schema();
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for (field, column) in schema.fields().iter().zip(rows.columns()) {
        if is_union(column) {
            let values = union_values(field, column)?;
            fields.push(Arc::new(Field::new(field.name(), values.data_type().clone(), true)));
            columns.push(values);
        } else {
            fields.push(Arc::clone(field));
            columns.push(ArrayRef::clone(column));
        }
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(|error| error.to_string())
}

fn union_values(field: &Field, column: &ArrayRef) -> Result<ArrayRef, String> {
    let union = column.as_union();
    let Some(first) = union.type_ids().first() else { return Ok(new_null_array(&DataType::Null, 0)) };
    if union.type_ids().iter().any(|id| id != first) {
        let name = field.name();
        return Err(format!("the values of parameter `{name}` have several types; bind rows of one type at a time"));
    }
    let values = union.child(*first);
    match union.offsets() {
        Some(offsets) => {
            // The array's validation has seen that they lie in its values.
            let offsets: Vec<u32> = offsets.iter().map(|offset| u32::try_from(*offset).unwrap_or(0)).collect();
            take(values.as_ref(), &UInt32Array::from(offsets), None).map_err(|error| error.to_string())
        }
        None => Ok(ArrayRef::clone(values)),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, StringArray, UnionArray};
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
    fn a_union_of_one_type_is_its_values() {
        let texts = without_unions(union(vec![5, 5, 5], Some(vec![1, 0, 1]))).unwrap();
        assert_eq!(texts.column(0).as_ref(), &StringArray::from(vec!["y", "x", "y"]));
        let numbers = without_unions(union(vec![3, 3], None)).unwrap();
        assert_eq!(numbers.column(0).as_ref(), &Int64Array::from(vec![Some(7), None]));
        let none = without_unions(union(Vec::new(), Some(Vec::new()))).unwrap();
        assert_eq!((none.num_rows(), none.schema().field(0).data_type()), (0, &DataType::Null));
    }

    #[test]
    fn a_union_of_several_types_is_refused() {
        assert!(without_unions(union(vec![3, 5], Some(vec![0, 0]))).unwrap_err().contains("parameter `a`"));
    }
}
