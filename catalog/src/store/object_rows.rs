//! The rows of new tables: in the lake, and beside it. A statement that makes many tables, or one of many columns, inserts the
//! rows of each kind together ([`RowInserts`]).
//!
//! Invariant: they are in the catalog after [`ObjectRows::flush`] only.

use super::change::CatalogChange;
use super::columns::COMMENT_KEY;
use super::names::name_key;
use super::objects::ObjectName;
use super::pending::{self, ColumnText};
use crate::connection::{RowInserts, StoreConnection, params};
use crate::error::Result;

/// Rows of new objects that are to be inserted.
pub(super) struct ObjectRows {
    /// `ducklake_table`: id, UUID, snapshot, database, name, path, whether it is relative.
    pub(super) tables: RowInserts,
    /// `ducklake_column`: id, snapshot, table, order, name, type, whether it takes nulls, parent, kind of default.
    pub(super) columns: RowInserts,
    /// `querent_vector_column`: table, column, dimension.
    pub(super) vectors: RowInserts,
    /// `querent_external_table`: id, UUID, snapshot, database, name, definition.
    pub(super) external_tables: RowInserts,
    /// `querent_object_schema`: object, schema.
    pub(super) schemas: RowInserts,
    /// `querent_described_column`: key, object, name.
    pub(super) described_columns: RowInserts,
    schema_versions: RowInserts,
    comments: RowInserts,
    column_comments: RowInserts,
    objects: RowInserts,
    table_texts: RowInserts,
    column_texts: RowInserts,
}

impl Default for ObjectRows {
    fn default() -> Self {
        Self {
            tables: RowInserts::new("INSERT INTO ducklake_table VALUES", "(?, ?, ?, NULL, ?, ?, ?, ?)"),
            columns: RowInserts::new(
                "INSERT INTO ducklake_column VALUES",
                "(?, ?, NULL, ?, ?, ?, ?, NULL, 'NULL', ?, ?, ?, 'duckdb')",
            ),
            vectors: RowInserts::new("INSERT INTO querent_vector_column VALUES", "(?, ?, ?)"),
            external_tables: RowInserts::new("INSERT INTO querent_external_table VALUES", "(?, ?, ?, NULL, ?, ?, ?)"),
            schemas: RowInserts::new("INSERT INTO querent_object_schema VALUES", "(?, ?)"),
            described_columns: RowInserts::new("INSERT INTO querent_described_column VALUES", "(?, ?, ?)"),
            schema_versions: RowInserts::new("INSERT INTO ducklake_schema_versions VALUES", "(?, ?, ?)"),
            comments: RowInserts::new("INSERT INTO ducklake_tag VALUES", "(?, ?, NULL, ?, ?)"),
            column_comments: RowInserts::new("INSERT INTO ducklake_column_tag VALUES", "(?, ?, ?, NULL, ?, ?)"),
            objects: RowInserts::with_end(
                "INSERT INTO querent_object (object_id, schema_id, database_key, key, key_reversed, name, kind, comment)
                 VALUES",
                "(?, ?, ?, ?, ?, ?, ?, ?)",
                " ON CONFLICT (object_id) DO UPDATE SET
                     schema_id = excluded.schema_id, database_key = excluded.database_key, key = excluded.key,
                     key_reversed = excluded.key_reversed, name = excluded.name, kind = excluded.kind,
                     comment = excluded.comment",
            ),
            table_texts: pending::table_texts(),
            column_texts: pending::column_texts(),
        }
    }
}

impl ObjectRows {
    /// The columns of a managed table are new as of a change's snapshot, as DuckDB records it.
    pub(super) fn add_table_version(&mut self, change: &CatalogChange<'_>, table_id: i64) -> Result<()> {
        let version = params![change.snapshot(), change.schema_version(), table_id];
        Ok(self.schema_versions.add(change.connection(), version)?)
    }

    /// The comment of an object that has none.
    pub(super) fn add_comment(&mut self, change: &CatalogChange<'_>, object_id: i64, comment: &str) -> Result<()> {
        let comment = params![object_id, change.snapshot(), COMMENT_KEY, comment];
        Ok(self.comments.add(change.connection(), comment)?)
    }

    /// The comment of a column that has none.
    pub(super) fn add_column_comment(
        &mut self,
        change: &CatalogChange<'_>,
        object_id: i64,
        column_id: i64,
        comment: &str,
    ) -> Result<()> {
        let comment = params![object_id, column_id, change.snapshot(), COMMENT_KEY, comment];
        Ok(self.column_comments.add(change.connection(), comment)?)
    }

    /// What is listed of an object, in place of what was.
    pub(super) fn add_object(
        &mut self,
        connection: &StoreConnection,
        schema_id: i64,
        object: &ObjectName<'_>,
    ) -> Result<()> {
        let key = name_key(&object.name.table);
        let key_reversed: String = key.chars().rev().collect();
        let database_key = name_key(&object.name.database);
        let (name, kind) = (&object.name.table, object.kind.as_str());
        let row = params![object.id, schema_id, database_key, key, key_reversed, name, kind, object.comment];
        Ok(self.objects.add(connection, row)?)
    }

    /// A new table's text for the schema index, which composes it later where there is none.
    pub(super) fn add_table_text(
        &mut self,
        connection: &StoreConnection,
        object_id: i64,
        database_id: i64,
        text: Option<&str>,
    ) -> Result<()> {
        Ok(self.table_texts.add(connection, params![object_id, database_id, text, text.is_none()])?)
    }

    /// A column's text, unless another column has the same.
    pub(super) fn add_column_text(&mut self, connection: &StoreConnection, column: &ColumnText<'_>) -> Result<()> {
        pending::add_column_text(&mut self.column_texts, connection, column)
    }

    /// Inserts the rows that wait.
    pub(super) fn flush(&mut self, connection: &StoreConnection) -> Result<()> {
        let Self {
            tables,
            columns,
            vectors,
            external_tables,
            schemas,
            described_columns,
            schema_versions,
            comments,
            column_comments,
            objects,
            table_texts,
            column_texts,
        } = self;
        let of_lake = [tables, columns, schema_versions, comments, column_comments];
        let ours = [vectors, external_tables, schemas, described_columns, objects, table_texts, column_texts];
        for rows in of_lake.into_iter().chain(ours) {
            rows.flush(connection)?;
        }
        Ok(())
    }

    /// Whether the schema index has to take in tables, and column texts. Of what was flushed.
    pub(super) fn has_texts(&self) -> (bool, bool) {
        (self.table_texts.inserted() > 0, self.column_texts.inserted() > 0)
    }
}
