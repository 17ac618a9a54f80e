//! Rows of data files that DuckDB deleted: positions in delete files, and positions that it keeps in the catalog.

use std::collections::HashMap;

use super::files::{REWRITE_HINT, RefusedTable, count};
use super::lake_location::is_elsewhere;
use super::relations::LakePath;
use crate::connection::{DatabaseResult, StoreConnection};
use crate::error::{CatalogError, Result};
use crate::model::{DataFile, FileDeletes, SnapshotId, quote_identifier};

/// A row of `ducklake_delete_file`.
struct DeleteRow {
    data_file_id: i64,
    path: LakePath,
    format: Option<String>,
    rows: u64,
    is_encrypted: bool,
    partial_max: Option<SnapshotId>,
}

/// Adds to each file the rows that are deleted at the table's snapshot.
pub(super) fn read(refusal: &RefusedTable<'_>, files: &mut [DataFile]) -> Result<()> {
    let mut by_id: HashMap<i64, &mut FileDeletes> = files.iter_mut().map(|file| (file.id, &mut file.deletes)).collect();
    let table = refusal.table;
    let mut statement = refusal.connection.prepare_cached(
        "SELECT data_file_id, path, path_is_relative, format, delete_count, encryption_key IS NOT NULL, partial_max
         FROM ducklake_delete_file
         WHERE table_id = ?1 AND begin_snapshot <= ?2 AND (end_snapshot IS NULL OR end_snapshot > ?2)",
    )?;
    let rows = statement.query_map([table.id, table.snapshot], |row| {
        Ok(DeleteRow {
            data_file_id: row.get(0)?,
            path: LakePath { path: row.get(1)?, is_relative: row.get(2)? },
            format: row.get(3)?,
            rows: count(row, 4)?.unwrap_or(0),
            is_encrypted: row.get(5)?,
            partial_max: row.get(6)?,
        })
    })?;
    for row in rows {
        let row = row?;
        let Some(deletes) = by_id.get_mut(&row.data_file_id) else { continue };
        let path = row.path.under(&table.location);
        let is_parquet = row.format.as_deref().is_none_or(|format| format.eq_ignore_ascii_case("parquet"));
        // Such a file holds deletes of several snapshots, some of them younger than the one asked for.
        let is_younger = row.partial_max.is_some_and(|newest| newest > table.snapshot);
        let is_elsewhere = is_elsewhere(refusal.connection, &path)?;
        if !is_parquet || row.is_encrypted || is_younger || is_elsewhere || deletes.file.is_some() {
            return Err(refusal.because("deleted rows (delete files of a kind that is not read)", REWRITE_HINT));
        }
        deletes.file = Some(path);
        deletes.file_rows = row.rows;
    }
    if let Some(name) = inlined_table(refusal.connection, table.id)? {
        let mut statement = refusal
            .connection
            .prepare(&format!("SELECT file_id, row_id FROM {} WHERE begin_snapshot <= ?", quote_identifier(&name)))?;
        let rows = statement.query_map([table.snapshot], |row| Ok((row.get(0)?, row.get::<i64>(1)?)))?;
        for row in rows {
            let (file_id, position) = row?;
            let Some(deletes) = by_id.get_mut(&file_id) else { continue };
            let position = u64::try_from(position)
                .map_err(|_| CatalogError::Internal(format!("row {position} of file {file_id} is deleted")))?;
            deletes.positions.push(position);
        }
    }
    Ok(())
}

/// The table in which DuckDB keeps a table's deletes of few rows, where there is one.
pub(super) fn inlined_table(connection: &StoreConnection, table_id: i64) -> Result<Option<String>> {
    let name = format!("ducklake_inlined_delete_{table_id}");
    Ok(connection.has_table(&name)?.then_some(name))
}

/// Those of many tables, a JSON list of ids, that have such a table.
pub(super) fn inlined_tables(connection: &StoreConnection, table_ids: &str) -> Result<Vec<i64>> {
    let mut statement = connection.prepare_cached(
        "SELECT CAST(substr(name, 25) AS BIGINT) FROM sqlite_master
         WHERE type = 'table' AND name IN (SELECT 'ducklake_inlined_delete_' || value FROM json_each(?1))",
    )?;
    let found = statement.query_map([table_ids], |row| row.get::<i64>(0))?;
    Ok(found.collect::<DatabaseResult<_>>()?)
}
