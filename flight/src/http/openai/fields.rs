//! Bodies that are a JSON object of optional fields.

use serde_json::{Map, Value};

use super::error::OpenAiError;
use crate::error::ErrorCode;

/// Returns the fields of a body; an empty body has none. Errors: `invalid_json`, `invalid_request`.
pub(in crate::http) fn object_fields(body: &[u8]) -> Result<Map<String, Value>, OpenAiError> {
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
