//! `list_reduce(list, (result, element [, index]) -> ... [, initial])`: one value of each list, from the left.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, UInt32Array, new_null_array};
use arrow::compute::kernels::zip::zip;
use arrow::compute::{CastOptions, cast_with_options, take, take_arrays};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, HigherOrderFunctionArgs, HigherOrderReturnFieldArgs, HigherOrderSignature, HigherOrderUDF,
    HigherOrderUDFImpl, LambdaParametersProgress, ValueOrLambda, Volatility,
};

use super::definition::{invalid, unfit};
use super::value_conversions::scale;
use crate::type_names::sql_name;

/// The largest results of one batch: an expression can double them with each element.
const MAX_BYTES: usize = 256 << 20;

const USAGE: &str = "write list_reduce(list, (result, element [, index]) -> expression [, initial value])";

/// Returns the function.
pub(super) fn list_reduce() -> Arc<HigherOrderUDF> {
    let aliases = ["array_reduce", "reduce"].map(str::to_owned).to_vec();
    let signature = HigherOrderSignature::variadic_any(Volatility::Immutable);
    Arc::new(HigherOrderUDF::new_from_impl(ListReduce { signature, aliases }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ListReduce {
    signature: HigherOrderSignature,
    aliases: Vec<String>,
}

fn too_much() -> DataFusionError {
    invalid(format!("list_reduce makes at most {} MiB at a time", MAX_BYTES >> 20))
}

fn element_of(list: &DataType) -> Result<FieldRef> {
    match list {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => Ok(Arc::clone(field)),
        DataType::Null => Ok(Arc::new(Field::new_list_field(DataType::Null, true))),
        other => Err(unfit(format!("list_reduce takes a list, not {}", sql_name(other)))),
    }
}

/// Returns the type of the value that the expression begins with, wide enough for what it adds up: the result goes in again, so
/// its type may not grow with each element.
fn first_type(initial: Option<&DataType>, element: &DataType) -> DataType {
    let Some(initial) = initial else { return widened(element) };
    let (of_initial, of_element) = (widened(initial), widened(element));
    match (scale(&of_initial), scale(&of_element)) {
        _ if !initial.is_numeric() || !element.is_numeric() => of_initial,
        _ if initial.is_floating() || element.is_floating() => DataType::Float64,
        (Some(left), Some(right)) if left < right => of_element,
        (None, Some(_)) => of_element,
        _ => of_initial,
    }
}

/// Returns the widest type of numbers of the same kind.
fn widened(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => {
            DataType::Decimal128(DECIMAL128_MAX_PRECISION, *scale)
        }
        DataType::Decimal256(_, scale) => DataType::Decimal256(DECIMAL256_MAX_PRECISION, *scale),
        DataType::UInt64 => DataType::UInt64,
        other if other.is_integer() => DataType::Int64,
        other if other.is_floating() => DataType::Float64,
        other => other.clone(),
    }
}

/// Returns the type of the result, where the expression that begins with `first` makes values of the type `made`. Numbers of more
/// digits behind the point than it began with would have more after each element: they are doubles.
fn result_type(first: &DataType, made: &DataType) -> DataType {
    if !first.is_numeric() || !made.is_numeric() {
        return made.clone();
    }
    let is_finer = scale(made).unwrap_or(0) > scale(first).unwrap_or(0);
    if first.is_floating() || made.is_floating() || is_finer { DataType::Float64 } else { first.clone() }
}

/// Casts values, and fails where the type does not hold one.
fn exact_cast(values: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(values, data_type, &options).map_err(|error| invalid(error.to_string()))
}

impl HigherOrderUDFImpl for ListReduce {
    fn name(&self) -> &str {
        "list_reduce"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &HigherOrderSignature {
        &self.signature
    }

    fn coerce_value_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let mut types = arg_types.to_vec();
        if let Some(list) = types.first_mut() {
            *list = DataType::List(element_of(list)?);
        }
        Ok(types)
    }

    fn lambda_parameters(
        &self,
        _step: usize,
        fields: &[ValueOrLambda<FieldRef, Option<FieldRef>>],
    ) -> Result<LambdaParametersProgress> {
        let (list, lambda, initial) = match fields {
            [ValueOrLambda::Value(list), ValueOrLambda::Lambda(lambda)] => (list, lambda, None),
            [ValueOrLambda::Value(list), ValueOrLambda::Lambda(lambda), ValueOrLambda::Value(initial)] => {
                (list, lambda, Some(initial))
            }
            _ => return Err(unfit(USAGE.into())),
        };
        let nullable = |data_type: DataType| Arc::new(Field::new("", data_type, true));
        let element = element_of(list.data_type())?.data_type().clone();
        let first = first_type(initial.map(|field| field.data_type()), &element);
        let values = |before: DataType| vec![nullable(before), nullable(element.clone()), nullable(DataType::Int64)];
        match lambda {
            None => Ok(LambdaParametersProgress::Partial(vec![Some(values(first))])),
            Some(result) => {
                Ok(LambdaParametersProgress::Complete(vec![values(result_type(&first, result.data_type()))]))
            }
        }
    }

    fn return_field_from_args(&self, args: HigherOrderReturnFieldArgs) -> Result<FieldRef> {
        let (list, result, initial) = match args.arg_fields {
            [ValueOrLambda::Value(list), ValueOrLambda::Lambda(result)] => (list, result, None),
            [ValueOrLambda::Value(list), ValueOrLambda::Lambda(result), ValueOrLambda::Value(initial)] => {
                (list, result, Some(initial))
            }
            _ => return Err(unfit(USAGE.into())),
        };
        let element = element_of(list.data_type())?;
        let first = first_type(initial.map(|field| field.data_type()), element.data_type());
        Ok(Arc::new(Field::new("", result_type(&first, result.data_type()), true)))
    }

    fn invoke_with_args(&self, args: HigherOrderFunctionArgs) -> Result<ColumnarValue> {
        let result_type = args.return_type().clone();
        let (list, lambda, initial) = match args.args.as_slice() {
            [ValueOrLambda::Value(list), ValueOrLambda::Lambda(lambda)] => (list, lambda, None),
            [ValueOrLambda::Value(list), ValueOrLambda::Lambda(lambda), ValueOrLambda::Value(initial)] => {
                (list, lambda, Some(initial))
            }
            _ => return Err(unfit(USAGE.into())),
        };
        let rows = args.number_rows;
        let list = list.to_array(rows)?;
        let list = list.as_list::<i32>();
        let offset = |row: usize| list.value_offsets().get(row).copied().unwrap_or_default() as usize;
        let length = |row: usize| if list.is_null(row) { 0 } else { list.value_length(row) as usize };
        let longest = (0..rows).map(length).max().unwrap_or(0);

        // The results so far, of all rows; a list of no elements has none.
        let (mut results, first): (ArrayRef, usize) = match initial {
            Some(initial) => (exact_cast(&initial.to_array(rows)?, &result_type)?, 0),
            None => {
                let at = (0..rows).map(|row| (length(row) > 0).then(|| offset(row) as u32));
                let firsts = take(list.values(), &at.collect::<UInt32Array>(), None)?;
                (exact_cast(&firsts, &result_type)?, 1)
            }
        };
        for step in first..longest {
            let taking: UInt32Array = (0..rows as u32).filter(|row| length(*row as usize) > step).collect();
            let elements: UInt32Array =
                taking.values().iter().map(|row| (offset(*row as usize) + step) as u32).collect();
            let before = take(&results, &taking, None)?;
            let elements = take(list.values(), &elements, None)?;
            // The element's place, from 1 on.
            let number = i64::try_from(step + 1).unwrap_or(i64::MAX);
            let index: ArrayRef = Arc::new(Int64Array::from(vec![number; taking.len()]));
            let next = lambda.evaluate(
                &[&|| Ok(Arc::clone(&before)), &|| Ok(Arc::clone(&elements)), &|| Ok(Arc::clone(&index))],
                |captured| Ok(take_arrays(captured, &taking, None)?),
            )?;
            let constant_bytes = match &next {
                ColumnarValue::Scalar(value) => value.size().saturating_mul(taking.len()),
                ColumnarValue::Array(_) => 0,
            };
            if constant_bytes > MAX_BYTES {
                return Err(too_much());
            }
            let next = exact_cast(&next.into_array(taking.len())?, &result_type)?;
            // Spreads what was computed over all rows again.
            let mut places = vec![None; rows];
            for (place, row) in taking.values().iter().enumerate() {
                places[*row as usize] = Some(place as u32);
            }
            let mask: arrow::array::BooleanArray = places.iter().map(|place| Some(place.is_some())).collect();
            let spread = take(&next, &UInt32Array::from(places), None)?;
            results = zip(&mask, &spread, &results)?;
            if results.get_array_memory_size() > MAX_BYTES {
                return Err(too_much());
            }
        }
        if list.null_count() > 0 {
            let nothing = new_null_array(&result_type, rows);
            let mask: arrow::array::BooleanArray = (0..rows).map(|row| Some(list.is_null(row))).collect();
            results = zip(&mask, &nothing, &results)?;
        }
        Ok(ColumnarValue::Array(results))
    }
}
