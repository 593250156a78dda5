//! The values of a state are the roots of its heap.

use super::{Code, State};
use crate::context::Ctx;
use crate::heap::{Collector, Trace, Value};

/// The family of states, by brand.
pub(crate) struct Roots;

#[allow(unsafe_code, reason = "it says where the values are")]
// SAFETY: the state's lifetime brands only values, closures and loaded programs, and the rest of it is `Send` and
// `Sync`. `trace` visits every field that holds values. Without frames, only `units` and closures refer to programs,
// and `release` returns those that are no longer in the former and have no closures. A `Ctx` owns its heap.
unsafe impl Trace for Roots {
    type In<'h> = State<'h>;
    type Context = Ctx;

    fn trace(state: &mut State<'static>, c: &mut Collector, from: usize, count: usize) -> Option<usize> {
        if from == 0 {
            state.top_to_trace = state.live_top();
            // All definitions at once: when a run fails, the earlier definitions replace its own.
            for value in state.globals.iter_mut().chain(&mut state.saved_globals) {
                *value = c.value(*value);
            }
            for (_, value) in state.turns.iter_mut().flatten() {
                *value = c.value(*value);
            }
            state.result = c.value(state.result);
        }
        // Then the stack and the frames. If the run ends meanwhile, there are no frames and the rest of the stack is
        // free.
        let over = state.frames.is_empty() && state.pending.is_none();
        let top = if over { 0 } else { state.top_to_trace };
        let slots = state.stack.len();
        let end = from.saturating_add(count).min(slots + state.frames.len());
        for (i, slot) in state.stack.iter_mut().enumerate().take(end).skip(from) {
            // Slots above the top frame keep old values; nothing may refer to them after this.
            *slot = if i < top { c.value(*slot) } else { Value::Nil };
        }
        for frame in state.frames.iter_mut().take(end.saturating_sub(slots)).skip(from.saturating_sub(slots)) {
            if let Code::Lisp { closure: Some(closure), .. } = &mut frame.code {
                *closure = c.closure(closure);
            }
        }
        (end < slots + state.frames.len()).then_some(end)
    }

    fn release(state: &mut State<'static>, seen: &[bool]) -> Vec<usize> {
        // A frame refers to the program whose code it runs, even if that has no functions.
        if !state.frames.is_empty() { Vec::new() } else { state.units.retain(seen) }
    }

    fn result(state: &State<'static>) -> Value<'static> {
        state.result
    }
}
