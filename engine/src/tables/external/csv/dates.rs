//! Dates, times of day and timestamps as CSV files spell them: which orders of day, month and year a value allows, and what
//! it is in one of them.
//!
//! The formats are those that DuckDB's sniffer tries. Where a column allows two orders that do not agree, DuckDB takes one;
//! here the column stays text, because half of the guesses would be wrong.

use chrono::{NaiveDate, NaiveDateTime, NaiveTime};

/// The order of a date's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DateOrder {
    /// `2024-12-31`.
    YearMonthDay,
    /// `31.12.2024`.
    DayMonthYear,
    /// `12/31/2024`.
    MonthDayYear,
}

/// Orders with a year of four or two digits, one bit each.
pub(super) mod orders {
    pub(in crate::tables::external::csv) const YMD: u8 = 1;
    pub(in crate::tables::external::csv) const DMY: u8 = 1 << 1;
    pub(in crate::tables::external::csv) const MDY: u8 = 1 << 2;
    pub(in crate::tables::external::csv) const SHORT_YMD: u8 = 1 << 3;
    pub(in crate::tables::external::csv) const SHORT_DMY: u8 = 1 << 4;
    pub(in crate::tables::external::csv) const SHORT_MDY: u8 = 1 << 5;
}

/// A clock's form in a timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ClockForm {
    /// Whether it ends with AM or PM.
    pub twelve_hours: bool,
    /// Whether it has seconds.
    pub seconds: bool,
    /// The digits of a second's fraction.
    pub fraction: u8,
}

/// The numbers of a date, in the order in which they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DateNumbers {
    pub separator: u8,
    first: u32,
    second: u32,
    third: u32,
    /// Digits of the first and of the third number.
    digits: (usize, usize),
}

/// The format of a column of dates or timestamps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TemporalFormat {
    /// Year, month, day, `-` or `/` between them, as SQL writes them.
    Iso,
    /// Another order or separator.
    Numbers(NumericFormat),
    /// A format of `strftime` that somebody gave.
    Given(String),
}

/// An order and a separator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NumericFormat {
    order: DateOrder,
    short_year: bool,
    separator: u8,
    twelve_hours: bool,
}

impl DateNumbers {
    /// Reads the numbers of a date at the start of a text; returns them and the rest of it.
    pub(super) fn read(text: &str) -> Option<(Self, &str)> {
        let (first, first_digits, rest) = number(text)?;
        let separator = *rest.as_bytes().first()?;
        if !matches!(separator, b'-' | b'/' | b'.' | b' ') {
            return None;
        }
        let (second, second_digits, rest) = number(rest.get(1..)?)?;
        if rest.as_bytes().first() != Some(&separator) {
            return None;
        }
        let (third, third_digits, rest) = number(rest.get(1..)?)?;
        // Between points, numbers of one digit are rather those of a version.
        let least = if separator == b'.' { 2 } else { 1 };
        let valid = match (first_digits, third_digits) {
            (4, 1 | 2) | (1 | 2, 4) => true,
            (1 | 2, 1 | 2) => first_digits.max(third_digits) == 2 && first_digits.min(second_digits) >= least,
            _ => false,
        };
        if !valid || second_digits > 2 {
            return None;
        }
        let digits = (first_digits, third_digits);
        Some((Self { separator, first, second, third, digits }, rest))
    }

    /// Returns the orders in which the numbers are a date.
    pub(super) fn orders(&self) -> u8 {
        let candidates: &[u8] = match self.digits {
            (4, _) => &[orders::YMD],
            (_, 4) => &[orders::DMY, orders::MDY],
            _ => &[orders::SHORT_YMD, orders::SHORT_DMY, orders::SHORT_MDY],
        };
        let fits =
            |order: &&u8| format_of_order(**order, self.separator).is_some_and(|format| self.date(format).is_some());
        candidates.iter().filter(fits).fold(0, |set, order| set | order)
    }

    /// Returns whether nanoseconds since 1970 count the times of its day, as they do from 1678 to 2261.
    pub(super) fn is_within_nanoseconds(&self) -> bool {
        let year = match self.digits {
            (4, _) => self.first,
            (_, 4) => self.third,
            _ => return true,
        };
        (1678..=2261).contains(&year)
    }

    /// Returns those of the orders that make another date of the numbers than the first of them does.
    pub(super) fn disagrees(&self, set: u8) -> bool {
        let mut dates = (0..6)
            .map(|bit| set & (1 << bit))
            .filter(|order| *order != 0)
            .filter_map(|order| format_of_order(order, self.separator).and_then(|format| self.date(format)));
        let first = dates.next();
        dates.any(|date| Some(date) != first)
    }

    fn date(&self, format: NumericFormat) -> Option<NaiveDate> {
        let (year, month, day, year_digits) = match format.order {
            DateOrder::YearMonthDay => (self.first, self.second, self.third, self.digits.0),
            DateOrder::DayMonthYear => (self.third, self.second, self.first, self.digits.1),
            DateOrder::MonthDayYear => (self.third, self.first, self.second, self.digits.1),
        };
        let year = match (format.short_year, year_digits) {
            (false, 4) => year,
            // As `strptime` reads two digits.
            (true, 2) => year + if year < 69 { 2000 } else { 1900 },
            _ => return None,
        };
        NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)
    }
}

/// Returns the format of one order; `set` has one bit.
pub(super) fn format_of_order(set: u8, separator: u8) -> Option<NumericFormat> {
    let (order, short_year) = match set {
        orders::YMD => (DateOrder::YearMonthDay, false),
        orders::DMY => (DateOrder::DayMonthYear, false),
        orders::MDY => (DateOrder::MonthDayYear, false),
        orders::SHORT_YMD => (DateOrder::YearMonthDay, true),
        orders::SHORT_DMY => (DateOrder::DayMonthYear, true),
        orders::SHORT_MDY => (DateOrder::MonthDayYear, true),
        _ => return None,
    };
    Some(NumericFormat { order, short_year, separator, twelve_hours: false })
}

impl NumericFormat {
    pub(super) fn with_twelve_hours(self, twelve_hours: bool) -> Self {
        Self { twelve_hours, ..self }
    }

    fn date_text(self) -> String {
        let year = if self.short_year { "%y" } else { "%Y" };
        let separator = char::from(self.separator);
        match self.order {
            DateOrder::YearMonthDay => format!("{year}{separator}%m{separator}%d"),
            DateOrder::DayMonthYear => format!("%d{separator}%m{separator}{year}"),
            DateOrder::MonthDayYear => format!("%m{separator}%d{separator}{year}"),
        }
    }

    /// Reads the format of a date; `None` where it is not one of an order and a separator.
    fn from_date_text(text: &str) -> Option<Self> {
        let separator = *text.as_bytes().get(2)?;
        (0..6)
            .filter_map(|bit| format_of_order(1 << bit, separator))
            .find(|format| matches!(separator, b'-' | b'/' | b'.' | b' ') && format.date_text() == text)
    }
}

impl TemporalFormat {
    /// Whether a format that was given has the offset from UTC.
    pub(super) fn has_offset(&self) -> bool {
        let parts = ["%z", "%:z", "%::z", "%#z", "%+"];
        matches!(self, TemporalFormat::Given(format) if parts.iter().any(|part| format.contains(part)))
    }

    /// Whether a text is a timestamp of the format: with a clock, and with an offset where the format has one.
    pub(super) fn is_timestamp(&self, text: &str) -> bool {
        let has_clock = matches!(self, TemporalFormat::Given(_)) || text.contains(':');
        has_clock && self.timestamp(text).is_some_and(|(_, offset)| offset.is_some() == self.has_offset())
    }

    /// Reads a format of `strftime`, of a date or of a timestamp.
    pub(crate) fn from_text(text: &str) -> Self {
        let (date, clock) = match text.split_once(" %H:%M:%S").or_else(|| text.split_once(" %I:%M:%S")) {
            Some((date, clock)) => (date, clock),
            None => (text, ""),
        };
        let twelve_hours = text.contains(" %I:%M:%S") && clock == " %p";
        let known = clock.is_empty() || clock == "%.f" || twelve_hours;
        match NumericFormat::from_date_text(date) {
            Some(format) if known => TemporalFormat::Numbers(format.with_twelve_hours(twelve_hours)),
            _ => TemporalFormat::Given(text.to_owned()),
        }
    }

    /// Returns the format as `strftime` writes it.
    pub(crate) fn text(&self, is_date: bool) -> String {
        match self {
            TemporalFormat::Given(text) => text.clone(),
            TemporalFormat::Iso => "%Y-%m-%d".to_owned() + if is_date { "" } else { " %H:%M:%S" },
            TemporalFormat::Numbers(format) if is_date => format.date_text(),
            TemporalFormat::Numbers(format) if format.twelve_hours => format.date_text() + " %I:%M:%S %p",
            TemporalFormat::Numbers(format) => format.date_text() + " %H:%M:%S",
        }
    }

    /// Reads a date.
    pub(super) fn date(&self, text: &str) -> Option<NaiveDate> {
        match self {
            TemporalFormat::Given(format) => NaiveDate::parse_from_str(text, format).ok(),
            TemporalFormat::Iso => {
                let (numbers, rest) = DateNumbers::read(text)?;
                rest.is_empty().then(|| numbers.date(iso(&numbers))).flatten()
            }
            TemporalFormat::Numbers(format) => {
                let (numbers, rest) = DateNumbers::read(text)?;
                (rest.is_empty() && numbers.separator == format.separator).then(|| numbers.date(*format)).flatten()
            }
        }
    }

    /// Reads a timestamp, and its offset from UTC in seconds where it has one.
    pub(super) fn timestamp(&self, text: &str) -> Option<(NaiveDateTime, Option<i32>)> {
        if let TemporalFormat::Given(format) = self {
            if let Ok(zoned) = chrono::DateTime::parse_from_str(text, format) {
                return Some((zoned.naive_local(), Some(zoned.offset().local_minus_utc())));
            }
            return NaiveDateTime::parse_from_str(text, format).ok().map(|at| (at, None));
        }
        let (numbers, rest) = DateNumbers::read(text)?;
        let format = match self {
            TemporalFormat::Numbers(format) if numbers.separator == format.separator => *format,
            TemporalFormat::Iso => iso(&numbers),
            TemporalFormat::Numbers(_) | TemporalFormat::Given(_) => return None,
        };
        let date = numbers.date(format)?;
        if rest.is_empty() {
            return Some((date.and_time(NaiveTime::MIN), None));
        }
        let (time, _, rest) = clock(rest.strip_prefix(['T', 't', ' '])?)?;
        Some((date.and_time(time), offset(rest)?))
    }
}

fn iso(numbers: &DateNumbers) -> NumericFormat {
    NumericFormat {
        order: DateOrder::YearMonthDay,
        short_year: false,
        separator: numbers.separator,
        twelve_hours: false,
    }
}

/// Reads a time of day: hours and minutes, seconds, a fraction of them, AM or PM. Returns it with its form and the rest.
pub(super) fn clock(text: &str) -> Option<(NaiveTime, ClockForm, &str)> {
    let mut form = ClockForm::default();
    let (hour, digits, rest) = number(text)?;
    let (minute, minute_digits, mut rest) = number(rest.strip_prefix(':')?)?;
    if digits > 2 || minute_digits != 2 {
        return None;
    }
    let (mut second, mut nanos) = (0, 0);
    if let Some(after) = rest.strip_prefix(':') {
        let (read, digits, after) = number(after)?;
        if digits != 2 {
            return None;
        }
        (second, rest, form.seconds) = (read, after, true);
        if let Some(after) = rest.strip_prefix('.') {
            let digits = after.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 || digits > 9 {
                return None;
            }
            let fraction: u32 = after.get(..digits)?.parse().ok()?;
            nanos = fraction * 10_u32.pow(9 - u32::try_from(digits).ok()?);
            form.fraction = u8::try_from(digits).ok()?;
            rest = after.get(digits..)?;
        }
    }
    let mut hour = hour;
    let half = rest.trim_start();
    let is_half = |name: &str| half.get(..2).is_some_and(|start| start.eq_ignore_ascii_case(name));
    if is_half("am") || is_half("pm") {
        if !(1..=12).contains(&hour) {
            return None;
        }
        hour = hour % 12 + if is_half("pm") { 12 } else { 0 };
        form.twelve_hours = true;
        rest = half.get(2..)?;
    }
    let time = NaiveTime::from_hms_nano_opt(hour, minute, second, nanos)?;
    Some((time, form, rest))
}

/// Reads an offset from UTC in seconds: nothing, `Z`, `UTC`, `+02`, `+0200` or `+02:00`. `None`: it is something else.
pub(super) fn offset(text: &str) -> Option<Option<i32>> {
    let plain = text.trim_start();
    if text.is_empty() {
        return Some(None);
    }
    if plain.eq_ignore_ascii_case("z") || plain.eq_ignore_ascii_case("utc") {
        return Some(Some(0));
    }
    let sign = if plain.starts_with('-') { -1 } else { 1 };
    let digits = plain.strip_prefix(['+', '-'])?;
    let (hours, minutes) = match digits.len() {
        2 => (digits, "00"),
        4 => digits.split_at_checked(2)?,
        5 => digits.split_once(':')?,
        _ => return None,
    };
    let all_digits = |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(hours) || !all_digits(minutes) {
        return None;
    }
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours <= 15 && minutes < 60).then_some(Some(sign * (hours * 3600 + minutes * 60)))
}

/// Reads digits at the start of a text: their number, how many they are, and the rest.
fn number(text: &str) -> Option<(u32, usize, &str)> {
    let digits = text.bytes().take(5).take_while(u8::is_ascii_digit).count();
    if digits == 0 || digits > 4 {
        return None;
    }
    Some((text.get(..digits)?.parse().ok()?, digits, text.get(digits..)?))
}
