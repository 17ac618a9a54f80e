//! `lambda_result(body, parameter, ...)`: the body of a lambda, as it is.
//!
//! DataFusion counts those parameters of a lambda that its body names, and gives it all: a body that passes over one takes another
//! for those behind it, and so do the lambdas in it. A body in a call of this function names all; the optimizer leaves it there.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::definition::unfit;

/// The function that returns its first argument.
pub(crate) const LAMBDA_RESULT: &str = "lambda_result";

/// Returns the function.
pub(super) fn function() -> Arc<ScalarUDF> {
    let signature = Signature::variadic_any(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(LambdaResult { signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct LambdaResult {
    signature: Signature,
}

fn no_body() -> DataFusionError {
    unfit(format!("{LAMBDA_RESULT} takes the body of a lambda, and its parameters"))
}

impl ScalarUDFImpl for LambdaResult {
    fn name(&self) -> &str {
        LAMBDA_RESULT
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        arg_types.first().cloned().ok_or_else(no_body)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        args.arg_fields.first().cloned().ok_or_else(no_body)
    }

    // A constant stays one, and is not repeated for the elements.
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        args.args.into_iter().next().ok_or_else(no_body)
    }
}
