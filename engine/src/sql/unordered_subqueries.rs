//! Orders that decide nothing: those of a query by the row around it in `IN`, which asks whether a value is among its rows, and in
//! `EXISTS`, which asks whether it has one, so that neither `LIMIT 1` nor `DISTINCT ON` matters there. DataFusion makes no join of an
//! ordered query.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::{
    Distinct, Expr, FetchType, Limit, LogicalPlan, LogicalPlanBuilder, SkipType, Sort, Subquery,
};

/// What is asked of a query's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowsAsked {
    /// Whether there is one.
    Any,
    /// Which there are, in any order.
    All,
}

/// Returns an expression that is such a condition with its query without order.
pub(super) fn without_order(expr: Expr) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::Exists(Exists { subquery, negated }) => unordered_subquery(subquery, RowsAsked::Any)?
            .update_data(|subquery| Expr::Exists(Exists { subquery, negated })),
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => unordered_subquery(subquery, RowsAsked::All)?
            .update_data(|subquery| Expr::InSubquery(InSubquery { expr, subquery, negated })),
        other => Transformed::no(other),
    })
}

fn unordered_subquery(subquery: Subquery, asked: RowsAsked) -> Result<Transformed<Subquery>> {
    if subquery.outer_ref_columns.is_empty() {
        return Ok(Transformed::no(subquery));
    }
    Ok(match unordered(&subquery.subquery, asked)? {
        Some(plan) => Transformed::yes(subquery.with_plan(Arc::new(plan))),
        None => Transformed::no(subquery),
    })
}

/// Returns a query without what orders its rows; `None` where there is nothing of it.
fn unordered(plan: &LogicalPlan, asked: RowsAsked) -> Result<Option<LogicalPlan>> {
    let input = match plan {
        LogicalPlan::Sort(Sort { input, fetch: None, .. }) => input,
        LogicalPlan::Limit(limit) if asked == RowsAsked::Any && keeps_a_row(limit)? => &limit.input,
        LogicalPlan::Distinct(Distinct::On(rows)) if asked == RowsAsked::Any => {
            let builder = LogicalPlanBuilder::from(Arc::clone(&rows.input));
            return builder.project(rows.select_expr.clone())?.build().map(Some);
        }
        // How many rows it leaves depends on how many there are.
        LogicalPlan::Limit(limit) if asked == RowsAsked::Any => {
            return above_unordered(plan, &limit.input, RowsAsked::All);
        }
        // A condition on rows asks for those that a limit below it leaves.
        LogicalPlan::Filter(filter) => return above_unordered(plan, &filter.input, RowsAsked::All),
        LogicalPlan::Projection(projection) => return above_unordered(plan, &projection.input, asked),
        LogicalPlan::SubqueryAlias(table) => return above_unordered(plan, &table.input, asked),
        LogicalPlan::Distinct(Distinct::All(rows)) => return above_unordered(plan, rows, asked),
        _ => return Ok(None),
    };
    Ok(Some(unordered(input, asked)?.unwrap_or_else(|| input.as_ref().clone())))
}

fn above_unordered(plan: &LogicalPlan, input: &LogicalPlan, asked: RowsAsked) -> Result<Option<LogicalPlan>> {
    let Some(input) = unordered(input, asked)? else { return Ok(None) };
    plan.with_new_exprs(plan.expressions(), vec![input]).map(Some)
}

fn keeps_a_row(limit: &Limit) -> Result<bool> {
    Ok(matches!(limit.get_skip_type()?, SkipType::Literal(0))
        && matches!(limit.get_fetch_type()?, FetchType::Literal(None | Some(1..))))
}
