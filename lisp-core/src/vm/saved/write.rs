//! Definitions to text.

use super::kinds;
use crate::Table;
use crate::code::{ProgramId, Proto};
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, Reason};
use crate::heap::{Closure, Composed, Fault, Heap, Res, TextBuf, TimeValue, Value, Work};
use crate::stack::{State, Unit};
use crate::text::number::float_text;
use crate::text::quote;
use crate::vm::call::not_loaded;
use crate::vm::definitions::is_history;
use crate::vm::machine::{Loaded, Machine};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Longer strings are separate objects, so that each is written once.
const INLINE: usize = 48;

impl Machine {
    /// Writes the definitions as text for [`Machine::restore`], or with `history` the values of `*1`, `*2` and `*3`.
    /// `run` calls the function that it is given, which may fail and be called again.
    ///
    /// # Errors
    /// The function passed to `run` returns an error that names the definition that cannot be written, or with which
    /// the text exceeds `limit` bytes; the reason of the latter is `session_limit_exceeded`.
    pub fn save<T>(
        &mut self,
        history: bool,
        limit: usize,
        run: impl FnOnce(&Heap, &mut dyn FnMut() -> Res<String>) -> T,
    ) -> T {
        let (names, loaded) = (&self.names, &self.loaded);
        self.store.enter(|h, state, _| {
            let chosen = |name: &str| is_history(name) == history && !name.starts_with("data/");
            let mut all: Vec<(&str, Value<'_>)> =
                names.iter().map(|n| &**n).zip(state.globals.iter().copied()).collect();
            all.retain(|(name, value)| chosen(name) && !matches!(value, Value::Unset));
            // The order of the slots has no meaning: slots of forgotten names are reused.
            all.sort_unstable_by_key(|(name, _)| *name);
            let state = &*state;
            run(h, &mut || {
                Writer { h, state, loaded, limit, objects: Table::default(), used: BTreeSet::new() }.write(&all)
            })
        })
    }
}

/// A value to be visited.
enum Visit<'h> {
    /// Visit what it refers to, then it.
    Enter(Value<'h>),
    /// Write it: what it refers to has been written.
    Leave(Value<'h>),
}

/// An object: kind and address, because a symbol and a string may share one text.
type Object<'h> = (std::mem::Discriminant<Value<'h>>, usize);

struct Writer<'w, 'h> {
    h: &'h Ctx,
    state: &'w State<'h>,
    loaded: &'w [Option<Loaded>],
    limit: usize,
    /// The numbers of the objects that have been written.
    objects: Table<Object<'h>, usize>,
    /// The programs whose functions are used.
    used: BTreeSet<u32>,
}

impl<'h> Writer<'_, 'h> {
    fn write(mut self, all: &[(&str, Value<'h>)]) -> Res<String> {
        let mut out = TextBuf::new(self.h);
        for (name, value) in all {
            let written = self.definition(name, *value, &mut out);
            let too_long = out.as_str().len() > self.limit || matches!(written, Err(Fault::Collect(_)));
            if too_long {
                return Err(too_large(name, self.limit).into());
            }
            written.map_err(|fault| match fault {
                Fault::Error(mut error) => {
                    error.message = format!("the definition {name} cannot be saved: {}", error.message);
                    Fault::Error(error)
                }
                fault => fault,
            })?;
        }
        let mut programs = TextBuf::new(self.h);
        for &id in &self.used {
            let Some(Some(loaded)) = self.loaded.get(id as usize) else { return Err(not_loaded()) };
            line(&mut programs, "program")?;
            programs.push_str(&format!(" {id} {} ", loaded.number))?;
            quote(loaded.program.source(), &mut programs)?;
            for name in loaded.program.shadowed() {
                programs.push(' ')?;
                quote(name, &mut programs)?;
            }
            programs.push('\n')?;
            if programs.as_str().len() + out.as_str().len() > self.limit {
                return Err(too_large("the programs of the functions", self.limit).into());
            }
        }
        let out = out.into_string();
        programs.push_str(&out)?;
        Ok(programs.into_string())
    }

    fn definition(&mut self, name: &str, value: Value<'h>, out: &mut TextBuf<'h>) -> Res<()> {
        self.objects_of(value, out)?;
        line(out, "def")?;
        out.push(' ')?;
        quote(name, out)?;
        self.token(value, out)?;
        out.push('\n')
    }

    /// Writes the objects that a value consists of, and the value itself if it is an object.
    fn objects_of(&mut self, value: Value<'h>, out: &mut TextBuf<'h>) -> Res<()> {
        let mut work = Work::new(self.h);
        work.push(Visit::Enter(value))?;
        while let Some(visit) = work.pop() {
            self.h.charge(cost::TEXT_PART)?;
            match visit {
                Visit::Enter(v) if self.object(v).is_none_or(|object| self.objects.contains_key(&object)) => {}
                Visit::Enter(v) => {
                    work.push(Visit::Leave(v))?;
                    self.enter(v, &mut work)?;
                    if out.as_str().len() > self.limit {
                        return Ok(());
                    }
                }
                Visit::Leave(v) => self.leave(v, out)?,
            }
        }
        Ok(())
    }

    /// Returns the object of a value; `None` for values that are written in place.
    fn object(&self, v: Value<'h>) -> Option<Object<'h>> {
        let is_object = match v {
            Value::Keyword(_, s)
            | Value::Str(s)
            | Value::Symbol(s)
            | Value::Var(s)
            | Value::Tool(s)
            | Value::Regex(s) => s.text().len() > INLINE,
            Value::Big(big) => big.limbs.len() > 8,
            Value::Vector(_)
            | Value::Map(_)
            | Value::Set(_)
            | Value::Closure(_)
            | Value::Composed(_)
            | Value::Endless(_) => true,
            _ => false,
        };
        if is_object { Some((std::mem::discriminant(&v), v.address()?)) } else { None }
    }

    /// Puts what a value refers to on the work list.
    fn enter(&self, v: Value<'h>, work: &mut Work<'h, Visit<'h>>) -> Res<()> {
        let parts = match v {
            Value::Vector(items) => items.items(),
            Value::Closure(closure) => closure.captures(),
            Value::Composed(c) | Value::Endless(c) => c.parts(),
            Value::Map(map) => {
                for (key, value) in map.entries(self.h)?.iter().rev() {
                    self.push(value, work)?;
                    self.push(key, work)?;
                }
                return Ok(());
            }
            Value::Set(members) => {
                for (member, _) in members.entries(self.h)?.iter().rev() {
                    self.push(member, work)?;
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        parts.iter().rev().try_for_each(|&part| self.push(part, work))
    }

    fn push(&self, v: Value<'h>, work: &mut Work<'h, Visit<'h>>) -> Res<()> {
        self.h.charge(1)?;
        if self.object(v).is_none() { Ok(()) } else { work.push(Visit::Enter(v)) }
    }

    /// Writes the line of an object.
    fn leave(&mut self, v: Value<'h>, out: &mut TextBuf<'h>) -> Res<()> {
        let Some(object) = self.object(v) else { return Ok(()) };
        match v {
            Value::Vector(items) => {
                line(out, "[")?;
                self.tokens(items.items(), out)?;
            }
            Value::Map(map) => {
                line(out, "{")?;
                for (key, value) in map.entries_as_written(self.h)?.iter() {
                    self.tokens(&[key, value], out)?;
                }
            }
            Value::Set(members) => {
                line(out, "#")?;
                for (member, _) in members.entries(self.h)?.iter() {
                    self.token(member, out)?;
                }
            }
            Value::Closure(closure) => self.closure(closure, out)?,
            Value::Composed(c) => self.composed("make", kinds::name_of(c.kind), c, out)?,
            Value::Endless(c) => {
                let name = match c.kind {
                    crate::heap::Compose::Source(source) => kinds::name_of_source(source),
                    _ => None,
                };
                self.composed("seq", name, c, out)?;
            }
            text => {
                line(out, "= ")?;
                scalar(self.h, text, out)?;
            }
        }
        self.objects.insert(object, self.objects.len());
        out.push('\n')
    }

    fn composed(&self, what: &str, name: Option<&str>, c: &Composed<'h>, out: &mut TextBuf<'h>) -> Res<()> {
        let Some(name) = name else { return Err(internal()) };
        line(out, what)?;
        out.push(' ')?;
        out.push_str(name)?;
        self.tokens(c.parts(), out)
    }

    fn closure(&mut self, closure: &Closure<'h>, out: &mut TextBuf<'h>) -> Res<()> {
        let ProgramId(id) = closure.program;
        let unit = self.state.units.get(closure.program).ok_or_else(not_loaded)?;
        let number = proto_number(unit, closure.proto).ok_or_else(not_loaded)?;
        line(out, "fn ")?;
        match unit.prelude {
            true => out.push_str("prelude")?,
            false => {
                self.used.insert(id);
                out.push_str(&id.to_string())?;
            }
        }
        out.push_str(&format!(" {number} "))?;
        quote(&closure.proto.params, out)?;
        self.tokens(closure.captures(), out)
    }

    fn tokens(&self, values: &[Value<'h>], out: &mut TextBuf<'h>) -> Res<()> {
        values.iter().try_for_each(|&v| self.token(v, out))
    }

    /// Adds a space and the notation of a value in a line.
    fn token(&self, v: Value<'h>, out: &mut TextBuf<'h>) -> Res<()> {
        self.h.charge(cost::TEXT_PART)?;
        out.push(' ')?;
        let Some(object) = self.object(v) else { return scalar(self.h, v, out) };
        let Some(number) = self.objects.get(&object) else { return Err(internal()) };
        out.push('@')?;
        out.push_str(itoa::Buffer::new().format(*number))
    }
}

/// Returns the number of a function in its program.
fn proto_number(unit: &Unit, proto: &Proto) -> Option<usize> {
    let protos = &unit.code.protos;
    let bytes = std::ptr::from_ref(proto).addr().checked_sub(protos.as_ptr().addr())?;
    let number = bytes / size_of::<Proto>();
    std::ptr::eq(protos.get(number)?, proto).then_some(number)
}

fn line(out: &mut TextBuf<'_>, what: &str) -> Res<()> {
    out.push_str(what)
}

/// Adds a value that refers to no others.
fn scalar<'h>(h: &'h Ctx, v: Value<'h>, out: &mut TextBuf<'h>) -> Res<()> {
    match v {
        Value::Nil => out.push_str("nil"),
        Value::Bool(b) => out.push_str(if b { "true" } else { "false" }),
        Value::Int(i) => out.push_str(itoa::Buffer::new().format(i)),
        Value::Float(f) if f.is_nan() => out.push_str("##NaN"),
        Value::Float(f) if f.is_infinite() => out.push_str(if f > 0.0 { "##Inf" } else { "##-Inf" }),
        Value::Float(f) => {
            h.charge(cost::FLOAT_WRITTEN)?;
            out.push_str(&float_text(f))
        }
        Value::Big(big) => {
            h.charge(cost::copied(big.limbs.len() * 8))?;
            out.reserve(big.limbs.len() * 8 + 4)?;
            let mut text = String::with_capacity(big.limbs.len() * 8 + 4);
            text.push_str(if big.negative { "#x-" } else { "#x" });
            for limb in big.limbs.iter().rev() {
                // Writing to a string cannot fail.
                let _ = write!(text, "{limb:08x}");
            }
            out.push_str(&text)
        }
        Value::Keyword(_, s) if is_plain(s.text()) => {
            out.push(':')?;
            out.push_str(s.text())
        }
        Value::Keyword(_, s) => marked(":", s.text(), out),
        Value::Str(s) => quote(s.text(), out),
        Value::Symbol(s) => marked("'", s.text(), out),
        Value::Var(s) => marked("#'", s.text(), out),
        Value::Regex(s) => marked("#", s.text(), out),
        Value::Tool(s) => marked("tool", s.text(), out),
        Value::Builtin(id) => marked("fn", id.row().name, out),
        Value::Time(time) => out.push_str(&match time.value {
            TimeValue::LocalDate(days) => format!("day:{days}"),
            TimeValue::Instant(seconds, nanos) => format!("instant:{seconds}:{nanos}"),
            TimeValue::LocalDateTime(seconds, nanos) => format!("datetime:{seconds}:{nanos}"),
            TimeValue::Duration(seconds, nanos) => format!("duration:{seconds}:{nanos}"),
            TimeValue::Date(millis) => format!("date:{millis}"),
        }),
        _ => Err(internal()),
    }
}

/// Returns true if the name of a keyword needs no quotes.
pub(super) fn is_plain(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_?!*+./<>=&%$".contains(&b);
    !text.is_empty() && text.bytes().all(plain)
}

fn marked(mark: &str, text: &str, out: &mut TextBuf<'_>) -> Res<()> {
    out.push_str(mark)?;
    quote(text, out)
}

#[cold]
fn internal() -> Fault {
    Error::new(Reason::TypeError, "it contains an unfinished value").hint("define it again").into()
}

fn too_large(name: &str, limit: usize) -> Error {
    let message =
        format!("the saved session has more than {limit} bytes, the limit session_bytes, with the definition {name}");
    Error::new(Reason::SessionLimitExceeded, message)
        .hint("define less, as in (def name nil), or raise the limit session_bytes")
        .detail("limit_bytes", limit)
        .detail("definition", name)
}
