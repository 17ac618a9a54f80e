//! KQL's scalar types and their Arrow types. Inside a plan several KQL types share a physical type, so the [`KqlType`]
//! of a column travels beside the plan and is never read from its schema.

use arrow::datatypes::DataType;

use crate::ast::ScalarType;

/// The digits of a decimal, and how many of them follow the point.
pub(crate) const DECIMAL_PRECISION: u8 = 38;
pub(crate) const DECIMAL_SCALE: i8 = 10;

/// A scalar type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KqlType {
    /// `bool`: Boolean.
    Bool,
    /// `int`: Int32.
    Int,
    /// `long`: Int64.
    Long,
    /// `real`: Float64.
    Real,
    /// `decimal`: Decimal128.
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
        crate::plan::type_of_stored(stored)
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
            KqlType::Decimal => DataType::Decimal128(DECIMAL_PRECISION, DECIMAL_SCALE),
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

/// A length of time as KQL's `timespan` literals and .NET write it: `1.5h`, `hh:mm:ss`, `d.hh:mm:ss`. `None` where it is
/// neither, or less than nothing.
pub fn timespan(text: &str) -> Option<std::time::Duration> {
    const TICKS_PER_SECOND: u64 = 10_000_000;
    let ticks = u64::try_from(crate::values::parse_timespan(text)?).ok()?;
    let nanoseconds = (ticks % TICKS_PER_SECOND) * 100;
    Some(std::time::Duration::new(ticks / TICKS_PER_SECOND, u32::try_from(nanoseconds).ok()?))
}
