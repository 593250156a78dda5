//! Writes values as JSON. Nothing here recurses: open arrays and objects wait on a list.

use super::push;
use crate::builtins::args::describe;
use crate::error::{Error, Reason};
use crate::heap::{Entries, Fault, Heap, Map, Res, TextBuf, Value};
use std::fmt::Write as _;

/// What happens to values that JSON does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// As `json/generate-string` does: a keyword, set, function or infinite number is an error that says where it
    /// stands. Keys may be strings, keywords and integers.
    Strict,
    /// As a host receives it: keywords as their names, sets as arrays in order, everything else as its text.
    Project,
}

impl Style {
    fn subject(self) -> &'static str {
        match self {
            Style::Strict => "json/generate-string",
            Style::Project => "the value",
        }
    }
}

/// An array or object that is not yet finished.
enum Open<'h> {
    Array(&'h [Value<'h>], usize),
    Set(Entries<'h>, usize),
    Object(Entries<'h>, usize),
}

/// Writes a value.
pub fn write<'h>(h: &'h Heap, value: Value<'h>, style: Style, out: &mut TextBuf<'h>) -> Res<()> {
    let mut writer = Writer { h, style, open: Vec::new() };
    writer.begin(value, out)?;
    while let Some(open) = writer.open.last_mut() {
        let next = match open {
            Open::Array(items, at) => items.get(*at).map(|&item| (*at, None, item)),
            Open::Set(members, at) => (*at < members.len()).then(|| (*at, None, members.entry(*at).0)),
            Open::Object(entries, at) => (*at < entries.len()).then(|| {
                let (key, value) = entries.entry(*at);
                (*at, Some(key), value)
            }),
        };
        let (Open::Array(_, at) | Open::Set(_, at) | Open::Object(_, at)) = open;
        *at += 1;
        match next {
            Some((place, key, item)) => {
                if place > 0 {
                    out.push(',')?;
                }
                if let Some(key) = key {
                    key_text(h, key, out)?;
                    out.push(':')?;
                }
                writer.begin(item, out)?;
            }
            None => {
                out.push(if matches!(open, Open::Object(..)) { '}' } else { ']' })?;
                writer.open.pop();
            }
        }
    }
    Ok(())
}

struct Writer<'h> {
    h: &'h Heap,
    style: Style,
    open: Vec<Open<'h>>,
}

impl<'h> Writer<'h> {
    /// Writes a value that holds no others, or the beginning of one that does.
    fn begin(&mut self, value: Value<'h>, out: &mut TextBuf<'h>) -> Res<()> {
        let h = self.h;
        h.charge(1)?;
        match value {
            Value::Nil => out.push_str("null"),
            Value::Bool(b) => out.push_str(if b { "true" } else { "false" }),
            Value::Int(i) => out.push_str(&i.to_string()),
            Value::Big(_) => integer_text(h, value, out),
            Value::Str(s) => quoted(s.text, out),
            Value::Float(f) if f.is_finite() => out.push_str(&float_text(f)),
            Value::Vector(v) => {
                out.push('[')?;
                push(h, &mut self.open, Open::Array(v.items(), 0))
            }
            Value::Map(map) => {
                let entries = self.entries(map)?;
                out.push('{')?;
                push(h, &mut self.open, Open::Object(entries, 0))
            }
            _ if self.style == Style::Strict => Err(self.refuse(value)),
            Value::Keyword(_, name) => quoted(name.text, out),
            Value::Set(members) => {
                out.push('[')?;
                push(h, &mut self.open, Open::Set(members.entries(h)?, 0))
            }
            other => {
                let mut text = TextBuf::new(h);
                printed(h, other, &mut text)?;
                quoted(text.as_str(), out)
            }
        }
    }

    /// The entries of a map in the order of their keys' texts, with keys that have a text of their own.
    fn entries(&self, map: &'h Map<'h>) -> Res<Entries<'h>> {
        let h = self.h;
        let entries = map.entries(h)?;
        h.charge(entries.len() as u64)?;
        let strings = entries.iter().all(|(key, _)| matches!(key, Value::Str(_)));
        if strings || entries.iter().all(|(key, _)| matches!(key, Value::Keyword(..))) {
            return Ok(entries);
        }
        let len = entries.len();
        h.charge(len as u64 * u64::from(usize::BITS - len.leading_zeros()))?;
        h.room(len.saturating_mul(48))?;
        let mut sorted = Vec::with_capacity(len);
        for (key, value) in entries.iter() {
            sorted.push((self.own_text(key)?, value));
        }
        sorted.sort_by_key(|entry| entry.0);
        for pair in sorted.windows(2) {
            if let [(a, _), (b, _)] = pair
                && a == b
            {
                return Err(self.collision(a));
            }
        }
        let (keys, values) = (h.vec_builder(len)?, h.vec_builder(len)?);
        for (key, value) in sorted {
            keys.push(h, h.str_view(key)?)?;
            values.push(h, value)?;
        }
        Ok(Entries::Small(keys.items(), values.items()))
    }

    /// The text of a key.
    fn own_text(&self, key: Value<'h>) -> Res<&'h str> {
        match key {
            Value::Str(s) | Value::Keyword(_, s) => return Ok(s.text),
            Value::Int(_) | Value::Big(_) => {}
            _ if self.style == Style::Strict => {
                let message = format!(
                    "{} cannot write {} as the key of a JSON object{}",
                    self.style.subject(),
                    describe(key),
                    self.place()
                );
                return Err(Error::new(Reason::TypeError, message)
                    .hint("use strings, keywords or integers as keys")
                    .into());
            }
            _ => {}
        }
        let mut text = TextBuf::new(self.h);
        printed(self.h, key, &mut text)?;
        Ok(text.finish()?.as_str().unwrap_or_default())
    }

    #[cold]
    fn collision(&self, key: &str) -> Fault {
        let shown: String = key.chars().take(SHOWN).collect();
        Error::new(
            Reason::TypeError,
            format!("{}: two keys{} would both become the JSON key {shown:?}", self.style.subject(), self.place()),
        )
        .hint("give the keys different texts, or keep only one of them")
        .into()
    }

    #[cold]
    fn refuse(&self, value: Value<'h>) -> Fault {
        let hint = match value {
            Value::Keyword(..) => "JSON has no keywords: write (name k) or (str k)",
            Value::Set(_) => "JSON has no sets: write (vec s)",
            Value::Float(_) => "JSON has no infinite numbers and no NaN",
            _ => "JSON holds nil, booleans, numbers, strings, vectors and maps: write (str x)",
        };
        let what = describe(value);
        Error::new(
            Reason::TypeError,
            format!("{} cannot write {what} as a JSON value{}", self.style.subject(), self.place()),
        )
        .hint(hint)
        .into()
    }

    /// Where the writer stands: ` at ["orders" 3 :total]`.
    fn place(&self) -> String {
        const STEPS: usize = 8;
        let mut place = String::new();
        for open in self.open.iter().take(STEPS) {
            place.push(if place.is_empty() { '[' } else { ' ' });
            match open {
                Open::Array(_, next) => {
                    let _ = write!(place, "{}", next.saturating_sub(1));
                }
                Open::Set(..) => place.push_str("#{}"),
                Open::Object(entries, next) => match entries.entry(next.saturating_sub(1)).0 {
                    Value::Str(s) => {
                        let _ = write!(place, "{:?}", s.text.chars().take(SHOWN).collect::<String>());
                    }
                    Value::Keyword(_, s) => {
                        place.push(':');
                        place.extend(s.text.chars().take(SHOWN));
                    }
                    other => place.push_str(&describe(other)),
                },
            }
        }
        if place.is_empty() {
            return String::new();
        }
        if self.open.len() > STEPS {
            place.push_str(" ...");
        }
        format!(" at {place}]")
    }
}

/// The most characters of a key in a message.
const SHOWN: usize = 40;

/// A big integer in decimal. Conversion takes steps in the square of the length.
fn integer_text<'h>(h: &'h Heap, value: Value<'h>, out: &mut TextBuf<'h>) -> Res<()> {
    match value {
        Value::Big(big) => {
            let limbs = big.limbs.len() as u64;
            h.charge(limbs * limbs / 4 + limbs)?;
            h.room(big.limbs.len().saturating_mul(24))?;
            out.push_str(&big.to_bigint().to_string())
        }
        Value::Int(i) => out.push_str(&i.to_string()),
        _ => Ok(()),
    }
}

/// A finite float with the fewest digits that read back as the same float, in the shorter of the two notations; beyond
/// the integers that floats hold exactly always with an exponent. There is always a point: floats stay floats.
fn float_text(f: f64) -> String {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let mut scientific = format!("{f:e}");
    if !scientific.contains('.')
        && let Some(e) = scientific.find('e')
    {
        scientific.insert_str(e, ".0");
    }
    // Below this, zeros after the point alone are longer than an exponent.
    if f != 0.0 && (f.abs() >= EXACT || f.abs() < 1e-6) {
        return scientific;
    }
    let mut plain = f.to_string();
    if !plain.contains('.') {
        plain.push_str(".0");
    }
    if plain.len() <= scientific.len() { plain } else { scientific }
}

fn key_text<'h>(h: &'h Heap, key: Value<'h>, out: &mut TextBuf<'h>) -> Res<()> {
    match key {
        Value::Str(s) | Value::Keyword(_, s) => quoted(s.text, out),
        other => {
            out.push('"')?;
            integer_text(h, other, out)?;
            out.push('"')
        }
    }
}

/// A text in quotation marks; what JSON wants escaped is.
fn quoted(text: &str, out: &mut TextBuf<'_>) -> Res<()> {
    out.push('"')?;
    let mut from = 0;
    for (i, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0C => "\\f",
            0..=0x1F => "",
            _ => continue,
        };
        out.push_str(&text[from..i])?;
        from = i + 1;
        if short.is_empty() {
            out.push_str(&format!("\\u{byte:04X}"))?;
        } else {
            out.push_str(short)?;
        }
    }
    out.push_str(&text[from..])?;
    out.push('"')
}

/// The text of a value that JSON has no form for.
fn printed<'h>(h: &'h Heap, value: Value<'h>, out: &mut TextBuf<'h>) -> Res<()> {
    match value {
        Value::Nil => out.push_str("nil"),
        Value::Bool(b) => out.push_str(if b { "true" } else { "false" }),
        Value::Int(_) | Value::Big(_) => integer_text(h, value, out),
        Value::Float(f) if f.is_nan() => out.push_str("##NaN"),
        Value::Float(f) if f.is_infinite() => out.push_str(if f > 0.0 { "##Inf" } else { "##-Inf" }),
        Value::Float(f) => out.push_str(&float_text(f)),
        Value::Str(s) | Value::Keyword(_, s) => out.push_str(s.text),
        Value::Time(t) => out.push_str(&crate::builtins::java_time::iso_text(t.value)),
        Value::Symbol(s) => out.push_str(s.text),
        Value::Var(s) => {
            out.push_str("#'")?;
            out.push_str(s.text)
        }
        Value::Regex(s) => {
            out.push_str("#\"")?;
            out.push_str(s.text)?;
            out.push('"')
        }
        other => other_text(h, other, out),
    }
}

fn other_text<'h>(_h: &'h Heap, value: Value<'h>, out: &mut TextBuf<'h>) -> Res<()> {
    match value {
        Value::Closure(c) => {
            out.push_str("#fn[")?;
            out.push_str(&c.proto.params)?;
            out.push(']')
        }
        Value::Builtin(_) => out.push_str("#<builtin>"),
        other => out.push_str(&format!("#<{}>", other.type_name())),
    }
}
