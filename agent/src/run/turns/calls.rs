//! Tool calls: the server's are executed, those that write wait for a person, the client's wait for the client.

use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt;
use futures::stream::FuturesOrdered;
use querent_catalog::{DEFAULT_DATABASE, PendingCall, PendingKind, PendingState};
use querent_proof::Prover;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tracing::Instrument;

use super::request::is_allowed;
use super::{SucceededQuery, Turns, raw_arguments};
use crate::answer::StructuredAnswer;
use crate::budget::Exhausted;
use crate::confidence::ResultEvidence;
use crate::event::{EventKind, ResultTicket, RunErrorCode, ToolCallStarted, ToolResult, ToolStatus, WaitingCall};
use crate::models::{ModelToolCall, ToolChoice, ToolSpec};
use crate::request::AnswerSchema;
use crate::run::{FailureCause, RunHandle, elapsed_ms};
use crate::sql_text::one_line;
use crate::telemetry;
use crate::tokens::take_tokens;
use crate::tools::{self, ToolContext, ToolError, ToolOutput};

/// Calls of one reply that run at the same time.
const MAX_CONCURRENT_CALLS: usize = 4;
/// Before the names of the server's tools, where the client has tools of the same names.
const NAMESPACE: &str = "querent_";
const ANSWER_NOW: &str = "\nYou have this result already. Answer the question with it now.";
/// Without these words a small model that has the right rows explores tables instead of answering.
const ANSWER_IF_DONE: &str = "\nIf this answers the question, answer now.";
/// A small model repeats a failing call unchanged: one that names a column that does not exist, or one that writes.
const FAILED_AGAIN: &str =
    "\nThis failed before in the same way. Send something else, or answer the user why it cannot be done.";

/// A call that waits, with the model's own id.
pub(super) struct WaitingToolCall {
    pub(super) call: WaitingCall,
    model_id: String,
}

/// A call of the server's tools that is announced and not yet answered.
struct OwnCall {
    started: ToolCallStarted,
    /// The tool as the model calls it.
    model_name: String,
    /// The model's own id of the call.
    model_id: String,
    /// The result of a call that is not executed: a client's tool whose result is known beforehand, or a tool that
    /// writes where nobody can be asked for approval.
    known: Option<Result<ToolOutput, ToolError>>,
}

pub(super) type CallOutcome = (Result<ToolOutput, ToolError>, u64);

/// What the run goes on with after a result was emitted.
struct ReportedResult {
    failed: bool,
    /// For the model.
    text: String,
    ticket: Option<ResultTicket>,
    /// The query that ran in place of the one sent.
    ran: Option<String>,
    /// Whether the query had failed before, and was not run again.
    is_repeated: bool,
    /// What the result says of its query; `None` where it failed.
    evidence: Option<ResultEvidence>,
}

impl Turns<'_> {
    /// Makes the calls of one reply: announces all, then executes the server's concurrently, since they only read.
    /// Results are reported in the order of the calls, so that the same run emits the same events again.
    pub(super) async fn call_all(&mut self, calls: Vec<ModelToolCall>) -> Result<(), FailureCause> {
        let mut own = Vec::new();
        let mut exhausted = None;
        for call in calls {
            match self.begin_call(call) {
                Ok(begun) => own.extend(begun),
                Err(reason) => {
                    exhausted = Some(reason);
                    break;
                }
            }
        }
        if !own.is_empty() {
            // What a call does to the process is known afterwards to have been that call.
            self.store().await?;
        }
        let context = &self.context;
        let text_tokens = context.text_tokens;
        let permits = Semaphore::new(MAX_CONCURRENT_CALLS);
        let mut outcomes: FuturesOrdered<_> = own.iter().map(|call| outcome_of(context, &permits, call)).collect();
        let mut reported = Vec::with_capacity(own.len());
        let (mut voted, mut plainly, mut database) = (false, false, None);
        for call in &own {
            let Some(mut outcome) = outcomes.next().await else { continue };
            if own.len() == 1 && call.known.is_none() && self.votes_on(&call.started, &outcome) {
                voted = true;
                outcome = self.vote(&call.started, outcome).await;
            }
            if own.len() == 1 && call.known.is_none() && self.asks_plainly(&call.started, &outcome) {
                plainly = true;
                (outcome, database) = self.ask_plainly(outcome).await;
            }
            let (handle, prover) = (&self.task.handle, Arc::make_mut(&mut self.prover));
            reported.push((call, report(handle, prover, text_tokens, &call.started, outcome, None)));
        }
        drop(outcomes);
        self.has_voted |= voted;
        self.has_asked_plainly |= plainly;
        if let Some(database) = database {
            self.assessment.sql_database = Some(database).filter(|name| name != DEFAULT_DATABASE);
        }
        for (OwnCall { started, model_name, model_id, .. }, reported) in reported {
            let failed = self.take_in(started, model_name, model_id, reported);
            let recorded = self.budget.record(&started.tool, &started.args, failed);
            recorded.map_err(|exhausted| self.tool_loop(exhausted))?;
            self.nudge(&started.tool, failed);
        }
        if let Some(exhausted) = exhausted {
            return Err(self.tool_loop(exhausted));
        }
        self.store_now_and_then().await
    }

    /// Announces a call of a tool of the server whose result is known, and reports the result.
    pub(super) fn call_with_result(
        &mut self,
        call: ModelToolCall,
        output: ToolOutput,
        took_ms: u64,
    ) -> Result<(), FailureCause> {
        let begun = self.begin_call(call).map_err(|exhausted| self.tool_loop(exhausted))?;
        let Some(OwnCall { started, model_id, .. }) = begun else { return Ok(()) };
        let failed = self.record_outcome(&started, &model_id, (Ok(output), took_ms), None);
        let recorded = self.budget.record(&started.tool, &started.args, failed);
        recorded.map_err(|exhausted| self.tool_loop(exhausted))
    }

    /// Announces a call. Returns `None` for one that waits. Errors: it is one too many.
    fn begin_call(&mut self, mut call: ModelToolCall) -> Result<Option<OwnCall>, Exhausted> {
        let (call_index, allowed) = self.budget.begin_call();
        let calls = self.budget.calls();
        self.task.handle.update_totals(|totals| totals.usage.tool_calls = calls);
        let is_clients = self.task.request.client_tools.iter().any(|tool| tool.name == call.name);
        let model_name = call.name.clone();
        if !is_clients {
            own_name(&model_name, &self.task.request.client_tools).clone_into(&mut call.name);
        }
        // A model may call what it was not offered: none of it is made, and the client is not told to make it.
        let no_calls = self.task.request.tool_choice == ToolChoice::None;
        let may_use = !no_calls && (is_clients || is_allowed(&self.task.request, &call.name));
        let writes = may_use && !is_clients && tools::writes(&call.name) && self.task.writer.is_some();
        let canned = self.task.request.canned_results.get(&call.name).filter(|_| is_clients).cloned();
        // The client is promised an object; the model may try again.
        let read = (is_clients && canned.is_none()).then(|| tools::arguments_object(&call.arguments));
        let fault = match read {
            Some(Ok(object)) => {
                call.arguments = Value::Object(object);
                self.misfit(&call)
            }
            Some(Err(_)) => Some("the arguments are not a JSON object".to_owned()),
            None => None,
        };
        if allowed.is_ok()
            && canned.is_none()
            && fault.is_none()
            && may_use
            && (is_clients || (writes && self.task.request.can_approve))
        {
            self.wait_for(call, !is_clients);
            return Ok(None);
        }
        let call_id = self.call_id(&call);
        let started = self.started(&call, call_id, call_index, None);
        self.emit(EventKind::ToolCallStarted(Box::new(started.clone())));
        allowed?;
        if !is_clients && may_use {
            self.note_query(&started);
        }
        let known = if no_calls {
            let refused = ToolError::refusal("tool_not_allowed", "this request allows no calls of tools");
            Some(Err(refused.with_hint("answer without them")))
        } else if let Some(canned) = canned {
            Some(Ok(ToolOutput::new(json!(canned), canned)))
        } else if let Some(fault) = fault {
            Some(Err(ToolError::refusal("invalid_arguments", fault).with_hint("call it again with one JSON object")))
        } else if !is_clients && !self.task.request.client_tools.is_empty() && tools::known_tool(&call.name).is_none() {
            let names: Vec<String> = self.specs.iter().map(|spec| format!("`{}`", spec.name)).collect();
            let refused = ToolError::new("unknown_tool", format!("unknown tool `{}`", one_line(&call.name, 100)));
            Some(Err(refused.with_hint(format!("the tools are {}", names.join(", ")))))
        } else if !may_use {
            let refused = ToolError::refusal("tool_not_allowed", format!("this request does not allow {}", call.name));
            Some(Err(refused.with_hint("use the tools that it allows, or answer without them")))
        } else if writes {
            let refused =
                ToolError::refusal("approval_unavailable", format!("{} needs a person's approval", call.name));
            Some(Err(refused.with_hint("this client has no way to ask for it; tell the user so")))
        } else {
            None
        };
        Ok(Some(OwnCall { started, model_name, model_id: call.id.unwrap_or_default(), known }))
    }

    /// Returns what of a client's call does not fit the schema of its arguments, the first time in a run: what the
    /// model sends then is the client's to judge. A schema that leaves members open, which no `strict` tool's does,
    /// holds nothing.
    fn misfit(&mut self, call: &ModelToolCall) -> Option<String> {
        let tool = self.task.request.client_tools.iter().find(|tool| tool.name == call.name)?;
        if tool.parameters["additionalProperties"] != Value::Bool(false) || !self.budget.may_correct() {
            return None;
        }
        let schema = AnswerSchema { name: tool.name.clone(), schema: tool.parameters.clone() };
        let problem = StructuredAnswer::new(&schema).ok()?.misfit(&call.arguments)?;
        self.budget.note_correction();
        Some(format!("the arguments do not fit their schema: {problem}"))
    }

    /// Returns the id of the call for everybody but the model; it is the model's own for a client that keeps the
    /// conversation.
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

    pub(super) async fn execute(&mut self, call: &ToolCallStarted) -> CallOutcome {
        self.note_query(call);
        timed(&self.context, call).await
    }

    /// Remembers the latest query of each language, which is reported with the answer.
    fn note_query(&mut self, call: &ToolCallStarted) {
        if call.tool == tools::RUN_SQL {
            self.sql_used = query_text(&call.args, tools::sql_argument).or(self.sql_used.take());
            let named = call.args["database"].as_str().map(str::to_owned);
            let database = named.unwrap_or_else(|| self.task.session.database().to_owned());
            self.assessment.sql_database = Some(database).filter(|name| name != DEFAULT_DATABASE);
        } else if call.tool == tools::RUN_KQL {
            self.kql_used = query_text(&call.args, tools::kql_argument).or(self.kql_used.take());
        }
    }

    /// Emits the result and adds its message. Returns whether the call failed.
    pub(super) fn record_outcome(
        &mut self,
        call: &ToolCallStarted,
        model_id: &str,
        outcome: CallOutcome,
        status: Option<ToolStatus>,
    ) -> bool {
        let text_tokens = self.context.text_tokens;
        let reported = report(&self.task.handle, Arc::make_mut(&mut self.prover), text_tokens, call, outcome, status);
        self.take_in(call, &call.tool, model_id, reported)
    }

    /// Adds the message of a result, and remembers the ticket of the latest query. Returns whether the call failed.
    fn take_in(&mut self, call: &ToolCallStarted, model_name: &str, model_id: &str, reported: ReportedResult) -> bool {
        let tool = call.tool.as_str();
        let ReportedResult { failed, text, ticket, ran, is_repeated, evidence } = reported;
        match (tools::answers(tool), evidence) {
            (true, Some(evidence)) => self.evidence.result = Some(evidence),
            (true, None) => self.evidence.failed_queries += 1,
            (false, _) => {}
        }
        self.conversation.push_tool_result(model_name, model_id, text);
        self.variation = match (failed, is_repeated) {
            (false, _) => 0,
            (true, true) => self.variation + 1,
            (true, false) => self.variation,
        };
        if tool == tools::RUN_SQL {
            self.note_outcome(call, failed, ran);
        }
        if !failed && tools::answers(tool) {
            self.answer_ticket = ticket;
        }
        failed
    }

    /// Remembers the SQL query that succeeded: where a later one fails, the answer rests on the one before.
    fn note_outcome(&mut self, call: &ToolCallStarted, failed: bool, ran: Option<String>) {
        match (failed, &self.succeeded) {
            (false, _) => {
                self.sql_used = ran.or_else(|| query_text(&call.args, tools::sql_argument)).or(self.sql_used.take());
                let database = self.assessment.sql_database.clone();
                self.succeeded = self.sql_used.clone().map(|sql| SucceededQuery { sql, database });
            }
            (true, Some(SucceededQuery { sql, database })) => {
                self.sql_used = Some(sql.clone());
                self.assessment.sql_database.clone_from(database);
            }
            (true, None) => {}
        }
    }

    /// Adds words to a tool's result that keep the model from repeating itself.
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
            EventKind::ApprovalRequested(Box::new(waiting.clone()))
        } else {
            EventKind::ClientToolRequested(Box::new(waiting.clone()))
        });
        self.waiting.push(WaitingToolCall { call: waiting, model_id: id.unwrap_or_default() });
    }

    /// Stores the waiting calls; they are durable when this returns.
    pub(super) async fn store_waiting(&self) -> Result<(), FailureCause> {
        let started = &self.task.started_event;
        let subject = self.task.session.principal().subject();
        let calls: Vec<PendingCall> = self
            .waiting
            .iter()
            .map(|WaitingToolCall { call: waiting, model_id }| PendingCall {
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
        let stored = self.task.catalog.pending_calls().insert(&calls).await;
        stored.map_err(|error| {
            FailureCause::new(
                querent_catalog::RunStatus::Error,
                RunErrorCode::Internal,
                error.to_string(),
                error.code(),
            )
        })
    }
}

/// Emits the result, and adds it to what the answer is proven by.
fn report(
    handle: &RunHandle,
    prover: &mut Prover,
    text_tokens: usize,
    call: &ToolCallStarted,
    (outcome, took_ms): CallOutcome,
    status: Option<ToolStatus>,
) -> ReportedResult {
    let failed = outcome.is_err();
    let ToolOutput { json: result, text, truncation, chart, ticket, ran } = outcome.unwrap_or_else(|error| {
        let text = error.to_text(&call.tool);
        ToolOutput::new(error.to_json(), take_tokens(&text, text_tokens))
    });
    if !failed {
        let query = ran.clone().or_else(|| query_of(call));
        prover.add_result(call.call_index, query.as_deref(), &result);
    }
    let evidence = (!failed).then(|| ResultEvidence::of_result(&result));
    let is_repeated = result["error"]["code"] == tools::REPEATED_QUERY;
    let no_rows = result.get("row_count").and_then(Value::as_u64) == Some(0);
    let status = status.unwrap_or(match (failed, no_rows) {
        (true, _) => ToolStatus::Error,
        (false, true) => ToolStatus::NoData,
        (false, false) => ToolStatus::Success,
    });
    handle.emit(EventKind::ToolResult(Box::new(ToolResult {
        call_id: call.call_id.clone(),
        item_id: call.item_id.clone(),
        call_index: call.call_index,
        tool: call.tool.clone(),
        status,
        result,
        text: text.clone(),
        truncation,
        chart,
        ticket: ticket.clone(),
        elapsed_ms: took_ms,
    })));
    ReportedResult { failed, text, ticket, ran, is_repeated, evidence }
}

async fn outcome_of(context: &ToolContext, permits: &Semaphore, call: &OwnCall) -> CallOutcome {
    if let Some(known) = &call.known {
        return (known.clone(), 0);
    }
    let _permit = permits.acquire().await;
    timed(context, &call.started).await
}

/// Returns the name of a tool of the server for the model: another one where the client has a tool of that name.
pub(super) fn model_name(name: &str, client_tools: &[ToolSpec]) -> String {
    match client_tools.iter().any(|tool| tool.name == name) {
        true => format!("{NAMESPACE}{name}"),
        false => name.to_owned(),
    }
}

/// Returns the server's name of a tool that the model calls `name`.
pub(super) fn own_name<'a>(name: &'a str, client_tools: &[ToolSpec]) -> &'a str {
    let within = name.strip_prefix(NAMESPACE);
    within.filter(|own| client_tools.iter().any(|tool| tool.name == *own)).unwrap_or(name)
}

/// Executes a call. Returns its outcome and how long it took.
async fn timed(context: &ToolContext, call: &ToolCallStarted) -> CallOutcome {
    let began = Instant::now();
    // A model may call tools that do not exist.
    let span = telemetry::tool_span(tools::known_tool(&call.tool).unwrap_or("unknown"), Some(&call.call_id));
    let outcome = tools::call(context, &call.tool, &call.args).instrument(span.clone()).await;
    if let Err(error) = &outcome {
        telemetry::record_failure(&span, &error.code);
    }
    (outcome, elapsed_ms(began))
}

/// Describes a call in one line, for people.
fn describe(tool: &str, arguments: &Value) -> String {
    const SHOWN_CHARS: usize = 200;
    let arguments = match arguments {
        Value::Object(object) => {
            object.values().map(|value| one_line(&raw_arguments(value), SHOWN_CHARS)).collect::<Vec<_>>().join(", ")
        }
        other => raw_arguments(other),
    };
    let line = format!("{tool}: {arguments}");
    if line.chars().count() <= SHOWN_CHARS {
        return line;
    }
    line.chars().take(SHOWN_CHARS - 1).chain(['…']).collect()
}

/// Returns the text of the query that a call runs.
fn query_of(call: &ToolCallStarted) -> Option<String> {
    query_text(&call.args, tools::sql_argument).or_else(|| query_text(&call.args, tools::kql_argument))
}

fn query_text(arguments: &Value, argument: fn(&Map<String, Value>) -> Option<String>) -> Option<String> {
    argument(&tools::arguments_object(arguments).ok()?)
}
