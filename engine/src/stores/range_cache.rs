//! A cache on the local disk of what was read from an object store: blocks of a fixed length, by the object's name, length and
//! entity tag. The blocks that were not used for the longest time go first.
//!
//! Only objects that are never changed may be read through it: what is cached is not compared with the store again, unless
//! another block of the object is fetched and is of another version. Invariant: a block that is not whole, or not of the object
//! that its name stands for, is fetched again and never returned. A cache that cannot be written costs time and nothing else.

mod block_files;
mod kept_blocks;

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::path::Path as StorePath;
use object_store::{
    Attributes, CopyOptions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use block_files::{BlockFiles, CachedObject};
use kept_blocks::KeptBlocks;

/// The length of a block: what one request to a store returns in about the time that it takes to begin.
const BLOCK_BYTES: u64 = 1 << 20;

/// Blocks of objects on the local disk.
#[derive(Debug)]
pub(crate) struct RangeCache {
    files: BlockFiles,
    limit: u64,
    kept: Mutex<KeptBlocks>,
    loaded: OnceCell<()>,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// What the cache of remote files holds and how it was used, for the operator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileCacheState {
    /// Bytes on the disk.
    pub bytes: u64,
    /// Blocks that were read from the disk.
    pub hits: u64,
    /// Blocks that were fetched from the store.
    pub misses: u64,
}

impl RangeCache {
    /// A cache of at most `limit` bytes in a folder, which is read when the cache is first used.
    pub(crate) fn new(folder: PathBuf, limit: u64) -> Self {
        Self {
            files: BlockFiles::new(folder),
            limit,
            kept: Mutex::default(),
            loaded: OnceCell::new(),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// Returns what it holds and how it was used.
    pub(crate) fn state(&self) -> FileCacheState {
        FileCacheState {
            bytes: self.kept.lock().bytes(),
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
        }
    }

    /// Takes in what an earlier process left.
    async fn load(&self) {
        self.loaded
            .get_or_init(|| async {
                let files = self.files.clone();
                let found = tokio::task::spawn_blocking(move || files.scan()).await.unwrap_or_default();
                let evicted = {
                    let mut kept = self.kept.lock();
                    for (object, blocks) in found {
                        for (number, bytes) in blocks {
                            kept.insert(&object, number, bytes);
                        }
                    }
                    kept.shrink_to(self.limit)
                };
                self.remove_files(evicted).await;
            })
            .await;
    }

    /// Returns an object of which blocks are kept.
    fn object(&self, name: &str) -> Option<Arc<CachedObject>> {
        self.kept.lock().object(name)
    }

    /// Returns the blocks of an object that are on the disk and whole; the others are `None`.
    async fn read(&self, object: &Arc<CachedObject>, numbers: Range<u64>) -> Vec<Option<Bytes>> {
        let known: Vec<bool> = {
            let mut kept = self.kept.lock();
            numbers.clone().map(|number| kept.touch(object, number)).collect()
        };
        let (files, of) = (self.files.clone(), Arc::clone(object));
        let wanted = numbers.clone();
        let reading = tokio::task::spawn_blocking(move || {
            wanted.zip(known).map(|(number, is_known)| is_known.then(|| files.read(&of, number)).flatten()).collect()
        });
        let blocks: Vec<Option<Bytes>> = reading.await.unwrap_or_default();
        let found = blocks.iter().flatten().count() as u64;
        self.hits.fetch_add(found, Ordering::Relaxed);
        blocks
    }

    /// Keeps consecutive blocks of an object that were fetched, the first of which is number `first`.
    async fn keep(&self, object: &Arc<CachedObject>, first: u64, blocks: Vec<Bytes>) {
        self.misses.fetch_add(blocks.len() as u64, Ordering::Relaxed);
        let (files, of) = (self.files.clone(), Arc::clone(object));
        let writing = tokio::task::spawn_blocking(move || {
            let mut written = Vec::with_capacity(blocks.len());
            for (number, block) in (first..).zip(blocks) {
                match files.write(&of, number, &block) {
                    Ok(bytes) => written.push((number, bytes)),
                    Err(error) => {
                        tracing::warn!(%error, "the cache of remote files cannot be written");
                        break;
                    }
                }
            }
            written
        });
        let written = writing.await.unwrap_or_default();
        let evicted = {
            let mut kept = self.kept.lock();
            for (number, bytes) in written {
                kept.insert(object, number, bytes);
            }
            kept.shrink_to(self.limit)
        };
        self.remove_files(evicted).await;
    }

    /// Forgets an object of which the store has another version.
    async fn forget(&self, name: &str) {
        let evicted = self.kept.lock().remove_object(name);
        self.remove_files(evicted).await;
    }

    async fn remove_files(&self, evicted: Vec<(Arc<CachedObject>, u64)>) {
        if evicted.is_empty() {
            return;
        }
        let files = self.files.clone();
        let removing = tokio::task::spawn_blocking(move || {
            for (object, number) in evicted {
                files.remove(&object, number);
            }
        });
        if let Err(error) = removing.await {
            tracing::warn!(%error, "files of the cache of remote files stay");
        }
    }
}

/// A store that is read through a cache.
#[derive(Debug)]
pub(super) struct CachedStore {
    inner: Arc<dyn ObjectStore>,
    cache: Arc<RangeCache>,
    /// Which store it is, so that one folder can hold blocks of several.
    name: String,
}

impl CachedStore {
    pub(super) fn new(inner: Arc<dyn ObjectStore>, cache: Arc<RangeCache>, name: String) -> Self {
        Self { inner, cache, name }
    }

    /// Returns a part of an object, from the disk as far as it is there.
    async fn get_part(&self, location: &StorePath, wanted: Range<u64>) -> Result<GetResult> {
        self.cache.load().await;
        let name = format!("{}/{location}", self.name);
        if let Some(object) = self.cache.object(&name) {
            if wanted.start >= object.size {
                return self.refused(location, wanted).await;
            }
            if let Some(part) = self.assemble(location, &object, wanted.start..wanted.end.min(object.size)).await? {
                return Ok(part);
            }
            self.cache.forget(&name).await;
        }
        let (object, first, blocks) = self.fetch(location, &name, blocks_of(&wanted)).await?;
        if wanted.start >= object.size {
            return self.refused(location, wanted).await;
        }
        let within = wanted.start..wanted.end.min(object.size);
        let part = joined(&blocks, first, &within);
        self.cache.keep(&object, first, blocks).await;
        Ok(part_of(location, &object, within, part))
    }

    /// Joins what is on the disk with what has to be fetched. `None`: the store has another version of the object.
    async fn assemble(
        &self,
        location: &StorePath,
        object: &Arc<CachedObject>,
        wanted: Range<u64>,
    ) -> Result<Option<GetResult>> {
        let numbers = blocks_of(&wanted);
        let mut blocks = self.cache.read(object, numbers.clone()).await;
        blocks.resize(usize::try_from(numbers.end - numbers.start).unwrap_or_default(), None);
        let mut at = 0;
        while at < blocks.len() {
            let missing = blocks[at..].iter().take_while(|block| block.is_none()).count();
            if missing == 0 {
                at += 1;
                continue;
            }
            let first = numbers.start + at as u64;
            let (found, _, fetched) = self.fetch(location, &object.name, first..first + missing as u64).await?;
            if *found != **object || fetched.len() != missing {
                return Ok(None);
            }
            for (slot, block) in blocks[at..].iter_mut().zip(&fetched) {
                *slot = Some(block.clone());
            }
            self.cache.keep(object, first, fetched).await;
            at += missing;
        }
        let blocks: Vec<Bytes> = blocks.into_iter().flatten().collect();
        let part = joined(&blocks, numbers.start, &wanted);
        Ok(Some(part_of(location, object, wanted, part)))
    }

    /// Requests what begins after the object's end, which the store refuses in its own words.
    async fn refused(&self, location: &StorePath, wanted: Range<u64>) -> Result<GetResult> {
        let options = GetOptions { range: Some(GetRange::Bounded(wanted)), ..GetOptions::default() };
        self.inner.get_opts(location, options).await
    }

    /// Fetches consecutive blocks in one request; fewer where the object ends.
    async fn fetch(
        &self,
        location: &StorePath,
        name: &str,
        numbers: Range<u64>,
    ) -> Result<(Arc<CachedObject>, u64, Vec<Bytes>)> {
        let range = numbers.start * BLOCK_BYTES..numbers.end * BLOCK_BYTES;
        let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
        let result = self.inner.get_opts(location, options).await?;
        let object = Arc::new(CachedObject::new(name, &result.meta));
        let mut content = result.bytes().await?;
        let mut blocks = Vec::new();
        while !content.is_empty() {
            let block = usize::try_from(BLOCK_BYTES).unwrap_or(usize::MAX).min(content.len());
            blocks.push(content.split_to(block));
        }
        Ok((object, numbers.start, blocks))
    }
}

/// Returns the numbers of the blocks that a range touches.
fn blocks_of(range: &Range<u64>) -> Range<u64> {
    range.start / BLOCK_BYTES..range.end.div_ceil(BLOCK_BYTES)
}

/// Returns a range of an object whose blocks from number `first` on these are.
fn joined(blocks: &[Bytes], first: u64, range: &Range<u64>) -> Bytes {
    let start = usize::try_from(range.start - first * BLOCK_BYTES).unwrap_or_default();
    let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or_default();
    if let [only] = blocks {
        return only.slice(start.min(only.len())..(start + length).min(only.len()));
    }
    let mut joined = BytesMut::with_capacity(length);
    let mut skipped = start;
    for block in blocks {
        let from = skipped.min(block.len());
        skipped -= from;
        let to = (from + length - joined.len()).min(block.len());
        joined.extend_from_slice(&block[from..to]);
    }
    joined.freeze()
}

fn part_of(location: &StorePath, object: &CachedObject, range: Range<u64>, part: Bytes) -> GetResult {
    let meta = ObjectMeta {
        location: location.clone(),
        last_modified: object.modified,
        size: object.size,
        e_tag: object.e_tag.clone(),
        version: object.version.clone(),
    };
    let payload = GetResultPayload::Stream(stream::once(async { Ok(part) }).boxed());
    GetResult { payload, meta, range, attributes: Attributes::default() }
}

#[async_trait]
impl ObjectStore for CachedStore {
    async fn get_opts(&self, location: &StorePath, options: GetOptions) -> Result<GetResult> {
        let has_condition = options.if_match.is_some()
            || options.if_none_match.is_some()
            || options.if_modified_since.is_some()
            || options.if_unmodified_since.is_some()
            || options.version.is_some();
        match &options.range {
            Some(GetRange::Bounded(range)) if !has_condition && !options.head && range.start < range.end => {
                self.get_part(location, range.clone()).await
            }
            _ => self.inner.get_opts(location, options).await,
        }
    }

    fn list(&self, prefix: Option<&StorePath>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&StorePath>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn put_opts(&self, location: &StorePath, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &StorePath,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<StorePath>>) -> BoxStream<'static, Result<StorePath>> {
        self.inner.delete_stream(paths)
    }

    async fn copy_opts(&self, from: &StorePath, to: &StorePath, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

impl fmt::Display for CachedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} through a cache", self.inner)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests may block")]
mod tests;
