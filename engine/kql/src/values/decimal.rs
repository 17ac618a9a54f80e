//! Decimals: fixed point inside, read and computed with Kusto's 34 significant digits, written without trailing zeros.

mod arithmetic;

use arrow::datatypes::i256;

use crate::types::DECIMAL_SCALE;

use arithmetic::fitted;
pub(crate) use arithmetic::{
    decimal_ceiling, decimal_floor, decimal_product, decimal_quotient, decimal_remainder, decimal_rounded, decimal_sum,
};

/// The digits behind the point.
const SCALE: usize = DECIMAL_SCALE.unsigned_abs() as usize;
const ONE: i256 = i256::from_parts(TEN_TO_THE_SCALE, 0);
const TEN_TO_THE_SCALE: u128 = 10_u128.pow(SCALE as u32);
/// The digits of a text that are looked at one by one; of those behind them only whether they are all zero.
const MAX_READ_DIGITS: usize = 70;

/// One in fixed point.
pub(crate) fn decimal_one() -> i256 {
    ONE
}

/// Returns what `tostring` writes.
pub(crate) fn format_decimal(stored: i256) -> String {
    let sign = if stored.is_negative() { "-" } else { "" };
    let magnitude = stored.wrapping_abs();
    // Both parts have at most as many digits as an `i128`.
    let whole = magnitude.wrapping_div(ONE).as_i128();
    let fraction = format!("{:0SCALE$}", magnitude.wrapping_rem(ONE).as_i128());
    match fraction.trim_end_matches('0') {
        "" => format!("{sign}{whole}"),
        fraction => format!("{sign}{whole}.{fraction}"),
    }
}

/// Reads digits with a sign, a point and an exponent. Digits past the last that is kept are rounded.
pub(crate) fn parse_decimal(text: &str) -> Option<i256> {
    let text = text.trim();
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: String = [whole, fraction].concat();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // The distance of the last digit from the last stored one.
    let shift = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?.checked_add(DECIMAL_SCALE.into())?;
    let magnitude = magnitude(digits.trim_start_matches('0'), shift)?;
    Some(if negative { magnitude.wrapping_neg() } else { magnitude })
}

/// Returns digits times a power of ten.
fn magnitude(digits: &str, exponent: i32) -> Option<i256> {
    if digits.is_empty() {
        return Some(i256::ZERO);
    }
    let (read, rest) = digits.split_at(digits.len().min(MAX_READ_DIGITS));
    let exponent = exponent.checked_add(i32::try_from(rest.len()).ok()?)?;
    if rest.bytes().all(|digit| digit == b'0') {
        return fitted(i256::from_string(read)?, exponent);
    }
    // One more digit tells what is more than a half from a half.
    fitted(i256::from_string(&format!("{read}1"))?, exponent.checked_sub(1)?)
}

/// Returns the nearest real.
pub(crate) fn decimal_to_real(stored: i256) -> f64 {
    // Parsing the text rounds once; a division rounds twice.
    format_decimal(stored).parse().unwrap_or(f64::NAN)
}

/// Returns the decimal with the digits of a real; `None` if it does not fit.
pub(crate) fn decimal_from_real(real: f64) -> Option<i256> {
    real.is_finite().then(|| parse_decimal(&format!("{real:e}"))).flatten()
}

/// Returns an integer as a decimal.
pub(crate) fn decimal_from_long(long: i64) -> i256 {
    i256::from(long).wrapping_mul(ONE)
}

/// Returns the integer part; `None` if it does not fit.
pub(crate) fn decimal_to_long(stored: i256) -> Option<i64> {
    stored.wrapping_div(ONE).to_i128().and_then(|whole| i64::try_from(whole).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_round_trip() {
        for (text, expected) in [
            ("3.14", "3.14"),
            ("-0.5", "-0.5"),
            ("100", "100"),
            ("1e3", "1000"),
            ("+1.5E-2", "0.015"),
            ("0.123456789012", "0.123456789012"),
            ("-0.0", "0"),
            ("1.23456789012345678901", "1.23456789012345678901"),
            ("12345678901234567890123456789012345678", "12345678901234567890123456789012350000"),
            ("1.00000000000000000000000000000000005", "1"),
            ("1.000000000000000000000000000000000500", "1"),
            ("1.0000000000000000000000000000000005001", "1.000000000000000000000000000000001"),
            ("1e-38", "0.00000000000000000000000000000000000001"),
            ("1e-2000000", "0"),
        ] {
            assert_eq!(parse_decimal(text).map(format_decimal).as_deref(), Some(expected), "{text}");
        }
        for text in ["abc", "", ".", "1e40", "1e2000000000", "--1", "1.2.3"] {
            assert_eq!(parse_decimal(text), None, "{text}");
        }
        assert_eq!(decimal_from_real(0.1), parse_decimal("0.1"));
        assert_eq!(decimal_from_real(f64::NAN), None);
        assert_eq!(decimal_to_long(decimal_from_long(i64::MIN)), Some(i64::MIN));
        assert_eq!(decimal_to_long(parse_decimal("-9.99").unwrap()), Some(-9));
    }
}
