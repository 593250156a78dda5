//! Writes values as JSON. Nothing here recurses: open arrays and objects wait on a list.

use super::push;
use crate::cost;
use crate::error::{Error, Reason};
use crate::heap::{Entries, Fault, Heap, Map, Res, TextBuf, Value};
use crate::text::describe;
use crate::text::number::decimal;
use crate::text::plain::{is_plain, is_stop};
use crate::text::{pr_str, timed};
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
    if !is_written(h, value, style, out)? {
        writer.begin(value, out)?;
    }
    while let Some(open) = writer.open.last_mut() {
        match rest_of(open, h, style, out)? {
            Some(inner) => writer.begin(inner, out)?,
            None => {
                out.push(if matches!(open, Open::Object(..)) { '}' } else { ']' })?;
                writer.open.pop();
            }
        }
    }
    Ok(())
}

/// Writes the values of an array or object up to the first that is not a simple one, and returns that.
fn rest_of<'h>(open: &mut Open<'h>, h: &'h Heap, style: Style, out: &mut TextBuf<'h>) -> Res<Option<Value<'h>>> {
    match open {
        Open::Array(items, at) => {
            while let Some(&item) = items.get(*at) {
                separate(*at, out)?;
                *at += 1;
                if !is_written(h, item, style, out)? {
                    return Ok(Some(item));
                }
            }
        }
        Open::Set(members, at) => {
            while *at < members.len() {
                separate(*at, out)?;
                let (member, _) = members.entry(*at);
                *at += 1;
                if !is_written(h, member, style, out)? {
                    return Ok(Some(member));
                }
            }
        }
        Open::Object(entries, at) => {
            while *at < entries.len() {
                let (key, value) = entries.entry(*at);
                if let Value::Str(key) | Value::Keyword(_, key) = key {
                    quoted(*at > 0, key.text(), true, out)?;
                }
                *at += 1;
                if !is_written(h, value, style, out)? {
                    return Ok(Some(value));
                }
            }
        }
    }
    Ok(None)
}

/// A comma in front of every value but the first.
fn separate(at: usize, out: &mut TextBuf<'_>) -> Res<()> {
    if at > 0 { out.push(',') } else { Ok(()) }
}

/// Writes a simple value, most often one that JSON has; returns false, with nothing written, for another.
#[inline(always)]
fn is_written<'h>(h: &'h Heap, value: Value<'h>, style: Style, out: &mut TextBuf<'h>) -> Res<bool> {
    h.charge(1)?;
    match value {
        Value::Nil => out.push_str("null")?,
        Value::Bool(b) => out.push_str(if b { "true" } else { "false" })?,
        Value::Int(i) => int_text(i, out)?,
        Value::Str(s) => quoted(false, s.text(), false, out)?,
        Value::Float(f) if f.is_finite() => {
            h.charge(cost::FLOAT_WRITTEN)?;
            float_text(f, style, out)?;
        }
        Value::Keyword(_, name) if style == Style::Project => quoted(false, name.text(), false, out)?,
        _ => return Ok(false),
    }
    Ok(true)
}

struct Writer<'h> {
    h: &'h Heap,
    style: Style,
    open: Vec<Open<'h>>,
}

impl<'h> Writer<'h> {
    /// Writes the beginning of a value that holds others, or one that JSON has no form for.
    fn begin(&mut self, value: Value<'h>, out: &mut TextBuf<'h>) -> Res<()> {
        let h = self.h;
        match value {
            Value::Big(big) => decimal(h, big, out),
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
            Value::Set(members) => {
                out.push('[')?;
                push(h, &mut self.open, Open::Set(members.entries(h)?, 0))
            }
            other => {
                let mut text = TextBuf::new(h);
                printed(h, other, &mut text)?;
                quoted(false, text.as_str(), false, out)
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
        h.check_available(len.saturating_mul(64))?;
        let mut sorted = Vec::with_capacity(len);
        for (key, value) in entries.iter() {
            sorted.push((self.own_text(key)?, key, value));
        }
        sorted.sort_by_key(|entry| entry.0);
        for pair in sorted.windows(2) {
            if let [(a, first, _), (b, second, _)] = pair
                && a == b
            {
                return Err(self.collision(a, [*first, *second]));
            }
        }
        let (keys, values) = (h.vec_builder(len)?, h.vec_builder(len)?);
        for (key, _, value) in sorted {
            keys.push(h, h.str_view(key)?)?;
            values.push(h, value)?;
        }
        Ok(Entries::Small(keys.items(), values.items()))
    }

    /// The text of a key.
    fn own_text(&self, key: Value<'h>) -> Res<&'h str> {
        match key {
            Value::Str(s) | Value::Keyword(_, s) => return Ok(s.text()),
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
    fn collision(&self, key: &str, [first, second]: [Value<'h>; 2]) -> Fault {
        let shown: String = key.chars().take(SHOWN).collect();
        let (subject, place) = (self.style.subject(), self.place());
        let both = format!("{} and {}", shown_key(first), shown_key(second));
        let message = format!("{subject}: two keys{place}, {both}, would both become the JSON key {shown:?}");
        Error::new(Reason::TypeError, message).hint("give the keys different texts, or keep only one of them").into()
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
                Open::Object(entries, next) => {
                    place.push_str(&shown_key(entries.entry(next.saturating_sub(1)).0));
                }
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

/// A key in a message.
fn shown_key(key: Value<'_>) -> String {
    match key {
        Value::Str(s) => format!("{:?}", s.text().chars().take(SHOWN).collect::<String>()),
        Value::Keyword(_, s) => format!(":{}", s.text().chars().take(SHOWN).collect::<String>()),
        other => describe(other),
    }
}

/// An integer without a detour over a string on Rust's heap.
fn int_text(i: i64, out: &mut TextBuf<'_>) -> Res<()> {
    out.push_str(itoa::Buffer::new().format(i))
}

/// A finite float with the fewest digits that read back as the same float. `json/generate-string` takes the shorter of
/// the two notations, and beyond the integers that floats hold exactly always an exponent; there is always a point.
fn float_text(f: f64, style: Style, out: &mut TextBuf<'_>) -> Res<()> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let mut digits = ryu::Buffer::new();
    let plain = digits.format_finite(f);
    // An exponent can only be shorter where there are several zeroes in front of the point or right behind it.
    if style == Style::Project || f == 0.0 || ((0.001..EXACT).contains(&f.abs()) && !plain.ends_with("00.0")) {
        return out.push_str(plain);
    }
    let mut scientific = format!("{f:e}");
    if !scientific.contains('.')
        && let Some(e) = scientific.find('e')
    {
        scientific.insert_str(e, ".0");
    }
    if f.abs() >= EXACT || plain.contains('e') {
        return out.push_str(&scientific);
    }
    out.push_str(if plain.len() <= scientific.len() { plain } else { &scientific })
}

/// A text in quotation marks, escaped where JSON wants it, with a comma in front and a colon behind where they are wanted.
#[inline(always)]
fn quoted(comma: bool, text: &str, colon: bool, out: &mut TextBuf<'_>) -> Res<()> {
    if out.push_quoted(comma, text, colon, is_plain)? { Ok(()) } else { escaped(comma, text, colon, out) }
}

/// As [`quoted`], of a text of which some is escaped.
#[cold]
fn escaped(comma: bool, text: &str, colon: bool, out: &mut TextBuf<'_>) -> Res<()> {
    out.look_at_each(text)?;
    if comma {
        out.push(',')?;
    }
    out.push('"')?;
    let mut from = 0;
    for (i, byte) in text.bytes().enumerate() {
        if is_stop(byte) {
            out.push_str(&text[from..i])?;
            from = i + 1;
            escape(byte, out)?;
        }
    }
    let end = if colon { "\":" } else { "\"" };
    out.push_all(&[&text[from..], end])
}

fn escape(byte: u8, out: &mut TextBuf<'_>) -> Res<()> {
    match byte {
        b'"' => out.push_str("\\\""),
        b'\\' => out.push_str("\\\\"),
        b'\n' => out.push_str("\\n"),
        b'\r' => out.push_str("\\r"),
        b'\t' => out.push_str("\\t"),
        0x08 => out.push_str("\\b"),
        0x0C => out.push_str("\\f"),
        // It is below 0x20.
        other => {
            let last = char::from_digit(u32::from(other & 15), 16).unwrap_or('0').to_ascii_uppercase();
            out.push_str(if other < 0x10 { "\\u000" } else { "\\u001" })?;
            out.push(last)
        }
    }
}

/// The text of a value that JSON has no form for: time values as ISO-8601, symbols by name, the others as they print.
fn printed<'h>(h: &'h Heap, value: Value<'h>, out: &mut TextBuf<'h>) -> Res<()> {
    match value {
        Value::Str(s) | Value::Keyword(_, s) | Value::Symbol(s) => out.push_str(s.text()),
        Value::Time(t) => out.push_str(&timed(h, t)?),
        other => pr_str(h, other, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Duplicate, ReadLimits, read};

    fn text<'h>(h: &'h Heap, value: Value<'h>, style: Style) -> Result<String, String> {
        let mut out = TextBuf::new(h);
        match write(h, value, style, &mut out) {
            Ok(()) => Ok(out.into_string()),
            Err(Fault::Error(error)) => Err(error.message),
            Err(fault) => Err(format!("{fault:?}")),
        }
    }

    #[test]
    fn what_is_read_is_written() {
        let h = Heap::new(1, 1 << 26);
        for json in [
            r#"{"a":[1,-2,9223372036854775808,null,true,false],"b":{},"c":[]}"#,
            r#"["\"\\\b\f\n\r\t\u0001é😀\u007f",[[[]]],{"":{"x":-9223372036854775808}}]"#,
            "[0.0,-0.0,0.1,1.5,100.0,1.0e3,1.5e3,120.0,1234567.0,0.001,0.0001,1.2e-4,1.0e20,5.0e-324]",
            "[1.7976931348623157e308,9007199254740991.0,9.007199254740992e15,123456.789]",
        ] {
            let json = json.replace("\\u007f", "\u{7f}");
            let value = read(&h, &json, &ReadLimits::default(), Duplicate::Last).unwrap_or(Value::Nil);
            assert_eq!(text(&h, value, Style::Strict).as_deref(), Ok(json.as_str()));
            // The other style may choose the other notation.
            let projected = text(&h, value, Style::Project).unwrap_or_default();
            let again = read(&h, &projected, &ReadLimits::default(), Duplicate::Last).unwrap_or(Value::Nil);
            assert!(h.same_key(value, again).is_ok_and(|same| same), "{projected}");
        }
    }

    #[test]
    fn what_json_has_not() -> Res<()> {
        let h = Heap::new(1, 1 << 26);
        let keyword = h.keyword("k")?;
        let set = h.set([Value::Int(2), Value::Int(1)].into_iter())?;
        let numbers = h.vector(&[Value::Float(f64::INFINITY), Value::Float(f64::NAN)])?;
        let map = h.map([(keyword, set), (Value::Int(10), keyword), (h.str("z")?, numbers)].into_iter())?;
        assert_eq!(text(&h, map, Style::Project).as_deref(), Ok(r###"{"10":"k","k":[1,2],"z":["##Inf","##NaN"]}"###));
        let refused = |value, place: &str| {
            let message = text(&h, value, Style::Strict).err().unwrap_or_default();
            assert!(message.contains(place), "{message:?} does not say {place:?}");
        };
        refused(keyword, "the keyword :k");
        refused(map, r#"at ["10"]"#);
        refused(h.vector(&[Value::Nil, h.map([(h.str("a")?, set)].into_iter())?])?, r#"at [1 "a"]"#);
        refused(h.map([(Value::Nil, Value::Nil)].into_iter())?, "nil as the key");
        let twice = h.map([(keyword, Value::Int(1)), (h.str("k")?, Value::Int(2))].into_iter())?;
        refused(twice, "the JSON key \"k\"");
        assert!(text(&h, twice, Style::Project).is_err());
        Ok(())
    }

    #[test]
    fn deep_values_do_not_recurse() -> Res<()> {
        let h = Heap::new(1, 1 << 28);
        let mut value = h.vector(&[])?;
        for _ in 0..100_000 {
            value = h.vector(&[value])?;
        }
        assert_eq!(text(&h, value, Style::Strict).map(|text| text.len()), Ok(200_002));
        Ok(())
    }
}
