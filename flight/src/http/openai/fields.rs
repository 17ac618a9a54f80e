//! Bodies that are a JSON object of optional fields.

use querent_agent::protocols::fields::check_names;
use querent_agent::protocols::responses::{BadRequest, metadata_of};
use serde_json::{Map, Value};

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
    Ok(metadata_of(&fields).map_err(|error| error.with_status(400))?)
}

/// Returns the fields of a body, whatever their names are.
pub(in crate::http) fn any_fields(body: &[u8]) -> Result<Map<String, Value>, OpenAiError> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(OpenAiError::bad_request(ErrorCode::InvalidRequest, "body", "the body must be a JSON object")),
        Err(error) => {
            Err(OpenAiError::bad_request(ErrorCode::InvalidJson, "body", format!("the body is not JSON: {error}")))
        }
    }
}
