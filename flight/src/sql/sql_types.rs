//! The SQL types of this server: their rows of GetXdbcTypeInfo, what column metadata says of a column of each, and which
//! converts to which.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use arrow::compute::can_cast_types;
use arrow_flight::sql::metadata::{XdbcTypeInfo, XdbcTypeInfoDataBuilder};
use arrow_flight::sql::{
    CommandGetXdbcTypeInfo, Nullable, Searchable, SqlSupportsConvert, XdbcDataType, XdbcDatetimeSubcode,
};
use arrow_schema::{DataType, IntervalUnit, SchemaRef, TimeUnit};
use querent_engine::fraction_digits;

use crate::error::ApiError;

/// The most characters or bytes of a value: its offsets are 32 bits.
const MAX_LENGTH: i32 = i32::MAX;
/// The digits of a decimal.
const DECIMAL_DIGITS: i32 = 38;

/// A type of SQL.
struct SqlType {
    name: &'static str,
    xdbc: XdbcDataType,
    /// Digits, characters of the longest text form of a time, or bytes.
    size: i32,
    family: TypeFamily,
}

/// What the types of a family have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TypeFamily {
    Boolean,
    /// Whether it has no sign.
    Integer(bool),
    Float,
    Decimal,
    Text,
    Binary,
    /// The subcode, and the digits of a second's fraction.
    Datetime(XdbcDatetimeSubcode, Option<i32>),
    Interval,
}

const TYPES: &[SqlType] = &[
    SqlType { name: "BOOLEAN", xdbc: XdbcDataType::XdbcBit, size: 1, family: TypeFamily::Boolean },
    SqlType { name: "TINYINT", xdbc: XdbcDataType::XdbcTinyint, size: 3, family: TypeFamily::Integer(false) },
    SqlType { name: "TINYINT UNSIGNED", xdbc: XdbcDataType::XdbcTinyint, size: 3, family: TypeFamily::Integer(true) },
    SqlType { name: "SMALLINT", xdbc: XdbcDataType::XdbcSmallint, size: 5, family: TypeFamily::Integer(false) },
    SqlType { name: "SMALLINT UNSIGNED", xdbc: XdbcDataType::XdbcSmallint, size: 5, family: TypeFamily::Integer(true) },
    SqlType { name: "INTEGER", xdbc: XdbcDataType::XdbcInteger, size: 10, family: TypeFamily::Integer(false) },
    SqlType { name: "INTEGER UNSIGNED", xdbc: XdbcDataType::XdbcInteger, size: 10, family: TypeFamily::Integer(true) },
    SqlType { name: "BIGINT", xdbc: XdbcDataType::XdbcBigint, size: 19, family: TypeFamily::Integer(false) },
    SqlType { name: "BIGINT UNSIGNED", xdbc: XdbcDataType::XdbcBigint, size: 20, family: TypeFamily::Integer(true) },
    SqlType { name: "REAL", xdbc: XdbcDataType::XdbcReal, size: 24, family: TypeFamily::Float },
    SqlType { name: "DOUBLE", xdbc: XdbcDataType::XdbcDouble, size: 53, family: TypeFamily::Float },
    SqlType { name: "DECIMAL", xdbc: XdbcDataType::XdbcDecimal, size: DECIMAL_DIGITS, family: TypeFamily::Decimal },
    SqlType { name: "NUMERIC", xdbc: XdbcDataType::XdbcNumeric, size: DECIMAL_DIGITS, family: TypeFamily::Decimal },
    SqlType { name: "VARCHAR", xdbc: XdbcDataType::XdbcVarchar, size: MAX_LENGTH, family: TypeFamily::Text },
    SqlType { name: "CHAR", xdbc: XdbcDataType::XdbcChar, size: MAX_LENGTH, family: TypeFamily::Text },
    SqlType { name: "TEXT", xdbc: XdbcDataType::XdbcLongvarchar, size: MAX_LENGTH, family: TypeFamily::Text },
    SqlType { name: "VARBINARY", xdbc: XdbcDataType::XdbcVarbinary, size: MAX_LENGTH, family: TypeFamily::Binary },
    SqlType { name: "BINARY", xdbc: XdbcDataType::XdbcBinary, size: MAX_LENGTH, family: TypeFamily::Binary },
    SqlType { name: "BLOB", xdbc: XdbcDataType::XdbcLongvarbinary, size: MAX_LENGTH, family: TypeFamily::Binary },
    SqlType {
        name: "DATE",
        xdbc: XdbcDataType::XdbcDate,
        size: 10,
        // The protocol's name for 1, which ODBC calls DATE.
        family: TypeFamily::Datetime(XdbcDatetimeSubcode::XdbcSubcodeYear, None),
    },
    SqlType {
        name: "TIME",
        xdbc: XdbcDataType::XdbcTime,
        size: 18,
        family: TypeFamily::Datetime(XdbcDatetimeSubcode::XdbcSubcodeTime, Some(9)),
    },
    SqlType {
        name: "TIMESTAMP",
        xdbc: XdbcDataType::XdbcTimestamp,
        size: 29,
        family: TypeFamily::Datetime(XdbcDatetimeSubcode::XdbcSubcodeTimestamp, Some(9)),
    },
    SqlType {
        name: "TIMESTAMP WITH TIME ZONE",
        xdbc: XdbcDataType::XdbcTimestamp,
        size: 35,
        family: TypeFamily::Datetime(XdbcDatetimeSubcode::XdbcSubcodeTimestampWithTimezone, Some(9)),
    },
    SqlType { name: "INTERVAL", xdbc: XdbcDataType::XdbcInterval, size: MAX_LENGTH, family: TypeFamily::Interval },
];

/// Returns the schema of GetXdbcTypeInfo.
pub(super) fn type_info_schema() -> SchemaRef {
    XdbcTypeInfoDataBuilder::new().schema()
}

/// Returns the types there are, or those of one XDBC type, ordered by XDBC type and name.
pub(super) fn type_info(command: CommandGetXdbcTypeInfo) -> Result<RecordBatch, ApiError> {
    let mut builder = XdbcTypeInfoDataBuilder::new();
    for sql_type in TYPES {
        builder.append(sql_type.info());
    }
    let infos = builder.build().map_err(ApiError::internal)?;
    command.into_builder(&infos).build().map_err(ApiError::internal)
}

impl SqlType {
    fn info(&self) -> XdbcTypeInfo {
        let quotes = |prefix: &str| (Some(format!("{prefix}'")), Some("'".to_owned()));
        let (literal_prefix, literal_suffix) = match self.family {
            TypeFamily::Text => quotes(""),
            TypeFamily::Binary => quotes("X"),
            TypeFamily::Datetime(..) | TypeFamily::Interval => quotes(&format!("{} ", self.name)),
            TypeFamily::Boolean | TypeFamily::Integer(_) | TypeFamily::Float | TypeFamily::Decimal => (None, None),
        };
        let parameters: &[&str] = match self.family {
            TypeFamily::Decimal => &["precision", "scale"],
            TypeFamily::Text | TypeFamily::Binary if !matches!(self.name, "TEXT" | "BLOB") => &["length"],
            TypeFamily::Datetime(_, Some(_)) => &["precision"],
            _ => &[],
        };
        let (minimum_scale, maximum_scale) = match self.family {
            TypeFamily::Integer(_) => (Some(0), Some(0)),
            TypeFamily::Decimal => (Some(0), Some(DECIMAL_DIGITS)),
            TypeFamily::Datetime(_, digits) => (digits.map(|_| 0), digits),
            _ => (None, None),
        };
        let is_number = matches!(self.family, TypeFamily::Integer(_) | TypeFamily::Float | TypeFamily::Decimal);
        let (sql_data_type, datetime_subcode) = match self.family {
            TypeFamily::Datetime(subcode, _) => (XdbcDataType::XdbcDatetime, Some(subcode)),
            TypeFamily::Interval => (XdbcDataType::XdbcInterval, Some(XdbcDatetimeSubcode::XdbcSubcodeUnknown)),
            _ => (self.xdbc, None),
        };
        XdbcTypeInfo {
            type_name: self.name.to_owned(),
            data_type: self.xdbc,
            column_size: Some(self.size),
            literal_prefix,
            literal_suffix,
            create_params: Some(parameters.iter().map(|parameter| (*parameter).to_owned()).collect()),
            nullable: Nullable::NullabilityNullable,
            case_sensitive: self.family == TypeFamily::Text,
            searchable: match self.family {
                TypeFamily::Text => Searchable::Full,
                _ => Searchable::Basic,
            },
            unsigned_attribute: match self.family {
                TypeFamily::Integer(unsigned) => Some(unsigned),
                TypeFamily::Float | TypeFamily::Decimal => Some(false),
                _ => None,
            },
            fixed_prec_scale: false,
            auto_increment: is_number.then_some(false),
            local_type_name: Some(self.name.to_owned()),
            minimum_scale,
            maximum_scale,
            sql_data_type,
            datetime_subcode,
            num_prec_radix: match self.family {
                TypeFamily::Integer(_) | TypeFamily::Decimal => Some(10),
                TypeFamily::Float => Some(2),
                _ => None,
            },
            interval_precision: None,
        }
    }
}

/// What column metadata says of a column's type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SqlColumnType {
    /// As `CREATE TABLE` takes it.
    pub(super) name: String,
    /// Digits, characters or bytes.
    pub(super) precision: Option<i32>,
    /// Digits after the point.
    pub(super) scale: Option<i32>,
    /// Whether its values compare with regard to case.
    pub(super) is_case_sensitive: bool,
}

/// Returns the SQL type of an Arrow type. Nested types have a name and nothing else.
pub(super) fn column_type(data_type: &DataType) -> SqlColumnType {
    let (name, scale) = match data_type {
        DataType::Boolean => ("BOOLEAN", None),
        DataType::Int8 => ("TINYINT", Some(0)),
        DataType::UInt8 => ("TINYINT UNSIGNED", Some(0)),
        DataType::Int16 => ("SMALLINT", Some(0)),
        DataType::UInt16 => ("SMALLINT UNSIGNED", Some(0)),
        DataType::Int32 => ("INTEGER", Some(0)),
        DataType::UInt32 => ("INTEGER UNSIGNED", Some(0)),
        DataType::Int64 => ("BIGINT", Some(0)),
        DataType::UInt64 => ("BIGINT UNSIGNED", Some(0)),
        DataType::Float16 | DataType::Float32 => ("REAL", None),
        DataType::Float64 => ("DOUBLE", None),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => {
            return SqlColumnType {
                name: "DECIMAL".to_owned(),
                precision: Some(i32::from(*precision)),
                scale: Some(i32::from(*scale)),
                is_case_sensitive: false,
            };
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ("VARCHAR", None),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => ("VARBINARY", None),
        DataType::FixedSizeBinary(size) => {
            let precision = Some(*size);
            return SqlColumnType { name: "BINARY".to_owned(), precision, scale: None, is_case_sensitive: false };
        }
        DataType::Date32 | DataType::Date64 => ("DATE", None),
        DataType::Time32(unit) | DataType::Time64(unit) => ("TIME", Some(fraction_digits(*unit).into())),
        DataType::Timestamp(unit, None) => ("TIMESTAMP", Some(fraction_digits(*unit).into())),
        DataType::Timestamp(unit, Some(_)) => ("TIMESTAMP WITH TIME ZONE", Some(fraction_digits(*unit).into())),
        DataType::Interval(_) | DataType::Duration(_) => ("INTERVAL", None),
        DataType::Dictionary(_, value) => return column_type(value),
        DataType::RunEndEncoded(_, values) => return column_type(values.data_type()),
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::FixedSizeList(..) => return nested("ARRAY"),
        DataType::Struct(_) => return nested("STRUCT"),
        DataType::Map(..) => return nested("MAP"),
        DataType::Union(..) => return nested("UNION"),
        DataType::Null => return nested("NULL"),
    };
    let known = TYPES.iter().find(|sql_type| sql_type.name == name);
    SqlColumnType {
        name: name.to_owned(),
        precision: known.map(|sql_type| sql_type.size),
        scale,
        is_case_sensitive: known.is_some_and(|sql_type| sql_type.family == TypeFamily::Text),
    }
}

fn nested(name: &str) -> SqlColumnType {
    SqlColumnType { name: name.to_owned(), precision: None, scale: None, is_case_sensitive: false }
}

/// Returns which types convert to which by CAST: the protocol's numbers, as SQL_SUPPORTS_CONVERT has them.
pub(super) fn conversions() -> BTreeMap<i32, Vec<i32>> {
    let arrow_types = convertible_types();
    let targets_of = |source: &DataType| {
        let casts = |target: &DataType| match (source, target) {
            // A number of microseconds is no time of day in SQL, a number of days no date, and the bytes of a number are its own.
            (source, DataType::Time64(_) | DataType::Date32) if source.is_integer() => false,
            (source, DataType::Binary) if source.is_numeric() => false,
            (DataType::Timestamp(_, _) | DataType::Date32 | DataType::Time64(_), target) if target.is_numeric() => {
                false
            }
            // By an integer, which Arrow does not do.
            (DataType::Boolean, DataType::Decimal128(_, _)) | (DataType::Decimal128(_, _), DataType::Boolean) => true,
            _ => can_cast_types(source, target),
        };
        let targets = arrow_types.iter().filter(|(_, target)| casts(target));
        targets.map(|(target, _)| *target as i32).collect()
    };
    arrow_types.iter().map(|(name, source)| (*name as i32, targets_of(source))).collect()
}

/// The protocol's types, in its order, and the Arrow type of each.
fn convertible_types() -> Vec<(SqlSupportsConvert, DataType)> {
    let decimal = DataType::Decimal128(38, 10);
    let interval = DataType::Interval(IntervalUnit::MonthDayNano);
    vec![
        (SqlSupportsConvert::SqlConvertBigint, DataType::Int64),
        (SqlSupportsConvert::SqlConvertBinary, DataType::Binary),
        (SqlSupportsConvert::SqlConvertBit, DataType::Boolean),
        (SqlSupportsConvert::SqlConvertChar, DataType::Utf8),
        (SqlSupportsConvert::SqlConvertDate, DataType::Date32),
        (SqlSupportsConvert::SqlConvertDecimal, decimal.clone()),
        (SqlSupportsConvert::SqlConvertFloat, DataType::Float64),
        (SqlSupportsConvert::SqlConvertInteger, DataType::Int32),
        (SqlSupportsConvert::SqlConvertIntervalDayTime, interval.clone()),
        (SqlSupportsConvert::SqlConvertIntervalYearMonth, interval),
        (SqlSupportsConvert::SqlConvertLongvarbinary, DataType::Binary),
        (SqlSupportsConvert::SqlConvertLongvarchar, DataType::Utf8),
        (SqlSupportsConvert::SqlConvertNumeric, decimal),
        (SqlSupportsConvert::SqlConvertReal, DataType::Float32),
        (SqlSupportsConvert::SqlConvertSmallint, DataType::Int16),
        (SqlSupportsConvert::SqlConvertTime, DataType::Time64(TimeUnit::Microsecond)),
        (SqlSupportsConvert::SqlConvertTimestamp, DataType::Timestamp(TimeUnit::Microsecond, None)),
        (SqlSupportsConvert::SqlConvertTinyint, DataType::Int8),
        (SqlSupportsConvert::SqlConvertVarbinary, DataType::Binary),
        (SqlSupportsConvert::SqlConvertVarchar, DataType::Utf8),
    ]
}
