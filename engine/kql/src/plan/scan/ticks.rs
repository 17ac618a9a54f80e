//! Stored times as KQL's ticks. A time outside KQL's years and a span too long for ticks are null; fractions of a tick
//! are cut off towards the past.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Int64Array};
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalUnit, IntervalYearMonthType,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use datafusion::error::{DataFusionError, Result};

use crate::values::{
    MAX_DATETIME_TICKS, TICKS_PER_DAY, TICKS_PER_MICROSECOND, TICKS_PER_MILLISECOND, TICKS_PER_SECOND, UNIX_EPOCH_TICKS,
};

const NANOSECONDS_PER_TICK: i64 = 100;
/// The days of a month in an interval, as in PostgreSQL.
const DAYS_PER_MONTH: i64 = 30;

/// Returns the ticks of a column of any of Arrow's types of time.
pub(super) fn ticks_of(times: &ArrayRef) -> Result<Int64Array> {
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    let ticks = match times.data_type() {
        DataType::Date32 => instants::<Date32Type>(times, |days| i64::from(days).checked_mul(TICKS_PER_DAY)),
        DataType::Date64 => instants::<Date64Type>(times, |number| spanned(number, Millisecond)),
        DataType::Timestamp(Second, _) => instants::<TimestampSecondType>(times, |number| spanned(number, Second)),
        DataType::Timestamp(Millisecond, _) => {
            instants::<TimestampMillisecondType>(times, |number| spanned(number, Millisecond))
        }
        DataType::Timestamp(Microsecond, _) => {
            instants::<TimestampMicrosecondType>(times, |number| spanned(number, Microsecond))
        }
        DataType::Timestamp(Nanosecond, _) => {
            instants::<TimestampNanosecondType>(times, |number| spanned(number, Nanosecond))
        }
        DataType::Duration(Second) => spans::<DurationSecondType>(times, |number| spanned(number, Second)),
        DataType::Duration(Millisecond) => {
            spans::<DurationMillisecondType>(times, |number| spanned(number, Millisecond))
        }
        DataType::Duration(Microsecond) => {
            spans::<DurationMicrosecondType>(times, |number| spanned(number, Microsecond))
        }
        DataType::Duration(Nanosecond) => spans::<DurationNanosecondType>(times, |number| spanned(number, Nanosecond)),
        DataType::Time32(Second) => spans::<Time32SecondType>(times, |number| spanned(number.into(), Second)),
        DataType::Time32(_) => spans::<Time32MillisecondType>(times, |number| spanned(number.into(), Millisecond)),
        DataType::Time64(Nanosecond) => spans::<Time64NanosecondType>(times, |number| spanned(number, Nanosecond)),
        DataType::Time64(_) => spans::<Time64MicrosecondType>(times, |number| spanned(number, Microsecond)),
        DataType::Interval(IntervalUnit::YearMonth) => {
            spans::<IntervalYearMonthType>(times, |months| interval(months.into(), 0, 0))
        }
        DataType::Interval(IntervalUnit::DayTime) => spans::<IntervalDayTimeType>(times, |it| {
            interval(0, it.days.into(), spanned(it.milliseconds.into(), Millisecond)?)
        }),
        DataType::Interval(IntervalUnit::MonthDayNano) => spans::<IntervalMonthDayNanoType>(times, |it| {
            interval(it.months.into(), it.days.into(), spanned(it.nanoseconds, Nanosecond)?)
        }),
        other => return Err(DataFusionError::Internal(format!("kql_ticks does not take {other}"))),
    };
    Ok(ticks)
}

fn instants<T: ArrowPrimitiveType>(times: &ArrayRef, since_1970: impl Fn(T::Native) -> Option<i64>) -> Int64Array {
    times.as_primitive::<T>().unary_opt(|time| {
        let ticks = since_1970(time)?.checked_add(UNIX_EPOCH_TICKS)?;
        (0..=MAX_DATETIME_TICKS).contains(&ticks).then_some(ticks)
    })
}

fn spans<T: ArrowPrimitiveType>(times: &ArrayRef, length: impl Fn(T::Native) -> Option<i64>) -> Int64Array {
    times.as_primitive::<T>().unary_opt(length)
}

fn spanned(number: i64, unit: TimeUnit) -> Option<i64> {
    match unit {
        TimeUnit::Second => number.checked_mul(TICKS_PER_SECOND),
        TimeUnit::Millisecond => number.checked_mul(TICKS_PER_MILLISECOND),
        TimeUnit::Microsecond => number.checked_mul(TICKS_PER_MICROSECOND),
        TimeUnit::Nanosecond => Some(number.div_euclid(NANOSECONDS_PER_TICK)),
    }
}

fn interval(months: i64, days: i64, ticks: i64) -> Option<i64> {
    (months * DAYS_PER_MONTH + days).checked_mul(TICKS_PER_DAY)?.checked_add(ticks)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Date32Array, TimestampMicrosecondArray, TimestampNanosecondArray};

    use super::*;

    #[test]
    fn times_outside_kql_are_null_and_finer_ones_earlier() {
        let ticks = |times: ArrayRef| ticks_of(&times).unwrap();
        let nanoseconds = ticks(Arc::new(TimestampNanosecondArray::from(vec![-1, 0, 199])));
        assert_eq!(nanoseconds.values(), &[UNIX_EPOCH_TICKS - 1, UNIX_EPOCH_TICKS, UNIX_EPOCH_TICKS + 1]);
        let infinite = ticks(Arc::new(TimestampMicrosecondArray::from(vec![i64::MAX, -i64::MAX, 0])));
        assert_eq!(infinite.iter().collect::<Vec<_>>(), [None, None, Some(UNIX_EPOCH_TICKS)]);
        let days = ticks(Arc::new(Date32Array::from(vec![-719_163, -719_162, 2_932_896, 2_932_897])));
        let last_day = MAX_DATETIME_TICKS + 1 - TICKS_PER_DAY;
        assert_eq!(days.iter().collect::<Vec<_>>(), [None, Some(0), Some(last_day), None]);
    }
}
