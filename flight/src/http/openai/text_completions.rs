//! `POST /v1/completions`: the older protocol of prompts, for libraries that still send one. Nothing is kept.

use axum::Extension;
use axum::response::Response;
use http::StatusCode;
use querent_agent::Protocol;
use querent_agent::protocols::text_completion::{TextCompletionRenderer, parse_request};

use super::azure::Deployment;
use super::chat::start;
use super::error::OpenAiError;
use super::run::{render_whole, wait_for_start};
use crate::http::request::{ApiCall, QueryBytes, parse_off_runtime};
use crate::http::response::json_response;
use crate::http::stream::event_stream;

/// `POST /v1/completions`.
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
    let events = start(&state, &principal, request, Protocol::Chat).await.map_err(OpenAiError::of_prompt)?;
    if stream {
        return Ok(event_stream(wait_for_start(events).await?, TextCompletionRenderer::new(include_usage)));
    }
    let mut renderer = TextCompletionRenderer::new(false);
    let detail = render_whole(events, &mut renderer).await?;
    match renderer.failure() {
        Some((code, message)) => Err(OpenAiError::from_run(code, message, &detail)),
        None => Ok(json_response(StatusCode::OK, &renderer.completion())),
    }
}
