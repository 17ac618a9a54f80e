//! Rows that unnesting makes, within bounds. DataFusion unnests a batch at once and repeats the other columns for every
//! element: one row with a list of a hundred thousand elements beside another such list would be 80 GB in one allocation.
//! So its input comes in slices, and a row whose list alone is too long comes as several rows with a part of the list each.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow::array::{Array, ArrayRef, AsArray, GenericListArray, OffsetSizeTrait, RecordBatch};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::unnest::{ListUnnest, UnnestExec};
use futures::{Stream, StreamExt};

use super::input_watch::{InputWatch, WatchedInputExec};
use super::row_pace::{BATCH_BYTES, array_bytes};
use crate::error::EngineError;

/// The most rows that one slice becomes, where its rows can be told apart.
const UNNESTED_ROWS: usize = 16_384;
/// The most bytes that the other columns of one slice become.
const UNNESTED_BYTES: usize = 8 * BATCH_BYTES;
/// The most that one row may become where its list cannot be taken apart.
const MAX_BYTES: usize = 256 << 20;

/// Returns the plan whose unnesting operators get their input in slices.
pub(crate) fn pace_unnests(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        let Some(unnest) = node.downcast_ref::<UnnestExec>() else { return Ok(Transformed::no(node)) };
        let lists = unnest.list_column_indices().to_vec();
        if lists.is_empty() {
            return Ok(Transformed::no(node));
        }
        let paced = WatchedInputExec::of_input(unnest.input(), PaceUnnest(Arc::from(lists)));
        node.with_new_children(vec![paced]).map(Transformed::yes)
    })
    .data()
}

/// Slices an input by the lists in these columns.
#[derive(Clone)]
struct PaceUnnest(Arc<[ListUnnest]>);

impl InputWatch for PaceUnnest {
    const NAME: &'static str = "UnnestPaceExec";

    fn watched(&self, input: SendableRecordBatchStream, _context: &TaskContext) -> SendableRecordBatchStream {
        Box::pin(PacedUnnestStream { input, lists: Arc::clone(&self.0), rest: None })
    }
}

struct PacedUnnestStream {
    input: SendableRecordBatchStream,
    lists: Arc<[ListUnnest]>,
    rest: Option<Rest>,
}

/// What is left of a batch: rows from `row` on, and of that row the elements from `element` on.
struct Rest {
    batch: RecordBatch,
    row: usize,
    element: usize,
    /// The bytes of the columns that are repeated, of an average row.
    width: usize,
}

impl Stream for PacedUnnestStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(mut rest) = self.rest.take() {
                match rest.next(&self.lists) {
                    Ok(Some(slice)) => {
                        self.rest = Some(rest);
                        return Poll::Ready(Some(Ok(slice)));
                    }
                    Ok(None) => {}
                    Err(error) => return Poll::Ready(Some(Err(error))),
                }
            }
            match ready!(self.input.poll_next_unpin(cx)) {
                Some(Ok(batch)) if batch.num_rows() == 0 => return Poll::Ready(Some(Ok(batch))),
                Some(Ok(batch)) => {
                    let width = repeated_bytes(&batch, &self.lists).div_ceil(batch.num_rows());
                    self.rest = Some(Rest { batch, row: 0, element: 0, width });
                }
                other => return Poll::Ready(other),
            }
        }
    }
}

impl RecordBatchStream for PacedUnnestStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

impl Rest {
    fn next(&mut self, lists: &[ListUnnest]) -> Result<Option<RecordBatch>> {
        let rows = self.batch.num_rows();
        if self.row >= rows {
            return Ok(None);
        }
        let mut unnested = 0;
        let mut until = self.row;
        if self.element == 0 {
            while until < rows {
                let more = self.unnested_rows(until, lists);
                let all = unnested + more;
                if all > UNNESTED_ROWS || all.saturating_mul(self.width) > UNNESTED_BYTES {
                    break;
                }
                unnested = all;
                until += 1;
            }
        }
        if until > self.row {
            let slice = self.batch.slice(self.row, until - self.row);
            self.row = until;
            return Ok(Some(slice));
        }
        self.part_of_row(lists).map(Some)
    }

    /// Returns the next part of a row that is too much at once.
    fn part_of_row(&mut self, lists: &[ListUnnest]) -> Result<RecordBatch> {
        let row = self.batch.slice(self.row, 1);
        let width = repeated_bytes(&row, lists);
        let count = self.unnested_rows(self.row, lists);
        if !lists.iter().all(|list| list.depth == 1 && can_be_cut(row.column(list.index_in_input_schema).data_type())) {
            let bytes = width.saturating_mul(count);
            if bytes > MAX_BYTES || count > MAX_BYTES {
                let detail = format!("unnesting one row makes {} MiB", bytes.max(count) >> 20);
                return Err(EngineError::MemoryExceeded { detail }.into());
            }
            self.row += 1;
            return Ok(row);
        }
        let step = (UNNESTED_BYTES / width.max(1)).clamp(1, UNNESTED_ROWS);
        let range = self.element..self.element.saturating_add(step).min(count.max(1));
        let mut columns = row.columns().to_vec();
        for list in lists {
            if let Some(column) = columns.get_mut(list.index_in_input_schema) {
                *column = part_of_list(column, &range);
            }
        }
        self.element = range.end;
        if self.element >= count {
            self.row += 1;
            self.element = 0;
        }
        Ok(RecordBatch::try_new(row.schema(), columns)?)
    }

    fn unnested_rows(&self, row: usize, lists: &[ListUnnest]) -> usize {
        let count = |list: &ListUnnest| {
            elements(self.batch.column(list.index_in_input_schema).slice(row, 1).as_ref(), list.depth)
        };
        lists.iter().map(count).max().unwrap_or(1).max(1)
    }
}

/// Returns how many elements an array's lists have together, so many levels down.
fn elements(array: &dyn Array, depth: usize) -> usize {
    if depth == 0 {
        return array.len();
    }
    let values = match array.data_type() {
        DataType::List(_) => values_of(array.as_list::<i32>()),
        DataType::LargeList(_) => values_of(array.as_list::<i64>()),
        DataType::FixedSizeList(_, _) => Arc::clone(array.as_fixed_size_list().values()),
        // Views of lists may name the same elements more than once.
        DataType::ListView(_) => return array.as_list_view::<i32>().sizes().iter().map(|size| *size as usize).sum(),
        DataType::LargeListView(_) => {
            return array.as_list_view::<i64>().sizes().iter().map(|size| *size as usize).sum();
        }
        _ => return array.len(),
    };
    elements(values.as_ref(), depth - 1)
}

fn values_of<O: OffsetSizeTrait>(lists: &GenericListArray<O>) -> ArrayRef {
    let offsets = lists.value_offsets();
    match offsets {
        [first, .., last] => lists.values().slice(first.as_usize(), last.as_usize() - first.as_usize()),
        _ => lists.values().slice(0, 0),
    }
}

fn repeated_bytes(batch: &RecordBatch, lists: &[ListUnnest]) -> usize {
    let is_list = |at: usize| lists.iter().any(|list| list.index_in_input_schema == at);
    let others = batch.columns().iter().enumerate().filter(|(at, _)| !is_list(*at));
    others.map(|(_, column)| array_bytes(column.as_ref())).sum()
}

fn can_be_cut(data_type: &DataType) -> bool {
    matches!(data_type, DataType::List(_) | DataType::LargeList(_))
}

/// Returns an array of one list, which has the elements in `range` of the one list that `array` has.
fn part_of_list(array: &ArrayRef, range: &Range<usize>) -> ArrayRef {
    match array.data_type() {
        DataType::List(_) => cut(array.as_list::<i32>(), range),
        DataType::LargeList(_) => cut(array.as_list::<i64>(), range),
        _ => Arc::clone(array),
    }
}

fn cut<O: OffsetSizeTrait>(lists: &GenericListArray<O>, range: &Range<usize>) -> ArrayRef {
    if lists.is_null(0) && range.start == 0 {
        return Arc::new(lists.clone());
    }
    let values = if lists.is_null(0) { lists.values().slice(0, 0) } else { lists.value(0) };
    let from = range.start.min(values.len());
    let part = values.slice(from, range.end.min(values.len()) - from);
    let field = match lists.data_type() {
        DataType::List(field) | DataType::LargeList(field) => Arc::clone(field),
        _ => return Arc::new(lists.clone()),
    };
    Arc::new(GenericListArray::<O>::new(field, OffsetBuffer::from_lengths([part.len()]), part, None))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, ListArray};
    use arrow::datatypes::{Field, Int64Type, Schema};

    use super::*;

    #[test]
    fn long_lists_come_in_parts() {
        let list = |count: i64| Some((0..count).map(Some).collect::<Vec<_>>());
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>([list(3), list(50_000), None, list(0), list(2)]);
        let others = Int64Array::from_iter_values(0..5);
        let schema = Schema::new(vec![
            Field::new("l", lists.data_type().clone(), true),
            Field::new("o", DataType::Int64, false),
        ]);
        let batch = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(lists), Arc::new(others)]).unwrap();
        let lists = [ListUnnest { index_in_input_schema: 0, depth: 1 }];
        let mut rest = Rest { batch, row: 0, element: 0, width: 8 };
        let mut seen = Vec::new();
        while let Some(slice) = rest.next(&lists).unwrap() {
            let others = slice.column(1).as_primitive::<Int64Type>();
            for row in 0..slice.num_rows() {
                let column = slice.column(0).as_list::<i32>();
                seen.push((others.value(row), if column.is_null(row) { None } else { Some(column.value(row).len()) }));
            }
        }
        let (parts, whole): (Vec<_>, Vec<_>) = seen.into_iter().partition(|(row, _)| *row == 1);
        assert_eq!(whole, [(0, Some(3)), (2, None), (3, Some(0)), (4, Some(2))]);
        assert_eq!(parts.iter().map(|(_, length)| length.unwrap()).sum::<usize>(), 50_000);
        assert!(parts.len() > 2 && parts.iter().all(|(_, length)| length.unwrap() <= UNNESTED_ROWS));
    }
}
