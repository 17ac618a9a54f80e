//! `array_has` of a list that is a constant. DataFusion 54 writes it as `IN (...)`, which is unknown where a null is among the
//! values and false where there are none; a list has a value or has not, and only of a null it is unknown. So a null is left out:
//! no value is equal to it.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{Expr, ScalarUDF};

use super::wrapped_functions::{FunctionOverride, WrappedFunction};

/// Returns the function, which looks into a list with nulls itself where it is that one.
pub(super) fn searched(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    match function.name() {
        "array_has" => WrappedFunction::new_udf(function, SearchedList),
        _ => function,
    }
}

/// As `IN (...)` only where that says the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SearchedList;

impl FunctionOverride for SearchedList {
    fn simplify(&self, inner: &ScalarUDF, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let mut simplified = inner.simplify(args.clone(), info)?;
        if let ExprSimplifyResult::Simplified(Expr::InList(found)) = &mut simplified {
            found.list.retain(|item| !matches!(item, Expr::Literal(value, _) if value.is_null()));
            if found.list.is_empty() || found.list.iter().any(|item| info.nullable(item).unwrap_or(true)) {
                return Ok(ExprSimplifyResult::Original(args));
            }
        }
        Ok(simplified)
    }
}
