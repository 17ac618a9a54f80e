//! Arrow types as DuckLake types and back.
//!
//! A managed table keeps an Arrow type in its canonical form: what comes back is what DuckLake can say, and
//! [`storable`] says which form that is (`LargeUtf8` and dictionaries become `Utf8`, every time zone becomes UTC).
//! Types that DuckLake or Parquet would change are refused.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, IntervalUnit, TimeUnit};

use super::names::name_key;

/// How one level of a type is stored in `ducklake_column`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    /// A type string; the canonical Arrow type.
    Leaf(String, DataType),
    /// `list`, with its element; the dimension where it is a vector.
    List(Arc<Field>, Option<i32>),
    /// `struct`, with its fields.
    Struct(Fields),
    /// `map`, with key and value.
    Map(Arc<Field>, Arc<Field>),
}

/// The DuckLake form of an Arrow type, or a hint for the user.
pub(super) fn storable(data_type: &DataType) -> Result<Shape, String> {
    let leaf = |name: &str, canonical: DataType| Ok(Shape::Leaf(name.to_string(), canonical));
    match data_type {
        DataType::Boolean => leaf("boolean", DataType::Boolean),
        DataType::Int8 => leaf("int8", DataType::Int8),
        DataType::Int16 => leaf("int16", DataType::Int16),
        DataType::Int32 => leaf("int32", DataType::Int32),
        DataType::Int64 => leaf("int64", DataType::Int64),
        DataType::UInt8 => leaf("uint8", DataType::UInt8),
        DataType::UInt16 => leaf("uint16", DataType::UInt16),
        DataType::UInt32 => leaf("uint32", DataType::UInt32),
        DataType::UInt64 => leaf("uint64", DataType::UInt64),
        DataType::Float16 | DataType::Float32 => leaf("float32", DataType::Float32),
        DataType::Float64 => leaf("float64", DataType::Float64),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => leaf("varchar", DataType::Utf8),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            leaf("blob", DataType::Binary)
        }
        DataType::Date32 | DataType::Date64 => leaf("date", DataType::Date32),
        // SQL's TIME is Time64(ns) in DataFusion; DuckDB holds microseconds and cannot write `time_ns` to Parquet.
        DataType::Time32(_) | DataType::Time64(_) => leaf("time", DataType::Time64(TimeUnit::Microsecond)),
        DataType::Timestamp(unit, None) => match unit {
            TimeUnit::Second => leaf("timestamp_s", DataType::Timestamp(TimeUnit::Second, None)),
            TimeUnit::Millisecond => leaf("timestamp_ms", DataType::Timestamp(TimeUnit::Millisecond, None)),
            TimeUnit::Microsecond => leaf("timestamp", DataType::Timestamp(TimeUnit::Microsecond, None)),
            TimeUnit::Nanosecond => leaf("timestamp_ns", DataType::Timestamp(TimeUnit::Nanosecond, None)),
        },
        DataType::Timestamp(_, Some(_)) => leaf("timestamptz", utc_timestamp()),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => {
            // A negative scale counts zeros before the point, which are digits here.
            let (digits, scale) = match *scale {
                zeros @ ..0 => (precision.saturating_add(zeros.unsigned_abs()), 0),
                scale => (*precision, scale),
            };
            match decimal(digits, scale) {
                Some(canonical) => leaf(&format!("decimal({digits},{scale})"), canonical),
                None => {
                    Err("cast it to a decimal of at most 38 digits with a scale between 0 and its precision".into())
                }
            }
        }
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) | DataType::LargeListView(item) => {
            Ok(Shape::List(Arc::clone(item), None))
        }
        // Parquet's writer would drop their rows.
        DataType::FixedSizeList(_, 0) => Err("cast it to a list: DuckDB knows none of exactly no elements".into()),
        DataType::FixedSizeList(item, dimension) => Ok(Shape::List(Arc::clone(item), Some(*dimension))),
        DataType::Struct(fields) if fields.is_empty() => Err("give the struct at least one field".into()),
        DataType::Struct(fields) => match name_of_two(fields) {
            // DuckDB would read no table of the whole lake any more.
            Some(name) => Err(format!("give each field of the struct a name of its own: two are `{name}`, case aside")),
            None => Ok(Shape::Struct(fields.clone())),
        },
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => {
                Ok(Shape::Map(Arc::clone(&fields[0]), Arc::clone(&fields[1])))
            }
            _ => Err("a map has a key and a value".into()),
        },
        DataType::Dictionary(_, value) => storable(value),
        DataType::RunEndEncoded(_, values) => storable(values.data_type()),
        DataType::Null => Err("cast it to the type it should have".into()),
        DataType::Interval(_) | DataType::Duration(_) => {
            Err("Parquet cannot hold it exactly; take its text, CAST(value AS VARCHAR), or its seconds, \
                 epoch(CAST(value AS INTERVAL)); of a file CREATE TABLE t AS SELECT * REPLACE (... AS value) FROM 'file'"
                .into())
        }
        DataType::Union(..) => Err("use one nullable column for each alternative".into()),
    }
}

/// Returns a type for a message: of one of very many members the beginning.
pub(super) fn shown_type(data_type: &DataType) -> String {
    const MOST_CHARS: usize = 200;
    let text = data_type.to_string();
    match text.char_indices().nth(MOST_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// Returns a name that an earlier field has too, case aside.
fn name_of_two(fields: &Fields) -> Option<&str> {
    let mut seen = HashSet::new();
    fields.iter().map(|field| field.name().as_str()).find(|name| !seen.insert(name_key(name)))
}

/// The canonical type as it is written to Parquet, which has no seconds: DuckDB writes them as microseconds, we as
/// milliseconds.
pub(super) fn written_type(data_type: &DataType) -> DataType {
    let written = |field: &Arc<Field>| Arc::new(written_field(field));
    match data_type {
        DataType::Timestamp(TimeUnit::Second, None) => DataType::Timestamp(TimeUnit::Millisecond, None),
        DataType::List(item) => DataType::List(written(item)),
        DataType::FixedSizeList(item, dimension) => DataType::FixedSizeList(written(item), *dimension),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(written).collect()),
        DataType::Map(entries, sorted) => DataType::Map(written(entries), *sorted),
        other => other.clone(),
    }
}

/// The field with its [`written_type`].
pub(super) fn written_field(field: &Field) -> Field {
    field.clone().with_data_type(written_type(field.data_type()))
}

/// A DuckLake leaf type as Arrow, and whether its values can be read as they are.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LakeType {
    /// Read as this type.
    Readable(DataType),
    /// Known, described as this type, and not readable yet.
    Unreadable(DataType),
}

impl LakeType {
    /// The Arrow type of a `column_type` other than `list`, `struct` and `map`.
    pub(crate) fn parse(column_type: &str) -> Self {
        let lower = column_type.to_ascii_lowercase();
        if let Some(canonical) = parse_decimal(&lower) {
            return LakeType::Readable(canonical);
        }
        let readable = match lower.as_str() {
            "boolean" => DataType::Boolean,
            "int8" => DataType::Int8,
            "int16" => DataType::Int16,
            "int32" => DataType::Int32,
            "int64" => DataType::Int64,
            "uint8" => DataType::UInt8,
            "uint16" => DataType::UInt16,
            "uint32" => DataType::UInt32,
            "uint64" => DataType::UInt64,
            "float32" => DataType::Float32,
            "float64" => DataType::Float64,
            "varchar" | "json" | "uuid" => DataType::Utf8,
            "blob" => DataType::Binary,
            "date" => DataType::Date32,
            "time" => DataType::Time64(TimeUnit::Microsecond),
            "timestamp" | "timestamp_us" => DataType::Timestamp(TimeUnit::Microsecond, None),
            "timestamp_ms" => DataType::Timestamp(TimeUnit::Millisecond, None),
            "timestamp_s" => DataType::Timestamp(TimeUnit::Second, None),
            "timestamp_ns" => DataType::Timestamp(TimeUnit::Nanosecond, None),
            "timestamptz" => utc_timestamp(),
            // DuckDB writes 128-bit integers as doubles, intervals in a layout Arrow reads without their months,
            // and times with a zone without the zone.
            "int128" | "uint128" => return LakeType::Unreadable(DataType::Decimal128(38, 0)),
            "interval" => return LakeType::Unreadable(DataType::Interval(IntervalUnit::MonthDayNano)),
            "time_ns" | "timetz" => return LakeType::Unreadable(DataType::Time64(TimeUnit::Nanosecond)),
            _ => return LakeType::Unreadable(DataType::Binary),
        };
        LakeType::Readable(readable)
    }
}

/// The list type as DataFusion spells it.
pub(super) fn list_of(item: Field, dimension: Option<i32>) -> DataType {
    match dimension {
        Some(dimension) => DataType::FixedSizeList(Arc::new(item), dimension),
        None => DataType::List(Arc::new(item)),
    }
}

/// The map type as DataFusion spells it.
pub(super) fn map_of(key: Field, value: Field) -> DataType {
    let entries = Fields::from(vec![key.with_nullable(false), value.with_nullable(true)]);
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
}

fn utc_timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

fn decimal(precision: u8, scale: i8) -> Option<DataType> {
    let fits = (1..=38).contains(&precision) && (0..=precision as i8).contains(&scale);
    fits.then_some(DataType::Decimal128(precision, scale))
}

fn parse_decimal(column_type: &str) -> Option<DataType> {
    let (precision, scale) = column_type.strip_prefix("decimal(")?.strip_suffix(')')?.split_once(',')?;
    decimal(precision.trim().parse().ok()?, scale.trim().parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_types_come_back_as_they_are() {
        let types = [
            DataType::Boolean,
            DataType::Int8,
            DataType::UInt64,
            DataType::Float64,
            DataType::Utf8,
            DataType::Binary,
            DataType::Date32,
            DataType::Time64(TimeUnit::Microsecond),
            DataType::Timestamp(TimeUnit::Second, None),
            DataType::Timestamp(TimeUnit::Millisecond, None),
            DataType::Timestamp(TimeUnit::Microsecond, None),
            DataType::Timestamp(TimeUnit::Nanosecond, None),
            utc_timestamp(),
            DataType::Decimal128(38, 10),
        ];
        for data_type in types {
            let shape = storable(&data_type).unwrap();
            let Shape::Leaf(name, canonical) = shape else { panic!("{data_type} is no leaf") };
            assert_eq!(canonical, data_type);
            assert_eq!(LakeType::parse(&name), LakeType::Readable(data_type));
        }
    }

    #[test]
    fn zeros_before_the_point_are_digits() {
        for (given, stored) in [((10, -2), (12, 0)), ((38, 0), (38, 0))] {
            let shape = storable(&DataType::Decimal128(given.0, given.1)).unwrap();
            let Shape::Leaf(name, canonical) = shape else { panic!("{given:?} is no leaf") };
            assert_eq!(name, format!("decimal({},{})", stored.0, stored.1));
            assert_eq!(canonical, DataType::Decimal128(stored.0, stored.1));
        }
        assert!(storable(&DataType::Decimal128(38, -1)).is_err());
    }

    #[test]
    fn a_vector_has_elements() {
        let vector = |size| DataType::FixedSizeList(Arc::new(Field::new("item", DataType::Float32, true)), size);
        assert!(storable(&vector(1)).is_ok());
        assert!(storable(&vector(0)).is_err());
    }

    #[test]
    fn fields_of_a_struct_differ_in_more_than_case() {
        let named = |names: [&str; 2]| {
            DataType::Struct(names.map(|name| Field::new(name, DataType::Int64, true)).into_iter().collect())
        };
        assert!(storable(&named(["a", "b"])).is_ok());
        for names in [["a", "a"], ["a", "A"], ["é", "É"]] {
            assert!(storable(&named(names)).unwrap_err().contains("a name of its own"), "{names:?}");
        }
    }

    #[test]
    fn what_would_change_is_refused() {
        for data_type in [
            DataType::Null,
            DataType::Interval(IntervalUnit::MonthDayNano),
            DataType::Duration(TimeUnit::Second),
            DataType::Decimal256(76, 10),
            DataType::Struct(Fields::empty()),
        ] {
            assert!(storable(&data_type).is_err(), "{data_type}");
        }
    }
}
