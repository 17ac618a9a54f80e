//! ADK's API server: `/run_sse`, `/run`, sessions, and what its clients ask about the server itself. An application's
//! name is whatever its client calls this agent. A session's state and events belong to its owner; a run ends when its
//! client goes away, as it does in ADK's own server.

mod scope;
pub(super) mod sessions;
mod shared_state;

use axum::response::Response;
use futures::StreamExt;
use http::StatusCode;
use querent_agent::protocols::Renderer;
use querent_agent::protocols::adk::{AdkRenderer, AdkRequest, AdkView, parse_request};
use querent_agent::{Continued, Protocol, RunEvents, RunRequest};
use querent_catalog::Principal;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::http::openai::error::OpenAiError;
use crate::http::openai::models::AGENT;
use crate::http::openai::run::{title_of_items, wait_for_start};
use crate::http::request::{ApiCall, Params, QueryBytes, parse_off_runtime};
use crate::http::response::json_response;
use crate::http::stream::event_stream;
use crate::state::AppState;
use scope::{AdkScope, check_state, merge_state, new_session_id};

/// The field that says what is asked.
const MESSAGE: &str = "newMessage";

/// How `GET /list-apps` is to be answered.
#[derive(Debug, Deserialize)]
pub(super) struct ListAppsParams {
    #[serde(default)]
    detailed: bool,
}

/// `GET /list-apps`: the agent's name, or what ADK's web interface shows of an application.
pub(super) async fn list_apps(Params(params): Params<ListAppsParams>) -> Response {
    if !params.detailed {
        return json_response(StatusCode::OK, &json!([AGENT]));
    }
    let app = json!({
        "name": AGENT,
        "rootAgentName": AGENT,
        "description": "Answers questions about the tables of this server.",
        "language": "rust",
        "isComputerUse": false,
    });
    json_response(StatusCode::OK, &json!({ "apps": [app] }))
}

pub(super) async fn version() -> Response {
    let version = env!("CARGO_PKG_VERSION");
    json_response(StatusCode::OK, &json!({ "version": version, "language": "rust", "language_version": "" }))
}

/// Answers routes that ADK's web interface asks for and that have no counterpart here.
pub(super) async fn empty_list() -> Response {
    json_response(StatusCode::OK, &json!([]))
}

pub(super) async fn run_sse(
    ApiCall { state, principal }: ApiCall,
    QueryBytes(body): QueryBytes,
) -> Result<Response, OpenAiError> {
    let request = parse_off_runtime(body, parse_request).await??;
    let view = if request.streaming { AdkView::Streaming } else { AdkView::Whole };
    let events = start(&state, &principal, request).await?;
    Ok(event_stream(events, AdkRenderer::new(view)))
}

/// Answers with all events as one list once the run has ended. Errors: a run that failed.
pub(super) async fn run(
    ApiCall { state, principal }: ApiCall,
    QueryBytes(body): QueryBytes,
) -> Result<Response, OpenAiError> {
    let request = parse_off_runtime(body, parse_request).await??;
    let mut events = start(&state, &principal, request).await?;
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

/// Starts the run of a request. What it adds to its session's state is kept once the run has begun: a request that is
/// refused changes nothing, and leaves no session that it would have begun.
async fn start(state: &AppState, principal: &Principal, request: AdkRequest) -> Result<RunEvents, OpenAiError> {
    let AdkRequest { app_name, user_id, session_id, items, state_delta, invocation_id, .. } = request;
    let scope = AdkScope { app: app_name, user: user_id };
    let (session, is_new) = match session_id {
        Some(id) if state.settings.agent.adk_strict_sessions => (scope.session(state, principal, &id).await?, false),
        id => {
            let id = id.unwrap_or_else(new_session_id);
            scope.open(state, principal, id, &title_of_items(&items), Map::new()).await?
        }
    };
    let invocation_id = invocation_id.unwrap_or_else(|| format!("e-{}", Uuid::now_v7()));
    let run = RunRequest {
        include_thinking: request.include_thinking,
        model: request.model,
        client_tools: request.tools,
        can_approve: true,
        invocation_id: Some(invocation_id),
        retained: true,
        creates_conversation: is_new,
        echo: request.echo,
        ..RunRequest::new(Protocol::Adk, Vec::new())
    };
    let continued = state.agent.continue_with(principal, run, items, Some(session.key.clone()), None).await;
    match continued.map_err(|error| OpenAiError::from(error).of_input(MESSAGE))? {
        Continued::Start(run) => {
            if let Err(refused) = check_state(state, principal, &session, &state_delta).await {
                state.agent.give_up(principal, &run).await;
                return Err(refused);
            }
            let started = state.agent.start(principal, *run).await;
            let run = started.map_err(|error| OpenAiError::from(error).of_input(MESSAGE))?;
            tracing::info!(run_id = %run.run_id, "run started");
            let events = wait_for_start(run.events).await?;
            merge_state(state, principal, &session, state_delta).await?;
            Ok(events)
        }
        Continued::Replay(run_id) => wait_for_start(state.agent.events(principal, run_id, 0).await?).await,
    }
}
