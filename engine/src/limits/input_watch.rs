//! An operator that passes its one input on, and sees every batch of it: what the bounds on rows have in common.

use std::fmt;
use std::sync::Arc;

use datafusion::common::{Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

/// What is done with an input's batches. The rows, their columns and their order stay as they are.
pub(super) trait InputWatch: Clone + Send + Sync + 'static {
    /// The operator's name in plans.
    const NAME: &'static str;

    /// Returns one partition's batches, watched.
    fn watched(&self, input: SendableRecordBatchStream, context: &TaskContext) -> SendableRecordBatchStream;
}

/// The operator of a watch.
pub(super) struct WatchedInputExec<W> {
    input: Arc<dyn ExecutionPlan>,
    watch: W,
}

impl<W: InputWatch> WatchedInputExec<W> {
    pub(super) fn of_input(input: &Arc<dyn ExecutionPlan>, watch: W) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self { input: Arc::clone(input), watch })
    }
}

impl<W: InputWatch> fmt::Debug for WatchedInputExec<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(W::NAME)
    }
}

impl<W: InputWatch> DisplayAs for WatchedInputExec<W> {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(W::NAME)
    }
}

impl<W: InputWatch> ExecutionPlan for WatchedInputExec<W> {
    fn name(&self) -> &'static str {
        W::NAME
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
            Ok([input]) => Ok(Arc::new(Self { input, watch: self.watch.clone() })),
            Err(_) => internal_err!("{} has one child", W::NAME),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, Arc::clone(&context))?;
        Ok(self.watch.watched(input, &context))
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        self.input.partition_statistics(partition)
    }
}
