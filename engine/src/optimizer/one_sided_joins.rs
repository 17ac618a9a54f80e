//! Joins that give the columns of one side, and projections above them. Where DataFusion 54 moves a projection below a join, it
//! takes columns for those of the left side by their number alone. A right semi-join or anti-join has none of that side, and the
//! mark of a mark join is on neither: the statement then fails, or has other rows where both sides have a column of the same name.
//! From such joins nothing is moved below; they leave out the columns themselves.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::projection::{ProjectionExec, try_embed_projection};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

/// DataFusion's rule that moves projections down, which does not see such joins.
#[derive(Debug)]
pub(crate) struct KeepOneSidedJoins {
    pub(crate) inner: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
}

impl PhysicalOptimizerRule for KeepOneSidedJoins {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let hidden = |node: Arc<dyn ExecutionPlan>| {
            Ok(match is_one_sided(&node) {
                true => Transformed::yes(Arc::new(HiddenJoin { join: node }) as Arc<dyn ExecutionPlan>),
                false => Transformed::no(node),
            })
        };
        let plan = self.inner.optimize(plan.transform_up(hidden).data()?, config)?;
        plan.transform_up(shown).data()
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn schema_check(&self) -> bool {
        self.inner.schema_check()
    }
}

/// Returns whether a plan is a join whose columns are not those of its sides, one after the other.
fn is_one_sided(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let (join_type, is_whole) = if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        (*join.join_type(), !join.contains_projection())
    } else if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        (*join.join_type(), !join.contains_projection())
    } else {
        return false;
    };
    let types = [JoinType::RightSemi, JoinType::RightAnti, JoinType::LeftMark, JoinType::RightMark];
    is_whole && types.contains(&join_type)
}

/// Returns the join of one that is hidden, and a join in place of the projection above it where that does nothing but leave out
/// columns.
fn shown(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    if let Some(hidden) = node.downcast_ref::<HiddenJoin>() {
        return Ok(Transformed::yes(Arc::clone(&hidden.join)));
    }
    let Some(projection) = node.downcast_ref::<ProjectionExec>() else { return Ok(Transformed::no(node)) };
    let input = projection.input();
    if !is_one_sided(input) {
        return Ok(Transformed::no(node));
    }
    let narrowed = if let Some(join) = input.downcast_ref::<HashJoinExec>() {
        try_embed_projection(projection, join)?
    } else if let Some(join) = input.downcast_ref::<NestedLoopJoinExec>() {
        try_embed_projection(projection, join)?
    } else {
        None
    };
    Ok(match narrowed {
        Some(narrowed) => Transformed::yes(narrowed),
        None => Transformed::no(node),
    })
}

/// Stands for a join through which nothing is moved. No plan has one once the rule is done.
#[derive(Debug)]
struct HiddenJoin {
    join: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for HiddenJoin {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "HiddenJoin")
    }
}

impl ExecutionPlan for HiddenJoin {
    fn name(&self) -> &'static str {
        "HiddenJoin"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.join.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.join]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(join), true) => Ok(Arc::new(Self { join })),
            _ => internal_err!("a hidden join is one join"),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.join.execute(partition, context)
    }
}
