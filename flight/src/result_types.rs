//! The header by which a client says that it reads more than the plain types: string views and dictionaries.

use http::HeaderMap;
use querent_engine::ResultTypes;

use crate::error::{ApiError, ErrorCode};

/// A list of `views` and `dictionaries`.
pub(crate) const RESULT_TYPES_HEADER: &str = "x-querent-wire-types";

/// Returns the types that the results of a request may have. Errors: `bad_header`.
pub(crate) fn result_types(headers: &HeaderMap) -> Result<ResultTypes, ApiError> {
    let Some(value) = headers.get(RESULT_TYPES_HEADER) else { return Ok(ResultTypes::default()) };
    let bad = |reason: String| {
        ApiError::new(ErrorCode::BadHeader, format!("header {RESULT_TYPES_HEADER}: {reason}"))
            .with_hint("send `views`, `dictionaries` or `views,dictionaries`; without it columns have plain types")
    };
    let names = value.to_str().map_err(|_| bad("it is not text".to_owned()))?;
    names.parse().map_err(|error: querent_engine::EngineError| bad(error.to_string()))
}
