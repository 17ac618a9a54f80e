//! How a run begins: it is stored where no other run is in its way, and with it the decisions that it acts on. What is stored here
//! is stored once, whichever servers share the catalog.

use std::time::{Duration, Instant};

use querent_catalog::{
    Catalog, ConversationKey, DecidedRun, PendingDecision, PendingState, Principal, RunRecord, RunTurn,
};
use serde_json::{Value, json};

use super::Agent;
use crate::config::AgentConfig;
use crate::conversation::delete_created;
use crate::error::{AgentError, Result};
use crate::request::{CallDecision, ResumedCall, RunRequest};

/// How often a run asks for its turn where other servers have runs of its caller.
const TURN_ASKED_EVERY: Duration = Duration::from_millis(100);

impl Agent {
    /// Has a request that was completed begin no run: a conversation that was created for it is deleted, unless somebody has
    /// used it since.
    pub async fn give_up(&self, who: &Principal, request: &RunRequest) {
        if let Some(key) = request.created_conversation() {
            delete_created(self.catalog(), who, key).await;
        }
    }

    /// Returns why a run was refused, once the conversation that was created for it is deleted.
    pub(super) async fn refused(
        &self,
        who: &Principal,
        created: Option<ConversationKey>,
        error: AgentError,
    ) -> AgentError {
        if let Some(key) = created {
            delete_created(self.catalog(), who, &key).await;
        }
        error
    }
}

/// Stores the run and the decisions it acts on. A decision is stored once: a second run on it is refused.
pub(super) async fn begin(
    catalog: &Catalog,
    who: &Principal,
    record: &RunRecord,
    decided: &[ResumedCall],
    config: &AgentConfig,
) -> Result<()> {
    if decided.is_empty() {
        return match catalog.members().own() {
            Some(_) => insert_in_turn(catalog, record, config).await,
            None => Ok(catalog.runs().insert(record).await?),
        };
    }
    let stored = decided.iter().filter(|resumed| resumed.stored);
    let verdicts = stored.map(|resumed| verdict(resumed, record)).collect();
    // What was decided does not wait for the caller's other runs.
    match catalog.pending_calls().begin_run(who, record, verdicts).await? {
        DecidedRun::Begun => Ok(()),
        DecidedRun::ConversationBusy => Err(conversation_locked(record)),
        DecidedRun::DecidedBefore { call_id } => Err(AgentError::AlreadyResumed { call_id }),
    }
}

fn verdict(ResumedCall { call, decision, .. }: &ResumedCall, record: &RunRecord) -> PendingDecision {
    let (state, reason) = match decision {
        CallDecision::Approved { reason } => (PendingState::Approved, reason.as_deref()),
        CallDecision::Denied { reason } => (PendingState::Denied, reason.as_deref()),
        CallDecision::Output(_) => (PendingState::Answered, None),
        CallDecision::Abandoned => (PendingState::Abandoned, None),
    };
    let note = call.decision_json.as_deref().and_then(|note| serde_json::from_str(note).ok());
    let mut note: Value = note.unwrap_or_else(|| json!({}));
    note["run_id"] = json!(record.run_id);
    note["reason"] = json!(reason);
    PendingDecision { call_id: call.call_id.clone(), state, decision_json: note.to_string() }
}

/// Stores the run where the other servers have none of its conversation, and as soon as its caller has no more on all of them than
/// it may. Those of this server have waited for each other before.
async fn insert_in_turn(catalog: &Catalog, record: &RunRecord, config: &AgentConfig) -> Result<()> {
    let most = config.max_concurrent_runs_per_caller.filter(|most| *most > 0);
    let deadline = Instant::now() + config.run_queue_timeout;
    loop {
        match catalog.runs().insert_in_turn(record, most).await? {
            RunTurn::Stored => return Ok(()),
            RunTurn::ConversationBusy => return Err(conversation_locked(record)),
            RunTurn::TooMany if Instant::now() >= deadline => {
                return Err(AgentError::TooManyRunsOfCaller { limit: most.unwrap_or_default() });
            }
            RunTurn::TooMany => until_turn(catalog, record, most, deadline).await?,
        }
    }
}

/// Returns when a read says that the run may begin, or at `deadline`. Writes come one after the other over all servers, so
/// who waits does not write.
async fn until_turn(catalog: &Catalog, record: &RunRecord, most: Option<usize>, deadline: Instant) -> Result<()> {
    loop {
        tokio::time::sleep(TURN_ASKED_EVERY).await;
        if Instant::now() >= deadline || catalog.runs().turn(record, most).await? != RunTurn::TooMany {
            return Ok(());
        }
    }
}

fn conversation_locked(record: &RunRecord) -> AgentError {
    let conversation = record.conversation.as_ref().map(|key| key.id.clone()).unwrap_or_default();
    AgentError::ConversationLocked { conversation }
}
