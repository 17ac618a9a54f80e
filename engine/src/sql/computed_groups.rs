//! Grouping sets of computed values. DataFusion 54 refers to a group of a set by its name, and loses it where a rule writes the
//! expression otherwise, such as one that adds a cast. So the values become columns below, and the sets are of columns.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder};

use super::interval_keys::named;
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
    let (columns, results) = (aggregate.input.schema().columns(), aggregate.schema.columns());
    let names = unused_names(&computed, &columns);
    let kept = columns.into_iter().map(Expr::Column);
    let aliased = computed.iter().zip(&names).map(|(expr, name)| expr.clone().alias(name.clone()));
    let below = LogicalPlanBuilder::from(Arc::clone(&aggregate.input)).project(kept.chain(aliased))?.build()?;
    let as_column = |expr: Expr| {
        let name = computed.iter().zip(&names).find(|(group, _)| **group == expr).map(|(_, name)| name.clone());
        Ok(match name {
            Some(name) => Transformed::yes(Expr::Column(Column::new_unqualified(name))),
            None => Transformed::no(expr),
        })
    };
    let as_columns = |expr: Expr| expr.transform_down(as_column).data();
    let groups = aggregate.group_expr.into_iter().map(as_columns).collect::<Result<_>>()?;
    let aggregates = aggregate.aggr_expr.into_iter().map(as_columns).collect::<Result<_>>()?;
    let plan = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(below), groups, aggregates)?);
    let grouped = plan.schema().columns();
    if grouped == results {
        return Ok(Transformed::yes(plan));
    }
    // What is above finds groups and aggregates by the names that they had; the number of a set is nobody else's.
    let kept = grouped.into_iter().zip(results).filter(|(column, _)| column.name != Aggregate::INTERNAL_GROUPING_ID);
    let renamed = kept.map(|(column, result)| named(Expr::Column(column), result.relation, &result.name));
    Ok(Transformed::yes(LogicalPlanBuilder::from(plan).project(renamed)?.build()?))
}

/// Returns a name for each value: its own, unless that is a column's, as a cast is called what it casts.
fn unused_names(values: &[Expr], columns: &[Column]) -> Vec<String> {
    let mut names: Vec<String> = columns.iter().map(Column::flat_name).collect();
    for value in values {
        let mut name = value.schema_name().to_string();
        while names.contains(&name) {
            name.push('_');
        }
        names.push(name);
    }
    names.split_off(columns.len())
}
