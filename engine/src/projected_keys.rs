//! Which columns of a select list are keys of its rows. DataFusion 54 counts columns without those that are computed, so that behind
//! `sum(v) * 2 AS h, k ... GROUP BY k` it takes `h` for the key: rows that are ordered by `h, k` are ordered by `h` alone, and those
//! that are grouped by both are put together. It also keeps the keys of rows that UNNEST makes several of.

use std::sync::Arc;

use datafusion::common::FunctionalDependencies;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Unnest};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// Says right which columns are keys. It comes before the rules that rely on it, as every rule that writes a select list anew has
/// them counted again.
#[derive(Debug)]
pub(crate) struct ProjectKeys;

impl OptimizerRule for ProjectKeys {
    fn name(&self) -> &str {
        "project_keys"
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        with_projected_keys(plan)
    }
}

/// Returns the plan with the keys that its select lists have.
pub(crate) fn with_projected_keys(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut is_wrong = false;
    plan.apply_with_subqueries(|node| {
        is_wrong |= match node {
            LogicalPlan::Projection(projection) => keys_of(projection) != *projection.schema.functional_dependencies(),
            LogicalPlan::Unnest(unnest) => !unnest.schema.functional_dependencies().is_empty(),
            _ => false,
        };
        Ok(if is_wrong { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !is_wrong {
        return Ok(Transformed::no(plan));
    }
    plan.transform_up_with_subqueries(|node| {
        Ok(Transformed::yes(match node {
            LogicalPlan::Projection(projection) => {
                let schema = projection.schema.as_ref().clone();
                let schema = Arc::new(schema.with_functional_dependencies(keys_of(&projection))?);
                LogicalPlan::Projection(Projection::try_new_with_schema(projection.expr, projection.input, schema)?)
            }
            LogicalPlan::Unnest(unnest) => {
                let schema = unnest.schema.as_ref().clone();
                let schema = Arc::new(schema.with_functional_dependencies(FunctionalDependencies::empty())?);
                LogicalPlan::Unnest(Unnest { schema, ..unnest })
            }
            // These have the keys of what is below them.
            other @ (LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Aggregate(_)) => other.recompute_schema()?,
            other => other,
        }))
    })
}

fn keys_of(projection: &Projection) -> FunctionalDependencies {
    let input = projection.input.schema();
    if input.functional_dependencies().is_empty() {
        return FunctionalDependencies::empty();
    }
    let column_below = |expr: &Expr| match expr {
        Expr::Column(column) => input.maybe_index_of_column(column),
        Expr::Alias(alias) => match alias.expr.as_ref() {
            Expr::Column(column) => input.maybe_index_of_column(column),
            _ => None,
        },
        _ => None,
    };
    // What is computed is no column below.
    let columns: Vec<usize> = projection.expr.iter().map(|expr| column_below(expr).unwrap_or(usize::MAX)).collect();
    input.functional_dependencies().project_functional_dependencies(&columns, projection.expr.len())
}
