//! The subset of Vega-Lite 5 that charts use, as types: whatever they can express is valid against Vega-Lite's own
//! schema, and a chart that a server sent can be read back and drawn.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::fields::Expression;

/// The value of `$schema`.
pub const SCHEMA: &str = "https://vega.github.io/schema/vega-lite/v5.json";
/// The data set that a client binds the rows to.
pub const TABLE: &str = "table";

/// A chart without its rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// [`SCHEMA`].
    #[serde(rename = "$schema")]
    pub schema: Cow<'static, str>,
    /// Above the chart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The name of the rows.
    pub data: NamedData,
    /// Applied to every row, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transform: Vec<Transform>,
    /// What is drawn.
    pub mark: Mark,
    /// Which fields go where.
    pub encoding: Encoding,
}

/// `{"name": "table"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedData {
    /// [`TABLE`].
    pub name: Cow<'static, str>,
}

/// A step before the rows are drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Transform {
    /// A column read as its type, under a name that Vega-Lite's field syntax can express.
    Calculate {
        /// Of which column.
        calculate: Expression,
        /// A plain name, not a field path.
        r#as: String,
    },
    /// Replaces a row with several measures by one row for each.
    Fold {
        /// Field paths.
        fold: Vec<String>,
        /// The measure's name and its value.
        r#as: [String; 2],
    },
}

/// What is drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Its shape.
    pub r#type: MarkType,
    /// Whether a pointer shows the values.
    #[serde(default)]
    pub tooltip: bool,
    /// Whether a line shows its points.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub point: bool,
}

/// The shapes of the subset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MarkType {
    /// A bar from zero.
    Bar,
    /// A line through values in order.
    Line,
    /// A line, filled to zero.
    Area,
    /// A point for each row.
    Point,
}

/// Which field goes where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Encoding {
    /// From left to right.
    pub x: Channel,
    /// Upwards.
    pub y: Channel,
    /// Bars side by side within a place on x.
    #[serde(rename = "xOffset", default, skip_serializing_if = "Option::is_none")]
    pub x_offset: Option<Channel>,
    /// Bars side by side within a place on y.
    #[serde(rename = "yOffset", default, skip_serializing_if = "Option::is_none")]
    pub y_offset: Option<Channel>,
    /// A colour for each value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<Channel>,
}

/// A field and how it is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    /// A field path: a name with its special characters escaped.
    pub field: String,
    /// How its values are placed.
    pub r#type: FieldType,
    /// The column's plain name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// In which order discrete values stand.
    #[serde(default, skip_serializing_if = "Sort::is_natural")]
    pub sort: Sort,
    /// What differs from the usual scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
}

/// Vega-Lite's types of measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldType {
    /// A number.
    Quantitative,
    /// An instant.
    Temporal,
    /// Discrete, with an order.
    Ordinal,
    /// Discrete.
    Nominal,
}

/// The order of discrete values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    /// By value; not written.
    #[default]
    Natural,
    /// As the rows come: `null`.
    AsRows,
}

impl Sort {
    fn is_natural(&self) -> bool {
        *self == Sort::Natural
    }
}

impl Serialize for Sort {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Sort::Natural => "ascending".serialize(serializer),
            Sort::AsRows => serializer.serialize_none(),
        }
    }
}

impl<'de> Deserialize<'de> for Sort {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written: Option<String> = Option::deserialize(deserializer)?;
        Ok(if written.is_some() { Sort::Natural } else { Sort::AsRows })
    }
}

/// What differs from the usual scale.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scale {
    /// Instants are shown in UTC, whatever the reader's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#type: Option<ScaleType>,
    /// Whether zero is always shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero: Option<bool>,
}

/// Scales that are not the usual one of their type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScaleType {
    /// Time in UTC.
    Utc,
}
