//! DataFusion's planner walks a statement in one call. It asks for the meaning of operators, aggregates and window functions on its
//! way: here it is looked whether the query is over.

use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::planner::{
    ExprPlanner, PlannerResult, RawAggregateExpr, RawBinaryExpr, RawDictionaryExpr, RawWindowExpr,
};

use crate::functions::structure_sizes::{NAMED_STRUCT, STRUCT};
use crate::limits::QueryUsage;

/// Plans nothing itself but structures, whose size is bounded.
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

    fn plan_dictionary_literal(
        &self,
        expr: RawDictionaryExpr,
        _schema: &DFSchema,
    ) -> Result<PlannerResult<RawDictionaryExpr>> {
        let args = expr.keys.into_iter().zip(expr.values).flat_map(|(key, value)| [key, value]);
        Ok(PlannerResult::Planned(NAMED_STRUCT.call(args.collect())))
    }

    fn plan_struct_literal(&self, args: Vec<Expr>, is_named_struct: bool) -> Result<PlannerResult<Vec<Expr>>> {
        let function = if is_named_struct { &NAMED_STRUCT } else { &STRUCT };
        Ok(PlannerResult::Planned(function.call(args)))
    }
}
