//! Vector indexes as rows of the store: what they were created as, their dataset's folder and version, and where in it the rows of
//! each data file are.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{VectorIndexSpec, VectorMetric, WHAT};
use crate::connection::{DatabaseResult, OptionalRow, StoreConnection, StoreRow, params};
use crate::error::{CatalogError, Result};
use crate::model::TableName;
use crate::store::name_key;
use crate::store::names::check_name;
use crate::store::rows::{read_json, read_time, to_json, unreadable};

const SPEC_COLUMNS: &str = "i.index_id, i.name, i.table_id, i.column_id, i.metric, i.dimension, i.probes";

/// The most vector indexes of a folder: their definitions are held in memory.
const MAX_INDEXES: i64 = 10_000;

/// The dataset of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BuiltDataset {
    pub(super) folder: String,
    pub(super) version: u64,
    /// Rows when its partitions were trained.
    pub(super) trained_rows: u64,
}

/// Rows of a data file that follow each other in the dataset too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct VectorRun {
    /// The dataset's fragment.
    pub(super) fragment: u32,
    /// The first row's offset in it.
    pub(super) offset: u32,
    /// The first row's position in the file.
    pub(super) position: u64,
    pub(super) rows: u32,
}

/// A data file that an index covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoveredFile {
    /// Its id in the lake.
    pub id: i64,
    /// Its rows.
    pub rows: u64,
    /// Of those, the ones to which no vector has a distance: null, a null in them, or without length where the metric is
    /// the angle.
    pub null_rows: u64,
    /// Whether numbers of it are not finite. Then it is always to be read, since the order of such distances is not that of
    /// the index.
    pub has_odd_numbers: bool,
    pub(super) runs: Vec<VectorRun>,
}

/// What a listing has of an index.
pub(super) struct ListedIndex {
    pub(super) id: i64,
    pub(super) spec: VectorIndexSpec,
    pub(super) table: TableName,
    pub(super) indexed_rows: u64,
    pub(super) indexed_files: u64,
    pub(super) created_at: DateTime<Utc>,
}

/// All definitions, with the folders of those that are built.
pub(super) fn all(connection: &StoreConnection) -> Result<Vec<(i64, VectorIndexSpec, Option<String>)>> {
    let mut statement = connection
        .prepare(&format!("SELECT {SPEC_COLUMNS}, i.folder FROM querent_vector_index i ORDER BY i.index_id"))?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, spec(row)?, row.get(7)?)))?;
    Ok(rows.collect::<DatabaseResult<_>>()?)
}

/// The definitions whose tables are there.
pub(super) fn listed(connection: &StoreConnection) -> Result<Vec<ListedIndex>> {
    let mut statement = connection.prepare(&format!(
        "SELECT {SPEC_COLUMNS}, d.name, o.name, i.created_at,
             (SELECT CAST(coalesce(sum(f.rows), 0) AS BIGINT) FROM querent_vector_index_file f WHERE f.index_id = i.index_id),
             (SELECT count(*) FROM querent_vector_index_file f WHERE f.index_id = i.index_id)
         FROM querent_vector_index i CROSS JOIN querent_object o ON o.object_id = i.table_id
             CROSS JOIN querent_database d ON d.schema_id = o.schema_id
         ORDER BY i.index_id"
    ))?;
    let read = |row: &StoreRow<'_>| {
        Ok(ListedIndex {
            id: row.get(0)?,
            spec: spec(row)?,
            table: TableName::new(row.get::<String>(7)?, row.get::<String>(8)?),
            created_at: read_time(row, 9)?,
            indexed_rows: row.get::<i64>(10)?.unsigned_abs(),
            indexed_files: row.get::<i64>(11)?.unsigned_abs(),
        })
    };
    Ok(statement.query_map([], read)?.collect::<DatabaseResult<_>>()?)
}

/// The name of a table by its id.
pub(super) fn table_name(connection: &StoreConnection, table_id: i64) -> Result<Option<TableName>> {
    Ok(connection
        .prepare_cached(
            "SELECT d.name, o.name FROM querent_object o CROSS JOIN querent_database d ON d.schema_id = o.schema_id
             WHERE o.object_id = ?",
        )?
        .query_row([table_id], |row| Ok(TableName::new(row.get::<String>(0)?, row.get::<String>(1)?)))
        .optional()?)
}

/// The dataset of an index and the files that it covers; `None` where it is not built.
pub(super) fn built(connection: &StoreConnection, id: i64) -> Result<Option<(BuiltDataset, Vec<CoveredFile>)>> {
    let dataset = connection
        .prepare_cached(
            "SELECT folder, version, trained_rows FROM querent_vector_index WHERE index_id = ? AND folder IS NOT NULL",
        )?
        .query_row([id], |row| {
            Ok(BuiltDataset {
                folder: row.get(0)?,
                version: row.get::<i64>(1)?.unsigned_abs(),
                trained_rows: row.get::<i64>(2)?.unsigned_abs(),
            })
        })
        .optional()?;
    let Some(dataset) = dataset else { return Ok(None) };
    let mut statement = connection.prepare_cached(
        "SELECT data_file_id, rows, null_rows, has_odd_numbers, runs_json FROM querent_vector_index_file WHERE index_id = ?",
    )?;
    let read = |row: &StoreRow<'_>| {
        Ok(CoveredFile {
            id: row.get(0)?,
            rows: row.get::<i64>(1)?.unsigned_abs(),
            null_rows: row.get::<i64>(2)?.unsigned_abs(),
            has_odd_numbers: row.get(3)?,
            runs: read_json(row, 4)?,
        })
    };
    let files = statement.query_map([id], read)?.collect::<DatabaseResult<_>>()?;
    Ok(Some((dataset, files)))
}

/// Checks that an index may be created. Errors: `already_exists`, `invalid_name`, `invalid_object`.
pub(super) fn check_new(connection: &StoreConnection, spec: &VectorIndexSpec) -> Result<()> {
    check_name(&spec.name)?;
    let invalid = |reason: String| CatalogError::InvalidObject { what: WHAT, reason };
    let taken: Option<String> = connection
        .prepare_cached(
            "SELECT i.name FROM querent_vector_index i CROSS JOIN querent_object o ON o.object_id = i.table_id
             WHERE i.name_key = ?1 AND o.database_key = (SELECT database_key FROM querent_object WHERE object_id = ?2)",
        )?
        .query_row(params![name_key(&spec.name), spec.table_id], |row| row.get(0))
        .optional()?;
    if let Some(existing) = taken {
        let existing = (existing != spec.name).then_some(existing);
        return Err(CatalogError::AlreadyExists { name: spec.name.clone(), existing });
    }
    let same: Option<String> = connection
        .prepare_cached("SELECT name FROM querent_vector_index WHERE table_id = ? AND column_id = ? AND metric = ?")?
        .query_row(params![spec.table_id, spec.column_id, spec.metric.as_str()], |row| row.get(0))
        .optional()?;
    if let Some(name) = same {
        return Err(invalid(format!("the column has one of this metric, `{name}`; drop that one first")));
    }
    let count: i64 = connection.query_row("SELECT count(*) FROM querent_vector_index", [], |row| row.get(0))?;
    if count >= MAX_INDEXES {
        return Err(invalid(format!("there are {MAX_INDEXES} already; drop some")));
    }
    Ok(())
}

/// Stores a new index. Errors: as [`check_new`], and `conflict` where the table was dropped meanwhile.
pub(super) fn insert(connection: &StoreConnection, spec: &VectorIndexSpec, subject: &str) -> Result<i64> {
    if table_name(connection, spec.table_id)?.is_none() {
        return Err(CatalogError::Conflict { object: spec.name.clone() });
    }
    check_new(connection, spec)?;
    let id = connection
        .prepare_cached(
            "INSERT INTO querent_vector_index (table_id, column_id, name, name_key, metric, dimension, probes, subject,
                 created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING index_id",
        )?
        .query_row(
            params![
                spec.table_id,
                spec.column_id,
                spec.name,
                name_key(&spec.name),
                spec.metric.as_str(),
                spec.dimension as i64,
                spec.probes.map(|probes| probes as i64),
                subject,
                Utc::now().timestamp_micros(),
            ],
            |row| row.get(0),
        )?;
    Ok(id)
}

/// Stores what an index covers now; `None` is nothing. Returns whether the index is still there.
pub(super) fn set_built(
    connection: &StoreConnection,
    id: i64,
    built: Option<&BuiltDataset>,
    files: &[CoveredFile],
) -> Result<bool> {
    let updated = connection
        .prepare_cached(
            "UPDATE querent_vector_index SET folder = ?2, version = ?3, trained_rows = ?4 WHERE index_id = ?1",
        )?
        .execute(params![
            id,
            built.map(|built| &built.folder),
            built.map(|built| built.version as i64),
            built.map(|built| built.trained_rows as i64),
        ])?;
    connection.prepare_cached("DELETE FROM querent_vector_index_file WHERE index_id = ?")?.execute([id])?;
    if updated == 0 {
        return Ok(false);
    }
    let mut insert = connection.prepare_cached(
        "INSERT INTO querent_vector_index_file (index_id, data_file_id, rows, null_rows, has_odd_numbers, runs_json)
         VALUES (?, ?, ?, ?, ?, ?)",
    )?;
    for file in files.iter().filter(|_| built.is_some()) {
        insert.execute(params![
            id,
            file.id,
            file.rows as i64,
            file.null_rows as i64,
            file.has_odd_numbers,
            to_json(&file.runs)?
        ])?;
    }
    Ok(true)
}

/// Deletes an index. Returns whether it was there.
pub(super) fn delete(connection: &StoreConnection, id: i64) -> Result<bool> {
    connection.prepare_cached("DELETE FROM querent_vector_index_file WHERE index_id = ?")?.execute([id])?;
    Ok(connection.prepare_cached("DELETE FROM querent_vector_index WHERE index_id = ?")?.execute([id])? > 0)
}

/// Makes a copy of the store say that no index is built: their datasets are not copied with it.
pub(crate) fn forget_built(connection: &StoreConnection) -> Result<()> {
    connection.execute_batch(
        "DELETE FROM querent_vector_index_file;
         UPDATE querent_vector_index SET folder = NULL, version = NULL, trained_rows = NULL;",
    )?;
    Ok(())
}

fn spec(row: &StoreRow<'_>) -> DatabaseResult<VectorIndexSpec> {
    let metric: String = row.get(4)?;
    let unknown = || unreadable(4, format!("unknown metric `{metric}`"));
    Ok(VectorIndexSpec {
        name: row.get(1)?,
        table_id: row.get(2)?,
        column_id: row.get(3)?,
        metric: VectorMetric::named(&metric).ok_or_else(unknown)?,
        dimension: row.get::<i64>(5)?.unsigned_abs() as usize,
        probes: row.get::<Option<i64>>(6)?.map(|probes| probes.unsigned_abs() as usize),
    })
}
