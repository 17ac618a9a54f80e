//! Tool calls that a run leaves to others: to a person who approves or denies them, or to the client's own program. A
//! call is decided once, and its result is kept, so that nothing runs twice.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::connection::{DatabaseResult, OptionalRow, StoreConnection, StoreRow, params};
use crate::error::{CatalogError, Result};
use crate::model::ConversationKey;
use crate::principal::Principal;
use crate::runs::{self, RunRecord, RunTurn};
use crate::store::Store;
use crate::store::ownership::{owner_filter, require_run};
use crate::store::rows::{read_conversation_key, read_uuid, time_from_micros, unreadable};

const COLUMNS: &str = "call_id, kind, subject, run_id, space, conversation_id, tool, state, decided_at, \
    arguments_json, decision_json, receipt_json";

/// Who has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PendingKind {
    /// A person: the call runs here once approved.
    Approval,
    /// The client: the call runs there, and its result comes back.
    ClientTool,
}

impl PendingKind {
    const ALL: [Self; 2] = [Self::Approval, Self::ClientTool];

    /// The kind in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            PendingKind::Approval => "approval",
            PendingKind::ClientTool => "client_tool",
        }
    }
}

/// The state of a pending call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PendingState {
    /// Not decided yet.
    Waiting,
    /// It may run.
    Approved,
    /// It may not.
    Denied,
    /// The client sent its result.
    Answered,
    /// The conversation continued without it.
    Abandoned,
}

impl PendingState {
    const ALL: [Self; 5] = [Self::Waiting, Self::Approved, Self::Denied, Self::Answered, Self::Abandoned];

    /// The state in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            PendingState::Waiting => "waiting",
            PendingState::Approved => "approved",
            PendingState::Denied => "denied",
            PendingState::Answered => "answered",
            PendingState::Abandoned => "abandoned",
        }
    }
}

/// A stored call. Fields that end with `_json` hold JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingCall {
    /// The approval request's id, or the tool call's.
    pub call_id: String,
    /// Who has to act.
    pub kind: PendingKind,
    /// [`Principal::subject`] of its run's owner.
    pub subject: String,
    /// The run that made the call.
    pub run_id: Uuid,
    /// The run's conversation.
    pub conversation: Option<ConversationKey>,
    /// The tool to call.
    pub tool: String,
    /// Its arguments.
    pub arguments_json: String,
    /// Its state.
    pub state: PendingState,
    /// When it was decided.
    pub decided_at: Option<DateTime<Utc>>,
    /// The decision as received: the reason, or the client's result.
    pub decision_json: Option<String>,
    /// The result of the call.
    pub receipt_json: Option<String>,
}

/// The outcome of deciding a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Decided now, by this caller, which is the only one that may act on it.
    Now(PendingCall),
    /// Decided before; nothing was changed.
    Before(PendingCall),
}

/// A decision on a waiting call, on which a run acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingDecision {
    /// The call's id.
    pub call_id: String,
    /// What was decided.
    pub state: PendingState,
    /// The decision as it is kept.
    pub decision_json: String,
}

/// What came of beginning a run that acts on decisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecidedRun {
    /// The decisions and the run are stored.
    Begun,
    /// Another server has a run in progress in its conversation; nothing was stored.
    ConversationBusy,
    /// A call was decided before; nothing was stored.
    DecidedBefore {
        /// Its id.
        call_id: String,
    },
}

/// Pending calls. Made by [`Catalog::pending_calls`](crate::Catalog::pending_calls).
#[derive(Clone, Copy)]
pub struct CatalogPendingCalls<'a> {
    pub(crate) store: &'a Store,
}

impl CatalogPendingCalls<'_> {
    /// Stores calls of a run: all of them, or none. Errors: `item_exists` for an id that exists already,
    /// `run_not_found` where the run belongs to another subject.
    pub async fn insert(self, calls: &[PendingCall]) -> Result<()> {
        let calls = calls.to_vec();
        self.store.write_rows(move |connection| insert(connection, &calls)).await
    }

    /// Returns a call, decided or not. Errors: `pending_call_not_found`, also for callers other than its owner and
    /// administrators.
    pub async fn get(self, who: &Principal, call_id: &str) -> Result<PendingCall> {
        let (who, call_id) = (who.clone(), call_id.to_string());
        self.store.read(move |connection| get(connection, &who, &call_id)).await
    }

    /// The calls of a run, decided or not, in the order of storing. Errors: `run_not_found`.
    pub async fn of_run(self, who: &Principal, run_id: Uuid) -> Result<Vec<PendingCall>> {
        let who = who.clone();
        self.store.read(move |connection| of_run(connection, &who, run_id)).await
    }

    /// Decides a waiting call. Of several concurrent callers exactly one gets [`Decision::Now`]. Errors:
    /// `pending_call_not_found`; `invalid_object` for [`PendingState::Waiting`], which is no decision.
    pub async fn decide(
        self,
        who: &Principal,
        call_id: &str,
        state: PendingState,
        decision_json: &str,
    ) -> Result<Decision> {
        let (who, call_id, decision_json) = (who.clone(), call_id.to_string(), decision_json.to_string());
        self.store.write_rows(move |connection| decide(connection, &who, &call_id, state, &decision_json)).await
    }

    /// Decides waiting calls and stores the run that acts on them: all of it, or nothing. So no decision is kept that no run
    /// acts on, and a conversation that servers share has one run. Errors: as those of [`CatalogPendingCalls::decide`] and
    /// [`CatalogRuns::insert`](crate::CatalogRuns::insert).
    pub async fn begin_run(
        self,
        who: &Principal,
        run: &RunRecord,
        decisions: Vec<PendingDecision>,
    ) -> Result<DecidedRun> {
        let (who, run, member) = (who.clone(), run.clone(), self.store.member().map(str::to_owned));
        self.store.write_rows(move |connection| begin_run(connection, &who, &run, member.as_deref(), &decisions)).await
    }

    /// Stores the result of a call. Errors: `pending_call_not_found`.
    pub async fn put_receipt(self, call_id: &str, receipt_json: &str) -> Result<()> {
        let (call_id, receipt_json) = (call_id.to_string(), receipt_json.to_string());
        self.store.write_rows(move |connection| put_receipt(connection, &call_id, &receipt_json)).await
    }
}

fn insert(connection: &StoreConnection, calls: &[PendingCall]) -> Result<()> {
    let mut statement = connection.prepare_cached(&format!(
        "INSERT INTO querent_pending_call ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (call_id) DO NOTHING"
    ))?;
    for call in calls {
        require_run(connection, Some(&call.subject), call.run_id)?;
        let inserted = statement.execute(params![
            call.call_id,
            call.kind.as_str(),
            call.subject,
            call.run_id.to_string(),
            call.conversation.as_ref().map(|key| &key.space),
            call.conversation.as_ref().map(|key| &key.id),
            call.tool,
            call.state.as_str(),
            call.decided_at.map(|time| time.timestamp_micros()),
            call.arguments_json,
            call.decision_json,
            call.receipt_json,
        ])?;
        if inserted == 0 {
            return Err(CatalogError::ItemExists { what: "pending call", id: call.call_id.clone() });
        }
    }
    Ok(())
}

fn get(connection: &StoreConnection, who: &Principal, call_id: &str) -> Result<PendingCall> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM querent_pending_call WHERE call_id = ?1 AND (?2 IS NULL OR subject = ?2)"
        ))?
        .query_row(params![call_id, owner_filter(who)], read)
        .optional()?
        .ok_or_else(|| not_found(call_id))
}

fn of_run(connection: &StoreConnection, who: &Principal, run_id: Uuid) -> Result<Vec<PendingCall>> {
    require_run(connection, owner_filter(who), run_id)?;
    let mut statement = connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM querent_pending_call WHERE run_id = ?1 ORDER BY rowid"))?;
    let rows = statement.query_map([run_id.to_string()], read)?;
    Ok(rows.collect::<DatabaseResult<_>>()?)
}

/// Runs in a write transaction; only one is active at a time.
fn decide(
    connection: &StoreConnection,
    who: &Principal,
    call_id: &str,
    state: PendingState,
    decision_json: &str,
) -> Result<Decision> {
    if state == PendingState::Waiting {
        let reason = "a call that was decided does not wait again".to_string();
        return Err(CatalogError::InvalidObject { what: "decision", reason });
    }
    let decided = connection
        .prepare_cached(
            "UPDATE querent_pending_call SET state = ?3, decision_json = ?4, decided_at = ?5
             WHERE call_id = ?1 AND (?2 IS NULL OR subject = ?2) AND state = 'waiting'",
        )?
        .execute(params![call_id, owner_filter(who), state.as_str(), decision_json, Utc::now().timestamp_micros()])?;
    let call = get(connection, who, call_id)?;
    Ok(if decided > 0 { Decision::Now(call) } else { Decision::Before(call) })
}

fn begin_run(
    connection: &StoreConnection,
    who: &Principal,
    run: &RunRecord,
    member: Option<&str>,
    decisions: &[PendingDecision],
) -> Result<DecidedRun> {
    // Looked at before anything is written, since what this returns is committed.
    if runs::turn_of(connection, run, member, None)? == RunTurn::ConversationBusy {
        return Ok(DecidedRun::ConversationBusy);
    }
    for (index, PendingDecision { call_id, .. }) in decisions.iter().enumerate() {
        let is_repeated = decisions.iter().take(index).any(|earlier| earlier.call_id == *call_id);
        if is_repeated || get(connection, who, call_id)?.state != PendingState::Waiting {
            return Ok(DecidedRun::DecidedBefore { call_id: call_id.clone() });
        }
    }
    for PendingDecision { call_id, state, decision_json } in decisions {
        decide(connection, who, call_id, *state, decision_json)?;
    }
    runs::insert(connection, run, member).map(|()| DecidedRun::Begun)
}

fn put_receipt(connection: &StoreConnection, call_id: &str, receipt_json: &str) -> Result<()> {
    let kept = connection
        .prepare_cached("UPDATE querent_pending_call SET receipt_json = ?2 WHERE call_id = ?1")?
        .execute([call_id, receipt_json])?;
    match kept {
        0 => Err(not_found(call_id)),
        _ => Ok(()),
    }
}

fn read(row: &StoreRow<'_>) -> DatabaseResult<PendingCall> {
    let (kind, state): (String, String) = (row.get(1)?, row.get(7)?);
    let known_kind = PendingKind::ALL.into_iter().find(|known| known.as_str() == kind);
    let known_state = PendingState::ALL.into_iter().find(|known| known.as_str() == state);
    Ok(PendingCall {
        call_id: row.get(0)?,
        kind: known_kind.ok_or_else(|| unreadable(1, format!("unknown kind of call `{kind}`")))?,
        subject: row.get(2)?,
        run_id: read_uuid(row, 3)?.ok_or_else(|| unreadable(3, "a call without a run"))?,
        conversation: read_conversation_key(row, 4)?,
        tool: row.get(6)?,
        state: known_state.ok_or_else(|| unreadable(7, format!("unknown state of a call `{state}`")))?,
        decided_at: row.get::<Option<i64>>(8)?.and_then(time_from_micros),
        arguments_json: row.get(9)?,
        decision_json: row.get(10)?,
        receipt_json: row.get(11)?,
    })
}

fn not_found(call_id: &str) -> CatalogError {
    CatalogError::PendingCallNotFound { id: call_id.to_string() }
}
