//! The rows of a file, row group by row group, each column from the cache or decoded.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, BooleanBufferBuilder, RecordBatch, RecordBatchOptions};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{BatchCoalescer, SortOptions, filter_record_batch, sort_to_indices};
use arrow::datatypes::SchemaRef;
use datafusion::common::cast::as_boolean_array;
use datafusion::common::{Result as DfResult, ScalarValue, internal_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{ParquetAccessPlan, ParquetFileMetrics, RowGroupAccessPlanFilter};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::{ProjectionExprs, Projector};
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr, conjunction, split_conjunction};
use datafusion::physical_expr_common::physical_expr::snapshot_generation;
use datafusion::physical_optimizer::pruning::PruningPredicate;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet};
use datafusion_datasource::morsel::Morsel;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, RowSelection};
use parquet::arrow::async_reader::{AsyncFileReader, ParquetRecordBatchStream};
use parquet::arrow::{ParquetRecordBatchStreamBuilder, ProjectionMask};

use super::{DecodedScan, pruning};
use crate::column_cache::{ColumnRoom, ColumnUse, DecodedColumn, DecodedColumnKey, FileVersion};
use crate::functions::with_one_nan;

/// A row group that is to be read.
pub(super) struct RowGroup {
    /// Its number in the file.
    pub number: usize,
    /// Its rows, those that are not selected among them.
    pub rows: usize,
    /// The rows to read; `None`: all.
    pub selection: Option<RowSelection>,
}

/// A file whose row groups are read one after the other.
pub(super) struct GroupsOfFile {
    /// The scan that reads it.
    pub scan: Arc<DecodedScan>,
    /// The file.
    pub file: PartitionedFile,
    /// As the cache knows the file.
    pub version: Arc<FileVersion>,
    /// Its footer, with the types that its columns are decoded to.
    pub metadata: ArrowReaderMetadata,
    /// The columns of the file, in these types.
    pub physical: SchemaRef,
    /// What the scan gives, computed from `physical`.
    pub projection: ProjectionExprs,
    /// The scan's predicate over `physical`.
    pub predicate: Option<Arc<dyn PhysicalExpr>>,
    /// The columns of `physical` that are needed, ascending.
    pub columns: Vec<usize>,
    /// For each of them how often it was asked for; `None`: it is not to be kept.
    pub uses: Vec<Option<ColumnUse>>,
    /// What to read, in this order.
    pub groups: VecDeque<RowGroup>,
    /// Columns of row groups that the cache had.
    pub hits: Count,
    /// Columns of row groups that it did not have.
    pub misses: Count,
}

impl GroupsOfFile {
    /// Returns how the cache names a column of one of the row groups.
    pub(super) fn key(&self, group: &RowGroup, column: usize) -> DecodedColumnKey {
        DecodedColumnKey {
            file: Arc::clone(&self.version),
            row_group: group.number,
            column,
            data_type: self.physical.field(column).data_type().clone(),
            batch_rows: self.scan.batch_rows,
        }
    }
}

impl fmt::Debug for GroupsOfFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupsOfFile").field("file", &self.file.object_meta.location).finish_non_exhaustive()
    }
}

impl Morsel for GroupsOfFile {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, DfResult<RecordBatch>> {
        let begun = async move { GroupReader::try_new(*self) };
        let rows = async move |mut reader: GroupReader| {
            let batch = reader.next_batch().await?;
            Ok(batch.map(|batch| (batch, reader)))
        };
        futures::stream::once(begun)
            .map_ok(move |reader| futures::stream::try_unfold(reader, rows))
            .try_flatten()
            .boxed()
    }
}

/// Sorts row groups by the statistics of the column that rows are to be ordered by, if it is one: those first that come first.
pub(super) fn arrange(
    groups: &mut VecDeque<RowGroup>,
    order: &PhysicalSortExpr,
    metadata: &ArrowReaderMetadata,
    physical: &SchemaRef,
) {
    let Some(column) = order.expr.downcast_ref::<Column>() else { return };
    let of_groups = groups.iter().map(|group| metadata.metadata().row_group(group.number));
    let SortOptions { descending, .. } = order.options;
    let first =
        StatisticsConverter::try_new(column.name(), physical, metadata.parquet_schema()).and_then(|statistics| {
            if descending { statistics.row_group_maxes(of_groups) } else { statistics.row_group_mins(of_groups) }
        });
    let Ok(first) = first else { return };
    let Ok(places) = sort_to_indices(&first, Some(SortOptions { descending, nulls_first: true }), None) else { return };
    let mut from: Vec<Option<RowGroup>> = std::mem::take(groups).into_iter().map(Some).collect();
    groups.extend(places.values().iter().filter_map(|place| from.get_mut(*place as usize)?.take()));
}

struct GroupReader {
    read: GroupsOfFile,
    /// The needed columns.
    schema: SchemaRef,
    projector: Projector,
    dynamic: Option<DynamicPruning>,
    rows: Option<FilteredRows>,
    open: Option<OpenGroup>,
}

impl GroupReader {
    fn try_new(read: GroupsOfFile) -> DfResult<Self> {
        let schema = Arc::new(read.physical.project(&read.columns)?);
        let projection = read.projection.clone().try_map_exprs(|expr| reassign_expr_columns(expr, &schema))?;
        let projector = projection.make_projector(&schema)?;
        let dynamic = read.predicate.as_ref().and_then(DynamicPruning::of);
        let filters = read.predicate.iter().flat_map(|predicate| split_conjunction(predicate));
        let rows = FilteredRows::new(filters, &schema, read.scan.batch_rows)?;
        Ok(Self { read, schema, projector, dynamic, rows, open: None })
    }

    /// Returns the next rows; `None` after the last.
    async fn next_batch(&mut self) -> DfResult<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.rows.as_mut().and_then(FilteredRows::next_batch) {
                return self.projected(&batch).map(Some);
            }
            let Some(open) = &mut self.open else {
                let Some(group) = self.read.groups.pop_front() else {
                    let last = self.rows.as_mut().map(FilteredRows::last_batch).transpose()?.flatten();
                    return last.map(|batch| self.projected(&batch)).transpose();
                };
                if !self.is_ruled_out(&group) {
                    self.open = Some(OpenGroup::open(&self.read, group).await?);
                }
                continue;
            };
            match (open.next_batch(&self.schema).await?, &mut self.rows) {
                (Some(batch), _) if batch.num_rows() == 0 => {}
                (Some(batch), Some(rows)) => rows.push(batch)?,
                (Some(batch), None) => return self.projected(&batch).map(Some),
                (None, _) => self.open = None,
            }
        }
    }

    /// Returns whether what other operators found out since the scan began leaves no row of the group.
    fn is_ruled_out(&mut self, group: &RowGroup) -> bool {
        let Some(dynamic) = self.dynamic.as_mut().filter(|_| self.read.scan.prunes_groups) else { return false };
        let Some(pruning) = dynamic.now(&self.read.physical) else { return false };
        let groups = self.read.metadata.metadata().row_groups();
        let mut one = ParquetAccessPlan::new_none(groups.len());
        one.scan(group.number);
        let mut left = RowGroupAccessPlanFilter::new(one);
        // The metrics have counted the group already.
        let metrics = ParquetFileMetrics::new(0, "", &ExecutionPlanMetricsSet::new());
        left.prune_by_statistics(&self.read.physical, self.read.metadata.parquet_schema(), groups, pruning, &metrics);
        left.is_empty()
    }

    fn projected(&self, batch: &RecordBatch) -> DfResult<RecordBatch> {
        let batch = self.projector.project_batch(batch)?;
        let output = &self.read.scan.output_schema;
        if batch.schema_ref() == output {
            return Ok(batch);
        }
        let (_, columns, rows) = batch.into_parts();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(output), columns, &options)?)
    }
}

/// A predicate that other operators change while the query runs.
struct DynamicPruning {
    predicate: Arc<dyn PhysicalExpr>,
    /// As of which change `pruning` is.
    generation: u64,
    pruning: Option<PruningPredicate>,
}

impl DynamicPruning {
    fn of(predicate: &Arc<dyn PhysicalExpr>) -> Option<Self> {
        // What never changes was used when the file was planned.
        let generation = snapshot_generation(predicate);
        (generation != 0).then(|| Self { predicate: Arc::clone(predicate), generation: 0, pruning: None })
    }

    fn now(&mut self, schema: &SchemaRef) -> Option<&PruningPredicate> {
        let generation = snapshot_generation(&self.predicate);
        if generation != self.generation {
            self.generation = generation;
            self.pruning = pruning(&self.predicate, schema);
        }
        self.pruning.as_ref()
    }
}

/// The rows that other operators have use for, as far as they have told: those with a key of a join's smaller side, or those
/// that may be among the first of a sort. The operators check again, so that leaving rows in is always right.
struct FilteredRows {
    filter: Arc<dyn PhysicalExpr>,
    /// As of which change of the filter the counts are.
    generation: u64,
    seen: usize,
    passed: usize,
    batches: BatchCoalescer,
}

impl FilteredRows {
    /// Rows after which it is known whether the filter is worth its time.
    const TRIAL_ROWS: usize = 1 << 15;
    /// A filter that lets more than this pass is not: in percent.
    const MAX_PASSED: usize = 80;

    /// Filters by those of `filters` that change while the query runs and read only columns of `schema`; `None` where there is
    /// none.
    fn new<'a>(
        filters: impl Iterator<Item = &'a Arc<dyn PhysicalExpr>>,
        schema: &SchemaRef,
        batch_rows: usize,
    ) -> DfResult<Option<Self>> {
        let is_usable = |filter: &&Arc<dyn PhysicalExpr>| {
            snapshot_generation(filter) != 0
                && collect_columns(filter).iter().all(|column| schema.index_of(column.name()).is_ok())
        };
        let usable: Vec<Arc<dyn PhysicalExpr>> = filters.filter(is_usable).map(Arc::clone).collect();
        if usable.is_empty() {
            return Ok(None);
        }
        let filter = reassign_expr_columns(conjunction(usable), schema)?;
        let batches = BatchCoalescer::new(Arc::clone(schema), batch_rows);
        let batches = batches.with_biggest_coalesce_batch_size(Some(batch_rows / 2));
        Ok(Some(Self { filter, generation: 0, seen: 0, passed: 0, batches }))
    }

    fn push(&mut self, batch: RecordBatch) -> DfResult<()> {
        let generation = snapshot_generation(&self.filter);
        if generation != self.generation {
            (self.generation, self.seen, self.passed) = (generation, 0, 0);
        }
        if self.seen >= Self::TRIAL_ROWS && self.passed * 100 > self.seen * Self::MAX_PASSED {
            return Ok(self.batches.push_batch(batch)?);
        }
        let rows = batch.num_rows();
        let mask = match self.filter.evaluate(&batch)? {
            ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))) => return Ok(self.batches.push_batch(batch)?),
            mask => mask.into_array(rows)?,
        };
        let mask = as_boolean_array(&mask)?;
        let passed = mask.true_count();
        self.seen += rows;
        self.passed += passed;
        if passed == rows {
            return Ok(self.batches.push_batch(batch)?);
        }
        if passed > 0 {
            self.batches.push_batch_with_filter(batch, mask)?;
        }
        Ok(())
    }

    fn next_batch(&mut self) -> Option<RecordBatch> {
        self.batches.next_completed_batch()
    }

    /// Returns what is left once all rows were pushed.
    fn last_batch(&mut self) -> DfResult<Option<RecordBatch>> {
        self.batches.finish_buffered_batch()?;
        Ok(self.batches.next_completed_batch())
    }
}

/// A row group that is being read.
struct OpenGroup {
    columns: Vec<ColumnReader>,
    decoder: Option<ParquetRecordBatchStream<Box<dyn AsyncFileReader>>>,
    /// The rows to read.
    mask: Option<BooleanBuffer>,
    batch_rows: usize,
    rows: usize,
    /// Batches that were read.
    batches: usize,
}

enum ColumnReader {
    Kept(Arc<DecodedColumn>),
    /// The decoder's next column.
    Decoded(Option<KeepLater>),
}

/// A column that is kept once all of its rows were read.
struct KeepLater {
    room: ColumnRoom,
    key: DecodedColumnKey,
    batches: Vec<ArrayRef>,
}

impl OpenGroup {
    async fn open(read: &GroupsOfFile, group: RowGroup) -> DfResult<Self> {
        let scan = &read.scan;
        let mut columns = Vec::with_capacity(read.columns.len());
        let mut missing = Vec::new();
        for (column, used) in read.columns.iter().zip(&read.uses) {
            let key = read.key(&group, *column);
            if let Some(kept) = scan.cache.get(&key) {
                read.hits.add(1);
                columns.push(ColumnReader::Kept(kept));
                continue;
            }
            read.misses.add(1);
            missing.push(*column);
            let room = used.and_then(|used| scan.cache.admit(used, decoded_bytes(read, &group, *column)));
            let keep = room.map(|room| KeepLater { room, key, batches: Vec::new() });
            columns.push(ColumnReader::Decoded(keep));
        }
        let decoder = if missing.is_empty() { None } else { Some(decoder(read, &group, missing)?) };
        let mask = group.selection.as_ref().map(|selection| {
            let mut mask = BooleanBufferBuilder::new(group.rows);
            selection.iter().for_each(|part| mask.append_n(part.row_count, !part.skip));
            // Rows after the last selector are not selected.
            mask.resize(group.rows);
            mask.finish()
        });
        Ok(Self { columns, decoder, mask, batch_rows: scan.batch_rows, rows: group.rows, batches: 0 })
    }

    /// Returns the selected rows of the next batch, which may be none; `None` after the last.
    async fn next_batch(&mut self, schema: &SchemaRef) -> DfResult<Option<RecordBatch>> {
        let start = self.batches * self.batch_rows;
        if start >= self.rows {
            self.keep();
            return Ok(None);
        }
        let rows = self.batch_rows.min(self.rows - start);
        let decoded = match &mut self.decoder {
            Some(decoder) => decoder.next().await.transpose()?,
            None => None,
        };
        let mut decoded = decoded.as_ref().map(|batch| batch.columns().iter()).into_iter().flatten();
        let mut arrays = Vec::with_capacity(self.columns.len());
        for column in &mut self.columns {
            let array = match column {
                ColumnReader::Kept(kept) => kept.batch(self.batches).map(Arc::clone),
                ColumnReader::Decoded(keep) => {
                    let array = decoded.next().map(|array| with_one_nan(array).unwrap_or_else(|| Arc::clone(array)));
                    if let (Some(keep), Some(array)) = (keep, &array) {
                        keep.batches.push(Arc::clone(array));
                    }
                    array
                }
            };
            match array.filter(|array| array.len() == rows) {
                Some(array) => arrays.push(array),
                None => return internal_err!("a column has not the {rows} rows of batch {}", self.batches),
            }
        }
        self.batches += 1;
        let batch = RecordBatch::try_new(Arc::clone(schema), arrays)?;
        let Some(mask) = &self.mask else { return Ok(Some(batch)) };
        Ok(Some(filter_record_batch(&batch, &BooleanArray::new(mask.slice(start, rows), None))?))
    }

    /// Keeps what was decoded: all rows were read.
    fn keep(&mut self) {
        for column in self.columns.drain(..) {
            if let ColumnReader::Decoded(Some(KeepLater { room, key, batches })) = column {
                room.keep(key, DecodedColumn::new(batches));
            }
        }
    }
}

/// Opens a decoder of some columns of a row group.
fn decoder(
    read: &GroupsOfFile,
    group: &RowGroup,
    columns: Vec<usize>,
) -> DfResult<ParquetRecordBatchStream<Box<dyn AsyncFileReader>>> {
    let reader = read.scan.reader(&read.file)?;
    let mask = ProjectionMask::roots(read.metadata.parquet_schema(), columns);
    Ok(ParquetRecordBatchStreamBuilder::new_with_metadata(reader, read.metadata.clone())
        .with_row_groups(vec![group.number])
        .with_projection(mask)
        .with_batch_size(read.scan.batch_rows)
        .build()?)
}

/// Returns about how many bytes a column of a row group takes once it is decoded.
fn decoded_bytes(read: &GroupsOfFile, group: &RowGroup, column: usize) -> usize {
    /// Of views, and of what is not of one width.
    const WIDTH: usize = 16;
    let metadata = read.metadata.metadata().row_group(group.number);
    let schema = read.metadata.parquet_schema();
    let leaves = (0..schema.num_columns()).filter(|leaf| schema.get_column_root_idx(*leaf) == column);
    let stored: i64 = leaves.map(|leaf| metadata.column(leaf).uncompressed_size()).sum();
    let data_type = read.physical.field(column).data_type();
    match data_type.primitive_width() {
        Some(width) => group.rows * width,
        None => group.rows * WIDTH + usize::try_from(stored).unwrap_or_default(),
    }
}
