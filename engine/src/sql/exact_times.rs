//! Comparisons of timestamps of nanoseconds with coarser ones. DataFusion 54 compares them without the digits that the coarser ones
//! lack, so that 00:00:00.000001001 would be 00:00:00.000001; and as nanoseconds those of most years could not be compared. Here
//! they are compared by how many nanoseconds they are from 1970. Constants are settled elsewhere ([`super::time_comparisons`]).

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, Join, LogicalPlan};

use super::elapsed_times::compares;
use super::field_access::own_call;
use crate::functions::NANOSECONDS;

/// Returns an expression that compares such timestamps by their nanoseconds.
pub(super) fn with_exact_times(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if compares(op) && need_all_digits(&[(left.as_ref(), schema), (right.as_ref(), schema)]) =>
        {
            let comparison = BinaryExpr::new(nanoseconds(*left)?, op, nanoseconds(*right)?);
            Transformed::yes(Expr::BinaryExpr(comparison))
        }
        Expr::Between(Between { expr, negated, low, high })
            if need_all_digits(&[(expr.as_ref(), schema), (low.as_ref(), schema), (high.as_ref(), schema)]) =>
        {
            let (expr, low, high) = (nanoseconds(*expr)?, nanoseconds(*low)?, nanoseconds(*high)?);
            Transformed::yes(Expr::Between(Between::new(expr, negated, low, high)))
        }
        Expr::InList(InList { expr, list, negated }) => {
            let all: Vec<_> = std::iter::once(expr.as_ref()).chain(&list).map(|value| (value, schema)).collect();
            if !need_all_digits(&all) {
                return Ok(Transformed::no(Expr::InList(InList { expr, list, negated })));
            }
            let list = list.into_iter().map(|value| nanoseconds(value).map(|value| *value)).collect::<Result<_>>()?;
            Transformed::yes(Expr::InList(InList { expr: nanoseconds(*expr)?, list, negated }))
        }
        other => Transformed::no(other),
    })
}

/// Returns a join whose keys are such timestamps as one by their nanoseconds.
pub(super) fn with_exact_keys(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(join) = node else { return Ok(Transformed::no(node)) };
    let (left_schema, right_schema) = (join.left.schema().as_ref(), join.right.schema().as_ref());
    let need = |(left, right): &(Expr, Expr)| need_all_digits(&[(left, left_schema), (right, right_schema)]);
    if !join.on.iter().any(need) {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let exact = |pair: &(Expr, Expr)| match need(pair) {
        true => Ok((*nanoseconds(pair.0.clone())?, *nanoseconds(pair.1.clone())?)),
        false => Ok(pair.clone()),
    };
    let on = join.on.iter().map(exact).collect::<Result<_>>()?;
    Ok(Transformed::yes(LogicalPlan::Join(Join { on, ..join })))
}

/// Returns whether values are timestamps, some of nanoseconds and some coarser, of one zone. Constants have no say.
fn need_all_digits(values: &[(&Expr, &DFSchema)]) -> bool {
    let mut zones = Vec::with_capacity(values.len());
    let (mut has_fine, mut has_coarse) = (false, false);
    for (value, schema) in values {
        let Ok(DataType::Timestamp(unit, zone)) = value.get_type(*schema) else { return false };
        zones.push(zone);
        if value.any_column_refs() {
            has_fine |= unit == TimeUnit::Nanosecond;
            has_coarse |= unit != TimeUnit::Nanosecond;
        }
    }
    has_fine && has_coarse && zones.windows(2).all(|pair| pair[0] == pair[1])
}

fn nanoseconds(time: Expr) -> Result<Box<Expr>> {
    own_call(NANOSECONDS, vec![time]).map(Box::new)
}
