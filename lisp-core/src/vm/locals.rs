//! The values of local names at an error, for a person or a model.

use crate::builtins::preview;
use crate::code::{Called, Local, LocalPlace};
use crate::context::Ctx;
use crate::error::{Error, LocalValue, Trace};
use crate::heap::{Heap, Value};
use crate::stack::{Code, Frame, State};

/// The maximum cost of showing one value, in fuel and bytes. It is not charged to the run.
const MAX_FUEL: u64 = 20_000;
const MAX_BYTES: usize = 1 << 16;

impl<'h> State<'h> {
    /// Shows the values of the local names in the innermost function of the program at the position of the error.
    pub(super) fn show_locals(&self, h: &'h Ctx, mut error: Error) -> Error {
        let is_lisp = |frame: &Frame<'h>| matches!(frame.code, Code::Lisp { unit, .. } if !unit.prelude);
        let Some(trace) = &mut error.trace else { return error };
        let Some(number) = self.frames.iter().rposition(is_lisp) else { return error };
        let Frame { code: Code::Lisp { unit, proto, closure, .. }, base, .. } = self.frames[number] else {
            return error;
        };
        let at = self.place(number);
        // For a literal that is compiled in place: its own names, and those of the functions around it that it uses.
        let first = proto.in_place_at(at).find(|call| call.called == Called::Literal).map_or(0, |call| call.from);
        let visible = |local: &&Local| local.from >= first && (local.from..local.to).contains(&at);
        let mut shown: Vec<LocalValue> = Vec::new();
        // A name bound later hides earlier ones with the same name.
        for Local { name, place, .. } in proto.locals.iter().rev().filter(visible) {
            let name = unit.code.source.get(name.start as usize..name.end as usize).unwrap_or_default();
            let value = match *place {
                LocalPlace::Register(register) => self.stack.get(base as usize + register as usize).copied(),
                LocalPlace::Capture(index) => closure.and_then(|c| c.captures().get(index as usize).copied()),
            };
            let Some(value) = value.filter(|value| is_shown(value) && shown.iter().all(|other| *other.name != *name))
            else {
                continue;
            };
            shown.push(LocalValue { name: cut(name).into(), value: look(h, value).into() });
            if shown.len() == Trace::LOCALS {
                break;
            }
        }
        shown.reverse();
        trace.locals = shown;
        error
    }
}

/// Functions are not shown: the source has them.
fn is_shown(value: &Value<'_>) -> bool {
    !matches!(value, Value::Unset | Value::VecBuilder(_) | Value::MapBuilder(_) | Value::Closure(_) | Value::Builtin(_))
}

/// Returns a name as shown; a very long one is cut.
fn cut(name: &str) -> String {
    const MAX: usize = 120;
    match name.len() <= MAX {
        true => name.to_owned(),
        false => format!("{}…", &name[..name.floor_char_boundary(MAX)]),
    }
}

fn look<'h>(h: &'h Heap, value: Value<'h>) -> String {
    let preview = h.bounded(MAX_BYTES, MAX_FUEL, || preview(h, value));
    preview.unwrap_or_else(|_| format!("a large {}", value.type_name()))
}
