//! Reading requests: who calls, bounded bodies, query parameters, page tokens. Every failure is an [`ApiError`].

use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::HeaderMap;
use http::request::Parts;
use querent_catalog::{PageRequest, PageToken, Principal};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::arriving::read_body;
use crate::error::{ApiError, ErrorCode};
use crate::state::AppState;

/// A request's id, from its client or made here; it is in every request's extensions.
#[derive(Debug, Clone)]
pub(super) struct RequestId(pub(super) String);

/// What most handlers begin with: the server, and who calls it.
pub(super) struct ApiCall {
    pub(super) state: AppState,
    pub(super) principal: Principal,
}

impl FromRequestParts<AppState> for ApiCall {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let principal = parts.extensions.get::<Principal>().cloned();
        let principal = principal.ok_or_else(|| ApiError::internal("a route asks who calls and lets everybody in"))?;
        Ok(Self { state: state.clone(), principal })
    }
}

/// The whole body of a query or a question, at most `http.max_query_bytes`.
/// Errors: as [`read_body`].
pub(super) struct QueryBytes(pub(super) Bytes);

impl FromRequest<AppState> for QueryBytes {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        Ok(Self(read_body(request.into_body(), state.settings.http.max_query_bytes.0, &state.settings.http).await?))
    }
}

/// Bodies of more bytes are parsed on a blocking thread: with them come schemas that take longer to compile than others
/// may wait for a thread that answers requests.
const INLINE_BODY_BYTES: usize = 256 * 1024;

/// Parses a body, on a blocking thread if it is large.
pub(super) async fn parse_off_runtime<T: Send + 'static>(
    body: Bytes,
    parse: impl FnOnce(&[u8]) -> T + Send + 'static,
) -> Result<T, ApiError> {
    match body.len() > INLINE_BODY_BYTES {
        true => tokio::task::spawn_blocking(move || parse(&body)).await.map_err(ApiError::internal),
        false => Ok(parse(&body)),
    }
}

/// A body of JSON that describes a few objects of the catalog, at most 1 MiB.
/// Errors: as [`read_body`].
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<AppState> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        const MAX_BYTES: u64 = 1 << 20;
        let bytes = read_body(request.into_body(), MAX_BYTES, &state.settings.http).await?;
        serde_json::from_slice(&bytes).map(Self).map_err(|error| {
            ApiError::new(ErrorCode::BadRequestBody, format!("the body is not what this route takes: {error}"))
        })
    }
}

/// Query parameters. A route that refuses unknown ones says so in the type.
pub(super) struct Params<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        let Query(value) = query.map_err(|rejection| bad_parameter(rejection.body_text()))?;
        Ok(Self(value))
    }
}

/// The one variable part of a path.
pub(super) struct PathText(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for PathText {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let Path(text) = path.map_err(|rejection| bad_parameter(rejection.body_text()))?;
        Ok(Self(text))
    }
}

fn bad_parameter(message: String) -> ApiError {
    ApiError::new(ErrorCode::BadParameter, message)
}

/// Returns the first of these headers that is present. Errors: `bad_header`.
pub(super) fn header_text(headers: &HeaderMap, names: &[&str]) -> Result<Option<String>, ApiError> {
    let Some((name, value)) = names.iter().find_map(|name| Some((name, headers.get(*name)?))) else {
        return Ok(None);
    };
    // Names of databases are not ASCII alone.
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(_) => Err(ApiError::new(ErrorCode::BadHeader, format!("header {name} is not UTF-8 text"))),
    }
}

/// Parses the id of a relationship, metric or verified query. Errors: `bad_parameter`.
pub(super) fn parse_object_id(text: &str) -> Result<i64, ApiError> {
    text.parse()
        .map_err(|_| ApiError::new(ErrorCode::BadParameter, format!("`{text}` is not an id; ids are whole numbers")))
}

/// Returns the error for a body that does not arrive in time.
pub(super) fn too_slow(within: Duration) -> ApiError {
    ApiError::new(ErrorCode::BodyTimeout, format!("the request's body did not come within {within:?}"))
}

/// Returns the error for a body over its limit.
pub(super) fn too_large(limit: u64) -> ApiError {
    ApiError::new(ErrorCode::BodyTooLarge, format!("the request's body is larger than {limit} bytes"))
}

/// `limit` and `page_token`, as every listing takes them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageParams {
    limit: Option<usize>,
    page_token: Option<String>,
}

impl PageParams {
    /// Returns the catalog's page request, of `default` items unless the client asks for another number.
    pub(super) fn page(self, default: usize) -> PageRequest {
        PageRequest { limit: self.limit.unwrap_or(default), after: self.page_token.map(PageToken) }
    }
}

/// Encodes a position in a listing as an opaque token.
pub(super) fn encode_token<T: Serialize>(place: &T) -> Result<String, ApiError> {
    let json = serde_json::to_vec(place).map_err(ApiError::internal)?;
    Ok(URL_SAFE_NO_PAD.encode(json))
}

/// Decodes a token of [`encode_token`]. Errors: `bad_parameter`.
pub(super) fn decode_token<T: DeserializeOwned>(token: &str) -> Result<T, ApiError> {
    let bad =
        || ApiError::new(ErrorCode::BadParameter, "page_token is not one that this server made; start without it");
    let json = URL_SAFE_NO_PAD.decode(token).map_err(|_| bad())?;
    serde_json::from_slice(&json).map_err(|_| bad())
}
