//! One NaN for all. What a processor computes of `0.0 / 0.0` has a sign, as numpy and pandas keep it, and Arrow's order has a NaN
//! with a sign below every number, where PostgreSQL and DuckDB have one that is above all; and NaNs of other bits, such as R's NA,
//! are no equals. Doubles lose such a sign and such bits where they come in: read from files, sent, or bound to parameters. What is
//! computed here is looked after by `sql::float_order`.

use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, AsArray, RecordBatch, make_array};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::error::ArrowError;

/// Returns the rows with one NaN in their columns of doubles.
pub(crate) fn rows_with_one_nan(rows: RecordBatch) -> Result<RecordBatch, ArrowError> {
    let plain: Vec<Option<ArrayRef>> = rows.columns().iter().map(with_one_nan).collect();
    if plain.iter().all(Option::is_none) {
        return Ok(rows);
    }
    let (schema, columns, _) = rows.into_parts();
    let columns = columns.into_iter().zip(plain).map(|(column, plain)| plain.unwrap_or(column));
    RecordBatch::try_new(schema, columns.collect())
}

/// Returns doubles with one NaN; `None` where they have no other, or are no doubles.
pub(crate) fn with_one_nan(values: &ArrayRef) -> Option<ArrayRef> {
    // Each value is looked at without a branch, so that several are compared at once.
    match values.data_type() {
        DataType::Float32 => {
            let numbers = values.as_primitive::<Float32Type>();
            let is_other = |number: &f32| number.is_nan() & (number.to_bits() != f32::NAN.to_bits());
            let has_other = numbers.values().iter().fold(false, |found, number| found | is_other(number));
            let plain = |number: f32| if number.is_nan() { f32::NAN } else { number };
            has_other.then(|| Arc::new(numbers.unary::<_, Float32Type>(plain)) as ArrayRef)
        }
        DataType::Float64 => {
            let numbers = values.as_primitive::<Float64Type>();
            let is_other = |number: &f64| number.is_nan() & (number.to_bits() != f64::NAN.to_bits());
            let has_other = numbers.values().iter().fold(false, |found, number| found | is_other(number));
            has_other.then(|| Arc::new(numbers.unary::<_, Float64Type>(plain_nan)) as ArrayRef)
        }
        _ => None,
    }
}

/// Returns a number; of any NaN the one that there is, without a sign.
pub(super) fn plain_nan(number: f64) -> f64 {
    if number.is_nan() { f64::NAN } else { number }
}

/// Whether values of a type are doubles, or lists, structures or maps with doubles in them.
pub(crate) fn holds_doubles(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float32 | DataType::Float64 => true,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => holds_doubles(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| holds_doubles(field.data_type())),
        _ => false,
    }
}

/// Returns values whose doubles, also those within lists, structures and maps, have one NaN and a zero without a sign.
pub(super) fn with_plain_doubles(values: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    Ok(match values.data_type() {
        DataType::Float32 => {
            let plain = |number: f32| if number.is_nan() { f32::NAN } else { number + 0.0 };
            Arc::new(values.as_primitive::<Float32Type>().unary::<_, Float32Type>(plain))
        }
        DataType::Float64 => {
            let plain = |number: f64| plain_nan(number + 0.0);
            Arc::new(values.as_primitive::<Float64Type>().unary::<_, Float64Type>(plain))
        }
        nested if holds_doubles(nested) => {
            let data = values.to_data();
            let plain = |part: &ArrayData| -> Result<ArrayData, ArrowError> {
                Ok(with_plain_doubles(&make_array(part.clone()))?.to_data())
            };
            let parts = data.child_data().iter().map(plain).collect::<Result<Vec<ArrayData>, ArrowError>>()?;
            make_array(data.into_builder().child_data(parts).build()?)
        }
        _ => Arc::clone(values),
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float32Array, Float64Array, Int64Array, ListArray, StructArray};
    use arrow::datatypes::Field;

    use super::*;

    #[test]
    fn a_nan_has_no_sign_and_a_zero_keeps_its_own() {
        let doubles: ArrayRef = Arc::new(Float64Array::from(vec![Some(-f64::NAN), None, Some(-0.0), Some(1.5)]));
        let floats: ArrayRef = Arc::new(Float32Array::from(vec![-f32::NAN, f32::NAN, f32::NEG_INFINITY, -0.0]));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
        let rows = RecordBatch::try_from_iter([("d", doubles), ("f", floats), ("n", Arc::clone(&numbers))]).unwrap();
        let plain = rows_with_one_nan(rows).unwrap();
        let doubles = plain.column(0).as_primitive::<Float64Type>();
        assert_eq!(doubles.value(0).to_bits(), f64::NAN.to_bits());
        assert!(doubles.is_null(1) && doubles.value(2).is_sign_negative() && doubles.value(3) == 1.5);
        let floats = plain.column(1).as_primitive::<Float32Type>();
        let bits: Vec<u32> = floats.values().iter().map(|number| number.to_bits()).collect();
        assert_eq!(bits, [f32::NAN, f32::NAN, f32::NEG_INFINITY, -0.0].map(f32::to_bits));
        assert_eq!(plain.column(2), &numbers);
    }

    #[test]
    fn a_nan_has_no_bits_of_its_own() {
        let missing: ArrayRef = Arc::new(Float64Array::from(vec![f64::from_bits(0x7ff8_0000_0000_07a2), 1.0]));
        let plain = with_one_nan(&missing).unwrap();
        assert_eq!(plain.as_primitive::<Float64Type>().value(0).to_bits(), f64::NAN.to_bits());
    }

    #[test]
    fn doubles_within_lists_and_structures_have_that_form() {
        let list = |numbers: Vec<Option<f64>>| -> ArrayRef {
            Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>([Some(numbers), None]))
        };
        let found = with_plain_doubles(&list(vec![Some(-0.0), None, Some(-f64::NAN)])).unwrap();
        let numbers = found.as_list::<i32>().value(0);
        let bits: Vec<Option<u64>> =
            numbers.as_primitive::<Float64Type>().iter().map(|n| n.map(f64::to_bits)).collect();
        assert_eq!(bits, [Some(0), None, Some(f64::NAN.to_bits())]);
        assert!(found.is_null(1));
        let field = Arc::new(Field::new("l", found.data_type().clone(), true));
        let rows: ArrayRef = Arc::new(StructArray::from(vec![(field, list(vec![Some(-0.0)]))]));
        // A part of the rows has its own place in those that it is of.
        let plain = with_plain_doubles(&rows.slice(0, 1)).unwrap();
        let number = plain.as_struct().column(0).as_list::<i32>().value(0).as_primitive::<Float64Type>().value(0);
        assert!(plain.len() == 1 && number.is_sign_positive());
    }

    #[test]
    fn columns_without_such_a_nan_are_not_copied() {
        let doubles: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN, f64::NEG_INFINITY, -0.0, f64::MIN]));
        assert!(with_one_nan(&doubles).is_none());
        assert!(with_one_nan(&doubles.slice(0, 0)).is_none());
    }
}
