//! Queries that can be stopped between two yields.
//!
//! DataFusion cancels where a stream yields, and only its leaves and exchanges yield. A join that makes a thousand
//! million rows of one batch, or rejects almost all of them, would hold its thread: nothing would check its deadline, and
//! dropping its stream would not stop it. So DataFusion's own cooperative node is put above operators that multiply rows,
//! and a join's filter, which its inner loop evaluates for every batch of candidates, checks the interrupt.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder, SortMergeJoinExec,
};
use datafusion::physical_plan::{ExecutionPlan, with_new_children_if_necessary};
use datafusion_distributed::NetworkBoundaryExt;

use super::clock::QueryClock;
use super::gathered_side::with_gathered_side;
use super::restartable::restartable;

/// When a query has to end: once nobody waits for it any more, or once its time is over.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt {
    abandoned: Arc<AtomicBool>,
    clock: QueryClock,
}

impl Interrupt {
    /// Interrupts once the time of `clock` is over.
    pub(crate) fn new(clock: QueryClock) -> Self {
        Self { abandoned: Arc::default(), clock }
    }

    /// The same, and once `abandoned` is set by whoever knows that nobody waits.
    pub(crate) fn abandoned_by(clock: QueryClock, abandoned: Arc<AtomicBool>) -> Self {
        Self { abandoned, clock }
    }

    /// Returns the clock of the query.
    pub(crate) fn clock(&self) -> &QueryClock {
        &self.clock
    }

    /// Returns the plan with operators that check for cancellation and filters that check the interrupt.
    pub(crate) fn instrument(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        self.instrumented(plan, true)
    }

    /// As [`Interrupt::instrument`]; below `is_here` the plan is sent to workers, whose own interrupts are checked there.
    fn instrumented(&self, plan: Arc<dyn ExecutionPlan>, is_here: bool) -> Result<Arc<dyn ExecutionPlan>> {
        let are_inputs_here = is_here && !plan.as_ref().is_network_boundary();
        let inputs: Vec<Arc<dyn ExecutionPlan>> = plan.children().into_iter().map(Arc::clone).collect();
        let inputs = inputs.into_iter().map(|input| self.instrumented(input, are_inputs_here));
        let node = with_new_children_if_necessary(Arc::clone(&plan), inputs.collect::<Result<_>>()?)?;
        if !multiplies_rows(node.as_ref()) {
            return Ok(node);
        }
        let watched = if is_here { with_gathered_side(self.with_checked_filter(node)?)? } else { node };
        Ok(Arc::new(CooperativeExec::new(watched)))
    }

    /// Returns the plan of a task with filters that check this interrupt. Its operators stay as they are.
    pub(crate) fn check_filters(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| self.with_checked_filter(node).map(Transformed::yes)).data()
    }

    fn with_checked_filter(&self, node: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
            let filter = join.filter().map(|filter| self.interruptible_filter(filter));
            let watched = Arc::new(NestedLoopJoinExecBuilder::from(join).with_filter(filter).build()?);
            let inputs = vec![restartable(join.left()), Arc::clone(join.right())];
            return watched.with_new_children(inputs);
        }
        if let Some(join) = node.downcast_ref::<HashJoinExec>() {
            let filter = join.filter().map(|filter| self.interruptible_filter(filter));
            return join.builder().with_filter(filter).build_exec();
        }
        if let Some(join) = node.downcast_ref::<SortMergeJoinExec>() {
            let mut watched = join.clone();
            watched.filter = join.filter.as_ref().map(|filter| self.interruptible_filter(filter));
            return Ok(Arc::new(watched));
        }
        Ok(node)
    }

    /// Returns a guard for whoever waits for the work, which is interrupted when the guard is dropped.
    pub(crate) fn abandon_on_drop(&self) -> AbandonOnDrop {
        AbandonOnDrop(Arc::clone(&self.abandoned))
    }

    fn interruptible_filter(&self, filter: &JoinFilter) -> JoinFilter {
        let expression =
            Arc::new(InterruptibleExpr { inner: Arc::clone(filter.expression()), interrupt: self.clone() });
        JoinFilter::new(expression, filter.column_indices().to_vec(), Arc::clone(filter.schema()))
    }

    /// Returns an error once the query has to end: `wall_clock_exceeded`, also where nobody waits any more.
    pub(crate) fn check(&self) -> Result<()> {
        if self.abandoned.load(Ordering::Relaxed) || self.clock.is_over() {
            return Err(self.clock.exceeded().into());
        }
        Ok(())
    }
}

/// Interrupts a query's work when it is dropped. The work may be on other threads, in the middle of a join that never yields.
#[derive(Debug)]
pub(crate) struct AbandonOnDrop(Arc<AtomicBool>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns whether an operator can make many rows of few. Joins and recursions have several inputs; unnesting has one.
fn multiplies_rows(node: &dyn ExecutionPlan) -> bool {
    node.children().len() > 1 || node.name() == "UnnestExec"
}

/// A join's filter that fails once the query has to end.
#[derive(Debug)]
struct InterruptibleExpr {
    inner: Arc<dyn PhysicalExpr>,
    interrupt: Interrupt,
}

impl PartialEq for InterruptibleExpr {
    fn eq(&self, other: &Self) -> bool {
        self.inner.as_ref() == other.inner.as_ref()
    }
}

impl Eq for InterruptibleExpr {}

impl Hash for InterruptibleExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.as_ref().hash(state);
    }
}

impl fmt::Display for InterruptibleExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PhysicalExpr for InterruptibleExpr {
    fn data_type(&self, input_schema: &Schema) -> Result<DataType> {
        self.inner.data_type(input_schema)
    }

    fn nullable(&self, input_schema: &Schema) -> Result<bool> {
        self.inner.nullable(input_schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.interrupt.check()?;
        self.inner.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let inner = children.into_iter().next().unwrap_or_else(|| Arc::clone(&self.inner));
        Ok(Arc::new(Self { inner, interrupt: self.interrupt.clone() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}
