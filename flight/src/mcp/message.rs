//! A message of JSON-RPC, as far as it is looked at before the protocol library reads it, and its refusal. Over HTTP and over
//! standard input the same messages are refused.

use serde_json::{Value, json};

use super::app::is_announced_by;
use crate::error::{ApiError, ErrorCode};

/// JSON-RPC's codes.
const PARSE_ERROR: i64 = -32_700;
const INVALID_REQUEST: i64 = -32_600;
const INVALID_PARAMS: i64 = -32_602;
const SERVER_ERROR: i64 = -32_000;

/// What must be known about a message before it is served.
pub(crate) struct RpcMessage {
    /// Of a request; a notification has none.
    pub(crate) id: Option<Value>,
    /// Whether it begins a session.
    pub(crate) is_initialize: bool,
    /// The id of the request that this notification cancels.
    pub(crate) cancels: Option<Value>,
    /// Whether this `initialize` says that its client shows apps.
    pub(crate) shows_apps: bool,
    /// Whether this asks for a page of a list by what is no cursor.
    has_wrong_cursor: bool,
}

impl RpcMessage {
    /// Errors: `invalid_request` for what is no message.
    pub(crate) fn of(message: &Value) -> Result<Self, ApiError> {
        if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(ApiError::new(ErrorCode::InvalidRequest, "the body is not a message of JSON-RPC 2.0"));
        }
        let method = message.get("method").and_then(Value::as_str);
        let id = message.get("id").filter(|id| id.is_string() || id.is_i64()).cloned();
        if id.is_none() && method.is_some() && message.get("id").is_some() {
            return Err(ApiError::new(
                ErrorCode::InvalidRequest,
                "the `id` of a request is a string or a whole number",
            ));
        }
        let cancels = message
            .pointer("/params/requestId")
            .filter(|_| method == Some("notifications/cancelled"))
            .filter(|id| id.is_string() || id.is_number())
            .cloned();
        // One whose params are none is answered with an error, and begins no session.
        let params = &message["params"];
        let has_params = params["protocolVersion"].is_string()
            && params["capabilities"].is_object()
            && ["name", "version"].iter().all(|name| params["clientInfo"][*name].is_string());
        let is_initialize = method == Some("initialize") && has_params;
        let shows_apps = is_initialize && is_announced_by(params);
        let is_list = method.is_some_and(|method| method.ends_with("/list"));
        let has_wrong_cursor = is_list && !(params["cursor"].is_null() || params["cursor"].is_string());
        Ok(Self { id: id.filter(|_| method.is_some()), is_initialize, cancels, shows_apps, has_wrong_cursor })
    }

    /// Refuses what is no cursor: the protocol library would take it for none, and the client would read the first page for
    /// ever. Errors: `bad_parameter`.
    pub(crate) fn check_cursor(&self) -> Result<(), ApiError> {
        if self.has_wrong_cursor {
            return Err(ApiError::new(ErrorCode::BadParameter, "the cursor is no string, and none of this list")
                .with_hint("leave the cursor out"));
        }
        Ok(())
    }
}

/// Returns the error that answers a message; `id` is null where no request is known.
pub(crate) fn refusal(error: &ApiError, id: &Value) -> Value {
    let code = match error.code() {
        ErrorCode::BadRequestBody => PARSE_ERROR,
        ErrorCode::InvalidRequest | ErrorCode::SessionNotFound => INVALID_REQUEST,
        ErrorCode::BadParameter => INVALID_PARAMS,
        _ => SERVER_ERROR,
    };
    let mut data = json!({ "code": error.code() });
    if let Some(hint) = error.hint() {
        data["hint"] = json!(hint);
    }
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": error.message(), "data": data } })
}
