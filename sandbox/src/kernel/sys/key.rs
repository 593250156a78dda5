//! What a template has and its children have not: a number that its filter wants with the calls that are the template's
//! alone, as a sixth argument, which none of them has.
//!
//! The number is drawn by the kernel into a page that the kernel leaves out of forks. From there it goes into a register
//! for the time of a call, and nowhere else: no child can have it, and one that guesses is killed.

use super::{Death, Instruction, install_filter};
use crate::kernel::unix;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

/// The place of the number. There is one in a process, for good.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key(*const u64);

static NONE: u64 = 0;

/// Stand in a filter for the two halves of the number, as they lie in memory.
pub(crate) const HALVES: [u32; 2] = [0x6c6f_7721, 0x6869_6768];

/// The number and, behind it, the filter that names it.
const BYTES: usize = 16 << 10;

impl Key {
    /// Is none: for filters that ask for none.
    pub(crate) fn none() -> Key {
        Key(&raw const NONE)
    }

    /// Draws one. Fails where the kernel cannot keep a page from children.
    pub(crate) fn draw() -> io::Result<Key> {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new memory at a place of the kernel's choice.
        let page = unsafe { libc::mmap(ptr::null_mut(), BYTES, rights, kind, -1, 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: nobody else knows this memory; eight bytes of it are written.
        unsafe {
            unix::result(libc::madvise(page, BYTES, libc::MADV_WIPEONFORK).into())?;
            // The call itself: a library may have a copy of what it draws.
            let drawn = unix::result(libc::syscall(libc::SYS_getrandom, page, size_of::<u64>(), 0))?;
            if drawn != size_of::<u64>() as i64 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let key = Key(page.cast());
        #[cfg(feature = "testing")]
        scan::remember(key);
        Ok(key)
    }

    /// Installs a filter in which this number stands for the two halves.
    pub(crate) fn install(self, program: &[Instruction]) -> io::Result<()> {
        if self.is_none() {
            return install_filter(program, false);
        }
        if program.len() > (BYTES - size_of::<u64>()) / size_of::<Instruction>() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let number = self.0.cast::<u32>();
        // SAFETY: the memory is this key's, is large enough by the line above, and nobody else has a reference into it.
        let program = unsafe {
            let place = self.0.add(1).cast::<Instruction>().cast_mut();
            ptr::copy_nonoverlapping(program.as_ptr(), place, program.len());
            for at in 0..program.len() {
                let k = &raw mut (*place.add(at)).k;
                if let Some(half) = HALVES.iter().position(|&half| half == k.read()) {
                    k.write_volatile(number.add(half).read_volatile());
                }
            }
            std::slice::from_raw_parts(place, program.len())
        };
        install_filter(program, false)
    }

    fn is_none(self) -> bool {
        self.0 == &raw const NONE
    }

    /// Forks; the parent gets the pid of the child, which nobody else reaps. There must be one thread.
    /// Handlers of libraries do not run, nor does the C library's own work: what it knows of its thread's number is the
    /// template's in all children, as none of them has a second thread.
    pub(crate) fn fork(self) -> io::Result<Option<i32>> {
        // SAFETY: as for `unix::fork`; the new process has a copy of this stack.
        let pid = unsafe { self.call(libc::SYS_clone, [libc::SIGCHLD as usize, 0, 0, 0, 0]) }?;
        Ok(Some(pid as i32).filter(|&pid| pid > 0))
    }

    /// Reaps any child that has ended.
    pub(crate) fn reap(self) -> io::Result<Option<(i32, Death)>> {
        unix::reap_by(|status, usage| {
            let (status, usage) = (ptr::from_mut(status), ptr::from_mut(usage));
            let (any, flags) = (-1_isize as usize, libc::WNOHANG as usize);
            let args = [any, status.expose_provenance(), flags, usage.expose_provenance(), 0];
            // SAFETY: both pointers are to live variables of the types that are written.
            unsafe { self.call(libc::SYS_wait4, args) }
        })
    }

    /// A descriptor of a child that is not reaped yet.
    pub(crate) fn open(self, pid: i32) -> io::Result<OwnedFd> {
        // SAFETY: the call takes integers; the descriptor that it makes is this process's.
        let fd = unsafe { self.call(libc::SYS_pidfd_open, [pid as usize, 0, 0, 0, 0]) }?;
        // SAFETY: as above.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
    }

    /// Sends SIGKILL.
    pub(crate) fn kill(self, process: &OwnedFd) -> io::Result<()> {
        let args = [process.as_raw_fd() as usize, libc::SIGKILL as usize, 0, 0, 0];
        // SAFETY: the call takes integers and a pointer that may be null.
        unsafe { self.call(libc::SYS_pidfd_send_signal, args) }.map(drop)
    }

    /// As `sched_setaffinity`.
    pub(super) fn set_affinity(self, pid: i32, set: usize, size: usize) -> io::Result<()> {
        // SAFETY: the call reads so many bytes, or fails when they are not there.
        unsafe { self.call(libc::SYS_sched_setaffinity, [pid as usize, size, set, 0, 0]) }.map(drop)
    }

    /// Sends a packet, and a descriptor with it, if there is room for it.
    pub(crate) fn send(self, socket: &OwnedFd, bytes: &[u8], fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let mut space = Ancillary::new();
        let mut message = space.message(&mut part);
        match fd {
            None => (message.msg_control, message.msg_controllen) = (ptr::null_mut(), 0),
            // SAFETY: the message has room for a header and two descriptors.
            Some(fd) => unsafe {
                message.msg_controllen = libc::CMSG_SPACE(FD) as _;
                let header = libc::CMSG_FIRSTHDR(&raw const message);
                (*header).cmsg_level = libc::SOL_SOCKET;
                (*header).cmsg_type = libc::SCM_RIGHTS;
                (*header).cmsg_len = libc::CMSG_LEN(FD) as _;
                libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(fd.as_raw_fd());
            },
        }
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        let args = [socket.as_raw_fd() as usize, (&raw const message).expose_provenance(), flags as usize, 0, 0];
        // SAFETY: the message and all it points to live until the call returns, which writes to none of it.
        unsafe { self.call(libc::SYS_sendmsg, args) }.map(drop)
    }

    /// Waits for a packet and the two descriptors that may come with it: how many bytes it has, if there was room for all.
    pub(crate) fn receive(
        self,
        socket: &OwnedFd,
        bytes: &mut [u8],
    ) -> io::Result<(Option<usize>, [Option<OwnedFd>; 2])> {
        let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let mut space = Ancillary::new();
        let mut message = space.message(&mut part);
        let at = (&raw mut message).expose_provenance();
        let args = [socket.as_raw_fd() as usize, at, libc::MSG_CMSG_CLOEXEC as usize, 0, 0];
        // SAFETY: the message, the bytes and the room for descriptors live until the call returns.
        let read = unsafe { self.call(libc::SYS_recvmsg, args) }?;
        let mut fds = [None, None];
        // SAFETY: the kernel has left whole headers in the room that the message says, and descriptors that are new.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            if !header.is_null() && (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS
            {
                let length = ((*header).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
                for (at, place) in fds.iter_mut().enumerate().take(length / FD as usize) {
                    let fd = libc::CMSG_DATA(header).cast::<RawFd>().add(at).read_unaligned();
                    *place = Some(OwnedFd::from_raw_fd(fd));
                }
            }
        }
        let whole = message.msg_flags & libc::MSG_TRUNC == 0;
        Ok((Some(read).filter(|_| whole), fds))
    }

    /// Makes a system call with the number as its sixth argument.
    ///
    /// # Safety
    /// As for the call.
    unsafe fn call(self, number: libc::c_long, args: [usize; 5]) -> io::Result<usize> {
        let code: isize;
        // SAFETY: by the caller. The number is read from memory that is there for good, and is in no register afterwards.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::asm!(
                "mov r9, [r9]",
                "syscall",
                "xor r9d, r9d",
                inlateout("rax") number as isize => code,
                in("rdi") args[0],
                in("rsi") args[1],
                in("rdx") args[2],
                in("r10") args[3],
                in("r8") args[4],
                inlateout("r9") self.0 => _,
                lateout("rcx") _,
                lateout("r11") _,
            );
        }
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        unsafe {
            std::arch::asm!(
                "ldr x5, [x5]",
                "svc 0",
                "mov x5, xzr",
                in("x8") number,
                inlateout("x0") args[0] as isize => code,
                in("x1") args[1],
                in("x2") args[2],
                in("x3") args[3],
                in("x4") args[4],
                inlateout("x5") self.0 => _,
            );
        }
        usize::try_from(code).map_err(|_| io::Error::from_raw_os_error(i32::try_from(-code).unwrap_or(libc::EINVAL)))
    }
}

/// The bytes of a descriptor in a message.
const FD: libc::c_uint = size_of::<RawFd>() as libc::c_uint;

/// Does this process hold the number of the template it comes from, or half of it, in any of its memory?
#[cfg(feature = "testing")]
pub(crate) mod scan {
    use super::{BYTES, Key};
    use std::ops::Range;
    use std::sync::OnceLock;

    /// What the number is hidden with, so that it is not found where it is looked for.
    const MASK: u64 = 0x5bd1_e995_9e37_79b9;

    /// The number, masked, and where it lies.
    static KNOWN: OnceLock<(u64, usize)> = OnceLock::new();
    static MAPS: OnceLock<Vec<Range<usize>>> = OnceLock::new();

    pub(super) fn remember(key: Key) {
        // SAFETY: the key's memory is there for good.
        let _ = KNOWN.set((unsafe { key.0.read_volatile() } ^ MASK, key.0.addr()));
    }

    /// Takes note of what memory there is, while that can be asked.
    pub(crate) fn remember_maps() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let range = |line: &str| {
            let (start, rest) = line.split_once('-')?;
            let (end, _) = rest.split_once(" rw-p ")?;
            let number = |text| usize::from_str_radix(text, 16).ok();
            // The heap may grow.
            let more = if line.contains("[heap]") { 4 << 20 } else { 0 };
            Some(number(start)?..number(end)? + more)
        };
        let _ = MAPS.set(maps.lines().filter_map(range).collect());
    }

    /// How many bytes were looked at, and whether the number was among them.
    pub(crate) fn found() -> (usize, bool) {
        let (Some(&(masked, place)), Some(maps)) = (KNOWN.get(), MAPS.get()) else { return (0, false) };
        let (mut looked, mut found) = (0, false);
        let ranges = maps.iter().cloned().chain(std::iter::once(place..place + BYTES));
        let pages = ranges.flat_map(|range| range.step_by(4096));
        for page in pages.filter(|&page| is_there(page)) {
            for word in (page..page + 4096).step_by(4) {
                // SAFETY: the page can be read, by the line above; whatever is there is a number.
                let half = unsafe { std::ptr::with_exposed_provenance::<u32>(word).read_volatile() };
                found |= half ^ MASK as u32 == masked as u32;
                found |= half ^ (MASK >> 32) as u32 == (masked >> 32) as u32;
            }
            looked += 4096;
        }
        (looked, found)
    }

    /// Can the page be read? By a call that reads eight bytes and then finds that it cannot do anything with them.
    fn is_there(page: usize) -> bool {
        // SAFETY: the kernel reads the eight bytes if they are there, and there is no such change to a mask.
        let code = unsafe { libc::syscall(libc::SYS_rt_sigprocmask, 99, page, 0, 8) };
        code != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL)
    }
}

/// Room for two descriptors beside a message.
#[repr(align(16))]
struct Ancillary([u8; 64]);

impl Ancillary {
    fn new() -> Self {
        Ancillary([0; 64])
    }

    /// A message of one part with this room.
    fn message(&mut self, part: &mut libc::iovec) -> libc::msghdr {
        // SAFETY: an all-zero message is a valid one.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = part;
        message.msg_iovlen = 1;
        message.msg_control = self.0.as_mut_ptr().cast();
        // SAFETY: the macro computes.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(2 * FD) } as _;
        message
    }
}
