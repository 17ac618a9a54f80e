//! `+ - * / %`, negation, `min_of` and `max_of`. Integers are long and wrap around; division by an integer zero is
//! null; a remainder is never negative. Datetimes are the ticks since year 1 here, so that the middle of two is
//! `(a + b) / 2`; one outside years 1 to 9999 is null. A dynamic value beside a timespan is a timespan, and one that a
//! datetime is subtracted from, or that is subtracted from one, a datetime.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Datum, Int64Array, Scalar};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{Decimal256Type, Float64Type, Int32Type, Int64Type, i256};
use arrow::error::ArrowError;
use datafusion::error::Result;

use super::arguments::{FunctionArguments, TypedColumn};
use super::signature::{FunctionEntry, Returns, common_type, entry};
use crate::ast::BinaryOperator;
use crate::types::KqlType;
use crate::values::{MAX_DATETIME_TICKS, decimal_product, decimal_quotient, decimal_remainder, decimal_sum};

pub(super) const FUNCTIONS: &[FunctionEntry] =
    &[entry("min_of", "xx*", Returns::Common, min_of), entry("max_of", "xx*", Returns::Common, max_of)];

/// Returns the type of `left operator right`, or `None` if there is no such operator.
pub(super) fn result_type(operator: BinaryOperator, left: KqlType, right: KqlType) -> Option<KqlType> {
    use BinaryOperator::{Add, Divide, Modulo, Multiply, Subtract};
    use KqlType::{DateTime, Dynamic, Long, Real, TimeSpan};
    match (operator, left, right) {
        (Add, DateTime, TimeSpan | Dynamic | DateTime)
        | (Add, TimeSpan | Dynamic, DateTime)
        | (Subtract, DateTime, TimeSpan) => Some(DateTime),
        (Subtract, DateTime | Dynamic, DateTime)
        | (Subtract, DateTime, Dynamic)
        | (Modulo, DateTime, TimeSpan)
        | (Add | Subtract, TimeSpan, Dynamic)
        | (Add | Subtract, Dynamic, TimeSpan)
        | (Add | Subtract | Modulo, TimeSpan, TimeSpan) => Some(TimeSpan),
        (Divide, TimeSpan | DateTime, TimeSpan) | (Divide, DateTime, DateTime) => Some(Real),
        (Multiply | Divide, TimeSpan, number) | (Multiply, number, TimeSpan) if is_number(number) => Some(TimeSpan),
        (Multiply | Divide, DateTime, number) | (Multiply, number, DateTime) if number.is_numeric() => Some(DateTime),
        (_, Dynamic, number) | (_, number, Dynamic) if number.is_numeric() => Some(Real),
        (_, left, right) if left.is_numeric() && right.is_numeric() => match common_type(&[left, right])? {
            KqlType::Int => Some(Long),
            common => Some(common),
        },
        _ => None,
    }
}

fn is_number(kql_type: KqlType) -> bool {
    kql_type.is_numeric() || kql_type == KqlType::Dynamic
}

/// Returns the type of `-operand`.
pub(super) fn negated(operand: KqlType) -> Option<KqlType> {
    match operand {
        KqlType::Int | KqlType::Long => Some(KqlType::Long),
        KqlType::Real | KqlType::Decimal | KqlType::TimeSpan => Some(operand),
        KqlType::Dynamic => Some(KqlType::Real),
        _ => None,
    }
}

pub(super) fn compute(operator: BinaryOperator, arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (left, right) = (arguments.kql_type(0), arguments.kql_type(1));
    match arguments.returns {
        KqlType::Decimal => decimals(operator, arguments),
        KqlType::Real if matches!(left, KqlType::TimeSpan | KqlType::DateTime) => {
            let (left, right) = (arguments.longs(0)?, arguments.longs(1)?);
            arguments.make_reals(|row| Some(left.get(row)? as f64 / right.get(row)? as f64))
        }
        KqlType::Real => reals(operator, arguments),
        KqlType::DateTime if matches!(operator, BinaryOperator::Multiply | BinaryOperator::Divide) => {
            let array = scaled(operator, arguments)?;
            let products = array.as_primitive::<Int64Type>();
            arguments.make_longs(|row| products.is_valid(row).then(|| products.value(row)).filter(is_datetime))
        }
        KqlType::DateTime => {
            let (left, right) = (ticks(arguments, 0)?, ticks(arguments, 1)?);
            arguments.make_longs(|row| whole(operator, left.get(row)?, right.get(row)?).filter(is_datetime))
        }
        KqlType::TimeSpan if left == KqlType::Dynamic || right == KqlType::Dynamic => match operator {
            BinaryOperator::Add | BinaryOperator::Subtract => {
                let (left, right) = (ticks(arguments, 0)?, ticks(arguments, 1)?);
                arguments.make_longs(|row| whole(operator, left.get(row)?, right.get(row)?))
            }
            _ => scaled(operator, arguments),
        },
        KqlType::TimeSpan if left != right && left != KqlType::DateTime => scaled(operator, arguments),
        _ => longs(operator, arguments),
    }
}

/// Whether ticks are of a datetime of years 1 to 9999.
fn is_datetime(ticks: &i64) -> bool {
    (0..=MAX_DATETIME_TICKS).contains(ticks)
}

/// Reads an operand of a sum or a difference as ticks. A dynamic one is what makes sense of it beside the other.
fn ticks(arguments: &FunctionArguments, index: usize) -> Result<TypedColumn<Int64Array>> {
    match (arguments.kql_type(index), arguments.kql_type(1 - index), arguments.returns) {
        (KqlType::Dynamic, KqlType::DateTime, KqlType::TimeSpan) => arguments.datetimes(index),
        (KqlType::Dynamic, ..) => arguments.timespans(index),
        _ => arguments.longs(index),
    }
}

/// Computes on longs. Addition, subtraction and multiplication are Arrow kernels; operators that can return null go row
/// by row.
fn longs(operator: BinaryOperator, arguments: &FunctionArguments) -> Result<ArrayRef> {
    let kernel: ArrowKernel = match operator {
        BinaryOperator::Add => numeric::add_wrapping,
        BinaryOperator::Subtract => numeric::sub_wrapping,
        BinaryOperator::Multiply => numeric::mul_wrapping,
        _ => {
            let (left, right) = (arguments.longs(0)?, arguments.longs(1)?);
            return arguments.make_longs(|row| whole(operator, left.get(row)?, right.get(row)?));
        }
    };
    let (left, right) = (arguments.longs(0)?, arguments.longs(1)?);
    by_kernel(kernel, &left, &right)
}

/// Returns a column or a literal in the form that Arrow's kernels take.
fn datum<A: Array + Clone + 'static>(reader: &TypedColumn<A>) -> Box<dyn Datum> {
    if reader.constant { Box::new(Scalar::new(reader.array.clone())) } else { Box::new(reader.array.clone()) }
}

/// Two constants give an array of one row, as any call on constants does.
fn by_kernel<A: Array + Clone + 'static>(
    kernel: ArrowKernel,
    left: &TypedColumn<A>,
    right: &TypedColumn<A>,
) -> Result<ArrayRef> {
    if left.constant && right.constant {
        return Ok(kernel(&left.array, &right.array)?);
    }
    Ok(kernel(datum(left).as_ref(), datum(right).as_ref())?)
}

type ArrowKernel = fn(&dyn Datum, &dyn Datum) -> std::result::Result<ArrayRef, ArrowError>;

fn whole(operator: BinaryOperator, left: i64, right: i64) -> Option<i64> {
    match operator {
        BinaryOperator::Add => Some(left.wrapping_add(right)),
        BinaryOperator::Subtract => Some(left.wrapping_sub(right)),
        BinaryOperator::Multiply => Some(left.wrapping_mul(right)),
        BinaryOperator::Divide => (right != 0).then(|| left.wrapping_div(right)),
        _ => (right != 0).then(|| left.wrapping_rem_euclid(right)),
    }
}

fn reals(operator: BinaryOperator, arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (left, right) = (arguments.reals(0)?, arguments.reals(1)?);
    let kernel: ArrowKernel = match operator {
        BinaryOperator::Add => numeric::add_wrapping,
        BinaryOperator::Subtract => numeric::sub_wrapping,
        BinaryOperator::Multiply => numeric::mul_wrapping,
        _ => {
            let divide = operator == BinaryOperator::Divide;
            return arguments.make_reals(|row| {
                let (left, right) = (left.get(row)?, right.get(row)?);
                Some(if divide { left / right } else { left.rem_euclid(right) })
            });
        }
    };
    by_kernel(kernel, &left, &right)
}

fn decimals(operator: BinaryOperator, arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (left, right) = (arguments.decimals(0)?, arguments.decimals(1)?);
    arguments.make_decimals(|row| {
        let (left, right) = (left.get(row)?, right.get(row)?);
        match operator {
            BinaryOperator::Add => decimal_sum(left, right),
            BinaryOperator::Subtract => decimal_sum(left, right.wrapping_neg()),
            BinaryOperator::Multiply => decimal_product(left, right),
            BinaryOperator::Divide => decimal_quotient(left, right),
            _ => decimal_remainder(left, right),
        }
    })
}

/// Multiplies or divides a timespan, or the ticks of a datetime, by a number.
fn scaled(operator: BinaryOperator, arguments: &FunctionArguments) -> Result<ArrayRef> {
    let is_span = matches!(arguments.kql_type(0), KqlType::TimeSpan | KqlType::DateTime);
    let (span, number) = if is_span { (0, 1) } else { (1, 0) };
    let spans = arguments.longs(span)?;
    if matches!(arguments.kql_type(number), KqlType::Int | KqlType::Long) {
        let numbers = arguments.longs(number)?;
        return arguments.make_longs(|row| whole(operator, spans.get(row)?, numbers.get(row)?));
    }
    let numbers = arguments.reals(number)?;
    let divide = operator == BinaryOperator::Divide;
    arguments.make_longs(|row| {
        let (span, number) = (spans.get(row)? as f64, numbers.get(row)?);
        let ticks = if divide { span / number } else { span * number };
        (ticks.abs() < i64::MAX as f64).then_some(ticks as i64)
    })
}

pub(super) fn negate(arguments: &FunctionArguments) -> Result<ArrayRef> {
    match arguments.returns {
        KqlType::Real => {
            let reals = arguments.reals(0)?;
            arguments.make_reals(|row| reals.get(row).map(|real| -real))
        }
        KqlType::Decimal => {
            let decimals = arguments.decimals(0)?;
            arguments.make_decimals(|row| decimals.get(row).map(i256::wrapping_neg))
        }
        _ => {
            let longs = arguments.longs(0)?;
            arguments.make_longs(|row| longs.get(row).map(i64::wrapping_neg))
        }
    }
}

fn min_of(arguments: &FunctionArguments) -> Result<ArrayRef> {
    extreme(arguments, true)
}

fn max_of(arguments: &FunctionArguments) -> Result<ArrayRef> {
    extreme(arguments, false)
}

/// Ignores nulls. NaN is both the smallest and the largest value.
fn extreme(arguments: &FunctionArguments, least: bool) -> Result<ArrayRef> {
    let mut best = arguments.whole(0, arguments.returns)?;
    for index in 1..arguments.len() {
        let next = arguments.whole(index, arguments.returns)?;
        let takes_next = match arguments.returns {
            KqlType::Real => {
                let (best, next) = (best.as_primitive::<Float64Type>(), next.as_primitive::<Float64Type>());
                replaced(best, next, |row| {
                    let (best, next) = (best.value(row), next.value(row));
                    next.is_nan() || if least { next < best } else { next > best }
                })
            }
            KqlType::Long | KqlType::DateTime | KqlType::TimeSpan => {
                let (best, next) = (best.as_primitive::<Int64Type>(), next.as_primitive::<Int64Type>());
                replaced(best, next, |row| {
                    if least { next.value(row) < best.value(row) } else { next.value(row) > best.value(row) }
                })
            }
            KqlType::Int => {
                let (best, next) = (best.as_primitive::<Int32Type>(), next.as_primitive::<Int32Type>());
                replaced(best, next, |row| {
                    if least { next.value(row) < best.value(row) } else { next.value(row) > best.value(row) }
                })
            }
            KqlType::Decimal => {
                let (best, next) = (best.as_primitive::<Decimal256Type>(), next.as_primitive::<Decimal256Type>());
                replaced(best, next, |row| {
                    if least { next.value(row) < best.value(row) } else { next.value(row) > best.value(row) }
                })
            }
            KqlType::Bool => {
                let (best, next) = (best.as_boolean(), next.as_boolean());
                replaced(best, next, |row| next.value(row) != best.value(row) && next.value(row) != least)
            }
            KqlType::String | KqlType::Guid | KqlType::Dynamic => {
                let (best, next) = (best.as_string::<i32>(), next.as_string::<i32>());
                replaced(best, next, |row| {
                    if least { next.value(row) < best.value(row) } else { next.value(row) > best.value(row) }
                })
            }
        };
        best = arrow::compute::kernels::zip::zip(&takes_next, &next, &best)?;
    }
    Ok(Arc::clone(&best))
}

fn replaced(best: &dyn Array, next: &dyn Array, better: impl Fn(usize) -> bool) -> BooleanArray {
    (0..best.len()).map(|row| Some(!next.is_null(row) && (best.is_null(row) || better(row)))).collect()
}
