//! How many queries run at once. Beyond the bound a query is refused at once, with 429 and `Retry-After`, rather than
//! queued where its client would time out. Metadata calls are exempt. Runs are bounded by the agent itself.

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
    places: Arc<Semaphore>,
    limit: usize,
}

impl Admission {
    /// At most `limit` queries at once; 0 means no bound.
    pub fn new(limit: usize) -> Self {
        let places = if limit == 0 { Semaphore::MAX_PERMITS } else { limit };
        Self { places: Arc::new(Semaphore::new(places)), limit }
    }

    /// A place for one query, held until the permit is dropped. Errors: `too_many_requests`.
    pub fn admit(&self, door: Door) -> Result<QueryPermit, ApiError> {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
            let message = format!("{} queries are running, which is the limit; try again in a second", self.limit);
            ApiError::new(ErrorCode::TooManyRequests, message)
        })?;
        metrics::query_started();
        Ok(QueryPermit { place: Some(place), door, started: Instant::now(), outcome: None })
    }
}

/// A running query's place. Says to the metrics how the query ended; one dropped unsaid was cancelled by its client.
#[derive(Debug)]
pub struct QueryPermit {
    place: Option<OwnedSemaphorePermit>,
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
    /// The place itself, for what ends when the query ends rather than when its client has read it all.
    pub fn take_place(&mut self) -> Option<OwnedSemaphorePermit> {
        self.place.take()
    }

    /// The query delivered all its rows.
    pub fn succeeded(&mut self, rows: u64) {
        self.outcome = Some(QueryOutcome { label: "success", rows });
    }

    /// The query failed.
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
