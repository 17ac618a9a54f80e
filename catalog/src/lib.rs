//! What exists: databases, tables, columns, runs; and finding tables by name, by text and by meaning.
//!
//! The catalog is a DuckLake 1.0 in SQLite with `querent_*` tables beside it, and a Lance schema index
//! derived from it. Nothing here enumerates the catalog to answer a query: names resolve in one batch at
//! one snapshot, listings are paged, and the index can be deleted and rebuilt at any time.

mod error;
mod model;
mod principal;

pub mod index;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use uuid::Uuid;

pub use error::{CatalogError, Result};
pub use model::*;
pub use principal::{DatabaseScope, Principal, Role};

use index::embed::Embedder;

/// How to open a catalog.
#[derive(Clone)]
pub struct CatalogOptions {
    /// The data folder; made when absent.
    pub data_dir: PathBuf,
    /// Turns texts into vectors. `None` leaves search to names and BM25.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Told how long work goes on (index rebuilds).
    pub progress: Arc<dyn Progress>,
}

/// Told about long work. Called from worker threads, must not block.
pub trait Progress: Send + Sync {
    /// `done` of `total` units of `task` are finished.
    fn report(&self, task: &str, done: u64, total: u64);
}

/// A [`Progress`] that is told and says nothing.
pub struct NoProgress;

impl Progress for NoProgress {
    fn report(&self, _task: &str, _done: u64, _total: u64) {}
}

/// The catalog of one data folder. Cheap to share behind an `Arc`; every method may be called from any task.
///
/// Only one Querent process may hold a data folder; DuckDB may attach `catalog.sqlite` beside it.
pub struct Catalog {}

/// Nothing here yet.
#[allow(unused_variables, missing_docs, clippy::todo, clippy::allow_attributes)]
impl Catalog {
    /// Opens or creates the data folder. Errors: `data_folder_in_use`, `newer_format`, `catalog_corrupt`, `io_error`.
    pub async fn open(options: CatalogOptions) -> Result<Arc<Self>> {
        todo!()
    }
    /// Stops background work, drains the index, checkpoints, releases the lock. Dropping the catalog without it loses nothing.
    pub async fn close(&self) -> Result<()> {
        todo!()
    }
    /// The data folder.
    pub fn data_dir(&self) -> &Path {
        todo!()
    }
    /// The newest snapshot.
    pub async fn snapshot(&self) -> Result<SnapshotId> {
        todo!()
    }

    // ---- resolving and listing (engine) ----
    /// Resolves all names of a statement at one snapshot, in one batch. The result has one entry a name, in order:
    /// `None` where the object does not exist or the principal may not see it.
    pub async fn resolve(&self, who: &Principal, names: &[TableName]) -> Result<Vec<Option<ResolvedTable>>> {
        todo!()
    }
    /// The `table_not_found` (or `database_not_found`) error for a name, with the nearest name the principal may see.
    pub async fn not_found(&self, who: &Principal, name: &TableName) -> CatalogError {
        todo!()
    }
    pub async fn database(&self, who: &Principal, name: &str) -> Result<Option<DatabaseInfo>> {
        todo!()
    }
    /// Ordered by name.
    pub async fn list_databases(
        &self,
        who: &Principal,
        like: Option<&str>,
        page: PageRequest,
    ) -> Result<Page<DatabaseInfo>> {
        todo!()
    }
    /// Ordered by database, then name (both lowercase).
    pub async fn list_tables(
        &self,
        who: &Principal,
        filter: &TableFilter,
        page: PageRequest,
    ) -> Result<Page<TableSummary>> {
        todo!()
    }
    /// As `list_tables`, with columns.
    pub async fn list_tables_with_columns(
        &self,
        who: &Principal,
        filter: &TableFilter,
        page: PageRequest,
    ) -> Result<Page<TableInfo>> {
        todo!()
    }
    /// The files of a managed table at its snapshot, with statistics of the named columns only (column ids).
    /// `unsupported_lake` when the table holds delete files or inlined rows at that snapshot.
    pub async fn data_files(&self, table: &ManagedTable, stats_columns: &[i64]) -> Result<Vec<DataFile>> {
        todo!()
    }

    // ---- changing (engine; the caller has authorised) ----
    pub async fn create_database(&self, name: &str, if_exists: IfExists) -> Result<Created<DatabaseInfo>> {
        todo!()
    }
    pub async fn drop_database(&self, name: &str, if_missing_ok: bool, cascade: bool) -> Result<bool> {
        todo!()
    }
    /// Checks the name, the types and that the database exists; fixes ids and folder. Reserves nothing.
    pub async fn draft_table(&self, name: &TableName, schema: &Schema, comment: Option<String>) -> Result<TableDraft> {
        todo!()
    }
    /// Creates the table with its first files in one snapshot.
    pub async fn create_table(
        &self,
        draft: TableDraft,
        files: Vec<NewDataFile>,
        if_exists: IfExists,
    ) -> Result<Created<TableInfo>> {
        todo!()
    }
    /// The schema to write more files of a table with: as [`TableDraft::write_schema`], at the table's snapshot.
    pub async fn write_schema(&self, table: &ManagedTable) -> Result<SchemaRef> {
        todo!()
    }
    /// Appends files to a table as resolved. `conflict` when it was dropped or altered since.
    pub async fn append(&self, table: &ManagedTable, files: Vec<NewDataFile>) -> Result<SnapshotId> {
        todo!()
    }
    /// Replaces all rows (INSERT OVERWRITE, import --replace) in one snapshot.
    pub async fn replace_files(&self, table: &ManagedTable, files: Vec<NewDataFile>) -> Result<SnapshotId> {
        todo!()
    }
    /// `schema` is what the view's query returns, recorded for describe and search.
    pub async fn create_view(
        &self,
        name: &TableName,
        sql: &str,
        default_database: &str,
        schema: &Schema,
        if_exists: IfExists,
    ) -> Result<Created<TableInfo>> {
        todo!()
    }
    pub async fn create_external_table(
        &self,
        name: &TableName,
        table: ExternalTable,
        schema: &Schema,
        if_exists: IfExists,
    ) -> Result<Created<TableInfo>> {
        todo!()
    }
    /// Drops a table, external table or view of the given kinds. Returns whether anything was dropped. Files stay until expiry.
    pub async fn drop_table(&self, name: &TableName, kinds: &[TableKind], if_missing_ok: bool) -> Result<bool> {
        todo!()
    }
    /// `None` removes the comment. `column = None` means the table itself.
    pub async fn set_comment(&self, name: &TableName, column: Option<&str>, comment: Option<&str>) -> Result<()> {
        todo!()
    }
    pub async fn set_database_comment(&self, name: &str, comment: Option<&str>) -> Result<()> {
        todo!()
    }

    // ---- runs (agent) ----
    /// Durable when it returns.
    pub async fn insert_run(&self, run: &RunRecord) -> Result<()> {
        todo!()
    }
    /// Sets status, finished_at, usage_json and trace_json. Durable when it returns.
    pub async fn update_run(&self, run: &RunRecord) -> Result<()> {
        todo!()
    }
    /// Owner and administrators only; others get `run_not_found`.
    pub async fn get_run(&self, who: &Principal, run_id: Uuid) -> Result<RunRecord> {
        todo!()
    }
    /// Newest first; trace left empty.
    pub async fn list_runs(&self, who: &Principal, page: PageRequest) -> Result<Page<RunRecord>> {
        todo!()
    }
    /// Newest first, whole records, for the system table. `limit` rows at most.
    pub async fn scan_runs(&self, who: &Principal, limit: usize) -> Result<Vec<RunRecord>> {
        todo!()
    }
    /// Runs a previous process left `running` become `error`. Called at open by the server. Returns how many.
    pub async fn abandon_running_runs(&self) -> Result<u64> {
        todo!()
    }

    // ---- search ----
    /// Dense + BM25 + exact names, fused; only what `who` may see. Ordered best first.
    pub async fn search(&self, who: &Principal, request: &SearchRequest) -> Result<Vec<SearchHit>> {
        todo!()
    }
    /// The same, each hit with its columns: one batch at one snapshot, for the prompt.
    pub async fn search_with_columns(
        &self,
        who: &Principal,
        request: &SearchRequest,
    ) -> Result<Vec<(SearchHit, TableInfo)>> {
        todo!()
    }
    /// Waits until every committed object can be found by meaning. For tests and `import`.
    pub async fn index_idle(&self) -> Result<()> {
        todo!()
    }
}
