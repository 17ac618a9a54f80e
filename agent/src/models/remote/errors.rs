//! Translates the refusals of a provider into our errors, and says whether a retry may help. Pure.
//!
//! No error contains a key: where a provider repeats it in its message, it is masked.

use std::time::Duration;

use chrono::{DateTime, Utc};
use querent_catalog::outbound::{ApiKey, message_in, retry_after, with_causes};
use reqwest_genai::StatusCode;
use reqwest_genai::header::HeaderMap;
use serde_json::Value;

use crate::error::AgentError;

const SHOWN_CHARS: usize = 500;
/// Anthropic's status for an overload.
const OVERLOADED: u16 = 529;

/// Why a turn did not begin.
#[derive(Debug)]
pub(super) struct ProviderRefusal {
    pub(super) error: AgentError,
    /// The provider limits its callers or is overloaded: it may answer later.
    pub(super) is_busy: bool,
    /// The pause that the provider asks for.
    pub(super) retry_after: Option<Duration>,
}

impl ProviderRefusal {
    pub(super) fn final_one(error: AgentError) -> Self {
        Self { error, is_busy: false, retry_after: None }
    }
}

/// Turns genai's errors into ours.
#[derive(Debug, Clone)]
pub(super) struct ErrorTranslator {
    pub(super) host: String,
    pub(super) model: String,
    pub(super) key: Option<ApiKey>,
    pub(super) key_variable: String,
}

impl ErrorTranslator {
    pub(super) fn refusal(&self, error: genai::Error) -> ProviderRefusal {
        match error {
            genai::Error::HttpError { status, body, headers, .. } => self.refusal_of_status(status, &body, &headers),
            genai::Error::ChatResponse { body, .. } => self.refusal_of_body(&body),
            genai::Error::StreamParse { serde_error, .. } => {
                self.failed(format!("it sent a piece that is not JSON: {serde_error}"))
            }
            genai::Error::WebStream { cause, error, .. } => match error.downcast::<genai::Error>() {
                Ok(inner) => self.refusal(*inner),
                Err(error) => match error.downcast_ref::<reqwest_genai::Error>() {
                    Some(error) => self.refusal_of_transport(error),
                    None => self.failed(cause),
                },
            },
            other => self.failed(other.to_string()),
        }
    }

    pub(super) fn refusal_of_transport(&self, error: &reqwest_genai::Error) -> ProviderRefusal {
        let detail = self.clean(&with_causes(error));
        if error.is_body() || error.is_decode() {
            return self.failed(format!("the connection broke: {detail}"));
        }
        ProviderRefusal::final_one(AgentError::ProviderUnreachable { host: self.host.clone(), detail })
    }

    pub(super) fn refusal_of_status(&self, status: StatusCode, body: &str, headers: &HeaderMap) -> ProviderRefusal {
        let parsed = serde_json::from_str::<Value>(body).ok();
        let said = parsed.as_ref().and_then(message_in).unwrap_or_else(|| body.trim().to_owned());
        let detail = self.clean(&format!("{}: {said}", status.as_u16()));
        let retry_after = asked_pause(headers, Utc::now()).or_else(|| parsed.as_ref().and_then(pause_in));
        // Gemini reports a wrong key as a wrong argument.
        let is_wrong_key = body.contains("API_KEY_INVALID") || body.contains("API key not valid");
        match status.as_u16() {
            401 | 403 => ProviderRefusal::final_one(self.auth(&detail)),
            400 if is_wrong_key => ProviderRefusal::final_one(self.auth(&detail)),
            404 => ProviderRefusal::final_one(AgentError::ProviderModelNotFound {
                model: self.model.clone(),
                host: self.host.clone(),
                detail,
            }),
            429 | 503 | OVERLOADED => {
                // An empty account stays empty.
                let is_busy = !body.contains("insufficient_quota");
                ProviderRefusal { error: self.rate_limited(detail), is_busy, retry_after }
            }
            _ => self.failed(detail),
        }
    }

    /// Translates an error within the stream, in the provider's own form.
    fn refusal_of_body(&self, body: &Value) -> ProviderRefusal {
        let inner = body.get("error").unwrap_or(body);
        let kinds = ["type", "code", "status"].map(|field| inner.get(field));
        let is =
            |words: &[&str]| kinds.iter().flatten().any(|kind| kind.as_str().is_some_and(|kind| words.contains(&kind)));
        let numbers = kinds.iter().flatten().find_map(|kind| kind.as_u64());
        let said = message_in(body).unwrap_or_else(|| match body.get("finishReason") {
            Some(_) => "it sent no answer; the question may have been blocked".to_owned(),
            None => body.to_string(),
        });
        let detail = self.clean(&said);
        let busy = ["overloaded_error", "rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED", "UNAVAILABLE"];
        if is(&busy) || matches!(numbers, Some(429 | 503 | 529)) {
            return ProviderRefusal { error: self.rate_limited(detail), is_busy: true, retry_after: pause_in(body) };
        }
        if is(&["authentication_error", "permission_error", "invalid_api_key"]) || matches!(numbers, Some(401 | 403)) {
            return ProviderRefusal::final_one(self.auth(&detail));
        }
        self.failed(detail)
    }

    fn auth(&self, detail: &str) -> AgentError {
        let detail = format!("{detail}; check the key in {}", self.key_variable);
        AgentError::ModelAuth { host: self.host.clone(), detail }
    }

    fn rate_limited(&self, detail: String) -> AgentError {
        AgentError::ModelRateLimited { host: self.host.clone(), detail }
    }

    pub(super) fn failed(&self, detail: String) -> ProviderRefusal {
        ProviderRefusal::final_one(AgentError::ModelFailed { detail: self.clean(&detail) })
    }

    /// Shortens a text and masks the key in it.
    fn clean(&self, text: &str) -> String {
        let text = match &self.key {
            Some(key) => key.masked_in(text),
            None => text.to_owned(),
        };
        match text.char_indices().nth(SHOWN_CHARS) {
            Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
            None => text,
        }
    }
}

/// Reads `retry-after-ms`, or `Retry-After` in seconds or as a date.
fn asked_pause(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(milliseconds) = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(milliseconds / 1_000.0).ok();
    }
    retry_after(text("retry-after")?, now)
}

/// Reads Gemini's `retryDelay`, such as `"12s"`, in the error's details.
fn pause_in(body: &Value) -> Option<Duration> {
    let body = body.as_array().and_then(|items| items.first()).unwrap_or(body);
    let details = body.get("error").unwrap_or(body).get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn translator() -> ErrorTranslator {
        ErrorTranslator {
            host: "https://host/v1".to_owned(),
            model: "m".to_owned(),
            key: ApiKey::new("sk-s3cret"),
            key_variable: "SOME_KEY".to_owned(),
        }
    }

    fn refused(status: u16, body: &str) -> ProviderRefusal {
        translator().refusal_of_status(StatusCode::from_u16(status).unwrap(), body, &HeaderMap::new())
    }

    #[test]
    fn statuses_have_their_codes() {
        let cases = [
            (401, r#"{"error":{"message":"no"}}"#, "model_auth", false),
            (400, r#"[{"error":{"message":"API key not valid."}}]"#, "model_auth", false),
            (404, r#"{"error":{"message":"no such model"}}"#, "model_not_found", false),
            (429, r#"{"error":{"message":"slow down"}}"#, "model_rate_limited", true),
            (429, r#"{"error":{"message":"pay","code":"insufficient_quota"}}"#, "model_rate_limited", false),
            (529, "", "model_rate_limited", true),
            (503, "<html>busy</html>", "model_rate_limited", true),
            (500, "oops", "model_failed", false),
        ];
        for (status, body, code, is_busy) in cases {
            let refusal = refused(status, body);
            assert_eq!((refusal.error.code(), refusal.is_busy), (code, is_busy), "{status} {body}");
        }
    }

    #[test]
    fn a_key_in_a_message_is_masked_and_its_variable_named() {
        let text = refused(401, r#"{"error":{"message":"wrong key sk-s3cret"}}"#).error.to_string();
        assert!(!text.contains("s3cret") && text.contains("SOME_KEY"), "{text}");
    }

    #[test]
    fn pauses_are_read_in_every_form() {
        let pause = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            let now = DateTime::parse_from_rfc2822("Mon, 01 Jan 2029 00:00:00 GMT").unwrap();
            asked_pause(&headers, now.with_timezone(&Utc))
        };
        assert_eq!(pause("retry-after", "2"), Some(Duration::from_secs(2)));
        assert_eq!(pause("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(pause("retry-after", "Mon, 01 Jan 2029 00:00:07 GMT"), Some(Duration::from_secs(7)));
        assert_eq!(pause("retry-after", "-1"), None);
        assert_eq!(pause("retry-after", "soon"), None);
        let body = json!({"error": {"details": [{"a": 1}, {"retryDelay": "1.5s"}]}});
        assert_eq!(pause_in(&body), Some(Duration::from_millis(1_500)));
    }

    #[test]
    fn errors_within_a_stream_are_distinguished() {
        let cases = [
            (json!({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}), "model_rate_limited"),
            (json!({"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED"}}), "model_rate_limited"),
            (json!({"message": "m", "type": "server_error", "code": null}), "model_failed"),
            (json!({"finishReason": null}), "model_failed"),
        ];
        for (body, code) in cases {
            assert_eq!(translator().refusal_of_body(&body).error.code(), code, "{body}");
        }
    }
}
