//! ALTER TABLE of managed tables, as DuckDB records it: rows of `ducklake_column` and `ducklake_table` end, and others begin.
//! Ids stay, so that files, comments and keys belong to the column and the table whatever these are called; new columns take
//! ids that none had before.

use arrow_schema::Field;
use rusqlite::{Connection, params};

use super::change::CatalogChange;
use super::columns::{self, ColumnLayout, ColumnRow};
use super::dependents;
use super::names::{check_name, name_key};
use super::objects::{self, ObjectRow};
use super::relations;
use super::resolve::column_not_found;
use super::tables::{end_rows, unknown_table};

use crate::error::{CatalogError, Result};
use crate::model::{TableAlteration, TableInfo, TableKind, TableName};

/// Applies one change of a table. Errors: `table_not_found`, `column_not_found`, `already_exists`, `invalid_object`,
/// `unsupported_type`, `unsupported_lake`.
pub(crate) fn apply(change: &mut CatalogChange<'_>, name: &TableName, alteration: &TableAlteration) -> Result<()> {
    let connection = change.connection();
    let object = objects::object(connection, &name.database, &name.table)?.ok_or_else(|| unknown_table(name))?;
    if object.kind != TableKind::Managed {
        let reason = "ALTER TABLE changes managed tables; this is a view, or an external table".to_owned();
        return Err(CatalogError::InvalidName { name: object.name, reason });
    }
    let relation = relations::load(connection, object.id, change.base())?.ok_or_else(|| unknown_table(name))?;
    let info = relation.info();
    let altered = match alteration {
        TableAlteration::AddColumn { field, if_missing } => add_column(change, info, field, *if_missing)?,
        TableAlteration::DropColumn { column, if_exists } => drop_column(change, info, column, *if_exists)?,
        TableAlteration::RenameColumn { column, to } => rename_column(change, info, column, to)?,
        TableAlteration::RenameTable { to } => rename_table(change, &object, info, to)?,
    };
    if altered {
        change.record_schema(format!("altered_table:{}", object.id));
        objects::refresh(change, object.id, change.snapshot())?;
    }
    Ok(())
}

fn add_column(change: &mut CatalogChange<'_>, info: &TableInfo, field: &Field, if_missing: bool) -> Result<bool> {
    check_column_name(field.name())?;
    if let Some(taken) = column_named(info, field.name()) {
        return if if_missing { Ok(false) } else { Err(taken_name(field.name(), taken)) };
    }
    let last_id = change
        .connection()
        .prepare_cached("SELECT COALESCE(MAX(column_id), 0) FROM ducklake_column WHERE table_id = ?")?
        .query_row([info.id], |row| row.get(0))?;
    ColumnLayout::of_column(field, last_id)?.insert(change, info.id)?;
    Ok(true)
}

fn drop_column(change: &mut CatalogChange<'_>, info: &TableInfo, column: &str, if_exists: bool) -> Result<bool> {
    let Some(position) = info.columns.iter().position(|known| name_key(&known.name) == name_key(column)) else {
        return if if_exists { Ok(false) } else { Err(column_not_found(info, column)) };
    };
    let dropped = &info.columns[position];
    if info.columns.len() == 1 {
        let reason = "a table needs at least one column; drop the table".to_owned();
        return Err(CatalogError::InvalidName { name: dropped.name.clone(), reason });
    }
    refuse_layout_column(change.connection(), info, dropped.id)?;
    let rows = columns::load_rows(change.connection(), info.id, change.base())?;
    for id in with_parts(&rows, dropped.id) {
        end_column(change, info.id, id)?;
        change
            .connection()
            .prepare_cached(
                "UPDATE ducklake_column_tag SET end_snapshot = ?
                 WHERE table_id = ? AND column_id = ? AND end_snapshot IS NULL",
            )?
            .execute([change.snapshot(), info.id, id])?;
    }
    dependents::delete_values(change.connection(), info.id)?;
    change.new_table_version(info.id)?;
    Ok(true)
}

/// By which DuckDB lays out the table's files: it would look for the column.
fn refuse_layout_column(connection: &Connection, info: &TableInfo, column_id: i64) -> Result<()> {
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

fn rename_column(change: &mut CatalogChange<'_>, info: &TableInfo, column: &str, to: &str) -> Result<bool> {
    check_column_name(to)?;
    let Some(known) = info.columns.iter().find(|known| name_key(&known.name) == name_key(column)) else {
        return Err(column_not_found(info, column));
    };
    if known.name == to {
        return Ok(false);
    }
    let id = known.id;
    if let Some(taken) = info.columns.iter().find(|other| other.id != id && name_key(&other.name) == name_key(to)) {
        return Err(taken_name(to, &taken.name));
    }
    end_column(change, info.id, id)?;
    change
        .connection()
        .prepare_cached(
            "INSERT INTO ducklake_column
             SELECT column_id, ?1, NULL, table_id, column_order, ?2, column_type, initial_default, default_value,
                    nulls_allowed, parent_column, default_value_type, default_value_dialect
             FROM ducklake_column WHERE table_id = ?3 AND column_id = ?4 AND end_snapshot = ?1",
        )?
        .execute(params![change.snapshot(), to, info.id, id])?;
    dependents::delete_values(change.connection(), info.id)?;
    change.new_table_version(info.id)?;
    Ok(true)
}

fn rename_table(change: &mut CatalogChange<'_>, object: &ObjectRow, info: &TableInfo, to: &str) -> Result<bool> {
    check_name(to)?;
    if object.name == to {
        return Ok(false);
    }
    let connection = change.connection();
    if let Some(taken) = objects::object(connection, &info.name.database, to)?.filter(|taken| taken.id != object.id) {
        return Err(taken_name(to, &taken.name));
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
    change.new_table_version(info.id)?;
    Ok(true)
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
        };
        let rows = [row(1, None), row(2, Some(1)), row(3, Some(2)), row(4, None), row(5, Some(4))];
        assert_eq!(with_parts(&rows, 1), [1, 2, 3]);
        assert_eq!(with_parts(&rows, 4), [4, 5]);
    }
}
