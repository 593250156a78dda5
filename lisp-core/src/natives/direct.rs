//! Functions that are called without a frame.

use crate::builtins::{DirectImp, first_order, maps};
use crate::context::Ctx;
use crate::heap::{Res, Value};

/// A function that has its value at once, with no frame of its own.
#[derive(Clone, Copy)]
pub(super) enum DirectFn<'h> {
    /// a keyword, which reads of one argument
    Key(Value<'h>),
    /// a built-in that calls nothing
    Builtin(DirectImp),
}

impl<'h> DirectFn<'h> {
    /// The function as a direct one, if it is one and takes `argc` arguments. None is while the call under way needs a
    /// frame.
    #[inline]
    pub(super) fn of(h: &Ctx, f: Value<'h>, argc: usize) -> Option<DirectFn<'h>> {
        match f {
            Value::Keyword(..) if argc == 1 => Some(DirectFn::Key(f)),
            Value::Builtin(id) if h.framed_at.get().is_none() => first_order(id, argc).map(DirectFn::Builtin),
            _ => None,
        }
    }

    /// Calls it, for the fuel that any call of it costs.
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
