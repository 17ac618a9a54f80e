//! Where the files of managed tables lie, and how they are reached: in the data folder, or in an object store.
//!
//! This is all that scans, writes and checks know of the place. Invariant: a path that is not below the lake's own data path is
//! neither read nor written nor removed.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use datafusion::execution::object_store::ObjectStoreUrl;
use object_store::path::Path as StorePath;

use super::remote_lake::{RemoteLake, remote_store_url};
use crate::error::{EngineError, Result};

/// The files of managed tables.
#[derive(Debug)]
pub(crate) enum TableFiles {
    /// In a folder, which is absolute: the data folder, or the one that all servers of a shared catalog have.
    Local(PathBuf),
    /// In an object store.
    Remote(Arc<RemoteLake>),
}

impl TableFiles {
    /// Returns the store that scans read them from.
    pub(crate) fn store_url(&self) -> Result<ObjectStoreUrl> {
        match self {
            TableFiles::Local(_) => Ok(ObjectStoreUrl::local_filesystem()),
            TableFiles::Remote(_) => remote_store_url(),
        }
    }

    /// Returns the path of a file in that store. `what` is what the file is, for the error: `location_not_allowed` for a file
    /// outside of the lake.
    pub(crate) fn path_of(&self, file: &Path, what: &str) -> Result<StorePath> {
        match self {
            TableFiles::Local(folder) if is_inside(file, folder) => {
                StorePath::from_absolute_path(file).map_err(|error| EngineError::Internal(error.to_string()))
            }
            TableFiles::Local(_) => Err(EngineError::LocationNotAllowed {
                location: file.display().to_string(),
                reason: format!("{what} must lie inside the folder of the lake's files"),
            }),
            TableFiles::Remote(lake) => lake.path_of(file),
        }
    }

    /// Removes files that were written and then not committed, or that no snapshot has any more. What cannot be removed is left for
    /// the clean-up.
    pub(crate) async fn remove(&self, files: &[PathBuf]) {
        match self {
            TableFiles::Local(_) => {
                for path in files {
                    if let Err(error) = tokio::fs::remove_file(path).await
                        && error.kind() != std::io::ErrorKind::NotFound
                    {
                        tracing::warn!(path = %path.display(), %error, "data file left behind");
                    }
                }
            }
            TableFiles::Remote(lake) => lake.remove_uncommitted(files).await,
        }
    }

    /// Returns the folder that they are in, where that is a local one.
    pub(crate) fn local_folder(&self) -> Option<&Path> {
        match self {
            TableFiles::Local(folder) => Some(folder),
            TableFiles::Remote(_) => None,
        }
    }

    /// Returns the store's side of a lake in an object store.
    pub(crate) fn remote(&self) -> Option<&Arc<RemoteLake>> {
        match self {
            TableFiles::Local(_) => None,
            TableFiles::Remote(lake) => Some(lake),
        }
    }
}

/// Returns whether `path` is absolute, plain (no `..`) and below `folder`.
pub(crate) fn is_inside(path: &Path, folder: &Path) -> bool {
    let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    path.is_absolute() && plain && path.starts_with(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside_the_data_folder() {
        let folder = Path::new("/srv/lake");
        assert!(is_inside(Path::new("/srv/lake/data/db/t/a.parquet"), folder));
        assert!(!is_inside(Path::new("/srv/lake/../secret.parquet"), folder));
        assert!(!is_inside(Path::new("/srv/lakeside/a.parquet"), folder));
        assert!(!is_inside(Path::new("data/a.parquet"), folder));
    }
}
