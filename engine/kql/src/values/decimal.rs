//! Decimals: fixed point inside, written without trailing zeros.

use crate::types::{DECIMAL_PRECISION, DECIMAL_SCALE};

/// One in fixed point.
pub(crate) const fn decimal_one() -> i128 {
    10_i128.pow(DECIMAL_SCALE.unsigned_abs() as u32)
}

/// Returns what `tostring` writes.
pub(crate) fn format_decimal(stored: i128) -> String {
    let one = decimal_one().unsigned_abs();
    let sign = if stored < 0 { "-" } else { "" };
    let (whole, fraction) = (stored.unsigned_abs() / one, stored.unsigned_abs() % one);
    let digits = usize::from(DECIMAL_SCALE.unsigned_abs());
    let fraction = format!("{fraction:0digits$}");
    match fraction.trim_end_matches('0') {
        "" => format!("{sign}{whole}"),
        fraction => format!("{sign}{whole}.{fraction}"),
    }
}

/// Reads digits with a sign, a point and an exponent. Digits past the scale are rounded.
pub(crate) fn parse_decimal(text: &str) -> Option<i128> {
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
    if digits.is_empty() || digits.len() > 60 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // The distance of the last digit from the last stored one.
    let shift = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?.checked_add(DECIMAL_SCALE.into())?;
    let stored = shifted(&digits, shift)?;
    Some(if negative { -stored } else { stored })
}

fn shifted(digits: &str, shift: i32) -> Option<i128> {
    let stored = match usize::try_from(shift) {
        Ok(zeros) => {
            let trimmed = digits.trim_start_matches('0');
            if trimmed.is_empty() {
                return Some(0);
            }
            (trimmed.len() + zeros <= usize::from(DECIMAL_PRECISION))
                .then(|| format!("{trimmed}{}", "0".repeat(zeros)).parse().ok())??
        }
        Err(_) => {
            let dropped = usize::try_from(shift.unsigned_abs()).ok()?;
            let Some(kept) = digits.len().checked_sub(dropped) else { return Some(0) };
            let whole: i128 = digits[..kept].parse().unwrap_or(0);
            let rounds_up = digits.as_bytes().get(kept).is_some_and(|digit| *digit >= b'5');
            whole + i128::from(rounds_up)
        }
    };
    (stored < 10_i128.checked_pow(DECIMAL_PRECISION.into())?).then_some(stored)
}

/// Returns the nearest real.
pub(crate) fn decimal_to_real(stored: i128) -> f64 {
    // Parsing the text rounds once; a division rounds twice.
    format_decimal(stored).parse().unwrap_or(f64::NAN)
}

/// Returns the decimal with the digits of a real; `None` if it does not fit.
pub(crate) fn decimal_from_real(real: f64) -> Option<i128> {
    real.is_finite().then(|| parse_decimal(&format!("{real:e}"))).flatten()
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
            ("0.123456789012", "0.1234567890"),
            ("-0.0", "0"),
        ] {
            let expected = expected.trim_end_matches(|char| char == '0' && expected.contains('.'));
            assert_eq!(parse_decimal(text).map(format_decimal).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(parse_decimal("abc"), None);
        assert_eq!(parse_decimal("1e40"), None);
        assert_eq!(decimal_from_real(0.1), Some(decimal_one() / 10));
    }
}
