//! Turns events into HolmesGPT's frames, and into its whole answer. There are no pieces of text: the text before a call
//! is one message, and the answer is one frame at the end. Nothing follows it, not even `[DONE]`.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::history::{Waits, conversation_json};
use super::metadata::Metadata;
use super::{ApprovalSigner, arguments_of};
use crate::assessment::AnswerReading;
use crate::error::AgentError;
use crate::event::{
    ApprovalResolved, ClientToolResolved, CompactionFinished, EventKind, LlmCallFinished, RunErrorCode, RunEvent,
    SERVER_LABEL, TextPhase, ToolResult, ToolStatus, WaitingCall,
};
use crate::protocols::{Frame, Renderer};
use crate::sql_text::one_line;
use crate::tools::known_tool;

/// Share of the context, in percent, from which on a conversation is summarised.
const COMPACTION_PERCENT: u32 = 95;
const SCHEMA_VERSION: &str = "robusta:v1.0.0";
/// Appended to a text that the model saw only in part.
const TRUNCATED: &str = "\n[TRUNCATED]";
/// Characters of a row in the label of a choice.
const LABEL_CHARS: usize = 80;
const GENERIC_ERROR: u32 = 1;
const RATE_LIMITED: u32 = 5_204;

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolmesFailure {
    /// One of the ask protocol's five codes.
    pub code: RunErrorCode,
    /// What failed, and what to do.
    pub message: String,
    /// The server's own code.
    pub detail_code: String,
}

/// A call before its result.
#[derive(Debug, Clone, Default)]
struct Called {
    args_raw: String,
    description: String,
    reason: Option<String>,
}

/// Turns events into frames.
pub struct HolmesRenderer {
    signer: Box<dyn ApprovalSigner>,
    metadata: Metadata,
    follow_ups: Value,
    reasoning: Vec<String>,
    said: Option<String>,
    called: HashMap<String, Called>,
    /// Calls that wait, with their tokens.
    waiting: Vec<(WaitingCall, Option<String>)>,
    max_tokens: usize,
    has_replied: bool,
    results_are_new: bool,
    conversation: Vec<Value>,
    tool_calls: Vec<Value>,
    analysis: Option<String>,
    failure: Option<HolmesFailure>,
}

impl HolmesRenderer {
    /// Creates a renderer that lets `signer` sign the calls that wait for a person.
    pub fn new(signer: Box<dyn ApprovalSigner>) -> Self {
        Self {
            signer,
            metadata: Metadata::default(),
            follow_ups: json!([]),
            reasoning: Vec::new(),
            said: None,
            called: HashMap::new(),
            waiting: Vec::new(),
            max_tokens: 0,
            has_replied: false,
            results_are_new: false,
            conversation: Vec::new(),
            tool_calls: Vec::new(),
            analysis: None,
            failure: None,
        }
    }

    /// Returns why the run failed, if it did.
    pub fn failure(&self) -> Option<&HolmesFailure> {
        self.failure.as_ref()
    }

    /// Returns the whole answer, once the run has ended.
    pub fn whole(&self) -> Value {
        let approvals = self.pending_approvals();
        json!({
            // A text, also where the run only waits.
            "analysis": self.analysis.as_deref().unwrap_or_default(),
            "conversation_history": self.conversation,
            "tool_calls": self.tool_calls,
            "follow_up_actions": self.follow_ups,
            "pending_approvals": if approvals.is_empty() { Value::Null } else { json!(approvals) },
            "metadata": self.metadata.to_json(),
        })
    }

    fn token_count(&self) -> Frame {
        Frame::named("token_count", &json!({ "metadata": self.metadata.to_json() }))
    }

    fn pending_approvals(&self) -> Vec<Value> {
        let approvals = self.waiting.iter().filter(|(call, _)| call.approval);
        let shown = approvals.map(|(call, _)| {
            json!({
                "tool_call_id": call.call_id,
                "tool_name": call.name,
                "description": call.description,
                "params": arguments_of(&call.args_raw),
            })
        });
        shown.collect()
    }

    fn pause(&mut self) -> Vec<Frame> {
        let mut frames = self.approval_results();
        let client_calls = self.waiting.iter().filter(|(call, _)| !call.approval);
        let frontend: Vec<Value> = client_calls
            .map(|(call, _)| {
                json!({
                    "tool_call_id": call.call_id,
                    "tool_name": call.name,
                    "arguments": arguments_of(&call.args_raw),
                })
            })
            .collect();
        let paused = json!({
            "analysis": null,
            "content": null,
            "conversation_history": self.conversation,
            "follow_up_actions": self.follow_ups,
            "requires_approval": true,
            "pending_approvals": self.pending_approvals(),
            "pending_frontend_tool_calls": frontend,
        });
        frames.extend([self.token_count(), Frame::named("approval_required", &paused)]);
        frames
    }

    /// Returns the text before the calls, then the calls, all before the first result.
    fn before_calls(&mut self, calls: &[crate::event::WantedCall]) -> Vec<Frame> {
        let (content, reasoning) = (self.said.take(), std::mem::take(&mut self.reasoning));
        if calls.is_empty() {
            return Vec::new();
        }
        let mut frames = Vec::new();
        if content.is_some() || !reasoning.is_empty() {
            let reasoning = (!reasoning.is_empty()).then(|| reasoning.join("\n\n"));
            let message = json!({ "content": content, "reasoning": reasoning, "metadata": self.metadata.to_json() });
            frames.push(Frame::named("ai_message", &message));
        }
        frames.extend(
            calls
                .iter()
                .map(|call| Frame::named("start_tool_calling", &json!({ "tool_name": call.name, "id": call.call_id }))),
        );
        frames
    }

    /// Adds a tool's result to the whole answer. Returns its frame.
    fn result(&mut self, id: &str, name: &str, description: &str, toolset: &str, result: Value) -> Frame {
        self.results_are_new = true;
        let size = result["data"].as_str().map_or(0, str::len);
        self.tool_calls.push(json!({
            "tool_call_id": id,
            "tool_name": name,
            "description": description,
            "result": result,
            "size": size,
            "toolset_name": toolset,
        }));
        let frame = json!({
            "tool_call_id": id,
            "role": "tool",
            "description": description,
            "name": name,
            "tool_name": name,
            "toolset_name": toolset,
            "result": result,
        });
        Frame::named("tool_calling_result", &frame)
    }

    fn returned(&mut self, returned: &ToolResult) -> Frame {
        self.metadata.tool_returned(returned);
        let called = self.called.get(&returned.call_id).cloned().unwrap_or_default();
        let (status, error, data) = match returned.status {
            ToolStatus::Success | ToolStatus::NoData => {
                let mark = if returned.truncation.is_some() { TRUNCATED } else { "" };
                ("success", None, Some(format!("{}{mark}", returned.text)))
            }
            ToolStatus::Error => ("error", Some(error_of(&returned.result)), None),
            ToolStatus::Denied => {
                let feedback = called.reason.iter().map(|reason| format!(" User feedback: {reason}"));
                ("error", Some(format!("Tool execution was denied by the user.{}", feedback.collect::<String>())), None)
            }
            ToolStatus::Cancelled => {
                let why =
                    "The tool call was cancelled because the user submitted a new request without deciding on it.";
                ("error", Some(why.to_owned()), None)
            }
        };
        let elapsed = json!(returned.elapsed_ms as f64 / 1_000.0);
        let result = result_json(status, error, data, &called, elapsed);
        let toolset = if known_tool(&returned.tool).is_some() { SERVER_LABEL } else { "frontend" };
        self.result(&returned.call_id, &returned.tool, &called.description, toolset, result)
    }

    fn waits(&mut self, event: &RunEvent, call: &WaitingCall) {
        let token = call.approval.then(|| self.signer.sign(call, event.at));
        self.waiting.push((call.clone(), token));
    }

    /// Returns the results of the calls that wait for a person: after those of the other calls.
    fn approval_results(&mut self) -> Vec<Frame> {
        let calls: Vec<WaitingCall> =
            self.waiting.iter().filter(|(call, _)| call.approval).map(|(call, _)| call.clone()).collect();
        let result = |call: WaitingCall| {
            let called = Called { args_raw: call.args_raw, description: call.description, reason: None };
            let result = result_json("approval_required", None, None, &called, Value::Null);
            self.result(&call.call_id, &call.name, &called.description, SERVER_LABEL, result)
        };
        calls.into_iter().map(result).collect()
    }

    fn client_answered(&mut self, id: &str, name: &str, args_raw: &str, result: &str, missing: bool) -> Frame {
        let description = format!("Frontend tool: {name}");
        let called = Called { args_raw: args_raw.to_owned(), description: description.clone(), reason: None };
        let result = if missing {
            let why = format!("No result for the frontend tool '{name}' was provided.");
            result_json("error", Some(why), None, &called, Value::Null)
        } else {
            result_json("success", None, Some(result.to_owned()), &called, Value::Null)
        };
        self.result(id, name, &description, "frontend", result)
    }

    fn failed(&mut self, failure: HolmesFailure) -> Frame {
        let code = if failure.detail_code == AgentError::MODEL_RATE_LIMITED { RATE_LIMITED } else { GENERIC_ERROR };
        let message = if code == RATE_LIMITED { "Rate limit exceeded" } else { failure.message.as_str() };
        let error = json!({
            "description": failure.message,
            "error_code": code,
            "msg": message,
            "success": false,
        });
        self.failure = Some(failure);
        Frame::named("error", &error)
    }

    fn compacted(&mut self, compaction: &CompactionFinished) -> Vec<Frame> {
        let CompactionFinished {
            initial_tokens: before,
            compacted_tokens: after,
            messages_before,
            messages_after,
            summary,
            messages,
            usage,
            cost,
        } = compaction;
        self.metadata.compacted(*usage, *cost);
        let said = format!("The conversation history has been compacted from {before} to {after} tokens");
        let saved = before.saturating_sub(*after) as f64 * 100.0 / (*before).max(1) as f64;
        let compacted = json!({
            "content": said,
            "compaction_summary": format!("<analysis>\n{}\n</analysis>", summary.trim()),
            "messages": conversation_json(messages, |_| None),
            "metadata": {
                "initial_tokens": before,
                "compacted_tokens": after,
                "compression_ratio_pct": (saved * 10.0).round() / 10.0,
                "num_messages_before": messages_before,
                "num_messages_after": messages_after,
                "max_context_size": self.max_tokens,
                "threshold_pct": COMPACTION_PERCENT,
                "compaction_cost": {
                    "total_cost": cost.unwrap_or_default(),
                    "prompt_tokens": usage.input_tokens,
                    "completion_tokens": usage.output_tokens,
                    "total_tokens": usage.input_tokens + usage.output_tokens,
                },
            },
        });
        let metadata = self.metadata.after_compaction(*after, self.max_tokens);
        vec![
            Frame::named("conversation_history_compacted", &compacted),
            Frame::named("ai_message", &json!({ "content": said, "reasoning": null, "metadata": metadata })),
            Frame::named("token_count", &json!({ "metadata": metadata })),
        ]
    }

    fn answered(&mut self, text: &str) -> Frame {
        self.analysis = Some(text.to_owned());
        let answer = json!({
            "analysis": text,
            "conversation_history": self.conversation,
            "follow_up_actions": self.follow_ups,
            "metadata": self.metadata.to_json(),
        });
        Frame::named("ai_answer_end", &answer)
    }
}

impl Renderer for HolmesRenderer {
    fn frame(&mut self, event: &RunEvent) -> Vec<Frame> {
        match &event.kind {
            EventKind::RunStarted(started) => {
                self.metadata.run_id = started.run_id.to_string();
                if started.request["first"] == true {
                    self.follow_ups = follow_ups();
                }
                Vec::new()
            }
            EventKind::CompactionStarted { tokens, max_tokens, messages_before, window, max_output_tokens, .. } => {
                self.max_tokens = *max_tokens;
                self.metadata.bounded(*window, *max_output_tokens);
                let words = format!("Compacting conversation history ({tokens} tokens, {messages_before} messages)...");
                let begun = json!({
                    "content": words,
                    "metadata": {
                        "initial_tokens": tokens,
                        "num_messages": messages_before,
                        "max_context_size": max_tokens,
                        "threshold_pct": COMPACTION_PERCENT,
                    },
                });
                vec![Frame::named("conversation_history_compaction_start", &begun)]
            }
            EventKind::CompactionFinished(finished) => self.compacted(finished),
            EventKind::LlmCallStarted { .. } => {
                let counts = std::mem::take(&mut self.results_are_new) && self.has_replied;
                if counts { vec![self.token_count()] } else { Vec::new() }
            }
            EventKind::ThinkingDone { text, .. } => {
                self.reasoning.push(text.clone());
                Vec::new()
            }
            EventKind::TextDone { text, phase: TextPhase::Commentary, .. } => {
                self.said = Some(text.clone());
                Vec::new()
            }
            EventKind::LlmCallFinished(reply) => {
                let LlmCallFinished { usage, cut, context, max_output_tokens, calls, cost, .. } = reply.as_ref();
                self.has_replied = true;
                let reason = match (calls.is_empty(), cut) {
                    (false, _) => "tool_calls",
                    (true, true) => "length",
                    (true, false) => "stop",
                };
                self.metadata.model_replied(*usage, *cost, *context, *max_output_tokens, reason);
                let mut frames = vec![self.token_count()];
                frames.extend(self.before_calls(calls));
                frames
            }
            EventKind::ToolCallStarted(call) => {
                let known = self.called.entry(call.call_id.clone()).or_default();
                known.args_raw.clone_from(&call.args_raw);
                known.description.clone_from(&call.description);
                Vec::new()
            }
            EventKind::ToolResult(result) => vec![self.returned(result)],
            EventKind::ApprovalRequested(call) | EventKind::ClientToolRequested(call) => {
                self.waits(event, call);
                Vec::new()
            }
            EventKind::ApprovalResolved(resolved) => {
                let ApprovalResolved { call_id, args_raw, description, reason, .. } = resolved.as_ref();
                let called =
                    Called { args_raw: args_raw.clone(), description: description.clone(), reason: reason.clone() };
                self.called.insert(call_id.clone(), called);
                Vec::new()
            }
            EventKind::ClientToolResolved(resolved) => {
                let ClientToolResolved { call_id, name, args_raw, result, missing } = resolved.as_ref();
                vec![self.client_answered(call_id, name, args_raw, result, *missing)]
            }
            EventKind::Conversation { messages } => {
                let waiting = &self.waiting;
                self.conversation = conversation_json(messages, |id| {
                    let (call, token) = waiting.iter().find(|(call, _)| call.call_id == id)?;
                    Some(if call.approval { Waits::Approval(token.clone()) } else { Waits::Frontend })
                });
                Vec::new()
            }
            EventKind::AnswerFinal(answer) => {
                self.metadata.assessment = answer.assessment.to_json();
                if answer.assessment.asks_back {
                    self.follow_ups = choices(&answer.assessment.readings);
                }
                vec![self.answered(&answer.text)]
            }
            EventKind::Paused { .. } => self.pause(),
            EventKind::RunError { code, message, detail_code } => {
                let (message, detail_code) = (message.clone(), detail_code.clone());
                vec![self.failed(HolmesFailure { code: *code, message, detail_code })]
            }
            EventKind::ThinkingStarted { .. }
            | EventKind::ThinkingDelta { .. }
            | EventKind::TextStarted { .. }
            | EventKind::TextDelta { .. }
            | EventKind::TextDone { phase: TextPhase::FinalAnswer, .. }
            | EventKind::RunFinished { .. } => Vec::new(),
        }
    }
}

fn result_json(
    status: &str,
    error: Option<String>,
    data: Option<String>,
    called: &Called,
    elapsed_seconds: Value,
) -> Value {
    json!({
        "schema_version": SCHEMA_VERSION,
        "status": status,
        "error": error,
        "return_code": null,
        "data": data,
        "images": null,
        "url": null,
        "invocation": called.description,
        "params": arguments_of(&called.args_raw),
        "icon_url": null,
        "elapsed_seconds": elapsed_seconds,
    })
}

/// Returns the message of a failure, and its hint.
fn error_of(result: &Value) -> String {
    let error = &result["error"];
    let message = error["message"].as_str().unwrap_or("the tool failed");
    match error["hint"].as_str() {
        Some(hint) => format!("{message}\n{hint}"),
        None => message.to_owned(),
    }
}

/// Returns the readings of a question to choose from.
fn choices(readings: &[AnswerReading]) -> Value {
    let choice = |(index, reading): (usize, &AnswerReading)| {
        let number = index + 1;
        json!({
            "id": format!("reading_{number}"),
            "action_label": format!("Reading {number}: {}", one_line(&reading.first_row.to_string(), LABEL_CHARS)),
            "pre_action_notification_text": "Running the query of this reading...",
            "prompt": format!("Reading {number}"),
        })
    };
    readings.iter().enumerate().map(choice).collect()
}

/// Returns what a user may ask next; offered once in a conversation.
fn follow_ups() -> Value {
    json!([
        {
            "id": "logs",
            "action_label": "Logs",
            "pre_action_notification_text": "Looking for the rows behind the answer...",
            "prompt": "Show me the log lines or rows that the answer rests on",
        },
        {
            "id": "graphs",
            "action_label": "Graphs",
            "pre_action_notification_text": "Getting figures to plot...",
            "prompt": "Show me the figures behind the answer as a table that can be plotted",
        },
        {
            "id": "articles",
            "action_label": "Articles",
            "pre_action_notification_text": "Looking for verified queries...",
            "prompt": "List the verified queries and metrics that fit this question, each with a short summary",
        },
    ])
}
