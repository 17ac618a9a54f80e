//! `Idempotency-Key`: a request that starts a run and is sent again, with the same key by the same caller, runs once. Both
//! get the same answer, from its first byte; one that is still being made is followed as it comes.
//!
//! It is inside of what asks who calls: nothing is read or kept of a request whose caller is not known, and an answer is given
//! again to a caller whose token holds now and who can read what the answer's run could read.
//!
//! The answer is read by a task of its own, so that a run with a key goes on when its client has gone, within its budget: the
//! client will ask again. Answers are kept in memory, within a bound and for a while; what is refused is not kept.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, Method};
use querent_catalog::Principal;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::{ApiError, ErrorCode};
use crate::http::arriving::read_body;
use crate::http::continued::EventId;
use crate::http::openai::azure::Deployment;
use crate::state::AppState;

/// Says of an answer that it is not kept: it refuses with a status of success, as JSON-RPC does, or started no run.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct NotKept;

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const MAX_KEY_BYTES: usize = 255;
const ASK: &str = "/v1/agent/ask";
const HOLMES_CHAT: &str = "/api/chat";
/// Routes whose events have ids, by which a client that has a part of them gets what follows.
const CONTINUED: [&str; 2] = [ASK, HOLMES_CHAT];
/// Routes that start runs, by the end of their path.
const ROUTES: [&str; 13] = [
    "/v1/responses",
    "/v1/responses/compact",
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/messages",
    ASK,
    "/agentengine/api/v1/RunAgent",
    "/run_sse",
    "/run",
    "/chat/stream-chat-state",
    HOLMES_CHAT,
    "/ag-ui",
    "/a2a",
];

/// Where a call of one tool starts a run, and what its answer has unless it failed: its status is the same.
const MCP: &str = "/mcp";
const ASK_TOOL: &str = "ask";
const MCP_ANSWERED: &str = "\"isError\":false";

/// Whether a POST to this path, or to a route of this template, may start a run.
pub(in crate::http) fn takes_key(path: &str) -> bool {
    path == MCP || ROUTES.iter().any(|route| path.ends_with(route))
}

/// Answers a request that has a key from what is kept, or keeps its answer.
pub(in crate::http) async fn once(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let is_mcp = request.uri().path() == MCP;
    let is_run = request.method() == Method::POST && takes_key(request.uri().path());
    // A client that has a part of the answer asks for the rest of it, which the run's own log has. An id that names no place
    // of a run takes nothing from the key.
    let is_continued = CONTINUED.iter().any(|route| request.uri().path().ends_with(route));
    let has_part = is_continued && matches!(EventId::of_request(request.headers()), Ok(Some(_)));
    let caller = request.extensions().get::<Principal>().cloned();
    let key = request.headers().get(KEY).cloned().filter(|_| is_run && !has_part);
    let (Some(key), Some(caller)) = (key, caller) else {
        return next.run(request).await;
    };
    if request.headers().get_all(KEY).iter().count() > 1 {
        let message = "Idempotency-Key stands more than once; send one";
        return ApiError::new(ErrorCode::BadHeader, message).into_response();
    }
    if key.is_empty() || key.len() > MAX_KEY_BYTES {
        let message = format!("Idempotency-Key has {} bytes; it may have 1 to {MAX_KEY_BYTES}", key.len());
        return ApiError::new(ErrorCode::BadHeader, message).into_response();
    }
    let (parts, body) = request.into_parts();
    let http = &state.settings.http;
    let body = match read_body(body, http.max_query_bytes.0, http).await {
        Ok(body) => body,
        Err(error) => return error.into_response(),
    };
    if is_mcp && !asks_the_agent(&body) {
        return next.run(Request::from_parts(parts, Body::from(body))).await;
    }
    let subject = caller.subject();
    // Azure's clients name the model in the path, which has become OpenAI's by now.
    let deployment = parts.extensions.get::<Deployment>().map_or("", |Deployment(name)| name.as_str());
    let path = parts.uri.path();
    let name = digest([path.as_bytes(), deployment.as_bytes(), key.as_bytes(), subject.as_bytes()]);
    let body_digest = digest([&body[..]]);
    let reach = state.engine.catalog().policies().reach(&caller);
    let (answer, is_first) = state.idempotent_answers.find_or_make(name, body_digest, subject, reach.clone());
    if !is_first && !answer.is_within(&reach) {
        let message = "the answer of this Idempotency-Key may hold what you may not read now";
        let hint = "ask again with a new key: the question is then answered with the rights that you have";
        return ApiError::new(ErrorCode::RunWithheld, message).with_hint(hint).into_response();
    }
    if answer.body_digest != body_digest {
        let message = "this Idempotency-Key was sent with another body; take a new key for a new request";
        return ApiError::new(ErrorCode::IdempotencyConflict, message).into_response();
    }
    if !is_first {
        if let Some(response) = answer.replay(true).await {
            return response;
        }
        // Not kept: it runs as if it had no key.
        return next.run(Request::from_parts(parts, Body::from(body))).await;
    }
    let awaited = state.idempotent_answers.awaited(name, &answer);
    let response = next.run(Request::from_parts(parts, Body::from(body))).await;
    if !response.status().is_success() || response.extensions().get::<NotKept>().is_some() {
        return response;
    }
    state.shutdown.spawn(awaited.keep(response, is_mcp.then_some(MCP_ANSWERED)));
    match answer.replay(false).await {
        Some(response) => response,
        None => ApiError::new(ErrorCode::Internal, "the answer was lost").into_response(),
    }
}

/// Whether a message of MCP calls the tool that starts a run.
fn asks_the_agent(body: &[u8]) -> bool {
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    message["method"] == "tools/call" && message["params"]["name"] == ASK_TOOL
}

/// Returns the digest of parts, each with its length, so that none passes for another.
fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}
