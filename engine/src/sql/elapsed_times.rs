//! Times between instants, which are Arrow's durations, beside intervals: a month counts as 30 days and a day as 24 hours where
//! they are compared, as in PostgreSQL and DuckDB, and parts of them are those of days and hours.

use arrow::datatypes::{DataType, IntervalUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Cast, InList};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, Operator};

use super::field_access::own_call;
use super::range_frames::with_days;
use crate::functions::{INTERVAL_EPOCH, INTERVAL_LENGTH, INTERVAL_OF};

/// Returns whether an expression may compare such times or take parts of them.
pub(super) fn may_have_elapsed(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            // Most comparisons are with a literal of another kind.
            let may_be = |expr: &Expr| match expr {
                Expr::Literal(value, _) => matches!(value.data_type(), DataType::Interval(_) | DataType::Duration(_)),
                _ => true,
            };
            compares(*op) && may_be(left) && may_be(right)
        }
        Expr::ScalarFunction(call) => call.name() == "date_part",
        Expr::WindowFunction(call) => !call.params.order_by.is_empty(),
        Expr::Between(_) | Expr::InList(_) => true,
        _ => false,
    }
}

/// Returns the expression with such times as SQL has them. Errors: `sql_plan_error`.
pub(super) fn with_elapsed_times(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_elapsed = |expr: &Expr| is_elapsed(expr, schema);
    let length = |expr: Expr| own_call(INTERVAL_LENGTH, vec![expr]);
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(op) && is_elapsed(&left) && is_elapsed(&right) => {
            let (left, right) = (length(*left)?, length(*right)?);
            Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
        }
        Expr::Between(Between { expr, negated, low, high })
            if is_elapsed(&expr) && is_elapsed(&low) && is_elapsed(&high) =>
        {
            let (expr, low, high) = (length(*expr)?, length(*low)?, length(*high)?);
            Transformed::yes(Expr::Between(Between::new(Box::new(expr), negated, Box::new(low), Box::new(high))))
        }
        Expr::InList(InList { expr, list, negated }) if is_elapsed(&expr) && list.iter().all(is_elapsed) => {
            let list = list.into_iter().map(length).collect::<Result<Vec<_>>>()?;
            Transformed::yes(Expr::InList(InList::new(Box::new(length(*expr)?), list, negated)))
        }
        Expr::ScalarFunction(mut call) if call.name() == "date_part" && call.args.get(1).is_some_and(is_elapsed) => {
            let time = call.args.pop().unwrap_or_default();
            let part = match call.args.first() {
                Some(Expr::Literal(part, _)) => part.try_as_str().flatten().unwrap_or_default().to_lowercase(),
                _ => String::new(),
            };
            if part == "epoch" {
                return Ok(Transformed::yes(own_call(INTERVAL_EPOCH, vec![time])?));
            }
            let interval = match time.get_type(schema) {
                Ok(DataType::Duration(_)) => own_call(INTERVAL_OF, vec![time])?,
                _ => Expr::Cast(Cast::new(Box::new(time), DataType::Interval(IntervalUnit::MonthDayNano))),
            };
            call.args.push(interval);
            Transformed::yes(Expr::ScalarFunction(call))
        }
        Expr::WindowFunction(call) => {
            with_days(call, schema)?.transform_data(|expr| with_numbers_in_order(expr, schema))?
        }
        other => Transformed::no(other),
    })
}

/// Returns a window function whose rows are in the order of lengths, as numbers: DataFusion 54 has no frame over elapsed times.
fn with_numbers_in_order(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::WindowFunction(mut call) = expr else { return Ok(Transformed::no(expr)) };
    let mut changed = false;
    for sort in &mut call.params.order_by {
        if is_elapsed(&sort.expr, schema) {
            let length = own_call(INTERVAL_LENGTH, vec![std::mem::take(&mut sort.expr)])?;
            sort.expr = Expr::Cast(Cast::new(Box::new(length), DataType::Int64));
            changed = true;
        }
    }
    Ok(Transformed::new_transformed(Expr::WindowFunction(call), changed))
}

/// Returns what rows are sorted by; of an interval it is the length.
pub(super) fn with_sorted_length(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr.get_type(schema) {
        Ok(DataType::Interval(_)) => own_call(INTERVAL_LENGTH, vec![expr]).map(Transformed::yes),
        _ => Ok(Transformed::no(expr)),
    }
}

fn is_elapsed(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Interval(_) | DataType::Duration(_)))
}

/// Returns whether an operator compares values by their order.
pub(super) fn compares(op: Operator) -> bool {
    matches!(
        op,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}
