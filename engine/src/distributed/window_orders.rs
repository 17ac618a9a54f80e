//! Keeps windows' rows in orders that a worker knows.
//!
//! Of the rows that a stage receives, a worker knows the columns, and not that one has a single value (`WHERE k = 1`) or that
//! two are the same (`k AS a`). A sort leaves out keys that say nothing more, and a window over it would not find its groups
//! where that is not known. Such a sort is written with all keys of its window.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_expr::window::WindowExpr;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, InputOrderMode};

use super::enclosed::InputPlaceExec;

/// How a window finds the groups of its rows, which come in an order.
struct GroupKeys {
    window: Arc<dyn WindowExpr>,
    /// How many of its keys the rows are in the order of.
    wanted: usize,
    /// Those keys, as far as the order is known.
    found: Result<Vec<PhysicalSortExpr>>,
}

/// Returns a window with a sort by all of its keys, where those of its input would not be known to a worker.
pub(super) fn with_known_order(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(keys) = group_keys(&node) else { return Ok(Transformed::no(node)) };
    if is_known_to_worker(&node, keys.wanted)? {
        return Ok(Transformed::no(node));
    }
    let sorted = {
        let [input] = node.children()[..] else { return Ok(Transformed::no(node)) };
        let mut order = keys.found?;
        order.extend(keys.window.order_by().iter().cloned());
        // Others may rely on the rest.
        order.extend(input.output_ordering().into_iter().flatten().cloned());
        let Some(order) = LexOrdering::new(order) else { return Ok(Transformed::no(Arc::clone(&node))) };
        match input.downcast_ref::<SortExec>() {
            Some(sort) => SortExec::new(order, Arc::clone(sort.input()))
                .with_preserve_partitioning(sort.preserve_partitioning())
                .with_fetch(sort.fetch()),
            None => SortExec::new(order, Arc::clone(input)).with_preserve_partitioning(true),
        }
    };
    node.with_new_children(vec![Arc::new(sorted)]).map(Transformed::yes)
}

/// `None` of other operators, and of windows that look up the group of each row.
fn group_keys(node: &Arc<dyn ExecutionPlan>) -> Option<GroupKeys> {
    if let Some(window) = node.downcast_ref::<WindowAggExec>() {
        let first = Arc::clone(window.window_expr().first()?);
        let wanted = first.partition_by().len();
        return Some(GroupKeys { window: first, wanted, found: window.partition_by_sort_keys() });
    }
    let window = node.downcast_ref::<BoundedWindowAggExec>()?;
    let first = Arc::clone(window.window_expr().first()?);
    let wanted = match &window.input_order_mode {
        InputOrderMode::Sorted => first.partition_by().len(),
        InputOrderMode::PartiallySorted(keys) => keys.len(),
        InputOrderMode::Linear => return None,
    };
    Some(GroupKeys { window: first, wanted, found: window.partition_by_sort_keys() })
}

fn is_known_to_worker(window: &Arc<dyn ExecutionPlan>, wanted: usize) -> Result<bool> {
    let received = Arc::clone(window).transform_down(over_received_rows).data()?;
    let keys = group_keys(&received);
    Ok(keys.is_some_and(|keys| keys.found.is_ok_and(|found| found.len() == wanted)))
}

/// A stage may end below each of these operators. A sort says what its order is, whatever was known of its rows.
fn over_received_rows(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let is_end = node.is::<SortExec>()
        || node.is::<RepartitionExec>()
        || node.is::<CoalescePartitionsExec>()
        || node.is::<SortPreservingMergeExec>()
        || node.children().len() > 1;
    if !is_end {
        return Ok(Transformed::no(node));
    }
    let received = node.children().into_iter().map(InputPlaceExec::received).collect();
    let node = node.with_new_children(received)?;
    Ok(Transformed::new(node, true, TreeNodeRecursion::Jump))
}
