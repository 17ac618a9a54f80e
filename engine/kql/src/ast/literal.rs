//! What is written out: numbers, strings, JSON.

use super::PluginSchema;
use crate::span::Span;

/// A literal. Where it stands is said by the expression that it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// `true`, `false`.
    Bool(bool),
    /// `1`, `0x1F`.
    Long(i64),
    /// `1.5`, `1e3`.
    Real(f64),
    /// `1.5h`, in ticks of 100 ns.
    Timespan(i64),
    /// Any string, decoded; adjacent ones are one.
    String(String),
    /// `datetime(2020-01-01)`, `long(null)`, ...: the type and what stands between the parentheses, trimmed.
    Typed {
        /// The type.
        scalar_type: ScalarType,
        /// As written.
        text: String,
    },
    /// `dynamic(...)`.
    Dynamic(Box<Json>),
    /// `typeof(long)`.
    Type(ScalarType),
    /// `typeof(*, a:long)`: what a plugin returns.
    RowType(PluginSchema),
}

/// KQL's scalar types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScalarType {
    /// `bool`, `boolean`.
    Bool,
    /// `datetime`, `date`.
    DateTime,
    /// `decimal`.
    Decimal,
    /// `dynamic`.
    Dynamic,
    /// `guid`, `uuid`, `uniqueid`.
    Guid,
    /// `int`.
    Int,
    /// `long`, `int64`.
    Long,
    /// `real`, `double`.
    Real,
    /// `string`.
    String,
    /// `timespan`, `time`.
    Timespan,
}

impl ScalarType {
    /// The type of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let scalar_type = match name {
            // Kusto keeps booleans in a byte.
            "bool" | "boolean" | "int8" => ScalarType::Bool,
            "datetime" | "date" => ScalarType::DateTime,
            "decimal" => ScalarType::Decimal,
            "dynamic" => ScalarType::Dynamic,
            "guid" | "uuid" | "uniqueid" => ScalarType::Guid,
            "int" | "int32" => ScalarType::Int,
            "long" | "int64" => ScalarType::Long,
            "real" | "double" => ScalarType::Real,
            "string" => ScalarType::String,
            "timespan" | "time" => ScalarType::Timespan,
            _ => return None,
        };
        Some(scalar_type)
    }

    /// The name that Kusto prints.
    pub fn name(self) -> &'static str {
        match self {
            ScalarType::Bool => "bool",
            ScalarType::DateTime => "datetime",
            ScalarType::Decimal => "decimal",
            ScalarType::Dynamic => "dynamic",
            ScalarType::Guid => "guid",
            ScalarType::Int => "int",
            ScalarType::Long => "long",
            ScalarType::Real => "real",
            ScalarType::String => "string",
            ScalarType::Timespan => "timespan",
        }
    }
}

/// A value inside `dynamic(...)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Json {
    /// What it is.
    pub kind: JsonKind,
    /// Where.
    pub span: Span,
}

/// The kinds of values inside `dynamic(...)`: JSON, and KQL's literals.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonKind {
    /// `null`.
    Null,
    /// A boolean, number or string, or a `datetime(...)`, timespan, ... of KQL.
    Literal(Literal),
    /// `[...]`.
    Array(Vec<Json>),
    /// `{...}`, in the order written.
    Object(Vec<JsonProperty>),
}

/// A property of an object inside `dynamic(...)`.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonProperty {
    /// Decoded.
    pub name: String,
    /// Its value.
    pub value: Json,
    /// Where, name and value.
    pub span: Span,
}
