//! A model that follows a script: for tests, benches and demos that must not depend on a language model.
//!
//! A script is one JSON object:
//!
//! ```json
//! {
//!   "model": "scripted",
//!   "capabilities": {"tool_style": "native", "thinking": false, "small": false, "context_tokens": 8192},
//!   "runs": [
//!     {
//!       "when": "errored most",
//!       "turns": [
//!         {"events": [
//!           {"thinking": "count by service"},
//!           {"tool_call": {"name": "run_sql", "arguments": {"sql": "SELECT 1"}}}
//!         ], "usage": {"input_tokens": 120, "output_tokens": 14}},
//!         {"events": [{"text": "The "}, {"delay_ms": 20}, {"text": "answer is 1."}]}
//!       ]
//!     },
//!     {"turns": [{"events": ["hang"]}]}
//!   ]
//! }
//! ```
//!
//! - A chat follows the first run whose `when` occurs in its last message from the asker, whatever the case; a run
//!   without `when` fits every chat. What the adapter in [`super::actions`] sends back as a tool's result does not
//!   count as a message of the asker.
//! - The number of the assistant's replies after that message determines the chat's turn, so that one script serves any
//!   number of runs at once. Past the last turn the model fails, unless the run says `"repeat_last": true`.
//! - Events: `thinking`, `text`, `tool_call`, `delay_ms`, `error` (the turn ends with `model_failed`) and `"hang"`
//!   (nothing more comes). A turn without `error` or `hang` ends with `done`, `"stop"` unless `"done": "length"` or `"filtered"`.
//! - `"unavailable": "unreachable"` or `"not_found"` makes the model's check fail with that error.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use super::actions::is_tool_result;
use super::{
    ChatMessage, ChatRequest, ChatRole, DoneReason, ModelCapabilities, ModelEvent, ModelProvider, ModelToolCall,
    TokenUsage, ToolStyle,
};
use crate::error::{AgentError, Result};

/// Requests kept for [`ScriptedModel::requests`]; older ones are forgotten.
const REQUESTS_KEPT: usize = 256;

/// A whole script.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The model's name.
    #[serde(default = "default_model_id")]
    pub model: String,
    /// What the model says it can do.
    #[serde(default = "default_capabilities")]
    pub capabilities: ModelCapabilities,
    /// Why the model is unavailable, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<Unavailable>,
    /// Tried in order.
    pub runs: Vec<ScriptedRun>,
}

/// Why a scripted model is unavailable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unavailable {
    /// Its server does not answer.
    Unreachable,
    /// Its server does not have it.
    NotFound,
}

/// The turns of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedRun {
    /// A part of the question; `None` fits every question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// One for each request of the run.
    pub turns: Vec<ScriptedTurn>,
    /// Whether the last turn repeats for ever.
    #[serde(default)]
    pub repeat_last: bool,
}

/// One turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedTurn {
    /// In order.
    pub events: Vec<ScriptedEvent>,
    /// Tokens to report.
    #[serde(default)]
    pub usage: TokenUsage,
    /// Why the turn ends.
    #[serde(default = "default_done")]
    pub done: DoneReason,
}

/// What happens next in a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptedEvent {
    /// Thinking text.
    Thinking(String),
    /// Content text.
    Text(String),
    /// A tool call.
    ToolCall(ModelToolCall),
    /// A pause in milliseconds.
    DelayMs(u64),
    /// The model fails.
    Error(String),
    /// Nothing more comes.
    Hang,
}

/// How many turns have begun, and how they ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Requests received.
    pub started: usize,
    /// Streams that ran to their end, an error included.
    pub completed: usize,
    /// Streams dropped before their end.
    pub dropped: usize,
}

/// A model that follows a script.
#[derive(Debug)]
pub struct ScriptedModel {
    script: Script,
    counts: watch::Sender<CallCounts>,
    requests: Mutex<Vec<ChatRequest>>,
}

/// Reads a script from a file.
pub async fn from_file(path: &Path) -> Result<ScriptedModel> {
    let text = tokio::fs::read_to_string(path)
        .await
        .map_err(|error| failed(format!("cannot read the script {}: {error}", path.display())))?;
    let script = serde_json::from_str(&text)
        .map_err(|error| failed(format!("the script {} is not valid: {error}", path.display())))?;
    Ok(ScriptedModel::new(script))
}

/// Reads a script from a JSON value.
pub fn from_value(script: Value) -> Result<ScriptedModel> {
    let script = serde_json::from_value(script).map_err(|error| failed(format!("the script is not valid: {error}")))?;
    Ok(ScriptedModel::new(script))
}

impl ScriptedModel {
    /// Creates a model that follows `script`.
    pub fn new(script: Script) -> Self {
        Self { script, counts: watch::Sender::new(CallCounts::default()), requests: Mutex::new(Vec::new()) }
    }

    /// Returns the turns so far, to be read or waited on: `model.calls().wait_for(|calls| calls.dropped == 1)`.
    pub fn calls(&self) -> watch::Receiver<CallCounts> {
        self.counts.subscribe()
    }

    /// Returns the latest requests, oldest first.
    pub fn requests(&self) -> Vec<ChatRequest> {
        self.requests.lock().clone()
    }

    fn turn_for(&self, messages: &[ChatMessage]) -> Result<ScriptedTurn> {
        let asked_at = messages
            .iter()
            .rposition(|message| message.role == ChatRole::User && !is_tool_result(message))
            .ok_or_else(|| failed("the script was asked nothing".to_owned()))?;
        let question = &messages[asked_at].content;
        let lowercase_question = question.to_lowercase();
        let run = self
            .script
            .runs
            .iter()
            .find(|run| run.when.as_ref().is_none_or(|when| lowercase_question.contains(&when.to_lowercase())))
            .ok_or_else(|| failed(format!("the script has no run for: {question}")))?;
        let turn = messages[asked_at..].iter().filter(|message| message.role == ChatRole::Assistant).count();
        let last = run.turns.last().filter(|_| run.repeat_last);
        run.turns
            .get(turn)
            .or(last)
            .cloned()
            .ok_or_else(|| failed(format!("the script has {} turns for: {question}", run.turns.len())))
    }

    fn remember(&self, request: ChatRequest) {
        let mut requests = self.requests.lock();
        if requests.len() == REQUESTS_KEPT {
            requests.remove(0);
        }
        requests.push(request);
    }
}

#[async_trait]
impl ModelProvider for ScriptedModel {
    fn model_id(&self) -> &str {
        &self.script.model
    }

    fn forces_calls(&self) -> bool {
        // A script says itself what is called.
        true
    }

    async fn capabilities(&self) -> Result<ModelCapabilities> {
        let host = "the script".to_owned();
        match self.script.unavailable {
            Some(Unavailable::Unreachable) => {
                Err(AgentError::ModelUnreachable { host, detail: "the script says so".to_owned() })
            }
            Some(Unavailable::NotFound) => Err(AgentError::ModelNotFound { model: self.script.model.clone(), host }),
            None => Ok(self.script.capabilities.clone()),
        }
    }

    async fn chat(&self, request: ChatRequest) -> Result<BoxStream<'static, Result<ModelEvent>>> {
        let turn = self.turn_for(&request.messages);
        self.remember(request);
        let turn = turn?;
        let mut call = RunningCall::start(self.counts.clone());
        let stream = async_stream::stream! {
            for event in turn.events {
                match event {
                    ScriptedEvent::Thinking(text) => yield Ok(ModelEvent::Thinking(text)),
                    ScriptedEvent::Text(text) => yield Ok(ModelEvent::Text(text)),
                    ScriptedEvent::ToolCall(tool_call) => yield Ok(ModelEvent::ToolCall(tool_call)),
                    ScriptedEvent::DelayMs(delay_ms) => tokio::time::sleep(Duration::from_millis(delay_ms)).await,
                    ScriptedEvent::Error(detail) => {
                        call.complete();
                        yield Err(failed(detail));
                        return;
                    }
                    ScriptedEvent::Hang => futures::future::pending::<()>().await,
                }
            }
            // A reader may stop at `Done` and never poll again, so the call counts as complete before it is given.
            call.complete();
            yield Ok(ModelEvent::Done { usage: turn.usage, reason: turn.done });
        };
        Ok(stream.boxed())
    }
}

/// Counts one turn as started, and as completed or dropped at its end.
struct RunningCall {
    counts: watch::Sender<CallCounts>,
    completed: bool,
}

impl RunningCall {
    fn start(counts: watch::Sender<CallCounts>) -> Self {
        counts.send_modify(|counts| counts.started += 1);
        Self { counts, completed: false }
    }

    fn complete(&mut self) {
        self.completed = true;
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        let completed = self.completed;
        self.counts.send_modify(|counts| if completed { counts.completed += 1 } else { counts.dropped += 1 });
    }
}

fn failed(detail: String) -> AgentError {
    AgentError::ModelFailed { detail }
}

fn default_model_id() -> String {
    "scripted".to_owned()
}

fn default_capabilities() -> ModelCapabilities {
    ModelCapabilities {
        tool_style: ToolStyle::Native,
        thinking: true,
        small: false,
        context_tokens: Some(8192),
        images: true,
    }
}

fn default_done() -> DoneReason {
    DoneReason::Stop
}
