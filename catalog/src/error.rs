//! The errors of the catalog. Each has a stable snake_case `code()` that reaches every door unchanged.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::connection::{DatabaseError, DatabaseFault};

/// What can go wrong in the catalog.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The table does not exist or may not be seen.
    #[error("unknown table `{table}` {}{}", searched(.database), instead_of(.table, .nearest))]
    TableNotFound {
        /// The database that was searched; empty for the tables of a session, which are in none.
        database: String,
        /// The name asked for.
        table: String,
        /// The nearest name the caller may see.
        nearest: Option<String>,
    },
    /// The database does not exist or may not be seen.
    #[error("unknown database `{database}`{}", instead_of(.database, .nearest))]
    DatabaseNotFound {
        /// The name asked for.
        database: String,
        /// The nearest name the caller may see.
        nearest: Option<String>,
    },
    /// The table has no such column.
    #[error("unknown column `{column}` in table `{table}`{}", did_you_mean(.nearest))]
    ColumnNotFound {
        /// The table that was searched.
        table: String,
        /// The name asked for.
        column: String,
        /// The nearest name.
        nearest: Option<String>,
    },
    /// The name is taken (ignoring case).
    #[error("`{name}` already exists{}", existing_as(.existing))]
    AlreadyExists {
        /// The name asked for.
        name: String,
        /// How the existing object spells it, where that differs.
        existing: Option<String>,
    },
    /// A table would be replaced by a view, or a view by a table.
    #[error("`{name}` is a {kind}: drop it first, or choose another name")]
    OtherKind {
        /// The name.
        name: String,
        /// What it names: `table` or `view`.
        kind: &'static str,
    },
    /// A name that cannot be used.
    #[error("invalid name `{name}`: {reason}")]
    InvalidName {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A type DuckLake cannot hold.
    #[error("column `{column}` has type {data_type}, which a managed table cannot hold: {hint}")]
    UnsupportedType {
        /// The column.
        column: String,
        /// Its Arrow type.
        data_type: String,
        /// What to do instead.
        hint: String,
    },
    /// A feature of the lake that Querent does not support yet; refused rather than read incorrectly.
    #[error("table `{table}` holds {what}, which is not supported yet; {hint}")]
    UnsupportedLake {
        /// The table.
        table: String,
        /// Delete files, inlined rows, ...
        what: String,
        /// What to do.
        hint: String,
    },
    /// A write lost against another one.
    #[error("`{object}` was changed by another writer since this statement began; run it again")]
    Conflict {
        /// The object that both changed.
        object: String,
    },
    /// The database still holds tables.
    #[error("database `{database}` is not empty; drop its tables first or use CASCADE")]
    DatabaseNotEmpty {
        /// The database.
        database: String,
    },
    /// Another Querent writer holds the data folder.
    #[error("data folder {} is in use by {}; stop it or connect to its server", .path.display(), .holder)]
    InUse {
        /// The folder.
        path: PathBuf,
        /// Who has it, as in `another querent process (pid N)`.
        holder: String,
    },
    /// The store was written by a newer version.
    #[error("{} was written by a newer querent (format {found}, this one knows {known}); upgrade querent", .path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: String,
        /// The newest one known here.
        known: String,
    },
    /// The store is damaged.
    #[error("catalog store {} is damaged: {detail}; restore it from a backup", .path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What was seen.
        detail: String,
    },
    /// Another process (DuckDB) holds the store's write lock for longer than a statement waits.
    #[error("the catalog is locked by another process that writes to it; run the statement again")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The database server of a catalog that is to be opened cannot be reached. Whoever opens it is told where it is.
    #[error("the catalog is not available: {detail}; try again in a moment")]
    Unreachable {
        /// Which server it is, and what was seen.
        detail: String,
    },
    /// That of an open catalog cannot be reached. Callers are not told where it is; the log is.
    #[error("the catalog is not available: its database cannot be reached, or does not answer; try again in a moment")]
    Unavailable {
        /// Which server it is, and what was seen.
        source: Arc<DatabaseError>,
    },
    /// It was lost while it committed. Callers are not told where it is; the log is.
    #[error("whether the change was made is not known, since the catalog's database was lost while it committed")]
    CommitInDoubt {
        /// Which server it is, and what was seen.
        source: DatabaseError,
    },
    /// No run of that id that the caller may see.
    #[error("unknown run `{run_id}`")]
    RunNotFound {
        /// The id asked for.
        run_id: String,
    },
    /// A run that was made with rights which its reader has no more.
    #[error("run `{run_id}` is not shown: it may have read more than you may read now; ask its question again")]
    RunWithheld {
        /// The run.
        run_id: String,
    },
    /// No conversation of that id that the caller may see.
    #[error("unknown conversation `{id}`")]
    ConversationNotFound {
        /// The id asked for.
        id: String,
    },
    /// No item of that id that the caller may see.
    #[error("unknown item `{id}`")]
    ItemNotFound {
        /// The id asked for.
        id: String,
    },
    /// The id of an item, a pending call or a file is taken.
    #[error("{what} `{id}` is stored already")]
    ItemExists {
        /// `item`, `pending call` or `file`.
        what: &'static str,
        /// The id.
        id: String,
    },
    /// No tool call of that id waits or waited for a decision of the caller.
    #[error("no pending call `{id}`: there never was one, or it went with its run")]
    PendingCallNotFound {
        /// The id asked for.
        id: String,
    },
    /// No file of that id that the caller may see.
    #[error("unknown file `{id}`")]
    FileNotFound {
        /// The id asked for.
        id: String,
    },
    /// No relationship, metric or verified query of that id that the caller may see.
    #[error("unknown {what} `{id}`")]
    ObjectNotFound {
        /// The kind of object.
        what: &'static str,
        /// The id asked for.
        id: String,
    },
    /// A relationship, metric or verified query that cannot be stored.
    #[error("this {what} cannot be stored: {reason}")]
    InvalidObject {
        /// The kind of object.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The embedding model cannot be used.
    #[error("embedding model {model}: {detail}; {hint}")]
    Embedder {
        /// The model.
        model: String,
        /// What went wrong.
        detail: String,
        /// What to do.
        hint: String,
    },
    /// The schema index, or one of a column's vectors, failed; the catalog itself is fine.
    #[error("index: {0}")]
    Index(String),
    /// The catalog's database failed.
    #[error("catalog store: {0}")]
    Store(#[from] DatabaseError),
    /// The disk of the data folder, or the share of it that the process may have, is full.
    #[error("no space is left on the disk: {detail}")]
    StorageFull {
        /// What was to be written, and the system's words.
        detail: String,
    },
    /// A file operation failed otherwise: [`CatalogError::of_file`].
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A worker thread ended early.
    #[error("internal: {0}")]
    Internal(String),
}

impl CatalogError {
    /// Returns the error of an operation on a file.
    pub fn of_file(path: &Path, source: io::Error) -> Self {
        match is_full(&source) {
            true => CatalogError::StorageFull { detail: format!("{}: {source}", path.display()) },
            false => CatalogError::Io { path: path.to_owned(), source },
        }
    }

    /// Says of an error of a database what it is of it: that it is damaged, locked, full or not there. `shown` is what it is called
    /// where it is full.
    pub(crate) fn of_database(self, path: &Path, shown: &dyn Display) -> Self {
        let CatalogError::Store(source) = self else { return self };
        match source.fault() {
            DatabaseFault::Damaged => CatalogError::Corrupt { path: path.to_owned(), detail: source.to_string() },
            DatabaseFault::Locked => CatalogError::Busy { path: path.to_owned() },
            DatabaseFault::Unreachable => CatalogError::Unavailable { source: Arc::new(source) },
            DatabaseFault::Full => CatalogError::StorageFull { detail: format!("{shown}: {source}") },
            DatabaseFault::Other => CatalogError::Store(source),
        }
    }

    /// Returns the error once more, where it is one that several readers of the same rows may meet.
    pub fn copied(&self) -> Option<Self> {
        Some(match self {
            CatalogError::Corrupt { path, detail } => {
                CatalogError::Corrupt { path: path.clone(), detail: detail.clone() }
            }
            CatalogError::Busy { path } => CatalogError::Busy { path: path.clone() },
            CatalogError::Unavailable { source } => CatalogError::Unavailable { source: Arc::clone(source) },
            CatalogError::StorageFull { detail } => CatalogError::StorageFull { detail: detail.clone() },
            _ => return None,
        })
    }

    /// Says where the database is that cannot be reached, to whoever opens the catalog.
    pub(crate) fn of_opening(self) -> Self {
        match self {
            CatalogError::Unavailable { source } => CatalogError::Unreachable { detail: source.to_string() },
            error => error,
        }
    }

    /// The stable code, documented in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            CatalogError::TableNotFound { .. } => "table_not_found",
            CatalogError::DatabaseNotFound { .. } => "database_not_found",
            CatalogError::ColumnNotFound { .. } => "column_not_found",
            CatalogError::AlreadyExists { .. } | CatalogError::OtherKind { .. } => "already_exists",
            CatalogError::InvalidName { .. } => "invalid_name",
            CatalogError::UnsupportedType { .. } => "unsupported_type",
            CatalogError::UnsupportedLake { .. } => "unsupported_lake",
            CatalogError::Conflict { .. } => "conflict",
            CatalogError::DatabaseNotEmpty { .. } => "database_not_empty",
            CatalogError::InUse { .. } => "data_folder_in_use",
            CatalogError::NewerFormat { .. } => "newer_format",
            CatalogError::Corrupt { .. } => "catalog_corrupt",
            CatalogError::Busy { .. } => "catalog_busy",
            CatalogError::Unreachable { .. } | CatalogError::Unavailable { .. } => "catalog_unavailable",
            CatalogError::CommitInDoubt { .. } => "commit_in_doubt",
            CatalogError::RunNotFound { .. } => "run_not_found",
            CatalogError::RunWithheld { .. } => "run_withheld",
            CatalogError::ConversationNotFound { .. } => "conversation_not_found",
            CatalogError::ItemNotFound { .. } => "item_not_found",
            CatalogError::ItemExists { .. } => "item_exists",
            CatalogError::PendingCallNotFound { .. } => "pending_call_not_found",
            CatalogError::FileNotFound { .. } => "file_not_found",
            CatalogError::ObjectNotFound { .. } => "object_not_found",
            CatalogError::InvalidObject { .. } => "invalid_object",
            CatalogError::Embedder { .. } => "embedder_error",
            CatalogError::Index(_) => "index_error",
            CatalogError::Store(_) => "catalog_error",
            CatalogError::StorageFull { .. } => "storage_full",
            CatalogError::Io { .. } => "io_error",
            CatalogError::Internal(_) => "internal",
        }
    }
}

/// Whether a write failed for want of space: of the disk, a quota, or the longest file that the process may write.
pub fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Of files that are SQLite's, whatever holds the catalog.
impl From<rusqlite::Error> for CatalogError {
    fn from(error: rusqlite::Error) -> Self {
        CatalogError::Store(error.into())
    }
}

/// Says where a table was looked for.
fn searched(database: &str) -> String {
    match database {
        "" => "among the temporary tables of the session".to_owned(),
        _ => format!("in database `{database}`"),
    }
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// Says what to write in place of a table or a database that there is not: the nearest one, or for the catalogs of other systems
/// what says the same here.
fn instead_of(name: &str, nearest: &Option<String>) -> String {
    const OTHER_CATALOGS: [&str; 17] = [
        "pg_attribute",
        "pg_catalog",
        "pg_class",
        "pg_constraint",
        "pg_database",
        "pg_index",
        "pg_namespace",
        "pg_stat_user_tables",
        "pg_tables",
        "pg_type",
        "pg_views",
        "duckdb_columns",
        "duckdb_tables",
        "sqlite_master",
        "sqlite_schema",
        "sys",
        "sysobjects",
    ];
    let is_of_other = OTHER_CATALOGS.iter().any(|other| name.eq_ignore_ascii_case(other));
    match (is_of_other, nearest) {
        (true, None) => "; write information_schema.tables, .columns or .schemata".to_owned(),
        _ => did_you_mean(nearest),
    }
}

fn existing_as(existing: &Option<String>) -> String {
    existing.as_ref().map(|name| format!(" as `{name}` (names are unique without regard to case)")).unwrap_or_default()
}

/// The catalog's result.
pub type Result<T, E = CatalogError> = std::result::Result<T, E>;
