//! Operations on a run's state that are allowed during a compaction. Values may then refer to incomplete objects, so
//! these operations read no object and bring in no values from elsewhere.

use super::call_positions::CallPosition;
use super::machine::{Machine, Position};
use crate::code::Called;
use crate::error::Error;
use crate::heap::Value;
use crate::stack::{Code, State};

/// The state of a run, without access to its values.
pub(super) struct AtRest<'s, 'h>(&'s mut State<'h>);

impl Machine {
    /// Works with the state, whether or not a compaction is in progress.
    #[allow(unsafe_code, reason = "the methods of AtRest keep to what is allowed")]
    pub(super) fn at_rest<T>(&mut self, work: impl for<'s, 'h> FnOnce(AtRest<'s, 'h>) -> T) -> T {
        // SAFETY: the state is accessible only through the methods below. They read no object, and the only values that
        // they store are nil and definitions, which were among the roots.
        unsafe { self.store.enter_roots(|state| work(AtRest(state))) }
    }
}

impl AtRest<'_, '_> {
    /// Gives an error its position, from the code and the positions of the frames.
    pub(super) fn place_error(&self, error: Error) -> Error {
        self.0.place_error(error)
    }

    /// Returns true if the definition in this slot has no value.
    pub(super) fn is_undefined(&self, place: usize) -> bool {
        matches!(self.0.globals.get(place), Some(Value::Unset))
    }

    /// Returns the current position.
    pub(super) fn position(&self) -> Position {
        let (at, called) = match self.0.frames.last().map(|frame| frame.code) {
            Some(Code::Lisp { pc, .. }) => (pc as usize, false),
            Some(Code::Native { called, index, .. }) => (index, called),
            None => (0, false),
        };
        Position { frames: self.0.frames.len(), at, called }
    }

    /// Shows the calls in progress, from the code and the positions of the frames.
    pub(super) fn see_calls(&self, max: usize, see: &mut dyn FnMut(CallPosition<'_>)) {
        let frames = &self.0.frames;
        let last = frames.len().checked_sub(1).filter(|last| *last >= max);
        for number in (0..frames.len().min(max)).chain(last) {
            let (unit, proto) = match frames[number].code {
                Code::Lisp { unit, proto, .. } => (unit, proto),
                Code::Native { native, .. } => {
                    see(CallPosition { function: Some(native.name), place: None });
                    continue;
                }
            };
            let at = self.0.place(number);
            let place = |span| Some((unit.number, span)).filter(|_| !unit.prelude);
            let mut function = Some(proto.name.as_deref());
            for call in proto.in_place_at(at).rev() {
                if let Some(function) = function.take() {
                    see(CallPosition { function, place: place(call.call) });
                }
                see(CallPosition { function: Some(call.native.row().name), place: None });
                function = (call.called == Called::Literal).then_some(None);
            }
            if let Some(function) = function {
                see(CallPosition { function, place: proto.spans.get(at as usize).copied().and_then(place) });
            }
        }
    }

    /// Returns true if an error at the current position has a handler.
    pub(super) fn is_handled(&self) -> bool {
        self.0.is_handled()
    }

    /// Returns true if a call waits for the driver.
    pub(super) fn has_pending(&self) -> bool {
        self.0.pending.is_some()
    }

    /// Drops all calls in progress and their memory. Returns the bytes to release.
    pub(super) fn clear_calls(&mut self) -> usize {
        self.0.clear_calls()
    }

    /// Restores the definitions from before the program.
    pub(super) fn restore_definitions(&mut self) {
        self.0.globals.clone_from(&self.0.saved_globals);
    }

    /// Drops the state for undoing turns. Returns false if there is none.
    pub(super) fn forget_turns(&mut self) -> bool {
        let some = !self.0.turns.is_empty();
        self.0.turns.clear();
        some
    }

    /// Sets the result to nil.
    pub(super) fn clear_result(&mut self) {
        self.0.result = Value::Nil;
    }
}
