//! The types of INTERSECT and EXCEPT: as in a union, those in which the columns of both sides meet. DataFusion's are those of the left
//! side, so that of `SELECT 3 EXCEPT SELECT 1.5e0` a half would be cut to a whole number.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{NullEquality, Result};
use datafusion::logical_expr::{Distinct, Join, JoinType, LogicalPlan};

use super::meeting_types::{meeting_type, union_type};
use super::{met_column, with_columns};

/// Returns whether a join is what the planner makes of INTERSECT and EXCEPT: of no other are nulls equal before it is optimized.
pub(super) fn is_set_operation(join: &Join) -> bool {
    join.null_equality == NullEquality::NullEqualsNull
        && matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.on.len() == join.left.schema().fields().len()
}

/// Returns the operation on columns of one type.
pub(super) fn with_set_types(join: Join) -> Result<Transformed<LogicalPlan>> {
    let common = (0..join.left.schema().fields().len()).map(|column| {
        let types = [met_column(&join.left, column), met_column(&join.right, column)];
        let types: Vec<DataType> = types.into_iter().flatten().collect();
        // Nanoseconds do not reach all years, and are compared exactly as they are.
        let is_near = |found: &DataType| !matches!(found, DataType::Timestamp(TimeUnit::Nanosecond, _));
        meeting_type(&types).or_else(|| union_type(&types)).filter(is_near)
    });
    let common: Vec<Option<DataType>> = common.collect();
    if common.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let left = match join.left.as_ref() {
        // Rows that become equal are one.
        LogicalPlan::Distinct(Distinct::All(rows)) => {
            let rows = with_columns(Arc::clone(rows), &common)?;
            Arc::new(LogicalPlan::Distinct(Distinct::All(rows)))
        }
        _ => with_columns(Arc::clone(&join.left), &common)?,
    };
    let right = with_columns(Arc::clone(&join.right), &common)?;
    let join = LogicalPlan::Join(Join { left, right, ..join });
    Ok(Transformed::yes(join.recompute_schema()?))
}
