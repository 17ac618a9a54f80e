//! A table's own statistics, maintained while files are added and removed: bounds are compared as values of their type,
//! never as strings, and bounds that cannot be compared are dropped rather than kept wrong.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use super::columns::ColumnRow;
use super::rows::to_json;
use crate::connection::{DatabaseResult, OptionalRow, RowInserts, StoreConnection, params};
use crate::error::Result;
use crate::model::ColumnStats;

/// A row of `ducklake_table_stats`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TableStats {
    pub(super) record_count: i64,
    pub(super) next_row_id: i64,
    pub(super) file_size_bytes: i64,
}

/// A row of `ducklake_table_column_stats`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ColumnSummary {
    contains_null: Option<bool>,
    contains_nan: Option<bool>,
    min_value: Option<String>,
    max_value: Option<String>,
    has_values: bool,
}

impl ColumnSummary {
    fn from_stats(stats: &ColumnStats) -> Self {
        Self {
            contains_null: stats.null_count.map(|nulls| nulls > 0),
            contains_nan: stats.contains_nan,
            min_value: stats.min_value.clone(),
            max_value: stats.max_value.clone(),
            has_values: stats.value_count != Some(0),
        }
    }

    /// Merges the statistics of the column in another file.
    fn merge(&mut self, other: &Self, column_type: &str) {
        self.contains_null = either(self.contains_null, other.contains_null);
        self.contains_nan = either(self.contains_nan, other.contains_nan);
        if !other.has_values {
            return;
        }
        if !self.has_values {
            self.min_value = other.min_value.clone();
            self.max_value = other.max_value.clone();
            self.has_values = true;
            return;
        }
        let min = bound(column_type, self.min_value.take(), other.min_value.clone(), Ordering::Less);
        let max = bound(column_type, self.max_value.take(), other.max_value.clone(), Ordering::Greater);
        (self.min_value, self.max_value) = (min, max);
    }
}

/// Adds files to a table's statistics. `leaves` are the live columns that hold values.
pub(super) fn add(
    connection: &StoreConnection,
    table_id: i64,
    stats: TableStats,
    leaves: &[&ColumnRow],
    files: &[&BTreeMap<i64, ColumnStats>],
) -> Result<()> {
    let had_rows = read_table_stats(connection, table_id)?.record_count > 0;
    write_table_stats(connection, table_id, stats)?;
    let mut known = if had_rows { read_columns(connection, table_id)? } else { HashMap::new() };
    let mut changed = Vec::with_capacity(leaves.len());
    for column in leaves {
        let mut summary = known.remove(&column.id);
        if had_rows && summary.is_none() {
            // Without a row nothing is known about the existing values, and more values do not change that.
            continue;
        }
        for file in files {
            let added = file.get(&column.id).map(ColumnSummary::from_stats).unwrap_or(UNKNOWN);
            match &mut summary {
                Some(summary) => summary.merge(&added, &column.column_type),
                None => summary = Some(added),
            }
        }
        changed.extend(summary.map(|summary| (column.id, summary)));
    }
    write_columns(connection, table_id, &changed)
}

/// Resets a table's statistics to those of an empty table; row ids are never used again.
pub(super) fn clear(connection: &StoreConnection, table_id: i64) -> Result<()> {
    connection
        .prepare_cached("UPDATE ducklake_table_stats SET record_count = 0, file_size_bytes = 0 WHERE table_id = ?")?
        .execute([table_id])?;
    connection.prepare_cached("DELETE FROM ducklake_table_column_stats WHERE table_id = ?")?.execute([table_id])?;
    Ok(())
}

/// A table's row; zeros where it has none yet.
pub(super) fn read_table_stats(connection: &StoreConnection, table_id: i64) -> Result<TableStats> {
    let stats = connection
        .prepare_cached(
            "SELECT record_count, next_row_id, file_size_bytes FROM ducklake_table_stats WHERE table_id = ?",
        )?
        .query_row([table_id], |row| {
            Ok(TableStats { record_count: row.get(0)?, next_row_id: row.get(1)?, file_size_bytes: row.get(2)? })
        })
        .optional()?;
    Ok(stats.unwrap_or_default())
}

const UNKNOWN: ColumnSummary =
    ColumnSummary { contains_null: None, contains_nan: None, min_value: None, max_value: None, has_values: true };

fn write_table_stats(connection: &StoreConnection, table_id: i64, stats: TableStats) -> Result<()> {
    let updated = connection
        .prepare_cached(
            "UPDATE ducklake_table_stats SET record_count = ?2, next_row_id = ?3, file_size_bytes = ?4 WHERE table_id = ?1",
        )?
        .execute(params![table_id, stats.record_count, stats.next_row_id, stats.file_size_bytes])?;
    if updated == 0 {
        connection.prepare_cached("INSERT INTO ducklake_table_stats VALUES (?, ?, ?, ?)")?.execute(params![
            table_id,
            stats.record_count,
            stats.next_row_id,
            stats.file_size_bytes
        ])?;
    }
    Ok(())
}

/// What is known of a table's columns, by their ids.
fn read_columns(connection: &StoreConnection, table_id: i64) -> Result<HashMap<i64, ColumnSummary>> {
    let mut statement = connection.prepare_cached(
        "SELECT column_id, contains_null, contains_nan, min_value, max_value FROM ducklake_table_column_stats
         WHERE table_id = ?",
    )?;
    let rows = statement.query_map([table_id], |row| {
        let min_value: Option<String> = row.get(3)?;
        let max_value: Option<String> = row.get(4)?;
        let summary = ColumnSummary {
            contains_null: row.get(1)?,
            contains_nan: row.get(2)?,
            // As DuckDB reads it: no bound at all means only nulls so far.
            has_values: min_value.is_some() || max_value.is_some(),
            min_value,
            max_value,
        };
        Ok((row.get(0)?, summary))
    })?;
    Ok(rows.collect::<DatabaseResult<_>>()?)
}

/// A column whose values have no known bounds gets no row: without bounds, a row says that there are only nulls.
fn write_columns(connection: &StoreConnection, table_id: i64, columns: &[(i64, ColumnSummary)]) -> Result<()> {
    if columns.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = columns.iter().map(|(id, _)| *id).collect();
    connection
        .prepare_cached(
            "DELETE FROM ducklake_table_column_stats
             WHERE table_id = ? AND column_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?))",
        )?
        .execute(params![table_id, to_json(&ids)?])?;
    let mut rows = RowInserts::new("INSERT INTO ducklake_table_column_stats VALUES", "(?, ?, ?, ?, ?, ?, NULL)");
    for (id, summary) in columns {
        let ColumnSummary { contains_null, contains_nan, min_value, max_value, has_values } = summary;
        if !has_values || min_value.is_some() || max_value.is_some() {
            rows.add(connection, params![table_id, id, contains_null, contains_nan, min_value, max_value])?;
        }
    }
    Ok(rows.flush(connection)?)
}

fn either(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a || b),
        _ => None,
    }
}

/// The bound that compares as `wanted` with the other one; `None` where either is missing or they are not comparable.
fn bound(column_type: &str, a: Option<String>, b: Option<String>, wanted: Ordering) -> Option<String> {
    let (a, b) = (a?, b?);
    match compare(column_type, &b, &a)? {
        ordering if ordering == wanted => Some(b),
        _ => Some(a),
    }
}

/// Compares two values in DuckLake's text form.
fn compare(column_type: &str, a: &str, b: &str) -> Option<Ordering> {
    match column_type {
        "boolean" => Some(parse_bool(a)?.cmp(&parse_bool(b)?)),
        "int8" | "int16" | "int32" | "int64" | "int128" | "uint8" | "uint16" | "uint32" | "uint64" => {
            Some(a.parse::<i128>().ok()?.cmp(&b.parse::<i128>().ok()?))
        }
        "float32" | "float64" => a.parse::<f64>().ok()?.partial_cmp(&b.parse::<f64>().ok()?),
        "date" | "timestamp" | "timestamp_us" | "timestamp_ms" | "timestamp_ns" | "timestamp_s" | "timestamptz" => {
            Some(Moment::parse(a)?.cmp(&Moment::parse(b)?))
        }
        "varchar" | "json" | "blob" | "uuid" | "time" => Some(a.cmp(b)),
        decimal if decimal.starts_with("decimal(") => {
            let scale =
                a.split_once('.').map_or(0, |(_, f)| f.len()).max(b.split_once('.').map_or(0, |(_, f)| f.len()));
            Some(scaled(a, scale)?.cmp(&scaled(b, scale)?))
        }
        _ => None,
    }
}

fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "0" | "false" => Some(false),
        "1" | "true" => Some(true),
        _ => None,
    }
}

/// A decimal as an integer of `scale` fraction digits.
fn scaled(text: &str, scale: usize) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{fraction:0<scale$}").parse().ok()
}

/// A key by which dates and timestamps order. All but the year has a fixed width, with fractions without trailing
/// zeros, so it orders as a string; the year is a number that may have a sign or five digits.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Moment<'a> {
    Past,
    At(i64, &'a str),
    Future,
}

impl<'a> Moment<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        match text {
            "-infinity" => return Some(Moment::Past),
            "infinity" => return Some(Moment::Future),
            _ => {}
        }
        let (text, is_before_christ) = match text.strip_suffix(" (BC)") {
            Some(text) => (text, true),
            None => (text, false),
        };
        // Offsets other than UTC do not order as strings.
        let text = text.strip_suffix("+00").unwrap_or(text);
        let digits_end = text.get(1..)?.find('-')? + 1;
        let year: i64 = text[..digits_end].parse().ok()?;
        let rest = &text[digits_end..];
        if rest.contains('+') || rest.matches('-').count() > 2 {
            return None;
        }
        Some(Moment::At(if is_before_christ { 1 - year } else { year }, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_compare_as_values() {
        let cases = [
            ("int32", "-5", "10", Ordering::Less),
            ("int64", "9", "10", Ordering::Less),
            ("float64", "1e+20", "3", Ordering::Greater),
            ("float64", "inf", "1e300", Ordering::Greater),
            ("decimal(10,2)", "-1.50", "1.25", Ordering::Less),
            ("decimal(10,2)", "9.99", "10.00", Ordering::Less),
            ("boolean", "0", "1", Ordering::Less),
            ("date", "10000-01-01", "9999-12-31", Ordering::Greater),
            ("date", "0044-03-15 (BC)", "0001-01-01", Ordering::Less),
            ("timestamp", "2020-01-01 00:00:00", "2020-01-01 00:00:00.5", Ordering::Less),
            ("timestamptz", "2020-01-01 00:00:00.5+00", "2020-01-01 00:00:00+00", Ordering::Greater),
            ("timestamp", "infinity", "9999-01-01 00:00:00", Ordering::Greater),
            ("varchar", "a", "é", Ordering::Less),
        ];
        for (column_type, a, b, ordering) in cases {
            assert_eq!(compare(column_type, a, b), Some(ordering), "{column_type} {a} {b}");
        }
        assert_eq!(compare("timestamptz", "2020-01-01 00:00:00-05", "2020-01-01 00:00:00+00"), None);
        assert_eq!(compare("variant", "a", "b"), None);
        // What no writer should have written.
        for text in ["", "+00", "é", "-"] {
            assert_eq!(compare("timestamptz", text, "2020-01-01 00:00:00+00"), None, "{text}");
        }
    }

    #[test]
    fn a_file_without_bounds_ends_them() {
        let known = |min: &str, max: &str| ColumnSummary {
            contains_null: Some(false),
            contains_nan: None,
            min_value: Some(min.into()),
            max_value: Some(max.into()),
            has_values: true,
        };
        let mut summary = known("2", "9");
        summary.merge(&known("10", "11"), "int32");
        assert_eq!(summary, known("2", "11"));
        let only_nulls = ColumnStats { value_count: Some(0), null_count: Some(3), ..ColumnStats::default() };
        summary.merge(&ColumnSummary::from_stats(&only_nulls), "int32");
        assert_eq!(summary.min_value.as_deref(), Some("2"));
        assert_eq!(summary.contains_null, Some(true));
        summary.merge(&UNKNOWN, "int32");
        assert_eq!((summary.min_value, summary.contains_null), (None, None));
    }
}
