//! One mapping from error codes to HTTP statuses, gRPC codes and bodies, used by every door.
//!
//! An [`ApiError`] carries the stable code of the crate it came from. HTTP handlers return it as it is; the
//! outermost layer renders it, since only that knows the request's id and which error shape its route speaks.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use prost::Message;
use querent_agent::AgentError;
use querent_catalog::CatalogError;
use querent_engine::EngineError;
use serde_json::{Value, json};

/// An error on its way to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    code: &'static str,
    message: String,
    hint: Option<String>,
    budget: Option<Budget>,
}

/// Which limit a query exceeded; told in `X-Kyma-Budget-Limit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// Wall clock, in milliseconds.
    WallClockMs(u128),
    /// Memory, in bytes.
    MemoryBytes(usize),
}

/// How a route writes its errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorShape {
    /// `{"error":{"code","message","hint","request_id"}}`.
    Object,
    /// `{"error":"message"}`, as the agent endpoints' protocol has it.
    Flat,
}

impl ApiError {
    /// An error of a documented code.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, budget: None }
    }

    /// The same error, with what to do about it.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same error, naming the limit that was exceeded.
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// A bug. What happened goes to the log, not to the client.
    pub fn internal(detail: impl std::fmt::Display) -> Self {
        tracing::error!(%detail, "internal error");
        Self::new("internal", "internal error; the server's log says more under this request id")
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
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
        match self.code {
            "unauthenticated" => StatusCode::UNAUTHORIZED,
            "forbidden" | "not_allowed" | "location_not_allowed" | "store_access_denied" => StatusCode::FORBIDDEN,
            "not_found"
            | "run_not_found"
            | "object_not_found"
            | "database_not_found"
            | "conversation_not_found"
            | "item_not_found"
            | "pending_call_not_found"
            | "file_not_found"
            | "session_not_found" => StatusCode::NOT_FOUND,
            "method_not_allowed" => StatusCode::METHOD_NOT_ALLOWED,
            "not_acceptable" => StatusCode::NOT_ACCEPTABLE,
            "already_exists"
            | "item_exists"
            | "conflict"
            | "conversation_locked"
            | "already_resumed"
            | "database_not_empty" => StatusCode::CONFLICT,
            "body_too_large" => StatusCode::PAYLOAD_TOO_LARGE,
            "unsupported_media_type" => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "too_many_requests" | "too_many_runs" | "wall_clock_exceeded" | "memory_exceeded" => {
                StatusCode::TOO_MANY_REQUESTS
            }
            "shutting_down" | "model_unreachable" | "catalog_busy" | "store_unavailable" => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            "model_not_found" | "model_failed" | "store_error" => StatusCode::BAD_GATEWAY,
            code if is_callers_fault(code) => StatusCode::BAD_REQUEST,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The gRPC code of the code. ADBC tells its user apart by `NOT_FOUND`, `ALREADY_EXISTS` and `INVALID_ARGUMENT`.
    pub fn grpc_code(&self) -> tonic::Code {
        use tonic::Code;
        match self.code {
            "unauthenticated" => Code::Unauthenticated,
            "forbidden" | "not_allowed" | "location_not_allowed" | "store_access_denied" => Code::PermissionDenied,
            "not_found"
            | "run_not_found"
            | "object_not_found"
            | "database_not_found"
            | "table_not_found"
            | "conversation_not_found"
            | "item_not_found"
            | "pending_call_not_found"
            | "file_not_found"
            | "session_not_found"
            | "ticket_expired"
            | "no_such_bucket" => Code::NotFound,
            "already_exists" | "item_exists" => Code::AlreadyExists,
            "conflict" => Code::Aborted,
            "database_not_empty" | "unsupported_lake" | "ticket_used" | "missing_credentials" => {
                Code::FailedPrecondition
            }
            "unsupported" | "method_not_allowed" => Code::Unimplemented,
            "wall_clock_exceeded" => Code::DeadlineExceeded,
            "too_many_requests" | "too_many_runs" | "memory_exceeded" | "body_too_large" => Code::ResourceExhausted,
            "shutting_down" | "model_unreachable" | "catalog_busy" | "store_unavailable" => Code::Unavailable,
            code if is_callers_fault(code) => Code::InvalidArgument,
            _ => Code::Internal,
        }
    }

    /// The body for a client.
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

    /// The headers that belong to the error: when to come back, how to authenticate, which limit it was.
    pub fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        match self.http_status() {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(r#"Bearer realm="querent""#));
                headers.append(header::WWW_AUTHENTICATE, HeaderValue::from_static(r#"Basic realm="querent""#));
            }
            _ => {}
        }
        let limit = self.budget.map(|budget| match budget {
            Budget::WallClockMs(limit) => format!("{limit} wall_clock_ms"),
            Budget::MemoryBytes(limit) => format!("{limit} memory"),
        });
        if let Some(value) = limit.and_then(|limit| HeaderValue::from_str(&limit).ok()) {
            headers.insert("x-kyma-budget-limit", value.clone());
            headers.insert("x-querent-budget-limit", value);
        }
        headers
    }
}

/// Codes of requests that will fail again however often they are sent.
fn is_callers_fault(code: &str) -> bool {
    // All of KQL's own codes say what is wrong with the text.
    code.starts_with("kql_")
        || matches!(
            code,
            "bad_request"
                | "bad_encoding"
                | "bad_header"
                | "bad_parameter"
                | "bad_request_body"
                | "bad_data"
                | "empty_query"
                | "empty_question"
                | "invalid_request"
                | "too_many_external_users"
                | "images_not_supported"
                | "sql_parse_error"
                | "sql_plan_error"
                | "multiple_statements"
                | "table_not_found"
                | "column_not_found"
                | "function_not_found"
                | "invalid_name"
                | "invalid_object"
                | "invalid_ticket"
                | "unsupported"
                | "unsupported_type"
                | "unsupported_lake"
                | "no_files"
                | "no_such_bucket"
                | "missing_credentials"
        )
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for ApiError {}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> Self {
        let code = error.code();
        let budget = match &error {
            EngineError::WallClockExceeded { limit } => Some(Budget::WallClockMs(limit.as_millis())),
            _ => None,
        };
        let hint = error.hint();
        Self { code, message: client_message(code, &error), hint, budget }
    }
}

impl From<CatalogError> for ApiError {
    fn from(error: CatalogError) -> Self {
        let code = error.code();
        Self::new(code, client_message(code, &error))
    }
}

impl From<AgentError> for ApiError {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Engine(error) => error.into(),
            AgentError::Catalog(error) => error.into(),
            error => {
                let code = error.code();
                Self::new(code, client_message(code, &error))
            }
        }
    }
}

/// The error's own words, unless it is a bug: those are logged, and may hold paths that are not the client's business.
fn client_message(code: &str, error: &dyn std::error::Error) -> String {
    if code != "internal" {
        return error.to_string();
    }
    tracing::error!(%error, "internal error");
    "internal error; the server's log says more under this request id".to_owned()
}

/// An error response: the status and headers are there, the body is written by the outermost layer, which finds the
/// error in the response's extensions.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.http_status(), self.headers()).into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Bytes of a gRPC message. It travels in a header, percent-encoded, which takes up to three times as many, and again in
/// the details; clients take 16 KiB of headers by default, and see nothing but a protocol error beyond.
const GRPC_MESSAGE_BYTES: usize = 2_000;

impl From<ApiError> for tonic::Status {
    fn from(error: ApiError) -> Self {
        crate::metrics::error(error.code());
        let grpc_code = error.grpc_code();
        let mut message = match &error.hint {
            Some(hint) => format!("{}; {hint}", error.message),
            None => error.message.clone(),
        };
        if message.len() > GRPC_MESSAGE_BYTES {
            message.truncate(message.floor_char_boundary(GRPC_MESSAGE_BYTES));
            message.push('…');
        }
        let info = ErrorInfo { reason: error.code.to_owned(), domain: "querent".to_owned() };
        let details = RpcStatus {
            code: grpc_code as i32,
            message: message.clone(),
            details: vec![prost_types::Any {
                type_url: "type.googleapis.com/google.rpc.ErrorInfo".to_owned(),
                value: info.encode_to_vec(),
            }],
        };
        let mut metadata = tonic::metadata::MetadataMap::new();
        metadata.insert("x-querent-code", tonic::metadata::MetadataValue::from_static(error.code));
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
