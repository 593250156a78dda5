//! The protocol between the host and a run's process: reads its packets and sends replies. Native code in a process can
//! reach no other part of the host. This module knows nothing about templates, deadlines and signals.

use super::calls::Calls;
use super::error_output::ErrorOutput;
use super::open_calls::OpenCalls;
use super::socket_pair::SocketPair;
use crate::wire::frames::{self, Assembler, Frame, Kind, Taken};
use crate::wire::guest_message::{FrameLimits, GuestMessage};
use crate::wire::violation::Violation;
use lisp_runtime::outcome::Place;
#[cfg(feature = "async")]
use lisp_runtime::remote::{AsyncCall, CallFutures, HostCall, RunWaker};
use lisp_runtime::remote::{CallReply, CallStarted, HostHalf, Report};
use rustix::io::Errno;
use rustix::net::SendFlags;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// A conversation in progress.
#[derive(Debug)]
pub(crate) struct Conversation {
    pair: Arc<SocketPair>,
    limits: FrameLimits,
    /// The process stays alive after a report.
    stays: bool,
    assembler: Assembler,
    /// The process has sent something since its run or turn started.
    pub(crate) has_sent: bool,
    out: VecDeque<Outgoing>,
    /// Calls whose replies the process has not read yet.
    open: OpenCalls,
    /// The process has been sent a reply since the last wait. It continues, and its next packet may come at once.
    pub(crate) has_replied: bool,
    /// Calls on other threads.
    calls: Option<Calls>,
    /// Calls of async tools, if the run makes such calls.
    #[cfg(feature = "async")]
    futures: Option<Futures>,
    pub(crate) errors: ErrorOutput,
    /// The setup step that failed, as reported by the process.
    pub(crate) setup: Option<String>,
    pub(crate) report: Option<Report>,
    /// How much the process has grown since it was created, as reported by it.
    pub(crate) growth_bytes: u64,
    /// When the report was received after which the process must exit.
    pub(crate) reported_at: Option<Instant>,
}

/// Calls of async tools in progress.
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
    /// The call whose reply this packet completes.
    ends_reply: Option<u32>,
}

impl Conversation {
    pub(crate) fn new(pair: Arc<SocketPair>, limits: FrameLimits, stays: bool) -> Conversation {
        Conversation {
            pair,
            limits,
            stays,
            assembler: Assembler::default(),
            has_sent: false,
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

    /// Discards the last turn of a session. Calls in progress are dropped when they end; calls still waiting for a
    /// thread are not made.
    pub(crate) fn begin_turn(&mut self) {
        (self.report, self.reported_at, self.calls) = (None, None, None);
        (self.errors, self.setup, self.has_sent) = (ErrorOutput::default(), None, false);
        self.open.keep(self.out.iter().filter_map(|out| out.ends_reply));
    }

    /// Discards the last run of a domain's process.
    pub(crate) fn begin_run(&mut self, limits: FrameLimits) {
        self.limits = limits;
        self.begin_turn();
    }

    /// Returns true if the process has sent the report of its run or turn.
    pub(crate) fn has_reported(&self) -> bool {
        self.report.is_some() || self.reported_at.is_some()
    }

    /// Returns true if there are packets that the process has not read.
    pub(crate) fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// Drops the packets that the process has not read.
    pub(crate) fn clear_output(&mut self) {
        self.out.clear();
    }

    /// Returns the calls on other threads, if any was made.
    pub(crate) fn calls_in_progress(&self) -> Option<&Calls> {
        self.calls.as_ref()
    }

    /// Queues a frame and sends as much as the socket takes.
    pub(crate) fn queue(&mut self, kind: Kind, id: u32, bytes: &[u8]) {
        self.out.extend(frames::packets(kind, id, bytes).map(|packet| Outgoing { packet, ends_reply: None }));
        if let Some(last) = self.out.back_mut() {
            last.ends_reply = (kind == Kind::Reply).then_some(id);
        }
        self.write();
    }

    /// Sends queued packets until the socket is full.
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
                // The process no longer reads; how it ended tells why.
                Err(_) => return self.out.clear(),
            }
        }
    }

    /// Handles a packet of the process. With `is_over`, the run has ended or was killed: no more calls are made and no
    /// more packets are sent.
    pub(crate) fn take(&mut self, host: &mut HostHalf, packet: &[u8], is_over: bool) -> Result<(), Violation> {
        self.has_sent = true;
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
                // No calls are made for a run that is over or about to be cancelled.
                if !is_over && !host.cancel().is_cancelled() {
                    self.open.add(frame.id, call.place.as_ref().clone(), &call.given_up, host.max_calls())?;
                    // While one worker waits, others continue and may make more calls.
                    let along = !call.place.is_of_program();
                    let started = host.begin(call);
                    self.tell_replay_end(host);
                    self.go_on(host, frame.id.into(), started, along);
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

    /// Answers a request for the time. A process must wait for the answer. One that keeps asking without reading would
    /// make the host hold answers for it, which is a violation.
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

    /// Informs the process that its record has been replayed: its time counts from now on. Called before sending a
    /// message that the process waits for.
    fn tell_replay_end(&mut self, host: &mut HostHalf) {
        if let Some(at) = host.replay_ended() {
            self.queue(Kind::Turn, frames::LIVE, &frames::moment(at).to_le_bytes());
        }
    }

    /// Continues a call that has started, and those that waited for it. With `along` it runs on another thread.
    fn go_on(&mut self, host: &mut HostHalf, number: u64, started: CallStarted, along: bool) {
        #[cfg(feature = "async")]
        let along = along || self.futures.is_some();
        let mut todo = VecDeque::from([(number, started)]);
        while let Some((number, started)) = todo.pop_front() {
            let pending = match started {
                CallStarted::Ready(reply) => {
                    // A refusal because of a cancellation ends the program.
                    if !(host.cancel().is_cancelled() && reply.is_refusal()) {
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
                    // A call on this thread is better than no call.
                    Err(pending) => *pending,
                },
                None => pending,
            };
            todo.extend(host.end(pending.make()));
        }
    }

    /// Returns the calls on other threads; `None` if no descriptor is left for them.
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

    /// Handles the calls that have ended on other threads.
    pub(crate) fn take_ended(&mut self, host: &mut HostHalf) {
        let Some(ended) = self.calls.as_mut().map(Calls::ended) else { return };
        for (number, started) in ended.into_iter().flat_map(|ended| host.end(ended)).collect::<Vec<_>>() {
            self.go_on(host, number, started, true);
        }
    }

    /// Makes calls of async tools as futures, which wake `run`.
    #[cfg(feature = "async")]
    pub(crate) fn call_as_futures(&mut self, run: Arc<RunWaker>) {
        self.futures = Some(Futures { calls: CallFutures::new(run.clone()), run });
    }

    /// Starts a call of an async tool. Returns the call if its tool is not async.
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

    /// Polls the calls that have been woken and replies to those that are complete. Returns true if there were any.
    #[cfg(feature = "async")]
    pub(crate) fn poll_futures(&mut self, host: &mut HostHalf) -> bool {
        let Some(futures) = &mut self.futures else { return false };
        let over = futures.calls.poll();
        let some_over = !over.is_empty();
        for (number, started) in over.into_iter().flat_map(|(_, ended)| host.end(ended)).collect::<Vec<_>>() {
            self.go_on(host, number, started, true);
        }
        some_over
    }

    /// Returns true if all calls are made on the thread that waits for the process.
    pub(crate) fn calls_here(&self) -> bool {
        #[cfg(feature = "async")]
        if self.futures.is_some() {
            return false;
        }
        self.calls.is_none()
    }

    /// Returns true if calls are in progress on other threads or as futures.
    pub(crate) fn has_calls(&self) -> bool {
        #[cfg(feature = "async")]
        if self.futures.as_ref().is_some_and(|futures| !futures.calls.is_empty()) {
            return true;
        }
        self.calls.as_ref().is_some_and(|calls| !calls.is_empty())
    }

    /// Drops the calls of async tools.
    #[cfg(feature = "async")]
    pub(crate) fn drop_futures(&mut self) {
        self.futures = None;
    }

    /// Takes back the calls that are still waiting for a thread. With `reply` the process is informed, and its program
    /// ends with an error that says so.
    pub(crate) fn withdraw_calls(&mut self, host: &mut HostHalf, reply: bool) {
        let Some(ended) = self.calls.as_mut().map(Calls::withdraw) else { return };
        for (number, started) in ended.into_iter().flat_map(|ended| host.end(ended)).collect::<Vec<_>>() {
            if reply {
                self.go_on(host, number, started, true);
            }
        }
    }

    fn reply(&mut self, number: u64, reply: &CallReply) {
        let bytes = frames::encode(reply).unwrap_or_default();
        self.queue(Kind::Reply, u32::try_from(number).unwrap_or(0), &bytes);
        self.has_replied = true;
    }
}
