//! A source of Parquet files that reads columns which it decoded before from the [`ColumnCache`].
//!
//! It stands around DataFusion's own source, which plans as ever and still reads what is read for the first time. A file whose
//! columns were asked for before is read here, row group by row group: what is in the cache is taken from there, what is not
//! is decoded, handed on, and kept where there is room. Rows, their order and their types are the same either way.

mod bloom_filters;
mod known_bounds;
mod named_files;
mod planned_file;
mod row_groups;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::fmt::Formatter;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Result as DfResult, ScalarValue};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{
    ParquetAccessPlan, ParquetFileMetrics, ParquetFileReaderFactory, RowGroupAccess, RowGroupAccessPlanFilter,
    apply_file_schema_type_coercions,
};
use datafusion::datasource::physical_plan::{
    FileOpener, FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_expr::expressions::{Column, LambdaExpr};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::simplifier::PhysicalExprSimplifier;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapterFactory, replace_columns_with_literals,
};
use datafusion::physical_optimizer::pruning::PruningPredicate;
use datafusion::physical_plan::filter_pushdown::FilterPushdownPropagation;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan, SortOrderPushdownResult};
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use object_store::ObjectStore;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::file::metadata::PageIndexPolicy;

use super::file_scan::ColumnMatching;
use crate::column_cache::{ColumnCache, ColumnUse, FileVersion};
use bloom_filters::{looked_up_columns, prune_by_bloom_filters};
pub(crate) use known_bounds::keep_known;
use known_bounds::with_known_bounds;
use named_files::NamedMorselizer;
pub(crate) use named_files::NamedParquet;
use planned_file::FileOwner;
use row_groups::{GroupsOfFile, RowGroup};

/// Returns the scan with its columns read through the cache, if it is a scan of Parquet files. `is_planned_here`: the files were
/// looked at by this machine.
pub(crate) fn through_cache(
    plan: Arc<dyn ExecutionPlan>,
    cache: Arc<ColumnCache>,
    matching: ColumnMatching,
    runtime: &RuntimeEnv,
    is_planned_here: bool,
) -> Arc<dyn ExecutionPlan> {
    let scan = plan.downcast_ref::<DataSourceExec>();
    let config = scan.and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>());
    let Some(config) = config.filter(|config| config.file_source().is::<ParquetSource>()) else { return plan };
    let owner = match matching {
        ColumnMatching::FieldIds(_) => FileOwner::Engine,
        ColumnMatching::Names | ColumnMatching::NamesAndUuids => {
            FileOwner::of_store(&config.object_store_url, runtime, is_planned_here)
        }
    };
    let parquet = with_known_bounds(config.file_source(), owner);
    let source = DecodedParquetSource { parquet, cache, matching, order: None, batch_rows: None };
    DataSourceExec::from_data_source(FileScanConfigBuilder::from(config.clone()).with_source(Arc::new(source)).build())
}

/// Returns the scan without the cache, and how it finds columns; `None` where it is not one that reads through the cache.
pub(crate) fn without_cache(config: &FileScanConfig) -> Option<(FileScanConfig, &ColumnMatching)> {
    let source = config.file_source().downcast_ref::<DecodedParquetSource>()?;
    let plain = FileScanConfigBuilder::from(config.clone()).with_source(Arc::clone(&source.parquet)).build();
    Some((plain, &source.matching))
}

/// A [`ParquetSource`] with a cache in front of it.
#[derive(Clone)]
struct DecodedParquetSource {
    parquet: Arc<dyn FileSource>,
    cache: Arc<ColumnCache>,
    /// What the scan's adapter is, for those who make the scan again elsewhere.
    matching: ColumnMatching,
    /// The order in which rows are best read, if any: a hint.
    order: Option<PhysicalSortExpr>,
    /// The rows of a batch; known before the scan begins.
    batch_rows: Option<usize>,
}

impl DecodedParquetSource {
    fn around(&self, parquet: Arc<dyn FileSource>) -> Arc<dyn FileSource> {
        Arc::new(Self { parquet, ..self.clone() })
    }

    /// Returns what reads files through the cache, or as DataFusion does where that cannot be.
    fn morselizer(
        &self,
        object_store: Arc<dyn ObjectStore>,
        base_config: &FileScanConfig,
        partition: usize,
    ) -> DfResult<Box<dyn Morselizer>> {
        let first_time = self.parquet.create_morselizer(object_store, base_config, partition)?;
        let Some(parquet) = self.parquet.downcast_ref::<ParquetSource>() else { return Ok(first_time) };
        let options = &parquet.table_parquet_options().global;
        let Some(readers) = parquet.parquet_file_reader_factory() else { return Ok(first_time) };
        // What the cached way does not do: rows filtered while they are decoded, and timestamps of 96 bits made shorter.
        let is_plain = !options.pushdown_filters && options.coerce_int96.is_none() && self.cache.limit_bytes() > 0;
        let (Some(projection), Some(batch_rows), true) = (parquet.projection(), self.batch_rows, is_plain) else {
            return Ok(first_time);
        };
        Ok(Box::new(DecodedMorselizer {
            first_time: Arc::from(first_time),
            scan: Arc::new(DecodedScan {
                cache: Arc::clone(&self.cache),
                store: base_config.object_store_url.clone(),
                readers: Arc::clone(readers),
                output_schema: Arc::new(projection.project_schema(self.table_schema().table_schema())?),
                projection: projection.clone(),
                predicate: parquet.filter(),
                order: self.order.clone(),
                table_schema: self.table_schema().clone(),
                adapter: match &base_config.expr_adapter_factory {
                    Some(adapter) => Arc::clone(adapter),
                    None => Arc::new(DefaultPhysicalExprAdapterFactory),
                },
                batch_rows,
                prunes_groups: options.pruning,
                reads_bloom_filters: options.bloom_filter_on_read,
                partition,
                metrics: parquet.metrics().clone(),
            }),
        }))
    }
}

impl FileSource for DecodedParquetSource {
    fn create_file_opener(
        &self,
        object_store: Arc<dyn ObjectStore>,
        base_config: &FileScanConfig,
        partition: usize,
    ) -> DfResult<Arc<dyn FileOpener>> {
        self.parquet.create_file_opener(object_store, base_config, partition)
    }

    fn create_morselizer(
        &self,
        object_store: Arc<dyn ObjectStore>,
        base_config: &FileScanConfig,
        partition: usize,
    ) -> DfResult<Box<dyn Morselizer>> {
        let columns_only = |projection: &ProjectionExprs| projection.expr_iter().all(|expr| expr.is::<Column>());
        Ok(Box::new(NamedMorselizer {
            morselizer: self.morselizer(object_store, base_config, partition)?,
            store: base_config.object_store_url.clone(),
            is_managed: matches!(self.matching, ColumnMatching::FieldIds(_)),
            only_decodes: self.parquet.projection().is_some_and(columns_only),
        }))
    }

    fn table_schema(&self) -> &TableSchema {
        self.parquet.table_schema()
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        let parquet = self.parquet.with_batch_size(batch_size);
        Arc::new(Self { parquet, batch_rows: Some(batch_size), ..self.clone() })
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.parquet.filter()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        self.parquet.projection()
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.parquet.metrics()
    }

    fn file_type(&self) -> &str {
        self.parquet.file_type()
    }

    fn fmt_extra(&self, format: DisplayFormatType, f: &mut Formatter<'_>) -> fmt::Result {
        self.parquet.fmt_extra(format, f)
    }

    fn supports_repartitioning(&self) -> bool {
        self.parquet.supports_repartitioning()
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> DfResult<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let pushed = self.parquet.try_pushdown_filters(filters, config)?;
        let updated_node = pushed.updated_node.map(|parquet| self.around(parquet));
        Ok(FilterPushdownPropagation { filters: pushed.filters, updated_node })
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
        properties: &EquivalenceProperties,
    ) -> DfResult<SortOrderPushdownResult<Arc<dyn FileSource>>> {
        Ok(match self.parquet.try_pushdown_sort(order, properties)? {
            SortOrderPushdownResult::Exact { inner } => SortOrderPushdownResult::Exact { inner: self.around(inner) },
            SortOrderPushdownResult::Inexact { inner } => {
                let ordered = Self { parquet: inner, order: order.first().cloned(), ..self.clone() };
                SortOrderPushdownResult::Inexact { inner: Arc::new(ordered) }
            }
            SortOrderPushdownResult::Unsupported => SortOrderPushdownResult::Unsupported,
        })
    }

    fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        self.parquet.reorder_files(files)
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> DfResult<Option<Arc<dyn FileSource>>> {
        // DataFusion 54 moves the columns of a lambda to other places then, and its parameters not behind them.
        for expr in projection.expr_iter() {
            if expr.exists(|part| Ok(part.downcast_ref::<LambdaExpr>().is_some()))? {
                return Ok(None);
            }
        }
        let pushed = self.parquet.try_pushdown_projection(projection)?;
        Ok(pushed.map(|parquet| self.around(parquet)))
    }
}

/// What one partition of a scan needs to read its files through the cache.
struct DecodedScan {
    cache: Arc<ColumnCache>,
    store: ObjectStoreUrl,
    readers: Arc<dyn ParquetFileReaderFactory>,
    projection: ProjectionExprs,
    output_schema: SchemaRef,
    /// Rows that cannot pass it may be left out.
    predicate: Option<Arc<dyn PhysicalExpr>>,
    order: Option<PhysicalSortExpr>,
    table_schema: TableSchema,
    adapter: Arc<dyn PhysicalExprAdapterFactory>,
    batch_rows: usize,
    prunes_groups: bool,
    reads_bloom_filters: bool,
    partition: usize,
    metrics: ExecutionPlanMetricsSet,
}

/// Decides for each file whether it is read through the cache.
struct DecodedMorselizer {
    first_time: Arc<dyn Morselizer>,
    scan: Arc<DecodedScan>,
}

impl fmt::Debug for DecodedMorselizer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecodedMorselizer").field("partition", &self.scan.partition).finish_non_exhaustive()
    }
}

impl Morselizer for DecodedMorselizer {
    fn plan_file(&self, file: PartitionedFile) -> DfResult<Box<dyn MorselPlanner>> {
        let scan = Arc::clone(&self.scan);
        let version = Arc::new(FileVersion::new(&scan.store, &file.object_meta));
        let uses = scan.count_uses(&file, &version);
        if uses.values().all(|used| used.before == 0) {
            return self.first_time.plan_file(file);
        }
        let first_time = Arc::clone(&self.first_time);
        Ok(Box::new(DecodedPlanner::Begin(Box::new(FileToRead { scan, first_time, file, version, uses }))))
    }
}

/// A file that is about to be read.
struct FileToRead {
    scan: Arc<DecodedScan>,
    first_time: Arc<dyn Morselizer>,
    file: PartitionedFile,
    version: Arc<FileVersion>,
    /// How often the file's columns were asked for, by name.
    uses: HashMap<String, ColumnUse>,
}

enum DecodedPlanner {
    Begin(Box<FileToRead>),
    Ready(Box<GroupsOfFile>),
}

impl fmt::Debug for DecodedPlanner {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Begin(_) => "DecodedPlanner::Begin",
            Self::Ready(_) => "DecodedPlanner::Ready",
        })
    }
}

impl MorselPlanner for DecodedPlanner {
    fn plan(self: Box<Self>) -> DfResult<Option<MorselPlan>> {
        Ok(Some(match *self {
            Self::Begin(file) => MorselPlan::new().with_pending_planner(file.planned()),
            Self::Ready(groups) => MorselPlan::new().with_morsels(vec![groups as Box<dyn Morsel>]),
        }))
    }
}

impl DecodedScan {
    fn reader(&self, file: &PartitionedFile) -> DfResult<Box<dyn AsyncFileReader>> {
        Ok(self.readers.create_reader(self.partition, file.clone(), file.metadata_size_hint, &self.metrics)?)
    }

    /// Counts that the columns of a file, or of its part that this scan reads, are used.
    fn count_uses(&self, file: &PartitionedFile, version: &Arc<FileVersion>) -> HashMap<String, ColumnUse> {
        let columns = self.projection.expr_iter().flat_map(|expr| collect_columns(&expr));
        let start = file.range.as_ref().map_or(0, |range| range.start);
        let in_files = self.table_schema.file_schema().fields().len();
        columns
            .filter(|column| column.index() < in_files)
            .map(|column| {
                let used = self.cache.count_use((version, start, column.name()));
                (column.name().to_owned(), used)
            })
            .collect()
    }
}

impl FileToRead {
    /// Reads the footer, and decides what of the file is read and how.
    async fn planned(self) -> DfResult<Box<dyn MorselPlanner>> {
        let Self { scan, first_time, file, version, uses } = self;
        let mut reader = scan.reader(&file)?;
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Skip);
        let mut metadata = ArrowReaderMetadata::load_async(&mut reader, options.clone()).await?;
        let logical = scan.table_schema.file_schema();
        let mut physical = Arc::clone(metadata.schema());
        if let Some(coerced) = apply_file_schema_type_coercions(logical, &physical) {
            physical = Arc::new(coerced);
            let options = options.with_schema(Arc::clone(&physical));
            metadata = ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options)?;
        }

        let folders: HashMap<&str, &ScalarValue> = scan
            .table_schema
            .table_partition_cols()
            .iter()
            .zip(&file.partition_values)
            .map(|(field, value)| (field.name().as_str(), value))
            .collect();
        let rewriter = scan.adapter.create(Arc::clone(logical), Arc::clone(&physical))?;
        let simplifier = PhysicalExprSimplifier::new(&physical);
        let of_file = |expr: Arc<dyn PhysicalExpr>| -> DfResult<Arc<dyn PhysicalExpr>> {
            let expr = if folders.is_empty() { expr } else { replace_columns_with_literals(expr, &folders)? };
            simplifier.simplify(rewriter.rewrite(expr)?)
        };
        let projection = scan.projection.clone().try_map_exprs(of_file)?;
        let predicate = scan.predicate.clone().map(of_file).transpose()?;
        let pruning = predicate.as_ref().and_then(|predicate| pruning(predicate, &physical));
        let columns = projection.column_indices();
        let looked_up = pruning.as_ref().filter(|_| scan.reads_bloom_filters);
        let looked_up = looked_up.map_or_else(|| Some(Vec::new()), |pruning| looked_up_columns(pruning, &metadata));
        // Without columns only rows are counted, which the footer tells.
        let Some(looked_up) = looked_up.filter(|_| !columns.is_empty()) else {
            return first_time.plan_file(file);
        };

        let metrics = ParquetFileMetrics::new(scan.partition, file.object_meta.location.as_ref(), &scan.metrics);
        let groups = row_groups(&scan, &file, &metadata, &physical, pruning.as_ref(), &metrics)?;
        let uses = columns.iter().map(|column| uses.get(physical.field(*column).name()).copied()).collect();
        let counter = |name: &'static str| -> Count { MetricBuilder::new(&scan.metrics).counter(name, scan.partition) };
        let mut read = GroupsOfFile {
            hits: counter("column_cache_hits"),
            misses: counter("column_cache_misses"),
            file,
            version,
            metadata,
            physical,
            projection,
            predicate,
            columns,
            uses,
            groups,
            scan,
        };
        let pruned = match &pruning {
            Some(pruning) => prune_by_bloom_filters(&mut read, pruning, &looked_up).await?,
            None => 0,
        };
        metrics.row_groups_pruned_bloom_filter.add_pruned(pruned);
        metrics.row_groups_pruned_bloom_filter.add_matched(read.groups.len());
        Ok(Box::new(DecodedPlanner::Ready(Box::new(read))))
    }
}

/// Returns what a predicate says of statistics; `None` where it says nothing.
fn pruning(predicate: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Option<PruningPredicate> {
    let pruning = PruningPredicate::try_new(Arc::clone(predicate), Arc::clone(schema)).ok()?;
    (!pruning.always_true()).then_some(pruning)
}

/// Returns the row groups to read: those of the scan's range of the file that the deletes and the statistics leave.
fn row_groups(
    scan: &DecodedScan,
    file: &PartitionedFile,
    metadata: &ArrowReaderMetadata,
    physical: &SchemaRef,
    pruning: Option<&PruningPredicate>,
    metrics: &ParquetFileMetrics,
) -> DfResult<VecDeque<RowGroup>> {
    let all = metadata.metadata().row_groups();
    let access = match file.extensions.get::<ParquetAccessPlan>() {
        Some(access) if access.len() == all.len() => access.clone(),
        Some(access) => {
            return datafusion::common::exec_err!(
                "{} has {} row groups where {} are expected",
                file.object_meta.location,
                all.len(),
                access.len()
            );
        }
        None => ParquetAccessPlan::new_all(all.len()),
    };
    let mut left = RowGroupAccessPlanFilter::new(access);
    if let Some(range) = &file.range {
        left.prune_by_range(all, range);
    }
    match pruning.filter(|_| scan.prunes_groups) {
        Some(pruning) => {
            left.prune_by_statistics(physical, metadata.parquet_schema(), all, pruning, metrics);
        }
        None => metrics.row_groups_pruned_statistics.add_matched(left.remaining_row_group_count()),
    }
    metrics.files_ranges_pruned_statistics.add_matched(1);
    let mut groups = VecDeque::new();
    for (number, access) in left.build().into_inner().into_iter().enumerate() {
        let rows = usize::try_from(all[number].num_rows()).unwrap_or_default();
        match access {
            RowGroupAccess::Skip => {}
            RowGroupAccess::Scan => groups.push_back(RowGroup { number, rows, selection: None }),
            RowGroupAccess::Selection(selection) => {
                groups.push_back(RowGroup { number, rows, selection: Some(selection) });
            }
        }
    }
    if let Some(order) = &scan.order {
        row_groups::arrange(&mut groups, order, metadata, physical);
    }
    Ok(groups)
}
