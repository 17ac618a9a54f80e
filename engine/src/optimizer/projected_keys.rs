//! Which columns are keys of a query's rows. In a select list DataFusion 54 counts columns without those that are computed, so
//! that behind `sum(v) * 2 AS h, k ... GROUP BY k` it takes `h` for the key: rows that are ordered by `h, k` are ordered by `h`
//! alone, and those that are grouped by both are put together. It also keeps the keys of rows that UNNEST makes several of, and
//! above a join with rows of the key `k` it takes `k` for the key of `GROUP BY k, v`, and leaves out DISTINCT of `k`.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchema, Dependency, FunctionalDependence, FunctionalDependencies};
use datafusion::error::Result;
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Aggregate, Distinct, Expr, LogicalPlan, Projection};
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
        with_projected_keys(plan)?.transform_data(with_grouped_rows)
    }
}

/// Returns the plan with the keys that its rows have.
pub(crate) fn with_projected_keys(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut is_wrong = false;
    plan.apply_with_subqueries(|node| {
        is_wrong |= match node {
            LogicalPlan::Projection(projection) => keys_of(projection) != *projection.schema.functional_dependencies(),
            LogicalPlan::Aggregate(aggregate) => {
                keys_of_groups(aggregate) != *aggregate.schema.functional_dependencies()
            }
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
            LogicalPlan::Aggregate(mut aggregate) => {
                let schema = aggregate.schema.as_ref().clone();
                aggregate.schema = Arc::new(schema.with_functional_dependencies(keys_of_groups(&aggregate))?);
                LogicalPlan::Aggregate(aggregate)
            }
            LogicalPlan::Unnest(mut unnest) => {
                let schema = unnest.schema.as_ref().clone();
                unnest.schema = Arc::new(schema.with_functional_dependencies(FunctionalDependencies::empty())?);
                LogicalPlan::Unnest(unnest)
            }
            // These have the keys of what is below them.
            other @ (LogicalPlan::SubqueryAlias(_) | LogicalPlan::Join(_) | LogicalPlan::Window(_)) => {
                other.recompute_schema()?
            }
            other => other,
        }))
    })
}

/// Returns the plan with DISTINCT as groups where its columns decide others of a join, in which their values come again: DataFusion
/// leaves the DISTINCT out there.
fn with_grouped_rows(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut is_found = false;
    plan.apply_with_subqueries(|node| {
        is_found |= matches!(node, LogicalPlan::Distinct(Distinct::All(input)) if may_repeat(input.schema()));
        Ok(if is_found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !is_found {
        return Ok(Transformed::no(plan));
    }
    plan.transform_up_with_subqueries(|node| {
        Ok(match node {
            LogicalPlan::Distinct(Distinct::All(input)) if may_repeat(input.schema()) => {
                let columns = input.schema().columns().into_iter().map(Expr::Column).collect();
                Transformed::yes(LogicalPlan::Aggregate(Aggregate::try_new(input, columns, Vec::new())?))
            }
            other => Transformed::no(other),
        })
    })
}

/// Whether rows whose columns together decide others may be there several times.
fn may_repeat(schema: &DFSchema) -> bool {
    let columns = schema.fields().len();
    let decides = |found: &FunctionalDependence| found.source_indices.iter().copied().take(columns).eq(0..columns);
    let known = schema.functional_dependencies();
    columns > 0 && known.iter().any(|found| found.mode == Dependency::Multi && decides(found))
}

fn keys_of(projection: &Projection) -> FunctionalDependencies {
    let input = projection.input.schema();
    if input.functional_dependencies().is_empty() {
        return FunctionalDependencies::empty();
    }
    // What is computed is no column below.
    let columns = projection.expr.iter().map(|expr| column_below(expr, input).unwrap_or(usize::MAX));
    let columns: Vec<usize> = columns.collect();
    input.functional_dependencies().project_functional_dependencies(&columns, projection.expr.len())
}

/// Returns the keys of groups: what is a key of the rows below, or decides all that is grouped by, and else all of that together.
fn keys_of_groups(aggregate: &Aggregate) -> FunctionalDependencies {
    let is_set = |group: &Expr| matches!(group, Expr::GroupingSet(_));
    // The rows of grouping sets may be the same in all that is grouped by. What is grouped by twice is one column.
    let groups = match grouping_set_to_exprlist(&aggregate.group_expr) {
        Ok(groups) if !groups.is_empty() && !aggregate.group_expr.iter().any(is_set) => groups,
        _ => return FunctionalDependencies::empty(),
    };
    let (input, fields) = (aggregate.input.schema(), aggregate.schema.fields());
    let all: Vec<usize> = (0..fields.len()).collect();
    let known = input.functional_dependencies();
    let columns: Vec<Option<usize>> = match known.is_empty() {
        true => Vec::new(),
        false => groups.iter().map(|group| column_below(group, input)).collect(),
    };
    let key_of_rows = |found: &FunctionalDependence| {
        let place = |source: &usize| columns.iter().position(|column| *column == Some(*source));
        let mut sources: Vec<usize> = found.source_indices.iter().map(place).collect::<Option<_>>()?;
        sources.sort_unstable();
        let is_decided = |column: &Option<usize>| {
            column
                .is_some_and(|column| found.source_indices.contains(&column) || found.target_indices.contains(&column))
        };
        let is_key = found.mode == Dependency::Single || columns.iter().all(is_decided);
        let key = || FunctionalDependence::new(sources, all.clone(), found.nullable).with_mode(Dependency::Single);
        is_key.then(key)
    };
    let mut keys: Vec<FunctionalDependence> = known.iter().filter_map(key_of_rows).collect();
    if keys.is_empty() {
        let is_nullable = fields.iter().take(groups.len()).any(|field| field.is_nullable());
        let key = FunctionalDependence::new((0..groups.len()).collect(), all, is_nullable);
        keys.push(key.with_mode(Dependency::Single));
    }
    FunctionalDependencies::new(keys)
}

fn column_below(expr: &Expr, input: &DFSchema) -> Option<usize> {
    match expr {
        Expr::Column(column) => input.maybe_index_of_column(column),
        Expr::Alias(alias) => match alias.expr.as_ref() {
            Expr::Column(column) => input.maybe_index_of_column(column),
            _ => None,
        },
        _ => None,
    }
}
