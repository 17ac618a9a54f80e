//! Calendar functions of datetimes: the start and end of a day, week, month or year, the parts of a date, and calendar
//! steps and differences. Weeks begin on Sunday, except for the number of a week, which follows ISO 8601.

use arrow::array::ArrayRef;
use chrono::{Datelike, Days, Months, NaiveDate};
use datafusion::error::Result;

use super::arguments::FunctionArguments;
use super::signature::{FunctionEntry, Returns, entry};
use crate::types::KqlType;
use crate::values::{
    MAX_DATETIME_TICKS, TICKS_PER_DAY, TICKS_PER_HOUR, TICKS_PER_MICROSECOND, TICKS_PER_MILLISECOND, TICKS_PER_MINUTE,
    TICKS_PER_SECOND, date_of, date_ticks,
};

const INT: Returns = Returns::Is(KqlType::Int);
const LONG: Returns = Returns::Is(KqlType::Long);
const DATETIME: Returns = Returns::Is(KqlType::DateTime);

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("startofday", "t?i", DATETIME, |arguments| edge(arguments, Period::Day, false)),
    entry("startofweek", "t?i", DATETIME, |arguments| edge(arguments, Period::Week, false)),
    entry("startofmonth", "t?i", DATETIME, |arguments| edge(arguments, Period::Month, false)),
    entry("startofyear", "t?i", DATETIME, |arguments| edge(arguments, Period::Year, false)),
    entry("endofday", "t?i", DATETIME, |arguments| edge(arguments, Period::Day, true)),
    entry("endofweek", "t?i", DATETIME, |arguments| edge(arguments, Period::Week, true)),
    entry("endofmonth", "t?i", DATETIME, |arguments| edge(arguments, Period::Month, true)),
    entry("endofyear", "t?i", DATETIME, |arguments| edge(arguments, Period::Year, true)),
    entry("getyear", "t", LONG, |arguments| dates(arguments, |date| i64::from(date.year()))),
    entry("getmonth", "t", LONG, |arguments| dates(arguments, |date| i64::from(date.month()))),
    entry("monthofyear", "t", LONG, |arguments| dates(arguments, |date| i64::from(date.month()))),
    entry("dayofmonth", "t", INT, |arguments| dates(arguments, |date| i64::from(date.day()))),
    entry("dayofyear", "t", INT, |arguments| dates(arguments, |date| i64::from(date.ordinal()))),
    entry("weekofyear", "t", INT, |arguments| dates(arguments, old_week_of_year)),
    entry("week_of_year", "t", INT, |arguments| dates(arguments, week_of_year)),
    entry("hourofday", "t", INT, hourofday),
    entry("dayofweek", "t", Returns::Is(KqlType::TimeSpan), dayofweek),
    entry("datetime_part", "wt", LONG, datetime_part),
    entry("datepart", "st", LONG, datetime_part),
    entry("datetime_add", "wit", DATETIME, datetime_add),
    entry("datetime_diff", "wtt", LONG, datetime_diff),
];

/// A unit that time is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Period {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    /// A fixed number of ticks.
    Ticks(i64),
}

impl Period {
    fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "year" => Period::Year,
            "quarter" => Period::Quarter,
            "month" => Period::Month,
            "week" | "week_of_year" | "weekofyear" => Period::Week,
            "day" => Period::Day,
            "hour" => Period::Ticks(TICKS_PER_HOUR),
            "minute" => Period::Ticks(TICKS_PER_MINUTE),
            "second" => Period::Ticks(TICKS_PER_SECOND),
            "millisecond" => Period::Ticks(TICKS_PER_MILLISECOND),
            "microsecond" => Period::Ticks(TICKS_PER_MICROSECOND),
            "nanosecond" => Period::Ticks(1),
            _ => return None,
        })
    }
}

fn edge(arguments: &FunctionArguments, period: Period, end: bool) -> Result<ArrayRef> {
    let times = arguments.datetimes(0)?;
    let offsets = if arguments.len() > 1 { Some(arguments.longs(1)?) } else { None };
    arguments.make_longs(|row| {
        let ticks = times.get(row)?;
        let offset = match &offsets {
            Some(offsets) => offsets.get(row)?,
            None => 0,
        };
        if period == Period::Day {
            // The most frequent case needs no calendar.
            let start = (ticks - ticks % TICKS_PER_DAY).checked_add(offset.checked_mul(TICKS_PER_DAY)?)?;
            let edge = if end { start.checked_add(TICKS_PER_DAY - 1)? } else { start };
            return (0..=MAX_DATETIME_TICKS).contains(&edge).then_some(edge);
        }
        let start = start_of(period, date_of(ticks)?)?;
        if !end {
            return date_ticks(stepped(start, period, offset)?);
        }
        let last = stepped(start, period, offset.checked_add(1)?)?.pred_opt()?;
        Some(date_ticks(last)? + TICKS_PER_DAY - 1)
    })
}

fn start_of(period: Period, date: NaiveDate) -> Option<NaiveDate> {
    match period {
        Period::Year => date.with_ordinal(1),
        Period::Quarter => date.with_day(1)?.with_month0(date.month0() / 3 * 3),
        Period::Month => date.with_day(1),
        Period::Week => date.checked_sub_days(Days::new(date.weekday().num_days_from_sunday().into())),
        Period::Day | Period::Ticks(_) => Some(date),
    }
}

/// Returns the date `count` periods later. A day past the end of a month becomes its last day.
fn stepped(date: NaiveDate, period: Period, count: i64) -> Option<NaiveDate> {
    let months = match period {
        Period::Year => count.checked_mul(12)?,
        Period::Quarter => count.checked_mul(3)?,
        Period::Month => count,
        Period::Week => return days_later(date, count.checked_mul(7)?),
        Period::Day | Period::Ticks(_) => return days_later(date, count),
    };
    let distance = Months::new(u32::try_from(months.unsigned_abs()).ok()?);
    if months < 0 { date.checked_sub_months(distance) } else { date.checked_add_months(distance) }
}

fn days_later(date: NaiveDate, days: i64) -> Option<NaiveDate> {
    let distance = Days::new(days.unsigned_abs());
    if days < 0 { date.checked_sub_days(distance) } else { date.checked_add_days(distance) }
}

fn dates(arguments: &FunctionArguments, part: impl Fn(NaiveDate) -> i64) -> Result<ArrayRef> {
    let times = arguments.datetimes(0)?;
    arguments.make_longs(|row| date_of(times.get(row)?).map(&part))
}

fn week_of_year(date: NaiveDate) -> i64 {
    date.iso_week().week().into()
}

/// The week as it was counted before ISO 8601: the first of a year is the one with its first Wednesday.
fn old_week_of_year(date: NaiveDate) -> i64 {
    let wednesday = days_later(date, 3 - i64::from(date.weekday().num_days_from_sunday())).unwrap_or(date);
    i64::from(wednesday.ordinal0() / 7 + 1)
}

fn hourofday(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let times = arguments.datetimes(0)?;
    arguments.make_longs(|row| Some(times.get(row)? % TICKS_PER_DAY / TICKS_PER_HOUR))
}

/// Returns the time since Sunday. The first day of year 1 was a Monday.
fn dayofweek(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let times = arguments.datetimes(0)?;
    arguments.make_longs(|row| Some((times.get(row)? / TICKS_PER_DAY + 1) % 7 * TICKS_PER_DAY))
}

fn datetime_part(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (parts, times) = (arguments.strings(0)?, arguments.datetimes(1)?);
    arguments.make_longs(|row| part_of(parts.get(row), times.get(row)?))
}

fn part_of(part: &str, ticks: i64) -> Option<i64> {
    let date = date_of(ticks)?;
    let (time, second) = (ticks % TICKS_PER_DAY, ticks % TICKS_PER_SECOND);
    Some(match part.to_ascii_lowercase().as_str() {
        "year" => date.year().into(),
        "quarter" => i64::from(date.month0() / 3 + 1),
        "month" => date.month().into(),
        "week_of_year" | "weekofyear" | "week" => week_of_year(date),
        "day" => date.day().into(),
        "dayofyear" => date.ordinal().into(),
        "hour" => time / TICKS_PER_HOUR,
        "minute" => time / TICKS_PER_MINUTE % 60,
        "second" => time / TICKS_PER_SECOND % 60,
        "millisecond" => second / TICKS_PER_MILLISECOND,
        "microsecond" => second / TICKS_PER_MICROSECOND,
        "nanosecond" => second * 100,
        _ => return None,
    })
}

fn datetime_add(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (periods, counts, times) = (arguments.strings(0)?, arguments.longs(1)?, arguments.datetimes(2)?);
    arguments.make_longs(|row| {
        let (ticks, count) = (times.get(row)?, counts.get(row)?);
        let later = match Period::named(periods.get(row))? {
            Period::Ticks(1) => ticks.checked_add(count / 100)?,
            Period::Ticks(length) => ticks.checked_add(count.checked_mul(length)?)?,
            period => date_ticks(stepped(date_of(ticks)?, period, count)?)? + ticks % TICKS_PER_DAY,
        };
        (0..=MAX_DATETIME_TICKS).contains(&later).then_some(later)
    })
}

/// Returns how many periods begin after the third argument and not after the second.
fn datetime_diff(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (periods, lefts, rights) = (arguments.strings(0)?, arguments.datetimes(1)?, arguments.datetimes(2)?);
    arguments.make_longs(|row| {
        let (left, right) = (lefts.get(row)?, rights.get(row)?);
        let (left_date, right_date) = (date_of(left)?, date_of(right)?);
        let months = |date: NaiveDate| i64::from(date.year()) * 12 + i64::from(date.month0());
        Some(match Period::named(periods.get(row))? {
            Period::Year => i64::from(left_date.year() - right_date.year()),
            Period::Quarter => months(left_date).div_euclid(3) - months(right_date).div_euclid(3),
            Period::Month => months(left_date) - months(right_date),
            // Day 0 was a Monday; weeks begin a day before.
            Period::Week => (left / TICKS_PER_DAY + 1).div_euclid(7) - (right / TICKS_PER_DAY + 1).div_euclid(7),
            Period::Day => left / TICKS_PER_DAY - right / TICKS_PER_DAY,
            Period::Ticks(1) => left.checked_sub(right)?.checked_mul(100)?,
            Period::Ticks(length) => left / length - right / length,
        })
    })
}
