//! Answers a question: a run of a language model over the engine's tools, as a stream of events.
//!
//! The agent is read-only whoever asks, and a run never has more rights than its caller.
//! [`RunEvent`] is the only thing it emits; each protocol is a pure fold from events to frames.

mod answer;
mod attachments;
mod budget;
pub mod chart;
mod continuation;
mod error;
mod event;
mod history;
mod log;
pub mod models;
mod prompt;
pub mod protocols;
mod request;
mod run;
pub mod toolbox;
mod tools;
mod watch;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;
use futures::StreamExt;
use parking_lot::Mutex;
use querent_catalog::{
    Catalog, CatalogError, ConversationAccess, ConversationKey, ConversationRecord, Decision as StoredDecision, Page,
    PageRequest, PendingState, Principal, Role, RunRecord, RunStatus, whole_trace,
};
use querent_engine::{Engine, Limits, Session};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;
use uuid::Uuid;

pub use continuation::{ContinueError, Continued};
pub use error::{AgentError, Result};
pub use event::{
    ContextTokens, EventKind, RunErrorCode, RunEvent, RunOutcome, RunStarted, SERVER_LABEL, TextPhase, ToolCallStarted,
    ToolResult, ToolStatus, Trigger, Truncation, Usage, WaitingCall, WantedCall,
};
pub use log::{EventBatch, LoggedEvent, RunEvents};
pub use prompt::{PromptSections, SECTION_KEYS};
pub use request::{AnswerSchema, AskRequest, Decision, OnDisconnect, Protocol, ResumedCall, RunRequest};
pub use watch::RunWatcher;

use answer::StructuredAnswer;
use models::{ModelProvider, Models};
use prompt::ExampleCache;
use run::{RunHandle, RunTask, Stop};

/// Characters of a conversation's title, taken from its first question.
const TITLE_CHARS: usize = 120;
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
    /// Whether there are tools that write; each of their calls waits for a person's approval.
    pub write_tools: bool,
    /// Whether a model name that is not configured is refused; otherwise it means the default model.
    pub strict_models: bool,
}

impl Default for AgentConfig {
    /// 60 s, 12 calls, 200 rows, 4,000 and 2,000 tokens, 16 runs, nothing written, any model name.
    fn default() -> Self {
        Self {
            run_timeout: Duration::from_secs(60),
            max_tool_calls: 12,
            default_tool_rows: 200,
            prompt_tokens: 4_000,
            tool_result_tokens: 2_000,
            max_concurrent_runs: 16,
            write_tools: false,
            strict_models: false,
        }
    }
}

/// The agent. Cheap to clone.
#[derive(Clone)]
pub struct Agent {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    models: Models,
    config: Arc<AgentConfig>,
    examples: Arc<ExampleCache>,
    watcher: Arc<dyn RunWatcher>,
    /// One permit a run.
    places: Arc<Semaphore>,
    running: Mutex<HashMap<Uuid, RunningRun>>,
    /// Conversations in which a run is in progress.
    busy: Mutex<HashMap<ConversationKey, Uuid>>,
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
    /// An agent that answers from `engine` with `model` alone.
    pub fn new(engine: Engine, model: Arc<dyn ModelProvider>, config: AgentConfig) -> Self {
        Self::with_models(engine, Models::single(model), config, Arc::new(()))
    }

    /// An agent that answers from `engine` with the model that a request names, and tells `watcher` of its runs.
    pub fn with_models(engine: Engine, models: Models, config: AgentConfig, watcher: Arc<dyn RunWatcher>) -> Self {
        let places = Arc::new(Semaphore::new(config.max_concurrent_runs));
        let inner = Inner {
            engine,
            models,
            config: Arc::new(config),
            examples: Arc::new(ExampleCache::default()),
            watcher,
            places,
            running: Mutex::new(HashMap::new()),
            busy: Mutex::new(HashMap::new()),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// As given at start.
    pub fn config(&self) -> &AgentConfig {
        &self.inner.config
    }

    /// The language models; the first is the default.
    pub fn models(&self) -> &Models {
        &self.inner.models
    }

    /// Where conversations and runs are kept.
    pub fn catalog(&self) -> &Arc<Catalog> {
        self.inner.engine.catalog()
    }

    /// Starts a run of the ask protocol: see [`Agent::start`]. A session that is not there yet begins with it.
    pub async fn ask(&self, principal: &Principal, request: AskRequest) -> Result<Run> {
        let session_id = request.session_id.clone();
        let mut run = RunRequest::from(request);
        if let Some(id) = session_id {
            self.continue_conversation(principal, &mut run, ConversationKey::shared(id)).await?;
        }
        self.start(principal, run).await
    }

    /// Makes `request` go on with a conversation, which is made if it is not there. Errors: `conversation_not_found`
    /// where it is another's.
    pub async fn continue_conversation(
        &self,
        who: &Principal,
        request: &mut RunRequest,
        key: ConversationKey,
    ) -> Result<()> {
        let title = conversation_title(&request.question());
        let record = ConversationRecord { title, ..ConversationRecord::new(key.clone(), who.subject(), Utc::now()) };
        match self.catalog().conversations().open(who, &record).await? {
            ConversationAccess::Created(_) => {}
            ConversationAccess::Existing(_) => {
                if let Some(last) = self.catalog().runs().last_of_conversation(who, &key).await? {
                    request.history = messages_of(&last);
                    request.previous_run_id.get_or_insert(last.run_id);
                }
            }
            ConversationAccess::Foreign => return Err(CatalogError::ConversationNotFound { id: key.id }.into()),
        }
        request.conversation = Some(key);
        request.retained = true;
        Ok(())
    }

    /// Starts a run; it is stored as `running` when this returns. Errors only before the run exists:
    /// `too_many_runs` (429), `conversation_locked` (409), `empty_question`, `database_not_found`, `model_not_found`,
    /// `invalid_request`, `shutting_down`. All later failures are events.
    pub async fn start(&self, principal: &Principal, request: RunRequest) -> Result<Run> {
        let started = Instant::now();
        let question = request.question();
        if question.is_empty() && request.resume.is_empty() && request.history.is_empty() {
            return Err(AgentError::EmptyQuestion);
        }
        if let Some(schema) = &request.answer_schema {
            StructuredAnswer::new(schema)?;
        }
        check_client_tools(&request)?;
        let model = match request.model.as_deref().map(|name| (name, self.inner.models.named(name))) {
            Some((_, Some(entry))) => entry.clone(),
            Some((name, None)) if self.inner.config.strict_models => {
                return Err(AgentError::UnknownModel { model: name.to_owned() });
            }
            Some((_, None)) | None => self.inner.models.default_entry().clone(),
        };
        if self.inner.tasks.is_closed() {
            return Err(AgentError::ShuttingDown);
        }
        let run_id = Uuid::now_v7();
        let place = self.place(run_id, request.conversation.clone())?;
        let session = self.session(principal, request.database.as_deref()).await?;
        let writer = self.writer(principal, request.database.as_deref()).await?;
        let record = RunRecord {
            protocol: request.protocol.as_str().to_owned(),
            conversation: request.conversation.clone(),
            previous_run_id: request.previous_run_id,
            invocation_id: request.invocation_id.clone(),
            retained: request.retained,
            ..RunRecord::new(run_id, principal.subject(), &question, model.provider.model_id(), Utc::now())
        };
        let record = RunRecord { usage_json: json!(Usage::default()).to_string(), ..record };
        let catalog = Arc::clone(self.catalog());
        let handle = Arc::new(RunHandle::new(record.clone(), Arc::clone(&self.inner.watcher)));
        let started_event = RunStarted {
            run_id,
            model: model.provider.model_id().to_owned(),
            question,
            protocol: request.protocol.as_str().to_owned(),
            conversation: request.conversation.as_ref().map(|key| key.id.clone()),
            previous_run_id: request.previous_run_id,
            invocation_id: request.invocation_id.clone(),
            trigger: RunTask::trigger(&request),
            history_len: request.history.len(),
            request: request.echo.clone(),
            input: with_ids(request.input_items.clone(), run_id),
        };
        handle.lingers(match request.on_disconnect {
            OnDisconnect::Cancel => Some(Duration::ZERO),
            OnDisconnect::CancelAfter(linger) => Some(linger),
            OnDisconnect::GoOn => None,
        });
        let decided = request.resume.clone();
        let task = RunTask {
            handle: Arc::clone(&handle),
            catalog: Arc::clone(&catalog),
            session,
            writer,
            model,
            config: Arc::clone(&self.inner.config),
            examples: Arc::clone(&self.inner.examples),
            started_event,
            request,
            started,
            closing: self.inner.closing.clone(),
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
        let who = principal.clone();
        let (begun, has_begun) = oneshot::channel();
        // A task of its own from here on: a caller that goes away while the run is being stored cannot leave it behind.
        let whole = async move {
            if let Err(error) = begin(&catalog, &who, &record, &decided).await {
                leave();
                let _ = begun.send(Err(error));
                return;
            }
            let _ = begun.send(Ok(()));
            task.run(leave).await;
        };
        // Before anything is awaited: a client may go away while its run is being stored.
        let events = self.followed(handle, 0);
        self.inner.tasks.spawn(whole.instrument(tracing::info_span!("run", %run_id)));
        has_begun.await.map_err(|_| AgentError::ShuttingDown)??;
        Ok(Run { run_id, events })
    }

    /// A run of the caller's that goes on without its client for a while, from its `from`th event on; the run belongs to
    /// this reader as to its first. `None` where it has ended.
    pub async fn follow(&self, who: &Principal, run_id: Uuid, from: u64) -> Result<Option<Run>> {
        let Some(running) = self.running_run(run_id) else { return Ok(None) };
        let events = self.followed(running.handle, usize::try_from(from).unwrap_or(usize::MAX));
        self.catalog().runs().get(who, run_id).await?;
        Ok(Some(Run { run_id, events }))
    }

    /// A run's events for one of the clients that it runs for.
    fn followed(&self, handle: Arc<RunHandle>, from: usize) -> RunEvents {
        let events = handle.subscribe(from);
        let attached = Attached::to(handle, self.inner.tasks.clone());
        RunEvents::new(events.map(move |batch| {
            let _attached = &attached;
            batch
        }))
    }

    /// A stored run's events, or a running one's as they come, from the `from`th on. Errors: `run_not_found`, also
    /// for a run that was not retained.
    pub async fn events(&self, who: &Principal, run_id: Uuid, from: u64) -> Result<RunEvents> {
        let running = self.running_run(run_id);
        let stored = self.catalog().runs().get(who, run_id).await?;
        if !stored.retained {
            return Err(CatalogError::RunNotFound { run_id: run_id.to_string() }.into());
        }
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        if let Some(running) = running.filter(|_| stored.status == RunStatus::Running) {
            return Ok(RunEvents::new(running.handle.subscribe(from)));
        }
        Ok(RunEvents::stored(events_of(&stored)?, from))
    }

    /// A place among the runs and, if it has one, in its conversation, until the place is dropped.
    fn place(&self, run_id: Uuid, conversation: Option<ConversationKey>) -> Result<Place> {
        let limit = self.inner.config.max_concurrent_runs;
        let permit =
            Arc::clone(&self.inner.places).try_acquire_owned().map_err(|_| AgentError::TooManyRuns { limit })?;
        if let Some(key) = &conversation {
            let mut busy = self.inner.busy.lock();
            if busy.contains_key(key) {
                return Err(AgentError::ConversationLocked { conversation: key.id.clone() });
            }
            busy.insert(key.clone(), run_id);
        }
        Ok(Place { _permit: permit, conversation, inner: Arc::clone(&self.inner) })
    }

    /// A stored or running run, the latter with its trace so far; owner and administrators only.
    pub async fn get_run(&self, who: &Principal, run_id: Uuid) -> Result<RunRecord> {
        // Looked up first: a run that ends meanwhile is then read as stored.
        let running = self.running_run(run_id);
        let stored = self.inner.engine.catalog().runs().get(who, run_id).await?;
        match running {
            Some(running) if stored.status == RunStatus::Running => {
                let record = running.handle.snapshot(running.started);
                Ok(RunRecord { trace_json: whole_trace(record.trace_json), ..record })
            }
            _ => Ok(stored),
        }
    }

    /// Newest first, without traces; a caller's own runs, every run for administrators.
    pub async fn list_runs(&self, who: &Principal, page: PageRequest) -> Result<Page<RunRecord>> {
        Ok(self.inner.engine.catalog().runs().list(who, page).await?)
    }

    /// Stops a running run; its stream still ends with `run_finished`. A finished run is left as it is. Returns the
    /// run as it is afterwards.
    pub async fn cancel_run(&self, who: &Principal, run_id: Uuid) -> Result<RunRecord> {
        let catalog = self.inner.engine.catalog();
        let running = self.running_run(run_id);
        let record = catalog.runs().get(who, run_id).await?;
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

    /// For approved calls of tools that write; `None` where there are none, or the caller may not write.
    async fn writer(&self, principal: &Principal, database: Option<&str>) -> Result<Option<Session>> {
        if !self.inner.config.write_tools || principal.role() < Role::Write {
            return Ok(None);
        }
        let session = self.inner.engine.session(principal.clone(), self.limits());
        Ok(Some(session.in_database(database).await?))
    }

    fn limits(&self) -> Limits {
        Limits { wall_clock: self.inner.config.run_timeout, memory_bytes: TOOL_MEMORY_BYTES, ..Limits::default() }
    }

    /// What a run may do: read, as its caller, within its own time.
    async fn session(&self, principal: &Principal, database: Option<&str>) -> Result<Session> {
        let session = self.inner.engine.session(principal.clone(), self.limits()).read_only();
        Ok(session.in_database(database).await?)
    }
}

/// A started run. Where its request says so, dropping `events` before the end cancels the run: its model call and
/// query stop, and it is stored as `cancelled`.
pub struct Run {
    /// UUIDv7.
    pub run_id: Uuid,
    /// Ends after [`EventKind::RunFinished`], always.
    pub events: RunEvents,
}

/// One of the clients that a run runs for. When the last has gone, the run stops, at once or a while later.
struct Attached {
    handle: Arc<RunHandle>,
    tasks: TaskTracker,
}

impl Attached {
    fn to(handle: Arc<RunHandle>, tasks: TaskTracker) -> Self {
        handle.attach();
        Self { handle, tasks }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let Some(linger) = self.handle.detach() else { return };
        if linger.is_zero() {
            self.handle.stop(Stop::ClientGone);
            return;
        }
        let handle = Arc::clone(&self.handle);
        self.tasks.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(linger) => handle.stop_if_alone(),
                () = handle.ended.cancelled() => {}
            }
        });
    }
}

/// One run's place, free again when it goes.
struct Place {
    _permit: OwnedSemaphorePermit,
    conversation: Option<ConversationKey>,
    inner: Arc<Inner>,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(key) = &self.conversation {
            self.inner.busy.lock().remove(key);
        }
    }
}

/// Stores the run and what was decided, which happens once: a second run on the same decision is refused.
async fn begin(catalog: &Catalog, who: &Principal, record: &RunRecord, decided: &[ResumedCall]) -> Result<()> {
    for ResumedCall { call, decision, .. } in decided.iter().filter(|resumed| resumed.stored) {
        let (state, reason) = match decision {
            Decision::Approved { reason } => (PendingState::Approved, reason.as_deref()),
            Decision::Denied { reason } => (PendingState::Denied, reason.as_deref()),
            Decision::Output(_) => (PendingState::Answered, None),
            Decision::Abandoned => (PendingState::Abandoned, None),
        };
        let note = call.decision_json.as_deref().and_then(|note| serde_json::from_str(note).ok());
        let mut note: Value = note.unwrap_or_else(|| json!({}));
        note["run_id"] = json!(record.run_id);
        note["reason"] = json!(reason);
        if let StoredDecision::Before(_) =
            catalog.pending_calls().decide(who, &call.call_id, state, &note.to_string()).await?
        {
            return Err(AgentError::AlreadyResumed { call_id: call.call_id.clone() });
        }
    }
    Ok(catalog.runs().insert(record).await?)
}

/// Items of a request, each with an id that names its run.
fn with_ids(mut items: Value, run_id: Uuid) -> Value {
    for (index, item) in items.as_array_mut().into_iter().flatten().enumerate() {
        if let Some(item) = item.as_object_mut() {
            item.insert("id".to_owned(), json!(format!("msg_{}f{index:03x}", run_id.simple())));
        }
    }
    items
}

fn check_client_tools(request: &RunRequest) -> Result<()> {
    for (index, tool) in request.client_tools.iter().enumerate() {
        if tools::is_ours(&tool.name) {
            let message = format!("`{}` is a tool of this server; give your tool another name", tool.name);
            return Err(AgentError::InvalidRequest { message });
        }
        if request.client_tools.iter().take(index).any(|earlier| earlier.name == tool.name) {
            return Err(AgentError::InvalidRequest { message: format!("two tools are named `{}`", tool.name) });
        }
    }
    Ok(())
}

/// The tool of that name, if it is one of ours.
pub fn known_tool(name: &str) -> Option<&'static str> {
    tools::known(name)
}

/// The names of the tools, with those that write or without.
pub fn tool_names(with_writers: bool) -> impl Iterator<Item = String> {
    tools::specs(false, with_writers).into_iter().map(|tool| tool.name)
}

/// What a conversation that begins with `question` is called.
pub fn conversation_title(question: &str) -> String {
    question.trim().chars().take(TITLE_CHARS).collect()
}

/// The conversation as it stood at the run's end.
pub fn messages_of(run: &RunRecord) -> Vec<models::ChatMessage> {
    serde_json::from_str(&run.messages_json).unwrap_or_default()
}

/// The run's event log. Errors: `internal` for a log that cannot be read.
pub fn events_of(run: &RunRecord) -> Result<Vec<RunEvent>> {
    serde_json::from_str(&run.events_json)
        .map_err(|error| AgentError::Internal(format!("the log of run {} cannot be read: {error}", run.run_id)))
}
