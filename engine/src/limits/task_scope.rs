//! The plan of a task that other servers ask for rows. Its operators are polled by whatever thread answers them, so the plan
//! itself says which query they work for. The task's clock stands still while nobody asks: its query waits for its reader then.
//!
//! Invariant: the plan keeps its shape. datafusion-distributed counts operators in the order of the plan, and knows those at
//! its head by their types.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::Statistics;
use datafusion::error::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, with_new_children_if_necessary,
};
use datafusion_distributed::NetworkBoundaryExt;
use futures::{Stream, StreamExt};
use parking_lot::Mutex;

use super::clock::QueryClock;
use super::usage::QueryUsage;
use crate::error::told_to_others;

/// Operators at a plan's head that are known by their types. They compute nothing of their own.
const HEADS: [&str; 4] = ["RepartitionExec", "BroadcastExec", "ChildrenIsolatorUnionExec", "SamplerExec"];

/// Returns the plan of a task, whose operators work for a query.
pub(crate) fn in_query(plan: Arc<dyn ExecutionPlan>, usage: &Arc<QueryUsage>) -> Result<Arc<dyn ExecutionPlan>> {
    scoped(plan, usage, &Arc::default())
}

fn scoped(
    plan: Arc<dyn ExecutionPlan>,
    usage: &Arc<QueryUsage>,
    asked: &Arc<AskedStreams>,
) -> Result<Arc<dyn ExecutionPlan>> {
    // What other servers compute is theirs.
    if plan.as_ref().is_network_boundary() {
        return Ok(plan);
    }
    if !HEADS.contains(&plan.name()) {
        return Ok(Arc::new(TaskScopeExec { operator: plan, usage: Arc::clone(usage), asked: Arc::clone(asked) }));
    }
    let inputs: Vec<Arc<dyn ExecutionPlan>> = plan.children().into_iter().map(Arc::clone).collect();
    let inputs = inputs.into_iter().map(|input| scoped(input, usage, asked)).collect::<Result<_>>()?;
    with_new_children_if_necessary(plan, inputs)
}

/// How many streams of a task are asked for rows now.
#[derive(Debug, Default)]
struct AskedStreams(Mutex<usize>);

impl AskedStreams {
    fn begin(&self, clock: &QueryClock) {
        let mut asked = self.0.lock();
        *asked += 1;
        clock.resume();
    }

    fn end(&self, clock: &QueryClock) {
        let mut asked = self.0.lock();
        *asked = asked.saturating_sub(1);
        if *asked == 0 {
            clock.stop();
        }
    }
}

/// An operator, in its place, that works for a query whoever asks for its rows.
struct TaskScopeExec {
    operator: Arc<dyn ExecutionPlan>,
    usage: Arc<QueryUsage>,
    asked: Arc<AskedStreams>,
}

impl fmt::Debug for TaskScopeExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.operator.fmt(f)
    }
}

impl DisplayAs for TaskScopeExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.operator.fmt_as(format, f)
    }
}

impl ExecutionPlan for TaskScopeExec {
    fn name(&self) -> &str {
        self.operator.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.operator.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.operator.maintains_input_order()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.operator.children()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let operator = Arc::clone(&self.operator).with_new_children(children)?;
        Ok(Arc::new(Self { operator, usage: Arc::clone(&self.usage), asked: Arc::clone(&self.asked) }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let _entered = self.usage.enter();
        let rows = self.operator.execute(partition, context).map_err(told_to_others)?;
        let (usage, asked) = (Arc::clone(&self.usage), Arc::clone(&self.asked));
        Ok(Box::pin(TaskScopeStream { rows, usage, asked, is_asked: false }))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.operator.metrics()
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        self.operator.partition_statistics(partition)
    }
}

struct TaskScopeStream {
    rows: SendableRecordBatchStream,
    usage: Arc<QueryUsage>,
    asked: Arc<AskedStreams>,
    /// Whether it was asked for rows and has yet to give them.
    is_asked: bool,
}

impl Stream for TaskScopeStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if !this.is_asked {
            this.is_asked = true;
            this.asked.begin(this.usage.clock());
        }
        let _entered = this.usage.enter();
        let polled = this.rows.poll_next_unpin(cx);
        if polled.is_ready() {
            this.is_asked = false;
            this.asked.end(this.usage.clock());
        }
        polled.map_err(told_to_others)
    }
}

impl RecordBatchStream for TaskScopeStream {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}

impl Drop for TaskScopeStream {
    fn drop(&mut self) {
        if self.is_asked {
            self.asked.end(self.usage.clock());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_clock_stands_still_while_no_stream_is_asked() {
        let clock = QueryClock::start(Duration::from_secs(60));
        let asked = AskedStreams::default();
        asked.begin(&clock);
        asked.begin(&clock);
        asked.end(&clock);
        assert!(clock.deadline().is_some(), "another one is asked");
        asked.end(&clock);
        assert_eq!(clock.deadline(), None);
        asked.begin(&clock);
        assert!(clock.deadline().is_some());
    }
}
