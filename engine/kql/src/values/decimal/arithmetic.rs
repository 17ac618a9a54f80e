//! What is computed with decimals. A result keeps the significant digits that Kusto's decimals have, halves rounded to
//! the even digit; `None` where it does not fit or there is none.

use std::cmp::Ordering;
use std::sync::LazyLock;

use arrow::datatypes::i256;

use super::{ONE, SCALE};
use crate::types::DECIMAL_PRECISION;

/// The significant digits that a computation keeps.
const SIGNIFICANT_DIGITS: usize = 34;
/// The most digits that a stored decimal has.
const MAX_DIGITS: usize = DECIMAL_PRECISION as usize;

/// The powers of ten up to that of the most digits, the first that no decimal reaches.
static POWERS_OF_TEN: LazyLock<Vec<i256>> = LazyLock::new(|| {
    let exponents = 0..=u32::from(DECIMAL_PRECISION);
    exponents.map(|exponent| i256::from_i128(10).wrapping_pow(exponent)).collect()
});

fn power_of_ten(exponent: usize) -> Option<i256> {
    POWERS_OF_TEN.get(exponent).copied()
}

/// Returns how many digits a number has; zero has none.
fn digits(number: i256) -> usize {
    let magnitude = number.wrapping_abs();
    POWERS_OF_TEN.partition_point(|power| *power <= magnitude)
}

fn stored(number: i256) -> Option<i256> {
    (digits(number) <= MAX_DIGITS).then_some(number)
}

/// Divides by a power of ten, halves to the even digit.
fn without_digits(number: i256, dropped: usize) -> Option<i256> {
    if dropped == 0 {
        return Some(number);
    }
    let Some(unit) = power_of_ten(dropped) else { return Some(i256::ZERO) };
    let (kept, rest) = (number.checked_div(unit)?, number.checked_rem(unit)?.wrapping_abs());
    let is_odd = (kept & i256::ONE) == i256::ONE;
    let rounds_away = match rest.cmp(&unit.checked_div(i256::from_i128(2))?) {
        Ordering::Greater => true,
        Ordering::Equal => is_odd,
        Ordering::Less => false,
    };
    if rounds_away { kept.checked_add(number.signum()) } else { Some(kept) }
}

/// Returns `number` times a power of ten, in units of the last stored digit.
pub(super) fn fitted(number: i256, exponent: i32) -> Option<i256> {
    let below_the_last = usize::try_from(exponent.saturating_neg()).unwrap_or(0);
    let dropped = digits(number).saturating_sub(SIGNIFICANT_DIGITS).max(below_the_last);
    let kept = without_digits(number, dropped)?;
    if kept == i256::ZERO {
        return Some(kept);
    }
    let zeros = usize::try_from(exponent.checked_add(i32::try_from(dropped).ok()?)?).ok()?;
    stored(kept.checked_mul(power_of_ten(zeros)?)?)
}

/// Returns the significant digits, and how many zeros are behind them.
fn significant(number: i256) -> Option<(i256, usize)> {
    let zeros = digits(number).saturating_sub(SIGNIFICANT_DIGITS);
    Some((without_digits(number, zeros)?, zeros))
}

/// Returns a distance of exponents.
fn exponent(up: usize, down: usize) -> Option<i32> {
    i32::try_from(up).ok()?.checked_sub(i32::try_from(down).ok()?)
}

/// Returns `left + right`.
pub(crate) fn decimal_sum(left: i256, right: i256) -> Option<i256> {
    fitted(left.checked_add(right)?, 0)
}

/// Returns `left * right`.
pub(crate) fn decimal_product(left: i256, right: i256) -> Option<i256> {
    let ((left, left_zeros), (right, right_zeros)) = (significant(left)?, significant(right)?);
    fitted(left.checked_mul(right)?, exponent(left_zeros + right_zeros, SCALE)?)
}

/// Returns `left / right`; `None` where the divisor is zero.
pub(crate) fn decimal_quotient(left: i256, right: i256) -> Option<i256> {
    let ((left, left_zeros), (right, right_zeros)) = (significant(left)?, significant(right)?);
    // As many digits as fit beside one more, of which the quotient has more than are kept.
    let added = (MAX_DIGITS - 1).checked_sub(digits(left))?;
    let dividend = left.checked_mul(power_of_ten(added)?)?;
    let (quotient, rest) = (dividend.checked_div(right)?, dividend.checked_rem(right)?);
    // That digit tells what is more than a half from a half.
    let more = if rest == i256::ZERO { i256::ZERO } else { quotient.signum() };
    let quotient = quotient.checked_mul(i256::from_i128(10))?.checked_add(more)?;
    fitted(quotient, exponent(left_zeros + SCALE, right_zeros + added + 1)?)
}

/// Returns what is left of `left / right`, which is never negative; `None` where the divisor is zero.
pub(crate) fn decimal_remainder(left: i256, right: i256) -> Option<i256> {
    let rest = left.checked_rem(right)?;
    if rest.is_negative() { rest.checked_add(right.wrapping_abs()) } else { Some(rest) }
}

/// Returns the greatest multiple of `width` that is not after `value`; of a negative width, not before it. `None` where
/// the width is zero.
pub(crate) fn decimal_floor(value: i256, width: i256) -> Option<i256> {
    let rest = value.checked_rem(width)?;
    let is_past = rest != i256::ZERO && rest.is_negative() != width.is_negative();
    let past = if is_past { rest.checked_add(width)? } else { rest };
    stored(value.checked_sub(past)?)
}

/// Returns the least whole number that is not before `value`.
pub(crate) fn decimal_ceiling(value: i256) -> Option<i256> {
    Some(decimal_floor(value.wrapping_neg(), ONE)?.wrapping_neg())
}

/// Rounds to so many places behind the point, or before it where they are negative; halves away from zero.
pub(crate) fn decimal_rounded(value: i256, places: i64) -> Option<i256> {
    let scale = i64::try_from(SCALE).ok()?;
    let Ok(dropped @ 1..) = usize::try_from(scale.saturating_sub(places)) else { return Some(value) };
    let Some(unit) = power_of_ten(dropped) else { return Some(i256::ZERO) };
    let half = unit.checked_div(i256::from_i128(2))?;
    let up = value.wrapping_abs().checked_add(half)?;
    let rounded = up.checked_sub(up.checked_rem(unit)?)?;
    stored(if value.is_negative() { rounded.wrapping_neg() } else { rounded })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::decimal::{format_decimal, parse_decimal};

    fn computed(compute: fn(i256, i256) -> Option<i256>, left: &str, right: &str) -> String {
        let result = compute(parse_decimal(left).unwrap(), parse_decimal(right).unwrap());
        result.map_or("null".to_owned(), format_decimal)
    }

    #[test]
    fn results_have_34_digits() {
        for (compute, left, right, expected) in [
            (decimal_quotient as fn(i256, i256) -> Option<i256>, "1", "3", "0.3333333333333333333333333333333333"),
            (decimal_quotient, "2", "3", "0.6666666666666666666666666666666667"),
            (decimal_quotient, "-200", "3", "-66.66666666666666666666666666666667"),
            (decimal_quotient, "10", "4", "2.5"),
            (decimal_quotient, "0", "7", "0"),
            (decimal_quotient, "1", "0", "null"),
            (decimal_quotient, "1e-20", "1e17", "0.0000000000000000000000000000000000001"),
            (decimal_quotient, "1e20", "1e-20", "null"),
            (decimal_product, "1.5", "2.0", "3"),
            (decimal_product, "123456789012345678", "987654321098765432.1", "121932631137021794334857491122237500"),
            (decimal_product, "1e20", "1e20", "null"),
            (decimal_product, "1e-20", "-1e-18", "-0.00000000000000000000000000000000000001"),
            (decimal_product, "1e-30", "1e-30", "0"),
            (decimal_sum, "0.1", "0.2", "0.3"),
            (decimal_sum, "1e33", "0.5", "1000000000000000000000000000000000"),
            (decimal_sum, "1e33", "1.5", "1000000000000000000000000000000002"),
            (decimal_sum, "9e37", "9e37", "null"),
            (decimal_remainder, "-7", "3", "2"),
            (decimal_remainder, "10.5", "-3", "1.5"),
            (decimal_remainder, "1", "0", "null"),
            (decimal_floor, "-1.5", "1", "-2"),
            (decimal_floor, "1.55", "0.1", "1.5"),
            (decimal_floor, "1", "0", "null"),
        ] {
            assert_eq!(computed(compute, left, right), expected, "{left} {right}");
        }
    }

    #[test]
    fn halves_are_rounded_away_from_zero() {
        for (text, places, expected) in [
            ("2.5", 0, "3"),
            ("-2.5", 0, "-3"),
            ("1.005", 2, "1.01"),
            ("1250", -2, "1300"),
            ("1.5", 90, "1.5"),
            ("7", -90, "0"),
        ] {
            let rounded = decimal_rounded(parse_decimal(text).unwrap(), places).map(format_decimal);
            assert_eq!(rounded.as_deref(), Some(expected), "{text} {places}");
        }
        assert_eq!(decimal_ceiling(parse_decimal("-1.5").unwrap()), parse_decimal("-1"));
        assert_eq!(decimal_ceiling(parse_decimal("1.000001").unwrap()), parse_decimal("2"));
    }
}
