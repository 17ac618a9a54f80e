//! `/v1/agent/runs/{run_id}/approvals`: the calls of a run that wait for a person, and the decision on them, which
//! continues the run as a new one.

use axum::response::Response;
use http::StatusCode;
use querent_agent::protocols::ask::{RunDecisions, approval_json};
use querent_agent::{ContinueError, Continued};
use serde_json::{Value, json};

use crate::error::{ApiError, ErrorCode};
use crate::http::ask::streamed;
use crate::http::request::{ApiCall, JsonBody, PathText};
use crate::http::response::json_response;
use crate::http::runs::parse_run_id;

/// `GET /v1/agent/runs/{run_id}/approvals`: `{run_id, approvals: [{approval_id, tool, args, state, decided_at?}]}`.
pub(super) async fn list(
    ApiCall { state, principal }: ApiCall,
    PathText(run_id): PathText,
) -> Result<Response, ApiError> {
    let run_id = parse_run_id(&run_id)?;
    let approvals: Vec<Value> = state.agent.approvals(&principal, run_id).await?.iter().map(approval_json).collect();
    Ok(json_response(StatusCode::OK, &json!({ "run_id": run_id, "approvals": approvals })))
}

/// `POST /v1/agent/runs/{run_id}/approvals`: decides, and streams the run that goes on, as `ask` does.
pub(super) async fn decide(
    ApiCall { state, principal }: ApiCall,
    PathText(run_id): PathText,
    JsonBody(decisions): JsonBody<RunDecisions>,
) -> Result<Response, ApiError> {
    let run_id = parse_run_id(&run_id)?;
    let continued = state.agent.decide(&principal, run_id, decisions).await.map_err(refusal)?;
    let (next_id, events) = match continued {
        Continued::Start(request) => {
            let run = state.agent.start(&principal, *request).await?;
            tracing::info!(run_id = %run.run_id, continues = %run_id, "run started");
            (run.run_id, run.events)
        }
        Continued::Replay(next_id) => (next_id, state.agent.events(&principal, next_id, 0).await?),
    };
    Ok(streamed(events, next_id, None))
}

fn refusal(error: ContinueError) -> ApiError {
    match error {
        ContinueError::Request(bad) => {
            ApiError::new(ErrorCode::from_name(bad.code).unwrap_or(ErrorCode::InvalidRequest), bad.message)
        }
        ContinueError::Agent(error) => error.into(),
    }
}
