//! One run as the host sees it: its channels, its deadline, its end.

use super::calls::Calls;
use super::conversation::Conversation;
use super::pool::{Channels, Pool, Question, Template};
use super::scheduling::AtWork;
#[cfg(feature = "async")]
use super::socket_pair::SocketPair;
use super::spans::ChildSpan;
use super::verdict::{self, CANCEL_STEP, End, Facts, Kill};
use crate::wire::frames::{self, AWAKE, Kind, MEMORY, PACKET, SAVE};
use crate::wire::guest_message::FrameLimits;
use crate::wire::messages::{Notice, Order};
use crate::wire::spin::{self, Spin};
use lisp_runtime::Outcome;
#[cfg(feature = "async")]
use lisp_runtime::remote::RunWaker;
use lisp_runtime::remote::{HostHalf, Report};
#[cfg(feature = "async")]
use rustix::event::epoll::EventFlags;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::Signal;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

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
/// The time after which a run is worth a descriptor of its process. Most are over by then.
const SHORT: Duration = Duration::from_millis(2);
/// The time before the kill at which it is requested at the latest: a template that is woken beside a run which spins may wait for a turn.
const AHEAD: Duration = Duration::from_millis(20);

/// The deadline of a process that is to be dead now, by the monotonic clock.
const AT_ONCE: u64 = 1;

/// The limits under which a run is watched.
#[derive(Clone, Debug)]
pub(crate) struct Supervision {
    /// When it is killed; `None` is never.
    pub(crate) hard: Option<Instant>,
    pub(crate) grace: Duration,
    /// For tests: how much later than that.
    pub(crate) late: Duration,
    /// The run goes on from a record: when it is killed is known when that is done again.
    pub(crate) replays: bool,
    /// The address space it has, beyond the template's.
    pub(crate) memory: u64,
    /// What its frames may be.
    pub(crate) most: FrameLimits,
    /// Its process stays after a report: for the next turn of a session, or the next run of a domain.
    pub(crate) stays: bool,
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
    pidfd_requested: bool,
    /// What was asked first, and is not answered.
    question: Option<Question>,
    /// The template has answered that. There may have been no room for the descriptor.
    pidfd_received: bool,
    /// The template knows that it has to kill the process.
    kill_delegated: bool,
    /// When to ask for the process, and to tell the template the deadline of a run whose process stays.
    request_at: Option<Instant>,
    /// The template knows a deadline that is this run's and not the next one's.
    told_deadline: bool,
    supervision: Supervision,
    span: ChildSpan,
    talk: Conversation,
    /// While the program is.
    at_work: Option<AtWork>,
    /// The waits for what the process says once it has a reply.
    spin: Spin,
    buffer: Vec<u8>,
    kill: Option<(Kill, Instant)>,
    /// When it was seen that the process is dead, though no notice has said so.
    dead_at: Option<Instant>,
    /// When the run was asked to end because somebody cancelled it.
    asked: Option<Instant>,
    end: Option<End>,
    /// Nothing more comes from the process.
    closed: bool,
    /// The run's time was over, and calls that no thread had begun were taken back.
    withdrawn: bool,
    #[cfg_attr(not(feature = "testing"), allow(dead_code, reason = "tests ask for it"))]
    overshoot: Option<Duration>,
}

/// What a session's process is to do next.
pub(crate) enum Turn<'a> {
    /// Run a program.
    Program(&'a str),
    /// Bring the definitions out.
    Memory,
    /// Bring out all that the session is saved as.
    Save,
}

impl Running {
    pub(crate) fn new(
        template: Arc<Template>,
        channels: Channels,
        order: Order,
        supervision: Supervision,
        span: ChildSpan,
    ) -> Running {
        let talk = Conversation::new(channels.pair.clone(), supervision.most, supervision.stays);
        Running {
            template,
            channels,
            order,
            process: Arc::default(),
            pidfd_requested: false,
            question: None,
            pidfd_received: false,
            kill_delegated: false,
            request_at: Some(request_at(supervision.hard)),
            told_deadline: false,
            supervision,
            span,
            talk,
            at_work: None,
            spin: Spin::default(),
            buffer: Vec::with_capacity(PACKET),
            kill: None,
            dead_at: None,
            asked: None,
            end: None,
            closed: false,
            withdrawn: false,
            overshoot: None,
        }
    }

    /// The sockets of the run.
    #[cfg(feature = "async")]
    pub(crate) fn pair(&self) -> Arc<SocketPair> {
        self.channels.pair.clone()
    }

    /// Has calls of async tools made as futures within the run that this wakes, and others on tool threads.
    #[cfg(feature = "async")]
    pub(crate) fn call_as_futures(&mut self, waker: Arc<RunWaker>) {
        self.talk.call_as_futures(waker);
    }

    /// Handles what there is to handle, without waiting. Returns whether there was something.
    #[cfg(feature = "async")]
    pub(crate) fn step_now(&mut self, host: &mut HostHalf) -> bool {
        let some_over = self.talk.poll_futures(host);
        self.step_within(host, Some(Duration::ZERO)) || some_over
    }

    /// Is the process over?
    #[cfg(feature = "async")]
    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// Was the run asked to end, or killed?
    #[cfg(feature = "async")]
    pub(crate) fn has_seen_cancel(&self) -> bool {
        self.asked.is_some() || self.kill.is_some()
    }

    /// What the process is waited for; `None` when it has nothing more to say.
    #[cfg(feature = "async")]
    pub(crate) fn wanted(&self) -> Option<EventFlags> {
        let output = if self.talk.has_output() { EventFlags::OUT } else { EventFlags::empty() };
        self.listens().then_some(EventFlags::IN | output)
    }

    /// Sends the job.
    pub(crate) fn give_job(&mut self, host: &mut HostHalf, job: &[u8]) {
        host.note_sent();
        self.at_work = Some(AtWork::begin());
        self.spin = Spin::default();
        let awake = self.talk.calls_here() && AtWork::leaves_room();
        self.talk.queue(Kind::Job, if awake { AWAKE } else { 0 }, &with_start(host, job));
    }

    /// Has the next child made, while this one works.
    pub(crate) fn restock(&mut self) {
        self.supervision.pool.restock(&self.template, self.order, &mut self.channels);
    }

    /// Sends one more program of a session.
    pub(crate) fn give_turn(&mut self, host: &mut HostHalf, turn: Turn<'_>) {
        host.note_sent();
        self.supervision.hard = hard_deadline(host, self.supervision.grace);
        self.request_at = Some(request_at(self.supervision.hard));
        (self.asked, self.withdrawn) = (None, false);
        self.talk.begin_turn();
        self.at_work = Some(AtWork::begin());
        match turn {
            Turn::Program(source) => self.talk.queue(Kind::Turn, 0, &with_start(host, source.as_bytes())),
            Turn::Memory => self.talk.queue(Kind::Turn, MEMORY, &with_start(host, &[])),
            Turn::Save => self.talk.queue(Kind::Turn, SAVE, &with_start(host, &[])),
        }
    }

    /// Begins the next run of a domain's process.
    pub(crate) fn begin_run(&mut self, supervision: Supervision, span: ChildSpan) {
        self.talk.begin_run(supervision.most);
        self.request_at = Some(request_at(supervision.hard));
        (self.supervision, self.span) = (supervision, span);
        (self.asked, self.withdrawn) = (None, false);
    }

    /// The run of a domain's process is over, and its report taken. Calls that no thread has begun are not made.
    pub(crate) fn end_run(&mut self, host: &mut HostHalf) {
        self.talk.withdraw_calls(host, false);
        #[cfg(feature = "async")]
        self.talk.drop_futures();
        self.span.end(false, None);
    }

    /// The run is over, and its process stays.
    fn forget_deadline(&mut self) {
        if self.told_deadline {
            self.told_deadline = false;
            self.template.set_deadline(&self.channels.pair, 0);
        }
    }

    /// Has the process ended before it had the whole job, and without a word? Then another can have it.
    pub(crate) fn missed_job(&self) -> bool {
        let ended = matches!(self.end, Some(End::Reaped { .. })) && self.kill.is_none();
        let unread = || crate::kernel::sys::unread(&self.channels.pair.run).is_ok_and(|bytes| bytes > 0);
        ended && !self.talk.has_said && (self.talk.has_output() || unread())
    }

    /// Is the process there, with nothing said since its last report, and nothing left for it to read?
    pub(crate) fn is_at_rest(&mut self) -> bool {
        let is_gone = self.process.get().is_some_and(is_dead);
        while self.end.is_none() && self.kill.is_none() && !self.closed && !is_gone && !self.talk.has_output() {
            let mut fds = [self.channels.pair.status(), PollFd::new(&self.channels.pair.run, PollFlags::IN)];
            match rustix::event::poll(&mut fds, Some(&Timespec::default())) {
                Ok(0) => return true,
                Ok(_) if fds[1].revents().is_empty() => {}
                _ => return false,
            }
            // The template may have shown the process after the report, or reaped it.
            self.read_notices();
        }
        false
    }

    /// What the process was ordered as.
    pub(crate) fn ordered(&self) -> Order {
        self.order
    }

    /// How much the process has grown since it was made, by what it says.
    pub(crate) fn growth_bytes(&self) -> u64 {
        self.talk.growth_bytes
    }

    /// Runs to the end and reaps.
    pub(crate) fn finish(&mut self, host: &mut HostHalf) -> Outcome {
        while self.end.is_none() {
            self.step(host);
        }
        self.drain(host);
        self.talk.withdraw_calls(host, false);
        #[cfg(feature = "async")]
        self.talk.drop_futures();
        if matches!(self.end, Some(End::Reaped { .. })) && !self.closed {
            self.template.take_back(&self.channels.pair);
        }
        self.outcome(host)
    }

    /// Runs until the turn's report is there; `None` when the process is over before.
    pub(crate) fn next_report(&mut self, host: &mut HostHalf) -> Option<Report> {
        while self.end.is_none() && self.talk.report.is_none() {
            self.step(host);
        }
        self.take_report()
    }

    /// The turn's report, if it is there and the process has not been killed for anything.
    pub(crate) fn take_report(&mut self) -> Option<Report> {
        if self.kill.is_some() || self.end.is_some() {
            return None;
        }
        let report = self.talk.report.take();
        if report.is_some() {
            self.forget_deadline();
            self.take_back_question();
        }
        report
    }

    /// The process, once it is there, for others to signal.
    pub(crate) fn process(&self) -> Arc<OnceLock<OwnedFd>> {
        self.process.clone()
    }

    /// Has the template show the process, before the run goes on: it may spend its time in calls on this thread. A busy
    /// template is not waited for for ever; it is asked again while the run goes on.
    pub(crate) fn identify(&mut self) {
        let until = Instant::now() + REAPING;
        while self.process.get().is_none() && !self.pidfd_received && self.end.is_none() && Instant::now() < until {
            if !self.pidfd_requested {
                let _ = self.request_pidfd(false);
            }
            let step = Timespec { tv_sec: 0, tv_nsec: CANCEL_STEP.subsec_nanos().into() };
            let mut fds = [self.channels.pair.status()];
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

    /// Waits for the next event and handles it.
    fn step(&mut self, host: &mut HostHalf) {
        let wake = self.next_look(host).map(|at| at.saturating_duration_since(Instant::now()));
        self.step_within(host, wake);
    }

    /// Waits for the next event, at most so long, and handles it. Returns whether there was one.
    fn step_within(&mut self, host: &mut HostHalf, wake: Option<Duration>) -> bool {
        let wanted = PollFlags::IN | if self.talk.has_output() { PollFlags::OUT } else { PollFlags::empty() };
        let is_next = std::mem::take(&mut self.talk.has_replied) && self.talk.calls_here() && !self.talk.has_output();
        // A deadline that is near is not overslept awake.
        let may_spin = is_next && wake.is_none_or(|left| left > spin::AWAKE);
        let wake = wake.map(|left| Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() });
        let mut fds = vec![self.channels.pair.status()];
        let run = self.listens().then(|| fds.push(PollFd::new(&self.channels.pair.run, wanted)));
        let calls = self.talk.calls_under_way().map(Calls::woken);
        if let Some(woken) = &calls {
            fds.push(PollFd::new(woken, PollFlags::IN));
        }
        let mut poll = |wake: Option<&Timespec>| rustix::event::poll(&mut fds, wake);
        let near = match may_spin && AtWork::leaves_room() {
            true => self.spin.wait(|| poll(Some(&Timespec::default())).ok().filter(|&ready| ready > 0)),
            false => None,
        };
        let polled = near.map_or_else(|| poll(wake.as_ref()), Ok);
        let events: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
        drop(fds);
        let some_ready = polled.is_ok_and(|ready| ready > 0);
        if some_ready {
            if run.is_some() && !events[1].is_empty() {
                self.talk.write();
                self.read(host);
            }
            if !events[0].is_empty() {
                self.read_notices();
            }
            if calls.is_some() && events.last().is_some_and(|events| !events.is_empty()) {
                self.talk.take_ended(host);
            }
        }
        if self.talk.has_reported() {
            self.at_work = None;
        }
        self.look(host);
        some_ready
    }

    /// After its report a process has nothing to say but that it ends, which the template says better.
    fn listens(&self) -> bool {
        !self.closed && self.talk.reported_at.is_none()
    }

    /// When to look at the clock or at the handle for cancelling again.
    fn next_look(&self, host: &HostHalf) -> Option<Instant> {
        let cancel = host.is_cancellable() && self.kill_limit().is_none();
        let cancel = cancel.then(|| Instant::now() + CANCEL_STEP);
        [self.next_moment(host), cancel].into_iter().flatten().min()
    }

    /// When to look at the clock again.
    pub(crate) fn next_moment(&self, host: &HostHalf) -> Option<Instant> {
        if let Some(end) = self.kill_limit() {
            let step = match self.must_delegate_kill() {
                true => Some(CANCEL_STEP),
                false => self.process.get().filter(|_| self.dead_at.is_none()).map(|_| DEAD_STEP),
            };
            let now = Instant::now();
            // What is overdue is looked at again step by step.
            return Some(step.map_or(end, |step| if end > now { end.min(now + step) } else { now + step }));
        }
        let linger = self.talk.reported_at.map(|at| at + LINGER);
        let asked = self.asked.map(|at| at + self.supervision.grace);
        // Calls that wait for a thread are told at the deadline that they are not made.
        let calls = host.deadline().filter(|_| self.talk.calls_under_way().is_some_and(|calls| !calls.is_empty()));
        let calls = calls.filter(|_| !self.withdrawn);
        [self.supervision.hard, linger, asked, calls, self.next_request()].into_iter().flatten().min()
    }

    /// When to ask for a descriptor of the process, or tell the deadline.
    fn next_request(&self) -> Option<Instant> {
        let wanted = !self.pidfd_requested || (self.own_deadline().is_some() && !self.told_deadline);
        self.request_at.filter(|_| wanted && self.talk.reported_at.is_none())
    }

    /// The deadline that the order did not name, as the process stays.
    fn own_deadline(&self) -> Option<Instant> {
        let Supervision { hard, late, stays, replays, .. } = self.supervision;
        hard.filter(|_| stays && !replays)?.checked_sub(late)
    }

    /// Looks whether it is time to kill.
    fn look(&mut self, host: &mut HostHalf) {
        let now = Instant::now();
        if self.supervision.replays {
            let Supervision { grace, late, .. } = self.supervision;
            self.supervision.hard = hard_deadline(host, grace).map(|hard| hard + late);
            self.supervision.replays = host.replays();
        }
        if !self.withdrawn && (host.deadline().is_some_and(|at| now >= at) || host.cancel().is_cancelled()) {
            self.withdrawn = true;
            self.talk.withdraw_calls(host, true);
        }
        if self.kill.is_some() {
            if self.must_delegate_kill() {
                self.kill_delegated = self.request_pidfd(true);
            }
            if self.dead_at.is_none() && self.process.get().is_some_and(is_dead) {
                self.dead_at = Some(now);
            }
            if self.kill_limit().is_some_and(|limit| now >= limit) && self.end.is_none() {
                self.give_up_waiting();
            }
            return;
        }
        if self.next_request().is_some_and(|at| now >= at) {
            if self.template.is_busy() {
                self.request_at = Some(now + AHEAD);
            } else {
                self.make_known();
            }
        }
        if let Some(hard) = self.supervision.hard
            && now >= hard
        {
            self.kill(Kill::Deadline);
        } else if self.talk.reported_at.is_some_and(|at| now >= at + LINGER) {
            self.kill(Kill::Lingering);
        } else if host.cancel().is_cancelled() {
            match self.asked {
                None => {
                    // The run ends by itself if it can.
                    self.asked = Some(now);
                    if !self.signal(Signal::USR1) && !self.pidfd_requested {
                        let _ = self.request_pidfd(false);
                    }
                }
                Some(asked) if now >= asked + self.supervision.grace => self.kill(Kill::Cancelled),
                Some(_) => {}
            }
        }
    }

    /// The template has not said in time that the process, which is to be dead, is reaped. One that is stopped or broken goes, and its
    /// children with it. With one that is only slow are the runs of others: it stays, and reaps later, and what it forks for this
    /// run finds its channel closed.
    fn give_up_waiting(&mut self) {
        let is_lost = match (self.must_delegate_kill(), self.pidfd_received) {
            // Nobody but the template can kill it, and it has to be told.
            (true, _) if !self.template.is_stuck() && !self.template.is_silent() => return,
            (true, _) => true,
            (false, true) => self.template.is_stopped(),
            (false, false) => self.template.is_silent(),
        };
        if is_lost {
            self.discard_template();
        } else {
            self.end = Some(End::NotStarted(0));
        }
    }

    fn signal(&self, signal: Signal) -> bool {
        self.process.get().is_some_and(|process| rustix::process::pidfd_send_signal(process, signal).is_ok())
    }

    /// Asks the template for the process, and to kill it when that is to be. Says whether there was room for the question.
    fn request_pidfd(&mut self, kill: bool) -> bool {
        self.ask(kill.then_some(AT_ONCE))
    }

    fn ask(&mut self, kill_at: Option<u64>) -> bool {
        let question = self.template.request_pidfd(&self.channels.pair, kill_at);
        let asked = question.is_some();
        self.pidfd_requested |= asked;
        self.question = self.question.take().or(question);
        asked
    }

    /// Nobody waits for the template's answer any more.
    fn take_back_question(&mut self) {
        if let Some(question) = self.question.take() {
            self.template.take_back_question(&question);
        }
    }

    /// Asks the template for the process, and tells it the deadline that it does not know.
    fn make_known(&mut self) {
        let kill_at = self.own_deadline().filter(|_| !self.told_deadline).map(monotonic);
        if !self.pidfd_requested {
            self.told_deadline |= self.ask(kill_at) && kill_at.is_some();
        } else if let Some(kill_at) = kill_at {
            self.template.set_deadline(&self.channels.pair, kill_at);
            self.told_deadline = true;
        }
    }

    /// Is there a process to kill that this side cannot, and the other does not know of it?
    fn must_delegate_kill(&self) -> bool {
        self.kill.is_some() && self.process.get().is_none() && !self.kill_delegated
    }

    fn kill(&mut self, why: Kill) {
        if self.kill.is_none() && self.end.is_none() {
            self.kill = Some((why, Instant::now()));
            self.talk.clear_output();
            if !self.send_kill() {
                // The template does it, when the process is there.
                self.kill_delegated = self.request_pidfd(true);
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
        let hard = self.supervision.hard.filter(|_| matches!(self.kill, Some((Kill::Deadline, _))))?;
        Some(Instant::now().saturating_duration_since(hard))
    }

    /// Until when a template is waited for once its child is to be killed.
    fn kill_limit(&self) -> Option<Instant> {
        let (_, at) = self.kill?;
        let limit = at + if self.pidfd_received { REAPING } else { FORKING };
        Some(self.dead_at.map_or(limit, |dead| limit.min(dead + REAPING_DEAD)))
    }

    /// Gives the template up, and with it all its children.
    fn discard_template(&mut self) {
        self.supervision.pool.discard(&self.template);
        self.end = Some(End::TemplateGone);
    }

    /// Takes one notice of the template's.
    fn read_notices(&mut self) {
        let Some(message) = self.channels.pair.receive() else { return };
        if let Some(process) = message.process {
            let _ = self.process.set(process);
        }
        if message.notice.is_some() {
            self.template.mark_responsive();
            self.question = None;
        }
        match message.notice {
            Some(Notice::Shown) => {
                self.pidfd_received = true;
                if self.kill.is_some() {
                    self.send_kill();
                } else if self.asked.is_some() {
                    self.signal(Signal::USR1);
                }
            }
            Some(Notice::Refused(errno)) => self.end = Some(End::NotStarted(errno)),
            Some(Notice::Ended { death, late }) => {
                // A template that stood still may have killed by the deadline of a run before this one.
                let hard = self.supervision.hard.and_then(|hard| hard.checked_sub(self.supervision.late));
                let late = late && hard.is_some_and(|hard| Instant::now() >= hard);
                self.end = Some(End::Reaped { death, late });
                if self.overshoot.is_none() {
                    // The template killed it. That was before this.
                    self.overshoot = self.late_by();
                }
            }
            None if self.end.is_none() => self.discard_template(),
            None => {}
        }
    }

    /// Takes the packets of the process, up to its report. While it lives, a limited number at once, and none once it is time to
    /// kill it: it may talk faster than this side listens, each packet may be a call that takes its time, and there are others
    /// to hear.
    fn read(&mut self, host: &mut HostHalf) {
        const PACKETS: usize = 64;
        let most = if self.end.is_some() { usize::MAX } else { PACKETS };
        for _ in 0..most {
            // A process that has just had its reply has said nothing yet.
            let has_heard = (self.talk.has_reported() || self.talk.has_replied) && self.end.is_none();
            if self.closed || has_heard || self.is_due() {
                return;
            }
            self.buffer.clear();
            let into = rustix::buffer::spare_capacity(&mut self.buffer);
            let read = match rustix::net::recv(&self.channels.pair.run, into, RecvFlags::DONTWAIT) {
                Ok((read, _)) => read,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return,
                Err(_) => 0,
            };
            if read == 0 {
                self.closed = true;
                return;
            }
            let is_over = self.kill.is_some() || self.end.is_some();
            if let Err(violation) = self.talk.take(host, &self.buffer[..read], is_over) {
                self.kill(Kill::Violation(violation));
                // It may have ended by itself meanwhile, or have been found to linger: that does not mend it.
                if self.end.is_some() && !matches!(self.kill, Some((Kill::Deadline | Kill::Cancelled, _))) {
                    self.kill = Some((Kill::Violation(violation), Instant::now()));
                }
                // Later packets do not matter.
                self.closed = true;
            }
        }
    }

    /// Is it time to kill a process that lives?
    fn is_due(&self) -> bool {
        self.end.is_none() && self.kill.is_none() && self.supervision.hard.is_some_and(|hard| Instant::now() >= hard)
    }

    /// What is left in the channel of a process that has ended.
    fn drain(&mut self, host: &mut HostHalf) {
        self.read(host);
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

    /// The outcome of a run that has ended.
    fn outcome(&mut self, host: &mut HostHalf) -> Outcome {
        let end = self.end.unwrap_or(End::TemplateGone);
        let said = self.talk.errors.text();
        let setup = self.talk.setup.as_deref().map(|text| verdict::clean(text, 300));
        let error = verdict::error(&Facts {
            kill: self.kill.map(|(kill, _)| kill),
            end,
            reported: self.talk.report.is_some(),
            setup: setup.as_deref(),
            said: &said,
            limit_ms: host.limits().timeout_ms,
            limit_bytes: self.supervision.memory,
            out_of_group: self.out_of_group(end),
        });
        let mut outcome = match (error, self.talk.report.take()) {
            (None, Some(report)) => host.finish(report),
            (Some(error), _) => host.fail(error, None),
            (None, None) => host.fail(verdict::timeout(host.limits().timeout_ms, "killed"), None),
        };
        let used = match end {
            End::Reaped { death, .. } => Some((death.cpu_us, death.rss_peak_bytes)),
            End::TemplateGone | End::NotStarted(_) => None,
        };
        self.span.end(self.kill.is_some(), used);
        if let End::Reaped { death, .. } = end {
            outcome.usage.cpu_us = Some(death.cpu_us);
            outcome.usage.rss_peak_bytes = Some(death.rss_peak_bytes);
        }
        outcome
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A run that is dropped ends here; the template reaps it.
        if self.end.is_none() {
            self.take_back_question();
        }
        if self.end.is_none() && !self.signal(Signal::KILL) {
            self.template.set_deadline(&self.channels.pair, AT_ONCE);
        }
        self.supervision.pool.end(&self.template);
    }
}

/// Has a process ended, be it reaped or not?
fn is_dead(process: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(process, PollFlags::IN)];
    matches!(rustix::event::poll(&mut fds, Some(&Timespec::default())), Ok(1))
}

/// A moment as the monotonic clock has it.
pub(crate) fn monotonic(at: Instant) -> u64 {
    let left = at.saturating_duration_since(Instant::now());
    let left = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
    crate::kernel::sys::monotonic_ns().saturating_add(left).max(1)
}

/// When a run is killed; `None` is never.
pub(crate) fn hard_deadline(host: &HostHalf, grace: Duration) -> Option<Instant> {
    host.deadline()?.checked_add(grace)
}

/// When a run that begins now is worth a descriptor of its process.
fn request_at(hard: Option<Instant>) -> Instant {
    let late = Instant::now() + SHORT;
    hard.and_then(|hard| hard.checked_sub(AHEAD)).map_or(late, |last| last.min(late))
}

/// A frame's bytes with the moment the turn began in front.
fn with_start(host: &HostHalf, bytes: &[u8]) -> Vec<u8> {
    let start = frames::moment(host.started());
    let mut all = Vec::with_capacity(8 + bytes.len());
    all.extend_from_slice(&start.to_le_bytes());
    all.extend_from_slice(bytes);
    all
}
