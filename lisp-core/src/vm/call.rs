//! Calling any value that can be called.

use super::state::{Code, Frame, Pending, State, Unit, slot};
use crate::builtins::{Imp, args, maps};
use crate::code::Proto;
use crate::error::{Error, Reason};
use crate::heap::{Closure, Compose, Fault, Heap, Res, Value};
use crate::natives::{self, FrameOp};

/// What came of a call.
pub(crate) enum Called<'h> {
    /// Its value, at once.
    Value(Value<'h>),
    /// A frame was pushed; the value comes when it ends.
    Frame,
    /// The driver must call a tool.
    Tool,
}

impl<'h> State<'h> {
    /// Calls the value at stack slot `at` with the `argc` values behind it. A value that comes at once is not stored.
    ///
    /// Functions made of others unfold here, one round each, so a long chain of them costs no native stack.
    pub(crate) fn call(&mut self, h: &'h Heap, at: usize, argc: usize, dst: u32) -> Res<Called<'h>> {
        // What stands on the stack stays as it is, so that the call can be done again after a fault: a function that
        // unfolds lays the new call out above.
        let (mut at, mut argc) = (at, argc);
        loop {
            match self.stack[at] {
                Value::Closure(c) => {
                    let unit = self.units.get(c.program).ok_or_else(not_loaded)?;
                    return self.enter(h, unit, c.proto, Some(c), at, argc, dst);
                }
                Value::Builtin(id) => {
                    let row = id.row();
                    if !row.takes(argc) {
                        return Err(row.arity_error(argc));
                    }
                    match row.imp {
                        Imp::Native(f) => {
                            h.charge(1)?;
                            return f(h, &self.stack[at + 1..at + 1 + argc]).map(Called::Value);
                        }
                        Imp::Frame(FrameOp::Apply) => (at, argc) = self.spread(h, at, argc)?,
                        Imp::Frame(op) => return natives::start(op, h, self, at, argc, dst),
                        Imp::Prelude => {
                            let (unit, proto) = super::prelude::function(id)?;
                            return self.enter(h, unit, proto, None, at, argc, dst);
                        }
                    }
                }
                Value::Keyword(_, name) => {
                    if argc == 0 || argc > 2 {
                        return Err(Error::new(
                            Reason::ArityError,
                            format!("the keyword :{} takes a map and a default, got {argc} argument(s)", name.text),
                        )
                        .into());
                    }
                    let found = key_of(h, self.stack[at + 1], self.stack[at])?;
                    let default = if argc == 2 { self.stack[at + 2] } else { Value::Nil };
                    return Ok(Called::Value(found.unwrap_or(default)));
                }
                Value::Map(m) => {
                    if argc == 0 || argc > 2 {
                        return Err(arity("a map", "a key and a default", argc));
                    }
                    let default = if argc == 2 { self.stack[at + 2] } else { Value::Nil };
                    let found = maps::get(h, Value::Map(m), self.stack[at + 1])?;
                    return Ok(Called::Value(found.unwrap_or(default)));
                }
                Value::Set(m) => {
                    if argc != 1 {
                        return Err(arity("a set", "one value", argc));
                    }
                    let key = self.stack[at + 1];
                    return Ok(Called::Value(if m.contains(h, key)? { key } else { Value::Nil }));
                }
                Value::Composed(c) => match c.kind {
                    Compose::Constantly => {
                        return Ok(Called::Value(c.parts.first().copied().unwrap_or(Value::Nil)));
                    }
                    Compose::Partial => {
                        let above = at + 1 + argc;
                        let given = above + c.parts.len();
                        h.charge((argc + c.parts.len()) as u64)?;
                        self.ensure(h, given + argc)?;
                        self.stack[above..given].copy_from_slice(c.parts);
                        self.stack.copy_within(at + 1..above, given);
                        (at, argc) = (above, argc + c.parts.len() - 1);
                    }
                    Compose::Fnil => {
                        let above = at + 1 + argc;
                        h.charge(argc as u64)?;
                        self.ensure(h, above + 1 + argc)?;
                        self.stack.copy_within(at..above, above);
                        self.stack[above] = c.parts.first().copied().unwrap_or(Value::Nil);
                        for (slot, &default) in self.stack[above + 1..above + 1 + argc].iter_mut().zip(&c.parts[1..]) {
                            if slot.is_nil() {
                                *slot = default;
                            }
                        }
                        at = above;
                    }
                    _ => return natives::start_composed(c, h, self, at, argc, dst),
                },
                Value::Tool(_) => {
                    self.pending = Some(Pending { at: slot(at)?, argc: slot(argc)?, dst });
                    return Ok(Called::Tool);
                }
                other => return Err(not_callable(other)),
            }
        }
    }

    /// Pushes a frame for a function of the program; its arguments stand behind slot `at`.
    #[allow(
        clippy::too_many_arguments,
        reason = "the parts of a call; a struct for them would only be taken apart again"
    )]
    pub(crate) fn enter(
        &mut self,
        h: &'h Heap,
        unit: &'h Unit,
        proto: &'h Proto,
        closure: Option<&'h Closure<'h>>,
        at: usize,
        argc: usize,
        dst: u32,
    ) -> Res<Called<'h>> {
        let base = at + 1;
        let arity = proto.arity as usize;
        if argc != arity && !(proto.variadic && argc > arity) {
            return Err(wrong_arity(proto, argc));
        }
        self.ensure(h, base + (proto.code.registers()).max(argc + 1))?;
        self.reserve_frame(h)?;
        if proto.variadic {
            h.charge((argc - arity) as u64)?;
            self.stack[base + arity] = h.vector(&self.stack[base + arity..base + argc])?;
        }
        self.frames.push(Frame { code: Code::Lisp { unit, proto, closure, pc: 0 }, base: slot(base)?, dst });
        Ok(Called::Frame)
    }

    /// `(apply f a b coll)` becomes the call `(f a b ...coll)` above it; answers its place and number of arguments.
    fn spread(&mut self, h: &'h Heap, at: usize, argc: usize) -> Res<(usize, usize)> {
        let last = self.stack[at + argc];
        if !matches!(last, Value::Vector(_) | Value::Map(_) | Value::Set(_)) {
            return Err(args::type_error("apply", "a collection as its last argument", last));
        }
        let items = args::seq(h, "apply", last)?;
        h.charge((argc + items.len()) as u64)?;
        let above = at + 1 + argc;
        let given = above + argc - 1;
        self.ensure(h, given + items.len())?;
        self.stack.copy_within(at + 1..at + argc, above);
        self.stack[given..given + items.len()].copy_from_slice(items);
        Ok((above, argc - 2 + items.len()))
    }
}

/// The value at a key of what may be a map; other values have no keys.
#[inline]
pub(crate) fn key_of<'h>(h: &'h Heap, coll: Value<'h>, key: Value<'h>) -> Res<Option<Value<'h>>> {
    match coll {
        Value::Map(m) => m.get_flexible(h, key),
        other => key_of_other(h, other, key),
    }
}

#[cold]
fn key_of_other<'h>(h: &'h Heap, coll: Value<'h>, key: Value<'h>) -> Res<Option<Value<'h>>> {
    match coll {
        Value::Set(m) => Ok(if m.contains(h, key)? { Some(key) } else { None }),
        _ => Ok(None),
    }
}

#[cold]
fn not_loaded() -> Fault {
    Error::new(Reason::HostFault, "a function of a program that is not loaded here").into()
}

#[cold]
fn arity(what: &str, takes: &str, argc: usize) -> Fault {
    Error::new(Reason::ArityError, format!("{what} called as a function takes {takes}, got {argc} argument(s)")).into()
}

#[cold]
fn not_callable(v: Value<'_>) -> Fault {
    Error::new(Reason::NotCallable, format!("{} is not a function", args::describe(v)))
        .hint("call a function, a keyword, a map or a set; a vector's element is (nth v i)")
        .into()
}

#[cold]
fn wrong_arity(proto: &Proto, argc: usize) -> Fault {
    let name = proto.name.as_deref().unwrap_or("fn");
    let more = if proto.variadic { "at least " } else { "" };
    Error::new(
        Reason::ArityMismatch,
        format!("{name} takes {more}{} argument(s) [{}], got {argc}", proto.arity, proto.params),
    )
    .into()
}
