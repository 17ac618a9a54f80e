//! Conditions that make up values, such as `random() < 0.5`, hold or do not hold for each row that they stand behind. DataFusion 54
//! hands them down below groups, windows and joins, where they would choose among other rows: a condition without columns is
//! about columns of any input. Here each becomes a column, which stays where it is.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};

/// The column of what such a condition says of a row.
const CHOSEN: &str = "__chosen";

/// Returns a filter by such a condition, over anything but a table, as one by a column.
pub(super) fn with_chosen_rows(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Filter(filter) = &node else { return Ok(Transformed::no(node)) };
    let has_columns = !filter.input.schema().fields().is_empty();
    if is_table(&filter.input) || !has_columns || !filter.predicate.is_volatile() {
        return Ok(Transformed::no(node));
    }
    let (volatile, others): (Vec<Expr>, Vec<Expr>) =
        split_conjunction_owned(filter.predicate.clone()).into_iter().partition(Expr::is_volatile);
    let Some(condition) = conjunction(volatile) else { return Ok(Transformed::no(node)) };
    let columns: Vec<Expr> = filter.input.schema().columns().into_iter().map(Expr::Column).collect();
    let mut rows = LogicalPlanBuilder::from(Arc::clone(&filter.input));
    if let Some(others) = conjunction(others) {
        rows = rows.filter(others)?;
    }
    let with_chosen = columns.iter().cloned().chain([condition.alias(CHOSEN)]);
    let chosen = Expr::Column(Column::from_name(CHOSEN));
    let rows = rows.project(with_chosen)?.filter(chosen)?.project(columns)?.build()?;
    Ok(Transformed::yes(rows))
}

fn is_table(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(_) => true,
        LogicalPlan::SubqueryAlias(alias) => is_table(&alias.input),
        _ => false,
    }
}
