//! Errors as HolmesGPT's clients read them: `{"detail": ...}`, a string, or a list for invalid fields.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use querent_agent::AgentError;
use querent_agent::protocols::holmes::{BadHolmesRequest, HolmesFailure};
use querent_catalog::CatalogError;
use serde_json::{Value, json};

use crate::error::{ApiError, ErrorCode};
use crate::http::response::json_response;
use crate::metrics;

/// An error on its way to a client of this surface.
#[derive(Debug)]
pub(in crate::http) struct HolmesError {
    status: StatusCode,
    detail: Value,
    code: ErrorCode,
    headers: Box<HeaderMap>,
}

impl HolmesError {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let is_missing = status == StatusCode::NOT_IMPLEMENTED;
        let code = if is_missing { ErrorCode::NotImplemented } else { ErrorCode::InvalidRequest };
        Self { status, detail: json!(detail.into()), code, headers: Box::default() }
    }
}

/// Writes errors from before the handlers in this surface's shape too.
pub(super) async fn render_errors(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    match response.extensions_mut().remove::<ApiError>() {
        Some(error) => HolmesError::from(error).into_response(),
        None => response,
    }
}

impl From<ApiError> for HolmesError {
    fn from(error: ApiError) -> Self {
        let detail = match (error.code(), error.hint()) {
            (ErrorCode::Unauthenticated, _) => "Invalid or missing API key".to_owned(),
            (_, Some(hint)) => format!("{}; {hint}", error.message()),
            (_, None) => error.message().to_owned(),
        };
        Self {
            status: error.http_status(),
            detail: json!(detail),
            code: error.code(),
            headers: Box::new(error.headers()),
        }
    }
}

impl From<AgentError> for HolmesError {
    fn from(error: AgentError) -> Self {
        ApiError::from(error).into()
    }
}

impl From<CatalogError> for HolmesError {
    fn from(error: CatalogError) -> Self {
        ApiError::from(error).into()
    }
}

impl From<BadHolmesRequest> for HolmesError {
    fn from(error: BadHolmesRequest) -> Self {
        Self {
            status: StatusCode::from_u16(error.status).unwrap_or(StatusCode::BAD_REQUEST),
            detail: error.detail,
            code: ErrorCode::InvalidRequest,
            headers: Box::default(),
        }
    }
}

impl From<&HolmesFailure> for HolmesError {
    fn from(failure: &HolmesFailure) -> Self {
        let code = ErrorCode::from_name(&failure.detail_code).unwrap_or(ErrorCode::Internal);
        let status = match code {
            ErrorCode::ModelAuth => StatusCode::UNAUTHORIZED,
            ErrorCode::ModelRateLimited => StatusCode::TOO_MANY_REQUESTS,
            ErrorCode::ImagesNotSupported => StatusCode::BAD_REQUEST,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { status, detail: json!(failure.message), code, headers: Box::default() }
    }
}

impl IntoResponse for HolmesError {
    fn into_response(self) -> Response {
        metrics::error(self.code.as_str());
        let mut response = json_response(self.status, &json!({ "detail": self.detail }));
        response.headers_mut().extend(*self.headers);
        response
    }
}
