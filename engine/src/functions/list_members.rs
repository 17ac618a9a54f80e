//! `array_has` of a list that is written out with a null in it. DataFusion 54 writes it as `IN`, whose answer is unknown where nothing
//! is equal; here it is computed, as for the list of a column: what is not among a list's values is not in the list.

use std::sync::Arc;

use arrow::array::Array;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{Expr, ScalarUDF};

use super::wrapped_functions::{FunctionOverride, WrappedFunction};

/// Returns the function, which looks for members as it does in columns where it is that one.
pub(super) fn with_nulls(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    match function.name() {
        "array_has" => WrappedFunction::new_udf(function, MembersBesideNulls),
        _ => function,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct MembersBesideNulls;

impl FunctionOverride for MembersBesideNulls {
    fn simplify(&self, inner: &ScalarUDF, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        match args.first() {
            Some(Expr::Literal(list, _)) if has_null_item(list) => Ok(ExprSimplifyResult::Original(args)),
            _ => inner.simplify(args, info),
        }
    }
}

fn has_null_item(list: &ScalarValue) -> bool {
    match list {
        ScalarValue::List(list) => list.values().logical_null_count() > 0,
        ScalarValue::LargeList(list) => list.values().logical_null_count() > 0,
        _ => false,
    }
}
