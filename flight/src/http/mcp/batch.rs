//! Batches of messages, which the revisions before 2025-06-18 have: one event stream with what each message is answered,
//! one after the other. A batch without a request is answered as a notification is.

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::Value;

use super::McpPost;
use crate::error::{ApiError, ErrorCode};
use crate::http::request::header_text;
use crate::mcp::{RpcMessage, refusal};

/// The header with the revision that was agreed on; without it a client may be of one that has batches.
const VERSION: &str = "mcp-protocol-version";
/// The first revision without batches. Revisions are dates.
const WITHOUT_BATCHES: &str = "2025-06-18";
/// The most messages of one batch.
const MAX_MESSAGES: usize = 100;
const EVENTS: &str = "text/event-stream";

/// Refuses a batch as a whole. Errors: `invalid_request`.
pub(super) fn check(headers: &HeaderMap, messages: &[Value]) -> Result<(), ApiError> {
    let invalid = |message: String| Err(ApiError::new(ErrorCode::InvalidRequest, message));
    if header_text(headers, &[VERSION])?.is_some_and(|version| version.as_str() >= WITHOUT_BATCHES) {
        return invalid(
            "the body is a batch, which this revision does not have; send its messages one by one".to_owned(),
        );
    }
    if messages.is_empty() || messages.len() > MAX_MESSAGES {
        return invalid(format!("the body is a batch of {} messages; it may have 1 to {MAX_MESSAGES}", messages.len()));
    }
    if messages.iter().any(|message| message["method"] == "initialize") {
        return invalid("`initialize` is part of a batch; send it alone".to_owned());
    }
    Ok(())
}

/// Answers the messages of a batch that has been checked.
pub(super) async fn answer(call: McpPost, messages: Vec<Value>) -> Response {
    if !messages.iter().any(expects_answer) {
        for message in messages {
            let body = Bytes::from(message.to_string());
            if let Ok(message) = RpcMessage::of(&message) {
                call.answer(message, body).await;
            }
        }
        return StatusCode::ACCEPTED.into_response();
    }
    let events = async_stream::stream! {
        for message in messages {
            let body = Bytes::from(message.to_string());
            let response = match RpcMessage::of(&message) {
                Ok(message) => call.answer(message, body).await,
                Err(error) => error.into_response(),
            };
            let kind = response.headers().get(header::CONTENT_TYPE);
            let is_events = kind.is_some_and(|kind| kind.as_bytes().starts_with(EVENTS.as_bytes()));
            let refused = response.extensions().get::<ApiError>().map(|error| refusal(error, &message["id"]));
            if let Some(error) = refused {
                yield event(error.to_string().as_bytes());
            } else if is_events {
                let mut chunks = response.into_body().into_data_stream();
                while let Some(chunk) = chunks.next().await {
                    yield chunk;
                }
            } else if let Ok(whole) = response.into_body().collect().await {
                // A message of the protocol library's own, or none for a notification.
                let whole = whole.to_bytes();
                if !whole.is_empty() {
                    yield event(&whole);
                }
            }
        }
    };
    let mut response = Response::new(Body::from_stream(events));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// Whether a message is to be answered: a request is, and so is what is no message at all.
fn expects_answer(message: &Value) -> bool {
    match message {
        Value::Object(members) if members.contains_key("method") => members.contains_key("id"),
        // An answer to a request of the server's, of which there are none.
        Value::Object(members) => !(members.contains_key("result") || members.contains_key("error")),
        _ => true,
    }
}

/// Returns a server-sent event with one line of JSON.
fn event(json: &[u8]) -> Result<Bytes, axum::Error> {
    Ok(Bytes::from([b"data: ", json, b"\n\n"].concat()))
}
