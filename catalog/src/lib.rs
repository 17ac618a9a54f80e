//! What exists: databases, tables, columns, runs, conversations; and finding tables by name, by text and by meaning.
//!
//! The catalog is a DuckLake 1.0 in SQLite with `querent_*` tables beside it, and a Lance schema index
//! derived from it. Nothing here enumerates the catalog to answer a query: names resolve in one batch at
//! one snapshot, listings are paged, and the index can be deleted and rebuilt at any time.

mod columns;
mod conversations;
mod error;
mod external_users;
mod knowledge;
mod model;
pub mod outbound;
mod principal;
mod relationships;
mod runs;
mod search;
mod store;
pub mod values;

pub mod index;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use futures::FutureExt;

pub use columns::{ColumnHit, ColumnSearch};
pub use conversations::{
    ConversationAccess, ConversationChange, ConversationFilter, ConversationKey, ConversationRecord, Decision,
    FileRecord, ItemRecord, ItemRole, ItemScope, Listed, PendingCall, PendingKind, PendingState, Purged,
};
pub use error::{CatalogError, Result};
pub use external_users::{ExternalUser, GrantKind};
pub use knowledge::{MAX_OBJECTS, Metric, NewMetric, NewVerifiedQuery, Similar, VerifiedQuery};
pub use model::*;
pub use principal::{DatabaseScope, Principal, Role, UserAttributes};
pub use relationships::{ForeignKey, NewRelationship, Relationship, RelationshipOrigin, looks_like_key};
pub use runs::{RunRecord, RunStatus, whole_trace};
pub use search::cutoff::clear_drop;
pub use values::{ColumnProfile, TableProfile, Unprofiled, ValueHit};

use index::SchemaIndex;
use index::embed::Embedder;
use knowledge::Knowledge;
use store::Store;

/// The schema index in the data folder.
const INDEX_FOLDER: &str = "index";

/// How to open a catalog.
#[derive(Clone)]
pub struct CatalogOptions {
    /// The data folder; made when absent.
    pub data_dir: PathBuf,
    /// Turns texts into vectors. `None` leaves search to names and BM25.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Ranks the best hundred tables of a search anew, where `embedder` is fast and less good. `None`: nothing does.
    pub reranker: Option<Arc<dyn Embedder>>,
    /// Told how long work goes on (index rebuilds).
    pub progress: Arc<dyn Progress>,
}

impl CatalogOptions {
    /// A data folder without embedder, reranker and progress.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self { data_dir: data_dir.into(), embedder: None, reranker: None, progress: Arc::new(NoProgress) }
    }
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
pub struct Catalog {
    // Dropped before the store, which its tasks use.
    index: SchemaIndex,
    knowledge: Knowledge,
    store: Arc<Store>,
}

impl Catalog {
    /// Opens or creates the data folder. Errors: `data_folder_in_use`, `newer_format`, `catalog_corrupt`, `io_error`.
    pub async fn open(options: CatalogOptions) -> Result<Arc<Self>> {
        let store = Arc::new(Store::open(&options.data_dir).await?);
        let folder = store.data_dir().join(INDEX_FOLDER);
        let index =
            SchemaIndex::open(&store, folder, options.embedder, options.reranker, options.progress).boxed().await?;
        Ok(Arc::new(Self { index, knowledge: Knowledge::default(), store }))
    }

    /// Stops background work, drains the index, checkpoints, releases the lock. Dropping the catalog without it loses nothing.
    pub async fn close(&self) -> Result<()> {
        self.index.close().boxed().await;
        self.store.close().await
    }

    /// The data folder, absolute.
    pub fn data_dir(&self) -> &Path {
        self.store.data_dir()
    }

    /// The newest snapshot.
    pub async fn snapshot(&self) -> Result<SnapshotId> {
        self.store.view(|view| Ok(view.snapshot)).await
    }
}

/// Resolving and listing. Every result is of the newest snapshot, what DuckDB committed included.
impl Catalog {
    /// Resolves all names of a statement at one snapshot, in one batch. The result has one entry a name, in order:
    /// `None` where the object does not exist or the principal may not see it.
    pub async fn resolve(&self, who: &Principal, names: &[TableName]) -> Result<Vec<Option<ResolvedTable>>> {
        let (who, names) = (who.clone(), names.to_vec());
        self.store.view(move |view| store::resolve::resolve(view, &who, &names)).await
    }

    /// The `table_not_found` (or `database_not_found`) error for a name, with the nearest name the principal may see.
    pub async fn not_found(&self, who: &Principal, name: &TableName) -> CatalogError {
        let (who, name) = (who.clone(), name.clone());
        let error = self.store.view(move |view| store::resolve::not_found(view, &who, &name)).await;
        error.unwrap_or_else(|error| error)
    }

    /// The `database_not_found` error for a name, with the nearest name the principal may see.
    pub async fn database_not_found(&self, who: &Principal, name: &str) -> CatalogError {
        let (who, name) = (who.clone(), name.to_string());
        let error = self.store.view(move |view| store::resolve::database_not_found(view, &who, &name)).await;
        error.unwrap_or_else(|error| error)
    }

    /// The database of a name, if it exists and may be seen.
    pub async fn database(&self, who: &Principal, name: &str) -> Result<Option<DatabaseInfo>> {
        let (who, name) = (who.clone(), name.to_string());
        self.store.view(move |view| store::databases::find(view, &who, &name)).await
    }

    /// The databases the principal may see, ordered by lowercase name; `like` is a SQL `LIKE` pattern (`\` escapes).
    pub async fn list_databases(
        &self,
        who: &Principal,
        like: Option<&str>,
        page: PageRequest,
    ) -> Result<Page<DatabaseInfo>> {
        let (who, like) = (who.clone(), like.map(str::to_string));
        self.store.view(move |view| store::databases::list(view, &who, like.as_deref(), &page)).await
    }

    /// The tables, external tables and views the principal may see, ordered by database, then name (both lowercase).
    pub async fn list_tables(
        &self,
        who: &Principal,
        filter: &TableFilter,
        page: PageRequest,
    ) -> Result<Page<TableSummary>> {
        let (who, filter) = (who.clone(), filter.clone());
        self.store.view(move |view| store::listing::tables(view, &who, &filter, &page)).await
    }

    /// As [`Catalog::list_tables`], with columns.
    pub async fn list_tables_with_columns(
        &self,
        who: &Principal,
        filter: &TableFilter,
        page: PageRequest,
    ) -> Result<Page<TableInfo>> {
        let (who, filter) = (who.clone(), filter.clone());
        self.store.view(move |view| store::listing::tables_with_columns(view, &who, &filter, &page)).await
    }

    /// What a managed table holds at its snapshot, with statistics of the named columns only (column ids).
    /// `unsupported_lake` when something of it is not read yet: encrypted or name-mapped files, rows older than a
    /// column with a default value, inlined values of nested types, columns of types Arrow cannot take from Parquet.
    pub async fn contents(&self, table: &ManagedTable, stats_columns: &[i64]) -> Result<TableContents> {
        let (table, stats_columns) = (table.clone(), stats_columns.to_vec());
        self.store.read(move |connection| store::files::contents(connection, &table, &stats_columns)).await
    }

    /// The files of a table that holds nothing else: `unsupported_lake` also where rows are deleted or inlined.
    pub async fn data_files(&self, table: &ManagedTable, stats_columns: &[i64]) -> Result<Vec<DataFile>> {
        let (table, stats_columns) = (table.clone(), stats_columns.to_vec());
        self.store.read(move |connection| store::files::whole_files(connection, &table, &stats_columns)).await
    }
}

/// Changing. The caller has authorised; what is acknowledged survives a power cut.
impl Catalog {
    /// Creates a database. [`IfExists::Replace`] drops the existing one with all it holds.
    pub async fn create_database(&self, name: &str, if_exists: IfExists) -> Result<Created<DatabaseInfo>> {
        let name = name.to_string();
        self.store.write(move |change| store::databases::create_checked(change, &name, if_exists)).await
    }

    /// Drops a database; with `cascade`, with all it holds. Returns whether there was one.
    pub async fn drop_database(&self, name: &str, if_missing_ok: bool, cascade: bool) -> Result<bool> {
        let name = name.to_string();
        self.store.write(move |change| store::databases::drop_named(change, &name, if_missing_ok, cascade)).await
    }

    /// Checks the name, the types and that the database exists; fixes ids and folder. Reserves nothing.
    pub async fn draft_table(&self, name: &TableName, schema: &Schema, comment: Option<String>) -> Result<TableDraft> {
        let (name, schema) = (name.clone(), schema.clone());
        self.store.view(move |view| store::tables::draft(view, &name, &schema, comment)).await
    }

    /// Creates the table with its first files in one snapshot.
    pub async fn create_table(
        &self,
        draft: TableDraft,
        files: Vec<NewDataFile>,
        if_exists: IfExists,
    ) -> Result<Created<TableInfo>> {
        let create = self.store.write(move |change| store::tables::create(change, &draft, &files, if_exists));
        self.index.change(create).await
    }

    /// The schema to write more files of a table with: as [`TableDraft::write_schema`], at the table's snapshot.
    /// `unsupported_lake` where DuckDB gave the table what a writer would have to honour and we do not yet.
    pub async fn write_schema(&self, table: &ManagedTable) -> Result<SchemaRef> {
        let table = table.clone();
        self.store.read(move |connection| store::files::write_schema(connection, &table)).await
    }

    /// Appends files to a table as resolved. `conflict` when it was dropped or altered since.
    pub async fn append(&self, table: &ManagedTable, files: Vec<NewDataFile>) -> Result<SnapshotId> {
        let table = table.clone();
        self.store.write(move |change| store::tables::append(change, &table, &files)).await
    }

    /// Replaces all rows (INSERT OVERWRITE, import --replace) in one snapshot. `conflict` also when rows were added
    /// or removed since the table was resolved.
    pub async fn replace_files(&self, table: &ManagedTable, files: Vec<NewDataFile>) -> Result<SnapshotId> {
        let table = table.clone();
        self.store.write(move |change| store::tables::replace(change, &table, &files)).await
    }

    /// Creates a view. `schema` is what its query returns, recorded for describe and search.
    pub async fn create_view(
        &self,
        name: &TableName,
        sql: &str,
        default_database: &str,
        schema: &Schema,
        if_exists: IfExists,
    ) -> Result<Created<TableInfo>> {
        let (name, schema) = (name.clone(), schema.clone());
        let (sql, default_database) = (sql.to_string(), default_database.to_string());
        let create = self
            .store
            .write(move |change| store::views::create_view(change, &name, &sql, &default_database, &schema, if_exists));
        self.index.change(create).await
    }

    /// Creates an external table over files that somebody else owns.
    pub async fn create_external_table(
        &self,
        name: &TableName,
        table: ExternalTable,
        schema: &Schema,
        if_exists: IfExists,
    ) -> Result<Created<TableInfo>> {
        let (name, schema) = (name.clone(), schema.clone());
        let create =
            self.store.write(move |change| store::views::create_external(change, &name, &table, &schema, if_exists));
        self.index.change(create).await
    }

    /// Registers many tables in one snapshot: all of them, or none. Acknowledges before it indexes: names resolve and
    /// list at once, full text and meaning follow in the background. Progress is reported as `registering tables`,
    /// with a total of 0 where the iterator does not tell its length.
    pub async fn register_tables<I>(
        &self,
        tables: I,
        if_exists: IfExists,
        progress: Arc<dyn Progress>,
    ) -> Result<Registered>
    where
        I: IntoIterator<Item = NewTable> + Send + 'static,
    {
        self.store.write(move |change| store::bulk::register(change, tables, if_exists, progress.as_ref())).await
    }

    /// Drops a table, external table or view of the given kinds. Returns whether anything was dropped. Files stay until expiry.
    pub async fn drop_table(&self, name: &TableName, kinds: &[TableKind], if_missing_ok: bool) -> Result<bool> {
        let (name, kinds) = (name.clone(), kinds.to_vec());
        let drop = self.store.write(move |change| store::tables::drop_named(change, &name, &kinds, if_missing_ok));
        self.index.change(drop).await
    }

    /// Sets a comment; `None` removes it. `column = None` means the table itself.
    pub async fn set_comment(&self, name: &TableName, column: Option<&str>, comment: Option<&str>) -> Result<()> {
        let (name, column, comment) = (name.clone(), column.map(str::to_string), comment.map(str::to_string));
        self.store.write(move |change| store::comments::set(change, &name, column.as_deref(), comment.as_deref())).await
    }

    /// Sets a database's comment; `None` removes it.
    pub async fn set_database_comment(&self, name: &str, comment: Option<&str>) -> Result<()> {
        let (name, comment) = (name.to_string(), comment.map(str::to_string));
        self.store.write(move |change| store::databases::set_comment(change, &name, comment.as_deref())).await
    }
}

/// Search.
impl Catalog {
    /// The tables that fit a question or keywords best, best first: by name, by full text (BM25) and by meaning,
    /// fused. Only what `who` may see. Errors: `database_not_found`.
    pub async fn search(&self, who: &Principal, request: &SearchRequest) -> Result<Vec<SearchHit>> {
        let hits = self.search_with_columns(who, request).await?;
        Ok(hits.into_iter().map(|(hit, _)| hit).collect())
    }

    /// The same, each hit with its columns: one batch at one snapshot, for the prompt.
    pub async fn search_with_columns(
        &self,
        who: &Principal,
        request: &SearchRequest,
    ) -> Result<Vec<(SearchHit, TableInfo)>> {
        self.search_by(who, request, SearchStages::default()).await
    }

    /// As [`Catalog::search_with_columns`], by some of its stages: how much each of them gives can be measured.
    pub async fn search_by(
        &self,
        who: &Principal,
        request: &SearchRequest,
        stages: SearchStages,
    ) -> Result<Vec<(SearchHit, TableInfo)>> {
        search::search(&self.store, &self.index, &self.knowledge, who, request, stages).boxed().await
    }

    /// A question's vector, of unit length; `None` without a working embedder.
    pub async fn embed_question(&self, question: &str) -> Option<Vec<f32>> {
        self.index.embed_question(question).await
    }

    /// The tables nearest to a unit vector, by id, nearest first: by the vector index, or exactly. For measuring the one
    /// by the other; [`Catalog::search`] is what finds tables. Empty without an embedder.
    pub async fn nearest_tables(&self, vector: &[f32], limit: usize, exact: bool) -> Vec<i64> {
        let filter = index::SearchFilter { exact, ..Default::default() };
        let nearest = self.index.part(index::ObjectKind::Table).nearest(vector, limit, &filter).await;
        nearest.into_iter().map(|scored| scored.object_id).collect()
    }

    /// Waits until every committed object can be found by meaning; without an embedder, by full text. For tests and
    /// `import`. Errors: `embedder_error` while the embedder fails.
    pub async fn index_idle(&self) -> Result<()> {
        self.index.idle().boxed().await
    }
}
