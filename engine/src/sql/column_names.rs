//! Names of the columns of a select list that have no alias: as they are written, where the planner's name would be the
//! rewritten expression, or would show types and tables. A cast of a column is called what the column is, as in
//! PostgreSQL.
//!
//! DuckDB calls such a cast by its text, so that the column's name elsewhere in the query means the column. Where ORDER
//! BY, HAVING, QUALIFY or DISTINCT ON has that name it is called so here as well: what they mean is not changed by a
//! name.

use std::collections::{HashMap, HashSet};

use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, Ident, ObjectNamePart, OrderByKind, Query, Select, SelectItem, SetExpr, TableWithJoins, Value,
};

use super::shorthand::taken;
use super::syntax::{any_expr, any_own_expr, has_relation};

/// What a column of a select list is called as it is written.
pub(super) struct WrittenColumn {
    /// Its text, if it has no alias.
    text: String,
    /// The column that it is a cast of.
    cast_of: Option<String>,
    /// What it will be called in lower case, as far as it can be told; `None` stands for many columns.
    name: Option<String>,
}

/// Notes what the columns of a select list are called, before they are rewritten; a column in brackets is taken out of
/// them.
pub(super) fn written_columns(select: &mut Select) -> Vec<WrittenColumn> {
    let note = |item: &mut SelectItem| match item {
        SelectItem::UnnamedExpr(expr) => {
            let column = cast_column(expr).map(|name| name.value.clone());
            while let Expr::Nested(inner) = expr
                && column.is_some()
            {
                *expr = taken(inner);
            }
            let name = column.as_deref().map(str::to_lowercase).unwrap_or_default();
            let cast_of = column.filter(|_| matches!(expr, Expr::Cast { .. }));
            WrittenColumn { text: expr.to_string(), cast_of, name: Some(name) }
        }
        SelectItem::ExprWithAlias { alias, .. } => {
            WrittenColumn { text: String::new(), cast_of: None, name: Some(alias.value.to_lowercase()) }
        }
        SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) | SelectItem::ExprWithAliases { .. } => {
            WrittenColumn { text: String::new(), cast_of: None, name: None }
        }
    };
    select.projection.iter_mut().map(note).collect()
}

/// Returns the names in the ORDER BY of a query that is one SELECT, in lower case.
pub(super) fn names_in_order(query: &Query) -> HashSet<String> {
    let mut names = HashSet::new();
    if let SetExpr::Select(_) = query.body.as_ref()
        && let Some(OrderByKind::Expressions(sorts)) = query.order_by.as_ref().map(|order_by| &order_by.kind)
    {
        sorts.iter().for_each(|sort| add_names(&sort.expr, &mut names));
    }
    names
}

/// Gives the columns of a select list their names. `in_order` has the names in the ORDER BY behind it.
pub(super) fn name_columns(select: &mut Select, written: &[WrittenColumn], in_order: Option<&HashSet<String>>) {
    let mut elsewhere = in_order.cloned().unwrap_or_default();
    let firsts = match &select.distinct {
        Some(Distinct::On(exprs)) => exprs.as_slice(),
        _ => &[],
    };
    for expr in [&select.having, &select.qualify].into_iter().flatten().chain(firsts) {
        add_names(expr, &mut elsewhere);
    }
    let mut seen = HashSet::new();
    let mut numbered = HashSet::new();
    let Select { projection, from, .. } = select;
    for (place, (item, own)) in projection.iter_mut().zip(written).enumerate() {
        let SelectItem::UnnamedExpr(expr) = item else { continue };
        if own.text.is_empty() || is_many_columns(expr) {
            continue;
        }
        let is_again = !seen.insert(own.text.clone());
        let is_free = |name: &str| {
            let name = name.to_lowercase();
            let is_taken = |(other, column): (usize, &WrittenColumn)| {
                other != place && column.name.as_ref().is_none_or(|other| *other == name)
            };
            !elsewhere.contains(&name) && !written.iter().enumerate().any(is_taken)
        };
        if let Some(column) = own.cast_of.as_ref().filter(|column| !is_again && is_free(column)) {
            // In the quotes of an alias that other columns do not see.
            let alias = Ident::with_quote('\'', column.clone());
            *item = SelectItem::ExprWithAlias { expr: taken(expr), alias };
            continue;
        }
        if let Some(name) = text_name(expr, own, from, is_again, &mut seen) {
            // The planner would take a point in it for one between a table and a column.
            let name = match expr {
                Expr::CompoundIdentifier(parts) if is_again => parts.last().map_or(name, |part| part.value.clone()),
                _ => name,
            };
            let mut alias = name.clone();
            let mut number = seen.len();
            while is_again && (seen.contains(&alias) || alias == name || !numbered.insert(alias.clone())) {
                alias = format!("{name}_{number}");
                number += 1;
            }
            *item = SelectItem::ExprWithAlias { expr: taken(expr), alias: Ident::with_quote('"', alias) };
        }
    }
    number_aliases(projection);
}

/// Gives the second of two columns with one name a number, where one of them has it as an alias: the planner would refuse
/// them.
fn number_aliases(projection: &mut [SelectItem]) {
    let (mut aliases, mut columns) = (HashSet::new(), HashSet::new());
    number_names(projection, |item, name| {
        let has_alias = matches!(item, SelectItem::ExprWithAlias { .. });
        let is_again = aliases.contains(name) || has_alias && columns.contains(name);
        if !is_again {
            let names = if has_alias { &mut aliases } else { &mut columns };
            names.insert(name.to_owned());
        }
        is_again
    });
}

/// Gives each column of which `is_again` says, by its name, that it comes another time a number: the second `a` is `a_1`, as
/// in a table that DuckDB makes of them.
pub(super) fn number_names(items: &mut [SelectItem], mut is_again: impl FnMut(&SelectItem, &str) -> bool) {
    let lower = |name: &Ident| name.value.to_lowercase();
    let mut all: HashSet<String> = items.iter().filter_map(name_of).map(lower).collect();
    // The next number of each name.
    let mut next: HashMap<String, usize> = HashMap::new();
    for item in items {
        let Some(name) = name_of(item).map(|name| name.value.clone()) else { continue };
        if !is_again(item, &name) {
            continue;
        }
        let number = next.entry(name.to_lowercase()).or_insert(1);
        while all.contains(&format!("{name}_{number}").to_lowercase()) {
            *number += 1;
        }
        let numbered = format!("{name}_{number}");
        all.insert(numbered.to_lowercase());
        match item {
            SelectItem::ExprWithAlias { alias, .. } => alias.value = numbered,
            SelectItem::UnnamedExpr(expr) => {
                let alias = Ident::with_quote('"', numbered);
                *item = SelectItem::ExprWithAlias { expr: taken(expr), alias };
            }
            _ => {}
        }
    }
}

/// Returns what a column will be called, as far as it can be told.
pub(super) fn name_of(item: &SelectItem) -> Option<&Ident> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias),
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(name),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last(),
        _ => None,
    }
}

/// Returns the name of a column by its text; `None` where the planner's is the same.
fn text_name(
    expr: &Expr,
    own: &WrittenColumn,
    from: &[TableWithJoins],
    is_again: bool,
    seen: &mut HashSet<String>,
) -> Option<String> {
    let is_renamed = match expr {
        Expr::Identifier(_) => is_again || expr.to_string() != own.text,
        Expr::CompoundIdentifier(parts) => match parts.split_last() {
            Some((field, of)) if of.last().is_some_and(|of| !has_relation(from, of)) => {
                return Some(if seen.insert(field.value.clone()) { field.value.clone() } else { own.text.clone() });
            }
            _ => is_again,
        },
        // The aggregates of a PIVOT stand in a list without tables.
        _ => !from.is_empty() || is_again || has_literal(expr) || expr.to_string() != own.text,
    };
    is_renamed.then(|| own.text.clone())
}

/// Adds the names of columns in an expression, in lower case.
pub(super) fn add_names(expr: &Expr, names: &mut HashSet<String>) {
    any_expr(expr, |part| {
        let name = match part {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(parts) => parts.last(),
            _ => None,
        };
        names.extend(name.map(|name| name.value.to_lowercase()));
        false
    });
}

fn has_literal(expr: &Expr) -> bool {
    any_expr(expr, |part| match part {
        Expr::Value(value) => !matches!(value.value, Value::Placeholder(_)),
        other => matches!(other, Expr::TypedString(_) | Expr::Interval(_)),
    })
}

/// Returns the column that an expression is, without the casts and brackets around it.
fn cast_column(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(parts) => parts.last(),
        Expr::Cast { expr, .. } | Expr::Nested(expr) => cast_column(expr),
        _ => None,
    }
}

/// Returns whether an expression becomes several columns, each with a name of its own.
fn is_many_columns(expr: &Expr) -> bool {
    any_own_expr(expr, |part| match part {
        Expr::Function(call) => call.name.0.last().and_then(ObjectNamePart::as_ident).is_some_and(|name| {
            name.value.eq_ignore_ascii_case("columns") || name.value.eq_ignore_ascii_case("unnest")
        }),
        _ => false,
    })
}
