//! From a statement's text to an analysed plan: what the session gives to the planner, and the values of parameters.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;

use super::Session;
use crate::error::{EngineError, Result};
use crate::limits::{QueryUsage, check_plan_size};
use crate::runtime::PlanningState;
use crate::sql::FileSources;
use crate::sql::date_coercions::with_coerced_types;
use crate::sql::embedded_texts::with_embedded_texts;
use crate::sql::parameters::ParameterValues;
use crate::sql::parse::{ParsedStatement, parse_statement};
use crate::sql::plan_notes::PlanNotes;
use crate::sql::policy_statement::parse_policy_statement;
use crate::sql::statement::StatementPlanner;
use crate::sql::time_comparisons::settle_times;

impl Session {
    /// Plans a statement; where it is a query, `notes` has what its plan depends on.
    pub(super) async fn parse_and_plan(
        &self,
        text: &str,
        parameters: ParameterValues,
        notes: Option<&PlanNotes>,
    ) -> Result<LogicalPlan> {
        match parse_policy_statement(text, &self.database)? {
            Some(statement) => self.plan_policy(text, statement, parameters).await,
            // Large as a value, and a part of many futures.
            None => {
                let planned = Box::pin(self.plan_noted(parse_statement(text)?, parameters, notes)).await;
                planned.map_err(|error| error.beside_quotes(text))
            }
        }
    }

    pub(super) async fn plan_parsed(
        &self,
        parsed: ParsedStatement,
        parameters: ParameterValues,
    ) -> Result<LogicalPlan> {
        self.plan_noted(parsed, parameters, None).await
    }

    async fn plan_noted(
        &self,
        mut parsed: ParsedStatement,
        parameters: ParameterValues,
        notes: Option<&PlanNotes>,
    ) -> Result<LogicalPlan> {
        if let Some(plan) = self.plan_named(&parsed, &parameters).await? {
            return Ok(plan);
        }
        let notes = notes.filter(|_| is_query(&parsed.statement));
        let state = self.planning_state();
        let types = parameters.types(parsed.has_named_parameters());
        let files = self.take_files(&state, &mut parsed).await?;
        let has_found = self.find_pivot_values(&state, &mut parsed, &files, &parameters).await?;
        if let Some(notes) = notes.filter(|_| has_found || !files.is_empty()) {
            notes.has_read();
        }
        let planner = StatementPlanner { notes, ..self.planner(&state, &types, &files) };
        let has_values = !matches!(parameters, ParameterValues::None);
        let unbound = has_values.then(|| (parsed.clone(), parameters.clone()));
        let plan = match (plan_bound(&planner, parsed, parameters).await, unbound) {
            (Err(refused), Some((open, values))) => {
                let Some(known) = values.as_literals(&open) else { return Err(refused) };
                // Planned for these values and no others.
                if let Some(notes) = notes {
                    notes.has_read();
                }
                if values.has_several_rows() {
                    return Err(refused_rows(&planner, refused, open, known).await);
                }
                plan_bound(&planner, known, ParameterValues::None).await?
            }
            (planned, _) => planned?,
        };
        with_embedded_texts(plan, self.engine.catalog()).await
    }

    /// Returns the state in which SQL is planned: it says to table providers which types the session's reader takes.
    pub(super) fn planning_state(&self) -> PlanningState {
        let mut state = self.engine.planning_state();
        if self.result_types.dictionaries {
            state.config_mut().set_extension(Arc::new(self.result_types));
        }
        state
    }

    /// Returns the planner of the session's statements; `parameters` are the types of `$1`, `$2`, ..., where known.
    pub(super) fn planner<'a>(
        &'a self,
        state: &'a SessionState,
        parameters: &'a [Option<FieldRef>],
        files: &'a FileSources,
    ) -> StatementPlanner<'a> {
        StatementPlanner {
            catalog: self.engine.catalog(),
            state,
            who: &self.principal,
            database: &self.database,
            parameters,
            temporary: self.temporary.as_ref(),
            variables: self.variables.as_deref(),
            files,
            notes: None,
            numbered: None,
        }
    }
}

/// Returns whether a statement is a query, of which the plan may be kept.
pub(super) fn is_query(statement: &Statement) -> bool {
    matches!(statement, Statement::Statement(inner) if matches!(**inner, ast::Statement::Query(_)))
}

/// Returns the error of a statement that was refused with several rows of values: `refused`, unless it is planned with the
/// values alone, as they are in `of_first_row`.
async fn refused_rows(
    planner: &StatementPlanner<'_>,
    refused: EngineError,
    open: ParsedStatement,
    of_first_row: ParsedStatement,
) -> EngineError {
    let is_planned_open = planner.plan(open).await.is_ok();
    if is_planned_open || plan_bound(planner, of_first_row, ParameterValues::None).await.is_err() {
        return refused;
    }
    let message = "the statement is planned with the values of its parameters, such as the end of a series, and takes \
                   one row of them: bind the rows one after the other";
    EngineError::Plan { message: message.to_owned() }
}

/// Plans a statement with the values of its parameters, and analyses it.
async fn plan_bound(
    planner: &StatementPlanner<'_>,
    parsed: ParsedStatement,
    parameters: ParameterValues,
) -> Result<LogicalPlan> {
    let plan = planner.plan(parsed).await?;
    check_plan_size(&plan)?;
    if let Some(notes) = planner.notes {
        notes.planned(&plan);
    }
    analysed(planner.state, plan, parameters)
}

/// Puts values into a plan and analyses it.
pub(super) fn analysed(state: &SessionState, plan: LogicalPlan, parameters: ParameterValues) -> Result<LogicalPlan> {
    let plan = match parameters {
        ParameterValues::None => plan,
        // The values are literals now, which are compared as those of the text are.
        parameters => settle_times(parameters.bind(plan)?)?,
    };
    QueryUsage::check_current()?;
    Ok(with_coerced_types(state, plan)?)
}
