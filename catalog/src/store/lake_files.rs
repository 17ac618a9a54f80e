//! The files that the lake's rows name, of all snapshots, with their absolute paths.

use std::path::{Path, PathBuf};

use super::relations::{LakePath, data_path};
use crate::connection::{DatabaseResult, StoreConnection, StoreRow, params};
use crate::error::Result;
use crate::model::TableName;

/// A file that a row names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LakeFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: Option<u64>,
    pub(crate) footer_bytes: Option<u64>,
    /// Whether the newest snapshot has it.
    pub(crate) is_live: bool,
    /// Whether it is a Parquet file.
    pub(crate) is_parquet: bool,
}

/// Calls `f` with each file of data and of deletes. A table that was renamed may have a file at two places; one of them is
/// there.
pub(crate) fn for_each(connection: &StoreConnection, mut f: impl FnMut(LakeFile) -> Result<()>) -> Result<()> {
    let root = data_path(connection)?;
    for (table, format) in [("ducklake_data_file", "file_format"), ("ducklake_delete_file", "format")] {
        let mut statement = connection.prepare(&format!(
            "SELECT DISTINCT s.path, s.path_is_relative, t.path, t.path_is_relative, f.path, f.path_is_relative,
                    f.file_size_bytes, f.footer_size, f.end_snapshot IS NULL AND t.end_snapshot IS NULL, lower(f.{format})
             FROM {table} f CROSS JOIN ducklake_table t ON t.table_id = f.table_id
             CROSS JOIN ducklake_schema s ON s.schema_id = t.schema_id"
        ))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let format: Option<String> = row.get(9)?;
            f(LakeFile {
                path: file_path(&row, 0, &root)?,
                bytes: row.get::<Option<i64>>(6)?.and_then(|bytes| u64::try_from(bytes).ok()),
                footer_bytes: row.get::<Option<i64>>(7)?.and_then(|bytes| u64::try_from(bytes).ok()),
                is_live: row.get(8)?,
                is_parquet: format.is_none_or(|format| format == "parquet"),
            })?;
        }
    }
    // Whoever expires snapshots deletes these.
    let mut statement =
        connection.prepare("SELECT path, path_is_relative FROM ducklake_files_scheduled_for_deletion")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let path = lake_path(&row, 0)?.under(&root);
        f(LakeFile { path, bytes: None, footer_bytes: None, is_live: false, is_parquet: false })?;
    }
    Ok(())
}

/// The managed tables that have at least so many files smaller than so many bytes, those with the most first.
pub(crate) fn tables_of_small_files(
    connection: &StoreConnection,
    at_least: i64,
    below_bytes: i64,
) -> Result<Vec<TableName>> {
    let mut statement = connection.prepare(
        "SELECT s.schema_name, t.table_name
         FROM (SELECT table_id, count(*) AS files FROM ducklake_data_file
               WHERE end_snapshot IS NULL AND file_size_bytes < ?1 GROUP BY table_id HAVING count(*) >= ?2) f
         JOIN ducklake_table t ON t.table_id = f.table_id AND t.end_snapshot IS NULL
         JOIN ducklake_schema s ON s.schema_id = t.schema_id AND s.end_snapshot IS NULL
         ORDER BY f.files DESC, t.table_id",
    )?;
    let rows = statement
        .query_map(params![below_bytes, at_least], |row| Ok(TableName { database: row.get(0)?, table: row.get(1)? }))?;
    Ok(rows.collect::<DatabaseResult<_>>()?)
}

/// The absolute path of a file, of the six columns from this one on: the path of its database, of its table and its own, each
/// with whether it is relative.
pub(super) fn file_path(row: &StoreRow<'_>, column: usize, root: &Path) -> Result<PathBuf> {
    let table = lake_path(row, column + 2)?.under(&lake_path(row, column)?.under(root));
    Ok(lake_path(row, column + 4)?.under(&table))
}

fn lake_path(row: &StoreRow<'_>, column: usize) -> Result<LakePath> {
    Ok(LakePath { path: row.get(column)?, is_relative: row.get::<Option<bool>>(column + 1)?.unwrap_or(true) })
}
