//! Errors and their handlers. Code without errors spends no instructions on handlers: each function has a table of the
//! instructions whose errors are handled, and where.

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

/// The cost of creating an error and its value, in addition to finding the handler and to the message.
const CAUGHT: u64 = 40;

/// The handler of an error.
struct Found {
    /// The index of its frame.
    frame: usize,
    target: u32,
    by: HandledBy,
    /// The cost of finding it and continuing there.
    cost: u64,
}

impl<'h> State<'h> {
    /// Returns the innermost handler for the current position.
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

    /// Returns true if the current position has a handler.
    pub(super) fn is_handled(&self) -> bool {
        self.handler().is_some()
    }

    /// Continues at a handler, with the value that stands for the error.
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

    /// Notes the position of a caught error, in case it ends the run after all.
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

    /// Returns the number of calls in place around a handler.
    fn calls_around(&self, found: &Found) -> usize {
        match self.frames[found.frame].code {
            Code::Lisp { proto, .. } => proto.in_place_at(found.target).count(),
            Code::Native { .. } => 0,
        }
    }

    /// Returns true if the position of the frame of `start` is inside a call in place from there on.
    fn has_calls_in_place(&self, start: Start) -> bool {
        match self.frames[start.frame].code {
            Code::Lisp { proto, .. } => self.in_place(start.frame, proto, start).next().is_some(),
            Code::Native { .. } => false,
        }
    }

    /// Passes an error to its handler. Returns false, with nothing changed, if there is none.
    pub(super) fn catch(&mut self, h: &'h Ctx, error: &Error) -> Res<bool> {
        if !error.is_catchable() {
            return Ok(false);
        }
        let Some(found) = self.handler() else { return Ok(false) };
        if found.by == HandledBy::DoingAgain {
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

    /// Switches to the general code if the current instruction needs a frame and its work can be restarted. Returns
    /// true if it does.
    pub(super) fn starts_anew(&mut self, h: &'h Ctx) -> Res<bool> {
        let Some(frame) = self.frames.len().checked_sub(1) else { return Ok(false) };
        let Code::Lisp { proto, .. } = self.frames[frame].code else { return Ok(false) };
        let Some(Handler { target, by, .. }) = proto.code.doing_anew(self.place(frame)) else { return Ok(false) };
        h.meter.set_spent(h.meter.restart_fuel());
        h.charge(1)?;
        self.go_on_at(&Found { frame, target, by, cost: 1 }, Value::Nil);
        Ok(true)
    }

    /// Runs like [`State::run`], and continues at the handlers of errors.
    pub(super) fn run_and_catch(&mut self, h: &'h Ctx) -> Res<Exit> {
        loop {
            match self.run(h) {
                // If this faults, the instruction runs again, and fails again.
                Err(Fault::Error(error)) => match self.catch(h, &error)? {
                    true => {}
                    false => return Err(Fault::Error(error)),
                },
                out => return out,
            }
        }
    }

    /// Throws a value: continues at its handler, or ends the program. `again` means that it was caught just before.
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

    /// `(fail value)`: continues at its handler, or ends the program.
    pub(super) fn fail(&mut self, h: &'h Ctx, value: Value<'h>) -> Res<Option<Exit>> {
        let Some(found) = self.handler() else { return self.fail_program(value).map(Some) };
        h.charge(found.cost)?;
        let exception = exceptions::of_failed(h, value)?;
        self.go_on_at(&found, exception);
        Ok(None)
    }

    /// Ends the program as failed. A worker cannot end the program: it must return a value.
    fn fail_program(&mut self, value: Value<'h>) -> Res<Exit> {
        if self.worker {
            return Err(not_in_a_worker("fail"));
        }
        self.result = value;
        Ok(Exit::Done(Ending::Fail))
    }

    /// Returns true if this is the last caught error. A program throws a new one each time, unless it throws it
    /// `again`.
    fn is_noted(&self, reason: Reason, message: &str, again: bool) -> bool {
        let cut = Error::new(reason, message);
        let same = |caught: &Caught| caught.reason == reason && caught.error.message == cut.message;
        (again || reason != Reason::UncaughtException) && self.caught.as_deref().is_some_and(same)
    }

    /// Returns the error, with its position from when it was caught if it is the last caught error.
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
    /// Gives the program the error of a call that its driver made for it. Returns true if the program catches it and
    /// continues; otherwise the run has ended.
    pub(super) fn raise(&mut self, error: Error) -> bool {
        let waits = matches!(self.status, Status::Awaiting(_));
        if waits && error.is_catchable() && self.at_rest(|state| state.is_handled()) {
            match self.metered(u64::MAX, |h, state| state.catch(h, &error)) {
                Ok(_) => {
                    self.status = Status::Ready;
                    return true;
                }
                Err(Fault::Pause(spent)) if spent <= self.fuel_ceiling() => {
                    let late = Error::new(Reason::Timeout, "the run ended while an error was converted");
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
