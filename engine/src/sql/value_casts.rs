//! Casts that are something else in SQL than in Arrow ([`converts_otherwise`]): fractions are rounded, numbers that become
//! timestamps count seconds, and texts of numbers and times may be written more freely.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Cast, ScalarFunction, TryCast};
use datafusion::logical_expr::{Expr, ExprSchemable, lit};

use super::list_casts::is_list;
use super::number_types::as_double;
use crate::error::EngineError;
use crate::functions::{
    converted, converts_otherwise, has_colons, is_bytes, is_decimal_text, normal_form, refused_cast,
    refused_cast_of_parts, refused_date_cast, value_conversion, written_bytes,
};
use crate::type_names::sql_name;

/// Functions whose result is a whole number already.
const WHOLE: [&str; 4] = ["round", "trunc", "floor", "ceil"];

/// The functions that cast to a type of Arrow.
pub(super) const ARROW_CASTS: [&str; 2] = ["arrow_cast", "arrow_try_cast"];

/// Returns whether a cast to a type may be one of those.
pub(super) fn may_convert(target: &DataType) -> bool {
    let is_nested = is_list(target) || matches!(target, DataType::Struct(_) | DataType::Map(_, _));
    is_nested || target.is_numeric() || target.is_temporal() || *target == DataType::Boolean || is_bytes(target)
}

/// Returns the expression with a cast as SQL has it. Errors: `sql_plan_error` for a cast of a number to a date, a time or
/// bytes, of a date or a timestamp to a number, and between one value and several.
pub(super) fn with_conversion(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (value, target, is_try) = match &expr {
        Expr::Cast(cast) => (&cast.expr, cast.field.data_type(), false),
        Expr::TryCast(cast) => (&cast.expr, cast.field.data_type(), true),
        Expr::ScalarFunction(call) if ARROW_CASTS.contains(&call.name()) => {
            return Ok(match vectors_of_lists(&expr, call, schema) {
                Some(vectors) => Transformed::yes(vectors),
                None => Transformed::no(expr),
            });
        }
        _ => return Ok(Transformed::no(expr)),
    };
    if let Some(double) = as_double(value, target) {
        return Ok(Transformed::yes(double));
    }
    if let Some(normal) = with_normal_form(value, target) {
        return Ok(Transformed::yes(cast_to(normal, target, is_try)));
    }
    if let Some(bytes) = with_bytes(value, target)? {
        return Ok(Transformed::yes(cast_to(bytes, target, is_try)));
    }
    let Ok(from) = value.get_type(schema) else { return Ok(Transformed::no(expr)) };
    // What the difference of two dates is made of is a TRY_CAST, which stays.
    let as_number = if is_try { None } else { refused_date_cast(&from, target) };
    if let Some(message) =
        as_number.or_else(|| refused_cast(&from, target)).or_else(|| refused_cast_of_parts(&from, target))
    {
        return Err(EngineError::Plan { message }.into());
    }
    // Arrow's has an error where a date is out of range.
    let is_date = || matches!((&from, target), (DataType::Date32 | DataType::Date64, DataType::Timestamp(_, _)));
    // A cast of a number the optimizer takes off what is compared, also of one that does not fit: it is an error, or null.
    let is_computed = || is_try || !matches!(value.as_ref(), Expr::Literal(_, _) | Expr::Placeholder(_));
    if (is_try && is_date()) || (is_computed() && may_not_fit(&from, target)) {
        return Ok(Transformed::yes(value_conversion(target, is_try).call(vec![value.as_ref().clone()])));
    }
    // Statistics of files are compared as if casts kept the order: the latest moment has not the latest time of day.
    if matches!((&from, target), (DataType::Timestamp(_, _), DataType::Time32(_) | DataType::Time64(_))) {
        return Ok(Transformed::yes(value_conversion(target, is_try).call(vec![value.as_ref().clone()])));
    }
    // Arrow has no cast between these two.
    if from == DataType::Boolean && target.is_decimal() {
        let number = cast_to(value.as_ref().clone(), &DataType::Int32, is_try);
        return Ok(Transformed::yes(cast_to(number, target, is_try)));
    }
    // Of a cast of numbers DataFusion 54 takes the least for the least boolean, which of -1 and 0 is the greatest.
    if from.is_numeric() && *target == DataType::Boolean {
        let zero = lit(ScalarValue::new_zero(&from)?);
        return Ok(Transformed::yes(value.as_ref().clone().not_eq(zero)));
    }
    let stays = match value.as_ref() {
        // Arrow reads all literals that are in their normal form, but for those that are too large for a REAL, are
        // rounded, are times without colons, which it takes for numbers, or no number, which it takes for a decimal zero.
        Expr::Literal(literal, _) => {
            let text = literal.try_as_str().flatten();
            let is_number = matches!(target, DataType::Time32(_) | DataType::Time64(_))
                && text.is_some_and(|text| !has_colons(text));
            let is_rounded = matches!(target, DataType::Timestamp(TimeUnit::Second | TimeUnit::Millisecond, _));
            let is_no_number = target.is_decimal() && text.is_some_and(|text| !is_decimal_text(text));
            let is_read =
                from.is_string() && *target != DataType::Float32 && !is_rounded && !is_number && !is_no_number;
            is_read || (from.is_decimal() && target.is_decimal())
        }
        Expr::ScalarFunction(call) => target.is_integer() && WHOLE.contains(&call.name()),
        _ => false,
    };
    if stays || !converts_otherwise(&from, target) {
        return Ok(Transformed::no(expr));
    }
    match target {
        // The optimizer knows casts, so an integer becomes a timestamp by them.
        DataType::Timestamp(TimeUnit::Second, _) if from.is_integer() => Ok(Transformed::no(expr)),
        DataType::Timestamp(_, zone) if from.is_integer() => {
            let number = cast_to(value.as_ref().clone(), &DataType::Int64, is_try);
            let instant = cast_to(number, &DataType::Timestamp(TimeUnit::Second, zone.clone()), is_try);
            Ok(Transformed::yes(cast_to(instant, target, is_try)))
        }
        DataType::Time32(_) | DataType::Time64(_) if from.is_integer() => {
            let from = sql_name(&from);
            let message = format!("{from} is not cast to TIME; write CAST(to_timestamp(seconds) AS TIME)");
            Err(EngineError::Plan { message }.into())
        }
        _ => Ok(Transformed::yes(converted(value.as_ref().clone(), &from, target, is_try))),
    }
}

/// Whether a whole number or decimal of a type may have no place in another type of them.
fn may_not_fit(from: &DataType, to: &DataType) -> bool {
    let (Some(digits), Some(room)) = (whole_digits(from), whole_digits(to)) else { return false };
    if !to.is_integer() {
        return digits > room;
    }
    let is_wider = digits < room && (to.is_signed_integer() || from.is_unsigned_integer());
    !is_wider && from != to
}

/// Returns how many digits before the point numbers of a type have at most.
fn whole_digits(data_type: &DataType) -> Option<i16> {
    Some(match data_type {
        DataType::Int8 | DataType::UInt8 => 3,
        DataType::Int16 | DataType::UInt16 => 5,
        DataType::Int32 | DataType::UInt32 => 10,
        DataType::Int64 => 19,
        DataType::UInt64 => 20,
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => i16::from(*precision) - i16::from(*scale),
        _ => return None,
    })
}

/// Returns a call that casts lists to lists of one length as the conversion that SQL's casts are: Arrow's takes elements of other
/// rows where there is a null, or a part of a batch.
fn vectors_of_lists(expr: &Expr, call: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let value = call.args.first()?;
    let (from, target) = (value.get_type(schema).ok()?, expr.get_type(schema).ok()?);
    let is_of_lists = matches!(from, DataType::List(_) | DataType::LargeList(_));
    let is_to_vectors = matches!(target, DataType::FixedSizeList(_, _));
    (is_of_lists && is_to_vectors).then(|| converted(value.clone(), &from, &target, call.name() != ARROW_CASTS[0]))
}

/// Returns a literal text as it is read as a value of a type; `None` where the expression is none, or is so already.
pub(super) fn with_normal_form(expr: &Expr, data_type: &DataType) -> Option<Expr> {
    let Expr::Literal(value, _) = expr else { return None };
    value.try_as_str().flatten().and_then(|text| normal_form(text, data_type)).map(lit)
}

/// Returns a literal text as bytes, where it becomes a value of a type of these; `None` for all others. Errors: `invalid_value`.
pub(super) fn with_bytes(expr: &Expr, data_type: &DataType) -> Result<Option<Expr>> {
    match expr {
        Expr::Literal(value, _) if is_bytes(data_type) => match value.try_as_str().flatten() {
            Some(text) => Ok(Some(lit(ScalarValue::Binary(Some(written_bytes(text)?))))),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

fn cast_to(value: Expr, data_type: &DataType, is_try: bool) -> Expr {
    match is_try {
        true => Expr::TryCast(TryCast::new(Box::new(value), data_type.clone())),
        false => Expr::Cast(Cast::new(Box::new(value), data_type.clone())),
    }
}
