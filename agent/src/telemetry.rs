//! The spans of a run, of its turns with a model and of its tools' calls, named as OpenTelemetry's conventions for generative
//! models say. They hold names, numbers and codes: no question, no answer, no arguments.
//!
//! Who collects them may say by [`propagate_traces`] how a request to a model's server names the span that it belongs to.

use std::sync::OnceLock;

use querent_engine::telemetry::TRACE_TARGET;
use tracing::Span;
use tracing::field::Empty;
use uuid::Uuid;

/// Returns the headers by which a request to another server continues the current trace.
pub type TraceHeaders = fn() -> Vec<(String, String)>;

static TRACE_HEADERS: OnceLock<TraceHeaders> = OnceLock::new();

/// Sets what requests to models' servers carry. The first call counts.
pub fn propagate_traces(headers: TraceHeaders) {
    TRACE_HEADERS.get_or_init(|| headers);
}

/// Returns the headers of a request to a model's server that belong to the current span; none where nobody collects spans.
pub(crate) fn trace_headers() -> Vec<(String, String)> {
    TRACE_HEADERS.get().map(|headers| headers()).unwrap_or_default()
}

/// Returns the span of a run.
pub(crate) fn run_span(run_id: Uuid, model: &str, protocol: &str, conversation: Option<&str>) -> Span {
    tracing::info_span!(
        target: TRACE_TARGET,
        "invoke_agent",
        "otel.name" = "invoke_agent querent",
        "gen_ai.operation.name" = "invoke_agent",
        "gen_ai.agent.name" = "querent",
        "gen_ai.request.model" = model,
        "gen_ai.conversation.id" = conversation,
        "querent.run_id" = %run_id,
        "querent.protocol" = protocol,
        "querent.run.status" = Empty,
        "error.type" = Empty,
        "otel.status_code" = Empty,
    )
}

/// Returns the span of one turn: a request to a model, until the last piece of its reply.
pub(crate) fn turn_span(provider: &str, model: &str, max_output_tokens: Option<u32>) -> Span {
    let span = tracing::info_span!(
        target: TRACE_TARGET,
        "chat",
        "otel.name" = Empty,
        "otel.kind" = "client",
        "gen_ai.operation.name" = "chat",
        "gen_ai.provider.name" = provider,
        "gen_ai.request.model" = model,
        "gen_ai.request.max_tokens" = max_output_tokens.map(i64::from),
        "gen_ai.usage.input_tokens" = Empty,
        "gen_ai.usage.output_tokens" = Empty,
        "gen_ai.response.finish_reasons" = Empty,
        "error.type" = Empty,
        "otel.status_code" = Empty,
    );
    if !span.is_disabled() {
        span.record("otel.name", format!("chat {model}"));
    }
    span
}

/// Returns the span of a tool's call.
pub(crate) fn tool_span(tool: &'static str, call_id: Option<&str>) -> Span {
    let span = tracing::info_span!(
        target: TRACE_TARGET,
        "execute_tool",
        "otel.name" = Empty,
        "gen_ai.operation.name" = "execute_tool",
        "gen_ai.tool.name" = tool,
        "gen_ai.tool.type" = "function",
        "gen_ai.tool.call.id" = call_id,
        "error.type" = Empty,
        "otel.status_code" = Empty,
    );
    if !span.is_disabled() {
        span.record("otel.name", format!("execute_tool {tool}"));
    }
    span
}

/// Records that the work of a span failed.
pub(crate) fn record_failure(span: &Span, code: &str) {
    span.record("error.type", code).record("otel.status_code", "ERROR");
}

/// Records the tokens of a turn and why it ended.
pub(crate) fn record_turn(span: &Span, input_tokens: u64, output_tokens: u64, reason: &'static str) {
    let number = |tokens| i64::try_from(tokens).unwrap_or(i64::MAX);
    span.record("gen_ai.usage.input_tokens", number(input_tokens))
        .record("gen_ai.usage.output_tokens", number(output_tokens))
        .record("gen_ai.response.finish_reasons", reason);
}
