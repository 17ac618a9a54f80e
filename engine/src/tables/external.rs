//! External tables: Parquet, CSV, NDJSON and Arrow IPC at a file, a folder, a glob or Hive partitions, and Lance datasets,
//! on disk or in an object store.
//!
//! Files are found when a scan is planned and not before. Parquet is scanned as DataFusion's own `ListingTable` does, with
//! footers and statistics from the runtime's caches; CSV and NDJSON are read without being split at what only looks like
//! the end of a line.

mod ad_hoc;
mod csv_dialect;
mod csv_inference;
mod csv_reader;
mod file_reader;
mod hive_partitions;
mod ipc;
mod ipc_blocks;
mod lance;
mod location;
mod object_listing;
mod scan;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::datasource::file_format::FileFormat as _;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use querent_catalog::{ExternalTable, FileFormat};

pub(crate) use ad_hoc::{Bounds, ad_hoc_table};
pub(crate) use csv_dialect::{CsvDialect, compression, compression_name, unknown_option, unreadable};
pub(crate) use csv_inference::CsvInference;
pub(crate) use csv_reader::{CsvReader, bad_row, column_names};
pub(crate) use file_reader::{OpenSourceFile, open, open_local};
pub(crate) use hive_partitions::Partitioning;
pub(crate) use ipc::{infer_ipc, read_ipc};
pub(super) use lance::LanceTable;
pub(crate) use lance::{lance_schema, read_lance};
pub(crate) use location::{
    LocatedFile, base_folder, compression_of, format_name, format_of, is_lance, locate_all, locate_one,
};
pub(crate) use object_listing::{ObjectListing, is_absence, list_objects};
pub(super) use scan::ExternalTableProvider;
pub(crate) use scan::{object_meta, parquet_scan, store_of};

use crate::error::{EngineError, Result, store_error_in};
use crate::stores::StoreUrl;

/// The bytes of text that are read to infer the types of an external table, over all its files. An import reads all of it.
const INFERENCE_BYTES: u64 = 64 << 20;
/// The JSON records that are read for the same.
const INFERENCE_RECORDS: usize = 100_000;
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
    if matches!(format, FileFormat::Parquet | FileFormat::Arrow | FileFormat::Lance)
        && let Some(name) = options.keys().next()
    {
        return Err(unknown_option(name));
    }
    let partitioning = Partitioning::from_files(&location, &files, partition_columns, declared)?;
    let mut files = effort.sample(files);
    if format == FileFormat::Arrow && declared.is_some() {
        // Each file is read as the declared types, whatever its own are.
        files.truncate(1);
    }
    let (file_schema, options) = match format {
        FileFormat::Parquet if effort == Effort::Quick => (infer_alike(state, &files).await?, BTreeMap::new()),
        FileFormat::Parquet => (infer_parquet(state, &files).await?, BTreeMap::new()),
        FileFormat::Csv => infer_csv(files, options.clone(), declared.is_some(), effort).await?,
        FileFormat::Ndjson => infer_ndjson(state, &files, options, effort).await?,
        FileFormat::Arrow => (blocking(move || infer_ipc(&files)).await?, BTreeMap::new()),
        FileFormat::Lance => (lance_schema(state, &location).await?, BTreeMap::new()),
    };
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
async fn infer_alike(state: &dyn Session, files: &[LocatedFile]) -> Result<SchemaRef> {
    let mut widest: Option<(SchemaRef, &LocatedFile)> = None;
    for file in files {
        let schema = infer_parquet(state, std::slice::from_ref(file)).await?;
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
            return Err(bad_row(&file.path, None, None, detail));
        }
    }
    infer_parquet(state, files).await
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
    tokio::task::spawn_blocking(work).await.map_err(|error| EngineError::Internal(format!("file thread: {error}")))?
}

/// Returns the merged schema of Parquet files, in plain types.
pub(crate) async fn infer_parquet(state: &dyn Session, files: &[LocatedFile]) -> Result<SchemaRef> {
    let format =
        ParquetFormat::default().with_options(state.table_options().parquet.clone()).with_force_view_types(false);
    let store = state.runtime_env().object_store(store_of(files.first()))?;
    let metas = files.iter().take(INFERENCE_FOOTERS).map(object_meta).collect::<Result<Vec<_>>>()?;
    format.infer_schema(state, &store, &metas).await.map_err(|error| bad_files(files, EngineError::from(error)))
}

async fn infer_csv(
    files: Vec<LocatedFile>,
    options: BTreeMap<String, String>,
    is_declared: bool,
    effort: Effort,
) -> Result<(SchemaRef, BTreeMap<String, String>)> {
    blocking(move || {
        let csv = CsvFiles::open(&files, &options)?;
        let mut inference = csv.inference();
        let mut budget = effort.bytes();
        for file in &files {
            if budget == 0 {
                break;
            }
            csv.infer(file, &mut inference, budget)?;
            budget = budget.saturating_sub(file.size);
        }
        let mut dialect = csv.dialect;
        let given = dialect.null_value.is_some();
        // Declared types say where a marker is no value; where no marker was seen, plain reading is faster.
        if !given {
            let markers = if is_declared { inference.seen_markers() } else { inference.null_markers(false) };
            dialect.null_value = Some(markers.join(","));
        }
        Ok((Arc::new(inference.schema()) as SchemaRef, dialect.options()))
    })
    .await
}

/// CSV files of one table: one dialect, one header.
#[derive(Debug, Clone)]
pub(crate) struct CsvFiles {
    pub dialect: CsvDialect,
    pub names: Vec<String>,
}

impl CsvFiles {
    /// Detects the dialect on the first file and refuses files with other columns. Blocks.
    pub(crate) fn open(files: &[LocatedFile], options: &BTreeMap<String, String>) -> Result<Self> {
        let Some(first) = files.first() else { return Err(EngineError::Internal("no files to open".into())) };
        let dialect = CsvDialect::detect(options, first)?;
        let names = column_names(&first.path, &dialect, open(first)?)?;
        for file in files {
            if !options.contains_key("compression") && compression_of(&file.path) != dialect.compression {
                return Err(bad_row(&file.path, None, None, "files of one table share one compression".to_string()));
            }
            let theirs = column_names(&file.path, &dialect, open(file)?)?;
            let differs = theirs.iter().zip(&names).position(|(their, our)| their != our);
            if theirs.len() != names.len() || (dialect.has_header && differs.is_some()) {
                let detail = format!(
                    "its columns ({}) are not those of {} ({})",
                    shortened(&theirs.join(", ")),
                    first.path.display(),
                    shortened(&names.join(", "))
                );
                return Err(bad_row(&file.path, None, None, detail));
            }
        }
        Ok(Self { dialect, names })
    }

    pub(crate) fn inference(&self) -> CsvInference {
        CsvInference::new(&self.names, &self.dialect.null_markers())
    }

    /// Infers types from the first `budget` bytes of a file. Blocks.
    pub(crate) fn infer(&self, file: &LocatedFile, inference: &mut CsvInference, budget: u64) -> Result<()> {
        use std::io::Read;

        let whole = file.size <= budget;
        let source = open(file)?.take(budget);
        let mut reader = CsvReader::open(&file.path, &self.dialect, &self.names, source)?;
        loop {
            match reader.next_batch() {
                Ok(Some((_, batch))) => inference.update(&batch),
                Ok(None) => return Ok(()),
                // The budget may cut a record in two.
                Err(_) if !whole => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

async fn infer_ndjson(
    state: &dyn Session,
    files: &[LocatedFile],
    options: &BTreeMap<String, String>,
    effort: Effort,
) -> Result<(SchemaRef, BTreeMap<String, String>)> {
    if let Some(name) = options.keys().find(|name| *name != "compression") {
        return Err(unknown_option(name));
    }
    let compressed = ndjson_compression(files, options)?;
    let format =
        JsonFormat::default().with_schema_infer_max_rec(effort.records()).with_file_compression_type(compressed);
    let store = state.runtime_env().object_store(store_of(files.first()))?;
    let metas = files.iter().map(object_meta).collect::<Result<Vec<_>>>()?;
    let schema =
        format.infer_schema(state, &store, &metas).await.map_err(|error| bad_files(files, EngineError::from(error)))?;
    let kept = BTreeMap::from([("compression".to_string(), compression_name(&compressed).to_string())]);
    Ok((schema, kept))
}

/// Returns the compression that all NDJSON files share.
pub(crate) fn ndjson_compression(
    files: &[LocatedFile],
    options: &BTreeMap<String, String>,
) -> Result<datafusion::datasource::file_format::file_compression_type::FileCompressionType> {
    if let Some(named) = options.get("compression") {
        return compression(named);
    }
    let Some(first) = files.first() else { return Err(EngineError::Internal("no files to read".into())) };
    let found = compression_of(&first.path);
    match files.iter().find(|file| compression_of(&file.path) != found) {
        Some(other) => Err(bad_row(&other.path, None, None, "files of one table share one compression".to_string())),
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
    let fields: Vec<_> = declared.fields().iter().filter(|field| !partitioning.names(field.name())).cloned().collect();
    if format == FileFormat::Csv && fields.len() != found.fields().len() {
        return Err(EngineError::BadData {
            location: location.to_string(),
            detail: format!("{} columns are declared and the file has {}", fields.len(), found.fields().len()),
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

/// Returns the text, shortened for a message.
pub(crate) fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.chars().count() <= LONGEST {
        return text.to_string();
    }
    let cut: String = text.chars().take(LONGEST).collect();
    format!("{cut}...")
}
