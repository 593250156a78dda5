//! System calls of every Unix that `rustix` does not offer to safe code: forking, reaping, signals.

#![allow(clippy::useless_conversion, reason = "the types of the C library differ from system to system")]

#[cfg(any(not(target_os = "linux"), feature = "testing"))]
mod by_trial;

use serde::{Deserialize, Serialize};
use std::io;

#[cfg(any(not(target_os = "linux"), feature = "testing"))]
pub(crate) use by_trial::{address_space, keep_two};

/// The exit code of a process that could not be locked down.
pub(crate) const SETUP_FAILED: i32 = 71;

/// The exit code of a process that aborts and may not send itself a signal, as shells report it.
pub(crate) const ABORTED: i32 = 128 + libc::SIGABRT;

/// The number of signals.
const SIGNALS: libc::c_int = if cfg!(target_os = "linux") { 64 } else { 31 };
/// The unit of resident memory in `rusage`, in bytes.
const RSS_UNIT: u64 = if cfg!(target_vendor = "apple") { 1 } else { 1024 };

/// Returns a time in microseconds; the types of its parts differ between systems.
fn micros(time: libc::timeval) -> u64 {
    let part = |part: i64| u64::try_from(part).unwrap_or(0);
    part(i64::from(time.tv_sec)) * 1_000_000 + part(i64::from(time.tv_usec))
}

pub(crate) fn result(code: i64) -> io::Result<i64> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(code) }
}

/// The two sides of a fork.
#[derive(Debug)]
pub(crate) enum Fork {
    /// The new process.
    Child,
    /// The old process, with the pid of the child. Only the caller reaps it.
    Parent(i32),
}

/// Forks this process. If it has several threads, the child has only the calling one, and locks held by the others stay
/// locked in it. Callers ensure that there is one thread, or document that they do not.
pub(crate) fn fork() -> io::Result<Fork> {
    // SAFETY: fork has no memory obligations of its own. The child can do only what the parent could do if its other
    // threads never ran again.
    side(unsafe { libc::fork() })
}

fn side(forked: libc::pid_t) -> io::Result<Fork> {
    match forked {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(pid)),
    }
}

/// Ends the process at once, without destructors, flushed buffers or exit handlers.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: _exit does not return and does not touch our memory.
    unsafe { libc::_exit(code) }
}

/// How a process ended and what it used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Death {
    /// The wait status.
    pub(crate) status: i32,
    /// Processor time.
    pub(crate) cpu_us: u64,
    /// Maximum resident memory.
    pub(crate) rss_peak_bytes: u64,
}

/// Reaps a child of this process; `None` if it is alive and `wait` is false.
pub(crate) fn reap(pid: i32, wait: bool) -> io::Result<Option<Death>> {
    reap_one(pid, if wait { 0 } else { libc::WNOHANG }).map(|reaped| reaped.map(|(_, death)| death))
}

/// Reaps any child that has ended; `None` if all are alive.
#[cfg(target_os = "linux")]
pub(crate) fn reap_any() -> io::Result<Option<(i32, Death)>> {
    reap_one(-1, libc::WNOHANG)
}

fn reap_one(pid: i32, flags: i32) -> io::Result<Option<(i32, Death)>> {
    let mut status = 0;
    loop {
        // SAFETY: an all-zero rusage is a valid one.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are to live variables of the types written.
        match unsafe { libc::wait4(pid, &raw mut status, flags, &raw mut usage) } {
            0 => return Ok(None),
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            pid => {
                let cpu_us = micros(usage.ru_utime) + micros(usage.ru_stime);
                let rss_peak_bytes = u64::try_from(usage.ru_maxrss).unwrap_or(0) * RSS_UNIT;
                return Ok(Some((pid, Death { status, cpu_us, rss_peak_bytes })));
            }
        }
    }
}

/// Returns the maximum resident memory of this process, in bytes.
#[cfg(target_os = "linux")]
pub(crate) fn resident_peak() -> u64 {
    // SAFETY: an all-zero rusage is a valid one.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live variable of the type written.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    u64::try_from(usage.ru_maxrss).unwrap_or(0) * RSS_UNIT
}

/// Returns the hard limit; `None` if unlimited.
pub(crate) fn hard_limit(resource: rustix::process::Resource) -> io::Result<Option<u64>> {
    Ok(finite(rlimit(resource)?.rlim_max))
}

/// Returns the soft limit; `None` if unlimited.
#[cfg(target_os = "linux")]
pub(crate) fn soft_limit(resource: rustix::process::Resource) -> io::Result<Option<u64>> {
    Ok(finite(rlimit(resource)?.rlim_cur))
}

/// Checks for errors, which `rustix` does not.
fn rlimit(resource: rustix::process::Resource) -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is a live variable of the type written.
    result(i64::from(unsafe { libc::getrlimit(resource as _, &raw mut limit) }))?;
    Ok(limit)
}

/// Some systems use a signed type.
fn finite(limit: libc::rlim_t) -> Option<u64> {
    (limit != libc::RLIM_INFINITY).then(|| u64::try_from(limit).unwrap_or(u64::MAX))
}

/// Resets every signal to its default and unblocks it. The two of [`listen`] are left alone.
pub(crate) fn reset_signals() {
    // SAFETY: an all-zero sigaction has the default disposition and no flags.
    let default: libc::sigaction = unsafe { std::mem::zeroed() };
    for signal in 1..=SIGNALS {
        // Those of the stack guard stay: they print the message about a stack overflow.
        if !matches!(signal, libc::SIGALRM | libc::SIGUSR1 | libc::SIGSEGV | libc::SIGBUS) {
            // SAFETY: plain data; for some signals the call fails, which does not matter.
            unsafe { libc::sigaction(signal, &raw const default, std::ptr::null_mut()) };
        }
    }
    hold_signals(false);
}

/// Blocks every signal that can be blocked, or unblocks all.
pub(crate) fn hold_signals(hold: bool) {
    // SAFETY: an all-zero set is an empty one on every system.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is a live variable.
    unsafe {
        if hold {
            libc::sigfillset(&raw mut set);
        }
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}
