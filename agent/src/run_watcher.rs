//! Observes every run, whichever protocol asked and whether or not its client still listens: for counters and logs.

use crate::event::{EventKind, RunErrorCode, RunEvent, RunOutcome, ToolResult, Usage};

/// Notified of every run. Called by the runs themselves, so it must not block.
pub trait RunWatcher: Send + Sync {
    /// A run began.
    fn began(&self);
    /// A tool returned.
    fn tool_returned(&self, result: &ToolResult);
    /// A run ended; if it failed, with the ask protocol's code and the server's own code.
    fn ended(&self, outcome: RunOutcome, failure: Option<(RunErrorCode, &str)>, usage: &Usage);
}

/// Ignores all runs.
impl RunWatcher for () {
    fn began(&self) {}
    fn tool_returned(&self, _: &ToolResult) {}
    fn ended(&self, _: RunOutcome, _: Option<(RunErrorCode, &str)>, _: &Usage) {}
}

/// Notifies `watcher` of a run's end.
pub(crate) fn notify_end<'a>(watcher: &dyn RunWatcher, last: impl IntoIterator<Item = &'a RunEvent>) {
    let mut failure = None;
    for event in last {
        match &event.kind {
            EventKind::RunError { code, detail_code, .. } => failure = Some((*code, detail_code.as_str())),
            EventKind::RunFinished(finished) => watcher.ended(finished.outcome, failure, &finished.usage),
            _ => {}
        }
    }
}
