//! Decisions on the calls of a paused run, by the run's id: how a run of the ask protocol continues.

use querent_catalog::{CatalogError, PendingCall, PendingKind, PendingState, Principal, RunRecord};
use serde_json::Value;
use uuid::Uuid;

use super::{Agent, AgentRun};
use crate::conversation::events_of;
use crate::error::{AgentError, Result};
use crate::event::EventKind;
use crate::protocols::ask::RunDecisions;
use crate::protocols::responses::{BadRequest, ContinueError, Continued};
use crate::request::{CallDecision, Protocol, ResumedCall, RunRequest};

impl Agent {
    /// Returns the calls of a run that a person is asked about, decided or not, in their order. Errors:
    /// `run_not_found`, `run_withheld`.
    pub async fn approvals(&self, who: &Principal, run_id: Uuid) -> Result<Vec<PendingCall>> {
        // What a call is to write may be what its run read.
        self.catalog().runs().get(who, run_id).await?;
        let mut calls = self.catalog().pending_calls().of_run(who, run_id).await?;
        calls.retain(|call| call.kind == PendingKind::Approval);
        Ok(calls)
    }

    /// Decides the calls that a run of the ask protocol waits for. Returns the run that continues it, to be started; or
    /// the one that the same decisions started before, since a call is executed once.
    ///
    /// Errors: `run_not_found`, also for those who did not ask; `unknown_call` and `invalid_request` for decisions that do
    /// not fit its calls; `already_resumed` where they were decided otherwise, or the conversation went on.
    pub async fn decide(
        &self,
        who: &Principal,
        run_id: Uuid,
        decisions: RunDecisions,
    ) -> std::result::Result<Continued, ContinueError> {
        let run = self.catalog().runs().get(who, run_id).await?;
        if run.subject != who.subject() {
            // Whoever may look on would execute the call with other rights than those of whom the model worked for.
            return Err(CatalogError::RunNotFound { run_id: run_id.to_string() }.into());
        }
        if run.protocol != Protocol::Ask.as_str() {
            let message = format!("this run was begun over `{}`, which has decisions of its own", run.protocol);
            return Err(BadRequest::invalid("run_id", message).into());
        }
        let items = decisions.into_items(&self.approvals(who, run_id).await?)?;
        self.continue_with(who, request_of(&run)?, items, None, None).await
    }

    /// Returns the run that the same approvals and denials began a moment before: of a request that was sent twice at once.
    ///
    /// Errors: `already_resumed` where they were others, and where that run is not kept.
    pub(super) async fn run_of_decisions(
        &self,
        who: &Principal,
        decided: &[ResumedCall],
        call_id: String,
    ) -> Result<AgentRun> {
        let mut begun: Option<Uuid> = None;
        for resumed in decided.iter().filter(|resumed| resumed.stored) {
            let call = self.catalog().pending_calls().get(who, &resumed.call.call_id).await?;
            let is_same = match &resumed.decision {
                CallDecision::Approved { .. } => call.state == PendingState::Approved,
                CallDecision::Denied { .. } => call.state == PendingState::Denied,
                CallDecision::Output(_) | CallDecision::Abandoned => false,
            };
            let run_id = run_of_call(&call).filter(|run_id| is_same && begun.is_none_or(|begun| begun == *run_id));
            if run_id.is_none() {
                return Err(AgentError::AlreadyResumed { call_id });
            }
            begun = run_id;
        }
        let Some(run_id) = begun else { return Err(AgentError::AlreadyResumed { call_id }) };
        match self.events(who, run_id, 0).await {
            // Its client keeps the conversation, and nobody can read the run again.
            Err(AgentError::Catalog(CatalogError::RunNotFound { .. })) => Err(AgentError::AlreadyResumed { call_id }),
            events => Ok(AgentRun { run_id, events: events? }),
        }
    }
}

/// Returns the run that a decision on the call began.
fn run_of_call(call: &PendingCall) -> Option<Uuid> {
    let note: Value = serde_json::from_str(call.decision_json.as_deref()?).ok()?;
    Uuid::parse_str(note["run_id"].as_str()?).ok()
}

/// Returns the request of a run that continues a paused one: it asks as that one did.
fn request_of(paused: &RunRecord) -> Result<RunRequest> {
    let asked = events_of(paused)?.into_iter().find_map(|event| match event.kind {
        EventKind::RunStarted(started) => Some(started.request),
        _ => None,
    });
    let echo = asked.unwrap_or(Value::Null);
    Ok(RunRequest {
        database: echo["database"].as_str().map(str::to_owned),
        include_thinking: echo["include_thinking"].as_bool().unwrap_or(false),
        can_approve: true,
        retained: true,
        echo,
        ..RunRequest::new(Protocol::Ask, Vec::new())
    })
}
