//! Tool calls: ours are executed, those that write wait for a person, the client's wait for the client.

use std::time::Instant;

use querent_catalog::{PendingCall, PendingKind, PendingState};
use serde_json::{Map, Value, json};

use super::super::{Failure, elapsed_ms};
use super::{Turns, raw_arguments};
use crate::event::{EventKind, RunErrorCode, ToolCallStarted, ToolResult, ToolStatus, WaitingCall};
use crate::models::ModelToolCall;
use crate::prompt::tokens::take_tokens;
use crate::tools::{self, ToolError, ToolOutput};

const ANSWER_NOW: &str = "\nYou have this result already. Answer the question with it now.";
/// Without these words a small model that has the right rows goes on to look at tables instead of answering.
const ANSWER_IF_DONE: &str = "\nIf this answers the question, answer now.";
/// A small model sends a failing call again as it was: it asks for a column that there is not, or for a change.
const FAILED_AGAIN: &str =
    "\nThis failed before in the same way. Send something else, or answer the user why it cannot be done.";

/// A call that waits, and the model's own id for it.
pub(super) struct Waiting {
    pub(super) call: WaitingCall,
    model_id: String,
}

impl Turns<'_> {
    /// One tool call: its events, and its result in the conversation, unless it waits.
    pub(super) async fn call(&mut self, call: ModelToolCall) -> Result<(), Failure> {
        let (call_index, allowed) = self.budget.begin_call();
        let calls = self.budget.calls();
        self.task.handle.update_totals(|totals| totals.usage.tool_calls = calls);
        let is_clients = self.task.request.client_tools.iter().any(|tool| tool.name == call.name);
        let writes = tools::writes(&call.name) && self.task.writer.is_some();
        let canned = self.task.request.canned_results.get(&call.name).filter(|_| is_clients);
        if allowed.is_ok() && canned.is_none() && (is_clients || (writes && self.task.request.can_approve)) {
            self.wait_for(call, !is_clients);
            return Ok(());
        }
        let call_id = self.call_id(&call);
        let started = self.started(&call, call_id, call_index, None);
        let model_id = call.id.unwrap_or_default();
        self.emit(EventKind::ToolCallStarted(Box::new(started.clone())));
        allowed.map_err(|exhausted| self.tool_loop(exhausted))?;
        let outcome = if let Some(canned) = canned {
            (Ok(ToolOutput::new(json!(canned), canned.clone())), 0)
        } else if writes {
            let refused = ToolError::new("approval_unavailable", format!("{} needs a person's approval", call.name))
                .with_hint("this client has no way to ask for it; tell the user so");
            (Err(refused), 0)
        } else {
            self.execute(&started).await
        };
        let failed = self.record_outcome(&started, &model_id, outcome, None);
        let recorded = self.budget.record(&started.tool, &started.args, failed);
        recorded.map_err(|exhausted| self.tool_loop(exhausted))?;
        self.nudge(&started.tool, failed);
        self.store_now_and_then().await;
        Ok(())
    }

    /// The id that everybody but the model knows the call by; the model's too for a client that keeps the conversation.
    fn call_id(&mut self, call: &ModelToolCall) -> String {
        match &call.id {
            Some(id) if self.task.request.returns_messages => id.clone(),
            _ => self.ids.next("call"),
        }
    }

    pub(super) fn started(
        &mut self,
        call: &ModelToolCall,
        call_id: String,
        call_index: u32,
        approval_request_id: Option<String>,
    ) -> ToolCallStarted {
        ToolCallStarted {
            call_id,
            item_id: self.ids.next("mcp"),
            call_index,
            tool: call.name.clone(),
            args: call.arguments.clone(),
            args_raw: raw_arguments(&call.arguments),
            description: describe(&call.name, &call.arguments),
            approval_request_id,
        }
    }

    pub(super) async fn execute(&mut self, call: &ToolCallStarted) -> (Result<ToolOutput, ToolError>, u64) {
        if call.tool == tools::RUN_SQL {
            self.sql_used = text_of(&call.args, tools::sql_argument).or(self.sql_used.take());
        } else if call.tool == tools::RUN_KQL {
            self.kql_used = text_of(&call.args, tools::kql_argument).or(self.kql_used.take());
        }
        let began = Instant::now();
        let outcome = tools::call(&self.context, &call.tool, &call.args).await;
        (outcome, elapsed_ms(began))
    }

    /// The result's event and message; whether the call failed.
    pub(super) fn record_outcome(
        &mut self,
        call: &ToolCallStarted,
        model_id: &str,
        (outcome, took_ms): (Result<ToolOutput, ToolError>, u64),
        status: Option<ToolStatus>,
    ) -> bool {
        let failed = outcome.is_err();
        let ToolOutput { json: result, text, truncation, chart } = outcome.unwrap_or_else(|error| {
            let text = error.to_text(&call.tool);
            ToolOutput::new(error.to_json(), take_tokens(&text, self.context.text_tokens))
        });
        let no_rows = result.get("row_count").and_then(Value::as_u64) == Some(0);
        let status = status.unwrap_or(match (failed, no_rows) {
            (true, _) => ToolStatus::Error,
            (false, true) => ToolStatus::NoData,
            (false, false) => ToolStatus::Success,
        });
        self.emit(EventKind::ToolResult(Box::new(ToolResult {
            call_id: call.call_id.clone(),
            item_id: call.item_id.clone(),
            call_index: call.call_index,
            tool: call.tool.clone(),
            status,
            result,
            text: text.clone(),
            truncation,
            chart,
            elapsed_ms: took_ms,
        })));
        self.conversation.push_tool_result(&call.tool, model_id, text);
        failed
    }

    /// What is said after a tool's result, to keep the model from turning in circles.
    fn nudge(&mut self, tool: &str, failed: bool) {
        let words = if self.budget.repeated_success() {
            ANSWER_NOW
        } else if self.budget.repeated_failure() {
            FAILED_AGAIN
        } else if self.capabilities.small && !failed && tool == tools::RUN_SQL {
            ANSWER_IF_DONE
        } else {
            return;
        };
        self.conversation.add_to_last(words);
    }

    fn wait_for(&mut self, call: ModelToolCall, approval: bool) {
        let ModelToolCall { id, name, arguments } = call;
        // A client that keeps the conversation names a call by one id, whatever it waits for.
        let (call_id, item_id) = match &id {
            Some(id) if self.task.request.returns_messages => (id.clone(), id.clone()),
            _ => (self.ids.next("call"), self.ids.next(if approval { "mcpr" } else { "fc" })),
        };
        let description = describe(&name, &arguments);
        let args_raw = raw_arguments(&arguments);
        let waiting = WaitingCall { item_id, call_id, name, args_raw, description, approval };
        self.emit(if approval {
            EventKind::ApprovalRequested(waiting.clone())
        } else {
            EventKind::ClientToolRequested(waiting.clone())
        });
        self.waiting.push(Waiting { call: waiting, model_id: id.unwrap_or_default() });
    }

    /// Durable when it returns.
    pub(super) async fn store_waiting(&self) -> Result<(), Failure> {
        let started = &self.task.started_event;
        let subject = self.task.session.principal().subject();
        let calls: Vec<PendingCall> = self
            .waiting
            .iter()
            .map(|Waiting { call: waiting, model_id }| PendingCall {
                call_id: if waiting.approval { waiting.item_id.clone() } else { waiting.call_id.clone() },
                kind: if waiting.approval { PendingKind::Approval } else { PendingKind::ClientTool },
                subject: subject.to_owned(),
                run_id: started.run_id,
                conversation: self.task.request.conversation.clone(),
                tool: waiting.name.clone(),
                arguments_json: waiting.args_raw.clone(),
                state: PendingState::Waiting,
                decided_at: None,
                decision_json: Some(json!({ "tool_call_id": model_id, "call_id": waiting.call_id }).to_string()),
                receipt_json: None,
            })
            .collect();
        let stored = self.task.catalog.insert_pending_calls(&calls).await;
        stored.map_err(|error| {
            Failure::new(querent_catalog::RunStatus::Error, RunErrorCode::Internal, error.to_string(), error.code())
        })
    }
}

/// One line of what a call does, for people.
fn describe(tool: &str, arguments: &Value) -> String {
    const SHOWN_CHARS: usize = 200;
    let arguments = match arguments {
        Value::Object(object) => object
            .values()
            .map(|value| tools::one_line(&raw_arguments(value), SHOWN_CHARS))
            .collect::<Vec<_>>()
            .join(", "),
        other => raw_arguments(other),
    };
    let line = format!("{tool}: {arguments}");
    if line.chars().count() <= SHOWN_CHARS {
        return line;
    }
    line.chars().take(SHOWN_CHARS - 1).chain(['…']).collect()
}

fn text_of(arguments: &Value, argument: fn(&Map<String, Value>) -> Option<String>) -> Option<String> {
    argument(&tools::arguments_object(arguments).ok()?)
}
