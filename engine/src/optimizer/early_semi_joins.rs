//! Semi-joins before the joins that make more rows of what they filter. `WHERE a.k IN (SELECT ...)` over joined tables is planned
//! as a semi-join of all their rows; where its keys come from one side of a join that has more rows than that side, the
//! semi-join goes to that side.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinSide, JoinType};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, PhysicalExprRef};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{HashJoinExec, HashJoinExecBuilder};
use datafusion::physical_plan::projection::ProjectionExec;

/// Moves semi-joins and anti-joins down. It comes before the rules that choose sides and share rows out.
#[derive(Debug)]
pub(crate) struct EarlySemiJoins;

impl PhysicalOptimizerRule for EarlySemiJoins {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let moved = |node: Arc<dyn ExecutionPlan>| {
            let semi = node.downcast_ref::<HashJoinExec>().filter(|join| is_movable(join));
            Ok(match semi.map(|semi| below(semi, semi.left(), keys(semi))).transpose()?.flatten() {
                Some(below) => Transformed::yes(below),
                None => Transformed::no(node),
            })
        };
        plan.transform_down(moved).data()
    }

    fn name(&self) -> &str {
        "early_semi_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns whether a join only filters its left side, by nothing but keys.
fn is_movable(join: &HashJoinExec) -> bool {
    matches!(join.join_type(), JoinType::LeftSemi | JoinType::LeftAnti)
        && join.filter().is_none()
        && join.projection.is_none()
        && !join.null_aware
}

/// The places of the left keys in the left side's columns; `None` for a key that is no column.
fn keys(join: &HashJoinExec) -> Vec<Option<usize>> {
    join.on().iter().map(|(left, _)| column(left)).collect()
}

fn column(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}

/// Returns `input`, with what `semi` filters of it filtered below one of its joins; `None` where it has none that makes more
/// rows of that side. `keys` are places in the columns of `input`.
fn below(
    semi: &HashJoinExec,
    input: &Arc<dyn ExecutionPlan>,
    keys: Vec<Option<usize>>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(projection) = input.downcast_ref::<ProjectionExec>() {
        let through = |key: Option<usize>| key.and_then(|key| column(&projection.expr().get(key)?.expr));
        let inner = below(semi, projection.input(), keys.into_iter().map(through).collect())?;
        return inner.map(|inner| Arc::clone(input).with_new_children(vec![inner])).transpose();
    }
    let Some(join) = input.downcast_ref::<HashJoinExec>().filter(|join| join.projection.is_none()) else {
        return Ok(None);
    };
    let left_columns = join.left().schema().fields().len();
    let side_of =
        |key: &Option<usize>| key.map(|key| if key < left_columns { JoinSide::Left } else { JoinSide::Right });
    let Some(side) = keys.first().and_then(side_of) else { return Ok(None) };
    let keeps_side = match side {
        JoinSide::Left => matches!(join.join_type(), JoinType::Inner | JoinType::Left),
        JoinSide::Right => matches!(join.join_type(), JoinType::Inner | JoinType::Right),
        JoinSide::None => false,
    };
    if !keeps_side || !keys.iter().all(|key| side_of(key) == Some(side)) {
        return Ok(None);
    }
    let (mut left, mut right) = (Arc::clone(join.left()), Arc::clone(join.right()));
    let (filtered, offset) = if side == JoinSide::Left { (&mut left, 0) } else { (&mut right, left_columns) };
    let (Some(before), Some(after)) = (rows(filtered)?, rows(input)?) else { return Ok(None) };
    if before >= after {
        return Ok(None);
    }
    let on = keys.iter().zip(semi.on()).filter_map(|(key, (_, other))| {
        let key = (*key)? - offset;
        let name = filtered.schema().field(key).name().clone();
        Some((Arc::new(Column::new(&name, key)) as PhysicalExprRef, Arc::clone(other)))
    });
    let on = on.collect();
    let early = HashJoinExecBuilder::new(Arc::clone(filtered), Arc::clone(semi.right()), on, *semi.join_type())
        .with_null_equality(semi.null_equality())
        .with_partition_mode(*semi.partition_mode())
        .build()?;
    *filtered = Arc::new(early);
    Ok(Some(join.builder().with_new_children(vec![left, right])?.build_exec()?))
}

/// Returns how many rows a plan is thought to have, if anything is known of them.
fn rows(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<usize>> {
    Ok(plan.partition_statistics(None)?.num_rows.get_value().copied())
}
