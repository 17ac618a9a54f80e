//! How tables join: relationships that somebody declared (`REFERENCES` in `CREATE TABLE`, or a call), and those
//! that names, types and sampled values let one infer, each with a confidence and the reason.
//!
//! Invariant: nothing here goes through the catalog. Relationships are found among tables that are looked at anyway
//! and, from those, by a bounded number of look-ups along an index; and only between tables the caller may see.

pub(crate) mod infer;
pub(crate) mod joins;
mod rows;

use std::collections::HashSet;

use crate::error::Result;
use crate::model::{NewRelationship, Page, PageRequest, Relationship, TableName};
use crate::principal::Principal;
use crate::store::{Store, name_key};
pub use infer::looks_like_key;

/// Tables whose neighbours are looked for in one call.
const MAX_TABLES: usize = 40;

/// Relationships between tables. Made by [`Catalog::relationships`](crate::Catalog::relationships).
#[derive(Clone, Copy)]
pub struct CatalogRelationships<'a> {
    pub(crate) store: &'a Store,
}

impl CatalogRelationships<'_> {
    /// Records that two tables join. Saying the same again changes nothing. Errors: `table_not_found`,
    /// `column_not_found`, `invalid_object`.
    pub async fn declare(self, who: &Principal, new: &NewRelationship) -> Result<Relationship> {
        let (who, new) = (who.clone(), new.clone());
        self.store.write_ours(move |view| rows::declare(view, &who, &new)).await
    }

    /// Forgets a declared relationship. Errors: `object_not_found`.
    pub async fn drop(self, who: &Principal, id: i64) -> Result<()> {
        let who = who.clone();
        self.store.write_ours(move |view| rows::remove(view, &who, id)).await
    }

    /// The declared relationships of what the caller may see, of one table where one is named, oldest first.
    pub async fn list(
        self,
        who: &Principal,
        table: Option<&TableName>,
        page: PageRequest,
    ) -> Result<Page<Relationship>> {
        let (who, table) = (who.clone(), table.cloned());
        self.store.view(move |view| rows::list(view, &who, table.as_ref(), &page)).await
    }

    /// How the tables of a list of ids join one another: at most one relationship a pair, surest first.
    pub async fn among(self, who: &Principal, ids: &[i64]) -> Result<Vec<Relationship>> {
        let (who, ids) = (who.clone(), ids[..ids.len().min(MAX_TABLES)].to_vec());
        self.store
            .view(move |view| {
                let tables = joins::join_tables(view, &who, &ids)?;
                let edges = joins::among(view, &who, &tables)?;
                joins::with_evidence(view, edges)
            })
            .await
    }

    /// How the tables of a list of ids join one another and the tables around them, surest first; at most `limit`.
    /// Tables around them are those that declared relationships name, that key columns are named after, and the
    /// others of a small database.
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
                joins::with_evidence(view, edges)
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

/// Whether two column lists are the same, case aside.
pub(crate) fn same_columns(left: &[String], right: &[String]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| name_key(left) == name_key(right))
}
