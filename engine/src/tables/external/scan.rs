//! Scans of external tables.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, Result as DfResult, Statistics, TableReference};
use datafusion::datasource::file_format::FileFormat as _;
use datafusion::datasource::file_format::arrow::ArrowFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::error::DataFusionError;
use datafusion::execution::cache::TableScopedPath;
use datafusion::execution::cache::cache_manager::CachedFileMetadata;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use futures::{StreamExt, TryStreamExt};
use object_store::ObjectMeta;
use object_store::path::Path as StorePath;
use querent_catalog::{ExternalTable, FileFormat, ResolvedTable};

use super::file_streams::{EachBatch, FileInFolders, ScanReader, plan};
use super::hive_partitions::with_statistics;
use super::ipc;
use super::ipc::IpcReader;
use super::parquet_columns::{RenamedParquetReader, check_footer_length};
use super::reader_options::COLUMN_KEYS;
use super::{LocatedFile, Partitioning, Rejects, TextReader, blocking, locate, note_place, open, text_reader};
use crate::error::{EngineError, Result};
use crate::stream::ResultTypes;
use crate::tables::decoded_parquet::{NamedParquet, keep_known};
use crate::tables::file_scan::{ColumnMatching, FileScan, scan_schema};

/// An external table as resolved by one statement.
#[derive(Debug)]
pub(in crate::tables) struct ExternalTableProvider {
    /// As messages name it: the table's name, or where its files are.
    name: String,
    table: ExternalTable,
    /// The scope of cached statistics, since the same file has others under another schema. Without it none are cached.
    scope: Option<TableReference>,
    schema: SchemaRef,
    file_schema: SchemaRef,
    partitioning: Partitioning,
    /// Whether the caller sees a part of the table only.
    is_part: bool,
}

impl ExternalTableProvider {
    /// Returns the provider of a table. Where the session's reader takes dictionaries, those of Arrow files stay.
    pub(in crate::tables) async fn try_new(
        state: &dyn Session,
        resolved: &ResolvedTable,
        table: &ExternalTable,
        is_part: bool,
    ) -> Result<Self> {
        note_place(&resolved.info.name.to_string(), &table.location, is_part);
        let takes_dictionaries = state.config().get_extension::<ResultTypes>().is_some_and(|types| types.dictionaries);
        let schema = match table.format {
            FileFormat::Arrow if takes_dictionaries => {
                let files = locate(state, &table.location, table.format).await?;
                let plain = resolved.info.arrow_schema();
                blocking(move || ipc::with_dictionaries(&plain, &files)).await?
            }
            FileFormat::Arrow | FileFormat::Lance => resolved.info.arrow_schema(),
            FileFormat::Parquet | FileFormat::Csv | FileFormat::Ndjson | FileFormat::Xlsx => {
                scan_schema(state, &resolved.info.arrow_schema())
            }
        };
        let scope = TableReference::bare(resolved.info.uuid.to_string());
        let provider = Self::with_schema(table.clone(), schema, Some(scope));
        Ok(Self { name: resolved.info.name.to_string(), is_part, ..provider })
    }

    /// Returns a provider that reads files as these columns.
    pub(super) fn with_schema(table: ExternalTable, schema: SchemaRef, scope: Option<TableReference>) -> Self {
        let is_partition = |field: &FieldRef| table.partition_columns.iter().any(|name| name == field.name());
        let (partition_fields, file_fields): (Vec<FieldRef>, Vec<FieldRef>) =
            schema.fields().iter().cloned().partition(is_partition);
        let ordered: Vec<FieldRef> = file_fields.iter().chain(&partition_fields).cloned().collect();
        Self {
            name: table.location.clone(),
            table,
            scope,
            schema: Arc::new(Schema::new(ordered)),
            file_schema: Arc::new(Schema::new(file_fields)),
            partitioning: Partitioning::with_fields(partition_fields),
            is_part: false,
        }
    }

    /// Finds the table's files, and returns them also as DataFusion scans them: with their partition values.
    async fn located_files(&self, state: &dyn Session) -> Result<(Vec<LocatedFile>, Vec<PartitionedFile>)> {
        let located = locate(state, &self.table.location, self.table.format).await?;
        let unknown = Arc::new(Statistics::new_unknown(&self.file_schema));
        let mut files = Vec::with_capacity(located.len());
        for file in &located {
            let in_folders = PartitionedFile::new_from_meta(object_meta(file)?)
                .with_partition_values(self.partitioning.values(file)?)
                .with_table_reference(self.scope.clone());
            files.push(with_statistics(in_folders, Arc::clone(&unknown)));
        }
        Ok((located, files))
    }

    /// Returns the table's files as a scan; `None` unless they are Parquet, whose rows can be counted without reading them,
    /// and whose columns keep their names.
    pub(in crate::tables) async fn file_scan(
        &self,
        state: &dyn Session,
        filters: &[Expr],
    ) -> DfResult<Option<FileScan>> {
        if self.table.format != FileFormat::Parquet || self.table.options.contains_key(COLUMN_KEYS) {
            return Ok(None);
        }
        let (located, files) = self.located_files(state).await?;
        let store = store_of(located.first());
        let kept = self.in_partitions(state, files, filters);
        parquet_scan(state, store, kept, Arc::clone(&self.file_schema), &self.partitioning).await.map(Some)
    }

    /// Returns the files whose partition values can pass the filters: of the others not even a footer is read.
    fn in_partitions(
        &self,
        state: &dyn Session,
        files: Vec<PartitionedFile>,
        filters: &[Expr],
    ) -> Vec<PartitionedFile> {
        if self.partitioning.fields.is_empty() {
            return files;
        }
        let schema = self.partitioning.table_schema(Arc::clone(&self.file_schema));
        let store = ObjectStoreUrl::local_filesystem();
        let mut scan = FileScan::new(state, Arc::new(ParquetFormat::default()), store, schema, files);
        scan.prune(state, filters);
        scan.files
    }

    /// Scans files whose partition values can pass the filters with a reader of ours.
    async fn scan_streams(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let (located, files) = self.located_files(state).await?;
        let paths: BTreeMap<StorePath, &LocatedFile> =
            files.iter().map(|file| file.object_meta.location.clone()).zip(&located).collect();
        let schema = self.partitioning.table_schema(Arc::clone(&self.file_schema));
        let mut scan = FileScan::new(state, Arc::new(ArrowFormat), store_of(located.first()), schema, files);
        scan.prune(state, filters);
        scan.table = Some(self.name.clone());
        scan.count(state, None, limit);
        let left = scan.files.iter().filter_map(|file| {
            let located = *paths.get(&file.object_meta.location)?;
            Some(FileInFolders { file: located.clone(), folders: file.partition_values.clone() })
        });
        let left: Vec<FileInFolders> = left.collect();
        let reader: Arc<dyn ScanReader> = match text_reader(&self.table, &self.file_schema, &located).await? {
            Some(reader) => Arc::new(TextScan(reader)),
            None if self.table.format == FileFormat::Parquet => Arc::new(RenamedParquetReader),
            None => Arc::new(IpcReader),
        };
        plan(reader, left, &self.schema, self.file_schema.fields().len(), projection, limit, scan.partitions)
    }
}

/// The reader of CSV and JSON files and of workbooks.
#[derive(Debug)]
struct TextScan(TextReader);

impl ScanReader for TextScan {
    fn read_file(&self, file: &LocatedFile, wanted: &Schema, each: EachBatch<'_>) -> Result<()> {
        let position = |columns: SchemaRef| -> Vec<usize> {
            let names = columns.fields().iter().map(|field| field.name().as_str());
            let places: HashMap<&str, usize> = names.zip(0..).collect();
            wanted.fields().iter().filter_map(|field| places.get(field.name().as_str()).copied()).collect()
        };
        match &self.0 {
            TextReader::Csv(csv) => {
                let rejects = csv.dialect.ignore_errors.then(Rejects::default);
                csv.read(&file.path, &position(csv.schema()), rejects, open(file)?, each)
            }
            TextReader::Json(json) => {
                let rejects = json.files.ignore_errors.then(Rejects::default);
                json.read(&file.path, &position(json.schema()), rejects, open(file)?, each)
            }
            TextReader::Workbook(workbook) => {
                let rejects = workbook.files.ignore_errors.then(Rejects::default);
                workbook.read(&file.path, &position(workbook.schema()), rejects.as_ref(), Box::new(open(file)?), each)
            }
        }
    }
}

/// Adds a projection to the columns of `wanted`, each computed by `value` from the columns of the plan.
pub(super) fn projected(
    state: &dyn Session,
    plan: Arc<dyn ExecutionPlan>,
    wanted: &SchemaRef,
    value: impl Fn(&Field) -> DfResult<Expr>,
) -> DfResult<Arc<dyn ExecutionPlan>> {
    let input = DFSchema::try_from(plan.schema())?;
    let expressions = wanted
        .fields()
        .iter()
        .map(|field| {
            let expr = state.create_physical_expr(value(field)?, &input)?;
            Ok(ProjectionExpr { expr, alias: field.name().clone() })
        })
        .collect::<DfResult<Vec<_>>>()?;
    Ok(Arc::new(ProjectionExec::try_new(expressions, plan)?))
}

#[async_trait]
impl TableProvider for ExternalTableProvider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> DfResult<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        // Tables alone have a scope. What a statement names itself it may be told.
        if self.scope.is_some() {
            note_place(&self.name, &self.table.location, self.is_part);
        }
        let Some(mut scan) = self.file_scan(state, filters).await? else {
            return self.scan_streams(state, projection, filters, limit).await;
        };
        scan.table = Some(self.name.clone());
        scan.pruned_plan(state, projection, filters, limit).await
    }
}

/// Returns a scan of Parquet files with the statistics of their footers, through the runtime's caches.
pub(crate) async fn parquet_scan(
    state: &dyn Session,
    store: ObjectStoreUrl,
    files: Vec<PartitionedFile>,
    file_schema: SchemaRef,
    partitioning: &Partitioning,
) -> DfResult<FileScan> {
    let format = ParquetFormat::default().with_options(state.table_options().parquet.clone());
    let concurrency = state.config_options().execution.meta_fetch_concurrency.max(1);
    let files = if state.config_options().execution.collect_statistics {
        futures::stream::iter(files)
            .map(|file| with_footer_statistics(state, &store, &format, &file_schema, file))
            .buffered(concurrency)
            .try_collect()
            .await?
    } else {
        files
    };
    let schema = partitioning.table_schema(file_schema);
    let scan = FileScan::new(state, Arc::new(format), store, schema, files);
    Ok(FileScan { matching: ColumnMatching::NamesAndUuids, ..scan })
}

async fn with_footer_statistics(
    state: &dyn Session,
    store: &ObjectStoreUrl,
    format: &ParquetFormat,
    file_schema: &SchemaRef,
    file: PartitionedFile,
) -> DfResult<PartitionedFile> {
    let key = TableScopedPath { table: file.table_reference.clone(), path: file.object_meta.location.clone() };
    let cache = key.table.as_ref().and_then(|_| state.runtime_env().cache_manager.get_file_statistic_cache());
    if let Some(cached) = cache.as_ref().and_then(|cache| cache.get(&key))
        && cached.is_valid_for(&file.object_meta)
    {
        return Ok(with_statistics(file, cached.statistics).with_ordering(cached.ordering));
    }
    let named = NamedParquet::new(store, &file.object_meta.location, false);
    let is_local = *store == ObjectStoreUrl::local_filesystem();
    let store = state.runtime_env().object_store(store)?;
    // Another file may be in its place since its columns were looked at.
    if is_local {
        match check_footer_length(store.as_ref(), &file.object_meta).await {
            Ok(()) => {}
            Err(DataFusionError::Execution(detail)) => {
                let location = format!("/{}", file.object_meta.location);
                return Err(EngineError::BadData { location, detail }.into());
            }
            Err(error) => return Err(named.error(error)),
        }
    }
    let read = format.infer_stats_and_ordering(state, &store, Arc::clone(file_schema), &file.object_meta).await;
    let mut read = read.map_err(|error| named.error(error))?;
    let footers = state.runtime_env().cache_manager.get_file_metadata_cache();
    let footer = DFParquetMetadata::new(store.as_ref(), &file.object_meta).with_file_metadata_cache(Some(footers));
    let footer = footer.fetch_metadata().await.map_err(|error| named.error(error))?;
    keep_known(&mut read.statistics, file_schema, &footer);
    let statistics = Arc::new(read.statistics);
    if let Some(cache) = cache {
        let entry = CachedFileMetadata::new(file.object_meta.clone(), Arc::clone(&statistics), read.ordering.clone());
        cache.put(&key, entry);
    }
    Ok(with_statistics(file, statistics).with_ordering(read.ordering))
}

/// Returns the store that a location's files are in.
pub(crate) fn store_of(file: Option<&LocatedFile>) -> ObjectStoreUrl {
    let object = file.and_then(|file| file.object.as_ref());
    object.map_or_else(ObjectStoreUrl::local_filesystem, |object| object.url.clone())
}

/// Returns a file's metadata as its store has it.
pub(crate) fn object_meta(file: &LocatedFile) -> Result<ObjectMeta> {
    if let Some(object) = &file.object {
        return Ok(object.meta.clone());
    }
    let location = StorePath::from_absolute_path(&file.path).map_err(|error| EngineError::LocationNotAllowed {
        location: file.path.display().to_string(),
        reason: error.to_string(),
    })?;
    Ok(ObjectMeta {
        location,
        last_modified: DateTime::<Utc>::from(file.modified),
        size: file.size,
        e_tag: file.inode.map(|inode| format!("{inode:x}")),
        version: None,
    })
}
