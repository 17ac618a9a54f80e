//! Deleting old runs, conversations and files, and what only old snapshots of the lake see: many small transactions, between which
//! waiting writers get their turn.

use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use crate::connection::StoreConnection;
use crate::conversations;
use crate::error::Result;
use crate::leases::WorkLease;
use crate::runs;
use crate::store::Store;
use crate::store::expiry::{self, EXPIRED_AT_ONCE};

/// A server keeps each state of the lake for so long after a newer one took its place: statements that began before are
/// reading it.
pub const SHORTEST_HISTORY: Duration = Duration::from_secs(3_600);
/// Runs, conversations or files that one transaction deletes.
const BATCH: usize = 100;

/// Returns the time so long before `now`; `None` where there was none.
pub fn time_before(now: DateTime<Utc>, age: Duration) -> Option<DateTime<Utc>> {
    now.checked_sub_signed(TimeDelta::from_std(age).ok()?)
}

/// How much was deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Purged {
    /// Runs, with their items and pending calls.
    pub runs: u64,
    /// Conversations, with their items.
    pub conversations: u64,
    /// Files.
    pub files: u64,
}

/// Deletes the runs that ended before `time`, the conversations that have not been used since and have no run left, and
/// the files uploaded before.
pub(crate) async fn purge_before(store: &Store, time: DateTime<Utc>, lease: &WorkLease) -> Result<Purged> {
    let before = time.timestamp_micros();
    Ok(Purged {
        runs: purge(store, lease, before, runs::purge).await?,
        conversations: purge(store, lease, before, conversations::purge_conversations).await?,
        files: purge(store, lease, before, conversations::purge_files).await?,
    })
}

/// Deletes a batch of rows that are older than a time, and says how many they were.
type PurgeBatch = fn(&StoreConnection, i64, usize) -> Result<u64>;

async fn purge(store: &Store, lease: &WorkLease, before: i64, batch: PurgeBatch) -> Result<u64> {
    let mut purged = 0;
    loop {
        let done = lease.write(store, move |connection| batch(connection, before, BATCH)).await?;
        purged += done;
        if done < BATCH as u64 {
            return Ok(purged);
        }
    }
}

/// What was forgotten with old snapshots.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ExpiredSnapshots {
    /// Snapshots.
    pub snapshots: u64,
    /// Dropped tables.
    pub tables: u64,
    /// Files that no snapshot sees any more.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Every place where such a file may lie; they are the caller's to remove.
    #[serde(skip)]
    pub paths: Vec<PathBuf>,
}

/// Forgets the snapshots that were superseded before `time`. The state of the lake at `time`, and all later ones, stay.
pub(crate) async fn expire_snapshots(
    store: &Store,
    time: DateTime<Utc>,
    lease: &WorkLease,
) -> Result<ExpiredSnapshots> {
    let mut expired = ExpiredSnapshots::default();
    let begun = lease
        .write(store, move |connection| {
            let Some(kept) = expiry::oldest_kept(connection, time)? else { return Ok(None) };
            Ok(Some((kept, expiry::forget_snapshots(connection, kept)?)))
        })
        .await?;
    let Some((kept, snapshots)) = begun else { return Ok(expired) };
    expired.snapshots = snapshots;
    // What a process that was killed had left to do is done, too: it is found by the oldest snapshot that is there.
    loop {
        let found = store.read(move |connection| expiry::expired_files(connection, kept)).await?;
        if found.is_empty() {
            break;
        }
        expired.files += (found.data_files.len() + found.delete_files.len()) as u64;
        expired.bytes += found.bytes;
        expired.paths.extend(found.paths);
        for ids in found.delete_files.chunks(EXPIRED_AT_ONCE) {
            let ids = ids.to_vec();
            lease.write(store, move |connection| expiry::forget_files(connection, &[], &ids)).await?;
        }
        for ids in found.data_files.chunks(EXPIRED_AT_ONCE) {
            let ids = ids.to_vec();
            lease.write(store, move |connection| expiry::forget_files(connection, &ids, &[])).await?;
        }
    }
    loop {
        let tables = store.read(move |connection| expiry::expired_tables(connection, kept)).await?;
        if tables.is_empty() {
            break;
        }
        expired.tables += tables.len() as u64;
        lease.write(store, move |connection| expiry::forget_tables(connection, &tables)).await?;
    }
    lease.write(store, move |connection| expiry::forget_rest(connection, kept)).await?;
    Ok(expired)
}
