//! What a run emits: the only thing that leaves it. A run's events are numbered without gaps and carry every id and
//! time, so that a protocol's renderer is a pure fold and a stored log renders to the same bytes again.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::history::{calls_cost, words_cost};
use crate::models::{ChatMessage, TokenUsage};

/// The `server_label` of our tools wherever a protocol names one.
pub const SERVER_LABEL: &str = "querent";

/// One event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEvent {
    /// From 0, without gaps.
    pub seq: u64,
    /// When, to the millisecond.
    #[serde(with = "chrono::serde::ts_milliseconds")]
    pub at: DateTime<Utc>,
    /// What.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// Tokens and calls of a run so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tool calls made.
    pub tool_calls: u32,
    /// Since the run began.
    pub elapsed_ms: u64,
    /// Summed over the run's requests to its model.
    #[serde(flatten)]
    pub tokens: TokenUsage,
}

/// The ask protocol's five error codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunErrorCode {
    /// Out of time.
    Timeout,
    /// Too many tool calls, or the same failing call again and again.
    ToolLoop,
    /// The model failed.
    RunnerError,
    /// The run could not begin.
    InitError,
    /// A bug, or the run was cancelled.
    Internal,
}

impl RunErrorCode {
    /// The code on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            RunErrorCode::Timeout => "timeout",
            RunErrorCode::ToolLoop => "tool_loop",
            RunErrorCode::RunnerError => "runner_error",
            RunErrorCode::InitError => "init_error",
            RunErrorCode::Internal => "internal",
        }
    }
}

/// What began a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// A message.
    New,
    /// A decision on a call that waited for one, or a client's result.
    Resume,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// Answered.
    Success,
    /// Waits for a decision or a client's result; another run goes on from here.
    Paused,
    /// Failed.
    Error,
    /// Out of time or tool calls.
    BudgetExceeded,
    /// Stopped.
    Cancelled,
}

/// What a message of the model turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextPhase {
    /// Said before calling tools.
    Commentary,
    /// The answer.
    FinalAnswer,
}

/// How a tool call went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// With a result.
    Success,
    /// With a result that has no rows.
    NoData,
    /// It failed; the run goes on.
    Error,
    /// A person said no.
    Denied,
    /// Nobody decided.
    Cancelled,
}

/// A call that a run waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitingCall {
    /// Of the item that shows it: an approval request's id, or the call's item.
    pub item_id: String,
    /// The call.
    pub call_id: String,
    /// Tool name.
    pub name: String,
    /// As the model wrote them.
    pub args_raw: String,
    /// What it does, in one line.
    #[serde(default)]
    pub description: String,
    /// Whether a person must approve it; otherwise the client executes it.
    pub approval: bool,
}

/// The first event's content: all that a renderer must know of the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// The run.
    pub run_id: Uuid,
    /// The model's name.
    pub model: String,
    /// As asked, trimmed.
    pub question: String,
    /// Which protocol asked.
    pub protocol: String,
    /// The conversation's id, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The run that it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_run_id: Option<Uuid>,
    /// The caller's own id for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invocation_id: Option<String>,
    /// What began it.
    pub trigger: Trigger,
    /// Messages that came before.
    pub history_len: usize,
    /// What the protocol repeats from its request.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub request: Value,
    /// The items that it was asked with, where the protocol has items.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub input: Value,
}

/// A tool call as it begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCallStarted {
    /// Unique among all runs.
    pub call_id: String,
    /// Of the item that shows it.
    pub item_id: String,
    /// From 0.
    pub call_index: u32,
    /// Tool name.
    pub tool: String,
    /// Parsed.
    pub args: Value,
    /// As the model wrote them.
    pub args_raw: String,
    /// In one line.
    pub description: String,
    /// The request that a person approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_request_id: Option<String>,
}

/// A tool call as it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// As in its start.
    pub call_id: String,
    /// As in its start.
    pub item_id: String,
    /// As in its start.
    pub call_index: u32,
    /// Tool name.
    pub tool: String,
    /// How it went.
    pub status: ToolStatus,
    /// The bounded JSON view; a failure is `{"error": {"code", "message", "hint"?}}`.
    pub result: Value,
    /// What the model reads.
    pub text: String,
    /// Where `text` was cut, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncation: Option<Truncation>,
    /// A Vega-Lite specification of the result, without its data, where it is worth plotting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart: Option<Value>,
    /// How long it took.
    pub elapsed_ms: u64,
}

/// A call that the model wants, before anything came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedCall {
    /// As in the events that follow.
    pub call_id: String,
    /// Tool name.
    pub name: String,
}

/// How much of a tool's text the model does not get to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truncation {
    /// Characters that were kept.
    pub end_index: usize,
    /// Estimated tokens of the whole text.
    pub original_tokens: usize,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
pub enum EventKind {
    /// The run exists and is stored as `running`. First, unless the run could not begin.
    RunStarted(Box<RunStarted>),
    /// Earlier messages are being summed up: they filled the model's context.
    CompactionStarted {
        /// Estimated, of all messages.
        tokens: usize,
        /// What the messages may take.
        max_tokens: usize,
        /// Messages that will be summed up.
        messages: usize,
        /// All messages.
        #[serde(default)]
        messages_before: usize,
        /// The model's whole context, as in [`ContextTokens::window`].
        #[serde(default)]
        window: usize,
        /// What the reply that follows may take.
        #[serde(default)]
        max_output_tokens: u32,
    },
    /// They were.
    CompactionFinished {
        /// Before, estimated.
        initial_tokens: usize,
        /// After, estimated.
        compacted_tokens: usize,
        /// Before.
        messages_before: usize,
        /// After.
        messages_after: usize,
        /// What stands in their place.
        summary: String,
        /// All messages as they are now, the system's included, for a client that keeps them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        messages: Vec<ChatMessage>,
        /// Of the request that wrote the summary.
        usage: TokenUsage,
        /// In the model's currency, where prices are set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
    },
    /// A request to the model begins.
    LlmCallStarted {
        /// From 0.
        iteration: u32,
    },
    /// It ended.
    LlmCallFinished {
        /// As in its start.
        iteration: u32,
        /// Its tokens.
        usage: TokenUsage,
        /// Whether it was cut at the model's limit.
        cut: bool,
        /// Estimated tokens of the messages by role.
        context: ContextTokens,
        /// What the reply could have taken.
        #[serde(default)]
        max_output_tokens: u32,
        /// The calls that follow, for a client that keeps the conversation.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<WantedCall>,
        /// In the model's currency, where prices are set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
    },
    /// The model begins to think. Emitted, as all thinking, only when asked for.
    ThinkingStarted {
        /// Of the item.
        item_id: String,
    },
    /// It thinks.
    ThinkingDelta {
        /// Of the item.
        item_id: Arc<str>,
        /// A piece.
        text: String,
    },
    /// It has thought.
    ThinkingDone {
        /// Of the item.
        item_id: String,
        /// All pieces.
        text: String,
    },
    /// The model begins to speak.
    TextStarted {
        /// Of the item.
        item_id: String,
    },
    /// It speaks. What it says before a tool call is passed on as it is generated, before anybody can know that a
    /// call follows.
    TextDelta {
        /// Of the item.
        item_id: Arc<str>,
        /// A piece.
        text: String,
    },
    /// It has spoken.
    TextDone {
        /// Of the item.
        item_id: String,
        /// All pieces.
        text: String,
        /// What it was.
        phase: TextPhase,
    },
    /// A tool of ours is called.
    ToolCallStarted(Box<ToolCallStarted>),
    /// It returned.
    ToolResult(Box<ToolResult>),
    /// A call waits for a person.
    ApprovalRequested(WaitingCall),
    /// A person decided.
    ApprovalResolved {
        /// The request's id.
        request_id: String,
        /// The call.
        call_id: String,
        /// Tool name.
        #[serde(default)]
        name: String,
        /// As the model wrote them.
        #[serde(default)]
        args_raw: String,
        /// What it does, in one line.
        #[serde(default)]
        description: String,
        /// Yes or no.
        approved: bool,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A call waits for the client to execute it.
    ClientToolRequested(WaitingCall),
    /// It did.
    ClientToolResolved {
        /// The call.
        call_id: String,
        /// Tool name.
        name: String,
        /// As the model wrote them.
        #[serde(default)]
        args_raw: String,
        /// What came back; where nothing did, what the model is told instead.
        result: String,
        /// Whether nothing came back.
        #[serde(default)]
        missing: bool,
    },
    /// All messages, the system's included, for a client that keeps them: right before the answer or the pause.
    Conversation {
        /// In order.
        messages: Vec<ChatMessage>,
    },
    /// The whole answer; on success only.
    AnswerFinal {
        /// Of its item.
        item_id: String,
        /// Its text, without what was said before calls.
        text: String,
        /// Whether it is JSON of the asked-for schema.
        structured: bool,
        /// Whether it was cut at the model's limit.
        cut: bool,
        /// The last `run_kql`.
        kql_used: Option<String>,
        /// The last `run_sql`.
        sql_used: Option<String>,
    },
    /// The run waits for these calls and ends; another goes on.
    Paused {
        /// All of them.
        waiting: Vec<WaitingCall>,
    },
    /// The run failed.
    RunError {
        /// One of five.
        code: RunErrorCode,
        /// What and what to do.
        message: String,
        /// Our own stable code.
        detail_code: String,
    },
    /// The end, always.
    RunFinished {
        /// The run.
        run_id: Uuid,
        /// How.
        outcome: RunOutcome,
        /// Final.
        usage: Usage,
        /// Of the last request to the model.
        last_usage: TokenUsage,
        /// Requests to the model.
        llm_calls: u32,
        /// Summed, where prices are set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
    },
}

/// Estimated tokens of a request to the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextTokens {
    /// Instructions.
    pub system: usize,
    /// The asker's messages.
    pub user: usize,
    /// The model's own words.
    pub assistant: usize,
    /// The model's calls.
    #[serde(default)]
    pub calls: usize,
    /// Tools' results.
    pub tool: usize,
    /// The tools' descriptions.
    pub tools: usize,
    /// What all may take.
    pub max: usize,
    /// The model's whole context: `max`, the tools' descriptions and the reply.
    #[serde(default)]
    pub window: usize,
}

impl ContextTokens {
    /// Of these messages.
    pub(crate) fn of(messages: &[ChatMessage]) -> Self {
        use crate::models::ChatRole;
        let mut tokens = Self::default();
        for message in messages {
            tokens.calls += calls_cost(message);
            let part = match message.role {
                ChatRole::System => &mut tokens.system,
                ChatRole::User => &mut tokens.user,
                ChatRole::Assistant => &mut tokens.assistant,
                ChatRole::Tool => &mut tokens.tool,
            };
            *part += words_cost(message);
        }
        tokens
    }
}
