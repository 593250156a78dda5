//! Calls of any callable value.

use super::prelude;
use crate::builtins::exception_classes::of_wrong;
use crate::builtins::{Imp, maps};
use crate::code::Proto;
use crate::context::Ctx;
use crate::error::{Error, ErrorClass, Reason};
use crate::heap::{Closure, Fault, Res, Value};
use crate::natives;
use crate::stack::{Call, Code, Control, Effect, Frame, NativeFn, State, Unit, slot};
use crate::text::{arguments, beginning, describe};

impl<'h> State<'h> {
    /// Makes a call. If the value is known at once, returns it without storing it.
    ///
    /// A function that only calls another one prepares that call above itself and returns it, and the loop here makes
    /// it. So a long chain of such calls takes no native stack. Existing values on the stack stay unchanged, so the
    /// call can be made again after a fault.
    pub(super) fn call(&mut self, h: &'h Ctx, mut call: Call) -> Res<Control<'h>> {
        loop {
            let control = match self.stack[call.at()] {
                Value::Closure(c) => {
                    let unit = self.units.get(c.program).ok_or_else(not_loaded)?;
                    self.enter(h, unit, c.proto, Some(c), call)?
                }
                Value::Builtin(id) => {
                    let row = id.row();
                    if !row.takes(call.argc()) {
                        return Err(row.arity_error(call.argc()));
                    }
                    match row.imp {
                        Imp::Direct(f) => {
                            h.charge(1)?;
                            match f(h, &self.stack[call.args()]) {
                                Err(Fault::NeedsFrame) => natives::start_with_frame(h, self, call, id)?,
                                value => Control::Value(value?),
                            }
                        }
                        Imp::Test(test) => {
                            h.charge(1)?;
                            Control::Value(Value::Bool(
                                self.stack[call.args()].first().is_some_and(|value| test(*value)),
                            ))
                        }
                        Imp::Calling(start) => match start(h, self, call) {
                            Err(Fault::NeedsFrame) => natives::start_with_frame(h, self, call, id)?,
                            control => control?,
                        },
                        Imp::Either(calls, start, _) if calls(&self.stack[call.args()]) => start(h, self, call)?,
                        Imp::Either(_, _, f) => {
                            h.charge(1)?;
                            match f(h, &self.stack[call.args()]) {
                                Err(Fault::NeedsFrame) => natives::start_with_frame(h, self, call, id)?,
                                value => Control::Value(value?),
                            }
                        }
                        Imp::Prelude => {
                            let (unit, proto) = prelude::function(id)?;
                            self.enter(h, unit, proto, None, call)?
                        }
                    }
                }
                Value::Composed(c) => natives::call_composed(c, h, self, call)?,
                Value::Tool(_) => {
                    self.pending = Some(call);
                    Control::Effect(Effect::ToolCall)
                }
                data => Control::Value(look_up(h, data, &self.stack[call.args()])?),
            };
            match control {
                Control::Call(next) => call = next,
                control => return Ok(control),
            }
        }
    }

    /// Resumes the native frame on top, and makes the call that it returns. Returns the effect that it waits for, if
    /// any.
    pub(super) fn step_native(&mut self, h: &'h Ctx, native: &'static NativeFn) -> Res<Option<Effect>> {
        match (native.step)(h, self)? {
            Control::Value(value) => self.finish_frame(value),
            Control::Frame => {}
            Control::Call(call) => return self.call_for_native(h, call),
            Control::Effect(effect) => return Ok(Some(effect)),
        }
        Ok(None)
    }

    fn call_for_native(&mut self, h: &'h Ctx, call: Call) -> Res<Option<Effect>> {
        let caller = self.frames.len() - 1;
        let control = self.call(h, call)?;
        if let Some(Frame { code: Code::Native { called, .. }, .. }) = self.frames.get_mut(caller) {
            *called = true;
        }
        match control {
            Control::Value(value) => self.stack[call.dst as usize] = value,
            Control::Effect(effect) => return Ok(Some(effect)),
            Control::Frame | Control::Call(_) => {}
        }
        Ok(None)
    }

    /// Pushes a frame for a function of a program.
    pub(super) fn enter(
        &mut self,
        h: &'h Ctx,
        unit: &'h Unit,
        proto: &'h Proto,
        closure: Option<&'h Closure<'h>>,
        call: Call,
    ) -> Res<Control<'h>> {
        let (base, argc) = (call.args().start, call.argc());
        let proto = if proto.takes(argc) { proto } else { other_arity(unit, proto, argc)? };
        let arity = proto.arity as usize;
        self.ensure(h, base + (proto.code.registers()).max(argc + 1))?;
        self.reserve_frame(h)?;
        if proto.variadic {
            h.charge((argc - arity) as u64)?;
            self.stack[base + arity] = h.vector(&self.stack[base + arity..base + argc])?;
        }
        let code = Code::Lisp { unit, proto, closure, pc: 0 };
        self.frames.push(Frame { code, base: slot(base)?, dst: call.dst });
        Ok(Control::Frame)
    }
}

/// Returns the arity of a function that takes this many arguments; `first` is its first arity.
#[cold]
fn other_arity<'h>(unit: &'h Unit, first: &'h Proto, argc: usize) -> Res<&'h Proto> {
    unit.other_arity(first, argc).ok_or_else(|| wrong_arity(unit, first, argc))
}

/// Calls data as a function: a keyword, a map or a set looks something up.
fn look_up<'h>(h: &'h Ctx, data: Value<'h>, args: &[Value<'h>]) -> Res<Value<'h>> {
    match (data, args) {
        (Value::Keyword(..), &[coll]) => Ok(maps::key_of(h, coll, data)?.unwrap_or(Value::Nil)),
        (Value::Keyword(..), &[coll, default]) => Ok(maps::key_of(h, coll, data)?.unwrap_or(default)),
        (Value::Map(_), &[key]) => Ok(maps::read(h, data, key)?.unwrap_or(Value::Nil)),
        (Value::Map(_), &[key, default]) => Ok(maps::read(h, data, key)?.unwrap_or(default)),
        (Value::Vector(v), &[key]) if key.is_number() => match key.as_index().and_then(|i| v.get(i)) {
            Some(item) => Ok(item),
            None => Err(Error::new(
                Reason::NotCallable,
                format!("{} is not an index of a vector of {} elements", describe(key), v.len()),
            )
            .class(ErrorClass::IndexOutOfBounds)
            .hint("write (get v i) to get nil instead")
            .into()),
        },
        (Value::Set(m), &[key]) => Ok(if m.contains(h, key)? { key } else { Value::Nil }),
        _ => Err(not_callable(data, args.len())),
    }
}

#[cold]
pub(super) fn not_loaded() -> Fault {
    Error::new(Reason::HostFault, "a function of a program that is not loaded here").into()
}

/// Returns the error of a call of data: with the wrong number of arguments, or of data that is not callable.
#[cold]
fn not_callable(data: Value<'_>, argc: usize) -> Fault {
    let arity = |message: String| Error::new(Reason::ArityError, format!("{message}, got {}", arguments(argc))).into();
    match data {
        Value::Keyword(_, name) => arity(format!("the keyword :{} takes a map and a default", beginning(name.text()))),
        Value::Map(_) => arity("a map called as a function takes a key and a default".to_owned()),
        Value::Set(_) => arity("a set called as a function takes one value".to_owned()),
        other => Error::new(Reason::NotCallable, format!("{} is not a function", describe(other)))
            .class(if let Value::Vector(_) = other { ErrorClass::IllegalArgument } else { of_wrong(other) })
            .hint("call a function, a keyword, a map or a set, or a vector with an index")
            .into(),
    }
}

#[cold]
fn wrong_arity(unit: &Unit, proto: &Proto, argc: usize) -> Fault {
    let name = beginning(proto.name.as_deref().unwrap_or("fn"));
    if !proto.others.is_empty() {
        const SHOWN: usize = 8;
        // Only the first of very many, so that creating the error takes no longer than the call.
        let others = proto.others.iter().take(4 * SHOWN).filter_map(|&number| unit.code.protos.get(number as usize));
        let mut all: Vec<&Proto> = std::iter::once(proto).chain(others).collect();
        all.sort_by_key(|proto| (proto.arity, proto.variadic));
        let ways: Vec<String> = all.iter().take(SHOWN).map(|proto| format!("[{}]", beginning(&proto.params))).collect();
        let more = if all.len() > SHOWN { " ..." } else { "" };
        let message = format!("{name} takes the arguments {}{more}, got {}", ways.join(" or "), arguments(argc));
        return Error::new(Reason::ArityMismatch, message).into();
    }
    let more = if proto.variadic { "at least " } else { "" };
    let (takes, params) = (arguments(usize::from(proto.arity)), beginning(&proto.params));
    Error::new(Reason::ArityMismatch, format!("{name} takes {more}{takes} [{params}], got {argc}")).into()
}
