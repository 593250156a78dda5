//! Writes a file as a whole.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Writes a file, replacing an existing one atomically: readers see the old text or the new text, whole.
///
/// An existing file keeps its permissions. On Unix, only its owner can read a new one. A device or a pipe is written
/// to.
pub(crate) fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => fs::write(path, text),
        Ok(_) => replace(path, text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Create the target of a link, not a file in place of the link.
            let target = fs::read_link(path).map(|target| path.with_file_name(target));
            put(target.as_deref().unwrap_or(path), text, None)
        }
        Err(error) => Err(error),
    }
}

/// Replaces an existing file atomically. It keeps its permissions.
pub(crate) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    // Replace the target of a link, not the link.
    let path = fs::canonicalize(path)?;
    let metadata = fs::metadata(&path)?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let permissions = metadata.permissions();
    // A new file would replace one that must not be written.
    if permissions.readonly() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"));
    }
    put(&path, text, Some(permissions))
}

/// Puts a file in its place, with these permissions.
fn put(path: &Path, text: &[u8], permissions: Option<fs::Permissions>) -> io::Result<()> {
    let beside = beside(path)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside)?;
    let written = permissions
        .map_or(Ok(()), |permissions| file.set_permissions(permissions))
        .and_then(|()| file.write_all(text))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // Report the first error, why it was not written.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// Returns the name of the temporary file, in the same directory.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let Some(file) = path.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not the name of a file"));
    };
    let mut name = OsString::from(".");
    name.push(file);
    name.push(format!(".{}.ptcl", std::process::id()));
    Ok(path.with_file_name(name))
}

/// Makes a write beyond the file size limit (`ulimit -f`) fail like one on a full disk. By default it would end the
/// process.
#[cfg(unix)]
pub(crate) fn bear_file_limits() -> io::Result<()> {
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default()).map(drop)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn a_file_is_written_as_a_whole() {
        let directory = std::env::temp_dir().join(format!("ptcl-replace-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let file = directory.join("a");
        write(&file, b"old").unwrap();
        assert_eq!((fs::read(&file).unwrap(), mode(&file)), (b"old".to_vec(), 0o600));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        // Links stay links, also one whose target does not exist yet.
        let (link, dangling) = (directory.join("link"), directory.join("dangling"));
        symlink("a", &link).unwrap();
        symlink("b", &dangling).unwrap();
        write(&link, b"new").unwrap();
        write(&dangling, b"b").unwrap();
        assert_eq!((fs::read(&file).unwrap(), mode(&file)), (b"new".to_vec(), 0o640));
        assert_eq!(fs::read(directory.join("b")).unwrap(), b"b");
        assert!(
            fs::symlink_metadata(&link).unwrap().is_symlink() && fs::symlink_metadata(&dangling).unwrap().is_symlink()
        );
        // What cannot be written changes nothing.
        fs::set_permissions(&file, fs::Permissions::from_mode(0o400)).unwrap();
        assert_eq!(write(&file, b"no").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(write(&directory, b"no").is_err() && write(&directory.join("no/x"), b"no").is_err());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        write(Path::new("/dev/null"), b"away").unwrap();
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 4);
        fs::remove_dir_all(&directory).unwrap();
    }
}
