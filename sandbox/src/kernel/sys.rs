//! System calls that `rustix` does not have or does not offer to safe code, for Linux.

use super::unix::{ABORTED, result};
pub(crate) use super::unix::{Death, Fork, exit, fork, hold_signals, reap, reap_any, reset_signals, resident_peak};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::time::Duration;

/// One instruction of a seccomp filter.
pub(crate) type Instruction = libc::sock_filter;

/// The calling convention that filters accept.
pub(crate) const fn arch() -> u32 {
    #[cfg(target_arch = "x86_64")]
    return 0xc000_003e;
    #[cfg(target_arch = "aarch64")]
    return 0xc000_00b7;
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    compile_error!("the filter's table of system calls is for x86-64 and aarch64");
}

/// Installs a filter for this thread and all threads and processes it starts. Requires no_new_privs.
pub(crate) fn install_filter(program: &[Instruction], all_threads: bool) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // The kernel does not write through the pointer, whatever its type says.
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    let flags = if all_threads { libc::SECCOMP_FILTER_FLAG_TSYNC } else { 0 };
    // SAFETY: the program lives until the call returns; the kernel copies it.
    let code = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
    result(code).map(drop)
}

/// Returns the version of Landlock that the kernel supports.
pub(crate) fn landlock_version() -> io::Result<i32> {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the call takes no attribute.
    let code = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, VERSION) };
    result(code).map(|version| i32::try_from(version).unwrap_or(i32::MAX))
}

/// Forbids this thread, and everything it starts, all files, all TCP ports, and signals and abstract sockets to
/// processes outside, as far as this version of Landlock supports it. Requires no_new_privs.
pub(crate) fn landlock_nothing(version: i32) -> io::Result<()> {
    #[repr(C)]
    struct Ruleset {
        files: u64,
        net: u64,
        scoped: u64,
    }
    let files = match version {
        ..=1 => (1 << 13) - 1,
        2 => (1 << 14) - 1,
        3 | 4 => (1 << 15) - 1,
        _ => (1 << 16) - 1,
    };
    let ruleset = Ruleset { files, net: if version >= 4 { 3 } else { 0 }, scoped: if version >= 6 { 3 } else { 0 } };
    let size: usize = match version {
        ..=3 => 8,
        4 | 5 => 16,
        _ => 24,
    };
    // SAFETY: the attribute lives until the call returns, and `size` is at most its size.
    let fd = result(unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &raw const ruleset, size, 0_u32) })?;
    let fd = RawFd::try_from(fd).map_err(|_| io::ErrorKind::InvalidData)?;
    // SAFETY: the kernel has just created this descriptor for us.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: the call takes two integers.
    result(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, fd.as_raw_fd(), 0_u32) }).map(drop)
}

/// Takes ownership of standard input. For a process whose only channel is standard input; called once.
pub(crate) fn take_stdin() -> OwnedFd {
    // SAFETY: the template uses standard input for nothing else, and calls this once.
    unsafe { OwnedFd::from_raw_fd(0) }
}

/// Keeps one descriptor, as number 3, and with `speak` also as standard error. Closes all others except 0 to 2. For a
/// process that has just been forked, in which the owners of the others never run.
pub(crate) fn keep_only(fd: OwnedFd, speak: bool) -> io::Result<OwnedFd> {
    const KEPT: RawFd = 3;
    let raw = fd.as_raw_fd();
    if raw != KEPT {
        // SAFETY: takes numbers only; nothing in this process uses 3 any more.
        result(i64::from(unsafe { libc::dup3(raw, KEPT, libc::O_CLOEXEC) }))?;
    }
    if speak {
        // SAFETY: as above. The C library's function may use another system call, which the filters do not allow.
        result(unsafe { libc::syscall(libc::SYS_dup3, KEPT, 2, 0) })?;
    }
    std::mem::forget(fd);
    close_from(4)?;
    // SAFETY: 3 is open, and its previous owner is forgotten or does not run here.
    Ok(unsafe { OwnedFd::from_raw_fd(KEPT) })
}

/// Returns the descriptor kept by [`keep_only`]. For payloads of tests, which never close it.
#[cfg(feature = "testing")]
pub(crate) fn third() -> OwnedFd {
    // SAFETY: tests never drop it.
    unsafe { OwnedFd::from_raw_fd(3) }
}

/// Closes every descriptor from this number on.
pub(crate) fn close_from(first: u32) -> io::Result<()> {
    // SAFETY: the owners of these descriptors never run in this process: see the callers.
    let code = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0_u32) };
    match result(code) {
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
            for fd in first..4096 {
                // SAFETY: as above.
                unsafe { libc::close(fd.cast_signed()) };
            }
            Ok(())
        }
        done => done.map(drop),
    }
}

static ALARM: AtomicPtr<AtomicBool> = AtomicPtr::new(std::ptr::null_mut());
static CANCEL: AtomicPtr<AtomicBool> = AtomicPtr::new(std::ptr::null_mut());

extern "C" fn on_trap(_: libc::c_int) {
    exit(ABORTED);
}

extern "C" fn on_signal(signal: libc::c_int) {
    let set = |flag: &AtomicPtr<AtomicBool>| {
        // SAFETY: null, or the inside of an `Arc` that `listen` has leaked.
        if let Some(flag) = unsafe { flag.load(Ordering::Relaxed).as_ref() } {
            flag.store(true, Ordering::Relaxed);
        }
    };
    if signal == libc::SIGUSR1 {
        set(&CANCEL);
    }
    set(&ALARM);
}

/// Makes SIGALRM set `alarm`, and SIGUSR1 both flags, for the rest of the process. A call trapped by a filter ends the
/// process.
pub(crate) fn listen(alarm: Arc<AtomicBool>, cancel: Arc<AtomicBool>) -> io::Result<()> {
    ALARM.store(Arc::into_raw(alarm).cast_mut(), Ordering::Relaxed);
    CANCEL.store(Arc::into_raw(cancel).cast_mut(), Ordering::Relaxed);
    // SAFETY: an all-zero sigaction is a valid one.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_signal as *const () as usize;
    action.sa_flags = libc::SA_RESTART;
    for signal in [libc::SIGALRM, libc::SIGUSR1] {
        // SAFETY: the handler only makes atomic stores, which are safe in a handler.
        result(i64::from(unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) }))?;
    }
    action.sa_sigaction = on_trap as *const () as usize;
    // SAFETY: the handler only ends the process.
    result(i64::from(unsafe { libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut()) })).map(drop)
}

/// Sends SIGALRM after a time, then every 10 ms in case the first one came too early to have an effect; `None` means
/// never.
pub(crate) fn alarm_in(time: Option<Duration>) {
    let timeval = |time: Duration| libc::timeval {
        tv_sec: i32::try_from(time.as_secs().min(100_000_000)).unwrap_or(i32::MAX).into(),
        tv_usec: i32::try_from(time.subsec_micros()).unwrap_or(0).into(),
    };
    let first = time.map_or(Duration::ZERO, |time| time.max(Duration::from_micros(1)));
    let timer = libc::itimerval { it_interval: timeval(Duration::from_millis(10)), it_value: timeval(first) };
    // SAFETY: the timer is a live variable; the old one is not requested.
    unsafe { libc::syscall(libc::SYS_setitimer, libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut::<u8>()) };
}

/// Returns a descriptor that becomes readable when a child of this process has ended. Blocks SIGCHLD, as it must.
pub(crate) fn ends_of_children() -> io::Result<OwnedFd> {
    // SAFETY: an all-zero set is an empty one on every system.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is a live variable, and the kernel has just created the descriptor.
    unsafe {
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        result(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()).into())?;
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        result(fd.into())?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Returns the processor time used by a living process.
pub(crate) fn cpu_time(pid: i32) -> io::Result<Duration> {
    // The kernel's encoding of a process's clock.
    let clock = (!pid << 3) | 2;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is a live variable.
    result(i64::from(unsafe { libc::clock_gettime(clock, &raw mut time) }))?;
    Ok(Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0)))
}

/// Returns the nanoseconds of the monotonic clock, which all processes of a system share.
pub(crate) fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is a live variable; this clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Moves this process into new namespaces.
pub(crate) fn unshare(namespaces: libc::c_int) -> io::Result<()> {
    // SAFETY: only flags of namespaces are given, which affect no memory shared between threads.
    result(i64::from(unsafe { libc::unshare(namespaces) })).map(drop)
}

/// Continues in a new process, the first in the namespace created by [`unshare`]. The old process waits until it has
/// ended, and then exits.
pub(crate) fn move_into_namespace() -> io::Result<()> {
    match fork()? {
        Fork::Child => Ok(()),
        Fork::Parent(pid) => {
            let _ = reap(pid, true);
            exit(0)
        }
    }
}

/// Moves a range of whole pages into huge pages, at the same addresses.
pub(crate) fn gather(range: std::ops::Range<usize>) -> io::Result<()> {
    /// The number is the same on all machines; not every C library defines it.
    const MADV_COLLAPSE: libc::c_int = 25;
    let start = std::ptr::without_provenance_mut(range.start);
    // SAFETY: the contents stay the same.
    result(i64::from(unsafe { libc::madvise(start, range.len(), MADV_COLLAPSE) })).map(drop)
}

/// Returns the number of bytes sent over a socket of this system and not read yet, as the kernel counts them.
pub(crate) fn unread(socket: &OwnedFd) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the number is a live variable of the type that is written.
    result(i64::from(unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) }))?;
    Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// Makes the C library's allocator use one arena for all threads. Otherwise each thread would reserve many times the
/// address space that it uses.
pub(crate) fn one_arena() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: a setting of the allocator, which takes two integers.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}
