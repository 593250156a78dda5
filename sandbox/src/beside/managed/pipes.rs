//! A process that is monitored and terminated through two named pipes in a directory.
//!
//! A client opens `wait`, writes `0` (terminate) or `1` (keep running) and closes it. Then it opens `status` and reads
//! three lines to the end: processor time so far in microseconds, current memory in bytes, and the state. `1` can be
//! sent any number of times, also after the process has ended; `0` must be the last. A process that is terminated has
//! about 50 ms to end by itself before it is killed.
//!
//! A client may take any time between its two steps; only the answer to `0` is dropped after a minute. A client that
//! opens `status` at the moment at which the answer for another client is closed reads nothing, and must ask again.

use crate::host::running::Running;
use crate::host::sandbox::Sandbox;
use crate::kernel::sys;
use lisp_runtime::outcome::Phase;
use lisp_runtime::remote::HostHalf;
use lisp_runtime::{Cancel, Input, Outcome, Verdict};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Signal;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long an answer stays in the pipe for a client that has opened `status` and does not read.
const CLIENT: Duration = Duration::from_secs(1);
/// The maximum number of answers that wait for clients. The oldest are dropped first, because their clients may be
/// gone.
const WAITING: usize = 64;
/// How long the answer to `0` waits for its client.
const LINGER: Duration = Duration::from_secs(60);
/// How long to wait for other clients once one has the answer after the end.
const QUIET: Duration = Duration::from_millis(100);
/// How long a terminated process may take until its end is known, including the grace.
const END: Duration = Duration::from_secs(2);

/// A program in a separate process, with its two pipes.
#[derive(Debug)]
pub struct Managed {
    shared: Arc<Shared>,
    server: Option<JoinHandle<()>>,
    run: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    dir: PathBuf,
    cancel: Cancel,
    process: OnceLock<Arc<OnceLock<OwnedFd>>>,
    outcome: Mutex<Option<Outcome>>,
    ended: Condvar,
    /// The highest processor time reported so far.
    cpu_us: Mutex<u64>,
    stop: OwnedFd,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Managed {
    /// Starts a program and serves its pipes in a directory, which is created if it does not exist. Only the caller's
    /// user can access the pipes.
    ///
    /// # Errors
    /// Returns an error if the directory or the pipes cannot be created, if another process serves pipes with these
    /// names, or if other files have these names.
    pub fn start(sandbox: &Sandbox, dir: &Path, source: String, input: Input<'static>) -> io::Result<Managed> {
        let sandbox = sandbox.clone();
        Managed::start_with(dir, move |shared| shared.run(&sandbox, &source, &input.cancel_with(&shared.cancel)))
    }

    /// Like [`Managed::start`], with a payload in place of a program.
    ///
    /// # Errors
    /// Returns the errors of [`Managed::start`].
    #[cfg(feature = "testing")]
    pub fn start_payload(sandbox: &Sandbox, dir: &Path, payload: &'static str) -> io::Result<Managed> {
        let sandbox = sandbox.clone();
        Managed::start_with(dir, move |shared| {
            let input = Input::new().cancel_with(&shared.cancel);
            let outcome = sandbox.with_payload(payload, &input, |running, host| shared.finish(running, host));
            *lock(&shared.outcome) = Some(outcome);
            shared.ended.notify_all();
        })
    }

    /// Creates the pipes and two threads: the first runs the program, the second serves clients.
    fn start_with(dir: &Path, run: impl FnOnce(&Shared) + Send + 'static) -> io::Result<Managed> {
        make_pipes(dir)?;
        let started = Managed::start_threads(dir, run);
        if started.is_err() {
            remove_pipes(dir);
        }
        started
    }

    fn start_threads(dir: &Path, run: impl FnOnce(&Shared) + Send + 'static) -> io::Result<Managed> {
        let shared = Arc::new(Shared {
            dir: dir.to_owned(),
            cancel: Cancel::new(),
            process: OnceLock::new(),
            outcome: Mutex::new(None),
            ended: Condvar::new(),
            cpu_us: Mutex::new(0),
            stop: rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?,
        });
        let (far, near) = (shared.clone(), shared.clone());
        let wait = open(&dir.join("wait"), OFlags::RDONLY)?;
        let run = std::thread::Builder::new().spawn(move || run(&far))?;
        // If the server cannot be started, dropping `managed` cancels the run and waits for it.
        let mut managed = Managed { shared, server: None, run: Some(run) };
        managed.server = Some(std::thread::Builder::new().spawn(move || near.serve(wait))?);
        Ok(managed)
    }

    /// Waits until a client has terminated the process, and returns the outcome of the program.
    pub fn wait(mut self) -> Option<Outcome> {
        self.join();
        lock(&self.shared.outcome).take()
    }

    /// Terminates the process, like a client.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Returns [`Managed::stop`] as a closure for another thread, such as one that waits for signals.
    pub fn stop_handle(&self) -> impl Fn() + Send + Sync + 'static {
        let shared = self.shared.clone();
        move || shared.stop()
    }

    fn join(&mut self) {
        for thread in [self.server.take(), self.run.take()].into_iter().flatten() {
            // A panic of the thread has been reported already.
            let _ = thread.join();
        }
    }
}

impl Drop for Managed {
    fn drop(&mut self) {
        self.stop();
        self.join();
    }
}

/// Creates the directory and the pipes. Pipes left behind by a server are replaced: no server reads them.
fn make_pipes(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    match std::fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let is_pipe =
        |path: &Path| rustix::fs::lstat(path).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
    let wait = dir.join("wait");
    let served = !is_pipe(&wait)
        || rustix::fs::open(&wait, OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).is_ok();
    if !served {
        remove_pipes(dir);
    }
    let make = |name: &str| {
        let path = dir.join(name);
        let made = rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0);
        made.map_err(|error| {
            let error = io::Error::from(error);
            let why = match error.kind() {
                io::ErrorKind::AlreadyExists if is_pipe(&path) => "a pipe that another process serves".to_owned(),
                io::ErrorKind::AlreadyExists => {
                    "already exists and is not a pipe; remove it or choose another directory".to_owned()
                }
                _ => error.to_string(),
            };
            io::Error::new(error.kind(), format!("{name}: {why}"))
        })
    };
    make("wait")?;
    make("status").inspect_err(|_| {
        let _ = rustix::fs::unlink(&wait);
    })
}

fn remove_pipes(dir: &Path) {
    for name in ["wait", "status"] {
        // They may have been removed already.
        let _ = rustix::fs::unlink(dir.join(name));
    }
}

/// Opens one of the pipes, and nothing that may have replaced it. Never waits for the other side.
fn open(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::empty())?;
    match FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) {
        FileType::Fifo => Ok(fd),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a named pipe")),
    }
}

/// A question of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    Terminate,
    Look,
    Nonsense,
}

/// Returns the questions in bytes written to `wait`: each byte is one, except line ends.
fn asked(bytes: &[u8]) -> Vec<Ask> {
    let ask = |byte: &u8| match byte {
        b'0' => Some(Ask::Terminate),
        b'1' => Some(Ask::Look),
        b'\n' | b'\r' => None,
        _ => Some(Ask::Nonsense),
    };
    bytes.iter().filter_map(ask).collect()
}

impl Shared {
    /// Runs the program to its end.
    fn run(&self, sandbox: &Sandbox, source: &str, input: &Input<'_>) {
        let outcome = match sandbox.split(source, input, false) {
            Err(outcome) => *outcome,
            Ok((job, mut host)) => match sandbox.start(&job, &mut host) {
                Err(outcome) => *outcome,
                Ok(running) => self.finish(running, &mut host),
            },
        };
        *lock(&self.outcome) = Some(outcome);
        self.ended.notify_all();
    }

    fn finish(&self, mut running: Running, host: &mut HostHalf) -> Outcome {
        let _ = self.process.set(running.process());
        running.identify();
        running.finish(host)
    }

    fn stop(&self) {
        self.cancel.cancel();
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
    }

    /// Serves clients until one terminates the process, then removes the pipes. It never waits for a single client: one
    /// that goes away between its two steps, or does not read, delays neither the others nor the end.
    fn serve(&self, wait: OwnedFd) {
        let mut wait = Questions { pipe: wait, heard: false };
        let mut answers = Answers::new(self.dir.join("status"));
        let mut terminated = None;
        let mut pause = Pause::default();
        // Questions asked during the grace of the process are answered too.
        let mut silent = false;
        while !(silent && answers.are_over(terminated)) {
            let idle = answers.is_idle() && terminated.is_none();
            let Ok(Some(asks)) = self.next(&mut wait, if idle { None } else { Some(pause.next()) }) else { break };
            silent = asks.is_empty();
            for ask in asks {
                pause = Pause::default();
                if ask == Ask::Terminate && terminated.is_none() {
                    self.terminate();
                    terminated = Some(Instant::now());
                    // A later client finds no pipe.
                    let _ = rustix::fs::unlink(self.dir.join("wait"));
                }
                answers.owe(ask);
            }
            answers.give(|ask| self.text(ask));
        }
        self.terminate();
        answers.release(&self.dir);
    }

    /// Waits for clients, at most for `max`. A client that writes nothing has sent an invalid question. `None` if the
    /// host wants to stop.
    fn next(&self, wait: &mut Questions, max: Option<Duration>) -> io::Result<Option<Vec<Ask>>> {
        let max = max.map(|max| Timespec { tv_sec: 0, tv_nsec: max.subsec_nanos().into() });
        let mut fds = [PollFd::new(&wait.pipe, PollFlags::IN), PollFd::new(&self.stop, PollFlags::IN)];
        match rustix::event::poll(&mut fds, max.as_ref()) {
            Ok(0) | Err(Errno::INTR) => return Ok(Some(Vec::new())),
            polled => polled?,
        };
        if !fds[1].revents().is_empty() {
            return Ok(None);
        }
        let gone = fds[0].revents().contains(PollFlags::HUP);
        let mut bytes = [0; 64];
        let read = match rustix::io::read(&wait.pipe, &mut bytes) {
            Ok(read) => read,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(Some(Vec::new())),
            Err(error) => return Err(error.into()),
        };
        wait.heard |= read > 0;
        let mut asks = asked(&bytes[..read]);
        if gone && read < bytes.len() {
            if !wait.heard {
                asks.push(Ask::Nonsense);
            }
            // A new reader does not see the writers that have closed the pipe. The old one is closed after the new one
            // is open; otherwise data written in between would be lost.
            match open(&self.dir.join("wait"), OFlags::RDONLY) {
                Ok(pipe) => *wait = Questions { pipe, heard: false },
                // The pipe is removed after the last question.
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        Ok(Some(asks))
    }

    /// Asks the process to end. It is killed after the grace.
    fn terminate(&self) {
        self.cancel.cancel();
        if let Some(process) = self.process.get().and_then(|process| process.get()) {
            let _ = rustix::process::pidfd_send_signal(process, Signal::USR1);
        }
        let until = Instant::now() + END;
        let mut outcome = lock(&self.outcome);
        while outcome.is_none() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            outcome = self.ended.wait_timeout(outcome, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns the three lines.
    fn text(&self, ask: Ask) -> String {
        let outcome = lock(&self.outcome);
        let (cpu, memory, state) = match &*outcome {
            Some(outcome) => (outcome.usage.cpu_us.unwrap_or(0), 0, state_of(outcome)),
            None => {
                let (cpu, memory) = self.figures();
                (cpu, memory, "process running normally".to_owned())
            }
        };
        drop(outcome);
        // The two clocks differ slightly; the reported time must not decrease.
        let mut max = lock(&self.cpu_us);
        *max = cpu.max(*max);
        let state = if ask == Ask::Nonsense { format!("bad request; {state}") } else { state };
        format!("{}\n{memory}\n{state}\n", *max)
    }

    /// Returns processor time and memory of the running process.
    fn figures(&self) -> (u64, u64) {
        let Some(process) = self.process.get().and_then(|process| process.get()) else { return (0, 0) };
        let Some(pid) = pid_of(process) else { return (0, 0) };
        let cpu = sys::cpu_time(pid).map_or(0, |time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
        let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
        let mut pages = statm.split(' ').skip(1).map_while(|n| n.parse::<u64>().ok());
        let (resident, files) = (pages.next().unwrap_or(0), pages.next().unwrap_or(0));
        (cpu, resident.saturating_sub(files) * rustix::param::page_size() as u64)
    }
}

/// The reading end of `wait`.
struct Questions {
    pipe: OwnedFd,
    /// Data has arrived since the pipe was opened, so the writer that closed it did send a question.
    heard: bool,
}

/// Answers whose clients have not read them yet.
struct Answers {
    status: PathBuf,
    waiting: VecDeque<Ask>,
    /// The latest answer, which its client may be reading.
    given: Option<Given>,
    last_given: Option<Instant>,
}

/// An answer in the pipe.
struct Given {
    /// Keeps the answer in the pipe although the client that had opened it may be gone: the next client reads it.
    status: Option<OwnedFd>,
    /// When the client has had its time.
    until: Instant,
}

impl Answers {
    fn new(status: PathBuf) -> Self {
        Answers { status, waiting: VecDeque::new(), given: None, last_given: None }
    }

    fn owe(&mut self, ask: Ask) {
        if self.waiting.len() == WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(ask);
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.given.as_ref().is_none_or(|given| given.status.is_none())
    }

    /// Returns true if the process was terminated and the last client has read its answer, or had time to.
    fn are_over(&self, terminated: Option<Instant>) -> bool {
        let Some(terminated) = terminated else { return false };
        match self.last_given.filter(|given| *given >= terminated) {
            Some(given) => self.is_idle() || given.elapsed() >= QUIET,
            None => terminated.elapsed() >= LINGER,
        }
    }

    /// Writes the latest answer if a client is there to read it: the clients of older answers may be gone.
    fn give(&mut self, text: impl FnOnce(Ask) -> String) {
        if let Some(given) = &self.given {
            // Another answer would be read as the rest of this one.
            if Instant::now() < given.until && unread(&self.status) {
                return;
            }
            self.given = None;
        }
        let Some(&ask) = self.waiting.back() else { return };
        let left = leftovers(&self.status);
        // Fails if no client has opened the pipe.
        if let Ok(status) = open(&self.status, OFlags::WRONLY) {
            // The answer fits into the pipe at once.
            let _ = rustix::io::write(&status, text(ask).as_bytes());
            self.given = Some(Given { status: left.then_some(status), until: Instant::now() + CLIENT });
            self.waiting.pop_back();
            self.last_given = Some(Instant::now());
        }
    }

    /// Releases clients that wait for the pipe to open, which then read nothing, and removes the pipes. While this end
    /// is open, no further client can start to wait.
    fn release(&self, dir: &Path) {
        let _status = open(&self.status, OFlags::RDWR);
        remove_pipes(dir);
    }
}

/// How long to wait before checking again.
struct Pause(Duration);

impl Default for Pause {
    fn default() -> Self {
        Pause(Duration::from_micros(10))
    }
}

impl Pause {
    fn next(&mut self) -> Duration {
        let now = self.0;
        self.0 = (now * 2).min(Duration::from_millis(5));
        now
    }
}

/// Returns whether the pipe contains an answer that is not read to its end.
fn unread(status: &Path) -> bool {
    open(status, OFlags::RDONLY).is_ok_and(|status| rustix::io::ioctl_fionread(&status).unwrap_or(0) > 0)
}

/// Discards what an earlier client has not read. Returns true if there was something.
fn leftovers(status: &Path) -> bool {
    let Ok(status) = open(status, OFlags::RDONLY) else { return false };
    let mut bytes = [0; 512];
    let mut found = false;
    while matches!(rustix::io::read(&status, &mut bytes), Ok(1..)) {
        found = true;
    }
    found
}

/// Returns the pid of a process in the namespace of this one.
fn pid_of(process: &OwnedFd) -> Option<i32> {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", process.as_raw_fd())).ok()?;
    let pid = info.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()?;
    (pid > 0).then_some(pid)
}

/// Describes how a program ended, in one line.
fn state_of(outcome: &Outcome) -> String {
    let Some(problem) = outcome.problem() else { return "exited normally".to_owned() };
    let killed = problem.error.details.iter().any(|(name, _)| name == "ended_by");
    match (outcome.verdict(), problem.phase) {
        (Verdict::Cancelled, _) if killed => "forced termination".to_owned(),
        (Verdict::Cancelled, _) => "terminated".to_owned(),
        (_, Phase::Compile) => "Compilation failed.".to_owned(),
        _ => crate::host::verdict::clean(&format!("process interrupted: {}", problem.error), 400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_is_a_question() {
        assert_eq!(asked(b"0\n"), [Ask::Terminate]);
        assert_eq!(asked(b"11"), [Ask::Look, Ask::Look]);
        assert_eq!(asked(b"x"), [Ask::Nonsense]);
        assert_eq!(asked(b"\r\n"), []);
    }
}
