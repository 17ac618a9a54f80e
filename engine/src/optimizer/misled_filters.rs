//! Filters that joins, sorts and aggregates find out while they run, and columns of the same name. DataFusion 54 hands such a filter
//! down by the names of its columns. Where the rows of a join have two columns of one name, or a semi-join's sides have one that is
//! no key, the filter comes to another column than it is about, and leaves out rows that belong to the result. So do the filters of
//! a statement where they compare two columns of one name behind an outer join: `WHERE date_diff('day', a.d, b.d) > 0`.
//!
//! And filters on structures and lists: DataFusion finds neither the least nor the greatest of those that hold a null, and leaves out
//! rows by what it takes for them.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{HashSet, JoinType};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::{Column, DynamicFilterPhysicalExpr, IsNotNullExpr, lit};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, PhysicalExprRef, conjunction, split_conjunction};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPhase, PushedDown};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;

/// DataFusion's rule that hands a statement's filters down, which leaves a plan as it is where one of them would be misled: what
/// scans can leave out was handed to them before.
#[derive(Debug)]
pub(crate) struct KeepMisledFilters {
    pub(crate) inner: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
}

impl PhysicalOptimizerRule for KeepMisledFilters {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let mut is_found = false;
        plan.apply(|node| {
            if let Some(filter) = node.downcast_ref::<FilterExec>() {
                // Each condition is handed down by itself.
                for condition in split_conjunction(filter.predicate()) {
                    is_found |= is_misled(filter.input(), &collect_columns(condition), config)?;
                }
            }
            Ok(if is_found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if is_found { Ok(plan) } else { self.inner.optimize(plan, config) }
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn schema_check(&self) -> bool {
        self.inner.schema_check()
    }
}

/// Takes such filters from whoever finds them out: scans that were given one find that it never says anything. It comes after the
/// rule that hands them out.
#[derive(Debug)]
pub(crate) struct DropMisledFilters;

impl PhysicalOptimizerRule for DropMisledFilters {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| without_misled_filter(node, config)).data()
    }

    fn name(&self) -> &str {
        "drop_misled_filters"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn without_misled_filter(
    node: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let misled = |filter: Arc<DynamicFilterPhysicalExpr>, input: &Arc<dyn ExecutionPlan>| {
        for value in filter.children() {
            if value.data_type(&input.schema())?.is_nested() {
                return Ok(true);
            }
        }
        let filter: Arc<dyn PhysicalExpr> = filter;
        is_misled(input, &collect_columns(&filter), config)
    };
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        if let Some(filter) = join.dynamic_filter_expr()
            && misled(Arc::clone(filter), join.right())?
        {
            return Ok(Transformed::yes(join.builder().reset_state().build_exec()?));
        }
    } else if let Some(sort) = node.downcast_ref::<SortExec>() {
        if let Some(filter) = sort.dynamic_filter_expr()
            && misled(filter, sort.input())?
        {
            return Ok(Transformed::yes(node.reset_state()?));
        }
    } else if let Some(aggregate) = node.downcast_ref::<AggregateExec>()
        && let Some(filter) = aggregate.dynamic_filter_expr()
        && misled(Arc::clone(filter), aggregate.input())?
    {
        let values = filter.children().into_iter().map(Arc::clone).collect();
        let unheard = Arc::new(DynamicFilterPhysicalExpr::new(values, lit(true)));
        let aggregate = aggregate.clone().with_dynamic_filter_expr(unheard)?;
        return Ok(Transformed::yes(Arc::new(aggregate)));
    }
    Ok(Transformed::no(node))
}

/// Returns whether a filter on these columns of a plan comes to other columns somewhere below.
fn is_misled(plan: &Arc<dyn ExecutionPlan>, columns: &HashSet<Column>, config: &ConfigOptions) -> Result<bool> {
    if columns.is_empty() || plan.children().is_empty() {
        return Ok(false);
    }
    let about = |column: &Column| -> Arc<dyn PhysicalExpr> {
        let column: Arc<dyn PhysicalExpr> = Arc::new(column.clone());
        Arc::new(IsNotNullExpr::new(column))
    };
    let parts = columns.iter().map(|column| Ok((column, handed_down(plan, about(column), config)?)));
    let parts = parts.collect::<Result<Vec<_>>>()?;
    // A plan of many columns looks at each of them for every filter that it is told of.
    let whole = match parts.as_slice() {
        [(_, only)] => only.clone(),
        _ => handed_down(plan, conjunction(columns.iter().map(about)), config)?,
    };
    for (place, child) in plan.children().into_iter().enumerate() {
        if whole.get(place).is_none_or(Option::is_none) {
            continue;
        }
        let mut below = HashSet::new();
        for (column, part) in &parts {
            let Some(part) = part.get(place).and_then(Option::as_ref) else { return Ok(true) };
            let found = collect_columns(part);
            let places: HashSet<usize> = found.iter().map(Column::index).collect();
            if origin(plan, place, column.index()).is_none_or(|origin| origin != places) {
                return Ok(true);
            }
            below.extend(found);
        }
        if is_misled(child, &below, config)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns what a plan makes of a filter on its rows for each of its inputs; `None` for those that it does not tell of it.
fn handed_down(
    plan: &Arc<dyn ExecutionPlan>,
    filter: Arc<dyn PhysicalExpr>,
    config: &ConfigOptions,
) -> Result<Vec<Option<Arc<dyn PhysicalExpr>>>> {
    // In the phase before, joins and sorts have no filter of their own to add.
    let described = plan.gather_filters_for_pushdown(FilterPushdownPhase::Pre, vec![filter], config)?;
    let of_child = described.parent_filters().into_iter().map(|filters| {
        let told = filters.into_iter().find(|filter| matches!(filter.discriminant, PushedDown::Yes));
        told.map(|filter| filter.predicate)
    });
    Ok(of_child.collect())
}

/// Returns the columns of an input that a column of a plan is made of; `None` where there is no telling.
fn origin(plan: &Arc<dyn ExecutionPlan>, child: usize, column: usize) -> Option<HashSet<usize>> {
    let made_of =
        |expr: &Arc<dyn PhysicalExpr>| -> HashSet<usize> { collect_columns(expr).iter().map(Column::index).collect() };
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let expr = &projection.expr().get(column)?.expr;
        // What makes up values makes others below.
        return (!is_volatile(expr)).then(|| made_of(expr));
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return Some(made_of(&aggregate.group_expr().expr().get(column)?.0));
    }
    let place = if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        of_join(join, child, column)?
    } else if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        filter.projection().as_deref().map_or(Some(column), |kept| kept.get(column).copied())?
    } else {
        // All others that hand filters down give the columns of an input as they are.
        let columns = plan.children().get(child)?.schema().fields().len();
        Some(column).filter(|_| columns == plan.schema().fields().len())?
    };
    Some(HashSet::from([place]))
}

/// Returns the column of a side of a join that a column of its rows is, or is equal to by a semi-join's keys.
fn of_join(join: &HashJoinExec, child: usize, column: usize) -> Option<usize> {
    let column = join.projection.as_deref().map_or(Some(column), |kept| kept.get(column).copied())?;
    let left_columns = join.left().schema().fields().len();
    let (side, column) = match join.join_type() {
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full if column >= left_columns => {
            (1, column - left_columns)
        }
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => (0, column),
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => (0, column),
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => (1, column),
    };
    if side == child {
        return Some(column);
    }
    let place = |key: &PhysicalExprRef| key.downcast_ref::<Column>().map(Column::index);
    join.on().iter().find_map(|(left, right)| {
        let (own, other) = if side == 0 { (left, right) } else { (right, left) };
        place(other).filter(|_| place(own) == Some(column))
    })
}
