//! Plugins that are written in KQL: a template is bound over the plugin's input under names that no query has, and its
//! columns then get the names of the plugin's result.

use std::rc::Rc;

use super::Relation;
use crate::bind::{BindError, BindStop, Binder, Binding, Environment, Need, Result, Typed, invalid, unique_name};
use crate::span::Span;

/// The tables and values that a template refers to.
#[derive(Default)]
pub(super) struct TemplateNames<'a> {
    environment: Environment<'a>,
}

impl<'a> TemplateNames<'a> {
    pub(super) fn table(self, name: &'static str, table: Relation) -> Self {
        Self { environment: self.environment.with(name, Binding::Bound(Rc::new(table))) }
    }

    pub(super) fn value(self, name: &'static str, value: Typed) -> Self {
        Self { environment: self.environment.with(name, Binding::Scalar(value, 1)) }
    }
}

impl<'a> Binder<'a> {
    /// Binds a template to a table. Its errors are reported at `span`.
    pub(super) fn templated(&mut self, text: String, names: TemplateNames<'a>, span: Span) -> Result<Relation> {
        let Some(query) = self.answers.parsed.get(&text) else { return Err(BindStop::Needs(Need::Parsed(text))) };
        let bound = self.nested(span, |binder| {
            let (environment, result) = binder.statements(&query.statements, names.environment)?;
            match result {
                Some(result) => binder.table(result, &environment),
                None => invalid(span, "this has no result"),
            }
        });
        bound.map_err(|stop| match stop {
            BindStop::Error(error) => BindStop::Error(BindError { span, ..error }),
            other => other,
        })
    }

    /// Returns the columns of a template under the names of the result.
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
