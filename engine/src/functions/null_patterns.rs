//! `regexp_count` and `regexp_instr` of a null. DataFusion 54 counts no match in one, takes one for no pattern and for no flags, and
//! says that a place to start from has to be 1 at least; here any null makes a null, as in PostgreSQL.

use std::sync::Arc;

use arrow::array::{Array, BooleanArray, Int64Array};
use arrow::buffer::NullBuffer;
use arrow::compute::kernels::zip::zip;
use arrow::compute::{is_not_null, nullif};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF};

use super::wrapped_functions::{FunctionOverride, WrappedFunction};

/// Returns the function, which is null of a null where it is one of those.
pub(super) fn strict(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    match function.name() {
        "regexp_count" | "regexp_instr" => WrappedFunction::new_udf(function, StrictPattern),
        _ => function,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct StrictPattern;

impl FunctionOverride for StrictPattern {
    fn invoke(&self, inner: &ScalarUDF, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_null = |value: &ColumnarValue| matches!(value, ColumnarValue::Scalar(value) if value.is_null());
        if args.args.iter().any(is_null) {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from(args.return_field.data_type())?));
        }
        let nulls = args.args.iter().fold(None, |nulls: Option<NullBuffer>, value| match value {
            ColumnarValue::Array(array) => NullBuffer::union(nulls.as_ref(), array.logical_nulls().as_ref()),
            ColumnarValue::Scalar(_) => nulls,
        });
        let of_values = args.args.into_iter().map(without_null_numbers).collect::<Result<_>>()?;
        Ok(match (inner.invoke_with_args(ScalarFunctionArgs { args: of_values, ..args })?, nulls) {
            (ColumnarValue::Array(found), Some(nulls)) => {
                let is_unknown = BooleanArray::new(!nulls.inner(), None);
                ColumnarValue::Array(nullif(found.as_ref(), &is_unknown)?)
            }
            (found, _) => found,
        })
    }
}

/// Returns an argument with 1 in the place of numbers that are null: their rows are null whatever is found, and 0 is refused.
fn without_null_numbers(value: ColumnarValue) -> Result<ColumnarValue> {
    match value {
        ColumnarValue::Array(array) if array.null_count() > 0 && *array.data_type() == DataType::Int64 => {
            let numbers = zip(&is_not_null(array.as_ref())?, &array.as_ref(), &Int64Array::new_scalar(1))?;
            Ok(ColumnarValue::Array(numbers))
        }
        other => Ok(other),
    }
}
