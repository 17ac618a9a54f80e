//! Objects that were committed to the catalog and have not reached the Lance index yet.
//!
//! Every transaction that creates, renames, comments or drops an object calls [`record`] for it, so that the row
//! commits with the change; after the commit the store hands what `record` returned to the index. The index deletes a
//! row ([`remove`]) once Lance holds it. There is one row per object: a later change replaces the earlier one under a
//! new sequence number, so a removal can never lose it.
//!
//! Rows are removed in the transaction that records the Lance version holding them ([`IndexState`]). Lance does not
//! sync its files; after a power cut, an index folder that is older than the recorded version is recognised by that and
//! rebuilt.

use sha2::{Digest, Sha256};

use super::search_text::split_words;
use crate::connection::{DatabaseResult, OptionalRow, RowInserts, StoreConnection, params};
use crate::error::Result;
use crate::model::{EmbeddingModel, SnapshotId};

/// Bytes of a text's SHA-256 by which it is distinguished from other texts.
pub(crate) const TEXT_HASH_BYTES: usize = 16;

/// What kind of object an index row describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ObjectKind {
    /// A table, external table or view.
    Table,
    /// A column text: the name, type and comment that any number of columns share.
    Column,
}

impl ObjectKind {
    /// The kind as stored.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            ObjectKind::Table => "table",
            ObjectKind::Column => "column",
        }
    }
}

/// One committed change of an object. The default sequence, 0, means not recorded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingObject {
    /// Order of commit; assigned by [`record`].
    pub(crate) sequence: i64,
    /// What it is.
    pub(crate) kind: ObjectKind,
    /// The object's catalog id ([`crate::model::TableInfo::id`]).
    pub(crate) object_id: i64,
    /// The database it belongs to ([`crate::model::DatabaseInfo::id`]).
    pub(crate) database_id: i64,
    /// Its text ([`super::search_text::table_text`]), or `None` when it was dropped or is due.
    pub(crate) text: Option<String>,
    /// Whether the text still has to be composed from the catalog.
    pub(crate) is_due: bool,
}

/// What a transaction committed and the index has to take in.
#[derive(Debug, Default)]
pub(crate) struct Committed {
    /// Tables with their texts, by sequence.
    pub(crate) objects: Vec<PendingObject>,
    /// Column texts that no column had before.
    pub(crate) columns: Vec<PendingObject>,
    /// Whether there are more tables in `querent_pending_objects`, whose texts are due.
    pub(crate) has_due: bool,
    /// Whether there are more column texts that are due.
    pub(crate) has_due_columns: bool,
    /// The snapshot that it made, if it made one, and what changed with it, in DuckLake's words.
    pub(crate) snapshot: Option<SnapshotId>,
    pub(crate) changes: String,
}

impl Committed {
    /// Whether the index has nothing to take in.
    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.columns.is_empty() && !self.has_due && !self.has_due_columns
    }
}

impl PendingObject {
    /// A table that was created or changed.
    pub(crate) fn table(object_id: i64, database_id: i64, text: String) -> Self {
        Self { sequence: 0, kind: ObjectKind::Table, object_id, database_id, text: Some(text), is_due: false }
    }

    /// A column text.
    fn column(text_id: i64, text: String) -> Self {
        let kind = ObjectKind::Column;
        Self { sequence: text_id, kind, object_id: text_id, database_id: 0, text: Some(text), is_due: false }
    }

    /// A table that was dropped.
    pub(crate) fn dropped_table(object_id: i64, database_id: i64) -> Self {
        Self { sequence: 0, kind: ObjectKind::Table, object_id, database_id, text: None, is_due: false }
    }
}

/// Records a change inside the transaction that makes it, and returns it with its sequence number.
pub(crate) fn record(transaction: &StoreConnection, object: PendingObject) -> Result<PendingObject> {
    // A change of a row would keep its sequence number.
    transaction
        .prepare_cached("DELETE FROM querent_pending_objects WHERE object_id = ?")?
        .execute([object.object_id])?;
    let sequence = transaction
        .prepare_cached(
            "INSERT INTO querent_pending_objects (object_id, kind, database_id, text, is_due) VALUES (?, ?, ?, ?, ?)
             RETURNING sequence",
        )?
        .query_row(
            params![object.object_id, object.kind.as_str(), object.database_id, object.text, object.is_due],
            |row| row.get(0),
        )?;
    Ok(PendingObject { sequence, ..object })
}

/// The hash by which a text is distinguished from others.
pub(crate) fn text_hash(text: &str) -> [u8; TEXT_HASH_BYTES] {
    let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    std::array::from_fn(|position| digest[position])
}

/// A column text and its hash.
pub(crate) struct ColumnText<'a> {
    name: &'a str,
    text: String,
    hash: [u8; TEXT_HASH_BYTES],
}

impl<'a> ColumnText<'a> {
    /// The text of the columns of a name.
    pub(crate) fn new(name: &'a str, text: String) -> Self {
        let hash = text_hash(&format!("{name}\0{text}"));
        Self { name, text, hash }
    }

    /// The hash.
    pub(crate) fn hash(&self) -> [u8; TEXT_HASH_BYTES] {
        self.hash
    }
}

/// Rows of tables that were registered with many others: the object's id and its database's, the text or that it is due.
pub(super) fn table_texts() -> RowInserts {
    RowInserts::new(
        "INSERT INTO querent_pending_objects (object_id, kind, database_id, text, is_due) VALUES",
        "(?, 'table', ?, ?, ?)",
    )
}

/// Rows of column texts, of which those that are known already are left alone.
pub(super) fn column_texts() -> RowInserts {
    RowInserts::with_end(
        "INSERT INTO querent_column_text (hash, name, words, text, is_due) VALUES",
        "(?, ?, ?, ?, 1)",
        " ON CONFLICT DO NOTHING",
    )
}

/// Adds a text to [`column_texts`].
pub(super) fn add_column_text(
    rows: &mut RowInserts,
    connection: &StoreConnection,
    column: &ColumnText<'_>,
) -> Result<()> {
    Ok(rows.add(connection, params![column.hash, column.name, words_key(column.name), column.text])?)
}

/// Records a column text if it is new, and returns it in that case. Its id is its sequence number: it never changes.
pub(crate) fn record_column(transaction: &StoreConnection, column: ColumnText<'_>) -> Result<Option<PendingObject>> {
    let text_id = transaction
        .prepare_cached(
            "INSERT INTO querent_column_text (hash, name, words, text, is_due) VALUES (?, ?, ?, ?, 1)
             ON CONFLICT DO NOTHING RETURNING text_id",
        )?
        .query_row(params![column.hash, column.name, words_key(column.name), column.text], |row| row.get(0))
        .optional()?;
    Ok(text_id.map(|text_id| PendingObject::column(text_id, column.text)))
}

/// Other column names that consist of the same words as `name`, at most `limit`.
pub(crate) fn similar_column_names(connection: &StoreConnection, name: &str, limit: usize) -> Result<Vec<String>> {
    let mut statement = connection
        .prepare_cached("SELECT DISTINCT name FROM querent_column_text WHERE words = ? AND name <> ? LIMIT ?")?;
    let names = statement.query_map(params![words_key(name), name, limit as i64], |row| row.get(0))?;
    Ok(names.collect::<DatabaseResult<_>>()?)
}

/// A name's words, concatenated in lower case: the same for all its spellings.
fn words_key(name: &str) -> String {
    split_words(name).concat().to_lowercase()
}

/// How many objects of a kind are pending.
pub(crate) fn count(connection: &StoreConnection, kind: ObjectKind) -> Result<u64> {
    let sql = match kind {
        ObjectKind::Table => "SELECT COUNT(*) FROM querent_pending_objects",
        ObjectKind::Column => "SELECT COUNT(*) FROM querent_column_text WHERE is_due = 1",
    };
    let count: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

/// Removes objects that Lance holds now. A row that was replaced since has another sequence number and stays.
pub(crate) fn remove(
    transaction: &StoreConnection,
    kind: ObjectKind,
    sequences: impl IntoIterator<Item = i64>,
) -> Result<()> {
    let mut statement = transaction.prepare_cached(match kind {
        ObjectKind::Table => "DELETE FROM querent_pending_objects WHERE sequence = ?",
        ObjectKind::Column => "UPDATE querent_column_text SET is_due = 0 WHERE text_id = ?",
    })?;
    for sequence in sequences {
        statement.execute([sequence])?;
    }
    Ok(())
}

/// At most `limit` tables after `after`, oldest first.
pub(crate) fn page(connection: &StoreConnection, after: i64, limit: usize) -> Result<Vec<PendingObject>> {
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
    Ok(rows.collect::<DatabaseResult<_>>()?)
}

/// At most `limit` column texts after `after`, by id; only those that are due, or all.
pub(crate) fn column_page(
    connection: &StoreConnection,
    after: i64,
    limit: usize,
    only_due: bool,
) -> Result<Vec<PendingObject>> {
    let mut statement = connection.prepare_cached(match only_due {
        true => {
            "SELECT text_id, text FROM querent_column_text INDEXED BY querent_ix_column_text_due
             WHERE is_due = 1 AND text_id > ? ORDER BY text_id LIMIT ?"
        }
        false => "SELECT text_id, text FROM querent_column_text WHERE text_id > ? ORDER BY text_id LIMIT ?",
    })?;
    let rows =
        statement.query_map(params![after, limit as i64], |row| Ok(PendingObject::column(row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<DatabaseResult<_>>()?)
}

/// The column name of a column text, and the text; `None` for an unknown id.
pub(crate) fn named_column_text(connection: &StoreConnection, text_id: i64) -> Result<Option<(String, String)>> {
    let mut statement = connection.prepare_cached("SELECT name, text FROM querent_column_text WHERE text_id = ?")?;
    Ok(statement.query_row([text_id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
}

/// How many column texts there are.
pub(crate) fn column_text_count(connection: &StoreConnection) -> Result<u64> {
    let count: i64 = connection.query_row("SELECT COUNT(*) FROM querent_column_text", [], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

/// The newest sequence number ever assigned: an index built from the catalog now is consistent with it.
pub(crate) fn newest_sequence(connection: &StoreConnection) -> Result<i64> {
    Ok(connection.newest_number("querent_pending_objects", "sequence")?)
}

/// Which Lance dataset is the index, and its state when pending rows were last removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexState {
    /// Folder name inside the index folder.
    pub(crate) folder: String,
    /// Lance version; an older dataset has lost rows.
    pub(crate) version: u64,
    /// [`super::search_text::TEXT_VERSION`] of its rows.
    pub(crate) text_version: u32,
    /// The model its vector column was made for; `None` when it has no such column.
    pub(crate) model: Option<EmbeddingModel>,
    /// Whether every row has its vector.
    pub(crate) is_embedded: bool,
}

impl IndexState {
    /// Whether a dataset of a Lance version has all rows that were removed from what is pending.
    pub(crate) fn is_held_by(&self, version: u64) -> bool {
        version >= self.version
    }
}

/// The recorded state of a kind's dataset, if it was ever built.
pub(crate) fn index_state(connection: &StoreConnection, kind: ObjectKind) -> Result<Option<IndexState>> {
    let state = connection
        .query_row(
            "SELECT folder, version, text_version, model_id, dimension, is_embedded FROM querent_index WHERE kind = ?",
            [kind.as_str()],
            |row| {
                let model_id: Option<String> = row.get(3)?;
                let dimension: Option<u32> = row.get(4)?;
                Ok(IndexState {
                    folder: row.get(0)?,
                    version: row.get::<i64>(1)? as u64,
                    text_version: row.get(2)?,
                    model: model_id
                        .zip(dimension)
                        .map(|(id, dimension)| EmbeddingModel { id, dimension: dimension as usize }),
                    is_embedded: row.get(5)?,
                })
            },
        )
        .optional()?;
    Ok(state)
}

/// Records the state.
pub(crate) fn set_index_state(transaction: &StoreConnection, kind: ObjectKind, state: &IndexState) -> Result<()> {
    transaction.execute(
        "INSERT INTO querent_index (kind, folder, version, text_version, model_id, dimension, is_embedded)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (kind) DO UPDATE SET
             folder = ?2, version = ?3, text_version = ?4, model_id = ?5, dimension = ?6, is_embedded = ?7",
        params![
            kind.as_str(),
            state.folder,
            state.version as i64,
            state.text_version,
            state.model.as_ref().map(|model| &model.id),
            state.model.as_ref().map(|model| model.dimension as i64),
            state.is_embedded,
        ],
    )?;
    Ok(())
}
