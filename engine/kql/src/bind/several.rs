//! Functions that return several values, each a column of its own, and the names of these columns.

use super::names::argument_name;
use super::{BindError, BindErrorCode, Binder, Binding, ExpressionScope, Result, Typed, fail, invalid};
use crate::ast::{Expr, ExprKind, FunctionCall, Name, NamedExpr, Names};
use crate::functions::{self, FunctionError};
use crate::span::Span;
use crate::types::KqlType;

/// One of several values, under the name that the query gives it or else its own.
pub(crate) struct NamedPart {
    pub(crate) given: Option<String>,
    pub(crate) natural: String,
    pub(crate) typed: Typed,
}

impl<'a> Binder<'a> {
    /// Returns all values of a call that returns several, those that the query names first; `None` for other
    /// expressions.
    pub(crate) fn several(
        &mut self,
        named: &'a NamedExpr,
        scope: &ExpressionScope<'_, 'a>,
    ) -> Result<Option<Vec<NamedPart>>> {
        let Expr { kind: ExprKind::Call(call), span } = &named.expr else { return Ok(None) };
        let name = call.function.text.as_str();
        let is_users = matches!(scope.environment.find(name), Some(Binding::Function(..)));
        if call.target.is_some() || is_users {
            return Ok(None);
        }
        if matches!(name, "array_sort_asc" | "array_sort_desc") {
            return self.sorted_arrays(call, named, scope);
        }
        if !functions::is_multi_column(name) {
            return Ok(None);
        }
        self.spend(1, *span)?;
        let arguments = self.nested(*span, |binder| binder.arguments(call, scope))?;
        let types: Vec<_> = arguments.iter().map(|argument| argument.kql_type).collect();
        let bound = match functions::bind_multi_column(name, &types, self.functions()) {
            Some(Ok(bound)) => bound,
            Some(Err(FunctionError::WrongArguments { message })) => {
                return fail(BindErrorCode::TypeMismatch, *span, message);
            }
            Some(Err(FunctionError::Unknown { .. } | FunctionError::KnownToKusto)) | None => return Ok(None),
        };
        let parts = bound.call(arguments.into_iter().map(|argument| argument.expr).collect());
        self.spend(parts.len(), *span)?;
        let given: &[Name] = match &named.names {
            Names::Unnamed => &[],
            Names::One(name) => std::slice::from_ref(name),
            Names::Several(names) => names,
        };
        if given.len() > parts.len() {
            return too_many_names(given.len(), parts.len(), named.span);
        }
        let of = call.arguments.first().and_then(|argument| argument_name(&argument.expr));
        let prefix = format!("{name}_{}", of.unwrap_or_default());
        let mut given = given.iter();
        let parts = parts.into_iter().map(|(output, kql_type, expr)| NamedPart {
            given: given.next().map(|name| name.text.clone()),
            natural: format!("{prefix}_{output}"),
            typed: Typed::new(expr, kql_type),
        });
        Ok(Some(parts.collect()))
    }
}

impl<'a> Binder<'a> {
    /// `array_sort_asc(a, b)` as a whole column is a column of each array: `a_sorted`, `b_sorted`, or `array0_sorted`
    /// of what is no column. Elsewhere it is an array of them.
    fn sorted_arrays(
        &mut self,
        call: &'a FunctionCall,
        named: &'a NamedExpr,
        scope: &ExpressionScope<'_, 'a>,
    ) -> Result<Option<Vec<NamedPart>>> {
        let span = named.expr.span;
        let arguments = self.arguments(call, scope)?;
        let count = arguments.iter().filter(|argument| argument.kql_type == KqlType::Dynamic).count();
        let given = match &named.names {
            Names::Unnamed => &[],
            Names::One(name) => std::slice::from_ref(name),
            Names::Several(names) => names.as_slice(),
        };
        if count < 2 && !given.is_empty() {
            return Ok(None);
        }
        if given.len() > count {
            return too_many_names(given.len(), count, named.span);
        }
        let sorted = self.apply(&call.function.text, arguments, span)?;
        let mut parts = Vec::with_capacity(count);
        for (index, argument) in call.arguments.iter().take(count).enumerate() {
            let typed = if count == 1 { sorted.clone() } else { self.element_of(sorted.clone(), index, span)? };
            let of = match &argument.expr.kind {
                ExprKind::Name(name) => name.text.clone(),
                _ => format!("array{index}"),
            };
            let given = given.get(index).map(|name| name.text.clone());
            parts.push(NamedPart { given, natural: format!("{of}_sorted"), typed });
        }
        Ok(Some(parts))
    }
}

/// Refuses more names than an expression has values.
pub(crate) fn too_many_names<T>(names: usize, values: usize, span: Span) -> Result<T> {
    let values = if values == 1 { "one value".to_owned() } else { format!("{values} values") };
    invalid(span, format!("{names} names were given, and the expression has {values}"))
}

/// Kusto allows such a call only as the whole expression of a column.
pub(super) fn refuse_several(name: &str, span: Span) -> Result<()> {
    if !functions::is_multi_column(name) {
        return Ok(());
    }
    let message = format!("`{name}` gives several values; it can only be a column's whole expression");
    let error = BindError::new(BindErrorCode::Invalid, span, message);
    Err(error.with_hint("make columns of them with `extend` first").into())
}
