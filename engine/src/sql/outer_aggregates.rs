//! Aggregates in a subquery over columns of the query around it alone. In SQL they belong to that query:
//! `(SELECT max(t.x) FROM u)` is the greatest `x` of all rows of `t`, which then has one row. DataFusion takes them for
//! aggregates of the subquery.

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::plan_nodes::any_node;
use crate::error::EngineError;

/// Refuses such aggregates. The plan is as the planner made it: later the columns of `LATERAL` are those of a join.
/// Errors: `unsupported`.
pub(super) fn refuse_outer_aggregates(plan: &LogicalPlan) -> Result<()> {
    let is_found = any_node(plan, |node| {
        let LogicalPlan::Aggregate(aggregate) = node else { return Ok(false) };
        aggregate
            .aggr_expr
            .iter()
            .try_fold(false, |is_found, expr| Ok(is_found || expr.exists(|part| Ok(is_of_outer_rows(part)))?))
    })?;
    if !is_found {
        return Ok(());
    }
    Err(EngineError::Unsupported {
        what: "an aggregate in a subquery over columns of the query around it alone".into(),
        hint: "it is one of the rows of that query: write it there, or add a column of the subquery, as in \
               sum(outer.x + 0 * inner.y)"
            .into(),
    }
    .into())
}

fn is_of_outer_rows(expr: &Expr) -> bool {
    matches!(expr, Expr::AggregateFunction(_)) && expr.contains_outer() && !expr.any_column_refs()
}
