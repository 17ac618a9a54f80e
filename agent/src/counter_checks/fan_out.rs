//! Joins that repeat rows of what is summed: where a row of a table comes up more than once within a group, its values
//! are counted as often.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Query, Select,
    SelectItem, Value, Visit, Visitor,
};

use super::{CheckKind, Checked, Finding};
use crate::repair::{Scope, ScopeSource, column_of};
use crate::sql_text::quote_identifier;

/// The most columns by which the rows of a table are told apart.
const MAX_COLUMNS: usize = 40;

/// Looks for the tables whose rows a sum or an average counts more than once.
pub(super) async fn check(checked: &Checked<'_>, select: &Select) -> Vec<Finding> {
    let scope = checked.scope();
    if scope.sources.len() < 2 {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for (aggregate, column) in summed(select) {
        let Some((source, _, _)) = column_of(&scope, &column) else { continue };
        // `count(c.id)` counts the rows of the join where it is asked for each customer.
        if aggregate.to_lowercase().starts_with("count") && is_grouped_by(select, &scope, &source.name) {
            continue;
        }
        if !seen.insert(source.name.clone()) {
            continue;
        }
        if let Some(by) = repeated(checked, select, &scope, source).await {
            let table = source.table.as_ref().map_or_else(|| source.name.clone(), ToString::to_string);
            let message = format!(
                "the join with {by} repeats rows of `{table}`, so {aggregate} counts them more than once; sum before \
                 joining, count the DISTINCT ones, or leave the join out"
            );
            findings.push(Finding::new(CheckKind::FanOut, message));
        }
    }
    findings
}

/// Returns the other tables of the join, where rows of `source` come up more than once within a group.
async fn repeated(checked: &Checked<'_>, select: &Select, scope: &Scope, source: &ScopeSource) -> Option<String> {
    let columns = source.columns.as_ref()?;
    let is_plain =
        |data_type: &Option<arrow::datatypes::DataType>| data_type.as_ref().is_some_and(|known| !known.is_nested());
    if columns.len() > MAX_COLUMNS || !columns.iter().all(|(_, data_type)| is_plain(data_type)) {
        return None;
    }
    let own: Vec<String> = columns
        .iter()
        .map(|(column, _)| format!("{}.{}", quote_identifier(&source.name), quote_identifier(column)))
        .collect();
    let mut keys = group_keys(select)?;
    keys.extend(own.iter().cloned());
    let from: Vec<String> = select.from.iter().map(ToString::to_string).collect();
    let selection = select.selection.as_ref().map(|filter| format!(" WHERE {filter}")).unwrap_or_default();
    let with = checked.query.with.as_ref().map(|with| format!("{with} ")).unwrap_or_default();
    let sql = format!(
        "{with}SELECT 1 FROM {}{selection} GROUP BY {} HAVING count(*) > 1 LIMIT 1",
        from.join(", "),
        keys.join(", ")
    );
    if !checked.has_rows(&sql).await {
        return None;
    }
    // Rows that the table itself has twice are no work of the join.
    let table = source.table.as_ref()?;
    let bare: Vec<String> = columns.iter().map(|(column, _)| quote_identifier(column)).collect();
    let twice = format!(
        "SELECT 1 FROM {}.{} GROUP BY {} HAVING count(*) > 1 LIMIT 1",
        quote_identifier(&table.database),
        quote_identifier(&table.table),
        bare.join(", ")
    );
    if checked.has_rows(&twice).await {
        return None;
    }
    let others: Vec<String> = scope
        .sources
        .iter()
        .filter(|other| !std::ptr::eq(*other, source))
        .map(|other| format!("`{}`", other.table.as_ref().map_or(other.name.as_str(), |table| table.table.as_str())))
        .collect();
    Some(others.join(" and "))
}

/// Returns what a SELECT groups by; `None` where that is more than a list of expressions.
fn group_keys(select: &Select) -> Option<Vec<String>> {
    match &select.group_by {
        GroupByExpr::Expressions(keys, modifiers) if modifiers.is_empty() => {
            let is_name =
                |key: &Expr| matches!(key, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Function(_));
            let keys: Vec<&Expr> = keys.iter().map(|key| selected_at(select, key).unwrap_or(key)).collect();
            keys.iter().all(|key| is_name(key)).then(|| keys.iter().map(ToString::to_string).collect())
        }
        _ => None,
    }
}

/// Returns what a key names by its position.
fn selected_at<'s>(select: &'s Select, key: &Expr) -> Option<&'s Expr> {
    let Expr::Value(value) = key else { return None };
    let Value::Number(number, _) = &value.value else { return None };
    match select.projection.get(number.parse::<usize>().ok()?.checked_sub(1)?)? {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

/// Whether a SELECT groups by a column of a table, or by more than columns.
fn is_grouped_by(select: &Select, scope: &Scope, source: &str) -> bool {
    let GroupByExpr::Expressions(keys, _) = &select.group_by else { return true };
    let mut keys = keys.iter().map(|key| selected_at(select, key).unwrap_or(key));
    keys.any(|key| column_of(scope, key).is_none_or(|(found, _, _)| found.name == source))
}

/// Returns the sums, averages and counts of a SELECT, each with a column that it is of, outside of subqueries.
fn summed(select: &Select) -> Vec<(String, Expr)> {
    struct SumFinder {
        queries: usize,
        inside: Vec<Option<String>>,
        found: Vec<(String, Expr)>,
    }
    impl Visitor for SumFinder {
        type Break = ();
        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.queries += 1;
            ControlFlow::Continue(())
        }
        fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.queries -= 1;
            ControlFlow::Continue(())
        }
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            let outer = self.inside.last().cloned().flatten();
            let own = match expr {
                Expr::Function(function) if is_sum(function) => Some(function.to_string()),
                _ => outer,
            };
            if let (Some(aggregate), Expr::Identifier(_) | Expr::CompoundIdentifier(_), 0) = (&own, expr, self.queries)
            {
                self.found.push((aggregate.clone(), expr.clone()));
            }
            self.inside.push(own);
            ControlFlow::Continue(())
        }
        fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
            self.inside.pop();
            ControlFlow::Continue(())
        }
    }
    let mut finder = SumFinder { queries: 0, inside: Vec::new(), found: Vec::new() };
    let _: ControlFlow<()> = Visit::visit(&select.projection, &mut finder);
    let _: ControlFlow<()> = Visit::visit(&select.having, &mut finder);
    finder.found
}

/// Whether a call sums, averages or counts all values, and not the distinct ones.
fn is_sum(function: &Function) -> bool {
    let name = function.name.to_string().to_lowercase();
    let FunctionArguments::List(list) = &function.args else { return false };
    let is_column = matches!(list.args.as_slice(), [FunctionArg::Unnamed(FunctionArgExpr::Expr(_))]);
    ["sum", "avg", "mean", "count"].contains(&name.as_str())
        && function.over.is_none()
        && is_column
        && list.duplicate_treatment != Some(DuplicateTreatment::Distinct)
}
