//! Rows of one table, inserted many at a time where each statement is a journey to a server. A file takes each row as it comes,
//! by a statement that stays prepared.
//!
//! Invariant: of what was added, all is in the table after [`RowInserts::flush`], and only then; whoever reads it flushes before.

use super::values::{FromStoreValue, OwnedValue, StoreParameter};
use super::{DatabaseError, DatabaseResult, StoreConnection};

/// Rows sent at once. With some ten parameters each, that is far from the 65,535 which a statement may have.
pub(crate) const ROWS_AT_ONCE: usize = 500;
/// Rows up to which a statement stays prepared, as it does for [`ROWS_AT_ONCE`].
const FEW_ROWS: usize = 32;

/// Rows that are to be inserted into a table.
pub(crate) struct RowInserts {
    insert: &'static str,
    row: &'static str,
    end: &'static str,
    /// The statement of a single row.
    single: String,
    waiting: Vec<OwnedValue>,
    rows: usize,
    inserted: usize,
}

impl RowInserts {
    /// `insert` is the statement up to `VALUES`, `row` one row of it with its parameters, each a `?`.
    pub(crate) fn new(insert: &'static str, row: &'static str) -> Self {
        Self::with_end(insert, row, "")
    }

    /// The same with what comes after the rows, such as ` ON CONFLICT DO NOTHING`. It does not name parameters.
    pub(crate) fn with_end(insert: &'static str, row: &'static str, end: &'static str) -> Self {
        let single = format!("{insert} {row}{end}");
        Self { insert, row, end, single, waiting: Vec::new(), rows: 0, inserted: 0 }
    }

    /// Adds a row.
    pub(crate) fn add(&mut self, connection: &StoreConnection, row: &[&dyn StoreParameter]) -> DatabaseResult<()> {
        if !connection.is_remote() {
            self.inserted += connection.prepare_cached(&self.single)?.execute(row)?;
            return Ok(());
        }
        for (column, parameter) in row.iter().enumerate() {
            let owned = OwnedValue::from_value(parameter.value());
            self.waiting.push(owned.map_err(|reason| DatabaseError::Unreadable { column, reason })?);
        }
        self.rows += 1;
        if self.rows == ROWS_AT_ONCE { self.flush(connection) } else { Ok(()) }
    }

    /// Inserts the rows that wait.
    pub(crate) fn flush(&mut self, connection: &StoreConnection) -> DatabaseResult<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let sql = format!("{} {}{}", self.insert, vec![self.row; self.rows].join(", "), self.end);
        let mut statement = match self.rows {
            ROWS_AT_ONCE | 1..=FEW_ROWS => connection.prepare_cached(&sql)?,
            _ => connection.prepare(&sql)?,
        };
        let parameters: Vec<&dyn StoreParameter> =
            self.waiting.iter().map(|value| value as &dyn StoreParameter).collect();
        self.inserted += statement.execute(parameters.as_slice())?;
        self.waiting.clear();
        self.rows = 0;
        Ok(())
    }

    /// How many rows were inserted, of those that do not wait.
    pub(crate) fn inserted(&self) -> usize {
        self.inserted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::params;

    #[test]
    fn rows_that_are_there_are_not_counted() {
        let connection = StoreConnection::Sqlite(rusqlite::Connection::open_in_memory().unwrap());
        connection.execute_batch("CREATE TABLE t (a INTEGER PRIMARY KEY, b VARCHAR)").unwrap();
        let mut rows = RowInserts::with_end("INSERT INTO t VALUES", "(?, ?)", " ON CONFLICT DO NOTHING");
        for (a, b) in [(1_i64, Some("x")), (2, None), (1, Some("y"))] {
            rows.add(&connection, params![a, b]).unwrap();
        }
        rows.flush(&connection).unwrap();
        assert_eq!(rows.inserted(), 2);
        let first: String = connection.query_row("SELECT b FROM t WHERE a = 1", [], |row| row.get(0)).unwrap();
        assert_eq!(first, "x");
    }
}
