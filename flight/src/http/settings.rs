//! `GET /v1/settings`: the settings in force and where each came from, without secrets.

use axum::response::Response;
use http::StatusCode;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::http::request::ApiCall;
use crate::http::response::json_response;

/// `{settings: [{name, value, origin, about, is_secret}]}`, as `querent config check --json` says them; a secret is `***`.
pub(super) async fn list(ApiCall { state, .. }: ApiCall) -> Result<Response, ApiError> {
    let settings = state.effective_settings.iter().map(|setting| {
        json!({
            "name": setting.key.path,
            "value": setting.value,
            "origin": setting.origin.to_string(),
            "about": setting.key.about,
            "is_secret": setting.key.secret,
        })
    });
    Ok(json_response(StatusCode::OK, &json!({ "settings": settings.collect::<Vec<Value>>() })))
}
