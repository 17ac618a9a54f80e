//! `POST /v1/agent/ask`: a question in, the run's events out as SSE.
//!
//! Whatever goes wrong once the run exists is an event, and `run_finished` is always the last one. When a client goes
//! away its response body is dropped; that drops the run's events, which cancels the run.

use axum::response::Response;
use querent_agent::protocols::ask::{AskRenderer, parse_request};

use super::stream::event_stream;
use crate::error::ApiError;
use crate::http::request::{ApiCall, QueryBytes};

pub(super) async fn ask(
    ApiCall { state, principal }: ApiCall,
    QueryBytes(body): QueryBytes,
) -> Result<Response, ApiError> {
    let request = parse_request(&body)?;
    let run = state.agent.ask(&principal, request).await?;
    tracing::info!(run_id = %run.run_id, "run started");
    Ok(event_stream(run.events, AskRenderer::default()))
}
