//! The newest snapshot that a catalog's file has held, in a file beside it. SQLite opens a catalog whose log was lost or cut short,
//! and an older copy of it, without a word: what was committed since would not be missed, its numbers given again, and its files
//! removed as those of no table.
//!
//! Invariant: the mark is written after the commit, so that it never says more than was durable.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::error::{CatalogError, Result};
use crate::model::SnapshotId;

/// The file's name.
const MARK_FILE: &str = "querent.snapshot";

/// The mark of a catalog that is open.
pub(super) struct HighWaterMark {
    /// `None` where it cannot be written.
    file: Option<File>,
    path: PathBuf,
    catalog_id: String,
}

impl HighWaterMark {
    /// Opens the mark beside a catalog's file, and moves it to the newest snapshot that is there. The mark of another catalog,
    /// which was there before, counts for nothing. Blocks for a moment. Errors: `catalog_corrupt`, where the catalog held a later
    /// snapshot.
    pub(super) fn open(catalog: &Path, catalog_id: String, newest: SnapshotId) -> Result<Self> {
        let path = catalog.with_file_name(MARK_FILE);
        let file = match open_file(&path) {
            Ok((file, text)) => {
                if let Some(held) = held_snapshot(&text, &catalog_id).filter(|held| *held > newest) {
                    let detail = format!(
                        "it ends with snapshot {newest}, and snapshot {held} was committed: its log, {}-wal, was lost or cut \
                         short, or this is an older copy; to go on as it is, without what was committed since, remove {}",
                        catalog.display(),
                        path.display()
                    );
                    return Err(CatalogError::Corrupt { path: catalog.to_path_buf(), detail });
                }
                Some(file)
            }
            Err(error) => {
                tracing::warn!(file = %path.display(), %error, "whether the catalog loses commits is not seen");
                None
            }
        };
        let mark = Self { file, path, catalog_id };
        mark.note(newest);
        Ok(mark)
    }

    /// Notes a snapshot that was committed.
    pub(super) fn note(&self, snapshot: SnapshotId) {
        let Some(file) = &self.file else { return };
        // Always as long, so that what is written over leaves nothing behind.
        let text = format!("{snapshot:020} {}\n", self.catalog_id);
        if let Err(error) = file.write_all_at(text.as_bytes(), 0) {
            tracing::debug!(file = %self.path.display(), %error, "a commit is not noted");
        }
    }
}

fn open_file(path: &Path) -> std::io::Result<(File, String)> {
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok((file, String::from_utf8_lossy(&text).into_owned()))
}

/// Returns the snapshot of a mark; `None` of a mark of another catalog, and of one that was not written whole.
fn held_snapshot(text: &str, catalog_id: &str) -> Option<SnapshotId> {
    let (snapshot, id) = text.lines().next()?.split_once(' ')?;
    if id == catalog_id { snapshot.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_mark_of_the_same_catalog_counts() {
        assert_eq!(held_snapshot("00000000000000000017 a\n", "a"), Some(17));
        for other in ["00000000000000000017 b\n", "", "\0\0\0\0", "17", "x a\n"] {
            assert_eq!(held_snapshot(other, "a"), None, "{other:?}");
        }
    }
}
