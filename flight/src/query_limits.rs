//! What a request says of its statement outside of the text: its language, values of its parameters, and headers that lower its
//! limits; and what an answer says of its rows outside of them.

use std::time::Duration;

use http::HeaderMap;
use querent_engine::{Limits, ScalarValue, list_value};
use serde_json::Value;

use crate::error::{ApiError, ErrorCode};

/// The shortest wall clock that a request may ask for; a query with less could only fail.
pub(crate) const LEAST_WALL_CLOCK: Duration = Duration::from_millis(10);
/// The least memory that a request may ask for; a query with less could only fail.
const LEAST_MEMORY: usize = 1 << 20;

/// The header of an answer, over HTTP and gRPC, that says that its rows were kept from a query before.
pub(crate) const RESULT_CACHE_HEADER: &str = "x-querent-result-cache";
pub(crate) const RESULT_CACHE_HIT: &str = "hit";

/// The language of a statement's text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum QueryLanguage {
    #[default]
    Sql,
    Kql,
}

impl QueryLanguage {
    /// Returns the language of that name, in any case.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Sql, Self::Kql].into_iter().find(|language| language.as_str().eq_ignore_ascii_case(name))
    }

    /// Returns the language's name.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Sql => "sql",
            Self::Kql => "kql",
        }
    }
}

/// Returns a value in JSON as one of SQL. Errors: what is wrong with the value.
pub(crate) fn scalar(value: &Value) -> Result<ScalarValue, String> {
    match value {
        Value::Null => Ok(ScalarValue::Null),
        Value::Bool(value) => Ok(ScalarValue::Boolean(Some(*value))),
        Value::String(text) => Ok(ScalarValue::Utf8(Some(text.clone()))),
        Value::Number(number) => Ok(number
            .as_i64()
            .map(|value| ScalarValue::Int64(Some(value)))
            .or_else(|| number.as_u64().map(|value| ScalarValue::UInt64(Some(value))))
            .unwrap_or(ScalarValue::Float64(number.as_f64()))),
        Value::Array(items) => {
            let items = items.iter().map(scalar).collect::<Result<_, _>>()?;
            list_value(items).map_err(|error| error.to_string())
        }
        Value::Object(_) => Err("is an object".to_owned()),
    }
}

/// Returns `limits`, lowered or raised to what the headers ask for; [`crate::state::AppState::session`] keeps the server's
/// own as the most. Errors: `bad_header`.
pub(crate) fn requested_limits(headers: &HeaderMap, limits: Limits) -> Result<Limits, ApiError> {
    let mut limits = limits;
    if let Some(ms) = header_number(headers, &["x-querent-max-wall-clock-ms", "x-kyma-max-wall-clock-ms"])? {
        limits.wall_clock = Duration::from_millis(ms).max(LEAST_WALL_CLOCK);
    }
    if let Some(bytes) = header_number(headers, &["x-querent-max-memory-bytes", "x-kyma-max-memory-bytes"])? {
        limits.memory_bytes = usize::try_from(bytes).unwrap_or(usize::MAX).max(LEAST_MEMORY);
    }
    Ok(limits)
}

fn header_number(headers: &HeaderMap, names: &[&str]) -> Result<Option<u64>, ApiError> {
    let Some((name, value)) = names.iter().find_map(|name| Some((*name, headers.get(*name)?))) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default().trim();
    let bad = |_| ApiError::new(ErrorCode::BadHeader, format!("header {name} must be a whole number, not `{text}`"));
    text.parse().map(Some).map_err(bad)
}
