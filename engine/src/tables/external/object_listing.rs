//! Finds the objects of a location as [`super::location`] finds files: one object, a prefix with everything below it, a
//! pattern, or a Lance dataset. Nothing is read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use datafusion::catalog::Session;
use futures::TryStreamExt as _;
use object_store::{Error as StoreFailure, ObjectMeta, ObjectStore, ObjectStoreExt as _};
use querent_catalog::FileFormat;

use super::location::{GLOB, LANCE_VERSIONS, LocatedFile, StoredObject, format_name, format_of, partition_of};
use crate::error::{EngineError, Result, StoreError};
use crate::stores::StoreUrl;

/// The most objects of a location; with more it is neither one table nor one tree.
const MOST_OBJECTS: usize = 500_000;

/// Returns the non-empty objects of a location in order of their keys. Errors: `no_files`, `unsupported`, those of stores.
pub(super) async fn locate_objects(
    state: &dyn Session,
    url: &StoreUrl,
    format: FileFormat,
) -> Result<Vec<LocatedFile>> {
    let store = RemoteFolder::open(state, url)?;
    let mut found = Vec::new();
    if format == FileFormat::Lance {
        found.extend(store.dataset(url).await?);
    } else if url.is_web() || !(url.is_glob() || url.is_folder()) {
        found.extend(store.object(url).await?);
    }
    if found.is_empty() && !url.is_web() && format != FileFormat::Lance {
        found = store.below(url).await?.files;
        match url.is_glob() {
            true => found.retain(pattern(url, format)?),
            false => found.retain(|file| format_of(&file.path) == Some(format)),
        }
    }
    found.retain(|file| file.size > 0);
    if found.is_empty() {
        return Err(EngineError::NoFiles { location: url.to_string(), format: format_name(format).to_owned() });
    }
    Ok(found)
}

/// The objects below a prefix.
pub(crate) struct ObjectListing {
    /// The objects of any format in order of their keys, without those with hidden names.
    pub files: Vec<LocatedFile>,
    /// The folders that are Lance datasets, whose own objects are among the files.
    pub datasets: BTreeSet<PathBuf>,
}

/// Lists everything below a prefix.
pub(crate) async fn list_objects(state: &dyn Session, url: &StoreUrl) -> Result<ObjectListing> {
    if url.is_web() {
        return Err(no_listing(url));
    }
    RemoteFolder::open(state, url)?.below(url).await
}

/// Returns the formats of the objects of a location, by their endings; for a Lance dataset its format alone.
pub(super) async fn object_formats(state: &dyn Session, url: &StoreUrl) -> Result<BTreeSet<FileFormat>> {
    if !url.is_web() && RemoteFolder::open(state, url)?.dataset(url).await?.is_some() {
        return Ok(BTreeSet::from([FileFormat::Lance]));
    }
    let files = list_objects(state, url).await?.files;
    Ok(files.iter().filter(|file| file.size > 0).filter_map(|file| format_of(&file.path)).collect())
}

struct RemoteFolder<'a> {
    url: &'a StoreUrl,
    store: Arc<dyn ObjectStore>,
}

impl<'a> RemoteFolder<'a> {
    fn open(state: &dyn Session, url: &'a StoreUrl) -> Result<Self> {
        Ok(Self { url, store: state.runtime_env().object_store(url.object_store_url()?)? })
    }

    /// Returns the object of exactly that name, if there is one.
    async fn object(&self, url: &StoreUrl) -> Result<Option<LocatedFile>> {
        if url.is_web() && url.is_folder() {
            return Err(no_listing(url));
        }
        match self.store.head(&url.path_of(url.key())?).await {
            Ok(meta) => Ok(Some(self.located(meta, "", url.key())?)),
            Err(StoreFailure::NotFound { .. }) => Ok(None),
            Err(error) => Err(engine_error(error)),
        }
    }

    /// Returns a dataset as one file; Lance finds its objects itself.
    async fn dataset(&self, url: &StoreUrl) -> Result<Option<LocatedFile>> {
        if url.is_web() {
            return Err(no_listing(url));
        }
        let versions = match url.key() {
            "" => LANCE_VERSIONS.to_owned(),
            key => format!("{key}/{LANCE_VERSIONS}"),
        };
        let first = self.store.list(Some(&url.path_of(&versions)?)).try_next().await.map_err(engine_error)?;
        Ok(first.map(|manifest| LocatedFile {
            path: self.path(url.key()),
            size: manifest.size.max(1),
            modified: SystemTime::from(manifest.last_modified),
            inode: None,
            partition: Vec::new(),
            object: None,
        }))
    }

    async fn below(&self, url: &StoreUrl) -> Result<ObjectListing> {
        let base = url.base();
        let space = format!("{}/", url.path_prefix());
        let mut listed = self.store.list(Some(&url.path_of(base)?));
        let mut found = Vec::new();
        let mut datasets = BTreeSet::new();
        while let Some(meta) = listed.try_next().await.map_err(engine_error)? {
            let path = String::from(meta.location.clone());
            let key = path.strip_prefix(&space).unwrap_or(&path);
            let below = key.strip_prefix(base).unwrap_or(key).trim_start_matches('/');
            let is_hidden = |part: &&str| part.starts_with(['.', '_']);
            if let Some(hidden) = below.split('/').find(is_hidden) {
                if hidden == LANCE_VERSIONS {
                    let folders = below.split('/').take_while(|part| !is_hidden(part));
                    datasets.insert(folders.fold(self.path(base), |path, folder| path.join(folder)));
                }
                continue;
            }
            if below.is_empty() {
                continue;
            }
            if found.len() == MOST_OBJECTS {
                return Err(EngineError::BadData {
                    location: url.to_string(),
                    detail: format!("more than {MOST_OBJECTS} objects are below it; name a narrower prefix"),
                });
            }
            found.push(self.located(meta, below, key)?);
        }
        found.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(ObjectListing { files: found, datasets })
    }

    /// Returns the path of a key as messages name it.
    fn path(&self, key: &str) -> PathBuf {
        match key {
            "" => PathBuf::from(self.url.store()),
            key => PathBuf::from(format!("{}/{key}", self.url.store())),
        }
    }

    /// Returns an object as a file. `below` is the part of its key that the location does not name.
    fn located(&self, meta: ObjectMeta, below: &str, key: &str) -> Result<LocatedFile> {
        Ok(LocatedFile {
            path: self.path(key),
            size: meta.size,
            modified: SystemTime::from(meta.last_modified),
            inode: None,
            partition: partition_of(Path::new(below)),
            object: Some(StoredObject { store: Arc::clone(&self.store), url: self.url.object_store_url()?, meta }),
        })
    }
}

/// Returns whether a pattern matches an object itself, whatever its name ends with, or a folder above it.
fn pattern(url: &StoreUrl, format: FileFormat) -> Result<impl Fn(&LocatedFile) -> bool> {
    let pattern = glob::Pattern::new(url.key())
        .map_err(|error| EngineError::BadData { location: url.to_string(), detail: format!("not a glob: {error}") })?;
    let store = PathBuf::from(url.store());
    Ok(move |file: &LocatedFile| {
        let key = file.path.strip_prefix(&store).unwrap_or(&file.path);
        let is_of_format = format_of(key) == Some(format);
        key.ancestors()
            .enumerate()
            .any(|(above, part)| (above == 0 || is_of_format) && pattern.matches_path_with(part, GLOB))
    })
}

fn no_listing(url: &StoreUrl) -> EngineError {
    EngineError::Unsupported {
        what: format!("a folder of a web server ({url})"),
        hint: "web servers have no listings to rely on; name one file".into(),
    }
}

fn engine_error(error: StoreFailure) -> EngineError {
    EngineError::from(datafusion::error::DataFusionError::ObjectStore(Box::new(error)))
}

/// Returns whether an error only says that there are no files.
pub(crate) fn is_absence(error: &EngineError) -> bool {
    matches!(error, EngineError::NoFiles { .. } | EngineError::Store(StoreError::NoSuchBucket { .. }))
}
