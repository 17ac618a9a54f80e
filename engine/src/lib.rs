//! Answers a query: a DataFusion engine over the catalog, with policy and limits in its types.
//!
//! Every statement is planned, passes [`policy::authorize`] and only then executes: only `authorize` makes an
//! [`policy::AuthorizedPlan`], and only that runs. Dropping a [`QueryStream`] stops its work.

mod error;
mod functions;
mod import;
mod instant;
mod knowledge;
mod kql_host;
mod limits;
pub mod policy;
mod runtime;
mod session;
mod sql;
mod stores;
mod stream;
mod tables;
mod threads;
mod values;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use datafusion::execution::SessionState;
pub use datafusion::scalar::ScalarValue;
use futures::FutureExt;
use querent_catalog::index::embed::Embedder;
use querent_catalog::{
    Catalog, CatalogOptions, DEFAULT_DATABASE, DatabaseScope, FileFormat, IfExists, NoProgress, Principal, Progress,
    TableName,
};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

pub use error::{EngineError, KqlErrorCode, Result};
pub use instant::rfc3339;
pub use limits::Limits;
pub use querent_kql as kql;
pub use session::{KqlAnswer, Session};
pub use sql::qualify_tables;
pub use stores::{StoreError, UrlRoot};
pub use stream::{QueryStats, QueryStream};

use policy::Mode;
use runtime::Runtime;
use values::ValueQueue;

/// What spilled queries may take of the disk, unless said otherwise.
const DEFAULT_SPILL_BYTES: u64 = 100 << 30;
/// How long closing waits for values that are being collected.
const COLLECTING_TIME: Duration = Duration::from_secs(1);

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
    /// URLs of object stores and web servers below which external tables may lie, whoever makes them; none: nowhere.
    pub external_urls: Vec<UrlRoot>,
    /// For the schema index; `None` leaves search to names and BM25.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Ranks the best hundred tables of a search anew, where `embedder` is fast and less good. `None`: nothing does.
    pub reranker: Option<Arc<dyn Embedder>>,
    /// Told how long work goes on.
    pub progress: Arc<dyn Progress>,
}

impl EngineOptions {
    /// A data folder with the defaults: 60 % of the machine's memory, 100 GiB of spill files, every core, no folders
    /// for external tables of role `write`, no object stores, no embedder, no reranker.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            memory_bytes: None,
            spill_bytes: DEFAULT_SPILL_BYTES,
            target_partitions: None,
            external_roots: Vec::new(),
            external_urls: Vec::new(),
            embedder: None,
            reranker: None,
            progress: Arc::new(NoProgress),
        }
    }
}

/// The engine of one data folder. Cheap to clone. `examples/embed.rs` is a program around it.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> querent_engine::Result<()> {
/// use querent_catalog::Principal;
/// use querent_engine::{Engine, Limits};
///
/// let engine = Engine::open("querent-data").await?;
/// let session = engine.session(Principal::local_admin(), Limits::default());
/// session.sql("CREATE TABLE flights AS VALUES ('UA', 1400), ('AA', 760)").await?.collect().await?;
/// let (batches, stats) = session.sql("SELECT count(*) FROM flights").await?.collect().await?;
/// assert_eq!(stats.rows, 1);
/// assert_eq!(batches.len(), 1);
/// engine.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
    /// Ends background work with the last engine that somebody holds; `None` for the one that does the work.
    _stop: Option<Arc<DropGuard>>,
}

struct Shared {
    catalog: Arc<Catalog>,
    runtime: Runtime,
    external_roots: Vec<PathBuf>,
    external_urls: Vec<UrlRoot>,
    /// Commits that must end one way or the other, whoever still waits for them.
    finishing: TaskTracker,
    values: Arc<ValueQueue>,
    background: TaskTracker,
    stop: CancellationToken,
}

impl Engine {
    /// Opens or creates a data folder with default options and no embedder.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(EngineOptions::new(path.as_ref())).await
    }

    /// Opens or creates a data folder.
    pub async fn open_with(options: EngineOptions) -> Result<Self> {
        let catalog = Catalog::open(CatalogOptions {
            data_dir: options.data_dir.clone(),
            embedder: options.embedder.clone(),
            reranker: options.reranker.clone(),
            progress: Arc::clone(&options.progress),
        })
        .await?;
        let runtime = Runtime::open(&options).await?;
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared {
            catalog,
            runtime,
            external_roots: options.external_roots,
            external_urls: options.external_urls,
            finishing: TaskTracker::new(),
            values: Arc::new(ValueQueue::new()),
            background: TaskTracker::new(),
            stop: stop.clone(),
        });
        let worker = Self { shared: Arc::clone(&shared), _stop: None };
        shared.background.spawn(values::follow(worker, Arc::clone(&shared.values), stop.clone()));
        shared.background.close();
        Ok(Self { shared, _stop: Some(Arc::new(stop.drop_guard())) })
    }

    /// The catalog behind it.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.shared.catalog
    }

    /// A session for one caller, in the database `default`, or in the caller's first where it may not see that one.
    /// Read-write unless [`Session::read_only`].
    pub fn session(&self, principal: Principal, limits: Limits) -> Session {
        let own = match principal.scope() {
            DatabaseScope::Only(names) if !principal.may_see(DEFAULT_DATABASE) => names.first().cloned(),
            DatabaseScope::Only(_) | DatabaseScope::All => None,
        };
        let database = own.as_deref().unwrap_or(DEFAULT_DATABASE);
        Session::new(self.clone(), principal, limits, database, Mode::ReadWrite)
    }

    /// Memory that running queries hold now, in bytes.
    pub fn memory_reserved_bytes(&self) -> usize {
        self.shared.runtime.reserved_bytes()
    }

    /// Imports files as one managed (rows copied) or external (files referenced) table, all or nothing.
    /// Errors: `bad_data` with file, row and column, `no_files`, `already_exists`, `location_not_allowed`, ...
    pub async fn import(
        &self,
        principal: &Principal,
        request: ImportRequest,
        progress: Arc<dyn Progress>,
    ) -> Result<ImportOutcome> {
        import::import(self, principal, request, progress).boxed().await
    }

    /// Registers a tree of folders as external tables: each folder of like files one, partition folders (`key=value`)
    /// recognised. A later run of the same tree registers what is new, refreshes what changed and drops what is gone.
    /// `report` hears of every folder. Errors: `not_allowed`, `location_not_allowed`, `no_files`.
    pub async fn import_tree(
        &self,
        principal: &Principal,
        request: TreeRequest,
        progress: Arc<dyn Progress>,
        report: &(dyn Fn(TreeEvent) + Send + Sync),
    ) -> Result<TreeSummary> {
        import::import_tree(self, principal, request, progress, report).boxed().await
    }

    /// Waits for commits in progress and closes the catalog.
    pub async fn close(&self) -> Result<()> {
        self.shared.finishing.close();
        self.shared.finishing.wait().await;
        self.shared.values.idle(COLLECTING_TIME).await;
        self.shared.stop.cancel();
        self.shared.background.wait().await;
        Ok(self.shared.catalog.close().await?)
    }

    /// Tells that somebody looks at tables: their columns' values are collected in the background, unless they are
    /// known.
    pub fn looked_at(&self, tables: impl IntoIterator<Item = TableName>) {
        self.shared.values.looked_at(tables.into_iter().collect());
    }

    /// Waits until the values of what was written and looked at are collected, at most `time`.
    pub async fn values_idle(&self, time: Duration) {
        self.shared.values.idle(time).await;
    }

    pub(crate) fn values_changed(&self, table: TableName) {
        self.shared.values.changed(table);
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.shared.runtime
    }

    pub(crate) fn planning_state(&self) -> SessionState {
        self.shared.runtime.state()
    }

    pub(crate) fn external_roots(&self) -> &[PathBuf] {
        &self.shared.external_roots
    }

    pub(crate) fn external_urls(&self) -> &[UrlRoot] {
        &self.shared.external_urls
    }

    /// Runs `work` to its end even when nobody waits for it any more; [`Engine::close`] does.
    pub(crate) fn finish<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.shared.finishing.spawn(work)
    }
}

/// Files to import as a table.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportRequest {
    /// A file, folder or glob: a local path, which is made absolute, or a URL of an object store or web server.
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

/// A tree of folders to register as external tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeRequest {
    /// A folder: a local path, which is made absolute, or a URL of an object store.
    pub source: String,
    /// The database of all tables. `None`: the first folder below the source names it, and `default` where a table is
    /// right there.
    pub database: Option<String>,
    /// Report what would be done and do nothing.
    pub dry_run: bool,
}

/// What was found about one folder of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEvent {
    /// The folder.
    pub folder: String,
    /// The table that it is or would be.
    pub table: Option<TableName>,
    /// What was done about it.
    pub step: TreeStep,
}

/// What was done about a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeStep {
    /// A new table.
    Registered,
    /// A table whose columns, format or place changed.
    Refreshed,
    /// A table that is as it was; its files are found when it is read.
    Unchanged,
    /// A table whose files are gone.
    Dropped,
    /// No table.
    Skipped {
        /// Why not.
        reason: String,
    },
}

/// How many folders of a tree were what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TreeSummary {
    /// New tables.
    pub registered: u64,
    /// Tables that changed.
    pub refreshed: u64,
    /// Tables that did not.
    pub unchanged: u64,
    /// Tables whose files are gone.
    pub dropped: u64,
    /// What is no table.
    pub skipped: u64,
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
