//! `macro-expand`: a query over each database of a group, and the union of what they give.

use std::rc::Rc;

use super::Relation;
use crate::ast::{Expr, ExprKind, Name, Operator, Statement};
use crate::bind::{Binder, Binding, Environment, Result, invalid, not_supported};
use crate::span::Span;

impl<'a> Binder<'a> {
    pub(super) fn macro_expand(
        &mut self,
        group: &'a Expr,
        name: &'a Name,
        body: &'a [Statement],
        operator: &'a Operator,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        if let Some(parameter) = operator.parameters.iter().find(|parameter| parameter.name.text != "kind") {
            return not_supported(parameter.span, format_args!("`macro-expand {}=`", parameter.name.text));
        }
        let (members, outer) = entities(group, environment)?;
        let mut inputs = Vec::with_capacity(members.len());
        for member in members {
            let database = self.database_of(member, &outer)?;
            let inside = environment.with(&name.text, Binding::Database(Rc::from(database)));
            let (inside, result) = self.statements(body, inside)?;
            match result {
                Some(result) => inputs.push(self.table(result, &inside)?),
                None => return invalid(operator.span, "the query of `macro-expand` has no result"),
            }
        }
        self.united(inputs, &operator.parameters)
    }
}

/// Returns the databases of a group, and where their names are bound.
fn entities<'a>(group: &'a Expr, environment: &Environment<'a>) -> Result<(&'a [Expr], Environment<'a>)> {
    match &group.kind {
        ExprKind::EntityGroup(members) => return Ok((members, environment.clone())),
        ExprKind::Name(name) => {
            if let Some(Binding::Table(value, outer)) = environment.find(&name.text)
                && let ExprKind::EntityGroup(members) = &value.kind
            {
                return Ok((members, outer.clone()));
            }
        }
        _ => {}
    }
    no_group(group.span)
}

fn no_group<T>(span: Span) -> Result<T> {
    invalid(span, "expected a group of databases: `entity_group [database('a'), database('b')]`, or a `let` of one")
}
