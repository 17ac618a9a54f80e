//! Rows that come up more often than they are asked for: a list of one table's columns in which a join makes a row come
//! up several times, groups of a column that is called as what is computed of it, a count that is called by things of
//! which the rows that it counts are several, and a sum over the days of a table that keeps the state of each day.

use querent_catalog::TableName;
use sqlparser::ast::{
    DuplicateTreatment, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Select, SelectItem,
};

use super::fan_out::{group_keys, repeated};
use super::left_out::is_of_family;
use super::{CheckKind, Checked, Finding, rows_read};
use crate::repair::{Scope, ScopeSource, column_of, folded_words, selected_as};
use crate::sql_text::{quote_identifier, quoted_table};

/// Words in the name of a count that say that equal ones count once.
const DISTINCT_WORDS: [&str; 3] = ["distinct", "different", "unique"];
/// Words in the name of a count that do not say of what it is.
const COUNT_WORDS: [&str; 9] = ["num", "number", "no", "of", "n", "count", "cnt", "total", "the"];

/// Looks for rows that come up again; `is_list`: the SELECT is the query itself and has returned several rows.
pub(super) async fn check(checked: &Checked<'_>, select: &Select, is_list: bool) -> Vec<Finding> {
    let scope = checked.scope();
    let mut findings = Vec::new();
    if is_list {
        findings.extend(listed_again(checked, select, &scope).await);
    }
    findings.extend(grouped_by_column(checked, select, &scope).await);
    findings.extend(summed_states(checked, select, &scope).await);
    for item in &select.projection {
        let SelectItem::ExprWithAlias { expr, alias } = item else { continue };
        findings.extend(counted_again(checked, select, &scope, expr, &alias.value).await);
    }
    findings
}

/// Finds a list of columns of one table in which a join repeats its rows.
async fn listed_again(checked: &Checked<'_>, select: &Select, scope: &Scope) -> Option<Finding> {
    let query = checked.query;
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    let is_cut = query.limit_clause.is_some() || query.fetch.is_some() || select.top.is_some();
    if scope.sources.len() < 2 || select.distinct.is_some() || is_grouped || is_cut {
        return None;
    }
    let mut of: Option<&ScopeSource> = None;
    for item in &select.projection {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { return None };
        let (source, _, _) = column_of(scope, expr)?;
        if of.is_some_and(|known| known.name != source.name) {
            return None;
        }
        of = Some(source);
    }
    let found = repeated(checked, select, scope, of?, Vec::new()).await?;
    let message = format!(
        "the join with {} lists rows of `{}` once for each match; write SELECT DISTINCT to list each once",
        found.by, found.table
    );
    Some(Finding::new(CheckKind::FanOut, message))
}

/// Finds `date_trunc('month', day) AS day ... GROUP BY day`: that groups by the column, and the months come up again.
async fn grouped_by_column(checked: &Checked<'_>, select: &Select, scope: &Scope) -> Option<Finding> {
    let GroupByExpr::Expressions(keys, _) = &select.group_by else { return None };
    let (key, computed) = keys.iter().find_map(|key| {
        let is_column = matches!(key, Expr::Identifier(_)) && column_of(scope, key).is_some();
        let computed = selected_as(select, key).filter(|computed| is_column && column_of(scope, computed).is_none())?;
        Some((key, computed))
    })?;
    let mut groups = vec![computed.to_string()];
    let others = keys.iter().filter(|other| *other != key);
    groups.extend(others.map(|other| selected_as(select, other).unwrap_or_else(|| other.clone()).to_string()));
    let (with, rows) = (checked.with_clause(), rows_read(select));
    let sql = format!("{with}SELECT 1 {rows} GROUP BY {} HAVING count(DISTINCT {key}) > 1 LIMIT 1", groups.join(", "));
    let message = format!(
        "`GROUP BY {key}` groups by the column, not by `{computed}` which the query calls so: its values come up several \
         times; group by the expression"
    );
    checked.has_rows(&sql).await.then(|| Finding::new(CheckKind::FanOut, message))
}

/// Finds `sum(on_hand)` over a table of snapshots, in which each thing comes up with its state of each day.
async fn summed_states(checked: &Checked<'_>, select: &Select, scope: &Scope) -> Option<Finding> {
    let [source] = scope.sources.as_slice() else { return None };
    let (table, columns) = (source.table.as_ref()?, source.columns.as_ref()?);
    let is_time = |data_type: &Option<arrow::datatypes::DataType>| {
        data_type.as_ref().is_some_and(arrow::datatypes::DataType::is_temporal)
    };
    let (day, _) = columns.iter().find(|(_, data_type)| is_time(data_type))?;
    let is_called_so = is_of_snapshots(&table.table) || is_of_snapshots(day);
    let sum = select.projection.iter().map(ToString::to_string).find(|item| item.to_lowercase().starts_with("sum("))?;
    // What says the day, as a condition or as a group, is right.
    let says_day = |text: String| text.to_lowercase().contains(&day.to_lowercase());
    if select.selection.as_ref().is_some_and(|filter| says_day(filter.to_string()))
        || group_keys(select)?.into_iter().any(says_day)
    {
        return None;
    }
    let others: Vec<&str> = columns.iter().filter(|(_, kind)| !is_time(kind)).map(|(name, _)| name.as_str()).collect();
    let is_state = is_called_so || (is_of_state(&sum) && is_grid(checked, table, &others, day).await);
    if !is_state {
        return None;
    }
    let (with, rows, day) = (checked.with_clause(), rows_read(select), quote_identifier(day));
    let sql = format!("{with}SELECT count(DISTINCT {day}) {rows} HAVING count(DISTINCT {day}) > 1");
    let days = checked.rows(&sql, 1).await?.first()?.first().cloned()?;
    let message = format!(
        "`{table}` has a row for each {day}, and `{sum}` adds up those of {days}; take the rows of one, such as those of \
         `max({day})`"
    );
    Some(Finding::new(CheckKind::FanOut, message))
}

/// Whether a name says that rows are a state at a time: `stock_snapshots`, `as_of_date`.
fn is_of_snapshots(name: &str) -> bool {
    let lower = name.to_lowercase();
    ["snapshot", "as_of", "asof"].iter().any(|word| lower.contains(word))
}

/// Whether a sum is of a column that is called as a state, of which there is one at each time: `kg_left`, `balance`.
fn is_of_state(sum: &str) -> bool {
    const STATES: [&str; 12] = [
        "left",
        "hand",
        "balance",
        "stock",
        "inventory",
        "remaining",
        "headcount",
        "odometer",
        "backlog",
        "occupancy",
        "level",
        "bestand",
    ];
    let inner = sum.to_lowercase();
    let inner = inner.split(')').next().unwrap_or_default();
    let last = inner.rsplit('.').next().unwrap_or_default();
    last.split(|c: char| !c.is_alphanumeric()).any(|word| STATES.contains(&word))
}

/// Whether a table has a row for each thing and each day: each value of one of its first columns with each day.
async fn is_grid(checked: &Checked<'_>, table: &TableName, columns: &[&str], day: &str) -> bool {
    /// Columns that may be what tells the things apart.
    const TRIED: usize = 3;
    let (name, day) = (quoted_table(table), quote_identifier(day));
    for column in columns.iter().take(TRIED) {
        let column = quote_identifier(column);
        let sql = format!(
            "SELECT 1 FROM {name} HAVING count(DISTINCT {day}) > 1 AND count(DISTINCT {column}) > 1 AND count(*) = \
             count(DISTINCT {day}) * count(DISTINCT {column})"
        );
        if checked.has_rows(&sql).await {
            return true;
        }
    }
    false
}

/// Finds `count(customer_id) AS customers`, and `count(*) AS customers` of orders, where a customer has several.
async fn counted_again(
    checked: &Checked<'_>,
    select: &Select,
    scope: &Scope,
    expr: &Expr,
    name: &str,
) -> Option<Finding> {
    let counted = counted(expr)?;
    let mut words = folded_words(&name.replace('_', " "));
    words.retain(|word| !COUNT_WORDS.contains(&word.as_str()));
    let is_distinct = words.iter().any(|word| DISTINCT_WORDS.contains(&word.as_str()));
    words.retain(|word| !DISTINCT_WORDS.contains(&word.as_str()));
    let is_id_of = |column: &str| {
        let of = folded_words(&column.replace('_', " "));
        let is_called = |of: &[String]| {
            of.len() == words.len() && of.iter().zip(&words).all(|(one, other)| is_of_family(one, other))
        };
        of.split_last().is_some_and(|(last, of)| last == "id" && !of.is_empty() && is_called(of))
    };
    let (source, column) = match counted {
        CountedRows::Of(argument) => {
            let (source, column, _) = column_of(scope, argument)?;
            if !is_id_of(column) && !is_distinct {
                return None;
            }
            (source, column)
        }
        // The rows of a table that is called so may be what is counted.
        CountedRows::All => {
            let is_called =
                |source: &ScopeSource| source.table.as_ref().is_some_and(|table| folded_words(&table.table) == words);
            if scope.sources.iter().any(is_called) {
                return None;
            }
            let mut columns = scope
                .sources
                .iter()
                .flat_map(|source| source.columns.iter().flatten().map(move |(column, _)| (source, column.as_str())));
            columns.find(|&(_, column)| is_id_of(column))?
        }
    };
    source.table.as_ref()?;
    let column = format!("{}.{}", quote_identifier(&source.name), quote_identifier(column));
    let mut keys = group_keys(select)?;
    keys.push(column.clone());
    let (with, rows) = (checked.with_clause(), rows_read(select));
    let sql = format!(
        "{with}SELECT 1 {rows} GROUP BY {} HAVING count(*) > 1 AND count({column}) > 0 LIMIT 1",
        keys.join(", ")
    );
    let message = format!(
        "`{expr} AS {name}` counts rows, and several have the same {column}; write count(DISTINCT {column}) to count \
         each once"
    );
    checked.has_rows(&sql).await.then(|| Finding::new(CheckKind::FanOut, message))
}

/// What a count that is not of the distinct values is of.
#[derive(Debug, Clone, Copy)]
enum CountedRows<'e> {
    All,
    /// The rows with a value.
    Of(&'e Expr),
}

/// Returns what an expression counts.
fn counted(expr: &Expr) -> Option<CountedRows<'_>> {
    let Expr::Function(function) = expr else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    let is_count = function.name.to_string().eq_ignore_ascii_case("count");
    let is_all = list.duplicate_treatment != Some(DuplicateTreatment::Distinct);
    if !is_count || !is_all || function.over.is_some() || function.filter.is_some() {
        return None;
    }
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)] => Some(CountedRows::All),
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] => Some(CountedRows::Of(argument)),
        _ => None,
    }
}
