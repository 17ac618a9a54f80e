//! `generate_series` and `range` in FROM: DataFusion's only table functions here, with a limit on the rows that they make. Those of
//! times beyond nanoseconds, which DataFusion's do not know, are the functions of that name with their lists taken apart.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::catalog::TableFunctionArgs;
use datafusion::catalog::view::ViewTable;
use datafusion::common::DFSchema;
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
    let rows = literals.collect::<Option<Vec<_>>>().and_then(|values| series_rows(&values));
    if rows.is_some_and(|rows| rows > MAX_ROWS) {
        let message = format!("{function} makes at most {MAX_ROWS} rows; use a larger step or a nearer end");
        return Err(EngineError::Plan { message }.into());
    }
    let Some(in_range) = args.iter().map(in_nanoseconds).collect::<Option<Vec<_>>>() else {
        return series_of_wide_times(state, function, args);
    };
    let Some(implementation) = state.table_functions().get(function) else {
        return Err(EngineError::FunctionNotFound { function: function.to_owned(), hint: String::new() }.into());
    };
    let provider = implementation.create_table_provider_with_args(TableFunctionArgs::new(&in_range, state))?;
    Ok(provider_as_source(provider))
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

fn series_of_wide_times(state: &SessionState, function: &str, args: Vec<Expr>) -> Result<Arc<dyn TableSource>> {
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
