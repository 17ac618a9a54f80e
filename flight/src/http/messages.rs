//! Anthropic's surface: `POST /v1/messages`, for its client libraries. Their key is a token of the server.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use querent_agent::EventKind;
use querent_agent::protocols::Renderer;
use querent_agent::protocols::messages::{MessagesRenderer, parse_request};
use serde_json::json;

use super::openai::error::{OpenAiError, OpenAiErrorParts};
use super::openai::models::ANTHROPIC_VERSION;
use super::openai::run::{begin, tokens_of, wait_for_start};
use crate::error::{ApiError, ErrorCode, RUN_SERVER};
use crate::http::request::{ApiCall, QueryBytes, RequestId, header_text, parse_off_runtime};
use crate::http::response::json_response;
use crate::http::stream::event_stream;
use crate::state::AppState;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// The header with which clients ask for what is not in the protocol for good.
const BETAS: HeaderName = HeaderName::from_static("anthropic-beta");

/// `POST /v1/messages`.
pub(super) async fn create(
    ApiCall { state, principal }: ApiCall,
    QueryBytes(body): QueryBytes,
) -> Result<Response, OpenAiError> {
    let request = parse_off_runtime(body, |body| parse_request(body, false)).await??;
    let (is_stream, omits_thinking) = (request.stream, request.omits_thinking);
    let (run, items) = request.into_run();
    let events = begin(&state, &principal, run, items, None, None).await?.1;
    let mut events = wait_for_start(events).await?;
    if is_stream {
        return Ok(event_stream(events, MessagesRenderer::new(omits_thinking)));
    }
    let mut renderer = MessagesRenderer::new(omits_thinking);
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
    ApiCall { state, principal }: ApiCall,
    QueryBytes(body): QueryBytes,
) -> Result<Response, OpenAiError> {
    let (run, items) = parse_off_runtime(body, |body| parse_request(body, true)).await??.into_run();
    let tokens = tokens_of(&state, &principal, run, items, None, None).await?;
    Ok(json_response(StatusCode::OK, &json!({ "input_tokens": tokens })))
}

/// Takes the key of its clients as a token, and writes all errors as they read them.
pub(super) fn add_layers(router: Router<AppState>, _state: &AppState) -> Router<AppState> {
    router.route_layer(from_fn(render_errors)).route_layer(from_fn(take_key))
}

pub(super) async fn take_key(mut request: Request, next: Next) -> Response {
    use_as_token(request.headers_mut(), &API_KEY);
    next.run(request).await
}

/// Takes the key in the header `name` as a token, where there is none.
pub(super) fn use_as_token(headers: &mut HeaderMap, name: &HeaderName) {
    if !headers.contains_key(header::AUTHORIZATION)
        && let Some(key) = headers.get(name).and_then(|key| key.to_str().ok())
        && let Ok(bearer) = HeaderValue::from_str(&format!("Bearer {}", key.trim()))
    {
        headers.insert(header::AUTHORIZATION, bearer);
    }
}

pub(super) async fn render_errors(request: Request, next: Next) -> Response {
    let request_id = request.extensions().get::<RequestId>().map(|id| id.0.clone()).unwrap_or_default();
    let response = match check_headers(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    };
    with_request_id(in_own_shape(response, &request_id), &request_id)
}

/// Refuses what is no version of the protocol, and what is no name of a beta. A beta allows fields, each of which is
/// honoured or refused by its own name. Errors: `bad_header`.
fn check_headers(headers: &HeaderMap) -> Result<(), ApiError> {
    let bad = |message: String| ApiError::new(ErrorCode::BadHeader, message);
    if let Some(version) = header_text(headers, &[ANTHROPIC_VERSION])?
        && !is_date(&version)
    {
        return Err(bad(format!("{ANTHROPIC_VERSION}: `{version}` is no version; they are dates, as in 2023-06-01")));
    }
    for value in headers.get_all(BETAS) {
        let names = value.to_str().map_err(|_| bad(format!("header {BETAS} is not text")))?;
        let mut names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        if let Some(name) = names.find(|name| !is_beta(name)) {
            return Err(bad(format!(
                "{BETAS}: `{name}` is no beta; their names end with a date, as in NAME-2025-05-14"
            )));
        }
    }
    Ok(())
}

/// Whether a text is a date, as in `2023-06-01`. Clients send the version that was the newest when they were released; the
/// fields of a request are judged by their own names.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let is_number = |part: &str, digits: usize| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
    matches!(parts.as_slice(), [year, month, day] if is_number(year, 4) && is_number(month, 2) && is_number(day, 2))
}

/// Whether this is the name of a beta: words, then a date, as in `mcp-client-2025-04-04` and `claude-code-20250219`.
fn is_beta(name: &str) -> bool {
    let (words, date) = match name.rsplit_once(|letter: char| !letter.is_ascii_digit() && letter != '-') {
        Some((words, date)) => (words, date),
        None => ("", name),
    };
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    !words.is_empty() && words.chars().all(is_word) && date.chars().filter(char::is_ascii_digit).count() >= 8
}

/// Names the request in the header that these clients read.
fn with_request_id(mut response: Response, request_id: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(request_id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// Writes an error of a path that has no route.
pub(super) fn error_response(error: ApiError, request_id: &str) -> Response {
    with_request_id(in_own_shape(OpenAiError::from(error).into_response(), request_id), request_id)
}

/// Writes an error as these clients read it; returns any other response as it is.
fn in_own_shape(mut response: Response, request_id: &str) -> Response {
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        response = OpenAiError::from(error).into_response();
    }
    let Some(OpenAiErrorParts { message, code, .. }) = response.extensions_mut().remove::<OpenAiErrorParts>() else {
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
    let mut error = json!({ "type": kind, "message": message });
    if code == ErrorCode::ThreadUnsupported {
        // The client goes on without what is named here.
        error["details"] = json!({ "error_code": code, "unsupported": ["thread"] });
    }
    let body = json!({ "type": "error", "error": error, "request_id": request_id });
    let mut rendered = json_response(status, &body);
    for name in [header::RETRY_AFTER, header::WWW_AUTHENTICATE, SHOULD_RETRY, RUN_SERVER] {
        if let Some(value) = response.headers_mut().remove(&name) {
            rendered.headers_mut().insert(name, value);
        }
    }
    rendered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beta_has_words_and_a_date() {
        for name in ["mcp-client-2025-04-04", "claude-code-20250219", "context-1m-2025-08-07", "efs-2026-10-01"] {
            assert!(is_beta(name), "{name}");
        }
        for name in ["zzz", "2025-04-04", "mcp-client", "mcp client-2025-04-04", "", "mcp-2025-04"] {
            assert!(!is_beta(name), "{name}");
        }
    }
}
