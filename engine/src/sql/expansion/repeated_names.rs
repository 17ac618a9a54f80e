//! Select lists in which a name comes twice, by a `*` or without: the planner refuses such a list, and a table, a view
//! or a subquery of it would have two columns with one name. The second `a` is `a_1`, as in a table that DuckDB makes.
//!
//! The list of an outermost query stays as it is where the planner takes it: its names may come twice.

use std::collections::{HashMap, HashSet};

use datafusion::error::Result;
use datafusion::logical_expr::planner::ContextProvider;
use datafusion::sql::sqlparser::ast::{
    Expr, ObjectNamePart, Select, SelectItem, SelectItemQualifiedWildcardKind, TableFactor,
};

use super::merged_columns::joins_by_names;
use super::stars::{names_relation, renamed};
use super::{Expander, Qualified};
use crate::sql::column_names::{name_of, number_names};

/// Gives names that come twice a number. `is_inner` says that the list is one of a table, a view, or a query within
/// another.
pub(super) fn number_repeated<S: ContextProvider>(
    expander: &Expander<'_, S>,
    select: &mut Select,
    is_inner: bool,
) -> Result<()> {
    let written: &Select = select;
    let has_star = written.projection.iter().any(|item| is_star(written, item));
    let is_one_relation = match written.from.as_slice() {
        [tables] => tables.joins.is_empty() && !matches!(tables.relation, TableFactor::NestedJoin { .. }),
        _ => false,
    };
    if has_star && select.projection.len() == 1 && (is_one_relation || !is_inner) {
        return Ok(());
    }
    let mut items = match has_star {
        true => match written_out(expander, select)? {
            Some(items) => items,
            None => return Ok(()),
        },
        false => select.projection.clone(),
    };
    if is_repeated(&items, is_inner) {
        let mut seen = HashSet::new();
        number_names(&mut items, |_, name| !seen.insert(name.to_lowercase()));
        select.projection = items;
    }
    Ok(())
}

/// Returns whether an item stands for the columns of relations, and can be written out. `* ILIKE` is the planner's.
fn is_star(select: &Select, item: &SelectItem) -> bool {
    match item {
        SelectItem::Wildcard(options) => options.opt_ilike.is_none(),
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
            options.opt_ilike.is_none() && names_relation(select, name)
        }
        _ => false,
    }
}

/// Returns a select list with its stars written out; `None` where the columns cannot be told apart by their tables'
/// names, or the tables cannot be planned by themselves (LATERAL ones).
fn written_out<S: ContextProvider>(expander: &Expander<'_, S>, select: &Select) -> Result<Option<Vec<SelectItem>>> {
    // The one column that a join makes of two is not in `table.*` of both.
    if joins_by_names(&select.from) {
        return Ok(None);
    }
    let Ok(sources) = expander.listed(&select.from, Qualified::Always) else { return Ok(None) };
    let mut known: HashSet<&Expr> = HashSet::with_capacity(sources.len());
    if sources.iter().any(|source| !known.insert(&source.expr)) {
        return Ok(None);
    }
    let mut items = Vec::new();
    for item in &select.projection {
        match item {
            SelectItem::Wildcard(options) if is_star(select, item) => items.extend(renamed(options, &sources, None)?),
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
                if is_star(select, item) =>
            {
                let table = name.0.last().and_then(ObjectNamePart::as_ident).map(|ident| ident.value.clone());
                items.extend(renamed(options, &sources, table.as_deref())?);
            }
            other => items.push(other.clone()),
        }
    }
    Ok(Some(items))
}

/// Returns whether two columns of one name are of one table, as far as it is written.
fn is_of_one_table(one: &SelectItem, other: &SelectItem) -> bool {
    let table = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => {
            parts.iter().rev().nth(1).map(|table| table.value.to_lowercase())
        }
        _ => None,
    };
    match (table(one), table(other)) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}

/// Returns whether a list has a name twice: in an inner one any name, in an outermost one what the planner refuses,
/// which is a column twice, or an alias that is the name of another column.
fn is_repeated(items: &[SelectItem], is_inner: bool) -> bool {
    let has_alias = |item: &SelectItem| matches!(item, SelectItem::ExprWithAlias { .. });
    let is_again = |one: &SelectItem, other: &SelectItem| {
        is_inner || has_alias(one) || has_alias(other) || is_of_one_table(one, other)
    };
    let mut by_name: HashMap<String, Vec<&SelectItem>> = HashMap::with_capacity(items.len());
    items.iter().any(|item| {
        let Some(name) = name_of(item) else { return false };
        let known = by_name.entry(name.value.to_lowercase()).or_default();
        let is_known = known.iter().any(|other| is_again(other, item));
        known.push(item);
        is_known
    })
}
