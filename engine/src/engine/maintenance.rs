//! Whether the files of managed tables are whole, the merging of small ones, and the removal of those that no table has, wherever
//! they lie, and of those that only old snapshots have.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use querent_catalog::{
    CatalogError, ExpiredSnapshots, FolderCheck, LeaseTurn, LeasedWork, Orphan, Principal, TableName, time_before,
};

use super::Engine;
use crate::error::{EngineError, Result};
use crate::identifiers::quote_identifier;
use crate::limits::Limits;
use crate::tables::managed::SMALL_BYTES;

/// Servers that share an object store look for such files at most this often between them.
const LOOKS_APART: Duration = Duration::from_secs(3_600);

/// A table's files are merged without a statement where so many of them are small.
const MANY_SMALL_FILES: u32 = 8;
/// How long the merging of one table may take.
const MERGE_TIME: Duration = Duration::from_secs(3_600);

impl Engine {
    /// Checks whether the data folder is whole, and the files of its tables; with `remove_orphans`, removes files that no row
    /// names and that have not changed for so long. Of files in an object store only their presence and length are checked.
    /// Errors: those of the object store.
    pub async fn check(&self, remove_orphans: Option<Duration>) -> Result<FolderCheck> {
        let Some(lake) = self.table_files().remote() else {
            return Ok(self.catalog().check(remove_orphans).await?);
        };
        // Listed before the rows are read: what is committed meanwhile is no orphan.
        let listed = lake.list(self.catalog().now().await?).await?;
        let mut check = self.catalog().check_listed(listed).await?;
        if let Some(grace) = remove_orphans {
            check.removed = self.remove_orphans(grace).await?.len() as u64;
        }
        Ok(check)
    }

    /// As [`Engine::check`], and reads the files of managed tables to see whether their pages are as they were written. Files that do
    /// not say how they were, as those of DuckDB, are left out, and so are those in an object store.
    pub async fn check_contents(&self, remove_orphans: Option<Duration>) -> Result<FolderCheck> {
        let mut check = self.check(remove_orphans).await?;
        if self.table_files().remote().is_none() {
            self.catalog().check_contents(&mut check).await?;
        }
        Ok(check)
    }

    /// Removes files that no row names and that have not changed for `grace`: what a write left that never committed. Errors:
    /// those of the object store; `location_not_allowed` where its prefix is another lake's.
    pub async fn remove_orphans(&self, grace: Duration) -> Result<Vec<Orphan>> {
        let Some(lake) = self.table_files().remote() else {
            return Ok(self.catalog().remove_orphans(grace).await?);
        };
        let mut listed = lake.list(self.catalog().now().await?).await?;
        listed.retain(|file| file.age_seconds >= grace.as_secs());
        let orphans = self.catalog().unnamed(listed).await?;
        if orphans.is_empty() {
            return Ok(orphans);
        }
        lake.remove_orphans(orphans).await
    }

    /// The same, for a server that does it by itself: of servers that share the files one does it. Returns
    /// nothing where another is at it, or has done it within the hour.
    pub async fn remove_orphans_in_turn(&self, grace: Duration) -> Result<Vec<Orphan>> {
        if self.table_files().remote().is_none() && self.catalog().members().own().is_none() {
            // The folder is this server's own.
            return self.remove_orphans(grace).await;
        }
        let LeaseTurn::Had(lease) = self.catalog().leases().take(LeasedWork::OrphanedFiles, LOOKS_APART).await? else {
            return Ok(Vec::new());
        };
        let removed = lease.run(self.remove_orphans(grace)).await;
        // Where the lease was lost, what was removed is gone, and the rest is another server's.
        Ok(lease.conclude(removed).await?.unwrap_or_default())
    }

    /// As [`Engine::expire_snapshots`], of those that were superseded so long ago by the catalog's clock; nothing where that is before
    /// all time.
    pub async fn expire_snapshots_of_age(&self, age: Duration, every: Duration) -> Result<Option<ExpiredSnapshots>> {
        match time_before(self.catalog().now().await?, age) {
            Some(before) => self.expire_snapshots(before, every).await,
            None => Ok(Some(ExpiredSnapshots::default())),
        }
    }

    /// Forgets the snapshots that were superseded before `time`, with what only they see, and removes their files. A statement that
    /// reads such a snapshot fails. Of servers that share a catalog one does it: nothing is returned where another is at it, or has
    /// done it less than `every` ago. Errors: those of the catalog.
    pub async fn expire_snapshots(&self, time: DateTime<Utc>, every: Duration) -> Result<Option<ExpiredSnapshots>> {
        let LeaseTurn::Had(lease) = self.catalog().leases().take(LeasedWork::Snapshots, every).await? else {
            return Ok(None);
        };
        let (catalog, files) = (Arc::clone(self.catalog()), Arc::clone(self.table_files()));
        // Also when the caller goes away: a file whose row is gone is found by nobody soon.
        let work = async move {
            let expired = lease.run(catalog.expire_snapshots(time, &lease)).await;
            let Some(expired) = lease.conclude(expired).await? else { return Ok(None) };
            let inside = expired.paths.iter().filter(|path| files.path_of(path, "a data file").is_ok());
            files.remove(&inside.cloned().collect::<Vec<PathBuf>>()).await;
            Ok(Some(expired))
        };
        self.finish(work).await
    }

    /// Merges the files of the managed tables that have many small ones, as `OPTIMIZE` does, table by table. One whose rows are
    /// changed meanwhile stays for the next time. Of servers that share a catalog one does it: nothing is returned where
    /// another is at it, or has done it less than `every` ago. Returns how many tables were merged. Errors: those of the catalog.
    pub async fn merge_small_files(&self, every: Duration) -> Result<Option<u64>> {
        let LeaseTurn::Had(lease) = self.catalog().leases().take(LeasedWork::SmallFiles, every).await? else {
            return Ok(None);
        };
        let merged = lease.run(self.merge_each_table()).await;
        lease.conclude(merged).await
    }

    async fn merge_each_table(&self) -> Result<u64> {
        let limits = Limits { wall_clock: MERGE_TIME, ..Limits::default() };
        let session = self.session(Principal::local_admin(), limits);
        let mut merged = 0;
        for TableName { database, table } in
            self.catalog().tables().with_small_files(MANY_SMALL_FILES, SMALL_BYTES).await?
        {
            let sql = format!("OPTIMIZE {}.{}", quote_identifier(&database), quote_identifier(&table));
            let session = session.clone();
            let statement = async move { session.sql(&sql).await?.collect().await };
            match self.runtime().threads.run(statement).await {
                Ok(_) => merged += 1,
                // It is dropped, or written to: somebody is at it now.
                Err(EngineError::Catalog(CatalogError::Conflict { .. } | CatalogError::TableNotFound { .. })) => {}
                Err(error) => tracing::warn!(database, table, code = error.code(), %error, "its small files stay"),
            }
        }
        Ok(merged)
    }
}
