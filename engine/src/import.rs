//! `Engine::import`: files as one table, managed (rows copied) or external (files referenced), all or nothing.
//!
//! Types are inferred from all of the data, not from its beginning, so that a row can only be refused for being
//! malformed, and is then named by file, row and column. Rows keep their order, which keeps files prunable.

mod columns;
mod csv;
mod ndjson;
mod parquet;
mod tree;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use querent_catalog::{
    Catalog, CatalogError, Created, FileFormat, IfExists, Principal, Progress, ResolvedTable, Role, TableSource,
};
use tokio::sync::mpsc;

use crate::policy::allowed_location;
use crate::sql::apply::commit;
use crate::tables::external::{self, Found, LocatedFile, Partitioning, blocking};
use crate::tables::managed;
use crate::{Engine, EngineError, ImportOutcome, ImportRequest, Result};
use columns::{Columns, repeated};
pub(crate) use tree::import_tree;

/// Batches waiting for the files to be written.
const QUEUE: usize = 4;

/// The folder of the data folder where doors put uploads, which are imported from there whatever may be read elsewhere.
const UPLOADS: &str = "spool";

/// Imports files for `who`, who may write, and read the source.
pub(crate) async fn import(
    engine: &Engine,
    who: &Principal,
    request: ImportRequest,
    progress: Arc<dyn Progress>,
) -> Result<ImportOutcome> {
    let catalog = engine.catalog();
    let state = &engine.planning_state();
    if who.role() < Role::Write {
        return Err(EngineError::NotAllowed {
            what: "import".into(),
            why: format!(" for role {} (needs write)", who.role().as_str()),
        });
    }
    let request = ImportRequest { source: allowed_source(engine, who, &request).await?, ..request };
    if catalog.databases().get(who, &request.table.database).await?.is_none() {
        return Err(catalog.tables().not_found(who, &request.table).await.into());
    }
    let existing = catalog.tables().resolve(who, std::slice::from_ref(&request.table)).await?.pop().flatten();
    let name = request.table.clone();
    let imported = match (&existing, request.if_exists) {
        (Some(found), Some(IfExists::Error)) => {
            let spelled = found.info.name.table != request.table.table;
            Err(EngineError::Catalog(CatalogError::AlreadyExists {
                name: request.table.to_string(),
                existing: spelled.then(|| found.info.name.to_string()),
            }))
        }
        (Some(_), Some(IfExists::Ignore)) => Ok(ImportOutcome { rows: None, files: 0, created: false }),
        _ if request.external => register(catalog, state, request, existing.as_ref()).await,
        (Some(found), None) => append(engine, state, &request, found, progress).await,
        _ => create(engine, state, &request, progress).await,
    };
    if imported.as_ref().is_ok_and(|outcome| outcome.files > 0) {
        engine.values_changed(name);
    }
    imported
}

/// The source as an absolute path or a URL.
async fn allowed_source(engine: &Engine, who: &Principal, request: &ImportRequest) -> Result<String> {
    let data_dir = engine.catalog().data_dir();
    let uploaded = managed::is_inside(Path::new(&request.source), &data_dir.join(UPLOADS));
    if uploaded && !request.external {
        return Ok(request.source.clone());
    }
    allowed_location(&request.source, who, engine).await
}

async fn register(
    catalog: &Catalog,
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
    let files = external::locate(state, &table.location, table.format).await?.len();
    let if_exists = request.if_exists.unwrap_or(IfExists::Error);
    let created = catalog.tables().create_external(&request.table, table, &schema, if_exists).await?;
    Ok(ImportOutcome { rows: None, files, created: matches!(created, Created::New(_)) })
}

async fn create(
    engine: &Engine,
    state: &dyn Session,
    request: &ImportRequest,
    progress: Arc<dyn Progress>,
) -> Result<ImportOutcome> {
    let catalog = Arc::clone(engine.catalog());
    let source = Source::find(state, request).await?;
    let prepared = source.prepare(state, request, &progress).await?;
    let columns = Columns::as_they_are(&prepared.fields, &source.partitioning);
    let draft = catalog.tables().draft(&request.table, &columns.table, None).await?;
    let stream = prepared.read(state, &source, columns, progress).await?;
    let files = managed::write_files(&draft.location, Arc::clone(&draft.write_schema), stream).await?;
    let if_exists = request.if_exists.unwrap_or(IfExists::Error);
    let committed = files.clone();
    let rows = commit(engine, files, async move {
        Ok(matches!(catalog.tables().create(draft, committed, if_exists).await?, Created::New(_)))
    })
    .await?;
    Ok(ImportOutcome { rows, files: source.files.len(), created: rows.is_some() })
}

async fn append(
    engine: &Engine,
    state: &dyn Session,
    request: &ImportRequest,
    found: &ResolvedTable,
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
    let source = Source::find(state, request).await?;
    let prepared = source.prepare(state, request, &progress).await?;
    let schema = found.info.arrow_schema();
    let columns = Columns::into_table(&prepared.fields, &source.partitioning, &schema, &source.location)?;
    let write_schema = catalog.tables().write_schema(&table).await?;
    let stream = prepared.read(state, &source, columns, progress).await?;
    let files = managed::write_files(&table.location, write_schema, stream).await?;
    let mut rows = Some(0);
    if !files.is_empty() {
        let committed = files.clone();
        let appended = async move { Ok(catalog.tables().append(&table, committed).await.map(|_| true)?) };
        rows = commit(engine, files, appended).await?;
    }
    Ok(ImportOutcome { rows, files: source.files.len(), created: false })
}

/// The files of an import.
struct Source {
    location: String,
    format: FileFormat,
    files: Vec<LocatedFile>,
    partitioning: Partitioning,
}

impl Source {
    async fn find(state: &dyn Session, request: &ImportRequest) -> Result<Self> {
        let Found { location, format, files } = external::find(state, &request.source, request.format).await?;
        let partitioning = Partitioning::of(&location, &files, &[], None)?;
        Ok(Self { location, format, files, partitioning })
    }

    /// Finds out the columns.
    async fn prepare(
        &self,
        state: &dyn Session,
        request: &ImportRequest,
        progress: &Arc<dyn Progress>,
    ) -> Result<Prepared> {
        let (fields, reader) = match self.format {
            FileFormat::Parquet => {
                if let Some(name) = request.options.keys().next() {
                    return Err(external::unknown_option(name));
                }
                (external::infer_parquet(state, &self.files).await?, Reader::Parquet)
            }
            FileFormat::Csv => {
                let counter = self.counter("finding types", progress);
                let (schema, csv) = csv::infer(self.files.clone(), request.options.clone(), counter).await?;
                (schema, Reader::Csv(csv))
            }
            FileFormat::Ndjson => {
                if let Some(name) = request.options.keys().find(|name| *name != "compression") {
                    return Err(external::unknown_option(name));
                }
                let compression = external::ndjson_compression(&self.files, &request.options)?;
                let counter = self.counter("finding types", progress);
                (ndjson::infer(self.files.clone(), compression, counter).await?, Reader::Ndjson(compression))
            }
            FileFormat::Arrow | FileFormat::Lance => {
                if let Some(name) = request.options.keys().next() {
                    return Err(external::unknown_option(name));
                }
                if self.format == FileFormat::Lance {
                    (external::lance_schema(state, &self.location).await?, Reader::Lance)
                } else {
                    let files = self.files.clone();
                    (blocking(move || external::infer_ipc(&files)).await?, Reader::Arrow)
                }
            }
        };
        Ok(Prepared { fields, reader })
    }

    fn counter(&self, task: &str, progress: &Arc<dyn Progress>) -> ByteCounter {
        let name = Path::new(&self.location).file_name().map(|name| name.to_string_lossy().into_owned());
        ByteCounter {
            task: format!("{task}: {}", name.as_deref().unwrap_or(&self.location)),
            done: Arc::new(AtomicU64::new(0)),
            total: self.files.iter().map(|file| file.size).sum(),
            progress: Arc::clone(progress),
        }
    }
}

/// Files whose columns are known.
struct Prepared {
    fields: SchemaRef,
    reader: Reader,
}

enum Reader {
    Parquet,
    Csv(csv::TypedCsv),
    Ndjson(datafusion::datasource::file_format::file_compression_type::FileCompressionType),
    Arrow,
    Lance,
}

impl Prepared {
    /// The rows, as `columns` arranges them.
    async fn read(
        self,
        state: &dyn Session,
        source: &Source,
        columns: Columns,
        progress: Arc<dyn Progress>,
    ) -> Result<SendableRecordBatchStream> {
        let counter = source.counter("importing", &progress);
        let files = source.files.clone();
        let partitions = files.iter().map(|file| source.partitioning.values(file)).collect::<Result<Vec<_>>>()?;
        let table = Arc::clone(&columns.table);
        match self.reader {
            Reader::Parquet => parquet::read(state, source, self.fields, columns, counter).await,
            Reader::Csv(csv) => Ok(produced(table, move |output| {
                for (file, partition) in files.iter().zip(&partitions) {
                    csv.read(file, partition, &columns, &counter, output)?;
                }
                Ok(())
            })),
            Reader::Ndjson(compression) => Ok(produced(table, move |output| {
                for (file, partition) in files.iter().zip(&partitions) {
                    ndjson::read(file, compression, partition, &columns, &counter, output)?;
                }
                Ok(())
            })),
            Reader::Arrow => Ok(produced(table, move |output| {
                for (file, partition) in files.iter().zip(&partitions) {
                    external::read_ipc(file, &self.fields, |batch| {
                        let folders = repeated(partition, batch.num_rows())?;
                        output.send(columns.arrange(batch.columns(), batch.num_rows(), &folders)?)?;
                        Ok(true)
                    })?;
                    counter.add(file.size);
                }
                Ok(())
            })),
            Reader::Lance => {
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

/// Where a reading thread puts its batches.
struct Output(mpsc::Sender<datafusion::common::Result<RecordBatch>>);

impl Output {
    /// Waits for room; an error when nobody wants the rows any more.
    fn send(&self, batch: RecordBatch) -> Result<()> {
        self.0
            .blocking_send(Ok(batch))
            .map_err(|_| EngineError::Execution { message: "the import was abandoned".into() })
    }
}

/// The batches that `produce` sends from a blocking thread, and its error at their end.
fn produced(
    schema: SchemaRef,
    produce: impl FnOnce(&Output) -> Result<()> + Send + 'static,
) -> SendableRecordBatchStream {
    let (sender, receiver) = mpsc::channel(QUEUE);
    tokio::task::spawn_blocking(move || {
        let output = Output(sender);
        if let Err(error) = produce(&output) {
            // Nobody is left to tell when the receiver is gone.
            let _ = output.0.blocking_send(Err(error.into()));
        }
    });
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
}

impl ByteCounter {
    fn add(&self, more: u64) {
        let done = self.done.fetch_add(more, Ordering::Relaxed) + more;
        self.progress.report(&self.task, done.min(self.total), self.total);
    }

    /// The same file, counted as it is read.
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
        let read = self.inner.read(buffer)?;
        self.pending += read as u64;
        if self.pending >= REPORT_EVERY || read == 0 {
            self.counter.add(std::mem::take(&mut self.pending));
        }
        Ok(read)
    }
}
