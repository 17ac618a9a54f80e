//! DoPut: what a client sends after the descriptor.
//!
//! Invariant: whatever comes, its call ends with an error and the server goes on: messages are checked before they are
//! decoded, and rows go on in batches of bounded bytes.

mod message_check;
mod plain_values;

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow_flight::decode::{DecodedFlightData, DecodedPayload, FlightDataDecoder};
use arrow_flight::error::FlightError;
use arrow_flight::{FlightData, FlightDescriptor};
use arrow_schema::SchemaRef;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use message_check::MessageCheck;
use plain_values::plain_values;
use querent_engine::{BoundedBatches, EngineError, row_bytes};
use tonic::{Status, Streaming};

use crate::error::{ApiError, ErrorCode};

/// The most bytes of parameters that one binding takes.
const MAX_PARAMETER_BYTES: u64 = 64 << 20;

/// What a batch takes beside its values, for itself and for each column.
const BATCH_OVERHEAD_BYTES: u64 = 256;

/// The record batches of a DoPut, after its descriptor.
pub(super) struct PutRows {
    broken_off: Arc<OnceLock<Status>>,
    decoded: BoxStream<'static, Result<DecodedFlightData, FlightError>>,
}

/// Reads the first message. Returns its descriptor and the rows that follow, whose messages may have `most_bytes`.
/// Errors: `bad_request`.
pub(super) async fn read_put(
    mut messages: Streaming<FlightData>,
    most_bytes: usize,
) -> Result<(FlightDescriptor, PutRows), Status> {
    let Some(mut first) = messages.message().await? else {
        let error = ApiError::new(ErrorCode::BadRequest, "DoPut ended before its first message");
        let hint = "a driver may send nothing for rows without a batch (ADBC's does): give it a batch without rows";
        return Err(error.with_hint(hint).into());
    };
    let Some(descriptor) = first.flight_descriptor.take() else {
        let error = ApiError::new(ErrorCode::BadRequest, "the first message of DoPut has no descriptor");
        return Err(error.with_hint("it must name what the rows are for, such as CommandStatementIngest").into());
    };
    // A descriptor may come alone, or with the schema.
    let first = (!first.data_header.is_empty()).then_some(Ok(first));
    let broken_off = Arc::new(OnceLock::new());
    let told = Arc::clone(&broken_off);
    let rest = messages.map_err(move |status| {
        // Only the first of them can be: the stream ends with it.
        let _ = told.set(status.clone());
        FlightError::Tonic(Box::new(status))
    });
    Ok((descriptor, PutRows { broken_off, decoded: decoded(stream::iter(first).chain(rest), most_bytes) }))
}

/// Decodes messages. What arrow-ipc cannot make out in a schema or a batch it may answer with a panic.
fn decoded(
    messages: impl Stream<Item = Result<FlightData, FlightError>> + Send + 'static,
    most_bytes: usize,
) -> BoxStream<'static, Result<DecodedFlightData, FlightError>> {
    let mut check = MessageCheck::new(most_bytes);
    let with_data = messages.filter(|message| {
        let is_passed_over = message.as_ref().is_ok_and(is_metadata_alone);
        std::future::ready(!is_passed_over)
    });
    let checked = with_data.map(move |message| {
        let message = message?;
        check.check(&message).map_err(FlightError::DecodeError)?;
        Ok(message)
    });
    let decoder = AssertUnwindSafe(FlightDataDecoder::new(checked)).catch_unwind();
    let unreadable = |_| Err(FlightError::DecodeError("a message contradicts itself".to_owned()));
    decoder.map(move |decoded| decoded.unwrap_or_else(unreadable)).boxed()
}

/// Whether a message has nothing but metadata of the application, as a client may send between rows.
fn is_metadata_alone(message: &FlightData) -> bool {
    message.data_header.is_empty() && message.data_body.is_empty()
}

impl PutRows {
    /// Returns what tells, once the rows broke off, with which status: too late, too large. Whoever read them was only told
    /// that they broke off.
    pub(super) fn broken_off(&self) -> Arc<OnceLock<Status>> {
        Arc::clone(&self.broken_off)
    }

    /// Returns the schema of the rows; `None` where none are sent. Errors: `bad_request`.
    pub(super) async fn schema(&mut self) -> Result<Option<SchemaRef>, ApiError> {
        match self.decoded.next().await.transpose().map_err(put_error)? {
            None => Ok(None),
            Some(decoded) => match decoded.payload {
                DecodedPayload::Schema(schema) => Ok(Some(schema)),
                DecodedPayload::None | DecodedPayload::RecordBatch(_) => {
                    Err(ApiError::new(ErrorCode::BadRequest, "the rows do not begin with their schema"))
                }
            },
        }
    }

    /// Returns the batches, of bounded bytes, and counts their rows in `arrived`.
    pub(super) fn batches(
        self,
        arrived: Arc<AtomicU64>,
    ) -> impl Stream<Item = Result<RecordBatch, EngineError>> + Send + 'static {
        self.decoded.flat_map(move |decoded| {
            let batch = match decoded {
                Ok(decoded) => match decoded.payload {
                    DecodedPayload::RecordBatch(batch) => Ok(Some(batch)),
                    DecodedPayload::None => Ok(None),
                    DecodedPayload::Schema(_) => Err(bad_rows("the schema came a second time".to_owned())),
                },
                Err(FlightError::Tonic(status)) => Err(bad_rows(format!("they broke off: {}", status.message()))),
                Err(error) => Err(bad_rows(error.to_string())),
            };
            let (batch, failure) = match batch {
                Ok(batch) => (batch, None),
                Err(failure) => (None, Some(Err(failure))),
            };
            let arrived = Arc::clone(&arrived);
            let bounded = batch.into_iter().flat_map(BoundedBatches::new).map(move |batch| {
                let batch = batch.map_err(bad_rows)?;
                arrived.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
                Ok(batch)
            });
            stream::iter(failure.into_iter().chain(bounded))
        })
    }

    /// Returns all rows as one batch of parameters; `None` where none are sent.
    /// Errors: `bad_request`, `body_too_large`.
    pub(super) async fn parameters(mut self) -> Result<Option<RecordBatch>, ApiError> {
        let Some(schema) = self.schema().await? else { return Ok(None) };
        let mut bytes = 0_u64;
        let mut batches = Vec::new();
        let mut arriving = std::pin::pin!(self.batches(Arc::default()));
        while let Some(batch) = arriving.next().await {
            let batch = batch?;
            bytes = bytes.saturating_add(held_bytes(&batch));
            if bytes > MAX_PARAMETER_BYTES {
                let limit = MAX_PARAMETER_BYTES >> 20;
                return Err(ApiError::new(
                    ErrorCode::BodyTooLarge,
                    format!("the values of parameters take more than {limit} MiB"),
                )
                .with_hint("bind fewer rows at once, or send them by CommandStatementIngest"));
            }
            batches.push(batch);
        }
        if schema.fields().is_empty() {
            return Ok(None);
        }
        let rows = concat_batches(&schema, &batches).map_err(|error| error.to_string()).and_then(plain_values);
        rows.map(Some).map_err(|error| ApiError::new(ErrorCode::BadRequest, format!("the values: {error}")))
    }
}

/// Returns what a batch takes: any number of rows that say nothing, and of batches of one row, take something.
fn held_bytes(batch: &RecordBatch) -> u64 {
    row_bytes(batch).max(BATCH_OVERHEAD_BYTES * (batch.num_columns() as u64 + 1))
}

fn bad_rows(detail: String) -> EngineError {
    EngineError::BadData { location: "the rows that were sent".to_owned(), detail }
}

/// Returns the error for what a client sent: its own status where its stream broke off, else what is wrong with it.
fn put_error(error: FlightError) -> ApiError {
    match error {
        FlightError::Tonic(status) => {
            ApiError::new(ErrorCode::BadRequestBody, format!("the rows broke off: {}", status.message()))
        }
        other => ApiError::new(ErrorCode::BadRequest, format!("the rows are not Arrow: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, RecordBatchOptions};
    use arrow_schema::Schema;

    use super::*;

    #[test]
    fn many_small_batches_are_not_held_as_nothing() {
        let options = RecordBatchOptions::new().with_row_count(Some(1 << 40));
        let nothing = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options).unwrap();
        assert_eq!(held_bytes(&nothing), BATCH_OVERHEAD_BYTES);
        let numbers = |values: Vec<i64>| {
            let column: ArrayRef = Arc::new(Int64Array::from(values));
            RecordBatch::try_from_iter([("a", column)]).unwrap()
        };
        assert_eq!(held_bytes(&numbers(vec![7])), 2 * BATCH_OVERHEAD_BYTES);
        let many = numbers(vec![7; 10_000]);
        assert_eq!(held_bytes(&many), row_bytes(&many));
    }
}
