//! Errors on their way to a handler. No instruction is spent where there is none: the code of a function says of which of its
//! instructions the errors are handled, and where.

use super::errors::not_in_a_worker;
use super::exec::Exit;
use super::machine::{Ending, Machine, Status};
use super::ways::Start;
use crate::builtins::exceptions::{self, Uncaught};
use crate::code::{HandledBy, Handler};
use crate::context::Ctx;
use crate::error::{Error, Reason};
use crate::heap::{Fault, Res, Value};
use crate::stack::{Caught, Code, Frame, State};

/// What making an error, and a value of it, costs beside the way to the handler; the message comes to it.
const CAUGHT: u64 = 40;

/// The handler of an error.
struct Found {
    /// The number of its frame.
    frame: usize,
    target: u32,
    by: HandledBy,
    /// What the search and the way there cost.
    cost: u64,
}

impl<'h> State<'h> {
    /// The innermost handler for the place where the run stands.
    fn handler(&self) -> Option<Found> {
        let mut cost = 1;
        for (frame, at) in self.frames.iter().enumerate().rev() {
            cost += 1;
            let Code::Lisp { proto, .. } = at.code else { continue };
            if proto.code.handlers() == 0 {
                continue;
            }
            let (handler, searched) = proto.code.handler(self.place(frame));
            cost += searched as u64;
            if let Some(handler) = handler {
                return Some(Found { frame, target: handler.target, by: handler.by, cost });
            }
        }
        None
    }

    /// Is there a handler for the place where the run stands?
    pub(super) fn is_handled(&self) -> bool {
        self.handler().is_some()
    }

    /// Goes on at a handler, with the value that stands for the error.
    fn go_on_at(&mut self, found: &Found, exception: Value<'h>) {
        self.frames.truncate(found.frame + 1);
        self.pending = None;
        if let Some(Frame { code: Code::Lisp { pc, .. }, base, .. }) = self.frames.last_mut() {
            *pc = found.target;
            if let HandledBy::Register(register) = found.by {
                self.stack[*base as usize + register as usize] = exception;
            }
        }
    }

    /// Notes where the error was that is caught, for when it ends the run after all.
    fn note_caught(&mut self, found: &Found, error: Error) {
        let reason = error.reason;
        let all = Start { frame: found.frame, outside: self.calls_around(found), at_home: true };
        let at_home = found.frame + 1 == self.frames.len() && !self.has_calls_in_place(all);
        let mut error = self.place_among(Start { at_home, ..all }, error);
        if error.span.is_none() {
            error = self.place_among(all, error);
        }
        self.caught = Some(Box::new(Caught { reason, error, at_home }));
    }

    /// How many calls in place are around a handler.
    fn calls_around(&self, found: &Found) -> usize {
        match self.frames[found.frame].code {
            Code::Lisp { proto, .. } => proto.in_place_at(found.target).count(),
            Code::Native { .. } => 0,
        }
    }

    /// Does the frame of `start` stand in a call in place from there on?
    fn has_calls_in_place(&self, start: Start) -> bool {
        match self.frames[start.frame].code {
            Code::Lisp { proto, .. } => self.in_place(start.frame, proto, start).next().is_some(),
            Code::Native { .. } => false,
        }
    }

    /// Gives an error to its handler. Returns false, with nothing changed, when there is none.
    pub(super) fn catch(&mut self, h: &'h Ctx, error: &Error) -> Res<bool> {
        if !error.is_catchable() {
            return Ok(false);
        }
        let Some(found) = self.handler() else { return Ok(false) };
        if found.by == HandledBy::DoingAnew {
            h.charge(found.cost)?;
            self.go_on_at(&found, Value::Nil);
            return Ok(true);
        }
        h.charge(found.cost + CAUGHT + error.message.len() as u64 / 2)?;
        let tool = self.pending.and_then(|call| match self.stack[call.at()] {
            Value::Tool(name) => Some(name.text()),
            _ => None,
        });
        let exception = exceptions::of_error(h, error, tool)?;
        self.note_caught(&found, error.clone());
        self.go_on_at(&found, exception);
        Ok(true)
    }

    /// Goes on in the other way where the instruction under way needs a frame, and its work can be done anew. Returns whether it
    /// does.
    pub(super) fn starts_anew(&mut self, h: &'h Ctx) -> Res<bool> {
        let Some(frame) = self.frames.len().checked_sub(1) else { return Ok(false) };
        let Code::Lisp { proto, .. } = self.frames[frame].code else { return Ok(false) };
        let Some(Handler { target, by, .. }) = proto.code.doing_anew(self.place(frame)) else { return Ok(false) };
        h.meter.set_spent(h.meter.restart_fuel());
        h.charge(1)?;
        self.go_on_at(&Found { frame, target, by, cost: 1 }, Value::Nil);
        Ok(true)
    }

    /// Runs as [`State::run`] does, and goes on at the handlers of errors.
    pub(super) fn run_and_catch(&mut self, h: &'h Ctx) -> Res<Exit> {
        loop {
            match self.run(h) {
                // After a fault here the instruction is done again, and fails again.
                Err(Fault::Error(error)) => match self.catch(h, &error)? {
                    true => {}
                    false => return Err(Fault::Error(error)),
                },
                out => return out,
            }
        }
    }

    /// Throws a value: goes on at its handler, or ends the program. `again` says that it was caught just before.
    pub(super) fn throw(&mut self, h: &'h Ctx, value: Value<'h>, again: bool) -> Res<Option<Exit>> {
        let exception = exceptions::of_thrown(h, value)?;
        if let Some(found) = self.handler() {
            h.charge(found.cost + CAUGHT)?;
            let shown = exceptions::shown(h, exception)?;
            h.charge(shown.as_ref().map_or(0, |(_, message)| message.len() as u64 / 2))?;
            if let Some((reason, message)) = shown
                && !self.is_noted(reason, &message, again)
            {
                self.note_caught(&found, Error::new(reason, message));
            }
            self.go_on_at(&found, exception);
            return Ok(None);
        }
        match exceptions::uncaught(h, exception)? {
            Uncaught::Fail(value) => self.fail_program(value).map(Some),
            Uncaught::Error(error) => Err(self.as_noted(error, again).into()),
        }
    }

    /// `(fail value)`: goes on at its handler, or ends the program.
    pub(super) fn fail(&mut self, h: &'h Ctx, value: Value<'h>) -> Res<Option<Exit>> {
        let Some(found) = self.handler() else { return self.fail_program(value).map(Some) };
        h.charge(found.cost)?;
        let exception = exceptions::of_failed(h, value)?;
        self.go_on_at(&found, exception);
        Ok(None)
    }

    /// Ends the program as failed. A worker has to return a value: it cannot end the program.
    fn fail_program(&mut self, value: Value<'h>) -> Res<Exit> {
        if self.worker {
            return Err(not_in_a_worker("fail"));
        }
        self.result = value;
        Ok(Exit::Done(Ending::Fail))
    }

    /// Is this the error that was caught last? What a program throws is another each time, unless it throws it `again`.
    fn is_noted(&self, reason: Reason, message: &str, again: bool) -> bool {
        let cut = Error::new(reason, message);
        let same = |caught: &Caught| caught.reason == reason && caught.error.message == cut.message;
        (again || reason != Reason::UncaughtException) && self.caught.as_deref().is_some_and(same)
    }

    /// The error, with the place that it had when it was caught, if it is the one that was caught last.
    fn as_noted(&self, mut error: Error, again: bool) -> Error {
        let is_noted = self.is_noted(error.reason, &error.message, again);
        let Some(Caught { error: noted, .. }) = self.caught.as_deref().filter(|_| is_noted) else { return error };
        if error.reason != Reason::UncaughtException {
            return noted.clone();
        }
        (error.span, error.trace) = (noted.span, noted.trace.clone());
        error
    }
}

impl Machine {
    /// Gives the program the error of a call that its driver made for it. Returns whether the program caught it, and goes on; the run
    /// has ended otherwise.
    pub(super) fn raise(&mut self, error: Error) -> bool {
        let waits = matches!(self.status, Status::Awaiting(_));
        if waits && error.is_catchable() && self.at_rest(|state| state.is_handled()) {
            match self.metered(u64::MAX, |h, state| state.catch(h, &error)) {
                Ok(_) => {
                    self.status = Status::Ready;
                    return true;
                }
                Err(Fault::Pause(spent)) if spent <= self.fuel_ceiling() => {
                    let late = Error::new(Reason::Timeout, "the run was ended while an error was brought in");
                    let late = self.place_error(late);
                    self.end(Ending::Error(Box::new(late)));
                    return false;
                }
                Err(fault) => {
                    let error = self.error_of(fault);
                    self.end(Ending::Error(Box::new(error)));
                    return false;
                }
            }
        }
        let error = self.place_error(error);
        self.end(Ending::Error(Box::new(error)));
        false
    }
}
