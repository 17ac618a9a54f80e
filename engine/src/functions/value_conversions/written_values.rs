//! Texts of values in the form that Arrow's parsers read.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use chrono::{Datelike, NaiveDate};

use crate::functions::{with_units, without_offset};

/// Returns a text in the form in which it is read as a value of a type: numbers without spaces around them, integers without
/// fractions (rounded half away from zero), decimals without exponents, timestamps with seconds. `None` where it has that form, or is no such value.
pub(crate) fn normal_form(text: &str, data_type: &DataType) -> Option<String> {
    let trimmed = text.trim();
    let normal = match data_type {
        integer if integer.is_integer() => {
            let plain = of_radix(trimmed).or_else(|| joined_digits(trimmed, 10)).unwrap_or_else(|| trimmed.to_owned());
            whole_number(&plain).unwrap_or(plain)
        }
        decimal if decimal.is_decimal() => plain_number(text)?.into_owned(),
        DataType::Timestamp(_, _) if trimmed.eq_ignore_ascii_case("epoch") => "1970-01-01 00:00:00".to_owned(),
        DataType::Timestamp(_, _) => {
            let dashed = with_dashes(trimmed).unwrap_or_else(|| trimmed.to_owned());
            let clocked = with_clock(&dashed).unwrap_or(dashed);
            with_next_day(&clocked).unwrap_or(clocked)
        }
        DataType::Date32 => {
            with_dashes(trimmed).or_else(|| written_date(trimmed)).unwrap_or_else(|| trimmed.to_owned())
        }
        // Arrow takes it for a time of day; it is none.
        DataType::Time32(_) | DataType::Time64(_) if trimmed.starts_with("23:59:60") => "24:00:00".to_owned(),
        DataType::Time32(_) | DataType::Time64(_) => {
            with_colons(trimmed).or_else(|| with_two_digits(trimmed)).unwrap_or_else(|| trimmed.to_owned())
        }
        // A number by itself counts seconds; Arrow takes it for months.
        DataType::Interval(_) if is_plain_number(trimmed) => format!("{trimmed} seconds"),
        DataType::Interval(_) => with_units(trimmed).unwrap_or_else(|| trimmed.to_owned()),
        number if number.is_numeric() => joined_digits(trimmed, 10).unwrap_or_else(|| trimmed.to_owned()),
        _ => return None,
    };
    (normal != text).then_some(normal)
}

/// Returns texts that become dates, or times without a zone, without their offsets, which say nothing there; `None` where none has
/// one. Arrow would move the time to UTC.
pub(super) fn without_offsets(texts: &ArrayRef, to: &DataType) -> Result<Option<ArrayRef>, ArrowError> {
    if !matches!(to, DataType::Timestamp(_, None) | DataType::Date32) {
        return Ok(None);
    }
    let texts = cast(texts, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>();
    // What is behind a date and a time of day; most texts have nothing there.
    let may_have_offset =
        |text: &str| text.bytes().skip(11).any(|byte| matches!(byte, b'+' | b'-') || byte.is_ascii_alphabetic());
    if !texts.iter().flatten().any(|text| may_have_offset(text) && without_offset(text) != text) {
        return Ok(None);
    }
    let plain: StringArray = texts.iter().map(|text| text.map(without_offset)).collect();
    Ok(Some(Arc::new(plain)))
}

/// Returns a whole number that is written with hexadecimal or binary digits, as DuckDB reads them.
fn of_radix(text: &str) -> Option<String> {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', first, ..] if first.is_ascii_hexdigit() => (text.get(2..)?, 16),
        [b'0', b'b' | b'B', b'0' | b'1', ..] => (text.get(2..)?, 2),
        _ => return None,
    };
    let joined = joined_digits(digits, radix).unwrap_or_else(|| digits.to_owned());
    u64::from_str_radix(&joined, radix).ok().map(|number| number.to_string())
}

/// Returns a number whose digits are set apart by underscores, `1_000`, without these; `None` where there are none, or other ones.
fn joined_digits(text: &str, radix: u32) -> Option<String> {
    let parts: Vec<&str> = text.split('_').collect();
    let is_digit = |letter: Option<char>| letter.is_some_and(|letter| letter.is_digit(radix));
    let is_between = parts.windows(2).all(|pair| match pair {
        [left, right] => is_digit(left.chars().next_back()) && is_digit(right.chars().next()),
        _ => false,
    });
    (parts.len() > 1 && is_between).then(|| parts.concat())
}

/// Returns whether a text is digits, perhaps with a sign and a fraction.
fn is_plain_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    digits.bytes().any(|byte| byte.is_ascii_digit()) && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Returns a date whose month is a name, or without dashes, as PostgreSQL reads them.
fn written_date(text: &str) -> Option<String> {
    const FORMS: [&str; 6] = ["%B %d, %Y", "%d %B %Y", "%Y-%b-%d", "%d-%b-%Y", "%b-%d-%Y", "%Y%m%d"];
    if text.eq_ignore_ascii_case("epoch") {
        return Some("1970-01-01".to_owned());
    }
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let has_name = text.bytes().any(|byte| byte.is_ascii_alphabetic());
    if !(has_name || (is_digits && text.len() == 8)) {
        return None;
    }
    let date = FORMS.iter().find_map(|form| NaiveDate::parse_from_str(text, form).ok())?;
    Some(with_century(date, text)?.format("%Y-%m-%d").to_string())
}

/// Returns a date whose year was written with two digits as one from 1970 to 2069; `None` of other years that are not written whole.
fn with_century(date: NaiveDate, text: &str) -> Option<NaiveDate> {
    let year = date.year();
    match year {
        0..1000 if text.contains(&format!("{year:04}")) => Some(date),
        0..70 => date.with_year(year + 2000),
        70..100 => date.with_year(year + 1900),
        100..1000 => None,
        _ => Some(date),
    }
}

/// Returns a date that is written with slashes or with single digits, and what is behind it, as ISO 8601 has it: `2024/2/9` and
/// `2024-2-9` are some of DuckDB and PostgreSQL.
fn with_dashes(text: &str) -> Option<String> {
    let (date, rest) = text.split_at(text.find([' ', 'T']).unwrap_or(text.len()));
    let is_number = |part: &str, digits: std::ops::RangeInclusive<usize>| {
        digits.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let separator = if date.contains('/') { '/' } else { '-' };
    let parts: Vec<&str> = date.split(separator).collect();
    match parts.as_slice() {
        [year, month, day] if is_number(year, 4..=4) && is_number(month, 1..=2) && is_number(day, 1..=2) => {
            Some(format!("{year}-{month:0>2}-{day:0>2}{rest}"))
        }
        _ => None,
    }
}

/// Returns a time of day with two digits in each place: `1:2:3.5` is one of DuckDB and PostgreSQL.
fn with_two_digits(text: &str) -> Option<String> {
    let (clock, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let is_number = |part: &&str| matches!(part.len(), 1 | 2) && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = clock.split(':').collect();
    if !parts.iter().all(is_number) {
        return None;
    }
    match parts.as_slice() {
        [hour, minute] if fraction.is_empty() => Some(format!("{hour:0>2}:{minute:0>2}:00")),
        [hour, minute, second] => Some(format!("{hour:0>2}:{minute:0>2}:{second:0>2}{fraction}")),
        _ => None,
    }
}

/// Returns a time of day without colons with them: `040506`, which Arrow reads as a number, is one of PostgreSQL.
fn with_colons(text: &str) -> Option<String> {
    let (digits, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let (hour, rest) = digits.split_at_checked(2)?;
    let (minute, second) = rest.split_at_checked(2)?;
    match second.len() {
        0 if fraction.is_empty() => Some(format!("{hour}:{minute}:00")),
        2 => Some(format!("{hour}:{minute}:{second}{fraction}")),
        _ => None,
    }
}

/// Returns a timestamp whose time of day has two digits in each place and seconds: `2024-01-31 8:15` is one of PostgreSQL and
/// DuckDB.
fn with_clock(text: &str) -> Option<String> {
    let (date, rest) = text.split_at(text.find([' ', 'T'])?);
    let (separator, rest) = rest.split_at(1);
    let (clock, zone) = rest.split_at(rest.find(['Z', '+', '-', ' ']).unwrap_or(rest.len()));
    with_two_digits(clock).map(|clock| format!("{date}{separator}{clock}{zone}"))
}

/// Returns a timestamp at the end of a day, which PostgreSQL and DuckDB write as `24:00:00`, as the beginning of the next one.
fn with_next_day(text: &str) -> Option<String> {
    let (date, time) = text.split_once([' ', 'T'])?;
    let rest = time.strip_prefix("24:00")?;
    let seconds = rest.split(['Z', '+', '-', ' ']).next().unwrap_or_default();
    if !seconds.bytes().all(|byte| matches!(byte, b':' | b'.' | b'0')) {
        return None;
    }
    let next = NaiveDate::parse_from_str(date, "%Y-%m-%d").ok()?.succ_opt()?;
    Some(format!("{} 00:00{rest}", next.format("%Y-%m-%d")))
}

/// The longest text that is a number.
const MAX_NUMBER_BYTES: usize = 4_096;
/// The largest exponent that is written out; no decimal has as many digits.
const MAX_EXPONENT: i32 = 100;

/// Returns a number without spaces around it and without an exponent; `None` where a text is no number. Arrow's parser of decimals
/// reads no exponents, takes a text without digits for zero, and recurses by the length of a text.
pub(super) fn plain_number(text: &str) -> Option<Cow<'_, str>> {
    let trimmed = text.trim();
    if trimmed.len() > MAX_NUMBER_BYTES {
        return None;
    }
    let (number, exponent) = match trimmed.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
        None => (trimmed, 0),
    };
    let (sign, unsigned) = match number.strip_prefix('-') {
        Some(unsigned) => ("-", unsigned),
        None => ("", number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let are_digits = |part: &str| part.bytes().all(|digit| digit.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    if exponent == 0 {
        return Some(Cow::Borrowed(number));
    }
    let digits = format!("{whole}{fraction}");
    if digits.bytes().all(|digit| digit == b'0') || exponent < -MAX_EXPONENT - MAX_NUMBER_BYTES as i32 {
        return Some(Cow::Borrowed("0"));
    }
    if exponent > MAX_EXPONENT {
        return None;
    }
    let point = whole.len() as i32 + exponent;
    Some(Cow::Owned(match usize::try_from(point) {
        Err(_) => format!("{sign}0.{}{digits}", "0".repeat(point.unsigned_abs() as usize)),
        Ok(point) if point >= digits.len() => format!("{sign}{digits}{}", "0".repeat(point - digits.len())),
        Ok(point) => format!("{sign}0{}.{}", &digits[..point], &digits[point..]),
    }))
}

/// Returns a number with a fraction or an exponent as the integer that it is rounded to.
fn whole_number(text: &str) -> Option<String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let are_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((whole, fraction)) = digits.split_once('.')
        && are_digits(whole)
        && are_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
    {
        let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let rounded = whole.checked_add(u128::from(fraction.bytes().next().is_some_and(|digit| digit >= b'5')))?;
        return Some(if rounded == 0 { "0".to_owned() } else { format!("{sign}{rounded}") });
    }
    if !digits.starts_with(|letter: char| letter.is_ascii_digit() || letter == '.') || !digits.contains(['e', 'E']) {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    // Beyond, a double does not tell one integer from the next.
    (number.abs() < 9_007_199_254_740_992.0).then(|| format!("{}", number.round() as i64))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::TimeUnit;

    use super::*;

    #[test]
    fn texts_of_numbers_and_times_get_their_normal_form() {
        let timestamp = DataType::Timestamp(TimeUnit::Microsecond, None);
        for (text, data_type, expected) in [
            (" 12 ", DataType::Int32, Some("12")),
            ("12", DataType::Int32, None),
            ("1.6", DataType::Int32, Some("2")),
            ("-2.5", DataType::Int64, Some("-3")),
            ("-.4", DataType::Int64, Some("0")),
            ("9223372036854775806.5", DataType::Int64, Some("9223372036854775807")),
            ("1e3", DataType::Int64, Some("1000")),
            ("x", DataType::Int64, None),
            ("1.x", DataType::Int64, None),
            (".", DataType::Int64, None),
            (" 1.5", DataType::Float64, Some("1.5")),
            (" 1.5", DataType::Decimal128(10, 2), Some("1.5")),
            ("1.5", DataType::Decimal128(10, 2), None),
            ("", DataType::Decimal128(10, 2), None),
            ("-", DataType::Decimal128(10, 2), None),
            ("1e3", DataType::Decimal128(10, 2), Some("1000")),
            ("-1.5E-3", DataType::Decimal128(10, 2), Some("-0.0015")),
            ("12.345e+1", DataType::Decimal128(10, 2), Some("0123.45")),
            ("0e99", DataType::Decimal128(10, 2), Some("0")),
            ("1e999", DataType::Decimal128(10, 2), None),
            ("1e", DataType::Decimal128(10, 2), None),
            ("e3", DataType::Decimal128(10, 2), None),
            ("2024-01-31 08:15", timestamp.clone(), Some("2024-01-31 08:15:00")),
            ("2024-01-31T08:15+02:00", timestamp.clone(), Some("2024-01-31T08:15:00+02:00")),
            ("2024-01-31 08:15:10", timestamp.clone(), None),
            ("2024-1-5 1:2:3.5", timestamp.clone(), Some("2024-01-05 01:02:03.5")),
            ("2024-1-5T1:02", timestamp.clone(), Some("2024-01-05T01:02:00")),
            ("2024-01-05 01", timestamp.clone(), None),
            ("Tuesday 1:02", timestamp.clone(), None),
            ("2024-02-28 24:00:00", timestamp.clone(), Some("2024-02-29 00:00:00")),
            ("2024-12-31T24:00:00.0Z", timestamp.clone(), Some("2025-01-01 00:00:00.0Z")),
            ("2024-12-31 24:00:01", timestamp.clone(), None),
            ("2024-01-31", timestamp, None),
            ("January 8, 1999", DataType::Date32, Some("1999-01-08")),
            ("08-Jan-1999", DataType::Date32, Some("1999-01-08")),
            ("1999-01-08", DataType::Date32, None),
            ("1999/1/8", DataType::Date32, Some("1999-01-08")),
            ("1999/1", DataType::Date32, None),
            ("2024/01/31 08:15", DataType::Timestamp(TimeUnit::Microsecond, None), Some("2024-01-31 08:15:00")),
            ("1:2:3.5", DataType::Time64(TimeUnit::Microsecond), Some("01:02:03.5")),
            ("1:2:300", DataType::Time64(TimeUnit::Microsecond), None),
            ("040506", DataType::Time64(TimeUnit::Microsecond), Some("04:05:06")),
            ("04:05:06", DataType::Time64(TimeUnit::Microsecond), None),
            (" x", DataType::Utf8, None),
        ] {
            assert_eq!(normal_form(text, &data_type).as_deref(), expected, "{text} as {data_type}");
        }
    }
}
