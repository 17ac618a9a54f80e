//! Rows of `querent_conversation`. Listing those of a subject, of one of its users or of a space reads along one index.

use chrono::Utc;
use serde_json::{Map, Value};

use super::{ConversationAccess, ConversationChange, ConversationFilter, ConversationRecord, RECORD_BYTES, StateMerge};
use crate::connection::{DatabaseResult, OptionalRow, StoreConnection, StoreRow, params};
use crate::error::Result;
use crate::model::{ConversationKey, Page, PageRequest, PageToken};
use crate::principal::Principal;
use crate::store::ownership::{conversation_not_found, delete_run_parts, owner_filter};
use crate::store::rows::{MAX_PAGE, as_limit, parse_token, read_count, read_time};

const SELECT: &str =
    "SELECT space, id, subject, user_id, app, title, metadata_json, state_json, created_at, updated_at,
    (SELECT count(*) FROM querent_run AS run WHERE run.space = talk.space AND run.conversation_id = talk.id)
    FROM querent_conversation AS talk";

pub(super) fn open(
    connection: &StoreConnection,
    who: &Principal,
    new: &ConversationRecord,
) -> Result<ConversationAccess> {
    let inserted = connection
        .prepare_cached(
            "INSERT INTO querent_conversation (space, id, subject, user_id, app, title, metadata_json, state_json,
                 created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            new.key.space,
            new.key.id,
            who.subject(),
            new.user_id,
            new.app,
            new.title,
            new.metadata_json,
            new.state_json,
            new.created_at.timestamp_micros(),
            new.updated_at.timestamp_micros(),
        ])?;
    let stored = find(connection, None, &new.key)?.ok_or_else(|| conversation_not_found(&new.key))?;
    Ok(match inserted {
        0 if stored.subject != who.subject() => ConversationAccess::Foreign,
        0 => {
            mark_used(connection, &new.key)?;
            ConversationAccess::Existing(stored)
        }
        _ => ConversationAccess::Created(stored),
    })
}

/// Keeps a conversation that somebody else opens from being deleted as unused by whoever it was created for.
fn mark_used(connection: &StoreConnection, key: &ConversationKey) -> Result<()> {
    connection
        .prepare_cached(
            "UPDATE querent_conversation SET updated_at = updated_at + 1
             WHERE space = ?1 AND id = ?2 AND updated_at = created_at",
        )?
        .execute(params![key.space, key.id])?;
    Ok(())
}

pub(super) fn stored_bytes(connection: &StoreConnection, subject: &str) -> Result<u64> {
    let sum = |bytes: &str| format!("SELECT CAST(COALESCE(SUM({bytes} + {RECORD_BYTES}), 0) AS BIGINT)");
    let of_conversation = sum("OCTET_LENGTH(title) + OCTET_LENGTH(metadata_json) + OCTET_LENGTH(state_json)");
    let sums = [
        format!("{of_conversation} FROM querent_conversation WHERE subject = ?"),
        format!("{} FROM querent_item WHERE subject = ? AND run_id IS NULL", sum("OCTET_LENGTH(item_json)")),
    ];
    let mut bytes = 0;
    for sum in sums {
        bytes += connection.prepare_cached(&sum)?.query_row([subject], |row| read_count(row, 0))?;
    }
    Ok(bytes)
}

pub(super) fn get(connection: &StoreConnection, who: &Principal, key: &ConversationKey) -> Result<ConversationRecord> {
    find(connection, owner_filter(who), key)?.ok_or_else(|| conversation_not_found(key))
}

pub(super) fn list(
    connection: &StoreConnection,
    who: &Principal,
    filter: &ConversationFilter,
    page: &PageRequest,
) -> Result<Page<ConversationRecord>> {
    let limit = page.limit.clamp(1, MAX_PAGE);
    let (before_time, before_id) = match &page.after {
        Some(token) => parse_token(token, "conversation listing")?,
        None => (i64::MAX, String::new()),
    };
    // One statement for each case, so that each reads along one index.
    let mine = match (owner_filter(who), &filter.user_id) {
        (None, None) => "?5 IS NULL AND ?6 IS NULL",
        (None, Some(_)) => "?5 IS NULL AND user_id = ?6",
        (Some(_), None) => "subject = ?5 AND ?6 IS NULL",
        (Some(_), Some(_)) => "subject = ?5 AND user_id = ?6",
    };
    let mut statement = connection.prepare_cached(&format!(
        "{SELECT} WHERE space = ?1 AND (updated_at, id) < (?2, ?3) AND {mine} AND (?7 IS NULL OR app = ?7)
         ORDER BY updated_at DESC, id DESC LIMIT ?4"
    ))?;
    let bound = params![
        filter.space,
        before_time,
        before_id,
        as_limit(limit + 1),
        owner_filter(who),
        filter.user_id,
        filter.app
    ];
    let items = statement.query_map(bound, read)?.collect::<DatabaseResult<_>>()?;
    let token =
        |last: &ConversationRecord| PageToken(format!("{}.{}", last.updated_at.timestamp_micros(), last.key.id));
    Ok(Page::cut(items, limit, token))
}

pub(super) fn update(
    connection: &StoreConnection,
    who: &Principal,
    key: &ConversationKey,
    change: &ConversationChange,
) -> Result<ConversationRecord> {
    connection
        .prepare_cached(
            "UPDATE querent_conversation SET title = coalesce(?4, title), metadata_json = coalesce(?5, metadata_json),
                 state_json = coalesce(?6, state_json), updated_at = CASE WHEN updated_at < ?7 THEN ?7 ELSE updated_at END
             WHERE space = ?1 AND id = ?2 AND (?3 IS NULL OR subject = ?3)",
        )?
        .execute(params![
            key.space,
            key.id,
            owner_filter(who),
            change.title,
            change.metadata_json,
            change.state_json,
            Utc::now().timestamp_micros(),
        ])?;
    get(connection, who, key)
}

/// Runs in a write transaction, so that nobody changes the state between its reading and its writing.
pub(super) fn merge_state(
    connection: &StoreConnection,
    who: &Principal,
    key: &ConversationKey,
    values: Map<String, Value>,
    most: usize,
) -> Result<StateMerge> {
    let stored = get(connection, who, key)?;
    let mut state: Map<String, Value> = serde_json::from_str(&stored.state_json).unwrap_or_default();
    state.extend(values);
    let state_json = Value::Object(state).to_string();
    if state_json.len() > most {
        return Ok(StateMerge::TooLarge { bytes: state_json.len() });
    }
    let change = ConversationChange { state_json: Some(state_json), ..ConversationChange::default() };
    Ok(StateMerge::Merged(Box::new(update(connection, who, key, &change)?)))
}

pub(super) fn delete(connection: &StoreConnection, who: &Principal, key: &ConversationKey) -> Result<bool> {
    let deleted = delete_record(connection, who, key)?;
    if deleted {
        delete_parts(connection, key)?;
    }
    Ok(deleted)
}

pub(super) fn delete_and_keep_runs(
    connection: &StoreConnection,
    who: &Principal,
    key: &ConversationKey,
) -> Result<bool> {
    if !delete_record(connection, who, key)? {
        return Ok(false);
    }
    connection
        .prepare_cached("DELETE FROM querent_item WHERE space = ?1 AND conversation_id = ?2 AND run_id IS NULL")?
        .execute(params![key.space, key.id])?;
    for table in ["querent_run", "querent_item", "querent_pending_call"] {
        connection
            .prepare_cached(&format!(
                "UPDATE {table} SET space = NULL, conversation_id = NULL WHERE space = ?1 AND conversation_id = ?2"
            ))?
            .execute(params![key.space, key.id])?;
    }
    Ok(true)
}

/// Whoever runs something in a conversation, adds to it, changes it or opens it again has it marked as used.
pub(super) fn delete_unused(connection: &StoreConnection, who: &Principal, key: &ConversationKey) -> Result<bool> {
    let deleted = connection
        .prepare_cached(
            "DELETE FROM querent_conversation WHERE space = ?1 AND id = ?2 AND (?3 IS NULL OR subject = ?3)
                 AND updated_at = created_at AND NOT EXISTS
                 (SELECT 1 FROM querent_run AS run WHERE run.space = ?1 AND run.conversation_id = ?2)",
        )?
        .execute(params![key.space, key.id, owner_filter(who)])?;
    Ok(deleted > 0)
}

/// Deletes the record alone. Returns whether there was one.
fn delete_record(connection: &StoreConnection, who: &Principal, key: &ConversationKey) -> Result<bool> {
    let deleted = connection
        .prepare_cached(
            "DELETE FROM querent_conversation WHERE space = ?1 AND id = ?2 AND (?3 IS NULL OR subject = ?3)",
        )?
        .execute(params![key.space, key.id, owner_filter(who)])?;
    Ok(deleted > 0)
}

/// Deletes up to `limit` conversations that were not used since a time and have no run left.
pub(crate) fn purge(connection: &StoreConnection, before: i64, limit: usize) -> Result<u64> {
    let mut statement = connection.prepare_cached(
        "SELECT space, id FROM querent_conversation AS talk WHERE updated_at < ?1 AND NOT EXISTS
             (SELECT 1 FROM querent_run AS run WHERE run.space = talk.space AND run.conversation_id = talk.id) LIMIT ?2",
    )?;
    let rows = statement.query_map(params![before, as_limit(limit)], |row| {
        Ok(ConversationKey { space: row.get(0)?, id: row.get(1)? })
    })?;
    let keys: Vec<ConversationKey> = rows.collect::<DatabaseResult<_>>()?;
    for key in &keys {
        connection
            .prepare_cached("DELETE FROM querent_conversation WHERE space = ?1 AND id = ?2")?
            .execute(params![key.space, key.id])?;
        delete_parts(connection, key)?;
    }
    Ok(keys.len() as u64)
}

/// Deletes all conversations of `subject` in spaces that begin with `space`.
pub(crate) fn delete_of_subject(connection: &StoreConnection, subject: &str, space: &str) -> Result<()> {
    // A range, so that the delete reads along one index: no space contains this character.
    let end = format!("{space}\u{10ffff}");
    let mut statement = connection.prepare_cached(
        "DELETE FROM querent_conversation WHERE subject = ?1 AND space >= ?2 AND space < ?3 RETURNING space, id",
    )?;
    let rows = statement
        .query_map(params![subject, space, end], |row| Ok(ConversationKey { space: row.get(0)?, id: row.get(1)? }))?;
    let keys: Vec<ConversationKey> = rows.collect::<DatabaseResult<_>>()?;
    for key in &keys {
        delete_parts(connection, key)?;
    }
    Ok(())
}

fn delete_parts(connection: &StoreConnection, key: &ConversationKey) -> Result<()> {
    let runs: Vec<String> = connection
        .prepare_cached("DELETE FROM querent_run WHERE space = ?1 AND conversation_id = ?2 RETURNING run_id")?
        .query_map(params![key.space, key.id], |row| row.get(0))?
        .collect::<DatabaseResult<_>>()?;
    for run_id in &runs {
        delete_run_parts(connection, run_id)?;
    }
    for table in ["querent_item", "querent_pending_call"] {
        connection
            .prepare_cached(&format!("DELETE FROM {table} WHERE space = ?1 AND conversation_id = ?2"))?
            .execute(params![key.space, key.id])?;
    }
    Ok(())
}

fn find(
    connection: &StoreConnection,
    owner: Option<&str>,
    key: &ConversationKey,
) -> Result<Option<ConversationRecord>> {
    Ok(connection
        .prepare_cached(&format!("{SELECT} WHERE space = ?1 AND id = ?2 AND (?3 IS NULL OR subject = ?3)"))?
        .query_row(params![key.space, key.id, owner], read)
        .optional()?)
}

fn read(row: &StoreRow<'_>) -> DatabaseResult<ConversationRecord> {
    Ok(ConversationRecord {
        key: ConversationKey { space: row.get(0)?, id: row.get(1)? },
        subject: row.get(2)?,
        user_id: row.get(3)?,
        app: row.get(4)?,
        title: row.get(5)?,
        metadata_json: row.get(6)?,
        state_json: row.get(7)?,
        created_at: read_time(row, 8)?,
        updated_at: read_time(row, 9)?,
        run_count: read_count(row, 10)?,
    })
}
