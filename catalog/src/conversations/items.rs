//! Items: the messages and tool calls of conversations and runs, by id and in the order in which they were stored. An
//! item belongs to a conversation, a run, or both, and is deleted with either.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Listed, rows};
use crate::connection::{DatabaseResult, OptionalRow, StoreConnection, StoreRow, params};
use crate::error::{CatalogError, Result};
use crate::model::ConversationKey;
use crate::policy::{ReadReach, Rights};
use crate::principal::Principal;
use crate::store::Store;
use crate::store::ownership::{may_read_run, owner_filter, require_readable_run, require_run, touch_conversation};
use crate::store::rows::{MAX_PAGE, as_limit, read_conversation_key, read_time, read_uuid, unreadable};

const COLUMNS: &str = "item_id, subject, space, conversation_id, run_id, role, created_at, item_json";

/// The role of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemRole {
    /// Input of a run.
    Input,
    /// Output of a run.
    Output,
    /// Added to the conversation without a run.
    Added,
    /// Taken out of the conversation: kept so that what its runs said is known to be gone.
    Removed,
}

impl ItemRole {
    const ALL: [Self; 4] = [Self::Input, Self::Output, Self::Added, Self::Removed];

    /// The role in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            ItemRole::Input => "input",
            ItemRole::Output => "output",
            ItemRole::Added => "added",
            ItemRole::Removed => "removed",
        }
    }
}

/// A stored item.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemRecord {
    /// Its id, unique among all items.
    pub item_id: String,
    /// [`Principal::subject`] of its owner, who also owns its conversation and its run.
    pub subject: String,
    /// Its conversation.
    pub conversation: Option<ConversationKey>,
    /// The run that it is input or output of.
    pub run_id: Option<Uuid>,
    /// Its role.
    pub role: ItemRole,
    /// The item itself, as JSON.
    pub item_json: String,
    /// When it was stored.
    pub created_at: DateTime<Utc>,
}

/// Which items to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemScope {
    /// All items of a conversation.
    Conversation(ConversationKey),
    /// The input of a run.
    RunInput(Uuid),
    /// The output of a run.
    RunOutput(Uuid),
}

/// Items of runs and conversations. Made by [`Catalog::items`](crate::Catalog::items).
#[derive(Clone, Copy)]
pub struct CatalogItems<'a> {
    pub(crate) store: &'a Store,
}

impl CatalogItems<'_> {
    /// Stores items in their order: all of them, or none. Errors: `item_exists`; `conversation_not_found` and
    /// `run_not_found` where these belong to another subject; `invalid_object` for an item without conversation and
    /// run.
    pub async fn insert(self, items: &[ItemRecord]) -> Result<()> {
        let items = items.to_vec();
        self.store.write_rows(move |connection| insert(connection, &items)).await
    }

    /// The items of these ids, in order: `None` where there is none that the caller may see.
    pub async fn get(self, who: &Principal, item_ids: &[String]) -> Result<Vec<Option<ItemRecord>>> {
        let (who, item_ids, reach) = (who.clone(), item_ids.to_vec(), self.reach(who));
        self.store
            .read(move |connection| {
                let readable = |found: Option<ItemRecord>| -> Result<Option<ItemRecord>> {
                    let Some(item) = found else { return Ok(None) };
                    Ok(is_readable(connection, &reach, &item)?.then_some(item))
                };
                item_ids.iter().map(|item_id| readable(find(connection, &who, item_id)?)).collect()
            })
            .await
    }

    /// Up to `limit` items that come after the item `after`, in the order of storing or backwards. Errors:
    /// `conversation_not_found`, `run_not_found`, `run_withheld`, and `item_not_found` for `after`. Of a conversation what
    /// runs put out that are withheld is left out.
    pub async fn list(
        self,
        who: &Principal,
        scope: &ItemScope,
        after: Option<&str>,
        limit: usize,
        ascending: bool,
    ) -> Result<Listed<ItemRecord>> {
        let (who, scope, after) = (who.clone(), scope.clone(), after.map(str::to_string));
        let reach = self.reach(&who);
        self.store
            .read(move |connection| {
                if let ItemScope::RunOutput(run_id) = &scope {
                    require_run(connection, owner_filter(&who), *run_id)?;
                    require_readable_run(connection, &reach, *run_id)?;
                }
                let mut listed = list(connection, &who, &scope, after.as_deref(), limit, ascending)?;
                let mut items = Vec::with_capacity(listed.items.len());
                for item in listed.items {
                    if is_readable(connection, &reach, &item)? {
                        items.push(item);
                    }
                }
                listed.items = items;
                Ok(listed)
            })
            .await
    }

    fn reach(self, who: &Principal) -> ReadReach {
        Rights::new(who, &self.store.policies()).reach()
    }

    /// Deletes an item. Returns whether there was one.
    pub async fn delete(self, who: &Principal, item_id: &str) -> Result<bool> {
        let (who, item_id) = (who.clone(), item_id.to_string());
        self.store.write_rows(move |connection| delete(connection, &who, &item_id)).await
    }
}

fn insert(connection: &StoreConnection, items: &[ItemRecord]) -> Result<()> {
    let mut checked = (None, None);
    let mut statement = connection.prepare_cached(&format!(
        "INSERT INTO querent_item ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (item_id) DO NOTHING"
    ))?;
    for item in items {
        // Most often all of them belong to the same conversation and run.
        let belongs_to = (Some((&item.subject, &item.conversation)), Some((&item.subject, item.run_id)));
        if checked != belongs_to {
            check(connection, item)?;
            checked = belongs_to;
        }
        let inserted = statement.execute(params![
            item.item_id,
            item.subject,
            item.conversation.as_ref().map(|key| &key.space),
            item.conversation.as_ref().map(|key| &key.id),
            item.run_id.map(|run_id| run_id.to_string()),
            item.role.as_str(),
            item.created_at.timestamp_micros(),
            item.item_json,
        ])?;
        if inserted == 0 {
            return Err(CatalogError::ItemExists { what: "item", id: item.item_id.clone() });
        }
    }
    Ok(())
}

/// Checks that an item belongs to something, without which it would never be purged, and that this is the subject's
/// own.
fn check(connection: &StoreConnection, item: &ItemRecord) -> Result<()> {
    if item.conversation.is_none() && item.run_id.is_none() {
        let reason = format!("`{}` is of no conversation and no run", item.item_id);
        return Err(CatalogError::InvalidObject { what: "item", reason });
    }
    if let Some(key) = &item.conversation {
        touch_conversation(connection, key, &item.subject, item.created_at)?;
    }
    if let Some(run_id) = item.run_id {
        require_run(connection, Some(&item.subject), run_id)?;
    }
    Ok(())
}

/// Whether a caller may read an item: what a run put out only where it may read what the run read.
fn is_readable(connection: &StoreConnection, reader: &ReadReach, item: &ItemRecord) -> Result<bool> {
    let Some(run_id) = item.run_id.filter(|_| item.role == ItemRole::Output) else { return Ok(true) };
    may_read_run(connection, reader, run_id)
}

fn find(connection: &StoreConnection, who: &Principal, item_id: &str) -> Result<Option<ItemRecord>> {
    Ok(connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM querent_item WHERE item_id = ?1 AND (?2 IS NULL OR subject = ?2)"
        ))?
        .query_row(params![item_id, owner_filter(who)], read)
        .optional()?)
}

fn list(
    connection: &StoreConnection,
    who: &Principal,
    scope: &ItemScope,
    after: Option<&str>,
    limit: usize,
    ascending: bool,
) -> Result<Listed<ItemRecord>> {
    let limit = limit.clamp(1, MAX_PAGE);
    let (within, first, second) = match scope {
        ItemScope::Conversation(key) => {
            rows::get(connection, who, key)?;
            ("space = ?1 AND conversation_id = ?2", key.space.clone(), key.id.clone())
        }
        ItemScope::RunInput(run_id) => of_run(connection, who, *run_id, ItemRole::Input)?,
        ItemScope::RunOutput(run_id) => of_run(connection, who, *run_id, ItemRole::Output)?,
    };
    let from = match after {
        Some(item_id) => sequence_of_item(connection, who, item_id)?,
        None if ascending => i64::MIN,
        None => i64::MAX,
    };
    let (beyond, order) = if ascending { (">", "ASC") } else { ("<", "DESC") };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM querent_item WHERE {within} AND seq {beyond} ?3 AND (?4 IS NULL OR subject = ?4)
         ORDER BY seq {order} LIMIT ?5"
    ))?;
    let rows = statement.query_map(params![first, second, from, owner_filter(who), as_limit(limit + 1)], read)?;
    Ok(Listed::cut(rows.collect::<DatabaseResult<_>>()?, limit))
}

fn of_run(
    connection: &StoreConnection,
    who: &Principal,
    run_id: Uuid,
    role: ItemRole,
) -> Result<(&'static str, String, String)> {
    require_run(connection, owner_filter(who), run_id)?;
    Ok(("run_id = ?1 AND role = ?2", run_id.to_string(), role.as_str().to_string()))
}

/// The sequence number of an item, by which items are ordered.
fn sequence_of_item(connection: &StoreConnection, who: &Principal, item_id: &str) -> Result<i64> {
    connection
        .prepare_cached("SELECT seq FROM querent_item WHERE item_id = ?1 AND (?2 IS NULL OR subject = ?2)")?
        .query_row(params![item_id, owner_filter(who)], |row| row.get(0))
        .optional()?
        .ok_or_else(|| CatalogError::ItemNotFound { id: item_id.to_string() })
}

fn delete(connection: &StoreConnection, who: &Principal, item_id: &str) -> Result<bool> {
    let deleted = connection
        .prepare_cached("DELETE FROM querent_item WHERE item_id = ?1 AND (?2 IS NULL OR subject = ?2)")?
        .execute(params![item_id, owner_filter(who)])?;
    Ok(deleted > 0)
}

fn read(row: &StoreRow<'_>) -> DatabaseResult<ItemRecord> {
    let role: String = row.get(5)?;
    let known = ItemRole::ALL.into_iter().find(|known| known.as_str() == role);
    Ok(ItemRecord {
        item_id: row.get(0)?,
        subject: row.get(1)?,
        conversation: read_conversation_key(row, 2)?,
        run_id: read_uuid(row, 4)?,
        role: known.ok_or_else(|| unreadable(5, format!("unknown item role `{role}`")))?,
        created_at: read_time(row, 6)?,
        item_json: row.get(7)?,
    })
}
