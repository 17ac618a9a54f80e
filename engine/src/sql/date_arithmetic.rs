//! A date and an interval with hours are a time, so are a date and a time of day, and between two dates lie days, as in
//! PostgreSQL and DuckDB. Arrow's own sum is a date again, which loses the hours, and its difference a duration. Its sum of a time of
//! seconds or milliseconds and an interval has no more digits than the time. A null of no type that is added to a date or a
//! timestamp, or taken from one, is an interval, as in DuckDB.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, IntervalMonthDayNanoType, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::execution::SessionStateDefaults;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, ScalarUDF, TryCast};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::field_access::{FieldAccess, own_call};
use super::interruptible_planning::InterruptiblePlanning;
use crate::functions::{DATE_PLUS_TIME, scalar_functions};

/// Returns the planners of expressions: ours, then DataFusion's.
pub(super) fn expr_planners() -> &'static [Arc<dyn ExprPlanner>] {
    static PLANNERS: LazyLock<Vec<Arc<dyn ExprPlanner>>> = LazyLock::new(|| {
        let own: [Arc<dyn ExprPlanner>; 3] =
            [Arc::new(InterruptiblePlanning), Arc::new(FieldAccess), Arc::new(DateArithmetic)];
        own.into_iter().chain(SessionStateDefaults::default_expr_planners()).collect()
    });
    &PLANNERS
}

#[derive(Debug)]
struct DateArithmetic;

impl ExprPlanner for DateArithmetic {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let RawBinaryExpr { op, left, right } = expr;
        let no_interval = || Expr::Literal(ScalarValue::IntervalMonthDayNano(None), None);
        let (left, right) = match op {
            BinaryOperator::Plus | BinaryOperator::Minus if is_null(&right) && is_instant(&left, schema) => {
                (left, no_interval())
            }
            BinaryOperator::Plus if is_null(&left) && is_instant(&right, schema) => (no_interval(), right),
            _ => (left, right),
        };
        if op == BinaryOperator::Minus && is_date(&left, schema) && is_date(&right, schema) {
            return Ok(PlannerResult::Planned(days(left) - days(right)));
        }
        if op == BinaryOperator::Plus && is_date(&left, schema) && is_time_of_day(&right, schema) {
            return Ok(PlannerResult::Planned(own_call(DATE_PLUS_TIME, vec![left, right])?));
        }
        if op == BinaryOperator::Plus && is_time_of_day(&left, schema) && is_date(&right, schema) {
            return Ok(PlannerResult::Planned(own_call(DATE_PLUS_TIME, vec![right, left])?));
        }
        let is_sum = matches!(op, BinaryOperator::Plus | BinaryOperator::Minus);
        let (left, right) = match is_sum {
            true if is_date(&left, schema) && has_hours(&right, schema) => (as_time(left), right),
            true if is_date(&right, schema) && has_hours(&left, schema) => (left, as_time(right)),
            _ => (left, right),
        };
        let (left_type, right_type) = match is_sum {
            true => (type_with_digits(&left, &right, schema), type_with_digits(&right, &left, schema)),
            false => (None, None),
        };
        let (left, right) = (as_type(left, left_type), as_type(right, right_type));
        Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }))
    }

    /// EXTRACT is the session's `date_part`, not DataFusion's own: its years are compared as those of calls are, and workers know it.
    fn plan_extract(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        static DATE_PART: LazyLock<Option<Arc<ScalarUDF>>> =
            LazyLock::new(|| scalar_functions().into_iter().find(|function| function.name() == "date_part"));
        Ok(match DATE_PART.as_ref() {
            Some(function) => PlannerResult::Planned(function.call(args)),
            None => PlannerResult::Original(args),
        })
    }
}

/// Returns the type in which a time of seconds or milliseconds has the digits of an interval beside it; `None` where it has them,
/// or nothing beside it is one.
fn type_with_digits(time: &Expr, interval: &Expr, schema: &DFSchema) -> Option<DataType> {
    let Ok(DataType::Timestamp(unit, zone)) = time.get_type(schema) else { return None };
    let tick = match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond | TimeUnit::Nanosecond => return None,
    };
    let has_digits = match interval {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(interval), _) => {
            interval.is_none_or(|interval| IntervalMonthDayNanoType::to_parts(interval).2 % tick == 0)
        }
        other => !matches!(other.get_type(schema), Ok(DataType::Interval(_))),
    };
    (!has_digits).then_some(DataType::Timestamp(TimeUnit::Microsecond, zone))
}

fn as_type(value: Expr, wanted: Option<DataType>) -> Expr {
    match wanted {
        Some(wanted) => Expr::Cast(Cast::new(Box::new(value), wanted)),
        None => value,
    }
}

fn is_date(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Date32 | DataType::Date64))
}

fn is_instant(expr: &Expr, schema: &DFSchema) -> bool {
    is_date(expr, schema) || matches!(expr.get_type(schema), Ok(DataType::Timestamp(_, _)))
}

/// Returns whether an expression is a null of no type.
fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Null, _))
}

fn is_time_of_day(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Time32(_) | DataType::Time64(_)))
}

/// Returns whether an interval has hours, or may have: one of whole days keeps a date a date.
fn has_hours(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(interval), _) => {
            interval.is_some_and(|interval| IntervalMonthDayNanoType::to_parts(interval).2 != 0)
        }
        other => matches!(other.get_type(schema), Ok(DataType::Interval(_))),
    }
}

/// Returns the days of a date since 1970. The cast to a number is a TRY_CAST, as one that a statement writes as CAST is refused
/// ([`super::value_casts`]); it has no value that does not fit.
fn days(date: Expr) -> Expr {
    let day = Expr::Cast(Cast::new(Box::new(date), DataType::Date32));
    let days = Expr::TryCast(TryCast::new(Box::new(day), DataType::Int32));
    Expr::Cast(Cast::new(Box::new(days), DataType::Int64))
}

fn as_time(date: Expr) -> Expr {
    Expr::Cast(Cast::new(Box::new(date), DataType::Timestamp(TimeUnit::Microsecond, None)))
}
