//! For systems without a better interface: finds out by trying which descriptors are open, and how much address space
//! is in use.

use super::result;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Keeps two descriptors, one as number 3 and one as standard error, and closes all others except 0 to 2. For a process
/// that has just been forked, in which the owners of the others never run.
pub(crate) fn keep_two(result_end: OwnedFd, stderr: OwnedFd) -> io::Result<OwnedFd> {
    const KEPT: RawFd = 3;
    // SAFETY: takes numbers only; the owners of 2 and 3 do not run in this process.
    result(i64::from(unsafe { libc::dup2(stderr.as_raw_fd(), 2) }))?;
    if result_end.as_raw_fd() != KEPT {
        // SAFETY: as above.
        result(i64::from(unsafe { libc::dup2(result_end.as_raw_fd(), KEPT) }))?;
    }
    std::mem::forget((result_end, stderr));
    for fd in KEPT + 1..open_files() {
        // SAFETY: as above.
        unsafe { libc::close(fd) };
    }
    // SAFETY: 3 is open, and its previous owner is forgotten or does not run here.
    Ok(unsafe { OwnedFd::from_raw_fd(KEPT) })
}

/// Returns a number that is usually higher than any open descriptor.
fn open_files() -> RawFd {
    const LEAST: RawFd = 4_096;
    const MAX: RawFd = 1 << 20;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is a live variable of the type written.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    RawFd::try_from(limit.rlim_cur).unwrap_or(MAX).clamp(LEAST, MAX)
}

/// Returns true if a page can be allocated.
fn a_page() -> bool {
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
    // SAFETY: a new mapping at an address that the kernel chooses.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), 4096, prot, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return false;
    }
    // SAFETY: it has just been created and is used nowhere else.
    unsafe { libc::munmap(page, 4096) };
    true
}

/// Finds the address space of this process by lowering the limit until no page can be allocated. `None` on a system
/// that does not enforce the limit. Restores the limit afterwards.
pub(crate) fn address_space() -> io::Result<Option<u64>> {
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is a live variable of the type written.
    result(i64::from(unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut before) }))?;
    let set = |soft: libc::rlim_t| {
        let limit = libc::rlimit { rlim_cur: soft, rlim_max: before.rlim_max };
        // SAFETY: the limit is a live variable; only the soft one changes.
        result(i64::from(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) })).map(drop)
    };
    set(0)?;
    if a_page() {
        set(before.rlim_cur)?;
        return Ok(None);
    }
    // Nothing here may allocate: during most of the search that would fail.
    let (mut none, mut some): (libc::rlim_t, libc::rlim_t) = (0, (1 << 47).min(before.rlim_cur));
    while some - none > 4096 {
        let half = none + (some - none) / 2;
        set(half)?;
        if a_page() {
            some = half;
        } else {
            none = half;
        }
    }
    set(before.rlim_cur)?;
    Ok(u64::try_from(some).ok())
}
