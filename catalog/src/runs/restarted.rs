//! Runs that begin again under their id: the run takes the place of the one that was interrupted, with nothing that came of that.

use super::{CatalogRuns, RunRecord, insert};
use crate::connection::params;
use crate::error::Result;
use crate::store::ownership::{delete_run_parts, run_not_found};

impl CatalogRuns<'_> {
    /// Stores a run in the place of one of the same id that was interrupted and has been ended as failed. Durable when it
    /// returns. Errors: `run_not_found`, where that run was deleted or has not failed.
    pub async fn insert_again(self, run: &RunRecord) -> Result<()> {
        let (run, member) = (run.clone(), self.store.member().map(str::to_owned));
        self.store
            .write_rows(move |connection| {
                let run_id = run.run_id.to_string();
                let deleted = connection
                    .prepare_cached("DELETE FROM querent_run WHERE run_id = ?1 AND status = 'error'")?
                    .execute(params![run_id])?;
                if deleted == 0 {
                    return Err(run_not_found(run.run_id));
                }
                delete_run_parts(connection, &run_id)?;
                insert(connection, &run, member.as_deref())
            })
            .await
    }
}
