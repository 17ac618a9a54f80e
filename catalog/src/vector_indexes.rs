//! Vector indexes of managed tables' columns: a Lance dataset each, below `vectors/` in the data folder, that finds the rows whose
//! vectors are near another one without reading them all.
//!
//! An index covers data files, which never change: what it says of one holds for every snapshot that has the file. Files
//! that it does not cover are the caller's to read, as are rows that were deleted meanwhile. So it may lag, fail or be
//! deleted without a wrong answer: `vectors/` is derived, and is built again from the tables.
//!
//! Definitions are held in memory, so that no statement asks the store whether there is one; the datasets are opened when
//! they are first searched.

mod dataset;
mod rows;
mod writer;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use ::lance::session::Session;
use chrono::{DateTime, Utc};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

pub use self::dataset::{NeighbourRow, OpenVectors, VectorNeighbours};
pub use self::rows::CoveredFile;
pub(crate) use self::rows::forget_built;
pub use self::writer::VectorIndexWriter;
use crate::error::{CatalogError, Result};
use crate::model::TableName;
use crate::principal::Principal;
use crate::progress::Progress;
use crate::store::{Store, closed, resolve};

/// The folder of the datasets in the data folder.
const FOLDER: &str = "vectors";
/// Cache sizes of all vector indexes together; Lance's own defaults are 6 GiB and 1 GiB.
const INDEX_CACHE_BYTES: usize = 256 << 20;
const METADATA_CACHE_BYTES: usize = 32 << 20;
/// What errors call one.
const WHAT: &str = "vector index";

/// By what rows are near each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VectorMetric {
    /// The angle between vectors.
    Cosine,
    /// The length of their difference.
    L2,
    /// The sum of the products of their numbers: the larger the nearer.
    Dot,
}

impl VectorMetric {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Cosine, Self::L2, Self::Dot];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cosine => "cosine",
            Self::L2 => "l2",
            Self::Dot => "dot",
        }
    }

    /// The metric of a name; also of those that DuckDB and pgvector have.
    pub fn named(name: &str) -> Option<Self> {
        match name.to_lowercase().as_str() {
            "cosine" | "vector_cosine_ops" => Some(Self::Cosine),
            "l2" | "l2sq" | "euclidean" | "vector_l2_ops" => Some(Self::L2),
            "dot" | "ip" | "inner_product" | "vector_ip_ops" => Some(Self::Dot),
            _ => None,
        }
    }
}

/// What `CREATE INDEX` says of a vector index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorIndexSpec {
    /// Its name, unique in the table's database without regard to case.
    pub name: String,
    /// The table's id.
    pub table_id: i64,
    /// The column's id.
    pub column_id: i64,
    /// By what rows are near.
    pub metric: VectorMetric,
    /// The numbers of a vector.
    pub dimension: usize,
    /// How many partitions a search reads; `None` for a number that fits most data.
    pub probes: Option<usize>,
}

/// A vector index as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorIndexInfo {
    /// Its id.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// The table.
    pub table: TableName,
    /// The column.
    pub column: String,
    /// By what rows are near.
    pub metric: VectorMetric,
    /// The numbers of a vector.
    pub dimension: usize,
    /// Rows of the files that it covers.
    pub indexed_rows: u64,
    /// The files that it covers.
    pub indexed_files: u64,
    /// Whether whoever lists it sees a part of the table only, and is not told how many rows there are.
    pub is_of_part: bool,
    /// Whether it could not be read and is yet to be built again.
    pub is_damaged: bool,
    /// When it was created.
    pub created_at: DateTime<Utc>,
}

/// The vector indexes of an open catalog.
pub(crate) struct VectorIndexRegistry {
    /// Weak, so that dropping the catalog releases the data folder.
    store: Weak<Store>,
    folder: PathBuf,
    session: Arc<Session>,
    progress: Arc<dyn Progress>,
    /// By table.
    current: RwLock<Arc<HashMap<i64, Vec<Arc<TableVectorIndex>>>>>,
    /// Notified when an index may lack rows.
    changed: Notify,
    /// Held while the definitions are taken in: of two, the later one must not be replaced by the earlier.
    reloading: tokio::sync::Mutex<()>,
}

/// One vector index.
pub struct TableVectorIndex {
    id: i64,
    spec: VectorIndexSpec,
    registry: Weak<VectorIndexRegistry>,
    /// The folder of its dataset below that of all, where it is built.
    dataset: Mutex<Option<String>>,
    /// What searches read; `None` until the first one.
    opened: tokio::sync::Mutex<Option<Arc<OpenVectors>>>,
    is_damaged: AtomicBool,
    /// Held by whoever writes.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl VectorIndexRegistry {
    /// Loads the definitions, and removes datasets that none of them names.
    pub(crate) async fn load(store: &Arc<Store>, progress: Arc<dyn Progress>) -> Result<Arc<Self>> {
        let registry = Arc::new(Self {
            store: Arc::downgrade(store),
            folder: store.data_dir().join(FOLDER),
            session: Arc::new(Session::new(INDEX_CACHE_BYTES, METADATA_CACHE_BYTES, Arc::default())),
            progress,
            current: RwLock::default(),
            changed: Notify::new(),
            reloading: tokio::sync::Mutex::default(),
        });
        registry.reload().await?;
        registry.sweep().await;
        registry.changed.notify_one();
        Ok(registry)
    }

    fn store(&self) -> Result<Arc<Store>> {
        self.store.upgrade().ok_or_else(closed)
    }

    /// Takes in the definitions as they are stored now. Datasets of those that are gone are removed.
    async fn reload(self: &Arc<Self>) -> Result<()> {
        let _turn = self.reloading.lock().await;
        let stored = self.store()?.read(rows::all).await?;
        let gone = {
            let mut current = self.current.write();
            let mut known: HashMap<i64, Arc<TableVectorIndex>> =
                current.values().flatten().map(|index| (index.id, Arc::clone(index))).collect();
            let mut by_table: HashMap<i64, Vec<Arc<TableVectorIndex>>> = HashMap::new();
            for (id, spec, folder) in stored {
                let index = known.remove(&id).unwrap_or_else(|| {
                    Arc::new(TableVectorIndex {
                        id,
                        spec,
                        registry: Arc::downgrade(self),
                        dataset: Mutex::default(),
                        opened: tokio::sync::Mutex::default(),
                        is_damaged: AtomicBool::default(),
                        turn: Arc::default(),
                    })
                });
                *index.dataset.lock() = folder;
                by_table.entry(index.spec.table_id).or_default().push(index);
            }
            *current = Arc::new(by_table);
            known
        };
        for index in gone.into_values() {
            let folder = index.dataset.lock().take();
            if let Some(folder) = folder {
                remove_folder(&self.folder.join(folder)).await;
            }
        }
        Ok(())
    }

    /// Removes datasets that a kill left.
    async fn sweep(&self) {
        let named: Vec<String> =
            self.current.read().values().flatten().filter_map(|index| index.dataset.lock().clone()).collect();
        // No folder: nothing to remove.
        let Ok(mut entries) = tokio::fs::read_dir(&self.folder).await else { return };
        while let Ok(Some(entry)) = entries.next_entry().await {
            if !named.iter().any(|name| entry.file_name().to_str() == Some(name)) {
                remove_folder(&entry.path()).await;
            }
        }
    }
}

impl TableVectorIndex {
    /// Its id.
    pub fn id(&self) -> i64 {
        self.id
    }

    /// What it was created as.
    pub fn spec(&self) -> &VectorIndexSpec {
        &self.spec
    }

    /// What searches read; `None` where it is not built, or damaged, and all files are to be read instead.
    pub async fn open(&self) -> Option<Arc<OpenVectors>> {
        if self.is_damaged() {
            return None;
        }
        let mut opened = self.opened.lock().await;
        if opened.is_none() {
            match self.open_stored().await {
                Ok(found) => *opened = found.map(Arc::new),
                Err(error) => {
                    drop(opened);
                    self.note_damage(None, &error).await;
                    return None;
                }
            }
        }
        opened.clone()
    }

    /// Whether it could not be read and is yet to be built again.
    pub fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Acquire)
    }

    /// Has it built again, since what was opened could not be read. Until then all files are read.
    pub async fn note_damage(&self, of: Option<&Arc<OpenVectors>>, error: &CatalogError) {
        let mut opened = self.opened.lock().await;
        // A search may have ended on what was replaced meanwhile.
        if of.is_some_and(|of| opened.as_ref().is_none_or(|opened| !Arc::ptr_eq(of, opened))) {
            return;
        }
        *opened = None;
        if !self.is_damaged.swap(true, Ordering::AcqRel) {
            let name = &self.spec.name;
            tracing::warn!(index = %name, %error, "a vector index cannot be read; searches are exact until it is built again");
        }
        self.ask_for_upkeep();
    }

    /// Has the background look whether it lacks rows.
    pub fn ask_for_upkeep(&self) {
        if let Some(registry) = self.registry.upgrade() {
            registry.changed.notify_one();
        }
    }

    async fn open_stored(&self) -> Result<Option<OpenVectors>> {
        let registry = self.registry.upgrade().ok_or_else(closed)?;
        let id = self.id;
        let stored = registry.store()?.read(move |connection| rows::built(connection, id)).await?;
        let Some((built, files)) = stored else { return Ok(None) };
        let folder = registry.folder.join(&built.folder);
        let session = Arc::clone(&registry.session);
        OpenVectors::open(&folder, session, &built, files, &self.spec).await.map(Some)
    }

    /// Makes searches read what was written last.
    async fn reopen(&self, folder: Option<String>) {
        let mut opened = self.opened.lock().await;
        *opened = None;
        *self.dataset.lock() = folder;
        self.is_damaged.store(false, Ordering::Release);
    }
}

/// Vector indexes. Made by [`Catalog::vector_indexes`](crate::Catalog::vector_indexes).
#[derive(Clone, Copy)]
pub struct CatalogVectorIndexes<'a> {
    pub(crate) registry: &'a Arc<VectorIndexRegistry>,
}

impl CatalogVectorIndexes<'_> {
    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.registry.current.read().is_empty()
    }

    /// The index of a column for a metric.
    pub fn of_column(self, table_id: i64, column_id: i64, metric: VectorMetric) -> Option<Arc<TableVectorIndex>> {
        let current = self.registry.current.read();
        let is_fit = |index: &&Arc<TableVectorIndex>| {
            index.spec.column_id == column_id && index.spec.metric == metric && index.dataset.lock().is_some()
        };
        current.get(&table_id)?.iter().find(is_fit).cloned()
    }

    /// All of them, in no order.
    pub fn all(self) -> Vec<Arc<TableVectorIndex>> {
        self.registry.current.read().values().flatten().cloned().collect()
    }

    /// The name of the table of an index; `None` where it was dropped.
    pub async fn table_of(self, index: &TableVectorIndex) -> Result<Option<TableName>> {
        let table_id = index.spec.table_id;
        self.registry.store()?.view(move |view| rows::table_name(view.connection, table_id)).await
    }

    /// The indexes of columns that the caller may see, by database, table and name.
    pub async fn list(self, who: &Principal) -> Result<Vec<VectorIndexInfo>> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        let damaged: Vec<i64> = self.all().iter().filter(|index| index.is_damaged()).map(|index| index.id).collect();
        let who = who.clone();
        self.registry
            .store()?
            .view(move |view| {
                let listed = rows::listed(view.connection)?;
                let names: Vec<TableName> = listed.iter().map(|row| row.table.clone()).collect();
                let tables = resolve::resolve(view, &who, &names)?;
                let mut infos: Vec<VectorIndexInfo> = Vec::new();
                for (row, table) in listed.into_iter().zip(tables) {
                    let Some(table) = table.filter(|table| table.info.id == row.spec.table_id) else { continue };
                    let found = table.info.columns.iter().find(|column| column.id == row.spec.column_id);
                    let Some(column) = found else { continue };
                    infos.push(VectorIndexInfo {
                        id: row.id,
                        name: row.spec.name,
                        table: table.info.name.clone(),
                        column: column.name.clone(),
                        metric: row.spec.metric,
                        dimension: row.spec.dimension,
                        indexed_rows: row.indexed_rows,
                        indexed_files: row.indexed_files,
                        is_of_part: table.restriction.is_some(),
                        is_damaged: damaged.contains(&row.id),
                        created_at: row.created_at,
                    });
                }
                infos.sort_by(|a, b| (&a.table, &a.name).cmp(&(&b.table, &b.name)));
                Ok(infos)
            })
            .await
    }

    /// A writer of a new index, which is there once it is committed. Errors: `already_exists`, `invalid_name`.
    pub async fn create(self, who: &Principal, spec: VectorIndexSpec) -> Result<VectorIndexWriter> {
        let checked = spec.clone();
        let store = self.registry.store()?;
        if store.is_shared() {
            let reason = "a catalog that servers share has none: each would need the dataset of the one that made it";
            return Err(CatalogError::InvalidObject { what: WHAT, reason: reason.to_owned() });
        }
        store.view(move |view| rows::check_new(view.connection, &checked)).await?;
        VectorIndexWriter::create(self.registry, spec, who.subject())
    }

    /// A writer of what an index lacks, or of the whole index. Waits for whoever writes it now.
    pub async fn extend(self, index: &Arc<TableVectorIndex>, from_nothing: bool) -> Result<VectorIndexWriter> {
        VectorIndexWriter::extend(self.registry, index, from_nothing).await
    }

    /// Drops an index. Returns whether it was there.
    pub async fn drop(self, id: i64) -> Result<bool> {
        let was_there = self.registry.store()?.write_rows(move |connection| rows::delete(connection, id)).await?;
        self.registry.reload().await?;
        Ok(was_there)
    }

    /// Removes what is left of the indexes of tables that were dropped.
    pub async fn forget_dropped(self) -> Result<()> {
        if self.is_empty() { Ok(()) } else { self.registry.reload().await }
    }

    /// Says that rows were written, so that indexes may lack some.
    pub fn note_change(self) {
        if !self.is_empty() {
            self.registry.changed.notify_one();
        }
    }

    /// Waits until an index may lack rows.
    pub async fn changed(self) {
        self.registry.changed.notified().await;
    }

    /// What is wrong with the datasets.
    pub(crate) async fn faults(self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut indexes: BTreeMap<i64, Arc<TableVectorIndex>> = BTreeMap::new();
        indexes.extend(self.all().into_iter().map(|index| (index.id, index)));
        for index in indexes.into_values() {
            if let Err(error) = index.open_stored().await {
                let name = &index.spec.name;
                faults
                    .push(format!("the vector index `{name}` cannot be read, and is built again by a server: {error}"));
            }
        }
        faults
    }
}

/// A folder that cannot be removed is tried again when the catalog is opened.
async fn remove_folder(folder: &Path) {
    match tokio::fs::remove_dir_all(folder).await {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(path = %folder.display(), %error, "the dataset of a vector index is left behind"),
    }
}
