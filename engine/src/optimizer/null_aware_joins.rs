//! Joins in which a NULL counts, and the filters that joins find out. A single NULL in the subquery of `NOT IN` leaves no row,
//! and `IS NOT DISTINCT FROM`, INTERSECT and EXCEPT match NULL with NULL; but the filter that DataFusion makes of the other side's
//! keys lets no NULL pass, and row groups or rows with one would be left out.

use std::sync::Arc;

use datafusion::common::NullEquality;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;

/// Takes the filters from joins that look for NULLs: scans that were given one find that it never says anything. It comes after
/// the rule that hands them out.
#[derive(Debug)]
pub(crate) struct KeepNullsOfJoins;

impl PhysicalOptimizerRule for KeepNullsOfJoins {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let without = |node: Arc<dyn ExecutionPlan>| {
            let sees_nulls =
                |join: &&HashJoinExec| join.null_aware || join.null_equality() == NullEquality::NullEqualsNull;
            let join = node.downcast_ref::<HashJoinExec>().filter(sees_nulls);
            Ok(match join.filter(|join| join.dynamic_filter_expr().is_some()) {
                Some(join) => Transformed::yes(join.builder().reset_state().build_exec()?),
                None => Transformed::no(node),
            })
        };
        plan.transform_up(without).data()
    }

    fn name(&self) -> &str {
        "keep_nulls_of_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
