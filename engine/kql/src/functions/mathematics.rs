//! Functions of numbers. The logarithm of a negative number is null; everything else follows IEEE 754.

use std::f64::consts::PI;

use arrow::array::ArrayRef;
use arrow::datatypes::i256;
use datafusion::error::Result;
use rand::Rng;

use super::arguments::FunctionArguments;
use super::signature::{FunctionEntry, Returns, entry, volatile};
use crate::types::KqlType;

const LONG: Returns = Returns::Is(KqlType::Long);
const REAL: Returns = Returns::Is(KqlType::Real);
const BOOL: Returns = Returns::Is(KqlType::Bool);

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("abs", "x", Returns::By(abs_type), abs),
    entry("sign", "n", REAL, sign),
    entry("sqrt", "n", REAL, |arguments| reals(arguments, f64::sqrt)),
    entry("pow", "nn", REAL, |arguments| two_reals(arguments, f64::powf)),
    entry("exp", "n", REAL, |arguments| reals(arguments, f64::exp)),
    entry("exp2", "n", REAL, |arguments| reals(arguments, f64::exp2)),
    entry("exp10", "n", REAL, |arguments| reals(arguments, |real| 10_f64.powf(real))),
    entry("log", "n", REAL, |arguments| logarithms(arguments, f64::ln)),
    entry("log2", "n", REAL, |arguments| logarithms(arguments, f64::log2)),
    entry("log10", "n", REAL, |arguments| logarithms(arguments, f64::log10)),
    entry("sin", "n", REAL, |arguments| reals(arguments, f64::sin)),
    entry("cos", "n", REAL, |arguments| reals(arguments, f64::cos)),
    entry("tan", "n", REAL, |arguments| reals(arguments, f64::tan)),
    entry("cot", "n", REAL, |arguments| reals(arguments, |real| 1.0 / real.tan())),
    entry("asin", "n", REAL, |arguments| within_one(arguments, f64::asin)),
    entry("acos", "n", REAL, |arguments| within_one(arguments, f64::acos)),
    entry("atan", "n", REAL, |arguments| reals(arguments, f64::atan)),
    entry("atan2", "nn", REAL, |arguments| two_reals(arguments, f64::atan2)),
    entry("degrees", "n", REAL, |arguments| reals(arguments, |real| 180.0 / PI * real)),
    entry("radians", "n", REAL, |arguments| reals(arguments, |real| PI / 180.0 * real)),
    entry("pi", "", REAL, |arguments| arguments.make_reals(|_| Some(PI))),
    entry("isnan", "n", BOOL, |arguments| questions(arguments, f64::is_nan)),
    entry("isinf", "n", BOOL, |arguments| questions(arguments, f64::is_infinite)),
    entry("isfinite", "n", BOOL, |arguments| questions(arguments, f64::is_finite)),
    volatile("rand", "?i", REAL, random),
    entry("binary_and", "ii", LONG, |arguments| longs(arguments, |left, right| Some(left & right))),
    entry("binary_or", "ii", LONG, |arguments| longs(arguments, |left, right| Some(left | right))),
    entry("binary_xor", "ii", LONG, |arguments| longs(arguments, |left, right| Some(left ^ right))),
    entry("binary_not", "i", LONG, binary_not),
    entry("binary_shift_left", "ii", LONG, |arguments| longs(arguments, shift_left)),
    entry("binary_shift_right", "ii", LONG, |arguments| longs(arguments, shift_right)),
    entry("bitset_count_ones", "i", LONG, count_ones),
    entry("gamma", "n", REAL, |arguments| reals(arguments, libm::tgamma)),
    entry("loggamma", "n", REAL, |arguments| reals(arguments, libm::lgamma)),
    entry("beta_pdf", "nnn", REAL, beta_pdf),
    entry("erf", "n", REAL, |arguments| reals(arguments, libm::erf)),
    entry("erfc", "n", REAL, |arguments| reals(arguments, libm::erfc)),
];

fn reals(arguments: &FunctionArguments, compute: impl Fn(f64) -> f64) -> Result<ArrayRef> {
    let numbers = arguments.reals(0)?;
    arguments.make_reals(|row| numbers.get(row).map(&compute))
}

fn two_reals(arguments: &FunctionArguments, compute: impl Fn(f64, f64) -> f64) -> Result<ArrayRef> {
    let (left, right) = (arguments.reals(0)?, arguments.reals(1)?);
    arguments.make_reals(|row| Some(compute(left.get(row)?, right.get(row)?)))
}

fn logarithms(arguments: &FunctionArguments, compute: impl Fn(f64) -> f64) -> Result<ArrayRef> {
    let numbers = arguments.reals(0)?;
    arguments.make_reals(|row| numbers.get(row).filter(|real| *real >= 0.0 || real.is_nan()).map(&compute))
}

fn within_one(arguments: &FunctionArguments, compute: impl Fn(f64) -> f64) -> Result<ArrayRef> {
    let numbers = arguments.reals(0)?;
    arguments.make_reals(|row| numbers.get(row).filter(|real| real.abs() <= 1.0 || real.is_nan()).map(&compute))
}

fn longs(arguments: &FunctionArguments, compute: impl Fn(i64, i64) -> Option<i64>) -> Result<ArrayRef> {
    let (left, right) = (arguments.longs(0)?, arguments.longs(1)?);
    arguments.make_longs(|row| compute(left.get(row)?, right.get(row)?))
}

/// The density of the beta distribution; NaN where it has none.
fn beta_pdf(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (numbers, alphas, betas) = (arguments.reals(0)?, arguments.reals(1)?, arguments.reals(2)?);
    arguments.make_reals(|row| {
        let (number, alpha, beta) = (numbers.get(row)?, alphas.get(row)?, betas.get(row)?);
        if number <= 0.0 || number >= 1.0 || number.is_nan() || alpha <= 0.0 || beta <= 0.0 {
            return Some(f64::NAN);
        }
        let scale = libm::lgamma(alpha + beta) - libm::lgamma(alpha) - libm::lgamma(beta);
        Some((scale + (alpha - 1.0) * number.ln() + (beta - 1.0) * (1.0 - number).ln()).exp())
    })
}

fn questions(arguments: &FunctionArguments, ask: impl Fn(f64) -> bool) -> Result<ArrayRef> {
    let numbers = arguments.reals(0)?;
    arguments.make_bools(|row| numbers.get(row).map(&ask))
}

/// The sign of null, as that of NaN, is 0.
fn sign(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let numbers = arguments.reals(0)?;
    arguments.make_reals(|row| {
        let number = numbers.get(row).unwrap_or(0.0);
        Some(f64::from(i8::from(number > 0.0) - i8::from(number < 0.0)))
    })
}

fn abs_type(arguments: &[KqlType]) -> std::result::Result<KqlType, String> {
    match arguments.first() {
        Some(KqlType::Int | KqlType::Long) => Ok(KqlType::Long),
        Some(same @ (KqlType::Real | KqlType::Decimal | KqlType::TimeSpan)) => Ok(*same),
        Some(other) => Err(format!("abs() takes a number or a timespan, not {}", other.name())),
        None => Err("abs() takes a number or a timespan".to_owned()),
    }
}

fn abs(arguments: &FunctionArguments) -> Result<ArrayRef> {
    match arguments.returns {
        KqlType::Real => reals(arguments, f64::abs),
        KqlType::Decimal => {
            let decimals = arguments.decimals(0)?;
            arguments.make_decimals(|row| decimals.get(row).map(i256::wrapping_abs))
        }
        KqlType::Long | KqlType::TimeSpan => {
            let numbers = arguments.longs(0)?;
            arguments.make_longs(|row| numbers.get(row).map(i64::wrapping_abs))
        }
        _ => Err(arguments.error("takes a number or a timespan")),
    }
}

/// Returns a number from 0 to 1, or an integer below the argument.
fn random(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let limit = if arguments.len() > 0 { Some(arguments.longs(0)?) } else { None };
    let mut random = rand::rng();
    arguments.make_reals(|row| {
        let limit = limit.as_ref().and_then(|limit| limit.get(row)).filter(|limit| *limit > 1);
        Some(match limit {
            Some(limit) => random.random_range(0..limit) as f64,
            None => random.random(),
        })
    })
}

fn binary_not(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let numbers = arguments.longs(0)?;
    arguments.make_longs(|row| numbers.get(row).map(|number| !number))
}

fn count_ones(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let numbers = arguments.longs(0)?;
    arguments.make_longs(|row| numbers.get(row).map(|number| i64::from(number.count_ones())))
}

fn shift_left(number: i64, bits: i64) -> Option<i64> {
    shifted_bits(bits).map(|bits| number.wrapping_shl(bits))
}

fn shift_right(number: i64, bits: i64) -> Option<i64> {
    shifted_bits(bits).map(|bits| number.wrapping_shr(bits))
}

/// Returns by how many bits a long of 64 is shifted; there is no shift by a negative number.
fn shifted_bits(bits: i64) -> Option<u32> {
    if bits < 0 { None } else { u32::try_from(bits % 64).ok() }
}
