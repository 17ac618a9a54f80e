//! A running query's results: batches of exactly the promised schema, within the session's limits.
//!
//! The stream owns the query: dropping it, or its reaching a limit, stops the work. The query's clock runs while it works; a
//! query that waits for its reader holds neither its slot nor more memory than a few megabytes ([`queue`]), and ends when
//! its reader has been idle for longer than the limits say.

mod queue;
mod result_types;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::future::BoxFuture;
use futures::{Stream, StreamExt};
use parking_lot::Mutex;
use querent_kql::{AskedLimits, BindErrorCode, KqlError, KqlErrorCode};
use tokio::sync::oneshot;
use tokio::time::Sleep;
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument, Span};

use crate::error::{FilePlace, Result};
use crate::limits::{AbandonOnDrop, Limits, QueryClock, QueryUsage, batch_bytes};
use crate::slots::QuerySlot;
use crate::threads::Lane;
use queue::BatchQueue;
use result_types::ResultSchema;
pub use result_types::ResultTypes;

/// How often a query that should be quick is looked at before its reader is told that it has begun.
const QUICK_LOOKS: usize = 4;

/// What a stream has delivered so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueryStats {
    /// Rows delivered.
    pub rows: u64,
    /// Arrow bytes delivered.
    pub bytes: u64,
    /// Whether a row or byte limit cut the result.
    pub truncated: bool,
    /// Whether the rows were kept from a query before, and nothing was executed.
    pub from_result_cache: bool,
}

/// Record batches of one query, all of exactly [`QueryStream::schema`] (names, types, nullability). Dropping it stops the work.
pub struct QueryStream {
    schema: SchemaRef,
    queue: Arc<BatchQueue>,
    /// The query; `None` once the stream has ended.
    work: Option<QueryWork>,
    clock: QueryClock,
    /// Wakes a reader that waits when the query's time is over.
    timer: Option<Pin<Box<Sleep>>>,
    max_rows: Option<u64>,
    max_bytes: Option<u64>,
    stats: QueryStats,
    /// The code of the error that ended it.
    failed: Option<&'static str>,
    /// Who is told how it ended.
    listener: Option<EndListener>,
    /// Where files lie, which its errors do not say.
    untold: Option<Arc<Mutex<Vec<FilePlace>>>>,
}

/// Is told what a stream delivered and which error ended it.
pub(crate) type EndListener = Box<dyn FnOnce(QueryStats, Option<&'static str>) + Send + Sync>;

/// The work of a query: dropping it interrupts the work, also in the middle of a join that never yields.
struct QueryWork {
    _task: AbortOnDropHandle<()>,
    _abandoned: AbandonOnDrop,
}

impl QueryStream {
    /// Begins a query on its threads and returns its stream. The task that begins it goes on to read its rows, so that a small
    /// query changes threads twice: to its own, and back with its rows. Errors: those of `work`.
    pub(crate) async fn start(
        lane: &Lane,
        work: BoxFuture<'static, Result<StartedQuery>>,
        running: RunningQuery<'_>,
    ) -> Result<Self> {
        let RunningQuery { limits, clock, abandoned, usage, span } = running;
        let (sender, begun) = oneshot::channel();
        let (work_clock, reader_idle) = (clock.clone(), limits.reader_idle);
        let mut task = lane.spawn(
            usage.scope(
                async move {
                    let StartedQuery { schema, rows, memory, is_all, is_quick, is_kept } = match work.await {
                        Ok(started) => started,
                        // Whoever waited for it may be gone.
                        Err(error) => return drop(sender.send(Err(error))),
                    };
                    let queue = Arc::new(BatchQueue::new(work_clock, reader_idle, &memory));
                    let begun = BegunQuery { schema: Arc::clone(&schema), queue: Arc::clone(&queue), is_all, is_kept };
                    let mut filled = std::pin::pin!(queue.fill(rows, ResultSchema(schema)));
                    // Its reader is then woken once, for the beginning, the rows and the end.
                    let is_filled = is_quick && is_done_soon(filled.as_mut()).await;
                    if sender.send(Ok(begun)).is_ok() && !is_filled {
                        filled.await;
                    }
                }
                .instrument(span),
            ),
        );
        let begun = async {
            match begun.await {
                Ok(begun) => begun,
                Err(_) => Err((&mut task).await.err().map_or_else(Lane::closed, Lane::failure)),
            }
        };
        let BegunQuery { schema, queue, is_all, is_kept } = clock.limit_time(begun).await?;
        Ok(Self {
            schema,
            queue,
            work: Some(QueryWork { _task: task, _abandoned: abandoned }),
            clock,
            timer: None,
            max_rows: limits.max_rows,
            max_bytes: limits.max_bytes,
            stats: QueryStats { truncated: !is_all, from_result_cache: is_kept, ..QueryStats::default() },
            failed: None,
            listener: None,
            untold: None,
        })
    }

    /// Returns the stream, of whose end `listener` is told once.
    pub(crate) fn told(mut self, listener: EndListener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Returns the stream, whose errors do not say where these files lie.
    pub(crate) fn without_places(mut self, places: Arc<Mutex<Vec<FilePlace>>>) -> Self {
        self.untold = Some(places);
        self
    }

    /// Returns the stream of a query that runs in a slot. The query gives it back while it waits for its reader and when its
    /// work is done, which may be long before the last row is read.
    pub fn holding(self, slot: Option<QuerySlot>) -> Self {
        if let Some(slot) = slot {
            self.queue.hold(slot);
        }
        self
    }

    /// Returns the schema of every batch.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Returns what was delivered so far; it is final once the stream has ended.
    pub fn stats(&self) -> QueryStats {
        self.stats
    }

    /// Returns all batches, within the session's limits.
    pub async fn collect(mut self) -> Result<(Vec<RecordBatch>, QueryStats)> {
        let mut batches = Vec::new();
        while let Some(batch) = self.next().await {
            batches.push(batch?);
        }
        Ok((batches, self.stats))
    }

    fn end(&mut self) {
        self.queue.close();
        self.work = None;
    }

    /// Registers `cx` for the end of the query's time; returns whether it is over already.
    fn poll_time(&mut self, cx: &mut Context<'_>) -> bool {
        // A clock that stands still has no end to wait for; the query wakes its reader when the clock runs on.
        while let Some(deadline) = self.clock.deadline() {
            let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
            if timer.deadline() != deadline {
                timer.as_mut().reset(deadline);
            }
            if timer.as_mut().poll(cx).is_pending() {
                return false;
            }
            if self.clock.is_over() {
                return true;
            }
        }
        false
    }

    /// Returns as much of `batch` as the limits leave room for; `None` where that is nothing.
    fn within_limits(&mut self, batch: RecordBatch) -> Option<RecordBatch> {
        let mut kept = batch.num_rows();
        if let Some(max_rows) = self.max_rows {
            let room = max_rows.saturating_sub(self.stats.rows);
            kept = kept.min(usize::try_from(room).unwrap_or(usize::MAX));
        }
        let mut bytes = slice_bytes(&batch, kept);
        if let Some(max_bytes) = self.max_bytes {
            let room = max_bytes.saturating_sub(self.stats.bytes);
            if bytes > room {
                kept = rows_within(&batch, kept, room);
                bytes = slice_bytes(&batch, kept);
            }
        }
        if kept < batch.num_rows() {
            self.stats.truncated = true;
            self.end();
        }
        if kept == 0 {
            return None;
        }
        self.stats.rows += kept as u64;
        self.stats.bytes += bytes;
        if kept == batch.num_rows() { Some(batch) } else { Some(batch.slice(0, kept)) }
    }
}

impl Stream for QueryStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.work.is_none() {
            return Poll::Ready(None);
        }
        loop {
            match this.queue.poll_batch(cx) {
                Poll::Pending if this.poll_time(cx) => {
                    this.end();
                    let error = this.clock.exceeded();
                    this.failed = Some(error.code());
                    return Poll::Ready(Some(Err(error)));
                }
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(batch))) => {
                    let kept = this.within_limits(batch);
                    if kept.is_some() || this.work.is_none() {
                        return Poll::Ready(kept.map(Ok));
                    }
                }
                Poll::Ready(ended) => {
                    let ended = ended.map(|last| match &this.untold {
                        Some(places) => last.map_err(|error| error.without_places(&places.lock())),
                        None => last,
                    });
                    this.failed = ended.as_ref().and_then(|ended| ended.as_ref().err()).map(|error| error.code());
                    this.end();
                    return Poll::Ready(ended);
                }
            }
        }
    }
}

impl Drop for QueryStream {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(listener) = self.listener.take() {
            listener(self.stats, self.failed);
        }
    }
}

/// What a query runs with.
pub(crate) struct RunningQuery<'q> {
    pub(crate) limits: &'q Limits,
    pub(crate) clock: QueryClock,
    pub(crate) abandoned: AbandonOnDrop,
    pub(crate) usage: &'q Arc<QueryUsage>,
    /// What its work is seen as by those who collect traces.
    pub(crate) span: Span,
}

/// A query that has begun, or the answer of a statement that has written.
pub(crate) struct StartedQuery {
    /// What is promised of its rows.
    pub(crate) schema: SchemaRef,
    pub(crate) rows: SendableRecordBatchStream,
    /// What the rows that wait for their reader are charged to.
    pub(crate) memory: Arc<dyn MemoryPool>,
    /// Whether the rows are all that were asked for.
    pub(crate) is_all: bool,
    /// Whether the rows are few and soon there, so that whoever waits for them may be told of its beginning with them.
    pub(crate) is_quick: bool,
    /// Whether the rows were kept from a query before.
    pub(crate) is_kept: bool,
}

impl StartedQuery {
    /// Returns the query, which fails where it has more rows or more bytes than `asked`.
    pub(crate) fn failing_beyond(mut self, asked: AskedLimits) -> Self {
        if asked.rows.is_none() && asked.bytes.is_none() {
            return self;
        }
        let (schema, mut rows, mut bytes) = (self.rows.schema(), 0, 0);
        let counted = self.rows.map(move |batch| {
            let batch = batch?;
            rows += batch.num_rows() as u64;
            bytes += batch_bytes(&batch) as u64;
            match (asked.rows, asked.bytes) {
                (Some(most), _) if rows > most => Err(too_large(most, "rows", "truncationmaxrecords").into()),
                (_, Some(most)) if bytes > most => Err(too_large(most, "bytes", "truncationmaxsize").into()),
                _ => Ok(batch),
            }
        });
        self.rows = Box::pin(RecordBatchStreamAdapter::new(schema, counted));
        self
    }
}

fn too_large(most: u64, of: &str, option: &str) -> KqlError {
    KqlError {
        code: KqlErrorCode::Bind(BindErrorCode::TooLarge),
        message: format!("the result has more than {most} {of}, which are those of the query's {option}"),
        hint: Some(format!("let the query return fewer {of}, or raise the limit that it sets")),
    }
}

/// Looks a few times at work that should be quick, while what it has spawned runs. Returns whether it is done.
async fn is_done_soon(mut work: Pin<&mut impl Future<Output = ()>>) -> bool {
    for _ in 0..QUICK_LOOKS {
        if std::future::poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx).is_ready())).await {
            return true;
        }
        tokio::task::yield_now().await;
    }
    false
}

/// What a query's reader has of one that has begun.
struct BegunQuery {
    schema: SchemaRef,
    queue: Arc<BatchQueue>,
    is_all: bool,
    is_kept: bool,
}

/// Returns the bytes of the first `rows` rows, whatever else their buffers hold.
fn slice_bytes(batch: &RecordBatch, rows: usize) -> u64 {
    let bytes_of = |column: &ArrayRef| {
        let data = if rows == batch.num_rows() { column.to_data() } else { column.slice(0, rows).to_data() };
        data.get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size()) as u64
    };
    batch.columns().iter().map(bytes_of).sum()
}

/// Returns the largest number of rows, at most `upper`, whose bytes fit into `room`.
fn rows_within(batch: &RecordBatch, upper: usize, room: u64) -> usize {
    let (mut fits, mut exceeds) = (0, upper + 1);
    while fits + 1 < exceeds {
        let middle = fits + (exceeds - fits) / 2;
        if slice_bytes(batch, middle) <= room {
            fits = middle;
        } else {
            exceeds = middle;
        }
    }
    fits
}
