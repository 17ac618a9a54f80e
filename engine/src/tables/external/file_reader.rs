//! A file's bytes for readers on blocking threads, wherever it lies.

use std::fs::File;
use std::io::{Error, Read, Result as IoResult, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use object_store::{ObjectMeta, ObjectStoreExt as _};
use tokio::runtime::Handle;

use super::location::LocatedFile;
use super::unreadable;
use crate::error::Result;
use crate::stores::VersionedObject;

/// The bytes that are fetched of an object first, where often only a header is read.
const FIRST_BYTES: u64 = 64 << 10;
/// The most bytes that are fetched at a time: few requests, and bounded memory for any number of readers.
const BLOCK_BYTES: u64 = 4 << 20;
/// How many times larger each next block is.
const GROWTH: u64 = 4;

/// Opens a local file. Blocks.
#[expect(clippy::disallowed_methods, reason = "callers run on a blocking thread")]
pub(crate) fn open_local(path: &Path) -> Result<File> {
    File::open(path).map_err(|error| unreadable(path, &error))
}

/// Opens a file. Blocks, as reading does.
pub(crate) fn open(file: &LocatedFile) -> Result<OpenSourceFile> {
    match &file.object {
        None => open_local(&file.path).map(OpenSourceFile::Local),
        Some(object) => Ok(OpenSourceFile::Stored(Box::new(ObjectReader {
            store: VersionedObject::new(Arc::clone(&object.store), object.meta.clone()),
            meta: object.meta.clone(),
            runtime: Handle::current(),
            at: 0,
            block: Bytes::new(),
            block_starts: 0,
            next_bytes: FIRST_BYTES,
        }))),
    }
}

/// A file that is being read.
pub(crate) enum OpenSourceFile {
    Local(File),
    Stored(Box<ObjectReader>),
}

impl Read for OpenSourceFile {
    fn read(&mut self, buffer: &mut [u8]) -> IoResult<usize> {
        match self {
            OpenSourceFile::Local(file) => file.read(buffer),
            OpenSourceFile::Stored(object) => object.read(buffer),
        }
    }
}

impl Seek for OpenSourceFile {
    fn seek(&mut self, to: SeekFrom) -> IoResult<u64> {
        match self {
            OpenSourceFile::Local(file) => file.seek(to),
            OpenSourceFile::Stored(object) => object.seek(to),
        }
    }
}

/// An object, read block by block.
pub(crate) struct ObjectReader {
    store: VersionedObject,
    meta: ObjectMeta,
    runtime: Handle,
    at: u64,
    block: Bytes,
    block_starts: u64,
    next_bytes: u64,
}

impl ObjectReader {
    /// Returns what the block holds from the position that is read next.
    fn ahead(&self) -> &[u8] {
        let skipped = self.at.checked_sub(self.block_starts).and_then(|skipped| usize::try_from(skipped).ok());
        skipped.and_then(|skipped| self.block.get(skipped..)).unwrap_or_default()
    }

    #[expect(clippy::disallowed_methods, reason = "readers run on blocking threads")]
    fn fetch(&mut self) -> IoResult<()> {
        let until = self.at.saturating_add(self.next_bytes).min(self.meta.size);
        let fetched = self.store.get_range(&self.meta.location, self.at..until);
        self.block = self.runtime.block_on(fetched).map_err(Error::other)?;
        self.block_starts = self.at;
        self.next_bytes = (self.next_bytes * GROWTH).min(BLOCK_BYTES);
        Ok(())
    }
}

impl Read for ObjectReader {
    fn read(&mut self, buffer: &mut [u8]) -> IoResult<usize> {
        if buffer.is_empty() || self.at >= self.meta.size {
            return Ok(0);
        }
        if self.ahead().is_empty() {
            self.fetch()?;
        }
        let mut ahead = self.ahead();
        let read = ahead.read(buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for ObjectReader {
    fn seek(&mut self, to: SeekFrom) -> IoResult<u64> {
        let to = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.meta.size.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = to.ok_or_else(|| Error::from(std::io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}
