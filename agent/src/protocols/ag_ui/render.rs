//! Turns events into AG-UI's events.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Value, json};

use crate::assessment::ASSESSMENT;
use crate::event::{EventKind, RunEvent, RunOutcome, ToolResult, WaitingCall};
use crate::protocols::run_end::RunEnd;
use crate::protocols::{Frame, Renderer, add_chart, add_ticket, push_data, push_frames};

/// The protocol's version that is spoken.
const VERSION: &str = "1.0";

/// Renders one run.
#[derive(Debug, Default)]
pub struct AgUiRenderer {
    /// `{threadId, runId}`, as the client named them.
    ids: Value,
    model: String,
    /// The message that is being said, and the end that it needs.
    open: Option<(String, MessagePart)>,
    /// The ids under which calls were shown when they waited for a person.
    shown: HashMap<String, String>,
    interrupts: Vec<Value>,
    pending: Vec<String>,
    /// Whether the client said the version that it speaks, as clients do since 1.0. An outcome that older ones do not
    /// know ends their run with an error.
    knows_version: bool,
    end: RunEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessagePart {
    Text,
    Thinking,
}

/// A piece of a message, which nearly all events are.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MessagePiece<'a> {
    r#type: &'static str,
    message_id: &'a str,
    delta: &'a str,
}

impl<'a> MessagePiece<'a> {
    fn of(kind: &'a EventKind) -> Option<Self> {
        match kind {
            EventKind::TextDelta { item_id, text } => {
                Some(Self { r#type: "TEXT_MESSAGE_CONTENT", message_id: item_id, delta: text })
            }
            EventKind::ThinkingDelta { item_id, text } => {
                Some(Self { r#type: "REASONING_MESSAGE_CONTENT", message_id: item_id, delta: text })
            }
            _ => None,
        }
    }
}

impl AgUiRenderer {
    fn begin(&mut self, message_id: &str, part: MessagePart) -> Vec<Frame> {
        let mut frames = self.close();
        self.open = Some((message_id.to_owned(), part));
        match part {
            MessagePart::Text => {
                frames.push(frame("TEXT_MESSAGE_START", json!({ "messageId": message_id, "role": "assistant" })));
            }
            MessagePart::Thinking => {
                frames.push(frame("REASONING_START", json!({ "messageId": message_id })));
                let start = json!({ "messageId": message_id, "role": "reasoning" });
                frames.push(frame("REASONING_MESSAGE_START", start));
            }
        }
        frames
    }

    /// Ends the message that is being said.
    fn close(&mut self) -> Vec<Frame> {
        let id = |message_id: &str| json!({ "messageId": message_id });
        match self.open.take() {
            None => Vec::new(),
            Some((message_id, MessagePart::Text)) => vec![frame("TEXT_MESSAGE_END", id(&message_id))],
            Some((message_id, MessagePart::Thinking)) => {
                vec![frame("REASONING_MESSAGE_END", id(&message_id)), frame("REASONING_END", id(&message_id))]
            }
        }
    }

    fn call(&mut self, call_id: &str, name: &str, arguments: &str) -> Vec<Frame> {
        let mut frames = self.close();
        frames.push(frame("TOOL_CALL_START", json!({ "toolCallId": call_id, "toolCallName": name })));
        frames.push(frame("TOOL_CALL_ARGS", json!({ "toolCallId": call_id, "delta": arguments })));
        frames.push(frame("TOOL_CALL_END", json!({ "toolCallId": call_id })));
        frames
    }

    fn result(&mut self, result: &ToolResult) -> Vec<Frame> {
        let call_id = self.shown.get(&result.call_id).unwrap_or(&result.call_id);
        let mut data = json!({
            "messageId": format!("{}_result", result.item_id),
            "toolCallId": call_id,
            "content": result.result.to_string(),
            "role": "tool",
        });
        let mut metadata = json!({});
        add_chart(&mut metadata, result);
        add_ticket(&mut metadata, result.ticket.as_ref());
        if metadata != json!({}) {
            data["metadata"] = metadata;
        }
        vec![frame("TOOL_CALL_RESULT", data)]
    }

    fn interrupted(&mut self, call: &WaitingCall) -> Vec<Frame> {
        self.interrupts.push(json!({
            "id": call.item_id,
            "reason": "tool_approval",
            "message": call.description,
            "toolCallId": call.item_id,
            "responseSchema": {
                "type": "object",
                "properties": { "approved": { "type": "boolean" }, "reason": { "type": "string" } },
                "required": ["approved"],
            },
        }));
        self.call(&call.item_id, &call.name, &call.args_raw)
    }

    fn finished(&mut self) -> Vec<Frame> {
        let usage = self.end.usage;
        let usage = json!([{
            "model": self.model,
            "inputTokens": usage.input_tokens,
            "outputTokens": usage.output_tokens,
            "totalTokens": usage.input_tokens + usage.output_tokens,
            "reasoningTokens": usage.reasoning_tokens,
            "cachedInputTokens": usage.cached_tokens,
            "cacheWriteInputTokens": usage.cache_write_tokens,
        }]);
        let mut frames = self.close();
        let is_cancelled = self.end.outcome == Some(RunOutcome::Cancelled);
        // To a client before 1.0, which has no such outcome, a run that was cancelled failed.
        let failure = self.end.failure().filter(|_| !is_cancelled || !self.knows_version);
        if let Some((_, message)) = failure {
            let data = json!({ "message": message, "code": self.end.failure_code(), "usage": usage });
            frames.push(frame("RUN_ERROR", data));
            return frames;
        }
        let outcome = if is_cancelled {
            self.knows_version.then(|| json!({ "type": "cancelled" }))
        } else if !self.interrupts.is_empty() {
            Some(json!({ "type": "interrupt", "interrupts": self.interrupts }))
        } else if !self.pending.is_empty() && self.knows_version {
            Some(json!({ "type": "success", "pendingToolCallIds": self.pending }))
        } else {
            Some(json!({ "type": "success" }))
        };
        if let Some(assessment) = &self.end.assessment {
            frames.push(frame("CUSTOM", json!({ "name": ASSESSMENT, "value": assessment })));
        }
        let mut data = self.ids.clone();
        if let Some(outcome) = outcome {
            data["outcome"] = outcome;
        }
        data["usage"] = usage;
        if let Some(reason) = self.end.cut_reason() {
            data["metadata"] = json!({ "cut": reason });
        }
        frames.push(frame("RUN_FINISHED", data));
        frames
    }
}

impl Renderer for AgUiRenderer {
    fn frame(&mut self, event: &RunEvent) -> Vec<Frame> {
        self.end.note(&event.kind);
        match &event.kind {
            EventKind::RunStarted(started) => {
                let asked = &started.request;
                self.ids = json!({ "threadId": asked["threadId"], "runId": asked["runId"] });
                self.knows_version = asked["protocolVersion"].is_string();
                self.model.clone_from(&started.model);
                let mut data = self.ids.clone();
                data["protocolVersion"] = json!(VERSION);
                vec![frame("RUN_STARTED", data)]
            }
            EventKind::ThinkingStarted { item_id } => self.begin(item_id, MessagePart::Thinking),
            EventKind::ThinkingDelta { .. } | EventKind::TextDelta { .. } => {
                MessagePiece::of(&event.kind).iter().map(Frame::unnamed).collect()
            }
            EventKind::TextStarted { item_id } => self.begin(item_id, MessagePart::Text),
            EventKind::ThinkingDone { .. } | EventKind::TextDone { .. } => self.close(),
            // A call that a person approved was shown when it began to wait.
            EventKind::ToolCallStarted(call) if call.approval_request_id.is_some() => Vec::new(),
            EventKind::ToolCallStarted(call) => self.call(&call.call_id, &call.tool, &call.args_raw),
            EventKind::ToolResult(result) => self.result(result),
            EventKind::ApprovalRequested(call) => self.interrupted(call),
            EventKind::ApprovalResolved(resolved) => {
                self.shown.insert(resolved.call_id.clone(), resolved.request_id.clone());
                Vec::new()
            }
            EventKind::ClientToolRequested(call) => {
                self.pending.push(call.call_id.clone());
                self.call(&call.call_id, &call.name, &call.args_raw)
            }
            EventKind::RunFinished { .. } => self.finished(),
            EventKind::AnswerFinal { .. }
            | EventKind::RunError { .. }
            | EventKind::CompactionStarted { .. }
            | EventKind::CompactionFinished { .. }
            | EventKind::LlmCallStarted { .. }
            | EventKind::LlmCallFinished { .. }
            | EventKind::ClientToolResolved { .. }
            | EventKind::Conversation { .. }
            | EventKind::Paused { .. } => Vec::new(),
        }
    }

    fn push_sse(&mut self, event: &RunEvent, to: &mut Vec<u8>) {
        match MessagePiece::of(&event.kind) {
            Some(piece) => push_data(None, &piece, to),
            None => push_frames(self, event, to),
        }
    }
}

/// Makes an event of its type and fields.
fn frame(kind: &'static str, mut data: Value) -> Frame {
    data["type"] = json!(kind);
    Frame::unnamed(&data)
}
