//! Bodies that are a JSON object of optional fields, and query parameters.

use axum::extract::{FromRequestParts, Query};
use http::request::Parts;
use querent_agent::protocols::fields::check_names;
use querent_agent::protocols::json::parse_json;
use querent_agent::protocols::openai_fields::is_includable;
use querent_agent::protocols::responses::{BadRequest, metadata_of};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use url::form_urlencoded;

use super::error::OpenAiError;
use crate::error::ErrorCode;

/// Returns the fields of a body; an empty body has none. Errors: `invalid_json`; `invalid_request`, also for a field that is
/// not one of `known`.
pub(in crate::http) fn object_fields(body: &[u8], known: &[&str]) -> Result<Map<String, Value>, OpenAiError> {
    let fields = any_fields(body)?;
    check_names(&fields, "", known.iter().copied()).map_err(BadRequest::from)?;
    Ok(fields)
}

/// Returns the metadata that a body has in the place of what was there. Errors: as [`object_fields`];
/// `missing_required_parameter`.
pub(in crate::http) fn new_metadata(body: &[u8]) -> Result<Value, OpenAiError> {
    let fields = object_fields(body, &["metadata"])?;
    if !fields.contains_key("metadata") {
        return Err(OpenAiError::bad_request(ErrorCode::MissingRequiredParameter, "metadata", "`metadata` is missing"));
    }
    Ok(metadata_of(&fields)?)
}

/// Returns the fields of a body, whatever their names are.
pub(in crate::http) fn any_fields(body: &[u8]) -> Result<Map<String, Value>, OpenAiError> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    match parse_json(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(OpenAiError::bad_request(ErrorCode::InvalidRequest, "body", "the body must be a JSON object")),
        Err(error) => {
            Err(OpenAiError::bad_request(ErrorCode::InvalidJson, "body", format!("the body is not JSON: {error}")))
        }
    }
}

/// The most items that a listing returns at once, unless it says another number.
pub(in crate::http) const MAX_LISTED: usize = 100;

/// Query parameters. `include`, which changes nothing, is checked beside them.
pub(in crate::http) struct OpenAiParams<T>(pub(in crate::http) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for OpenAiParams<T> {
    type Rejection = OpenAiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, OpenAiError> {
        for (name, value) in form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()) {
            if matches!(name.as_ref(), "include" | "include[]") && !is_includable(&value) {
                let message = format!("`include` `{value}` is not known; leave it out");
                return Err(OpenAiError::bad_request(ErrorCode::InvalidRequest, "include", message));
            }
        }
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(value)| Self(value)).map_err(|rejection| wrong_parameter(&rejection.body_text()))
    }
}

/// Returns the refusal of a parameter, from the words of the parser: `...: limit: invalid digit found in string`.
fn wrong_parameter(words: &str) -> OpenAiError {
    let words = words.split_once("query string: ").map_or(words, |(_, rest)| rest);
    let Some((name, why)) = words.split_once(": ").filter(|(name, _)| !name.contains([' ', '`'])) else {
        return OpenAiError::bad_request(ErrorCode::BadParameter, "query", words);
    };
    OpenAiError::bad_request(ErrorCode::BadParameter, name, format!("`{name}` has a wrong value: {why}"))
}

/// Returns how many items a listing is to have. Errors: `invalid_request`.
pub(in crate::http) fn checked_limit(limit: Option<usize>, absent: usize, most: usize) -> Result<usize, OpenAiError> {
    let limit = limit.unwrap_or(absent);
    if (1..=most).contains(&limit) {
        return Ok(limit);
    }
    let message = format!("`limit` must be a number between 1 and {most}, not {limit}");
    Err(OpenAiError::bad_request(ErrorCode::InvalidRequest, "limit", message))
}
