//! Anthropic's Messages: the agent for its client libraries, as a model with tools of its own that it does not show. Nothing
//! is kept; the client sends the whole conversation. Reference: <https://docs.anthropic.com/en/api/messages>.

mod fields;
mod render;

use serde_json::{Map, Value, json};

use super::responses::{
    BadRequest, InputContent, InputItem, answer_schema, check_arguments_schema, check_distinct, check_item_count,
    check_tool_count, check_tool_name, flag, parse_content, positive, text,
};
use crate::models::{ChatRole, Sampling, ToolChoice, ToolSpec};
use crate::protocols::fields::{FieldValues, check_members, check_names};
use crate::protocols::json::parse_json;
use crate::protocols::kind_of;
use crate::protocols::message_fields::{ANTHROPIC_MESSAGE, ANTHROPIC_PARTS, check_message, check_parts};
use crate::request::{AnswerSchema, Protocol, RunRequest};
use crate::tools::known_tool;

pub use fields::messages_fields_table;
use fields::{CACHE_CONTROL, check_fields};
pub use render::MessagesRenderer;

const TOOL: &[(&str, FieldValues)] = &[
    ("type", FieldValues::Text),
    ("name", FieldValues::Text),
    ("description", FieldValues::Text),
    ("input_schema", FieldValues::Object),
    ("input_examples", FieldValues::List),
    ("strict", FieldValues::Flag),
    ("cache_control", CACHE_CONTROL),
    ("eager_input_streaming", FieldValues::Flag),
    ("defer_loading", FieldValues::Only("false")),
    ("allowed_callers", FieldValues::Only("[\"direct\"]")),
];
const CHOICE: &[(&str, FieldValues)] =
    &[("type", FieldValues::Text), ("name", FieldValues::Text), ("disable_parallel_tool_use", FieldValues::Flag)];

/// A request of this protocol.
#[derive(Debug, Clone)]
pub struct MessagesRequest {
    /// The messages, as items.
    pub items: Vec<InputItem>,
    /// The requested model.
    pub model: String,
    /// The application's instructions.
    pub system: Option<String>,
    /// Whether to answer as events.
    pub stream: bool,
    /// Tools that the client executes.
    pub tools: Vec<ToolSpec>,
    /// Whether a tool must be called.
    pub tool_choice: ToolChoice,
    /// The schema of the answer.
    pub answer_schema: Option<AnswerSchema>,
    /// Whether to show thinking.
    pub include_thinking: bool,
    /// Whether blocks of thinking are shown without their text.
    pub omits_thinking: bool,
    /// Tokens of one turn.
    pub max_tokens: Option<u32>,
    /// How the model chooses tokens.
    pub sampling: Sampling,
    /// Whether only the first call of a reply is made.
    pub one_call_a_turn: bool,
}

impl MessagesRequest {
    /// Returns the requested run, and its items.
    pub fn into_run(self) -> (RunRequest, Vec<InputItem>) {
        let run = RunRequest {
            include_thinking: self.include_thinking,
            echo: json!({ "model": self.model }),
            model: Some(self.model),
            instructions: self.system,
            client_tools: self.tools,
            tool_choice: self.tool_choice,
            answer_schema: self.answer_schema,
            max_output_tokens: self.max_tokens,
            sampling: self.sampling,
            one_call_a_turn: self.one_call_a_turn,
            ..RunRequest::new(Protocol::Messages, Vec::new())
        };
        (run, self.items)
    }
}

/// Parses a body. Where tokens are only counted, `max_tokens` may be absent.
pub fn parse_request(body: &[u8], is_count: bool) -> Result<MessagesRequest, BadRequest> {
    let body = parse_json(body)
        .map_err(|error| BadRequest::new("invalid_json", "body", format!("the body is not JSON: {error}")))?;
    let Value::Object(fields) = &body else {
        return Err(BadRequest::invalid("body", format!("the body must be a JSON object, not {}", kind_of(&body))));
    };
    let missing = |name: &str| BadRequest::new("missing_required_parameter", name, format!("`{name}` is missing"));
    check_fields(fields, is_count)?;
    let messages = match fields.get("messages") {
        None | Some(Value::Null) => return Err(missing("messages")),
        Some(Value::Array(messages)) if messages.is_empty() => {
            return Err(BadRequest::invalid("messages", "`messages` is empty; say something"));
        }
        Some(Value::Array(messages)) => messages,
        Some(other) => {
            return Err(BadRequest::invalid("messages", format!("`messages` must be a list, not {}", kind_of(other))));
        }
    };
    let mut items = Vec::new();
    check_item_count("messages", messages.len())?;
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages[{index}]");
        read_message(message, &at, &mut items)?;
        check_message(message, &at, ANTHROPIC_MESSAGE, &ANTHROPIC_PARTS)?;
    }
    check_item_count("messages", items.len())?;
    let max_tokens = positive(fields, "max_tokens")?;
    if max_tokens.is_none() && !is_count {
        return Err(missing("max_tokens"));
    }
    let tools = tools_of(fields)?;
    let tool_choice = choice_of(fields.get("tool_choice"), &tools)?;
    let thinking = fields.get("thinking").unwrap_or(&Value::Null);
    let include_thinking = match thinking["type"].as_str() {
        Some("enabled" | "adaptive" | "between_tools") => true,
        Some("disabled") => false,
        None if thinking.is_null() => false,
        _ => return Err(BadRequest::invalid("thinking", "`thinking.type` must be enabled, adaptive or disabled")),
    };
    Ok(MessagesRequest {
        items,
        model: text(fields, "model")?.filter(|model| !model.is_empty()).ok_or_else(|| missing("model"))?,
        system: system_of(fields)?,
        stream: flag(fields, "stream", false)?,
        tools,
        tool_choice,
        answer_schema: answer_form(fields)?,
        include_thinking,
        omits_thinking: thinking["display"] == json!("omitted"),
        max_tokens,
        sampling: sampling_of(fields)?,
        one_call_a_turn: fields
            .get("tool_choice")
            .is_some_and(|choice| choice["disable_parallel_tool_use"] == json!(true)),
    })
}

/// Parses the answer's form, which clients had in `output_format` while it was a beta, and some still have.
fn answer_form(fields: &Map<String, Value>) -> Result<Option<AnswerSchema>, BadRequest> {
    let form = &fields.get("output_config").unwrap_or(&Value::Null)["format"];
    let earlier = fields.get("output_format").unwrap_or(&Value::Null);
    match (form.is_null(), earlier.is_null()) {
        (_, true) => answer_schema(form, "output_config.format"),
        (true, false) => answer_schema(earlier, "output_format"),
        (false, false) => {
            let message = "`output_format` says the same as `output_config.format`; leave it out";
            Err(BadRequest::invalid("output_format", message))
        }
    }
}

fn system_of(fields: &Map<String, Value>) -> Result<Option<String>, BadRequest> {
    let system = fields.get("system").unwrap_or(&Value::Null);
    let parts = parse_content(system, "system").map_err(|error| BadRequest::invalid("system", error.message))?;
    if let Value::Array(list) = system {
        check_parts(list, "system", ANTHROPIC_PARTS.written)?;
    }
    if parts.iter().any(|part| !matches!(part, InputContent::Text(_))) {
        return Err(BadRequest::invalid("system", "`system` takes text only; send other blocks with a message"));
    }
    Ok(Some(texts_of(parts).join("\n\n")).filter(|text| !text.trim().is_empty()))
}

fn read_message(message: &Value, at: &str, items: &mut Vec<InputItem>) -> Result<(), BadRequest> {
    let role = match message["role"].as_str() {
        Some("user") => ChatRole::User,
        Some("assistant") => ChatRole::Assistant,
        Some("system") => ChatRole::System,
        _ => {
            return Err(BadRequest::invalid(
                &format!("{at}.role"),
                format!("`{at}.role` is neither user nor assistant"),
            ));
        }
    };
    let blocks = match &message["content"] {
        Value::Null => {
            let param = format!("{at}.content");
            return Err(BadRequest::new("missing_required_parameter", &param, format!("`{param}` is missing")));
        }
        Value::Array(blocks) => blocks.clone(),
        other => vec![other.clone()],
    };
    let mut content = Vec::new();
    for block in &blocks {
        let kind = block["type"].as_str();
        let whose = match kind {
            Some("tool_use" | "thinking" | "redacted_thinking") if role != ChatRole::Assistant => Some("assistant"),
            Some("tool_result") if role != ChatRole::User => Some("user"),
            _ => None,
        };
        if let (Some(kind), Some(whose)) = (kind, whose) {
            let param = format!("{at}.content");
            let message = format!("a block `{kind}` of `{at}` belongs to a message of the role {whose}");
            return Err(BadRequest::invalid(&param, message));
        }
        match kind {
            Some("tool_use") => {
                let (Some(id), Some(name)) = (block["id"].as_str(), block["name"].as_str()) else {
                    let param = format!("{at}.content");
                    return Err(BadRequest::invalid(&param, format!("a call of `{param}` has no id or no name")));
                };
                if !block["input"].is_null() && !block["input"].is_object() {
                    let (param, input) = (format!("{at}.content"), kind_of(&block["input"]));
                    let message = format!("the `input` of a call of `{param}` must be an object, not {input}");
                    return Err(BadRequest::invalid(&param, message));
                }
                // An assistant's message comes back as its server made it.
                let input = Some(&block["input"]).filter(|input| !input.is_null());
                let arguments = input.map_or_else(|| "{}".to_owned(), Value::to_string);
                flush(role, &mut content, items, at)?;
                items.push(InputItem::FunctionCall { call_id: id.to_owned(), name: name.to_owned(), arguments });
            }
            Some("tool_result") => {
                let Some(call_id) = block["tool_use_id"].as_str() else {
                    let param = format!("{at}.content");
                    return Err(BadRequest::invalid(&param, format!("a result of `{param}` has no tool_use_id")));
                };
                flush(role, &mut content, items, at)?;
                let mut output = result_text(&block["content"], at)?;
                if block["is_error"] == json!(true) {
                    output.insert_str(0, "Error: ");
                }
                items.push(InputItem::FunctionCallOutput { call_id: call_id.to_owned(), output });
            }
            // What the model thought is not shown to it again.
            Some("thinking" | "redacted_thinking") => {}
            Some("image") => content.extend(parse_content(&json!([image_of(block, at)?]), at)?),
            Some("document") => content.extend(parse_content(&document_of(block, at)?, at)?),
            Some("search_result") => content.extend(parse_content(&search_result_of(block, at)?, at)?),
            _ => content.extend(parse_content(&json!([block]), at)?),
        }
    }
    flush(role, &mut content, items, at)
}

fn flush(
    role: ChatRole,
    content: &mut Vec<InputContent>,
    items: &mut Vec<InputItem>,
    at: &str,
) -> Result<(), BadRequest> {
    if !content.is_empty() {
        items.push(InputItem::message(role, std::mem::take(content), at)?);
    }
    Ok(())
}

/// Returns a picture in the form of OpenAI's protocol.
fn image_of(block: &Value, at: &str) -> Result<Value, BadRequest> {
    let source = &block["source"];
    let url = match source["type"].as_str() {
        Some("base64") => format!(
            "data:{};base64,{}",
            source["media_type"].as_str().unwrap_or("image/png"),
            source["data"].as_str().unwrap_or_default()
        ),
        Some("url") => source["url"].as_str().unwrap_or_default().to_owned(),
        _ => {
            let param = format!("{at}.content");
            return Err(BadRequest::invalid(&param, format!("an image of `{param}` must be base64 or a url")));
        }
    };
    Ok(json!({ "type": "input_image", "image_url": url }))
}

/// Returns a tool's result as text. Models take text as a tool's result; other blocks are only mentioned.
fn result_text(content: &Value, at: &str) -> Result<String, BadRequest> {
    let Value::Array(blocks) = content else { return Ok(texts_of(parse_content(content, at)?).join("\n")) };
    let mut lines = Vec::new();
    for block in blocks {
        match block["type"].as_str() {
            Some("image") => lines.push("[an image, which is not shown]".to_owned()),
            Some("document") => lines.push("[a document, which is not shown]".to_owned()),
            Some("search_result") => lines.extend(texts_of(parse_content(&search_result_of(block, at)?, at)?)),
            _ => lines.extend(texts_of(parse_content(&json!([block]), at)?)),
        }
    }
    Ok(lines.join("\n"))
}

fn texts_of(parts: Vec<InputContent>) -> Vec<String> {
    parts.into_iter().map(InputContent::into_text).collect()
}

/// Returns a document in the form of OpenAI's protocol: what is said about it, then the document.
fn document_of(block: &Value, at: &str) -> Result<Value, BadRequest> {
    let param = format!("{at}.content");
    refuse_citations(block, "document", &param)?;
    let source = &block["source"];
    let title = block["title"].as_str().filter(|title| !title.trim().is_empty());
    let name = title.unwrap_or("document");
    let mut about = Vec::new();
    if let Some(title) = title.filter(|_| source["type"] == "text") {
        about.push(format!("Document: {title}"));
    }
    if let Some(context) = block["context"].as_str().filter(|context| !context.trim().is_empty()) {
        about.push(format!("About this document: {context}"));
    }
    let media_type = &source["media_type"];
    if source["type"] == "text" && !media_type.is_null() && media_type != "text/plain" {
        let message =
            format!("the text of a document of `{param}` is of the `media_type` text/plain, not {media_type}");
        return Err(BadRequest::invalid(&param, message));
    }
    let document = match source["type"].as_str() {
        Some("text") => json!({ "type": "input_text", "text": source["data"] }),
        Some("base64") => json!({ "type": "input_file", "filename": name, "file_data": format!(
            "data:{};base64,{}",
            source["media_type"].as_str().unwrap_or("text/plain"),
            source["data"].as_str().ok_or_else(|| {
                BadRequest::invalid(&param, format!("the source of a document of `{param}` has no data"))
            })?
        ) }),
        Some("url") => json!({ "type": "input_file", "filename": name, "file_url": source["url"] }),
        _ => {
            return Err(BadRequest::invalid(&param, format!("a document of `{param}` must be text, base64 or a url")));
        }
    };
    let parts = about.into_iter().map(|text| json!({ "type": "input_text", "text": text })).chain([document]);
    Ok(parts.collect())
}

/// Returns a result of the client's own search as texts: where it is from, then what it says.
fn search_result_of(block: &Value, at: &str) -> Result<Value, BadRequest> {
    let param = format!("{at}.content");
    refuse_citations(block, "search result", &param)?;
    let (Some(title), Some(source), Value::Array(texts)) =
        (block["title"].as_str(), block["source"].as_str(), &block["content"])
    else {
        let message =
            format!("a search result of `{param}` needs `title`, `source` and a list of texts as its `content`");
        return Err(BadRequest::invalid(&param, message));
    };
    if texts.iter().any(|text| text["type"] != "text") {
        return Err(BadRequest::invalid(&param, format!("the content of a search result of `{param}` is text only")));
    }
    let about = json!({ "type": "text", "text": format!("Search result: {title} ({source})") });
    Ok(std::iter::once(&about).chain(texts).cloned().collect())
}

fn refuse_citations(block: &Value, what: &str, param: &str) -> Result<(), BadRequest> {
    let citations = &block["citations"];
    if citations.is_null() || citations["enabled"] == json!(false) {
        return Ok(());
    }
    let message = format!("citations of a {what} of `{param}` are not supported; leave `citations` out");
    Err(BadRequest::invalid(param, message))
}

fn tools_of(fields: &Map<String, Value>) -> Result<Vec<ToolSpec>, BadRequest> {
    let entries = match fields.get("tools") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(entries)) => entries,
        Some(other) => {
            return Err(BadRequest::invalid("tools", format!("`tools` must be a list, not {}", kind_of(other))));
        }
    };
    check_tool_count("tools", entries.len())?;
    let nothing = Map::new();
    let tools = entries.iter().enumerate().map(|(index, entry)| {
        if let Some(kind) = entry["type"].as_str().filter(|kind| *kind != "custom") {
            let message = format!("`tools[{index}]`: `{kind}` is not supported; a tool is a function of yours");
            return Err(BadRequest::invalid(&format!("tools[{index}].type"), message));
        }
        let Some(name) = entry["name"].as_str().filter(|name| !name.is_empty()) else {
            return Err(BadRequest::invalid(&format!("tools[{index}].name"), format!("`tools[{index}]` has no name")));
        };
        check_members(entry.as_object().unwrap_or(&nothing), &format!("tools[{index}]"), TOOL)?;
        check_tool_name(name, &format!("tools[{index}].name"))?;
        for (example, value) in entry["input_examples"].as_array().into_iter().flatten().enumerate() {
            if !value.is_object() {
                let at = format!("tools[{index}].input_examples[{example}]");
                return Err(BadRequest::invalid(&at, format!("`{at}` must be an object, not {}", kind_of(value))));
            }
        }
        let schema = &entry["input_schema"];
        let param = format!("tools[{index}].input_schema");
        if schema.is_null() {
            return Err(BadRequest::new("missing_required_parameter", &param, format!("`{param}` is missing")));
        }
        check_arguments_schema(name, schema, &param)?;
        Ok(ToolSpec { name: name.to_owned(), description: description_of(entry), parameters: schema.clone() })
    });
    let tools = tools.collect::<Result<Vec<_>, _>>()?;
    check_distinct(&tools)?;
    Ok(tools)
}

/// Returns a tool's description with the examples of its input, which models read there.
fn description_of(tool: &Value) -> String {
    let mut description = tool["description"].as_str().unwrap_or_default().to_owned();
    for example in tool["input_examples"].as_array().into_iter().flatten() {
        if !description.is_empty() {
            description.push('\n');
        }
        description.push_str(&format!("Example of its input: {example}"));
    }
    description
}

fn choice_of(choice: Option<&Value>, tools: &[ToolSpec]) -> Result<ToolChoice, BadRequest> {
    let choice = match choice {
        None | Some(Value::Null) => return Ok(ToolChoice::Auto),
        Some(choice) => choice,
    };
    if let Value::Object(fields) = choice {
        check_members(fields, "tool_choice", CHOICE)?;
        let of_its_type: &[&str] = match choice["type"].as_str() {
            Some("tool") => &["type", "name", "disable_parallel_tool_use"],
            Some("none") => &["type"],
            _ => &["type", "disable_parallel_tool_use"],
        };
        check_names(fields, "tool_choice", of_its_type.iter().copied())?;
    }
    match (choice["type"].as_str(), choice["name"].as_str()) {
        (Some("auto"), _) => Ok(ToolChoice::Auto),
        (Some("none"), _) => Ok(ToolChoice::None),
        (Some("any"), _) => Ok(ToolChoice::Required),
        (Some("tool"), Some(name)) if known_tool(name).is_some() || tools.iter().any(|tool| tool.name == name) => {
            Ok(ToolChoice::Named(name.to_owned()))
        }
        (Some("tool"), Some(name)) => {
            Err(BadRequest::invalid("tool_choice", format!("`tool_choice` names `{name}`, which is not in `tools`")))
        }
        _ => Err(BadRequest::invalid("tool_choice", "`tool_choice.type` must be auto, any, none, or tool with a name")),
    }
}

fn sampling_of(fields: &Map<String, Value>) -> Result<Sampling, BadRequest> {
    let number = |name: &str| match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_f64().filter(|number| (0.0..=1.0).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(BadRequest::invalid(name, format!("`{name}` must be a number between 0 and 1"))),
        },
    };
    let stop = match fields.get("stop_sequences") {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Array(texts)) => texts.iter().map(|text| text.as_str().map(str::to_owned)).collect(),
        Some(_) => None,
    };
    let stop = stop.filter(|texts: &Vec<String>| texts.iter().all(|text| !text.trim().is_empty()));
    let wrong =
        || BadRequest::invalid("stop_sequences", "`stop_sequences` must be a list of strings that are not blank");
    Ok(Sampling {
        temperature: number("temperature")?,
        top_p: number("top_p")?,
        stop: stop.ok_or_else(wrong)?,
        ..Sampling::default()
    })
}
