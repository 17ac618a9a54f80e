//! Times between instants, which are Arrow's durations, beside intervals: a month counts as 30 days and a day as 24 hours where
//! they are compared, as in PostgreSQL and DuckDB, and parts of them are those of days and hours.

use arrow::datatypes::{DataType, IntervalUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Cast, InList, WindowFunction};
use datafusion::logical_expr::{
    Between, BinaryExpr, Expr, ExprSchemable, Operator, WindowFrameBound, WindowFrameUnits,
};

use super::field_access::own_call;
use crate::error::EngineError;
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
        Expr::WindowFunction(call) => call.params.window_frame.units == WindowFrameUnits::Range,
        Expr::Between(_) | Expr::InList(_) => true,
        _ => false,
    }
}

/// Returns the expression with such times as SQL has them. Errors: `sql_plan_error`.
pub(super) fn with_elapsed_times(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_elapsed = |expr: &Expr| matches!(expr.get_type(schema), Ok(DataType::Interval(_) | DataType::Duration(_)));
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
        Expr::WindowFunction(call) => with_days(call, schema)?,
        other => Transformed::no(other),
    })
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

/// A number beside the dates of a RANGE frame counts days; beside instants it says nothing. Errors: `sql_plan_error`.
fn with_days(mut call: Box<WindowFunction>, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let frame = &mut call.params.window_frame;
    let order = call.params.order_by.first().and_then(|sort| sort.expr.get_type(schema).ok());
    let (WindowFrameUnits::Range, Some(order)) = (frame.units, order) else {
        return Ok(Transformed::no(Expr::WindowFunction(call)));
    };
    let mut changed = false;
    for bound in [&mut frame.start_bound, &mut frame.end_bound] {
        let (WindowFrameBound::Preceding(value) | WindowFrameBound::Following(value)) = bound else { continue };
        let Some(days) = whole_number(value) else { continue };
        match order {
            DataType::Date32 | DataType::Date64 => {
                *value = ScalarValue::new_interval_mdn(0, days, 0);
                changed = true;
            }
            DataType::Timestamp(_, _) => {
                let message = "a RANGE over timestamps is an interval, such as INTERVAL '1 hour' PRECEDING".to_owned();
                return Err(EngineError::Plan { message }.into());
            }
            _ => {}
        }
    }
    Ok(Transformed::new_transformed(Expr::WindowFunction(call), changed))
}

fn whole_number(value: &ScalarValue) -> Option<i32> {
    match value {
        ScalarValue::Utf8(Some(text)) => text.trim().parse().ok(),
        ScalarValue::Int64(Some(number)) => i32::try_from(*number).ok(),
        ScalarValue::UInt64(Some(number)) => i32::try_from(*number).ok(),
        _ => None,
    }
}
