//! The event log of a run and its readers. Events are stored, shared and read in the batches in which they were
//! emitted: a fast model emits many pieces at once, and a reader takes them together.

use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use chrono::{DateTime, SubsecRound, Utc};
use futures::stream::{self, BoxStream, Stream, StreamExt};

use crate::event::{EventKind, RunEvent};

/// The events of a run so far.
#[derive(Default)]
pub(crate) struct EventLog {
    /// No batch is empty.
    batches: Vec<Arc<[RunEvent]>>,
    len: usize,
}

impl EventLog {
    /// Numbers and dates events that follow those of the log, without adding them to it.
    pub(crate) fn next_batch(&self, kinds: Vec<EventKind>) -> Arc<[RunEvent]> {
        let at: DateTime<Utc> = Utc::now().trunc_subsecs(3);
        let events = kinds.into_iter().enumerate();
        events.map(|(index, kind)| RunEvent { seq: (self.len + index) as u64, at, kind }).collect()
    }

    /// Adds a batch that [`Log::next_batch`] made.
    pub(crate) fn append(&mut self, batch: Arc<[RunEvent]>) {
        if !batch.is_empty() {
            self.len += batch.len();
            self.batches.push(batch);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &RunEvent> {
        self.batches.iter().flat_map(|batch| batch.iter())
    }

    /// Returns the events from the `from`th on.
    pub(crate) fn since(&self, from: usize) -> Vec<EventBatch> {
        let seen = |batch: &Arc<[RunEvent]>| batch.last().is_some_and(|last| last.seq < from as u64);
        let unseen = self.batches.split_at(self.batches.partition_point(seen)).1;
        let from_of = |batch: &[RunEvent]| batch.iter().take_while(|event| event.seq < from as u64).count();
        unseen.iter().map(|batch| EventBatch { from: from_of(batch), events: Arc::clone(batch) }).collect()
    }
}

/// Consecutive events of a run that were emitted together. Cheap to clone; dereferences to a slice.
#[derive(Debug, Clone)]
pub struct EventBatch {
    events: Arc<[RunEvent]>,
    from: usize,
}

impl Deref for EventBatch {
    type Target = [RunEvent];

    fn deref(&self) -> &[RunEvent] {
        self.events.get(self.from..).unwrap_or_default()
    }
}

/// One event of a run. Cheap to clone; dereferences to the event.
#[derive(Debug, Clone)]
pub struct LoggedEvent {
    events: Arc<[RunEvent]>,
    index: usize,
}

impl Deref for LoggedEvent {
    type Target = RunEvent;

    fn deref(&self) -> &RunEvent {
        // Created only with indices of the batch.
        &self.events[self.index]
    }
}

/// A run's events as one reader follows them: as a stream, or batch by batch.
pub struct RunEvents {
    /// Taken from `batches` and not read to its end; never empty.
    begun: Option<EventBatch>,
    batches: BoxStream<'static, EventBatch>,
}

impl RunEvents {
    pub(crate) fn new(batches: impl Stream<Item = EventBatch> + Send + 'static) -> Self {
        let batches = batches.filter(|batch| std::future::ready(!batch.is_empty()));
        Self { begun: None, batches: batches.boxed() }
    }

    /// Reads a stored log from the `from`th event on.
    pub(crate) fn stored(log: Vec<RunEvent>, from: usize) -> Self {
        Self::new(stream::iter([EventBatch { events: log.into(), from }]))
    }

    /// Waits for the next event and returns it with all that are available. `None` when the run has ended.
    pub async fn next_batch(&mut self) -> Option<EventBatch> {
        match self.begun.take() {
            Some(batch) => Some(batch),
            None => self.batches.next().await,
        }
    }

    /// Waits for the next event without taking it.
    pub async fn peek(&mut self) -> Option<&RunEvent> {
        if self.begun.is_none() {
            self.begun = self.batches.next().await;
        }
        self.begun.as_deref()?.first()
    }

    /// Ends the events early, when `end` completes.
    #[must_use]
    pub fn until(self, end: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { begun: self.begun, batches: self.batches.take_until(end).boxed() }
    }
}

impl Stream for RunEvents {
    type Item = LoggedEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<LoggedEvent>> {
        let batch = match self.begun.take() {
            Some(batch) => batch,
            None => match ready!(self.batches.poll_next_unpin(context)) {
                Some(batch) => batch,
                None => return Poll::Ready(None),
            },
        };
        let EventBatch { events, from } = batch;
        if from + 1 < events.len() {
            self.begun = Some(EventBatch { events: Arc::clone(&events), from: from + 1 });
        }
        Poll::Ready(Some(LoggedEvent { events, index: from }))
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test has a runtime of its own")]
mod tests {
    use super::*;

    fn log_of(batches: &[u32]) -> EventLog {
        let mut log = EventLog::default();
        let mut iteration = 0;
        for length in batches {
            let kinds = (0..*length).map(|index| EventKind::LlmCallStarted { iteration: iteration + index }).collect();
            iteration += length;
            let batch = log.next_batch(kinds);
            log.append(batch);
        }
        log
    }

    fn numbers(log: &EventLog, from: usize) -> Vec<u64> {
        log.since(from).iter().flat_map(|batch| batch.iter().map(|event| event.seq)).collect()
    }

    #[test]
    fn a_reader_gets_each_event_from_where_it_asks() {
        let log = log_of(&[1, 3, 0, 2]);
        for from in 0..8 {
            assert_eq!(numbers(&log, from), (from as u64..6).collect::<Vec<_>>(), "{from}");
        }
        assert_eq!(log.iter().map(|event| event.seq).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    }

    #[tokio::test]
    async fn a_reader_may_peek_and_take_events_one_by_one_or_together() {
        let log = log_of(&[2, 3]);
        let mut events = RunEvents::new(stream::iter(log.since(0)));
        assert_eq!(events.peek().await.unwrap().seq, 0);
        assert_eq!(events.next().await.unwrap().seq, 0);
        assert_eq!(events.next_batch().await.unwrap().iter().map(|event| event.seq).collect::<Vec<_>>(), [1]);
        assert_eq!(events.next().await.unwrap().seq, 2);
        let rest: Vec<u64> = events.map(|event| event.seq).collect().await;
        assert_eq!(rest, [3, 4]);
        let stored = RunEvents::stored(log.iter().cloned().collect(), 9);
        assert_eq!(stored.count().await, 0);
    }
}
