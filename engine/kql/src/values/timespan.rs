//! Timespans as text: `1.02:03:04.5000000`. Kusto reads that form with parts left out, or a number and a unit; neither
//! `humantime` nor `jiff` reads `1.02:03:04.5`.

use super::ticks::{TICKS_PER_DAY, TICKS_PER_HOUR, TICKS_PER_MINUTE, TICKS_PER_SECOND};
use crate::lexer::timespan_ticks;

/// Returns what `tostring` writes: days if there are any, seven digits of a fraction if there is one.
pub(crate) fn format_timespan(ticks: i64) -> String {
    let sign = if ticks < 0 { "-" } else { "" };
    let ticks = ticks.unsigned_abs();
    let unit = |ticks: i64| ticks.unsigned_abs();
    let days = match ticks / unit(TICKS_PER_DAY) {
        0 => String::new(),
        days => format!("{days}."),
    };
    let fraction = match ticks % unit(TICKS_PER_SECOND) {
        0 => String::new(),
        fraction => format!(".{fraction:07}"),
    };
    let hours = ticks / unit(TICKS_PER_HOUR) % 24;
    let minutes = ticks / unit(TICKS_PER_MINUTE) % 60;
    let seconds = ticks / unit(TICKS_PER_SECOND) % 60;
    format!("{sign}{days}{hours:02}:{minutes:02}:{seconds:02}{fraction}")
}

/// Returns the ticks of `1.02:03:04.5`, `02:03`, `1.5h`, with or without a sign.
pub(crate) fn parse_timespan(text: &str) -> Option<i64> {
    let text = text.trim();
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest.trim_start()),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let ticks = match text.contains(':') {
        true => parse_clock(text)?,
        false => timespan_ticks(&with_unit(text))?.into(),
    };
    i64::try_from(if negative { -ticks } else { ticks }).ok()
}

/// Returns the notation of the lexer: lower case, nothing between number and unit.
fn with_unit(text: &str) -> String {
    text.chars().filter(|char| !char.is_whitespace()).collect::<String>().to_ascii_lowercase()
}

/// Reads `[d.]hh:mm[:ss[.fffffff]]`.
fn parse_clock(text: &str) -> Option<i128> {
    let parts: Vec<&str> = text.split(':').collect();
    let (first, minutes, seconds) = match parts.as_slice() {
        [first, minutes] => (*first, *minutes, "0"),
        [first, minutes, seconds] => (*first, *minutes, *seconds),
        _ => return None,
    };
    let (days, hours) = first.split_once('.').unwrap_or(("0", first));
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let (days, hours, minutes, seconds) = (number(days)?, number(hours)?, number(minutes)?, number(seconds)?);
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    // What is less than a tick is dropped.
    let fraction = fraction.get(..fraction.len().min(7))?;
    let fraction = number(&format!("{fraction:0<7}"))?;
    let clock = hours * i128::from(TICKS_PER_HOUR)
        + minutes * i128::from(TICKS_PER_MINUTE)
        + seconds * i128::from(TICKS_PER_SECOND)
        + fraction;
    Some(days * i128::from(TICKS_PER_DAY) + clock)
}

fn number(text: &str) -> Option<i128> {
    let digits = !text.is_empty() && text.len() <= 10 && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timespans_round_trip() {
        for (text, expected) in [
            ("1.02:03:04.5", "1.02:03:04.5000000"),
            ("-1.02:03:04.5", "-1.02:03:04.5000000"),
            ("0:0:0.001", "00:00:00.0010000"),
            ("100.00:00:00", "100.00:00:00"),
            ("1d", "1.00:00:00"),
            ("1.5h", "01:30:00"),
            ("02:30", "02:30:00"),
            ("10675199.02:48:05.4775807", "10675199.02:48:05.4775807"),
            ("-10675199.02:48:05.4775808", "-10675199.02:48:05.4775808"),
        ] {
            assert_eq!(parse_timespan(text).map(format_timespan).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "10", "1.x", "25:00", "10:60", "é", "99999999.00:00:00"] {
            assert_eq!(parse_timespan(text), None, "{text}");
        }
    }
}
