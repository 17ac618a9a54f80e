//! `COPY query TO 'file'`: rows of a query in a file on this machine, for administrators. The file is written beside its
//! place and moved there when it is whole, so a reader never sees a part of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, IntoInnerError, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::ipc::writer::FileWriter;
use arrow::json::{ArrayWriter, LineDelimitedWriter};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::{CopyToSource, CopyToStatement, Statement};
use datafusion::sql::sqlparser::ast::{self, Value};
use flate2::write::GzEncoder;
use futures::StreamExt;
use parquet::basic::{Compression, ZstdLevel};
use querent_catalog::{CatalogError, is_full};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::Session;
use super::csv_rows::CsvTexts;
use super::json_rows::json_writer;
use super::parquet_rows::{ParquetRows, parquet_lacks};
use crate::error::{EngineError, Result};
use crate::identifiers::quote_identifier;
use crate::limits::Interrupt;
use crate::policy::{allowed_location, require_server_admin};
use crate::sql::parameters::ParameterValues;
use crate::sql::parse::ParsedStatement;
use crate::sql::query_from_table;
use crate::sql::repeated_changes::takes_one_row;
use crate::sql::write_statement::{COPY_OPTIONS, CopyFormat, CopyTarget, WriteStatement};
use crate::type_names::sql_name;

/// Batches waiting for the writing thread.
const QUEUE: usize = 4;

impl Session {
    /// Plans `COPY table TO 'file'` and `COPY (query) TO 'file'`.
    pub(super) async fn plan_copy(
        &self,
        copy: &CopyToStatement,
        parsed: &ParsedStatement,
        parameters: &ParameterValues,
    ) -> Result<LogicalPlan> {
        self.may_write_files(&copy.target)?;
        if !copy.partitioned_by.is_empty() {
            return Err(EngineError::Unsupported {
                what: "PARTITIONED BY in COPY".into(),
                hint: "write one COPY with a WHERE for each file".into(),
            });
        }
        let location = allowed_location(&copy.target, self.principal(), self.engine()).await?;
        if location.contains("://") {
            return Err(EngineError::Unsupported {
                what: "COPY to a URL".into(),
                hint: "write a local file and copy it there".into(),
            });
        }
        let target = copy_target(PathBuf::from(location), copy)?;
        let query = match &copy.source {
            CopyToSource::Relation(name) => query_from_table(name.clone()),
            CopyToSource::Query(query) => query.as_ref().clone(),
        };
        let inner = ParsedStatement {
            statement: Statement::Statement(Box::new(ast::Statement::Query(Box::new(query)))),
            ..parsed.clone()
        };
        if parameters.has_several_rows() {
            // Executed for each, the file would have the rows of the last one.
            return Err(takes_one_row("COPY TO"));
        }
        let input = Box::pin(self.plan_parsed(inner, parameters.clone())).await?;
        if WriteStatement::from_plan(&input).is_some() {
            return Err(EngineError::Plan { message: "COPY writes the rows of a query".into() });
        }
        Ok(WriteStatement::CopyTo { target, input: Arc::new(input) }.into_plan())
    }

    /// Errors: `not_allowed`, for everybody but an administrator of all databases who speaks for itself.
    fn may_write_files(&self, file: &str) -> Result<()> {
        let what = format!("writing the file `{file}`");
        if !self.reads_files {
            return Err(EngineError::NotAllowed { what, why: " for what runs on behalf of a caller".to_owned() });
        }
        require_server_admin(&what, self.principal(), self.mode())
    }

    /// Writes the rows of a query into the file. Returns how many there are.
    pub(super) async fn copy_to(&self, target: CopyTarget, input: &LogicalPlan, interrupt: &Interrupt) -> Result<u64> {
        let shown = target.path.display().to_string();
        self.may_write_files(&shown)?;
        let mut rows = self.execute_query(input, interrupt).await?;
        let schema = rows.schema();
        let keyed = schema.fields().iter().find(|field| has_other_keys(field.data_type()));
        if let (CopyFormat::Json, Some(field)) = (target.format, keyed) {
            return Err(EngineError::Unsupported {
                what: format!("writing the column `{}`, a {}, as JSON", field.name(), sql_name(field.data_type())),
                hint: format!(
                    "members of JSON have texts as names: write to_json({}), or all rows as Parquet",
                    quote_identifier(field.name())
                ),
            });
        }
        if let (CopyFormat::Parquet, Some(column)) = (target.format, parquet_lacks(&schema)) {
            return Err(EngineError::Unsupported {
                what: format!("writing the column `{column}`, an INTERVAL, as Parquet"),
                hint: format!("write it as text, CAST({} AS VARCHAR)", quote_identifier(column)),
            });
        }
        let (sender, receiver) = mpsc::channel(QUEUE);
        let writing = tokio::task::spawn_blocking(move || write_file(&target, &schema, receiver));
        let mut failure = None;
        while let Some(batch) = rows.next().await {
            match batch {
                Ok(batch) => {
                    // A writer that has failed takes no more; its own error is the one to report.
                    if sender.send(Some(batch)).await.is_err() {
                        break;
                    }
                }
                Err(error) => {
                    failure = Some(EngineError::from(error));
                    break;
                }
            }
        }
        if failure.is_none() {
            let _ = sender.send(None).await;
        }
        drop(sender);
        let written = writing.await.map_err(|error| EngineError::Internal(format!("writing thread: {error}")))?;
        failure.map_or(written, Err)
    }
}

/// Returns whether a type has maps whose keys are no texts, which no members of JSON can be called by.
fn has_other_keys(data_type: &DataType) -> bool {
    match data_type {
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(entry) => {
                entry.first().is_some_and(|key| !key.data_type().is_string())
                    || entry.iter().any(|field| has_other_keys(field.data_type()))
            }
            _ => false,
        },
        DataType::Struct(fields) => fields.iter().any(|field| has_other_keys(field.data_type())),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            has_other_keys(item.data_type())
        }
        _ => false,
    }
}

/// Reads the format and the options of a COPY. Errors: `unsupported`.
fn copy_target(path: PathBuf, copy: &CopyToStatement) -> Result<CopyTarget> {
    let mut options: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in &copy.options {
        let text = match value {
            Value::SingleQuotedString(text) | Value::Number(text, _) => text.clone(),
            other => other.to_string(),
        };
        options.insert(name.trim_start_matches("format.").to_lowercase(), text);
    }
    let ending_of =
        |path: &Path| path.extension().map(|ending| ending.to_string_lossy().to_lowercase()).unwrap_or_default();
    let ending = ending_of(path.as_path());
    let is_packed = ["gz", "zst", "bz2", "xz"].contains(&ending.as_str());
    let plain = if is_packed { ending_of(path.with_extension("").as_path()) } else { ending.clone() };
    let named = options.remove("format").or_else(|| copy.stored_as.clone()).unwrap_or(plain);
    let format = match named.to_lowercase().as_str() {
        "csv" | "tsv" | "tab" | "txt" => CopyFormat::Csv,
        "json" | "ndjson" | "jsonl" => CopyFormat::Json,
        "parquet" | "parq" | "pq" => CopyFormat::Parquet,
        "arrow" | "ipc" | "feather" => CopyFormat::Arrow,
        other => {
            let what = match other {
                "" => "writing a file whose name does not say its format".to_owned(),
                other => format!("writing files in the format `{other}`"),
            };
            return Err(EngineError::Unsupported {
                what,
                hint: "there are csv, tsv, json, parquet and arrow: COPY ... TO 'file' (FORMAT csv)".into(),
            });
        }
    };
    let is_text = matches!(format, CopyFormat::Csv | CopyFormat::Json);
    // Who reads the file takes it for what its name says.
    if is_packed && !(is_text && ending == "gz") {
        return Err(EngineError::Unsupported {
            what: format!("writing files in the format `{named}` compressed as `.{ending}` says"),
            hint: "CSV and JSON are compressed with gzip: COPY ... TO 'file.csv.gz'; Parquet in itself: COPY ... TO \
                   'file.parquet' (COMPRESSION zstd)"
                .into(),
        });
    }
    let mut target = CopyTarget {
        path,
        format,
        is_gzip: is_packed,
        delimiter: if ["tsv", "tab"].iter().any(|tabs| named.eq_ignore_ascii_case(tabs)) { b'\t' } else { b',' },
        has_header: true,
        null: String::new(),
        is_array: false,
        compression: "snappy".to_owned(),
    };
    for (name, value) in options {
        let refused = |expected: &str| EngineError::Plan {
            message: format!("option `{name}` of COPY is `{value}` but takes {expected}"),
        };
        let truth = || match value.to_lowercase().as_str() {
            "true" | "1" | "on" | "yes" => Ok(true),
            "false" | "0" | "off" | "no" => Ok(false),
            _ => Err(refused("true or false")),
        };
        match (name.as_str(), format) {
            ("delimiter" | "delim" | "sep", CopyFormat::Csv) => {
                target.delimiter = match value.as_bytes() {
                    [one] if one.is_ascii() => *one,
                    b"\\t" => b'\t',
                    _ => return Err(refused("one ASCII character")),
                };
            }
            ("header" | "has_header", CopyFormat::Csv) => target.has_header = truth()?,
            ("null" | "nullstr" | "null_value", CopyFormat::Csv) => target.null = value,
            ("array", CopyFormat::Json) => target.is_array = truth()?,
            ("compression" | "codec", CopyFormat::Csv | CopyFormat::Json) => {
                target.is_gzip = match value.to_lowercase().as_str() {
                    "gzip" | "gz" => true,
                    "none" | "uncompressed" => false,
                    "auto" | "auto_detect" => is_packed,
                    _ => return Err(refused("gzip or none")),
                };
            }
            ("compression" | "codec", CopyFormat::Parquet) => {
                compression(&value).ok_or_else(|| refused("snappy, zstd, lz4 or none"))?;
                target.compression = value;
            }
            _ => {
                return Err(EngineError::Unsupported {
                    what: format!("the option `{name}` of COPY"),
                    hint: COPY_OPTIONS.into(),
                });
            }
        }
    }
    Ok(target)
}

fn compression(name: &str) -> Option<Compression> {
    Some(match name.to_lowercase().as_str() {
        "snappy" => Compression::SNAPPY,
        "zstd" => Compression::ZSTD(ZstdLevel::default()),
        "lz4" | "lz4_raw" => Compression::LZ4_RAW,
        "none" | "uncompressed" => Compression::UNCOMPRESSED,
        _ => return None,
    })
}

/// Writes batches until the one that is none, which ends the file. Blocks.
#[expect(clippy::disallowed_methods, reason = "on a blocking thread")]
fn write_file(target: &CopyTarget, schema: &SchemaRef, batches: mpsc::Receiver<Option<RecordBatch>>) -> Result<u64> {
    let name = target.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let temporary = target.path.with_file_name(format!(".{name}.{}", Uuid::new_v4().simple()));
    let written = write_rows(target, &temporary, schema, batches).and_then(|rows| match rows {
        Some(rows) => {
            std::fs::rename(&temporary, &target.path).map(|()| rows).map_err(|error| unwritable(target, &error))
        }
        None => Err(EngineError::Internal("the rows of a COPY broke off".into())),
    });
    if written.is_err() {
        // There may be none.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Returns the number of rows; `None` where they broke off.
fn write_rows(
    target: &CopyTarget,
    path: &Path,
    schema: &SchemaRef,
    mut batches: mpsc::Receiver<Option<RecordBatch>>,
) -> Result<Option<u64>> {
    #[expect(clippy::disallowed_methods, reason = "on a blocking thread, where the statement names it")]
    let file = File::create(path).map_err(|error| unwritable(target, &error))?;
    let file = BufWriter::new(file);
    let file = match target.is_gzip {
        true => CopiedFile::Gzip(Box::new(GzEncoder::new(file, flate2::Compression::default()))),
        false => CopiedFile::Plain(file),
    };
    let mut writer = RowsWriter::new(target, schema, file)?;
    let mut rows = 0;
    while let Some(next) = batches.blocking_recv() {
        match next {
            Some(batch) => {
                rows += batch.num_rows() as u64;
                writer.write(&batch)?;
            }
            None => {
                let file = writer.finish()?.finish().map_err(|error| unwritable(target, &error))?;
                file.sync_all().map_err(|error| unwritable(target, &error))?;
                return Ok(Some(rows));
            }
        }
    }
    Ok(None)
}

/// A file that is compressed while it is written, or not.
enum CopiedFile {
    Plain(BufWriter<File>),
    Gzip(Box<GzEncoder<BufWriter<File>>>),
}

impl CopiedFile {
    /// Returns the file with all that was written.
    fn finish(self) -> std::io::Result<File> {
        let file = match self {
            CopiedFile::Plain(file) => file,
            CopiedFile::Gzip(encoder) => encoder.finish()?,
        };
        file.into_inner().map_err(IntoInnerError::into_error)
    }
}

impl Write for CopiedFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            CopiedFile::Plain(file) => file.write(bytes),
            CopiedFile::Gzip(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            CopiedFile::Plain(file) => file.flush(),
            CopiedFile::Gzip(encoder) => encoder.flush(),
        }
    }
}

/// A writer of one of the formats.
enum RowsWriter<W: Write + Send> {
    Csv(CsvTexts<W>),
    Lines(LineDelimitedWriter<W>),
    Array(ArrayWriter<W>),
    Parquet(Box<ParquetRows<W>>),
    Arrow(Box<FileWriter<W>>),
}

impl<W: Write + Send> RowsWriter<W> {
    fn new(target: &CopyTarget, schema: &SchemaRef, file: W) -> Result<Self> {
        Ok(match target.format {
            CopyFormat::Csv => {
                let mut writer = CsvTexts::new(file, target.delimiter, &target.null);
                if target.has_header {
                    writer.write_header(schema)?;
                }
                RowsWriter::Csv(writer)
            }
            CopyFormat::Json if target.is_array => RowsWriter::Array(json_writer().build(file)),
            CopyFormat::Json => RowsWriter::Lines(json_writer().build(file)),
            CopyFormat::Parquet => {
                let compression = compression(&target.compression).unwrap_or(Compression::SNAPPY);
                let writer = ParquetRows::try_new(file, schema, compression);
                RowsWriter::Parquet(Box::new(writer.map_err(DataFusionError::from)?))
            }
            CopyFormat::Arrow => RowsWriter::Arrow(Box::new(FileWriter::try_new(file, schema)?)),
        })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match self {
            RowsWriter::Csv(writer) => writer.write(batch)?,
            RowsWriter::Lines(writer) => writer.write(batch)?,
            RowsWriter::Array(writer) => writer.write(batch)?,
            RowsWriter::Parquet(writer) => writer.write(batch).map_err(DataFusionError::from)?,
            RowsWriter::Arrow(writer) => writer.write(batch)?,
        }
        Ok(())
    }

    fn finish(self) -> Result<W> {
        Ok(match self {
            RowsWriter::Csv(writer) => writer.into_inner(),
            RowsWriter::Lines(mut writer) => {
                writer.finish()?;
                writer.into_inner()
            }
            RowsWriter::Array(mut writer) => {
                writer.finish()?;
                writer.into_inner()
            }
            RowsWriter::Parquet(writer) => writer.into_inner().map_err(DataFusionError::from)?,
            RowsWriter::Arrow(writer) => writer.into_inner()?,
        })
    }
}

fn unwritable(target: &CopyTarget, error: &std::io::Error) -> EngineError {
    if is_full(error) {
        let detail = format!("{}: {error}", target.path.display());
        return EngineError::Catalog(CatalogError::StorageFull { detail });
    }
    EngineError::LocationNotAllowed { location: target.path.display().to_string(), reason: error.to_string() }
}
