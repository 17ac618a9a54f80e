//! Turns events into a task's updates, and a log into a task.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::A2aVersion;
use super::piece::{ANSWER, PieceBytes, PieceOf, piece_frame};
use crate::assessment::ASSESSMENT;
use crate::event::{EventKind, RunEvent, RunOutcome, RunStarted, TextPhase, ToolResult, ToolStatus};
use crate::protocols::run_end::RunEnd;
use crate::protocols::{Frame, Renderer, add_assessment, add_chart, add_ticket, push_frames};

/// What the status of a task that was stopped says.
const CANCELLED: &str = "cancelled";

/// Renders one task as the answers to one request.
#[derive(Debug)]
pub struct A2aRenderer {
    version: A2aVersion,
    /// The request's id.
    id: Value,
    run_id: String,
    context_id: Value,
    /// The messages so far: what was asked, and what the task asked back.
    history: Vec<Value>,
    /// The most of them that a task shows, the newest; `None`: all.
    history_length: Option<usize>,
    /// The text of the message that is being said, and whether pieces of it were sent.
    said: String,
    has_begun: bool,
    /// Pieces were sent as the answer of what turned out to be none.
    is_stale: bool,
    /// The bytes around a piece of it.
    around_piece: Option<PieceBytes>,
    artifacts: Vec<Value>,
    /// The time of the latest event.
    at: Option<DateTime<Utc>>,
    end: RunEnd,
}

impl A2aRenderer {
    /// Creates a renderer of the answers to the request `id`.
    pub fn new(version: A2aVersion, id: Value) -> Self {
        Self {
            version,
            id,
            run_id: String::new(),
            context_id: Value::Null,
            history: Vec::new(),
            history_length: None,
            said: String::new(),
            has_begun: false,
            is_stale: false,
            around_piece: None,
            artifacts: Vec::new(),
            at: None,
            end: RunEnd::default(),
        }
    }

    /// Shows the newest messages of the history only, at most `length`.
    #[must_use]
    pub fn with_history(self, length: Option<usize>) -> Self {
        Self { history_length: length, ..self }
    }

    /// Returns the task as it is.
    pub fn task(&self) -> Value {
        let left_out = self.history_length.map_or(0, |length| self.history.len().saturating_sub(length));
        let mut task = json!({
            "id": self.run_id,
            "contextId": self.context_id,
            "status": self.status(),
            "artifacts": self.artifacts,
            "history": self.history.get(left_out..).unwrap_or_default(),
        });
        if let Some(outcome) = self.end.outcome {
            let usage = self.end.usage;
            task["metadata"] = json!({
                "outcome": outcome,
                "usage": { "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens },
            });
            if let Some(reason) = self.end.cut_reason() {
                task["metadata"]["cut"] = json!(reason);
            }
            add_assessment(&mut task["metadata"], self.end.assessment.as_ref());
        }
        self.kind("task", task)
    }

    /// Returns the answer to a request for a task, in the form of a message's answer where it is one.
    pub fn answer(&self, is_sent: bool) -> Value {
        let task = self.task();
        let result = match (self.version, is_sent) {
            (A2aVersion::V1_0, true) => json!({ "task": task }),
            _ => task,
        };
        json!({ "jsonrpc": "2.0", "id": self.id, "result": result })
    }

    /// Takes in the events of runs before: those of a task that asked back and was answered.
    pub fn replay(&mut self, log: &[RunEvent]) {
        for event in log {
            self.frame(event);
        }
    }

    /// Whether the task has asked which of several readings is meant, and goes on with the reply.
    pub fn waits_for_input(&self) -> bool {
        let asks_back = self.end.assessment.as_ref().is_some_and(|assessment| assessment["asks_back"] == true);
        asks_back && self.end.outcome == Some(RunOutcome::Success)
    }

    fn word(&self, old: &'static str, new: &'static str) -> &'static str {
        match self.version {
            A2aVersion::V0_3 => old,
            A2aVersion::V1_0 => new,
        }
    }

    /// Adds the kind that objects of the older version have.
    fn kind(&self, kind: &str, mut object: Value) -> Value {
        if self.version == A2aVersion::V0_3 {
            object["kind"] = json!(kind);
        }
        object
    }

    fn status(&self) -> Value {
        let state = match self.end.outcome {
            None => self.word("working", "TASK_STATE_WORKING"),
            _ if self.waits_for_input() => self.word("input-required", "TASK_STATE_INPUT_REQUIRED"),
            Some(RunOutcome::Success | RunOutcome::Paused) => self.word("completed", "TASK_STATE_COMPLETED"),
            Some(RunOutcome::Error | RunOutcome::BudgetExceeded) => self.word("failed", "TASK_STATE_FAILED"),
            Some(RunOutcome::Cancelled) => self.word("canceled", "TASK_STATE_CANCELED"),
        };
        let at = self.at.map(|at| at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)).unwrap_or_default();
        let mut status = json!({ "state": state, "timestamp": at });
        if self.waits_for_input() {
            status["message"] = self.question_back();
        }
        if let Some((_, message)) = self.end.failure() {
            let code =
                if self.end.outcome == Some(RunOutcome::Cancelled) { CANCELLED } else { self.end.failure_code() };
            let parts = vec![self.text(message), self.data(json!({ "error": code }))];
            status["message"] = self.agent_message("end", parts);
        }
        status
    }

    /// Returns the message with the choices: the answer, which asks, and the readings as data.
    fn question_back(&self) -> Value {
        let answer = self.artifacts.iter().find(|artifact| artifact["artifactId"] == ANSWER);
        let text = answer.map_or(Value::Null, |answer| answer["parts"][0].clone());
        let readings = self.end.assessment.as_ref().map_or(Value::Null, |assessment| assessment["readings"].clone());
        let parts = vec![text, self.data(json!({ "readings": readings }))];
        self.agent_message(&format!("asks-{}", self.history.len()), parts)
    }

    fn text(&self, text: &str) -> Value {
        self.kind("text", json!({ "text": text }))
    }

    fn data(&self, data: Value) -> Value {
        self.kind("data", json!({ "data": data }))
    }

    fn agent_message(&self, nth: &str, parts: Vec<Value>) -> Value {
        let message = json!({
            "messageId": format!("{}-{nth}", self.run_id),
            "role": self.word("agent", "ROLE_AGENT"),
            "taskId": self.run_id,
            "contextId": self.context_id,
            "parts": parts,
        });
        self.kind("message", message)
    }

    /// Wraps an update as the answer to the request.
    fn update(&self, old_kind: &str, new_name: &str, object: Value) -> Frame {
        let result = match self.version {
            A2aVersion::V0_3 => self.kind(old_kind, object),
            A2aVersion::V1_0 => json!({ new_name: object }),
        };
        Frame::unnamed(&json!({ "jsonrpc": "2.0", "id": self.id, "result": result }))
    }

    fn status_update(&self, status: Value) -> Frame {
        let mut update = json!({ "taskId": self.run_id, "contextId": self.context_id, "status": status });
        if self.version == A2aVersion::V0_3 {
            update["final"] = json!(self.end.outcome.is_some());
        }
        if let Some(assessment) = self.end.assessment.as_ref().filter(|_| self.end.outcome.is_some()) {
            update["metadata"] = json!({ ASSESSMENT: assessment });
        }
        self.update("status-update", "statusUpdate", update)
    }

    fn artifact_update(&self, artifact: Value, append: bool, is_last: bool) -> Frame {
        let update = json!({
            "taskId": self.run_id,
            "contextId": self.context_id,
            "artifact": artifact,
            "append": append,
            "lastChunk": is_last,
        });
        self.update("artifact-update", "artifactUpdate", update)
    }

    fn started(&mut self, started: &RunStarted) -> Vec<Frame> {
        if self.waits_for_input() {
            self.history.push(self.question_back());
        }
        (self.end, self.has_begun, self.is_stale) = (RunEnd::default(), false, false);
        let task = started.request["task"].as_str().map(str::to_owned);
        self.run_id = task.unwrap_or_else(|| started.run_id.to_string());
        self.context_id = json!(started.conversation);
        self.around_piece = None;
        let mut user = started.request["message"].clone();
        // Sent in one version, and maybe read in the other.
        let sent = user["parts"].as_array().into_iter().flatten();
        let parts: Vec<Value> = sent.map(|part| part_as(self.version, part)).collect();
        user["parts"] = json!(parts);
        user["role"] = json!(self.word("user", "ROLE_USER"));
        user["taskId"] = json!(self.run_id);
        user["contextId"] = self.context_id.clone();
        self.history.push(self.kind("message", user));
        vec![self.update("task", "task", self.task())]
    }

    /// A piece of a message is a piece of the answer until a call shows that it was none.
    fn piece(&mut self, text: &str) -> Vec<Frame> {
        self.said.push_str(text);
        self.is_stale = false;
        let append = std::mem::replace(&mut self.has_begun, true);
        let of = PieceOf { version: self.version, id: &self.id, task_id: &self.run_id, context_id: &self.context_id };
        vec![piece_frame(&of, text, append)]
    }

    fn text_done(&mut self, item_id: &str, text: &str, phase: TextPhase) -> Vec<Frame> {
        let artifact = |parts: Vec<Value>| json!({ "artifactId": ANSWER, "name": ANSWER, "parts": parts });
        match phase {
            TextPhase::FinalAnswer => {
                let whole = artifact(vec![self.text(text)]);
                self.artifacts.retain(|artifact| artifact["artifactId"] != ANSWER);
                self.artifacts.push(whole.clone());
                self.said.clear();
                self.is_stale = false;
                self.has_begun = true;
                // The whole takes the place of its pieces, which ADK's client does not keep.
                vec![self.artifact_update(whole, false, true)]
            }
            TextPhase::Commentary => {
                // What was sent as the answer begins anew with its next piece, which does not append.
                self.is_stale |= std::mem::take(&mut self.has_begun);
                let said = std::mem::take(&mut self.said);
                let mut status = self.status();
                status["message"] = self.agent_message(item_id, vec![self.text(&said)]);
                vec![self.status_update(status)]
            }
        }
    }

    /// Ends the task. An answer that was not said to its end stays as far as it is.
    fn finished(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        if std::mem::take(&mut self.is_stale) {
            // Nothing came after it: whoever follows has no answer either.
            let empty = json!({ "artifactId": ANSWER, "name": ANSWER, "parts": [self.text("")] });
            frames.push(self.artifact_update(empty, false, true));
        }
        let said = std::mem::take(&mut self.said);
        if self.has_begun && !said.is_empty() {
            let whole = json!({ "artifactId": ANSWER, "name": ANSWER, "parts": [self.text(&said)] });
            self.artifacts.push(whole.clone());
            frames.push(self.artifact_update(whole, false, true));
        }
        frames.push(self.status_update(self.status()));
        frames
    }

    fn called(&self, tool: &str, call_id: &str, args: &Value) -> Vec<Frame> {
        let mut status = self.status();
        let call = self.data(json!({ "tool_call": { "id": call_id, "name": tool, "arguments": args } }));
        status["message"] = self.agent_message(call_id, vec![call]);
        vec![self.status_update(status)]
    }

    fn returned(&mut self, result: &ToolResult) -> Vec<Frame> {
        let mut data = result.result.clone();
        add_chart(&mut data, result);
        add_ticket(&mut data, result.ticket.as_ref());
        if result.status != ToolStatus::Success || data["columns"].is_null() {
            return Vec::new();
        }
        let artifact = json!({
            "artifactId": result.call_id,
            "name": result.tool,
            "parts": [self.data(data)],
        });
        self.artifacts.push(artifact.clone());
        vec![self.artifact_update(artifact, false, true)]
    }
}

impl Renderer for A2aRenderer {
    fn frame(&mut self, event: &RunEvent) -> Vec<Frame> {
        self.at = Some(event.at);
        self.end.note(&event.kind);
        match &event.kind {
            EventKind::RunStarted(started) => self.started(started),
            EventKind::TextDelta { text, .. } => self.piece(text),
            EventKind::TextDone { item_id, text, phase } => self.text_done(item_id, text, *phase),
            EventKind::ToolCallStarted(call) => self.called(&call.tool, &call.call_id, &call.args),
            EventKind::ToolResult(result) => self.returned(result),
            EventKind::RunFinished(finished) => {
                if self.run_id.is_empty() {
                    self.run_id = finished.run_id.to_string();
                }
                self.finished()
            }
            EventKind::AnswerFinal { .. }
            | EventKind::RunError { .. }
            | EventKind::CompactionStarted { .. }
            | EventKind::CompactionFinished { .. }
            | EventKind::LlmCallStarted { .. }
            | EventKind::LlmCallFinished { .. }
            | EventKind::ThinkingStarted { .. }
            | EventKind::ThinkingDelta { .. }
            | EventKind::ThinkingDone { .. }
            | EventKind::TextStarted { .. }
            | EventKind::ApprovalRequested(_)
            | EventKind::ApprovalResolved { .. }
            | EventKind::ClientToolRequested(_)
            | EventKind::ClientToolResolved { .. }
            | EventKind::Conversation { .. }
            | EventKind::Paused { .. } => Vec::new(),
        }
    }

    fn push_sse(&mut self, event: &RunEvent, to: &mut Vec<u8>) {
        match &event.kind {
            EventKind::TextDelta { text, .. } if self.has_begun => {
                self.at = Some(event.at);
                self.said.push_str(text);
                self.is_stale = false;
                let (version, context_id) = (self.version, &self.context_id);
                let of = PieceOf { version, id: &self.id, task_id: &self.run_id, context_id };
                self.around_piece.get_or_insert_with(|| PieceBytes::new(&of)).push(text, to);
            }
            _ => push_frames(self, event, to),
        }
    }
}

/// Returns a part that a client sent, in the words of the version.
fn part_as(version: A2aVersion, part: &Value) -> Value {
    let given = |of: &Value, names: [&str; 2]| {
        names.into_iter().find_map(|name| of.get(name).filter(|value| !value.is_null()).cloned())
    };
    let file = if part["file"].is_object() { &part["file"] } else { part };
    let (bytes, url) = (given(file, ["raw", "bytes"]), given(file, ["url", "uri"]));
    let (name, media_type) = (given(file, ["filename", "name"]), given(file, ["mediaType", "mimeType"]));
    let whole = |name: &str| part.get(name).filter(|value| !value.is_null()).cloned();
    let (text, data, metadata) = (whole("text"), whole("data"), whole("metadata"));
    match version {
        A2aVersion::V1_0 => object_of([
            ("text", text),
            ("data", data),
            ("raw", bytes),
            ("url", url),
            ("filename", name),
            ("mediaType", media_type),
            ("metadata", metadata),
        ]),
        A2aVersion::V0_3 => {
            let kind = match (&text, &data) {
                (Some(_), _) => "text",
                (None, Some(_)) => "data",
                (None, None) => "file",
            };
            // Data of this version is an object.
            let data = data.map(|data| if data.is_object() { data } else { json!({ "value": data }) });
            let file = object_of([("bytes", bytes), ("uri", url), ("name", name), ("mimeType", media_type)]);
            object_of([
                ("kind", Some(json!(kind))),
                ("text", text),
                ("data", data),
                ("file", Some(file).filter(|_| kind == "file")),
                ("metadata", metadata),
            ])
        }
    }
}

/// Returns an object of the members that there are.
fn object_of<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    let members = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(members.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pushed_is_what_is_framed() {
        let said = |text: &str| EventKind::TextDelta { item_id: "msg_1".into(), text: text.to_owned() };
        let done = |phase| EventKind::TextDone { item_id: "msg_1".to_owned(), text: "so far".to_owned(), phase };
        let kinds = [
            said("so"),
            said(" \"far\""),
            done(TextPhase::Commentary),
            said("and"),
            said(" on"),
            done(TextPhase::FinalAnswer),
            said("!"),
        ];
        for version in [A2aVersion::V0_3, A2aVersion::V1_0] {
            let (mut framing, mut pushing) = (A2aRenderer::new(version, json!(1)), A2aRenderer::new(version, json!(1)));
            let (mut framed, mut pushed) = (Vec::new(), Vec::new());
            for (seq, kind) in (0..).zip(kinds.clone()) {
                let event = RunEvent { seq, at: DateTime::default(), kind };
                push_frames(&mut framing, &event, &mut framed);
                pushing.push_sse(&event, &mut pushed);
                assert_eq!(framing.task(), pushing.task());
            }
            assert_eq!(String::from_utf8(pushed).unwrap(), String::from_utf8(framed).unwrap());
        }
    }

    #[test]
    fn a_part_is_shown_in_the_words_of_the_version_that_asks() {
        let csv = "YSxi";
        for (old, new) in [
            (json!({ "kind": "text", "text": "hi" }), json!({ "text": "hi" })),
            (json!({ "kind": "data", "data": { "a": 1 } }), json!({ "data": { "a": 1 } })),
            (
                json!({ "kind": "file", "file": { "bytes": csv, "name": "a.csv", "mimeType": "text/csv" } }),
                json!({ "raw": csv, "filename": "a.csv", "mediaType": "text/csv" }),
            ),
            (
                json!({ "kind": "file", "file": { "uri": "https://x/a.csv" }, "metadata": { "m": 1 } }),
                json!({ "url": "https://x/a.csv", "metadata": { "m": 1 } }),
            ),
        ] {
            for sent in [&old, &new] {
                assert_eq!(part_as(A2aVersion::V0_3, sent), old);
                assert_eq!(part_as(A2aVersion::V1_0, sent), new);
            }
        }
        let list = part_as(A2aVersion::V0_3, &json!({ "data": [1] }));
        assert_eq!(list, json!({ "kind": "data", "data": { "value": [1] } }));
    }
}
