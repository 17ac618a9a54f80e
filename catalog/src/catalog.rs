//! The catalog of one data folder: opening and closing it, and a handle for each concern.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::FutureExt;

use crate::audit::AuditLog;
use crate::backup::{self, BackupSummary};
use crate::connection::PostgresServer;
use crate::conversations::{CatalogConversations, CatalogFiles, CatalogItems, CatalogPendingCalls};
use crate::databases::CatalogDatabases;
use crate::error::{CatalogError, Result};
use crate::external_users::CatalogExternalUsers;
use crate::feedback::CatalogFeedback;
use crate::graph_models::CatalogGraphModels;
use crate::index::embed::Embedder;
use crate::index::{FolderShelf, INDEX_SHELF, IndexShelf, SchemaIndex, SharedIndex};
use crate::integrity::{self, FolderCheck, Orphan};
use crate::keys::CatalogKeys;
use crate::knowledge::{CatalogKnowledge, KnowledgeCache};
use crate::leases::{CatalogLeases, HeldLeases, WorkLease};
use crate::measurements::CatalogMeasurements;
use crate::members::{self, CatalogMembers, MemberWatch};
use crate::model::{LakeLocation, SnapshotId};
use crate::other_servers::OtherServers;
use crate::policies::CatalogPolicies;
use crate::progress::{NoProgress, Progress};
use crate::relationships::CatalogRelationships;
use crate::retention::{self, ExpiredSnapshots, Purged};
use crate::runs::CatalogRuns;
use crate::search::CatalogSearch;
use crate::store::rows::time_from_micros;
use crate::store::{FolderServer, Store, lake_location};
use crate::tables::CatalogTables;
use crate::tokens::{CatalogTokens, TokenRegistry};
use crate::values::CatalogValues;
use crate::vector_indexes::{CatalogVectorIndexes, VectorIndexRegistry};

/// The folder of the schema index in the data folder.
const INDEX_FOLDER: &str = "index";

/// How to open a catalog.
#[derive(Clone)]
pub struct CatalogOptions {
    /// The data folder; created when absent.
    pub data_dir: PathBuf,
    /// The PostgreSQL database that holds the catalog, `postgres://user:password@host/database`, which other servers may share.
    /// `None`: a file of the data folder.
    pub url: Option<String>,
    /// The URL below which the files of managed tables are to lie. `None`: where they do, in the data folder where it is new.
    pub data_path: Option<String>,
    /// Turns strings into vectors. `None` leaves search to names and BM25.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Reranks the best hundred tables of a search, where `embedder` is fast and less precise. `None` for no reranking.
    pub reranker: Option<Arc<dyn Embedder>>,
    /// Receives the progress of long work (index rebuilds).
    pub progress: Arc<dyn Progress>,
    /// Where servers that share a catalog lay down the files of their schema index for one another, by where the lake's files lie.
    /// `None`, and where it gives none for a URL: each server keeps an index of its own. A folder needs no such place.
    pub index_shelf: Option<ShelfOf>,
}

/// Finds the shelf of a lake whose files lie in an object store.
pub type ShelfOf = Arc<dyn Fn(&LakeLocation) -> Option<Arc<dyn IndexShelf>> + Send + Sync>;

impl CatalogOptions {
    /// A data folder without embedder, reranker and progress.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            url: None,
            data_path: None,
            embedder: None,
            reranker: None,
            progress: Arc::new(NoProgress),
            index_shelf: None,
        }
    }
}

/// The catalog of one data folder. Cheap to share behind an `Arc`; every method may be called from any task.
///
/// Only one Querent process may hold a data folder; DuckDB may attach `catalog.sqlite` beside it. A catalog on a server is
/// shared by processes with a data folder each.
pub struct Catalog {
    // Dropped before the store, which its tasks use.
    index: SchemaIndex,
    knowledge: Arc<KnowledgeCache>,
    tokens: Arc<TokenRegistry>,
    audit: AuditLog,
    vector_indexes: Arc<VectorIndexRegistry>,
    others: OtherServers,
    leases: Arc<HeldLeases>,
    members: Arc<MemberWatch>,
    store: Arc<Store>,
}

impl Catalog {
    /// Opens or creates the data folder. Errors: `data_folder_in_use`, `newer_format`, `catalog_corrupt`, `io_error`;
    /// `invalid_object` where its tables have files that lie elsewhere than at `data_path`.
    pub async fn open(options: CatalogOptions) -> Result<Arc<Self>> {
        let server = options.url.as_deref().map(PostgresServer::parse).transpose();
        let server = server.map_err(|reason| CatalogError::InvalidObject { what: "catalog URL", reason })?;
        let store = Arc::new(Store::open(&options.data_dir, server, options.data_path).await?);
        let folder = store.data_dir().join(INDEX_FOLDER);
        let vector_indexes = VectorIndexRegistry::load(&store, Arc::clone(&options.progress)).await?;
        let leases = Arc::<HeldLeases>::default();
        let shared = shared_index(&store, &leases, options.index_shelf.as_ref()).await?;
        let CatalogOptions { embedder, reranker, progress, .. } = options;
        let index = SchemaIndex::open(&store, folder, embedder, reranker, progress, shared).boxed().await?;
        let tokens = Arc::new(TokenRegistry::load(&store).await?);
        let knowledge = Arc::<KnowledgeCache>::default();
        let audit = AuditLog::new(store.data_dir());
        let watch = Arc::<MemberWatch>::default();
        members::forget_lost(&store).await?;
        watch.sign(&store).await?;
        let others = OtherServers::follow(&store, &tokens, &knowledge, &watch);
        Ok(Arc::new(Self { index, knowledge, tokens, audit, vector_indexes, others, leases, members: watch, store }))
    }

    /// Returns whether a shared catalog could be read a second ago. A catalog of this server's own always can.
    pub fn is_reachable(&self) -> bool {
        self.others.is_reachable()
    }

    /// Returns the room that the disk of the data folder has left, in bytes; `None` where the system does not say.
    pub fn free_disk_bytes(&self) -> Option<u64> {
        fs4::available_space(self.data_dir()).ok()
    }

    /// Stops background work, gives its leases back, drains the index, checkpoints, releases the lock. Dropping the
    /// catalog without closing it loses nothing.
    pub async fn close(&self) -> Result<()> {
        self.others.close().await;
        self.index.close().boxed().await;
        self.leases().close().await;
        let audited = self.audit.close().await;
        self.store.close().await?;
        audited
    }

    /// The data folder, absolute.
    pub fn data_dir(&self) -> &Path {
        self.store.data_dir()
    }

    /// Where the files of managed tables lie.
    pub async fn location(&self) -> Result<LakeLocation> {
        self.store.read(lake_location::load).await
    }

    /// Returns the time by the one clock that all servers of the catalog have: the database's, or this machine's where the
    /// catalog is in its data folder. What is compared with what another server wrote is measured by it.
    pub async fn now(&self) -> Result<DateTime<Utc>> {
        if !self.store.is_shared() {
            return Ok(Utc::now());
        }
        let micros = self.store.read(|connection| Ok(connection.now_micros()?)).await?;
        time_from_micros(micros).ok_or_else(|| CatalogError::Internal(format!("the database's clock says {micros}")))
    }

    /// The newest snapshot.
    pub async fn snapshot(&self) -> Result<SnapshotId> {
        self.store.view(|view| Ok(view.snapshot)).await
    }

    /// Checks whether the folder is whole; with `remove_orphans`, removes files that no row names and that have not changed for
    /// so long.
    pub async fn check(&self, remove_orphans: Option<Duration>) -> Result<FolderCheck> {
        let mut check = integrity::check(&self.store, self.now().await?).await?;
        if let Some(grace) = remove_orphans {
            check.removed = self.remove_orphans(grace).await?.len() as u64;
        }
        if let Some(fault) = self.audit.verify_if_there().await? {
            check.faults.push(format!("the audit log: {fault}"));
        }
        check.faults.extend(self.vector_indexes().faults().await);
        Ok(check)
    }

    /// Reads the files of managed tables, and says in `check` which are not as they were written. Files that do not say how they
    /// were, as those of DuckDB, are left out, and so are those in an object store.
    pub async fn check_contents(&self, check: &mut FolderCheck) -> Result<()> {
        integrity::check_contents(&self.store, check).await
    }

    /// Removes files that no row names and that have not changed for `grace`: what a write left that never committed.
    pub async fn remove_orphans(&self, grace: Duration) -> Result<Vec<Orphan>> {
        integrity::remove_orphans(&self.store, grace, self.now().await?).await
    }

    /// Checks a folder whose files lie in an object store, which has `listed`. What is in the files is not looked at.
    pub async fn check_listed(&self, listed: Vec<Orphan>) -> Result<FolderCheck> {
        let mut check = integrity::check_listed(&self.store, listed).await?;
        if let Some(fault) = self.audit.verify_if_there().await? {
            check.faults.push(format!("the audit log: {fault}"));
        }
        Ok(check)
    }

    /// Returns those of `listed` that no row names. They are listed before this is called, so that what is committed meanwhile
    /// is not among them.
    pub async fn unnamed(&self, listed: Vec<Orphan>) -> Result<Vec<Orphan>> {
        integrity::unnamed(&self.store, listed).await
    }

    /// Copies the folder to another one that is empty or not there, while it is in use. Errors: `invalid_object`, `io_error`.
    pub async fn back_up(&self, target: &Path) -> Result<BackupSummary> {
        if self.store.is_shared() {
            let reason =
                "the catalog is on a server: make a backup of its database (pg_dump) and of the files of its tables";
            return Err(CatalogError::InvalidObject { what: "backup", reason: reason.to_owned() });
        }
        self.audit.flush().await?;
        backup::back_up(&self.store, target).await
    }

    /// Deletes the runs that ended before `time`, the conversations that have not been used since and have no run left,
    /// and the files uploaded before. What is still running stays, its conversation too. `lease` is that for
    /// [`LeasedWork::Retention`](crate::LeasedWork::Retention). Errors: `conflict` where another server has it by now.
    pub async fn purge_before(&self, time: DateTime<Utc>, lease: &WorkLease) -> Result<Purged> {
        retention::purge_before(&self.store, time, lease).await
    }

    /// Forgets the snapshots that were superseded before `time`, with what only they see: dropped tables, and rows of files, which
    /// are then the caller's to remove. The newest snapshot stays. `lease` is that for
    /// [`LeasedWork::Snapshots`](crate::LeasedWork::Snapshots). Errors: `conflict` where another server has it by now.
    pub async fn expire_snapshots(&self, time: DateTime<Utc>, lease: &WorkLease) -> Result<ExpiredSnapshots> {
        retention::expire_snapshots(&self.store, time, lease).await
    }
}

/// Handles, one for each concern. Each borrows what it needs of the catalog.
impl Catalog {
    /// The audit log.
    pub fn audit(&self) -> &AuditLog {
        &self.audit
    }

    /// Databases.
    pub fn databases(&self) -> CatalogDatabases<'_> {
        CatalogDatabases { store: &self.store }
    }

    /// Work that one server does for all that share the catalog.
    pub fn leases(&self) -> CatalogLeases<'_> {
        CatalogLeases { store: &self.store, held: &self.leases }
    }

    /// Lets the command line find the server that has this data folder open: [`folder_server`](crate::folder_server).
    /// Writes a line of a small file.
    pub fn announce(&self, server: &FolderServer) -> Result<()> {
        self.store.announce(server)
    }

    /// Tables, external tables and views.
    pub fn tables(&self) -> CatalogTables<'_> {
        CatalogTables { store: &self.store, index: &self.index }
    }

    /// Vector indexes of managed tables' columns.
    pub fn vector_indexes(&self) -> CatalogVectorIndexes<'_> {
        CatalogVectorIndexes { registry: &self.vector_indexes }
    }

    /// Finding tables and columns.
    pub fn search(&self) -> CatalogSearch<'_> {
        CatalogSearch { store: &self.store, index: &self.index, knowledge: &self.knowledge }
    }

    /// Verified queries and metrics.
    pub fn knowledge(&self) -> CatalogKnowledge<'_> {
        CatalogKnowledge { store: &self.store, index: &self.index, cache: &self.knowledge }
    }

    /// How graphs are made of tables.
    pub fn graph_models(&self) -> CatalogGraphModels<'_> {
        CatalogGraphModels { store: &self.store, index: &self.index }
    }

    /// What people say of runs, and the verified queries that this proposes.
    pub fn feedback(&self) -> CatalogFeedback<'_> {
        CatalogFeedback { store: &self.store }
    }

    /// Primary keys, unique constraints and foreign keys.
    pub fn keys(&self) -> CatalogKeys<'_> {
        CatalogKeys { store: &self.store }
    }

    /// How tables join.
    pub fn relationships(&self) -> CatalogRelationships<'_> {
        CatalogRelationships { store: &self.store }
    }

    /// What columns hold.
    pub fn values(&self) -> CatalogValues<'_> {
        CatalogValues { store: &self.store }
    }

    /// The servers that share the catalog.
    pub fn members(&self) -> CatalogMembers<'_> {
        CatalogMembers { store: &self.store, watch: &self.members }
    }

    /// Agent runs.
    pub fn runs(&self) -> CatalogRuns<'_> {
        CatalogRuns { store: &self.store }
    }

    /// Conversations.
    pub fn conversations(&self) -> CatalogConversations<'_> {
        CatalogConversations { store: &self.store }
    }

    /// Items of runs and conversations.
    pub fn items(&self) -> CatalogItems<'_> {
        CatalogItems { store: &self.store }
    }

    /// Tool calls that wait for a decision.
    pub fn pending_calls(&self) -> CatalogPendingCalls<'_> {
        CatalogPendingCalls { store: &self.store }
    }

    /// Uploaded files.
    pub fn files(&self) -> CatalogFiles<'_> {
        CatalogFiles { store: &self.store }
    }

    /// Users of applications that embed this server.
    pub fn external_users(&self) -> CatalogExternalUsers<'_> {
        CatalogExternalUsers { store: &self.store }
    }

    /// Grants, row policies and masks.
    pub fn policies(&self) -> CatalogPolicies<'_> {
        CatalogPolicies { store: &self.store }
    }

    /// Tokens of callers.
    pub fn tokens(&self) -> CatalogTokens<'_> {
        CatalogTokens { store: &self.store, registry: &self.tokens }
    }

    /// What benchmarks and tests measure searches by.
    pub fn measurements(&self) -> CatalogMeasurements<'_> {
        CatalogMeasurements { search: self.search(), index: &self.index }
    }
}

/// Returns what the servers that share a catalog have their index in common by; `None` where none shares it, and where this one
/// does not reach the place of the lake's files.
async fn shared_index(
    store: &Store,
    leases: &Arc<HeldLeases>,
    shelf_of: Option<&ShelfOf>,
) -> Result<Option<SharedIndex>> {
    if !store.is_shared() {
        return Ok(None);
    }
    let location = store.read(lake_location::load).await?;
    let shelf = match location.is_remote() {
        true => shelf_of.and_then(|shelf_of| shelf_of(&location)),
        false => {
            let folder = PathBuf::from(&location.data_path);
            let is_there = tokio::fs::try_exists(&folder).await.unwrap_or(false);
            is_there.then(|| Arc::new(FolderShelf::new(folder.join(INDEX_SHELF))) as Arc<dyn IndexShelf>)
        }
    };
    Ok(shelf.map(|shelf| SharedIndex { shelf, leases: Arc::clone(leases) }))
}
