//! AG-UI, the protocol between agents and their interfaces: the agent for its client library and CopilotKit. Nothing is
//! kept; the client sends the whole conversation. Reference: <https://docs.ag-ui.com/concepts/events>.

mod render;

use serde_json::{Map, Value, json};

use super::fields::{FieldValues, check_known_members, check_members, check_value, unknown_field};
use super::json::parse_json;
use super::kind_of;
use super::responses::{
    BadRequest, InputContent, InputItem, check_arguments_schema, check_distinct, check_item_count, check_tool_count,
    check_tool_name, parse_content,
};
use crate::models::{ChatRole, ToolSpec};
use crate::request::{Protocol, RunRequest};

pub use render::AgUiRenderer;

const TEXT: FieldValues = FieldValues::Text;
/// The fields of a request. `parentRunId` has no effect; `protocolVersion`, which clients before 1.0 do not send, tells
/// them from the others.
const FIELDS: &[(&str, FieldValues)] = &[
    ("threadId", TEXT),
    ("runId", TEXT),
    ("parentRunId", TEXT),
    ("protocolVersion", TEXT),
    ("state", FieldValues::Parsed),
    ("messages", FieldValues::List),
    ("tools", FieldValues::List),
    ("context", FieldValues::List),
    ("forwardedProps", FieldValues::Object),
    ("resume", FieldValues::List),
];
const TOOL: &[(&str, FieldValues)] =
    &[("name", TEXT), ("description", TEXT), ("parameters", FieldValues::Object), ("metadata", FieldValues::Object)];
const CONTEXT: &[(&str, FieldValues)] = &[("description", TEXT), ("value", TEXT)];
const RESUME: &[(&str, FieldValues)] = &[
    ("interruptId", TEXT),
    ("status", FieldValues::OneOf(&["resolved", "cancelled"])),
    ("payload", FieldValues::Parsed),
    ("metadata", FieldValues::Object),
];
/// What is known of a message; interfaces add members of their own, which have no effect.
const MESSAGE: &[(&str, FieldValues)] = &[
    ("id", TEXT),
    ("name", TEXT),
    ("toolCallId", TEXT),
    ("error", TEXT),
    ("encryptedValue", TEXT),
    ("subagentRunId", TEXT),
    ("activityType", TEXT),
    ("metadata", FieldValues::Object),
];
/// What is known of a part, of whichever kind, and of its source.
const PART: &[(&str, FieldValues)] = &[
    ("id", TEXT),
    ("source", FieldValues::Object),
    ("mimeType", TEXT),
    ("data", TEXT),
    ("url", TEXT),
    ("filename", TEXT),
];
const SOURCE: &[(&str, FieldValues)] = &[("type", TEXT), ("value", TEXT), ("url", TEXT), ("mimeType", TEXT)];
const PART_METADATA: &[(&str, FieldValues)] = &[("filename", TEXT)];
const CALL: &[(&str, FieldValues)] = &[
    ("id", TEXT),
    ("type", FieldValues::OneOf(&["function"])),
    ("function", FieldValues::Object),
    ("encryptedValue", TEXT),
    ("metadata", FieldValues::Object),
];

/// What an answer to an interrupt says, as the interrupt's `responseSchema` has it. A call is executed as it was shown.
const ANSWER: &[(&str, FieldValues)] = &[("approved", FieldValues::Flag), ("reason", TEXT)];

/// A request of this protocol.
#[derive(Debug, Clone)]
pub struct AgUiRequest {
    /// The messages and decisions, as items.
    pub items: Vec<InputItem>,
    /// What the application says of itself: its context and its state.
    pub instructions: Option<String>,
    /// Tools that the client executes.
    pub tools: Vec<ToolSpec>,
    /// Whether to show thinking.
    pub include_thinking: bool,
    /// The client's ids of the conversation and of the run, and the version that it speaks.
    pub ids: Value,
}

impl AgUiRequest {
    /// Returns the requested run, and its items.
    pub fn into_run(self) -> (RunRequest, Vec<InputItem>) {
        let run = RunRequest {
            include_thinking: self.include_thinking,
            instructions: self.instructions,
            client_tools: self.tools,
            can_approve: true,
            echo: self.ids,
            ..RunRequest::new(Protocol::AgUi, Vec::new())
        };
        (run, self.items)
    }
}

/// Parses a body, which is a `RunAgentInput`.
pub fn parse_request(body: &[u8]) -> Result<AgUiRequest, BadRequest> {
    let body = parse_json(body)
        .map_err(|error| BadRequest::new("invalid_json", "body", format!("the body is not JSON: {error}")))?;
    let Value::Object(fields) = &body else {
        return Err(BadRequest::invalid("body", format!("the body must be a JSON object, not {}", kind_of(&body))));
    };
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        match FIELDS.iter().find(|(known, _)| known == name) {
            Some((_, values)) => check_value(name, *values, "leave it out", value)?,
            None => return Err(unknown_field(name, "", FIELDS.iter().map(|(known, _)| *known)).into()),
        }
    }
    for name in ["threadId", "runId", "messages"] {
        if fields.get(name).is_none_or(|value| value.is_null() || value.as_str().is_some_and(str::is_empty)) {
            return Err(BadRequest::new("missing_required_parameter", name, format!("`{name}` is missing")));
        }
    }
    let mut items = Vec::new();
    for name in ["messages", "resume"] {
        check_item_count(name, list(fields, name).len())?;
    }
    for (index, message) in list(fields, "messages").iter().enumerate() {
        read_message(message, &format!("messages[{index}]"), &mut items)?;
    }
    check_item_count("messages", items.len())?;
    for (index, entry) in list(fields, "resume").iter().enumerate() {
        items.push(decision(entry, &format!("resume[{index}]"))?);
    }
    if items.is_empty() {
        return Err(BadRequest::invalid("messages", "`messages` is empty; say something"));
    }
    let thinking = fields.get("forwardedProps").and_then(|forwarded| forwarded.get("thinking"));
    if let Some(thinking) = thinking.filter(|thinking| !thinking.is_null()) {
        check_value("forwardedProps.thinking", FieldValues::Flag, "leave it out", thinking)?;
    }
    Ok(AgUiRequest {
        items,
        instructions: instructions(fields)?,
        tools: tools(fields)?,
        include_thinking: thinking == Some(&json!(true)),
        ids: json!({
            "threadId": fields["threadId"],
            "runId": fields["runId"],
            "protocolVersion": fields.get("protocolVersion"),
        }),
    })
}

fn list<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    fields.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Checks an entry of a list, which must be an object.
fn members<'a>(
    entry: &'a Value,
    at: &str,
    known: &[(&str, FieldValues)],
) -> Result<&'a Map<String, Value>, BadRequest> {
    let Value::Object(fields) = entry else {
        return Err(BadRequest::invalid(at, format!("`{at}` must be an object, not {}", kind_of(entry))));
    };
    check_members(fields, at, known)?;
    Ok(fields)
}

fn required(entry: &Value, at: &str, name: &str) -> Result<String, BadRequest> {
    match &entry[name] {
        Value::String(text) => Ok(text.clone()),
        other => {
            let param = format!("{at}.{name}");
            Err(BadRequest::invalid(&param, format!("`{param}` must be a string, not {}", kind_of(other))))
        }
    }
}

fn read_message(message: &Value, at: &str, items: &mut Vec<InputItem>) -> Result<(), BadRequest> {
    if let Value::Object(fields) = message {
        check_known_members(fields, at, MESSAGE)?;
    }
    let said = |role| -> Result<InputItem, BadRequest> {
        if message["content"].is_null() {
            let param = format!("{at}.content");
            return Err(BadRequest::new("missing_required_parameter", &param, format!("`{param}` is missing")));
        }
        InputItem::message(role, content_of(&message["content"], at)?, at)
    };
    match message["role"].as_str() {
        Some("user") => items.push(said(ChatRole::User)?),
        Some("system" | "developer") => items.push(said(ChatRole::System)?),
        Some("assistant") => {
            if message["content"].as_str().is_some_and(|text| !text.is_empty()) || message["content"].is_array() {
                items.push(said(ChatRole::Assistant)?);
            }
            if !message["content"].is_null() && !message["content"].is_string() && !message["content"].is_array() {
                let (param, kind) = (format!("{at}.content"), kind_of(&message["content"]));
                return Err(BadRequest::invalid(&param, format!("`{param}` must be a string or a list, not {kind}")));
            }
            if !message["toolCalls"].is_null() && !message["toolCalls"].is_array() {
                let (param, kind) = (format!("{at}.toolCalls"), kind_of(&message["toolCalls"]));
                return Err(BadRequest::invalid(&param, format!("`{param}` must be a list, not {kind}")));
            }
            for (index, call) in message["toolCalls"].as_array().into_iter().flatten().enumerate() {
                let at = format!("{at}.toolCalls[{index}]");
                if let Value::Object(fields) = call {
                    check_known_members(fields, &at, CALL)?;
                }
                items.push(InputItem::FunctionCall {
                    call_id: required(call, &at, "id")?,
                    name: required(&call["function"], &format!("{at}.function"), "name")?,
                    arguments: required(&call["function"], &format!("{at}.function"), "arguments")?,
                });
            }
        }
        Some("tool") => {
            let texts = content_of(&message["content"], at)?.into_iter().map(InputContent::into_text);
            let mut output = texts.collect::<Vec<_>>().join("\n");
            if !message["error"].is_null() {
                output = format!("Error: {}\n{output}", required(message, at, "error")?);
            }
            items.push(InputItem::FunctionCallOutput { call_id: required(message, at, "toolCallId")?, output });
        }
        // What the model thought, and what the interface shows of its work, is not shown to it again.
        Some("reasoning" | "activity") => {}
        _ => {
            let roles = "user, assistant, system, developer, tool, reasoning and activity";
            return Err(BadRequest::invalid(&format!("{at}.role"), format!("`{at}.role` is not one of {roles}")));
        }
    }
    Ok(())
}

/// Parses a text, or parts in this protocol's form.
fn content_of(content: &Value, at: &str) -> Result<Vec<InputContent>, BadRequest> {
    let Value::Array(parts) = content else { return parse_content(content, at) };
    for (index, part) in parts.iter().enumerate() {
        check_part(part, &format!("{at}.content[{index}]"))?;
    }
    let parts = parts.iter().map(|part| {
        let source = &part["source"];
        let value = source["value"].as_str().or(source["url"].as_str()).unwrap_or_default();
        let media_type = source["mimeType"].as_str();
        if matches!(part["type"].as_str(), Some("image" | "document")) && value.is_empty() {
            let message = format!("the source of a part of `{at}` has no value");
            return Err(BadRequest::invalid(&format!("{at}.content"), message));
        }
        match (part["type"].as_str(), source["type"].as_str()) {
            (Some("image"), Some("data")) => {
                let url = format!("data:{};base64,{value}", media_type.unwrap_or("image/png"));
                Ok(json!({ "type": "input_image", "image_url": url }))
            }
            (Some("image"), Some("url")) => Ok(json!({ "type": "input_image", "image_url": value })),
            (Some("document"), Some("data")) => {
                let name = part["metadata"]["filename"].as_str().unwrap_or("document");
                let data = format!("data:{};base64,{value}", media_type.unwrap_or("text/plain"));
                Ok(json!({ "type": "input_file", "filename": name, "file_data": data }))
            }
            (Some("document"), Some("url")) => Ok(json!({ "type": "input_file", "file_url": value })),
            (Some("image" | "document"), Some("file")) => Ok(json!({ "type": "input_file", "file_id": value })),
            (Some("text"), _) => Ok(part.clone()),
            (Some("binary"), _) => binary_part(part, at),
            (kind, _) => {
                let param = format!("{at}.content");
                let kind = kind.unwrap_or("without a type");
                let message = format!("a part `{kind}` of `{at}` is not supported; send text, an image or a document");
                Err(BadRequest::invalid(&param, message))
            }
        }
    });
    parse_content(&Value::Array(parts.collect::<Result<Vec<_>, _>>()?), at)
}

/// Refuses what is not as a part's kind has it, since another type or name would be guessed.
fn check_part(part: &Value, at: &str) -> Result<(), BadRequest> {
    let Value::Object(fields) = part else { return Ok(()) };
    check_known_members(fields, at, PART)?;
    if let Some(Value::Object(source)) = fields.get("source") {
        check_known_members(source, &format!("{at}.source"), SOURCE)?;
    }
    if let Some(Value::Object(metadata)) = fields.get("metadata") {
        check_known_members(metadata, &format!("{at}.metadata"), PART_METADATA)?;
    }
    Ok(())
}

/// Returns a file in the form that clients before 1.0 send, of every kind: `{mimeType, data | url | id, filename}`.
fn binary_part(part: &Value, at: &str) -> Result<Value, BadRequest> {
    let text = |name: &str| part[name].as_str().filter(|text| !text.is_empty());
    let media_type = text("mimeType").unwrap_or("application/octet-stream");
    let is_image = media_type.starts_with("image/");
    if let Some(data) = text("data") {
        let uri = format!("data:{media_type};base64,{data}");
        return Ok(match is_image {
            true => json!({ "type": "input_image", "image_url": uri }),
            false => {
                let name = text("filename").unwrap_or("file");
                json!({ "type": "input_file", "filename": name, "file_data": uri })
            }
        });
    }
    match (text("url"), text("id")) {
        (Some(url), _) if is_image => Ok(json!({ "type": "input_image", "image_url": url })),
        (Some(url), _) => Ok(json!({ "type": "input_file", "file_url": url })),
        (None, Some(id)) => Ok(json!({ "type": "input_file", "file_id": id })),
        (None, None) => {
            let message = format!("a part `binary` of `{at}` has neither data, url nor id");
            Err(BadRequest::invalid(&format!("{at}.content"), message))
        }
    }
}

/// Parses the answer to an interrupt: a call is approved by `true`, or by `{"approved": true}`.
fn decision(entry: &Value, at: &str) -> Result<InputItem, BadRequest> {
    members(entry, at, RESUME)?;
    let payload = &entry["payload"];
    if let Value::Object(answer) = payload
        && entry["status"] == "resolved"
    {
        check_members(answer, &format!("{at}.payload"), ANSWER)?;
    }
    let approve = match (entry["status"].as_str(), payload.as_bool().or(payload["approved"].as_bool())) {
        (Some("cancelled"), _) => false,
        (Some(_), Some(approve)) => approve,
        (_, None) | (None, _) => {
            let param = format!("{at}.payload");
            let message = format!("`{param}` must say whether the call is approved: {{\"approved\": true}}");
            return Err(BadRequest::invalid(&param, message));
        }
    };
    let reason = payload["reason"].as_str().map(str::to_owned);
    Ok(InputItem::ApprovalResponse { request_id: required(entry, at, "interruptId")?, approve, reason })
}

/// Returns the application's context and state as instructions.
fn instructions(fields: &Map<String, Value>) -> Result<Option<String>, BadRequest> {
    let mut paragraphs = Vec::new();
    for (index, entry) in list(fields, "context").iter().enumerate() {
        let at = format!("context[{index}]");
        members(entry, &at, CONTEXT)?;
        paragraphs.push(format!("{}: {}", required(entry, &at, "description")?, required(entry, &at, "value")?));
    }
    match fields.get("state") {
        None | Some(Value::Null) => {}
        Some(Value::Object(state)) if state.is_empty() => {}
        Some(state) => paragraphs.push(format!("The state of the application: {state}")),
    }
    Ok(Some(paragraphs.join("\n\n")).filter(|text| !text.is_empty()))
}

fn tools(fields: &Map<String, Value>) -> Result<Vec<ToolSpec>, BadRequest> {
    check_tool_count("tools", list(fields, "tools").len())?;
    let tools = list(fields, "tools").iter().enumerate().map(|(index, entry)| {
        let at = format!("tools[{index}]");
        members(entry, &at, TOOL)?;
        let name = required(entry, &at, "name")?;
        if name.is_empty() {
            return Err(BadRequest::invalid(&format!("{at}.name"), format!("`{at}` has no name")));
        }
        check_tool_name(&name, &format!("{at}.name"))?;
        if !entry["parameters"].is_null() {
            check_arguments_schema(&name, &entry["parameters"], &format!("{at}.parameters"))?;
        }
        Ok(ToolSpec {
            name,
            description: entry["description"].as_str().unwrap_or_default().to_owned(),
            parameters: match &entry["parameters"] {
                Value::Null => json!({ "type": "object", "properties": {} }),
                schema => schema.clone(),
            },
        })
    });
    let tools = tools.collect::<Result<Vec<_>, _>>()?;
    check_distinct(&tools)?;
    Ok(tools)
}
