//! AG-UI's surface: `POST /ag-ui`, for its client library. Each request brings the whole conversation.

use axum::response::Response;
use querent_agent::protocols::ag_ui::{AgUiRenderer, parse_request};

use super::openai::error::OpenAiError;
use super::openai::run::{begin, wait_for_start};
use crate::http::request::{ApiCall, QueryBytes, parse_off_runtime};
use crate::http::stream::event_stream;

/// `POST /ag-ui`: a run's events.
pub(super) async fn run(
    ApiCall { state, principal }: ApiCall,
    QueryBytes(body): QueryBytes,
) -> Result<Response, OpenAiError> {
    let (run, items) = parse_off_runtime(body, parse_request).await??.into_run();
    let begun = begin(&state, &principal, run, items, None, None).await;
    let events = begun.map_err(OpenAiError::of_messages)?.1;
    Ok(event_stream(wait_for_start(events).await?, AgUiRenderer::default()))
}
