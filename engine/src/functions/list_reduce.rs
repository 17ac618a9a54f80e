//! `list_reduce(list, (result, element) -> ... [, initial])`: one value of each list, from the left.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array, new_null_array};
use arrow::compute::kernels::zip::zip;
use arrow::compute::{cast, take, take_arrays};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, HigherOrderFunctionArgs, HigherOrderReturnFieldArgs, HigherOrderSignature, HigherOrderUDF,
    HigherOrderUDFImpl, LambdaParametersProgress, ValueOrLambda, Volatility,
};

use super::definition::{invalid, unfit};
use crate::type_names::sql_name;

/// The largest results of one batch: an expression can double them with each element.
const MAX_BYTES: usize = 256 << 20;

const USAGE: &str = "write list_reduce(list, (result, element) -> expression [, initial value])";

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
        let nullable = |field: &FieldRef| Arc::new(Field::new("", field.data_type().clone(), true));
        let element = nullable(&element_of(list.data_type())?);
        // What the result is called with is of the type that the expression makes of it.
        let first = nullable(initial.unwrap_or(&element));
        match lambda {
            None => Ok(LambdaParametersProgress::Partial(vec![Some(vec![first, element])])),
            Some(result) => Ok(LambdaParametersProgress::Complete(vec![vec![nullable(result), element]])),
        }
    }

    fn return_field_from_args(&self, args: HigherOrderReturnFieldArgs) -> Result<FieldRef> {
        match args.arg_fields {
            [ValueOrLambda::Value(_), ValueOrLambda::Lambda(result), ..] => {
                Ok(Arc::new(Field::new("", result.data_type().clone(), true)))
            }
            _ => Err(unfit(USAGE.into())),
        }
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
            Some(initial) => (cast(&initial.to_array(rows)?, &result_type)?, 0),
            None => {
                let at = (0..rows).map(|row| (length(row) > 0).then(|| offset(row) as u32));
                let firsts = take(list.values(), &at.collect::<UInt32Array>(), None)?;
                (cast(&firsts, &result_type)?, 1)
            }
        };
        for step in first..longest {
            let taking: UInt32Array = (0..rows as u32).filter(|row| length(*row as usize) > step).collect();
            let elements: UInt32Array =
                taking.values().iter().map(|row| (offset(*row as usize) + step) as u32).collect();
            let before = take(&results, &taking, None)?;
            let elements = take(list.values(), &elements, None)?;
            let next = lambda.evaluate(&[&|| Ok(Arc::clone(&before)), &|| Ok(Arc::clone(&elements))], |captured| {
                Ok(take_arrays(captured, &taking, None)?)
            })?;
            let constant_bytes = match &next {
                ColumnarValue::Scalar(value) => value.size().saturating_mul(taking.len()),
                ColumnarValue::Array(_) => 0,
            };
            if constant_bytes > MAX_BYTES {
                return Err(too_much());
            }
            let next = cast(&next.into_array(taking.len())?, &result_type)?;
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
