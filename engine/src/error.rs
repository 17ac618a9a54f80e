//! The engine's errors. Each has a stable snake_case `code()`; the catalog's keep theirs.

mod mapping;

use std::time::Duration;

use querent_catalog::CatalogError;
pub use querent_kql::KqlErrorCode;

use crate::stores::StoreError;

/// What can go wrong with a query. A new variant is an error in every crate that maps these to its protocol's statuses,
/// until somebody has decided about it.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// From the catalog, code kept.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The text is not SQL.
    #[error("{message}")]
    Parse {
        /// What, where (`line L, column C`).
        message: String,
    },
    /// A KQL query that does not parse, or means nothing.
    #[error("{message}")]
    Kql {
        /// The kind of the first error.
        code: KqlErrorCode,
        /// Each error with its position and the line there.
        message: String,
        /// What to do, where it is known.
        hint: Option<String>,
    },
    /// More than one statement.
    #[error("one statement at a time; found {found}")]
    MultipleStatements {
        /// How many.
        found: usize,
    },
    /// Nothing to run.
    #[error("the query is empty")]
    EmptyQuery,
    /// A column that is not there.
    #[error("unknown column `{column}`{hint}")]
    ColumnNotFound {
        /// The name as written.
        column: String,
        /// `; did you mean ...?` or the columns there are; may be empty.
        hint: String,
    },
    /// A function that is not there.
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
    /// Out of time.
    #[error("the query ran longer than {} ms; narrow it or raise the limit", .limit.as_millis())]
    WallClockExceeded {
        /// The limit.
        limit: Duration,
    },
    /// Out of memory, or of spill space.
    #[error("the query needed more than its memory limit: {detail}")]
    MemoryExceeded {
        /// Which consumer, how much.
        detail: String,
    },
    /// A file that cannot be read as what it should be. For CSV and NDJSON names the row and the column.
    #[error("{location}: {detail}")]
    BadData {
        /// File, with row (1-based, header not counted) and column where known.
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
    /// A location the caller may not use.
    #[error("location {location} is not allowed: {reason}")]
    LocationNotAllowed {
        /// The location.
        location: String,
        /// Why.
        reason: String,
    },
    /// From an object store or a web server.
    #[error("{0}")]
    Store(StoreError),
    /// Failed while running.
    #[error("{message}")]
    Execution {
        /// DataFusion's message, shortened.
        message: String,
    },
    /// A bug.
    #[error("internal: {0}")]
    Internal(String),
}

impl EngineError {
    /// The stable code, documented in `docs/errors.md`.
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
            EngineError::MemoryExceeded { .. } => "memory_exceeded",
            EngineError::BadData { .. } => "bad_data",
            EngineError::NoFiles { .. } => "no_files",
            EngineError::LocationNotAllowed { .. } => "location_not_allowed",
            EngineError::Store(StoreError::MissingCredentials { .. }) => "missing_credentials",
            EngineError::Store(StoreError::AccessDenied { .. }) => "store_access_denied",
            EngineError::Store(StoreError::NoSuchBucket { .. }) => "no_such_bucket",
            EngineError::Store(StoreError::Unavailable { .. }) => "store_unavailable",
            EngineError::Store(StoreError::Unusable { .. }) => "store_error",
            EngineError::Store(StoreError::Gone { .. }) => "no_files",
            EngineError::Store(StoreError::Refused { .. }) => "location_not_allowed",
            EngineError::Execution { .. } => "query_execution_error",
            EngineError::Internal(_) => "internal",
        }
    }

    /// What to do about it, where there is more to say than the message says.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
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
            EngineError::MemoryExceeded { .. } => {
                "aggregate or filter before joining and sorting, or read fewer columns"
            }
            EngineError::NotAllowed { .. } => {
                "only queries (SELECT, WITH, VALUES, EXPLAIN, SHOW, DESCRIBE) are always allowed"
            }
            EngineError::Store(error) => return error.hint(),
            EngineError::Catalog(_)
            | EngineError::Parse { .. }
            | EngineError::ColumnNotFound { .. }
            | EngineError::Plan { .. }
            | EngineError::Unsupported { .. }
            | EngineError::BadData { .. }
            | EngineError::NoFiles { .. }
            | EngineError::LocationNotAllowed { .. }
            | EngineError::Execution { .. }
            | EngineError::Internal(_) => return None,
        };
        Some(hint.to_owned())
    }

    /// A statement, expression or plan nested deeper than the engine walks.
    pub(crate) fn too_deep() -> Self {
        EngineError::Plan { message: "the statement nests too deeply; split it with WITH or a view".into() }
    }
}

/// The engine's result.
pub type Result<T, E = EngineError> = std::result::Result<T, E>;
