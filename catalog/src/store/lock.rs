//! The lock that keeps a second Querent writer out of a data folder. It is a file of its own, because DuckDB
//! may use the catalog's file at the same time. The kernel releases it when the process ends, however it ends.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use fs4::{FileExt, TryLockError};

use crate::error::{CatalogError, Result};

const LOCK_FILE: &str = "querent.lock";

/// Held while it lives.
pub(super) struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Takes the lock and writes this process's id into it, or says who holds it.
    pub(super) fn acquire(data_dir: &Path) -> Result<Self> {
        let path = data_dir.join(LOCK_FILE);
        let io_error = |source| CatalogError::Io { path: path.clone(), source };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io_error)?;
        match FileExt::try_lock(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                file.read_to_string(&mut pid).map_err(io_error)?;
                let holder = match pid.trim() {
                    "" => String::new(),
                    pid => format!(" (pid {pid})"),
                };
                return Err(CatalogError::InUse { path: data_dir.to_path_buf(), holder });
            }
            Err(TryLockError::Error(source)) => return Err(io_error(source)),
        }
        file.set_len(0).map_err(io_error)?;
        file.seek(SeekFrom::Start(0)).map_err(io_error)?;
        writeln!(file, "{}", std::process::id()).map_err(io_error)?;
        Ok(Self { _file: file })
    }
}

/// Makes the names in a folder durable: SQLite syncs its files, not the entry that a new file has here.
pub(super) fn sync_folder(folder: &Path) -> Result<()> {
    let io_error = |source| CatalogError::Io { path: folder.to_path_buf(), source };
    OpenOptions::new().read(true).open(folder).and_then(|folder| folder.sync_all()).map_err(io_error)
}
