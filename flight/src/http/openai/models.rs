//! `GET /v1/models`: the models that a request may name.

use axum::extract::State;
use axum::response::Response;
use chrono::SecondsFormat;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::error::OpenAiError;
use crate::error::ErrorCode;
use crate::http::request::PathText;
use crate::http::response::json_response;
use crate::state::AppState;

/// The agent's own name: a request that names it gets the default model.
pub(in crate::http) const AGENT: &str = "querent";

/// The header of Anthropic's clients, which read models in another shape.
pub(in crate::http) const ANTHROPIC_VERSION: &str = "anthropic-version";

/// `GET /v1/models`.
pub(in crate::http) async fn list(State(state): State<AppState>, headers: HeaderMap) -> Response {
    let models = models(&state);
    if !headers.contains_key(ANTHROPIC_VERSION) {
        let body = json!({ "object": "list", "data": models, "current": current(&state) });
        return json_response(StatusCode::OK, &body);
    }
    let models: Vec<Value> = models.iter().map(|model| as_anthropics(&state, model)).collect();
    let id = |model: Option<&Value>| model.map_or(Value::Null, |model| model["id"].clone());
    let (first, last) = (id(models.first()), id(models.last()));
    json_response(StatusCode::OK, &json!({ "data": models, "has_more": false, "first_id": first, "last_id": last }))
}

/// `GET /v1/models/{id}`.
pub(in crate::http) async fn get(
    State(state): State<AppState>,
    headers: HeaderMap,
    PathText(id): PathText,
) -> Result<Response, OpenAiError> {
    let model = models(&state).into_iter().find(|model| model["id"] == id.as_str());
    let unknown = || OpenAiError::not_found(ErrorCode::ModelNotFound, format!("the model `{id}` does not exist"));
    let model = model.ok_or_else(unknown)?;
    let model = if headers.contains_key(ANTHROPIC_VERSION) { as_anthropics(&state, &model) } else { model };
    Ok(json_response(StatusCode::OK, &model))
}

fn as_anthropics(state: &AppState, model: &Value) -> Value {
    json!({
        "type": "model",
        "id": model["id"],
        "display_name": model["id"],
        "created_at": state.started_at.to_rfc3339_opts(SecondsFormat::Secs, true),
    })
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
