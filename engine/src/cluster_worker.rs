//! A server that does parts of other servers' queries. It has no catalog: a task brings its plan, which was authorised where
//! it comes from, and the limits of its query.
//!
//! Invariant: whoever mounts the service lets only requests pass that are signed with the cluster's key; a task is whatever a
//! plan says, under nobody's grants.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use datafusion::error::Result as DfResult;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion_distributed::{
    ChannelResolver, DistributedConfig, DistributedExt, Worker, WorkerPlanRewriteEvent, WorkerPlanRewriteEventResponse,
    WorkerQueryContext, WorkerSessionBuilder,
};
use http::HeaderValue;
use parking_lot::Mutex;
use querent_catalog::{HeldFolder, LakeLocation};
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use crate::column_cache::ColumnCacheState;
use crate::distributed::{PlanCodec, TaskHeaders, functions_of_plans};
use crate::error::Result;
use crate::limits::{Interrupt, Limits, QueryClock, QueryLabel, QueryUsage, in_query};
use crate::options::EngineOptions;
use crate::runtime::{Runtime, fit_sorts};
use crate::stores::FileCacheState;
use crate::threads::Lane;

/// The header by which a request's session finds what ends its task. What a client sends of that name is replaced.
const TASK: &str = "x-querent-task";

/// A worker of a cluster. Cheap to clone.
#[derive(Clone)]
pub struct ClusterWorker {
    parts: Arc<WorkerParts>,
}

struct WorkerParts {
    runtime: Runtime,
    /// How other workers are reached, whose rows a task reads.
    channels: Arc<dyn ChannelResolver + Send + Sync>,
    /// What ends the tasks that run, by the value of the header.
    tasks: Mutex<HashMap<String, Arc<AtomicBool>>>,
    /// No other process empties the folder with the spilled rows.
    _folder: HeldFolder,
}

/// Ends a task when it is dropped, also in the middle of an operator that never yields.
pub struct AbandonTaskOnDrop {
    parts: Arc<WorkerParts>,
    task: String,
}

/// Threads that do a part of a task. Operators may compute for long without yielding, and whoever answers requests goes
/// on beside them.
pub struct TaskThreads {
    lane: Lane,
}

impl ClusterWorker {
    /// Takes the folder of `options`, and prepares memory and an empty spill folder in it. The files of managed tables are read
    /// from where `options` say, or as local files of the paths that plans name. Errors: `data_folder_in_use`.
    pub async fn open(options: &EngineOptions, channels: Arc<dyn ChannelResolver + Send + Sync>) -> Result<Self> {
        let location = match &options.data_path {
            // Nothing is written there, so whose lake it is does not matter.
            Some(url) => LakeLocation { data_path: url.to_string(), lake_id: Some(Uuid::now_v7().to_string()) },
            None => LakeLocation { data_path: options.data_dir.display().to_string(), lake_id: None },
        };
        let folder = HeldFolder::take(&options.data_dir).await?;
        let runtime = Runtime::open(options, [], &options.data_dir, location).await?;
        Ok(Self { parts: Arc::new(WorkerParts { runtime, channels, tasks: Mutex::default(), _folder: folder }) })
    }

    /// Returns the service that takes tasks and sends their rows.
    pub fn service(&self) -> Worker {
        Worker::from_session_builder(self.clone()).with_version(env!("CARGO_PKG_VERSION"))
    }

    /// Begins a task: returns the header to put into its request, and what ends the task when its caller is gone.
    pub fn begin_task(&self) -> (&'static str, HeaderValue, AbandonTaskOnDrop) {
        let task = Uuid::now_v7().to_string();
        let value = HeaderValue::from_str(&task).unwrap_or_else(|_| HeaderValue::from_static("none"));
        self.parts.tasks.lock().insert(task.clone(), Arc::default());
        (TASK, value, AbandonTaskOnDrop { parts: Arc::clone(&self.parts), task })
    }

    /// Returns threads for a part of a task, which are its own as long as there are enough.
    pub fn task_threads(&self) -> Result<TaskThreads> {
        Ok(TaskThreads { lane: self.parts.runtime.threads.lane()? })
    }

    /// Returns how many tasks have begun and not ended.
    pub fn running_tasks(&self) -> usize {
        self.parts.tasks.lock().len()
    }

    /// Returns what is kept of columns that scans decoded, and how it was used.
    pub fn column_cache(&self) -> ColumnCacheState {
        self.parts.runtime.columns.state()
    }

    /// Returns what is kept on the disk of files in an object store, and how it was used.
    pub fn file_cache(&self) -> FileCacheState {
        let lake = self.parts.runtime.files.remote();
        lake.and_then(|lake| lake.cache()).map(|cache| cache.state()).unwrap_or_default()
    }
}

impl TaskThreads {
    /// Runs `work` on these threads. Dropping the handle ends it where it yields next.
    pub fn spawn<T>(&self, work: impl Future<Output = T> + Send + 'static) -> AbortOnDropHandle<T>
    where
        T: Send + 'static,
    {
        self.lane.spawn(work)
    }
}

impl Drop for AbandonTaskOnDrop {
    fn drop(&mut self) {
        if let Some(abandoned) = self.parts.tasks.lock().remove(&self.task) {
            abandoned.store(true, Ordering::Relaxed);
        }
    }
}

#[async_trait]
impl WorkerSessionBuilder for ClusterWorker {
    async fn build_session_state(&self, context: WorkerQueryContext) -> DfResult<SessionState> {
        let WorkerQueryContext { mut builder, headers } = context;
        let told = TaskHeaders::read(&headers)?;
        let runtime = &self.parts.runtime;
        let task = headers.get(TASK).and_then(|task| task.to_str().ok()).unwrap_or_default();
        let abandoned = self.parts.tasks.lock().get(task).map(Arc::clone).unwrap_or_default();
        let interrupt = Interrupt::abandoned_by(QueryClock::start(told.time_left), abandoned);
        // Whose query it is only its coordinator knows, and nobody asks here.
        let label = QueryLabel::default();
        let usage = QueryUsage::new(label, interrupt.clone(), Arc::clone(&runtime.resident), Arc::new(()));
        let limits = Limits { memory_bytes: told.memory_bytes, ..Limits::default() };
        let memory = runtime.query_memory(&limits);
        usage.count_pool(&memory);

        let mut config = builder.config().take().unwrap_or_default();
        let distributed = DistributedConfig::from_config_options(config.options()).cloned()?;
        *config.options_mut() = runtime.config().options().as_ref().clone();
        config.options_mut().extensions.insert(distributed);
        fit_sorts(&mut config, memory.as_ref());
        let channels: Arc<dyn ChannelResolver + Send + Sync> = Arc::clone(&self.parts.channels);
        let config = config
            .with_extension(Arc::clone(&runtime.files))
            .with_extension(Arc::clone(&runtime.columns))
            .with_distributed_user_codec(PlanCodec::trusting())
            .with_distributed_channel_resolver(channels)
            .with_distributed_passthrough_headers(told.write())?
            .with_distributed_worker_plan_rewrite_handler(move |event: WorkerPlanRewriteEvent<'_>| {
                let plan = interrupt.check_filters(event.plan)?;
                Ok(WorkerPlanRewriteEventResponse::new(in_query(plan, &usage)?))
            });
        let environment = runtime.environment(&memory);
        Ok(self.with_functions(builder.with_config(config), environment))
    }
}

impl ClusterWorker {
    /// Returns the session with the functions that every session of a coordinator has.
    fn with_functions(&self, builder: SessionStateBuilder, environment: Arc<RuntimeEnv>) -> SessionState {
        let state = self.parts.runtime.state();
        builder
            .with_runtime_env(environment)
            .with_scalar_functions(functions_of_plans(&state).into_values().collect())
            .with_aggregate_functions(state.aggregate_functions().values().cloned().collect())
            .with_window_functions(state.window_functions().values().cloned().collect())
            .with_higher_order_functions(state.higher_order_functions().values().cloned().collect())
            .build()
    }
}
