//! Plugins that are queries themselves: written in KQL, bound over the plugin's input under names that no query has, and
//! given the names that the plugin's result has.

use std::rc::Rc;

use super::Relation;
use crate::bind::{BindError, Binder, Binding, Environment, Need, Result, Stop, Typed, invalid, unique_name};
use crate::span::Span;

/// The tables and values that a template's text names.
#[derive(Default)]
pub(super) struct Names<'a> {
    environment: Environment<'a>,
}

impl<'a> Names<'a> {
    pub(super) fn table(self, name: &'static str, table: Relation) -> Self {
        Self { environment: self.environment.with(name, Binding::Bound(Rc::new(table))) }
    }

    pub(super) fn value(self, name: &'static str, value: Typed) -> Self {
        Self { environment: self.environment.with(name, Binding::Scalar(value, 1)) }
    }
}

impl<'a> Binder<'a> {
    /// The table that a text of ours is. What is wrong with it is wrong with what stands at `span`.
    pub(super) fn templated(&mut self, text: String, names: Names<'a>, span: Span) -> Result<Relation> {
        let Some(query) = self.answers.parsed.get(&text) else { return Err(Stop::Needs(Need::Parsed(text))) };
        let bound = self.nested(span, |binder| {
            let (environment, result) = binder.statements(&query.statements, names.environment)?;
            match result {
                Some(result) => binder.table(result, &environment),
                None => invalid(span, "this has no result"),
            }
        });
        bound.map_err(|stop| match stop {
            Stop::Error(error) => Stop::Error(BindError { span, ..error }),
            other => other,
        })
    }

    /// The columns that a template made, under the names of the result.
    pub(super) fn relabelled(&mut self, made: Relation, labels: &[(String, String)], span: Span) -> Result<Relation> {
        let mut outputs: Vec<(String, Typed)> = Vec::with_capacity(labels.len());
        for (from, to) in labels {
            let Some(column) = made.column(from) else { return invalid(span, format!("there is no `{from}`")) };
            let name = unique_name(to, |name| outputs.iter().any(|(known, _)| known == name));
            outputs.push((name, column.typed()));
        }
        self.projected(made, outputs)
    }
}
