//! A2A, the protocol between agents: a message begins a task, which is a run; its context is a conversation. Spoken as
//! JSON-RPC in the versions 1.0 and 0.3, which name and write the same things differently. References:
//! <https://a2a-protocol.org/latest/specification/>.

mod card;
mod error_object;
mod listing;
mod piece;
mod render;

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::fields::{FieldValues, check_members, check_names};
use super::json::parse_json;
use super::kind_of;
use super::responses::{BadRequest, InputContent, InputItem, MAX_ID_BYTES, parse_content};
use crate::models::ChatRole;
use crate::request::{Protocol, RunRequest};

pub use card::agent_card;
pub use error_object::error_object;
pub use listing::{TaskFilter, task_list};
pub use render::A2aRenderer;

/// JSON-RPC's codes, and the protocol's own.
pub const PARSE_ERROR: i64 = -32_700;
/// The body is no request.
pub const INVALID_REQUEST: i64 = -32_600;
/// There is no such method.
pub const METHOD_NOT_FOUND: i64 = -32_601;
/// The parameters are wrong.
pub const INVALID_PARAMS: i64 = -32_602;
/// Anything else.
pub const INTERNAL_ERROR: i64 = -32_603;
/// There is no such task.
pub const TASK_NOT_FOUND: i64 = -32_001;
/// The task has ended.
pub const TASK_NOT_CANCELABLE: i64 = -32_002;
/// No webhooks are called from here.
pub const PUSH_NOT_SUPPORTED: i64 = -32_003;
/// Known, and not done here.
pub const UNSUPPORTED_OPERATION: i64 = -32_004;
/// The model reads no files of this type.
pub const CONTENT_TYPE_NOT_SUPPORTED: i64 = -32_005;
/// The client speaks another version.
pub const VERSION_NOT_SUPPORTED: i64 = -32_009;
/// The versions that are spoken, as their header names them.
const VERSIONS: [&str; 2] = ["0.3", "1.0"];

/// Our code of a part whose type the model does not read, and the types of which that is known.
const UNREAD_TYPE: &str = "unsupported_media_type";
const UNREAD_TYPES: [&str; 2] = ["audio", "video"];
/// Our code of a message for a task that is not there.
const UNKNOWN_TASK: &str = "task_not_found";

/// The members of a request.
const ENVELOPE: [&str; 4] = ["jsonrpc", "id", "method", "params"];
const TEXT: FieldValues = FieldValues::Text;
const SEND: &[(&str, FieldValues)] = &[
    ("message", FieldValues::Object),
    ("configuration", CONFIGURATION),
    ("metadata", FieldValues::Object),
    ("tenant", TEXT),
];
/// The fields of a part, in either version.
const PART: &[(&str, FieldValues)] = &[
    ("kind", TEXT),
    ("text", TEXT),
    ("data", FieldValues::Parsed),
    ("raw", TEXT),
    ("url", TEXT),
    ("filename", TEXT),
    ("mediaType", TEXT),
    ("file", FieldValues::Members(&[("bytes", TEXT), ("uri", TEXT), ("name", TEXT), ("mimeType", TEXT)])),
    ("metadata", FieldValues::Object),
];
/// `acceptedOutputModes` has no effect: answers are text, with data beside it.
const CONFIGURATION: FieldValues = FieldValues::Members(&[
    ("acceptedOutputModes", FieldValues::TextList),
    ("historyLength", FieldValues::Integer(0, i64::MAX)),
    ("blocking", FieldValues::Flag),
    ("returnImmediately", FieldValues::Flag),
    ("pushNotificationConfig", FieldValues::Only("{}")),
    ("taskPushNotificationConfig", FieldValues::Only("{}")),
]);
const MESSAGE: &[(&str, FieldValues)] = &[
    ("messageId", TEXT),
    ("contextId", TEXT),
    ("taskId", TEXT),
    ("role", FieldValues::OneOf(&["user", "ROLE_USER"])),
    ("parts", FieldValues::List),
    ("metadata", FieldValues::Object),
    ("extensions", FieldValues::TextList),
    ("referenceTaskIds", FieldValues::TextList),
    ("kind", FieldValues::OneOf(&["message"])),
];
const TASK: &[(&str, FieldValues)] = &[
    ("id", TEXT),
    ("historyLength", FieldValues::Integer(0, i64::MAX)),
    ("metadata", FieldValues::Object),
    ("tenant", TEXT),
];

/// How the protocol's objects are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum A2aVersion {
    /// 0.3, whose objects say their kind.
    V0_3,
    /// 1.0, whose states are upper case.
    V1_0,
}

/// What a client asks for.
#[derive(Debug, Clone)]
pub enum A2aCall {
    /// Begins a task.
    Send(Box<SentMessage>),
    /// Returns a task.
    Get(Uuid),
    /// Stops a task.
    Cancel(Uuid),
    /// Follows a task.
    Subscribe(Uuid),
    /// Lists tasks.
    List(Box<TaskFilter>),
}

/// A message that begins a task, or answers what one has asked back.
#[derive(Debug, Clone)]
pub struct SentMessage {
    /// Its parts, as an item.
    pub items: Vec<InputItem>,
    /// The conversation; `None`: a new one.
    pub context_id: Option<String>,
    /// The task whose question back the message answers.
    pub task_id: Option<Uuid>,
    /// Whether to answer as events.
    pub stream: bool,
    /// Whether to answer before the task is done.
    pub at_once: bool,
    /// The message, as the task's history shows it.
    pub message: Value,
}

/// A request of this protocol.
#[derive(Debug, Clone)]
pub struct A2aRequest {
    /// The request's id, which its answers repeat.
    pub id: Value,
    /// How the answers are written.
    pub version: A2aVersion,
    /// What is asked for.
    pub call: A2aCall,
    /// The most messages of a task's history that are wanted; `None`: all.
    pub history_length: Option<usize>,
}

/// Why a request is refused.
#[derive(Debug, Clone)]
pub struct A2aFault {
    /// The request's id, where it could be read.
    pub id: Value,
    /// One of the codes above.
    pub code: i64,
    /// What is wrong, and what to do.
    pub message: String,
}

impl SentMessage {
    /// Returns the requested run, without its conversation, and its items.
    pub fn into_run(self) -> (RunRequest, Vec<InputItem>) {
        let task = self.task_id.map(|task| task.to_string());
        let echo = json!({ "message": self.message, "task": task });
        let run =
            RunRequest { retained: true, echo, invocation_id: task, ..RunRequest::new(Protocol::A2a, Vec::new()) };
        (run, self.items)
    }
}

/// Parses a body.
pub fn parse_request(body: &[u8]) -> Result<A2aRequest, A2aFault> {
    let fault = |id: &Value, code: i64, message: String| A2aFault { id: id.clone(), code, message };
    let request =
        parse_json(body).map_err(|error| fault(&Value::Null, PARSE_ERROR, format!("the body is not JSON: {error}")))?;
    let id = request.get("id").filter(|id| id.is_string() || id.is_number()).cloned().unwrap_or_default();
    let invalid = |message: &str| fault(&id, INVALID_REQUEST, message.to_owned());
    if request["jsonrpc"] != "2.0" {
        return Err(invalid("the body is not a request of JSON-RPC 2.0"));
    }
    if let Value::Object(members) = &request {
        check_names(members, "", ENVELOPE).map_err(|field| fault(&id, INVALID_REQUEST, field.message))?;
    }
    if id.is_null() {
        return Err(invalid("the request has no `id`, which its answer would repeat"));
    }
    let Some(method) = request["method"].as_str() else { return Err(invalid("the request has no `method`")) };
    let version = if method.contains('/') { A2aVersion::V0_3 } else { A2aVersion::V1_0 };
    let nothing = Map::new();
    let params = match &request["params"] {
        Value::Null => &nothing,
        Value::Object(params) => params,
        other => {
            return Err(fault(&id, INVALID_PARAMS, format!("`params` must be an object, not {}", kind_of(other))));
        }
    };
    let wrong = |error: BadRequest| {
        let code = match error.code {
            UNREAD_TYPE => CONTENT_TYPE_NOT_SUPPORTED,
            UNKNOWN_TASK => TASK_NOT_FOUND,
            _ => INVALID_PARAMS,
        };
        fault(&id, code, error.message)
    };
    if method.contains("ushNotificationConfig") || names_webhook(params) {
        return Err(fault(&id, PUSH_NOT_SUPPORTED, "this server calls no webhooks; follow the task".to_owned()));
    }
    let call = match method {
        "message/send" | "SendMessage" => sent(params, version, false).map_err(wrong)?,
        "message/stream" | "SendStreamingMessage" => sent(params, version, true).map_err(wrong)?,
        "ListTasks" => A2aCall::List(Box::new(TaskFilter::parse(params).map_err(wrong)?)),
        "tasks/get" | "GetTask" => A2aCall::Get(task_id(params, &id)?),
        "tasks/cancel" | "CancelTask" => A2aCall::Cancel(task_id(params, &id)?),
        "tasks/resubscribe" | "SubscribeToTask" => A2aCall::Subscribe(task_id(params, &id)?),
        "agent/getAuthenticatedExtendedCard" | "GetExtendedAgentCard" => {
            return Err(fault(&id, UNSUPPORTED_OPERATION, format!("{method} is not done here")));
        }
        other => {
            let other: String = other.chars().take(100).collect();
            let known = "message/send, message/stream, tasks/get, tasks/cancel and tasks/resubscribe";
            let message = format!("there is no method {other}; there are {known}, and their names in 1.0");
            return Err(fault(&id, METHOD_NOT_FOUND, message));
        }
    };
    let length = params.get("historyLength").or_else(|| params.get("configuration")?.get("historyLength"));
    let history_length = length.and_then(Value::as_u64).map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    Ok(A2aRequest { id, version, call, history_length })
}

/// Whether the message is to be answered by calling an address.
fn names_webhook(params: &Map<String, Value>) -> bool {
    let Some(configuration) = params.get("configuration") else { return false };
    let webhook =
        |name: &str| configuration.get(name).and_then(Value::as_object).is_some_and(|webhook| !webhook.is_empty());
    webhook("pushNotificationConfig") || webhook("taskPushNotificationConfig")
}

fn task_id(params: &Map<String, Value>, id: &Value) -> Result<Uuid, A2aFault> {
    let fault = |code: i64, message: String| A2aFault { id: id.clone(), code, message };
    check_members(params, "params", TASK).map_err(|field| fault(INVALID_PARAMS, field.message))?;
    let Some(task) = params.get("id").and_then(Value::as_str) else {
        return Err(fault(INVALID_PARAMS, "`params.id` is missing; name the task".to_owned()));
    };
    Uuid::try_parse(task).map_err(|_| fault(TASK_NOT_FOUND, "there is no such task".to_owned()))
}

/// Refuses the version that the header `A2A-Version` names, unless it is one that is spoken; its patch does not count.
pub fn check_version(body: &[u8], version: &str) -> Result<(), A2aFault> {
    let version = version.trim();
    let is_spoken = |known: &&str| {
        let rest = version.strip_prefix(*known);
        rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('.').is_some_and(is_number))
    };
    if version.is_empty() || VERSIONS.iter().any(is_spoken) {
        return Ok(());
    }
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let id = request.get("id").filter(|id| id.is_string() || id.is_number()).cloned().unwrap_or_default();
    let version: String = version.chars().take(20).collect();
    let message = format!("version {version} is not spoken here; there are {}", VERSIONS.join(" and "));
    Err(A2aFault { id, code: VERSION_NOT_SUPPORTED, message })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn sent(params: &Map<String, Value>, version: A2aVersion, stream: bool) -> Result<A2aCall, BadRequest> {
    check_members(params, "params", SEND)?;
    let missing = |name: &str| BadRequest::new("missing_required_parameter", name, format!("`{name}` is missing"));
    let Some(Value::Object(message)) = params.get("message") else { return Err(missing("params.message")) };
    check_members(message, "params.message", MESSAGE)?;
    let needed: &[&str] = match version {
        A2aVersion::V0_3 => &["messageId", "role", "kind"],
        A2aVersion::V1_0 => &["messageId", "role"],
    };
    for name in needed {
        if message.get(*name).and_then(Value::as_str).is_none_or(str::is_empty) {
            return Err(missing(&format!("params.message.{name}")));
        }
    }
    let task_id = match message.get("taskId").and_then(Value::as_str).filter(|task| !task.is_empty()) {
        None => None,
        Some(task) => Some(Uuid::try_parse(task).map_err(|_| {
            BadRequest::new(UNKNOWN_TASK, "params.message.taskId", "`params.message.taskId`: there is no such task")
        })?),
    };
    let parts = message.get("parts").and_then(Value::as_array).filter(|parts| !parts.is_empty());
    let parts = parts.ok_or_else(|| missing("params.message.parts"))?;
    let mut content = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let at = format!("params.message.parts[{index}]");
        if version == A2aVersion::V0_3 && part.get("data").is_some_and(|data| !data.is_null() && !data.is_object()) {
            return Err(BadRequest::invalid(&at, format!("`{at}.data` must be an object")));
        }
        if let Value::Object(fields) = part {
            check_members(fields, &at, PART)?;
        }
        content.push(part_of(part, &at)?);
    }
    let configuration = params.get("configuration").unwrap_or(&Value::Null);
    let context_id = message.get("contextId").and_then(Value::as_str).map(str::to_owned);
    if context_id.as_ref().is_some_and(|id| id.len() > MAX_ID_BYTES) {
        let message = format!("`params.message.contextId` is longer than {MAX_ID_BYTES} bytes");
        return Err(BadRequest::invalid("params.message.contextId", message));
    }
    Ok(A2aCall::Send(Box::new(SentMessage {
        items: vec![InputItem::Message { role: ChatRole::User, content }],
        context_id: context_id.filter(|id| !id.trim().is_empty()),
        task_id,
        stream,
        at_once: configuration["blocking"] == json!(false) || configuration["returnImmediately"] == json!(true),
        message: json!({ "messageId": message.get("messageId"), "parts": parts }),
    })))
}

/// Parses a part in either version's form; data is shown to the model as JSON.
fn part_of(part: &Value, at: &str) -> Result<InputContent, BadRequest> {
    let has = |name: &&str| part.get(*name).is_some_and(|value| !value.is_null());
    let kinds: Vec<&str> = [("text", &["text"][..]), ("data", &["data"][..]), ("file", &["file", "raw", "url"][..])]
        .into_iter()
        .filter(|(_, names)| names.iter().any(has))
        .map(|(kind, _)| kind)
        .collect();
    if kinds.len() > 1 {
        return Err(BadRequest::invalid(at, format!("`{at}` is {} at once; make parts of them", kinds.join(" and "))));
    }
    if let (Some(said), [kind]) = (part["kind"].as_str(), kinds.as_slice())
        && said != *kind
    {
        return Err(BadRequest::invalid(at, format!("`{at}.kind` is `{said}`, and the part is of the kind {kind}")));
    }
    if let Some(text) = part["text"].as_str() {
        return Ok(InputContent::Text(text.to_owned()));
    }
    if let Some(data) = part.get("data").filter(|data| !data.is_null()) {
        return Ok(InputContent::Text(data.to_string()));
    }
    let file = if part["file"].is_object() { &part["file"] } else { part };
    let first = |names: &[&str]| names.iter().find_map(|name| file[*name].as_str());
    let name = first(&["filename", "name"]).unwrap_or("file");
    let media_type = first(&["mediaType", "mimeType"]).unwrap_or("application/octet-stream");
    let block = match (first(&["raw", "bytes"]), first(&["url", "uri"])) {
        (Some(_), Some(_)) => {
            let message = format!("`{at}` has the bytes of a file and its address; leave one out");
            return Err(BadRequest::invalid(at, message));
        }
        (Some(_), None) if UNREAD_TYPES.iter().any(|unread| is_of_type(media_type, unread)) => {
            let message =
                format!("`{at}` is of the type {media_type}, which is not read; send text, an image or a document");
            return Err(BadRequest::new(UNREAD_TYPE, at, message));
        }
        (Some(bytes), None) => {
            json!({ "inlineData": { "mimeType": media_type, "data": bytes, "displayName": name } })
        }
        (None, Some(url)) => json!({ "fileData": { "fileUri": url } }),
        (None, None) => {
            return Err(BadRequest::invalid(at, format!("`{at}` is neither text, data nor a file")));
        }
    };
    let mut parts = parse_content(&json!([block]), at)?;
    parts.pop().ok_or_else(|| BadRequest::invalid(at, format!("`{at}` is empty")))
}

/// Whether a media type is of a top-level type: `audio/wav` is of `audio`.
fn is_of_type(media_type: &str, top_level: &str) -> bool {
    media_type.split_once('/').is_some_and(|(found, _)| found.trim().eq_ignore_ascii_case(top_level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_read() {
        let read = |request: Value| parse_request(request.to_string().as_bytes());
        let message =
            json!({ "messageId": "m", "role": "user", "kind": "message", "parts": [{ "kind": "text", "text": "hi" }] });
        let old = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": { "message": message } });
        let old = read(old).unwrap();
        assert_eq!(old.version, A2aVersion::V0_3);
        assert!(matches!(&old.call, A2aCall::Send(sent) if !sent.stream && !sent.at_once));
        let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hi" }] });
        let configuration = json!({ "returnImmediately": true });
        let params = json!({ "message": message, "configuration": configuration });
        let new = json!({ "jsonrpc": "2.0", "id": "x", "method": "SendMessage", "params": params });
        let new = read(new).unwrap();
        assert_eq!((new.version, &new.id), (A2aVersion::V1_0, &json!("x")));
        assert!(matches!(&new.call, A2aCall::Send(sent) if sent.at_once));
    }

    #[test]
    fn a_part_is_one_thing() {
        let part = |part: Value| part_of(&part, "parts[0]").map_err(|error| error.message);
        assert!(part(json!({ "kind": "text", "text": "hi" })).is_ok());
        assert!(part(json!({ "text": "hi", "data": null })).is_ok());
        for (wrong, said) in [
            (json!({ "text": "hi", "data": {} }), "text and data at once"),
            (json!({ "kind": "data", "text": "hi" }), "of the kind text"),
            (json!({ "raw": "aGk=", "url": "https://example.com/a" }), "leave one out"),
            (json!({}), "neither text, data nor a file"),
        ] {
            let message = part(wrong).unwrap_err();
            assert!(message.contains(said), "{message}");
        }
    }

    #[test]
    fn faults_have_their_codes() {
        let code = |request: Value| parse_request(request.to_string().as_bytes()).unwrap_err().code;
        let call =
            |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        assert_eq!(parse_request(b"{").unwrap_err().code, PARSE_ERROR);
        assert_eq!(code(json!({ "id": 1, "method": "x" })), INVALID_REQUEST);
        assert_eq!(code(json!({ "jsonrpc": "2.0", "method": "tasks/get" })), INVALID_REQUEST);
        assert_eq!(code(call("tasks/list_all", json!({}))), METHOD_NOT_FOUND);
        assert_eq!(code(call("tasks/get", json!({ "id": "no-uuid" }))), TASK_NOT_FOUND);
        assert_eq!(code(call("tasks/get", json!({}))), INVALID_PARAMS);
        assert_eq!(code(call("message/send", json!({ "zzz": 1 }))), INVALID_PARAMS);
        assert_eq!(code(call("message/send", json!({ "message": { "role": "user", "parts": [{}] } }))), INVALID_PARAMS);
        assert_eq!(code(call("CreateTaskPushNotificationConfig", json!({}))), PUSH_NOT_SUPPORTED);
        let whole = json!({ "messageId": "m", "role": "user", "kind": "message", "parts": [{ "text": "hi" }] });
        for (name, value) in [
            ("messageId", json!("")),
            ("messageId", Value::Null),
            ("role", Value::Null),
            ("kind", Value::Null),
            ("parts", json!([{ "kind": "data", "data": 7 }])),
            ("extensions", json!([7])),
            ("referenceTaskIds", json!("t1")),
        ] {
            let mut message = whole.clone();
            message[name] = value;
            assert_eq!(code(call("message/send", json!({ "message": message }))), INVALID_PARAMS, "{name}");
        }
        let mut message = whole.clone();
        message["taskId"] = json!("no-uuid");
        assert_eq!(code(call("message/send", json!({ "message": message }))), TASK_NOT_FOUND);
        assert_eq!(code(call("ListTasks", json!({ "pageSize": 101 }))), INVALID_PARAMS);
    }

    #[test]
    fn other_versions_are_refused() {
        for version in ["", "0.3", "1.0", "1.0.0", " 1.0 "] {
            assert!(check_version(b"", version).is_ok(), "{version}");
        }
        for version in ["0.2", "2.0", "x", "1.0.x", "1.01"] {
            let fault = check_version(br#"{"id": 7}"#, version).unwrap_err();
            assert_eq!((fault.code, fault.id), (VERSION_NOT_SUPPORTED, json!(7)), "{version}");
        }
    }
}
