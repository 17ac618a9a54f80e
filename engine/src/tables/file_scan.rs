//! Scans over a known list of files, shared by managed and external tables: prunes whole files by their statistics,
//! sums up what is left for the optimizer, and builds the same `DataSourceExec` that DataFusion's own `ListingTable`
//! would, so that row groups and pages are pruned, filters pushed down and byte ranges split in the same way.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::stats::{NdvFallback, Precision};
use datafusion::common::{
    Column, ColumnStatistics, DFSchema, Result as DfResult, ScalarValue, Statistics, project_schema,
};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::utils::conjunction;
use datafusion::physical_expr_adapter::PhysicalExprAdapterFactory;
use datafusion::physical_optimizer::pruning::PruningPredicate;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use serde::{Deserialize, Serialize};

use super::decoded_parquet::through_cache;
use super::external::UuidAdapterFactory;
use super::managed::FieldIdAdapterFactory;
use crate::column_cache::ColumnCache;
use crate::limits::ScanBudget;

/// How a table's columns are found in its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ColumnMatching {
    /// By name.
    Names,
    /// By name, with UUIDs that the table has as text.
    NamesAndUuids,
    /// By the field ids that the files have.
    FieldIds(Arc<FieldIdAdapterFactory>),
}

impl ColumnMatching {
    /// Returns what maps the columns; `None` where names do.
    pub(crate) fn adapter(&self) -> Option<Arc<dyn PhysicalExprAdapterFactory>> {
        match self {
            ColumnMatching::Names => None,
            ColumnMatching::FieldIds(adapter) => {
                let adapter: Arc<dyn PhysicalExprAdapterFactory> = Arc::<FieldIdAdapterFactory>::clone(adapter);
                Some(adapter)
            }
            ColumnMatching::NamesAndUuids => Some(Arc::new(UuidAdapterFactory)),
        }
    }
}

/// What to scan. `files` carry statistics over the whole table schema, partition columns included, where known.
pub(crate) struct FileScan {
    /// How to read one file.
    pub format: Arc<dyn FileFormat>,
    /// Where the files are.
    pub store: ObjectStoreUrl,
    /// Columns in the files, then partition columns.
    pub schema: TableSchema,
    /// The files.
    pub files: Vec<PartitionedFile>,
    /// Into how many streams the rows are split, in file order.
    pub partitions: usize,
    /// Whether no optimizer may split the files further, since somebody counts their rows.
    pub is_whole: bool,
    /// The distinct values that columns of the schema are thought to have, all files together; by column.
    pub distinct_values: Vec<(usize, usize)>,
    /// Maps table columns to a file's columns.
    pub matching: ColumnMatching,
    /// The table, whose scans count in the budget of the statement. `None`: they do not.
    pub table: Option<String>,
}

impl FileScan {
    /// Scans files whose columns match the schema's by name, in as many streams as the session has partitions.
    pub fn new(
        state: &dyn Session,
        format: Arc<dyn FileFormat>,
        store: ObjectStoreUrl,
        schema: TableSchema,
        files: Vec<PartitionedFile>,
    ) -> Self {
        Self {
            format,
            store,
            schema,
            files,
            partitions: state.config().target_partitions(),
            is_whole: false,
            distinct_values: Vec::new(),
            matching: ColumnMatching::Names,
            table: None,
        }
    }

    /// Has the rows come in one stream, each file from its first row to its last: for those who know rows by their places.
    /// Without this DataFusion reads parts of large files side by side, whatever is above the scan.
    pub fn in_order(&mut self) {
        self.partitions = 1;
        self.is_whole = true;
    }

    /// Drops the files of which no row can pass `filters`.
    pub fn prune(&mut self, state: &dyn Session, filters: &[Expr]) {
        let Some(filter) = conjunction(filters.iter().cloned()) else { return };
        match self.survivors(state, filter) {
            Ok(Some(survivors)) => {
                let mut survives = survivors.into_iter();
                self.files.retain(|_| survives.next().unwrap_or(true));
            }
            Ok(None) => {}
            // Pruning only saves work: a filter that it cannot judge keeps every file.
            Err(error) => tracing::debug!(%error, "file pruning skipped"),
        }
    }

    /// Returns the physical plan over the files that `filters` and `limit` leave.
    pub async fn pruned_plan(
        mut self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        self.prune(state, filters);
        if let (Some(limit), true) = (limit, filters.is_empty()) {
            self.keep_first_rows(limit);
        }
        self.count(state, projection, limit);
        self.plan(state, projection, limit).await
    }

    /// Counts what is left of the files in the budget of the statement.
    pub fn count(&self, state: &dyn Session, projection: Option<&Vec<usize>>, limit: Option<usize>) {
        if let (Some(table), Some(budget)) = (&self.table, ScanBudget::of(state)) {
            budget.count(table, &self.files, projection, limit);
        }
    }

    fn survivors(&self, state: &dyn Session, filter: Expr) -> DfResult<Option<Vec<bool>>> {
        let schema = self.schema.table_schema();
        let df_schema = DFSchema::try_from(Arc::clone(schema))?;
        let predicate = state.create_physical_expr(filter, &df_schema)?;
        let pruning = PruningPredicate::try_new(predicate, Arc::clone(schema))?;
        if pruning.always_true() {
            return Ok(None);
        }
        let containers = FileStatistics { files: &self.files, schema: Arc::clone(schema) };
        pruning.prune(&containers).map(Some)
    }

    /// Drops the files after the first `limit` rows. Only right when no filter remains above the scan.
    fn keep_first_rows(&mut self, limit: usize) {
        let mut rows = 0usize;
        let mut kept = 0;
        for file in &self.files {
            if rows >= limit {
                break;
            }
            let known = file.statistics.as_ref().and_then(|statistics| statistics.num_rows.get_value().copied());
            let Some(count) = known else {
                kept = self.files.len();
                break;
            };
            rows = rows.saturating_add(count);
            kept += 1;
        }
        self.files.truncate(kept);
    }

    /// Returns the physical plan. An empty list of files is an empty relation.
    pub async fn plan(
        self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let table_schema = Arc::clone(self.schema.table_schema());
        if self.files.is_empty() {
            return Ok(Arc::new(EmptyExec::new(project_schema(&table_schema, projection)?)));
        }
        let groups = match is_few(&self.files, state.config().batch_size()) {
            true => vec![FileGroup::new(self.files)],
            false => FileGroup::new(self.files).split_files(self.partitions.max(1)),
        };
        let groups = groups
            .into_iter()
            .map(|group| {
                let statistics = merge(group.iter().map(|file| file.statistics.as_deref()), &table_schema)?;
                Ok(group.with_statistics(Arc::new(without_all_integers(statistics))))
            })
            .collect::<DfResult<Vec<_>>>()?;
        let statistics = merge(groups.iter().map(|group| group.file_statistics(None)), &table_schema)?;
        let mut statistics = without_all_integers(statistics);
        for (column, count) in self.distinct_values {
            if let Some(known) = statistics.column_statistics.get_mut(column) {
                // Files may have been pruned.
                let rows = statistics.num_rows.get_value().copied().unwrap_or(count);
                known.distinct_count = Precision::Inexact(count.min(rows));
            }
        }
        let source = self.format.file_source(self.schema);
        let config = FileScanConfigBuilder::new(self.store, source)
            .with_file_groups(groups)
            .with_statistics(statistics)
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .with_preserve_order(self.is_whole)
            .with_partitioned_by_file_group(self.is_whole)
            .with_expr_adapter(self.matching.adapter())
            .build();
        let plan = self.format.create_physical_plan(state, config).await?;
        Ok(match state.config().get_extension::<ColumnCache>() {
            Some(cache) => through_cache(plan, cache, self.matching, state.runtime_env(), true),
            None => plan,
        })
    }
}

/// The most files that are read one after the other.
const MOST_IN_ORDER: usize = 64;

/// Whether some files have no more rows than a batch: they are read one after the other, so that a small table shows its rows as they
/// were written.
fn is_few(files: &[PartitionedFile], batch_rows: usize) -> bool {
    let rows = |file: &PartitionedFile| file.statistics.as_ref()?.num_rows.get_value().copied();
    let all = files.iter().map(rows).try_fold(0_usize, |all, rows| Some(all.saturating_add(rows?)));
    files.len() <= MOST_IN_ORDER && all.is_some_and(|all| all <= batch_rows)
}

/// Returns the merged statistics of containers; unknown as soon as one of them is.
fn merge<'a>(statistics: impl Iterator<Item = Option<&'a Statistics>>, schema: &Schema) -> DfResult<Statistics> {
    let Some(known) = statistics.collect::<Option<Vec<_>>>() else { return Ok(Statistics::new_unknown(schema)) };
    Statistics::try_merge_iter_with_ndv_fallback(known, schema, NdvFallback::Max)
}

/// Returns statistics without the greatest value of columns whose bounds are the limits of 64 bits: DataFusion counts the values
/// between, which are more than 64 bits can tell. The least value would not do: of numbers without a sign it is known.
fn without_all_integers(mut statistics: Statistics) -> Statistics {
    for known in statistics.column_statistics.iter_mut().filter(|known| has_all_integers(known)) {
        known.max_value = Precision::Absent;
    }
    statistics
}

/// Returns whether the bounds of a column are the limits of 64 bits.
fn has_all_integers(column: &ColumnStatistics) -> bool {
    match (column.min_value.get_value(), column.max_value.get_value()) {
        (Some(min), Some(max)) => min.data_type().is_integer() && min.distance(max) == Some(usize::MAX),
        (None, Some(max)) => *max == ScalarValue::UInt64(Some(u64::MAX)),
        _ => false,
    }
}

/// Returns the schema with string columns as views, which DataFusion filters and joins faster; the same mapping that a
/// `ListingTable` over Parquet makes, under the same setting.
pub(super) fn scan_schema(state: &dyn Session, schema: &Schema) -> SchemaRef {
    if !state.config_options().execution.parquet.schema_force_view_types {
        return Arc::new(schema.clone());
    }
    let fields: Vec<Field> = schema
        .fields()
        .iter()
        .map(|field| match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 => field.as_ref().clone().with_data_type(DataType::Utf8View),
            DataType::Binary | DataType::LargeBinary => field.as_ref().clone().with_data_type(DataType::BinaryView),
            _ => field.as_ref().clone(),
        })
        .collect();
    Arc::new(Schema::new(fields))
}

/// Each file is a container. Inexact values are bounds that hold but need not occur, which is all pruning asks for;
/// counts must be exact.
struct FileStatistics<'a> {
    files: &'a [PartitionedFile],
    schema: SchemaRef,
}

impl FileStatistics<'_> {
    fn bounds(&self, column: &Column, bound: Bound) -> Option<ArrayRef> {
        let index = self.schema.index_of(column.name()).ok()?;
        let unknown = ScalarValue::try_from(self.schema.field(index).data_type()).ok()?;
        let values = self.files.iter().map(|file| {
            let statistics = file.statistics.as_ref().and_then(|all| all.column_statistics.get(index));
            let value = statistics.and_then(|one| match bound {
                Bound::Min => one.min_value.get_value(),
                Bound::Max => one.max_value.get_value(),
            });
            value.filter(|value| value.data_type() == unknown.data_type()).cloned().unwrap_or_else(|| unknown.clone())
        });
        ScalarValue::iter_to_array(values).ok()
    }
}

#[derive(Clone, Copy)]
enum Bound {
    Min,
    Max,
}

impl PruningStatistics for FileStatistics<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bounds(column, Bound::Min)
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bounds(column, Bound::Max)
    }

    fn num_containers(&self) -> usize {
        self.files.len()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        let index = self.schema.index_of(column.name()).ok()?;
        let counts: UInt64Array = self
            .files
            .iter()
            .map(|file| {
                let statistics = file.statistics.as_ref()?.column_statistics.get(index)?;
                exact(&statistics.null_count)
            })
            .collect();
        Some(Arc::new(counts))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        let counts: UInt64Array = self.files.iter().map(|file| exact(&file.statistics.as_ref()?.num_rows)).collect();
        Some(Arc::new(counts))
    }

    fn contained(&self, _column: &Column, _values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}

fn exact(count: &Precision<usize>) -> Option<u64> {
    match count {
        Precision::Exact(count) => u64::try_from(*count).ok(),
        Precision::Inexact(_) | Precision::Absent => None,
    }
}
