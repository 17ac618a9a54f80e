//! The types of recursive queries. The rows of the recursive member have the types of the first rows, which the planner sees to;
//! what is settled of types afterwards (`INTEGER * INTEGER` is a `BIGINT`, see [`super::number_types`]) would undo that.

use std::sync::Arc;

use datafusion::common::DFSchemaRef;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::coerce_plan_expr_for_schema;
use datafusion::logical_expr::{LogicalPlan, RecursiveQuery};

/// Returns a recursive query whose members have the types that it had when it was planned.
pub(super) fn with_first_types(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::RecursiveQuery(query) = plan else { return Ok(Transformed::no(plan)) };
    let fits = |member: &LogicalPlan| {
        let mut pairs = member.schema().fields().iter().zip(query.schema.fields());
        pairs.all(|(own, planned)| own.data_type() == planned.data_type())
    };
    if fits(&query.static_term) && fits(&query.recursive_term) {
        return Ok(Transformed::no(LogicalPlan::RecursiveQuery(query)));
    }
    let RecursiveQuery { name, static_term, recursive_term, is_distinct, schema } = query;
    let (first, other) = (coerced(static_term, &schema)?, coerced(recursive_term, &schema)?);
    Ok(Transformed::yes(LogicalPlan::RecursiveQuery(RecursiveQuery::try_new(name, first, other, is_distinct)?)))
}

fn coerced(member: Arc<LogicalPlan>, schema: &DFSchemaRef) -> Result<Arc<LogicalPlan>> {
    coerce_plan_expr_for_schema(Arc::unwrap_or_clone(member), schema).map(Arc::new)
}
