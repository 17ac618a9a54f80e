//! `bin` and other rounding. A bin starts at `floor(value / width) * width`, also where the width is a
//! negative number; times have no bins of a negative width.

use arrow::array::ArrayRef;
use datafusion::error::Result;

use super::arguments::FunctionArguments;
use super::signature::{FunctionEntry, Returns, entry};
use crate::types::KqlType;
use crate::values::{MAX_DATETIME_TICKS, decimal_ceiling, decimal_floor, decimal_rounded, decimal_sum};

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("bin", "xx", Returns::By(bin_type), bin),
    entry("floor", "xx", Returns::By(bin_type), bin),
    entry("bin_at", "xxx", Returns::By(bin_at_type), bin_at),
    entry("ceiling", "n", Returns::By(rounded_type), ceiling),
    entry("round", "n?i", Returns::By(rounded_type), round),
];

fn bin_type(types: &[KqlType]) -> std::result::Result<KqlType, String> {
    use KqlType::{Bool, DateTime, Decimal, Dynamic, Int, Long, Real, TimeSpan};
    match (types.first(), types.get(1)) {
        (Some(DateTime), Some(TimeSpan | Dynamic)) => Ok(DateTime),
        (Some(TimeSpan), Some(TimeSpan | Dynamic)) => Ok(TimeSpan),
        (Some(DateTime | TimeSpan), Some(_)) => Err("a datetime or timespan is rounded to a timespan".to_owned()),
        (Some(Int | Long | Bool), Some(Int | Long)) => Ok(Long),
        (Some(Decimal), Some(Int | Long | Real | Decimal)) | (Some(Int | Long | Real), Some(Decimal)) => Ok(Decimal),
        (Some(Int | Long | Real | Dynamic), Some(Int | Long | Real | Dynamic)) => Ok(Real),
        (Some(Dynamic), Some(TimeSpan)) => Ok(DateTime),
        _ => Err("bin() takes a number, a datetime or a timespan, and a width of the same kind".to_owned()),
    }
}

/// The start of a bin is of the kind of the value; the widest of the three numbers is the result's type.
fn bin_at_type(types: &[KqlType]) -> std::result::Result<KqlType, String> {
    use KqlType::{Bool, DateTime, Decimal, Dynamic, Int, Long, Real, TimeSpan};
    let returns = bin_type(types)?;
    match (returns, types.get(2)) {
        (DateTime, Some(DateTime | Dynamic)) | (TimeSpan, Some(TimeSpan | Dynamic)) => Ok(returns),
        (Long | Real, Some(Decimal)) => Ok(Decimal),
        (Long, Some(Real | Dynamic)) => Ok(Real),
        (Long | Real | Decimal, Some(Int | Long | Real | Decimal | Bool | Dynamic)) => Ok(returns),
        _ => Err("bin_at() takes the start of a bin of the same kind as the value".to_owned()),
    }
}

fn bin(arguments: &FunctionArguments) -> Result<ArrayRef> {
    match arguments.returns {
        KqlType::Real => {
            let (values, widths) = (arguments.reals(0)?, arguments.reals(1)?);
            arguments.make_reals(|row| {
                let (value, width) = (values.get(row)?, widths.get(row)?);
                Some((value / width).floor() * width)
            })
        }
        KqlType::Decimal => {
            let (values, widths) = (arguments.decimals(0)?, arguments.decimals(1)?);
            arguments.make_decimals(|row| decimal_floor(values.get(row)?, widths.get(row)?))
        }
        returns => {
            let values = if returns == KqlType::DateTime { arguments.datetimes(0)? } else { arguments.longs(0)? };
            let widths = if returns == KqlType::Long { arguments.longs(1)? } else { arguments.timespans(1)? };
            let in_range = |ticks: &i64| returns != KqlType::DateTime || (0..=MAX_DATETIME_TICKS).contains(ticks);
            arguments.make_longs(|row| {
                let is_width = |width: &i64| *width > 0 || (*width < 0 && returns == KqlType::Long);
                let (value, width) = (values.get(row)?, widths.get(row).filter(is_width)?);
                let past = remainder_of_floor(value.into(), width.into());
                i64::try_from(i128::from(value) - past).ok().filter(in_range)
            })
        }
    }
}

/// Returns what is left of a value past the start of its bin: it has the sign of the width.
fn remainder_of_floor(value: i128, width: i128) -> i128 {
    let remainder = value % width;
    if remainder != 0 && (remainder < 0) != (width < 0) { remainder + width } else { remainder }
}

/// Computes bins of which one starts at the third argument.
fn bin_at(arguments: &FunctionArguments) -> Result<ArrayRef> {
    match arguments.returns {
        KqlType::Real => {
            let (values, widths, starts) = (arguments.reals(0)?, arguments.reals(1)?, arguments.reals(2)?);
            arguments.make_reals(|row| {
                let (value, width, start) = (values.get(row)?, widths.get(row)?, starts.get(row)?);
                (width > 0.0).then(|| ((value - start) / width).floor() * width + start)
            })
        }
        KqlType::Decimal => {
            let (values, widths, starts) = (arguments.decimals(0)?, arguments.decimals(1)?, arguments.decimals(2)?);
            arguments.make_decimals(|row| {
                let (value, start) = (values.get(row)?, starts.get(row)?);
                let width = widths.get(row).filter(|width| width.is_positive())?;
                decimal_sum(decimal_floor(decimal_sum(value, start.wrapping_neg())?, width)?, start)
            })
        }
        returns => {
            let (values, starts) = match returns {
                KqlType::DateTime => (arguments.datetimes(0)?, arguments.datetimes(2)?),
                KqlType::TimeSpan => (arguments.timespans(0)?, arguments.timespans(2)?),
                _ => (arguments.longs(0)?, arguments.longs(2)?),
            };
            let widths = if returns == KqlType::Long { arguments.longs(1)? } else { arguments.timespans(1)? };
            let in_range = |ticks: &i64| returns != KqlType::DateTime || (0..=MAX_DATETIME_TICKS).contains(ticks);
            arguments.make_longs(|row| {
                let (value, width, start) = (values.get(row)?, widths.get(row)?, starts.get(row)?);
                if width <= 0 {
                    return None;
                }
                let past = value.checked_sub(start)?.rem_euclid(width);
                value.checked_sub(past).filter(in_range)
            })
        }
    }
}

/// A decimal stays one; all other numbers become real.
fn rounded_type(types: &[KqlType]) -> std::result::Result<KqlType, String> {
    Ok(if types.first() == Some(&KqlType::Decimal) { KqlType::Decimal } else { KqlType::Real })
}

fn ceiling(arguments: &FunctionArguments) -> Result<ArrayRef> {
    if arguments.returns == KqlType::Decimal {
        let decimals = arguments.decimals(0)?;
        return arguments.make_decimals(|row| decimal_ceiling(decimals.get(row)?));
    }
    let numbers = arguments.reals(0)?;
    arguments.make_reals(|row| numbers.get(row).map(f64::ceil))
}

/// Rounds halves away from zero, judged by their decimal digits.
fn round(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let digits = if arguments.len() > 1 { Some(arguments.longs(1)?) } else { None };
    let digits = |row: usize| digits.as_ref().map_or(Some(0), |digits| digits.get(row));
    if arguments.returns == KqlType::Decimal {
        let decimals = arguments.decimals(0)?;
        return arguments.make_decimals(|row| decimal_rounded(decimals.get(row)?, digits(row)?));
    }
    let numbers = arguments.reals(0)?;
    arguments.make_reals(|row| Some(rounded(numbers.get(row)?, digits(row)?.clamp(-300, 300) as i32)))
}

fn rounded(number: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits.abs());
    let result = if digits >= 0 { (number * scale).round() / scale } else { (number / scale).round() * scale };
    if result.is_finite() { result } else { number }
}
