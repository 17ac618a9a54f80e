//! The policy's versions in the store. The newest holds; those before it are kept for a while, for whoever asks what changed.

use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension, params};

use super::rows::{read_json, read_time, to_json};
use crate::error::Result;
use crate::policy::{PolicyDocument, PolicySet};

/// The versions that are kept.
const MAX_VERSIONS: i64 = 1_000;

/// A version of the policy.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyVersion {
    /// Counts the changes.
    pub version: i64,
    /// The statement that made it.
    pub statement: String,
    /// Who sent it.
    pub changed_by: String,
    /// When.
    pub changed_at: DateTime<Utc>,
}

/// Reads the policy that holds.
pub(crate) fn newest(connection: &Connection) -> Result<PolicySet> {
    let found = connection
        .prepare_cached("SELECT version, document_json FROM querent_policy ORDER BY version DESC LIMIT 1")?
        .query_row([], |row| Ok(PolicySet { version: row.get(0)?, document: read_json(row, 1)? }))
        .optional()?;
    Ok(found.unwrap_or_default())
}

/// Adds a version.
pub(crate) fn add(
    connection: &Connection,
    document: PolicyDocument,
    statement: &str,
    changed_by: &str,
    now: DateTime<Utc>,
) -> Result<PolicySet> {
    connection
        .prepare_cached(
            "INSERT INTO querent_policy (document_json, statement, changed_by, changed_at) VALUES (?, ?, ?, ?)",
        )?
        .execute(params![to_json(&document)?, statement, changed_by, now.timestamp_micros()])?;
    let version = connection.last_insert_rowid();
    connection
        .prepare_cached("DELETE FROM querent_policy WHERE version <= ?")?
        .execute([version.saturating_sub(MAX_VERSIONS)])?;
    Ok(PolicySet { version, document })
}

/// The newest versions, newest first.
pub(crate) fn versions(connection: &Connection, limit: usize) -> Result<Vec<PolicyVersion>> {
    let mut statement = connection.prepare_cached(
        "SELECT version, statement, changed_by, changed_at FROM querent_policy ORDER BY version DESC LIMIT ?",
    )?;
    let rows = statement.query_map([limit as i64], |row| {
        Ok(PolicyVersion {
            version: row.get(0)?,
            statement: row.get(1)?,
            changed_by: row.get(2)?,
            changed_at: read_time(row, 3)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
