//! `time_bucket(width, time [, offset or origin])`: buckets of time as DuckDB has them, of all times that microseconds
//! reach. Buckets of months begin with a month; what is a date stays one.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Date32Array, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit};
use chrono::{Datelike, NaiveDate};
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;

use super::dates::{MICROS_A_DAY, micros, moment, months_later, out_of_range};
use super::definition::{Definition, invalid, unfit};
use super::intervals::micros_at;

/// Where buckets of days and times begin: a Monday, 2000-01-03.
const FIRST_MONDAY: i64 = 946_857_600_000_000;
/// Where buckets of months begin: January 2000, in months.
const FIRST_MONTH: i32 = 2000 * 12;

/// Returns the function.
pub(super) fn function() -> Arc<ScalarUDF> {
    Definition {
        name: "time_bucket",
        aliases: &[],
        arguments: 2..=3,
        takes,
        returns: |types| {
            Ok(match types.get(1) {
                Some(time @ (DataType::Date32 | DataType::Timestamp(_, _))) => time.clone(),
                _ => micros(),
            })
        },
        compute: buckets,
    }
    .into_udf()
}

fn takes(types: &[DataType]) -> Result<Vec<DataType>> {
    let interval = DataType::Interval(IntervalUnit::MonthDayNano);
    let third = types.get(2);
    let time = match (types.get(1), third) {
        // A date from an origin with a time of day is a time.
        (Some(DataType::Date32 | DataType::Date64), Some(DataType::Timestamp(_, zone)))
        | (Some(DataType::Timestamp(_, zone)), _) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        (Some(DataType::Date32 | DataType::Date64), _) => DataType::Date32,
        (Some(DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View), _) => micros(),
        _ => {
            let message = "time_bucket takes a width, a date or a timestamp, and an offset or an origin; write \
                           time_bucket(INTERVAL '1 day', time)";
            return Err(unfit(message.into()));
        }
    };
    let mut all = vec![interval.clone(), time.clone()];
    match third {
        Some(DataType::Interval(_)) => all.push(interval),
        Some(_) => all.push(time),
        None => {}
    }
    Ok(all)
}

fn buckets(arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let widths = arrays[0].as_primitive::<IntervalMonthDayNanoType>();
    let mut starts = Vec::with_capacity(rows);
    for row in 0..rows {
        if arrays.iter().any(|array| array.is_null(row)) {
            starts.push(None);
            continue;
        }
        let (width, time) = (widths.value(row), micros_at(&arrays[1], row)?);
        let start = match arrays.get(2) {
            Some(third) => match third.as_primitive_opt::<IntervalMonthDayNanoType>() {
                Some(offsets) => {
                    let offset = offsets.value(row);
                    moved(start_of(width, moved(time, offset, -1)?, None)?, offset, 1)?
                }
                None => start_of(width, time, Some(micros_at(third, row)?))?,
            },
            None => start_of(width, time, None)?,
        };
        starts.push(Some(start));
    }
    match arrays[1].data_type() {
        DataType::Date32 => {
            let days = starts.into_iter().map(|start| {
                let day = start.map(|start: i64| i32::try_from(start.div_euclid(MICROS_A_DAY)));
                day.transpose().map_err(|_| out_of_range())
            });
            Ok(Arc::new(days.collect::<Result<Date32Array>>()?))
        }
        DataType::Timestamp(_, zone) => {
            Ok(Arc::new(TimestampMicrosecondArray::from(starts).with_timezone_opt(zone.clone())))
        }
        _ => Ok(Arc::new(TimestampMicrosecondArray::from(starts))),
    }
}

/// Returns where the bucket of a time begins, in microseconds.
fn start_of(width: IntervalMonthDayNano, time: i64, origin: Option<i64>) -> Result<i64> {
    match (width.months, days_and_time(width)) {
        (0, length @ 1..) => {
            // Nearly all fit in 64 bits, whose division is several times as fast.
            let since = time.checked_sub(origin.unwrap_or(FIRST_MONDAY));
            if let (Ok(step), Some(since)) = (i64::try_from(length), since) {
                return time.checked_sub(since.rem_euclid(step)).ok_or_else(out_of_range);
            }
            let origin = i128::from(origin.unwrap_or(FIRST_MONDAY));
            let start = (i128::from(time) - origin).div_euclid(length) * length + origin;
            i64::try_from(start).map_err(|_| out_of_range())
        }
        (months @ 1.., 0) => {
            let origin = origin.map(month_of).transpose()?.unwrap_or(FIRST_MONTH);
            let first = (month_of(time)? - origin).div_euclid(months) * months + origin;
            let month = u32::try_from(first.rem_euclid(12)).unwrap_or_default() + 1;
            let start =
                NaiveDate::from_ymd_opt(first.div_euclid(12), month, 1).and_then(|date| date.and_hms_opt(0, 0, 0));
            Ok(start.ok_or_else(out_of_range)?.and_utc().timestamp_micros())
        }
        _ => Err(invalid("a bucket is as wide as months, or as days and times, and more than none".into())),
    }
}

/// Returns the number of a time's month.
fn month_of(time: i64) -> Result<i32> {
    let time = moment(time)?;
    Ok(time.year() * 12 + i32::try_from(time.month0()).unwrap_or_default())
}

/// Returns the microseconds of an interval's days and time.
fn days_and_time(interval: IntervalMonthDayNano) -> i128 {
    i128::from(interval.days) * i128::from(MICROS_A_DAY) + i128::from(interval.nanoseconds / 1_000)
}

/// Returns a time moved by an interval, forwards or, where the sign is -1, backwards.
fn moved(time: i64, by: IntervalMonthDayNano, sign: i32) -> Result<i64> {
    let months = by.months.checked_mul(sign).ok_or_else(out_of_range)?;
    let time = match months {
        0 => time,
        months => months_later(moment(time)?, months)?.and_utc().timestamp_micros(),
    };
    i64::try_from(i128::from(time) + days_and_time(by) * i128::from(sign)).map_err(|_| out_of_range())
}
