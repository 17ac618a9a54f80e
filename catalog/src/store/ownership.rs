//! Rows that belong to a subject: who may see a run or a conversation, and what is deleted with it. Runs and
//! conversations name each other in the store only here.

use chrono::{DateTime, Utc};
use rusqlite::{Connection, params};
use uuid::Uuid;

use crate::error::{CatalogError, Result};
use crate::model::ConversationKey;
use crate::principal::{Principal, Role};

/// The only subject whose runs, conversations, items and files `who` may see; `None` for an administrator.
pub(crate) fn owner_filter(who: &Principal) -> Option<&str> {
    (who.role() < Role::Admin).then(|| who.subject())
}

/// Checks that a run exists and, where `owner` is given, is that subject's. Errors: `run_not_found`.
pub(crate) fn require_run(connection: &Connection, owner: Option<&str>, run_id: Uuid) -> Result<()> {
    let exists: bool = connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM querent_run WHERE run_id = ?1 AND (?2 IS NULL OR subject = ?2))")?
        .query_row(params![run_id.to_string(), owner], |row| row.get(0))?;
    exists.then_some(()).ok_or_else(|| run_not_found(run_id))
}

/// Marks a conversation of `subject` as used. Errors: `conversation_not_found`.
pub(crate) fn touch_conversation(
    connection: &Connection,
    key: &ConversationKey,
    subject: &str,
    used_at: DateTime<Utc>,
) -> Result<()> {
    let touched = connection
        .prepare_cached(
            "UPDATE querent_conversation SET updated_at = max(updated_at, ?4)
             WHERE space = ?1 AND id = ?2 AND subject = ?3",
        )?
        .execute(params![key.space, key.id, subject, used_at.timestamp_micros()])?;
    match touched {
        0 => Err(conversation_not_found(key)),
        _ => Ok(()),
    }
}

/// Deletes the items, the pending calls and the feedback of a run that was deleted.
pub(crate) fn delete_run_parts(connection: &Connection, run_id: &str) -> Result<()> {
    connection.prepare_cached("DELETE FROM querent_item WHERE run_id = ?")?.execute([run_id])?;
    connection.prepare_cached("DELETE FROM querent_pending_call WHERE run_id = ?")?.execute([run_id])?;
    connection.prepare_cached("DELETE FROM querent_run_feedback WHERE run_id = ?")?.execute([run_id])?;
    connection.prepare_cached("DELETE FROM querent_query_proposal WHERE run_id = ?")?.execute([run_id])?;
    Ok(())
}

/// The `run_not_found` error.
pub(crate) fn run_not_found(run_id: Uuid) -> CatalogError {
    CatalogError::RunNotFound { run_id: run_id.to_string() }
}

/// The `conversation_not_found` error.
pub(crate) fn conversation_not_found(key: &ConversationKey) -> CatalogError {
    CatalogError::ConversationNotFound { id: key.id.clone() }
}
