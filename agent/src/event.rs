//! What a run emits. Protocol renderers are folds over this; the stored trace is made of the same events.

use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

/// Tokens and calls of a run so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Tool calls made.
    pub tool_calls: u32,
    /// Since the run began.
    pub elapsed_ms: u64,
    /// Prompt tokens, as the model reported them, summed over turns.
    pub input_tokens: u64,
    /// Generated tokens, as the model reported them, summed over turns.
    pub output_tokens: u64,
}

/// The ask protocol's five error codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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

/// One event of a run, in order: `RunStarted` first (unless the run could not begin), `RunFinished` last, always.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEvent {
    /// The run exists and is stored as `running`.
    RunStarted {
        /// The run.
        run_id: Uuid,
        /// The model's name.
        model: String,
        /// As asked, trimmed.
        question: String,
    },
    /// The model thinks. Emitted only when asked for.
    ThinkingDelta {
        /// A piece.
        text: String,
    },
    /// The model answers.
    AnswerDelta {
        /// A piece; the pieces together are the final answer's text.
        text: String,
    },
    /// The model calls a tool.
    ToolCall {
        /// Tool name.
        tool: String,
        /// The full arguments.
        args: Value,
        /// From 0.
        call_index: u32,
    },
    /// A tool returned. A failure is `{"error": {"code", "message", "hint"?}}`.
    ToolResult {
        /// Tool name.
        tool: String,
        /// As in its `ToolCall`.
        call_index: u32,
        /// The bounded JSON view.
        result: Value,
    },
    /// The whole answer; on success only.
    AnswerFinal {
        /// All answer pieces.
        text: String,
        /// The last `run_kql`.
        kql_used: Option<String>,
        /// The last `run_sql`.
        sql_used: Option<String>,
    },
    /// The run failed.
    RunError {
        /// One of five.
        code: RunErrorCode,
        /// What and what to do.
        message: String,
        /// Our own stable code.
        detail_code: &'static str,
    },
    /// The end, always.
    RunFinished {
        /// The run.
        run_id: Uuid,
        /// Final.
        usage: Usage,
    },
}
