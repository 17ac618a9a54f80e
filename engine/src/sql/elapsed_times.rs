//! Times between instants, which are Arrow's durations, beside intervals: a month counts as 30 days and a day as 24 hours where
//! they are compared, as in PostgreSQL and DuckDB, and parts of them are those of days and hours.

use arrow::datatypes::{DataType, IntervalUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Case, Cast, InList, InSubquery, SetComparison};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, Operator, Subquery, when};

use super::field_access::own_call;
use super::in_subqueries::with_values;
use super::range_frames::with_days;
use crate::functions::{INTERVAL_EPOCH, INTERVAL_LENGTH, INTERVAL_OF, length_type};

/// The functions that look for a value in a list.
const SEARCHING_LISTS: [&str; 3] = ["array_has", "array_position", "array_positions"];

/// Returns whether an expression may compare such times or take parts of them.
pub(super) fn may_have_elapsed(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            // Most comparisons are with a literal of another kind.
            let may_be = |expr: &Expr| match expr {
                Expr::Literal(value, _) => length_type(&value.data_type()).is_some(),
                _ => true,
            };
            compares(*op) && may_be(left) && may_be(right)
        }
        Expr::ScalarFunction(call) => call.name() == "date_part" || SEARCHING_LISTS.contains(&call.name()),
        Expr::WindowFunction(call) => !call.params.order_by.is_empty() || !call.params.partition_by.is_empty(),
        Expr::AggregateFunction(call) => call.params.distinct,
        Expr::Between(_) | Expr::InList(_) => true,
        _ => false,
    }
}

/// Returns the expression with such times as SQL has them. Errors: `sql_plan_error`.
pub(super) fn with_elapsed_times(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_elapsed = |expr: &Expr| is_elapsed(expr, schema);
    let has_elapsed = |expr: &Expr| has_elapsed(expr, schema);
    let length = |expr: Expr| own_call(INTERVAL_LENGTH, vec![expr]);
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if compares(op) && has_elapsed(&left) && has_elapsed(&right) =>
        {
            let (left, right) = (length(*left)?, length(*right)?);
            Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
        }
        Expr::Between(Between { expr, negated, low, high })
            if is_elapsed(&expr) && is_elapsed(&low) && is_elapsed(&high) =>
        {
            let (expr, low, high) = (length(*expr)?, length(*low)?, length(*high)?);
            Transformed::yes(Expr::Between(Between::new(Box::new(expr), negated, Box::new(low), Box::new(high))))
        }
        Expr::InList(InList { expr, list, negated }) if has_elapsed(&expr) && list.iter().all(has_elapsed) => {
            let list = list.into_iter().map(length).collect::<Result<Vec<_>>>()?;
            Transformed::yes(Expr::InList(InList::new(Box::new(length(*expr)?), list, negated)))
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated })
            if has_elapsed(&expr) && has_elapsed_values(&subquery) =>
        {
            let (expr, subquery) = (Box::new(length(*expr)?), with_values(subquery, length)?);
            Transformed::yes(Expr::InSubquery(InSubquery { expr, subquery, negated }))
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier })
            if has_elapsed(&expr) && has_elapsed_values(&subquery) =>
        {
            let (expr, subquery) = (Box::new(length(*expr)?), with_values(subquery, length)?);
            Transformed::yes(Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }))
        }
        Expr::Case(Case { expr: Some(value), when_then_expr, else_expr })
            if has_elapsed(&value) && when_then_expr.iter().all(|(when, _)| has_elapsed(when)) =>
        {
            let cases = when_then_expr.into_iter().map(|(when, then)| Ok((Box::new(length(*when)?), then)));
            let when_then_expr = cases.collect::<Result<Vec<_>>>()?;
            Transformed::yes(Expr::Case(Case { expr: Some(Box::new(length(*value)?)), when_then_expr, else_expr }))
        }
        Expr::ScalarFunction(call) if call.name() == "nullif" && call.args.iter().all(has_elapsed) => {
            let [value, other] = call.args.as_slice() else { return Ok(Transformed::no(Expr::ScalarFunction(call))) };
            let is_other = length(value.clone())?.not_eq(length(other.clone())?).is_not_false();
            Transformed::yes(when(is_other, value.clone()).end()?)
        }
        Expr::AggregateFunction(mut call)
            if call.params.distinct && call.func.name() == "count" && call.params.args.iter().any(has_elapsed) =>
        {
            let args = std::mem::take(&mut call.params.args).into_iter();
            let args = args.map(|arg| if has_elapsed(&arg) { length(arg) } else { Ok(arg) });
            call.params.args = args.collect::<Result<_>>()?;
            Transformed::yes(Expr::AggregateFunction(call))
        }
        Expr::ScalarFunction(mut call) if SEARCHING_LISTS.contains(&call.name()) => {
            let is_interval = match call.args.as_slice() {
                [list, sought, ..] => is_elapsed_list(list, schema) && has_elapsed(sought),
                _ => false,
            };
            for arg in call.args.iter_mut().take(2).filter(|_| is_interval) {
                *arg = length(std::mem::take(arg))?;
            }
            Transformed::new_transformed(Expr::ScalarFunction(call), is_interval)
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

/// Returns a window function whose partitions are those of lengths, and whose rows are in the order of these, as numbers: DataFusion 54
/// has no frame over elapsed times.
fn with_numbers_in_order(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::WindowFunction(mut call) = expr else { return Ok(Transformed::no(expr)) };
    let mut changed = false;
    for key in call.params.partition_by.iter_mut().filter(|key| is_elapsed(key, schema)) {
        *key = own_call(INTERVAL_LENGTH, vec![std::mem::take(key)])?;
        changed = true;
    }
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

fn has_elapsed_values(subquery: &Subquery) -> bool {
    let values = subquery.subquery.schema().fields().first();
    values.is_some_and(|values| length_type(values.data_type()).is_some())
}

fn is_elapsed(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Interval(_) | DataType::Duration(_)))
}

/// Returns whether a value is such a time, or a list or a structure with some.
fn has_elapsed(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|data_type| length_type(&data_type).is_some())
}

fn is_elapsed_list(expr: &Expr, schema: &DFSchema) -> bool {
    match expr.get_type(schema) {
        Ok(DataType::List(element)) => length_type(element.data_type()).is_some(),
        _ => false,
    }
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
