//! Agent runs as stored: who asked what, how it went, the whole trace. Visible to their owner and to administrators.

use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;

use crate::{CatalogError, Page, PageRequest, PageToken, Principal, Result, Role, RunRecord, RunStatus};

/// The most items of a page.
const MAX_PAGE: usize = 10_000;
const COLUMNS: &str = "run_id, subject, question, model_id, status, started_at, finished_at, usage_json, trace_json";
const COLUMNS_WITHOUT_TRACE: &str =
    "run_id, subject, question, model_id, status, started_at, finished_at, usage_json, ''";

pub(crate) fn insert(connection: &Connection, run: &RunRecord) -> Result<()> {
    connection.prepare_cached("INSERT INTO querent_run VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")?.execute(params![
        run.run_id.to_string(),
        run.subject,
        run.question,
        run.model_id,
        run.status.as_str(),
        run.started_at.timestamp_micros(),
        run.finished_at.map(|time| time.timestamp_micros()),
        run.usage_json,
        run.trace_json,
    ])?;
    Ok(())
}

pub(crate) fn update(connection: &Connection, run: &RunRecord) -> Result<()> {
    let updated = connection
        .prepare_cached(
            "UPDATE querent_run SET status = ?2, finished_at = ?3, usage_json = ?4, trace_json = ?5 WHERE run_id = ?1",
        )?
        .execute(params![
            run.run_id.to_string(),
            run.status.as_str(),
            run.finished_at.map(|time| time.timestamp_micros()),
            run.usage_json,
            run.trace_json,
        ])?;
    match updated {
        0 => Err(not_found(run.run_id)),
        _ => Ok(()),
    }
}

pub(crate) fn get(connection: &Connection, who: &Principal, run_id: Uuid) -> Result<RunRecord> {
    let run = connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM querent_run WHERE run_id = ?1 AND (?2 IS NULL OR subject = ?2)"
        ))?
        .query_row(params![run_id.to_string(), owner(who)], read)
        .optional()?;
    run.ok_or_else(|| not_found(run_id))
}

/// Newest first, without traces.
pub(crate) fn list(connection: &Connection, who: &Principal, page: &PageRequest) -> Result<Page<RunRecord>> {
    let limit = page.limit.clamp(1, MAX_PAGE);
    let (before_time, before_id) = match &page.after {
        Some(token) => parse_token(token)?,
        None => (i64::MAX, String::new()),
    };
    let mut items = newest(connection, COLUMNS_WITHOUT_TRACE, owner(who), before_time, &before_id, limit + 1)?;
    let has_more = items.len() > limit;
    items.truncate(limit);
    let next = items
        .last()
        .filter(|_| has_more)
        .map(|last| PageToken(format!("{}.{}", last.started_at.timestamp_micros(), last.run_id)));
    Ok(Page { items, next })
}

/// Newest first, whole.
pub(crate) fn scan(connection: &Connection, who: &Principal, limit: usize) -> Result<Vec<RunRecord>> {
    newest(connection, COLUMNS, owner(who), i64::MAX, "", limit)
}

/// Ends the runs that a process which is no more left running.
pub(crate) fn abandon_running(connection: &Connection) -> Result<u64> {
    let abandoned = connection
        .prepare_cached("UPDATE querent_run SET status = ?, finished_at = ? WHERE status = 'running'")?
        .execute(params![RunStatus::Error.as_str(), Utc::now().timestamp_micros()])?;
    Ok(abandoned as u64)
}

fn newest(
    connection: &Connection,
    columns: &str,
    owner: Option<&str>,
    before_time: i64,
    before_id: &str,
    limit: usize,
) -> Result<Vec<RunRecord>> {
    // Two statements, so that each is a walk along one index.
    let mine = if owner.is_some() { "subject = ?4 AND" } else { "?4 IS NULL AND" };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {columns} FROM querent_run WHERE {mine} (started_at, run_id) < (?1, ?2)
         ORDER BY started_at DESC, run_id DESC LIMIT ?3"
    ))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![before_time, before_id, limit, owner], read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The only subject whose runs `who` may see; `None` for an administrator.
fn owner(who: &Principal) -> Option<&str> {
    (who.role() < Role::Admin).then(|| who.subject())
}

fn parse_token(token: &PageToken) -> Result<(i64, String)> {
    token.0.split_once('.').and_then(|(time, id)| Some((time.parse().ok()?, id.to_string()))).ok_or_else(|| {
        CatalogError::InvalidName { name: token.0.clone(), reason: "it is not a page token of a run listing".into() }
    })
}

fn read(row: &Row<'_>) -> rusqlite::Result<RunRecord> {
    let run_id: String = row.get(0)?;
    let status: String = row.get(4)?;
    Ok(RunRecord {
        run_id: Uuid::parse_str(&run_id).map_err(|error| unreadable(0, error))?,
        subject: row.get(1)?,
        question: row.get(2)?,
        model_id: row.get(3)?,
        status: parse_status(&status).ok_or_else(|| unreadable(4, format!("unknown run status `{status}`")))?,
        started_at: read_time(row.get(5)?).ok_or_else(|| unreadable(5, "a time out of range"))?,
        finished_at: row.get::<_, Option<i64>>(6)?.and_then(read_time),
        usage_json: row.get(7)?,
        trace_json: row.get(8)?,
    })
}

fn read_time(micros: i64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_micros(micros)
}

fn parse_status(text: &str) -> Option<RunStatus> {
    let all =
        [RunStatus::Running, RunStatus::Success, RunStatus::Error, RunStatus::BudgetExceeded, RunStatus::Cancelled];
    all.into_iter().find(|status| status.as_str() == text)
}

fn unreadable(column: usize, reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, reason.into())
}

fn not_found(run_id: Uuid) -> CatalogError {
    CatalogError::RunNotFound { run_id: run_id.to_string() }
}
