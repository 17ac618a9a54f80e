//! A store as the engine sees it: read-only, below the settings' roots only, its paths told apart from those of other
//! stores, its errors without secrets.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::Utc;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path as StorePath;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::UrlRoot;
use super::error::{StoreError, told};
use super::url::StoreUrl;

/// See above.
#[derive(Debug)]
pub(super) struct Guarded {
    inner: Arc<dyn ObjectStore>,
    place: Place,
    roots: Vec<UrlRoot>,
}

/// How the store and its paths are called.
#[derive(Debug, Clone)]
struct Place {
    /// `s3://bucket`.
    store: String,
    /// What paths begin with outside of it.
    space: String,
}

impl Guarded {
    /// `roots` are those of the URL's store.
    pub(super) fn new(inner: Arc<dyn ObjectStore>, url: &StoreUrl, roots: Vec<UrlRoot>) -> Self {
        Self { inner, place: Place { store: url.store(), space: url.space() }, roots }
    }

    /// The store's own path for one of outside.
    fn inside(&self, path: &StorePath) -> Result<StorePath> {
        let text = path.as_ref();
        let key = text.strip_prefix(self.place.space.as_str()).map(|key| key.strip_prefix('/').unwrap_or(key));
        match key {
            Some(key) if self.roots.iter().any(|root| root.covers_key(key)) => Ok(StorePath::parse(key)?),
            _ => Err(StoreError::Refused {
                location: format!("{}/{}", self.place.store, key.unwrap_or(text)),
                reason: super::root::NOT_NAMED.into(),
            }
            .into()),
        }
    }
}

impl Place {
    fn outside(&self, path: &StorePath) -> Result<StorePath> {
        Ok(StorePath::parse(format!("{}/{path}", self.space))?)
    }

    fn meta(&self, meta: ObjectMeta) -> Result<ObjectMeta> {
        // A server that does not say when a file changed has nothing of it kept.
        let unknown = meta.last_modified.timestamp() <= 0;
        let last_modified = if unknown { Utc::now() } else { meta.last_modified };
        Ok(ObjectMeta { location: self.outside(&meta.location)?, last_modified, ..meta })
    }

    fn told(&self, path: &StorePath, error: &Error) -> Error {
        told(error, &self.store, &format!("{}/{path}", self.store)).into()
    }
}

#[async_trait]
impl ObjectStore for Guarded {
    async fn get_opts(&self, location: &StorePath, options: GetOptions) -> Result<GetResult> {
        let path = self.inside(location)?;
        let mut result = self.inner.get_opts(&path, options).await.map_err(|error| self.place.told(&path, &error))?;
        result.meta = self.place.meta(result.meta)?;
        result.payload = match result.payload {
            GetResultPayload::Stream(bytes) => {
                let place = self.place.clone();
                GetResultPayload::Stream(bytes.map_err(move |error| place.told(&path, &error)).boxed())
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
        let place = self.place.clone();
        let below = (!path.as_ref().is_empty()).then_some(&path);
        let listed = self.inner.list(below);
        listed
            .map(move |meta| meta.map_err(|error| place.told(&path, &error)).and_then(|meta| place.meta(meta)))
            .boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&StorePath>) -> Result<ListResult> {
        let path = self.inside(prefix.unwrap_or(&StorePath::default()))?;
        let below = (!path.as_ref().is_empty()).then_some(&path);
        let listed = self.inner.list_with_delimiter(below).await.map_err(|error| self.place.told(&path, &error))?;
        let objects = listed.objects.into_iter().map(|meta| self.place.meta(meta)).collect::<Result<_>>()?;
        let folders = listed.common_prefixes.iter().map(|path| self.place.outside(path)).collect::<Result<_>>()?;
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

impl fmt::Display for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place.store)
    }
}

fn read_only() -> Error {
    Error::NotSupported { source: "external tables are read, never written".into() }
}
