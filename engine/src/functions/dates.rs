//! Dates and times with DuckDB's and PostgreSQL's names: differences, ages, parts as numbers, time zones.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{
    Array, ArrayRef, AsArray, Date32Array, Int64Array, IntervalMonthDayNanoArray, PrimitiveArray,
    TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float64Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalUnit, TimeUnit, TimestampMicrosecondType, TimestampNanosecondType,
};
use chrono::{DateTime, Datelike, Months, NaiveDate, NaiveDateTime, TimeDelta, TimeZone, Timelike, Weekday};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::ScalarUDF;

use super::definition::{Definition, invalid, unfit};

const MICROS_A_SECOND: i64 = 1_000_000;
pub(super) const MICROS_A_DAY: i64 = 86_400 * MICROS_A_SECOND;
/// The function that returns how many nanoseconds a time is from 1970, of any year.
pub(crate) const NANOSECONDS: &str = "epoch_nanoseconds";
/// What it returns.
const NANOSECOND_COUNT: DataType = DataType::Decimal128(38, 0);

/// Returns the functions of this file.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let moments = |name, aliases, compute| Definition {
        name,
        aliases,
        arguments: 3..=3,
        takes: |_| Ok(vec![DataType::Utf8, micros(), micros()]),
        returns: |_| Ok(DataType::Int64),
        compute,
    };
    let epoch = |name, aliases, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases,
        arguments: 1..=1,
        takes: number_or_moment,
        returns: |types| match types {
            [DataType::Int64] => Ok(micros()),
            _ => Ok(DataType::Int64),
        },
        compute,
    };
    let definitions = [
        moments("date_diff", &["datediff"], |arrays, rows| differences(arrays, rows, boundaries)),
        moments("date_sub", &["datesub"], |arrays, rows| differences(arrays, rows, complete)),
        Definition {
            name: "age",
            aliases: &[],
            arguments: 2..=2,
            takes: |_| Ok(vec![micros(), micros()]),
            returns: |_| Ok(DataType::Interval(IntervalUnit::MonthDayNano)),
            compute: ages,
        },
        epoch("epoch_ms", &[], |arrays, rows| epochs(arrays, rows, 1_000)),
        epoch("epoch_us", &[], |arrays, rows| epochs(arrays, rows, 1)),
        Definition {
            name: NANOSECONDS,
            aliases: &[],
            arguments: 1..=1,
            takes: |types| match types {
                [time @ DataType::Timestamp(_, _)] => Ok(vec![time.clone()]),
                _ => Ok(vec![micros()]),
            },
            returns: |_| Ok(NANOSECOND_COUNT),
            compute: |arrays, _| nanosecond_counts(&arrays[0]),
        },
        Definition {
            name: "epoch_ns",
            aliases: &[],
            arguments: 1..=1,
            takes: |types| match types {
                [DataType::Timestamp(TimeUnit::Nanosecond, _)] => {
                    Ok(vec![DataType::Timestamp(TimeUnit::Nanosecond, None)])
                }
                _ => Ok(vec![micros()]),
            },
            returns: |_| Ok(DataType::Int64),
            compute: |arrays, _| {
                if let Some(times) = arrays[0].as_primitive_opt::<TimestampNanosecondType>() {
                    return Ok(Arc::new(times.unary::<_, Int64Type>(|nanoseconds| nanoseconds)));
                }
                let nanoseconds = |micros: i64| {
                    micros.checked_mul(1_000).ok_or_else(|| invalid("the time is beyond 64 bits of nanoseconds".into()))
                };
                Ok(Arc::new(
                    arrays[0].as_primitive::<TimestampMicrosecondType>().try_unary::<_, Int64Type, _>(nanoseconds)?,
                ))
            },
        },
        Definition {
            name: "make_timestamp",
            aliases: &[],
            arguments: 1..=6,
            takes: |types| match types.len() {
                1 => Ok(vec![DataType::Int64]),
                6 => {
                    let mut all = vec![DataType::Int64; 5];
                    all.push(DataType::Float64);
                    Ok(all)
                }
                _ => Err(unfit(
                    "make_timestamp takes year, month, day, hour, minute and seconds, or microseconds".into(),
                )),
            },
            returns: |_| Ok(micros()),
            compute: made,
        },
        Definition {
            name: "date_from_days",
            aliases: &[],
            arguments: 1..=1,
            takes: |types| {
                match types {
                [DataType::Struct(fields)] if fields.len() == 3 => Ok(types.to_vec()),
                [found] if found.is_integer() || found.is_null() => Ok(vec![DataType::Int64]),
                _ => Err(unfit(
                    "make_date takes a year, a month and a day, the days since 1970, or a struct of year, month and day"
                        .into(),
                )),
            }
            },
            returns: |_| Ok(DataType::Date32),
            compute: made_dates,
        },
        Definition {
            name: "timezone",
            aliases: &[],
            arguments: 2..=2,
            takes: |types| {
                let moment = match types {
                    [_, DataType::Timestamp(_, Some(_))] => {
                        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
                    }
                    _ => micros(),
                };
                Ok(vec![DataType::Utf8, moment])
            },
            returns: |types| match types {
                [_, DataType::Timestamp(_, Some(_))] => Ok(micros()),
                _ => Ok(DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
            },
            compute: zoned,
        },
    ];
    definitions.into_iter().map(Definition::into_udf).collect()
}

/// A time without a zone, in microseconds.
pub(super) fn micros() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, None)
}

fn number_or_moment(types: &[DataType]) -> Result<Vec<DataType>> {
    Ok(types.iter().map(|data_type| if data_type.is_integer() { DataType::Int64 } else { micros() }).collect())
}

/// Returns the date and time of microseconds since 1970.
pub(super) fn moment(micros: i64) -> Result<NaiveDateTime> {
    let found = DateTime::from_timestamp_micros(micros).map(|time| time.naive_utc());
    found.ok_or_else(out_of_range)
}

/// Returns the time that is so many months later, or earlier where they are negative.
pub(super) fn months_later(time: NaiveDateTime, months: i32) -> Result<NaiveDateTime> {
    let count = Months::new(months.unsigned_abs());
    let moved = if months < 0 { time.checked_sub_months(count) } else { time.checked_add_months(count) };
    moved.ok_or_else(out_of_range)
}

/// Returns the error of a time beyond those that there are.
pub(super) fn out_of_range() -> DataFusionError {
    invalid("the time is out of range".into())
}

/// A part of a time that differences are counted in.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    Millennium,
    Century,
    Decade,
    Year,
    IsoYear,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
}

impl Part {
    fn parse(text: &str) -> Result<Self> {
        Ok(match text.to_lowercase().as_str() {
            "millennium" | "millennia" | "mil" => Part::Millennium,
            "century" | "centuries" | "cent" | "c" => Part::Century,
            "decade" | "decades" | "dec" => Part::Decade,
            "year" | "years" | "yr" | "y" | "yyyy" => Part::Year,
            "isoyear" => Part::IsoYear,
            "quarter" | "quarters" | "q" => Part::Quarter,
            "month" | "months" | "mon" | "mons" => Part::Month,
            "week" | "weeks" | "w" | "yearweek" => Part::Week,
            "day" | "days" | "d" | "dayofmonth" | "dow" | "doy" | "dayofweek" | "dayofyear" | "weekday" => Part::Day,
            "hour" | "hours" | "hr" | "h" => Part::Hour,
            "minute" | "minutes" | "min" | "m" => Part::Minute,
            "second" | "seconds" | "sec" | "s" | "epoch" => Part::Second,
            "millisecond" | "milliseconds" | "ms" | "msec" => Part::Millisecond,
            "microsecond" | "microseconds" | "us" | "usec" => Part::Microsecond,
            _ => {
                return Err(invalid(format!(
                    "`{text}` is no part of a time; there are year, quarter, month, week, day, hour, minute, second, \
                     millisecond and microsecond"
                )));
            }
        })
    }

    /// Returns the microseconds of the part, where all of them are as long.
    fn micros(self) -> Option<i64> {
        Some(match self {
            Part::Week => 7 * MICROS_A_DAY,
            Part::Day => MICROS_A_DAY,
            Part::Hour => 3_600 * MICROS_A_SECOND,
            Part::Minute => 60 * MICROS_A_SECOND,
            Part::Second => MICROS_A_SECOND,
            Part::Millisecond => 1_000,
            Part::Microsecond => 1,
            Part::Millennium
            | Part::Century
            | Part::Decade
            | Part::Year
            | Part::IsoYear
            | Part::Quarter
            | Part::Month => return None,
        })
    }

    fn months(self) -> i64 {
        match self {
            Part::Millennium => 12_000,
            Part::Century => 1_200,
            Part::Decade => 120,
            Part::Year | Part::IsoYear => 12,
            Part::Quarter => 3,
            _ => 1,
        }
    }
}

fn differences(arrays: &[ArrayRef], rows: usize, difference: fn(Part, i64, i64) -> Result<i64>) -> Result<ArrayRef> {
    let parts = arrays[0].as_string::<i32>();
    let (starts, ends) = (moments_of(&arrays[1]), moments_of(&arrays[2]));
    let mut last: Option<(String, Part)> = None;
    let mut values = Vec::with_capacity(rows);
    for row in 0..rows {
        if parts.is_null(row) || starts.is_null(row) || ends.is_null(row) {
            values.push(None);
            continue;
        }
        let text = parts.value(row);
        let part = match &last {
            Some((known, part)) if known == text => *part,
            _ => Part::parse(text)?,
        };
        last = Some((text.to_owned(), part));
        values.push(Some(difference(part, starts.value(row), ends.value(row))?));
    }
    Ok(Arc::new(Int64Array::from(values)))
}

fn moments_of(array: &ArrayRef) -> &TimestampMicrosecondArray {
    array.as_primitive::<TimestampMicrosecondType>()
}

/// Returns how many boundaries of the part are between two times.
fn boundaries(part: Part, start: i64, end: i64) -> Result<i64> {
    if part == Part::Week {
        // DuckDB counts spans of seven days, whatever day begins the week.
        return Ok((end.div_euclid(MICROS_A_DAY) - start.div_euclid(MICROS_A_DAY)) / 7);
    }
    if let Some(micros) = part.micros() {
        let (start, end) = (start.div_euclid(micros), end.div_euclid(micros));
        return end.checked_sub(start).ok_or_else(|| invalid("the difference is beyond 64 bits".into()));
    }
    let (start, end) = (moment(start)?, moment(end)?);
    let number = |time: NaiveDateTime| {
        let year = i64::from(time.year());
        match part {
            Part::IsoYear => i64::from(time.iso_week().year()),
            Part::Year => year,
            Part::Decade => year.div_euclid(10),
            // As in DuckDB those begin with 1900 and 2000 here.
            Part::Century => year / 100,
            Part::Millennium => year / 1_000,
            Part::Quarter => year * 4 + i64::from(time.month0() / 3),
            _ => year * 12 + i64::from(time.month0()),
        }
    };
    Ok(number(end) - number(start))
}

/// Returns how many whole parts are between two times.
fn complete(part: Part, start: i64, end: i64) -> Result<i64> {
    if let Some(micros) = part.micros() {
        let whole = (i128::from(end) - i128::from(start)) / i128::from(micros);
        return i64::try_from(whole).map_err(|_| invalid("the difference is beyond 64 bits".into()));
    }
    let (from, to) = (moment(start.min(end))?, moment(start.max(end))?);
    let mut months = i64::from(to.year() - from.year()) * 12 + i64::from(to.month()) - i64::from(from.month());
    let at = |time: NaiveDateTime| (time.day(), time.num_seconds_from_midnight(), time.nanosecond());
    // The last day of a month completes one, however few days it has.
    let is_last_day = to.date().succ_opt().is_some_and(|next| next.month() != to.month());
    let (to_at, from_at) = (at(to), at(from));
    let completes =
        to_at >= from_at || (is_last_day && from_at.0 > to_at.0 && (to_at.1, to_at.2) >= (from_at.1, from_at.2));
    if !completes {
        months -= 1;
    }
    let whole = months / part.months();
    Ok(if start <= end { whole } else { -whole })
}

fn ages(arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (later, earlier) = (moments_of(&arrays[0]), moments_of(&arrays[1]));
    let mut values = Vec::with_capacity(rows);
    for row in 0..rows {
        let is_null = later.is_null(row) || earlier.is_null(row);
        values.push(if is_null { None } else { Some(age(later.value(row), earlier.value(row))?) });
    }
    Ok(Arc::new(IntervalMonthDayNanoArray::from(values)))
}

/// Returns years and months, days, and the time between two times, as PostgreSQL counts them.
fn age(later: i64, earlier: i64) -> Result<IntervalMonthDayNano> {
    let (to, from) = (moment(later.max(earlier))?, moment(later.min(earlier))?);
    let micros = |time: NaiveDateTime| {
        i64::from(time.num_seconds_from_midnight()) * MICROS_A_SECOND + i64::from(time.nanosecond() / 1_000)
    };
    let mut months = (to.year() - from.year()) * 12 + to.month() as i32 - from.month() as i32;
    let mut days = to.day() as i32 - from.day() as i32;
    let mut rest = micros(to) - micros(from);
    if rest < 0 {
        rest += MICROS_A_DAY;
        days -= 1;
    }
    if days < 0 {
        days += days_in_month(from.date());
        months -= 1;
    }
    let sign = if later >= earlier { 1 } else { -1 };
    Ok(IntervalMonthDayNanoType::make_value(months * sign, days * sign, rest * 1_000 * i64::from(sign)))
}

fn days_in_month(date: NaiveDate) -> i32 {
    let first = date.with_day(1).unwrap_or(date);
    let next = first.checked_add_months(Months::new(1)).unwrap_or(first);
    i32::try_from((next - first).num_days()).unwrap_or(30)
}

/// A number is milliseconds (or another unit) since 1970, and becomes a time; a time becomes the number.
fn nanosecond_counts(times: &ArrayRef) -> Result<ArrayRef> {
    let nanoseconds: i128 = match times.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => 1_000_000_000,
        DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000_000,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 1_000,
        _ => 1,
    };
    let counts = cast(times, &DataType::Int64)?;
    let counts = counts.as_primitive::<Int64Type>().unary::<_, Decimal128Type>(|count| i128::from(count) * nanoseconds);
    Ok(Arc::new(counts.with_data_type(NANOSECOND_COUNT)))
}

fn epochs(arrays: &[ArrayRef], _rows: usize, micros_a_unit: i64) -> Result<ArrayRef> {
    match arrays[0].data_type() {
        DataType::Int64 => {
            let numbers = arrays[0].as_primitive::<Int64Type>();
            let times: PrimitiveArray<TimestampMicrosecondType> =
                numbers.try_unary(|number| number.checked_mul(micros_a_unit).ok_or_else(out_of_range))?;
            Ok(Arc::new(times))
        }
        _ => {
            let times = moments_of(&arrays[0]);
            Ok(Arc::new(times.unary::<_, Int64Type>(|time| time.div_euclid(micros_a_unit))))
        }
    }
}

/// Returns the dates of days since 1970, or of structs of a year, a month and a day.
fn made_dates(arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let Some(parts) = arrays[0].as_struct_opt() else {
        let days = arrays[0].as_primitive::<Int64Type>();
        let date = |days: i64| i32::try_from(days).map_err(|_| invalid("the date is out of range".into()));
        return Ok(Arc::new(days.try_unary::<_, Date32Type, _>(date)?));
    };
    let columns = parts.columns().iter().map(|column| cast(column, &DataType::Int64));
    let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
    let mut dates = Vec::with_capacity(rows);
    for row in 0..rows {
        if parts.is_null(row) || columns.iter().any(|column| column.is_null(row)) {
            dates.push(None);
            continue;
        }
        let at = |index: usize| columns.get(index).map_or(0, |column| column.as_primitive::<Int64Type>().value(row));
        let part = |value: i64| u32::try_from(value).unwrap_or(u32::MAX);
        let date = i32::try_from(at(0)).ok().and_then(|year| NaiveDate::from_ymd_opt(year, part(at(1)), part(at(2))));
        let date = date.ok_or_else(|| invalid(format!("there is no date {:04}-{:02}-{:02}", at(0), at(1), at(2))))?;
        dates.push(Some(Date32Type::from_naive_date(date)));
    }
    Ok(Arc::new(Date32Array::from(dates)))
}

fn made(arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    if let [micros] = arrays {
        let micros = micros.as_primitive::<Int64Type>();
        return Ok(Arc::new(micros.unary::<_, TimestampMicrosecondType>(|micros| micros)));
    }
    let whole: Vec<&Int64Array> = arrays.iter().take(5).map(|array| array.as_primitive::<Int64Type>()).collect();
    let seconds = arrays[5].as_primitive::<Float64Type>();
    let mut values = Vec::with_capacity(rows);
    for row in 0..rows {
        if arrays.iter().any(|array| array.is_null(row)) {
            values.push(None);
            continue;
        }
        let at = |index: usize| whole.get(index).map_or(0, |array| array.value(row));
        let day = |value: i64| u32::try_from(value).unwrap_or(u32::MAX);
        let date = i32::try_from(at(0)).ok().and_then(|year| NaiveDate::from_ymd_opt(year, day(at(1)), day(at(2))));
        let time = date.and_then(|date| date.and_hms_opt(day(at(3)), day(at(4)), 0));
        let seconds = seconds.value(row);
        let time = time.filter(|_| (0.0..60.0).contains(&seconds)).and_then(|time| {
            let micros = (seconds * MICROS_A_SECOND as f64).round() as i64;
            time.checked_add_signed(TimeDelta::microseconds(micros))
        });
        let Some(time) = time else {
            let shown = (at(0), at(1), at(2), at(3), at(4));
            return Err(invalid(format!(
                "there is no time {:04}-{:02}-{:02} {:02}:{:02}:{seconds}",
                shown.0, shown.1, shown.2, shown.3, shown.4
            )));
        };
        values.push(Some(time.and_utc().timestamp_micros()));
    }
    Ok(Arc::new(TimestampMicrosecondArray::from(values)))
}

/// Returns the time zone of a name, in any case: `utc`, `europe/berlin`.
pub(super) fn zone_named(name: &str) -> Option<Tz> {
    let capitals = |name: &str| {
        let mut is_first = true;
        let letter = |letter: char| {
            let capital = if is_first { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() };
            is_first = !letter.is_ascii_alphabetic();
            capital
        };
        name.chars().map(letter).collect::<String>()
    };
    let found: Option<Tz> = name.parse().ok().or_else(|| name.to_ascii_uppercase().parse().ok());
    found.or_else(|| capitals(name).parse().ok())
}

/// Returns the instant, in UTC, at which clocks of a zone show a time: where they were set back, the later of two, as PostgreSQL; where
/// they were set forward, as if they had not been.
pub(super) fn instant_of(zone: Tz, time: &NaiveDateTime) -> NaiveDateTime {
    match zone.from_local_datetime(time).latest() {
        Some(instant) => instant.naive_utc(),
        None => {
            let before = *time - TimeDelta::hours(1);
            let instant = zone.from_local_datetime(&before).earliest();
            instant.map_or(*time, |instant| instant.naive_utc() + TimeDelta::hours(1))
        }
    }
}

/// Returns the zone of a name. Errors: what is none, and an offset, which is east of Greenwich in ISO 8601 and west of it in PostgreSQL.
fn written_zone(name: &str) -> Result<Tz> {
    if name.trim_start().starts_with(['+', '-']) {
        return Err(invalid(format!(
            "`{name}` is no name of a time zone: as an offset it is east of Greenwich in ISO 8601, and west of it in PostgreSQL; write \
             Europe/Berlin, or add hours: (time AT TIME ZONE 'UTC') + INTERVAL '2 hours'"
        )));
    }
    zone_named(name).ok_or_else(|| invalid(format!("`{name}` is no time zone; write Europe/Berlin")))
}

/// A time without a zone is one of that zone and becomes an instant; an instant becomes the time there.
fn zoned(arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let zones = arrays[0].as_string::<i32>();
    let times = moments_of(&arrays[1]);
    let to_local = matches!(arrays[1].data_type(), DataType::Timestamp(_, Some(_)));
    let mut last: Option<(String, Tz)> = None;
    let mut values = Vec::with_capacity(rows);
    for row in 0..rows {
        if zones.is_null(row) || times.is_null(row) {
            values.push(None);
            continue;
        }
        let name = zones.value(row);
        let zone = match &last {
            Some((known, zone)) if known == name => *zone,
            _ => written_zone(name)?,
        };
        last = Some((name.to_owned(), zone));
        let time = moment(times.value(row))?;
        let changed = if to_local { zone.from_utc_datetime(&time).naive_local() } else { instant_of(zone, &time) };
        values.push(Some(changed.and_utc().timestamp_micros()));
    }
    let array = TimestampMicrosecondArray::from(values);
    Ok(Arc::new(if to_local { array } else { array.with_timezone("UTC") }))
}

/// Returns the number of a weekday with Sunday as 1, as PostgreSQL's pattern `D`.
pub(super) fn day_from_sunday(day: Weekday) -> u32 {
    day.num_days_from_sunday() + 1
}
