//! KQL's values as text and back: what `tostring` writes, what conversions and typed literals read, and the cells of
//! Kusto's JSON answers.
//!
//! Reading returns `None` if the text is not such a value. Writing never fails.

mod datetime;
mod decimal;
mod json;
mod real;
mod ticks;
mod timespan;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Decimal256Type, Float64Type, Int32Type, Int64Type};
use serde_json::Value;

use crate::types::KqlType;

pub(crate) use datetime::{format_datetime, parse_datetime};
pub(crate) use decimal::{
    decimal_ceiling, decimal_floor, decimal_from_long, decimal_from_real, decimal_one, decimal_product,
    decimal_quotient, decimal_remainder, decimal_rounded, decimal_sum, decimal_to_long, decimal_to_real,
    format_decimal, parse_decimal,
};
pub(crate) use json::{
    json_element, json_member, json_to_string, json_type_name, normalize_json, parse_json, tree_bytes, value_to_json,
    value_to_string, with_greatest_reals,
};
pub(crate) use real::{format_real, with_greatest_digits};
pub(crate) use ticks::{
    MAX_DATETIME_TICKS, TICKS_PER_DAY, TICKS_PER_HOUR, TICKS_PER_MICROSECOND, TICKS_PER_MILLISECOND, TICKS_PER_MINUTE,
    TICKS_PER_SECOND, UNIX_EPOCH_TICKS, date_of, date_ticks,
};
pub(crate) use timespan::{format_timespan, parse_timespan};

/// Returns the text of a row's value: `True`, `1.5`, `2020-01-02T03:04:05.6000000Z`, `1.02:03:04`. Null is the empty
/// string.
pub(crate) fn format_value(kql_type: KqlType, array: &dyn Array, row: usize) -> String {
    if array.is_null(row) {
        return String::new();
    }
    let text = match kql_type {
        KqlType::Bool => array.as_boolean_opt().map(|bools| format_bool(bools.value(row)).to_owned()),
        KqlType::Int => array.as_primitive_opt::<Int32Type>().map(|ints| ints.value(row).to_string()),
        KqlType::Long => ticks(array, row).map(|long| long.to_string()),
        KqlType::Real => array.as_primitive_opt::<Float64Type>().map(|reals| format_real(reals.value(row))),
        KqlType::Decimal => {
            array.as_primitive_opt::<Decimal256Type>().map(|decimals| format_decimal(decimals.value(row)))
        }
        KqlType::DateTime => ticks(array, row).map(format_datetime),
        KqlType::TimeSpan => ticks(array, row).map(format_timespan),
        KqlType::String | KqlType::Guid => string_at(array, row).map(str::to_owned),
        KqlType::Dynamic => string_at(array, row).map(|json| json_to_string(json).into_owned()),
    };
    text.unwrap_or_default()
}

/// Returns the cell of a row's value in an answer of Kusto's REST interface. A number that JSON does not have is a
/// string; a dynamic value is itself.
pub(crate) fn json_cell(kql_type: KqlType, array: &dyn Array, row: usize) -> Value {
    match kql_type {
        KqlType::String => Value::String(format_value(kql_type, array, row)),
        _ if array.is_null(row) => Value::Null,
        KqlType::Bool => array.as_boolean_opt().map_or(Value::Null, |bools| Value::Bool(bools.value(row))),
        KqlType::Int => array.as_primitive_opt::<Int32Type>().map_or(Value::Null, |ints| ints.value(row).into()),
        KqlType::Long => ticks(array, row).map_or(Value::Null, Value::from),
        KqlType::Real => {
            array.as_primitive_opt::<Float64Type>().map_or(Value::Null, |reals| real_cell(reals.value(row)))
        }
        KqlType::Dynamic => string_at(array, row).map_or(Value::Null, parse_json),
        KqlType::DateTime => ticks(array, row).map_or(Value::Null, |ticks| Value::String(trimmed_datetime(ticks))),
        KqlType::Decimal | KqlType::TimeSpan | KqlType::Guid => Value::String(format_value(kql_type, array, row)),
    }
}

/// Writes the cell that [`json_cell`] returns.
pub(crate) fn write_json_cell(kql_type: KqlType, array: &dyn Array, row: usize, out: &mut Vec<u8>) {
    match string_at(array, row).filter(|_| kql_type == KqlType::Dynamic && array.is_valid(row)) {
        // The value is JSON already.
        Some(json) => out.extend_from_slice(json.as_bytes()),
        None => out.extend_from_slice(json_cell(kql_type, array, row).to_string().as_bytes()),
    }
}

/// Returns `True` or `False`.
pub(crate) fn format_bool(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// Reads `true` or `false` in any case, or an integer.
pub(crate) fn parse_bool(text: &str) -> Option<bool> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        parse_long(text).map(|number| number != 0)
    }
}

/// Reads an integer in decimal digits with a sign, or `0x` and hexadecimal digits without one.
pub(crate) fn parse_long(text: &str) -> Option<i64> {
    let text = text.trim();
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+')).map(u64::cast_signed),
        None => text.parse().ok(),
    }
}

/// Like [`parse_long`]; `None` if the number does not fit.
pub(crate) fn parse_int(text: &str) -> Option<i32> {
    parse_long(text).and_then(|long| i32::try_from(long).ok())
}

/// Reads a decimal number, `NaN`, `nan`, `inf` or `Infinity`.
pub(crate) fn parse_real(text: &str) -> Option<f64> {
    let text = text.trim();
    let unsigned = text.trim_start_matches(['+', '-']);
    let is_word = unsigned.starts_with(|first: char| first.is_ascii_alphabetic());
    if is_word && !matches!(unsigned, "nan" | "NaN" | "inf" | "Inf" | "infinity" | "Infinity") {
        return None;
    }
    text.parse().ok()
}

/// Returns a guid as 36 lowercase characters. It is read from the first 32 digits, wherever hyphens are between them;
/// what follows is not looked at.
pub(crate) fn parse_guid(text: &str) -> Option<String> {
    let text = text.trim();
    let text = text.strip_prefix(['{', '(']).unwrap_or(text);
    let digits: String = text.chars().filter(|char| *char != '-').take(32).collect();
    uuid::Uuid::try_parse(&digits).ok().filter(|_| digits.len() == 32).map(|guid| guid.hyphenated().to_string())
}

/// Reads a length of time as KQL's `timespan` literals and .NET write it: `1.5h`, `hh:mm:ss`, `d.hh:mm:ss`. `None` if the
/// text is neither, or negative.
pub fn timespan(text: &str) -> Option<std::time::Duration> {
    let ticks = u64::try_from(parse_timespan(text)?).ok()?;
    let (seconds, rest) = (ticks / TICKS_PER_SECOND.unsigned_abs(), ticks % TICKS_PER_SECOND.unsigned_abs());
    Some(std::time::Duration::new(seconds, u32::try_from(rest * 100).ok()?))
}

/// Writes a length of time as KQL does: `1.02:03:04.5000000`.
pub fn timespan_text(length: std::time::Duration) -> String {
    format_timespan(i64::try_from(length.as_nanos() / 100).unwrap_or(i64::MAX))
}

fn ticks(array: &dyn Array, row: usize) -> Option<i64> {
    array.as_primitive_opt::<Int64Type>().map(|longs| longs.value(row))
}

fn string_at(array: &dyn Array, row: usize) -> Option<&str> {
    let views = || array.as_string_view_opt().map(|strings| strings.value(row));
    array.as_string_opt::<i32>().map(|strings| strings.value(row)).or_else(views)
}

/// Returns a real as JSON: what JSON does not have is a string, as in answers and inside of dynamic values.
pub(crate) fn real_cell(real: f64) -> Value {
    if real.is_nan() {
        "NaN".into()
    } else if real.is_infinite() {
        if real > 0.0 { "Infinity".into() } else { "-Infinity".into() }
    } else {
        real.into()
    }
}

/// Formats a datetime as the REST interface does: without trailing zeros of the fraction.
fn trimmed_datetime(ticks: i64) -> String {
    let text = format_datetime(ticks);
    let digits = text.trim_end_matches('Z').trim_end_matches('0').trim_end_matches('.');
    // A whole minute keeps its seconds.
    if ticks % TICKS_PER_SECOND == 0 { format!("{}Z", &text[..text.len() - 9]) } else { format!("{digits}Z") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_parsed_as_kusto_parses_them() {
        assert_eq!(parse_bool("tRuE"), Some(true));
        assert_eq!(parse_bool("-1"), Some(true));
        assert_eq!(parse_bool("yes"), None);
        assert_eq!(parse_long(" 45 "), Some(45));
        assert_eq!(parse_long("0X1f"), Some(31));
        assert_eq!(parse_long("-0x10"), None);
        assert_eq!(parse_long("3.14"), None);
        assert_eq!(parse_int("2147483648"), None);
        assert_eq!(parse_real("-inf"), Some(f64::NEG_INFINITY));
        assert_eq!(
            parse_guid("{AE3133F2-6e22-49ae-b06a-16e6a9b212eb}").as_deref(),
            Some("ae3133f2-6e22-49ae-b06a-16e6a9b212eb")
        );
    }

    #[test]
    fn cells_drop_trailing_zeros_of_a_fraction() {
        let ticks = |text| parse_datetime(text).unwrap();
        assert_eq!(trimmed_datetime(ticks("2020-01-01 10:20:30")), "2020-01-01T10:20:30Z");
        assert_eq!(trimmed_datetime(ticks("2020-01-01 00:00:00.5")), "2020-01-01T00:00:00.5Z");
    }
}
