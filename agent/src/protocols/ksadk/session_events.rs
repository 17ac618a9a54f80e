//! A session as KsADK's web interface reads it: a run's events as session events, and what a client itself added to the
//! session's conversation among them.
//!
//! Session events are numbered by their time in the session's life, so that `SeqId` grows within a session, with gaps.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::event::{EventKind, RunEvent, RunOutcome};
use crate::models::ChatRole;
use crate::protocols::responses::{InputItem, message_text, parse_items, shown_question};
use crate::protocols::{Frame, Renderer, add_assessment, add_chart, add_ticket};

const AUTHOR: &str = "querent";
/// Numbers of session events reserved for each millisecond of a session's life.
const NUMBERS_PER_MS: i64 = 1_000;
/// Numbers of an item that was added: a call has its result in one.
const NUMBERS_PER_ITEM: i64 = 2;

/// Turns events into a session's events.
#[derive(Debug)]
pub struct SessionEventRenderer {
    session_id: String,
    session_began: DateTime<Utc>,
    after: u64,
    /// Whether the end of a run that ended with its server is never left out.
    tells_end: bool,
    /// The items that a client deleted from the session's conversation.
    removed: HashSet<String>,
    run_id: String,
    invocation_id: String,
    first: i64,
    error: Option<Value>,
    assessment: Option<Value>,
}

impl SessionEventRenderer {
    /// Creates a renderer of a session's runs; events up to the `after`th are left out.
    pub fn new(session_id: impl Into<String>, session_began: DateTime<Utc>, after: u64) -> Self {
        Self {
            session_id: session_id.into(),
            session_began,
            after,
            tells_end: false,
            removed: HashSet::new(),
            run_id: String::new(),
            invocation_id: String::new(),
            first: 0,
            error: None,
            assessment: None,
        }
    }

    /// Never leaves out the end of a run that ended with its server: its follower may have had more than was stored.
    pub fn telling_the_end(self) -> Self {
        Self { tells_end: true, ..self }
    }

    /// Leaves out items that a client deleted from the session's conversation.
    pub fn without(self, removed: HashSet<String>) -> Self {
        Self { removed, ..self }
    }

    fn event(&self, event: &RunEvent, nth: i64, kind: &str, content: Value) -> Value {
        let in_run = i64::try_from(event.seq).unwrap_or(i64::MAX / 4).saturating_mul(2).saturating_add(nth);
        let number = self.first.saturating_add(in_run).saturating_add(1);
        json!({
            "EventId": format!("evt_{}{:04x}{nth}", self.run_id, event.seq),
            "SessionId": self.session_id,
            "InvocationId": self.invocation_id,
            "Author": if kind == "user_message" { "user" } else { AUTHOR },
            "EventType": kind,
            "Content": content,
            "Timestamp": event.at.timestamp_millis() as f64 / 1_000.0,
            "SeqId": number,
            "Metadata": { "run_id": self.run_id, "invocation_id": self.invocation_id },
        })
    }

    /// Returns the session events of one event.
    pub fn render(&mut self, event: &RunEvent) -> Vec<Value> {
        if self.tells_end && event.ended_with_server() {
            self.after = 0;
        }
        let mut rendered = self.all(event);
        rendered.retain(|shown| shown["SeqId"].as_u64().is_none_or(|number| number > self.after));
        rendered
    }

    fn all(&mut self, event: &RunEvent) -> Vec<Value> {
        if shown_item(&event.kind).is_some_and(|item_id| self.removed.contains(item_id)) {
            return Vec::new();
        }
        let one = |kind: &str, content: Value| vec![self.event(event, 0, kind, content)];
        let call = |id: &str, name: &str, args: &Value| {
            let mut called = self.event(event, 0, "tool_call", call_content(id, name, args));
            add_tool(&mut called, id, name, "tool_args", args);
            vec![called]
        };
        let returned = |id: &str, name: &str, content: Value| {
            let output = content["parts"][0]["functionResponse"]["response"].clone();
            let mut result = self.event(event, 0, "tool_result", content);
            add_tool(&mut result, id, name, "tool_output", &output);
            vec![result]
        };
        match &event.kind {
            EventKind::RunStarted(started) => {
                self.run_id = started.run_id.simple().to_string();
                self.invocation_id = started.invocation_id.clone().unwrap_or_else(|| started.run_id.to_string());
                self.first = first_number(self.session_began, event.at);
                let asked = shown_question(std::slice::from_ref(event), &self.removed)
                    .map(|question| self.event(event, 0, "user_message", json!({ "parts": [{ "text": question }] })));
                let status = self.event(event, 1, "run_status", json!({ "status": "in_progress" }));
                asked.into_iter().chain([status]).collect()
            }
            EventKind::ThinkingDone { text, .. } => one("reasoning", json!({ "parts": [{ "text": text }] })),
            EventKind::TextDone { text, .. } => one("assistant_message", json!({ "parts": [{ "text": text }] })),
            EventKind::ToolCallStarted(started) => {
                let called = call(&started.call_id, &started.tool, &started.args);
                match &started.approval_request_id {
                    Some(request_id) => decided(called, request_id, true),
                    None => called,
                }
            }
            EventKind::ToolResult(result) => {
                let mut content = result_content(&result.call_id, &result.tool, &result.result);
                add_chart(&mut content, result);
                add_ticket(&mut content, result.ticket.as_ref());
                returned(&result.call_id, &result.tool, content)
            }
            EventKind::ApprovalRequested(waiting) => one(
                "approval_request",
                json!({ "approval_request_id": waiting.item_id, "name": waiting.name, "arguments": waiting.args_raw }),
            ),
            EventKind::ClientToolRequested(waiting) => {
                let args = serde_json::from_str(&waiting.args_raw).unwrap_or(Value::Null);
                call(&waiting.call_id, &waiting.name, &args)
            }
            // A call that is not executed has no start of its own; its result follows.
            EventKind::ApprovalResolved(resolved) if !resolved.approved => {
                let args = serde_json::from_str(&resolved.args_raw).unwrap_or(Value::Null);
                decided(call(&resolved.call_id, &resolved.name, &args), &resolved.request_id, false)
            }
            EventKind::ApprovalResolved(_) => Vec::new(),
            EventKind::ClientToolResolved(resolved) => {
                let (call_id, name) = (&resolved.call_id, &resolved.name);
                returned(call_id, name, result_content(call_id, name, &json!({ "result": resolved.result })))
            }
            EventKind::RunError { code, message, detail_code } => {
                self.error = Some(json!({ "code": code.as_str(), "detail_code": detail_code, "message": message }));
                Vec::new()
            }
            EventKind::AnswerFinal(answer) => {
                self.assessment = answer.assessment.to_json();
                Vec::new()
            }
            EventKind::RunFinished(finished) => {
                let mut content = json!({ "status": status_of(finished.outcome) });
                if let Some(error) = &self.error {
                    content["error"] = error.clone();
                    // What the web interface shows of a run that failed.
                    content["detail"] = error["message"].clone();
                }
                add_assessment(&mut content, self.assessment.as_ref());
                one("run_status", content)
            }
            EventKind::CompactionStarted { .. }
            | EventKind::CompactionFinished { .. }
            | EventKind::LlmCallStarted { .. }
            | EventKind::LlmCallFinished { .. }
            | EventKind::ThinkingStarted { .. }
            | EventKind::ThinkingDelta { .. }
            | EventKind::TextStarted { .. }
            | EventKind::TextDelta { .. }
            | EventKind::Conversation { .. }
            | EventKind::Paused { .. } => Vec::new(),
        }
    }
}

impl Renderer for SessionEventRenderer {
    fn frame(&mut self, event: &RunEvent) -> Vec<Frame> {
        let mut frames: Vec<Frame> = self.render(event).iter().map(Frame::unnamed).collect();
        if matches!(event.kind, EventKind::RunFinished { .. }) {
            frames.push(Frame { event: None, data: "[DONE]".to_owned() });
        }
        frames
    }
}

/// Returns KsADK's name of a run's end.
fn status_of(outcome: RunOutcome) -> &'static str {
    match outcome {
        RunOutcome::Success => "completed",
        RunOutcome::Paused => "interrupted",
        RunOutcome::Error | RunOutcome::BudgetExceeded => "failed",
        RunOutcome::Cancelled => "cancelled",
    }
}

/// Returns the session events of an item that a client itself added to a session's conversation at a time, the `nth` of
/// that millisecond. Instructions and decisions are none.
pub fn added_events(
    session_id: &str,
    session_began: DateTime<Utc>,
    (at, nth): (DateTime<Utc>, usize),
    item: &Value,
) -> Vec<Value> {
    let nth = i64::try_from(nth).unwrap_or(i64::MAX / NUMBERS_PER_ITEM);
    let first = first_number(session_began, at).saturating_add(nth.saturating_mul(NUMBERS_PER_ITEM)).saturating_add(1);
    let item_id = item["id"].as_str().unwrap_or_default();
    let event = |place: i64, kind: &str, content: Value| {
        json!({
            "EventId": format!("evt_{item_id}{place}"),
            "SessionId": session_id,
            "Author": if kind == "user_message" { "user" } else { AUTHOR },
            "EventType": kind,
            "Content": content,
            "Timestamp": at.timestamp_millis() as f64 / 1_000.0,
            "SeqId": first.saturating_add(place),
            "Metadata": { "item_id": item_id },
        })
    };
    let call = |id: &str, name: &str, arguments: &str| {
        let args = serde_json::from_str(arguments).unwrap_or(Value::Null);
        let mut called = event(0, "tool_call", call_content(id, name, &args));
        add_tool(&mut called, id, name, "tool_args", &args);
        called
    };
    let returned = |place: i64, id: &str, name: &str, output: &str| {
        let output = json!({ "result": output });
        let mut result = event(place, "tool_result", result_content(id, name, &output));
        add_tool(&mut result, id, name, "tool_output", &output);
        result
    };
    if let Some((role @ (ChatRole::User | ChatRole::Assistant), text)) = message_text(item) {
        let kind = if role == ChatRole::User { "user_message" } else { "assistant_message" };
        return vec![event(0, kind, json!({ "parts": [{ "text": text }] }))];
    }
    // One of a type that is not read is no event.
    let items = parse_items(&Value::Array(vec![item.clone()])).unwrap_or_default();
    let events = items.into_iter().flat_map(|parsed| match parsed {
        InputItem::FunctionCall { call_id, name, arguments } => vec![call(&call_id, &name, &arguments)],
        InputItem::FunctionCallOutput { call_id, output } => vec![returned(0, &call_id, "", &output)],
        InputItem::McpCall { id, name, arguments, output, .. } => {
            let result = output.map(|output| returned(1, &id, &name, &output));
            std::iter::once(call(&id, &name, &arguments)).chain(result).collect()
        }
        InputItem::Message { .. }
        | InputItem::ApprovalRequest { .. }
        | InputItem::ApprovalResponse { .. }
        | InputItem::Reference { .. }
        | InputItem::Ignored => Vec::new(),
    });
    events.collect()
}

/// Returns the number before that of the first event at a time.
fn first_number(session_began: DateTime<Utc>, at: DateTime<Utc>) -> i64 {
    (at - session_began).num_milliseconds().max(0).saturating_mul(NUMBERS_PER_MS)
}

fn call_content(id: &str, name: &str, args: &Value) -> Value {
    json!({ "parts": [{ "functionCall": { "id": id, "name": name, "args": args } }] })
}

fn result_content(id: &str, name: &str, response: &Value) -> Value {
    json!({ "parts": [{ "functionResponse": { "id": id, "name": name, "response": response } }] })
}

/// Adds what the web interface shows of a tool's call, which it does not read from the event's content.
fn add_tool(event: &mut Value, call_id: &str, name: &str, what: &str, value: &Value) {
    let metadata = &mut event["Metadata"];
    metadata["tool_name"] = json!(name);
    metadata["call_id"] = json!(call_id);
    metadata[what] = value.clone();
}

/// Returns the events of a call, with the request for approval that it answers.
fn decided(mut called: Vec<Value>, request_id: &str, approved: bool) -> Vec<Value> {
    for event in &mut called {
        event["Metadata"]["approval_request_id"] = json!(request_id);
        event["Metadata"]["approved"] = json!(approved);
    }
    called
}

/// Returns the item that an event shows, of one that is whole.
fn shown_item(kind: &EventKind) -> Option<&str> {
    match kind {
        EventKind::ThinkingDone { item_id, .. } | EventKind::TextDone { item_id, .. } => Some(item_id),
        EventKind::ToolCallStarted(started) => Some(&started.item_id),
        EventKind::ToolResult(result) => Some(&result.item_id),
        EventKind::ApprovalRequested(waiting) | EventKind::ClientToolRequested(waiting) => Some(&waiting.item_id),
        _ => None,
    }
}
