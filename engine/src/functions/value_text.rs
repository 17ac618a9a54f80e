//! Values as text in the form that SQL gives them: `2024-01-01 10:00:00`, `1 day 02:00:00`, `[a, 'b, c']`, `{'k': 1}`. It is
//! what a cast to text is; Arrow's own has a `T` in times, and none for structures and maps.

use std::fmt::{Display, Write as _};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit, TimestampMicrosecondType,
    TimestampNanosecondType,
};
use chrono::{DateTime, NaiveDateTime};
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;

use super::dates::out_of_range;
use super::definition::{Definition, invalid};
use super::elapsed::intervals;

/// The name of the function.
pub(crate) const VALUE_TEXT: &str = "value_text";

/// Returns the function: `value_text(value)`.
pub(super) fn function() -> Arc<ScalarUDF> {
    Definition {
        name: VALUE_TEXT,
        aliases: &[],
        arguments: 1..=1,
        takes: |types| Ok(types.to_vec()),
        returns: |_| Ok(DataType::Utf8),
        compute: |arrays, _| {
            let Some(array) = arrays.first() else { return Err(invalid("value_text takes one value".into())) };
            Ok(Arc::new(texts(array, false)?))
        },
    }
    .into_udf()
}

/// Returns whether Arrow's cast to text has another form than SQL.
pub(crate) fn has_form_of_its_own(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Float32
            | DataType::Float64
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Timestamp(_, _)
            | DataType::Interval(_)
            | DataType::Duration(_)
            | DataType::Struct(_)
            | DataType::Map(_, _)
            | DataType::List(_)
            | DataType::LargeList(_)
            | DataType::FixedSizeList(_, _)
    )
}

/// Returns the values of an array as text. `is_inner`: they are parts of a value, and quoted where they would be misread.
pub(crate) fn texts(array: &ArrayRef, is_inner: bool) -> Result<StringArray> {
    // A dictionary has nulls among its values, too.
    let nulls = array.logical_nulls();
    let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    let each = |of: &dyn Fn(usize) -> Result<String>| -> Result<StringArray> {
        let texts = (0..array.len()).map(|row| if is_null(row) { Ok(None) } else { of(row).map(Some) });
        Ok(StringArray::from(texts.collect::<Result<Vec<_>>>()?))
    };
    match array.data_type() {
        DataType::Timestamp(unit, zone) => {
            let suffix = if zone.is_some() { "+00" } else { "" };
            let shown = |moment: NaiveDateTime| {
                let text = format!("{}{suffix}", moment.format("%Y-%m-%d %H:%M:%S%.f"));
                let fraction_end = text.len() - suffix.len();
                let plain = without_zeros(&text[..fraction_end]);
                let text = format!("{plain}{suffix}");
                if is_inner { format!("'{text}'") } else { text }
            };
            if *unit == TimeUnit::Nanosecond {
                let plain = cast(array, &DataType::Timestamp(TimeUnit::Nanosecond, None))?;
                let values = plain.as_primitive::<TimestampNanosecondType>();
                return each(&|row| Ok(shown(DateTime::from_timestamp_nanos(values.value(row)).naive_utc())));
            }
            let strict = CastOptions { safe: false, ..CastOptions::default() };
            let plain = cast_with_options(array, &DataType::Timestamp(TimeUnit::Microsecond, None), &strict)
                .map_err(|_| out_of_range())?;
            let values = plain.as_primitive::<TimestampMicrosecondType>();
            each(&|row| {
                let moment = DateTime::from_timestamp_micros(values.value(row));
                Ok(shown(moment.ok_or_else(out_of_range)?.naive_utc()))
            })
        }
        DataType::Duration(_) => texts(&(Arc::new(intervals(array)?) as ArrayRef), is_inner),
        DataType::Interval(_) => {
            let plain = cast(array, &DataType::Interval(IntervalUnit::MonthDayNano))?;
            let values = plain.as_primitive::<IntervalMonthDayNanoType>();
            each(&|row| {
                let interval = values.value(row);
                Ok(interval_text(interval.months, interval.days, interval.nanoseconds))
            })
        }
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _) => {
            let item = match array.data_type() {
                DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => field,
                _ => return Err(invalid("a list is needed".into())),
            };
            let plain = cast(array, &DataType::List(Arc::clone(item)))?;
            let lists = plain.as_list::<i32>();
            let items = texts(lists.values(), true)?;
            each(&|row| {
                let offsets = lists.value_offsets();
                let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
                let shown: Vec<&str> = (start..end).map(|index| shown(&items, index)).collect();
                Ok(format!("[{}]", shown.join(", ")))
            })
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns().iter().map(|column| texts(column, true));
            let columns = columns.collect::<Result<Vec<_>>>()?;
            // The fields of `row(1, 2)` have no names of their own.
            let is_row = fields.iter().enumerate().all(|(index, field)| *field.name() == format!("c{index}"));
            each(&|row| {
                let parts = fields.iter().zip(&columns).map(|(field, column)| match is_row {
                    true => shown(column, row).to_owned(),
                    false => format!("'{}': {}", field.name().replace('\'', "\\'"), shown(column, row)),
                });
                let parts = parts.collect::<Vec<_>>().join(", ");
                Ok(if is_row && !fields.is_empty() { format!("({parts})") } else { format!("{{{parts}}}") })
            })
        }
        DataType::Map(_, _) => {
            let maps = array.as_map();
            let (keys, values) = (texts(maps.keys(), true)?, texts(maps.values(), true)?);
            each(&|row| {
                let offsets = maps.value_offsets();
                let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
                let pairs = (start..end).map(|index| format!("{}={}", shown(&keys, index), shown(&values, index)));
                Ok(format!("{{{}}}", pairs.collect::<Vec<_>>().join(", ")))
            })
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Dictionary(_, _) => {
            let plain = cast(array, &DataType::Utf8)?;
            let values = plain.as_string::<i32>();
            each(&|row| Ok(if is_inner { quoted(values.value(row)) } else { values.value(row).to_owned() }))
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            let plain = cast(array, &DataType::Binary)?;
            let values = plain.as_binary::<i32>();
            each(&|row| Ok(blob_text(values.value(row))))
        }
        // With the fewest digits that tell a number of its type from its neighbours.
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>();
            each(&|row| Ok(number_text(&format!("{:e}", values.value(row)), &values.value(row))))
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>();
            each(&|row| Ok(number_text(&format!("{:e}", values.value(row)), &values.value(row))))
        }
        DataType::Time32(_) | DataType::Time64(_) => {
            let plain = cast(array, &DataType::Utf8)?;
            let values = plain.as_string::<i32>();
            each(&|row| {
                let text = without_zeros(values.value(row)).to_owned();
                Ok(if is_inner { format!("'{text}'") } else { text })
            })
        }
        _ => {
            let plain = cast(array, &DataType::Utf8)?;
            Ok(plain.as_string::<i32>().clone())
        }
    }
}

/// Returns a number, given as Rust writes it with an exponent and without, as DuckDB does: `1000.0`, `1e+16`, `1e-05`.
fn number_text(scientific: &str, plain: &dyn Display) -> String {
    let exponent = scientific.split_once('e').and_then(|(digits, power)| Some((digits, power.parse::<i32>().ok()?)));
    match exponent {
        Some((digits, power)) if !(-4..16).contains(&power) => {
            let sign = if power < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", power.abs())
        }
        Some(_) => {
            let text = plain.to_string();
            if text.contains('.') { text } else { format!("{text}.0") }
        }
        // NaN and the infinities have no exponent.
        None => plain.to_string().to_lowercase(),
    }
}

fn shown(texts: &StringArray, row: usize) -> &str {
    if texts.is_null(row) { "NULL" } else { texts.value(row) }
}

/// Returns a fraction of a second without zeros at its end.
fn without_zeros(text: &str) -> &str {
    match text.rsplit_once('.') {
        Some((whole, digits)) if digits.bytes().all(|byte| byte == b'0') => whole,
        Some(_) => text.trim_end_matches('0'),
        None => text,
    }
}

/// Quotes a text inside of a list as DuckDB does: where it would be read as something else.
fn quoted(text: &str) -> String {
    let is_special = |char: char| matches!(char, '\'' | '(' | ')' | ',' | ':' | '=' | '[' | ']' | '{' | '}' | '"');
    let is_misread = text.is_empty()
        || text.starts_with(' ')
        || text.ends_with(' ')
        || text.eq_ignore_ascii_case("null")
        || text.contains(is_special);
    if is_misread { format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")) } else { text.to_owned() }
}

/// Returns bytes as text: those that are no printable characters as `\xAA`.
pub(super) fn blob_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b' '..=b'~' if !matches!(byte, b'\\' | b'\'' | b'"') => text.push(char::from(*byte)),
            other => {
                let _ = write!(text, "\\x{other:02X}");
            }
        }
    }
    text
}

/// Returns an interval as DuckDB and PostgreSQL write it.
fn interval_text(months: i32, days: i32, nanoseconds: i64) -> String {
    let mut parts = Vec::new();
    let mut part = |count: i32, unit: &str| {
        if count != 0 {
            parts.push(format!("{count} {unit}{}", if count.abs() == 1 { "" } else { "s" }));
        }
    };
    part(months / 12, "year");
    part(months % 12, "month");
    part(days, "day");
    if nanoseconds != 0 || parts.is_empty() {
        let sign = if nanoseconds < 0 { "-" } else { "" };
        let all = nanoseconds.unsigned_abs();
        let (seconds, fraction) = (all / 1_000_000_000, all % 1_000_000_000);
        let mut clock = format!("{sign}{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
        if fraction > 0 {
            clock = without_zeros(&format!("{clock}.{fraction:09}")).to_owned();
        }
        parts.push(clock);
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use arrow::array::{DictionaryArray, Int32Array};

    use super::*;

    #[test]
    fn numbers_have_duckdbs_form() {
        let numbers = [
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (-1.5e300, "-1.5e+300"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (5e-324, "5e-324"),
            (0.0, "0.0"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (number, text) in numbers {
            assert_eq!(number_text(&format!("{number:e}"), &number), text);
        }
        let narrow = 1.5e-7_f32;
        assert_eq!(number_text(&format!("{narrow:e}"), &narrow), "1.5e-07");
    }

    #[test]
    fn a_null_among_the_values_of_a_dictionary_is_one() {
        let values: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
        let words = DictionaryArray::new(Int32Array::from(vec![Some(1), Some(0), None]), values);
        let shown = texts(&(Arc::new(words) as ArrayRef), false).unwrap();
        assert_eq!(shown.iter().collect::<Vec<_>>(), [None, Some("a"), None]);
    }

    #[test]
    fn intervals_and_texts_have_duckdbs_form() {
        assert_eq!(interval_text(14, 3, 0), "1 year 2 months 3 days");
        assert_eq!(interval_text(3, -2, 14_706_789_000_000), "3 months -2 days 04:05:06.789");
        assert_eq!(interval_text(0, 0, -18_000_000_000_000), "-05:00:00");
        assert_eq!(interval_text(0, 0, 0), "00:00:00");
        assert_eq!([quoted("a b"), quoted("it's"), quoted(""), quoted("Null")], ["a b", "'it\\'s'", "''", "'Null'"]);
        assert_eq!(blob_text(b"a\\\xAA"), "a\\x5C\\xAA");
    }
}
