//! Whole numbers that are divided, in what is selected and in HAVING: the fraction is dropped, so that a share of 0.7 is
//! 0.

use arrow::datatypes::DataType;
use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, OrderByKind, Select, SelectItem, SetExpr,
    Value,
};

use super::{CheckKind, Checked, Finding};
use crate::repair::{Scope, column_of};

/// The beginnings of the names of types of whole numbers.
const WHOLE_TYPES: [&str; 6] = ["INT", "BIGINT", "SMALLINT", "TINYINT", "SIGNED", "UNSIGNED"];

/// Looks for divisions of whole numbers in what is selected, and in the conditions on groups.
pub(super) fn check(checked: &Checked<'_>, select: &Select) -> Vec<Finding> {
    let scope = checked.scope();
    let mut findings = Vec::new();
    let selected = select.projection.iter().filter_map(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    });
    let ordered = match checked.query.order_by.as_ref().map(|order| &order.kind) {
        Some(OrderByKind::Expressions(parts)) => parts.as_slice(),
        _ => &[],
    };
    for expr in selected.chain(&select.having).chain(ordered.iter().map(|part| &part.expr)) {
        if let Some(division) = division(checked, expr, &scope) {
            let message =
                format!("`{division}` divides whole numbers, and drops the fraction; write `1.0 *` before it");
            findings.push(Finding::new(CheckKind::Division, message));
        }
    }
    findings
}

/// Returns the first division of whole numbers within an expression.
fn division<'e>(checked: &Checked<'_>, expr: &'e Expr, scope: &Scope) -> Option<&'e Expr> {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::Divide, right }
            if is_whole(checked, left, scope) && is_whole(checked, right, scope) =>
        {
            Some(expr)
        }
        Expr::BinaryOp { left, right, .. } => {
            division(checked, left, scope).or_else(|| division(checked, right, scope))
        }
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } | Expr::UnaryOp { expr: inner, .. } => {
            division(checked, inner, scope)
        }
        Expr::Function(function) => match &function.args {
            FunctionArguments::List(list) => list.args.iter().find_map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => division(checked, argument, scope),
                _ => None,
            }),
            _ => None,
        },
        Expr::Case { conditions, else_result, .. } => conditions
            .iter()
            .map(|when| &when.result)
            .chain(else_result.as_deref())
            .find_map(|result| division(checked, result, scope)),
        _ => None,
    }
}

/// Whether an expression is known to be a whole number.
fn is_whole(checked: &Checked<'_>, expr: &Expr, scope: &Scope) -> bool {
    match expr {
        Expr::Value(value) => matches!(&value.value, Value::Number(text, _) if !text.contains(['.', 'e', 'E'])),
        Expr::Nested(inner) => is_whole(checked, inner, scope),
        // What a subquery counts or sums.
        Expr::Subquery(query) => match query.body.as_ref() {
            SetExpr::Select(select) => match select.projection.as_slice() {
                [SelectItem::UnnamedExpr(of) | SelectItem::ExprWithAlias { expr: of, .. }] => {
                    is_whole(checked, of, &checked.scope_within(query))
                }
                _ => false,
            },
            _ => false,
        },
        Expr::BinaryOp { left, op, right } => {
            use BinaryOperator::{Minus, Multiply, Plus};
            matches!(op, Minus | Multiply | Plus) && is_whole(checked, left, scope) && is_whole(checked, right, scope)
        }
        Expr::Function(function) => {
            let name = function.name.to_string().to_lowercase();
            let FunctionArguments::List(list) = &function.args else { return false };
            match (name.as_str(), list.args.as_slice()) {
                ("count", _) => true,
                (
                    "sum" | "min" | "max" | "coalesce" | "nullif",
                    [FunctionArg::Unnamed(FunctionArgExpr::Expr(first)), ..],
                ) => is_whole_choice(checked, first) || is_whole(checked, first, scope),
                (
                    "if" | "iif",
                    [
                        _,
                        FunctionArg::Unnamed(FunctionArgExpr::Expr(one)),
                        FunctionArg::Unnamed(FunctionArgExpr::Expr(other)),
                    ],
                ) => is_whole(checked, one, scope) && is_whole(checked, other, scope),
                ("count_if" | "countif", _) => true,
                _ => false,
            }
        }
        Expr::Cast { data_type, .. } => {
            let name = data_type.to_string().to_uppercase();
            WHOLE_TYPES.iter().any(|whole| name.starts_with(whole)) && !name.starts_with("INTERVAL")
        }
        _ => column_of(scope, expr).is_some_and(|(_, _, data_type)| data_type.is_some_and(DataType::is_integer)),
    }
}

/// Whether an expression is a CASE of whole numbers: `sum(CASE WHEN ... THEN 1 ELSE 0 END)`.
fn is_whole_choice(checked: &Checked<'_>, expr: &Expr) -> bool {
    let Expr::Case { conditions, else_result, .. } = expr else { return false };
    let whole = |expr: &Expr| is_whole(checked, expr, &Scope::default());
    conditions.iter().all(|when| whole(&when.result)) && else_result.as_deref().is_none_or(whole)
}
