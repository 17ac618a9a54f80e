//! Rules around another one: [`WrappedRule`] is the one inside of it in its name and in how it is applied, and a [`RuleOverride`] says
//! what it does otherwise.

use std::fmt::Debug;
use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// A rule for logical plans, as DataFusion shares it.
pub(crate) type SharedRule = Arc<dyn OptimizerRule + Send + Sync>;

/// What a rule does otherwise than the one inside of it.
pub(crate) trait RuleOverride: Debug + Send + Sync + 'static {
    /// Rewrites a plan, by the rule inside where that is right.
    fn rewrite(
        &self,
        inner: &dyn OptimizerRule,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>>;
}

/// A rule that is another one but for what its override says.
#[derive(Debug)]
pub(crate) struct WrappedRule<O> {
    inner: SharedRule,
    otherwise: O,
}

impl<O: RuleOverride> WrappedRule<O> {
    /// Wraps a rule.
    pub(crate) fn new_shared(inner: SharedRule, otherwise: O) -> SharedRule {
        Arc::new(Self { inner, otherwise })
    }
}

impl<O: RuleOverride> OptimizerRule for WrappedRule<O> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.inner.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        self.otherwise.rewrite(self.inner.as_ref(), plan, config)
    }
}
