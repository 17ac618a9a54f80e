//! `TIMESTAMP(n)` and `TIME(n)` of values with more digits of a second: they are rounded, as in PostgreSQL, where Arrow would cut
//! them.

use chrono::{NaiveDateTime, NaiveTime, TimeDelta};
use datafusion::sql::sqlparser::ast::{CastKind, DataType, Expr, TimezoneInfo, TypedString, Value, ValueWithSpan};

use super::function_forms::parsed_form;
use super::shorthand::taken;
use crate::error::{EngineError, Result};

/// The digits that the engine's times have, below which a precision rounds.
const MICROSECOND_DIGITS: u64 = 6;

/// Writes out a cast, or a literal, of such a type, and days that are named by words. Errors: `unsupported` for the end of time.
pub(super) fn round_times(expr: &mut Expr) -> Result<()> {
    refuse_infinity(expr)?;
    if let Some(meaning) = day_of_word(expr) {
        *expr = parsed_form(&meaning, &[])?;
        return Ok(());
    }
    match expr {
        Expr::TypedString(TypedString { data_type, value: ValueWithSpan { value, .. }, .. }) => {
            if let (Some(digits), Value::SingleQuotedString(text)) = (digits_of(data_type), value)
                && let Some(rounded) = rounded(text, digits, matches!(data_type, DataType::Time(..)))
            {
                *text = rounded;
            }
        }
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr: value, data_type, .. } => {
            let Some(digits) = digits_of(data_type) else { return Ok(()) };
            let is_time = matches!(data_type, DataType::Time(..));
            if let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) = value.as_mut() {
                if let Some(rounded) = rounded(text, digits, is_time) {
                    *text = rounded;
                }
                return Ok(());
            }
            let is_parameter = |value: &Value| matches!(value, Value::Placeholder(_));
            if matches!(value.as_ref(), Expr::Value(literal) if !(is_time && is_parameter(&literal.value))) {
                return Ok(());
            }
            let step = 10_u64.pow(u32::try_from(MICROSECOND_DIGITS - digits).unwrap_or_default());
            if is_time {
                **value = parsed_form(&rounded_time(step), &[taken(value)])?;
                return Ok(());
            }
            let has_zone = matches!(data_type, DataType::Timestamp(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz));
            let zone = if has_zone { " WITH TIME ZONE" } else { "" };
            let meaning = format!(
                "date_bin(INTERVAL '{step} microseconds', CAST($1 AS TIMESTAMP{zone}) + INTERVAL '{} microseconds')",
                step / 2
            );
            **value = parsed_form(&meaning, &[taken(value)])?;
        }
        _ => {}
    }
    Ok(())
}

/// Returns the form of a time of day that is rounded to so many microseconds. What would be the next day is its last second, as for
/// literals.
fn rounded_time(step: u64) -> String {
    let half = step / 2;
    let last = 1_000_000 - half;
    format!(
        "CASE WHEN CAST($1 AS TIME) >= TIME '23:59:59.{last:06}' THEN TIME '23:59:59' ELSE CAST(date_bin(INTERVAL '{step} \
         microseconds', DATE '2000-01-01' + CAST($1 AS TIME) + INTERVAL '{half} microseconds') AS TIME) END"
    )
}

/// `'today'::DATE` and its kin of PostgreSQL.
fn day_of_word(expr: &Expr) -> Option<String> {
    let (data_type, text) = time_literal(expr)?;
    let moment = match text.trim().to_lowercase().as_str() {
        "now" => "now()",
        "today" => "current_date()",
        "yesterday" => "current_date() - INTERVAL '1 day'",
        "tomorrow" => "current_date() + INTERVAL '1 day'",
        _ => return None,
    };
    Some(format!("CAST({moment} AS {data_type})"))
}

/// Returns the type and the text of a literal that is a date or a timestamp.
fn time_literal(expr: &Expr) -> Option<(&DataType, &str)> {
    let (data_type, text) = match expr {
        Expr::TypedString(TypedString { data_type, value, .. }) => (data_type, &value.value),
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, .. } => match expr.as_ref() {
            Expr::Value(value) => (data_type, &value.value),
            _ => return None,
        },
        _ => return None,
    };
    match (data_type, text) {
        (DataType::Date | DataType::Timestamp(..), Value::SingleQuotedString(text)) => Some((data_type, text.as_str())),
        _ => None,
    }
}

/// PostgreSQL and DuckDB have days before and after all others; Arrow has none.
fn refuse_infinity(expr: &Expr) -> Result<()> {
    let Some((data_type, text)) = time_literal(expr) else { return Ok(()) };
    let (first, last) = match data_type {
        DataType::Date => ("DATE '0001-01-01'", "DATE '9999-12-31'"),
        _ => ("TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59'"),
    };
    let instead = match text.trim().to_lowercase().as_str() {
        "infinity" | "+infinity" | "inf" => last,
        "-infinity" | "-inf" => first,
        _ => return Ok(()),
    };
    Err(EngineError::Unsupported {
        what: format!("a {data_type} that is {text}"),
        hint: format!("write NULL, or a day that none is beyond: {instead}"),
    })
}

fn digits_of(data_type: &DataType) -> Option<u64> {
    match data_type {
        DataType::Timestamp(Some(digits), _) | DataType::Time(Some(digits), _) | DataType::Datetime(Some(digits)) => {
            Some(*digits).filter(|digits| *digits < MICROSECOND_DIGITS)
        }
        _ => None,
    }
}

/// Returns a literal of a time with so many digits; `None` where it has no more of them, or has another form.
fn rounded(text: &str, digits: u64, is_time: bool) -> Option<String> {
    let (_, fraction) = text.split_once('.')?;
    let is_longer = fraction.bytes().all(|byte| byte.is_ascii_digit()) && fraction.len() as u64 > digits;
    if !is_longer {
        return None;
    }
    let half = TimeDelta::microseconds(10_i64.pow(u32::try_from(MICROSECOND_DIGITS - digits).ok()?) / 2);
    let kept = usize::try_from(digits).ok()?;
    let shown = |whole: String, micros: String| match kept {
        0 => whole,
        kept => format!("{whole}.{}", micros.get(..kept).unwrap_or_default()),
    };
    if is_time {
        let time = NaiveTime::parse_from_str(text.trim(), "%H:%M:%S%.f").ok()?;
        let (time, days) = time.overflowing_add_signed(half);
        let whole = if days > 0 { "23:59:59".to_owned() } else { time.format("%H:%M:%S").to_string() };
        return Some(shown(whole, time.format("%6f").to_string()));
    }
    let moment = NaiveDateTime::parse_from_str(&text.trim().replacen('T', " ", 1), "%Y-%m-%d %H:%M:%S%.f").ok()?;
    let moment = moment.checked_add_signed(half)?;
    Some(shown(moment.format("%Y-%m-%d %H:%M:%S").to_string(), moment.format("%6f").to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_rounded_with_their_carry() {
        for (text, digits, is_time, expected) in [
            ("2024-12-31 23:59:59.6", 0, false, Some("2025-01-01 00:00:00")),
            ("2024-01-01T00:00:00.126", 2, false, Some("2024-01-01 00:00:00.13")),
            ("2024-01-01 00:00:00.12", 2, false, None),
            ("2024-01-01 00:00:00", 0, false, None),
            ("12:00:00.67", 0, true, Some("12:00:01")),
            ("12:00:00.67", 3, true, None),
        ] {
            assert_eq!(rounded(text, digits, is_time).as_deref(), expected, "{text}");
        }
    }
}
