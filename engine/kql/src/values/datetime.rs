//! Datetimes as text: `2020-01-02T03:04:05.6000000Z`. Kusto reads many notations: ISO 8601 with parts left out, month
//! first with `-` or `/`, names of months (RFC 822 and 850), and an offset or the abbreviation of a zone at the end.

use chrono::{Datelike, NaiveDate, Utc};

use super::ticks::{
    MAX_DATETIME_TICKS, TICKS_PER_DAY, TICKS_PER_HOUR, TICKS_PER_MINUTE, TICKS_PER_SECOND, date_of, date_ticks,
};

/// Returns what `tostring` writes.
pub(crate) fn format_datetime(ticks: i64) -> String {
    let Some(date) = date_of(ticks) else { return String::new() };
    let time = ticks % TICKS_PER_DAY;
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:07}Z",
        date.year(),
        date.month(),
        date.day(),
        time / TICKS_PER_HOUR,
        time / TICKS_PER_MINUTE % 60,
        time / TICKS_PER_SECOND % 60,
        time % TICKS_PER_SECOND
    )
}

/// Returns the ticks of a text in any of these notations.
pub(crate) fn parse_datetime(text: &str) -> Option<i64> {
    let text = text.trim();
    // A time alone is one of today.
    let (date, rest) = match text.split_once(':') {
        Some((hour, _)) if is_hour(hour) => (Utc::now().date_naive(), text),
        _ => parse_date(text)?,
    };
    let (time, offset) = parse_time(rest)?;
    let ticks = date_ticks(date)?.checked_add(time)?.checked_sub(offset)?;
    (0..=MAX_DATETIME_TICKS).contains(&ticks).then_some(ticks)
}

fn is_hour(text: &str) -> bool {
    matches!(text.len(), 1 | 2) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn parse_date(text: &str) -> Option<(NaiveDate, &str)> {
    if let Some((month, rest)) = month_name(text) {
        return month_name_first(month, rest);
    }
    let text = without_weekday(text);
    let (first, digits, rest) = number(text)?;
    let date = match digits {
        8 => return Some((NaiveDate::from_ymd_opt((first / 10_000) as i32, first / 100 % 100, first % 100)?, rest)),
        4 if rest.is_empty() => return Some((NaiveDate::from_ymd_opt(first as i32, 1, 1)?, rest)),
        4 => year_first(first, rest)?,
        1 | 2 => day_or_month_first(first, rest)?,
        _ => return None,
    };
    Some(date)
}

/// Reads `2020-01-02`, `2020-01`, `2020/1/2` or `2020, 1, 2`.
fn year_first(year: u32, rest: &str) -> Option<(NaiveDate, &str)> {
    let (month, _, rest) = number(separated(rest)?)?;
    match separated(rest).and_then(number) {
        Some((day, _, rest)) => Some((NaiveDate::from_ymd_opt(year as i32, month, day)?, rest)),
        None => Some((NaiveDate::from_ymd_opt(year as i32, month, 1)?, rest)),
    }
}

/// Reads `12-31-2020`, `12/31/2020`, `8 Nov 14` or `08-Nov-2014`.
fn day_or_month_first(first: u32, rest: &str) -> Option<(NaiveDate, &str)> {
    let rest = rest.strip_prefix(' ').or_else(|| separated(rest))?;
    if let Some((month, rest)) = month_name(rest) {
        let rest = rest.strip_prefix([' ', '-'])?;
        let (year, digits, rest) = number(rest)?;
        return Some((NaiveDate::from_ymd_opt(whole_year(year, digits)?, month, first)?, rest));
    }
    let (day, _, rest) = number(rest)?;
    let (year, digits, rest) = number(separated(rest)?)?;
    Some((NaiveDate::from_ymd_opt(whole_year(year, digits)?, first, day)?, rest))
}

/// Reads `Jan 1 2020`, `January 1, 2020` or `Jan-01-20`, behind the month.
fn month_name_first(month: u32, rest: &str) -> Option<(NaiveDate, &str)> {
    let (day, _, rest) = number(rest.strip_prefix([' ', '-', '/'])?)?;
    let rest = rest.strip_prefix(',').map(str::trim_start).or_else(|| rest.strip_prefix([' ', '-', '/']))?;
    let (year, digits, rest) = number(rest)?;
    Some((NaiveDate::from_ymd_opt(whole_year(year, digits)?, month, day)?, rest))
}

/// Returns the year of two or four digits. Two digits are from 1950 to 2049.
fn whole_year(year: u32, digits: usize) -> Option<i32> {
    match (digits, year) {
        (4, _) => Some(year as i32),
        (2, 0..50) => Some(2000 + year as i32),
        (2, _) => Some(1900 + year as i32),
        _ => None,
    }
}

/// Returns the ticks since midnight, and the ticks that the zone is ahead of UTC.
fn parse_time(text: &str) -> Option<(i64, i64)> {
    let text = text.strip_prefix(['T', 't']).unwrap_or(text).trim_start();
    if text.is_empty() {
        return Some((0, 0));
    }
    let Some((hour, _, rest)) = number(text) else { return Some((0, parse_zone(text)?)) };
    let (minute, digits, rest) = number(rest.strip_prefix(':')?)?;
    let (second, fraction, rest) = match rest.strip_prefix(':') {
        Some(rest) => {
            let (second, _, rest) = number(rest)?;
            let (fraction, rest) = parse_fraction(rest)?;
            (second, fraction, rest)
        }
        None => (0, 0, rest),
    };
    let (hour, rest) = twelve_hours(hour, rest)?;
    if hour > 23 || minute > 59 || second > 59 || digits > 2 {
        return None;
    }
    let time = i64::from(hour) * TICKS_PER_HOUR + i64::from(minute) * TICKS_PER_MINUTE;
    Some((time + i64::from(second) * TICKS_PER_SECOND + fraction, parse_zone(rest.trim_start())?))
}

/// Returns the ticks of `.123`; zero without a fraction. Digits past the seventh are dropped.
fn parse_fraction(text: &str) -> Option<(i64, &str)> {
    let Some(text) = text.strip_prefix(['.', ',']) else { return Some((0, text)) };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let kept = &text[..digits.min(7)];
    let ticks = format!("{kept:0<7}").parse().ok()?;
    (digits > 0).then_some((ticks, &text[digits..]))
}

fn twelve_hours(hour: u32, rest: &str) -> Option<(u32, &str)> {
    let trimmed = rest.trim_start();
    let lower = trimmed.get(..2).map(str::to_ascii_lowercase);
    match lower.as_deref() {
        Some("am") if (1..=12).contains(&hour) => Some((hour % 12, &trimmed[2..])),
        Some("pm") if (1..=12).contains(&hour) => Some((hour % 12 + 12, &trimmed[2..])),
        Some("am" | "pm") => None,
        _ => Some((hour, rest)),
    }
}

fn parse_zone(text: &str) -> Option<i64> {
    let hours = match text.to_ascii_uppercase().as_str() {
        "" | "Z" | "UTC" | "GMT" | "UT" => 0,
        "EDT" => -4,
        "EST" | "CDT" => -5,
        "CST" | "MDT" => -6,
        "MST" | "PDT" => -7,
        "PST" => -8,
        _ => return parse_offset(text),
    };
    Some(hours * TICKS_PER_HOUR)
}

/// Reads `+02:00`, `-0800` or `+2`.
fn parse_offset(text: &str) -> Option<i64> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let (first, digits, rest) = number(text.strip_prefix(['+', '-'])?)?;
    let (hours, minutes) = match (digits, rest) {
        (4, "") => (first / 100, first % 100),
        (1 | 2, "") => (first, 0),
        (1 | 2, rest) => {
            let (minutes, _, rest) = number(rest.strip_prefix(':')?)?;
            rest.is_empty().then_some((first, minutes))?
        }
        _ => return None,
    };
    (hours <= 14 && minutes <= 59)
        .then(|| sign * (i64::from(hours) * TICKS_PER_HOUR + i64::from(minutes) * TICKS_PER_MINUTE))
}

fn without_weekday(text: &str) -> &str {
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    if letters >= 3 { text[letters..].trim_start_matches([',', ' ']) } else { text }
}

fn month_name(text: &str) -> Option<(u32, &str)> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let name = text[..letters].to_ascii_lowercase();
    let month = (letters >= 3).then(|| MONTHS.iter().position(|month| month.starts_with(&name)))??;
    Some((u32::try_from(month).ok()? + 1, &text[letters..]))
}

fn separated(text: &str) -> Option<&str> {
    let spaced = text.strip_prefix(" - ").map(str::trim_start);
    text.strip_prefix(['-', '/', '.']).or_else(|| text.strip_prefix(',').map(str::trim_start)).or(spaced)
}

/// Returns the number at the beginning, how many digits it has, and what follows.
fn number(text: &str) -> Option<(u32, usize, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text[..digits].parse().ok()?, digits, &text[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_notations_are_parsed() {
        for (text, expected) in [
            ("2020-01-02", "2020-01-02T00:00:00.0000000Z"),
            ("2020-1-2 3:04", "2020-01-02T03:04:00.0000000Z"),
            ("2014-05-25T08:20:03.123456Z", "2014-05-25T08:20:03.1234560Z"),
            ("2014-05-25T08:20:03.12345678+02:00", "2014-05-25T06:20:03.1234567Z"),
            ("Sat, 8 Nov 14 15:05:02 GMT", "2014-11-08T15:05:02.0000000Z"),
            ("Saturday, 08-Nov-14 15:05:02 UTC", "2014-11-08T15:05:02.0000000Z"),
            ("Jan 1 2020", "2020-01-01T00:00:00.0000000Z"),
            ("March 31, 2021 4:05 pm", "2021-03-31T16:05:00.0000000Z"),
            ("8 Nov 2014", "2014-11-08T00:00:00.0000000Z"),
            ("12-02-2022", "2022-12-02T00:00:00.0000000Z"),
            ("12/31/2020 1:02:03 PM", "2020-12-31T13:02:03.0000000Z"),
            ("2025, 6, 14", "2025-06-14T00:00:00.0000000Z"),
            ("9999-12-31 23:59:59.9999999", "9999-12-31T23:59:59.9999999Z"),
            ("0001-01-01", "0001-01-01T00:00:00.0000000Z"),
        ] {
            assert_eq!(parse_datetime(text).map(format_datetime).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_time_alone_is_of_today() {
        let midnight = |text: &str| parse_datetime(text).map(|ticks| ticks % TICKS_PER_DAY);
        assert_eq!(midnight("8:00"), Some(8 * TICKS_PER_HOUR));
        assert_eq!(midnight("08:30:15"), Some(8 * TICKS_PER_HOUR + 30 * TICKS_PER_MINUTE + 15 * TICKS_PER_SECOND));
    }

    #[test]
    fn an_invalid_datetime_is_none() {
        for text in [
            "",
            "Jan 32 2020",
            "May",
            "25:00",
            "not a date",
            "2020-13-01",
            "2020-02-30",
            "2020-01-01T25:00",
            "2020-01-01 x",
            "é",
        ] {
            assert_eq!(parse_datetime(text), None, "{text}");
        }
    }
}
