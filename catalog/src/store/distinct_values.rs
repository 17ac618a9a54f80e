//! How many distinct values a table's columns have, as ANALYZE counted them. The count is of the rows of that time; for the rows of
//! another snapshot it is estimated.

use std::collections::BTreeMap;

use chrono::Utc;

use crate::connection::{StoreConnection, params};
use crate::error::Result;
use crate::model::ManagedTable;

/// A column of which more than this share of the rows are distinct gains values with its rows; another keeps those that it has.
/// PostgreSQL draws the line there, too (its `n_distinct` is then a share of the rows).
const GROWS_FROM: f64 = 0.1;

/// Keeps what was counted of a table's columns (their ids) among `row_count` rows, in place of what was known of the same columns. What is
/// known of tables that are gone is forgotten.
pub(crate) fn store(
    connection: &StoreConnection,
    table: &ManagedTable,
    row_count: u64,
    counts: &[(i64, u64)],
) -> Result<()> {
    connection.execute(
        "DELETE FROM querent_distinct_values WHERE table_id NOT IN (SELECT table_id FROM ducklake_table WHERE end_snapshot IS NULL)",
        [],
    )?;
    let mut statement = connection.prepare_cached(
        "INSERT INTO querent_distinct_values VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (table_id, column_id) DO UPDATE SET distinct_values = ?3, row_count = ?4, counted_at = ?5",
    )?;
    let now = Utc::now().timestamp_micros();
    for (column, count) in counts {
        statement.execute(params![table.id, column, *count as i64, row_count as i64, now])?;
    }
    Ok(())
}

/// Returns the distinct values that the analysed columns of a table are thought to have among `row_count` rows, by column id.
pub(super) fn estimated(connection: &StoreConnection, table_id: i64, row_count: u64) -> Result<BTreeMap<i64, u64>> {
    let mut statement = connection.prepare_cached(
        "SELECT column_id, distinct_values, row_count FROM querent_distinct_values WHERE table_id = ?",
    )?;
    let counted = statement.query_map([table_id], |row| {
        let (distinct, rows): (i64, i64) = (row.get(1)?, row.get(2)?);
        Ok((row.get(0)?, (distinct.max(0) as u64, rows.max(0) as u64)))
    })?;
    counted
        .map(|counted| {
            let (column, (distinct, rows)) = counted?;
            Ok((column, among(distinct, rows, row_count)))
        })
        .collect()
}

/// Returns how many of `now` rows are distinct where `distinct` of `rows` were.
fn among(distinct: u64, rows: u64, now: u64) -> u64 {
    if rows == 0 {
        return now;
    }
    let share = distinct as f64 / rows as f64;
    let grown = if share > GROWS_FROM { (share * now as f64).round() as u64 } else { distinct };
    grown.min(now)
}

#[cfg(test)]
mod tests {
    use super::among;

    #[test]
    fn keys_grow_with_their_rows_and_categories_do_not() {
        assert_eq!(among(1_000, 1_000, 5_000), 5_000);
        assert_eq!(among(500, 1_000, 4_000), 2_000);
        assert_eq!(among(7, 1_000, 1_000_000), 7);
        assert_eq!(among(7, 1_000, 3), 3);
        assert_eq!(among(0, 0, 10), 10);
    }
}
