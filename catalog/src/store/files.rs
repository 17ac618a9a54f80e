//! The contents of a managed table at a snapshot: its files, their deleted rows, and rows kept in the catalog. Features
//! of a lake that are not supported yet are refused, so that a table is read correctly or not at all.

use std::collections::{BTreeMap, HashMap};

use arrow_schema::SchemaRef;

use super::columns::{self, ColumnRow, LoadedColumns};
use super::relations::LakePath;
use super::{deletes, distinct_values, inlined, lake_location};
use crate::connection::{DatabaseResult, StoreConnection, StoreRow, params};
use crate::error::{CatalogError, Result};
use crate::model::{ColumnStats, DataFile, FileDeletes, ManagedTable, SnapshotId, TableContents};

/// What the user can do about an unsupported feature.
pub(super) const FLUSH_HINT: &str =
    "materialize it with DuckDB: CREATE TABLE ... AS SELECT of the table, with DATA_INLINING_ROW_LIMIT 0 on ATTACH";
const WRITE_HINT: &str = "Querent reads it and does not write it yet: insert with DuckDB";
pub(super) const REWRITE_HINT: &str = "copy the table with DuckDB (CREATE TABLE ... AS SELECT, with DATA_INLINING_ROW_LIMIT 0 on ATTACH) and read the copy";

/// The contents of a table, with statistics of some columns. Errors: `unsupported_lake`.
pub(crate) fn contents(
    connection: &StoreConnection,
    table: &ManagedTable,
    stats_columns: &[i64],
) -> Result<TableContents> {
    let refusal = RefusedTable { connection, table };
    let loaded = columns::load(connection, table.id, table.snapshot)?;
    refuse_unreadable(&refusal, &loaded)?;
    // What a whole column is in older files, a scan says.
    let parts: Vec<&ColumnRow> = loaded.rows.iter().filter(|row| !row.is_whole_column()).collect();
    let mut files = read_files(&refusal, &defaulted_columns(&refusal, &parts)?)?;
    read_statistics(connection, table, stats_columns, &mut files)?;
    deletes::read(&refusal, &mut files)?;
    let inlined = inlined::read(&refusal, &loaded)?;
    let rows = files.iter().map(|file| file.row_count.saturating_sub(file.deletes.rows())).sum::<u64>()
        + inlined.as_ref().map_or(0, |rows| rows.num_rows() as u64);
    let distinct_values = distinct_values::estimated(connection, table.id, rows)?;
    Ok(TableContents { files, inlined, distinct_values })
}

/// The files of a table without deleted or inlined rows. Errors: `unsupported_lake`.
pub(crate) fn whole_files(
    connection: &StoreConnection,
    table: &ManagedTable,
    stats_columns: &[i64],
) -> Result<Vec<DataFile>> {
    let TableContents { files, inlined, distinct_values: _ } = contents(connection, table, stats_columns)?;
    let refusal = RefusedTable { connection, table };
    let rows = columns::load_rows(connection, table.id, table.snapshot)?;
    read_files(&refusal, &defaulted_columns(&refusal, &rows.iter().collect::<Vec<_>>())?)?;
    if inlined.is_some() {
        return Err(refusal.because("inlined rows", FLUSH_HINT));
    }
    match files.iter().find(|file| !file.deletes.is_empty()) {
        Some(file) if file.deletes.file.is_some() => Err(refusal.because("deleted rows (delete files)", REWRITE_HINT)),
        Some(_) => Err(refusal.because("deleted rows (inlined deletes)", REWRITE_HINT)),
        None => Ok(files),
    }
}

/// The schema for writing more files of a table. Errors: `unsupported_lake`.
pub(crate) fn write_schema(connection: &StoreConnection, table: &ManagedTable) -> Result<SchemaRef> {
    let refusal = RefusedTable { connection, table };
    let loaded = columns::load(connection, table.id, table.snapshot)?;
    refuse_unreadable(&refusal, &loaded)?;
    if let Some(column) = loaded.rows.iter().find(|row| row.column_type == "json") {
        return Err(refusal.because(&format!("JSON in column `{}`", column.name), WRITE_HINT));
    }
    let is_part = |row: &&ColumnRow| row.column_type == columns::UUID_TYPE && !row.is_whole_column();
    if let Some(part) = loaded.rows.iter().find(is_part) {
        return Err(refusal.because(&format!("UUIDs inside of a column, in `{}`,", part.name), WRITE_HINT));
    }
    Ok(loaded.write_schema)
}

fn refuse_unreadable(refusal: &RefusedTable<'_>, loaded: &LoadedColumns) -> Result<()> {
    match loaded.unreadable.first() {
        Some((column, column_type)) => {
            Err(refusal.because(&format!("column `{column}` of type {column_type}"), REWRITE_HINT))
        }
        None => Ok(()),
    }
}

/// A table that is being checked; makes its `unsupported_lake` errors.
pub(super) struct RefusedTable<'a> {
    pub(super) connection: &'a StoreConnection,
    pub(super) table: &'a ManagedTable,
}

impl RefusedTable<'_> {
    pub(super) fn because(&self, what: &str, hint: &str) -> CatalogError {
        let name = self.connection.query_row(
            "SELECT table_name FROM ducklake_table WHERE table_id = ? ORDER BY begin_snapshot DESC LIMIT 1",
            [self.table.id],
            |row| row.get(0),
        );
        CatalogError::UnsupportedLake {
            table: name.unwrap_or_else(|_| self.table.id.to_string()),
            what: what.to_string(),
            hint: hint.to_string(),
        }
    }
}

/// A column, or a part of one, that older files lack and that is not null in their rows.
struct DefaultedColumn {
    name: String,
    /// The first snapshot that has the column.
    since: SnapshotId,
}

fn defaulted_columns(refusal: &RefusedTable<'_>, rows: &[&ColumnRow]) -> Result<Vec<DefaultedColumn>> {
    let mut columns = Vec::new();
    for row in rows.iter().filter(|row| row.initial_default.is_some()) {
        let since = refusal
            .connection
            .prepare_cached("SELECT MIN(begin_snapshot) FROM ducklake_column WHERE table_id = ? AND column_id = ?")?
            .query_row([refusal.table.id, row.id], |row| row.get(0))?;
        columns.push(DefaultedColumn { name: row.name.clone(), since });
    }
    Ok(columns)
}

/// A row of `ducklake_data_file`.
struct FileRow {
    file: DataFile,
    begin_snapshot: SnapshotId,
    format: Option<String>,
    is_encrypted: bool,
    mapping_id: Option<i64>,
    partial_max: Option<SnapshotId>,
}

fn read_files(refusal: &RefusedTable<'_>, defaulted: &[DefaultedColumn]) -> Result<Vec<DataFile>> {
    let table = refusal.table;
    let mut statement = refusal.connection.prepare_cached(
        "SELECT data_file_id, path, path_is_relative, record_count, file_size_bytes, footer_size, begin_snapshot,
                file_format, encryption_key IS NOT NULL, mapping_id, partial_max
         FROM ducklake_data_file
         WHERE table_id = ?1 AND begin_snapshot <= ?2 AND (end_snapshot IS NULL OR end_snapshot > ?2)
         ORDER BY COALESCE(file_order, data_file_id), data_file_id",
    )?;
    let rows = statement.query_map([table.id, table.snapshot], |row| {
        let path = LakePath { path: row.get(1)?, is_relative: row.get(2)? };
        Ok(FileRow {
            file: DataFile {
                id: row.get(0)?,
                path: path.under(&table.location),
                row_count: count(row, 3)?.unwrap_or(0),
                file_size_bytes: count(row, 4)?.unwrap_or(0),
                footer_size: count(row, 5)?,
                column_stats: BTreeMap::new(),
                deletes: FileDeletes::default(),
            },
            begin_snapshot: row.get(6)?,
            format: row.get(7)?,
            is_encrypted: row.get(8)?,
            mapping_id: row.get(9)?,
            partial_max: row.get(10)?,
        })
    })?;
    let mut files = Vec::new();
    for row in rows {
        let row = row?;
        refuse_file(refusal, &row, defaulted)?;
        files.push(row.file);
    }
    Ok(files)
}

fn refuse_file(refusal: &RefusedTable<'_>, row: &FileRow, defaulted: &[DefaultedColumn]) -> Result<()> {
    if row.is_encrypted {
        return Err(refusal.because("encrypted files", REWRITE_HINT));
    }
    if let Some(format) = row.format.as_deref().filter(|format| !format.eq_ignore_ascii_case("parquet")) {
        return Err(refusal.because(&format!("files of format {format}"), REWRITE_HINT));
    }
    if row.mapping_id.is_some() {
        return Err(refusal.because("files that were added as they are (columns mapped by name)", REWRITE_HINT));
    }
    // Such a file holds rows of several snapshots, some of them younger than the one asked for.
    if row.partial_max.is_some_and(|newest| newest > refusal.table.snapshot) {
        return Err(
            refusal.because("merged files that are newer than its snapshot", "read the table's newest snapshot")
        );
    }
    if lake_location::is_elsewhere(refusal.connection, &row.file.path)? {
        return Err(refusal.because("files outside of the lake's data path", REWRITE_HINT));
    }
    if let Some(column) = defaulted.iter().find(|column| column.since > row.begin_snapshot) {
        let what = format!("rows that are older than column `{}`, which was added with a default value", column.name);
        return Err(refusal.because(&what, REWRITE_HINT));
    }
    Ok(())
}

fn read_statistics(
    connection: &StoreConnection,
    table: &ManagedTable,
    stats_columns: &[i64],
    files: &mut [DataFile],
) -> Result<()> {
    if stats_columns.is_empty() || files.is_empty() {
        return Ok(());
    }
    let wanted = serde_json::to_string(stats_columns).map_err(|error| CatalogError::Internal(error.to_string()))?;
    let retyped = retyped_columns(connection, table, &wanted)?;
    let mut statement = connection.prepare_cached(
        "SELECT s.data_file_id, s.column_id, s.value_count, s.null_count, s.min_value, s.max_value, s.contains_nan,
                s.column_size_bytes, f.begin_snapshot
         FROM ducklake_data_file f CROSS JOIN ducklake_file_column_stats s ON s.data_file_id = f.data_file_id
         WHERE f.table_id = ?1 AND f.begin_snapshot <= ?2 AND (f.end_snapshot IS NULL OR f.end_snapshot > ?2)
           AND s.column_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?3))",
    )?;
    let rows = statement.query_map(params![table.id, table.snapshot, wanted], |row| {
        let stats = ColumnStats {
            value_count: count(row, 2)?,
            null_count: count(row, 3)?,
            min_value: row.get(4)?,
            max_value: row.get(5)?,
            contains_nan: row.get(6)?,
            column_size_bytes: count(row, 7)?,
        };
        Ok((row.get::<i64>(0)?, row.get::<i64>(1)?, row.get::<SnapshotId>(8)?, stats))
    })?;
    let mut positions: HashMap<i64, usize> = HashMap::with_capacity(files.len());
    for (position, file) in files.iter().enumerate() {
        positions.insert(file.id, position);
    }
    for row in rows {
        let (file_id, column_id, written_at, mut stats) = row?;
        if retyped.get(&column_id).is_some_and(|since| written_at < *since) {
            (stats.min_value, stats.max_value) = (None, None);
        }
        if let Some(file) = positions.get(&file_id).and_then(|position| files.get_mut(*position)) {
            file.column_stats.insert(column_id, stats);
        }
    }
    Ok(())
}

/// Of columns that had another type, the snapshot since which they have theirs: bounds of older files are spelled, and may be ordered,
/// as values of the other type, such as 0.1 of a float that is 0.10000000149 as a double, or 9 and 10 of numbers that are texts now.
fn retyped_columns(
    connection: &StoreConnection,
    table: &ManagedTable,
    wanted: &str,
) -> Result<HashMap<i64, SnapshotId>> {
    let mut statement = connection.prepare_cached(
        "SELECT earlier.column_id, earlier.column_type, present.column_type, earlier.end_snapshot
         FROM ducklake_column earlier
         CROSS JOIN ducklake_column present
                    ON present.table_id = earlier.table_id AND present.column_id = earlier.column_id
         WHERE earlier.table_id = ?1 AND earlier.end_snapshot <= ?2 AND earlier.column_type <> present.column_type
           AND present.begin_snapshot <= ?2 AND (present.end_snapshot IS NULL OR present.end_snapshot > ?2)
           AND earlier.column_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?3))",
    )?;
    let changes = statement.query_map(params![table.id, table.snapshot, wanted], |row| {
        Ok((row.get::<i64>(0)?, row.get::<String>(1)?, row.get::<String>(2)?, row.get::<SnapshotId>(3)?))
    })?;
    let mut retyped: HashMap<i64, SnapshotId> = HashMap::new();
    for change in changes {
        let (column, from, to, since) = change?;
        if !keeps_bounds(&from, &to) {
            let known = retyped.entry(column).or_insert(since);
            *known = since.max(*known);
        }
    }
    Ok(retyped)
}

/// Whether values of a type are spelled, and ordered, as those of the type that they become.
fn keeps_bounds(from: &str, to: &str) -> bool {
    let is_integer = |name: &str| {
        let bits = name.trim_start_matches('u').strip_prefix("int");
        bits.is_some_and(|bits| bits.bytes().all(|digit| digit.is_ascii_digit()))
    };
    let is_decimal = |name: &str| name.starts_with("decimal(");
    let is_text = |name: &str| matches!(name, "varchar" | "json");
    match is_integer(from) {
        true => is_integer(to) || is_decimal(to),
        false => (is_decimal(from) && is_decimal(to)) || (is_text(from) && is_text(to)),
    }
}

/// A count that the lake holds as a signed integer.
pub(super) fn count(row: &StoreRow<'_>, index: usize) -> DatabaseResult<Option<u64>> {
    let stored: Option<i64> = row.get(index)?;
    Ok(stored.and_then(|count| u64::try_from(count).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_for_wider_numbers_only() {
        for (from, to) in [
            ("int8", "int64"),
            ("uint32", "int64"),
            ("int32", "decimal(18,3)"),
            ("decimal(4,1)", "decimal(18,3)"),
            ("varchar", "json"),
        ] {
            assert!(keeps_bounds(from, to), "{from} {to}");
        }
        for (from, to) in [
            ("float32", "float64"),
            ("int32", "float64"),
            ("int32", "json"),
            ("boolean", "int8"),
            ("date", "timestamp"),
            ("interval", "int64"),
            ("uuid", "json"),
        ] {
            assert!(!keeps_bounds(from, to), "{from} {to}");
        }
    }
}
