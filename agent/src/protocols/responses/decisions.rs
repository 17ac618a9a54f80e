//! Decisions on calls that a run left to a person or to the client: which begin a run, and which were made before.
//!
//! An approval is executed once: a request that repeats it is answered with the run that the first one began, as long
//! as that run did not fail. An output of the client's own tool costs nothing to take again, so it begins a run of its
//! own each time, which branches off where the call was made. A conversation has one line of runs only: there an output
//! that was sent before is answered with what came of it.

use std::collections::HashSet;

use querent_catalog::{CatalogError, ConversationKey, PendingCall, PendingKind, PendingState, RunRecord, RunStatus};
use serde_json::Value;
use uuid::Uuid;

use super::continuation::{Continuation, ContinueError, is_new};
use super::{BadRequest, InputItem};
use crate::conversation::events_of;
use crate::error::{AgentError, Result};
use crate::event::{EventKind, RunEvent};
use crate::models::ChatRole;
use crate::request::{CallDecision, Protocol, ResumedCall};

const NOT_KNOWN: &str = "This call was approved and executed before; its result is not known any more.";
const NOT_SEEN: &str = "This call was approved before; whether it was executed is not known, and it is not done again.";

/// A decision in the input, and the call it decides.
pub(super) struct DecidedCall {
    /// The item's index.
    pub(super) at: usize,
    pub(super) call: PendingCall,
    pub(super) decision: CallDecision,
}

/// What the decisions of a request lead to.
pub(super) enum Decided {
    /// A run that goes on from these; without any it only follows what else is said.
    Resume(Vec<DecidedCall>),
    /// The run that the same decision began before.
    Replay(Uuid),
}

/// What a decision that was made before means now.
enum RepeatedDecision {
    /// It begins a run, as if it were new.
    Again(Box<DecidedCall>),
    /// It is answered with this run.
    Answered(Uuid),
    /// It is part of the history.
    Past,
}

impl Continuation<'_> {
    /// Finds the decisions among the items, and the calls they decide. Within a conversation an output also decides a
    /// call that waits where the call is sent along. Errors: `unknown_call`, also for a call that was not made in the
    /// conversation, which would be decided without the question that led to it.
    pub(super) async fn decided_calls(
        &self,
        protocol: Protocol,
        items: &[InputItem],
        conversation: Option<&ConversationKey>,
    ) -> std::result::Result<Vec<DecidedCall>, ContinueError> {
        let is_elsewhere =
            |call: &PendingCall| conversation.is_some_and(|named| call.conversation.as_ref() != Some(named));
        let mut decided: Vec<DecidedCall> = Vec::new();
        let called = called_ids(items);
        let last_new = items.iter().rposition(is_new);
        for (at, item) in items.iter().enumerate() {
            let Some((id, decision)) = decision_of(item) else { continue };
            // The output of a call that is sent along is part of the history.
            let is_sent_along = matches!(item, InputItem::FunctionCallOutput { .. }) && called.contains(id);
            if is_sent_along && conversation.is_none() {
                continue;
            }
            let is_followed = last_new > Some(at);
            let param = field_of_decision(protocol, item);
            let found = match self.catalog.pending_calls().get(self.who, id).await {
                // Whoever may look on would execute the call with other rights than those of whom the model worked for.
                Ok(call) if call.subject != self.who.subject() => {
                    Err(CatalogError::PendingCallNotFound { id: id.to_owned() })
                }
                found => found,
            };
            let call = match found {
                Ok(call) if is_sent_along && (call.state != PendingState::Waiting || is_elsewhere(&call)) => continue,
                // The client sends what was said elsewhere.
                Ok(call) if is_elsewhere(&call) && call.state != PendingState::Waiting && is_followed => continue,
                Ok(call) if is_elsewhere(&call) => {
                    let message = format!(
                        "the call of `{id}` was made outside of this conversation; decide it there, or name none"
                    );
                    return Err(BadRequest::new("unknown_call", param, message).into());
                }
                Ok(call) => call,
                Err(CatalogError::PendingCallNotFound { .. }) if is_sent_along => continue,
                Err(CatalogError::PendingCallNotFound { .. }) => {
                    let message = if matches!(item, InputItem::FunctionCallOutput { .. }) {
                        format!(
                            "no call `{id}` waits for its output; send the call before its output, or continue the \
                             response that made it"
                        )
                    } else {
                        format!("no call waits for a decision on `{id}`")
                    };
                    return Err(BadRequest::new("unknown_call", param, message).into());
                }
                Err(error) => return Err(error.into()),
            };
            if call.state == PendingState::Waiting && decided.iter().any(|known| known.call.call_id == call.call_id) {
                let message = format!("the call of `{id}` is decided twice; send one decision or output");
                return Err(BadRequest::invalid(param, message).into());
            }
            decided.push(DecidedCall { at, call, decision });
        }
        Ok(decided)
    }

    /// Adds the outputs of the other calls of the same response, where they are sent along with their calls: whoever sends
    /// the whole history answers a call of its own beside one that a person decides.
    pub(super) async fn with_outputs_sent_along(
        &self,
        mut resumed: Vec<DecidedCall>,
        items: &[InputItem],
    ) -> Result<Vec<DecidedCall>> {
        let Some(run_id) = resumed.first().map(|decided| decided.call.run_id) else { return Ok(resumed) };
        for call in self.catalog.pending_calls().of_run(self.who, run_id).await? {
            let is_decided = resumed.iter().any(|decided| decided.call.call_id == call.call_id);
            if is_decided || call.kind != PendingKind::ClientTool {
                continue;
            }
            let sent = items.iter().enumerate().find_map(|(at, item)| match item {
                InputItem::FunctionCallOutput { call_id, output } if *call_id == call.call_id => Some((at, output)),
                _ => None,
            });
            if let Some((at, output)) = sent {
                resumed.push(DecidedCall { at, call, decision: CallDecision::Output(output.clone()) });
            }
        }
        resumed.sort_by_key(|decided| decided.at);
        Ok(resumed)
    }

    /// Finds out which of the decisions begin a run. Errors: `already_resumed`.
    pub(super) async fn sort(
        &self,
        decided: Vec<DecidedCall>,
        items: &[InputItem],
        previous: Option<&RunRecord>,
        conversation: Option<&ConversationKey>,
    ) -> Result<Decided> {
        let mut resumed = Vec::new();
        let mut replay = None;
        for decided in decided {
            if decided.call.state == PendingState::Waiting {
                resumed.push(decided);
                continue;
            }
            let later = items.get(decided.at + 1..).unwrap_or_default();
            let repeated = match decided.call.kind {
                PendingKind::Approval => self.approved_again(decided, later).await?,
                PendingKind::ClientTool => self.answered_again(decided, later, previous, conversation).await?,
            };
            match repeated {
                RepeatedDecision::Again(decided) => resumed.push(*decided),
                RepeatedDecision::Answered(run_id) => replay = Some(run_id),
                RepeatedDecision::Past => {}
            }
        }
        Ok(match replay.filter(|_| resumed.is_empty()) {
            Some(run_id) => Decided::Replay(run_id),
            None => Decided::Resume(resumed),
        })
    }

    /// An approval or a denial that came before.
    async fn approved_again(&self, decided: DecidedCall, later: &[InputItem]) -> Result<RepeatedDecision> {
        if later.iter().any(is_new) {
            return Ok(RepeatedDecision::Past);
        }
        let is_same = match &decided.decision {
            CallDecision::Approved { .. } => decided.call.state == PendingState::Approved,
            CallDecision::Denied { .. } => decided.call.state == PendingState::Denied,
            CallDecision::Output(_) | CallDecision::Abandoned => false,
        };
        if !is_same {
            return Err(already_resumed(&decided.call));
        }
        if let Some(run) = self.standing_answer(&decided.call).await? {
            return Ok(RepeatedDecision::Answered(run.run_id));
        }
        let decision = self.earlier_outcome(&decided.call).await?;
        Ok(RepeatedDecision::Again(Box::new(DecidedCall { decision, ..decided })))
    }

    /// An output of a client's tool, sent again or after the conversation went on without it.
    async fn answered_again(
        &self,
        decided: DecidedCall,
        later: &[InputItem],
        previous: Option<&RunRecord>,
        conversation: Option<&ConversationKey>,
    ) -> Result<RepeatedDecision> {
        let is_followed = later.iter().any(is_new);
        let is_history = match (previous, conversation) {
            (Some(previous), _) => previous.run_id != decided.call.run_id,
            (None, Some(key)) => !self.goes_on_from(key, &decided.call).await?,
            // The model answered it, and the client sends what it said.
            (None, None) => {
                later.iter().any(|item| matches!(item, InputItem::Message { role: ChatRole::Assistant, .. }))
            }
        };
        if !is_history {
            return Ok(RepeatedDecision::Again(Box::new(decided)));
        }
        if is_followed {
            return Ok(RepeatedDecision::Past);
        }
        let answer = match conversation {
            Some(key) => match self.standing_answer(&decided.call).await? {
                Some(run) => Some(run),
                // The run that it began has failed, and another one took its place.
                None => self.later_answer(key, &decided.call).await?,
            },
            None => None,
        };
        match answer {
            Some(run) if has_output(&events_of(&run)?, &decided) => Ok(RepeatedDecision::Answered(run.run_id)),
            Some(_) | None => Err(already_resumed(&decided.call)),
        }
    }

    /// Whether nothing but failed answers came after the call in its conversation.
    async fn goes_on_from(&self, key: &ConversationKey, call: &PendingCall) -> Result<bool> {
        let Some(last) = self.catalog.runs().last_of_conversation(self.who, key).await? else { return Ok(true) };
        let is_answer = last.previous_run_id == Some(call.run_id);
        Ok(last.run_id == call.run_id || (is_answer && !stands(&last)))
    }

    /// Returns the last run of a conversation where it goes on from the call, unless it failed or cannot be shown.
    async fn later_answer(&self, key: &ConversationKey, call: &PendingCall) -> Result<Option<RunRecord>> {
        let last = self.catalog.runs().last_of_conversation(self.who, key).await?;
        let is_answer = |run: &RunRecord| run.previous_run_id == Some(call.run_id) && run.retained && stands(run);
        Ok(last.filter(is_answer))
    }

    /// Returns the run that a decision began, unless it failed, was cancelled or was deleted.
    ///
    /// Errors: `already_resumed` where it is in progress and cannot be shown.
    async fn standing_answer(&self, call: &PendingCall) -> Result<Option<RunRecord>> {
        let Some(run) = self.run_started_by(call).await?.filter(stands) else { return Ok(None) };
        match (run.retained, run.status) {
            (true, _) => Ok(Some(run)),
            (false, RunStatus::Running) => Err(already_resumed(call)),
            (false, _) => Ok(None),
        }
    }

    /// Returns the run that a decision began, if it is still there.
    async fn run_started_by(&self, call: &PendingCall) -> Result<Option<RunRecord>> {
        let note: Value =
            call.decision_json.as_deref().and_then(|note| serde_json::from_str(note).ok()).unwrap_or_default();
        let Some(run_id) = note["run_id"].as_str().and_then(|id| Uuid::try_parse(id).ok()) else { return Ok(None) };
        match self.catalog.runs().get(self.who, run_id).await {
            Ok(run) => Ok(Some(run)),
            Err(CatalogError::RunNotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns what a run is told of a call that was decided before, and is not done again.
    async fn earlier_outcome(&self, call: &PendingCall) -> Result<CallDecision> {
        let note: Value =
            call.decision_json.as_deref().and_then(|note| serde_json::from_str(note).ok()).unwrap_or_default();
        Ok(match call.state {
            PendingState::Denied => CallDecision::Denied { reason: note["reason"].as_str().map(str::to_owned) },
            PendingState::Approved => {
                let run = self.run_started_by(call).await?.filter(|run| run.retained);
                let log = run.as_ref().map(events_of).transpose()?.unwrap_or_default();
                let unknown = if call.receipt_json.is_some() { NOT_KNOWN } else { NOT_SEEN };
                CallDecision::Output(result_of(&log, call).unwrap_or(unknown).to_owned())
            }
            PendingState::Waiting | PendingState::Answered | PendingState::Abandoned => CallDecision::Abandoned,
        })
    }

    /// Returns the decided calls, and what becomes of the other calls that the continued run left; the model is not
    /// told of those that the client has deleted, unless they were made.
    ///
    /// Errors: a call of the client's has no output, and another has.
    pub(super) async fn resumed_calls(
        &self,
        base: Option<Uuid>,
        decided: Vec<DecidedCall>,
        deleted: &[String],
    ) -> std::result::Result<Vec<ResumedCall>, ContinueError> {
        let mut resumed: Vec<ResumedCall> = decided
            .into_iter()
            .map(|DecidedCall { call, decision, .. }| {
                let stored = call.state == PendingState::Waiting;
                ResumedCall { call, decision, stored }
            })
            .collect();
        let Some(run_id) = base else { return Ok(resumed) };
        let goes_on = !resumed.is_empty();
        for call in self.catalog.pending_calls().of_run(self.who, run_id).await? {
            let is_deleted = deleted.contains(&call.call_id) && call.state != PendingState::Approved;
            if is_deleted || resumed.iter().any(|resumed| resumed.call.call_id == call.call_id) {
                continue;
            }
            if goes_on && call.kind == PendingKind::ClientTool {
                let message = format!(
                    "No tool output found for function call {}; send the outputs of all calls of a response together",
                    call.call_id
                );
                return Err(BadRequest::invalid("input", message).into());
            }
            let (decision, stored) = match call.state {
                PendingState::Waiting => (CallDecision::Abandoned, true),
                _ => (self.earlier_outcome(&call).await?, false),
            };
            resumed.push(ResumedCall { call, decision, stored });
        }
        Ok(resumed)
    }
}

/// Returns the field of a request that has an item: AG-UI's has decisions apart from its messages.
fn field_of_decision(protocol: Protocol, item: &InputItem) -> &'static str {
    match (protocol, item) {
        (Protocol::AgUi, InputItem::ApprovalResponse { .. }) => "resume",
        _ => "input",
    }
}

/// The ids of the calls among some items.
pub(super) fn called_ids(items: &[InputItem]) -> HashSet<&str> {
    let called = items.iter().filter_map(|item| match item {
        InputItem::FunctionCall { call_id, .. } => Some(call_id.as_str()),
        _ => None,
    });
    called.collect()
}

/// Returns the id of the call that an item decides.
pub(super) fn decided_id(item: &InputItem) -> Option<&str> {
    match item {
        InputItem::ApprovalResponse { request_id: id, .. } | InputItem::FunctionCallOutput { call_id: id, .. } => {
            Some(id)
        }
        _ => None,
    }
}

/// Returns the id of the call that an item decides, and the decision.
fn decision_of(item: &InputItem) -> Option<(&str, CallDecision)> {
    match item {
        InputItem::ApprovalResponse { request_id, approve: true, reason } => {
            Some((request_id, CallDecision::Approved { reason: reason.clone() }))
        }
        InputItem::ApprovalResponse { request_id, approve: false, reason } => {
            Some((request_id, CallDecision::Denied { reason: reason.clone() }))
        }
        InputItem::FunctionCallOutput { call_id, output } => Some((call_id, CallDecision::Output(output.clone()))),
        _ => None,
    }
}

fn already_resumed(call: &PendingCall) -> AgentError {
    AgentError::AlreadyResumed { call_id: call.call_id.clone() }
}

/// Whether a run counts as the answer to the decision that began it.
fn stands(run: &RunRecord) -> bool {
    match run.status {
        RunStatus::Running | RunStatus::Success | RunStatus::Paused => true,
        RunStatus::Error | RunStatus::BudgetExceeded | RunStatus::Cancelled => false,
    }
}

/// Whether a run began with this output of the call.
fn has_output(log: &[RunEvent], decided: &DecidedCall) -> bool {
    log.iter().any(|event| match (&event.kind, &decided.decision) {
        (EventKind::ClientToolResolved(resolved), CallDecision::Output(output)) => {
            !resolved.missing && resolved.call_id == decided.call.call_id && resolved.result == *output
        }
        _ => false,
    })
}

/// Returns what the model read of an approved call.
fn result_of<'a>(log: &'a [RunEvent], call: &PendingCall) -> Option<&'a str> {
    let executed = log.iter().find_map(|event| match &event.kind {
        EventKind::ToolCallStarted(started) if started.approval_request_id.as_ref() == Some(&call.call_id) => {
            Some(&started.call_id)
        }
        _ => None,
    })?;
    log.iter().find_map(|event| match &event.kind {
        EventKind::ToolResult(result) if result.call_id == *executed => Some(result.text.as_str()),
        _ => None,
    })
}
