//! Lengths of intervals, and intervals of elapsed times (Arrow's durations).

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, DurationMicrosecondArray, Float64Array, IntervalMonthDayNanoArray, ListArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, DurationMicrosecondType, Field, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;

use super::dates::MICROS_A_DAY;
use super::definition::{Definition, invalid};

/// The function that returns how long an interval is, with months of 30 days and days of 24 hours; of a list of intervals, the list of
/// their lengths.
pub(crate) const INTERVAL_LENGTH: &str = "interval_length";
/// The function that returns an interval in seconds, with years of 365.25 days and months of 30.
pub(crate) const INTERVAL_EPOCH: &str = "interval_epoch";
/// The function that returns an elapsed time as an interval of days and what is left of one.
pub(crate) const INTERVAL_OF: &str = "interval_of";

/// Returns the functions of this file.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let definitions = [
        Definition {
            name: INTERVAL_LENGTH,
            aliases: &[],
            arguments: 1..=1,
            takes: |types| match types {
                [DataType::List(element)] => {
                    let elements = takes(&[element.data_type().clone()])?;
                    Ok(elements.into_iter().map(|element| DataType::new_list(element, true)).collect())
                }
                _ => takes(types),
            },
            returns: |types| {
                let length = DataType::Duration(TimeUnit::Microsecond);
                Ok(if matches!(types, [DataType::List(_)]) { DataType::new_list(length, true) } else { length })
            },
            compute: |arrays, _| match arrays[0].as_list_opt::<i32>() {
                Some(lists) => {
                    let element = Arc::new(Field::new_list_field(DataType::Duration(TimeUnit::Microsecond), true));
                    let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
                    Ok(Arc::new(ListArray::new(element, offsets, lengths(lists.values())?, nulls)))
                }
                None => lengths(&arrays[0]),
            },
        },
        Definition {
            name: INTERVAL_EPOCH,
            aliases: &[],
            arguments: 1..=1,
            takes,
            returns: |_| Ok(DataType::Float64),
            compute: |arrays, _| {
                let intervals = intervals(&arrays[0])?;
                Ok(Arc::new(intervals.iter().map(|interval| interval.map(seconds)).collect::<Float64Array>()))
            },
        },
        Definition {
            name: INTERVAL_OF,
            aliases: &[],
            arguments: 1..=1,
            takes,
            returns: |_| Ok(DataType::Interval(IntervalUnit::MonthDayNano)),
            compute: |arrays, _| Ok(Arc::new(intervals(&arrays[0])?)),
        },
    ];
    definitions.into_iter().map(Definition::into_udf).collect()
}

fn takes(types: &[DataType]) -> Result<Vec<DataType>> {
    Ok(match types {
        [DataType::Duration(_)] => vec![DataType::Duration(TimeUnit::Microsecond)],
        _ => vec![DataType::Interval(IntervalUnit::MonthDayNano)],
    })
}

/// Returns the lengths of intervals, or elapsed times as such.
fn lengths(array: &ArrayRef) -> Result<ArrayRef> {
    let intervals = intervals(array)?;
    let lengths = intervals.iter().map(|interval| interval.map(length).transpose());
    Ok(Arc::new(lengths.collect::<Result<DurationMicrosecondArray>>()?))
}

/// Returns intervals, or elapsed times as such.
pub(super) fn intervals(array: &ArrayRef) -> Result<IntervalMonthDayNanoArray> {
    if !matches!(array.data_type(), DataType::Duration(_)) {
        return Ok(array.as_primitive::<IntervalMonthDayNanoType>().clone());
    }
    let micros = cast(array, &DataType::Duration(TimeUnit::Microsecond))?;
    let of = |micros: i64| {
        let days = i32::try_from(micros / MICROS_A_DAY).map_err(|_| invalid("the time between is too long".into()))?;
        Ok(IntervalMonthDayNano::new(0, days, micros % MICROS_A_DAY * 1_000))
    };
    let each = micros.as_primitive::<DurationMicrosecondType>().iter();
    each.map(|micros| micros.map(of).transpose()).collect()
}

/// Returns the microseconds of an interval, with months of 30 days and days of 24 hours.
pub(super) fn length(interval: IntervalMonthDayNano) -> Result<i64> {
    let days = i64::from(interval.months) * 30 + i64::from(interval.days);
    let whole = days.checked_mul(MICROS_A_DAY).and_then(|micros| micros.checked_add(interval.nanoseconds / 1_000));
    whole.ok_or_else(|| invalid("the interval is out of range".into()))
}

fn seconds(interval: IntervalMonthDayNano) -> f64 {
    let (years, months) = (interval.months / 12, interval.months % 12);
    let days = f64::from(years) * 365.25 + f64::from(months) * 30.0 + f64::from(interval.days);
    days * 86_400.0 + (interval.nanoseconds / 1_000) as f64 / 1e6
}
