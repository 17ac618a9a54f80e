//! Cube's chat: its requests, and a run's events as lines of JSON. A thread is a conversation; the lines of one reader
//! are the history of a later one, with the same ids and the same `sort`.
//!
//! `sort` grows along the whole thread: `RunStarted` of a run contains its first. A piece of text is a line with
//! `isDelta`; every message ends with one line of all its text.
//! Reference: <https://docs.cube.dev/reference/embed-apis/chat-api>.

mod render;
mod request;
mod state;
mod thread;
mod tools;

use serde::Serialize;
use serde_json::{Value, json};

pub use render::CubeRenderer;
pub use request::{CubeRequest, ExternalId, SessionSettings, abort_request, generate_session, session_token};
pub use thread::{CubeThread, LateReader, RunSnapshot};

use super::json_text;

/// The node of every message of the agent.
pub(super) const AGENT_NODE: &[&str] = &["cube_data_analyst_agent"];
/// The node of its tool calls.
pub(super) const TOOLS_NODE: &[&str] = &["cube_data_analyst_agent", "tools"];
/// The node of the answer.
pub(super) const FINAL_NODE: &[&str] = &["final"];
/// The id of the line between the history and new lines.
const CUTOFF: &str = "__cutoff__";
/// The id of the last line.
const STATE: &str = "__state__";

/// One line for a client.
#[derive(Debug, Clone, PartialEq)]
pub enum CubeOutput {
    /// A message, or the thread's state.
    Line(Box<CubeLine>),
    /// The run failed.
    Error(String),
}

/// A message, or a part of one.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CubeLine {
    pub(super) id: String,
    pub(super) role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thinking: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_call: Option<ToolCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) state: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) graph_path: Option<&'static [&'static str]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) is_structured_response: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) is_in_process: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) is_delta: Option<bool>,
    #[serde(serialize_with = "number")]
    pub(super) sort: f64,
}

/// A tool call: arguments and result are JSON text, and a pending call has no result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ToolCall {
    pub(super) name: String,
    pub(super) input: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<String>,
}

impl CubeOutput {
    /// Returns the line, its end included.
    pub fn to_text(&self) -> String {
        let mut text = match self {
            CubeOutput::Line(line) => json_text(line),
            CubeOutput::Error(message) => json!({ "error": message }).to_string(),
        };
        text.push('\n');
        text
    }

    /// Returns the line for a reader that sees no thinking; `None` where it contains nothing else.
    pub fn without_thinking(mut self) -> Option<Self> {
        if let CubeOutput::Line(line) = &mut self
            && line.thinking.as_ref().is_some_and(|text| !text.is_empty())
        {
            if line.is_delta == Some(true) && line.content.as_ref().is_none_or(String::is_empty) {
                return None;
            }
            line.thinking = Some(String::new());
        }
        Some(self)
    }
}

impl From<CubeLine> for CubeOutput {
    fn from(line: CubeLine) -> Self {
        Self::Line(Box::new(line))
    }
}

impl CubeLine {
    fn new(id: impl Into<String>, role: &'static str, sort: f64) -> Self {
        Self {
            id: id.into(),
            role,
            content: None,
            thinking: None,
            tool_call: None,
            state: None,
            graph_path: None,
            is_structured_response: None,
            is_in_process: None,
            is_delta: None,
            sort,
        }
    }

    /// Creates the mark between the history and new lines.
    pub fn cutoff(chat_id: &str, is_streaming: bool, omitted_runs: u64, sort: f64) -> Self {
        let mut state = json!({ "isStreaming": is_streaming, "chatId": chat_id });
        if omitted_runs > 0 {
            state["omittedRuns"] = json!(omitted_runs);
        }
        Self { state: Some(state), ..Self::new(CUTOFF, "assistant", sort) }
    }

    /// Creates the line with the thread as LangChain's messages.
    pub fn state(messages: &[Value], sort: f64) -> Self {
        let state = json!({ "messages": state::bounded(messages) });
        Self { state: Some(state), is_delta: Some(false), ..Self::new(STATE, "assistant", sort) }
    }

    fn is_marker(&self) -> bool {
        self.id == CUTOFF || self.id == STATE
    }
}

/// Writes `7`, not `7.0`: only a mark that is inserted for a later reader has a half.
fn number<S: serde::Serializer>(sort: &f64, to: S) -> Result<S::Ok, S::Error> {
    if sort.fract() == 0.0 { to.serialize_u64(*sort as u64) } else { to.serialize_f64(*sort) }
}
