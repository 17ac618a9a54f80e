//! Limits of distinct rows that later optimisation made unfit. DataFusion lets an aggregation that only finds distinct rows
//! stop early, and asks when it runs whether its rows are in no order; a filter that is pushed down afterwards may have put
//! them in one (`a = 1` leaves one value), and the query then fails with an internal error.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;

/// Takes early ends from aggregations that cannot have one any more. It comes after all other rules.
#[derive(Debug)]
pub(crate) struct FitDistinctLimits;

impl PhysicalOptimizerRule for FitDistinctLimits {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let fit = |node: Arc<dyn ExecutionPlan>| {
            let unfit = node.downcast_ref::<AggregateExec>().filter(|aggregate| {
                let limit = aggregate.limit_options().filter(|limit| limit.descending.is_none());
                limit.is_some()
                    && aggregate.aggr_expr().is_empty()
                    && !aggregate.is_unordered_unfiltered_group_by_distinct()
            });
            Ok(match unfit {
                Some(unfit) => Transformed::yes(Arc::new(unfit.with_new_limit_options(None)) as Arc<dyn ExecutionPlan>),
                None => Transformed::no(node),
            })
        };
        plan.transform_up(fit).data()
    }

    fn name(&self) -> &str {
        "fit_distinct_limits"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
