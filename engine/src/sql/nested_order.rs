//! The order of rows, structures, maps and lists: by their first parts that differ, and a null among them is a value after all
//! others, as in DuckDB and in PostgreSQL's values of composite types, and as ORDER BY has it. Arrow's comparisons take it for the
//! least, and its sorts have it where `NULLS FIRST` and `NULLS LAST` put a null that stands alone.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::Sort as SortExpr;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, Sort, lit};

use super::field_access::own_call;
use super::plan_nodes::any_node;
use crate::functions::NESTED_ORDER;

/// Returns whether an expression may compare such values.
pub(super) fn may_order_nested(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => orders(*op),
        Expr::Between(_) => true,
        _ => false,
    }
}

/// Returns a comparison of such values as one of their order.
pub(super) fn with_nested_order(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let compared = |left: Expr, op: Operator, right: Expr| -> Result<Expr> {
        let order = own_call(NESTED_ORDER, vec![left, right])?;
        Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(order), op, Box::new(lit(0_i64)))))
    };
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if orders(op) && is_nested(&left, schema) && is_nested(&right, schema) =>
        {
            Ok(Transformed::yes(compared(*left, op, *right)?))
        }
        Expr::Between(Between { expr, negated, low, high })
            if is_nested(&expr, schema) && is_nested(&low, schema) && is_nested(&high, schema) =>
        {
            let above = compared((*expr).clone(), Operator::GtEq, *low)?;
            let within = above.and(compared(*expr, Operator::LtEq, *high)?);
            Ok(Transformed::yes(if negated { Expr::Not(Box::new(within)) } else { within }))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn orders(op: Operator) -> bool {
    matches!(op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}

/// Returns the plan with rows sorted by such values in their order, wherever nulls that stand alone go: whether a value is one
/// becomes a key of its own.
pub(super) fn with_nested_keys(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !any_node(&plan, |node| Ok(has_displaced_keys(node)))? {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Sort(Sort { expr, input, fetch }) => {
            let keys = with_null_keys(expr, input.schema());
            Ok(keys.update_data(|expr| LogicalPlan::Sort(Sort { expr, input, fetch })))
        }
        LogicalPlan::Window(window) => {
            let schema = Arc::clone(window.input.schema());
            let node = LogicalPlan::Window(window);
            let names = NamePreserver::new(&node);
            node.map_expressions(|expr| {
                let name = names.save(&expr);
                let written = expr.transform_up(|part| Ok(with_window_keys(part, &schema)))?;
                Ok(written.update_data(|expr| name.restore(expr)))
            })
        }
        other => Ok(Transformed::no(other)),
    })
    .data()
}

fn has_displaced_keys(node: &LogicalPlan) -> bool {
    match node {
        LogicalPlan::Sort(sort) => sort.expr.iter().any(|key| is_displaced(key, sort.input.schema())),
        LogicalPlan::Window(window) => {
            let schema = window.input.schema();
            let has_keys = |part: &Expr| match part {
                Expr::WindowFunction(call) => call.params.order_by.iter().any(|key| is_displaced(key, schema)),
                _ => false,
            };
            window.window_expr.iter().any(|expr| expr.exists(|part| Ok(has_keys(part))).unwrap_or(true))
        }
        _ => false,
    }
}

/// Whether nulls that stand alone are not where a value after all others is.
fn is_displaced(key: &SortExpr, schema: &DFSchema) -> bool {
    key.nulls_first == key.asc && is_nested(&key.expr, schema)
}

fn with_window_keys(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::WindowFunction(mut call) = expr else { return Transformed::no(expr) };
    let keys = with_null_keys(std::mem::take(&mut call.params.order_by), schema);
    call.params.order_by = keys.data;
    Transformed::new_transformed(Expr::WindowFunction(call), keys.transformed)
}

fn with_null_keys(order: Vec<SortExpr>, schema: &DFSchema) -> Transformed<Vec<SortExpr>> {
    let mut keys = Vec::with_capacity(order.len());
    let mut is_changed = false;
    for key in order {
        if !is_displaced(&key, schema) {
            keys.push(key);
            continue;
        }
        is_changed = true;
        keys.push(key.expr.clone().is_null().sort(!key.nulls_first, false));
        keys.push(SortExpr { nulls_first: !key.asc, ..key });
    }
    Transformed::new_transformed(keys, is_changed)
}

fn is_nested(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(
        expr.get_type(schema),
        Ok(DataType::Struct(_)
            | DataType::Map(_, _)
            | DataType::List(_)
            | DataType::LargeList(_)
            | DataType::FixedSizeList(_, _))
    )
}
