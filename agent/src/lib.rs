//! Answers a question: a run of a language model over the engine's tools, as a stream of events.
//!
//! The agent is read-only whoever asks, and a run never has more rights than its caller.
//! [`RunEvent`] is the only thing it emits; each protocol is a pure fold from events to frames.

mod error;
mod event;
pub mod models;
pub mod protocols;

use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use querent_catalog::{Page, PageRequest, Principal, RunRecord};
use querent_engine::Engine;
use uuid::Uuid;

pub use error::{AgentError, Result};
pub use event::{RunErrorCode, RunEvent, Usage};

use models::ModelProvider;

/// How the agent works; fixed at start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentConfig {
    /// Wall clock of one run.
    pub run_timeout: Duration,
    /// Tool calls of one run; the next one ends it with `tool_loop`.
    pub max_tool_calls: u32,
    /// Rows of a tool result, when the model does not say.
    pub default_tool_rows: usize,
    /// Tokens of the first turn's prompt for a model with native tool calls.
    pub prompt_tokens: usize,
    /// Tokens of a tool result's text for a model with native tool calls.
    pub tool_result_tokens: usize,
    /// Runs at once.
    pub max_concurrent_runs: usize,
}

impl Default for AgentConfig {
    /// 60 s, 12 calls, 200 rows, 4,000 and 2,000 tokens, 16 runs.
    fn default() -> Self {
        Self {
            run_timeout: Duration::from_secs(60),
            max_tool_calls: 12,
            default_tool_rows: 200,
            prompt_tokens: 4_000,
            tool_result_tokens: 2_000,
            max_concurrent_runs: 16,
        }
    }
}

/// One question, from any protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskRequest {
    /// Trimmed, not empty.
    pub question: String,
    /// Where bare names resolve and what the prompt's schema part is taken from; `None`: all, with `default` for bare names.
    pub database: Option<String>,
    /// Whether thinking is emitted.
    pub include_thinking: bool,
}

/// The agent. Cheap to clone.
#[derive(Clone)]
pub struct Agent {}

/// Nothing here yet.
#[allow(unused_variables, missing_docs, clippy::todo, clippy::allow_attributes)]
impl Agent {
    pub fn new(engine: Engine, model: Arc<dyn ModelProvider>, config: AgentConfig) -> Self {
        todo!()
    }
    pub fn config(&self) -> &AgentConfig {
        todo!()
    }
    pub fn model(&self) -> &Arc<dyn ModelProvider> {
        todo!()
    }
    /// Starts a run. Errors only before the run exists: `too_many_runs` (429), `empty_question`, `database_not_found`. All later failures are events.
    pub async fn ask(&self, principal: &Principal, request: AskRequest) -> Result<Run> {
        todo!()
    }
    /// A stored or running run; owner and administrators only.
    pub async fn get_run(&self, who: &Principal, run_id: Uuid) -> Result<RunRecord> {
        todo!()
    }
    pub async fn list_runs(&self, who: &Principal, page: PageRequest) -> Result<Page<RunRecord>> {
        todo!()
    }
    /// Stops a running run; its stream still ends with `run_finished`. A finished run is left as it is. Returns the run's status afterwards.
    pub async fn cancel_run(&self, who: &Principal, run_id: Uuid) -> Result<RunRecord> {
        todo!()
    }
    /// Cancels every run and waits until their last events are persisted.
    pub async fn shutdown(&self) {
        todo!()
    }
    /// Runs now in progress.
    pub fn running(&self) -> usize {
        todo!()
    }
}

/// A started run. Dropping `events` before the end cancels the run: its model call and query stop, and it is stored as `cancelled`.
pub struct Run {
    /// UUIDv7.
    pub run_id: Uuid,
    /// Ends after [`RunEvent::RunFinished`], always.
    pub events: BoxStream<'static, RunEvent>,
}
