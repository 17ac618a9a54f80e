//! Values of JSON that are decoded as texts. Arrow's decoder takes `2.9` for an integer and cuts its fraction off; here it is one
//! only where it has none. It takes hexadecimal digits for bytes; here they are as SQL writes them, `\xAA`, and text its own.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BinaryArray, RecordBatch};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use serde_json::{Number, Value};

use crate::functions::written_bytes;

/// Beyond it doubles are not next to each other.
const LARGEST_WHOLE: f64 = 9_007_199_254_740_992.0;

/// Returns the columns as they are decoded: integers and bytes as texts.
pub(super) fn as_texts(schema: &SchemaRef) -> SchemaRef {
    if !schema.fields().iter().any(|field| is_decoded_as_text(field.data_type())) {
        return Arc::clone(schema);
    }
    let decoded = |field: &Arc<Field>| match is_decoded_as_text(field.data_type()) {
        true => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8)),
        false => Arc::clone(field),
    };
    Arc::new(Schema::new(schema.fields().iter().map(decoded).collect::<Vec<_>>()))
}

/// Returns the columns of a batch that was decoded by [`as_texts`] in their own types. Errors: a text that is no
/// integer, or no bytes.
pub(super) fn from_texts(batch: &RecordBatch, schema: &SchemaRef) -> Result<Vec<ArrayRef>, ArrowError> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let typed = |(column, field): (&ArrayRef, &Arc<Field>)| match field.data_type() {
        DataType::Binary => bytes_of_texts(column),
        data_type if data_type.is_integer() => cast_with_options(column, data_type, &strict),
        _ => Ok(Arc::clone(column)),
    };
    batch.columns().iter().zip(schema.fields()).map(typed).collect()
}

fn is_decoded_as_text(data_type: &DataType) -> bool {
    data_type.is_integer() || *data_type == DataType::Binary
}

fn bytes_of_texts(texts: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let bytes_of = |text: &str| written_bytes(text).map_err(|error| ArrowError::JsonError(error.to_string()));
    let bytes = texts.as_string::<i32>().iter().map(|text| text.map(bytes_of).transpose());
    let bytes = bytes.collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(bytes.iter().map(Option::as_deref).collect::<BinaryArray>()))
}

/// Whether a column has integers in lists or objects.
pub(super) fn nests_integers(schema: &Schema) -> bool {
    fn holds(data_type: &DataType) -> bool {
        match data_type {
            DataType::List(item) => holds(item.data_type()),
            DataType::Struct(fields) => fields.iter().any(|field| holds(field.data_type())),
            DataType::Map(entries, _) => holds(entries.data_type()),
            other => other.is_integer(),
        }
    }
    schema.fields().iter().any(|field| field.data_type().is_nested() && holds(field.data_type()))
}

/// Whether a number of a JSON text has a fraction or an exponent.
pub(super) fn has_fraction(text: &str) -> bool {
    let (mut in_string, mut before, mut bytes) = (false, 0_u8, text.bytes());
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if in_string => {
                bytes.next();
            }
            b'"' => in_string = !in_string,
            b'.' | b'e' | b'E' if !in_string && before.is_ascii_digit() => return true,
            _ => {}
        }
        before = byte;
    }
    false
}

/// Returns a double as the integer that it is; otherwise as a text, which no integer is decoded from.
pub(super) fn whole_number(number: &Number) -> Value {
    match number.as_f64() {
        Some(double) if double.fract() == 0.0 && double.abs() <= LARGEST_WHOLE => Value::from(double as i64),
        _ => Value::String(number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_seen() {
        for (text, expected) in [
            (r#"{"a": 2}"#, false),
            (r#"{"a": 2.5}"#, true),
            (r#"{"a": 1e3}"#, true),
            (r#"{"a": "2.5", "b1e": [1, -2]}"#, false),
            (r#"{"a\\\"1.5": true}"#, false),
        ] {
            assert_eq!(has_fraction(text), expected, "{text}");
        }
    }

    #[test]
    fn whole_doubles_are_integers() {
        let of = |number: f64| whole_number(&Number::from_f64(number).unwrap());
        assert_eq!(of(2.0), Value::from(2));
        assert_eq!(of(2.9), Value::from("2.9"));
        assert_eq!(of(1e300), Value::from("1e+300"));
    }
}
