//! Turns events into Anthropic's events, or into one message.

use serde::Serialize;
use serde_json::{Value, json};

use crate::event::{EventKind, RunErrorCode, RunEvent, WaitingCall};
use crate::models::TokenUsage;
use crate::protocols::run_end::{RunEnd, model_named};
use crate::protocols::{Frame, Renderer, add_assessment, push_data, push_frames};

/// Renders one run.
#[derive(Debug, Default)]
pub struct MessagesRenderer {
    id: String,
    model: Value,
    content: Vec<Value>,
    /// Whether blocks of thinking have no text.
    omits_thinking: bool,
    /// Whether the last block of the content is still being said.
    is_open: bool,
    calls: bool,
    end: RunEnd,
}

const BLOCK_DELTA: &str = "content_block_delta";

/// An event of this name, which nearly all are.
#[derive(Serialize)]
struct BlockDelta<'a> {
    r#type: &'static str,
    index: usize,
    delta: PieceDelta<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type")]
enum PieceDelta<'a> {
    #[serde(rename = "text_delta")]
    Text { text: &'a str },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: &'a str },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: &'a str },
}

impl MessagesRenderer {
    /// Creates a renderer that shows blocks of thinking with their text, or without it.
    pub fn new(omits_thinking: bool) -> Self {
        Self { omits_thinking, ..Self::default() }
    }

    /// Returns why the run failed, if it did: its code, and what to do.
    pub fn failure(&self) -> Option<(RunErrorCode, &str)> {
        self.end.failure()
    }

    /// Returns the message, once the run has ended.
    pub fn message(&self) -> Value {
        let mut message = json!({
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": self.content,
            "stop_reason": self.stop_reason(),
            "stop_sequence": null,
            "usage": usage_json(&self.end.usage),
        });
        add_assessment(&mut message, self.end.assessment.as_ref());
        message
    }

    fn stop_reason(&self) -> &'static str {
        match (self.calls, self.end.cut, self.end.filtered) {
            (true, _, _) => "tool_use",
            (false, true, _) => "max_tokens",
            (false, false, true) => "refusal",
            (false, false, false) => "end_turn",
        }
    }

    /// Begins a block, which has nothing yet.
    fn begin(&mut self, block: Value) -> Vec<Frame> {
        let mut frames = self.end();
        let index = self.content.len();
        let data = json!({ "type": "content_block_start", "index": index, "content_block": block });
        frames.push(Frame::named("content_block_start", &data));
        self.content.push(block);
        self.is_open = true;
        frames
    }

    /// Adds a piece to the block that is open, if one is.
    fn add<'a>(&mut self, field: &str, piece: &'a str) -> Option<BlockDelta<'a>> {
        let index = self.content.len().checked_sub(1).filter(|_| self.is_open)?;
        if let Some(Value::String(said)) = self.content[index].get_mut(field) {
            said.push_str(piece);
        }
        let delta = match field {
            "thinking" => PieceDelta::Thinking { thinking: piece },
            _ => PieceDelta::Text { text: piece },
        };
        Some(BlockDelta { r#type: BLOCK_DELTA, index, delta })
    }

    /// Adds a piece of thinking or text; `None` where the event is no piece, or is not shown.
    fn add_piece<'a>(&mut self, kind: &'a EventKind) -> Option<BlockDelta<'a>> {
        match kind {
            EventKind::ThinkingDelta { text, .. } if !self.omits_thinking => self.add("thinking", text),
            EventKind::TextDelta { text, .. } => self.add("text", text),
            _ => None,
        }
    }

    /// Ends the block that is open.
    fn end(&mut self) -> Vec<Frame> {
        if !std::mem::take(&mut self.is_open) {
            return Vec::new();
        }
        let index = self.content.len() - 1;
        vec![Frame::named("content_block_stop", &json!({ "type": "content_block_stop", "index": index }))]
    }

    fn call(&mut self, call: &WaitingCall) -> Vec<Frame> {
        self.calls = true;
        let mut frames = self.begin(json!({ "type": "tool_use", "id": call.call_id, "name": call.name, "input": {} }));
        let index = self.content.len() - 1;
        let delta = PieceDelta::InputJson { partial_json: &call.args_raw };
        frames.push(Frame::named(BLOCK_DELTA, &BlockDelta { r#type: BLOCK_DELTA, index, delta }));
        self.content[index]["input"] = serde_json::from_str(&call.args_raw).unwrap_or_else(|_| json!({}));
        frames.extend(self.end());
        frames
    }

    fn finished(&mut self) -> Vec<Frame> {
        if let Some((code, message)) = self.end.failure() {
            return vec![Frame::named("error", &error_json(code, message))];
        }
        let mut frames = self.end();
        let mut delta = json!({
            "type": "message_delta",
            "delta": { "stop_reason": self.stop_reason(), "stop_sequence": null },
            "usage": usage_json(&self.end.usage),
        });
        add_assessment(&mut delta, self.end.assessment.as_ref());
        frames.push(Frame::named("message_delta", &delta));
        frames.push(Frame::named("message_stop", &json!({ "type": "message_stop" })));
        frames
    }
}

impl Renderer for MessagesRenderer {
    fn frame(&mut self, event: &RunEvent) -> Vec<Frame> {
        self.end.note(&event.kind);
        match &event.kind {
            EventKind::RunStarted(started) => {
                self.id = format!("msg_{}", started.run_id.simple());
                self.model = model_named(started);
                let mut message = self.message();
                message["stop_reason"] = Value::Null;
                vec![Frame::named("message_start", &json!({ "type": "message_start", "message": message }))]
            }
            EventKind::ThinkingStarted { .. } => {
                self.begin(json!({ "type": "thinking", "thinking": "", "signature": "" }))
            }
            EventKind::ThinkingDelta { .. } | EventKind::TextDelta { .. } => {
                let piece = self.add_piece(&event.kind);
                piece.iter().map(|piece| Frame::named(BLOCK_DELTA, piece)).collect()
            }
            EventKind::TextStarted { .. } => self.begin(json!({ "type": "text", "text": "" })),
            EventKind::ThinkingDone { .. } | EventKind::TextDone { .. } => self.end(),
            EventKind::ClientToolRequested(call) => self.call(call),
            EventKind::RunFinished { .. } => self.finished(),
            EventKind::CompactionStarted { .. }
            | EventKind::CompactionFinished { .. }
            | EventKind::LlmCallStarted { .. }
            | EventKind::LlmCallFinished { .. }
            | EventKind::ToolCallStarted(_)
            | EventKind::ToolResult(_)
            | EventKind::ApprovalRequested(_)
            | EventKind::ApprovalResolved { .. }
            | EventKind::ClientToolResolved { .. }
            | EventKind::Conversation { .. }
            | EventKind::AnswerFinal { .. }
            | EventKind::RunError { .. }
            | EventKind::Paused { .. } => Vec::new(),
        }
    }

    fn push_sse(&mut self, event: &RunEvent, to: &mut Vec<u8>) {
        match &event.kind {
            EventKind::ThinkingDelta { .. } | EventKind::TextDelta { .. } => {
                if let Some(piece) = self.add_piece(&event.kind) {
                    push_data(Some(BLOCK_DELTA), &piece, to);
                }
            }
            _ => push_frames(self, event, to),
        }
    }
}

fn usage_json(usage: &TokenUsage) -> Value {
    json!({
        "input_tokens": usage.input_tokens.saturating_sub(usage.cached_tokens + usage.cache_write_tokens),
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
    })
}

/// Returns a failure in the protocol's error shape.
fn error_json(code: RunErrorCode, message: &str) -> Value {
    let kind = if code == RunErrorCode::Timeout { "timeout_error" } else { "api_error" };
    json!({ "type": "error", "error": { "type": kind, "message": message } })
}
