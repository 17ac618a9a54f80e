//! Tracks searches in progress and makes other work give way to them: while searches run, upkeep and successive changes
//! proceed one step at a time, with pauses that leave most of the CPU to the searches.
//!
//! Invariant: pauses are bounded, so that upkeep and changes progress however much is searched.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex as SyncMutex;
use tokio::sync::Mutex;

/// Searches that follow each other within this time count as one continuous stretch.
const APART: Duration = Duration::from_millis(20);
/// How often to check whether the searches have ended.
const LOOK: Duration = Duration::from_millis(2);
/// Upkeep pauses up to four times as long as its last step took, so that it gets at least a fifth of the time.
const UPKEEP: Pause = Pause { for_next: true, times: 4, longest: Duration::from_secs(2) };
/// Changes pause at most as long as their last step, since callers wait for them too: they get at least half of the
/// time.
const CHANGE: Pause = Pause { for_next: false, times: 1, longest: Duration::from_millis(20) };

/// How long a pause may be, and which searches it waits for.
struct Pause {
    /// Whether to wait also for searches that may follow those in progress.
    for_next: bool,
    /// The longest pause as a multiple of the last step.
    times: u32,
    longest: Duration,
}

/// The searches in progress, and how long the last steps took.
#[derive(Default)]
pub(super) struct Traffic {
    searches: AtomicUsize,
    last_ended: SyncMutex<Option<Instant>>,
    last_upkeep: Mutex<Duration>,
    last_change: Mutex<Duration>,
}

/// A search in progress, until it is dropped.
pub(crate) struct Searching(Arc<Traffic>);

impl Traffic {
    /// Counts a search as in progress until the guard is dropped.
    pub(super) fn enter(self: &Arc<Self>) -> Searching {
        self.searches.fetch_add(1, Ordering::Relaxed);
        Searching(Arc::clone(self))
    }

    /// Whether a search is in progress, or just ended.
    pub(super) fn is_busy(&self) -> bool {
        self.searches.load(Ordering::Relaxed) > 0 || self.last_ended.lock().is_some_and(|at| at.elapsed() < APART)
    }

    /// Runs a step of upkeep: at once when no search is in progress, else alone and after a pause.
    pub(super) fn give_way<T>(&self, step: impl Future<Output = T>) -> impl Future<Output = T> {
        self.after_pause(&self.last_upkeep, UPKEEP, Box::pin(step))
    }

    /// Runs a change of the catalog in the same way.
    pub(super) fn change<T>(&self, step: impl Future<Output = T>) -> impl Future<Output = T> {
        self.after_pause(&self.last_change, CHANGE, Box::pin(step))
    }

    /// The step is boxed, since the futures that write with Lance take a large part of a thread's stack.
    async fn after_pause<T, F>(&self, last: &Mutex<Duration>, pause: Pause, step: Pin<Box<F>>) -> T
    where
        F: Future<Output = T>,
    {
        let is_busy = || if pause.for_next { self.is_busy() } else { self.searches.load(Ordering::Relaxed) > 0 };
        if !is_busy() {
            return step.await;
        }
        let mut last = last.lock().await;
        let until = Instant::now() + last.saturating_mul(pause.times).min(pause.longest);
        while is_busy() && Instant::now() < until {
            tokio::time::sleep(LOOK.min(until.saturating_duration_since(Instant::now()))).await;
        }
        let started = Instant::now();
        let outcome = step.await;
        *last = started.elapsed();
        outcome
    }
}

impl Drop for Searching {
    fn drop(&mut self) {
        *self.0.last_ended.lock() = Some(Instant::now());
        self.0.searches.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test has a runtime of its own")]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(30);

    async fn three_steps(traffic: &Traffic) -> Duration {
        let started = Instant::now();
        for _ in 0..3 {
            traffic.give_way(async { tokio::time::sleep(STEP).await }).await;
        }
        started.elapsed()
    }

    #[tokio::test]
    async fn upkeep_pauses_while_somebody_searches_and_not_for_ever() {
        let traffic = Arc::new(Traffic::default());
        assert!(three_steps(&traffic).await < STEP * (3 + UPKEEP.times), "nobody searched");
        let searching = traffic.enter();
        assert!(three_steps(&traffic).await >= STEP * (3 + 2 * UPKEEP.times), "a pause before each step but the first");
        drop(searching);
        assert!(traffic.is_busy(), "another one may follow");
        tokio::time::sleep(APART * 2).await;
        assert!(!traffic.is_busy());
    }

    #[tokio::test]
    async fn a_change_waits_for_searches_in_progress_alone() {
        let traffic = Arc::new(Traffic::default());
        let two_changes = async || {
            let started = Instant::now();
            for _ in 0..2 {
                traffic.change(async { tokio::time::sleep(STEP).await }).await;
            }
            started.elapsed()
        };
        let searching = traffic.enter();
        assert!(two_changes().await >= STEP * 2 + CHANGE.longest, "a pause before the second");
        drop(searching);
        assert!(traffic.is_busy(), "upkeep would still pause");
        let started = Instant::now();
        traffic.change(std::future::ready(())).await;
        assert!(started.elapsed() < CHANGE.longest);
    }

    #[tokio::test]
    async fn a_pause_ends_with_the_searches() {
        let traffic = Arc::new(Traffic::default());
        let searching = traffic.enter();
        traffic.give_way(tokio::time::sleep(Duration::from_millis(300))).await;
        let started = Instant::now();
        let (_, ()) = tokio::join!(traffic.give_way(std::future::ready(())), async { drop(searching) });
        assert!(started.elapsed() < Duration::from_millis(600), "the pause would have been 1.2 s");
    }
}
