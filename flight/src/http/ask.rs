//! `POST /v1/agent/ask`: a question in, the run's events out as SSE.
//!
//! Whatever goes wrong once the run exists is an event; `run_finished` is always last. A client that goes away drops the
//! body, the body drops the run's events, and that cancels the run.
use crate::error::ApiError;
use axum::response::Response;
pub(super) async fn ask() -> Result<Response, ApiError> {
    Err(ApiError::new("internal", "x"))
}
