//! Days and months that are cut: the last day of a period of times ends at its midnight, `BETWEEN` takes the first day
//! of the next month in, and a month has more days than were thought of. Also months of several years that are told by
//! their number alone.

use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use chrono::{Datelike, Days, Months, NaiveDate};
use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Select, Value, Visit,
    Visitor,
};

use super::{CheckKind, Checked, Finding, rows_read};
use crate::repair::{Scope, column_of};
use crate::sql_text::{quote_identifier, quoted_table};

/// The type of a day that is taken of a time.
static DAY: DataType = DataType::Date32;

/// Parts of times that come again each year.
const OF_EACH_YEAR: [&str; 4] = ["month", "monthname", "quarter", "week"];

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
    findings.extend(months_of_years(checked, select, &scope).await);
    for bound in bounds(select) {
        let of_day = day_taken_of(bound.column);
        let Some((source, column, Some(data_type))) = column_of(&scope, of_day.unwrap_or(bound.column)) else {
            continue;
        };
        let Some(table) = &source.table else { continue };
        let table_name = quoted_table(table);
        let (column_name, data_type) = match of_day {
            Some(_) => (format!("CAST({} AS DATE)", quote_identifier(column)), &DAY),
            None => (quote_identifier(column), data_type),
        };
        let upper = bound.upper;
        let Some(next) = upper.checked_add_days(Days::new(1)) else { continue };
        let begins_month = bound.lower.is_some_and(|lower| lower.day() == 1);
        let is_time = matches!(data_type, DataType::Timestamp(_, _));
        // `<= '2024-02-28'` of a leap year.
        let cut_month = last_of_month(upper).filter(|last| begins_month && upper.day() >= 28 && *last > upper);
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
                } else if let Some(last) = cut_month
                    && let Some(after) = last.checked_add_days(Days::new(1))
                    && checked
                        .has_rows(&between(
                            format!(">= TIMESTAMP '{next} 00:00:00'"),
                            format!("< TIMESTAMP '{after} 00:00:00'"),
                        ))
                        .await
                {
                    let message = format!("the month ends on {last}: rows after {upper} are left out");
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
                if upper.day() == 1 && checked.has_rows(&day(upper, upper)).await {
                    let message = format!("BETWEEN takes {upper} in, the first day of the next month");
                    findings.push(Finding::new(CheckKind::Period, message));
                } else if let Some(last) = cut_month
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

/// Returns the time of which an expression takes the day: `CAST(placed AS DATE)`, `date(placed)`.
fn day_taken_of(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Cast { expr: time, data_type: sqlparser::ast::DataType::Date, .. } => Some(time),
        Expr::Nested(inner) => day_taken_of(inner),
        _ => part_of_time(expr).filter(|(part, _)| part == "date").map(|(_, time)| time),
    }
}

/// Returns the lowercase name of the part of a time that an expression is, with the time: of `month(placed)` and
/// `EXTRACT(MONTH FROM placed)`.
fn part_of_time(expr: &Expr) -> Option<(String, &Expr)> {
    let (name, list) = match expr {
        Expr::Extract { field, expr: time, .. } => return Some((field.to_string().to_lowercase(), time)),
        Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) => {
            (name.to_string().to_lowercase(), list)
        }
        _ => return None,
    };
    let arguments: Vec<&Expr> = list
        .args
        .iter()
        .filter_map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => Some(argument),
            _ => None,
        })
        .collect();
    match (name.as_str(), arguments.as_slice()) {
        ("date_part", [part, time]) => Some((part.to_string().trim_matches('\'').to_lowercase(), *time)),
        ("strftime" | "to_char" | "date_format", [time, format]) if tells_month_alone(&format.to_string()) => {
            Some(("month".to_owned(), *time))
        }
        (_, [time]) => Some((name, *time)),
        _ => None,
    }
}

/// Whether a format shows a month or a week and no year.
fn tells_month_alone(format: &str) -> bool {
    const YEARS: [&str; 10] = ["%Y", "%y", "%G", "%g", "%C", "%D", "%F", "%c", "%x", "%s"];
    let format = format.trim_matches('\'');
    let has_month = ["%m", "%B", "%b", "%h", "%U", "%W", "%V"].iter().any(|part| format.contains(part));
    has_month && !YEARS.iter().any(|part| format.contains(part))
}

/// Looks for months by their number alone, where rows are of several years: `month(placed) = 1`.
async fn months_of_years(checked: &Checked<'_>, select: &Select, scope: &Scope) -> Option<Finding> {
    let mut parts = TimeParts(Vec::new());
    let _: ControlFlow<()> = select.selection.visit(&mut parts);
    let is_filtered = parts.0.iter().any(|(part, _)| OF_EACH_YEAR.contains(&part.as_str()));
    let _: ControlFlow<()> = select.group_by.visit(&mut parts);
    let _: ControlFlow<()> = select.projection.visit(&mut parts);
    if !is_filtered && matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty()) {
        return None;
    }
    let (part, time) = parts.0.iter().find(|(part, _)| OF_EACH_YEAR.contains(&part.as_str()))?;
    // Something else of the time says the year, or bounds it.
    let whole = select.to_string();
    let uses = whole.matches(&time.to_string()).count();
    let months = parts.0.iter().filter(|(part, of)| of == time && OF_EACH_YEAR.contains(&part.as_str())).count();
    let (source, column, Some(data_type)) = column_of(scope, time)? else { return None };
    if uses > months || !data_type.is_temporal() {
        return None;
    }
    let of_year = if part == "monthname" { "month" } else { part.as_str() };
    let table = source.table.as_ref()?;
    let (with, rows) = (checked.with_clause(), rows_read(select));
    let sql = format!(
        "{with}SELECT 1 {rows} GROUP BY date_part('{of_year}', {time}) HAVING count(DISTINCT date_part('year', \
         {time})) > 1 LIMIT 1"
    );
    let message = format!(
        "{of_year}s are told by their number alone, and `{table}.{column}` has the same {of_year} of several years; \
         add the year, or write date_trunc('{of_year}', {column})"
    );
    checked.has_rows(&sql).await.then(|| Finding::new(CheckKind::Period, message))
}

/// The parts of times that are taken.
struct TimeParts(Vec<(String, Expr)>);

impl Visitor for TimeParts {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Some((part, time)) = part_of_time(expr) {
            self.0.push((part, time.clone()));
        }
        ControlFlow::Continue(())
    }
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
