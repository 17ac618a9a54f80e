//! Stored agent runs: who asked what, how the run went, and the logs needed to show and to continue it. Runs are
//! visible to their owner and to administrators of all databases. Listings never read the logs. Logs hold rows that the run
//! read: a reader who may not read as much as its caller could is not given them (`store/ownership.rs`).

mod changed_end;
mod removal;
mod restarted;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::connection::{DatabaseResult, OptionalRow, StoreConnection, StoreRow, params};
use crate::error::Result;
use crate::model::{ConversationKey, Page, PageRequest, PageToken};
use crate::policy::{ReadReach, Rights};
use crate::principal::Principal;
use crate::store::Store;
use crate::store::ownership::{
    keep_reach, may_read_run, owner_filter, require_readable_run, run_not_found, touch_conversation,
};
use crate::store::rows::{
    MAX_PAGE, as_limit, parse_token, read_conversation_key, read_time, read_uuid, time_from_micros, unreadable,
};

pub(crate) use removal::purge;

const WHOLE: &str = "run_id, subject, question, model_id, status, started_at, finished_at, protocol, space, \
    conversation_id, previous_run_id, invocation_id, retained, usage_json, trace_json, events_json, messages_json";
const WITH_EVENTS: &str = "run_id, subject, question, model_id, status, started_at, finished_at, protocol, space, \
    conversation_id, previous_run_id, invocation_id, retained, usage_json, '', events_json, ''";
const WITHOUT_LOGS: &str = "run_id, subject, question, model_id, status, started_at, finished_at, protocol, space, \
    conversation_id, previous_run_id, invocation_id, retained, usage_json, '', '', ''";

/// An agent run's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Not finished.
    Running,
    /// Answered.
    Success,
    /// Failed.
    Error,
    /// Out of time or tool calls.
    BudgetExceeded,
    /// Stopped by its owner, an administrator, a client that went away or a shutdown.
    Cancelled,
    /// Waits for a decision or a client's result; another run continues from here.
    Paused,
}

impl RunStatus {
    /// The status in the store and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            RunStatus::Running => "running",
            RunStatus::Success => "success",
            RunStatus::Error => "error",
            RunStatus::BudgetExceeded => "budget_exceeded",
            RunStatus::Cancelled => "cancelled",
            RunStatus::Paused => "paused",
        }
    }
}

/// A stored run. Fields that end with `_json` hold JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// UUIDv7.
    pub run_id: Uuid,
    /// [`crate::principal::Principal::subject`] of the asker.
    pub subject: String,
    /// The question, trimmed.
    pub question: String,
    /// Model name.
    pub model_id: String,
    /// Its state.
    pub status: RunStatus,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// The protocol of the request: `ask`, `responses`, `chat`, `ksadk`, `adk`, `cube`, `holmes`.
    pub protocol: String,
    /// The conversation that it is a turn of.
    pub conversation: Option<ConversationKey>,
    /// The run it continues.
    pub previous_run_id: Option<Uuid>,
    /// The caller's own id of the run.
    pub invocation_id: Option<String>,
    /// Whether it may be retrieved and continued by itself; of one that ends without, only the trace is kept.
    pub retained: bool,
    /// `{tool_calls, elapsed_ms, input_tokens, output_tokens}`.
    pub usage_json: String,
    /// How the run went, in the format of whoever wrote it: stored and returned as it is, never read here.
    pub trace_json: String,
    /// Every event of the run, in order: `[...]`.
    pub events_json: String,
    /// The model's messages at the end of the run: `[...]`.
    pub messages_json: String,
    /// What its caller could read, when it is stored; `None` where nobody said, and when it is read.
    pub reach: Option<ReadReach>,
}

impl RunRecord {
    /// A new run of the ask protocol: running, retained, in no conversation, with empty logs.
    pub fn new(
        run_id: Uuid,
        subject: impl Into<String>,
        question: impl Into<String>,
        model_id: impl Into<String>,
        started_at: DateTime<Utc>,
    ) -> Self {
        Self {
            run_id,
            subject: subject.into(),
            question: question.into(),
            model_id: model_id.into(),
            status: RunStatus::Running,
            started_at,
            finished_at: None,
            protocol: "ask".into(),
            conversation: None,
            previous_run_id: None,
            invocation_id: None,
            retained: true,
            usage_json: "{}".into(),
            trace_json: "[]".into(),
            events_json: "[]".into(),
            messages_json: "[]".into(),
            reach: None,
        }
    }

    /// Whether its log is kept once it has ended: it may be retrieved by itself, or it is a turn of a conversation.
    pub fn keeps_log(&self) -> bool {
        self.retained || self.conversation.is_some()
    }

    /// Takes the logs away from a reader who may not read what the run read.
    fn withhold(&mut self) {
        for log in [&mut self.trace_json, &mut self.events_json, &mut self.messages_json] {
            "[]".clone_into(log);
        }
    }
}

/// What came of storing a run that others may be in the way of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunTurn {
    /// It is stored.
    Stored,
    /// Another server has a run in progress in its conversation.
    ConversationBusy,
    /// Its subject has as many runs in progress as it may.
    TooMany,
}

/// Agent runs. Made by [`Catalog::runs`](crate::Catalog::runs).
#[derive(Clone, Copy)]
pub struct CatalogRuns<'a> {
    pub(crate) store: &'a Store,
}

impl CatalogRuns<'_> {
    /// Stores a new run and marks its conversation as used. Durable when it returns. Errors: `conversation_not_found`
    /// when the run's conversation does not exist or belongs to another subject.
    pub async fn insert(self, run: &RunRecord) -> Result<()> {
        let (run, member) = (run.clone(), self.store.member().map(str::to_owned));
        self.store.write_rows(move |connection| insert(connection, &run, member.as_deref())).await
    }

    /// As [`CatalogRuns::insert`], unless another run is in the way on the servers that share the catalog: of the conversation on
    /// another one, or `most` of the subject on all of them.
    pub async fn insert_in_turn(self, run: &RunRecord, most: Option<usize>) -> Result<RunTurn> {
        let (run, member) = (run.clone(), self.store.member().map(str::to_owned));
        self.store
            .write_rows(move |connection| {
                let turn = turn_of(connection, &run, member.as_deref(), most)?;
                if turn == RunTurn::Stored {
                    insert(connection, &run, member.as_deref())?;
                }
                Ok(turn)
            })
            .await
    }

    /// Returns what [`CatalogRuns::insert_in_turn`] would do with a run now, and stores nothing: what waits for its turn asks so,
    /// since reads wait for nobody.
    pub async fn turn(self, run: &RunRecord, most: Option<usize>) -> Result<RunTurn> {
        let (run, member) = (run.clone(), self.store.member().map(str::to_owned));
        self.store.read(move |connection| turn_of(connection, &run, member.as_deref(), most)).await
    }

    /// Sets status, end, usage, trace, events and messages. Durable when it returns. Errors: `run_not_found`, also
    /// when the run was deleted meanwhile, and where it has ended by another server, which took this one for lost.
    pub async fn update(self, run: &RunRecord) -> Result<()> {
        let run = run.clone();
        self.store.write_rows(move |connection| update(connection, &run)).await
    }

    /// Returns a run with its logs. Errors: `run_not_found`, also for callers other than its owner and administrators;
    /// `run_withheld` for its owner who may not read any more what the run may have read.
    pub async fn get(self, who: &Principal, run_id: Uuid) -> Result<RunRecord> {
        let reader = self.reader(who);
        self.store.read(move |connection| get(connection, &reader, run_id)).await
    }

    /// Returns only the trace of a run; `None` where [`CatalogRuns::get`] returns no run.
    pub async fn trace(self, who: &Principal, run_id: Uuid) -> Result<Option<String>> {
        let reader = self.reader(who);
        self.store.read(move |connection| trace(connection, &reader, run_id)).await
    }

    fn reader(self, who: &Principal) -> RunReader {
        RunReader { who: who.clone(), reach: Rights::new(who, &self.store.policies()).reach() }
    }

    /// Lists runs, newest first, with trace, events and messages left empty.
    pub async fn list(self, who: &Principal, page: PageRequest) -> Result<Page<RunRecord>> {
        let who = who.clone();
        self.store.read(move |connection| list(connection, &who, &page)).await
    }

    /// The newest `limit` runs of a conversation with their logs, oldest first; those that are withheld have empty logs.
    pub async fn of_conversation(self, who: &Principal, key: &ConversationKey, limit: usize) -> Result<Vec<RunRecord>> {
        let (reader, key) = (self.reader(who), key.clone());
        self.store.read(move |connection| of_conversation(connection, &reader, &key, limit)).await
    }

    /// The newest run of a conversation with its logs, whatever its status.
    pub async fn last_of_conversation(self, who: &Principal, key: &ConversationKey) -> Result<Option<RunRecord>> {
        Ok(self.of_conversation(who, key, 1).await?.pop())
    }

    /// As [`CatalogRuns::last_of_conversation`], and `None` also where that run is withheld.
    pub async fn last_readable_of_conversation(
        self,
        who: &Principal,
        key: &ConversationKey,
    ) -> Result<Option<RunRecord>> {
        let (reader, key) = (self.reader(who), key.clone());
        self.store
            .read(move |connection| {
                let last = of_conversation(connection, &reader, &key, 1)?.pop();
                let Some(run) = last else { return Ok(None) };
                Ok(may_read_run(connection, &reader.reach, run.run_id)?.then_some(run))
            })
            .await
    }

    /// The newest run of an invocation with its logs. Errors: `run_withheld`.
    pub async fn of_invocation(self, who: &Principal, invocation_id: &str) -> Result<Option<RunRecord>> {
        let (reader, invocation_id) = (self.reader(who), invocation_id.to_string());
        self.store.read(move |connection| of_invocation(connection, &reader, &invocation_id)).await
    }

    /// The newest run of an invocation in a conversation, without its logs.
    pub async fn of_invocation_in_conversation(
        self,
        who: &Principal,
        key: &ConversationKey,
        invocation_id: &str,
    ) -> Result<Option<RunRecord>> {
        let (who, key, invocation_id) = (who.clone(), key.clone(), invocation_id.to_string());
        self.store.read(move |connection| in_conversation(connection, &who, &key, &invocation_id)).await
    }

    /// The newest runs of a conversation with their events but without traces and messages, oldest first: `limit` of
    /// them at most, and no more than the newest one beyond `max_bytes` of events; those that are withheld have none.
    pub async fn logs_of_conversation(
        self,
        who: &Principal,
        key: &ConversationKey,
        limit: usize,
        max_bytes: usize,
    ) -> Result<Vec<RunRecord>> {
        let (reader, key) = (self.reader(who), key.clone());
        self.store.read(move |connection| logs_of_conversation(connection, &reader, &key, limit, max_bytes)).await
    }

    /// Returns the `limit` oldest runs that are stored as running, with their logs: of anybody, for the process that has
    /// the folder and is to end those of an earlier one. Those of other servers that share the catalog are not among them.
    pub async fn running(self, limit: usize) -> Result<Vec<RunRecord>> {
        let member = self.store.member().map(str::to_owned);
        self.store.read(move |connection| running(connection, member.as_deref(), limit)).await
    }

    /// As [`CatalogRuns::running`], of another server that shares the catalog and is lost.
    pub async fn running_on(self, member: &str, limit: usize) -> Result<Vec<RunRecord>> {
        let member = member.to_owned();
        self.store.read(move |connection| running(connection, Some(&member), limit)).await
    }

    /// Ends a run that is stored as running on `member`, as [`CatalogRuns::update`] does. Returns whether it was still running:
    /// of several servers that end it, one does.
    pub async fn end_on(self, member: &str, run: &RunRecord) -> Result<bool> {
        let (member, run) = (member.to_owned(), run.clone());
        self.store
            .write_rows(move |connection| {
                Ok(is_running_on(connection, &member, run.run_id)? && update(connection, &run).map(|()| true)?)
            })
            .await
    }

    /// Returns the other server that shares the catalog and has a run in progress; `None` for one that is not in progress, and
    /// for those of this server.
    pub async fn server_of(self, run_id: Uuid) -> Result<Option<String>> {
        let Some(own) = self.store.member().map(str::to_owned) else { return Ok(None) };
        self.store.read(move |connection| server_of(connection, &own, run_id)).await
    }

    /// Whether another server that shares the catalog has a run in progress in a conversation.
    pub async fn is_busy_elsewhere(self, key: &ConversationKey) -> Result<bool> {
        let Some(own) = self.store.member().map(str::to_owned) else { return Ok(false) };
        let key = key.clone();
        self.store.read(move |connection| is_busy_elsewhere(connection, &own, &key)).await
    }
}

/// Who reads runs, and what it can read under the policy that holds.
struct RunReader {
    who: Principal,
    reach: ReadReach,
}

impl RunReader {
    /// Errors: `run_withheld`.
    fn require(&self, connection: &StoreConnection, run: RunRecord) -> Result<RunRecord> {
        require_readable_run(connection, &self.reach, run.run_id).map(|()| run)
    }

    fn without_withheld_logs(&self, connection: &StoreConnection, mut run: RunRecord) -> Result<RunRecord> {
        if !may_read_run(connection, &self.reach, run.run_id)? {
            run.withhold();
        }
        Ok(run)
    }
}

/// What is to come of a run: [`RunTurn::Stored`] where nothing is in its way.
pub(crate) fn turn_of(
    connection: &StoreConnection,
    run: &RunRecord,
    member: Option<&str>,
    most: Option<usize>,
) -> Result<RunTurn> {
    if let (Some(key), Some(own)) = (&run.conversation, member)
        && is_busy_elsewhere(connection, own, key)?
    {
        return Ok(RunTurn::ConversationBusy);
    }
    if let Some(most) = most
        && running_of(connection, &run.subject)? >= most as u64
    {
        return Ok(RunTurn::TooMany);
    }
    Ok(RunTurn::Stored)
}

pub(crate) fn insert(connection: &StoreConnection, run: &RunRecord, member: Option<&str>) -> Result<()> {
    if let Some(key) = &run.conversation {
        touch_conversation(connection, key, &run.subject, run.started_at)?;
    }
    connection
        .prepare_cached(&format!(
            "INSERT INTO querent_run ({WHOLE}, member) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        ))?
        .execute(params![
            run.run_id.to_string(),
            run.subject,
            run.question,
            run.model_id,
            run.status.as_str(),
            run.started_at.timestamp_micros(),
            run.finished_at.map(|time| time.timestamp_micros()),
            run.protocol,
            run.conversation.as_ref().map(|key| &key.space),
            run.conversation.as_ref().map(|key| &key.id),
            run.previous_run_id.map(|run_id| run_id.to_string()),
            run.invocation_id,
            run.retained,
            run.usage_json,
            run.trace_json,
            run.events_json,
            run.messages_json,
            member,
        ])?;
    if let Some(reach) = &run.reach {
        keep_reach(connection, run.run_id, reach)?;
    }
    Ok(())
}

fn update(connection: &StoreConnection, run: &RunRecord) -> Result<()> {
    let updated = connection
        .prepare_cached(
            "UPDATE querent_run SET status = ?2, finished_at = ?3, usage_json = ?4, trace_json = ?5, events_json = ?6,
                 messages_json = ?7 WHERE run_id = ?1 AND (status = 'running' OR (status = ?2 AND finished_at = ?3))",
        )?
        .execute(params![
            run.run_id.to_string(),
            run.status.as_str(),
            run.finished_at.map(|time| time.timestamp_micros()),
            run.usage_json,
            run.trace_json,
            run.events_json,
            run.messages_json,
        ])?;
    match updated {
        0 => Err(run_not_found(run.run_id)),
        _ => Ok(()),
    }
}

fn get(connection: &StoreConnection, reader: &RunReader, run_id: Uuid) -> Result<RunRecord> {
    let run = connection
        .prepare_cached(&format!("SELECT {WHOLE} FROM querent_run WHERE run_id = ?1 AND (?2 IS NULL OR subject = ?2)"))?
        .query_row(params![run_id.to_string(), owner_filter(&reader.who)], read)
        .optional()?;
    reader.require(connection, run.ok_or_else(|| run_not_found(run_id))?)
}

fn trace(connection: &StoreConnection, reader: &RunReader, run_id: Uuid) -> Result<Option<String>> {
    let trace = connection
        .prepare_cached("SELECT trace_json FROM querent_run WHERE run_id = ?1 AND (?2 IS NULL OR subject = ?2)")?
        .query_row(params![run_id.to_string(), owner_filter(&reader.who)], |row| row.get(0))
        .optional()?;
    Ok(if may_read_run(connection, &reader.reach, run_id)? { trace } else { None })
}

fn list(connection: &StoreConnection, who: &Principal, page: &PageRequest) -> Result<Page<RunRecord>> {
    let limit = page.limit.clamp(1, MAX_PAGE);
    let (before_time, before_id) = match &page.after {
        Some(token) => parse_token(token, "run listing")?,
        None => (i64::MAX, String::new()),
    };
    // Two statements, so that each is a walk along one index.
    let mine = if owner_filter(who).is_some() { "subject = ?4 AND" } else { "?4 IS NULL AND" };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {WITHOUT_LOGS} FROM querent_run WHERE {mine} (started_at, run_id) < (?1, ?2)
         ORDER BY started_at DESC, run_id DESC LIMIT ?3"
    ))?;
    let rows = statement.query_map(params![before_time, before_id, as_limit(limit + 1), owner_filter(who)], read)?;
    let token = |last: &RunRecord| PageToken(format!("{}.{}", last.started_at.timestamp_micros(), last.run_id));
    Ok(Page::cut(rows.collect::<DatabaseResult<_>>()?, limit, token))
}

fn of_conversation(
    connection: &StoreConnection,
    reader: &RunReader,
    key: &ConversationKey,
    limit: usize,
) -> Result<Vec<RunRecord>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {WHOLE} FROM querent_run WHERE space = ?1 AND conversation_id = ?2 AND (?3 IS NULL OR subject = ?3)
         ORDER BY started_at DESC, run_id DESC LIMIT ?4"
    ))?;
    let owner = owner_filter(&reader.who);
    let rows = statement.query_map(params![key.space, key.id, owner, as_limit(limit.min(MAX_PAGE))], read)?;
    let runs = rows.map(|run| reader.without_withheld_logs(connection, run?));
    let mut runs: Vec<RunRecord> = runs.collect::<Result<_>>()?;
    runs.reverse();
    Ok(runs)
}

fn of_invocation(connection: &StoreConnection, reader: &RunReader, invocation_id: &str) -> Result<Option<RunRecord>> {
    let run = connection
        .prepare_cached(&format!(
            "SELECT {WHOLE} FROM querent_run WHERE invocation_id = ?1 AND (?2 IS NULL OR subject = ?2)
             ORDER BY started_at DESC LIMIT 1"
        ))?
        .query_row(params![invocation_id, owner_filter(&reader.who)], read)
        .optional()?;
    run.map(|run| reader.require(connection, run)).transpose()
}

fn in_conversation(
    connection: &StoreConnection,
    who: &Principal,
    key: &ConversationKey,
    invocation_id: &str,
) -> Result<Option<RunRecord>> {
    Ok(connection
        .prepare_cached(&format!(
            "SELECT {WITHOUT_LOGS} FROM querent_run WHERE invocation_id = ?1 AND space = ?2 AND conversation_id = ?3
                 AND (?4 IS NULL OR subject = ?4)
             ORDER BY started_at DESC LIMIT 1"
        ))?
        .query_row(params![invocation_id, key.space, key.id, owner_filter(who)], read)
        .optional()?)
}

fn logs_of_conversation(
    connection: &StoreConnection,
    reader: &RunReader,
    key: &ConversationKey,
    limit: usize,
    max_bytes: usize,
) -> Result<Vec<RunRecord>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {WITH_EVENTS} FROM querent_run WHERE space = ?1 AND conversation_id = ?2 AND (?3 IS NULL OR subject = ?3)
         ORDER BY started_at DESC, run_id DESC LIMIT ?4"
    ))?;
    let owner = owner_filter(&reader.who);
    let rows = statement.query_map(params![key.space, key.id, owner, as_limit(limit)], read)?;
    let mut runs: Vec<RunRecord> = Vec::new();
    let mut bytes = 0;
    for run in rows {
        let run = reader.without_withheld_logs(connection, run?)?;
        bytes += run.events_json.len();
        if bytes > max_bytes && !runs.is_empty() {
            break;
        }
        runs.push(run);
    }
    runs.reverse();
    Ok(runs)
}

fn running(connection: &StoreConnection, member: Option<&str>, limit: usize) -> Result<Vec<RunRecord>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {WHOLE} FROM querent_run WHERE status = 'running' AND (member = ?1 OR (?1 IS NULL AND member IS NULL))
         ORDER BY started_at, run_id LIMIT ?2"
    ))?;
    let rows = statement.query_map(params![member, as_limit(limit.min(MAX_PAGE))], read)?;
    Ok(rows.collect::<DatabaseResult<_>>()?)
}

/// Runs in progress of a subject, those of servers that are lost and not yet ended included.
fn running_of(connection: &StoreConnection, subject: &str) -> Result<u64> {
    let count: i64 = connection
        .prepare_cached("SELECT count(*) FROM querent_run WHERE status = 'running' AND subject = ?")?
        .query_row([subject], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

fn is_running_on(connection: &StoreConnection, member: &str, run_id: Uuid) -> Result<bool> {
    Ok(connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM querent_run WHERE run_id = ?1 AND status = 'running' AND member = ?2)",
        )?
        .query_row(params![run_id.to_string(), member], |row| row.get(0))?)
}

fn server_of(connection: &StoreConnection, own: &str, run_id: Uuid) -> Result<Option<String>> {
    Ok(connection
        .prepare_cached("SELECT member FROM querent_run WHERE run_id = ?1 AND status = 'running' AND member <> ?2")?
        .query_row(params![run_id.to_string(), own], |row| row.get(0))
        .optional()?)
}

fn is_busy_elsewhere(connection: &StoreConnection, own: &str, key: &ConversationKey) -> Result<bool> {
    Ok(connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM querent_run WHERE space = ?1 AND conversation_id = ?2 AND status = 'running'
             AND member <> ?3)",
        )?
        .query_row(params![key.space, key.id, own], |row| row.get(0))?)
}

fn read(row: &StoreRow<'_>) -> DatabaseResult<RunRecord> {
    let status: String = row.get(4)?;
    Ok(RunRecord {
        run_id: read_uuid(row, 0)?.ok_or_else(|| unreadable(0, "a run without an id"))?,
        subject: row.get(1)?,
        question: row.get(2)?,
        model_id: row.get(3)?,
        status: parse_status(&status).ok_or_else(|| unreadable(4, format!("unknown run status `{status}`")))?,
        started_at: read_time(row, 5)?,
        finished_at: row.get::<Option<i64>>(6)?.and_then(time_from_micros),
        protocol: row.get(7)?,
        conversation: read_conversation_key(row, 8)?,
        previous_run_id: read_uuid(row, 10)?,
        invocation_id: row.get(11)?,
        retained: row.get(12)?,
        usage_json: row.get(13)?,
        trace_json: row.get(14)?,
        events_json: row.get(15)?,
        messages_json: row.get(16)?,
        reach: None,
    })
}

fn parse_status(text: &str) -> Option<RunStatus> {
    let all = [
        RunStatus::Running,
        RunStatus::Success,
        RunStatus::Error,
        RunStatus::BudgetExceeded,
        RunStatus::Cancelled,
        RunStatus::Paused,
    ];
    all.into_iter().find(|status| status.as_str() == text)
}
