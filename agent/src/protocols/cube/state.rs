//! `__state__`: a thread's messages in the form in which LangChain stores them.

use serde_json::{Value, json};

/// Bytes of all messages of one state: it is one line.
const MAX_STATE_BYTES: usize = 64 * 1024;
/// Characters of one message.
const MAX_MESSAGE_CHARS: usize = 8_000;

pub(super) fn human(content: &str) -> Value {
    constructor("HumanMessage", json!({ "content": shortened(content) }))
}

pub(super) fn assistant(content: &str) -> Value {
    constructor("AIMessage", json!({ "content": shortened(content), "tool_calls": [] }))
}

/// Adds a call to a message of [`assistant`].
pub(super) fn add_call(message: &mut Value, call_id: &str, name: &str, args: &Value) {
    let args = if args.to_string().len() > MAX_MESSAGE_CHARS { json!({}) } else { args.clone() };
    if let Some(calls) = message["kwargs"]["tool_calls"].as_array_mut() {
        calls.push(json!({ "name": name, "args": args, "id": call_id, "type": "tool_call" }));
    }
}

/// Adds what a model, or whoever answers for it, says of a message of [`assistant`].
pub(super) fn add_response_metadata(message: &mut Value, name: &str, value: Value) {
    message["kwargs"]["response_metadata"] = json!({ name: value });
}

pub(super) fn tool(call_id: &str, name: &str, content: &str, failed: bool) -> Value {
    let status = if failed { "error" } else { "success" };
    let content = shortened(content);
    constructor("ToolMessage", json!({ "content": content, "tool_call_id": call_id, "name": name, "status": status }))
}

/// Returns the newest messages that fit the limit together.
pub(super) fn bounded(messages: &[Value]) -> Vec<Value> {
    let mut bytes = 0;
    let kept = messages.iter().rev().take_while(|message| {
        bytes += message.to_string().len();
        bytes <= MAX_STATE_BYTES
    });
    let mut kept: Vec<Value> = kept.cloned().collect();
    kept.reverse();
    // A result without its call is refused by models that are given the messages again.
    let first = kept.iter().position(|message| message["id"][2] != "ToolMessage").unwrap_or(kept.len());
    kept.split_off(first)
}

fn constructor(class: &str, kwargs: Value) -> Value {
    json!({ "lc": 1, "type": "constructor", "id": ["langchain_core", "messages", class], "kwargs": kwargs })
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
