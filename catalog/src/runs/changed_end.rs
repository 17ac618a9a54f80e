//! Runs that have ended, and end in another way after all: what they had asked is given up.

use super::{CatalogRuns, RunRecord, RunStatus};
use crate::connection::params;
use crate::error::Result;
use crate::principal::Principal;
use crate::store::ownership::owner_filter;

impl CatalogRuns<'_> {
    /// Sets status, end, trace and events of a run that has ended as `before`. Durable when it returns. Returns whether there
    /// was such a one.
    pub async fn change_end(self, who: &Principal, before: RunStatus, run: &RunRecord) -> Result<bool> {
        let (who, run) = (who.clone(), run.clone());
        self.store
            .write_rows(move |connection| {
                let changed = connection
                    .prepare_cached(
                        "UPDATE querent_run SET status = ?4, finished_at = ?5, trace_json = ?6, events_json = ?7
                             WHERE run_id = ?1 AND (?2 IS NULL OR subject = ?2) AND status = ?3",
                    )?
                    .execute(params![
                        run.run_id.to_string(),
                        owner_filter(&who),
                        before.as_str(),
                        run.status.as_str(),
                        run.finished_at.map(|time| time.timestamp_micros()),
                        run.trace_json,
                        run.events_json,
                    ])?;
                Ok(changed > 0)
            })
            .await
    }
}
