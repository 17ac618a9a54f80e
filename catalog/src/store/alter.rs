//! ALTER TABLE of managed tables, as DuckDB records it: rows of `ducklake_column` and `ducklake_table` end, and others begin.
//! Ids stay, so that files, comments and keys belong to the column and the table whatever these are called; new columns take
//! ids that none had before. Where DuckDB keeps rows of the table in the catalog, each version of its columns has a table for
//! them, which is made with the version.

use arrow_schema::{DataType, Field};

use super::change::CatalogChange;
use super::columns::{self, ColumnLayout, ColumnRow};
use super::dependents;
use super::inlined;
use super::keys;
use super::names::{check_name, name_key};
use super::object_rows::ObjectRows;
use super::objects::{self, ObjectRow};
use super::policies;
use super::relations;
use super::resolve::column_not_found;
use super::sort_orders;
use super::tables::{end_rows, refuse_changed_rows, unknown_table};
use super::types::{Shape, shown_type, storable};

use crate::connection::{StoreConnection, params};
use crate::error::{CatalogError, Result};
use crate::model::{
    ColumnDefault, ColumnInfo, SortedByKey, TableAlteration, TableInfo, TableKind, TableName, is_wider_type,
};

/// Applies changes of a table, one after the other. Errors: `table_not_found`, `column_not_found`, `already_exists`, `invalid_object`,
/// `unsupported_type`, `unsupported_lake`.
pub(crate) fn apply(change: &mut CatalogChange<'_>, name: &TableName, alterations: &[TableAlteration]) -> Result<()> {
    let connection = change.connection();
    let object = objects::object(connection, &name.database, &name.table)?.ok_or_else(|| unknown_table(name))?;
    let renames_view = object.kind == TableKind::View && matches!(alterations, [TableAlteration::RenameTable { .. }]);
    if object.kind != TableKind::Managed && !renames_view {
        let reason =
            "ALTER TABLE changes managed tables, and renames views; this is a view, or an external table".to_owned();
        return Err(CatalogError::InvalidName { name: object.name, reason });
    }
    let mut altered = Altered::Nothing;
    for alteration in alterations {
        // With what those before it have changed.
        let relation = relations::load(connection, object.id, change.snapshot())?.ok_or_else(|| unknown_table(name))?;
        altered = altered.max(apply_one(change, &object, relation.info(), alteration)?);
    }
    if altered == Altered::Nothing {
        return Ok(());
    }
    if altered >= Altered::Version {
        change.new_table_version(object.id)?;
    }
    if altered == Altered::Layout {
        inlined::add_version(change, object.id)?;
    }
    change.record_schema(format!("altered_{}:{}", if renames_view { "view" } else { "table" }, object.id));
    objects::refresh(change, object.id, change.snapshot())?;
    Ok(())
}

/// How far a change reaches: the greatest of a statement's says what is recorded of them all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Altered {
    Nothing,
    /// What is kept beside the columns: keys, the order of rows, marks of texts.
    Beside,
    /// The table has a new version, whose rows look as they did.
    Version,
    /// And rows that DuckDB keeps in the catalog have another table, of the version's names and types.
    Layout,
}

impl Altered {
    fn where_new(self, is_new: bool) -> Self {
        if is_new { self } else { Self::Nothing }
    }
}

fn apply_one(
    change: &mut CatalogChange<'_>,
    object: &ObjectRow,
    info: &TableInfo,
    alteration: &TableAlteration,
) -> Result<Altered> {
    Ok(match alteration {
        TableAlteration::AddColumn { field, is_json, is_uuid, default, if_missing } => {
            let added = NewColumn { field, is_json: *is_json, is_uuid: *is_uuid };
            add_column(change, info, added, default.as_deref(), *if_missing)?
        }
        TableAlteration::DropColumn { column, if_exists } => drop_column(change, info, column, *if_exists)?,
        TableAlteration::RenameColumn { column, to } => rename_column(change, info, column, to)?,
        TableAlteration::DropNotNull { column } => set_nullable(change, info, column, true)?,
        TableAlteration::SetNotNull { column, seen } => {
            refuse_changed_rows(change.connection(), info.id, seen.snapshot, &info.name.table)?;
            set_nullable(change, info, column, false)?
        }
        TableAlteration::WidenColumn { column, data_type } => widen_column(change, info, column, data_type)?,
        TableAlteration::SetJson { column, is_json } => set_json(change, info, column, *is_json)?,
        TableAlteration::SetDefault { column, default } => set_default(change, info, column, default.as_ref())?,
        TableAlteration::SetSortOrder { keys } => {
            for column in keys.iter().filter_map(SortedByKey::column) {
                require_column(info, &column)?;
            }
            Altered::Beside.where_new(sort_orders::set(change, info.id, keys)?)
        }
        TableAlteration::AddKey { key } => Altered::Beside.where_new(keys::add_unique(change, info, key)?),
        TableAlteration::AddForeignKey { key } => Altered::Beside.where_new(keys::add_foreign(change, info, key)?),
        TableAlteration::RenameTable { to } => rename_table(change, object, info, to)?,
    })
}

struct NewColumn<'a> {
    field: &'a Field,
    is_json: bool,
    is_uuid: bool,
}

fn add_column(
    change: &mut CatalogChange<'_>,
    info: &TableInfo,
    NewColumn { field, is_json, is_uuid }: NewColumn<'_>,
    default: Option<&str>,
    if_missing: bool,
) -> Result<Altered> {
    check_column_name(field.name())?;
    if let Some(taken) = column_named(info, field.name()) {
        return if if_missing { Ok(Altered::Nothing) } else { Err(taken_name(field.name(), taken)) };
    }
    let last_id = change
        .connection()
        .prepare_cached("SELECT COALESCE(MAX(column_id), 0) FROM ducklake_column WHERE table_id = ?")?
        .query_row([info.id], |row| row.get(0))?;
    let layout = ColumnLayout::of_column(field, last_id)?.with_json(|_| is_json).with_uuids(|_| is_uuid);
    let mut rows = ObjectRows::default();
    layout.insert(change, &mut rows, info.id)?;
    rows.flush(change.connection())?;
    if let (Some(default), Some(added)) = (default, layout.columns.first()) {
        columns::set_default(change, info.id, added.id, Some(&ColumnDefault::Literal(default.to_owned())))?;
        change
            .connection()
            .prepare_cached("UPDATE ducklake_column SET initial_default = ? WHERE table_id = ? AND column_id = ?")?
            .execute(params![default, info.id, added.id])?;
    }
    Ok(Altered::Layout)
}

fn drop_column(change: &mut CatalogChange<'_>, info: &TableInfo, column: &str, if_exists: bool) -> Result<Altered> {
    let Some(position) = info.columns.iter().position(|known| name_key(&known.name) == name_key(column)) else {
        return if if_exists { Ok(Altered::Nothing) } else { Err(column_not_found(info, column)) };
    };
    let dropped = &info.columns[position];
    if info.columns.len() == 1 {
        let reason = "a table needs at least one column; drop the table".to_owned();
        return Err(CatalogError::InvalidName { name: dropped.name.clone(), reason });
    }
    refuse_layout_column(change.connection(), info, dropped.id)?;
    sort_orders::refuse_dropped_column(change, info, &dropped.name)?;
    if let Some(needed_by) = policies::newest(change.connection())?.document.needs_column(&info.name, &dropped.name) {
        let reason = format!("{needed_by} names it, and would hide the table; change or drop that first");
        return Err(CatalogError::InvalidName { name: dropped.name.clone(), reason });
    }
    let rows = columns::load_rows(change.connection(), info.id, change.snapshot())?;
    for id in with_parts(&rows, dropped.id) {
        end_column(change, info.id, id)?;
        change
            .connection()
            .prepare_cached(
                "UPDATE ducklake_column_tag SET end_snapshot = ?
                 WHERE table_id = ? AND column_id = ? AND end_snapshot IS NULL",
            )?
            .execute([change.snapshot(), info.id, id])?;
        columns::unmark_json(change, info.id, id)?;
    }
    dependents::delete_values(change.connection(), info.id)?;
    dependents::delete_vector_indexes_of_column(change.connection(), info.id, dropped.id)?;
    Ok(Altered::Layout)
}

/// By which DuckDB lays out the table's files: it would look for the column.
fn refuse_layout_column(connection: &StoreConnection, info: &TableInfo, column_id: i64) -> Result<()> {
    let is_partitioned_by: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM ducklake_partition_info i JOIN ducklake_partition_column c USING (partition_id)
                            WHERE i.table_id = ?1 AND i.end_snapshot IS NULL AND c.column_id = ?2)",
        )?
        .query_row([info.id, column_id], |row| row.get(0))?;
    match is_partitioned_by {
        true => Err(CatalogError::UnsupportedLake {
            table: info.name.table.clone(),
            what: "files that DuckDB partitions by this column".into(),
            hint: "reset its partitioning with DuckDB first".into(),
        }),
        false => Ok(()),
    }
}

fn rename_column(change: &mut CatalogChange<'_>, info: &TableInfo, column: &str, to: &str) -> Result<Altered> {
    check_column_name(to)?;
    let known = require_column(info, column)?;
    if known.name == to {
        return Ok(Altered::Nothing);
    }
    let id = known.id;
    if let Some(taken) = info.columns.iter().find(|other| other.id != id && name_key(&other.name) == name_key(to)) {
        return Err(taken_name(to, &taken.name));
    }
    sort_orders::rename_column(change, info, &known.name, to)?;
    replace_column(change, info, known, &ChangedColumn { name: Some(to), ..ChangedColumn::default() })?;
    Ok(Altered::Layout)
}

fn set_nullable(change: &mut CatalogChange<'_>, info: &TableInfo, column: &str, nullable: bool) -> Result<Altered> {
    let known = require_column(info, column)?;
    if known.nullable == nullable {
        return Ok(Altered::Nothing);
    }
    let is_primary: bool = change
        .connection()
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM querent_key k, json_each(k.column_ids) id
                            WHERE k.table_id = ? AND k.is_primary = 1 AND CAST(id.value AS BIGINT) = ?)",
        )?
        .query_row([info.id, known.id], |row| row.get(0))?;
    if nullable && is_primary {
        let reason = "it is in the table's primary key, which holds no nulls".to_owned();
        return Err(CatalogError::InvalidName { name: known.name.clone(), reason });
    }
    replace_column(change, info, known, &ChangedColumn { nullable: Some(nullable), ..ChangedColumn::default() })?;
    Ok(Altered::Version)
}

fn widen_column(
    change: &mut CatalogChange<'_>,
    info: &TableInfo,
    column: &str,
    data_type: &DataType,
) -> Result<Altered> {
    let known = require_column(info, column)?;
    let shape = storable(data_type).map_err(|hint| CatalogError::UnsupportedType {
        column: known.name.clone(),
        data_type: shown_type(data_type),
        hint,
    })?;
    let Shape::Leaf(column_type, canonical) = shape else { return Err(not_wider(known, data_type)) };
    if canonical == known.data_type {
        return Ok(Altered::Nothing);
    }
    if !is_wider_type(&known.data_type, &canonical) {
        return Err(not_wider(known, data_type));
    }
    replace_column(
        change,
        info,
        known,
        &ChangedColumn { column_type: Some(&column_type), ..ChangedColumn::default() },
    )?;
    Ok(Altered::Layout)
}

fn set_json(change: &mut CatalogChange<'_>, info: &TableInfo, column: &str, is_json: bool) -> Result<Altered> {
    let known = require_column(info, column)?;
    if known.is_json == is_json {
        return Ok(Altered::Nothing);
    }
    if known.data_type != DataType::Utf8 {
        return Err(not_wider(known, &DataType::Utf8));
    }
    if is_json {
        columns::mark_json(change, info.id, known.id)?;
    } else if !columns::unmark_json(change, info.id, known.id)? {
        // DuckDB gave it the type.
        return Err(not_wider(known, &DataType::Utf8));
    }
    Ok(Altered::Beside)
}

fn not_wider(column: &ColumnInfo, to: &DataType) -> CatalogError {
    CatalogError::UnsupportedType {
        column: column.name.clone(),
        data_type: shown_type(to),
        hint: format!("a column of {} becomes a wider integer, or a decimal of more digits", column.data_type),
    }
}

fn set_default(
    change: &mut CatalogChange<'_>,
    info: &TableInfo,
    column: &str,
    default: Option<&ColumnDefault>,
) -> Result<Altered> {
    let known = require_column(info, column)?;
    if known.default.as_ref() == default {
        return Ok(Altered::Nothing);
    }
    replace_column(change, info, known, &ChangedColumn::default())?;
    columns::set_default(change, info.id, known.id, default)?;
    Ok(Altered::Version)
}

/// What is new about a column; `None`: as it was.
#[derive(Default)]
struct ChangedColumn<'a> {
    name: Option<&'a str>,
    column_type: Option<&'a str>,
    nullable: Option<bool>,
}

/// Ends a column's row and begins another. A row that begins with the change itself is changed where it stands.
fn replace_column(
    change: &CatalogChange<'_>,
    info: &TableInfo,
    column: &ColumnInfo,
    changed: &ChangedColumn<'_>,
) -> Result<()> {
    dependents::delete_values(change.connection(), info.id)?;
    let values = params![changed.name, changed.column_type, changed.nullable, info.id, column.id, change.snapshot()];
    let renewed = change
        .connection()
        .prepare_cached(
            "UPDATE ducklake_column SET column_name = COALESCE(?1, column_name), column_type = COALESCE(?2, column_type),
                    nulls_allowed = COALESCE(?3, nulls_allowed)
             WHERE table_id = ?4 AND column_id = ?5 AND begin_snapshot = ?6 AND end_snapshot IS NULL",
        )?
        .execute(values)?;
    if renewed > 0 {
        return Ok(());
    }
    end_column(change, info.id, column.id)?;
    change
        .connection()
        .prepare_cached(
            "INSERT INTO ducklake_column
             SELECT column_id, ?1, NULL, table_id, column_order, COALESCE(?2, column_name), COALESCE(?3, column_type),
                    initial_default, default_value, COALESCE(?4, nulls_allowed), parent_column, default_value_type,
                    default_value_dialect
             FROM ducklake_column WHERE table_id = ?5 AND column_id = ?6 AND end_snapshot = ?1",
        )?
        .execute(params![change.snapshot(), changed.name, changed.column_type, changed.nullable, info.id, column.id])?;
    Ok(())
}

fn require_column<'i>(info: &'i TableInfo, name: &str) -> Result<&'i ColumnInfo> {
    let found = info.columns.iter().find(|known| name_key(&known.name) == name_key(name));
    found.ok_or_else(|| column_not_found(info, name))
}

fn rename_table(change: &mut CatalogChange<'_>, object: &ObjectRow, info: &TableInfo, to: &str) -> Result<Altered> {
    check_name(to)?;
    if object.name == to {
        return Ok(Altered::Nothing);
    }
    let connection = change.connection();
    if let Some(taken) = objects::object(connection, &info.name.database, to)?.filter(|taken| taken.id != object.id) {
        return Err(taken_name(to, &taken.name));
    }
    if object.kind == TableKind::View {
        end_rows(change, "ducklake_view", "view_id", object.id)?;
        connection
            .prepare_cached(
                "INSERT INTO ducklake_view
                 SELECT view_id, view_uuid, ?1, NULL, schema_id, ?2, dialect, \"sql\", column_aliases
                 FROM ducklake_view WHERE view_id = ?3 AND end_snapshot = ?1",
            )?
            .execute(params![change.snapshot(), to, object.id])?;
        return Ok(Altered::Beside);
    }
    end_rows(change, "ducklake_table", "table_id", object.id)?;
    connection
        .prepare_cached(
            "INSERT INTO ducklake_table
             SELECT table_id, table_uuid, ?1, NULL, schema_id, ?2, path, path_is_relative
             FROM ducklake_table WHERE table_id = ?3 AND end_snapshot = ?1",
        )?
        .execute(params![change.snapshot(), to, object.id])?;
    // As DuckDB does: it names what it keeps in the catalog by the table's version.
    Ok(Altered::Layout)
}

fn end_column(change: &CatalogChange<'_>, table_id: i64, column_id: i64) -> Result<()> {
    change
        .connection()
        .prepare_cached(
            "UPDATE ducklake_column SET end_snapshot = ? WHERE table_id = ? AND column_id = ? AND end_snapshot IS NULL",
        )?
        .execute([change.snapshot(), table_id, column_id])?;
    Ok(())
}

/// The id of a column, and those of what is nested in it.
fn with_parts(rows: &[ColumnRow], id: i64) -> Vec<i64> {
    let mut ids = vec![id];
    let mut next = 0;
    while let Some(parent) = ids.get(next).copied() {
        ids.extend(rows.iter().filter(|row| row.parent == Some(parent)).map(|row| row.id));
        next += 1;
    }
    ids
}

fn column_named<'i>(info: &'i TableInfo, name: &str) -> Option<&'i str> {
    let mut names = info.columns.iter().map(|column| column.name.as_str());
    names.find(|known| name_key(known) == name_key(name))
}

fn taken_name(name: &str, existing: &str) -> CatalogError {
    let existing = (existing != name).then(|| existing.to_owned());
    CatalogError::AlreadyExists { name: name.to_owned(), existing }
}

fn check_column_name(name: &str) -> Result<()> {
    match name.is_empty() {
        true => Err(CatalogError::InvalidName { name: name.to_owned(), reason: "a column needs a name".into() }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nested_in_a_column_goes_with_it() {
        let row = |id: i64, parent: Option<i64>| ColumnRow {
            id,
            name: format!("c{id}"),
            column_type: "struct".into(),
            nullable: true,
            parent,
            initial_default: None,
            default: None,
        };
        let rows = [row(1, None), row(2, Some(1)), row(3, Some(2)), row(4, None), row(5, Some(4))];
        assert_eq!(with_parts(&rows, 1), [1, 2, 3]);
        assert_eq!(with_parts(&rows, 4), [4, 5]);
    }
}
