//! Orderly shutdown: no new connections, runs end with their last event, open requests finish, and what is left at the
//! deadline is cut. Every task of the server is tracked here, so that none outlives it.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};
use tokio_util::task::TaskTracker;

/// The server's tasks, and how far its shutdown has come. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    unready: CancellationToken,
    draining: CancellationToken,
    stopped: CancellationToken,
    tasks: TaskTracker,
}

impl Shutdown {
    /// Whether load balancers should send no more requests.
    pub fn is_unready(&self) -> bool {
        self.unready.is_cancelled()
    }

    /// Completes when open requests should finish and no new ones are accepted.
    pub fn draining(&self) -> WaitForCancellationFuture<'_> {
        self.draining.cancelled()
    }

    /// Completes when whatever still runs is cut.
    pub fn stopped(&self) -> WaitForCancellationFuture<'_> {
        self.stopped.cancelled()
    }

    /// Spawns a task that the shutdown waits for, and cuts at its deadline.
    pub fn spawn<F>(&self, task: F) -> JoinHandle<()>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let stopped = self.stopped.clone();
        self.tasks.spawn(async move {
            let _ = stopped.run_until_cancelled(task).await;
        })
    }

    pub(crate) fn cut(&self) {
        self.drain();
        self.stopped.cancel();
    }

    pub(crate) fn begin(&self) {
        self.unready.cancel();
    }

    pub(crate) fn drain(&self) {
        self.unready.cancel();
        self.draining.cancel();
        self.tasks.close();
    }

    /// Waits for the tasks, at most `deadline`, then cuts those that are left. Returns how many were cut.
    pub(crate) async fn finish(&self, deadline: Duration) -> usize {
        let left = match tokio::time::timeout(deadline, self.tasks.wait()).await {
            Ok(()) => 0,
            Err(_) => self.tasks.len(),
        };
        self.stopped.cancel();
        self.tasks.wait().await;
        left
    }
}

/// Completes when the process is told to stop, by ctrl-c or SIGTERM.
pub async fn stop_signal() -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
