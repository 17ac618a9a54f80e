//! `format_datetime`, `format_timespan` and `format_bytes`. In a format, a run of one letter stands for a part and
//! gives its width; other characters stand for themselves.

use arrow::array::ArrayRef;
use chrono::Datelike;
use datafusion::error::Result;

use super::arguments::FunctionArguments;
use super::signature::{FunctionEntry, Returns, entry};
use crate::types::KqlType;
use crate::values::{TICKS_PER_DAY, TICKS_PER_HOUR, TICKS_PER_MINUTE, TICKS_PER_SECOND, date_of};

const STRING: Returns = Returns::Is(KqlType::String);

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("format_datetime", "tw", STRING, format_datetime),
    entry("format_timespan", "dw", STRING, format_timespan),
    entry("format_bytes", "n?nss", STRING, format_bytes),
];

fn format_datetime(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (times, formats) = (arguments.datetimes(0)?, arguments.strings(1)?);
    arguments.make_strings(|row, text| {
        let Some((ticks, date)) = times.get(row).and_then(|ticks| Some((ticks, date_of(ticks)?))) else {
            return Ok(());
        };
        let time = ticks % TICKS_PER_DAY;
        let hour = time / TICKS_PER_HOUR;
        for (letter, width) in runs(formats.get(row)) {
            match letter {
                'y' if width <= 2 => number(text, i64::from(date.year() % 100), width),
                'y' => number(text, date.year().into(), width),
                'M' => number(text, date.month().into(), width),
                'd' => number(text, date.day().into(), width),
                'H' => number(text, hour, width),
                'h' => number(text, (hour + 11) % 12 + 1, width),
                't' => text.push_str(if hour < 12 { "AM" } else { "PM" }),
                other => clock_part(text, other, width, time),
            }
        }
        Ok(())
    })
}

fn format_timespan(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (spans, formats) = (arguments.timespans(0)?, arguments.strings(1)?);
    arguments.make_strings(|row, text| {
        let Some(span) = spans.get(row) else { return Ok(()) };
        if span < 0 {
            text.push('-');
        }
        let span = i64::try_from(span.unsigned_abs()).unwrap_or(i64::MAX);
        for (letter, width) in runs(formats.get(row)) {
            match letter {
                'd' => number(text, span / TICKS_PER_DAY, width),
                'h' | 'H' => number(text, span / TICKS_PER_HOUR % 24, width),
                other => clock_part(text, other, width, span),
            }
        }
        Ok(())
    })
}

fn clock_part(text: &mut String, letter: char, width: usize, time: i64) {
    let fraction = format!("{:07}", time % TICKS_PER_SECOND);
    let digits = fraction.get(..width.min(7)).unwrap_or_default();
    match letter {
        'm' => number(text, time / TICKS_PER_MINUTE % 60, width),
        's' => number(text, time / TICKS_PER_SECOND % 60, width),
        'f' => text.push_str(digits),
        'F' => text.push_str(digits.trim_end_matches('0')),
        '%' | '\\' => {}
        other => text.extend(std::iter::repeat_n(other, width)),
    }
}

fn number(text: &mut String, value: i64, width: usize) {
    /// The widest part.
    const MOST_DIGITS: usize = 8;
    let width = width.min(MOST_DIGITS);
    text.push_str(&format!("{value:0width$}"));
}

/// Returns the characters of a format and how often each is repeated.
fn runs(format: &str) -> impl Iterator<Item = (char, usize)> + '_ {
    let mut chars = format.chars().peekable();
    std::iter::from_fn(move || {
        let letter = chars.next()?;
        let mut width = 1;
        while chars.next_if_eq(&letter).is_some() {
            width += 1;
        }
        Some((letter, width))
    })
}

/// Writes `1.5 KB`: with so many digits after the point, in the given unit or the largest that is not above the size.
/// `bytesize` would write 1024 as `1.0 KiB`, Kusto writes `1 KB`.
fn format_bytes(arguments: &FunctionArguments) -> Result<ArrayRef> {
    const UNITS: [&str; 7] = ["Bytes", "KB", "MB", "GB", "TB", "PB", "EB"];
    let sizes = arguments.reals(0)?;
    let digits = if arguments.len() > 1 { Some(arguments.longs(1)?) } else { None };
    let wanted = if arguments.len() > 2 { Some(arguments.strings(2)?) } else { None };
    arguments.make_strings(|row, text| {
        let Some(size) = sizes.get(row) else { return Ok(()) };
        let named = wanted.as_ref().and_then(|wanted| UNITS.iter().position(|unit| *unit == wanted.get(row)));
        let fitting = (0..UNITS.len()).rev().find(|unit| size.abs() >= 1024_f64.powi(*unit as i32)).unwrap_or(0);
        let unit = named.unwrap_or(fitting);
        let digits = digits.as_ref().and_then(|digits| digits.get(row)).unwrap_or(0).clamp(0, 15) as i32;
        let scale = 10_f64.powi(digits);
        let shown = (size / 1024_f64.powi(unit as i32) * scale).round() / scale;
        text.push_str(&format!("{shown} {}", UNITS[unit]));
        Ok(())
    })
}
