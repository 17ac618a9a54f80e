//! The folder of a dataset in a store for Lance, which uses a later version of the `object_store` crate. Lance opens no store
//! itself, and sees nothing outside of the folder.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use lance_object_store::path::Path as LancePath;
use lance_object_store::{
    Attributes, CopyOptions, Error, Extensions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore as LanceObjectStore, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result,
};
use object_store::ObjectStore;
use object_store::path::Path as StorePath;

/// The folder of a dataset, with paths relative to it.
#[derive(Debug)]
pub(crate) struct DatasetFolder {
    store: Arc<dyn ObjectStore>,
    folder: StorePath,
}

impl DatasetFolder {
    /// `folder` is a path of the store.
    pub(crate) fn new(store: Arc<dyn ObjectStore>, folder: StorePath) -> Self {
        Self { store, folder }
    }

    fn inside(&self, path: &LancePath) -> Result<StorePath> {
        let joined = if path.as_ref().is_empty() { self.folder.to_string() } else { format!("{}/{path}", self.folder) };
        StorePath::parse(joined).map_err(|error| other(object_store::Error::from(error)))
    }
}

/// Returns the path within the folder of a path of the store.
fn outside(folder: &StorePath, path: &StorePath) -> Result<LancePath> {
    let below = path.as_ref().strip_prefix(folder.as_ref()).unwrap_or(path.as_ref());
    Ok(LancePath::parse(below.trim_start_matches('/'))?)
}

fn meta(folder: &StorePath, meta: object_store::ObjectMeta) -> Result<ObjectMeta> {
    let object_store::ObjectMeta { location, last_modified, size, e_tag, version } = meta;
    Ok(ObjectMeta { location: outside(folder, &location)?, last_modified, size, e_tag, version })
}

fn options(options: GetOptions) -> object_store::GetOptions {
    let range = options.range.map(|range| match range {
        GetRange::Bounded(range) => object_store::GetRange::Bounded(range),
        GetRange::Offset(offset) => object_store::GetRange::Offset(offset),
        GetRange::Suffix(length) => object_store::GetRange::Suffix(length),
    });
    object_store::GetOptions {
        if_match: options.if_match,
        if_none_match: options.if_none_match,
        if_modified_since: options.if_modified_since,
        if_unmodified_since: options.if_unmodified_since,
        range,
        version: options.version,
        head: options.head,
        extensions: options.extensions,
    }
}

/// Converts an error. Lance distinguishes only objects that do not exist from those that cannot be read.
fn other(error: object_store::Error) -> Error {
    match error {
        object_store::Error::NotFound { ref path, .. } => {
            Error::NotFound { path: path.clone(), source: Box::new(error) }
        }
        error => Error::Generic { store: "external", source: Box::new(error) },
    }
}

fn read_only() -> Error {
    Error::NotSupported { source: "external tables are read, never written".into() }
}

#[async_trait]
impl LanceObjectStore for DatasetFolder {
    async fn get_opts(&self, location: &LancePath, wanted: GetOptions) -> Result<GetResult> {
        let result = self.store.get_opts(&self.inside(location)?, options(wanted)).await.map_err(other)?;
        Ok(GetResult {
            meta: meta(&self.folder, result.meta.clone())?,
            range: result.range.clone(),
            attributes: Attributes::default(),
            extensions: Extensions::default(),
            payload: GetResultPayload::Stream(result.into_stream().map_err(other).boxed()),
        })
    }

    fn list(&self, prefix: Option<&LancePath>) -> BoxStream<'static, Result<ObjectMeta>> {
        let path = match self.inside(prefix.unwrap_or(&LancePath::default())) {
            Ok(path) => path,
            Err(error) => return stream::once(async { Err(error) }).boxed(),
        };
        let folder = self.folder.clone();
        self.store.list(Some(&path)).map(move |listed| meta(&folder, listed.map_err(other)?)).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&LancePath>) -> Result<ListResult> {
        let path = self.inside(prefix.unwrap_or(&LancePath::default()))?;
        let listed = self.store.list_with_delimiter(Some(&path)).await.map_err(other)?;
        Ok(ListResult {
            common_prefixes: listed
                .common_prefixes
                .iter()
                .map(|path| outside(&self.folder, path))
                .collect::<Result<_>>()?,
            objects: listed.objects.into_iter().map(|object| meta(&self.folder, object)).collect::<Result<_>>()?,
            extensions: Extensions::default(),
        })
    }

    async fn put_opts(&self, _: &LancePath, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        Err(read_only())
    }

    async fn put_multipart_opts(&self, _: &LancePath, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Err(read_only())
    }

    fn delete_stream(&self, _: BoxStream<'static, Result<LancePath>>) -> BoxStream<'static, Result<LancePath>> {
        stream::once(async { Err(read_only()) }).boxed()
    }

    async fn copy_opts(&self, _: &LancePath, _: &LancePath, _: CopyOptions) -> Result<()> {
        Err(read_only())
    }
}

impl fmt::Display for DatasetFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.folder, self.store)
    }
}
