//! Keys of grouping sets, which are NULL in the sets that lack them. DataFusion 54 says of a key what its input's rows have, that it
//! is one value or that it equals another key, and leaves it out of an order: `WHERE region = 'EU' GROUP BY ROLLUP (region, product)
//! ORDER BY region, product` was ordered by the product alone. Each such key is computed anew above the aggregation, where nothing
//! is known of it.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CaseExpr, Column, binary, lit};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

/// See the module. It comes before the rules that rely on what is known of columns.
#[derive(Debug)]
pub(crate) struct ForgetSetKeys;

impl PhysicalOptimizerRule for ForgetSetKeys {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let keys = match node.downcast_ref::<AggregateExec>() {
                Some(aggregate) if aggregate.group_expr().has_grouping_set() => aggregate.group_expr().expr().len(),
                _ => return Ok(Transformed::no(node)),
            };
            let known = node.equivalence_properties();
            if known.eq_group().is_empty() && known.oeq_class().is_empty() {
                return Ok(Transformed::no(node));
            }
            with_unknown_keys(node, keys).map(Transformed::yes)
        })
        .data()
    }

    fn name(&self) -> &str {
        "forget_set_keys"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns the rows of an aggregation whose first columns are `keys` keys, and the next one says which set a row is of.
fn with_unknown_keys(aggregation: Arc<dyn ExecutionPlan>, keys: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = aggregation.schema();
    let of_set: Arc<dyn PhysicalExpr> = Arc::new(Column::new(schema.field(keys).name(), keys));
    let id_type = schema.field(keys).data_type();
    let first_set = lit(ScalarValue::new_zero(id_type)?);
    let columns = schema.fields().iter().enumerate().map(|(index, field)| {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), index));
        if index >= keys {
            return Ok((column, field.name().clone()));
        }
        // It holds of every row, which the planner does not know; and it is another one for each key, so that keys that are equal
        // are not equal as expressions.
        let own_id = lit(ScalarValue::UInt64(Some(index as u64)).cast_to(id_type)?);
        let id = binary(Arc::clone(&of_set), Operator::BitwiseXor, own_id, &schema)?;
        let is_any_set = binary(id, Operator::GtEq, Arc::clone(&first_set), &schema)?;
        let key: Arc<dyn PhysicalExpr> = Arc::new(CaseExpr::try_new(None, vec![(is_any_set, column)], None)?);
        Ok((key, field.name().clone()))
    });
    Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Result<Vec<_>>>()?, aggregation)?))
}
