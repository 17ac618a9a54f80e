//! Parses and checks a request of `POST /api/chat`. Faults have the statuses and the shapes of HolmesGPT's own server.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::history::{HistoryCall, parse_history};
use crate::models::{ChatImage, ChatMessage, ToolSpec};
use crate::protocols::fields::unknown_field;
use crate::protocols::json::parse_json;
use crate::protocols::responses::{
    BadRequest, answer_schema, check_arguments_schema, check_item_count, check_tool_count, check_tool_name,
};
use crate::request::AnswerSchema;

/// The fields of a request. Those of the second half say whose it is and where it comes from, which has no effect.
const FIELDS: [&str; 25] = [
    "ask",
    "conversation_history",
    "model",
    "stream",
    "response_format",
    "images",
    "enable_tool_approval",
    "tool_decisions",
    "frontend_tools",
    "frontend_tool_results",
    "additional_system_prompt",
    "behavior_controls",
    "conversation_id",
    "conversation_link",
    "conversation_source",
    "user_id",
    "user_email",
    "user_name",
    "account_id",
    "cluster_name",
    "request_id",
    "request_source",
    "source_ref",
    "meta",
    "is_internal",
];

/// The fields of the entries of lists.
const ENTRIES: [(&str, &[&str]); 4] = [
    ("images", &["url", "detail", "format"]),
    ("tool_decisions", &["tool_call_id", "approved", "feedback"]),
    ("frontend_tools", &["name", "description", "parameters", "mode", "noop_response"]),
    ("frontend_tool_results", &["tool_call_id", "tool_name", "result"]),
];

/// The most fields that a refusal names: a body may have hundreds of thousands.
const MAX_UNKNOWN_FIELDS: usize = 100;

/// What is wrong with a request.
#[derive(Debug, Clone, PartialEq)]
pub struct BadHolmesRequest {
    /// HTTP status.
    pub status: u16,
    /// A string, or a list of `{type, loc, msg, input}`.
    pub detail: Value,
}

impl BadHolmesRequest {
    fn text(status: u16, detail: impl Into<String>) -> Self {
        Self { status, detail: Value::String(detail.into()) }
    }

    /// Creates the fault of one field.
    fn field(kind: &str, at: &[Value], message: impl Into<String>, input: &Value) -> Self {
        let mut place = vec![json!("body")];
        place.extend_from_slice(at);
        let fault = json!({ "type": kind, "loc": place, "msg": message.into(), "input": input });
        Self { status: 422, detail: json!([fault]) }
    }

    fn wrong_type(at: &[Value], wanted: &str, input: &Value) -> Self {
        let (kind, words) = match wanted {
            "string" => ("string_type", "a valid string"),
            "bool" => ("bool_parsing", "a valid boolean"),
            "list" => ("list_type", "a valid list"),
            _ => ("dict_type", "a valid dictionary"),
        };
        Self::field(kind, at, format!("Input should be {words}"), input)
    }
}

/// A person's decision on a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDecision {
    /// The call.
    pub tool_call_id: String,
    /// Whether it is approved.
    pub approved: bool,
    /// Why.
    pub feedback: Option<String>,
}

/// The result of a client's tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontendResult {
    /// The call.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
    /// The result.
    pub result: String,
}

/// Whether a run waits for a client's tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrontendMode {
    /// It waits.
    Pause,
    /// It continues; the model reads this result.
    Noop(String),
}

/// A tool that the client executes.
#[derive(Debug, Clone, PartialEq)]
pub struct FrontendTool {
    /// Its description for the model.
    pub spec: ToolSpec,
    /// Whether the run waits for it.
    pub mode: FrontendMode,
}

/// A request of this protocol.
#[derive(Debug, Clone)]
pub struct HolmesRequest {
    /// The question; empty only where a conversation continues without one.
    pub ask: String,
    /// The conversation so far, without its system message; calls without a result are in `open_calls`.
    pub history: Vec<ChatMessage>,
    /// The calls that the history's last message waits for.
    pub open_calls: Vec<HistoryCall>,
    /// The name of a configured model.
    pub model: Option<String>,
    /// Whether to answer as events.
    pub stream: bool,
    /// The schema of the answer.
    pub answer_schema: Option<AnswerSchema>,
    /// Pictures that come with the question.
    pub images: Vec<ChatImage>,
    /// URLs of pictures, which are not fetched.
    pub image_urls: Vec<String>,
    /// Whether a person can be asked for approval.
    pub enable_tool_approval: bool,
    /// The person's decisions, if the request contains any.
    pub tool_decisions: Option<Vec<ToolDecision>>,
    /// Tools that the client executes.
    pub frontend_tools: Vec<FrontendTool>,
    /// Their results, if the request contains any.
    pub frontend_tool_results: Option<Vec<FrontendResult>>,
    /// Text added to the system message.
    pub additional_system_prompt: Option<String>,
    /// Sections of the prompt to switch on or off.
    pub behavior_controls: Vec<(String, bool)>,
}

impl HolmesRequest {
    /// Whether it answers a waiting run.
    pub fn resumes(&self) -> bool {
        let has_decisions = self.tool_decisions.as_ref().is_some_and(|decisions| !decisions.is_empty());
        has_decisions || self.frontend_tool_results.as_ref().is_some_and(|results| !results.is_empty())
    }

    /// Whether the conversation has no answer yet.
    pub fn is_first(&self) -> bool {
        !self.history.iter().any(|message| message.role == crate::models::ChatRole::Assistant)
    }
}

/// Returns the fault of a body that is not JSON.
pub fn invalid_json(error: &serde_json::Error) -> BadHolmesRequest {
    let fault = json!({
        "type": "json_invalid",
        "loc": ["body", error.column()],
        "msg": "JSON decode error",
        "input": {},
        "ctx": { "error": error.to_string() },
    });
    BadHolmesRequest { status: 422, detail: json!([fault]) }
}

/// Parses a body of any content type. `is_server_tool` recognises the names of the server's own tools.
pub fn parse_request(body: &[u8], is_server_tool: impl Fn(&str) -> bool) -> Result<HolmesRequest, BadHolmesRequest> {
    let body = parse_json(body).map_err(|error| invalid_json(&error))?;
    let Value::Object(fields) = &body else {
        let message = "Input should be a valid dictionary or object to extract fields from";
        return Err(BadHolmesRequest::field("model_attributes_type", &[], message, &body));
    };
    let mut faults: Vec<BadHolmesRequest> = fields
        .iter()
        .filter(|(name, value)| !value.is_null() && !FIELDS.contains(&name.as_str()))
        .take(MAX_UNKNOWN_FIELDS)
        .map(|(name, value)| {
            let message = unknown_field(name, "", FIELDS).message;
            BadHolmesRequest::field("extra_forbidden", &[json!(name)], message, value)
        })
        .collect();
    for (name, known) in ENTRIES {
        unknown_entry_fields(fields, name, known, &mut faults);
    }
    let tool_decisions = decisions(fields, &mut faults);
    let frontend_tool_results = results(fields, &mut faults);
    let carries_answers = tool_decisions.is_some() || frontend_tool_results.is_some();
    let ask = match fields.get("ask") {
        Some(Value::String(ask)) => ask.trim().to_owned(),
        None | Some(Value::Null) if carries_answers => String::new(),
        None => {
            faults.push(BadHolmesRequest::field("missing", &[json!("ask")], "Field required", &body));
            String::new()
        }
        Some(other) => {
            faults.push(BadHolmesRequest::wrong_type(&[json!("ask")], "string", other));
            String::new()
        }
    };
    let conversation = list(fields, HISTORY, &mut faults);
    check_conversation(conversation, &mut faults);
    let model = text(fields, "model", &mut faults).filter(|model| !model.is_empty());
    let stream = flag(fields, "stream", &mut faults);
    let enable_tool_approval = flag(fields, "enable_tool_approval", &mut faults);
    let additional_system_prompt = text(fields, "additional_system_prompt", &mut faults);
    let behavior_controls = controls(fields, &mut faults);
    let frontend_tools = frontend_tools(fields, &mut faults);
    let format = object(fields, "response_format", &mut faults);
    let images = list(fields, "images", &mut faults);
    for (index, image) in images.iter().enumerate() {
        check_image(image, index, &mut faults);
    }
    if let Some(fault) = joined(faults) {
        return Err(fault);
    }
    check_frontend_tools(&frontend_tools, stream, is_server_tool)?;
    let (images, image_urls) = read_images(images)?;
    let answer_schema =
        answer_schema(format, "response_format").map_err(|error| BadHolmesRequest::text(400, error.message))?;
    let (history, open_calls) = parse_history(conversation);
    let request = HolmesRequest {
        ask,
        history,
        open_calls,
        model,
        stream,
        answer_schema,
        images,
        image_urls,
        enable_tool_approval,
        tool_decisions,
        frontend_tools,
        frontend_tool_results,
        additional_system_prompt,
        behavior_controls,
    };
    if request.ask.is_empty() && !request.resumes() {
        return Err(BadHolmesRequest::text(400, "`ask` is empty; ask something"));
    }
    Ok(request)
}

fn unknown_entry_fields(fields: &Map<String, Value>, name: &str, known: &[&str], faults: &mut Vec<BadHolmesRequest>) {
    let Some(Value::Array(entries)) = fields.get(name) else { return };
    for (index, entry) in entries.iter().enumerate() {
        for (field, value) in entry.as_object().into_iter().flatten() {
            if faults.len() < MAX_UNKNOWN_FIELDS && !value.is_null() && !known.contains(&field.as_str()) {
                let message = unknown_field(field, &format!("{name}[{index}]"), known.iter().copied()).message;
                let place = [json!(name), json!(index), json!(field)];
                faults.push(BadHolmesRequest::field("extra_forbidden", &place, message, value));
            }
        }
    }
}

/// Combines all faults into one, as HolmesGPT's server does.
fn joined(faults: Vec<BadHolmesRequest>) -> Option<BadHolmesRequest> {
    let details: Vec<Value> =
        faults.into_iter().flat_map(|fault| fault.detail.as_array().cloned().unwrap_or_default()).collect();
    (!details.is_empty()).then(|| BadHolmesRequest { status: 422, detail: Value::Array(details) })
}

fn given<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    fields.get(name).filter(|value| !value.is_null())
}

fn text(fields: &Map<String, Value>, name: &str, faults: &mut Vec<BadHolmesRequest>) -> Option<String> {
    match given(fields, name)? {
        Value::String(text) => Some(text.clone()),
        other => {
            faults.push(BadHolmesRequest::wrong_type(&[json!(name)], "string", other));
            None
        }
    }
}

fn flag(fields: &Map<String, Value>, name: &str, faults: &mut Vec<BadHolmesRequest>) -> bool {
    let Some(value) = given(fields, name) else { return false };
    let read = as_flag(value);
    if read.is_none() {
        faults.push(BadHolmesRequest::wrong_type(&[json!(name)], "bool", value));
    }
    read.unwrap_or_default()
}

/// Reads a flag as HolmesGPT's server does: also `"true"`, `1` and the like.
fn as_flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::Number(number) => match number.as_u64() {
            Some(0) => Some(false),
            Some(1) => Some(true),
            _ => None,
        },
        Value::String(word) => match word.to_ascii_lowercase().as_str() {
            "true" | "t" | "yes" | "y" | "on" | "1" => Some(true),
            "false" | "f" | "no" | "n" | "off" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

fn list<'a>(fields: &'a Map<String, Value>, name: &str, faults: &mut Vec<BadHolmesRequest>) -> &'a [Value] {
    match given(fields, name) {
        None => &[],
        Some(Value::Array(entries)) => match check_item_count(name, entries.len()) {
            Ok(()) => entries.as_slice(),
            Err(fault) => {
                faults.push(too_long(name, fault, entries.len()));
                &[]
            }
        },
        Some(other) => {
            faults.push(BadHolmesRequest::wrong_type(&[json!(name)], "list", other));
            &[]
        }
    }
}

/// Returns a fault of a field that has more than is read.
fn too_long(name: &str, fault: BadRequest, count: usize) -> BadHolmesRequest {
    BadHolmesRequest::field("too_long", &[json!(name)], fault.message, &json!(count))
}

fn object<'a>(fields: &'a Map<String, Value>, name: &str, faults: &mut Vec<BadHolmesRequest>) -> &'a Value {
    match given(fields, name) {
        None => &Value::Null,
        Some(value) => {
            if !value.is_object() {
                faults.push(BadHolmesRequest::wrong_type(&[json!(name)], "dict", value));
            }
            value
        }
    }
}

/// The field of what was said before.
const HISTORY: &str = "conversation_history";
/// Who speaks in a history.
const ROLES: [&str; 4] = ["system", "user", "assistant", "tool"];

fn check_conversation(conversation: &[Value], faults: &mut Vec<BadHolmesRequest>) {
    let at = json!(HISTORY);
    let calls = conversation.iter().map(|message| message["tool_calls"].as_array().map_or(0, Vec::len));
    let count = conversation.len() + calls.sum::<usize>();
    if let Err(fault) = check_item_count(HISTORY, count) {
        return faults.push(too_long(HISTORY, fault, count));
    }
    for (index, message) in conversation.iter().enumerate().filter(|(_, message)| !message.is_object()) {
        faults.push(BadHolmesRequest::wrong_type(&[at.clone(), json!(index)], "dict", message));
    }
    for (index, message) in conversation.iter().enumerate().filter(|(_, message)| message.is_object()) {
        if !message["role"].as_str().is_some_and(|role| ROLES.contains(&role)) {
            let text = format!("Value error, 'role' must be one of {}", ROLES.join(", "));
            let place = [at.clone(), json!(index), json!("role")];
            faults.push(BadHolmesRequest::field("value_error", &place, &text, message));
        }
    }
    if conversation.first().is_some_and(|first| first.is_object() && first["role"] != "system") {
        let message = "Value error, The first item in conversation_history must contain 'role': 'system'";
        faults.push(BadHolmesRequest::field("value_error", &[], message, &Value::Array(conversation.to_vec())));
    }
}

/// Reads a required string of a list's entry.
fn entry_text(entry: &Value, list: &str, index: usize, name: &str, faults: &mut Vec<BadHolmesRequest>) -> String {
    let at = [json!(list), json!(index), json!(name)];
    match entry.get(name) {
        Some(Value::String(text)) => return text.clone(),
        Some(other) => faults.push(BadHolmesRequest::wrong_type(&at, "string", other)),
        None => faults.push(BadHolmesRequest::field("missing", &at, "Field required", entry)),
    }
    String::new()
}

fn decisions(fields: &Map<String, Value>, faults: &mut Vec<BadHolmesRequest>) -> Option<Vec<ToolDecision>> {
    const NAME: &str = "tool_decisions";
    given(fields, NAME)?;
    let entries = list(fields, NAME, faults);
    let read = entries.iter().enumerate().map(|(index, entry)| {
        let at = [json!(NAME), json!(index), json!("approved")];
        let approved = match entry.get("approved") {
            Some(value) => as_flag(value).unwrap_or_else(|| {
                faults.push(BadHolmesRequest::wrong_type(&at, "bool", value));
                false
            }),
            None => {
                faults.push(BadHolmesRequest::field("missing", &at, "Field required", entry));
                false
            }
        };
        let feedback = match entry.get("feedback") {
            None | Some(Value::Null) => None,
            Some(Value::String(feedback)) => Some(feedback.clone()).filter(|feedback| !feedback.trim().is_empty()),
            Some(other) => {
                let at = [json!(NAME), json!(index), json!("feedback")];
                faults.push(BadHolmesRequest::wrong_type(&at, "string", other));
                None
            }
        };
        let tool_call_id = entry_text(entry, NAME, index, "tool_call_id", faults);
        ToolDecision { tool_call_id, approved, feedback }
    });
    Some(read.collect())
}

fn results(fields: &Map<String, Value>, faults: &mut Vec<BadHolmesRequest>) -> Option<Vec<FrontendResult>> {
    const NAME: &str = "frontend_tool_results";
    given(fields, NAME)?;
    let entries = list(fields, NAME, faults);
    let read = entries.iter().enumerate().map(|(index, entry)| FrontendResult {
        tool_call_id: entry_text(entry, NAME, index, "tool_call_id", faults),
        tool_name: entry_text(entry, NAME, index, "tool_name", faults),
        result: entry_text(entry, NAME, index, "result", faults),
    });
    Some(read.collect())
}

fn controls(fields: &Map<String, Value>, faults: &mut Vec<BadHolmesRequest>) -> Vec<(String, bool)> {
    const NAME: &str = "behavior_controls";
    let mut controls = Vec::new();
    for (key, value) in object(fields, NAME, faults).as_object().into_iter().flatten() {
        match as_flag(value) {
            Some(on) => controls.push((key.clone(), on)),
            None => faults.push(BadHolmesRequest::wrong_type(&[json!(NAME), json!(key)], "bool", value)),
        }
    }
    controls
}

fn frontend_tools(fields: &Map<String, Value>, faults: &mut Vec<BadHolmesRequest>) -> Vec<FrontendTool> {
    const NAME: &str = "frontend_tools";
    const DONE: &str = "The action was performed successfully in the user's browser.";
    let mut tools = Vec::new();
    let entries = list(fields, NAME, faults);
    if let Err(fault) = check_tool_count(NAME, entries.len()) {
        faults.push(too_long(NAME, fault, entries.len()));
        return tools;
    }
    for (index, entry) in entries.iter().enumerate() {
        let at = |field: &str| [json!(NAME), json!(index), json!(field)];
        let parameters = match entry.get("parameters") {
            None | Some(Value::Null) => json!({ "type": "object", "properties": {} }),
            Some(schema @ Value::Object(_)) => schema.clone(),
            Some(other) => {
                faults.push(BadHolmesRequest::wrong_type(&at("parameters"), "dict", other));
                Value::Null
            }
        };
        let response = match entry.get("noop_response") {
            None | Some(Value::Null) => DONE.to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => {
                faults.push(BadHolmesRequest::wrong_type(&at("noop_response"), "string", other));
                String::new()
            }
        };
        let mode = match entry.get("mode") {
            None => FrontendMode::Pause,
            Some(mode) if mode == "pause" => FrontendMode::Pause,
            Some(mode) if mode == "noop" => FrontendMode::Noop(response),
            Some(other) => {
                let message = "Input should be 'pause' or 'noop'";
                faults.push(BadHolmesRequest::field("literal_error", &at("mode"), message, other));
                FrontendMode::Pause
            }
        };
        let name = entry_text(entry, NAME, index, "name", faults);
        let description = entry_text(entry, NAME, index, "description", faults);
        if let (true, Err(fault)) = (parameters.is_object(), check_arguments_schema(&name, &parameters, "parameters")) {
            faults.push(BadHolmesRequest::field("value_error", &at("parameters"), fault.message, &parameters));
        }
        tools.push(FrontendTool { spec: ToolSpec { name, description, parameters }, mode });
    }
    tools
}

fn check_frontend_tools(
    tools: &[FrontendTool],
    stream: bool,
    is_server_tool: impl Fn(&str) -> bool,
) -> Result<(), BadHolmesRequest> {
    let mut names = HashSet::with_capacity(tools.len());
    for (index, tool) in tools.iter().enumerate() {
        let name = &tool.spec.name;
        if name.is_empty() {
            return Err(BadHolmesRequest::text(400, format!("frontend tool {} has an empty name", index + 1)));
        }
        if let Err(fault) = check_tool_name(name, &format!("frontend_tools[{index}].name")) {
            return Err(BadHolmesRequest::text(400, fault.message));
        }
        if is_server_tool(name) {
            let message = format!("Frontend tool name '{name}' conflicts with a built-in tool; give it another name");
            return Err(BadHolmesRequest::text(400, message));
        }
        if !names.insert(name.as_str()) {
            return Err(BadHolmesRequest::text(400, format!("Duplicate frontend tool name '{name}'")));
        }
    }
    let waits = tools.iter().find(|tool| tool.mode == FrontendMode::Pause);
    match waits.filter(|_| !stream) {
        Some(tool) => {
            let message = format!("Frontend tool '{}' has mode 'pause', which requires stream=true", tool.spec.name);
            Err(BadHolmesRequest::text(400, message))
        }
        None => Ok(()),
    }
}

/// Checks the form of a picture; a missing `url` has a fault of its own.
fn check_image(image: &Value, index: usize, faults: &mut Vec<BadHolmesRequest>) {
    let at = |name: &str| [json!("images"), json!(index), json!(name)];
    if !image.is_string() && !image.is_object() {
        faults.push(BadHolmesRequest::wrong_type(&[json!("images"), json!(index)], "string", image));
    }
    for name in ["detail", "format"] {
        if let Some(other) = image.get(name).filter(|value| !value.is_null() && !value.is_string()) {
            faults.push(BadHolmesRequest::wrong_type(&at(name), "string", other));
        }
    }
    if image["detail"].as_str().is_some_and(|detail| !["low", "high", "auto"].contains(&detail)) {
        let message = "Input should be 'low', 'high' or 'auto'";
        faults.push(BadHolmesRequest::field("literal_error", &at("detail"), message, &image["detail"]));
    }
}

/// Returns the pictures in the request, and the URLs of others.
fn read_images(images: &[Value]) -> Result<(Vec<ChatImage>, Vec<String>), BadHolmesRequest> {
    let (mut carried, mut urls) = (Vec::new(), Vec::new());
    for image in images {
        let (url, format) = match image {
            Value::String(url) => (Some(url.as_str()), None),
            other => (other["url"].as_str(), other["format"].as_str()),
        };
        let Some(url) = url else {
            let message = format!("Image dict must contain a 'url' key with a string, got {image}");
            return Err(BadHolmesRequest::text(500, message));
        };
        match url.strip_prefix("data:") {
            Some(data) => carried.push(inline_image(data, format)?),
            None => urls.push(url.to_owned()),
        }
    }
    Ok((carried, urls))
}

/// Parses what follows `data:` in a URL. Whether the picture can be read is for the model to find out.
fn inline_image(data: &str, format: Option<&str>) -> Result<ChatImage, BadHolmesRequest> {
    let bad = |why: &str| BadHolmesRequest::text(400, format!("an image is not a base64 data URI: {why}"));
    let (head, encoded) = data.split_once(',').ok_or_else(|| bad("it has no comma"))?;
    let media_type = head.strip_suffix(";base64").ok_or_else(|| bad("it does not say `;base64`"))?;
    let media_type = format.filter(|format| !format.is_empty()).unwrap_or(media_type);
    if !media_type.starts_with("image/") {
        return Err(bad(&format!("its type is `{}`, not an image's", media_type.chars().take(40).collect::<String>())));
    }
    Ok(ChatImage { media_type: media_type.to_owned(), data: encoded.to_owned() })
}
