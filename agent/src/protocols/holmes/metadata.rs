//! The `metadata` of this protocol's events: what the run has used, and which results the model saw only in part, and how to
//! fetch the rows of its queries.

use serde_json::{Value, json};

use crate::event::{ContextTokens, ToolResult};
use crate::models::TokenUsage;
use crate::protocols::{add_assessment, add_ticket};

/// The metadata so far.
#[derive(Debug, Default)]
pub(super) struct Metadata {
    pub(super) run_id: String,
    last: TokenUsage,
    total: TokenUsage,
    cost: f64,
    most_prompt: u64,
    most_completion: u64,
    context: ContextTokens,
    max_output_tokens: u32,
    finish_reason: Option<&'static str>,
    compactions: u32,
    truncations: Vec<Value>,
    tickets: Vec<Value>,
    /// What the answer rests on, and how far it is to be trusted.
    pub(super) assessment: Option<Value>,
}

impl Metadata {
    /// Adds a request to the model that has ended.
    pub(super) fn model_replied(
        &mut self,
        usage: TokenUsage,
        cost: Option<f64>,
        context: ContextTokens,
        max_output_tokens: u32,
        finish_reason: &'static str,
    ) {
        self.spent(usage, cost);
        self.last = usage;
        self.context = context;
        self.max_output_tokens = max_output_tokens;
        self.finish_reason = Some(finish_reason);
        self.most_prompt = self.most_prompt.max(usage.input_tokens);
        self.most_completion = self.most_completion.max(usage.output_tokens);
    }

    /// Sets the limits of the context and the reply, before the first request to the model.
    pub(super) fn bounded(&mut self, window: usize, max_output_tokens: u32) {
        self.context.window = window;
        self.max_output_tokens = max_output_tokens;
    }

    /// Adds a compaction of earlier messages.
    pub(super) fn compacted(&mut self, usage: TokenUsage, cost: Option<f64>) {
        self.spent(usage, cost);
        self.compactions += 1;
    }

    fn spent(&mut self, usage: TokenUsage, cost: Option<f64>) {
        self.total += usage;
        self.cost += cost.unwrap_or_default();
    }

    /// Adds the result of a tool.
    pub(super) fn tool_returned(&mut self, result: &ToolResult) {
        if let Some(ticket) = &result.ticket {
            let mut of_call = json!({ "tool_call_id": result.call_id, "tool_name": result.tool });
            add_ticket(&mut of_call, Some(ticket));
            self.tickets.push(of_call);
        }
        if let Some(truncation) = result.truncation {
            self.truncations.push(json!({
                "tool_call_id": result.call_id,
                "start_index": 0,
                "end_index": truncation.end_index,
                "tool_name": result.tool,
                "original_token_count": truncation.original_tokens,
            }));
        }
    }

    /// Returns the metadata as shown to clients.
    pub(super) fn to_json(&self) -> Value {
        let context = &self.context;
        let total_tokens =
            context.tools + context.system + context.user + context.calls + context.assistant + context.tool;
        let mut metadata = json!({
            "usage": {
                "prompt_tokens": self.last.input_tokens,
                "completion_tokens": self.last.output_tokens,
                "total_tokens": self.last.input_tokens + self.last.output_tokens,
                "cached_tokens": self.last.cached_tokens,
                "reasoning_tokens": self.last.reasoning_tokens,
            },
            "tokens": {
                "total_tokens": total_tokens,
                "tools_tokens": context.tools,
                "system_tokens": context.system,
                "user_tokens": context.user,
                "tools_to_call_tokens": context.calls,
                "assistant_tokens": context.assistant,
                "other_tokens": context.tool,
            },
            "max_tokens": context.window,
            "max_output_tokens": self.max_output_tokens,
            "costs": {
                "total_cost": self.cost,
                "total_tokens": self.total.input_tokens + self.total.output_tokens,
                "prompt_tokens": self.total.input_tokens,
                "completion_tokens": self.total.output_tokens,
                "cached_tokens": self.total.cached_tokens,
                "cache_creation_tokens": self.total.cache_write_tokens,
                "reasoning_tokens": self.total.reasoning_tokens,
                "max_completion_tokens_per_call": self.most_completion,
                "max_prompt_tokens_per_call": self.most_prompt,
                "num_compactions": self.compactions,
            },
            "request_id": self.run_id,
        });
        if !self.truncations.is_empty() {
            metadata["truncations"] = json!(self.truncations);
        }
        if !self.tickets.is_empty() {
            metadata["tickets"] = json!(self.tickets);
        }
        add_assessment(&mut metadata, self.assessment.as_ref());
        if let Some(reason) = self.finish_reason {
            metadata["finish_reason"] = json!(reason);
        }
        metadata
    }

    /// Returns the metadata after a compaction, before the next request to the model: as [`Metadata::to_json`], with
    /// the counted `tokens`.
    pub(super) fn after_compaction(&self, tokens: usize, max_tokens: usize) -> Value {
        let mut metadata = self.to_json();
        metadata["tokens"]["total_tokens"] = json!(tokens);
        if self.context.window == 0 {
            metadata["max_tokens"] = json!(max_tokens);
        }
        metadata
    }
}
