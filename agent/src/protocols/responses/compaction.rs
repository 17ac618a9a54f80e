//! Summaries of conversations as items that a client keeps and sends back: their content is this server's alone to read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::BadRequest;
use crate::protocols::fields::{FieldValues, check_members};
use crate::protocols::kind_of;

/// Before the summary, so that what another server wrote is not taken for one.
const MARK: &str = "querent.summary.1:";
/// What the model reads before a summary.
const INTRODUCTION: &str = "[Summary of the conversation so far, written by you to save space]";
/// The least number of tokens at which a client may have a conversation summed up.
const LEAST_THRESHOLD: i64 = 1_000;
const ENTRY: &[(&str, FieldValues)] = &[
    ("type", FieldValues::OneOf(&["compaction"])),
    ("compact_threshold", FieldValues::Integer(LEAST_THRESHOLD, i64::MAX)),
];

/// Returns a summary as an item.
pub fn compaction_item(id: &str, summary: &str) -> Value {
    let content = STANDARD.encode(format!("{MARK}{summary}"));
    json!({ "id": id, "type": "compaction", "encrypted_content": content })
}

/// Returns what the model reads of an item with this content. Errors: the content of another server.
pub(super) fn summary_of(content: &str, at: &str) -> Result<String, BadRequest> {
    let decoded = STANDARD.decode(content).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    match decoded.as_deref().and_then(|text| text.strip_prefix(MARK)) {
        Some(summary) => Ok(format!("{INTRODUCTION}\n{summary}")),
        None => {
            let param = format!("{at}.encrypted_content");
            let message = format!("`{param}` is not what this server wrote; send the items that it sums up");
            Err(BadRequest::invalid(&param, message))
        }
    }
}

/// Parses `context_management`: the tokens from which on earlier messages are summed up.
pub(super) fn compact_at(fields: &Map<String, Value>) -> Result<Option<usize>, BadRequest> {
    const NAME: &str = "context_management";
    let entries = match fields.get(NAME) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(entries)) => entries,
        Some(other) => {
            return Err(BadRequest::invalid(NAME, format!("`{NAME}` must be a list, not {}", kind_of(other))));
        }
    };
    let mut threshold = None;
    for (index, entry) in entries.iter().enumerate() {
        let at = format!("{NAME}[{index}]");
        let Value::Object(members) = entry else {
            return Err(BadRequest::invalid(&at, format!("`{at}` must be an object, not {}", kind_of(entry))));
        };
        check_members(members, &at, ENTRY)?;
        if members.get("type").is_none_or(Value::is_null) {
            return Err(BadRequest::invalid(&format!("{at}.type"), format!("`{at}.type` is missing")));
        }
        let tokens = members.get("compact_threshold").and_then(Value::as_u64);
        threshold = tokens.and_then(|tokens| usize::try_from(tokens).ok()).or(threshold);
    }
    Ok(threshold)
}
