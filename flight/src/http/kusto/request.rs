//! Requests of Kusto's REST interface: `{"db", "csl", "properties"}`. The properties are an object or, from some clients,
//! the JSON of one in a string.

use std::time::Duration;

use axum::extract::{FromRequest, Request};
use http::HeaderMap;
use querent_engine::Limits;
use querent_engine::kql::{KqlParameters, timespan};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::body::{ErrorPlacement, Frames, TruncationLimits};
use crate::config::Settings;
use crate::error::{ApiError, ErrorCode};
use crate::http::request::QueryBytes;
use crate::query_limits::LEAST_WALL_CLOCK;
use crate::state::AppState;

/// The options of a request that say what a query means, rather than how it is run or answered.
const OPTIONS_OF_QUERY: &[&str] = &[
    "best_effort",
    "query_datetimescope_column",
    "query_datetimescope_from",
    "query_datetimescope_to",
    "query_now",
    "query_results_apply_getschema",
];

/// The header by which clients say what they are.
const CLIENT_VERSION: &str = "x-ms-client-version";
/// Clients that read whole tables only: of one in fragments they have no row, or refuse it.
const WHOLE_TABLE_CLIENTS: &[&str] = &["Kusto.Python.Client:", "Kusto.JavaScript.Client:", "Kusto.Java.Client:"];

/// A request that has been checked.
#[derive(Debug)]
pub(in crate::http) struct KustoRequest {
    pub(super) text: String,
    pub(super) database: Option<String>,
    pub(super) parameters: KqlParameters,
    pub(super) limits: Limits,
    pub(super) truncation: TruncationLimits,
    pub(super) frames: Frames,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestBody {
    db: Option<String>,
    csl: Option<String>,
    properties: Option<Value>,
    /// What Grafana says of a query; it has no effect.
    #[serde(rename = "querySource")]
    _source: Option<Value>,
}

#[derive(Default, Deserialize)]
struct Properties {
    #[serde(rename = "Options", default)]
    options: Map<String, Value>,
    #[serde(rename = "Parameters", default)]
    parameters: Map<String, Value>,
}

impl KustoRequest {
    /// Errors: `bad_request_body`, `bad_parameter`, `empty_query`.
    fn parse(bytes: &[u8], settings: &Settings) -> Result<Self, ApiError> {
        let request: RequestBody = serde_json::from_slice(bytes).map_err(bad_body)?;
        let text = request.csl.filter(|text| !text.trim().is_empty());
        let text = text.ok_or_else(|| ApiError::new(ErrorCode::EmptyQuery, "`csl`, the query's text, is empty"))?;
        let properties: Properties = match request.properties {
            None | Some(Value::Null) => Properties::default(),
            Some(Value::String(text)) if text.is_empty() => Properties::default(),
            Some(Value::String(text)) => serde_json::from_str(&text).map_err(bad_body)?,
            Some(properties) => serde_json::from_value(properties).map_err(bad_body)?,
        };
        let options = RequestOptions(properties.options);
        if let Some(language) = options.get("query_language").and_then(Value::as_str)
            && !["kql", "csl", "kusto"].contains(&language.to_ascii_lowercase().as_str())
        {
            let message = format!("query_language {language} is not served here");
            return Err(ApiError::new(ErrorCode::Unsupported, message).with_hint("POST /v1/query takes SQL"));
        }
        let asked = querent_engine::kql::asked_limits(&text);
        let is_cut = !asked.no_truncation.unwrap_or_else(|| options.is_set("notruncation"));
        let mut limits = settings.limits();
        let bytes = asked.bytes.or(options.number("truncationmaxsize")?).filter(|_| is_cut);
        let truncation = TruncationLimits {
            failing_rows: asked.rows.or(options.number("truncationmaxrecords")?).filter(|_| is_cut),
            // Beyond the server's own limit that one is told.
            failing_bytes: bytes.filter(|bytes| limits.max_bytes.is_none_or(|most| *bytes <= most)),
            taken_rows: options.number("query_take_max_records")?,
        };
        limits.max_rows = truncation.failing_rows.into_iter().chain(truncation.taken_rows).min();
        limits.max_bytes = limits.max_bytes.into_iter().chain(truncation.failing_bytes).min();
        if let Some(timeout) = options.timeout()? {
            limits.wall_clock = timeout.max(LEAST_WALL_CLOCK);
        }
        let placement = match options.get("results_error_reporting_placement").and_then(Value::as_str) {
            _ if options.is_set("deferpartialqueryfailures") => ErrorPlacement::EndOfDataSet,
            Some("end_of_table") => ErrorPlacement::EndOfTable,
            Some("end_of_dataset") => ErrorPlacement::EndOfDataSet,
            Some("in_data") | None => ErrorPlacement::InData,
            Some(other) => {
                let message = format!("the option results_error_reporting_placement is `{other}`, which is no place");
                return Err(ApiError::new(ErrorCode::BadParameter, message)
                    .with_hint("it is in_data, end_of_table or end_of_dataset"));
            }
        };
        let frames = Frames {
            is_progressive: options.is_set("results_progressive_enabled"),
            is_fragmented: options.is_set("results_v2_fragment_primary_tables"),
            on_lines: options.is_set("results_v2_newlines_between_frames"),
            placement,
        };
        let given = properties.parameters.into_iter().map(|(name, value)| (name, parameter_text(value)));
        let parameters = given.chain(options.of_query()).collect();
        // Clients without a database send a name that every cluster has.
        let database = request.db.filter(|name| !name.is_empty() && name != "NetDefaultDB");
        Ok(Self { text, database, parameters, limits, truncation, frames })
    }
}

impl FromRequest<AppState> for KustoRequest {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let reads_fragments = reads_fragments(request.headers());
        let QueryBytes(bytes) = QueryBytes::from_request(request, state).await?;
        let mut parsed = Self::parse(&bytes, &state.settings)?;
        parsed.frames.is_progressive &= reads_fragments;
        parsed.frames.is_fragmented &= reads_fragments;
        Ok(parsed)
    }
}

/// Whether the client may be answered with fragments of tables. They are an offer that an answer need not take.
fn reads_fragments(headers: &HeaderMap) -> bool {
    let client = headers.get(CLIENT_VERSION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    !WHOLE_TABLE_CLIENTS.iter().any(|name| client.starts_with(name))
}

/// Returns a parameter's value as a KQL literal. It usually is a string that holds one; some clients send plain JSON.
fn parameter_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Array(_) | Value::Object(_) => format!("dynamic({value})"),
        other => other.to_string(),
    }
}

fn bad_body(error: serde_json::Error) -> ApiError {
    ApiError::new(ErrorCode::BadRequestBody, format!("the body is not a request of Kusto's: {error}"))
}

/// Request options. As in Kusto, the case of their names does not matter, and a string may stand for its value.
struct RequestOptions(Map<String, Value>);

impl RequestOptions {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    fn is_set(&self, name: &str) -> bool {
        match self.get(name) {
            Some(Value::Bool(value)) => *value,
            Some(Value::String(text)) => text.eq_ignore_ascii_case("true"),
            Some(Value::Number(number)) => number.as_i64().is_some_and(|number| number != 0),
            _ => false,
        }
    }

    /// The options that the planner reads, as it takes them beside a query.
    fn of_query(&self) -> impl Iterator<Item = (String, String)> {
        OPTIONS_OF_QUERY.iter().filter_map(|name| {
            let value = self.get(name).filter(|value| !value.is_null())?.clone();
            Some((format!("set {name}"), parameter_text(value)))
        })
    }

    fn number(&self, name: &str) -> Result<Option<u64>, ApiError> {
        let number = match self.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(value) => value.as_u64(),
        };
        let bad = || ApiError::new(ErrorCode::BadParameter, format!("the option {name} must be a whole number"));
        number.map(Some).ok_or_else(bad)
    }

    /// Returns `servertimeout`, a timespan. Python clients write days as `1 day, 0:00:00`.
    fn timeout(&self) -> Result<Option<Duration>, ApiError> {
        let Some(value) = self.get("servertimeout").filter(|_| !self.is_set("norequesttimeout")) else {
            return Ok(None);
        };
        let text = value.as_str().unwrap_or_default();
        let read = match text.split_once(" day") {
            Some((days, clock)) => {
                let clock = clock.trim_start_matches('s').trim_start_matches(',').trim();
                timespan(&format!("{days}.{clock}"))
            }
            None => timespan(text),
        };
        let bad = || {
            ApiError::new(ErrorCode::BadParameter, format!("the option servertimeout is no timespan: {value}"))
                .with_hint("write it as hh:mm:ss")
        };
        read.map(Some).ok_or_else(bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_as_clients_write_them() {
        for (written, seconds) in [
            ("00:04:00", Some(240)),
            ("0:10:00", Some(600)),
            ("1 day, 0:00:05", Some(86_405)),
            ("2 days, 1:00:00", Some(176_400)),
            ("1.02:00:00", Some(93_600)),
            ("30s", Some(30)),
            ("-1s", None),
            ("soon", None),
        ] {
            let options = RequestOptions([("ServerTimeout".to_owned(), Value::from(written))].into_iter().collect());
            let read = options.timeout().ok().flatten();
            assert_eq!(read, seconds.map(Duration::from_secs), "{written}");
        }
    }
}
