//! Questions that an answer asks back and nobody answers: the run ends as one that was cancelled, in every protocol.

use chrono::{SubsecRound, Utc};
use querent_catalog::{Principal, RunRecord, RunStatus};
use uuid::Uuid;

use super::Agent;
use crate::conversation::events_of;
use crate::error::Result;
use crate::event::{CANCELLED_CODE, EventKind, RunErrorCode, RunEvent, RunOutcome};
use crate::protocols::ask::encode_trace;
use crate::stored_log::encode_log;

impl Agent {
    /// Cancels a run that has answered with a question. Returns it as it is stored then; `None` where it has not ended with an
    /// answer.
    pub async fn give_up_question(&self, who: &Principal, run_id: Uuid) -> Result<Option<RunRecord>> {
        self.stored(&[run_id]).await;
        let answered = self.catalog().runs().get(who, run_id).await?;
        if answered.status != RunStatus::Success {
            return Ok(None);
        }
        let Some(cancelled) = cancelled_record(answered)? else { return Ok(None) };
        let is_stored = self.catalog().runs().change_end(who, RunStatus::Success, &cancelled).await?;
        Ok(is_stored.then_some(cancelled))
    }
}

/// Returns an answered run as cancelled now; `None` where its log has no end. Errors: `internal` for a log that cannot be read.
fn cancelled_record(answered: RunRecord) -> Result<Option<RunRecord>> {
    let mut events = events_of(&answered)?;
    let Some(EventKind::RunFinished(mut finished)) = events.pop().map(|last| last.kind) else { return Ok(None) };
    finished.outcome = RunOutcome::Cancelled;
    let finished_at = Utc::now().max(answered.started_at);
    let kinds = [
        EventKind::RunError {
            code: RunErrorCode::Internal,
            message: "the run was cancelled before its question was answered".to_owned(),
            detail_code: CANCELLED_CODE.to_owned(),
        },
        EventKind::RunFinished(finished),
    ];
    for kind in kinds {
        events.push(RunEvent { seq: events.len() as u64, at: finished_at.trunc_subsecs(3), kind });
    }
    Ok(Some(RunRecord {
        status: RunStatus::Cancelled,
        finished_at: Some(finished_at),
        trace_json: encode_trace(&events),
        events_json: encode_log(&events),
        ..answered
    }))
}
