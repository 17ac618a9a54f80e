//! Objects that were committed to the catalog and have not reached the Lance index yet.
//!
//! Every transaction that creates, renames, comments or drops an object calls [`record`] for it, so that the row
//! commits with the change; after the commit the store hands what `record` returned to the index. The index deletes a row ([`remove`]) once Lance holds it. One row an object:
//! a later change replaces the earlier one under a new sequence number, so a removal can never lose it.
//!
//! Rows are removed in the transaction that records the Lance version holding them ([`IndexState`]). Lance does not
//! sync its files; an index folder that is older than the recorded version after a power cut is thereby seen, and
//! rebuilt.

use rusqlite::{Connection, OptionalExtension, params};

use super::embed::EmbeddingModel;
use crate::Result;

/// Creates the tables. Part of the store's migrations.
pub const PENDING_DDL: &str = "
CREATE TABLE IF NOT EXISTS querent_pending_objects (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    object_id BIGINT NOT NULL UNIQUE,
    kind VARCHAR NOT NULL,
    database_id BIGINT NOT NULL,
    text VARCHAR
);
CREATE TABLE IF NOT EXISTS querent_index_state (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    folder VARCHAR NOT NULL,
    version BIGINT NOT NULL,
    text_version BIGINT NOT NULL,
    model_id VARCHAR,
    dimension BIGINT
);
";

/// Lets rows without a text say that it is due. Part of the store's migrations.
pub const PENDING_DUE_DDL: &str = "ALTER TABLE querent_pending_objects ADD COLUMN is_due BIGINT NOT NULL DEFAULT 0;";

/// What kind of object an index row describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// A table, external table or view.
    Table,
}

impl ObjectKind {
    /// The kind as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            ObjectKind::Table => "table",
        }
    }
}

/// One committed change of an object. The default sequence, 0, means not recorded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingObject {
    /// Order of commit; assigned by [`record`].
    pub sequence: i64,
    /// What it is.
    pub kind: ObjectKind,
    /// The object's catalog id ([`crate::TableInfo::id`]).
    pub object_id: i64,
    /// The database it belongs to ([`crate::DatabaseInfo::id`]).
    pub database_id: i64,
    /// Its text ([`crate::index::text::table_text`]), or `None` when it was dropped or is due.
    pub text: Option<String>,
    /// The text is to be composed from the catalog.
    pub is_due: bool,
}

/// What a transaction committed that the index has to learn.
#[derive(Debug, Default)]
pub struct Committed {
    /// Objects with their texts, by sequence.
    pub objects: Vec<PendingObject>,
    /// Whether there are more in `querent_pending_objects`, whose texts are due.
    pub has_due: bool,
}

impl Committed {
    /// Whether there is nothing to learn.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && !self.has_due
    }
}

impl PendingObject {
    /// A table that was created or changed.
    pub fn table(object_id: i64, database_id: i64, text: String) -> Self {
        Self { sequence: 0, kind: ObjectKind::Table, object_id, database_id, text: Some(text), is_due: false }
    }

    /// A table that was registered with many others.
    pub fn due_table(object_id: i64, database_id: i64) -> Self {
        Self { is_due: true, ..Self::dropped_table(object_id, database_id) }
    }

    /// A table that was dropped.
    pub fn dropped_table(object_id: i64, database_id: i64) -> Self {
        Self { sequence: 0, kind: ObjectKind::Table, object_id, database_id, text: None, is_due: false }
    }
}

/// Records a change inside the transaction that makes it, and returns it with its sequence number.
pub fn record(transaction: &Connection, object: PendingObject) -> Result<PendingObject> {
    transaction
        .prepare_cached(
            "INSERT OR REPLACE INTO querent_pending_objects (object_id, kind, database_id, text, is_due)
             VALUES (?, ?, ?, ?, ?)",
        )?
        .execute(params![object.object_id, object.kind.as_str(), object.database_id, object.text, object.is_due])?;
    Ok(PendingObject { sequence: transaction.last_insert_rowid(), ..object })
}

/// How many rows there are.
pub fn count(connection: &Connection) -> Result<u64> {
    let count: i64 = connection.query_row("SELECT COUNT(*) FROM querent_pending_objects", [], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

/// Removes rows that Lance holds. A row that was replaced since has another sequence number and stays.
pub fn remove(transaction: &Connection, sequences: impl IntoIterator<Item = i64>) -> Result<()> {
    let mut statement = transaction.prepare_cached("DELETE FROM querent_pending_objects WHERE sequence = ?")?;
    for sequence in sequences {
        statement.execute([sequence])?;
    }
    Ok(())
}

/// At most `limit` rows after `after`, oldest first.
pub fn page(connection: &Connection, after: i64, limit: usize) -> Result<Vec<PendingObject>> {
    let mut statement = connection.prepare_cached(
        "SELECT sequence, object_id, database_id, text, is_due FROM querent_pending_objects
         WHERE sequence > ? ORDER BY sequence LIMIT ?",
    )?;
    let rows = statement.query_map(params![after, limit as i64], |row| {
        Ok(PendingObject {
            sequence: row.get(0)?,
            kind: ObjectKind::Table,
            object_id: row.get(1)?,
            database_id: row.get(2)?,
            text: row.get(3)?,
            is_due: row.get(4)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The newest sequence number ever given out: what an index built from the catalog now is consistent with.
pub fn newest_sequence(connection: &Connection) -> Result<i64> {
    let newest = connection
        .query_row("SELECT seq FROM sqlite_sequence WHERE name = 'querent_pending_objects'", [], |row| row.get(0))
        .optional()?;
    Ok(newest.unwrap_or(0))
}

/// Which Lance dataset is the index, and what it was when pending rows were last removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexState {
    /// Folder name inside the index folder.
    pub folder: String,
    /// Lance version; an older dataset has lost rows.
    pub version: u64,
    /// [`crate::index::text::TEXT_VERSION`] of its rows.
    pub text_version: u32,
    /// The model its vector column was made for; `None` when it has no such column.
    pub model: Option<EmbeddingModel>,
}

/// The recorded state, if an index was ever built.
pub fn index_state(connection: &Connection) -> Result<Option<IndexState>> {
    let state = connection
        .query_row(
            "SELECT folder, version, text_version, model_id, dimension FROM querent_index_state WHERE id = 1",
            [],
            |row| {
                let model_id: Option<String> = row.get(3)?;
                let dimension: Option<u32> = row.get(4)?;
                Ok(IndexState {
                    folder: row.get(0)?,
                    version: row.get::<_, i64>(1)? as u64,
                    text_version: row.get(2)?,
                    model: model_id
                        .zip(dimension)
                        .map(|(id, dimension)| EmbeddingModel { id, dimension: dimension as usize }),
                })
            },
        )
        .optional()?;
    Ok(state)
}

/// Records the state.
pub fn set_index_state(transaction: &Connection, state: &IndexState) -> Result<()> {
    transaction.execute(
        "INSERT OR REPLACE INTO querent_index_state (id, folder, version, text_version, model_id, dimension)
         VALUES (1, ?, ?, ?, ?, ?)",
        params![
            state.folder,
            state.version as i64,
            state.text_version,
            state.model.as_ref().map(|model| &model.id),
            state.model.as_ref().map(|model| model.dimension as i64),
        ],
    )?;
    Ok(())
}
