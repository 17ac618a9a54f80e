//! Managed tables: drafts, creates, appends, replaces rows and drops.

use std::collections::BTreeMap;

use arrow_schema::{Field, Schema};
use uuid::Uuid;

use super::change::CatalogChange;
use super::columns::{self, ColumnLayout, ColumnRow};
use super::names::{check_name, folder_name};
use super::object_rows::ObjectRows;
use super::objects::{self, ObjectRow};
use super::relations::{self, LakePath};
use super::stats::{self, TableStats};
use super::{SnapshotView, deletes, dependents, inlined, keys, sort_orders};
use crate::connection::{OptionalRow, RowInserts, StoreConnection, params};
use crate::error::{CatalogError, Result};
use crate::model::{
    ColumnStats, Created, IfExists, ManagedTable, NewDataFile, SnapshotId, TableDraft, TableInfo, TableKind, TableName,
    quote_identifier,
};

/// Checks a new table's name and types and fixes its column ids and its folder.
pub(crate) fn draft(
    view: &SnapshotView<'_>,
    name: &TableName,
    schema: &Schema,
    comment: Option<String>,
) -> Result<TableDraft> {
    check_name(&name.table)?;
    let layout = ColumnLayout::from_schema(&name.table, schema)?;
    let schema_id = require_database(view, &name.database)?;
    let folder = relations::database_folder(view.connection, schema_id, view.snapshot)?
        .ok_or_else(|| unknown_database(&name.database))?;
    let uuid = Uuid::now_v7();
    Ok(TableDraft {
        uuid,
        name: name.clone(),
        location: folder.join(folder_name(&name.table, uuid)),
        columns: layout.columns,
        write_schema: layout.write_schema,
        comment,
        keys: Vec::new(),
        foreign_keys: Vec::new(),
        defaults: Vec::new(),
        sort_order: Vec::new(),
        base: view.snapshot,
    })
}

/// Refuses to replace a table by the result of a query over it when the table changed after that query began.
fn refuse_lost_rows(change: &CatalogChange<'_>, draft: &TableDraft) -> Result<()> {
    let connection = change.connection();
    let Some(existing) = objects::object(connection, &draft.name.database, &draft.name.table)? else { return Ok(()) };
    let altered: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM ducklake_table WHERE table_id = ?1 AND begin_snapshot > ?2)
                 OR EXISTS (SELECT 1 FROM ducklake_column WHERE table_id = ?1 AND (begin_snapshot > ?2 OR end_snapshot > ?2))",
        )?
        .query_row([existing.id, draft.base], |row| row.get(0))?;
    if altered {
        return Err(CatalogError::Conflict { object: draft.name.table.clone() });
    }
    refuse_changed_rows(connection, existing.id, draft.base, &draft.name.table)
}

/// `conflict` when rows were added to the table or removed from it after snapshot `since`.
pub(super) fn refuse_changed_rows(
    connection: &StoreConnection,
    table_id: i64,
    since: SnapshotId,
    name: &str,
) -> Result<()> {
    let mut changed: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM ducklake_data_file WHERE table_id = ?1 AND (begin_snapshot > ?2 OR end_snapshot > ?2))
                 OR EXISTS (SELECT 1 FROM ducklake_delete_file WHERE table_id = ?1 AND (begin_snapshot > ?2 OR end_snapshot > ?2))",
        )?
        .query_row([table_id, since], |row| row.get(0))?;
    for (kept, _) in inlined::data_tables(connection, table_id)? {
        changed |= connection.query_row(
            &format!(
                "SELECT EXISTS (SELECT 1 FROM {} WHERE begin_snapshot > ?1 OR end_snapshot > ?1)",
                quote_identifier(&kept)
            ),
            [since],
            |row| row.get::<bool>(0),
        )?;
    }
    let deleted = match deletes::inlined_table(connection, table_id)? {
        Some(table) => connection.query_row(
            &format!("SELECT EXISTS (SELECT 1 FROM {} WHERE begin_snapshot > ?)", quote_identifier(&table)),
            [since],
            |row| row.get(0),
        )?,
        None => false,
    };
    if changed || deleted { Err(CatalogError::Conflict { object: name.to_string() }) } else { Ok(()) }
}

/// Creates a drafted table with its first files.
pub(crate) fn create(
    change: &mut CatalogChange<'_>,
    draft: &TableDraft,
    files: &[NewDataFile],
    if_exists: IfExists,
) -> Result<Created<TableInfo>> {
    if if_exists == IfExists::Replace {
        refuse_lost_rows(change, draft)?;
    }
    let Some(schema_id) = make_room(change, &draft.name, TableKind::Managed, if_exists)? else {
        return Ok(Created::Existing);
    };
    refuse_encrypted(change, &draft.name.table)?;
    let connection = change.connection();
    let folder = relations::database_folder(connection, schema_id, change.base())?
        .or(relations::database_folder(connection, schema_id, change.snapshot())?)
        .ok_or_else(|| unknown_database(&draft.name.database))?;
    let columns =
        draft.columns.iter().map(|column| Field::new(&column.name, column.data_type.clone(), column.nullable));
    let layout = ColumnLayout::from_schema(&draft.name.table, &Schema::new(columns.collect::<Vec<_>>()))?
        .with_json(|name| draft.columns.iter().any(|column| column.is_json && column.name == name))
        .with_uuids(|name| draft.columns.iter().any(|column| column.is_uuid && column.name == name));
    let path = LakePath::relative_to(&draft.location, &folder);
    let mut rows = ObjectRows::default();
    let table_id = insert_table(change, &mut rows, schema_id, &draft.name.table, draft.uuid, &path, &layout)?;
    rows.flush(connection)?;
    change.record_schema(format!("created_table:{}", object_entry(change, schema_id, &draft.name.table)?));
    keys::declare(change, table_id, draft)?;
    for (name, default) in &draft.defaults {
        if let Some(column) = draft.columns.iter().find(|column| column.name == *name) {
            columns::set_default(change, table_id, column.id, Some(default))?;
        }
    }
    if !draft.sort_order.is_empty() {
        sort_orders::insert(change, table_id, &draft.sort_order)?;
    }
    if let Some(comment) = &draft.comment {
        insert_comment(change, table_id, comment)?;
    }
    if !files.is_empty() {
        let rows = columns::load_rows(connection, table_id, change.snapshot())?;
        add_files(change, table_id, &draft.location, &rows, files)?;
    }
    created(change, table_id)
}

/// Adds the rows of a new managed table and returns its id. The caller records it ([`object_entry`]).
pub(super) fn insert_table(
    change: &mut CatalogChange<'_>,
    rows: &mut ObjectRows,
    schema_id: i64,
    name: &str,
    uuid: Uuid,
    path: &LakePath,
    layout: &ColumnLayout,
) -> Result<i64> {
    let table_id = change.new_object_id();
    let folder = with_slash(&path.path);
    let row = params![table_id, uuid.to_string(), change.snapshot(), schema_id, name, folder, path.is_relative];
    rows.tables.add(change.connection(), row)?;
    layout.insert(change, rows, table_id)?;
    rows.add_table_version(change, table_id)?;
    Ok(table_id)
}

/// Adds files to a table as it was resolved.
pub(crate) fn append(
    change: &mut CatalogChange<'_>,
    table: &ManagedTable,
    files: &[NewDataFile],
) -> Result<SnapshotId> {
    let name = require_unchanged(change, table)?;
    if files.is_empty() {
        return Ok(change.base());
    }
    refuse_encrypted(change, &name)?;
    let rows = columns::load_rows(change.connection(), table.id, change.base())?;
    add_files(change, table.id, &table.location, &rows, files)?;
    Ok(change.snapshot())
}

/// Ends all rows of a table and adds files in their place.
pub(crate) fn replace(
    change: &mut CatalogChange<'_>,
    table: &ManagedTable,
    files: &[NewDataFile],
) -> Result<SnapshotId> {
    let name = &require_unchanged(change, table)?;
    refuse_encrypted(change, name)?;
    let connection = change.connection();
    refuse_changed_rows(connection, table.id, table.snapshot, name)?;
    let ended = end_rows(change, "ducklake_data_file", "table_id", table.id)?
        + end_rows(change, "ducklake_delete_file", "table_id", table.id)?;
    if ended > 0 {
        change.record_rows(format!("deleted_from_table:{}", table.id));
    }
    end_inlined_rows(change, table)?;
    stats::clear(connection, table.id)?;
    let rows = columns::load_rows(connection, table.id, change.base())?;
    add_files(change, table.id, &table.location, &rows, files)?;
    Ok(if change.is_empty() { change.base() } else { change.snapshot() })
}

/// Drops the object of a name if it is of one of `kinds`. Returns whether there was one.
pub(crate) fn drop_named(
    change: &mut CatalogChange<'_>,
    name: &TableName,
    kinds: &[TableKind],
    if_missing_ok: bool,
) -> Result<bool> {
    let object = objects::object(change.connection(), &name.database, &name.table)?;
    match object.filter(|object| kinds.contains(&object.kind)) {
        Some(object) => {
            drop_object(change, &object)?;
            Ok(true)
        }
        None if if_missing_ok => Ok(false),
        None => Err(unknown_table(name)),
    }
}

/// Ends an object and everything that belongs to it. Its files stay for older snapshots.
pub(super) fn drop_object(change: &mut CatalogChange<'_>, object: &ObjectRow) -> Result<()> {
    keys::delete(change.connection(), object.id)?;
    dependents::delete_foreign_keys(change.connection(), object.id)?;
    dependents::delete_values(change.connection(), object.id)?;
    dependents::delete_vector_indexes(change.connection(), object.id)?;
    match object.kind {
        TableKind::Managed => {
            for lake_table in [
                "ducklake_table",
                "ducklake_partition_info",
                "ducklake_column",
                "ducklake_column_tag",
                "ducklake_data_file",
                "ducklake_delete_file",
                "ducklake_sort_info",
            ] {
                end_rows(change, lake_table, "table_id", object.id)?;
            }
            change.record_schema(format!("dropped_table:{}", object.id));
        }
        TableKind::External => {
            super::column_names::forget_described(change.connection(), object.id)?;
            end_rows(change, "querent_external_table", "object_id", object.id)?;
            end_rows(change, "ducklake_column_tag", "table_id", object.id)?;
            change.record_schema(format!("dropped_table:{}", object.id));
        }
        TableKind::View => {
            super::column_names::forget_described(change.connection(), object.id)?;
            end_rows(change, "ducklake_view", "view_id", object.id)?;
            end_rows(change, "ducklake_column_tag", "table_id", object.id)?;
            change.record_schema(format!("dropped_view:{}", object.id));
        }
    }
    end_rows(change, "ducklake_tag", "object_id", object.id)?;
    objects::refresh(change, object.id, change.snapshot())?;
    Ok(())
}

/// Makes the name of a new object free: with [`IfExists::Replace`] it drops an existing object of the same kind (a view
/// never replaces a table with rows). Returns the database's id, or `None` where the existing object stays.
pub(super) fn make_room(
    change: &mut CatalogChange<'_>,
    name: &TableName,
    kind: TableKind,
    if_exists: IfExists,
) -> Result<Option<i64>> {
    check_name(&name.table)?;
    let schema_id = require_database(&change.view(), &name.database)?;
    let Some(existing) = objects::object(change.connection(), &name.database, &name.table)? else {
        return Ok(Some(schema_id));
    };
    match if_exists {
        IfExists::Error => {
            let spelled = (existing.name != name.table).then_some(existing.name);
            Err(CatalogError::AlreadyExists { name: name.table.clone(), existing: spelled })
        }
        IfExists::Ignore => Ok(None),
        IfExists::Replace if (existing.kind == TableKind::View) != (kind == TableKind::View) => {
            let kind = if existing.kind == TableKind::View { "view" } else { "table" };
            Err(CatalogError::OtherKind { name: existing.name, kind })
        }
        IfExists::Replace => {
            drop_object(change, &existing)?;
            Ok(Some(schema_id))
        }
    }
}

/// Registers a new object under its name and for the schema index, and reads it back.
pub(super) fn created(change: &mut CatalogChange<'_>, object_id: i64) -> Result<Created<TableInfo>> {
    match objects::refresh(change, object_id, change.snapshot())? {
        Some(relation) => Ok(Created::New(relation.resolved.info)),
        None => Err(CatalogError::Internal(format!("object {object_id} vanished while it was created"))),
    }
}

/// `"database"."name"`, with the database as it is spelled.
pub(super) fn object_entry(change: &CatalogChange<'_>, schema_id: i64, name: &str) -> Result<String> {
    let database: String = change
        .connection()
        .prepare_cached("SELECT name FROM querent_database WHERE schema_id = ?")?
        .query_row([schema_id], |row| row.get(0))?;
    Ok(entry_name(&database, name))
}

/// `"database"."name"`.
pub(super) fn entry_name(database: &str, name: &str) -> String {
    format!("{}.{}", quote_identifier(database), quote_identifier(name))
}

pub(super) fn insert_comment(change: &CatalogChange<'_>, object_id: i64, comment: &str) -> Result<()> {
    let mut rows = ObjectRows::default();
    rows.add_comment(change, object_id, comment)?;
    rows.flush(change.connection())
}

pub(super) fn unknown_table(name: &TableName) -> CatalogError {
    CatalogError::TableNotFound { database: name.database.clone(), table: name.table.clone(), nearest: None }
}

fn unknown_database(name: &str) -> CatalogError {
    CatalogError::DatabaseNotFound { database: name.to_string(), nearest: None }
}

fn require_database(view: &SnapshotView<'_>, name: &str) -> Result<i64> {
    objects::database_id(view.connection, name)?.ok_or_else(|| unknown_database(name))
}

/// The table's name, unless it was dropped or altered since it was resolved. Errors: `conflict`.
pub(super) fn require_unchanged(change: &CatalogChange<'_>, table: &ManagedTable) -> Result<String> {
    let found: Option<(String, bool)> = change
        .connection()
        .prepare_cached(
            "SELECT t.table_name,
                    EXISTS (SELECT 1 FROM ducklake_column c
                            WHERE c.table_id = ?1 AND (c.begin_snapshot > ?2 OR c.end_snapshot > ?2))
             FROM ducklake_table t
             WHERE t.table_id = ?1 AND t.begin_snapshot <= ?3 AND (t.end_snapshot IS NULL OR t.end_snapshot > ?3)
               AND EXISTS (SELECT 1 FROM ducklake_schema s
                           WHERE s.schema_id = t.schema_id AND s.begin_snapshot <= ?3
                             AND (s.end_snapshot IS NULL OR s.end_snapshot > ?3))",
        )?
        .query_row([table.id, table.snapshot, change.base()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    match found {
        Some((name, false)) => Ok(name),
        Some((object, true)) => Err(CatalogError::Conflict { object }),
        None => Err(CatalogError::Conflict { object: last_name(change.connection(), table)? }),
    }
}

/// The name that a table has, or had when it was dropped. Where its files lie is nothing to tell.
fn last_name(connection: &StoreConnection, table: &ManagedTable) -> Result<String> {
    let name: Option<String> = connection
        .prepare_cached(
            "SELECT table_name FROM ducklake_table WHERE table_id = ?1 ORDER BY begin_snapshot DESC LIMIT 1",
        )?
        .query_row([table.id], |row| row.get(0))
        .optional()?;
    Ok(name.unwrap_or_else(|| "the table".to_owned()))
}

pub(super) fn refuse_encrypted(change: &CatalogChange<'_>, table: &str) -> Result<()> {
    let is_encrypted: bool = change
        .connection()
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM ducklake_metadata WHERE key = 'encrypted' AND value = 'true' AND scope IS NULL)",
        )?
        .query_row([], |row| row.get(0))?;
    match is_encrypted {
        true => Err(CatalogError::UnsupportedLake {
            table: table.to_string(),
            what: "encrypted files (the lake was made with ENCRYPTED)".into(),
            hint: "write it with DuckDB, or use a lake without encryption".into(),
        }),
        false => Ok(()),
    }
}

/// Adds files with rows to a table, and to its statistics.
pub(super) fn add_files(
    change: &mut CatalogChange<'_>,
    table_id: i64,
    location: &std::path::Path,
    columns: &[ColumnRow],
    files: &[NewDataFile],
) -> Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    let connection = change.connection();
    let mut stats = stats::read_table_stats(connection, table_id)?;
    let leaves: Vec<&ColumnRow> =
        columns.iter().filter(|column| !matches!(column.column_type.as_str(), "list" | "struct" | "map")).collect();
    let mut rows = FileRows::default();
    for file in files {
        add_file(change, table_id, location, &leaves, &mut stats, file, &mut rows)?;
    }
    rows.files.flush(connection)?;
    rows.column_stats.flush(connection)?;
    let column_stats: Vec<&BTreeMap<i64, ColumnStats>> = files.iter().map(|file| &file.column_stats).collect();
    stats::add(connection, table_id, stats, &leaves, &column_stats)?;
    change.record_rows(format!("inserted_into_table:{table_id}"));
    Ok(())
}

/// Rows of new files.
struct FileRows {
    files: RowInserts,
    column_stats: RowInserts,
}

impl Default for FileRows {
    fn default() -> Self {
        Self {
            files: RowInserts::new(
                "INSERT INTO ducklake_data_file VALUES",
                "(?, ?, ?, NULL, NULL, ?, ?, 'parquet', ?, ?, ?, ?, NULL, NULL, NULL, NULL)",
            ),
            column_stats: RowInserts::new(
                "INSERT INTO ducklake_file_column_stats VALUES",
                "(?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
            ),
        }
    }
}

fn add_file(
    change: &mut CatalogChange<'_>,
    table_id: i64,
    location: &std::path::Path,
    leaves: &[&ColumnRow],
    stats: &mut TableStats,
    file: &NewDataFile,
    rows: &mut FileRows,
) -> Result<()> {
    let connection = change.connection();
    let file_id = change.new_file_id();
    let row_count = stored(file.row_count)?;
    let file_size = stored(file.file_size_bytes)?;
    let LakePath { path, is_relative } = LakePath::relative_to(&file.path, location);
    let snapshot = change.snapshot();
    let footer_size = stored(file.footer_size)?;
    let row =
        params![file_id, table_id, snapshot, path, is_relative, row_count, file_size, footer_size, stats.next_row_id,];
    rows.files.add(connection, row)?;
    for column in leaves {
        let Some(column_stats) = file.column_stats.get(&column.id) else { continue };
        let size = column_stats.column_size_bytes.map(stored).transpose()?;
        let values = column_stats.value_count.map(stored).transpose()?;
        let nulls = column_stats.null_count.map(stored).transpose()?;
        let row = params![
            file_id,
            table_id,
            column.id,
            size,
            values,
            nulls,
            column_stats.min_value,
            column_stats.max_value,
            column_stats.contains_nan,
        ];
        rows.column_stats.add(connection, row)?;
    }
    stats.record_count += row_count;
    stats.next_row_id += row_count;
    stats.file_size_bytes += file_size;
    Ok(())
}

/// Ends the live rows of an object in one of the lake's tables. A row that began in this change is never visible.
pub(super) fn end_rows(change: &CatalogChange<'_>, lake_table: &str, id_column: &str, id: i64) -> Result<usize> {
    let connection = change.connection();
    let ended = connection
        .prepare_cached(&format!(
            "UPDATE {lake_table} SET end_snapshot = ? WHERE {id_column} = ? AND end_snapshot IS NULL"
        ))?
        .execute([change.snapshot(), id])?;
    Ok(ended)
}

/// Ends the rows of a table that DuckDB keeps in the catalog itself.
fn end_inlined_rows(change: &mut CatalogChange<'_>, table: &ManagedTable) -> Result<()> {
    let connection = change.connection();
    let mut ended = 0;
    for (kept, _) in inlined::data_tables(connection, table.id)? {
        let name = quote_identifier(&kept);
        let is_changed: bool = connection.query_row(
            &format!("SELECT EXISTS (SELECT 1 FROM {name} WHERE begin_snapshot > ?1 OR end_snapshot > ?1)"),
            [table.snapshot],
            |row| row.get(0),
        )?;
        if is_changed {
            return Err(CatalogError::Conflict { object: last_name(connection, table)? });
        }
        ended += connection
            .execute(&format!("UPDATE {name} SET end_snapshot = ? WHERE end_snapshot IS NULL"), [change.snapshot()])?;
    }
    if ended > 0 {
        change.record_rows(format!("inlined_delete:{}", table.id));
    }
    Ok(())
}

fn with_slash(path: &str) -> String {
    if path.ends_with('/') { path.to_string() } else { format!("{path}/") }
}

/// A count as the lake holds it.
pub(super) fn stored(count: u64) -> Result<i64> {
    i64::try_from(count).map_err(|_| CatalogError::Internal(format!("{count} does not fit the lake's integers")))
}
