//! The policy's versions in the store. The newest holds; those before it are kept for a while, for whoever asks what changed.

use chrono::{DateTime, Utc};

use super::objects;
use super::rows::{read_json, read_time, to_json};
use crate::connection::{DatabaseResult, OptionalRow, StoreConnection, params};
use crate::error::Result;
use crate::policy::{PolicyDocument, PolicySet, RenamedTable};

/// The versions that are kept.
const MAX_VERSIONS: i64 = 1_000;
/// The most renamed tables that a version's statement names.
const MAX_SAID: usize = 20;

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
pub(crate) fn newest(connection: &StoreConnection) -> Result<PolicySet> {
    let found = connection
        .prepare_cached("SELECT version, document_json FROM querent_policy ORDER BY version DESC LIMIT 1")?
        .query_row([], |row| Ok(PolicySet { version: row.get(0)?, document: read_json(row, 1)? }))
        .optional()?;
    Ok(found.unwrap_or_default())
}

/// Returns the version of the policy that holds; 0 where there is none.
pub(crate) fn newest_version(connection: &StoreConnection) -> Result<i64> {
    let mut statement = connection.prepare_cached("SELECT COALESCE(MAX(version), 0) FROM querent_policy")?;
    Ok(statement.query_row([], |row| row.get(0))?)
}

/// Lets the policy follow tables, and columns, whose names changed since the absorbed snapshot: what was hidden would be there under
/// the new name.
pub(super) fn follow_renames(connection: &StoreConnection, tables: &[RenamedTable]) -> Result<()> {
    // The document is read for what was renamed only: every object that is written comes here.
    if tables.is_empty() {
        return Ok(());
    }
    let policy = newest(connection)?;
    let mut document = policy.document.clone();
    document.follow(tables);
    if document == policy.document {
        return Ok(());
    }
    // What another writer committed is a snapshot already; what we change is not yet.
    let is_of_another: bool = connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM ducklake_snapshot WHERE snapshot_id > ?)")?
        .query_row([objects::absorbed_snapshot(connection)?], |row| row.get(0))?;
    let (by, writer) = if is_of_another { (" by another writer", "duckdb") } else { ("", "querent") };
    let said =
        tables.iter().take(MAX_SAID).map(|one| format!("ALTER TABLE {}{by}; it is {} now", one.known, one.table));
    let statement = said.collect::<Vec<_>>().join(". ");
    add(connection, document, &statement, writer, Utc::now())?;
    Ok(())
}

/// Adds a version.
pub(crate) fn add(
    connection: &StoreConnection,
    document: PolicyDocument,
    statement: &str,
    changed_by: &str,
    now: DateTime<Utc>,
) -> Result<PolicySet> {
    let version: i64 = connection
        .prepare_cached(
            "INSERT INTO querent_policy (document_json, statement, changed_by, changed_at) VALUES (?, ?, ?, ?)
             RETURNING version",
        )?
        .query_row(params![to_json(&document)?, statement, changed_by, now.timestamp_micros()], |row| row.get(0))?;
    connection
        .prepare_cached("DELETE FROM querent_policy WHERE version <= ?")?
        .execute([version.saturating_sub(MAX_VERSIONS)])?;
    Ok(PolicySet { version, document })
}

/// The newest versions, newest first.
pub(crate) fn versions(connection: &StoreConnection, limit: usize) -> Result<Vec<PolicyVersion>> {
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
    Ok(rows.collect::<DatabaseResult<_>>()?)
}
