//! Answers a query: a DataFusion engine over the catalog, with policy and limits in its types.
//!
//! Every statement is planned, passes [`policy::authorize`] and only then executes: only `authorize` makes an
//! [`policy::AuthorizedPlan`], and only that runs. Dropping a [`QueryStream`] stops its work.

mod error;
mod limits;
pub mod policy;
mod stream;
mod tables;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::logical_expr::LogicalPlan;
pub use datafusion::scalar::ScalarValue;
use querent_catalog::index::embed::Embedder;
use querent_catalog::{Catalog, FileFormat, IfExists, Principal, Progress, TableName};

pub use error::{EngineError, Result};
pub use limits::Limits;
pub use stream::{QueryStats, QueryStream};

use policy::{AuthorizedPlan, Mode};

/// How to open an engine.
#[derive(Clone)]
pub struct EngineOptions {
    /// The data folder: catalog, data, index, spill.
    pub data_dir: PathBuf,
    /// Memory shared by all queries, in bytes. `None`: 60 % of the machine's (cgroup-aware).
    pub memory_bytes: Option<usize>,
    /// Cap of spill files, in bytes.
    pub spill_bytes: u64,
    /// Threads a query may use; `None`: the machine's cores.
    pub target_partitions: Option<usize>,
    /// Local folders under which a `write` role may create external tables; an administrator may anywhere.
    pub external_roots: Vec<PathBuf>,
    /// For the schema index; `None` leaves search to names and BM25.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Told how long work goes on.
    pub progress: Arc<dyn Progress>,
}

/// The engine of one data folder. Cheap to clone.
#[derive(Clone)]
pub struct Engine {}

/// Nothing here yet.
#[allow(unused_variables, missing_docs, clippy::todo, clippy::allow_attributes)]
impl Engine {
    /// Opens or creates a data folder with default options and no embedder.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        todo!()
    }
    /// Opens or creates a data folder.
    pub async fn open_with(options: EngineOptions) -> Result<Self> {
        todo!()
    }
    /// The catalog behind it.
    pub fn catalog(&self) -> &Arc<Catalog> {
        todo!()
    }
    /// A session for one caller. Read-write unless [`Session::read_only`].
    pub fn session(&self, principal: Principal, limits: Limits) -> Session {
        todo!()
    }
    /// Imports files as one managed (rows copied) or external (files referenced) table, all or nothing.
    pub async fn import(
        &self,
        principal: &Principal,
        request: ImportRequest,
        progress: Arc<dyn Progress>,
    ) -> Result<ImportOutcome> {
        todo!()
    }
    /// Stops background work and closes the catalog.
    pub async fn close(&self) -> Result<()> {
        todo!()
    }
}

/// Files to import as a table.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportRequest {
    /// A local file, folder or glob; made absolute.
    pub source: String,
    /// `None`: from the file name's ending.
    pub format: Option<FileFormat>,
    /// Reader options, as in [`querent_catalog::ExternalTable::options`].
    pub options: std::collections::BTreeMap<String, String>,
    /// The table to make.
    pub table: TableName,
    /// Managed (copy) or external (reference).
    pub external: bool,
    /// What to do when the table exists. `Append` is `None`.
    pub if_exists: Option<IfExists>,
}

/// What an import did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportOutcome {
    /// Rows now in the table through this import (managed), or `None` (external, not counted).
    pub rows: Option<u64>,
    /// Files read.
    pub files: usize,
    /// Whether a table was made.
    pub created: bool,
}

/// One caller's view of the engine: principal, default database, limits, mode. Cheap to clone.
#[derive(Clone)]
pub struct Session {}

/// Nothing here yet.
#[allow(unused_variables, missing_docs, clippy::todo, clippy::allow_attributes)]
impl Session {
    /// The same session refusing everything that is not a query.
    pub fn read_only(self) -> Self {
        todo!()
    }
    /// The same session with bare names resolved in `database`. Errors: `database_not_found`.
    pub async fn with_database(self, database: &str) -> Result<Self> {
        todo!()
    }
    pub fn database(&self) -> &str {
        todo!()
    }
    pub fn principal(&self) -> &Principal {
        todo!()
    }
    pub fn mode(&self) -> Mode {
        todo!()
    }
    pub fn limits(&self) -> &Limits {
        todo!()
    }
    pub fn engine(&self) -> &Engine {
        todo!()
    }
    /// Plans, authorises and runs one statement (a query, DDL or DML). The wall clock starts here.
    /// A statement that changes rows returns one row `count: UInt64`; DDL returns no rows.
    pub async fn sql(&self, text: &str) -> Result<QueryStream> {
        todo!()
    }
    /// The same with `$1`, `$2`, ... bound to `params`, before analysis, so that the values' types are coerced as literals' are.
    /// Errors also: `sql_plan_error` when a parameter is missing or one too many.
    pub async fn sql_with_params(&self, text: &str, params: Vec<ScalarValue>) -> Result<QueryStream> {
        todo!()
    }
    /// Parses and plans one statement, analysed, not authorised. Exactly one statement, else `multiple_statements`.
    pub async fn plan_sql(&self, text: &str) -> Result<LogicalPlan> {
        todo!()
    }
    /// Authorises for this session's principal and mode.
    pub fn authorize(&self, plan: LogicalPlan) -> Result<AuthorizedPlan> {
        todo!()
    }
    /// The schema [`Session::execute`]'s stream will have, nullability included.
    pub fn schema_of(&self, plan: &AuthorizedPlan) -> SchemaRef {
        todo!()
    }
    /// Runs it.
    pub async fn execute(&self, plan: AuthorizedPlan) -> Result<QueryStream> {
        todo!()
    }
    /// A uniform random sample of a table's rows, at most `n` (1..=1000), without reading more than it must.
    pub async fn sample(&self, table: &TableName, n: usize) -> Result<QueryStream> {
        todo!()
    }
}
