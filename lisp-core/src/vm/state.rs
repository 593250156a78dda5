//! The state of a run: one value stack, one frame stack, the definitions. Everything here is a root.

use super::call::Called;
use crate::code::{ProgramId, Proto};
use crate::compile::Program;
use crate::cost;
use crate::error::{Error, Reason};
use crate::heap::{Closure, Collector, Fault, Heap, Res, Rooted, Value};
use crate::natives::FrameOp;
use std::sync::Arc;

/// A program loaded into a machine: its definitions are linked to the machine's.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) program: Arc<Program>,
    /// What closures over its functions call it by.
    pub(crate) id: ProgramId,
    /// What errors in it call it by.
    pub(crate) number: u64,
    /// For each definition the program names, its place in the machine.
    pub(crate) links: Box<[usize]>,
    /// Part of the language: its frames are no place for an error, and its loops have no round limit.
    pub(crate) prelude: bool,
}

/// The programs that a machine has loaded, by number. Workers have a copy of their caller's.
#[derive(Clone, Default)]
pub(crate) struct Units<'h>(Vec<&'h Unit>);

impl<'h> Units<'h> {
    /// The number that the prelude has in every machine.
    pub(crate) const PRELUDE: ProgramId = ProgramId(u32::MAX);

    /// The number for the next program.
    pub(crate) fn next(&self) -> ProgramId {
        // Each takes far more than one byte of memory.
        ProgramId(u32::try_from(self.0.len()).unwrap_or(u32::MAX - 1))
    }

    /// Adds the program that has the next number.
    pub(crate) fn add(&mut self, unit: &'h Unit) {
        debug_assert_eq!(unit.id, self.next());
        self.0.push(unit);
    }

    /// The program of a number, which is most often the one that is `running`. `None` for a number that no closure has.
    #[inline(always)]
    pub(crate) fn find(&self, id: ProgramId, running: &'h Unit) -> Option<&'h Unit> {
        if running.id == id { Some(running) } else { self.get(id) }
    }

    /// The program of a number; `None` for a number that no closure has.
    #[inline]
    pub(crate) fn get(&self, id: ProgramId) -> Option<&'h Unit> {
        match self.0.get(id.0 as usize) {
            Some(unit) => Some(unit),
            None => super::prelude::unit(id),
        }
    }
}

/// What a frame runs.
#[derive(Clone, Copy)]
pub(crate) enum Code<'h> {
    /// Instructions.
    Lisp { unit: &'h Unit, proto: &'h Proto, closure: Option<&'h Closure<'h>>, pc: u32 },
    /// A function that calls functions, with `size` registers. `waiting` says that the result of a call is in its first
    /// register; `i` counts.
    Native { op: FrameOp, waiting: bool, i: usize, size: u32 },
}

/// A call in progress: its registers begin at `base`, its value goes to stack slot `dst`.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'h> {
    pub(crate) code: Code<'h>,
    pub(crate) base: u32,
    pub(crate) dst: u32,
}

const _: () = assert!(std::mem::size_of::<Frame<'_>>() == 40, "a frame is five words");

/// The most slots of a stack: frames keep the numbers of slots in 32 bits.
const MOST_SLOTS: usize = u32::MAX as usize;

/// The number of a slot, or of slots, as frames keep it. The stack never has more than this can hold, so a number that
/// does not fit is refused before anything is written.
#[inline]
pub(crate) fn slot(at: usize) -> Res<u32> {
    u32::try_from(at).map_err(|_| too_many_slots())
}

/// The number of a slot that is on the stack.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the stack has no more than MOST_SLOTS slots")]
pub(crate) fn slot_on_stack(at: usize) -> u32 {
    debug_assert!(at <= MOST_SLOTS);
    at as u32
}

#[cold]
fn too_many_slots() -> Fault {
    Error::new(Reason::MemoryExceeded, format!("the stack has more than {MOST_SLOTS} slots"))
        .hint("recur less deeply, or call with fewer arguments")
        .into()
}

/// A tool call that waits for its driver: the tool and its arguments stand on the stack.
#[derive(Clone, Copy)]
pub(crate) struct Pending {
    pub(crate) at: u32,
    pub(crate) argc: u32,
    pub(crate) dst: u32,
}

/// The state of a run under the brand of its heap.
pub(crate) struct State<'h> {
    pub(crate) stack: Vec<Value<'h>>,
    pub(crate) frames: Vec<Frame<'h>>,
    pub(crate) globals: Vec<Value<'h>>,
    pub(crate) units: Units<'h>,
    /// The definitions as they were before the program that is running.
    pub(crate) saved_globals: Vec<Value<'h>>,
    pub(crate) pending: Option<Pending>,
    pub(crate) result: Value<'h>,
    /// Slots below this one are traced by the compaction that is under way.
    top_to_trace: usize,
    pub(crate) loop_limit: u64,
    /// Is this a worker of a parallel call?
    pub(crate) worker: bool,
}

/// The family of states, by brand.
pub(crate) struct Roots;

impl Rooted for Roots {
    type In<'h> = State<'h>;

    fn trace(state: &mut State<'static>, c: &mut Collector, from: usize, count: usize) -> Option<usize> {
        if from == 0 {
            state.top_to_trace = state.live_top();
            // All definitions at once: when a run fails, those from before it take the place of its own.
            for value in state.globals.iter_mut().chain(&mut state.saved_globals) {
                *value = c.value(*value);
            }
            state.result = c.value(state.result);
        }
        // Then the stack and the frames: when a run ends meanwhile, there are no more frames and the rest of the stack is
        // free.
        let over = state.frames.is_empty() && state.pending.is_none();
        let top = if over { 0 } else { state.top_to_trace };
        let slots = state.stack.len();
        let end = from.saturating_add(count).min(slots + state.frames.len());
        for (i, slot) in state.stack.iter_mut().enumerate().take(end).skip(from) {
            // Slots above the top frame keep what was there last; nothing may refer to it after this.
            *slot = if i < top { c.value(*slot) } else { Value::Nil };
        }
        for frame in state.frames.iter_mut().take(end.saturating_sub(slots)).skip(from.saturating_sub(slots)) {
            if let Code::Lisp { closure: Some(closure), .. } = &mut frame.code {
                *closure = c.closure(closure);
            }
        }
        (end < slots + state.frames.len()).then_some(end)
    }

    fn result(state: &State<'static>) -> Value<'static> {
        state.result
    }
}

impl<'h> State<'h> {
    pub(crate) fn new(loop_limit: u64) -> Self {
        State {
            stack: Vec::new(),
            frames: Vec::new(),
            globals: Vec::new(),
            units: Units::default(),
            saved_globals: Vec::new(),
            pending: None,
            result: Value::Nil,
            top_to_trace: 0,
            loop_limit,
            worker: false,
        }
    }

    /// One past the last slot that a frame or a waiting tool call uses.
    fn live_top(&self) -> usize {
        let frames = self.frames.iter().map(|f| {
            f.base as usize
                + match f.code {
                    Code::Lisp { proto, .. } => proto.code.registers(),
                    Code::Native { size, .. } => size as usize,
                }
        });
        let pending = self.pending.map_or(0, |p| p.at as usize + 1 + p.argc as usize);
        frames.max().unwrap_or(0).max(pending).min(self.stack.len())
    }

    /// Makes sure that the stack has slots up to `need`.
    #[inline]
    pub(crate) fn ensure(&mut self, h: &Heap, need: usize) -> Res<()> {
        if need > self.stack.len() { self.grow_stack(h, need) } else { Ok(()) }
    }

    #[cold]
    fn grow_stack(&mut self, h: &Heap, need: usize) -> Res<()> {
        let len = self.stack.len();
        let size = need.max(len + len / 2).max(32);
        if size > MOST_SLOTS {
            return Err(too_many_slots());
        }
        h.hold((size - len) * std::mem::size_of::<Value<'_>>())?;
        self.stack.reserve_exact(size - len);
        self.stack.resize(size, Value::Nil);
        Ok(())
    }

    /// Makes sure that one more frame can be pushed.
    #[inline]
    pub(crate) fn reserve_frame(&mut self, h: &Heap) -> Res<()> {
        if self.frames.len() == self.frames.capacity() {
            let more = (self.frames.len() / 2).max(4);
            h.hold(more * std::mem::size_of::<Frame<'_>>())?;
            self.frames.reserve_exact(more);
        }
        Ok(())
    }

    /// Pops the frame on top; its value goes where it belongs.
    #[inline]
    pub(crate) fn finish_frame(&mut self, value: Value<'h>) {
        if let Some(frame) = self.frames.pop() {
            self.stack[frame.dst as usize] = value;
        }
    }

    /// Notes in the native frame on top that a result has come, or that it has been dealt with.
    pub(crate) fn set_native(&mut self, now_waiting: bool, at: usize) {
        if let Some(Frame { code: Code::Native { waiting, i, .. }, .. }) = self.frames.last_mut() {
            (*waiting, *i) = (now_waiting, at);
        }
    }

    /// The usual call from the native frame on top: a function of the program with as many arguments as it takes.
    /// Answers false, with nothing done, when this is not one.
    #[inline]
    pub(crate) fn enter_from_native<const N: usize>(
        &mut self,
        h: &'h Heap,
        f: Value<'h>,
        args: [Value<'h>; N],
        count: usize,
    ) -> Res<bool> {
        let Value::Closure(c) = f else { return Ok(false) };
        if c.proto.arity as usize != N || c.proto.variadic {
            return Ok(false);
        }
        let Some(unit) = self.units.get(c.program) else { return Ok(false) };
        let Some(&Frame { code: Code::Native { op, size, .. }, base, dst }) = self.frames.last() else {
            return Ok(false);
        };
        let at = base as usize + size as usize;
        self.ensure(h, at + c.proto.code.registers())?;
        self.reserve_frame(h)?;
        let first = slot(at)?;
        if let Some(frame) = self.frames.last_mut() {
            *frame = Frame { code: Code::Native { op, waiting: true, i: count, size }, base, dst };
        }
        self.stack[at..at + N].copy_from_slice(&args);
        let code = Code::Lisp { unit, proto: c.proto, closure: Some(c), pc: 0 };
        self.frames.push(Frame { code, base: first, dst: base });
        Ok(true)
    }

    /// Calls `f` from the native frame on top; the result goes to its first register.
    #[inline]
    pub(crate) fn call_from_native(&mut self, h: &'h Heap, f: Value<'h>, args: &[Value<'h>]) -> Res<Called<'h>> {
        let Some(&Frame { code: Code::Native { size, .. }, base, .. }) = self.frames.last() else {
            return Ok(Called::Value(Value::Nil));
        };
        let at = base as usize + size as usize;
        self.ensure(h, at + 1 + args.len())?;
        self.stack[at] = f;
        self.stack[at + 1..at + 1 + args.len()].copy_from_slice(args);
        self.call(h, at, args.len(), base)
    }

    /// Calls `f` from the native frame on top with its registers from `first` on; the result goes to its first register.
    pub(crate) fn call_with_registers(&mut self, h: &'h Heap, f: Value<'h>, first: usize) -> Res<Called<'h>> {
        let Some(&Frame { code: Code::Native { size, .. }, base, .. }) = self.frames.last() else {
            return Ok(Called::Value(Value::Nil));
        };
        let (from, at) = (base as usize + first, base as usize + size as usize);
        let argc = at - from;
        h.charge(cost::moved(argc))?;
        self.ensure(h, at + 1 + argc)?;
        self.stack[at] = f;
        self.stack.copy_within(from..at, at + 1);
        self.call(h, at, argc, base)
    }

    /// Registers of the native frame on top from number `first` on.
    pub(crate) fn registers_from(&self, first: usize) -> usize {
        match self.frames.last() {
            Some(&Frame { code: Code::Native { size, .. }, .. }) => (size as usize).saturating_sub(first),
            _ => 0,
        }
    }
}
