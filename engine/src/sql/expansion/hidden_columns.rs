//! Aliases that have the name of a column: `SELECT m, sum(k) AS k FROM t GROUP BY m ORDER BY sum(k)`. In an expression
//! of ORDER BY that name is the column's, as in DuckDB and PostgreSQL; the planner takes it for the alias, or finds two
//! columns of one name where it adds the column to the select list. The same happens where a subquery is joined by a
//! column of that name.

use std::collections::HashSet;

use datafusion::logical_expr::planner::ContextProvider;
use datafusion::sql::sqlparser::ast::{
    Distinct, ExcludeSelectItem, Expr, GroupByExpr, Ident, ObjectName, ObjectNamePart, OrderByExpr, OrderByKind, Query,
    Select, SelectItem, SetExpr, TableAlias, TableFactor, Value, ValueWithSpan, WildcardAdditionalOptions,
};

use super::Expander;
use crate::identifiers::same_name;
use crate::sql::column_names::add_names;
use crate::sql::function_forms::is_aggregate;
use crate::sql::shorthand::{number, plain, query_of, select_star, taken};
use crate::sql::syntax::any_expr;

/// The subquery whose rows are sorted, and the columns that they are sorted by.
const SORTED: &str = "__sorted";
const SORT_KEY: &str = "__sort_key";
/// What a column of a subquery is called that nothing names.
const VALUE: &str = "__subquery_value";

/// Sorts by columns that aliases hide: by the place of the same expression in the select list, or else by columns that
/// are added to it and not shown. Rows that are DISTINCT are sorted by what is shown only.
pub(super) fn sort_by_hidden<S: ContextProvider>(expander: &Expander<'_, S>, query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    let Some(OrderByKind::Expressions(sorts)) = query.order_by.as_mut().map(|order_by| &mut order_by.kind) else {
        return;
    };
    let aliases = hiding_aliases(select);
    if aliases.is_empty() || select.distinct.is_some() || !sorts.iter().any(|sort| names_one(sort, &aliases)) {
        return;
    }
    // Where the tables cannot be planned by themselves (LATERAL ones), names are what the planner takes them for.
    let Ok(sources) = expander.sources(&select.from) else { return };
    let columns: HashSet<String> = sources.into_iter().map(|source| source.name.to_lowercase()).collect();
    let mut hidden: HashSet<String> = aliases.intersection(&columns).cloned().collect();
    if let Some(grouped) = grouped_columns(select) {
        let mut known = grouped;
        sorts.iter().for_each(|sort| add_aggregated_names(&sort.expr, &mut known));
        hidden.retain(|name| known.contains(name));
    }
    for sort in sorts.iter_mut().filter(|sort| names_one(sort, &hidden)) {
        if let Some(place) = place_of(&sort.expr, &select.projection) {
            sort.expr = number(&place.to_string());
        }
    }
    if sorts.iter().any(|sort| names_one(sort, &hidden)) {
        let keys = add_sort_keys(select, sorts);
        let body = std::mem::replace(query.body.as_mut(), SetExpr::Select(Box::new(select_star(Vec::new()))));
        *query.body = without(body, keys);
    }
}

/// The rows of DISTINCT ON are ordered before anything is chosen: aliases and places there are written out as what they stand for.
pub(super) fn write_out_distinct(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    let Select { projection, distinct: Some(Distinct::On(firsts)), .. } = select.as_mut() else { return };
    let meaning = |expr: &Expr| match expr {
        Expr::Identifier(name) => projection.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if same_name(&alias.value, &name.value) => Some(expr.clone()),
            _ => None,
        }),
        Expr::Value(ValueWithSpan { value: Value::Number(place, _), .. }) => {
            let place: usize = place.parse().ok()?;
            let items = projection.get(..place)?;
            let is_star =
                |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
            match items.last()? {
                _ if items.iter().any(is_star) => None,
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr.clone()),
                _ => None,
            }
        }
        _ => None,
    };
    let is_window = |expr: &Expr| any_expr(expr, |part| matches!(part, Expr::Function(call) if call.over.is_some()));
    let sorts = match query.order_by.as_mut().map(|order_by| &mut order_by.kind) {
        Some(OrderByKind::Expressions(sorts)) => sorts.as_mut_slice(),
        _ => &mut [],
    };
    for expr in firsts.iter_mut().chain(sorts.iter_mut().map(|sort| &mut sort.expr)) {
        if let Some(written) = meaning(expr).filter(|written| !is_window(written)) {
            *expr = written;
        }
    }
}

/// Returns the aliases that are no name of the column that they stand for, in lower case.
fn hiding_aliases(select: &Select) -> HashSet<String> {
    let hiding = select.projection.iter().filter_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } => {
            let alias = alias.value.to_lowercase();
            let is_column = |name: &Ident| name.value.to_lowercase() == alias;
            let is_itself = match expr {
                Expr::Identifier(name) => is_column(name),
                Expr::CompoundIdentifier(parts) => parts.last().is_some_and(is_column),
                _ => false,
            };
            (!is_itself).then_some(alias)
        }
        _ => None,
    });
    hiding.collect()
}

/// Returns the columns that rows are grouped by, by their names, where they are grouped: of the others there are no
/// values but in aggregates, so that an alias is meant.
fn grouped_columns(select: &Select) -> Option<HashSet<String>> {
    let mut names = HashSet::new();
    match &select.group_by {
        GroupByExpr::All(_) => Some(names),
        GroupByExpr::Expressions(exprs, _) if !exprs.is_empty() => {
            exprs.iter().for_each(|expr| add_names(expr, &mut names));
            Some(names)
        }
        GroupByExpr::Expressions(..) => {
            let has_aggregate = |item: &SelectItem| match item {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => any_expr(expr, is_aggregated),
                _ => false,
            };
            select.projection.iter().any(has_aggregate).then_some(names)
        }
    }
}

fn add_aggregated_names(expr: &Expr, names: &mut HashSet<String>) {
    any_expr(expr, |part| {
        if is_aggregated(part) {
            add_names(part, names);
        }
        false
    });
}

fn is_aggregated(expr: &Expr) -> bool {
    let Expr::Function(function) = expr else { return false };
    function.over.is_none() && is_aggregate(&function.name.to_string().to_lowercase())
}

/// Returns whether an expression of ORDER BY has one of these names in it. By itself a name is that of an alias.
fn names_one(sort: &OrderByExpr, names: &HashSet<String>) -> bool {
    let mut expr = &sort.expr;
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    if matches!(expr, Expr::Identifier(_)) {
        return false;
    }
    let mut found = HashSet::new();
    add_names(&sort.expr, &mut found);
    !found.is_disjoint(names)
}

/// Returns the place of an expression in a select list, from 1, where it can be told.
fn place_of(expr: &Expr, items: &[SelectItem]) -> Option<usize> {
    let is_one = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
    let text = expr.to_string();
    let is_same = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => expr.to_string() == text,
        _ => false,
    };
    let place = items.iter().position(is_same)?;
    items.iter().all(is_one).then_some(place + 1)
}

/// Adds what rows are sorted by to a select list, but for places and aliases, and sorts by its name there. Returns the
/// names.
fn add_sort_keys(select: &mut Select, sorts: &mut [OrderByExpr]) -> Vec<Ident> {
    let mut keys = Vec::new();
    for sort in sorts {
        let is_shown = match &sort.expr {
            Expr::Value(_) => true,
            Expr::Identifier(name) => super::has_output(select, &name.value),
            _ => false,
        };
        if !is_shown {
            let key = Ident::with_quote('"', format!("{SORT_KEY}{}", keys.len()));
            let expr = taken(&mut sort.expr);
            select.projection.push(SelectItem::ExprWithAlias { expr, alias: key.clone() });
            sort.expr = Expr::Identifier(key.clone());
            keys.push(key);
        }
    }
    keys
}

/// Returns the columns of a query's body but for these.
fn without(body: SetExpr, keys: Vec<Ident>) -> SetExpr {
    let alias = TableAlias { explicit: true, name: Ident::new(SORTED), columns: Vec::new(), at: None };
    let sorted =
        TableFactor::Derived { lateral: false, subquery: Box::new(query_of(body)), alias: Some(alias), sample: None };
    let keys = keys.into_iter().map(|key| ObjectName(vec![ObjectNamePart::Identifier(key)])).collect();
    let options = WildcardAdditionalOptions {
        opt_exclude: Some(ExcludeSelectItem::Multiple(keys)),
        ..WildcardAdditionalOptions::default()
    };
    let projection = vec![SelectItem::Wildcard(options)];
    SetExpr::Select(Box::new(Select { projection, ..select_star(vec![plain(sorted)]) }))
}

/// Renames the columns of a subquery in an expression whose aliases have names that its conditions have too: nothing
/// outside names them, and the planner adds the columns of the conditions beside them.
pub(super) fn rename_subquery_columns(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    let aliases: HashSet<String> = select.projection.iter().filter_map(alias_of).collect();
    let mut conditions = HashSet::new();
    if let Some(condition) = &select.selection {
        add_names(condition, &mut conditions);
    }
    // There the alias may be meant.
    let mut behind = HashSet::new();
    let groups = match &select.group_by {
        GroupByExpr::Expressions(exprs, _) => exprs.as_slice(),
        GroupByExpr::All(_) => &[],
    };
    for part in [&select.having, &select.qualify].into_iter().flatten().chain(groups) {
        add_names(part, &mut behind);
    }
    if let Some(OrderByKind::Expressions(sorts)) = query.order_by.as_ref().map(|order_by| &order_by.kind) {
        sorts.iter().for_each(|sort| add_names(&sort.expr, &mut behind));
    }
    if aliases.is_disjoint(&conditions) {
        return;
    }
    for (place, item) in select.projection.iter_mut().enumerate() {
        if let SelectItem::ExprWithAlias { alias, .. } = item
            && conditions.contains(&alias.value.to_lowercase())
            && !behind.contains(&alias.value.to_lowercase())
        {
            *alias = Ident::with_quote('"', format!("{VALUE}{place}"));
        }
    }
}

fn alias_of(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.to_lowercase()),
        _ => None,
    }
}
