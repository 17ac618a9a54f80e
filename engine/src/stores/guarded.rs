//! A store as the engine sees it: read-only, only below the settings' roots, with paths that differ from those of other
//! stores and errors without secrets.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Timelike, Utc};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path as StorePath;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::UrlRoot;
use super::client_error::redacted_error;
use super::url::StoreUrl;
use super::versioned_object::entity_tag;
use crate::error::StoreError;

/// A store that can only be read, and only below its roots.
#[derive(Debug)]
pub(super) struct GuardedStore {
    inner: Arc<dyn ObjectStore>,
    prefix: StorePrefix,
    roots: Vec<UrlRoot>,
}

/// The names of the store and of its paths outside of it.
#[derive(Debug, Clone)]
struct StorePrefix {
    /// `s3://bucket`.
    store: String,
    /// What the paths of its objects begin with outside of it.
    path_prefix: String,
}

impl GuardedStore {
    /// `roots` are those of the URL's store.
    pub(super) fn new(inner: Arc<dyn ObjectStore>, url: &StoreUrl, roots: Vec<UrlRoot>) -> Self {
        Self { inner, prefix: StorePrefix { store: url.store(), path_prefix: url.path_prefix() }, roots }
    }

    /// Returns the store's own path for a path of outside. Errors: a path that is not below a root.
    fn inside(&self, path: &StorePath) -> Result<StorePath> {
        let text = path.as_ref();
        let key = text.strip_prefix(self.prefix.path_prefix.as_str()).map(|key| key.strip_prefix('/').unwrap_or(key));
        match key {
            Some(key) if self.roots.iter().any(|root| root.covers_key(key)) => Ok(StorePath::parse(key)?),
            _ => Err(StoreError::Refused {
                location: format!("{}/{}", self.prefix.store, key.unwrap_or(text)),
                reason: super::root::NOT_NAMED.into(),
            }
            .into()),
        }
    }
}

impl StorePrefix {
    fn outside(&self, path: &StorePath) -> Result<StorePath> {
        Ok(StorePath::parse(format!("{}/{path}", self.path_prefix))?)
    }

    fn meta(&self, meta: ObjectMeta) -> Result<ObjectMeta> {
        // Nothing is cached of a file of a server that does not say when it changed.
        let unknown = meta.last_modified.timestamp() <= 0;
        let last_modified = if unknown { Utc::now() } else { within_second(&meta) };
        Ok(ObjectMeta { location: self.outside(&meta.location)?, last_modified, ..meta })
    }

    fn redacted(&self, path: &StorePath, error: &Error) -> Error {
        redacted_error(error, &self.store, &format!("{}/{path}", self.store)).into()
    }
}

#[async_trait]
impl ObjectStore for GuardedStore {
    async fn get_opts(&self, location: &StorePath, options: GetOptions) -> Result<GetResult> {
        let path = self.inside(location)?;
        let mut result =
            self.inner.get_opts(&path, options).await.map_err(|error| self.prefix.redacted(&path, &error))?;
        result.meta = self.prefix.meta(result.meta)?;
        result.payload = match result.payload {
            GetResultPayload::Stream(bytes) => {
                let prefix = self.prefix.clone();
                GetResultPayload::Stream(bytes.map_err(move |error| prefix.redacted(&path, &error)).boxed())
            }
            file @ GetResultPayload::File(..) => file,
        };
        Ok(result)
    }

    fn list(&self, prefix: Option<&StorePath>) -> BoxStream<'static, Result<ObjectMeta>> {
        let root = StorePath::default();
        let path = match self.inside(prefix.unwrap_or(&root)) {
            Ok(path) => path,
            Err(error) => return stream::once(async { Err(error) }).boxed(),
        };
        let prefix = self.prefix.clone();
        let below = (!path.as_ref().is_empty()).then_some(&path);
        let listed = self.inner.list(below);
        listed
            .map(move |meta| meta.map_err(|error| prefix.redacted(&path, &error)).and_then(|meta| prefix.meta(meta)))
            .boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&StorePath>) -> Result<ListResult> {
        let path = self.inside(prefix.unwrap_or(&StorePath::default()))?;
        let below = (!path.as_ref().is_empty()).then_some(&path);
        let listed =
            self.inner.list_with_delimiter(below).await.map_err(|error| self.prefix.redacted(&path, &error))?;
        let objects = listed.objects.into_iter().map(|meta| self.prefix.meta(meta)).collect::<Result<_>>()?;
        let folders = listed.common_prefixes.iter().map(|path| self.prefix.outside(path)).collect::<Result<_>>()?;
        Ok(ListResult { common_prefixes: folders, objects })
    }

    async fn put_opts(&self, _: &StorePath, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        Err(read_only())
    }

    async fn put_multipart_opts(&self, _: &StorePath, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Err(read_only())
    }

    fn delete_stream(&self, _: BoxStream<'static, Result<StorePath>>) -> BoxStream<'static, Result<StorePath>> {
        stream::once(async { Err(read_only()) }).boxed()
    }

    async fn copy_opts(&self, _: &StorePath, _: &StorePath, _: CopyOptions) -> Result<()> {
        Err(read_only())
    }
}

impl fmt::Display for GuardedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.prefix.store)
    }
}

/// Returns the time of an object, which stores tell in whole seconds, at a place within the second that its entity tag gives it:
/// what is cached by time is not taken for what replaced it in the same second.
fn within_second(meta: &ObjectMeta) -> DateTime<Utc> {
    let Some(tag) = entity_tag(meta) else { return meta.last_modified };
    let mut hasher = DefaultHasher::new();
    tag.hash(&mut hasher);
    let nanos = u32::try_from(hasher.finish() % 1_000_000_000).unwrap_or_default();
    meta.last_modified.with_nanosecond(nanos).unwrap_or(meta.last_modified)
}

fn read_only() -> Error {
    Error::NotSupported { source: "it is read here, never written".into() }
}
