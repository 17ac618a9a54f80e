//! What clients ask about the server: its models, its tools and limits, its health.

use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;
use querent_agent::SECTION_KEYS;
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::HolmesError;
use crate::error::{ApiError, ErrorCode};
use crate::http::request::Params;
use crate::http::response::json_response;
use crate::state::AppState;

pub(in crate::http) async fn health() -> Response {
    json_response(StatusCode::OK, &json!({ "status": "healthy" }))
}

pub(in crate::http) async fn ready(State(state): State<AppState>) -> Result<Response, HolmesError> {
    if state.shutdown.is_unready() {
        return Err(ApiError::new(ErrorCode::ShuttingDown, "the server is shutting down").into());
    }
    Ok(json_response(StatusCode::OK, &json!({ "status": "ready", "models": model_names(&state) })))
}

fn model_names(state: &AppState) -> Vec<&str> {
    state.agent.models().entries().map(|entry| entry.name.as_str()).collect()
}

/// Answers with the models' names: a list, or the list's JSON as a string if the settings say so.
pub(in crate::http) async fn model(State(state): State<AppState>) -> Response {
    let names = json!(model_names(&state));
    let names = if state.settings.holmes.model_name_as_text { json!(names.to_string()) } else { names };
    json_response(StatusCode::OK, &json!({ "model_name": names }))
}

#[derive(Deserialize)]
pub(in crate::http) struct InfoParams {
    detail: Option<String>,
}

pub(in crate::http) async fn info(
    State(state): State<AppState>,
    Params(params): Params<InfoParams>,
) -> Result<Response, HolmesError> {
    if let Some(detail) = params.detail.as_deref().filter(|detail| *detail != "full") {
        let message = format!("`detail` is `full` where it is there, not `{detail}`");
        return Err(ApiError::new(ErrorCode::BadParameter, message).into());
    }
    let mut info = json!({
        "name": "querent",
        "version": env!("CARGO_PKG_VERSION"),
        "models": model_names(&state),
        "default_model": state.agent.models().default_entry().name,
    });
    if params.detail.as_deref() == Some("full") {
        let config = state.agent.config();
        info["cluster_name"] = json!(state.settings.holmes.cluster_name);
        info["prompt_sections"] = json!(SECTION_KEYS);
        info["toolsets"] =
            json!([{ "name": "querent", "enabled": true, "status": "enabled", "tools": tool_names(&state) }]);
        info["limits"] = json!({
            "run_timeout_seconds": config.run_timeout.as_secs_f64(),
            "max_tool_calls": config.max_tool_calls,
        });
        info["tool_approval"] = json!(config.write_tools);
    }
    Ok(json_response(StatusCode::OK, &info))
}

fn tool_names(state: &AppState) -> Vec<Value> {
    querent_agent::tool_names(state.agent.config().write_tools).map(|name| json!(name)).collect()
}

/// Answers routes of HolmesGPT that have no counterpart here.
pub(in crate::http) async fn not_available(request: Request) -> HolmesError {
    let message = format!(
        "{} is not available on this server: there are no checks and no OAuth toolsets here",
        request.uri().path()
    );
    HolmesError::new(StatusCode::NOT_IMPLEMENTED, message)
}
