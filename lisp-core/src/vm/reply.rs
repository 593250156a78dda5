//! What tools answered: it is built in the run's own heap, between two instructions.

use super::Ending;
use super::run::{Machine, Status};
use crate::context::Ctx;
use crate::error::{Error, Reason};
use crate::heap::{Fault, Heap, Res, Value};
use crate::stack::State;

impl Machine {
    /// The tool's result, built in the run's own heap and charged to it.
    ///
    /// # Errors
    /// The error that ended the run, when the result does not fit.
    pub fn reply(&mut self, build: impl for<'h> Fn(&'h Heap) -> Res<Value<'h>>) -> Result<(), Error> {
        self.reply_with(|h, _| build(h))
    }

    fn reply_with(&mut self, build: impl for<'h> Fn(&'h Heap, &State<'h>) -> Res<Value<'h>>) -> Result<(), Error> {
        let waits = self.at_rest(|state| state.has_pending());
        if !waits || !matches!(self.status, Status::Awaiting(_)) {
            return Err(Error::new(Reason::HostFault, "no tool call is waiting for a reply"));
        }
        let built = self.on_the_bill(u64::MAX, |h, state| {
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
                    Fault::Pause(spent) if spent <= self.fuel_ceiling() => {
                        self.place_error(Error::new(Reason::Timeout, "the run was ended while a reply was brought in"))
                    }
                    fault => self.error_of(fault),
                };
                self.end(Ending::Error(Box::new(error.clone())));
                Err(error)
            }
        }
    }

    /// Makes something of the tool call that the machine waits for, such as the JSON text of its arguments: what is built in the
    /// heap on the way is on the program's bill, and so is the fuel. Without a flag it may do what costs `unwatched`.
    ///
    /// # Errors
    /// `None` when the run is to end, or when that was not enough without a flag: then nothing has been spent, and it can
    /// be asked for again. Otherwise the error with which the run is to end.
    pub fn take_call<T>(
        &mut self,
        unwatched: u64,
        take: impl for<'h> Fn(&'h Heap, &str, &[Value<'h>]) -> Res<T>,
    ) -> Result<T, Option<Error>> {
        let taken = self.on_the_bill(unwatched, |h, state| {
            let (name, args) =
                state.awaited_call().ok_or_else(|| Error::new(Reason::HostFault, "no tool call is waiting"))?;
            take(h, name, args)
        });
        taken.map_err(|fault| match fault {
            Fault::Pause(spent) if spent <= self.fuel_ceiling() => None,
            Fault::Error(error) => Some(*error),
            fault => Some(self.error_of(fault)),
        })
    }

    /// Work of the host for the program, between two instructions: its fuel and memory are the program's. When there is
    /// too little memory the heap is compacted and the work done again. Without a flag that ends the run it may spend `unwatched`.
    fn on_the_bill<T>(&mut self, unwatched: u64, work: impl for<'h> Fn(&'h Ctx, &mut State<'h>) -> Res<T>) -> Res<T> {
        let ceiling = self.fuel_ceiling();
        let before = self.store.heap().spent();
        let most = if self.store.heap().meter.is_watched() { 0 } else { unwatched };
        self.store.heap().meter.set_slice(before.saturating_add(most), ceiling);
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
            self.store.heap().meter.set_spent(before);
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
            // How far it came is not the same each time.
            Err(Fault::Pause(_) | Fault::Collect(_)) => self.store.heap().meter.set_spent(before),
            _ => {}
        }
        done
    }

    /// The tool's result, built from its own arguments.
    ///
    /// # Errors
    /// The error that ended the run, when the result does not fit.
    pub fn reply_from_call(
        &mut self,
        build: impl for<'h> Fn(&'h Heap, &str, &[Value<'h>]) -> Res<Value<'h>>,
    ) -> Result<(), Error> {
        self.reply_with(|h, state| match state.awaited_call() {
            Some((name, args)) => build(h, name, args),
            None => Ok(Value::Nil),
        })
    }

    /// The tool failed: the run ends with this error.
    pub fn reply_error(&mut self, error: Error) {
        let error = self.place_error(error);
        self.end(Ending::Error(Box::new(error)));
    }
}
