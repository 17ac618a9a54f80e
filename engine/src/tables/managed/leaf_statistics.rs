//! Statistics of a Parquet file just written, leaf column by leaf column, as DuckLake keeps them: from the bounds and
//! counts that the Parquet writer collects anyway, and a look for NaN, which those bounds leave out.

use std::collections::BTreeMap;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, Float32Type, Float64Type, Schema, TimeUnit};
use datafusion::common::ScalarValue;
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::statistics::Statistics;
use querent_catalog::ColumnStats;

use super::file_statistics;

/// A Parquet column: the id and type of a column, or of a nested column's innermost field.
pub(super) struct Leaf {
    id: Option<i64>,
    data_type: DataType,
    column: Option<usize>,
}

impl Leaf {
    /// Returns the column, unless the leaf is a part of one.
    pub(super) fn column(&self) -> Option<usize> {
        self.column
    }
}

/// Returns the leaves of a schema in the order of a row group's columns.
pub(super) fn leaves(schema: &Schema) -> Vec<Leaf> {
    fn add(field: &Field, column: Option<usize>, leaves: &mut Vec<Leaf>) {
        match field.data_type() {
            DataType::Struct(fields) => fields.iter().for_each(|field| add(field, None, leaves)),
            DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _) => {
                add(element, None, leaves);
            }
            DataType::Map(entries, _) => add(entries, None, leaves),
            data_type => {
                let id = field.metadata().get(PARQUET_FIELD_ID_META_KEY).and_then(|id| id.parse().ok());
                leaves.push(Leaf { id, data_type: data_type.clone(), column });
            }
        }
    }
    let mut leaves = Vec::new();
    schema.fields().iter().enumerate().for_each(|(index, field)| add(field, Some(index), &mut leaves));
    leaves
}

/// Notes which leaves hold NaN, which Parquet's own bounds leave out without saying so.
pub(super) fn note_nan(array: &ArrayRef, has_nan: &mut [bool], leaf: &mut usize) {
    match array.data_type() {
        DataType::Struct(_) => array.as_struct().columns().iter().for_each(|child| note_nan(child, has_nan, leaf)),
        DataType::List(_) => note_nan(array.as_list::<i32>().values(), has_nan, leaf),
        DataType::LargeList(_) => note_nan(array.as_list::<i64>().values(), has_nan, leaf),
        DataType::FixedSizeList(..) => note_nan(array.as_fixed_size_list().values(), has_nan, leaf),
        DataType::Map(..) => {
            array.as_map().entries().columns().iter().for_each(|child| note_nan(child, has_nan, leaf));
        }
        data_type => {
            if let Some(seen) = has_nan.get_mut(*leaf) {
                *seen = *seen
                    || match data_type {
                        DataType::Float32 => array.as_primitive::<Float32Type>().values().iter().any(|x| x.is_nan()),
                        DataType::Float64 => array.as_primitive::<Float64Type>().values().iter().any(|x| x.is_nan()),
                        _ => false,
                    };
            }
            *leaf += 1;
        }
    }
}

/// Counts and bounds of a column of floats for which Parquet keeps none, since it holds NaN.
#[derive(Debug, Clone, Default)]
pub(super) struct FloatStats {
    values: u64,
    nulls: u64,
    bounds: Option<(ScalarValue, ScalarValue)>,
}

impl FloatStats {
    /// Adds the values of a batch; only floats have any.
    pub(super) fn add(&mut self, array: &ArrayRef) {
        self.nulls += array.null_count() as u64;
        self.values += (array.len() - array.null_count()) as u64;
        let batch = match array.data_type() {
            DataType::Float32 => {
                let (low, high) = number_bounds(array.as_primitive::<Float32Type>().iter().map(|x| x.map(f64::from)));
                (low.map(|x| ScalarValue::Float32(Some(x as f32))), high.map(|x| ScalarValue::Float32(Some(x as f32))))
            }
            DataType::Float64 => {
                let (low, high) = number_bounds(array.as_primitive::<Float64Type>().iter());
                (low.map(|x| ScalarValue::Float64(Some(x))), high.map(|x| ScalarValue::Float64(Some(x))))
            }
            _ => (None, None),
        };
        let (Some(low), Some(high)) = batch else { return };
        self.bounds = Some(match self.bounds.take() {
            None => (low, high),
            Some((min, max)) => (if low < min { low } else { min }, if high > max { high } else { max }),
        });
    }

    fn column_stats(&self, bytes: u64) -> ColumnStats {
        let (min, max) = self.bounds.clone().unzip();
        ColumnStats {
            value_count: Some(self.values),
            null_count: Some(self.nulls),
            min_value: min.as_ref().and_then(file_statistics::format_bound),
            max_value: max.as_ref().and_then(file_statistics::format_bound),
            contains_nan: Some(true),
            column_size_bytes: Some(bytes),
        }
    }
}

/// Returns the least and the greatest value that is a number.
fn number_bounds(values: impl Iterator<Item = Option<f64>>) -> (Option<f64>, Option<f64>) {
    values.flatten().filter(|value| !value.is_nan()).fold((None, None), |(low, high), value| {
        (Some(low.map_or(value, |low: f64| low.min(value))), Some(high.map_or(value, |high: f64| high.max(value))))
    })
}

/// Returns the statistics by column id. `floats` has what Parquet's metadata lack.
pub(super) fn column_stats(
    metadata: &ParquetMetaData,
    leaves: &[Leaf],
    has_nan: &[bool],
    floats: &[Option<FloatStats>],
) -> BTreeMap<i64, ColumnStats> {
    let mut all = BTreeMap::new();
    for (index, leaf) in leaves.iter().enumerate() {
        let Some(id) = leaf.id else { continue };
        let chunks = metadata.row_groups().iter().filter_map(|group| group.columns().get(index));
        let nan = leaf.data_type.is_floating().then(|| has_nan.get(index).copied().unwrap_or(true));
        let known = match floats.get(index) {
            Some(Some(floats)) => floats.column_stats(chunks.map(compressed_bytes).sum()),
            Some(None) | None => leaf_stats(chunks, &leaf.data_type, nan),
        };
        all.insert(id, known);
    }
    all
}

fn compressed_bytes(chunk: &ColumnChunkMetaData) -> u64 {
    u64::try_from(chunk.compressed_size()).unwrap_or_default()
}

fn leaf_stats<'a>(
    chunks: impl Iterator<Item = &'a ColumnChunkMetaData>,
    data_type: &DataType,
    contains_nan: Option<bool>,
) -> ColumnStats {
    let (mut values, mut nulls, mut bytes) = (0u64, Some(0u64), 0u64);
    let mut bounds: Option<(ScalarValue, ScalarValue)> = None;
    let mut bounded = true;
    for chunk in chunks {
        values += u64::try_from(chunk.num_values()).unwrap_or_default();
        bytes += compressed_bytes(chunk);
        let chunk_nulls = chunk.statistics().and_then(Statistics::null_count_opt);
        nulls = nulls.zip(chunk_nulls).map(|(sum, more)| sum + more);
        if chunk_nulls == u64::try_from(chunk.num_values()).ok() {
            continue;
        }
        let Some((min, max)) = chunk.statistics().and_then(|statistics| chunk_bounds(statistics, data_type)) else {
            bounded = false;
            continue;
        };
        bounds = Some(match bounds {
            None => (min, max),
            Some((low, high)) => (if min < low { min } else { low }, if max > high { max } else { high }),
        });
    }
    let (min, max) = bounds.filter(|_| bounded).unzip();
    ColumnStats {
        value_count: nulls.map(|nulls| values.saturating_sub(nulls)),
        null_count: nulls,
        min_value: min.as_ref().and_then(file_statistics::format_bound),
        max_value: max.as_ref().and_then(file_statistics::format_bound),
        contains_nan,
        column_size_bytes: Some(bytes),
    }
}

fn chunk_bounds(statistics: &Statistics, data_type: &DataType) -> Option<(ScalarValue, ScalarValue)> {
    let integer = |value: i64| integer_scalar(value, data_type);
    Some(match statistics {
        Statistics::Boolean(typed) => {
            (ScalarValue::Boolean(Some(*typed.min_opt()?)), ScalarValue::Boolean(Some(*typed.max_opt()?)))
        }
        Statistics::Int32(typed) => (integer(i64::from(*typed.min_opt()?))?, integer(i64::from(*typed.max_opt()?))?),
        Statistics::Int64(typed) => (integer(*typed.min_opt()?)?, integer(*typed.max_opt()?)?),
        Statistics::Float(typed) => {
            (ScalarValue::Float32(Some(*typed.min_opt()?)), ScalarValue::Float32(Some(*typed.max_opt()?)))
        }
        Statistics::Double(typed) => {
            (ScalarValue::Float64(Some(*typed.min_opt()?)), ScalarValue::Float64(Some(*typed.max_opt()?)))
        }
        Statistics::ByteArray(typed) => {
            (bytes_scalar(typed.min_opt()?.data(), data_type)?, bytes_scalar(typed.max_opt()?.data(), data_type)?)
        }
        Statistics::FixedLenByteArray(typed) => {
            (bytes_scalar(typed.min_opt()?.data(), data_type)?, bytes_scalar(typed.max_opt()?.data(), data_type)?)
        }
        Statistics::Int96(_) => return None,
    })
}

/// Returns an integer of Parquet as a value of the column's type; unsigned types are stored by their bits.
fn integer_scalar(value: i64, data_type: &DataType) -> Option<ScalarValue> {
    let (narrow_bits, wide_bits) = (value as u32, value as u64);
    Some(match data_type {
        DataType::Int8 => ScalarValue::Int8(Some(i8::try_from(value).ok()?)),
        DataType::Int16 => ScalarValue::Int16(Some(i16::try_from(value).ok()?)),
        DataType::Int32 => ScalarValue::Int32(Some(i32::try_from(value).ok()?)),
        DataType::Int64 => ScalarValue::Int64(Some(value)),
        DataType::UInt8 => ScalarValue::UInt8(Some(u8::try_from(narrow_bits).ok()?)),
        DataType::UInt16 => ScalarValue::UInt16(Some(u16::try_from(narrow_bits).ok()?)),
        DataType::UInt32 => ScalarValue::UInt32(Some(narrow_bits)),
        DataType::UInt64 => ScalarValue::UInt64(Some(wide_bits)),
        DataType::Decimal128(precision, scale) => ScalarValue::Decimal128(Some(value.into()), *precision, *scale),
        DataType::Date32 => ScalarValue::Date32(Some(i32::try_from(value).ok()?)),
        DataType::Time32(TimeUnit::Second) => ScalarValue::Time32Second(Some(i32::try_from(value).ok()?)),
        DataType::Time32(TimeUnit::Millisecond) => ScalarValue::Time32Millisecond(Some(i32::try_from(value).ok()?)),
        DataType::Time64(TimeUnit::Microsecond) => ScalarValue::Time64Microsecond(Some(value)),
        DataType::Time64(TimeUnit::Nanosecond) => ScalarValue::Time64Nanosecond(Some(value)),
        DataType::Timestamp(TimeUnit::Millisecond, zone) => {
            ScalarValue::TimestampMillisecond(Some(value), zone.clone())
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            ScalarValue::TimestampMicrosecond(Some(value), zone.clone())
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => ScalarValue::TimestampNanosecond(Some(value), zone.clone()),
        _ => return None,
    })
}

fn bytes_scalar(bytes: &[u8], data_type: &DataType) -> Option<ScalarValue> {
    Some(match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            ScalarValue::Utf8(Some(std::str::from_utf8(bytes).ok()?.to_string()))
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => ScalarValue::Binary(Some(bytes.to_vec())),
        DataType::FixedSizeBinary(16) => ScalarValue::FixedSizeBinary(16, Some(bytes.to_vec())),
        DataType::Decimal128(precision, scale) => {
            // Big endian, as short as the precision allows.
            let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
            let mut wide = [if negative { 0xff } else { 0 }; 16];
            wide.get_mut(16usize.checked_sub(bytes.len())?..)?.copy_from_slice(bytes);
            ScalarValue::Decimal128(Some(i128::from_be_bytes(wide)), *precision, *scale)
        }
        _ => return None,
    })
}
