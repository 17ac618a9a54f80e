//! The response body of a result: encoded batch by batch as the query yields them, never collected.
//!
//! Large batches are encoded off the async runtime. Dropping the body drops the query.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::{HeaderMap, HeaderValue};
use http_body::Frame;
use http_body_util::StreamBody;
use querent_engine::{EngineError, QueryStream};
use serde_json::json;

use super::request::ResultFormat;
use super::values::{RowWriter, unique_names};
use crate::admission::QueryPermit;
use crate::error::{ApiError, ErrorCode, ErrorShape};
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
        let mut writer = ResultWriter::new(format, rows.schema()).map_err(ApiError::internal)?;
        let request = tracing::Span::current();
        let encoded = async_stream::try_stream! {
            let mut next = first;
            while let Some(batch) = next {
                let (writer_back, bytes) = writer.encode(batch).await.inspect_err(|_| permit.failed())?;
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
                yield Frame::data(bytes);
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
                ResultFormat::Json | ResultFormat::Arrow => Err(error),
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

/// Writes batches in one format. It moves to a blocking thread and back with each large batch.
enum ResultWriter {
    Ndjson(Arc<RowWriter>),
    Json { rows: Arc<RowWriter>, opened: bool, any_rows: bool, schema: SchemaRef },
    Arrow(Box<StreamWriter<Vec<u8>>>),
}

impl ResultWriter {
    fn new(format: ResultFormat, schema: SchemaRef) -> Result<Self, ArrowError> {
        Ok(match format {
            ResultFormat::Ndjson => Self::Ndjson(Arc::new(RowWriter::new(schema))),
            ResultFormat::Json => {
                let rows = Arc::new(RowWriter::new(Arc::clone(&schema)));
                Self::Json { rows, opened: false, any_rows: false, schema }
            }
            ResultFormat::Arrow => Self::Arrow(Box::new(StreamWriter::try_new(Vec::new(), &schema)?)),
        })
    }

    async fn encode(mut self, batch: RecordBatch) -> Result<(Self, Bytes), ApiError> {
        let values = batch.num_rows() * batch.num_columns();
        let encode = move || {
            let bytes = self.write(&batch)?;
            Ok::<_, ArrowError>((self, bytes))
        };
        encode_off_runtime(values, encode).await?.map_err(|error| {
            ApiError::new(ErrorCode::SerializationError, format!("a result cannot be written: {error}"))
        })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<Bytes, ArrowError> {
        let mut out = Vec::new();
        match self {
            Self::Ndjson(rows) => rows.objects(batch, &mut out)?,
            Self::Json { rows, opened, any_rows, schema } => {
                if !*opened {
                    out.extend_from_slice(&json_opening(schema));
                    *opened = true;
                }
                rows.arrays(batch, !*any_rows, &mut out)?;
                *any_rows |= batch.num_rows() > 0;
            }
            Self::Arrow(writer) => {
                writer.write(batch)?;
                out = std::mem::take(writer.get_mut());
            }
        }
        Ok(out.into())
    }

    fn finish(self, row_count: u64, truncated: bool) -> Result<Bytes, ArrowError> {
        match self {
            Self::Ndjson(_) => Ok(Bytes::new()),
            Self::Json { opened, schema, .. } => {
                let mut out = if opened { Vec::new() } else { json_opening(&schema) };
                out.extend_from_slice(format!("],\"row_count\":{row_count},\"truncated\":{truncated}}}").as_bytes());
                Ok(out.into())
            }
            Self::Arrow(mut writer) => {
                writer.finish()?;
                Ok(std::mem::take(writer.get_mut()).into())
            }
        }
    }
}

/// `{"columns":[{"name","type"}],"rows":[`
fn json_opening(schema: &SchemaRef) -> Vec<u8> {
    let names = unique_names(schema);
    let columns: Vec<_> = names
        .iter()
        .zip(schema.fields())
        .map(|(name, field)| json!({ "name": name, "type": field.data_type().to_string() }))
        .collect();
    format!("{{\"columns\":{},\"rows\":[", json!(columns)).into_bytes()
}
