//! The lock that keeps a second Querent writer out of a data folder. It is a file of its own, because DuckDB
//! may use the catalog's file at the same time. The folder itself is locked too, for whoever removes that file lets nobody
//! in. The kernel releases both when the process ends, however it ends.
//!
//! Its lines are the holder's process id, the address of its server and the certificate that clients of it must trust,
//! as far as there are any. They are worth something only while the lock is held.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs4::{FileExt, TryLockError};

use super::on_blocking_thread;
use crate::error::{CatalogError, Result};

const LOCK_FILE: &str = "querent.lock";
const PRIVATE: u32 = 0o700;
/// How long to wait for a folder in use: its holder may be about to end.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// The server that has a data folder open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderServer {
    /// Scheme, host and port.
    pub url: String,
    /// A certificate that clients must be told to trust.
    pub certificate: Option<PathBuf>,
}

/// Held while it lives.
pub(super) struct FolderLock {
    file: File,
    path: PathBuf,
    /// `None` on file systems that lock no folders.
    _folder: Option<File>,
}

impl FolderLock {
    /// Takes the lock and writes this process's id into it, or says who holds it.
    pub(super) fn acquire(data_dir: &Path) -> Result<Self> {
        let path = data_dir.join(LOCK_FILE);
        let io_error = |source| CatalogError::of_file(&path, source);
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io_error)?;
        match FileExt::try_lock(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                file.read_to_string(&mut text).map_err(io_error)?;
                let holder = match text.lines().next().unwrap_or_default() {
                    "" => "another querent process".to_owned(),
                    pid if pid == std::process::id().to_string() => {
                        "this process, which has opened it before".to_owned()
                    }
                    pid => format!("another querent process (pid {pid})"),
                };
                return Err(CatalogError::InUse { path: data_dir.to_path_buf(), holder });
            }
            Err(TryLockError::Error(source)) => return Err(io_error(source)),
        }
        let folder = locked_folder(data_dir)?;
        let lock = Self { file, path: path.clone(), _folder: folder };
        lock.write(&format!("{}\n", std::process::id()))?;
        Ok(lock)
    }

    /// Writes where the holder's server can be reached, for the command line.
    pub(super) fn announce(&self, server: &FolderServer) -> Result<()> {
        let certificate = server.certificate.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        self.write(&format!("{}\n{}\n{certificate}\n", std::process::id(), server.url))
    }

    fn write(&self, text: &str) -> Result<()> {
        let io_error = |source| CatalogError::of_file(&self.path, source);
        let mut file = &self.file;
        file.set_len(0).map_err(io_error)?;
        file.seek(SeekFrom::Start(0)).map_err(io_error)?;
        file.write_all(text.as_bytes()).map_err(io_error)
    }
}

/// A data folder without a catalog, for files of one process alone. It is let go when this is dropped.
pub struct HeldFolder {
    _lock: FolderLock,
}

impl HeldFolder {
    /// Makes the folder where there is none, and takes it. Errors: `data_folder_in_use`.
    pub async fn take(data_dir: &Path) -> Result<Self> {
        let is_new = is_unused(data_dir).await;
        tokio::fs::create_dir_all(data_dir).await.map_err(|source| CatalogError::of_file(data_dir, source))?;
        if is_new {
            keep_private(data_dir).await;
        }
        Ok(Self { _lock: acquired_lock(data_dir).await? })
    }
}

/// Whether a folder is not there, or holds nothing.
pub(super) async fn is_unused(folder: &Path) -> bool {
    match tokio::fs::read_dir(folder).await {
        Ok(mut entries) => matches!(entries.next_entry().await, Ok(None)),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// Acquires the folder's lock, waiting a moment: a process (or a catalog of this one) that is ending may still hold it.
pub(super) async fn acquired_lock(data_dir: &Path) -> Result<FolderLock> {
    const APART: Duration = Duration::from_millis(20);
    let deadline = tokio::time::Instant::now() + LOCK_TIMEOUT;
    loop {
        let folder = data_dir.to_path_buf();
        match on_blocking_thread(move || FolderLock::acquire(&folder)).await {
            Err(CatalogError::InUse { .. }) if tokio::time::Instant::now() < deadline => {
                tokio::time::sleep(APART).await;
            }
            outcome => return outcome,
        }
    }
}

/// Locks the folder, where that can be done. Errors: `data_folder_in_use`.
fn locked_folder(data_dir: &Path) -> Result<Option<File>> {
    let Ok(folder) = OpenOptions::new().read(true).open(data_dir) else { return Ok(None) };
    match FileExt::try_lock(&folder) {
        Ok(()) => Ok(Some(folder)),
        Err(TryLockError::WouldBlock) => {
            let holder = format!("another querent process, which has lost {LOCK_FILE}");
            Err(CatalogError::InUse { path: data_dir.to_path_buf(), holder })
        }
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// Returns the server that has the data folder open, if one has. Blocks for a moment.
pub fn folder_server(data_dir: &Path) -> Option<FolderServer> {
    let mut file = OpenOptions::new().read(true).open(data_dir.join(LOCK_FILE)).ok()?;
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    let mut lines = text.lines().skip(1);
    let url = lines.next().filter(|url| !url.is_empty())?.to_owned();
    let certificate = lines.next().filter(|path| !path.is_empty()).map(PathBuf::from);
    // What a process that is gone has written is still there.
    match FileExt::try_lock_shared(&file) {
        Err(TryLockError::WouldBlock) => Some(FolderServer { url, certificate }),
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

/// Takes the folder from everybody but its owner, and with it all that comes to lie in it.
pub(super) async fn keep_private(folder: &Path) {
    if let Err(error) = tokio::fs::set_permissions(folder, Permissions::from_mode(PRIVATE)).await {
        tracing::warn!(folder = %folder.display(), %error, "others may read the data folder");
    }
}

/// Makes the names in a folder durable: SQLite syncs its files, not the entry that a new file has here.
pub(super) fn sync_folder(folder: &Path) -> Result<()> {
    let io_error = |source| CatalogError::of_file(folder, source);
    OpenOptions::new().read(true).open(folder).and_then(|folder| folder.sync_all()).map_err(io_error)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a folder of its own")]
mod tests {
    use super::*;

    #[test]
    fn whoever_removes_the_lock_lets_nobody_in() {
        let folder = std::env::temp_dir().join(format!("querent-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir_all(&folder).unwrap();
        let held = FolderLock::acquire(&folder).unwrap();
        std::fs::remove_file(folder.join(LOCK_FILE)).unwrap();
        let Err(CatalogError::InUse { holder, .. }) = FolderLock::acquire(&folder) else {
            panic!("two hold the folder")
        };
        assert_eq!(holder, "another querent process, which has lost querent.lock");
        drop(held);
        FolderLock::acquire(&folder).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
    }
}
