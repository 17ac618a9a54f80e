//! An input that an operator executes more than once. A join by nested loops whose left side does not fit in memory
//! executes that side again, to spill it; exchanges below it give each partition once, and panic when they are asked
//! again. So what is executed again is the plan in its first state.
//!
//! Invariant: a plan with dynamic filters is not executed again. Its scans keep what the first execution found, such as
//! the last of the first rows, and would leave out rows (DataFusion 54, `reset_plan_states`); the join is refused.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::{Statistics, internal_err, resources_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use datafusion_distributed::NetworkBoundaryExt;

/// Returns an input of one partition that can be executed again; one that other servers compute stays as it is.
pub(super) fn restartable(input: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let is_restartable = input.is::<RestartableExec>()
        || input.output_partitioning().partition_count() != 1
        || reads_other_servers(input.as_ref());
    if is_restartable {
        return Arc::clone(input);
    }
    Arc::new(RestartableExec { input: Arc::clone(input), was_executed: AtomicBool::new(false) })
}

fn reads_other_servers(plan: &dyn ExecutionPlan) -> bool {
    plan.is_network_boundary() || plan.children().into_iter().any(|input| reads_other_servers(input.as_ref()))
}

/// Whether an operator in a plan tells the scans below what it needs, of what it has read so far.
fn has_dynamic_filter(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<SortExec>().is_some_and(|sort| sort.dynamic_filter_expr().is_some())
        || plan.downcast_ref::<AggregateExec>().is_some_and(|groups| groups.dynamic_filter_expr().is_some())
        || plan.downcast_ref::<HashJoinExec>().is_some_and(|join| join.dynamic_filter_expr().is_some())
        || plan.children().into_iter().any(has_dynamic_filter)
}

#[derive(Debug)]
struct RestartableExec {
    input: Arc<dyn ExecutionPlan>,
    was_executed: AtomicBool,
}

impl DisplayAs for RestartableExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RestartableExec")
    }
}

impl ExecutionPlan for RestartableExec {
    fn name(&self) -> &'static str {
        "RestartableExec"
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
            Ok([input]) => Ok(Arc::new(Self { input, was_executed: AtomicBool::new(false) })),
            Err(_) => internal_err!("RestartableExec has one child"),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if self.was_executed.swap(true, Ordering::Relaxed) {
            if has_dynamic_filter(&self.input) {
                return resources_err!(
                    "the rows of one side of a join by a comparison do not fit in memory, and are not computed again"
                );
            }
            return reset_plan_states(Arc::clone(&self.input))?.execute(partition, context);
        }
        self.input.execute(partition, context)
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        self.input.partition_statistics(partition)
    }
}
