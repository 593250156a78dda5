//! The usual step of the usual frames, without leaving the function they call.

use super::{FrameOp, builder};
use crate::heap::Value;
use crate::vm::{Code, Frame, State};

/// The function on top has come to its `result`, and a native frame called it. When that frame would store the result
/// and call the same function for the next element, this does both, and the function's frame begins anew.
///
/// The caller pays for it as for an instruction. Answers false, with nothing changed, when there is anything else to do:
/// no more elements, no room.
#[inline(never)]
pub(crate) fn again<'h>(s: &mut State<'h>, result: &Value<'h>) -> bool {
    let [.., Frame { code: Code::Native { op, i, size, .. }, base, .. }, top] = s.frames.as_mut_slice() else {
        return false;
    };
    let Code::Lisp { closure: Some(running), proto, .. } = top.code else { return false };
    // Each call of such a function makes a vector of its last arguments.
    if proto.variadic {
        return false;
    }
    let (own, args) = s.stack.split_at_mut(top.base as usize);
    let Some(own) = own.get_mut(*base as usize..*base as usize + *size as usize) else { return false };
    if matches!(op, FrameOp::Sort | FrameOp::SortBy) {
        return super::sort::next_pair(own, running, result, args);
    }
    let [_, Value::Closure(f), Value::Vector(items), acc, extra, _, ..] = own else { return false };
    let Some([item, next, ..]) = items.items().get(*i..) else { return false };
    if !std::ptr::eq(*f, running) {
        return false;
    }
    // It was below the number of items.
    let next_index = i.wrapping_add(1);
    let kept = match op {
        FrameOp::Map if matches!(extra, Value::Unset) => Some(result),
        FrameOp::Filter => result.truthy().then_some(item),
        FrameOp::Remove => (!result.truthy()).then_some(item),
        FrameOp::Reduce => {
            let [first, second, ..] = args else { return false };
            (*acc, *first, *second) = (*result, *result, *next);
            *i = next_index;
            return true;
        }
        _ => return false,
    };
    if let Some(value) = kept
        && !builder(*acc).is_some_and(|b| b.push_in_place(value))
    {
        return false;
    }
    args[0] = *next;
    *i = next_index;
    true
}
