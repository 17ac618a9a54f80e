//! `power` and `log` of a null. DataFusion 54 writes `power(x, 0)` as 1 and `log(x, 1)` as 0 before it looks at `x`; here they are
//! computed, so that a null has a null.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

/// Returns the function, which is computed where it is one of those.
pub(super) fn computed(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    match function.name() {
        "power" | "log" => Arc::new(ScalarUDF::new_from_impl(ComputedPower { inner: function })),
        _ => function,
    }
}

/// A function without the rules by which a call of it is something simpler.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ComputedPower {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for ComputedPower {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arg_types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(args)
    }

    /// What has no type is a null, of which the function itself makes one.
    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let has_untyped = args.iter().any(|arg| info.get_data_type(arg).is_ok_and(|found| found.is_null()));
        if has_untyped { self.inner.simplify(args, info) } else { Ok(ExprSimplifyResult::Original(args)) }
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.output_ordering(inputs)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}
