//! A run's events to lines. A turn of the model is one message: its thoughts and its words have one id.

use serde_json::Value;
use uuid::Uuid;

use super::super::{Frame, Renderer};
use super::tools::{self, ShownCall};
use super::{AGENT_NODE, FINAL_NODE, Line, Output, TOOLS_NODE, ToolCall, state};
use crate::event::{EventKind, RunEvent, RunOutcome, RunStarted, ToolCallStarted, ToolResult};

/// Where the answer's id stands among those of a run's items, which count from 0.
const ANSWER_ITEM: u128 = 0xffff_ffff;
/// Our own code of a run that its user ended.
const CANCELLED: &str = "cancelled";

/// Events to lines.
#[derive(Debug, Default)]
pub struct CubeRenderer {
    /// Of the next line.
    sort: u64,
    run_id: Uuid,
    question: String,
    /// What the thread's state says of the runs before.
    before: Vec<Value>,
    /// And of this one.
    messages: Vec<Value>,
    /// The turn's message of the model's among them.
    turn_message: Option<usize>,
    /// What the model says in this turn.
    open: Option<OpenMessage>,
    /// What it said in this turn, once it is whole.
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
    /// A renderer of a run in a thread whose state so far is `before`.
    pub fn new(before: Vec<Value>) -> Self {
        Self { before, ..Self::default() }
    }

    /// The lines of an event.
    pub fn lines(&mut self, event: &RunEvent) -> Vec<Output> {
        let mut lines = Vec::new();
        self.render(event, &mut lines);
        lines
    }

    /// The lines that end what a log without an end leaves open.
    pub fn break_off(&mut self) -> Vec<Output> {
        let mut lines = Vec::new();
        self.end_all(&mut lines);
        lines
    }

    /// Whether the run has ended.
    pub fn has_finished(&self) -> bool {
        self.finished
    }

    /// The `sort` that the next line has.
    pub fn next_sort(&self) -> u64 {
        self.sort
    }

    /// What the state says of this run.
    pub fn into_messages(self) -> Vec<Value> {
        self.messages
    }

    fn render(&mut self, event: &RunEvent, to: &mut Vec<Output>) {
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
            EventKind::AnswerFinal { text, .. } => {
                self.end_message(to);
                self.messages.push(state::assistant(text));
                let id = self.id_of(ANSWER_ITEM);
                let answer = Line {
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
                self.cancelled = detail_code == CANCELLED;
                if !self.cancelled {
                    to.push(Output::Error(message.clone()));
                }
            }
            EventKind::RunFinished { outcome, .. } => {
                self.end_all(to);
                self.finished = true;
                if self.cancelled || matches!(outcome, RunOutcome::Success | RunOutcome::Paused) {
                    let mut messages = std::mem::take(&mut self.before);
                    messages.extend(self.messages.iter().cloned());
                    to.push(Line::state(&messages, self.next() as f64).into());
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

    /// The user's message. The first `sort` is the mark's before it.
    fn begin(&mut self, event: &RunEvent, started: &RunStarted, to: &mut Vec<Output>) {
        self.run_id = started.run_id;
        self.question.clone_from(&started.question);
        self.sort = started.request["sort"].as_u64().unwrap_or_default() + 1;
        self.messages.push(state::human(&started.question));
        let id = started.invocation_id.clone().unwrap_or_else(|| format!("{}-message", event.at.timestamp_millis()));
        let sort = self.next() as f64;
        let content = Some(started.question.clone());
        to.push(Line { content, is_delta: Some(false), ..Line::new(id, "user", sort) }.into());
    }

    fn start(&mut self, item_id: &str, to: &mut Vec<Output>) {
        if self.open.is_some() {
            return;
        }
        self.open = Some(OpenMessage { id: self.id_of_item(item_id), text: String::new() });
        self.piece(to, |_| {});
    }

    /// A line of the open message that says what `said` puts into it.
    fn piece(&mut self, to: &mut Vec<Output>, said: impl FnOnce(&mut Line)) {
        let Some(id) = self.open.as_ref().map(|open| open.id.clone()) else { return };
        let mut line = self.message(id, String::new(), true);
        said(&mut line);
        to.push(line.into());
    }

    fn message(&mut self, id: String, content: String, in_process: bool) -> Line {
        Line {
            content: Some(content),
            thinking: Some(String::new()),
            graph_path: Some(AGENT_NODE),
            is_structured_response: Some(false),
            is_in_process: Some(in_process),
            is_delta: Some(in_process),
            ..self.line(id)
        }
    }

    fn end_message(&mut self, to: &mut Vec<Output>) {
        let Some(OpenMessage { id, text }) = self.open.take() else { return };
        self.said.clone_from(&text);
        let line = self.message(id, text, false);
        to.push(line.into());
    }

    fn call(&mut self, call: &ToolCallStarted, to: &mut Vec<Output>) {
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

    fn result(&mut self, result: &ToolResult, to: &mut Vec<Output>) {
        let Some(at) = self.calls.iter().position(|call| call.call_id == result.call_id) else { return };
        let call = self.calls.remove(at);
        let failed = result.result.get("error").is_some();
        self.messages.push(state::tool(&call.call_id, &call.name, &result.text, failed));
        let shown = call.result(result);
        let line = self.call_line(&call, Some(shown.to_string()));
        to.push(line.into());
    }

    fn call_line(&mut self, call: &ShownCall, result: Option<String>) -> Line {
        Line {
            is_in_process: Some(result.is_none()),
            tool_call: Some(ToolCall { name: call.name.clone(), input: call.input.to_string(), result }),
            graph_path: Some(TOOLS_NODE),
            is_structured_response: Some(false),
            is_delta: Some(false),
            ..self.line(call.id.clone())
        }
    }

    /// Ends what is open: the run goes no further.
    fn end_all(&mut self, to: &mut Vec<Output>) {
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

    fn line(&mut self, id: String) -> Line {
        let sort = self.next() as f64;
        Line::new(id, "assistant", sort)
    }

    fn next(&mut self) -> u64 {
        let sort = self.sort;
        self.sort += 1;
        sort
    }

    /// A UUID for each item of a run: the run's with the item's number in its random part.
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
        let line = |output: &Output| Frame { event: None, data: output.to_text().trim_end().to_owned() };
        self.lines(event).iter().map(line).collect()
    }
}
