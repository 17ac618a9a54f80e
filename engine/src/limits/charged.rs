//! Aggregates that keep the text of their rows and do not say how much: what they read is charged to the query's memory for
//! them, until they have ended.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use futures::{Stream, StreamExt};

use super::input_watch::{InputWatch, WatchedInputExec};
use super::row_pace::batch_bytes;

/// The aggregates.
const KEEPING: [&str; 3] = ["string_agg", "listagg", "group_concat"];

/// Returns the operator, with its input charged where it has such an aggregate.
pub(super) fn charged_input(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let keeps = node
        .downcast_ref::<AggregateExec>()
        .is_some_and(|aggregate| aggregate.aggr_expr().iter().any(|function| KEEPING.contains(&function.fun().name())));
    if !keeps {
        return Ok(Transformed::no(node));
    }
    let inputs = node.children().into_iter().map(|input| WatchedInputExec::of_input(input, ChargeText)).collect();
    node.with_new_children(inputs).map(Transformed::yes)
}

/// Returns whether an operator charges its input so.
pub(crate) fn is_charged(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.is::<WatchedInputExec<ChargeText>>()
}

/// Returns an input, charged.
pub(crate) fn charged_again(input: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    WatchedInputExec::of_input(input, ChargeText)
}

#[derive(Clone)]
struct ChargeText;

impl InputWatch for ChargeText {
    const NAME: &'static str = "ChargedExec";

    fn watched(&self, input: SendableRecordBatchStream, context: &TaskContext) -> SendableRecordBatchStream {
        let held = MemoryConsumer::new("text of an aggregate").register(context.memory_pool());
        Box::pin(ChargedStream { input, held })
    }
}

struct ChargedStream {
    input: SendableRecordBatchStream,
    held: MemoryReservation,
}

impl Stream for ChargedStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.input.poll_next_unpin(cx);
        if let Poll::Ready(Some(Ok(batch))) = &polled
            && let Err(error) = self.held.try_grow(batch_bytes(batch))
        {
            return Poll::Ready(Some(Err(error)));
        }
        polled
    }
}

impl RecordBatchStream for ChargedStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
