//! A text that is cast to a list is read as one. Arrow's cast makes a list with the text as its only item, and a list of one
//! number too, where DuckDB and PostgreSQL refuse. And what lists have in common is unknown where one of them is: DataFusion says
//! that they have nothing, or all. A null in a list is in common with none, as in DuckDB. And at a place that is unknown is null,
//! where DataFusion 54 takes what lies behind a null for the place.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::functions_nested::expr_fn::array_compact;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ExprSchemable, lit, when};

use crate::error::EngineError;
use crate::functions::text_to_list;
use crate::type_names::sql_name;

/// Returns whether a type is one of lists.
pub(super) fn is_list(data_type: &DataType) -> bool {
    matches!(data_type, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _))
}

/// The functions that say what two lists have in common, also of `&&`, `@>` and `<@`.
const COMPARING_LISTS: [&str; 2] = ["array_has_any", "array_has_all"];

/// The function that leaves the nulls of a list out.
const COMPACT: &str = "array_compact";

/// The function that takes the value at a place of a list; at place 0 is none.
const ELEMENT: &str = "array_element";

/// Returns whether an expression says what two lists have in common, or what is at a place of one.
pub(super) fn may_compare_lists(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if call.name() == ELEMENT || COMPARING_LISTS.contains(&call.name()))
}

/// Returns the expression with what a list has in common with a null, and at a place that is null, as null, and with its nulls in
/// common with none.
pub(super) fn with_unknown_lists(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut call = match expr {
        Expr::ScalarFunction(call) if call.name() == ELEMENT => return with_known_place(call, schema),
        Expr::ScalarFunction(call) if COMPARING_LISTS.contains(&call.name()) => call,
        other => return Ok(Transformed::no(other)),
    };
    if call.args.iter().any(|list| matches!(list.get_type(schema), Ok(DataType::Null))) {
        return Ok(Transformed::yes(lit(ScalarValue::Boolean(None))));
    }
    let nullable = call.args.iter().filter(|list| list.nullable(schema).unwrap_or(true));
    let known = nullable.map(|list| list.clone().is_not_null()).reduce(Expr::and);
    let is_compact = |list: &Expr| matches!(list, Expr::ScalarFunction(call) if call.name() == COMPACT);
    let changed = match call.args.get_mut(1).filter(|list| !is_compact(list)) {
        Some(sought) => {
            *sought = array_compact(std::mem::replace(sought, lit(ScalarValue::Null)));
            true
        }
        None => false,
    };
    let expr = Expr::ScalarFunction(call);
    Ok(match known {
        Some(known) => Transformed::yes(when(known, expr).end()?),
        None if changed => Transformed::yes(expr),
        None => Transformed::no(expr),
    })
}

/// Returns the call with place 0 for one that is null.
fn with_known_place(mut call: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let zero = call.args.get(1).and_then(|place| match (place.get_type(schema), place.nullable(schema)) {
        (Ok(found), Ok(true)) if found.is_integer() => ScalarValue::new_zero(&found).ok(),
        _ => None,
    });
    let is_changed = match (call.args.get_mut(1), zero) {
        (Some(place), Some(zero)) => {
            *place = coalesce(vec![std::mem::take(place), lit(zero)]);
            true
        }
        _ => false,
    };
    Ok(Transformed::new_transformed(Expr::ScalarFunction(call), is_changed))
}

/// Returns the expression with a cast to a list as SQL has it. Errors: `sql_plan_error`.
pub(super) fn with_lists(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (value, target, is_try) = match &expr {
        Expr::Cast(cast) => (&cast.expr, cast.field.data_type(), false),
        Expr::TryCast(cast) => (&cast.expr, cast.field.data_type(), true),
        _ => return Ok(Transformed::no(expr)),
    };
    if !is_list(target) {
        return Ok(Transformed::no(expr));
    }
    match value.get_type(schema) {
        Ok(from) if from.is_string() => Ok(Transformed::yes(text_to_list(value.as_ref().clone(), target, is_try)?)),
        Ok(from) if is_list(&from) || matches!(from, DataType::Null | DataType::ListView(_)) => {
            Ok(Transformed::no(expr))
        }
        Err(_) => Ok(Transformed::no(expr)),
        Ok(from) => {
            let message = format!("{} is not cast to {}; write [value]", sql_name(&from), sql_name(target));
            Err(EngineError::Plan { message }.into())
        }
    }
}
