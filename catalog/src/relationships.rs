//! How tables join: relationships that somebody declared (`REFERENCES` in `CREATE TABLE`, or a call), and those
//! that names, types and sampled values let one infer, each with a confidence and the reason.
//!
//! Invariant: nothing here goes through the catalog. Relationships are found among tables that are looked at anyway
//! and, from those, by a bounded number of look-ups along an index; and only between tables the caller may see.

pub(crate) mod infer;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::store::{self, name_key};
use crate::{Catalog, Page, PageRequest, Principal, Result, TableName};
pub use infer::looks_like_key;

/// Tables whose neighbours are looked for in one call.
const MAX_TABLES: usize = 40;

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

/// Relationships.
impl Catalog {
    /// Records that two tables join. Saying the same again changes nothing. Errors: `table_not_found`,
    /// `column_not_found`, `invalid_object`.
    pub async fn declare_relationship(&self, who: &Principal, new: &NewRelationship) -> Result<Relationship> {
        let (who, new) = (who.clone(), new.clone());
        self.store.write_ours(move |view| store::relationships::declare(view, &who, &new)).await
    }

    /// Forgets a declared relationship. Errors: `object_not_found`.
    pub async fn drop_relationship(&self, who: &Principal, id: i64) -> Result<()> {
        let who = who.clone();
        self.store.write_ours(move |view| store::relationships::remove(view, &who, id)).await
    }

    /// The declared relationships of what the caller may see, of one table where one is named, oldest first.
    pub async fn list_relationships(
        &self,
        who: &Principal,
        table: Option<&TableName>,
        page: PageRequest,
    ) -> Result<Page<Relationship>> {
        let (who, table) = (who.clone(), table.cloned());
        self.store.view(move |view| store::relationships::list(view, &who, table.as_ref(), &page)).await
    }

    /// How the tables of a list of ids join one another: at most one relationship a pair, surest first.
    pub async fn relationships_among(&self, who: &Principal, ids: &[i64]) -> Result<Vec<Relationship>> {
        let (who, ids) = (who.clone(), ids[..ids.len().min(MAX_TABLES)].to_vec());
        self.store
            .view(move |view| {
                let tables = store::relationships::join_tables(view, &who, &ids)?;
                let edges = store::relationships::among(view, &who, &tables)?;
                store::relationships::with_evidence(view, edges)
            })
            .await
    }

    /// How the tables of a list of ids join one another and the tables around them, surest first; at most `limit`.
    /// Tables around them are those that declared relationships name, that key columns are named after, and the
    /// others of a small database.
    pub async fn relationships_around(&self, who: &Principal, ids: &[i64], limit: usize) -> Result<Vec<Relationship>> {
        let (who, ids) = (who.clone(), ids[..ids.len().min(MAX_TABLES)].to_vec());
        self.store
            .view(move |view| {
                let mut tables = store::relationships::join_tables(view, &who, &ids)?;
                let known: HashSet<i64> = tables.iter().map(|table| table.id).collect();
                let around = store::relationships::around(view, &who, &tables)?;
                tables.extend(store::relationships::join_tables(view, &who, &around)?);
                let mut edges = store::relationships::among(view, &who, &tables)?;
                edges.retain(|edge| known.contains(&edge.from) || known.contains(&edge.to));
                edges.truncate(limit);
                store::relationships::with_evidence(view, edges)
            })
            .await
    }
}

/// A relationship and the ids of its tables.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Edge {
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) relationship: Relationship,
}

/// Whether two column lists are the same, case aside.
pub(crate) fn same_columns(left: &[String], right: &[String]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| name_key(left) == name_key(right))
}
