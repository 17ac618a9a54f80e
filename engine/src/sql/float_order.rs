//! Doubles that are compared: a zero has no sign and there is one NaN, as in PostgreSQL and DuckDB. Arrow compares their bits, in
//! which -0.0 is less than 0.0, and the NaN that a processor computes less than every number.
//!
//! What is computed is brought to that form where it is compared, sorted, grouped or given a name. Columns of tables may hold a
//! -0.0. A comparison of one with a literal costs nothing: only that with zero is another, between the two zeros, by which scans
//! still prune. Where two columns are compared, and where columns are grouped or made distinct, they are brought to the form too.
//! In the order of rows, in windows and in `USING` the two zeros are told apart. Lists, structures and maps have the form, too, where
//! they are compared, grouped or made distinct: they are looked into there.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Case, InList};
use datafusion::logical_expr::{
    Between, BinaryExpr, Distinct, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, lit, not,
};

use super::elapsed_times::compares;
use super::field_access::own_call;
use crate::functions::{PLAIN_DOUBLE, holds_doubles};

/// The functions that compare their arguments.
const COMPARING: [&str; 3] = ["greatest", "least", "nullif"];

/// The zeros of a type of floating-point numbers, the least first.
struct Zeros(Expr, Expr);

/// Returns whether an expression may be a comparison of a column with zero.
pub(super) fn may_compare_zero(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => compares(*op) && (is_zero(left) || is_zero(right)),
        Expr::AggregateFunction(call) => call.params.distinct,
        _ => false,
    }
}

/// Returns whether rows are grouped or made distinct by columns that are doubles.
pub(super) fn groups_doubles(node: &LogicalPlan) -> bool {
    match node {
        LogicalPlan::Aggregate(aggregate) => {
            let mut groups = aggregate.schema.fields().iter().take(aggregate.group_expr.len());
            groups.any(|field| holds_doubles(field.data_type()))
        }
        LogicalPlan::Distinct(Distinct::All(input)) => {
            input.schema().fields().iter().any(|field| holds_doubles(field.data_type()))
        }
        _ => false,
    }
}

/// Returns rows that are made distinct with their doubles in one form.
pub(super) fn with_plain_rows(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Distinct(Distinct::All(input)) = &node else { return Ok(Transformed::no(node)) };
    let is_plain = match input.as_ref() {
        LogicalPlan::Projection(select) => select.expr.iter().all(|expr| is_plain_double(expr, select.input.schema())),
        _ => false,
    };
    if !groups_doubles(&node) || is_plain {
        return Ok(Transformed::no(node));
    }
    let mut columns = Vec::with_capacity(input.schema().fields().len());
    for (relation, field) in input.schema().iter() {
        let column = Expr::Column(Column::new(relation.cloned(), field.name()));
        columns.push(match holds_doubles(field.data_type()) {
            true => own_call(PLAIN_DOUBLE, vec![column])?.alias_qualified(relation.cloned(), field.name()),
            false => column,
        });
    }
    let rows = LogicalPlanBuilder::from(Arc::clone(input)).project(columns)?.build()?;
    Ok(Transformed::yes(LogicalPlan::Distinct(Distinct::All(Arc::new(rows)))))
}

/// Whether an expression is no double, or one in that form.
fn is_plain_double(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Alias(alias) => is_plain_double(&alias.expr, schema),
        Expr::ScalarFunction(call) if call.name() == PLAIN_DOUBLE => true,
        other => !is_double(other, schema) && !nests_doubles(other, schema),
    }
}

/// Returns whether an expression computes what may be a double.
pub(super) fn may_compute_double(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => op.is_numerical_operators(),
        Expr::ScalarFunction(call) => call.name() != PLAIN_DOUBLE,
        Expr::Negative(_) | Expr::Case(_) => true,
        Expr::Cast(cast) => cast.field.data_type().is_floating(),
        Expr::TryCast(cast) => cast.field.data_type().is_floating(),
        _ => false,
    }
}

/// Returns a comparison whose doubles are in one form.
pub(super) fn with_plain_operands(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(op) => {
            if let Some(compared) = compared_with_zero(&left, op, &right, schema) {
                return Ok(Transformed::yes(compared));
            }
            let is_nested = nests_doubles(&left, schema) || nests_doubles(&right, schema);
            let is_among_columns = is_nested || (has_columns(&left) && has_columns(&right));
            let has_null = matches!(op, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom);
            let takes_columns = is_among_columns || (has_null && (is_zero(&left) || is_zero(&right)));
            let (left, right) = (operand(*left, takes_columns, schema)?, operand(*right, takes_columns, schema)?);
            let changed = left.transformed || right.transformed;
            let comparison = BinaryExpr::new(Box::new(left.data), op, Box::new(right.data));
            Ok(Transformed::new_transformed(Expr::BinaryExpr(comparison), changed))
        }
        Expr::InList(InList { expr, mut list, negated })
            if is_double(&expr, schema) || nests_doubles(&expr, schema) =>
        {
            let is_pruned = matches!(*expr, Expr::Column(_)) && !list.iter().any(has_columns);
            if let Some(Zeros(least, greatest)) = zeros_of_column(&expr, schema).filter(|_| is_pruned) {
                let lacks_zero = list.iter().any(is_zero) && !(list.contains(&least) && list.contains(&greatest));
                list.extend(lacks_zero.then_some([least, greatest]).into_iter().flatten());
                let list = Expr::InList(InList::new(expr, list, negated));
                return Ok(Transformed::new_transformed(list, lacks_zero));
            }
            let expr = operand(*expr, true, schema)?;
            let mut changed = expr.transformed;
            for item in &mut list {
                let is_taken = is_zero(item) || has_columns(item) || nests_doubles(item, schema);
                let plain = operand(std::mem::take(item), is_taken, schema)?;
                changed |= plain.transformed;
                *item = plain.data;
            }
            Ok(Transformed::new_transformed(Expr::InList(InList::new(Box::new(expr.data), list, negated)), changed))
        }
        Expr::Between(Between { expr, negated, low, high }) if is_double(&expr, schema) => {
            let compared = |op: Operator, end: Expr| -> Result<Expr> {
                let comparison = BinaryExpr::new(expr.clone(), op, Box::new(end));
                Ok(with_plain_operands(Expr::BinaryExpr(comparison), schema)?.data)
            };
            let within = compared(Operator::GtEq, *low)?.and(compared(Operator::LtEq, *high)?);
            Ok(Transformed::yes(if negated { not(within) } else { within }))
        }
        Expr::Case(Case { expr: Some(value), when_then_expr, else_expr }) => {
            let value = operand(*value, true, schema)?;
            let mut changed = value.transformed;
            let mut branches = Vec::with_capacity(when_then_expr.len());
            for (when, then) in when_then_expr {
                let when = operand(*when, true, schema)?;
                changed |= when.transformed;
                branches.push((Box::new(when.data), then));
            }
            let case = Case { expr: Some(Box::new(value.data)), when_then_expr: branches, else_expr };
            Ok(Transformed::new_transformed(Expr::Case(case), changed))
        }
        Expr::ScalarFunction(mut call) if COMPARING.contains(&call.name()) => {
            let mut changed = false;
            let takes_columns = call.name() == "nullif";
            for arg in &mut call.args {
                let operand = operand(std::mem::take(arg), takes_columns, schema)?;
                changed |= operand.transformed;
                *arg = operand.data;
            }
            Ok(Transformed::new_transformed(Expr::ScalarFunction(call), changed))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// Returns whether what a node computes is sorted, grouped or has a name that nodes above compare.
pub(super) fn has_compared_results(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Projection(_) | LogicalPlan::Sort(_))
}

/// Returns an expression of such a node in that form; where rows are grouped by it, a column too.
pub(super) fn with_plain_result(expr: Expr, is_group: bool, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::Column(_) if is_group => operand(expr, true, schema),
        Expr::Alias(mut alias) => {
            let inner = plain(*alias.expr, schema)?;
            alias.expr = Box::new(inner.data);
            Ok(Transformed::new_transformed(Expr::Alias(alias), inner.transformed))
        }
        Expr::AggregateFunction(mut call) => {
            let mut changed = false;
            for arg in &mut call.params.args {
                let inner = operand(std::mem::take(arg), call.params.distinct, schema)?;
                changed |= inner.transformed;
                *arg = inner.data;
            }
            Ok(Transformed::new_transformed(Expr::AggregateFunction(call), changed))
        }
        other if is_group && nests_doubles(&other, schema) => operand(other, true, schema),
        other => plain(other, schema),
    }
}

fn plain(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match may_compute_double(&expr) && is_double(&expr, schema) {
        true => Ok(Transformed::yes(own_call(PLAIN_DOUBLE, vec![expr])?)),
        false => Ok(Transformed::no(expr)),
    }
}

/// Returns an operand in that form, where it is computed, or a column or a value that is taken too: a value that was bound may
/// be a -0.0. Lists and structures have that form only where they are taken.
fn operand(expr: Expr, takes_columns: bool, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_given = matches!(expr, Expr::Column(_) | Expr::Literal(_, _));
    match takes_columns && ((is_given && is_double(&expr, schema)) || nests_doubles(&expr, schema)) {
        true => Ok(Transformed::yes(own_call(PLAIN_DOUBLE, vec![expr])?)),
        false => plain(expr, schema),
    }
}

/// Whether an expression is a list, a structure or a map with doubles in it, and not in that form.
fn nests_doubles(expr: &Expr, schema: &DFSchema) -> bool {
    let is_plain = matches!(expr, Expr::ScalarFunction(call) if call.name() == PLAIN_DOUBLE);
    !is_plain && expr.get_type(schema).is_ok_and(|found| found.is_nested() && holds_doubles(&found))
}

fn is_double(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Float32 | DataType::Float64))
}

/// Returns a comparison of a column with zero as one with the zero that has the other on its far side.
fn compared_with_zero(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> Option<Expr> {
    let (column, op) = match (is_zero(left), is_zero(right)) {
        (false, true) => (left, op),
        (true, false) => (right, op.swap()?),
        _ => return None,
    };
    let Zeros(least, greatest) = zeros_of_column(column, schema)?;
    let column = column.clone();
    Some(match op {
        Operator::Eq => column.clone().gt_eq(least).and(column.lt_eq(greatest)),
        Operator::NotEq => column.clone().lt(least).or(column.gt(greatest)),
        Operator::Lt => column.lt(least),
        Operator::LtEq => column.lt_eq(greatest),
        Operator::Gt => column.gt(greatest),
        Operator::GtEq => column.gt_eq(least),
        _ => return None,
    })
}

fn zeros_of_column(expr: &Expr, schema: &DFSchema) -> Option<Zeros> {
    if !matches!(expr, Expr::Column(_)) {
        return None;
    }
    match expr.get_type(schema).ok()? {
        DataType::Float32 => Some(Zeros(lit(-0.0_f32), lit(0.0_f32))),
        DataType::Float64 => Some(Zeros(lit(-0.0_f64), lit(0.0_f64))),
        _ => None,
    }
}

/// Whether an expression is a zero as it is written: `0`, `-0.0`, `'0'::DOUBLE`.
fn is_zero(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) if value.is_null() => false,
        Expr::Literal(value, _) => match value.data_type() {
            data_type if data_type.is_numeric() => {
                matches!(value.cast_to(&DataType::Float64), Ok(ScalarValue::Float64(Some(number))) if number == 0.0)
            }
            _ => false,
        },
        Expr::Cast(cast) if cast.field.data_type().is_numeric() => match cast.expr.as_ref() {
            Expr::Literal(value, _) if value.try_as_str().is_some() => {
                let text = value.try_as_str().flatten();
                text.and_then(|text| text.trim().parse::<f64>().ok()).is_some_and(|number| number == 0.0)
            }
            inner => is_zero(inner),
        },
        Expr::Negative(inner) => is_zero(inner),
        Expr::ScalarFunction(call) if call.name() == PLAIN_DOUBLE => call.args.iter().all(is_zero),
        _ => false,
    }
}

/// Whether a value is one of each row, which no scan prunes by.
fn has_columns(expr: &Expr) -> bool {
    expr.any_column_refs() || expr.exists(|part| Ok(matches!(part, Expr::ScalarSubquery(_)))).unwrap_or(true)
}
