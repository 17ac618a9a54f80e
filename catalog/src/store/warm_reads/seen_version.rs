//! The version of a shared catalog as it is read: with what was changed since the one that was known before.

use std::collections::BTreeSet;

use crate::connection::{StoreConnection, params};
use crate::error::Result;
use crate::model::{CatalogVersion, SnapshotId};
use crate::store::change::ChangedTables;

/// Commits whose words are read, of those that were made since a version.
const MAX_COMMITS: i64 = 1_000;

/// The version that was read, and what lies between it and the snapshot that was known before.
pub(super) struct SeenVersion {
    pub(super) version: CatalogVersion,
    pub(super) since: Option<SnapshotId>,
    pub(super) touched: ChangedTables,
}

impl SeenVersion {
    /// Reads what the commits after `since` changed, up to a version.
    pub(super) fn read(
        connection: &StoreConnection,
        version: CatalogVersion,
        since: Option<SnapshotId>,
    ) -> Result<Self> {
        let touched = match since {
            Some(since) if since == version.snapshot => ChangedTables::Only(BTreeSet::new()),
            Some(since) if (1..=MAX_COMMITS).contains(&(version.snapshot - since)) => {
                touched_between(connection, since, version.snapshot)?
            }
            Some(_) | None => ChangedTables::Any,
        };
        Ok(Self { version, since, touched })
    }
}

fn touched_between(connection: &StoreConnection, since: SnapshotId, until: SnapshotId) -> Result<ChangedTables> {
    let mut statement = connection.prepare_cached(
        "SELECT count(changes_made), string_agg(changes_made, ',') FROM ducklake_snapshot_changes
         WHERE snapshot_id > ?1 AND snapshot_id <= ?2",
    )?;
    let (commits, changes): (i64, Option<String>) =
        statement.query_row(params![since, until], |row| Ok((row.get(0)?, row.get(1)?)))?;
    // One that has expired says nothing any more.
    Ok(match changes {
        Some(changes) if commits == until - since => ChangedTables::parse(&changes),
        Some(_) | None => ChangedTables::Any,
    })
}

/// Reads the version that holds in one statement, and in another what changed since a snapshot. `None` where there is something to
/// absorb first.
pub(super) fn version(connection: &StoreConnection, since: Option<SnapshotId>) -> Result<Option<SeenVersion>> {
    let mut statement = connection.prepare_cached(
        "SELECT (SELECT max(snapshot_id) FROM ducklake_snapshot),
                (SELECT value FROM querent_meta WHERE key = 'absorbed_snapshot'),
                (SELECT coalesce(max(version), 0) FROM querent_policy)",
    )?;
    let (newest, absorbed, policies): (Option<i64>, Option<String>, i64) =
        statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let absorbed = absorbed.and_then(|text| text.parse().ok());
    let Some(snapshot) = newest.filter(|newest| Some(*newest) == absorbed) else { return Ok(None) };
    SeenVersion::read(connection, CatalogVersion { snapshot, policies }, since).map(Some)
}
