//! Nested Arrow values as JSON text, which lists, structs and maps of a stored table become in KQL, and stored JSON.
//! What they hold is written as KQL writes it in a dynamic value: times as texts, bytes in base64, and a number that
//! JSON does not have as a text.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, GenericListArray, Int64Array, MapArray, OffsetSizeTrait, StringArray, StructArray,
};
use arrow::compute::cast;
use arrow::datatypes::{ArrowNativeType, DataType, Field, FieldRef, Float16Type, Float32Type, Float64Type};
use arrow::json::writer::{LineDelimited, WriterBuilder};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use datafusion::error::{DataFusionError, Result};
use serde_json::Value;
use uuid::Uuid;

use super::ticks::ticks_of;
use crate::types::{GUID_BYTES, KqlType};
use crate::values::{format_datetime, format_timespan, normalize_json, real_cell};

/// Returns the JSON text of each value.
pub(super) fn json_texts(values: &ArrayRef) -> Result<StringArray> {
    if is_written_alike(values) {
        return written(values);
    }
    match values.data_type() {
        DataType::List(_) => list_texts(values.as_list::<i32>()),
        DataType::LargeList(_) => list_texts(values.as_list::<i64>()),
        DataType::FixedSizeList(..) => {
            let lists = values.as_fixed_size_list();
            let length = usize::try_from(lists.value_length()).unwrap_or(0);
            array_texts(lists, lists.values(), |row| row * length..(row + 1) * length)
        }
        DataType::Struct(_) => struct_texts(values.as_struct()),
        DataType::Map(..) => map_texts(values.as_map()),
        DataType::Dictionary(_, plain) => json_texts(&cast(values, plain)?),
        other => match KqlType::from_stored(other) {
            KqlType::DateTime => Ok(quoted(&ticks_of(values)?, format_datetime)),
            KqlType::TimeSpan => Ok(quoted(&ticks_of(values)?, format_timespan)),
            KqlType::Real => real_texts(values),
            _ => byte_texts(values),
        },
    }
}

/// Whether Arrow's writer of JSON writes these values as KQL does.
fn is_written_alike(values: &ArrayRef) -> bool {
    match values.data_type() {
        DataType::Float16 => values.as_primitive::<Float16Type>().values().iter().all(|real| real.is_finite()),
        DataType::Float32 => values.as_primitive::<Float32Type>().values().iter().all(|real| real.is_finite()),
        DataType::Float64 => values.as_primitive::<Float64Type>().values().iter().all(|real| real.is_finite()),
        DataType::List(_) => is_written_alike(values.as_list::<i32>().values()),
        DataType::LargeList(_) => is_written_alike(values.as_list::<i64>().values()),
        DataType::FixedSizeList(..) => is_written_alike(values.as_fixed_size_list().values()),
        DataType::Struct(_) => values.as_struct().columns().iter().all(is_written_alike),
        DataType::Map(..) => {
            let maps = values.as_map();
            maps.keys().data_type().is_string() && is_written_alike(maps.values())
        }
        DataType::Dictionary(..) => is_written_alike(values.as_any_dictionary().values()),
        DataType::Date32
        | DataType::Date64
        | DataType::Timestamp(..)
        | DataType::Duration(_)
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Interval(_)
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => false,
        _ => true,
    }
}

/// Returns what Arrow writes. Each value is written as the property of an object, from which its text is cut out.
fn written(values: &ArrayRef) -> Result<StringArray> {
    const BEFORE: &str = "{\"v\":";
    let field = Arc::new(Field::new("v", values.data_type().clone(), true));
    let rows = StructArray::new(vec![field].into(), vec![Arc::clone(values)], None);
    let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(Vec::new());
    writer.write(&rows.into())?;
    writer.finish()?;
    let lines = String::from_utf8(writer.into_inner()).map_err(|error| DataFusionError::External(error.into()))?;
    let line_value =
        |line: &str| line.strip_prefix(BEFORE).and_then(|rest| rest.strip_suffix('}')).unwrap_or("null").to_owned();
    let lines = lines.lines().zip(0..values.len());
    Ok(lines.map(|(line, row)| values.is_valid(row).then(|| line_value(line))).collect())
}

fn list_texts<O: OffsetSizeTrait>(lists: &GenericListArray<O>) -> Result<StringArray> {
    let offsets = lists.value_offsets();
    array_texts(lists, lists.values(), |row| offsets[row].as_usize()..offsets[row + 1].as_usize())
}

fn array_texts(lists: &dyn Array, elements: &ArrayRef, range: impl Fn(usize) -> Range<usize>) -> Result<StringArray> {
    let elements = json_texts(elements)?;
    let text = |row: usize| {
        let parts: Vec<&str> = range(row).map(|index| text_at(&elements, index)).collect();
        format!("[{}]", parts.join(","))
    };
    Ok((0..lists.len()).map(|row| lists.is_valid(row).then(|| text(row))).collect())
}

fn struct_texts(rows: &StructArray) -> Result<StringArray> {
    let member = |(field, column): (&FieldRef, &ArrayRef)| {
        let name = Value::from(field.name().as_str()).to_string();
        json_texts(column).map(|texts| (name, texts))
    };
    let members: Vec<(String, StringArray)> =
        rows.fields().iter().zip(rows.columns()).map(member).collect::<Result<_>>()?;
    let text = |row: usize| {
        let part = |(name, texts): &(String, StringArray)| format!("{name}:{}", text_at(texts, row));
        let parts: Vec<String> = members.iter().map(part).collect();
        format!("{{{}}}", parts.join(","))
    };
    Ok((0..rows.len()).map(|row| rows.is_valid(row).then(|| text(row))).collect())
}

fn map_texts(maps: &MapArray) -> Result<StringArray> {
    let (keys, values) = (json_texts(maps.keys())?, json_texts(maps.values())?);
    let offsets = maps.value_offsets();
    let entry = |index: usize| match (text_at(&keys, index), text_at(&values, index)) {
        (key, value) if key.starts_with('"') => format!("{key}:{value}"),
        (key, value) => format!("\"{key}\":{value}"),
    };
    let text = |row: usize| {
        let entries = offsets[row].as_usize()..offsets[row + 1].as_usize();
        let parts: Vec<String> = entries.map(entry).collect();
        format!("{{{}}}", parts.join(","))
    };
    Ok((0..maps.len()).map(|row| maps.is_valid(row).then(|| text(row))).collect())
}

fn text_at(texts: &StringArray, row: usize) -> &str {
    if texts.is_valid(row) { texts.value(row) } else { "null" }
}

fn quoted(ticks: &Int64Array, text_of: fn(i64) -> String) -> StringArray {
    ticks.iter().map(|ticks| ticks.map(|ticks| format!("\"{}\"", text_of(ticks)))).collect()
}

fn real_texts(values: &ArrayRef) -> Result<StringArray> {
    let finite = written(values)?;
    let reals = cast(values, &DataType::Float64)?;
    let reals = reals.as_primitive::<Float64Type>();
    let text = |row: usize| match real_cell(reals.value(row)) {
        Value::String(word) => format!("\"{word}\""),
        _ => finite.value(row).to_owned(),
    };
    Ok((0..values.len()).map(|row| values.is_valid(row).then(|| text(row))).collect())
}

fn byte_texts(values: &ArrayRef) -> Result<StringArray> {
    let is_guid = *values.data_type() == DataType::FixedSizeBinary(GUID_BYTES);
    let text = |bytes: &[u8]| match Uuid::from_slice(bytes) {
        Ok(guid) if is_guid => format!("\"{}\"", guid.hyphenated()),
        _ => format!("\"{}\"", BASE64.encode(bytes)),
    };
    let bytes = cast(values, &DataType::Binary)?;
    Ok(bytes.as_binary::<i32>().iter().map(|value| value.map(text)).collect())
}

/// Returns the dynamic value that each text holds, as `parse_json` reads it.
pub(super) fn normalized(texts: &ArrayRef) -> Result<StringArray> {
    let texts = cast(texts, &DataType::Utf8View)?;
    Ok(texts.as_string_view().iter().map(|text| text.and_then(normalize_json)).collect())
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        BinaryArray, Date32Array, FixedSizeBinaryArray, Float64Array, Int64Builder, ListArray, MapBuilder,
        StringBuilder, Time64MicrosecondArray, TimestampMicrosecondArray,
    };
    use arrow::datatypes::{Date32Type, Int64Type};

    use super::*;

    fn texts(values: impl Array + 'static) -> Vec<Option<String>> {
        let values: ArrayRef = Arc::new(values);
        json_texts(&values).unwrap().iter().map(|text| text.map(str::to_owned)).collect()
    }

    #[test]
    fn what_is_nested_is_written_as_kql_writes_it() {
        let days = [Some(vec![Some(19_724), None]), None, Some(vec![])];
        let dates = ListArray::from_iter_primitive::<Date32Type, _, _>(days);
        let expected = [Some(r#"["2024-01-02T00:00:00.0000000Z",null]"#.to_owned()), None, Some("[]".to_owned())];
        assert_eq!(texts(dates.clone()), expected);
        assert_eq!(texts(dates.slice(1, 2)), expected[1..]);
        let numbers = ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1), None])]);
        assert_eq!(texts(numbers), [Some("[1,null]".to_owned())]);

        let columns: [(&str, ArrayRef); 6] = [
            ("t \"x\"", Arc::new(Time64MicrosecondArray::from(vec![3_723_000_000]))),
            ("at", Arc::new(TimestampMicrosecondArray::from(vec![500_000]))),
            ("r", Arc::new(Float64Array::from(vec![f64::NEG_INFINITY]))),
            ("b", Arc::new(BinaryArray::from(vec![&b"\xaa\xbb"[..]]))),
            ("g", Arc::new(FixedSizeBinaryArray::try_from_iter([[0x11_u8; 16]].iter()).unwrap())),
            ("d", Arc::new(Date32Array::from(vec![None::<i32>]))),
        ];
        let fields = columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
        let fields: Vec<Field> = fields.collect();
        let arrays = columns.iter().map(|(_, column)| Arc::clone(column)).collect();
        let rows = StructArray::new(fields.into(), arrays, None);
        let expected = concat!(
            r#"{"t \"x\"":"01:02:03","at":"1970-01-01T00:00:00.5000000Z","r":"-Infinity","b":"qrs=","#,
            r#""g":"11111111-1111-1111-1111-111111111111","d":null}"#,
        );
        assert_eq!(texts(rows), [Some(expected.to_owned())]);
    }

    #[test]
    fn keys_of_maps_are_texts() {
        let mut maps = MapBuilder::new(None, Int64Builder::new(), StringBuilder::new());
        maps.keys().append_value(5);
        maps.values().append_value("x");
        maps.append(true).unwrap();
        maps.append(false).unwrap();
        assert_eq!(texts(maps.finish()), [Some(r#"{"5":"x"}"#.to_owned()), None]);
    }

    #[test]
    fn a_text_that_holds_no_json_is_a_string() {
        let texts = [Some(r#" {"a": [1, 2.0]} "#), Some("[1]"), Some("not json"), Some("null"), Some(""), None];
        let stored: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        let expected = [Some(r#"{"a":[1,2.0]}"#), Some("[1]"), Some("\"not json\""), None, None, None];
        assert_eq!(normalized(&stored).unwrap().iter().collect::<Vec<_>>(), expected);
    }
}
