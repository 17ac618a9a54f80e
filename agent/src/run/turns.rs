//! The exchange with the model, turn by turn: its text, its calls, and their results.

mod calls;
mod checked_text;
mod choice;
mod compaction;
mod earlier;
mod gaps;
mod opening;
mod plain_form;
mod readings;
mod request;
mod resume;
mod settled;
mod speech;
mod stored;
mod verified;
mod voting;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use querent_catalog::RunStatus;
use querent_proof::Prover;
use serde_json::{Value, json};
use tokio_util::sync::DropGuard;

use self::calls::WaitingToolCall;
use self::checked_text::CheckedText;
use self::earlier::{EarlierResult, add_earlier};
use self::gaps::GapSearch;
use self::opening::{FirstMessages, first_messages};
use self::readings::TwinSearch;
use self::speech::{ItemIds, Speech};
use self::stored::STORE_EVERY;
use super::{FailureCause, RunTask};
use crate::answer::StructuredAnswer;
use crate::assessment::AnswerAssessment;
use crate::budget::{Exhausted, ToolBudget};
use crate::confidence::AnswerEvidence;
use crate::error::AgentError;
use crate::event::{
    AnswerFinal, ContextTokens, EventKind, LlmCallFinished, ResultTicket, RunErrorCode, TextPhase, WantedCall,
};
use crate::history::ChatHistory;
use crate::models::actions::ToolCalling;
use crate::models::{
    ChatMessage, DoneReason, ModelCapabilities, ModelEvent, ModelToolCall, TokenUsage, ToolSpec, ToolStyle,
};
use crate::tokens::estimate_tokens;
use crate::tools::{self, FailedQueries, ToolContext};

/// Tokens of a tool's text that a small model can use.
const SMALL_TOOL_RESULT_TOKENS: usize = 600;
/// Tokens generated in one turn: enough for a query or an answer, and no endless repetition.
const MAX_OUTPUT_TOKENS: u32 = 4_096;
const SMALL_MAX_OUTPUT_TOKENS: u32 = 768;
/// Context of a model whose provider does not report one.
const DEFAULT_CONTEXT_TOKENS: u32 = 8_192;
/// Tokens that chat templates add to introduce native tools.
const NATIVE_TOOLS_TOKENS: usize = 120;
/// Pieces of a reply that are passed on together at most.
const PIECES_AT_ONCE: usize = 64;
/// Appended to an answer that the model could not finish.
const ANSWER_CUT: &str = "\n\n[The answer was cut here: it reached the model's output limit.]";
/// Appended to an answer that the filter of the model's server ended.
const ANSWER_FILTERED: &str = "\n\n[The answer ends here: the model's content filter stopped it.]";
/// Tokens that a nudge may add to a tool's text.
const NUDGE_TOKENS: usize = 32;

/// How an exchange that did not fail ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// With an answer.
    Answered,
    /// With calls that wait for a person or the client.
    Paused,
}

/// An SQL query, and where its bare names resolve.
#[derive(Debug, Clone)]
struct SucceededQuery {
    sql: String,
    database: Option<String>,
}

/// The exchange so far.
pub(super) struct Turns<'a> {
    task: &'a RunTask,
    model: ToolCalling,
    capabilities: ModelCapabilities,
    /// The server's, then the client's.
    specs: Vec<ToolSpec>,
    tool_tokens: usize,
    context: ToolContext,
    conversation: ChatHistory,
    /// Messages that follow the calls that are decided now.
    later: Vec<ChatMessage>,
    budget: ToolBudget,
    ids: ItemIds,
    iteration: u32,
    structured: Option<StructuredAnswer>,
    /// Whether the model was asked once to correct an answer that did not fit its schema.
    repairing: bool,
    /// The last text of the model: its item, and the text.
    said: Option<(String, String)>,
    waiting: Vec<WaitingToolCall>,
    kql_used: Option<String>,
    sql_used: Option<String>,
    /// The latest SQL query that succeeded, with the database in which its bare names resolve.
    succeeded: Option<SucceededQuery>,
    /// Of the latest query that succeeded.
    answer_ticket: Option<ResultTicket>,
    /// When the run is stored again, and the events that it had when it was stored last.
    store_at: Instant,
    stored_events: usize,
    /// What the answer's text is proven by.
    prover: Arc<Prover>,
    /// Ends the search for proofs with the run, also where its time is over or somebody stops it.
    _proofs_end: DropGuard,
    /// The results of earlier runs of the conversation among that.
    earlier: Vec<EarlierResult>,
    /// The text of this turn.
    checked: CheckedText,
    /// What the answer rests on.
    assessment: AnswerAssessment,
    /// What its confidence rests on.
    evidence: AnswerEvidence,
    /// What of the question nothing explains.
    gaps: GapSearch,
    /// Other tables of the same name that the question may mean.
    twins: TwinSearch,
    /// What was said below the answer: nothing that has to be proven.
    note_said: String,
    /// Whether an answer was said that no model has written.
    has_said_rows: bool,
    /// Whether it is not said yet that the run has started.
    is_yet_to_start: bool,
    /// Whether queries were compared; once in a run.
    has_voted: bool,
    /// Whether the model was asked in the plain form; once in a run.
    has_asked_plainly: bool,
    /// How long the last reply took.
    turn_took: Duration,
    /// Counts the queries that the model has sent again after they had failed, since the last one that ran.
    variation: u32,
}

/// The reply of one turn.
struct ModelReply {
    text: String,
    item_id: Option<String>,
    calls: Vec<ModelToolCall>,
    reason: DoneReason,
}

impl<'a> Turns<'a> {
    /// Prepares everything up to the first request to the model.
    pub(super) async fn begin(task: &'a RunTask, capabilities: ModelCapabilities) -> Self {
        let model = ToolCalling::new(Arc::clone(&task.model.provider), capabilities.clone());
        let mut specs = tools::specs(capabilities.small, task.writer.is_some(), task.config.default_tool_rows);
        specs.retain(|spec| request::is_allowed(&task.request, &spec.name));
        for spec in &mut specs {
            spec.name = calls::model_name(&spec.name, &task.request.client_tools);
        }
        specs.extend(task.request.client_tools.iter().cloned());
        let tool_tokens = match capabilities.tool_style {
            ToolStyle::Native => estimate_tokens(&json!(specs).to_string()) + NATIVE_TOOLS_TOKENS,
            ToolStyle::Actions => 0,
        };
        let structured = task.request.answer_schema.as_ref().and_then(|schema| StructuredAnswer::new(schema).ok());
        let FirstMessages { conversation, later, at_hand, margin, gaps } =
            first_messages(task, &model, &capabilities, &specs, tool_tokens, structured.as_ref()).await;
        // Kept from the start: a run that continues a failed one begins with these messages.
        task.handle.keep_messages(task.request.stored_messages(conversation.said().iter().chain(&later)));
        let (mut prover, proofs_end) = Prover::new(&task.request.question());
        let earlier = add_earlier(task, &mut prover).await;
        let text_tokens = if capabilities.small {
            task.config.tool_result_tokens.min(SMALL_TOOL_RESULT_TOKENS).saturating_sub(NUDGE_TOKENS)
        } else {
            task.config.tool_result_tokens
        };
        let context = ToolContext {
            session: task.session.clone(),
            writer: task.writer.clone(),
            text_tokens,
            default_rows: task.config.default_tool_rows,
            bad_branch: task.request.bad_branch,
            results: task.results.clone(),
            at_hand,
            check_times: task.config.check_times,
            open_question: task.request.is_open().then(|| task.request.question().to_lowercase()),
            failed_queries: FailedQueries::default(),
        };
        Self {
            task,
            model,
            capabilities,
            specs,
            tool_tokens,
            context,
            conversation,
            later,
            budget: ToolBudget::new(task.request.max_tool_calls.unwrap_or(u32::MAX).min(task.config.max_tool_calls)),
            ids: ItemIds::of_run(task.started_event.run_id, task.request.restarts.is_some()),
            iteration: 0,
            structured,
            repairing: false,
            said: None,
            waiting: Vec::new(),
            kql_used: None,
            sql_used: None,
            succeeded: None,
            answer_ticket: None,
            store_at: Instant::now() + STORE_EVERY,
            stored_events: 1,
            prover: Arc::new(prover),
            _proofs_end: proofs_end,
            earlier,
            checked: CheckedText::default(),
            assessment: AnswerAssessment::default(),
            evidence: AnswerEvidence { retrieval_margin: margin, ..AnswerEvidence::default() },
            gaps,
            twins: TwinSearch::default(),
            note_said: String::new(),
            has_said_rows: false,
            is_yet_to_start: false,
            has_voted: false,
            has_asked_plainly: false,
            turn_took: Duration::ZERO,
            variation: 0,
        }
    }

    /// Answers where no model is needed for it, and says then that the run has started; otherwise says nothing and returns `None`.
    pub(super) async fn run_without_model(mut self) -> Result<Option<End>, FailureCause> {
        self.is_yet_to_start = true;
        if !self.task.request.resume.is_empty() {
            return Ok(None);
        }
        self.conversation.extend(std::mem::take(&mut self.later));
        self.answer_from_verified().await
    }

    pub(super) async fn run(mut self) -> Result<End, FailureCause> {
        self.resume().await?;
        self.conversation.extend(std::mem::take(&mut self.later));
        if !self.task.request.resume.is_empty() {
            // A run that continues this one, should it fail, begins with the results.
            self.keep_messages();
        }
        if let Some(end) = self.answer_from_choice().await? {
            return Ok(end);
        }
        if let Some(end) = self.answer_from_verified().await? {
            return Ok(end);
        }
        loop {
            self.compact().await;
            let began = Instant::now();
            let mut reply = self.turn().await?;
            self.turn_took = began.elapsed();
            reply.calls.truncate(self.calls_of_turn());
            if reply.calls.is_empty() {
                if self.finish(reply).await? {
                    return Ok(End::Answered);
                }
                continue;
            }
            self.conversation.push_assistant(reply.text, reply.calls.clone());
            self.call_all(reply.calls).await?;
            self.look_for_twins().await;
            self.look_for_gaps().await;
            if !self.waiting.is_empty() {
                return self.pause().await;
            }
        }
    }

    /// Sends one request to the model and passes its text on as it arrives.
    async fn turn(&mut self) -> Result<ModelReply, FailureCause> {
        let messages = self.conversation.for_next_turn();
        let iteration = self.iteration;
        self.iteration += 1;
        self.emit(EventKind::LlmCallStarted { iteration });
        let context = ContextTokens {
            tools: self.tool_tokens,
            max: self.conversation.limit_tokens(),
            window: context_window(self.task, &self.capabilities),
            ..ContextTokens::from_messages(&messages)
        };
        let request = self.turn_request(messages);
        let max_output_tokens = self.max_reply_tokens();
        let mut asked = Some(Instant::now());
        let pieces = self.model.turn(request).await.map_err(|error| self.failed(&error))?;
        let mut pieces = pieces.ready_chunks(PIECES_AT_ONCE);
        let mut speech = Speech::new(self.structured.is_some() || self.holds_answers());
        let mut calls = Vec::new();
        loop {
            let some = match tokio::time::timeout_at(self.store_at.into(), pieces.next()).await {
                Ok(Some(some)) => some,
                Ok(None) => break,
                // What was said so far is stored while the model is silent.
                Err(_) => {
                    self.store_now_and_then().await?;
                    continue;
                }
            };
            self.task.handle.update_totals(|totals| totals.hear(asked.take()));
            let (is_full, mut heard) = (some.len() == PIECES_AT_ONCE, Vec::with_capacity(some.len()));
            let (mut end, mut some) = (None, some.into_iter());
            while end.is_none()
                && let Some(piece) = some.next()
            {
                end = self.hear(piece, &mut speech, &mut calls, &mut heard).await;
            }
            let Some(end) = end else {
                self.task.handle.emit_all(heard);
                self.store_now_and_then().await?;
                if is_full {
                    // A model that is faster than its readers must let them, and other runs, proceed.
                    tokio::task::yield_now().await;
                }
                continue;
            };
            let waited = self.checked.finish(&self.prover).await;
            speech.say(waited, &mut self.ids, |kind| heard.push(kind));
            let ended = end.map(|(usage, reason)| {
                let cut = reason == DoneReason::Length;
                let note = match reason {
                    DoneReason::Stop => None,
                    DoneReason::Length => Some(ANSWER_CUT),
                    DoneReason::Filtered => Some(ANSWER_FILTERED),
                };
                let is_said = calls.is_empty() && (speech.has_spoken() || self.said.is_some());
                if let Some(note) = note.filter(|_| is_said && !self.marks_cuts()) {
                    speech.say_more(note.to_owned(), &mut self.ids, |kind| heard.push(kind));
                }
                if calls.is_empty()
                    && let Some(note) = self.note_below(speech.said())
                {
                    speech.say_more(note, &mut self.ids, |kind| heard.push(kind));
                }
                let phase = if calls.is_empty() { TextPhase::FinalAnswer } else { TextPhase::Commentary };
                let (item_id, text) = speech.finish(phase, |kind| heard.push(kind));
                if let Some(item_id) = &item_id {
                    self.said = Some((item_id.clone(), text.clone()));
                }
                heard.push(EventKind::LlmCallFinished(Box::new(LlmCallFinished {
                    iteration,
                    usage,
                    cut,
                    context,
                    max_output_tokens,
                    calls: self.wanted(&calls),
                    cost: self.count(usage),
                })));
                ModelReply { text, item_id, calls, reason }
            });
            self.task.handle.emit_all(heard);
            return ended.map_err(|error| self.failed(&error));
        }
        let error = AgentError::ModelFailed { detail: "the reply broke off before its end; ask again".to_owned() };
        Err(self.failed(&error))
    }

    /// Takes in a piece of a reply. Returns how the reply ended, if that was its last piece.
    async fn hear(
        &mut self,
        piece: Result<ModelEvent, AgentError>,
        speech: &mut Speech,
        calls: &mut Vec<ModelToolCall>,
        heard: &mut Vec<EventKind>,
    ) -> Option<Result<(TokenUsage, DoneReason), AgentError>> {
        match piece {
            Ok(ModelEvent::Thinking(text)) => {
                if self.task.request.include_thinking {
                    speech.think(text, &mut self.ids, |kind| heard.push(kind));
                }
            }
            Ok(ModelEvent::Text(text)) => {
                let text = match self.structured {
                    None => self.checked.push(text, &self.prover).await,
                    Some(_) => text,
                };
                speech.say(text, &mut self.ids, |kind| heard.push(kind));
            }
            Ok(ModelEvent::ToolCall(call)) => {
                // The result refers to the model's own id: a provider may store things under it.
                let own = call.id.clone().filter(|id| !id.is_empty() && !self.task.request.returns_messages);
                let id = own.unwrap_or_else(|| self.ids.next("call"));
                calls.push(ModelToolCall { id: Some(id), ..call });
            }
            Ok(ModelEvent::Done { usage, reason }) => return Some(Ok((usage, reason))),
            Err(error) => return Some(Err(error)),
        }
        None
    }

    /// Returns the calls that follow, for a client that keeps the conversation: it shows all of them before the first
    /// result.
    fn wanted(&self, calls: &[ModelToolCall]) -> Vec<WantedCall> {
        let wanted =
            |call: &ModelToolCall| WantedCall { call_id: call.id.clone().unwrap_or_default(), name: call.name.clone() };
        if self.task.request.returns_messages { calls.iter().map(wanted).collect() } else { Vec::new() }
    }

    /// Adds to what the run has used. Returns the cost of this turn, where prices are set.
    fn count(&self, usage: TokenUsage) -> Option<f64> {
        let cost = self.task.model.price.as_ref().map(|price| price.cost(&usage));
        self.task.handle.update_totals(|totals| {
            totals.usage.tokens += usage;
            totals.last_usage = usage;
            totals.llm_calls += 1;
            if let Some(cost) = cost {
                *totals.cost.get_or_insert_default() += cost;
            }
        });
        cost
    }

    /// Returns whether the reply ends the run; otherwise the model is asked to correct it.
    async fn finish(&mut self, reply: ModelReply) -> Result<bool, FailureCause> {
        // Its client is told by a field, and gets what there is.
        let is_cut_as_asked = reply.reason != DoneReason::Stop && self.marks_cuts();
        if !is_cut_as_asked && reply.item_id.is_none() && self.said.is_none() && reply.text.trim().is_empty() {
            let message = match reply.reason {
                DoneReason::Stop => "the model gave no answer; ask again, or use another model",
                DoneReason::Length => {
                    "the model's reply was cut at its limit before it said anything; ask something narrower"
                }
                DoneReason::Filtered => {
                    "the model's content filter stopped the reply before it said anything; ask otherwise"
                }
            };
            return Err(FailureCause::new(RunStatus::Error, RunErrorCode::RunnerError, message, "empty_answer"));
        }
        if let Some(structured) = &self.structured {
            let checked = if is_cut_as_asked { Ok(reply.text.clone()) } else { structured.check(&reply.text) };
            match checked {
                Ok(text) => self.say_held(text),
                Err(problem) if !self.repairing => {
                    self.repairing = true;
                    self.conversation.push_assistant(reply.text, Vec::new());
                    self.conversation.push_user(format!(
                        "That is not the JSON that was asked for: {problem}. Reply with the corrected JSON document \
                        and nothing else."
                    ));
                    return Ok(false);
                }
                Err(problem) => {
                    let message = format!("the model's answer does not fit the asked-for JSON schema: {problem}");
                    return Err(FailureCause::new(
                        RunStatus::Error,
                        RunErrorCode::RunnerError,
                        message,
                        "invalid_structured_output",
                    ));
                }
            }
        }
        if self.holds_answers() && !self.has_said_rows {
            self.settle(&reply.text).await;
        }
        let (item_id, text) = self.said.clone().unwrap_or_default();
        if !text.is_empty() {
            self.conversation.push_assistant(text.clone(), Vec::new());
        }
        self.keep_messages();
        self.return_messages();
        let (kql_used, sql_used, ticket) = (self.kql_used.take(), self.sql_used.take(), self.answer_ticket.take());
        let corrections = self.checked.take_corrections();
        let proof = match self.structured {
            None if !self.assessment.held_back => self.proof_of(self.without_note(&text), &corrections).await,
            None | Some(_) => Vec::new(),
        };
        self.assess(&proof);
        let assessment = std::mem::take(&mut self.assessment);
        self.emit(EventKind::AnswerFinal(Box::new(AnswerFinal {
            item_id,
            text,
            structured: self.structured.is_some(),
            cut: reply.reason == DoneReason::Length,
            filtered: reply.reason == DoneReason::Filtered,
            kql_used,
            sql_used,
            ticket,
            proof,
            assessment,
        })));
        Ok(true)
    }

    /// Says an answer that was held until it was checked.
    fn say_held(&mut self, text: String) {
        let (mut speech, mut said) = (Speech::new(false), Vec::new());
        speech.say_more(text, &mut self.ids, |kind| said.push(kind));
        let (item_id, text) = speech.finish(TextPhase::FinalAnswer, |kind| said.push(kind));
        self.task.handle.emit_all(said);
        self.said = item_id.map(|item_id| (item_id, text));
    }

    /// Whether the protocol has a field for an answer that was cut.
    fn marks_cuts(&self) -> bool {
        self.task.request.protocol.has_cut_mark()
    }

    /// Stores the waiting calls, so that their decisions find them, and ends the run.
    async fn pause(mut self) -> Result<End, FailureCause> {
        self.keep_messages();
        self.store_waiting().await?;
        self.return_messages();
        let waiting = std::mem::take(&mut self.waiting).into_iter().map(|waiting| waiting.call).collect();
        self.emit(EventKind::Paused { waiting });
        Ok(End::Paused)
    }

    fn emit(&self, kind: EventKind) {
        self.task.handle.emit(kind);
    }

    fn failed(&self, error: &AgentError) -> FailureCause {
        self.task.failed_by(RunErrorCode::RunnerError, error)
    }

    fn keep_messages(&self) {
        self.task.handle.keep_messages(self.task.request.stored_messages(self.conversation.said()));
    }

    /// Returns all messages for a client that keeps them, else none.
    fn returned_messages(&self) -> Vec<ChatMessage> {
        if self.task.request.returns_messages { self.conversation.all().to_vec() } else { Vec::new() }
    }

    fn return_messages(&self) {
        if self.task.request.returns_messages {
            self.emit(EventKind::Conversation { messages: self.returned_messages() });
        }
    }

    fn tool_loop(&self, exhausted: Exhausted) -> FailureCause {
        let (message, detail_code) = match exhausted {
            Exhausted::TooManyCalls => (
                format!("more than {} tool calls; ask something narrower", self.budget.max_calls()),
                "too_many_tool_calls",
            ),
            Exhausted::RepeatedFailure => {
                ("the model made the same failing tool call three times in a row".to_owned(), "repeated_tool_failure")
            }
        };
        FailureCause::new(RunStatus::BudgetExceeded, RunErrorCode::ToolLoop, message, detail_code)
    }
}

/// Returns the model's context in tokens, as far as it is known.
fn context_window(task: &RunTask, capabilities: &ModelCapabilities) -> usize {
    task.model.context_tokens.or(capabilities.context_tokens).unwrap_or(DEFAULT_CONTEXT_TOKENS) as usize
}

fn max_output_tokens(small: bool) -> u32 {
    if small { SMALL_MAX_OUTPUT_TOKENS } else { MAX_OUTPUT_TOKENS }
}

/// Returns the arguments as JSON text.
fn raw_arguments(arguments: &Value) -> String {
    match arguments {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
