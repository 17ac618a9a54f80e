//! `date_part('year', x) > 1600` of a timestamp of nanoseconds. DataFusion 54 compares `x` with the beginning of the year, which is
//! null where nanoseconds have no place for it, before 1678 and after 2262; here the year is computed then.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, ScalarUDF};

use super::wrapped_functions::{FunctionOverride, WrappedFunction};

/// Returns the function, which is compared as it is where it is `date_part`.
pub(super) fn with_all_years(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    match function.name() {
        "date_part" => WrappedFunction::new_udf(function, AllYears),
        _ => function,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct AllYears;

impl FunctionOverride for AllYears {
    fn preimage(
        &self,
        inner: &ScalarUDF,
        args: &[Expr],
        value: &Expr,
        info: &SimplifyContext,
    ) -> Result<PreimageResult> {
        Ok(match inner.preimage(args, value, info)? {
            PreimageResult::Range { interval, .. } if interval.lower().is_null() || interval.upper().is_null() => {
                PreimageResult::None
            }
            found => found,
        })
    }
}
