//! `apply`: prepares another call. It takes no frame.

use crate::builtins::{Builtin, MANY, args};
use crate::context::Ctx;
use crate::heap::Res;
use crate::stack::{Call, Control, State};

pub(super) const TABLE: &[Builtin] = &[Builtin::calling("apply", 2, MANY, "(apply f a b coll)", apply).doc(
    "Calls f with the elements of coll as its last arguments.",
    &[("(apply + 1 [2 3])", "6"), ("(apply + nil)", "0"), ("(apply + 1)", "!type_error")],
)];

/// `(apply f a b coll)` becomes the call `(f a b ...coll)` above it.
fn apply<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let (at, argc) = (call.at(), call.argc());
    let last = s.stack[at + argc];
    let items = args::seq(h, "apply", last)?;
    h.charge((argc + items.len()) as u64)?;
    let above = at + 1 + argc;
    let given = above + argc - 1;
    s.ensure(h, given + items.len())?;
    s.stack.copy_within(at + 1..at + argc, above);
    s.stack[given..given + items.len()].copy_from_slice(items);
    Ok(Control::Call(Call::new(above, argc - 2 + items.len(), call.dst)))
}
