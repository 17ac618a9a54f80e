//! Functions of numbers. Logarithms of what has none are null; everything else follows IEEE 754.

use std::f64::consts::PI;

use arrow::array::ArrayRef;
use datafusion::error::Result;
use rand::Rng;

use super::super::types::KqlType;
use super::arguments::Arguments;
use super::signature::{Entry, Returns, entry, volatile};

const LONG: Returns = Returns::Is(KqlType::Long);
const REAL: Returns = Returns::Is(KqlType::Real);
const BOOL: Returns = Returns::Is(KqlType::Bool);

pub(super) const FUNCTIONS: &[Entry] = &[
    entry("abs", "x", Returns::Widened(0), abs),
    entry("sign", "n", REAL, |arguments| reals(arguments, sign)),
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
    entry("gamma", "n", REAL, |arguments| reals(arguments, gamma)),
    entry("loggamma", "n", REAL, |arguments| reals(arguments, log_gamma)),
    entry("beta_pdf", "nnn", REAL, beta_pdf),
    entry("erf", "n", REAL, |arguments| reals(arguments, erf)),
    entry("erfc", "n", REAL, |arguments| reals(arguments, |real| 1.0 - erf(real))),
];

fn reals(arguments: &Arguments, compute: impl Fn(f64) -> f64) -> Result<ArrayRef> {
    let numbers = arguments.reals(0)?;
    arguments.make_reals(|row| numbers.get(row).map(&compute))
}

fn two_reals(arguments: &Arguments, compute: impl Fn(f64, f64) -> f64) -> Result<ArrayRef> {
    let (left, right) = (arguments.reals(0)?, arguments.reals(1)?);
    arguments.make_reals(|row| Some(compute(left.get(row)?, right.get(row)?)))
}

fn logarithms(arguments: &Arguments, compute: impl Fn(f64) -> f64) -> Result<ArrayRef> {
    let numbers = arguments.reals(0)?;
    arguments.make_reals(|row| numbers.get(row).filter(|real| *real >= 0.0 || real.is_nan()).map(&compute))
}

fn within_one(arguments: &Arguments, compute: impl Fn(f64) -> f64) -> Result<ArrayRef> {
    let numbers = arguments.reals(0)?;
    arguments.make_reals(|row| numbers.get(row).filter(|real| real.abs() <= 1.0 || real.is_nan()).map(&compute))
}

fn longs(arguments: &Arguments, compute: impl Fn(i64, i64) -> Option<i64>) -> Result<ArrayRef> {
    let (left, right) = (arguments.longs(0)?, arguments.longs(1)?);
    arguments.make_longs(|row| compute(left.get(row)?, right.get(row)?))
}

/// The density of the beta distribution; NaN where there is none.
fn beta_pdf(arguments: &Arguments) -> Result<ArrayRef> {
    let (numbers, alphas, betas) = (arguments.reals(0)?, arguments.reals(1)?, arguments.reals(2)?);
    arguments.make_reals(|row| {
        let (number, alpha, beta) = (numbers.get(row)?, alphas.get(row)?, betas.get(row)?);
        if !(0.0..=1.0).contains(&number) || alpha <= 0.0 || beta <= 0.0 {
            return Some(f64::NAN);
        }
        let scale = log_gamma(alpha + beta) - log_gamma(alpha) - log_gamma(beta);
        Some((scale + (alpha - 1.0) * number.ln() + (beta - 1.0) * (1.0 - number).ln()).exp())
    })
}

fn questions(arguments: &Arguments, ask: impl Fn(f64) -> bool) -> Result<ArrayRef> {
    let numbers = arguments.reals(0)?;
    arguments.make_bools(|row| numbers.get(row).map(&ask))
}

fn sign(real: f64) -> f64 {
    if real > 0.0 {
        1.0
    } else if real < 0.0 {
        -1.0
    } else {
        0.0
    }
}

fn abs(arguments: &Arguments) -> Result<ArrayRef> {
    match arguments.returns {
        KqlType::Real => reals(arguments, f64::abs),
        KqlType::Decimal => {
            let decimals = arguments.decimals(0)?;
            arguments.make_decimals(|row| decimals.get(row).map(i128::abs))
        }
        KqlType::Long | KqlType::TimeSpan => {
            let numbers = arguments.longs(0)?;
            arguments.make_longs(|row| numbers.get(row).map(i64::wrapping_abs))
        }
        _ => Err(arguments.error("takes a number or a timespan")),
    }
}

/// From 0 to 1, or a whole number below the argument.
fn random(arguments: &Arguments) -> Result<ArrayRef> {
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

fn binary_not(arguments: &Arguments) -> Result<ArrayRef> {
    let numbers = arguments.longs(0)?;
    arguments.make_longs(|row| numbers.get(row).map(|number| !number))
}

fn count_ones(arguments: &Arguments) -> Result<ArrayRef> {
    let numbers = arguments.longs(0)?;
    arguments.make_longs(|row| numbers.get(row).map(|number| i64::from(number.count_ones())))
}

fn shift_left(number: i64, bits: i64) -> Option<i64> {
    u32::try_from(bits).ok().map(|bits| number.wrapping_shl(bits))
}

fn shift_right(number: i64, bits: i64) -> Option<i64> {
    u32::try_from(bits).ok().map(|bits| number.wrapping_shr(bits))
}

fn gamma(real: f64) -> f64 {
    if real < 0.5 { PI / ((PI * real).sin() * gamma(1.0 - real)) } else { log_gamma(real).exp() }
}

/// Lanczos's approximation, g = 7, nine terms.
pub(super) fn log_gamma(real: f64) -> f64 {
    const TERMS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if real < 0.5 {
        return (PI / (PI * real).sin().abs()).ln() - log_gamma(1.0 - real);
    }
    let real = real - 1.0;
    let sum = TERMS
        .iter()
        .enumerate()
        .fold(0.999_999_999_999_809_9, |sum, (index, term)| sum + term / (real + index as f64 + 1.0));
    let shifted = real + 7.5;
    0.5 * (2.0 * PI).ln() + (real + 0.5) * shifted.ln() - shifted + sum.ln()
}

/// Its Taylor series where that converges quickly, a continued fraction of its complement elsewhere.
pub(super) fn erf(real: f64) -> f64 {
    const SERIES_LIMIT: f64 = 2.5;
    let x = real.abs();
    let value = if x < SERIES_LIMIT {
        let (mut term, mut sum) = (x, x);
        for n in 1..100_u32 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        2.0 / PI.sqrt() * sum
    } else {
        let fraction = (1..=80_u32).rev().fold(x, |tail, n| x + f64::from(n) / 2.0 / tail);
        1.0 - (-x * x).exp() / (PI.sqrt() * fraction)
    };
    if real < 0.0 { -value } else { value }
}
