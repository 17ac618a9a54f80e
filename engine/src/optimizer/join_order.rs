//! The order of inner joins, by how many rows each is thought to make.
//!
//! A statement joins its tables in the order in which it names them. Where three or more are joined by equal columns, the order
//! that makes the fewest rows on the way is found: among all of them up to [`EXHAUSTIVE`] tables, by taking the smallest next join
//! beyond. The order of the statement stays where the other is not clearly better, since estimates err.
//!
//! Which side of a join is built, and how rows are shared out, is decided by the rules after this one.

mod estimates;
mod graph;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use graph::{JoinGraph, JoinTree, LeafColumn};

/// Up to how many tables every order is looked at.
const EXHAUSTIVE: usize = 9;
/// Beyond as many tables the order of the statement stays.
const MAX_TABLES: usize = 32;
/// Another order has to make at most this part of the rows.
const WORTH: f64 = 0.7;

/// Puts inner joins into an order. It comes before the rules that choose sides.
#[derive(Debug)]
pub(crate) struct OrderJoins;

impl PhysicalOptimizerRule for OrderJoins {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        ordered(plan)
    }

    fn name(&self) -> &str {
        "order_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns a plan with its joins in order: those at the top first, then those below what they join.
fn ordered(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let Some(graph) = JoinGraph::of(&plan)? else { return each_child(plan) };
    let (written, mut written_cost) = (graph.written(), 0.0);
    graph.add_cost(written, &mut written_cost);
    let best = if graph.leaves() <= EXHAUSTIVE { exhaustive(&graph) } else { greedy(&graph) };
    let mut cost = 0.0;
    let best = best.filter(|best| {
        graph.add_cost(best, &mut cost);
        cost < written_cost * WORTH
    });
    let Some(best) = best else {
        return graph.with_leaves(plan, &mut ordered);
    };
    tracing::debug!(cost, written_cost, "joins are put into another order");
    let leaves = graph.plans().map(ordered).collect::<Result<Vec<_>>>()?;
    let (joined, columns) = graph.build(&best, &leaves)?;
    // The columns as they were.
    let place = |column: &LeafColumn| columns.iter().position(|found| found == column);
    let schema = plan.schema();
    let joined_schema = joined.schema();
    let mut exprs = Vec::with_capacity(schema.fields().len());
    for (field, column) in schema.fields().iter().zip(graph.output()) {
        let Some(place) = place(column) else { return each_child(plan) };
        let expr = Arc::new(Column::new(joined_schema.field(place).name(), place));
        exprs.push(ProjectionExpr { expr, alias: field.name().clone() });
    }
    Ok(Arc::new(ProjectionExec::try_new(exprs, joined)?))
}

fn each_child(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.map_children(|child| ordered(child).map(Transformed::yes)).data()
}

/// Returns the cheapest tree of all that join only what is connected; `None` where the tables are not all connected.
fn exhaustive(graph: &JoinGraph) -> Option<JoinTree> {
    let count = graph.leaves();
    let mut best: Vec<Option<(f64, JoinTree)>> = vec![None; 1 << count];
    for leaf in 0..count {
        best[1 << leaf] = Some((0.0, JoinTree::Leaf(leaf)));
    }
    for set in 1_usize..1 << count {
        if set.count_ones() < 2 {
            continue;
        }
        let rows = graph.rows(set);
        let mut cheapest: Option<(f64, usize)> = None;
        // Each split once: the part with the lowest table is the first.
        let lowest = set & set.wrapping_neg();
        let mut part = (set - 1) & set;
        while part > 0 {
            let other = set & !part;
            if part & lowest != 0
                && let (Some((left, _)), Some((right, _))) = (&best[part], &best[other])
                && graph.is_connected(part, other)
            {
                let cost = left + right + rows;
                if cheapest.is_none_or(|(found, _)| cost < found) {
                    cheapest = Some((cost, part));
                }
            }
            part = (part - 1) & set;
        }
        if let Some((cost, part)) = cheapest
            && let (Some((_, left)), Some((_, right))) = (&best[part], &best[set & !part])
        {
            best[set] = Some((cost, JoinTree::join(left.clone(), right.clone())));
        }
    }
    best.pop().flatten().map(|(_, tree)| tree)
}

/// Returns a tree made by joining, again and again, the two parts that make the fewest rows.
fn greedy(graph: &JoinGraph) -> Option<JoinTree> {
    let mut parts: Vec<(usize, JoinTree)> = (0..graph.leaves()).map(|leaf| (1 << leaf, JoinTree::Leaf(leaf))).collect();
    while parts.len() > 1 {
        let pairs = (0..parts.len()).flat_map(|left| (left + 1..parts.len()).map(move |right| (left, right)));
        let connected = pairs.filter(|(left, right)| graph.is_connected(parts[*left].0, parts[*right].0));
        let rows = |(left, right): &(usize, usize)| graph.rows(parts[*left].0 | parts[*right].0);
        let (left, right) = connected.min_by(|one, other| rows(one).total_cmp(&rows(other)))?;
        let (other_set, other) = parts.swap_remove(right);
        let (set, tree) = parts.swap_remove(left);
        parts.push((set | other_set, JoinTree::join(tree, other)));
    }
    parts.pop().map(|(_, tree)| tree)
}
