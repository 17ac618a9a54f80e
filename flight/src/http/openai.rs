//! OpenAI's surface: Responses, Chat Completions, conversations, files and models.

pub(super) mod chat;
pub(super) mod conversations;
mod error;
pub(super) mod files;
pub(super) mod models;
pub(super) mod responses;

pub(super) use error::{OpenAiError, Said};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use http::{HeaderValue, StatusCode, header};
use querent_agent::{EventKind, RunEvent};
use serde_json::Value;
use std::sync::Arc;

use super::request::read_body;
use crate::AppState;
use crate::error::ApiError;

pub(super) type Events = BoxStream<'static, Arc<RunEvent>>;

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
pub(super) async fn begun(mut events: Events) -> Result<Events, OpenAiError> {
    let first = events.next().await;
    if let Some(EventKind::RunError { code, message, detail_code }) = first.as_ref().map(|event| &event.kind) {
        return Err(OpenAiError::of_run(*code, message, detail_code));
    }
    Ok(stream::iter(first).chain(events).boxed())
}

pub(super) fn json_response(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
