//! What the nodes of a plan are. Most plans have nothing that a rewrite is for, and are looked at only: a rewrite takes the whole
//! tree apart.

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;

/// Returns whether a node of a plan, or of a subquery in it, is one that is looked for.
pub(super) fn any_node(plan: &LogicalPlan, mut is_one: impl FnMut(&LogicalPlan) -> Result<bool>) -> Result<bool> {
    let mut is_found = false;
    plan.apply_with_subqueries(|node| {
        is_found = is_one(node)?;
        Ok(if is_found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(is_found)
}
