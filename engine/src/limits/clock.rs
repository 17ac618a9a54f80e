//! A query's wall clock. It stands still while the query waits for its client, to read its rows or to send some, so that a
//! slow client costs the query no time of its own. It is over at once where the query is ended for want of memory.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::error::EngineError;

/// Used for limits that no query reaches.
const FOREVER: Duration = Duration::from_secs(30 * 365 * 86_400);
/// How often a clock that stands still is looked at by whoever waits for its end.
const STANDING: Duration = Duration::from_millis(200);

/// The wall clock of one query, shared by all that work for it.
#[derive(Debug, Clone)]
pub(crate) struct QueryClock {
    limit: Duration,
    state: Arc<Mutex<ClockState>>,
    /// Wakes whoever waits for the query when it is ended.
    ended: Arc<Notify>,
}

#[derive(Debug)]
struct ClockState {
    deadline: Instant,
    stopped: Option<Instant>,
    /// Why the query was ended before its time was over.
    end: Option<QueryEnd>,
}

/// Why a query is ended by somebody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QueryEnd {
    /// The process has no memory for it; with what was missing.
    NoMemory(String),
    /// A person or a program asked for its end, and may have said why.
    Cancelled(Option<String>),
}

impl QueryClock {
    /// Returns a clock that runs from now on and is over after `limit`.
    pub(crate) fn start(limit: Duration) -> Self {
        let deadline = Instant::now() + limit.min(FOREVER);
        let state = ClockState { deadline, stopped: None, end: None };
        Self { limit, state: Arc::new(Mutex::new(state)), ended: Arc::default() }
    }

    /// Returns when the time is over; `None` while the clock stands still.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let state = self.state.lock();
        state.stopped.is_none().then_some(state.deadline)
    }

    /// Returns whether the time is over.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.state.lock();
        state.end.is_some() || state.stopped.unwrap_or_else(Instant::now) >= state.deadline
    }

    /// Returns the time that is left.
    pub(crate) fn left(&self) -> Duration {
        let state = self.state.lock();
        state.deadline.saturating_duration_since(state.stopped.unwrap_or_else(Instant::now))
    }

    /// Ends the query's time now.
    pub(crate) fn end(&self, end: QueryEnd) {
        self.state.lock().end.get_or_insert(end);
        self.ended.notify_waiters();
    }

    /// Returns whether somebody ended the query.
    pub(crate) fn is_ended(&self) -> bool {
        self.state.lock().end.is_some()
    }

    /// Returns once somebody has ended the query.
    pub(crate) async fn until_ended(&self) {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            if self.is_ended() {
                return;
            }
            ended.await;
        }
    }

    /// Stops the clock.
    pub(crate) fn stop(&self) {
        self.state.lock().stopped.get_or_insert_with(Instant::now);
    }

    /// Lets the clock run on.
    pub(crate) fn resume(&self) {
        let mut state = self.state.lock();
        if let Some(stopped) = state.stopped.take() {
            state.deadline += stopped.elapsed();
        }
    }

    /// Returns the result of `work`. Errors: `wall_clock_exceeded` where it takes longer than the time that is left.
    pub(crate) async fn limit_time<T, E: From<EngineError>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let mut work = std::pin::pin!(work);
        loop {
            let until = self.deadline().unwrap_or_else(|| Instant::now() + STANDING);
            // Registered before the clock is looked at, so that no end is missed.
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            if self.is_ended() {
                return Err(self.exceeded().into());
            }
            tokio::select! {
                biased;
                result = &mut work => return result,
                () = tokio::time::sleep_until(until) => {}
                () = ended => {}
            }
            if self.is_over() {
                return Err(self.exceeded().into());
            }
        }
    }

    /// Returns the stream of what a client sends, for which the query waits without its clock.
    pub(crate) fn awaited<S>(&self, sent: S) -> Awaited<S> {
        Awaited { sent, clock: self.clone() }
    }

    /// Returns the error of a query whose time is over.
    pub(crate) fn exceeded(&self) -> EngineError {
        match &self.state.lock().end {
            Some(QueryEnd::NoMemory(detail)) => EngineError::ServerMemory { detail: detail.clone() },
            Some(QueryEnd::Cancelled(reason)) => EngineError::Cancelled { reason: reason.clone() },
            None => EngineError::WallClockExceeded { limit: self.limit },
        }
    }
}

/// What a client sends. While nothing of it is there, the query's clock stands still.
#[derive(Debug)]
pub(crate) struct Awaited<S> {
    sent: S,
    clock: QueryClock,
}

impl<S: Stream + Unpin> Stream for Awaited<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = Pin::new(&mut self.sent).poll_next(cx);
        match next {
            Poll::Pending => self.clock.stop(),
            Poll::Ready(_) => self.clock.resume(),
        }
        next
    }
}

impl<S> Drop for Awaited<S> {
    fn drop(&mut self) {
        self.clock.resume();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_stands_still_is_never_over() {
        let limit = Duration::from_millis(100);
        let clock = QueryClock::start(limit);
        clock.stop();
        // Longer than the limit, which is what is tested.
        std::thread::sleep(2 * limit);
        assert!(!clock.is_over());
        assert_eq!(clock.deadline(), None);
        clock.resume();
        let deadline = clock.deadline().expect("the clock runs");
        assert!(deadline > Instant::now(), "what was left before is left now");
        std::thread::sleep(deadline - Instant::now());
        assert!(clock.is_over());
    }
}
