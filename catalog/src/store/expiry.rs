//! Forgetting old snapshots: what only they see is deleted, as DuckDB's `ducklake_expire_snapshots` does. The files themselves
//! are the caller's to remove; one that stays is a file that no row names, which the clean-up finds.
//!
//! Only the oldest snapshots go, so that a row which ended by the oldest that is left is seen by none.

use std::path::PathBuf;

use chrono::{DateTime, Utc};

use super::lake_files::file_path;
use super::objects;
use super::relations::data_path;
use super::rows::{time_from_micros, to_json};
use crate::connection::{StoreConnection, params};
use crate::error::Result;
use crate::model::{SnapshotId, quote_identifier};

/// Rows of files, or tables, that one transaction deletes.
pub(crate) const EXPIRED_AT_ONCE: usize = 500;
/// Files that are looked for at once.
const FILES_AT_ONCE: i64 = 50_000;

/// The snapshot that was the newest at a time, which is the oldest to keep where earlier states are not wanted. `None` where
/// there was none yet. What DuckDB committed and the objects do not show yet is kept.
///
/// A snapshot that says it is older than one before it was made while a clock was wrong, and does not make that one old.
pub(crate) fn oldest_kept(connection: &StoreConnection, time: DateTime<Utc>) -> Result<Option<SnapshotId>> {
    let absorbed = objects::absorbed_snapshot(connection)?;
    let now = time_from_micros(connection.now_micros()?).unwrap_or_else(Utc::now);
    let mut statement = connection.prepare(
        "SELECT snapshot_id, CAST(snapshot_time AS VARCHAR) FROM ducklake_snapshot WHERE snapshot_id <= ?
         ORDER BY snapshot_id",
    )?;
    let mut rows = statement.query([absorbed])?;
    let mut kept = None;
    while let Some(row) = rows.next()? {
        // DuckDB writes the time of its own zone into SQLite.
        let made = DateTime::parse_from_str(&row.get::<String>(1)?, "%Y-%m-%d %H:%M:%S%.f%#z");
        match made.map(|made| made.to_utc()) {
            Ok(made) if made <= time => kept = Some(row.get::<SnapshotId>(0)?),
            // By a clock that was wrong.
            Ok(made) if made > now => {}
            Ok(_) | Err(_) => break,
        }
    }
    Ok(kept)
}

/// Deletes the snapshots before `kept`, so that nobody begins to read them. Returns how many they were.
pub(crate) fn forget_snapshots(connection: &StoreConnection, kept: SnapshotId) -> Result<u64> {
    connection.execute("DELETE FROM ducklake_snapshot_changes WHERE snapshot_id < ?", [kept])?;
    Ok(connection.execute("DELETE FROM ducklake_snapshot WHERE snapshot_id < ?", [kept])? as u64)
}

/// Files of data that no snapshot sees any more, with the files of their deletes.
#[derive(Debug, Default)]
pub(crate) struct ExpiredFiles {
    pub(crate) data_files: Vec<i64>,
    pub(crate) delete_files: Vec<i64>,
    /// Where they lie. Of a file whose table was moved every place that it may have.
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) bytes: u64,
}

impl ExpiredFiles {
    pub(crate) fn is_empty(&self) -> bool {
        self.data_files.is_empty() && self.delete_files.is_empty()
    }
}

/// Returns some of the files that no snapshot from `kept` on sees; none where there are no more.
pub(crate) fn expired_files(connection: &StoreConnection, kept: SnapshotId) -> Result<ExpiredFiles> {
    let root = data_path(connection)?;
    let mut expired = ExpiredFiles::default();
    let ended = "f.end_snapshot <= ?1 OR NOT EXISTS (SELECT 1 FROM ducklake_table live WHERE live.table_id = f.table_id
                   AND (live.end_snapshot IS NULL OR live.end_snapshot > ?1))";
    // Those of a file go with it.
    let of_ended =
        "EXISTS (SELECT 1 FROM ducklake_data_file d WHERE d.data_file_id = f.data_file_id AND d.end_snapshot <= ?1)";
    for (table, id, condition, ids) in [
        ("ducklake_data_file", "data_file_id", ended.to_owned(), &mut expired.data_files),
        ("ducklake_delete_file", "delete_file_id", format!("{ended} OR {of_ended}"), &mut expired.delete_files),
    ] {
        let mut statement = connection.prepare(&format!(
            "SELECT s.path, s.path_is_relative, t.path, t.path_is_relative, f.path, f.path_is_relative, f.{id},
                    f.file_size_bytes
             FROM (SELECT * FROM {table} f WHERE {condition} ORDER BY f.{id} LIMIT ?2) f
             LEFT JOIN ducklake_table t ON t.table_id = f.table_id
             LEFT JOIN ducklake_schema s ON s.schema_id = t.schema_id ORDER BY f.{id}"
        ))?;
        let mut rows = statement.query(params![kept, FILES_AT_ONCE])?;
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(6)?;
            if ids.last() != Some(&id) {
                ids.push(id);
                expired.bytes += row.get::<Option<i64>>(7)?.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
            }
            // Where its table is not known, neither is its folder.
            if row.get::<Option<String>>(0)?.is_some() {
                expired.paths.push(file_path(&row, 0, &root)?);
            }
        }
    }
    expired.paths.sort_unstable();
    expired.paths.dedup();
    Ok(expired)
}

/// Deletes the rows of some of these files.
pub(crate) fn forget_files(connection: &StoreConnection, data_files: &[i64], delete_files: &[i64]) -> Result<()> {
    for (ids, table, column) in [
        (delete_files, "ducklake_delete_file", "delete_file_id"),
        (data_files, "ducklake_delete_file", "data_file_id"),
        (data_files, "ducklake_file_column_stats", "data_file_id"),
        (data_files, "ducklake_file_variant_stats", "data_file_id"),
        (data_files, "ducklake_file_partition_value", "data_file_id"),
        (data_files, "ducklake_data_file", "data_file_id"),
    ] {
        delete_of(connection, table, column, ids)?;
    }
    Ok(())
}

/// Returns some of the tables that no snapshot from `kept` on sees; none where there are no more.
pub(crate) fn expired_tables(connection: &StoreConnection, kept: SnapshotId) -> Result<Vec<i64>> {
    let mut statement = connection.prepare(
        "SELECT DISTINCT t.table_id FROM ducklake_table t WHERE t.end_snapshot <= ?1 AND NOT EXISTS
             (SELECT 1 FROM ducklake_table live WHERE live.table_id = t.table_id
              AND (live.end_snapshot IS NULL OR live.end_snapshot > ?1))
         LIMIT ?2",
    )?;
    let mut rows = statement.query(params![kept, EXPIRED_AT_ONCE as i64])?;
    let mut tables = Vec::new();
    while let Some(row) = rows.next()? {
        tables.push(row.get(0)?);
    }
    Ok(tables)
}

/// Deletes all rows of tables whose files are forgotten.
pub(crate) fn forget_tables(connection: &StoreConnection, tables: &[i64]) -> Result<()> {
    let mut kept_here = Vec::new();
    for table in tables {
        let mut statement =
            connection.prepare_cached("SELECT table_name FROM ducklake_inlined_data_tables WHERE table_id = ?")?;
        let mut rows = statement.query([*table])?;
        while let Some(row) = rows.next()? {
            kept_here.push(row.get::<String>(0)?);
        }
        kept_here.push(format!("ducklake_inlined_delete_{table}"));
    }
    for name in kept_here {
        connection.execute_batch(&format!("DROP TABLE IF EXISTS {}", quote_identifier(&name)))?;
    }
    let ids = to_json(tables)?;
    for (table, parent, key) in [
        ("ducklake_name_mapping", "ducklake_column_mapping", "mapping_id"),
        ("ducklake_partition_column", "ducklake_partition_info", "partition_id"),
        ("ducklake_sort_expression", "ducklake_sort_info", "sort_id"),
    ] {
        connection.execute(
            &format!(
                "DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {parent} WHERE table_id IN
                     (SELECT CAST(value AS BIGINT) FROM json_each(?)))"
            ),
            [ids.as_str()],
        )?;
    }
    for table in [
        "ducklake_inlined_data_tables",
        "ducklake_column_mapping",
        "ducklake_partition_info",
        "ducklake_sort_info",
        "ducklake_schema_versions",
        "ducklake_column_tag",
        "ducklake_column",
        "ducklake_table_column_stats",
        "ducklake_table_stats",
        "ducklake_table",
    ] {
        delete_of(connection, table, "table_id", tables)?;
    }
    delete_of(connection, "ducklake_tag", "object_id", tables)
}

/// Deletes what else only earlier snapshots see. Earlier versions of the columns of a table that is there stay.
pub(crate) fn forget_rest(connection: &StoreConnection, kept: SnapshotId) -> Result<()> {
    for table in ["ducklake_view", "ducklake_tag", "ducklake_column_tag", "querent_external_table"] {
        connection.execute(&format!("DELETE FROM {table} WHERE end_snapshot <= ?"), [kept])?;
    }
    // The files of a table are found by its database's folder.
    connection.execute(
        "DELETE FROM ducklake_schema WHERE end_snapshot <= ?
         AND NOT EXISTS (SELECT 1 FROM ducklake_table t WHERE t.schema_id = ducklake_schema.schema_id)",
        [kept],
    )?;
    Ok(())
}

fn delete_of(connection: &StoreConnection, table: &str, column: &str, ids: &[i64]) -> Result<()> {
    if !ids.is_empty() {
        let sql = format!("DELETE FROM {table} WHERE {column} IN (SELECT CAST(value AS BIGINT) FROM json_each(?))");
        connection.prepare_cached(&sql)?.execute([to_json(ids)?.as_str()])?;
    }
    Ok(())
}
