//! The common part of calls to other services: a key that is never shown, error messages, and pauses for a busy
//! service.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

/// A key that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// The key; `None` when there is nothing in it.
    pub fn new(key: impl Into<String>) -> Option<Self> {
        let key = key.into().trim().to_owned();
        (!key.is_empty()).then_some(Self(key))
    }

    /// The key itself, only for the header that carries it.
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// `text` with the key masked, since a service may repeat it in its errors.
    pub fn masked_in(&self, text: &str) -> String {
        text.replace(&self.0, "***")
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// An error with its causes: reqwest's own message stops at "error sending request".
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

/// The message of a service's error body, wherever it puts it.
pub fn message_in(body: &Value) -> Option<String> {
    let body = body.as_array().and_then(|items| items.first()).unwrap_or(body);
    let error = body.get("error").unwrap_or(body);
    let places = [error.get("message"), Some(error), body.get("message"), body.get("detail")];
    places.into_iter().flatten().find_map(|place| place.as_str().map(str::to_owned))
}

/// The pause that a `Retry-After` header asks for, in seconds or as a date.
pub fn retry_after(header: &str, now: DateTime<Utc>) -> Option<Duration> {
    let header = header.trim();
    if let Ok(seconds) = header.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = DateTime::parse_from_rfc2822(header).ok()?;
    Some((date.with_timezone(&Utc) - now).to_std().unwrap_or_default())
}

/// A random duration in the upper half of `pause`, so that clients refused together do not retry together.
pub fn jittered(pause: Duration) -> Duration {
    let [first, second, ..] = *Uuid::new_v4().as_bytes();
    let random = f64::from(u16::from_le_bytes([first, second])) / f64::from(u16::MAX);
    pause.mul_f64(0.5 + 0.5 * random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_service_says_how_long_in_seconds_or_by_date() {
        let now = DateTime::parse_from_rfc3339("2026-11-01T12:00:00Z").unwrap().to_utc();
        assert_eq!(retry_after(" 1.5 ", now), Some(Duration::from_millis(1_500)));
        assert_eq!(retry_after("Sun, 01 Nov 2026 12:00:30 GMT", now), Some(Duration::from_secs(30)));
        assert_eq!(retry_after("Sun, 01 Nov 2026 11:00:00 GMT", now), Some(Duration::ZERO));
        assert_eq!(retry_after("soon", now), None);
        assert_eq!(retry_after("-1", now), None);
    }

    #[test]
    fn a_pause_keeps_half_of_itself() {
        let pause = Duration::from_secs(1);
        for _ in 0..100 {
            assert!((pause / 2..=pause).contains(&jittered(pause)));
        }
    }

    #[test]
    fn a_key_is_never_shown() {
        assert_eq!(format!("{:?}", ApiKey::new(" s3cret ")), "Some(***)");
        assert_eq!(ApiKey::new("  "), None);
    }
}
