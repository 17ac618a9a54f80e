//! `date_trunc`, `date_bin`, `range` and `generate_series` of times beyond nanoseconds. DataFusion counts in them whatever the unit
//! of its argument is, so that it refuses months before 1677 and after 2262, its bins there wrap around, its series are null, and
//! its `to_timestamp` makes the last time there is of seconds beyond.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListBuilder, PrimitiveArray, TimestampMicrosecondBuilder};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DataType, Field, FieldRef, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    TimestampMicrosecondType,
};
use chrono::{DateTime, Datelike, Days, NaiveDate, NaiveDateTime, TimeDelta};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};

use super::dates::{moment, months_later, out_of_range};
use super::definition::invalid;
use super::wrapped_functions::{FunctionOverride, WrappedFunction};

const MICROS_A_SECOND: i64 = 1_000_000;
const MICROS_AN_HOUR: i64 = 3_600 * MICROS_A_SECOND;
const NANOS_A_DAY: i128 = 86_400_000_000_000;
/// The function of series whose end is one of the elements.
const GENERATE_SERIES: &str = "generate_series";
/// The function of seconds since 1970.
const TO_TIMESTAMP: &str = "to_timestamp";
/// The seconds that are beyond 64 bits of nanoseconds.
const FAR_SECONDS: f64 = 9_223_372_036.0;

/// Returns the function, which knows all times where it is one of those.
pub(super) fn wide(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    match function.name() {
        "date_trunc" | "date_bin" | "range" | GENERATE_SERIES | TO_TIMESTAMP => {
            WrappedFunction::new_udf(function, WideTimes)
        }
        _ => function,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct WideTimes;

impl FunctionOverride for WideTimes {
    fn return_type(&self, inner: &ScalarUDF, arg_types: &[DataType]) -> Result<DataType> {
        match series_type(inner.name(), arg_types) {
            Some(series) => Ok(series),
            None => inner.return_type(arg_types),
        }
    }

    fn return_field(&self, inner: &ScalarUDF, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        match series_type(inner.name(), &types) {
            Some(series) => Ok(Arc::new(Field::new(inner.name(), series, true))),
            None => inner.return_field_from_args(args),
        }
    }

    fn invoke(&self, inner: &ScalarUDF, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let types: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
        if series_type(inner.name(), &types).is_some() {
            return series(&args, inner.name() == GENERATE_SERIES);
        }
        if let Some(start) = start_of(inner.name(), &args.args)
            && let Some(times) = args.args.get(1)
        {
            return starts(times, start.as_ref());
        }
        if inner.name() == TO_TIMESTAMP {
            refuse_far_seconds(&args)?;
        }
        inner.invoke_with_args(args)
    }
}

/// Errors: seconds beyond nanoseconds, of which DataFusion makes the last time that there is.
fn refuse_far_seconds(args: &ScalarFunctionArgs) -> Result<()> {
    let Some(seconds) = args.args.first().filter(|seconds| seconds.data_type().is_numeric()) else { return Ok(()) };
    let seconds = seconds.to_array(args.number_rows)?;
    let seconds = cast_with_options(&seconds, &DataType::Float64, &CastOptions::default())?;
    let mut seconds = seconds.as_primitive::<Float64Type>().iter().flatten();
    match seconds.find(|seconds| seconds.abs().partial_cmp(&FAR_SECONDS).is_none_or(|order| order.is_ge())) {
        Some(far) => Err(invalid(format!(
            "{far} seconds are beyond a timestamp of nanoseconds; write CAST(seconds AS TIMESTAMP), which has microseconds"
        ))),
        None => Ok(()),
    }
}

/// Returns the type of a series of times, in microseconds; `None` for other functions, and where DataFusion's makes it right.
fn series_type(function: &str, types: &[DataType]) -> Option<DataType> {
    let [
        DataType::Timestamp(unit, zone),
        DataType::Timestamp(end_unit, _),
        DataType::Interval(IntervalUnit::MonthDayNano),
    ] = types
    else {
        return None;
    };
    let is_series = matches!(function, "range" | GENERATE_SERIES);
    let is_utc = zone.as_deref().is_none_or(|zone| matches!(zone, "UTC" | "+00:00"));
    if !is_series || !is_utc || *unit == TimeUnit::Nanosecond || *end_unit == TimeUnit::Nanosecond {
        return None;
    }
    let element = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
    Some(DataType::List(Arc::new(Field::new_list_field(element, true))))
}

/// Returns the series of each row. The caller has measured them. Errors: `invalid_value`.
fn series(args: &ScalarFunctionArgs, has_end: bool) -> Result<ColumnarValue> {
    let [start, end, step] = args.args.as_slice() else {
        return Err(invalid("a series of times has a start, an end and a step".into()));
    };
    let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
    let rows = if is_scalar { 1 } else { args.number_rows };
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let micros_of = |times: &ColumnarValue| -> Result<ArrayRef> {
        let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
        Ok(cast_with_options(&times.to_array(rows)?, &micros, &strict)?)
    };
    let zone = match start.data_type() {
        DataType::Timestamp(_, zone) => zone,
        _ => None,
    };
    let (starts, ends, steps) = (micros_of(start)?, micros_of(end)?, step.to_array(rows)?);
    let starts = starts.as_primitive::<TimestampMicrosecondType>();
    let ends = ends.as_primitive::<TimestampMicrosecondType>();
    let steps = steps.as_primitive::<IntervalMonthDayNanoType>();
    let mut lists = ListBuilder::new(TimestampMicrosecondBuilder::new().with_timezone_opt(zone));
    for row in 0..rows {
        if starts.is_null(row) || ends.is_null(row) || steps.is_null(row) {
            lists.append_null();
            continue;
        }
        let (mut time, end, step) = (starts.value(row), ends.value(row), steps.value(row));
        let first = later(time, step)?;
        let is_backwards = first < time;
        if first == time {
            return Err(invalid("the step of a series is an interval other than zero".into()));
        }
        loop {
            let is_before_end = if is_backwards { time > end } else { time < end };
            if !(is_before_end || has_end && time == end) {
                break;
            }
            lists.values().append_value(time);
            // Nothing follows on the last time that there is.
            let Ok(next) = later(time, step) else { break };
            if next == time || (next < time) != is_backwards {
                return Err(invalid("the step of a series goes in one direction".into()));
            }
            time = next;
        }
        lists.append(true);
    }
    let lists: ArrayRef = Arc::new(lists.finish());
    Ok(match is_scalar {
        true => ColumnarValue::Scalar(ScalarValue::try_from_array(&lists, 0)?),
        false => ColumnarValue::Array(lists),
    })
}

/// Returns the time that is an interval after another one, both in microseconds.
fn later(micros: i64, step: IntervalMonthDayNano) -> Result<i64> {
    let time = months_later(moment(micros)?, step.months)?;
    let span = TimeDelta::try_days(i64::from(step.days))
        .and_then(|days| days.checked_add(&TimeDelta::nanoseconds(step.nanoseconds)));
    let time = span.and_then(|span| time.checked_add_signed(span)).ok_or_else(out_of_range)?;
    Ok(in_micros(time))
}

/// Where the part of time that microseconds since 1970 are in begins.
type StartOfPart = Box<dyn Fn(i64) -> Result<i64>>;

/// Returns what a call computes, in microseconds; `None` where DataFusion's function does so for all times that there are.
fn start_of(function: &str, args: &[ColumnarValue]) -> Option<StartOfPart> {
    let [ColumnarValue::Scalar(step), times, rest @ ..] = args else { return None };
    let DataType::Timestamp(unit, zone) = times.data_type() else { return None };
    let is_utc = zone.as_deref().is_none_or(|zone| matches!(zone, "UTC" | "+00:00"));
    if unit == TimeUnit::Nanosecond || !is_utc {
        return None;
    }
    if function == "date_trunc" {
        // DataFusion counts these in the unit of its argument only in arrays without a zone.
        let counts_nanos = zone.is_some() || matches!(times, ColumnarValue::Scalar(_));
        return start_of_part(&step.try_as_str().flatten()?.to_lowercase(), counts_nanos);
    }
    let ScalarValue::IntervalMonthDayNano(Some(stride)) = step else { return None };
    let origin = match rest {
        [] => 0,
        [ColumnarValue::Scalar(ScalarValue::TimestampNanosecond(Some(origin), _))] => *origin,
        _ => return None,
    };
    start_of_bin(*stride, origin)
}

fn start_of_part(part: &str, counts_nanos: bool) -> Option<StartOfPart> {
    let first_day: fn(NaiveDate) -> Option<NaiveDate> = match part {
        "week" => |date: NaiveDate| date.checked_sub_days(Days::new(u64::from(date.weekday().num_days_from_monday()))),
        "month" => |date: NaiveDate| date.with_day(1),
        "quarter" => |date: NaiveDate| NaiveDate::from_ymd_opt(date.year(), date.month0() / 3 * 3 + 1, 1),
        "year" => |date: NaiveDate| NaiveDate::from_ymd_opt(date.year(), 1, 1),
        "day" | "hour" | "minute" | "second" | "millisecond" if counts_nanos => {
            let length = match part {
                "day" => 24 * MICROS_AN_HOUR,
                "hour" => MICROS_AN_HOUR,
                "minute" => MICROS_AN_HOUR / 60,
                "second" => MICROS_A_SECOND,
                _ => MICROS_A_SECOND / 1_000,
            };
            return Some(Box::new(move |micros: i64| {
                micros.checked_sub(micros.rem_euclid(length)).ok_or_else(out_of_range)
            }));
        }
        _ => return None,
    };
    Some(Box::new(move |micros: i64| {
        let midnight = first_day(moment(micros)?.date()).and_then(|date| date.and_hms_opt(0, 0, 0));
        midnight.map(in_micros).ok_or_else(out_of_range)
    }))
}

fn start_of_bin(stride: IntervalMonthDayNano, origin: i64) -> Option<StartOfPart> {
    let length = i128::from(stride.days) * NANOS_A_DAY + i128::from(stride.nanoseconds);
    match (stride.months, length) {
        (0, 1..) => {
            let whole_micros = |nanos: i128| (nanos % 1_000 == 0).then(|| i64::try_from(nanos / 1_000).ok()).flatten();
            // Most strides and origins are whole microseconds, and are divided by as such.
            if let (Some(length), Some(origin)) = (whole_micros(length), whole_micros(i128::from(origin))) {
                return Some(Box::new(move |micros: i64| {
                    let into_bin = micros.checked_sub(origin).map(|since| since.rem_euclid(length));
                    into_bin.and_then(|into_bin| micros.checked_sub(into_bin)).ok_or_else(out_of_range)
                }));
            }
            Some(Box::new(move |micros: i64| {
                let at = i128::from(micros) * 1_000;
                let start = at - (at - i128::from(origin)).rem_euclid(length);
                i64::try_from(start.div_euclid(1_000)).map_err(|_| out_of_range())
            }))
        }
        (months @ 1.., 0) => {
            let first = DateTime::from_timestamp_nanos(origin).naive_utc();
            Some(Box::new(move |micros: i64| {
                let time = moment(micros)?;
                let between = (time.year() - first.year()) * 12 + time.month() as i32 - first.month() as i32;
                let whole = between.div_euclid(months) * months;
                let start = months_later(first, whole)?;
                // The bins may begin within a month.
                let start = if start > time { months_later(first, whole - months)? } else { start };
                Ok(in_micros(start))
            }))
        }
        _ => None,
    }
}

fn in_micros(time: NaiveDateTime) -> i64 {
    time.and_utc().timestamp_micros()
}

/// Returns the starts of times, in their type.
fn starts(times: &ColumnarValue, start: &dyn Fn(i64) -> Result<i64>) -> Result<ColumnarValue> {
    let array = times.to_array(1)?;
    let data_type = array.data_type().clone();
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let micros = cast_with_options(&array, &DataType::Timestamp(TimeUnit::Microsecond, None), &strict)?;
    let moved: PrimitiveArray<TimestampMicrosecondType> =
        micros.as_primitive::<TimestampMicrosecondType>().try_unary(start)?;
    let moved = match &data_type {
        DataType::Timestamp(_, zone) => moved.with_timezone_opt(zone.clone()),
        _ => moved,
    };
    let moved = cast_with_options(&(Arc::new(moved) as ArrayRef), &data_type, &strict)?;
    Ok(match times {
        ColumnarValue::Scalar(_) => ColumnarValue::Scalar(ScalarValue::try_from_array(&moved, 0)?),
        ColumnarValue::Array(_) => ColumnarValue::Array(moved),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(text: &str) -> i64 {
        in_micros(NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S").unwrap())
    }

    #[test]
    fn parts_begin_at_all_times() {
        for (part, time, start) in [
            ("week", "0001-01-03 10:00:00", "0001-01-01 00:00:00"),
            ("month", "1500-03-15 10:00:00", "1500-03-01 00:00:00"),
            ("quarter", "3000-05-05 00:00:00", "3000-04-01 00:00:00"),
            ("year", "9999-12-31 23:59:59", "9999-01-01 00:00:00"),
        ] {
            let start_of = start_of_part(part, false).unwrap();
            assert_eq!(start_of(micros(time)).unwrap(), micros(start), "{part}");
        }
        assert!(start_of_part("day", false).is_none() && start_of_part("day", true).is_some());
    }

    #[test]
    fn steps_are_of_the_calendar() {
        let month_and_more = IntervalMonthDayNano::new(1, 1, 1_000);
        assert_eq!(later(micros("1500-01-31 00:00:00"), month_and_more).unwrap(), micros("1500-03-01 00:00:00") + 1);
        assert_eq!(later(0, IntervalMonthDayNano::new(-1, 0, 0)).unwrap(), micros("1969-12-01 00:00:00"));
        assert!(later(i64::MAX, IntervalMonthDayNano::new(0, 1, 0)).is_err());
    }

    #[test]
    fn bins_begin_at_all_times() {
        let day = IntervalMonthDayNano::new(0, 1, 0);
        let start_of = start_of_bin(day, 0).unwrap();
        assert_eq!(start_of(micros("1066-10-14 09:00:00")).unwrap(), micros("1066-10-14 00:00:00"));
        let months = start_of_bin(IntervalMonthDayNano::new(2, 0, 0), 9 * NANOS_A_DAY as i64).unwrap();
        assert_eq!(months(micros("1500-03-05 00:00:00")).unwrap(), micros("1500-01-10 00:00:00"));
        assert_eq!(months(micros("1500-03-10 00:00:00")).unwrap(), micros("1500-03-10 00:00:00"));
        let odd = start_of_bin(IntervalMonthDayNano::new(0, 0, 1_500), 0).unwrap();
        assert_eq!((odd(2).unwrap(), odd(4).unwrap(), odd(-1).unwrap()), (1, 3, -2));
        assert!(start_of_bin(IntervalMonthDayNano::new(1, 1, 0), 0).is_none());
    }
}
