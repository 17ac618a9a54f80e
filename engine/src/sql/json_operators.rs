//! PostgreSQL's operators of `jsonb`, where a side says that it is: `'{"a": 1}'::jsonb || b`. JSON is text otherwise, of which
//! `||` is one text behind the other, as DuckDB has it for its JSON.

use datafusion::sql::sqlparser::ast::{BinaryOperator, DataType, Expr};

use super::expression_forms::not_if;
use super::shorthand::{call, taken};

/// The functions whose result is `jsonb`.
const RETURNING: [&str; 12] = [
    "to_jsonb",
    "jsonb_set",
    "jsonb_insert",
    "jsonb_build_object",
    "jsonb_build_array",
    "jsonb_agg",
    "jsonb_object_agg",
    "jsonb_strip_nulls",
    "jsonb_extract_path",
    "json_concat",
    "json_delete",
    "json_delete_path",
];

/// Writes out such an operator, before the casts beside it are.
pub(super) fn write_out_json_operators(expr: &mut Expr) {
    let Expr::BinaryOp { left, op, right } = expr else { return };
    let function = match op {
        BinaryOperator::StringConcat => "json_concat",
        BinaryOperator::Minus => "json_delete",
        BinaryOperator::HashMinus => "json_delete_path",
        BinaryOperator::AtArrow | BinaryOperator::ArrowAt => "jsonb_contains",
        BinaryOperator::Eq | BinaryOperator::NotEq => "jsonb_equals",
        _ => return,
    };
    let is_either = is_jsonb(left) || (is_jsonb(right) && !matches!(op, BinaryOperator::Minus));
    if !is_either && !matches!(op, BinaryOperator::HashMinus) {
        return;
    }
    let (is_swapped, is_negated) = (matches!(op, BinaryOperator::ArrowAt), matches!(op, BinaryOperator::NotEq));
    let (left, right) = (taken(left), taken(right));
    let written = call(function, if is_swapped { vec![right, left] } else { vec![left, right] });
    *expr = not_if(is_negated, written);
}

fn is_jsonb(expr: &Expr) -> bool {
    match expr {
        Expr::Cast { data_type: DataType::JSONB, .. } => true,
        Expr::TypedString(typed) => typed.data_type == DataType::JSONB,
        Expr::Nested(inner) => is_jsonb(inner),
        Expr::BinaryOp { left, op: BinaryOperator::StringConcat | BinaryOperator::Minus, .. } => is_jsonb(left),
        Expr::Function(function) => RETURNING.contains(&function.name.to_string().to_lowercase().as_str()),
        _ => false,
    }
}
