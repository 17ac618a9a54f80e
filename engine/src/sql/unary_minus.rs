//! The sign of a number, which binds tighter here than in the parser.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value};

/// In PostgreSQL and DuckDB a minus belongs to the number behind it: `-7 ^ 2` is 49. The parser takes powers and shifts first.
pub(super) fn bind_minus(expr: &mut Expr) {
    let Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr: operand } = expr else { return };
    let binds_tighter = |operand: &Expr| {
        let Expr::BinaryOp { op, .. } = operand else { return false };
        matches!(
            op,
            BinaryOperator::BitwiseXor
                | BinaryOperator::PGExp
                | BinaryOperator::PGBitwiseShiftLeft
                | BinaryOperator::PGBitwiseShiftRight
        )
    };
    if !binds_tighter(operand) {
        return;
    }
    let mut whole = std::mem::replace(operand.as_mut(), Expr::Value(Value::Null.into()));
    let mut first = &mut whole;
    while binds_tighter(first) {
        let Expr::BinaryOp { left, .. } = first else { break };
        first = left.as_mut();
    }
    **operand = std::mem::replace(first, Expr::Value(Value::Null.into()));
    *first = std::mem::replace(expr, Expr::Value(Value::Null.into()));
    *expr = whole;
}
