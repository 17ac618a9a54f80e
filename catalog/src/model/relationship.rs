//! Relationships between tables: foreign keys of a definition, declared ones, and inferred ones.

use serde::{Deserialize, Serialize};

use super::TableName;

/// A foreign key of a new table: `FOREIGN KEY (columns) REFERENCES table (referred)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    /// Its name; `None` for one made of the names of the table and the columns.
    pub name: Option<String>,
    /// Columns of the new table.
    pub columns: Vec<String>,
    /// The table referred to.
    pub table: TableName,
    /// Its columns, one for each.
    pub referred: Vec<String>,
}

/// The origin of a relationship.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RelationshipOrigin {
    /// `REFERENCES` in the table's definition.
    ForeignKey,
    /// A user declared it.
    Declared,
    /// Inferred from names, types and values.
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
    /// The id of a stored relationship; `None` for an inferred one.
    pub id: Option<i64>,
    /// The referring table.
    pub from: TableName,
    /// Its columns.
    pub from_columns: Vec<String>,
    /// The table referred to.
    pub to: TableName,
    /// Its columns, one for each of `from_columns`.
    pub to_columns: Vec<String>,
    /// Its origin.
    pub origin: RelationshipOrigin,
    /// From 0 to 1; 1 for declared relationships.
    pub confidence: f32,
    /// The evidence for it.
    pub why: String,
}

impl Relationship {
    /// The join condition: `orders.customer_id = customers.id`, with `AND` between several.
    pub fn condition(&self) -> String {
        let pairs = self.from_columns.iter().zip(&self.to_columns);
        let pairs: Vec<String> =
            pairs.map(|(from, to)| format!("{}.{from} = {}.{to}", self.from.table, self.to.table)).collect();
        pairs.join(" AND ")
    }
}

/// A relationship to declare.
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
