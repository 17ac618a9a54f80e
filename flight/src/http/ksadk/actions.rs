//! Actions about runs (`RunAgent`, `CancelRun`, `SubscribeRunEvents`), the content of an uploaded file, and the actions
//! that are not supported.

use std::time::Duration;

use axum::Extension;
use axum::response::Response;
use http::Uri;
use querent_agent::protocols::chat::ChatRenderer;
use querent_agent::protocols::ksadk::{ApiFormat, RunAgentRequest, SessionEventRenderer, parse_run_agent};
use querent_agent::protocols::responses::{InputItem, ResponsesDialect, ResponsesRenderer};
use querent_agent::{Continued, OnDisconnect, Protocol, RunEvents, RunRequest};
use querent_catalog::{CatalogError, Principal, RunStatus};
use serde::Deserialize;
use serde_json::json;
use url::form_urlencoded;
use uuid::Uuid;

use super::call::{ActionCall, BASE, envelope};
use super::scope::{
    check_scope, is_in_scope, new_session_id, open_session, run_of_invocation, scoped_session, status_name,
};
use crate::error::ErrorCode;
use crate::http::openai::error::OpenAiError;
use crate::http::openai::run::{title_of_items, wait_for_start};
use crate::http::openai::{chat, files, responses};
use crate::http::request::{ApiCall, Params, PathText, QueryBytes, RequestId, parse_off_runtime};
use crate::http::stream::event_stream;
use crate::state::AppState;

/// How long a subscription lasts; a subscriber may subscribe again.
const SUBSCRIPTION: Duration = Duration::from_secs(300);
/// Actions of KsADK that have no counterpart here.
const NOT_SUPPORTED: [&str; 12] = [
    "AddWorkspaceFile",
    "CompactSession",
    "DeleteWorkspaceFile",
    "ExportWorkspaceZip",
    "GetCheckpointResumePreview",
    "GetWorkspaceFileContent",
    "ListSessionCheckpoints",
    "ListToolReceipts",
    "ListWorkspaceFiles",
    "ResumeRun",
    "SubmitInteraction",
    "SubscribeSessionEvents",
];

/// Answers every other action.
pub(in crate::http) async fn other_action(uri: Uri) -> OpenAiError {
    let action = uri.path().trim_start_matches(BASE);
    if NOT_SUPPORTED.contains(&action) {
        let message = format!(
            "`{action}` is not supported: this server keeps no checkpoints and workspaces; cancel the run, and ask again in its session"
        );
        return OpenAiError::not_supported(ErrorCode::ActionNotSupported, message);
    }
    OpenAiError::not_found(ErrorCode::NotFound, format!("there is nothing at {}: no action `{action}`", uri.path()))
}

#[derive(Debug, Deserialize)]
pub(in crate::http) struct AttachmentParams {
    #[serde(rename = "FileUri")]
    file_uri: String,
}

/// Returns the content of an uploaded file.
pub(in crate::http) async fn attachment(
    call: ApiCall,
    Params(params): Params<AttachmentParams>,
) -> Result<Response, OpenAiError> {
    files::content(call, PathText(params.file_uri)).await
}

pub(in crate::http) async fn run_agent(
    ApiCall { state, principal }: ApiCall,
    Extension(request_id): Extension<RequestId>,
    QueryBytes(body): QueryBytes,
) -> Result<Response, OpenAiError> {
    let request = parse_off_runtime(body, parse_run_agent).await??;
    let (stream, background) = (request.stream, request.background);
    let is_chat = matches!(request.format, ApiFormat::Chat(_));
    let started = start(&state, &principal, request).await?;
    if background {
        // Waiting for the first event makes a run that cannot begin an error of this request.
        drop(wait_for_start(started.events).await?);
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
        (true, true) => Ok(event_stream(wait_for_start(started.events).await?, ChatRenderer::new(true))),
        (true, false) => {
            Ok(event_stream(wait_for_start(started.events).await?, ResponsesRenderer::new(ResponsesDialect::KsAdk)))
        }
        (false, true) => Ok(envelope(&request_id, "RunAgent", &chat::completion(started.events).await?)),
        (false, false) => {
            let response = responses::response_when_done(started.events, ResponsesDialect::KsAdk).await?;
            Ok(envelope(&request_id, "RunAgent", &response))
        }
    }
}

/// A run that was started now, or by the same decision before.
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
    let (conversation, is_new) = match session_id {
        Some(id) => {
            let title = title_of_items(&items);
            let (record, is_new) = open_session(state, principal, &agent_id, &user_id, id, &title).await?;
            (Some(record.key), is_new)
        }
        None => (None, false),
    };
    let run = RunRequest { creates_conversation: is_new, ..run };
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

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(in crate::http) struct SubscribeParams {
    session_id: Option<String>,
    invocation_id: Option<String>,
    agent_id: Option<String>,
    user_id: Option<String>,
    after_seq_id: Option<u64>,
}

/// Streams a run's session events: those so far, then those to come, then `[DONE]`.
pub(in crate::http) async fn subscribe(
    ApiCall { state, principal }: ApiCall,
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
    let Some(run) = run_of_invocation(&state, &principal, &invocation_id, Some(&session)).await? else {
        return Err(CatalogError::ConversationNotFound { id: session_id }.into());
    };
    let events = state.agent.events(&principal, run.run_id, 0).await?;
    let events = events.until(tokio::time::sleep(SUBSCRIPTION));
    let after = params.after_seq_id.unwrap_or(0);
    let renderer = SessionEventRenderer::new(session_id, session.created_at, after).telling_the_end();
    Ok(event_stream(events, renderer))
}

pub(in crate::http) async fn cancel_run(
    ActionCall { state, principal, request_id, action }: ActionCall,
) -> Result<Response, OpenAiError> {
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
    let Some(run) = run_of_invocation(&state, &principal, &invocation_id, session.as_ref()).await? else {
        let data = json!({
            "Cancelled": false,
            "Found": false,
            "Status": "not_found",
            "RunnerCancelStatus": "not_found",
            "RuntimeCancelStatus": "not_found",
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
    // Newer clients read the second name.
    let told = if cancelled { "cancelled" } else { "not_running" };
    let data = json!({
        "Cancelled": cancelled,
        "Found": true,
        "Status": status_name(run.status),
        "RunnerCancelStatus": told,
        "RuntimeCancelStatus": told,
    });
    Ok(envelope(&request_id, "CancelRun", &data))
}
