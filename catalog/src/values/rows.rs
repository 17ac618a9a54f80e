//! Stored values and sketches of columns. A value is looked up by its key and database along one index, so that the
//! cost of a look-up depends neither on the size of the catalog nor on what the caller may not see.

use std::collections::HashMap;

use chrono::Utc;

use super::{
    ColumnSamples, MAX_SHAPES, MAX_VALUE_COLUMNS, MAX_VALUES, TableProfile, Unprofiled, ValueHit,
    containment as containment_of, shape_key, value_key, value_shape,
};
use crate::connection::{DatabaseResult, OptionalRow, StoreConnection, params};
use crate::error::Result;
use crate::model::{TableName, TableSource};
use crate::principal::Principal;
use crate::store::dependents::delete_values;
use crate::store::objects::object_name;
use crate::store::relations::RelationLoader;
use crate::store::visible::object_condition;
use crate::store::{SnapshotView, VisibleObjects};

/// External files count as changed after this many seconds.
const EXTERNAL_STATE_SECONDS: i64 = 3_600;

/// The tables among `ids` whose state differs from that of their recorded values.
pub(crate) fn unprofiled(view: &SnapshotView<'_>, ids: &[i64]) -> Result<Vec<Unprofiled>> {
    let loader = RelationLoader::for_view(view);
    let mut tables = Vec::new();
    for id in ids {
        let Some(relation) = loader.load(*id)? else { continue };
        let state = match &relation.resolved.source {
            TableSource::Managed(table) => managed_state(view, table.id)?,
            TableSource::External(_) => {
                format!("external {}", Utc::now().timestamp() / EXTERNAL_STATE_SECONDS)
            }
            TableSource::View { .. } => continue,
        };
        let known: Option<String> = view
            .connection
            .prepare_cached("SELECT state FROM querent_profile WHERE object_id = ?")?
            .query_row([id], |row| row.get(0))
            .optional()?;
        if known.as_ref() != Some(&state) {
            tables.push(Unprofiled { table_id: *id, name: relation.resolved.info.name, state });
        }
    }
    Ok(tables)
}

fn managed_state(view: &SnapshotView<'_>, table_id: i64) -> Result<String> {
    let names = state_of_names(view.connection, table_id)?.unwrap_or_default();
    let (files, newest): (i64, Option<i64>) = view
        .connection
        .prepare_cached(
            "SELECT COUNT(*), MAX(data_file_id) FROM ducklake_data_file
             WHERE table_id = ?1 AND begin_snapshot <= ?2 AND (end_snapshot IS NULL OR end_snapshot > ?2)",
        )?
        .query_row([table_id, view.snapshot], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (deletes, newest_delete): (i64, Option<i64>) = view
        .connection
        .prepare_cached(
            "SELECT COUNT(*), MAX(delete_file_id) FROM ducklake_delete_file
             WHERE table_id = ?1 AND begin_snapshot <= ?2 AND (end_snapshot IS NULL OR end_snapshot > ?2)",
        )?
        .query_row([table_id, view.snapshot], |row| Ok((row.get(0)?, row.get(1)?)))?;
    // It grows with rows that DuckDB keeps in the catalog, too.
    let next_row: Option<Option<i64>> = view
        .connection
        .prepare_cached("SELECT next_row_id FROM ducklake_table_stats WHERE table_id = ?")?
        .query_row([table_id], |row| row.get(0))
        .optional()?;
    Ok(format!(
        "{names}files {files} to {}, deletes {deletes} to {}, rows to {}",
        newest.unwrap_or(-1),
        newest_delete.unwrap_or(-1),
        next_row.flatten().unwrap_or(-1)
    ))
}

/// Returns how the state of a managed table begins: it is another one as soon as the table or one of its columns has another name.
fn state_of_names(connection: &StoreConnection, table_id: i64) -> Result<Option<String>> {
    let (columns, newest): (i64, Option<i64>) = connection
        .prepare_cached(
            "SELECT COUNT(*), MAX(begin_snapshot) FROM ducklake_column WHERE table_id = ? AND end_snapshot IS NULL",
        )?
        .query_row([table_id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let named: Option<i64> = connection
        .prepare_cached("SELECT MAX(begin_snapshot) FROM ducklake_table WHERE table_id = ? AND end_snapshot IS NULL")?
        .query_row([table_id], |row| row.get(0))?;
    let Some((named, newest)) = named.zip(newest) else { return Ok(None) };
    Ok(Some(format!("name of {named}, columns {columns} to {newest}, ")))
}

/// Stores a profile in place of an older one. Of a table that was renamed while it was read, or whose columns were, nothing is kept:
/// what was read under a name may be of what has another one now.
pub(crate) fn replace(connection: &StoreConnection, profile: &TableProfile) -> Result<()> {
    let schema_id: Option<i64> = connection
        .prepare_cached("SELECT schema_id FROM querent_object WHERE object_id = ?")?
        .query_row([profile.table_id], |row| row.get(0))
        .optional()?;
    delete_values(connection, profile.table_id)?;
    let Some(schema_id) = schema_id else { return Ok(()) };
    let names = state_of_names(connection, profile.table_id)?;
    if names.is_some_and(|names| !profile.state.starts_with(&names)) {
        return Ok(());
    }
    connection.prepare_cached("INSERT INTO querent_profile VALUES (?, ?, ?)")?.execute(params![
        profile.table_id,
        profile.state,
        Utc::now().timestamp_micros(),
    ])?;
    for column in profile.columns.iter().take(MAX_VALUE_COLUMNS) {
        let sketch: Vec<u8> = column.sketch.iter().flat_map(|hash| hash.to_be_bytes()).collect();
        connection.prepare_cached("INSERT INTO querent_column_profile VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (object_id, column_name)
             DO UPDATE SET schema_id = ?3, has_values = ?4, is_complete = ?5, sketch = ?6")?.execute(
            params![
                profile.table_id,
                column.name,
                schema_id,
                i64::from(!column.values.is_empty() || !column.shapes.is_empty()),
                column.is_complete,
                sketch
            ],
        )?;
        // Spellings that differ only in case share a row.
        let mut insert = connection
            .prepare_cached("INSERT INTO querent_column_value VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING")?;
        let values = column.values.iter().take(MAX_VALUES);
        let values = values.map(|(value, rows)| (value_key(value), value, i64::try_from(*rows).unwrap_or(i64::MAX)));
        let shapes = column.shapes.iter().take(MAX_SHAPES).map(|(shape, value)| (shape_key(shape), value, 0));
        for (key, value, rows) in values.chain(shapes) {
            insert.execute(params![key, schema_id, profile.table_id, column.name, value, rows])?;
        }
    }
    Ok(())
}

/// The most columns with a literal that are judged one by one, for callers that some values may not be told to.
const MAX_JUDGED: i64 = 10_000;

/// The columns that hold a literal, among what may be found, and whether there are more than `limit` of one.
pub(crate) fn find(
    view: &SnapshotView<'_>,
    who: &Principal,
    visible: &VisibleObjects,
    literals: &[String],
    limit: usize,
) -> Result<(Vec<ValueHit>, bool)> {
    let parameter = visible.parameter()?;
    let rights = view.rights(who);
    let is_visible = object_condition("?2", "v.schema_id", "v.object_id");
    let mut statement = view.connection.prepare_cached(&format!(
        "SELECT v.object_id, d.name, o.name, v.column_name, v.value FROM querent_column_value v
         JOIN querent_object o ON o.object_id = v.object_id JOIN querent_database d ON d.schema_id = o.schema_id
         WHERE v.key = ?1 AND {is_visible} ORDER BY v.schema_id, v.object_id LIMIT ?3"
    ))?;
    let mut hits: Vec<ValueHit> = Vec::new();
    let mut has_more = false;
    let mut read = |key: String, is_like: bool| -> Result<Vec<ValueHit>> {
        // Those whose values may not be told are left out one by one; where there are such, all are read.
        let most = if rights.is_unbound() { limit as i64 + 1 } else { MAX_JUDGED };
        let rows = statement.query_map(params![key, parameter, most], |row| {
            Ok(ValueHit {
                table_id: row.get(0)?,
                table: TableName { database: row.get(1)?, table: row.get(2)? },
                column: row.get(3)?,
                value: row.get(4)?,
                is_like,
            })
        })?;
        let mut hits: Vec<ValueHit> = rows.collect::<DatabaseResult<_>>()?;
        hits.retain(|hit| rights.may_know_values(&hit.table, &hit.column));
        Ok(hits)
    };
    for literal in literals {
        let key = value_key(literal);
        if key.is_empty() {
            continue;
        }
        let mut found = read(key, false)?;
        if let Some(shape) = value_shape(literal.trim()).filter(|_| found.is_empty()) {
            found = read(shape_key(&shape), true)?;
        }
        has_more |= found.len() > limit;
        for hit in found.into_iter().take(limit) {
            if !hits.contains(&hit) {
                hits.push(hit);
            }
        }
    }
    Ok((hits, has_more))
}

/// The most frequent values of tables' columns.
pub(crate) fn samples(
    view: &SnapshotView<'_>,
    who: &Principal,
    ids: &[i64],
    per_column: usize,
) -> Result<HashMap<i64, ColumnSamples>> {
    let rights = view.rights(who);
    let mut statement = view.connection.prepare_cached(
        "SELECT column_name, value FROM querent_column_value WHERE object_id = ?1 AND row_count > 0
         ORDER BY column_name, row_count DESC, value LIMIT ?2",
    )?;
    let mut tables = HashMap::new();
    for id in ids {
        let Some((table, _)) = object_name(view.connection, *id)? else { continue };
        if !rights.may_see_table(&table) {
            continue;
        }
        let most = (MAX_VALUE_COLUMNS * MAX_VALUES) as i64;
        let rows = statement.query_map([*id, most], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut columns = ColumnSamples::new();
        for row in rows {
            let (column, value): (String, String) = row?;
            if !rights.may_know_values(&table, &column) {
                continue;
            }
            if columns.last().is_none_or(|(last, _)| *last != column) {
                columns.push((column, Vec::new()));
            }
            if let Some((_, values)) = columns.last_mut().filter(|(_, values)| values.len() < per_column) {
                values.push(value);
            }
        }
        tables.insert(*id, columns);
    }
    Ok(tables)
}

/// Columns whose values are kept and may be told to the caller, counted up to `limit`.
pub(crate) fn count_columns(
    view: &SnapshotView<'_>,
    who: &Principal,
    visible: &VisibleObjects,
    limit: usize,
) -> Result<usize> {
    let rights = view.rights(who);
    let is_visible = object_condition("?1", "p.schema_id", "p.object_id");
    let mut statement = view.connection.prepare_cached(&format!(
        "SELECT d.name, o.name, p.column_name FROM querent_column_profile p
         JOIN querent_object o ON o.object_id = p.object_id JOIN querent_database d ON d.schema_id = o.schema_id
         WHERE p.has_values = 1 AND {is_visible} LIMIT ?2"
    ))?;
    // As in [`find`].
    let most = if rights.is_unbound() { limit as i64 } else { MAX_JUDGED };
    let rows = statement.query_map(params![visible.parameter()?, most], |row| {
        Ok((TableName { database: row.get(0)?, table: row.get(1)? }, row.get::<String>(2)?))
    })?;
    let mut columns: Vec<(TableName, String)> = rows.collect::<DatabaseResult<_>>()?;
    columns.retain(|(table, column)| rights.may_know_values(table, column));
    Ok(columns.len().min(limit))
}

/// The share of the values of one column that the other contains, where their sketches allow an estimate.
pub(crate) fn containment(connection: &StoreConnection, from: (i64, &str), to: (i64, &str)) -> Result<Option<f32>> {
    let sketch = |(object_id, column): (i64, &str)| -> Result<Option<(Vec<u64>, bool)>> {
        let found = connection
            .prepare_cached(
                "SELECT sketch, is_complete FROM querent_column_profile WHERE object_id = ? AND column_name = ?",
            )?
            .query_row(params![object_id, column], |row| Ok((row.get::<Vec<u8>>(0)?, row.get(1)?)))
            .optional()?;
        Ok(found.map(|(bytes, is_complete)| {
            let hashes = bytes.chunks_exact(8).filter_map(|chunk| chunk.try_into().ok()).map(u64::from_be_bytes);
            (hashes.collect(), is_complete)
        }))
    };
    let (Some((from, _)), Some((to, to_is_complete))) = (sketch(from)?, sketch(to)?) else { return Ok(None) };
    Ok(containment_of(&from, &to, to_is_complete))
}
