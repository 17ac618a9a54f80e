//! `graph("name")`: a graph of a stored model. The model's definition becomes a query that ends with `make-graph`; labels
//! and the ends of edges are columns that no query sees.

use datafusion::scalar::ScalarValue;

use crate::ast::{FunctionCall, NamedExpr};
use crate::bind::{
    BindErrorCode, BindStop, Binder, Environment, ExpressionScope, Need, Result, constant_of, fail, given_name,
    invalid, text_of,
};
use crate::graph::GraphModelDefinition;
use crate::host::{GraphKey, GraphVersion};
use crate::plan::Relation;
use crate::plan::template::TemplateNames;
use crate::span::Span;

impl<'a> Binder<'a> {
    /// `graph("model")`, `graph("model", "snapshot")`, `graph("model", snapshot="snapshot")`, `graph("model", true)`.
    pub(crate) fn stored_graph(
        &mut self,
        call: &'a FunctionCall,
        span: Span,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let (model, version) = match call.arguments.as_slice() {
            [model] => (model, GraphVersion::Latest),
            [model, version] if matches!(given_name(&version.names), None | Some("snapshot")) => {
                (model, self.graph_version(version, environment)?)
            }
            _ => return invalid(span, "`graph` takes the name of a graph model, and that of a snapshot"),
        };
        let Some(ScalarValue::Utf8(Some(model))) = self.graph_constant(model, environment)? else {
            return invalid(model.span, "expected a constant string");
        };
        let key = GraphKey { model, version };
        let Some(known) = self.answers.graphs.get(&key) else { return Err(BindStop::Needs(Need::Graph(key))) };
        let name = match &key.version {
            GraphVersion::Snapshot(snapshot) => format!("snapshot `{snapshot}` of the graph model `{}`", key.model),
            GraphVersion::Latest | GraphVersion::Transient => format!("graph model `{}`", key.model),
        };
        let Some(definition) = known else {
            let message = format!("unknown {name} in database `{}`", self.answers.database);
            return fail(BindErrorCode::UnknownTable, span, message);
        };
        match GraphModelDefinition::parse(definition) {
            Ok(definition) => self.templated(definition.query(), TemplateNames::default(), span),
            Err(message) => invalid(span, format!("the {name}: {message}")),
        }
    }

    fn graph_version(&mut self, argument: &'a NamedExpr, environment: &Environment<'a>) -> Result<GraphVersion> {
        match self.graph_constant(argument, environment)? {
            Some(ScalarValue::Utf8(Some(snapshot))) => Ok(GraphVersion::Snapshot(snapshot)),
            Some(ScalarValue::Boolean(Some(true))) => Ok(GraphVersion::Transient),
            Some(ScalarValue::Boolean(Some(false))) => Ok(GraphVersion::Latest),
            _ => invalid(
                argument.span,
                "expected the name of a snapshot, or whether the graph is made of the tables as they are",
            ),
        }
    }

    /// Returns a constant; a text is [`ScalarValue::Utf8`].
    fn graph_constant(
        &mut self,
        argument: &'a NamedExpr,
        environment: &Environment<'a>,
    ) -> Result<Option<ScalarValue>> {
        let typed = self.scalar(&argument.expr, &ExpressionScope::constant(environment))?;
        let constant = constant_of(&typed.expr)?;
        Ok(match text_of(constant.as_ref()) {
            Some(text) => Some(ScalarValue::Utf8(Some(text.to_owned()))),
            None => constant,
        })
    }
}
