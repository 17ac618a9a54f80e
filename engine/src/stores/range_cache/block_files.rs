//! The files of cached blocks: a folder an object, with what the object is and one file a block. Blocks.
//!
//! A block's file ends with a checksum over the object and the block, so that what a crash left half written, or what belongs
//! to another object, is not taken for it.

#![expect(clippy::disallowed_methods, reason = "runs on blocking threads alone")]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use object_store::ObjectMeta;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::BLOCK_BYTES;

/// The file that says what the object is.
const OBJECT: &str = "object.json";
/// How files are named that are being written.
const UNFINISHED: &str = "unfinished-";
/// The bytes of a checksum.
const SUM: usize = 8;

/// An object that is on the disk, with the number and the length of each of its blocks.
type FoundObject = (Arc<CachedObject>, Vec<(u64, u64)>);

/// A version of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CachedObject {
    /// The store and the object's name there.
    pub name: String,
    pub size: u64,
    pub e_tag: Option<String>,
    pub version: Option<String>,
    pub modified: DateTime<Utc>,
}

impl CachedObject {
    pub(super) fn new(name: &str, meta: &ObjectMeta) -> Self {
        Self {
            name: name.to_owned(),
            size: meta.size,
            e_tag: meta.e_tag.clone(),
            version: meta.version.clone(),
            modified: meta.last_modified,
        }
    }

    /// Returns the length of a block: whole, or what is left at the end.
    fn block_bytes(&self, number: u64) -> u64 {
        self.size.saturating_sub(number * BLOCK_BYTES).min(BLOCK_BYTES)
    }

    fn checksum(&self, number: u64, block: &[u8]) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.name, self.size, &self.e_tag, &self.version, number).hash(&mut hasher);
        hasher.write(block);
        hasher.finish()
    }

    fn folder_name(&self) -> String {
        let hash = |seed: u8| {
            let mut hasher = DefaultHasher::new();
            (seed, &self.name).hash(&mut hasher);
            hasher.finish()
        };
        format!("{:016x}{:016x}", hash(1), hash(2))
    }
}

/// The folder of all blocks.
#[derive(Debug, Clone)]
pub(super) struct BlockFiles {
    folder: PathBuf,
}

impl BlockFiles {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Returns what is there: objects with the numbers and lengths of their blocks' files. What is not whole is removed.
    pub(super) fn scan(&self) -> Vec<FoundObject> {
        let mut found = Vec::new();
        let Ok(folders) = std::fs::read_dir(&self.folder) else { return found };
        for folder in folders.flatten().map(|entry| entry.path()) {
            match self.scan_object(&folder) {
                Some(object) => found.push(object),
                None => drop(std::fs::remove_dir_all(&folder)),
            }
        }
        found
    }

    fn scan_object(&self, folder: &Path) -> Option<FoundObject> {
        let object: CachedObject = serde_json::from_slice(&std::fs::read(folder.join(OBJECT)).ok()?).ok()?;
        if self.folder_of(&object) != folder {
            return None;
        }
        let mut blocks = Vec::new();
        for entry in std::fs::read_dir(folder).ok()?.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let length = entry.metadata().map_or(0, |found| found.len());
            match name.parse::<u64>() {
                Ok(number) if length == object.block_bytes(number) + SUM as u64 => blocks.push((number, length)),
                Err(_) if name == OBJECT => {}
                Ok(_) | Err(_) => drop(std::fs::remove_file(entry.path())),
            }
        }
        Some((Arc::new(object), blocks))
    }

    /// Returns a block that is there and whole.
    pub(super) fn read(&self, object: &CachedObject, number: u64) -> Option<Bytes> {
        let content = Bytes::from(std::fs::read(self.folder_of(object).join(number.to_string())).ok()?);
        let length = content.len().checked_sub(SUM)?;
        let (block, sum) = (content.slice(..length), content.slice(length..));
        let is_whole = length as u64 == object.block_bytes(number)
            && sum.as_ref() == object.checksum(number, &block).to_le_bytes().as_slice();
        is_whole.then_some(block)
    }

    /// Writes a block and returns the bytes of its file. Errors: one of a wrong length.
    pub(super) fn write(&self, object: &CachedObject, number: u64, block: &[u8]) -> Result<u64> {
        if block.len() as u64 != object.block_bytes(number) {
            return Err(Error::other(format!("block {number} of {} has {} bytes", object.name, block.len())));
        }
        let folder = self.folder_of(object);
        std::fs::create_dir_all(&folder)?;
        let about = folder.join(OBJECT);
        let text = serde_json::to_vec(object)?;
        if std::fs::read(&about).ok().as_ref() != Some(&text) {
            replace(&about, &[&text])?;
        }
        let sum = object.checksum(number, block).to_le_bytes();
        replace(&folder.join(number.to_string()), &[block, &sum])?;
        Ok((block.len() + SUM) as u64)
    }

    /// Removes a block, and the object's folder with the last one.
    pub(super) fn remove(&self, object: &CachedObject, number: u64) {
        let folder = self.folder_of(object);
        // What is not there need not be removed.
        let _ = std::fs::remove_file(folder.join(number.to_string()));
        let is_last = std::fs::read_dir(&folder).is_ok_and(|mut entries| {
            entries.all(|entry| entry.is_ok_and(|entry| entry.file_name().to_string_lossy() == OBJECT))
        });
        if is_last {
            let _ = std::fs::remove_dir_all(&folder);
        }
    }

    fn folder_of(&self, object: &CachedObject) -> PathBuf {
        self.folder.join(object.folder_name())
    }
}

/// Writes a file beside its place and moves it there.
fn replace(path: &Path, parts: &[&[u8]]) -> Result<()> {
    use std::io::Write;

    let unfinished = path.with_file_name(format!("{UNFINISHED}{}", Uuid::now_v7()));
    let written = std::fs::File::create(&unfinished)
        .and_then(|mut file| parts.iter().try_for_each(|part| file.write_all(part)))
        .and_then(|()| std::fs::rename(&unfinished, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    written
}
