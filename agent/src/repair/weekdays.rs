//! Numbers of the days of a week. Here Sunday is 0, as DuckDB has it; MySQL, BigQuery and Spark count their `DAYOFWEEK`
//! from 1 for Sunday, and MySQL's `WEEKDAY` from 0 for Monday. Such a query runs here and counts other days: it is turned
//! where it tells the numbering, and else the numbering is said.

use sqlparser::ast::{BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Statement};

use super::parse;
use crate::sql_text::{has_expr, number_text};

/// The number that a day has only where they are counted from 1.
const SEVENTH: &str = "7";

/// Whether a query compares `dayofweek` with 7, and so counts Sunday as 1, although it runs here.
pub(crate) fn misnumbers_days(sql: &str) -> bool {
    sql.to_ascii_lowercase().contains("dayofweek")
        && parse::parse_query(sql).is_some_and(|parsed| counts_days_from_one(&parsed.statement))
}

/// Returns what is said of the numbers of days that a query which ran asks for; `None` where it asks for none.
pub(crate) fn weekday_note(sql: &str) -> Option<&'static str> {
    const NOTE: &str = "Days of the week are numbered from 0 for Sunday to 6 for Saturday here, also by WEEKDAY; \
                        dayname(x) has their names.";
    let lower = sql.to_ascii_lowercase();
    if !["dayofweek", "weekday"].iter().any(|name| lower.contains(name)) {
        return None;
    }
    let parsed = parse::parse_query(sql)?;
    has_expr(&parsed.statement, is_day_number).then_some(NOTE)
}

/// Whether a statement compares `dayofweek` with 7.
pub(super) fn counts_days_from_one(statement: &Statement) -> bool {
    use BinaryOperator::{Eq, GtEq, NotEq};
    let is_day = |expr: &Expr| is_day_number(expr) && !is_call_of(expr, "weekday");
    let is_compared = |expr: &Expr| match expr {
        Expr::BinaryOp { left, op: Eq | NotEq | GtEq, right } => is_day(left) && is_seventh(right),
        Expr::InList { expr, list, .. } => is_day(expr) && list.iter().any(is_seventh),
        Expr::Between { expr, high, .. } => is_day(expr) && is_seventh(high),
        Expr::Case { operand: Some(operand), conditions, .. } => {
            is_day(operand) && conditions.iter().any(|when| is_seventh(&when.condition))
        }
        _ => false,
    };
    has_expr(statement, is_compared)
}

/// Returns `DAYOFWEEK` of a time as it is counted from 1, and of MySQL also `WEEKDAY`.
pub(super) fn weekday_here(function: &Function, is_mysql: bool) -> Option<String> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(time))] = list.args.as_slice() else { return None };
    let day = format!("CAST(date_part('dow', {time}) AS BIGINT)");
    match function.name.to_string().to_lowercase().as_str() {
        "dayofweek" => Some(format!("({day} + 1)")),
        "weekday" if is_mysql => Some(format!("(({day} + 6) % 7)")),
        _ => None,
    }
}

/// Whether an expression is the number of a day of the week by a name that other systems count otherwise.
fn is_day_number(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_day_number(inner),
        Expr::Extract { field, .. } => field.to_string().eq_ignore_ascii_case("dayofweek"),
        _ => is_call_of(expr, "dayofweek") || is_call_of(expr, "weekday"),
    }
}

fn is_call_of(expr: &Expr, name: &str) -> bool {
    match expr {
        Expr::Nested(inner) => is_call_of(inner, name),
        Expr::Function(function) => function.name.to_string().eq_ignore_ascii_case(name),
        _ => false,
    }
}

fn is_seventh(expr: &Expr) -> bool {
    number_text(expr) == Some(SEVENTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seventh_day_tells_that_the_first_is_sunday() {
        for sql in [
            "SELECT count(*) FROM t WHERE DAYOFWEEK(x) IN (1, 7)",
            "SELECT count(*) FROM t WHERE EXTRACT(DAYOFWEEK FROM x) = 7",
            "SELECT CASE DAYOFWEEK(x) WHEN 1 THEN 'Sun' WHEN 7 THEN 'Sat' END FROM t",
        ] {
            assert!(misnumbers_days(sql), "{sql}");
        }
        for sql in [
            "SELECT count(*) FROM t WHERE DAYOFWEEK(x) IN (0, 6)",
            "SELECT (dayofweek(x) + 6) % 7, dayofweek(x) % 7 FROM t",
        ] {
            assert!(!misnumbers_days(sql), "{sql}");
        }
        assert!(weekday_note("SELECT WEEKDAY(x) FROM t").is_some());
        assert_eq!(weekday_note("SELECT weekday FROM t"), None);
        assert_eq!(weekday_note("SELECT date_part('dow', x) FROM t"), None);
    }
}
