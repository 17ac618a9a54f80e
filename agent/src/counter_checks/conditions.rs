//! Conditions that read otherwise than they bind: `a OR b AND c`, where AND binds first, `x <> 1 OR x <> 2`, which is
//! true of every row, and `x = 1 AND x = 2`, which is true of none.

use std::ops::ControlFlow;

use sqlparser::ast::{BinaryOperator, Expr, Query, Select, Visit, Visitor};

use super::{CheckKind, Finding};

/// Looks at the conditions of a SELECT, outside of its subqueries.
pub(super) fn check(select: &Select) -> Vec<Finding> {
    let mut finder = ConditionFinder { queries: 0, found: Vec::new() };
    let _: ControlFlow<()> = Visit::visit(&select.selection, &mut finder);
    let _: ControlFlow<()> = Visit::visit(&select.having, &mut finder);
    finder.found.truncate(1);
    finder.found
}

struct ConditionFinder {
    queries: usize,
    found: Vec<Finding>,
}

impl Visitor for ConditionFinder {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if self.queries == 0
            && let Expr::BinaryOp { left, op: op @ (BinaryOperator::And | BinaryOperator::Or), right } = expr
        {
            self.found.extend(contradiction(expr, left, op, right));
            if *op == BinaryOperator::Or {
                self.found.extend(binds_first(left, right).or_else(|| binds_first(right, left)));
            }
        }
        ControlFlow::Continue(())
    }
}

/// Finds `x <> 1 OR x <> 2` and `x = 1 AND x = 2`.
fn contradiction(whole: &Expr, left: &Expr, op: &BinaryOperator, right: &Expr) -> Option<Finding> {
    let (asked, of) = match op {
        BinaryOperator::Or => (BinaryOperator::NotEq, "every row that has a value; write AND, or NOT IN"),
        _ => (BinaryOperator::Eq, "no row; write OR, or IN"),
    };
    let ((one, one_value), (other, other_value)) = (compared(left, &asked)?, compared(right, &asked)?);
    let is_found = one.to_string() == other.to_string() && one_value != other_value;
    is_found.then(|| Finding::new(CheckKind::Condition, format!("`{whole}` is true of {of}")))
}

/// Finds `tier = 'gold' OR tier = 'basic' AND joined > ...`, where what comes after AND is asked of the second alone.
fn binds_first(alone: &Expr, all: &Expr) -> Option<Finding> {
    let Expr::BinaryOp { left, op: BinaryOperator::And, right } = all else { return None };
    let (column, _) = compared(alone, &BinaryOperator::Eq)?;
    let is_same = |side: &Expr| {
        compared(side, &BinaryOperator::Eq).is_some_and(|(other, _)| other.to_string() == column.to_string())
    };
    let message = format!(
        "AND binds before OR: `{all}` is one of two, and `{alone}` the other; write what OR joins in parentheses"
    );
    (is_same(left) != is_same(right)).then(|| Finding::new(CheckKind::Condition, message))
}

/// Returns the column and the constant that an operator compares.
fn compared<'e>(expr: &'e Expr, asked: &BinaryOperator) -> Option<(&'e Expr, String)> {
    match expr {
        Expr::Nested(inner) => compared(inner, asked),
        Expr::BinaryOp { left, op, right } if op == asked => {
            let is_column = |expr: &Expr| matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
            let is_value = |expr: &Expr| matches!(expr, Expr::Value(_) | Expr::TypedString(_));
            if is_column(left) && is_value(right) {
                Some((&**left, right.to_string()))
            } else if is_value(left) && is_column(right) {
                Some((&**right, left.to_string()))
            } else {
                None
            }
        }
        _ => None,
    }
}
