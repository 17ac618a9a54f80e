//! Lengths of intervals, and intervals of elapsed times (Arrow's durations).

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, DurationMicrosecondArray, Float64Array, IntervalMonthDayNanoArray, ListArray, StructArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, DurationMicrosecondType, Field, Fields, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    TimeUnit,
};
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;

use super::dates::MICROS_A_DAY;
use super::definition::{Definition, invalid, unfit};

/// The function that returns how long an interval is, with months of 30 days and days of 24 hours; of a list or a structure with
/// intervals, one with their lengths.
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
            takes: |types| Ok(types.iter().map(read_type).collect()),
            returns: |types| match types.first().and_then(length_type) {
                Some(length) => Ok(length),
                None => Err(unfit("interval_length takes intervals".into())),
            },
            compute: |arrays, _| nested_lengths(&arrays[0]),
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

/// Returns the type of a value with lengths in the places of its intervals and elapsed times, also within lists and structures;
/// `None` where it has none.
pub(crate) fn length_type(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Interval(_) | DataType::Duration(_) => Some(DataType::Duration(TimeUnit::Microsecond)),
        DataType::List(item) => length_type(item.data_type()).map(|item| DataType::new_list(item, true)),
        DataType::Struct(fields) => {
            let lengths: Vec<Option<DataType>> = fields.iter().map(|field| length_type(field.data_type())).collect();
            let has_lengths = lengths.iter().any(Option::is_some);
            let of_lengths = fields.iter().zip(lengths).map(|(field, length)| match length {
                Some(length) => Arc::new(Field::clone(field).with_data_type(length)),
                None => Arc::clone(field),
            });
            has_lengths.then(|| DataType::Struct(of_lengths.collect()))
        }
        _ => None,
    }
}

/// Returns the type in which a value is read whose lengths are taken.
fn read_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Duration(_) => DataType::Duration(TimeUnit::Microsecond),
        DataType::List(item) => DataType::new_list(read_type(item.data_type()), true),
        DataType::Struct(fields) => {
            let read = fields.iter().map(|field| match length_type(field.data_type()) {
                Some(_) => Arc::new(Field::clone(field).with_data_type(read_type(field.data_type()))),
                None => Arc::clone(field),
            });
            DataType::Struct(read.collect())
        }
        _ => DataType::Interval(IntervalUnit::MonthDayNano),
    }
}

fn nested_lengths(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            let lengths = nested_lengths(lists.values())?;
            let item = Arc::new(Field::new_list_field(lengths.data_type().clone(), true));
            Ok(Arc::new(ListArray::new(item, lists.offsets().clone(), lengths, lists.nulls().cloned())))
        }
        DataType::Struct(fields) => {
            let rows = array.as_struct();
            let columns = rows.columns().iter().map(|column| match length_type(column.data_type()) {
                Some(_) => nested_lengths(column),
                None => Ok(Arc::clone(column)),
            });
            let columns = columns.collect::<Result<Vec<_>>>()?;
            let of_column = |(field, column): (&Arc<Field>, &ArrayRef)| {
                Arc::new(Field::clone(field).with_data_type(column.data_type().clone()))
            };
            let fields: Fields = fields.iter().zip(&columns).map(of_column).collect();
            Ok(Arc::new(StructArray::try_new(fields, columns, rows.nulls().cloned())?))
        }
        _ => lengths(array),
    }
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
