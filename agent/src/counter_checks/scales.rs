//! Numbers in another unit than they are taken for: a percentage that is compared with a fraction, and cents that are
//! called dollars.

use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Select, SelectItem, Value,
};

use super::{CheckKind, Checked, Finding};
use crate::repair::{Scope, column_of};
use crate::sql_text::{quote_identifier, quoted_table, visit_own_exprs};

/// Words of a column that holds shares, as percentages or as fractions.
const SHARES: &[&str] = &["pct", "percent", "percentage", "rate", "ratio", "share", "fraction"];
/// The most that a share is where it is a fraction: a growth may be of more than all.
const MOST_AS_FRACTION: f64 = 2.0;
/// Units of one thing, each with the words by which names have it.
const UNITS: &[&[&[&str]]] = &[
    &[
        &["ms", "millis", "milliseconds"],
        &["sec", "secs", "second", "seconds"],
        &["min", "mins", "minute", "minutes"],
        &["hr", "hrs", "hour", "hours"],
        &["day", "days"],
    ],
    &[&["cent", "cents", "pence"], &["usd", "dollar", "dollars", "eur", "euro", "euros", "gbp", "pounds"]],
    &[&["mg"], &["gram", "grams"], &["kg", "kilograms"], &["tons", "tonnes"]],
    &[&["mm"], &["cm"], &["meters", "metres"], &["km", "kilometers", "kilometres"], &["miles"]],
    &[&["bytes"], &["kb", "kilobytes"], &["mb", "megabytes"], &["gb", "gigabytes"], &["tb", "terabytes"]],
];
/// Aggregates whose result is in the unit of their argument.
const KEEPS_UNIT: [&str; 6] = ["sum", "avg", "mean", "min", "max", "median"];

/// Looks for shares on another scale, and for results that are called by another unit.
pub(super) async fn check(checked: &Checked<'_>, select: &Select) -> Vec<Finding> {
    let scope = checked.scope();
    let mut findings = Vec::new();
    for (column, number) in scaled(select) {
        findings.extend(other_scale(checked, &scope, &column, number).await);
    }
    findings.extend(select.projection.iter().filter_map(|item| called_otherwise(&scope, item)));
    findings
}

/// Finds a column of percentages that is taken for fractions, and the other way around.
async fn other_scale(checked: &Checked<'_>, scope: &Scope, column: &Expr, number: f64) -> Option<Finding> {
    let (source, name, data_type) = column_of(scope, column)?;
    let table = source.table.as_ref().filter(|_| data_type.is_some_and(arrow::datatypes::DataType::is_numeric))?;
    if !words_of(name).any(|word| SHARES.contains(&word.as_str())) {
        return None;
    }
    let quoted = quote_identifier(name);
    let sql = format!(
        "SELECT max(abs({quoted})), min(CASE WHEN {quoted} <> 0 THEN abs({quoted}) END) FROM {}",
        quoted_table(table)
    );
    let row = checked.rows(&sql, 1).await?.pop()?;
    let [most, least] = row.as_slice() else { return None };
    let (most, least): (f64, f64) = (most.parse().ok()?, least.parse().ok()?);
    // A percentage may be less than 1; a bound that is below every value tells no rows apart.
    let is_percentage = most > MOST_AS_FRACTION && (number == 1.0 || number < least.min(1.0));
    let is_fraction = most <= 1.0 && number > 1.0;
    let message = match (is_percentage, is_fraction) {
        (true, _) => format!("`{table}.{name}` goes up to {most}: it is in percent, and {number} is taken for a share"),
        (_, true) => {
            format!("`{table}.{name}` is at most {most}: it is a share of 1, and {number} is taken for percent")
        }
        _ => return None,
    };
    Some(Finding::new(CheckKind::Condition, message))
}

/// Returns the columns that are compared with a number of more than 0 and no 1, or are taken from 1, each with that number.
fn scaled(select: &Select) -> Vec<(Expr, f64)> {
    use BinaryOperator::{Gt, GtEq, Lt, LtEq, Minus};
    let mut found = Vec::new();
    visit_own_exprs(select, |expr| {
        let Expr::BinaryOp { left, op, right } = expr else { return };
        match (op, number_of(left), number_of(right)) {
            (Gt | GtEq | Lt | LtEq, Some(number), None) if number > 0.0 && number != 1.0 => {
                found.push(((**right).clone(), number));
            }
            (Gt | GtEq | Lt | LtEq, None, Some(number)) if number > 0.0 && number != 1.0 => {
                found.push(((**left).clone(), number));
            }
            (Minus, Some(1.0), None) => found.push(((**right).clone(), 1.0)),
            _ => {}
        }
    });
    found
}

/// Finds `sum(paid_cents) AS dollars`: a unit that the column does not have.
fn called_otherwise(scope: &Scope, item: &SelectItem) -> Option<Finding> {
    let SelectItem::ExprWithAlias { expr, alias } = item else { return None };
    let column = match expr {
        Expr::Function(function) if KEEPS_UNIT.contains(&function.name.to_string().to_lowercase().as_str()) => {
            let FunctionArguments::List(list) = &function.args else { return None };
            match list.args.as_slice() {
                [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] => argument,
                _ => return None,
            }
        }
        other => other,
    };
    let (_, name, _) = column_of(scope, column)?;
    let unit = |name: &str| {
        let words: Vec<String> = words_of(name).collect();
        UNITS.iter().enumerate().find_map(|(thing, units)| {
            let at = units.iter().position(|unit| words.iter().any(|word| unit.contains(&word.as_str())))?;
            Some((thing, at))
        })
    };
    let (of_column, of_alias) = (unit(name)?, unit(&alias.value)?);
    let message = format!("`{expr}` is called `{}`, and `{name}` is in another unit", alias.value);
    (of_column.0 == of_alias.0 && of_column.1 != of_alias.1).then(|| Finding::new(CheckKind::Condition, message))
}

fn words_of(name: &str) -> impl Iterator<Item = String> {
    let lower = name.to_lowercase();
    let words: Vec<String> = lower.split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect();
    words.into_iter()
}

fn number_of(expr: &Expr) -> Option<f64> {
    let Expr::Value(value) = expr else { return None };
    match &value.value {
        Value::Number(number, _) => number.parse().ok(),
        _ => None,
    }
}
