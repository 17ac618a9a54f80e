//! The response object, and the ids of responses and items: derived from the run's id, so that they need no table.

use std::collections::{BTreeSet, HashSet};

use chrono::DateTime;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::items::{InputItem, listed_item};
use super::render::{ResponsesDialect, ResponsesRenderer};
use crate::event::{EventKind, RunEvent, RunStarted, Trigger};
use crate::models::TokenUsage;
use crate::protocols::Renderer;

/// Hexadecimal digits of a run's id.
const RUN_ID_DIGITS: usize = 32;

/// Returns `resp_<run>`.
pub fn response_id(run_id: Uuid) -> String {
    format!("resp_{}", run_id.simple())
}

/// Returns the run of a response.
pub fn run_of_response(response_id: &str) -> Option<Uuid> {
    let digits = response_id.strip_prefix("resp_")?;
    (digits.len() == RUN_ID_DIGITS).then(|| Uuid::try_parse(digits).ok())?
}

/// Returns the run of an item, from `msg_<run><number>` and the like.
pub fn run_of_item(item_id: &str) -> Option<Uuid> {
    let (_, digits) = item_id.split_once('_')?;
    Uuid::try_parse(digits.get(..RUN_ID_DIGITS)?).ok()
}

/// Returns the runs whose response, calls or items a request names.
pub fn named_runs(items: &[InputItem], previous_response_id: Option<&str>) -> Vec<Uuid> {
    let of_items = items.iter().filter_map(|item| match item {
        InputItem::Reference { id } | InputItem::McpCall { id, .. } | InputItem::ApprovalRequest { id, .. } => {
            run_of_item(id)
        }
        InputItem::ApprovalResponse { request_id, .. } => run_of_item(request_id),
        InputItem::FunctionCallOutput { call_id, .. } => run_of_item(call_id),
        InputItem::Message { .. } | InputItem::FunctionCall { .. } | InputItem::Ignored => None,
    });
    let runs: BTreeSet<Uuid> = of_items.chain(previous_response_id.and_then(run_of_response)).collect();
    runs.into_iter().collect()
}

/// Returns the items of a run's response, from its log.
pub fn output_items(log: &[RunEvent]) -> Vec<Value> {
    let mut renderer = ResponsesRenderer::new(ResponsesDialect::OpenAi);
    for event in log {
        renderer.frame(event);
    }
    renderer.response()["output"].as_array().cloned().unwrap_or_default()
}

/// Returns the items of a run's request, from its log: of one that came by another protocol, its question.
pub fn input_items(log: &[RunEvent]) -> Vec<Value> {
    let Some(started) = log.iter().find_map(started_of) else { return Vec::new() };
    match &started.input {
        Value::Array(items) => items.clone(),
        _ if started.trigger == Trigger::New => {
            let mut question = listed_item(&Value::String(started.question.clone()));
            question["id"] = json!(format!("msg_{}f000", started.run_id.simple()));
            vec![question]
        }
        _ => Vec::new(),
    }
}

/// Returns the question of a run as it is shown among what was said in its conversation. `None` where a decision began the
/// run, where its question is an item that was added to the conversation and is shown there, and where its item was deleted.
pub fn shown_question<'a>(log: &'a [RunEvent], deleted: &HashSet<String>) -> Option<&'a str> {
    let started = log.iter().find_map(started_of)?;
    let items = input_items(log);
    let asked = items.iter().rev().find(|item| item["role"] == "user")?;
    let is_there = asked["id"].as_str().is_none_or(|id| !deleted.contains(id));
    (started.trigger == Trigger::New && is_there).then_some(started.question.as_str())
}

fn started_of(event: &RunEvent) -> Option<&RunStarted> {
    match &event.kind {
        EventKind::RunStarted(started) => Some(started),
        _ => None,
    }
}

/// Creates the object as the run begins.
pub(super) fn new_response(started: &RunStarted, created_at: DateTime<chrono::Utc>) -> Map<String, Value> {
    let echo = |name: &str, absent: Value| match started.request.get(name) {
        Some(value) if !value.is_null() => value.clone(),
        _ => absent,
    };
    let fields = [
        ("id", json!(response_id(started.run_id))),
        ("object", json!("response")),
        ("created_at", json!(created_at.timestamp())),
        ("completed_at", Value::Null),
        ("status", json!("in_progress")),
        ("background", echo("background", json!(false))),
        ("error", Value::Null),
        ("incomplete_details", Value::Null),
        ("instructions", echo("instructions", Value::Null)),
        ("max_output_tokens", echo("max_output_tokens", Value::Null)),
        ("max_tool_calls", echo("max_tool_calls", Value::Null)),
        ("model", echo("model", json!(started.model))),
        ("output", json!([])),
        ("parallel_tool_calls", echo("parallel_tool_calls", json!(true))),
        ("previous_response_id", echo("previous_response_id", Value::Null)),
        ("prompt_cache_key", echo("prompt_cache_key", Value::Null)),
        ("reasoning", with_keys(echo("reasoning", Value::Null), &["effort", "summary"])),
        ("safety_identifier", echo("safety_identifier", Value::Null)),
        // What it is answered by, whatever was asked for.
        ("service_tier", json!("default")),
        ("store", echo("store", json!(true))),
        ("temperature", echo("temperature", json!(1.0))),
        ("text", text_of(echo("text", json!({})))),
        ("tool_choice", echo("tool_choice", json!("auto"))),
        ("tools", tools_of(echo("tools", json!([])))),
        ("top_logprobs", echo("top_logprobs", json!(0))),
        ("top_p", echo("top_p", json!(1.0))),
        ("presence_penalty", echo("presence_penalty", json!(0.0))),
        ("frequency_penalty", echo("frequency_penalty", json!(0.0))),
        ("truncation", echo("truncation", json!("disabled"))),
        ("usage", Value::Null),
        ("user", echo("user", Value::Null)),
        ("metadata", echo("metadata", json!({}))),
        ("conversation", started.conversation.as_ref().map_or(Value::Null, |id| json!({ "id": id }))),
        ("session_id", json!(started.conversation)),
        ("output_text", json!("")),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns token counts under the protocol's names.
pub fn usage_json(usage: &TokenUsage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": { "reasoning_tokens": usage.reasoning_tokens },
        "total_tokens": usage.input_tokens + usage.output_tokens,
    })
}

/// Adds these keys to an object, null where it lacks them: typed clients require all of them.
fn with_keys(mut value: Value, keys: &[&str]) -> Value {
    if let Value::Object(fields) = &mut value {
        for key in keys {
            fields.entry(*key).or_insert(Value::Null);
        }
    }
    value
}

fn tools_of(tools: Value) -> Value {
    let Value::Array(tools) = tools else { return tools };
    let complete = |tool: Value| match tool["type"].as_str() {
        Some("function") => with_keys(tool, &["description", "parameters", "strict"]),
        _ => tool,
    };
    tools.into_iter().map(complete).collect()
}

fn text_of(mut text: Value) -> Value {
    let Value::Object(fields) = &mut text else { return text };
    let format = fields.entry("format").or_insert(Value::Null);
    *format = match format.take() {
        Value::Null => json!({ "type": "text" }),
        format if format["type"] == "json_schema" => {
            let mut format = with_keys(format, &["description", "strict"]);
            if format["strict"].is_null() {
                format["strict"] = json!(false);
            }
            format
        }
        format => format,
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_runs_by_their_response_items_and_calls() {
        let runs: Vec<Uuid> = (0..3).map(|_| Uuid::now_v7()).collect();
        let of = |prefix: &str, run: usize| format!("{prefix}_{}0000", runs[run].simple());
        let items = [
            InputItem::Reference { id: of("msg", 1) },
            InputItem::Reference { id: "msg_of_another_server".to_owned() },
            InputItem::FunctionCallOutput { call_id: of("call", 2), output: String::new() },
            InputItem::ApprovalResponse { request_id: of("mcpr", 1), approve: true, reason: None },
        ];
        assert_eq!(named_runs(&items, Some(&response_id(runs[0]))), runs);
        assert!(named_runs(&[], None).is_empty());
    }

    #[test]
    fn ids_name_their_run() {
        let run_id = Uuid::now_v7();
        assert_eq!(run_of_response(&response_id(run_id)), Some(run_id));
        assert_eq!(run_of_item(&format!("msg_{}000a", run_id.simple())), Some(run_id));
        for not_ours in ["resp_", "resp_12", "msg_1", "x", "resp_éééééééééééééééé"] {
            assert_eq!(run_of_response(not_ours), None);
            assert_eq!(run_of_item(not_ours), None);
        }
    }
}
