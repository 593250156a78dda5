//! Functions that are called without a frame.

use crate::builtins::{DirectImp, first_order, maps};
use crate::context::Ctx;
use crate::heap::{Res, Value};

/// A function that has its value at once, without a frame of its own.
#[derive(Clone, Copy)]
pub(super) enum DirectFn<'h> {
    /// a keyword, which reads one argument
    Key(Value<'h>),
    /// a built-in that calls nothing
    Builtin(DirectImp),
}

impl<'h> DirectFn<'h> {
    /// Returns the function as a direct one, if it is one and takes `argc` arguments. `None` while the current call
    /// needs a frame.
    #[inline]
    pub(super) fn of(h: &Ctx, f: Value<'h>, argc: usize) -> Option<DirectFn<'h>> {
        match f {
            Value::Keyword(..) if argc == 1 => Some(DirectFn::Key(f)),
            Value::Builtin(id) if h.framed_at.get().is_none() => first_order(id, argc).map(DirectFn::Builtin),
            _ => None,
        }
    }

    /// Calls it, at the same cost as any other call of it.
    #[inline]
    pub(super) fn call(self, h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
        match self {
            DirectFn::Key(key) => Ok(maps::key_of(h, args[0], key)?.unwrap_or(Value::Nil)),
            DirectFn::Builtin(imp) => {
                h.charge(1)?;
                imp(h, args)
            }
        }
    }
}
