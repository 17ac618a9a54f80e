//! DataFusion's planner walks a statement in one call. It asks for the meaning of operators, aggregates and window functions on its
//! way: here it is looked whether the query is over.

use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawAggregateExpr, RawBinaryExpr, RawWindowExpr};

use crate::limits::QueryUsage;

/// Plans nothing itself.
#[derive(Debug)]
pub(super) struct InterruptiblePlanning;

impl ExprPlanner for InterruptiblePlanning {
    fn plan_binary_op(&self, expr: RawBinaryExpr, _schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        QueryUsage::check_current()?;
        Ok(PlannerResult::Original(expr))
    }

    fn plan_aggregate(&self, expr: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>> {
        QueryUsage::check_current()?;
        Ok(PlannerResult::Original(expr))
    }

    fn plan_window(&self, expr: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        QueryUsage::check_current()?;
        Ok(PlannerResult::Original(expr))
    }
}
