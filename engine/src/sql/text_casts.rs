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
use crate::functions::{VALUE_TEXT, converted, has_form_of_its_own};

/// The functions that make texts of their arguments.
const JOINING: [&str; 2] = ["concat", "concat_ws"];

/// The functions that take a text first, and make one of what is none.
const OF_TEXT: [&str; 22] = [
    "jaccard",
    "jaro_similarity",
    "jaro_winkler_similarity",
    "left",
    "lpad",
    "parse_dirname",
    "parse_dirpath",
    "parse_filename",
    "parse_path",
    "regexp_count",
    "regexp_extract",
    "regexp_extract_all",
    "regexp_full_match",
    "regexp_match",
    "regexp_replace",
    "regexp_split_to_array",
    "reverse",
    "right",
    "rpad",
    "similar_to",
    "strip_accents",
    "translate",
];

/// The aggregate that joins texts.
const STRING_AGG: &str = "string_agg";
/// The function that joins the values of a list.
const ARRAY_TO_STRING: &str = "array_to_string";

/// Returns whether an expression may be such a cast.
pub(super) fn may_be_text_cast(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(cast) => cast.field.data_type().is_string(),
        Expr::TryCast(cast) => cast.field.data_type().is_string(),
        Expr::BinaryExpr(BinaryExpr { op: Operator::StringConcat, .. }) => true,
        Expr::ScalarFunction(call) => {
            let name = call.name();
            JOINING.contains(&name) || OF_TEXT.contains(&name) || name == ARRAY_TO_STRING
        }
        Expr::AggregateFunction(call) => call.func.name() == STRING_AGG,
        Expr::WindowFunction(call) => call.fun.name() == STRING_AGG,
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
    let is_plain_with_form =
        |value: &Expr| value.get_type(schema).is_ok_and(|found| has_form_of_its_own(&found) && !found.is_nested());
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
        Expr::ScalarFunction(mut call)
            if OF_TEXT.contains(&call.name()) && call.args.first().is_some_and(is_plain_with_form) =>
        {
            with_first_formed(&mut call.args)?;
            Transformed::yes(Expr::ScalarFunction(call))
        }
        Expr::ScalarFunction(mut call) if call.name() == ARRAY_TO_STRING => {
            let list = call.args.first_mut().and_then(|list| match list.get_type(schema) {
                // Lists within lists are joined value by value.
                Ok(found) if has_formed_elements(&found) => Some((list, found)),
                _ => None,
            });
            let is_formed = list.is_some();
            if let Some((list, found)) = list {
                let texts = DataType::new_list(DataType::Utf8, true);
                *list = converted(std::mem::take(list), &found, &texts, false);
            }
            Transformed::new_transformed(Expr::ScalarFunction(call), is_formed)
        }
        Expr::AggregateFunction(mut call)
            if call.func.name() == STRING_AGG && call.params.args.first().is_some_and(needs_form) =>
        {
            with_first_formed(&mut call.params.args)?;
            Transformed::yes(Expr::AggregateFunction(call))
        }
        Expr::WindowFunction(mut call)
            if call.fun.name() == STRING_AGG && call.params.args.first().is_some_and(needs_form) =>
        {
            with_first_formed(&mut call.params.args)?;
            Transformed::yes(Expr::WindowFunction(call))
        }
        other => Transformed::no(other),
    })
}

fn with_first_formed(args: &mut [Expr]) -> Result<()> {
    if let Some(value) = args.first_mut() {
        *value = own_call(VALUE_TEXT, vec![std::mem::take(value)])?;
    }
    Ok(())
}

/// Whether a type is one of lists of such values, and not of lists.
fn has_formed_elements(list: &DataType) -> bool {
    let DataType::List(element) = list else { return false };
    has_form_of_its_own(element.data_type()) && !element.data_type().is_list()
}
