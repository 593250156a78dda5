//! Values as text: readable (`pr-str`), as a part of a string (`str`) and for a person (`println`).

use super::characters;
use super::dates::time_text;
use super::number::{decimal, float_text, plain_float_text};
use super::plain::is_plain;
use crate::cost;
use crate::error::Error;
use crate::heap::{Entries, Heap, Res, ShortText, Str, TextBuf, Time, Value, Work};

/// The styles of printing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// Can be read back.
    Readable,
    /// For a person: floats without an exponent as long as they are short.
    Line,
}

/// A collection that is being printed.
enum Open<'h> {
    /// The remaining elements, and whether one was printed before them.
    Items(&'h [Value<'h>], bool),
    /// A map's entries and the index of the next; of each entry the key comes before the value.
    Entries(Entries<'h>, usize),
    /// The value of the map entry before the next one.
    Value(Value<'h>),
    /// A set's members and the index of the next.
    Members(Entries<'h>, usize),
}

/// Adds a value to a text in a form that can be read back: maps and sets in key order, strings quoted, floats with all
/// digits that distinguish them.
pub fn pr_str<'h>(h: &'h Heap, v: Value<'h>, out: &mut TextBuf<'h>) -> Res<()> {
    show(h, v, out, Style::Readable)
}

/// Adds the text that `str` returns for one value: nil is empty, a string is itself, a string inside a collection is
/// quoted. The caller has charged [`cost::TEXT_PART`] for it.
#[inline]
pub(crate) fn to_str<'h>(h: &'h Heap, v: &Value<'h>, out: &mut TextBuf<'h>) -> Res<()> {
    match v {
        Value::Int(i) => show_int(*i, out),
        Value::Str(s) => out.push_str(s.text()),
        other => other_to_str(h, *other, out),
    }
}

/// Returns the result of `str` for integers and strings, if it is short; `None` for other values.
#[inline(always)]
pub(crate) fn short_str(values: &[Value<'_>]) -> Option<ShortText> {
    let mut text = ShortText::new();
    let fits = values.iter().all(|value| match value {
        Value::Int(i) => text.push(itoa::Buffer::new().format(*i)),
        Value::Str(s) => text.push(s.text()),
        _ => false,
    });
    fits.then_some(text)
}

/// Like [`to_str`], for values that are neither integers nor strings.
#[inline(never)]
fn other_to_str<'h>(h: &'h Heap, v: Value<'h>, out: &mut TextBuf<'h>) -> Res<()> {
    match v {
        Value::Nil => Ok(()),
        Value::Symbol(s) | Value::Regex(s) => out.push_str(s.text()),
        Value::Float(f) if f.is_nan() => out.push_str("NaN"),
        Value::Float(f) if f.is_infinite() => out.push_str(if f > 0.0 { "Infinity" } else { "-Infinity" }),
        Value::Time(t) => out.push_str(&timed(h, t)?),
        Value::Builtin(id) => out.push_str(&h.builtin_text(id)),
        other => show(h, other, out, Style::Readable),
    }
}

/// Adds the line that `println` prints for these values, without the line end: strings unchanged, a vector of single
/// characters as a word, other values readable.
pub(crate) fn println_text<'h>(h: &'h Heap, values: &[Value<'h>], out: &mut TextBuf<'h>) -> Res<()> {
    for (i, &v) in values.iter().enumerate() {
        h.charge(1)?;
        if i > 0 {
            out.push(' ')?;
        }
        match v {
            Value::Str(s) => out.push_str(s.text())?,
            Value::Time(t) => out.push_str(&timed(h, t)?)?,
            Value::Builtin(id) => out.push_str(&h.builtin_text(id))?,
            Value::Vector(items) if is_word(h, items.items())? => {
                for &item in items.items() {
                    if let Value::Str(s) = item {
                        out.push_str(s.text())?;
                    }
                }
            }
            other => show(h, other, out, Style::Line)?,
        }
    }
    Ok(())
}

/// Returns true for strings of one character each, at least one.
fn is_word<'h>(h: &'h Heap, items: &[Value<'h>]) -> Res<bool> {
    for &item in items {
        let Value::Str(s) = item else { return Ok(false) };
        if s.text().len() != 1 && !characters::is_one(h, s.text())? {
            return Ok(false);
        }
        h.charge(1)?;
    }
    Ok(!items.is_empty())
}

fn show<'h>(h: &'h Heap, v: Value<'h>, out: &mut TextBuf<'h>, style: Style) -> Res<()> {
    let mut open = Work::new(h);
    begin(h, v, out, style, &mut open)?;
    while let Some(top) = open.last_mut() {
        let next = match top {
            Open::Items(rest, started) => match rest.split_first() {
                Some((&first, tail)) => {
                    separate(out, *started)?;
                    (*rest, *started) = (tail, true);
                    first
                }
                None => {
                    out.push(']')?;
                    open.pop();
                    continue;
                }
            },
            Open::Members(members, place) if *place < members.len() => {
                separate(out, *place > 0)?;
                *place += 1;
                members.entry(*place - 1).0
            }
            Open::Entries(entries, place) if *place < entries.len() => {
                separate(out, *place > 0)?;
                *place += 1;
                let (key, value) = entries.entry(*place - 1);
                open.push(Open::Value(value))?;
                key
            }
            Open::Members(..) | Open::Entries(..) => {
                out.push('}')?;
                open.pop();
                continue;
            }
            Open::Value(value) => {
                let value = *value;
                out.push(' ')?;
                open.pop();
                value
            }
        };
        begin(h, next, out, style, &mut open)?;
    }
    Ok(())
}

/// Adds a space, unless this is the first value.
pub(crate) fn separate(out: &mut TextBuf<'_>, started: bool) -> Res<()> {
    if started { out.push(' ') } else { Ok(()) }
}

/// Prints a value that contains no others, or the beginning of a collection, whose rest is then open.
fn begin<'h>(h: &'h Heap, v: Value<'h>, out: &mut TextBuf<'h>, style: Style, open: &mut Work<'h, Open<'h>>) -> Res<()> {
    h.charge(cost::TEXT_PART)?;
    match v {
        Value::Vector(items) => {
            out.push('[')?;
            open.push(Open::Items(items.items(), false))
        }
        Value::Map(map) => {
            out.push('{')?;
            open.push(Open::Entries(map.entries(h)?, 0))
        }
        Value::Set(members) => {
            out.push_str("#{")?;
            open.push(Open::Members(members.entries(h)?, 0))
        }
        leaf => show_leaf(h, leaf, out, style),
    }
}

fn show_leaf<'h>(h: &'h Heap, v: Value<'h>, out: &mut TextBuf<'h>, style: Style) -> Res<()> {
    match v {
        Value::Nil => out.push_str("nil"),
        Value::Bool(b) => out.push_str(if b { "true" } else { "false" }),
        Value::Int(i) => show_int(i, out),
        Value::Float(f) => {
            h.charge(cost::FLOAT_WRITTEN)?;
            out.push_str(&if style == Style::Line { plain_float_text(f) } else { float_text(f) })
        }
        Value::Big(big) => decimal(h, big, out),
        Value::Keyword(_, s) => show_after(":", s, out),
        Value::Symbol(s) => show_after("'", s, out),
        Value::Var(s) => show_after("#'", s, out),
        Value::Tool(s) => {
            show_after("#fn[tool/", s, out)?;
            out.push(']')
        }
        Value::Str(s) => quote(s.text(), out),
        Value::Regex(s) => show_regex(s.text(), out),
        Value::Time(t) => quote(&timed(h, t)?, out),
        Value::Closure(closure) => {
            out.push_str("#fn[")?;
            out.push_str(&closure.proto.params)?;
            out.push(']')
        }
        Value::Composed(_) => out.push_str("#fn[...]"),
        Value::Endless(_) => Err(Error::without_end("an endless sequence has no text").into()),
        Value::Builtin(id) => match h.builtin_text(id) {
            text if text.starts_with("#java") => quote(&text, out),
            text => out.push_str(&text),
        },
        Value::VecBuilder(_) | Value::MapBuilder(_) | Value::Unset => out.push_str("#<internal>"),
        Value::Vector(_) | Value::Map(_) | Value::Set(_) => Ok(()),
    }
}

fn show_after(mark: &str, s: &Str<'_>, out: &mut TextBuf<'_>) -> Res<()> {
    out.push_str(mark)?;
    out.push_str(s.text())
}

/// Returns the text of a date or time, and charges for it.
pub(crate) fn timed(h: &Heap, time: &Time) -> Res<String> {
    h.charge(cost::TIME_WRITTEN)?;
    Ok(time_text(time.value))
}

/// Adds an integer without a temporary string.
fn show_int(i: i64, out: &mut TextBuf<'_>) -> Res<()> {
    out.push_str(itoa::Buffer::new().format(i))
}

/// Adds a string in quotes. Only characters that the reader accepts after a backslash are escaped; all others stand for
/// themselves.
pub(crate) fn quote(text: &str, out: &mut TextBuf<'_>) -> Res<()> {
    let is_special = |byte: u8| matches!(byte, b'"' | b'\\' | b'\n' | b'\t' | b'\r');
    if out.push_quoted(false, text, false, is_plain)? {
        return Ok(());
    }
    out.charge_scan(text)?;
    out.push('"')?;
    let mut rest = text;
    while let Some(at) = rest.bytes().position(is_special) {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain)?;
        out.push_str(match special.as_bytes().first() {
            Some(b'"') => "\\\"",
            Some(b'\\') => "\\\\",
            Some(b'\n') => "\\n",
            Some(b'\t') => "\\t",
            _ => "\\r",
        })?;
        rest = special.get(1..).unwrap_or_default();
    }
    out.push_str(rest)?;
    out.push('"')
}

/// Adds a pattern as a literal that can be read back. It is written unchanged, except where it would end the literal (a
/// bare quote, a backslash at the end) or stop the reader (a line break after a backslash). Between `\Q` and `\E`,
/// where a backslash means itself, the quotation is interrupted.
fn show_regex(pattern: &str, out: &mut TextBuf<'_>) -> Res<()> {
    out.charge_scan(pattern)?;
    out.push_str("#\"")?;
    let (mut escaped, mut quoted, mut from) = (false, false, 0);
    for (at, byte) in pattern.bytes().enumerate() {
        let changed = match (byte, escaped) {
            (b'"', false) => Some((at, r#"\""#)),
            (b'\n', true) => Some((at - 1, r"\n")),
            (b'\r', true) => Some((at - 1, r"\r")),
            _ => None,
        };
        if let Some((start, instead)) = changed {
            out.push_str(pattern.get(from..start).unwrap_or_default())?;
            let kept = if quoted && start < at { r"\E\\" } else { r"\E" };
            let parts = if quoted { [kept, instead, r"\Q"] } else { ["", instead, ""] };
            parts.iter().try_for_each(|part| out.push_str(part))?;
            from = at + 1;
        }
        quoted = match pattern.as_bytes().get(at.wrapping_sub(1)..=at) {
            Some(br"\Q") if escaped => true,
            Some(br"\E") => false,
            _ => quoted,
        };
        escaped = byte == b'\\' && !escaped;
    }
    let end = pattern.len() - usize::from(escaped);
    out.push_str(pattern.get(from..end).unwrap_or_default())?;
    out.push_str(if escaped { r"\E\\" } else { "" })?;
    out.push('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readable<'h>(h: &'h Heap, v: Value<'h>) -> String {
        let mut out = TextBuf::new(h);
        pr_str(h, v, &mut out).expect("there is room");
        out.into_string()
    }

    fn line<'h>(h: &'h Heap, values: &[Value<'h>]) -> String {
        let mut out = TextBuf::new(h);
        println_text(h, values, &mut out).expect("there is room");
        out.into_string()
    }

    #[test]
    fn collections_are_readable() -> Res<()> {
        let h = Heap::new(1, usize::MAX / 2);
        let (a, b, x) = (h.keyword("a")?, h.keyword("b")?, h.str("x\n\"\\")?);
        let inner = h.map([(b, Value::Nil), (a, x)].into_iter())?;
        let set = h.set([Value::Int(2), Value::Int(i64::MIN), Value::Float(1.5)].into_iter())?;
        let empty = h.vector(&[])?;
        let all = h.vector(&[inner, set, empty, Value::Regex(h.text("\"\\d\\\"")?), Value::Bool(true)])?;
        let text = r##"[{:a "x\n\"\\" :b nil} #{-9223372036854775808 1.5 2} [] #"\"\d\"" true]"##;
        assert_eq!(readable(&h, all), text);
        assert_eq!(line(&h, &[a, x, Value::Nil]), ":a x\n\"\\ nil");
        Ok(())
    }

    #[test]
    fn patterns_are_readable() -> Res<()> {
        let h = Heap::new(1, usize::MAX / 2);
        for (pattern, text) in [
            (r#"a"b\"c\d"#, r#"#"a\"b\"c\d""#),
            (r#"\\"\\"#, r##"#"\\\"\\""##),
            ("a\nb\\\n\\\r", "#\"a\nb\\n\\r\""),
            (r#"\Qa"b\"c\E""#, r##"#"\Qa\E\"\Qb\"c\E\"""##),
            ("\\Qa\\\nb\\E", r##"#"\Qa\E\\\n\Qb\E""##),
            (r"\Qa\", r##"#"\Qa\E\\""##),
            (r#"\\Q""#, r##"#"\\Q\"""##),
        ] {
            assert_eq!(readable(&h, Value::Regex(h.text(pattern)?)), text, "{pattern:?}");
        }
        Ok(())
    }

    #[test]
    fn deep_values_print() -> Res<()> {
        let h = Heap::new(1, usize::MAX / 2);
        let mut v = h.vector(&[])?;
        for _ in 0..200_000 {
            v = h.vector(&[v])?;
        }
        assert_eq!(readable(&h, v).len(), 400_002);
        Ok(())
    }

    #[test]
    fn characters_print_as_a_word() -> Res<()> {
        let h = Heap::new(1, usize::MAX / 2);
        let word = h.vector(&[h.str("h")?, h.str("é")?, h.str("🇩🇪")?])?;
        let words = h.vector(&[h.str("h")?, h.str("ab")?])?;
        assert_eq!(line(&h, &[word, words]), "hé🇩🇪 [\"h\" \"ab\"]");
        assert_eq!(line(&h, &[h.vector(&[])?]), "[]");
        Ok(())
    }
}
