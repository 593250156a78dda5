//! Definitions from text. Every line is checked: a line that no machine has written is an error with its number.

use super::kinds;
use crate::code::{BuiltinId, ProgramId};
use crate::compile::Program;
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, Reason};
use crate::heap::{Fault, Res, TimeValue, Value};
use crate::stack::{State, Unit};
use crate::text::dates;
use crate::vm::machine::{Loaded, Machine};
use crate::vm::prelude;
use num_bigint::{BigInt, BigUint, Sign};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A program of a saved session, to be compiled.
#[derive(Debug)]
pub struct SavedProgram<'t> {
    /// The number by which errors refer to it.
    pub number: u64,
    /// Its source.
    pub source: Cow<'t, str>,
    /// The names of built-ins that definitions had when it was compiled.
    pub shadowed: Vec<Box<str>>,
}

/// The maximum number of limbs of an integer, which is also the limit of all operations.
const LIMBS: usize = (1 << 20) / 32 + 1;

impl Machine {
    /// Restores definitions, or the history, from text written by [`Machine::save`]. They replace existing ones with
    /// the same names.
    ///
    /// `first` is the number of the text's first line, for errors. `compile` compiles the programs. The work ends when
    /// `interrupt` is set. The machine cannot be used after an error.
    ///
    /// # Errors
    /// Returns `parse_error`, with the line in the message and as a detail, if the text was not written by `save`; the
    /// errors of `compile`; and `memory_exceeded` and `timeout` like any work on the heap.
    pub fn restore(
        &mut self,
        text: &str,
        first: usize,
        interrupt: Option<Arc<AtomicBool>>,
        compile: &mut dyn FnMut(SavedProgram<'_>) -> Result<Arc<Program>, Error>,
    ) -> Res<()> {
        let mut programs = BTreeMap::new();
        let mut places = BTreeMap::new();
        let mut defined = BTreeSet::new();
        for (number, line) in lines(text, first) {
            let mut tokens = Tokens { rest: line, number };
            match tokens.word() {
                "program" => {
                    let id: u32 = tokens.integer("the number of the program")?;
                    let unit = self.restore_program(&mut tokens, compile)?;
                    if programs.insert(id, unit).is_some() {
                        return Err(bad(number, "the program occurs twice"));
                    }
                }
                "def" => {
                    let name = tokens.quoted_token("the name of the definition")?;
                    if name.is_empty() || name.starts_with("data/") {
                        return Err(bad(number, "a definition cannot have this name"));
                    }
                    let place = self.place_of(&name);
                    if !defined.insert(place) {
                        return Err(bad(number, format_args!("{} is defined twice", shown(&name))));
                    }
                    places.insert(number, place);
                }
                _ => {}
            }
        }
        self.store.enter(|h, state, _| {
            h.set_host_fuel(u64::MAX, interrupt);
            let mut reader = Reader { h, state, programs, objects: Vec::new() };
            for (number, line) in lines(text, first) {
                let mut tokens = Tokens { rest: line, number };
                match tokens.word() {
                    "program" => {}
                    "def" => {
                        tokens.quoted_token("the name of the definition")?;
                        let value = reader.only_value(&mut tokens)?;
                        if let Some(&place) = places.get(&number) {
                            reader.state.globals[place] = value;
                        }
                    }
                    kind => {
                        let object = reader.object(kind, &mut tokens)?;
                        reader.objects.push(object);
                    }
                }
            }
            let defined = state.globals.clone();
            state.saved_globals = defined;
            Ok(())
        })
    }

    /// Compiles a program and keeps it. Returns its index among the machine's programs.
    fn restore_program(
        &mut self,
        tokens: &mut Tokens<'_>,
        compile: &mut dyn FnMut(SavedProgram<'_>) -> Result<Arc<Program>, Error>,
    ) -> Res<u32> {
        let line = tokens.number;
        let number: u64 = tokens.integer("the number of the turn")?;
        let source = tokens.quoted_token("the text of the program")?;
        let mut shadowed = Vec::new();
        while !tokens.rest.is_empty() {
            shadowed.push(tokens.quoted_token("the name of a built-in")?.into_owned().into_boxed_str());
        }
        let same = |loaded: &Loaded| {
            loaded.number == number
                && loaded.program.source() == source
                && loaded.program.shadowed().eq(shadowed.iter().map(|name| &**name))
        };
        // The history may have functions of a program of which definitions have some.
        if let Some(known) = self.loaded.iter().position(|loaded| loaded.as_ref().is_some_and(same)) {
            return u32::try_from(known).map_err(|_| bad(line, "there are too many programs"));
        }
        let program = compile(SavedProgram { number, source, shadowed })?;
        let links: Box<[usize]> = program.code().globals.iter().map(|name| self.place_of(name)).collect();
        for (name, &place) in program.code().globals.iter().zip(&links) {
            if name.starts_with("data/") || name.starts_with('*') {
                self.link_granted(name, place);
            }
        }
        self.check_data(&program, &links)?;
        let ProgramId(id) = self.store.enter(|_, state, _| state.units.next());
        let unit = self.pin_unit(program, number, links);
        self.store.enter(|_, state, pinned| {
            if let Some(unit) = pinned.get::<Unit>(unit) {
                state.units.add(unit);
            }
        });
        Ok(id)
    }
}

/// Returns the lines of a text with their numbers.
fn lines(text: &str, first: usize) -> impl Iterator<Item = (usize, &str)> {
    text.strip_suffix('\n')
        .unwrap_or(text)
        .split('\n')
        .enumerate()
        .filter(|(_, line)| !line.is_empty())
        .map(move |(i, line)| (first + i, line))
}

/// Returns the error for a line.
#[cold]
fn bad(line: usize, why: impl std::fmt::Display) -> Fault {
    Error::new(Reason::ParseError, format!("line {line} of the saved session: {why}"))
        .hint("load the text as it was saved, whole and unchanged")
        .detail("line", line)
        .into()
}

/// The rest of a line.
struct Tokens<'t> {
    rest: &'t str,
    number: usize,
}

impl<'t> Tokens<'t> {
    fn bad(&self, why: impl std::fmt::Display) -> Fault {
        bad(self.number, why)
    }

    /// Takes the text up to the next space.
    fn word(&mut self) -> &'t str {
        let (word, rest) = self.rest.split_once(' ').unwrap_or((self.rest, ""));
        self.rest = rest;
        word
    }

    fn integer<T: std::str::FromStr>(&mut self, what: &str) -> Res<T> {
        self.word().parse().map_err(|_| self.bad(format_args!("expected {what}")))
    }

    /// Takes a quoted text and the space after it.
    fn quoted_token(&mut self, what: &str) -> Res<Cow<'t, str>> {
        match self.rest.strip_prefix('"') {
            Some(rest) => self.quoted(rest),
            None => Err(self.bad(format_args!("expected {what} in quotes"))),
        }
    }

    /// Takes the quoted text whose opening quote is before `rest`, and the space after it.
    fn quoted(&mut self, rest: &'t str) -> Res<Cow<'t, str>> {
        let mut escaped = false;
        let end = rest.bytes().position(|b| {
            let ends = b == b'"' && !escaped;
            escaped = b == b'\\' && !escaped;
            ends
        });
        let Some(end) = end else { return Err(self.bad("a text has no end")) };
        let (text, after) = (&rest[..end], &rest[end + 1..]);
        self.rest = match after.strip_prefix(' ') {
            Some(after) if !after.is_empty() => after,
            None if after.is_empty() => after,
            _ => return Err(self.bad("unexpected text after a string")),
        };
        if !text.contains('\\') {
            return Ok(Cow::Borrowed(text));
        }
        let mut out = String::with_capacity(text.len());
        let mut parts = text.split('\\');
        out.push_str(parts.next().unwrap_or_default());
        // Two backslashes are followed by an empty part and then a plain one.
        while let Some(part) = parts.next() {
            let mut chars = part.chars();
            match chars.next() {
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some('t') => out.push('\t'),
                Some('"') => out.push('"'),
                None => {
                    out.push('\\');
                    out.push_str(parts.next().unwrap_or_default());
                    continue;
                }
                Some(_) => return Err(self.bad("unknown escape in a string")),
            }
            out.push_str(chars.as_str());
        }
        Ok(Cow::Owned(out))
    }
}

struct Reader<'s, 'h> {
    h: &'h Ctx,
    state: &'s mut State<'h>,
    /// The indices of the programs, by their numbers in the text.
    programs: BTreeMap<u32, u32>,
    objects: Vec<Value<'h>>,
}

impl<'h> Reader<'_, 'h> {
    /// Returns the object that a line makes.
    fn object(&self, kind: &str, tokens: &mut Tokens<'_>) -> Res<Value<'h>> {
        match kind {
            "[" => self.h.vector(&self.values(tokens)?),
            "{" => self.map(tokens),
            "#" => {
                let members = self.values(tokens)?;
                let count = members.len();
                match self.h.set(members.into_iter())? {
                    Value::Set(set) if set.len() < count => Err(tokens.bad("a member of the set occurs twice")),
                    set => Ok(set),
                }
            }
            "fn" => self.function(tokens),
            "make" => {
                let kind = kinds::composed(tokens.word()).ok_or_else(|| tokens.bad("unknown function"))?;
                let parts = self.values(tokens)?;
                match kinds::fits(kind, &parts) {
                    true => self.h.composed(kind, &parts),
                    false => Err(tokens.bad("these are not the parts of such a function")),
                }
            }
            "seq" => {
                let source = kinds::source(tokens.word()).ok_or_else(|| tokens.bad("unknown sequence"))?;
                let parts = self.values(tokens)?;
                match kinds::fits_source(source, &parts) {
                    true => self.h.endless(source, &parts),
                    false => Err(tokens.bad("these are not the parts of such a sequence")),
                }
            }
            "=" => self.only_value(tokens),
            _ => Err(tokens.bad("unknown first word")),
        }
    }

    fn map(&self, tokens: &mut Tokens<'_>) -> Res<Value<'h>> {
        let values = self.values(tokens)?;
        if !values.len().is_multiple_of(2) {
            return Err(tokens.bad("a key of the map has no value"));
        }
        match self.h.map(values.chunks_exact(2).map(|pair| (pair[0], pair[1])))? {
            Value::Map(map) if map.len() < values.len() / 2 => Err(tokens.bad("a key of the map occurs twice")),
            map => Ok(map),
        }
    }

    fn function(&self, tokens: &mut Tokens<'_>) -> Res<Value<'h>> {
        let unit = match tokens.word() {
            "prelude" => prelude::any(),
            id => id
                .parse()
                .ok()
                .and_then(|id| self.programs.get(&id))
                .and_then(|&id| self.state.units.get(ProgramId(id))),
        };
        let Some(unit) = unit else { return Err(tokens.bad("its program is not in the text")) };
        let number: usize = tokens.integer("the number of the function")?;
        let params = tokens.quoted_token("the parameters of the function")?;
        let captures = self.values(tokens)?;
        // The last one is the program itself.
        let functions = unit.code.protos.split_last().map_or(&[][..], |(_, functions)| functions);
        match functions.get(number) {
            Some(proto) if *proto.params == *params && proto.captures as usize == captures.len() => {
                self.h.closure(unit.id, proto, captures.into_iter())
            }
            _ => Err(tokens.bad("its program has no such function: this version may compile it another way")),
        }
    }

    fn values(&self, tokens: &mut Tokens<'_>) -> Res<Vec<Value<'h>>> {
        // A lower bound would do; each value takes at least two bytes.
        self.h.check_available(tokens.rest.len().saturating_mul(8))?;
        let mut values = Vec::new();
        while !tokens.rest.is_empty() {
            values.push(self.value(tokens)?);
        }
        Ok(values)
    }

    /// Returns the value of a line that has only one.
    fn only_value(&self, tokens: &mut Tokens<'_>) -> Res<Value<'h>> {
        if tokens.rest.is_empty() {
            return Err(tokens.bad("a value is missing"));
        }
        let value = self.value(tokens)?;
        if tokens.rest.is_empty() { Ok(value) } else { Err(tokens.bad("one value is expected")) }
    }

    fn value(&self, tokens: &mut Tokens<'_>) -> Res<Value<'h>> {
        self.h.charge(cost::TEXT_PART)?;
        let rest = tokens.rest;
        let first = rest.bytes().next().unwrap_or_default();
        if let Some(quote) = marked(rest) {
            let mark = &rest[..quote];
            let text = tokens.quoted(&rest[quote + 1..])?;
            self.h.charge(cost::copied(text.len()))?;
            return self.text(mark, &text, tokens);
        }
        let word = tokens.word();
        match (first, word) {
            (b'@', _) => {
                let number: Option<usize> = word[1..].parse().ok();
                let object = number.and_then(|number| self.objects.get(number));
                object.copied().ok_or_else(|| tokens.bad(format_args!("there is no {word} before it")))
            }
            (b':', _) if super::write::is_plain(&word[1..]) => self.h.keyword(&word[1..]),
            (_, "nil") => Ok(Value::Nil),
            (_, "true") => Ok(Value::Bool(true)),
            (_, "false") => Ok(Value::Bool(false)),
            (_, "##NaN") => Ok(Value::Float(f64::NAN)),
            (_, "##Inf") => Ok(Value::Float(f64::INFINITY)),
            (_, "##-Inf") => Ok(Value::Float(f64::NEG_INFINITY)),
            (b'#', _) if word.starts_with("#x") => self.big(&word[2..], tokens),
            (b'0'..=b'9' | b'-', _) => match (word.parse(), word.parse()) {
                (Ok(int), _) => Ok(Value::Int(int)),
                (_, Ok(float)) if word.contains('.') => Ok(Value::Float(float)),
                _ => Err(tokens.bad(format_args!("{} is not a number", shown(word)))),
            },
            _ => match time(word) {
                Some(time) => self.h.time(time),
                None => Err(tokens.bad(format_args!("{} is not a value", shown(word)))),
            },
        }
    }

    fn text(&self, mark: &str, text: &str, tokens: &Tokens<'_>) -> Res<Value<'h>> {
        Ok(match mark {
            "" => self.h.str(text)?,
            ":" => self.h.keyword(text)?,
            "'" => Value::Symbol(self.h.text(text)?),
            "#'" => Value::Var(self.h.text(text)?),
            "#" => Value::Regex(self.h.text(text)?),
            "tool" => Value::Tool(self.h.text(text)?),
            _ => match BuiltinId::by_name(text) {
                Some(id) => Value::Builtin(id),
                None => return Err(tokens.bad(format_args!("unknown built-in function {}", shown(text)))),
            },
        })
    }

    fn big(&self, digits: &str, tokens: &Tokens<'_>) -> Res<Value<'h>> {
        let (sign, digits) = digits.strip_prefix('-').map_or((Sign::Plus, digits), |digits| (Sign::Minus, digits));
        let valid =
            !digits.is_empty() && digits.len().is_multiple_of(8) && digits.len() / 8 <= LIMBS && digits.is_ascii();
        self.h.charge(cost::copied(digits.len()))?;
        let limb = |limb: &[u8]| u32::from_str_radix(std::str::from_utf8(limb).ok()?, 16).ok();
        let limbs: Option<Vec<u32>> = if valid { digits.as_bytes().rchunks(8).map(limb).collect() } else { None };
        match limbs {
            Some(limbs) if digits.bytes().all(|b| b.is_ascii_hexdigit()) => {
                self.h.integer(&BigInt::from_biguint(sign, BigUint::new(limbs)))
            }
            _ => Err(tokens.bad("a large integer has other digits than it may have, or too many")),
        }
    }
}

/// Returns the position of the quote of a value that is a quoted text after a mark.
fn marked(rest: &str) -> Option<usize> {
    ["", ":", "'", "#'", "#", "tool", "fn"]
        .into_iter()
        .find(|mark| rest.strip_prefix(mark).is_some_and(|rest| rest.starts_with('"')))
        .map(str::len)
}

fn time(word: &str) -> Option<TimeValue> {
    let (kind, numbers) = word.split_once(':')?;
    let (whole, nanos) = match numbers.split_once(':') {
        Some((whole, nanos)) => {
            (whole.parse().ok()?, Some(nanos.parse().ok().filter(|&nanos: &u32| nanos < dates::NANOS)?))
        }
        None => (numbers.parse().ok()?, None),
    };
    match (kind, nanos) {
        ("day", None) => dates::DAYS.contains(&whole).then_some(TimeValue::LocalDate(whole)),
        ("date", None) => Some(TimeValue::Date(whole)),
        ("instant", Some(nanos)) => dates::SECONDS.contains(&whole).then_some(TimeValue::Instant(whole, nanos)),
        ("datetime", Some(nanos)) => dates::SECONDS.contains(&whole).then_some(TimeValue::LocalDateTime(whole, nanos)),
        ("duration", Some(nanos)) => Some(TimeValue::Duration(whole, nanos)),
        _ => None,
    }
}

/// Returns the beginning of a text, for a message.
fn shown(text: &str) -> String {
    const SHOWN: usize = 40;
    text.chars().take(SHOWN).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
