//! The template: a process with one thread that locks itself down once and forks a child for each run.
//!
//! It is the host's own program, started again with a hidden argument that [`crate::init`] looks for. Besides forking it
//! reaps its children and says how they ended, and kills those that are past their time should the host not have done so.

use crate::child;
use crate::filter::{self, Rule};
use crate::lockdown::{self, Dressing, Layer, Layers, Plan, SetupError, State};
use crate::sys::{self, Death, Fork, Instruction};
use crate::wire::PACKET;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use rustix::process::{Pid, PidfdFlags, Resource, Signal};
use serde::{Deserialize, Serialize};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// The hidden first argument.
pub(crate) const ARGUMENT: &str = "--ptc-lisp-template";

/// The most children at once; each takes two descriptors of the template.
pub(crate) const CHILDREN: u64 = 256;

/// How long after its time a child is left to the host, in nanoseconds.
const PATIENCE_NS: u64 = 100_000_000;

/// What the host tells a template when it starts it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Config {
    pub(crate) plan: Plan,
    /// For tests: this layer fails.
    #[serde(default)]
    pub(crate) fail_at: Option<Layer>,
    /// Where the memory cgroup is joined, or why there is none.
    pub(crate) group: Result<PathBuf, String>,
}

/// What a template says when it is ready, or why it will not be.
pub(crate) type Ready = Result<Layers, SetupError>;

/// What the host wants of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// Address space above the template's, in bytes; 0 is no limit.
    pub(crate) memory: u64,
    /// Processor time in seconds; 0 is no limit.
    pub(crate) cpu_s: u64,
    /// When the monotonic clock says this many nanoseconds it is to be dead; 0 is never.
    pub(crate) kill_at: u64,
    /// What it runs: 0 is a job, others are the payloads of tests.
    pub(crate) entry: u64,
    /// For tests: the step of the set-up that fails, counted from 1.
    pub(crate) fail_step: u64,
}

const WORDS: usize = 5;

impl Order {
    pub(crate) fn to_bytes(self) -> [u8; 8 * WORDS] {
        let mut bytes = [0; 8 * WORDS];
        let words = [self.memory, self.cpu_s, self.kill_at, self.entry, self.fail_step];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn of(bytes: &[u8]) -> Option<Order> {
        let words: Vec<u64> = bytes.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_le_bytes)).collect();
        let &[memory, cpu_s, kill_at, entry, fail_step] = words.as_slice() else { return None };
        Some(Order { memory, cpu_s, kill_at, entry, fail_step })
    }
}

/// What the template says about a child, over a socket that only the two of them and the host have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// It is there; a descriptor of it comes with this.
    Started,
    /// It could not be made: an error number.
    Refused(i32),
    /// It is reaped; `late` when the template had to kill it.
    Ended { death: Death, late: bool },
}

impl Notice {
    pub(crate) fn to_bytes(self) -> [u8; 32] {
        let words = match self {
            Notice::Started => [1, 0, 0, 0],
            Notice::Refused(errno) => [2, errno.unsigned_abs().into(), 0, 0],
            Notice::Ended { death, late } => {
                let status = u64::from(death.status.cast_unsigned());
                [3 + u64::from(late), status, death.cpu_us, death.rss_peak_bytes]
            }
        };
        let mut bytes = [0; 32];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn of(bytes: &[u8]) -> Option<Notice> {
        let words: Vec<u64> = bytes.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_le_bytes)).collect();
        let &[kind, status, cpu_us, rss_peak_bytes] = words.as_slice() else { return None };
        let low = i32::from_le_bytes((status as u32).to_le_bytes());
        let death = Death { status: low, cpu_us, rss_peak_bytes };
        match kind {
            1 => Some(Notice::Started),
            2 => Some(Notice::Refused(low)),
            3 | 4 => Some(Notice::Ended { death, late: kind == 4 }),
            _ => None,
        }
    }
}

/// A child that lives.
struct Running {
    pid: i32,
    process: OwnedFd,
    status: OwnedFd,
    kill_at: u64,
    late: bool,
}

/// What the children get from the template.
pub(crate) struct Inherited {
    pub(crate) plan: Plan,
    pub(crate) pid: Pid,
    /// Address space of the template.
    pub(crate) bytes: u64,
    pub(crate) signals: child::Signals,
    /// The filter of a child but for its pid, and where that stands.
    filter: Vec<Instruction>,
    pid_at: Vec<usize>,
}

impl Inherited {
    /// The filter of the child with a pid.
    pub(crate) fn filter(&self, pid: Pid) -> Vec<Instruction> {
        let mut filter = self.filter.clone();
        for &at in &self.pid_at {
            filter[at].k = pid.as_raw_nonzero().get().cast_unsigned();
        }
        filter
    }
}

/// Runs the template and never comes back.
pub(crate) fn main(config: &str) -> ! {
    let control = sys::take_stdin();
    let outcome = serde_json::from_str::<Config>(config)
        .map_err(|error| SetupError::new("configuration", error))
        .and_then(|config| become_template(&config, control));
    // Only a template that could not be made comes here, or one whose host is gone.
    sys::exit(i32::from(outcome.is_err()))
}

fn become_template(config: &Config, control: OwnedFd) -> Result<(), SetupError> {
    let step = |step: &'static str| move |error: io::Error| SetupError::new(step, error);
    let errno = |step: &'static str| move |error: Errno| SetupError::new(step, error);
    let control = sys::keep_only(control, false).map_err(step("descriptors"))?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR, Mode::empty()).map_err(errno("/dev/null"))?;
    rustix::stdio::dup2_stdin(&null).map_err(errno("/dev/null"))?;
    rustix::stdio::dup2_stdout(&null).map_err(errno("/dev/null"))?;
    rustix::stdio::dup2_stderr(&null).map_err(errno("/dev/null"))?;
    drop(null);
    let _ = rustix::process::setsid();
    sys::reset_signals();
    let signals = child::Signals::listening().map_err(step("signals"))?;
    let mut dressing = Dressing::new(&config.plan);
    #[cfg(feature = "testing")]
    {
        dressing = dressing.failing_at(config.fail_at);
    }
    dressing.try_on(Layer::OomFirst, lockdown::first_to_go);
    dressing.try_on(Layer::MemoryCgroup, || match &config.group {
        Ok(door) => crate::cgroup::join(door),
        Err(why) => Err(io::Error::other(why.clone())),
    });
    if lockdown::namespaces(&mut dressing) {
        match sys::fork().map_err(step("fork into the namespaces"))? {
            Fork::Child => {
                // The launcher is the parent, though it has no name in here.
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(errno("launcher"))?;
            }
            Fork::Parent(pid) => {
                drop(control);
                let ended = sys::reap(pid, true);
                sys::exit(i32::from(!matches!(ended, Ok(Some(Death { status: 0, .. })))));
            }
        }
    }
    let ready = lock_down(config, dressing, signals);
    let report = ready.as_ref().map(|(_, layers, _)| layers).map_err(Clone::clone);
    let report = serde_json::to_vec(&report).map_err(|error| SetupError::new("report", error))?;
    rustix::net::send(&control, &report, SendFlags::NOSIGNAL).map_err(errno("report"))?;
    let (tasks, _, inherited) = ready?;
    serve(&control, &tasks, &inherited);
    Ok(())
}

fn lock_down(
    config: &Config,
    mut dressing: Dressing<'_>,
    signals: child::Signals,
) -> Result<(OwnedFd, Layers, Inherited), SetupError> {
    let tasks = rustix::fs::open("/proc/self/task", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| SetupError::new("/proc/self/task", error))?;
    child::warm_up();
    let bytes = address_space().map_err(|error| SetupError::new("/proc/self/statm", error))?;
    lockdown::empty_root(&mut dressing);
    lockdown::fixed_limits(&mut dressing, 4 * CHILDREN);
    dressing.try_on(Layer::WallKill, || {
        let process = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
        // One that does nothing: it is the call that is tried.
        Ok(rustix::process::pidfd_send_signal(process, Signal::CONT)?)
    });
    // The rest of the limits are each child's own; here it is tried whether they can be set.
    dressing.try_on(Layer::RlimitAs, || lockdown::limit(Resource::As, u64::MAX));
    dressing.try_on(Layer::RlimitCpu, || lockdown::limit(Resource::Cpu, u64::MAX));
    dressing.note(Layer::FdsClosed, State::Active);
    dressing.note(Layer::ParentDeath, State::Active);
    lockdown::give_up(&mut dressing);
    if !is_alone(&tasks) {
        return Err(SetupError::new("threads", "the template has more than one; call init() first in main"));
    }
    lockdown::restrict(&mut dressing, filter::template());
    dressing.note(Layer::ChildSeccomp, dressing.state(Layer::Seccomp));
    let marked = filter::program(filter::child(MARK), Rule::Allow);
    let pid_at = marked.iter().enumerate().filter(|(_, i)| i.k == MARK.cast_unsigned()).map(|(at, _)| at).collect();
    let plan = config.plan.clone();
    let pid = rustix::process::getpid();
    Ok((tasks, dressing.done(), Inherited { plan, pid, bytes, signals, filter: marked, pid_at }))
}

/// Stands in a filter for a pid; no process can have it, and no system call either.
const MARK: i32 = 0x7fff_fffe;

/// Is there one thread in this process? A directory of tasks counts them as links.
fn is_alone(tasks: &OwnedFd) -> bool {
    rustix::fs::fstat(tasks).is_ok_and(|stat| stat.st_nlink == 3)
}

fn address_space() -> io::Result<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = statm.split(' ').next().and_then(|n| n.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    Ok(pages * rustix::param::page_size() as u64)
}

/// Forks, watches and reaps, until the host is gone.
fn serve(control: &OwnedFd, tasks: &OwnedFd, inherited: &Inherited) {
    let mut running: Vec<Running> = Vec::new();
    loop {
        let (orders, ended) = wait(control, &running);
        // From the end, so that places stay what they are.
        for at in ended.into_iter().rev() {
            bury(running.swap_remove(at));
        }
        if orders {
            match receive(control) {
                Ok(Some((order, run, status))) => {
                    if let Some(child) = start(order, run, status, tasks, inherited) {
                        running.push(child);
                    }
                }
                Ok(None) => {}
                // Children die with this process.
                Err(_) => return,
            }
        }
        let now = sys::monotonic_ns();
        for child in &mut running {
            if inherited.plan.wants(Layer::WallKill) && is_late(child, now) && !child.late {
                child.late = true;
                let _ = rustix::process::pidfd_send_signal(&child.process, Signal::KILL);
            }
        }
    }
}

fn is_late(child: &Running, now: u64) -> bool {
    child.kill_at > 0 && now >= child.kill_at.saturating_add(PATIENCE_NS)
}

/// Waits until there is an order, a child has ended, or one is late.
fn wait(control: &OwnedFd, running: &[Running]) -> (bool, Vec<usize>) {
    // With too many children at once, orders wait.
    let mut fds: Vec<PollFd<'_>> = running.iter().map(|child| PollFd::new(&child.process, PollFlags::IN)).collect();
    if (running.len() as u64) < CHILDREN {
        fds.push(PollFd::new(control, PollFlags::IN));
    }
    let now = sys::monotonic_ns();
    let late = running.iter().filter(|child| child.kill_at > 0 && !child.late).map(|child| child.kill_at).min();
    let timeout = late.map(|at| at.saturating_add(PATIENCE_NS).saturating_sub(now));
    let timeout =
        timeout.map(|ns| Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 });
    if rustix::event::poll(&mut fds, timeout.as_ref()).is_err() {
        return (false, Vec::new());
    }
    let ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
    let orders = fds.get(running.len()).is_some_and(ready);
    (orders, (0..running.len()).filter(|&at| ready(&fds[at])).collect())
}

/// Takes an order; `None` when it makes no sense, an error when the host is gone.
fn receive(control: &OwnedFd) -> io::Result<Option<(Order, OwnedFd, OwnedFd)>> {
    let mut bytes = [0; 8 * WORDS];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let message = loop {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        match rustix::net::recvmsg(control, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Ok(message) => break message,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    };
    if message.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut fds = ancillary.drain().filter_map(|part| match part {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    let mut fds = fds.by_ref().flatten();
    let order = Order::of(&bytes[..message.bytes]).filter(|_| !message.flags.contains(ReturnFlags::TRUNC));
    match (order, fds.next(), fds.next()) {
        (Some(order), Some(run), Some(status)) => Ok(Some((order, run, status))),
        _ => Ok(None),
    }
}

/// Forks a child for an order.
fn start(order: Order, run: OwnedFd, status: OwnedFd, tasks: &OwnedFd, inherited: &Inherited) -> Option<Running> {
    if !is_alone(tasks) {
        notify(&status, Notice::Refused(libc::EDEADLK), None);
        return None;
    }
    let pid = match sys::fork() {
        Ok(Fork::Child) => child::main(order, run, inherited),
        Ok(Fork::Parent(pid)) => pid,
        Err(error) => {
            notify(&status, Notice::Refused(error.raw_os_error().unwrap_or(libc::EAGAIN)), None);
            return None;
        }
    };
    drop(run);
    let opened = Pid::from_raw(pid).ok_or(Errno::SRCH).and_then(|pid| {
        // It cannot be another's pid: nobody else reaps it.
        rustix::process::pidfd_open(pid, PidfdFlags::empty())
    });
    match opened {
        Ok(process) => {
            notify(&status, Notice::Started, Some(process.as_fd()));
            Some(Running { pid, process, status, kill_at: order.kill_at, late: false })
        }
        Err(error) => {
            // Without a descriptor nobody could watch it. It waits for its job, which does not come.
            drop(sys::reap(pid, true));
            notify(&status, Notice::Refused(error.raw_os_error()), None);
            None
        }
    }
}

/// Reaps a child that has ended, and says how.
fn bury(child: Running) {
    if let Ok(Some(death)) = sys::reap(child.pid, false) {
        notify(&child.status, Notice::Ended { death, late: child.late }, None);
    }
}

/// A host that has stopped listening misses nothing.
fn notify(status: &OwnedFd, notice: Notice, process: Option<BorrowedFd<'_>>) {
    let bytes = notice.to_bytes();
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let process: Vec<BorrowedFd<'_>> = process.into_iter().collect();
    if !process.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&process));
    }
    let _ = rustix::net::sendmsg(
        status,
        &[IoSlice::new(&bytes)],
        &mut ancillary,
        SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
    );
}

/// The longest report of a template.
pub(crate) const REPORT_BYTES: usize = PACKET;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_notices_survive_the_way() {
        let order = Order { memory: 1, cpu_s: u64::MAX, kill_at: 3, entry: 4, fail_step: 5 };
        assert_eq!(Order::of(&order.to_bytes()), Some(order));
        assert_eq!(Order::of(&order.to_bytes()[..39]), None);
        let death = Death { status: -1, cpu_us: 7, rss_peak_bytes: u64::MAX };
        for notice in [
            Notice::Started,
            Notice::Refused(11),
            Notice::Ended { death, late: false },
            Notice::Ended { death: Death { status: 139, ..death }, late: true },
        ] {
            assert_eq!(Notice::of(&notice.to_bytes()), Some(notice));
        }
        assert_eq!(Notice::of(&[9; 32]), None);
    }
}
