//! `regexp_count` and `regexp_instr` of a null. DataFusion 54 counts no match in one, takes one for no pattern and for no flags, and
//! says that a place to start from has to be 1 at least; here any null makes a null, as in PostgreSQL.

use std::sync::Arc;

use arrow::array::{Array, BooleanArray};
use arrow::buffer::NullBuffer;
use arrow::compute::nullif;
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
        Ok(match (inner.invoke_with_args(args)?, nulls) {
            (ColumnarValue::Array(found), Some(nulls)) => {
                let is_unknown = BooleanArray::new(!nulls.inner(), None);
                ColumnarValue::Array(nullif(found.as_ref(), &is_unknown)?)
            }
            (found, _) => found,
        })
    }
}
