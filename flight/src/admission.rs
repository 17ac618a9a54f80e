//! Bounds how many queries run at once, of all callers and of one. Beyond the bounds a query waits for its turn, which callers
//! have one after the other, in a queue that is short in number and in time: then it is refused with 429 and `Retry-After`,
//! rather than kept until its client times out. A query that waits for its reader does not count; it waits for a slot when
//! its reader goes on. Metadata calls are exempt. The agent bounds its runs itself.

use std::pin::pin;
use std::time::{Duration, Instant};

use futures::FutureExt;
use querent_catalog::Principal;
use querent_engine::{QuerySlot, QuerySlots, SlotLimits};

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

/// Admits queries. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Admission {
    slots: QuerySlots,
    limits: SlotLimits,
    timeout: Duration,
}

impl Admission {
    /// Admits queries within `limits`, which wait no longer than `timeout` each.
    pub fn new(limits: SlotLimits, timeout: Duration) -> Self {
        Self { slots: QuerySlots::new(limits), limits, timeout }
    }

    /// Takes a slot for one query of this caller, which is held until the permit is dropped, or waits for its turn.
    /// Errors: `too_many_requests`.
    pub async fn admit(&self, who: &Principal, door: Door) -> Result<QueryPermit, ApiError> {
        let slots = self.slots.of(who.subject());
        let mut begin = pin!(slots.begin());
        let begun = match begin.as_mut().now_or_never() {
            Some(begun) => begun.ok(),
            None => {
                let _waiting = metrics::query_waiting(door.as_str());
                tokio::time::timeout(self.timeout, begin).await.ok().and_then(Result::ok)
            }
        };
        let slot = begun.ok_or_else(|| self.refusal())?;
        metrics::query_started();
        Ok(QueryPermit { slot: Some(slot), door, started: Instant::now(), outcome: None })
    }

    fn refusal(&self) -> ApiError {
        let SlotLimits { slots, per_caller, .. } = self.limits;
        let message = format!(
            "as many queries run as may, {slots} of all callers or {per_caller} of one, and others wait; try again in a second"
        );
        ApiError::new(ErrorCode::TooManyRequests, message)
    }
}

/// A running query's slot. It tells the metrics how the query ended; a permit that is dropped without an outcome counts
/// as cancelled by its client.
#[derive(Debug)]
pub struct QueryPermit {
    slot: Option<QuerySlot>,
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
    pub fn take_slot(&mut self) -> Option<QuerySlot> {
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
