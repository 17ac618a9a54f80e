//! The catalog store: a DuckLake 1.0 in SQLite with `querent_*` tables beside it.
//!
//! One writer connection and a small pool of readers, all used on blocking threads; only whether anything has changed is
//! asked where it is wanted ([`version_watch`]). Every read sees one snapshot: a SQLite read transaction, and the DuckLake
//! rows that are live at its [`SnapshotView::snapshot`]. Every change is one SQLite transaction ([`change::CatalogChange`])
//! that commits the DuckLake rows, our rows and what the schema index has to learn. DuckDB may commit to the same file at
//! any time; its changes are absorbed ([`objects::absorb`]) before names are read or written.

pub(crate) mod alter;
pub(crate) mod bulk;
mod change;
pub(crate) mod column_names;
pub(crate) mod columns;
pub(crate) mod comments;
pub(crate) mod databases;
mod ddl;
mod deletes;
pub(crate) mod dependents;
pub(crate) mod distinct_values;
pub(crate) mod files;
mod inlined;
mod intact;
mod key_renames;
pub(crate) mod keys;
pub(crate) mod lake_files;
pub(crate) mod lake_location;
pub(crate) mod listing;
mod lock;
mod migrations;
pub(crate) mod names;
pub(crate) mod objects;
pub(crate) mod ownership;
pub(crate) mod pending;
pub(crate) mod policies;
pub(crate) mod relations;
pub(crate) mod resolve;
pub(crate) mod row_changes;
pub(crate) mod rows;
pub(crate) mod search_text;
mod stats;
pub(crate) mod tables;
pub(crate) mod types;
mod version_watch;
mod view_rights;
pub(crate) mod views;
pub(crate) mod visible;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use rusqlite::config::DbConfig;
use tokio::sync::Semaphore;

pub(crate) use change::CatalogChange;
pub(crate) use listing::NameMatch;
pub use lock::{FolderServer, folder_server};
pub(crate) use names::name_key;
pub(crate) use objects::{ObjectText, object_count, object_texts, pending_texts, table_ids};
pub(crate) use pending::ObjectKind;
pub use policies::PolicyVersion;
pub(crate) use relations::table_infos;
pub use search_text::table_text;
pub(crate) use view_rights::known_to;
pub use view_rights::{ViewReferences, read_views_with};
pub(crate) use visible::VisibleObjects;

use crate::connection::{Access, CACHED_STATEMENTS, DatabaseFault, StoreConnection};
use crate::error::{CatalogError, Result};
use crate::model::{CatalogVersion, SnapshotId};
use crate::policy::{PolicySet, Rights};
use crate::principal::Principal;
use pending::Committed;
use version_watch::VersionWatch;

/// The catalog's file in a data folder.
pub(crate) const CATALOG_FILE: &str = "catalog.sqlite";
/// The folder of managed tables' files in a data folder: the lake's `DATA_PATH`.
pub(crate) const DATA_FOLDER: &str = "data";
/// How long to wait for a folder in use: its holder may be about to end.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a statement waits for DuckDB's write lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Reader connections, and so reads at one time.
const READERS: usize = 8;
/// Pages in the log at which a commit copies them to the database. Successive commits touch mostly the same pages, so
/// copying them rarely writes far less; reading through a log of this size costs next to nothing.
const CHECKPOINT_PAGES: i64 = 8_192;
/// Page cache of one reader, in KiB.
const READER_CACHE_KIB: i64 = 16 << 10;

/// Returns whether a folder holds a catalog already.
pub fn holds_catalog(data_dir: &Path) -> bool {
    data_dir.join(CATALOG_FILE).is_file()
}

/// Receives what a commit means for the schema index. Called on a blocking thread, must be quick.
pub(crate) type CommitListener = Box<dyn Fn(Committed) + Send + Sync>;

/// The open store. All methods may be called from any task.
pub(crate) struct Store {
    data_dir: PathBuf,
    readers: Arc<ReaderPool>,
    writer: Arc<tokio::sync::Mutex<Option<StoreConnection>>>,
    on_commit: Arc<OnceLock<CommitListener>>,
    lock: Mutex<Option<lock::FolderLock>>,
    policies: Arc<RwLock<Arc<PolicySet>>>,
    watch: Arc<VersionWatch>,
}

/// The newest state of the catalog inside one read transaction.
pub(crate) struct SnapshotView<'a> {
    /// The connection; its transaction is open.
    pub(crate) connection: &'a StoreConnection,
    /// The snapshot to read at.
    pub(crate) snapshot: SnapshotId,
    /// The policy that holds.
    pub(crate) policies: Arc<PolicySet>,
}

impl SnapshotView<'_> {
    /// What names resolve by in this transaction.
    pub(crate) fn version(&self) -> CatalogVersion {
        CatalogVersion { snapshot: self.snapshot, policies: self.policies.version }
    }

    /// What a caller may do.
    pub(crate) fn rights<'r>(&'r self, who: &'r Principal) -> Rights<'r> {
        Rights::new(who, &self.policies)
    }
}

impl Store {
    /// Opens or creates the store of a data folder and takes the folder's lock. `data_path` is where the lake's files are to lie.
    pub(crate) async fn open(data_dir: &Path, data_path: Option<String>) -> Result<Self> {
        let io_error = |source| CatalogError::Io { path: data_dir.to_path_buf(), source };
        tokio::fs::create_dir_all(data_dir.join(DATA_FOLDER)).await.map_err(io_error)?;
        let data_dir = tokio::fs::canonicalize(data_dir).await.map_err(io_error)?;
        let lock = acquired_lock(&data_dir).await?;
        let folder = data_dir.clone();
        let writer = on_blocking_thread(move || {
            let file = folder.join(CATALOG_FILE);
            intact::require_whole_file(&file)?;
            let writer = connect(&file)?;
            migrations::prepare(&writer, &folder, data_path.as_deref()).map_err(|error| named(&file, error))?;
            lock::sync_folder(&folder)?;
            let policies = policies::newest(&writer)?;
            Ok((writer, policies))
        })
        .await?;
        let (writer, policies) = writer;
        Ok(Self {
            readers: Arc::new(ReaderPool::new(data_dir.join(CATALOG_FILE))),
            data_dir,
            writer: Arc::new(tokio::sync::Mutex::new(Some(writer))),
            on_commit: Arc::new(OnceLock::new()),
            lock: Mutex::new(Some(lock)),
            policies: Arc::new(RwLock::new(Arc::new(policies))),
            watch: Arc::default(),
        })
    }

    /// The data folder, absolute.
    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Writes to the folder's lock where its server can be reached.
    pub(crate) fn announce(&self, server: &FolderServer) -> Result<()> {
        self.lock.lock().as_ref().map_or(Ok(()), |lock| lock.announce(server))
    }

    /// Sets the listener of commits. Only the first call has an effect.
    pub(crate) fn on_commit(&self, listener: CommitListener) {
        if self.on_commit.set(listener).is_err() {
            tracing::warn!("the catalog store already has a commit listener");
        }
    }

    /// The policy that holds.
    pub(crate) fn policies(&self) -> Arc<PolicySet> {
        Arc::clone(&self.policies.read())
    }

    /// Runs `f`, which writes a version of the policy, in a write transaction. The version holds before this returns.
    pub(crate) async fn write_policies<F>(&self, f: F) -> Result<Arc<PolicySet>>
    where
        F: FnOnce(&StoreConnection) -> Result<PolicySet> + Send + 'static,
    {
        let changed = Arc::new(self.write_rows(f).await?);
        let mut known = self.policies.write();
        // Of two changes the later one stays, whichever comes here first.
        if known.version < changed.version {
            *known = Arc::clone(&changed);
        }
        Ok(changed)
    }

    /// Runs `f` in a read transaction, on a blocking thread.
    pub(crate) async fn read<T, F>(&self, f: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&StoreConnection) -> Result<T> + Send + 'static,
    {
        let readers = Arc::clone(&self.readers);
        let permit = Arc::clone(&readers.permits).acquire_owned().await.map_err(|_| closed())?;
        on_blocking_thread(move || {
            let _permit = permit;
            readers.with(f)
        })
        .await
    }

    /// Returns the version of the newest snapshot, what DuckDB committed included.
    pub(crate) async fn version(&self) -> Result<CatalogVersion> {
        if let Some(version) = self.watch.unchanged() {
            return Ok(version);
        }
        let permit = Arc::clone(&self.readers.permits).acquire_owned().await.map_err(|_| closed())?;
        let (watch, readers, policies) =
            (Arc::clone(&self.watch), Arc::clone(&self.readers), Arc::clone(&self.policies));
        let read = on_blocking_thread(move || {
            let _permit = permit;
            watch.read(&readers.file, &policies)
        });
        match read.await {
            Ok(Some(version)) => Ok(version),
            // Something is to be absorbed, or the file is in use, which is waited for.
            Ok(None) | Err(_) => self.view(|view| Ok(view.version())).await,
        }
    }

    /// Runs `f` at the newest snapshot, what DuckDB committed included.
    pub(crate) async fn view<T, F>(&self, f: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&SnapshotView<'_>) -> Result<T> + Send + 'static,
    {
        let known = Arc::clone(&self.policies);
        let attempt = self
            .read(move |connection| {
                let snapshot = objects::absorbed_snapshot(connection)?;
                if change::newest_snapshot(connection)?.id != snapshot {
                    return Ok(Err(f));
                }
                f(&SnapshotView { connection, snapshot, policies: policies_in_force(connection, &known)? }).map(Ok)
            })
            .await?;
        match attempt {
            Ok(done) => Ok(done),
            Err(f) => {
                self.write(|_| Ok(())).await?;
                let known = Arc::clone(&self.policies);
                self.read(move |connection| {
                    let snapshot = objects::absorbed_snapshot(connection)?;
                    f(&SnapshotView { connection, snapshot, policies: policies_in_force(connection, &known)? })
                })
                .await
            }
        }
    }

    /// Runs `f` in a write transaction of the catalog: what it records becomes one snapshot. Durable when it returns.
    pub(crate) async fn write<T, F>(&self, f: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut CatalogChange<'_>) -> Result<T> + Send + 'static,
    {
        self.transact(move |connection| {
            let mut change = CatalogChange::begin(connection)?;
            objects::absorb(&mut change)?;
            let result = f(&mut change)?;
            Ok((result, change.finish()?))
        })
        .await
    }

    /// Runs `f` in a write transaction that touches only tables of ours and makes no snapshot.
    pub(crate) async fn write_rows<T, F>(&self, f: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&StoreConnection) -> Result<T> + Send + 'static,
    {
        self.transact(move |connection| Ok((f(connection)?, Committed::default()))).await
    }

    /// The same at the newest snapshot, what DuckDB committed included.
    pub(crate) async fn write_ours<T, F>(&self, f: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&SnapshotView<'_>) -> Result<T> + Send + 'static,
    {
        self.view(|_| Ok(())).await?;
        let known = Arc::clone(&self.policies);
        self.write_rows(move |connection| {
            let snapshot = objects::absorbed_snapshot(connection)?;
            f(&SnapshotView { connection, snapshot, policies: policies_in_force(connection, &known)? })
        })
        .await
    }

    /// Calls the listener on the blocking thread, so that a commit reaches it even when the caller goes away.
    async fn transact<T, F>(&self, f: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&StoreConnection) -> Result<(T, Committed)> + Send + 'static,
    {
        let mut writer = Arc::clone(&self.writer).lock_owned().await;
        let on_commit = Arc::clone(&self.on_commit);
        let file = self.data_dir.join(CATALOG_FILE);
        on_blocking_thread(move || {
            let connection = writer.as_mut().ok_or_else(closed)?;
            let run = || {
                let transaction = connection.begin(Access::Write)?;
                let result = f(&transaction)?;
                transaction.commit()?;
                Ok(result)
            };
            let (result, committed) = run().map_err(|error| named(&file, error))?;
            if let (Some(listener), false) = (on_commit.get(), committed.is_empty()) {
                listener(committed);
            }
            Ok(result)
        })
        .await
    }

    /// Checkpoints, closes the connections and releases the folder. Later calls of other methods fail.
    pub(crate) async fn close(&self) -> Result<()> {
        self.readers.permits.close();
        let mut writer = Arc::clone(&self.writer).lock_owned().await;
        let (readers, watch) = (Arc::clone(&self.readers), Arc::clone(&self.watch));
        on_blocking_thread(move || {
            readers.idle.lock().clear();
            watch.close();
            if let Some(connection) = writer.take() {
                // A reader of another process may hold the log back; what is in it is durable all the same.
                let _busy: i64 = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
                connection.close()?;
            }
            Ok(())
        })
        .await?;
        drop(self.lock.lock().take());
        Ok(())
    }
}

/// Returns the policy of the snapshot that a connection reads, which follows names that DuckDB changed, and keeps it where it is
/// newer than the one that is known.
fn policies_in_force(connection: &StoreConnection, known: &RwLock<Arc<PolicySet>>) -> Result<Arc<PolicySet>> {
    let held = Arc::clone(&known.read());
    if policies::newest_version(connection)? == held.version {
        return Ok(held);
    }
    let found = Arc::new(policies::newest(connection)?);
    let mut known = known.write();
    if known.version < found.version {
        *known = Arc::clone(&found);
    }
    Ok(found)
}

/// Reader connections, opened when first needed.
struct ReaderPool {
    file: PathBuf,
    idle: Mutex<Vec<StoreConnection>>,
    permits: Arc<Semaphore>,
}

impl ReaderPool {
    fn new(file: PathBuf) -> Self {
        Self { file, idle: Mutex::new(Vec::new()), permits: Arc::new(Semaphore::new(READERS)) }
    }

    fn with<T>(&self, f: impl FnOnce(&StoreConnection) -> Result<T>) -> Result<T> {
        let pooled = self.idle.lock().pop();
        let connection = match pooled {
            Some(connection) => connection,
            None => connect_reader(&self.file)?,
        };
        let transaction = connection.begin(Access::Read)?;
        let result = f(&transaction).map_err(|error| named(&self.file, error));
        transaction.end()?;
        self.idle.lock().push(connection);
        result
    }
}

fn connect(file: &Path) -> Result<StoreConnection> {
    let open = || -> Result<StoreConnection> {
        let connection = StoreConnection::open_file(file)?;
        connection.sqlite().busy_timeout(BUSY_TIMEOUT)?;
        connection.sqlite().pragma_update(None, "journal_mode", "WAL")?;
        connection.sqlite().pragma_update(None, "synchronous", "FULL")?;
        connection.sqlite().pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        configure(&connection)?;
        Ok(connection)
    };
    open().map_err(|error| named(file, error))
}

fn connect_reader(file: &Path) -> Result<StoreConnection> {
    let connection = StoreConnection::open_file(file)?;
    connection.sqlite().busy_timeout(BUSY_TIMEOUT)?;
    connection.sqlite().pragma_update(None, "query_only", true)?;
    connection.sqlite().pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    configure(&connection)?;
    Ok(connection)
}

fn configure(connection: &StoreConnection) -> Result<()> {
    connection.sqlite().set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    // Otherwise plans that may depend on bound values, such as any with a bound LIMIT, are prepared again for each
    // execution, which costs more than running them.
    connection.sqlite().set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Translates SQLite's errors of a damaged or locked file.
fn named(file: &Path, error: CatalogError) -> CatalogError {
    let CatalogError::Store(source) = error else { return error };
    let path = file.to_path_buf();
    match source.fault() {
        DatabaseFault::Damaged => CatalogError::Corrupt { path, detail: source.to_string() },
        DatabaseFault::Locked => CatalogError::Busy { path },
        DatabaseFault::Other => CatalogError::Store(source),
    }
}

pub(crate) fn closed() -> CatalogError {
    CatalogError::Internal("the catalog is closed".into())
}

/// Acquires the folder's lock, waiting a moment: a process (or a catalog of this one) that is ending may still hold it.
async fn acquired_lock(data_dir: &Path) -> Result<lock::FolderLock> {
    const APART: Duration = Duration::from_millis(20);
    let deadline = tokio::time::Instant::now() + LOCK_TIMEOUT;
    loop {
        let folder = data_dir.to_path_buf();
        match on_blocking_thread(move || lock::FolderLock::acquire(&folder)).await {
            Err(CatalogError::InUse { .. }) if tokio::time::Instant::now() < deadline => {
                tokio::time::sleep(APART).await;
            }
            outcome => return outcome,
        }
    }
}

async fn on_blocking_thread<T: Send + 'static>(f: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(f).await {
        Ok(result) => result,
        Err(error) => Err(CatalogError::Internal(format!("a catalog thread ended early: {error}"))),
    }
}
