//! Joins that repeat rows of what is summed: where a row of a table comes up more than once within a group, its values
//! are counted as often.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use sqlparser::ast::{
    BinaryOperator, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr,
    Query, Select, SelectItem, SetExpr, TableFactor, WindowType,
};

use super::limits::selected_as;
use super::{CheckKind, Checked, Finding, rows_read};
use crate::repair::{Scope, ScopeSource, column_of, folded_words};
use crate::sql_text::{own_columns, quote_identifier, quoted_table, visit_own_exprs};

/// The most columns by which the rows of a table are told apart.
const MAX_COLUMNS: usize = 40;

/// Aggregates that every row counts in, so that one which comes up twice counts twice.
const WEIGHED: [&str; 14] = [
    "sum",
    "avg",
    "mean",
    "count",
    "median",
    "approx_median",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "var",
    "variance",
    "var_pop",
    "var_samp",
    "mode",
];

/// Words in the name of a count that do not say of what it is.
const OF_COUNTS: [&str; 9] = ["num", "number", "no", "of", "n", "count", "cnt", "total", "the"];

/// Looks for the tables whose rows a sum or an average counts more than once.
pub(super) async fn check(checked: &Checked<'_>, select: &Select) -> Vec<Finding> {
    let scope = checked.scope();
    let mut findings = Vec::new();
    let mut seen: BTreeMap<&str, Option<RepeatedRows>> = BTreeMap::new();
    let mut said: BTreeSet<&str> = BTreeSet::new();
    for (aggregate, columns) in summed(select) {
        let columns = columns.iter().filter_map(|column| column_of(&scope, column));
        let columns: Vec<(&ScopeSource, &str)> = columns.map(|(source, name, _)| (source, name)).collect();
        if scope.sources.len() == 1 {
            for (source, name) in columns {
                let found = repeated_within(checked, select, source, name).await;
                findings.extend(found.map(|found| finding(&found, &aggregate)));
            }
            continue;
        }
        // A quantity times a price counts once for each row of the quantity, however often the price comes up.
        let is_count = aggregate.to_lowercase().starts_with("count");
        let mut first = None;
        for (source, _) in columns {
            // `count(c.id)` counts the rows of the join where it is asked for each customer.
            if is_count && is_one_of_group(checked, select, &scope, source).await {
                first = None;
                break;
            }
            let found = match seen.entry(source.name.as_str()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(repeated(checked, select, &scope, source, Vec::new()).await),
            };
            let Some(found) = found else {
                first = None;
                break;
            };
            if first.is_none() {
                first = Some((source.name.as_str(), finding(found, &aggregate)));
            }
        }
        if let Some((name, found)) = first
            && said.insert(name)
        {
            findings.push(found);
        }
    }
    if scope.sources.len() > 1 {
        for (count, source) in counted_by_name(select, &scope) {
            if !seen.contains_key(source.name.as_str())
                && said.insert(&source.name)
                && let Some(found) = repeated(checked, select, &scope, source, Vec::new()).await
            {
                findings.push(finding(&found, &count));
            }
        }
    }
    findings
}

/// A table whose rows a join repeats.
pub(super) struct RepeatedRows {
    pub(super) table: String,
    /// The other tables of the join.
    pub(super) by: String,
}

fn finding(found: &RepeatedRows, aggregate: &str) -> Finding {
    let message = format!(
        "the join with {} repeats rows of `{}`, so {aggregate} counts them more than once; sum before joining, count \
         the DISTINCT ones, or leave the join out",
        found.by, found.table
    );
    Finding::new(CheckKind::FanOut, message)
}

/// Looks into the query that a SELECT reads from, where the column that is summed is one of a join in it.
async fn repeated_within(
    checked: &Checked<'_>,
    select: &Select,
    source: &ScopeSource,
    column: &str,
) -> Option<RepeatedRows> {
    let query = query_of(checked.query, select, &source.name)?;
    let SetExpr::Select(inner) = query.body.as_ref() else { return None };
    let is_grouped = !matches!(&inner.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    if inner.distinct.is_some() || is_grouped || query.limit_clause.is_some() || query.with.is_some() {
        return None;
    }
    let Checked { session, known, at_hand, times, is_cut, .. } = *checked;
    let within = Checked { session, query, known, at_hand, times, is_cut };
    let scope = within.scope();
    let (joined, _, _) = column_of(&scope, selected_called(inner, column)?)?;
    // A row may come up once in each of several groups.
    let keys = match &select.group_by {
        GroupByExpr::Expressions(keys, modifiers) if modifiers.is_empty() => keys,
        _ => return None,
    };
    let key_within = |key: &Expr| {
        let name = match selected_as(select, key) {
            Expr::Identifier(name) => name,
            Expr::CompoundIdentifier(parts) => parts.last()?.clone(),
            _ => return None,
        };
        selected_called(inner, &name.value).map(ToString::to_string)
    };
    let keys = keys.iter().map(key_within).collect::<Option<Vec<String>>>()?;
    if scope.sources.len() < 2 {
        return None;
    }
    repeated(&within, inner, &scope, joined, keys).await
}

/// Returns the query that a name of a FROM clause stands for: a subquery, or one of WITH. The name of a
/// subquery without one is empty.
pub(super) fn query_of<'q>(query: &'q Query, select: &'q Select, name: &str) -> Option<&'q Query> {
    let relations = select
        .from
        .iter()
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)));
    for factor in relations {
        match factor {
            TableFactor::Derived { subquery, alias: Some(alias), .. }
                if alias.name.value.eq_ignore_ascii_case(name) && alias.columns.is_empty() =>
            {
                return Some(subquery);
            }
            TableFactor::Derived { subquery, alias: None, .. } if name.is_empty() => return Some(subquery),
            TableFactor::Table { name: table, alias, args: None, .. } => {
                let own = table.0.last()?.as_ident()?;
                let called = alias.as_ref().map_or(own, |alias| &alias.name);
                if called.value.eq_ignore_ascii_case(name) && table.0.len() == 1 {
                    let mut ctes = query.with.iter().flat_map(|with| &with.cte_tables);
                    let cte = ctes.find(|cte| cte.alias.name.value.eq_ignore_ascii_case(&own.value))?;
                    return cte.alias.columns.is_empty().then_some(&*cte.query);
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns what a SELECT gives under a name.
pub(super) fn selected_called<'s>(select: &'s Select, name: &str) -> Option<&'s Expr> {
    select.projection.iter().find_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } => alias.value.eq_ignore_ascii_case(name).then_some(expr),
        SelectItem::UnnamedExpr(expr) => {
            let own = match expr {
                Expr::Identifier(own) => Some(own),
                Expr::CompoundIdentifier(parts) => parts.last(),
                _ => None,
            };
            own.is_some_and(|own| own.value.eq_ignore_ascii_case(name)).then_some(expr)
        }
        _ => None,
    })
}

/// Returns the counts of rows that are called by the name of a table, such as `count(*) AS orders`, each with its table.
fn counted_by_name<'s>(select: &Select, scope: &'s Scope) -> Vec<(String, &'s ScopeSource)> {
    let counts = select.projection.iter().filter_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } if expr.to_string().eq_ignore_ascii_case("count(*)") => {
            let mut words = folded_words(&alias.value.replace('_', " "));
            words.retain(|word| !OF_COUNTS.contains(&word.as_str()));
            (!words.is_empty()).then_some((item.to_string(), words))
        }
        _ => None,
    });
    let of_table = |words: &[String]| {
        let mut sources = scope.sources.iter();
        sources.find(|source| source.table.as_ref().is_some_and(|table| folded_words(&table.table) == words))
    };
    counts.filter_map(|(count, words)| Some((count, of_table(&words)?))).collect()
}

/// Returns the other tables of the join, where rows of `source` come up more than once within a group: of the SELECT, and
/// by `keys`.
pub(super) async fn repeated(
    checked: &Checked<'_>,
    select: &Select,
    scope: &Scope,
    source: &ScopeSource,
    mut keys: Vec<String>,
) -> Option<RepeatedRows> {
    let columns = source.columns.as_ref()?;
    let is_plain =
        |data_type: &Option<arrow::datatypes::DataType>| data_type.as_ref().is_some_and(|known| !known.is_nested());
    if columns.len() > MAX_COLUMNS || !columns.iter().all(|(_, data_type)| is_plain(data_type)) {
        return None;
    }
    let own = qualified_columns(source)?;
    keys.extend(group_keys(select)?);
    keys.extend(own.iter().cloned());
    // What an outer join keeps without a match is no row of the table.
    let is_none: Vec<String> = own.iter().map(|column| format!("{column} IS NULL")).collect();
    let (with, rows) = (checked.with_clause(), rows_read(select));
    let sql = format!(
        "{with}SELECT 1 {rows} GROUP BY {} HAVING count(*) > 1 AND NOT ({}) LIMIT 1",
        keys.join(", "),
        is_none.join(" AND ")
    );
    if !checked.has_rows(&sql).await {
        return None;
    }
    // Rows that the table itself has twice are no work of the join.
    let table = source.table.as_ref()?;
    let bare: Vec<String> = columns.iter().map(|(column, _)| quote_identifier(column)).collect();
    let twice =
        format!("SELECT 1 FROM {} GROUP BY {} HAVING count(*) > 1 LIMIT 1", quoted_table(table), bare.join(", "));
    if checked.has_rows(&twice).await {
        return None;
    }
    let others: Vec<String> = scope
        .sources
        .iter()
        .filter(|other| !std::ptr::eq(*other, source))
        .map(|other| format!("`{}`", other.table.as_ref().map_or(other.name.as_str(), |table| table.table.as_str())))
        .collect();
    Some(RepeatedRows { table: table.to_string(), by: others.join(" and ") })
}

fn qualified_columns(source: &ScopeSource) -> Option<Vec<String>> {
    let qualify = |column: &str| format!("{}.{}", quote_identifier(&source.name), quote_identifier(column));
    Some(source.columns.as_ref()?.iter().map(|(column, _)| qualify(column)).collect())
}

/// Returns what a SELECT groups by; `None` where that is more than a list of expressions.
pub(super) fn group_keys(select: &Select) -> Option<Vec<String>> {
    match &select.group_by {
        GroupByExpr::Expressions(keys, modifiers) if modifiers.is_empty() => {
            Some(keys.iter().map(|key| selected_as(select, key).to_string()).collect())
        }
        _ => None,
    }
}

/// Whether every group of a SELECT is of one row of a table, such as the orders of each customer.
async fn is_one_of_group(checked: &Checked<'_>, select: &Select, scope: &Scope, source: &ScopeSource) -> bool {
    let Some(keys) = group_keys(select) else { return true };
    let GroupByExpr::Expressions(parts, _) = &select.group_by else { return true };
    let is_of_source =
        |key: &Expr| column_of(scope, &selected_as(select, key)).is_some_and(|(found, _, _)| found.name == source.name);
    let Some(own) = qualified_columns(source) else { return true };
    if !parts.iter().any(is_of_source) {
        return false;
    }
    let (with, rows) = (checked.with_clause(), rows_read(select));
    let named: Vec<String> = keys.iter().enumerate().map(|(index, key)| format!("{key} AS k{index}")).collect();
    let names: Vec<String> = (0..keys.len()).map(|index| format!("k{index}")).collect();
    let all: Vec<&str> = keys.iter().chain(&own).map(String::as_str).collect();
    let several = format!(
        "{with}SELECT 1 FROM (SELECT {} {rows} GROUP BY {}) AS grouped GROUP BY {} HAVING count(*) > 1 \
         LIMIT 1",
        named.join(", "),
        all.join(", "),
        names.join(", ")
    );
    !checked.has_rows(&several).await
}

/// Returns the sums, averages and counts of a SELECT, outside of subqueries, each with the columns of one of the parts
/// that it adds up: `sum(l.quantity * p.price - l.discount)` has two.
fn summed(select: &Select) -> Vec<(String, Vec<Expr>)> {
    let mut found = Vec::new();
    let mut look_at = |expr: &Expr| {
        let Expr::Function(function) = expr else { return };
        let FunctionArguments::List(list) = &function.args else { return };
        let [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] = list.args.as_slice() else { return };
        let mut is_of_sums = false;
        visit_own_exprs(argument, |part| is_of_sums |= matches!(part, Expr::Function(inner) if is_sum(inner)));
        if is_sum(function) && !is_of_sums {
            let columns = parts_of_sum(argument).into_iter().map(weighed_columns).filter(|columns| !columns.is_empty());
            found.extend(columns.map(|columns| (function.to_string(), columns)));
        }
    };
    visit_own_exprs(&select.projection, &mut look_at);
    visit_own_exprs(&select.having, &mut look_at);
    found
}

/// Returns what an expression adds up.
fn parts_of_sum(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::Plus | BinaryOperator::Minus, right } => {
            let mut parts = parts_of_sum(left);
            parts.extend(parts_of_sum(right));
            parts
        }
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => parts_of_sum(inner),
        other => vec![other],
    }
}

/// Returns the columns of which an expression has its value: of a CASE those of its results, where they have any.
fn weighed_columns(expr: &Expr) -> Vec<Expr> {
    match expr {
        Expr::Case { conditions, else_result, .. } => {
            let results = conditions.iter().map(|when| &when.result).chain(else_result.as_deref());
            let found: Vec<Expr> = results.flat_map(own_columns).collect();
            if found.is_empty() { own_columns(expr) } else { found }
        }
        Expr::BinaryOp { left, right, .. } => {
            let mut found = weighed_columns(left);
            found.extend(weighed_columns(right));
            found
        }
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => weighed_columns(inner),
        other => own_columns(other),
    }
}

/// Whether a call sums, averages or counts all values, and not the distinct ones.
fn is_sum(function: &Function) -> bool {
    let name = function.name.to_string().to_lowercase();
    let FunctionArguments::List(list) = &function.args else { return false };
    let is_column = matches!(list.args.as_slice(), [FunctionArg::Unnamed(FunctionArgExpr::Expr(_))]);
    // Over a window of all rows, those of the join are summed as well.
    let is_over_all = match &function.over {
        None => true,
        Some(WindowType::WindowSpec(window)) => {
            window.partition_by.is_empty() && window.window_name.is_none() && name != "count"
        }
        Some(WindowType::NamedWindow(_)) => false,
    };
    WEIGHED.contains(&name.as_str())
        && is_over_all
        && is_column
        && list.duplicate_treatment != Some(DuplicateTreatment::Distinct)
}
