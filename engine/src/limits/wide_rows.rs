//! Rows that are too large to be gathered. A join, a sort or a filter copies as many rows into one batch as a batch has, by a
//! number that is fixed before anybody has seen a row: of texts of a hundred megabytes, 256 rows are 25 GB in one allocation.
//! Where a plan makes such rows itself, they are looked at before they are gathered.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use futures::{Stream, StreamExt};

use super::input_watch::{InputWatch, WatchedInputExec};
use super::row_pace::batch_bytes;
use super::usage::QueryUsage;
use crate::error::EngineError;

/// What may be gathered at once where nobody says how much memory there is.
const DEFAULT_BYTES: usize = 1 << 30;

/// Returns an input of an operator that gathers rows, which fails where its rows are too large for that.
pub(crate) fn checked_width(input: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    WatchedInputExec::of_input(input, CheckWidth)
}

/// Returns whether an operator is a [`checked_width`].
pub(crate) fn is_checked_width(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.is::<WatchedInputExec<CheckWidth>>()
}

#[derive(Clone)]
struct CheckWidth;

impl InputWatch for CheckWidth {
    const NAME: &'static str = "RowWidthExec";

    fn watched(&self, input: SendableRecordBatchStream, context: &TaskContext) -> SendableRecordBatchStream {
        let rows = context.session_config().batch_size();
        let most_bytes = QueryUsage::current().map_or(DEFAULT_BYTES, |usage| usage.limit().gathered_bytes());
        Box::pin(RowWidthStream { input, rows, most_bytes })
    }
}

struct RowWidthStream {
    input: SendableRecordBatchStream,
    /// The rows that are gathered at once.
    rows: usize,
    most_bytes: usize,
}

impl Stream for RowWidthStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.input.poll_next_unpin(cx);
        if let Poll::Ready(Some(Ok(batch))) = &polled
            && let Some(width) = batch_bytes(batch).checked_div(batch.num_rows())
            && width.saturating_mul(self.rows) > self.most_bytes
        {
            let detail = format!("{} rows of {} MiB each, which it gathers", self.rows, width >> 20);
            return Poll::Ready(Some(Err(EngineError::MemoryExceeded { detail }.into())));
        }
        polled
    }
}

impl RecordBatchStream for RowWidthStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
