//! `[telemetry]`: traces for an OpenTelemetry collector.

use std::fmt;

use serde::{Deserialize, Serialize};
use url::Url;

/// Where the path of OTLP's traces ends.
const TRACES_PATH: &str = "v1/traces";

/// Where traces go, and what is in them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TelemetrySettings {
    /// The collector's address for OTLP over HTTP; unset: no traces are made.
    pub otlp_endpoint: Option<String>,
    /// `name=value`: headers of each export.
    pub otlp_headers: Vec<String>,
    /// What traces call this server.
    pub service_name: String,
    /// Whether spans have the texts of statements.
    pub statements: bool,
}

impl Default for TelemetrySettings {
    fn default() -> Self {
        let service_name = "querent".to_owned();
        Self { otlp_endpoint: None, otlp_headers: Vec::new(), service_name, statements: false }
    }
}

impl TelemetrySettings {
    /// Returns where traces are sent to, with OTLP's path for them; `None` where they are not.
    pub(crate) fn traces_url(&self) -> Option<String> {
        let endpoint = self.otlp_endpoint.as_deref()?.trim().trim_end_matches('/');
        match endpoint.ends_with(TRACES_PATH) {
            true => Some(endpoint.to_owned()),
            false => Some(format!("{endpoint}/{TRACES_PATH}")),
        }
    }

    /// Returns the headers' names and values.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.otlp_headers
            .iter()
            .filter_map(|header| header.split_once('='))
            .map(|(name, value)| (name.trim(), value.trim()))
    }

    /// Returns a setting that cannot be used and why, without repeating a header's value.
    pub(super) fn fault(&self) -> Option<(&'static str, String)> {
        if let Some(endpoint) = &self.otlp_endpoint {
            let is_address = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
            if Url::parse(endpoint.trim()).ok().filter(is_address).is_none() {
                let detail = "not an address of OTLP over HTTP; write it as http://localhost:4318".to_owned();
                return Some(("telemetry.otlp_endpoint", detail));
            }
        }
        let is_header = |header: &String| {
            header.split_once('=').is_some_and(|(name, value)| {
                name.trim().parse::<http::HeaderName>().is_ok() && value.trim().parse::<http::HeaderValue>().is_ok()
            })
        };
        let wrong = self.otlp_headers.iter().position(|header| !is_header(header))?;
        Some(("telemetry.otlp_headers", format!("header {} must be written name=value", wrong + 1)))
    }
}

impl fmt::Debug for TelemetrySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TelemetrySettings")
            .field("otlp_endpoint", &self.otlp_endpoint)
            .field("service_name", &self.service_name)
            .field("statements", &self.statements)
            .finish_non_exhaustive()
    }
}
