//! Aggregates that keep the text of their rows and do not say how much: what they read is charged to the query's memory for
//! them, until they have ended.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{Stream, StreamExt};

use super::row_pace::batch_bytes;

/// The aggregates.
const KEEPING: [&str; 3] = ["string_agg", "listagg", "group_concat"];

/// Returns the operator, with its input charged where it has such an aggregate.
pub(super) fn charged_input(node: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let keeps = node
        .downcast_ref::<AggregateExec>()
        .is_some_and(|aggregate| aggregate.aggr_expr().iter().any(|function| KEEPING.contains(&function.fun().name())));
    if !keeps {
        return Ok(node);
    }
    let charged = |input: &Arc<dyn ExecutionPlan>| Arc::new(ChargedExec { input: Arc::clone(input) }) as _;
    let inputs = node.children().into_iter().map(charged).collect();
    node.with_new_children(inputs)
}

struct ChargedExec {
    input: Arc<dyn ExecutionPlan>,
}

impl fmt::Debug for ChargedExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChargedExec")
    }
}

impl DisplayAs for ChargedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChargedExec")
    }
}

impl ExecutionPlan for ChargedExec {
    fn name(&self) -> &'static str {
        "ChargedExec"
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
            Ok([input]) => Ok(Arc::new(Self { input })),
            Err(_) => internal_err!("ChargedExec has one child"),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let held = MemoryConsumer::new("text of an aggregate").register(context.memory_pool());
        let input = self.input.execute(partition, context)?;
        Ok(Box::pin(ChargedStream { input, held }))
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
