//! The fast path from one call of a native function to the next: the result is stored, and the arguments of the next
//! call are prepared in the function's existing frame.

use super::registers::builder;
use crate::heap::{Closure, Value};
use crate::stack::{Code, Frame, State};

/// A function that has returned to a native frame.
pub(super) struct Returned<'s, 'h> {
    /// The registers of the native frame.
    pub(super) own: &'s mut [Value<'h>],
    /// The counter of the native frame.
    pub(super) index: &'s mut usize,
    pub(super) function: &'h Closure<'h>,
    /// Where the function's arguments were, and will be.
    pub(super) args: &'s mut [Value<'h>],
}

impl<'s, 'h> Returned<'s, 'h> {
    /// Returns the two frames on top, if a native frame called a function whose frame can start over. One with a rest
    /// parameter cannot: it creates a vector of the arguments at each call.
    #[inline(always)]
    pub(super) fn to_native(s: &'s mut State<'h>) -> Option<Self> {
        let [.., Frame { code: Code::Native { index, size, .. }, base, .. }, top] = s.frames.as_mut_slice() else {
            return None;
        };
        let Code::Lisp { closure: Some(function), proto, .. } = top.code else { return None };
        if proto.variadic {
            return None;
        }
        let (own, args) = s.stack.split_at_mut(top.base as usize);
        let own = own.get_mut(*base as usize..*base as usize + *size as usize)?;
        Some(Returned { own, index, function, args })
    }
}

/// The fast path of a function that builds a vector and calls with one element: `added` returns what the vector gets
/// for a result and its element. `None` adds nothing.
#[inline(always)]
pub(super) fn next_element<'h>(
    s: &mut State<'h>,
    result: &Value<'h>,
    added: impl for<'v> FnOnce(&'v Value<'h>, &'v Value<'h>) -> Option<&'v Value<'h>>,
) -> bool {
    let Some(Returned { own, index, function, args }) = Returned::to_native(s) else { return false };
    let [_, Value::Closure(f), Value::Vector(items), acc, Value::Unset, ..] = own else { return false };
    let Some([item, next, ..]) = items.items().get(*index..) else { return false };
    if !std::ptr::eq(*f, function) {
        return false;
    }
    if let Some(value) = added(result, item)
        && !builder(*acc).is_some_and(|b| b.push_in_place(value))
    {
        return false;
    }
    args[0] = *next;
    // It was below the number of elements.
    *index = index.wrapping_add(1);
    true
}
