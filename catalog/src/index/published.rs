//! What is said of the index that the servers of a shared catalog have in common: a row of the catalog for each kind of object,
//! and the list of files that it names.
//!
//! Invariant: a server takes a version only where it holds every row that the server's own index holds ([`may_take`]). So nothing
//! is lost whichever server published it, and whatever that one knew.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::connection::{OptionalRow, StoreConnection, params};
use crate::error::{CatalogError, Result};
use crate::model::EmbeddingModel;
use crate::store::pending::{IndexState, ObjectKind};
use crate::store::{index_position, set_index_reach};

/// The row of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PublishedRow {
    /// The key of its list of files; `None` where none was published yet.
    pub(super) list: Option<String>,
    /// Up to which row of the log it holds all.
    pub(super) held: i64,
    /// Up to which row another server wants it to.
    pub(super) wanted: i64,
    /// A list of which another server found files missing.
    pub(super) unusable: Option<String>,
}

/// One version of a dataset: its files, and what it was made for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PublishedFiles {
    /// Lance's version number.
    pub(super) version: u64,
    pub(super) text_version: u32,
    pub(super) model: Option<IndexedModel>,
    /// Whether every row has its vector.
    pub(super) is_embedded: bool,
    /// Up to which row of the log it holds all.
    pub(super) held: i64,
    /// By their paths in the dataset.
    pub(super) files: BTreeMap<String, PublishedFile>,
}

/// The model of the vectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IndexedModel {
    id: String,
    dimension: usize,
}

/// A file of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PublishedFile {
    /// Its key on the shelf.
    pub(super) key: String,
    pub(super) bytes: u64,
}

impl PublishedFiles {
    /// What is said of a dataset whose state was recorded.
    pub(super) fn new(state: &IndexState, held: i64, files: BTreeMap<String, PublishedFile>) -> Self {
        let model = state.model.as_ref().map(|model| IndexedModel { id: model.id.clone(), dimension: model.dimension });
        let IndexState { version, text_version, is_embedded, .. } = *state;
        Self { version, text_version, model, is_embedded, held, files }
    }

    /// The state to record of it where it lies in a folder of the index.
    pub(super) fn state(&self, folder: String) -> IndexState {
        let model =
            self.model.as_ref().map(|model| EmbeddingModel { id: model.id.clone(), dimension: model.dimension });
        IndexState {
            folder,
            version: self.version,
            text_version: self.text_version,
            model,
            is_embedded: self.is_embedded,
        }
    }
}

/// Up to which row of the log a server's own index holds all: the rows up to `copied` were taken from the log, and those from
/// `first_pending` on are yet to be written.
pub(crate) fn held_up_to(copied: i64, first_pending: Option<i64>) -> i64 {
    first_pending.map_or(copied, |first| copied.min(first - 1))
}

/// Whether a version that holds the rows up to `published` may take the place of a server's own, of which `reach` is the newest row
/// that it holds: rows are written as they get their vectors, so that an older one may still be pending.
pub(crate) fn may_take(published: i64, reach: i64) -> bool {
    published >= reach
}

/// [`held_up_to`] of a server's own rows.
pub(super) fn own_held(local: &StoreConnection, kind: ObjectKind) -> Result<i64> {
    let sql = match kind {
        ObjectKind::Table => "SELECT min(sequence) FROM querent_pending_objects",
        ObjectKind::Column => "SELECT min(text_id) FROM querent_column_text WHERE is_due = 1",
    };
    let first: Option<i64> = local.query_row(sql, [], |row| row.get(0))?;
    Ok(held_up_to(index_position(local, kind)?.unwrap_or(0), first))
}

/// Removes the rows that a dataset holds from what is pending: it is what the index reaches to.
pub(super) fn remove_held(local: &StoreConnection, kind: ObjectKind, held: i64) -> Result<()> {
    let sql = match kind {
        ObjectKind::Table => "DELETE FROM querent_pending_objects WHERE sequence <= ?",
        ObjectKind::Column => "UPDATE querent_column_text SET is_due = 0 WHERE is_due = 1 AND text_id <= ?",
    };
    local.execute(sql, [held])?;
    set_index_reach(local, kind, held)
}

/// The row of a kind, as the servers have it in common.
pub(super) fn row(shared: &StoreConnection, kind: ObjectKind) -> Result<PublishedRow> {
    let row = shared
        .prepare_cached("SELECT list, held, wanted, unusable FROM querent_published_index WHERE kind = ?")?
        .query_row([kind.as_str()], |row| {
            Ok(PublishedRow { list: row.get(0)?, held: row.get(1)?, wanted: row.get(2)?, unusable: row.get(3)? })
        })
        .optional()?;
    Ok(row.unwrap_or_default())
}

/// Makes sure that the other servers waited for one whose index is of an epoch: of a row that is gone it may never have heard. Errors:
/// `conflict` where they did not; its index is built anew.
pub(super) fn require_waited_for(shared: &StoreConnection, member: &str, epoch: i64) -> Result<()> {
    let known: Option<i64> = shared
        .prepare_cached("SELECT epoch FROM querent_member WHERE member = ?")?
        .query_row([member], |row| row.get(0))
        .optional()?;
    match known == Some(epoch) {
        true => Ok(()),
        false => Err(CatalogError::Conflict { object: "the schema index".to_owned() }),
    }
}

/// Makes a list the one that holds; for the holder of the lease alone.
pub(super) fn record(shared: &StoreConnection, kind: ObjectKind, list: &str, held: i64) -> Result<()> {
    shared
        .prepare_cached(
            "INSERT INTO querent_published_index (kind, list, held, wanted) VALUES (?1, ?2, ?3, 0)
             ON CONFLICT (kind) DO UPDATE SET list = ?2, held = ?3, unusable = NULL",
        )?
        .execute(params![kind.as_str(), list, held])?;
    Ok(())
}

/// Asks the server that writes the index to publish one that holds the rows up to `wanted`.
pub(super) fn ask(shared: &StoreConnection, kind: ObjectKind, wanted: i64) -> Result<()> {
    shared
        .prepare_cached(
            "INSERT INTO querent_published_index (kind, held, wanted) VALUES (?1, 0, ?2)
             ON CONFLICT (kind) DO UPDATE SET wanted = ?2 WHERE querent_published_index.wanted < ?2",
        )?
        .execute(params![kind.as_str(), wanted])?;
    Ok(())
}

/// Says that files of a list are missing.
pub(super) fn complain(shared: &StoreConnection, kind: ObjectKind, list: &str) -> Result<()> {
    shared
        .prepare_cached("UPDATE querent_published_index SET unusable = ?2 WHERE kind = ?1 AND list = ?2")?
        .execute(params![kind.as_str(), list])?;
    Ok(())
}
