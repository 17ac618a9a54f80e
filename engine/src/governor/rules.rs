//! DataFusion's optimizer rules, which look whether the query has been ended before they do anything: planning can take as
//! long as executing.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{Optimizer, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::optimizer::{PhysicalOptimizer, PhysicalOptimizerContext, PhysicalOptimizerRule};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;

use super::GovernExpressions;
use super::folding::KeepLargeCalls;
use super::guarded_domains::DropGuardedChecks;
use crate::functions::measures_vectors;
use crate::limits::QueryUsage;
use crate::optimizer::aggregate_clauses::SettleAggregates;
use crate::optimizer::computed_sort_keys::ComputeSortKeys;
use crate::optimizer::distinct_semi_keys::DistinctSemiKeys;
use crate::optimizer::early_semi_joins::EarlySemiJoins;
use crate::optimizer::grand_totals::{KeepFiltersOfTotals, KeepGrandTotals};
use crate::optimizer::grouping_set_keys::ForgetSetKeys;
use crate::optimizer::join_order::OrderJoins;
use crate::optimizer::misled_filters::KeepMisledFilters;
use crate::optimizer::null_aware_joins::{KeepNullEquality, KeepNullsOfSubqueries};
use crate::optimizer::one_sided_joins::KeepOneSidedJoins;
use crate::optimizer::projected_keys::ProjectKeys;
use crate::optimizer::repeated_aggregates::MergeAggregates;
use crate::optimizer::repeated_projections::DistinguishProjections;
use crate::optimizer::separate_lists::KeepListsApart;
use crate::optimizer::wrapped_rules::{RuleOverride, SharedRule, WrappedRule};

/// The rule that takes a projection for a copy of the one below it.
const COMPARES_PROJECTIONS: &str = "optimize_projections";

/// The rules that leave out what a key decides, of orders and of DISTINCT.
const RELY_ON_KEYS: [&str; 2] = ["eliminate_duplicated_expr", "replace_distinct_aggregate"];

/// The rule that groups by no constants.
const LEAVES_OUT_CONSTANTS: &str = "eliminate_group_by_constant";

/// The rule that moves filters down, and infers others from the keys of joins.
const MOVES_PREDICATES: &str = "push_down_filter";

/// The rule that makes joins of cross joins.
const JOINS_ANEW: &str = "eliminate_cross_join";

/// The rule that computes what is common to expressions once.
const SHARES_EXPRESSIONS: &str = "common_sub_expression_eliminate";

/// The rule that computes constants, and makes expressions simpler.
const FOLDS_CONSTANTS: &str = "simplify_expressions";

/// The rule that asks for the order that the statement has.
const ASKS_FOR_ORDER: &str = "OutputRequirements";

/// The rules that move projections down.
const MOVES_PROJECTIONS: &str = "ProjectionPushdown";

/// The rule that hands a statement's filters down.
const MOVES_FILTERS: &str = "FilterPushdown";

/// The rules that rely on a plan having no rows.
const COUNT_ROWS: [&str; 2] = ["aggregate_statistics", "LimitPushdown"];

/// The rule that decides which side of a join is built.
const CHOOSES_SIDES: &str = "join_selection";

type PhysicalRule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// Returns DataFusion's rules and `more` after them, with bounds put around expressions before constants are folded and
/// once again at the end.
pub(crate) fn governed_optimizer_rules(more: impl IntoIterator<Item = SharedRule>) -> Vec<SharedRule> {
    let govern: SharedRule = Arc::new(GovernExpressions);
    let with_ours = |rule: SharedRule| {
        let before: Vec<SharedRule> = match rule.name() {
            // It leaves out groups by keys as well.
            COMPARES_PROJECTIONS => vec![Arc::new(DistinguishProjections), Arc::new(ProjectKeys)],
            name if RELY_ON_KEYS.contains(&name) => vec![Arc::new(ProjectKeys)],
            SHARES_EXPRESSIONS => vec![Arc::new(DropGuardedChecks), Arc::new(MergeAggregates)],
            _ => Vec::new(),
        };
        let rule: SharedRule = match rule.name() {
            LEAVES_OUT_CONSTANTS => WrappedRule::new_shared(rule, KeepLastGroup),
            MOVES_PREDICATES => {
                WrappedRule::new_shared(WrappedRule::new_shared(rule, KeepFiltersOfTotals), KeepNullsOfSubqueries)
            }
            JOINS_ANEW => WrappedRule::new_shared(rule, KeepNullEquality),
            FOLDS_CONSTANTS => WrappedRule::new_shared(WrappedRule::new_shared(rule, KeepLargeCalls), KeepListsApart),
            _ => rule,
        };
        before.into_iter().chain([rule])
    };
    let rules = Optimizer::new().rules.into_iter().flat_map(with_ours);
    let watched = rules.chain(more).map(|inner| WrappedRule::new_shared(inner, WatchedRule));
    let before: [SharedRule; 3] =
        [Arc::clone(&govern), Arc::new(SettleAggregates), Arc::new(ComputeSortKeys { is_costly: measures_vectors })];
    before.into_iter().chain(watched).chain([govern]).collect()
}

/// Returns DataFusion's rules for physical plans, with keys of grouping sets of which nothing is known before them, joins in order
/// before sides are chosen, keys of semi-joins once after that, and `more` after them.
pub(crate) fn governed_physical_rules(more: impl IntoIterator<Item = PhysicalRule>) -> Vec<PhysicalRule> {
    let with_ours = |rule: PhysicalRule| {
        if rule.name() != CHOOSES_SIDES {
            return vec![rule];
        }
        vec![Arc::new(EarlySemiJoins) as PhysicalRule, Arc::new(OrderJoins), rule, Arc::new(DistinctSemiKeys)]
    };
    let mut rules = PhysicalOptimizer::new().rules;
    // The last of that name takes the requests away again.
    if let Some(rule) = rules.iter_mut().find(|rule| rule.name() == ASKS_FOR_ORDER) {
        *rule = Arc::new(OrderBelowSubqueries { inner: Arc::clone(rule) });
    }
    for rule in rules.iter_mut().filter(|rule| rule.name() == MOVES_PROJECTIONS) {
        *rule = Arc::new(KeepOneSidedJoins { inner: Arc::clone(rule) });
    }
    for rule in rules.iter_mut().filter(|rule| rule.name() == MOVES_FILTERS) {
        *rule = Arc::new(KeepMisledFilters { inner: Arc::clone(rule) });
    }
    for rule in rules.iter_mut().filter(|rule| COUNT_ROWS.contains(&rule.name())) {
        *rule = Arc::new(KeepGrandTotals { inner: Arc::clone(rule) });
    }
    let first: PhysicalRule = Arc::new(ForgetSetKeys);
    let rules = std::iter::once(first).chain(rules.into_iter().flat_map(with_ours)).chain(more);
    rules.map(|inner| Arc::new(WatchedPhysicalRule { inner }) as PhysicalRule).collect()
}

/// Asks for the statement's order below the node that computes its scalar subqueries. DataFusion 54 looks for a sort below nodes
/// of one input only, and takes one that it does not find away.
#[derive(Debug)]
struct OrderBelowSubqueries {
    inner: PhysicalRule,
}

impl PhysicalOptimizerRule for OrderBelowSubqueries {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        if !plan.is::<ScalarSubqueryExec>() {
            return self.inner.optimize(plan, config);
        }
        let mut inputs = plan.children().into_iter().map(Arc::clone).collect::<Vec<_>>();
        if let Some(input) = inputs.first_mut() {
            *input = self.optimize(Arc::clone(input), config)?;
        }
        plan.with_new_children(inputs)
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn schema_check(&self) -> bool {
        self.inner.schema_check()
    }
}

/// Keeps groups where all of them are constants: without a group, DataFusion 54 makes a row of no rows.
#[derive(Debug)]
struct KeepLastGroup;

impl RuleOverride for KeepLastGroup {
    fn rewrite(
        &self,
        inner: &dyn OptimizerRule,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if !matches!(&plan, LogicalPlan::Aggregate(aggregate) if !aggregate.group_expr.is_empty()) {
            return inner.rewrite(plan, config);
        }
        let written = inner.rewrite(plan.clone(), config)?;
        let has_no_group =
            |node: &LogicalPlan| matches!(node, LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty());
        let is_lost = written.transformed && written.data.inputs().into_iter().any(has_no_group);
        Ok(if is_lost { Transformed::no(plan) } else { written })
    }
}

#[derive(Debug)]
struct WatchedRule;

impl RuleOverride for WatchedRule {
    fn rewrite(
        &self,
        inner: &dyn OptimizerRule,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        QueryUsage::check_current()?;
        inner.rewrite(plan, config)
    }
}

#[derive(Debug)]
struct WatchedPhysicalRule {
    inner: PhysicalRule,
}

impl PhysicalOptimizerRule for WatchedPhysicalRule {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        QueryUsage::check_current()?;
        self.inner.optimize(plan, config)
    }

    fn optimize_with_context(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &dyn PhysicalOptimizerContext,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        QueryUsage::check_current()?;
        self.inner.optimize_with_context(plan, context)
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn schema_check(&self) -> bool {
        self.inner.schema_check()
    }
}
