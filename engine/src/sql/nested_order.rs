//! The order of rows, structures, maps and lists: by their first parts that differ, and a null among them is a value after all
//! others, as in DuckDB and in PostgreSQL's values of composite types, and as ORDER BY has it. Arrow's comparisons take it for the
//! least.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, Operator, lit};

use super::field_access::own_call;
use crate::functions::NESTED_ORDER;

/// Returns whether an expression may compare such values.
pub(super) fn may_order_nested(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => orders(*op),
        Expr::Between(_) => true,
        _ => false,
    }
}

/// Returns a comparison of such values as one of their order.
pub(super) fn with_nested_order(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_nested = |expr: &Expr| {
        matches!(
            expr.get_type(schema),
            Ok(DataType::Struct(_)
                | DataType::Map(_, _)
                | DataType::List(_)
                | DataType::LargeList(_)
                | DataType::FixedSizeList(_, _))
        )
    };
    let compared = |left: Expr, op: Operator, right: Expr| -> Result<Expr> {
        let order = own_call(NESTED_ORDER, vec![left, right])?;
        Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(order), op, Box::new(lit(0_i64)))))
    };
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if orders(op) && is_nested(&left) && is_nested(&right) => {
            Ok(Transformed::yes(compared(*left, op, *right)?))
        }
        Expr::Between(Between { expr, negated, low, high })
            if is_nested(&expr) && is_nested(&low) && is_nested(&high) =>
        {
            let above = compared((*expr).clone(), Operator::GtEq, *low)?;
            let within = above.and(compared(*expr, Operator::LtEq, *high)?);
            Ok(Transformed::yes(if negated { Expr::Not(Box::new(within)) } else { within }))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn orders(op: Operator) -> bool {
    matches!(op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}
