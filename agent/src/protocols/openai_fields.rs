//! The fields of OpenAI's two requests: what each does here, and which values it takes. The parsers check against this
//! table, and the table of `docs/openai.md` is made of it.

use serde_json::{Map, Value, json};

use super::responses::BadRequest;
use crate::models::Sampling;
use crate::protocols::fields::{FieldValues, check_value, unknown_field};
use crate::protocols::message_fields::PREDICTED_PARTS;

/// A request's kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenAiRequest {
    /// `POST /v1/responses`.
    Responses,
    /// `POST /v1/chat/completions`.
    Chat,
}

/// What a field does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldUse {
    /// What it says is done.
    Honoured,
    /// It is checked, and changes nothing.
    NoEffect,
    /// 400, unless its value asks for nothing.
    Refused,
}

/// A field of either request, or of both.
#[derive(Debug, Clone, Copy)]
pub struct RequestField {
    /// Its name.
    pub name: &'static str,
    /// What it does in a request for a response, where it has it.
    pub responses: Option<FieldUse>,
    /// What it does in a request for a completion.
    pub chat: Option<FieldUse>,
    /// In a few words.
    pub about: &'static str,
    values: FieldValues,
}

const DONE: Option<FieldUse> = Some(FieldUse::Honoured);
const IDLE: Option<FieldUse> = Some(FieldUse::NoEffect);
const NOT_HERE: Option<FieldUse> = Some(FieldUse::Refused);

/// Whose models take penalties.
const PENALIZED: &str = "to models of Ollama, and of servers with OpenAI's protocol";
const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];
const SUMMARIES: FieldValues = FieldValues::OneOf(&["auto", "concise", "detailed"]);
const TIERS: &[&str] = &["auto", "default", "flex", "scale", "priority", "fast", "ultrafast"];
const INCLUDABLE: &[&str] = &[
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
];
const VERBOSITY: FieldValues = FieldValues::OneOf(&["low", "medium", "high"]);
const STREAM_OPTIONS: FieldValues =
    FieldValues::Members(&[("include_usage", FieldValues::Flag), ("include_obfuscation", FieldValues::Flag)]);
const TEXT: FieldValues = FieldValues::Members(&[("format", FieldValues::Object), ("verbosity", VERBOSITY)]);
const REASONING: FieldValues = FieldValues::Members(&[
    ("effort", FieldValues::OneOf(EFFORTS)),
    ("summary", SUMMARIES),
    ("generate_summary", SUMMARIES),
    ("context", FieldValues::OneOf(&["auto", "current_turn", "all_turns"])),
    ("mode", FieldValues::Only("\"standard\"")),
]);

/// What says how the models' server keeps prompts, which it decides itself. `prewarm` asks for no answer at all.
const CACHE_OPTIONS: FieldValues = FieldValues::Members(&[
    ("mode", FieldValues::OneOf(&["implicit", "explicit"])),
    ("ttl", FieldValues::OneOf(&["30m", "12h"])),
    ("comparison_response_id", FieldValues::Text),
    ("prewarm", FieldValues::Only("false")),
]);
/// Older clients write the first with a hyphen.
const CACHE_RETENTION: FieldValues = FieldValues::OneOf(&["in_memory", "in-memory", "24h"]);
const BEGINS_AT_ONCE: FieldValues = FieldValues::OnlyOneOf(&["{}", r#"{"completion_window":"soonest"}"#]);
const PICTURES_AS_THEY_ARE: FieldValues =
    FieldValues::OnlyOneOf(&["{}", r#"{"context_compression":"auto"}"#, r#"{"context_compression":"disabled"}"#]);
const PREDICTION: FieldValues = FieldValues::Members(&[
    ("type", FieldValues::OneOf(&["content"])),
    ("content", FieldValues::TextOrListOf(PREDICTED_PARTS)),
]);

const fn field(
    name: &'static str,
    responses: Option<FieldUse>,
    chat: Option<FieldUse>,
    values: FieldValues,
    about: &'static str,
) -> RequestField {
    RequestField { name, responses, chat, about, values }
}

/// Every field that is known, in the order of the documentation. Others are refused.
pub const REQUEST_FIELDS: &[RequestField] = &[
    field("input", DONE, None, FieldValues::Parsed, "a text, an item, or items"),
    field("messages", None, DONE, FieldValues::Parsed, "the conversation so far"),
    field("model", DONE, DONE, FieldValues::Parsed, "a configured model; any other name is the default"),
    field("instructions", DONE, None, FieldValues::Parsed, "added to the server's"),
    field("stream", DONE, DONE, FieldValues::Flag, "events instead of a document"),
    field("stream_options", IDLE, DONE, STREAM_OPTIONS, "`include_usage` counts; nothing is obfuscated"),
    field("conversation", DONE, None, FieldValues::Parsed, "begins or continues it"),
    field("session_id", DONE, DONE, FieldValues::Parsed, "the same, under another name"),
    field("previous_response_id", DONE, None, FieldValues::Parsed, "the response to continue"),
    field(
        "store",
        DONE,
        DONE,
        FieldValues::Flag,
        "whether it can be retrieved: responses unless `false`, completions if `true`",
    ),
    field("background", DONE, None, FieldValues::Flag, "answers before it is done; not with `store: false`"),
    field("tools", DONE, DONE, FieldValues::Parsed, "`function`; `mcp` that names this server; others are refused"),
    field("tool_choice", DONE, DONE, FieldValues::Parsed, "`auto`, `none`, `required`, a tool's name, `allowed_tools`"),
    field("parallel_tool_calls", DONE, DONE, FieldValues::Flag, "`false`: one call in a turn"),
    field("max_tool_calls", DONE, None, FieldValues::Integer(0, 1_000_000), "of the server's tools; `0`: none"),
    field("text", DONE, None, TEXT, "`format`; `verbosity` has no effect"),
    field("response_format", None, DONE, FieldValues::Object, "`text`, `json_object`, `json_schema`"),
    field("max_output_tokens", DONE, None, FieldValues::Parsed, "of one turn"),
    field("max_completion_tokens", None, DONE, FieldValues::Parsed, "of one turn"),
    field("max_tokens", None, DONE, FieldValues::Parsed, "the same"),
    field("temperature", DONE, DONE, FieldValues::Number(0.0, 2.0), "to the model"),
    field("top_p", DONE, DONE, FieldValues::Number(0.0, 1.0), "to the model"),
    field("seed", None, DONE, FieldValues::Integer(i64::MIN, i64::MAX), "to the model, where its provider takes one"),
    field("stop", None, DONE, FieldValues::Texts(4), "to the model"),
    field("presence_penalty", DONE, DONE, FieldValues::Number(-2.0, 2.0), PENALIZED),
    field("frequency_penalty", DONE, DONE, FieldValues::Number(-2.0, 2.0), PENALIZED),
    field(
        "reasoning",
        DONE,
        None,
        REASONING,
        "`summary` shows the thinking; `effort` and `context` have no effect, other modes than `standard` are refused",
    ),
    field("reasoning_effort", None, DONE, FieldValues::OneOf(EFFORTS), "other than `none`: shows the thinking"),
    field("metadata", DONE, DONE, FieldValues::Parsed, "16 pairs of texts, repeated"),
    field("user", IDLE, IDLE, FieldValues::Text, "who asks is the token's owner"),
    field("safety_identifier", IDLE, IDLE, FieldValues::Text, "the same"),
    field("service_tier", IDLE, IDLE, FieldValues::OneOf(TIERS), "there is one"),
    field("prompt_cache_key", IDLE, IDLE, FieldValues::Text, "the model's server decides"),
    field("prompt_cache_retention", IDLE, IDLE, CACHE_RETENTION, "the same"),
    field("prompt_cache_options", IDLE, IDLE, CACHE_OPTIONS, "the same; `prewarm` is refused"),
    field("truncation", IDLE, None, FieldValues::OneOf(&["auto", "disabled"]), "what is too long is summed up"),
    field("include", IDLE, None, FieldValues::SomeOf(INCLUDABLE), "what there is, is always included"),
    field("verbosity", None, IDLE, VERBOSITY, "say it in the question"),
    field("prediction", None, IDLE, PREDICTION, "only makes some models faster"),
    field("model_metadata", IDLE, IDLE, FieldValues::Object, "of KsADK's clients"),
    field(
        "model_options",
        DONE,
        DONE,
        FieldValues::Object,
        "of KsADK's clients: `thinking`, the others have no effect",
    ),
    field("account_id", IDLE, IDLE, FieldValues::Parsed, "of KsADK's clients"),
    field("conversation_history", IDLE, IDLE, FieldValues::List, "of older clients of KsADK; name the conversation"),
    field("attachments", DONE, DONE, FieldValues::List, "of KsADK's clients: files of the newest message"),
    field("current_attachments", DONE, DONE, FieldValues::List, "the same"),
    field("has_current_files", DONE, DONE, FieldValues::Flag, "`false`: `attachments` are of earlier messages"),
    field("n", None, NOT_HERE, FieldValues::Only("1"), "a question has one answer"),
    field("logprobs", None, NOT_HERE, FieldValues::Only("false"), "the models' servers do not say"),
    field("top_logprobs", NOT_HERE, NOT_HERE, FieldValues::Only("0"), "the models' servers do not say"),
    field("logit_bias", None, NOT_HERE, FieldValues::Only("{}"), "no provider takes it"),
    field("modalities", None, NOT_HERE, FieldValues::Only("[\"text\"]"), "answers are text"),
    field("audio", None, NOT_HERE, FieldValues::Only("null"), "answers are text"),
    field("web_search_options", None, NOT_HERE, FieldValues::Only("null"), "there is no web here"),
    field("functions", None, NOT_HERE, FieldValues::Only("[]"), "send `tools`"),
    field(
        "function_call",
        None,
        NOT_HERE,
        FieldValues::OnlyOneOf(&["\"none\"", "\"auto\""]),
        "send `tool_choice`; `none` and `auto` choose among no `functions`",
    ),
    field("prompt", NOT_HERE, None, FieldValues::Only("null"), "there are no stored prompts; send `instructions`"),
    field("context_management", DONE, None, FieldValues::Parsed, "`compaction`, from `compact_threshold` tokens on"),
    field("moderation", NOT_HERE, NOT_HERE, FieldValues::Only("null"), "nothing is moderated"),
    field("background_options", NOT_HERE, None, BEGINS_AT_ONCE, "a run begins at once"),
    field("access_programs", NOT_HERE, None, FieldValues::Only("null"), "there are none"),
    field("image", NOT_HERE, None, PICTURES_AS_THEY_ARE, "pictures go to the model as they are"),
];

impl RequestField {
    /// Returns what it does in a request, where the request has it.
    pub fn use_in(&self, request: OpenAiRequest) -> Option<FieldUse> {
        match request {
            OpenAiRequest::Responses => self.responses,
            OpenAiRequest::Chat => self.chat,
        }
    }
}

/// Checks the fields of a request that have a value: their names, and their values.
pub fn check_fields(fields: &Map<String, Value>, request: OpenAiRequest) -> Result<(), BadRequest> {
    let known = || REQUEST_FIELDS.iter().filter(|field| field.use_in(request).is_some());
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        match known().find(|field| field.name == name) {
            Some(field) => check_value(name, field.values, field.about, value)?,
            None => return Err(unknown_field(name, "", known().map(|field| field.name)).into()),
        }
    }
    Ok(())
}

/// Whether a response may be asked to include this.
pub fn is_includable(name: &str) -> bool {
    INCLUDABLE.contains(&name)
}

/// Returns how tokens are to be chosen. The fields have been checked.
pub(crate) fn sampling_of(fields: &Map<String, Value>, request: OpenAiRequest) -> Sampling {
    let number = |name: &str| fields.get(name).and_then(Value::as_f64);
    let is_chat = request == OpenAiRequest::Chat;
    Sampling {
        temperature: number("temperature"),
        top_p: number("top_p"),
        seed: fields.get("seed").filter(|_| is_chat).and_then(Value::as_i64),
        stop: match fields.get("stop").filter(|_| is_chat) {
            Some(Value::String(text)) => vec![text.clone()],
            Some(Value::Array(texts)) => texts.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        },
        presence_penalty: number("presence_penalty").filter(|penalty| *penalty != 0.0),
        frequency_penalty: number("frequency_penalty").filter(|penalty| *penalty != 0.0),
    }
}

/// Returns the most calls of the server's tools that a request allows, and whether one turn may have several calls.
pub(crate) fn call_limits(fields: &Map<String, Value>) -> (Option<u32>, bool) {
    let most = fields.get("max_tool_calls").and_then(Value::as_u64);
    let most = most.map(|most| u32::try_from(most).unwrap_or(u32::MAX));
    (most, fields.get("parallel_tool_calls") == Some(&json!(false)))
}

/// Returns the table of the documentation.
pub fn fields_table() -> String {
    let said = |used: Option<FieldUse>| match used {
        None => "",
        Some(FieldUse::Honoured) => "yes",
        Some(FieldUse::NoEffect) => "no effect",
        Some(FieldUse::Refused) => "400",
    };
    let mut table = String::from("| field | Responses | Chat Completions | |\n|---|---|---|---|\n");
    for field in REQUEST_FIELDS {
        let (responses, chat) = (said(field.responses), said(field.chat));
        table.push_str(&format!("| `{}` | {responses} | {chat} | {} |\n", field.name, field.about));
    }
    table
}
