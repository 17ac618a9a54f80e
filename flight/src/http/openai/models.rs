//! `GET /v1/models`: the models that a request may name.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use chrono::SecondsFormat;
use http::{HeaderMap, StatusCode};
use querent_agent::models::AGENT_MODEL;
use serde::Deserialize;
use serde_json::{Value, json};
use url::form_urlencoded;

use super::error::OpenAiError;
use super::fields::{OpenAiParams, checked_limit};
use crate::error::ErrorCode;
use crate::http::request::PathText;
use crate::http::response::json_response;
use crate::state::AppState;

/// The agent's own name.
pub(in crate::http) const AGENT: &str = AGENT_MODEL;

/// The header of Anthropic's clients, which read models in another shape.
pub(in crate::http) const ANTHROPIC_VERSION: &str = "anthropic-version";

/// The models of one of Anthropic's pages where it does not say how many, and at most.
const ANTHROPIC_PAGE: usize = 20;
const MAX_ANTHROPIC_PAGE: usize = 1_000;
/// The stage of all models: what is configured is in use.
const STAGE: &str = "active";

/// How Anthropic's clients ask for a page.
#[derive(Debug, Deserialize)]
pub(in crate::http) struct ModelListParams {
    limit: Option<usize>,
    after_id: Option<String>,
    before_id: Option<String>,
}

/// `GET /v1/models`.
pub(in crate::http) async fn list(
    State(state): State<AppState>,
    headers: HeaderMap,
    OpenAiParams(params): OpenAiParams<ModelListParams>,
    RawQuery(query): RawQuery,
) -> Result<Response, OpenAiError> {
    let models = models(&state);
    let stages = stages_of(query.as_deref().unwrap_or_default());
    if headers.contains_key(ANTHROPIC_VERSION) {
        let is_listed = stages.is_empty() || stages.iter().any(|stage| stage == STAGE);
        let listed = models.iter().filter(|_| is_listed);
        let models: Vec<Value> = listed.map(|model| as_anthropics(&state, model)).collect();
        return Ok(json_response(StatusCode::OK, &params.page(models)?));
    }
    let given = [
        ("limit", params.limit.is_some()),
        ("after_id", params.after_id.is_some()),
        ("before_id", params.before_id.is_some()),
        ("lifecycle", !stages.is_empty()),
    ];
    if let Some((name, _)) = given.iter().find(|(_, is_given)| *is_given) {
        let message = format!("`{name}` goes with the header {ANTHROPIC_VERSION}; all models are listed at once");
        return Err(OpenAiError::bad_request(ErrorCode::BadParameter, name, message));
    }
    let body = json!({ "object": "list", "data": models, "current": current(&state) });
    Ok(json_response(StatusCode::OK, &body))
}

/// Returns the stages of models that are asked for; none are all.
fn stages_of(query: &str) -> Vec<String> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    let stages = pairs.filter(|(name, _)| matches!(name.as_ref(), "lifecycle" | "lifecycle[]"));
    stages.map(|(_, stage)| stage.into_owned()).collect()
}

impl ModelListParams {
    /// Returns the page of a listing as Anthropic's clients read it.
    fn page(&self, mut models: Vec<Value>) -> Result<Value, OpenAiError> {
        let limit = checked_limit(self.limit, ANTHROPIC_PAGE, MAX_ANTHROPIC_PAGE)?;
        let place = |name: &str, id: &str| {
            let unknown =
                || OpenAiError::bad_request(ErrorCode::BadParameter, name, format!("there is no model `{id}`"));
            models.iter().position(|model| model["id"] == id).ok_or_else(unknown)
        };
        let has_more = match (&self.after_id, &self.before_id) {
            (Some(_), Some(_)) => {
                let message = "`before_id` and `after_id` exclude each other; send one";
                return Err(OpenAiError::bad_request(ErrorCode::BadParameter, "before_id", message));
            }
            // The models right before it; what is left is before them.
            (None, Some(before)) => {
                let end = place("before_id", before)?;
                let begin = end.saturating_sub(limit);
                models = models.drain(begin..end).collect();
                begin > 0
            }
            (after, None) => {
                let begin = match after {
                    Some(after) => place("after_id", after)? + 1,
                    None => 0,
                };
                models.drain(..begin);
                let has_more = models.len() > limit;
                models.truncate(limit);
                has_more
            }
        };
        let id = |model: Option<&Value>| model.map_or(Value::Null, |model| model["id"].clone());
        let (first, last) = (id(models.first()), id(models.last()));
        Ok(json!({ "data": models, "has_more": has_more, "first_id": first, "last_id": last }))
    }
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
        "lifecycle": STAGE,
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
