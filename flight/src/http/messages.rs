//! Anthropic's surface: `POST /v1/messages`, for its client libraries. Their key is a token of the server.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use http::{HeaderName, HeaderValue, StatusCode, header};
use querent_agent::protocols::Renderer;
use querent_agent::protocols::messages::{MessagesRenderer, parse_request};
use querent_agent::protocols::responses::{InputContent, InputItem};
use querent_agent::{EventKind, estimate_tokens};
use serde_json::json;

use super::openai::error::{OpenAiError, OpenAiErrorParts};
use super::openai::run::{begin, wait_for_start};
use crate::error::ApiError;
use crate::http::request::{ApiCall, QueryBytes, RequestId};
use crate::http::response::json_response;
use crate::http::stream::event_stream;
use crate::state::AppState;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// `POST /v1/messages`.
pub(super) async fn create(
    ApiCall { state, principal }: ApiCall,
    QueryBytes(body): QueryBytes,
) -> Result<Response, OpenAiError> {
    let request = parse_request(&body, false)?;
    let is_stream = request.stream;
    let (run, items) = request.into_run();
    let events = begin(&state, &principal, run, items, None, None).await?.1;
    let mut events = wait_for_start(events).await?;
    if is_stream {
        return Ok(event_stream(events, MessagesRenderer::default()));
    }
    let mut renderer = MessagesRenderer::default();
    let mut detail = String::new();
    while let Some(event) = events.next().await {
        if let EventKind::RunError { detail_code, .. } = &event.kind {
            detail.clone_from(detail_code);
        }
        renderer.frame(&event);
    }
    match renderer.failure() {
        Some((code, message)) => Err(OpenAiError::from_run(code, message, &detail)),
        None => Ok(json_response(StatusCode::OK, &renderer.message())),
    }
}

/// `POST /v1/messages/count_tokens`: estimates the tokens of what a request says, without the server's own prompt.
pub(super) async fn count_tokens(
    ApiCall { .. }: ApiCall,
    QueryBytes(body): QueryBytes,
) -> Result<Response, OpenAiError> {
    let request = parse_request(&body, true)?;
    let mut tokens = request.system.as_deref().map_or(0, estimate_tokens);
    tokens += request.tools.iter().map(|tool| estimate_tokens(&json!(tool).to_string())).sum::<usize>();
    tokens += request.items.iter().map(tokens_of).sum::<usize>();
    Ok(json_response(StatusCode::OK, &json!({ "input_tokens": tokens })))
}

fn tokens_of(item: &InputItem) -> usize {
    match item {
        InputItem::Message { content, .. } => content
            .iter()
            .map(|part| match part {
                InputContent::Text(text) => estimate_tokens(text),
                _ => 0,
            })
            .sum(),
        InputItem::FunctionCall { name, arguments, .. } => estimate_tokens(name) + estimate_tokens(arguments),
        InputItem::FunctionCallOutput { output, .. } => estimate_tokens(output),
        _ => 0,
    }
}

/// Takes the key of its clients as a token, and writes all errors as they read them.
pub(super) fn add_layers(router: Router<AppState>, _state: &AppState) -> Router<AppState> {
    router.route_layer(from_fn(render_errors)).route_layer(from_fn(take_key))
}

async fn take_key(mut request: Request, next: Next) -> Response {
    let headers = request.headers_mut();
    if !headers.contains_key(header::AUTHORIZATION)
        && let Some(key) = headers.get(API_KEY).and_then(|key| key.to_str().ok())
        && let Ok(bearer) = HeaderValue::from_str(&format!("Bearer {}", key.trim()))
    {
        headers.insert(header::AUTHORIZATION, bearer);
    }
    next.run(request).await
}

async fn render_errors(request: Request, next: Next) -> Response {
    let request_id = request.extensions().get::<RequestId>().map(|id| id.0.clone());
    let mut response = next.run(request).await;
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        response = OpenAiError::from(error).into_response();
    }
    let Some(OpenAiErrorParts { message, .. }) = response.extensions_mut().remove::<OpenAiErrorParts>() else {
        return response;
    };
    let status = response.status();
    let kind = match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::NOT_FOUND => "not_found_error",
        StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        StatusCode::SERVICE_UNAVAILABLE => "overloaded_error",
        StatusCode::GATEWAY_TIMEOUT => "timeout_error",
        status if status.is_server_error() => "api_error",
        _ => "invalid_request_error",
    };
    let body = json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": request_id });
    let mut rendered = json_response(status, &body);
    for name in [header::RETRY_AFTER, header::WWW_AUTHENTICATE, SHOULD_RETRY] {
        if let Some(value) = response.headers_mut().remove(&name) {
            rendered.headers_mut().insert(name, value);
        }
    }
    rendered
}
