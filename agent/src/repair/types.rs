//! Columns that are computed with, or compared, as another type than they have: sums and averages of texts, parts of
//! dates that are kept as texts, texts beside numbers, truth values beside `1`, days beside the number of a year, and
//! texts that are added.

use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use chrono::NaiveDate;
use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Query, Select, Statement, Value,
    VisitMut, VisitorMut,
};

use super::joins::expression;
use super::scopes::{Scopes, column_of};
use super::written_values::{amount_in, month_number};
use super::{KnownTables, Repair, RepairKind};
use crate::sql_text::{has_expr, number_text, text_of};

/// Functions of numbers, and those of times.
const OF_NUMBERS: [&str; 11] =
    ["sum", "avg", "mean", "stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp", "round", "trunc"];
const OF_TIMES: [&str; 14] = [
    "year",
    "month",
    "day",
    "quarter",
    "week",
    "hour",
    "minute",
    "dayofweek",
    "dayofyear",
    "dayname",
    "monthname",
    "date_part",
    "date_trunc",
    "date_diff",
];

/// Casts the texts that numbers or times are taken of.
pub(super) fn repair(statement: &mut Statement, known: &KnownTables, database: &str, repairs: &mut Vec<Repair>) {
    let mut caster = TextCaster { scopes: Scopes::new(known, database), repairs };
    let _: ControlFlow<()> = VisitMut::visit(statement, &mut caster);
}

/// Whether a statement has a number that may be a year or a day.
pub(super) fn has_number_of_time(statement: &Statement) -> bool {
    let is_of_time = |text: &str| is_year(text) || day_of_digits(text).is_some();
    has_expr(statement, |expr| number_text(expr).is_some_and(is_of_time))
}

/// Whether a statement compares days with the number of a year or of a day, as `hired > 2016`, which a column of days
/// takes for a number of days.
pub(super) fn compares_days_with_numbers(statement: &Statement, known: &KnownTables, database: &str) -> bool {
    let mut repairs = Vec::new();
    repair(&mut statement.clone(), known, database, &mut repairs);
    repairs.iter().any(|one| one.why == OF_YEAR || one.why == OF_DAY)
}

struct TextCaster<'a> {
    scopes: Scopes<'a>,
    repairs: &'a mut Vec<Repair>,
}

impl VisitorMut for TextCaster<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.scopes.enter_query(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.scopes.leave_query();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        self.scopes.enter_select(select);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<()> {
        self.scopes.leave_select();
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) => {
                let name = name.to_string().to_lowercase();
                if let ("trunc", [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))]) =
                    (name.as_str(), list.args.as_slice())
                    && self.kind_of(argument).is_some_and(|kind| kind.is_temporal())
                {
                    let text = format!("CAST({argument} AS DATE)");
                    self.put(expr, &text, "Oracle's TRUNC takes the day of a time");
                    return ControlFlow::Continue(());
                }
                if let ("sum" | "total" | "avg", [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))]) =
                    (name.as_str(), list.args.as_mut_slice())
                    && self.is_condition(argument)
                {
                    let text = match name.as_str() {
                        "avg" => format!("CAST({argument} AS BIGINT)"),
                        _ => format!("CASE WHEN {argument} THEN 1 ELSE 0 END"),
                    };
                    self.put(argument, &text, "a condition is 1 or 0 in MySQL and SQLite");
                    return ControlFlow::Continue(());
                }
                let as_time = OF_TIMES.contains(&name.as_str());
                if as_time || OF_NUMBERS.contains(&name.as_str()) {
                    for argument in &mut list.args {
                        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) = argument {
                            self.cast(argument, as_time);
                        }
                    }
                }
            }
            Expr::Extract { expr, .. } => self.cast(expr, true),
            Expr::BinaryOp { left, op: BinaryOperator::Plus, right } if self.are_texts(left, right) => {
                let text = format!("{left} || {right}");
                self.put(expr, &text, "texts are joined with || here");
            }
            Expr::BinaryOp { left, op: op @ (BinaryOperator::Eq | BinaryOperator::NotEq), right }
                if is_empty_text(right) && self.kind_of(left).is_some_and(|kind| !kind.is_string()) =>
            {
                let test = if *op == BinaryOperator::Eq { "IS NULL" } else { "IS NOT NULL" };
                let text = format!("{left} {test}");
                self.put(expr, &text, "the column holds no texts; what is empty has no value");
            }
            Expr::BinaryOp { left, op: BinaryOperator::Eq | BinaryOperator::NotEq, right } if is_month_of(left) => {
                self.month_as_number(right);
            }
            Expr::BinaryOp { left, op, right } => {
                use BinaryOperator::{Divide, Eq, Gt, GtEq, Lt, LtEq, Minus, Modulo, Multiply, NotEq, Plus};
                match op {
                    Divide | Minus | Modulo | Multiply | Plus => {
                        if *op == Multiply {
                            self.put_days_between(left);
                        }
                        self.cast(left, false);
                        self.cast(right, false);
                    }
                    Eq | Gt | GtEq | Lt | LtEq | NotEq => {
                        self.compare(left, &mut [&mut **right]);
                        self.compare(right, &mut [&mut **left]);
                    }
                    _ => {}
                }
            }
            Expr::Like { expr, .. } | Expr::ILike { expr, .. } | Expr::Substring { expr, .. } => {
                self.time_as_text(expr)
            }
            Expr::Between { expr, low, high, .. } => self.compare(expr, &mut [&mut **low, &mut **high]),
            Expr::InList { expr, list, .. } if is_month_of(expr) => {
                list.iter_mut().for_each(|item| self.month_as_number(item));
            }
            Expr::InList { expr, list, .. } if self.kind_of(expr).is_some_and(|kind| is_of_days(&kind)) => {
                let mut constants: Vec<&mut Expr> = list.iter_mut().collect();
                self.compare(expr, &mut constants);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl TextCaster<'_> {
    /// Returns the type of a column; `None` where it is none, or not known.
    fn kind_of(&self, expr: &Expr) -> Option<DataType> {
        self.scopes.inner_to_outer().find_map(|scope| column_of(scope, expr)).and_then(|(_, _, kind)| kind.cloned())
    }

    /// Whether an expression is true or false.
    fn is_condition(&self, expr: &Expr) -> bool {
        use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
        match expr {
            Expr::Nested(inner) => self.is_condition(inner),
            Expr::BinaryOp { op, .. } => matches!(op, And | Eq | Gt | GtEq | Lt | LtEq | NotEq | Or),
            Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::InList { .. }
            | Expr::Between { .. }
            | Expr::Like { .. }
            | Expr::ILike { .. } => true,
            _ => self.kind_of(expr) == Some(DataType::Boolean),
        }
    }

    /// Makes a text of a column of times that is compared with a pattern, or of which letters are taken.
    fn time_as_text(&mut self, expr: &mut Expr) {
        if self.kind_of(expr).is_some_and(|kind| kind.is_temporal()) {
            let text = format!("CAST({expr} AS VARCHAR)");
            self.put(expr, &text, "the column holds times; their text is taken");
        }
    }

    fn is_text_column(&self, expr: &Expr) -> bool {
        self.kind_of(expr).is_some_and(|kind| kind.is_string())
    }

    /// Whether `+` stands between texts: one of them is a text that is no number, the other a text as well.
    fn are_texts(&self, left: &Expr, right: &Expr) -> bool {
        let joins = |expr: &Expr| {
            is_written_text(expr) || matches!(expr, Expr::BinaryOp { op: BinaryOperator::StringConcat, .. })
        };
        let is_text = |expr: &Expr| joins(expr) || self.is_text_column(expr);
        (joins(left) || joins(right)) && is_text(left) && is_text(right)
    }

    /// Compares a column with constants of its own type.
    fn compare(&mut self, column: &mut Expr, constants: &mut [&mut Expr]) {
        let Some(kind) = self.kind_of(column) else { return };
        if kind == DataType::Boolean {
            for constant in constants {
                if let Some(value) = truth_of(constant) {
                    self.put(constant, value, "the column holds truth values");
                }
            }
        } else if is_of_days(&kind) {
            if constants.iter().all(|constant| number_text(constant).is_some_and(is_year)) {
                let text = format!("year({column})");
                self.put(column, &text, OF_YEAR);
            } else if constants.iter().all(|constant| number_text(constant).and_then(day_of_digits).is_some()) {
                for constant in constants {
                    if let Some(day) = number_text(constant).and_then(day_of_digits) {
                        self.put(constant, &format!("'{day}'"), OF_DAY);
                    }
                }
            }
        } else if kind.is_numeric() {
            for constant in constants {
                if let Some(amount) = text_of(constant).and_then(amount_in) {
                    self.put(constant, &amount, "the column holds numbers");
                }
            }
        } else if kind.is_string() && constants.iter().all(|constant| is_number(constant)) {
            let name = column.to_string().to_lowercase();
            let mut words = name.split(|c: char| !c.is_alphanumeric());
            let is_of_time = words.any(|word| ["date", "day", "time", "year", "month", "birthday"].contains(&word));
            if is_of_time && constants.iter().all(|constant| constant.to_string().len() == YEAR_DIGITS) {
                for constant in constants {
                    let text = format!("'{constant}'");
                    self.put(constant, &text, "the column holds texts; they are compared as texts, as SQLite does");
                }
            } else {
                self.cast(column, false);
            }
        }
    }

    /// Writes the number of a month in the place of its name.
    fn month_as_number(&mut self, expr: &mut Expr) {
        if let Some(month) = text_of(expr).and_then(month_number) {
            self.put(expr, &month.to_string(), "months are numbers");
        }
    }

    /// Returns the days between two times of which an expression is the difference, `(t2 - t1)`; days are subtracted as
    /// such.
    fn days_between(&self, expr: &Expr) -> Option<String> {
        let Expr::Nested(inner) = expr else { return None };
        let Expr::BinaryOp { left, op: BinaryOperator::Minus, right } = inner.as_ref() else { return None };
        let is_time = |side: &Expr| matches!(self.kind_of(side), Some(DataType::Timestamp(_, _)));
        let is_of_time = |side: &Expr| {
            self.kind_of(side).is_some_and(|kind| is_of_days(&kind)) || side.to_string().eq_ignore_ascii_case("now()")
        };
        let is_so = is_of_time(left) && is_of_time(right) && (is_time(left) || is_time(right));
        is_so.then(|| format!("((date_part('epoch', {left}) - date_part('epoch', {right})) / 86400.0)"))
    }

    fn put_days_between(&mut self, expr: &mut Expr) {
        if let Some(days) = self.days_between(expr) {
            self.put(expr, &days, "the difference of two times is a number of days there");
        }
    }

    /// Writes an expression in the place of another.
    fn put(&mut self, expr: &mut Expr, text: &str, why: &str) {
        let Some(replaced) = expression(text) else { return };
        let repair = Repair::new(RepairKind::Type, expr.to_string(), text, why);
        *expr = replaced;
        if !self.repairs.contains(&repair) {
            self.repairs.push(repair);
        }
    }

    /// Casts a column of texts, or parts of a time as SQLite gives them.
    fn cast(&mut self, expr: &mut Expr, as_time: bool) {
        if !as_time && is_part_of_time(expr) {
            let text = format!("CAST({expr} AS DOUBLE)");
            self.put(expr, &text, "SQLite computes with the digits of a text");
            return;
        }
        if !self.is_text_column(expr) {
            return;
        }
        let (text, why) = match as_time {
            true => (format!("CAST({expr} AS TIMESTAMP)"), "the column holds texts; they are read as times"),
            false => (
                format!("TRY_CAST({expr} AS DOUBLE)"),
                "the column holds texts; they are read as numbers, and those that are none count as null",
            ),
        };
        self.put(expr, &text, why);
    }
}

/// Digits of a year, and of a day with its year and month.
const YEAR_DIGITS: usize = 4;
const DAY_DIGITS: usize = 8;

/// Why a column of times is compared by its year.
const OF_YEAR: &str = "the column holds times, and the number is a year";
/// Why a number is written as a day.
const OF_DAY: &str = "the column holds times, and the number is a day";

fn is_of_days(kind: &DataType) -> bool {
    matches!(kind, DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, _))
}

/// Whether a number is a year: 1000 to 2999.
fn is_year(number: &str) -> bool {
    number.len() == YEAR_DIGITS && number.starts_with(['1', '2']) && number.bytes().all(|digit| digit.is_ascii_digit())
}

/// Returns the day that a number of eight digits is: 20240131.
fn day_of_digits(number: &str) -> Option<NaiveDate> {
    let is_whole = number.len() == DAY_DIGITS && number.starts_with(['1', '2']);
    NaiveDate::parse_from_str(number, "%Y%m%d").ok().filter(|_| is_whole)
}

fn is_number(expr: &Expr) -> bool {
    number_text(expr).is_some()
}

/// Whether an expression is the month of a time, as a number.
fn is_month_of(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_month_of(inner),
        Expr::Extract { field, .. } => field.to_string().eq_ignore_ascii_case("month"),
        Expr::Function(function) => function.name.to_string().eq_ignore_ascii_case("month"),
        _ => false,
    }
}

fn is_empty_text(expr: &Expr) -> bool {
    text_of(expr) == Some("")
}

/// Whether an expression is a text that is no number.
fn is_written_text(expr: &Expr) -> bool {
    text_of(expr).is_some_and(|text| text.trim().parse::<f64>().is_err())
}

/// Returns the truth value that a constant of SQLite or MySQL stands for.
fn truth_of(expr: &Expr) -> Option<&'static str> {
    let Expr::Value(value) = expr else { return None };
    let written = match &value.value {
        Value::Number(text, _) => text.clone(),
        Value::SingleQuotedString(text) => text.trim().to_lowercase(),
        _ => return None,
    };
    match written.as_str() {
        "1" | "true" | "t" | "yes" | "y" => Some("true"),
        "0" | "false" | "f" | "no" | "n" => Some("false"),
        _ => None,
    }
}

/// Whether an expression is `strftime` with a format of digits alone, such as `'%Y'`.
fn is_part_of_time(expr: &Expr) -> bool {
    let text = expr.to_string();
    let is_digits = ["'%Y')", "'%m')", "'%d')", "'%H')", "'%M')", "'%S')", "'%s')", "'%j')", "'%w')"];
    let Expr::Function(function) = expr else {
        // The Julian day that SQLite's `%J` is.
        return matches!(expr, Expr::Cast { .. }) && text.ends_with("/ 86400.0 + 2440587.5) AS VARCHAR)");
    };
    function.name.to_string().eq_ignore_ascii_case("strftime") && is_digits.iter().any(|end| text.ends_with(end))
}
