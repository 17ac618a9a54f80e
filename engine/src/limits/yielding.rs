//! Operators that make many rows of few yield to the runtime now and then.
//!
//! DataFusion 54 lets only leaves and exchanges yield. A join that makes a thousand million rows of one input batch would
//! hold its thread all the while: its deadline would not be looked at, and dropping its stream would not stop it.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;

/// Puts a yield point above every operator that may return more batches than it takes. Runs last.
#[derive(Debug)]
pub(crate) struct YieldAboveExpansions;

impl PhysicalOptimizerRule for YieldAboveExpansions {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            Ok(match expands(node.as_ref()) {
                true => Transformed::yes(Arc::new(CooperativeExec::new(node)) as Arc<dyn ExecutionPlan>),
                false => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "yield_above_expansions"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Joins and recursions have several inputs; unnesting has one.
fn expands(node: &dyn ExecutionPlan) -> bool {
    node.children().len() > 1 || node.name() == "UnnestExec"
}
