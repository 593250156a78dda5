//! What a program of the language cannot do, done natively in its place.
//!
//! A payload answers [`DENIED`] when it was told no, and [`ESCAPED`] when it got what it must not have. One that is killed
//! answers nothing.

use crate::{arguments, channel, domains};
use lisp_sandbox::testing::{self, Payload, receive, send_frame, send_raw};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

pub(crate) const DENIED: i32 = 10;
pub(crate) const ESCAPED: i32 = 42;

/// A system call by its number.
#[allow(unsafe_code, reason = "payloads do what programs must not be able to do")]
pub(crate) fn raw(call: i64, args: [usize; 6]) -> i64 {
    let [a, b, c, d, e, f] = args;
    // SAFETY: for the calls with pointers, the callers give those of live variables or such as the kernel refuses. What
    // becomes of this process is what the test is about.
    match unsafe { libc::syscall(call, a, b, c, d, e, f) } {
        -1 => -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)),
        done => done,
    }
}

pub(crate) fn denied(result: i64) -> i32 {
    if result < 0 { DENIED } else { ESCAPED }
}

fn path(text: &'static std::ffi::CStr) -> usize {
    text.as_ptr() as usize
}

pub(crate) fn for_ever() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

pub(crate) fn spin(_: &OwnedFd) -> i32 {
    // Long enough to be killed by anything that kills.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(40) {
        std::hint::spin_loop();
    }
    ESCAPED
}

/// One piece of arithmetic without a system call, a clock, or a flag that it looks at.
fn native_arithmetic(_: &OwnedFd) -> i32 {
    let mut x = std::hint::black_box(3_u64);
    for n in 0..40_000_000_000_u64 {
        x = std::hint::black_box(x).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(n);
    }
    if x == 1 { DENIED } else { ESCAPED }
}

/// One call into the standard library that takes its time over each comparison.
fn native_sort(_: &OwnedFd) -> i32 {
    let mut all: Vec<u32> = (0..200_000_u32).map(|n| n.wrapping_mul(2_654_435_761)).collect();
    let key = |n: &u32| (0..20_000_u32).fold(*n, |a, b| std::hint::black_box(a) ^ b);
    all.sort_by_key(key);
    if all[0] == 1 { DENIED } else { ESCAPED }
}

/// What backtracking costs: all ways to split a text, each looked at.
fn native_backtracking(_: &OwnedFd) -> i32 {
    fn ways(left: u32) -> u64 {
        (1..=left).map(|n| ways(std::hint::black_box(left - n))).sum::<u64>() + 1
    }
    if ways(44) == 0 { DENIED } else { ESCAPED }
}

fn sleep(_: &OwnedFd) -> i32 {
    for_ever()
}

fn wait_for_the_host(run: &OwnedFd) -> i32 {
    // The job never comes.
    drop(receive(run));
    for_ever()
}

fn hold_signals(_: &OwnedFd) -> i32 {
    raw(libc::SYS_rt_sigprocmask, [0, &raw const ALL as usize, 0, 8, 0, 0]);
    for_ever()
}

fn stop_itself(_: &OwnedFd) -> i32 {
    raw(libc::SYS_rt_sigprocmask, [0, &raw const ALL as usize, 0, 8, 0, 0]);
    let (pid, tid) = (raw(libc::SYS_getpid, [0; 6]) as usize, raw(libc::SYS_gettid, [0; 6]) as usize);
    raw(libc::SYS_tgkill, [pid, tid, libc::SIGSTOP as usize, 0, 0, 0]);
    for_ever()
}

fn hold_memory(_: &OwnedFd) -> i32 {
    let mut held: Vec<Vec<u8>> = Vec::new();
    for _ in 0..4096 {
        held.push(Vec::with_capacity(1 << 20));
        std::hint::black_box(&held);
    }
    ESCAPED
}

fn one_huge_vector(_: &OwnedFd) -> i32 {
    let huge: Vec<u8> = Vec::with_capacity(1 << 40);
    std::hint::black_box(&huge);
    ESCAPED
}

fn double_a_string(_: &OwnedFd) -> i32 {
    let mut text = String::from("x");
    while text.len() < 1 << 34 {
        text = text.repeat(2);
    }
    ESCAPED
}

/// All products of a factorial, each kept.
fn keep_factorials(_: &OwnedFd) -> i32 {
    let mut held = vec![vec![1_u32]];
    for n in 2..200_000_u64 {
        let mut carry = 0;
        let mut next: Vec<u32> = Vec::with_capacity(held[held.len() - 1].len() + 1);
        for &limb in &held[held.len() - 1] {
            carry += u64::from(limb) * n;
            next.push(carry as u32);
            carry >>= 32;
        }
        next.push(carry as u32);
        held.push(next);
    }
    ESCAPED
}

/// Small things of several sizes, a part of them let go again, so that what is free lies in pieces.
fn many_small_maps(_: &OwnedFd) -> i32 {
    type Call = Box<dyn Fn() -> u64>;
    let mut held: Vec<(std::collections::BTreeMap<u64, u64>, Option<Call>)> = Vec::new();
    for n in 0..20_000_000_u64 {
        let map = (0..n % 9).map(|key| (key, n)).collect();
        held.push((map, Some(Box::new(move || n))));
        if n % 3 == 0
            && let Some(some) = held.get_mut((n / 2) as usize)
        {
            *some = (std::collections::BTreeMap::new(), None);
        }
    }
    held.iter().filter_map(|(_, call)| call.as_ref().map(|call| call())).sum::<u64>() as i32 | ESCAPED
}

/// How much [`hold_and_report`] holds.
pub(crate) const HELD: usize = 100 << 20;

fn hold_and_report(run: &OwnedFd) -> i32 {
    let held = std::hint::black_box(vec![1_u8; HELD]);
    let done = channel::report(run);
    drop(held);
    done
}

/// What [`fill_and_report`] fills.
pub(crate) const FILLED: usize = 300 << 20;

/// Fills a part of memory page by page, and comes to an end.
fn fill_and_report(run: &OwnedFd) -> i32 {
    let mut held: Vec<Vec<u8>> = Vec::new();
    for _ in 0..FILLED >> 20 {
        held.push(std::hint::black_box(vec![1; 1 << 20]));
    }
    let done = channel::report(run);
    drop(held);
    done
}

fn make_pipes(_: &OwnedFd) -> i32 {
    let mut ends = [0_i32; 2];
    denied(raw(libc::SYS_pipe2, [ends.as_mut_ptr() as usize, 0, 0, 0, 0, 0]))
}

fn make_sockets(_: &OwnedFd) -> i32 {
    let mut ends = [0_i32; 2];
    let args = [libc::AF_UNIX as usize, libc::SOCK_DGRAM as usize, 0, ends.as_mut_ptr() as usize, 0, 0];
    denied(raw(libc::SYS_socketpair, args))
}

/// Fills its channel while the host is at work on a call and reads nothing.
fn call_and_fill(run: &OwnedFd) -> i32 {
    send_frame(run, b'C', 1, r#"{"number":1,"place":{"workers":[],"effect":1},"name":"stuck","arguments":"{}"}"#);
    for part in 0_u32.. {
        let mut packet = vec![0; 50_000];
        packet[0] = 0xfd;
        packet[5..9].copy_from_slice(&10_000_000_u32.to_le_bytes());
        packet[9..13].copy_from_slice(&(part * (50_000 - 13)).to_le_bytes());
        if !send_raw(run, &packet) {
            break;
        }
    }
    ESCAPED
}

/// Ends some milliseconds before or after a deadline of eight.
fn near_the_deadline(run: &OwnedFd) -> i32 {
    std::thread::sleep(Duration::from_millis(4 + raw(libc::SYS_getpid, [0; 6]).unsigned_abs() % 8));
    channel::report(run)
}

/// Maps until it is told no; more than a gigabyte is an escape.
fn map(flags: i32) -> i32 {
    const PART: usize = 1 << 24;
    for _ in 0..64 {
        let args = [0, PART, (libc::PROT_READ | libc::PROT_WRITE) as usize, flags as usize, usize::MAX, 0];
        if raw(libc::SYS_mmap, args) < 0 {
            return DENIED;
        }
    }
    ESCAPED
}

fn map_private(_: &OwnedFd) -> i32 {
    map(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)
}

fn map_shared(_: &OwnedFd) -> i32 {
    map(libc::MAP_SHARED | libc::MAP_ANONYMOUS)
}

pub(crate) fn memory_file(_: &OwnedFd) -> i32 {
    let fd = raw(libc::SYS_memfd_create, [path(c"x"), 0, 0, 0, 0, 0]);
    // Going beyond the size of files that is allowed must not kill before the answer.
    raw(libc::SYS_rt_sigprocmask, [0, &raw const ALL as usize, 0, 8, 0, 0]);
    denied(if fd < 0 { fd } else { raw(libc::SYS_ftruncate, [fd as usize, 1 << 20, 0, 0, 0, 0]) })
}

static ALL: u64 = u64::MAX;

fn overflow(_: &OwnedFd) -> i32 {
    #[allow(unconditional_recursion, reason = "this is what it is for")]
    fn deeper(n: u64) -> u64 {
        let here = std::hint::black_box([n; 64]);
        deeper(n + 1) + here[(n % 64) as usize]
    }
    deeper(0) as i32
}

pub(crate) fn fork(_: &OwnedFd) -> i32 {
    let flags = libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID | libc::SIGCHLD;
    let pid = raw(libc::SYS_clone, [flags as usize, 0, 0, 0, 0, 0]);
    if pid == 0 {
        testing::exit(0);
    }
    denied(pid)
}

fn vfork(_: &OwnedFd) -> i32 {
    denied(raw(libc::SYS_vfork, [0; 6]))
}

fn clone3(_: &OwnedFd) -> i32 {
    let args = [0_u64, 0, 0, 0, libc::SIGCHLD as u64, 0, 0, 0];
    denied(raw(libc::SYS_clone3, [args.as_ptr() as usize, 64, 0, 0, 0, 0]))
}

fn clone3_new_user(_: &OwnedFd) -> i32 {
    let args = [libc::CLONE_NEWUSER as u64, 0, 0, 0, libc::SIGCHLD as u64, 0, 0, 0];
    denied(raw(libc::SYS_clone3, [args.as_ptr() as usize, 64, 0, 0, 0, 0]))
}

fn clone_new_user(_: &OwnedFd) -> i32 {
    denied(raw(libc::SYS_clone, [(libc::CLONE_NEWUSER | libc::SIGCHLD) as usize, 0, 0, 0, 0, 0]))
}

fn daemon(_: &OwnedFd) -> i32 {
    raw(libc::SYS_setsid, [0; 6]);
    denied(raw(libc::SYS_clone, [libc::SIGCHLD as usize, 0, 0, 0, 0, 0]))
}

fn thread(_: &OwnedFd) -> i32 {
    match std::thread::Builder::new().spawn(|| ()) {
        Ok(_) => ESCAPED,
        Err(_) => DENIED,
    }
}

fn kill_all(_: &OwnedFd) -> i32 {
    denied(raw(libc::SYS_kill, [usize::MAX, 0, 0, 0, 0, 0]))
}

fn kill_parent(_: &OwnedFd) -> i32 {
    // The template, where it is the first in its namespace; which process is the parent cannot be asked.
    denied(raw(libc::SYS_kill, [1, libc::SIGKILL as usize, 0, 0, 0, 0]))
}

fn signal_another(_: &OwnedFd) -> i32 {
    denied(raw(libc::SYS_tgkill, [1, 1, 0, 0, 0, 0]))
}

fn open_a_process(_: &OwnedFd) -> i32 {
    denied(raw(libc::SYS_pidfd_open, [1, 0, 0, 0, 0, 0]))
}

fn trace(_: &OwnedFd) -> i32 {
    denied(raw(libc::SYS_ptrace, [libc::PTRACE_ATTACH as usize, 1, 0, 0, 0, 0]))
}

fn read_another(_: &OwnedFd) -> i32 {
    denied(raw(libc::SYS_process_vm_readv, [1, 0, 0, 0, 0, 0]))
}

fn open_at(path: usize, flags: i32) -> i64 {
    raw(libc::SYS_openat, [libc::AT_FDCWD as usize, path, flags as usize, 0, 0, 0])
}

pub(crate) fn open_passwd(_: &OwnedFd) -> i32 {
    denied(open_at(path(c"/etc/passwd"), libc::O_RDONLY))
}

fn open_many(_: &OwnedFd) -> i32 {
    let paths = [c"../etc/passwd", c"/proc/self/root/etc/passwd", c"/proc/1/mem", c"/dev/null", c".", c"/tmp/x"];
    let flags = [libc::O_RDONLY, libc::O_PATH, libc::O_RDWR | libc::O_CREAT];
    let opened = paths.iter().flat_map(|name| flags.map(|flag| open_at(path(name), flag))).any(|fd| fd >= 0);
    if opened { ESCAPED } else { DENIED }
}

fn open_old(_: &OwnedFd) -> i32 {
    denied(raw(libc::SYS_open, [path(c"/etc/passwd"), 0, 0, 0, 0, 0]))
}

fn openat2(_: &OwnedFd) -> i32 {
    let how = [0_u64; 3];
    let args = [libc::AT_FDCWD as usize, path(c"/etc/passwd"), how.as_ptr() as usize, 24, 0, 0];
    denied(raw(libc::SYS_openat2, args))
}

fn io_uring(_: &OwnedFd) -> i32 {
    let params = [0_u64; 16];
    denied(raw(libc::SYS_io_uring_setup, [4, params.as_ptr() as usize, 0, 0, 0, 0]))
}

fn handle(_: &OwnedFd) -> i32 {
    denied(raw(libc::SYS_name_to_handle_at, [libc::AT_FDCWD as usize, path(c"/"), 0, 0, 0, 0]))
}

fn socket(family: i32, kind: i32) -> i32 {
    denied(raw(libc::SYS_socket, [family as usize, kind as usize, 0, 0, 0, 0]))
}

fn socket_inet(_: &OwnedFd) -> i32 {
    socket(libc::AF_INET, libc::SOCK_STREAM)
}

fn socket_unix(_: &OwnedFd) -> i32 {
    socket(libc::AF_UNIX, libc::SOCK_STREAM)
}

fn socket_netlink(_: &OwnedFd) -> i32 {
    socket(libc::AF_NETLINK, libc::SOCK_RAW)
}

fn socket_vsock(_: &OwnedFd) -> i32 {
    socket(libc::AF_VSOCK, libc::SOCK_STREAM)
}

fn socket_packet(_: &OwnedFd) -> i32 {
    socket(libc::AF_PACKET, libc::SOCK_RAW)
}

/// The address of the listener that the test has on port 1 of its own, given by the environment of the host as a number.
pub(crate) fn connect_loopback(_: &OwnedFd) -> i32 {
    let fd = raw(libc::SYS_socket, [libc::AF_INET as usize, libc::SOCK_STREAM as usize, 0, 0, 0, 0]);
    if fd < 0 {
        return DENIED;
    }
    let address = [2, 0, (crate::PORT >> 8) as u8, crate::PORT as u8, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0_u8];
    denied(raw(libc::SYS_connect, [fd as usize, address.as_ptr() as usize, 16, 0, 0, 0]))
}

fn other_descriptors(_: &OwnedFd) -> i32 {
    let open = (4..4096).any(|fd| raw(libc::SYS_fcntl, [fd, libc::F_GETFD as usize, 0, 0, 0, 0]) >= 0);
    if open { ESCAPED } else { DENIED }
}

fn exec(_: &OwnedFd) -> i32 {
    denied(raw(libc::SYS_execve, [path(c"/bin/true"), 0, 0, 0, 0, 0]))
}

fn exec_at(_: &OwnedFd) -> i32 {
    denied(raw(libc::SYS_execveat, [3, path(c""), 0, 0, libc::AT_EMPTY_PATH as usize, 0]))
}

fn map_code(_: &OwnedFd) -> i32 {
    let prot = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    denied(raw(libc::SYS_mmap, [0, 4096, prot as usize, flags as usize, usize::MAX, 0]))
}

fn make_code(_: &OwnedFd) -> i32 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let page = raw(libc::SYS_mmap, [0, 4096, libc::PROT_READ as usize, flags as usize, usize::MAX, 0]);
    denied(raw(libc::SYS_mprotect, [page as usize, 4096, libc::PROT_EXEC as usize, 0, 0, 0]))
}

fn personality(_: &OwnedFd) -> i32 {
    denied(raw(libc::SYS_personality, [0x0040_0000, 0, 0, 0, 0, 0]))
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "payloads do what programs must not be able to do")]
fn int_80(_: &OwnedFd) -> i32 {
    let pid: i64;
    // SAFETY: getpid of the 32-bit convention: no memory is touched.
    unsafe {
        std::arch::asm!("int 0x80", inlateout("rax") 20_i64 => pid, out("r8") _, out("r9") _, out("r10") _, out("r11") _)
    };
    denied(pid)
}

fn x32(_: &OwnedFd) -> i32 {
    denied(raw(libc::SYS_getpid | 0x4000_0000, [0; 6]))
}

fn unshare(_: &OwnedFd) -> i32 {
    denied(raw(libc::SYS_unshare, [libc::CLONE_NEWUSER as usize, 0, 0, 0, 0, 0]))
}

fn loosen_filter(_: &OwnedFd) -> i32 {
    denied(raw(libc::SYS_seccomp, [0, 0, 0, 0, 0, 0]))
}

fn loosen_limit(_: &OwnedFd) -> i32 {
    let limit = [u64::MAX; 2];
    denied(raw(libc::SYS_prlimit64, [0, libc::RLIMIT_AS as usize, limit.as_ptr() as usize, 0, 0, 0]))
}

fn loosen_death(_: &OwnedFd) -> i32 {
    denied(raw(libc::SYS_prctl, [libc::PR_SET_PDEATHSIG as usize, 0, 0, 0, 0, 0]))
}

fn loosen_dumpable(_: &OwnedFd) -> i32 {
    denied(raw(libc::SYS_prctl, [libc::PR_SET_DUMPABLE as usize, 1, 0, 0, 0, 0]))
}

pub(crate) fn become_another(_: &OwnedFd) -> i32 {
    denied(raw(libc::SYS_setuid, [1; 6]))
}

fn type_at_the_terminal(_: &OwnedFd) -> i32 {
    let typed = (0..3).any(|fd| raw(libc::SYS_ioctl, [fd, libc::TIOCSTI as usize, path(c"x"), 0, 0, 0]) >= 0);
    if typed { ESCAPED } else { DENIED }
}

fn panics(_: &OwnedFd) -> i32 {
    panic!("as it must")
}

fn panics_in_drop(_: &OwnedFd) -> i32 {
    struct Bad;
    impl Drop for Bad {
        fn drop(&mut self) {
            panic!("twice");
        }
    }
    let _bad = Bad;
    panic!("once")
}

fn aborts(_: &OwnedFd) -> i32 {
    std::process::abort()
}

#[allow(unsafe_code, reason = "payloads do what programs must not be able to do")]
fn illegal(_: &OwnedFd) -> i32 {
    // SAFETY: it ends the process.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        std::arch::asm!("ud2");
        #[cfg(target_arch = "aarch64")]
        std::arch::asm!("udf #0");
    }
    ESCAPED
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "payloads do what programs must not be able to do")]
fn divides(_: &OwnedFd) -> i32 {
    // SAFETY: it ends the process.
    unsafe { std::arch::asm!("div {0:e}", in(reg) 0, inout("eax") 1 => _, inout("edx") 0 => _) };
    ESCAPED
}

/// Asks the host which system call to make, by its clock, and makes it.
fn call_by_number(run: &OwnedFd) -> i32 {
    send_frame(run, b'T', 0, "1");
    let bytes = receive(run).and_then(|(_, bytes)| bytes.try_into().ok());
    denied(raw(bytes.map_or(-1, i64::from_le_bytes), [usize::MAX; 6]))
}

#[allow(unsafe_code, reason = "payloads do what programs must not be able to do")]
fn bad_address(_: &OwnedFd) -> i32 {
    // SAFETY: it is not sound, and meant to be: the process is to end here.
    unsafe { std::hint::black_box(16 as *mut u8).write_volatile(1) };
    ESCAPED
}

fn ends_early(_: &OwnedFd) -> i32 {
    std::process::exit(0)
}

/// Ends with replies in its channel that it has not read.
fn call_and_leave(run: &OwnedFd) -> i32 {
    for id in 1..=3 {
        let call = format!(
            r#"{{"number":{id},"place":{{"workers":[[1,{id}]],"effect":1}},"name":"quick","arguments":"{{}}"}}"#
        );
        send_frame(run, b'C', id, &call);
    }
    receive(run);
    std::thread::sleep(std::time::Duration::from_millis(5));
    DENIED
}

fn several_calls(run: &OwnedFd) -> i32 {
    for (id, name) in [(1, "slow"), (2, "quick"), (3, "slow")] {
        let call = format!(
            r#"{{"number":{id},"place":{{"workers":[[1,{id}]],"effect":1}},"name":"{name}","arguments":"{{\"n\":{id}}}"}}"#
        );
        send_frame(run, b'C', id, &call);
    }
    let ids: Vec<u32> = (0..3).filter_map(|_| receive(run)).map(|(id, _)| id).collect();
    // The quick one was asked for second and is there first.
    if ids.first() == Some(&2) && ids.len() == 3 { channel::report(run) } else { ESCAPED }
}

/// A call of the worker `worker`, or with none of the program.
fn call(run: &OwnedFd, id: u32, worker: Option<u32>, name: &str, arguments: &str) -> bool {
    let way = worker.map(|worker| format!("[1,{worker}]")).unwrap_or_default();
    let place = format!(r#"{{"workers":[{way}],"effect":1}}"#);
    let call = format!(r#"{{"number":{id},"place":{place},"name":"{name}","arguments":"{arguments}"}}"#);
    send_frame(run, b'C', id, &call)
}

/// Calls of more workers than there may be, none of which waits for its reply.
fn calls_without_end(run: &OwnedFd) -> i32 {
    let mut id = 0;
    while call(run, id + 1, Some(id), "slow", "{}") {
        id += 1;
    }
    ESCAPED
}

/// Calls that are answered at once, and whose replies are not read.
fn replies_without_end(run: &OwnedFd) -> i32 {
    let mut id = 0;
    while call(run, id + 1, Some(id), "large", "{}") {
        id += 1;
        std::thread::sleep(Duration::from_millis(1));
    }
    ESCAPED
}

/// Calls of the program, as many as the host takes at once, each of which holds it up for a while.
fn calls_at_once(run: &OwnedFd) -> i32 {
    for id in 1..=9 {
        call(run, id, None, "slow", "{}");
    }
    for_ever()
}

/// As many empty printed lines as a frame may have bytes for.
fn empty_lines(run: &OwnedFd) -> i32 {
    packed(run, 0xfb, 950_000);
    for_ever()
}

/// As many empty details of an error as a frame may have bytes for.
fn empty_details(run: &OwnedFd) -> i32 {
    packed(run, 0xfd, 1_000_000);
    for_ever()
}

/// A frame of one sequence of empty texts.
fn packed(run: &OwnedFd, kind: u8, count: u32) -> bool {
    const PART: usize = 50_000;
    // Seven bits of the count to a byte, the low ones first.
    let mut bytes: Vec<u8> = Vec::new();
    if kind == 0xfd {
        // A failure: its reason, its message, no span, no hint, and then details, each an empty name and an empty text.
        bytes.extend([1, 0, 0, 0, 0]);
    }
    let mut left = count;
    while left > 0x7f {
        bytes.push(left as u8 | 0x80);
        left >>= 7;
    }
    bytes.push(left as u8);
    let each: &[u8] = if kind == 0xfd { &[0, 1, 0] } else { &[0] };
    bytes.extend(std::iter::repeat_n(each, count as usize).flatten());
    let total = bytes.len() as u32;
    for (index, part) in bytes.chunks(PART).enumerate() {
        let mut packet = vec![kind, 0, 0, 0, 0];
        packet.extend_from_slice(&total.to_le_bytes());
        packet.extend_from_slice(&((index * PART) as u32).to_le_bytes());
        packet.extend_from_slice(part);
        if !send_raw(run, &packet) {
            return false;
        }
    }
    true
}

fn call_and_spin(run: &OwnedFd) -> i32 {
    send_frame(run, b'P', 0, r#"["before"]"#);
    send_frame(run, b'C', 1, r#"{"number":1,"place":{"workers":[[1,0]],"effect":1},"name":"stuck","arguments":"{}"}"#);
    spin(run)
}

pub(crate) fn no_new_privs(_: &OwnedFd) -> i32 {
    match raw(libc::SYS_prctl, [libc::PR_GET_NO_NEW_PRIVS as usize, 0, 0, 0, 0, 0]) {
        1 => DENIED,
        _ => ESCAPED,
    }
}

pub(crate) fn undumpable(_: &OwnedFd) -> i32 {
    match raw(libc::SYS_prctl, [libc::PR_GET_DUMPABLE as usize, 0, 0, 0, 0, 0]) {
        0 => DENIED,
        _ => ESCAPED,
    }
}

pub(crate) fn no_core(_: &OwnedFd) -> i32 {
    let limit = [9_u64; 2];
    raw(libc::SYS_prlimit64, [0, libc::RLIMIT_CORE as usize, 0, limit.as_ptr() as usize, 0, 0]);
    if limit == [0; 2] { DENIED } else { ESCAPED }
}

/// Can a process of the host be named? The init process has number 1 in a namespace of its own too.
pub(crate) fn name_the_host(_: &OwnedFd) -> i32 {
    let known = (2..70_000).filter(|&pid| raw(libc::SYS_getpriority, [0, pid, 0, 0, 0, 0]) > 0).count();
    // The template and this process are there in any case.
    if known > 2 { ESCAPED } else { DENIED }
}

pub(crate) fn queues(_: &OwnedFd) -> i32 {
    // The key is that of the segment the test has made.
    denied(raw(libc::SYS_shmget, [crate::KEY, 1, 0, 0, 0, 0]))
}

pub(crate) const ALL_PAYLOADS: &[(&str, Payload)] = &[
    ("spin", spin),
    ("hold_signals", hold_signals),
    ("call_by_number", call_by_number),
    ("native_arithmetic", native_arithmetic),
    ("native_sort", native_sort),
    ("native_backtracking", native_backtracking),
    ("double_a_string", double_a_string),
    ("keep_factorials", keep_factorials),
    ("many_small_maps", many_small_maps),
    ("hold_and_report", hold_and_report),
    ("fill_and_report", fill_and_report),
    ("make_pipes", make_pipes),
    ("make_sockets", make_sockets),
    ("call_and_fill", call_and_fill),
    ("near_the_deadline", near_the_deadline),
    ("sleep", sleep),
    ("wait_for_the_host", wait_for_the_host),
    ("stop_itself", stop_itself),
    ("hold_memory", hold_memory),
    ("one_huge_vector", one_huge_vector),
    ("map_private", map_private),
    ("map_shared", map_shared),
    ("memory_file", memory_file),
    ("overflow", overflow),
    ("fork", fork),
    ("vfork", vfork),
    ("clone3", clone3),
    ("clone3_new_user", clone3_new_user),
    ("clone_new_user", clone_new_user),
    ("daemon", daemon),
    ("thread", thread),
    ("domain_serves", domains::serves),
    ("domain_reports_twice", domains::reports_twice),
    ("domain_reports_first", domains::reports_first),
    ("domain_talks_on", domains::talks_on),
    ("domain_calls_on", domains::calls_on),
    ("domain_ends", domains::ends),
    ("domain_ends_at_once", domains::ends_at_once),
    ("domain_is_silent", domains::is_silent),
    ("domain_sends_half", domains::sends_half),
    ("domain_spins_on", domains::spins_on),
    ("domain_grows", domains::grows),
    ("domain_waits_to_report", domains::waits_to_report),
    ("domain_reads_nothing", domains::reads_nothing),
    ("domain_fails_and_serves", domains::fails_and_serves),
    ("domain_speaks_for_the_next", domains::speaks_for_the_next),
    ("threaded_thread", thread),
    ("threaded_fork", fork),
    ("threaded_vfork", vfork),
    ("threaded_new_user", clone_new_user),
    ("threaded_process", open_a_process),
    ("threaded_daemon", daemon),
    ("kill_all", kill_all),
    ("kill_parent", kill_parent),
    ("signal_another", signal_another),
    ("open_a_process", open_a_process),
    ("trace", trace),
    ("read_another", read_another),
    ("open_passwd", open_passwd),
    ("open_many", open_many),
    ("open_old", open_old),
    ("openat2", openat2),
    ("io_uring", io_uring),
    ("handle", handle),
    ("socket_inet", socket_inet),
    ("socket_unix", socket_unix),
    ("socket_netlink", socket_netlink),
    ("socket_vsock", socket_vsock),
    ("socket_packet", socket_packet),
    ("connect_loopback", connect_loopback),
    ("other_descriptors", other_descriptors),
    ("exec", exec),
    ("exec_at", exec_at),
    ("map_code", map_code),
    ("make_code", make_code),
    ("futex_lock_pi", arguments::futex_lock_pi),
    ("futex_unlock_pi", arguments::futex_unlock_pi),
    ("futex_requeue_pi", arguments::futex_requeue_pi),
    ("futex_wake_op", arguments::futex_wake_op),
    ("map_huge", arguments::map_huge),
    ("map_locked", arguments::map_locked),
    ("map_growing", arguments::map_growing),
    ("advise", arguments::advise),
    ("move_page", arguments::move_page),
    ("threaded_ptrace", arguments::clone_ptrace),
    ("threaded_untraced", arguments::clone_untraced),
    ("threaded_io", arguments::clone_io),
    ("personality", personality),
    #[cfg(target_arch = "x86_64")]
    ("int_80", int_80),
    ("x32", x32),
    ("unshare", unshare),
    ("loosen_filter", loosen_filter),
    ("loosen_limit", loosen_limit),
    ("loosen_death", loosen_death),
    ("loosen_dumpable", loosen_dumpable),
    ("become_another", become_another),
    ("type_at_the_terminal", type_at_the_terminal),
    ("report", channel::report),
    ("report_then_spin", channel::report_then_spin),
    ("report_then_fail", channel::report_then_fail),
    ("two_reports", channel::two_reports),
    ("deep_report", channel::deep_report),
    ("endless_lines", channel::endless_lines),
    ("endless_frame", channel::endless_frame),
    ("cut_frame", channel::cut_frame),
    ("garbage", channel::garbage),
    ("frame_for_a_child", channel::frame_for_a_child),
    ("not_json", channel::not_json),
    ("ask_for_ever", channel::ask_for_ever),
    ("ask_and_read_nothing", channel::ask_and_read_nothing),
    ("close_the_channel", channel::close_the_channel),
    ("change_the_channel", channel::change_the_channel),
    ("slowly", channel::slowly),
    ("forge_and_spin", channel::forge_and_spin),
    ("forge_and_end", channel::forge_and_end),
    ("forge_and_abort", channel::forge_and_abort),
    ("dirty_words", channel::dirty_words),
    ("flood", channel::flood),
    ("panics", panics),
    ("panics_in_drop", panics_in_drop),
    ("aborts", aborts),
    ("illegal", illegal),
    #[cfg(target_arch = "x86_64")]
    ("divides", divides),
    ("bad_address", bad_address),
    ("ends_early", ends_early),
    ("call_and_leave", call_and_leave),
    ("several_calls", several_calls),
    ("calls_without_end", calls_without_end),
    ("replies_without_end", replies_without_end),
    ("calls_at_once", calls_at_once),
    ("empty_lines", empty_lines),
    ("empty_details", empty_details),
    ("call_and_spin", call_and_spin),
    ("no_new_privs", no_new_privs),
    ("undumpable", undumpable),
    ("no_core", no_core),
    ("name_the_host", name_the_host),
    ("queues", queues),
];
