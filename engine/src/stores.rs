//! The object stores and web servers that external tables lie in, and the one where the lake's own files may lie, opened when
//! they are first needed.
//!
//! This is the only place that opens one, and it opens none that the settings do not name. Credentials come from the
//! environment's standard variables, at that moment; nothing here keeps, prints or passes them on. Only the lake's own store is
//! written to, only by [`RemoteLake`], and never over an object that is there.

mod client_error;
mod guarded;
mod index_shelf;
mod lake_url;
mod lance_bridge;
mod open;
mod range_cache;
mod remote_lake;
mod root;
mod table_files;
mod url;
mod versioned_object;
mod web;

use std::sync::Arc;

use ::url::Url;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::object_store::ObjectStoreRegistry;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use parking_lot::Mutex;

pub(crate) use index_shelf::index_shelf;
pub use lake_url::LakeUrl;
pub(crate) use lance_bridge::DatasetFolder;
pub use range_cache::FileCacheState;
pub(crate) use range_cache::RangeCache;
pub(crate) use remote_lake::RemoteLake;
pub use root::UrlRoot;
pub(crate) use table_files::{TableFiles, is_inside};
pub(crate) use url::{StoreUrl, location_of, redacted};
pub(crate) use versioned_object::VersionedObject;
pub(crate) use web::is_public;

use crate::error::{EngineError, Result};
use guarded::GuardedStore;

/// The most stores that are kept open; the one that was not used for the longest time is closed first.
const KEPT_OPEN: usize = 64;

/// DataFusion's registry of object stores: the local file system, and the stores that may be read.
#[derive(Debug)]
pub(crate) struct Stores {
    files: Arc<dyn ObjectStore>,
    lake: Arc<TableFiles>,
    roots: Vec<UrlRoot>,
    /// By scheme and bucket or host, the last used at the end.
    open: Mutex<Vec<(String, Arc<dyn ObjectStore>)>>,
}

impl Stores {
    /// Opens nothing yet; `roots` are what may be read, and the lake's own files.
    pub(crate) fn new(roots: Vec<UrlRoot>, lake: Arc<TableFiles>) -> Self {
        Self { files: Arc::new(LocalFileSystem::new()), lake, roots, open: Mutex::default() }
    }

    fn remote(&self, url: &StoreUrl) -> Result<Arc<dyn ObjectStore>> {
        let name = url.store();
        if let Some(store) = self.cached(&name) {
            return Ok(store);
        }
        let roots: Vec<UrlRoot> = self.roots.iter().filter(|root| root.is_in_store(url)).cloned().collect();
        if roots.is_empty() {
            return Err(EngineError::LocationNotAllowed { location: name, reason: root::NOT_NAMED.into() });
        }
        let named = roots.iter().any(UrlRoot::names_its_store);
        let store: Arc<dyn ObjectStore> = Arc::new(GuardedStore::new(open::open(url, named)?, url, roots));
        // Opening reads files and certificates, so it is done outside of the lock; of two at once the later one is kept.
        let mut open = self.open.lock();
        open.retain(|(known, _)| *known != name);
        if open.len() >= KEPT_OPEN {
            open.remove(0);
        }
        open.push((name, Arc::clone(&store)));
        Ok(store)
    }

    fn cached(&self, name: &str) -> Option<Arc<dyn ObjectStore>> {
        let mut open = self.open.lock();
        let at = open.iter().position(|(known, _)| known == name)?;
        let used = open.remove(at);
        let store = Arc::clone(&used.1);
        open.push(used);
        Some(store)
    }
}

impl ObjectStoreRegistry for Stores {
    fn register_store(&self, url: &Url, _store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        tracing::warn!(scheme = url.scheme(), "ignored an object store: stores are opened by the settings alone");
        None
    }

    fn get_store(&self, url: &Url) -> DataFusionResult<Arc<dyn ObjectStore>> {
        if url.scheme() == "file" {
            return Ok(Arc::clone(&self.files));
        }
        if url.scheme() == remote_lake::LAKE_SCHEME {
            let lake = self.lake.remote().ok_or_else(|| EngineError::LocationNotAllowed {
                location: url.to_string(),
                reason: "these are files of managed tables in the coordinator's data_path: set the same data_path here"
                    .into(),
            })?;
            return Ok(lake.scanned()?);
        }
        let Some(url) = StoreUrl::parse(url.as_str())? else {
            return Err(EngineError::Internal(format!("no store for a URL of scheme {}", url.scheme())).into());
        };
        Ok(self.remote(&url)?)
    }
}
