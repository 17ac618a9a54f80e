//! Days and months that are cut: the last day of a period of times ends at its midnight, `BETWEEN` takes the first day
//! of the next month in, and a month has more days than were thought of.

use arrow::datatypes::DataType;
use chrono::{Datelike, Days, Months, NaiveDate};
use sqlparser::ast::{BinaryOperator, Expr, Select, Value};

use super::{CheckKind, Checked, Finding};
use crate::repair::column_of;
use crate::sql_text::quote_identifier;

/// A bound of a column of times.
struct DayBound<'a> {
    column: &'a Expr,
    lower: Option<NaiveDate>,
    /// The last day, of which only the midnight is taken in of a column of times.
    upper: NaiveDate,
    kind: BoundKind,
}

/// How a bound compares with its last day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BoundKind {
    /// `<=`, and `BETWEEN`.
    TakenIn,
    /// `<`.
    LeftOut,
    /// `=`.
    Equal,
}

/// Looks for periods whose last day is cut, or one too many.
pub(super) async fn check(checked: &Checked<'_>, select: &Select) -> Vec<Finding> {
    let scope = checked.scope();
    let mut findings = Vec::new();
    for bound in bounds(select) {
        let Some((source, column, Some(data_type))) = column_of(&scope, bound.column) else { continue };
        let Some(table) = &source.table else { continue };
        let table_name = format!("{}.{}", quote_identifier(&table.database), quote_identifier(&table.table));
        let column_name = quote_identifier(column);
        let upper = bound.upper;
        let Some(next) = upper.checked_add_days(Days::new(1)) else { continue };
        let begins_month = bound.lower.is_some_and(|lower| lower.day() == 1);
        let is_time = matches!(data_type, DataType::Timestamp(_, _));
        let between = |from: String, to: String| {
            format!("SELECT 1 FROM {table_name} WHERE {column_name} {from} AND {column_name} {to} LIMIT 1")
        };
        let whole_day = between(format!(">= TIMESTAMP '{upper} 00:00:00'"), format!("< TIMESTAMP '{next} 00:00:00'"));
        match bound.kind {
            BoundKind::LeftOut => {
                let is_last = begins_month && last_of_month(upper) == Some(upper);
                if is_last && checked.has_rows(&whole_day).await {
                    let message = format!("the month ends on {upper}, and `<` leaves its rows out; write `< '{next}'`");
                    findings.push(Finding::new(CheckKind::Period, message));
                }
                continue;
            }
            BoundKind::Equal => {
                let after =
                    between(format!("> TIMESTAMP '{upper} 00:00:00'"), format!("< TIMESTAMP '{next} 00:00:00'"));
                if is_time && checked.has_rows(&after).await {
                    let message = format!(
                        "`{column}` has times of day, and only midnight of {upper} is equal to it; write \
                         `CAST({column} AS DATE) = '{upper}'`"
                    );
                    findings.push(Finding::new(CheckKind::Period, message));
                }
                continue;
            }
            BoundKind::TakenIn => {}
        }
        match data_type {
            DataType::Timestamp(_, _) => {
                let first_of_next = begins_month && upper.day() == 1;
                let sql = format!(
                    "SELECT 1 FROM {table_name} WHERE {column_name} > TIMESTAMP '{upper} 00:00:00' AND {column_name} < \
                     TIMESTAMP '{next} 00:00:00' LIMIT 1"
                );
                let midnight =
                    between(format!(">= TIMESTAMP '{upper} 00:00:00'"), format!("<= TIMESTAMP '{upper} 00:00:00'"));
                if first_of_next && bound.lower != Some(upper) && checked.has_rows(&midnight).await {
                    let message = format!("the midnight of {upper}, the first of the next month, is taken in");
                    findings.push(Finding::new(CheckKind::Period, message));
                } else if !first_of_next && checked.has_rows(&sql).await {
                    let message = format!(
                        "`{column}` has times of day: rows of {upper} after midnight are left out; write `{column} < \
                         '{next}'` to take the day in"
                    );
                    findings.push(Finding::new(CheckKind::Period, message));
                }
            }
            DataType::Date32 | DataType::Date64 if begins_month && bound.lower != Some(upper) => {
                let day = |from: NaiveDate, to: NaiveDate| {
                    format!(
                        "SELECT 1 FROM {table_name} WHERE {column_name} >= DATE '{from}' AND {column_name} <= DATE \
                         '{to}' LIMIT 1"
                    )
                };
                let last = last_of_month(upper);
                if upper.day() == 1 && checked.has_rows(&day(upper, upper)).await {
                    let message = format!("BETWEEN takes {upper} in, the first day of the next month");
                    findings.push(Finding::new(CheckKind::Period, message));
                } else if let Some(last) = last.filter(|last| upper.day() >= 28 && *last > upper)
                    && checked.has_rows(&day(next, last)).await
                {
                    let message = format!("the month ends on {last}: rows after {upper} are left out");
                    findings.push(Finding::new(CheckKind::Period, message));
                }
            }
            _ => {}
        }
    }
    findings.dedup();
    findings
}

fn last_of_month(day: NaiveDate) -> Option<NaiveDate> {
    day.with_day(1)?.checked_add_months(Months::new(1))?.pred_opt()
}

/// A column with its lower and its upper bound, each where it has one.
type DayBounds<'a> = (&'a Expr, Option<NaiveDate>, Option<(NaiveDate, BoundKind)>);

/// Returns the bounds of a SELECT's WHERE that name a day.
fn bounds(select: &Select) -> Vec<DayBound<'_>> {
    let mut found: Vec<DayBounds<'_>> = Vec::new();
    if let Some(filter) = &select.selection {
        collect(filter, true, &mut found);
    }
    let lower_of = |column: &Expr, own: Option<NaiveDate>| {
        let same = |other: &&DayBounds<'_>| other.0.to_string() == column.to_string();
        own.or_else(|| found.iter().filter(same).find_map(|(_, lower, _)| *lower))
    };
    let with_upper = found.iter().filter_map(|(column, lower, upper)| {
        let (upper, kind) = (*upper)?;
        Some(DayBound { column, lower: lower_of(column, *lower), upper, kind })
    });
    with_upper.collect()
}

/// Collects the bounds of the parts of a filter; `all`: all of them must hold, so that two are bounds of one period.
fn collect<'a>(filter: &'a Expr, all: bool, found: &mut Vec<DayBounds<'a>>) {
    use BoundKind::{Equal, LeftOut, TakenIn};
    match filter {
        Expr::BinaryOp { left, op: op @ (BinaryOperator::And | BinaryOperator::Or), right } => {
            let all = all && *op == BinaryOperator::And;
            collect(left, all, found);
            collect(right, all, found);
        }
        Expr::Nested(inner) => collect(inner, all, found),
        Expr::Between { expr, negated: false, low, high } => {
            found.push((expr, day_of(low), day_of(high).map(|day| (day, TakenIn))));
        }
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => match (day_of(left), day_of(right)) {
            (None, Some(day)) => found.push((left, None, Some((day, Equal)))),
            (Some(day), None) => found.push((right, None, Some((day, Equal)))),
            _ => {}
        },
        Expr::BinaryOp { left, op, right } if all => match (op, day_of(left), day_of(right)) {
            (BinaryOperator::LtEq, None, Some(upper)) => found.push((left, None, Some((upper, TakenIn)))),
            (BinaryOperator::GtEq, Some(upper), None) => found.push((right, None, Some((upper, TakenIn)))),
            (BinaryOperator::Lt, None, Some(upper)) => found.push((left, None, Some((upper, LeftOut)))),
            (BinaryOperator::Gt, Some(upper), None) => found.push((right, None, Some((upper, LeftOut)))),
            (BinaryOperator::GtEq | BinaryOperator::Gt, None, Some(lower)) => found.push((left, Some(lower), None)),
            (BinaryOperator::LtEq | BinaryOperator::Lt, Some(lower), None) => found.push((right, Some(lower), None)),
            _ => {}
        },
        _ => {}
    }
}

/// Returns the day that a constant is, without a time.
fn day_of(expr: &Expr) -> Option<NaiveDate> {
    let text = match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => text,
            _ => return None,
        },
        Expr::TypedString(typed) => match &typed.value.value {
            Value::SingleQuotedString(text) => text,
            _ => return None,
        },
        _ => return None,
    };
    let day = text.strip_suffix(" 00:00:00").unwrap_or(text);
    NaiveDate::parse_from_str(day, "%Y-%m-%d").ok()
}
