//! Pieces of a scripted model's script.

use serde_json::{Value, json};

/// Returns the event in which the model calls a tool.
pub fn tool_call(name: &str, arguments: Value) -> Value {
    json!({ "tool_call": { "name": name, "arguments": arguments } })
}

/// Returns the event in which the model calls `run_sql`.
pub fn run_sql(sql: &str) -> Value {
    tool_call("run_sql", json!({ "sql": sql }))
}

/// Returns a turn in which the model answers and reports 20 tokens read and 5 written.
pub fn says(text: &str) -> Value {
    json!({ "events": [{ "text": text }], "usage": { "input_tokens": 20, "output_tokens": 5 } })
}
