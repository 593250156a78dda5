//! The template: a process with one thread that locks itself down once and forks a child for each run.
//!
//! It is the host's own program, started again with a hidden argument that [`crate::init`] looks for. The host can
//! order a child before there is a job for it. Such a child locks itself down and waits, and serves one run like any
//! other. The template also reaps its children, reports how they ended, and kills children past their deadline if the
//! host has not.

use super::child::{self, Inherited, WarmUp};
use super::huge_pages;
use super::layers::{Layer, LayerInstaller, LayerSet, Layers, SetupError, State, limit};
use super::lockdown;
use crate::kernel::sys::{self, Fork};
use crate::wire::frames::{self, PACKET};
use crate::wire::messages::{self, Deadline, Message, Notice, Order};
use lisp_runtime::DataSet;
use lisp_runtime::remote::SentSet;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::process::{Pid, PidfdFlags, Resource, Signal};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The hidden first argument.
pub(crate) const ARGUMENT: &str = "--ptc-lisp-template";

/// True once [`crate::init`] was called in this process.
pub(crate) static INIT_CALLED: AtomicBool = AtomicBool::new(false);

/// Returns why this process may not start `program` as a template. A host that starts itself, without [`crate::init`]
/// in its `main`, would start itself again without end.
pub(crate) fn refusal(program: &Path) -> Option<SetupError> {
    let no_init =
        "this program's main must call lisp_sandbox::init() first; or name another template by Builder::template";
    // This process was started as a template, but `init` was not called.
    let was_to_be_one = std::env::args_os().nth(1).is_some_and(|first| first == ARGUMENT);
    let is_itself = program == Path::new(ITSELF) && !INIT_CALLED.load(Ordering::Relaxed);
    (was_to_be_one || is_itself).then(|| SetupError::new("template", no_init))
}

/// The path of this program.
pub(crate) const ITSELF: &str = "/proc/self/exe";

/// The maximum number of children that a host orders at once. Each takes two descriptors of the template, and a third
/// if the host asks for one.
pub(crate) const CHILDREN: usize = 256;

/// The maximum number of all children, including a spare one and those that are not reaped yet.
const MAX_CHILDREN: usize = CHILDREN + 64;

/// The maximum number of processes and threads of a template: the launcher, itself, its children and their threads.
pub(crate) const MAX_TASKS: u64 = 2 + MAX_CHILDREN as u64 + child::THREADS;

/// How long past its deadline a child is left to the host, in nanoseconds.
const PATIENCE_NS: u64 = 100_000_000;

/// What the host sends a template when it starts it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Config {
    pub(crate) wanted: LayerSet,
    /// The file through which to join the memory cgroup, or why there is none.
    pub(crate) group: Result<PathBuf, String>,
    /// There are data sets to be read from the descriptor of standard output.
    #[serde(default)]
    pub(crate) sets: bool,
}

/// The first report of a template: its layers, or why it cannot start.
pub(crate) type Ready = Result<Layers, SetupError>;

/// The template's ends of two sockets that its children use one after the other. Its end of `run` is passed to the
/// child.
struct SocketPair {
    id: u64,
    run: OwnedFd,
    status: OwnedFd,
}

/// A child that is not reaped yet.
struct Child {
    pid: i32,
    pair: SocketPair,
    /// Set if the host has asked for it.
    process: Option<OwnedFd>,
    kill_at: u64,
    late: bool,
}

/// Runs the template; does not return.
pub(crate) fn main(config: &str) -> ! {
    let control = sys::take_stdin();
    let outcome = serde_json::from_str::<Config>(config)
        .map_err(|error| SetupError::new("configuration", error))
        .and_then(|config| become_template(&config, control));
    // Reached by a template that could not start, or whose host is gone.
    sys::exit(i32::from(outcome.is_err()))
}

fn become_template(config: &Config, control: OwnedFd) -> Result<(), SetupError> {
    let step = |step: &'static str| move |error: io::Error| SetupError::new(step, error);
    let errno = |step: &'static str| move |error: Errno| SetupError::new(step, error);
    let control = sys::keep_only(control, false).map_err(step("descriptors"))?;
    let sets = config.sets.then(|| rustix::stdio::stdout().try_clone_to_owned());
    let sets = sets.transpose().map_err(step("data sets"))?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR, Mode::empty()).map_err(errno("/dev/null"))?;
    rustix::stdio::dup2_stdin(&null).map_err(errno("/dev/null"))?;
    rustix::stdio::dup2_stdout(&null).map_err(errno("/dev/null"))?;
    rustix::stdio::dup2_stderr(&null).map_err(errno("/dev/null"))?;
    drop(null);
    let _ = rustix::process::setsid();
    sys::reset_signals();
    let signals = child::Signals::listening().map_err(step("signals"))?;
    let mut installer = LayerInstaller::new(&config.wanted);
    installer.install(Layer::OomFirst, lockdown::first_to_go);
    installer.install(Layer::MemoryCgroup, || match &config.group {
        Ok(join_file) => crate::kernel::cgroup::join(join_file),
        Err(why) => Err(io::Error::other(why.clone())),
    });
    let encoded = |ready: Ready| serde_json::to_vec(&ready).map_err(|error| SetupError::new("report", error));
    if lockdown::namespaces(&mut installer) {
        if let Err(error) = sys::move_into_namespace().map_err(step("fork into the namespaces")) {
            rustix::net::send(&control, &encoded(Err(error.clone()))?, SendFlags::NOSIGNAL).map_err(errno("report"))?;
            return Err(error);
        }
        // The parent is the launcher, whose pid is not visible in this namespace.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(errno("launcher"))?;
    }
    let locked = lock_down(config, installer, signals, sets);
    let report = encoded(locked.as_ref().map(|locked| locked.layers.clone()).map_err(Clone::clone))?;
    rustix::net::send(&control, &report, SendFlags::NOSIGNAL).map_err(errno("report"))?;
    let LockedIn { tasks, inherited, .. } = locked?;
    serve(&control, &tasks, &inherited, false);
    Ok(())
}

/// A template that has locked itself down.
struct LockedIn {
    tasks: OwnedFd,
    layers: Layers,
    inherited: Inherited,
}

fn lock_down(
    config: &Config,
    mut installer: LayerInstaller<'_>,
    signals: child::Signals,
    sets: Option<OwnedFd>,
) -> Result<LockedIn, SetupError> {
    let tasks = rustix::fs::open("/proc/self/task", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| SetupError::new("/proc/self/task", error))?;
    let sets = match sets {
        Some(file) => {
            let sets = import(file).map_err(|error| SetupError::new("data sets", error))?;
            // On a kernel without support, forks are slower.
            let _ = huge_pages::gather();
            sets
        }
        None => Vec::new(),
    };
    let warm_up = |source| WarmUp::with(source).map_err(|error| SetupError::new("warm-up", error));
    let warmed = |done: io::Result<()>| done.map_err(|error| SetupError::new("warm-up", error));
    warmed(warm_up(child::BROAD)?.run(&signals))?;
    warmed(warm_up(child::PLAIN)?.run(&signals))?;
    let statm = rustix::fs::open("/proc/self/statm", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| SetupError::new("/proc/self/statm", error))?;
    // Kernels before 6.4 report it only in a file, which will soon be out of reach.
    let page_bytes = rustix::param::page_size() as u64;
    lockdown::empty_root(&mut installer);
    lockdown::fixed_limits(&mut installer, 4 * CHILDREN as u64);
    installer.install(Layer::WallKill, || {
        let process = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
        // A signal without effect: only the system call is tried.
        Ok(rustix::process::pidfd_send_signal(process, Signal::CONT)?)
    });
    // Each child sets these limits itself; here they are only tried.
    installer.install(Layer::RlimitAs, || limit(Resource::As, u64::MAX));
    installer.install(Layer::RlimitCpu, || limit(Resource::Cpu, u64::MAX));
    installer.note(Layer::FdsClosed, State::Active);
    installer.note(Layer::ParentDeath, State::Active);
    lockdown::give_up(&mut installer);
    if !is_alone(&tasks) {
        return Err(SetupError::new("threads", "the template has more than one; call init() first in main"));
    }
    let wanted = config.wanted.clone();
    let pid = rustix::process::getpid();
    let ends = sys::ends_of_children().map_err(|error| SetupError::new("signals", error))?;
    let own_users = installer.layers.is_active(Layer::UserNamespace);
    let mut inherited = Inherited { wanted, pid, bytes: 0, signals, sets, ends, own_users, filters: None };
    Rehearsal::prepare().map_err(|error| SetupError::new("rehearsal", error))?.run(&tasks, &inherited);
    inherited.bytes = address_space(&statm, page_bytes).map_err(|error| SetupError::new("/proc/self/statm", error))?;
    sys::hold_signals(true);
    inherited.filters = lockdown::restrict_template(&mut installer);
    Ok(LockedIn { tasks, layers: installer.done(), inherited })
}

/// Imports the data sets of future runs, one per line.
fn import(file: OwnedFd) -> io::Result<Vec<DataSet>> {
    let mut file = File::from(file);
    file.rewind()?;
    let set = |line: io::Result<String>| {
        let line = line?;
        let sent: SentSet<'_> = serde_json::from_str(&line)?;
        drop(line);
        sent.import().map_err(|problem| io::Error::other(problem.error.to_string()))
    };
    BufReader::new(file).lines().map(set).collect()
}

/// An order for a child that gets no job.
struct Rehearsal {
    control: OwnedFd,
    /// The host's ends.
    _host: [OwnedFd; 2],
}

impl Rehearsal {
    fn prepare() -> io::Result<Rehearsal> {
        let ((control, host), (run, _), (status, listener)) = (frames::pair()?, frames::pair()?, frames::pair()?);
        let order = Order { pair: 1, ..Order::new(0, 0) };
        let message = Message { order: Some(order), ..Message::default() };
        messages::send(&host, message, &[run.as_fd(), status.as_fd()])?;
        Ok(Rehearsal { control, _host: [host, listener] })
    }

    fn run(self, tasks: &OwnedFd, inherited: &Inherited) {
        serve(&self.control, tasks, inherited, true);
    }
}

/// Returns true if this process has one thread. A directory of tasks counts them as links.
fn is_alone(tasks: &OwnedFd) -> bool {
    rustix::fs::fstat(tasks).is_ok_and(|stat| stat.st_nlink == 3)
}

/// Returns the address space of this process, from the first number of its `statm`.
fn address_space(statm: &OwnedFd, page_bytes: u64) -> io::Result<u64> {
    let mut bytes = [0; 128];
    let read = rustix::io::read(statm, &mut bytes[..])?;
    let text = std::str::from_utf8(&bytes[..read]).map_err(io::Error::other)?;
    let pages: u64 = text.split(' ').next().and_then(|n| n.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    Ok(pages.saturating_mul(page_bytes))
}

/// Forks, monitors and reaps until the host is gone; with `rehearsal`, until the first child has ended. It allocates
/// nothing for a run, because each page that it writes to must be copied while a child shares it.
fn serve(control: &OwnedFd, tasks: &OwnedFd, inherited: &Inherited, rehearsal: bool) {
    // More capacity would take more pages.
    let mut running: Vec<Child> = Vec::with_capacity(16);
    let mut idle: Vec<SocketPair> = Vec::with_capacity(16);
    loop {
        let woken = wait(control, &running, inherited);
        if woken.ended {
            reap(&mut running, inherited, |pair| idle.push(pair));
            if rehearsal && running.is_empty() {
                return;
            }
        }
        if woken.message {
            // Children end with this process.
            let Ok((message, fds)) = messages::receive(control) else { return };
            if let Some(Deadline { pair, kill_at }) = message.deadline {
                running.iter_mut().filter(|child| child.pair.id == pair).for_each(|child| child.kill_at = kill_at);
            }
            if let Some(order) = message.order {
                let pair = match fds {
                    Some((run, status)) => {
                        // A host that needs a new pair may have given up others.
                        idle.retain(|pair| !is_given_up(pair));
                        Some(SocketPair { id: order.pair, run, status })
                    }
                    None => idle.iter().position(|pair| pair.id == order.pair).map(|at| idle.swap_remove(at)),
                };
                let pair = pair.and_then(|pair| match running.len() < MAX_CHILDREN {
                    true => Some(pair),
                    false => refuse(&pair, libc::EAGAIN),
                });
                running.extend(pair.and_then(|pair| start(order, pair, tasks, inherited)));
                if rehearsal && running.is_empty() {
                    // The system cannot create a process now. It may be able to when there is a run.
                    return;
                }
            }
            if let Some(child) = running.iter_mut().find(|child| message.show == Some(child.pair.id)) {
                show(child);
            }
        }
        // The host's message may extend a child's deadline, so it is read first.
        if !woken.message {
            kill_late(&mut running, inherited);
        }
    }
}

/// Returns true if the host has closed its ends.
fn is_given_up(pair: &SocketPair) -> bool {
    let mut fds = [PollFd::new(&pair.status, PollFlags::empty())];
    !matches!(rustix::event::poll(&mut fds, Some(&Timespec::default())), Ok(0))
}

fn kill_late(running: &mut [Child], inherited: &Inherited) {
    let now = sys::monotonic_ns();
    for child in running {
        if inherited.wanted.wants(Layer::WallKill) && is_late(child, now) && !child.late {
            let killed = open(child).and_then(|process| rustix::process::pidfd_send_signal(process, Signal::KILL));
            match killed {
                Ok(()) => child.late = true,
                // A descriptor may be available at the next attempt.
                Err(_) => child.kill_at = now,
            }
        }
    }
}

fn is_late(child: &Child, now: u64) -> bool {
    child.kill_at > 0 && now >= child.kill_at.saturating_add(PATIENCE_NS)
}

/// Returns a descriptor of a child that is not reaped yet; opened on first use.
fn open(child: &mut Child) -> Result<&OwnedFd, Errno> {
    match &mut child.process {
        Some(process) => Ok(process),
        none => {
            let pid = Pid::from_raw(child.pid).ok_or(Errno::SRCH)?;
            Ok(none.insert(rustix::process::pidfd_open(pid, PidfdFlags::empty())?))
        }
    }
}

/// Sends the host a descriptor of a child.
fn show(child: &mut Child) {
    let _ = open(child);
    notify(&child.pair, Notice::Shown, child.process.as_ref().map(AsFd::as_fd));
}

/// What there is to do.
#[derive(Default)]
struct Woken {
    /// The host has sent a message.
    message: bool,
    /// Children have ended.
    ended: bool,
}

/// Waits until there is a message, a child has ended, or one is past its deadline.
fn wait(control: &OwnedFd, running: &[Child], inherited: &Inherited) -> Woken {
    let mut fds = [PollFd::new(&inherited.ends, PollFlags::IN), PollFd::new(control, PollFlags::IN)];
    let now = sys::monotonic_ns();
    let late = running.iter().filter(|child| child.kill_at > 0 && !child.late).map(|child| child.kill_at).min();
    let timeout = late.map(|at| at.saturating_add(PATIENCE_NS).saturating_sub(now));
    let timeout =
        timeout.map(|ns| Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 });
    match rustix::event::poll(&mut fds, timeout.as_ref()) {
        Ok(_) => Woken { ended: !fds[0].revents().is_empty(), message: !fds[1].revents().is_empty() },
        Err(_) => Woken::default(),
    }
}

/// Forks a child for an order.
fn start(order: Order, pair: SocketPair, tasks: &OwnedFd, inherited: &Inherited) -> Option<Child> {
    if !is_alone(tasks) {
        return refuse(&pair, libc::EDEADLK);
    }
    match sys::fork() {
        Ok(Fork::Child) => child::main(order, pair.run, inherited),
        Ok(Fork::Parent(pid)) => Some(Child { pid, pair, process: None, kill_at: order.kill_at, late: false }),
        Err(error) => refuse(&pair, error.raw_os_error().unwrap_or(libc::EAGAIN)),
    }
}

/// Notifies the host that there will be no child.
fn refuse<T>(pair: &SocketPair, errno: i32) -> Option<T> {
    notify(pair, Notice::Refused(errno), None);
    None
}

/// Reaps the children that have ended, reports how, and passes on the pairs whose hosts still listen.
fn reap(running: &mut Vec<Child>, inherited: &Inherited, mut leave: impl FnMut(SocketPair)) {
    // One signal may stand for several ends, and its content is not needed.
    let _ = rustix::io::read(&inherited.ends, &mut [0; 128]);
    while let Ok(Some((pid, death))) = sys::reap_any() {
        if let Some(at) = running.iter().position(|child| child.pid == pid) {
            let child = running.swap_remove(at);
            if notify(&child.pair, Notice::Ended { death, late: child.late }, None) {
                leave(child.pair);
            }
        }
    }
}

/// Sends a notice about a child. If the host has closed the socket, it does not need the notice.
fn notify(pair: &SocketPair, notice: Notice, process: Option<BorrowedFd<'_>>) -> bool {
    messages::notify(&pair.status, notice, process).is_ok()
}

/// The maximum size of a template's report.
pub(crate) const REPORT_BYTES: usize = PACKET;
