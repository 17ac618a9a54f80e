//! A relation's name in the place of a value: its row as a structure, as in PostgreSQL and DuckDB (`SELECT row_to_json(t) FROM t`). A
//! column or an alias of that name comes first.

use datafusion::error::Result;
use datafusion::logical_expr::planner::ContextProvider;
use datafusion::sql::sqlparser::ast::{Expr, Ident, Select, SelectItem, TableFactor, TableWithJoins};

use super::counted_rows::{UncertainCount, uncertain_counts};
use super::{Expander, Qualified, Source};
use crate::identifiers::same_name;
use crate::sql::json_tables::named_value;
use crate::sql::shorthand::{call, text};
use crate::sql::syntax::{any_expr, change_own_exprs, relation_name, relations_of};

/// Writes out the names of relations in a select list. Errors: `unsupported`.
pub(super) fn write_out_rows<S: ContextProvider>(expander: &Expander<'_, S>, select: &mut Select) -> Result<()> {
    let counts = uncertain_counts(select);
    if let Some(count) = counts.iter().find(|count| count.is_star) {
        return Err(count.refused());
    }
    let mut relations = Vec::new();
    select.from.iter().for_each(|tables| names_in(tables, &mut relations));
    let is_relation = |part: &Expr| match part {
        Expr::Identifier(ident) => relations.iter().any(|name| same_name(name, &ident.value)),
        _ => false,
    };
    let is_named = select.projection.iter().any(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => any_expr(expr, is_relation),
        _ => false,
    });
    if !is_named {
        return Ok(());
    }
    // Where the tables cannot be planned by themselves (LATERAL ones), a name is a column's.
    let Ok(sources) = expander.listed(&select.from, Qualified::Always) else { return Ok(()) };
    relations.retain(|name| !sources.iter().any(|source| same_name(&source.name, name)));
    let is_of_row = |count: &&UncertainCount| relations.iter().any(|name| same_name(name, &count.relation));
    if let Some(count) = counts.iter().find(is_of_row) {
        return Err(count.refused());
    }
    let values = relations_of(&select.from).filter_map(named_value).map(|(name, _)| name.to_owned()).collect();
    let mut writer = RelationRows { relations, values, sources: &sources };
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(Expr::Identifier(name)) = item
            && let Some(expr) = writer.row(name)
        {
            let alias = Ident::with_quote('"', name.value.clone());
            *item = SelectItem::ExprWithAlias { expr, alias };
        } else if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            change_own_exprs(expr, |part| {
                if let Expr::Identifier(name) = &*part
                    && let Some(row) = writer.row(name)
                {
                    *part = row;
                }
            });
        }
        // To the items behind it an alias comes first.
        if let SelectItem::ExprWithAlias { alias, .. } = item {
            writer.relations.retain(|name| !same_name(name, &alias.value));
        }
    }
    Ok(())
}

fn names_in(tables: &TableWithJoins, names: &mut Vec<String>) {
    for relation in std::iter::once(&tables.relation).chain(tables.joins.iter().map(|join| &join.relation)) {
        match relation {
            TableFactor::NestedJoin { table_with_joins, alias: None } => names_in(table_with_joins, names),
            // A function's name is that of its column.
            TableFactor::Table { args: Some(_), .. } => {}
            other => names.extend(relation_name(other)),
        }
    }
}

struct RelationRows<'a> {
    relations: Vec<String>,
    /// Those whose name stands for the value of their column.
    values: Vec<String>,
    sources: &'a [Source],
}

impl RelationRows<'_> {
    /// Returns the row of the relation of that name.
    fn row(&self, name: &Ident) -> Option<Expr> {
        let relation = self.relations.iter().find(|relation| same_name(relation, &name.value))?;
        let is_own = |source: &&Source| source.table.as_ref().is_some_and(|table| same_name(table, relation));
        let own: Vec<&Source> = self.sources.iter().filter(is_own).collect();
        if self.values.iter().any(|name| same_name(name, relation)) {
            return own.first().map(|source| source.expr.clone());
        }
        let fields: Vec<Expr> = own.iter().flat_map(|source| [text(&source.name), source.expr.clone()]).collect();
        (!fields.is_empty()).then(|| call("named_struct", fields))
    }
}
