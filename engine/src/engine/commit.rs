//! Commits of data files: either the files are the table's, or they are removed. Commits of other changes.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use querent_catalog::{CatalogError, NewDataFile, forget_uncommitted};

use super::Engine;
use crate::error::{EngineError, Result};

impl Engine {
    /// Commits files that are written: runs `transaction`, which returns whether it had anything to do. A commit that has
    /// begun is finished even when the caller goes away, and files that it does not add to the table are removed, unless it
    /// is not known whether it did.
    ///
    /// Returns the number of rows in the files, or `None` where the transaction had nothing to do.
    pub(crate) async fn commit_files(
        &self,
        files: Vec<NewDataFile>,
        transaction: impl Future<Output = Result<bool>> + Send + 'static,
    ) -> Result<Option<u64>> {
        let rows = files.iter().map(|file| file.row_count).sum();
        let paths: Vec<PathBuf> = files.into_iter().map(|file| file.path).collect();
        let place = Arc::clone(&self.state.runtime.files);
        let commit = self.spawn_commit(async move {
            let outcome = transaction.await;
            // After a commit of which nobody heard a table may have them; where none has, they are removed as orphans.
            let is_in_doubt = matches!(outcome, Err(EngineError::Catalog(CatalogError::CommitInDoubt { .. })));
            if !matches!(outcome, Ok(true)) && !is_in_doubt {
                place.remove(&paths).await;
            }
            paths.iter().for_each(|path| forget_uncommitted(path));
            outcome
        });
        match commit.await {
            Ok(Ok(true)) => Ok(Some(rows)),
            Ok(Ok(false)) => Ok(None),
            Ok(Err(error)) => Err(error),
            Err(error) => Err(EngineError::Internal(format!("the commit was cut off: {error}"))),
        }
    }

    /// Waits for what has to succeed before files that are written are committed; where it fails, they are removed.
    pub(crate) async fn or_remove_files<T>(
        &self,
        files: &[NewDataFile],
        before_commit: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let done = before_commit.await;
        if done.is_err() {
            let paths: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
            self.state.runtime.files.remove(&paths).await;
            paths.iter().for_each(|path| forget_uncommitted(path));
        }
        done
    }

    /// Runs a change of the catalog to its end, also when the caller goes away.
    pub(crate) async fn finish<T: Send + 'static>(
        &self,
        change: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        match self.spawn_commit(change).await {
            Ok(outcome) => outcome,
            Err(error) => Err(EngineError::Internal(format!("the commit was cut off: {error}"))),
        }
    }
}
