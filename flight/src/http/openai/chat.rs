//! `POST /v1/chat/completions`. Nothing of it is kept, unless a `session_id` names a conversation.

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use futures::StreamExt;
use http::StatusCode;
use querent_agent::protocols::Renderer;
use querent_agent::protocols::chat::{ChatCompletionRequest, ChatRenderer, parse_request};
use querent_agent::{Continued, EventKind, Protocol, RunRequest};
use querent_catalog::{ConversationKey, Principal};
use serde_json::Value;

use super::super::stream::event_stream;
use super::{Events, OpenAiError, begun, body_of, json_response};
use crate::AppState;

/// `POST /v1/chat/completions`.
pub(in crate::http) async fn create(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    body: Body,
) -> Result<Response, OpenAiError> {
    let body = body_of(&state, body).await?;
    let request = parse_request(&body)?;
    let (stream, include_usage) = (request.stream, request.include_usage);
    let events = start(&state, &principal, request, Protocol::Chat).await?;
    if stream {
        return Ok(event_stream(begun(events).await?, ChatRenderer::new(include_usage)));
    }
    Ok(json_response(StatusCode::OK, &whole(events).await?))
}

/// Begins the run.
pub(in crate::http) async fn start(
    state: &AppState,
    principal: &Principal,
    request: ChatCompletionRequest,
    protocol: Protocol,
) -> Result<Events, OpenAiError> {
    let run = RunRequest {
        include_thinking: request.include_thinking,
        model: request.model,
        client_tools: request.tools,
        tool_choice: request.tool_choice,
        answer_schema: request.answer_schema,
        max_output_tokens: request.max_output_tokens,
        echo: request.echo,
        ..RunRequest::new(protocol, Vec::new())
    };
    let conversation = request.session_id.map(|id| ConversationKey { space: String::new(), id });
    match state.agent.continue_with(principal, run, request.items, conversation, None).await? {
        Continued::Start(run) => {
            let run = state.agent.start(principal, *run).await?;
            tracing::info!(run_id = %run.run_id, "run started");
            Ok(run.events)
        }
        Continued::Replay(run_id) => Ok(state.agent.events(principal, run_id, 0).await?),
    }
}

/// The completion once it is done. Errors: a run that failed.
pub(in crate::http) async fn whole(events: Events) -> Result<Value, OpenAiError> {
    let mut events = begun(events).await?;
    let mut renderer = ChatRenderer::new(false);
    let mut detail = String::new();
    while let Some(event) = events.next().await {
        if let EventKind::RunError { detail_code, .. } = &event.kind {
            detail.clone_from(detail_code);
        }
        renderer.frame(&event);
    }
    match renderer.failure() {
        Some((code, message)) => Err(OpenAiError::of_run(code, message, &detail)),
        None => Ok(renderer.completion()),
    }
}
