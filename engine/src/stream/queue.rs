//! The batches between a query and its reader.
//!
//! The query runs ahead of its reader by [`QUEUED_BYTES`] at most, which are charged to its memory. Where that is not
//! enough it waits: its clock stands still, and it gives its slot back, so that readers who are slow, or do not read at all,
//! keep nobody else from running queries. When the reader goes on, the query waits for a slot and works on.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arrow::array::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use futures::task::AtomicWaker;
use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::result_types::ResultSchema;
use crate::error::{EngineError, Result};
use crate::limits::{BATCH_BYTES, QueryClock, batch_bytes};
use crate::slots::{CallerSlots, QuerySlot};

/// What a query makes ahead of its reader, in bytes: a message of Flight, so that one is made while one is sent.
const QUEUED_BYTES: usize = 2 * BATCH_BYTES;

/// A batch of so few rows and bytes may wait for what comes after it, where that is there at once.
const SMALL_ROWS: usize = 1_024;
const SMALL_BYTES: usize = 64 << 10;
/// How many such batches wait at most.
const MAX_UNTOLD: usize = 4;
/// A query that has ended and left so few bytes does not wait until they are read: its threads are free for the next.
const LEFT_BYTES: usize = 16 << 10;

/// The batches of one query that its reader has not taken yet.
pub(super) struct BatchQueue {
    state: Mutex<QueueState>,
    reader: AtomicWaker,
    /// Wakes the query: there is room, or the reader is gone.
    room: Notify,
    clock: QueryClock,
    reader_idle: Duration,
}

struct QueueState {
    batches: VecDeque<QueuedBatch>,
    /// Holds the bytes of `batches`.
    memory: MemoryReservation,
    slot: Option<HeldSlot>,
    is_waiting: bool,
    reader_is_gone: bool,
    read_at: Instant,
    end: Option<Result<()>>,
    has_ended: bool,
}

struct QueuedBatch {
    batch: RecordBatch,
    bytes: usize,
}

/// The right of a query to run, which it gives back while it waits for its reader.
struct HeldSlot {
    slots: CallerSlots,
    slot: Option<QuerySlot>,
}

/// What a query that waits for its reader waits for.
#[derive(Clone, Copy)]
enum Wanted {
    /// Room for so many bytes.
    Room(usize),
    /// That the reader has taken everything.
    Empty,
}

impl BatchQueue {
    pub(super) fn new(clock: QueryClock, reader_idle: Duration, memory: &Arc<dyn MemoryPool>) -> Self {
        let state = QueueState {
            batches: VecDeque::new(),
            memory: MemoryConsumer::new("rows that wait for their reader").register(memory),
            slot: None,
            is_waiting: false,
            reader_is_gone: false,
            read_at: Instant::now(),
            end: None,
            has_ended: false,
        };
        Self { state: Mutex::new(state), reader: AtomicWaker::new(), room: Notify::new(), clock, reader_idle }
    }

    /// Lets the query hold a slot whenever it works.
    pub(super) fn hold(&self, slot: QuerySlot) {
        let mut state = self.state.lock();
        if state.has_ended || state.reader_is_gone {
            return;
        }
        let slots = slot.slots().clone();
        let (held, given_back) = if state.is_waiting { (None, Some(slot)) } else { (Some(slot), None) };
        state.slot = Some(HeldSlot { slots, slot: held });
        drop(state);
        drop(given_back);
    }

    /// Returns the next batch; the error that ended the query is the last item.
    pub(super) fn poll_batch(&self, cx: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        self.reader.register(cx.waker());
        let mut state = self.state.lock();
        state.read_at = Instant::now();
        if let Some(QueuedBatch { batch, bytes }) = state.batches.pop_front() {
            state.memory.shrink(bytes);
            // Half of it at a time, so that the query is not woken for every batch.
            if state.memory.size() <= QUEUED_BYTES / 2 {
                self.room.notify_one();
            }
            return Poll::Ready(Some(Ok(batch)));
        }
        match state.end.take() {
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            Some(Ok(())) => Poll::Ready(None),
            None if state.has_ended => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    /// Ends the query on its reader's side: what is queued and the slot are given back.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.reader_is_gone = true;
        let batches = state.forget_batches();
        let slot = state.slot.take();
        drop(state);
        // Dropped outside of the lock, since that may take a while.
        drop((batches, slot));
        self.room.notify_one();
    }

    /// Reads `input` to its end, and stays until the reader has read all but a little or is gone, or has been idle for too
    /// long.
    pub(super) async fn fill(&self, input: SendableRecordBatchStream, schema: ResultSchema) {
        // A panic ends the query with an error that says so, rather than a stream without an end.
        let read = AssertUnwindSafe(self.read(input, schema)).catch_unwind().await;
        let outcome = read.unwrap_or_else(|panic| Err(EngineError::from_panic(panic.as_ref())));
        self.end(outcome);
        if self.state.lock().memory.size() <= LEFT_BYTES {
            return;
        }
        if let Err(idle) = self.wait_for_reader(Wanted::Empty).await {
            self.end(Err(idle));
        }
    }

    async fn read(&self, mut input: SendableRecordBatchStream, schema: ResultSchema) -> Result<()> {
        // How many batches the reader was not woken for.
        let mut untold = 0;
        loop {
            let at_once = if untold > 0 { input.next().now_or_never() } else { None };
            let next = match at_once {
                Some(next) => next.transpose().map_err(EngineError::from)?,
                None => {
                    if std::mem::take(&mut untold) > 0 {
                        self.reader.wake();
                    }
                    let next = input.next().map(|next| next.transpose().map_err(EngineError::from));
                    self.clock.limit_time(next).await?
                }
            };
            let Some(batch) = next else { return Ok(()) };
            // Halves that wait for their turn, the first on top.
            let mut halves = vec![batch];
            while let Some(batch) = halves.pop() {
                let rows = batch.num_rows();
                if rows == 0 {
                    continue;
                }
                if rows > 1 && batch_bytes(&batch) > BATCH_BYTES {
                    let middle = rows / 2;
                    halves.push(batch.slice(middle, rows - middle));
                    halves.push(batch.slice(0, middle));
                    continue;
                }
                let batch = schema.conform(batch)?;
                let bytes = batch_bytes(&batch);
                if !self.has_room(bytes) {
                    if std::mem::take(&mut untold) > 0 {
                        self.reader.wake();
                    }
                    self.wait(bytes).await?;
                }
                let is_small = batch.num_rows() <= SMALL_ROWS && bytes <= SMALL_BYTES;
                if !self.push(batch, bytes) {
                    return Ok(());
                }
                untold += 1;
                // A small batch is mostly the last: its reader is woken once, for it and for the end.
                if !is_small || untold >= MAX_UNTOLD {
                    untold = 0;
                    self.reader.wake();
                }
            }
        }
    }

    /// Returns whether `bytes` more may be queued, and reserves them.
    fn has_room(&self, bytes: usize) -> bool {
        let mut state = self.state.lock();
        state.reader_is_gone || state.reserve(bytes)
    }

    /// Queues a batch whose bytes are reserved, without waking its reader; returns whether there is one.
    fn push(&self, batch: RecordBatch, bytes: usize) -> bool {
        let mut state = self.state.lock();
        if state.reader_is_gone {
            return false;
        }
        state.batches.push_back(QueuedBatch { batch, bytes });
        true
    }

    /// Waits until there is room, without the clock and without the slot; then for a slot. Errors: `reader_idle`, and why
    /// somebody ended the query.
    async fn wait(&self, bytes: usize) -> Result<()> {
        self.clock.stop();
        let given_back = {
            let mut state = self.state.lock();
            state.is_waiting = true;
            state.slot.as_mut().and_then(|held| held.slot.take())
        };
        drop(given_back);
        self.wait_for_reader(Wanted::Room(bytes)).await?;
        while let Some(slots) = self.slots_to_wait_for() {
            let slot = tokio::select! {
                slot = slots.resume() => slot,
                () = self.clock.until_ended() => return Err(self.clock.exceeded()),
            };
            if let Some(held) = self.state.lock().slot.as_mut() {
                held.slot = Some(slot);
            }
        }
        // A reader that waits has to look at the clock again.
        self.reader.wake();
        Ok(())
    }

    /// Returns the slots of a query that has none of them; where it has or needs none, it works again and its clock runs.
    fn slots_to_wait_for(&self) -> Option<CallerSlots> {
        let mut state = self.state.lock();
        match &state.slot {
            Some(held) if held.slot.is_none() => Some(held.slots.clone()),
            _ => {
                state.is_waiting = false;
                self.clock.resume();
                None
            }
        }
    }

    /// Returns once the reader has made what is wanted true, or is gone. Errors: `reader_idle`.
    async fn wait_for_reader(&self, wanted: Wanted) -> Result<()> {
        loop {
            let idle_at = {
                let mut state = self.state.lock();
                let is_there = match wanted {
                    Wanted::Room(bytes) => state.reserve(bytes),
                    Wanted::Empty => state.batches.is_empty(),
                };
                if is_there || state.reader_is_gone {
                    return Ok(());
                }
                state.read_at.checked_add(self.reader_idle)
            };
            if idle_at.is_some_and(|idle_at| idle_at <= Instant::now()) {
                return Err(EngineError::ReaderIdle { limit: self.reader_idle });
            }
            // The notification comes for the last time that it was asked for: nothing is missed in between.
            let woken = async {
                match idle_at {
                    Some(idle_at) => {
                        let _ = tokio::time::timeout_at(idle_at, self.room.notified()).await;
                    }
                    None => self.room.notified().await,
                }
            };
            tokio::select! {
                biased;
                () = woken => {}
                () = self.clock.until_ended(), if matches!(wanted, Wanted::Room(_)) => return Err(self.clock.exceeded()),
            }
        }
    }

    /// Ends the query on its own side. What is queued can still be read, unless its reader has been idle for too long.
    fn end(&self, outcome: Result<()>) {
        self.clock.stop();
        let mut state = self.state.lock();
        let forgotten = match &outcome {
            Err(EngineError::ReaderIdle { .. }) => state.forget_batches(),
            _ => VecDeque::new(),
        };
        state.has_ended = true;
        state.end = Some(outcome);
        let slot = state.slot.take();
        drop(state);
        drop((forgotten, slot));
        self.reader.wake();
    }
}

impl QueueState {
    /// Reserves `bytes`, where the queue has room for them. What a query has made it must be able to hand on, so the first
    /// batch always has room.
    fn reserve(&mut self, bytes: usize) -> bool {
        if self.batches.is_empty() {
            self.memory.grow(bytes);
            return true;
        }
        self.memory.size() + bytes <= QUEUED_BYTES && self.memory.try_grow(bytes).is_ok()
    }

    fn forget_batches(&mut self) -> VecDeque<QueuedBatch> {
        self.memory.free();
        std::mem::take(&mut self.batches)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a runtime of its own")]
mod tests {
    use arrow::array::{ArrayRef, Int64Array};
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::execution::memory_pool::UnboundedMemoryPool;
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use futures::stream;

    use super::*;
    use crate::slots::{QuerySlots, SlotLimits};

    const PATIENCE: Duration = Duration::from_secs(3_600);

    #[tokio::test]
    async fn a_query_that_panics_ends_with_an_error() {
        for (message, code) in [("byte array offset overflow", "value_too_large"), ("a bug", "internal")] {
            let rows = stream::iter([Ok(numbers(3))]).chain(stream::poll_fn(move |_| panic!("{message}")));
            let (queue, _) = queue_and_memory();
            let read = async {
                assert!(matches!(next(&queue).await, Some(Ok(batch)) if batch.num_rows() == 3), "{message}");
                assert_eq!(next(&queue).await.unwrap().unwrap_err().code(), code);
                assert!(next(&queue).await.is_none());
            };
            tokio::join!(queue.fill(boxed(rows), promised()), read);
        }
    }

    #[tokio::test]
    async fn a_query_that_waits_has_no_slot_and_no_clock() {
        let (queue, memory) = queue_and_memory();
        let slots = QuerySlots::new(SlotLimits { slots: 1, per_caller: 1, queued: 1 });
        queue.hold(slots.of("one").begin().await.unwrap());
        let large = 100_000;
        let filled = queue.fill(boxed(stream::iter((0..20).map(move |_| Ok(numbers(large))))), promised());
        let read = async {
            // The one that reads has the slot while the query waits.
            let taken = slots.of("another").begin().await.unwrap();
            assert_eq!(queue.clock.deadline(), None);
            assert!(memory.reserved() > 0 && memory.reserved() <= QUEUED_BYTES, "{}", memory.reserved());
            let mut rows = 0;
            while memory.reserved() > 0 {
                rows += next(&queue).await.unwrap().unwrap().num_rows();
            }
            assert!(rows < 20 * large, "the query waits for its slot");
            drop(taken);
            while let Some(batch) = next(&queue).await {
                rows += batch.unwrap().num_rows();
            }
            assert_eq!(rows, 20 * large);
            assert_eq!(slots.free(), 1);
        };
        tokio::join!(filled, read);
        assert_eq!(memory.reserved(), 0);
    }

    #[tokio::test]
    async fn a_query_stays_for_rows_that_take_memory_and_for_no_others() {
        let (queue, memory) = queue_and_memory();
        let few = queue.fill(boxed(stream::iter([Ok(numbers(10))])), promised());
        assert!(few.now_or_never().is_some());
        assert!(matches!(next(&queue).await, Some(Ok(batch)) if batch.num_rows() == 10));
        assert!(next(&queue).await.is_none());
        assert_eq!(memory.reserved(), 0);

        let (queue, memory) = queue_and_memory();
        let mut many = std::pin::pin!(queue.fill(boxed(stream::iter([Ok(numbers(10_000))])), promised()));
        assert!(many.as_mut().now_or_never().is_none());
        assert!(memory.reserved() >= 80_000);
        assert!(matches!(next(&queue).await, Some(Ok(batch)) if batch.num_rows() == 10_000));
        many.await;
    }

    fn queue_and_memory() -> (BatchQueue, Arc<dyn MemoryPool>) {
        let memory: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        (BatchQueue::new(QueryClock::start(PATIENCE), PATIENCE, &memory), memory)
    }

    async fn next(queue: &BatchQueue) -> Option<Result<RecordBatch>> {
        std::future::poll_fn(|cx| queue.poll_batch(cx)).await
    }

    fn promised() -> ResultSchema {
        ResultSchema(Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)])))
    }

    fn numbers(rows: usize) -> RecordBatch {
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows as i64));
        RecordBatch::try_from_iter([("n", column)]).unwrap()
    }

    fn boxed(
        rows: impl futures::Stream<Item = datafusion::error::Result<RecordBatch>> + Send + 'static,
    ) -> SendableRecordBatchStream {
        let ResultSchema(schema) = promised();
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }
}
