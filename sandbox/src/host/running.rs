//! One run from the host's view: its channels, its deadline and its end.

use super::at_work::AtWork;
use super::calls::Calls;
use super::conversation::Conversation;
use super::moments::{hard_deadline, monotonic};
use super::pool::{Admitted, Channels, Pool, Question, Template};
#[cfg(feature = "async")]
use super::socket_pair::SocketPair;
use super::spans::ChildSpan;
use super::verdict::{self, CANCEL_STEP, End, Facts, Kill};
use crate::wire::frames::{self, AWAKE, CHECK, Kind, MEMORY, PACKET, SAVE};
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

/// How long a process may take to exit after its report.
const LINGER: Duration = Duration::from_millis(100);
/// How long a template may take to report that a killed process is reaped.
const REAPING: Duration = Duration::from_secs(5);
/// How long it may take if this side knows that the process is dead: then only its figures are missing.
const REAPING_DEAD: Duration = Duration::from_secs(1);
/// The interval at which a killed process is polled for its death.
const DEAD_STEP: Duration = Duration::from_millis(20);
/// How long a template may take to report anything about a process to be killed. On a busy machine the process may
/// still have to be forked.
const FORKING: Duration = Duration::from_millis(250);
/// The time after which the host asks for a descriptor of a run's process. Most runs end earlier.
const SHORT: Duration = Duration::from_millis(2);
/// The descriptor is requested at least this long before the kill: a template on a busy machine may have to wait for its
/// time slice.
const AHEAD: Duration = Duration::from_millis(20);

/// A deadline that has passed, by the monotonic clock: kill now.
const AT_ONCE: u64 = 1;

/// The limits that the host enforces on a run.
#[derive(Clone, Debug)]
pub(crate) struct Supervision {
    /// When it must be dead; `None` means never.
    pub(crate) hard: Option<Instant>,
    pub(crate) grace: Duration,
    /// For tests: delays the host's kill by this time.
    #[cfg(feature = "testing")]
    pub(crate) late: Duration,
    /// The run resumes from a record: its deadline is known once the record has been replayed.
    pub(crate) replays: bool,
    /// Its address space beyond the template's.
    pub(crate) memory: u64,
    /// The limits of its frames.
    pub(crate) max: FrameLimits,
    /// The process stays alive after a report: for the next turn of a session, or the next run of a domain.
    pub(crate) stays: bool,
    pub(crate) pool: Arc<Pool>,
}

impl Supervision {
    /// Returns when the host kills the run; `None` means never.
    fn kill_time(&self) -> Option<Instant> {
        #[cfg(feature = "testing")]
        return self.hard.map(|hard| hard + self.late);
        #[cfg(not(feature = "testing"))]
        self.hard
    }
}

/// A run in progress.
#[derive(Debug)]
pub(crate) struct Running {
    template: Arc<Template>,
    channels: Channels,
    order: Order,
    process: Arc<OnceLock<OwnedFd>>,
    /// The template was asked for a descriptor of the process.
    pidfd_requested: bool,
    /// The first question that is not answered yet.
    question: Option<Question>,
    /// The template has answered. There may have been no room for the descriptor.
    pidfd_received: bool,
    /// The template knows that it has to kill the process.
    kill_delegated: bool,
    /// When to ask for the process. For a run whose process stays, also when to send the template its deadline.
    request_at: Option<Instant>,
    /// The template knows a deadline of this run.
    sent_deadline: bool,
    supervision: Supervision,
    span: ChildSpan,
    talk: Conversation,
    /// Set while the program runs.
    at_work: Option<AtWork>,
    /// Busy waits for the next packet of a process that has been sent a reply.
    spin: Spin,
    buffer: Vec<u8>,
    kill: Option<(Kill, Instant)>,
    /// When the process was found dead without a notice of the template.
    dead_at: Option<Instant>,
    /// When the run was asked to end because it was cancelled.
    asked: Option<Instant>,
    end: Option<End>,
    /// No more packets come from the process.
    closed: bool,
    /// The run's time was over, and calls still waiting for a thread were taken back.
    withdrawn: bool,
    #[cfg_attr(not(feature = "testing"), allow(dead_code, reason = "tests ask for it"))]
    overshoot: Option<Duration>,
    /// The last field: it is dropped after all descriptors of the run.
    _admitted: Admitted,
}

/// What a session's process does next.
pub(crate) enum Turn<'a> {
    /// Runs a program.
    Program(&'a str),
    /// Sends the definitions.
    Memory,
    /// Sends everything that the session is saved as.
    Save,
    /// Checks what the session was given.
    Check,
}

impl Running {
    pub(crate) fn new(
        template: Arc<Template>,
        channels: Channels,
        order: Order,
        supervision: Supervision,
        span: ChildSpan,
    ) -> Running {
        let admitted = Admitted { pool: supervision.pool.clone(), template: template.clone() };
        let talk = Conversation::new(channels.pair.clone(), supervision.max, supervision.stays);
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
            sent_deadline: false,
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
            _admitted: admitted,
        }
    }

    /// Returns the sockets of the run.
    #[cfg(feature = "async")]
    pub(crate) fn pair(&self) -> Arc<SocketPair> {
        self.channels.pair.clone()
    }

    /// Makes calls of async tools as futures, which wake the run, and calls of other tools on tool threads.
    #[cfg(feature = "async")]
    pub(crate) fn call_as_futures(&mut self, waker: Arc<RunWaker>) {
        self.talk.call_as_futures(waker);
    }

    /// Handles what is available without waiting. Returns true if there was something.
    #[cfg(feature = "async")]
    pub(crate) fn step_now(&mut self, host: &mut HostHalf) -> bool {
        let some_over = self.talk.poll_futures(host);
        self.step_within(host, Some(Duration::ZERO)) || some_over
    }

    /// Returns true if the process has ended and no call is awaited.
    pub(crate) fn is_over(&self, host: &HostHalf) -> bool {
        self.end.is_some() && !self.awaits_calls(host)
    }

    /// Returns true if the process is gone.
    #[cfg(feature = "async")]
    pub(crate) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Returns true if the process was lost during calls whose ends the record of the run needs. They are awaited, within
    /// the time of the run: it then resumes without asking how they ended.
    fn awaits_calls(&self, host: &HostHalf) -> bool {
        let is_lost = self.end.is_some() && self.kill.is_none() && !self.talk.has_reported();
        let has_time = || host.deadline().is_none_or(|at| Instant::now() < at) && !host.cancel().is_cancelled();
        is_lost && self.talk.has_calls() && has_time() && host.awaits_ends()
    }

    /// Waits for a call on another thread, at most for `wake`. The process is gone. Returns true if there was something.
    fn await_call(&mut self, host: &mut HostHalf, wake: Option<&Timespec>) -> bool {
        self.at_work = None;
        // Its last packets may have the report.
        self.drain(host);
        if self.is_over(host) {
            return true;
        }
        let Some(woken) = self.talk.calls_in_progress().map(Calls::woken) else { return false };
        let mut fds = [PollFd::new(&woken, PollFlags::IN)];
        let some_ended = rustix::event::poll(&mut fds, wake).is_ok_and(|ready| ready > 0);
        if some_ended {
            self.talk.take_ended(host);
        }
        some_ended
    }

    /// Returns true if the run was asked to end, or killed.
    #[cfg(feature = "async")]
    pub(crate) fn has_seen_cancel(&self) -> bool {
        self.asked.is_some() || self.kill.is_some()
    }

    /// Returns the events to wait for on the socket of the process; `None` if nothing more is expected.
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

    /// Orders the next spare child while this one works.
    pub(crate) fn restock(&mut self) {
        self.supervision.pool.restock(&self.template, self.order, &mut self.channels);
    }

    /// Sends the next program of a session.
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
            Turn::Check => self.talk.queue(Kind::Turn, CHECK, &with_start(host, &[])),
        }
    }

    /// Starts the next run of a domain's process.
    pub(crate) fn begin_run(&mut self, supervision: Supervision, span: ChildSpan) {
        self.talk.begin_run(supervision.max);
        self.request_at = Some(request_at(supervision.hard));
        (self.supervision, self.span) = (supervision, span);
        (self.asked, self.withdrawn) = (None, false);
    }

    /// Ends a run of a domain's process after its report. Calls still waiting for a thread are not made.
    pub(crate) fn end_run(&mut self, host: &mut HostHalf) {
        self.talk.withdraw_calls(host, false);
        #[cfg(feature = "async")]
        self.talk.drop_futures();
        self.span.end(false, None);
    }

    /// Forgets the deadline of a run that is over, since its process stays.
    fn forget_deadline(&mut self) {
        if self.sent_deadline {
            self.sent_deadline = false;
            self.template.set_deadline(&self.channels.pair, 0);
        }
    }

    /// Returns true if the process ended before it was sent the whole job, and had sent nothing. Then another process
    /// can run the job.
    pub(crate) fn missed_job(&self) -> bool {
        let ended = matches!(self.end, Some(End::Reaped { .. })) && self.kill.is_none();
        let unread = || crate::kernel::sys::unread(&self.channels.pair.run).is_ok_and(|bytes| bytes > 0);
        ended && !self.talk.has_sent && (self.talk.has_output() || unread())
    }

    /// Returns true if the process is alive, has sent nothing since its last report, and has nothing left to read.
    pub(crate) fn is_at_rest(&mut self) -> bool {
        let is_gone = self.process.get().is_some_and(is_dead);
        while self.end.is_none() && self.kill.is_none() && !self.closed && !is_gone && !self.talk.has_output() {
            let mut fds = [self.channels.pair.status(), PollFd::new(&self.channels.pair.run, PollFlags::IN)];
            match rustix::event::poll(&mut fds, Some(&Timespec::default())) {
                Ok(0) => return true,
                Ok(_) if fds[1].revents().is_empty() => {}
                _ => return false,
            }
            // The template may have sent its descriptor, or reaped it, after the report.
            self.read_notices();
        }
        false
    }

    /// Returns the order from which the process was made.
    pub(crate) fn ordered(&self) -> Order {
        self.order
    }

    /// Returns how much the process has grown since it was created, as reported by it.
    pub(crate) fn growth_bytes(&self) -> u64 {
        self.talk.growth_bytes
    }

    /// Runs to the end and reaps the process.
    pub(crate) fn finish(&mut self, host: &mut HostHalf) -> Outcome {
        while !self.is_over(host) {
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

    /// Runs until the report of the turn is received; `None` if the process ends before.
    pub(crate) fn next_report(&mut self, host: &mut HostHalf) -> Option<Report> {
        while self.end.is_none() && self.talk.report.is_none() {
            self.step(host);
        }
        self.take_report()
    }

    /// Returns the report of the turn, if it was received and the process has not been killed.
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

    /// Returns the descriptor of the process, once it is known, for others to send signals.
    pub(crate) fn process(&self) -> Arc<OnceLock<OwnedFd>> {
        self.process.clone()
    }

    /// Asks the template for the process before the run continues, because calls may soon block this thread. A busy
    /// template is waited for only briefly, and asked again while the run continues.
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
    /// Returns how long after the deadline the kill signal was sent, if it was.
    pub(crate) fn overshoot(&self) -> Option<Duration> {
        self.overshoot
    }

    /// Waits for the next event and handles it.
    fn step(&mut self, host: &mut HostHalf) {
        host.beat();
        let wake = self.next_look(host).map(|at| at.saturating_duration_since(Instant::now()));
        self.step_within(host, wake);
    }

    /// Waits for the next event, at most for `wake`, and handles it. Returns true if there was one.
    fn step_within(&mut self, host: &mut HostHalf, wake: Option<Duration>) -> bool {
        let wanted = PollFlags::IN | if self.talk.has_output() { PollFlags::OUT } else { PollFlags::empty() };
        let is_next = std::mem::take(&mut self.talk.has_replied) && self.talk.calls_here() && !self.talk.has_output();
        // A busy wait must not miss a deadline that is near.
        let may_spin = is_next && wake.is_none_or(|left| left > spin::AWAKE);
        let wake = wake.map(|left| Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() });
        if self.end.is_some() {
            return self.await_call(host, wake.as_ref());
        }
        let mut fds = vec![self.channels.pair.status()];
        let run = self.listens().then(|| fds.push(PollFd::new(&self.channels.pair.run, wanted)));
        let calls = self.talk.calls_in_progress().map(Calls::woken);
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

    /// Returns true if packets are expected. After its report a process sends no more; the template reports its end.
    fn listens(&self) -> bool {
        !self.closed && self.talk.reported_at.is_none()
    }

    /// Returns when to check the clock or the cancel handle next.
    fn next_look(&self, host: &HostHalf) -> Option<Instant> {
        let looks = host.is_cancellable() || host.has_heartbeat();
        let cancel = (looks && self.kill_limit().is_none()).then(|| Instant::now() + CANCEL_STEP);
        [self.next_moment(host), cancel].into_iter().flatten().min()
    }

    /// Returns when to check the clock next.
    pub(crate) fn next_moment(&self, host: &HostHalf) -> Option<Instant> {
        if self.end.is_some() {
            return host.deadline();
        }
        if let Some(end) = self.kill_limit() {
            let step = match self.must_delegate_kill() {
                true => Some(CANCEL_STEP),
                false => self.process.get().filter(|_| self.dead_at.is_none()).map(|_| DEAD_STEP),
            };
            let now = Instant::now();
            // If the end is overdue, it is checked again after each step.
            return Some(step.map_or(end, |step| if end > now { end.min(now + step) } else { now + step }));
        }
        let linger = self.talk.reported_at.map(|at| at + LINGER);
        let asked = self.asked.map(|at| at + self.supervision.grace);
        // At the deadline, calls still waiting for a thread are refused.
        let calls = host.deadline().filter(|_| self.talk.calls_in_progress().is_some_and(|calls| !calls.is_empty()));
        let calls = calls.filter(|_| !self.withdrawn);
        [self.supervision.kill_time(), linger, asked, calls, self.next_request()].into_iter().flatten().min()
    }

    /// Returns when to ask for a descriptor of the process, or to send the deadline.
    fn next_request(&self) -> Option<Instant> {
        let wanted = !self.pidfd_requested || (self.own_deadline().is_some() && !self.sent_deadline);
        self.request_at.filter(|_| wanted && self.talk.reported_at.is_none())
    }

    /// Returns the deadline that the order did not include, because the process stays.
    fn own_deadline(&self) -> Option<Instant> {
        let Supervision { hard, stays, replays, .. } = self.supervision;
        hard.filter(|_| stays && !replays)
    }

    /// Kills the process if it is time to.
    fn look(&mut self, host: &mut HostHalf) {
        let now = Instant::now();
        if self.supervision.replays {
            self.supervision.hard = hard_deadline(host, self.supervision.grace);
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
        if self.supervision.kill_time().is_some_and(|at| now >= at) {
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

    /// Called when the template has not reported in time that a killed process is reaped. A template that is stopped or
    /// broken is ended, with its children. A template that is only slow is kept, because other runs depend on it. It
    /// reaps later, and a child that it still forks for this run finds its channel closed.
    fn give_up_waiting(&mut self) {
        let is_lost = match (self.must_delegate_kill(), self.pidfd_received) {
            // Only the template can kill it, and has not been asked yet.
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

    /// Asks the template for the process, and with `kill` to kill it. Returns false if there was no room for the
    /// question.
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

    /// Withdraws the question to the template.
    fn take_back_question(&mut self) {
        if let Some(question) = self.question.take() {
            self.template.take_back_question(&question);
        }
    }

    /// Asks the template for the process, and sends it the deadline if it is unknown to it.
    fn make_known(&mut self) {
        let kill_at = self.own_deadline().filter(|_| !self.sent_deadline).map(monotonic);
        if !self.pidfd_requested {
            self.sent_deadline |= self.ask(kill_at) && kill_at.is_some();
        } else if let Some(kill_at) = kill_at {
            self.template.set_deadline(&self.channels.pair, kill_at);
            self.sent_deadline = true;
        }
    }

    /// Returns true if only the template can kill the process, and does not know yet that it must.
    fn must_delegate_kill(&self) -> bool {
        self.kill.is_some() && self.process.get().is_none() && !self.kill_delegated
    }

    fn kill(&mut self, why: Kill) {
        if self.kill.is_none() && self.end.is_none() {
            self.kill = Some((why, Instant::now()));
            self.talk.clear_output();
            if !self.send_kill() {
                // The template kills it as soon as it exists.
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

    /// Returns how late the kill for the deadline is.
    fn late_by(&self) -> Option<Duration> {
        let hard = self.supervision.kill_time().filter(|_| matches!(self.kill, Some((Kill::Deadline, _))))?;
        Some(Instant::now().saturating_duration_since(hard))
    }

    /// Returns until when to wait for a template once its child must be killed.
    fn kill_limit(&self) -> Option<Instant> {
        let (_, at) = self.kill?;
        let limit = at + if self.pidfd_received { REAPING } else { FORKING };
        Some(self.dead_at.map_or(limit, |dead| limit.min(dead + REAPING_DEAD)))
    }

    /// Gives up the template, and all its children with it.
    fn discard_template(&mut self) {
        self.supervision.pool.discard(&self.template);
        self.end = Some(End::TemplateGone);
    }

    /// Handles one notice of the template.
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
                // A template that was stopped may have killed for the deadline of an earlier run.
                let late = late && self.supervision.hard.is_some_and(|hard| Instant::now() >= hard);
                self.end = Some(End::Reaped { death, late });
                if self.overshoot.is_none() {
                    // The template killed it before this moment.
                    self.overshoot = self.late_by();
                }
            }
            None if self.end.is_none() => self.discard_template(),
            None => {}
        }
    }

    /// Handles packets of the process, up to its report. While the process is alive, at most a fixed number at once,
    /// and none after the time to kill it: it may send faster than the host reads, each packet may be a slow call, and
    /// other sources must be served too.
    fn read(&mut self, host: &mut HostHalf) {
        const PACKETS: usize = 64;
        let max = if self.end.is_some() { usize::MAX } else { PACKETS };
        for _ in 0..max {
            // A process that has just been sent its reply has not sent anything yet.
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
                // A violation counts even if the process has ended by itself meanwhile, or was killed for lingering.
                if self.end.is_some() && !matches!(self.kill, Some((Kill::Deadline | Kill::Cancelled, _))) {
                    self.kill = Some((Kill::Violation(violation), Instant::now()));
                }
                // Later packets do not matter.
                self.closed = true;
            }
        }
    }

    /// Returns true if a process that is alive must be killed now.
    fn is_due(&self) -> bool {
        self.end.is_none() && self.kill.is_none() && self.supervision.kill_time().is_some_and(|at| Instant::now() >= at)
    }

    /// Reads what is left in the channel of a process that has ended.
    fn drain(&mut self, host: &mut HostHalf) {
        self.read(host);
    }

    /// Returns the memory limit of the cgroup if the process was killed for it, which is only possible if neither the
    /// host nor the template killed it.
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

    /// Returns the outcome of a run that has ended.
    fn outcome(&mut self, host: &mut HostHalf) -> Outcome {
        let end = self.end.unwrap_or(End::TemplateGone);
        let stderr = self.talk.errors.text();
        let setup = self.talk.setup.as_deref().map(|text| verdict::clean(text, 300));
        let error = verdict::error(&Facts {
            kill: self.kill.map(|(kill, _)| kill),
            end,
            reported: self.talk.report.is_some(),
            setup: setup.as_deref(),
            stderr: &stderr,
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
    }
}

/// Returns true if a process has ended, reaped or not.
fn is_dead(process: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(process, PollFlags::IN)];
    matches!(rustix::event::poll(&mut fds, Some(&Timespec::default())), Ok(1))
}

/// Returns when to ask for a descriptor of the process of a run that starts now.
fn request_at(hard: Option<Instant>) -> Instant {
    let late = Instant::now() + SHORT;
    hard.and_then(|hard| hard.checked_sub(AHEAD)).map_or(late, |last| last.min(late))
}

/// Returns a frame's bytes, preceded by the moment at which the turn started.
fn with_start(host: &HostHalf, bytes: &[u8]) -> Vec<u8> {
    let start = frames::moment(host.started());
    let mut all = Vec::with_capacity(8 + bytes.len());
    all.extend_from_slice(&start.to_le_bytes());
    all.extend_from_slice(bytes);
    all
}
