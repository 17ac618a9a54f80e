//! What can go wrong between the stores and their database, whichever it is.

use tokio_postgres::error::SqlState;

use super::postgresql::message;

/// The result of the connection's calls, and of reading rows.
pub(crate) type DatabaseResult<T> = Result<T, DatabaseError>;

/// An error of the database that holds the catalog.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// SQLite failed.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// PostgreSQL failed.
    #[error("{}", message(.0))]
    Postgres(#[from] tokio_postgres::Error),
    /// A server cannot be reached, or is not there any more.
    #[error("{server} cannot be reached: {reason}")]
    Unreachable {
        /// The server and the database.
        server: String,
        /// What was seen.
        reason: String,
    },
    /// A query that has a row had none.
    #[error("a row that has to be there is not")]
    NoRow,
    /// A stored value is not what it has to be.
    #[error("column {column} of a row cannot be read: {reason}")]
    Unreadable {
        /// The column's position in the query.
        column: usize,
        /// What is wrong with it.
        reason: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// What kind of failure an error is, where a caller can do something about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseFault {
    /// The database is damaged, or no database.
    Damaged,
    /// Another process holds a lock for longer than a statement waits, or wrote at the same time.
    Locked,
    /// The server cannot be reached now.
    Unreachable,
    /// The file may not grow: the disk is full.
    Full,
    /// Anything else.
    Other,
}

impl DatabaseError {
    /// What kind of failure it is.
    pub fn fault(&self) -> DatabaseFault {
        use rusqlite::ErrorCode::{DatabaseBusy, DatabaseCorrupt, DatabaseLocked, DiskFull, NotADatabase};
        match self {
            // Of the index of the log, which grows with it.
            DatabaseError::Sqlite(rusqlite::Error::SqliteFailure(error, _))
                if error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE =>
            {
                DatabaseFault::Full
            }
            DatabaseError::Sqlite(error) => match error.sqlite_error_code() {
                Some(DatabaseCorrupt | NotADatabase) => DatabaseFault::Damaged,
                Some(DatabaseBusy | DatabaseLocked) => DatabaseFault::Locked,
                Some(DiskFull) => DatabaseFault::Full,
                _ => DatabaseFault::Other,
            },
            DatabaseError::Postgres(error) => postgres_fault(error),
            DatabaseError::Unreachable { .. } => DatabaseFault::Unreachable,
            DatabaseError::NoRow | DatabaseError::Unreadable { .. } => DatabaseFault::Other,
        }
    }

    /// Whether the server ended the transaction before it was to commit: nothing of it is there.
    pub(crate) fn ended_transaction(&self) -> bool {
        matches!(self, DatabaseError::Postgres(error)
            if error.code() == Some(&SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT))
    }
}

fn postgres_fault(error: &tokio_postgres::Error) -> DatabaseFault {
    let Some(code) = error.code() else {
        // What the server did not say is said by the connection.
        let is_of_connection =
            error.is_closed() || std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>());
        return if is_of_connection { DatabaseFault::Unreachable } else { DatabaseFault::Other };
    };
    let locked = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED, SqlState::LOCK_NOT_AVAILABLE];
    let unreachable = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::DATABASE_DROPPED,
        SqlState::IDLE_SESSION_TIMEOUT,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        // An administrator ended the statement.
        SqlState::QUERY_CANCELED,
        // It was the primary when the connection was made.
        SqlState::READ_ONLY_SQL_TRANSACTION,
    ];
    // Classes of codes: connections, and what the server has too little of, such as disk and connections.
    let is_of_class = ["08", "53"].iter().any(|class| code.code().starts_with(*class));
    match code {
        code if locked.contains(code) => DatabaseFault::Locked,
        code if unreachable.contains(code) || is_of_class => DatabaseFault::Unreachable,
        _ => DatabaseFault::Other,
    }
}
