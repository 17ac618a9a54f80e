//! The fields of a request: what each does here, and which values it takes. The parser checks against this table, and the table
//! of `docs/messages.md` is made of it.

use serde_json::{Map, Value};

use super::BadRequest;
use crate::protocols::fields::{FieldValues, check_value, unknown_field};
use crate::protocols::openai_fields::FieldUse;

/// How long a part of the prompt is kept by the model's server, which decides that itself.
pub(super) const CACHE_CONTROL: FieldValues =
    FieldValues::Members(&[("type", FieldValues::OneOf(&["ephemeral"])), ("ttl", FieldValues::OneOf(&["5m", "1h"]))]);
const OUTPUT_CONFIG: FieldValues = FieldValues::Members(&[
    ("format", FieldValues::Object),
    ("effort", FieldValues::OneOf(&["low", "medium", "high", "xhigh", "max"])),
]);
const THINKING: FieldValues = FieldValues::Members(&[
    ("type", FieldValues::Parsed),
    ("budget_tokens", FieldValues::Integer(0, i64::MAX)),
    ("display", FieldValues::OneOf(&["summarized", "omitted"])),
]);
/// What is taken out of the conversation. Thinking is: what the model thought is not shown to it again.
const CONTEXT_MANAGEMENT: FieldValues = FieldValues::Members(&[("edits", FieldValues::List)]);
const CLEAR_THINKING: &str = "clear_thinking_20251015";
const CLEARED: &[(&str, FieldValues)] = &[("type", FieldValues::Text), ("keep", FieldValues::Parsed)];
/// Which thinking is kept, where it is not `all`.
const KEPT: &[(&str, FieldValues)] =
    &[("type", FieldValues::OneOf(&["all", "thinking_turns"])), ("value", FieldValues::Integer(1, i64::MAX))];

/// A field of a request.
struct MessagesField {
    name: &'static str,
    used: FieldUse,
    /// Whether a request whose tokens are only counted has it.
    is_counted: bool,
    values: FieldValues,
    about: &'static str,
}

const fn field(
    name: &'static str,
    used: FieldUse,
    is_counted: bool,
    values: FieldValues,
    about: &'static str,
) -> MessagesField {
    MessagesField { name, used, is_counted, values, about }
}

const DONE: FieldUse = FieldUse::Honoured;
const IDLE: FieldUse = FieldUse::NoEffect;
const NOT_HERE: FieldUse = FieldUse::Refused;

/// Every field that is known, in the order of the documentation. Others are refused.
const FIELDS: &[MessagesField] = &[
    field("messages", DONE, true, FieldValues::Parsed, "the conversation so far"),
    field("model", DONE, true, FieldValues::Parsed, "a configured model; any other name is the default"),
    field("max_tokens", DONE, false, FieldValues::Parsed, "of one turn"),
    field("system", DONE, true, FieldValues::Parsed, "instructions, added to the server's"),
    field("stream", DONE, false, FieldValues::Flag, "events instead of a document"),
    field("tools", DONE, true, FieldValues::Parsed, "of the client, with an `input_schema`; other types are refused"),
    field("tool_choice", DONE, true, FieldValues::Parsed, "`auto`, `any`, `none`, `tool`"),
    field("thinking", DONE, true, THINKING, "shows it; `budget_tokens` has no effect"),
    field("temperature", DONE, false, FieldValues::Number(0.0, 1.0), "to the model"),
    field("top_p", DONE, false, FieldValues::Number(0.0, 1.0), "to the model"),
    field("stop_sequences", DONE, false, FieldValues::List, "to the model"),
    field("output_config", DONE, true, OUTPUT_CONFIG, "`format`; `effort` has no effect"),
    field("output_format", DONE, true, FieldValues::Parsed, "the same as `output_config.format`"),
    field(
        "metadata",
        IDLE,
        false,
        FieldValues::Members(&[("user_id", FieldValues::Text)]),
        "who asks is the token's owner",
    ),
    field("service_tier", IDLE, false, FieldValues::OneOf(&["auto", "standard_only"]), "there is one"),
    field("inference_geo", IDLE, false, FieldValues::Text, "the model is where it is"),
    field("cache_control", IDLE, true, CACHE_CONTROL, "the model's server decides"),
    field(
        "diagnostics",
        IDLE,
        false,
        FieldValues::Members(&[("previous_message_id", FieldValues::Text)]),
        "there are none",
    ),
    field(
        "context_management",
        IDLE,
        true,
        CONTEXT_MANAGEMENT,
        "`clear_thinking_20251015`, since thinking is not shown again; other edits are refused",
    ),
    field("speed", NOT_HERE, true, FieldValues::Only("\"standard\""), "there is one, `standard`"),
    field("top_k", NOT_HERE, true, FieldValues::Only("null"), "leave it out"),
    field("mcp_servers", NOT_HERE, true, FieldValues::Only("[]"), "other servers are not called from here"),
    field("container", NOT_HERE, true, FieldValues::Only("{}"), "there are none"),
    field(
        "compaction",
        NOT_HERE,
        true,
        FieldValues::Only("null"),
        "a conversation that is too long is summed up by itself",
    ),
    field("fallbacks", NOT_HERE, false, FieldValues::Only("[]"), "those of the model are in the server's settings"),
    field("fallback_credit_token", NOT_HERE, false, FieldValues::Only("null"), "nothing is billed here"),
    field("billing_policy", NOT_HERE, true, FieldValues::Only("null"), "nothing is billed here"),
    field("thread", NOT_HERE, true, FieldValues::Only("null"), "nothing is kept here; send all messages"),
];

/// Refuses fields that cannot be done, that are not known, or that have a wrong value.
pub(super) fn check_fields(fields: &Map<String, Value>, is_count: bool) -> Result<(), BadRequest> {
    let known = || FIELDS.iter().filter(|field| !is_count || field.is_counted);
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        if name == "thread" {
            let message = "`thread` is not supported: nothing is kept here; send all messages";
            return Err(BadRequest::new("thread_unsupported_request", "thread", message));
        }
        match known().find(|field| field.name == name) {
            Some(field) => check_value(name, field.values, field.about, value)?,
            None => return Err(unknown_field(name, "", known().map(|field| field.name)).into()),
        }
    }
    check_edits(fields)
}

/// Refuses what takes anything but thinking out of the conversation.
fn check_edits(fields: &Map<String, Value>) -> Result<(), BadRequest> {
    let edits = fields.get("context_management").and_then(|management| management["edits"].as_array());
    for (index, edit) in edits.into_iter().flatten().enumerate() {
        let at = format!("context_management.edits[{index}]");
        if edit["type"] != CLEAR_THINKING {
            let message = format!("`{at}` is not supported; only `{CLEAR_THINKING}` is, which changes nothing here");
            return Err(BadRequest::invalid(&at, message));
        }
        check_value(&at, FieldValues::Members(CLEARED), "", edit)?;
        match &edit["keep"] {
            Value::Null => {}
            Value::String(word) if word == "all" => {}
            keep => check_value(&format!("{at}.keep"), FieldValues::Members(KEPT), "", keep)?,
        }
    }
    Ok(())
}

/// Returns the table of the documentation.
pub fn messages_fields_table() -> String {
    let mut table = String::from("| field | | |\n|---|---|---|\n");
    for field in FIELDS {
        let used = match field.used {
            FieldUse::Honoured => "yes",
            FieldUse::NoEffect => "no effect",
            FieldUse::Refused => "400",
        };
        table.push_str(&format!("| `{}` | {used} | {} |\n", field.name, field.about));
    }
    table
}
