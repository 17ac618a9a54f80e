//! Looks columns up by name across all tables. Columns of managed tables are rows of `ducklake_column`, under an index
//! of ours; those of views and external tables have a row each in `querent_described_column`.

use std::collections::BTreeMap;

use super::SnapshotView;
use super::change::newest_snapshot;
use super::names::name_key;
use super::object_rows::ObjectRows;
use super::pending::ColumnText;
use super::relations::{self, RelationLoader};
use super::search_text::column_text;
use super::visible::{VisibleObjects, object_condition};
use crate::connection::{DatabaseResult, StoreConnection, params};
use crate::error::Result;
use crate::model::TableKind;

/// Columns of one name that are read at most, so that a caller who may see few of a common name's columns does not
/// cause all of them to be read.
const MAX_LOOKED_AT: usize = 50_000;

/// Adds the columns of a new view or external table.
pub(super) fn insert_described<'a>(
    connection: &StoreConnection,
    rows: &mut ObjectRows,
    object_id: i64,
    names: impl IntoIterator<Item = &'a String>,
) -> Result<()> {
    // Of names that differ by case only, the last one.
    let by_key: BTreeMap<String, &String> = names.into_iter().map(|name| (name_key(name), name)).collect();
    for (key, name) in by_key {
        rows.described_columns.add(connection, params![key, object_id, name])?;
    }
    Ok(())
}

/// Deletes the columns of a view or external table that is being dropped.
pub(super) fn forget_described(connection: &StoreConnection, object_id: i64) -> Result<()> {
    let Some(schema) = relations::load_schema(connection, object_id)? else { return Ok(()) };
    let mut delete =
        connection.prepare_cached("DELETE FROM querent_described_column WHERE key = ? AND object_id = ?")?;
    for field in schema.fields() {
        delete.execute(params![name_key(field.name()), object_id])?;
    }
    Ok(())
}

/// Fills the tables of column names and column texts from the objects that exist when the migration runs.
pub(super) fn fill(connection: &StoreConnection) -> Result<()> {
    let mut statement = connection.prepare("SELECT object_id FROM querent_object")?;
    let ids: Vec<i64> = statement.query_map([], |row| row.get(0))?.collect::<DatabaseResult<_>>()?;
    let snapshot = newest_snapshot(connection)?.id;
    let loader = RelationLoader::new(connection, snapshot);
    let mut rows = ObjectRows::default();
    for object_id in ids {
        let Some(relation) = loader.load(object_id)? else { continue };
        let info = relation.info();
        if info.kind != TableKind::Managed {
            insert_described(connection, &mut rows, object_id, info.columns.iter().map(|column| &column.name))?;
        }
        for column in &info.columns {
            rows.add_column_text(connection, &ColumnText::new(&column.name, column_text(column)))?;
        }
    }
    rows.flush(connection)
}

/// A column found by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ColumnMatch {
    /// [`crate::model::TableInfo::id`] of its table.
    pub(crate) object_id: i64,
    /// The column's name as the table spells it.
    pub(crate) column: String,
}

/// The columns of a name, ignoring case, of what may be found. Returns none of them when there are more than `most`.
pub(crate) fn find_rare(
    view: &SnapshotView<'_>,
    visible: &VisibleObjects,
    name: &str,
    most: usize,
) -> Result<Vec<ColumnMatch>> {
    // Counting in all databases reads one page of an index and saves looking up the table of each column.
    if visible.is_all() && count_up_to(view, name, most + 1)? > most {
        return Ok(Vec::new());
    }
    let mut found = find(view, visible, &[name.to_string()], most + 1)?;
    if found.len() > most {
        found.clear();
    }
    Ok(found)
}

/// How many columns have a name, ignoring case, counted up to `limit`.
fn count_up_to(view: &SnapshotView<'_>, name: &str, limit: usize) -> Result<usize> {
    let mut statement = view.connection.prepare_cached(
        "SELECT count(*) FROM (
             SELECT 1 FROM ducklake_column INDEXED BY querent_ix_column_name
             WHERE column_name COLLATE NOCASE IN (?1, ?2) AND parent_column IS NULL
               AND begin_snapshot <= ?3 AND (end_snapshot IS NULL OR end_snapshot > ?3)
             UNION ALL
             SELECT 1 FROM querent_described_column CROSS JOIN querent_object USING (object_id)
             WHERE querent_described_column.key = ?2
             LIMIT ?4) AS found",
    )?;
    let count: i64 =
        statement.query_row(params![name, name_key(name), view.snapshot, limit as i64], |row| row.get(0))?;
    Ok(count as usize)
}

/// The columns of the names, ignoring case, of what may be found, in the order of the names; at most `limit`.
pub(crate) fn find(
    view: &SnapshotView<'_>,
    visible: &VisibleObjects,
    names: &[String],
    limit: usize,
) -> Result<Vec<ColumnMatch>> {
    let only = visible.parameter()?;
    let is_visible = object_condition("?5", "o.schema_id", "o.object_id");
    // SQLite folds the case of ASCII letters only; other letters match as spelled in the request and in lower case.
    let mut statement = view.connection.prepare_cached(&format!(
        "SELECT o.object_id, c.name FROM (
             SELECT table_id AS object_id, column_name AS name FROM ducklake_column INDEXED BY querent_ix_column_name
             WHERE column_name COLLATE NOCASE IN (?1, ?2) AND parent_column IS NULL
               AND begin_snapshot <= ?3 AND (end_snapshot IS NULL OR end_snapshot > ?3)
             UNION ALL
             SELECT object_id, name FROM querent_described_column WHERE key = ?2
             LIMIT ?4) c
         JOIN querent_object o USING (object_id)
         WHERE {is_visible}
         LIMIT ?6"
    ))?;
    let mut found: Vec<ColumnMatch> = Vec::new();
    for name in names {
        let room = limit.saturating_sub(found.len());
        if room == 0 {
            break;
        }
        let wanted = params![name, name_key(name), view.snapshot, MAX_LOOKED_AT as i64, only, room as i64];
        let rows =
            statement.query_map(wanted, |row| Ok(ColumnMatch { object_id: row.get(0)?, column: row.get(1)? }))?;
        for row in rows {
            found.push(row?);
        }
    }
    Ok(found)
}
