//! Whether a data folder is whole: the store as SQLite checks it, the files that the lake names, the audit log's chain; and
//! files that no row names, which a write left that never committed.

mod contents;
mod uncommitted;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::connection::StoreConnection;
use crate::error::{CatalogError, Result};
use crate::store::lake_files::{self, LakeFile};
use crate::store::{DATA_FOLDER, Store, lake_location};
pub(crate) use contents::check_pages;
pub use contents::{ChecksumWriter, PageChecksum};
use uncommitted::uncommitted_files;
pub use uncommitted::{announce_uncommitted, forget_uncommitted};

/// How old a file that no row names is before it is taken for one that was left: another process, DuckDB, may be about to
/// commit a younger one.
pub const ORPHAN_GRACE: Duration = Duration::from_secs(24 * 3_600);
/// The most faults that are told.
const MAX_FAULTS: usize = 1_000;
/// What a Parquet file begins and ends with.
const MAGIC: &[u8; 4] = b"PAR1";

/// What a check of a folder found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FolderCheck {
    /// What is wrong, at most a thousand things.
    pub faults: Vec<String>,
    /// Files that were looked at.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that were read and whose pages are as they were written; `None` where no file was to be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_read: Option<u64>,
    /// Objects that the schema index does not hold yet; it follows by itself.
    pub pending_objects: u64,
    /// Files that no row names.
    pub orphans: Vec<Orphan>,
    /// Of those, how many were removed.
    pub removed: u64,
}

/// A file of the data folder that no row names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Orphan {
    /// Where it is.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// For how long it has not changed, in seconds.
    pub age_seconds: u64,
}

/// Checks a folder. Reads the whole store and the ends of all files.
pub(crate) async fn check(store: &Store, now: DateTime<Utc>) -> Result<FolderCheck> {
    let found = settled_files(store, now).await?;
    let mut check = store
        .read(move |connection| {
            let mut check = FolderCheck::default();
            integrity(connection, &mut check)?;
            let mut named = HashSet::new();
            let mut seen: HashSet<PathBuf> = HashSet::new();
            lake_files::for_each(connection, |file| {
                if file.is_live && seen.insert(file.path.clone()) {
                    check.files += 1;
                    match faults_of(&file) {
                        Ok(bytes) => check.bytes += bytes,
                        Err(fault) if check.faults.len() < MAX_FAULTS => check.faults.push(fault),
                        Err(_) => {}
                    }
                }
                named.insert(file.path);
                Ok(())
            })?;
            check.orphans = found.into_iter().filter(|file| !named.contains(&file.path)).collect();
            Ok(check)
        })
        .await?;
    check.pending_objects = store.pending(pending_objects).await?;
    Ok(check)
}

/// Reads the files that the newest snapshot has, and says in `check` which are not as they were written.
pub(crate) async fn check_contents(store: &Store, check: &mut FolderCheck) -> Result<()> {
    let paths = store
        .read(|connection| {
            let mut paths = BTreeSet::new();
            lake_files::for_each(connection, |file| {
                if file.is_live && file.is_parquet {
                    paths.insert(file.path);
                }
                Ok(())
            })?;
            Ok(paths)
        })
        .await?;
    let room = MAX_FAULTS.saturating_sub(check.faults.len());
    let read = tokio::task::spawn_blocking(move || {
        let (mut whole, mut faults) = (0, Vec::new());
        for path in &paths {
            match check_pages(path) {
                Ok(Some(())) => whole += 1,
                Ok(None) => {}
                Err(fault) if faults.len() < room => faults.push(fault),
                Err(_) => {}
            }
        }
        (whole, faults)
    });
    let (whole, faults) =
        read.await.map_err(|error| CatalogError::Internal(format!("a check ended early: {error}")))?;
    check.files_read = Some(whole);
    check.faults.extend(faults);
    Ok(())
}

/// Returns the first of these files whose pages are not as they were written, if there is one. A file that does not say how they
/// were, and one that is not there, counts as whole.
pub async fn first_damaged_file(paths: Vec<PathBuf>) -> Result<Option<PathBuf>> {
    let found = tokio::task::spawn_blocking(move || paths.into_iter().find(|path| check_pages(path).is_err()));
    found.await.map_err(|error| CatalogError::Internal(format!("a check ended early: {error}")))
}

/// Removes files that no row names and that have not changed for `grace` at a time. Returns those that were removed.
pub(crate) async fn remove_orphans(store: &Store, grace: Duration, now: DateTime<Utc>) -> Result<Vec<Orphan>> {
    let mut found = settled_files(store, now).await?;
    found.retain(|file| file.age_seconds >= grace.as_secs());
    if found.is_empty() {
        return Ok(found);
    }
    store
        .read(move |connection| {
            let mut named = HashSet::new();
            lake_files::for_each(connection, |file| {
                named.insert(file.path);
                Ok(())
            })?;
            found.retain(|file| !named.contains(&file.path) && remove(&file.path));
            Ok(found)
        })
        .await
}

/// Checks a folder whose files lie in an object store: whether the store has them, and of which length.
pub(crate) async fn check_listed(store: &Store, listed: Vec<Orphan>) -> Result<FolderCheck> {
    let uncommitted = uncommitted_files();
    let mut check = store
        .read(move |connection| {
            let mut check = FolderCheck::default();
            integrity(connection, &mut check)?;
            let lengths: HashMap<&Path, u64> = listed.iter().map(|file| (file.path.as_path(), file.bytes)).collect();
            let mut named = HashSet::new();
            lake_files::for_each(connection, |file| {
                let path = file.path.display();
                let fault = match (lengths.get(file.path.as_path()), file.bytes) {
                    _ if !file.is_live || named.contains(&file.path) => None,
                    (None, _) => Some(format!("{path} is not there")),
                    (Some(found), Some(bytes)) if bytes != *found => {
                        Some(format!("{path} has {found} bytes instead of {bytes}"))
                    }
                    (Some(found), _) => {
                        check.bytes += found;
                        None
                    }
                };
                check.files += u64::from(file.is_live && !named.contains(&file.path));
                check.faults.extend(fault.filter(|_| check.faults.len() < MAX_FAULTS));
                named.insert(file.path);
                Ok(())
            })?;
            let is_orphan = |file: &Orphan| {
                is_lakes(&file.path) && !named.contains(&file.path) && !uncommitted.contains(&file.path)
            };
            check.orphans = listed.into_iter().filter(is_orphan).collect();
            Ok(check)
        })
        .await?;
    check.pending_objects = store.pending(pending_objects).await?;
    Ok(check)
}

/// Returns the folder of the lake's files. Those in the folder of a server that shares a catalog may be of a lake that was there
/// before, and are nothing that this one knows of. Read before the folder is listed, and not with the rows afterwards.
async fn lake_folder(store: &Store) -> Result<PathBuf> {
    match store.is_shared() {
        true => Ok(PathBuf::from(store.read(lake_location::load).await?.data_path)),
        false => Ok(store.data_dir().join(DATA_FOLDER)),
    }
}

/// Returns the files that are named as the lake's are, and that no row names.
pub(crate) async fn unnamed(store: &Store, mut listed: Vec<Orphan>) -> Result<Vec<Orphan>> {
    let uncommitted = uncommitted_files();
    listed.retain(|file| !uncommitted.contains(&file.path));
    store
        .read(move |connection| {
            let mut named = HashSet::new();
            lake_files::for_each(connection, |file| {
                named.insert(file.path);
                Ok(())
            })?;
            listed.retain(|file| is_lakes(&file.path) && !named.contains(&file.path));
            Ok(listed)
        })
        .await
}

fn pending_objects(connection: &StoreConnection) -> Result<u64> {
    let pending: i64 = connection.query_row("SELECT count(*) FROM querent_pending_objects", [], |row| row.get(0))?;
    Ok(pending.unsigned_abs())
}

/// Returns whether a file is named as those are that the lake's writers make.
fn is_lakes(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("ducklake-") && name.ends_with(".parquet")
}

#[expect(clippy::disallowed_methods, reason = "on a blocking thread of the store")]
fn remove(path: &Path) -> bool {
    match std::fs::remove_file(path) {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "a file that no table has cannot be removed");
            false
        }
    }
}

fn integrity(connection: &StoreConnection, check: &mut FolderCheck) -> Result<()> {
    let damages = connection.damages()?;
    check.faults.extend(damages.iter().map(|damage| format!("the store is damaged: {damage}")));
    Ok(())
}

/// The bytes of a file that is as its row says; otherwise what is wrong with it.
fn faults_of(file: &LakeFile) -> Result<u64, String> {
    let path = file.path.display();
    let size = match std::fs::metadata(&file.path) {
        Ok(found) if found.is_file() => found.len(),
        Ok(_) => return Err(format!("{path} is no file")),
        Err(error) => return Err(format!("{path} cannot be read: {error}")),
    };
    if let Some(bytes) = file.bytes.filter(|bytes| *bytes != size) {
        return Err(format!("{path} has {size} bytes instead of {bytes}"));
    }
    if file.is_parquet {
        let footer =
            footer_bytes(&file.path, size).map_err(|error| format!("{path} is no whole Parquet file: {error}"))?;
        if let Some(bytes) = file.footer_bytes.filter(|bytes| *bytes != footer) {
            return Err(format!("{path} has a footer of {footer} bytes instead of {bytes}"));
        }
    }
    Ok(size)
}

/// The bytes of a Parquet file's footer.
#[expect(clippy::disallowed_methods, reason = "on a blocking thread of the store")]
fn footer_bytes(path: &Path, size: u64) -> std::io::Result<u64> {
    let wrong = |what: &str| Err(std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_owned()));
    if size < 12 {
        return wrong("it is too short");
    }
    let mut file = std::fs::File::open(path)?;
    let (mut first, mut last) = ([0; 4], [0; 8]);
    file.read_exact(&mut first)?;
    file.seek(SeekFrom::End(-8))?;
    file.read_exact(&mut last)?;
    let [a, b, c, d, end @ ..] = last;
    let footer = u64::from(u32::from_le_bytes([a, b, c, d]));
    if &first != MAGIC || &end != MAGIC {
        return wrong("its first or last bytes are others");
    }
    if footer + 12 > size { wrong("its footer is longer than the file") } else { Ok(footer) }
}

/// Returns the files of the lake's folder with their ages at a time, but for those that this process is writing. The rows that name
/// files are read in a transaction that begins after this: what is committed meanwhile is among them.
async fn settled_files(store: &Store, now: DateTime<Utc>) -> Result<Vec<Orphan>> {
    let folder = lake_folder(store).await?;
    let mut found = store.read(move |connection| data_files(connection, &folder, now)).await?;
    let uncommitted = uncommitted_files();
    found.retain(|file| !uncommitted.contains(&file.path));
    Ok(found)
}

/// The Parquet files of a folder and those below, by name the lake's own, with their ages at a time. Links are not followed.
/// None where the rows name files by another way than that to the folder: so does a lake that DuckDB made with a relative path, or
/// one through a link, and all of its files would be taken for orphans.
fn data_files(connection: &StoreConnection, folder: &Path, now: DateTime<Utc>) -> Result<Vec<Orphan>> {
    if Path::new(&lake_location::load(connection)?.data_path) != folder {
        return Ok(Vec::new());
    }
    let now = SystemTime::from(now);
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let io_error = |source| CatalogError::of_file(&folder, source);
        for entry in std::fs::read_dir(&folder).map_err(io_error)? {
            let entry = entry.map_err(io_error)?;
            let kind = entry.file_type().map_err(io_error)?;
            if kind.is_dir() {
                folders.push(entry.path());
                continue;
            }
            if !kind.is_file() || !is_lakes(&entry.path()) {
                continue;
            }
            // Gone meanwhile is not there.
            let Ok(found) = entry.metadata() else { continue };
            let age = now.duration_since(found.modified().unwrap_or(now)).unwrap_or_default();
            files.push(Orphan { path: entry.path(), bytes: found.len(), age_seconds: age.as_secs() });
        }
    }
    Ok(files)
}
