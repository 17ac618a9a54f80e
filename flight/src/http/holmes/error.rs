//! Errors as HolmesGPT's clients read them: `{"detail": ...}`, a text, or a list for fields that are not what they
//! should be.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use querent_agent::AgentError;
use querent_agent::protocols::holmes::{BadHolmesRequest, HolmesFailure};
use querent_catalog::CatalogError;
use serde_json::{Value, json};

use super::super::openai::json_response;
use crate::error::ApiError;
use crate::metrics;

/// An error on its way to a client of this surface.
#[derive(Debug)]
pub(super) struct HolmesError {
    status: StatusCode,
    detail: Value,
    code: String,
    headers: Box<HeaderMap>,
}

impl HolmesError {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let code = if status == StatusCode::NOT_IMPLEMENTED { "not_implemented" } else { "invalid_request" };
        Self { status, detail: json!(detail.into()), code: code.to_owned(), headers: Box::default() }
    }
}

/// Errors from before the handlers in this surface's words too.
pub(super) async fn around(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    match response.extensions_mut().remove::<ApiError>() {
        Some(error) => HolmesError::from(error).into_response(),
        None => response,
    }
}

pub(super) async fn method_not_allowed() -> HolmesError {
    HolmesError {
        code: "method_not_allowed".to_owned(),
        ..HolmesError::new(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed")
    }
}

impl From<ApiError> for HolmesError {
    fn from(error: ApiError) -> Self {
        let detail = match (error.code(), error.hint()) {
            ("unauthenticated", _) => "Invalid or missing API key".to_owned(),
            (_, Some(hint)) => format!("{}; {hint}", error.message()),
            (_, None) => error.message().to_owned(),
        };
        Self {
            status: error.http_status(),
            detail: json!(detail),
            code: error.code().to_owned(),
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
            code: "invalid_request".to_owned(),
            headers: Box::default(),
        }
    }
}

impl From<&HolmesFailure> for HolmesError {
    fn from(failure: &HolmesFailure) -> Self {
        let status = match failure.detail_code.as_str() {
            "model_auth" => StatusCode::UNAUTHORIZED,
            "model_rate_limited" => StatusCode::TOO_MANY_REQUESTS,
            "images_not_supported" => StatusCode::BAD_REQUEST,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { status, detail: json!(failure.message), code: failure.detail_code.clone(), headers: Box::default() }
    }
}

impl IntoResponse for HolmesError {
    fn into_response(self) -> Response {
        metrics::error(&self.code);
        let mut response = json_response(self.status, &json!({ "detail": self.detail }));
        response.headers_mut().extend(*self.headers);
        response
    }
}
