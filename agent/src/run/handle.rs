//! A run as everybody else sees it: its event log, which any number of readers follow at their own pace, its state, and
//! a way to stop it. The log is the run's only output; the run's budget bounds it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use chrono::Utc;
use futures::stream::{self, Stream, StreamExt};
use parking_lot::{Mutex, MutexGuard};
use querent_catalog::{RunRecord, RunStatus};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::elapsed_ms;
use crate::event::{EventKind, RunEvent, Usage};
use crate::event_log::{EventBatch, EventLog};
use crate::models::{ChatMessage, TokenUsage};
use crate::protocols::ask::encode_trace;
use crate::protocols::json_text;
use crate::run_watcher::{RunWatcher, notify_end};
use crate::stored_log::encode_log;

/// Who ended a run early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopCause {
    /// Its owner or an administrator.
    Cancelled,
    /// Its client, by going away.
    ClientGone,
    /// The server goes down.
    Shutdown,
}

/// A run in progress.
pub(crate) struct RunHandle {
    state: Mutex<RunState>,
    watcher: Arc<dyn RunWatcher>,
    /// How long the run continues without a client; `None`: to its end.
    linger: Mutex<Option<Duration>>,
    /// Number of clients.
    attached: AtomicUsize,
    stop: CancellationToken,
    stop_cause: Mutex<Option<StopCause>>,
    /// Cancelled when the run has ended: its last state is stored, or will be.
    pub(crate) ended: CancellationToken,
}

struct RunState {
    record: RunRecord,
    log: EventLog,
    /// Whether the last event has been added.
    closed: bool,
    /// Readers that have read every event so far.
    waiting: Vec<Waker>,
    messages: Vec<ChatMessage>,
    totals: Totals,
}

/// What a run has used.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    pub(crate) usage: Usage,
    pub(crate) last_usage: TokenUsage,
    pub(crate) llm_calls: u32,
    pub(crate) cost: Option<f64>,
    /// Whether the model has said anything.
    pub(crate) has_reply: bool,
    /// How long the longest wait for the first token of a reply was.
    pub(crate) first_token: Option<Duration>,
}

impl Totals {
    /// Notes that the model says something: the first of it where `asked` says when it was asked.
    pub(crate) fn hear(&mut self, asked: Option<Instant>) {
        self.has_reply = true;
        self.first_token = self.first_token.max(asked.map(|asked| asked.elapsed()));
    }
}

impl RunHandle {
    pub(crate) fn new(record: RunRecord, watcher: Arc<dyn RunWatcher>) -> Self {
        let state = RunState {
            record,
            log: EventLog::default(),
            closed: false,
            waiting: Vec::new(),
            messages: Vec::new(),
            totals: Totals::default(),
        };
        Self {
            state: Mutex::new(state),
            watcher,
            linger: Mutex::new(None),
            attached: AtomicUsize::new(0),
            stop: CancellationToken::new(),
            stop_cause: Mutex::new(None),
            ended: CancellationToken::new(),
        }
    }

    /// Notifies the watcher that the run begins.
    pub(crate) fn begin(&self) {
        self.watcher.began();
    }

    /// Sets how long the run continues without a client; `None`: to its end.
    pub(crate) fn set_linger(&self, linger: Option<Duration>) {
        *self.linger.lock() = linger;
    }

    /// Adds a client.
    pub(crate) fn attach(&self) {
        self.attached.fetch_add(1, Ordering::SeqCst);
    }

    /// Removes a client. Returns how long the run continues if that was the last one.
    pub(crate) fn detach(&self) -> Option<Duration> {
        let last = self.attached.fetch_sub(1, Ordering::SeqCst) == 1;
        self.linger.lock().filter(|_| last)
    }

    /// Stops the run unless it has a client again.
    pub(crate) fn stop_if_alone(&self) {
        if self.attached.load(Ordering::SeqCst) == 0 {
            self.stop(StopCause::ClientGone);
        }
    }

    /// Stops the run; the first cause counts.
    pub(crate) fn stop(&self, cause: StopCause) {
        self.stop_cause.lock().get_or_insert(cause);
        self.stop.cancel();
    }

    /// Waits until somebody stops the run. Returns who did.
    pub(crate) async fn stopped(&self) -> StopCause {
        self.stop.cancelled().await;
        self.stop_cause.lock().unwrap_or(StopCause::Cancelled)
    }

    /// Whether its clients know that it goes on no more: its end is delivered, or somebody has stopped it.
    pub(crate) fn is_over(&self) -> bool {
        self.stop.is_cancelled() || self.ended.is_cancelled()
    }

    /// Waits until its clients know that it goes on no more.
    pub(crate) async fn over(&self) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = self.ended.cancelled() => {}
        }
    }

    /// Whether it is stopped as soon as its last client has gone.
    pub(crate) fn ends_with_its_client(&self) -> bool {
        self.linger.lock().is_some_and(|linger| linger.is_zero())
    }

    /// Appends an event to the log.
    pub(crate) fn emit(&self, kind: EventKind) {
        self.emit_all(vec![kind]);
    }

    /// Appends events of one moment to the log.
    pub(crate) fn emit_all(&self, kinds: Vec<EventKind>) {
        for kind in &kinds {
            if let EventKind::ToolResult(result) = kind {
                self.watcher.tool_returned(result);
            }
        }
        let mut state = self.state.lock();
        let batch = state.log.next_batch(kinds);
        state.log.append(batch);
        wake_readers(state);
    }

    /// Creates the last events, which readers do not see yet, and the record of the run as it ended.
    pub(crate) fn last_events(
        &self,
        kinds: Vec<EventKind>,
        status: RunStatus,
        started: Instant,
    ) -> (Arc<[RunEvent]>, RunRecord) {
        let state = self.state.lock();
        let last = state.log.next_batch(kinds);
        // Readers see the run as running until its last events are added.
        let mut record = state.record(&last, started);
        record.status = status;
        // By another clock than its begin where servers share the catalog.
        record.finished_at = Some(Utc::now().max(record.started_at));
        record.usage_json = json!(state.totals.usage).to_string();
        (last, record)
    }

    /// Appends the last events and ends the log. From now on the run is shown as it is in `record`, stored or not.
    pub(crate) fn close(&self, last: Arc<[RunEvent]>, record: &RunRecord) {
        notify_end(self.watcher.as_ref(), last.iter());
        let mut state = self.state.lock();
        state.record.status = record.status;
        state.record.finished_at = record.finished_at;
        state.log.append(last);
        state.closed = true;
        wake_readers(state);
        self.ended.cancel();
    }

    /// Follows the events from the `from`th on, to the run's end.
    pub(crate) fn subscribe(self: &Arc<Self>, from: usize) -> impl Stream<Item = EventBatch> + Send + use<> {
        let handle = Arc::clone(self);
        let batches = stream::unfold(from, move |from| {
            let handle = Arc::clone(&handle);
            async move {
                let batches = std::future::poll_fn(|context| handle.poll_events(from, context)).await;
                let read: usize = batches.iter().map(|batch| batch.len()).sum();
                (read > 0).then(|| (stream::iter(batches), from + read))
            }
        });
        batches.flatten()
    }

    /// Polls for the events from the `from`th on; none once the run has ended.
    fn poll_events(&self, from: usize, context: &mut Context<'_>) -> Poll<Vec<EventBatch>> {
        let mut state = self.state.lock();
        let batches = state.log.since(from);
        if !batches.is_empty() || state.closed {
            return Poll::Ready(batches);
        }
        // A reader that polls again before the next event is registered once.
        if !state.waiting.iter().any(|waiting| waiting.will_wake(context.waker())) {
            state.waiting.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// Returns how many events there are.
    pub(crate) fn events(&self) -> usize {
        self.state.lock().log.len()
    }

    /// Returns the record of the run as of now.
    pub(crate) fn snapshot(&self, started: Instant) -> RunRecord {
        self.state.lock().record(&[], started)
    }

    pub(crate) fn update_totals(&self, update: impl FnOnce(&mut Totals)) {
        update(&mut self.state.lock().totals);
    }

    pub(crate) fn totals(&self, started: Instant) -> Totals {
        let mut state = self.state.lock();
        state.totals.usage.elapsed_ms = elapsed_ms(started);
        state.totals
    }

    /// Keeps the conversation so far, for the run that continues this one.
    pub(crate) fn keep_messages(&self, messages: Vec<ChatMessage>) {
        self.state.lock().messages = messages;
    }
}

/// Wakes the readers that wait for the next event.
fn wake_readers(mut state: MutexGuard<'_, RunState>) {
    let waiting = std::mem::take(&mut state.waiting);
    drop(state);
    waiting.into_iter().for_each(Waker::wake);
}

impl RunState {
    /// Returns the record of the run with `last` appended to its log.
    fn record(&self, last: &[RunEvent], started: Instant) -> RunRecord {
        let usage = Usage { elapsed_ms: elapsed_ms(started), ..self.totals.usage };
        let record = RunRecord {
            usage_json: json!(usage).to_string(),
            trace_json: encode_trace(self.log.iter().chain(last)),
            ..self.record.clone()
        };
        // Kept of every run while it runs, so that it can be ended by the next process.
        if !record.keeps_log() && !last.is_empty() {
            let nothing = || "[]".to_owned();
            return RunRecord { events_json: nothing(), messages_json: nothing(), ..record };
        }
        let events_json = encode_log(self.log.iter().chain(last));
        RunRecord { events_json, messages_json: json_text(&self.messages), ..record }
    }
}
