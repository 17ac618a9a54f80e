//! What a session keeps between statements: settings that are in force for those that follow, and PREPARE and EXECUTE.
//!
//! A prepared statement is kept as its syntax tree and planned again for each EXECUTE, so it sees the tables as they are
//! and is authorised as if it had been sent.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::scalar::ScalarValue;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, CastKind, DataType as SqlType, Ident, ObjectName, SelectItem};

use super::Session;
use crate::error::{EngineError, Result};
use crate::sql::parameters::ParameterValues;
use crate::sql::parse::ParsedStatement;
use crate::sql::query_of_items;
use crate::sql::repeated_changes::takes_one_row;
use crate::sql::session_settings::SCHEMA;
use crate::sql::session_variables::{
    MAX_STATEMENT_BYTES, NamedStatement, SessionChange, SessionVariables, outside_a_session,
};
use crate::sql::write_statement::WriteStatement;

impl Session {
    /// Returns the session whose statements set, and find, `variables`: bare names resolve where `USE` said, unless
    /// [`Session::with_database`] says it afterwards.
    pub fn with_variables(self, variables: Arc<SessionVariables>) -> Self {
        Self { variables: Some(variables), ..self }
    }

    /// Returns the session whose statements may not choose where bare names resolve, since `said_by` says it for each.
    pub fn with_fixed_database(self, said_by: String) -> Self {
        Self { database_said_by: Some(said_by), ..self }
    }

    /// Returns the session as what was set for it has it.
    pub(super) fn in_force(&self) -> Session {
        let mut session = self.clone();
        let Some(variables) = &self.variables else { return session };
        if let (Some(database), false) = (variables.database(), self.database_is_given) {
            session.database = Arc::from(database);
        }
        if let Some(timeout) = variables.statement_timeout() {
            session.limits.wall_clock = session.limits.wall_clock.min(timeout);
        }
        session
    }

    /// Makes a change that a statement asked for.
    pub(super) fn apply_change(&self, change: SessionChange) -> Result<()> {
        if let (SessionChange::Set { setting, .. }, Some(said_by)) = (&change, &self.database_said_by)
            && *setting == SCHEMA
        {
            return Err(EngineError::Unsupported {
                what: format!("USE and SET {SCHEMA} while {said_by} names the database of each statement"),
                hint: "leave it out, or change it there".into(),
            });
        }
        match &self.variables {
            Some(variables) => variables.apply(change),
            None => Err(outside_a_session(change.label())),
        }
    }

    /// Plans what only a session can: PREPARE, EXECUTE, COPY. `None` is any other statement.
    pub(super) async fn plan_named(
        &self,
        parsed: &ParsedStatement,
        parameters: &ParameterValues,
    ) -> Result<Option<LogicalPlan>> {
        let statement = match &parsed.statement {
            Statement::Statement(statement) => statement,
            Statement::CopyTo(copy) => return self.plan_copy(copy, parsed, parameters).await.map(Some),
            Statement::CreateExternalTable(_) | Statement::Explain(_) | Statement::Reset(_) => return Ok(None),
        };
        match statement.as_ref() {
            ast::Statement::Prepare { name, data_types, statement } => {
                let inner = ParsedStatement {
                    statement: Statement::Statement(statement.clone()),
                    nesting: parsed.nesting,
                    parameters: parsed.parameters,
                    has_parameters: parsed.has_parameters,
                    text_bytes: parsed.text_bytes,
                };
                self.plan_prepare(name, data_types, inner).await.map(Some)
            }
            ast::Statement::Execute { .. } => {
                let (name, values) = execute_parts(statement)?;
                self.plan_execute(name, values, parameters).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    async fn plan_prepare(&self, name: &Ident, types: &[SqlType], statement: ParsedStatement) -> Result<LogicalPlan> {
        if self.variables.is_none() {
            return Err(outside_a_session("PREPARE"));
        }
        if statement.text_bytes > MAX_STATEMENT_BYTES {
            return Err(EngineError::Plan {
                message: format!("a prepared statement has at most {} KiB of text", MAX_STATEMENT_BYTES >> 10),
            });
        }
        if let Statement::Statement(inner) = &statement.statement
            && matches!(**inner, ast::Statement::Prepare { .. } | ast::Statement::Execute { .. })
        {
            return Err(EngineError::Unsupported {
                what: "PREPARE of a PREPARE or an EXECUTE".into(),
                hint: "prepare the statement itself".into(),
            });
        }
        // EXECUTE gives values by their places.
        if statement.has_named_parameters() {
            return Err(EngineError::Unsupported {
                what: "PREPARE with parameters by name".into(),
                hint: "number them, $1, $2 and so on, and write EXECUTE name(value, ...)".into(),
            });
        }
        // What cannot be planned is refused now, as its types are known.
        let known = match types {
            [] => Vec::new(),
            types => self.types_of(types).await?.into_iter().map(Some).collect(),
        };
        Box::pin(self.describe_parsed(&statement, known, None)).await?;
        let named = NamedStatement { name: name.value.clone(), types: types.to_vec(), statement };
        Ok(WriteStatement::Session(SessionChange::Prepare(Arc::new(named))).into_plan())
    }

    /// Returns the fields that types of SQL stand for.
    async fn types_of(&self, types: &[SqlType]) -> Result<Vec<FieldRef>> {
        let null = || ast::Expr::Value(ast::Value::Null.into());
        let items = types.iter().map(|data_type| cast_to(null(), data_type)).collect();
        let plan = Box::pin(self.plan_values(items, &ParameterValues::None)).await?;
        Ok(plan.schema().fields().iter().cloned().collect())
    }

    async fn plan_execute(
        &self,
        name: String,
        values: Vec<ast::Expr>,
        parameters: &ParameterValues,
    ) -> Result<LogicalPlan> {
        let variables = self.variables.as_ref().ok_or_else(|| outside_a_session("EXECUTE"))?;
        if parameters.has_several_rows() {
            return Err(takes_one_row("EXECUTE"));
        }
        let named = variables.statement(&name)?;
        let (given, expected) = (values.len(), named.statement.parameters);
        if given != expected {
            return Err(EngineError::Plan {
                message: format!("`{}` has {expected} parameters; EXECUTE gives {given}", named.name),
            });
        }
        let typed = values.into_iter().enumerate().map(|(index, value)| match named.types.get(index) {
            Some(data_type) => cast_to(value, data_type),
            None => value,
        });
        let typed: Vec<ast::Expr> = typed.collect();
        let row = match typed.is_empty() {
            true => Vec::new(),
            false => {
                let plan = Box::pin(self.plan_values(typed, parameters)).await?;
                self.literals(plan)?
            }
        };
        Box::pin(self.plan_parsed(named.statement.clone(), ParameterValues::Row(row))).await
    }

    /// Plans `SELECT values`.
    async fn plan_values(&self, values: Vec<ast::Expr>, parameters: &ParameterValues) -> Result<LogicalPlan> {
        let items = values.into_iter().enumerate().map(|(index, expr)| SelectItem::ExprWithAlias {
            expr,
            alias: Ident::with_quote('"', format!("value {}", index + 1)),
        });
        let statement = ast::Statement::Query(Box::new(query_of_items(items.collect())));
        let parsed = ParsedStatement {
            statement: Statement::Statement(Box::new(statement)),
            nesting: crate::sql::parse::Nesting::Deep,
            parameters: 0,
            has_parameters: false,
            text_bytes: 0,
        };
        self.plan_parsed(parsed, parameters.clone()).await
    }

    /// Returns the values of a plan that computes one row of constants.
    fn literals(&self, plan: LogicalPlan) -> Result<Vec<ScalarValue>> {
        let no_constant =
            || EngineError::Plan { message: "the values of EXECUTE are constants, such as 5, 'a' or now()".into() };
        let plan = self.authorize(plan)?.into_plan();
        let state = self.engine.planning_state();
        let LogicalPlan::Projection(projection) = state.optimizer().optimize(plan, &*state, |_, _| {})? else {
            return Err(no_constant());
        };
        let value = |expr: &Expr| match expr.clone().unalias_nested().data {
            Expr::Literal(value, _) => Some(value),
            _ => None,
        };
        projection.expr.iter().map(value).collect::<Option<_>>().ok_or_else(no_constant)
    }
}

/// Returns the name and the values of `EXECUTE name(values)`.
fn execute_parts(statement: &ast::Statement) -> Result<(String, Vec<ast::Expr>)> {
    let usage = || EngineError::Plan { message: "write EXECUTE name, or EXECUTE name(value, ...)".into() };
    let ast::Statement::Execute { name, parameters, has_parentheses: _, immediate, into, using, output, default } =
        statement
    else {
        return Err(usage());
    };
    let plain = !*immediate && into.is_empty() && using.is_empty() && !*output && !*default;
    let name = match name {
        Some(ObjectName(parts)) if plain => parts.as_slice(),
        _ => return Err(usage()),
    };
    match name {
        [part] => {
            let ident = part.as_ident().ok_or_else(usage)?;
            Ok((ident.value.clone(), parameters.clone()))
        }
        _ => Err(usage()),
    }
}

fn cast_to(expr: ast::Expr, data_type: &SqlType) -> ast::Expr {
    ast::Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(ast::Expr::Nested(Box::new(expr))),
        data_type: data_type.clone(),
        array: false,
        format: None,
    }
}
