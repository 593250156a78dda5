//! What tools answered: it is built in the run's own heap, between two instructions.

use super::Ending;
use super::run::{Machine, Status};
use super::state::State;
use crate::error::{Error, Reason};
use crate::heap::{Fault, Heap, Res, Value};

impl Machine {
    /// The tool's result, built in the run's own heap and charged to it.
    ///
    /// # Errors
    /// The error that ended the run, when the result does not fit.
    pub fn reply(&mut self, build: impl for<'h> Fn(&'h Heap) -> Res<Value<'h>>) -> Result<(), Error> {
        self.reply_with(|h, _| build(h))
    }

    fn reply_with(&mut self, build: impl for<'h> Fn(&'h Heap, &State<'h>) -> Res<Value<'h>>) -> Result<(), Error> {
        if !matches!(self.status, Status::AwaitingTool) {
            return Err(Error::new(Reason::HostFault, "no tool call is waiting for a reply"));
        }
        self.store.heap().set_slice(u64::MAX, u64::MAX);
        let reply = |machine: &mut Self| {
            machine.store.enter(|h, state, _| {
                let value = build(h, state)?;
                if let Some(pending) = state.pending.take() {
                    state.stack[pending.dst as usize] = value;
                }
                Ok(())
            })
        };
        let before = self.store.heap().spent();
        let mut built = reply(self);
        let mut tries = 0;
        while let Err(Fault::Collect(bytes)) = built {
            let early = self.store.heap().trapped_early();
            if early {
                self.stride = self.settings.compact_every.unwrap_or(1).max(1) << tries.min(40);
                self.store.heap().trap_after(self.stride);
            }
            if tries > 0 && !early {
                break;
            }
            tries += 1;
            if let Err(stopped) = self.collect_watched() {
                built = Err(stopped);
                break;
            }
            if !self.store.heap().affords(bytes) {
                break;
            }
            self.store.heap().set_spent(before);
            built = reply(self);
        }
        match built {
            Ok(()) => {
                self.status = Status::Ready;
                Ok(())
            }
            Err(fault) => {
                let error = self.error_of(fault);
                self.end(Ending::Error(Box::new(error.clone())));
                Err(error)
            }
        }
    }

    /// The tool's result, built from its own arguments.
    ///
    /// # Errors
    /// The error that ended the run, when the result does not fit.
    pub fn reply_from_call(
        &mut self,
        build: impl for<'h> Fn(&'h Heap, &str, &[Value<'h>]) -> Res<Value<'h>>,
    ) -> Result<(), Error> {
        self.reply_with(|h, state| {
            let Some(pending) = state.pending else { return Ok(Value::Nil) };
            let at = pending.at as usize;
            let name = match state.stack[at] {
                Value::Tool(name) => name.text,
                _ => "",
            };
            build(h, name, &state.stack[at + 1..at + 1 + pending.argc as usize])
        })
    }

    /// The tool failed: the run ends with this error.
    pub fn reply_error(&mut self, error: Error) {
        let error = self.place_error(error);
        self.end(Ending::Error(Box::new(error)));
    }
}
