//! Arithmetic with times of day and intervals that Arrow lacks: a time of day stays one, a date and a time of day are a time,
//! an interval times a number is one, and hours of an interval become days, days months.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, IntervalMonthDayNanoArray, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;

use super::dates::{MICROS_A_DAY, micros, out_of_range};
use super::definition::{Definition, invalid};

/// The function that returns the time of a date and a time of day.
pub(crate) const DATE_PLUS_TIME: &str = "date_plus_time";

const NANOS_A_DAY: f64 = 86_400e9;
/// The nanoseconds of a day.
const WHOLE_DAY: i64 = MICROS_A_DAY * 1_000;

/// Returns the functions of this file.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let definitions = [
        Definition {
            name: "time_plus",
            aliases: &[],
            arguments: 2..=2,
            takes: |_| {
                Ok(vec![DataType::Time64(TimeUnit::Microsecond), DataType::Interval(IntervalUnit::MonthDayNano)])
            },
            returns: |_| Ok(DataType::Time64(TimeUnit::Microsecond)),
            compute: |arrays, _| {
                let times = arrays[0].as_primitive::<Time64MicrosecondType>();
                let intervals = arrays[1].as_primitive::<IntervalMonthDayNanoType>();
                let sum = |(time, interval): (Option<i64>, Option<IntervalMonthDayNano>)| {
                    Some((time? + interval?.nanoseconds / 1_000).rem_euclid(MICROS_A_DAY))
                };
                Ok(Arc::new(times.iter().zip(intervals).map(sum).collect::<Time64MicrosecondArray>()))
            },
        },
        Definition {
            name: "interval_times",
            aliases: &[],
            arguments: 2..=2,
            takes: |_| Ok(vec![DataType::Interval(IntervalUnit::MonthDayNano), DataType::Float64]),
            returns: |_| Ok(DataType::Interval(IntervalUnit::MonthDayNano)),
            compute: |arrays, _| {
                let intervals = arrays[0].as_primitive::<IntervalMonthDayNanoType>();
                let factors = arrays[1].as_primitive::<Float64Type>();
                let products = intervals.iter().zip(factors).map(|pair| match pair {
                    (Some(interval), Some(factor)) => times(interval, factor).map(Some),
                    _ => Ok(None),
                });
                Ok(Arc::new(products.collect::<Result<IntervalMonthDayNanoArray>>()?))
            },
        },
        Definition {
            name: DATE_PLUS_TIME,
            aliases: &[],
            arguments: 2..=2,
            takes: |_| Ok(vec![DataType::Date32, DataType::Time64(TimeUnit::Microsecond)]),
            returns: |_| Ok(micros()),
            compute: |arrays, _| {
                let times = arrays[1].as_primitive::<Time64MicrosecondType>();
                let sums = (0..times.len()).map(|row| match arrays.iter().all(|array| array.is_valid(row)) {
                    true => {
                        micros_at(&arrays[0], row)?.checked_add(times.value(row)).ok_or_else(out_of_range).map(Some)
                    }
                    false => Ok(None),
                });
                Ok(Arc::new(sums.collect::<Result<TimestampMicrosecondArray>>()?))
            },
        },
        Definition {
            name: "make_time",
            aliases: &[],
            arguments: 3..=3,
            takes: |_| Ok(vec![DataType::Int64, DataType::Int64, DataType::Float64]),
            returns: |_| Ok(DataType::Time64(TimeUnit::Microsecond)),
            compute: |arrays, rows| {
                let (hours, minutes) = (cast(&arrays[0], &DataType::Float64)?, cast(&arrays[1], &DataType::Float64)?);
                let (hours, minutes) = (hours.as_primitive::<Float64Type>(), minutes.as_primitive::<Float64Type>());
                let seconds = arrays[2].as_primitive::<Float64Type>();
                let mut times = Vec::with_capacity(rows);
                for row in 0..rows {
                    if hours.is_null(row) || minutes.is_null(row) || seconds.is_null(row) {
                        times.push(None);
                        continue;
                    }
                    let (hour, minute, second) = (hours.value(row), minutes.value(row), seconds.value(row));
                    let is_time =
                        (0.0..24.0).contains(&hour) && (0.0..60.0).contains(&minute) && (0.0..60.0).contains(&second);
                    if !is_time {
                        return Err(invalid(format!("{hour}:{minute}:{second} is no time of day")));
                    }
                    times.push(Some(((hour * 60.0 + minute) * 60e6 + second * 1e6).round() as i64));
                }
                Ok(Arc::new(Time64MicrosecondArray::from(times)))
            },
        },
        justified("justify_hours", |arrays, _| each_interval(arrays, justify_hours)),
        justified("justify_days", |arrays, _| each_interval(arrays, justify_days)),
        justified("justify_interval", |arrays, _| each_interval(arrays, justify_interval)),
    ];
    definitions.into_iter().map(Definition::into_udf).collect()
}

/// An interval, with 24 hours as a day or 30 days as a month.
fn justified(name: &'static str, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>) -> Definition {
    Definition {
        name,
        aliases: &[],
        arguments: 1..=1,
        takes: |_| Ok(vec![DataType::Interval(IntervalUnit::MonthDayNano)]),
        returns: |_| Ok(DataType::Interval(IntervalUnit::MonthDayNano)),
        compute,
    }
}

fn each_interval(
    arrays: &[ArrayRef],
    change: fn(IntervalMonthDayNano) -> Option<IntervalMonthDayNano>,
) -> Result<ArrayRef> {
    let intervals = arrays[0].as_primitive::<IntervalMonthDayNanoType>().iter();
    let changed = intervals.map(|interval| match interval {
        Some(interval) => change(interval).map(Some).ok_or_else(|| invalid("the interval is out of range".into())),
        None => Ok(None),
    });
    Ok(Arc::new(changed.collect::<Result<IntervalMonthDayNanoArray>>()?))
}

/// Returns the interval with 24 hours as a day, both of one sign; `None` where its days are out of range.
fn justify_hours(interval: IntervalMonthDayNano) -> Option<IntervalMonthDayNano> {
    let whole = i32::try_from(interval.nanoseconds / WHOLE_DAY).ok()?;
    let (days, nanoseconds) = one_sign(interval.days.checked_add(whole)?, interval.nanoseconds % WHOLE_DAY, WHOLE_DAY);
    Some(IntervalMonthDayNano { days, nanoseconds, ..interval })
}

/// Returns the interval with 30 days as a month, both of one sign; `None` where its months are out of range.
fn justify_days(interval: IntervalMonthDayNano) -> Option<IntervalMonthDayNano> {
    let (months, days) = one_sign(interval.months.checked_add(interval.days / 30)?, interval.days % 30, 30);
    Some(IntervalMonthDayNano { months, days, ..interval })
}

/// Returns the interval with 24 hours as a day and 30 days as a month, all of one sign; `None` where it is out of range.
fn justify_interval(interval: IntervalMonthDayNano) -> Option<IntervalMonthDayNano> {
    let nanoseconds = interval.nanoseconds % WHOLE_DAY;
    let all_days = i64::from(interval.days) + interval.nanoseconds / WHOLE_DAY;
    let mut months = i32::try_from(i64::from(interval.months) + all_days / 30).ok()?;
    let mut days = i32::try_from(all_days % 30).ok()?;
    // A month's sign is against that of days, or without days against that of the time.
    let rest = if days == 0 { nanoseconds.signum() } else { i64::from(days.signum()) };
    match (months.signum(), rest) {
        (1, -1) => (months, days) = (months - 1, days + 30),
        (-1, 1) => (months, days) = (months + 1, days - 30),
        _ => {}
    }
    let (days, nanoseconds) = one_sign(days, nanoseconds, WHOLE_DAY);
    Some(IntervalMonthDayNano { months, days, nanoseconds })
}

/// Returns a number of wholes and a rest with one sign; a whole has so many of the rest's units.
fn one_sign<Rest: From<i8> + PartialOrd + std::ops::Add<Output = Rest> + std::ops::Sub<Output = Rest>>(
    wholes: i32,
    rest: Rest,
    whole: Rest,
) -> (i32, Rest) {
    let zero = || Rest::from(0);
    if wholes > 0 && rest < zero() {
        (wholes - 1, rest + whole)
    } else if wholes < 0 && rest > zero() {
        (wholes + 1, rest - whole)
    } else {
        (wholes, rest)
    }
}

/// Multiplies an interval: what is left of months becomes days, and of days time, as in PostgreSQL.
fn times(interval: IntervalMonthDayNano, factor: f64) -> Result<IntervalMonthDayNano> {
    let months = f64::from(interval.months) * factor;
    let days = f64::from(interval.days) * factor + (months.fract() * 30.0);
    // By the rounding of doubles 0.9 of a month is a little less than 27 days: what is whole days to a microsecond is days.
    let whole = days.round();
    let days = if ((days - whole) * MICROS_A_DAY as f64).abs() < 0.5 { whole } else { days };
    let nanoseconds = interval.nanoseconds as f64 * factor + days.fract() * NANOS_A_DAY;
    let fits = months.abs() < f64::from(i32::MAX) && days.abs() < f64::from(i32::MAX) && nanoseconds.abs() < 9e18;
    if !fits {
        return Err(invalid("the interval is out of range".into()));
    }
    Ok(IntervalMonthDayNano {
        months: months.trunc() as i32,
        days: days.trunc() as i32,
        // To a microsecond, which a double holds.
        nanoseconds: ((nanoseconds / 1_000.0).round() as i64) * 1_000,
    })
}

/// Returns a value of a date's or a timestamp's array in microseconds.
pub(super) fn micros_at(times: &ArrayRef, row: usize) -> Result<i64> {
    match times.as_primitive_opt::<Date32Type>() {
        Some(days) => i64::from(days.value(row)).checked_mul(MICROS_A_DAY).ok_or_else(out_of_range),
        None => Ok(times.as_primitive::<TimestampMicrosecondType>().value(row)),
    }
}
