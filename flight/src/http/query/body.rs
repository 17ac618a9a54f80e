//! The response body of a result: encoded batch by batch as the query yields them, never collected.
//!
//! Large batches are encoded off the async runtime. Dropping the body drops the query.

use std::collections::VecDeque;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::{HeaderMap, HeaderValue};
use http_body::Frame;
use http_body_util::StreamBody;
use querent_engine::{EngineError, QueryStream};
use tokio::time::{Instant, timeout_at};

use crate::admission::QueryPermit;
use crate::error::{ApiError, ErrorCode, ErrorShape};
use crate::formats::{ResultFormat, ResultWriter};
use crate::http::encoding::encode_off_runtime;
use crate::metrics;

/// Rows that are read before the status is sent: a query that fails among them has an error status. More would keep a client waiting
/// for rows that are there.
const AHEAD_BYTES: usize = 64 << 10;
/// How long rows behind the first batch are waited for.
const AHEAD_TIME: Duration = Duration::from_millis(100);

/// The first rows of a query.
pub(super) struct RowsAhead {
    batches: VecDeque<RecordBatch>,
    /// Whether there are no others.
    is_all: bool,
}

impl RowsAhead {
    /// Reads the first batch of a query, and those behind it as long as they are few and come at once. Errors: the query's.
    pub(super) async fn of(rows: &mut QueryStream) -> Result<Self, EngineError> {
        let mut ahead = Self { batches: VecDeque::new(), is_all: false };
        let Some(first) = rows.next().await.transpose()? else { return Ok(Self { is_all: true, ..ahead }) };
        let deadline = Instant::now() + AHEAD_TIME;
        let mut bytes = first.get_array_memory_size();
        ahead.batches.push_back(first);
        while bytes < AHEAD_BYTES {
            let Ok(next) = timeout_at(deadline, rows.next()).await else { break };
            let Some(batch) = next.transpose()? else {
                ahead.is_all = true;
                break;
            };
            bytes += batch.get_array_memory_size();
            ahead.batches.push_back(batch);
        }
        Ok(ahead)
    }
}

/// A started query and all that its body needs.
pub(super) struct ResultBody<E> {
    pub(super) rows: QueryStream,
    pub(super) ahead: RowsAhead,
    pub(super) permit: QueryPermit,
    pub(super) api_error: E,
    pub(super) request_id: String,
}

impl<E> ResultBody<E>
where
    E: Fn(EngineError) -> ApiError + Send + 'static,
{
    /// Returns the body's frames: data, then the row count as trailers.
    pub(super) fn frames(
        self,
        format: ResultFormat,
    ) -> Result<StreamBody<impl Stream<Item = Result<Frame<Bytes>, ApiError>> + Send>, ApiError> {
        let Self { mut rows, mut ahead, mut permit, api_error, request_id } = self;
        if let Some(message) = format.refusal(&rows.schema()) {
            return Err(ApiError::new(ErrorCode::Unsupported, message));
        }
        let mut writer = ResultWriter::new(format, rows.schema()).map_err(ApiError::internal)?;
        let request = tracing::Span::current();
        let encoded = async_stream::try_stream! {
            loop {
                let next = match ahead.batches.pop_front() {
                    None if !ahead.is_all => {
                        let following = rows.next().await.transpose().inspect_err(|_| permit.failed());
                        following.map_err(&api_error)?
                    }
                    next => next,
                };
                let Some(batch) = next else { break };
                let (writer_back, bytes) = encode(writer, batch).await.inspect_err(|_| permit.failed())?;
                writer = writer_back;
                if !bytes.is_empty() {
                    yield Frame::data(bytes);
                }
            }
            let stats = rows.stats();
            let bytes = writer.finish(stats.rows, stats.truncated).map_err(ApiError::internal)?;
            if !bytes.is_empty() {
                yield Frame::data(Bytes::from(bytes));
            }
            permit.succeeded(stats.rows);
            yield Frame::trailers(row_count_trailers(stats.rows, stats.truncated));
        };
        Ok(StreamBody::new(encoded.map(move |frame: Result<Frame<Bytes>, ApiError>| {
            let error = match frame {
                Ok(frame) => return Ok(frame),
                Err(error) => error,
            };
            metrics::error(error.code().as_str());
            let (code, message) = (error.code().as_str(), error.message());
            request.in_scope(|| tracing::warn!(code, message, "a query failed after its first rows were sent"));
            match format {
                ResultFormat::Ndjson => {
                    Ok(Frame::data(format!("{}\n", error.body(ErrorShape::Object, &request_id)).into()))
                }
                ResultFormat::Json
                | ResultFormat::Objects
                | ResultFormat::Csv
                | ResultFormat::Tsv
                | ResultFormat::Arrow
                | ResultFormat::Parquet => Err(error),
            }
        })))
    }
}

fn row_count_trailers(rows: u64, truncated: bool) -> HeaderMap {
    let count = HeaderValue::from(rows);
    let mut trailers = HeaderMap::new();
    trailers.insert("x-kyma-rows", count.clone());
    trailers.insert("x-querent-rows", count);
    trailers.insert("x-querent-truncated", HeaderValue::from_static(if truncated { "true" } else { "false" }));
    trailers
}

/// Encodes a batch, off the async runtime if it is large: the writer moves to a blocking thread and back.
async fn encode(mut writer: ResultWriter, batch: RecordBatch) -> Result<(ResultWriter, Bytes), ApiError> {
    let values = batch.num_rows() * batch.num_columns();
    let encode = move || {
        let bytes = writer.write(&batch)?;
        Ok::<_, ArrowError>((writer, Bytes::from(bytes)))
    };
    encode_off_runtime(values, encode)
        .await?
        .map_err(|error| ApiError::new(ErrorCode::SerializationError, format!("a result cannot be written: {error}")))
}
