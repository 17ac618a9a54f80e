//! One engine: the catalog, the runtime and the background work of one data folder, behind handles that are cheap to clone.
//!
//! What an engine can do is added above, in `impl Engine` blocks: `open` opens one, `session` makes sessions, `import`
//! imports files.

mod commit;
mod maintenance;

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use querent_catalog::{Catalog, TableName};
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::column_cache::ColumnCacheState;
use crate::error::Result;
use crate::limits::{ScanLimits, resident_bytes};
use crate::options::EngineOptions;
use crate::plan_cache::{PlanCache, PlanCacheState, PlanStore, ResultCache, ResultCacheState};
use crate::profile_queue::ProfileQueue;
use crate::runtime::{PlanningState, Runtime};
use crate::stores::{FileCacheState, TableFiles, UrlRoot};
use crate::turns::TableTurns;

/// How long closing waits for columns that are being profiled.
const PROFILING_TIME: Duration = Duration::from_secs(1);

/// The engine of one data folder. Cheap to clone. `engine/examples/embed.rs` is a program around it.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> querent_engine::Result<()> {
/// use querent_catalog::Principal;
/// use querent_engine::{Engine, Limits};
///
/// let engine = Engine::open("querent-data").await?;
/// let session = engine.session(Principal::local_admin(), Limits::default());
/// session.sql("CREATE TABLE flights AS VALUES ('UA', 1400), ('AA', 760)").await?.collect().await?;
/// let (batches, stats) = session.sql("SELECT count(*) FROM flights").await?.collect().await?;
/// assert_eq!(stats.rows, 1);
/// assert_eq!(batches.len(), 1);
/// engine.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Engine {
    state: Arc<EngineState>,
    /// Ends background work when the last handle of a caller is dropped; `None` in the handle that does the work.
    _stop: Option<Arc<DropGuard>>,
}

/// What all handles of one engine share.
struct EngineState {
    catalog: Arc<Catalog>,
    runtime: Runtime,
    external_roots: Vec<PathBuf>,
    external_urls: Vec<UrlRoot>,
    slow_query: Option<Duration>,
    scan_limits: ScanLimits,
    plans: Arc<dyn PlanStore>,
    /// Commits that have to end one way or the other, whoever still waits for them.
    commits: TaskTracker,
    turns: TableTurns,
    profile_queue: Arc<ProfileQueue>,
    background: TaskTracker,
    stop: CancellationToken,
}

impl Engine {
    /// Puts an engine together from what was opened, without anything in its background.
    pub(crate) fn assemble(catalog: Arc<Catalog>, runtime: Runtime, options: EngineOptions) -> Self {
        let stop = CancellationToken::new();
        let state = Arc::new(EngineState {
            catalog,
            runtime,
            external_roots: options.external_roots,
            external_urls: options.external_urls,
            slow_query: options.slow_query,
            scan_limits: options.scan_limits,
            plans: PlanCache::new(options.plan_cache_bytes),
            commits: TaskTracker::new(),
            turns: TableTurns::default(),
            profile_queue: Arc::new(ProfileQueue::new()),
            background: TaskTracker::new(),
            stop: stop.clone(),
        });
        Self { state, _stop: Some(Arc::new(stop.drop_guard())) }
    }

    /// Runs the engine's background work until the last handle of a caller is dropped or the engine is closed. `work` is
    /// given a handle that keeps the engine's parts alive and does not count as a caller's.
    pub(crate) fn spawn_background<F>(&self, work: impl FnOnce(Engine, Arc<ProfileQueue>, CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let worker = Self { state: Arc::clone(&self.state), _stop: None };
        let queue = Arc::clone(&self.state.profile_queue);
        self.state.background.spawn(work(worker, queue, self.state.stop.clone()));
        self.state.background.close();
    }

    /// Waits until nobody else makes or replaces a table of that name in turn, and returns the turn.
    pub(crate) async fn turn_of_table(&self, table: &TableName) -> OwnedMutexGuard<()> {
        self.state.turns.turn(table).await
    }

    /// Returns the catalog.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.state.catalog
    }

    /// Shows `system.agent_runs.trace_json` through `decode`: the stored format belongs to whoever writes the runs. The
    /// first call counts; without one, traces are shown as stored.
    pub fn decode_run_traces_with(&self, decode: fn(String) -> String) {
        self.state.runtime.run_traces.set(decode);
    }

    /// Shows the metrics that `read` returns, in Prometheus' text format, as `system.metrics`; it is told whether the caller sees
    /// everything in all databases. The first call counts; without one there are none.
    pub fn show_metrics_with(&self, read: impl Fn(bool) -> String + Send + Sync + 'static) {
        self.state.runtime.metrics.set(read);
    }

    /// Returns how long a statement takes that is logged as slow, where any is.
    pub(crate) fn slow_query(&self) -> Option<Duration> {
        self.state.slow_query
    }

    /// Returns the memory that running queries have reserved, in bytes.
    pub fn memory_reserved_bytes(&self) -> usize {
        self.state.runtime.reserved_bytes()
    }

    /// Returns the disk that running queries have spilled to, in bytes.
    pub fn spilled_bytes(&self) -> u64 {
        self.state.runtime.spilled_bytes()
    }

    /// Returns the memory that this process takes of the machine, in bytes; `None` where the system does not say.
    pub fn resident_bytes(&self) -> Option<usize> {
        resident_bytes(&mut None)
    }

    /// Returns how many queries have the threads to run beside each other: fewer than elsewhere where the process's control group
    /// or user may have few threads; `None` where nothing bounds them.
    pub fn query_capacity(&self) -> Option<usize> {
        self.state.runtime.threads.capacity()
    }

    /// Returns what is kept of columns that scans decoded, and how it was used.
    pub fn column_cache(&self) -> ColumnCacheState {
        self.state.runtime.columns.state()
    }

    /// Returns what is kept of statements that were planned, those over tables of sessions included, and how it was used.
    pub fn plan_cache(&self) -> PlanCacheState {
        self.state.plans.state()
    }

    /// Returns what is kept of queries that were answered, and how it was used.
    pub fn result_cache(&self) -> ResultCacheState {
        self.state.runtime.results.state()
    }

    /// Returns the rows of queries that were answered before.
    pub(crate) fn results(&self) -> &Arc<ResultCache> {
        &self.state.runtime.results
    }

    /// Forgets all plans that are kept, and rows: how they were made has changed, without a commit.
    pub(crate) fn forget_plans(&self) {
        self.plans().clear();
        self.results().give_way(usize::MAX);
    }

    /// Returns the plans of statements that were planned before.
    pub(crate) fn plans(&self) -> &Arc<dyn PlanStore> {
        &self.state.plans
    }

    /// Returns what is kept on the disk of files in an object store, and how it was used.
    pub fn file_cache(&self) -> FileCacheState {
        let lake = self.table_files().remote();
        lake.and_then(|lake| lake.cache()).map(|cache| cache.state()).unwrap_or_default()
    }

    /// Waits for commits in progress and closes the catalog.
    pub async fn close(&self) -> Result<()> {
        self.state.commits.close();
        self.state.commits.wait().await;
        self.state.profile_queue.wait_until_empty(PROFILING_TIME).await;
        self.state.stop.cancel();
        self.state.background.wait().await;
        if let Some(lake) = self.table_files().remote() {
            lake.close().await;
        }
        Ok(self.state.catalog.close().await?)
    }

    /// Queues tables that somebody looks at for the background profiler, which reads the values of their columns unless
    /// they are known.
    pub fn queue_profiles(&self, tables: impl IntoIterator<Item = TableName>) {
        self.state.profile_queue.push_unchecked(tables.into_iter().collect());
    }

    /// Waits until the columns of all queued tables are profiled, at most `time`.
    pub async fn wait_for_profiles(&self, time: Duration) {
        self.state.profile_queue.wait_until_empty(time).await;
    }

    /// Queues a table whose rows have changed for the background profiler, and has its vector indexes looked at.
    pub(crate) fn queue_changed_table(&self, table: TableName) {
        self.state.catalog.vector_indexes().note_change();
        self.state.profile_queue.push_changed(table);
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.state.runtime
    }

    /// Where the files of managed tables lie.
    pub(crate) fn table_files(&self) -> &Arc<TableFiles> {
        &self.state.runtime.files
    }

    pub(crate) fn planning_state(&self) -> PlanningState {
        self.state.runtime.state()
    }

    /// How much a statement may read from tables.
    pub(crate) fn scan_limits(&self) -> ScanLimits {
        self.state.scan_limits
    }

    pub(crate) fn external_roots(&self) -> &[PathBuf] {
        &self.state.external_roots
    }

    pub(crate) fn external_urls(&self) -> &[UrlRoot] {
        &self.state.external_urls
    }

    /// Runs `work` to its end even when nobody waits for it any more; [`Engine::close`] waits for it.
    fn spawn_commit<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.state.commits.spawn(work)
    }
}
