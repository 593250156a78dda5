//! What a function accepts in place of the function that it calls.

use crate::builtins::args::function;
use crate::builtins::maps;
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, Reason};
use crate::heap::{Res, Value};
use crate::text::describe;

/// What a function accepts in place of the function that it calls. All accept functions, and keywords, maps, sets and
/// vectors, which look up.
#[derive(Clone, Copy)]
pub(super) struct Accepts {
    /// Whether it is checked even if there are no elements.
    pub(super) checked_when_empty: bool,
    /// Nil and booleans, which read nothing of an element.
    pub(super) nothing: bool,
    /// A string is a key, and a vector a path of keys, to read of an element.
    pub(super) paths: bool,
}

impl Accepts {
    /// Functions only.
    pub(super) const FUNCTIONS: Accepts = Accepts { checked_when_empty: true, nothing: false, paths: false };
    /// Functions, checked only if there is an element to call them for.
    pub(super) const LOOK_UPS: Accepts = Accepts { checked_when_empty: false, ..Accepts::FUNCTIONS };
    /// Predicates of an element.
    pub(super) const PREDICATES: Accepts = Accepts { nothing: true, ..Accepts::LOOK_UPS };
    /// Readers of a part of an element.
    pub(super) const READERS: Accepts = Accepts { paths: true, ..Accepts::PREDICATES };

    /// Rejects what is not accepted.
    pub(super) fn check(self, name: &str, f: Value<'_>) -> Res<()> {
        match f {
            Value::Vector(_) | Value::Str(_) if self.paths => Ok(()),
            Value::Nil | Value::Bool(_) if self.nothing => Ok(()),
            f => function(name, f).map(|_| ()),
        }
    }
}

/// Returns what `f` reads of an element if it is not a function: nil and booleans read nothing, a string is a key, a
/// vector is a path of keys. `None` for a function. With `numbers`, a path reads nothing of a number; for other
/// elements without keys it is an error.
pub(super) fn read<'h>(h: &'h Ctx, name: &str, f: Value<'h>, item: Value<'h>, numbers: bool) -> Res<Option<Value<'h>>> {
    match f {
        Value::Nil | Value::Bool(_) => Ok(Some(Value::Nil)),
        Value::Str(_) => {
            readable(name, f, item, false)?;
            h.charge(cost::LOOK_UP)?;
            Ok(Some(maps::key_of(h, item, f)?.unwrap_or(Value::Nil)))
        }
        Value::Vector(path) => {
            readable(name, f, item, numbers)?;
            let mut value = item;
            h.charge(cost::LOOK_UP)?;
            for &key in path.items() {
                h.charge(cost::LOOK_UP)?;
                value = maps::key_of(h, value, key)?.unwrap_or(Value::Nil);
            }
            Ok(Some(value))
        }
        _ => Ok(None),
    }
}

/// Rejects a key or path for an element without keys: it would always read nil and hide the mistake.
fn readable(name: &str, key: Value<'_>, item: Value<'_>, numbers: bool) -> Res<()> {
    let plain = match item {
        Value::Str(_) => true,
        Value::Bool(_) | Value::Int(_) | Value::Big(_) | Value::Float(_) => !numbers,
        _ => false,
    };
    if !plain {
        return Ok(());
    }
    let (key, item) = (describe(key), describe(item));
    Err(Error::new(Reason::TypeError, format!("{name} cannot read {key} of {item}"))
        .hint(format!("{name} takes a function: write (fn [x] ...)"))
        .into())
}
