//! `declare pattern`: tables under names made of strings, `country("Canada").Alberta`. A call takes the pattern's rules
//! whose strings are those of the call.

use super::{Binder, Binding, Environment, ExpressionScope, Result, Typed, constant_of, invalid, text_of};
use crate::ast::{Expr, ExprKind, FunctionCall, Literal, Pattern};
use crate::plan::Relation;
use crate::span::Span;
use crate::types::KqlType;

/// The path that stands for all of them.
const ANY_PATH: &str = "*";

impl<'a> Binder<'a> {
    /// Returns the pattern, the call and the path behind it, where an expression is a call of a pattern.
    pub(crate) fn pattern_call<'e>(
        &self,
        expr: &'e Expr,
        environment: &Environment<'a>,
    ) -> Option<(&'e FunctionCall, Option<&'e str>)> {
        let (base, path) = match &expr.kind {
            ExprKind::Member { base, name } => (base.as_ref(), Some(name.text.as_str())),
            ExprKind::Element { base, index } => match &index.kind {
                ExprKind::Literal(Literal::String(text)) => (base.as_ref(), Some(text.as_str())),
                _ => return None,
            },
            _ => (expr, None),
        };
        let ExprKind::Call(call) = &base.kind else { return None };
        let is_pattern = matches!(environment.find(&call.function.text), Some(Binding::Pattern(..)));
        (call.target.is_none() && is_pattern).then_some((call, path))
    }

    /// Returns the table of the rule that fits a call; where the path is `*`, the union of all that fit.
    pub(crate) fn pattern_table(
        &mut self,
        call: &'a FunctionCall,
        path: Option<&'a str>,
        span: Span,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let Some(Binding::Pattern(pattern, outer)) = environment.find(&call.function.text).cloned() else {
            return invalid(span, "expected a pattern");
        };
        let Pattern { name, definition: Some(definition) } = pattern else {
            return invalid(span, format!("the pattern `{}` is declared without rules", pattern.name.text));
        };
        let mut texts = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            let typed = self.scalar(&argument.expr, &ExpressionScope::constant(environment))?;
            match text_of(constant_of(&typed.expr)?.as_ref()) {
                Some(text) if typed.kql_type == KqlType::String => texts.push(text.to_owned()),
                _ => return invalid(argument.span, "a pattern is called with constant strings"),
            }
        }
        let is_text = |literal: &Literal, text: &str| matches!(literal, Literal::String(known) if known == text);
        let fits_path = |known: &Option<Literal>| match (known, path) {
            (None, None) => true,
            (Some(known), Some(path)) => path == ANY_PATH || is_text(known, path),
            (Some(_), None) | (None, Some(_)) => false,
        };
        let mut tables = Vec::new();
        for rule in &definition.rules {
            let fits = rule.arguments.len() == texts.len()
                && rule.arguments.iter().zip(&texts).all(|(known, text)| is_text(known, text));
            if !fits || !fits_path(&rule.path) {
                continue;
            }
            let mut inside = outer.clone();
            for (parameter, text) in definition.parameters.iter().zip(&texts) {
                let value = Typed::text(text);
                inside = inside.with(&parameter.name.text, Binding::Scalar(value, 1));
            }
            if let (Some(parameter), Some(Literal::String(path))) = (&definition.path, &rule.path) {
                let value = Typed::text(path);
                inside = inside.with(&parameter.name.text, Binding::Scalar(value, 1));
            }
            let (inside, result) = self.statements(&rule.body, inside)?;
            match result {
                Some(result) => tables.push(self.nested(span, |binder| binder.table(result, &inside))?),
                None => return invalid(rule.span, "this rule returns nothing"),
            }
            if path != Some(ANY_PATH) {
                break;
            }
        }
        match (tables.pop(), tables.is_empty()) {
            (Some(only), true) => Ok(only),
            (Some(last), false) => {
                tables.push(last);
                self.united(tables, &[])
            }
            (None, _) => invalid(span, format!("no rule of the pattern `{}` fits these texts", name.text)),
        }
    }
}
