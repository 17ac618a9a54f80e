//! `POST /v1/complete`: what may stand at a place of a statement in SQL or KQL.

use axum::response::Response;
use http::StatusCode;
use querent_engine::{CompletionLanguage, Limits};
use serde::Deserialize;
use serde_json::json;

use crate::error::{ApiError, ErrorCode};
use crate::http::request::{ApiCall, JsonBody};
use crate::http::response::json_response;

/// The longest text that is completed, in bytes.
const MAX_TEXT_BYTES: usize = 256 << 10;
const DEFAULT_LIMIT: usize = 50;

/// A text, and the place in it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TextToComplete {
    text: String,
    /// In UTF-16 code units, as browsers and the Language Server Protocol count; the end of the text unless given.
    position: Option<usize>,
    #[serde(default)]
    language: CompletionLanguage,
    database: Option<String>,
    limit: Option<usize>,
}

/// Answers `{start, suggestions: [{text, kind, detail?}], truncated}`: what the text from `start` to the place may become.
pub(super) async fn complete(
    ApiCall { state, principal }: ApiCall,
    JsonBody(asked): JsonBody<TextToComplete>,
) -> Result<Response, ApiError> {
    if asked.text.len() > MAX_TEXT_BYTES {
        let message = format!("`text` has {} bytes; at most {MAX_TEXT_BYTES} are completed", asked.text.len());
        return Err(ApiError::new(ErrorCode::InvalidRequest, message));
    }
    let at = match asked.position {
        None => asked.text.len(),
        Some(position) => byte_at(&asked.text, position).ok_or_else(|| {
            let message = format!("`position` {position} is no place between two characters of `text`");
            ApiError::new(ErrorCode::InvalidRequest, message)
        })?,
    };
    let session = state.session(principal, Limits::default()).in_database(asked.database.as_deref()).await?;
    let found = session.complete(&asked.text, at, asked.language, asked.limit.unwrap_or(DEFAULT_LIMIT)).await?;
    let start = asked.text.get(..found.start).unwrap_or_default().encode_utf16().count();
    Ok(json_response(
        StatusCode::OK,
        &json!({ "start": start, "suggestions": found.suggestions, "truncated": found.truncated }),
    ))
}

/// Returns the byte at a place that is counted in UTF-16 code units.
fn byte_at(text: &str, position: usize) -> Option<usize> {
    let mut units = 0;
    for (byte, char) in text.char_indices() {
        if units >= position {
            return (units == position).then_some(byte);
        }
        units += char.len_utf16();
    }
    (units == position).then_some(text.len())
}

#[cfg(test)]
mod tests {
    use super::byte_at;

    #[test]
    fn places_are_counted_as_browsers_do() {
        let places: Vec<Option<usize>> = (0..7).map(|position| byte_at("aé🦆b", position)).collect();
        assert_eq!(places, [Some(0), Some(1), Some(3), None, Some(7), Some(8), None]);
    }
}
