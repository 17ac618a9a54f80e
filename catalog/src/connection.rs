//! A connection to the database that holds the catalog's rows: transactions, statements, parameters and rows, as the stores
//! use them: nothing but `connection/` knows which database it is, the store's own file and its copies aside. Values are in
//! `connection/values.rs`.
//!
//! Statements say what SQLite and PostgreSQL both understand, as far as they can: `ON CONFLICT` and not `INSERT OR REPLACE`,
//! `RETURNING` and not the last row's id, a `CASE` and not a `max` of two values, and `CAST` where the type of a value is not
//! plain.
//!
//! Invariant: everything here blocks, and is called on blocking threads only.

mod error;
mod sqlite;
mod values;

use std::ops::Deref;
use std::path::Path;

pub(crate) use error::DatabaseResult;
pub use error::{DatabaseError, DatabaseFault};
pub(crate) use sqlite::CACHED_STATEMENTS;
pub(crate) use values::{FromStoreValue, OptionalRow, OwnedValue, StoreParameter, StoreParameters, StoreValue, params};

use sqlite::{SqliteRow, SqliteRows, SqliteStatement};

/// A connection. Not shared: whoever has it is alone with it.
pub(crate) struct StoreConnection {
    sqlite: rusqlite::Connection,
}

/// Whether a transaction writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// It reads one state of the database.
    Read,
    /// It waits until no other writes, and nobody else writes while it is open.
    Write,
}

impl StoreConnection {
    /// Opens or creates a SQLite file.
    pub(crate) fn open_file(file: &Path) -> DatabaseResult<Self> {
        Ok(Self { sqlite: rusqlite::Connection::open(file)? })
    }

    /// The SQLite connection, for its settings.
    pub(crate) fn sqlite(&self) -> &rusqlite::Connection {
        &self.sqlite
    }

    /// Begins a transaction, which ends without effect unless it is committed.
    pub(crate) fn begin(&self, access: Access) -> DatabaseResult<StoreTransaction<'_>> {
        self.sqlite.execute_batch(match access {
            Access::Read => "BEGIN DEFERRED",
            Access::Write => "BEGIN IMMEDIATE",
        })?;
        Ok(StoreTransaction { connection: self, is_open: true })
    }

    /// Prepares a statement, or takes it from those that were prepared before.
    pub(crate) fn prepare_cached(&self, sql: &str) -> DatabaseResult<StoreStatement<'_>> {
        Ok(StoreStatement(SqliteStatement::Cached(self.sqlite.prepare_cached(sql)?)))
    }

    /// Prepares a statement that is not kept: one that names a table which it was made for.
    pub(crate) fn prepare(&self, sql: &str) -> DatabaseResult<StoreStatement<'_>> {
        Ok(StoreStatement(SqliteStatement::Once(self.sqlite.prepare(sql)?)))
    }

    /// Runs a statement and returns how many rows it changed.
    pub(crate) fn execute(&self, sql: &str, parameters: impl StoreParameters) -> DatabaseResult<usize> {
        self.prepare(sql)?.execute(parameters)
    }

    /// Runs several statements without parameters.
    pub(crate) fn execute_batch(&self, sql: &str) -> DatabaseResult<()> {
        Ok(self.sqlite.execute_batch(sql)?)
    }

    /// Runs a query and reads its first row. Errors: [`DatabaseError::NoRow`].
    pub(crate) fn query_row<T>(
        &self,
        sql: &str,
        parameters: impl StoreParameters,
        read: impl FnOnce(&StoreRow<'_>) -> DatabaseResult<T>,
    ) -> DatabaseResult<T> {
        self.prepare(sql)?.query_row(parameters, read)
    }

    /// Whether the database has a table.
    pub(crate) fn has_table(&self, name: &str) -> DatabaseResult<bool> {
        self.prepare_cached("SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?)")?
            .query_row([name], |row| row.get(0))
    }

    /// Whether the database has no table at all.
    pub(crate) fn is_empty(&self) -> DatabaseResult<bool> {
        self.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_master)", [], |row| row.get(0))
    }

    /// The newest number that was ever given to a row of a table that counts its rows; 0 where there was none.
    pub(crate) fn newest_number(&self, table: &str) -> DatabaseResult<i64> {
        let mut statement = self.prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = ?")?;
        let newest: Option<i64> = statement.query_row([table], |row| row.get(0)).optional()?;
        Ok(newest.unwrap_or(0))
    }

    /// What is damaged of the database, as far as it can tell.
    pub(crate) fn damages(&self) -> DatabaseResult<Vec<String>> {
        let mut statement = self.prepare("PRAGMA integrity_check(100)")?;
        let lines: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<DatabaseResult<_>>()?;
        Ok(lines.into_iter().filter(|line| line != "ok").collect())
    }

    /// Closes the connection, with an error where that fails.
    pub(crate) fn close(self) -> DatabaseResult<()> {
        self.sqlite.close().map_err(|(_, error)| error.into())
    }
}

/// A transaction that is open.
pub(crate) struct StoreTransaction<'c> {
    connection: &'c StoreConnection,
    is_open: bool,
}

impl StoreTransaction<'_> {
    /// Makes what was written durable.
    pub(crate) fn commit(mut self) -> DatabaseResult<()> {
        // One that cannot be committed is still open, and is ended below.
        self.connection.execute_batch("COMMIT")?;
        self.is_open = false;
        Ok(())
    }

    /// Ends a transaction that only read.
    pub(crate) fn end(mut self) -> DatabaseResult<()> {
        self.is_open = false;
        self.connection.execute_batch("ROLLBACK")
    }
}

impl Deref for StoreTransaction<'_> {
    type Target = StoreConnection;

    fn deref(&self) -> &StoreConnection {
        self.connection
    }
}

impl Drop for StoreTransaction<'_> {
    fn drop(&mut self) {
        // SQLite ends it by itself after some errors.
        if self.is_open
            && !self.connection.sqlite.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::warn!(%error, "a transaction of the catalog was not ended");
        }
    }
}

/// A statement, to be run any number of times.
pub(crate) struct StoreStatement<'c>(SqliteStatement<'c>);

impl StoreStatement<'_> {
    /// Runs the statement and returns how many rows it changed.
    pub(crate) fn execute(&mut self, parameters: impl StoreParameters) -> DatabaseResult<usize> {
        parameters.with(|parameters| self.0.execute(parameters))
    }

    /// Runs the query.
    pub(crate) fn query(&mut self, parameters: impl StoreParameters) -> DatabaseResult<StoreRows<'_>> {
        parameters.with(|parameters| self.0.query(parameters)).map(StoreRows)
    }

    /// Runs the query; the rows are read as they come.
    pub(crate) fn query_map<T, F>(
        &mut self,
        parameters: impl StoreParameters,
        read: F,
    ) -> DatabaseResult<MappedStoreRows<'_, F>>
    where
        F: FnMut(&StoreRow<'_>) -> DatabaseResult<T>,
    {
        Ok(MappedStoreRows { rows: self.query(parameters)?, read })
    }

    /// Runs the query and reads its first row. Errors: [`DatabaseError::NoRow`].
    pub(crate) fn query_row<T>(
        &mut self,
        parameters: impl StoreParameters,
        read: impl FnOnce(&StoreRow<'_>) -> DatabaseResult<T>,
    ) -> DatabaseResult<T> {
        let mut rows = self.query(parameters)?;
        let row = rows.next()?.ok_or(DatabaseError::NoRow)?;
        read(&row)
    }
}

/// The rows of a query.
pub(crate) struct StoreRows<'s>(SqliteRows<'s>);

impl StoreRows<'_> {
    /// The next row.
    pub(crate) fn next(&mut self) -> DatabaseResult<Option<StoreRow<'_>>> {
        Ok(self.0.next()?.map(StoreRow))
    }
}

/// The rows of a query, read one by one.
pub(crate) struct MappedStoreRows<'s, F> {
    rows: StoreRows<'s>,
    read: F,
}

impl<T, F> Iterator for MappedStoreRows<'_, F>
where
    F: FnMut(&StoreRow<'_>) -> DatabaseResult<T>,
{
    type Item = DatabaseResult<T>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.rows.next() {
            Ok(Some(row)) => Some((self.read)(&row)),
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

/// A row of a query.
pub(crate) struct StoreRow<'r>(SqliteRow<'r>);

impl StoreRow<'_> {
    /// The value of a column, by its position.
    pub(crate) fn get<T: FromStoreValue>(&self, column: usize) -> DatabaseResult<T> {
        T::from_value(self.column(column)?).map_err(|reason| DatabaseError::Unreadable { column, reason })
    }

    /// Whether a column is NULL.
    pub(crate) fn is_null(&self, column: usize) -> DatabaseResult<bool> {
        Ok(self.column(column)? == StoreValue::Null)
    }

    /// The text of a column, which is not copied.
    pub(crate) fn text(&self, column: usize) -> DatabaseResult<&str> {
        match self.column(column)? {
            StoreValue::Text(text) => {
                std::str::from_utf8(text).map_err(|error| DatabaseError::Unreadable { column, reason: error.into() })
            }
            other => Err(DatabaseError::Unreadable { column, reason: other.instead_of("text") }),
        }
    }

    fn column(&self, column: usize) -> DatabaseResult<StoreValue<'_>> {
        self.0.column(column)
    }
}
