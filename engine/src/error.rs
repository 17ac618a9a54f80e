//! The engine's errors. Each has a stable snake_case `code()`; errors of the catalog keep their own.

mod mapping;
mod other_dialects;
mod store;
mod store_variables;
mod told_by_text;
mod told_by_worker;
mod told_places;
mod unfit_calls;

use std::time::Duration;

use querent_catalog::CatalogError;
pub use querent_kql::KqlErrorCode;

pub(crate) use mapping::listed_columns;
pub(crate) use other_dialects::OWN_FUNCTION;
pub use store::StoreError;
pub(crate) use store::{catalog_error_in, find_cause, full_disk_in, is_lost_file, lost_file_in, store_error_in};
pub(crate) use store_variables::variables_of;
pub use told_by_worker::error_on_worker;
pub(crate) use told_by_worker::told_to_others;
pub(crate) use told_places::FilePlace;

/// What [`CatalogError::ObjectNotFound`] says of the query that `KILL` names.
pub(crate) const RUNNING_QUERY: &str = "running query";
/// Why nobody may change a database of Querent's own.
pub(crate) const KEPT_BY_QUERENT: &str = "which Querent keeps itself";

/// What can go wrong with a query. A new variant is an error in every crate that maps these to its protocol's statuses,
/// until somebody has decided about it.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// An error of the catalog, which keeps its code.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The text is not SQL.
    #[error("{message}")]
    Parse {
        /// What is wrong, and where (`line L, column C`).
        message: String,
    },
    /// A KQL query that does not parse or cannot be planned.
    #[error("{message}")]
    Kql {
        /// The kind of the first error.
        code: KqlErrorCode,
        /// Each error with its position and the line there.
        message: String,
        /// What to do, where it is known.
        hint: Option<String>,
    },
    /// The text holds more than one statement.
    #[error("one statement at a time; found {found}")]
    MultipleStatements {
        /// The number of statements.
        found: usize,
    },
    /// The text holds no statement.
    #[error("the query is empty")]
    EmptyQuery,
    /// A column that does not exist.
    #[error("unknown column `{column}`{hint}")]
    ColumnNotFound {
        /// The name as written.
        column: String,
        /// `; did you mean ...?` or the columns there are; may be empty.
        hint: String,
    },
    /// A function that does not exist.
    #[error("unknown function `{function}`{hint}")]
    FunctionNotFound {
        /// The name as written.
        function: String,
        /// `; did you mean ...?`; may be empty.
        hint: String,
    },
    /// The statement cannot be planned.
    #[error("{message}")]
    Plan {
        /// What and, where known, what to do.
        message: String,
    },
    /// The principal or the mode does not allow it.
    #[error("{what} is not allowed{why}")]
    NotAllowed {
        /// The statement kind, function or table.
        what: String,
        /// ` in read-only mode`, ` for role read (needs write)`, ...
        why: String,
    },
    /// The statement kind is not supported.
    #[error("{what} is not supported; {hint}")]
    Unsupported {
        /// The statement kind.
        what: String,
        /// What to do instead.
        hint: String,
    },
    /// The query ran longer than its limit.
    #[error("the query ran longer than {} ms; narrow it or raise the limit", .limit.as_millis())]
    WallClockExceeded {
        /// The limit.
        limit: Duration,
    },
    /// The statement would read more from tables than its caller may. It was not begun.
    #[error("the statement would read {estimate}; {limit}")]
    ScanTooLarge {
        /// How much, as far as the caller may know.
        estimate: String,
        /// How much it may.
        limit: String,
    },
    /// The reader took nothing of the query's rows for too long.
    #[error("nobody read the query's rows for {} s; the query was ended", .limit.as_secs())]
    ReaderIdle {
        /// The limit.
        limit: Duration,
    },
    /// Somebody ended the query.
    #[error("the query was cancelled{}", .reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    Cancelled {
        /// Why, where that was said.
        reason: Option<String>,
    },
    /// The strings or lists of a column need longer offsets than their type has.
    #[error("the values of a column are too large: {detail}")]
    ValueTooLarge {
        /// What did not fit.
        detail: String,
    },
    /// The query needed more memory or spill space than its limit.
    #[error("the query needed more than its memory limit: {detail}")]
    MemoryExceeded {
        /// Which consumer needed how much.
        detail: String,
    },
    /// The server has no memory left, for whichever query.
    #[error("the server has no memory left: {detail}")]
    ServerMemory {
        /// How much it has.
        detail: String,
    },
    /// The operating system lets the server start no more threads.
    #[error("the server cannot start more threads: {detail}")]
    ServerThreads {
        /// What was to be started.
        detail: String,
    },
    /// A file that cannot be read in its format. For CSV and NDJSON the row and the column are named.
    #[error("{location}: {detail}")]
    BadData {
        /// File, with line (as an editor counts) and column where known.
        location: String,
        /// What is wrong.
        detail: String,
    },
    /// No file matches a location.
    #[error("no {format} files at {location}")]
    NoFiles {
        /// File, folder or glob.
        location: String,
        /// The format looked for.
        format: String,
    },
    /// An option of a file's reader that there is not, or that takes another value.
    #[error("{message}")]
    InvalidOption {
        /// Which, and what there is.
        message: String,
    },
    /// A location the caller may not use.
    #[error("location {location} is not allowed: {reason}")]
    LocationNotAllowed {
        /// The location.
        location: String,
        /// Why.
        reason: String,
    },
    /// An error of an object store or a web server.
    #[error("{0}")]
    Store(StoreError),
    /// A worker that did a part of the query is gone, or would not do it.
    #[error("worker {worker} was lost: {detail}")]
    WorkerLost {
        /// Its address.
        worker: String,
        /// What happened.
        detail: String,
    },
    /// A value that the statement computes with is not what it has to be: a division by zero, a failed cast, a null where
    /// there may be none.
    #[error("{message}")]
    InvalidValue {
        /// What is wrong with it.
        message: String,
    },
    /// The query failed while it ran, through no fault of the statement.
    #[error("{message}")]
    Execution {
        /// The cause's message, shortened.
        message: String,
    },
    /// A bug in Querent.
    #[error("internal: {0}")]
    Internal(String),
}

impl EngineError {
    /// Returns the stable code, which `docs/errors.md` documents.
    pub fn code(&self) -> &'static str {
        match self {
            EngineError::Catalog(error) => error.code(),
            EngineError::Parse { .. } => "sql_parse_error",
            EngineError::Kql { code, .. } => code.as_str(),
            EngineError::MultipleStatements { .. } => "multiple_statements",
            EngineError::EmptyQuery => "empty_query",
            EngineError::ColumnNotFound { .. } => "column_not_found",
            EngineError::FunctionNotFound { .. } => "function_not_found",
            EngineError::Plan { .. } => "sql_plan_error",
            EngineError::NotAllowed { .. } => "not_allowed",
            EngineError::Unsupported { .. } => "unsupported",
            EngineError::WallClockExceeded { .. } => "wall_clock_exceeded",
            EngineError::ScanTooLarge { .. } => "scan_too_large",
            EngineError::ReaderIdle { .. } => "reader_idle",
            EngineError::Cancelled { .. } => "cancelled",
            EngineError::ValueTooLarge { .. } => "value_too_large",
            EngineError::MemoryExceeded { .. } | EngineError::ServerMemory { .. } => "memory_exceeded",
            EngineError::ServerThreads { .. } => "too_many_requests",
            EngineError::BadData { .. } => "bad_data",
            EngineError::NoFiles { .. } => "no_files",
            EngineError::InvalidOption { .. } => "invalid_option",
            EngineError::LocationNotAllowed { .. } => "location_not_allowed",
            EngineError::Store(StoreError::MissingCredentials { .. }) => "missing_credentials",
            EngineError::Store(StoreError::AccessDenied { .. }) => "store_access_denied",
            EngineError::Store(StoreError::NoSuchBucket { .. }) => "no_such_bucket",
            EngineError::Store(StoreError::Unavailable { .. }) => "store_unavailable",
            EngineError::Store(StoreError::Unusable { .. }) => "store_error",
            EngineError::Store(StoreError::Occupied { .. }) => "conflict",
            EngineError::Store(StoreError::Gone { .. }) => "no_files",
            EngineError::Store(StoreError::Replaced { .. }) => "bad_data",
            EngineError::Store(StoreError::Refused { .. }) => "location_not_allowed",
            EngineError::WorkerLost { .. } => "worker_lost",
            EngineError::InvalidValue { .. } => "invalid_value",
            EngineError::Execution { .. } => "query_execution_error",
            EngineError::Internal(_) => "internal",
        }
    }

    /// Returns what to do about the error, where there is more to say than the message says.
    pub fn hint(&self) -> Option<String> {
        const SYSTEM: &str = "what tables, columns, views and keys there are is in information_schema and in system";
        let hint = match self {
            EngineError::Catalog(CatalogError::TableNotFound { table, nearest: None, .. })
                if is_of_other_systems(table) =>
            {
                SYSTEM
            }
            EngineError::Catalog(CatalogError::DatabaseNotFound { database, nearest: None })
                if is_of_other_systems(database) =>
            {
                SYSTEM
            }
            EngineError::Catalog(CatalogError::TableNotFound { table, nearest: None, .. })
                if is_name_of_file(table) =>
            {
                return Some(format!(
                    "the name of a file stands in single quotes: FROM '{}'",
                    table.replace('\'', "''")
                ));
            }
            EngineError::Catalog(CatalogError::TableNotFound { database, .. }) if database.is_empty() => {
                "make it by CREATE TEMPORARY TABLE, or by an ingest that may; SHOW TABLES lists those that there are"
            }
            EngineError::Catalog(CatalogError::TableNotFound { database, nearest: None, .. }) => {
                return Some(format!("list the tables there are with SHOW TABLES FROM {database}"));
            }
            EngineError::Catalog(CatalogError::DatabaseNotFound { nearest: None, .. }) => {
                "list the databases there are with SHOW DATABASES"
            }
            EngineError::Kql { hint, .. } => return hint.clone(),
            EngineError::MultipleStatements { .. } => "send each statement by itself",
            EngineError::EmptyQuery => "send one SQL statement",
            EngineError::FunctionNotFound { .. } => "only built-in functions can be called",
            EngineError::WallClockExceeded { .. } => "filter or aggregate earlier, or read fewer columns",
            EngineError::ScanTooLarge { .. } => {
                "filter by columns that leave fewer files to read, name fewer columns, add a LIMIT, or ask an \
                 administrator to run it; EXPLAIN shows the plan without running it"
            }
            EngineError::ReaderIdle { .. } => "run the query again and read its rows as they come, or ask for fewer",
            EngineError::Cancelled { .. } => {
                "run it again, or ask who ended it: `system.queries` is open to administrators"
            }
            EngineError::ValueTooLarge { .. } => {
                "2 GiB is the most that one value, or one batch of a column, can have; make the values shorter, \
                 or cast the column to LargeUtf8 with arrow_cast"
            }
            EngineError::MemoryExceeded { .. } => {
                "aggregate or filter before joining and sorting, read fewer columns, or raise `query.memory`; with fewer \
                 `query.threads` each of them has more of it"
            }
            EngineError::WorkerLost { .. } => {
                "run the query again; a lost worker is left out until it answers, and `EXPLAIN` says where a query runs"
            }
            EngineError::ServerMemory { .. } => {
                "run the query again in a while, when those that hold the memory have ended"
            }
            EngineError::ServerThreads { .. } => {
                "run it again in a while; where it comes often, raise the limit of the server's control group (`pids.max`) or \
                 user (`ulimit -u`), or lower `query.max_concurrent`"
            }
            EngineError::NotAllowed { why, .. } if why.ends_with(KEPT_BY_QUERENT) => {
                "it is only read: take another database, or another name for a new one"
            }
            EngineError::NotAllowed { .. } => {
                "only queries (SELECT, WITH, VALUES, EXPLAIN, SHOW, DESCRIBE) are always allowed"
            }
            EngineError::Store(error) => return error.hint(),
            EngineError::Catalog(CatalogError::StorageFull { .. }) => {
                "free space on the disk of the data folder; `querent expire-snapshots` removes files that only old states of \
                 tables have"
            }
            EngineError::Catalog(CatalogError::ObjectNotFound { what: RUNNING_QUERY, .. }) => {
                "SELECT * FROM system.queries lists those that are"
            }
            EngineError::Catalog(_)
            | EngineError::Parse { .. }
            | EngineError::ColumnNotFound { .. }
            | EngineError::Plan { .. }
            | EngineError::Unsupported { .. }
            | EngineError::BadData { .. }
            | EngineError::NoFiles { .. }
            | EngineError::InvalidOption { .. }
            | EngineError::LocationNotAllowed { .. }
            | EngineError::InvalidValue { .. }
            | EngineError::Execution { .. }
            | EngineError::Internal(_) => return None,
        };
        Some(hint.to_owned())
    }

    /// Returns the error of a query that panicked with `panic`.
    pub(crate) fn from_panic(panic: &(dyn std::any::Any + Send)) -> Self {
        let message = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no message");
        Self::no_threads(message)
            .or_else(|| told_by_text::offset_overflow(message))
            .unwrap_or_else(|| Self::Internal(format!("a query panicked: {message}")))
    }

    /// Returns the error of a panic that says that the operating system lets the process start no more threads.
    pub fn no_threads(panic: &str) -> Option<Self> {
        // What tokio says, and the standard library.
        let words = ["OS can't spawn worker thread: ", "failed to spawn thread: "];
        let detail = words.iter().find_map(|words| panic.strip_prefix(words))?;
        Some(Self::ServerThreads { detail: detail.to_owned() })
    }

    /// Returns the error for a statement, expression or plan that nests deeper than the engine walks.
    pub(crate) fn too_deep() -> Self {
        EngineError::Plan { message: "the statement nests too deeply; split it with WITH or a view".into() }
    }
}

/// The engine's result.
pub type Result<T, E = EngineError> = std::result::Result<T, E>;

/// Returns whether a name is one of the catalogs of PostgreSQL, DuckDB, SQLite and MySQL.
fn is_of_other_systems(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("pg_") || name.starts_with("duckdb_") || name.starts_with("sqlite_") || name == "mysql"
}

/// Returns whether an ending is that of files that are read.
fn is_file_ending(ending: &str) -> bool {
    const ENDINGS: [&str; 10] =
        ["csv", "tsv", "json", "ndjson", "jsonl", "geojson", "parquet", "xlsx", "arrow", "feather"];
    ENDINGS.iter().any(|known| known.eq_ignore_ascii_case(ending))
}

/// Returns whether a name has the ending of a file, before that of its compression.
fn is_name_of_file(name: &str) -> bool {
    let Some((stem, ending)) = name.rsplit_once('.') else { return false };
    is_file_ending(ending) || stem.rsplit_once('.').is_some_and(|(_, inner)| is_file_ending(inner))
}
