//! ADK's API server: `/run_sse`, `/run`, sessions, and what its clients ask about the server itself. An application's
//! name is whatever its client calls this agent. A session's state and events are its owner's; a run ends when its
//! client goes away, as ADK's own does.

mod sessions;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use chrono::Utc;
use futures::StreamExt;
use http::StatusCode;
use querent_agent::protocols::Renderer;
use querent_agent::protocols::adk::{AdkRenderer, AdkRequest, AdkView, parse_request};
use querent_agent::{Continued, Protocol, RunEvents, RunRequest};
use querent_catalog::{
    CatalogError, ConversationAccess, ConversationChange, ConversationKey, ConversationRecord, Principal,
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::ksadk::title_of;
use super::openai::models::AGENT;
use super::openai::{OpenAiError, begun, body_of, json_response};
use super::stream::event_stream;
use crate::AppState;
use crate::error::ErrorCode;

/// A session's state.
const MAX_STATE_BYTES: usize = 1 << 20;
/// Keys that begin so are of one run and are not kept.
const OF_ONE_RUN: &str = "temp:";

/// ADK's routes.
pub(super) fn routes() -> Router<AppState> {
    const SESSIONS: &str = "/apps/{app}/users/{user}/sessions";
    const SESSION: &str = "/apps/{app}/users/{user}/sessions/{session}";
    Router::new()
        .route("/run_sse", post(run_sse))
        .route("/run", post(run))
        .route("/list-apps", get(list_apps))
        .route("/version", get(version))
        .route(SESSIONS, get(sessions::list).post(sessions::create))
        .route(SESSION, get(sessions::get).post(sessions::create_named).patch(sessions::patch).delete(sessions::remove))
        .route("/apps/{app}/eval_sets", get(nothing))
        .route("/apps/{app}/eval_results", get(nothing))
        .route("/debug/trace/session/{session}", get(nothing))
}

async fn list_apps() -> Response {
    json_response(StatusCode::OK, &json!([AGENT]))
}

async fn version() -> Response {
    let version = env!("CARGO_PKG_VERSION");
    json_response(StatusCode::OK, &json!({ "version": version, "language": "rust", "language_version": "" }))
}

/// What ADK's web interface asks for and this server does not have.
async fn nothing() -> Response {
    json_response(StatusCode::OK, &json!([]))
}

async fn run_sse(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    body: Body,
) -> Result<Response, OpenAiError> {
    let request = parse_request(&body_of(&state, body).await?)?;
    let view = if request.streaming { AdkView::Streaming } else { AdkView::Whole };
    let events = start(&state, &principal, request).await?;
    Ok(event_stream(begun(events).await?, AdkRenderer::new(view)))
}

/// The whole events as one list. Errors: a run that failed.
async fn run(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    body: Body,
) -> Result<Response, OpenAiError> {
    let request = parse_request(&body_of(&state, body).await?)?;
    let mut events = begun(start(&state, &principal, request).await?).await?;
    let mut renderer = AdkRenderer::new(AdkView::Whole);
    let mut frames = Vec::new();
    while let Some(event) = events.next().await {
        frames.extend(renderer.frame(&event).into_iter().map(|frame| frame.data));
    }
    if let Some((code, message, detail_code)) = renderer.failure() {
        return Err(OpenAiError::from_run(code, message, detail_code));
    }
    let list: Vec<Value> = frames.iter().filter_map(|frame| serde_json::from_str(frame).ok()).collect();
    Ok(json_response(StatusCode::OK, &json!(list)))
}

async fn start(state: &AppState, principal: &Principal, request: AdkRequest) -> Result<RunEvents, OpenAiError> {
    let AdkRequest { app_name, user_id, session_id, items, state_delta, invocation_id, .. } = request;
    let scope = AdkScope { app: app_name, user: user_id };
    let session = match session_id {
        Some(id) if state.settings.agent.adk_strict_sessions => scope.session(state, principal, &id).await?,
        id => scope.open(state, principal, id.unwrap_or_else(new_session_id), &title_of(&items), Map::new()).await?.0,
    };
    let invocation_id = invocation_id.unwrap_or_else(|| format!("e-{}", Uuid::now_v7()));
    let run = RunRequest {
        include_thinking: request.include_thinking,
        model: request.model,
        client_tools: request.tools,
        can_approve: true,
        invocation_id: Some(invocation_id),
        retained: true,
        echo: request.echo,
        ..RunRequest::new(Protocol::Adk, Vec::new())
    };
    match state.agent.continue_with(principal, run, items, Some(session.key.clone()), None).await? {
        Continued::Start(run) => {
            merge_state(state, principal, &session, state_delta).await?;
            let run = state.agent.start(principal, *run).await?;
            tracing::info!(run_id = %run.run_id, "run started");
            Ok(run.events)
        }
        Continued::Replay(run_id) => Ok(state.agent.events(principal, run_id, 0).await?),
    }
}

fn new_session_id() -> String {
    Uuid::now_v7().to_string()
}

/// Where a session is: ids are unique to a user of an application's.
struct AdkScope {
    app: String,
    user: String,
}

impl AdkScope {
    fn space(&self) -> String {
        format!("adk/{}", self.user)
    }

    fn key(&self, id: &str) -> ConversationKey {
        ConversationKey { space: self.space(), id: id.to_owned() }
    }

    /// A session that is there. Errors: `conversation_not_found`, also where it is another's.
    async fn session(
        &self,
        state: &AppState,
        principal: &Principal,
        id: &str,
    ) -> Result<ConversationRecord, OpenAiError> {
        let record = state.agent.catalog().conversations().get(principal, &self.key(id)).await?;
        if record.app == self.app { Ok(record) } else { Err(unknown(id)) }
    }

    /// A session, made if it is not there, and whether it was made. Errors: `conversation_not_found` where it is
    /// another's.
    async fn open(
        &self,
        state: &AppState,
        principal: &Principal,
        id: String,
        title: &str,
        with: Map<String, Value>,
    ) -> Result<(ConversationRecord, bool), OpenAiError> {
        let record = ConversationRecord {
            app: self.app.clone(),
            user_id: self.user.clone(),
            title: title.to_owned(),
            state_json: merged("{}", with)?,
            ..ConversationRecord::new(self.key(&id), principal.subject(), Utc::now())
        };
        match state.agent.catalog().conversations().open(principal, &record).await? {
            ConversationAccess::Created(record) => Ok((record, true)),
            ConversationAccess::Existing(record) if record.app == self.app => Ok((record, false)),
            ConversationAccess::Existing(_) | ConversationAccess::Foreign => Err(unknown(&id)),
        }
    }
}

fn unknown(id: &str) -> OpenAiError {
    CatalogError::ConversationNotFound { id: id.to_owned() }.into()
}

/// Merges `delta` into a session's state; the session as it is then.
async fn merge_state(
    state: &AppState,
    principal: &Principal,
    session: &ConversationRecord,
    delta: Map<String, Value>,
) -> Result<ConversationRecord, OpenAiError> {
    if delta.is_empty() {
        return Ok(session.clone());
    }
    let state_json = merged(&session.state_json, delta)?;
    let change = ConversationChange { state_json: Some(state_json), ..ConversationChange::default() };
    Ok(state.agent.catalog().conversations().update(principal, &session.key, &change).await?)
}

fn merged(state_json: &str, delta: Map<String, Value>) -> Result<String, OpenAiError> {
    let mut merged: Map<String, Value> = serde_json::from_str(state_json).unwrap_or_default();
    merged.extend(delta.into_iter().filter(|(key, _)| !key.starts_with(OF_ONE_RUN)));
    let text = Value::Object(merged).to_string();
    if text.len() > MAX_STATE_BYTES {
        let message = format!("the session's state would be {} bytes; at most {MAX_STATE_BYTES} are kept", text.len());
        return Err(OpenAiError::bad_request(ErrorCode::StateTooLarge, "stateDelta", message));
    }
    Ok(text)
}
