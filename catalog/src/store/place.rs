//! Where the catalog's rows are: in a file of the data folder, or on a server that several of ours share. Opens connections
//! and names their errors.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;

use crate::connection::{CACHED_STATEMENTS, PostgresServer, StoreConnection};
use crate::error::{CatalogError, Result};

/// How long a statement waits for DuckDB's write lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Pages in the log at which a commit copies them to the database. Successive commits touch mostly the same pages, so
/// copying them rarely writes far less; reading through a log of this size costs next to nothing.
const CHECKPOINT_PAGES: i64 = 8_192;
/// Page cache of one reader, in KiB.
const READER_CACHE_KIB: i64 = 16 << 10;

/// The database that holds the catalog.
#[derive(Clone)]
pub(crate) enum CatalogPlace {
    /// A SQLite file.
    File(PathBuf),
    /// A database of PostgreSQL.
    Server(Arc<PostgresServer>),
}

impl CatalogPlace {
    /// The file, or the server's address, for messages.
    pub(super) fn shown(&self) -> PathBuf {
        match self {
            CatalogPlace::File(file) => file.clone(),
            CatalogPlace::Server(server) => PathBuf::from(server.shown()),
        }
    }

    /// Whether other servers may write to it.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, CatalogPlace::Server(_))
    }

    /// Opens a connection that writes.
    pub(super) fn writer(&self) -> Result<StoreConnection> {
        match self {
            CatalogPlace::File(file) => file_writer(file),
            CatalogPlace::Server(server) => StoreConnection::open_server(server).map_err(CatalogError::from),
        }
        .map_err(|error| self.named(error))
    }

    /// Opens a connection that reads.
    pub(super) fn reader(&self) -> Result<StoreConnection> {
        match self {
            CatalogPlace::File(file) => file_reader(file, BUSY_TIMEOUT),
            CatalogPlace::Server(server) => StoreConnection::open_server(server).map_err(CatalogError::from),
        }
        .map_err(|error| self.named(error))
    }

    /// Opens a connection that reads and waits for no lock.
    pub(super) fn impatient_reader(&self) -> Result<StoreConnection> {
        match self {
            CatalogPlace::File(file) => file_reader(file, Duration::ZERO).map_err(|error| self.named(error)),
            CatalogPlace::Server(_) => self.reader(),
        }
    }

    /// Translates the database's errors of a damaged file, of a lock, of a full disk, and of a server that is not there.
    pub(super) fn named(&self, error: CatalogError) -> CatalogError {
        let path = self.shown();
        error.of_database(&path, &path.display())
    }
}

fn file_writer(file: &Path) -> Result<StoreConnection> {
    let connection = rusqlite::Connection::open(file)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    configured(connection)
}

fn file_reader(file: &Path, patience: Duration) -> Result<StoreConnection> {
    let connection = rusqlite::Connection::open(file)?;
    connection.busy_timeout(patience)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    configured(connection)
}

fn configured(connection: rusqlite::Connection) -> Result<StoreConnection> {
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    // Otherwise plans that may depend on bound values, such as any with a bound LIMIT, are prepared again for each
    // execution, which costs more than running them.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(StoreConnection::Sqlite(connection))
}
