//! One caller's view of the engine, and the way of a statement through it: parse, resolve, plan, authorise, run.

use std::sync::Arc;

use arrow::array::{RecordBatch, UInt64Array};
use arrow::datatypes::SchemaRef;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::logical_expr::{FetchType, Limit, LogicalPlan, lit};
use datafusion::physical_plan::memory::MemoryStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::scalar::ScalarValue;
use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;
use querent_catalog::{Principal, TableName};
use tokio::time::Instant;

use crate::kql::{self, KqlColumn, KqlParameters, PlannedKql, Rendering};
use crate::kql_host::SessionHost;
use crate::limits::{Interrupt, PlanningMemory};
use crate::policy::{self, AuthorizedPlan, Mode};
use crate::sql::change::{Change, count_schema};
use crate::sql::statement::{Planner, bind};
use crate::sql::{apply, parse};
use crate::stream::declared_schema;
use crate::tables::sample;
use crate::{Engine, EngineError, Limits, QueryStream, Result};

/// The largest row limit that becomes part of the plan.
const MAX_PUSHED_ROWS: u64 = 10_000;
/// The most rows a sample has.
const MAX_SAMPLE_ROWS: usize = 1_000;
/// How long rows are read for a sample of what has no addresses.
const MAX_SAMPLE_TIME: std::time::Duration = std::time::Duration::from_secs(3);

/// One caller's view of the engine: principal, default database, limits, mode. Cheap to clone.
#[derive(Clone)]
pub struct Session {
    engine: Engine,
    principal: Principal,
    limits: Limits,
    database: Arc<str>,
    mode: Mode,
}

impl Session {
    pub(crate) fn new(engine: Engine, principal: Principal, limits: Limits, database: &str, mode: Mode) -> Self {
        Self { engine, principal, limits, database: Arc::from(database), mode }
    }

    /// The same session refusing everything that is not a query.
    pub fn read_only(self) -> Self {
        Self { mode: Mode::ReadOnly, ..self }
    }

    /// The same session with bare names resolved in `database`. Errors: `database_not_found`.
    pub async fn with_database(self, database: &str) -> Result<Self> {
        let catalog = self.engine.catalog();
        match catalog.databases().get(&self.principal, database).await? {
            Some(found) => Ok(Self { database: Arc::from(found.name), ..self }),
            None => Err(catalog.tables().not_found(&self.principal, &TableName::new(database, "")).await.into()),
        }
    }

    /// The same in `database` where one is named. Errors: as [`Session::with_database`].
    pub async fn in_database(self, database: Option<&str>) -> Result<Self> {
        match database {
            Some(database) => self.with_database(database).await,
            None => Ok(self),
        }
    }

    /// Where bare names resolve.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// The caller.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// What the session may do, whatever its principal's role.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What each of its statements may use.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Plans, authorises and runs one statement (a query, DDL or DML). The wall clock starts here.
    /// A statement that changes rows returns one row `count: UInt64`; DDL returns no rows.
    pub async fn sql(&self, text: &str) -> Result<QueryStream> {
        self.sql_with_params(text, Vec::new()).await
    }

    /// The same with `$1`, `$2`, ... bound to `params`, before analysis, so that the values' types are coerced as literals' are.
    /// Errors also: `sql_plan_error` when a parameter is missing or one too many.
    pub async fn sql_with_params(&self, text: &str, params: Vec<ScalarValue>) -> Result<QueryStream> {
        let text = text.to_owned();
        let work = move |session: Session, interrupt: Interrupt| async move {
            let plan = session.plan_statement(&text, params).await?;
            session.start(session.authorize(plan)?, &interrupt).await
        };
        self.started(work).await
    }

    /// Parses and plans one statement, analysed, not authorised. Exactly one statement, else `multiple_statements`.
    pub async fn plan_sql(&self, text: &str) -> Result<LogicalPlan> {
        let (session, text) = (self.clone(), text.to_owned());
        let work = async move { session.plan_statement(&text, Vec::new()).await };
        self.before(self.deadline(), self.engine.runtime().threads.run(work)).boxed().await
    }

    /// Plans, authorises and runs one KQL query. Times are of microseconds. The wall clock starts here.
    /// Errors: the codes that begin with `kql_`, and those of [`Session::sql`].
    pub async fn kql(&self, text: &str) -> Result<QueryStream> {
        self.start_kql(text, KqlParameters::new(), |planned| Ok(planned.in_arrow_types()?)).await
    }

    /// The same with its rows as KQL has them inside, its columns' types, and how it wants to be shown; `parameters` are
    /// the values of its `declare query_parameters`.
    pub async fn kql_answer(&self, text: &str, parameters: KqlParameters) -> Result<KqlAnswer> {
        let described = Arc::new(Mutex::new((Vec::new(), None)));
        let describing = Arc::clone(&described);
        let rows = self.start_kql(text, parameters, move |PlannedKql { plan, columns, rendering }| {
            *describing.lock() = (columns, rendering);
            Ok(plan)
        });
        let rows = rows.await?;
        let (columns, rendering) = std::mem::take(&mut *described.lock());
        Ok(KqlAnswer { columns, rendering, rows })
    }

    /// Runs what `shaped` makes of the query.
    async fn start_kql(
        &self,
        text: &str,
        parameters: KqlParameters,
        shaped: impl FnOnce(PlannedKql) -> Result<LogicalPlan> + Send + 'static,
    ) -> Result<QueryStream> {
        let text = text.to_owned();
        let work = move |session: Session, interrupt: Interrupt| async move {
            let state = session.engine.planning_state();
            let host = SessionHost::new(&session, &state, &interrupt);
            let plan = shaped(kql::plan(&host, &text, &parameters).await?)?;
            let plan = host.authorized(plan)?;
            session.start_in(plan, host.into_memory(), &interrupt).await
        };
        self.started(work).await
    }

    /// Authorises for this session's principal and mode.
    pub fn authorize(&self, plan: LogicalPlan) -> Result<AuthorizedPlan> {
        policy::authorize(plan, &self.principal, self.mode)
    }

    /// The schema [`Session::execute`]'s stream will have, nullability included.
    pub fn schema_of(&self, plan: &AuthorizedPlan) -> SchemaRef {
        declared_schema(plan.plan().schema().as_arrow())
    }

    /// Runs it. A statement that changes something has done so when this returns.
    pub async fn execute(&self, plan: AuthorizedPlan) -> Result<QueryStream> {
        self.started(move |session: Session, interrupt| async move { session.start(plan, &interrupt).await }).await
    }

    /// A uniform random sample of a table's rows, at most `n` (1..=1000), without reading more than it must. Of what has
    /// to be read from its beginning (views, CSV, NDJSON, system tables) it is drawn from the rows that a few seconds
    /// suffice for; [`crate::QueryStats::truncated`] tells when those were not all.
    pub async fn sample(&self, table: &TableName, n: usize) -> Result<QueryStream> {
        let table = table.clone();
        let n = n.clamp(1, MAX_SAMPLE_ROWS);
        let work = move |session: Session, interrupt| async move { session.start_sample(&table, n, &interrupt).await };
        self.started(work).await
    }

    /// Does the work on the engine's own threads and reads what it started from here. A caller that goes away, from the
    /// work or from its stream, interrupts it.
    async fn started<W, F>(&self, work: W) -> Result<QueryStream>
    where
        W: FnOnce(Session, Interrupt) -> F + Send + 'static,
        F: Future<Output = Result<Started>> + Send + 'static,
    {
        let deadline = self.deadline();
        let threads = &self.engine.runtime().threads;
        let session = self.clone();
        let interrupt = Interrupt::at(deadline, self.limits.wall_clock);
        let waiting = interrupt.unless_kept();
        // Boxed, so that what the caller awaits has a plain type: plans in it would be walked by the compiler anew for
        // every async method of a trait that awaits it, which took seconds each.
        let work = async move { work(session, interrupt).await }.boxed();
        let Started { schema, rows, is_all } = self.before(deadline, threads.run(work)).await?;
        let stream = QueryStream::new(schema, waiting.over(threads.stream(rows)?), &self.limits, deadline);
        Ok(if is_all { stream } else { stream.truncated() })
    }

    async fn start_sample(&self, table: &TableName, n: usize, interrupt: &Interrupt) -> Result<Started> {
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let text = format!("SELECT * FROM {}.{}", quoted(&table.database), quoted(&table.table));
        let plan = self.authorize(self.plan_statement(&text, Vec::new()).await?)?;
        let schema = self.schema_of(&plan);
        let state = self.engine.planning_state();
        let catalog = self.engine.catalog();
        let resolved = catalog.tables().resolve(&self.principal, std::slice::from_ref(table)).await?.pop().flatten();
        if let Some(resolved) = resolved
            && let Some(physical) = sample::by_position(catalog, &state, &resolved, n).await?
        {
            let runtime = self.engine.runtime();
            let rows = execute_stream(physical, runtime.task(&state, &runtime.query_memory(&self.limits)))?;
            return Ok(Started { schema, rows, is_all: true });
        }
        let time = MAX_SAMPLE_TIME.min(self.limits.wall_clock / 2);
        let (rows, is_all) = sample::reservoir(self.run(plan.plan(), interrupt).await?, n, time).await?;
        let rows = Box::pin(MemoryStream::try_new(vec![rows.clone()], rows.schema(), None)?);
        Ok(Started { schema, rows, is_all })
    }

    async fn plan_statement(&self, text: &str, params: Vec<ScalarValue>) -> Result<LogicalPlan> {
        let parsed = parse::parse(text)?;
        let state = self.engine.planning_state();
        let planner =
            Planner { catalog: self.engine.catalog(), state: &state, who: &self.principal, database: &self.database };
        let plan = planner.plan(parsed).await?;
        planner.analyse(bind(plan, params)?)
    }

    async fn start(&self, plan: AuthorizedPlan, interrupt: &Interrupt) -> Result<Started> {
        let schema = self.schema_of(&plan);
        let plan = plan.into_plan();
        let rows = match Change::of(&plan) {
            Some(change) => {
                let counts_rows = change.counts_rows();
                let rows = apply::apply(self, change.clone(), interrupt).await?;
                changed(Arc::clone(&schema), counts_rows.then_some(rows))?
            }
            None => self.run(&self.bounded(plan), interrupt).await?,
        };
        Ok(Started { schema, rows, is_all: true })
    }

    /// Starts an authorised query whose planning reserved some of its memory already.
    async fn start_in(&self, plan: AuthorizedPlan, memory: PlanningMemory, interrupt: &Interrupt) -> Result<Started> {
        let schema = self.schema_of(&plan);
        let rows = self.run_in(&self.bounded(plan.into_plan()), memory.pool(), interrupt).await?;
        let row_schema = rows.schema();
        // The plan holds what planning read for as long as it runs.
        let rows = rows.inspect(move |_| {
            let _held = &memory;
        });
        Ok(Started { schema, rows: Box::pin(RecordBatchStreamAdapter::new(row_schema, rows)), is_all: true })
    }

    /// Runs an authorised query, or the query inside an authorised change.
    pub(crate) async fn run(&self, plan: &LogicalPlan, interrupt: &Interrupt) -> Result<SendableRecordBatchStream> {
        self.run_in(plan, &self.engine.runtime().query_memory(&self.limits), interrupt).await
    }

    /// The same within the memory of a query that it is a part of.
    pub(crate) async fn run_in(
        &self,
        plan: &LogicalPlan,
        memory: &Arc<dyn MemoryPool>,
        interrupt: &Interrupt,
    ) -> Result<SendableRecordBatchStream> {
        let physical = self.physical_plan(plan, interrupt).await?;
        let task = self.engine.runtime().task(&self.engine.planning_state(), memory);
        Ok(execute_stream(physical, task)?)
    }

    /// What runs of an authorised query.
    pub(crate) async fn physical_plan(
        &self,
        plan: &LogicalPlan,
        interrupt: &Interrupt,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let state: SessionState = self.engine.planning_state();
        let physical = match plan {
            // Explains itself step by step, so it is optimised from the beginning.
            LogicalPlan::Explain(_) => state.create_physical_plan(plan).await?,
            _ => {
                let optimized = state.optimizer().optimize(plan.clone(), &state, |_, _| {})?;
                state.query_planner().create_physical_plan(&optimized, &state).await?
            }
        };
        Ok(interrupt.applied_to(physical)?)
    }

    /// With a small row limit, one row more than it is asked of the query: sorts become top-k, scans stop early, and
    /// the stream still sees whether something was cut. A large one is left to the stream: a top-k cannot spill.
    fn bounded(&self, plan: LogicalPlan) -> LogicalPlan {
        let Some(max_rows) = self.limits.max_rows.filter(|rows| *rows <= MAX_PUSHED_ROWS) else { return plan };
        let fetch = i64::try_from(max_rows).unwrap_or(i64::MAX).saturating_add(1);
        match &plan {
            LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) | LogicalPlan::DescribeTable(_) => plan,
            LogicalPlan::Limit(limit) if is_within(limit, max_rows) => plan,
            _ => LogicalPlan::Limit(Limit { skip: None, fetch: Some(Box::new(lit(fetch))), input: Arc::new(plan) }),
        }
    }

    fn deadline(&self) -> Instant {
        const FOREVER: std::time::Duration = std::time::Duration::from_secs(30 * 365 * 86_400);
        Instant::now() + self.limits.wall_clock.min(FOREVER)
    }

    async fn before<T>(&self, deadline: Instant, work: impl Future<Output = Result<T>>) -> Result<T> {
        match tokio::time::timeout_at(deadline, work).await {
            Ok(result) => result,
            Err(_) => Err(EngineError::WallClockExceeded { limit: self.limits.wall_clock }),
        }
    }
}

/// The answer to a KQL query in KQL's own types.
pub struct KqlAnswer {
    /// In order.
    pub columns: Vec<KqlColumn>,
    /// What `render` said.
    pub rendering: Option<Rendering>,
    /// Batches of [`KqlType`](crate::kql::KqlType)'s physical types.
    pub rows: QueryStream,
}

/// A query that was started, or the answer of a statement that is done.
struct Started {
    schema: SchemaRef,
    rows: SendableRecordBatchStream,
    is_all: bool,
}

fn is_within(limit: &Limit, max_rows: u64) -> bool {
    matches!(limit.get_fetch_type(), Ok(FetchType::Literal(Some(rows))) if rows as u64 <= max_rows)
}

/// What a change answers with: its number of rows, or nothing.
fn changed(schema: SchemaRef, rows: Option<u64>) -> Result<SendableRecordBatchStream> {
    let batches = match rows {
        Some(rows) => {
            let count = Arc::new(UInt64Array::from(vec![rows]));
            vec![RecordBatch::try_new(count_schema(), vec![count])?]
        }
        None => Vec::new(),
    };
    Ok(Box::pin(MemoryStream::try_new(batches, schema, None)?))
}
