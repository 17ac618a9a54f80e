//! The agent: starts runs, follows them, stops them, and waits for them at shutdown.
//!
//! A run is a task of its own; its client reads its events and may go away. Each run holds a [`RunPermit`]
//! until it is stored, so a client that has seen `run_finished` can start the next one at once. `approvals` continues
//! runs that wait for a person, `begin` stores a run where nothing is in its way, `deletion` deletes conversations, `restart`
//! looks after runs of an earlier process, `questions_back` gives up what an answer has asked.

mod approvals;
mod begin;
mod deletion;
mod questions_back;
mod restart;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use parking_lot::Mutex;
use querent_catalog::{
    Catalog, CatalogError, ConversationKey, Page, PageRequest, Principal, Role, RunRecord, RunStatus,
};
use querent_engine::{Engine, Limits, QuerySlot, QuerySlots, Session, SlotLimits};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;
use uuid::Uuid;

use crate::answer::StructuredAnswer;
use crate::config::AgentConfig;
use crate::conversation::events_of;
use crate::error::{AgentError, Result};
use crate::event::RunStarted;
use crate::event_log::RunEvents;
use crate::models::{AGENT_MODEL, ChatRole, ModelProvider, Models};
use crate::prompt::ExampleCache;
use crate::protocols::ask::decode_trace;
use crate::protocols::responses::{self, ContinueError, Continued, InputItem};
use crate::request::{AskRequest, MAX_QUESTION_BYTES, OnDisconnect, RunRequest};
use crate::results::ResultStore;
use crate::run::{RunHandle, RunTask, StopCause, begun_record, end_runs_of_lost_servers, note_restart};
use crate::run_watcher::RunWatcher;
use crate::{telemetry, tools};
use begin::begin;

/// Memory of a tool's query; beyond it the query spills.
const TOOL_MEMORY_BYTES: usize = 256 << 20;

/// The agent. Cheap to clone.
#[derive(Clone)]
pub struct Agent {
    state: Arc<AgentState>,
}

struct AgentState {
    engine: Engine,
    models: Models,
    config: Arc<AgentConfig>,
    examples: Arc<ExampleCache>,
    results: Arc<ResultStore>,
    watcher: Arc<dyn RunWatcher>,
    /// One slot for each run.
    slots: QuerySlots,
    running: Mutex<HashMap<Uuid, RunningRun>>,
    /// Conversations in which a run is in progress.
    busy: Mutex<HashMap<ConversationKey, Uuid>>,
    /// Every run's task; [`Agent::shutdown`] waits for them.
    tasks: TaskTracker,
    /// Shutdown has begun.
    closing: CancellationToken,
}

/// How long whoever continues a run waits until its end is stored, and how often it is looked at.
const STORED_WITHIN: Duration = Duration::from_secs(20);
const STORED_EVERY: Duration = Duration::from_millis(20);
/// How long a run that ends with its client may go on after it.
const CLIENT_GONE_WITHIN: Duration = Duration::from_secs(2);

#[derive(Clone)]
struct RunningRun {
    handle: Arc<RunHandle>,
    started: Instant,
}

impl Agent {
    /// Creates an agent that answers from `engine` with `model` alone.
    pub fn new(engine: Engine, model: Arc<dyn ModelProvider>, config: AgentConfig) -> Self {
        Self::with_models(engine, Models::single(model), config, Arc::new(()))
    }

    /// Creates an agent that answers from `engine` with the model that a request names, and notifies `watcher` of its
    /// runs. From now on `system.agent_runs` of the engine shows decoded traces.
    pub fn with_models(engine: Engine, models: Models, config: AgentConfig, watcher: Arc<dyn RunWatcher>) -> Self {
        engine.decode_run_traces_with(decode_trace);
        let limits = SlotLimits::shared(
            config.max_concurrent_runs,
            config.max_concurrent_runs_per_caller,
            config.max_queued_runs,
        );
        let server = engine.catalog().members().own().and_then(|server| Uuid::try_parse(server).ok());
        let results = Arc::new(ResultStore::new(config.result_bytes, config.result_lifetime).of_server(server));
        let state = AgentState {
            engine,
            models,
            config: Arc::new(config),
            examples: Arc::new(ExampleCache::default()),
            results,
            watcher,
            slots: QuerySlots::new(limits),
            running: Mutex::new(HashMap::new()),
            busy: Mutex::new(HashMap::new()),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        };
        Self { state: Arc::new(state) }
    }

    /// Ends the runs of servers that share the catalog and give no sign of life, with the same code. Returns how many there
    /// were. To be called now and then.
    pub async fn end_runs_of_lost_servers(&self) -> Result<u64> {
        Ok(end_runs_of_lost_servers(self.catalog()).await?)
    }

    /// Returns the other server that shares the catalog and has a run in progress, as it was stored; `None` for one that is
    /// not in progress, or is in progress here.
    pub async fn server_of_run(&self, stored: &RunRecord) -> Result<Option<String>> {
        if stored.status != RunStatus::Running || self.running_run(stored.run_id).is_some() {
            return Ok(None);
        }
        Ok(self.catalog().runs().server_of(stored.run_id).await?)
    }

    /// Errors: `run_elsewhere`, for a run that is in progress on another server.
    async fn require_here(&self, stored: &RunRecord) -> Result<()> {
        match self.server_of_run(stored).await? {
            Some(server) => Err(AgentError::RunElsewhere { run_id: stored.run_id, server }),
            None => Ok(()),
        }
    }

    /// Returns the settings that the agent was started with.
    pub fn config(&self) -> &AgentConfig {
        &self.state.config
    }

    /// Returns the language models; the first is the default.
    pub fn models(&self) -> &Models {
        &self.state.models
    }

    /// Returns the catalog, which stores conversations and runs.
    pub fn catalog(&self) -> &Arc<Catalog> {
        self.state.engine.catalog()
    }

    /// Returns the rows of queries that are kept for their callers: what the tickets in events name.
    pub fn results(&self) -> &Arc<ResultStore> {
        &self.state.results
    }

    /// Starts a run of the ask protocol: see [`Agent::start`]. A session that does not exist yet begins with it.
    pub async fn ask(&self, principal: &Principal, request: AskRequest) -> Result<AgentRun> {
        let session_id = request.session_id.clone();
        let mut run = RunRequest::from(request);
        if let Some(id) = session_id {
            self.continue_conversation(principal, &mut run, ConversationKey::shared(id)).await?;
        }
        self.start(principal, run).await
    }

    /// Lets `request` continue a conversation, which is created if it does not exist, with the items that clients of any
    /// protocol have added to it.
    ///
    /// Errors: `conversation_not_found` where it belongs to somebody else.
    pub async fn continue_conversation(
        &self,
        who: &Principal,
        request: &mut RunRequest,
        key: ConversationKey,
    ) -> Result<()> {
        self.settle(&key).await;
        responses::join_conversation(self.catalog(), who, request, key).await
    }

    /// Completes `request`, which has everything but its messages, with `items` and with what they continue: a
    /// conversation, a response, or a run that waits for a decision.
    pub async fn continue_with(
        &self,
        who: &Principal,
        request: RunRequest,
        items: Vec<InputItem>,
        conversation: Option<ConversationKey>,
        previous_response_id: Option<&str>,
    ) -> std::result::Result<Continued, ContinueError> {
        self.stored(&responses::named_runs(&items, previous_response_id)).await;
        if let Some(key) = &conversation {
            self.settle(key).await;
        }
        responses::continue_run(self.catalog(), who, request, items, conversation, previous_response_id).await
    }

    /// Waits, for a while, until the run of a conversation is stored that its clients know to be over. To be called before
    /// what it said is read.
    pub async fn settle(&self, conversation: &ConversationKey) {
        let Some(run_id) = self.run_in(conversation) else { return };
        if let Some(run) = self.running_run(run_id).filter(|run| run.handle.ends_with_its_client()) {
            // That a client is gone is known a moment after what it asks next, over another connection.
            let _ = tokio::time::timeout(CLIENT_GONE_WITHIN, run.handle.over()).await;
        }
        self.stored(&[run_id]).await;
    }

    /// Returns the run that is in progress in a conversation, on this server.
    fn run_in(&self, conversation: &ConversationKey) -> Option<Uuid> {
        self.state.busy.lock().get(conversation).copied()
    }

    /// Waits, for a while, until these runs are stored whose clients know them to be over, since their end is delivered or
    /// they have been stopped: whoever continues one must not be told that it is in progress because the catalog is slow.
    async fn stored(&self, runs: &[Uuid]) {
        let is_over = |run_id: &Uuid| self.running_run(*run_id).is_some_and(|run| run.handle.is_over());
        let wait = async {
            while runs.iter().any(is_over) {
                tokio::time::sleep(STORED_EVERY).await;
            }
        };
        // One that is not stored by then is refused as one in progress.
        let _ = tokio::time::timeout(STORED_WITHIN, wait).await;
    }

    /// Starts a run; it is stored as `running` when this returns. Errors only before the run exists:
    /// `too_many_runs` (429), `conversation_locked` (409), `empty_question`, `database_not_found`, `model_not_found`,
    /// `invalid_request`, `shutting_down`. All later failures are events.
    pub async fn start(&self, principal: &Principal, request: RunRequest) -> Result<AgentRun> {
        let decided = request.resume.clone();
        let created = request.created_conversation().cloned();
        match self.start_new(principal, request).await {
            Err(AgentError::AlreadyResumed { call_id }) => self.run_of_decisions(principal, &decided, call_id).await,
            Err(error) => Err(self.refused(principal, created, error).await),
            started => started,
        }
    }

    async fn start_new(&self, principal: &Principal, mut request: RunRequest) -> Result<AgentRun> {
        let started = Instant::now();
        if self.state.config.restart_background {
            note_restart(&mut request);
        }
        let question = request.question();
        let has_picture = request.input.iter().any(|message| !message.images.is_empty());
        // What only an assistant has said asks nothing, and a message without words does not ask again what was asked
        // before; a tool's result is answered without any.
        let is_unasked = request.history.iter().all(|message| message.role == ChatRole::Assistant);
        let follows_result = request.history.last().is_some_and(|message| message.role == ChatRole::Tool);
        let is_blank = !request.input.is_empty() && !follows_result;
        if question.is_empty() && !has_picture && request.resume.is_empty() && (is_unasked || is_blank) {
            return Err(AgentError::EmptyQuestion);
        }
        if question.len() > MAX_QUESTION_BYTES {
            let (field, limit) = (request.protocol.question_field(), MAX_QUESTION_BYTES);
            return Err(AgentError::QuestionTooLong { field, bytes: question.len(), limit });
        }
        if let Some(schema) = &request.answer_schema {
            StructuredAnswer::new(schema)?;
        }
        check_client_tools(&request)?;
        let model = match request.model.as_deref().map(|name| (name, self.state.models.named(name))) {
            Some((_, Some(entry))) => entry.clone(),
            Some((name, None)) if self.state.config.strict_models && name != AGENT_MODEL => {
                return Err(AgentError::UnknownModel { model: name.to_owned() });
            }
            Some((_, None)) | None => self.state.models.default_entry().clone(),
        };
        if self.state.tasks.is_closed() {
            return Err(AgentError::ShuttingDown);
        }
        let run_id = request.restarts.unwrap_or_else(Uuid::now_v7);
        let permit = self.run_permit(principal, run_id, request.conversation.clone()).await?;
        // It may have begun while the run waited.
        if self.state.tasks.is_closed() {
            return Err(AgentError::ShuttingDown);
        }
        let session = self.session(principal, request.database.as_deref()).await?;
        let writer = self.writer(principal, request.database.as_deref()).await?;
        let started_at = self.catalog().now().await?;
        let record = RunRecord {
            protocol: request.protocol.as_str().to_owned(),
            conversation: request.conversation.clone(),
            previous_run_id: request.previous_run_id,
            invocation_id: request.invocation_id.clone(),
            retained: request.retained,
            reach: Some(self.catalog().policies().reach(principal)),
            ..RunRecord::new(run_id, principal.subject(), &question, model.provider.model_id(), started_at)
        };
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
        let record = begun_record(record, &started_event, &request);
        let catalog = Arc::clone(self.catalog());
        let handle = Arc::new(RunHandle::new(record.clone(), Arc::clone(&self.state.watcher)));
        // What it continues stays known if it ends before its prompt is made.
        handle.keep_messages(request.stored_messages(&request.history));
        handle.set_linger(match request.on_disconnect {
            OnDisconnect::Cancel => Some(Duration::ZERO),
            OnDisconnect::CancelAfter(linger) => Some(linger),
            OnDisconnect::KeepRunning => None,
        });
        let (decided, begins_again) = (request.resume.clone(), request.restarts.is_some());
        let conversation = request.conversation.as_ref().map(|key| key.id.as_str());
        let span = telemetry::run_span(run_id, model.provider.model_id(), request.protocol.as_str(), conversation);
        let task = RunTask {
            handle: Arc::clone(&handle),
            catalog: Arc::clone(&catalog),
            session,
            writer,
            model,
            config: Arc::clone(&self.state.config),
            examples: Arc::clone(&self.state.examples),
            // The user of an application has no way to Flight.
            results: principal.attributes().is_none().then(|| Arc::clone(self.results())),
            started_event,
            request,
            started,
            span: span.clone(),
            closing: self.state.closing.clone(),
        };
        self.state.running.lock().insert(run_id, RunningRun { handle: Arc::clone(&handle), started });
        if self.state.tasks.is_closed() {
            // Shutdown began in between and may not have seen this run.
            handle.stop(StopCause::Shutdown);
        }
        let state = Arc::clone(&self.state);
        let leave = move || {
            // In this order: who waits for the run finds its conversation free.
            drop(permit);
            state.running.lock().remove(&run_id);
        };
        let (who, config) = (principal.clone(), Arc::clone(&self.state.config));
        let (begun, has_begun) = oneshot::channel();
        // A task of its own from here on, so that a caller that goes away cannot leave a half-stored run behind.
        let whole = async move {
            let stored = match begins_again {
                true => catalog.runs().insert_again(&record).await.map_err(AgentError::from),
                false => begin(&catalog, &who, &record, &decided, &config).await,
            };
            if let Err(error) = stored {
                leave();
                let _ = begun.send(Err(error));
                return;
            }
            let _ = begun.send(Ok(()));
            task.run(leave).await;
        };
        // Attached before anything is awaited: a client may go away while its run is being stored.
        let events = self.followed(handle, 0);
        let logged = span.in_scope(|| tracing::info_span!("run", %run_id));
        self.state.tasks.spawn(whole.instrument(logged).instrument(span));
        has_begun.await.map_err(|_| AgentError::ShuttingDown)??;
        Ok(AgentRun { run_id, events })
    }

    /// Attaches another client to a run of the caller's that is still in progress, from its `from`th event on; the run
    /// continues as long as any client is attached. `None` where it has ended.
    pub async fn follow(&self, who: &Principal, run_id: Uuid, from: u64) -> Result<Option<AgentRun>> {
        let Some(running) = self.running_run(run_id) else { return Ok(None) };
        let events = self.followed(running.handle, usize::try_from(from).unwrap_or(usize::MAX));
        self.catalog().runs().get(who, run_id).await?;
        Ok(Some(AgentRun { run_id, events }))
    }

    /// Returns a run's events for one of its clients, attached as long as the stream lives.
    fn followed(&self, handle: Arc<RunHandle>, from: usize) -> RunEvents {
        let events = handle.subscribe(from);
        let attached = AttachedClient::new(handle, self.state.tasks.clone());
        RunEvents::new(events.map(move |batch| {
            let _attached = &attached;
            batch
        }))
    }

    /// Returns a stored run's events, or a running one's as they come, from the `from`th on.
    ///
    /// Errors: `run_not_found`, also for a run that was not retained; `run_elsewhere`, where another server that shares the
    /// catalog has it in progress.
    pub async fn events(&self, who: &Principal, run_id: Uuid, from: u64) -> Result<RunEvents> {
        let running = self.running_run(run_id);
        let mut stored = self.catalog().runs().get(who, run_id).await?;
        if !stored.retained {
            return Err(CatalogError::RunNotFound { run_id: run_id.to_string() }.into());
        }
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        if let Some(running) = running.filter(|_| stored.status == RunStatus::Running) {
            return Ok(RunEvents::new(running.handle.subscribe(from)));
        }
        if stored.status == RunStatus::Running {
            self.require_here(&stored).await?;
            // It has ended in between.
            stored = self.catalog().runs().get(who, run_id).await?;
        }
        Ok(RunEvents::stored(events_of(&stored)?, from))
    }

    /// Reserves a conversation, if the run has one, and waits for the caller's turn among the concurrent runs; both until the
    /// permit is dropped.
    async fn run_permit(
        &self,
        who: &Principal,
        run_id: Uuid,
        conversation: Option<ConversationKey>,
    ) -> Result<RunPermit> {
        if let Some(key) = &conversation {
            self.stored(self.run_in(key).as_slice()).await;
            let mut busy = self.state.busy.lock();
            if busy.contains_key(key) {
                return Err(AgentError::ConversationLocked { conversation: key.id.clone() });
            }
            busy.insert(key.clone(), run_id);
        }
        let mut permit = RunPermit { slot: None, conversation, state: Arc::clone(&self.state) };
        if let Some(key) = permit.conversation.clone()
            && self.catalog().runs().is_busy_elsewhere(&key).await?
        {
            return Err(AgentError::ConversationLocked { conversation: key.id });
        }
        let config = &self.state.config;
        let slots = self.state.slots.of(who.subject());
        let slot = tokio::time::timeout(config.run_queue_timeout, slots.begin()).await.ok().and_then(Result::ok);
        permit.slot = Some(slot.ok_or(AgentError::TooManyRuns { limit: config.max_concurrent_runs })?);
        Ok(permit)
    }

    /// Returns a stored or running run, the latter with its trace so far; for its owner and administrators only.
    pub async fn get_run(&self, who: &Principal, run_id: Uuid) -> Result<RunRecord> {
        // Looked up before the store is read: a run that ends in between is then returned as stored.
        let running = self.running_run(run_id);
        let stored = self.state.engine.catalog().runs().get(who, run_id).await?;
        let record = match running {
            Some(running) if stored.status == RunStatus::Running => running.handle.snapshot(running.started),
            _ => stored,
        };
        Ok(RunRecord { trace_json: decode_trace(record.trace_json), ..record })
    }

    /// Returns the caller's own runs, or every run for administrators: newest first, without traces.
    pub async fn list_runs(&self, who: &Principal, page: PageRequest) -> Result<Page<RunRecord>> {
        Ok(self.state.engine.catalog().runs().list(who, page).await?)
    }

    /// Stops a running run; its stream still ends with `run_finished`. A finished run stays unchanged. Returns the run
    /// as it is afterwards. Errors: `run_elsewhere`, where another server that shares the catalog has it in progress.
    pub async fn cancel_run(&self, who: &Principal, run_id: Uuid) -> Result<RunRecord> {
        let catalog = self.state.engine.catalog();
        let running = self.running_run(run_id);
        let record = catalog.runs().get(who, run_id).await?;
        let Some(running) = running.filter(|_| record.status == RunStatus::Running) else {
            self.require_here(&record).await?;
            return Ok(record);
        };
        running.handle.stop(StopCause::Cancelled);
        running.handle.ended.cancelled().await;
        self.get_run(who, run_id).await
    }

    /// Refuses new runs, cancels those in progress and waits until their last events are stored and delivered.
    pub async fn shutdown(&self) {
        self.state.tasks.close();
        self.state.closing.cancel();
        let running: Vec<RunningRun> = self.state.running.lock().values().cloned().collect();
        for run in running {
            run.handle.stop(StopCause::Shutdown);
        }
        self.state.tasks.wait().await;
    }

    /// Returns how many runs are in progress.
    pub fn running(&self) -> usize {
        self.state.running.lock().len()
    }

    fn running_run(&self, run_id: Uuid) -> Option<RunningRun> {
        self.state.running.lock().get(&run_id).cloned()
    }

    /// Opens the session of approved calls of tools that write; `None` where there are none, or the caller may not
    /// write.
    async fn writer(&self, principal: &Principal, database: Option<&str>) -> Result<Option<Session>> {
        if !self.state.config.write_tools || principal.role() < Role::Write {
            return Ok(None);
        }
        let session = self.state.engine.session(principal.clone(), self.limits()).through("agent").without_files();
        Ok(Some(session.in_database(database).await?))
    }

    fn limits(&self) -> Limits {
        Limits { wall_clock: self.state.config.run_timeout, memory_bytes: TOOL_MEMORY_BYTES, ..Limits::default() }
    }

    /// Opens the session of a run's tools: it reads as the caller, within the run's own time.
    async fn session(&self, principal: &Principal, database: Option<&str>) -> Result<Session> {
        let session =
            self.state.engine.session(principal.clone(), self.limits()).through("agent").read_only().without_files();
        Ok(session.in_database(database).await?)
    }
}

/// A started run. Where its request says so, dropping `events` before the end cancels the run: its model call and
/// query stop, and it is stored as `cancelled`.
pub struct AgentRun {
    /// UUIDv7.
    pub run_id: Uuid,
    /// Ends after [`EventKind::RunFinished`](crate::EventKind::RunFinished), always.
    pub events: RunEvents,
}

/// One client of a run. When the last one has gone, the run stops, at once or after its linger time.
struct AttachedClient {
    handle: Arc<RunHandle>,
    tasks: TaskTracker,
}

impl AttachedClient {
    fn new(handle: Arc<RunHandle>, tasks: TaskTracker) -> Self {
        handle.attach();
        Self { handle, tasks }
    }
}

impl Drop for AttachedClient {
    fn drop(&mut self) {
        let Some(linger) = self.handle.detach() else { return };
        if linger.is_zero() {
            self.handle.stop(StopCause::ClientGone);
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

/// The right of one run to be in progress, also in its conversation; given back when it is dropped.
struct RunPermit {
    slot: Option<QuerySlot>,
    conversation: Option<ConversationKey>,
    state: Arc<AgentState>,
}

impl Drop for RunPermit {
    fn drop(&mut self) {
        drop(self.slot.take());
        if let Some(key) = &self.conversation {
            self.state.busy.lock().remove(key);
        }
    }
}

/// Gives each item of a request an id that names its run.
fn with_ids(mut items: Value, run_id: Uuid) -> Value {
    for (index, item) in items.as_array_mut().into_iter().flatten().enumerate() {
        let id = format!("{}_{}f{index:03x}", responses::id_prefix(item), run_id.simple());
        if let Some(item) = item.as_object_mut() {
            item.insert("id".to_owned(), json!(id));
        }
    }
    items
}

/// Refuses tools of the client that the model could not tell apart.
fn check_client_tools(request: &RunRequest) -> Result<()> {
    let mut names = HashSet::with_capacity(request.client_tools.len());
    for tool in &request.client_tools {
        if !names.insert(tool.name.as_str()) {
            return Err(AgentError::InvalidRequest { message: format!("two tools are named `{}`", tool.name) });
        }
    }
    let is_ours = |name: &str| tools::known_tool(name).is_some();
    for name in &names {
        if let Some(own) = name.strip_prefix("querent_").filter(|own| is_ours(own) && names.contains(own)) {
            let message = format!("`{name}` is the name of this server's `{own}`, since yours is named so");
            return Err(AgentError::InvalidRequest { message });
        }
    }
    Ok(())
}
