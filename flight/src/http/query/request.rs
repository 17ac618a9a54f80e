//! Query requests: the statement, its parameters, its limits, and the format of the result.

use axum::body::Body;
use http::HeaderMap;
use querent_engine::{Limits, ResultTypes, ScalarValue};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::config::Settings;
use crate::error::{ApiError, ErrorCode};
use crate::formats::ResultFormat;
use crate::http::arriving::read_body;
use crate::http::request::header_text;
use crate::query_limits::{QueryLanguage, requested_limits, scalar};
use crate::result_types::result_types;

/// A query request that has been checked.
#[derive(Debug)]
pub(super) struct QueryRequest {
    pub(super) language: QueryLanguage,
    pub(super) text: String,
    pub(super) params: Vec<ScalarValue>,
    pub(super) database: Option<String>,
    pub(super) limits: Limits,
    pub(super) result_types: ResultTypes,
    pub(super) format: ResultFormat,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SqlBody {
    sql: String,
    #[serde(default)]
    params: Vec<Box<RawValue>>,
    database: Option<String>,
    max_rows: Option<u64>,
    format: Option<String>,
}

/// What a query's address may say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct QueryParams {
    /// The format of the result, as the `Accept` header would name it.
    format: Option<String>,
}

impl QueryRequest {
    pub(super) async fn read(
        query: QueryParams,
        headers: &HeaderMap,
        body: Body,
        settings: &Settings,
    ) -> Result<Self, ApiError> {
        let body_kind = BodyKind::from_headers(headers)?;
        let bytes = read_body(body, settings.http.max_query_bytes.0, &settings.http).await?;
        let body = match body_kind {
            BodyKind::Json => serde_json::from_slice(&bytes).map_err(|error| {
                ApiError::new(ErrorCode::BadRequestBody, format!("the body is not a query: {error}"))
            })?,
            BodyKind::Text(_) => {
                let sql = String::from_utf8(bytes.into())
                    .map_err(|_| ApiError::new(ErrorCode::BadEncoding, "the query's text is not UTF-8"))?;
                SqlBody { sql, params: Vec::new(), database: None, max_rows: None, format: None }
            }
        };
        if body.sql.trim().is_empty() {
            return Err(ApiError::new(ErrorCode::EmptyQuery, "the query is empty"));
        }
        let database = body.database.or(header_text(headers, &["x-database"])?);
        // `*` stands for every database; qualified names always resolve.
        let database = database.filter(|name| !matches!(name.as_str(), "" | "*"));
        let limits = requested_limits(headers, Limits { max_rows: body.max_rows, ..settings.limits() })?;
        let params =
            body.params.iter().enumerate().map(|(index, value)| param(index, value)).collect::<Result<_, _>>()?;
        let language = match body_kind {
            BodyKind::Text(language) => language,
            BodyKind::Json => QueryLanguage::Sql,
        };
        let result_types = result_types(headers)?;
        let format = format(body.format.as_deref().or(query.format.as_deref()), headers)?;
        Ok(Self { language, text: body.sql, params, database, limits, result_types, format })
    }
}

/// The kind of the body, by its content type.
#[derive(Clone, Copy)]
enum BodyKind {
    Text(QueryLanguage),
    Json,
}

impl BodyKind {
    fn from_headers(headers: &HeaderMap) -> Result<Self, ApiError> {
        let content_type = header_text(headers, &["content-type"])?.unwrap_or_default();
        let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match media_type.as_str() {
            // The last one is what curl sends with `--data` by default.
            "" | "application/sql" | "text/plain" | "text/sql" | "application/x-www-form-urlencoded" => {
                Ok(Self::Text(QueryLanguage::Sql))
            }
            "application/x-kql" | "text/x-kql" => Ok(Self::Text(QueryLanguage::Kql)),
            "application/json" => Ok(Self::Json),
            other => {
                let message = format!("queries of type {other} are not supported");
                Err(ApiError::new(ErrorCode::UnsupportedMediaType, message)
                    .with_hint("send the query's text as application/sql or application/x-kql, or {\"sql\": ...} as application/json"))
            }
        }
    }
}

/// Returns the format that the `Accept` header prefers; NDJSON without one.
fn accepted_format(headers: &HeaderMap) -> Result<ResultFormat, ApiError> {
    let lines: Vec<&str> = headers.get_all("accept").iter().filter_map(|line| line.to_str().ok()).collect();
    if lines.is_empty() {
        return Ok(ResultFormat::Ndjson);
    }
    let accept = lines.join(",");
    let mut best: Option<(f32, ResultFormat)> = None;
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let format = match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
            "*/*" | "application/*" | "" => ResultFormat::Ndjson,
            "text/*" => ResultFormat::Csv,
            media_type => match ResultFormat::of_media_type(media_type) {
                Some(format) => format,
                None => continue,
            },
        };
        let quality = parts.find_map(|part| part.strip_prefix("q=")?.parse().ok()).unwrap_or(1.0);
        if quality > 0.0 && best.is_none_or(|(liked, _)| quality > liked) {
            best = Some((quality, format));
        }
    }
    best.map(|(_, format)| format).ok_or_else(|| {
        ApiError::new(ErrorCode::NotAcceptable, format!("results cannot be written as {accept}")).with_hint(
            "accept application/x-ndjson, application/json, text/csv, text/tab-separated-values, \
             application/vnd.apache.arrow.stream or application/vnd.apache.parquet",
        )
    })
}

/// Returns the format that the request names, else the one that its `Accept` header prefers.
fn format(named: Option<&str>, headers: &HeaderMap) -> Result<ResultFormat, ApiError> {
    match named {
        Some(name) => name.parse().map_err(|error: String| ApiError::new(ErrorCode::BadParameter, error)),
        None => accepted_format(headers),
    }
}

/// Converts a positional parameter. Numbers without a fraction are integers, or decimals where no integer has so many digits;
/// strings are cast by SQL; an array is a list, such as a vector.
fn param(index: usize, value: &RawValue) -> Result<ScalarValue, ApiError> {
    scalar(value).map_err(|problem| {
        ApiError::new(ErrorCode::BadParameter, format!("parameter ${} {problem}", index + 1))
            .with_hint("a parameter is a text, a number, a boolean, null, or an array of values of one of these types")
    })
}
