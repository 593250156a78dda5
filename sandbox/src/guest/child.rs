//! The child of a template: it locks itself in, takes one job, and reports the outcome.

use super::layers::{Layer, LayerSet, limit, limit_cpu};
use super::lockdown;
use crate::kernel::sys::{self, Key, Processors};
use crate::kernel::unix::SETUP_FAILED;
use crate::wire::frames::{self, Frame, Kind, MEMORY, SAVE};
use crate::wire::messages::Order;
use lisp_runtime::remote::{CallReply, Figures, GuestCall, GuestHalf, Job, RunHost};
use lisp_runtime::{Cancel, DataSet, Engine, Input, Place};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, Resource};
use serde::Serialize;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The flags that signals set: SIGALRM the first, SIGUSR1 both.
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

/// What the children get from the template.
pub(crate) struct Inherited {
    pub(crate) wanted: LayerSet,
    pub(crate) pid: Pid,
    /// Address space of the template, known when that has settled.
    pub(crate) bytes: u64,
    pub(crate) signals: Signals,
    /// What runs have in common.
    pub(crate) sets: Vec<DataSet>,
    /// Can be read when a child has ended.
    pub(super) ends: OwnedFd,
    /// Where it might run, when it stays on one processor.
    pub(super) anywhere: Option<Processors>,
    pub(super) key: Key,
}

/// A program that uses a little of everything.
pub(crate) const BROAD: &str = r#"(defn f [x & more] {:a (map inc x) :b more})
    (println (str (f [1 2] 3) 1.5 "é" 100000000000000000000))
    [(reduce + (filter even? (range 20))) (re-find #"a+" "baa") (get-in data/a [:b 0]) (frequencies "abca")]"#;

/// A program that does what every program does.
pub(crate) const PLAIN: &str = "(let [x {:a [1 2]}] [nil true (inc (count (:a x)))])";

/// A job on its way, for the template itself: what is made once is then made before the first fork, and what is touched by
/// every run is touched.
pub(crate) struct WarmUp {
    guest: OwnedFd,
    host: OwnedFd,
}

impl WarmUp {
    /// Sends a job off that compiles and runs a program.
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

    /// Does the job as a child does it.
    pub(crate) fn run(self, signals: &Signals) -> io::Result<()> {
        serve(self.guest, signals, &[])?;
        drop(self.host);
        sys::alarm_in(None);
        signals.alarm.store(false, Ordering::Relaxed);
        Ok(())
    }
}

/// Takes what the template has left free between pieces that are in use, for good: a child's memory then lies together, on
/// few pages that have to be copied or made for it.
pub(crate) fn fill_gaps() {
    const MOST: usize = 1 << 18;
    /// From here on a piece that is given back joins what has never been used; smaller ones are kept for the next of their size.
    const LARGE: usize = 2 << 10;
    /// More than a child takes. The allocator asks the system for a little more than this, and keeps it.
    const ROOM: usize = 100 << 10;
    /// There are not as many gaps of that size.
    const TRIES: usize = 16;
    let place = || std::hint::black_box(Vec::<u8>::with_capacity(ROOM));
    sys::drop_free_memory();
    let mut last = place();
    for _ in 0..TRIES {
        let heap = sys::end_of_heap();
        // It may have been a gap: one that the heap has grown for is none.
        std::mem::forget(std::mem::replace(&mut last, place()));
        if sys::end_of_heap() != heap {
            break;
        }
    }
    let end = last.as_ptr().addr();
    drop(last);
    let sizes = (11..16).rev().map(|bits| 1 << bits).chain((1..69).rev().map(|count| 16 * count));
    let mut taken = 0;
    for size in sizes {
        while taken < MOST {
            let piece = std::hint::black_box(Vec::<u8>::with_capacity(size - 8));
            let is_gap = piece.as_ptr().addr() < end;
            if is_gap || size < LARGE {
                taken += size;
                std::mem::forget(piece);
            }
            if !is_gap {
                break;
            }
        }
    }
    drop(place());
}

/// For tests: runs the payload of a number in the place of a job.
#[cfg(feature = "testing")]
pub(crate) static PAYLOAD: std::sync::OnceLock<fn(u64, OwnedFd) -> i32> = std::sync::OnceLock::new();

/// Runs the child and never comes back.
pub(crate) fn main(order: Order, run: OwnedFd, inherited: &Inherited) -> ! {
    let mut step = 0;
    let run = match lock_in(order, run, inherited, &mut step) {
        Ok(run) => run,
        // The host sees the end of the channel and the code; what failed is in it.
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
    let code = i32::from(serve(run, &inherited.signals, &inherited.sets).is_err());
    sys::exit(code)
}

/// Addresses on the pages of the code with which a child locks itself in and ends, which the template never runs.
pub(crate) fn code_of_lock() -> impl Iterator<Item = usize> {
    /// None of it is longer.
    const LENGTH: usize = 4 << 10;
    let code = [
        main as *const (),
        lock_in as *const (),
        sys::keep_only as *const (),
        sys::exit as *const (),
        limit as *const (),
        limit_cpu as *const (),
        lockdown::die_with_parent as *const (),
        libc::getrlimit as *const (),
        libc::sigprocmask as *const (),
        libc::pthread_sigmask as *const (),
        libc::_exit as *const (),
    ];
    code.into_iter().flat_map(|code| [code.addr(), code.addr() + LENGTH])
}

const STEPS: [&str; 4] = ["descriptors", "parent_death", "rlimit_as", "rlimit_cpu"];

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
        sys::hold_signals(false);
        fault(order, 4)
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

/// The job, and in a session the turns after it.
fn serve(run: OwnedFd, signals: &Signals, sets: &[DataSet]) -> io::Result<()> {
    let link = Arc::new(HostLink { socket: run, early: Mutex::default() });
    let Some(frame) = frames::receive(&link.socket)? else { return Ok(()) };
    let (started, job) = split(&frame.bytes)?;
    let job: Job<'_> = frames::decode(job)?;
    let session = job.is_session();
    let time = job.time();
    alarm(signals, started, time);
    let clock = link.clone();
    let mut guest =
        GuestHalf::new(job, sets, signals.alarm.clone(), signals.cancel.clone(), move |place| clock.time(place));
    if !session {
        let report = guest.run(started, None, &mut &*link);
        let sent = frames::send(&link.socket, Kind::Report, 0, &frames::encode(&report)?);
        // The process ends: there is no need to take apart what it has.
        std::mem::forget((guest, report));
        return sent;
    }
    drop(frame);
    while let Some(frame) = frames::receive(&link.socket)? {
        if frame.kind != Kind::Turn {
            // The reply to a call of a turn that is over.
            continue;
        }
        let (started, source) = split(&frame.bytes)?;
        let source = std::str::from_utf8(source).map_err(io::Error::other)?;
        alarm(signals, started, time);
        link.early().clear();
        let report = match frame.id {
            MEMORY => guest.memory(started),
            SAVE => guest.save(started, &mut &*link),
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

/// The moment a turn began, and the rest of the frame.
pub(crate) fn split(bytes: &[u8]) -> io::Result<(Instant, &[u8])> {
    let (start, rest) = bytes.split_first_chunk::<8>().ok_or(io::ErrorKind::InvalidData)?;
    let ago = sys::monotonic_ns().saturating_sub(u64::from_le_bytes(*start));
    let now = Instant::now();
    Ok((now.checked_sub(Duration::from_nanos(ago)).unwrap_or(now), rest))
}

/// The channel to the host. When it breaks the process ends.
struct HostLink {
    socket: OwnedFd,
    /// Replies that came while the time was waited for.
    early: Mutex<VecDeque<Frame>>,
}

impl HostLink {
    fn send(&self, kind: Kind, id: u32, value: &impl Serialize) {
        if frames::encode(value).and_then(|bytes| frames::send(&self.socket, kind, id, &bytes)).is_err() {
            sys::exit(1);
        }
    }

    fn receive(&self) -> Frame {
        match frames::receive(&self.socket) {
            Ok(Some(frame)) => frame,
            _ => sys::exit(1),
        }
    }

    /// Waits until there is something to receive, or for the moment `until`: then it is false.
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
                // What is wrong with the channel, receiving says.
                _ => return true,
            }
        }
    }

    fn early(&self) -> MutexGuard<'_, VecDeque<Frame>> {
        self.early.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the host what its clock says.
    fn time(&self, place: &Place) -> i64 {
        if frames::send(&self.socket, Kind::Clock, 0, place.to_string().as_bytes()).is_err() {
            sys::exit(1);
        }
        loop {
            let frame = self.receive();
            match frame.kind {
                // The host's closure has panicked; in-process it would have done so here.
                Kind::Time => match frames::time_of(&frame.bytes) {
                    Some(time) => return time,
                    None => std::panic::resume_unwind(Box::new("the host's clock panicked")),
                },
                Kind::Reply => self.early().push_back(frame),
                _ => sys::exit(1),
            }
        }
    }
}

impl RunHost for &HostLink {
    fn printed(&mut self, lines: Vec<String>) {
        self.send(Kind::Printed, 0, &lines);
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
            Kind::Reply => Some((frame.id.into(), frames::decode(&frame.bytes).unwrap_or(CallReply::Late))),
            _ => sys::exit(1),
        }
    }
}

/// A call's number as it stands in a frame. A run that makes more calls than that ends for want of an answer.
fn number(call: u64) -> u32 {
    u32::try_from(call).unwrap_or(0)
}
