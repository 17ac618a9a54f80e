//! Runs that are removed: deleted by whoever they belong to, or kept long enough. A run of a conversation is a turn of it, and
//! may be let go without it.

use uuid::Uuid;

use super::CatalogRuns;
use crate::connection::{DatabaseResult, StoreConnection, params};
use crate::error::Result;
use crate::model::ConversationKey;
use crate::principal::Principal;
use crate::store::ownership::{delete_run_parts, owner_filter};
use crate::store::rows::{as_limit, read_uuid};

impl CatalogRuns<'_> {
    /// Deletes a run with its items and pending calls, running or not. Returns whether there was one.
    pub async fn delete(self, who: &Principal, run_id: Uuid) -> Result<bool> {
        let who = who.clone();
        self.store.write_rows(move |connection| delete(connection, &who, run_id)).await
    }

    /// Makes a run one that is not retained. Its conversation keeps it, logs included, as a turn. Returns whether there was one.
    pub async fn stop_retaining(self, who: &Principal, run_id: Uuid) -> Result<bool> {
        let who = who.clone();
        self.store.write_rows(move |connection| stop_retaining(connection, &who, run_id)).await
    }

    /// The ids of all runs of a conversation, which are deleted with it.
    pub async fn ids_of_conversation(self, who: &Principal, key: &ConversationKey) -> Result<Vec<Uuid>> {
        let (who, key) = (who.clone(), key.clone());
        self.store.read(move |connection| ids_of_conversation(connection, &who, &key)).await
    }
}

fn ids_of_conversation(connection: &StoreConnection, who: &Principal, key: &ConversationKey) -> Result<Vec<Uuid>> {
    let run_ids: Vec<Option<Uuid>> = connection
        .prepare_cached(
            "SELECT run_id FROM querent_run WHERE space = ?1 AND conversation_id = ?2 AND (?3 IS NULL OR subject = ?3)",
        )?
        .query_map(params![key.space, key.id, owner_filter(who)], |row| read_uuid(row, 0))?
        .collect::<DatabaseResult<_>>()?;
    Ok(run_ids.into_iter().flatten().collect())
}

fn stop_retaining(connection: &StoreConnection, who: &Principal, run_id: Uuid) -> Result<bool> {
    let changed = connection
        .prepare_cached("UPDATE querent_run SET retained = ?3 WHERE run_id = ?1 AND (?2 IS NULL OR subject = ?2)")?
        .execute(params![run_id.to_string(), owner_filter(who), false])?;
    Ok(changed > 0)
}

fn delete(connection: &StoreConnection, who: &Principal, run_id: Uuid) -> Result<bool> {
    let deleted = connection
        .prepare_cached("DELETE FROM querent_run WHERE run_id = ?1 AND (?2 IS NULL OR subject = ?2)")?
        .execute(params![run_id.to_string(), owner_filter(who)])?;
    if deleted > 0 {
        delete_run_parts(connection, &run_id.to_string())?;
    }
    Ok(deleted > 0)
}

/// Deletes up to `limit` runs that ended before a time.
pub(crate) fn purge(connection: &StoreConnection, before: i64, limit: usize) -> Result<u64> {
    let run_ids: Vec<String> = connection
        .prepare_cached("SELECT run_id FROM querent_run WHERE finished_at < ?1 LIMIT ?2")?
        .query_map(params![before, as_limit(limit)], |row| row.get(0))?
        .collect::<DatabaseResult<_>>()?;
    for run_id in &run_ids {
        connection.prepare_cached("DELETE FROM querent_run WHERE run_id = ?")?.execute([run_id])?;
        delete_run_parts(connection, run_id)?;
    }
    Ok(run_ids.len() as u64)
}
