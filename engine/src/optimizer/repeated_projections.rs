//! Projections that stand on projections of the same text. DataFusion takes the upper one for a copy and drops it, which is
//! right for columns and wrong for what computes with them: `x + 1 AS x` of `x + 1 AS x` adds two.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// What the columns between two such projections are called.
const BETWEEN: &str = "__repeated_";

/// Gives the columns between two such projections other names, so that their texts differ. It comes right before the rule
/// that compares them.
#[derive(Debug)]
pub(crate) struct DistinguishProjections;

impl OptimizerRule for DistinguishProjections {
    fn name(&self) -> &str {
        "distinguish_projections"
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        plan.transform_up_with_subqueries(distinguished)
    }
}

fn distinguished(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Projection(upper) = &plan else { return Ok(Transformed::no(plan)) };
    let LogicalPlan::Projection(lower) = upper.input.as_ref() else { return Ok(Transformed::no(plan)) };
    let only_passes = upper.expr.iter().all(|expr| matches!(expr, Expr::Column(_) | Expr::Literal(..)));
    let has_subquery = upper.expr.iter().any(|expr| expr.exists(|part| Ok(is_subquery(part))).unwrap_or(true));
    if only_passes || has_subquery || upper.expr != lower.expr {
        return Ok(Transformed::no(plan));
    }
    let renamed =
        lower.expr.iter().enumerate().map(|(at, expr)| expr.clone().unalias().alias(format!("{BETWEEN}{at}")));
    let lower_columns: Vec<Column> = lower.schema.columns();
    let middle = Projection::try_new(renamed.collect(), Arc::clone(&lower.input))?;
    let mut exprs = Vec::with_capacity(upper.expr.len());
    for (expr, (qualifier, field)) in upper.expr.iter().zip(upper.schema.iter()) {
        let reading = expr.clone().unalias().transform_up(|expr| {
            let found = match &expr {
                Expr::Column(column) => lower_columns.iter().position(|lower| lower == column),
                _ => None,
            };
            Ok(match found {
                Some(at) => Transformed::yes(Expr::Column(Column::from_name(format!("{BETWEEN}{at}")))),
                None => Transformed::no(expr),
            })
        });
        exprs.push(reading.data()?.alias_qualified(qualifier.cloned(), field.name()));
    }
    let projection = Projection::try_new(exprs, Arc::new(LogicalPlan::Projection(middle)))?;
    Ok(Transformed::yes(LogicalPlan::Projection(projection)))
}

/// Whose columns are out of reach here.
fn is_subquery(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_))
}
