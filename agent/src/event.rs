//! What a run emits, which is all that leaves it. Events are numbered without gaps and carry every id and time, so that
//! a protocol's renderer is a pure fold and a stored log renders to the same bytes again.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use querent_proof::ProofLink;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::assessment::AnswerAssessment;
use crate::history::{calls_cost, words_cost};
use crate::models::{ChatMessage, TokenUsage};

/// The `server_label` of the server's tools in protocols that have one.
pub const SERVER_LABEL: &str = "querent";

/// The `detail_code` of a run that its user cancelled.
pub(crate) const CANCELLED_CODE: &str = "cancelled";
/// The `detail_code` of a run that ended with its process.
pub(crate) const RESTARTED_CODE: &str = "server_restarted";

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

impl RunEvent {
    /// Whether this says that the run ended with its server. Readers may have had more of it than is stored before this.
    pub fn ended_with_server(&self) -> bool {
        matches!(&self.kind, EventKind::RunError { detail_code, .. } if detail_code == RESTARTED_CODE)
    }
}

/// What a run has used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tool calls made.
    pub tool_calls: u32,
    /// Milliseconds since the run began.
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
    /// Returns the code on the wire.
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
    /// A message, also one beside or instead of a decision.
    New,
    /// Nothing but a decision on a call that waited for one, or a client's result.
    Resume,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// Answered.
    Success,
    /// Waiting for a decision or a client's result; another run continues from here.
    Paused,
    /// Failed.
    Error,
    /// Out of time or tool calls.
    BudgetExceeded,
    /// Stopped.
    Cancelled,
}

/// What a message of the model is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextPhase {
    /// Text before tool calls.
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
    /// It failed; the run continues.
    Error,
    /// A person denied it.
    Denied,
    /// Nobody decided.
    Cancelled,
}

/// A call that a run waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitingCall {
    /// The item that shows it: an approval request, or the call's item.
    pub item_id: String,
    /// The call.
    pub call_id: String,
    /// Tool name.
    pub name: String,
    /// The arguments as the model wrote them.
    pub args_raw: String,
    /// What the call does, in one line.
    #[serde(default)]
    pub description: String,
    /// Whether it waits for a person's approval; otherwise for the client, which executes it.
    pub approval: bool,
}

/// The content of the first event: everything a renderer must know of the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// The run.
    pub run_id: Uuid,
    /// The model's name.
    pub model: String,
    /// The question, trimmed.
    pub question: String,
    /// The protocol of the request.
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
    /// What started it.
    pub trigger: Trigger,
    /// Number of earlier messages.
    pub history_len: usize,
    /// What the protocol repeats from its request.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub request: Value,
    /// The items of the request, where the protocol has items.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub input: Value,
}

impl RunStarted {
    /// Of a run that could not begin, of whose request its log says nothing.
    pub(crate) fn unknown(run_id: Uuid) -> Self {
        Self {
            run_id,
            model: String::new(),
            question: String::new(),
            protocol: String::new(),
            conversation: None,
            previous_run_id: None,
            invocation_id: None,
            trigger: Trigger::New,
            history_len: 0,
            request: Value::Null,
            input: Value::Null,
        }
    }
}

/// The start of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCallStarted {
    /// Unique among all runs.
    pub call_id: String,
    /// The item that shows it.
    pub item_id: String,
    /// From 0.
    pub call_index: u32,
    /// Tool name.
    pub tool: String,
    /// Parsed.
    pub args: Value,
    /// The arguments as the model wrote them.
    pub args_raw: String,
    /// What the call does, in one line.
    pub description: String,
    /// The request that a person approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_request_id: Option<String>,
}

/// The end of a tool call.
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
    /// The bounded JSON view; of a failure `{"error": {"code", "message", "hint"?}}`.
    pub result: Value,
    /// What the model reads.
    pub text: String,
    /// Where `text` was cut, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncation: Option<Truncation>,
    /// A Vega-Lite specification without its data, where the result is worth plotting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart: Option<Value>,
    /// Of a query's rows, where they are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<ResultTicket>,
    /// How long it took.
    pub elapsed_ms: u64,
}

/// What names the rows of a query, so that they can be fetched over Flight without running it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultTicket {
    /// As a client sends it.
    pub text: String,
    /// Whether the query has more rows than those that are kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// A call that the model asks for, before it is executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedCall {
    /// As in the events that follow.
    pub call_id: String,
    /// Tool name.
    pub name: String,
}

/// Where a tool's text was cut for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truncation {
    /// Characters that were kept.
    pub end_index: usize,
    /// Estimated tokens of the whole text.
    pub original_tokens: usize,
}

/// How earlier messages were summarised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompactionFinished {
    /// Estimated tokens before.
    pub initial_tokens: usize,
    /// Estimated tokens after.
    pub compacted_tokens: usize,
    /// Messages before.
    pub messages_before: usize,
    /// Messages after.
    pub messages_after: usize,
    /// The summary that replaces them.
    pub summary: String,
    /// All messages as they are now, the system message included, for a client that keeps them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<ChatMessage>,
    /// Tokens of the request that wrote the summary.
    pub usage: TokenUsage,
    /// In the model's currency, where prices are set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// The end of a request to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LlmCallFinished {
    /// As in its start.
    pub iteration: u32,
    /// Its tokens.
    pub usage: TokenUsage,
    /// Whether the reply was cut at the model's limit.
    pub cut: bool,
    /// Estimated tokens of the messages by role.
    pub context: ContextTokens,
    /// Tokens that the reply could have taken.
    #[serde(default)]
    pub max_output_tokens: u32,
    /// The calls that follow, for a client that keeps the conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<WantedCall>,
    /// In the model's currency, where prices are set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// A person's decision on a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalResolved {
    /// The request's id.
    pub request_id: String,
    /// The call.
    pub call_id: String,
    /// Tool name.
    #[serde(default)]
    pub name: String,
    /// The arguments as the model wrote them.
    #[serde(default)]
    pub args_raw: String,
    /// What the call does, in one line.
    #[serde(default)]
    pub description: String,
    /// Whether it was approved.
    pub approved: bool,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What the client returned of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientToolResolved {
    /// The call.
    pub call_id: String,
    /// Tool name.
    pub name: String,
    /// The arguments as the model wrote them.
    #[serde(default)]
    pub args_raw: String,
    /// What it returned, or what the model reads where nothing was returned.
    pub result: String,
    /// Whether nothing was returned.
    #[serde(default)]
    pub missing: bool,
}

/// The whole answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerFinal {
    /// Its item.
    pub item_id: String,
    /// Its text, without the text before calls.
    pub text: String,
    /// Whether it is JSON of the requested schema.
    pub structured: bool,
    /// Whether the reply was cut at the model's limit.
    pub cut: bool,
    /// Whether a filter of the model's server ended it, or the model refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub filtered: bool,
    /// The last `run_kql`.
    pub kql_used: Option<String>,
    /// The last `run_sql`.
    pub sql_used: Option<String>,
    /// Of the last query that succeeded, where its rows are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<ResultTicket>,
    /// What the numbers, dates and names of its text are proven by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proof: Vec<ProofLink>,
    /// What it rests on, and how far it is to be trusted.
    #[serde(flatten)]
    pub assessment: AnswerAssessment,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFinished {
    /// The run.
    pub run_id: Uuid,
    /// How.
    pub outcome: RunOutcome,
    /// Final.
    pub usage: Usage,
    /// Tokens of the last request to the model.
    pub last_usage: TokenUsage,
    /// Number of requests to the model.
    pub llm_calls: u32,
    /// Of all requests, where prices are set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// What happened. Small, since an answer is thousands of pieces, all of which a log holds: what is large is boxed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
pub enum EventKind {
    /// The run exists and is stored as `running`. First, unless the run could not begin.
    RunStarted(Box<RunStarted>),
    /// Earlier messages filled the model's context and are being summarised.
    CompactionStarted {
        /// Estimated tokens of all messages.
        tokens: usize,
        /// Tokens that the messages may take.
        max_tokens: usize,
        /// Messages to be summarised.
        messages: usize,
        /// All messages.
        #[serde(default)]
        messages_before: usize,
        /// The model's whole context, as in [`ContextTokens::window`].
        #[serde(default)]
        window: usize,
        /// Tokens that the following reply may take.
        #[serde(default)]
        max_output_tokens: u32,
    },
    /// Earlier messages were summarised.
    CompactionFinished(Box<CompactionFinished>),
    /// A request to the model begins.
    LlmCallStarted {
        /// From 0.
        iteration: u32,
    },
    /// A request to the model ended.
    LlmCallFinished(Box<LlmCallFinished>),
    /// The model begins to think. Emitted, like all thinking, only on request.
    ThinkingStarted {
        /// The item.
        item_id: String,
    },
    /// A piece of its thinking.
    ThinkingDelta {
        /// The item.
        item_id: Arc<str>,
        /// A piece.
        text: String,
    },
    /// The end of its thinking.
    ThinkingDone {
        /// The item.
        item_id: String,
        /// All pieces.
        text: String,
    },
    /// The model begins a message.
    TextStarted {
        /// The item.
        item_id: String,
    },
    /// A piece of the message. Text before a tool call is passed on as it is generated, before it is known that a call
    /// follows.
    TextDelta {
        /// The item.
        item_id: Arc<str>,
        /// A piece.
        text: String,
    },
    /// The end of the message.
    TextDone {
        /// The item.
        item_id: String,
        /// All pieces.
        text: String,
        /// What the message is.
        phase: TextPhase,
    },
    /// A tool of the server is called.
    ToolCallStarted(Box<ToolCallStarted>),
    /// A tool of the server returned.
    ToolResult(Box<ToolResult>),
    /// A call waits for a person's approval.
    ApprovalRequested(Box<WaitingCall>),
    /// A person decided on a call.
    ApprovalResolved(Box<ApprovalResolved>),
    /// A call waits for the client to execute it.
    ClientToolRequested(Box<WaitingCall>),
    /// The client executed a call.
    ClientToolResolved(Box<ClientToolResolved>),
    /// All messages, the system message included, for a client that keeps them: right before the answer or the pause.
    Conversation {
        /// In order.
        messages: Vec<ChatMessage>,
    },
    /// The whole answer; on success only.
    AnswerFinal(Box<AnswerFinal>),
    /// The run waits for these calls and ends; another run continues.
    Paused {
        /// All of them.
        waiting: Vec<WaitingCall>,
    },
    /// The run failed.
    RunError {
        /// One of the ask protocol's five codes.
        code: RunErrorCode,
        /// What failed, and what to do.
        message: String,
        /// The server's own stable code.
        detail_code: String,
    },
    /// The end, always.
    RunFinished(Box<RunFinished>),
}

/// A piece of text has 40 bytes beside its letters.
const _: () = assert!(size_of::<RunEvent>() <= 96, "an event of a log is small");

/// Estimated tokens of a request to the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextTokens {
    /// The system message.
    pub system: usize,
    /// The messages of the asker.
    pub user: usize,
    /// The text of the model.
    pub assistant: usize,
    /// The calls of the model.
    #[serde(default)]
    pub calls: usize,
    /// The results of tools.
    pub tool: usize,
    /// The descriptions of tools.
    pub tools: usize,
    /// What all messages may take.
    pub max: usize,
    /// The model's whole context: `max`, the tools' descriptions and the reply.
    #[serde(default)]
    pub window: usize,
}

impl ContextTokens {
    /// Estimates the tokens of these messages by role.
    pub(crate) fn from_messages(messages: &[ChatMessage]) -> Self {
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
