//! The call chain for errors: the calls of frames, and those compiled in place into the code of a frame.

use crate::code::{Called, InPlace, Proto};
use crate::error::Span;
use crate::heap::Value;
use crate::stack::{Code, Frame, NativeFn, State};

/// Where the call chain of an error starts: a frame, and the number of its calls in place to leave out. The function
/// called there is left out too, unless the error occurred in it.
#[derive(Clone, Copy)]
pub(super) struct Start {
    pub(super) frame: usize,
    pub(super) outside: usize,
    pub(super) at_home: bool,
}

impl Start {
    /// All calls in progress.
    pub(super) const OUTERMOST: Start = Start { frame: 0, outside: 0, at_home: true };
}

/// A position in the call chain of an error.
pub(super) struct Way<'s> {
    pub(super) span: Span,
    pub(super) program: u64,
    /// The name of the function that contains it.
    pub(super) name: Option<&'s str>,
    /// The native function called there.
    pub(super) native: Option<Native>,
}

/// The name of a built-in function called by a native one, and the name of the native one with the index of the
/// element.
pub(super) type Native = (Option<&'static str>, (&'static str, usize));

impl<'h> State<'h> {
    /// The position of a frame in its code. The instruction of the frame on top has not been executed. The instruction
    /// of a frame that has called another one, or that waits for a tool, has been.
    pub(super) fn place(&self, frame: usize) -> u32 {
        let done = frame + 1 != self.frames.len() || self.pending.is_some();
        match self.frames[frame].code {
            Code::Lisp { pc, .. } => pc.saturating_sub(u32::from(done)),
            Code::Native { .. } => 0,
        }
    }

    /// Returns the calls in place at the position of a frame from `start` on, innermost first.
    pub(super) fn in_place(&self, frame: usize, proto: &'h Proto, start: Start) -> impl Iterator<Item = &'h InPlace> {
        let at = self.place(frame);
        let inside = match frame == start.frame {
            true => proto.in_place_at(at).count().saturating_sub(start.outside),
            false => usize::MAX,
        };
        proto.in_place_at(at).take(inside)
    }

    /// Returns the call chain of an error, innermost first. A native frame has no position of its own: it is reported
    /// with the function that called it.
    pub(super) fn ways(&self, start: Start) -> impl Iterator<Item = Way<'h>> {
        let mut native = None;
        let frames = self.frames.iter().enumerate().skip(start.frame).rev();
        frames.flat_map(move |(number, frame)| self.ways_of(number, frame, start, &mut native))
    }

    /// Returns the outermost position.
    pub(super) fn outermost(&self, start: Start) -> Option<Way<'h>> {
        let mut frames = self.frames.iter().enumerate().skip(start.frame);
        frames.find_map(|(number, frame)| self.ways_of(number, frame, start, &mut None).pop())
    }

    /// Returns the positions in one frame; `native` is what was called there.
    fn ways_of(&self, number: usize, frame: &Frame<'h>, start: Start, native: &mut Option<Native>) -> Vec<Way<'h>> {
        let (unit, proto) = match frame.code {
            Code::Native { native: function, index, .. } => {
                *native = self.element(frame, function, index);
                return Vec::new();
            }
            Code::Lisp { unit, proto, .. } => (unit, proto),
        };
        let place = proto.spans.get(self.place(number) as usize).copied().filter(|_| !unit.prelude);
        let Some(mut span) = place else {
            *native = None;
            return Vec::new();
        };
        let (mut ways, program) = (Vec::new(), unit.number);
        for call in self.in_place(number, proto, start) {
            if call.called == Called::Literal {
                ways.push(Way { span, program, name: None, native: native.take() });
            }
            span = call.call;
            let called = match call.called {
                Called::Builtin(id) => Some(id.row().name),
                Called::Literal | Called::Other => None,
            };
            *native = self.counted(frame, call).map(|index| (called, (call.native.row().name, index)));
        }
        if number > start.frame || start.at_home {
            ways.push(Way { span, program, name: proto.name.as_deref(), native: native.take() });
        }
        ways
    }

    /// Returns the index of the element that a call in place is for.
    fn counted(&self, frame: &Frame<'h>, call: &InPlace) -> Option<usize> {
        let index = frame.base as usize + call.index? as usize;
        // The register before the index has what is walked: the end of a range, or a vector made from one.
        let first = match self.stack.get(index.checked_sub(1)?) {
            Some(Value::Int(_)) => i64::from(call.first),
            _ => 0,
        };
        match self.stack.get(index) {
            Some(&Value::Int(walked)) => usize::try_from(walked - 1 - first).ok(),
            _ => None,
        }
    }

    /// Returns the function that a native frame calls, if it is a built-in, and the index of the element. Reads no
    /// object, because a compaction may be in progress.
    fn element(&self, frame: &Frame<'h>, native: &NativeFn, index: usize) -> Option<Native> {
        let function = native.counts.filter(|_| index != NativeFn::FINISHING)?;
        let called = match self.stack.get(frame.base as usize + function) {
            Some(Value::Builtin(id)) => Some(id.row().name),
            _ => None,
        };
        Some((called, (native.name, index)))
    }
}
