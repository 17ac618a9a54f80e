//! Answers a question: a run of a language model over the engine's tools, as a stream of events.
//!
//! The agent is read-only whoever asks, and a run never has more rights than its caller.
//! [`RunEvent`] is the only thing it emits; each protocol is a pure fold from events to frames.

mod budget;
mod error;
mod event;
mod history;
pub mod models;
mod prompt;
pub mod protocols;
mod run;
pub mod toolbox;
mod tools;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use parking_lot::Mutex;
use querent_catalog::{Page, PageRequest, Principal, RunRecord, RunStatus};
use querent_engine::{Engine, Limits, Session};
use serde_json::json;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;
use uuid::Uuid;

pub use error::{AgentError, Result};
pub use event::{RunErrorCode, RunEvent, Usage};

use models::ModelProvider;
use prompt::ExampleCache;
use run::{EVENTS_IN_FLIGHT, RunHandle, RunTask, Stop};

/// Memory of a tool's query; beyond it the query spills.
const TOOL_MEMORY_BYTES: usize = 256 << 20;

/// How the agent works; fixed at start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentConfig {
    /// Wall clock of one run.
    pub run_timeout: Duration,
    /// Tool calls of one run; the next one ends it with `tool_loop`.
    pub max_tool_calls: u32,
    /// Rows of a tool result, when the model does not say.
    pub default_tool_rows: usize,
    /// Tokens of the first turn's prompt for a model with native tool calls.
    pub prompt_tokens: usize,
    /// Tokens of a tool result's text for a model with native tool calls.
    pub tool_result_tokens: usize,
    /// Runs at once.
    pub max_concurrent_runs: usize,
}

impl Default for AgentConfig {
    /// 60 s, 12 calls, 200 rows, 4,000 and 2,000 tokens, 16 runs.
    fn default() -> Self {
        Self {
            run_timeout: Duration::from_secs(60),
            max_tool_calls: 12,
            default_tool_rows: 200,
            prompt_tokens: 4_000,
            tool_result_tokens: 2_000,
            max_concurrent_runs: 16,
        }
    }
}

/// One question, from any protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskRequest {
    /// Trimmed, not empty.
    pub question: String,
    /// Where bare names resolve and what the prompt's schema part is taken from; `None`: all, with `default` for bare names.
    pub database: Option<String>,
    /// Whether thinking is emitted.
    pub include_thinking: bool,
}

/// The agent. Cheap to clone.
#[derive(Clone)]
pub struct Agent {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    model: Arc<dyn ModelProvider>,
    config: Arc<AgentConfig>,
    examples: Arc<ExampleCache>,
    /// One permit a run.
    places: Arc<Semaphore>,
    running: Mutex<HashMap<Uuid, RunningRun>>,
    /// Every run's task; [`Agent::shutdown`] waits for them.
    tasks: TaskTracker,
    /// Shutdown has begun.
    closing: CancellationToken,
}

#[derive(Clone)]
struct RunningRun {
    handle: Arc<RunHandle>,
    started: Instant,
}

impl Agent {
    /// An agent that answers from `engine` with `model`.
    pub fn new(engine: Engine, model: Arc<dyn ModelProvider>, config: AgentConfig) -> Self {
        let places = Arc::new(Semaphore::new(config.max_concurrent_runs));
        let inner = Inner {
            engine,
            model,
            config: Arc::new(config),
            examples: Arc::new(ExampleCache::default()),
            places,
            running: Mutex::new(HashMap::new()),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// As given at start.
    pub fn config(&self) -> &AgentConfig {
        &self.inner.config
    }

    /// The language model.
    pub fn model(&self) -> &Arc<dyn ModelProvider> {
        &self.inner.model
    }

    /// Starts a run; it is stored as `running` when this returns. Errors only before the run exists:
    /// `too_many_runs` (429), `empty_question`, `database_not_found`, `shutting_down`. All later failures are events.
    pub async fn ask(&self, principal: &Principal, request: AskRequest) -> Result<Run> {
        let started = Instant::now();
        let question = request.question.trim().to_owned();
        if question.is_empty() {
            return Err(AgentError::EmptyQuestion);
        }
        if self.inner.tasks.is_closed() {
            return Err(AgentError::ShuttingDown);
        }
        let limit = self.inner.config.max_concurrent_runs;
        let place =
            Arc::clone(&self.inner.places).try_acquire_owned().map_err(|_| AgentError::TooManyRuns { limit })?;
        let session = self.session(principal, request.database.as_deref()).await?;
        let record = RunRecord {
            run_id: Uuid::now_v7(),
            subject: principal.subject().to_owned(),
            question: question.clone(),
            model_id: self.inner.model.model_id().to_owned(),
            status: RunStatus::Running,
            started_at: Utc::now(),
            finished_at: None,
            usage_json: json!(Usage::default()).to_string(),
            trace_json: "[]".to_owned(),
        };
        let run_id = record.run_id;
        let catalog = Arc::clone(self.inner.engine.catalog());
        let handle = Arc::new(RunHandle::new(record.clone()));
        let (events, received) = mpsc::channel(EVENTS_IN_FLIGHT);
        let (last_events, last_received) = oneshot::channel();
        let task = RunTask {
            handle: Arc::clone(&handle),
            catalog: Arc::clone(&catalog),
            session,
            model: Arc::clone(&self.inner.model),
            config: Arc::clone(&self.inner.config),
            examples: Arc::clone(&self.inner.examples),
            request: AskRequest { question, ..request },
            started,
            events,
            closing: self.inner.closing.clone(),
            last_events,
        };
        self.inner.running.lock().insert(run_id, RunningRun { handle: Arc::clone(&handle), started });
        if self.inner.tasks.is_closed() {
            // Shutdown began meanwhile and may not have seen this run: it ends as it would have ended then.
            handle.stop(Stop::Shutdown);
        }
        let inner = Arc::clone(&self.inner);
        let leave = move || {
            inner.running.lock().remove(&run_id);
            drop(place);
        };
        let (begun, has_begun) = oneshot::channel();
        // A task of its own from here on: a caller that goes away while the run is being stored cannot leave it behind.
        let whole = async move {
            if let Err(error) = catalog.insert_run(&record).await {
                leave();
                let _ = begun.send(Err(error));
                return;
            }
            let _ = begun.send(Ok(()));
            task.run(leave).await;
        };
        self.inner.tasks.spawn(whole.instrument(tracing::info_span!("run", %run_id)));
        has_begun.await.map_err(|_| AgentError::ShuttingDown)??;
        let last_events = stream::once(last_received).flat_map(|last| stream::iter(last.unwrap_or_default()));
        Ok(Run { run_id, events: ReceiverStream::new(received).chain(last_events).boxed() })
    }

    /// A stored or running run, the latter with its trace so far; owner and administrators only.
    pub async fn get_run(&self, who: &Principal, run_id: Uuid) -> Result<RunRecord> {
        // Looked up first: a run that ends meanwhile is then read as stored.
        let running = self.running_run(run_id);
        let stored = self.inner.engine.catalog().get_run(who, run_id).await?;
        match running {
            Some(running) if stored.status == RunStatus::Running => Ok(running.handle.snapshot(running.started)),
            _ => Ok(stored),
        }
    }

    /// Newest first, without traces; a caller's own runs, every run for administrators.
    pub async fn list_runs(&self, who: &Principal, page: PageRequest) -> Result<Page<RunRecord>> {
        Ok(self.inner.engine.catalog().list_runs(who, page).await?)
    }

    /// Stops a running run; its stream still ends with `run_finished`. A finished run is left as it is. Returns the
    /// run as it is afterwards.
    pub async fn cancel_run(&self, who: &Principal, run_id: Uuid) -> Result<RunRecord> {
        let catalog = self.inner.engine.catalog();
        let running = self.running_run(run_id);
        let record = catalog.get_run(who, run_id).await?;
        let Some(running) = running.filter(|_| record.status == RunStatus::Running) else { return Ok(record) };
        running.handle.stop(Stop::Cancelled);
        running.handle.ended.cancelled().await;
        self.get_run(who, run_id).await
    }

    /// Refuses new runs, cancels those in progress and waits until their last events are stored and delivered.
    pub async fn shutdown(&self) {
        self.inner.tasks.close();
        self.inner.closing.cancel();
        let running: Vec<RunningRun> = self.inner.running.lock().values().cloned().collect();
        for run in running {
            run.handle.stop(Stop::Shutdown);
        }
        self.inner.tasks.wait().await;
    }

    /// Runs now in progress.
    pub fn running(&self) -> usize {
        self.inner.running.lock().len()
    }

    fn running_run(&self, run_id: Uuid) -> Option<RunningRun> {
        self.inner.running.lock().get(&run_id).cloned()
    }

    /// What a run may do: read, as its caller, within its own time.
    async fn session(&self, principal: &Principal, database: Option<&str>) -> Result<Session> {
        let limits =
            Limits { wall_clock: self.inner.config.run_timeout, memory_bytes: TOOL_MEMORY_BYTES, ..Limits::default() };
        let session = self.inner.engine.session(principal.clone(), limits).read_only();
        Ok(session.in_database(database).await?)
    }
}

/// A started run. Dropping `events` before the end cancels the run: its model call and query stop, and it is stored as `cancelled`.
pub struct Run {
    /// UUIDv7.
    pub run_id: Uuid,
    /// Ends after [`RunEvent::RunFinished`], always.
    pub events: BoxStream<'static, RunEvent>,
}
