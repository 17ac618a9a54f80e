//! Grouping sets of computed values. DataFusion 54 refers to a group of a set by its name, and loses it where a rule writes the
//! expression otherwise, such as one that adds a cast. So the values become columns below, and the sets are of columns.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder};

use super::plan_nodes::any_node;

/// Returns the plan with grouping sets of columns only.
pub(super) fn with_computed_groups_below(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !any_node(&plan, |node| Ok(matches!(node, LogicalPlan::Aggregate(aggregate) if has_sets(aggregate))))? {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Aggregate(aggregate) if has_sets(&aggregate) => with_columns_below(aggregate),
        other => Ok(Transformed::no(other)),
    })
    .data()
}

fn has_sets(aggregate: &Aggregate) -> bool {
    matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)])
}

fn with_columns_below(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let groups = grouping_set_to_exprlist(&aggregate.group_expr)?.into_iter();
    let computed: Vec<Expr> = groups.filter(|group| !matches!(group, Expr::Column(_))).cloned().collect();
    if computed.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    // Under its own name, so that what is above finds it.
    let column = |expr: &Expr| Column::new_unqualified(expr.schema_name().to_string());
    let kept = aggregate.input.schema().columns().into_iter().map(Expr::Column);
    let named = computed.iter().map(|expr| expr.clone().alias(expr.schema_name().to_string()));
    let below = LogicalPlanBuilder::from(Arc::clone(&aggregate.input)).project(kept.chain(named))?.build()?;
    let as_columns = |expr: Expr| {
        let replaced = expr.transform_down(|expr| match computed.contains(&expr) {
            true => Ok(Transformed::yes(Expr::Column(column(&expr)))),
            false => Ok(Transformed::no(expr)),
        });
        replaced.data()
    };
    let groups = aggregate.group_expr.into_iter().map(as_columns).collect::<Result<_>>()?;
    let aggregates = aggregate.aggr_expr.into_iter().map(as_columns).collect::<Result<_>>()?;
    Ok(Transformed::yes(LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(below), groups, aggregates)?)))
}
