//! The conversation with a run's process: what its packets say, and what is sent in return. This is all that native code in a
//! process can reach of the host; it knows nothing of templates, deadlines and signals.

use super::calls::Calls;
use super::error_output::ErrorOutput;
use super::open_calls::OpenCalls;
use super::socket_pair::SocketPair;
use crate::wire::frames::{self, Assembler, Frame, Kind, Taken};
use crate::wire::guest_message::{FrameLimits, GuestMessage};
use crate::wire::violation::Violation;
use lisp_runtime::Place;
#[cfg(feature = "async")]
use lisp_runtime::remote::{AsyncCall, CallFutures, HostCall, RunWaker};
use lisp_runtime::remote::{CallReply, CallStarted, HostHalf, Report};
use rustix::io::Errno;
use rustix::net::SendFlags;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// A conversation under way.
#[derive(Debug)]
pub(crate) struct Conversation {
    pair: Arc<SocketPair>,
    limits: FrameLimits,
    /// The process stays after a report.
    stays: bool,
    assembler: Assembler,
    /// Something has come of the process since its run or turn began.
    pub(crate) has_said: bool,
    out: VecDeque<Outgoing>,
    /// Calls that the process has made and whose replies it has not taken.
    open: OpenCalls,
    /// The process has had a reply since it was last waited for: it goes on, and what it says next may come at once.
    pub(crate) has_replied: bool,
    /// Calls on other threads.
    calls: Option<Calls>,
    /// Calls of async tools, in a run that makes such.
    #[cfg(feature = "async")]
    futures: Option<Futures>,
    pub(crate) errors: ErrorOutput,
    /// The step of the set-up that failed, by what the process says.
    pub(crate) setup: Option<String>,
    pub(crate) report: Option<Report>,
    /// How much the process has grown since it was made, by what it says with its report.
    pub(crate) growth_bytes: u64,
    /// When the report came after which the process is to end.
    pub(crate) reported_at: Option<Instant>,
}

/// Calls of async tools under way.
#[cfg(feature = "async")]
#[derive(Debug)]
struct Futures {
    calls: CallFutures<AsyncCall>,
    run: Arc<RunWaker>,
}

/// A packet to be sent.
#[derive(Debug)]
struct Outgoing {
    packet: Vec<u8>,
    /// The call whose reply it ends.
    ends_reply: Option<u32>,
}

impl Conversation {
    pub(crate) fn new(pair: Arc<SocketPair>, limits: FrameLimits, stays: bool) -> Conversation {
        Conversation {
            pair,
            limits,
            stays,
            assembler: Assembler::default(),
            has_said: false,
            out: VecDeque::new(),
            open: OpenCalls::default(),
            has_replied: false,
            calls: None,
            #[cfg(feature = "async")]
            futures: None,
            errors: ErrorOutput::default(),
            setup: None,
            report: None,
            growth_bytes: 0,
            reported_at: None,
        }
    }

    /// Forgets the last turn of a session. Calls that are still made are dropped when they end; calls that no thread has begun
    /// are not made.
    pub(crate) fn begin_turn(&mut self) {
        (self.report, self.reported_at, self.calls) = (None, None, None);
        (self.errors, self.setup, self.has_said) = (ErrorOutput::default(), None, false);
        self.open.keep(self.out.iter().filter_map(|out| out.ends_reply));
    }

    /// Forgets the last run of a domain's process.
    pub(crate) fn begin_run(&mut self, limits: FrameLimits) {
        self.limits = limits;
        self.begin_turn();
    }

    /// Has the process given the report of its run or turn?
    pub(crate) fn has_reported(&self) -> bool {
        self.report.is_some() || self.reported_at.is_some()
    }

    /// Is there a packet that the process has not taken?
    pub(crate) fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// Drops the packets that the process has not taken.
    pub(crate) fn clear_output(&mut self) {
        self.out.clear();
    }

    /// The calls on other threads, if there has been one.
    pub(crate) fn calls_under_way(&self) -> Option<&Calls> {
        self.calls.as_ref()
    }

    /// Queues a frame and sends as much as there is room for.
    pub(crate) fn queue(&mut self, kind: Kind, id: u32, bytes: &[u8]) {
        self.out.extend(frames::packets(kind, id, bytes).map(|packet| Outgoing { packet, ends_reply: None }));
        if let Some(last) = self.out.back_mut() {
            last.ends_reply = (kind == Kind::Reply).then_some(id);
        }
        self.write();
    }

    /// Sends the queued packets that there is room for.
    pub(crate) fn write(&mut self) {
        while let Some(Outgoing { packet, ends_reply }) = self.out.front() {
            match rustix::net::send(&self.pair.run, packet, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(_) => {
                    if let Some(number) = ends_reply {
                        self.open.answered(*number);
                    }
                    self.out.pop_front();
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // Nobody reads any more: the end of the process says why.
                Err(_) => return self.out.clear(),
            }
        }
    }

    /// Takes a packet of the process. `is_over` when the run has ended or was killed: then nothing is called or sent any more.
    pub(crate) fn take(&mut self, host: &mut HostHalf, packet: &[u8], is_over: bool) -> Result<(), Violation> {
        self.has_said = true;
        match self.assembler.take(packet, |kind| self.limits.frame(kind))? {
            Taken::Part => Ok(()),
            Taken::Text => self.errors.take(packet),
            Taken::Frame(_) if self.reported_at.is_some() || self.setup.is_some() => Err(Violation::Unexpected),
            Taken::Frame(frame) => self.take_frame(host, &frame, is_over),
        }
    }

    fn take_frame(&mut self, host: &mut HostHalf, frame: &Frame, is_over: bool) -> Result<(), Violation> {
        match GuestMessage::of(frame, &self.limits)? {
            GuestMessage::Printed(lines, by) => {
                host.printed_by(by, lines);
                Ok(())
            }
            GuestMessage::Call(call) => {
                if let Some(figures) = call.figures {
                    host.figures(figures);
                }
                // A run that is over calls nothing any more, nor does one that is about to be asked to end.
                if !is_over && !host.cancel().is_cancelled() {
                    self.open.add(frame.id, call.place.as_ref().clone(), &call.given_up, host.most_calls())?;
                    // While a worker waits others go on, and may call more.
                    let along = !call.place.is_of_program();
                    let begun = host.begin(call);
                    self.tell_replay_end(host);
                    self.go_on(host, frame.id.into(), begun, along);
                }
                Ok(())
            }
            GuestMessage::Report(report) => {
                self.report = Some(*report);
                self.growth_bytes = u64::from(frame.id) << 10;
                if !self.stays {
                    self.reported_at = Some(Instant::now());
                }
                Ok(())
            }
            GuestMessage::Setup(text) => {
                self.setup = Some(text);
                Ok(())
            }
            GuestMessage::Clock(place) => self.tell_time(host, &place, is_over),
            GuestMessage::Figures(figures) => {
                host.figures(figures);
                Ok(())
            }
        }
    }

    /// A process that has asked for the time waits for it. One that goes on asking has the host hold answers for it that it
    /// does not take.
    fn tell_time(&mut self, host: &mut HostHalf, place: &Place, is_over: bool) -> Result<(), Violation> {
        if self.out.iter().any(|out| out.packet.first() == Some(&(Kind::Time as u8))) {
            return Err(Violation::Unexpected);
        }
        if !is_over {
            let time = host.time(place);
            self.tell_replay_end(host);
            self.queue(Kind::Time, 0, &frames::time_bytes(time));
        }
        Ok(())
    }

    /// Tells the process that the record which the run goes on from is done again: its time counts from now on. It waits for what is
    /// sent next.
    fn tell_replay_end(&mut self, host: &mut HostHalf) {
        if let Some(at) = host.replay_ended() {
            self.queue(Kind::Turn, frames::LIVE, &frames::moment(at).to_le_bytes());
        }
    }

    /// Goes on with a call that has begun, and with those that waited for it. `along` makes it on another thread.
    fn go_on(&mut self, host: &mut HostHalf, number: u64, begun: CallStarted, along: bool) {
        #[cfg(feature = "async")]
        let along = along || self.futures.is_some();
        let mut todo = VecDeque::from([(number, begun)]);
        while let Some((number, begun)) = todo.pop_front() {
            let pending = match begun {
                CallStarted::Ready(reply) => {
                    // One that says that the run is cancelled ends the program.
                    if !(host.cancel().is_cancelled() && matches!(reply, CallReply::Refused(_))) {
                        host.note_sent();
                    }
                    self.reply(number, &reply);
                    continue;
                }
                CallStarted::Later => continue,
                CallStarted::Call(pending) => pending,
            };
            #[cfg(feature = "async")]
            let pending = match self.begin_future(number, pending) {
                None => continue,
                Some(pending) => pending,
            };
            let calls = if along { self.calls() } else { None };
            let pending = match calls {
                Some(calls) => match calls.start(number, pending) {
                    Ok(()) => continue,
                    // Better on this thread than not at all.
                    Err(pending) => *pending,
                },
                None => pending,
            };
            todo.extend(host.end(pending.make()));
        }
    }

    /// The calls on other threads; `None` when there is no descriptor for them.
    fn calls(&mut self) -> Option<&mut Calls> {
        if self.calls.is_none() {
            self.calls = Calls::new().ok();
            #[cfg(feature = "async")]
            if let (Some(calls), Some(futures)) = (&mut self.calls, &self.futures) {
                calls.wake(futures.run.clone());
            }
        }
        self.calls.as_mut()
    }

    /// Takes the calls that have ended on other threads.
    pub(crate) fn take_ended(&mut self, host: &mut HostHalf) {
        let Some(ended) = self.calls.as_mut().map(Calls::ended) else { return };
        for (number, begun) in ended.into_iter().flat_map(|ended| host.end(ended)).collect::<Vec<_>>() {
            self.go_on(host, number, begun, true);
        }
    }

    /// Has calls of async tools made as futures within the run that this wakes.
    #[cfg(feature = "async")]
    pub(crate) fn call_as_futures(&mut self, run: Arc<RunWaker>) {
        self.futures = Some(Futures { calls: CallFutures::new(run.clone()), run });
    }

    /// Begins a call of an async tool. Gives one of another tool back.
    #[cfg(feature = "async")]
    fn begin_future(&mut self, number: u64, pending: HostCall) -> Option<HostCall> {
        let Some(futures) = &mut self.futures else { return Some(pending) };
        match pending.begin_async() {
            Ok(call) => {
                futures.calls.insert(number, call);
                None
            }
            Err(pending) => Some(*pending),
        }
    }

    /// Polls the calls that have been woken, and replies to those that are over. Returns whether there was one.
    #[cfg(feature = "async")]
    pub(crate) fn poll_futures(&mut self, host: &mut HostHalf) -> bool {
        let Some(futures) = &mut self.futures else { return false };
        let over = futures.calls.poll();
        let some_over = !over.is_empty();
        for (number, begun) in over.into_iter().flat_map(|(_, ended)| host.end(ended)).collect::<Vec<_>>() {
            self.go_on(host, number, begun, true);
        }
        some_over
    }

    /// Are all calls made on the thread that waits for the process?
    pub(crate) fn calls_here(&self) -> bool {
        #[cfg(feature = "async")]
        if self.futures.is_some() {
            return false;
        }
        self.calls.is_none()
    }

    /// Drops the calls of async tools.
    #[cfg(feature = "async")]
    pub(crate) fn drop_futures(&mut self) {
        self.futures = None;
    }

    /// Takes back the calls that no thread has begun. With `reply` the process is told, and ends with an error that says so.
    pub(crate) fn withdraw_calls(&mut self, host: &mut HostHalf, reply: bool) {
        let Some(ended) = self.calls.as_mut().map(Calls::withdraw) else { return };
        for (number, begun) in ended.into_iter().flat_map(|ended| host.end(ended)).collect::<Vec<_>>() {
            if reply {
                self.go_on(host, number, begun, true);
            }
        }
    }

    fn reply(&mut self, number: u64, reply: &CallReply) {
        let bytes = frames::encode(reply).unwrap_or_default();
        self.queue(Kind::Reply, u32::try_from(number).unwrap_or(0), &bytes);
        self.has_replied = true;
    }
}
