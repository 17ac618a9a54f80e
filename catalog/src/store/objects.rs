//! What lives at the newest snapshot, by lowercase key: `querent_database` and `querent_object`.
//!
//! Every change of ours maintains both, with the columns that a listing shows, so that a page is a range of one index.
//! [`absorb`] applies what DuckDB committed meanwhile before names are next read or changed, so that its tables
//! resolve, list and are searched like ours.

use std::collections::{BTreeMap, HashSet};

use super::change::{CatalogChange, TouchedIds};
use super::migrations::{meta, set_meta};
use super::names::name_key;
use super::object_rows::ObjectRows;
use super::pending::{self, ObjectKind, PendingObject};
use super::relations::{self, RelationLoader, StoredRelation};
use super::rows::unreadable;
use super::search_text::{column_text, table_text};
use super::{SnapshotView, dependents, key_renames, keys, policies};
use crate::connection::{DatabaseResult, FromStoreValue, OptionalRow, StoreConnection, StoreRow, params};
use crate::error::{CatalogError, Result};
use crate::model::{SnapshotId, TableInfo, TableKind, TableName};
use crate::policy::RenamedTable;

const ABSORBED_SNAPSHOT: &str = "absorbed_snapshot";
/// The value before the first [`absorb`].
const NOTHING_ABSORBED: SnapshotId = -1;

impl TableKind {
    /// The kind as stored.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            TableKind::Managed => "managed",
            TableKind::External => "external",
            TableKind::View => "view",
        }
    }

    fn from_stored(text: &str) -> Option<Self> {
        match text {
            "managed" => Some(TableKind::Managed),
            "external" => Some(TableKind::External),
            "view" => Some(TableKind::View),
            _ => None,
        }
    }
}

/// The newest snapshot that `querent_database` and `querent_object` include.
pub(super) fn absorbed_snapshot(connection: &StoreConnection) -> Result<SnapshotId> {
    Ok(meta(connection, ABSORBED_SNAPSHOT)?.and_then(|text| text.parse().ok()).unwrap_or(NOTHING_ABSORBED))
}

pub(super) fn set_absorbed_snapshot(connection: &StoreConnection, snapshot: SnapshotId) -> Result<()> {
    set_meta(connection, ABSORBED_SNAPSHOT, &snapshot.to_string())
}

/// Applies what another writer committed since the absorbed snapshot.
pub(super) fn absorb(change: &mut CatalogChange<'_>) -> Result<()> {
    let connection = change.connection();
    let known = absorbed_snapshot(connection)?;
    let newest = change.base();
    if known == newest {
        return Ok(());
    }
    let snapshots_since: i64 =
        connection
            .query_row("SELECT COUNT(*) FROM ducklake_snapshot WHERE snapshot_id > ?", [known], |row| row.get(0))?;
    // An expired snapshot is gone together with its list of changes.
    if known == NOTHING_ABSORBED || snapshots_since != newest - known {
        absorb_everything(change)?;
    } else {
        absorb_since(change, known)?;
    }
    set_absorbed_snapshot(connection, newest)
}

fn absorb_since(change: &mut CatalogChange<'_>, known: SnapshotId) -> Result<()> {
    let connection = change.connection();
    let changes: Vec<String> = query_column(
        connection,
        "SELECT changes_made FROM ducklake_snapshot_changes WHERE snapshot_id > ? AND changes_made IS NOT NULL",
        known,
    )?;
    let mut databases =
        query_column(connection, "SELECT schema_id FROM ducklake_schema WHERE begin_snapshot > ?", known)?;
    let mut objects = query_column(
        connection,
        "SELECT table_id FROM ducklake_table WHERE begin_snapshot > ?1
         UNION SELECT view_id FROM ducklake_view WHERE begin_snapshot > ?1",
        known,
    )?;
    for changes_made in &changes {
        let touched = TouchedIds::parse(changes_made);
        databases.extend(touched.databases);
        objects.extend(touched.objects);
    }
    for schema_id in &databases {
        objects.extend(query_column::<i64>(
            connection,
            "SELECT object_id FROM querent_object WHERE schema_id = ?",
            *schema_id,
        )?);
    }
    databases.sort_unstable();
    databases.dedup();
    objects.sort_unstable();
    objects.dedup();
    refresh_all(change, &databases, &objects)
}

fn absorb_everything(change: &mut CatalogChange<'_>) -> Result<()> {
    let connection = change.connection();
    let newest = change.base();
    let databases = query_column(
        connection,
        "SELECT schema_id FROM ducklake_schema WHERE end_snapshot IS NULL OR end_snapshot > ?
         UNION SELECT schema_id FROM querent_database",
        newest,
    )?;
    let objects = query_column(
        connection,
        "SELECT table_id FROM ducklake_table WHERE end_snapshot IS NULL OR end_snapshot > ?1
         UNION SELECT view_id FROM ducklake_view WHERE end_snapshot IS NULL OR end_snapshot > ?1
         UNION SELECT object_id FROM querent_external_table WHERE end_snapshot IS NULL OR end_snapshot > ?1
         UNION SELECT object_id FROM querent_object",
        newest,
    )?;
    refresh_all(change, &databases, &objects)
}

fn refresh_all(change: &mut CatalogChange<'_>, databases: &[i64], objects: &[i64]) -> Result<()> {
    let newest = change.base();
    for schema_id in databases {
        refresh_database(change.connection(), *schema_id, newest)?;
    }
    let connection = change.connection();
    if policies::newest_version(connection)? > 0 || key_renames::any(connection)? {
        // Before any of them has its new name: two may have changed names with each other.
        let mut renamed = Vec::new();
        for object_id in objects {
            match relations::load(connection, *object_id, newest)? {
                Some(relation) => renamed.extend(renamed_table(connection, relation.info())?),
                // Another may have its name by now.
                None => forget_keys(connection, *object_id)?,
            }
        }
        follow_renames(connection, &renamed)?;
    }
    for object_id in objects {
        let relation = relations::load(connection, *object_id, newest)?;
        refresh_followed(change, *object_id, relation.as_ref())?;
    }
    Ok(())
}

/// Brings a database's row in line with the lake at a snapshot.
pub(super) fn refresh_database(connection: &StoreConnection, schema_id: i64, snapshot: SnapshotId) -> Result<()> {
    let name: Option<String> = connection
        .prepare_cached(
            "SELECT schema_name FROM ducklake_schema
             WHERE schema_id = ?1 AND begin_snapshot <= ?2 AND (end_snapshot IS NULL OR end_snapshot > ?2)",
        )?
        .query_row([schema_id, snapshot], |row| row.get(0))
        .optional()?;
    match name {
        Some(name) => connection
            .prepare_cached(
                "INSERT INTO querent_database (schema_id, key, name) VALUES (?1, ?2, ?3)
                 ON CONFLICT (schema_id) DO UPDATE SET key = ?2, name = ?3",
            )?
            .execute(params![schema_id, name_key(&name), name])?,
        None => connection.prepare_cached("DELETE FROM querent_database WHERE schema_id = ?")?.execute([schema_id])?,
    };
    Ok(())
}

/// Brings an object's row, what is recorded of it for the schema index, its keys and the policy in line with the lake at a snapshot.
pub(super) fn refresh(
    change: &mut CatalogChange<'_>,
    object_id: i64,
    snapshot: SnapshotId,
) -> Result<Option<StoredRelation>> {
    let connection = change.connection();
    let relation = relations::load(connection, object_id, snapshot)?;
    match &relation {
        Some(relation) => follow_renames(connection, renamed_table(connection, relation.info())?.as_slice())?,
        None => forget_keys(connection, object_id)?,
    }
    refresh_followed(change, object_id, relation.as_ref())?;
    Ok(relation)
}

/// Lets the policy, foreign keys and columns of declared relationships follow what is renamed.
fn follow_renames(connection: &StoreConnection, renamed: &[RenamedTable]) -> Result<()> {
    if renamed.is_empty() {
        return Ok(());
    }
    policies::follow_renames(connection, renamed)?;
    key_renames::follow_renames(connection, renamed)
}

/// Deletes the keys of an object that is gone.
fn forget_keys(connection: &StoreConnection, object_id: i64) -> Result<()> {
    keys::delete(connection, object_id)?;
    dependents::delete_foreign_keys(connection, object_id)
}

/// As [`refresh`], where the policy and foreign keys follow it already. `None`: it is gone.
fn refresh_followed(change: &mut CatalogChange<'_>, object_id: i64, relation: Option<&StoredRelation>) -> Result<()> {
    let connection = change.connection();
    match relation {
        Some(relation) => {
            let info = relation.info();
            // Values are kept by the names of columns. Under one that a column had, no mask hides them.
            let kept = dependents::columns_with_values(connection, object_id)?;
            let is_gone = |name: &String| info.columns.iter().all(|column| column.name != *name);
            if !kept.is_empty() && (kept.iter().any(is_gone) || !renamed_columns(connection, object_id)?.is_empty()) {
                dependents::delete_values(connection, object_id)?;
            }
            insert_row(connection, relation.database_id, &ObjectName::from_info(info))?;
            change.index(PendingObject::table(object_id, relation.database_id, table_text(info)))?;
            for column in &info.columns {
                change.index_column(&column.name, column_text(column))?;
            }
        }
        None => {
            // Of a table that DuckDB dropped; those of others are gone already.
            dependents::delete_unique_keys(connection, object_id)?;
            dependents::delete_vector_indexes(connection, object_id)?;
            let database_id: Option<i64> = connection
                .prepare_cached("DELETE FROM querent_object WHERE object_id = ? RETURNING schema_id")?
                .query_row([object_id], |row| row.get(0))
                .optional()?;
            if let Some(database_id) = database_id {
                change.index(PendingObject::dropped_table(object_id, database_id))?;
            }
        }
    }
    Ok(())
}

/// What changed of an object's names, if anything; of a new one nothing did.
fn renamed_table(connection: &StoreConnection, info: &TableInfo) -> Result<Option<RenamedTable>> {
    let Some((known, _)) = object_name(connection, info.id)? else { return Ok(None) };
    let columns = renamed_columns(connection, info.id)?;
    let is_renamed = known != info.name || !columns.is_empty();
    Ok(is_renamed.then(|| RenamedTable { known, table: info.name.clone(), columns }))
}

/// The columns of a managed table whose names changed since the absorbed snapshot: the name that each had, and the one that it has.
fn renamed_columns(connection: &StoreConnection, table_id: i64) -> Result<Vec<(String, String)>> {
    let mut statement = connection.prepare_cached(
        "SELECT old.column_name, new.column_name FROM ducklake_column new
         JOIN ducklake_column old ON old.table_id = new.table_id AND old.column_id = new.column_id
         WHERE new.table_id = ?1 AND new.end_snapshot IS NULL AND new.parent_column IS NULL
           AND old.begin_snapshot <= ?2 AND (old.end_snapshot IS NULL OR old.end_snapshot > ?2)
           AND old.column_name <> new.column_name",
    )?;
    let columns =
        statement.query_map([table_id, absorbed_snapshot(connection)?], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(columns.collect::<DatabaseResult<Vec<(String, String)>>>()?)
}

/// What `querent_object` stores of an object.
pub(super) struct ObjectName<'a> {
    pub(super) id: i64,
    pub(super) name: &'a TableName,
    pub(super) kind: TableKind,
    pub(super) comment: Option<&'a str>,
}

impl<'a> ObjectName<'a> {
    fn from_info(info: &'a TableInfo) -> Self {
        Self { id: info.id, name: &info.name, kind: info.kind, comment: info.comment.as_deref() }
    }
}

/// Writes an object's row, replacing an older one.
fn insert_row(connection: &StoreConnection, schema_id: i64, object: &ObjectName<'_>) -> Result<()> {
    let mut rows = ObjectRows::default();
    rows.add_object(connection, schema_id, object)?;
    rows.flush(connection)
}

/// The id of a database by name.
pub(super) fn database_id(connection: &StoreConnection, name: &str) -> Result<Option<i64>> {
    Ok(connection
        .prepare_cached("SELECT schema_id FROM querent_database WHERE key = ? ORDER BY schema_id LIMIT 1")?
        .query_row([name_key(name)], |row| row.get(0))
        .optional()?)
}

/// A row of `querent_object`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectRow {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) kind: TableKind,
    pub(crate) comment: Option<String>,
}

/// The object of a name. DuckDB distinguishes accented letters by case and we do not: of two tables that differ only
/// so, the one spelled as requested is found, else the older one.
pub(crate) fn object(connection: &StoreConnection, database: &str, table: &str) -> Result<Option<ObjectRow>> {
    Ok(connection
        .prepare_cached(
            "SELECT object_id, name, kind, comment FROM querent_object WHERE database_key = ?1 AND key = ?2
             ORDER BY name = ?3 DESC, object_id LIMIT 1",
        )?
        .query_row([&name_key(database), &name_key(table), table], read_object)
        .optional()?)
}

/// Which of these names, as keys of database and name, are those of objects.
pub(super) fn taken(connection: &StoreConnection, names: &[(String, String)]) -> Result<HashSet<(String, String)>> {
    let mut by_database: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (database, name) in names {
        by_database.entry(database).or_default().push(name);
    }
    let mut statement = connection.prepare_cached(
        "SELECT key FROM querent_object WHERE database_key = ?1 AND key IN (SELECT value FROM json_each(?2))",
    )?;
    let mut taken = HashSet::new();
    for (database, keys) in by_database {
        let wanted = serde_json::to_string(&keys).map_err(|error| CatalogError::Internal(error.to_string()))?;
        for key in statement.query_map(params![database, wanted], |row| row.get(0))? {
            taken.insert((database.to_owned(), key?));
        }
    }
    Ok(taken)
}

/// The name and kind of an object by id; `None` where it is gone.
pub(crate) fn object_name(connection: &StoreConnection, object_id: i64) -> Result<Option<(TableName, TableKind)>> {
    let found = connection
        .prepare_cached(
            "SELECT o.object_id, o.name, o.kind, o.comment, d.name
             FROM querent_object o JOIN querent_database d USING (schema_id) WHERE o.object_id = ?",
        )?
        .query_row([object_id], |row| Ok((read_object(row)?, row.get::<String>(4)?)))
        .optional()?;
    Ok(found.map(|(object, database)| (TableName::new(database, object.name), object.kind)))
}

/// The ids of tables by name, of those that are there.
pub(crate) fn table_ids(view: &SnapshotView<'_>, names: &[TableName]) -> Result<Vec<i64>> {
    let mut ids = Vec::new();
    for name in names {
        ids.extend(object(view.connection, &name.database, &name.table)?.map(|object| object.id));
    }
    Ok(ids)
}

/// The databases of objects, by id, in order.
pub(crate) fn database_ids(view: &SnapshotView<'_>, ids: &[i64]) -> Result<Vec<Option<i64>>> {
    let mut statement = view.connection.prepare_cached("SELECT schema_id FROM querent_object WHERE object_id = ?")?;
    ids.iter().map(|id| Ok(statement.query_row([id], |row| row.get(0)).optional()?)).collect()
}

/// Reads `object_id, name, kind, comment`.
pub(super) fn read_object(row: &StoreRow<'_>) -> DatabaseResult<ObjectRow> {
    let kind: String = row.get(2)?;
    let kind =
        TableKind::from_stored(&kind).ok_or_else(|| unreadable(2, format!("an object of unknown kind `{kind}`")))?;
    Ok(ObjectRow { id: row.get(0)?, name: row.get(1)?, kind, comment: row.get(3)? })
}

/// An object and its text in the schema index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectText {
    /// [`crate::model::TableInfo::id`].
    pub(crate) object_id: i64,
    /// [`crate::model::DatabaseInfo::id`].
    pub(crate) database_id: i64,
    /// [`table_text`].
    pub(crate) text: String,
}

/// At most `limit` pending objects after `after`, oldest first; the text of those that are due is composed here.
pub(crate) fn pending_texts(
    view: &SnapshotView<'_>,
    kind: ObjectKind,
    after: i64,
    limit: usize,
) -> Result<Vec<PendingObject>> {
    if kind == ObjectKind::Column {
        return pending::column_page(view.connection, after, limit, true);
    }
    let mut objects = pending::page(view.connection, after, limit)?;
    let due: Vec<i64> = objects.iter().filter(|object| object.is_due).map(|object| object.object_id).collect();
    let loader = RelationLoader::for_view(view).with_listed(&due)?;
    for object in objects.iter_mut().filter(|object| object.is_due) {
        let relation = loader.load(object.object_id)?;
        object.text = relation.map(|relation| table_text(relation.info()));
        object.is_due = false;
    }
    Ok(objects)
}

/// At most `limit` objects after `after`, by id: how an index is built from the catalog.
pub(crate) fn object_texts(view: &SnapshotView<'_>, after: i64, limit: usize) -> Result<Vec<ObjectText>> {
    let mut statement = view
        .connection
        .prepare_cached("SELECT object_id FROM querent_object WHERE object_id > ? ORDER BY object_id LIMIT ?")?;
    let ids = statement.query_map([after, limit as i64], |row| row.get(0))?.collect::<DatabaseResult<Vec<i64>>>()?;
    let loader = RelationLoader::for_view(view).with_listed(&ids)?;
    let mut texts = Vec::new();
    for id in ids {
        if let Some(relation) = loader.load(id)? {
            texts.push(ObjectText {
                object_id: relation.info().id,
                database_id: relation.database_id,
                text: table_text(relation.info()),
            });
        }
    }
    Ok(texts)
}

/// How many objects there are: the total in the progress of an index build.
pub(crate) fn object_count(view: &SnapshotView<'_>) -> Result<u64> {
    let count: i64 = view.connection.query_row("SELECT COUNT(*) FROM querent_object", [], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

fn query_column<T: FromStoreValue>(connection: &StoreConnection, sql: &str, parameter: i64) -> Result<Vec<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([parameter], |row| row.get(0))?;
    Ok(rows.collect::<DatabaseResult<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_stored_and_read() {
        for kind in [TableKind::Managed, TableKind::External, TableKind::View] {
            assert_eq!(TableKind::from_stored(kind.as_str()), Some(kind));
        }
        assert_eq!(TableKind::from_stored("index"), None);
    }
}
