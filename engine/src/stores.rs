//! The object stores and web servers that external tables lie in, opened when they are first read.
//!
//! This is the only place that opens one, and it opens none that the settings do not name. Credentials come from the
//! environment's standard variables, at that moment; nothing here keeps, prints or passes them on. Stores are read, never
//! written.

mod error;
mod for_lance;
mod guarded;
mod open;
mod root;
mod url;
mod web;

use std::sync::Arc;

use ::url::Url;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::object_store::ObjectStoreRegistry;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use parking_lot::Mutex;

pub use error::StoreError;
pub(crate) use error::carried;
pub(crate) use for_lance::DatasetFolder;
pub use root::UrlRoot;
pub(crate) use url::{StoreUrl, redacted};
pub(crate) use web::is_public;

use crate::{EngineError, Result};
use guarded::Guarded;

/// Stores that are kept open; the one that was not used for longest goes first.
const KEPT_OPEN: usize = 64;

/// What DataFusion asks for the store of a file: the local file system, and the stores that may be read.
#[derive(Debug)]
pub(crate) struct Stores {
    files: Arc<dyn ObjectStore>,
    roots: Vec<UrlRoot>,
    /// By scheme and bucket or host, the last used at the end.
    open: Mutex<Vec<(String, Arc<dyn ObjectStore>)>>,
}

impl Stores {
    /// Opens nothing yet.
    pub(crate) fn new(roots: Vec<UrlRoot>) -> Self {
        Self { files: Arc::new(LocalFileSystem::new()), roots, open: Mutex::default() }
    }

    fn remote(&self, url: &StoreUrl) -> Result<Arc<dyn ObjectStore>> {
        let name = url.store();
        if let Some(store) = self.kept(&name) {
            return Ok(store);
        }
        let roots: Vec<UrlRoot> = self.roots.iter().filter(|root| root.is_of(url)).cloned().collect();
        if roots.is_empty() {
            return Err(EngineError::LocationNotAllowed { location: name, reason: root::NOT_NAMED.into() });
        }
        let named = roots.iter().any(UrlRoot::names_its_store);
        let store: Arc<dyn ObjectStore> = Arc::new(Guarded::new(open::open(url, named)?, url, roots));
        // Opening takes files and certificates, so nobody waits for it here; of two at once the later one is kept.
        let mut open = self.open.lock();
        open.retain(|(known, _)| *known != name);
        if open.len() >= KEPT_OPEN {
            open.remove(0);
        }
        open.push((name, Arc::clone(&store)));
        Ok(store)
    }

    fn kept(&self, name: &str) -> Option<Arc<dyn ObjectStore>> {
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
        let Some(url) = StoreUrl::parse(url.as_str())? else {
            return Err(EngineError::Internal(format!("no store for a URL of scheme {}", url.scheme())).into());
        };
        Ok(self.remote(&url)?)
    }
}
