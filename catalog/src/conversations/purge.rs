//! Forgetting what is old: many small transactions, between which waiting writers get their turn.

use chrono::{DateTime, Utc};
use rusqlite::Connection;

use super::{files, rows};
use crate::store::Store;
use crate::{Catalog, Result, runs};

/// Runs, conversations or files that one transaction deletes.
const BATCH: usize = 100;

/// How much was forgotten.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Purged {
    /// Runs, with their items and pending calls.
    pub runs: u64,
    /// Conversations, with their items.
    pub conversations: u64,
    /// Files.
    pub files: u64,
}

/// Retention.
impl Catalog {
    /// Deletes the runs that ended before `time`, the conversations that were not used since and have no run left, and
    /// the files uploaded before. What is still running stays, its conversation too.
    pub async fn purge_before(&self, time: DateTime<Utc>) -> Result<Purged> {
        let before = time.timestamp_micros();
        Ok(Purged {
            runs: purge(&self.store, before, runs::purge).await?,
            conversations: purge(&self.store, before, rows::purge).await?,
            files: purge(&self.store, before, files::purge).await?,
        })
    }
}

async fn purge(store: &Store, before: i64, batch: fn(&Connection, i64, usize) -> Result<u64>) -> Result<u64> {
    let mut purged = 0;
    loop {
        let done = store.write_rows(move |connection| batch(connection, before, BATCH)).await?;
        purged += done;
        if done < BATCH as u64 {
            return Ok(purged);
        }
    }
}
