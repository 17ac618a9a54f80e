//! Aliases that name some of a relation's columns: `FROM t AS u(a)`. The others keep their names, as in PostgreSQL and DuckDB; the
//! planner takes a name for each column only.

use datafusion::logical_expr::planner::ContextProvider;
use datafusion::sql::sqlparser::ast::{Ident, TableAlias, TableAliasColumnDef, TableFactor};

use super::{Expander, Qualified};
use crate::sql::predicate_subqueries::VALUE;
use crate::sql::row_values::width_of;
use crate::sql::shorthand::plain;

/// Gives the columns that an alias does not name their own names. What cannot be planned by itself (a LATERAL one) stays.
pub(super) fn name_all_columns<S: ContextProvider>(expander: &Expander<'_, S>, relation: &mut TableFactor) {
    let width = match relation {
        TableFactor::Derived { subquery, .. } => width_of(&subquery.body),
        _ => None,
    };
    let named = alias_of(relation).map_or(0, |alias| alias.columns.len());
    // A value is compared with a query of one column: of others the planner says so.
    let first = alias_of(relation).and_then(|alias| alias.columns.first());
    let is_compared = first.is_some_and(|column| column.name.value == VALUE);
    if named == 0 || width == Some(named) || is_compared {
        return;
    }
    let mut unnamed = relation.clone();
    let (Some(alias), Some(named)) = (alias_of(&mut unnamed), alias_of(relation)) else { return };
    alias.columns.clear();
    let Ok(sources) = expander.listed(&[plain(unnamed)], Qualified::WhereTwice) else { return };
    let others = sources.into_iter().skip(named.columns.len());
    named.columns.extend(
        others.map(|source| TableAliasColumnDef { name: Ident::with_quote('"', source.name), data_type: None }),
    );
}

fn alias_of(relation: &mut TableFactor) -> Option<&mut TableAlias> {
    match relation {
        TableFactor::Derived { alias, .. } | TableFactor::Table { alias, .. } => alias.as_mut(),
        _ => None,
    }
}
