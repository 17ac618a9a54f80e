//! Rows that go from a managed table while others come: DuckLake's delete files, as DuckDB writes them. Files that others add
//! meanwhile stay; a file of which both took rows is a conflict.

use std::collections::BTreeSet;

use super::change::CatalogChange;
use super::columns;
use super::relations::LakePath;
use super::rows::to_json;
use super::tables::{add_files, refuse_encrypted, require_unchanged, stored};
use super::{deletes, inlined};
use crate::connection::{RowInserts, StoreConnection, params};
use crate::error::{CatalogError, Result};
use crate::model::{DeletedRows, ManagedTable, NewDeleteFile, RowChanges, SnapshotId, quote_identifier};

/// Applies what a statement changed of a table as it was resolved. Errors: `conflict`, `unsupported_lake`.
pub(crate) fn apply(change: &mut CatalogChange<'_>, table: &ManagedTable, changes: &RowChanges) -> Result<SnapshotId> {
    let name = require_unchanged(change, table)?;
    refuse_encrypted(change, &name)?;
    let connection = change.connection();
    if !changes.deleted.is_empty() {
        refuse_changed_files(connection, table, &changes.deleted, &name)?;
        delete_rows(change, table, &changes.deleted)?;
        change.record_rows(format!("deleted_from_table:{}", table.id));
    }
    end_inlined(change, table, &changes.inlined, &name)?;
    let rows = columns::load_rows(connection, table.id, change.base())?;
    add_files(change, table.id, &table.location, &rows, &changes.added)?;
    Ok(if change.is_empty() { change.base() } else { change.snapshot() })
}

/// `conflict` where a file is not as it was when its rows were chosen.
fn refuse_changed_files(
    connection: &StoreConnection,
    table: &ManagedTable,
    gone: &[DeletedRows],
    name: &str,
) -> Result<()> {
    let ids: BTreeSet<i64> = gone.iter().map(|gone| gone.file_id).collect();
    let wanted = to_json(&ids)?;
    // The plus keeps SQLite from looking at all files of the table.
    let unchanged: i64 = connection
        .prepare_cached(
            "SELECT count(*) FROM ducklake_data_file f
             WHERE f.data_file_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))
               AND (+f.table_id = ?2) AND f.end_snapshot IS NULL
               AND NOT EXISTS (SELECT 1 FROM ducklake_delete_file d
                               WHERE d.data_file_id = f.data_file_id AND d.table_id = ?2
                                 AND (d.begin_snapshot > ?3 OR d.end_snapshot > ?3))",
        )?
        .query_row(params![wanted, table.id, table.snapshot], |row| row.get(0))?;
    let is_deleted = match deletes::inlined_table(connection, table.id)? {
        Some(deletes) => {
            let sql = format!(
                "SELECT EXISTS (SELECT 1 FROM {} WHERE begin_snapshot > ?1
                                AND file_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?2)))",
                quote_identifier(&deletes)
            );
            connection.query_row(&sql, params![table.snapshot, wanted], |row| row.get(0))?
        }
        None => false,
    };
    match usize::try_from(unchanged).is_ok_and(|unchanged| unchanged == ids.len()) && !is_deleted {
        true => Ok(()),
        false => Err(CatalogError::Conflict { object: name.to_string() }),
    }
}

/// Takes rows away: whole files, and parts of them by files that say which. All go in a few statements, since others wait to write.
fn delete_rows(change: &mut CatalogChange<'_>, table: &ManagedTable, gone: &[DeletedRows]) -> Result<()> {
    let (connection, snapshot) = (change.connection(), change.snapshot());
    let all: Vec<i64> = gone.iter().map(|gone| gone.file_id).collect();
    connection
        .prepare_cached(
            "UPDATE ducklake_delete_file SET end_snapshot = ?1
             WHERE table_id = ?2 AND end_snapshot IS NULL
               AND data_file_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?3))",
        )?
        .execute(params![snapshot, table.id, to_json(&all)?])?;
    let whole = gone.iter().filter(|gone| gone.delete_file.is_none());
    let whole: Vec<i64> = whole.map(|gone| gone.file_id).collect();
    if !whole.is_empty() {
        connection
            .prepare_cached(
                "UPDATE ducklake_data_file SET end_snapshot = ?1
                 WHERE table_id = ?2 AND data_file_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?3))",
            )?
            .execute(params![snapshot, table.id, to_json(&whole)?])?;
    }
    let mut rows = RowInserts::new(
        "INSERT INTO ducklake_delete_file VALUES",
        "(?, ?, ?, NULL, ?, ?, ?, 'parquet', ?, ?, ?, NULL, NULL)",
    );
    for gone in gone {
        let Some(NewDeleteFile { path, row_count, file_size_bytes, footer_size }) = &gone.delete_file else { continue };
        let id = change.new_file_id();
        let LakePath { path, is_relative } = LakePath::relative_to(path, &table.location);
        let (row_count, file_size) = (stored(*row_count)?, stored(*file_size_bytes)?);
        let footer_size = stored(*footer_size)?;
        let file_id = gone.file_id;
        let row = params![id, table.id, snapshot, file_id, path, is_relative, row_count, file_size, footer_size];
        rows.add(connection, row)?;
    }
    Ok(rows.flush(connection)?)
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
                quote_identifier(rows_table)
            ))?
            .execute([change.snapshot(), *row_id, table.snapshot])?;
        if ended != 1 {
            return Err(conflict());
        }
    }
    change.record_rows(format!("inlined_delete:{}", table.id));
    Ok(())
}
