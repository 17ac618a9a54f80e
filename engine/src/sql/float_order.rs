//! Doubles that are compared: a zero has no sign and there is one NaN, as in PostgreSQL and DuckDB. Arrow compares their bits, in
//! which -0.0 is less than 0.0, and the NaN that a processor computes less than every number.
//!
//! What is computed is brought to that form where it is compared, sorted, grouped or given a name; columns of tables are taken
//! to be in it.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan};

use super::elapsed_times::compares;
use super::field_access::own_call;
use crate::functions::PLAIN_DOUBLE;

/// The functions that compare their arguments.
const COMPARING: [&str; 3] = ["greatest", "least", "nullif"];

/// Returns whether an expression computes what may be a double.
pub(super) fn may_compute_double(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => op.is_numerical_operators(),
        Expr::ScalarFunction(call) => call.name() != PLAIN_DOUBLE,
        Expr::Negative(_) => true,
        Expr::Cast(cast) => cast.field.data_type().is_floating(),
        Expr::TryCast(cast) => cast.field.data_type().is_floating(),
        _ => false,
    }
}

/// Returns a comparison whose doubles are in one form.
pub(super) fn with_plain_operands(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(op) => {
            let (left, right) = (plain(*left, schema)?, plain(*right, schema)?);
            let changed = left.transformed || right.transformed;
            let comparison = BinaryExpr::new(Box::new(left.data), op, Box::new(right.data));
            Ok(Transformed::new_transformed(Expr::BinaryExpr(comparison), changed))
        }
        Expr::InList(InList { expr, list, negated }) => {
            plain(*expr, schema)?.map_data(|expr| Ok(Expr::InList(InList::new(Box::new(expr), list, negated))))
        }
        Expr::ScalarFunction(mut call) if COMPARING.contains(&call.name()) => {
            let mut changed = false;
            for arg in &mut call.args {
                let operand = plain(std::mem::take(arg), schema)?;
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

/// Returns an expression of such a node in that form.
pub(super) fn with_plain_result(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::Alias(mut alias) => {
            let inner = plain(*alias.expr, schema)?;
            alias.expr = Box::new(inner.data);
            Ok(Transformed::new_transformed(Expr::Alias(alias), inner.transformed))
        }
        Expr::AggregateFunction(mut call) => {
            let mut changed = false;
            for arg in &mut call.params.args {
                let inner = plain(std::mem::take(arg), schema)?;
                changed |= inner.transformed;
                *arg = inner.data;
            }
            Ok(Transformed::new_transformed(Expr::AggregateFunction(call), changed))
        }
        other => plain(other, schema),
    }
}

fn plain(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_double = |expr: &Expr| matches!(expr.get_type(schema), Ok(DataType::Float32 | DataType::Float64));
    match may_compute_double(&expr) && is_double(&expr) {
        true => Ok(Transformed::yes(own_call(PLAIN_DOUBLE, vec![expr])?)),
        false => Ok(Transformed::no(expr)),
    }
}
