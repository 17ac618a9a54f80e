//! KsADK's actions, `/agentengine/api/v1/*`: each answers with one envelope, `{Code, Message, RequestId, Action, Data}`,
//! or with a stream. A session is one of the conversations that `/v1/conversations` shows too.

pub(super) mod sessions;

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use axum::routing::{any, get, post};
use axum::{Extension, Router};
use chrono::Utc;
use http::{StatusCode, Uri, header};
use querent_agent::protocols::chat::ChatRenderer;
use querent_agent::protocols::ksadk::{Action, ApiFormat, RunAgentRequest, SessionEventRenderer, parse_run_agent};
use querent_agent::protocols::responses::{InputContent, InputItem, ResponsesDialect, ResponsesRenderer};
use querent_agent::{Continued, OnDisconnect, Protocol, RunEvents, RunRequest, conversation_title};
use querent_catalog::{
    CatalogError, ConversationAccess, ConversationChange, ConversationKey, ConversationRecord, Principal, RunRecord,
    RunStatus,
};
use serde::Deserialize;
use serde_json::{Value, json};
use url::form_urlencoded;
use uuid::Uuid;

use super::openai::{self, OpenAiError, OpenAiErrorParts, begun, body_of, chat, files, json_response, responses};
use super::request::{Params, PathText};
use super::stream::event_stream;
use crate::AppState;
use crate::error::ErrorCode;
use crate::http::middleware::RequestId;

/// A subscriber that wants more asks again.
const SUBSCRIPTION: Duration = Duration::from_secs(300);
const BASE: &str = "/agentengine/api/v1/";
/// Actions of KsADK that have no counterpart here.
const NOT_SUPPORTED: [&str; 12] = [
    "AddWorkspaceFile",
    "DeleteResponseFeedback",
    "DeleteWorkspaceFile",
    "ExportWorkspaceZip",
    "GetCheckpointResumePreview",
    "GetResponseFeedback",
    "GetWorkspaceFileContent",
    "ListSessionCheckpoints",
    "ListToolReceipts",
    "ListWorkspaceFiles",
    "ResumeRun",
    "UpsertResponseFeedback",
];

/// KsADK's routes.
pub(super) fn routes() -> Router<AppState> {
    let action = |name: &str| format!("{BASE}{name}");
    Router::new()
        .route(&action("RunAgent"), post(run_agent))
        .route(&action("CancelRun"), post(cancel_run))
        .route(&action("SubscribeRunEvents"), get(subscribe))
        .route(&action("GetAgentUiBootstrap"), post(sessions::bootstrap))
        .route(&action("CreateSession"), post(sessions::create))
        .route(&action("ListSessions"), post(sessions::list))
        .route(&action("GetSession"), post(sessions::get))
        .route(&action("DeleteSession"), post(sessions::remove))
        .route(&action("ListSessionEvents"), post(sessions::events))
        .route(&action("ListSessionMessages"), post(sessions::messages))
        .route(&action("ListAgentModels"), post(sessions::models))
        .route(&action("UploadFile"), post(sessions::upload))
        .route(&action("AttachmentContent"), get(attachment))
        .route(&action("{*action}"), any(not_here))
}

/// Errors are in the envelope too: KsADK's client reads its `Message`, and the others theirs beside it.
pub(super) async fn around(request: Request, next: Next) -> Response {
    let id = request.extensions().get::<RequestId>().cloned();
    let action = request.uri().path().trim_start_matches(BASE).to_owned();
    let mut response = openai::around(request, next).await;
    let (Some(id), Some(said)) = (id, response.extensions_mut().remove::<OpenAiErrorParts>()) else { return response };
    let (mut parts, _) = response.into_parts();
    let mut body = json!({
        "Code": parts.status.as_u16(),
        "Message": said.message,
        "RequestId": envelope_id(&id),
        "Action": action,
        "Data": null,
        "Error": { "Code": said.code, "Message": said.message },
    });
    if let (Value::Object(body), Value::Object(own)) = (&mut body, said.body) {
        body.extend(own);
    }
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(body.to_string()))
}

fn envelope_id(id: &RequestId) -> String {
    format!("req-{}", id.0)
}

/// Every other action.
async fn not_here(uri: Uri) -> OpenAiError {
    let action = uri.path().trim_start_matches(BASE);
    if NOT_SUPPORTED.contains(&action) {
        let message = format!("`{action}` is not supported: this server keeps no checkpoints, feedback and workspaces");
        return OpenAiError::not_supported(ErrorCode::ActionNotSupported, message);
    }
    OpenAiError::not_found(ErrorCode::NotFound, format!("there is nothing at {}: no action `{action}`", uri.path()))
}

#[derive(Debug, Deserialize)]
struct AttachmentParams {
    #[serde(rename = "FileUri")]
    file_uri: String,
}

/// An uploaded file again.
async fn attachment(
    state: State<AppState>,
    principal: Extension<Principal>,
    Params(params): Params<AttachmentParams>,
) -> Result<Response, OpenAiError> {
    files::content(state, principal, PathText(params.file_uri)).await
}

/// The envelope of an action's data.
fn envelope(id: &RequestId, action: &str, data: &Value) -> Response {
    let body = json!({
        "Code": 0,
        "Message": "Success",
        "RequestId": envelope_id(id),
        "Action": action,
        "Data": data,
    });
    json_response(StatusCode::OK, &body)
}

async fn action_of(state: &AppState, body: Body) -> Result<Action, OpenAiError> {
    Ok(Action::parse(&body_of(state, body).await?)?)
}

async fn run_agent(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    Extension(request_id): Extension<RequestId>,
    body: Body,
) -> Result<Response, OpenAiError> {
    let request = parse_run_agent(&body_of(&state, body).await?)?;
    let (stream, background) = (request.stream, request.background);
    let is_chat = matches!(request.format, ApiFormat::Chat(_));
    let started = start(&state, &principal, request).await?;
    if background {
        // Its first event is there: what keeps a run from beginning is an error of this request.
        drop(begun(started.events).await?);
        let (session, invocation) = (started.session_id.unwrap_or_default(), started.invocation_id);
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("SessionId", &session)
            .append_pair("InvocationId", &invocation)
            .finish();
        let data = json!({
            "SessionId": session,
            "InvocationId": invocation,
            "Status": "running",
            "Background": true,
            "SubscribeUrl": format!("{BASE}SubscribeRunEvents?{query}"),
        });
        return Ok(envelope(&request_id, "RunAgent", &data));
    }
    match (stream, is_chat) {
        (true, true) => Ok(event_stream(begun(started.events).await?, ChatRenderer::new(true))),
        (true, false) => {
            Ok(event_stream(begun(started.events).await?, ResponsesRenderer::new(ResponsesDialect::KsAdk)))
        }
        (false, true) => Ok(envelope(&request_id, "RunAgent", &chat::whole(started.events).await?)),
        (false, false) => {
            let response = responses::whole(started.events, ResponsesDialect::KsAdk).await?;
            Ok(envelope(&request_id, "RunAgent", &response))
        }
    }
}

/// A run that has begun, or that the same decision began before.
struct StartedRun {
    session_id: Option<String>,
    invocation_id: String,
    events: RunEvents,
}

async fn start(state: &AppState, principal: &Principal, request: RunAgentRequest) -> Result<StartedRun, OpenAiError> {
    let RunAgentRequest { agent_id, user_id, session_id, invocation_id, format, .. } = request;
    let invocation_id = invocation_id.unwrap_or_else(|| format!("inv-{}", Uuid::now_v7().simple()));
    let (run, items, previous) = match format {
        ApiFormat::Responses(mut asked) => {
            let previous = asked.previous_response_id.take();
            let (run, items) = asked.into_run(Protocol::KsAdk);
            (run, items, previous)
        }
        ApiFormat::Chat(asked) => {
            let (run, items) = asked.into_run(Protocol::KsAdk);
            (run, items, None)
        }
    };
    let run = RunRequest {
        invocation_id: Some(invocation_id.clone()),
        retained: true,
        on_disconnect: OnDisconnect::KeepRunning,
        ..run
    };
    let goes_on = previous.is_some() || items.iter().any(is_decision);
    let session_id = session_id.or_else(|| (!goes_on).then(new_session_id));
    let conversation = match session_id {
        Some(id) => Some(open_session(state, principal, &agent_id, &user_id, id, &title_of(&items)).await?.key),
        None => None,
    };
    match state.agent.continue_with(principal, run, items, conversation, previous.as_deref()).await? {
        Continued::Start(run) => {
            let session_id = run.conversation.as_ref().map(|key| key.id.clone());
            if let Some(key) = &run.conversation {
                let record = state.agent.catalog().conversations().get(principal, key).await?;
                check_scope(&record, &agent_id, &user_id)?;
            }
            let run = state.agent.start(principal, *run).await?;
            tracing::info!(run_id = %run.run_id, "run started");
            Ok(StartedRun { session_id, invocation_id, events: run.events })
        }
        Continued::Replay(run_id) => {
            let run = state.agent.get_run(principal, run_id).await?;
            let events = state.agent.events(principal, run_id, 0).await?;
            let session_id = run.conversation.map(|key| key.id);
            Ok(StartedRun { session_id, invocation_id: run.invocation_id.unwrap_or(invocation_id), events })
        }
    }
}

fn is_decision(item: &InputItem) -> bool {
    matches!(item, InputItem::ApprovalResponse { .. } | InputItem::FunctionCallOutput { .. })
}

pub(super) fn title_of(items: &[InputItem]) -> String {
    let words = items.iter().rev().find_map(|item| match item {
        InputItem::Message { content, .. } => content.iter().find_map(|part| match part {
            InputContent::Text(text) => Some(text),
            _ => None,
        }),
        _ => None,
    });
    conversation_title(words.map(String::as_str).unwrap_or_default())
}

fn new_session_id() -> String {
    format!("session-{}", Uuid::now_v7().simple())
}

/// The session of that name, made if it is not there. Errors: `session_conflict` where it is another agent's, user's
/// or caller's.
async fn open_session(
    state: &AppState,
    principal: &Principal,
    agent_id: &str,
    user_id: &str,
    id: String,
    title: &str,
) -> Result<ConversationRecord, OpenAiError> {
    let record = ConversationRecord {
        app: agent_id.to_owned(),
        user_id: user_id.to_owned(),
        title: title.to_owned(),
        ..ConversationRecord::new(ConversationKey::shared(&id), principal.subject(), Utc::now())
    };
    match state.agent.catalog().conversations().open(principal, &record).await? {
        ConversationAccess::Created(record) => Ok(record),
        ConversationAccess::Existing(record) => {
            check_scope(&record, agent_id, user_id)?;
            if !record.title.is_empty() || title.is_empty() {
                return Ok(record);
            }
            let change = ConversationChange { title: Some(title.to_owned()), ..ConversationChange::default() };
            Ok(state.agent.catalog().conversations().update(principal, &record.key, &change).await?)
        }
        ConversationAccess::Foreign => Err(in_use(&id)),
    }
}

fn check_scope(record: &ConversationRecord, agent_id: &str, user_id: &str) -> Result<(), OpenAiError> {
    if is_in_scope(record, Some(agent_id), Some(user_id)) { Ok(()) } else { Err(in_use(&record.key.id)) }
}

fn in_use(id: &str) -> OpenAiError {
    OpenAiError::conflict(
        ErrorCode::SessionConflict,
        format!("session `{id}` is another agent's or user's; take another id"),
    )
}

/// Whether a session is the agent's and the user's, as far as they are named. One that another protocol began is
/// anybody's of its owner.
fn is_in_scope(record: &ConversationRecord, agent_id: Option<&str>, user_id: Option<&str>) -> bool {
    let fits = |own: &str, asked: Option<&str>| own.is_empty() || asked.is_none_or(|asked| asked == own);
    fits(&record.app, agent_id) && fits(&record.user_id, user_id)
}

/// The session that an action names. Errors: `conversation_not_found`, also outside of its scope.
async fn scoped_session(
    state: &AppState,
    principal: &Principal,
    id: &str,
    agent_id: Option<&str>,
    user_id: Option<&str>,
) -> Result<ConversationRecord, OpenAiError> {
    let record = state.agent.catalog().conversations().get(principal, &ConversationKey::shared(id)).await?;
    if is_in_scope(&record, agent_id, user_id) {
        return Ok(record);
    }
    Err(CatalogError::ConversationNotFound { id: id.to_owned() }.into())
}

/// The run of an invocation, which must be in the session if one is named. Errors: `invocation_conflict`.
async fn run_of(
    state: &AppState,
    principal: &Principal,
    invocation_id: &str,
    session: Option<&ConversationRecord>,
) -> Result<Option<RunRecord>, OpenAiError> {
    let run = state.agent.catalog().runs().of_invocation(principal, invocation_id).await?;
    if let Some(session) = session
        && run.as_ref().is_none_or(|run| run.conversation.as_ref() != Some(&session.key))
    {
        let message = format!("invocation `{invocation_id}` is not one of session `{}`", session.key.id);
        return Err(OpenAiError::conflict(ErrorCode::InvocationConflict, message));
    }
    Ok(run)
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SubscribeParams {
    session_id: Option<String>,
    invocation_id: Option<String>,
    agent_id: Option<String>,
    user_id: Option<String>,
    after_seq_id: Option<u64>,
}

/// A run's session events: those that were, then those that come, then `[DONE]`.
async fn subscribe(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    Params(params): Params<SubscribeParams>,
) -> Result<Response, OpenAiError> {
    let required = |value: &Option<String>, name: &str| {
        let missing =
            || OpenAiError::bad_request(ErrorCode::MissingRequiredParameter, name, format!("`{name}` is missing"));
        value.clone().filter(|value| !value.is_empty()).ok_or_else(missing)
    };
    let session_id = required(&params.session_id, "SessionId")?;
    let invocation_id = required(&params.invocation_id, "InvocationId")?;
    let (agent, user) = (params.agent_id.as_deref(), params.user_id.as_deref());
    let session = scoped_session(&state, &principal, &session_id, agent, user).await?;
    let Some(run) = run_of(&state, &principal, &invocation_id, Some(&session)).await? else {
        return Err(CatalogError::ConversationNotFound { id: session_id }.into());
    };
    let events = state.agent.events(&principal, run.run_id, 0).await?;
    let events = events.until(tokio::time::sleep(SUBSCRIPTION));
    let after = params.after_seq_id.unwrap_or(0);
    Ok(event_stream(events, SessionEventRenderer::new(session_id, session.created_at, after)))
}

async fn cancel_run(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    Extension(request_id): Extension<RequestId>,
    body: Body,
) -> Result<Response, OpenAiError> {
    let action = action_of(&state, body).await?;
    let invocation_id = action.required("InvocationId")?;
    let (agent, user) = (action.name("AgentId")?, action.name("UserId")?);
    if user.is_some() && agent.is_none() {
        return Err(OpenAiError::bad_request(
            ErrorCode::MissingRequiredParameter,
            "AgentId",
            "`UserId` needs `AgentId`",
        ));
    }
    let session = match action.name("SessionId")? {
        Some(id) => Some(scoped_session(&state, &principal, &id, agent.as_deref(), user.as_deref()).await?),
        None => None,
    };
    let Some(run) = run_of(&state, &principal, &invocation_id, session.as_ref()).await? else {
        let data = json!({
            "Cancelled": false,
            "Found": false,
            "Status": "not_found",
            "RunnerCancelStatus": "not_found",
        });
        return Ok(envelope(&request_id, "CancelRun", &data));
    };
    if let (None, Some(key)) = (&session, &run.conversation) {
        let record = state.agent.catalog().conversations().get(&principal, key).await?;
        if !is_in_scope(&record, agent.as_deref(), user.as_deref()) {
            let message = format!("invocation `{invocation_id}` is another agent's or user's");
            return Err(OpenAiError::conflict(ErrorCode::InvocationConflict, message));
        }
    }
    let was_running = run.status == RunStatus::Running;
    let run = state.agent.cancel_run(&principal, run.run_id).await?;
    let cancelled = was_running && run.status == RunStatus::Cancelled;
    let data = json!({
        "Cancelled": cancelled,
        "Found": true,
        "Status": status_of(run.status),
        "RunnerCancelStatus": if cancelled { "cancelled" } else { "not_running" },
    });
    Ok(envelope(&request_id, "CancelRun", &data))
}

/// How KsADK calls a run's state.
fn status_of(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Running => "in_progress",
        RunStatus::Success => "completed",
        RunStatus::Paused => "interrupted",
        RunStatus::Error | RunStatus::BudgetExceeded => "failed",
        RunStatus::Cancelled => "cancelled",
    }
}
