//! What every Unix has and `rustix` does not let safe code do: forking, reaping, signals, and address space by trial.

#![allow(clippy::useless_conversion, reason = "the types of the C library differ from system to system")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The signals that there are.
const SIGNALS: libc::c_int = if cfg!(target_os = "linux") { 64 } else { 31 };
/// What resident memory is counted in.
const RSS_UNIT: u64 = if cfg!(target_vendor = "apple") { 1 } else { 1024 };

/// A time in microseconds; the parts have different types on different systems.
fn micros(time: libc::timeval) -> u64 {
    let part = |part: i64| u64::try_from(part).unwrap_or(0);
    part(i64::from(time.tv_sec)) * 1_000_000 + part(i64::from(time.tv_usec))
}

pub(crate) fn result(code: i64) -> io::Result<i64> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(code) }
}

/// Which side of a fork this is.
#[derive(Debug)]
pub(crate) enum Fork {
    /// The new process.
    Child,
    /// The old one; the pid is that of the child, which nobody else reaps.
    Parent(i32),
}

/// Makes a copy of this process. In a process with several threads the copy has the calling one only, and whatever lock
/// another held stays held there: callers see to it that there is one thread, or say that they do not.
pub(crate) fn fork() -> io::Result<Fork> {
    // SAFETY: fork has no memory obligations of its own. Everything the child does afterwards is what the parent could
    // have done while its other threads stand still for ever.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(pid)),
    }
}

/// Ends the process at once: no destructors, no buffers written, no handlers.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: _exit does not return and touches no memory of ours.
    unsafe { libc::_exit(code) }
}

/// How a process ended and what it used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Death {
    /// The wait status.
    pub(crate) status: i32,
    /// Processor time.
    pub(crate) cpu_us: u64,
    /// The most that was resident.
    pub(crate) rss_peak_bytes: u64,
}

/// Reaps a child of this process; `None` when it lives and `wait` is false.
pub(crate) fn reap(pid: i32, wait: bool) -> io::Result<Option<Death>> {
    let mut status = 0;
    let flags = if wait { 0 } else { libc::WNOHANG };
    loop {
        // SAFETY: an all-zero rusage is a valid one.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are to live variables of the types wait4 writes.
        let reaped = unsafe { libc::wait4(pid, &raw mut status, flags, &raw mut usage) };
        match reaped {
            0 => return Ok(None),
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            _ => {
                return Ok(Some(Death {
                    status,
                    cpu_us: micros(usage.ru_utime) + micros(usage.ru_stime),
                    rss_peak_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * RSS_UNIT,
                }));
            }
        }
    }
}

/// The most that a limit can be raised to; `None` is without end. `rustix` takes it for granted that the system tells.
pub(crate) fn hard_limit(resource: rustix::process::Resource) -> io::Result<Option<u64>> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is a live variable of the type that is written.
    result(i64::from(unsafe { libc::getrlimit(resource as _, &raw mut limit) }))?;
    // Some systems count with a sign.
    let most = u64::try_from(limit.rlim_max).unwrap_or(u64::MAX);
    Ok((limit.rlim_max != libc::RLIM_INFINITY).then_some(most))
}

/// Puts every signal back to its default and lets it through. The two of [`listen`] are left as they are.
pub(crate) fn reset_signals() {
    // SAFETY: an all-zero sigaction has the default disposition and no flags.
    let default: libc::sigaction = unsafe { std::mem::zeroed() };
    for signal in 1..=SIGNALS {
        // Those of the stack guard stay: without them an overflow says nothing.
        if !matches!(signal, libc::SIGALRM | libc::SIGUSR1 | libc::SIGSEGV | libc::SIGBUS) {
            // SAFETY: plain data; that some signals cannot be set is no matter.
            unsafe { libc::sigaction(signal, &raw const default, std::ptr::null_mut()) };
        }
    }
    // SAFETY: an all-zero set is filled before it is used.
    let mut none: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is a live variable.
    unsafe {
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Keeps two descriptors, one as number 3 and one as standard error, and closes all others but 0 to 2. For a process that
/// has just been forked: whoever owned the others here never runs again.
pub(crate) fn keep_two(result_end: OwnedFd, said: OwnedFd) -> io::Result<OwnedFd> {
    const KEPT: RawFd = 3;
    // SAFETY: numbers only; what owned 2 and 3 does not run in this process any more.
    result(i64::from(unsafe { libc::dup2(said.as_raw_fd(), 2) }))?;
    if result_end.as_raw_fd() != KEPT {
        // SAFETY: as above.
        result(i64::from(unsafe { libc::dup2(result_end.as_raw_fd(), KEPT) }))?;
    }
    std::mem::forget((result_end, said));
    for fd in KEPT + 1..open_files() {
        // SAFETY: as above.
        unsafe { libc::close(fd) };
    }
    // SAFETY: 3 is open, and what owned it before has been forgotten or does not run here.
    Ok(unsafe { OwnedFd::from_raw_fd(KEPT) })
}

/// More than the highest number of a descriptor, as a rule.
fn open_files() -> RawFd {
    const LEAST: RawFd = 4_096;
    const MOST: RawFd = 1 << 20;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is a live variable of the type that is written.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    RawFd::try_from(limit.rlim_cur).unwrap_or(MOST).clamp(LEAST, MOST)
}

/// Is there a page to be had?
fn a_page() -> bool {
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
    // SAFETY: a new mapping at a place of the kernel's choice.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), 4096, prot, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return false;
    }
    // SAFETY: it has just been made, and nobody else knows of it.
    unsafe { libc::munmap(page, 4096) };
    true
}

/// The address space this process has, found out by lowering the limit until no page can be had; `None` on a system where
/// the limit is not kept. The limit is as before afterwards.
pub(crate) fn address_space() -> io::Result<Option<u64>> {
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is a live variable of the type that is written.
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
    // Nothing here takes memory: for most of this there is none.
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
