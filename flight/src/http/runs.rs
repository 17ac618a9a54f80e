//! `/v1/agent/runs`: lists runs, shows one with its whole trace, and cancels one in progress.
//!
//! A run is visible to its owner and to administrators; for everybody else it does not exist.

use axum::response::Response;
use http::StatusCode;
use querent_agent::protocols::ask::{run_json, run_list_json};
use uuid::Uuid;

use crate::error::{ApiError, ErrorCode};
use crate::http::elsewhere::as_stored;
use crate::http::request::{ApiCall, PageParams, Params, PathText};
use crate::http::response::json_response;

const DEFAULT_LIMIT: usize = 100;

/// `GET /v1/agent/runs`: the caller's runs, newest first, without their traces.
pub(super) async fn list(
    ApiCall { state, principal }: ApiCall,
    Params(params): Params<PageParams>,
) -> Result<Response, ApiError> {
    let page = state.agent.list_runs(&principal, params.page(DEFAULT_LIMIT)).await?;
    Ok(json_response(StatusCode::OK, &run_list_json(&page)))
}

/// `GET /v1/agent/runs/{run_id}`: one run with its trace.
pub(super) async fn get(
    ApiCall { state, principal }: ApiCall,
    PathText(run_id): PathText,
) -> Result<Response, ApiError> {
    let run = state.agent.get_run(&principal, parse_run_id(&run_id)?).await?;
    Ok(as_stored(&state, Some(&run), json_response(StatusCode::OK, &run_json(&run))).await?)
}

/// `POST /v1/agent/runs/{run_id}/cancel`: cancels it if it is in progress, and returns it as it is afterwards.
pub(super) async fn cancel(
    ApiCall { state, principal }: ApiCall,
    PathText(run_id): PathText,
) -> Result<Response, ApiError> {
    let run = state.agent.cancel_run(&principal, parse_run_id(&run_id)?).await?;
    Ok(json_response(StatusCode::OK, &run_json(&run)))
}

/// Reads the id of a run in a path.
pub(super) fn parse_run_id(text: &str) -> Result<Uuid, ApiError> {
    let bad = |_| ApiError::new(ErrorCode::BadParameter, format!("`{text}` is not a run id; run ids are UUIDs"));
    Uuid::parse_str(text).map_err(bad)
}
