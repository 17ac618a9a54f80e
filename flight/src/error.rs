//! Errors on their way to a client, and how they are written in HTTP and gRPC.
//!
//! An [`ApiError`] carries the stable [`ErrorCode`] of what went wrong. HTTP handlers return it as it is; the outermost
//! layer renders it, since only that knows the request's id and which error shape its route speaks.

mod code;
mod conversions;

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use prost::Message;
use querent_agent::AgentError;
use querent_catalog::CatalogError;
use querent_engine::EngineError;
use serde_json::{Value, json};

pub use code::ErrorCode;

use crate::metrics;

/// An error on its way to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    code: ErrorCode,
    message: String,
    hint: Option<String>,
    budget: Option<Budget>,
    /// The other server that has the run.
    server: Option<String>,
    /// In gRPC, where it is another one than the code has.
    grpc_code: Option<tonic::Code>,
}

/// The limit that a query exceeded, for the header `X-Querent-Budget-Limit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// Wall clock, in milliseconds.
    WallClockMs(u128),
    /// Memory, in bytes.
    MemoryBytes(usize),
}

/// An error's status and body as its protocol writes them, in the response's extensions beside the [`ApiError`].
#[derive(Debug, Clone)]
pub(crate) struct RenderedError {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
}

/// How a route writes its errors, unless it renders them itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorShape {
    /// `{"error":{"code","message","hint","request_id"}}`.
    Object,
    /// `{"error":"message"}`, as the agent endpoints' protocol has it.
    Flat,
}

impl ErrorShape {
    /// Returns the shape of errors at `path`, whether or not there is such a route.
    pub(crate) fn for_path(path: &str) -> Self {
        const FLAT: [&str; 3] = ["/v1/agent/", "/api/v1/public/", "/api/v1/embed/"];
        if FLAT.iter().any(|prefix| path.starts_with(prefix)) { ErrorShape::Flat } else { ErrorShape::Object }
    }
}

/// The header that names the server, of those that share a catalog, on which the run of an answer is in progress.
pub(crate) const RUN_SERVER: HeaderName = HeaderName::from_static("x-querent-run-server");

/// How a caller says who it is.
pub(crate) const BEARER: HeaderValue = HeaderValue::from_static(r#"Bearer realm="querent""#);

impl ApiError {
    /// Makes an error.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, budget: None, server: None, grpc_code: None }
    }

    /// Adds what to do about it.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says what was done before it, and stays.
    pub(crate) fn with_what_stays(mut self, what: &str) -> Self {
        self.message = format!("{}; {what}", self.message);
        self
    }

    /// Names the limit that was exceeded.
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Has another code in gRPC than its own.
    pub(crate) fn with_grpc_code(mut self, code: tonic::Code) -> Self {
        self.grpc_code = Some(code);
        self
    }

    /// Names the other server that has the run.
    fn on_server(mut self, server: String) -> Self {
        self.server = Some(server);
        self
    }

    /// Makes the error for a bug. What happened goes to the log, not to the client.
    pub fn internal(detail: impl std::fmt::Display) -> Self {
        tracing::error!(%detail, "internal error");
        Self::new(ErrorCode::Internal, "internal error; the server's log says more under this request id")
    }

    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// What went wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it, where it is known.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The HTTP status of the code.
    pub fn http_status(&self) -> StatusCode {
        self.code.http_status()
    }

    /// Returns the body for a client.
    pub fn body(&self, shape: ErrorShape, request_id: &str) -> Value {
        match shape {
            ErrorShape::Flat => json!({ "error": self.message }),
            ErrorShape::Object => {
                let mut error = json!({ "code": self.code, "message": self.message });
                if let Some(hint) = &self.hint {
                    error["hint"] = json!(hint);
                }
                error["request_id"] = json!(request_id);
                json!({ "error": error })
            }
        }
    }

    /// Returns the headers that belong to the error: when to retry, how to authenticate, which limit it was.
    pub fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(pause) = self.code.retry_after() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(pause.as_secs()));
        }
        if self.http_status() == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, BEARER);
            headers.append(header::WWW_AUTHENTICATE, HeaderValue::from_static(r#"Basic realm="querent""#));
        }
        let limit = self.budget.map(|budget| match budget {
            Budget::WallClockMs(limit) => format!("{limit} wall_clock_ms"),
            Budget::MemoryBytes(limit) => format!("{limit} memory"),
        });
        if let Some(value) = limit.and_then(|limit| HeaderValue::from_str(&limit).ok()) {
            headers.insert("x-kyma-budget-limit", value.clone());
            headers.insert("x-querent-budget-limit", value);
        }
        if let Some(server) = self.server.as_deref().and_then(|server| HeaderValue::from_str(server).ok()) {
            headers.insert(RUN_SERVER, server);
        }
        headers
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for ApiError {}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> Self {
        if let EngineError::Catalog(damaged @ CatalogError::Corrupt { .. }) = error {
            return damaged.into();
        }
        let code = ErrorCode::from(&error);
        let budget = match &error {
            EngineError::WallClockExceeded { limit } => Some(Budget::WallClockMs(limit.as_millis())),
            _ => None,
        };
        let hint = error.hint();
        Self { code, message: client_message(code, &error), hint, budget, server: None, grpc_code: None }
    }
}

impl From<CatalogError> for ApiError {
    fn from(error: CatalogError) -> Self {
        let code = ErrorCode::from(&error);
        if matches!(error, CatalogError::Corrupt { .. }) {
            // Where it lies is for those who repair it.
            tracing::error!(%error, "the catalog cannot be read");
            let message = "the catalog, or a log beside it, is damaged";
            return Self::new(code, message)
                .with_hint("the server's log says what; `querent check` looks at the rest, and a backup has it");
        }
        Self::new(code, client_message(code, &error))
    }
}

impl From<AgentError> for ApiError {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Engine(error) => error.into(),
            AgentError::Catalog(error) => error.into(),
            error => {
                let code = ErrorCode::from(&error);
                let rendered = Self::new(code, client_message(code, &error));
                match error {
                    AgentError::RunElsewhere { server, .. } => rendered.on_server(server),
                    _ => rendered,
                }
            }
        }
    }
}

/// Returns the error's own message, unless it is a bug: a bug is logged instead, since its message may hold paths that
/// are not the client's business.
fn client_message(code: ErrorCode, error: &dyn std::error::Error) -> String {
    if code != ErrorCode::Internal {
        return error.to_string();
    }
    tracing::error!(%error, "internal error");
    "internal error; the server's log says more under this request id".to_owned()
}

/// Makes a response with the status and the headers. The outermost layer writes the body; it finds the error in the
/// response's extensions.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.http_status(), self.headers()).into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// The most bytes of a gRPC message. It travels in a header, percent-encoded to up to three times its size, and once more
/// in the details. Clients accept 16 KiB of headers by default and report nothing but a protocol error beyond.
const GRPC_MESSAGE_BYTES: usize = 2_000;

impl From<ApiError> for tonic::Status {
    fn from(error: ApiError) -> Self {
        metrics::error(error.code.as_str());
        let grpc_code = error.grpc_code.unwrap_or_else(|| error.code.grpc_code());
        let mut message = match &error.hint {
            // Behind the place of a statement that a message shows, a hint has a line of its own.
            Some(hint) if error.message.contains('\n') => format!("{}\n{hint}", error.message),
            Some(hint) => format!("{}; {hint}", error.message),
            None => error.message.clone(),
        };
        if message.len() > GRPC_MESSAGE_BYTES {
            message.truncate(message.floor_char_boundary(GRPC_MESSAGE_BYTES));
            message.push('…');
        }
        let info = ErrorInfo { reason: error.code.to_string(), domain: "querent".to_owned() };
        let details = RpcStatus {
            code: grpc_code as i32,
            message: message.clone(),
            details: vec![prost_types::Any {
                type_url: "type.googleapis.com/google.rpc.ErrorInfo".to_owned(),
                value: info.encode_to_vec(),
            }],
        };
        let mut metadata = tonic::metadata::MetadataMap::new();
        metadata.insert("x-querent-code", tonic::metadata::MetadataValue::from_static(error.code.as_str()));
        tonic::Status::with_details_and_metadata(grpc_code, message, details.encode_to_vec().into(), metadata)
    }
}

/// `google.rpc.Status`, which gRPC clients look for in the `grpc-status-details-bin` trailer.
#[derive(Clone, PartialEq, prost::Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<prost_types::Any>,
}

/// `google.rpc.ErrorInfo`: `reason` is our stable code.
#[derive(Clone, PartialEq, prost::Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(string, tag = "2")]
    domain: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_damaged_catalog_lies_is_for_the_log() {
        let damaged = || CatalogError::Corrupt { path: "/srv/lake/catalog.sqlite".into(), detail: "page 7".to_owned() };
        for told in [ApiError::from(damaged()), ApiError::from(EngineError::from(damaged()))] {
            assert_eq!(told.code(), ErrorCode::CatalogCorrupt);
            assert!(!told.message().contains("srv") && told.hint().is_some(), "{told}");
        }
    }
}
