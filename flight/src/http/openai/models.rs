//! `GET /v1/models`: the models that a request may name.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde_json::{Value, json};

use super::error::OpenAiError;
use crate::error::ErrorCode;
use crate::http::request::PathText;
use crate::http::response::json_response;
use crate::state::AppState;

/// The agent's own name: a request that names it gets the default model.
pub(in crate::http) const AGENT: &str = "querent";

/// `GET /v1/models`.
pub(in crate::http) async fn list(State(state): State<AppState>) -> Response {
    let body = json!({ "object": "list", "data": models(&state), "current": current(&state) });
    json_response(StatusCode::OK, &body)
}

/// `GET /v1/models/{id}`.
pub(in crate::http) async fn get(
    State(state): State<AppState>,
    PathText(id): PathText,
) -> Result<Response, OpenAiError> {
    let model = models(&state).into_iter().find(|model| model["id"] == id.as_str());
    let unknown = || OpenAiError::not_found(ErrorCode::ModelNotFound, format!("the model `{id}` does not exist"));
    Ok(json_response(StatusCode::OK, &model.ok_or_else(unknown)?))
}

/// Returns the agent, then every configured model.
pub(in crate::http) fn models(state: &AppState) -> Vec<Value> {
    let entry = |id: &str, owner: &str| json!({ "id": id, "object": "model", "created": state.started_at.timestamp(), "owned_by": owner, "source": owner });
    let configured = state.agent.models().entries().map(|model| entry(&model.name, "operator"));
    std::iter::once(entry(AGENT, "querent")).chain(configured).collect()
}

/// Returns the default model's name.
pub(in crate::http) fn current(state: &AppState) -> &str {
    &state.agent.models().default_entry().name
}
