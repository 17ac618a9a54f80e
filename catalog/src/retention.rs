//! Deleting old runs, conversations and files: many small transactions, between which waiting writers get their turn.

use chrono::{DateTime, Utc};

use crate::connection::StoreConnection;
use crate::conversations;
use crate::error::Result;
use crate::leases::{WorkLease, require_held};
use crate::runs;
use crate::store::Store;

/// Runs, conversations or files that one transaction deletes.
const BATCH: usize = 100;

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
        let fence = lease.fence();
        let delete = move |connection: &StoreConnection| {
            require_held(connection, fence.as_ref())?;
            batch(connection, before, BATCH)
        };
        let done = store.write_rows(delete).await?;
        purged += done;
        if done < BATCH as u64 {
            return Ok(purged);
        }
    }
}
