//! Replies: the values of calls made by the driver, built in the run's own heap between two instructions.

use super::machine::{Ending, Machine, Status};
use crate::context::Ctx;
use crate::error::{Error, Reason};
use crate::heap::{Fault, Heap, Res, Value};
use crate::stack::State;

impl Machine {
    /// Passes the call that waits for a value to `look`: the name of the tool or built-in function, and the arguments.
    pub fn with_call<T>(&mut self, look: impl for<'h> FnOnce(&'h Heap, &str, &[Value<'h>]) -> T) -> Option<T> {
        self.store.enter(|h, state, _| state.awaited_call().map(|(name, args)| look(h, name, args)))
    }

    /// Gives the waiting call its value, which `build` builds in the run's heap and which is charged to the run.
    ///
    /// # Errors
    /// Returns the error that ended the run, if the value does not fit.
    pub fn reply(&mut self, build: impl for<'h> Fn(&'h Heap) -> Res<Value<'h>>) -> Result<(), Error> {
        self.reply_with(|h, _| build(h))
    }

    fn reply_with(&mut self, build: impl for<'h> Fn(&'h Heap, &State<'h>) -> Res<Value<'h>>) -> Result<(), Error> {
        let waits = self.at_rest(|state| state.has_pending());
        if !waits || !matches!(self.status, Status::Awaiting(_)) {
            return Err(Error::new(Reason::HostFault, "no call is waiting for a reply"));
        }
        let built = self.metered(u64::MAX, |h, state| {
            let value = build(h, state)?;
            if let Some(pending) = state.pending.take() {
                state.stack[pending.dst as usize] = value;
            }
            Ok(())
        });
        match built {
            Ok(()) => {
                self.status = Status::Ready;
                Ok(())
            }
            Err(fault) => {
                let error = match fault {
                    Fault::Error(error) if error.is_catchable() => {
                        let message = error.message.clone();
                        return match (self.raise(*error), &self.status) {
                            (true, _) => Ok(()),
                            (false, Status::Ended(Ending::Error(error))) => Err((**error).clone()),
                            (false, _) => Err(Error::new(Reason::HostFault, message)),
                        };
                    }
                    Fault::Pause(spent) if spent <= self.fuel_ceiling() => {
                        self.place_error(Error::new(Reason::Timeout, "the run ended while a reply was converted"))
                    }
                    fault => self.error_of(fault),
                };
                self.end(Ending::Error(Box::new(error.clone())));
                Err(error)
            }
        }
    }

    /// Converts the waiting call, for example its arguments to JSON text. Memory and fuel for the conversion are
    /// charged to the run. Without an interrupt flag it may spend `unwatched`.
    ///
    /// # Errors
    /// Returns `None` if the run must end, or if `unwatched` was not enough; nothing is spent then, and the conversion
    /// can be tried again. Otherwise returns the error with which the run must end.
    pub fn take_call<T>(
        &mut self,
        unwatched: u64,
        take: impl for<'h> Fn(&'h Heap, &str, &[Value<'h>]) -> Res<T>,
    ) -> Result<T, Option<Error>> {
        let taken = self.metered(unwatched, |h, state| {
            let (name, args) =
                state.awaited_call().ok_or_else(|| Error::new(Reason::HostFault, "no call is waiting"))?;
            take(h, name, args)
        });
        taken.map_err(|fault| match fault {
            Fault::Pause(spent) if spent <= self.fuel_ceiling() => None,
            Fault::Error(error) => Some(*error),
            fault => Some(self.error_of(fault)),
        })
    }

    /// Does work of the host for the program, between two instructions, at the expense of the run. If memory is short,
    /// the heap is compacted and the work done again. Without an interrupt flag it may spend `unwatched`.
    pub(super) fn metered<T>(
        &mut self,
        unwatched: u64,
        work: impl for<'h> Fn(&'h Ctx, &mut State<'h>) -> Res<T>,
    ) -> Res<T> {
        let ceiling = self.fuel_ceiling();
        let before = self.store.heap().spent();
        let max = if self.store.heap().meter.is_watched() { 0 } else { unwatched };
        self.store.heap().meter.set_slice(before.saturating_add(max), ceiling);
        let mut done = self.store.enter(|h, state, _| work(h, state));
        let mut tries = 0;
        while let Err(Fault::Collect(bytes)) = done {
            let early = self.store.heap().trapped_early();
            if early {
                self.stride = self.settings.compact_every.unwrap_or(1).max(1) << tries.min(40);
                self.store.heap().trap_after(self.stride);
            }
            if tries > 0 && !early {
                break;
            }
            tries += 1;
            self.take_back(before);
            if let Err(stopped) = self.collect_watched() {
                done = Err(stopped);
                break;
            }
            if !self.store.heap().fits(bytes) {
                break;
            }
            done = self.store.enter(|h, state, _| work(h, state));
        }
        match &done {
            Ok(_) if self.store.heap().spent() > ceiling => return Err(Fault::Pause(self.store.heap().spent())),
            // How far it came varies.
            Err(Fault::Pause(_) | Fault::Collect(_)) => self.take_back(before),
            _ => {}
        }
        done
    }

    /// Gives the waiting call its value, which is built from its own arguments.
    ///
    /// # Errors
    /// Returns the error that ended the run, if the value does not fit.
    pub fn reply_from_call(
        &mut self,
        build: impl for<'h> Fn(&'h Heap, &str, &[Value<'h>]) -> Res<Value<'h>>,
    ) -> Result<(), Error> {
        self.reply_with(|h, state| match state.awaited_call() {
            Some((name, args)) => build(h, name, args),
            None => Ok(Value::Nil),
        })
    }

    /// Fails the waiting call with an error. Returns true if the program catches it and continues; otherwise the run
    /// has ended.
    pub fn reply_error(&mut self, error: Error) -> bool {
        self.raise(error)
    }
}

impl<'h> State<'h> {
    /// Returns the call that waits for the driver's reply: the name of the tool or built-in function, and the
    /// arguments.
    pub(super) fn awaited_call(&self) -> Option<(&'h str, &[Value<'h>])> {
        let call = self.pending?;
        let name = match self.stack[call.at()] {
            Value::Tool(name) => name.text(),
            Value::Builtin(id) => id.row().name,
            _ => return None,
        };
        Some((name, &self.stack[call.args()]))
    }
}
