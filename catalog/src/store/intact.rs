//! What can be told of a catalog's file before it is opened, whatever its size: whether its end is missing, and whether it is empty
//! beside the files of tables. SQLite itself opens both, and the loss would show later, or as an empty catalog. And whether an
//! open one is still in its place: SQLite writes on to a file that was removed, and all of that is lost when it is closed.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::error::{CatalogError, Result};

/// SQLite's header; <https://sqlite.org/fileformat.html>, section 1.3.
const HEADER_BYTES: usize = 100;

/// Returns an error where the file is shorter than its header says. While there is a log, the file may be.
/// Errors: `catalog_corrupt`, `io_error`.
pub(super) fn require_whole_file(file: &Path) -> Result<()> {
    let io_error = |source| CatalogError::of_file(file, source);
    #[expect(clippy::disallowed_methods, reason = "on a blocking thread")]
    let mut opened = match std::fs::File::open(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(io_error)?,
    };
    let length = opened.metadata().map_err(io_error)?.len();
    let log = file.with_extension("sqlite-wal");
    let has_log = log.metadata().is_ok_and(|log| log.len() > 0);
    if has_log {
        // After a crash, or beside another program that has it open.
        tracing::info!(log = %log.display(), "the catalog was not closed: what was committed is taken from its log");
    }
    let mut header = [0_u8; HEADER_BYTES];
    if has_log || length == 0 || opened.read_exact(&mut header).is_err() {
        // What is no SQLite file is told when it is opened.
        return Ok(());
    }
    match expected_length(&header) {
        Some(expected) if length < expected => Err(CatalogError::Corrupt {
            path: file.to_path_buf(),
            detail: format!("it has {length} bytes instead of {expected}"),
        }),
        _ => Ok(()),
    }
}

/// The file that a catalog was opened as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenedFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl OpenedFile {
    /// The file that is there now. Blocks for a moment. Errors: `io_error`.
    pub(super) fn of(path: &Path) -> Result<Self> {
        let found = path.metadata().map_err(|source| CatalogError::of_file(path, source))?;
        Ok(Self { path: path.to_path_buf(), device: found.dev(), inode: found.ino() })
    }

    /// Returns an error where the file was removed or another took its place: what is written to it would be lost. Blocks for a
    /// moment. Errors: `catalog_corrupt`.
    pub(super) fn require_in_place(&self) -> Result<()> {
        if Self::of(&self.path).is_ok_and(|found| found == *self) {
            return Ok(());
        }
        let detail =
            "it was removed or replaced while it was open, and nothing more is written; stop this process".to_owned();
        Err(CatalogError::Corrupt { path: self.path.clone(), detail })
    }
}

/// Returns an error where there are files of tables: an empty catalog is then one that was lost. Errors: `catalog_corrupt`.
pub(super) fn require_no_files(file: &Path, data: &Path) -> Result<()> {
    if holds_files(data) {
        let detail = format!(
            "it is empty, and {} holds files of tables; restore a backup of it, or move those files away",
            data.display()
        );
        return Err(CatalogError::Corrupt { path: file.to_path_buf(), detail });
    }
    Ok(())
}

fn holds_files(folder: &Path) -> bool {
    let Ok(entries) = folder.read_dir() else { return false };
    entries.filter_map(|entry| entry.ok()).any(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => holds_files(&entry.path()),
        Ok(_) => true,
        Err(_) => false,
    })
}

/// Returns how long a file is by its header; `None` where a program that does not write that wrote last.
fn expected_length(header: &[u8; HEADER_BYTES]) -> Option<u64> {
    let number = |at: usize| header.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
    let page = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        bytes => u64::from(bytes),
    };
    (header.starts_with(b"SQLite format 3\0") && number(24)? == number(92)?).then_some(())?;
    Some(u64::from(number(28)?) * page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_how_long_its_file_is() {
        let mut header = [0; HEADER_BYTES];
        assert_eq!(expected_length(&header), None);
        header[..16].copy_from_slice(b"SQLite format 3\0");
        header[16..18].copy_from_slice(&4_096_u16.to_be_bytes());
        header[28..32].copy_from_slice(&7_u32.to_be_bytes());
        assert_eq!(expected_length(&header), Some(7 * 4_096));
        header[27] = 1;
        assert_eq!(expected_length(&header), None, "the count is of an earlier state");
        header[95] = 1;
        header[16..18].copy_from_slice(&1_u16.to_be_bytes());
        assert_eq!(expected_length(&header), Some(7 * 65_536));
    }
}
