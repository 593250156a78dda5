//! Bounded closures with the features that every Unix has: a fork, resource limits, and a kill at the deadline.
//!
//! There is no system call filter and no namespace: a closure can open files and reach the network. The report says so,
//! and by default every call is refused. On Linux this is compiled for tests only.

use super::bounds::{BoundedError, Bounds, INSIDE, Used, concluded, encoded, failed, nested};
use crate::guest::layers::{Layer, LayerInstaller, Layers, SetupError, State, limit, limit_cpu, silence};
use crate::host::capability::{Capabilities, kernel};
use crate::host::error_output::ErrorOutput;
use crate::host::verdict::{self, End, Facts, Kill};
use crate::kernel::unix::{self, Death, Fork, SETUP_FAILED};
use crate::wire::violation::Violation;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Resource, Signal, WaitId, WaitIdOptions};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The interval at which the process is polled for its end: these systems have no descriptor to wait for.
const STEP: Duration = Duration::from_millis(2);
/// The maximum number of bytes before a result: the report of the layers, and two headers.
const FRONT: usize = 64 << 10;

/// Reports what this system supports, by calling a closure that requires no layer.
///
/// # Errors
/// Returns an error if no process can be forked or its setup fails.
pub fn capabilities() -> Result<Capabilities, SetupError> {
    let bounds = Bounds::new(Duration::from_secs(10), 64 << 20).requiring(&[]);
    let (result, layers) = match watched(&bounds, || 3) {
        Ok((child, death)) => (child.result::<i32>(death, &bounds), child.layers()),
        Err(error) => return Err(SetupError::new("process", error)),
    };
    let layers = layers.ok_or_else(|| SetupError::new("report", "there is none"))?;
    let required = Bounds::REQUIRED.to_vec();
    let missing = required.iter().copied().filter(|&layer| !layers.is_active(layer)).collect();
    let error = result.err().map(|failed| failed.to_string());
    let euid = rustix::process::geteuid().as_raw();
    Ok(Capabilities { kernel: kernel(), euid, landlock_version: None, layers, required, missing, error })
}

/// Calls a closure in a fork of this process and returns its value.
///
/// The value is sent as [postcard](https://docs.rs/postcard), so self-describing types such as `serde_json::Value` do
/// not work.
///
/// # Errors
/// Returns a [`BoundedError`], and always does so in a process with several threads: the fork would have only the
/// calling thread, but the locks held by all of them. The same applies where threads cannot be counted.
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
        Ok(threads) => failed(format!("refused: this process has {threads} threads")),
        Err(_) if INSIDE.load(Ordering::Relaxed) => nested(),
        Err(_) => failed("refused: this system cannot report the number of threads; see run_bounded_despite_threads"),
    };
    (Err(refused), Used::default())
}

/// Like [`run_bounded`], but allows this process to have more threads. The fork has only the calling thread. Locks that
/// other threads hold are never released in it.
///
/// # Errors
/// Returns a [`BoundedError`].
pub fn run_bounded_despite_threads<T: Serialize + DeserializeOwned>(
    bounds: &Bounds,
    work: impl FnOnce() -> T,
) -> Result<T, BoundedError> {
    call(bounds, work).0
}

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
    let (result, their_result) = io::pipe().map_err(|error| setup("pipe", error))?;
    let (stderr, their_stderr) = io::pipe().map_err(|error| setup("pipe", error))?;
    for end in [&result, &stderr] {
        rustix::io::ioctl_fionbio(end, true).map_err(|error| setup("pipe", error.into()))?;
    }
    let pid = match unix::fork().map_err(|error| setup("fork", error))? {
        Fork::Child => inside(bounds, their_result.into(), their_stderr.into(), work),
        Fork::Parent(pid) => pid,
    };
    drop((their_result, their_stderr));
    let mut child = Child { pid, came: Vec::new(), errors: ErrorOutput::default(), kill: None };
    child.watch(result, stderr, deadline, bounds.result_bytes.saturating_add(FRONT));
    let death = child.kill_and_reap().map_err(|error| setup("wait", error))?;
    Ok((child, death))
}

/// Runs the child's side, from the fork to its exit.
fn inside<T: Serialize>(bounds: &Bounds, result_end: OwnedFd, stderr: OwnedFd, work: impl FnOnce() -> T) -> ! {
    INSIDE.store(true, Ordering::Relaxed);
    let Ok(end) = unix::keep_two(result_end, stderr) else { unix::exit(SETUP_FAILED) };
    let mut end = std::fs::File::from(end);
    let layers = match lock_in(bounds) {
        Ok(layers) => layers,
        Err(error) => {
            let _ = send(&mut end, b'S', format!("{}: {}", error.step, error.why).as_bytes());
            unix::exit(SETUP_FAILED)
        }
    };
    let stderr = serde_json::to_vec(&layers).map_err(io::Error::from).and_then(|json| send(&mut end, b'L', &json));
    if let Some(error) = layers.missing(&bounds.required) {
        let _ = send(&mut end, b'S', format!("{}: {}", error.step, error.why).as_bytes());
        unix::exit(SETUP_FAILED)
    }
    // A panic is sent to the parent. The host's own hook might read files to find the names of functions.
    std::mem::forget(std::panic::take_hook());
    std::panic::set_hook(Box::new(|_| ()));
    // Values that the closure leaves are freed with the process, without running their destructors.
    let result = catch_unwind(AssertUnwindSafe(work));
    let (mark, bytes) = encoded(&result);
    let sent = stderr.and_then(|()| send(&mut end, if mark == 0 { b'R' } else { b'P' }, &bytes));
    unix::exit(i32::from(sent.is_err()))
}

/// Sends one part: a kind, a length of four bytes, and the bytes.
fn send(end: &mut std::fs::File, kind: u8, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    end.write_all(&[kind])?;
    end.write_all(&length.to_le_bytes())?;
    end.write_all(bytes)
}

/// Applies the available layers and records which are missing.
fn lock_in(bounds: &Bounds) -> Result<Layers, SetupError> {
    const SLACK: u64 = 1 << 20;
    let wanted = bounds.wanted();
    unix::reset_signals();
    // The new session detaches the process from its terminal. Processes that the closure starts are in its group.
    let _ = rustix::process::setsid();
    silence().map_err(|error| SetupError::new("standard streams", error))?;
    let mut installer = LayerInstaller::new(&wanted);
    installer.note(Layer::WallKill, State::Active);
    installer.note(Layer::FdsClosed, State::Active);
    installer.install(Layer::RlimitFsize, || limit(Resource::Fsize, 0));
    installer.install(Layer::RlimitCore, || limit(Resource::Core, 0));
    let cpu = bounds.timeout.as_secs().saturating_add(2).saturating_mul(if bounds.threads { 64 } else { 1 });
    installer.install(Layer::RlimitCpu, || limit_cpu(cpu));
    if !bounds.threads {
        // Root can fork despite this limit, so it is not a layer.
        let _ = limit(Resource::Nproc, 0);
    }
    installer.install(Layer::RlimitAs, || {
        let Some(in_use) = unix::address_space()? else {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the limit can be set and is not kept"));
        };
        limit(Resource::As, in_use.saturating_add(bounds.memory_bytes).saturating_add(SLACK))
    });
    let mut layers = installer.done();
    for &layer in Layer::ALL {
        if !layers.0.iter().any(|row| row.0 == layer) {
            layers.set(layer, State::Unavailable { why: "there is none in the portable layer".to_owned() });
        }
    }
    Ok(layers)
}

/// The parent's side.
struct Child {
    pid: i32,
    /// Everything received through the result pipe.
    came: Vec<u8>,
    errors: ErrorOutput,
    kill: Option<Kill>,
}

impl Child {
    /// Reads until the process ends, passes its deadline, or violates the protocol.
    fn watch(&mut self, mut result: io::PipeReader, mut stderr: io::PipeReader, deadline: Option<Instant>, max: usize) {
        let (mut result_open, mut stderr_open) = (true, true);
        loop {
            let left = deadline.map_or(STEP, |at| at.saturating_duration_since(Instant::now()).min(STEP));
            let wait = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) as _ };
            let mut fds = Vec::with_capacity(2);
            if result_open {
                fds.push(PollFd::new(&result, PollFlags::IN));
            }
            if stderr_open {
                fds.push(PollFd::new(&stderr, PollFlags::IN));
            }
            let _ = rustix::event::poll(&mut fds, Some(&wait));
            drop(fds);
            // Checked before reading: data sent before the process ended is then still read.
            let ended = self.has_ended();
            result_open = result_open && self.take_result(&mut result, max);
            stderr_open = stderr_open && self.take_errors(&mut stderr);
            if ended || self.kill.is_some() {
                return;
            }
            if deadline.is_some_and(|at| Instant::now() >= at) {
                self.kill = Some(Kill::Deadline);
                return;
            }
        }
    }

    /// Returns true if the process has ended. This does not reap it, so its pid cannot have been reused.
    fn has_ended(&self) -> bool {
        let Some(pid) = Pid::from_raw(self.pid) else { return true };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(rustix::process::waitid(WaitId::Pid(pid), options), Ok(None) | Err(rustix::io::Errno::INTR))
    }

    fn take_result(&mut self, pipe: &mut io::PipeReader, max: usize) -> bool {
        let mut buffer = [0; 16 << 10];
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => return false,
                Ok(read) => self.came.extend_from_slice(&buffer[..read]),
                Err(error) => return matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
            }
            if self.came.len() > max {
                self.kill = Some(Kill::Violation(Violation::TooLong));
                return false;
            }
        }
    }

    fn take_errors(&mut self, pipe: &mut io::PipeReader) -> bool {
        let mut buffer = [0; 4 << 10];
        loop {
            let read = match pipe.read(&mut buffer) {
                Ok(0) => return false,
                Ok(read) => read,
                Err(error) => return matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
            };
            if let Err(violation) = self.errors.take(&buffer[..read]) {
                self.kill = Some(Kill::Violation(violation));
                return false;
            }
        }
    }

    /// Kills the rest of its process group and the process itself, and reaps it.
    fn kill_and_reap(&self) -> io::Result<Death> {
        if let Some(pid) = Pid::from_raw(self.pid) {
            // It may not have its own group yet.
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
            if self.kill.is_some() {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
        unix::reap(self.pid, true)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Splits the received bytes into parts; false if an incomplete part is left.
    fn parts(&self) -> (Vec<(u8, &[u8])>, bool) {
        let (mut parts, mut rest) = (Vec::new(), self.came.as_slice());
        while let Some((&[kind, a, b, c, d], after)) = rest.split_first_chunk::<5>() {
            let length = u32::from_le_bytes([a, b, c, d]) as usize;
            let Some((bytes, next)) = after.split_at_checked(length) else { return (parts, false) };
            parts.push((kind, bytes));
            rest = next;
        }
        (parts, rest.is_empty())
    }

    /// Returns the layers as the process reports them.
    fn layers(&self) -> Option<Layers> {
        let (parts, _) = self.parts();
        parts.iter().find(|part| part.0 == b'L').and_then(|part| serde_json::from_slice(part.1).ok())
    }

    /// Returns the result of the closure.
    fn result<T: DeserializeOwned>(&self, death: Death, bounds: &Bounds) -> Result<T, BoundedError> {
        let (parts, whole) = self.parts();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let setup = parts.iter().find(|part| part.0 == b'S').map(|part| verdict::clean(&text(part.1), 300));
        // A valid report is one part about the layers, then one about the end.
        let report = match parts.as_slice() {
            [(b'L', _), (b'R', json)] if whole => Some(Ok(json.to_vec())),
            [(b'L', _), (b'P', panic)] if whole => Some(Err(text(panic))),
            _ => None,
        };
        let garbage =
            setup.is_none() && report.is_none() && (parts.len() > 1 || parts.iter().any(|part| part.0 != b'L'));
        let kill = self.kill.or(garbage.then_some(Kill::Violation(Violation::Garbage)));
        let stderr = self.errors.text();
        let facts = Facts {
            kill,
            end: End::Reaped { death, late: false },
            reported: report.is_some(),
            setup: setup.as_deref(),
            stderr: &stderr,
            limit_ms: bounds.timeout_ms(),
            limit_bytes: bounds.memory_bytes,
            out_of_group: None,
        };
        concluded(bounds, &facts, report)
    }
}
