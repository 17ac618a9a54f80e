//! `round` and `trunc` to digits that a number does not have, and `trunc` of decimals. DataFusion 54 multiplies by a power of ten and
//! divides by it again, so that 1e300 to ten digits is infinite, and 1.5 and an infinity to 400 are no numbers; a decimal it cuts as a
//! double.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Decimal128Array, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Float32Type, Float64Type, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Signature, Volatility};

use super::definition::unfit;
use super::wrapped_functions::{FunctionOverride, WrappedFunction};

/// Returns the function, right for all digits where it is one of those.
pub(super) fn of_all_digits(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    let signature = match function.name() {
        "round" => None,
        "trunc" => Some(Signature::user_defined(Volatility::Immutable)),
        _ => return function,
    };
    WrappedFunction::new_udf(function, OfAllDigits { signature })
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct OfAllDigits {
    /// Of `trunc`, which takes decimals here.
    signature: Option<Signature>,
}

impl OfAllDigits {
    fn cuts(&self) -> bool {
        self.signature.is_some()
    }
}

impl FunctionOverride for OfAllDigits {
    fn signature<'a>(&'a self, inner: &'a ScalarUDF) -> &'a Signature {
        self.signature.as_ref().unwrap_or_else(|| inner.signature())
    }

    fn return_type(&self, inner: &ScalarUDF, arg_types: &[DataType]) -> Result<DataType> {
        match arg_types.first() {
            Some(decimal @ DataType::Decimal128(_, _)) if self.cuts() => Ok(decimal.clone()),
            _ => inner.return_type(arg_types),
        }
    }

    fn return_field(&self, inner: &ScalarUDF, args: ReturnFieldArgs) -> Result<FieldRef> {
        match args.arg_fields.first().map(|field| field.data_type()) {
            Some(DataType::Decimal128(precision, scale)) if self.cuts() => {
                let places = match args.arg_fields.len() {
                    1 => Some(0),
                    _ => match args.scalar_arguments.get(1).copied().flatten() {
                        Some(ScalarValue::Int64(places)) => *places,
                        _ => None,
                    },
                };
                let scale = places.map_or(*scale, |places| places.clamp(0, i64::from((*scale).max(0))) as i8);
                Ok(Arc::new(Field::new(inner.name(), DataType::Decimal128(*precision, scale), true)))
            }
            _ => inner.return_field_from_args(args),
        }
    }

    fn invoke(&self, inner: &ScalarUDF, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let values = match args.args.first() {
            Some(value) => value.to_array(rows)?,
            None => return inner.invoke_with_args(args),
        };
        let places = match args.args.get(1) {
            Some(places) => Some(cast(&places.to_array(rows)?, &DataType::Int64)?),
            None => None,
        };
        if self.cuts() && matches!(values.data_type(), DataType::Decimal128(_, _)) {
            return answer(cut_decimals(&values, places.as_ref(), args.return_field.data_type())?, is_scalar);
        }
        let rounded = inner.invoke_with_args(args)?;
        let Some(places) = places else { return Ok(rounded) };
        let rounded_values = rounded.to_array(rows)?;
        match (values.data_type(), rounded_values.data_type()) {
            (DataType::Float64, DataType::Float64) => {
                answer(repaired::<Float64Type>(&values, &places, &rounded_values, f64::is_finite), is_scalar)
            }
            (DataType::Float32, DataType::Float32) => {
                answer(repaired::<Float32Type>(&values, &places, &rounded_values, f32::is_finite), is_scalar)
            }
            _ => Ok(rounded),
        }
    }

    fn coerce_types(&self, inner: &ScalarUDF, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        if !self.cuts() {
            return inner.coerce_types(arg_types);
        }
        let number = match arg_types {
            [decimal @ DataType::Decimal128(_, _)] | [decimal @ DataType::Decimal128(_, _), _] => decimal.clone(),
            [DataType::Float32] | [DataType::Float32, _] => DataType::Float32,
            [_] | [_, _] => DataType::Float64,
            _ => return Err(unfit("trunc takes a number, and how many digits behind its point stay".into())),
        };
        Ok(std::iter::once(number).chain(arg_types.get(1).map(|_| DataType::Int64)).collect())
    }
}

fn answer(array: ArrayRef, is_scalar: bool) -> Result<ColumnarValue> {
    match is_scalar {
        true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)),
        false => Ok(ColumnarValue::Array(array)),
    }
}

/// Returns the rounded numbers, and for those that became infinite or none, what has more digits than a number, and an infinity: itself,
/// or zero.
fn repaired<T: ArrowPrimitiveType>(
    values: &ArrayRef,
    places: &ArrayRef,
    rounded: &ArrayRef,
    is_finite: fn(T::Native) -> bool,
) -> ArrayRef {
    let (values, places, results) =
        (values.as_primitive::<T>(), places.as_primitive::<Int64Type>(), rounded.as_primitive::<T>());
    if results.iter().flatten().all(is_finite) {
        return Arc::clone(rounded);
    }
    let repaired = results.iter().enumerate().map(|(row, result)| {
        result.map(|result| match (is_finite(result), values.value(row)) {
            (true, _) => result,
            (false, value) if is_finite(value) && places.value(row) < 0 => T::Native::default(),
            (false, value) => value,
        })
    });
    Arc::new(repaired.collect::<PrimitiveArray<T>>())
}

/// Returns decimals without the digits behind some place, exactly.
fn cut_decimals(values: &ArrayRef, places: Option<&ArrayRef>, returned: &DataType) -> Result<ArrayRef> {
    let DataType::Decimal128(precision, kept) = *returned else {
        return Err(unfit("trunc of a decimal is a decimal".into()));
    };
    let values = values.as_primitive::<Decimal128Type>();
    let scale = i64::from(values.scale());
    let power = |digits: i64| u32::try_from(digits).ok().and_then(|digits| 10_i128.checked_pow(digits));
    let cut = |row: usize| -> Option<i128> {
        let places = match places {
            Some(places) if places.is_null(row) => return None,
            Some(places) => places.as_primitive::<Int64Type>().value(row),
            None => 0,
        };
        let value = values.is_valid(row).then(|| values.value(row))?;
        let lost = scale.saturating_sub(places).max(0);
        // What is cut beyond 38 digits is all of a number.
        let whole = power(lost).map_or(0, |divisor| value / divisor * divisor);
        Some(power(scale - i64::from(kept)).map_or(whole, |divisor| whole / divisor))
    };
    let cut: Decimal128Array = (0..values.len()).map(cut).collect();
    Ok(Arc::new(cut.with_precision_and_scale(precision, kept)?))
}
