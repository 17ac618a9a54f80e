//! The socket in the file system: only this user may open it, and its file goes with the server.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixSocket, UnixStream};

const PRIVATE: u32 = 0o600;
/// How many connections wait to be accepted.
const BACKLOG: u32 = 1_024;

/// A listener at a path. Dropping it removes the file, unless another one has taken its place.
#[derive(Debug)]
pub(super) struct UnixSocketFile {
    listener: UnixListener,
    /// Dropped with the listener, which removes it.
    _file: SocketPath,
}

#[derive(Debug)]
struct SocketPath {
    path: PathBuf,
    /// The device and the number of the file.
    identity: (u64, u64),
}

impl UnixSocketFile {
    /// Listens at `path`, in place of a socket that no process listens on any more.
    pub(super) async fn bind(path: &Path) -> io::Result<Self> {
        remove_stale(path).await?;
        let socket = UnixSocket::new_stream()?;
        socket.bind(path)?;
        let file = SocketPath { path: path.to_owned(), identity: identity(path)? };
        // Nobody can connect before `listen`.
        tokio::fs::set_permissions(path, Permissions::from_mode(PRIVATE)).await?;
        Ok(Self { listener: socket.listen(BACKLOG)?, _file: file })
    }

    pub(super) async fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }
}

impl Drop for SocketPath {
    #[expect(clippy::disallowed_methods, reason = "a drop cannot await, and removing one file is quick")]
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|now| now == self.identity) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    std::fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

async fn remove_stale(path: &Path) -> io::Result<()> {
    match tokio::fs::symlink_metadata(path).await {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(metadata) if metadata.file_type().is_socket() => {}
        Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a file that is not a socket")),
    }
    match UnixStream::connect(path).await {
        Ok(_) => Err(io::Error::new(io::ErrorKind::AddrInUse, "another process listens on it")),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => tokio::fs::remove_file(path).await,
        Err(error) => Err(error),
    }
}
