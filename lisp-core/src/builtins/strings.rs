//! Strings. Indices count characters as a reader sees them (grapheme clusters). Substrings share the bytes of the whole
//! string.

use super::args::{self, fault, string};
use super::exception_classes::of_wrong;
use super::{Builtin, regex};
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, Reason};
use crate::heap::{Fault, Heap, Res, TextBuf, Value, VecBuilder};
use crate::text::characters::{self, Characters};
use crate::text::describe;
use crate::text::scan::{self, Search};
use crate::text::to_str;

const NAMESPACE: &str = "clojure.string";

pub(super) const TABLE: &[Builtin] = &[
    Builtin::direct("blank?", 1, 1, "(blank? s)", is_blank).namespace(NAMESPACE).doc(
        "Returns whether the string is empty or only white space; true for nil.",
        &[("(blank? \" \\t\\n\")", "true"), ("(blank? nil)", "true"), ("(blank? 1)", "!type_error")],
    ),
    Builtin::pure("lower-case", 1, 1, "(lower-case s)", lower_case).namespace(NAMESPACE).aliases(&["downcase"]).doc(
        "Returns the string in lower case.",
        &[("(lower-case \" A b \")", "\" a b \""), ("(lower-case nil)", "!type_error")],
    ),
    Builtin::pure("upper-case", 1, 1, "(upper-case s)", upper_case).namespace(NAMESPACE).aliases(&["upcase"]).doc(
        "Returns the string in upper case.",
        &[("(upper-case \"straße\")", "\"STRASSE\""), ("(upper-case 1)", "!type_error")],
    ),
    Builtin::pure("starts-with?", 2, 2, "(starts-with? s prefix)", starts_with).namespace(NAMESPACE).doc(
        "Returns whether the string starts with the other.",
        &[("(starts-with? \"hello\" \"he\")", "true"), ("(starts-with? \"hello\" :he)", "!type_error")],
    ),
    Builtin::pure("ends-with?", 2, 2, "(ends-with? s suffix)", ends_with).namespace(NAMESPACE).doc(
        "Returns whether the string ends with the other.",
        &[("(ends-with? \"hello\" \"lo\")", "true"), ("(ends-with? nil \"lo\")", "!type_error")],
    ),
    Builtin::direct("includes?", 2, 2, "(includes? s substring)", includes).namespace(NAMESPACE).doc(
        "Returns whether the other string is a part of this one.",
        &[("(includes? \"hello\" \"ll\")", "true"), ("(includes? [1 2] 1)", "!type_error")],
    ),
    Builtin::direct("index-of", 2, 3, "(index-of s value from-index)", index_of).namespace(NAMESPACE).doc(
        "Returns the index of the first occurrence of a part, from an index on, or nil.",
        &[
            ("(index-of \"hello\" \"l\")", "2"),
            ("(index-of \"hello\" \"l\" 3)", "3"),
            ("(index-of \"hello\" \"x\")", "nil"),
            ("(index-of nil \"a\")", "!type_error"),
        ],
    ),
    Builtin::direct("last-index-of", 2, 3, "(last-index-of s value from-index)", last_index_of)
        .namespace(NAMESPACE)
        .doc(
            "Returns the index of the last occurrence of a part, up to an index, or nil.",
            &[
                ("(last-index-of \"hello\" \"l\")", "3"),
                ("(last-index-of \"hello\" \"l\" 2)", "2"),
                ("(last-index-of :a \"a\")", "!type_error"),
            ],
        ),
    Builtin::direct("join", 1, 2, "(join separator coll)", join).namespace(NAMESPACE).doc(
        "Returns the texts of a collection's elements, with the separator between them.",
        &[
            ("(join \", \" [1 nil :a \"b\"])", "\"1, , :a, b\""),
            ("(join [\"a\" \"b\"])", "\"ab\""),
            ("(join \"-\" \"abc\")", "\"a-b-c\""),
            ("(join \",\" 5)", "!type_error"),
        ],
    ),
    Builtin::direct("split", 2, 3, "(split s re-or-char limit)", split).namespace(NAMESPACE).doc(
        "Returns the parts of the string between matches of a regular expression or a character; at most limit parts, \
         the last with all the rest. Limit 0 drops empty parts at the end.",
        &[
            ("(split \"a--b--c\" #\"--\")", "[\"a\" \"b\" \"c\"]"),
            ("(split \"a,b,\" \",\")", "[\"a\" \"b\" \"\"]"),
            ("(split \"a b c\" #\" \" 2)", "[\"a\" \"b c\"]"),
            ("(split \"héy\" \"\")", "[\"h\" \"é\" \"y\"]"),
            ("(split \"a--b\" \"--\")", "!type_error"),
        ],
    ),
    Builtin::direct("split-lines", 1, 1, "(split-lines s)", split_lines).namespace(NAMESPACE).doc(
        "Returns the lines of the string, without empty ones at its end.",
        &[("(split-lines \"a\\r\\nb\\n\\n\")", "[\"a\" \"b\"]"), ("(split-lines 1)", "!type_error")],
    ),
    Builtin::pure("trim", 1, 1, "(trim s)", trim).namespace(NAMESPACE).doc(
        "Returns the string without white space at its ends.",
        &[("(trim \" \\n a b \")", "\"a b\""), ("(trim nil)", "!type_error")],
    ),
    Builtin::direct("triml", 1, 1, "(triml s)", triml).namespace(NAMESPACE).doc(
        "Returns the string without white space at its beginning.",
        &[("(triml \" a \")", "\"a \""), ("(triml 2)", "!type_error")],
    ),
    Builtin::direct("trimr", 1, 1, "(trimr s)", trimr).namespace(NAMESPACE).doc(
        "Returns the string without white space at its end.",
        &[("(trimr \" a \")", "\" a\""), ("(trimr :k)", "!type_error")],
    ),
    Builtin::direct("trim-newline", 1, 1, "(trim-newline s)", trim_newline).namespace(NAMESPACE).doc(
        "Returns the string without newlines and carriage returns at its end.",
        &[("(trim-newline \"a \\r\\n\")", "\"a \""), ("(trim-newline true)", "!type_error")],
    ),
    Builtin::direct("subs", 2, 3, "(subs s start end)", subs).doc(
        "Returns the part of the string from an index up to, not including, another. What is outside the string is \
         left out; a negative start gives \"\".",
        &[
            ("(subs \"hello\" 1 3)", "\"el\""),
            ("(subs \"hello\" 3 100)", "\"lo\""),
            ("(subs \"hello\" -1)", "\"\""),
            ("(subs \"abc\" nil)", "!type_error"),
        ],
    ),
    Builtin::direct("name", 1, 1, "(name x)", name).doc(
        "Returns the name of a keyword, without its colon, or of a symbol; a string is returned unchanged.",
        &[("(name :foo)", "\"foo\""), ("(name \"bar\")", "\"bar\""), ("(name nil)", "!runtime_error")],
    ),
    Builtin::direct("keyword", 1, 2, "(keyword name) (keyword namespace name)", keyword).doc(
        "Returns the keyword with this name; nil for nil.",
        &[
            ("(keyword \"foo\")", ":foo"),
            ("(keyword :bar)", ":bar"),
            ("(keyword 5)", "!runtime_error"),
            ("(keyword \"a\" \"b\")", ":a/b"),
        ],
    ),
];

fn arg<'h>(args: &[Value<'h>], i: usize) -> Value<'h> {
    args.get(i).copied().unwrap_or(Value::Nil)
}

/// Returns two string arguments, and charges for both.
fn two_strings<'h>(h: &'h Heap, name: &str, args: &[Value<'h>]) -> Res<(&'h str, &'h str)> {
    let (s, other) = (string(name, arg(args, 0))?, string(name, arg(args, 1))?);
    h.charge(cost::copied(s.len().saturating_add(other.len())))?;
    Ok((s, other))
}

/// Returns true for white space according to Java's `Character.isWhitespace`.
pub(super) fn is_space(c: char) -> bool {
    matches!(c,
        '\u{9}'..='\u{d}' | '\u{1c}'..='\u{20}' | '\u{1680}' | '\u{2000}'..='\u{2006}' | '\u{2008}'..='\u{200a}'
        | '\u{2028}' | '\u{2029}' | '\u{205f}' | '\u{3000}')
}

/// Returns the part of a string argument that `part` selects.
fn view<'h>(h: &'h Heap, name: &str, args: &[Value<'h>], part: impl Fn(&'h str) -> &'h str) -> Res<Value<'h>> {
    let whole = arg(args, 0);
    let text = string(name, whole)?;
    h.charge(cost::copied(text.len()))?;
    let picked = part(text);
    if picked.len() == text.len() { Ok(whole) } else { h.str_view(picked) }
}

fn is_blank<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    if arg(args, 0).is_nil() {
        return Ok(Value::Bool(true));
    }
    let text = string("blank?", arg(args, 0))?;
    h.charge(cost::copied(text.len()))?;
    Ok(Value::Bool(text.chars().all(is_space)))
}

fn trim<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    view(h, "trim", args, |s| s.trim_matches(is_space))
}

fn triml<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    view(h, "triml", args, |s| s.trim_start_matches(is_space))
}

fn trimr<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    view(h, "trimr", args, |s| s.trim_end_matches(is_space))
}

fn trim_newline<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    view(h, "trim-newline", args, |s| s.trim_end_matches(['\r', '\n']))
}

pub(super) fn lower_case<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    change_case(h, "lower-case", args, str::to_ascii_lowercase, lower)
}

pub(super) fn upper_case<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    change_case(h, "upper-case", args, str::to_ascii_uppercase, |h, text, out| {
        for piece in scan::pieces(h, text) {
            out.extend(piece?.chars().flat_map(char::to_uppercase));
        }
        Ok(())
    })
}

fn change_case<'h>(
    h: &'h Heap,
    name: &str,
    args: &[Value<'h>],
    ascii: fn(&str) -> String,
    unicode: fn(&Heap, &str, &mut String) -> Res<()>,
) -> Res<Value<'h>> {
    let text = string(name, arg(args, 0))?;
    let plain = text.is_ascii();
    h.charge(text.len() as u64 / if plain { 8 } else { 2 })?;
    // A character becomes at most three, and the result is copied into the arena.
    h.check_available(text.len().saturating_mul(if plain { 2 } else { 7 }))?;
    if plain {
        return h.str(&ascii(text));
    }
    let mut out = String::new();
    unicode(h, text, &mut out)?;
    h.str(&out)
}

/// Appends a text in lower case. A sigma at the end of a word has a special form.
pub(super) fn lower(h: &Heap, text: &str, out: &mut String) -> Res<()> {
    let mut begin = 0;
    for piece in scan::pieces(h, text) {
        let piece = piece?;
        if piece.is_ascii() {
            out.extend(piece.chars().map(|c| c.to_ascii_lowercase()));
        } else {
            for (at, c) in piece.char_indices() {
                if c == 'Σ' {
                    out.push(if ends_word(h, text, begin + at)? { 'ς' } else { 'σ' });
                } else {
                    out.extend(c.to_lowercase());
                }
            }
        }
        begin += piece.len();
    }
    Ok(())
}

/// Returns true if a word ends with the sigma at this byte: a letter with a case is before it, and none after it.
/// Characters that are ignored for case, such as accents, can be in between.
fn ends_word(h: &Heap, text: &str, at: usize) -> Res<bool> {
    h.charge(cost::SIGMA)?;
    let (before, after) = text.split_at_checked(at).unwrap_or((text, ""));
    Ok(has_case_nearest(h, before.chars().rev())? && !has_case_nearest(h, after.chars().skip(1))?)
}

/// Returns true if the first of these characters that is not ignored has a case.
fn has_case_nearest(h: &Heap, chars: impl Iterator<Item = char>) -> Res<bool> {
    // The form that the standard library gives to a sigma shows how it classifies the characters before it.
    let makes_final = |before: [char; 2]| {
        let text = String::from_iter(before.into_iter().chain(['Σ']));
        text.to_lowercase().ends_with('ς')
    };
    for c in chars {
        if c.is_ascii_alphanumeric() || c.is_ascii_whitespace() {
            return Ok(c.is_ascii_alphabetic());
        }
        h.charge(cost::SIGMA)?;
        h.poll_every(1)?;
        if makes_final([' ', c]) {
            return Ok(true);
        }
        if !makes_final(['a', c]) {
            return Ok(false);
        }
    }
    Ok(false)
}

fn starts_with<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let (s, prefix) = two_strings(h, "starts-with?", args)?;
    Ok(Value::Bool(s.starts_with(prefix)))
}

fn ends_with<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let (s, suffix) = two_strings(h, "ends-with?", args)?;
    Ok(Value::Bool(s.ends_with(suffix)))
}

fn includes<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let (s, part) = two_strings(h, "includes?", args)?;
    Ok(Value::Bool(scan::find(h, s, part)?.is_some()))
}

/// Charges for finding the characters of a text.
fn charge_characters(h: &Heap, text: &str) -> Res<()> {
    h.charge(text.len() as u64 / if text.is_ascii() { 16 } else { 2 })
}

/// Returns an index argument; a negative one is 0.
fn index(name: &str, v: Value<'_>) -> Res<usize> {
    Ok(usize::try_from(args::amount(name, v)?.max(0)).unwrap_or(usize::MAX))
}

/// Returns the index of the first occurrence that starts with a character; one that starts inside a character has no
/// index.
fn index_of<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let (s, part) = two_strings(h, "index-of", args)?;
    charge_characters(h, s)?;
    let from = match args.get(2) {
        Some(&from) => index("index-of", from)?,
        None => 0,
    };
    if part.is_empty() {
        return Ok(Value::count(from.min(characters::count(h, s)?)));
    }
    let rest = s.get(characters::bytes_of_first(h, s, from)?..).unwrap_or_default();
    if part.len() > rest.len() {
        return Ok(Value::Nil);
    }
    let (search, mut walk) = (scan::Search::new(h, part)?, Characters::new(h, rest));
    let mut at = 0;
    while let Some(found) = search.find(h, rest.get(at..).unwrap_or_default())? {
        let found = at + found;
        let (_, place) = walk.go_to(found)?;
        if place.byte == found {
            return Ok(Value::count(from + place.index));
        }
        at = place.byte;
    }
    Ok(Value::Nil)
}

/// Returns the index of the last occurrence that starts with a character.
fn last_index_of<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let (s, part) = two_strings(h, "last-index-of", args)?;
    charge_characters(h, s)?;
    let from = match args.get(2) {
        Some(&from) => index("last-index-of", from)?,
        None => usize::MAX,
    };
    if part.is_empty() {
        return Ok(Value::count(from.min(characters::count(h, s)?)));
    }
    let mut last = characters::bytes_of_first(h, s, from)?;
    loop {
        // A match that starts at `last` or earlier ends here at the latest.
        let end = s.floor_char_boundary(last.saturating_add(part.len()));
        let Some(found) = scan::rfind(h, s.get(..end).unwrap_or_default(), part)? else { return Ok(Value::Nil) };
        let (before, place) = Characters::new(h, s).go_to(found)?;
        if place.byte == found {
            return Ok(Value::count(place.index));
        }
        last = before.byte;
        charge_characters(h, s)?;
    }
}

fn subs<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let text = string("subs", arg(args, 0))?;
    let start = args::amount("subs", arg(args, 1))?;
    let end = match args.get(2) {
        Some(&end) => args::amount("subs", end)?,
        None => i64::MAX,
    };
    charge_characters(h, text)?;
    if start < 0 || end <= start {
        return h.str_view("");
    }
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    let length = usize::try_from(end).unwrap_or(usize::MAX).saturating_sub(start);
    let rest = text.get(characters::bytes_of_first(h, text, start)?..).unwrap_or_default();
    h.str_view(if end == i64::MAX { rest } else { characters::first(h, rest, length)? })
}

fn join<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let (separator, coll) = match *args {
        [Value::Nil, coll] => ("", coll),
        [separator, coll] => (string("join", separator)?, coll),
        _ => ("", arg(args, 0)),
    };
    let items = args::seq(h, "join", coll)?;
    h.charge(items.len() as u64 * cost::TEXT_PART)?;
    let mut out = TextBuf::new(h);
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push_str(separator)?;
        }
        to_str(h, item, &mut out)?;
    }
    out.finish()
}

fn split<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let whole = arg(args, 0);
    let text = string("split", whole)?;
    if let Some(&limit) = args.get(2) {
        return split_limited(h, text, arg(args, 1), args::amount("split", limit)?);
    }
    let separator = match arg(args, 1) {
        Value::Regex(pattern) => return regex::split(h, pattern.text(), text),
        other => string("split", other)?,
    };
    if separator.is_empty() {
        return h.vector(args::seq(h, "split", whole)?);
    }
    if !characters::is_one(h, separator)? {
        return Err(separator_error(separator));
    }
    h.charge(cost::copied(text.len()))?;
    let out = h.vec_builder(4)?;
    let (search, mut rest) = (Search::new(h, separator)?, text);
    loop {
        h.charge(cost::PART)?;
        let Some(at) = search.find(h, rest)? else { break };
        out.push(h, h.str_view(&rest[..at])?)?;
        rest = &rest[at + separator.len()..];
    }
    out.push(h, h.str_view(rest)?)?;
    out.finish(h)
}

/// Returns the parts of a string as in Java's `split` with a limit.
fn split_limited<'h>(h: &'h Ctx, text: &'h str, separator: Value<'h>, limit: i64) -> Res<Value<'h>> {
    let mut parts = Parts::new(h, text, limit)?;
    let separator = match separator {
        Value::Regex(pattern) => return parts.between(regex::Search::each(h, pattern.text(), text)?),
        other => string("split", other)?,
    };
    if separator.is_empty() {
        for character in Characters::new(h, text) {
            h.charge(cost::CHARACTER)?;
            let end = parts.from + character?.len();
            if end == text.len() || !parts.cut(end, end)? {
                break;
            }
        }
        return parts.finish();
    }
    if !characters::is_one(h, separator)? {
        return Err(separator_error(separator));
    }
    h.charge(cost::copied(text.len()))?;
    let search = Search::new(h, separator)?;
    while let Some(at) = search.find(h, &text[parts.from..])? {
        let start = parts.from + at;
        if !parts.cut(start, start + separator.len())? {
            break;
        }
    }
    parts.finish()
}

/// The parts of a string under construction, as in Java's `split`.
pub(super) struct Parts<'h> {
    h: &'h Ctx,
    text: &'h str,
    /// The maximum number of parts; 0 and less means unlimited, and 0 drops empty parts at the end.
    limit: i64,
    out: &'h VecBuilder<'h>,
    /// Where the next part starts.
    from: usize,
}

impl<'h> Parts<'h> {
    pub(super) fn new(h: &'h Ctx, text: &'h str, limit: i64) -> Res<Self> {
        Ok(Parts { h, text, limit, out: h.vec_builder(4)?, from: 0 })
    }

    /// Cuts at the range of a separator. Returns false, without a cut, if the rest has to be the last part.
    fn cut(&mut self, start: usize, end: usize) -> Res<bool> {
        self.h.charge(cost::PART)?;
        if self.limit > 0 && self.out.len() as u64 + 1 >= self.limit.unsigned_abs() {
            return Ok(false);
        }
        self.out.push(self.h, self.h.str_view(self.text.get(self.from..start).unwrap_or_default())?)?;
        self.from = end;
        Ok(true)
    }

    /// Returns the parts between the matches of a pattern. An empty match at the start is ignored.
    pub(super) fn between(mut self, mut search: regex::Search<'h>) -> Res<Value<'h>> {
        while let Some((start, end)) = search.next()? {
            if end > 0 && !self.cut(start, end)? {
                break;
            }
        }
        self.finish()
    }

    /// Returns the parts, with the rest of the string as the last.
    fn finish(self) -> Res<Value<'h>> {
        let Parts { h, text, limit, out, from } = self;
        out.push(h, h.str_view(text.get(from..).unwrap_or_default())?)?;
        let full = out.items().iter().rposition(|part| part.as_str() != Some(""));
        if limit != 0 || from == 0 {
            return out.finish(h);
        }
        h.charge(cost::moved(out.len()))?;
        h.vector(out.items().get(..full.map_or(0, |last| last + 1)).unwrap_or_default())
    }
}

#[cold]
fn separator_error(separator: &str) -> Fault {
    let shown: String = separator.chars().take(40).collect();
    Error::new(
        Reason::TypeError,
        format!("split expects a regular expression or a single character, got the string {shown:?}"),
    )
    .hint("write the separator as #\"...\"")
    .into()
}

fn split_lines<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let whole = arg(args, 0);
    let text = string("split-lines", whole)?;
    if text.is_empty() {
        return h.vector(&[whole]);
    }
    h.charge(cost::copied(text.len()))?;
    let out = h.vec_builder(4)?;
    // Only empty lines at the very end are dropped; one that ends in a carriage return is not empty unless a newline
    // follows.
    let mut lines = text.split('\n').peekable();
    let (mut full, mut count) = (0, 0);
    while let Some(line) = lines.next() {
        h.charge(cost::PART)?;
        let ended = lines.peek().is_some();
        let line = if ended { line.strip_suffix('\r').unwrap_or(line) } else { line };
        out.push(h, h.str_view(line)?)?;
        count += 1;
        if !line.is_empty() {
            full = count;
        }
    }
    h.vector(out.items().get(..full).unwrap_or_default())
}

fn name<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match arg(args, 0) {
        Value::Keyword(_, s) | Value::Str(s) | Value::Symbol(s) => Ok(Value::Str(s)),
        other => {
            let message = format!("name expects a keyword, a symbol or a string, got {}", describe(other));
            Err(Error::new(Reason::RuntimeError, message).class(of_wrong(other)).into())
        }
    }
}

fn keyword<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    if let [namespace, name] = args {
        return match (*namespace, *name) {
            (Value::Nil, Value::Str(name)) => {
                h.charge(cost::copied(name.text().len()))?;
                h.keyword(name.text())
            }
            (Value::Str(namespace), Value::Str(name)) => {
                let bytes = namespace.text().len() + name.text().len() + 1;
                h.charge(cost::copied(bytes))?;
                h.check_available(bytes)?;
                h.keyword(&format!("{}/{}", namespace.text(), name.text()))
            }
            _ => Err(fault(Reason::RuntimeError, "keyword expects a namespace and a name, two strings")),
        };
    }
    match arg(args, 0) {
        Value::Str(s) | Value::Symbol(s) => {
            h.charge(cost::copied(s.text().len()))?;
            h.keyword(s.text())
        }
        same @ (Value::Nil | Value::Keyword(..)) => Ok(same),
        other => {
            let got = describe(other);
            Err(fault(Reason::RuntimeError, format!("keyword expects a string or a keyword, got {got}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtins::DirectImp;
    use crate::text::pr_str;
    use proptest::prelude::*;

    fn shown<'h>(h: &'h Ctx, f: DirectImp, args: &[Value<'h>]) -> Result<String, Reason> {
        let value = match f(h, args) {
            Ok(value) => value,
            Err(Fault::Error(error)) => return Err(error.reason),
            Err(other) => panic!("{other:?}"),
        };
        let mut out = TextBuf::new(h);
        pr_str(h, value, &mut out).expect("there is room");
        Ok(out.into_string())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3_000))]

        /// Pieces have sixteen bytes here.
        #[test]
        fn lower_case_does_not_depend_on_the_pieces(text in "[ΣσςΑb7 '.\u{301}\u{345}\u{ad}-中İ]{0,60}") {
            let h = Heap::new(1, usize::MAX / 2);
            let mut out = String::new();
            lower(&h, &text, &mut out).expect("no limit is reached");
            prop_assert_eq!(out, text.to_lowercase());
        }
    }

    #[test]
    fn indices_count_characters() -> Res<()> {
        let h = Ctx::new(Heap::new(1, usize::MAX / 2));
        let (face, aaa) = (h.str("😀a😀")?, h.str("aaa")?);
        let (a, aa, smile, empty) = (h.str("a")?, h.str("aa")?, h.str("😀")?, h.str("")?);
        let int = Value::Int;
        for (f, args, answer) in [
            (index_of as DirectImp, &[face, a] as &[_], "1"),
            (index_of, &[face, smile, int(1)], "2"),
            (index_of, &[face, a, int(9)], "nil"),
            (index_of, &[aaa, empty, int(9)], "3"),
            (index_of, &[aaa, a, int(-5)], "0"),
            (last_index_of, &[face, smile], "2"),
            (last_index_of, &[face, smile, int(1)], "0"),
            (last_index_of, &[aaa, aa], "1"),
            (last_index_of, &[aaa, aa, int(0)], "0"),
            (last_index_of, &[a, aa], "nil"),
            (last_index_of, &[aaa, empty], "3"),
            (subs, &[face, int(1)], "\"a😀\""),
            (subs, &[face, int(1), int(2)], "\"a\""),
            (subs, &[aaa, int(2), int(1)], "\"\""),
            (subs, &[aaa, int(i64::MAX), int(i64::MAX)], "\"\""),
            (subs, &[aaa, int(-1), int(2)], "\"\""),
        ] {
            assert_eq!(shown(&h, f, args).as_deref(), Ok(answer));
        }
        Ok(())
    }

    #[test]
    fn splitting_and_keywords() -> Res<()> {
        let h = Ctx::new(Heap::new(1, usize::MAX / 2));
        let s = |text: &str| h.str(text);
        let map = h.map([(h.keyword("b")?, Value::Int(2))].into_iter())?;
        for (f, args, answer) in [
            (split as DirectImp, vec![s("a,b,")?, s(",")?], r#"["a" "b" ""]"#),
            (split, vec![s("")?, s(",")?], r#"[""]"#),
            (split, vec![s("")?, s("")?], "[]"),
            (split, vec![s("aéa")?, s("é")?], r#"["a" "a"]"#),
            (split_lines, vec![s("")?], r#"[""]"#),
            (split_lines, vec![s("\n\r\n")?], "[]"),
            (split_lines, vec![s("a\r\n\nb\r")?], r#"["a" "" "b\r"]"#),
            (keyword, vec![s("a-b?")?], ":a-b?"),
            (split, vec![s("a,,b,,")?, s(",")?, Value::Int(0)], r#"["a" "" "b"]"#),
            (split, vec![s("a,,b,,")?, s(",")?, Value::Int(-1)], r#"["a" "" "b" "" ""]"#),
            (split, vec![s("a,,b,,")?, s(",")?, Value::Int(2)], r#"["a" ",b,,"]"#),
            (split, vec![s("a,b")?, s(",")?, Value::Int(1)], r#"["a,b"]"#),
            (split, vec![s(",,")?, s(",")?, Value::Int(0)], "[]"),
            (split, vec![s("")?, s(",")?, Value::Int(0)], r#"[""]"#),
            (split, vec![s("héy")?, s("")?, Value::Int(2)], r#"["h" "éy"]"#),
            (split, vec![s("héy")?, s("")?, Value::Int(-1)], r#"["h" "é" "y"]"#),
            (join, vec![s("-")?, map], "\"[:b 2]\""),
            (upper_case, vec![s("äß")?], r#""ÄSS""#),
            (trim, vec![s("\u{2003}a\u{a0}\n")?], "\"a\u{a0}\""),
        ] {
            assert_eq!(shown(&h, f, &args).as_deref(), Ok(answer));
        }
        for (f, args, reason) in [
            (split as DirectImp, vec![s("a")?, s("--")?], Reason::TypeError),
            (keyword, vec![Value::Bool(true)], Reason::RuntimeError),
            (name, vec![Value::Nil], Reason::RuntimeError),
            (join, vec![s("")?, Value::Int(1)], Reason::TypeError),
        ] {
            assert_eq!(shown(&h, f, &args), Err(reason));
        }
        Ok(())
    }
}
