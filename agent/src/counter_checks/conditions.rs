//! Conditions that read otherwise than they bind: `a OR b AND c`, where AND binds first, `x <> 1 OR x <> 2`, which is
//! true of every row, `x = 1 AND x = 2`, `x < 1 AND x > 9` and `x BETWEEN 9 AND 1`, which are true of none. Also
//! windows in no order, of which `lag` takes any row, and conditions that are counted, whether they are true or not.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Select, Value, Visit, Visitor, WindowType,
};

use super::{CheckKind, Finding};
use crate::sql_text::visit_own_exprs;

/// Looks at the conditions of a SELECT, outside of its subqueries.
pub(super) fn check(select: &Select) -> Vec<Finding> {
    let mut found = Vec::new();
    visit_own_exprs(&select.selection, |expr| look_at(expr, &mut found));
    visit_own_exprs(&select.having, |expr| look_at(expr, &mut found));
    found.truncate(1);
    let _: ControlFlow<()> = Visit::visit(&select.projection, &mut FunctionFinder(&mut found));
    let _: ControlFlow<()> = Visit::visit(&select.having, &mut FunctionFinder(&mut found));
    found
}

/// Looks at one part of a condition.
fn look_at(expr: &Expr, found: &mut Vec<Finding>) {
    match expr {
        Expr::BinaryOp { left, op: op @ (BinaryOperator::And | BinaryOperator::Or), right } => {
            found.extend(contradiction(expr, left, op, right));
            if *op == BinaryOperator::And {
                found.extend(apart(left, right));
            }
            if *op == BinaryOperator::Or {
                found.extend(binds_first(left, right).or_else(|| binds_first(right, left)));
            }
        }
        Expr::Between { negated: false, low, high, .. } if is_before(high, low) => {
            let message = format!("`{expr}` is true of no row: its first bound is beyond its second");
            found.push(Finding::new(CheckKind::Condition, message));
        }
        _ => {}
    }
}

/// Whether a constant comes before another one.
fn is_before(one: &Expr, other: &Expr) -> bool {
    let constant = |expr: &Expr| match expr {
        Expr::Value(value) => Some(value.value.clone()),
        Expr::TypedString(typed) => Some(typed.value.value.clone()),
        _ => None,
    };
    match (constant(one), constant(other)) {
        (Some(Value::Number(one, _)), Some(Value::Number(other, _))) => {
            let numbers = (one.parse::<f64>(), other.parse::<f64>());
            matches!(numbers, (Ok(one), Ok(other)) if one < other)
        }
        // Days are ordered as their texts are.
        (Some(Value::SingleQuotedString(one)), Some(Value::SingleQuotedString(other))) => {
            let is_day = |text: &str| text.len() >= 10 && text.starts_with(|c: char| c.is_ascii_digit());
            is_day(&one) && is_day(&other) && one < other
        }
        _ => false,
    }
}

/// Looks for `lag(x) OVER ()` and `count(status = 'paid')`.
struct FunctionFinder<'f>(&'f mut Vec<Finding>);

impl Visitor for FunctionFinder<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        const ORDERED: [&str; 7] = ["lag", "lead", "first_value", "last_value", "nth_value", "rank", "dense_rank"];
        if let Expr::Function(function) = expr
            && let Some(WindowType::WindowSpec(window)) = &function.over
            && window.order_by.is_empty()
            && window.window_name.is_none()
            && ORDERED.contains(&function.name.to_string().to_lowercase().as_str())
        {
            let message = format!("`{expr}` has no ORDER BY in its window: which row it takes is any");
            self.0.push(Finding::new(CheckKind::Limit, message));
        }
        if let Some(condition) = counted_condition(expr) {
            let message = format!(
                "`{expr}` counts every row for which `{condition}` is true or false; write `count(*) FILTER (WHERE {condition})`"
            );
            self.0.push(Finding::new(CheckKind::Condition, message));
        }
        ControlFlow::Continue(())
    }
}

/// Returns the condition of `count(status = 'paid')`.
fn counted_condition(expr: &Expr) -> Option<&Expr> {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    let Expr::Function(function) = expr else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(condition))] = list.args.as_slice() else { return None };
    let is_plain = list.duplicate_treatment.is_none() && function.name.to_string().eq_ignore_ascii_case("count");
    let is_condition = match condition {
        Expr::BinaryOp { op, .. } => matches!(op, And | Or | Eq | NotEq | Gt | GtEq | Lt | LtEq),
        Expr::IsNull(_) | Expr::IsNotNull(_) | Expr::InList { .. } | Expr::Between { .. } | Expr::Like { .. } => true,
        _ => false,
    };
    (is_plain && is_condition).then_some(condition)
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

/// Finds `minute < 10 AND minute > 80`, also with other conditions between the two.
fn apart(left: &Expr, right: &Expr) -> Option<Finding> {
    if let Expr::BinaryOp { left: first, op: BinaryOperator::And, right: last } = left {
        return apart(last, right).or_else(|| apart(first, right));
    }
    let ((one, is_upper, bound), (other, is_other_upper, other_bound)) = (bound_of(left)?, bound_of(right)?);
    let (upper, lower) = if is_upper { (bound, other_bound) } else { (other_bound, bound) };
    let are_apart = is_upper != is_other_upper && is_before(upper, lower) && one.to_string() == other.to_string();
    let message = || format!("`{left} AND {right}` is true of no row; write OR");
    are_apart.then(|| Finding::new(CheckKind::Condition, message()))
}

/// Returns what a constant bounds, whether from above, and the constant.
fn bound_of(expr: &Expr) -> Option<(&Expr, bool, &Expr)> {
    use BinaryOperator::{Gt, GtEq, Lt, LtEq};
    let Expr::BinaryOp { left, op: op @ (Gt | GtEq | Lt | LtEq), right } = expr else { return None };
    let is_value = |expr: &Expr| matches!(expr, Expr::Value(_) | Expr::TypedString(_));
    let is_less = matches!(op, Lt | LtEq);
    match (is_value(left), is_value(right)) {
        (false, true) => Some((&**left, is_less, &**right)),
        (true, false) => Some((&**right, !is_less, &**left)),
        _ => None,
    }
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
