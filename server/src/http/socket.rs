//! The file of a Unix socket: created for its owner only, and removed when the service ends.

use std::fs::{File, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use tokio::net::UnixSocket;

/// The number of connections that wait to be accepted.
const BACKLOG: u32 = 1_024;

/// The file of a socket. Dropping it removes the file, if it is still that of this socket.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    is: (u64, u64),
    /// No other process replaces the file while it is held.
    _lock: File,
}

impl SocketFile {
    /// Listens at a path. Needs a tokio runtime.
    ///
    /// # Errors
    /// If another process listens there, the path belongs to something else, or the system fails.
    pub(super) fn bind(path: &Path, mode: u32) -> io::Result<(UnixListener, SocketFile)> {
        let lock = lock(path)?;
        remove_stale(path)?;
        let socket = UnixSocket::new_stream()?;
        socket.bind(path)?;
        let file = SocketFile { path: path.to_owned(), is: identity(path)?, _lock: lock };
        // Nobody can connect before it listens.
        std::fs::set_permissions(path, Permissions::from_mode(mode))?;
        Ok((socket.listen(BACKLOG)?.into_std()?, file))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|found| found == self.is) {
            // The next start replaces what cannot be removed now.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    std::fs::symlink_metadata(path).map(|about| (about.dev(), about.ino()))
}

fn taken() -> io::Error {
    io::Error::new(ErrorKind::AddrInUse, "another process listens there; stop it, or use another path")
}

/// Locks the file next to a socket, which stays when the socket is gone.
fn lock(path: &Path) -> io::Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push("-lock");
    let lock = File::options().write(true).create(true).truncate(false).mode(0o600).open(name)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(taken()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Removes a socket that no process listens on any more.
fn remove_stale(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(about) if !about.file_type().is_socket() => {
            return Err(io::Error::new(
                ErrorKind::AlreadyExists,
                "it exists and is not a socket; remove it, or use another path",
            ));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(taken()),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
