//! Rows of a query as JSON, for COPY, where Arrow's own would lose what values are. Doubles that JSON has no numbers for are
//! `NaN`, `Infinity` and `-Infinity`, bytes are texts that columns of bytes are read from: both as DuckDB writes them.

use std::sync::Arc;

use arrow::array::{Array, ArrowPrimitiveType, AsArray, PrimitiveArray, StringArray};
use arrow::datatypes::{DataType, FieldRef, Float16Type, Float32Type, Float64Type};
use arrow::error::ArrowError;
use arrow::json::WriterBuilder;
use arrow::json::writer::{Encoder, EncoderFactory, EncoderOptions, NullableEncoder};

use super::csv_rows::texts_of_bytes;

/// Returns the writer of a file's records, in which nulls are written.
pub(super) fn json_writer() -> WriterBuilder {
    WriterBuilder::new().with_explicit_nulls(true).with_encoder_factory(Arc::new(CopiedValues))
}

/// Makes encoders for the types of which Arrow's JSON loses values.
#[derive(Debug)]
struct CopiedValues;

impl EncoderFactory for CopiedValues {
    fn make_default_encoder<'a>(
        &self,
        _field: &'a FieldRef,
        array: &'a dyn Array,
        _options: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        let encoder: Box<dyn Encoder + 'a> = match array.data_type() {
            DataType::Float16 => {
                let write = |value: <Float16Type as ArrowPrimitiveType>::Native, out: &mut Vec<u8>| {
                    write_real(f32::from(value), out);
                };
                Box::new(CopiedNumbers(array.as_primitive::<Float16Type>(), write))
            }
            DataType::Float32 => Box::new(CopiedNumbers(array.as_primitive::<Float32Type>(), write_real)),
            DataType::Float64 => Box::new(CopiedNumbers(array.as_primitive::<Float64Type>(), write_double)),
            _ => match texts_of_bytes(array)? {
                Some(texts) => Box::new(CopiedBytes(texts)),
                None => return Ok(None),
            },
        };
        Ok(Some(NullableEncoder::new(encoder, array.nulls().cloned())))
    }
}

struct CopiedNumbers<'a, T: ArrowPrimitiveType, F>(&'a PrimitiveArray<T>, F);

impl<T: ArrowPrimitiveType, F: Fn(T::Native, &mut Vec<u8>)> Encoder for CopiedNumbers<'_, T, F> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        (self.1)(self.0.value(row), out);
    }
}

fn write_double(value: f64, out: &mut Vec<u8>) {
    match beyond_json(value) {
        Some(name) => out.extend_from_slice(name.as_bytes()),
        // Writing to a vector cannot fail.
        None => drop(serde_json::to_writer(out, &value)),
    }
}

/// Writes the fewest digits that are this number among reals.
fn write_real(value: f32, out: &mut Vec<u8>) {
    match beyond_json(f64::from(value)) {
        Some(name) => out.extend_from_slice(name.as_bytes()),
        None => drop(serde_json::to_writer(out, &value)),
    }
}

/// Returns how a number is written that JSON has none for.
fn beyond_json(value: f64) -> Option<&'static str> {
    match value {
        value if value.is_nan() => Some("NaN"),
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        _ => None,
    }
}

struct CopiedBytes(StringArray);

impl Encoder for CopiedBytes {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        // Writing to a vector cannot fail.
        let _ = serde_json::to_writer(out, self.0.value(row));
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, BinaryArray, Float32Array, Float64Array, RecordBatch};
    use arrow::json::LineDelimitedWriter;

    use super::*;

    #[test]
    fn values_are_written_as_duckdb_writes_them() {
        let bytes: [Option<&[u8]>; 4] = [Some(b"\x00\xFFA"), Some(b"a\"b"), None, Some(b"")];
        let columns: [(&str, ArrayRef); 3] = [
            ("d", Arc::new(Float64Array::from(vec![Some(f64::NAN), Some(f64::NEG_INFINITY), Some(0.1), None]))),
            ("r", Arc::new(Float32Array::from(vec![Some(0.1), Some(f32::INFINITY), None, Some(2.5)]))),
            ("b", Arc::new(bytes.into_iter().collect::<BinaryArray>())),
        ];
        let columns = columns.map(|(name, column)| (name, column, true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let mut writer: LineDelimitedWriter<Vec<u8>> = json_writer().build(Vec::new());
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        let lines = [
            r#"{"d":NaN,"r":0.1,"b":"\\x00\\xFF\\x41"}"#,
            r#"{"d":-Infinity,"r":Infinity,"b":"a\"b"}"#,
            r#"{"d":0.1,"r":null,"b":null}"#,
            r#"{"d":null,"r":2.5,"b":""}"#,
        ];
        assert_eq!(String::from_utf8(writer.into_inner()).unwrap(), lines.map(|line| format!("{line}\n")).concat());
    }
}
