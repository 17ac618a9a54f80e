//! Rows that belong to a subject: who may see a run or a conversation, and what is deleted with it. Runs and
//! conversations name each other in the store only here.
//!
//! A run shows what its caller could read when it ran. It is judged again whenever it is read: by a caller who reaches less by
//! now, by another token of the same name, it is not.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::connection::{OptionalRow, StoreConnection, params};
use crate::error::{CatalogError, Result};
use crate::model::ConversationKey;
use crate::policy::ReadReach;
use crate::principal::{DatabaseScope, Principal, Role};

/// The only subject whose runs, conversations, items and files `who` may see; `None` for an administrator of all databases.
pub(crate) fn owner_filter(who: &Principal) -> Option<&str> {
    let sees_all = who.role() == Role::Admin && *who.scope() == DatabaseScope::All;
    (!sees_all).then(|| who.subject())
}

/// Whether a reader may read what a run read. Of a run whose reach was not kept that is known only where nothing limits the
/// reader.
pub(crate) fn may_read_run(connection: &StoreConnection, reader: &ReadReach, run_id: Uuid) -> Result<bool> {
    Ok(match reach_of_run(connection, run_id)? {
        Some(reach) => reader.covers(&reach),
        None => reader.is_everything(),
    })
}

/// Returns an error unless a reader may read what a run read. Errors: `run_withheld`.
pub(crate) fn require_readable_run(connection: &StoreConnection, reader: &ReadReach, run_id: Uuid) -> Result<()> {
    may_read_run(connection, reader, run_id)?.then_some(()).ok_or_else(|| run_withheld(run_id))
}

/// Keeps what the caller of a run could read.
pub(crate) fn keep_reach(connection: &StoreConnection, run_id: Uuid, reach: &ReadReach) -> Result<()> {
    let text =
        serde_json::to_string(reach).map_err(|error| CatalogError::Internal(format!("rights as JSON: {error}")))?;
    connection
        .prepare_cached(
            "INSERT INTO querent_run_reach (run_id, reach_json) VALUES (?1, ?2)
             ON CONFLICT (run_id) DO UPDATE SET reach_json = ?2",
        )?
        .execute(params![run_id.to_string(), text])?;
    Ok(())
}

/// Returns what the caller of a run could read; `None` where that was not kept.
fn reach_of_run(connection: &StoreConnection, run_id: Uuid) -> Result<Option<ReadReach>> {
    let text: Option<String> = connection
        .prepare_cached("SELECT reach_json FROM querent_run_reach WHERE run_id = ?")?
        .query_row([run_id.to_string()], |row| row.get(0))
        .optional()?;
    // What cannot be read says nothing, and nothing is shown for it.
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

/// Checks that a run exists and, where `owner` is given, is that subject's. Errors: `run_not_found`.
pub(crate) fn require_run(connection: &StoreConnection, owner: Option<&str>, run_id: Uuid) -> Result<()> {
    let exists: bool = connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM querent_run WHERE run_id = ?1 AND (?2 IS NULL OR subject = ?2))")?
        .query_row(params![run_id.to_string(), owner], |row| row.get(0))?;
    exists.then_some(()).ok_or_else(|| run_not_found(run_id))
}

/// Marks a conversation of `subject` as used. Errors: `conversation_not_found`.
pub(crate) fn touch_conversation(
    connection: &StoreConnection,
    key: &ConversationKey,
    subject: &str,
    used_at: DateTime<Utc>,
) -> Result<()> {
    let touched = connection
        .prepare_cached(
            "UPDATE querent_conversation SET updated_at = CASE WHEN updated_at < ?4 THEN ?4 ELSE updated_at END
             WHERE space = ?1 AND id = ?2 AND subject = ?3",
        )?
        .execute(params![key.space, key.id, subject, used_at.timestamp_micros()])?;
    match touched {
        0 => Err(conversation_not_found(key)),
        _ => Ok(()),
    }
}

/// Deletes the items, the pending calls and the feedback of a run that was deleted.
pub(crate) fn delete_run_parts(connection: &StoreConnection, run_id: &str) -> Result<()> {
    connection.prepare_cached("DELETE FROM querent_item WHERE run_id = ?")?.execute([run_id])?;
    connection.prepare_cached("DELETE FROM querent_pending_call WHERE run_id = ?")?.execute([run_id])?;
    connection.prepare_cached("DELETE FROM querent_run_reach WHERE run_id = ?")?.execute([run_id])?;
    connection.prepare_cached("DELETE FROM querent_run_feedback WHERE run_id = ?")?.execute([run_id])?;
    connection.prepare_cached("DELETE FROM querent_query_proposal WHERE run_id = ?")?.execute([run_id])?;
    Ok(())
}

/// The `run_not_found` error.
pub(crate) fn run_not_found(run_id: Uuid) -> CatalogError {
    CatalogError::RunNotFound { run_id: run_id.to_string() }
}

/// The `run_withheld` error.
fn run_withheld(run_id: Uuid) -> CatalogError {
    CatalogError::RunWithheld { run_id: run_id.to_string() }
}

/// The `conversation_not_found` error.
pub(crate) fn conversation_not_found(key: &ConversationKey) -> CatalogError {
    CatalogError::ConversationNotFound { id: key.id.clone() }
}
