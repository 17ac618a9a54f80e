//! Bounds how many queries run at once. Beyond the bound a query is refused immediately, with 429 and `Retry-After`,
//! rather than queued until its client times out. A query that waits for its reader does not count; it waits for a slot
//! when its reader goes on. Metadata calls are exempt. The agent bounds its runs itself.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{ApiError, ErrorCode};
use crate::metrics;

/// The door a query came through; a label of its metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// `POST /v1/query`.
    Http,
    /// Arrow Flight SQL.
    Flight,
    /// Kusto's REST routes.
    Kusto,
    /// Tool calls over MCP.
    Mcp,
}

impl Door {
    /// As in the metrics' `door` label.
    pub fn as_str(self) -> &'static str {
        match self {
            Door::Http => "http",
            Door::Flight => "flight",
            Door::Kusto => "kusto",
            Door::Mcp => "mcp",
        }
    }
}

/// Admits queries.
#[derive(Debug, Clone)]
pub struct Admission {
    slots: Arc<Semaphore>,
    limit: usize,
}

impl Admission {
    /// Admits at most `limit` queries at once; 0 means no bound.
    pub fn new(limit: usize) -> Self {
        let slots = if limit == 0 { Semaphore::MAX_PERMITS } else { limit };
        Self { slots: Arc::new(Semaphore::new(slots)), limit }
    }

    /// Takes a slot for one query, which is held until the permit is dropped. Errors: `too_many_requests`.
    pub fn admit(&self, door: Door) -> Result<QueryPermit, ApiError> {
        let slot = Arc::clone(&self.slots).try_acquire_owned().map_err(|_| {
            let message = format!("{} queries are running, which is the limit; try again in a second", self.limit);
            ApiError::new(ErrorCode::TooManyRequests, message)
        })?;
        metrics::query_started();
        Ok(QueryPermit { slot: Some(slot), door, started: Instant::now(), outcome: None })
    }
}

/// A running query's slot. It tells the metrics how the query ended; a permit that is dropped without an outcome counts
/// as cancelled by its client.
#[derive(Debug)]
pub struct QueryPermit {
    slot: Option<OwnedSemaphorePermit>,
    door: Door,
    started: Instant,
    outcome: Option<QueryOutcome>,
}

#[derive(Debug)]
struct QueryOutcome {
    label: &'static str,
    rows: u64,
}

impl QueryPermit {
    /// Takes the slot out of the permit, for the query to hold while it works: not while it waits for its client, nor until
    /// its client has read the last row.
    pub fn take_slot(&mut self) -> Option<OwnedSemaphorePermit> {
        self.slot.take()
    }

    /// Records that the query delivered all its rows.
    pub fn succeeded(&mut self, rows: u64) {
        self.outcome = Some(QueryOutcome { label: "success", rows });
    }

    /// Records how a statement without rows ended.
    pub fn record<T, E>(&mut self, ended: &Result<T, E>) {
        match ended {
            Ok(_) => self.succeeded(0),
            Err(_) => self.failed(),
        }
    }

    /// Records that the query failed.
    pub fn failed(&mut self) {
        self.outcome = Some(QueryOutcome { label: "error", rows: 0 });
    }
}

impl Drop for QueryPermit {
    fn drop(&mut self) {
        let (label, rows) = self.outcome.as_ref().map_or(("cancelled", 0), |outcome| (outcome.label, outcome.rows));
        metrics::query_finished(self.door.as_str(), label, rows, self.started.elapsed());
    }
}
