//! Writes values as JSON. There is no recursion: open arrays and objects are kept in a list.

use super::{MAX_DEPTH, MAX_DIGITS, push};
use crate::cost;
use crate::error::{Error, Reason};
use crate::heap::{Big, Entries, Fault, Heap, Map, Res, TextBuf, TimeValue, Value};
use crate::text::describe;
use crate::text::number::{FloatDigits, decimal, float_text as float_text_of};
use crate::text::plain::{is_plain, is_stop};
use crate::text::{pr_str, timed};
use std::fmt::Write as _;

/// How to write values that have no JSON form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// The rules of `json/generate-string`: a keyword, set, function or infinite number is an error that gives its
    /// path. Keys can be strings, keywords and integers.
    Strict,
    /// The form that hosts receive: keywords as their names, sets as arrays in order, numbers without a JSON form as
    /// null, and everything else as its text.
    Project,
    /// The form that tools receive as arguments: like [`Style::Project`], but numbers without a JSON form, functions
    /// and patterns are errors that give their path.
    Arguments,
    /// JSON with a mark before what JSON does not have: `#[1]` is a set, `#D19724` a date in days, and `#I1:5`, `#L1:5`
    /// and `#P1:5` are an instant, a date with time and a duration in seconds and nanoseconds. Otherwise like
    /// [`Style::Project`].
    Typed,
}

impl Style {
    fn subject(self) -> &'static str {
        match self {
            Style::Strict => "json/generate-string",
            Style::Project | Style::Typed => "the value",
            Style::Arguments => "the arguments",
        }
    }

    /// Returns whether the keys of an object keep the order in which they were written. Equal values are equal texts for
    /// the others, which compare or store them.
    fn is_as_written(self) -> bool {
        matches!(self, Style::Project | Style::Typed)
    }

    /// Returns whether tools cannot receive this value, not even as its text.
    fn refuses(self, value: Value<'_>) -> bool {
        self == Style::Arguments
            && match value {
                Value::Float(f) => !f.is_finite(),
                Value::Closure(_) | Value::Builtin(_) | Value::Composed(_) | Value::Tool(_) | Value::Endless(_) => true,
                Value::Regex(_) | Value::Var(_) => true,
                _ => false,
            }
    }
}

/// The numbers that have no JSON form: they were written as null, or as the text of a key.
#[derive(Debug, Default)]
pub struct Nulls {
    /// How many there are.
    pub count: usize,
    /// The first of them, at most [`Nulls::TOLD`].
    pub first: Vec<Null>,
    /// Whether there is a set or a time among the values, which [`Style::Typed`] writes differently.
    pub has_typed: bool,
}

impl Nulls {
    /// The maximum length of [`Nulls::first`].
    pub const TOLD: usize = 8;
}

/// A number that JSON does not have.
#[derive(Debug, PartialEq, Eq)]
pub struct Null {
    /// Its path, such as `$.rows[2].rate`; of a key, the path of its map.
    pub path: String,
    /// The number: `##NaN`, `##Inf` or `##-Inf`.
    pub number: String,
    /// Whether it is a key of a map, which is its text in JSON.
    pub is_key: bool,
}

/// An unfinished array or object.
enum Open<'h> {
    Array(&'h [Value<'h>], usize),
    Set(Entries<'h>, usize),
    Object(Entries<'h>, usize),
}

/// Writes a value as JSON that can be read again. Returns the numbers that JSON does not have.
///
/// # Errors
/// A value nested deeper than [`MAX_DEPTH`] or an integer with more than [`MAX_DIGITS`] digits fails with the reason
/// `result_limit_exceeded`. A value that the style does not allow, or two keys with the same text, also fail.
pub fn write<'h>(h: &'h Heap, value: Value<'h>, style: Style, out: &mut TextBuf<'h>) -> Res<Nulls> {
    let mut writer = Writer { h, style, open: Vec::new(), nulls: Nulls::default() };
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
    Ok(writer.nulls)
}

/// Writes the elements of an array or object up to the first that is not simple, and returns that element.
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

/// Writes a comma before every value except the first.
fn separate(at: usize, out: &mut TextBuf<'_>) -> Res<()> {
    if at > 0 { out.push(',') } else { Ok(()) }
}

/// Writes a simple value. Returns false, with nothing written, for all other values.
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
        Value::Keyword(_, name) if style != Style::Strict => quoted(false, name.text(), false, out)?,
        _ => return Ok(false),
    }
    Ok(true)
}

struct Writer<'h> {
    h: &'h Heap,
    style: Style,
    open: Vec<Open<'h>>,
    nulls: Nulls,
}

impl<'h> Writer<'h> {
    /// Writes the start of a collection, or a value that is not simple.
    fn begin(&mut self, value: Value<'h>, out: &mut TextBuf<'h>) -> Res<()> {
        let h = self.h;
        match value {
            Value::Big(big) => self.long_integer(big, out),
            Value::Vector(v) => {
                out.push('[')?;
                self.enter(Open::Array(v.items(), 0))
            }
            Value::Map(map) => {
                let entries = self.entries(map)?;
                out.push('{')?;
                self.enter(Open::Object(entries, 0))
            }
            _ if self.style == Style::Strict => Err(self.refuse(value)),
            _ if self.style.refuses(value) => Err(self.refuse_argument(value)),
            Value::Time(time) if self.style == Style::Typed => typed_time(time.value, out),
            Value::Set(members) => {
                self.nulls.has_typed = true;
                out.push_str(if self.style == Style::Typed { "#[" } else { "[" })?;
                self.enter(Open::Set(members.entries(h)?, 0))
            }
            Value::Float(f) => {
                self.note_null(f, false);
                out.push_str("null")
            }
            other => {
                self.nulls.has_typed |= matches!(other, Value::Time(_));
                let mut text = TextBuf::new(h);
                printed(h, other, &mut text)?;
                quoted(false, text.as_str(), false, out)
            }
        }
    }

    /// Opens an array or object.
    fn enter(&mut self, inner: Open<'h>) -> Res<()> {
        if self.open.len() >= MAX_DEPTH {
            return Err(self.too_deep());
        }
        push(self.h, &mut self.open, inner)
    }

    #[cold]
    fn too_deep(&self) -> Fault {
        let message = format!(
            "{} cannot be written as JSON: nested more than {MAX_DEPTH} arrays and objects deep, which is the limit",
            self.what()
        );
        Error::new(Reason::ResultLimitExceeded, message)
            .hint("make it flatter, for example a vector of parts that refer to each other by number")
            .detail("limit", MAX_DEPTH)
            .into()
    }

    /// Writes an integer beyond 64 bits.
    fn long_integer(&self, big: &Big<'h>, out: &mut TextBuf<'h>) -> Res<()> {
        /// Integers with more limbs than this have more than [`MAX_DIGITS`] digits.
        const LIMBS: usize = MAX_DIGITS / 9;
        let before = out.as_str().len() + usize::from(big.negative);
        if big.limbs.len() <= LIMBS {
            decimal(self.h, big, out)?;
        }
        if big.limbs.len() > LIMBS || out.as_str().len() - before > MAX_DIGITS {
            return Err(self.too_long());
        }
        Ok(())
    }

    #[cold]
    fn too_long(&self) -> Fault {
        let message = format!(
            "{} cannot be written as JSON: the integer{} has more than {MAX_DIGITS} digits, which is the limit",
            self.what(),
            self.place()
        );
        Error::new(Reason::ResultLimitExceeded, message)
            .hint("convert it with (str n)")
            .detail("limit", MAX_DIGITS)
            .into()
    }

    /// Returns the name of the value in messages.
    fn what(&self) -> &'static str {
        match self.style {
            Style::Strict => "json/generate-string: the value",
            style => style.subject(),
        }
    }

    #[cold]
    fn note_null(&mut self, f: f64, is_key: bool) {
        self.nulls.count += 1;
        if self.nulls.first.len() < Nulls::TOLD {
            self.nulls.first.push(Null { path: self.path(), number: float_text_of(f), is_key });
        }
    }

    /// Returns the entries of a map with keys that are strings or keywords: as they were written, or sorted by the text of
    /// their keys.
    fn entries(&mut self, map: &'h Map<'h>) -> Res<Entries<'h>> {
        let h = self.h;
        let entries = if self.style.is_as_written() { map.entries_as_written(h)? } else { map.entries(h)? };
        h.charge(entries.len() as u64)?;
        let strings = entries.iter().all(|(key, _)| matches!(key, Value::Str(_)));
        if strings || entries.iter().all(|(key, _)| matches!(key, Value::Keyword(..))) {
            return Ok(entries);
        }
        let len = entries.len();
        h.charge(len as u64 * u64::from(usize::BITS - len.leading_zeros()))?;
        h.check_available(len.saturating_mul(64))?;
        let mut all = Vec::with_capacity(len);
        for (key, value) in entries.iter() {
            all.push((self.own_text(key)?, key, value));
            if let Value::Float(f) = key
                && !f.is_finite()
            {
                self.note_null(f, true);
            }
        }
        // Each entry, by its text.
        let mut sorted: Vec<usize> = (0..len).collect();
        sorted.sort_by_key(|&at| all[at].0);
        for pair in sorted.windows(2) {
            let ((a, first, _), (b, second, _)) = (all[pair[0]], all[pair[1]]);
            if a == b {
                return Err(self.collision(a, [first, second]));
            }
        }
        let (keys, values) = (h.vec_builder(len)?, h.vec_builder(len)?);
        for (i, by_text) in sorted.into_iter().enumerate() {
            let (key, _, value) = all[if self.style.is_as_written() { i } else { by_text }];
            keys.push(h, h.str_view(key)?)?;
            values.push(h, value)?;
        }
        Ok(Entries::Small(keys.items(), values.items()))
    }

    /// Returns the text of a key.
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
            _ if self.style.refuses(key) => return Err(self.refuse_key(key)),
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
        Error::new(Reason::TypeError, message).hint("rename one of the keys, or keep only one of them").into()
    }

    #[cold]
    fn refuse(&self, value: Value<'h>) -> Fault {
        let hint = match value {
            Value::Keyword(..) => "JSON has no keywords: write (name k) or (str k)",
            Value::Set(_) => "JSON has no sets: write (vec s)",
            Value::Float(_) => "JSON has no infinite numbers and no NaN: write nil, as in (if (NaN? x) nil x)",
            Value::Endless(_) => "take some of it, as in (take 10 s)",
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

    #[cold]
    fn refuse_argument(&self, value: Value<'h>) -> Fault {
        let hint = match value {
            Value::Float(_) => "send nil, or a finite number",
            Value::Regex(_) => "send the text of the pattern",
            Value::Endless(_) => "take some of it, as in (take 10 s)",
            _ => "send what the function returns, or its name as a string",
        };
        let message = format!("{} is {}, which JSON does not have", self.path(), shown_argument(value));
        Error::new(Reason::InvalidToolArgs, message).hint(hint).into()
    }

    #[cold]
    fn refuse_key(&self, key: Value<'h>) -> Fault {
        let message = format!("{} has {} as a key, which JSON does not have", self.path(), shown_argument(key));
        Error::new(Reason::InvalidToolArgs, message).hint("use strings, keywords or numbers as keys").into()
    }

    /// Returns the path of the current value, such as `$.orders[3].total`.
    fn path(&self) -> String {
        const STEPS: usize = 16;
        let mut path = "$".to_owned();
        for open in self.open.iter().take(STEPS) {
            let _ = match open {
                Open::Array(_, next) | Open::Set(_, next) => write!(path, "[{}]", next.saturating_sub(1)),
                Open::Object(entries, next) => match entries.entry(next.saturating_sub(1)).0 {
                    Value::Str(key) | Value::Keyword(_, key) if is_word(key.text()) => write!(path, ".{}", key.text()),
                    Value::Keyword(_, key) => write!(path, "[{}]", shown_key(Value::Str(key))),
                    key => write!(path, "[{}]", shown_key(key)),
                },
            };
        }
        if self.open.len() > STEPS {
            path.push_str("...");
        }
        path
    }

    /// Returns the path of the current value in Lisp notation, such as ` at ["orders" 3 :total]`.
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

/// The maximum number of characters of a key in a message.
const SHOWN: usize = 40;

/// Returns whether a key can be written in a path without quotation marks.
fn is_word(key: &str) -> bool {
    (1..=SHOWN).contains(&key.len())
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
        && !key.as_bytes()[0].is_ascii_digit()
}

/// Returns the text of a rejected argument for a message.
fn shown_argument(value: Value<'_>) -> String {
    match value {
        Value::Float(f) => float_text_of(f),
        other => describe(other),
    }
}

/// Returns the text of a key for a message.
fn shown_key(key: Value<'_>) -> String {
    match key {
        Value::Str(s) => format!("{:?}", s.text().chars().take(SHOWN).collect::<String>()),
        Value::Keyword(_, s) => format!(":{}", s.text().chars().take(SHOWN).collect::<String>()),
        other => describe(other),
    }
}

/// Writes an integer without allocating a string outside the arena.
fn int_text(i: i64, out: &mut TextBuf<'_>) -> Res<()> {
    out.push_str(itoa::Buffer::new().format(i))
}

/// Writes a finite float with the fewest digits that read back as the same float. `json/generate-string` uses the
/// shorter of the two notations, and always an exponent beyond the integers that floats represent exactly. There is
/// always a decimal point.
fn float_text(f: f64, style: Style, out: &mut TextBuf<'_>) -> Res<()> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let mut digits = ryu::Buffer::new();
    let plain = digits.format_finite(f);
    // Scientific notation is only shorter if there are several zeroes directly before or after the decimal point.
    if style != Style::Strict || f == 0.0 || ((0.001..EXACT).contains(&f.abs()) && !plain.ends_with("00.0")) {
        return out.push_str(plain);
    }
    let scientific = format!("{}{}", if f < 0.0 { "-" } else { "" }, FloatDigits::of(f).scientific());
    if f.abs() >= EXACT || plain.contains('e') {
        return out.push_str(&scientific);
    }
    out.push_str(if plain.len() <= scientific.len() { plain } else { &scientific })
}

/// Writes a string in quotation marks, with escapes where JSON requires them, and with a comma before and a colon after
/// it if wanted.
#[inline(always)]
fn quoted(comma: bool, text: &str, colon: bool, out: &mut TextBuf<'_>) -> Res<()> {
    if out.push_quoted(comma, text, colon, is_plain)? { Ok(()) } else { escaped(comma, text, colon, out) }
}

/// Like [`quoted`], for a string that needs escapes.
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

/// Writes a time for [`Style::Typed`].
fn typed_time(time: TimeValue, out: &mut TextBuf<'_>) -> Res<()> {
    let of_millis = |millis: i64| (millis.div_euclid(1_000), millis.rem_euclid(1_000) * 1_000_000);
    let (mark, whole, nanos) = match time {
        TimeValue::LocalDate(days) => return out.push_str(&format!("#D{days}")),
        TimeValue::Date(millis) => ('I', of_millis(millis).0, of_millis(millis).1),
        TimeValue::Instant(seconds, nanos) => ('I', seconds, nanos.into()),
        TimeValue::LocalDateTime(seconds, nanos) => ('L', seconds, nanos.into()),
        TimeValue::Duration(seconds, nanos) => ('P', seconds, nanos.into()),
    };
    out.push_str(&format!("#{mark}{whole}:{nanos}"))
}

/// Writes a value without a JSON form as text: time values in ISO 8601, symbols by name, others as they print.
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
    use crate::json::read;

    fn text<'h>(h: &'h Heap, value: Value<'h>, style: Style) -> Result<String, String> {
        let mut out = TextBuf::new(h);
        match write(h, value, style, &mut out) {
            Ok(_) => Ok(out.into_string()),
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
            let value = read(&h, &json).unwrap_or(Value::Nil);
            assert_eq!(text(&h, value, Style::Strict).as_deref(), Ok(json.as_str()));
            // The other style may use the other notation.
            let projected = text(&h, value, Style::Project).unwrap_or_default();
            let again = read(&h, &projected).unwrap_or(Value::Nil);
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
        assert_eq!(text(&h, map, Style::Project).as_deref(), Ok(r#"{"k":[1,2],"10":"k","z":[null,null]}"#));
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
    fn a_number_that_json_has_not_is_null_with_its_place_or_refused() -> Res<()> {
        let h = Heap::new(1, 1 << 26);
        let numbers = h.vector(&[Value::Float(1.5), Value::Float(f64::NEG_INFINITY)])?;
        let rows = h.vector(&[Value::Nil, h.map([(h.keyword("a b")?, numbers)].into_iter())?])?;
        let map = h.map([(h.str("rows")?, rows), (h.keyword("k")?, Value::Float(f64::NAN))].into_iter())?;
        let mut out = TextBuf::new(&h);
        let nulls = write(&h, map, Style::Project, &mut out)?;
        assert_eq!(out.into_string(), r#"{"rows":[null,{"a b":[1.5,null]}],"k":null}"#);
        let told: Vec<_> = nulls.first.iter().map(|null| (null.path.as_str(), null.number.as_str())).collect();
        assert_eq!((nulls.count, told), (2, vec![(r#"$.rows[1]["a b"][1]"#, "##-Inf"), ("$.k", "##NaN")]));
        let refused = |value| text(&h, value, Style::Arguments).err().unwrap_or_default();
        assert_eq!(refused(rows), r#"$[1]["a b"][1] is ##-Inf, which JSON does not have"#);
        let by_number = h.map([(Value::Float(f64::NAN), Value::Nil)].into_iter())?;
        let inner = h.map([(h.str("m")?, by_number)].into_iter())?;
        assert_eq!(refused(inner), "$.m has ##NaN as a key, which JSON does not have");
        let many = h.vector(&[Value::Float(f64::NAN); 100])?;
        let nulls = write(&h, many, Style::Project, &mut TextBuf::new(&h))?;
        assert_eq!((nulls.count, nulls.first.len()), (100, Nulls::TOLD));
        Ok(())
    }

    /// JSON that was written can be read again and gives the same value, including values at the limits of depth and
    /// digits.
    #[test]
    fn what_is_written_is_read_again() -> Res<()> {
        let h = Heap::new(1, 1 << 28);
        for depth in [1, MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, 2 * MAX_DEPTH, 100_000] {
            for kinds in [1, 2, 3] {
                let mut value = Value::Int(7);
                for level in 0..depth {
                    value = if level % kinds == 0 {
                        h.vector(&[value])?
                    } else {
                        h.map([(h.str("k")?, value)].into_iter())?
                    };
                }
                for style in [Style::Strict, Style::Project, Style::Arguments] {
                    match text(&h, value, style) {
                        Ok(json) => {
                            assert!(depth <= MAX_DEPTH, "{depth}");
                            let again = read(&h, &json).unwrap_or(Value::Nil);
                            assert!(h.same_key(value, again)?, "{depth}");
                        }
                        Err(message) => assert!(depth > MAX_DEPTH && message.contains("512"), "{depth}: {message}"),
                    }
                }
            }
        }
        for digits in [20, MAX_DIGITS - 1, MAX_DIGITS, MAX_DIGITS + 1, 2 * MAX_DIGITS] {
            for sign in [1, -1] {
                let power = num_bigint::BigInt::from(10).pow(u32::try_from(digits).unwrap_or(0));
                for n in [&power - 1, power / 10] {
                    let value = h.integer(&(n * sign))?;
                    match text(&h, value, Style::Strict) {
                        Ok(json) => {
                            assert!(digits <= MAX_DIGITS, "{digits}");
                            assert!(h.same_key(value, read(&h, &json).unwrap_or(Value::Nil))?);
                        }
                        Err(message) => assert!(digits > MAX_DIGITS && message.contains("4300"), "{digits}: {message}"),
                    }
                }
            }
        }
        Ok(())
    }

    #[test]
    fn places_of_deep_values_are_cut() -> Res<()> {
        let h = Heap::new(1, 1 << 28);
        let mut value = h.vector(&[Value::Float(f64::NAN)])?;
        for _ in 0..100 {
            value = h.vector(&[value])?;
        }
        let nulls = write(&h, value, Style::Project, &mut TextBuf::new(&h))?;
        assert_eq!(nulls.first[0].path, format!("${}...", "[0]".repeat(16)));
        Ok(())
    }
}
