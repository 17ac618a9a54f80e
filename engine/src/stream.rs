//! A running query's results: batches of exactly the declared schema, within the session's limits.
//!
//! The stream owns the query: dropping it, or its reaching a limit, stops the work. Its time runs out whether it is
//! read or not, so that a reader that stops reading does not keep a query's memory and permit.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion::common::Result as DfResult;
use datafusion::common::runtime::SpawnedTask;
use datafusion::execution::SendableRecordBatchStream;
use futures::{Stream, StreamExt};
use parking_lot::Mutex;
use tokio::time::{Instant, Sleep};

use crate::error::{EngineError, Result};
use crate::limits::Limits;

/// What a stream has delivered so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueryStats {
    /// Rows delivered.
    pub rows: u64,
    /// Arrow bytes delivered.
    pub bytes: u64,
    /// Whether a row or byte limit cut the result.
    pub truncated: bool,
}

/// Record batches of one query, all of exactly [`QueryStream::schema`] (names, types, nullability). Dropping it stops the work.
pub struct QueryStream {
    schema: SchemaRef,
    running: Arc<Mutex<Option<Running>>>,
    _watch: SpawnedTask<()>,
    deadline: Pin<Box<Sleep>>,
    wall_clock: Duration,
    max_rows: Option<u64>,
    max_bytes: Option<u64>,
    stats: QueryStats,
    ended: bool,
}

/// The query, which is dropped as soon as the stream has ended or its time is over.
struct Running {
    input: SendableRecordBatchStream,
    held: Option<Box<dyn Send>>,
}

impl QueryStream {
    pub(crate) fn new(schema: SchemaRef, input: SendableRecordBatchStream, limits: &Limits, deadline: Instant) -> Self {
        let running = Arc::new(Mutex::new(Some(Running { input, held: None })));
        Self {
            schema,
            _watch: SpawnedTask::spawn(end_at(deadline, Arc::clone(&running))),
            running,
            ended: false,
            deadline: Box::pin(tokio::time::sleep_until(deadline)),
            wall_clock: limits.wall_clock,
            max_rows: limits.max_rows,
            max_bytes: limits.max_bytes,
            stats: QueryStats::default(),
        }
    }

    /// Returns the stream, marked as not being all rows.
    pub(crate) fn truncated(mut self) -> Self {
        self.stats.truncated = true;
        self
    }

    /// Returns the stream, which keeps `held` until the query ends: at its deadline at the latest, whether it is read or not.
    pub fn holding(self, held: impl Send + 'static) -> Self {
        if let Some(running) = self.running.lock().as_mut() {
            running.held = Some(Box::new(held));
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
        self.ended = true;
        // Dropped outside of the lock, since that may take a while.
        let running = self.running.lock().take();
        drop(running);
    }

    /// Polls the query for its next batch; `None` once its time is over.
    fn poll_input(&self, cx: &mut Context<'_>) -> Option<Poll<Option<DfResult<RecordBatch>>>> {
        self.running.lock().as_mut().map(|running| running.input.poll_next_unpin(cx))
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
        loop {
            if this.ended {
                return Poll::Ready(None);
            }
            let is_over = this.deadline.as_mut().poll(cx).is_ready();
            let Some(polled) = (if is_over { None } else { this.poll_input(cx) }) else {
                this.end();
                return Poll::Ready(Some(Err(EngineError::WallClockExceeded { limit: this.wall_clock })));
            };
            let conformed = match ready!(polled) {
                None => {
                    this.end();
                    return Poll::Ready(None);
                }
                Some(Ok(batch)) if batch.num_rows() == 0 => continue,
                Some(Ok(batch)) => conform(&this.schema, batch),
                Some(Err(error)) => Err(error.into()),
            };
            match conformed {
                Ok(batch) => {
                    if let Some(batch) = this.within_limits(batch) {
                        return Poll::Ready(Some(Ok(batch)));
                    }
                }
                Err(error) => {
                    this.end();
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }
}

/// Ends a query at its deadline, even where nobody reads it. The work is done on other threads ([`crate::threads`]), so the
/// lock is never held for long.
async fn end_at(deadline: Instant, running: Arc<Mutex<Option<Running>>>) {
    tokio::time::sleep_until(deadline).await;
    let ended = running.lock().take();
    drop(ended);
}

/// Returns the schema that clients are promised: the planned one, with string and binary views (an execution detail that
/// few clients read) as plain strings and binaries at every level.
pub(crate) fn declared_schema(planned: &Schema) -> SchemaRef {
    Arc::new(Schema::new_with_metadata(without_views(planned.fields()), planned.metadata().clone()))
}

fn without_views(fields: &Fields) -> Fields {
    fields.iter().map(field_without_views).collect()
}

fn field_without_views(field: &FieldRef) -> FieldRef {
    match type_without_views(field.data_type()) {
        Some(data_type) => Arc::new(Field::clone(field).with_data_type(data_type)),
        None => Arc::clone(field),
    }
}

/// Returns `None` where the type holds no views.
fn type_without_views(data_type: &DataType) -> Option<DataType> {
    let changed = match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(field) => DataType::List(field_without_views(field)),
        DataType::LargeList(field) => DataType::LargeList(field_without_views(field)),
        DataType::ListView(field) => DataType::ListView(field_without_views(field)),
        DataType::LargeListView(field) => DataType::LargeListView(field_without_views(field)),
        DataType::FixedSizeList(field, length) => DataType::FixedSizeList(field_without_views(field), *length),
        DataType::Struct(fields) => DataType::Struct(without_views(fields)),
        DataType::Map(field, sorted) => DataType::Map(field_without_views(field), *sorted),
        _ => return None,
    };
    (changed != *data_type).then_some(changed)
}

/// Returns the batch with the types and nullability of `schema`. Physical plans differ from their logical schema in
/// nullability (a MIN answered from statistics) and in views; the values are the same.
fn conform(schema: &SchemaRef, batch: RecordBatch) -> Result<RecordBatch> {
    if Arc::ptr_eq(schema, batch.schema_ref()) {
        return Ok(batch);
    }
    let row_count = batch.num_rows();
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(batch.num_columns());
    for (column, field) in batch.columns().iter().zip(schema.fields()) {
        if column.data_type() == field.data_type() {
            columns.push(Arc::clone(column));
        } else {
            columns.push(arrow::compute::cast(column, field.data_type())?);
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(row_count));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_declared_as_plain_types_at_every_level() {
        let inner = Field::new("item", DataType::Utf8View, true);
        let planned = Schema::new(vec![
            Field::new("a", DataType::List(Arc::new(inner)), false),
            Field::new("b", DataType::Int64, true),
        ]);
        let declared = declared_schema(&planned);
        let plain = Field::new("item", DataType::Utf8, true);
        assert_eq!(declared.field(0).data_type(), &DataType::List(Arc::new(plain)));
        assert!(!declared.field(0).is_nullable());
        assert_eq!(declared.field(1), planned.field(1));
    }
}
