//! The child of a template: locks itself down, takes one job, and reports the outcome.

use super::layers::{Layer, LayerSet, limit, limit_cpu};
use super::lockdown;
use crate::kernel::sys::{self, Instruction};
use crate::kernel::unix::SETUP_FAILED;
use crate::wire::frames::{self, AWAKE, CHECK, Frame, Kind, LIVE, MEMORY, Replies, SAVE};
use crate::wire::messages::Order;
use lisp_runtime::outcome::Place;
use lisp_runtime::remote::{CallReply, Figures, GuestCall, GuestHalf, Job, PrintedBy, ReplayEnd, RunHost};
use lisp_runtime::{Cancel, DataSet, Engine, Input};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, Resource};
use serde::Serialize;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The flags set by signals: SIGALRM sets the first, SIGUSR1 both.
#[derive(Clone, Debug)]
pub(crate) struct Signals {
    alarm: Arc<AtomicBool>,
    cancel: Cancel,
}

impl Signals {
    pub(crate) fn listening() -> io::Result<Signals> {
        let signals = Signals { alarm: Arc::default(), cancel: Cancel::new() };
        sys::listen(signals.alarm.clone(), signals.cancel.flag())?;
        Ok(signals)
    }
}

/// What children inherit from the template.
pub(crate) struct Inherited {
    pub(crate) wanted: LayerSet,
    pub(crate) pid: Pid,
    /// The address space of the template, measured once it no longer grows.
    pub(crate) bytes: u64,
    pub(crate) signals: Signals,
    /// Data sets shared by runs.
    pub(crate) sets: Vec<DataSet>,
    /// A descriptor that becomes readable when a child has ended.
    pub(super) ends: OwnedFd,
    /// The template has its own user namespace: its threads are counted separately.
    pub(super) own_users: bool,
    /// The filters that restrict locked-down children: without threads, and with.
    pub(super) filters: Option<[Vec<Instruction>; 2]>,
}

/// A program that uses a little of everything.
pub(crate) const BROAD: &str = r#"(defn f [x & more] {:a (map inc x) :b more})
    (println (str (f [1 2] 3) 1.5 "é" 100000000000000000000))
    [(reduce + (filter even? (range 20))) (re-find #"a+" "baa") (get-in data/a [:b 0]) (frequencies "abca")]"#;

/// A program with what every program does.
pub(crate) const PLAIN: &str = "(let [x {:a [1 2]}] [nil true (inc (count (:a x)))])";

/// A job that the template runs itself, before the first fork. It creates what is created only once, and touches the
/// memory that every run touches.
pub(crate) struct WarmUp {
    guest: OwnedFd,
    host: OwnedFd,
}

impl WarmUp {
    /// Sends a job that compiles and runs a program.
    pub(crate) fn with(source: &str) -> io::Result<WarmUp> {
        let engine = Engine::default();
        let input = Input::new().json_object(r#"{"a": {"b": [1, null, true, 2.5]}}"#);
        let (host, guest) = frames::pair()?;
        let (job, _) = engine.split(source, &input, &[], false).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut frame = sys::monotonic_ns().to_le_bytes().to_vec();
        frame.extend(frames::encode(&job)?);
        frames::send(&host, Kind::Job, 0, &frame)?;
        Ok(WarmUp { guest, host })
    }

    /// Runs the job like a child does.
    pub(crate) fn run(self, signals: &Signals) -> io::Result<()> {
        serve(self.guest, signals, &[], Order::new(0, 0))?;
        drop(self.host);
        sys::alarm_in(None);
        signals.alarm.store(false, Ordering::Relaxed);
        Ok(())
    }
}

/// For tests: runs the payload with a number in place of a job.
#[cfg(feature = "testing")]
pub(crate) static PAYLOAD: std::sync::OnceLock<fn(u64, OwnedFd) -> i32> = std::sync::OnceLock::new();

/// Runs the child; does not return.
pub(crate) fn main(order: Order, run: OwnedFd, inherited: &Inherited) -> ! {
    let mut step = 0;
    let run = match lock_in(order, run, inherited, &mut step) {
        Ok(run) => run,
        // The host sees that the channel is closed, the exit code, and this message.
        Err((Some(run), error)) => {
            let text = format!("{}: {error}", STEPS[step.min(STEPS.len() - 1)]);
            let _ = frames::send(&run, Kind::Setup, 0, text.as_bytes());
            sys::exit(SETUP_FAILED)
        }
        Err((None, _)) => sys::exit(SETUP_FAILED),
    };
    #[cfg(feature = "testing")]
    if order.test.payload > 0 {
        sys::exit(PAYLOAD.get().map_or(SETUP_FAILED, |payload| payload(order.test.payload, run)));
    }
    let code = i32::from(serve(run, &inherited.signals, &inherited.sets, order).is_err());
    sys::exit(code)
}

/// The maximum number of threads of all children of a template, where they can be counted separately.
pub(super) const THREADS: u64 = 1_024;

const STEPS: [&str; 5] = ["descriptors", "parent_death", "rlimit_as", "rlimit_cpu", "child_seccomp"];

type Locked = Result<OwnedFd, (Option<OwnedFd>, io::Error)>;

fn lock_in(order: Order, run: OwnedFd, inherited: &Inherited, step: &mut usize) -> Locked {
    let wanted = &inherited.wanted;
    let run = match wanted.wants(Layer::FdsClosed) {
        true => sys::keep_only(run, true).map_err(|error| (None, error))?,
        false => run,
    };
    let mut work = || {
        fault(order, 1)?;
        *step = 1;
        if wanted.wants(Layer::ParentDeath) {
            lockdown::die_with_parent(inherited.pid)?;
        }
        fault(order, 2)?;
        *step = 2;
        if order.memory > 0 && wanted.wants(Layer::RlimitAs) {
            limit(Resource::As, inherited.bytes.saturating_add(order.memory))?;
        }
        fault(order, 3)?;
        *step = 3;
        if order.cpu_s > 0 && wanted.wants(Layer::RlimitCpu) {
            limit_cpu(order.cpu_s)?;
        }
        if order.threads && inherited.own_users {
            // The limit counts the threads of the namespace. It does not apply to root; see docs/security.md.
            let _ = limit(Resource::Nproc, THREADS);
        }
        sys::hold_signals(false);
        fault(order, 4)?;
        *step = 4;
        // This comes last, because it forbids the system calls of the steps before.
        let filter = inherited.filters.as_ref().map(|filters| &filters[usize::from(order.threads)]);
        filter.map_or(Ok(()), |filter| sys::install_filter(filter, false))?;
        fault(order, 5)
    };
    match work() {
        Ok(()) => Ok(run),
        Err(error) => Err((Some(run), error)),
    }
}

/// Fails where a test wants it to.
#[cfg(feature = "testing")]
fn fault(order: Order, step: u64) -> io::Result<()> {
    match order.test.fail_step == step {
        true => Err(io::Error::other("made to fail")),
        false => Ok(()),
    }
}

#[cfg(not(feature = "testing"))]
#[expect(clippy::unnecessary_wraps, reason = "tests make it fail")]
fn fault(_: Order, _: u64) -> io::Result<()> {
    Ok(())
}

/// Runs the job. In a process that stays, also the jobs after it.
fn serve(run: OwnedFd, signals: &Signals, sets: &[DataSet], order: Order) -> io::Result<()> {
    let (run, stays) = (Arc::new(run), order.stays);
    if order.threads {
        sys::one_arena();
    }
    let size = sys::resident_peak();
    while let Some(frame) = frames::receive(&run)? {
        if frame.kind != Kind::Job {
            // The reply to a call of an earlier run.
            continue;
        }
        let replies = Mutex::new(Replies::new(frame.id == AWAKE));
        let (early, replay) = (Mutex::default(), OnceLock::new());
        let link = Arc::new(HostLink { socket: run.clone(), replies, early, replay });
        let (started, job) = split(&frame.bytes)?;
        let job: Job<'_> = frames::decode(job)?;
        let (is_session, time) = (job.is_session(), job.time());
        let mut guest = take_up(job, started, &link, signals, sets);
        if !order.threads {
            guest.without_helpers();
        }
        drop(frame);
        if is_session {
            return serve_turns(&mut guest, &link, signals, time);
        }
        let report = guest.run(started, None, &mut &*link);
        let growth = u32::try_from(sys::resident_peak().saturating_sub(size) >> 10).unwrap_or(u32::MAX);
        let sent = frames::send(&run, Kind::Report, if stays { growth } else { 0 }, &frames::encode(&report)?);
        if !stays {
            // The process is about to exit, so freeing this would be wasted time.
            std::mem::forget((guest, report));
            return sent;
        }
        sys::alarm_in(None);
        sent?;
    }
    Ok(())
}

/// Creates the machine of a job. Its time starts now.
fn take_up(job: Job<'_>, started: Instant, link: &Arc<HostLink>, signals: &Signals, sets: &[DataSet]) -> GuestHalf {
    // A cancellation of an earlier run does not apply to this one.
    signals.cancel.reset();
    // The time after a replay starts when the host says so.
    let time = job.time();
    alarm(signals, started, job.replay_time().or(time));
    let clock = link.clone();
    let guest =
        GuestHalf::new(job, sets, signals.alarm.clone(), signals.cancel.clone(), move |place| clock.time(place));
    if let Some(end) = guest.replay_end() {
        link.replay.get_or_init(|| (end, time));
    }
    guest
}

/// Runs the turns of a session.
fn serve_turns(guest: &mut GuestHalf, link: &HostLink, signals: &Signals, time: Option<Duration>) -> io::Result<()> {
    while let Some(frame) = frames::receive(&link.socket)? {
        if frame.kind != Kind::Turn {
            // The reply to a call of an earlier turn.
            continue;
        }
        let (started, source) = split(&frame.bytes)?;
        let source = std::str::from_utf8(source).map_err(io::Error::other)?;
        alarm(signals, started, time);
        link.early().clear();
        let report = match frame.id {
            MEMORY => guest.memory(started),
            SAVE => guest.save(started, &mut &*link),
            CHECK => guest.check(started),
            _ => guest.run(started, Some(source), &mut &*link),
        };
        sys::alarm_in(None);
        frames::send(&link.socket, Kind::Report, 0, &frames::encode(&report)?)?;
    }
    Ok(())
}

fn alarm(signals: &Signals, started: Instant, time: Option<Duration>) {
    signals.alarm.store(false, Ordering::Relaxed);
    sys::alarm_in(time.map(|time| time.saturating_sub(started.elapsed())));
}

/// Returns the moment at which a turn started, and the rest of the frame.
pub(crate) fn split(bytes: &[u8]) -> io::Result<(Instant, &[u8])> {
    let (start, rest) = bytes.split_first_chunk::<8>().ok_or(io::ErrorKind::InvalidData)?;
    Ok((frames::moment_of(u64::from_le_bytes(*start)), rest))
}

/// The channel to the host. If it breaks, the process exits.
struct HostLink {
    socket: Arc<OwnedFd>,
    replies: Mutex<Replies>,
    /// Replies received while waiting for the time.
    early: Mutex<VecDeque<Frame>>,
    /// Set for a run that resumes from a record: what to notify when the record has been replayed, and how long the run
    /// may take afterwards.
    replay: OnceLock<(Arc<ReplayEnd>, Option<Duration>)>,
}

impl HostLink {
    fn send(&self, kind: Kind, id: u32, value: &impl Serialize) {
        if frames::encode(value).and_then(|bytes| frames::send(&self.socket, kind, id, &bytes)).is_err() {
            sys::exit(1);
        }
    }

    fn receive(&self) -> Frame {
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        match replies.receive(&self.socket) {
            Ok(Some(frame)) => frame,
            _ => sys::exit(1),
        }
    }

    /// Waits until there is something to receive, or until `until`; then it returns false.
    fn has_more(&self, until: Option<Instant>) -> bool {
        let Some(until) = until else { return true };
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let left = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            };
            let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
            match rustix::event::poll(&mut fds, Some(&left)) {
                Ok(0) => return false,
                Err(Errno::INTR) => {}
                // Receiving reports what is wrong with the channel.
                _ => return true,
            }
        }
    }

    /// Called when the record has been replayed.
    fn end_replay(&self, bytes: &[u8]) {
        let Ok((at, _)) = split(bytes) else { sys::exit(1) };
        if let Some((end, time)) = self.replay.get() {
            end.reach(at);
            sys::alarm_in(time.map(|time| time.saturating_sub(at.elapsed())));
        }
    }

    fn early(&self) -> MutexGuard<'_, VecDeque<Frame>> {
        self.early.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the host for the time of its clock.
    fn time(&self, place: &Place) -> i64 {
        if frames::send(&self.socket, Kind::Clock, 0, place.to_string().as_bytes()).is_err() {
            sys::exit(1);
        }
        loop {
            let frame = self.receive();
            match frame.kind {
                // The host's clock has panicked; in-process that would have been a panic here.
                Kind::Time => match frames::time_of(&frame.bytes) {
                    Some(time) => return time,
                    None => std::panic::resume_unwind(Box::new("the host's clock panicked")),
                },
                Kind::Reply => self.early().push_back(frame),
                Kind::Turn if frame.id == LIVE => self.end_replay(&frame.bytes),
                _ => sys::exit(1),
            }
        }
    }
}

impl RunHost for &HostLink {
    fn printed(&mut self, lines: Vec<String>) {
        self.printed_by(PrintedBy::Program, lines);
    }

    fn printed_by(&mut self, by: PrintedBy, lines: Vec<String>) {
        self.send(Kind::Printed, by.number(), &lines);
    }

    fn figures(&mut self, figures: Figures) {
        self.send(Kind::Figures, 0, &figures);
    }

    fn call(&mut self, call: GuestCall<'_>) {
        self.send(Kind::Call, number(call.number), &call);
    }

    fn next_reply(&mut self, until: Option<Instant>) -> Option<(u64, CallReply)> {
        let early = self.early().pop_front();
        if early.is_none() && !self.has_more(until) {
            return None;
        }
        let frame = early.unwrap_or_else(|| self.receive());
        match frame.kind {
            Kind::Reply => Some((frame.id.into(), frames::decode(&frame.bytes).unwrap_or(CallReply::LATE))),
            Kind::Turn if frame.id == LIVE => {
                self.end_replay(&frame.bytes);
                None
            }
            _ => sys::exit(1),
        }
    }
}

/// Returns a call's number for a frame. A run with more calls ends because the last one gets no reply.
fn number(call: u64) -> u32 {
    u32::try_from(call).unwrap_or(0)
}
