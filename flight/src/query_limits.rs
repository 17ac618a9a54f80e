//! What a request says of its statement outside of the text: its language, values of its parameters, and headers that lower its
//! limits; and what an answer says of its rows outside of them.

use std::time::Duration;

use arrow_schema::DECIMAL128_MAX_PRECISION;
use http::HeaderMap;
use querent_engine::{Limits, ScalarValue, list_value};
use serde_json::Value;
use serde_json::value::RawValue;

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
pub(crate) fn scalar(value: &RawValue) -> Result<ScalarValue, String> {
    // This also refuses what is nested too deeply.
    let parsed: Value = serde_json::from_str(value.get()).map_err(unreadable)?;
    scalar_of(&parsed, value.get())
}

/// Returns a value as one of SQL. Its text has the digits of whole numbers that no integer has.
fn scalar_of(value: &Value, text: &str) -> Result<ScalarValue, String> {
    match value {
        Value::Null => Ok(ScalarValue::Null),
        Value::Bool(value) => Ok(ScalarValue::Boolean(Some(*value))),
        Value::String(text) => Ok(ScalarValue::Utf8(Some(text.clone()))),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => Ok(ScalarValue::Int64(Some(value))),
            (None, Some(value)) => Ok(ScalarValue::UInt64(Some(value))),
            (None, None) if text != "-0" && !text.contains(['.', 'e', 'E']) => whole_decimal(text),
            (None, None) => Ok(ScalarValue::Float64(number.as_f64())),
        },
        Value::Array(items) => {
            let texts: Vec<&RawValue> = serde_json::from_str(text).map_err(unreadable)?;
            let items = items.iter().zip(texts).map(|(item, text)| scalar_of(item, text.get()));
            list_value(items.collect::<Result<_, _>>()?).map_err(|error| error.to_string())
        }
        Value::Object(_) => Err("is an object".to_owned()),
    }
}

fn unreadable(error: serde_json::Error) -> String {
    format!("cannot be read: {error}")
}

fn whole_decimal(text: &str) -> Result<ScalarValue, String> {
    let most = 10_u128.pow(DECIMAL128_MAX_PRECISION.into());
    let number = text.parse::<i128>().ok().filter(|number| number.unsigned_abs() < most);
    let value = number.map(|number| ScalarValue::Decimal128(Some(number), DECIMAL128_MAX_PRECISION, 0));
    value.ok_or_else(|| {
        format!("has more than {DECIMAL128_MAX_PRECISION} digits; write it with an exponent for a double, or as a text")
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<ScalarValue, String> {
        scalar(&RawValue::from_string(text.to_owned()).unwrap())
    }

    #[test]
    fn whole_numbers_keep_their_digits() {
        let decimal = |number| ScalarValue::Decimal128(Some(number), 38, 0);
        for (text, expected) in [
            ("7", 7_i64.into()),
            ("18446744073709551615", u64::MAX.into()),
            ("18446744073709551616", decimal(1 << 64)),
            ("-9223372036854775809", decimal(-(1 << 63) - 1)),
            ("123456789012345678901234567890", decimal(123_456_789_012_345_678_901_234_567_890)),
            ("1e30", 1e30.into()),
            ("-0", (-0.0).into()),
        ] {
            assert_eq!(value(text).unwrap(), expected, "{text}");
        }
        let list = value("[ 123456789012345678901234567890 , null, -99999999999999999999 ]").unwrap();
        assert_eq!(list.to_string(), "[123456789012345678901234567890, , -99999999999999999999]");
    }

    #[test]
    fn numbers_that_no_value_has_are_refused() {
        let long = "9".repeat(39);
        assert!(value(&long).unwrap_err().contains("38 digits"));
        assert!(value(&format!("[[{long}]]")).unwrap_err().contains("38 digits"));
        assert!(value("1e999").unwrap_err().contains("out of range"));
        assert!(value(&format!("{}{}", "[".repeat(1_000), "]".repeat(1_000))).unwrap_err().contains("recursion"));
    }
}
