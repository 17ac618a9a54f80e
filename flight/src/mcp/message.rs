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

/// What the client of a session can do, as it says when the session begins.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ClientAbilities {
    /// It shows apps.
    pub(crate) shows_apps: bool,
    /// It asks its user what the server wants to know.
    pub(crate) asks_user: bool,
}

/// What must be known about a message before it is served.
pub(crate) struct RpcMessage {
    /// Of a request; a notification has none.
    pub(crate) id: Option<Value>,
    /// Whether it begins a session.
    pub(crate) is_initialize: bool,
    /// The id of the request that this notification cancels.
    pub(crate) cancels: Option<Value>,
    /// The id of the server's request that this answers, and the whole message.
    pub(crate) answers: Option<(String, Value)>,
    /// What this `initialize` says of its client.
    pub(crate) client: ClientAbilities,
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
        let client = match is_initialize {
            true => ClientAbilities { shows_apps: is_announced_by(params), asks_user: asks_user(params) },
            false => ClientAbilities::default(),
        };
        let is_answer = method.is_none() && (message.get("result").is_some() || message.get("error").is_some());
        let answers = message["id"].as_str().filter(|_| is_answer).map(|id| (id.to_owned(), message.clone()));
        let is_list = method.is_some_and(|method| method.ends_with("/list"));
        let has_wrong_cursor = is_list && !(params["cursor"].is_null() || params["cursor"].is_string());
        let id = id.filter(|_| method.is_some());
        Ok(Self { id, is_initialize, cancels, answers, client, has_wrong_cursor })
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

/// Whether the params of an `initialize` say that the client asks its user by forms, which is meant where no mode is named.
fn asks_user(initialize: &Value) -> bool {
    let elicitation = &initialize["capabilities"]["elicitation"];
    elicitation.is_object() && (elicitation["form"].is_object() || elicitation["url"].is_null())
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
