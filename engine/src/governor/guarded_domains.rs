//! Checks of the numbers that a function is defined for (`engine/src/functions/domains.rs`), where DataFusion 54 computes
//! what a condition leaves out: the right side of an AND or OR, and what an aggregate with a FILTER is of, are computed
//! for all rows of a batch. `WHERE x > 0 AND ln(x) > 1` must be no error, so such checks are taken away: the function
//! gives NaN or an infinity in rows that nobody sees. As conditions are moved and joined, those of filters, joins and
//! scans have no checks at all.
//!
//! Invariant: nothing but the seven checks is taken away, and no expression gets another name or type.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::functions::DOMAINS;

/// Takes such checks away. It comes once conditions are moved below projections and a CASE of booleans is an AND or OR,
/// and before expressions are shared, which would compute a check of a filter below it.
#[derive(Debug)]
pub(super) struct DropGuardedChecks;

impl OptimizerRule for DropGuardedChecks {
    fn name(&self) -> &str {
        "drop_guarded_checks"
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match has_checks(&plan)? {
            true => plan.transform_up_with_subqueries(without_guarded_checks),
            false => Ok(Transformed::no(plan)),
        }
    }
}

fn has_checks(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            found |= expr.exists(|part| Ok(is_check(part)))?;
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    Ok(found)
}

fn is_check(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(call) => DOMAINS.contains(&call.name()) && call.args.len() == 1,
        _ => false,
    }
}

fn without_guarded_checks(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let is_condition = matches!(node, LogicalPlan::Filter(_) | LogicalPlan::Join(_) | LogicalPlan::TableScan(_));
    let names = NamePreserver::new(&node);
    node.map_expressions(|expr| {
        if !expr.exists(|part| Ok(is_check(part)))? {
            return Ok(Transformed::no(expr));
        }
        let name = names.save(&expr);
        let written = match is_condition {
            true => without_checks(expr)?,
            false => expr.transform_down(|part| match is_guard(&part) {
                true => without_checks(part),
                false => Ok(Transformed::no(part)),
            })?,
        };
        Ok(written.update_data(|expr| name.restore(expr)))
    })
}

/// Whether an expression leaves out rows of which DataFusion computes its parts all the same.
fn is_guard(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => matches!(op, Operator::And | Operator::Or),
        Expr::AggregateFunction(call) => call.params.filter.is_some(),
        Expr::WindowFunction(call) => call.params.filter.is_some(),
        _ => false,
    }
}

fn without_checks(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_up(|part| {
        Ok(match part {
            Expr::ScalarFunction(mut call) if DOMAINS.contains(&call.name()) && call.args.len() == 1 => {
                Transformed::yes(call.args.swap_remove(0))
            }
            other => Transformed::no(other),
        })
    })
}
