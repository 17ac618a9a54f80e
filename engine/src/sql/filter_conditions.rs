//! `FILTER (WHERE ...)` of aggregates takes a condition, as a WHERE does. The planner takes any value there, which then fails where
//! the rows are.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, ExprSchemable};

use crate::error::EngineError;
use crate::type_names::sql_name;

/// Returns whether an expression has such a condition.
pub(super) fn may_be_filtered(expr: &Expr) -> bool {
    filter_of(expr).is_some()
}

/// Returns the expression as it is. Errors: `sql_plan_error` of a filter that is no condition.
pub(super) fn with_checked_filter(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match filter_of(&expr).map(|filter| filter.get_type(schema)) {
        Some(Ok(found)) if !matches!(found, DataType::Boolean | DataType::Null) => {
            let message = format!("FILTER (WHERE ...) takes a condition, not {}; compare the value", sql_name(&found));
            Err(EngineError::Plan { message }.into())
        }
        _ => Ok(Transformed::no(expr)),
    }
}

fn filter_of(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::AggregateFunction(call) => call.params.filter.as_deref(),
        Expr::WindowFunction(call) => call.params.filter.as_deref(),
        _ => None,
    }
}
