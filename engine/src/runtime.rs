//! What all queries of an engine share: memory, spill space, caches, files, functions.
//!
//! Built once when an engine is opened. It reads local files and the URLs that the settings allow ([`Stores`]), whatever a
//! statement says.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::execution::cache::cache_manager::CacheManagerConfig;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryLimit, MemoryPool};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::{SessionState, SessionStateBuilder, TaskContext};
use datafusion::optimizer::OptimizerRule;
use datafusion::prelude::SessionConfig;
use parking_lot::Mutex;
use querent_catalog::{CATALOG_NAME, CatalogError, DEFAULT_DATABASE, LakeLocation};
use querent_kql::StoredComparisons;
use scopeguard::ScopeGuard;
use uuid::Uuid;

use crate::column_cache::ColumnCache;
use crate::distributed::Cluster;
use crate::error::{EngineError, Result};
use crate::functions;
use crate::governor::{governed, governed_lambdas, governed_optimizer_rules, governed_physical_rules};
use crate::limits::{EnginePool, KeptMemory, Limits, QueryPool, QueryUsage, ResidentLimit, follow_spawned_tasks};
use crate::optimizer::distinct_limits::FitDistinctLimits;
use crate::optimizer::misled_filters::DropMisledFilters;
use crate::optimizer::null_aware_joins::KeepNullsOfJoins;
use crate::options::EngineOptions;
use crate::plan_cache::ResultCache;
use crate::slots::{QuerySlots, SlotLimits};
use crate::stores::{LakeUrl, RangeCache, RemoteLake, Stores, TableFiles};
use crate::tables::system::{MetricsText, RunTraceDecoder};
use crate::thread_limit::threads_left;
use crate::threads::QueryThreads;

/// The memory for Parquet footers and page indexes, in bytes.
const METADATA_CACHE_BYTES: usize = 128 << 20;

/// Up to how many rows the smaller side of a join is gathered by one thread, for one partition; they are fewer for more.
const GATHERED_ROWS: usize = 4_000_000;
/// The same in bytes.
const GATHERED_BYTES: usize = 128 << 20;

/// What part of a query's memory the partitions of a sort keep at most for merging what they spill: one of so many.
const SORTS_SHARE: usize = 8;
/// What a partition of a sort keeps for it at least.
const LEAST_SORT_RESERVATION_BYTES: usize = 256 << 10;

/// The most states that are kept for the next statements.
const MAX_IDLE_STATES: usize = 32;

/// The folder of spill files, and of files that are about to be uploaded.
const SPILL_FOLDER: &str = "spill";
/// The folder of what was read from an object store.
const FILE_CACHE_FOLDER: &str = "file-cache";

/// The name of DataFusion's session, of which an engine has one.
const SESSION: &str = "querent";

/// The parts of an engine that all queries share.
pub(crate) struct Runtime {
    /// Lends the state of each query; its catalog list is empty, since names are resolved per statement.
    ///
    /// Behind a trait, not a pool of `SessionState`: to prove that one is `Send`, the compiler walks all of DataFusion's
    /// plans, and does so again for every async method of a trait that holds a session (4 s each).
    states: Arc<dyn States>,
    /// The settings of every state.
    config: SessionConfig,
    env: Arc<RuntimeEnv>,
    /// Where the files of managed tables lie; an extension of every session's configuration.
    pub(crate) files: Arc<TableFiles>,
    /// Columns that scans decoded before; an extension of every session's configuration.
    pub(crate) columns: Arc<ColumnCache>,
    /// Rows of queries that were answered before.
    pub(crate) results: Arc<ResultCache>,
    /// What the whole process may take from the machine.
    pub(crate) resident: Arc<ResidentLimit>,
    /// How `system.agent_runs` shows traces; an extension of every session's configuration.
    pub(crate) run_traces: Arc<RunTraceDecoder>,
    /// What `system.metrics` shows; an extension of every session's configuration.
    pub(crate) metrics: Arc<MetricsText>,
    /// The workers that queries are shared out to, where there are any.
    pub(crate) cluster: Option<Cluster>,
    /// Where queries are planned and run.
    pub(crate) threads: QueryThreads,
    /// Statements that are planned without being executed: they take no place among the queries, and are as many as the processor
    /// can do.
    pub(crate) planning: QuerySlots,
}

impl Runtime {
    /// Prepares memory and an empty spill folder. `rules` optimise plans after all others. This process has to hold the data
    /// folder already, whose tables have their files at `location`.
    pub(crate) async fn open(
        options: &EngineOptions,
        rules: impl IntoIterator<Item = Arc<dyn OptimizerRule + Send + Sync>>,
        data_dir: &Path,
        location: LakeLocation,
    ) -> Result<Self> {
        let resident_bytes = match options.resident_bytes {
            Some(bytes) => bytes,
            None => share(machine_bytes().await, EngineOptions::DEFAULT_RESIDENT_PERCENT),
        };
        let memory_bytes = match (options.memory_bytes, options.resident_bytes) {
            (Some(bytes), _) => bytes,
            (None, Some(resident)) => share(resident as u64, EngineOptions::DEFAULT_MEMORY_PERCENT),
            (None, None) => share(machine_bytes().await, EngineOptions::DEFAULT_MEMORY_PERCENT),
        };
        follow_spawned_tasks();
        let spill_dir = emptied_spill_dir(data_dir).await?;
        let files = Arc::new(table_files(options, data_dir, location).await?);
        let memory: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(memory_bytes));
        let cache_bytes =
            options.column_cache_bytes.unwrap_or(memory_bytes / 100 * EngineOptions::DEFAULT_CACHE_PERCENT);
        let columns = ColumnCache::new(cache_bytes, &memory);
        let results = ResultCache::new(options.result_cache_bytes, &memory);
        let kept = KeptMemory::new(Arc::clone(&columns), Arc::clone(&results));
        let env = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(EnginePool::new(memory, Arc::clone(&kept))))
            .with_disk_manager_builder(
                DiskManagerBuilder::default()
                    .with_mode(DiskManagerMode::Directories(vec![spill_dir]))
                    .with_max_temp_directory_size(options.spill_bytes),
            )
            // Listings are not cached, so that the next statement sees a folder's new files.
            .with_cache_manager(CacheManagerConfig {
                list_files_cache_limit: 0,
                metadata_cache_limit: METADATA_CACHE_BYTES,
                ..CacheManagerConfig::default()
            })
            .with_object_store_registry(Arc::new(Stores::new(options.external_urls.clone(), Arc::clone(&files))))
            .build_arc()?;
        let run_traces = Arc::new(RunTraceDecoder::default());
        let metrics = Arc::new(MetricsText::default());
        let config = session_config(options)?
            .with_extension(Arc::clone(&run_traces))
            .with_extension(Arc::clone(&metrics))
            .with_extension(Arc::clone(&files))
            .with_extension(Arc::clone(&columns));
        let dimension = options.embedder.as_ref().map(|embedder| embedder.model().dimension);
        let scalar_functions = functions::scalar_functions().into_iter().chain([functions::embed(dimension)]);
        let comparisons: Arc<dyn OptimizerRule + Send + Sync> = Arc::new(StoredComparisons);
        let template = SessionStateBuilder::new()
            .with_config(config.clone())
            .with_runtime_env(Arc::clone(&env))
            .with_default_features()
            .with_scalar_functions(scalar_functions.map(governed).collect())
            .with_aggregate_functions(functions::aggregate_functions())
            .with_higher_order_functions(
                functions::higher_order_functions().into_iter().map(governed_lambdas).collect(),
            )
            .with_optimizer_rules(governed_optimizer_rules(std::iter::once(comparisons).chain(rules)))
            .with_physical_optimizer_rules(governed_physical_rules([
                Arc::new(FitDistinctLimits) as _,
                Arc::new(KeepNullsOfJoins) as _,
                Arc::new(DropMisledFilters) as _,
            ]))
            .build();
        let states = Arc::new(IdleStates::new(template));
        let resident = ResidentLimit::new(resident_bytes, memory_bytes, data_dir, kept);
        let cluster = options.cluster.clone().map(Cluster::new);
        let threads = QueryThreads::start(threads_left().await)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // Whoever waits does so within the time of its statement.
        let planning = QuerySlots::new(SlotLimits { slots: 2 * cores, per_caller: cores, queued: usize::MAX });
        Ok(Self {
            states,
            config,
            env,
            files,
            columns,
            results,
            resident,
            run_traces,
            metrics,
            cluster,
            threads,
            planning,
        })
    }

    /// Returns the state that plans one statement, or a part of it. `now()` is when the statement began: table functions are called
    /// with it while names are resolved, and the rest of the statement has it later.
    pub(crate) fn state(&self) -> PlanningState {
        let mut state = self.states.take();
        state.mark_start_execution();
        if let Some(usage) = QueryUsage::current() {
            state.execution_props_mut().query_execution_start_time = Some(usage.started_at());
        }
        let home = Arc::clone(&self.states);
        scopeguard::guard(state, Box::new(move |state| home.give_back(state)))
    }

    /// Returns the settings that statements begin with.
    pub(crate) fn config(&self) -> &SessionConfig {
        &self.config
    }

    /// Returns the engine's memory pool.
    pub(crate) fn memory_pool(&self) -> &Arc<dyn MemoryPool> {
        &self.env.memory_pool
    }

    /// Returns the memory pool of one query, within the engine's.
    pub(crate) fn query_memory(&self, limits: &Limits) -> Arc<dyn MemoryPool> {
        let pool: Arc<dyn MemoryPool> =
            Arc::new(QueryPool::new(limits.memory_bytes, Arc::clone(&self.env.memory_pool)));
        if let Some(usage) = QueryUsage::current() {
            usage.count_pool(&pool);
        }
        pool
    }

    /// Returns the context that one query executes in: the shared environment with the query's own memory.
    pub(crate) fn task(&self, mut config: SessionConfig, memory: &Arc<dyn MemoryPool>) -> Arc<TaskContext> {
        let usual = self.config.options().execution.sort_spill_reservation_bytes;
        // Otherwise who executes the query has chosen it.
        if config.options().execution.sort_spill_reservation_bytes == usual {
            fit_sorts(&mut config, memory.as_ref());
        }
        // Functions are looked up in a task only to deserialise plans, which nothing here does.
        Arc::new(TaskContext::new(
            Some(Uuid::now_v7().to_string()),
            SESSION.to_owned(),
            config,
            HashMap::new(),
            HashMap::new(),
            HashMap::new(),
            HashMap::new(),
            self.environment(memory),
        ))
    }

    /// Returns the shared environment with the memory of one query.
    pub(crate) fn environment(&self, memory: &Arc<dyn MemoryPool>) -> Arc<RuntimeEnv> {
        Arc::new(RuntimeEnv { memory_pool: Arc::clone(memory), ..self.env.as_ref().clone() })
    }

    /// Returns the memory that running queries have reserved, in bytes.
    pub(crate) fn reserved_bytes(&self) -> usize {
        self.env.memory_pool.reserved()
    }

    /// Returns the disk that running queries have spilled to, in bytes.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        self.env.disk_manager.used_disk_space()
    }
}

/// Keeps states between statements.
trait States: Send + Sync {
    fn take(&self) -> SessionState;
    fn give_back(&self, state: SessionState);
}

/// The states that no statement uses now. To copy one is to copy the names of a thousand functions, which takes longer than
/// to plan a small query.
struct IdleStates {
    template: SessionState,
    idle: Mutex<Vec<SessionState>>,
}

impl IdleStates {
    fn new(template: SessionState) -> Self {
        Self { template, idle: Mutex::default() }
    }
}

impl States for IdleStates {
    fn take(&self) -> SessionState {
        let idle = self.idle.lock().pop();
        idle.unwrap_or_else(|| self.template.clone())
    }

    fn give_back(&self, mut state: SessionState) {
        // What a statement sets is in the configuration alone.
        *state.config_mut() = self.template.config().clone();
        let mut idle = self.idle.lock();
        if idle.len() < MAX_IDLE_STATES {
            idle.push(state);
        }
    }
}

/// The state that one statement is planned in, lent until it is dropped.
pub(crate) type PlanningState = ScopeGuard<SessionState, Box<dyn FnOnce(SessionState) + Send + Sync>>;

/// Returns the settings of every state. Errors: those of a setting that DataFusion does not know, or of its value.
fn session_config(options: &EngineOptions) -> Result<SessionConfig> {
    let mut config = SessionConfig::new()
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(CATALOG_NAME, DEFAULT_DATABASE)
        .with_information_schema(false);
    if let Some(partitions) = options.target_partitions {
        config = config.with_target_partitions(partitions.max(1));
    }
    let settings = &options.datafusion_settings;
    let options = config.options_mut();
    // Identifiers keep their case; `sql::column_folding` matches them without regard to it.
    options.sql_parser.enable_ident_normalization = false;
    options.sql_parser.map_string_types_to_utf8view = false;
    // Subqueries keep their order, as in DuckDB: forms of ours are planned as subqueries, and LIMIT may stand around one.
    options.sql_parser.enable_subquery_sort_elimination = false;
    // As a double, 24500000.01 would equal no decimal.
    options.sql_parser.parse_float_as_decimal = true;
    // Whether a CASE may be null, plan and execution of DataFusion 54 do not agree on: `CASE WHEN a IS NOT NULL THEN a::BIGINT ELSE 0 END`
    // of an INTEGER failed below an aggregate.
    options.execution.skip_physical_aggregate_schema_check = true;
    // A smaller side that one thread gathers spares both sides from being shared out by key; the more threads there are, the
    // longer the others wait for it.
    let partitions = options.execution.target_partitions;
    let optimizer = &mut options.optimizer;
    let rows = &mut optimizer.hash_join_single_partition_threshold_rows;
    *rows = (GATHERED_ROWS / partitions).max(*rows);
    let bytes = &mut optimizer.hash_join_single_partition_threshold;
    *bytes = (GATHERED_BYTES / partitions).max(*bytes);
    for (name, value) in settings {
        options.set(name, value)?;
    }
    Ok(config)
}

/// Has sorts keep less for merging what they spill where that would be too much of a query's memory: each partition of each sort
/// keeps it from its first row on, 10 MiB as DataFusion has it, and the rows have what is left.
pub(crate) fn fit_sorts(config: &mut SessionConfig, memory: &dyn MemoryPool) {
    let MemoryLimit::Finite(bytes) = memory.memory_limit() else { return };
    let execution = &config.options().execution;
    let (kept, partitions) = (execution.sort_spill_reservation_bytes, execution.target_partitions.max(1));
    let room = (bytes / SORTS_SHARE / partitions).max(LEAST_SORT_RESERVATION_BYTES);
    if room < kept {
        config.options_mut().execution.sort_spill_reservation_bytes = room;
    }
}

/// Returns the machine's memory, or the control group's where that is smaller.
async fn machine_bytes() -> u64 {
    const FALLBACK_BYTES: u64 = 4 << 30;
    let machine = tokio::fs::read_to_string("/proc/meminfo").await.ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? * 1024)
    });
    let group = tokio::fs::read_to_string("/sys/fs/cgroup/memory.max").await.ok();
    let group = group.and_then(|text| text.trim().parse::<u64>().ok());
    match (machine, group) {
        (Some(machine), Some(group)) => machine.min(group),
        (Some(bytes), None) | (None, Some(bytes)) => bytes,
        (None, None) => FALLBACK_BYTES,
    }
}

fn share(bytes: u64, percent: u64) -> usize {
    usize::try_from(bytes / 100 * percent).unwrap_or(usize::MAX)
}

/// Returns where the files of managed tables lie. A lake at a URL of an unknown kind is one whose files cannot be read.
async fn table_files(options: &EngineOptions, data_dir: &Path, location: LakeLocation) -> Result<TableFiles> {
    let cache_folder = data_dir.join(FILE_CACHE_FOLDER);
    let lake = location.lake_id.as_ref().filter(|_| location.is_remote());
    let (Some(lake_id), Ok(url)) = (lake, location.data_path.parse::<LakeUrl>()) else {
        // Servers that share a catalog have one folder of files, which is the data folder of the first of them.
        let is_shared = options.catalog_url.is_some() && !location.is_remote();
        let folder = if is_shared { PathBuf::from(&location.data_path) } else { data_dir.to_owned() };
        return Ok(TableFiles::Local(folder));
    };
    let cache = match options.file_cache_bytes {
        0 => {
            remove_folder(&cache_folder).await?;
            None
        }
        bytes => Some(Arc::new(RangeCache::new(cache_folder, bytes))),
    };
    let spool = data_dir.join(SPILL_FOLDER);
    Ok(TableFiles::Remote(Arc::new(RemoteLake::new(url, lake_id.clone(), spool, cache))))
}

/// Returns the folder for spill files without the files that a killed process left.
async fn emptied_spill_dir(data_dir: &Path) -> Result<PathBuf> {
    let spill_dir = data_dir.join(SPILL_FOLDER);
    remove_folder(&spill_dir).await?;
    tokio::fs::create_dir_all(&spill_dir)
        .await
        .map_err(|source| EngineError::Catalog(CatalogError::of_file(&spill_dir, source)))?;
    Ok(spill_dir)
}

async fn remove_folder(folder: &Path) -> Result<()> {
    match tokio::fs::remove_dir_all(folder).await {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(EngineError::Catalog(CatalogError::of_file(folder, source))),
    }
}
