//! Rows that go from a managed table while others come: DuckLake's delete files, as DuckDB writes them. Files that others add
//! meanwhile stay; a file of which both took rows is a conflict.

use super::change::{CatalogChange, quoted};
use super::columns;
use super::relations::LakePath;
use super::tables::{add_files, refuse_encrypted, require_unchanged, stored};
use super::{deletes, inlined};
use crate::connection::{StoreConnection, params};
use crate::error::{CatalogError, Result};
use crate::model::{DeletedRows, ManagedTable, NewDeleteFile, RowChanges, SnapshotId};

/// Applies what a statement changed of a table as it was resolved. Errors: `conflict`, `unsupported_lake`.
pub(crate) fn apply(change: &mut CatalogChange<'_>, table: &ManagedTable, changes: &RowChanges) -> Result<SnapshotId> {
    let relation = require_unchanged(change, table)?;
    let name = relation.info().name.table.clone();
    refuse_encrypted(change, &name)?;
    let connection = change.connection();
    for gone in &changes.deleted {
        refuse_changed_file(connection, table, gone.file_id, &name)?;
        delete_rows(change, table, gone)?;
    }
    if !changes.deleted.is_empty() {
        change.record_rows(format!("deleted_from_table:{}", table.id));
    }
    end_inlined(change, table, &changes.inlined, &name)?;
    let rows = columns::load_rows(connection, table.id, change.base())?;
    add_files(change, table.id, &table.location, &rows, &changes.added)?;
    Ok(if change.is_empty() { change.base() } else { change.snapshot() })
}

/// `conflict` where a file is not as it was when its rows were chosen.
fn refuse_changed_file(connection: &StoreConnection, table: &ManagedTable, file_id: i64, name: &str) -> Result<()> {
    let is_unchanged: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM ducklake_data_file
                            WHERE data_file_id = ?1 AND table_id = ?2 AND end_snapshot IS NULL)
                AND NOT EXISTS (SELECT 1 FROM ducklake_delete_file
                                WHERE data_file_id = ?1 AND table_id = ?2
                                  AND (begin_snapshot > ?3 OR end_snapshot > ?3))",
        )?
        .query_row([file_id, table.id, table.snapshot], |row| row.get(0))?;
    let is_deleted = match deletes::inlined_table(connection, table.id)? {
        Some(deletes) => connection.query_row(
            &format!("SELECT EXISTS (SELECT 1 FROM {} WHERE file_id = ? AND begin_snapshot > ?)", quoted(&deletes)),
            [file_id, table.snapshot],
            |row| row.get(0),
        )?,
        None => false,
    };
    match is_unchanged && !is_deleted {
        true => Ok(()),
        false => Err(CatalogError::Conflict { object: name.to_string() }),
    }
}

fn delete_rows(change: &mut CatalogChange<'_>, table: &ManagedTable, gone: &DeletedRows) -> Result<()> {
    let connection = change.connection();
    connection
        .prepare_cached(
            "UPDATE ducklake_delete_file SET end_snapshot = ? WHERE data_file_id = ? AND table_id = ? AND end_snapshot IS NULL",
        )?
        .execute([change.snapshot(), gone.file_id, table.id])?;
    let Some(NewDeleteFile { path, row_count, file_size_bytes, footer_size }) = &gone.delete_file else {
        connection
            .prepare_cached("UPDATE ducklake_data_file SET end_snapshot = ? WHERE data_file_id = ? AND table_id = ?")?
            .execute([change.snapshot(), gone.file_id, table.id])?;
        return Ok(());
    };
    let id = change.new_file_id();
    let LakePath { path, is_relative } = LakePath::relative_to(path, &table.location);
    connection
        .prepare_cached(
            "INSERT INTO ducklake_delete_file VALUES (?, ?, ?, NULL, ?, ?, ?, 'parquet', ?, ?, ?, NULL, NULL)",
        )?
        .execute(params![
            id,
            table.id,
            change.snapshot(),
            gone.file_id,
            path,
            is_relative,
            stored(*row_count)?,
            stored(*file_size_bytes)?,
            stored(*footer_size)?,
        ])?;
    Ok(())
}

/// Ends rows that DuckDB keeps in the catalog, by their places among them.
fn end_inlined(change: &mut CatalogChange<'_>, table: &ManagedTable, places: &[u64], name: &str) -> Result<()> {
    if places.is_empty() {
        return Ok(());
    }
    let connection = change.connection();
    let rows = inlined::row_ids(connection, table)?;
    let conflict = || CatalogError::Conflict { object: name.to_string() };
    for place in places {
        let row = usize::try_from(*place).ok().and_then(|place| rows.get(place));
        let (rows_table, row_id) = row.ok_or_else(conflict)?;
        let ended = connection
            .prepare_cached(&format!(
                "UPDATE {} SET end_snapshot = ? WHERE row_id = ? AND begin_snapshot <= ? AND end_snapshot IS NULL",
                quoted(rows_table)
            ))?
            .execute([change.snapshot(), *row_id, table.snapshot])?;
        if ended != 1 {
            return Err(conflict());
        }
    }
    change.record_rows(format!("inlined_delete:{}", table.id));
    Ok(())
}
