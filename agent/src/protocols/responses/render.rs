//! Turns events into `response.*` events. A fold: its state is the response object as it grows.

use chrono::{DateTime, Utc};
use querent_proof::{ProofLink, ProofOrigin};
use serde::Serialize;
use serde_json::{Map, Value, json};
use url::form_urlencoded;

use super::compaction::compaction_item;
use super::object::{new_response, response_id as id_of_response, usage_json};
use crate::assessment::ASSESSMENT;
use crate::event::{
    CompactionFinished, EventKind, RunErrorCode, RunEvent, RunOutcome, RunStarted, SERVER_LABEL, TextPhase,
    ToolCallStarted, ToolResult, ToolStatus, Usage, WaitingCall,
};
use crate::models::TokenUsage;
use crate::protocols::run_end::RunEnd;
use crate::protocols::{Frame, Renderer, add_chart, add_ticket, push_data, push_frames};

/// The clients that read the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponsesDialect {
    /// OpenAI's own shapes and events only.
    OpenAi,
    /// KsADK's extension events, tools as function calls, `response.incomplete` on a pause for approval.
    KsAdk,
}

/// Renders one run.
#[derive(Debug)]
pub struct ResponsesRenderer {
    dialect: ResponsesDialect,
    response: Map<String, Value>,
    output: Vec<Value>,
    sequence: u64,
    end: RunEnd,
    /// The text of an answer that is said and not yet done: its citations follow.
    said: Option<SaidText>,
    /// The client's label for this server's tools.
    server_label: String,
    run_id: String,
    /// Whether the client asked for summaries, and so for the items that they are.
    shows_summaries: bool,
}

/// A text, and its item.
#[derive(Debug)]
struct SaidText {
    item_id: String,
    text: String,
}

const TEXT_DELTA: &str = "response.output_text.delta";

/// An event of this name. Nearly all are: they are written without building a document first.
#[derive(Serialize)]
struct TextDelta<'a> {
    r#type: &'static str,
    sequence_number: u64,
    item_id: &'a str,
    output_index: usize,
    content_index: usize,
    delta: &'a str,
    logprobs: [(); 0],
}

impl ResponsesRenderer {
    /// Creates a renderer of the dialect.
    pub fn new(dialect: ResponsesDialect) -> Self {
        Self {
            dialect,
            response: Map::new(),
            output: Vec::new(),
            sequence: 0,
            end: RunEnd::default(),
            said: None,
            server_label: SERVER_LABEL.to_owned(),
            run_id: String::new(),
            shows_summaries: false,
        }
    }

    /// Returns the response object so far.
    pub fn response(&self) -> Value {
        let mut response = self.response.clone();
        let parts =
            self.output.iter().filter(|item| item["type"] == "message").flat_map(|item| {
                item["content"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str())
            });
        response.insert("output_text".to_owned(), json!(parts.collect::<String>()));
        response.insert("output".to_owned(), json!(self.output));
        Value::Object(response)
    }

    /// Returns why the run failed, if it did: its code, and what to do.
    pub fn failure(&self) -> Option<(RunErrorCode, &str)> {
        self.end.failure()
    }

    fn event(&mut self, name: &'static str, fields: Value) -> Frame {
        let mut data = Map::new();
        data.insert("type".to_owned(), json!(name));
        data.insert("sequence_number".to_owned(), json!(self.next_sequence()));
        if let Value::Object(fields) = fields {
            data.extend(fields);
        }
        Frame::named(name, &Value::Object(data))
    }

    fn next_sequence(&mut self) -> u64 {
        let sequence = self.sequence;
        self.sequence += 1;
        sequence
    }

    fn lifecycle(&mut self, name: &'static str) -> Frame {
        let response = self.response();
        self.event(name, json!({ "response": response }))
    }

    /// Adds an item that is not done yet. Returns its index.
    fn add(&mut self, item: Value) -> (usize, Frame) {
        let index = self.output.len();
        self.output.push(item.clone());
        (index, self.event("response.output_item.added", json!({ "output_index": index, "item": item })))
    }

    fn done(&mut self, index: usize, item: Value) -> Frame {
        if let Some(open) = self.output.get_mut(index) {
            *open = item.clone();
        }
        self.event("response.output_item.done", json!({ "output_index": index, "item": item }))
    }

    fn index_of(&self, item_id: &str) -> Option<usize> {
        self.output.iter().rposition(|item| item["id"] == item_id)
    }

    fn text_started(&mut self, item_id: &str) -> Vec<Frame> {
        let (index, added) = self.add(message_item(item_id, "in_progress", None));
        let part = text_part("");
        let part_added = json!({ "item_id": item_id, "output_index": index, "content_index": 0, "part": part });
        vec![added, self.event("response.content_part.added", part_added)]
    }

    fn text_delta<'a>(&mut self, item_id: &'a str, text: &'a str) -> Option<TextDelta<'a>> {
        let index = self.index_of(item_id)?;
        // Kept as it grows: a run that breaks off shows the text so far.
        let item = &mut self.output[index];
        match item["content"].get_mut(0).and_then(|part| part.get_mut("text")) {
            Some(Value::String(said)) => said.push_str(text),
            _ => item["content"] = json!([text_part(text)]),
        }
        let sequence_number = self.next_sequence();
        Some(TextDelta {
            r#type: TEXT_DELTA,
            sequence_number,
            item_id,
            output_index: index,
            content_index: 0,
            delta: text,
            logprobs: [],
        })
    }

    /// Ends a text, with what proves parts of it.
    fn text_done(&mut self, said: &SaidText, proof: &[ProofLink]) -> Vec<Frame> {
        let SaidText { item_id, text } = said;
        let Some(index) = self.index_of(item_id) else { return Vec::new() };
        let response_id = self.response.get("id").and_then(Value::as_str).unwrap_or_default();
        let citations: Vec<Value> = proof.iter().filter_map(|link| citation(response_id, link)).collect();
        let mut frames = Vec::with_capacity(citations.len() + 3);
        for (number, citation) in citations.iter().enumerate() {
            let added = json!({
                "item_id": item_id,
                "output_index": index,
                "content_index": 0,
                "annotation_index": number,
                "annotation": citation,
            });
            frames.push(self.event("response.output_text.annotation.added", added));
        }
        let status = if self.end.cut_reason().is_some() { "incomplete" } else { "completed" };
        let mut part = text_part(text);
        part["annotations"] = json!(citations);
        let item = message_item(item_id, status, Some(part.clone()));
        let done =
            json!({ "item_id": item_id, "output_index": index, "content_index": 0, "text": text, "logprobs": [] });
        let part = json!({ "item_id": item_id, "output_index": index, "content_index": 0, "part": part });
        frames.push(self.event("response.output_text.done", done));
        frames.push(self.event("response.content_part.done", part));
        frames.push(self.done(index, item));
        frames
    }

    /// Ends the text that was said last, if it is still open: nothing proves it.
    fn end_text(&mut self) -> Vec<Frame> {
        match self.said.take() {
            Some(said) => self.text_done(&said, &[]),
            None => Vec::new(),
        }
    }

    /// Takes in the end of a text. That of an answer waits for its citations.
    fn text_said(&mut self, item_id: &str, text: &str, phase: TextPhase) -> Vec<Frame> {
        self.said = Some(SaidText { item_id: item_id.to_owned(), text: text.to_owned() });
        match phase {
            TextPhase::FinalAnswer => Vec::new(),
            TextPhase::Commentary => self.end_text(),
        }
    }

    fn answered(&mut self, item_id: &str, proof: &[ProofLink]) -> Vec<Frame> {
        match self.said.take() {
            Some(said) if said.item_id == item_id => self.text_done(&said, proof),
            Some(said) => self.text_done(&said, &[]),
            None => Vec::new(),
        }
    }

    fn thinking_started(&mut self, item_id: &str) -> Vec<Frame> {
        let (index, added) = self.add(json!({ "id": item_id, "type": "reasoning", "summary": [] }));
        let part = json!({ "item_id": item_id, "output_index": index, "summary_index": 0, "part": summary_part("") });
        vec![added, self.event("response.reasoning_summary_part.added", part)]
    }

    fn thinking_delta(&mut self, item_id: &str, text: &str) -> Vec<Frame> {
        let Some(index) = self.index_of(item_id) else { return Vec::new() };
        // Kept as it grows, as texts are.
        let item = &mut self.output[index];
        match item["summary"].get_mut(0).and_then(|part| part.get_mut("text")) {
            Some(Value::String(said)) => said.push_str(text),
            _ => item["summary"] = json!([summary_part(text)]),
        }
        let delta = json!({ "item_id": item_id, "output_index": index, "summary_index": 0, "delta": text });
        vec![self.event("response.reasoning_summary_text.delta", delta)]
    }

    fn thinking_done(&mut self, item_id: &str, text: &str) -> Vec<Frame> {
        let Some(index) = self.index_of(item_id) else { return Vec::new() };
        let done = json!({ "item_id": item_id, "output_index": index, "summary_index": 0, "text": text });
        let part = json!({ "item_id": item_id, "output_index": index, "summary_index": 0, "part": summary_part(text) });
        vec![
            self.event("response.reasoning_summary_text.done", done),
            self.event("response.reasoning_summary_part.done", part),
            self.done(index, json!({ "id": item_id, "type": "reasoning", "summary": [summary_part(text)] })),
        ]
    }

    fn tool_started(&mut self, call: &ToolCallStarted) -> Vec<Frame> {
        if self.dialect == ResponsesDialect::KsAdk {
            return self.function_call(&call.item_id, &call.call_id, &call.tool, &call.args_raw);
        }
        let (index, added) = self.add(json!({
            "id": call.item_id,
            "type": "mcp_call",
            "status": "in_progress",
            "server_label": self.server_label,
            "name": call.tool,
            "arguments": "",
            "output": null,
            "error": null,
            "approval_request_id": call.approval_request_id,
        }));
        let id = json!({ "item_id": call.item_id, "output_index": index });
        let with = |name: &str| {
            let mut fields = id.clone();
            fields[name] = json!(call.args_raw);
            fields
        };
        if let Some(item) = self.output.get_mut(index) {
            item["arguments"] = json!(call.args_raw);
        }
        vec![
            added,
            self.event("response.mcp_call.in_progress", id.clone()),
            self.event("response.mcp_call_arguments.delta", with("delta")),
            self.event("response.mcp_call_arguments.done", with("arguments")),
        ]
    }

    fn tool_returned(&mut self, result: &ToolResult) -> Vec<Frame> {
        // A refused call was never shown as a call.
        let Some(index) = self.index_of(&result.item_id) else { return Vec::new() };
        let output = result.result.to_string();
        if self.dialect == ResponsesDialect::KsAdk {
            return self.function_output(result, &output);
        }
        let mut item = self.output[index].clone();
        let failed = !matches!(result.status, ToolStatus::Success | ToolStatus::NoData);
        item["status"] = json!(if failed { "failed" } else { "completed" });
        if failed {
            let content = json!([{ "type": "text", "text": error_message(&result.result) }]);
            item["error"] = json!({ "type": "mcp_tool_execution_error", "content": content });
        } else {
            item["output"] = json!(output);
        }
        add_chart(&mut item, result);
        add_ticket(&mut item, result.ticket.as_ref());
        let name = if failed { "response.mcp_call.failed" } else { "response.mcp_call.completed" };
        let id = json!({ "item_id": result.item_id, "output_index": index });
        vec![self.event(name, id), self.done(index, item)]
    }

    fn function_output(&mut self, result: &ToolResult, output: &str) -> Vec<Frame> {
        let item = json!({
            "id": format!("{}_output", result.item_id),
            "type": "function_call_output",
            "status": "completed",
            "call_id": result.call_id,
            "output": output,
        });
        let (index, added) = self.add(item.clone());
        let mut result_data = json!({
            "output_index": index,
            "call_id": result.call_id,
            "name": result.tool,
            "output": output,
            "elapsed_ms": result.elapsed_ms,
        });
        add_chart(&mut result_data, result);
        add_ticket(&mut result_data, result.ticket.as_ref());
        vec![added, self.done(index, item), self.event("response.ksadk.tool_result", result_data)]
    }

    fn function_call(&mut self, item_id: &str, call_id: &str, name: &str, arguments: &str) -> Vec<Frame> {
        let item = |status: &str, arguments: &str| {
            json!({
                "id": item_id,
                "type": "function_call",
                "status": status,
                "call_id": call_id,
                "name": name,
                "arguments": arguments,
            })
        };
        let (index, added) = self.add(item("in_progress", ""));
        let delta = json!({ "item_id": item_id, "output_index": index, "delta": arguments });
        let done = json!({ "item_id": item_id, "output_index": index, "name": name, "arguments": arguments });
        vec![
            added,
            self.event("response.function_call_arguments.delta", delta),
            self.event("response.function_call_arguments.done", done),
            self.done(index, item("completed", arguments)),
        ]
    }

    fn approval_requested(&mut self, call: &WaitingCall) -> Vec<Frame> {
        let item = json!({
            "id": call.item_id,
            "type": "mcp_approval_request",
            "server_label": self.server_label,
            "name": call.name,
            "arguments": call.args_raw,
        });
        let (index, added) = self.add(item.clone());
        vec![added, self.done(index, item)]
    }

    fn summary(&mut self, seq: u64, summary: &str) -> Vec<Frame> {
        let item = compaction_item(&format!("cmp_{}{seq:04x}", self.run_id), summary);
        let (index, added) = self.add(item.clone());
        vec![added, self.done(index, item)]
    }

    fn compaction(&mut self, name: &'static str, fields: Value) -> Vec<Frame> {
        if self.dialect == ResponsesDialect::KsAdk { vec![self.event(name, fields)] } else { Vec::new() }
    }

    fn finished(
        &mut self,
        at: DateTime<Utc>,
        outcome: RunOutcome,
        usage: &Usage,
        last_usage: &TokenUsage,
    ) -> Vec<Frame> {
        let waits_for_person = self.output.iter().any(|item| item["type"] == "mcp_approval_request");
        let (name, status) = match outcome {
            RunOutcome::Paused if waits_for_person && self.dialect == ResponsesDialect::KsAdk => {
                self.set("incomplete_details", json!({ "reason": "approval_required" }));
                ("response.incomplete", "incomplete")
            }
            RunOutcome::Success if self.end.cut_reason().is_some() => {
                self.set("incomplete_details", json!({ "reason": self.end.cut_reason() }));
                match self.dialect {
                    ResponsesDialect::OpenAi => ("response.incomplete", "incomplete"),
                    // Its clients take an incomplete response for one that waits for approval.
                    ResponsesDialect::KsAdk => ("response.completed", "completed"),
                }
            }
            RunOutcome::Success | RunOutcome::Paused => ("response.completed", "completed"),
            RunOutcome::Cancelled => ("response.incomplete", "cancelled"),
            RunOutcome::Error | RunOutcome::BudgetExceeded => {
                let message = self.end.failure().map(|(_, message)| message).unwrap_or_default().to_owned();
                // The protocol's list of codes has none for a timeout; the message says which limit it was.
                self.set("error", json!({ "code": "server_error", "message": message }));
                ("response.failed", "failed")
            }
        };
        self.set("status", json!(status));
        for item in &mut self.output {
            if item["status"] == "in_progress" {
                item["status"] = json!("incomplete");
            }
        }
        if status == "completed" {
            self.set("completed_at", json!(at.timestamp()));
        }
        self.set("usage", usage_json(&usage.tokens));
        if let Some(assessment) = self.end.assessment.take() {
            self.set(ASSESSMENT, assessment);
        }
        if self.dialect == ResponsesDialect::KsAdk
            && let Some(metadata) = self.response.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.insert("last_usage".to_owned(), usage_json(last_usage));
        }
        vec![self.lifecycle(name)]
    }

    fn set(&mut self, name: &str, value: Value) {
        self.response.insert(name.to_owned(), value);
    }
}

impl Renderer for ResponsesRenderer {
    fn frame(&mut self, event: &RunEvent) -> Vec<Frame> {
        self.end.note(&event.kind);
        let mut frames = match &event.kind {
            // What they say of the answer belongs before its end.
            EventKind::AnswerFinal(answer) => return self.answered(&answer.item_id, &answer.proof),
            EventKind::LlmCallFinished { .. } | EventKind::Conversation { .. } => return Vec::new(),
            _ => self.end_text(),
        };
        frames.extend(self.frames_of(event));
        frames
    }

    fn push_sse(&mut self, event: &RunEvent, to: &mut Vec<u8>) {
        match &event.kind {
            EventKind::TextDelta { item_id, text } if self.said.is_none() => {
                if let Some(delta) = self.text_delta(item_id, text) {
                    push_data(Some(TEXT_DELTA), &delta, to);
                }
            }
            _ => push_frames(self, event, to),
        }
    }
}

impl ResponsesRenderer {
    fn frames_of(&mut self, event: &RunEvent) -> Vec<Frame> {
        match &event.kind {
            EventKind::RunStarted(started) => {
                self.response = new_response(started, event.at);
                self.run_id = started.run_id.simple().to_string();
                let asked = started.request["context_management"].as_array().is_some_and(|entries| !entries.is_empty());
                self.shows_summaries = asked && self.dialect == ResponsesDialect::OpenAi;
                // A client that declared the server under a label looks for that label.
                let tools = started.request["tools"].as_array().into_iter().flatten();
                if let Some(label) = tools.filter_map(|tool| tool["server_label"].as_str()).next() {
                    label.clone_into(&mut self.server_label);
                }
                vec![self.lifecycle("response.created"), self.lifecycle("response.in_progress")]
            }
            EventKind::ThinkingStarted { item_id } => self.thinking_started(item_id),
            EventKind::ThinkingDelta { item_id, text } => self.thinking_delta(item_id, text),
            EventKind::ThinkingDone { item_id, text } => self.thinking_done(item_id, text),
            EventKind::TextStarted { item_id } => self.text_started(item_id),
            EventKind::TextDelta { item_id, text } => {
                self.text_delta(item_id, text).iter().map(|delta| Frame::named(TEXT_DELTA, delta)).collect()
            }
            EventKind::TextDone { item_id, text, phase } => self.text_said(item_id, text, *phase),
            EventKind::ToolCallStarted(call) => self.tool_started(call),
            EventKind::ToolResult(result) => self.tool_returned(result),
            EventKind::ApprovalRequested(call) => self.approval_requested(call),
            EventKind::ClientToolRequested(call) => {
                self.function_call(&call.item_id, &call.call_id, &call.name, &call.args_raw)
            }
            EventKind::CompactionStarted { tokens, max_tokens, messages, .. } => self.compaction(
                "response.compaction.started",
                json!({ "tokens": tokens, "max_tokens": max_tokens, "messages": messages }),
            ),
            EventKind::CompactionFinished(finished) => {
                let CompactionFinished { initial_tokens, compacted_tokens, summary, .. } = finished.as_ref();
                if self.shows_summaries {
                    return self.summary(event.seq, summary);
                }
                let fields = json!({ "initial_tokens": initial_tokens, "compacted_tokens": compacted_tokens, "summary": summary });
                self.compaction("response.compaction.completed", fields)
            }
            EventKind::RunFinished(finished) => {
                if self.response.is_empty() {
                    self.response = new_response(&RunStarted::unknown(finished.run_id), event.at);
                }
                self.finished(event.at, finished.outcome, &finished.usage, &finished.last_usage)
            }
            EventKind::AnswerFinal { .. }
            | EventKind::RunError { .. }
            | EventKind::LlmCallStarted { .. }
            | EventKind::LlmCallFinished { .. }
            | EventKind::ApprovalResolved { .. }
            | EventKind::ClientToolResolved { .. }
            | EventKind::Conversation { .. }
            | EventKind::Paused { .. } => Vec::new(),
        }
    }
}

fn message_item(item_id: &str, status: &str, part: Option<Value>) -> Value {
    let content: Vec<Value> = part.into_iter().collect();
    json!({ "id": item_id, "type": "message", "status": status, "role": "assistant", "content": content })
}

fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

/// Returns the citation of what proves a part of an answer; `None` where no cell does. Clients know only citations of
/// URLs: this one names the response and the cell.
fn citation(response_id: &str, link: &ProofLink) -> Option<Value> {
    let (cell, what) = match &link.origin {
        ProofOrigin::Cell { cell, .. } => (cell, String::new()),
        ProofOrigin::Expression { expression, cells, .. } => (cells.first()?, format!("{expression}, ")),
        ProofOrigin::RowCount { .. }
        | ProofOrigin::Question
        | ProofOrigin::Query { .. }
        | ProofOrigin::Conversation
        | ProofOrigin::Unproven => return None,
    };
    // A cell of an earlier run is one of that run's response.
    let response = cell.run_id.map_or_else(|| response_id.to_owned(), id_of_response);
    let column = form_urlencoded::byte_serialize(cell.column.as_bytes()).collect::<String>();
    let place = format!("call={}&row={}&column={column}", cell.call_index, cell.row);
    Some(json!({
        "type": "url_citation",
        "start_index": link.start,
        "end_index": link.end,
        "title": format!("{what}query {}, row {}, {}", cell.call_index + 1, cell.row + 1, cell.column),
        "url": format!("querent:{response}#{place}"),
    }))
}

fn summary_part(text: &str) -> Value {
    json!({ "type": "summary_text", "text": text })
}

fn error_message(result: &Value) -> String {
    let error = &result["error"];
    let message = error["message"].as_str().unwrap_or("the tool failed");
    match error["hint"].as_str() {
        Some(hint) => format!("{message}; {hint}"),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pushed_is_what_is_framed() {
        let said = |text: &str| EventKind::TextDelta { item_id: "msg_1".into(), text: text.to_owned() };
        let done = EventKind::TextDone {
            item_id: "msg_1".to_owned(),
            text: "so \"far\"".to_owned(),
            phase: TextPhase::FinalAnswer,
        };
        let started = |item_id: &str| EventKind::TextStarted { item_id: item_id.to_owned() };
        let kinds = [started("msg_1"), said("so"), said(" \"far\""), done, started("msg_2"), said("?")];
        let renderer = || ResponsesRenderer::new(ResponsesDialect::OpenAi);
        let (mut framing, mut pushing) = (renderer(), renderer());
        let (mut framed, mut pushed) = (Vec::new(), Vec::new());
        for (seq, kind) in (0..).zip(kinds) {
            let event = RunEvent { seq, at: DateTime::default(), kind };
            push_frames(&mut framing, &event, &mut framed);
            pushing.push_sse(&event, &mut pushed);
            assert_eq!(framing.response(), pushing.response());
        }
        assert_eq!(String::from_utf8(pushed).unwrap(), String::from_utf8(framed).unwrap());
    }

    #[test]
    fn what_was_thought_so_far_is_shown_of_a_run_that_breaks_off() {
        let mut renderer = ResponsesRenderer::new(ResponsesDialect::OpenAi);
        renderer.thinking_started("rs_1");
        for piece in ["so ", "far"] {
            renderer.thinking_delta("rs_1", piece);
        }
        let item = json!({ "id": "rs_1", "type": "reasoning", "summary": [summary_part("so far")] });
        assert_eq!(renderer.response()["output"], json!([item]));
    }
}
