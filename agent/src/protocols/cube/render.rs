//! Turns a run's events into lines. A turn of the model is one message: its thinking and its text share an id.

use serde_json::Value;
use uuid::Uuid;

use super::tools::{self, ShownCall};
use super::{AGENT_NODE, CubeLine, CubeOutput, FINAL_NODE, TOOLS_NODE, ToolCall, state};
use crate::assessment::ASSESSMENT;
use crate::event::{CANCELLED_CODE, EventKind, RunEvent, RunOutcome, RunStarted, ToolCallStarted, ToolResult};
use crate::protocols::{Frame, Renderer};

/// The number of the answer among a run's items, which count from 0.
const ANSWER_ITEM: u128 = 0xffff_ffff;

/// Turns events into lines.
#[derive(Debug, Default)]
pub struct CubeRenderer {
    /// The `sort` of the next line.
    sort: u64,
    run_id: Uuid,
    question: String,
    /// Messages of earlier runs, for the thread's state.
    before: Vec<Value>,
    /// Messages of this run, for the thread's state.
    messages: Vec<Value>,
    /// The index of the turn's message among them.
    turn_message: Option<usize>,
    /// The message of this turn, while it grows.
    open: Option<OpenMessage>,
    /// The text of this turn, once it is complete.
    said: String,
    calls: Vec<ShownCall>,
    cancelled: bool,
    finished: bool,
}

#[derive(Debug)]
struct OpenMessage {
    id: String,
    text: String,
}

impl CubeRenderer {
    /// Creates a renderer of a run in a thread whose state so far is `before`.
    pub fn new(before: Vec<Value>) -> Self {
        Self { before, ..Self::default() }
    }

    /// Returns the lines of an event.
    pub fn lines(&mut self, event: &RunEvent) -> Vec<CubeOutput> {
        let mut lines = Vec::new();
        self.render(event, &mut lines);
        lines
    }

    /// Returns the lines that close what an incomplete log leaves open.
    pub fn break_off(&mut self) -> Vec<CubeOutput> {
        let mut lines = Vec::new();
        self.end_all(&mut lines);
        lines
    }

    /// Whether the run has ended.
    pub fn has_finished(&self) -> bool {
        self.finished
    }

    /// Returns the `sort` of the next line.
    pub fn next_sort(&self) -> u64 {
        self.sort
    }

    /// Returns this run's messages for the thread's state.
    pub fn into_messages(self) -> Vec<Value> {
        self.messages
    }

    fn render(&mut self, event: &RunEvent, to: &mut Vec<CubeOutput>) {
        match &event.kind {
            EventKind::RunStarted(started) => self.begin(event, started, to),
            EventKind::LlmCallStarted { .. } => {
                self.turn_message = None;
                self.said.clear();
            }
            EventKind::ThinkingStarted { item_id } | EventKind::TextStarted { item_id } => self.start(item_id, to),
            EventKind::ThinkingDelta { text, .. } => {
                self.piece(to, |line| line.thinking = Some(text.clone()));
            }
            EventKind::TextDelta { text, .. } => {
                if let Some(open) = &mut self.open {
                    open.text.push_str(text);
                }
                self.piece(to, |line| line.content = Some(text.clone()));
            }
            EventKind::LlmCallFinished { .. } => self.end_message(to),
            EventKind::ToolCallStarted(call) => self.call(call, to),
            EventKind::ToolResult(result) => self.result(result, to),
            EventKind::AnswerFinal(answer) => {
                self.end_message(to);
                let text = &answer.text;
                let mut message = state::assistant(text);
                if let Some(assessment) = answer.assessment.to_json() {
                    state::add_response_metadata(&mut message, ASSESSMENT, assessment);
                }
                self.messages.push(message);
                let id = self.id_of(ANSWER_ITEM);
                let answer = CubeLine {
                    content: Some(text.clone()),
                    thinking: Some(String::new()),
                    graph_path: Some(FINAL_NODE),
                    is_structured_response: Some(false),
                    is_in_process: Some(false),
                    is_delta: Some(false),
                    ..self.line(id)
                };
                to.push(answer.into());
            }
            EventKind::RunError { message, detail_code, .. } => {
                self.end_all(to);
                self.cancelled = detail_code == CANCELLED_CODE;
                if !self.cancelled {
                    to.push(CubeOutput::Error(message.clone()));
                }
            }
            EventKind::RunFinished(finished) => {
                self.end_all(to);
                self.finished = true;
                if self.cancelled || matches!(finished.outcome, RunOutcome::Success | RunOutcome::Paused) {
                    let mut messages = std::mem::take(&mut self.before);
                    messages.extend(self.messages.iter().cloned());
                    to.push(CubeLine::state(&messages, self.next() as f64).into());
                }
            }
            EventKind::CompactionStarted { .. }
            | EventKind::CompactionFinished { .. }
            | EventKind::ThinkingDone { .. }
            | EventKind::TextDone { .. }
            | EventKind::ApprovalRequested(_)
            | EventKind::ApprovalResolved { .. }
            | EventKind::ClientToolRequested(_)
            | EventKind::ClientToolResolved { .. }
            | EventKind::Conversation { .. }
            | EventKind::Paused { .. } => {}
        }
    }

    /// Emits the user's message. The first `sort` belongs to the mark before it.
    fn begin(&mut self, event: &RunEvent, started: &RunStarted, to: &mut Vec<CubeOutput>) {
        self.run_id = started.run_id;
        self.question.clone_from(&started.question);
        self.sort = started.request["sort"].as_u64().unwrap_or_default() + 1;
        self.messages.push(state::human(&started.question));
        let id = started.invocation_id.clone().unwrap_or_else(|| format!("{}-message", event.at.timestamp_millis()));
        let sort = self.next() as f64;
        let content = Some(started.question.clone());
        to.push(CubeLine { content, is_delta: Some(false), ..CubeLine::new(id, "user", sort) }.into());
    }

    fn start(&mut self, item_id: &str, to: &mut Vec<CubeOutput>) {
        if self.open.is_some() {
            return;
        }
        self.open = Some(OpenMessage { id: self.id_of_item(item_id), text: String::new() });
        self.piece(to, |_| {});
    }

    /// Emits a line of the open message, filled by `fill`.
    fn piece(&mut self, to: &mut Vec<CubeOutput>, fill: impl FnOnce(&mut CubeLine)) {
        let Some(id) = self.open.as_ref().map(|open| open.id.clone()) else { return };
        let mut line = self.message(id, String::new(), true);
        fill(&mut line);
        to.push(line.into());
    }

    fn message(&mut self, id: String, content: String, in_process: bool) -> CubeLine {
        CubeLine {
            content: Some(content),
            thinking: Some(String::new()),
            graph_path: Some(AGENT_NODE),
            is_structured_response: Some(false),
            is_in_process: Some(in_process),
            is_delta: Some(in_process),
            ..self.line(id)
        }
    }

    fn end_message(&mut self, to: &mut Vec<CubeOutput>) {
        let Some(OpenMessage { id, text }) = self.open.take() else { return };
        self.said.clone_from(&text);
        let line = self.message(id, text, false);
        to.push(line.into());
    }

    fn call(&mut self, call: &ToolCallStarted, to: &mut Vec<CubeOutput>) {
        self.end_message(to);
        let id = self.id_of_item(&call.item_id);
        let shown = tools::shown(call, id, &self.question);
        let message = self.turn_message.unwrap_or_else(|| {
            self.messages.push(state::assistant(&self.said));
            self.messages.len() - 1
        });
        self.turn_message = Some(message);
        if let Some(message) = self.messages.get_mut(message) {
            state::add_call(message, &call.call_id, &shown.name, &shown.input);
        }
        let line = self.call_line(&shown, None);
        to.push(line.into());
        self.calls.push(shown);
    }

    fn result(&mut self, result: &ToolResult, to: &mut Vec<CubeOutput>) {
        let Some(at) = self.calls.iter().position(|call| call.call_id == result.call_id) else { return };
        let call = self.calls.remove(at);
        let failed = result.result.get("error").is_some();
        self.messages.push(state::tool(&call.call_id, &call.name, &result.text, failed));
        let shown = call.result(result);
        let line = self.call_line(&call, Some(shown.to_string()));
        to.push(line.into());
    }

    fn call_line(&mut self, call: &ShownCall, result: Option<String>) -> CubeLine {
        CubeLine {
            is_in_process: Some(result.is_none()),
            tool_call: Some(ToolCall { name: call.name.clone(), input: call.input.to_string(), result }),
            graph_path: Some(TOOLS_NODE),
            is_structured_response: Some(false),
            is_delta: Some(false),
            ..self.line(call.id.clone())
        }
    }

    /// Closes open messages and calls: the run has ended.
    fn end_all(&mut self, to: &mut Vec<CubeOutput>) {
        if let Some(open) = &self.open
            && !open.text.is_empty()
        {
            self.messages.push(state::assistant(&open.text));
        }
        self.end_message(to);
        for call in std::mem::take(&mut self.calls) {
            let ended = tools::error("cancelled", "the run ended before the tool did");
            self.messages.push(state::tool(&call.call_id, &call.name, "the run ended before the tool did", true));
            let line = self.call_line(&call, Some(ended.to_string()));
            to.push(line.into());
        }
    }

    fn line(&mut self, id: String) -> CubeLine {
        let sort = self.next() as f64;
        CubeLine::new(id, "assistant", sort)
    }

    fn next(&mut self) -> u64 {
        let sort = self.sort;
        self.sort += 1;
        sort
    }

    /// Returns a UUID for an item of the run: the run's, with the item's number in its random part.
    fn id_of(&self, item: u128) -> String {
        Uuid::from_u128(self.run_id.as_u128() ^ (item + 1)).to_string()
    }

    fn id_of_item(&self, item_id: &str) -> String {
        let run = self.run_id.simple().to_string();
        let number = item_id.split_once('_').and_then(|(_, rest)| rest.strip_prefix(&run));
        match number.and_then(|number| u32::from_str_radix(number, 16).ok()) {
            Some(number) => self.id_of(u128::from(number)),
            None => item_id.to_owned(),
        }
    }
}

impl Renderer for CubeRenderer {
    fn frame(&mut self, event: &RunEvent) -> Vec<Frame> {
        let line = |output: &CubeOutput| Frame { event: None, data: output.to_text().trim_end().to_owned() };
        self.lines(event).iter().map(line).collect()
    }
}
