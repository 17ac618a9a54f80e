//! Encodes record batches as Flight messages: of about [`MAX_MESSAGE_BYTES`], whatever the batches' sizes are, and without
//! copying values ([`message`]), on the way to the connection ([`body`]).
//!
//! Batches that come one right after the other become one message; rows that nothing follows are sent after a moment.
//!
//! Invariants: a message's rows take at most [`MAX_MESSAGE_BYTES`], unless one row alone is larger; dropping the stream
//! drops the batches' stream and with it the query; a failure is always the stream's last item, never a clean end.

mod body;
mod dictionaries;
mod message;
mod sizes;

use std::pin::pin;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow_flight::FlightData;
use arrow_schema::SchemaRef;
use futures::{FutureExt, Stream, StreamExt, TryStreamExt};
use tonic::Status;

pub(super) use body::{FlightFrames, FlightStream};
use dictionaries::BatchEncoder;
use message::EncodedMessage;
use sizes::{batch_body_bytes, header_bytes, rows_that_fit};

use crate::error::ApiError;

/// The most bytes of a message's rows: those of whole batches of numbers, which then need not be cut.
pub(super) const MAX_MESSAGE_BYTES: usize = 2 << 20;
/// With its header, a message stays below the 4 MiB that tonic and Go take by default; ADBC takes 16 MiB.
const MAX_WHOLE_BYTES: usize = (4 << 20) - (4 << 10);
/// Batches are cut at multiples of so many rows, where bitmaps have whole bytes.
const CUT_ROWS: usize = 64;
/// A message of so many bytes is sent where no more rows are there yet.
const GOOD_MESSAGE_BYTES: usize = 512 << 10;
/// How long fewer wait for more: less than anybody notices.
const LINGER: Duration = Duration::from_millis(2);

/// Returns the messages of one result: its schema, then its batches in order. Every batch has exactly that schema.
pub(super) fn flight_stream<S>(schema: SchemaRef, batches: S) -> FlightStream
where
    S: Stream<Item = Result<RecordBatch, Status>> + Send + 'static,
{
    FlightStream::new(async_stream::try_stream! {
        let (mut encoder, schema_message) = BatchEncoder::with_schema(&schema);
        yield schema_message;
        let mut rows = PendingRows::new(&schema);
        let mut batches = pin!(batches);
        let mut is_over = false;
        while !is_over {
            let next = if rows.batches.is_empty() {
                Some(batches.next().await)
            } else if rows.bytes >= GOOD_MESSAGE_BYTES {
                batches.next().now_or_never()
            } else {
                tokio::time::timeout(LINGER, batches.next()).await.ok()
            };
            let mut failure = None;
            let ready = match next {
                Some(Some(Ok(batch))) => {
                    check_schema(&schema, &batch)?;
                    rows.add(batch, |one, other| encoder.can_join(one, other))
                }
                // Nothing more for the moment.
                None => vec![rows.take()],
                Some(ended) => {
                    is_over = true;
                    failure = ended.and_then(Result::err);
                    vec![rows.take()]
                }
            };
            for batches in ready {
                for message in encoder.messages(&batches).map_err(ApiError::internal)? {
                    yield message;
                }
            }
            if let Some(status) = failure {
                Err(status)?;
            }
        }
    })
}

/// Returns the messages of one result as another server made them.
pub(super) fn passed_on(messages: impl Stream<Item = Result<FlightData, Status>> + Send + 'static) -> FlightStream {
    FlightStream::new(messages.map_ok(EncodedMessage::from))
}

/// Whoever makes the batches gives them the types that were announced; a client could not read others.
fn check_schema(schema: &SchemaRef, batch: &RecordBatch) -> Result<(), ApiError> {
    let columns = batch.columns().iter().map(|column| column.data_type());
    match columns.eq(schema.fields().iter().map(|field| field.data_type())) {
        true => Ok(()),
        false => Err(ApiError::internal("a batch has other types than its stream has announced")),
    }
}

/// The rows of the next message.
struct PendingRows {
    batches: Vec<RecordBatch>,
    bytes: usize,
    most: usize,
}

impl PendingRows {
    fn new(schema: &SchemaRef) -> Self {
        let most = MAX_MESSAGE_BYTES.min(MAX_WHOLE_BYTES.saturating_sub(header_bytes(schema)));
        Self { batches: Vec::new(), bytes: 0, most }
    }

    /// Adds the rows of `batch` and returns the messages that are full. `can_join` says whether two batches may be in one.
    fn add(
        &mut self,
        batch: RecordBatch,
        can_join: impl Fn(&RecordBatch, &RecordBatch) -> bool,
    ) -> Vec<Vec<RecordBatch>> {
        let mut full = Vec::new();
        if self.batches.last().is_some_and(|last| !can_join(last, &batch)) {
            full.push(self.take());
        }
        let mut start = 0;
        while start < batch.num_rows() {
            let rest = batch.num_rows() - start;
            let room = self.most.saturating_sub(self.bytes);
            let mut rows = rows_that_fit(&batch, start, room);
            if rows < rest {
                // A whole batch is sent as it is; what a cut leaves over is copied, and its offsets are written anew.
                if self.bytes >= GOOD_MESSAGE_BYTES {
                    full.push(self.take());
                    continue;
                }
                rows = if rows > CUT_ROWS { rows - rows % CUT_ROWS } else { rows };
            }
            let bytes = batch_body_bytes(&batch, start, rows);
            if bytes > room && !self.batches.is_empty() {
                full.push(self.take());
                continue;
            }
            self.batches.push(batch.slice(start, rows));
            self.bytes += bytes;
            start += rows;
            if start < batch.num_rows() {
                full.push(self.take());
            }
        }
        full
    }

    fn take(&mut self) -> Vec<RecordBatch> {
        self.bytes = 0;
        std::mem::take(&mut self.batches)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a runtime of its own")]
mod tests;
