//! Replacing parts of strings, and elements of collections.

use super::args::{self, string, type_error, type_error_as};
use super::regex::Search;
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, ErrorClass, Reason};
use crate::heap::{Fault, Heap, Res, TextBuf, Value};
use crate::text::characters::Characters;
use crate::text::scan;

/// Which matches are replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    First,
}

impl Which {
    fn name(self) -> &'static str {
        match self {
            Which::All => "replace",
            Which::First => "replace-first",
        }
    }

    pub(super) fn search<'h>(self, h: &'h Ctx, pattern: &str, text: &'h str) -> Res<Search<'h>> {
        match self {
            Which::All => Search::each(h, pattern, text),
            Which::First => Search::once(h, pattern, text),
        }
    }
}

/// Returns true if a call replaces each match by the result of a function.
pub(crate) fn by_function(args: &[Value<'_>]) -> bool {
    matches!(args, [Value::Str(_), Value::Regex(_), by] if by.is_callable())
}

/// `(replace s pattern replacement)`, `(replace smap coll)`
pub(crate) fn replace<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match *args {
        [whole, pattern, by] => in_text(h, Which::All, whole, pattern, by),
        [smap, coll] => elements(h, smap, coll),
        _ => Ok(Value::Nil),
    }
}

/// `(replace-first s pattern replacement)`
pub(crate) fn replace_first<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match *args {
        [whole, pattern, by] => in_text(h, Which::First, whole, pattern, by),
        _ => Ok(Value::Nil),
    }
}

fn in_text<'h>(h: &'h Ctx, which: Which, whole: Value<'h>, pattern: Value<'h>, by: Value<'h>) -> Res<Value<'h>> {
    let name = which.name();
    let text = string(name, whole)?;
    let by = match by {
        Value::Str(s) => s.text(),
        other => return Err(replacement_error(name, other)),
    };
    let pattern = match pattern {
        Value::Regex(pattern) => return matches(h, which, pattern.text(), text, by),
        Value::Str(s) => s.text(),
        other => {
            let what = "a string or a regular expression to look for";
            return Err(type_error_as(ErrorClass::IllegalArgument, name, what, other));
        }
    };
    // A search starts with work on the pattern, which may be longer than the text.
    if pattern.len() > text.len() {
        return Ok(whole);
    }
    h.charge(cost::scanned(text.len()))?;
    let mut out = TextBuf::new(h);
    if pattern.is_empty() {
        between_characters(h, which, text, by, &mut out)?;
        return out.finish();
    }
    let (search, mut rest) = (scan::Search::new(h, pattern)?, text);
    while let Some(at) = search.find(h, rest)? {
        h.charge(1)?;
        out.push_str(&rest[..at])?;
        out.push_str(by)?;
        rest = &rest[at + pattern.len()..];
        if which == Which::First {
            break;
        }
    }
    if rest.len() == text.len() {
        return Ok(whole);
    }
    out.push_str(rest)?;
    out.finish()
}

/// Inserts a replacement at each match of the empty string: before each character and at the end.
fn between_characters<'h>(h: &'h Ctx, which: Which, text: &str, by: &str, out: &mut TextBuf<'h>) -> Res<()> {
    if which == Which::First {
        out.push_str(by)?;
        return out.push_str(text);
    }
    h.charge(text.len() as u64 / if text.is_ascii() { 16 } else { 2 })?;
    for character in Characters::new(h, text) {
        h.charge(1)?;
        out.push_str(by)?;
        out.push_str(character?)?;
    }
    out.push_str(by)
}

#[cold]
fn replacement_error(name: &str, got: Value<'_>) -> Fault {
    match type_error(name, "a string as the replacement", got) {
        Fault::Error(error) if got.is_callable() => {
            error.hint(format!("a function replaces the matches of a pattern: ({name} s #\"...\" f)")).into()
        }
        Fault::Error(error) => error.hint("give a string, as in (str x)").into(),
        other => other,
    }
}

/// Returns a string with the matches of a pattern replaced. In the replacement, `$1` is a group of the match, `$0` the
/// whole match, `${name}` a named group, and a character after a backslash stands for itself.
pub(super) fn matches<'h>(h: &'h Ctx, which: Which, pattern: &str, text: &'h str, by: &str) -> Res<Value<'h>> {
    let mut search = which.search(h, pattern, text)?;
    let mut out = TextBuf::new(h);
    let mut template: Option<Vec<Piece<'_>>> = None;
    h.charge_copy(by.len())?;
    let plain = !by.contains(['$', '\\']);
    let mut from = 0;
    while let Some((start, end)) = search.next()? {
        out.push_str(search.part(from, start))?;
        if plain {
            out.push_str(by)?;
        } else {
            let pieces = match template.take() {
                Some(pieces) => pieces,
                // A replacement that refers to a missing group is an error only if there is a match.
                None => read_template(h, which.name(), by, &search)?,
            };
            for piece in &pieces {
                h.charge(1)?;
                match *piece {
                    Piece::Text(text) => out.push_str(text)?,
                    Piece::Group(number) => out.push_str(search.group(number).unwrap_or_default())?,
                }
            }
            template = Some(pieces);
        }
        from = end;
        if which == Which::First {
            break;
        }
    }
    out.push_str(search.part(from, text.len()))?;
    out.finish()
}

/// A part of a replacement.
enum Piece<'t> {
    Text(&'t str),
    Group(usize),
}

fn read_template<'t>(h: &Ctx, name: &str, by: &'t str, search: &Search<'_>) -> Res<Vec<Piece<'t>>> {
    h.charge(by.len() as u64)?;
    let signs = by.bytes().filter(|b| matches!(b, b'$' | b'\\')).count();
    h.check_available((2 * signs + 1) * 32)?;
    let mut pieces = Vec::with_capacity(2 * signs + 1);
    let mut rest = by;
    while let Some(at) = rest.find(['$', '\\']) {
        let (before, sign) = rest.split_at(at);
        pieces.push(Piece::Text(before));
        let after = sign.get(1..).unwrap_or_default();
        if sign.starts_with('\\') {
            let Some(c) = after.chars().next() else { return Err(bad_template(name, "ends in a backslash").into()) };
            let (own, behind) = after.split_at(c.len_utf8());
            pieces.push(Piece::Text(own));
            rest = behind;
            continue;
        }
        let (number, behind) = group_of(name, after, search)?;
        pieces.push(Piece::Group(number));
        rest = behind;
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

/// Returns the group after a dollar sign, and the text after it. Further digits belong to a number as long as it is
/// that of an existing group.
fn group_of<'t>(name: &str, after: &'t str, search: &Search<'_>) -> Res<(usize, &'t str)> {
    if let Some(inside) = after.strip_prefix('{') {
        let Some((group, behind)) = inside.split_once('}') else {
            return Err(bad_template(name, "has a ${ without its }").into());
        };
        return match search.named(group) {
            Some(number) => Ok((number, behind)),
            None => {
                let shown: String = group.chars().take(40).collect();
                Err(bad_template(name, &format!("names the group {shown:?}, which the pattern does not have")).into())
            }
        };
    }
    let digit = |text: &str| text.bytes().next().filter(u8::is_ascii_digit).map(|b| usize::from(b - b'0'));
    let Some(mut number) = digit(after) else {
        return Err(bad_template(name, "has a $ that is not followed by the number of a group").into());
    };
    let mut behind = after.get(1..).unwrap_or_default();
    while let Some(next) = digit(behind).map(|d| number * 10 + d).filter(|&next| next <= search.group_count()) {
        number = next;
        behind = behind.get(1..).unwrap_or_default();
    }
    if number > search.group_count() {
        let count = search.group_count();
        let error = bad_template(name, &format!("asks for group {number}, and the pattern has {count}"));
        return Err(error.class(ErrorClass::IndexOutOfBounds).into());
    }
    Ok((number, behind))
}

#[cold]
fn bad_template(name: &str, what: &str) -> Error {
    Error::new(Reason::RuntimeError, format!("{name}: the replacement {what}"))
        .hint("$1 is the first group; write (re-quote-replacement s) for a literal $ or \\")
}

/// The matches that a function replaces, and the parts of the string around them.
pub(crate) struct Cut<'h> {
    pub(crate) matches: Value<'h>,
    pub(crate) around: Value<'h>,
    pub(crate) count: usize,
}

/// Splits a string at the matches of a pattern.
pub(crate) fn cut<'h>(h: &'h Ctx, which: Which, whole: Value<'h>, pattern: Value<'h>) -> Res<Cut<'h>> {
    let text = string(which.name(), whole)?;
    let Value::Regex(pattern) = pattern else {
        return Err(type_error(which.name(), "a regular expression to look for", pattern));
    };
    let mut search = which.search(h, pattern.text(), text)?;
    let (matches, around) = (h.vec_builder(4)?, h.vec_builder(4)?);
    let mut from = 0;
    while let Some((start, end)) = search.next()? {
        h.charge(cost::PART)?;
        around.push(h, h.str_view(search.part(from, start))?)?;
        matches.push(h, search.value()?)?;
        from = end;
        if which == Which::First {
            break;
        }
    }
    around.push(h, h.str_view(search.part(from, text.len()))?)?;
    let count = matches.len();
    Ok(Cut { matches: matches.finish(h)?, around: around.finish(h)?, count })
}

/// Returns the parts of a string, with the replacements between them.
pub(crate) fn join<'h>(h: &'h Ctx, around: &[Value<'h>], between: &[Value<'h>]) -> Res<Value<'h>> {
    h.charge((around.len() + between.len()) as u64)?;
    let mut out = TextBuf::new(h);
    for (i, part) in around.iter().enumerate() {
        out.push_str(part.as_str().unwrap_or_default())?;
        out.push_str(between.get(i).and_then(|v| v.as_str()).unwrap_or_default())?;
    }
    out.finish()
}

/// `(replace smap coll)`
fn elements<'h>(h: &'h Heap, smap: Value<'h>, coll: Value<'h>) -> Res<Value<'h>> {
    let items = args::seq(h, "replace", coll)?;
    if !items.is_empty() && !matches!(smap, Value::Map(_) | Value::Vector(_) | Value::Set(_) | Value::Nil) {
        return Err(type_error("replace", "a map or a vector of replacements", smap));
    }
    let out = h.vec_builder(items.len())?;
    for &item in items {
        h.charge(cost::PLACED)?;
        let found = match (smap, item) {
            // Vectors are never replaced, not even if they are keys of the map.
            (_, Value::Vector(_)) => None,
            (Value::Map(map), key) => map.get_flexible(h, key)?,
            (Value::Vector(by_index), key) => key.as_index().and_then(|i| by_index.get(i)),
            _ => None,
        };
        out.push(h, found.unwrap_or(item))?;
    }
    out.finish(h)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::pr_str;

    fn shown<'h>(h: &'h Ctx, value: Res<Value<'h>>) -> Result<String, String> {
        let value = match value {
            Ok(value) => value,
            Err(Fault::Error(error)) => return Err(error.message),
            Err(other) => panic!("{other:?}"),
        };
        let mut out = TextBuf::new(h);
        pr_str(h, value, &mut out).expect("there is room");
        Ok(out.into_string())
    }

    #[test]
    fn in_texts_and_collections() -> Res<()> {
        let h = Ctx::new(Heap::new(1, usize::MAX / 2));
        let s = |text: &str| h.str(text);
        let map = h.map([(h.keyword("b")?, Value::Int(2))].into_iter())?;
        let path = h.vector(&[h.vector(&[h.keyword("b")?])?])?;
        for (args, answer) in [
            (vec![s("abc")?, s("")?, s("-")?], r#""-a-b-c-""#),
            (vec![s("aaa")?, s("aa")?, s("b")?], r#""ba""#),
            (vec![s("a")?, s("a")?, s("$1\\")?], r#""$1\\""#),
            (vec![map, s("b")?], "[2]"),
            (vec![map, path], "[[:b]]"),
            (vec![Value::Int(1), h.vector(&[])?], "[]"),
        ] {
            assert_eq!(shown(&h, replace(&h, &args)).as_deref(), Ok(answer));
        }
        assert!(replace(&h, &[Value::Int(1), path]).is_err());
        Ok(())
    }

    /// The expected results are those of `java.util.regex.Matcher`.
    #[test]
    fn groups_in_replacements() {
        let h = Ctx::new(Heap::new(1, usize::MAX / 2));
        for (pattern, text, by, answer) in [
            (r"(\w)(\d)", "a1 b2", "$2$1", Ok("1a 2b")),
            (r"(\w)(\d)", "a1 b2", "$11", Ok("a1 b1")),
            (r"(\w)(\d)", "a1", "<$0>", Ok("<a1>")),
            (r"(?<year>\d{4})", "in 2024", "${year}!", Ok("in 2024!")),
            (r"\p{L}+ (?<year>\d{4})", "in 2024", "${year}!", Ok("2024!")),
            (r"a(x)?", "a", "[$1]", Ok("[]")),
            (r"a", "a", r"\$1\\", Ok(r"$1\")),
            (r"a", "b", "$7", Ok("b")),
            (r"x*", "ab", "-", Ok("-a-b-")),
            (r"a", "a", "$1", Err("asks for group 1, and the pattern has 0")),
            (r"a", "a", "$", Err("has a $ that is not followed")),
            (r"a", "a", "$x", Err("has a $ that is not followed")),
            (r"a", "a", "${", Err("has a ${ without")),
            (r"a", "a", "${b}", Err("names the group \"b\"")),
            (r"a", "a", "\\", Err("ends in a backslash")),
        ] {
            let got = matches(&h, Which::All, pattern, h.text(text).expect("there is room").text(), by);
            match (shown(&h, got), answer) {
                (Ok(got), Ok(answer)) => assert_eq!(got, format!("{answer:?}"), "{pattern} {by}"),
                (Err(got), Err(answer)) => assert!(got.contains(answer), "{pattern} {by}: {got}"),
                (got, answer) => panic!("{pattern} {by}: {got:?} {answer:?}"),
            }
        }
    }
}
