//! Errors as OpenAI's clients read them: `{"error": {message, type, param, code}}`, with `detail` beside it for
//! callers of KsADK. Their clients retry after 409 and 5xx unless a header forbids it; a run must not be repeated.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use querent_agent::protocols::responses::BadRequest;
use querent_agent::{AgentError, ContinueError, RunErrorCode};
use querent_catalog::CatalogError;
use serde_json::{Map, Value, json};

use crate::error::{ApiError, ErrorCode};
use crate::http::response::json_response;
use crate::http::route::RefusedParameter;
use crate::metrics;

const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// The parts of an error, in the response's extensions, for surfaces that write it in a shape of their own too.
#[derive(Debug, Clone)]
pub(crate) struct OpenAiErrorParts {
    pub(crate) message: String,
    pub(crate) code: ErrorCode,
    pub(crate) body: Value,
}

/// An error on its way to a client of this surface.
#[derive(Debug)]
pub(crate) struct OpenAiError {
    status: StatusCode,
    message: String,
    param: Option<String>,
    code: ErrorCode,
    /// Whether sending the request again could run something twice.
    is_final: bool,
    /// When to retry, how to authenticate.
    headers: Box<HeaderMap>,
}

impl OpenAiError {
    /// Makes the error of a run that failed; `detail_code` is our own code in its `run_error`.
    pub(crate) fn from_run(code: RunErrorCode, message: &str, detail_code: &str) -> Self {
        let detail = ErrorCode::from_name(detail_code).unwrap_or(ErrorCode::Internal);
        let status = match code {
            RunErrorCode::Timeout => StatusCode::GATEWAY_TIMEOUT,
            RunErrorCode::InitError if detail == ErrorCode::ImagesNotSupported => StatusCode::BAD_REQUEST,
            RunErrorCode::InitError if detail == ErrorCode::ModelUnreachable => StatusCode::SERVICE_UNAVAILABLE,
            RunErrorCode::InitError | RunErrorCode::RunnerError => StatusCode::BAD_GATEWAY,
            RunErrorCode::ToolLoop | RunErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let code = if code == RunErrorCode::Timeout { ErrorCode::Timeout } else { detail };
        Self { status, message: message.to_owned(), param: None, code, is_final: true, headers: Box::default() }
    }

    pub(crate) fn not_found(code: ErrorCode, message: impl Into<String>) -> Self {
        let (status, message) = (StatusCode::NOT_FOUND, message.into());
        Self { status, message, param: None, code, is_final: false, headers: Box::default() }
    }

    /// Names `messages` where Responses have `input`, for requests that have those.
    pub(crate) fn of_messages(self) -> Self {
        self.of_input("messages")
    }

    /// Names the field `name` where Responses have `input`.
    pub(crate) fn of_input(self, name: &str) -> Self {
        match self.param.as_deref() {
            Some("input") => self.with_param(name),
            _ => self,
        }
    }

    /// Names `prompt` where Chat Completions have `messages`, for requests that have that.
    pub(crate) fn of_prompt(self) -> Self {
        match self.param.as_deref() {
            Some("messages") => {
                let message = self.message.replacen("`messages`", "`prompt`", 1);
                Self { message, ..self }.with_param("prompt")
            }
            _ => self,
        }
    }

    /// Names the faulty parameter.
    pub(crate) fn with_param(self, param: &str) -> Self {
        Self { param: Some(param.to_owned()), ..self }
    }

    pub(crate) fn bad_request(code: ErrorCode, param: &str, message: impl Into<String>) -> Self {
        let (status, message) = (StatusCode::BAD_REQUEST, message.into());
        Self { status, message, param: Some(param.to_owned()), code, is_final: false, headers: Box::default() }
    }

    /// Makes the error for a part of the protocol that is not supported.
    pub(crate) fn not_supported(code: ErrorCode, message: impl Into<String>) -> Self {
        let (status, message) = (StatusCode::NOT_IMPLEMENTED, message.into());
        Self { status, message, param: None, code, is_final: true, headers: Box::default() }
    }

    /// Makes the error for what this server has and cannot use now.
    pub(crate) fn unavailable(code: ErrorCode, message: impl Into<String>) -> Self {
        let (status, message) = (StatusCode::SERVICE_UNAVAILABLE, message.into());
        Self { status, message, param: None, code, is_final: true, headers: Box::default() }
    }

    /// Returns it as the event that a WebSocket has for errors, and counts it.
    pub(crate) fn event(&self) -> Value {
        metrics::error(self.code.as_str());
        let mut error = self.object();
        let texts = self.headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let headers: Map<String, Value> = texts.map(|(name, value)| (name.to_owned(), json!(value))).collect();
        if !headers.is_empty() {
            error["headers"] = Value::Object(headers);
        }
        json!({ "type": "error", "status": self.status.as_u16(), "error": error })
    }

    fn object(&self) -> Value {
        let kind = match self.status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::FORBIDDEN => "permission_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        };
        json!({ "message": self.message, "type": kind, "param": self.param, "code": self.code })
    }

    /// Makes the error for a request that is no WebSocket's where one is wanted.
    pub(crate) fn upgrade_required(message: impl Into<String>) -> Self {
        let (status, message, code) = (StatusCode::UPGRADE_REQUIRED, message.into(), ErrorCode::InvalidRequest);
        let headers = [(header::UPGRADE, HeaderValue::from_static("websocket"))].into_iter().collect();
        Self { status, message, param: None, code, is_final: false, headers: Box::new(headers) }
    }

    /// Makes the error for a conflict that sending the request again does not resolve.
    pub(crate) fn conflict(code: ErrorCode, message: impl Into<String>) -> Self {
        let (status, message) = (StatusCode::CONFLICT, message.into());
        Self { status, message, param: None, code, is_final: true, headers: Box::default() }
    }
}

/// Writes errors from before the handlers (a wrong token, a wrong parameter) in this surface's shape too.
pub(in crate::http) async fn render_errors(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let refused = response.extensions_mut().remove::<RefusedParameter>();
    match (response.extensions_mut().remove::<ApiError>(), refused) {
        (Some(error), Some(RefusedParameter(name))) => OpenAiError::from(error).with_param(&name).into_response(),
        (Some(error), None) => OpenAiError::from(error).into_response(),
        (None, _) => response,
    }
}

impl From<ApiError> for OpenAiError {
    fn from(error: ApiError) -> Self {
        let message = match error.hint() {
            Some(hint) => format!("{}; {hint}", error.message()),
            None => error.message().to_owned(),
        };
        let status = error.http_status();
        let is_final = status == StatusCode::CONFLICT;
        Self { status, message, param: None, code: error.code(), is_final, headers: Box::new(error.headers()) }
    }
}

impl From<AgentError> for OpenAiError {
    fn from(error: AgentError) -> Self {
        let (status, param) = match &error {
            AgentError::UnknownModel { .. } => (Some(StatusCode::NOT_FOUND), Some("model")),
            AgentError::EmptyQuestion => (None, Some("input")),
            AgentError::QuestionTooLong { field, .. } => (None, Some(*field)),
            _ => (None, None),
        };
        let mut error = Self::from(ApiError::from(error));
        error.status = status.unwrap_or(error.status);
        error.param = param.map(str::to_owned);
        error
    }
}

impl From<CatalogError> for OpenAiError {
    fn from(error: CatalogError) -> Self {
        Self::from(ApiError::from(error))
    }
}

impl From<BadRequest> for OpenAiError {
    fn from(error: BadRequest) -> Self {
        let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::BAD_REQUEST);
        let is_final = status == StatusCode::CONFLICT;
        Self {
            status,
            message: error.message,
            param: error.param,
            code: ErrorCode::from_name(error.code).unwrap_or(ErrorCode::InvalidRequest),
            is_final,
            headers: Box::default(),
        }
    }
}

impl From<ContinueError> for OpenAiError {
    fn from(error: ContinueError) -> Self {
        match error {
            ContinueError::Request(error) => error.into(),
            ContinueError::Agent(error) => error.into(),
        }
    }
}

impl IntoResponse for OpenAiError {
    fn into_response(self) -> Response {
        metrics::error(self.code.as_str());
        let body = json!({ "error": self.object(), "detail": self.message });
        let mut response = json_response(self.status, &body);
        response.extensions_mut().insert(OpenAiErrorParts { message: self.message, code: self.code, body });
        response.headers_mut().extend(*self.headers);
        if self.is_final {
            response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        response
    }
}
