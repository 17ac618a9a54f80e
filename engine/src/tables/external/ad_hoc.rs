//! Files that one query reads without a table of the catalog, with the readers of external tables. Text is not interpreted
//! here: its fields, lines or records are strings.
//!
//! The caller has to have checked the location with the policy.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::MemTable;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use querent_catalog::{ExternalTable, FileFormat};
use querent_kql::ExternalLayout;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::Value;

use super::reader_options::SKIP_BLANK;
use super::text_source::open_text;
use super::{
    CsvDialect, ExternalTableProvider, LanceTable, LocatedFile, bad_line, blocking, column_names, compression_of,
    infer, locate, open,
};
use crate::error::{EngineError, Result};
use crate::limits::Interrupt;

/// The column of a line or a record.
const TEXT_COLUMN: &str = "text";
/// The delimiter and the quote where a line is one field: characters that no text has.
const NO_DELIMITER: &str = "\u{1}";
const NO_QUOTE: &str = "\u{2}";
const BATCH_ROWS: usize = 8192;

/// The memory of a query, and when it has to end.
pub(crate) struct Bounds {
    pub(crate) pool: Arc<dyn MemoryPool>,
    pub(crate) interrupt: Interrupt,
}

/// Returns the files of a location as a table, and the bytes of them that are in memory.
/// Errors: `no_files`, `bad_data`, `memory_exceeded`, those of stores.
pub(crate) async fn ad_hoc_table(
    state: &dyn Session,
    location: &str,
    layout: ExternalLayout,
    skips_first: bool,
    bounds: Bounds,
) -> Result<(Arc<dyn TableProvider>, usize)> {
    let (delimiter, quote) = match layout {
        ExternalLayout::Parquet => {
            let (table, schema) =
                infer(state, location, Some(FileFormat::Parquet), &BTreeMap::new(), None, &[]).await?;
            return Ok((provider(table, schema), 0));
        }
        ExternalLayout::Records => {
            let files = locate(state, location, FileFormat::Ndjson).await?;
            return blocking(move || records_table(&files, &bounds)).await;
        }
        ExternalLayout::Separated(delimiter) => (delimiter.to_string(), "\"".to_owned()),
        ExternalLayout::Lines => (NO_DELIMITER.to_owned(), NO_QUOTE.to_owned()),
    };
    let options = BTreeMap::from([
        ("has_header".to_owned(), skips_first.to_string()),
        ("delimiter".to_owned(), delimiter),
        ("quote".to_owned(), quote),
        ("null_value".to_owned(), String::new()),
        (SKIP_BLANK.to_owned(), "true".to_owned()),
    ]);
    let files = locate(state, location, FileFormat::Csv).await?;
    let count = match layout {
        ExternalLayout::Lines => 1,
        _ => number_of_columns(files, options.clone()).await?,
    };
    let fields = (0..count).map(|index| Field::new(format!("{TEXT_COLUMN}{index}"), DataType::Utf8, true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let location = location.to_owned();
    Ok((
        provider(ExternalTable { location, format: FileFormat::Csv, options, partition_columns: Vec::new() }, schema),
        0,
    ))
}

/// Returns the files of a location as a table with the columns and types that an external table would have.
/// Errors: `no_files`, `bad_data`, `sql_plan_error` for an option, those of stores.
pub(crate) async fn file_table(
    state: &dyn Session,
    location: &str,
    format: Option<FileFormat>,
    options: &BTreeMap<String, String>,
    declared: Option<&Schema>,
) -> Result<Arc<dyn TableProvider>> {
    let (table, schema) = infer(state, location, format, options, declared, &[]).await?;
    Ok(match table.format {
        FileFormat::Lance => Arc::new(LanceTable::at_location(&table.location, location.to_owned(), schema)),
        _ => provider(table, schema),
    })
}

fn provider(table: ExternalTable, schema: SchemaRef) -> Arc<dyn TableProvider> {
    Arc::new(ExternalTableProvider::with_schema(table, schema, None))
}

async fn number_of_columns(files: Vec<LocatedFile>, options: BTreeMap<String, String>) -> Result<usize> {
    blocking(move || {
        let Some(first) = files.first() else { return Err(EngineError::Internal("no files to open".into())) };
        let dialect = CsvDialect::from_options(&options, first)?;
        Ok(column_names(&first.path, &dialect, open(first)?)?.len())
    })
    .await
}

/// Returns the records of JSON files as strings, in a table. Blocks.
fn records_table(files: &[LocatedFile], bounds: &Bounds) -> Result<(Arc<dyn TableProvider>, usize)> {
    let schema = Arc::new(Schema::new(vec![Field::new(TEXT_COLUMN, DataType::Utf8, true)]));
    let mut buffer = RecordBuffer {
        schema: Arc::clone(&schema),
        kept: MemoryConsumer::new("records").register(&bounds.pool),
        interrupt: &bounds.interrupt,
        pending: Vec::new(),
        batches: Vec::new(),
        stopped: None,
    };
    for file in files {
        let text = open_text(&file.path, compression_of(&file.path), None, open(file)?)?;
        let mut json = serde_json::Deserializer::from_reader(text);
        while json.end().is_err() {
            if let Err(error) = Records(&mut buffer).deserialize(&mut json) {
                let stopped = buffer.stopped.take();
                return Err(stopped.unwrap_or_else(|| bad_line(&file.path, None, None, error.to_string())));
            }
        }
    }
    buffer.flush()?;
    let bytes = buffer.kept.size();
    let table = MemTable::try_new(schema, vec![buffer.batches])?;
    Ok((Arc::new(table), bytes))
}

/// Records on their way into batches.
struct RecordBuffer<'b> {
    schema: SchemaRef,
    kept: MemoryReservation,
    interrupt: &'b Interrupt,
    pending: Vec<String>,
    batches: Vec<RecordBatch>,
    /// Why reading stopped, where the text is not the reason.
    stopped: Option<EngineError>,
}

impl RecordBuffer<'_> {
    fn add<E: de::Error>(&mut self, record: &Value) -> std::result::Result<(), E> {
        self.pending.push(record.to_string());
        if self.pending.len() < BATCH_ROWS {
            return Ok(());
        }
        self.flush().map_err(|error| {
            let custom = E::custom(&error);
            self.stopped = Some(error);
            custom
        })
    }

    fn flush(&mut self) -> Result<()> {
        self.interrupt.check()?;
        let texts: ArrayRef = Arc::new(StringArray::from(std::mem::take(&mut self.pending)));
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), vec![texts])?;
        self.kept.try_grow(batch.get_array_memory_size())?;
        self.batches.push(batch);
        Ok(())
    }
}

/// A value of a file: a record, or an array of them, of which one at a time is in memory.
struct Records<'r, 'b>(&'r mut RecordBuffer<'b>);

impl<'de> DeserializeSeed<'de> for Records<'_, '_> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> std::result::Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Records<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a record or an array of records")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut records: A) -> std::result::Result<(), A::Error> {
        while let Some(record) = records.next_element::<Value>()? {
            self.0.add(&record)?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, record: A) -> std::result::Result<(), A::Error> {
        let record = Value::deserialize(de::value::MapAccessDeserializer::new(record))?;
        self.0.add(&record)
    }
}
