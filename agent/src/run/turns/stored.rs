//! A run in progress as it is stored: every second, and before each call, so that a crash loses little of it and what a call has
//! changed is known to have been that call.

use std::time::{Duration, Instant};

use querent_catalog::CatalogError;

use super::Turns;
use crate::run::FailureCause;

/// How often a run in progress is stored, so that a crash loses little of it.
pub(super) const STORE_EVERY: Duration = Duration::from_secs(1);
/// The share of a run's time that may go into that: one part in so many.
const STORE_SHARE: u32 = 20;

impl Turns<'_> {
    /// Stores the run as it is, unless that was done a moment ago.
    pub(super) async fn store_now_and_then(&mut self) -> Result<(), FailureCause> {
        if self.store_at > Instant::now() {
            return Ok(());
        }
        if self.task.handle.events() > self.stored_events {
            return self.store().await;
        }
        self.store_at = Instant::now() + STORE_EVERY;
        Ok(())
    }

    /// Stores the run as it is. Errors: it is not in progress any more, as far as the others know.
    pub(super) async fn store(&mut self) -> Result<(), FailureCause> {
        if let Some(error) = self.try_store().await? {
            let run_id = self.task.started_event.run_id;
            tracing::warn!(%run_id, code = error.code(), %error, "the run's trace could not be stored");
        }
        Ok(())
    }

    /// Stores the run as it is. Returns why it could not be stored, if so. Errors: it is not in progress any more, as far as
    /// the others know.
    pub(super) async fn try_store(&mut self) -> Result<Option<CatalogError>, FailureCause> {
        let begun = Instant::now();
        let events = self.task.handle.events();
        let record = self.task.handle.snapshot(self.task.started);
        let failed = match self.task.catalog.runs().update(&record).await {
            Err(CatalogError::RunNotFound { .. }) => return Err(FailureCause::of_ended_elsewhere()),
            Err(error) => Some(error),
            Ok(()) => {
                self.stored_events = events;
                None
            }
        };
        self.store_at = Instant::now() + STORE_EVERY.max(STORE_SHARE * begun.elapsed());
        Ok(failed)
    }
}
