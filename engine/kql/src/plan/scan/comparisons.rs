//! Filters on stored columns as their files can use them. Where a filter compares what a conversion to KQL's type made
//! of a column, it compares the column instead, so that statistics skip row groups and no row is converted to be
//! dropped. A filter does not tell false from null, which is what makes it the same.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Case, InList};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Filter, LogicalPlan, Operator, lit};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::simplify_expressions::simplify_predicates;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::conversion::StoredConversion;
use crate::values::{
    MAX_DATETIME_TICKS, TICKS_PER_DAY, TICKS_PER_MICROSECOND, TICKS_PER_MILLISECOND, TICKS_PER_SECOND, UNIX_EPOCH_TICKS,
};

const NANOSECONDS_PER_TICK: i64 = 100;

/// The optimizer rule.
#[derive(Debug)]
pub struct StoredComparisons;

impl OptimizerRule for StoredComparisons {
    fn name(&self) -> &str {
        "kql_stored_comparisons"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Filter(filter) if converts(&filter.predicate) => {
                let schema = filter.input.schema();
                let rewritten = conditions(split_conjunction_owned(filter.predicate.clone()), schema)?;
                if !rewritten.transformed {
                    return Ok(Transformed::no(LogicalPlan::Filter(filter)));
                }
                let predicate = conjunction(rewritten.data).unwrap_or_else(|| lit(true));
                Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?)))
            }
            LogicalPlan::TableScan(mut scan) if scan.filters.iter().any(converts) => {
                let schema = DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?;
                let rewritten = conditions(std::mem::take(&mut scan.filters), &schema)?;
                scan.filters = rewritten.data;
                Ok(Transformed::new_transformed(LogicalPlan::TableScan(scan), rewritten.transformed))
            }
            other => Ok(Transformed::no(other)),
        }
    }
}

/// Whether there is anything to do here.
fn converts(condition: &Expr) -> bool {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And | Operator::Or, right }) => {
            converts(left) || converts(right)
        }
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => conversion(left).or(conversion(right)).is_some(),
        Expr::InList(InList { expr, .. }) => conversion(expr).is_some(),
        Expr::Case(case) => or_false(case).is_some_and(converts),
        _ => false,
    }
}

fn conditions(all: Vec<Expr>, schema: &DFSchema) -> Result<Transformed<Vec<Expr>>> {
    let mut is_changed = false;
    let mut rewritten = Vec::with_capacity(all.len());
    for one in all {
        match condition(&one, schema)? {
            Some(expr) => {
                is_changed = true;
                rewritten.extend(split_conjunction_owned(expr));
            }
            None => rewritten.push(one),
        }
    }
    let rewritten = if is_changed { simplify_predicates(rewritten)? } else { rewritten };
    Ok(Transformed::new_transformed(rewritten, is_changed))
}

/// What holds where a condition holds; `None` where that is itself.
fn condition(expr: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let sides = [condition(left, schema)?, condition(right, schema)?];
            match sides {
                [None, None] => None,
                [new_left, new_right] => {
                    let (left, right) = (
                        new_left.unwrap_or_else(|| left.as_ref().clone()),
                        new_right.unwrap_or_else(|| right.as_ref().clone()),
                    );
                    Some(if *op == Operator::And { left.and(right) } else { left.or(right) })
                }
            }
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (left.as_ref(), right.as_ref()) {
            (converted, Expr::Literal(value, _)) => comparison(converted, *op, value, schema)?,
            (Expr::Literal(value, _), converted) => match op.swap() {
                Some(op) => comparison(converted, op, value, schema)?,
                None => None,
            },
            _ => None,
        },
        Expr::InList(list) => in_list(list, schema)?,
        Expr::Case(case) => match or_false(case) {
            Some(inner) => condition(inner, schema)?.or_else(|| Some(inner.clone())),
            None => None,
        },
        _ => None,
    })
}

/// The condition inside `CASE WHEN x IS NOT NULL THEN condition ELSE false END`, which is null only where `x` is.
fn or_false(case: &Case) -> Option<&Expr> {
    let (None, [(when, then)], Some(Expr::Literal(ScalarValue::Boolean(Some(false)), _))) =
        (&case.expr, case.when_then_expr.as_slice(), case.else_expr.as_deref())
    else {
        return None;
    };
    match (when.as_ref(), then.as_ref()) {
        (Expr::IsNotNull(value), Expr::InList(InList { expr, .. })) if value == expr => Some(then),
        _ => None,
    }
}

/// Returns the conversion that an expression is, and the stored column in it.
fn conversion(expr: &Expr) -> Option<(StoredConversion, &Expr)> {
    let Expr::ScalarFunction(call) = expr else { return None };
    let [stored] = call.args.as_slice() else { return None };
    StoredConversion::from_udf(&call.func).map(|conversion| (conversion, stored))
}

fn comparison(expr: &Expr, op: Operator, value: &ScalarValue, schema: &DFSchema) -> Result<Option<Expr>> {
    let Some((conversion, stored)) = conversion(expr) else { return Ok(None) };
    let stored_type = stored.get_type(schema)?;
    Ok(match (conversion, value) {
        (StoredConversion::String, ScalarValue::Utf8View(Some(text))) => {
            let value = value.cast_to(&stored_type)?;
            text_comparison(stored.clone(), op, text.is_empty(), lit(value))
        }
        (StoredConversion::Ticks, ScalarValue::Int64(Some(ticks))) => {
            ticks_comparison(stored, &stored_type, op, *ticks)
        }
        _ => None,
    })
}

/// Null is the empty text, and so before all others.
fn text_comparison(stored: Expr, op: Operator, is_empty: bool, value: Expr) -> Option<Expr> {
    Some(match (op, is_empty) {
        (Operator::Eq, false) => stored.eq(value),
        (Operator::NotEq, false) => stored.clone().not_eq(value).or(stored.is_null()),
        (Operator::Gt, _) => stored.gt(value),
        (Operator::GtEq, false) => stored.gt_eq(value),
        (Operator::Lt, false) => stored.clone().lt(value).or(stored.is_null()),
        (Operator::LtEq, false) => stored.clone().lt_eq(value).or(stored.is_null()),
        (Operator::Eq, true) => stored.clone().eq(value).or(stored.is_null()),
        (Operator::NotEq, true) => stored.not_eq(value),
        _ => return None,
    })
}

/// What KQL's years do not hold is null, so that each comparison has an end on the other side too.
fn ticks_comparison(stored: &Expr, stored_type: &DataType, op: Operator, ticks: i64) -> Option<Expr> {
    let from = |ticks: i64| Some(stored.clone().gt_eq(lit(first_at(stored_type, ticks)?)));
    let before = |ticks: i64| Some(stored.clone().lt(lit(first_at(stored_type, ticks)?)));
    // What a type cannot hold needs no end.
    let and_in_years = |condition: Expr, end: Option<Expr>| Some(end.into_iter().fold(condition, Expr::and));
    let (first, last) = (0, MAX_DATETIME_TICKS);
    let next = ticks.checked_add(1)?;
    match op {
        Operator::Eq => Some(from(ticks)?.and(before(next)?)),
        Operator::Gt => and_in_years(from(next)?, before(last + 1)),
        Operator::GtEq => and_in_years(from(ticks)?, before(last + 1)),
        Operator::Lt => and_in_years(before(ticks)?, from(first)),
        Operator::LtEq => and_in_years(before(next)?, from(first)),
        _ => None,
    }
}

/// The first stored value that is as late as the ticks or later.
fn first_at(stored_type: &DataType, ticks: i64) -> Option<ScalarValue> {
    let since_1970 = ticks.checked_sub(UNIX_EPOCH_TICKS)?;
    let rounded_up = |unit: i64| Some(since_1970.div_euclid(unit) + i64::from(since_1970.rem_euclid(unit) != 0));
    Some(match stored_type {
        DataType::Date32 => ScalarValue::Date32(Some(i32::try_from(rounded_up(TICKS_PER_DAY)?).ok()?)),
        DataType::Timestamp(TimeUnit::Second, zone) => {
            ScalarValue::TimestampSecond(rounded_up(TICKS_PER_SECOND), zone.clone())
        }
        DataType::Timestamp(TimeUnit::Millisecond, zone) => {
            ScalarValue::TimestampMillisecond(rounded_up(TICKS_PER_MILLISECOND), zone.clone())
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            ScalarValue::TimestampMicrosecond(rounded_up(TICKS_PER_MICROSECOND), zone.clone())
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            ScalarValue::TimestampNanosecond(Some(since_1970.checked_mul(NANOSECONDS_PER_TICK)?), zone.clone())
        }
        _ => return None,
    })
}

/// `in` of texts that are not empty.
fn in_list(list: &InList, schema: &DFSchema) -> Result<Option<Expr>> {
    let Some((StoredConversion::String, stored)) = conversion(&list.expr) else { return Ok(None) };
    let stored_type = stored.get_type(schema)?;
    let mut values = Vec::with_capacity(list.list.len());
    for item in &list.list {
        match item {
            Expr::Literal(value @ ScalarValue::Utf8View(Some(text)), _) if !text.is_empty() => {
                values.push(lit(value.cast_to(&stored_type)?));
            }
            _ => return Ok(None),
        }
    }
    let found = Expr::InList(InList::new(Box::new(stored.clone()), values, list.negated));
    Ok(Some(if list.negated { found.or(stored.clone().is_null()) } else { found }))
}
