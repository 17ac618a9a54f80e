//! Arithmetic with times of day and intervals that Arrow lacks: a time of day stays one, and an interval times a number is one.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, IntervalMonthDayNanoArray, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType,
    TimeUnit, TimestampMicrosecondType,
};
use chrono::{DateTime, Datelike};
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;

use super::definition::{Definition, invalid};

const MICROS_A_DAY: i64 = 86_400_000_000;
const NANOS_A_DAY: f64 = 86_400e9;

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
            name: "time_bucket_offset",
            aliases: &[],
            arguments: 3..=3,
            takes: |_| {
                let interval = DataType::Interval(IntervalUnit::MonthDayNano);
                Ok(vec![interval.clone(), DataType::Timestamp(TimeUnit::Microsecond, None), interval])
            },
            returns: |_| Ok(DataType::Timestamp(TimeUnit::Microsecond, None)),
            compute: buckets,
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
    ];
    definitions.into_iter().map(Definition::into_udf).collect()
}

/// Multiplies an interval: what is left of months becomes days, and of days time, as in PostgreSQL.
fn times(interval: IntervalMonthDayNano, factor: f64) -> Result<IntervalMonthDayNano> {
    let months = f64::from(interval.months) * factor;
    let days = f64::from(interval.days) * factor + (months.fract() * 30.0);
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

/// Buckets of time that begin at DuckDB's origin and an offset.
fn buckets(arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let widths = arrays[0].as_primitive::<IntervalMonthDayNanoType>();
    let moments = arrays[1].as_primitive::<TimestampMicrosecondType>();
    let offsets = arrays[2].as_primitive::<IntervalMonthDayNanoType>();
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if widths.is_null(row) || moments.is_null(row) || offsets.is_null(row) {
            found.push(None);
            continue;
        }
        let (width, moment, offset) = (widths.value(row), moments.value(row), offsets.value(row));
        let micros =
            |interval: IntervalMonthDayNano| i64::from(interval.days) * MICROS_A_DAY + interval.nanoseconds / 1_000;
        let start = match (width.months, micros(width)) {
            (0, length @ 1..) if offset.months == 0 => {
                // A Monday.
                let origin = 946_857_600_000_000 + micros(offset);
                (moment - origin).div_euclid(length) * length + origin
            }
            (months @ 1.., 0) if micros(offset) == 0 => {
                let date = DateTime::from_timestamp_micros(moment)
                    .ok_or_else(|| invalid("the time is out of range".into()))?
                    .date_naive();
                let count = (date.year() - 2000) * 12 + i32::try_from(date.month0()).unwrap_or(0);
                let first = (count - offset.months).div_euclid(months) * months + offset.months;
                let year = 2000 + first.div_euclid(12);
                let month = u32::try_from(first.rem_euclid(12)).unwrap_or(0) + 1;
                let start = chrono::NaiveDate::from_ymd_opt(year, month, 1).and_then(|date| date.and_hms_opt(0, 0, 0));
                start.ok_or_else(|| invalid("the time is out of range".into()))?.and_utc().timestamp_micros()
            }
            _ => {
                return Err(invalid(
                    "a bucket is as wide as months or as days and times, more than none, and so is its offset".into(),
                ));
            }
        };
        found.push(Some(start));
    }
    Ok(Arc::new(TimestampMicrosecondArray::from(found)))
}
