//! Keys of sorting that are computed with, as columns below. DataFusion 54 asks an expression for the range of its values while it
//! looks whether rows have the order that an operator asks for; it has none for functions, CASE and subqueries, and a comparison or
//! sum of them has an error in its place. Rows that were just sorted by such a key then count as unsorted, and the statement fails.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::{Alias, Cast, Sort as SortExpr};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, LogicalPlanBuilder, Operator};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// What the columns that hold keys are called.
const KEY: &str = "__sort_key";

/// Computes such keys below sorts, windows and ordered aggregates. It comes once types are coerced.
#[derive(Debug)]
pub(crate) struct ComputeSortKeys;

impl OptimizerRule for ComputeSortKeys {
    fn name(&self) -> &str {
        "compute_sort_keys"
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        plan.transform_up_with_subqueries(with_computed_keys)
    }
}

fn with_computed_keys(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let input = match &node {
        LogicalPlan::Sort(sort) => Arc::clone(&sort.input),
        LogicalPlan::Window(window) => Arc::clone(&window.input),
        LogicalPlan::Aggregate(aggregate) => Arc::clone(&aggregate.input),
        _ => return Ok(Transformed::no(node)),
    };
    let (is_sort, is_aggregate) = (matches!(node, LogicalPlan::Sort(_)), matches!(node, LogicalPlan::Aggregate(_)));
    let original = Arc::clone(node.schema());
    let names = NamePreserver::new(&node);
    let mut keys = Vec::new();
    let node = node.map_expressions(|expr| {
        if is_sort {
            return Ok(computed(expr, &mut keys));
        }
        let name = names.save(&expr);
        let written = expr.transform_up(|expr| Ok(with_keys(expr, &mut keys)))?;
        Ok(written.update_data(|expr| name.restore(expr)))
    })?;
    if keys.is_empty() {
        return Ok(node);
    }
    let own = input.schema().columns().into_iter().map(Expr::Column);
    let keys = keys.into_iter().enumerate().map(|(at, key)| key.alias(format!("{KEY}{at}")));
    let below = LogicalPlanBuilder::from(Arc::clone(&input)).project(own.chain(keys).collect::<Vec<_>>())?.build()?;
    let node = node.data.map_children(|_| Ok(Transformed::yes(below.clone())))?.data.recompute_schema()?;
    if is_aggregate {
        return Ok(Transformed::yes(node));
    }
    let columns = original.columns().into_iter().map(Expr::Column).collect::<Vec<_>>();
    Ok(Transformed::yes(LogicalPlanBuilder::from(node).project(columns)?.build()?))
}

/// Returns a function of windows or an aggregate with its keys as columns.
fn with_keys(expr: Expr, keys: &mut Vec<Expr>) -> Transformed<Expr> {
    let before = keys.len();
    let expr = match expr {
        Expr::WindowFunction(mut call) => {
            let groups = std::mem::take(&mut call.params.partition_by).into_iter();
            call.params.partition_by = groups.map(|group| computed(group, keys).data).collect();
            call.params.order_by = with_sort_keys(std::mem::take(&mut call.params.order_by), keys);
            Expr::WindowFunction(call)
        }
        Expr::AggregateFunction(mut call) => {
            call.params.order_by = with_sort_keys(std::mem::take(&mut call.params.order_by), keys);
            Expr::AggregateFunction(call)
        }
        other => other,
    };
    Transformed::new_transformed(expr, keys.len() > before)
}

fn with_sort_keys(order: Vec<SortExpr>, keys: &mut Vec<Expr>) -> Vec<SortExpr> {
    order.into_iter().map(|sort| SortExpr { expr: computed(sort.expr, keys).data, ..sort }).collect()
}

/// Returns the column of a key that has no range, and the key itself where it has one.
fn computed(key: Expr, keys: &mut Vec<Expr>) -> Transformed<Expr> {
    if !lacks_range(&key) {
        return Transformed::no(key);
    }
    let place = keys.iter().position(|known| *known == key).unwrap_or_else(|| {
        keys.push(key);
        keys.len() - 1
    });
    Transformed::yes(Expr::Column(Column::new_unqualified(format!("{KEY}{place}"))))
}

/// Whether some part of a key is computed of what has no range of values.
fn lacks_range(key: &Expr) -> bool {
    let mut lacks = false;
    let visited = key.apply(|part| {
        lacks = match part {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                needs_ranges(*op) && !(has_range(left) && has_range(right))
            }
            Expr::Negative(_) => true,
            _ => false,
        };
        Ok(if lacks { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    visited.is_err() || lacks
}

fn has_range(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) | Expr::Literal(..) => true,
        Expr::Alias(Alias { expr, .. }) | Expr::Cast(Cast { expr, .. }) => has_range(expr),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => needs_ranges(*op) && has_range(left) && has_range(right),
        _ => false,
    }
}

/// Whether an operator computes its range of those of its operands.
fn needs_ranges(op: Operator) -> bool {
    matches!(
        op,
        Operator::Plus
            | Operator::Minus
            | Operator::Gt
            | Operator::GtEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::And
            | Operator::Or
    )
}

#[cfg(test)]
mod tests {
    use datafusion::functions::expr_fn::character_length;
    use datafusion::prelude::{col, lit};

    use super::*;

    #[test]
    fn keys_that_are_computed_of_functions_have_no_range() {
        let length = || character_length(col("b"));
        assert!(!lacks_range(&length()));
        assert!(!lacks_range(&(col("a") + lit(1)).gt(col("c"))));
        assert!(!lacks_range(&length().eq(lit(1))));
        assert!(lacks_range(&length().gt(col("a"))));
        assert!(lacks_range(&(col("a") * col("a")).lt(lit(1))));
        assert!(lacks_range(&Expr::Negative(Box::new(length()))));
        assert!(lacks_range(&length().gt(lit(1)).is_null()));
    }
}
