//! `POST /v1/chat/completions`. Nothing is kept, unless a `session_id` names a conversation.

use axum::Extension;
use axum::response::Response;
use http::StatusCode;
use querent_agent::protocols::chat::{ChatCompletionRequest, ChatRenderer, parse_request};
use querent_agent::{Protocol, RunEvents};
use querent_catalog::{ConversationKey, Principal};
use serde_json::Value;

use super::azure::Deployment;
use super::error::OpenAiError;
use super::run::{begin, render_whole, wait_for_start};
use crate::http::request::{ApiCall, QueryBytes, parse_off_runtime};
use crate::http::response::json_response;
use crate::http::stream::event_stream;
use crate::state::AppState;

/// `POST /v1/chat/completions`.
pub(in crate::http) async fn create(
    ApiCall { state, principal }: ApiCall,
    deployment: Option<Extension<Deployment>>,
    QueryBytes(body): QueryBytes,
) -> Result<Response, OpenAiError> {
    let mut request = parse_off_runtime(body, parse_request).await??;
    if let Some(Extension(Deployment(name))) = deployment {
        request.name_model(name);
    }
    let (stream, include_usage) = (request.stream, request.include_usage);
    let events = start(&state, &principal, request, Protocol::Chat).await?;
    Ok(match stream {
        true => event_stream(wait_for_start(events).await?, ChatRenderer::new(include_usage)),
        false => json_response(StatusCode::OK, &completion(events).await?),
    })
}

/// Starts the run.
pub(in crate::http) async fn start(
    state: &AppState,
    principal: &Principal,
    mut request: ChatCompletionRequest,
    protocol: Protocol,
) -> Result<RunEvents, OpenAiError> {
    let conversation = request.session_id.take().map(ConversationKey::shared);
    let (run, items) = request.into_run(protocol);
    let begun = begin(state, principal, run, items, conversation, None).await;
    Ok(begun.map_err(OpenAiError::of_messages)?.1)
}

/// Returns the completion when the run has ended. Errors: a run that failed.
pub(in crate::http) async fn completion(events: RunEvents) -> Result<Value, OpenAiError> {
    let mut renderer = ChatRenderer::new(false);
    let detail = render_whole(events, &mut renderer).await?;
    match renderer.failure() {
        Some((code, message)) => Err(OpenAiError::from_run(code, message, &detail)),
        None => Ok(renderer.completion()),
    }
}
