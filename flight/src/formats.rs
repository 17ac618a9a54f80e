//! How rows are written for programs: each format stands here once, for HTTP and for the command line.
//!
//! Rows are encoded batch by batch, so that a result of any size can be streamed. Values in CSV are those of JSON
//! without their quotes.

mod csv;
mod json;

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{Schema, SchemaRef};
use parquet::basic::Compression;
use querent_engine::{ParquetRows, parquet_lacks};
use serde_json::json;

use csv::SeparatedWriter;
pub use json::time_beyond_calendar;
use json::{RowWriter, unique_names};

/// A format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultFormat {
    /// One JSON object a line.
    Ndjson,
    /// One JSON document with columns and rows.
    Json,
    /// One JSON array of objects.
    Objects,
    /// Comma-separated values, with a header.
    Csv,
    /// Tab-separated values, with a header.
    Tsv,
    /// An Arrow IPC stream.
    Arrow,
    /// A Parquet file.
    Parquet,
}

/// The names by which requests choose a format.
const NAMES: [(&str, ResultFormat); 6] = [
    ("ndjson", ResultFormat::Ndjson),
    ("json", ResultFormat::Json),
    ("csv", ResultFormat::Csv),
    ("tsv", ResultFormat::Tsv),
    ("arrow", ResultFormat::Arrow),
    ("parquet", ResultFormat::Parquet),
];

impl FromStr for ResultFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = NAMES.iter().find(|(name, _)| text.eq_ignore_ascii_case(name));
        named.map(|(_, format)| *format).ok_or_else(|| {
            let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            format!("unknown format `{text}`; formats are {}", names.join(", "))
        })
    }
}

impl ResultFormat {
    /// Returns the format of a media type, in lower case and without parameters.
    pub(crate) fn of_media_type(media_type: &str) -> Option<Self> {
        Some(match media_type {
            "application/x-ndjson" | "application/ndjson" | "application/jsonl" => Self::Ndjson,
            "application/json" => Self::Json,
            "text/csv" => Self::Csv,
            "text/tab-separated-values" => Self::Tsv,
            "application/vnd.apache.arrow.stream" => Self::Arrow,
            "application/vnd.apache.parquet" => Self::Parquet,
            _ => return None,
        })
    }

    /// Returns why rows of these columns cannot be written in the format, and what to do, if they cannot.
    pub(crate) fn refusal(self, schema: &Schema) -> Option<String> {
        let column = parquet_lacks(schema).filter(|_| self == Self::Parquet)?;
        Some(format!("column `{column}` is an INTERVAL, which Parquet files do not hold; cast it to VARCHAR"))
    }

    /// Returns its media type.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Ndjson => "application/x-ndjson; charset=utf-8",
            Self::Json | Self::Objects => "application/json",
            Self::Csv => "text/csv; charset=utf-8; header=present",
            Self::Tsv => "text/tab-separated-values; charset=utf-8",
            Self::Arrow => "application/vnd.apache.arrow.stream",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }
}

/// Writes a result in one format: [`ResultWriter::write`] for each batch, then [`ResultWriter::finish`].
pub(crate) enum ResultWriter {
    Ndjson(Arc<RowWriter>),
    Json { rows: Arc<RowWriter>, opened: bool, any_rows: bool, schema: SchemaRef },
    Objects { rows: Arc<RowWriter>, any_rows: bool },
    Separated(SeparatedWriter),
    Arrow(Box<StreamWriter<Vec<u8>>>),
    Parquet(Box<ParquetRows<Vec<u8>>>),
}

impl ResultWriter {
    pub(crate) fn new(format: ResultFormat, schema: SchemaRef) -> Result<Self, ArrowError> {
        Ok(match format {
            ResultFormat::Ndjson => Self::Ndjson(Arc::new(RowWriter::new(schema))),
            ResultFormat::Json => {
                let rows = Arc::new(RowWriter::new(Arc::clone(&schema)));
                Self::Json { rows, opened: false, any_rows: false, schema }
            }
            ResultFormat::Objects => Self::Objects { rows: Arc::new(RowWriter::new(schema)), any_rows: false },
            ResultFormat::Csv => Self::Separated(SeparatedWriter::commas(schema)),
            ResultFormat::Tsv => Self::Separated(SeparatedWriter::tabs(schema)),
            ResultFormat::Arrow => Self::Arrow(Box::new(StreamWriter::try_new(Vec::new(), &schema)?)),
            ResultFormat::Parquet => {
                Self::Parquet(Box::new(ParquetRows::try_new(Vec::new(), &schema, Compression::SNAPPY)?))
            }
        })
    }

    /// Returns the bytes of the next batch; a format may keep them back.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
        let mut out = Vec::new();
        match self {
            Self::Ndjson(rows) => rows.objects(batch, b"\n", &mut out)?,
            Self::Json { rows, opened, any_rows, schema } => {
                if !*opened {
                    out.extend_from_slice(&json_opening(schema));
                    *opened = true;
                }
                rows.arrays(batch, !*any_rows, &mut out)?;
                *any_rows |= batch.num_rows() > 0;
            }
            Self::Objects { rows, any_rows } if batch.num_rows() > 0 => {
                out.extend_from_slice(if *any_rows { b",\n" } else { b"[" });
                *any_rows = true;
                rows.objects(batch, b",\n", &mut out)?;
                out.truncate(out.len() - b",\n".len());
            }
            Self::Objects { .. } => {}
            Self::Separated(writer) => writer.write(batch, &mut out)?,
            Self::Arrow(writer) => {
                writer.write(batch)?;
                out = std::mem::take(writer.get_mut());
            }
            Self::Parquet(writer) => {
                writer.write(batch)?;
                out = std::mem::take(writer.inner_mut());
            }
        }
        Ok(out)
    }

    /// Returns the bytes that end the result.
    pub(crate) fn finish(self, row_count: u64, truncated: bool) -> Result<Vec<u8>, ArrowError> {
        match self {
            Self::Ndjson(_) => Ok(Vec::new()),
            Self::Json { opened, schema, .. } => {
                let mut out = if opened { Vec::new() } else { json_opening(&schema) };
                out.extend_from_slice(format!("],\"row_count\":{row_count},\"truncated\":{truncated}}}").as_bytes());
                Ok(out)
            }
            Self::Objects { any_rows, .. } => Ok(if any_rows { b"]\n".to_vec() } else { b"[]\n".to_vec() }),
            Self::Separated(mut writer) => Ok(writer.header()),
            Self::Arrow(mut writer) => {
                writer.finish()?;
                Ok(std::mem::take(writer.get_mut()))
            }
            Self::Parquet(writer) => Ok(writer.into_inner()?),
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
