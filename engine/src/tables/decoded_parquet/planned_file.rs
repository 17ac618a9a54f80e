//! Whether a file is still the one that a scan was planned with. A scan reads a file part by part, opening it each time: of a
//! file that is replaced meanwhile it would mix the rows of both.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::execution::cache::cache_manager::FileMetadataCache;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use parquet::errors::{ParquetError, Result as ParquetResult};

use crate::error::EngineError;

/// Who may change the files of a scan while they are read.
#[derive(Debug, Clone)]
pub(super) enum FileOwner {
    /// The engine, which never does; or local files that were looked at by another machine.
    Engine,
    /// Somebody else, on this machine.
    OtherLocal,
    /// Somebody else, in an object store or on a web server.
    OtherStored {
        /// The store.
        store: Arc<dyn ObjectStore>,
        /// The footers of all files that were read.
        footers: Arc<dyn FileMetadataCache>,
    },
}

impl FileOwner {
    /// Returns who may change the files of a store, which no managed table has. `is_planned_here`: this machine looked at them.
    pub(super) fn of_store(url: &ObjectStoreUrl, runtime: &RuntimeEnv, is_planned_here: bool) -> Self {
        if *url == ObjectStoreUrl::local_filesystem() {
            return if is_planned_here { Self::OtherLocal } else { Self::Engine };
        }
        match runtime.object_store(url) {
            Ok(store) => Self::OtherStored { store, footers: runtime.cache_manager.get_file_metadata_cache() },
            // The scan says so.
            Err(_) => Self::Engine,
        }
    }
}

/// A local file as it was when its scan was planned.
#[derive(Debug)]
pub(super) struct PlannedFile {
    path: PathBuf,
    size: u64,
    modified: DateTime<Utc>,
    inode: u64,
}

impl PlannedFile {
    /// Returns a local file of somebody else. `None`: nobody changes it.
    pub(super) fn of(file: &PartitionedFile) -> Option<Self> {
        let meta = &file.object_meta;
        let inode = u64::from_str_radix(meta.e_tag.as_deref()?, 16).ok()?;
        let path = LocalFileSystem::new().path_to_filesystem(&meta.location).ok()?;
        Some(Self { path, size: meta.size, modified: meta.last_modified, inode })
    }

    /// Errors: another file is in its place, or it was written to, so that what was read may be of another version.
    pub(super) async fn check(&self) -> ParquetResult<()> {
        // Of a file that is removed, what was read is of the one that was there.
        let Ok(found) = tokio::fs::metadata(&self.path).await else { return Ok(()) };
        // A time that is yet to come says nothing.
        let is_written = found.modified().is_ok_and(|written| {
            let written = DateTime::<Utc>::from(written);
            written > self.modified && written <= Utc::now()
        });
        if found.ino() == self.inode && found.len() == self.size && !is_written {
            return Ok(());
        }
        Err(ParquetError::External(Box::new(EngineError::BadData {
            location: self.path.display().to_string(),
            detail: "the file was changed while it was read; run the statement again".to_owned(),
        })))
    }
}

/// Checks a file, if it is one that may change.
pub(super) async fn check(planned: Option<&PlannedFile>) -> ParquetResult<()> {
    match planned {
        Some(planned) => planned.check().await,
        None => Ok(()),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests may block")]
mod tests {
    use std::fs::{self, File};
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    use object_store::ObjectMeta;
    use object_store::path::Path as StorePath;

    use super::*;

    fn planned(path: &Path) -> PlannedFile {
        let found = path.metadata().unwrap();
        let meta = ObjectMeta {
            location: StorePath::from_absolute_path(path).unwrap(),
            last_modified: DateTime::<Utc>::from(found.modified().unwrap()),
            size: found.len(),
            e_tag: Some(format!("{:x}", found.ino())),
            version: None,
        };
        PlannedFile::of(&PartitionedFile::new_from_meta(meta)).unwrap()
    }

    #[tokio::test]
    async fn a_file_that_is_written_or_replaced_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a %23b#.parquet");
        let write = |path: &Path, text: &str| {
            fs::write(path, text).unwrap();
            let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
            File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
        };
        write(&path, "one");
        let first = planned(&path);
        assert!(first.check().await.is_ok());
        let other = folder.path().join("other");
        write(&other, "two");
        fs::rename(&other, &path).unwrap();
        let said = first.check().await.unwrap_err().to_string();
        assert!(said.contains("was changed while it was read"), "{said}");
        let second = planned(&path);
        assert!(second.check().await.is_ok());
        fs::write(&path, "six").unwrap();
        assert!(second.check().await.is_err());
        fs::remove_file(&path).unwrap();
        assert!(second.check().await.is_ok());
    }
}
