//! Progress of long work, reported to whoever runs it.

/// Receives the progress of long work. Called from worker threads, must not block.
pub trait Progress: Send + Sync {
    /// `done` of `total` units of `task` are finished.
    fn report(&self, task: &str, done: u64, total: u64);
}

/// A [`Progress`] that ignores what it receives.
pub struct NoProgress;

impl Progress for NoProgress {
    fn report(&self, _task: &str, _done: u64, _total: u64) {}
}
