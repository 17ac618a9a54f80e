//! Joins in which a NULL counts, and the filters that joins find out. A single NULL in the subquery of `NOT IN` leaves no row,
//! and `IS NOT DISTINCT FROM`, INTERSECT and EXCEPT match NULL with NULL; but the filter that DataFusion makes of the other side's
//! keys lets no NULL pass, and row groups or rows with one would be left out.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::logical_expr::{Filter, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;

use super::wrapped_rules::RuleOverride;

/// Moves a filter above `NOT IN` to the outer rows alone: `WHERE x > 5 AND x NOT IN (SELECT y FROM t)`. DataFusion 54 infers from the
/// equality of the keys that `y > 5` as well, which leaves out the NULLs among them.
#[derive(Debug)]
pub(crate) struct KeepNullsOfSubqueries;

impl RuleOverride for KeepNullsOfSubqueries {
    fn rewrite(
        &self,
        inner: &dyn OptimizerRule,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let filtered = match &plan {
            LogicalPlan::Filter(filter) => match filter.input.as_ref() {
                LogicalPlan::Join(join) if join.null_aware && join.join_type == JoinType::LeftAnti => {
                    Some((filter.predicate.clone(), join.clone()))
                }
                _ => None,
            },
            _ => None,
        };
        let Some((predicate, mut join)) = filtered else { return inner.rewrite(plan, config) };
        join.left = Arc::new(LogicalPlan::Filter(Filter::try_new(predicate, join.left)?));
        Ok(Transformed::yes(LogicalPlan::Join(join)))
    }
}

/// Leaves inner joins as they are where one matches NULL with NULL and one next to it does not: `a JOIN b ON a.x = b.x JOIN c ON
/// b.y IS NOT DISTINCT FROM c.y`. DataFusion 54 makes all of them anew, each as the first.
#[derive(Debug)]
pub(crate) struct KeepNullEquality;

impl RuleOverride for KeepNullEquality {
    fn rewrite(
        &self,
        inner: &dyn OptimizerRule,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let mut is_mixed = false;
        plan.apply_with_subqueries(|node| {
            is_mixed |= mixes_equalities(node);
            Ok(if is_mixed { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if is_mixed { Ok(Transformed::no(plan)) } else { inner.rewrite(plan, config) }
    }
}

fn mixes_equalities(node: &LogicalPlan) -> bool {
    let LogicalPlan::Join(join) = node else { return false };
    let differs = |input: &LogicalPlan| match input {
        LogicalPlan::Join(below) => below.join_type == JoinType::Inner && below.null_equality != join.null_equality,
        _ => false,
    };
    join.join_type == JoinType::Inner && (differs(&join.left) || differs(&join.right))
}

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
