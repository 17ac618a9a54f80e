//! Aggregates of grouping sets that say the same. DataFusion 54 computes such a pair once, and loses the column that tells the
//! sets apart: the statement fails. Here the pair is one before DataFusion looks for it.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Projection};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// Computes aggregates of grouping sets that are equal once. It comes right before the rule that looks for common expressions.
#[derive(Debug)]
pub(crate) struct MergeAggregates;

impl OptimizerRule for MergeAggregates {
    fn name(&self) -> &str {
        "merge_aggregates"
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        plan.transform_up_with_subqueries(merged)
    }
}

fn merged(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Aggregate(aggregate) = &plan else { return Ok(Transformed::no(plan)) };
    if !matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]) {
        return Ok(Transformed::no(plan));
    }
    let mut once: Vec<Expr> = Vec::new();
    let mut places = Vec::with_capacity(aggregate.aggr_expr.len());
    for expr in &aggregate.aggr_expr {
        let same = |known: &Expr| known.clone().unalias() == expr.clone().unalias();
        places.push(once.iter().position(same).unwrap_or_else(|| {
            once.push(expr.clone());
            once.len() - 1
        }));
    }
    if once.len() == places.len() {
        return Ok(Transformed::no(plan));
    }
    let schema = Arc::clone(&aggregate.schema);
    let groups = schema.fields().len() - places.len();
    let aggregate = Aggregate::try_new(Arc::clone(&aggregate.input), aggregate.group_expr.clone(), once)?;
    let columns = aggregate.schema.columns();
    let places = (0..groups).chain(places.into_iter().map(|place| groups + place));
    let named = places.zip(schema.iter()).filter_map(|(place, (relation, field))| {
        let column = Expr::Column(columns.get(place)?.clone());
        Some(column.alias_qualified(relation.cloned(), field.name()))
    });
    let named = named.collect();
    let input = Arc::new(LogicalPlan::Aggregate(aggregate));
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(named, input)?)))
}
