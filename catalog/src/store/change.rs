//! A change of the catalog: one SQLite transaction that becomes one DuckLake snapshot when something in it is
//! recorded, in the words DuckDB's conflict check reads (`created_table:"db"."t"`, `inserted_into_table:7`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::object_rows::ObjectRows;
use super::pending::{self, ColumnText, Committed, PendingObject};
use super::{SnapshotView, objects};
use crate::connection::{OptionalRow, StoreConnection, params};
use crate::error::{CatalogError, Result};
use crate::model::SnapshotId;

/// The newest row of `ducklake_snapshot`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SnapshotRow {
    pub(crate) id: SnapshotId,
    schema_version: i64,
    next_catalog_id: i64,
    next_file_id: i64,
}

/// A write transaction in progress.
pub(crate) struct CatalogChange<'a> {
    connection: &'a StoreConnection,
    head: SnapshotRow,
    next_catalog_id: i64,
    next_file_id: i64,
    entries: Vec<String>,
    changes_schema: bool,
    pending: BTreeMap<i64, PendingObject>,
    committed: Committed,
}

impl<'a> CatalogChange<'a> {
    /// Starts on an open write transaction.
    pub(super) fn begin(connection: &'a StoreConnection) -> Result<Self> {
        let head = newest_snapshot(connection)?;
        Ok(Self {
            connection,
            head,
            next_catalog_id: head.next_catalog_id,
            next_file_id: head.next_file_id,
            entries: Vec::new(),
            changes_schema: false,
            pending: BTreeMap::new(),
            committed: Committed::default(),
        })
    }

    /// The transaction.
    pub(crate) fn connection(&self) -> &'a StoreConnection {
        self.connection
    }

    /// What the change sees: the snapshot it is made on, and what it wrote to our own tables. Whoever changes the catalog is
    /// authorised before, so no policy is asked.
    pub(super) fn view(&self) -> SnapshotView<'a> {
        SnapshotView { connection: self.connection, snapshot: self.base(), policies: Arc::default() }
    }

    /// The snapshot that this change is made on.
    pub(super) fn base(&self) -> SnapshotId {
        self.head.id
    }

    /// The snapshot that this change will commit.
    pub(super) fn snapshot(&self) -> SnapshotId {
        self.head.id + 1
    }

    /// Whether nothing was recorded, so that the transaction makes no new snapshot.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// An id for a new database, table, view or external table.
    pub(super) fn new_object_id(&mut self) -> i64 {
        self.next_catalog_id += 1;
        self.next_catalog_id - 1
    }

    /// An id for a new data file.
    pub(super) fn new_file_id(&mut self) -> i64 {
        self.next_file_id += 1;
        self.next_file_id - 1
    }

    /// Records that an object was created, altered or dropped.
    pub(super) fn record_schema(&mut self, entry: String) {
        self.changes_schema = true;
        self.entries.push(entry);
    }

    /// Records that rows were added or removed.
    pub(super) fn record_rows(&mut self, entry: String) {
        self.entries.push(entry);
    }

    /// The version of the lake's schema that this change makes, where it changes it.
    pub(super) fn schema_version(&self) -> i64 {
        self.head.schema_version + 1
    }

    /// Records that a table's columns are new as of this snapshot, as DuckDB does.
    pub(super) fn new_table_version(&mut self, table_id: i64) -> Result<()> {
        let mut rows = ObjectRows::default();
        rows.add_table_version(self, table_id)?;
        rows.flush(self.connection)
    }

    /// Records an object for the schema index, in this transaction.
    pub(super) fn index(&mut self, object: PendingObject) -> Result<()> {
        let recorded = pending::record(self.connection, object)?;
        self.pending.insert(recorded.object_id, recorded);
        Ok(())
    }

    /// Notes that there are rows of many objects for the schema index, of which it composes the texts later.
    pub(super) fn index_later(&mut self, has_tables: bool, has_columns: bool) {
        self.committed.has_due |= has_tables;
        self.committed.has_due_columns |= has_columns;
    }

    /// Records a column's text for the schema index, unless another column already has the same text.
    pub(super) fn index_column(&mut self, name: &str, text: String) -> Result<()> {
        let column = ColumnText::new(name, text);
        self.committed.columns.extend(pending::record_column(self.connection, column)?);
        Ok(())
    }

    /// Writes the rows of the new snapshot, if anything was recorded. The caller commits the transaction.
    pub(super) fn finish(self) -> Result<Committed> {
        if !self.entries.is_empty() {
            let schema_version = self.head.schema_version + i64::from(self.changes_schema);
            let snapshot = self.snapshot();
            let (next_catalog_id, next_file_id) = (self.next_catalog_id, self.next_file_id);
            match self.connection.is_remote() {
                // By the clock that all servers have, so that a later snapshot is not an older one.
                true => self
                    .connection
                    .prepare_cached("INSERT INTO ducklake_snapshot VALUES (?, clock_timestamp(), ?, ?, ?)")?
                    .execute(params![snapshot, schema_version, next_catalog_id, next_file_id])?,
                false => {
                    self.connection.prepare_cached("INSERT INTO ducklake_snapshot VALUES (?, ?, ?, ?, ?)")?.execute(
                        params![snapshot, snapshot_time(Utc::now()), schema_version, next_catalog_id, next_file_id],
                    )?
                }
            };
            self.connection
                .prepare_cached("INSERT INTO ducklake_snapshot_changes VALUES (?, ?, NULL, NULL, NULL)")?
                .execute(params![snapshot, self.entries.join(",")])?;
            objects::set_absorbed_snapshot(self.connection, snapshot)?;
        }
        let mut committed = self.committed;
        if !self.entries.is_empty() {
            committed.snapshot = Some(self.head.id + 1);
            committed.changes = self.entries.join(",");
        }
        committed.objects = self.pending.into_values().collect();
        committed.objects.sort_by_key(|object| object.sequence);
        Ok(committed)
    }
}

/// The newest snapshot.
pub(super) fn newest_snapshot(connection: &StoreConnection) -> Result<SnapshotRow> {
    connection
        .prepare_cached(
            "SELECT snapshot_id, schema_version, next_catalog_id, next_file_id FROM ducklake_snapshot
             ORDER BY snapshot_id DESC LIMIT 1",
        )?
        .query_row([], |row| {
            Ok(SnapshotRow {
                id: row.get(0)?,
                schema_version: row.get(1)?,
                next_catalog_id: row.get(2)?,
                next_file_id: row.get(3)?,
            })
        })
        .optional()?
        .ok_or_else(|| CatalogError::Internal("the lake holds no snapshot; restore it from a backup".into()))
}

/// A time as DuckDB writes it: `2026-11-21 23:33:45.971+00`.
pub(super) fn snapshot_time(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%d %H:%M:%S%.6f+00").to_string()
}

/// The ids of the objects that a `changes_made` string lists as altered or dropped, and the databases that were
/// dropped. Created objects are named there, not numbered; they are found by their first snapshot.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TouchedIds {
    pub(super) objects: Vec<i64>,
    pub(super) databases: Vec<i64>,
}

impl TouchedIds {
    pub(super) fn parse(changes_made: &str) -> Self {
        let mut touched = Self::default();
        for entry in split_unquoted(changes_made) {
            let Some((change, value)) = entry.split_once(':') else { continue };
            let Ok(id) = value.parse() else { continue };
            match change {
                "dropped_schema" => touched.databases.push(id),
                "dropped_table" | "dropped_view" | "altered_table" | "altered_view" => touched.objects.push(id),
                _ => {}
            }
        }
        touched
    }
}

/// The tables that commits changed, in their rows, columns or names, as `changes_made` strings list them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChangedTables {
    /// Whatever there is may be another one.
    Any,
    /// These ids, and no others that were there before.
    Only(BTreeSet<i64>),
}

impl ChangedTables {
    pub(super) fn parse(changes_made: &str) -> Self {
        let mut touched = BTreeSet::new();
        for entry in split_unquoted(changes_made) {
            let Some((change, value)) = entry.split_once(':') else { return Self::Any };
            match (change, value.parse::<i64>()) {
                // What is created has an id that nothing had before.
                ("created_schema" | "created_table" | "created_view", _) => {}
                (
                    "altered_table"
                    | "altered_view"
                    | "dropped_table"
                    | "dropped_view"
                    | "inserted_into_table"
                    | "deleted_from_table"
                    | "inlined_insert"
                    | "inlined_delete",
                    Ok(id),
                ) => {
                    touched.insert(id);
                }
                _ => return Self::Any,
            }
        }
        Self::Only(touched)
    }
}

fn split_unquoted(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut in_quotes = false;
    for (index, c) in text.char_indices() {
        match c {
            '"' => in_quotes = !in_quotes,
            ',' if !in_quotes => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_told_from_names() {
        let text = r#"created_table:"d""b,dropped_table:9"."x",dropped_table:5,altered_view:6,inserted_into_table:7,dropped_schema:2"#;
        assert_eq!(TouchedIds::parse(text), TouchedIds { objects: vec![5, 6], databases: vec![2] });
    }

    #[test]
    fn what_is_not_known_may_be_a_change_of_any_table() {
        let known =
            r#"created_table:"d""b,dropped_table:9"."x",dropped_table:5,inlined_delete:6,inserted_into_table:7"#;
        assert_eq!(ChangedTables::parse(known), ChangedTables::Only(BTreeSet::from([5, 6, 7])));
        assert_eq!(ChangedTables::parse(r#"created_schema:"a:b""#), ChangedTables::Only(BTreeSet::new()));
        for other in ["", "dropped_schema:2", "inserted_into_table:7,compacted_table:8", "altered_table:\"x\""] {
            assert_eq!(ChangedTables::parse(other), ChangedTables::Any, "{other}");
        }
    }
}
