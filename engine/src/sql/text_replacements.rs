//! Texts as PostgreSQL and DuckDB read them: in the replacement of `regexp_replace` a backslash and a digit is a group, where
//! Rust's patterns have `$`; where `replace` looks for nothing, nothing is replaced, and a null still makes a null; and an offset
//! says nothing in a text that becomes a time without one.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ExprSchemable, lit, when};
use datafusion::scalar::ScalarValue;

use super::field_access::own_call;
use crate::functions::{REGEXP_REPLACEMENT, WITHOUT_OFFSET, without_offset};

/// The functions that replace parts of a text.
const REPLACING: [&str; 2] = ["regexp_replace", "replace"];

/// Returns whether an expression may be a call whose texts DataFusion reads otherwise.
pub(super) fn may_replace_texts(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if REPLACING.contains(&call.name()))
}

/// Returns a call or a cast whose texts are as DataFusion reads them.
pub(super) fn with_text_arguments(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let has_offset = |value: &Expr, target: &DataType| {
        matches!(target, DataType::Timestamp(_, None) | DataType::Date32)
            && value.get_type(schema).is_ok_and(|found| found.is_string())
            && !matches!(value, Expr::ScalarFunction(inner) if inner.name() == WITHOUT_OFFSET)
    };
    let without = |value: Expr| match &value {
        Expr::Literal(text, _) => {
            Ok(text.try_as_str().flatten().map_or(value.clone(), |text| lit(without_offset(text))))
        }
        _ => own_call(WITHOUT_OFFSET, vec![value]),
    };
    let mut call = match expr {
        Expr::Cast(mut cast) if has_offset(&cast.expr, cast.field.data_type()) => {
            *cast.expr = without(*cast.expr)?;
            return Ok(Transformed::yes(Expr::Cast(cast)));
        }
        Expr::TryCast(mut cast) if has_offset(&cast.expr, cast.field.data_type()) => {
            *cast.expr = without(*cast.expr)?;
            return Ok(Transformed::yes(Expr::TryCast(cast)));
        }
        Expr::ScalarFunction(call) => call,
        other => return Ok(Transformed::no(other)),
    };
    match (call.func.name(), call.args.as_mut_slice()) {
        ("regexp_replace", [_, _, replacement, ..]) => {
            if matches!(replacement, Expr::ScalarFunction(inner) if inner.name() == REGEXP_REPLACEMENT) {
                return Ok(Transformed::no(Expr::ScalarFunction(call)));
            }
            let written = std::mem::take(replacement);
            *replacement = own_call(REGEXP_REPLACEMENT, vec![written])?;
            Ok(Transformed::yes(Expr::ScalarFunction(call)))
        }
        ("replace", [text, Expr::Literal(sought, _), replacement])
            if sought.try_as_str().flatten().is_some_and(str::is_empty)
                && !matches!(text, Expr::Literal(ScalarValue::Null, _)) =>
        {
            let is_known = std::mem::take(replacement).is_not_null();
            Ok(Transformed::yes(when(is_known, std::mem::take(text)).end()?))
        }
        ("replace", [text, sought, replacement]) if !matches!(sought, Expr::Literal(..)) => {
            let nothing = sought.clone().eq(lit("")).and(replacement.clone().is_not_null());
            let text = text.clone();
            Ok(Transformed::yes(when(nothing, text).otherwise(Expr::ScalarFunction(call))?))
        }
        _ => Ok(Transformed::no(Expr::ScalarFunction(call))),
    }
}
