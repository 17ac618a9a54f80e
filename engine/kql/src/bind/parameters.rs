//! Values of `declare query_parameters` that come beside the query, as Kusto's clients send them: literals of KQL, or
//! strings that are converted to the declared type. A string needs no quotes, so that nobody has to escape one.

use super::{BindStop, Binder, Environment, ExpressionScope, Result, Typed, constant_of, invalid};
use crate::ast::{Expr, ExprKind, Literal, Parameter, ParameterKind, Query, Statement, StatementKind};
use crate::types::KqlType;

/// A parameter's value as the caller gave it.
#[derive(Debug)]
pub(crate) struct GivenParameter {
    text: String,
    /// The literal that the string is, if it is one.
    literal: Option<Expr>,
}

impl GivenParameter {
    pub(crate) fn read(text: &str) -> Self {
        let literal = crate::parse(text).into_result().ok().and_then(literal_of);
        Self { text: text.to_owned(), literal }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn literal(&self) -> Option<&Expr> {
        self.literal.as_ref()
    }

    fn is_literal_for(&self, kql_type: KqlType) -> bool {
        match &self.literal {
            Some(literal) if kql_type == KqlType::String => matches!(
                &literal.kind,
                ExprKind::Literal(Literal::String(_)) | ExprKind::Literal(Literal::Typed { .. })
            ),
            literal => literal.is_some(),
        }
    }
}

fn literal_of(query: Query) -> Option<Expr> {
    let [statement] = <[Statement; 1]>::try_from(query.statements).ok()?;
    match statement.kind {
        StatementKind::Expression(expr) if is_literal(&expr) => Some(expr),
        _ => None,
    }
}

fn is_literal(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Literal(_) => true,
        ExprKind::Unary { operand, .. } => is_literal(operand),
        _ => false,
    }
}

impl<'a> Binder<'a> {
    /// Returns the value of a declared parameter: the one given, else its default.
    pub(super) fn query_parameter(&mut self, parameter: &'a Parameter, environment: &Environment<'a>) -> Result<Typed> {
        let name = &parameter.name.text;
        let ParameterKind::Scalar { scalar_type, default } = &parameter.kind else {
            return invalid(parameter.span, format!("`{name}` is a table, which no parameter of a query is"));
        };
        let kql_type = KqlType::from(*scalar_type);
        let scope = ExpressionScope::constant(environment);
        let answers = self.answers;
        match (answers.parameters.get(name), default) {
            (Some(given), _) => {
                let value = self.given(given, kql_type, parameter, &scope);
                // A position inside the value means nothing to a reader of the query.
                value.map_err(|stop| match stop {
                    BindStop::Error(mut error) => {
                        error.span = parameter.span;
                        BindStop::Error(error)
                    }
                    other => other,
                })
            }
            (None, Some(default)) => {
                let value = self.scalar(default, &scope)?;
                self.convert(value, kql_type, parameter.span)
            }
            (None, None) => invalid(parameter.span, format!("`{name}` has no value")),
        }
    }

    fn given(
        &mut self,
        given: &'a GivenParameter,
        kql_type: KqlType,
        parameter: &Parameter,
        scope: &ExpressionScope<'_, 'a>,
    ) -> Result<Typed> {
        let literal = given.literal.as_ref().filter(|_| given.is_literal_for(kql_type));
        let value = match literal {
            Some(literal) => self.scalar(literal, scope)?,
            None => Typed::text(&given.text),
        };
        let is_text = value.kql_type == KqlType::String;
        let value = match kql_type {
            KqlType::Dynamic if is_text => self.apply("parse_json", vec![value], parameter.span)?,
            _ => self.convert(value, kql_type, parameter.span)?,
        };
        if is_text && kql_type != KqlType::Dynamic && constant_of(&value.expr)?.is_none_or(|value| value.is_null()) {
            let (name, given) = (&parameter.name.text, &given.text);
            return invalid(parameter.span, format!("`{name}` is a {}, which `{given}` is not", kql_type.name()));
        }
        Ok(value)
    }
}
