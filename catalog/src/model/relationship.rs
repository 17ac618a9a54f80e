//! Relationships between tables: foreign keys of a definition, what somebody declared, and what is inferred.

use serde::{Deserialize, Serialize};

use super::TableName;

/// What columns of a new table refer to: `FOREIGN KEY (columns) REFERENCES table (referred)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    /// Columns of the new table.
    pub columns: Vec<String>,
    /// The table referred to.
    pub table: TableName,
    /// Its columns, one for each.
    pub referred: Vec<String>,
}

/// Where a relationship is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RelationshipOrigin {
    /// `REFERENCES` in the table's definition.
    ForeignKey,
    /// Somebody said so.
    Declared,
    /// Names, types and values suggest it.
    Inferred,
}

impl RelationshipOrigin {
    /// The origin as stored and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            RelationshipOrigin::ForeignKey => "foreign_key",
            RelationshipOrigin::Declared => "declared",
            RelationshipOrigin::Inferred => "inferred",
        }
    }
}

/// Two tables that join: `from` refers to `to`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Relationship {
    /// Names one that is stored; `None` for an inferred one.
    pub id: Option<i64>,
    /// The referring table.
    pub from: TableName,
    /// Its columns.
    pub from_columns: Vec<String>,
    /// The table referred to.
    pub to: TableName,
    /// Its columns, one for each of `from_columns`.
    pub to_columns: Vec<String>,
    /// Where it is known from.
    pub origin: RelationshipOrigin,
    /// From 0 to 1; 1 for what was declared.
    pub confidence: f32,
    /// What it rests on.
    pub why: String,
}

impl Relationship {
    /// `orders.customer_id = customers.id`, with `AND` between several.
    pub fn condition(&self) -> String {
        let pairs = self.from_columns.iter().zip(&self.to_columns);
        let pairs: Vec<String> =
            pairs.map(|(from, to)| format!("{}.{from} = {}.{to}", self.from.table, self.to.table)).collect();
        pairs.join(" AND ")
    }
}

/// A relationship somebody declares.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewRelationship {
    /// The referring table.
    pub from: TableName,
    /// Its columns.
    pub from_columns: Vec<String>,
    /// The table referred to.
    pub to: TableName,
    /// Its columns, one for each of `from_columns`.
    pub to_columns: Vec<String>,
}
