//! Datetimes and timespans made from numbers, and the time of the query.

use arrow::array::ArrayRef;
use chrono::NaiveDate;
use datafusion::error::Result;

use super::arguments::FunctionArguments;
use super::signature::{FunctionEntry, Returns, entry};
use crate::types::KqlType;
use crate::values::{
    MAX_DATETIME_TICKS, TICKS_PER_DAY, TICKS_PER_HOUR, TICKS_PER_MINUTE, TICKS_PER_SECOND, UNIX_EPOCH_TICKS, date_ticks,
};

const DATETIME: Returns = Returns::Is(KqlType::DateTime);

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("now", "?d", DATETIME, now),
    entry("ago", "d", DATETIME, ago),
    entry("make_datetime", "x?nnnnn", Returns::By(datetime_of_parts), make_datetime),
    entry("make_timespan", "x?nnn", Returns::By(timespan_of_parts), make_timespan),
    entry("unixtime_seconds_todatetime", "n", DATETIME, |arguments| unix_time(arguments, 1e7)),
    entry("unixtime_milliseconds_todatetime", "n", DATETIME, |arguments| unix_time(arguments, 1e4)),
    entry("unixtime_microseconds_todatetime", "n", DATETIME, |arguments| unix_time(arguments, 1e1)),
    entry("unixtime_nanoseconds_todatetime", "n", DATETIME, |arguments| unix_time(arguments, 1e-2)),
    entry("around", "xxx", Returns::Is(KqlType::Bool), is_around),
];

fn datetime(ticks: i64) -> Option<i64> {
    (0..=MAX_DATETIME_TICKS).contains(&ticks).then_some(ticks)
}

fn now(arguments: &FunctionArguments) -> Result<ArrayRef> {
    if arguments.len() == 0 {
        return arguments.make_longs(|_| Some(arguments.now_ticks));
    }
    let offsets = arguments.timespans(0)?;
    arguments.make_longs(|row| arguments.now_ticks.checked_add(offsets.get(row)?).and_then(datetime))
}

fn ago(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let offsets = arguments.timespans(0)?;
    arguments.make_longs(|row| arguments.now_ticks.checked_sub(offsets.get(row)?).and_then(datetime))
}

/// Checks the parts of a date: one value is converted, else there are at least a year, a month and a day.
fn datetime_of_parts(arguments: &[KqlType]) -> std::result::Result<KqlType, String> {
    match arguments {
        [_, _] => Err("make_datetime() takes 1 or 3 to 6 arguments, not 2".to_owned()),
        [year, _, ..] if !year.is_numeric() && *year != KqlType::Dynamic => {
            Err(format!("argument 1 of make_datetime() must be a number, not {}", year.name()))
        }
        _ => Ok(KqlType::DateTime),
    }
}

/// Takes year, month, day, hour, minute and second, or one value that converts to a datetime.
fn make_datetime(arguments: &FunctionArguments) -> Result<ArrayRef> {
    if arguments.len() == 1 {
        return arguments.whole(0, KqlType::DateTime);
    }
    let parts = (0..arguments.len().min(5)).map(|index| arguments.longs(index)).collect::<Result<Vec<_>>>()?;
    let seconds = if arguments.len() > 5 { Some(arguments.reals(5)?) } else { None };
    arguments.make_longs(|row| {
        let part = |index: usize, absent: i64| parts.get(index).map_or(Some(absent), |part| part.get(row));
        let date = NaiveDate::from_ymd_opt(
            i32::try_from(part(0, 1)?).ok()?,
            u32::try_from(part(1, 1)?).ok()?,
            u32::try_from(part(2, 1)?).ok()?,
        )?;
        let seconds = seconds.as_ref().map_or(Some(0.0), |seconds| seconds.get(row))?;
        date_ticks(date)?.checked_add(clock(part(3, 0)?, part(4, 0)?, seconds)?)
    })
}

/// Checks the parts of a timespan: one value is converted, several are numbers.
fn timespan_of_parts(arguments: &[KqlType]) -> std::result::Result<KqlType, String> {
    match arguments {
        [first, _, ..] if !first.is_numeric() && *first != KqlType::Dynamic => {
            Err(format!("argument 1 of make_timespan() must be a number, not {}", first.name()))
        }
        _ => Ok(KqlType::TimeSpan),
    }
}

/// Takes days, hours, minutes and seconds; with fewer than four arguments, hours come first.
fn make_timespan(arguments: &FunctionArguments) -> Result<ArrayRef> {
    if arguments.len() == 1 {
        return arguments.whole(0, KqlType::TimeSpan);
    }
    let parts = (0..arguments.len()).map(|index| arguments.reals(index)).collect::<Result<Vec<_>>>()?;
    arguments.make_longs(|row| {
        let part = |index: usize| parts.get(index).map_or(Some(0.0), |part| part.get(row));
        let first = usize::from(parts.len() > 3);
        let days = if first == 1 { part(0)? } else { 0.0 };
        let clock = clock(part(first)? as i64, part(first + 1)? as i64, part(first + 2)?)?;
        let in_range = (0.0..10_675_200.0).contains(&days);
        in_range.then_some((days as i64).checked_mul(TICKS_PER_DAY)?.checked_add(clock)?)
    })
}

fn clock(hours: i64, minutes: i64, seconds: f64) -> Option<i64> {
    if !(0..24).contains(&hours) || !(0..60).contains(&minutes) || !(0.0..60.0).contains(&seconds) {
        return None;
    }
    let ticks = (seconds * TICKS_PER_SECOND as f64).round() as i64;
    Some(hours * TICKS_PER_HOUR + minutes * TICKS_PER_MINUTE + ticks)
}

fn unix_time(arguments: &FunctionArguments, ticks_per_unit: f64) -> Result<ArrayRef> {
    if matches!(arguments.kql_type(0), KqlType::Int | KqlType::Long) {
        let numbers = arguments.longs(0)?;
        return arguments.make_longs(|row| {
            let number = numbers.get(row)?;
            let ticks = if ticks_per_unit >= 1.0 {
                number.checked_mul(ticks_per_unit as i64)?
            } else {
                number.div_euclid((1.0 / ticks_per_unit).round() as i64)
            };
            ticks.checked_add(UNIX_EPOCH_TICKS).and_then(datetime)
        });
    }
    let numbers = arguments.reals(0)?;
    arguments.make_longs(|row| {
        let ticks = (numbers.get(row)? * ticks_per_unit).round();
        (ticks.abs() < MAX_DATETIME_TICKS as f64)
            .then_some(ticks as i64)?
            .checked_add(UNIX_EPOCH_TICKS)
            .and_then(datetime)
    })
}

/// Whether a value is within a distance of another.
fn is_around(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let whole = |kql_type| matches!(kql_type, KqlType::DateTime | KqlType::TimeSpan | KqlType::Int | KqlType::Long);
    if arguments.types().iter().copied().all(whole) {
        let (values, centres, distances) = (arguments.longs(0)?, arguments.longs(1)?, arguments.longs(2)?);
        return arguments.make_bools(|row| {
            let (value, centre, distance) = (values.get(row)?, centres.get(row)?, distances.get(row)?);
            Some((centre.saturating_sub(distance)..=centre.saturating_add(distance)).contains(&value))
        });
    }
    let (values, centres, distances) = (arguments.reals(0)?, arguments.reals(1)?, arguments.reals(2)?);
    arguments.make_bools(|row| Some((values.get(row)? - centres.get(row)?).abs() <= distances.get(row)?))
}
