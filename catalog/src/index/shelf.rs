//! Where the servers of a shared catalog lay down the files of their schema index for one another: beside the files of managed
//! tables, in a folder or an object store.
//!
//! Invariant: a key is written once. What a key names never changes, so a file that was taken once need not be taken again.

use std::path::{Path, PathBuf};

use async_trait::async_trait;

use crate::error::{CatalogError, Result};

/// The folder of the index below the lake's data path.
pub const INDEX_SHELF: &str = "querent-index";

/// A place that all servers of a catalog reach. Keys are plain names, separated by slashes.
#[async_trait]
pub trait IndexShelf: std::fmt::Debug + Send + Sync {
    /// Lays a local file down under a key that nothing has yet.
    async fn put(&self, key: &str, file: &Path) -> Result<()>;
    /// Copies a file to a local path where nothing is. Errors: `index_error` where there is no such key, or it cannot be read.
    async fn get(&self, key: &str, file: &Path) -> Result<()>;
    /// The keys of all that is there.
    async fn list(&self) -> Result<Vec<String>>;
    /// Removes a file; one that is not there is no error.
    async fn remove(&self, key: &str) -> Result<()>;
}

/// A shelf in a folder that every server has at the same path.
#[derive(Debug)]
pub(crate) struct FolderShelf {
    folder: PathBuf,
}

impl FolderShelf {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }
}

#[async_trait]
impl IndexShelf for FolderShelf {
    async fn put(&self, key: &str, file: &Path) -> Result<()> {
        let target = self.folder.join(key);
        create_parent(&target).await?;
        link_or_copy(file, &target).await
    }

    async fn get(&self, key: &str, file: &Path) -> Result<()> {
        link_or_copy(&self.folder.join(key), file).await
    }

    async fn list(&self) -> Result<Vec<String>> {
        Ok(files_below(&self.folder).await?.into_iter().map(|(path, _)| path).collect())
    }

    async fn remove(&self, key: &str) -> Result<()> {
        let path = self.folder.join(key);
        match tokio::fs::remove_file(&path).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(CatalogError::of_file(&path, error)),
            _ => Ok(()),
        }
    }
}

/// The files below a folder by their paths in it, with `/` between the parts; none where there is no such folder.
pub(super) async fn files_below(root: &Path) -> Result<Vec<(String, std::fs::Metadata)>> {
    let mut files = Vec::new();
    let mut folders = vec![(root.to_owned(), String::new())];
    while let Some((folder, prefix)) = folders.pop() {
        let io_error = |source| CatalogError::of_file(&folder, source);
        let mut entries = match tokio::fs::read_dir(&folder).await {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            entries => entries.map_err(io_error)?,
        };
        while let Some(entry) = entries.next_entry().await.map_err(io_error)? {
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            // Gone meanwhile is not there.
            let Ok(metadata) = entry.metadata().await else { continue };
            match metadata.is_dir() {
                true => folders.push((entry.path(), format!("{name}/"))),
                false => files.push((name, metadata)),
            }
        }
    }
    Ok(files)
}

/// Makes the folder of a file.
pub(super) async fn create_parent(file: &Path) -> Result<()> {
    let Some(parent) = file.parent() else { return Ok(()) };
    tokio::fs::create_dir_all(parent).await.map_err(|source| CatalogError::of_file(parent, source))
}

/// Gives a file, which never changes, a second name; where the file systems differ it is copied, and has its name when it is
/// whole.
pub(super) async fn link_or_copy(from: &Path, to: &Path) -> Result<()> {
    if tokio::fs::hard_link(from, to).await.is_ok() {
        return Ok(());
    }
    let mut part = to.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    tokio::fs::copy(from, &part).await.map_err(|source| CatalogError::of_file(from, source))?;
    tokio::fs::rename(&part, to).await.map_err(|source| CatalogError::of_file(to, source))
}
