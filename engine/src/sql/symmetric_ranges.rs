//! `x BETWEEN SYMMETRIC a AND b`, whose ends may stand either way round. The parser knows no such word: the tokens have a mark
//! before the first end in its place, which is taken out here.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, VisitorMut};

use super::marks;
use super::shorthand::taken;
use super::syntax::try_visit_statement;
use crate::error::{EngineError, Result};

/// Writes out the marked ranges of a statement, each as both that it may be.
pub(super) fn write_out_symmetric(statement: &mut Statement) -> Result<()> {
    try_visit_statement(statement, &mut SymmetricRanges)
}

struct SymmetricRanges;

impl VisitorMut for SymmetricRanges {
    type Break = EngineError;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<EngineError> {
        if let Expr::Between { expr: value, negated, low, high } = expr
            && takes_mark(low)
        {
            let is_negated = *negated;
            let (value, low, high): (Expr, Expr, Expr) = (taken(value), taken(low), taken(high));
            let either = Expr::BinaryOp {
                left: Box::new(between(value.clone(), low.clone(), high.clone())),
                op: BinaryOperator::Or,
                right: Box::new(between(value, high, low)),
            };
            let either = Expr::Nested(Box::new(either));
            *expr = match is_negated {
                true => Expr::Nested(Box::new(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(either) })),
                false => either,
            };
        }
        ControlFlow::Continue(())
    }
}

fn between(value: Expr, low: Expr, high: Expr) -> Expr {
    Expr::Between { expr: Box::new(value), negated: false, low: Box::new(low), high: Box::new(high) }
}

/// Takes the mark out of an end, where it has one: it is joined to the first operand.
fn takes_mark(end: &mut Expr) -> bool {
    let mut part = end;
    loop {
        match part {
            Expr::BinaryOp { left, op: BinaryOperator::StringConcat, right } if is_mark(left) => {
                let rest = taken(right);
                *part = rest;
                return true;
            }
            Expr::BinaryOp { left, .. } => part = left.as_mut(),
            _ => return false,
        }
    }
}

fn is_mark(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(name) if name.value == marks::SYMMETRIC)
}
