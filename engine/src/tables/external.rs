//! External tables: Parquet, CSV, NDJSON and Arrow IPC at a file, a folder, a glob or Hive partitions, and Lance datasets,
//! on disk or in an object store.
//!
//! Files are found when a scan is planned and not before. Parquet is scanned as DataFusion's own `ListingTable` does, with
//! footers and statistics from the runtime's caches; CSV and JSON by readers of our own, which give each error its line.

mod ad_hoc;
mod column_merge;
mod csv;
mod file_columns;
mod file_reader;
mod file_streams;
mod hive_partitions;
mod ipc;
mod ipc_blocks;
mod ipc_messages;
mod json;
mod lance;
mod location;
mod object_listing;
mod parquet_columns;
mod parquet_depth;
mod parquet_pages;
mod read_ahead;
mod reader_options;
mod reading;
mod rejects;
mod row_bytes;
mod scan;
mod text_source;
mod workbook;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::Session;
use querent_catalog::{ExternalTable, FileFormat};

pub(crate) use ad_hoc::{Bounds, ad_hoc_table, file_table};
pub(crate) use column_merge::UnlikeTypes;
pub(crate) use csv::{CsvDialect, CsvFiles, TypedCsv, column_names};
pub(crate) use file_columns::{held_type_of, is_json_text, is_uuid, plain_type, wide_decimal, with_text_parts};
pub(crate) use file_reader::{OpenSourceFile, open, open_local};
pub(crate) use hive_partitions::Partitioning;
pub(crate) use ipc::{infer_ipc, ipc_json_columns, read_ipc};
pub(crate) use json::{JsonFiles, TypedJson, VALUE_COLUMN};
pub(super) use lance::LanceTable;
pub(crate) use lance::{lance_schema, read_lance};
pub(crate) use location::{
    LocatedFile, base_folder, compression, compression_name, compression_of, format_and_files, format_name, format_of,
    is_lance, locate_all, locate_one,
};
pub(crate) use object_listing::{ObjectListing, is_absence, list_objects};
pub(crate) use parquet_columns::{
    UuidAdapterFactory, infer_parquet, is_uuid_as_text, parquet_json_columns, read_renamed_parquet, uuids_as_text,
};
pub(crate) use parquet_pages::admit_pages;
use reader_options::HIDDEN_COLUMNS;
pub use reader_options::check_reader_options;
pub(crate) use reader_options::{
    ALLOW_QUOTED_NULLS, DECLARED_COLUMNS, is_written_option, known_options, sql_type_name, type_of_text,
};
pub use reading::{ReadColumn, SourceReading};
pub(crate) use rejects::Rejects;
pub use row_bytes::{BoundedBatches, row_bytes};
pub(super) use scan::ExternalTableProvider;
pub(crate) use scan::{object_meta, parquet_scan, store_of};
pub(crate) use workbook::{TypedWorkbook, WorkbookFiles, WorkbookSource, sheets_with_cells};

use crate::error::{EngineError, FilePlace, Result, store_error_in};
use crate::limits::QueryUsage;
use crate::stores::StoreUrl;

/// The bytes of text that are read to infer the types of an external table, over all its files. An import reads all of it.
const INFERENCE_BYTES: u64 = 64 << 20;
/// The JSON records that are read for the same: what comes first in a later one would go unseen.
const INFERENCE_RECORDS: usize = usize::MAX;
/// The Parquet footers that are merged into a schema.
const INFERENCE_FOOTERS: usize = 1_000;
/// What is read of each of very many tables: files, and bytes and records of them.
const QUICK_FILES: usize = 4;
const QUICK_BYTES: u64 = 1 << 20;
const QUICK_RECORDS: usize = 1_000;

/// The option of an external table that names the folder tree whose import registered it. Readers ignore it.
pub(crate) const TREE_OPTION: &str = "tree";

/// How much is read to infer a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// As much as is right for the table of one statement.
    Thorough,
    /// A little of a few files, which must be alike.
    Quick,
}

/// Finds the files of a location and infers what is not given: format, partition columns, schema.
/// Errors: `no_files`, `bad_data`, `location_not_allowed`.
pub(crate) async fn infer(
    state: &dyn Session,
    location: &str,
    format: Option<FileFormat>,
    options: &BTreeMap<String, String>,
    declared: Option<&Schema>,
    partition_columns: &[String],
) -> Result<(ExternalTable, SchemaRef)> {
    let found = find(state, location, format).await?;
    infer_found(state, found, options, declared, partition_columns, Effort::Thorough).await
}

/// Returns the files of a location, and infers their format where it is not given. Errors: `no_files`, `bad_data`, those of
/// stores.
pub(crate) async fn find(state: &dyn Session, location: &str, format: Option<FileFormat>) -> Result<FoundFiles> {
    let location = absolute(location)?;
    let format = match (format, StoreUrl::parse(&location)?) {
        (Some(format), _) => format,
        (None, Some(url)) => match location::format_of(Path::new(url.key())) {
            Some(format) => format,
            None => {
                let formats: Vec<FileFormat> = object_listing::object_formats(state, &url).await?.into_iter().collect();
                location::only_format(&location, &formats)?
            }
        },
        (None, None) => {
            let path = location.clone();
            blocking(move || location::infer_format(&path)).await?
        }
    };
    let files = locate(state, &location, format).await?;
    Ok(FoundFiles { location, format, files })
}

/// Returns the non-empty files of a location in order of their paths. Errors: `no_files`, `location_not_allowed`, those of
/// stores.
pub(crate) async fn locate(state: &dyn Session, location: &str, format: FileFormat) -> Result<Vec<LocatedFile>> {
    if let Some(url) = StoreUrl::parse(location)? {
        return object_listing::locate_objects(state, &url, format).await;
    }
    let path = absolute(location)?;
    blocking(move || location::locate(&path, format)).await
}

/// Returns each file of a location as a location of its own. Errors: those of [`find`], `unsupported` for partition folders,
/// whose values a file by itself does not have.
pub(crate) async fn single_files(
    state: &dyn Session,
    location: &str,
    format: Option<FileFormat>,
) -> Result<Vec<String>> {
    let found = find(state, location, format).await?;
    if found.files.iter().any(|file| !file.partition.is_empty()) {
        return Err(EngineError::Unsupported {
            what: "union_by_name over partition folders (key=value)".into(),
            hint: "leave it out: their columns are those of one table; or name the files of each folder".into(),
        });
    }
    Ok(found.files.iter().map(|file| file.path.display().to_string()).collect())
}

/// The files of a location.
pub(crate) struct FoundFiles {
    /// A file, a folder, a glob or a dataset: an absolute path or a URL.
    pub location: String,
    /// The files' format.
    pub format: FileFormat,
    /// All of them.
    pub files: Vec<LocatedFile>,
}

/// As [`infer`], for files that were found.
pub(crate) async fn infer_found(
    state: &dyn Session,
    found: FoundFiles,
    options: &BTreeMap<String, String>,
    declared: Option<&Schema>,
    partition_columns: &[String],
    effort: Effort,
) -> Result<(ExternalTable, SchemaRef)> {
    let FoundFiles { location, format, files } = found;
    let options = known_options(format, options)?;
    let partitioning = Partitioning::from_files(&location, &files, partition_columns, declared)?;
    let files = effort.sample(files);
    // Each file of Parquet or Arrow is read as the declared types, whatever its own are.
    let unlike = if declared.is_some() { UnlikeTypes::Declared } else { UnlikeTypes::Refused };
    let (file_schema, options) = match format {
        FileFormat::Parquet if effort == Effort::Quick => infer_alike(state, &files).await?,
        FileFormat::Parquet => infer_parquet(state, &files, unlike).await?,
        FileFormat::Csv => {
            let fields = |declared: &Schema| -> Vec<FieldRef> {
                declared.fields().iter().filter(|field| !partitioning.names(field.name())).cloned().collect()
            };
            infer_csv(files, options, declared.map(fields), effort).await?
        }
        FileFormat::Ndjson => infer_json(files, options, effort).await?,
        FileFormat::Arrow => (blocking(move || infer_ipc(&files, unlike)).await?, BTreeMap::new()),
        FileFormat::Lance => (lance_schema(state, &location).await?, BTreeMap::new()),
        FileFormat::Xlsx => infer_workbooks(files, options).await?,
    };
    let options = with_folder_columns(options, format, &file_schema, &partitioning);
    let file_schema = match declared {
        Some(declared) => declare(&location, format, &file_schema, declared, &partitioning)?,
        None => file_schema,
    };
    let mut fields: Vec<Arc<Field>> =
        file_schema.fields().iter().filter(|field| !partitioning.names(field.name())).cloned().collect();
    fields.extend(partitioning.fields.iter().cloned());
    let partition_columns = partitioning.fields.iter().map(|field| field.name().clone()).collect();
    Ok((ExternalTable { location, format, options, partition_columns }, Arc::new(Schema::new(fields))))
}

/// Returns the options of a table whose files have columns with the names of their folders, by whose values they are
/// hidden: a reader that counts columns has to know their places.
fn with_folder_columns(
    mut options: BTreeMap<String, String>,
    format: FileFormat,
    file: &Schema,
    partitioning: &Partitioning,
) -> BTreeMap<String, String> {
    let places = file.fields().iter().enumerate().filter(|(_, field)| partitioning.names(field.name()));
    let hidden: BTreeMap<usize, &str> = places.map(|(place, field)| (place, field.name().as_str())).collect();
    if matches!(format, FileFormat::Csv | FileFormat::Xlsx) && !hidden.is_empty() {
        options.insert(HIDDEN_COLUMNS.to_owned(), serde_json::to_string(&hidden).unwrap_or_default());
    }
    options
}

impl Effort {
    /// Returns the files that are read: the first, the last and some between.
    fn sample(self, files: Vec<LocatedFile>) -> Vec<LocatedFile> {
        if self == Effort::Thorough || files.len() <= QUICK_FILES {
            return files;
        }
        let last = files.len() - 1;
        (0..QUICK_FILES).filter_map(|step| files.get(step * last / (QUICK_FILES - 1)).cloned()).collect()
    }

    fn bytes(self) -> u64 {
        if self == Effort::Quick { QUICK_BYTES } else { INFERENCE_BYTES }
    }

    fn records(self) -> usize {
        if self == Effort::Quick { QUICK_RECORDS } else { INFERENCE_RECORDS }
    }
}

/// Returns the merged schema of Parquet files, of any two of which one has to have all columns of the other.
async fn infer_alike(state: &dyn Session, files: &[LocatedFile]) -> Result<(SchemaRef, BTreeMap<String, String>)> {
    let mut widest: Option<(SchemaRef, &LocatedFile)> = None;
    for file in files {
        let (schema, _) = infer_parquet(state, std::slice::from_ref(file), UnlikeTypes::Refused).await?;
        let Some((known, other)) = &widest else {
            widest = Some((schema, file));
            continue;
        };
        let holds =
            |whole: &Schema, part: &Schema| part.fields().iter().all(|field| whole.index_of(field.name()).is_ok());
        if holds(&schema, known) {
            widest = Some((schema, file));
        } else if !holds(known, &schema) {
            let names = |schema: &Schema| {
                let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
                shortened(&names.join(", "))
            };
            let detail = format!(
                "its columns ({}) are not those of {} ({})",
                names(&schema),
                other.path.display(),
                names(known)
            );
            return Err(bad_line(&file.path, None, None, detail));
        }
    }
    infer_parquet(state, files, UnlikeTypes::Refused).await
}

/// Has the errors of this thread's query name the files of a table without saying where they lie, for those who may not know; of
/// one of which the caller sees a part only, without saying what is in them.
pub(super) fn note_place(table: &str, location: &str, is_part: bool) {
    let place = match StoreUrl::parse(location) {
        Ok(Some(url)) => FilePlace::of_table(table, &format!("{}/{}", url.store(), url.base()), Some(url.store())),
        Ok(None) | Err(_) => FilePlace::of_table(table, &base_folder(location).to_string_lossy(), None),
    };
    QueryUsage::note_place(place.seen_in_part(is_part));
}

/// Returns the location as an absolute path, or as a URL in its one spelling.
fn absolute(location: &str) -> Result<String> {
    if let Some(url) = StoreUrl::parse(location)? {
        return Ok(url.to_string());
    }
    let plain = location.strip_prefix("file://").unwrap_or(location);
    let path = std::path::absolute(plain).map_err(|error| EngineError::LocationNotAllowed {
        location: location.to_string(),
        reason: error.to_string(),
    })?;
    path.to_str().map(str::to_string).ok_or_else(|| EngineError::LocationNotAllowed {
        location: location.to_string(),
        reason: "the path is not UTF-8".to_string(),
    })
}

/// Runs file work on a blocking thread.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(QueryUsage::carried(work))
        .await
        .map_err(|error| EngineError::Internal(format!("file thread: {error}")))?
}

async fn infer_csv(
    files: Vec<LocatedFile>,
    options: BTreeMap<String, String>,
    declared: Option<Vec<FieldRef>>,
    effort: Effort,
) -> Result<(SchemaRef, BTreeMap<String, String>)> {
    blocking(move || {
        let mut csv = CsvFiles::open(&files, &options)?;
        if let (Some(declared), Some(first)) = (&declared, files.first()) {
            csv.read_first_as_declared(declared, first)?;
        }
        let inference = csv.infer_all(|csv, inference| {
            let mut budget = effort.bytes();
            for file in &files {
                if budget == 0 {
                    break;
                }
                let is_whole = file.size <= budget;
                csv.infer(&file.path, inference, open(file)?.take(budget), is_whole)?;
                budget = budget.saturating_sub(file.size);
            }
            Ok(())
        })?;
        let typed = csv.typed(&inference, declared.is_some())?;
        Ok((typed.schema(), typed.options()))
    })
    .await
}

async fn infer_json(
    files: Vec<LocatedFile>,
    options: BTreeMap<String, String>,
    effort: Effort,
) -> Result<(SchemaRef, BTreeMap<String, String>)> {
    blocking(move || {
        let json = JsonFiles::from_options(&files, &options)?;
        let mut inference = json.inference();
        let mut budget = effort.bytes();
        for file in &files {
            if budget == 0 {
                break;
            }
            let is_whole = file.size <= budget;
            json.infer(&file.path, &mut inference, open(file)?.take(budget), effort.records(), is_whole)?;
            budget = budget.saturating_sub(file.size);
        }
        let typed = json.typed(&inference)?;
        Ok((typed.schema(), typed.options()))
    })
    .await
}

async fn infer_workbooks(
    files: Vec<LocatedFile>,
    options: BTreeMap<String, String>,
) -> Result<(SchemaRef, BTreeMap<String, String>)> {
    blocking(move || {
        let open = |file: &LocatedFile| Ok(Box::new(open(file)?) as Box<dyn WorkbookSource>);
        let typed = WorkbookFiles::from_options(&options)?.infer(&files, open)?;
        Ok((typed.schema(), typed.options()))
    })
    .await
}

/// Returns what was decided about how the files of an external table are read.
pub(crate) async fn reading(
    table: &ExternalTable,
    schema: &SchemaRef,
    files: &[LocatedFile],
) -> Result<Option<SourceReading>> {
    Ok(match text_reader(table, schema, files).await? {
        Some(TextReader::Csv(csv)) => Some(csv.reading()),
        Some(TextReader::Json(json)) => Some(json.reading()),
        Some(TextReader::Workbook(workbook)) => Some(workbook.reading()),
        None => None,
    })
}

/// Returns the lines that reading an external table sets aside, for which all of its files are read.
pub(crate) async fn rejects_of(table: &ExternalTable, schema: &SchemaRef, files: &[LocatedFile]) -> Result<Rejects> {
    let rejects = Rejects::default();
    let reader = match text_reader(table, schema, files).await? {
        Some(TextReader::Csv(csv)) if csv.dialect.ignore_errors => TextReader::Csv(csv),
        Some(TextReader::Json(json)) if json.files.ignore_errors => TextReader::Json(json),
        Some(TextReader::Workbook(workbook)) if workbook.files.ignore_errors => TextReader::Workbook(workbook),
        Some(_) | None => return Ok(rejects),
    };
    let (found, files) = (rejects.clone(), files.to_vec());
    blocking(move || {
        files.iter().try_for_each(|file| {
            let found = Some(found.clone());
            match &reader {
                TextReader::Csv(csv) => csv.read(&file.path, &[], found, open(file)?, |_| Ok(true)),
                TextReader::Json(json) => json.read(&file.path, &[], found, open(file)?, |_| Ok(true)),
                TextReader::Workbook(workbook) => {
                    workbook.read(&file.path, &[], found.as_ref(), Box::new(open(file)?), |_| Ok(true))
                }
            }
        })
    })
    .await?;
    Ok(rejects)
}

/// A reader of text files and workbooks, which are read row by row.
#[derive(Debug)]
pub(crate) enum TextReader {
    Csv(Box<TypedCsv>),
    Json(Box<TypedJson>),
    Workbook(Box<TypedWorkbook>),
}

/// Returns the reader of a table's files, if they are text or workbooks.
async fn text_reader(table: &ExternalTable, schema: &Schema, files: &[LocatedFile]) -> Result<Option<TextReader>> {
    let is_folder = |field: &&Arc<Field>| table.partition_columns.contains(field.name());
    let mut in_files: Vec<Arc<Field>> = schema.fields().iter().filter(|field| !is_folder(field)).cloned().collect();
    let hidden = table.options.get(HIDDEN_COLUMNS).and_then(|hidden| serde_json::from_str(hidden).ok());
    let hidden: BTreeMap<usize, String> = hidden.unwrap_or_default();
    for (place, name) in hidden {
        in_files.insert(place.min(in_files.len()), Arc::new(Field::new(name, DataType::Utf8, true)));
    }
    let (options, format, files) = (table.options.clone(), table.format, files.to_vec());
    blocking(move || {
        let schema = Schema::new(in_files);
        Ok(match (format, files.first()) {
            (FileFormat::Csv, Some(first)) => {
                Some(TextReader::Csv(Box::new(TypedCsv::from_options(&options, &schema, first)?)))
            }
            (FileFormat::Ndjson, Some(_)) => {
                Some(TextReader::Json(Box::new(TypedJson::from_options(&options, &schema, &files)?)))
            }
            (FileFormat::Xlsx, Some(_)) => {
                Some(TextReader::Workbook(Box::new(TypedWorkbook::from_options(&options, &schema)?)))
            }
            _ => None,
        })
    })
    .await
}

/// What is said of files that are compressed in different ways, or in part.
const MIXED_COMPRESSIONS: &str = "files of one table share one compression; import those of one ending by a glob \
                                  ('*.csv'), then the others ('*.csv.gz') with append";

/// Returns the compression that all files share.
pub(crate) fn compression_of_all(
    files: &[LocatedFile],
    options: &BTreeMap<String, String>,
) -> Result<datafusion::datasource::file_format::file_compression_type::FileCompressionType> {
    if let Some(named) = options.get("compression") {
        return compression(named);
    }
    let Some(first) = files.first() else { return Err(EngineError::Internal("no files to read".into())) };
    let found = compression_of(&first.path);
    match files.iter().find(|file| compression_of(&file.path) != found) {
        Some(other) => Err(bad_line(&other.path, None, None, MIXED_COMPRESSIONS.to_owned())),
        None => Ok(found),
    }
}

/// Returns the declared columns, which are matched with the file's by position for CSV and otherwise by name.
fn declare(
    location: &str,
    format: FileFormat,
    found: &SchemaRef,
    declared: &Schema,
    partitioning: &Partitioning,
) -> Result<SchemaRef> {
    let in_files = |schema: &Schema| -> Vec<Arc<Field>> {
        schema.fields().iter().filter(|field| !partitioning.names(field.name())).cloned().collect()
    };
    let (fields, found) = (in_files(declared), in_files(found));
    if matches!(format, FileFormat::Csv | FileFormat::Xlsx) && fields.len() != found.len() {
        return Err(EngineError::BadData {
            location: location.to_string(),
            detail: format!("{} columns are declared and the file has {}", fields.len(), found.len()),
        });
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// Returns an error about files, with the name of the first one where the error does not name one itself.
fn bad_files(files: &[LocatedFile], error: EngineError) -> EngineError {
    if store_error_in(&error).is_some() || matches!(error, EngineError::LocationNotAllowed { .. }) {
        return error;
    }
    let location = files.first().map(|file| file.path.display().to_string()).unwrap_or_default();
    EngineError::BadData { location, detail: error.to_string() }
}

/// The most columns that a file may have.
pub(crate) const MAX_COLUMNS: usize = 10_000;

/// Returns an error for a file of too many columns. Errors: `bad_data`.
pub(crate) fn check_column_count(path: &Path, line: Option<u64>, count: usize) -> Result<()> {
    if count <= MAX_COLUMNS {
        return Ok(());
    }
    let detail = format!(
        "more than {MAX_COLUMNS} columns; make rows of them, or read each line as one text (format csv, delimiter \\t, quote \
         empty, no header), of which json_each and string_split make rows"
    );
    Err(bad_line(path, line, None, detail))
}

/// `bad_data` at a line, counted from 1 as an editor does.
pub(crate) fn bad_line(path: &Path, line: Option<u64>, column: Option<&str>, detail: String) -> EngineError {
    let mut location = path.display().to_string();
    if let Some(line) = line {
        location.push_str(&format!(", line {line}"));
    }
    if let Some(column) = column {
        location.push_str(&format!(", column `{column}`"));
    }
    EngineError::BadData { location, detail }
}

/// Returns the store's error for a file in a store, and otherwise `bad_data`.
pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> EngineError {
    if let Some(said) = store_error_in(error) {
        return said;
    }
    let detail = match error.kind() {
        std::io::ErrorKind::PermissionDenied => "the server may not read it".to_owned(),
        _ => error.to_string(),
    };
    EngineError::BadData { location: path.display().to_string(), detail }
}

/// Returns the text, shortened for a message.
pub(crate) fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.chars().count() <= LONGEST {
        return text.to_string();
    }
    let cut: String = text.chars().take(LONGEST).collect();
    format!("{cut}...")
}
