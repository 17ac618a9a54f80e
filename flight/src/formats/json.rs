//! Values in JSON: how numbers, times and blobs are written so that no client reads a wrong value.
//!
//! Integers beyond 2^53 and decimals are strings, since most JSON readers only have doubles; so are the floats that JSON
//! cannot express. Binary is base64. Timestamps are RFC 3339; one without a time zone is UTC.

use std::collections::HashSet;
use std::io::Write as _;
use std::sync::Arc;

use arrow::array::{
    Array, ArrowPrimitiveType, AsArray, BinaryViewArray, FixedSizeBinaryArray, GenericBinaryArray, MapArray,
    OffsetSizeTrait, PrimitiveArray, RecordBatch, timezone::Tz,
};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowNativeType, ArrowTimestampType, DataType, Date32Type, Date64Type, FieldRef, Float16Type, Float32Type,
    Float64Type, Int64Type, SchemaRef, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt64Type,
};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow_json::writer::{Encoder, EncoderFactory, EncoderOptions, NullableEncoder, make_encoder};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use chrono::{TimeZone, Utc};
use querent_engine::rfc3339;

/// Doubles hold every integer up to this one.
const MAX_SAFE_INTEGER: u64 = 1 << 53;

/// Writes rows of one schema.
pub(crate) struct RowWriter {
    schema: SchemaRef,
    /// `"name":` for each column, repeated names with a suffix.
    keys: Vec<Vec<u8>>,
    options: EncoderOptions,
}

impl RowWriter {
    pub(super) fn new(schema: SchemaRef) -> Self {
        let keys = unique_names(&schema).into_iter();
        let keys = keys.map(|name| format!("{}:", serde_json::json!(name)).into_bytes());
        let options = EncoderOptions::default().with_explicit_nulls(true).with_encoder_factory(Arc::new(ValueEncoders));
        Self { keys: keys.collect(), options, schema }
    }

    /// Writes each row as an object, nulls included, and `end` after it.
    pub(super) fn objects(&self, batch: &RecordBatch, end: &[u8], out: &mut Vec<u8>) -> Result<(), ArrowError> {
        let mut encoders = self.encoders(batch)?;
        for row in 0..batch.num_rows() {
            out.push(b'{');
            for (column, (encoder, key)) in encoders.iter_mut().zip(&self.keys).enumerate() {
                if column > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(key);
                encode(encoder, row, out);
            }
            out.push(b'}');
            out.extend_from_slice(end);
        }
        Ok(())
    }

    /// Calls `cell` with the column and the JSON of each value, row by row; without JSON for null.
    pub(super) fn cells(
        &self,
        batch: &RecordBatch,
        mut cell: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), ArrowError> {
        let mut encoders = self.encoders(batch)?;
        let mut json = Vec::new();
        for row in 0..batch.num_rows() {
            for (column, encoder) in encoders.iter_mut().enumerate() {
                json.clear();
                if encoder.is_null(row) {
                    cell(column, None);
                    continue;
                }
                encoder.encode(row, &mut json);
                cell(column, Some(&json));
            }
        }
        Ok(())
    }

    /// Writes each row as an array, separated by commas; `first` says whether no row was written before.
    pub(super) fn arrays(&self, batch: &RecordBatch, mut first: bool, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        let mut encoders = self.encoders(batch)?;
        for row in 0..batch.num_rows() {
            if !first {
                out.push(b',');
            }
            first = false;
            out.push(b'[');
            for (column, encoder) in encoders.iter_mut().enumerate() {
                if column > 0 {
                    out.push(b',');
                }
                encode(encoder, row, out);
            }
            out.push(b']');
        }
        Ok(())
    }

    fn encoders<'a>(&'a self, batch: &'a RecordBatch) -> Result<Vec<NullableEncoder<'a>>, ArrowError> {
        let fields = self.schema.fields().iter();
        fields.zip(batch.columns()).map(|(field, column)| make_encoder(field, column, &self.options)).collect()
    }
}

/// Returns the column names with suffixes on repeated ones: `id`, `id_1`, `id_2`.
pub(super) fn unique_names(schema: &SchemaRef) -> Vec<String> {
    let written: HashSet<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let mut taken: HashSet<String> = HashSet::with_capacity(schema.fields().len());
    let unique = schema.fields().iter().map(|field| {
        let mut name = field.name().clone();
        let mut suffix = 1;
        // A name that is made takes none that another column has.
        while taken.contains(&name) || (suffix > 1 && written.contains(name.as_str())) {
            name = format!("{}_{suffix}", field.name());
            suffix += 1;
        }
        taken.insert(name.clone());
        name
    });
    unique.collect()
}

fn encode(encoder: &mut NullableEncoder<'_>, row: usize, out: &mut Vec<u8>) {
    if encoder.is_null(row) {
        out.extend_from_slice(b"null");
    } else {
        encoder.encode(row, out);
    }
}

/// Makes encoders for the types whose usual JSON would be misread.
#[derive(Debug)]
struct ValueEncoders;

impl EncoderFactory for ValueEncoders {
    fn make_default_encoder<'a>(
        &self,
        field: &'a FieldRef,
        array: &'a dyn Array,
        options: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        let encoder: Box<dyn Encoder + 'a> = match array.data_type() {
            DataType::Int64 => Box::new(Int64Encoder(array.as_primitive())),
            DataType::UInt64 => Box::new(UInt64Encoder(array.as_primitive())),
            DataType::Float16 => Box::new(FloatEncoder(array.as_primitive::<Float16Type>(), write_half)),
            DataType::Float32 => Box::new(FloatEncoder(array.as_primitive::<Float32Type>(), write_real)),
            DataType::Float64 => Box::new(FloatEncoder(array.as_primitive::<Float64Type>(), write_double)),
            DataType::Binary => Box::new(BinaryEncoder(array.as_binary::<i32>())),
            DataType::LargeBinary => Box::new(BinaryEncoder(array.as_binary::<i64>())),
            DataType::BinaryView => Box::new(BinaryEncoder(array.as_binary_view())),
            DataType::FixedSizeBinary(_) => Box::new(BinaryEncoder(array.as_fixed_size_binary())),
            DataType::Timestamp(unit, zone) => timestamp_encoder(array, *unit, zone.as_deref())?,
            DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
                Box::new(TextEncoder::new(array)?)
            }
            DataType::Date32 => CalendarEncoder::<Date32Type>::boxed(array)?,
            DataType::Date64 => CalendarEncoder::<Date64Type>::boxed(array)?,
            DataType::Time32(TimeUnit::Second) => CalendarEncoder::<Time32SecondType>::boxed(array)?,
            DataType::Time32(_) => CalendarEncoder::<Time32MillisecondType>::boxed(array)?,
            DataType::Time64(TimeUnit::Microsecond) => CalendarEncoder::<Time64MicrosecondType>::boxed(array)?,
            DataType::Time64(_) => CalendarEncoder::<Time64NanosecondType>::boxed(array)?,
            // JSON has no unions: these are written in their display form.
            DataType::Union(..) => Box::new(TextEncoder::new(array)?),
            DataType::Map(entries, _) if !has_text_keys(entries) => MapEncoder::boxed(field, array.as_map(), options)?,
            _ => return Ok(None),
        };
        Ok(Some(NullableEncoder::new(encoder, array.nulls().cloned())))
    }
}

fn has_text_keys(entries: &FieldRef) -> bool {
    match entries.data_type() {
        DataType::Struct(fields) => fields.first().is_some_and(|key| *key.data_type() == DataType::Utf8),
        _ => false,
    }
}

struct Int64Encoder<'a>(&'a PrimitiveArray<Int64Type>);

impl Encoder for Int64Encoder<'_> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let value = self.0.value(row);
        write_integer(value, value.unsigned_abs() <= MAX_SAFE_INTEGER, out);
    }
}

struct UInt64Encoder<'a>(&'a PrimitiveArray<UInt64Type>);

impl Encoder for UInt64Encoder<'_> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let value = self.0.value(row);
        write_integer(value, value <= MAX_SAFE_INTEGER, out);
    }
}

fn write_integer(value: impl std::fmt::Display, safe: bool, out: &mut Vec<u8>) {
    // Writing to a vector cannot fail.
    let _ = if safe { write!(out, "{value}") } else { write!(out, "\"{value}\"") };
}

struct FloatEncoder<'a, T: ArrowPrimitiveType, F>(&'a PrimitiveArray<T>, F);

impl<T: ArrowPrimitiveType, F: Fn(T::Native, &mut Vec<u8>)> Encoder for FloatEncoder<'_, T, F> {
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

/// Writes the fewest digits that are this number among reals, as tables and DuckDB show it: 0.1, where the double that
/// it is equal to is 0.10000000149011612.
fn write_real(value: f32, out: &mut Vec<u8>) {
    match beyond_json(f64::from(value)) {
        Some(name) => out.extend_from_slice(name.as_bytes()),
        None => drop(serde_json::to_writer(out, &value)),
    }
}

fn write_half(value: <Float16Type as ArrowPrimitiveType>::Native, out: &mut Vec<u8>) {
    write_real(f32::from(value), out);
}

/// Returns the JSON for a number that JSON cannot express.
fn beyond_json(value: f64) -> Option<&'static str> {
    match value {
        value if value.is_nan() => Some("\"NaN\""),
        f64::INFINITY => Some("\"Infinity\""),
        f64::NEG_INFINITY => Some("\"-Infinity\""),
        _ => None,
    }
}

/// The bytes of one value, whatever the array's layout.
trait BytesAt {
    fn bytes_at(&self, row: usize) -> &[u8];
}

impl<O: OffsetSizeTrait> BytesAt for GenericBinaryArray<O> {
    fn bytes_at(&self, row: usize) -> &[u8] {
        self.value(row)
    }
}

impl BytesAt for BinaryViewArray {
    fn bytes_at(&self, row: usize) -> &[u8] {
        self.value(row)
    }
}

impl BytesAt for FixedSizeBinaryArray {
    fn bytes_at(&self, row: usize) -> &[u8] {
        self.value(row)
    }
}

struct BinaryEncoder<'a, A>(&'a A);

impl<A: BytesAt> Encoder for BinaryEncoder<'_, A> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let _ = write!(out, "\"{}\"", BASE64.encode(self.0.bytes_at(row)));
    }
}

struct TextEncoder<'a>(ArrayFormatter<'a>);

impl<'a> TextEncoder<'a> {
    fn new(array: &'a dyn Array) -> Result<Self, ArrowError> {
        const OPTIONS: FormatOptions<'static> = FormatOptions::new();
        Ok(Self(ArrayFormatter::try_new(array, &OPTIONS)?))
    }
}

impl Encoder for TextEncoder<'_> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let _ = serde_json::to_writer(out, &self.0.value(row).to_string());
    }
}

/// Returns what is written of a date or a time that no calendar has: its number in the column's unit, of which `last`
/// is the last. DuckDB keeps the infinite ones as the ends of the range.
fn beyond_calendar(ticks: i64, last: i64) -> String {
    match ticks {
        ticks if ticks == last => "infinity".to_owned(),
        ticks if ticks == -last => "-infinity".to_owned(),
        ticks => ticks.to_string(),
    }
}

/// Returns what is written of a value of a date or a timestamp that no calendar has; `None` of other types.
pub fn time_beyond_calendar(column: &dyn Array, row: usize) -> Option<String> {
    let last = match column.data_type() {
        DataType::Date32 => i64::from(i32::MAX),
        DataType::Timestamp(_, _) => i64::MAX,
        _ => return None,
    };
    let ticks = cast(&column.slice(row, 1), &DataType::Int64).ok()?;
    Some(beyond_calendar(ticks.as_primitive::<Int64Type>().value(0), last))
}

/// Writes maps whose keys are no text: JSON's keys are, so each is its display form.
struct MapEncoder<'a> {
    map: &'a MapArray,
    keys: ArrayFormatter<'a>,
    values: NullableEncoder<'a>,
}

impl<'a> MapEncoder<'a> {
    fn boxed(
        field: &'a FieldRef,
        map: &'a MapArray,
        options: &'a EncoderOptions,
    ) -> Result<Box<dyn Encoder + 'a>, ArrowError> {
        let TextEncoder(keys) = TextEncoder::new(map.keys())?;
        let values = make_encoder(field, map.values(), options)?;
        Ok(Box::new(Self { map, keys, values }))
    }
}

impl Encoder for MapEncoder<'_> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let offsets = self.map.value_offsets();
        let bounds = offsets.get(row).zip(offsets.get(row + 1));
        let (start, end) = bounds.map_or((0, 0), |(start, end)| (start.as_usize(), end.as_usize()));
        out.push(b'{');
        for entry in start..end {
            if entry > start {
                out.push(b',');
            }
            // Writing to a vector cannot fail.
            let _ = serde_json::to_writer(&mut *out, &self.keys.value(entry).to_string());
            out.push(b':');
            encode(&mut self.values, entry, out);
        }
        out.push(b'}');
    }
}

/// Writes dates and times of day; a value outside the calendar as [`beyond_calendar`] does.
struct CalendarEncoder<'a, T: ArrowPrimitiveType> {
    array: &'a PrimitiveArray<T>,
    text: ArrayFormatter<'a>,
}

impl<'a, T: ArrowPrimitiveType> CalendarEncoder<'a, T>
where
    T::Native: Into<i64>,
{
    fn boxed(array: &'a dyn Array) -> Result<Box<dyn Encoder + 'a>, ArrowError> {
        let TextEncoder(text) = TextEncoder::new(array)?;
        Ok(Box::new(Self { array: array.as_primitive(), text }))
    }
}

impl<T: ArrowPrimitiveType> Encoder for CalendarEncoder<'_, T>
where
    T::Native: Into<i64>,
{
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let _ = match self.text.value(row).try_to_string() {
            Ok(text) => write!(out, "\"{text}\""),
            Err(_) => {
                let last = if T::DATA_TYPE == DataType::Date32 { i64::from(i32::MAX) } else { i64::MAX };
                write!(out, "\"{}\"", beyond_calendar(self.array.value(row).into(), last))
            }
        };
    }
}

struct TimestampEncoder<'a, T: ArrowPrimitiveType> {
    array: &'a PrimitiveArray<T>,
    zone: Option<Tz>,
}

impl<T: ArrowTimestampType> Encoder for TimestampEncoder<'_, T> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let ticks = self.array.value(row);
        let utc = arrow::temporal_conversions::as_datetime::<T>(ticks).map(|time| Utc.from_utc_datetime(&time));
        let _ = match utc {
            Some(utc) => write!(out, "\"{}\"", rfc3339(utc, self.zone)),
            None => write!(out, "\"{}\"", beyond_calendar(ticks, i64::MAX)),
        };
    }
}

fn timestamp_encoder<'a>(
    array: &'a dyn Array,
    unit: TimeUnit,
    zone: Option<&str>,
) -> Result<Box<dyn Encoder + 'a>, ArrowError> {
    let zone = zone.map(str::parse::<Tz>).transpose()?;
    Ok(match unit {
        TimeUnit::Second => Box::new(TimestampEncoder { array: array.as_primitive::<TimestampSecondType>(), zone }),
        TimeUnit::Millisecond => {
            Box::new(TimestampEncoder { array: array.as_primitive::<TimestampMillisecondType>(), zone })
        }
        TimeUnit::Microsecond => {
            Box::new(TimestampEncoder { array: array.as_primitive::<TimestampMicrosecondType>(), zone })
        }
        TimeUnit::Nanosecond => {
            Box::new(TimestampEncoder { array: array.as_primitive::<TimestampNanosecondType>(), zone })
        }
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Date32Array, TimestampMicrosecondArray};

    use super::*;

    #[test]
    fn infinite_dates_and_times_are_written_as_duckdb_does() {
        let days: ArrayRef = Arc::new(Date32Array::from(vec![i32::MAX, -i32::MAX, 0, i32::MAX - 1]));
        let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![i64::MAX, -i64::MAX, 0, i64::MAX - 1]));
        let batch = RecordBatch::try_from_iter([("d", days), ("t", times)]).unwrap();
        let mut written = Vec::new();
        RowWriter::new(batch.schema()).objects(&batch, b"\n", &mut written).unwrap();
        let expected = "{\"d\":\"infinity\",\"t\":\"infinity\"}\n\
                        {\"d\":\"-infinity\",\"t\":\"-infinity\"}\n\
                        {\"d\":\"1970-01-01\",\"t\":\"1970-01-01T00:00:00Z\"}\n\
                        {\"d\":\"2147483646\",\"t\":\"9223372036854775806\"}\n";
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }
}
