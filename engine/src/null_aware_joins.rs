//! `NOT IN` and the filters that joins find out. A single NULL in the subquery leaves no row, so the join has to see it; but the
//! filter that DataFusion makes of the other side's keys lets no NULL pass, and row groups or rows with one would be left out.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;

/// Takes the filters from joins that look for NULLs: scans that were given one find that it never says anything. It comes after
/// the rule that hands them out.
#[derive(Debug)]
pub(crate) struct KeepNullsOfAntiJoins;

impl PhysicalOptimizerRule for KeepNullsOfAntiJoins {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let without = |node: Arc<dyn ExecutionPlan>| {
            let join = node.downcast_ref::<HashJoinExec>();
            Ok(match join.filter(|join| join.null_aware && join.dynamic_filter_expr().is_some()) {
                Some(join) => Transformed::yes(join.builder().reset_state().build_exec()?),
                None => Transformed::no(node),
            })
        };
        plan.transform_up(without).data()
    }

    fn name(&self) -> &str {
        "keep_nulls_of_anti_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
