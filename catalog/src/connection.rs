//! A connection to the database that holds the catalog's rows: transactions, statements, parameters and rows, as the stores
//! use them: nothing but `connection/` knows which database it is, the store's own file and its copies aside. Values are in
//! `connection/values.rs`.
//!
//! Statements say what SQLite and PostgreSQL both understand, as far as they can: `ON CONFLICT` and not `INSERT OR REPLACE`,
//! `RETURNING` and not the last row's id, a `CASE` and not a `max` of two values, and `CAST` where the type of a value is not
//! plain. The rest is `connection/dialect.rs`.
//!
//! Invariant: everything here blocks, and is called on blocking threads only.

mod dialect;
mod error;
mod postgres_link;
mod postgresql;
mod row_inserts;
mod sqlite;
mod tls;
mod values;

use std::ops::Deref;
use std::path::Path;

use tokio_postgres::Row as PostgresRow;

pub(crate) use error::DatabaseResult;
pub use error::{DatabaseError, DatabaseFault};
pub(crate) use postgresql::PostgresServer;
pub use postgresql::catalog_url_fault;
pub(crate) use row_inserts::{ROWS_AT_ONCE, RowInserts};
pub(crate) use sqlite::CACHED_STATEMENTS;
pub(crate) use values::{FromStoreValue, OptionalRow, OwnedValue, StoreParameter, StoreParameters, StoreValue, params};

use postgresql::{PostgresConnection, PostgresRows, PostgresStatement};
use sqlite::{SqliteRow, SqliteRows, SqliteStatement};

/// A connection. Not shared: whoever has it is alone with it.
pub(crate) enum StoreConnection {
    /// To a file.
    Sqlite(rusqlite::Connection),
    /// To a server.
    Postgres(Box<PostgresConnection>),
}

/// What a transaction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// It reads one state of the database.
    Read,
    /// It waits until no other writes, and nobody else writes while it is open.
    Write,
    /// The same, where there may be no tables yet.
    Create,
    /// It writes rows that nobody else writes, and does not wait for those who write others, where the database can do that.
    Own,
}

impl StoreConnection {
    /// Opens or creates a SQLite file.
    pub(crate) fn open_file(file: &Path) -> DatabaseResult<Self> {
        Ok(Self::Sqlite(rusqlite::Connection::open(file)?))
    }

    /// Connects to a server.
    pub(crate) fn open_server(server: &PostgresServer) -> DatabaseResult<Self> {
        Ok(Self::Postgres(Box::new(PostgresConnection::open(server)?)))
    }

    /// Whether it leads to a server, to which each statement is a journey.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self, StoreConnection::Postgres(_))
    }

    /// Begins a transaction, which ends without effect unless it is committed.
    pub(crate) fn begin(&self, access: Access) -> DatabaseResult<StoreTransaction<'_>> {
        match self {
            StoreConnection::Sqlite(connection) => connection.execute_batch(match access {
                Access::Read => "BEGIN DEFERRED",
                Access::Write | Access::Create | Access::Own => "BEGIN IMMEDIATE",
            })?,
            StoreConnection::Postgres(connection) => connection.begin(access)?,
        }
        Ok(StoreTransaction { connection: self, is_open: true })
    }

    /// The same, on a new connection where the server has closed this one, which is not known before something is sent.
    pub(crate) fn begin_again<E: From<DatabaseError>>(
        &mut self,
        access: Access,
        connect: impl FnOnce() -> Result<Self, E>,
    ) -> Result<StoreTransaction<'_>, E> {
        if let StoreConnection::Postgres(connection) = self {
            match connection.begin(access) {
                Ok(()) => return Ok(StoreTransaction { connection: self, is_open: true }),
                Err(error) if error.fault() == DatabaseFault::Unreachable => *self = connect()?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.begin(access)?)
    }

    /// Runs statements that wait for nobody: a server that does not answer them soon is taken for lost.
    pub(crate) fn quickly<T>(&self, work: impl FnOnce() -> T) -> T {
        match self {
            StoreConnection::Sqlite(_) => work(),
            StoreConnection::Postgres(connection) => connection.quickly(work),
        }
    }

    /// Prepares a statement, or takes it from those that were prepared before.
    pub(crate) fn prepare_cached(&self, sql: &str) -> DatabaseResult<StoreStatement<'_>> {
        Ok(match self {
            StoreConnection::Sqlite(connection) => {
                StoreStatement::Sqlite(SqliteStatement::Cached(connection.prepare_cached(sql)?))
            }
            StoreConnection::Postgres(connection) => StoreStatement::Postgres(connection.prepare(sql, true)?),
        })
    }

    /// Prepares a statement that is not kept: one that names a table which it was made for.
    pub(crate) fn prepare(&self, sql: &str) -> DatabaseResult<StoreStatement<'_>> {
        Ok(match self {
            StoreConnection::Sqlite(connection) => {
                StoreStatement::Sqlite(SqliteStatement::Once(connection.prepare(sql)?))
            }
            StoreConnection::Postgres(connection) => StoreStatement::Postgres(connection.prepare(sql, false)?),
        })
    }

    /// Runs a statement and returns how many rows it changed.
    pub(crate) fn execute(&self, sql: &str, parameters: impl StoreParameters) -> DatabaseResult<usize> {
        self.prepare(sql)?.execute(parameters)
    }

    /// Runs several statements without parameters, which the database reads as they are.
    pub(crate) fn execute_batch(&self, sql: &str) -> DatabaseResult<()> {
        match self {
            StoreConnection::Sqlite(connection) => Ok(connection.execute_batch(sql)?),
            StoreConnection::Postgres(connection) => connection.execute_batch(sql),
        }
    }

    /// Runs statements that define tables of ours, which are written for SQLite.
    pub(crate) fn define(&self, sql: &str) -> DatabaseResult<()> {
        match self {
            StoreConnection::Sqlite(_) => self.execute_batch(sql),
            StoreConnection::Postgres(connection) => connection.execute_batch(&dialect::definition(sql)),
        }
    }

    /// Defines what statements need besides tables.
    pub(crate) fn define_functions(&self) -> DatabaseResult<()> {
        match self {
            StoreConnection::Sqlite(_) => Ok(()),
            StoreConnection::Postgres(connection) => connection.execute_batch(dialect::FUNCTIONS),
        }
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
        match self {
            StoreConnection::Sqlite(_) => self
                .prepare_cached("SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?)")?
                .query_row([name], |row| row.get(0)),
            StoreConnection::Postgres(connection) => connection.has_table(name),
        }
    }

    /// Whether the database has no table at all; of a server, the schema that is used.
    pub(crate) fn is_empty(&self) -> DatabaseResult<bool> {
        match self {
            StoreConnection::Sqlite(_) => {
                self.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_master)", [], |row| row.get(0))
            }
            StoreConnection::Postgres(connection) => connection.is_empty(),
        }
    }

    /// What texts are encoded in, by the database's name for it.
    pub(crate) fn encoding(&self) -> DatabaseResult<String> {
        match self {
            StoreConnection::Sqlite(_) => self.query_row("PRAGMA encoding", [], |row| row.get(0)),
            StoreConnection::Postgres(connection) => connection.encoding(),
        }
    }

    /// The newest number that was ever given to a row of a table whose `column` counts them; 0 where there was none.
    pub(crate) fn newest_number(&self, table: &str, column: &str) -> DatabaseResult<i64> {
        match self {
            StoreConnection::Sqlite(_) => {
                let mut statement = self.prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = ?")?;
                let newest: Option<i64> = statement.query_row([table], |row| row.get(0)).optional()?;
                Ok(newest.unwrap_or(0))
            }
            StoreConnection::Postgres(connection) => connection.newest_number(table, column),
        }
    }

    /// The time by the database's clock, in microseconds since 1970; a file has this machine's.
    pub(crate) fn now_micros(&self) -> DatabaseResult<i64> {
        match self {
            StoreConnection::Sqlite(_) => Ok(chrono::Utc::now().timestamp_micros()),
            StoreConnection::Postgres(connection) => connection.now_micros(),
        }
    }

    /// What is damaged of the database, as far as it can tell. A server looks after itself.
    pub(crate) fn damages(&self) -> DatabaseResult<Vec<String>> {
        if self.is_remote() {
            return Ok(Vec::new());
        }
        let mut statement = self.prepare("PRAGMA integrity_check(100)")?;
        let lines: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<DatabaseResult<_>>()?;
        Ok(lines.into_iter().filter(|line| line != "ok").collect())
    }

    /// Closes the connection; a file's log is copied into the file before.
    pub(crate) fn close(self) -> DatabaseResult<()> {
        match self {
            StoreConnection::Sqlite(connection) => {
                // A reader of another process may hold the log back; what is in it is durable all the same.
                let _busy: i64 = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
                connection.close().map_err(|(_, error)| error.into())
            }
            StoreConnection::Postgres(connection) => {
                drop(connection);
                Ok(())
            }
        }
    }

    /// Whether a transaction that was begun is still open. SQLite ends it by itself after some errors.
    fn is_in_transaction(&self) -> bool {
        match self {
            StoreConnection::Sqlite(connection) => !connection.is_autocommit(),
            StoreConnection::Postgres(connection) => !connection.is_closed(),
        }
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
        if self.is_open
            && self.connection.is_in_transaction()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::warn!(%error, "a transaction of the catalog was not ended");
        }
    }
}

/// A statement, to be run any number of times.
pub(crate) enum StoreStatement<'c> {
    /// Of a file.
    Sqlite(SqliteStatement<'c>),
    /// Of a server.
    Postgres(PostgresStatement<'c>),
}

impl StoreStatement<'_> {
    /// Runs the statement and returns how many rows it changed.
    pub(crate) fn execute(&mut self, parameters: impl StoreParameters) -> DatabaseResult<usize> {
        parameters.with(|parameters| match self {
            StoreStatement::Sqlite(statement) => statement.execute(parameters),
            StoreStatement::Postgres(statement) => statement.execute(parameters),
        })
    }

    /// Runs the query.
    pub(crate) fn query(&mut self, parameters: impl StoreParameters) -> DatabaseResult<StoreRows<'_>> {
        parameters.with(|parameters| {
            Ok(match self {
                StoreStatement::Sqlite(statement) => StoreRows::Sqlite(statement.query(parameters)?),
                StoreStatement::Postgres(statement) => StoreRows::Postgres(statement.query(parameters)?),
            })
        })
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
pub(crate) enum StoreRows<'s> {
    /// Read as they come.
    Sqlite(SqliteRows<'s>),
    /// All there.
    Postgres(PostgresRows),
}

impl StoreRows<'_> {
    /// The next row.
    pub(crate) fn next(&mut self) -> DatabaseResult<Option<StoreRow<'_>>> {
        Ok(match self {
            StoreRows::Sqlite(rows) => rows.next()?.map(StoreRow::Sqlite),
            StoreRows::Postgres(rows) => rows.next().map(StoreRow::Postgres),
        })
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
pub(crate) enum StoreRow<'r> {
    /// Of a file.
    Sqlite(SqliteRow<'r>),
    /// Of a server.
    Postgres(&'r PostgresRow),
}

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
        match self {
            StoreRow::Sqlite(row) => row.column(column),
            StoreRow::Postgres(row) => postgresql::value(row, column),
        }
    }
}
