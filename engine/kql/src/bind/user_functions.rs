//! Functions of `let`: their bodies are bound at each call, in the environment of their definition with their
//! parameters in front of it.

use std::rc::Rc;

use super::{BindError, BindErrorCode, Binder, Binding, Environment, ExpressionScope, Result, invalid};
use crate::ast::{ColumnDeclaration, Expr, Function, FunctionCall, NamedExpr, Names, Parameter, ParameterKind};
use crate::plan::Relation;
use crate::span::Span;
use crate::types::KqlType;

impl<'a> Binder<'a> {
    /// Binds a call of a function that returns a scalar.
    pub(crate) fn user_scalar(
        &mut self,
        call: &'a FunctionCall,
        function: &'a Function,
        environment: &Environment<'a>,
        scope: &ExpressionScope<'_, 'a>,
    ) -> Result<super::Typed> {
        let span = call.function.span;
        let inside = self.with_arguments(&call.arguments, None, function, environment, scope, span)?;
        let (inside, result) = self.statements(&function.body, inside)?;
        match result {
            Some(body) => self.nested(span, |binder| binder.scalar(body, &ExpressionScope::constant(&inside))),
            None => invalid(span, "this function returns nothing"),
        }
    }

    /// Binds the name alone of a function that needs no arguments and returns a scalar, which calls it.
    pub(crate) fn without_arguments(
        &mut self,
        function: &'a Function,
        environment: &Environment<'a>,
        span: Span,
    ) -> Result<super::Typed> {
        let inside = self.with_defaults(function, environment, span)?;
        let (inside, result) = self.statements(&function.body, inside)?;
        match result {
            Some(body) => self.nested(span, |binder| binder.scalar(body, &ExpressionScope::constant(&inside))),
            None => invalid(span, "this function returns nothing"),
        }
    }

    /// Returns the function's environment where its name stands alone.
    pub(super) fn with_defaults(
        &mut self,
        function: &'a Function,
        environment: &Environment<'a>,
        span: Span,
    ) -> Result<Environment<'a>> {
        self.with_arguments(&[], None, function, environment, &ExpressionScope::constant(environment), span)
    }

    /// Binds a call of a function that returns a table; `piped` is its first table, in `invoke`.
    pub(crate) fn user_table(
        &mut self,
        call: &'a FunctionCall,
        piped: Option<Relation>,
        function: &'a Function,
        environment: &Environment<'a>,
        scope: &ExpressionScope<'_, 'a>,
    ) -> Result<Relation> {
        let span = call.function.span;
        let inside = self.with_arguments(&call.arguments, piped, function, environment, scope, span)?;
        let (inside, result) = self.statements(&function.body, inside)?;
        match result {
            Some(body) => self.nested(span, |binder| binder.table(body, &inside)),
            None => invalid(span, "this function returns nothing"),
        }
    }

    /// Returns the function's environment with its parameters.
    fn with_arguments(
        &mut self,
        arguments: &'a [NamedExpr],
        piped: Option<Relation>,
        function: &'a Function,
        environment: &Environment<'a>,
        scope: &ExpressionScope<'_, 'a>,
        span: Span,
    ) -> Result<Environment<'a>> {
        self.spend(1, span)?;
        let mut inside = environment.clone();
        let mut parameters = function.parameters.iter();
        if let Some(relation) = piped {
            let Some((first, ParameterKind::Tabular(columns))) = parameters.next().map(|first| (first, &first.kind))
            else {
                return invalid(span, "the function's first parameter is no table");
            };
            check_columns(&relation, columns, span)?;
            inside = inside.with(&first.name.text, Binding::Bound(Rc::new(relation)));
        }
        let parameters: Vec<&'a Parameter> = parameters.collect();
        let mut given: Vec<Option<&'a Expr>> = vec![None; parameters.len()];
        for (position, argument) in arguments.iter().enumerate() {
            let index = match &argument.names {
                Names::One(name) => parameters.iter().position(|parameter| parameter.name.text == name.text),
                Names::Unnamed | Names::Several(_) => Some(position),
            };
            match index.and_then(|index| given.get_mut(index)) {
                Some(slot) => *slot = Some(&argument.expr),
                None => return invalid(argument.span, "the function has no such parameter"),
            }
        }
        for (parameter, argument) in parameters.into_iter().zip(given) {
            let binding = self.argument(parameter, argument, scope, span)?;
            inside = inside.with(&parameter.name.text, binding);
        }
        Ok(inside)
    }

    fn argument(
        &mut self,
        parameter: &'a Parameter,
        argument: Option<&'a Expr>,
        scope: &ExpressionScope<'_, 'a>,
        span: Span,
    ) -> Result<Binding<'a>> {
        match &parameter.kind {
            ParameterKind::Tabular(columns) => {
                let Some(argument) = argument else {
                    return invalid(span, format!("the table `{}` is missing", parameter.name.text));
                };
                let relation = self.table(argument, scope.environment)?;
                check_columns(&relation, columns, argument.span)?;
                Ok(Binding::Bound(Rc::new(relation)))
            }
            ParameterKind::Scalar { scalar_type, default } => {
                let before = self.spent();
                let value = match (argument, default) {
                    (Some(argument), _) => self.scalar(argument, &scope.inside_aggregate())?,
                    (None, Some(default)) => {
                        self.scalar(default, &ExpressionScope::constant(&Environment::default()))?
                    }
                    (None, None) => {
                        return invalid(span, format!("the argument `{}` is missing", parameter.name.text));
                    }
                };
                let to = KqlType::from(*scalar_type);
                if !fits(value.kql_type, to) {
                    let (wanted, found) = (to.name(), value.kql_type.name());
                    let message = format!("the argument `{}` must be {wanted}, not {found}", parameter.name.text);
                    let error =
                        BindError::new(BindErrorCode::TypeMismatch, argument.map_or(span, |it| it.span), message);
                    return Err(error.with_hint(format!("convert it with to{wanted}(...)")).into());
                }
                let value = self.convert(value, to, span)?;
                Ok(Binding::Scalar(value, self.spent() - before))
            }
        }
    }
}

/// Checks that a table has the columns that a parameter declares, of these types.
fn check_columns(table: &Relation, columns: &[ColumnDeclaration], span: Span) -> Result<()> {
    for wanted in columns {
        let found = table.columns.iter().find(|column| column.name == wanted.name.text);
        if found.is_none_or(|column| column.kql_type != KqlType::from(wanted.scalar_type)) {
            let (name, kql_type) = (&wanted.name.text, wanted.scalar_type.name());
            return invalid(span, format!("the table has no column `{name}` of type {kql_type}"));
        }
    }
    Ok(())
}

/// Whether a function's name alone calls it: it takes nothing, or has a default for everything.
pub(super) fn needs_no_arguments(function: &Function) -> bool {
    let has_default = |parameter: &Parameter| matches!(&parameter.kind, ParameterKind::Scalar { default: Some(_), .. });
    function.parameters.iter().all(has_default)
}

/// Checks that tables come before values among the parameters of a function.
pub(super) fn check_parameters(function: &Function) -> Result<()> {
    let is_table = |parameter: &&Parameter| matches!(parameter.kind, ParameterKind::Tabular(_));
    let first_value = function.parameters.iter().position(|parameter| !is_table(&parameter));
    let behind = first_value.map_or(&[][..], |first| &function.parameters[first..]);
    match behind.iter().find(is_table) {
        Some(table) => invalid(table.span, "the parameters that are tables come first"),
        None => Ok(()),
    }
}

/// Whether a value of a type may be the argument of a parameter of another one.
fn fits(found: KqlType, wanted: KqlType) -> bool {
    let is_open = |kql_type: KqlType| matches!(kql_type, KqlType::Dynamic | KqlType::String);
    let is_number = |kql_type: KqlType| kql_type.is_numeric() || kql_type == KqlType::Bool;
    found == wanted || is_open(wanted) || found == KqlType::Dynamic || (is_number(found) && is_number(wanted))
}
