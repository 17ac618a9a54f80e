//! Sums, differences, products and shifts of integers that do not wrap around: a result that its type has no place for is an error,
//! as in PostgreSQL and DuckDB. `sql/integer_overflow.rs` puts them where the types leave room for one. `a xor b` is computed here,
//! too: as an operator DataFusion 54 takes `a xor a` for zero also where `a` is null.
//!
//! A batch is computed whole, as Arrow's wrapping kernels do it, and what would have told of an overflow is gathered on the way:
//! rows are looked at one by one only where there was one, since it may be in a slot that is null.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, UInt64Type};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::definition::{invalid, unfit};
use crate::type_names::sql_name;

/// The functions that compute `a + b`, `a - b`, `a * b`, `a << b`, `a >> b` and `a xor b` within BIGINT or UBIGINT, and of more arguments from
/// the left to the right: `a + b + c`.
pub(crate) const CHECKED_ADD: &str = "checked_add";
pub(crate) const CHECKED_SUBTRACT: &str = "checked_subtract";
pub(crate) const CHECKED_MULTIPLY: &str = "checked_multiply";
pub(crate) const CHECKED_SHIFT_LEFT: &str = "checked_shift_left";
pub(crate) const CHECKED_SHIFT_RIGHT: &str = "checked_shift_right";
pub(crate) const CHECKED_XOR: &str = "checked_xor";

/// Returns the functions of this file.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    [
        Operation::Add,
        Operation::Subtract,
        Operation::Multiply,
        Operation::ShiftLeft,
        Operation::ShiftRight,
        Operation::Xor,
    ]
    .into_iter()
    .map(CheckedOperation::new_udf)
    .collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    ShiftLeft,
    ShiftRight,
    Xor,
}

impl Operation {
    fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
            Self::Xor => "xor",
        }
    }

    /// Returns the result as it wraps around, and a number that is negative where it did.
    #[inline]
    fn of_signed(self, left: i64, right: i64) -> (i64, i64) {
        match self {
            Self::Add => {
                let sum = left.wrapping_add(right);
                (sum, (left ^ sum) & (right ^ sum))
            }
            Self::Subtract => {
                let difference = left.wrapping_sub(right);
                (difference, (left ^ right) & (left ^ difference))
            }
            Self::Multiply => {
                let (product, is_beyond) = left.overflowing_mul(right);
                (product, -i64::from(is_beyond))
            }
            // Zero has no bits that are lost, however far it is shifted.
            Self::ShiftLeft if left == 0 && right >= 0 => (0, 0),
            Self::ShiftLeft => {
                let shifted = u32::try_from(right).ok().and_then(|bits| left.checked_shl(bits));
                let shifted = shifted.filter(|shifted| shifted >> right == left);
                (shifted.unwrap_or_default(), -i64::from(shifted.is_none()))
            }
            // As in DuckDB, what is shifted by more bits than there are is zero.
            Self::ShiftRight => {
                (u32::try_from(right).ok().and_then(|bits| left.checked_shr(bits)).unwrap_or_default(), 0)
            }
            Self::Xor => (left ^ right, 0),
        }
    }

    #[inline]
    fn of_unsigned(self, left: u64, right: u64) -> (u64, i64) {
        let (result, is_beyond) = match self {
            Self::Add => left.overflowing_add(right),
            Self::Subtract => left.overflowing_sub(right),
            Self::Multiply => left.overflowing_mul(right),
            Self::ShiftLeft if left == 0 => (0, false),
            Self::ShiftLeft => {
                let shifted = u32::try_from(right).ok().and_then(|bits| left.checked_shl(bits));
                let shifted = shifted.filter(|shifted| shifted >> right == left);
                (shifted.unwrap_or_default(), shifted.is_none())
            }
            Self::ShiftRight => {
                (u32::try_from(right).ok().and_then(|bits| left.checked_shr(bits)).unwrap_or_default(), false)
            }
            Self::Xor => (left ^ right, false),
        };
        (result, -i64::from(is_beyond))
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedOperation {
    operation: Operation,
    signature: Signature,
}

impl CheckedOperation {
    fn new_udf(operation: Operation) -> Arc<ScalarUDF> {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Self { operation, signature }))
    }

    fn unfit(&self) -> DataFusionError {
        unfit(format!("{} takes two integers, or more", self.name()))
    }

    fn of_two(&self, sides: &[ColumnarValue; 2], result: &DataType) -> Result<ColumnarValue> {
        // The operation is a constant in each loop.
        match (result, self.operation) {
            (DataType::UInt64, operation) => {
                self.computed::<UInt64Type>(sides, |left, right| operation.of_unsigned(left, right))
            }
            (_, Operation::Add) => {
                self.computed::<Int64Type>(sides, |left, right| Operation::Add.of_signed(left, right))
            }
            (_, Operation::Subtract) => {
                self.computed::<Int64Type>(sides, |left, right| Operation::Subtract.of_signed(left, right))
            }
            (_, Operation::Multiply) => {
                self.computed::<Int64Type>(sides, |left, right| Operation::Multiply.of_signed(left, right))
            }
            (_, operation) => self.computed::<Int64Type>(sides, |left, right| operation.of_signed(left, right)),
        }
    }

    fn computed<T: ArrowPrimitiveType>(
        &self,
        args: &[ColumnarValue; 2],
        compute: impl Fn(T::Native, T::Native) -> (T::Native, i64),
    ) -> Result<ColumnarValue> {
        let [left, right] = args;
        let (left, right) = (Operand::<T>::of(left)?, Operand::<T>::of(right)?);
        let mut beyond = 0;
        let values: Vec<T::Native> = {
            let mut one = |left, right| {
                let (value, sign) = compute(left, right);
                beyond |= sign;
                value
            };
            match (&left, &right) {
                (Operand::Rows(left), Operand::Rows(right)) => {
                    left.values().iter().zip(right.values()).map(|(left, right)| one(*left, *right)).collect()
                }
                (Operand::Rows(left), Operand::One(Some(right))) => {
                    left.values().iter().map(|left| one(*left, *right)).collect()
                }
                (Operand::One(Some(left)), Operand::Rows(right)) => {
                    right.values().iter().map(|right| one(*left, *right)).collect()
                }
                (Operand::One(Some(left)), Operand::One(Some(right))) => vec![one(*left, *right)],
                (Operand::One(None), _) | (_, Operand::One(None)) => {
                    return Ok(ColumnarValue::Scalar(ScalarValue::try_new_null(&T::DATA_TYPE)?));
                }
            }
        };
        let nulls = NullBuffer::union(left.nulls(), right.nulls());
        if beyond < 0 {
            let is_known = |row: &usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row));
            for row in (0..values.len()).filter(is_known) {
                let (left, right) = (left.value(row), right.value(row));
                if compute(left, right).1 < 0 {
                    let told = format!("{left:?} {} {right:?}", self.operation.sign());
                    return Err(match self.operation {
                        Operation::ShiftLeft => invalid(format!(
                            "{told} is out of the range of {}; write x * pow(2, n), which is a DOUBLE",
                            sql_name(&T::DATA_TYPE)
                        )),
                        _ => out_of_range(&T::DATA_TYPE, &told),
                    });
                }
            }
        }
        let values: ArrayRef = Arc::new(PrimitiveArray::<T>::new(values.into(), nulls));
        match (&left, &right) {
            (Operand::One(_), Operand::One(_)) => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?)),
            _ => Ok(ColumnarValue::Array(values)),
        }
    }
}

/// Returns the error of a result that its type has no place for.
pub(super) fn out_of_range(data_type: &DataType, computed: &str) -> DataFusionError {
    invalid(format!(
        "{computed} is out of the range of {}; compute it with CAST(... AS DECIMAL(38, 0)) or CAST(... AS DOUBLE)",
        sql_name(data_type)
    ))
}

/// The numbers of one side.
enum Operand<T: ArrowPrimitiveType> {
    Rows(PrimitiveArray<T>),
    One(Option<T::Native>),
}

impl<T: ArrowPrimitiveType> Operand<T> {
    fn of(value: &ColumnarValue) -> Result<Self> {
        let is_one = matches!(value, ColumnarValue::Scalar(_));
        let numbers = value.to_array(1)?;
        let Some(numbers) = numbers.as_primitive_opt::<T>() else {
            return Err(unfit(format!("{} stands beside {}", sql_name(numbers.data_type()), sql_name(&T::DATA_TYPE))));
        };
        Ok(match is_one {
            true => Self::One(numbers.iter().next().flatten()),
            false => Self::Rows(numbers.clone()),
        })
    }

    fn nulls(&self) -> Option<&NullBuffer> {
        match self {
            Self::Rows(numbers) => numbers.nulls(),
            Self::One(_) => None,
        }
    }

    fn value(&self, row: usize) -> T::Native {
        match self {
            Self::Rows(numbers) => numbers.value(row),
            Self::One(number) => number.unwrap_or_default(),
        }
    }
}

impl ScalarUDFImpl for CheckedOperation {
    fn name(&self) -> &str {
        match self.operation {
            Operation::Add => CHECKED_ADD,
            Operation::Subtract => CHECKED_SUBTRACT,
            Operation::Multiply => CHECKED_MULTIPLY,
            Operation::ShiftLeft => CHECKED_SHIFT_LEFT,
            Operation::ShiftRight => CHECKED_SHIFT_RIGHT,
            Operation::Xor => CHECKED_XOR,
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match arg_types {
            [] | [_] => Err(self.unfit()),
            sides if sides.iter().all(DataType::is_unsigned_integer) => Ok(vec![DataType::UInt64; sides.len()]),
            sides if sides.iter().all(|side| side.is_integer() || side.is_null()) => {
                Ok(vec![DataType::Int64; sides.len()])
            }
            _ => Err(self.unfit()),
        }
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        Ok(match arg_types {
            [DataType::UInt64, ..] => DataType::UInt64,
            _ => DataType::Int64,
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, is_nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let ScalarFunctionArgs { args: sides, return_field, .. } = args;
        let mut sides = sides.into_iter();
        let mut result = sides.next().ok_or_else(|| self.unfit())?;
        for side in sides {
            result = self.of_two(&[result, side], return_field.data_type())?;
        }
        Ok(result)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        let [first, others @ ..] = inputs else { return Ok(SortProperties::Unordered) };
        let others = others.iter().map(|input| &input.sort_properties);
        Ok(match self.operation {
            Operation::Add => others.fold(first.sort_properties, |left, right| left.add(right)),
            Operation::Subtract => others.fold(first.sort_properties, |left, right| left.sub(right)),
            Operation::Multiply | Operation::ShiftLeft | Operation::ShiftRight | Operation::Xor => {
                SortProperties::Unordered
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, UInt64Array};
    use datafusion::common::config::ConfigOptions;

    use super::*;

    fn computed(operation: Operation, left: ColumnarValue, right: ColumnarValue) -> Result<ColumnarValue> {
        let signature = Signature::user_defined(Volatility::Immutable);
        let checked = CheckedOperation { operation, signature };
        let sides = [left, right];
        match sides[0].data_type() {
            DataType::UInt64 => checked.computed::<UInt64Type>(&sides, |a, b| operation.of_unsigned(a, b)),
            _ => checked.computed::<Int64Type>(&sides, |a, b| operation.of_signed(a, b)),
        }
    }

    fn signed(values: Vec<Option<i64>>) -> ColumnarValue {
        ColumnarValue::Array(Arc::new(Int64Array::from(values)))
    }

    fn one(value: i64) -> ColumnarValue {
        ColumnarValue::Scalar(ScalarValue::Int64(Some(value)))
    }

    #[test]
    fn results_are_those_of_wider_numbers_or_errors() {
        let numbers = [i64::MIN, i64::MIN + 1, -3_037_000_500, -2, -1, 0, 1, 2, 3_037_000_500, i64::MAX - 1, i64::MAX];
        for (left, right) in numbers.iter().flat_map(|left| numbers.iter().map(move |right| (*left, *right))) {
            let wide = (i128::from(left), i128::from(right));
            for (operation, exact) in [
                (Operation::Add, wide.0 + wide.1),
                (Operation::Subtract, wide.0 - wide.1),
                (Operation::Multiply, wide.0 * wide.1),
            ] {
                let found = computed(operation, signed(vec![None, Some(left)]), signed(vec![Some(right); 2]));
                match i64::try_from(exact) {
                    Ok(exact) => {
                        let ColumnarValue::Array(found) = found.unwrap() else { panic!("an array") };
                        assert_eq!(found.as_primitive::<Int64Type>(), &Int64Array::from(vec![None, Some(exact)]));
                    }
                    Err(_) => assert!(found.is_err(), "{left} {operation:?} {right}"),
                }
            }
        }
    }

    #[test]
    fn no_bits_are_shifted_out_on_the_left() {
        let shifted = |operation, left, right| {
            computed(operation, signed(vec![Some(left)]), one(right)).ok().map(|found| {
                let ColumnarValue::Array(found) = found else { panic!("an array") };
                found.as_primitive::<Int64Type>().value(0)
            })
        };
        for (left, right) in [(1, 62), (-1, 63), (5, 0), (0, 63), (0, 64)] {
            let exact = i64::try_from(i128::from(left) << right).unwrap();
            assert_eq!(shifted(Operation::ShiftLeft, left, right), Some(exact), "{left} << {right}");
        }
        for (left, right) in [(1, 63), (1, 64), (3, 62), (1, -1), (0, -1), (i64::MIN, 1), (-3, 63)] {
            assert_eq!(shifted(Operation::ShiftLeft, left, right), None, "{left} << {right}");
        }
        for (left, right, exact) in [(-8, 1, -4), (-1, 63, -1), (4, 64, 0), (-1, 64, 0), (4, -1, 0)] {
            assert_eq!(shifted(Operation::ShiftRight, left, right), Some(exact), "{left} >> {right}");
        }
    }

    #[test]
    fn more_arguments_are_computed_from_the_left() {
        let of = |operation| CheckedOperation { operation, signature: Signature::user_defined(Volatility::Immutable) };
        let computed_of = |operation, sides: Vec<ColumnarValue>| {
            let field: FieldRef = Arc::new(Field::new("x", DataType::Int64, true));
            of(operation).invoke_with_args(ScalarFunctionArgs {
                arg_fields: vec![Arc::clone(&field); sides.len()],
                args: sides,
                number_rows: 2,
                return_field: field,
                config_options: Arc::new(ConfigOptions::default()),
            })
        };
        let found = computed_of(Operation::Subtract, vec![signed(vec![Some(9), None]), one(2), one(3)]).unwrap();
        let ColumnarValue::Array(found) = found else { panic!("an array") };
        assert_eq!(found.as_primitive::<Int64Type>(), &Int64Array::from(vec![Some(4), None]));
        // As the operators do, also where the whole would be in range.
        assert!(computed_of(Operation::Add, vec![one(i64::MAX), one(1), one(-1)]).is_err());
        assert!(of(Operation::Add).coerce_types(&[DataType::Int64]).is_err());
        let mixed = [DataType::UInt8, DataType::UInt64, DataType::Int8];
        assert_eq!(of(Operation::Add).coerce_types(&mixed).unwrap(), vec![DataType::Int64; 3]);
    }

    #[test]
    fn slots_that_are_null_say_nothing() {
        let nulls = NullBuffer::from(vec![false, true]);
        let left = Int64Array::new(vec![i64::MAX, 1].into(), Some(nulls));
        let found = computed(Operation::Add, ColumnarValue::Array(Arc::new(left)), one(1)).unwrap();
        let ColumnarValue::Array(found) = found else { panic!("an array") };
        assert_eq!(found.as_primitive::<Int64Type>(), &Int64Array::from(vec![None, Some(2)]));
    }

    #[test]
    fn unsigned_numbers_have_no_sign() {
        let left = || ColumnarValue::Array(Arc::new(UInt64Array::from(vec![1, 2])));
        let right = |value| ColumnarValue::Scalar(ScalarValue::UInt64(Some(value)));
        assert!(computed(Operation::Subtract, left(), right(2)).is_err());
        assert!(computed(Operation::Add, left(), right(u64::MAX - 2)).is_ok());
        assert!(computed(Operation::Add, left(), right(u64::MAX - 1)).is_err());
    }
}
