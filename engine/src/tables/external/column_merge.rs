//! The columns of several files as those of one table: found by name, each of a type that holds the values of every file
//! as they are.
//!
//! Invariant: no value changes by it. Types of which neither is so, such as numbers and text, are an error that names
//! both files.

use std::collections::HashMap;
use std::path::Path;

use arrow::datatypes::{DataType, Field, Schema};

use super::file_columns::plain_type;
use super::{LocatedFile, bad_line};
use crate::error::{EngineError, Result};
use crate::type_names::sql_name;

/// Whole numbers of at most so many bits are doubles too.
const BITS_OF_DOUBLES: u8 = 32;

/// What becomes of a column that files have in types without a common one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnlikeTypes {
    /// The files are refused.
    Refused,
    /// The first type stands: the table declares another one, to which each file is cast.
    Declared,
}

/// A column, and the file that has given it its type.
struct CommonColumn<'f> {
    field: Field,
    file: &'f Path,
    /// The files that have it.
    files: usize,
}

/// Returns the columns of `files`, of which the first ones have these schemas. Errors: `bad_data`.
pub(super) fn merged_columns(files: &[LocatedFile], schemas: &[Schema], unlike: UnlikeTypes) -> Result<Schema> {
    let mut merged: Vec<CommonColumn<'_>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut by_case: HashMap<String, usize> = HashMap::new();
    for (file, schema) in files.iter().zip(schemas) {
        for field in schema.fields() {
            let Some(column) = places.get(field.name().as_str()).and_then(|place| merged.get_mut(*place)) else {
                let place = *by_case.entry(field.name().to_lowercase()).or_insert(merged.len());
                let alike = merged.get(place).filter(|alike| schema.field_with_name(alike.field.name()).is_err());
                if let (Some(alike), UnlikeTypes::Refused) = (alike, unlike) {
                    return Err(other_case(file, field.name(), alike));
                }
                places.insert(field.name(), merged.len());
                merged.push(CommonColumn { field: field.as_ref().clone(), file: file.path.as_path(), files: 1 });
                continue;
            };
            column.files += 1;
            let is_nullable = column.field.is_nullable() || field.is_nullable();
            match common_field(&column.field, field) {
                Some(common) => {
                    if common.data_type() != column.field.data_type() {
                        column.file = file.path.as_path();
                    }
                    column.field = common.with_nullable(is_nullable);
                }
                None if unlike == UnlikeTypes::Declared => {
                    column.field = column.field.clone().with_nullable(is_nullable);
                }
                None => {
                    let detail = format!(
                        "its column `{}` is {}, and that of {} is {}; read_parquet and read_arrow with union_by_name = \
                         true read files of different types, and CREATE EXTERNAL TABLE with declared columns casts \
                         each file to them",
                        field.name(),
                        sql_name(field.data_type()),
                        column.file.display(),
                        sql_name(column.field.data_type()),
                    );
                    return Err(bad_line(&file.path, None, None, detail));
                }
            }
        }
    }
    // What a file lacks is null in its rows.
    let fields = merged.into_iter().map(|column| match column.files == files.len() {
        true => column.field,
        false => column.field.with_nullable(true),
    });
    Ok(Schema::new(fields.collect::<Vec<_>>()))
}

/// Returns the error of a column that another file writes in another case: the files' readers would find it in one of them.
fn other_case(file: &LocatedFile, name: &str, other: &CommonColumn<'_>) -> EngineError {
    let detail = format!(
        "its column `{name}` is `{}` in {}; read_parquet and read_arrow with union_by_name = true, and CREATE EXTERNAL \
         TABLE with declared columns, read both as one column",
        other.field.name(),
        other.file.display()
    );
    bad_line(&file.path, None, None, detail)
}

/// Returns the column that holds the values of both, if there is one.
fn common_field(one: &Field, other: &Field) -> Option<Field> {
    if one.data_type() == other.data_type() {
        return Some(one.clone());
    }
    // Structs have the members of both.
    let mut both = one.clone();
    if both.try_merge(other).is_ok() {
        return Some(both);
    }
    Some(one.clone().with_data_type(common_type(one.data_type(), other.data_type())?))
}

/// Returns the type that holds the values of both types as they are.
fn common_type(one: &DataType, other: &DataType) -> Option<DataType> {
    let (one, other) = (plain_type(one), plain_type(other));
    if one == other {
        return Some(one.clone());
    }
    let is_binary = |data_type: &DataType| {
        matches!(
            data_type,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_)
        )
    };
    match (one, other) {
        (DataType::Null, known) | (known, DataType::Null) => Some(known.clone()),
        (one, other) if one.is_string() && other.is_string() => Some(DataType::Utf8),
        (one, other) if is_binary(one) && is_binary(other) => Some(DataType::Binary),
        (one, other) if one.is_integer() && other.is_integer() => common_integer(one, other),
        (one, other) if one.is_floating() && other.is_floating() => match (one, other) {
            (DataType::Float64, _) | (_, DataType::Float64) => Some(DataType::Float64),
            _ => Some(DataType::Float32),
        },
        (whole, float) if whole.is_integer() && float.is_floating() => double_of(whole),
        (float, whole) if whole.is_integer() && float.is_floating() => double_of(whole),
        (DataType::Decimal128(digits, scale), DataType::Decimal128(more, same)) if scale == same => {
            Some(DataType::Decimal128(*digits.max(more), *scale))
        }
        (DataType::Timestamp(unit, zone), DataType::Timestamp(finer, same)) if zone == same => {
            Some(DataType::Timestamp(*unit.max(finer), zone.clone()))
        }
        _ => None,
    }
}

/// Returns the type of doubles where it holds the whole numbers of a type.
fn double_of(whole: &DataType) -> Option<DataType> {
    let (bits, _) = integer_bits(whole)?;
    (bits <= BITS_OF_DOUBLES).then_some(DataType::Float64)
}

/// Returns the smallest type of the whole numbers of both, if 64 bits do.
fn common_integer(one: &DataType, other: &DataType) -> Option<DataType> {
    let ((bits, is_signed), (more, other_is_signed)) = (integer_bits(one)?, integer_bits(other)?);
    let has_sign = is_signed || other_is_signed;
    // The numbers without a sign take one bit more among those with one.
    let needed = |bits: u8, is_signed: bool| if has_sign && !is_signed { bits + 1 } else { bits };
    Some(match (has_sign, needed(bits, is_signed).max(needed(more, other_is_signed))) {
        (true, ..=8) => DataType::Int8,
        (true, ..=16) => DataType::Int16,
        (true, ..=32) => DataType::Int32,
        (true, ..=64) => DataType::Int64,
        (false, ..=8) => DataType::UInt8,
        (false, ..=16) => DataType::UInt16,
        (false, ..=32) => DataType::UInt32,
        (false, ..=64) => DataType::UInt64,
        (_, 65..) => return None,
    })
}

/// Returns the bits of whole numbers, and whether they have a sign.
fn integer_bits(data_type: &DataType) -> Option<(u8, bool)> {
    Some(match data_type {
        DataType::Int8 => (8, true),
        DataType::Int16 => (16, true),
        DataType::Int32 => (32, true),
        DataType::Int64 => (64, true),
        DataType::UInt8 => (8, false),
        DataType::UInt16 => (16, false),
        DataType::UInt32 => (32, false),
        DataType::UInt64 => (64, false),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::TimeUnit;

    use super::*;

    #[test]
    fn a_common_type_holds_the_values_of_both() {
        let text = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
        let time = |unit| DataType::Timestamp(unit, None);
        for (one, other, common) in [
            (DataType::Int32, DataType::Int64, Some(DataType::Int64)),
            (DataType::UInt8, DataType::Int8, Some(DataType::Int16)),
            (DataType::UInt32, DataType::UInt8, Some(DataType::UInt32)),
            (DataType::UInt64, DataType::Int64, None),
            (DataType::Int32, DataType::Float32, Some(DataType::Float64)),
            (DataType::Int64, DataType::Float64, None),
            (DataType::Float32, DataType::Float64, Some(DataType::Float64)),
            (DataType::Null, DataType::Date32, Some(DataType::Date32)),
            (text, DataType::LargeUtf8, Some(DataType::Utf8)),
            (time(TimeUnit::Millisecond), time(TimeUnit::Microsecond), Some(time(TimeUnit::Microsecond))),
            (DataType::Decimal128(5, 2), DataType::Decimal128(9, 2), Some(DataType::Decimal128(9, 2))),
            (DataType::Decimal128(5, 2), DataType::Decimal128(9, 3), None),
            (DataType::Int64, DataType::Utf8, None),
        ] {
            assert_eq!(common_type(&one, &other), common, "{one} {other}");
            assert_eq!(common_type(&other, &one), common, "{other} {one}");
        }
    }
}
