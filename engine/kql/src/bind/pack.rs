//! Functions that pack columns into property bags and arrays.

use datafusion::logical_expr::lit;
use datafusion::scalar::ScalarValue;

use super::{Binder, ExpressionScope, Result, Typed, constant_of, invalid};
use crate::ast::{ExprKind, FunctionCall};
use crate::functions;
use crate::plan::Column;
use crate::span::Span;
use crate::types::KqlType;

impl<'a> Binder<'a> {
    /// `pack_all()`: a bag of all columns, optionally without empty values.
    pub(super) fn pack_all(
        &mut self,
        call: &'a FunctionCall,
        span: Span,
        scope: &ExpressionScope<'_, 'a>,
    ) -> Result<Typed> {
        let ignores_empty = match call.arguments.first() {
            Some(argument) if argument.expr.kind != ExprKind::Star => {
                let ignores = self.scalar(&argument.expr, scope)?;
                let Some(ignores) = constant_of(&ignores.expr)? else {
                    return invalid(argument.span, "whether `pack_all` leaves out empty values is a constant");
                };
                ignores == ScalarValue::Boolean(Some(true))
            }
            _ => false,
        };
        if let Some(other) = call.arguments.get(1) {
            return invalid(other.span, format!("`{}` takes one argument at most here", call.function.text));
        }
        let all: Vec<Typed> = scope.columns.iter().map(Column::typed).collect();
        let names: Vec<String> = scope.columns.iter().map(|column| column.name.clone()).collect();
        let bag = self.packed(&names, all, span)?;
        if ignores_empty { self.apply(functions::WITHOUT_EMPTY, vec![bag], span) } else { Ok(bag) }
    }

    /// `pack_array(*)`: an array of the values of all columns.
    pub(super) fn pack_all_values(&mut self, span: Span, scope: &ExpressionScope<'_, 'a>) -> Result<Typed> {
        self.apply("pack_array", scope.columns.iter().map(Column::typed).collect(), span)
    }

    /// `bag_pack_columns(a, b)`.
    pub(super) fn pack_columns(
        &mut self,
        call: &'a FunctionCall,
        span: Span,
        scope: &ExpressionScope<'_, 'a>,
    ) -> Result<Typed> {
        let mut names = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            match &argument.expr.kind {
                ExprKind::Name(name) => names.push(name.text.clone()),
                _ => return invalid(argument.span, "expected the name of a column"),
            }
        }
        let values = self.arguments(call, scope)?;
        self.packed(&names, values, span)
    }

    /// Returns a bag of values under names.
    pub(crate) fn packed(&mut self, names: &[String], values: Vec<Typed>, span: Span) -> Result<Typed> {
        if names.is_empty() {
            return Ok(Typed::new(lit("{}"), KqlType::Dynamic));
        }
        let pairs = names.iter().zip(values).flat_map(|(name, value)| [Typed::text(name), value]).collect();
        self.apply("bag_pack", pairs, span)
    }
}
