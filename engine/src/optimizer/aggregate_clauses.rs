//! Clauses of aggregates that DataFusion 54 does not take as they are. `first` and `last` with FILTER, by groups, take a
//! row whose condition is null for one of which it holds. An ORDER BY that has a key twice ends them with a panic, as it
//! is once in the order and twice among the columns, and so does DISTINCT ON, which becomes such aggregates; DISTINCT ON
//! of a key twice has a group too few. A FILTER of a window that is null and nothing else has no type that its rows are asked for.
//! What an aggregate by groups and a window are of is computed for all rows, also for those that FILTER leaves out: of
//! `sum(1 / x) FILTER (WHERE x <> 0)` it is an error.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{AggregateFunction, Sort as SortExpr};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Case, Distinct, Expr, ExprSchemable, LogicalPlan, Operator, binary_expr, lit};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// Writes such filters as conditions that are never null, computes what may fail where they hold only, and has each key
/// once. It comes before the rules that make aggregates of DISTINCT ON.
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
                    let unsettled =
                        |expr: &Expr| expr.exists(|part| Ok(is_unsettled_window(part, schema))).unwrap_or(true);
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
                let written = expr.transform_up(|part| Ok(settled_window(part, &schema)))?;
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

fn is_unsettled_window(expr: &Expr, schema: &DFSchema) -> bool {
    let Expr::WindowFunction(call) = expr else { return false };
    let Some(filter) = &call.params.filter else { return false };
    is_null(filter, schema) || call.params.args.iter().any(|value| is_exposed(value, filter, schema))
}

fn settled_window(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    if !is_unsettled_window(&expr, schema) {
        return Transformed::no(expr);
    }
    let Expr::WindowFunction(mut call) = expr else { return Transformed::no(expr) };
    if let Some(filter) = &mut call.params.filter {
        if is_null(filter, schema) {
            **filter = lit(false);
        }
        call.params.args.iter_mut().for_each(|value| guard(value, filter, schema));
    }
    Transformed::yes(Expr::WindowFunction(call))
}

/// Whether a condition is null and nothing else.
fn is_null(filter: &Expr, schema: &DFSchema) -> bool {
    filter.get_type(schema).is_ok_and(|found| found.is_null())
}

/// Whether a value of an aggregate may fail in a row that the filter leaves out. A condition that would be another when it
/// is written twice, and one with a subquery, stay alone; what a condition is of is computed with it anyway.
fn is_exposed(value: &Expr, filter: &Expr, schema: &DFSchema) -> bool {
    let is_guarded = match value {
        Expr::Case(case) => case.when_then_expr.first().is_some_and(|(when, _)| when.as_ref() == filter),
        _ => false,
    };
    let stays_alone = || filter.exists(|part| Ok(is_subquery(part) || part == value)).unwrap_or(true);
    !is_guarded
        && value.any_column_refs()
        && !never_fails(value, schema)
        && filter.any_column_refs()
        && !filter.is_volatile()
        && !stays_alone()
}

fn is_subquery(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_))
}

/// Whether an expression is a column, or the wider number that an aggregate makes of one.
fn never_fails(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Column(_) => true,
        Expr::Cast(cast) => {
            let is_wider = |from: DataType| match cast.field.data_type() {
                DataType::Int64 => from.is_integer() && from != DataType::UInt64,
                DataType::Float64 => from.is_numeric(),
                _ => false,
            };
            never_fails(&cast.expr, schema) && cast.expr.get_type(schema).is_ok_and(is_wider)
        }
        _ => false,
    }
}

/// Computes a value where the condition holds only, if it may fail elsewhere.
fn guard(value: &mut Expr, filter: &Expr, schema: &DFSchema) {
    if is_exposed(value, filter, schema) {
        let guarded = vec![(Box::new(filter.clone()), Box::new(std::mem::take(value)))];
        *value = Expr::Case(Case::new(None, guarded, None));
    }
}

fn settled_call(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    if !is_unsettled(&expr, schema) {
        return Transformed::no(expr);
    }
    let Expr::AggregateFunction(AggregateFunction { func, mut params }) = expr else { return Transformed::no(expr) };
    params.filter = params.filter.map(|filter| match may_be_null(&filter, schema) {
        // A null without a type is compared with no boolean.
        true if is_null(&filter, schema) => Box::new(lit(false)),
        true => Box::new(binary_expr(*filter, Operator::IsNotDistinctFrom, lit(true))),
        false => filter,
    });
    params.order_by = with_keys_once(params.order_by);
    if let Some(filter) = &params.filter {
        let keys = params.order_by.iter_mut().map(|key| &mut key.expr);
        params.args.iter_mut().chain(keys).for_each(|value| guard(value, filter, schema));
    }
    Transformed::yes(Expr::AggregateFunction(AggregateFunction { func, params }))
}

fn is_unsettled(expr: &Expr, schema: &DFSchema) -> bool {
    let Expr::AggregateFunction(AggregateFunction { params, .. }) = expr else { return false };
    let has_exposed = |filter: &Expr| {
        let keys = params.order_by.iter().map(|key| &key.expr);
        params.args.iter().chain(keys).any(|value| is_exposed(value, filter, schema))
    };
    let filter = params.filter.as_deref();
    filter.is_some_and(|filter| may_be_null(filter, schema) || has_exposed(filter)) || has_key_twice(&params.order_by)
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
