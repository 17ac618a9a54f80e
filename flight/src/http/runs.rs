//! Runs after the fact: one with its whole trace, a list of them, and stopping one that still runs.
//!
//! A run is seen by its owner and by administrators; to everybody else it does not exist.

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, SecondsFormat, Utc};
use http::{StatusCode, header};
use querent_catalog::{Principal, RunRecord};
use serde_json::{Value, json};
use uuid::Uuid;

use super::around::json as json_response;
use super::request::{PageParams, Params, encode_token};
use crate::AppState;
use crate::error::ApiError;

const DEFAULT_LIMIT: usize = 100;

/// `GET /v1/agent/runs`: the caller's runs, newest first, without their traces.
pub(super) async fn list(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    Params(params): Params<PageParams>,
) -> Result<Response, ApiError> {
    let page = state.agent.list_runs(&principal, params.page(DEFAULT_LIMIT)?).await?;
    let runs: Vec<Value> = page.items.iter().map(summary_json).collect();
    let mut body = json!({ "runs": runs });
    if let Some(next) = page.next {
        body["next_page_token"] = json!(encode_token(&next)?);
    }
    Ok(json_response(StatusCode::OK, &body))
}

/// `GET /v1/agent/runs/{run_id}`: one run with its trace.
pub(super) async fn get(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(run_id): Path<String>,
) -> Result<Response, ApiError> {
    let run = state.agent.get_run(&principal, parse_id(&run_id)?).await?;
    Ok(run_response(&run))
}

/// `POST /v1/agent/runs/{run_id}/cancel`: stops it if it runs; says how it ended.
pub(super) async fn cancel(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(run_id): Path<String>,
) -> Result<Response, ApiError> {
    let run = state.agent.cancel_run(&principal, parse_id(&run_id)?).await?;
    Ok(run_response(&run))
}

fn parse_id(text: &str) -> Result<Uuid, ApiError> {
    let bad = |_| ApiError::new("bad_parameter", format!("`{text}` is not a run id; run ids are UUIDs"));
    Uuid::parse_str(text).map_err(bad)
}

fn summary_json(run: &RunRecord) -> Value {
    json!({
        "run_id": run.run_id,
        "question": run.question,
        "model_id": run.model_id,
        "status": run.status.as_str(),
        "started_at": time_text(run.started_at),
        "finished_at": run.finished_at.map(time_text),
        "usage": serde_json::from_str::<Value>(&run.usage_json).unwrap_or(Value::Null),
    })
}

/// The trace is stored as JSON text and goes out as it is: it may be large, and parsing it would only cost time.
fn run_response(run: &RunRecord) -> Response {
    let mut body = summary_json(run).to_string();
    body.pop();
    body.push_str(",\"trace\":");
    body.push_str(if run.trace_json.is_empty() { "[]" } else { &run.trace_json });
    body.push('}');
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

fn time_text(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}
