//! `power` and `log` of a null. DataFusion 54 writes `power(x, 0)` as 1 and `log(x, 1)` as 0 before it looks at `x`; here they are
//! computed, so that a null has a null.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{Expr, ScalarUDF};

use super::wrapped_functions::{FunctionOverride, WrappedFunction};

/// Returns the function, which is computed where it is one of those.
pub(super) fn computed(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    match function.name() {
        "power" | "log" => WrappedFunction::new_udf(function, ComputedPower),
        _ => function,
    }
}

/// Without the rules by which a call is something simpler.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ComputedPower;

impl FunctionOverride for ComputedPower {
    /// What has no type is a null, of which the function itself makes one.
    fn simplify(&self, inner: &ScalarUDF, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let has_untyped = args.iter().any(|arg| info.get_data_type(arg).is_ok_and(|found| found.is_null()));
        if has_untyped { inner.simplify(args, info) } else { Ok(ExprSimplifyResult::Original(args)) }
    }
}
