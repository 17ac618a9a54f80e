//! Texts that are compared as no row can be: `lower(x) = 'Furniture'`, `LIKE 'germ%'` where the values have capitals.
//! Also numbers and days that are kept as texts, of which `'9'` comes after `'10'`, and `'01/02/2024'` before `'31/01/2023'`.

use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, OrderByKind, Select, SelectItem,
};

use super::limits::selected_as;
use super::{CheckKind, Checked, Finding};
use crate::repair::{Scope, column_of};
use crate::sql_text::{quote_identifier, quoted_table, text_of, visit_own_exprs};

/// Rows of which a column's texts are looked at.
const SAMPLED_ROWS: usize = 2_000;
/// Days whose texts begin with the day or the month: `31/01/2024`, `5.3.2024`, `3 Jan 2024`, `Jan 3, 2024`.
const DAY_OR_MONTH_FIRST: &str = "^([0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{4}|[0-9]{1,2}[ .-]+[A-Za-z]{3,9}[ .,-]+[0-9]{4}|[A-Za-z]{3,9} [0-9]{1,2},? [0-9]{4})";

/// The shortest text that is a day with its year.
const SHORTEST_DAY: usize = 8;

/// Looks for texts in another case, and for numbers that are compared as texts.
pub(super) async fn check(checked: &Checked<'_>, select: &Select) -> Vec<Finding> {
    let scope = checked.scope();
    let mut findings = Vec::new();
    for comparison in comparisons(select) {
        if let Expr::InList { expr, list, negated: false } = &comparison {
            findings.extend(list.iter().find_map(|item| never_equal(expr, text_of(item)?, &comparison)));
            continue;
        }
        if let Expr::Between { expr, low, high, .. } = &comparison {
            if text_of(low).is_some_and(is_ordered) && text_of(high).is_some_and(is_ordered) {
                findings.extend(ordered_as_text(checked, &scope, expr).await);
            }
            continue;
        }
        let Expr::BinaryOp { left, op, right } = &comparison else {
            findings.extend(other_case(checked, &scope, &comparison).await);
            continue;
        };
        if *op == BinaryOperator::Eq {
            for (one, other) in [(left, right), (right, left)] {
                let Some(text) = text_of(other) else { continue };
                findings.extend(never_equal(one, text, &comparison));
            }
        } else if text_of(left).is_some_and(is_ordered) || text_of(right).is_some_and(is_ordered) {
            findings.extend(ordered_as_text(checked, &scope, left).await);
            findings.extend(ordered_as_text(checked, &scope, right).await);
        }
    }
    for expr in extremes(select) {
        findings.extend(ordered_as_text(checked, &scope, expr).await);
    }
    if let Some(OrderByKind::Expressions(parts)) = checked.query.order_by.as_ref().map(|order| &order.kind) {
        for part in parts {
            findings.extend(ordered_as_words(select, &part.expr));
            findings.extend(ordered_as_text(checked, &scope, &part.expr).await);
        }
    }
    findings
}

/// Finds `lower(x) = 'Furniture'`, which no row is equal to.
fn never_equal(call: &Expr, text: &str, comparison: &Expr) -> Option<Finding> {
    let (name, _) = only_argument(call)?;
    let turned = match name.as_str() {
        "lower" | "lcase" => text.to_lowercase(),
        "upper" | "ucase" => text.to_uppercase(),
        _ => return None,
    };
    let message = format!("`{comparison}`: no row is '{text}', since `{call}` has no such letters; write '{turned}'");
    (turned != text).then(|| Finding::new(CheckKind::Literal, message))
}

/// Finds `x LIKE 'germ%'` where only values in another case are like that.
async fn other_case(checked: &Checked<'_>, scope: &Scope, comparison: &Expr) -> Option<Finding> {
    let Expr::Like { expr, pattern, negated, any: false, escape_char: None } = comparison else { return None };
    let text = text_of(pattern)?;
    let (source, column, _) = column_of(scope, expr)?;
    let table = source.table.as_ref()?;
    let (name, quoted, pattern) = (quoted_table(table), quote_identifier(column), text.replace('\'', "''"));
    let rows_like = |operator: &str| format!("SELECT 1 FROM {name} WHERE {quoted} {operator} '{pattern}' LIMIT 1");
    if checked.has_rows(&rows_like("LIKE")).await || !checked.has_rows(&rows_like("ILIKE")).await {
        return None;
    }
    let operator = if *negated { "NOT ILIKE" } else { "ILIKE" };
    let message = format!("no row of `{table}.{column}` is LIKE '{text}', but for the case; write {operator}");
    Some(Finding::new(CheckKind::Literal, message))
}

/// Finds `ORDER BY to_char(x, '%d/%m/%Y')`: times whose texts are in another order.
fn ordered_as_words(select: &Select, part: &Expr) -> Option<Finding> {
    let key = selected_as(select, part);
    let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = &key else { return None };
    let format = match list.args.as_slice() {
        [_, FunctionArg::Unnamed(FunctionArgExpr::Expr(format))] => text_of(format)?,
        _ => return None,
    };
    let is_format = ["to_char", "strftime", "date_format"].contains(&name.to_string().to_lowercase().as_str());
    // What begins with its largest part is in order; a part alone is, unless it is a name.
    let parts = format.matches('%').count();
    let is_ordered = ["%Y", "%G", "%F", "%s"].iter().any(|first| format.starts_with(first));
    let is_name = ["%B", "%b", "%h", "%A", "%a"].iter().any(|word| format.contains(word));
    let message = format!("`{key}` is ordered as a text, letter by letter, and not by time; order by the time itself");
    (is_format && (is_name || (parts > 1 && !is_ordered && !is_clock(format))))
        .then(|| Finding::new(CheckKind::Text, message))
}

/// Whether a format shows times of day or days of a year, from the largest part on.
fn is_clock(format: &str) -> bool {
    ["%H", "%m-%d", "%m/%d", "%T", "%R", "%V", "%U", "%W"].iter().any(|first| format.starts_with(first))
        && !format.contains("%Y")
}

/// Finds a column of texts that are all numbers, of different lengths, or all days that begin with the day or the month,
/// where their order counts.
async fn ordered_as_text(checked: &Checked<'_>, scope: &Scope, expr: &Expr) -> Option<Finding> {
    let (source, column, data_type) = column_of(scope, expr)?;
    let table = source.table.as_ref().filter(|_| data_type.is_some_and(arrow::datatypes::DataType::is_string))?;
    let quoted = quote_identifier(column);
    let sql = format!(
        "SELECT count(*) = count(TRY_CAST(v AS DOUBLE)) AND count(DISTINCT strpos(concat(v, '.'), '.')) > 1, count(*) = \
         count(CASE WHEN regexp_like(v, '{DAY_OR_MONTH_FIRST}') THEN 1 END) AND count(DISTINCT v) > 1 FROM (SELECT \
         {quoted} AS v FROM {} WHERE {quoted} IS NOT NULL LIMIT {SAMPLED_ROWS}) AS sampled",
        quoted_table(table)
    );
    let row = checked.rows(&sql, 1).await?.pop()?;
    let is_true = |at: usize| row.get(at).is_some_and(|value| value == "true");
    let message = match (is_true(0), is_true(1)) {
        (true, _) => format!(
            "`{table}.{column}` holds numbers as texts, which are ordered letter by letter: '9' comes after '10'; write \
             CAST({column} AS DOUBLE)"
        ),
        (_, true) => format!(
            "`{table}.{column}` holds days as texts that begin with the day or the month: they are ordered letter by \
             letter, and not by time; read them with to_date({column}, ...)"
        ),
        _ => return None,
    };
    Some(Finding::new(CheckKind::Text, message))
}

/// Returns the comparisons of a SELECT's conditions and of what it selects, outside of its subqueries.
fn comparisons(select: &Select) -> Vec<Expr> {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq};
    let mut found = Vec::new();
    visit_own_exprs(select, |expr| {
        let is_comparison = match expr {
            Expr::BinaryOp { op, .. } => matches!(op, Eq | Gt | GtEq | Lt | LtEq),
            Expr::Like { .. } | Expr::InList { .. } | Expr::Between { .. } => true,
            _ => false,
        };
        if is_comparison {
            found.push(expr.clone());
        }
    });
    found
}

/// Returns what a SELECT takes the least or the greatest of.
fn extremes(select: &Select) -> Vec<&Expr> {
    let selected = select.projection.iter().filter_map(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    });
    selected
        .filter_map(only_argument)
        .filter(|(name, _)| ["min", "max"].contains(&name.as_str()))
        .map(|(_, of)| of)
        .collect()
}

/// Returns the lowercase name of a call of one argument, with that.
fn only_argument(expr: &Expr) -> Option<(String, &Expr)> {
    let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = expr else { return None };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] => Some((name.to_string().to_lowercase(), argument)),
        _ => None,
    }
}

/// Whether a text is a number, or may be a day: what it is compared with may be ordered otherwise than its texts are.
fn is_ordered(text: &str) -> bool {
    let is_day = text.len() >= SHORTEST_DAY && text.ends_with(|c: char| c.is_ascii_digit());
    text.trim().parse::<f64>().is_ok_and(f64::is_finite) || is_day
}
