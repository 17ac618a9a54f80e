//! In what order the rows of a table are written: `ducklake_sort_info` has an order's time, `ducklake_sort_expression` its keys, as
//! DuckDB records them.
//!
//! An order is a wish of writers and no promise: files that were written before, or with `sort_on_insert` off, are in any order.

use super::change::CatalogChange;
use super::tables::end_rows;
use crate::connection::{DatabaseResult, OptionalRow, StoreConnection, params};
use crate::error::{CatalogError, Result};
use crate::model::{ManagedTable, SnapshotId, SortedByKey, TableInfo};

/// DuckDB's name for the SQL that keys are written in.
const DIALECT: &str = "duckdb";

/// Returns the keys of a table's order, none where it has none.
pub(crate) fn load(connection: &StoreConnection, table_id: i64, snapshot: SnapshotId) -> Result<Vec<SortedByKey>> {
    let sort_id: Option<i64> = connection
        .prepare_cached(
            "SELECT sort_id FROM ducklake_sort_info
             WHERE table_id = ?1 AND begin_snapshot <= ?2 AND (end_snapshot IS NULL OR end_snapshot > ?2)",
        )?
        .query_row([table_id, snapshot], |row| row.get(0))
        .optional()?;
    let Some(sort_id) = sort_id else { return Ok(Vec::new()) };
    let mut statement = connection.prepare_cached(
        "SELECT expression, sort_direction, null_order FROM ducklake_sort_expression
         WHERE sort_id = ? AND table_id = ? ORDER BY sort_key_index",
    )?;
    let keys = statement.query_map([sort_id, table_id], |row| {
        let (direction, nulls): (String, String) = (row.get(1)?, row.get(2)?);
        Ok(SortedByKey {
            expression: row.get(0)?,
            is_descending: direction.eq_ignore_ascii_case("DESC"),
            nulls_first: nulls.eq_ignore_ascii_case("NULLS_FIRST"),
        })
    })?;
    Ok(keys.collect::<DatabaseResult<_>>()?)
}

/// Returns the order in which an insert writes: none where DuckDB's option `sort_on_insert` says so of the table, its database or the
/// lake.
pub(crate) fn of_inserts(connection: &StoreConnection, table: &ManagedTable) -> Result<Vec<SortedByKey>> {
    let keys = load(connection, table.id, table.snapshot)?;
    if keys.is_empty() {
        return Ok(keys);
    }
    let option: Option<String> = connection
        .prepare_cached(
            "SELECT value FROM ducklake_metadata
             WHERE key = 'sort_on_insert'
               AND (scope IS NULL OR (scope = 'table' AND scope_id = ?1)
                    OR (scope = 'schema' AND scope_id IN (SELECT schema_id FROM ducklake_table
                                                          WHERE table_id = ?1 AND end_snapshot IS NULL)))
             ORDER BY CASE scope WHEN 'table' THEN 0 WHEN 'schema' THEN 1 ELSE 2 END LIMIT 1",
        )?
        .query_row([table.id], |row| row.get(0))
        .optional()?;
    let is_off = option.is_some_and(|value| value.eq_ignore_ascii_case("false"));
    Ok(if is_off { Vec::new() } else { keys })
}

/// Gives a table another order, or none. Returns whether it is another.
pub(super) fn set(change: &mut CatalogChange<'_>, table_id: i64, keys: &[SortedByKey]) -> Result<bool> {
    if load(change.connection(), table_id, change.snapshot())? == keys {
        return Ok(false);
    }
    end_rows(change, "ducklake_sort_info", "table_id", table_id)?;
    if !keys.is_empty() {
        insert(change, table_id, keys)?;
    }
    Ok(true)
}

/// Records the order of a table that has none.
pub(super) fn insert(change: &mut CatalogChange<'_>, table_id: i64, keys: &[SortedByKey]) -> Result<()> {
    let sort_id = change.new_object_id();
    let connection = change.connection();
    connection.prepare_cached("INSERT INTO ducklake_sort_info VALUES (?, ?, ?, NULL)")?.execute([
        sort_id,
        table_id,
        change.snapshot(),
    ])?;
    let mut statement =
        connection.prepare_cached("INSERT INTO ducklake_sort_expression VALUES (?, ?, ?, ?, ?, ?, ?)")?;
    for (index, key) in keys.iter().enumerate() {
        let nulls = if key.nulls_first { "NULLS_FIRST" } else { "NULLS_LAST" };
        let expression = key.expression.as_str();
        statement.execute(params![sort_id, table_id, index as i64, expression, DIALECT, key.direction(), nulls])?;
    }
    Ok(())
}

/// Refuses to drop a column by which rows are sorted, as DuckDB does.
pub(super) fn refuse_dropped_column(change: &CatalogChange<'_>, table: &TableInfo, column: &str) -> Result<()> {
    match load(change.connection(), table.id, change.snapshot())?.iter().any(|key| key.names(column)) {
        true => Err(CatalogError::InvalidName {
            name: column.to_owned(),
            reason: "the table is sorted by it; write ALTER TABLE ... RESET SORTED BY first".into(),
        }),
        false => Ok(()),
    }
}

/// Has the order of a table follow a column that is renamed, as a new order, as DuckDB does.
pub(super) fn rename_column(change: &mut CatalogChange<'_>, table: &TableInfo, column: &str, to: &str) -> Result<()> {
    let keys = load(change.connection(), table.id, change.snapshot())?;
    if !keys.iter().any(|key| key.names(column)) {
        return Ok(());
    }
    if keys.iter().any(|key| key.column().is_none() && key.names(column)) {
        return Err(CatalogError::UnsupportedLake {
            table: table.name.table.clone(),
            what: "rows that DuckDB sorts by an expression of this column".into(),
            hint: "write ALTER TABLE ... RESET SORTED BY first, or rename it with DuckDB".into(),
        });
    }
    let renamed: Vec<SortedByKey> = keys
        .into_iter()
        .map(|key| match key.names(column) {
            true => SortedByKey::of_column(to, key.is_descending, key.nulls_first),
            false => key,
        })
        .collect();
    set(change, table.id, &renamed)?;
    Ok(())
}
