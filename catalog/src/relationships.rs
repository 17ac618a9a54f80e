//! How tables join: declared relationships (`REFERENCES` in `CREATE TABLE`, or a call), and relationships that are
//! inferred from names, types and sampled values, each with a confidence and a reason.
//!
//! Invariant: nothing here enumerates the catalog. Relationships are found among given tables and, starting from those,
//! by a bounded number of index look-ups; and only between tables that the caller may see.

pub(crate) mod infer;
pub(crate) mod joins;
mod rows;

use std::collections::HashSet;

use crate::error::Result;
use crate::model::{NewRelationship, Page, PageRequest, Relationship, TableName};
use crate::principal::Principal;
use crate::store::{Store, name_key};
pub use infer::looks_like_key;

/// The most tables whose relationships are computed in one call.
const MAX_TABLES: usize = 40;

/// Relationships between tables. Made by [`Catalog::relationships`](crate::Catalog::relationships).
#[derive(Clone, Copy)]
pub struct CatalogRelationships<'a> {
    pub(crate) store: &'a Store,
}

impl CatalogRelationships<'_> {
    /// Declares that two tables join. Declaring the same again changes nothing. Errors: `table_not_found`,
    /// `column_not_found`, `invalid_object`.
    pub async fn declare(self, who: &Principal, new: &NewRelationship) -> Result<Relationship> {
        let (who, new) = (who.clone(), new.clone());
        self.store.write_ours(move |view| rows::declare(view, &who, &new)).await
    }

    /// Deletes a declared relationship. Errors: `object_not_found`.
    pub async fn drop(self, who: &Principal, id: i64) -> Result<()> {
        let who = who.clone();
        self.store.write_ours(move |view| rows::remove(view, &who, id)).await
    }

    /// The declared relationships that the caller may see, of all tables or of one, oldest first.
    pub async fn list(
        self,
        who: &Principal,
        table: Option<&TableName>,
        page: PageRequest,
    ) -> Result<Page<Relationship>> {
        let (who, table) = (who.clone(), table.cloned());
        self.store.view(move |view| rows::list(view, &who, table.as_ref(), &page)).await
    }

    /// How the tables with these ids join one another: at most one relationship per pair, by descending confidence.
    pub async fn among(self, who: &Principal, ids: &[i64]) -> Result<Vec<Relationship>> {
        let (who, ids) = (who.clone(), ids[..ids.len().min(MAX_TABLES)].to_vec());
        self.store
            .view(move |view| {
                let tables = joins::join_tables(view, &who, &ids)?;
                let edges = joins::among(view, &who, &tables)?;
                joins::with_evidence(view, &who, edges)
            })
            .await
    }

    /// How the tables with these ids join one another and their neighbors, by descending confidence; at most `limit`.
    /// Neighbors are the tables that declared relationships name, that key columns are named after, and the other
    /// tables of a small database.
    pub async fn with_neighbors(self, who: &Principal, ids: &[i64], limit: usize) -> Result<Vec<Relationship>> {
        let (who, ids) = (who.clone(), ids[..ids.len().min(MAX_TABLES)].to_vec());
        self.store
            .view(move |view| {
                let mut tables = joins::join_tables(view, &who, &ids)?;
                let known: HashSet<i64> = tables.iter().map(|table| table.id).collect();
                let neighbors = joins::neighbors(view, &who, &tables)?;
                tables.extend(joins::join_tables(view, &who, &neighbors)?);
                let mut edges = joins::among(view, &who, &tables)?;
                edges.retain(|edge| known.contains(&edge.from) || known.contains(&edge.to));
                edges.truncate(limit);
                joins::with_evidence(view, &who, edges)
            })
            .await
    }
}

/// A relationship and the ids of its tables.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JoinEdge {
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) relationship: Relationship,
}

/// Whether two column lists are the same, ignoring case.
pub(crate) fn same_columns(left: &[String], right: &[String]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| name_key(left) == name_key(right))
}
