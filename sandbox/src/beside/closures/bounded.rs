//! Closures in a forked process, with a deadline and a memory limit.

use super::bounds::{BoundedError, Bounds, INSIDE, Used, concluded, encoded, failed, nested};
use crate::guest::layers::{Layer, LayerInstaller, LayerSet, SetupError, State};
use crate::guest::{filter, layers, lockdown};
use crate::host::error_output::ErrorOutput;
use crate::host::verdict::{self, End, Facts, Kill};
use crate::kernel::sys::{self, Death, Fork};
use crate::kernel::unix::SETUP_FAILED;
use crate::wire::frames::{self, Assembler, Kind, PACKET, Taken};
use crate::wire::violation::Violation;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::RecvFlags;
use rustix::process::{Pid, PidfdFlags, Resource, Signal};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Calls a closure in a locked-down fork of this process and returns its value.
///
/// The fork has no files, no network, no descriptors and no other processes. Its changes to memory are lost when it
/// ends. The value is sent as [postcard](https://docs.rs/postcard), so self-describing types such as
/// `serde_json::Value` do not work.
///
/// # Errors
/// Returns a [`BoundedError`], and always does so in a process with several threads: the fork would have only the
/// calling thread, but the locks held by all of them. [`crate::Sandbox`] does not have this restriction.
/// [`run_bounded_despite_threads`] lifts it, at a risk that its documentation explains.
///
/// ```
/// use lisp_sandbox::{BoundedError, Bounds, run_bounded_despite_threads};
/// use std::time::Duration;
/// // Tests run on threads, hence the longer name here.
/// let bounds = Bounds::new(Duration::from_millis(500), 64 << 20);
/// assert_eq!(run_bounded_despite_threads(&bounds, || 6 * 7), Ok(42));
/// let endless = run_bounded_despite_threads(&bounds, || loop { std::hint::spin_loop() });
/// assert_eq!(endless, Err::<(), _>(BoundedError::Timeout(500)));
/// ```
pub fn run_bounded<T: Serialize + DeserializeOwned>(
    bounds: &Bounds,
    work: impl FnOnce() -> T,
) -> Result<T, BoundedError> {
    run_bounded_measured(bounds, work).0
}

/// Like [`run_bounded`], and also returns the resources used; all zero if no process was started.
pub fn run_bounded_measured<T: Serialize + DeserializeOwned>(
    bounds: &Bounds,
    work: impl FnOnce() -> T,
) -> (Result<T, BoundedError>, Used) {
    let refused = match std::fs::read_dir("/proc/self/task").map(Iterator::count) {
        Ok(1) => return call(bounds, work),
        Ok(threads) => failed(format!(
            "refused: this process has {threads} threads; use run_function or a Sandbox, or call before the first thread is started"
        )),
        Err(_) if INSIDE.load(Ordering::Relaxed) => nested(),
        Err(error) => failed(format!("sandbox set-up: threads: {error}")),
    };
    (Err(refused), Used::default())
}

/// Like [`run_bounded`], but allows this process to have more threads.
///
/// The fork has only the calling thread. Locks that other threads hold are never released in it. A closure that takes
/// such a lock (of standard output, or of an allocator other than the system's) waits until its deadline.
///
/// # Errors
/// Returns a [`BoundedError`].
pub fn run_bounded_despite_threads<T: Serialize + DeserializeOwned>(
    bounds: &Bounds,
    work: impl FnOnce() -> T,
) -> Result<T, BoundedError> {
    call(bounds, work).0
}

/// Forks, watches and reaps the process, and reads the result.
fn call<T: Serialize + DeserializeOwned>(bounds: &Bounds, work: impl FnOnce() -> T) -> (Result<T, BoundedError>, Used) {
    let started = Instant::now();
    match watched(bounds, work) {
        Ok((child, death)) => {
            let used = Used { cpu_us: death.cpu_us, rss_peak_bytes: death.rss_peak_bytes, wall: started.elapsed() };
            (child.result(death, bounds), used)
        }
        Err(error) => (Err(error), Used::default()),
    }
}

fn watched<T: Serialize>(bounds: &Bounds, work: impl FnOnce() -> T) -> Result<(Child, Death), BoundedError> {
    if let Some(error) = bounds.refused() {
        return Err(error);
    }
    let deadline = bounds.deadline();
    let setup = |step: &str, error: io::Error| failed(SetupError::new(step, error));
    let (ours, theirs) = crate::wire::frames::pair().map_err(|error| setup("channel", error))?;
    let parent = rustix::process::getpid();
    let in_use = address_space().map_err(|error| setup("/proc/self/statm", error))?;
    let pid = match sys::fork().map_err(|error| setup("fork", error))? {
        Fork::Child => inside(bounds, theirs, parent, in_use, work),
        Fork::Parent(pid) => pid,
    };
    drop(theirs);
    let mut child = Child::new(pid, ours, bounds).map_err(|error| setup("pidfd", error))?;
    child.watch(deadline);
    let death = child.reap().map_err(|error| setup("wait", error))?;
    Ok((child, death))
}

fn address_space() -> io::Result<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = statm.split(' ').next().and_then(|n| n.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    Ok(pages * rustix::param::page_size() as u64)
}

/// Runs the child's side, from the fork to its exit.
fn inside<T: Serialize>(bounds: &Bounds, channel: OwnedFd, parent: Pid, in_use: u64, work: impl FnOnce() -> T) -> ! {
    INSIDE.store(true, Ordering::Relaxed);
    let wanted = bounds.wanted();
    let channel = match wanted.wants(Layer::FdsClosed) {
        true => sys::keep_only(channel, true).unwrap_or_else(|_| sys::exit(SETUP_FAILED)),
        false => channel,
    };
    if let Err(error) = lock_in(bounds, &wanted, parent, in_use) {
        let _ = frames::send(&channel, Kind::Setup, 0, format!("{}: {}", error.step, error.why).as_bytes());
        sys::exit(SETUP_FAILED);
    }
    // Values that the closure leaves are freed with the process, without running their destructors.
    let result = catch_unwind(AssertUnwindSafe(work));
    let (mark, bytes) = encoded(&result);
    let sent = frames::send(&channel, Kind::Report, mark, &bytes);
    sys::exit(i32::from(sent.is_err()))
}

fn lock_in(bounds: &Bounds, wanted: &LayerSet, parent: Pid, in_use: u64) -> Result<(), SetupError> {
    const SLACK: u64 = 1 << 20;
    sys::reset_signals();
    sys::one_arena();
    let mut installer = LayerInstaller::new(wanted);
    installer.note(Layer::FdsClosed, State::Active);
    // If it has no descriptor of this process, the parent kills it before this line.
    installer.note(Layer::WallKill, State::Active);
    installer.install(Layer::OomFirst, lockdown::first_to_go);
    installer.must(Layer::ParentDeath, || lockdown::die_with_parent(parent))?;
    // The new session detaches the process from its terminal.
    let _ = rustix::process::setsid();
    layers::silence().map_err(|error| SetupError::new("standard streams", error))?;
    lockdown::fixed_limits(&mut installer, 16);
    let memory = in_use.saturating_add(bounds.memory_bytes).saturating_add(SLACK);
    installer.must(Layer::RlimitAs, || layers::limit(Resource::As, memory))?;
    let cpu = bounds.timeout.as_secs().saturating_add(2).saturating_mul(if bounds.threads { 64 } else { 1 });
    installer.must(Layer::RlimitCpu, || layers::limit_cpu(cpu))?;
    lockdown::give_up(&mut installer);
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    lockdown::restrict(&mut installer, filter::alone(pid, bounds.threads));
    match installer.done().missing(&bounds.required) {
        Some(missing) => Err(missing),
        None => Ok(()),
    }
}

/// Kills a child of this process that is not reaped yet, so its pid cannot have been reused.
fn kill_unreaped(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
}

/// The parent's side.
struct Child {
    pid: i32,
    process: OwnedFd,
    channel: OwnedFd,
    result_bytes: usize,
    report: Option<Result<Vec<u8>, String>>,
    setup: Option<String>,
    errors: ErrorOutput,
    kill: Option<Kill>,
}

impl Child {
    fn new(pid: i32, channel: OwnedFd, bounds: &Bounds) -> io::Result<Child> {
        let opened = Pid::from_raw(pid).ok_or(rustix::io::Errno::SRCH);
        match opened.and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty())) {
            Ok(process) => Ok(Child {
                pid,
                process,
                channel,
                result_bytes: bounds.result_bytes,
                report: None,
                setup: None,
                errors: ErrorOutput::default(),
                kill: None,
            }),
            Err(error) => {
                kill_unreaped(pid);
                drop(sys::reap(pid, true));
                Err(error.into())
            }
        }
    }

    /// Reads until the process ends. Kills it at the deadline and on a protocol violation.
    fn watch(&mut self, deadline: Option<Instant>) {
        let mut assembler = Assembler::default();
        let mut open = true;
        while self.kill.is_none() {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let left = left.map(|left| Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() });
            let mut fds = vec![PollFd::new(&self.process, PollFlags::IN)];
            if open {
                fds.push(PollFd::new(&self.channel, PollFlags::IN));
            }
            let _ = rustix::event::poll(&mut fds, left.as_ref());
            let ended = !fds[0].revents().is_empty();
            drop(fds);
            if open {
                match self.read(&mut assembler) {
                    Ok(more) => open = more,
                    Err(violation) => self.kill = Some(Kill::Violation(violation)),
                }
            }
            if ended && self.kill.is_none() {
                return;
            }
            // Checked even while data arrives: a process that never stops sending must not outlive its deadline.
            if deadline.is_some_and(|at| Instant::now() >= at) {
                self.kill = Some(Kill::Deadline);
            }
        }
        if rustix::process::pidfd_send_signal(&self.process, Signal::KILL).is_err() {
            kill_unreaped(self.pid);
        }
    }

    /// Reads what is available; false once the channel is closed.
    fn read(&mut self, assembler: &mut Assembler) -> Result<bool, Violation> {
        let mut buffer = vec![0; PACKET];
        loop {
            let read = match rustix::net::recv(&self.channel, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((read, _)) => read,
                Err(rustix::io::Errno::INTR) => continue,
                Err(rustix::io::Errno::AGAIN) => return Ok(true),
                Err(_) => 0,
            };
            if read == 0 {
                return Ok(false);
            }
            let max = self.result_bytes;
            match assembler.take(&buffer[..read], |_| max)? {
                Taken::Part => {}
                Taken::Text => self.errors.take(&buffer[..read])?,
                Taken::Frame(_) if self.report.is_some() => return Err(Violation::Unexpected),
                Taken::Frame(frame) => match (frame.kind, frame.id) {
                    (Kind::Report, 0) => self.report = Some(Ok(frame.bytes)),
                    (Kind::Report, _) => {
                        self.report = Some(Err(String::from_utf8_lossy(&frame.bytes).into_owned()));
                    }
                    (Kind::Setup, _) => self.setup = Some(verdict::clean(&String::from_utf8_lossy(&frame.bytes), 300)),
                    _ => return Err(Violation::Unexpected),
                },
            }
        }
    }

    fn reap(&self) -> io::Result<Death> {
        sys::reap(self.pid, true)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Returns the result of the closure.
    fn result<T: DeserializeOwned>(self, death: Death, bounds: &Bounds) -> Result<T, BoundedError> {
        let stderr = self.errors.text();
        let facts = Facts {
            kill: self.kill,
            end: End::Reaped { death, late: false },
            reported: self.report.is_some(),
            setup: self.setup.as_deref(),
            stderr: &stderr,
            limit_ms: bounds.timeout_ms(),
            limit_bytes: bounds.memory_bytes,
            out_of_group: None,
        };
        concluded(bounds, &facts, self.report)
    }
}
