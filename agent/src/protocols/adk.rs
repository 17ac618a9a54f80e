//! ADK's `/run_sse` and `/run`: their requests, and a run's events as ADK's `Event`. Only keys that ADK declares are
//! written: its own clients refuse others in `actions` and, in older versions, everywhere.
//!
//! A call that waits for a person is a call of `adk_request_confirmation`; its answer, and a client's result, come as
//! a `functionResponse` in a later request. References: <https://adk.dev/runtime/api-server/>.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::fields::{FieldValues, WrongField, check_known_members, check_members, check_names, check_value};
use super::json::parse_json;
use super::ksadk::asks_for_thinking;
use super::message_fields::MemberField;
use super::responses::{BadRequest, InputItem, check_item_count, parse_content, tools_of};
use super::{Frame, Renderer, add_assessment, add_chart, add_ticket, kind_of};
use crate::event::{AnswerFinal, EventKind, RunErrorCode, RunEvent, TextPhase, WaitingCall};
use crate::models::{ChatRole, TokenUsage, ToolSpec};

/// The author of every event but the user's.
const AUTHOR: &str = "querent";
/// The tool that ADK calls to ask a person for confirmation.
const REQUEST_CONFIRMATION: &str = "adk_request_confirmation";
/// Longest name of an application, a user or a session.
const MAX_NAME_BYTES: usize = 256;

/// The fields of a request, in both spellings. The last six have no effect: what they would change is not here.
const FIELDS: [&str; 24] = [
    "appName",
    "app_name",
    "userId",
    "user_id",
    "sessionId",
    "session_id",
    "newMessage",
    "new_message",
    "streaming",
    "stateDelta",
    "state_delta",
    "invocationId",
    "invocation_id",
    "model",
    "tools",
    "modelOptions",
    "model_options",
    "functionCallEventId",
    "function_call_event_id",
    "customMetadata",
    "custom_metadata",
    "serviceTier",
    "service_tier",
    "modelMetadata",
];

/// The fields without effect, in both spellings, and the values that they take.
const WITHOUT_EFFECT: [(&str, &str, FieldValues); 4] = [
    ("functionCallEventId", "function_call_event_id", FieldValues::Text),
    ("customMetadata", "custom_metadata", FieldValues::Object),
    ("serviceTier", "service_tier", FieldValues::Text),
    ("modelMetadata", "modelMetadata", FieldValues::Object),
];

/// A request of this protocol.
#[derive(Debug, Clone)]
pub struct AdkRequest {
    /// The application's name, which is the client's name for this agent.
    pub app_name: String,
    /// The application's user.
    pub user_id: String,
    /// The session, unless it is to be created.
    pub session_id: Option<String>,
    /// The message, as items.
    pub items: Vec<InputItem>,
    /// Whether pieces of text are also events.
    pub streaming: bool,
    /// Changes of the session's state.
    pub state_delta: Map<String, Value>,
    /// The client's id for the run.
    pub invocation_id: Option<String>,
    /// A model's name.
    pub model: Option<String>,
    /// Tools that the client executes.
    pub tools: Vec<ToolSpec>,
    /// Whether to show thinking.
    pub include_thinking: bool,
    /// Fields of the request that the session shows later.
    pub echo: Value,
}

/// Parses a body. Errors have the status that ADK's own server gives them: 422 for a field that is missing or wrong.
pub fn parse_request(body: &[u8]) -> Result<AdkRequest, BadRequest> {
    let body = parse_json(body)
        .map_err(|error| BadRequest::new("invalid_json", "body", format!("the body is not JSON: {error}")))?;
    let Value::Object(fields) = &body else {
        return Err(BadRequest::invalid("body", format!("the body must be a JSON object, not {}", kind_of(&body))));
    };
    check_names(fields, "", FIELDS).map_err(|field| wrong(&field.at, field.message))?;
    check_spellings(fields)?;
    for (camel, snake, values) in WITHOUT_EFFECT {
        if let Some(value) = field(fields, camel, snake) {
            check_value(camel, values, "leave it out", value).map_err(|field| wrong(&field.at, field.message))?;
        }
    }
    let text = |camel: &str, snake: &str| name_of(field(fields, camel, snake), camel);
    let required = |name: Option<String>, at: &str| name.ok_or_else(|| missing(at));
    let message = field(fields, "newMessage", "new_message").ok_or_else(|| missing("newMessage"))?;
    let items = message_items(message)?;
    let state_delta = state_delta(field(fields, "stateDelta", "state_delta"))?;
    let streaming = match fields.get("streaming") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(streaming)) => *streaming,
        Some(other) => {
            return Err(wrong("streaming", format!("`streaming` must be true or false, not {}", kind_of(other))));
        }
    };
    let thinking = asks_for_thinking(field(fields, "modelOptions", "model_options"), "modelOptions")
        .map_err(|error| error.with_status(422))?;
    Ok(AdkRequest {
        app_name: required(text("appName", "app_name")?, "appName")?,
        user_id: required(text("userId", "user_id")?, "userId")?,
        session_id: text("sessionId", "session_id")?,
        items,
        streaming,
        invocation_id: text("invocationId", "invocation_id")?,
        model: text("model", "model")?,
        tools: tools_of(fields, "parameters", |tool| Some(tool))?,
        include_thinking: thinking,
        echo: json!({ "newMessage": message, "stateDelta": state_delta }),
        state_delta,
    })
}

/// Parses changes of a session's state. Errors: anything but an object.
pub fn state_delta(delta: Option<&Value>) -> Result<Map<String, Value>, BadRequest> {
    match delta {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(delta)) => Ok(delta.clone()),
        Some(other) => Err(wrong("stateDelta", format!("`stateDelta` must be an object, not {}", kind_of(other)))),
    }
}

fn field<'a>(fields: &'a Map<String, Value>, camel: &str, snake: &str) -> Option<&'a Value> {
    [camel, snake].into_iter().filter_map(|name| fields.get(name)).find(|value| !value.is_null())
}

/// Refuses a field that has another value in each of its spellings, of which one would be dropped.
fn check_spellings(fields: &Map<String, Value>) -> Result<(), BadRequest> {
    // Both stand beside each other in the list.
    for pair in FIELDS.windows(2) {
        if let [camel, snake] = pair
            && snake.contains('_')
            && let (Some(one), Some(other)) = (fields.get(*camel), fields.get(*snake))
            && !one.is_null()
            && !other.is_null()
            && one != other
        {
            return Err(wrong(snake, format!("`{snake}` is another value than `{camel}`, the same field; send one")));
        }
    }
    Ok(())
}

fn name_of(value: Option<&Value>, at: &str) -> Result<Option<String>, BadRequest> {
    match value {
        None => Ok(None),
        Some(Value::String(name)) => {
            check_name(name, at)?;
            Ok(Some(name.clone()).filter(|name| !name.is_empty()))
        }
        Some(other) => Err(wrong(at, format!("`{at}` must be a string, not {}", kind_of(other)))),
    }
}

/// Refuses a name of an application, a user or a session, the field `at`, that is too long.
pub fn check_name(name: &str, at: &str) -> Result<(), BadRequest> {
    if name.len() > MAX_NAME_BYTES {
        return Err(wrong(at, format!("`{at}` has {} bytes; at most {MAX_NAME_BYTES} are taken", name.len())));
    }
    Ok(())
}

fn missing(at: &str) -> BadRequest {
    BadRequest::new("missing_required_parameter", at, format!("`{at}` is missing")).with_status(422)
}

fn wrong(at: &str, message: String) -> BadRequest {
    BadRequest::invalid(at, message).with_status(422)
}

/// Who says a message: the user; the others are those of a tool's result.
const ROLES: FieldValues = FieldValues::OneOf(&["user", "function", "tool"]);
/// The fields of a part. What is said of a thought or a video has no effect.
const PART: [&str; 12] = [
    "text",
    "inlineData",
    "inline_data",
    "fileData",
    "file_data",
    "functionResponse",
    "function_response",
    "thought",
    "thoughtSignature",
    "thought_signature",
    "videoMetadata",
    "video_metadata",
];

const SAID_OF_PARTS: &[MemberField] = &[
    ("thought", FieldValues::Flag),
    ("thoughtSignature", FieldValues::Text),
    ("thought_signature", FieldValues::Text),
    ("videoMetadata", FieldValues::Object),
    ("video_metadata", FieldValues::Object),
];

/// What a part is, of which it is one thing only, in both spellings.
const DATA: [[&str; 2]; 4] = [
    ["text", "text"],
    ["inlineData", "inline_data"],
    ["fileData", "file_data"],
    ["functionResponse", "function_response"],
];

const TEXT: FieldValues = FieldValues::Text;
/// The fields of what a part is, under its names in both spellings. `scheduling` has no effect, since a run waits for each
/// result; one that is not whole, or has files, is refused.
const MEMBERS: [([&str; 2], &[MemberField]); 3] = [
    (
        DATA[1],
        &[("data", TEXT), ("mimeType", TEXT), ("mime_type", TEXT), ("displayName", TEXT), ("display_name", TEXT)],
    ),
    (
        DATA[2],
        &[
            ("fileUri", TEXT),
            ("file_uri", TEXT),
            ("mimeType", TEXT),
            ("mime_type", TEXT),
            ("displayName", TEXT),
            ("display_name", TEXT),
        ],
    ),
    (
        DATA[3],
        &[
            ("id", TEXT),
            ("name", TEXT),
            ("response", FieldValues::Parsed),
            ("scheduling", TEXT),
            ("willContinue", FieldValues::Only("false")),
            ("will_continue", FieldValues::Only("false")),
            ("parts", FieldValues::Only("[]")),
        ],
    ),
];

fn message_items(message: &Value) -> Result<Vec<InputItem>, BadRequest> {
    let parts = match message {
        Value::String(_) => std::slice::from_ref(message),
        Value::Object(message) => match message.get("parts") {
            Some(Value::Array(parts)) => parts.as_slice(),
            _ => return Err(wrong("newMessage.parts", "`newMessage.parts` must be a list".to_owned())),
        },
        other => return Err(wrong("newMessage", format!("`newMessage` must be an object, not {}", kind_of(other)))),
    };
    let unknown = |fault: WrongField| wrong(&fault.at, fault.message);
    if let Value::Object(fields) = message {
        check_names(fields, "newMessage", ["role", "parts"]).map_err(unknown)?;
        if let Some(role) = fields.get("role").filter(|role| !role.is_null()) {
            check_value("newMessage.role", ROLES, "leave it out", role).map_err(unknown)?;
        }
    }
    check_item_count("newMessage.parts", parts.len()).map_err(|error| error.with_status(422))?;
    let mut items = Vec::new();
    let mut content = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let is_said = |value: &Value| !value.is_null() && value != "";
        let has = |names: &[&str; 2]| names.iter().any(|name| part.get(*name).is_some_and(is_said));
        if DATA.iter().filter(|names| has(names)).count() > 1 {
            let at = format!("newMessage.parts[{index}]");
            let message =
                format!("`{at}` is more than one of a text, a file and a function's response; make parts of them");
            return Err(wrong(&at, message));
        }
        // Parts with a type are those of OpenAI's protocol.
        if let Value::Object(fields) = part
            && !fields.contains_key("type")
        {
            let at = format!("newMessage.parts[{index}]");
            check_names(fields, &at, PART).map_err(unknown)?;
            check_known_members(fields, &at, SAID_OF_PARTS).map_err(unknown)?;
            for (names, members) in MEMBERS {
                for name in names {
                    if let Some(Value::Object(given)) = fields.get(name) {
                        check_members(given, &format!("{at}.{name}"), members).map_err(unknown)?;
                    }
                }
            }
        }
        let response = part.get("functionResponse").or_else(|| part.get("function_response"));
        match response {
            Some(response) => items.push(response_item(response)?),
            None => content.extend(parse_content(&json!([part]), "newMessage")?),
        }
    }
    if !content.is_empty() {
        items.push(InputItem::Message { role: ChatRole::User, content });
    }
    if items.is_empty() {
        return Err(wrong("newMessage.parts", "`newMessage` says nothing; send a part with `text`".to_owned()));
    }
    Ok(items)
}

/// Parses a person's decision, or the result of a client's tool.
fn response_item(response: &Value) -> Result<InputItem, BadRequest> {
    let at = "newMessage.parts.functionResponse";
    let Some(id) = response["id"].as_str() else {
        return Err(wrong(at, format!("`{at}` has no `id`; repeat the one of the call that it answers")));
    };
    let said = &response["response"];
    if response["name"] != REQUEST_CONFIRMATION {
        let output = match said {
            Value::Object(fields) if fields.len() == 1 => match &said["result"] {
                Value::String(result) => result.clone(),
                _ => said.to_string(),
            },
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        return Ok(InputItem::FunctionCallOutput { call_id: id.to_owned(), output });
    }
    // ADK's web interface wraps its response in JSON text.
    let wrapped = said["response"].as_str().and_then(|text| serde_json::from_str(text).ok());
    let said = wrapped.as_ref().unwrap_or(said);
    let Some(approve) = said["confirmed"].as_bool() else {
        return Err(wrong(at, format!("`{at}.response.confirmed` must be true or false")));
    };
    // ADK's web interface sends an empty object where nothing is said.
    let payload = &said["payload"];
    if !(payload.is_null() || payload.is_string() || *payload == json!({})) {
        let message =
            format!("`{at}.response.payload` must be a string, the reason: a call is executed as it was shown");
        return Err(wrong(at, message));
    }
    let reason = said["hint"].as_str().or(said["payload"].as_str()).filter(|reason| !reason.is_empty());
    Ok(InputItem::ApprovalResponse { request_id: id.to_owned(), approve, reason: reason.map(str::to_owned) })
}

/// The reader of the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdkView {
    /// A client that waits, for pieces of text as they come, then the whole.
    Streaming,
    /// A client that waits, for whole messages.
    Whole,
    /// A client that opens the session later: with the user's message, and an error as an event.
    Session,
}

/// Turns events into ADK's events.
#[derive(Debug)]
pub struct AdkRenderer {
    view: AdkView,
    run_id: String,
    invocation_id: String,
    model: String,
    /// Text before calls, and thinking: parts of the next whole event.
    held: Vec<Value>,
    usage: Option<TokenUsage>,
    shown_calls: Vec<String>,
    failure: Option<(RunErrorCode, String, String)>,
}

impl AdkRenderer {
    /// Creates a renderer for that reader.
    pub fn new(view: AdkView) -> Self {
        Self {
            view,
            run_id: String::new(),
            invocation_id: String::new(),
            model: String::new(),
            held: Vec::new(),
            usage: None,
            shown_calls: Vec::new(),
            failure: None,
        }
    }

    /// Names the run, for one that failed before it began: its log does not say which it was.
    #[must_use]
    pub fn of_run(mut self, run_id: Uuid, invocation_id: Option<String>) -> Self {
        self.run_id = run_id.simple().to_string();
        self.invocation_id = invocation_id.unwrap_or_else(|| format!("e-{run_id}"));
        self
    }

    /// Returns why the run failed, if it did: its code, what to do, and the server's own code.
    pub fn failure(&self) -> Option<(RunErrorCode, &str, &str)> {
        self.failure.as_ref().map(|(code, message, detail)| (*code, message.as_str(), detail.as_str()))
    }

    fn event(&self, event: &RunEvent, author: &str, role: &str, parts: Vec<Value>) -> Value {
        json!({
            "id": format!("{}{:04x}", self.run_id, event.seq),
            "invocationId": self.invocation_id,
            "author": author,
            "timestamp": seconds(event),
            "content": { "role": role, "parts": parts },
            "actions": actions(),
        })
    }

    /// Creates an event of a piece, for readers that want pieces.
    fn piece(&self, event: &RunEvent, part: Value) -> Option<Value> {
        if self.view != AdkView::Streaming {
            return None;
        }
        let mut piece = self.event(event, AUTHOR, "model", vec![part]);
        piece["partial"] = json!(true);
        Some(piece)
    }

    /// Creates a whole event of the model: the held parts, then `part`.
    fn whole(&mut self, event: &RunEvent, part: Value) -> Value {
        let mut parts = std::mem::take(&mut self.held);
        parts.push(part);
        let mut whole = self.event(event, AUTHOR, "model", parts);
        whole["modelVersion"] = json!(self.model);
        if let Some(usage) = self.usage.take() {
            whole["usageMetadata"] = usage_json(&usage);
        }
        whole
    }

    fn waiting(&mut self, event: &RunEvent, call: &WaitingCall) -> Value {
        let args: Value = serde_json::from_str(&call.args_raw).unwrap_or_else(|_| json!({}));
        let (id, function_call) = if call.approval {
            let hint = format!("{} changes data; confirm it or not", call.name);
            let asked = json!({
                "originalFunctionCall": { "id": call.call_id, "name": call.name, "args": args },
                "toolConfirmation": { "hint": hint, "confirmed": false },
            });
            (&call.item_id, json!({ "id": call.item_id, "name": REQUEST_CONFIRMATION, "args": asked }))
        } else {
            (&call.call_id, json!({ "id": call.call_id, "name": call.name, "args": object(&args) }))
        };
        let id = id.clone();
        let mut waiting = self.whole(event, json!({ "functionCall": function_call }));
        waiting["longRunningToolIds"] = json!([id]);
        waiting
    }

    fn failed(&self, event: &RunEvent, message: &str, detail_code: &str) -> Value {
        if self.view != AdkView::Session {
            return json!({
                "error": format!("{detail_code}: {message}"),
                "error_details": { "code": detail_code, "message": message },
            });
        }
        json!({
            "id": format!("{}{:04x}", self.run_id, event.seq),
            "invocationId": self.invocation_id,
            "author": AUTHOR,
            "timestamp": seconds(event),
            "actions": actions(),
            "errorCode": detail_code,
            "errorMessage": message,
        })
    }

    fn render(&mut self, event: &RunEvent) -> Option<Value> {
        match &event.kind {
            EventKind::RunStarted(started) => {
                self.run_id = started.run_id.simple().to_string();
                self.invocation_id = started.invocation_id.clone().unwrap_or_else(|| format!("e-{}", started.run_id));
                self.model.clone_from(&started.model);
                let parts = match &started.request["newMessage"] {
                    Value::String(text) => vec![json!({ "text": text })],
                    message => message["parts"].as_array().cloned().unwrap_or_default(),
                };
                if self.view != AdkView::Session || parts.is_empty() {
                    return None;
                }
                let mut said = self.event(event, "user", "user", parts);
                if let Some(delta) = started.request["stateDelta"].as_object().filter(|delta| !delta.is_empty()) {
                    said["actions"]["stateDelta"] = json!(delta);
                }
                Some(said)
            }
            EventKind::ThinkingDelta { text, .. } => self.piece(event, json!({ "text": text, "thought": true })),
            EventKind::ThinkingDone { text, .. } => {
                self.held.push(json!({ "text": text, "thought": true }));
                None
            }
            EventKind::TextDelta { text, .. } => self.piece(event, json!({ "text": text })),
            EventKind::TextDone { text, phase: TextPhase::Commentary, .. } => {
                self.held.push(json!({ "text": text }));
                None
            }
            EventKind::LlmCallFinished(reply) => {
                self.usage = Some(reply.usage);
                None
            }
            EventKind::ToolCallStarted(call) => {
                self.shown_calls.push(call.call_id.clone());
                let call = json!({ "id": call.call_id, "name": call.tool, "args": object(&call.args) });
                Some(self.whole(event, json!({ "functionCall": call })))
            }
            // A refused call was never shown as a call.
            EventKind::ToolResult(result) if !self.shown_calls.contains(&result.call_id) => None,
            EventKind::ToolResult(result) => {
                let response = json!({ "id": result.call_id, "name": result.tool, "response": object(&result.result) });
                let mut returned = self.event(event, AUTHOR, "user", vec![json!({ "functionResponse": response })]);
                let mut metadata = json!({});
                add_chart(&mut metadata, result);
                add_ticket(&mut metadata, result.ticket.as_ref());
                set_metadata(&mut returned, metadata);
                Some(returned)
            }
            EventKind::ApprovalRequested(call) | EventKind::ClientToolRequested(call) => {
                Some(self.waiting(event, call))
            }
            EventKind::AnswerFinal(said) => {
                let AnswerFinal { text, cut, filtered, ticket, assessment, .. } = said.as_ref();
                let mut answer = self.whole(event, json!({ "text": text }));
                answer["finishReason"] = json!(match (cut, filtered) {
                    (true, _) => "MAX_TOKENS",
                    (false, true) => "SAFETY",
                    (false, false) => "STOP",
                });
                let mut metadata = json!({});
                add_ticket(&mut metadata, ticket.as_ref());
                add_assessment(&mut metadata, assessment.to_json().as_ref());
                set_metadata(&mut answer, metadata);
                Some(answer)
            }
            EventKind::RunError { code, message, detail_code } => {
                self.failure = Some((*code, message.clone(), detail_code.clone()));
                Some(self.failed(event, message, detail_code))
            }
            EventKind::CompactionStarted { .. }
            | EventKind::CompactionFinished { .. }
            | EventKind::LlmCallStarted { .. }
            | EventKind::ThinkingStarted { .. }
            | EventKind::TextStarted { .. }
            | EventKind::TextDone { .. }
            | EventKind::ApprovalResolved { .. }
            | EventKind::ClientToolResolved { .. }
            | EventKind::Conversation { .. }
            | EventKind::Paused { .. }
            | EventKind::RunFinished { .. } => None,
        }
    }
}

impl Renderer for AdkRenderer {
    fn frame(&mut self, event: &RunEvent) -> Vec<Frame> {
        self.render(event).iter().map(Frame::unnamed).collect()
    }
}

fn actions() -> Value {
    json!({ "stateDelta": {}, "artifactDelta": {}, "requestedAuthConfigs": {} })
}

/// Sets an event's metadata of our own, if there is any.
fn set_metadata(event: &mut Value, metadata: Value) {
    if metadata.as_object().is_some_and(|fields| !fields.is_empty()) {
        event["customMetadata"] = metadata;
    }
}

fn seconds(event: &RunEvent) -> Value {
    json!(event.at.timestamp_millis() as f64 / 1_000.0)
}

/// Wraps arguments and responses in objects, which ADK's clients require.
fn object(value: &Value) -> Value {
    if value.is_object() { value.clone() } else { json!({ "result": value }) }
}

fn usage_json(usage: &TokenUsage) -> Value {
    json!({
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": usage.output_tokens.saturating_sub(usage.reasoning_tokens),
        "cachedContentTokenCount": usage.cached_tokens,
        "thoughtsTokenCount": usage.reasoning_tokens,
        "totalTokenCount": usage.input_tokens + usage.output_tokens,
    })
}
