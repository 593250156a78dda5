//! Values as text: readable (`pr-str`), as a part of a string (`str`) and for a person (`println`).

use super::characters;
use super::long_division::decimal;
use super::{Builtin, BuiltinId, MANY};
use crate::cost;
use crate::heap::{Entries, Heap, Res, Str, TextBuf, Time, TimeValue, Value, Work};
use std::fmt::Write as _;

/// The rows of this area.
pub(super) const TABLE: &[Builtin] = &[
    Builtin::native("pr-str", 0, MANY, "(pr-str & values)", pr_str_native).doc(
        "The values as text that can be read back, with spaces between them.",
        &[
            ("(pr-str \"z\" {:b {:c 2}} 1)", "\"\\\"z\\\" {:b {:c 2}} 1\""),
            ("(pr-str)", "\"\""),
            ("(pr-str [1 2.5 nil :k])", "\"[1 2.5 nil :k]\""),
        ],
    ),
    Builtin::native("str", 0, MANY, "(str & values)", str_native).doc(
        "The values' texts, one after the other; nil is empty.",
        &[
            ("(str \"a\" 1 nil :b)", "\"a1:b\""),
            ("(str [1 \"a\" nil])", "\"[1 \\\"a\\\" nil]\""),
            ("(str 1e16)", "\"1.0e16\""),
        ],
    ),
    Builtin::native("println", 0, MANY, "(println & values)", println_native)
        .doc("Prints a line: the values with spaces between them. Answers nil.", &[("(println \"a\" 1 :b)", "nil")]),
];

/// Functions that take any number of values show as `#fn[...]`, as what is composed of functions does.
const SHOWN_AS_FN: &[&str] = &[
    "str",
    "pr-str",
    "format",
    "=",
    "==",
    "not=",
    "<",
    ">",
    "<=",
    ">=",
    "vector",
    "list",
    "hash-map",
    "hash-set",
    "assoc",
    "dissoc",
    "merge",
    "update",
    "update-in",
];

/// What differs between the ways to print.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// To be read back.
    Readable,
    /// For a person: floats without an exponent as long as they are short.
    Line,
}

/// A collection that is being printed.
enum Open<'h> {
    /// The elements that are still to come, and whether one stands before them.
    Items(&'h [Value<'h>], bool),
    /// A map's entries and the place of the next; of each entry the key comes before the value.
    Entries(Entries<'h>, usize),
    /// The value of the entry before the place of a map's next entry.
    Value(Value<'h>),
    /// A set's members and the place of the next.
    Members(Entries<'h>, usize),
}

/// Adds a value to a text in a form that can be read back: maps and sets in key order, strings quoted, floats with all
/// the digits that tell them apart.
pub fn pr_str<'h>(h: &'h Heap, v: Value<'h>, out: &mut TextBuf<'h>) -> Res<()> {
    show(h, v, out, Style::Readable)
}

/// Adds what `str` makes of one value: nil is empty, a string is itself, a string inside a collection is quoted. The
/// caller has charged [`cost::TEXT_PART`] for it.
#[inline]
pub fn to_str<'h>(h: &'h Heap, v: Value<'h>, out: &mut TextBuf<'h>) -> Res<()> {
    match v {
        Value::Int(i) => show_int(i, out),
        Value::Str(s) => out.push_str(s.text),
        other => other_to_str(h, other, out),
    }
}

/// The same for what is neither an integer nor a string.
fn other_to_str<'h>(h: &'h Heap, v: Value<'h>, out: &mut TextBuf<'h>) -> Res<()> {
    match v {
        Value::Nil => Ok(()),
        Value::Symbol(s) | Value::Regex(s) => out.push_str(s.text),
        Value::Float(f) if f.is_nan() => out.push_str("NaN"),
        Value::Float(f) if f.is_infinite() => out.push_str(if f > 0.0 { "Infinity" } else { "-Infinity" }),
        Value::Time(t) => out.push_str(&time_text(t.value)),
        Value::Builtin(id) => out.push_str(&builtin_text(id)),
        other => show(h, other, out, Style::Readable),
    }
}

/// Adds the line `println` prints for these values, without its end: strings as they are, a vector of single characters
/// as a word, all else readable.
pub fn println_text<'h>(h: &'h Heap, values: &[Value<'h>], out: &mut TextBuf<'h>) -> Res<()> {
    for (i, &v) in values.iter().enumerate() {
        h.charge(1)?;
        if i > 0 {
            out.push(' ')?;
        }
        match v {
            Value::Str(s) => out.push_str(s.text)?,
            Value::Time(t) => out.push_str(&time_text(t.value))?,
            Value::Builtin(id) => out.push_str(&builtin_text(id))?,
            Value::Vector(items) if is_word(h, items.items())? => {
                for &item in items.items() {
                    if let Value::Str(s) = item {
                        out.push_str(s.text)?;
                    }
                }
            }
            other => show(h, other, out, Style::Line)?,
        }
    }
    Ok(())
}

/// Are these strings of one character each, and at least one?
fn is_word<'h>(h: &'h Heap, items: &[Value<'h>]) -> Res<bool> {
    for &item in items {
        let Value::Str(s) = item else { return Ok(false) };
        if s.text.len() != 1 && !characters::is_one(h, s.text)? {
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
            Open::Items(rest, begun) => match rest.split_first() {
                Some((&first, tail)) => {
                    separate(out, *begun)?;
                    (*rest, *begun) = (tail, true);
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

fn separate(out: &mut TextBuf<'_>, begun: bool) -> Res<()> {
    if begun { out.push(' ') } else { Ok(()) }
}

/// Prints a value that holds no others, or the beginning of a collection, whose rest is then open.
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
        Value::Str(s) => quote(s.text, out),
        Value::Regex(s) => show_regex(s.text, out),
        Value::Time(t) => show_time(t, out),
        Value::Closure(closure) => {
            out.push_str("#fn[")?;
            out.push_str(&closure.proto.params)?;
            out.push(']')
        }
        Value::Composed(_) => out.push_str("#fn[...]"),
        Value::Builtin(id) => match builtin_text(id) {
            text if text.starts_with("#java") => quote(&text, out),
            text => out.push_str(&text),
        },
        Value::VecBuilder(_) | Value::MapBuilder(_) | Value::Unset => out.push_str("#<internal>"),
        Value::Vector(_) | Value::Map(_) | Value::Set(_) => Ok(()),
    }
}

fn show_after(mark: &str, s: &Str<'_>, out: &mut TextBuf<'_>) -> Res<()> {
    out.push_str(mark)?;
    out.push_str(s.text)
}

fn show_time(time: &Time, out: &mut TextBuf<'_>) -> Res<()> {
    quote(&time_text(time.value), out)
}

/// An integer without a detour over a string on Rust's heap. It is so short that the charge for a value pays for it.
fn show_int(i: i64, out: &mut TextBuf<'_>) -> Res<()> {
    out.push_paid(itoa::Buffer::new().format(i))
}

/// Adds a string in quotes. Only what the reader understands after a backslash is written with one; all other
/// characters stand for themselves.
pub fn quote(text: &str, out: &mut TextBuf<'_>) -> Res<()> {
    out.look_through(text)?;
    out.push('"')?;
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|b| matches!(b, b'"' | b'\\' | b'\n' | b'\t' | b'\r')) {
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

/// A pattern keeps its backslashes; a bare quote gets one so that the literal can be read back.
fn show_regex(pattern: &str, out: &mut TextBuf<'_>) -> Res<()> {
    out.look_through(pattern)?;
    out.push_str("#\"")?;
    let mut escaped = false;
    for part in pattern.split_inclusive(['"', '\\']) {
        let (before, last) = match part.char_indices().next_back() {
            Some((at, last @ ('"' | '\\'))) => (part.split_at(at).0, Some(last)),
            _ => (part, None),
        };
        out.push_str(before)?;
        escaped &= before.is_empty();
        match last {
            Some('"') if !escaped => out.push_str("\\\"")?,
            Some(last) => out.push(last)?,
            None => {}
        }
        escaped = last == Some('\\') && !escaped;
    }
    out.push('"')
}

/// How a built-in function shows.
fn builtin_text(id: BuiltinId) -> String {
    let row = id.row();
    if row.namespace == "java"
        && let Some((class, member)) = row.name.split_once('/')
    {
        let package = match class {
            _ if class.contains('.') => "",
            "LocalDate" | "Instant" | "Duration" => "java.time.",
            _ => "java.lang.",
        };
        return format!("#java[{package}{class}/{member}]");
    }
    if SHOWN_AS_FN.contains(&row.name) { "#fn[...]" } else { "#<builtin>" }.to_owned()
}

/// A float with the fewest digits that give it back: `1.0`, `0.1`, `1.0e21`, `1.0e-5`, `##Inf`.
pub fn float_text(f: f64) -> String {
    if f.is_nan() {
        return "##NaN".to_owned();
    }
    if f.is_infinite() {
        return if f > 0.0 { "##Inf" } else { "##-Inf" }.to_owned();
    }
    let size = f.abs();
    let mut buffer = ryu::Buffer::new();
    let shortest = buffer.format_finite(f);
    if size == 0.0 || (0.001..1e16).contains(&size) {
        return shortest.to_owned();
    }
    // Far from one the shortest text has an exponent already; to write one takes long for some floats.
    let text = if shortest.contains('e') { shortest.to_owned() } else { format!("{f:e}") };
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    match (digits.contains('.'), exponent) {
        // Four digits after the point are no longer than the exponent of a single digit.
        (false, "-4") => format!("{f}"),
        (true, _) => text,
        (false, _) => format!("{digits}.0e{exponent}"),
    }
}

/// A float for a person: in full between 1e-10 and 1e21, beyond that like [`float_text`].
fn plain_float_text(f: f64) -> String {
    let size = f.abs();
    if (1e-10..0.001).contains(&size) {
        format!("{f}")
    } else if (1e16..1e21).contains(&size) {
        format!("{f:.1}")
    } else {
        float_text(f)
    }
}

/// The ISO 8601 text of a time value.
pub fn time_text(value: TimeValue) -> String {
    match value {
        TimeValue::LocalDate(days) => date_text(i128::from(days)),
        TimeValue::Instant(seconds, nanos) => instant_text(i128::from(seconds), nanos),
        TimeValue::Date(millis) => {
            let (seconds, rest) = (millis.div_euclid(1_000), millis.rem_euclid(1_000));
            // A remainder is below 1,000.
            instant_text(i128::from(seconds), u32::try_from(rest).unwrap_or_default() * 1_000_000)
        }
        TimeValue::Duration(seconds, nanos) => duration_text(seconds, nanos),
    }
}

/// Years beyond 0 to 9999 carry a sign.
fn date_text(days: i128) -> String {
    // Days are counted from 1 March of year 0 in cycles of 400 years, so that the leap day comes last.
    const CYCLE: i128 = 146_097;
    let days = days + 719_468;
    let (cycle, day) = (days.div_euclid(CYCLE), days.rem_euclid(CYCLE));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let year = year + cycle * 400 + i128::from(month <= 2);
    let sign = match year {
        ..0 => "-",
        0..=9_999 => "",
        _ => "+",
    };
    format!("{sign}{:04}-{month:02}-{day:02}", year.unsigned_abs())
}

fn instant_text(seconds: i128, nanos: u32) -> String {
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let mut text = date_text(day);
    // Writing to a string cannot fail.
    let _ = write!(text, "T{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60);
    let _ = match nanos {
        0 => Ok(()),
        n if n % 1_000_000 == 0 => write!(text, ".{:03}", n / 1_000_000),
        n if n % 1_000 == 0 => write!(text, ".{:06}", n / 1_000),
        n => write!(text, ".{n:09}"),
    };
    text.push('Z');
    text
}

fn duration_text(seconds: i64, nanos: u32) -> String {
    if seconds == 0 && nanos == 0 {
        return "PT0S".to_owned();
    }
    // Below zero the fraction counts towards zero: -1.5 s are -2 s and 0.5 s.
    let borrowed = seconds < 0 && nanos > 0;
    let (whole, fraction) = if borrowed { (seconds + 1, 1_000_000_000 - nanos) } else { (seconds, nanos) };
    let mut text = "PT".to_owned();
    for (amount, unit) in [(whole / 3_600, 'H'), (whole / 60 % 60, 'M')] {
        if amount != 0 {
            let _ = write!(text, "{amount}{unit}");
        }
    }
    let rest = whole % 60;
    if rest == 0 && fraction == 0 {
        return text;
    }
    let sign = if rest == 0 && borrowed { "-" } else { "" };
    let _ = write!(text, "{sign}{rest}");
    if fraction > 0 {
        let digits = format!("{fraction:09}");
        let _ = write!(text, ".{}", digits.trim_end_matches('0'));
    }
    text.push('S');
    text
}

fn pr_str_native<'h>(h: &'h Heap, args: &[Value<'h>]) -> Res<Value<'h>> {
    let mut out = TextBuf::new(h);
    for (i, &v) in args.iter().enumerate() {
        separate(&mut out, i > 0)?;
        pr_str(h, v, &mut out)?;
    }
    out.finish()
}

fn str_native<'h>(h: &'h Heap, args: &[Value<'h>]) -> Res<Value<'h>> {
    if let &[only @ Value::Str(_)] = args {
        return Ok(only);
    }
    h.charge(args.len() as u64 * cost::TEXT_PART)?;
    let mut out = TextBuf::new(h);
    for &v in args {
        to_str(h, v, &mut out)?;
    }
    out.finish()
}

fn println_native<'h>(h: &'h Heap, args: &[Value<'h>]) -> Res<Value<'h>> {
    let mut out = TextBuf::new(h);
    println_text(h, args, &mut out)?;
    h.charge(cost::scanned(out.as_str().len()))?;
    h.print(out.as_str())?;
    Ok(Value::Nil)
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
    fn floats_have_the_fewest_digits() {
        for (f, text) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (0.1 + 0.2, "0.30000000000000004"),
            (123_456_789.123, "123456789.123"),
            (1e15, "1000000000000000.0"),
            (1e16, "1.0e16"),
            (1.5e300, "1.5e300"),
            (0.001, "0.001"),
            (0.00123, "0.00123"),
            (0.0001, "0.0001"),
            (0.000123, "1.23e-4"),
            (0.00001, "1.0e-5"),
            (5e-324, "5.0e-324"),
            (f64::NEG_INFINITY, "##-Inf"),
            (f64::NAN, "##NaN"),
        ] {
            assert_eq!(float_text(f), text);
        }
        assert_eq!(plain_float_text(1e20), "100000000000000000000.0");
        assert_eq!(plain_float_text(0.00001), "0.00001");
        assert_eq!(plain_float_text(1e21), "1.0e21");
    }

    #[test]
    fn times_are_iso_texts() {
        for (value, text) in [
            (TimeValue::LocalDate(19_724), "2024-01-02"),
            (TimeValue::LocalDate(-719_528), "0000-01-01"),
            (TimeValue::LocalDate(-719_529), "-0001-12-31"),
            (TimeValue::LocalDate(2_932_897), "+10000-01-01"),
            (TimeValue::Instant(-1, 500_000_000), "1969-12-31T23:59:59.500Z"),
            (TimeValue::Instant(0, 123_456_789), "1970-01-01T00:00:00.123456789Z"),
            (TimeValue::Date(1), "1970-01-01T00:00:00.001Z"),
            (TimeValue::Date(-1), "1969-12-31T23:59:59.999Z"),
            (TimeValue::Duration(0, 0), "PT0S"),
            (TimeValue::Duration(-2, 500_000_000), "PT-1.5S"),
            (TimeValue::Duration(-1, 500_000_000), "PT-0.5S"),
            (TimeValue::Duration(3_661, 1), "PT1H1M1.000000001S"),
            (TimeValue::Duration(7_200, 0), "PT2H"),
        ] {
            assert_eq!(time_text(value), text);
        }
        for extreme in [i64::MIN, i64::MAX] {
            let _ = time_text(TimeValue::LocalDate(extreme));
            let _ = time_text(TimeValue::Instant(extreme, 1));
            let _ = time_text(TimeValue::Duration(extreme, 1));
            let _ = time_text(TimeValue::Date(extreme));
        }
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

    #[test]
    fn long_lines_are_cut_with_a_mark() {
        let h = Heap::new(1, usize::MAX / 2);
        h.prints.borrow_mut().line_chars = 3;
        h.print("abcdef").expect("there is no limit");
        h.print("äöü").expect("there is no limit");
        assert_eq!(h.prints.borrow().lines(), ["abc... (3/6 chars)", "äöü"]);
    }
}
