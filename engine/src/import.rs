//! `Engine::import`: files as one table, managed (rows copied) or external (files referenced), all or nothing.
//!
//! Types are inferred from all of the data, not from its beginning, so that a row can only be refused for being
//! malformed, and is then named by file, line and column. Rows keep their order, so that files can be pruned.

mod column_mapping;
mod csv;
mod folder_tree;
mod json;
mod parquet;
mod request;
mod sources;
mod workbooks;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{FutureExt, StreamExt};
use querent_catalog::policy::{Privilege, Rights};
use querent_catalog::{
    CatalogError, Created, FileFormat, IfExists, Principal, Progress, ResolvedTable, Role, TableSource,
};
use tokio::sync::mpsc;

use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::identifiers::same_name;
use crate::limits::{Interrupt, QueryClock, QueryLabel, QueryUsage};
use crate::policy::{allowed_location, require_privilege};
use crate::session::{RejectsTable, sorted_stream};
use crate::sql::column_defaults::refuse_left_out;
use crate::stores::is_inside;
use crate::tables::external::{
    self, FoundFiles, LocatedFile, Partitioning, Rejects, SourceReading, TypedCsv, TypedJson, TypedWorkbook, blocking,
};
use crate::tables::managed;
use column_mapping::ColumnMapping;
pub use folder_tree::{TreeEvent, TreeRequest, TreeStep, TreeSummary};
pub use request::{ImportOutcome, ImportRequest};
pub use sources::{source_files, workbook_sheets};

/// An import takes as long as its files are long, where nobody says otherwise; it ends with its caller, or where the process has
/// no memory for it.
const UNLIMITED: Duration = Duration::MAX;
/// Batches waiting for the files to be written.
const QUEUE: usize = 4;

/// The folder below the data folder for uploads, which are imported from there whatever the caller may read elsewhere.
const UPLOADS: &str = "spool";

impl Engine {
    /// Imports files as one managed (rows copied) or external (files referenced) table, all or nothing.
    /// Errors: `bad_data` with file, line and column, `no_files`, `already_exists`, `location_not_allowed`, ...
    pub async fn import(
        &self,
        principal: &Principal,
        request: ImportRequest,
        progress: Arc<dyn Progress>,
    ) -> Result<ImportOutcome> {
        self.import_sent(principal, request, BTreeMap::new(), UNLIMITED, progress).await
    }

    /// As [`Engine::import`], of files that were sent, within a time: `names` says by their paths what their sender calls them.
    /// Errors also: `wall_clock_exceeded`, with nothing imported.
    pub async fn import_sent(
        &self,
        principal: &Principal,
        request: ImportRequest,
        names: BTreeMap<String, String>,
        within: Duration,
        progress: Arc<dyn Progress>,
    ) -> Result<ImportOutcome> {
        let interrupt = Interrupt::new(QueryClock::start(within));
        let _abandoned = interrupt.abandon_on_drop();
        let label = QueryLabel {
            subject: principal.subject().to_owned(),
            caller: Some(principal.clone()),
            database: request.table.database.clone(),
            text: format!("import into {}", request.table),
            request_id: None,
        };
        let usage = QueryUsage::new(label, interrupt.clone(), Arc::clone(&self.runtime().resident), Arc::new(()));
        let work = usage.scope(async {
            let rejects = Rejects::of_files(names.clone());
            let imported = import(self, principal, request.clone(), rejects, Arc::clone(&progress)).await;
            match imported {
                // Another made the table while the files were read, on this server or on one that shares the catalog.
                Err(EngineError::Catalog(CatalogError::AlreadyExists { name, .. }))
                    if request.if_exists.is_none() && !request.external && name == request.table.table =>
                {
                    interrupt.clock().resume();
                    import(self, principal, request, Rejects::of_files(names), progress).await
                }
                imported => imported,
            }
        });
        interrupt.clock().limit_time(work.boxed()).await
    }
}

/// Imports files for `who`, who needs role `write` and has to be allowed to read the source.
async fn import(
    engine: &Engine,
    who: &Principal,
    request: ImportRequest,
    rejects: Rejects,
    progress: Arc<dyn Progress>,
) -> Result<ImportOutcome> {
    let catalog = engine.catalog();
    let state = &*engine.planning_state();
    require_import_role(who)?;
    let request = ImportRequest { source: allowed_source(engine, who, &request).await?, ..request };
    if catalog.databases().get(who, &request.table.database).await?.is_none() {
        return Err(catalog.tables().not_found(who, &request.table).await.into());
    }
    let existing = catalog.tables().resolve(who, std::slice::from_ref(&request.table)).await?.pop().flatten();
    let policies = catalog.policies().current();
    let privilege = match (&existing, request.if_exists) {
        (Some(_), None) if !request.external => Privilege::Insert,
        _ => Privilege::Modify,
    };
    require_privilege("import", privilege, &request.table, existing.as_ref(), Rights::new(who, &policies))?;
    let name = request.table.clone();
    let imported = match (&existing, request.if_exists) {
        (Some(found), Some(IfExists::Error)) => {
            let spelled = found.info.name.table != request.table.table;
            Err(EngineError::Catalog(CatalogError::AlreadyExists {
                name: request.table.to_string(),
                existing: spelled.then(|| found.info.name.to_string()),
            }))
        }
        (Some(_), Some(IfExists::Ignore)) => Ok(ImportOutcome::default()),
        _ if request.external => register(engine, who, state, request, existing.as_ref()).await,
        (Some(found), None) => append(engine, who, state, &request, found, rejects, progress).await,
        _ => create(engine, who, state, &request, rejects, progress).await,
    };
    if imported.as_ref().is_ok_and(|outcome| outcome.files > 0) {
        engine.queue_changed_table(name);
    }
    imported
}

/// Returns an error unless `who` has role `write`.
fn require_import_role(who: &Principal) -> Result<()> {
    if who.role() < Role::Write {
        return Err(EngineError::NotAllowed {
            what: "import".into(),
            why: format!(" for role {} (needs write)", who.role().as_str()),
        });
    }
    Ok(())
}

/// Returns the source as an absolute path or a URL, if `who` may read it.
async fn allowed_source(engine: &Engine, who: &Principal, request: &ImportRequest) -> Result<String> {
    let data_dir = engine.catalog().data_dir();
    let uploaded = is_inside(Path::new(&request.source), &data_dir.join(UPLOADS));
    if uploaded && !request.external {
        return Ok(request.source.clone());
    }
    allowed_location(&request.source, who, engine).await
}

async fn register(
    engine: &Engine,
    who: &Principal,
    state: &dyn Session,
    request: ImportRequest,
    existing: Option<&ResolvedTable>,
) -> Result<ImportOutcome> {
    if let (Some(found), None) = (existing, request.if_exists) {
        return Err(EngineError::Unsupported {
            what: format!("appending files to `{}` by reference", found.info.name),
            hint: "import them as managed, or put them into the external table's folder".into(),
        });
    }
    let (table, schema) = external::infer(state, &request.source, request.format, &request.options, None, &[]).await?;
    let files = external::locate(state, &table.location, table.format).await?;
    let reading = external::reading(&table, &schema, &files).await?;
    let if_exists = request.if_exists.unwrap_or(IfExists::Error);
    let rejects = external::rejects_of(&table, &schema, &files).await?;
    let rejected = RejectsTable::find(engine, who, &request.table, &request.options, &rejects, false).await?;
    stop_clock()?;
    let created = engine.catalog().tables().create_external(&request.table, table, &schema, if_exists).await?;
    let rejects = rejected.write(engine).await?;
    let created = matches!(created, Created::New(_));
    Ok(ImportOutcome { rows: None, files: files.len(), created, reading, rejects })
}

async fn create(
    engine: &Engine,
    who: &Principal,
    state: &dyn Session,
    request: &ImportRequest,
    rejects: Rejects,
    progress: Arc<dyn Progress>,
) -> Result<ImportOutcome> {
    let catalog = Arc::clone(engine.catalog());
    let source = ImportSource::find(state, request).await?;
    let prepared = source.prepare(state, request, &progress).await?;
    let columns = ColumnMapping::from_file(&prepared.fields, &source.partitioning);
    let mut draft = catalog.tables().draft(&request.table, &columns.table, None).await?;
    let mut json = prepared.json_columns();
    json.extend(source.json_columns(state).await?);
    for column in &mut draft.columns {
        column.is_json = json.contains(&column.name);
    }
    let reading = prepared.reading();
    let stream = prepared.read(state, &source, columns, &rejects, progress).await?;
    let write_schema = Arc::clone(&draft.write_schema);
    let files = managed::write_files(engine.table_files(), &draft.location, write_schema, stream).await?;
    let may_be_committed = async {
        let rejected = RejectsTable::find(engine, who, &request.table, &request.options, &rejects, false).await?;
        stop_clock().map(|()| rejected)
    };
    let rejected = engine.or_remove_files(&files, may_be_committed).await?;
    let if_exists = request.if_exists.unwrap_or(IfExists::Error);
    let committed = files.clone();
    let rows = engine
        .commit_files(files, async move {
            Ok(matches!(catalog.tables().create(draft, committed, if_exists).await?, Created::New(_)))
        })
        .await?;
    let rejects = rejected.write(engine).await?;
    Ok(ImportOutcome { rows, files: source.files.len(), created: rows.is_some(), reading, rejects })
}

async fn append(
    engine: &Engine,
    who: &Principal,
    state: &dyn Session,
    request: &ImportRequest,
    found: &ResolvedTable,
    rejects: Rejects,
    progress: Arc<dyn Progress>,
) -> Result<ImportOutcome> {
    let catalog = Arc::clone(engine.catalog());
    let table = match &found.source {
        TableSource::Managed(table) => table.clone(),
        TableSource::External(_) | TableSource::View { .. } => {
            return Err(EngineError::Unsupported {
                what: format!("appending to `{}`, which is not a managed table,", found.info.name),
                hint: "import into a table of another name".into(),
            });
        }
    };
    let source = ImportSource::find(state, request).await?;
    let prepared = source.prepare(state, request, &progress).await?;
    let schema = found.info.arrow_schema();
    let fields = prepared.told_columns();
    let columns = ColumnMapping::into_table(&fields, &source.partitioning, &schema, &source.location)?;
    let given = fields.fields().iter().chain(&source.partitioning.fields);
    refuse_left_out(&found.info.columns, |name| given.clone().any(|own| same_name(own.name(), name)))?;
    let write_schema = catalog.tables().write_schema(&table).await?;
    let reading = prepared.reading();
    let stream = prepared.read(state, &source, columns, &rejects, progress).await?;
    let order = catalog.tables().insert_order(&table).await?;
    let stream = sorted_stream(engine, state, stream, &order, &found.info.columns).await?;
    let files = managed::write_files(engine.table_files(), &table.location, write_schema, stream).await?;
    let may_be_committed = async {
        let rejected = RejectsTable::find(engine, who, &request.table, &request.options, &rejects, true).await?;
        if files.is_empty() { Ok(rejected) } else { stop_clock().map(|()| rejected) }
    };
    let rejected = engine.or_remove_files(&files, may_be_committed).await?;
    let mut rows = Some(0);
    if !files.is_empty() {
        let committed = files.clone();
        let appended = async move { Ok(catalog.tables().append(&table, committed).await.map(|_| true)?) };
        rows = engine.commit_files(files, appended).await?;
    }
    let rejects = rejected.write(engine).await?;
    Ok(ImportOutcome { rows, files: source.files.len(), created: false, reading, rejects })
}

/// Stops the clock of the import that this thread works for, all of whose rows are read: what is committed is not to be reported as
/// failed. Errors: the time is over.
fn stop_clock() -> Result<()> {
    let Some(usage) = QueryUsage::current() else { return Ok(()) };
    usage.check()?;
    usage.stop_clock();
    Ok(())
}

/// The files of an import.
struct ImportSource {
    location: String,
    format: FileFormat,
    files: Vec<LocatedFile>,
    partitioning: Partitioning,
}

impl ImportSource {
    async fn find(state: &dyn Session, request: &ImportRequest) -> Result<Self> {
        let FoundFiles { location, format, files } = external::find(state, &request.source, request.format).await?;
        let partitioning = Partitioning::from_files(&location, &files, &[], None)?;
        Ok(Self { location, format, files, partitioning })
    }

    /// Infers the columns of the files.
    async fn prepare(
        &self,
        state: &dyn Session,
        request: &ImportRequest,
        progress: &Arc<dyn Progress>,
    ) -> Result<PreparedImport> {
        let options = external::known_options(self.format, &request.options)?;
        let (fields, reader) = match self.format {
            FileFormat::Parquet => {
                let (schema, options) =
                    external::infer_parquet(state, &self.files, external::UnlikeTypes::Refused).await?;
                let reader = if options.is_empty() { FormatReader::Parquet } else { FormatReader::RenamedParquet };
                // The scan finds columns by their names, and those of the folders first.
                (Arc::new(self.partitioning.without_hidden(&schema)), reader)
            }
            FileFormat::Csv => {
                let counter = self.counter("finding types", progress);
                let (schema, csv) = csv::infer(self.files.clone(), options, counter).await?;
                (schema, FormatReader::Csv(Box::new(csv)))
            }
            FileFormat::Ndjson => {
                let counter = self.counter("finding types", progress);
                let (schema, json) = json::infer(self.files.clone(), options, counter).await?;
                (schema, FormatReader::Json(Box::new(json)))
            }
            FileFormat::Xlsx => {
                let counter = self.counter("finding types", progress);
                let (schema, workbook) = workbooks::infer(self.files.clone(), options, counter).await?;
                (schema, FormatReader::Workbook(Box::new(workbook)))
            }
            FileFormat::Lance => (external::lance_schema(state, &self.location).await?, FormatReader::Lance),
            FileFormat::Arrow => {
                let files = self.files.clone();
                (
                    blocking(move || external::infer_ipc(&files, external::UnlikeTypes::Refused)).await?,
                    FormatReader::Arrow,
                )
            }
        };
        external::check_column_count(Path::new(&self.location), None, fields.fields().len())?;
        Ok(PreparedImport { fields, reader })
    }

    /// Returns the names of the columns of text of which the files themselves say that they hold JSON.
    async fn json_columns(&self, state: &dyn Session) -> Result<Vec<String>> {
        match self.format {
            FileFormat::Parquet => external::parquet_json_columns(state, &self.files).await,
            FileFormat::Arrow => {
                let files = self.files.clone();
                blocking(move || external::ipc_json_columns(&files)).await
            }
            FileFormat::Csv | FileFormat::Ndjson | FileFormat::Xlsx | FileFormat::Lance => Ok(Vec::new()),
        }
    }

    fn counter(&self, task: &str, progress: &Arc<dyn Progress>) -> ByteCounter {
        let name = Path::new(&self.location).file_name().map(|name| name.to_string_lossy().into_owned());
        ByteCounter {
            task: format!("{task}: {}", name.as_deref().unwrap_or(&self.location)),
            done: Arc::new(AtomicU64::new(0)),
            total: self.files.iter().map(|file| file.size).sum(),
            progress: Arc::clone(progress),
            usage: QueryUsage::current(),
        }
    }
}

/// Files whose columns are known.
struct PreparedImport {
    fields: SchemaRef,
    reader: FormatReader,
}

enum FormatReader {
    Parquet,
    /// Parquet whose columns do not keep their names.
    RenamedParquet,
    Csv(Box<TypedCsv>),
    Json(Box<TypedJson>),
    Workbook(Box<TypedWorkbook>),
    Arrow,
    Lance,
}

impl PreparedImport {
    /// Returns the columns that the files tell; none where there is no record.
    fn told_columns(&self) -> SchemaRef {
        match &self.reader {
            FormatReader::Json(json) if json.is_empty => Arc::new(Schema::empty()),
            _ => Arc::clone(&self.fields),
        }
    }

    /// Returns the names of the columns of text that hold JSON, where reading them told it.
    fn json_columns(&self) -> Vec<String> {
        match &self.reader {
            FormatReader::Json(json) => json.json_columns(),
            FormatReader::Csv(csv) => csv.json_columns(),
            FormatReader::Parquet
            | FormatReader::RenamedParquet
            | FormatReader::Workbook(_)
            | FormatReader::Arrow
            | FormatReader::Lance => Vec::new(),
        }
    }

    /// Returns what was decided about how text is read.
    fn reading(&self) -> Option<SourceReading> {
        match &self.reader {
            FormatReader::Csv(csv) => Some(csv.reading()),
            FormatReader::Json(json) => Some(json.reading()),
            FormatReader::Workbook(workbook) => Some(workbook.reading()),
            FormatReader::Parquet | FormatReader::RenamedParquet | FormatReader::Arrow | FormatReader::Lance => None,
        }
    }

    /// Returns the rows as a stream, as `columns` arranges them. Lines are set aside in `rejects` where the options say
    /// so.
    async fn read(
        self,
        state: &dyn Session,
        source: &ImportSource,
        columns: ColumnMapping,
        rejects: &Rejects,
        progress: Arc<dyn Progress>,
    ) -> Result<SendableRecordBatchStream> {
        let counter = source.counter("importing", &progress);
        let files = source.files.clone();
        let partitions = files.iter().map(|file| source.partitioning.values(file)).collect::<Result<Vec<_>>>()?;
        let table = Arc::clone(&columns.table);
        match self.reader {
            FormatReader::Parquet => parquet::read(state, source, self.fields, columns, counter).await,
            FormatReader::Csv(csv) => {
                let rejects = csv.dialect.ignore_errors.then(|| rejects.clone());
                let csv = csv.with_types(&columns.read);
                Ok(stream_from_thread(table, move |output| {
                    for (file, partition) in files.iter().zip(&partitions) {
                        csv::read(&csv, file, partition, &columns, rejects.as_ref(), &counter, output)?;
                    }
                    Ok(())
                }))
            }
            FormatReader::Json(json) => {
                let rejects = json.files.ignore_errors.then(|| rejects.clone());
                let json = json.with_types(&columns.read);
                Ok(stream_from_thread(table, move |output| {
                    for (file, partition) in files.iter().zip(&partitions) {
                        json::read(&json, file, partition, &columns, rejects.as_ref(), &counter, output)?;
                    }
                    Ok(())
                }))
            }
            FormatReader::Workbook(workbook) => {
                let rejects = workbook.files.ignore_errors.then(|| rejects.clone());
                let workbook = workbook.with_types(&columns.read);
                Ok(stream_from_thread(table, move |output| {
                    for (file, partition) in files.iter().zip(&partitions) {
                        workbooks::read(&workbook, file, partition, &columns, rejects.as_ref(), &counter, output)?;
                    }
                    Ok(())
                }))
            }
            FormatReader::Arrow => Ok(stream_from_thread(table, move |output| {
                for (file, partition) in files.iter().zip(&partitions) {
                    external::read_ipc(file, &self.fields, columns.sending(partition, output))?;
                    counter.add(file.size);
                }
                Ok(())
            })),
            FormatReader::RenamedParquet => Ok(stream_from_thread(table, move |output| {
                for (file, partition) in files.iter().zip(&partitions) {
                    external::read_renamed_parquet(file, &self.fields, columns.sending(partition, output))?;
                    counter.add(file.size);
                }
                Ok(())
            })),
            FormatReader::Lance => {
                let rows = external::read_lance(state, &source.location).await?;
                let arranged = rows.map(move |batch| {
                    let batch = batch?;
                    columns.arrange(batch.columns(), batch.num_rows(), &[]).map_err(DataFusionError::from)
                });
                Ok(Box::pin(RecordBatchStreamAdapter::new(table, arranged)))
            }
        }
    }
}

/// The end of a queue that a reading thread sends its batches to.
struct BatchSender(mpsc::Sender<datafusion::common::Result<RecordBatch>>);

impl BatchSender {
    /// Sends a batch, which waits for room in the queue. Errors: nobody reads the stream any more.
    fn send(&self, batch: RecordBatch) -> Result<()> {
        self.0
            .blocking_send(Ok(batch))
            .map_err(|_| EngineError::Execution { message: "the import was abandoned".into() })
    }
}

/// Returns the batches that `produce` sends from a blocking thread, followed by its error if it fails.
fn stream_from_thread(
    schema: SchemaRef,
    produce: impl FnOnce(&BatchSender) -> Result<()> + Send + 'static,
) -> SendableRecordBatchStream {
    let (sender, receiver) = mpsc::channel(QUEUE);
    tokio::task::spawn_blocking(QueryUsage::carried(move || {
        let output = BatchSender(sender);
        // A stream that ends is complete: without this, a panic would end it as if all had been read.
        let produced = std::panic::catch_unwind(AssertUnwindSafe(|| produce(&output)));
        let produced = produced.unwrap_or_else(|panic| Err(EngineError::from_panic(panic.as_ref())));
        if let Err(error) = produced {
            // The error is lost only where nobody reads the stream any more.
            let _ = output.0.blocking_send(Err(error.into()));
        }
    }));
    let batches = futures::stream::unfold(receiver, |mut receiver| async move {
        let batch = receiver.recv().await?;
        Some((batch, receiver))
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}

/// Reports how much of the files' bytes, or rows, is done.
#[derive(Clone)]
struct ByteCounter {
    task: String,
    done: Arc<AtomicU64>,
    total: u64,
    progress: Arc<dyn Progress>,
    /// The import, which may have been ended.
    usage: Option<Arc<QueryUsage>>,
}

impl ByteCounter {
    fn add(&self, more: u64) {
        let done = self.done.fetch_add(more, Ordering::Relaxed) + more;
        self.progress.report(&self.task, done.min(self.total), self.total);
    }

    /// Returns a reader that counts what is read of `inner`.
    fn count<R: std::io::Read>(&self, inner: R) -> Counted<R> {
        Counted { inner, pending: 0, counter: self.clone() }
    }
}

struct Counted<R> {
    inner: R,
    pending: u64,
    counter: ByteCounter,
}

impl<R: std::io::Read> std::io::Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        const REPORT_EVERY: u64 = 1 << 20;
        if let Some(usage) = &self.counter.usage {
            usage.check().map_err(std::io::Error::other)?;
        }
        let read = self.inner.read(buffer)?;
        self.pending += read as u64;
        if self.pending >= REPORT_EVERY || read == 0 {
            self.counter.add(std::mem::take(&mut self.pending));
        }
        Ok(read)
    }
}

impl<R: std::io::Seek> std::io::Seek for Counted<R> {
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        self.inner.seek(to)
    }
}
