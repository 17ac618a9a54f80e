//! Backups of a data folder: the store at one moment, and the files that it names. One is made while the folder is in use.
//!
//! Files of tables never change once they are written, so a copy of the store and a copy of all that it names belong together
//! whatever is committed meanwhile. Files in an object store stay there, where the backup names them. The schema index, vector
//! indexes, spilled rows and uploads are left out: they are derived or passing.

use std::collections::{BTreeSet, HashSet};
use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use rusqlite::{Connection, ErrorCode};
use serde::{Deserialize, Serialize};

use crate::connection::StoreConnection;
use crate::error::{CatalogError, Result};
use crate::integrity::check_pages;
use crate::store::{CATALOG_FILE, DATA_FOLDER, Store, lake_files, lake_location};
use crate::vector_indexes;

/// What a backup says of itself; written last, so that a folder without it is no whole backup.
const MANIFEST: &str = "backup.json";
/// The audit log, where there is one.
const AUDIT_FILE: &str = "audit.sqlite";

/// Why a backup is not made there: it would be looked through, and cleaned up, with the folder.
const IN_DATA_FOLDER: &str = "it would lie in the data folder itself; choose another one";

/// What a backup holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupSummary {
    /// When its moment was.
    pub made_at: DateTime<Utc>,
    /// The version of querent that made it.
    pub querent: String,
    /// The files of tables.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The URL at which the files of tables lie, where they are not in the backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_path: Option<String>,
}

/// Makes a backup in a folder that is empty or not there. Errors: `invalid_object`, also where a file of a table is not as long
/// as the lake says or not as it was written, `io_error`.
pub(crate) async fn back_up(store: &Store, target: &Path) -> Result<BackupSummary> {
    let (folder, target) = (store.data_dir().to_owned(), target.to_owned());
    if target.starts_with(&folder) {
        return Err(invalid(IN_DATA_FOLDER));
    }
    store
        .read(move |_connection| {
            make_empty(&target)?;
            // A link, or `..`, may lead there by another name.
            if std::fs::canonicalize(&target).is_ok_and(|real| real.starts_with(&folder)) {
                return Err(invalid(IN_DATA_FOLDER));
            }
            let made_at = Utc::now();
            let copy = target.join(CATALOG_FILE);
            copy_store(&folder.join(CATALOG_FILE), &copy)?;
            let copied_store = StoreConnection::open_file(&copy)?;
            vector_indexes::forget_built(&copied_store)?;
            let audit = folder.join(AUDIT_FILE);
            if audit.is_file() {
                copy_store(&audit, &target.join(AUDIT_FILE))?;
            }
            let (mut files, mut bytes) = (0, 0);
            let (mut copied, mut written) = (HashSet::new(), Vec::new());
            let data = folder.join(DATA_FOLDER);
            let location = lake_location::load(&copied_store)?;
            lake_files::for_each(&copied_store, |file| {
                // What lies elsewhere is not the folder's.
                let Ok(below) = file.path.strip_prefix(&data) else { return Ok(()) };
                let place = Path::new(DATA_FOLDER).join(below);
                let copy = target.join(&place);
                if file.path.is_file() && copied.insert(below.to_owned()) {
                    bytes += copy_file(&file.path, &copy)?;
                    files += 1;
                    written.push(place);
                }
                // A renamed table names its files twice, and lives by one of the names only.
                if !file.is_live {
                    return Ok(());
                }
                let length = copy.metadata().map_err(io_error(&file.path))?.len();
                if let Some(known) = file.bytes.filter(|known| *known != length) {
                    return Err(invalid(&format!(
                        "{} has {length} bytes instead of {known}; `querent check` lists what is damaged: drop those \
                         tables, or restore an older backup",
                        file.path.display()
                    )));
                }
                if file.is_parquet && check_pages(&copy).is_err() {
                    return Err(invalid(&format!(
                        "{} is not as it was written; `querent check --contents` lists what is damaged: drop those tables, \
                         or restore an older backup",
                        file.path.display()
                    )));
                }
                Ok(())
            })?;
            let data_path = location.is_remote().then_some(location.data_path);
            let querent = env!("CARGO_PKG_VERSION").to_owned();
            let summary = BackupSummary { made_at, querent, files, bytes, data_path };
            sync(&copy)?;
            sync_folders(&target, &written);
            write_manifest(&target, &summary)?;
            Ok(summary)
        })
        .await
}

/// Copies a backup to a data folder that is empty or not there. Errors: `invalid_object`, also where the backup has lost files
/// or parts of them, `io_error`.
pub async fn restore(backup: &Path, data_dir: &Path) -> Result<BackupSummary> {
    let (backup, target) = (backup.to_owned(), data_dir.to_owned());
    let restored = tokio::task::spawn_blocking(move || {
        let manifest = backup.join(MANIFEST);
        if !manifest.is_file() {
            return Err(invalid(&format!("{} is no whole backup: it has no {MANIFEST}", backup.display())));
        }
        if backup.join(CATALOG_FILE).metadata().map_or(0, |found| found.len()) == 0 {
            return Err(invalid(&format!("{} is no whole backup: it has no {CATALOG_FILE}", backup.display())));
        }
        let summary: BackupSummary = read_manifest(&manifest)?;
        let data = backup.join(DATA_FOLDER);
        let found = if data.is_dir() { files_below(&data)? } else { Vec::new() };
        let (files, bytes) = (found.len() as u64, found.iter().map(|(_, bytes)| bytes).sum::<u64>());
        if (files, bytes) != (summary.files, summary.bytes) {
            return Err(invalid(&format!(
                "{} is no whole backup: it has {files} files of {bytes} bytes instead of {} files of {} bytes",
                backup.display(),
                summary.files,
                summary.bytes
            )));
        }
        make_empty(&target)?;
        let mut written = Vec::new();
        for (below, _) in found {
            let place = Path::new(DATA_FOLDER).join(&below);
            copy_file(&data.join(&below), &target.join(&place))?;
            written.push(place);
        }
        sync_folders(&target, &written);
        // The catalog comes last: without it no folder passes for what was restored.
        for name in [AUDIT_FILE, CATALOG_FILE] {
            if backup.join(name).is_file() {
                copy_file(&backup.join(name), &target.join(name))?;
            }
        }
        sync_folders(&target, &[]);
        Ok(summary)
    });
    restored.await.map_err(|error| CatalogError::Internal(format!("a restore ended early: {error}")))?
}

/// Copies a SQLite file as it is at one moment, whoever writes to it.
fn copy_store(from: &Path, to: &Path) -> Result<()> {
    let connection = Connection::open(from)?;
    connection.busy_timeout(std::time::Duration::from_secs(60))?;
    match connection.execute("VACUUM INTO ?", [to.to_string_lossy()]) {
        Ok(_) => sync(to),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => {
            Err(CatalogError::of_file(to, ErrorKind::StorageFull.into()))
        }
        Err(error) => Err(error.into()),
    }
}

#[expect(clippy::disallowed_methods, reason = "on a blocking thread")]
fn make_empty(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|error| unfit_folder(folder, error))?;
    let mut entries = std::fs::read_dir(folder).map_err(|error| unfit_folder(folder, error))?;
    if entries.next().is_some() {
        return Err(invalid(&format!("{} is not empty; choose a new folder", folder.display())));
    }
    // What is copied is for the owner of the copy alone, as the data folder is.
    if let Err(error) = std::fs::set_permissions(folder, Permissions::from_mode(0o700)) {
        tracing::warn!(folder = %folder.display(), %error, "others may read the copy");
    }
    Ok(())
}

/// Returns the files below a folder, each by its place in it and with its bytes.
fn files_below(root: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        let folder = root.join(&below);
        for entry in std::fs::read_dir(&folder).map_err(io_error(&folder))? {
            let entry = entry.map_err(io_error(&folder))?;
            let metadata = entry.metadata().map_err(io_error(&folder))?;
            let name = below.join(entry.file_name());
            if metadata.is_dir() {
                folders.push(name);
            } else if metadata.is_file() {
                files.push((name, metadata.len()));
            }
        }
    }
    Ok(files)
}

/// Makes the bytes of a file durable, or the names in a folder.
#[expect(clippy::disallowed_methods, reason = "on a blocking thread")]
fn sync(path: &Path) -> Result<()> {
    std::fs::File::open(path).and_then(|opened| opened.sync_all()).map_err(io_error(path))
}

/// Makes the names in a folder durable, and in those of files that were written below it. Some file systems cannot.
fn sync_folders(root: &Path, written: &[PathBuf]) {
    let mut folders = BTreeSet::from([Path::new("")]);
    folders.extend(written.iter().flat_map(|file| file.ancestors().skip(1)));
    for folder in folders {
        if let Err(error) = sync(&root.join(folder)) {
            tracing::warn!(%error, "what was copied may not survive a loss of power");
        }
    }
}

/// Copies a file, durably, and returns its bytes.
#[expect(clippy::disallowed_methods, reason = "on a blocking thread")]
fn copy_file(from: &Path, to: &Path) -> Result<u64> {
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder).map_err(io_error(folder))?;
    }
    let bytes = std::fs::copy(from, to).map_err(|error| {
        let place = if error.kind() == ErrorKind::StorageFull { to } else { from };
        CatalogError::of_file(place, error)
    })?;
    sync(to)?;
    Ok(bytes)
}

#[expect(clippy::disallowed_methods, reason = "on a blocking thread")]
fn write_manifest(folder: &Path, summary: &BackupSummary) -> Result<()> {
    let path = folder.join(MANIFEST);
    let text = serde_json::to_string_pretty(summary)
        .map_err(|error| CatalogError::Internal(format!("a backup's summary as JSON: {error}")))?;
    std::fs::write(&path, text).map_err(io_error(&path))?;
    sync(&path)?;
    sync_folders(folder, &[]);
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "on a blocking thread")]
fn read_manifest(path: &Path) -> Result<BackupSummary> {
    let text = std::fs::read_to_string(path).map_err(io_error(path))?;
    serde_json::from_str(&text).map_err(|error| invalid(&format!("{}: {error}", path.display())))
}

fn io_error(path: &Path) -> impl FnOnce(std::io::Error) -> CatalogError + use<> {
    let path = path.to_owned();
    move |source| CatalogError::of_file(&path, source)
}

/// Returns the error of a folder that cannot be made or looked at: whoever named it can name another, unless the disk failed.
fn unfit_folder(folder: &Path, error: std::io::Error) -> CatalogError {
    match error.kind() {
        ErrorKind::AlreadyExists
        | ErrorKind::InvalidFilename
        | ErrorKind::InvalidInput
        | ErrorKind::NotADirectory
        | ErrorKind::NotFound
        | ErrorKind::PermissionDenied
        | ErrorKind::ReadOnlyFilesystem => {
            invalid(&format!("{} cannot be a folder ({error}); choose another one", folder.display()))
        }
        _ => CatalogError::of_file(folder, error),
    }
}

fn invalid(reason: &str) -> CatalogError {
    CatalogError::InvalidObject { what: "backup", reason: reason.to_owned() }
}
