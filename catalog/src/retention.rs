//! Deleting old runs, conversations and files: many small transactions, between which waiting writers get their turn.

use chrono::{DateTime, Utc};

use crate::connection::StoreConnection;
use crate::conversations;
use crate::error::Result;
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
pub(crate) async fn purge_before(store: &Store, time: DateTime<Utc>) -> Result<Purged> {
    let before = time.timestamp_micros();
    Ok(Purged {
        runs: purge(store, before, runs::purge).await?,
        conversations: purge(store, before, conversations::purge_conversations).await?,
        files: purge(store, before, conversations::purge_files).await?,
    })
}

async fn purge(store: &Store, before: i64, batch: fn(&StoreConnection, i64, usize) -> Result<u64>) -> Result<u64> {
    let mut purged = 0;
    loop {
        let done = store.write_rows(move |connection| batch(connection, before, BATCH)).await?;
        purged += done;
        if done < BATCH as u64 {
            return Ok(purged);
        }
    }
}
