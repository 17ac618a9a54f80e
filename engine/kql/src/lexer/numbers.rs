//! Lexes numbers and timespans: `1`, `0x1F`, `1.5`, `1e3`, `1.5h`. Digits followed by other letters are a word
//! (`3Dchart`).

use super::{TokenKind, is_word_part};

const NANOSECOND: i128 = 1;
const TICK: i128 = 100;
const SECOND: i128 = 1_000_000_000;

/// Returns the kind and length of the token at the start of `text`, which starts with a digit.
pub(super) fn scan(text: &str) -> (TokenKind, usize) {
    let digits = count_digits(text);
    if let Some(length) = hexadecimal(text) {
        return (TokenKind::Long, length);
    }
    let (decimal, fraction) = match text[digits..].strip_prefix('.') {
        Some(after) if !after.starts_with('.') => (true, 1 + count_digits(after)),
        _ => (false, 0),
    };
    let number = digits + fraction;
    if let Some(exponent) = exponent(&text[number..]) {
        return (TokenKind::Real, number + exponent);
    }
    let suffix = text[number..].find(|char| !is_word_part(char)).unwrap_or(text.len() - number);
    if unit_nanoseconds(&text[number..number + suffix]).is_some() {
        return (TokenKind::Timespan, number + suffix);
    }
    match (decimal, suffix) {
        (true, _) => (TokenKind::Real, number),
        (false, 0) => (TokenKind::Long, number),
        (false, suffix) => (TokenKind::Word, number + suffix),
    }
}

/// Returns the value of a `Long` token; `None` where it does not fit.
pub(crate) fn long_value(literal: &str) -> Option<i64> {
    match literal.strip_prefix("0x").or_else(|| literal.strip_prefix("0X")) {
        // As in Kusto, sixteen digits are the bits of the number.
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(u64::cast_signed),
        None => literal.parse().ok(),
    }
}

/// Returns the value of a `Timespan` token in whole ticks of 100 ns; `None` where it does not fit.
pub(crate) fn timespan_ticks(literal: &str) -> Option<i64> {
    let number = literal.find(|char: char| !char.is_ascii_digit() && char != '.')?;
    let unit = unit_nanoseconds(&literal[number..])?;
    let (whole, fraction) = literal[..number].split_once('.').unwrap_or((&literal[..number], ""));
    // Eighteen digits of a day are far below a tick, and keep the product in range.
    let fraction = &fraction[..fraction.len().min(18)];
    let whole = whole.parse::<i128>().ok()?.checked_mul(unit)?;
    let part = match fraction {
        "" => 0,
        digits => {
            digits.parse::<i128>().ok()?.checked_mul(unit)? / 10_i128.checked_pow(u32::try_from(digits.len()).ok()?)?
        }
    };
    let nanoseconds = whole.checked_add(part)?;
    i64::try_from(nanoseconds / TICK).ok()
}

fn count_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn hexadecimal(text: &str) -> Option<usize> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let length = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
    (length > 0 && !digits[length..].starts_with(is_word_part)).then_some(2 + length)
}

fn exponent(text: &str) -> Option<usize> {
    let after = text.strip_prefix(['e', 'E'])?;
    let sign = usize::from(after.starts_with(['+', '-']));
    let digits = count_digits(&after[sign..]);
    (digits > 0 && !after[sign + digits..].starts_with(is_word_part)).then_some(1 + sign + digits)
}

fn unit_nanoseconds(suffix: &str) -> Option<i128> {
    let unit = match suffix {
        "d" | "day" | "days" => 86_400 * SECOND,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600 * SECOND,
        "m" | "min" | "minute" | "minutes" => 60 * SECOND,
        "s" | "sec" | "second" | "seconds" => SECOND,
        "ms" | "milli" | "millis" | "millisec" | "millisecond" | "milliseconds" => SECOND / 1_000,
        "micro" | "micros" | "microsec" | "microsecond" | "microseconds" => SECOND / 1_000_000,
        "nano" | "nanos" | "nanosec" | "nanosecond" | "nanoseconds" => NANOSECOND,
        "tick" | "ticks" => TICK,
        _ => return None,
    };
    Some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timespans_are_ticks() {
        assert_eq!(timespan_ticks("1d"), Some(864_000_000_000));
        assert_eq!(timespan_ticks("1.5h"), Some(54_000_000_000));
        assert_eq!(timespan_ticks("100ms"), Some(1_000_000));
        assert_eq!(timespan_ticks("1tick"), Some(1));
        assert_eq!(timespan_ticks("0.0000001s"), Some(1));
        assert_eq!(timespan_ticks("99999999d"), None);
    }

    #[test]
    fn longs_that_do_not_fit_have_no_value() {
        assert_eq!(long_value("9223372036854775807"), Some(i64::MAX));
        assert_eq!(long_value("9223372036854775808"), None);
        assert_eq!(long_value("0xFFFFFFFFFFFFFFFF"), Some(-1));
    }

    #[test]
    fn a_number_ends_where_it_ends() {
        assert_eq!(scan("1.5x"), (TokenKind::Real, 3));
        assert_eq!(scan("1.."), (TokenKind::Long, 1));
        assert_eq!(scan("1.|"), (TokenKind::Real, 2));
        assert_eq!(scan("1e5"), (TokenKind::Real, 3));
        assert_eq!(scan("1ex"), (TokenKind::Word, 3));
        assert_eq!(scan("1us"), (TokenKind::Word, 3));
    }
}
