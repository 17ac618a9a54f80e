//! Batches of bounded bytes. DataFusion counts rows: eight thousand rows of a hundred kilobytes are one batch of 800 MB, and
//! eight thousand of a megabyte are more than the 2 GiB that the offsets of one string column can address.
//!
//! Large rows come from two places. Expressions make them (`repeat('x', 100000)`, or a long literal for every row): an operator
//! with such expressions gets its input in slices, as many rows at a time as made [`BATCH_BYTES`] the last time, beginning with
//! few. What a projection delivers is seen, what functions make on the way to it they say themselves. A scan reads them:
//! where its statistics say that its rows are wide, the whole query counts fewer rows to a batch; and so it does where large
//! rows are made below operators that gather rows (filters, joins, sorts).

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use arrow::array::{Array, AsArray, ByteView, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Statistics, internal_err};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::{Stream, StreamExt};

use super::charged::charged_input;
use super::growth::grows;
use super::usage::measure_with;
use super::wide_rows::checked_width;
use super::window_memory::{grows_window_values, makes_window_values};

/// The bytes of a batch, where one row alone is not larger.
pub(crate) const BATCH_BYTES: usize = 1 << 20;
/// The rows of the first slice, whose size nobody knows yet.
const FIRST_ROWS: usize = 1;
/// What a function may make of one slice, on the way to a result.
const MADE_BYTES: usize = 8 * BATCH_BYTES;
/// How much larger a slice may be than the one before it, since rows may grow.
const GROWTH: usize = 8;
/// Rows narrower than this are left to DataFusion's own number of rows.
const WIDE_ROW_BYTES: usize = 1_024;
/// A batch of rows from a scan, by the scan's statistics.
const SCANNED_BYTES: usize = 8 * BATCH_BYTES;
const LEAST_ROWS: usize = 16;
/// The rows of a batch where a scan itself evaluates what makes rows large, or an operator gathers such rows.
const LARGE_ROWS: usize = 256;
/// A literal that is larger is worth counting: it stands in every row.
const LONG_LITERAL_BYTES: usize = 256;
/// Aggregates with more grouping sets get fewer rows at a time: they keep a copy of the rows for each set.
const FEW_GROUPING_SETS: usize = 8;
/// The rows that they make of one slice.
const GROUPED_ROWS: usize = 65_536;
/// The bytes of a row of a type whose slices cannot be measured.
const GUESSED_BYTES: usize = 16;
/// Operators that hand batches on as they come.
const PASSING_OPERATORS: [&str; 9] = [
    "CoalescePartitionsExec",
    "ChargedExec",
    "CooperativeExec",
    "GlobalLimitExec",
    "LocalLimitExec",
    "PacedExec",
    "ProjectionExec",
    "UnionExec",
    "WindowChargeExec",
];
/// Functions whose results can be any size.
const GROWING_FUNCTIONS: [&str; 8] =
    ["repeat", "lpad", "rpad", "replace", "array_repeat", "array_resize", "range", "generate_series"];

/// Returns the plan with its projections paced by the bytes that they make, and its filters by the [`batch_rows`] of the
/// plan, where those are fewer than the `usual` ones.
pub(crate) fn pace_projections(plan: Arc<dyn ExecutionPlan>, usual: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let rows = batch_rows(&plan, usual);
    let may_have_large_rows = rows <= LARGE_ROWS || plan.exists(|node| Ok(makes_window_values(node.as_ref())))?;
    plan.transform_up(|node| {
        if let Some(sets) = node.downcast_ref::<AggregateExec>().map(|aggregate| aggregate.group_expr().groups().len())
            && sets > FEW_GROUPING_SETS
        {
            let rows = (GROUPED_ROWS / sets).max(1);
            let inputs = node.children().into_iter().map(|input| sliced_to(input, rows)).collect();
            return node.with_new_children(inputs).map(Transformed::yes);
        }
        let makes_rows = may_have_large_rows && gathers_rows(node.as_ref());
        let node = if makes_rows {
            let inputs = node.children().into_iter().map(checked_width).collect();
            node.with_new_children(inputs)?
        } else {
            node
        };
        let Transformed { data: node, transformed: is_charged, .. } = charged_input(node)?;
        if makes_large_values(node.as_ref()) {
            let inputs: Vec<Arc<dyn ExecutionPlan>> = node.children().into_iter().map(sliced_by_what_is_made).collect();
            return resized(node.with_new_children(inputs)?, rows).map(Transformed::yes);
        }
        if rows < usual && node.downcast_ref::<FilterExec>().is_some() {
            return resized(node, rows).map(Transformed::yes);
        }
        let Some(projection) = node.downcast_ref::<ProjectionExec>() else {
            return Ok(Transformed::new_transformed(node, makes_rows || is_charged));
        };
        let schema = projection.schema();
        let may_be_large = projection
            .expr()
            .iter()
            .zip(schema.fields())
            .any(|(projected, field)| may_be_large(projected.expr.as_ref(), field.data_type()));
        if !may_be_large {
            return Ok(Transformed::no(node));
        }
        paced(node).map(Transformed::yes)
    })
    .data()
}

/// Returns an operator of one input that gets it in slices, by the bytes that it delivers.
pub(super) fn paced(node: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let [input] = node.children()[..] else { return Ok(node) };
    let input = Arc::clone(input);
    let paces = Pace::of_partitions(&input);
    let sliced = Arc::new(PacedExec { input, paces: Arc::clone(&paces), side: PaceSide::Below });
    let node = node.with_new_children(vec![sliced])?;
    Ok(Arc::new(PacedExec { input: node, paces, side: PaceSide::Above }))
}

/// Returns how an operator paces its input, for a plan that is written down; `None` where it does not.
pub(crate) fn pace_mark(node: &Arc<dyn ExecutionPlan>) -> Option<Vec<u8>> {
    let paced = node.downcast_ref::<PacedExec>()?;
    let rows = paced.paces.first().map_or(FIRST_ROWS, |pace| pace.rows.load(Ordering::Relaxed));
    Some([paced.side as u8].into_iter().chain((rows as u64).to_be_bytes()).collect())
}

/// Returns the operator of a [`pace_mark`] around an input that was read with it.
pub(crate) fn paced_again(mark: &[u8], input: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let input = Arc::clone(input);
    let Some((side, Ok(rows))) = mark.split_first().map(|(side, rows)| (*side, <[u8; 8]>::try_from(rows))) else {
        return internal_err!("the mark of a pace was cut off");
    };
    let rows = usize::try_from(u64::from_be_bytes(rows)).unwrap_or(FIRST_ROWS);
    let side = match side {
        side if side == PaceSide::Below as u8 => PaceSide::Below,
        side if side == PaceSide::Above as u8 => PaceSide::Above,
        side if side == PaceSide::Alone as u8 => PaceSide::Alone,
        _ => return internal_err!("no such side of a pace"),
    };
    let paces = match side {
        PaceSide::Below | PaceSide::Alone => {
            let paces = Pace::of_partitions(&input);
            paces.iter().for_each(|pace| pace.rows.store(rows, Ordering::Relaxed));
            paces
        }
        // What is measured above sets the slices below.
        PaceSide::Above => match input.children()[..] {
            [below] => match below.downcast_ref::<PacedExec>() {
                Some(below) => Arc::clone(&below.paces),
                None => return internal_err!("nothing is sliced where a pace is measured"),
            },
            _ => return internal_err!("a paced operator has one input"),
        },
    };
    Ok(Arc::new(PacedExec { input, paces, side }))
}

/// Whether an operator copies rows of several batches into one.
fn gathers_rows(node: &dyn ExecutionPlan) -> bool {
    const NAMES: [&str; 4] = ["SortExec", "SortPreservingMergeExec", "FilterExec", "RepartitionExec"];
    (node.children().len() > 1 && node.name() != "UnionExec") || NAMES.contains(&node.name())
}

/// Returns whether an operator makes large values only to look at them, so that nobody sees how large they are.
fn makes_large_values(node: &dyn ExecutionPlan) -> bool {
    if let Some(filter) = node.downcast_ref::<FilterExec>() {
        return makes_values(filter.predicate().as_ref());
    }
    node.downcast_ref::<AggregateExec>().is_some_and(|aggregate| {
        let mut arguments = aggregate.aggr_expr().iter().flat_map(|function| function.expressions());
        let mut groups = aggregate.group_expr().expr().iter();
        arguments.any(|expr| makes_values(expr.as_ref())) || groups.any(|(expr, _)| makes_values(expr.as_ref()))
    })
}

fn sliced_by_what_is_made(input: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    Arc::new(PacedExec { input: Arc::clone(input), paces: Pace::of_partitions(input), side: PaceSide::Alone })
}

fn sliced_to(input: &Arc<dyn ExecutionPlan>, rows: usize) -> Arc<dyn ExecutionPlan> {
    let paces = Pace::of_partitions(input);
    paces.iter().for_each(|pace| pace.rows.store(rows, Ordering::Relaxed));
    Arc::new(PacedExec { input: Arc::clone(input), paces, side: PaceSide::Below })
}

/// Returns a filter that gathers so many rows to a batch, and other operators as they are.
fn resized(node: Arc<dyn ExecutionPlan>, rows: usize) -> Result<Arc<dyn ExecutionPlan>> {
    Ok(match node.downcast_ref::<FilterExec>() {
        Some(filter) => Arc::new(filter.with_batch_size(rows)?),
        None => node,
    })
}

/// Returns how many rows a batch of the plan should have: `most`, or fewer where its scans read wide rows or it gathers
/// rows that it has made large.
pub(crate) fn batch_rows(plan: &Arc<dyn ExecutionPlan>, most: usize) -> usize {
    let rows = rows_of_scans(plan, most);
    if gathers_large_rows(plan, false) { rows.min(LARGE_ROWS) } else { rows }
}

/// Returns whether a projection below an operator that gathers rows can make them large.
fn gathers_large_rows(plan: &Arc<dyn ExecutionPlan>, is_gathered: bool) -> bool {
    let grows = plan
        .downcast_ref::<ProjectionExec>()
        .is_some_and(|projection| projection.expr().iter().any(|projected| can_grow(projected.expr.as_ref())));
    if is_gathered && (grows || grows_window_values(plan.as_ref())) {
        return true;
    }
    let is_gathered = is_gathered || !PASSING_OPERATORS.contains(&plan.name());
    plan.children().into_iter().any(|child| gathers_large_rows(child, is_gathered))
}

fn rows_of_scans(plan: &Arc<dyn ExecutionPlan>, most: usize) -> usize {
    let below = plan.children().into_iter().map(|child| rows_of_scans(child, most)).min().unwrap_or(most);
    let Some(scan) = plan.downcast_ref::<DataSourceExec>() else { return below };
    let rows = scan.partition_statistics(None).map_or(most, |statistics| rows_of_scan(&statistics, most));
    let grows = scan
        .data_source()
        .downcast_ref::<FileScanConfig>()
        .and_then(|config| config.file_source().projection())
        .is_some_and(|projection| projection.iter().any(|ProjectionExpr { expr, .. }| can_grow(expr.as_ref())));
    if grows { rows.min(LARGE_ROWS) } else { rows }
}

fn rows_of_scan(statistics: &Statistics, most: usize) -> usize {
    let (Some(rows), Some(bytes)) = (statistics.num_rows.get_value(), statistics.total_byte_size.get_value()) else {
        return most;
    };
    match bytes.checked_div(*rows) {
        Some(row_bytes) if row_bytes >= WIDE_ROW_BYTES => (SCANNED_BYTES / row_bytes).clamp(LEAST_ROWS, most),
        _ => most,
    }
}

/// Returns whether an expression can make a value that is larger than its arguments by any factor.
fn can_grow(expr: &dyn PhysicalExpr) -> bool {
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        return literal.value().size() > LONG_LITERAL_BYTES;
    }
    expr.downcast_ref::<ScalarFunctionExpr>().is_some_and(|called| GROWING_FUNCTIONS.contains(&called.name()))
        || expr.children().into_iter().any(|child| can_grow(child.as_ref()))
}

/// Whether an expression makes values of any length on its way to its result.
fn makes_values(expr: &dyn PhysicalExpr) -> bool {
    let makes = expr
        .downcast_ref::<ScalarFunctionExpr>()
        .is_some_and(|called| grows(called.name()) || !has_fixed_width(called.return_type()));
    makes || can_grow(expr) || expr.children().into_iter().any(|child| makes_values(child.as_ref()))
}

fn may_be_large(expr: &dyn PhysicalExpr, data_type: &DataType) -> bool {
    if expr.downcast_ref::<Column>().is_some() {
        return false;
    }
    if expr.downcast_ref::<Literal>().is_some() {
        return can_grow(expr);
    }
    // Also for a number: `length(repeat('x', n))` makes the string on its way.
    makes_values(expr) || !has_fixed_width(data_type)
}

/// Whether all values of a type take the same bytes.
pub(crate) fn has_fixed_width(data_type: &DataType) -> bool {
    data_type.is_primitive() || matches!(data_type, DataType::Null | DataType::Boolean)
}

/// Passes batches on, below and above a projection or below another operator.
#[derive(Debug)]
struct PacedExec {
    input: Arc<dyn ExecutionPlan>,
    paces: Arc<[Pace]>,
    side: PaceSide,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PaceSide {
    /// Below a projection: slices.
    Below,
    /// Above a projection: measures what it delivers and what was made on the way.
    Above,
    /// Below another operator: slices by what was made of the last slice.
    Alone,
}

/// How many rows an operator gets at a time, in one partition.
#[derive(Debug)]
struct Pace {
    /// Rows of the next slice.
    rows: AtomicUsize,
    /// Rows of the slice in hand.
    in_hand: AtomicUsize,
    /// The bytes of the largest values that were made of it.
    made: Arc<AtomicUsize>,
}

impl Pace {
    fn of_partitions(input: &Arc<dyn ExecutionPlan>) -> Arc<[Pace]> {
        let pace = |_| Pace {
            rows: AtomicUsize::new(FIRST_ROWS),
            in_hand: AtomicUsize::new(0),
            made: Arc::new(AtomicUsize::new(0)),
        };
        (0..input.output_partitioning().partition_count()).map(pace).collect()
    }

    /// Sets the rows of the next slice by what became of the last one; `delivered` are its bytes and rows, where known.
    fn measure(&self, delivered: Option<(usize, usize)>) {
        let sliced = self.in_hand.swap(0, Ordering::Relaxed);
        let made = self.made.swap(0, Ordering::Relaxed);
        if sliced == 0 && delivered.is_none() {
            return;
        }
        let mut fitting = usize::MAX;
        if let Some((bytes, rows)) = delivered
            && rows > 0
        {
            fitting = BATCH_BYTES / bytes.div_ceil(rows).max(1);
        }
        if sliced > 0 {
            fitting = fitting.min(MADE_BYTES / made.div_ceil(sliced).max(1));
        }
        let most = self.rows.load(Ordering::Relaxed).saturating_mul(GROWTH);
        self.rows.store(fitting.clamp(1, most), Ordering::Relaxed);
    }

    /// Takes note of the next slice, of which functions say what they make from now on.
    fn begin(&self, rows: usize) {
        self.in_hand.store(rows, Ordering::Relaxed);
        measure_with(&self.made);
    }
}

impl DisplayAs for PacedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.side {
            PaceSide::Below | PaceSide::Alone => write!(f, "PacedExec: slices"),
            PaceSide::Above => write!(f, "PacedExec: measures"),
        }
    }
}

impl ExecutionPlan for PacedExec {
    fn name(&self) -> &'static str {
        "PacedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match <[_; 1]>::try_from(children) {
            Ok([input]) => Ok(Arc::new(Self { input, paces: Arc::clone(&self.paces), side: self.side })),
            Err(_) => internal_err!("PacedExec has one child"),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let paces = Arc::clone(&self.paces);
        Ok(match self.side {
            PaceSide::Below => Box::pin(SlicedStream { input, rest: None, paces, partition, measures: false }),
            PaceSide::Alone => Box::pin(SlicedStream { input, rest: None, paces, partition, measures: true }),
            PaceSide::Above => Box::pin(MeasuredStream { input, paces, partition }),
        })
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        self.input.partition_statistics(partition)
    }
}

struct SlicedStream {
    input: SendableRecordBatchStream,
    rest: Option<RecordBatch>,
    paces: Arc<[Pace]>,
    partition: usize,
    /// Whether nobody above measures.
    measures: bool,
}

impl Stream for SlicedStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.measures
            && let Some(pace) = self.paces.get(self.partition)
        {
            pace.measure(None);
        }
        let batch = match self.rest.take() {
            Some(rest) => rest,
            None => match ready!(self.input.poll_next_unpin(cx)) {
                Some(Ok(batch)) => batch,
                other => return Poll::Ready(other),
            },
        };
        let paces = Arc::clone(&self.paces);
        let Some(pace) = paces.get(self.partition) else { return Poll::Ready(Some(Ok(batch))) };
        let rows = pace.rows.load(Ordering::Relaxed);
        if batch.num_rows() <= rows {
            pace.begin(batch.num_rows());
            return Poll::Ready(Some(Ok(batch)));
        }
        let first = batch.slice(0, rows);
        self.rest = Some(batch.slice(rows, batch.num_rows() - rows));
        pace.begin(rows);
        Poll::Ready(Some(Ok(first)))
    }
}

impl RecordBatchStream for SlicedStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

struct MeasuredStream {
    input: SendableRecordBatchStream,
    paces: Arc<[Pace]>,
    partition: usize,
}

impl Stream for MeasuredStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = ready!(self.input.poll_next_unpin(cx));
        if let Some(Ok(batch)) = &polled
            && batch.num_rows() > 0
            && let Some(pace) = self.paces.get(self.partition)
        {
            pace.measure(Some((batch_bytes(batch), batch.num_rows())));
        }
        Poll::Ready(polled)
    }
}

impl RecordBatchStream for MeasuredStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

/// Returns the bytes of a batch's own rows, whatever else their buffers hold.
pub(crate) fn batch_bytes(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(|column| array_bytes(column.as_ref())).sum()
}

/// Returns the bytes of an array's own values, as [`batch_bytes`].
pub(crate) fn array_bytes(array: &dyn Array) -> usize {
    match array.data_type() {
        DataType::Utf8View => 16 * array.len() + long_values(array.as_string_view().views()),
        DataType::BinaryView => 16 * array.len() + long_values(array.as_binary_view().views()),
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let offsets = list.value_offsets();
            let (from, to) = (offsets[0] as usize, offsets[list.len()] as usize);
            4 * list.len() + array_bytes(list.values().slice(from, to - from).as_ref())
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            let offsets = list.value_offsets();
            let (from, to) = (offsets[0] as usize, offsets[list.len()] as usize);
            8 * list.len() + array_bytes(list.values().slice(from, to - from).as_ref())
        }
        DataType::FixedSizeList(_, _) => array_bytes(array.as_fixed_size_list().values().as_ref()),
        DataType::Dictionary(_, _) => {
            let column = array.as_any_dictionary();
            // A dictionary is shared: of large ones a slice pays for as many values as it has rows.
            let values = column.values();
            let share = array_bytes(values.as_ref()).div_ceil(values.len().max(1)).saturating_mul(array.len());
            array_bytes(column.keys()) + share.min(array_bytes(values.as_ref()))
        }
        DataType::Map(_, _) => {
            let map = array.as_map();
            let offsets = map.value_offsets();
            let (from, to) = (offsets[0] as usize, offsets[map.len()] as usize);
            4 * map.len() + array_bytes(&map.entries().slice(from, to - from))
        }
        DataType::Struct(_) => array.as_struct().columns().iter().map(|column| array_bytes(column.as_ref())).sum(),
        // Their children are not cut with them, so what a slice has of these is a guess.
        DataType::Union(_, _) | DataType::RunEndEncoded(_, _) | DataType::ListView(_) | DataType::LargeListView(_) => {
            GUESSED_BYTES * array.len()
        }
        _ => array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size()),
    }
}

/// Returns the bytes that views keep outside of themselves.
fn long_values(views: &[u128]) -> usize {
    const INLINE_BYTES: u32 = 12;
    let lengths = views.iter().map(|view| ByteView::from(*view).length);
    lengths.filter(|length| *length > INLINE_BYTES).map(|length| length as usize).sum()
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, DictionaryArray, ListArray, StringViewArray};
    use arrow::datatypes::Int32Type;

    use super::*;

    #[test]
    fn the_bytes_of_a_slice_are_its_rows() {
        let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..100).map(|_| "x".repeat(1_000))));
        let batch = RecordBatch::try_from_iter([("s", texts)]).unwrap();
        assert_eq!(batch_bytes(&batch), 100 * 1_016);
        assert_eq!(batch_bytes(&batch.slice(10, 7)), 7 * 1_016);
        let texts: Vec<String> = (0..1_000).map(|row| format!("{row:0>1000}")).collect();
        let words: DictionaryArray<Int32Type> = texts.iter().map(String::as_str).collect();
        assert!(array_bytes(&words) > 1_000_000);
        assert!(array_bytes(&words.slice(0, 10)) < 20_000);
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>((0..10).map(|_| Some(vec![Some(1); 100])));
        assert_eq!(array_bytes(&lists.slice(3, 2)), 2 * (4 + 400));
    }

    #[test]
    fn wide_rows_make_small_batches() {
        let statistics = |rows, bytes| Statistics {
            num_rows: datafusion::common::stats::Precision::Inexact(rows),
            total_byte_size: datafusion::common::stats::Precision::Inexact(bytes),
            column_statistics: Vec::new(),
        };
        assert_eq!(rows_of_scan(&statistics(1_000, 100_000_000), 8_192), 83);
        assert_eq!(rows_of_scan(&statistics(1_000_000, 100_000_000), 8_192), 8_192);
        assert_eq!(rows_of_scan(&statistics(0, 0), 8_192), 8_192);
    }
}
