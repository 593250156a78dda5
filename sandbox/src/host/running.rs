//! One run as the host sees it: its channels, its deadline, its end.

use super::calls::Calls;
use super::pool::{Channels, Pool, Template};
use super::verdict::{self, End, Facts, Kill};
use crate::wire::frames::{self, Assembler, Frame, Kind, MEMORY, PACKET, Taken};
use crate::wire::guest_message::{Most, Said};
use crate::wire::messages::{Notice, Order};
use crate::wire::violation::Violation;
use lisp_runtime::Outcome;
use lisp_runtime::remote::{CallReply, CallStarted, HostHalf, Report};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::Signal;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The most bytes of standard error that are kept, and the most that are taken.
const SAID_KEPT: usize = 4_000;
const SAID_TAKEN: usize = 1 << 20;
/// How often a handle for cancelling is looked at.
const CANCEL_STEP: Duration = Duration::from_millis(5);
/// How long a process may take to end once its report is there.
const LINGER: Duration = Duration::from_millis(100);
/// How long a template may take to say that a process which was killed is reaped.
const REAPING: Duration = Duration::from_secs(5);
/// How long it may take when this side knows that the process is dead: then only its figures are missing.
const REAPING_DEAD: Duration = Duration::from_secs(1);
/// How often it is looked whether a process that was killed is dead.
const DEAD_STEP: Duration = Duration::from_millis(20);
/// How long it may take to say anything of a process that is to be killed: on a busy machine it is still to be forked.
const FORKING: Duration = Duration::from_millis(250);
/// After so long a run is worth a descriptor of its process. Most are over by then.
const SHORT: Duration = Duration::from_millis(2);
/// So long before it is killed at the latest: a template that is woken beside a run which spins may wait for a turn.
const AHEAD: Duration = Duration::from_millis(20);

/// What a run is watched for.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    /// When it is killed; `None` is never.
    pub(crate) hard: Option<Instant>,
    pub(crate) grace: Duration,
    /// The address space it has, beyond the template's.
    pub(crate) memory: u64,
    /// What its frames may be.
    pub(crate) most: Most,
    /// Its process lives on after a report.
    pub(crate) session: bool,
    pub(crate) pool: Arc<Pool>,
}

/// A run under way.
#[derive(Debug)]
pub(crate) struct Running {
    template: Arc<Template>,
    channels: Channels,
    order: Order,
    process: Arc<OnceLock<OwnedFd>>,
    /// The template was asked for the process.
    asked_for: bool,
    /// The template has answered that. There may have been no room for the descriptor.
    shown: bool,
    /// The template knows that it has to kill the process.
    told: bool,
    /// When to ask for the process.
    ask_at: Option<Instant>,
    watch: Watch,
    assembler: Assembler,
    buffer: Vec<u8>,
    out: VecDeque<Outgoing>,
    /// Calls that the process has made and whose replies it has not taken.
    unanswered: usize,
    said: Vec<u8>,
    said_bytes: usize,
    setup: Option<String>,
    report: Option<Report>,
    reported_at: Option<Instant>,
    kill: Option<(Kill, Instant)>,
    /// When it was seen that the process is dead, though nobody has said so.
    dead_at: Option<Instant>,
    /// When the run was asked to end because somebody cancelled it.
    asked: Option<Instant>,
    end: Option<End>,
    /// Nothing more comes from the process.
    closed: bool,
    /// Calls on other threads.
    calls: Option<Calls>,
    /// The run's time was over, and calls that no thread had begun were taken back.
    withdrawn: bool,
    #[cfg_attr(not(feature = "testing"), allow(dead_code, reason = "tests ask for it"))]
    overshoot: Option<Duration>,
}

/// A packet to be sent.
#[derive(Debug)]
struct Outgoing {
    packet: Vec<u8>,
    /// It is the last one of the reply to a call.
    ends_reply: bool,
}

/// What a session's process is to do next.
pub(crate) enum Turn<'a> {
    /// Run a program.
    Program(&'a str),
    /// Bring the definitions out.
    Memory,
}

impl Running {
    pub(crate) fn new(template: Arc<Template>, channels: Channels, order: Order, watch: Watch) -> Running {
        Running {
            template,
            channels,
            order,
            process: Arc::default(),
            asked_for: false,
            shown: false,
            told: false,
            ask_at: Some(ask_at(watch.hard)),
            watch,
            assembler: Assembler::default(),
            buffer: Vec::with_capacity(PACKET),
            out: VecDeque::new(),
            unanswered: 0,
            said: Vec::new(),
            said_bytes: 0,
            setup: None,
            report: None,
            reported_at: None,
            kill: None,
            dead_at: None,
            asked: None,
            end: None,
            closed: false,
            calls: None,
            withdrawn: false,
            overshoot: None,
        }
    }

    /// Sends the job.
    pub(crate) fn give_job(&mut self, home: &HostHalf, job: &[u8]) {
        self.queue(Kind::Job, 0, &with_start(home, job));
    }

    /// Has the next child made, while this one works.
    pub(crate) fn restock(&mut self) {
        self.watch.pool.restock(&self.template, self.order, &mut self.channels);
    }

    /// Sends one more program of a session.
    pub(crate) fn give_turn(&mut self, home: &HostHalf, turn: Turn<'_>) {
        self.watch.hard = hard_deadline(home, self.watch.grace);
        (self.report, self.reported_at, self.asked, self.withdrawn) = (None, None, None, false);
        // Calls of the turn before that are still made are nobody's any more, and those that are not are not made.
        self.calls = None;
        self.unanswered = self.out.iter().filter(|out| out.ends_reply).count();
        match turn {
            Turn::Program(source) => self.queue(Kind::Turn, 0, &with_start(home, source.as_bytes())),
            Turn::Memory => self.queue(Kind::Turn, MEMORY, &with_start(home, &[])),
        }
    }

    /// Runs to the end and reaps.
    pub(crate) fn finish(&mut self, home: &mut HostHalf) -> Outcome {
        while self.end.is_none() {
            self.step(home);
        }
        self.drain(home);
        self.withdraw_calls(home, false);
        if matches!(self.end, Some(End::Reaped { .. })) && !self.closed {
            self.template.take_back(&self.channels.lane);
        }
        self.outcome(home)
    }

    /// Runs until the turn's report is there; `None` when the process is over before.
    pub(crate) fn next_report(&mut self, home: &mut HostHalf) -> Option<Report> {
        while self.end.is_none() && self.report.is_none() {
            self.step(home);
        }
        if self.kill.is_some() || self.end.is_some() {
            return None;
        }
        self.report.take()
    }

    /// The process, once it is there, for others to signal.
    pub(crate) fn process(&self) -> Arc<OnceLock<OwnedFd>> {
        self.process.clone()
    }

    /// Has the template show the process, before the run goes on: it may spend its time in calls on this thread. A busy
    /// template is not waited for for ever; it is asked again while the run goes on.
    pub(crate) fn identify(&mut self) {
        let until = Instant::now() + REAPING;
        while self.process.get().is_none() && !self.shown && self.end.is_none() && Instant::now() < until {
            if !self.asked_for {
                let _ = self.ask_for(false);
            }
            let step = Timespec { tv_sec: 0, tv_nsec: CANCEL_STEP.subsec_nanos().into() };
            let mut fds = [self.channels.lane.status()];
            if rustix::event::poll(&mut fds, Some(&step)).is_ok_and(|ready| ready > 0) {
                self.read_notices();
            }
        }
    }

    #[cfg(feature = "testing")]
    /// How long after the deadline the signal to kill was sent, if it was.
    pub(crate) fn overshoot(&self) -> Option<Duration> {
        self.overshoot
    }

    fn queue(&mut self, kind: Kind, id: u32, bytes: &[u8]) {
        self.out.extend(frames::packets(kind, id, bytes).map(|packet| Outgoing { packet, ends_reply: false }));
        if let Some(last) = self.out.back_mut() {
            last.ends_reply = kind == Kind::Reply;
        }
        self.write();
    }

    /// Sends what there is room for.
    fn write(&mut self) {
        while let Some(Outgoing { packet, ends_reply }) = self.out.front() {
            match rustix::net::send(&self.channels.lane.run, packet, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(_) => {
                    self.unanswered = self.unanswered.saturating_sub(usize::from(*ends_reply));
                    self.out.pop_front();
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // Nobody reads any more: the end of the process says why.
                Err(_) => return self.out.clear(),
            }
        }
    }

    /// Waits for what comes next and sees to it.
    fn step(&mut self, home: &mut HostHalf) {
        let wanted = PollFlags::IN | if self.out.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        let wake = self.next_look(home).map(|at| at.saturating_duration_since(Instant::now()));
        let wake = wake.map(|left| Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() });
        let mut fds = vec![self.channels.lane.status()];
        // After its report a process has nothing to say but that it ends, which the template says better.
        let listens = !self.closed && self.reported_at.is_none();
        let run = listens.then(|| fds.push(PollFd::new(&self.channels.lane.run, wanted)));
        let calls = self.calls.as_ref().map(Calls::woken);
        if let Some(woken) = &calls {
            fds.push(PollFd::new(woken, PollFlags::IN));
        }
        let polled = rustix::event::poll(&mut fds, wake.as_ref());
        let events: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
        drop(fds);
        if polled.is_ok_and(|ready| ready > 0) {
            if run.is_some() && !events[1].is_empty() {
                self.write();
                self.read(home);
            }
            if !events[0].is_empty() {
                self.read_notices();
            }
            if calls.is_some() && events.last().is_some_and(|events| !events.is_empty()) {
                self.take_ended(home);
            }
        }
        self.look(home);
    }

    /// When to look at the clock or at the handle for cancelling again.
    fn next_look(&self, home: &HostHalf) -> Option<Instant> {
        if let Some(end) = self.kill_limit() {
            let step = match self.is_to_be_told() {
                true => Some(CANCEL_STEP),
                false => self.process.get().filter(|_| self.dead_at.is_none()).map(|_| DEAD_STEP),
            };
            return Some(step.map_or(end, |step| end.min(Instant::now() + step)));
        }
        let cancel = home.is_cancellable().then(|| Instant::now() + CANCEL_STEP);
        let linger = self.reported_at.map(|at| at + LINGER);
        let asked = self.asked.map(|at| at + self.watch.grace);
        // Calls that wait for a thread are told at the deadline that they are not made.
        let calls = home.deadline().filter(|_| self.calls.as_ref().is_some_and(|calls| !calls.is_empty()));
        let calls = calls.filter(|_| !self.withdrawn);
        [self.watch.hard, cancel, linger, asked, calls, self.next_ask()].into_iter().flatten().min()
    }

    /// When to ask for a descriptor of the process.
    fn next_ask(&self) -> Option<Instant> {
        self.ask_at.filter(|_| !self.asked_for && self.reported_at.is_none())
    }

    /// Looks whether it is time to kill.
    fn look(&mut self, home: &mut HostHalf) {
        let now = Instant::now();
        if !self.withdrawn && (home.deadline().is_some_and(|at| now >= at) || home.cancel().is_cancelled()) {
            self.withdrawn = true;
            self.withdraw_calls(home, true);
        }
        if self.kill.is_some() {
            if self.is_to_be_told() {
                self.told = self.ask_for(true);
            }
            if self.dead_at.is_none() && self.process.get().is_some_and(is_dead) {
                self.dead_at = Some(now);
            }
            // A template that does not reap is stopped or broken: it goes, and its children with it.
            if self.kill_limit().is_some_and(|limit| now >= limit) && self.end.is_none() {
                if self.shown || self.is_to_be_told() || self.template.is_silent() {
                    self.give_up();
                } else {
                    // With a template that is only busy are other runs. What it forks for this one finds its channel closed.
                    self.end = Some(End::NotStarted(0));
                }
            }
            return;
        }
        if self.next_ask().is_some_and(|at| now >= at) {
            if self.template.is_busy() {
                self.ask_at = Some(now + AHEAD);
            } else {
                let _ = self.ask_for(false);
            }
        }
        if let Some(hard) = self.watch.hard
            && now >= hard
        {
            self.kill(Kill::Deadline);
        } else if self.reported_at.is_some_and(|at| now >= at + LINGER) {
            self.kill(Kill::Lingering);
        } else if home.cancel().is_cancelled() {
            match self.asked {
                None => {
                    // The run ends by itself if it can.
                    self.asked = Some(now);
                    if !self.signal(Signal::USR1) && !self.asked_for {
                        let _ = self.ask_for(false);
                    }
                }
                Some(asked) if now >= asked + self.watch.grace => self.kill(Kill::Cancelled),
                Some(_) => {}
            }
        }
    }

    fn signal(&self, signal: Signal) -> bool {
        self.process.get().is_some_and(|process| rustix::process::pidfd_send_signal(process, signal).is_ok())
    }

    /// Asks the template for the process, and to kill it when that is to be. Says whether there was room for the question.
    fn ask_for(&mut self, kill: bool) -> bool {
        let asked = self.template.ask_for(&self.channels.lane, kill);
        self.asked_for |= asked;
        asked
    }

    /// Is there a process to kill that this side cannot, and the other does not know of it?
    fn is_to_be_told(&self) -> bool {
        self.kill.is_some() && self.process.get().is_none() && !self.told
    }

    fn kill(&mut self, why: Kill) {
        if self.kill.is_none() && self.end.is_none() {
            self.kill = Some((why, Instant::now()));
            self.out.clear();
            if !self.send_kill() {
                // The template does it, when the process is there.
                self.told = self.ask_for(true);
            }
        }
    }

    fn send_kill(&mut self) -> bool {
        let sent = self.signal(Signal::KILL);
        if sent {
            self.overshoot = self.late_by();
        }
        sent
    }

    /// For how long a run has been past its deadline that is killed for that.
    fn late_by(&self) -> Option<Duration> {
        let hard = self.watch.hard.filter(|_| matches!(self.kill, Some((Kill::Deadline, _))))?;
        Some(Instant::now().saturating_duration_since(hard))
    }

    /// Until when a template is waited for once its child is to be killed.
    fn kill_limit(&self) -> Option<Instant> {
        let (_, at) = self.kill?;
        let limit = at + if self.shown { REAPING } else { FORKING };
        Some(self.dead_at.map_or(limit, |dead| limit.min(dead + REAPING_DEAD)))
    }

    /// Gives the template up, and with it all its children.
    fn give_up(&mut self) {
        self.watch.pool.discard(&self.template);
        self.end = Some(End::TemplateGone);
    }

    /// Takes one notice of the template's.
    fn read_notices(&mut self) {
        let Some(heard) = self.channels.lane.hear() else { return };
        if let Some(process) = heard.process {
            let _ = self.process.set(process);
        }
        if heard.notice.is_some() {
            self.template.was_heard();
        }
        match heard.notice {
            Some(Notice::Shown) => {
                self.shown = true;
                if self.kill.is_some() {
                    self.send_kill();
                } else if self.asked.is_some() {
                    self.signal(Signal::USR1);
                }
            }
            Some(Notice::Refused(errno)) => self.end = Some(End::NotStarted(errno)),
            Some(Notice::Ended { death, late }) => {
                self.end = Some(End::Reaped { death, late });
                if self.overshoot.is_none() {
                    // The template killed it. That was before this.
                    self.overshoot = self.late_by();
                }
            }
            None if self.end.is_none() => self.give_up(),
            None => {}
        }
    }

    /// Takes what the process says, up to its report. Of one that lives only so much at once, and nothing once it is time to
    /// kill it: it may talk faster than this side listens, each packet may be a call that takes its time, and there are others
    /// to hear.
    fn read(&mut self, home: &mut HostHalf) {
        const AT_ONCE: usize = 64;
        let most = if self.end.is_some() { usize::MAX } else { AT_ONCE };
        for _ in 0..most {
            if self.closed || (self.reported_at.is_some() && self.end.is_none()) || self.is_due() {
                return;
            }
            self.buffer.clear();
            let into = rustix::buffer::spare_capacity(&mut self.buffer);
            let read = match rustix::net::recv(&self.channels.lane.run, into, RecvFlags::DONTWAIT) {
                Ok((read, _)) => read,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return,
                Err(_) => 0,
            };
            if read == 0 {
                self.closed = true;
                return;
            }
            if let Err(violation) = self.take(home, read) {
                self.kill(Kill::Violation(violation));
                // It may have ended by itself meanwhile, or have been found to linger: that does not mend it.
                if self.end.is_some() && !matches!(self.kill, Some((Kill::Deadline | Kill::Cancelled, _))) {
                    self.kill = Some((Kill::Violation(violation), Instant::now()));
                }
                // What it says from here on is nobody's concern.
                self.closed = true;
            }
        }
    }

    /// Is it time to kill a process that lives?
    fn is_due(&self) -> bool {
        self.end.is_none() && self.kill.is_none() && self.watch.hard.is_some_and(|hard| Instant::now() >= hard)
    }

    /// What is left in the channel of a process that has ended.
    fn drain(&mut self, home: &mut HostHalf) {
        self.read(home);
    }

    fn take(&mut self, home: &mut HostHalf, read: usize) -> Result<(), Violation> {
        let packet = &self.buffer[..read];
        match self.assembler.take(packet, |kind| self.watch.most.frame(kind))? {
            Taken::Part => Ok(()),
            Taken::Text => {
                let room = SAID_KEPT - self.said.len();
                self.said.extend_from_slice(&packet[..packet.len().min(room)]);
                self.said_bytes += read;
                if self.said_bytes > SAID_TAKEN { Err(Violation::Flood) } else { Ok(()) }
            }
            Taken::Frame(_) if self.reported_at.is_some() => Err(Violation::Unexpected),
            Taken::Frame(frame) => self.take_frame(home, frame),
        }
    }

    fn take_frame(&mut self, home: &mut HostHalf, frame: Frame) -> Result<(), Violation> {
        match Said::of(&frame, &self.watch.most)? {
            Said::Printed(lines) => {
                home.printed(lines);
                Ok(())
            }
            Said::Call(call) => {
                // A run that is over calls nothing any more.
                if self.kill.is_none() && self.end.is_none() {
                    if self.unanswered >= home.most_calls() {
                        return Err(Violation::Calls);
                    }
                    self.unanswered += 1;
                    // While a worker waits others go on, and may call more.
                    let along = !call.worker.is_empty();
                    let begun = home.begin(call);
                    self.go_on(home, frame.id.into(), begun, along);
                }
                Ok(())
            }
            Said::Report(report) => {
                self.report = Some(*report);
                if !self.watch.session {
                    self.reported_at = Some(Instant::now());
                }
                Ok(())
            }
            Said::Setup(text) => {
                self.setup = Some(text);
                Ok(())
            }
            Said::Clock => self.tell_time(home),
            Said::Figures(figures) => {
                home.figures(figures);
                Ok(())
            }
        }
    }

    /// A process that has asked for the time waits for it. One that goes on asking has the host hold answers for it that it
    /// does not take.
    fn tell_time(&mut self, home: &HostHalf) -> Result<(), Violation> {
        if self.out.iter().any(|out| out.packet.first() == Some(&(Kind::Time as u8))) {
            return Err(Violation::Unexpected);
        }
        if self.kill.is_none() && self.end.is_none() {
            self.queue(Kind::Time, 0, &frames::time_bytes(home.time()));
        }
        Ok(())
    }

    /// Goes on with a call that has begun, and with those that waited for it. `along` makes it on another thread.
    fn go_on(&mut self, home: &mut HostHalf, number: u64, begun: CallStarted, along: bool) {
        let mut todo = VecDeque::from([(number, begun)]);
        while let Some((number, begun)) = todo.pop_front() {
            let pending = match begun {
                CallStarted::Ready(reply) => {
                    self.reply(number, &reply);
                    continue;
                }
                CallStarted::Later => continue,
                CallStarted::Call(pending) => pending,
            };
            let pending = match self.calls().filter(|_| along) {
                Some(calls) => match calls.start(number, pending) {
                    Ok(()) => continue,
                    // Better on this thread than not at all.
                    Err(pending) => *pending,
                },
                None => pending,
            };
            todo.extend(home.end(pending.make()));
        }
    }

    /// The calls on other threads; `None` when there is no descriptor for them.
    fn calls(&mut self) -> Option<&mut Calls> {
        if self.calls.is_none() {
            self.calls = Calls::new().ok();
        }
        self.calls.as_mut()
    }

    fn take_ended(&mut self, home: &mut HostHalf) {
        let Some(ended) = self.calls.as_mut().map(Calls::ended) else { return };
        for (number, begun) in ended.into_iter().flat_map(|ended| home.end(ended)).collect::<Vec<_>>() {
            self.go_on(home, number, begun, true);
        }
    }

    /// Takes back the calls that no thread has begun. With `reply` the process is told, and ends with an error that says so.
    fn withdraw_calls(&mut self, home: &mut HostHalf, reply: bool) {
        let Some(ended) = self.calls.as_mut().map(Calls::withdraw) else { return };
        for (number, begun) in ended.into_iter().flat_map(|ended| home.end(ended)).collect::<Vec<_>>() {
            if reply {
                self.go_on(home, number, begun, true);
            }
        }
    }

    fn reply(&mut self, number: u64, reply: &CallReply) {
        let bytes = frames::encode(reply).unwrap_or_default();
        self.queue(Kind::Reply, u32::try_from(number).unwrap_or(0), &bytes);
    }

    /// The ceiling of the memory cgroup, when the process was killed for it. Only a kill by nobody else can be that.
    fn out_of_group(&self, end: End) -> Option<u64> {
        let killed = match end {
            End::Reaped { death, late } => {
                !late && libc::WIFSIGNALED(death.status) && libc::WTERMSIG(death.status) == libc::SIGKILL
            }
            End::TemplateGone => true,
            End::NotStarted(_) => false,
        };
        let group = self.template.group.as_ref().filter(|_| killed && self.kill.is_none())?;
        group.take_kill().then(|| group.limit())
    }

    /// What the run came to. For one that has ended.
    fn outcome(&mut self, home: &mut HostHalf) -> Outcome {
        let end = self.end.unwrap_or(End::TemplateGone);
        let said = String::from_utf8_lossy(&self.said);
        let setup = self.setup.as_deref().map(|text| verdict::clean(text, 300));
        let error = verdict::error(&Facts {
            kill: self.kill.map(|(kill, _)| kill),
            end,
            reported: self.report.is_some(),
            setup: setup.as_deref(),
            said: &said,
            limit_ms: home.limits().timeout_ms,
            limit_bytes: self.watch.memory,
            out_of_group: self.out_of_group(end),
        });
        let mut outcome = match (error, self.report.take()) {
            (None, Some(report)) => home.finish(report),
            (Some(error), _) => home.fail(error, None),
            (None, None) => home.fail(verdict::timeout(home.limits().timeout_ms, "killed"), None),
        };
        if let End::Reaped { death, .. } = end {
            outcome.usage.cpu_us = Some(death.cpu_us);
            outcome.usage.rss_peak_bytes = Some(death.rss_peak_bytes);
        }
        outcome
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A run that nobody waits for ends here; the template reaps it.
        if self.end.is_none() && !self.signal(Signal::KILL) {
            let _ = self.ask_for(true);
        }
        self.watch.pool.end();
    }
}

/// Has a process ended, be it reaped or not?
fn is_dead(process: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(process, PollFlags::IN)];
    matches!(rustix::event::poll(&mut fds, Some(&Timespec::default())), Ok(1))
}

/// When a run is killed; `None` is never.
pub(crate) fn hard_deadline(home: &HostHalf, grace: Duration) -> Option<Instant> {
    home.deadline()?.checked_add(grace)
}

/// When a run that begins now is worth a descriptor of its process.
fn ask_at(hard: Option<Instant>) -> Instant {
    let late = Instant::now() + SHORT;
    hard.and_then(|hard| hard.checked_sub(AHEAD)).map_or(late, |last| last.min(late))
}

/// A frame's bytes with the moment the turn began in front.
fn with_start(home: &HostHalf, bytes: &[u8]) -> Vec<u8> {
    let ago = u64::try_from(home.started().elapsed().as_nanos()).unwrap_or(u64::MAX);
    let start = crate::kernel::sys::monotonic_ns().saturating_sub(ago);
    let mut all = Vec::with_capacity(8 + bytes.len());
    all.extend_from_slice(&start.to_le_bytes());
    all.extend_from_slice(bytes);
    all
}
