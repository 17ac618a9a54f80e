//! One run, from its first event to its last: a task that owns the model call and the query, so that ending it ends
//! both. Every way out (answered, paused, out of time, out of calls, failed, cancelled, the client gone) ends in
//! [`RunTask::run`]: the last events are stored before they are delivered, and `run_finished` is always the last.

mod handle;
mod interrupted;
mod restart;
mod turns;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use querent_catalog::{Catalog, CatalogError, Role, RunRecord, RunStatus};
use querent_engine::Session;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use crate::config::AgentConfig;
use crate::error::AgentError;
use crate::event::{
    CANCELLED_CODE, EventKind, RESTARTED_CODE, RunErrorCode, RunEvent, RunFinished, RunOutcome, RunStarted, Trigger,
};
use crate::models::{ChatRole, ModelCapabilities, ModelEntry};
use crate::prompt::ExampleCache;
use crate::request::RunRequest;
use crate::results::ResultStore;
use crate::telemetry;

pub(crate) use handle::{RunHandle, StopCause};
pub use interrupted::{InterruptedRun, InterruptedRuns};
pub(crate) use interrupted::{begun_record, end_interrupted_runs, end_runs_of_lost_servers};
pub(crate) use restart::{note_restart, restarted_request};
use turns::{End, Turns};

/// How long a run's last events wait for its end to be stored; after that it is stored later.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);
/// Pauses between attempts to store a run's end: the first and the longest. Its conversation is locked until then on the servers
/// that share the catalog.
const STORE_AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// Everything a run works with.
pub(crate) struct RunTask {
    pub(crate) handle: Arc<RunHandle>,
    pub(crate) catalog: Arc<Catalog>,
    /// Only reads.
    pub(crate) session: Session,
    /// Writes as the caller, for calls that a person approved; absent where no tool may write.
    pub(crate) writer: Option<Session>,
    pub(crate) model: ModelEntry,
    pub(crate) config: Arc<AgentConfig>,
    pub(crate) examples: Arc<ExampleCache>,
    /// Keeps the rows of queries; absent where the caller could not fetch them.
    pub(crate) results: Option<Arc<ResultStore>>,
    pub(crate) started_event: RunStarted,
    pub(crate) request: RunRequest,
    pub(crate) started: Instant,
    /// What collectors of traces see of it.
    pub(crate) span: Span,
    /// Cancelled when the agent shuts down.
    pub(crate) closing: CancellationToken,
}

/// Why a run did not succeed.
struct FailureCause {
    status: RunStatus,
    code: RunErrorCode,
    message: String,
    detail_code: String,
}

impl FailureCause {
    fn new(status: RunStatus, code: RunErrorCode, message: impl Into<String>, detail_code: &str) -> Self {
        Self { status, code, message: message.into(), detail_code: detail_code.to_owned() }
    }

    /// Creates the failure of a run that is not stored as in progress any more.
    fn of_ended_elsewhere() -> Self {
        let message = format!(
            "another server ended the run, since this one gave no sign of life, or the run was deleted ({RESTARTED_CODE}); \
             ask again"
        );
        Self::new(RunStatus::Error, RunErrorCode::Internal, message, RESTARTED_CODE)
    }
}

impl RunTask {
    /// Runs to the end. `leave` is called once the run is stored, before its last events are delivered: a client that
    /// has seen `run_finished` finds the run stored and its permit released. Where storing takes too long or fails, the
    /// events do not wait; storing is retried until it succeeds or the agent shuts down.
    pub(crate) async fn run(self, leave: impl FnOnce()) {
        self.handle.begin();
        let (status, failure) = match self.outcome().await {
            Ok(End::Answered) => (RunStatus::Success, None),
            Ok(End::Paused) => (RunStatus::Paused, None),
            Err(failure) => (failure.status, Some(failure)),
        };
        self.span.record("querent.run.status", status.as_str());
        if let Some(failure) = &failure {
            telemetry::record_failure(&self.span, &failure.detail_code);
        }
        let (last, record) = self.last_events(status, failure);
        tracing::info!(run_id = %record.run_id, status = status.as_str(), usage = record.usage_json, "run finished");
        let store = async {
            let was_running = self.store_end(&record).await;
            leave();
            was_running
        };
        let mut store = std::pin::pin!(store);
        let stored = tokio::time::timeout(STORE_TIMEOUT, &mut store).await;
        match stored {
            Ok(false) if status != RunStatus::Cancelled => {
                // Its clients are told the end that is stored.
                let failure = FailureCause::of_ended_elsewhere();
                let (last, record) = self.last_events(failure.status, Some(failure));
                self.handle.close(last, &record);
            }
            Ok(_) => self.handle.close(last, &record),
            Err(_) => {
                self.handle.close(last, &record);
                store.await;
            }
        }
    }

    /// Returns the last events, which nobody sees yet, and the record of the run as it ended.
    fn last_events(&self, status: RunStatus, failure: Option<FailureCause>) -> (Arc<[RunEvent]>, RunRecord) {
        let mut kinds = Vec::new();
        if let Some(FailureCause { code, message, detail_code, .. }) = failure {
            kinds.push(EventKind::RunError { code, message, detail_code });
        }
        kinds.push(self.finished_event(status));
        self.handle.last_events(kinds, status, self.started)
    }

    /// Returns the failure of the run by an error of its model. Where the model's server is, is told to administrators only.
    fn failed_by(&self, code: RunErrorCode, error: &AgentError) -> FailureCause {
        tracing::warn!(run_id = %self.started_event.run_id, code = error.code(), %error, "the run's model failed");
        let message = match self.session.principal().role() {
            Role::Admin => error.to_string(),
            Role::Read | Role::Write => error.without_model_server(),
        };
        FailureCause::new(RunStatus::Error, code, message, error.code())
    }

    /// Stores the run's end, again and again until that succeeds or the agent shuts down. Returns whether the run was still
    /// stored as in progress.
    async fn store_end(&self, record: &RunRecord) -> bool {
        let (mut pause, longest) = STORE_AGAIN;
        while let Err(error) = self.catalog.runs().update(record).await {
            if matches!(error, CatalogError::RunNotFound { .. }) {
                tracing::info!(run_id = %record.run_id, "the run was deleted before its end, or ended by another server");
                return false;
            }
            tracing::error!(run_id = %record.run_id, code = error.code(), %error, "the run's end could not be stored");
            tokio::select! {
                () = tokio::time::sleep(pause) => pause = longest.min(2 * pause),
                () = self.closing.cancelled() => break,
            }
        }
        true
    }

    /// Does the work until it ends or is stopped from outside. Dropping the work drops the model call and the query.
    async fn outcome(&self) -> Result<End, FailureCause> {
        let work = AssertUnwindSafe(self.work()).catch_unwind();
        tokio::select! {
            biased;
            cause = self.handle.stopped() => Err(stopped(cause)),
            () = self.out_of_time() => Err(FailureCause::new(
                RunStatus::BudgetExceeded,
                RunErrorCode::Timeout,
                self.timeout_message(),
                "run_timeout",
            )),
            outcome = work => outcome.unwrap_or_else(|_| {
                Err(FailureCause::new(RunStatus::Error, RunErrorCode::Internal, "internal: the run panicked", "internal"))
            }),
        }
    }

    /// Waits until the run's time is over, which may have grown by then.
    async fn out_of_time(&self) {
        loop {
            let deadline = self.started + self.allowed_time();
            if deadline <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(tokio::time::Instant::from_std(deadline)).await;
        }
    }

    /// Returns how long the run may take: longer than usual where a model of the user's own machine is slow to speak.
    fn allowed_time(&self) -> Duration {
        let (usual, slow) = (self.config.run_timeout, self.config.slow_run_timeout);
        if slow <= usual || !self.model.provider.is_self_hosted() {
            return usual;
        }
        let first_token = self.handle.totals(self.started).first_token;
        allowed_time(usual, slow, first_token.unwrap_or_else(|| self.started.elapsed()))
    }

    /// Says what to do about a run that was too slow: about the model, where that has said nothing at all.
    fn timeout_message(&self) -> String {
        let (allowed, model) = (in_seconds(self.allowed_time()), self.model.provider.model_id());
        match self.handle.totals(self.started).has_reply {
            true => format!("the run took longer than {allowed}; ask something narrower"),
            false => format!(
                "the model {model} said nothing within {allowed}: it is slow here, or still being loaded; ask again, \
                 raise agent.run_timeout (QUERENT_AGENT_RUN_TIMEOUT), or choose a smaller model"
            ),
        }
    }

    async fn work(&self) -> Result<End, FailureCause> {
        let capabilities = match self.model.provider.capabilities().await {
            Ok(capabilities) => capabilities,
            Err(error) => {
                // What a verified query answers needs no model. Otherwise one that is not available ends the run before it has
                // begun, without `run_started`.
                let turns = Turns::begin(self, ModelCapabilities::of_none()).await;
                let answered = turns.run_without_model().await?;
                return answered.ok_or_else(|| self.failed_by(RunErrorCode::InitError, &error));
            }
        };
        if !capabilities.images && self.request.input.iter().any(|message| !message.images.is_empty()) {
            let error = AgentError::ImagesNotSupported { model: self.model.provider.model_id().to_owned() };
            return Err(self.failed_by(RunErrorCode::InitError, &error));
        }
        self.say_started();
        Turns::begin(self, capabilities).await.run().await
    }

    fn say_started(&self) {
        self.handle.emit(EventKind::RunStarted(Box::new(self.started_event.clone())));
    }

    fn finished_event(&self, status: RunStatus) -> EventKind {
        let totals = self.handle.totals(self.started);
        EventKind::RunFinished(Box::new(RunFinished {
            run_id: self.started_event.run_id,
            outcome: match status {
                RunStatus::Success => RunOutcome::Success,
                RunStatus::Paused => RunOutcome::Paused,
                RunStatus::BudgetExceeded => RunOutcome::BudgetExceeded,
                RunStatus::Cancelled => RunOutcome::Cancelled,
                RunStatus::Running | RunStatus::Error => RunOutcome::Error,
            },
            usage: totals.usage,
            last_usage: totals.last_usage,
            llm_calls: totals.llm_calls,
            cost: totals.cost,
        }))
    }

    /// Returns whether a question or a decision started the run. One that is asked instead of a decision, or beside it, is a
    /// question.
    pub(crate) fn trigger(request: &RunRequest) -> Trigger {
        let asks = request.input.iter().any(|message| message.role == ChatRole::User);
        if request.resume.is_empty() || asks { Trigger::New } else { Trigger::Resume }
    }
}

fn stopped(cause: StopCause) -> FailureCause {
    let (message, detail_code) = match cause {
        StopCause::Shutdown => ("the server is shutting down; ask again when it is back", "shutting_down"),
        StopCause::ClientGone => ("the client went away", "client_gone"),
        StopCause::Cancelled => ("the run was cancelled", CANCELLED_CODE),
    };
    FailureCause::new(RunStatus::Cancelled, RunErrorCode::Internal, message, detail_code)
}

/// Returns the time of a run whose model reads a prompt in `first_token`: as many prompts as a run has, read and answered.
fn allowed_time(usual: Duration, slow: Duration, first_token: Duration) -> Duration {
    /// First tokens that a run takes to its end: four turns, each of whose replies takes several times as long as its
    /// prompt on a processor alone.
    const FIRST_TOKENS: u32 = 20;
    first_token.saturating_mul(FIRST_TOKENS).clamp(usual, slow)
}

fn elapsed_ms(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Formats a duration as `60 s` or `1.5 s`.
fn in_seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_run_grows_with_the_wait_for_its_first_token() {
        let (usual, slow) = (Duration::from_secs(60), Duration::from_secs(300));
        let allowed = |first_token| allowed_time(usual, slow, Duration::from_secs(first_token)).as_secs();
        assert_eq!([0, 1, 3, 5, 10, 15, 60].map(allowed), [60, 60, 60, 100, 200, 300, 300]);
    }
}
