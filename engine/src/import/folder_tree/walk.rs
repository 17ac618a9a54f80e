//! The folders of a local tree: which of them are tables, by their names and the names of their files. No file is opened.
//!
//! A folder of files of one format is a table; so is one of partition folders (`key=value`), and so is a Lance dataset.
//! Its other folders are tables of their own. Hidden names (`.`, `_`) and symbolic links are skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use querent_catalog::FileFormat;
use tokio::sync::mpsc::Sender;

use super::spelled;
use crate::tables::external::{LocatedFile, format_of, is_lance, locate_all, locate_one};

/// The most file names in a message.
const NAMED: usize = 3;

/// What a folder of the tree is.
pub(super) enum VisitedFolder {
    /// A table, by its location.
    Table { folder: PathBuf, location: String, format: FileFormat, files: Vec<LocatedFile> },
    /// A folder that is no table, and why.
    Other { folder: PathBuf, reason: String },
}

/// The entries of one folder.
#[derive(Default)]
pub(super) struct Entries {
    pub(super) files: BTreeMap<FileFormat, Vec<LocatedFile>>,
    pub(super) others: Vec<OsString>,
    pub(super) folders: Vec<PathBuf>,
    /// Whether there are partition folders, which are not among `folders`.
    pub(super) partitions: bool,
    pub(super) datasets: Vec<PathBuf>,
}

/// Sends what each folder below `root` is, in order of their paths, until the receiver is dropped. Blocks.
pub(super) fn walk(root: &Path, output: &Sender<VisitedFolder>) {
    let mut pending = vec![root.to_owned()];
    if is_lance(root) {
        pending.clear();
        let _ = output.blocking_send(dataset(root.to_owned()));
    }
    while let Some(folder) = pending.pop() {
        let mut found = Vec::new();
        match entries(&folder) {
            Ok(entries) => {
                found.extend(tables(&folder, &entries, || locate_all(&folder)));
                found.extend(entries.datasets.into_iter().map(dataset));
                pending.extend(entries.folders.into_iter().rev());
            }
            Err(reason) => found.push(VisitedFolder::Other { folder, reason: format!("cannot be read: {reason}") }),
        }
        for one in found {
            if output.blocking_send(one).is_err() {
                return;
            }
        }
    }
}

fn entries(folder: &Path) -> Result<Entries, String> {
    let message = |error: std::io::Error| error.to_string();
    let mut entries = Entries::default();
    for entry in std::fs::read_dir(folder).map_err(message)? {
        let entry = entry.map_err(message)?;
        let (name, kind, path) = (entry.file_name(), entry.file_type().map_err(message)?, entry.path());
        if name.to_string_lossy().starts_with(['.', '_']) || kind.is_symlink() {
            continue;
        }
        if kind.is_dir() {
            if is_lance(&path) {
                entries.datasets.push(path);
            } else if name.to_string_lossy().split_once('=').is_some_and(|(key, _)| !key.is_empty()) {
                entries.partitions = true;
            } else {
                entries.folders.push(path);
            }
        } else if kind.is_file() {
            match format_of(&path) {
                Some(format) => {
                    let file = locate_one(&path).map_err(|error| error.to_string())?;
                    entries.files.entry(format).or_default().push(file);
                }
                None => entries.others.push(name),
            }
        }
    }
    entries.folders.sort();
    entries.datasets.sort();
    entries.others.sort();
    Ok(entries)
}

/// Returns what the folder itself is. `below` finds all files in it and in its folders.
pub(super) fn tables(
    folder: &Path,
    entries: &Entries,
    below: impl FnOnce() -> crate::error::Result<Vec<LocatedFile>>,
) -> Vec<VisitedFolder> {
    let other = |reason: String| VisitedFolder::Other { folder: folder.to_owned(), reason };
    let has_own_files = !entries.files.is_empty();
    let mut found = Vec::new();
    if entries.partitions {
        if has_own_files || !entries.folders.is_empty() || !entries.datasets.is_empty() {
            found.push(other("holds partition folders (key=value) beside other files or folders".into()));
        } else {
            found.push(partitioned(folder, below()));
        }
    } else if entries.files.len() > 1 {
        let formats = spelled(entries.files.keys().copied());
        found.push(other(format!("holds files of several formats ({formats})")));
    } else if let Some((format, files)) = entries.files.first_key_value() {
        found.push(plain(folder, *format, files, entries).unwrap_or_else(other));
    }
    if !entries.others.is_empty() {
        let named: Vec<_> = entries.others.iter().take(NAMED).map(|name| name.to_string_lossy()).collect();
        let more = if entries.others.len() > NAMED { ", ..." } else { "" };
        let count = entries.others.len();
        found.push(other(format!("{count} files are of no format that is read: {}{more}", named.join(", "))));
    }
    found
}

/// A folder that is a Lance dataset.
pub(super) fn dataset(folder: PathBuf) -> VisitedFolder {
    match folder.to_str() {
        Some(location) => {
            VisitedFolder::Table { location: location.to_owned(), format: FileFormat::Lance, files: Vec::new(), folder }
        }
        None => VisitedFolder::Other { folder, reason: "its name is not UTF-8".into() },
    }
}

fn partitioned(folder: &Path, below: crate::error::Result<Vec<LocatedFile>>) -> VisitedFolder {
    let other = |reason: String| VisitedFolder::Other { folder: folder.to_owned(), reason };
    let files = match below {
        Ok(files) => files,
        Err(error) => return other(error.to_string()),
    };
    let formats: BTreeSet<FileFormat> = files.iter().filter_map(|file| format_of(&file.path)).collect();
    match (formats.first(), formats.len(), folder.to_str()) {
        (_, _, None) => other("its name is not UTF-8".into()),
        (Some(format), 1, Some(location)) => {
            VisitedFolder::Table { folder: folder.to_owned(), location: location.to_owned(), format: *format, files }
        }
        (None, ..) => other("holds no file of a format that is read".into()),
        _ => other(format!("holds files of several formats ({})", spelled(formats))),
    }
}

/// Returns the table of the files right in a folder: a glob where there are other folders beside the files.
fn plain(folder: &Path, format: FileFormat, all: &[LocatedFile], entries: &Entries) -> Result<VisitedFolder, String> {
    let mut files: Vec<LocatedFile> = all.iter().filter(|file| file.size > 0).cloned().collect();
    files.sort_by(|left, right| left.path.cmp(&right.path));
    if files.is_empty() {
        return Err("its files are empty".into());
    }
    let location = folder.to_str().ok_or("its name is not UTF-8")?;
    let location = if entries.folders.is_empty() && entries.datasets.is_empty() {
        location.to_owned()
    } else {
        let endings: BTreeSet<String> = files.iter().map(|file| ending(&file.path)).collect();
        match (endings.first(), endings.len()) {
            (Some(ending), 1) => format!("{}/*{ending}", glob::Pattern::escape(location)),
            _ => return Err("its files have several endings, and there are folders beside them".into()),
        }
    };
    Ok(VisitedFolder::Table { folder: folder.to_owned(), location, format, files })
}

/// Returns the ending of a file name with its compression: `.csv.gz` of `a.b.csv.gz`.
fn ending(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let parts: Vec<&str> = name.split('.').collect();
    let is_packed = parts.last().is_some_and(|last| matches!(*last, "gz" | "zst" | "zstd" | "bz2" | "xz"));
    let kept = if is_packed { 2 } else { 1 };
    parts.iter().skip(1.max(parts.len().saturating_sub(kept))).map(|part| format!(".{part}")).collect()
}

/// Undoes `glob::Pattern::escape`.
pub(super) fn unescaped(pattern: &str) -> String {
    let mut text = pattern.to_owned();
    for special in ["?", "*", "[", "]"] {
        text = text.replace(&format!("[{special}]"), special);
    }
    text
}
