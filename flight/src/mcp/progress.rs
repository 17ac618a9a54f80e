//! Progress of calls that take long, for clients that ask for it: how long a call runs, and what it does.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};

/// How often a call that runs says so.
const EVERY: Duration = Duration::from_secs(2);

/// Where the progress of one call is told.
pub(super) struct ProgressReport {
    peer: Peer<RoleServer>,
    /// `None`: the client does not ask.
    token: Option<ProgressToken>,
    /// Each report has a larger number than the one before.
    steps: AtomicU32,
}

impl ProgressReport {
    pub(super) fn new(context: &RequestContext<RoleServer>) -> Self {
        Self { peer: context.peer.clone(), token: context.meta.get_progress_token(), steps: AtomicU32::new(0) }
    }

    /// Tells the client what the call does now.
    pub(super) async fn say(&self, message: &str) {
        let Some(token) = self.token.clone() else { return };
        let step = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
        let mut report = ProgressNotificationParam::new(token, f64::from(step));
        report.message = Some(message.to_owned());
        // A client that went away needs no report.
        let _ = self.peer.notify_progress(report).await;
    }

    /// Tells the client now and then that the call runs. Never ends.
    pub(super) async fn tick(&self) -> std::convert::Infallible {
        let mut elapsed = Duration::ZERO;
        loop {
            tokio::time::sleep(EVERY).await;
            elapsed += EVERY;
            self.say(&format!("running for {} s", elapsed.as_secs())).await;
        }
    }
}
