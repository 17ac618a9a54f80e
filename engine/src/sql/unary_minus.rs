//! The sign of a number, which binds tighter here than in the parser.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};

use super::shorthand::taken;

/// In PostgreSQL and DuckDB a minus belongs to the number behind it: `-7 ^ 2` is 49. The parser takes powers first.
pub(super) fn bind_minus(expr: &mut Expr) {
    let Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr: operand } = expr else { return };
    let binds_tighter = |operand: &Expr| {
        matches!(operand, Expr::BinaryOp { op: BinaryOperator::BitwiseXor | BinaryOperator::PGExp, .. })
    };
    if !binds_tighter(operand) {
        return;
    }
    let mut whole = taken(operand.as_mut());
    let mut first = &mut whole;
    while binds_tighter(first) {
        let Expr::BinaryOp { left, .. } = first else { break };
        first = left.as_mut();
    }
    **operand = taken(first);
    *first = taken(expr);
    *expr = whole;
}
