//! Filters that operators find out while they run, and that reach a scan as filters over other columns. DataFusion 54 finds the
//! columns of a filter by their names on its way down, so that below an operator with two columns of one name, such as the rows of
//! a table joined with itself, a filter over the second is taken for one over the first, and rows that it should keep are left out.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, DynamicFilterPhysicalExpr, lit};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;

/// Takes such filters from the operators that make them: scans that were given one find that it never says anything. It comes after
/// the rule that hands them out.
#[derive(Debug)]
pub(crate) struct WithoutMisreadFilters;

impl PhysicalOptimizerRule for WithoutMisreadFilters {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(without_misread_filter).data()
    }

    fn name(&self) -> &str {
        "without_misread_filters"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn without_misread_filter(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    if let Some(join) = node.downcast_ref::<HashJoinExec>()
        && let Some(filter) = join.dynamic_filter_expr()
        && is_misread(join.right(), &columns_of(filter))
    {
        return Ok(Transformed::yes(join.builder().reset_state().build_exec()?));
    }
    if let Some(sort) = node.downcast_ref::<SortExec>()
        && let Some(filter) = sort.dynamic_filter_expr()
        && is_misread(sort.input(), &columns_of(&filter))
    {
        return Ok(Transformed::yes(Arc::clone(&node).reset_state()?));
    }
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>()
        && let Some(filter) = aggregate.dynamic_filter_expr()
        && is_misread(aggregate.input(), &columns_of(filter))
    {
        let columns = filter.children().into_iter().cloned().collect();
        let unread = Arc::new(DynamicFilterPhysicalExpr::new(columns, lit(true)));
        return Ok(Transformed::yes(Arc::new(aggregate.clone().with_dynamic_filter_expr(unread)?)));
    }
    Ok(Transformed::no(node))
}

fn columns_of(filter: &Arc<DynamicFilterPhysicalExpr>) -> Vec<Column> {
    filter.children().into_iter().flat_map(collect_columns).collect()
}

/// Returns whether a filter over columns of a plan may reach a scan below as one over others. Joins may be thought to misread what
/// they do not.
fn is_misread(plan: &Arc<dyn ExecutionPlan>, columns: &[Column]) -> bool {
    if columns.is_empty() {
        return false;
    }
    let schema = plan.schema();
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let is_another = |column: &Column| schema.index_of(column.name()).ok() != Some(column.index());
        if columns.iter().any(is_another) {
            return true;
        }
        let exprs = columns.iter().filter_map(|column| projection.expr().get(column.index()));
        let below: Vec<Column> = exprs.flat_map(|projected| collect_columns(&projected.expr)).collect();
        return is_misread(projection.input(), &below);
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let below = aggregate.input().schema();
        // Groups are the first columns. One that is computed is taken for the column that it is called after.
        let is_computed = |column: &Column| {
            aggregate.group_expr().expr().get(column.index()).is_some_and(|(group, name)| {
                let is_column = group.downcast_ref::<Column>().is_some_and(|group| group.name() == name);
                !is_column && below.index_of(name).is_ok()
            })
        };
        if columns.iter().any(is_computed) {
            return true;
        }
    }
    plan.children().into_iter().any(|child| {
        let found = child.schema();
        let mut below = Vec::with_capacity(columns.len());
        for column in columns {
            let Ok(index) = found.index_of(column.name()) else { continue };
            let is_one = found.fields().iter().filter(|field| field.name() == column.name()).count() == 1;
            if !is_one && (found != schema || index != column.index()) {
                return true;
            }
            below.push(Column::new(column.name(), index));
        }
        is_misread(child, &below)
    })
}
