//! Whole numbers beside dates. DataFusion takes such a number for one of days since 1970, so that `d > 20240101` holds of no day;
//! in SQL the two do not meet, as a number is not cast to a date ([`super::value_casts`]).
//!
//! The plan is analysed: what DataFusion made of the number is a cast.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

use crate::error::EngineError;
use crate::type_names::sql_name;

/// Returns a plan with its types coerced. Errors: `sql_plan_error` where a whole number would be taken for a date.
pub(crate) fn with_coerced_types(state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {})?;
    check_date_coercions(&plan)?;
    Ok(plan)
}

fn check_date_coercions(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        let mut schema = None;
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                let Expr::Cast(cast) = part else { return Ok(TreeNodeRecursion::Continue) };
                if !matches!(cast.field.data_type(), DataType::Date32 | DataType::Date64) {
                    return Ok(TreeNodeRecursion::Continue);
                }
                let schema = schema.get_or_insert_with(|| merge_schema(&node.inputs()));
                match cast.expr.get_type(schema) {
                    Ok(number) if number.is_integer() => Err(refused(&number).into()),
                    _ => Ok(TreeNodeRecursion::Continue),
                }
            })
        })
    })?;
    Ok(())
}

fn refused(number: &DataType) -> EngineError {
    let number = sql_name(number);
    EngineError::Plan {
        message: format!(
            "{number} does not stand beside DATE; write year(date) for a year, DATE '2024-01-31' or \
             make_date(year, month, day) for a day, or date_from_days(days since 1970)"
        ),
    }
}
