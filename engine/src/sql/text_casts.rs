//! A value that becomes text has the form that SQL gives it ([`crate::functions::VALUE_TEXT`]), in a cast as where texts are
//! joined.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::functions_nested::expr_fn::array_concat;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

use super::field_access::own_call;
use crate::functions::{VALUE_TEXT, has_form_of_its_own};

/// The functions that make texts of their arguments.
const JOINING: [&str; 4] = ["concat", "concat_ws", "format", "printf"];

/// Returns whether an expression may be such a cast.
pub(super) fn may_be_text_cast(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(cast) => cast.field.data_type().is_string(),
        Expr::TryCast(cast) => cast.field.data_type().is_string(),
        Expr::BinaryExpr(BinaryExpr { op: Operator::StringConcat, .. }) => true,
        Expr::ScalarFunction(call) => JOINING.contains(&call.name()),
        _ => false,
    }
}

/// Returns whether lists are joined, nulls left out, and not texts.
fn lists_only(args: &[Expr], schema: &DFSchema) -> bool {
    let mut lists = 0;
    for arg in args {
        match arg.get_type(schema) {
            Ok(found) if found.is_list() => lists += 1,
            Ok(DataType::Null) => {}
            _ => return false,
        }
    }
    lists > 0
}

/// Returns the expression with texts in SQL's form.
pub(super) fn with_text_form(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let needs_form = |value: &Expr| value.get_type(schema).is_ok_and(|found| has_form_of_its_own(&found));
    let formed = |value: Expr| own_call(VALUE_TEXT, vec![value]);
    Ok(match expr {
        Expr::Cast(cast) if cast.field.data_type().is_string() && needs_form(&cast.expr) => {
            let text = formed(*cast.expr)?;
            Transformed::yes(Expr::Cast(Cast::new_from_field(Box::new(text), cast.field)))
        }
        Expr::TryCast(cast) if cast.field.data_type().is_string() && needs_form(&cast.expr) => {
            let text = formed(*cast.expr)?;
            Transformed::yes(Expr::Cast(Cast::new_from_field(Box::new(text), cast.field)))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right }) => {
            let is_list =
                |value: &Expr| matches!(value.get_type(schema), Ok(DataType::List(_) | DataType::LargeList(_)));
            if is_list(&left) || is_list(&right) || !(needs_form(&left) || needs_form(&right)) {
                return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr::new(left, Operator::StringConcat, right))));
            }
            let left = if needs_form(&left) { formed(*left)? } else { *left };
            let right = if needs_form(&right) { formed(*right)? } else { *right };
            let joined = BinaryExpr::new(Box::new(left), Operator::StringConcat, Box::new(right));
            Transformed::yes(Expr::BinaryExpr(joined))
        }
        Expr::ScalarFunction(mut call) if call.name() == "concat" && lists_only(&call.args, schema) => {
            call.args.retain(|arg| !arg.get_type(schema).is_ok_and(|found| found.is_null()));
            Transformed::yes(array_concat(call.args))
        }
        Expr::ScalarFunction(mut call) if JOINING.contains(&call.name()) && call.args.iter().any(needs_form) => {
            let args = call.args.into_iter().map(|arg| if needs_form(&arg) { formed(arg) } else { Ok(arg) });
            call.args = args.collect::<Result<_>>()?;
            Transformed::yes(Expr::ScalarFunction(call))
        }
        other => Transformed::no(other),
    })
}
