//! Binds statements and tabular expressions: a name, a pipeline, a function that returns a table.

use super::instead::{is_other_place, missing_name};
use super::user_functions::{check_parameters, needs_no_arguments};
use super::{
    BindErrorCode, BindStop, Binder, Binding, Environment, ExpressionScope, Need, Result, constant_of, fail, invalid,
    not_supported, text_of, unsupported_name,
};
use crate::ast::{
    Expr, ExprKind, FunctionCall, Names, OperatorKind, ParameterKind, Pipeline, Statement, StatementKind,
    SubqueryFunction,
};
use crate::host::{TableKey, TableLookup};
use crate::plan::Relation;
use crate::span::Span;

/// What the second argument of `table` may be.
const DATA_SCOPES: [&str; 3] = ["hotcache", "all", "default"];

impl<'a> Binder<'a> {
    /// Returns the environment with the statements' variables, and the expression that they return.
    pub(crate) fn statements(
        &mut self,
        statements: &'a [Statement],
        environment: Environment<'a>,
    ) -> Result<(Environment<'a>, Option<&'a Expr>)> {
        check_names(statements)?;
        let mut environment = environment;
        let mut result = None;
        for statement in statements {
            if let Some(expr) = self.statement(statement, &mut environment)? {
                if result.is_some() {
                    return invalid(statement.span, "a function has one result");
                }
                result = Some(expr);
            }
        }
        Ok((environment, result))
    }

    /// Binds a statement: adds what it declares to the environment, and returns the expression that it is.
    pub(super) fn statement(
        &mut self,
        statement: &'a Statement,
        environment: &mut Environment<'a>,
    ) -> Result<Option<&'a Expr>> {
        match &statement.kind {
            StatementKind::Expression(expr) => return Ok(Some(expr)),
            StatementKind::Let { name, value } => {
                let binding = self.variable(value, environment)?;
                *environment = environment.with(&name.text, binding);
            }
            StatementKind::LetFunction { name, function } => {
                check_parameters(function)?;
                *environment = environment.with(&name.text, Binding::Function(function, environment.clone()));
            }
            StatementKind::QueryParameters(parameters) => {
                for parameter in parameters {
                    let value = self.query_parameter(parameter, environment)?;
                    *environment = environment.with(&parameter.name.text, Binding::Scalar(value, 1));
                }
            }
            // Read before the first statement is bound.
            StatementKind::Set { .. } => {}
            StatementKind::Pattern(pattern) => {
                *environment = environment.with(&pattern.name.text, Binding::Pattern(pattern, environment.clone()));
            }
            StatementKind::AliasDatabase { .. } => {
                return unsupported_name(statement.span, "statement", "alias database");
            }
            StatementKind::RestrictAccess(allowed) => *environment = self.restricted(allowed, environment)?,
            StatementKind::Command => return not_supported(statement.span, "this management command"),
            StatementKind::Invalid => return invalid(statement.span, "this could not be read"),
        }
        Ok(None)
    }

    fn variable(&mut self, value: &'a Expr, environment: &Environment<'a>) -> Result<Binding<'a>> {
        if self.is_tabular(value, environment) || matches!(value.kind, ExprKind::EntityGroup(_)) {
            return Ok(Binding::Table(value, environment.clone()));
        }
        let before = self.spent();
        let typed = self.scalar(value, &ExpressionScope::constant(environment))?;
        Ok(Binding::Scalar(typed, self.spent() - before))
    }

    /// Whether an expression is a table rather than a value.
    pub(crate) fn is_tabular(&self, expr: &Expr, environment: &Environment<'a>) -> bool {
        if self.pattern_call(expr, environment).is_some() {
            return true;
        }
        match &expr.kind {
            ExprKind::Pipeline(_) | ExprKind::DataTable(_) | ExprKind::ExternalData(_) | ExprKind::Wildcard { .. } => {
                true
            }
            ExprKind::Subquery { function, .. } => *function != SubqueryFunction::ToScalar,
            ExprKind::Name(name) => match environment.find(&name.text) {
                Some(Binding::Scalar(..)) => false,
                Some(Binding::Function(function, outer)) => self.returns_table(&function.body, outer, function),
                _ => true,
            },
            ExprKind::Member { base, .. } => match &base.kind {
                ExprKind::Call(call) => matches!(call.function.text.as_str(), "database" | "cluster"),
                ExprKind::Name(name) => matches!(environment.find(&name.text), Some(Binding::Database(_))),
                ExprKind::Member { .. } => self.is_tabular(base, environment),
                _ => false,
            },
            ExprKind::Call(call) if call.target.is_some() => call.function.text == "table",
            ExprKind::Call(call) => match environment.find(&call.function.text) {
                Some(Binding::Function(function, outer)) => self.returns_table(&function.body, outer, function),
                _ => matches!(
                    call.function.text.as_str(),
                    "table" | "external_table" | "materialized_view" | "stored_query_result" | "graph"
                ),
            },
            _ => false,
        }
    }

    /// Whether a function's body ends with a table.
    fn returns_table(
        &self,
        body: &[Statement],
        environment: &Environment<'a>,
        function: &crate::ast::Function,
    ) -> bool {
        let Some(StatementKind::Expression(result)) = body.last().map(|statement| &statement.kind) else {
            return false;
        };
        if let ExprKind::Name(name) = &result.kind {
            for statement in body {
                if let StatementKind::Let { name: variable, value } = &statement.kind
                    && variable.text == name.text
                {
                    return self.is_tabular(value, environment);
                }
            }
            for parameter in &function.parameters {
                if parameter.name.text == name.text {
                    return matches!(parameter.kind, ParameterKind::Tabular(_));
                }
            }
        }
        self.is_tabular(result, environment)
    }

    /// Binds an expression that must be a table.
    pub(crate) fn table(&mut self, expr: &'a Expr, environment: &Environment<'a>) -> Result<Relation> {
        self.spend(1, expr.span)?;
        self.nested(expr.span, |binder| binder.table_unchecked(expr, environment))
    }

    fn table_unchecked(&mut self, expr: &'a Expr, environment: &Environment<'a>) -> Result<Relation> {
        if let Some((call, path)) = self.pattern_call(expr, environment) {
            return self.pattern_table(call, path, expr.span, environment);
        }
        match &expr.kind {
            ExprKind::Name(name) => match environment.find(&name.text).cloned() {
                Some(binding) => self.variable_table(&name.text, binding, name.span),
                None => self.stored_table(None, &name.text, name.span, environment),
            },
            ExprKind::Pipeline(pipeline) => self.pipeline(pipeline, environment),
            ExprKind::DataTable(table) => self.data_table(table, environment),
            ExprKind::Subquery { function: SubqueryFunction::Materialize, body } => {
                self.materialize(expr, body, environment)
            }
            ExprKind::Subquery { function: SubqueryFunction::ToTable, body } => self.table(body, environment),
            ExprKind::Member { base, name } => {
                let database = self.database_of(base, environment)?;
                self.stored_table(Some(database), &name.text, expr.span, environment)
            }
            ExprKind::Call(call) => self.table_of_call(call, expr.span, environment),
            ExprKind::Wildcard { .. } => self.union_of(std::slice::from_ref(expr), &[], environment),
            ExprKind::ExternalData(external) => {
                self.check_unrestricted(expr.span, environment)?;
                self.external_data(external, expr.span, environment)
            }
            ExprKind::Invalid => invalid(expr.span, "this could not be read"),
            _ => fail(BindErrorCode::TypeMismatch, expr.span, "expected a table, found a value"),
        }
    }

    /// Returns the table that a variable names.
    pub(crate) fn variable_table(&mut self, name: &str, binding: Binding<'a>, span: Span) -> Result<Relation> {
        match binding {
            Binding::Table(value, outer) => {
                let mut relation = self.table(value, &outer)?;
                // A variable that is nothing but another name of a table is that table to `withsource`.
                let is_table = matches!(value.kind, ExprKind::Name(_) | ExprKind::Member { .. });
                if !is_table || relation.is_variable || relation.name.is_none() {
                    relation.name = Some(name.to_owned());
                    relation.is_variable = true;
                }
                Ok(relation)
            }
            Binding::Bound(relation) => self.renamed(&relation),
            Binding::Scalar(..) => fail(BindErrorCode::TypeMismatch, span, format!("`{name}` is a value, not a table")),
            Binding::Function(function, outer) if needs_no_arguments(function) => {
                let inside = self.with_defaults(function, &outer, span)?;
                let (inside, result) = self.statements(&function.body, inside)?;
                match result {
                    Some(body) => {
                        let relation = self.table(body, &inside)?;
                        Ok(Relation { name: Some(name.to_owned()), is_variable: false, ..relation })
                    }
                    None => invalid(span, "this function returns nothing"),
                }
            }
            Binding::Database(_) => invalid(span, format!("`{name}` is a database; name a table of it: `{name}.T`")),
            Binding::Function(..) | Binding::Pattern(..) => invalid(span, "call the function with its arguments"),
        }
    }

    fn table_of_call(&mut self, call: &'a FunctionCall, span: Span, environment: &Environment<'a>) -> Result<Relation> {
        if let Some(target) = &call.target {
            if call.function.text == "table" {
                let database = self.database_of(target, environment)?;
                let name = self.name_argument(call, 2, environment)?;
                self.check_data_scope(call, environment)?;
                return self.stored_table(Some(database), &name, span, environment);
            }
            return not_supported(span, "calling a function of another database");
        }
        if let Some(Binding::Function(function, outer)) = environment.find(&call.function.text).cloned() {
            return self.user_table(call, None, function, &outer, &ExpressionScope::constant(environment));
        }
        match call.function.text.as_str() {
            // A view is made of its tables as they are, so that it is of any age.
            "table" | "materialized_view" | "external_table" => {
                let most = if call.function.text == "external_table" { 1 } else { 2 };
                let name = self.name_argument(call, most, environment)?;
                if call.function.text == "table" {
                    self.check_data_scope(call, environment)?;
                }
                match environment.find(&name).cloned() {
                    Some(binding) if is_table_of_its_own(&binding) => self.variable_table(&name, binding, span),
                    _ => self.stored_table(None, &name, span, environment),
                }
            }
            "graph" => {
                self.check_unrestricted(span, environment)?;
                self.stored_graph(call, span, environment)
            }
            name @ "stored_query_result" => unsupported_name(call.function.span, "function", name),
            name => {
                let message = format!("`{name}` is no function that returns a table");
                missing_name(BindErrorCode::UnknownFunction, call.function.span, name, message)
            }
        }
    }

    /// Binds the function call of an `invoke`.
    pub(crate) fn invoked(
        &mut self,
        input: Relation,
        expr: &'a Expr,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let ExprKind::Call(call) = &expr.kind else { return invalid(expr.span, "expected a function of this query") };
        let name = &call.function.text;
        if let Some(Binding::Function(function, outer)) = environment.find(name).cloned() {
            return self.user_table(call, Some(input), function, &outer, &ExpressionScope::constant(environment));
        }
        let message = format!("`{name}` is no function of this query");
        missing_name(BindErrorCode::UnknownFunction, call.function.span, name, message)
    }

    /// Returns the database that `database('d')` names.
    pub(crate) fn database_of(&mut self, expr: &'a Expr, environment: &Environment<'a>) -> Result<String> {
        match &expr.kind {
            ExprKind::Call(call) if is_call_of_other_cluster(call) => {
                unsupported_name(expr.span, "function", "cluster")
            }
            ExprKind::Call(call) if is_other_place(&call.function.text) => {
                unsupported_name(call.function.span, "function", &call.function.text)
            }
            ExprKind::Call(call) if call.function.text == "database" && call.target.is_none() => {
                if call.arguments.is_empty() {
                    return Ok(self.answers.database.clone());
                }
                self.name_argument(call, 1, environment)
            }
            ExprKind::Name(name) => match environment.find(&name.text) {
                Some(Binding::Database(database)) => Ok(database.as_ref().to_owned()),
                _ => Ok(name.text.clone()),
            },
            _ => not_supported(expr.span, "this way to name a database"),
        }
    }

    /// Returns the name that a call of at most so many arguments begins with.
    fn name_argument(&mut self, call: &'a FunctionCall, most: usize, environment: &Environment<'a>) -> Result<String> {
        let Some(argument) = call.arguments.first().filter(|_| call.arguments.len() <= most) else {
            return invalid(call.function.span, "expected one name");
        };
        let typed = self.scalar(&argument.expr, &ExpressionScope::constant(environment))?;
        match text_of(constant_of(&typed.expr)?.as_ref()) {
            Some(text) => Ok(text.to_owned()),
            None => invalid(argument.span, "expected a constant string"),
        }
    }

    /// Checks the second argument of `table`. It leaves out no row: what is in a cache is not told apart here.
    fn check_data_scope(&mut self, call: &'a FunctionCall, environment: &Environment<'a>) -> Result<()> {
        let Some(argument) = call.arguments.get(1) else { return Ok(()) };
        let typed = self.scalar(&argument.expr, &ExpressionScope::constant(environment))?;
        match text_of(constant_of(&typed.expr)?.as_ref()) {
            Some(scope) if DATA_SCOPES.iter().any(|known| known.eq_ignore_ascii_case(scope)) => Ok(()),
            _ => invalid(argument.span, format!("the rows that `table` reads are one of: {}", DATA_SCOPES.join(", "))),
        }
    }

    pub(crate) fn stored_table(
        &mut self,
        database: Option<String>,
        name: &str,
        span: Span,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        self.check_access(database.as_deref(), name, span, environment)?;
        let key = TableKey { database, table: name.to_owned() };
        match self.answers.tables.get(&key) {
            Some(TableLookup::Found { source, json_columns, uuid_columns }) => {
                let (source, json) = (std::sync::Arc::clone(source), json_columns.clone());
                let uuids = uuid_columns.clone();
                let table = self.scan(name, source, &json, &uuids)?;
                self.within_scope(table, span)
            }
            Some(TableLookup::Missing(message)) => {
                missing_name(BindErrorCode::UnknownTable, span, name, message.clone())
            }
            None => Err(BindStop::Needs(Need::Table(key))),
        }
    }

    /// Binds a pipeline that has a source or begins with an operator that needs none.
    pub(crate) fn pipeline(&mut self, pipeline: &'a Pipeline, environment: &Environment<'a>) -> Result<Relation> {
        self.pipeline_up_to(pipeline, pipeline.operators.len(), environment)
    }

    /// Binds the first `count` operators of a pipeline.
    pub(super) fn pipeline_up_to(
        &mut self,
        pipeline: &'a Pipeline,
        count: usize,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let mut operators = pipeline.operators.iter().take(count);
        let mut relation = match &pipeline.source {
            Some(source) => self.table(source, environment)?,
            None => match operators.next() {
                Some(first) => self.source_operator(first, environment)?,
                None => return invalid(Span::default(), "an empty pipeline"),
            },
        };
        let outer_environment = environment;
        let mut environment = environment.clone();
        let last = pipeline.operators.last();
        for operator in operators {
            if matches!(operator.kind, OperatorKind::Render(_))
                && !last.is_some_and(|last| std::ptr::eq(last, operator))
            {
                return invalid(operator.span, "`render` is the last operator of a query");
            }
            relation = self.operator(relation, operator, &environment)?;
            if let OperatorKind::As(name) = &operator.kind {
                relation = self.materialized_as(relation, operator, outer_environment)?;
                environment = environment.with(&name.text, Binding::Bound(std::rc::Rc::new(relation.clone())));
            }
        }
        Ok(relation)
    }

    /// Returns a query that is a scalar as a table of one value.
    pub(super) fn printed(&mut self, expr: &'a Expr, environment: &Environment<'a>) -> Result<Relation> {
        let typed = self.scalar(expr, &ExpressionScope::constant(environment))?;
        self.one_row(vec![("print_0".to_owned(), typed)])
    }
}

/// Whether what a name stands for is a table without any arguments.
fn is_table_of_its_own(binding: &Binding<'_>) -> bool {
    match binding {
        Binding::Table(..) | Binding::Bound(_) => true,
        Binding::Function(function, _) => needs_no_arguments(function),
        Binding::Scalar(..) | Binding::Database(_) | Binding::Pattern(..) => false,
    }
}

/// Whether a call is `cluster(...)`, or is one of `cluster(...).database(...)`.
fn is_call_of_other_cluster(call: &FunctionCall) -> bool {
    let is_cluster = |call: &FunctionCall| call.function.text == "cluster";
    is_cluster(call)
        || matches!(call.target.as_ref().map(|target| &target.kind), Some(ExprKind::Call(of)) if is_cluster(of))
}

/// Returns the name that an expression is given, where it is one.
pub(crate) fn given_name(names: &Names) -> Option<&str> {
    match names {
        Names::One(name) => Some(&name.text),
        Names::Unnamed | Names::Several(_) => None,
    }
}

/// Checks that no two statements of one level give the same name.
pub(super) fn check_names(statements: &[Statement]) -> Result<()> {
    let mut known: Vec<&str> = Vec::new();
    for statement in statements {
        let (StatementKind::Let { name, .. } | StatementKind::LetFunction { name, .. }) = &statement.kind else {
            continue;
        };
        if known.contains(&name.text.as_str()) {
            return invalid(name.span, format!("`{}` is there already; a `let` takes another name", name.text));
        }
        known.push(&name.text);
    }
    Ok(())
}
