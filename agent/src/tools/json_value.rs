//! Encodes one Arrow value as JSON, for tool results: integers beyond 2^53 and decimals are strings, timestamps RFC
//! 3339 (those without a time zone are taken as UTC), binary base64, `NaN` and the infinities strings. Cuts of long
//! values are marked in place.

use std::fmt::Display;

use arrow::array::{Array, ArrayRef, AsArray, timezone::Tz};
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::DateTime;
use querent_engine::rfc3339;
use serde_json::{Map, Number, Value};

/// The largest integer that every JSON reader keeps exactly.
const MAX_SAFE_INTEGER: u64 = 1 << 53;
/// Longer text and binary values are cut, and marked.
const MAX_VALUE_CHARS: usize = 4_096;
/// Elements of a list or map that are shown.
const MAX_ELEMENTS: usize = 256;

/// Bytes that the values of one row may still take, approximately.
#[derive(Debug)]
pub(super) struct ByteRoom(usize);

impl ByteRoom {
    pub(super) fn new(bytes: usize) -> Self {
        Self(bytes)
    }

    fn take(&mut self, bytes: usize) {
        self.0 = self.0.saturating_sub(bytes);
    }
}

/// Returns the value at `row`, cut to the room that is left.
pub(super) fn json_value(array: &dyn Array, row: usize, room: &mut ByteRoom) -> Value {
    const LEAST_BYTES: usize = 6;
    room.take(LEAST_BYTES);
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
        DataType::Int8 => integer(array.as_primitive::<Int8Type>().value(row)),
        DataType::Int16 => integer(array.as_primitive::<Int16Type>().value(row)),
        DataType::Int32 => integer(array.as_primitive::<Int32Type>().value(row)),
        DataType::Int64 => integer(array.as_primitive::<Int64Type>().value(row)),
        DataType::UInt8 => integer(array.as_primitive::<UInt8Type>().value(row)),
        DataType::UInt16 => integer(array.as_primitive::<UInt16Type>().value(row)),
        DataType::UInt32 => integer(array.as_primitive::<UInt32Type>().value(row)),
        DataType::UInt64 => unsigned(array.as_primitive::<UInt64Type>().value(row)),
        DataType::Float16 => float(array.as_primitive::<Float16Type>().value(row).to_f64()),
        // Converted through its text, so that 0.1 stays 0.1.
        DataType::Float32 => {
            let value = array.as_primitive::<Float32Type>().value(row);
            float(value.to_string().parse().unwrap_or(f64::from(value)))
        }
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => text(array.as_string::<i32>().value(row), room),
        DataType::LargeUtf8 => text(array.as_string::<i64>().value(row), room),
        DataType::Utf8View => text(array.as_string_view().value(row), room),
        DataType::Binary => binary(array.as_binary::<i32>().value(row), room),
        DataType::LargeBinary => binary(array.as_binary::<i64>().value(row), room),
        DataType::BinaryView => binary(array.as_binary_view().value(row), room),
        DataType::FixedSizeBinary(_) => binary(array.as_fixed_size_binary().value(row), room),
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>();
            date(days.value_as_date(row), days.value(row))
        }
        DataType::Date64 => {
            let milliseconds = array.as_primitive::<Date64Type>();
            date(milliseconds.value_as_date(row), milliseconds.value(row))
        }
        DataType::Timestamp(unit, zone) => timestamp(*unit, zone.as_deref(), array, row),
        DataType::List(_) => list(array.as_list::<i32>().value(row), room),
        DataType::LargeList(_) => list(array.as_list::<i64>().value(row), room),
        DataType::FixedSizeList(_, _) => list(array.as_fixed_size_list().value(row), room),
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let values = fields.iter().zip(columns).map(|(field, column)| {
                room.take(field.name().len());
                (field.name().clone(), json_value(column, row, room))
            });
            values.collect()
        }
        DataType::Map(_, _) => {
            let entries = array.as_map().value(row);
            let (keys, values) = (entries.column(0), entries.column(1));
            let mut object = Map::new();
            for entry in 0..entries.len() {
                if entry == MAX_ELEMENTS || room.0 == 0 {
                    object.insert("…".to_owned(), Value::String(format!("(+{} entries)", entries.len() - entry)));
                    break;
                }
                object.insert(plain_text(&json_value(keys, entry, room)), json_value(values, entry, room));
            }
            Value::Object(object)
        }
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            match dictionary.normalized_keys().get(row) {
                Some(key) => json_value(dictionary.values(), *key, room),
                None => Value::Null,
            }
        }
        DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Duration(_)
        | DataType::Interval(_)
        | DataType::Decimal32(_, _)
        | DataType::Decimal64(_, _)
        | DataType::Decimal128(_, _)
        | DataType::Decimal256(_, _)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::RunEndEncoded(_, _)
        | DataType::Union(_, _) => Value::String(display(array, row)),
    }
}

/// Returns a JSON value as one field of a text table.
pub(super) fn plain_text(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the beginning of `text` in at most `max_chars` characters, with a mark that counts the rest.
pub(super) fn shortened(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…(+{} chars)", &text[..end], text[end..].chars().count()),
    }
}

fn integer(value: impl Into<i64>) -> Value {
    let value = value.into();
    if value.unsigned_abs() > MAX_SAFE_INTEGER { Value::String(value.to_string()) } else { Value::from(value) }
}

fn unsigned(value: u64) -> Value {
    if value > MAX_SAFE_INTEGER { Value::String(value.to_string()) } else { Value::from(value) }
}

fn float(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value.is_nan() => Value::String("NaN".to_owned()),
        None if value > 0.0 => Value::String("Infinity".to_owned()),
        None => Value::String("-Infinity".to_owned()),
    }
}

fn text(value: &str, room: &mut ByteRoom) -> Value {
    let shown = shortened(value, MAX_VALUE_CHARS.min(room.0));
    room.take(shown.len());
    Value::String(shown)
}

fn binary(value: &[u8], room: &mut ByteRoom) -> Value {
    // Base64 takes four characters for three bytes.
    let shown = &value[..value.len().min(MAX_VALUE_CHARS.min(room.0) / 4 * 3)];
    room.take(shown.len() / 3 * 4);
    let encoded = STANDARD.encode(shown);
    let left_out = value.len() - shown.len();
    Value::String(if left_out == 0 { encoded } else { format!("{encoded}…(+{left_out} bytes)") })
}

/// Encodes a date; one beyond the calendar as its number in the column's unit.
fn date(date: Option<chrono::NaiveDate>, number: impl Display) -> Value {
    Value::String(date.map_or_else(|| number.to_string(), |date| date.to_string()))
}

fn timestamp(unit: TimeUnit, zone: Option<&str>, array: &dyn Array, row: usize) -> Value {
    let instant = match unit {
        TimeUnit::Second => DateTime::from_timestamp(array.as_primitive::<TimestampSecondType>().value(row), 0),
        TimeUnit::Millisecond => {
            DateTime::from_timestamp_millis(array.as_primitive::<TimestampMillisecondType>().value(row))
        }
        TimeUnit::Microsecond => {
            DateTime::from_timestamp_micros(array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        TimeUnit::Nanosecond => {
            Some(DateTime::from_timestamp_nanos(array.as_primitive::<TimestampNanosecondType>().value(row)))
        }
    };
    let Some(instant) = instant else { return Value::String(display(array, row)) };
    Value::String(rfc3339(instant, zone.and_then(|zone| zone.parse::<Tz>().ok())))
}

fn list(elements: ArrayRef, room: &mut ByteRoom) -> Value {
    let mut values = Vec::new();
    for element in 0..elements.len() {
        if element == MAX_ELEMENTS || room.0 == 0 {
            values.push(Value::String(format!("…(+{} elements)", elements.len() - element)));
            break;
        }
        values.push(json_value(&elements, element, room));
    }
    Value::Array(values)
}

/// Returns Arrow's own text, for types without a JSON form and for instants beyond the calendar.
fn display(array: &dyn Array, row: usize) -> String {
    let options = FormatOptions::default();
    match ArrayFormatter::try_new(array, &options) {
        Ok(formatter) => formatter.value(row).try_to_string().unwrap_or_else(|error| format!("({error})")),
        Err(error) => format!("({error})"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        BinaryArray, Decimal128Array, DictionaryArray, Float64Array, Int64Array, ListArray, StringArray,
        TimestampMicrosecondArray, TimestampSecondArray, UInt64Array,
    };
    use arrow::datatypes::Int32Type;
    use serde_json::json;

    use super::*;

    #[test]
    fn values_have_their_json_form() {
        let safe = 1_i64 << 53;
        let cases: Vec<(ArrayRef, Value)> = vec![
            (Arc::new(Int64Array::from(vec![safe, safe + 1])), json!([safe, (safe + 1).to_string()])),
            (Arc::new(UInt64Array::from(vec![u64::MAX])), json!(["18446744073709551615"])),
            (
                Arc::new(Float64Array::from(vec![1.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY])),
                json!([1.5, "NaN", "Infinity", "-Infinity"]),
            ),
            (Arc::new(Decimal128Array::from(vec![12345]).with_precision_and_scale(10, 2).unwrap()), json!(["123.45"])),
            (Arc::new(BinaryArray::from(vec![b"\x00\xff".as_slice()])), json!(["AP8="])),
            (Arc::new(StringArray::from(vec![Some("a"), None])), json!(["a", null])),
            (Arc::new(TimestampSecondArray::from(vec![1_357_034_400])), json!(["2013-01-01T10:00:00Z"])),
            (
                Arc::new(TimestampMicrosecondArray::from(vec![1_357_034_400_000_500]).with_timezone("+05:30")),
                json!(["2013-01-01T15:30:00.000500+05:30"]),
            ),
            (
                Arc::new(vec![Some("x"), None, Some("y")].into_iter().collect::<DictionaryArray<Int32Type>>()),
                json!(["x", null, "y"]),
            ),
            (
                Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), None])])),
                json!([[1, null]]),
            ),
        ];
        for (array, expected) in cases {
            let values: Vec<Value> =
                (0..array.len()).map(|row| json_value(&array, row, &mut ByteRoom::new(1_000))).collect();
            assert_eq!(Value::Array(values), expected, "{}", array.data_type());
        }
    }

    #[test]
    fn long_values_are_cut_and_marked() {
        let array = StringArray::from(vec!["ü".repeat(MAX_VALUE_CHARS + 10)]);
        let value = json_value(&array, 0, &mut ByteRoom::new(100_000));
        assert!(value.as_str().unwrap().ends_with("ü…(+10 chars)"));
    }

    #[test]
    fn nested_values_share_their_room() {
        let inner = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(7); 200]); 200]);
        let offsets = arrow::buffer::OffsetBuffer::from_lengths([200]);
        let field = Arc::new(arrow::datatypes::Field::new("item", inner.data_type().clone(), true));
        let nested = ListArray::new(field, offsets, Arc::new(inner), None);
        let value = json_value(&nested, 0, &mut ByteRoom::new(10_000)).to_string();
        assert!(value.len() < 20_000 && value.contains("…(+"), "{}", value.len());
    }

    #[test]
    fn times_beyond_the_calendar_are_numbers() {
        let late = TimestampSecondArray::from(vec![8_210_266_876_799]).with_timezone("+14:00");
        assert_eq!(json_value(&late, 0, &mut ByteRoom::new(100)), json!("+262142-12-31T23:59:59Z"));
        let days = arrow::array::Date32Array::from(vec![i32::MAX]);
        assert_eq!(json_value(&days, 0, &mut ByteRoom::new(100)), json!("2147483647"));
    }
}
