//! The grand total of grouping sets over no rows. `ROLLUP (a)` has a row for `()` whatever its input has; DataFusion 54 takes an
//! aggregation of no rows for one without a row, and rules that believe it count none, as in
//! `SELECT count(*) FROM (SELECT a FROM empty GROUP BY ROLLUP (a))`, or leave out a LIMIT. They see no plan with such an aggregation.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;

/// A rule of DataFusion's that believes how many rows there are.
#[derive(Debug)]
pub(crate) struct KeepGrandTotals {
    pub(crate) inner: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
}

impl PhysicalOptimizerRule for KeepGrandTotals {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        if has_total_of_nothing(&plan)? { Ok(plan) } else { self.inner.optimize(plan, config) }
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn schema_check(&self) -> bool {
        self.inner.schema_check()
    }
}

/// Returns whether a plan aggregates no rows by sets of which one is empty.
fn has_total_of_nothing(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let groups = aggregate.group_expr();
        let has_total =
            groups.has_grouping_set() && groups.groups().iter().any(|set| set.iter().all(|is_null| *is_null));
        if has_total && aggregate.input().partition_statistics(None)?.num_rows == Precision::Exact(0) {
            return Ok(true);
        }
    }
    for input in plan.children() {
        if has_total_of_nothing(input)? {
            return Ok(true);
        }
    }
    Ok(false)
}
