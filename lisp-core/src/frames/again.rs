//! The usual step of the usual frames, without leaving the function they call.

use super::{ACC, EXTRA, EXTRA2, FUNCTION, FrameOp, ITEMS, builder};
use crate::cost::INSTRUCTION;
use crate::heap::{Heap, METERED, Value};
use crate::machine::{Code, Frame, State};

/// The function on top has come to its `result`, and a native frame called it. When that frame would store the result
/// and call the same function for the next element, this does both, and the function's frame begins anew.
///
/// Answers false, with nothing changed, when there is anything else to do: no more elements, no room, the slice's end.
#[inline(never)]
pub(crate) fn again<'h>(h: &'h Heap, s: &mut State<'h>, result: Value<'h>) -> bool {
    let [.., Frame { code: Code::Native { op, i, size, .. }, base, .. }, top] = s.frames.as_mut_slice() else {
        return false;
    };
    let Code::Lisp { closure: Some(running), .. } = top.code else { return false };
    let (own, args) = s.stack.split_at_mut(top.base as usize);
    let Some(own) = own.get_mut(*base as usize..*base as usize + *size as usize) else { return false };
    if METERED && h.left() < INSTRUCTION as i64 {
        return false;
    }
    if matches!(op, FrameOp::Sort | FrameOp::SortBy) {
        let Some(pair) = super::sort::next_pair(own, running, result) else { return false };
        args[..2].copy_from_slice(&pair);
        charge(h);
        return true;
    }
    if own.len() <= EXTRA2 {
        return false;
    }
    let (Value::Closure(f), Value::Vector(items)) = (own[FUNCTION], own[ITEMS]) else { return false };
    let (at, next) = (*i as usize, *i as usize + 1);
    let (Some(item), Some(next_item)) = (items.get(at), items.get(next)) else { return false };
    if !std::ptr::eq(f, running) {
        return false;
    }
    let keeps = match op {
        FrameOp::Map if matches!(own[EXTRA], Value::Unset) => Some(result),
        FrameOp::Filter => result.truthy().then_some(item),
        FrameOp::Remove => (!result.truthy()).then_some(item),
        FrameOp::Reduce => None,
        _ => return false,
    };
    if let Some(value) = keeps
        && !builder(own[ACC]).is_some_and(|b| b.push_in_place(value))
    {
        return false;
    }
    if *op == FrameOp::Reduce {
        own[ACC] = result;
        args[..2].copy_from_slice(&[result, next_item]);
    } else {
        args[0] = next_item;
    }
    *i = next as u32;
    charge(h);
    true
}

/// The native frame's own step, as it is charged for elsewhere.
fn charge(h: &Heap) {
    if METERED {
        h.set_left(h.left() - INSTRUCTION as i64);
    }
}
