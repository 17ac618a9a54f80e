//! The row of no group: that of `SELECT count(*) FROM t`, and the grand total of grouping sets, are there whatever their input has.
//!
//! DataFusion 54 takes an aggregation by grouping sets of no rows for one without a row, and rules that believe it count none, as in
//! `SELECT count(*) FROM (SELECT a FROM empty GROUP BY ROLLUP (a))`, or leave out a LIMIT. They see no plan with such an aggregation.
//! And it moves a filter that names no column below an aggregation, as that of `t ANTI JOIN (SELECT count(*) FROM u) ON false`: there
//! it leaves out what is counted, and the row stays.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;

use super::wrapped_rules::RuleOverride;

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

/// Keeps filters above aggregations that may have a total: none of their columns is a group's, so that only those would move
/// that name no column.
#[derive(Debug)]
pub(crate) struct KeepFiltersOfTotals;

impl RuleOverride for KeepFiltersOfTotals {
    fn rewrite(
        &self,
        inner: &dyn OptimizerRule,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if filters_totals(&plan) { Ok(Transformed::no(plan)) } else { inner.rewrite(plan, config) }
    }
}

/// Returns whether a plan is a filter, or several, of an aggregation that may have a total.
fn filters_totals(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Filter(filter) = plan else { return false };
    match filter.input.as_ref() {
        LogicalPlan::Aggregate(aggregate) => matches!(aggregate.group_expr.as_slice(), [] | [Expr::GroupingSet(_)]),
        below => filters_totals(below),
    }
}
