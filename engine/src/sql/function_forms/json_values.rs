//! JSON within JSON: `json_object('a', json_array(1, 2))`. JSON is text here, so what is JSON is told by the call that makes it.

use datafusion::sql::sqlparser::ast::{
    Array, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, SelectItem, SetExpr,
};

use super::more_forms::named_row;
use crate::functions::JSON_MARK;
use crate::sql::shorthand::{call, taken, text};

/// The functions that make JSON of values.
const MAKING: [&str; 18] = [
    "json_array",
    "json_build_array",
    "jsonb_build_array",
    "json_object",
    "json_build_object",
    "jsonb_build_object",
    "to_json",
    "to_jsonb",
    "row_to_json",
    "array_to_json",
    "json_group_array",
    "json_agg",
    "jsonb_agg",
    "json_group_object",
    "json_object_agg",
    "jsonb_object_agg",
    "json_agg_strict",
    "jsonb_agg_strict",
];
/// Other functions whose result is JSON.
const RETURNING: [&str; 15] = [
    "json",
    "try_json",
    "json_extract",
    "json_extract_path",
    "json_merge_patch",
    "json_concat",
    "json_delete",
    "json_delete_path",
    "json_set",
    "jsonb_set",
    "json_insert",
    "jsonb_insert",
    "json_strip_nulls",
    "json_remove",
    "json_replace",
];
/// How the aggregates begin that are written out already.
const AGGREGATES: [&str; 2] = [
    "nullif(concat('[', coalesce(string_agg(coalesce(to_json(",
    "nullif(concat('{', coalesce(string_agg(concat(coalesce(to_json(",
];

/// Whether the result of the function of this name is JSON.
pub(crate) fn makes_json(name: &str) -> bool {
    MAKING.contains(&name) || RETURNING.contains(&name)
}

/// Marks the arguments of such a function that are JSON, so that they do not become texts in it.
pub(super) fn mark(name: &str, args: &mut FunctionArguments) {
    if !MAKING.contains(&name) {
        return;
    }
    let FunctionArguments::List(list) = args else { return };
    for argument in &mut list.args {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = argument {
            if name.contains("_build_")
                && let Some(row) = named_row(value)
            {
                *value = row;
            }
            mark_value(value);
        }
    }
}

fn mark_value(value: &mut Expr) {
    match value {
        Expr::Array(Array { elem, .. }) => elem.iter_mut().for_each(mark_value),
        other if is_json(other) => *other = call("named_struct", vec![text(JSON_MARK), taken(other)]),
        _ => {}
    }
}

fn is_json(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_json(inner),
        Expr::TypedString(typed) => matches!(typed.data_type, DataType::JSON | DataType::JSONB),
        Expr::Function(function) => {
            let name = function.name.to_string().to_lowercase();
            makes_json(&name)
                || (name == "nullif" && AGGREGATES.iter().any(|begin| expr.to_string().starts_with(begin)))
        }
        Expr::Subquery(query) => match query.body.as_ref() {
            SetExpr::Select(select) => match select.projection.as_slice() {
                [SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }] => is_json(value),
                _ => false,
            },
            _ => false,
        },
        _ => false,
    }
}
