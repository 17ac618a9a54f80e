//! What `USING` and `NATURAL` make one column of, in the subqueries of the query that joins so: the planner finds it in two tables of
//! the outer query there, and knows none. The subquery's own columns come first, as ever.

use std::ops::ControlFlow;

use datafusion::logical_expr::planner::ContextProvider;
use datafusion::sql::sqlparser::ast::{Expr, Query, Select, SelectItem, SetExpr, VisitMut, VisitorMut};

use super::{Expander, source_names};
use crate::identifiers::same_name;
use crate::sql::syntax::{any_expr, relation_name, relations_of};

/// Puts what joins made of two columns in the places of its name, in a query's subqueries.
pub(super) fn name_sides_in_subqueries<S: ContextProvider>(
    expander: &Expander<'_, S>,
    select: &mut Select,
    merged: &[(String, Expr)],
) {
    if merged.is_empty() {
        return;
    }
    let from = std::mem::take(&mut select.from);
    let mut writer = SubqueryWriter { expander, merged, scopes: Vec::new(), lambdas: Vec::new() };
    let _: ControlFlow<()> = VisitMut::visit(select, &mut writer);
    select.from = from;
}

/// The names that a subquery has.
#[derive(Default)]
struct SubqueryNames {
    columns: Vec<String>,
    relations: Vec<String>,
}

struct SubqueryWriter<'a, 'b, S> {
    expander: &'a Expander<'b, S>,
    merged: &'a [(String, Expr)],
    /// The subqueries around, outermost first; `None` where their columns cannot be told.
    scopes: Vec<Option<SubqueryNames>>,
    lambdas: Vec<Vec<String>>,
}

impl<S: ContextProvider> SubqueryWriter<'_, '_, S> {
    fn add_names(&self, body: &SetExpr, names: &mut SubqueryNames) -> Option<()> {
        match body {
            SetExpr::Select(select) => {
                names.columns.extend(source_names(&self.expander.sources(&select.from).ok()?));
                names.columns.extend(select.projection.iter().filter_map(|item| match item {
                    SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
                    _ => None,
                }));
                names.relations.extend(relations_of(&select.from).filter_map(relation_name));
                Some(())
            }
            SetExpr::Query(query) => self.add_names(&query.body, names),
            SetExpr::SetOperation { left, right, .. } => {
                self.add_names(left, names)?;
                self.add_names(right, names)
            }
            SetExpr::Values(_) => Some(()),
            _ => None,
        }
    }

    /// Returns what a name stands for, where no subquery around has it.
    fn meaning(&self, name: &str) -> Option<&Expr> {
        let has = |names: &[String], name: &str| names.iter().any(|own| same_name(own, name));
        if self.scopes.is_empty() || self.lambdas.iter().any(|names| has(names, name)) {
            return None;
        }
        let (_, meaning) = self.merged.iter().rev().find(|(known, _)| same_name(known, name))?;
        let is_hidden = |scope: &SubqueryNames| {
            has(&scope.columns, name)
                || any_expr(meaning, |part| {
                    matches!(part, Expr::CompoundIdentifier(parts)
                        if parts.first().is_some_and(|table| has(&scope.relations, &table.value)))
                })
        };
        let is_free = self.scopes.iter().all(|scope| scope.as_ref().is_some_and(|scope| !is_hidden(scope)));
        is_free.then_some(meaning)
    }
}

impl<S: ContextProvider> VisitorMut for SubqueryWriter<'_, '_, S> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let mut names = SubqueryNames::default();
        let are_known = query.with.is_none() && self.add_names(&query.body, &mut names).is_some();
        self.scopes.push(are_known.then_some(names));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Lambda(lambda) => {
                self.lambdas.push(lambda.params.iter().map(|param| param.name.value.clone()).collect());
            }
            Expr::Identifier(name) => {
                if let Some(meaning) = self.meaning(&name.value) {
                    *expr = Expr::Nested(Box::new(meaning.clone()));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if matches!(expr, Expr::Lambda(_)) {
            self.lambdas.pop();
        }
        ControlFlow::Continue(())
    }
}
