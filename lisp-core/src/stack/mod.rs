//! The state of a running program: the value stack, the frames, the definitions. The modules above it, `vm` and
//! `natives`, push frames and pop values; this module depends on neither.

mod compiled;
mod control;
mod frame;
mod native_fn;
mod native_frame;
mod roots;
mod slots;
mod unit;
mod units;

pub(crate) use compiled::Compiled;
pub use control::Effect;
pub(crate) use control::{Call, Control};
pub(crate) use frame::{Code, Frame};
pub(crate) use native_fn::{NativeFn, ParallelFn, Start, WorkerCall};
pub(crate) use native_frame::{NativeFrame, RESULT};
pub(crate) use roots::Roots;
pub(crate) use slots::{slot, slot_on_stack};
pub(crate) use unit::Unit;
pub(crate) use units::Units;

use crate::context::Ctx;
use crate::error::{Error, Reason};
use crate::heap::{Res, Value};
use slots::{MAX_SLOTS, too_many_slots};
use std::collections::VecDeque;

/// The last error that a program caught, in case it ends the run after all.
pub(crate) struct Caught {
    /// Its own reason, whatever reason the functions around it give it.
    pub(crate) reason: Reason,
    /// The error as it would have ended the run.
    pub(crate) error: Error,
    /// Whether it occurred in the function that caught it.
    pub(crate) at_home: bool,
}

/// The state of a run under the brand of its heap.
pub(crate) struct State<'h> {
    pub(crate) stack: Vec<Value<'h>>,
    pub(crate) frames: Vec<Frame<'h>>,
    pub(crate) globals: Vec<Value<'h>>,
    pub(crate) units: Units<'h>,
    /// The definitions from before the running program.
    pub(crate) saved_globals: Vec<Value<'h>>,
    /// The changes of the session's turns that can be undone, the most recent last: slots of definitions, and their
    /// values before the turn.
    pub(crate) turns: VecDeque<Vec<(usize, Value<'h>)>>,
    /// The call, usually of a tool, that waits for the driver's reply. It is on the stack.
    pub(crate) pending: Option<Call>,
    pub(crate) result: Value<'h>,
    pub(crate) caught: Option<Box<Caught>>,
    /// Slots below this one are traced by the compaction in progress.
    top_to_trace: usize,
    pub(crate) loop_limit: u64,
    /// Whether this is a worker of a parallel call.
    pub(crate) worker: bool,
}

impl<'h> State<'h> {
    pub(crate) fn new(loop_limit: u64, units: Units<'h>) -> Self {
        State {
            stack: Vec::new(),
            frames: Vec::new(),
            globals: Vec::new(),
            units,
            saved_globals: Vec::new(),
            turns: VecDeque::new(),
            pending: None,
            result: Value::Nil,
            caught: None,
            top_to_trace: 0,
            loop_limit,
            worker: false,
        }
    }

    /// Returns one past the last slot that a frame or a waiting tool call uses.
    fn live_top(&self) -> usize {
        let frames = self.frames.iter().map(|f| {
            f.base as usize
                + match f.code {
                    Code::Lisp { proto, .. } => proto.code.registers(),
                    Code::Native { size, .. } => size as usize,
                }
        });
        let pending = self.pending.map_or(0, |call| call.args().end);
        frames.max().unwrap_or(0).max(pending).min(self.stack.len())
    }

    /// Ensures that the stack has slots up to `need`.
    #[inline]
    pub(crate) fn ensure(&mut self, h: &Ctx, need: usize) -> Res<()> {
        if need > self.stack.len() { self.grow_stack(h, need) } else { Ok(()) }
    }

    #[cold]
    fn grow_stack(&mut self, h: &Ctx, need: usize) -> Res<()> {
        let len = self.stack.len();
        let size = need.max(len + len / 2).max(32);
        if size > MAX_SLOTS {
            return Err(too_many_slots());
        }
        h.check_machine(size * std::mem::size_of::<Value<'_>>())?;
        h.charge_external((size - len) * std::mem::size_of::<Value<'_>>())?;
        self.stack.reserve_exact(size - len);
        self.stack.resize(size, Value::Nil);
        Ok(())
    }

    /// Ensures that one more frame can be pushed.
    #[inline]
    pub(crate) fn reserve_frame(&mut self, h: &Ctx) -> Res<()> {
        if self.frames.len() == self.frames.capacity() {
            let more = (self.frames.len() / 2).max(4);
            h.check_machine((self.frames.len() + more) * std::mem::size_of::<Frame<'_>>())?;
            h.charge_external(more * std::mem::size_of::<Frame<'_>>())?;
            self.frames.reserve_exact(more);
        }
        Ok(())
    }

    /// Drops all calls in progress, and their memory if it is much. Returns the bytes to release.
    pub(crate) fn clear_calls(&mut self) -> usize {
        /// The number of slots kept for the next program.
        const KEPT_SLOTS: usize = 256;
        self.frames.clear();
        self.pending = None;
        if self.stack.len() <= KEPT_SLOTS {
            return 0;
        }
        let frames = std::mem::take(&mut self.frames).capacity() * std::mem::size_of::<Frame<'_>>();
        let slots = std::mem::take(&mut self.stack).len() * std::mem::size_of::<Value<'_>>();
        frames + slots
    }

    /// Pops the frame on top, and stores its value.
    #[inline]
    pub(crate) fn finish_frame(&mut self, value: Value<'h>) {
        if let Some(frame) = self.frames.pop() {
            self.stack[frame.dst as usize] = value;
        }
    }
}
