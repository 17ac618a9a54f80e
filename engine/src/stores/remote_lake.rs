//! A lake whose files lie in an object store: read through a cache on the local disk, written once and never over another
//! object, listed and removed by the clean-up.
//!
//! The first write marks the prefix with the lake's id, by a conditional write that is made twice: so another lake's prefix is
//! refused, and so is a store that does not keep to the condition. Credentials come from the environment when the store is
//! first needed, as those of external tables do.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use datafusion::execution::object_store::ObjectStoreUrl;
use futures::TryStreamExt;
use futures::future::join_all;
use object_store::path::Path as StorePath;
use object_store::{Error as ClientError, ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use parking_lot::Mutex;
use querent_catalog::{CatalogError, Orphan};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::client_error::redacted_error;
use super::guarded::GuardedStore;
use super::lake_url::LakeUrl;
use super::open;
use super::range_cache::{CachedStore, RangeCache};
use crate::error::{EngineError, Result, StoreError};

/// The scheme of the store by which DataFusion knows the lake's files; no statement can name it.
pub(super) const LAKE_SCHEME: &str = "lake";
/// The object that says whose the prefix is.
const MARKER: &str = "querent-lake.json";
/// How often a write is made again that the store did not answer, beyond what the client repeats by itself.
const WRITE_RETRIES: u32 = 2;
/// The pause before the first of these; the next is twice as long.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Removals at one time.
const REMOVALS: usize = 8;

/// Returns the URL of the store that holds the lake's files.
pub(super) fn remote_store_url() -> Result<ObjectStoreUrl> {
    Ok(ObjectStoreUrl::parse(format!("{LAKE_SCHEME}://files"))?)
}

/// The files of a lake in an object store.
#[derive(Debug)]
pub(crate) struct RemoteLake {
    url: LakeUrl,
    lake_id: String,
    /// Files that are about to be uploaded.
    spool: PathBuf,
    cache: Option<Arc<RangeCache>>,
    opened: Mutex<Option<Arc<OpenStores>>>,
    claimed: OnceCell<()>,
    removals: TaskTracker,
    runtime: Handle,
}

/// The store, open.
#[derive(Debug)]
struct OpenStores {
    /// Read-only, behind the cache, with paths as DataFusion knows them.
    scanned: Arc<dyn ObjectStore>,
    /// As it is.
    bare: Arc<dyn ObjectStore>,
    /// As it is, with more patience.
    written: Arc<dyn ObjectStore>,
}

impl RemoteLake {
    /// Opens nothing yet. `spool` is a folder of the data folder. To be called from within the runtime.
    pub(crate) fn new(url: LakeUrl, lake_id: String, spool: PathBuf, cache: Option<Arc<RangeCache>>) -> Self {
        Self {
            url,
            lake_id,
            spool,
            cache,
            opened: Mutex::default(),
            claimed: OnceCell::new(),
            removals: TaskTracker::new(),
            runtime: Handle::current(),
        }
    }

    /// Returns where the files lie.
    pub(crate) fn url(&self) -> &LakeUrl {
        &self.url
    }

    /// Returns the cache of what was read.
    pub(crate) fn cache(&self) -> Option<&Arc<RangeCache>> {
        self.cache.as_ref()
    }

    /// Returns the store that scans read.
    pub(crate) fn scanned(&self) -> Result<Arc<dyn ObjectStore>> {
        Ok(Arc::clone(&self.stores()?.scanned))
    }

    /// Returns the path of a file as scans name it.
    pub(super) fn path_of(&self, file: &Path) -> Result<StorePath> {
        self.url.url().path_of(self.url.key_of(file)?.as_ref())
    }

    /// Makes a folder for files that are about to be uploaded; it goes when it is dropped.
    pub(crate) async fn new_spool(&self) -> Result<SpoolFolder> {
        let folder = SpoolFolder { path: self.spool.join(format!("upload-{}", Uuid::now_v7())) };
        tokio::fs::create_dir_all(&folder.path)
            .await
            .map_err(|source| EngineError::Catalog(CatalogError::of_file(&folder.path, source)))?;
        Ok(folder)
    }

    /// Writes a file that must not be there yet. Errors: `conflict` where another one is, which stays as it is.
    pub(crate) async fn put_new(&self, file: &Path, content: Bytes) -> Result<()> {
        self.claim().await?;
        let key = self.url.key_of(file)?;
        let stores = self.stores()?;
        let mut pause = RETRY_PAUSE;
        for attempt in 0.. {
            match create(&stores.written, &key, &content).await {
                Ok(()) => return Ok(()),
                Err(ClientError::AlreadyExists { .. }) => match self.holds(&stores.bare, &key, &content).await? {
                    // An earlier attempt has arrived although its answer did not.
                    Some(true) => return Ok(()),
                    // Another request for the name was on its way, and came to nothing.
                    None if attempt < WRITE_RETRIES => {}
                    Some(false) | None => {
                        return Err(StoreError::Occupied { location: file.display().to_string() }.into());
                    }
                },
                Err(error) => match self.redacted(&key, &error) {
                    StoreError::Unavailable { detail, .. } if attempt < WRITE_RETRIES => {
                        tracing::debug!(%detail, attempt, "a data file is written again");
                    }
                    failure => return Err(failure.into()),
                },
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        Err(EngineError::Internal("a write was tried without end".into()))
    }

    /// Returns all objects below the data path with their ages at a time.
    pub(crate) async fn list(&self, now: DateTime<Utc>) -> Result<Vec<Orphan>> {
        let prefix = self.url.prefix()?;
        let root = PathBuf::from(self.url.to_string());
        let below = prefix.as_ref().map_or(String::new(), |prefix| format!("{prefix}/"));
        let shown = prefix.clone().unwrap_or_default();
        self.stores()?
            .bare
            .list(prefix.as_ref())
            .map_err(|error| EngineError::from(self.redacted(&shown, &error)))
            .try_filter_map(|found| {
                let path = found.location.as_ref().strip_prefix(&below).map(|key| root.join(key));
                let age = u64::try_from((now - found.last_modified).num_seconds()).unwrap_or_default();
                let listed = path.map(|path| Orphan { path, bytes: found.size, age_seconds: age });
                std::future::ready(Ok(listed))
            })
            .try_collect()
            .await
    }

    /// Removes files that no table has, and returns those that are gone. Errors: those of a prefix that is another lake's.
    pub(crate) async fn remove_orphans(&self, orphans: Vec<Orphan>) -> Result<Vec<Orphan>> {
        self.claim().await?;
        let mut gone = Vec::with_capacity(orphans.len());
        for some in orphans.chunks(REMOVALS) {
            let removed = join_all(some.iter().map(|file| self.remove(&file.path))).await;
            gone.extend(some.iter().zip(removed).filter(|(_, is_gone)| *is_gone).map(|(file, _)| file.clone()));
        }
        Ok(gone)
    }

    /// Removes files that were written and then not committed.
    pub(super) async fn remove_uncommitted(&self, files: &[PathBuf]) {
        for some in files.chunks(REMOVALS) {
            join_all(some.iter().map(|file| self.remove(file))).await;
        }
    }

    /// The same, for a caller that cannot wait; [`RemoteLake::close`] does.
    pub(crate) fn remove_later(self: &Arc<Self>, files: Vec<PathBuf>) {
        let lake = Arc::clone(self);
        self.removals.spawn_on(async move { lake.remove_uncommitted(&files).await }, &self.runtime);
    }

    /// Waits for removals.
    pub(crate) async fn close(&self) {
        self.removals.close();
        self.removals.wait().await;
    }

    async fn remove(&self, file: &Path) -> bool {
        let removed = async {
            let key = self.url.key_of(file)?;
            match self.stores()?.bare.delete(&key).await {
                Ok(()) | Err(ClientError::NotFound { .. }) => Ok(()),
                Err(error) => Err(EngineError::from(self.redacted(&key, &error))),
            }
        };
        match removed.await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(path = %file.display(), %error, "a data file is left in the object store");
                false
            }
        }
    }

    /// Returns the store to write other files than those of tables to, below the prefix, which is this lake's.
    pub(super) async fn claimed_store(&self) -> Result<Arc<dyn ObjectStore>> {
        self.claim().await?;
        Ok(Arc::clone(&self.stores()?.written))
    }

    /// Returns the store as it is, to read such files.
    pub(super) fn bare_store(&self) -> Result<Arc<dyn ObjectStore>> {
        Ok(Arc::clone(&self.stores()?.bare))
    }

    /// Names an error of the store, without what is secret.
    pub(super) fn failure(&self, key: &StorePath, error: &ClientError) -> EngineError {
        self.redacted(key, error).into()
    }

    /// Makes sure that the prefix is this lake's and that the store keeps to conditions.
    async fn claim(&self) -> Result<()> {
        self.claimed.get_or_try_init(|| self.marked()).await.map(|&()| ())
    }

    async fn marked(&self) -> Result<()> {
        let file = PathBuf::from(self.url.to_string()).join(MARKER);
        let key = self.url.key_of(&file)?;
        let stores = self.stores()?;
        let marker = Bytes::from(json!({ "lake": self.lake_id }).to_string());
        for _ in 0..2 {
            match create(&stores.written, &key, &marker).await {
                Ok(()) => {}
                Err(ClientError::AlreadyExists { .. }) => return self.refuse_others(&stores.bare, &key).await,
                Err(ClientError::NotImplemented { .. } | ClientError::NotSupported { .. }) => {
                    return Err(self.unconditional().into());
                }
                Err(error) => return Err(self.redacted(&key, &error).into()),
            }
        }
        // Written twice, though the second time it was there.
        Err(self.unconditional().into())
    }

    async fn refuse_others(&self, store: &Arc<dyn ObjectStore>, key: &StorePath) -> Result<()> {
        let found = self.content(store, key).await?;
        let found: Value = serde_json::from_slice(&found).unwrap_or_default();
        if found["lake"] == json!(self.lake_id) {
            return Ok(());
        }
        Err(EngineError::LocationNotAllowed {
            location: self.url.to_string(),
            reason: format!("its {MARKER} says that it holds another lake's files; give this one a prefix of its own"),
        })
    }

    /// Returns whether an object has this content; `None` where there is no such object.
    async fn holds(&self, store: &Arc<dyn ObjectStore>, key: &StorePath, content: &Bytes) -> Result<Option<bool>> {
        match store.head(key).await {
            Ok(found) if found.size == content.len() as u64 => {
                self.content(store, key).await.map(|found| Some(found == content))
            }
            Ok(_) => Ok(Some(false)),
            Err(ClientError::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.redacted(key, &error).into()),
        }
    }

    async fn content(&self, store: &Arc<dyn ObjectStore>, key: &StorePath) -> Result<Bytes> {
        let read = async { store.get(key).await?.bytes().await };
        Ok(read.await.map_err(|error| self.redacted(key, &error))?)
    }

    fn stores(&self) -> Result<Arc<OpenStores>> {
        if let Some(opened) = self.opened.lock().as_ref() {
            return Ok(Arc::clone(opened));
        }
        // Opening reads files and certificates, so it is done outside of the lock; of two at once the later one is kept.
        let url = self.url.url();
        let bare = open::open(url, true)?;
        let written = open::open_patient(url)?;
        let cached: Arc<dyn ObjectStore> = match &self.cache {
            Some(cache) => Arc::new(CachedStore::new(Arc::clone(&bare), Arc::clone(cache), url.store())),
            None => Arc::clone(&bare),
        };
        let scanned = Arc::new(GuardedStore::new(cached, url, vec![self.url.root()?]));
        let opened = Arc::new(OpenStores { scanned, bare, written });
        *self.opened.lock() = Some(Arc::clone(&opened));
        Ok(opened)
    }

    fn unconditional(&self) -> StoreError {
        StoreError::Unusable {
            store: self.url.url().store(),
            detail: "it does not keep to the condition of a write (If-None-Match), so that files could be overwritten"
                .into(),
        }
    }

    fn redacted(&self, key: &StorePath, error: &ClientError) -> StoreError {
        let store = self.url.url().store();
        redacted_error(error, &store, &format!("{store}/{key}"))
    }
}

/// Makes an object that is not there.
async fn create(store: &Arc<dyn ObjectStore>, key: &StorePath, content: &Bytes) -> object_store::Result<()> {
    let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    store.put_opts(key, content.clone().into(), options).await.map(drop)
}

/// A folder of files that are about to be uploaded; removed with all that it holds when it is dropped.
#[derive(Debug)]
pub(crate) struct SpoolFolder {
    path: PathBuf,
}

impl SpoolFolder {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SpoolFolder {
    #[expect(clippy::disallowed_methods, reason = "a few files of a folder of our own")]
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "spooled files are left until the next start");
        }
    }
}
