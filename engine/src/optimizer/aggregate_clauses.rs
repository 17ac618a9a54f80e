//! Clauses of aggregates that DataFusion 54 does not take as they are. `first` and `last` with FILTER, by groups, take a
//! row whose condition is null for one of which it holds. An ORDER BY that has a key twice ends them with a panic, as it
//! is once in the order and twice among the columns, and so does DISTINCT ON, which becomes such aggregates; DISTINCT ON
//! of a key twice has a group too few. A FILTER of a window that is null and nothing else has no type that its rows are asked for.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{AggregateFunction, Sort as SortExpr};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Distinct, Expr, ExprSchemable, LogicalPlan, Operator, binary_expr, lit};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// Writes such filters as conditions that are never null, and has each key once. It comes before the rules that make
/// aggregates of DISTINCT ON.
#[derive(Debug)]
pub(crate) struct SettleAggregates;

impl OptimizerRule for SettleAggregates {
    fn name(&self) -> &str {
        "settle_aggregates"
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        // Most plans have none, and are looked at only: a rewrite takes the whole tree apart.
        let mut is_found = false;
        plan.apply_with_subqueries(|node| {
            is_found = match node {
                LogicalPlan::Aggregate(aggregate) => {
                    let schema = aggregate.input.schema();
                    let unsettled = |expr: &Expr| expr.exists(|part| Ok(is_unsettled(part, schema))).unwrap_or(true);
                    aggregate.aggr_expr.iter().any(unsettled)
                }
                LogicalPlan::Window(window) => {
                    let schema = window.input.schema();
                    let unsettled = |expr: &Expr| expr.exists(|part| Ok(is_never(part, schema))).unwrap_or(true);
                    window.window_expr.iter().any(unsettled)
                }
                LogicalPlan::Distinct(Distinct::On(on)) => {
                    repeats(on.on_expr.iter()) || on.sort_expr.as_deref().is_some_and(has_key_twice)
                }
                _ => false,
            };
            Ok(if is_found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !is_found {
            return Ok(Transformed::no(plan));
        }
        plan.transform_up_with_subqueries(settled)
    }
}

fn settled(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Aggregate(aggregate) => {
            let schema = Arc::clone(aggregate.input.schema());
            let node = LogicalPlan::Aggregate(aggregate);
            let names = NamePreserver::new(&node);
            node.map_expressions(|expr| {
                let name = names.save(&expr);
                let written = expr.transform_up(|part| Ok(settled_call(part, &schema)))?;
                Ok(written.update_data(|expr| name.restore(expr)))
            })
        }
        LogicalPlan::Window(window) => {
            let schema = Arc::clone(window.input.schema());
            let node = LogicalPlan::Window(window);
            let names = NamePreserver::new(&node);
            node.map_expressions(|expr| {
                let name = names.save(&expr);
                let written = expr.transform_up(|part| Ok(without_null_filter(part, &schema)))?;
                Ok(written.update_data(|expr| name.restore(expr)))
            })
        }
        LogicalPlan::Distinct(Distinct::On(mut on)) => {
            let is_changed = repeats(on.on_expr.iter()) || on.sort_expr.as_deref().is_some_and(has_key_twice);
            let mut seen: Vec<Expr> = Vec::new();
            on.on_expr.retain(|key| is_new(key, &mut seen));
            on.sort_expr = on.sort_expr.map(with_keys_once);
            let node = LogicalPlan::Distinct(Distinct::On(on));
            Ok(if is_changed { Transformed::yes(node) } else { Transformed::no(node) })
        }
        other => Ok(Transformed::no(other)),
    }
}

/// Whether an expression is a window whose FILTER is null and nothing else.
fn is_never(expr: &Expr, schema: &DFSchema) -> bool {
    let Expr::WindowFunction(call) = expr else { return false };
    let filter = call.params.filter.as_ref();
    filter.is_some_and(|filter| filter.get_type(schema).is_ok_and(|found| found.is_null()))
}

fn without_null_filter(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    if !is_never(&expr, schema) {
        return Transformed::no(expr);
    }
    let Expr::WindowFunction(mut call) = expr else { return Transformed::no(expr) };
    call.params.filter = Some(Box::new(lit(false)));
    Transformed::yes(Expr::WindowFunction(call))
}

fn settled_call(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    if !is_unsettled(&expr, schema) {
        return Transformed::no(expr);
    }
    let Expr::AggregateFunction(AggregateFunction { func, mut params }) = expr else { return Transformed::no(expr) };
    params.filter = params.filter.map(|filter| match may_be_null(&filter, schema) {
        // A null without a type is compared with no boolean.
        true if filter.get_type(schema).is_ok_and(|found| found.is_null()) => Box::new(lit(false)),
        true => Box::new(binary_expr(*filter, Operator::IsNotDistinctFrom, lit(true))),
        false => filter,
    });
    params.order_by = with_keys_once(params.order_by);
    Transformed::yes(Expr::AggregateFunction(AggregateFunction { func, params }))
}

fn is_unsettled(expr: &Expr, schema: &DFSchema) -> bool {
    let Expr::AggregateFunction(AggregateFunction { params, .. }) = expr else { return false };
    params.filter.as_ref().is_some_and(|filter| may_be_null(filter, schema)) || has_key_twice(&params.order_by)
}

/// Whether a condition may be null, as far as its text says: what was written as one that never is stays as it is. It is written
/// with an operator, since of `IS TRUE` a plan and its operators do not agree whether it may be null.
fn may_be_null(filter: &Expr, schema: &DFSchema) -> bool {
    let is_settled = matches!(filter, Expr::BinaryExpr(compared) if compared.op == Operator::IsNotDistinctFrom);
    !is_settled && filter.nullable(schema).unwrap_or(true)
}

fn has_key_twice(order: &[SortExpr]) -> bool {
    repeats(order.iter().map(|key| &key.expr))
}

fn with_keys_once(order: Vec<SortExpr>) -> Vec<SortExpr> {
    let mut seen: Vec<Expr> = Vec::new();
    order.into_iter().filter(|key| is_new(&key.expr, &mut seen)).collect()
}

fn repeats<'a>(mut exprs: impl Iterator<Item = &'a Expr>) -> bool {
    let mut seen: Vec<Expr> = Vec::new();
    exprs.any(|expr| !is_new(expr, &mut seen))
}

/// Whether an expression was not seen before; it is from then on.
fn is_new(expr: &Expr, seen: &mut Vec<Expr>) -> bool {
    let is_new = !seen.contains(expr);
    if is_new {
        seen.push(expr.clone());
    }
    is_new
}
