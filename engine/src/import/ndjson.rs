//! NDJSON imports: one pass over all records to infer the columns and types, and one to read them.

use std::io::{BufRead, BufReader};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::json::ReaderBuilder;
use arrow::json::reader::infer_json_schema_from_iterator;
use datafusion::common::ScalarValue;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use serde_json::Value;

use super::column_mapping::{ColumnMapping, repeated};
use super::{BatchSender, ByteCounter};
use crate::error::{EngineError, Result};
use crate::tables::external::{LocatedFile, bad_row, blocking, open, shortened, unreadable};

const BATCH_ROWS: usize = 8192;

/// Infers the columns of all records of all files: integers widen to floats, and what is sometimes a string is a string.
pub(super) async fn infer(
    files: Vec<LocatedFile>,
    compression: FileCompressionType,
    counter: ByteCounter,
) -> Result<SchemaRef> {
    blocking(move || {
        let mut failure = None;
        // One file is open at a time, however many there are.
        let values = files.iter().flat_map(|file| {
            let mut lines = Some(NdjsonLines::open(file, compression, &counter));
            std::iter::from_fn(move || match lines.as_mut()? {
                Ok(open) => Some(open.next_line().transpose()?.and_then(|text| parse(file, open.row, &text))),
                Err(_) => lines.take()?.err().map(Err),
            })
        });
        let schema = infer_json_schema_from_iterator(values.map(|value| {
            value.map_err(|error| {
                let json_error = ArrowError::JsonError(error.to_string());
                failure = Some(error);
                json_error
            })
        }));
        match (schema, failure) {
            (_, Some(error)) => Err(error),
            (Ok(schema), None) if schema.fields().is_empty() => {
                let path = files.first().map(|file| file.path.clone()).unwrap_or_default();
                Err(bad_row(&path, None, None, "no record with a field".into()))
            }
            (Ok(schema), None) => Ok(Arc::new(schema) as SchemaRef),
            (Err(error), None) => {
                let path = files.first().map(|file| file.path.clone()).unwrap_or_default();
                Err(bad_row(&path, None, None, error.to_string()))
            }
        }
    })
    .await
}

/// Reads a file and sends its rows. Blocks.
pub(super) fn read(
    file: &LocatedFile,
    compression: FileCompressionType,
    partition: &[ScalarValue],
    columns: &ColumnMapping,
    counter: &ByteCounter,
    output: &BatchSender,
) -> Result<()> {
    let mut lines = NdjsonLines::open(file, compression, counter)?;
    let mut pending: Vec<(u64, String)> = Vec::new();
    loop {
        let line = lines.next_line()?;
        let at_end = line.is_none();
        if let Some(text) = line {
            pending.push((lines.row, text));
        }
        if pending.len() == BATCH_ROWS || (at_end && !pending.is_empty()) {
            let batch = decode(&columns.read, pending.iter().map(|(_, text)| text.as_str()))
                .map_err(|error| locate(file, &columns.read, &pending, &error))?;
            let folders = repeated(partition, batch.num_rows())?;
            output.send(columns.arrange(batch.columns(), batch.num_rows(), &folders)?)?;
            pending.clear();
        }
        if at_end {
            return Ok(());
        }
    }
}

fn decode<'a>(schema: &SchemaRef, lines: impl Iterator<Item = &'a str>) -> Result<RecordBatch, ArrowError> {
    let mut decoder = ReaderBuilder::new(Arc::clone(schema))
        .with_batch_size(BATCH_ROWS)
        .with_coerce_primitive(true)
        .build_decoder()?;
    for line in lines {
        decoder.decode(line.as_bytes())?;
        decoder.decode(b"\n")?;
    }
    Ok(decoder.flush()?.unwrap_or_else(|| RecordBatch::new_empty(Arc::clone(schema))))
}

/// Returns an error that names the first record that cannot be read by itself, and the first of its fields that cannot.
fn locate(file: &LocatedFile, schema: &SchemaRef, lines: &[(u64, String)], error: &ArrowError) -> EngineError {
    for (row, line) in lines {
        let Err(error) = decode(schema, std::iter::once(line.as_str())) else { continue };
        let column = (0..schema.fields().len()).find(|index| {
            let only = schema.project(&[*index]).map(Arc::new);
            only.is_ok_and(|only| decode(&only, std::iter::once(line.as_str())).is_err())
        });
        let field = column.and_then(|index| schema.fields().get(index));
        let value = field.and_then(|field| serde_json::from_str::<Value>(line).ok()?.get(field.name()).cloned());
        let detail = match (field, value) {
            (Some(field), Some(value)) => {
                format!("expected {}, found `{}`", field.data_type(), shortened(&value.to_string()))
            }
            _ => error.to_string(),
        };
        return bad_row(&file.path, Some(*row), field.map(|field| field.name().as_str()), detail);
    }
    bad_row(&file.path, None, None, error.to_string())
}

fn parse(file: &LocatedFile, row: u64, text: &str) -> Result<Value> {
    let bad = |detail: String| bad_row(&file.path, Some(row), None, detail);
    match serde_json::from_str::<Value>(text) {
        Ok(value) if value.is_object() => Ok(value),
        Ok(other) => Err(bad(format!("expected an object, found `{}`", shortened(&other.to_string())))),
        Err(error) => Err(bad(format!("not JSON: {error} in `{}`", shortened(text)))),
    }
}

/// The records of a file with their numbers; blank lines are skipped.
struct NdjsonLines {
    file: LocatedFile,
    source: Box<dyn BufRead + Send>,
    row: u64,
}

impl NdjsonLines {
    fn open(file: &LocatedFile, compression: FileCompressionType, counter: &ByteCounter) -> Result<Self> {
        let source = compression.convert_read(counter.count(open(file)?))?;
        Ok(Self { file: file.clone(), source: Box::new(BufReader::with_capacity(1 << 20, source)), row: 0 })
    }

    fn next_line(&mut self) -> Result<Option<String>> {
        loop {
            let mut line = String::new();
            let read = self.source.read_line(&mut line).map_err(|error| unreadable(&self.file.path, &error))?;
            if read == 0 {
                return Ok(None);
            }
            let text = line.trim_start_matches('\u{feff}').trim();
            if !text.is_empty() {
                self.row += 1;
                return Ok(Some(text.to_string()));
            }
        }
    }
}
