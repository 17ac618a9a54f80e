//! Leases: which server does work that is to be done once for all that share a catalog.
//!
//! A lease is a row with its holder, a number that grows with each holder (the fence), and the time when it ends by the
//! database's clock; it is read and written in a write transaction, and those come one after the other. [`Tenure`] is
//! the holder's side: how long it may work, by a clock of its own. Nothing here knows which database it is, what time
//! it is or how a request travels, so that a simulation runs the same lines (`store/simulation.rs`).
//!
//! Invariant: what is written under a lease is written in a transaction that has seen the holder's fence in the row
//! ([`require_held`]). A holder that stood still while its lease passed on writes nothing, whatever its clock says.

mod rows;

use std::time::Duration;

pub(crate) use rows::give_back_all;

use crate::error::{CatalogError, Result};

/// How long a lease is given for, and what its holder makes of that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeaseTiming {
    /// After this time without a renewal another server may have it.
    pub(crate) term: Duration,
    /// The holder stops this long before: clocks run at different speeds, and what is being written takes a moment.
    pub(crate) margin: Duration,
    /// After this time it is renewed.
    pub(crate) renewed_after: Duration,
    /// A renewal that failed is tried again after this time.
    pub(crate) retried_after: Duration,
}

/// What holds for every lease. A write waits ten seconds for its turn at the longest, which leaves a second try.
pub(crate) const TIMING: LeaseTiming = LeaseTiming {
    term: Duration::from_secs(30),
    margin: Duration::from_secs(5),
    renewed_after: Duration::from_secs(10),
    retried_after: Duration::from_secs(1),
};

/// A lease as it is stored. Times are microseconds of the database's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeaseRow {
    /// The server that has it; `None` where it was given back.
    pub(crate) holder: Option<String>,
    /// Grows by one with each holder.
    pub(crate) fence: i64,
    /// Until when it is the holder's.
    pub(crate) expires_at: i64,
    /// When its work was done last.
    pub(crate) done_at: Option<i64>,
}

/// The rows of leases, inside a write transaction.
pub(crate) trait LeaseTable {
    /// The database's clock, in microseconds since 1970.
    fn now(&self) -> Result<i64>;
    /// The row of a lease; `None` where nobody ever took it.
    fn lease(&self, name: &str) -> Result<Option<LeaseRow>>;
    /// Replaces the row of a lease.
    fn keep_lease(&self, name: &str, row: &LeaseRow) -> Result<()>;
}

/// By which a row knows its holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeaseFence {
    /// The lease.
    pub(crate) name: &'static str,
    /// The server.
    pub(crate) member: String,
    /// The number it was given.
    pub(crate) number: i64,
}

/// Who wants a lease, and how often its work is to be done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeaseRequest<'r> {
    /// The lease.
    pub(crate) name: &'static str,
    /// The server, which has one process at a time: a lease that is still its own was an earlier process's, or the
    /// answer that it was given was lost.
    pub(crate) member: &'r str,
    /// It is not given within this time after its work was done.
    pub(crate) every: Duration,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeaseAnswer {
    /// The server has it.
    Granted(LeaseFence),
    /// Another has it, or the work was done a short while ago.
    Refused {
        /// After which time it may be there to be had.
        again_in: Duration,
    },
}

/// Gives a lease to a server, unless another has it.
pub(crate) fn take(table: &impl LeaseTable, request: LeaseRequest<'_>, timing: LeaseTiming) -> Result<LeaseAnswer> {
    let now = table.now()?;
    let known = table.lease(request.name)?;
    let free_at = known.as_ref().map_or(now, |row| row.free_at(&request, now));
    if free_at > now {
        return Ok(LeaseAnswer::Refused { again_in: Duration::from_micros((free_at - now).unsigned_abs()) });
    }
    let number = known.as_ref().map_or(0, |row| row.fence) + 1;
    let row = LeaseRow {
        holder: Some(request.member.to_owned()),
        fence: number,
        expires_at: now + micros(timing.term),
        done_at: known.and_then(|row| row.done_at),
    };
    table.keep_lease(request.name, &row)?;
    Ok(LeaseAnswer::Granted(LeaseFence { name: request.name, member: request.member.to_owned(), number }))
}

/// Extends a lease that is still its holder's, also where its time was over and nobody wanted it. Returns whether it
/// was.
pub(crate) fn renew(table: &impl LeaseTable, fence: &LeaseFence, timing: LeaseTiming) -> Result<bool> {
    let Some(row) = table.lease(fence.name)?.filter(|row| row.is_held_by(fence)) else { return Ok(false) };
    table.keep_lease(fence.name, &LeaseRow { expires_at: table.now()? + micros(timing.term), ..row })?;
    Ok(true)
}

/// Gives a lease back, where it is still its holder's; notes that its work is done, where it is.
pub(crate) fn give_back(table: &impl LeaseTable, fence: &LeaseFence, is_done: bool) -> Result<()> {
    let Some(row) = table.lease(fence.name)?.filter(|row| row.is_held_by(fence)) else { return Ok(()) };
    let now = table.now()?;
    let done_at = if is_done { Some(now) } else { row.done_at };
    table.keep_lease(fence.name, &LeaseRow { holder: None, expires_at: now, done_at, ..row })
}

/// Makes sure that a lease is its holder's in the transaction that writes what it protects. Errors: `conflict` where
/// another server has taken it over.
pub(crate) fn require_held(table: &impl LeaseTable, fence: &LeaseFence) -> Result<()> {
    match table.lease(fence.name)? {
        Some(row) if row.is_held_by(fence) => Ok(()),
        _ => Err(CatalogError::Conflict { object: format!("the lease for {}", fence.name) }),
    }
}

impl LeaseRow {
    fn is_held_by(&self, fence: &LeaseFence) -> bool {
        self.fence == fence.number && self.holder.as_deref() == Some(fence.member.as_str())
    }

    /// When a server may take it.
    fn free_at(&self, request: &LeaseRequest<'_>, now: i64) -> i64 {
        let is_anothers = self.holder.as_deref().is_some_and(|holder| holder != request.member);
        let held_until = if is_anothers { self.expires_at } else { now };
        // A clock that was set back must not keep work from being done.
        let due_at = self.done_at.filter(|done_at| *done_at <= now).map_or(now, |at| at + micros(request.every));
        held_until.max(due_at)
    }
}

/// How long a holder may work. Times are those of a clock of its own that only goes forward, since any begin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tenure {
    /// When the request was sent by which the lease was given, or renewed last: the database's term begins later.
    since: Duration,
    tried_at: Duration,
    timing: LeaseTiming,
}

/// What a holder does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TenureStep {
    /// It works, and looks again at a time.
    Work(Duration),
    /// It sends a renewal, and works on.
    Renew,
    /// It stops: another server may have the lease in a moment.
    Stop,
}

impl Tenure {
    /// Of a lease that was given by a request which was sent at a time.
    pub(crate) fn granted(sent_at: Duration, timing: LeaseTiming) -> Self {
        Self { since: sent_at, tried_at: sent_at, timing }
    }

    /// Notes that a renewal is being sent.
    pub(crate) fn renewal_sent(&mut self, sent_at: Duration) {
        self.tried_at = sent_at;
    }

    /// Notes that a renewal which was sent at a time was answered.
    pub(crate) fn renewed(&mut self, sent_at: Duration) {
        self.since = self.since.max(sent_at);
    }

    /// When the holder stops unless it has renewed its lease by then.
    pub(crate) fn stops_at(&self) -> Duration {
        self.since + self.timing.term.saturating_sub(self.timing.margin)
    }

    /// What the holder does at a time.
    pub(crate) fn step(&self, now: Duration) -> TenureStep {
        let was_tried = self.tried_at > self.since;
        let renewal_at = match was_tried {
            true => self.tried_at + self.timing.retried_after,
            false => self.since + self.timing.renewed_after,
        };
        if now >= self.stops_at() {
            TenureStep::Stop
        } else if now >= renewal_at {
            TenureStep::Renew
        } else {
            TenureStep::Work(renewal_at.min(self.stops_at()))
        }
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_holder_renews_in_time_and_stops_before_its_lease_ends() {
        let mut tenure = Tenure::granted(SECOND, TIMING);
        assert_eq!(tenure.step(2 * SECOND), TenureStep::Work(11 * SECOND));
        assert_eq!(tenure.step(11 * SECOND), TenureStep::Renew);
        tenure.renewal_sent(11 * SECOND);
        assert_eq!(tenure.step(11 * SECOND), TenureStep::Work(12 * SECOND));
        assert_eq!(tenure.step(12 * SECOND), TenureStep::Renew);
        // Nobody answers: five seconds are left of the thirty.
        assert_eq!(tenure.step(26 * SECOND), TenureStep::Stop);
        // An answer counts from when its request was sent.
        tenure.renewal_sent(20 * SECOND);
        tenure.renewed(20 * SECOND);
        assert_eq!(tenure.step(26 * SECOND), TenureStep::Work(30 * SECOND));
        assert_eq!(tenure.stops_at(), 45 * SECOND);
    }
}
