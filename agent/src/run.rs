//! One run, from its first event to its last: a task that owns the model call and the query, so that ending it ends
//! both. Every way out (answered, out of time, out of calls, failed, cancelled, the client gone) leads through one
//! door: the last events are stored before they are delivered, and `run_finished` is always the last.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;
use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;
use querent_catalog::{Catalog, RunRecord, RunStatus};
use querent_engine::Session;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::budget::{Exhausted, Offer, ToolBudget};
use crate::history::Conversation;
use crate::models::actions::{ToolCalling, TurnRequest};
use crate::models::{
    ChatMessage, DoneReason, ModelCapabilities, ModelEvent, ModelProvider, ModelToolCall, ToolChoice, ToolSpec,
    ToolStyle,
};
use crate::prompt::tokens::{estimate_tokens, take_tokens};
use crate::prompt::{Context, ExampleCache, PromptParts, find_context, first_turn};
use crate::tools::{self, ToolContext};
use crate::{AgentConfig, AgentError, AskRequest, Result, RunErrorCode, RunEvent, Usage};

/// Events between the run and a client that reads slowly.
pub(crate) const EVENTS_IN_FLIGHT: usize = 64;
/// How long a run's last events wait for its end to be stored; it is then stored later.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);
/// Between attempts to store a run's end: the first and the longest pause.
const STORE_AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// A run that goes on is stored this often, so that a crash loses little of its trace.
const STORE_EVERY: Duration = Duration::from_secs(5);
/// What a small model can use: its prompt, and a tool's text.
const SMALL_PROMPT_TOKENS: usize = 900;
const SMALL_TOOL_RESULT_TOKENS: usize = 600;
/// Generated in one turn: a query or an answer, and no endless repetition.
const MAX_OUTPUT_TOKENS: u32 = 4_096;
const SMALL_MAX_OUTPUT_TOKENS: u32 = 768;
/// The context of a model that does not say.
const DEFAULT_CONTEXT_TOKENS: u32 = 8_192;
/// Tokens with which chat templates introduce native tools.
const NATIVE_TOOLS_TOKENS: usize = 120;
const ANSWER_NOW: &str = "\nYou have this result already. Answer the question with it now.";
/// Without these words a small model that has the right rows goes on to look at tables instead of answering.
const ANSWER_IF_DONE: &str = "\nIf this answers the question, answer now.";
/// A small model sends a failing call again as it was: it asks for a column that there is not, or for a change.
const FAILED_AGAIN: &str =
    "\nThis failed before in the same way. Send something else, or answer the user why it cannot be done.";
/// Ends an answer that the model could not finish.
const ANSWER_CUT: &str = "\n\n[The answer was cut here: it reached the model's output limit.]";
/// Tokens that these words may add to a tool's text.
const NUDGE_TOKENS: usize = 32;

/// Who ends a run early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Its owner or an administrator.
    Cancelled,
    /// The server goes down.
    Shutdown,
}

/// A run in progress, as everybody else sees it.
pub(crate) struct RunHandle {
    state: Mutex<RunState>,
    stop: CancellationToken,
    stop_cause: Mutex<Option<Stop>>,
    /// Cancelled when the run has ended: it is stored in its last state, or will be.
    pub(crate) ended: CancellationToken,
}

struct RunState {
    record: RunRecord,
    /// `[{event, data}, ...` without the closing bracket.
    trace: String,
    usage: Usage,
}

impl RunHandle {
    pub(crate) fn new(record: RunRecord) -> Self {
        let state = RunState { record, trace: String::from("["), usage: Usage::default() };
        Self {
            state: Mutex::new(state),
            stop: CancellationToken::new(),
            stop_cause: Mutex::new(None),
            ended: CancellationToken::new(),
        }
    }

    /// Asks the run to end; the first cause counts.
    pub(crate) fn stop(&self, cause: Stop) {
        self.stop_cause.lock().get_or_insert(cause);
        self.stop.cancel();
    }

    /// The run as it would be stored now.
    pub(crate) fn snapshot(&self, started: Instant) -> RunRecord {
        let state = self.state.lock();
        let usage = match state.record.finished_at {
            Some(_) => state.usage,
            None => Usage { elapsed_ms: elapsed_ms(started), ..state.usage },
        };
        RunRecord {
            usage_json: json!(usage).to_string(),
            trace_json: format!("{}]", state.trace),
            ..state.record.clone()
        }
    }

    fn append(&self, event: &RunEvent) {
        let entry = json!({ "event": event.name(), "data": event.data() }).to_string();
        let mut state = self.state.lock();
        if state.trace.len() > 1 {
            state.trace.push(',');
        }
        state.trace.push_str(&entry);
    }

    fn update_usage(&self, update: impl FnOnce(&mut Usage)) {
        update(&mut self.state.lock().usage);
    }
}

/// All that a run works with.
pub(crate) struct RunTask {
    pub(crate) handle: Arc<RunHandle>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) session: Session,
    pub(crate) model: Arc<dyn ModelProvider>,
    pub(crate) config: Arc<AgentConfig>,
    pub(crate) examples: Arc<ExampleCache>,
    pub(crate) request: AskRequest,
    pub(crate) started: Instant,
    pub(crate) events: mpsc::Sender<RunEvent>,
    /// The agent shuts down.
    pub(crate) closing: CancellationToken,
    /// The last events; apart, so that they need not wait for room.
    pub(crate) last_events: oneshot::Sender<Vec<RunEvent>>,
}

/// How a run ended when it did not succeed.
struct Failure {
    status: RunStatus,
    code: RunErrorCode,
    message: String,
    detail_code: &'static str,
}

impl Failure {
    fn new(status: RunStatus, code: RunErrorCode, message: impl Into<String>, detail_code: &'static str) -> Self {
        Self { status, code, message: message.into(), detail_code }
    }

    /// The model's, or one of what it runs on.
    fn of_model(code: RunErrorCode, error: &AgentError) -> Self {
        Self::new(RunStatus::Error, code, error.to_string(), error.code())
    }
}

impl RunTask {
    /// Runs to the end. `leave` is called once the run is stored, before its last events are delivered: a client that
    /// has seen `run_finished` finds the run stored and its place free. Where storing takes too long or fails, the
    /// events do not wait, and it is tried again until it is done or the agent shuts down.
    pub(crate) async fn run(self, leave: impl FnOnce()) {
        let outcome = self.outcome().await;
        let (status, failure) = match outcome {
            Ok(()) => (RunStatus::Success, None),
            Err(failure) => (failure.status, Some(failure)),
        };
        let mut last_events = Vec::new();
        if let Some(Failure { code, message, detail_code, .. }) = failure {
            last_events.push(RunEvent::RunError { code, message, detail_code });
        }
        let finished = self.finished_event();
        last_events.push(finished);
        for event in &last_events {
            self.handle.append(event);
        }
        let record = self.last_record(status);
        tracing::info!(run_id = %record.run_id, status = status.as_str(), usage = record.usage_json, "run finished");
        let Self { handle, catalog, events, last_events: deliver, closing, .. } = self;
        let store = async {
            let (mut pause, longest) = STORE_AGAIN;
            while let Err(error) = catalog.update_run(&record).await {
                tracing::error!(run_id = %record.run_id, code = error.code(), %error, "the run's end could not be stored");
                tokio::select! {
                    () = tokio::time::sleep(pause) => pause = longest.min(2 * pause),
                    () = closing.cancelled() => break,
                }
            }
            leave();
        };
        let mut store = std::pin::pin!(store);
        let stored = tokio::time::timeout(STORE_TIMEOUT, &mut store).await;
        // A client that is gone needs no last events.
        let _ = deliver.send(last_events);
        drop(events);
        handle.ended.cancel();
        if stored.is_err() {
            store.await;
        }
    }

    /// The work, and everything that can end it from outside. Dropping the work drops the model call and the query.
    async fn outcome(&self) -> Result<(), Failure> {
        let deadline = tokio::time::Instant::from_std(self.started + self.config.run_timeout);
        let work = AssertUnwindSafe(self.work()).catch_unwind();
        tokio::select! {
            biased;
            () = self.handle.stop.cancelled() => Err(self.stopped()),
            () = self.events.closed() => Err(Failure::new(
                RunStatus::Cancelled,
                RunErrorCode::Internal,
                "the client went away",
                "client_gone",
            )),
            () = tokio::time::sleep_until(deadline) => Err(Failure::new(
                RunStatus::BudgetExceeded,
                RunErrorCode::Timeout,
                format!("the run took longer than {}; ask something narrower", in_seconds(self.config.run_timeout)),
                "run_timeout",
            )),
            outcome = work => outcome.unwrap_or_else(|_| {
                Err(Failure::new(RunStatus::Error, RunErrorCode::Internal, "internal: the run panicked", "internal"))
            }),
        }
    }

    fn stopped(&self) -> Failure {
        let (message, detail_code) = match *self.handle.stop_cause.lock() {
            Some(Stop::Shutdown) => ("the server is shutting down; ask again when it is back", "shutting_down"),
            Some(Stop::Cancelled) | None => ("the run was cancelled", "cancelled"),
        };
        Failure::new(RunStatus::Cancelled, RunErrorCode::Internal, message, detail_code)
    }

    async fn work(&self) -> Result<(), Failure> {
        // A model that is not there ends the run before it has begun: no `run_started`.
        let capabilities =
            self.model.capabilities().await.map_err(|error| Failure::of_model(RunErrorCode::InitError, &error))?;
        let (run_id, question) = {
            let state = self.handle.state.lock();
            (state.record.run_id, state.record.question.clone())
        };
        self.emit(RunEvent::RunStarted { run_id, model: self.model.model_id().to_owned(), question }).await;
        let model = ToolCalling::new(Arc::clone(&self.model), capabilities.clone());
        let specs = tools::specs(capabilities.small);
        let conversation = self.first_turn(&model, &capabilities, &specs).await;
        let text_tokens = if capabilities.small {
            self.config.tool_result_tokens.min(SMALL_TOOL_RESULT_TOKENS).saturating_sub(NUDGE_TOKENS)
        } else {
            self.config.tool_result_tokens
        };
        let context =
            ToolContext { session: self.session.clone(), text_tokens, default_rows: self.config.default_tool_rows };
        let turns = Turns {
            task: self,
            model,
            capabilities,
            specs,
            context,
            conversation,
            budget: ToolBudget::new(self.config.max_tool_calls),
            answer: Answer::default(),
            kql_used: None,
            sql_used: None,
            stored_at: Instant::now(),
        };
        turns.run().await
    }

    async fn first_turn(
        &self,
        model: &ToolCalling,
        capabilities: &ModelCapabilities,
        specs: &[ToolSpec],
    ) -> Conversation {
        let small = capabilities.small;
        let (question, database) = (&self.request.question, self.request.database.as_deref());
        let Context { tables, relationships, taught } = find_context(&self.session, question, database, small).await;
        let tables = self.examples.of_tables(&self.session, tables).await;
        let instructions = model.instructions(specs);
        let tool_tokens = match capabilities.tool_style {
            ToolStyle::Native => estimate_tokens(&json!(specs).to_string()) + NATIVE_TOOLS_TOKENS,
            ToolStyle::Actions => 0,
        };
        let budget_tokens =
            if small { self.config.prompt_tokens.min(SMALL_PROMPT_TOKENS) } else { self.config.prompt_tokens };
        let messages = first_turn(&PromptParts {
            question,
            database: self.session.database(),
            instructions: instructions.as_deref(),
            tool_tokens,
            tables: &tables,
            relationships: &relationships,
            taught: &taught,
            today: Utc::now().date_naive(),
            small,
            budget_tokens,
        });
        let context_tokens = capabilities.context_tokens.unwrap_or(DEFAULT_CONTEXT_TOKENS) as usize;
        let for_reply = (max_output_tokens(small) as usize).min(context_tokens / 4);
        Conversation::new(messages, context_tokens.saturating_sub(for_reply + tool_tokens))
    }

    /// Records an event and sends it. Recording waits until there is room to send, so that the trace never holds what
    /// was not delivered; a client that is gone ends the run elsewhere.
    async fn emit(&self, event: RunEvent) {
        match self.events.reserve().await {
            Ok(permit) => {
                self.handle.append(&event);
                permit.send(event);
            }
            Err(_) => futures::future::pending().await,
        }
    }

    fn finished_event(&self) -> RunEvent {
        let elapsed_ms = elapsed_ms(self.started);
        self.handle.update_usage(|usage| usage.elapsed_ms = elapsed_ms);
        let state = self.handle.state.lock();
        RunEvent::RunFinished { run_id: state.record.run_id, usage: state.usage }
    }

    /// The run as it ended.
    fn last_record(&self, status: RunStatus) -> RunRecord {
        {
            let mut state = self.handle.state.lock();
            state.record.status = status;
            state.record.finished_at = Some(Utc::now());
        }
        self.handle.snapshot(self.started)
    }
}

/// The exchange with the model, turn by turn.
struct Turns<'a> {
    task: &'a RunTask,
    model: ToolCalling,
    capabilities: ModelCapabilities,
    specs: Vec<ToolSpec>,
    context: ToolContext,
    conversation: Conversation,
    budget: ToolBudget,
    answer: Answer,
    kql_used: Option<String>,
    sql_used: Option<String>,
    stored_at: Instant,
}

/// What a turn said and wants.
struct Reply {
    text: String,
    calls: Vec<ModelToolCall>,
    reason: DoneReason,
}

impl Turns<'_> {
    async fn run(mut self) -> Result<(), Failure> {
        loop {
            let messages = self.conversation.for_next_turn();
            let reply = self.turn(messages).await?;
            if reply.calls.is_empty() {
                return self.finish(reply.reason).await;
            }
            self.conversation.push_assistant(reply.text, reply.calls.clone());
            for call in reply.calls {
                self.call(call).await?;
            }
        }
    }

    /// One request to the model; its text is passed on as it comes.
    async fn turn(&mut self, messages: Vec<ChatMessage>) -> Result<Reply, Failure> {
        let failed = |error: AgentError| Failure::of_model(RunErrorCode::RunnerError, &error);
        let offer = self.budget.offer();
        let request = TurnRequest {
            messages,
            tools: self.offered_tools(offer),
            known_tools: self.specs.clone(),
            may_answer: offer != Offer::CallOnly,
            think: self.capabilities.thinking.then_some(self.task.request.include_thinking),
            max_output_tokens: Some(max_output_tokens(self.capabilities.small)),
            answer_schema: None,
            tool_choice: ToolChoice::Auto,
        };
        let mut pieces = self.model.turn(request).await.map_err(failed)?;
        let mut reply = Reply { text: String::new(), calls: Vec::new(), reason: DoneReason::Stop };
        self.answer.begin_turn();
        while let Some(piece) = pieces.next().await {
            match piece.map_err(failed)? {
                ModelEvent::Thinking(text) => {
                    if self.task.request.include_thinking {
                        self.task.emit(RunEvent::ThinkingDelta { text }).await;
                    }
                }
                ModelEvent::Text(text) => {
                    reply.text.push_str(&text);
                    if let Some(text) = self.answer.push(&text) {
                        self.task.emit(RunEvent::AnswerDelta { text }).await;
                    }
                }
                ModelEvent::ToolCall(call) => reply.calls.push(call),
                ModelEvent::Done { usage: tokens, reason } => {
                    self.task.handle.update_usage(|usage| {
                        usage.input_tokens += tokens.input_tokens;
                        usage.output_tokens += tokens.output_tokens;
                    });
                    reply.reason = reason;
                    return Ok(reply);
                }
            }
        }
        Err(failed(AgentError::ModelFailed { detail: "the reply broke off before its end; ask again".to_owned() }))
    }

    /// One tool call: its two events, and its result in the conversation.
    async fn call(&mut self, call: ModelToolCall) -> Result<(), Failure> {
        let ModelToolCall { name: tool, arguments, .. } = call;
        let (call_index, allowed) = self.budget.begin_call();
        self.task.handle.update_usage(|usage| usage.tool_calls = self.budget.calls());
        let event = RunEvent::ToolCall { tool: tool.clone(), args: arguments.clone(), call_index };
        self.task.emit(event).await;
        allowed.map_err(|exhausted| self.tool_loop(exhausted))?;
        if tool == tools::RUN_SQL {
            self.sql_used = text_of(&arguments, tools::sql_argument).or(self.sql_used.take());
        } else if tool == tools::RUN_KQL {
            self.kql_used = text_of(&arguments, tools::kql_argument).or(self.kql_used.take());
        }
        let outcome = tools::call(&self.context, &tool, &arguments).await;
        let failed = outcome.is_err();
        let (result, mut text) = match outcome {
            Ok(output) => (output.json, output.text),
            Err(error) => {
                let text = error.to_text(&tool);
                (error.to_json(), take_tokens(&text, self.context.text_tokens).to_owned())
            }
        };
        self.task.emit(RunEvent::ToolResult { tool: tool.clone(), call_index, result }).await;
        let recorded = self.budget.record(&tool, &arguments, failed);
        recorded.map_err(|exhausted| self.tool_loop(exhausted))?;
        text.push_str(self.nudge(&tool, failed));
        self.conversation.push_tool_result(&tool, text);
        self.store_now_and_then().await;
        Ok(())
    }

    /// A small model that has rows may query again, but is kept from going on to look at tables.
    fn offered_tools(&self, offer: Offer) -> Vec<ToolSpec> {
        match offer {
            Offer::AnswerOnly => Vec::new(),
            Offer::CallOrAnswer if self.capabilities.small && self.budget.has_succeeded(tools::RUN_SQL) => {
                self.specs.iter().filter(|spec| spec.name == tools::RUN_SQL).cloned().collect()
            }
            Offer::CallOnly | Offer::CallOrAnswer => self.specs.clone(),
        }
    }

    /// What is said after a tool's result, to keep the model from turning in circles.
    fn nudge(&self, tool: &str, failed: bool) -> &'static str {
        if self.budget.repeated_success() {
            ANSWER_NOW
        } else if self.budget.repeated_failure() {
            FAILED_AGAIN
        } else if self.capabilities.small && !failed && tool == tools::RUN_SQL {
            ANSWER_IF_DONE
        } else {
            ""
        }
    }

    async fn finish(mut self, reason: DoneReason) -> Result<(), Failure> {
        if self.answer.text.trim().is_empty() {
            let message = match reason {
                DoneReason::Stop => "the model gave no answer; ask again, or use another model",
                DoneReason::Length => {
                    "the model's reply was cut at its limit before it said anything; ask something narrower"
                }
            };
            return Err(Failure::new(RunStatus::Error, RunErrorCode::RunnerError, message, "empty_answer"));
        }
        if reason == DoneReason::Length {
            self.answer.text.push_str(ANSWER_CUT);
            self.task.emit(RunEvent::AnswerDelta { text: ANSWER_CUT.to_owned() }).await;
        }
        let text = self.answer.text;
        self.task.emit(RunEvent::AnswerFinal { text, kql_used: self.kql_used, sql_used: self.sql_used }).await;
        Ok(())
    }

    fn tool_loop(&self, exhausted: Exhausted) -> Failure {
        let (message, detail_code) = match exhausted {
            Exhausted::TooManyCalls => (
                format!("more than {} tool calls; ask something narrower", self.task.config.max_tool_calls),
                "too_many_tool_calls",
            ),
            Exhausted::RepeatedFailure => {
                ("the model made the same failing tool call three times in a row".to_owned(), "repeated_tool_failure")
            }
        };
        Failure::new(RunStatus::BudgetExceeded, RunErrorCode::ToolLoop, message, detail_code)
    }

    async fn store_now_and_then(&mut self) {
        if self.stored_at.elapsed() < STORE_EVERY {
            return;
        }
        self.stored_at = Instant::now();
        let record = self.task.handle.snapshot(self.task.started);
        if let Err(error) = self.task.catalog.update_run(&record).await {
            tracing::warn!(run_id = %record.run_id, code = error.code(), %error, "the run's trace could not be stored");
        }
    }
}

/// The answer's text: all that the model said, whatever it did in between. It is exactly the pieces passed on.
#[derive(Default)]
struct Answer {
    text: String,
    at_turn_start: bool,
}

impl Answer {
    fn begin_turn(&mut self) {
        self.at_turn_start = true;
    }

    /// The piece to pass on, if any: a turn's leading white space is left out, and its text begins a paragraph.
    fn push(&mut self, piece: &str) -> Option<String> {
        let piece = if self.at_turn_start { piece.trim_start() } else { piece };
        if piece.is_empty() {
            return None;
        }
        let begins_paragraph = self.at_turn_start && !self.text.is_empty();
        self.at_turn_start = false;
        let delta = if begins_paragraph { format!("\n\n{piece}") } else { piece.to_owned() };
        self.text.push_str(&delta);
        Some(delta)
    }
}

fn text_of(arguments: &Value, argument: fn(&Map<String, Value>) -> Option<String>) -> Option<String> {
    argument(&tools::arguments_object(arguments).ok()?)
}

fn max_output_tokens(small: bool) -> u32 {
    if small { SMALL_MAX_OUTPUT_TOKENS } else { MAX_OUTPUT_TOKENS }
}

fn elapsed_ms(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// `60 s`, `1.5 s`.
fn in_seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}
