//! Calls that may be made, with arguments that no run needs.

use crate::payloads::{DENIED, ESCAPED, denied, raw};
use std::os::fd::OwnedFd;

/// Locks with priority inheritance, and other operations that no lock of a run uses.
fn futexes(operation: i32) -> i32 {
    let mut word = 0_u32;
    denied(raw(libc::SYS_futex, [(&raw mut word) as usize, operation as usize, 0, 0, 0, 0]))
}

pub(crate) fn futex_lock_pi(_: &OwnedFd) -> i32 {
    futexes(libc::FUTEX_LOCK_PI | libc::FUTEX_PRIVATE_FLAG)
}

pub(crate) fn futex_unlock_pi(_: &OwnedFd) -> i32 {
    futexes(libc::FUTEX_UNLOCK_PI)
}

pub(crate) fn futex_requeue_pi(_: &OwnedFd) -> i32 {
    futexes(libc::FUTEX_CMP_REQUEUE_PI | libc::FUTEX_PRIVATE_FLAG)
}

pub(crate) fn futex_wake_op(_: &OwnedFd) -> i32 {
    futexes(libc::FUTEX_WAKE_OP)
}

/// A page that may be written, and what came of mapping it.
fn page(flags: i32) -> i64 {
    let flags = libc::MAP_ANONYMOUS | flags;
    raw(libc::SYS_mmap, [0, 4096, (libc::PROT_READ | libc::PROT_WRITE) as usize, flags as usize, usize::MAX, 0])
}

pub(crate) fn map_huge(_: &OwnedFd) -> i32 {
    denied(page(libc::MAP_PRIVATE | libc::MAP_HUGETLB))
}

pub(crate) fn map_locked(_: &OwnedFd) -> i32 {
    denied(page(libc::MAP_PRIVATE | libc::MAP_LOCKED))
}

pub(crate) fn map_growing(_: &OwnedFd) -> i32 {
    denied(page(libc::MAP_PRIVATE | libc::MAP_GROWSDOWN))
}

/// Advice beyond giving memory back: of pages that are merged, copied to no fork, or made huge.
pub(crate) fn advise(_: &OwnedFd) -> i32 {
    let page = page(libc::MAP_PRIVATE) as usize;
    let advice =
        [libc::MADV_MERGEABLE, libc::MADV_DONTFORK, libc::MADV_HUGEPAGE, libc::MADV_FREE, libc::MADV_WIPEONFORK];
    let known = raw(libc::SYS_madvise, [page, 4096, libc::MADV_DONTNEED as usize, 0, 0, 0]) == 0;
    let other = advice.iter().any(|&advice| raw(libc::SYS_madvise, [page, 4096, advice as usize, 0, 0, 0]) == 0);
    if known && !other { DENIED } else { ESCAPED }
}

pub(crate) fn move_page(_: &OwnedFd) -> i32 {
    let (from, to) = (page(libc::MAP_PRIVATE) as usize, page(libc::MAP_PRIVATE) as usize);
    let flags = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as usize;
    denied(raw(libc::SYS_mremap, [from, 4096, 4096, flags, to, 0]))
}

/// A thread, with flags beyond it.
fn threads_with(flag: i32) -> i32 {
    let thread = libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND;
    // Without a stack of its own it must not come to be; the kernel would refuse these flags or start it.
    let stack = page(libc::MAP_PRIVATE);
    if raw(libc::SYS_clone, [(thread | flag) as usize, if stack > 0 { stack as usize } else { 0 }, 0, 0, 0, 0]) >= 0 {
        return ESCAPED;
    }
    DENIED
}

pub(crate) fn clone_ptrace(_: &OwnedFd) -> i32 {
    threads_with(libc::CLONE_PTRACE)
}

pub(crate) fn clone_untraced(_: &OwnedFd) -> i32 {
    threads_with(libc::CLONE_UNTRACED)
}

pub(crate) fn clone_io(_: &OwnedFd) -> i32 {
    threads_with(libc::CLONE_IO)
}
