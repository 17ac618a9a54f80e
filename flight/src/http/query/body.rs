//! The response body of a result: encoded batch by batch as the query yields them, never collected.
//!
//! Large batches are encoded off the async runtime. Dropping the body drops the query.

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::{HeaderMap, HeaderValue};
use http_body::Frame;
use http_body_util::StreamBody;
use querent_engine::{EngineError, QueryStream};

use crate::admission::QueryPermit;
use crate::error::{ApiError, ErrorCode, ErrorShape};
use crate::formats::{ResultFormat, ResultWriter};
use crate::http::encoding::encode_off_runtime;
use crate::metrics;

/// A started query and all that its body needs.
pub(super) struct ResultBody<E> {
    pub(super) rows: QueryStream,
    pub(super) first: Option<RecordBatch>,
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
        let Self { mut rows, first, mut permit, api_error, request_id } = self;
        if let Some(message) = format.refusal(&rows.schema()) {
            return Err(ApiError::new(ErrorCode::Unsupported, message));
        }
        let mut writer = ResultWriter::new(format, rows.schema()).map_err(ApiError::internal)?;
        let request = tracing::Span::current();
        let encoded = async_stream::try_stream! {
            let mut next = first;
            while let Some(batch) = next {
                let (writer_back, bytes) = encode(writer, batch).await.inspect_err(|_| permit.failed())?;
                writer = writer_back;
                if !bytes.is_empty() {
                    yield Frame::data(bytes);
                }
                let following = rows.next().await.transpose().inspect_err(|_| permit.failed());
                next = following.map_err(&api_error)?;
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
