//! Parses and checks a request of `POST /v1/responses`.

use serde_json::{Map, Value, json};

use super::BadRequest;
use super::compaction::compact_at;
use super::items::{InputItem, listed_item, parse_items};
use super::tools::{
    allowed_tools, check_chosen_servers, check_tool_name, chosen_server_tools, server_tools, tool_choice, tool_servers,
    tools_of,
};
use crate::answer::StructuredAnswer;
use crate::models::{Sampling, ToolChoice, ToolSpec};
use crate::protocols::fields::{FieldValues, check_members, check_names};
use crate::protocols::json::parse_json;
use crate::protocols::kind_of;
use crate::protocols::ksadk;
use crate::protocols::message_fields::{OPENAI_PARTS, RESPONSES_MESSAGE, check_item, check_message};
use crate::protocols::openai_fields::{OpenAiRequest, call_limits, check_fields, sampling_of};
use crate::request::{AnswerSchema, Protocol, RunRequest};

const MAX_METADATA_PAIRS: usize = 16;
const MAX_METADATA_KEY_CHARS: usize = 64;
const MAX_METADATA_VALUE_CHARS: usize = 512;
/// The longest id of a conversation, in every protocol of this form.
pub(crate) const MAX_ID_BYTES: usize = 256;
/// The fields of a request whose tokens are only counted.
const COUNTED: [&str; 12] = [
    "model",
    "input",
    "instructions",
    "conversation",
    "session_id",
    "previous_response_id",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "text",
    "truncation",
];
/// KsADK's own part of the metadata: of any shape, not repeated.
const KSADK_METADATA: &str = "agentengine";

/// A request of this protocol.
#[derive(Debug, Clone)]
pub struct ResponsesRequest {
    /// The input items, in order.
    pub items: Vec<InputItem>,
    /// The items as they are listed later, without their ids.
    pub raw_items: Vec<Value>,
    /// The requested model.
    pub model: Option<String>,
    /// The application's instructions.
    pub instructions: Option<String>,
    /// Whether to answer as events.
    pub stream: bool,
    /// Whether it may be retrieved.
    pub store: bool,
    /// Whether to answer before it is done.
    pub background: bool,
    /// The conversation's id, by either name.
    pub conversation: Option<String>,
    /// The response that it continues.
    pub previous_response_id: Option<String>,
    /// Tools that the client executes.
    pub tools: Vec<ToolSpec>,
    /// Whether a tool must be called.
    pub tool_choice: ToolChoice,
    /// The schema of the answer.
    pub answer_schema: Option<AnswerSchema>,
    /// Whether to show thinking.
    pub include_thinking: bool,
    /// Tokens of one turn.
    pub max_output_tokens: Option<u32>,
    /// The application's user.
    pub user: String,
    /// KsADK's invocation.
    pub invocation_id: Option<String>,
    /// Whether fields show that the client is KsADK's.
    pub is_ksadk: bool,
    /// Whether `metadata` has KsADK's field: its client for certain.
    pub has_ksadk_metadata: bool,
    /// How the model chooses tokens.
    pub sampling: Sampling,
    /// Calls of the server's tools at most.
    pub max_tool_calls: Option<u32>,
    /// Whether only the first call of a reply is made.
    pub one_call_a_turn: bool,
    /// The addresses of servers of tools that it declares, with the field that has each.
    pub tool_servers: Vec<(String, String)>,
    /// Tokens from which on earlier messages are summed up.
    pub compact_at: Option<usize>,
    /// The server's tools that the model may use, if not all.
    pub server_tools: Option<Vec<String>>,
    /// Fields that the response repeats.
    pub echo: Value,
}

/// Parses a body.
pub fn parse_request(body: &[u8]) -> Result<ResponsesRequest, BadRequest> {
    let body = json_of(body)?;
    let request = checked_request(&body)?;
    if !request.stream && body.get("stream_options").is_some_and(|options| !options.is_null()) {
        return Err(BadRequest::invalid("stream_options", "`stream_options` goes with `stream`; leave it out"));
    }
    Ok(request)
}

/// Parses the fields of a request that came as an event. Errors: as [`parse_request`].
pub fn parse_event(fields: Map<String, Value>) -> Result<ResponsesRequest, BadRequest> {
    checked_request(&Value::Object(fields))
}

/// Parses a body whose tokens are only counted. Errors: as [`parse_request`]; a field that changes no count.
pub fn parse_count(body: &[u8]) -> Result<ResponsesRequest, BadRequest> {
    let body = json_of(body)?;
    if let Value::Object(fields) = &body {
        check_names(fields, "", COUNTED)?;
    }
    checked_request(&body)
}

fn json_of(body: &[u8]) -> Result<Value, BadRequest> {
    parse_json(body).map_err(|error| BadRequest::new("invalid_json", "body", format!("the body is not JSON: {error}")))
}

fn checked_request(body: &Value) -> Result<ResponsesRequest, BadRequest> {
    let request = parse_value(body)?;
    check_messages(&body["input"], "input")?;
    Ok(request)
}

/// Refuses what messages and other items of `input`, the field `name`, have beside their fields.
pub fn check_messages(input: &Value, name: &str) -> Result<(), BadRequest> {
    let (list, is_one) = match input {
        Value::Array(items) => (items.as_slice(), false),
        item => (std::slice::from_ref(item), true),
    };
    for (index, item) in list.iter().enumerate() {
        let at = if is_one { name.to_owned() } else { format!("{name}[{index}]") };
        match item.get("role") {
            Some(_) => check_message(item, &at, RESPONSES_MESSAGE, &OPENAI_PARTS)?,
            None => check_item(item, &at)?,
        }
    }
    Ok(())
}

/// Parses a request.
pub fn parse_value(body: &Value) -> Result<ResponsesRequest, BadRequest> {
    let Value::Object(fields) = body else {
        return Err(BadRequest::invalid("body", format!("the body must be a JSON object, not {}", kind_of(body))));
    };
    check_fields(fields, OpenAiRequest::Responses)?;
    // What was added to a conversation may be all that is asked.
    let continues = ["conversation", "session_id", "previous_response_id"]
        .iter()
        .any(|name| fields.get(*name).is_some_and(|value| !value.is_null()));
    let nothing = json!([]);
    let input = match fields.get("input") {
        None | Some(Value::Null) if continues => &nothing,
        None | Some(Value::Null) => {
            return Err(BadRequest::new("missing_required_parameter", "input", "`input` is missing"));
        }
        Some(input) => input,
    };
    let mut items = parse_items(input)?;
    ksadk::attach(fields, &mut items)?;
    if items.is_empty() && !continues {
        return Err(BadRequest::invalid("input", "`input` is an empty list; say something"));
    }
    let raw_items = match input {
        Value::Array(items) => items.clone(),
        other => vec![other.clone()],
    };
    let conversation = conversation_of(fields)?;
    let previous_response_id = text(fields, "previous_response_id")?;
    if conversation.is_some() && previous_response_id.is_some() {
        let message = "`conversation` (or `session_id`) and `previous_response_id` exclude each other; send one";
        return Err(BadRequest::new("mutually_exclusive_parameters", "previous_response_id", message));
    }
    let metadata = metadata_of(fields)?;
    let has_ksadk_metadata = fields.get("metadata").is_some_and(|metadata| metadata.get(KSADK_METADATA).is_some());
    let ksadk = fields.get("metadata").map(|metadata| &metadata[KSADK_METADATA]);
    let answer_schema = answer_schema(&fields.get("text").unwrap_or(&Value::Null)["format"], "text.format")?;
    let stream = flag(fields, "stream", false)?;
    let store = flag(fields, "store", true)?;
    let background = flag(fields, "background", false)?;
    if background && !store {
        let message = "`background` needs `store`: the response is fetched when it is done";
        return Err(BadRequest::invalid("background", message));
    }
    let (max_tool_calls, one_call_a_turn) = call_limits(fields);
    let max_output_tokens = positive(fields, "max_output_tokens")?;
    let user = ["safety_identifier", "user"].iter().find_map(|name| fields.get(*name)?.as_str()).unwrap_or("user");
    let tools = tools_of(fields, "parameters", |tool| Some(tool))?;
    check_chosen_servers(fields)?;
    let tool_choice = tool_choice(fields.get("tool_choice"), &tools)?;
    let server_tools = match (server_tools(fields), chosen_server_tools(fields.get("tool_choice"), &tools)) {
        (Some(declared), Some(chosen)) => Some(declared.into_iter().filter(|name| chosen.contains(name)).collect()),
        (declared, chosen) => declared.or(chosen),
    };
    let mut echo = Map::new();
    const REPEATED: [&str; 18] = [
        "background",
        "context_management",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "model",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt_cache_key",
        "reasoning",
        "safety_identifier",
        "store",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
    ];
    for name in REPEATED.into_iter().chain(["presence_penalty", "frequency_penalty", "truncation", "user"]) {
        if let Some(value) = fields.get(name) {
            echo.insert(name.to_owned(), value.clone());
        }
    }
    echo.insert("metadata".to_owned(), metadata);
    let ksadk_fields = ["session_id", "model_metadata", "model_options"];
    Ok(ResponsesRequest {
        raw_items,
        model: text(fields, "model")?,
        instructions: text(fields, "instructions")?,
        stream,
        store,
        background,
        conversation,
        previous_response_id,
        tools: allowed_tools(tools, fields.get("tool_choice")),
        tool_choice,
        answer_schema,
        include_thinking: wants_thinking(fields)?,
        max_output_tokens,
        user: user.to_owned(),
        invocation_id: ksadk.and_then(|ksadk| ksadk["invocation_id"].as_str()).map(str::to_owned),
        is_ksadk: ksadk_fields.iter().any(|name| fields.get(*name).is_some_and(|value| !value.is_null())),
        has_ksadk_metadata,
        sampling: sampling_of(fields, OpenAiRequest::Responses),
        max_tool_calls,
        one_call_a_turn,
        tool_servers: tool_servers(fields),
        compact_at: compact_at(fields)?,
        server_tools,
        echo: Value::Object(echo),
        items,
    })
}

impl ResponsesRequest {
    /// Returns the requested run, and its items. It is retained if the request asks to store it.
    pub fn into_run(self, protocol: Protocol) -> (RunRequest, Vec<InputItem>) {
        let run = RunRequest {
            include_thinking: self.include_thinking,
            model: self.model,
            instructions: self.instructions,
            client_tools: self.tools,
            tool_choice: self.tool_choice,
            answer_schema: self.answer_schema,
            can_approve: true,
            max_output_tokens: self.max_output_tokens,
            sampling: self.sampling,
            max_tool_calls: self.max_tool_calls,
            one_call_a_turn: self.one_call_a_turn,
            compact_at: self.compact_at,
            server_tools: self.server_tools,
            invocation_id: self.invocation_id,
            retained: self.store,
            echo: self.echo,
            // As listed; they get their ids with the run.
            input_items: json!(self.raw_items.iter().map(listed_item).collect::<Vec<_>>()),
            ..RunRequest::new(protocol, Vec::new())
        };
        (run, self.items)
    }
}

fn wants_thinking(fields: &Map<String, Value>) -> Result<bool, BadRequest> {
    let reasoning = fields.get("reasoning").unwrap_or(&Value::Null);
    let shown = ["summary", "generate_summary"].iter().any(|name| !reasoning[*name].is_null());
    Ok(ksadk::asks_for_thinking(fields.get("model_options"), "model_options")? || shown)
}

fn conversation_of(fields: &Map<String, Value>) -> Result<Option<String>, BadRequest> {
    let conversation = match fields.get("conversation") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) if id.trim().is_empty() => {
            return Err(BadRequest::invalid("conversation", "`conversation` is empty; leave it out, or name one"));
        }
        Some(Value::String(id)) => Some(id.clone()),
        Some(Value::Object(conversation)) => match conversation.get("id") {
            Some(Value::String(id)) if id.trim().is_empty() => {
                let message = "`conversation.id` is empty; leave `conversation` out, or name one";
                return Err(BadRequest::invalid("conversation.id", message));
            }
            Some(Value::String(id)) => {
                check_names(conversation, "conversation", ["id"])?;
                Some(id.clone())
            }
            _ => return Err(BadRequest::invalid("conversation.id", "`conversation.id` must be a string")),
        },
        Some(other) => {
            let message = format!("`conversation` must be a string or an object with an id, not {}", kind_of(other));
            return Err(BadRequest::invalid("conversation", message));
        }
    };
    let session = text(fields, "session_id")?;
    if let (Some(conversation), Some(session)) = (&conversation, &session)
        && conversation != session
    {
        let message = format!("`session_id` (`{session}`) is not the conversation's id (`{conversation}`)");
        return Err(BadRequest::invalid("session_id", message));
    }
    let at = if conversation.is_some() { "conversation" } else { "session_id" };
    let id = conversation.or(session).map(|id| id.trim().to_owned()).filter(|id| !id.is_empty());
    match id {
        Some(id) if id.len() > MAX_ID_BYTES => {
            Err(BadRequest::invalid(at, format!("the id of `{at}` is longer than {MAX_ID_BYTES} bytes")))
        }
        id => Ok(id),
    }
}

/// Returns the metadata that the response repeats.
pub fn metadata_of(fields: &Map<String, Value>) -> Result<Value, BadRequest> {
    let bad = |message: String| BadRequest::invalid("metadata", message);
    let mut metadata = match fields.get("metadata") {
        None | Some(Value::Null) => return Ok(json!({})),
        Some(Value::Object(metadata)) => metadata.clone(),
        Some(other) => return Err(bad(format!("`metadata` must be an object, not {}", kind_of(other)))),
    };
    metadata.shift_remove(KSADK_METADATA);
    if metadata.len() > MAX_METADATA_PAIRS {
        return Err(bad(format!("`metadata` has {} pairs; at most {MAX_METADATA_PAIRS} are kept", metadata.len())));
    }
    for (key, value) in &metadata {
        if key.chars().count() > MAX_METADATA_KEY_CHARS {
            return Err(bad(format!("a key of `metadata` is longer than {MAX_METADATA_KEY_CHARS} characters")));
        }
        match value {
            Value::String(text) if text.chars().count() <= MAX_METADATA_VALUE_CHARS => {}
            Value::String(_) => {
                return Err(bad(format!("`metadata.{key}` is longer than {MAX_METADATA_VALUE_CHARS} characters")));
            }
            other => return Err(bad(format!("`metadata.{key}` must be a string, not {}", kind_of(other)))),
        }
    }
    Ok(Value::Object(metadata))
}

/// The fields of a JSON schema's definition, in Chat Completions within `json_schema`.
const SCHEMA: [(&str, FieldValues); 4] = [
    ("name", FieldValues::Text),
    ("description", FieldValues::Text),
    ("schema", FieldValues::Object),
    ("strict", FieldValues::Flag),
];
/// The fields whose schema must have a name.
const NAMED_SCHEMAS: [&str; 2] = ["text.format", "response_format"];
const FORMAT: [(&str, FieldValues); 6] = [
    ("type", FieldValues::Parsed),
    SCHEMA[0],
    SCHEMA[1],
    SCHEMA[2],
    SCHEMA[3],
    ("json_schema", FieldValues::Members(&SCHEMA)),
];

/// Parses a response format in either protocol's form; `None` for text.
pub(crate) fn answer_schema(format: &Value, at: &str) -> Result<Option<AnswerSchema>, BadRequest> {
    match format {
        Value::Null => {}
        Value::Object(fields) => check_members(fields, at, &FORMAT)?,
        other => return Err(BadRequest::invalid(at, format!("`{at}` must be an object, not {}", kind_of(other)))),
    }
    match format["type"].as_str() {
        None if format.is_object() => {
            let message = format!("`{at}.type` is missing; it may be text, json_object or json_schema");
            Err(BadRequest::invalid(&format!("{at}.type"), message))
        }
        None => Ok(None),
        Some(kind @ ("text" | "json_object")) => {
            // Servers of open models take a schema beside the older type, and so do their clients in Chat Completions.
            let takes_schema = kind == "json_object" && at == "response_format";
            let known: &[&str] = if takes_schema { &["type", "schema"] } else { &["type"] };
            if let Value::Object(fields) = format {
                check_names(fields, at, known.iter().copied())?;
            }
            let schema = Some(&format["schema"]).filter(|schema| schema.is_object()).cloned();
            let schema = schema.unwrap_or_else(|| json!({ "type": "object" }));
            let answer = (kind == "json_object").then(|| AnswerSchema { name: kind.to_owned(), schema });
            answer.map(|answer| checked_schema(answer, &format!("{at}.schema"))).transpose()
        }
        Some("json_schema") => {
            let definition = if format["json_schema"].is_object() { &format["json_schema"] } else { format };
            let inner = if std::ptr::eq(definition, format) { "" } else { ".json_schema" };
            let schema = &definition["schema"];
            if !schema.is_object() {
                let message = format!("`{at}` has no `schema` object");
                return Err(BadRequest::invalid(&format!("{at}{inner}.schema"), message));
            }
            let name = definition["name"].as_str();
            if NAMED_SCHEMAS.contains(&at) {
                check_tool_name(name.unwrap_or_default(), &format!("{at}{inner}.name"))?;
            }
            let name = name.unwrap_or("answer").to_owned();
            let answer = AnswerSchema { name, schema: schema.clone() };
            checked_schema(answer, &format!("{at}{inner}.schema")).map(Some)
        }
        Some(other) => Err(BadRequest::invalid(at, format!("`{at}.type` `{other}` is not known"))),
    }
}

/// Refuses a schema that is none, by the name of its field.
fn checked_schema(answer: AnswerSchema, at: &str) -> Result<AnswerSchema, BadRequest> {
    match StructuredAnswer::new(&answer) {
        Ok(_) => Ok(answer),
        Err(error) => Err(BadRequest::invalid(at, error.to_string())),
    }
}

pub(crate) fn text(fields: &Map<String, Value>, name: &str) -> Result<Option<String>, BadRequest> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(BadRequest::invalid(name, format!("`{name}` must be a string, not {}", kind_of(other)))),
    }
}

pub(crate) fn flag(fields: &Map<String, Value>, name: &str, absent: bool) -> Result<bool, BadRequest> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(absent),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => {
            Err(BadRequest::invalid(name, format!("`{name}` must be true or false, not {}", kind_of(other))))
        }
    }
}

pub(crate) fn positive(fields: &Map<String, Value>, name: &str) -> Result<Option<u32>, BadRequest> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64().and_then(|value| u32::try_from(value).ok()).filter(|value| *value > 0) {
            Some(value) => Ok(Some(value)),
            None => {
                Err(BadRequest::invalid(name, format!("`{name}` must be a whole number between 1 and {}", u32::MAX)))
            }
        },
    }
}
