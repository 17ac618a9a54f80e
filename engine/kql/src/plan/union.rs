//! `union`: columns are matched by name, in the order in which names appear. A column that a table lacks is null there;
//! one that has different types in different tables becomes a column for each type, with the type in its name.

use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, lit};

use super::columns::matches_wildcard;
use super::relation::refuse_in_groups;
use super::{Column, Relation};
use crate::ast::{Expr, ExprKind, Literal, OperatorKind, OperatorParameter, ParameterValue};
use crate::bind::{
    BindError, BindErrorCode, BindStop, Binder, Environment, Need, Result, Typed, fail, invalid, null_of, text_literal,
    unique_name,
};
use crate::host::TableKey;
use crate::span::Span;
use crate::types::KqlType;

impl<'a> Binder<'a> {
    /// Plans a union that starts a query.
    pub(crate) fn union_of(
        &mut self,
        tables: &'a [Expr],
        parameters: &'a [OperatorParameter],
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let is_fuzzy = self.is_fuzzy(parameters);
        let mut inputs = Vec::with_capacity(tables.len());
        self.add_operands(&mut inputs, tables, is_fuzzy, environment)?;
        if let (true, Some(first), Some(last)) = (is_fuzzy && inputs.is_empty(), tables.first(), tables.last()) {
            return fail(BindErrorCode::UnknownTable, first.span.to(last.span), "none of the union's tables is there");
        }
        self.united(inputs, parameters)
    }

    /// Plans a union with the rows before it.
    pub(super) fn union_with(
        &mut self,
        input: Relation,
        tables: &'a [Expr],
        parameters: &'a [OperatorParameter],
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let is_fuzzy = self.is_fuzzy(parameters);
        let mut inputs = vec![input];
        self.add_operands(&mut inputs, tables, is_fuzzy, environment)?;
        if let ([input, ..], Some(first), Some(last)) = (inputs.as_slice(), tables.first(), tables.last()) {
            refuse_in_groups(input, first.span.to(last.span))?;
        }
        self.united(inputs, parameters)
    }

    /// Whether a table that is not there is left out.
    fn is_fuzzy(&self, parameters: &[OperatorParameter]) -> bool {
        let is_asked = |parameter: &OperatorParameter| parameter.name.text == "isfuzzy" && is_true(&parameter.value);
        self.is_best_effort() || parameters.iter().any(is_asked)
    }

    /// Adds the tables of a union's operands. What was made of a table has its name no more, unless `as` gives it one.
    fn add_operands(
        &mut self,
        inputs: &mut Vec<Relation>,
        operands: &'a [Expr],
        is_fuzzy: bool,
        environment: &Environment<'a>,
    ) -> Result<()> {
        for operand in operands {
            let before = inputs.len();
            self.add_tables(inputs, operand, is_fuzzy, environment)?;
            if let ExprKind::Pipeline(pipeline) = &operand.kind
                && let Some(last) = pipeline.operators.last()
                && !matches!(last.kind, OperatorKind::As(_))
            {
                inputs.iter_mut().skip(before).for_each(|made| made.name = None);
            }
        }
        Ok(())
    }

    /// Adds the tables that an operand of `union` or `search` stands for.
    pub(super) fn add_tables(
        &mut self,
        inputs: &mut Vec<Relation>,
        table: &'a Expr,
        is_fuzzy: bool,
        environment: &Environment<'a>,
    ) -> Result<()> {
        match &table.kind {
            ExprKind::Wildcard { base, pattern } => {
                let before = inputs.len();
                match base {
                    Some(base) => self.add_of_databases(inputs, base, pattern, table.span, environment)?,
                    None => self.add_matching(inputs, None, pattern, table.span, environment)?,
                }
                if inputs.len() == before && !is_fuzzy {
                    let message = format!("no table's name fits `{pattern}`");
                    return fail(BindErrorCode::UnknownTable, table.span, message);
                }
                Ok(())
            }
            ExprKind::Member { base, name } if self.names_databases(base, environment)? => {
                let before = inputs.len();
                self.add_of_databases(inputs, base, &name.text, table.span, environment)?;
                if inputs.len() == before && !is_fuzzy {
                    let message = format!("none of these databases has a table `{}`", name.text);
                    return fail(BindErrorCode::UnknownTable, table.span, message);
                }
                Ok(())
            }
            ExprKind::Star => self.add_matching(inputs, None, "*", table.span, environment),
            _ => match self.table(table, environment) {
                Err(BindStop::Error(error)) if is_fuzzy && is_missing(&error, table) => Ok(()),
                Err(stop) => Err(stop),
                Ok(relation) => {
                    inputs.push(relation);
                    Ok(())
                }
            },
        }
    }

    /// Whether an expression is `database('d*')`, which stands for several.
    fn names_databases(&mut self, base: &'a Expr, environment: &Environment<'a>) -> Result<bool> {
        let is_call = matches!(&base.kind, ExprKind::Call(call) if call.function.text == "database");
        Ok(is_call && self.database_of(base, environment)?.contains('*'))
    }

    /// Adds the tables whose names match a pattern, of the database that `base` names or of all that fit its wildcard.
    fn add_of_databases(
        &mut self,
        inputs: &mut Vec<Relation>,
        base: &'a Expr,
        pattern: &str,
        span: Span,
        environment: &Environment<'a>,
    ) -> Result<()> {
        let wanted = self.database_of(base, environment)?;
        if !wanted.contains('*') {
            return self.add_matching(inputs, Some(wanted), pattern, span, environment);
        }
        let Some(databases) = &self.answers.databases else { return Err(BindStop::Needs(Need::Databases)) };
        let wanted = wanted.to_lowercase();
        for database in databases.iter().filter(|name| matches_wildcard(&wanted, &name.to_lowercase())) {
            self.add_matching(inputs, Some(database.clone()), pattern, span, environment)?;
        }
        Ok(())
    }

    /// Adds the tables whose names match a pattern.
    pub(super) fn add_matching(
        &mut self,
        inputs: &mut Vec<Relation>,
        database: Option<String>,
        pattern: &str,
        span: Span,
        environment: &Environment<'a>,
    ) -> Result<()> {
        if database.is_none() {
            for (name, binding) in environment.tables() {
                if matches_wildcard(pattern, name) {
                    inputs.push(self.variable_table(name, binding, span)?);
                }
            }
        }
        let key = TableKey { database: database.clone(), table: pattern.to_owned() };
        let names = match self.answers.listings.get(&key) {
            Some(names) => names,
            None => return Err(BindStop::Needs(Need::Tables(key))),
        };
        // Names of tables match without regard to case, as where they are written out.
        let pattern = pattern.to_lowercase();
        for name in names.iter().filter(|name| matches_wildcard(&pattern, &name.to_lowercase())) {
            if self.may_name(database.as_deref(), name, environment) {
                inputs.push(self.stored_table(database.clone(), name, span, environment)?);
            }
        }
        Ok(())
    }

    pub(crate) fn united(&mut self, inputs: Vec<Relation>, parameters: &'a [OperatorParameter]) -> Result<Relation> {
        let is_inner = parameters.iter().any(|parameter| {
            parameter.name.text == "kind"
                && matches!(&parameter.value, ParameterValue::Name(name) if name.text == "inner")
        });
        let mut source = None;
        for parameter in parameters {
            match (parameter.name.text.as_str(), &parameter.value) {
                ("withsource" | "with_source", ParameterValue::Name(name)) => source = Some(name.text.clone()),
                ("withsource" | "with_source", ParameterValue::Literal(Literal::String(name))) => {
                    source = Some(name.clone());
                }
                ("withsource" | "with_source", ParameterValue::Literal(_)) => {
                    return invalid(parameter.span, "expected a column's name");
                }
                _ => {}
            }
        }
        let wanted = wanted_columns(&inputs, is_inner);
        let mut names: Vec<String> = Vec::with_capacity(wanted.len());
        for (name, kql_type) in &wanted {
            let several = wanted.iter().filter(|(other, _)| other == name).count() > 1;
            names.push(if several {
                let typed = format!("{name}_{}", kql_type.name());
                unique_name(&typed, |taken| {
                    names.iter().chain(wanted.iter().map(|(name, _)| name)).any(|it| it == taken)
                })
            } else {
                name.clone()
            });
        }
        let source_column = source.map(|name| (name, self.field("source")));
        let columns: Vec<Column> = names
            .into_iter()
            .zip(&wanted)
            .map(|(name, (_, kql_type))| Column { field: self.field(&name), name, kql_type: *kql_type })
            .collect();
        let mut united: Option<LogicalPlan> = None;
        for (index, input) in inputs.iter().enumerate() {
            let mut exprs = Vec::with_capacity(columns.len() + 1);
            if let Some((_, field)) = &source_column {
                let name = match &input.name {
                    Some(name) if !input.is_variable => name.clone(),
                    _ => format!("union_arg{index}"),
                };
                exprs.push(text_literal(name).alias(field.clone()));
            }
            for (column, (name, kql_type)) in columns.iter().zip(&wanted) {
                let found = input.columns.iter().find(|found| found.name == *name && found.kql_type == *kql_type);
                let value = found.map_or_else(|| lit(null_of(*kql_type)), Column::expr);
                exprs.push(value.alias(column.field.clone()));
            }
            let plan = LogicalPlanBuilder::from(input.plan.clone()).project(exprs)?.build()?;
            united = Some(match united {
                Some(before) => LogicalPlanBuilder::from(before).union(plan)?.build()?,
                None => plan,
            });
        }
        let plan = match united {
            Some(plan) => plan,
            None => LogicalPlanBuilder::empty(false).build()?,
        };
        let mut all = Vec::with_capacity(columns.len() + 1);
        if let Some((name, field)) = source_column {
            all.push(Column { name, field, kql_type: KqlType::String });
        }
        all.extend(columns);
        // A union's fields may come out qualified; a projection over them makes them plain again.
        let relation = Relation::new(plan, all.clone());
        let outputs = all.iter().map(Column::output).collect::<Vec<(String, Typed)>>();
        self.projected(relation, outputs)
    }
}

/// Returns the columns of a union, by name and type.
fn wanted_columns(inputs: &[Relation], is_inner: bool) -> Vec<(String, KqlType)> {
    let mut wanted: Vec<(String, KqlType)> = Vec::new();
    for column in inputs.iter().flat_map(|input| &input.columns) {
        let known = (column.name.clone(), column.kql_type);
        if !wanted.contains(&known) {
            // Columns of one name are next to each other.
            let after = wanted.iter().rposition(|(name, _)| *name == column.name);
            match after {
                Some(index) => wanted.insert(index + 1, known),
                None => wanted.push(known),
            }
        }
    }
    if is_inner {
        wanted.retain(|(name, kql_type)| {
            inputs
                .iter()
                .all(|input| input.columns.iter().any(|column| column.name == *name && column.kql_type == *kql_type))
        });
    }
    wanted
}

/// Whether an error says that an operand's table, or the function that returns it, is not there.
fn is_missing(error: &BindError, operand: &Expr) -> bool {
    match error.code {
        BindErrorCode::UnknownTable => true,
        BindErrorCode::UnknownFunction => source_function(operand) == Some(error.span),
        _ => false,
    }
}

/// Returns where the function stands whose rows an operand begins with.
fn source_function(operand: &Expr) -> Option<Span> {
    match &operand.kind {
        ExprKind::Call(call) => Some(call.function.span),
        ExprKind::Pipeline(pipeline) => pipeline.source.as_ref().and_then(source_function),
        _ => None,
    }
}

fn is_true(value: &ParameterValue) -> bool {
    match value {
        ParameterValue::Literal(literal) => *literal == Literal::Bool(true),
        ParameterValue::Name(name) => name.text == "true",
    }
}
