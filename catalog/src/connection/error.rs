//! What can go wrong between the stores and their database, whichever it is.

/// The result of the connection's calls, and of reading rows.
pub(crate) type DatabaseResult<T> = Result<T, DatabaseError>;

/// An error of the database that holds the catalog.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// SQLite failed.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
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
    /// Another process holds a lock for longer than a statement waits.
    Locked,
    /// Anything else.
    Other,
}

impl DatabaseError {
    /// What kind of failure it is.
    pub fn fault(&self) -> DatabaseFault {
        use rusqlite::ErrorCode::{DatabaseBusy, DatabaseCorrupt, DatabaseLocked, NotADatabase};
        match self {
            DatabaseError::Sqlite(error) => match error.sqlite_error_code() {
                Some(DatabaseCorrupt | NotADatabase) => DatabaseFault::Damaged,
                Some(DatabaseBusy | DatabaseLocked) => DatabaseFault::Locked,
                _ => DatabaseFault::Other,
            },
            DatabaseError::NoRow | DatabaseError::Unreadable { .. } => DatabaseFault::Other,
        }
    }
}
