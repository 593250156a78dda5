//! Ownership of a store's file: a lock that the kernel releases when the process ends, however it ends.

use super::StoreError;
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Holds the lock of a store.
#[derive(Debug)]
pub(crate) struct Owner {
    _lock: File,
}

impl Owner {
    /// Locks the file next to the store, and writes the owner's name into it.
    ///
    /// # Errors
    /// If another process holds the lock, or the file cannot be written.
    pub(crate) fn take(store: &Path) -> Result<Owner, StoreError> {
        let path = beside(store, "-lock");
        let failed = |error: io::Error| StoreError::Open {
            path: store.display().to_string(),
            why: format!("{}: {error}", path.display()),
        };
        let mut lock = private().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                // The owner may not have written its name yet.
                let _ = (&lock).take(1_000).read_to_string(&mut owner);
                let owner = owner.trim();
                let owner = if owner.is_empty() { "another process" } else { owner }.to_owned();
                return Err(StoreError::Owned { path: store.display().to_string(), owner });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        #[cfg(unix)]
        lock.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600)).map_err(failed)?;
        lock.set_len(0).and_then(|()| writeln!(lock, "{}", own_name())).map_err(failed)?;
        Ok(Owner { _lock: lock })
    }
}

fn own_name() -> String {
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(Path::file_name).map(|name| format!(" ({})", name.display()));
    format!("process {}{}", std::process::id(), program.unwrap_or_default())
}

/// Returns the absolute path of a store's file, with links resolved. The file may not exist yet. Checks that it, and the
/// files next to it, can be those of a store, and changes nothing.
///
/// # Errors
/// If it looks like an address, if there is no such directory, or one of the files is no regular file or has several names.
pub(crate) fn checked_path(path: &Path) -> io::Result<PathBuf> {
    if path.to_string_lossy().contains("://") {
        return Err(io::Error::other("it is neither a file nor postgres://USER@HOST/DATABASE"));
    }
    if let Some(parent) = path.parent().filter(|parent| *parent != Path::new("") && !parent.is_dir()) {
        return Err(io::Error::other(format!(
            "there is no directory {}; create it, or use another path (`store` in the configuration, or --store)",
            parent.display()
        )));
    }
    let path = whole_path(path)?;
    if path.is_symlink() {
        return Err(io::Error::other("it is a link to a file that does not exist; name the file itself"));
    }
    check_beside(&path)?;
    if path.try_exists()? {
        if !path.is_file() {
            return Err(io::Error::other("it is not a regular file; use another path"));
        }
        if has_other_names(&path)? {
            return Err(io::Error::other("the file has several names (hard links); use a file with one"));
        }
    }
    Ok(path)
}

fn whole_path(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let name = path.file_name().ok_or(error)?;
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            Ok(folder.unwrap_or(Path::new(".")).canonicalize()?.join(name))
        }
        found => found,
    }
}

/// Returns the path of a file that belongs to a store.
pub(crate) fn beside(store: &Path, ending: &str) -> PathBuf {
    let mut path = OsString::from(store);
    path.push(ending);
    path.into()
}

/// An open file and its path. What is written to it outlives the process only while the file is still at that path.
#[derive(Debug)]
pub(crate) struct OpenFile {
    path: PathBuf,
    #[cfg(unix)]
    is: (u64, u64),
}

#[cfg(unix)]
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).map(|about| (about.dev(), about.ino()))
}

impl OpenFile {
    /// Returns the file that was just opened at a path.
    ///
    /// # Errors
    /// If the file does not exist.
    pub(crate) fn at(path: PathBuf) -> io::Result<OpenFile> {
        Ok(OpenFile {
            #[cfg(unix)]
            is: identity(&path)?,
            path,
        })
    }

    /// Checks that the file is still at its path.
    ///
    /// # Errors
    /// If it was removed or replaced.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        #[cfg(unix)]
        let is_there = identity(&self.path).is_ok_and(|found| found == self.is);
        #[cfg(not(unix))]
        let is_there = self.path.exists();
        match is_there {
            true => Ok(()),
            false => Err(StoreError::Failed(format!(
                "{} was removed or replaced while the service runs; start the service again",
                self.path.display()
            ))),
        }
    }
}

/// Below this many free bytes a disk counts as full: a small write may still succeed, in space that the store has already.
#[cfg(unix)]
const LEAST_FREE: u64 = 1 << 20;

impl OpenFile {
    /// Checks that the disk of the file is not full.
    ///
    /// # Errors
    /// If it has less than a mebibyte left.
    #[cfg_attr(not(unix), expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "other systems do not say"))]
    pub(crate) fn check_space(&self) -> Result<(), StoreError> {
        #[cfg(unix)]
        if let Ok(disk) = rustix::fs::statvfs(&self.path)
            && is_full(disk.f_blocks, disk.f_bavail, disk.f_frsize)
        {
            let why = format!("the disk of {} has less than 1 MiB left: free some space", self.path.display());
            return Err(StoreError::Unavailable(why));
        }
        Ok(())
    }
}

/// Returns whether so little is left of a disk. One without blocks does not say how large it is.
#[cfg(unix)]
fn is_full(blocks: u64, available: u64, block_bytes: u64) -> bool {
    blocks > 0 && available.saturating_mul(block_bytes) < LEAST_FREE
}

/// Returns whether a file has hard links: the lock, and the files of SQLite, are found by its name.
#[cfg_attr(not(unix), expect(clippy::unnecessary_wraps, reason = "other systems do not say"))]
fn has_other_names(path: &Path) -> io::Result<bool> {
    #[cfg(unix)]
    return Ok(std::os::unix::fs::MetadataExt::nlink(&std::fs::metadata(path)?) > 1);
    #[cfg(not(unix))]
    Ok(false)
}

/// Checks that the files next to the store, those that exist, are files of their own: what is written to them must not
/// reach other files.
///
/// # Errors
/// If one is a link, or no regular file.
fn check_beside(store: &Path) -> io::Result<()> {
    for path in ["-lock", "-wal", "-shm", "-journal"].map(|ending| beside(store, ending)) {
        let why = match std::fs::symlink_metadata(&path) {
            Ok(about) if !about.is_file() => "is not a regular file",
            Ok(_) if has_other_names(&path)? => "has several names (hard links)",
            Ok(_) => continue,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        return Err(io::Error::other(format!("{} {why}; remove it", path.display())));
    }
    Ok(())
}

/// Options that create files only their owner can read.
#[cfg_attr(not(unix), expect(unused_mut, reason = "other systems have no file modes"))]
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates a file that only its owner can read.
///
/// # Errors
/// If it exists already, or cannot be created.
pub(crate) fn create_private(path: &Path) -> io::Result<()> {
    private().write(true).create_new(true).open(path).map(drop)
}

/// Creates the file of a store if it does not exist. Makes it, and the files that belong to it, readable by their owner
/// only.
///
/// # Errors
/// If the file cannot be created, or belongs to another user.
pub(crate) fn keep_private(store: &Path) -> io::Result<()> {
    match private().write(true).create_new(true).open(store) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    #[cfg(unix)]
    for path in ["", "-wal", "-shm"].map(|ending| beside(store, ending)) {
        use std::os::unix::fs::PermissionsExt;
        match std::fs::metadata(&path) {
            Ok(about) if about.permissions().mode() & 0o077 != 0 => {
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
