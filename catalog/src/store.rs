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
mod change_log;
pub(crate) mod column_names;
pub(crate) mod columns;
pub(crate) mod comments;
pub(crate) mod databases;
mod ddl;
mod deletes;
pub(crate) mod dependents;
pub(crate) mod distinct_values;
pub(crate) mod expiry;
pub(crate) mod files;
mod high_water_mark;
mod inlined;
mod intact;
mod key_renames;
pub(crate) mod keys;
pub(crate) mod lake_files;
pub(crate) mod lake_location;
pub(crate) mod leases;
pub(crate) mod listing;
mod lock;
mod lock_waits;
mod migrations;
pub(crate) mod names;
mod object_rows;
pub(crate) mod objects;
pub(crate) mod ownership;
pub(crate) mod pending;
mod place;
pub(crate) mod policies;
mod reader_pool;
pub(crate) mod relations;
pub(crate) mod resolve;
pub(crate) mod row_changes;
pub(crate) mod rows;
pub(crate) mod search_text;
#[cfg(test)]
mod simulation;
pub(crate) mod sort_orders;
mod stats;
pub(crate) mod tables;
pub(crate) mod types;
mod version_watch;
mod view_rights;
pub(crate) mod views;
pub(crate) mod visible;
mod warm_reads;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::{Mutex, RwLock};

pub(crate) use change::CatalogChange;
pub(crate) use change_log::{index_position, index_reach, set_index_reach};
pub use columns::holds_uuids;
pub(crate) use listing::NameMatch;
pub use lock::{FolderServer, HeldFolder, folder_server};
pub(crate) use names::name_key;
pub(crate) use objects::{ObjectText, object_count, object_texts, table_ids};
pub(crate) use pending::ObjectKind;
pub(crate) use place::CatalogPlace;
pub use policies::PolicyVersion;
pub(crate) use relations::table_infos;
pub use search_text::table_text;
pub use view_rights::{ViewReferences, read_views_with};
pub(crate) use view_rights::{known_of, known_to, may_know_named, tables_named};
pub(crate) use visible::VisibleObjects;

use crate::connection::{Access, DatabaseError, DatabaseFault, PostgresServer, StoreConnection};
use crate::error::{CatalogError, Result};
use crate::model::{CatalogVersion, SnapshotId};
use crate::policy::{PolicySet, Rights};
use crate::principal::Principal;
use change_log::ChangeLog;
use high_water_mark::HighWaterMark;
use intact::OpenedFile;
use lock_waits::LockWaits;
use pending::{Committed, PendingObject};
use reader_pool::ReaderPool;
use version_watch::VersionWatch;
use warm_reads::WarmReads;

/// The catalog's file in a data folder.
pub(crate) const CATALOG_FILE: &str = "catalog.sqlite";
/// The folder of managed tables' files in a data folder: the lake's `DATA_PATH`.
pub(crate) const DATA_FOLDER: &str = "data";

/// Returns whether a folder holds a catalog already.
pub fn holds_catalog(data_dir: &Path) -> bool {
    data_dir.join(CATALOG_FILE).is_file()
}

/// Receives what a commit means for the schema index. Called on a blocking thread, must be quick.
pub(crate) type CommitListener = Box<dyn Fn(Committed) + Send + Sync>;

/// The open store. All methods may be called from any task.
pub(crate) struct Store {
    data_dir: PathBuf,
    place: CatalogPlace,
    /// Where the catalog is a file.
    file: Option<Arc<OpenedFile>>,
    /// The same.
    mark: Option<Arc<HighWaterMark>>,
    /// Where other servers share the catalog.
    log: Option<Arc<ChangeLog>>,
    /// By which they know this one.
    member: Option<String>,
    readers: Arc<ReaderPool>,
    writer: Arc<tokio::sync::Mutex<Option<StoreConnection>>>,
    writer_waits: Arc<LockWaits>,
    /// For rows that only this server writes; opened when first needed.
    own_writer: Arc<tokio::sync::Mutex<Option<StoreConnection>>>,
    own_writer_waits: Arc<LockWaits>,
    on_commit: Arc<OnceLock<CommitListener>>,
    lock: Mutex<Option<lock::FolderLock>>,
    policies: Arc<RwLock<Arc<PolicySet>>>,
    watch: Arc<VersionWatch>,
    /// Where other servers share the catalog.
    warm: Option<Arc<WarmReads>>,
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
    /// Opens or creates the store of a data folder, or the one on a server, and takes the folder's lock. `data_path` is where the
    /// lake's files are to lie.
    pub(crate) async fn open(
        data_dir: &Path,
        server: Option<PostgresServer>,
        data_path: Option<String>,
    ) -> Result<Self> {
        let io_error = |source| CatalogError::of_file(data_dir, source);
        let is_new = lock::is_unused(data_dir).await;
        tokio::fs::create_dir_all(data_dir.join(DATA_FOLDER)).await.map_err(io_error)?;
        let data_dir = tokio::fs::canonicalize(data_dir).await.map_err(io_error)?;
        if is_new {
            lock::keep_private(&data_dir).await;
        }
        let lock = lock::acquired_lock(&data_dir).await?;
        let place = match server {
            Some(server) => CatalogPlace::Server(Arc::new(server)),
            None => CatalogPlace::File(data_dir.join(CATALOG_FILE)),
        };
        let (folder, opened) = (data_dir.clone(), place.clone());
        let writer = on_blocking_thread(move || {
            if let CatalogPlace::File(file) = &opened {
                intact::require_whole_file(file)?;
            }
            let writer = opened.writer()?;
            migrations::prepare(&writer, &opened, &folder, data_path.as_deref())
                .map_err(|error| opened.named(error))?;
            lock::sync_folder(&folder)?;
            let (file, mark) = match &opened {
                CatalogPlace::File(file) => {
                    let newest = change::newest_snapshot(&writer)?.id;
                    let mark = HighWaterMark::open(file, migrations::catalog_id(&writer)?, newest)?;
                    (Some(Arc::new(OpenedFile::of(file)?)), Some(Arc::new(mark)))
                }
                CatalogPlace::Server(_) => (None, None),
            };
            let policies = policies::newest(&writer)?;
            let member = opened.is_shared().then(|| change_log::member_of(&folder)).transpose()?;
            let log = match &member {
                Some(member) => Some(Arc::new(ChangeLog::open(&folder, member, &writer)?)),
                None => None,
            };
            Ok((writer, file, mark, policies, member, log))
        })
        .await
        .map_err(CatalogError::of_opening)?;
        let (writer, file, mark, policies, member, log) = writer;
        let warm = place.is_shared().then(Arc::default);
        Ok(Self {
            readers: Arc::new(ReaderPool::new(place.clone())),
            data_dir,
            place,
            file,
            mark,
            log,
            member,
            writer: Arc::new(tokio::sync::Mutex::new(Some(writer))),
            writer_waits: Arc::default(),
            own_writer: Arc::default(),
            own_writer_waits: Arc::default(),
            on_commit: Arc::new(OnceLock::new()),
            lock: Mutex::new(Some(lock)),
            policies: Arc::new(RwLock::new(Arc::new(policies))),
            watch: Arc::default(),
            warm,
        })
    }

    /// The data folder, absolute.
    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Whether other servers may write to the catalog.
    pub(crate) fn is_shared(&self) -> bool {
        self.place.is_shared()
    }

    /// The id of this server among those that share the catalog; `None` where none does.
    pub(crate) fn member(&self) -> Option<&str> {
        self.member.as_deref()
    }

    /// Runs `f` over the rows that the schema index has yet to take in, and over its own state, on a blocking thread.
    pub(crate) async fn pending<T, F>(&self, f: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&StoreConnection) -> Result<T> + Send + 'static,
    {
        let Some(log) = self.log.clone() else { return self.read(f).await };
        on_blocking_thread(move || log.with(f)).await
    }

    /// As [`Store::pending`], where `f` writes.
    pub(crate) async fn write_pending<T, F>(&self, f: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&StoreConnection) -> Result<T> + Send + 'static,
    {
        let Some(log) = self.log.clone() else { return self.write_rows(f).await };
        on_blocking_thread(move || log.with(f)).await
    }

    /// The epoch of the index whose state may be written now ([`Store::write_index`]).
    pub(crate) async fn index_epoch(&self) -> Result<i64> {
        match self.is_shared() {
            true => self.pending(change_log::epoch).await,
            // The rows are those of the catalog itself: none is ever missed.
            false => Ok(0),
        }
    }

    /// As [`Store::write_pending`], where `f` writes the state of an index of an epoch. Errors: `index_error` where
    /// that index is to be built anew.
    pub(crate) async fn write_index<T, F>(&self, epoch: i64, f: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&StoreConnection) -> Result<T> + Send + 'static,
    {
        let is_shared = self.is_shared();
        self.write_pending(move |connection| {
            if is_shared {
                change_log::require_epoch(connection, epoch)?;
            }
            f(connection)
        })
        .await
    }

    /// At most `limit` pending objects after `after`, oldest first, with their texts.
    pub(crate) async fn pending_texts(&self, kind: ObjectKind, after: i64, limit: usize) -> Result<Vec<PendingObject>> {
        if self.log.is_none() {
            return self.view(move |view| objects::pending_texts(view, kind, after, limit)).await;
        }
        self.pending(move |local| match kind {
            ObjectKind::Table => pending::page(local, after, limit),
            ObjectKind::Column => pending::column_page(local, after, limit, true),
        })
        .await
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

    /// Runs `f`, which writes a version of the policy, in a write transaction at the newest snapshot. The version holds before
    /// this returns.
    pub(crate) async fn write_policies<F>(&self, f: F) -> Result<Arc<PolicySet>>
    where
        F: FnOnce(&SnapshotView<'_>) -> Result<PolicySet> + Send + 'static,
    {
        let changed = Arc::new(self.write_ours(f).await?);
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
        if let Some(warm) = &self.warm {
            return self.shared_version(warm).await;
        }
        if let Some(version) = self.watch.unchanged() {
            return Ok(version);
        }
        let permit = Arc::clone(&self.readers.permits).acquire_owned().await.map_err(|_| closed())?;
        let (watch, readers, policies) =
            (Arc::clone(&self.watch), Arc::clone(&self.readers), Arc::clone(&self.policies));
        let read = on_blocking_thread(move || {
            let _permit = permit;
            watch.read(&readers.place, &policies)
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
                self.write(|_| Ok(())).await.map_err(|error| match error {
                    // Who reads has asked for no change.
                    CatalogError::CommitInDoubt { source } => CatalogError::Unavailable { source: Arc::new(source) },
                    error => error,
                })?;
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

    /// Runs `f`, which writes rows that no other server writes, without waiting for those who write to the catalog.
    pub(crate) async fn write_own<T, F>(&self, f: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&StoreConnection) -> Result<T> + Send + 'static,
    {
        let since = Instant::now();
        let mut own = Arc::clone(&self.own_writer).lock_owned().await;
        if self.readers.permits.is_closed() {
            return Err(closed());
        }
        let (place, file, waits) = (self.place.clone(), self.file.clone(), Arc::clone(&self.own_writer_waits));
        on_blocking_thread(move || {
            file.map_or(Ok(()), |file| file.require_in_place())?;
            let connection = match &mut *own {
                Some(connection) => connection,
                unopened => unopened.insert(place.writer()?),
            };
            let run = || {
                let transaction = waits.begun(since, &place, connection, Access::Own)?;
                let result = f(&transaction)?;
                transaction.commit().map_err(commit_error)?;
                Ok(result)
            };
            run().map_err(|error| place.named(error))
        })
        .await
    }

    /// Calls the listener on the blocking thread, so that a commit reaches it even when the caller goes away.
    async fn transact<T, F>(&self, f: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&StoreConnection) -> Result<(T, Committed)> + Send + 'static,
    {
        let since = Instant::now();
        let mut writer = Arc::clone(&self.writer).lock_owned().await;
        let (on_commit, waits) = (Arc::clone(&self.on_commit), Arc::clone(&self.writer_waits));
        let (place, file, log) = (self.place.clone(), self.file.clone(), self.log.clone());
        let (warm, mark) = (self.warm.clone(), self.mark.clone());
        on_blocking_thread(move || {
            let connection = writer.as_mut().ok_or_else(closed)?;
            file.map_or(Ok(()), |file| file.require_in_place())?;
            let run = || {
                let transaction = waits.begun(since, &place, connection, Access::Write)?;
                let result = f(&transaction)?;
                transaction.commit().map_err(commit_error)?;
                Ok(result)
            };
            let (result, committed) = run().map_err(|error| place.named(error))?;
            if let (Some(mark), Some(snapshot)) = (mark, committed.snapshot) {
                mark.note(snapshot);
            }
            if let (Some(warm), Some(snapshot)) = (warm, committed.snapshot) {
                warm.note_written(snapshot, &committed.changes);
            }
            match log {
                None => hand_over(&on_commit, committed),
                // The index takes in what others committed before, too. What fails here is done by the next `follow`.
                Some(log) if !committed.is_empty() => match log.copy(connection) {
                    Ok(committed) => hand_over(&on_commit, committed),
                    Err(error) => tracing::warn!(%error, "the schema index does not hear of a change yet"),
                },
                Some(_) => {}
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
        let mut own = Arc::clone(&self.own_writer).lock_owned().await;
        on_blocking_thread(move || {
            drop(own.take());
            readers.close_idle();
            watch.close();
            if let Some(connection) = writer.take() {
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

fn hand_over(on_commit: &OnceLock<CommitListener>, committed: Committed) {
    if let (Some(listener), false) = (on_commit.get(), committed.is_empty()) {
        listener(committed);
    }
}

pub(crate) fn closed() -> CatalogError {
    CatalogError::Internal("the catalog is closed".into())
}

/// Names the error of a commit: where the server was lost before it said what came of it, nobody knows.
fn commit_error(error: DatabaseError) -> CatalogError {
    match error.fault() {
        DatabaseFault::Unreachable if !error.ended_transaction() => {
            tracing::warn!(%error, "the catalog's database was lost in the middle of a commit");
            CatalogError::CommitInDoubt { source: error }
        }
        DatabaseFault::Unreachable
        | DatabaseFault::Damaged
        | DatabaseFault::Locked
        | DatabaseFault::Full
        | DatabaseFault::Other => error.into(),
    }
}

async fn on_blocking_thread<T: Send + 'static>(f: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(f).await {
        Ok(result) => result,
        Err(error) => Err(CatalogError::Internal(format!("a catalog thread ended early: {error}"))),
    }
}
