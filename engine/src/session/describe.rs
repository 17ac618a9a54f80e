//! Statements as they are before their parameters have values: what a prepared statement says of itself.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, Schema, SchemaRef, TimeUnit};
use datafusion::logical_expr::LogicalPlan;
use datafusion::scalar::ScalarValue;
use futures::{FutureExt, TryFutureExt};
use querent_kql::KqlParameters;

use super::Session;
use crate::error::{EngineError, Result};
use crate::limits::{Interrupt, QueryClock, check_plan_size};
use crate::plan_cache::KnownPlan;
use crate::policy::{AuthorizedPlan, check_open};
use crate::session::kql_host::SessionHost;
use crate::session::planning::is_query;
use crate::sql::parameters::{
    MAX_PLANNED_ROWS, ParameterValues, literal, parameter_schema, replace_parameters, rows_at_once,
};
use crate::sql::parse::{ParsedStatement, parse_statement};
use crate::sql::plan_notes::PlanNotes;
use crate::sql::policy_statement::parse_policy_statement;
use crate::sql::repeated_changes::reads_what_it_changes;
use crate::sql::statement::StatementPlanner;
use crate::sql::write_statement::WriteStatement;
use crate::stream::ResultTypes;
use crate::telemetry;

/// The parameters in whose places values are tried.
const MAX_GUESSED_VALUES: usize = 8;

/// What a statement takes and gives. Nothing is executed to learn it.
#[derive(Debug, Clone)]
pub struct StatementDescription {
    /// The schema of a query's rows, as far as it is known without the values of its parameters; of the answer, for a
    /// statement that changes something.
    pub schema: SchemaRef,
    /// Its parameters, `$1`, `$2`, ... in order, of type null where the statement does not tell.
    pub parameters: SchemaRef,
    /// Whether it only reads.
    pub is_query: bool,
    /// Whether its answer is rows: of a query, or of what is behind RETURNING.
    pub has_rows: bool,
    /// With how many rows of values it is executed at once; more are executed one part after the other. One, where it reads
    /// what it changes, and where it is planned with its values only.
    pub rows_at_once: usize,
}

impl Session {
    /// Plans and authorises one SQL statement whose parameters are open.
    pub async fn describe_sql(&self, text: &str) -> Result<StatementDescription> {
        let (session, text) = (self.in_force(), text.to_owned());
        self.plan_on_query_threads(async move { session.describe(&text).await }).await
    }

    /// Plans and authorises one SQL statement, once for each row of `parameters`, whose columns are `$1`, `$2`, ... in
    /// order. Errors also: `sql_plan_error` where a parameter is missing or one too many is given.
    pub async fn plan_sql_with_rows(
        &self,
        text: &str,
        parameters: arrow::array::RecordBatch,
    ) -> Result<AuthorizedPlan> {
        self.plan_with_values(text, ParameterValues::from_rows(parameters)?).await
    }

    /// Plans and authorises one SQL statement without parameters. Errors: `multiple_statements` where there are several.
    pub async fn authorize_sql(&self, text: &str) -> Result<AuthorizedPlan> {
        self.plan_with_values(text, ParameterValues::None).await
    }

    async fn plan_with_values(&self, text: &str, parameters: ParameterValues) -> Result<AuthorizedPlan> {
        let session = self.in_force();
        // A plan that is known needs no thread of its own.
        if let Some(plan) = session.plan_at_once(text, &parameters).boxed().await {
            return Ok(plan.of_text(text));
        }
        let text = text.to_owned();
        let planning = Box::pin(async move { Ok(session.authorized_plan(&text, parameters).await?.of_text(&text)) });
        self.plan_on_query_threads(telemetry::traced_plan("sql", planning)).await
    }

    /// Returns the schema of a KQL query's rows, as [`Session::kql`] streams them. Queries whose rows decide the columns of
    /// the rest (`pivot`, `bag_unpack`) are run for it.
    pub async fn describe_kql(&self, text: &str) -> Result<SchemaRef> {
        let asked = querent_kql::asked_limits(text);
        let (session, text) = (self.within_time(&asked).in_force(), text.to_owned());
        let interrupt = Interrupt::new(QueryClock::start(session.limits.wall_clock));
        let abandoned = interrupt.abandon_on_drop();
        let work = async move {
            // Boxed as what it is: the compiler would look into it for each caller.
            let text = session.described_command(&text, &interrupt).boxed().await?;
            let state = session.engine.planning_state();
            let host = SessionHost::new(&session, &state, &interrupt).failing_beyond(asked);
            let planned = querent_kql::plan(&host, &text, &KqlParameters::new()).await?;
            let plan = host.authorized(planned.in_arrow_types()?)?;
            Ok(session.schema_of(&plan))
        };
        let work = telemetry::traced_plan("kql", Box::pin(work));
        let described = self.plan_on_query_threads(work).await;
        drop(abandoned);
        described
    }

    async fn describe(&self, text: &str) -> Result<StatementDescription> {
        let place = self.plan_place(text, &ParameterValues::None);
        if let Some(place) = &place
            && let Some(known) = self.known_plan(place).await
            && let Some(described) = self.describe_known(&known)
        {
            place.count_hit();
            return Ok(described);
        }
        if let Some(statement) = parse_policy_statement(text, self.database())? {
            let plan = self.authorize(self.plan_policy(text, statement, ParameterValues::None).await?)?;
            let (schema, is_query) = (self.schema_of(&plan), plan.is_query());
            let parameters = Arc::new(Schema::empty());
            let has_rows = is_query;
            return Ok(StatementDescription { schema, parameters, is_query, has_rows, rows_at_once: 1 });
        }
        let notes = PlanNotes::default();
        let described = self.describe_parsed(&parse_statement(text)?, Vec::new(), Some(&notes)).await?;
        if let Some(place) = place {
            place.keep(notes);
        }
        Ok(described)
    }

    fn describe_known(&self, known: &KnownPlan) -> Option<StatementDescription> {
        let parameters = parameter_schema(&known.open).ok()?;
        self.described(&self.analysed_plan(known)?, parameters).ok()
    }

    /// As [`Session::describe_sql`], of a statement of which the types of some parameters are known. Where it is a query, `notes` has
    /// what its plan depends on.
    pub(super) async fn describe_parsed(
        &self,
        parsed: &ParsedStatement,
        known: Vec<Option<FieldRef>>,
        notes: Option<&PlanNotes>,
    ) -> Result<StatementDescription> {
        let mut told = None;
        let failure = match self.describe_with_types(parsed, &known, notes, &mut told).await {
            Ok(described) => return Ok(described),
            Err(failure) => failure,
        };
        if let Some(notes) = notes {
            // What is described below is a statement with types or values that nobody gave.
            notes.has_read();
        }
        let count = parsed.parameters;
        if count <= known.len() {
            return Err(failure);
        }
        // Some functions cannot be planned before the types of their arguments are known: first as their places tell, and
        // without what these tell where that does not plan either.
        let as_told: Vec<Option<FieldRef>> = (0..count)
            .map(|at| known.get(at).cloned().flatten().or_else(|| told_field(told.as_ref(), parsed, at)))
            .collect();
        let mut tries = vec![known.as_slice()];
        if as_told.iter().flatten().count() > known.iter().flatten().count() {
            if let Ok(described) = self.describe_with_types(parsed, &as_told, None, &mut None).await {
                return Ok(described);
            }
            tries.insert(0, as_told.as_slice());
        }
        for types in &tries {
            if let Some(described) = self.describe_with_guesses(parsed, types).await {
                return Ok(described);
            }
        }
        for types in tries {
            if let Some(described) = self.describe_with_values(parsed, types).await {
                return Ok(described);
            }
        }
        Err(failure)
    }

    /// Describes a statement with types that nobody gave. What type it is decides little about the result, so the first that
    /// plans is taken for all parameters of which none is known; values are planned by their own types.
    async fn describe_with_guesses(
        &self,
        parsed: &ParsedStatement,
        known: &[Option<FieldRef>],
    ) -> Option<StatementDescription> {
        let interval = DataType::Interval(IntervalUnit::MonthDayNano);
        let first = [
            DataType::Utf8,
            DataType::Int64,
            DataType::Float64,
            DataType::Timestamp(TimeUnit::Nanosecond, None),
            DataType::Boolean,
        ];
        let last = [interval.clone(), DataType::Date32, DataType::new_list(DataType::Int64, true)];
        if known.len() == parsed.parameters && known.iter().all(Option::is_some) {
            return None;
        }
        // What is added to a time, or taken from it, is no time itself; the other parameters are what the statement tells.
        let count = parsed.parameters;
        let lone = (1..=count.min(MAX_GUESSED_VALUES)).map(|at| (Some(at), interval.clone()));
        let for_all = |guess: DataType| (None, guess);
        for (lone, guess) in first.into_iter().map(for_all).chain(lone).chain(last.into_iter().map(for_all)) {
            let is_guessed =
                |at: usize| known.get(at - 1).is_none_or(Option::is_none) && lone.is_none_or(|lone| lone == at);
            let types = (1..=count).map(|at| match known.get(at - 1) {
                _ if is_guessed(at) => Some(Arc::new(Field::new(format!("{at}"), guess.clone(), true))),
                known => known.cloned().flatten(),
            });
            let types: Vec<Option<FieldRef>> = types.collect();
            if let Ok(mut described) = self.describe_with_types(parsed, &types, None, &mut None).await {
                // A parameter by itself that is no text, and no time of whatever kind, is what plans.
                let is_told = (1..=count).filter(|at| is_guessed(*at)).count() == 1
                    && matches!(guess, DataType::Int64 | DataType::Boolean | DataType::Interval(_));
                let fields = described.parameters.fields().iter().enumerate().map(|(at, field)| {
                    match is_guessed(at + 1) && !is_told {
                        true => Arc::new(Field::new(field.name(), DataType::Null, true)),
                        false => Arc::clone(field),
                    }
                });
                described.parameters = Arc::new(Schema::new(fields.collect::<Vec<FieldRef>>()));
                return Some(described);
            }
        }
        None
    }

    /// Describes a statement with a value in the place of one parameter, or of all, for functions whose results depend on it:
    /// the part of a date, the end of a series. Which value it is decides little about the result; where only a text, only a
    /// number or only a time plans, the parameter is told as that.
    async fn describe_with_values(
        &self,
        parsed: &ParsedStatement,
        known: &[Option<FieldRef>],
    ) -> Option<StatementDescription> {
        let count = parsed.parameters;
        let guesses =
            [ScalarValue::from("day"), ScalarValue::from(1_i64), ScalarValue::TimestampMicrosecond(Some(0), None)];
        let single = (1..=count.min(MAX_GUESSED_VALUES)).map(Some);
        for place in single.chain([None]) {
            let is_guessed = |at: usize| match place {
                Some(place) => place == at,
                None => known.get(at - 1).is_none_or(Option::is_none),
            };
            let mut planned: Vec<(StatementDescription, DataType)> = Vec::new();
            for value in &guesses {
                let data_type = value.data_type();
                if data_type.is_temporal() && !planned.is_empty() {
                    break;
                }
                let mut guessed = parsed.clone();
                let nesting = guessed.nesting;
                nesting.with_room(|| {
                    let in_place = |at: usize| if is_guessed(at) { literal(value) } else { None };
                    replace_parameters(&mut guessed.statement, in_place);
                });
                if let Ok(described) = self.describe_with_types(&guessed, known, None, &mut None).await {
                    planned.push((described, data_type));
                }
            }
            let told = match planned.as_slice() {
                [(_, only)] => only.clone(),
                _ => DataType::Null,
            };
            let Some((mut described, _)) = planned.into_iter().next() else { continue };
            let others = Arc::clone(&described.parameters);
            let fields = (1..=count).map(|at| {
                let name = format!("${at}");
                match others.field_with_name(&name) {
                    Ok(field) if !is_guessed(at) => field.clone(),
                    _ if is_guessed(at) => Field::new(name, told.clone(), true),
                    _ => Field::new(name, DataType::Null, true),
                }
            });
            described.parameters = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
            // Each row of values is planned by itself: only what has the values in its text is planned at all.
            described.rows_at_once = 1;
            return Some(described);
        }
        None
    }

    /// Describes a statement of which the types of some parameters are known. Once it is planned, `told` has the parameters as it
    /// tells them, whether or not it can be executed with those.
    async fn describe_with_types(
        &self,
        parsed: &ParsedStatement,
        types: &[Option<FieldRef>],
        notes: Option<&PlanNotes>,
        told: &mut Option<SchemaRef>,
    ) -> Result<StatementDescription> {
        if let Some(plan) = self.plan_named(parsed, &ParameterValues::None).await? {
            return self.described(&plan, Arc::new(arrow::datatypes::Schema::empty()));
        }
        let state = self.planning_state();
        let mut parsed = parsed.clone();
        let files = self.take_files(&state, &mut parsed).await?;
        let has_found = self.find_pivot_values(&state, &mut parsed, &files, &ParameterValues::None).await?;
        let notes = notes.filter(|_| is_query(&parsed.statement));
        if let Some(notes) = notes.filter(|_| has_found || !files.is_empty()) {
            notes.has_read();
        }
        let planner = StatementPlanner { notes, ..self.planner(&state, types, &files) };
        let plan = planner.plan(parsed).await?;
        let parameters = parameter_schema(&plan)?;
        *told = Some(Arc::clone(&parameters));
        check_plan_size(&plan)?;
        if let Some(notes) = notes {
            notes.planned(&plan);
        }
        let rows_at_once = if reads_what_it_changes(&plan)? { 1 } else { rows_at_once(&plan)? };
        Ok(StatementDescription { rows_at_once, ..self.described(&planner.analyse(plan)?, parameters)? })
    }

    fn described(&self, plan: &LogicalPlan, parameters: SchemaRef) -> Result<StatementDescription> {
        check_open(plan, &self.principal, self.mode)?;
        let written = WriteStatement::from_plan(plan);
        Ok(StatementDescription {
            schema: self.result_types.result_schema(plan.schema().as_arrow()),
            // Clients bind plain types.
            parameters: ResultTypes::default().result_schema(&parameters),
            is_query: written.is_none(),
            has_rows: matches!(written, None | Some(WriteStatement::Returning { .. })),
            rows_at_once: MAX_PLANNED_ROWS,
        })
    }

    /// Runs planning on the query threads, within the session's wall clock.
    pub(super) async fn plan_on_query_threads<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let clock = QueryClock::start(self.in_force().limits.wall_clock);
        let interrupt = Interrupt::new(clock.clone());
        let _abandoned = interrupt.abandon_on_drop();
        let slots = self.engine.runtime().planning.of(self.principal.subject());
        let slot =
            clock.limit_time(slots.begin().map_err(|full| EngineError::Internal(full.to_string()))).boxed().await?;
        let (lane, usage) = self.lane_of(self.label("(planning)"), &interrupt)?;
        let work = async move {
            // Also where nobody waits any more.
            let _slot = slot;
            work.await
        };
        let work = usage.scope(work).boxed();
        let planned = clock.limit_time(lane.run(work)).boxed().await;
        planned.map_err(|error| self.error_without_places(error, &usage))
    }
}

/// Returns a parameter without a name, by its position from 0, as a statement tells it; `None` where it does not.
fn told_field(told: Option<&SchemaRef>, parsed: &ParsedStatement, at: usize) -> Option<FieldRef> {
    if parsed.has_named_parameters() {
        return None;
    }
    told?.fields().get(at).filter(|field| *field.data_type() != DataType::Null).cloned()
}
