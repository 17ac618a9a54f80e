//! What a run emits. Protocol renderers are folds over this; the stored trace is made of the same events, in the
//! ask protocol's own shape: [`RunEvent::name`] and [`RunEvent::data`].

use serde::Serialize;
use serde_json::{Value, json};
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
    /// The model answers. What it says before a tool call is part of the answer too: pieces are passed on as they
    /// are generated, before anybody can know that a call follows. A turn's text begins a new paragraph.
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

impl RunEvent {
    /// The event's name in the ask protocol and in the stored trace.
    pub fn name(&self) -> &'static str {
        match self {
            RunEvent::RunStarted { .. } => "run_started",
            RunEvent::ThinkingDelta { .. } => "thinking_delta",
            RunEvent::AnswerDelta { .. } => "answer_delta",
            RunEvent::ToolCall { .. } => "tool_call",
            RunEvent::ToolResult { .. } => "tool_result",
            RunEvent::AnswerFinal { .. } => "answer_final",
            RunEvent::RunError { .. } => "run_error",
            RunEvent::RunFinished { .. } => "run_finished",
        }
    }

    /// The event's payload in the ask protocol and in the stored trace.
    pub fn data(&self) -> Value {
        match self {
            RunEvent::RunStarted { run_id, model, question } => {
                json!({ "run_id": run_id, "model": model, "question": question })
            }
            RunEvent::ThinkingDelta { text } | RunEvent::AnswerDelta { text } => json!({ "text": text }),
            RunEvent::ToolCall { tool, args, call_index } => {
                json!({ "tool": tool, "args": args, "call_index": call_index })
            }
            RunEvent::ToolResult { tool, call_index, result } => {
                json!({ "tool": tool, "call_index": call_index, "result": result })
            }
            RunEvent::AnswerFinal { text, kql_used, sql_used } => {
                json!({ "text": text, "kql_used": kql_used, "sql_used": sql_used })
            }
            RunEvent::RunError { code, message, detail_code } => {
                json!({ "code": code.as_str(), "message": message, "detail_code": detail_code })
            }
            RunEvent::RunFinished { run_id, usage } => json!({
                "run_id": run_id,
                "usage": { "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens },
                "elapsed_ms": usage.elapsed_ms,
                "tool_calls": usage.tool_calls,
            }),
        }
    }
}
