//! Values of CSV columns as arrays of their types.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Float64Array, Int64Array, StringArray,
    Time64MicrosecondArray, Time64NanosecondArray, TimestampMicrosecondArray, TimestampNanosecondArray,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, TimeUnit};
use chrono::{DateTime, Datelike, NaiveTime, Timelike};

use super::dates::{TemporalFormat, clock};
use super::number_form::NumberForm;
use super::rows::TextChunk;
use crate::error::{EngineError, Result};
use crate::functions::written_bytes;

/// How the values of one column are read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ColumnReading<'r> {
    pub data_type: &'r DataType,
    /// The format of its dates or timestamps.
    pub format: &'r TemporalFormat,
    /// How its numbers are written.
    pub numbers: NumberForm,
    /// What stands for null besides nothing.
    pub markers: &'r [String],
}

/// The values of a column, and the rows whose values are not of its type.
pub(crate) struct ConvertedColumn {
    pub array: ArrayRef,
    /// Rows of the chunk, ascending.
    pub unfit: Vec<usize>,
}

/// Converts a column of a chunk. A value that is not of the type becomes null, and its row is `unfit`.
pub(crate) fn convert<'c>(chunk: &'c TextChunk, column: usize, reading: &ColumnReading<'_>) -> Result<ConvertedColumn> {
    let rows = chunk.rows();
    let is_null = |value: &str| value.is_empty() || reading.markers.iter().any(|marker| marker == value);
    let is_text = matches!(reading.data_type, DataType::Utf8 | DataType::Binary);
    let present = |row: usize| {
        let value = chunk.value(row, column);
        (!is_null(value) || is_text && chunk.is_quoted(row, column)).then_some(value)
    };
    let values = (0..rows).map(present);
    if *reading.data_type == DataType::Utf8 {
        let array: StringArray = values.collect();
        return Ok(ConvertedColumn { array: Arc::new(array), unfit: Vec::new() });
    }
    if *reading.data_type == DataType::Binary {
        let bytes: Vec<Option<Vec<u8>>> =
            values.map(|value| value.and_then(|value| written_bytes(value).ok())).collect();
        let unfit = (0..rows).filter(|row| present(*row).is_some() && bytes.get(*row).is_none_or(Option::is_none));
        let unfit = unfit.collect();
        let array: BinaryArray = bytes.iter().map(Option::as_deref).collect();
        return Ok(ConvertedColumn { array: Arc::new(array), unfit });
    }
    let mut unfit = Vec::new();
    let mut row = 0;
    // Spaces around a value are no part of it, unless it is text.
    macro_rules! typed {
        ($array:ty, $read:expr) => {{
            let read = $read;
            let array: $array = values
                .map(|value| {
                    let found = value.and_then(|value| read(value.trim_matches(' ')));
                    if found.is_none() && value.is_some() {
                        unfit.push(row);
                    }
                    row += 1;
                    found
                })
                .collect();
            array
        }};
    }
    let array: ArrayRef = match reading.data_type {
        DataType::Int64 => {
            Arc::new(typed!(Int64Array, |value: &str| reading.numbers.plain(value)?.parse::<i64>().ok()))
        }
        DataType::Float64 => {
            Arc::new(typed!(Float64Array, |value: &str| reading.numbers.plain(value)?.parse::<f64>().ok()))
        }
        DataType::Boolean => Arc::new(typed!(BooleanArray, truth_value)),
        DataType::Date32 => Arc::new(typed!(Date32Array, |value: &str| {
            let date = reading.format.date(value)?;
            Some(date.num_days_from_ce() - DAYS_BEFORE_1970)
        })),
        DataType::Time64(TimeUnit::Microsecond) => {
            let micros = |value: &str| time(value).map(|nanos| nanos / 1_000);
            Arc::new(typed!(Time64MicrosecondArray, micros))
        }
        DataType::Time64(TimeUnit::Nanosecond) => Arc::new(typed!(Time64NanosecondArray, time)),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let read = |value: &str| Some(instant(value, reading.format, zone.is_some())?.timestamp_micros());
            Arc::new(typed!(TimestampMicrosecondArray, read).with_timezone_opt(zone.clone()))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            let read = |value: &str| instant(value, reading.format, zone.is_some())?.timestamp_nanos_opt();
            Arc::new(typed!(TimestampNanosecondArray, read).with_timezone_opt(zone.clone()))
        }
        other => {
            let written = |value: &'c str| {
                let value = value.trim_matches(' ');
                // A number in another form is none of the type.
                let number = || reading.numbers.plain(value).unwrap_or(Cow::Borrowed("?"));
                if other.is_numeric() { number() } else { Cow::Borrowed(value) }
            };
            let text: StringArray = values.map(|value| value.map(written)).collect();
            let options = CastOptions { safe: true, ..Default::default() };
            let array = cast_with_options(&text, other, &options).map_err(|_| EngineError::Unsupported {
                what: format!("a column of type {other} from CSV"),
                hint: "import it from Parquet or JSON".into(),
            })?;
            unfit = (0..rows).filter(|row| text.is_valid(*row) && array.is_null(*row)).collect();
            array
        }
    };
    Ok(ConvertedColumn { array, unfit })
}

/// The days of the common era before 1970-01-01.
const DAYS_BEFORE_1970: i32 = 719_163;

/// Reads a truth value in one of the words that a cast of SQL takes.
pub(crate) fn truth_value(value: &str) -> Option<bool> {
    let is = |words: [&str; 6]| words.iter().any(|word| value.eq_ignore_ascii_case(word));
    match () {
        () if is(["true", "t", "yes", "y", "on", "1"]) => Some(true),
        () if is(["false", "f", "no", "n", "off", "0"]) => Some(false),
        () => None,
    }
}

fn time(value: &str) -> Option<i64> {
    let (time, _, rest) = clock(value)?;
    rest.is_empty().then(|| nanos_of_day(time))
}

fn nanos_of_day(time: NaiveTime) -> i64 {
    i64::from(time.num_seconds_from_midnight()) * 1_000_000_000 + i64::from(time.nanosecond())
}

/// Returns a timestamp in UTC. One without an offset is in UTC; one with an offset is no timestamp without a time zone.
fn instant(value: &str, format: &TemporalFormat, zoned: bool) -> Option<DateTime<chrono::Utc>> {
    let (local, offset) = format.timestamp(value)?;
    match (offset, zoned) {
        (Some(_), false) => None,
        (offset, _) => Some(local.and_utc() - chrono::TimeDelta::seconds(i64::from(offset.unwrap_or(0)))),
    }
}
