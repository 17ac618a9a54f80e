//! `generate_series` and `range` in FROM: the only table functions there are, with a bound on the rows they make.

use std::sync::Arc;

use datafusion::arrow::datatypes::IntervalMonthDayNanoType;
use datafusion::catalog::TableFunctionArgs;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, TableSource};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use crate::EngineError;

/// The most rows of a series.
const MAX_ROWS: i128 = 1_000_000_000;

/// The series that calling `function` makes. The caller has checked that there is such a function.
pub(super) fn source(state: &SessionState, function: &str, args: Vec<Expr>) -> Result<Arc<dyn TableSource>> {
    let context = SimplifyContext::builder()
        .with_config_options(Arc::clone(state.config_options()))
        .with_query_execution_start_time(state.execution_props().query_execution_start_time)
        .build();
    let simplifier = ExprSimplifier::new(context);
    let nothing = DFSchema::empty();
    let args = args
        .into_iter()
        .map(|arg| simplifier.simplify(simplifier.coerce(arg, &nothing)?))
        .collect::<Result<Vec<_>>>()?;
    if rows(&args).is_some_and(|rows| rows > MAX_ROWS) {
        let message = format!("{function} makes at most {MAX_ROWS} rows; use a larger step or a nearer end");
        return Err(EngineError::Plan { message }.into());
    }
    let Some(implementation) = state.table_functions().get(function) else {
        return Err(EngineError::FunctionNotFound { function: function.to_owned(), hint: String::new() }.into());
    };
    let provider = implementation.create_table_provider_with_args(TableFunctionArgs::new(&args, state))?;
    Ok(provider_as_source(provider))
}

/// How many rows the arguments ask for; `None` when they are not numbers or points in time, which the function refuses.
fn rows(args: &[Expr]) -> Option<i128> {
    let values: Vec<i128> = args.iter().map(position).collect::<Option<_>>()?;
    let (start, end, step) = match values.as_slice() {
        [end] => (0, *end, 1),
        [start, end] => (*start, *end, 1),
        [start, end, step] => (*start, *end, *step),
        _ => return None,
    };
    Some((end - start).checked_div(step)?.max(0) + 1)
}

/// A number as itself, a time and an interval in nanoseconds.
fn position(arg: &Expr) -> Option<i128> {
    const DAY: i128 = 86_400_000_000_000;
    const SHORTEST_MONTH: i128 = 28 * DAY;
    let Expr::Literal(value, _) = arg else { return None };
    match value {
        ScalarValue::Int64(Some(value)) => Some(i128::from(*value)),
        ScalarValue::Int32(Some(value)) => Some(i128::from(*value)),
        ScalarValue::UInt64(Some(value)) => Some(i128::from(*value)),
        ScalarValue::Date32(Some(days)) => Some(i128::from(*days) * DAY),
        ScalarValue::TimestampSecond(Some(value), _) => Some(i128::from(*value) * 1_000_000_000),
        ScalarValue::TimestampMillisecond(Some(value), _) => Some(i128::from(*value) * 1_000_000),
        ScalarValue::TimestampMicrosecond(Some(value), _) => Some(i128::from(*value) * 1_000),
        ScalarValue::TimestampNanosecond(Some(value), _) => Some(i128::from(*value)),
        ScalarValue::IntervalMonthDayNano(Some(interval)) => {
            let (months, days, nanoseconds) = IntervalMonthDayNanoType::to_parts(*interval);
            Some(i128::from(months) * SHORTEST_MONTH + i128::from(days) * DAY + i128::from(nanoseconds))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::lit;

    use super::*;

    #[test]
    fn rows_are_counted_before_they_are_made() {
        assert_eq!(rows(&[lit(10_i64)]), Some(11));
        assert_eq!(rows(&[lit(0_i64), lit(i64::MAX)]), Some(i128::from(i64::MAX) + 1));
        assert_eq!(rows(&[lit(10_i64), lit(0_i64), lit(-2_i64)]), Some(6));
        assert_eq!(rows(&[lit(1_i64), lit(5_i64), lit(0_i64)]), None);
        assert_eq!(rows(&[lit("a")]), None);
    }
}
