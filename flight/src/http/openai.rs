//! OpenAI's surface: Responses, Chat Completions, conversations, files and models.

pub(super) mod chat;
pub(super) mod conversations;
mod error;
pub(super) mod files;
pub(super) mod models;
pub(super) mod responses;

pub(super) use error::{OpenAiError, OpenAiErrorParts};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use querent_agent::protocols::responses::InputItem;
use querent_agent::{Continued, EventKind, RunEvents, RunRequest};
use querent_catalog::{ConversationKey, Principal};
use uuid::Uuid;

use super::request::read_body;
use crate::AppState;
use crate::error::ApiError;
pub(super) use crate::http::middleware::json as json_response;

/// Errors from before the handlers (a wrong token, a wrong parameter) in this surface's words too.
pub(super) async fn around(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    match response.extensions_mut().remove::<ApiError>() {
        Some(error) => OpenAiError::from(error).into_response(),
        None => response,
    }
}

/// A request's body: files come inside of it.
pub(super) async fn body_of(state: &AppState, body: Body) -> Result<Bytes, OpenAiError> {
    Ok(read_body(body, state.settings.http.max_query_bytes.0).await?)
}

/// The events of a run that has begun. One that could not begin (its model is not there) is an error before any byte
/// of the answer.
pub(super) async fn begun(mut events: RunEvents) -> Result<RunEvents, OpenAiError> {
    if let Some(EventKind::RunError { code, message, detail_code }) = events.peek().await.map(|event| &event.kind) {
        return Err(OpenAiError::from_run(*code, message, detail_code));
    }
    Ok(events)
}

/// Starts the run that a request leads to, or finds the one that the same decision started before.
async fn begin(
    state: &AppState,
    principal: &Principal,
    run: RunRequest,
    items: Vec<InputItem>,
    conversation: Option<ConversationKey>,
    previous: Option<&str>,
) -> Result<(Uuid, RunEvents), OpenAiError> {
    match state.agent.continue_with(principal, run, items, conversation, previous).await? {
        Continued::Start(run) => {
            let run = state.agent.start(principal, *run).await?;
            tracing::info!(run_id = %run.run_id, "run started");
            Ok((run.run_id, run.events))
        }
        Continued::Replay(run_id) => Ok((run_id, state.agent.events(principal, run_id, 0).await?)),
    }
}
