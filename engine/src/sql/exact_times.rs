//! Comparisons of timestamps of nanoseconds with coarser ones. DataFusion 54 compares them without the digits that the coarser ones
//! lack, so that 00:00:00.000001001 would be 00:00:00.000001; and as nanoseconds those of most years could not be compared. Here
//! they are compared by how many nanoseconds they are from 1970. Constants are settled elsewhere ([`super::time_comparisons`]).

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::functions::expr_fn::date_trunc;
use datafusion::logical_expr::expr::{Cast, InList, InSubquery, SetComparison};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, Join, LogicalPlan, Operator, Subquery, lit};

use super::elapsed_times::compares;
use super::field_access::own_call;
use super::in_subqueries::with_values;
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
        Expr::InSubquery(InSubquery { expr, subquery, negated })
            if need_all_digits_of_values(&expr, schema, &subquery) =>
        {
            let subquery = with_values(subquery, |value| nanoseconds(value).map(|value| *value))?;
            Transformed::yes(Expr::InSubquery(InSubquery { expr: nanoseconds(*expr)?, subquery, negated }))
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier })
            if need_all_digits_of_values(&expr, schema, &subquery) =>
        {
            let subquery = with_values(subquery, |value| nanoseconds(value).map(|value| *value))?;
            let expr = nanoseconds(*expr)?;
            Transformed::yes(Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }))
        }
        other => Transformed::no(other),
    })
}

/// Returns a condition on a column of timestamps of seconds or milliseconds that holds wherever its comparison with a constant of
/// more digits does, and by which scans prune; `None` for other comparisons.
pub(super) fn bound_of_column(left: (&Expr, &DataType), op: Operator, right: (&Expr, &DataType)) -> Option<Expr> {
    let ((column, column_type), op, (constant, constant_type)) = match (left.0, right.0) {
        (Expr::Column(_), _) => (left, op, right),
        (_, Expr::Column(_)) => (right, op.swap()?, left),
        _ => return None,
    };
    let (DataType::Timestamp(unit, _), DataType::Timestamp(_, _)) = (column_type, constant_type) else { return None };
    let part = match unit {
        TimeUnit::Second => "second",
        TimeUnit::Millisecond => "millisecond",
        TimeUnit::Microsecond | TimeUnit::Nanosecond => return None,
    };
    if varies(constant) || constant.is_volatile() {
        return None;
    }
    let cut = date_trunc(lit(part), constant.clone());
    let bound = Expr::Cast(Cast::new(Box::new(cut), column_type.clone()));
    match op {
        Operator::Eq => Some(column.clone().eq(bound)),
        Operator::Lt | Operator::LtEq => Some(column.clone().lt_eq(bound)),
        Operator::Gt | Operator::GtEq => Some(column.clone().gt_eq(bound)),
        _ => None,
    }
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

/// Returns whether values are timestamps, some of nanoseconds and some coarser, of one zone. Beside columns, constants have no say.
fn need_all_digits(values: &[(&Expr, &DFSchema)]) -> bool {
    let is_constant = values.iter().all(|(value, _)| !varies(value));
    let mut zones = Vec::with_capacity(values.len());
    let (mut has_fine, mut has_coarse) = (false, false);
    for (value, schema) in values {
        let Ok(DataType::Timestamp(unit, zone)) = value.get_type(*schema) else { return false };
        zones.push(zone);
        if is_constant || varies(value) {
            has_fine |= unit == TimeUnit::Nanosecond;
            has_coarse |= unit != TimeUnit::Nanosecond;
        }
    }
    has_fine && has_coarse && zones.windows(2).all(|pair| is_one_zone(pair[0].as_deref(), pair[1].as_deref()))
}

fn need_all_digits_of_values(sought: &Expr, schema: &DFSchema, subquery: &Subquery) -> bool {
    let Ok(DataType::Timestamp(unit, zone)) = sought.get_type(schema) else { return false };
    let DataType::Timestamp(other, other_zone) = subquery.subquery.schema().field(0).data_type() else { return false };
    let is_mixed = (unit == TimeUnit::Nanosecond) != (*other == TimeUnit::Nanosecond);
    is_mixed && is_one_zone(zone.as_deref(), other_zone.as_deref())
}

/// Whether a value is another one in each row, or is only known when the query runs.
fn varies(value: &Expr) -> bool {
    let is_of_row =
        |part: &Expr| Ok(matches!(part, Expr::Column(_) | Expr::OuterReferenceColumn(_, _) | Expr::ScalarSubquery(_)));
    value.exists(is_of_row).unwrap_or(true)
}

/// Returns whether times of two zones are the same instants by their numbers: a time without a zone is one in UTC.
pub(super) fn is_one_zone(left: Option<&str>, right: Option<&str>) -> bool {
    let is_utc = |zone: Option<&str>| zone.is_none_or(|zone| matches!(zone, "UTC" | "+00:00" | "Z"));
    left == right || (is_utc(left) && is_utc(right))
}

fn nanoseconds(time: Expr) -> Result<Box<Expr>> {
    own_call(NANOSECONDS, vec![time]).map(Box::new)
}
