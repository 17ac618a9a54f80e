//! The files of the schema index that the servers of a shared catalog have in common, below the prefix of a lake in an object
//! store. Large files go and come in parts, so that no request has to take all of one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use futures::TryStreamExt;
use object_store::path::Path as StorePath;
use object_store::{Error as ClientError, ObjectStoreExt, WriteMultipart};
use querent_catalog::{CatalogError, INDEX_SHELF, IndexShelf, LakeLocation, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::lake_url::LakeUrl;
use super::remote_lake::RemoteLake;
use crate::error::EngineError;

/// Bytes of one part of a file; a file of no more is one request.
const PART_BYTES: usize = 8 << 20;
/// Parts on their way at once.
const PARTS: usize = 4;

/// Returns the shelf of a lake; `None` for one at a URL of an unknown kind.
pub(crate) fn index_shelf(location: &LakeLocation) -> Option<Arc<dyn IndexShelf>> {
    let lake_id = location.lake_id.clone()?;
    let url: LakeUrl = location.data_path.parse().ok()?;
    let root = PathBuf::from(url.to_string()).join(INDEX_SHELF);
    // It writes no files of tables, and reads past the cache: what is read here is kept in the data folder.
    let lake = RemoteLake::new(url, lake_id, PathBuf::new(), None);
    Some(Arc::new(StoreShelf { lake, root }))
}

#[derive(Debug)]
struct StoreShelf {
    lake: RemoteLake,
    root: PathBuf,
}

impl StoreShelf {
    fn path_of(&self, key: &str) -> Result<StorePath> {
        self.lake.url().key_of(&self.root.join(key)).map_err(|error| of_shelf(&error))
    }

    fn failed(&self, path: &StorePath, error: &ClientError) -> CatalogError {
        of_shelf(&self.lake.failure(path, error))
    }
}

/// An error of the store, as the index knows it.
fn of_shelf(error: &EngineError) -> CatalogError {
    CatalogError::Index(error.to_string())
}

#[async_trait]
impl IndexShelf for StoreShelf {
    async fn put(&self, key: &str, file: &Path) -> Result<()> {
        let store = self.lake.claimed_store().await.map_err(|error| of_shelf(&error))?;
        let path = self.path_of(key)?;
        let io_error = |source| CatalogError::of_file(file, source);
        let size = tokio::fs::metadata(file).await.map_err(io_error)?.len();
        if size <= PART_BYTES as u64 {
            let content = tokio::fs::read(file).await.map_err(io_error)?;
            return store.put(&path, content.into()).await.map(drop).map_err(|error| self.failed(&path, &error));
        }
        let upload = store.put_multipart(&path).await.map_err(|error| self.failed(&path, &error))?;
        let mut parts = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
        let mut content = tokio::fs::File::open(file).await.map_err(io_error)?;
        let mut part = vec![0; PART_BYTES];
        loop {
            let length = content.read(&mut part).await.map_err(io_error)?;
            if length == 0 {
                break;
            }
            parts.wait_for_capacity(PARTS).await.map_err(|error| self.failed(&path, &error))?;
            parts.write(&part[..length]);
        }
        parts.finish().await.map(drop).map_err(|error| self.failed(&path, &error))
    }

    async fn get(&self, key: &str, file: &Path) -> Result<()> {
        let store = self.lake.bare_store().map_err(|error| of_shelf(&error))?;
        let path = self.path_of(key)?;
        let io_error = |source| CatalogError::of_file(file, source);
        let found = store.head(&path).await.map_err(|error| self.failed(&path, &error))?;
        let mut target = tokio::fs::File::create_new(file).await.map_err(io_error)?;
        let mut begin = 0;
        while begin < found.size {
            let end = found.size.min(begin + PART_BYTES as u64);
            let content = store.get_range(&path, begin..end).await.map_err(|error| self.failed(&path, &error))?;
            target.write_all(&content).await.map_err(io_error)?;
            begin = end;
        }
        target.flush().await.map_err(io_error)
    }

    async fn list(&self) -> Result<Vec<String>> {
        let store = self.lake.bare_store().map_err(|error| of_shelf(&error))?;
        let prefix = self.lake.url().key_of(&self.root).map_err(|error| of_shelf(&error))?;
        let below = format!("{prefix}/");
        let found = store.list(Some(&prefix)).try_filter_map(|found| {
            let key = found.location.as_ref().strip_prefix(&below).map(str::to_owned);
            std::future::ready(Ok(key))
        });
        found.try_collect().await.map_err(|error| self.failed(&prefix, &error))
    }

    async fn remove(&self, key: &str) -> Result<()> {
        let store = self.lake.claimed_store().await.map_err(|error| of_shelf(&error))?;
        let path = self.path_of(key)?;
        match store.delete(&path).await {
            Ok(()) | Err(ClientError::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed(&path, &error)),
        }
    }
}
