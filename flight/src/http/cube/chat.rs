//! `stream-chat-state` and `abort`. A message starts a run, or joins the one that it started before; a request without a
//! message reads the thread. The stream holds the thread's history, then a cutoff line, then what is new.

use axum::response::{IntoResponse, Response};
use chrono::Utc;
use futures::{FutureExt, StreamExt};
use http::StatusCode;
use querent_agent::models::{ChatMessage, ChatRole};
use querent_agent::protocols::cube::{
    CubeLine, CubeOutput, CubeRenderer, CubeRequest, CubeThread, LateReader, abort_request,
};
use querent_agent::{AgentError, EventKind, OnDisconnect, Protocol, RunEvents, RunRequest, events_of};
use querent_catalog::{
    CatalogError, ConversationAccess, ConversationKey, ConversationRecord, Principal, RunRecord, RunStatus,
};
use serde_json::json;
use uuid::Uuid;

use super::caller::ThreadCall;
use super::lines::ThreadLines;
use super::surface::CubeSurface;
use crate::error::{ApiError, ErrorCode};
use crate::state::AppState;

/// The most runs of a thread that are shown, and the most bytes of their logs that are read.
const MAX_RUNS: usize = 100;
const MAX_LOG_BYTES: usize = 16 << 20;

/// `POST .../chat/stream-chat-state`.
pub(in crate::http) async fn stream(call: ThreadCall) -> Result<Response, ApiError> {
    let ThreadCall { state, surface, caller, space, body } = call;
    let mut request = CubeRequest::parse(&body)?;
    let who = caller.user(&state, request.session.take()).await?;
    let is_named = request.chat_id.is_some();
    let id = request.chat_id.take().unwrap_or_else(|| Uuid::new_v4().to_string());
    let reader = ThreadReader { state, who, key: ConversationKey { space, id }, shows_thinking: request.is_dev_mode };
    let lines = match request.input.take() {
        Some(input) => reader.ask(&surface, input, request).await?,
        None if is_named => reader.read(&reader.thread().await?).await?,
        None => {
            let new = ConversationRecord::new(reader.key.clone(), reader.who.subject(), Utc::now());
            match reader.state.agent.catalog().conversations().open(&reader.who, &new).await? {
                ConversationAccess::Created(_) | ConversationAccess::Existing(_) => {}
                ConversationAccess::Foreign => return Err(unknown(&reader.key)),
            }
            reader.read(&reader.thread().await?).await?
        }
    };
    Ok(lines.into_response())
}

/// `POST .../chat/abort`. Answers nothing.
pub(in crate::http) async fn abort(call: ThreadCall) -> Result<Response, ApiError> {
    let ThreadCall { state, surface, caller, space, body } = call;
    let (id, session) = abort_request(&body)?;
    let who = caller.user(&state, session).await?;
    let key = ConversationKey { space, id };
    // Once the lock is free, a run that was about to start has started.
    let turn = surface.lock(&key).await;
    let record = state.agent.catalog().conversations().get(&Principal::local_admin(), &key).await?;
    if record.subject != who.subject() {
        return Err(ApiError::new(ErrorCode::Forbidden, format!("chat `{}` belongs to another user", key.id)));
    }
    let last = state.agent.catalog().runs().logs_of_conversation(&who, &key, 1, 0).await?.pop();
    drop(turn);
    if let Some(run) = last.filter(|run| run.status == RunStatus::Running) {
        state.agent.cancel_run(&who, run.run_id).await?;
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// A user and the thread that it reads.
struct ThreadReader {
    state: AppState,
    who: Principal,
    key: ConversationKey,
    shows_thinking: bool,
}

/// A thread's runs: those that have ended, and the one in progress.
struct ThreadRuns {
    ended: Vec<RunRecord>,
    running: Option<Uuid>,
    /// How many runs of the thread were not read.
    unread: u64,
}

impl ThreadReader {
    /// Starts a run with the message, or joins the one that the message started before.
    async fn ask(&self, surface: &CubeSurface, input: String, request: CubeRequest) -> Result<ThreadLines, ApiError> {
        let turn = surface.lock(&self.key).await;
        self.state.agent.settle(&self.key).await;
        let runs = match self.thread().await {
            Ok(runs) => runs,
            // The client chose the id of a new thread.
            Err(error) if error.code() == ErrorCode::ConversationNotFound => {
                ThreadRuns { ended: Vec::new(), running: None, unread: 0 }
            }
            Err(error) => return Err(error),
        };
        if let Some(message_id) = &request.message_id
            && let Some(run) = self.run_of(message_id).await?
        {
            let is_known =
                run.status == RunStatus::Running || has_begun(&self.state.agent.get_run(&self.who, run.run_id).await?)?;
            if is_known {
                return self.read(&runs).await;
            }
        }
        if runs.running.is_some() {
            return Err(in_progress());
        }
        let thread = CubeThread::from_runs(&runs.ended)?;
        let message_id = request.message_id.unwrap_or_else(|| format!("{}-message", Utc::now().timestamp_millis()));
        let sort = thread.next_sort();
        let mut run = RunRequest {
            include_thinking: request.is_dev_mode,
            bad_branch: request.bad_branch,
            invocation_id: Some(message_id),
            on_disconnect: OnDisconnect::KeepRunning,
            echo: json!({ "sort": sort }),
            ..RunRequest::new(Protocol::Cube, vec![ChatMessage::text(ChatRole::User, input.trim())])
        };
        let agent = &self.state.agent;
        agent.continue_conversation(&self.who, &mut run, self.key.clone()).await?;
        let run = agent.start(&self.who, run).await.map_err(|error| match error {
            AgentError::ConversationLocked { .. } => in_progress(),
            error => error.into(),
        })?;
        drop(turn);
        tracing::info!(run_id = %run.run_id, "run started");
        let events = wait_for_start(run.events).await?;
        let mut first: Vec<CubeOutput> = thread.lines().collect();
        first.push(CubeLine::cutoff(&self.key.id, true, runs.omitted(&thread), sort as f64).into());
        let renderer = CubeRenderer::new(thread.messages().to_vec());
        Ok(ThreadLines { first, live: Some((events, renderer)), shows_thinking: self.shows_thinking })
    }

    /// Returns the thread, and the events to come if a run is in progress.
    async fn read(&self, runs: &ThreadRuns) -> Result<ThreadLines, ApiError> {
        let thread = CubeThread::from_runs(&runs.ended)?;
        let omitted = runs.omitted(&thread);
        let mut first: Vec<CubeOutput> = thread.lines().collect();
        let Some(run_id) = runs.running else {
            let sort = thread.next_sort() as f64;
            first.push(CubeLine::cutoff(&self.key.id, false, omitted, sort).into());
            first.push(CubeLine::state(thread.messages(), sort + 1.0).into());
            return Ok(ThreadLines { first, live: None, shows_thinking: self.shows_thinking });
        };
        let mut events = wait_for_start(self.state.agent.events(&self.who, run_id, 0).await?).await?;
        let mut joining = LateReader::new(thread.messages().to_vec());
        let mut has_ended = false;
        while let Some(next) = events.next().now_or_never() {
            match next {
                Some(event) => joining.replay(&event),
                None => {
                    has_ended = true;
                    break;
                }
            }
        }
        let now = joining.snapshot();
        first.extend(now.lines);
        first.push(CubeLine::cutoff(&self.key.id, !has_ended, omitted, now.cutoff_sort).into());
        first.extend(now.end);
        let live = (!has_ended).then_some((events, now.renderer));
        Ok(ThreadLines { first, live, shows_thinking: self.shows_thinking })
    }

    /// Returns the thread's runs. Errors: `conversation_not_found`.
    async fn thread(&self) -> Result<ThreadRuns, ApiError> {
        let catalog = self.state.agent.catalog();
        let record = catalog.conversations().get(&Principal::local_admin(), &self.key).await?;
        if record.subject != self.who.subject() {
            // An id that the client chose may also be another user's; the caller must not learn that it exists.
            return Err(foreign(&self.key));
        }
        let mut ended = catalog.runs().logs_of_conversation(&self.who, &self.key, MAX_RUNS, MAX_LOG_BYTES).await?;
        let unread = record.run_count.saturating_sub(ended.len() as u64);
        let running = ended.pop_if(|run| run.status == RunStatus::Running).map(|run| run.run_id);
        Ok(ThreadRuns { ended, running, unread })
    }

    /// Returns the run that a message of the thread started.
    async fn run_of(&self, message_id: &str) -> Result<Option<RunRecord>, ApiError> {
        Ok(self.state.agent.catalog().runs().of_invocation_in_conversation(&self.who, &self.key, message_id).await?)
    }
}

impl ThreadRuns {
    /// Returns how many runs `thread` does not show.
    fn omitted(&self, thread: &CubeThread) -> u64 {
        self.unread + (self.ended.len() as u64).saturating_sub(thread.shown_runs())
    }
}

/// Whether a run began. One that did not may be started again by the same message.
fn has_begun(run: &RunRecord) -> Result<bool, ApiError> {
    Ok(events_of(run)?.iter().any(|event| matches!(event.kind, EventKind::RunStarted(_))))
}

/// Waits for the first event of a run, so that one whose model is unavailable fails before any byte of the answer.
async fn wait_for_start(mut events: RunEvents) -> Result<RunEvents, ApiError> {
    if let Some(EventKind::RunError { message, .. }) = events.peek().await.map(|event| &event.kind) {
        return Err(ApiError::new(ErrorCode::ModelFailed, message.clone()));
    }
    Ok(events)
}

fn in_progress() -> ApiError {
    ApiError::new(ErrorCode::ConversationLocked, "Streaming for thread is in progress")
}

fn unknown(key: &ConversationKey) -> ApiError {
    CatalogError::ConversationNotFound { id: key.id.clone() }.into()
}

/// Returns an error with the message of [`unknown`], but with a code that does not mean that the id is free.
fn foreign(key: &ConversationKey) -> ApiError {
    ApiError::new(ErrorCode::NotFound, unknown(key).message())
}
