//! `generate_series` and `range` in FROM: DataFusion's only table functions here, with a limit on the rows that they make. Those of
//! times beyond nanoseconds, which DataFusion's do not know, and of numbers up to the ends of BIGINT, where they would begin again at
//! the other end, are the functions of that name with their lists taken apart.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::catalog::TableFunctionArgs;
use datafusion::catalog::view::ViewTable;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, TableSource};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use crate::error::EngineError;
use crate::functions::series_rows;

/// The most rows of a series.
const MAX_ROWS: i128 = 1_000_000_000;
/// What DataFusion's functions call their column.
const VALUE: &str = "value";

/// Returns the table of a call of `function`. The caller has checked that there is such a function.
pub(super) fn table_function_source(
    state: &SessionState,
    function: &str,
    args: Vec<Expr>,
) -> Result<Arc<dyn TableSource>> {
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
    let literals = args.iter().map(|arg| match arg {
        Expr::Literal(value, _) => Some(value.clone()),
        _ => None,
    });
    let literals: Vec<ScalarValue> = literals.collect::<Option<_>>().unwrap_or_default();
    if series_rows(&literals).is_some_and(|rows| rows > MAX_ROWS) {
        let message = format!("{function} makes at most {MAX_ROWS} rows; use a larger step or a nearer end");
        return Err(EngineError::Plan { message }.into());
    }
    let is_past_bigint =
        value_after_last(&literals, function != "range").is_some_and(|value| i64::try_from(value).is_err());
    let in_range = args.iter().map(in_nanoseconds).collect::<Option<Vec<_>>>();
    let Some(in_range) = in_range.filter(|_| !is_past_bigint) else {
        return series_of_list(state, function, args);
    };
    let Some(implementation) = state.table_functions().get(function) else {
        return Err(EngineError::FunctionNotFound { function: function.to_owned(), hint: String::new() }.into());
    };
    let provider = implementation.create_table_provider_with_args(TableFunctionArgs::new(&in_range, state))?;
    Ok(provider_as_source(provider))
}

/// Returns the value of a series of numbers that is the first one not in it, which DataFusion's table function computes too: where
/// that is no BIGINT it begins again at the other end. `None` for other series and for those without values.
fn value_after_last(args: &[ScalarValue], has_end: bool) -> Option<i128> {
    let number = |value: &ScalarValue| match value {
        ScalarValue::Int64(Some(value)) => Some(i128::from(*value)),
        _ => None,
    };
    let values: Vec<i128> = args.iter().map(number).collect::<Option<_>>()?;
    let (start, end, step) = match values.as_slice() {
        [end] => (0, *end, 1),
        [start, end] => (*start, *end, 1),
        [start, end, step] => (*start, *end, *step),
        _ => return None,
    };
    let steps = (end - start).checked_div(step)?;
    let is_empty = (end - start).signum() * step.signum() < 0 || (end == start && !has_end);
    let ends_between = (end - start) % step != 0;
    let after = start + (if has_end || ends_between { steps + 1 } else { steps }) * step;
    (!is_empty).then_some(after)
}

/// Returns a point in time in nanoseconds, the only ones that the functions take; `None` for one beyond them.
fn in_nanoseconds(arg: &Expr) -> Option<Expr> {
    let Expr::Literal(value, metadata) = arg else { return Some(arg.clone()) };
    let value = match value.data_type() {
        DataType::Timestamp(_, zone) => value.cast_to(&DataType::Timestamp(TimeUnit::Nanosecond, zone)).ok()?,
        DataType::Date32 => {
            value.cast_to(&DataType::Timestamp(TimeUnit::Nanosecond, None)).ok()?;
            value.clone()
        }
        _ => value.clone(),
    };
    Some(Expr::Literal(value, metadata.clone()))
}

fn series_of_list(state: &SessionState, function: &str, args: Vec<Expr>) -> Result<Arc<dyn TableSource>> {
    let Some(list) = state.scalar_functions().get(function) else {
        return Err(EngineError::FunctionNotFound { function: function.to_owned(), hint: String::new() }.into());
    };
    let is_date = |arg: &Expr| matches!(arg, Expr::Literal(value, _) if value.data_type() == DataType::Date32);
    let as_time = |arg: Expr| match is_date(&arg) {
        true => Expr::Cast(Cast::new(Box::new(arg), DataType::Timestamp(TimeUnit::Microsecond, None))),
        false => arg,
    };
    let list = list.call(args.into_iter().map(as_time).collect()).alias(VALUE);
    let plan = LogicalPlanBuilder::empty(true).project(vec![list])?.unnest_column(VALUE)?.build()?;
    Ok(provider_as_source(Arc::new(ViewTable::new(plan, None))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_after_the_last_one_is_told() {
        let after = |args: &[i64], has_end: bool| {
            value_after_last(&args.iter().map(|value| ScalarValue::from(*value)).collect::<Vec<_>>(), has_end)
        };
        let (least, greatest) = (i128::from(i64::MIN), i128::from(i64::MAX));
        for (args, has_end, expected) in [
            (vec![3], true, Some(4)),
            (vec![3], false, Some(3)),
            (vec![1, 10, 4], true, Some(13)),
            (vec![1, 10, 4], false, Some(13)),
            (vec![1, 9, 4], true, Some(13)),
            (vec![1, 9, 4], false, Some(9)),
            (vec![10, 1, -4], true, Some(-2)),
            (vec![10, 2, -4], false, Some(2)),
            (vec![5, 1], true, None),
            (vec![1, 1], false, None),
            (vec![1, 5, 0], true, None),
            (vec![1, i64::MAX], true, Some(greatest + 1)),
            (vec![1, i64::MAX], false, Some(greatest)),
            (vec![0, i64::MIN, -1], true, Some(least - 1)),
            (vec![i64::MIN, i64::MAX, i64::MAX], true, Some(greatest - 1 + greatest)),
        ] {
            assert_eq!(after(&args, has_end), expected, "{args:?} {has_end}");
        }
        assert_eq!(value_after_last(&[ScalarValue::from("a")], true), None);
    }
}
