//! `generate_series` and `range` in FROM: DataFusion's only table functions here, with a limit on the rows that they make.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::catalog::TableFunctionArgs;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, TableSource};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use crate::error::EngineError;
use crate::functions::series_rows;

/// The most rows of a series.
const MAX_ROWS: i128 = 1_000_000_000;

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
        .map(|arg| in_nanoseconds(simplifier.simplify(simplifier.coerce(arg, &nothing)?)?))
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
    let Some(implementation) = state.table_functions().get(function) else {
        return Err(EngineError::FunctionNotFound { function: function.to_owned(), hint: String::new() }.into());
    };
    let provider = implementation.create_table_provider_with_args(TableFunctionArgs::new(&args, state))?;
    Ok(provider_as_source(provider))
}

/// Returns a point in time in nanoseconds, the only ones that the functions take. Errors: `unsupported` for one beyond them.
fn in_nanoseconds(arg: Expr) -> Result<Expr> {
    let nanoseconds = |value: &ScalarValue, zone: Option<Arc<str>>| {
        value.cast_to(&DataType::Timestamp(TimeUnit::Nanosecond, zone)).map_err(|_| EngineError::Unsupported {
            what: "a series in FROM of times before 1678 or after 2261".into(),
            hint: "write SELECT unnest(generate_series(start, stop, step))".into(),
        })
    };
    match arg {
        Expr::Literal(value, metadata) => {
            let value = match value.data_type() {
                DataType::Timestamp(_, zone) => nanoseconds(&value, zone)?,
                DataType::Date32 => {
                    nanoseconds(&value, None)?;
                    value
                }
                _ => value,
            };
            Ok(Expr::Literal(value, metadata))
        }
        other => Ok(other),
    }
}
