//! DoPut: what a client sends after the descriptor.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::concat_batches;
use arrow_flight::decode::{DecodedPayload, FlightDataDecoder};
use arrow_flight::error::FlightError;
use arrow_flight::{FlightData, FlightDescriptor};
use arrow_schema::SchemaRef;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use querent_engine::EngineError;
use tonic::{Status, Streaming};

use crate::error::{ApiError, ErrorCode};

/// The most bytes of parameters that one binding takes.
const MAX_PARAMETER_BYTES: usize = 64 << 20;

/// The record batches of a DoPut, after its descriptor.
pub(super) struct PutRows {
    decoder: FlightDataDecoder,
}

/// Reads the first message. Returns its descriptor and the rows that follow. Errors: `bad_request`.
pub(super) async fn read_put(mut messages: Streaming<FlightData>) -> Result<(FlightDescriptor, PutRows), Status> {
    let first = messages.message().await?;
    let Some((descriptor, first)) = first.and_then(|mut first| Some((first.flight_descriptor.take()?, first))) else {
        let error = ApiError::new(ErrorCode::BadRequest, "the first message of DoPut has no descriptor");
        return Err(error.with_hint("it must name what the rows are for, such as CommandStatementIngest").into());
    };
    // A descriptor may come alone, or with the schema.
    let first = (!first.data_header.is_empty()).then_some(Ok(first));
    let rest = messages.map_err(|status| FlightError::Tonic(Box::new(status)));
    Ok((descriptor, PutRows { decoder: FlightDataDecoder::new(stream::iter(first).chain(rest)) }))
}

impl PutRows {
    /// Returns the schema of the rows; `None` where none are sent. Errors: `bad_request`.
    pub(super) async fn schema(&mut self) -> Result<Option<SchemaRef>, ApiError> {
        match self.decoder.next().await.transpose().map_err(put_error)? {
            None => Ok(None),
            Some(decoded) => match decoded.payload {
                DecodedPayload::Schema(schema) => Ok(Some(schema)),
                DecodedPayload::None | DecodedPayload::RecordBatch(_) => {
                    Err(ApiError::new(ErrorCode::BadRequest, "the rows do not begin with their schema"))
                }
            },
        }
    }

    /// Returns the batches, and counts their rows in `arrived`.
    pub(super) fn batches(
        self,
        arrived: Arc<AtomicU64>,
    ) -> impl Stream<Item = Result<RecordBatch, EngineError>> + Send + 'static {
        self.decoder.filter_map(move |decoded| {
            let batch = match decoded {
                Ok(decoded) => match decoded.payload {
                    DecodedPayload::RecordBatch(batch) => {
                        arrived.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
                        Some(Ok(batch))
                    }
                    DecodedPayload::None => None,
                    DecodedPayload::Schema(_) => Some(Err(bad_rows("the schema came a second time".to_owned()))),
                },
                Err(FlightError::Tonic(status)) => Some(Err(bad_rows(format!("they broke off: {}", status.message())))),
                Err(error) => Some(Err(bad_rows(error.to_string()))),
            };
            std::future::ready(batch)
        })
    }

    /// Returns all rows as one batch of parameters; `None` where none are sent.
    /// Errors: `bad_request`, `body_too_large`.
    pub(super) async fn parameters(mut self) -> Result<Option<RecordBatch>, ApiError> {
        let Some(schema) = self.schema().await? else { return Ok(None) };
        let mut bytes = 0;
        let mut batches = Vec::new();
        let mut arriving = std::pin::pin!(self.batches(Arc::default()));
        while let Some(batch) = arriving.next().await {
            let batch = batch?;
            bytes += value_bytes(&batch);
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
        let rows = concat_batches(&schema, &batches);
        rows.map(Some).map_err(|error| ApiError::new(ErrorCode::BadRequest, format!("the values: {error}")))
    }
}

/// Returns the bytes of a batch's values. Its arrays are slices of one message, which each of their buffers counts whole.
fn value_bytes(batch: &RecordBatch) -> usize {
    let bytes = |column: &ArrayRef| column.to_data().get_slice_memory_size().unwrap_or_default();
    batch.columns().iter().map(bytes).sum()
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
