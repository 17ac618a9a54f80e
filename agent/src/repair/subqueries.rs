//! A subquery over a table that has none of the columns which it names, where a table around it has them all:
//! `horsepower = (SELECT min(horsepower) FROM car_names)` in a query that joins the cars' data.
//!
//! Such a column is found around the subquery, so that it compares each row with itself, or an aggregate has no rows of
//! its own and the query fails.

use std::ops::ControlFlow;

use querent_catalog::TableName;
use sqlparser::ast::{Expr, ObjectName, ObjectNamePart, Query, Select, Statement, TableFactor, VisitMut, VisitorMut};

use super::near::nearest;
use super::scopes::Scopes;
use super::tables::identifier;
use super::{KnownTables, Repair, RepairKind};
use crate::sql_text::own_columns;

/// Reads such subqueries from the table that has their columns.
pub(super) fn repair(statement: &mut Statement, known: &KnownTables, database: &str, repairs: &mut Vec<Repair>) {
    let mut fixer = SubqueryFixer { scopes: Scopes::new(known, database), depth: 0, repairs };
    let _: ControlFlow<()> = VisitMut::visit(statement, &mut fixer);
}

struct SubqueryFixer<'a> {
    scopes: Scopes<'a>,
    /// Queries around.
    depth: usize,
    repairs: &'a mut Vec<Repair>,
}

impl VisitorMut for SubqueryFixer<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.scopes.enter_query(query);
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        self.scopes.leave_query();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if self.depth > 1
            && let Some(owner) = self.owner_of(select)
        {
            self.read_from(select, &owner);
        }
        self.scopes.enter_select(select);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<()> {
        self.scopes.leave_select();
        ControlFlow::Continue(())
    }
}

impl SubqueryFixer<'_> {
    /// Returns the table around a SELECT that has all the columns which it names, where its own table has none.
    fn owner_of(&self, select: &Select) -> Option<TableName> {
        let own = self.scopes.scope_of(select);
        let [source] = own.sources.as_slice() else { return None };
        source.columns.as_ref()?;
        let columns = own_columns(select);
        let names: Vec<&str> = columns
            .iter()
            .map(|expr| match expr {
                Expr::Identifier(ident) if source.column(&ident.value).is_none() => Some(ident.value.as_str()),
                _ => None,
            })
            .collect::<Option<_>>()?;
        if names.is_empty() || names.iter().any(|name| own.has_alias(name)) {
            return None;
        }
        // A name that is misspelled is of its own table.
        let own_names = || source.columns.iter().flatten().map(|(name, _)| name.as_str());
        if names.iter().any(|name| nearest(name, own_names()).is_some()) {
            return None;
        }
        let mut around = self.scopes.inner_to_outer().flat_map(|scope| &scope.sources);
        around.find(|source| names.iter().all(|name| source.column(name).is_some()))?.table.clone()
    }

    fn read_from(&mut self, select: &mut Select, owner: &TableName) {
        let [from] = select.from.as_mut_slice() else { return };
        let TableFactor::Table { name, alias: None, .. } = &mut from.relation else { return };
        let parts = [&owner.database, &owner.table].map(|part| ObjectNamePart::Identifier(identifier(part)));
        let replaced = ObjectName(parts.into());
        let why = format!("it has none of the columns that the subquery names; `{owner}` has them");
        self.repairs.push(Repair::new(RepairKind::Table, name.to_string(), replaced.to_string(), why));
        *name = replaced;
    }
}
