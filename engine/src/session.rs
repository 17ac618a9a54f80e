//! One caller's view of the engine, and the steps of a statement: parse, resolve, plan, authorise, execute.
//!
//! Work is spawned on the query threads with an interrupt. There a statement is parsed and planned, authorised, and begun: a
//! query is executed as a physical plan, and a statement that writes is applied (`apply_write`).

mod analyze;
mod apply_write;
mod audit;
mod change_rows;
mod comments;
mod copy_to;
mod csv_rows;
mod describe;
mod execution;
mod explain_policy;
mod file_tables;
mod graph_commands;
mod ingest;
mod json_rows;
mod kept_results;
mod known_plans;
mod kql_answers;
mod kql_host;
mod label;
mod named_statements;
mod optimize;
mod parquet_rows;
mod pivot_values;
mod planning;
mod policies;
mod rejects_table;
mod returning;
mod shown_plans;
mod sorted_joins;
mod sorted_rows;
mod vector_indexes;
mod worker_queries;

use std::sync::Arc;

use arrow::array::{RecordBatch, UInt64Array};
use arrow::datatypes::SchemaRef;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::logical_expr::{FetchType, Limit, LogicalPlan, lit};
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::memory::MemoryStream;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::scalar::ScalarValue;
use futures::{FutureExt, StreamExt};
use querent_catalog::policy::Rights;
use querent_catalog::{DEFAULT_DATABASE, DatabaseScope, Principal, TableName};

use crate::analyzed_plan::with_short_lists;
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::identifiers::quote_identifier;
use crate::limits::{
    Interrupt, Limits, PlanningMemory, QueryClock, QueryLabel, QueryUsage, ScanBudget, TouchedTables, charge_windows,
    pace_projections, pace_unnests,
};
use crate::policy::{self, AuthorizedPlan, Mode};
use crate::sql::SessionVariables;
use crate::sql::parameters::ParameterValues;
use crate::sql::write_statement::{WriteStatement, count_schema};
use crate::stream::{QueryStats, QueryStream, ResultTypes, RunningQuery, StartedQuery};
use crate::tables::managed::ExactVectorSearch;
use crate::tables::sample;
use crate::telemetry;
use crate::temporary::{TemporaryShare, TemporaryTables};
use crate::threads::Lane;

pub use audit::AuditedAct;
pub use csv_rows::is_read_otherwise;
pub use describe::StatementDescription;
pub use explain_policy::{ExplainedColumn, ExplainedExpression, PolicyExplanation};
pub use ingest::IngestMode;
pub use kql_answers::{KqlAnswers, KqlResult};
pub use parquet_rows::{ParquetRows, parquet_lacks};
pub(crate) use rejects_table::RejectsTable;
pub(crate) use sorted_rows::sorted_stream;
use worker_queries::ExecutablePlan;

/// The largest row limit that is put into the plan.
const MAX_PUSHED_ROWS: u64 = 10_000;
/// The most rows a sample has.
const MAX_SAMPLE_ROWS: usize = 1_000;
/// What it shows of one whose text was planned before.
const PLANNED_BEFORE: &str = "(a statement that was planned before)";
/// How long rows are read for a sample where they cannot be addressed.
const MAX_SAMPLE_TIME: std::time::Duration = std::time::Duration::from_secs(3);

/// One caller's view of the engine: principal, default database, limits, mode. Cheap to clone.
#[derive(Clone)]
pub struct Session {
    engine: Engine,
    principal: Principal,
    limits: Limits,
    database: Arc<str>,
    mode: Mode,
    /// Whether [`Session::with_database`] chose it, so that `USE` does not.
    database_is_given: bool,
    /// What names the database of each statement, so that none of them does.
    database_said_by: Option<String>,
    temporary: Option<Arc<TemporaryTables>>,
    variables: Option<Arc<SessionVariables>>,
    reads_files: bool,
    result_types: ResultTypes,
    /// Whether rows that a query writes itself come in the order in which it writes them.
    keeps_written_order: bool,
    /// What the audit log says its statements came through.
    door: &'static str,
    /// The name that the client gave the request that it is for.
    request_id: Option<Arc<str>>,
}

impl Engine {
    /// Returns a session for one caller, in the database `default`, or in the caller's first where it may not see that
    /// one. It is read-write unless [`Session::read_only`].
    pub fn session(&self, principal: Principal, limits: Limits) -> Session {
        let own = match principal.scope() {
            DatabaseScope::Only(names) if !principal.may_see(DEFAULT_DATABASE) => names.first().cloned(),
            DatabaseScope::Only(_) | DatabaseScope::All => None,
        };
        let database = own.as_deref().unwrap_or(DEFAULT_DATABASE);
        Session::new(self.clone(), principal, limits, database, Mode::ReadWrite)
    }

    /// Returns room for the tables of one session, `limit` bytes at most: see [`Session::with_temporary_tables`].
    pub fn temporary_tables(&self, limit: usize) -> Arc<TemporaryTables> {
        Arc::new(self.own_temporary_tables(limit))
    }

    /// The same for one session of several, whose tables may hold `share` together.
    pub fn shared_temporary_tables(&self, limit: usize, share: &TemporaryShare) -> Arc<TemporaryTables> {
        Arc::new(self.own_temporary_tables(limit).within(share))
    }

    /// Returns what the temporary tables of several sessions may hold together: half of the memory for queries.
    pub fn temporary_share(&self) -> TemporaryShare {
        TemporaryShare::of_pool(self.runtime().memory_pool())
    }

    fn own_temporary_tables(&self, limit: usize) -> TemporaryTables {
        TemporaryTables::new(self.runtime().memory_pool(), limit, self.plans().for_session())
    }
}

impl Session {
    pub(crate) fn new(engine: Engine, principal: Principal, limits: Limits, database: &str, mode: Mode) -> Self {
        Self {
            engine,
            principal,
            limits,
            database: Arc::from(database),
            mode,
            database_is_given: false,
            database_said_by: None,
            temporary: None,
            variables: None,
            reads_files: true,
            result_types: ResultTypes::default(),
            keeps_written_order: false,
            door: "embedded",
            request_id: None,
        }
    }

    /// Returns the session in read-only mode, which refuses everything but queries.
    pub fn read_only(self) -> Self {
        Self { mode: Mode::ReadOnly, ..self }
    }

    /// Returns the session whose results have `result_types`; they are the plain ones otherwise.
    pub fn with_result_types(self, result_types: ResultTypes) -> Self {
        Self { result_types, ..self }
    }

    /// Returns the session with bare names resolved in `database`. Errors: `database_not_found`.
    pub async fn with_database(self, database: &str) -> Result<Self> {
        let catalog = self.engine.catalog();
        match catalog.databases().get(&self.principal, database).await? {
            Some(found) => Ok(Self { database: Arc::from(found.name), database_is_given: true, ..self }),
            None => Err(catalog.tables().not_found(&self.principal, &TableName::new(database, "")).await.into()),
        }
    }

    /// Returns the session with bare names resolved in a database that was looked up for this caller before, by the name that
    /// was found. One that is gone since has no tables.
    pub fn in_known_database(self, database: &str) -> Self {
        let known: Arc<str> =
            if *self.database == *database { Arc::clone(&self.database) } else { Arc::from(database) };
        Self { database: known, database_is_given: true, ..self }
    }

    /// Returns the session in `database`, where one is given. Errors: as [`Session::with_database`].
    pub async fn in_database(self, database: Option<&str>) -> Result<Self> {
        match database {
            Some(database) => self.with_database(database).await,
            None => Ok(self),
        }
    }

    /// Returns the session whose statements read no files by their names, whatever its principal may.
    pub fn without_files(self) -> Self {
        Self { reads_files: false, ..self }
    }

    /// Returns the session with tables of its own, which bare names find before those of its database.
    pub fn with_temporary_tables(self, tables: Arc<TemporaryTables>) -> Self {
        Self { temporary: Some(tables), ..self }
    }

    /// Returns the session's own tables.
    pub fn temporary_tables(&self) -> Option<&Arc<TemporaryTables>> {
        self.temporary.as_ref()
    }

    /// Returns the database where bare names resolve.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Returns the caller.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Returns what the session may do, whatever its principal's role.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns what each statement of the session may use.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the types that its results' columns may have.
    pub fn result_types(&self) -> ResultTypes {
        self.result_types
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Plans, authorises and executes one statement (a query, DDL or DML). The wall clock starts here.
    /// A statement that changes rows returns one row `count: UInt64`; DDL returns no rows.
    pub async fn sql(&self, text: &str) -> Result<QueryStream> {
        self.sql_with_params(text, Vec::new()).await
    }

    /// As [`Session::sql`], with `$1`, `$2`, ... bound to `params` before analysis, so that the values' types are coerced as those
    /// of literals are. Errors also: `sql_plan_error` where a parameter is missing or one too many is given.
    pub async fn sql_with_params(&self, text: &str, params: Vec<ScalarValue>) -> Result<QueryStream> {
        let (text, label) = (text.to_owned(), self.label(text));
        let work = move |session: Session, interrupt: Interrupt| async move {
            let plan = session.traced_plan(&text, ParameterValues::Row(params)).await?;
            session.begin_plan(plan, &interrupt).await
        };
        self.spawn_on_query_threads(label, work).await
    }

    /// As [`Session::sql`], for a query only, once for each row of `parameters`, whose columns are `$1`, `$2`, ... in order.
    /// Errors also: `not_allowed` where the statement changes something, which is not begun.
    pub async fn query_with_rows(&self, text: &str, parameters: Option<RecordBatch>) -> Result<QueryStream> {
        let (text, label) = (text.to_owned(), self.label(text));
        let work = move |session: Session, interrupt: Interrupt| async move {
            let parameters = parameters.map_or(Ok(ParameterValues::None), ParameterValues::from_rows)?;
            let plan = session.traced_plan(&text, parameters).await?;
            if !plan.is_query() {
                let what = "a statement that changes something".to_owned();
                return Err(EngineError::NotAllowed { what, why: " where a query was planned".to_owned() });
            }
            session.begin_plan(plan, &interrupt).await
        };
        self.spawn_on_query_threads(label, work).await
    }

    /// Parses, plans and analyses one statement without authorising it. Errors: `multiple_statements` where there are several.
    pub async fn plan_sql(&self, text: &str) -> Result<LogicalPlan> {
        let (session, text) = (self.in_force(), text.to_owned());
        self.plan_on_query_threads(async move { session.parse_and_plan(&text, ParameterValues::None, None).await })
            .await
    }

    /// Authorises a plan for this session's principal and mode.
    pub fn authorize(&self, plan: LogicalPlan) -> Result<AuthorizedPlan> {
        let plan = policy::authorize(plan, &self.principal, self.mode)?;
        let policies = self.engine.catalog().policies().current();
        policy::check_grants(plan.plan(), Rights::new(&self.principal, &policies))?;
        Ok(plan)
    }

    /// Returns the schema that the stream of [`Session::execute`] will have, nullability included.
    pub fn schema_of(&self, plan: &AuthorizedPlan) -> SchemaRef {
        self.result_types.result_schema(plan.plan().schema().as_arrow())
    }

    /// Executes an authorised plan. A statement that writes has written when this returns.
    pub async fn execute(&self, plan: AuthorizedPlan) -> Result<QueryStream> {
        let label = self.label(plan.text().unwrap_or(PLANNED_BEFORE));
        self.spawn_on_query_threads(label, move |session: Session, interrupt| async move {
            session.begin_plan(plan, &interrupt).await
        })
        .await
    }

    /// Returns a uniform random sample of at most `n` (1..=1000) of a table's rows, and reads no more than it has to. Where
    /// rows have to be read from the beginning (views, CSV, NDJSON, system tables) the sample is drawn from those that can be
    /// read in a few seconds; [`crate::QueryStats::truncated`] is set where that is not all of them.
    pub async fn sample(&self, table: &TableName, n: usize) -> Result<QueryStream> {
        let label = self.label(&format!("sample of {table}"));
        let table = table.clone();
        let n = n.clamp(1, MAX_SAMPLE_ROWS);
        let work = move |session: Session, interrupt| async move { session.begin_sample(&table, n, &interrupt).await };
        self.spawn_on_query_threads(label, work).await
    }

    /// Runs `work` on the engine's query threads and returns the stream of the query that it begins. A caller that drops this
    /// future or the stream interrupts the work.
    async fn spawn_on_query_threads<W, F>(&self, label: QueryLabel, work: W) -> Result<QueryStream>
    where
        W: FnOnce(Session, Interrupt) -> F + Send + 'static,
        F: Future<Output = Result<StartedQuery>> + Send + 'static,
    {
        self.spawn_within(label, QueryClock::start(self.in_force().limits.wall_clock), work).await
    }

    /// As [`Session::spawn_on_query_threads`], within a clock that runs already.
    async fn spawn_within<W, F>(&self, label: QueryLabel, clock: QueryClock, work: W) -> Result<QueryStream>
    where
        W: FnOnce(Session, Interrupt) -> F + Send + 'static,
        F: Future<Output = Result<StartedQuery>> + Send + 'static,
    {
        let session = self.in_force();
        let interrupt = Interrupt::new(clock.clone());
        let abandoned = interrupt.abandon_on_drop();
        let (lane, usage) = self.lane_of(label.clone(), &interrupt)?;
        let audited = self.audited(&label, Some(&usage));
        let span = telemetry::statement_span(&label.database, self.door, || audit::without_secrets(&label.text));
        // Boxed, so that what the caller awaits has a plain type: the compiler would walk the plans in it again for every
        // async method of a trait that awaits it, which took seconds each.
        let work = async move { work(session, interrupt).await }.boxed();
        let running = RunningQuery { limits: &self.limits, clock, abandoned, usage: &usage, span: span.clone() };
        let started = self.without_places(QueryStream::start(&lane, work, running).await, &usage);
        if audited.is_none() && span.is_disabled() {
            return started;
        }
        let ended = move |stats: QueryStats, error| {
            telemetry::record_end(&span, Some(stats.rows), error);
            if let Some(audited) = audited {
                audited.ended(stats, error);
            }
        };
        match started {
            Ok(stream) => Ok(stream.told(Box::new(ended))),
            Err(error) => {
                ended(QueryStats::default(), Some(error.code()));
                Err(error)
            }
        }
    }

    /// Returns the threads of a query that begins now, and what counts what it uses.
    fn lane_of(&self, label: QueryLabel, interrupt: &Interrupt) -> Result<(Lane, Arc<QueryUsage>)> {
        let runtime = self.engine.runtime();
        let lane = runtime.threads.lane()?;
        let usage = QueryUsage::new(label, interrupt.clone(), Arc::clone(&runtime.resident), lane.token());
        Ok((lane, usage))
    }

    async fn begin_sample(&self, table: &TableName, n: usize, interrupt: &Interrupt) -> Result<StartedQuery> {
        let (database, name) = (quote_identifier(&table.database), quote_identifier(&table.table));
        let text = format!("SELECT * FROM {database}.{name}");
        let plan = self.authorize(self.parse_and_plan(&text, ParameterValues::None, None).await?)?;
        let schema = self.schema_of(&plan);
        let state = self.engine.planning_state();
        let catalog = self.engine.catalog();
        let memory = self.engine.runtime().query_memory(&self.limits);
        let resolved = catalog.tables().resolve(&self.principal, std::slice::from_ref(table)).await?.pop().flatten();
        if let Some(resolved) = resolved.filter(|table| table.restriction.is_none())
            && let Some(physical) = sample::by_position(catalog, &*state, &resolved, n).await?
        {
            let runtime = self.engine.runtime();
            let rows = execute_stream(physical, runtime.task(state.config().clone(), &memory))?;
            return Ok(StartedQuery { schema, rows, memory, is_all: true, is_quick: false, is_kept: false });
        }
        let time = MAX_SAMPLE_TIME.min(self.limits.wall_clock / 2);
        let all = self.execute_query_within(plan.plan(), &memory, interrupt).await?;
        let (rows, is_all) = sample::reservoir(all, n, time).await?;
        let rows = Box::pin(MemoryStream::try_new(vec![rows.clone()], rows.schema(), None)?);
        Ok(StartedQuery { schema, rows, memory, is_all, is_quick: false, is_kept: false })
    }

    async fn begin_plan(&self, plan: AuthorizedPlan, interrupt: &Interrupt) -> Result<StartedQuery> {
        let schema = self.schema_of(&plan);
        let result = plan.result();
        let (plan, optimized) = self.with_its_optimized(plan);
        let memory = self.engine.runtime().query_memory(&self.limits);
        let rows = match WriteStatement::from_plan(&plan) {
            Some(change) => {
                if let (Some(usage), Some(written)) = (QueryUsage::current(), change.target()) {
                    usage.touch(TouchedTables { written: Some(written), ..TouchedTables::default() });
                }
                if let WriteStatement::Returning { statement, schema: written, returning } = change {
                    let statement = statement.as_ref().clone();
                    let answer = returning::returned(self, statement, written, returning, &memory, interrupt);
                    let rows = Box::pin(answer).await?;
                    return Ok(StartedQuery { schema, rows, memory, is_all: true, is_quick: false, is_kept: false });
                }
                let counts_rows = change.counts_rows();
                let rows = Box::pin(apply_write::apply_write(self, change.clone(), None, interrupt)).await?;
                write_result(Arc::clone(&schema), counts_rows.then_some(rows))?
            }
            None => return Box::pin(self.begin_query(plan, optimized, result, schema, memory, interrupt)).await,
        };
        Ok(StartedQuery { schema, rows, memory, is_all: true, is_quick: false, is_kept: false })
    }

    /// Begins an authorised query whose planning has already reserved some of its memory.
    async fn begin_query_within(
        &self,
        plan: AuthorizedPlan,
        memory: Arc<PlanningMemory>,
        interrupt: &Interrupt,
    ) -> Result<StartedQuery> {
        let schema = self.schema_of(&plan);
        let rows = self.execute_query_within(&self.with_row_limit(plan.into_plan()), memory.pool(), interrupt).await?;
        let row_schema = rows.schema();
        let pool = Arc::clone(memory.pool());
        // The query holds what planning read for as long as it runs.
        let rows = rows.inspect(move |_| {
            let _held = &memory;
        });
        let rows = Box::pin(RecordBatchStreamAdapter::new(row_schema, rows));
        Ok(StartedQuery { schema, rows, memory: pool, is_all: true, is_quick: false, is_kept: false })
    }

    /// Executes an authorised query, or the query inside an authorised statement that writes.
    pub(crate) async fn execute_query(
        &self,
        plan: &LogicalPlan,
        interrupt: &Interrupt,
    ) -> Result<SendableRecordBatchStream> {
        self.execute_query_within(plan, &self.engine.runtime().query_memory(&self.limits), interrupt).await
    }

    /// As [`Session::execute_query`], within the memory of the query that it is a part of.
    pub(crate) async fn execute_query_within(
        &self,
        plan: &LogicalPlan,
        memory: &Arc<dyn MemoryPool>,
        interrupt: &Interrupt,
    ) -> Result<SendableRecordBatchStream> {
        let ready = self.create_ready_plan(plan, interrupt).await?;
        self.execute_ready(ready, memory, interrupt)
    }

    /// Creates the physical plan of an authorised query, with the interrupt in it.
    async fn create_ready_plan(&self, plan: &LogicalPlan, interrupt: &Interrupt) -> Result<ExecutablePlan> {
        let mut state = self.engine.planning_state();
        match plan {
            // EXPLAIN shows each step of optimisation, so it does them all itself.
            LogicalPlan::Explain(explain) => {
                self.tell_planner(&mut state);
                let explained = state.create_physical_plan(plan).await?;
                let explained = Box::pin(self.with_placement(&state, explain, explained)).await?;
                let shown = self.with_names_of_files(with_short_lists(explained))?;
                Ok(ExecutablePlan::on_one_node(paced(&state, shown, interrupt)?))
            }
            _ => {
                let optimized = state.optimizer().optimize(plan.clone(), &*state, |_, _| {})?;
                let ready = self.physical_plan_of(&mut state, &optimized, interrupt).await?;
                if matches!(plan, LogicalPlan::Analyze(_)) { self.with_shown_files(ready) } else { Ok(ready) }
            }
        }
    }

    /// Creates the physical plan of an authorised query that another one has in its middle: it runs on one node.
    pub(crate) async fn create_inner_plan(
        &self,
        plan: &LogicalPlan,
        interrupt: &Interrupt,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut state = self.engine.planning_state();
        let optimized = state.optimizer().optimize(plan.clone(), &*state, |_, _| {})?;
        let physical = self.unpaced_plan_of(&mut state, &optimized).await?;
        paced(&state, physical, interrupt)
    }

    /// Returns the plan of a query that is optimised already, where it is to run, with the interrupt in it.
    async fn physical_plan_of(
        &self,
        state: &mut SessionState,
        optimized: &LogicalPlan,
        interrupt: &Interrupt,
    ) -> Result<ExecutablePlan> {
        let physical = self.unpaced_plan_of(state, optimized).await?;
        self.placed(state, optimized, physical, interrupt).await
    }

    async fn unpaced_plan_of(
        &self,
        state: &mut SessionState,
        optimized: &LogicalPlan,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if self.engine.catalog().audit().is_kept() {
            audit::note_touched(optimized);
        }
        if self.keeps_written_order && querent_kql::is_over_literals(optimized) {
            state.config_mut().options_mut().execution.target_partitions = 1;
        }
        self.tell_planner(state);
        let role = self.principal.role();
        match self.engine.scan_limits().of(role) {
            None => Ok(state.query_planner().create_physical_plan(optimized, state).await?),
            Some(limit) => {
                let budget = Arc::new(ScanBudget::default());
                state.config_mut().set_extension(Arc::clone(&budget));
                let physical = state.query_planner().create_physical_plan(optimized, state).await?;
                // What statistics alone answer reads nothing.
                if reads_tables(&physical) {
                    budget.check(role, limit)?;
                }
                Ok(physical)
            }
        }
    }

    /// Tells what plans scans what the session set for them.
    fn tell_planner(&self, state: &mut SessionState) {
        if self.variables.as_ref().is_some_and(|variables| variables.are_vector_searches_exact()) {
            state.config_mut().set_extension(Arc::new(ExactVectorSearch));
        }
    }

    /// Returns the row limit that is put into plans; `None` where it is left to the stream, or there is none.
    fn pushed_rows(&self) -> Option<u64> {
        self.limits.max_rows.filter(|rows| *rows <= MAX_PUSHED_ROWS)
    }

    /// Puts a small row limit into the plan, one row larger: sorts become top-k, scans stop early, and the stream still sees
    /// whether something was cut. A large limit is left to the stream, since a top-k cannot spill.
    fn with_row_limit(&self, plan: LogicalPlan) -> LogicalPlan {
        let Some(max_rows) = self.pushed_rows() else { return plan };
        let fetch = i64::try_from(max_rows).unwrap_or(i64::MAX).saturating_add(1);
        match &plan {
            LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) | LogicalPlan::DescribeTable(_) => plan,
            LogicalPlan::Limit(limit) if is_within(limit, max_rows) => plan,
            _ => LogicalPlan::Limit(Limit { skip: None, fetch: Some(Box::new(lit(fetch))), input: Arc::new(plan) }),
        }
    }
}

/// Returns the plan within the bounds of its operators, with the interrupt in it.
fn paced(
    state: &SessionState,
    physical: Arc<dyn ExecutionPlan>,
    interrupt: &Interrupt,
) -> Result<Arc<dyn ExecutionPlan>> {
    let paced = pace_projections(physical, state.config().batch_size())?;
    let paced = pace_unnests(charge_windows(paced)?)?;
    Ok(interrupt.instrument(paced)?)
}

/// Whether anything is left of a plan's scans.
fn reads_tables(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match plan.children() {
        leaf if leaf.is_empty() => !plan.is::<PlaceholderRowExec>() && !plan.is::<EmptyExec>(),
        children => children.into_iter().any(reads_tables),
    }
}

fn is_within(limit: &Limit, max_rows: u64) -> bool {
    matches!(limit.get_fetch_type(), Ok(FetchType::Literal(Some(rows))) if rows as u64 <= max_rows)
}

/// Returns what a statement that writes answers with: its number of rows, or nothing.
fn write_result(schema: SchemaRef, rows: Option<u64>) -> Result<SendableRecordBatchStream> {
    let batches = match rows {
        Some(rows) => {
            let count = Arc::new(UInt64Array::from(vec![rows]));
            vec![RecordBatch::try_new(count_schema(), vec![count])?]
        }
        None => Vec::new(),
    };
    Ok(Box::pin(MemoryStream::try_new(batches, schema, None)?))
}
