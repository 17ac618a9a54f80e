//! Columns that a table's alias, or the query below it, names as they are called already: `t AS s(a)` of a table with a column `a`. As
//! an alias they would stand beside the table's own column of that name where DataFusion takes fields of structures nearer to the
//! table, and neither would be found.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, SubqueryAlias};

use super::plan_nodes::any_node;

/// Returns the plan with such columns below aliases of tables as they are.
pub(super) fn with_own_names(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !any_node(&plan, |node| Ok(renamed(node).is_some()))? {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| {
        let Some((alias, projection)) = renamed(&node) else { return Ok(Transformed::no(node)) };
        let exprs = projection.expr.iter().map(|expr| own_column(expr).unwrap_or(expr).clone()).collect();
        let input = LogicalPlan::Projection(Projection::try_new(exprs, Arc::clone(&projection.input))?);
        let named = SubqueryAlias::try_new(Arc::new(input), alias.alias.clone())?;
        Ok(Transformed::yes(LogicalPlan::SubqueryAlias(named)))
    })
    .data()
}

fn renamed(node: &LogicalPlan) -> Option<(&SubqueryAlias, &Projection)> {
    let LogicalPlan::SubqueryAlias(alias) = node else { return None };
    let LogicalPlan::Projection(projection) = alias.input.as_ref() else { return None };
    projection.expr.iter().any(|expr| own_column(expr).is_some()).then_some((alias, projection))
}

/// Returns the column of a table that an alias calls as it is called.
fn own_column(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Alias(alias) if alias.relation.is_none() && alias.metadata.is_none() => match alias.expr.as_ref() {
            column @ Expr::Column(own) if own.name == alias.name && own.relation.is_some() => Some(column),
            _ => None,
        },
        _ => None,
    }
}
