//! KQL's scalar types and their Arrow types. Inside a plan several KQL types share a physical type, so the [`KqlType`]
//! of a column travels beside the plan and is never read from its schema.

use arrow::datatypes::DataType;

use crate::ast::ScalarType;

/// The digits of a decimal, and how many of them follow the point.
pub(crate) const DECIMAL_PRECISION: u8 = 76;
pub(crate) const DECIMAL_SCALE: i8 = 38;
/// The bytes of a UUID. Binary columns of this width are taken for guids.
pub(crate) const GUID_BYTES: i32 = 16;

/// A scalar type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum KqlType {
    /// `bool`: Boolean.
    Bool,
    /// `int`: Int32.
    Int,
    /// `long`: Int64.
    Long,
    /// `real`: Float64.
    Real,
    /// `decimal`: Decimal256, 38 digits on each side of the point, of which a computed value keeps 34.
    Decimal,
    /// `string`: Utf8View, never null. Scans return views, so stored strings are not copied.
    String,
    /// `datetime`: Int64, ticks of 100 ns since the beginning of year 1.
    DateTime,
    /// `timespan`: Int64, ticks of 100 ns.
    TimeSpan,
    /// `guid`: Utf8, 36 lowercase characters.
    Guid,
    /// `dynamic`: Utf8, compact JSON; JSON's `null` is null.
    Dynamic,
}

impl KqlType {
    /// Returns the KQL type of a stored column of this type.
    pub fn from_stored(stored: &DataType) -> Self {
        match stored {
            DataType::Boolean => KqlType::Bool,
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16 => KqlType::Int,
            DataType::Int64 | DataType::UInt32 => KqlType::Long,
            // A long cannot hold all of UInt64; a decimal can.
            DataType::UInt64
            | DataType::Decimal32(..)
            | DataType::Decimal64(..)
            | DataType::Decimal128(..)
            | DataType::Decimal256(..) => KqlType::Decimal,
            DataType::Float16 | DataType::Float32 | DataType::Float64 => KqlType::Real,
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => KqlType::DateTime,
            DataType::Duration(_) | DataType::Time32(_) | DataType::Time64(_) | DataType::Interval(_) => {
                KqlType::TimeSpan
            }
            DataType::FixedSizeBinary(GUID_BYTES) => KqlType::Guid,
            DataType::List(_)
            | DataType::LargeList(_)
            | DataType::FixedSizeList(..)
            | DataType::ListView(_)
            | DataType::LargeListView(_)
            | DataType::Struct(_)
            | DataType::Map(..) => KqlType::Dynamic,
            DataType::Dictionary(_, values) => Self::from_stored(values),
            _ => KqlType::String,
        }
    }

    /// Returns the KQL type of a stored column of this type, which may be text that holds JSON, or UUIDs.
    pub fn of_column(stored: &DataType, is_json: bool, is_uuid: bool) -> Self {
        match Self::from_stored(stored) {
            KqlType::String if is_json => KqlType::Dynamic,
            KqlType::String if is_uuid => KqlType::Guid,
            other => other,
        }
    }

    /// Returns Kusto's name of the type.
    pub fn name(self) -> &'static str {
        match self {
            KqlType::Bool => "bool",
            KqlType::Int => "int",
            KqlType::Long => "long",
            KqlType::Real => "real",
            KqlType::Decimal => "decimal",
            KqlType::String => "string",
            KqlType::DateTime => "datetime",
            KqlType::TimeSpan => "timespan",
            KqlType::Guid => "guid",
            KqlType::Dynamic => "dynamic",
        }
    }

    /// Returns .NET's name of the type, as in `getschema` and in Kusto's REST answers.
    pub fn dotnet_name(self) -> &'static str {
        match self {
            KqlType::Bool => "System.SByte",
            KqlType::Int => "System.Int32",
            KqlType::Long => "System.Int64",
            KqlType::Real => "System.Double",
            KqlType::Decimal => "System.Data.SqlTypes.SqlDecimal",
            KqlType::String => "System.String",
            KqlType::DateTime => "System.DateTime",
            KqlType::TimeSpan => "System.TimeSpan",
            KqlType::Guid => "System.Guid",
            KqlType::Dynamic => "System.Object",
        }
    }

    /// Returns the physical type inside a plan.
    pub fn arrow_type(self) -> DataType {
        match self {
            KqlType::Bool => DataType::Boolean,
            KqlType::Int => DataType::Int32,
            KqlType::Long | KqlType::DateTime | KqlType::TimeSpan => DataType::Int64,
            KqlType::Real => DataType::Float64,
            KqlType::Decimal => DataType::Decimal256(DECIMAL_PRECISION, DECIMAL_SCALE),
            KqlType::String => DataType::Utf8View,
            KqlType::Guid | KqlType::Dynamic => DataType::Utf8,
        }
    }

    /// Whether the type is a number.
    pub fn is_numeric(self) -> bool {
        matches!(self, KqlType::Int | KqlType::Long | KqlType::Real | KqlType::Decimal)
    }
}

impl From<ScalarType> for KqlType {
    fn from(written: ScalarType) -> Self {
        match written {
            ScalarType::Bool => KqlType::Bool,
            ScalarType::DateTime => KqlType::DateTime,
            ScalarType::Decimal => KqlType::Decimal,
            ScalarType::Dynamic => KqlType::Dynamic,
            ScalarType::Guid => KqlType::Guid,
            ScalarType::Int => KqlType::Int,
            ScalarType::Long => KqlType::Long,
            ScalarType::Real => KqlType::Real,
            ScalarType::String => KqlType::String,
            ScalarType::Timespan => KqlType::TimeSpan,
        }
    }
}
