//! Reads a CSV file as batches of text, counting rows, so that every later complaint can name one.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow_csv::ReaderBuilder;
use arrow_csv::reader::Decoder;

use super::csv_dialect::{CsvDialect, unreadable};
use crate::error::{EngineError, Result};

const BATCH_ROWS: usize = 8192;

/// One CSV file's records as text columns; an empty field is null.
pub(crate) struct CsvReader {
    path: PathBuf,
    source: Box<dyn BufRead + Send>,
    decoder: Decoder,
    schema: SchemaRef,
    has_header: bool,
    rows: u64,
    finished: bool,
}

impl CsvReader {
    /// Opens a file whose columns are `names` (as [`column_names`] reads them). Blocks, as reading does.
    pub(crate) fn open(
        path: &Path,
        dialect: &CsvDialect,
        names: &[String],
        source: impl std::io::Read + Send + 'static,
    ) -> Result<Self> {
        let source = dialect.open(path, source)?;
        let fields: Vec<Field> = names.iter().map(|name| Field::new(name, DataType::Utf8, true)).collect();
        let schema = Arc::new(Schema::new(fields));
        let decoder = ReaderBuilder::new(Arc::clone(&schema))
            .with_format(dialect.format())
            .with_batch_size(BATCH_ROWS)
            .build_decoder();
        Ok(Self {
            path: path.to_path_buf(),
            source,
            decoder,
            schema,
            has_header: dialect.has_header,
            rows: 0,
            finished: false,
        })
    }

    /// The next rows, and how many came before them.
    pub(crate) fn next_batch(&mut self) -> Result<Option<(u64, RecordBatch)>> {
        while !self.finished && self.decoder.capacity() > 0 {
            let bytes = self.source.fill_buf().map_err(|error| unreadable(&self.path, &error))?;
            let at_end = bytes.is_empty();
            let decoded = self.decoder.decode(bytes).map_err(|error| self.bad_record(&error))?;
            self.source.consume(decoded);
            self.finished = at_end;
        }
        let batch = self.decoder.flush().map_err(|error| self.bad_record(&error))?;
        Ok(batch.map(|batch| {
            let before = self.rows;
            self.rows += u64::try_from(batch.num_rows()).unwrap_or_default();
            (before, batch)
        }))
    }

    /// Arrow counts records, the header among them, and says so in its message only.
    fn bad_record(&self, error: &ArrowError) -> EngineError {
        let message = match error {
            ArrowError::CsvError(message) => message.clone(),
            other => other.to_string(),
        };
        let number_after = |label: &str| -> Option<usize> {
            let digits: String = message.split_once(label)?.1.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        };
        let row = number_after("line ").map(|line| line.saturating_sub(usize::from(self.has_header)));
        let columns = self.schema.fields();
        let (column, detail) = if message.starts_with("incorrect number of fields") {
            let expected = columns.len();
            match number_after(" got ") {
                Some(found) => (
                    columns.get(found).or(columns.last()).map(|field| field.name().clone()),
                    format!("{found} fields where {expected} are expected"),
                ),
                None => (
                    columns.last().map(|field| field.name().clone()),
                    format!("more fields than the {expected} that are expected"),
                ),
            }
        } else if let Some(field) = number_after(" and field ") {
            (columns.get(field.saturating_sub(1)).map(|field| field.name().clone()), "not UTF-8 text".to_string())
        } else if message.contains("part way through record") {
            (None, "the file ends inside a quoted field".to_string())
        } else {
            (None, message.clone())
        };
        bad_row(&self.path, row.map(|row| row as u64), column.as_deref(), detail)
    }
}

/// The names of a file's columns: of its header, made unique, or `column_1` and so on.
pub(crate) fn column_names(
    path: &Path,
    dialect: &CsvDialect,
    source: impl std::io::Read + Send + 'static,
) -> Result<Vec<String>> {
    let text = dialect.open(path, source)?;
    let (schema, _) =
        dialect.format().infer_schema(text, Some(0)).map_err(|error| bad_row(path, None, None, error.to_string()))?;
    let mut names: Vec<String> = Vec::with_capacity(schema.fields().len());
    for (index, field) in schema.fields().iter().enumerate() {
        let trimmed = field.name().trim();
        let wanted = if trimmed.is_empty() { format!("column_{}", index + 1) } else { trimmed.to_string() };
        let taken =
            |name: &str, names: &[String]| names.iter().any(|other| other.to_lowercase() == name.to_lowercase());
        let mut name = wanted.clone();
        let mut copy = 1;
        while taken(&name, &names) {
            name = format!("{wanted}_{copy}");
            copy += 1;
        }
        names.push(name);
    }
    if names.is_empty() {
        return Err(bad_row(path, None, None, "no columns in the first line".to_string()));
    }
    Ok(names)
}

/// `bad_data` at a row, counted from 1 without the header.
pub(crate) fn bad_row(path: &Path, row: Option<u64>, column: Option<&str>, detail: String) -> EngineError {
    let mut location = path.display().to_string();
    if let Some(row) = row {
        location.push_str(&format!(", row {row}"));
    }
    if let Some(column) = column {
        location.push_str(&format!(", column `{column}`"));
    }
    EngineError::BadData { location, detail }
}
