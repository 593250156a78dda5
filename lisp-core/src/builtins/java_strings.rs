//! More methods of `java.lang.String`, and those of all objects: equality, order, text.

use super::java::{int, null, out_of_domain, text, wrong_type};
use super::java_text::{byte_at, two_texts, units};
use super::replacement::{self, Which};
use super::strings::{self, Parts};
use super::{Builtin, args, regex};
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, Reason};
use crate::heap::{Heap, Res, TextBuf, TimeValue, Value};
use crate::text::dates::calendar;
use crate::text::to_str;
use std::cmp::Ordering;

pub(super) const TABLE: &[Builtin] = &[
    Builtin::java(".toUpperCase", 1, 1, "(.toUpperCase s)", to_upper).doc(
        "Returns the string in upper case.",
        &[("(.toUpperCase \"abc\")", "\"ABC\""), ("(.toUpperCase nil)", "!java_domain_error")],
    ),
    Builtin::java(".toLowerCase", 1, 1, "(.toLowerCase s)", to_lower).doc(
        "Returns the string in lower case.",
        &[("(.toLowerCase \"ABC\")", "\"abc\""), ("(.toLowerCase 5)", "!java_type_error")],
    ),
    Builtin::java(".charAt", 2, 2, "(.charAt s index)", char_at).doc(
        "Returns the character at an index, counted in UTF-16 units.",
        &[("(.charAt \"abc\" 1)", "\"b\""), ("(.charAt \"abc\" 3)", "!java_domain_error")],
    ),
    Builtin::java(".isEmpty", 1, 1, "(.isEmpty s)", |_, args| Ok(Value::Bool(string(".isEmpty", args[0])?.is_empty())))
        .doc("Returns whether the string is empty.", &[("(.isEmpty \"\")", "true"), ("(.isEmpty [])", "!java_type_error")]),
    Builtin::java(".isBlank", 1, 1, "(.isBlank s)", is_blank).doc(
        "Returns whether the string is empty or only white space.",
        &[("(.isBlank \" \")", "true"), ("(.isBlank 1)", "!java_type_error")],
    ),
    Builtin::java(".strip", 1, 1, "(.strip s)", strip).doc(
        "Returns the string without white space at both ends.",
        &[("(.strip \" a \")", "\"a\""), ("(.strip :k)", "!java_type_error")],
    ),
    Builtin::java(".concat", 2, 2, "(.concat s other)", concat).doc(
        "Returns the two strings joined.",
        &[("(.concat \"ab\" \"c\")", "\"abc\""), ("(.concat \"a\" 1)", "!java_type_error")],
    ),
    Builtin::java(".repeat", 2, 2, "(.repeat s n)", repeat).doc(
        "Returns the string n times.",
        &[("(.repeat \"ab\" 3)", "\"ababab\""), ("(.repeat \"a\" -1)", "!java_domain_error")],
    ),
    Builtin::java(".equalsIgnoreCase", 2, 2, "(.equalsIgnoreCase s other)", same_but_case)
    .doc(
        "Returns whether the strings are equal, ignoring case.",
        &[("(.equalsIgnoreCase \"aB\" \"Ab\")", "true"), ("(.equalsIgnoreCase 1 \"a\")", "!java_type_error")],
    ),
    Builtin::java(".matches", 2, 2, "(.matches s pattern)", matches).doc(
        "Returns whether a regular expression, written as a string, matches the whole string.",
        &[("(.matches \"a1\" \"[a-z]\\\\d\")", "true"), ("(.matches \"a\" 1)", "!java_type_error")],
    ),
    Builtin::java(".split", 2, 3, "(.split s pattern limit)", split).doc(
        "Returns the parts between the matches of a regular expression, written as a string; without empty ones at the end.",
        &[
            ("(.split \"a, b,,\" \", *\")", "[\"a\" \"b\"]"),
            ("(.split \"a-b-c\" \"-\" 2)", "[\"a\" \"b-c\"]"),
            ("(.split \"a\" 1)", "!java_type_error"),
        ],
    ),
    Builtin::java(".replace", 3, 3, "(.replace s part other)", replace).doc(
        "Returns the string with every occurrence of a part replaced by another string.",
        &[("(.replace \"a.b\" \".\" \"-\")", "\"a-b\""), ("(.replace \"a\" \"a\" 1)", "!java_type_error")],
    ),
    Builtin::java(".replaceAll", 3, 3, "(.replaceAll s pattern replacement)", replace_all)
        .doc(
            "Returns the string with every match of a regular expression, written as a string, replaced; $1 is a group.",
            &[
                ("(.replaceAll \"a1b2\" \"([0-9])\" \"<$1>\")", "\"a<1>b<2>\""),
                ("(.replaceAll \"a\" 1 \"\")", "!java_type_error"),
            ],
        ),
    Builtin::java(".replaceFirst", 3, 3, "(.replaceFirst s pattern replacement)", replace_first)
    .doc(
        "Returns the string with the first match of a regular expression, written as a string, replaced; $1 is a group.",
        &[
            ("(.replaceFirst \"a1b2\" \"[0-9]\" \"\")", "\"ab2\""),
            ("(.replaceFirst nil \"a\" \"\")", "!java_domain_error"),
        ],
    ),
    Builtin::java(".equals", 2, 2, "(.equals a b)", equals).aliases(&["java.lang.Object/equals"]).doc(
        "Returns whether two values of one type are equal. 1 and 1.0 are not.",
        &[("(.equals \"a\" \"a\")", "true"), ("(.equals 1 1.0)", "false"), ("(.equals nil 1)", "!java_domain_error")],
    ),
    Builtin::java(".compareTo", 2, 2, "(.compareTo a b)", compare_to).doc(
        "Returns a number below 0, 0, or above 0 if the string, number or date is less than, equal to, or greater than the other.",
        &[
            ("(.compareTo \"a\" \"c\")", "-2"),
            ("(.compareTo (LocalDate/of 2024 1 2) (LocalDate/of 2024 1 1))", "1"),
            ("(.compareTo \"a\" 1)", "!java_type_error"),
        ],
    ),
    Builtin::java(".compareToIgnoreCase", 2, 2, "(.compareToIgnoreCase s other)", compare_to_ignore_case)
    .doc(
        "Like .compareTo, ignoring case.",
        &[
            ("(.compareToIgnoreCase \"a\" \"B\")", "-1"),
            ("(.compareToIgnoreCase \"aB\" \"Ab\")", "0"),
            ("(.compareToIgnoreCase \"a\" 1)", "!java_type_error"),
        ],
    ),
    Builtin::java(".toString", 1, 1, "(.toString x)", |h, args| {
        if args[0].is_nil() { Err(null(".toString")) } else { value_of(h, args) }
    })
    .aliases(&["java.lang.Object/toString"])
    .doc(
        "Returns the value as a string, like str.",
        &[("(.toString 12)", "\"12\""), ("(.toString nil)", "!java_domain_error")],
    ),
    Builtin::java("String/valueOf", 1, 1, "(String/valueOf x)", value_of).doc(
        "Returns the value as a string, like str; nil is \"null\".",
        &[("(String/valueOf 12)", "\"12\""), ("(String/valueOf nil)", "\"null\"")],
    ),
    Builtin::java("String.", 0, 1, "(String. s)", new_string).doc(
        "Returns the string itself, or an empty one.",
        &[("(String. \"a\")", "\"a\""), ("(String. 1)", "!java_type_error")],
    ),
    Builtin::java("String/join", 2, 2, "(String/join separator strings)", join).doc(
        "Returns the strings with the separator between them.",
        &[("(String/join \"-\" [\"a\" \"b\"])", "\"a-b\""), ("(String/join \"-\" [1])", "!java_type_error")],
    ),
];

/// Returns a string argument; nil is an error.
fn string<'h>(name: &str, v: Value<'h>) -> Res<&'h str> {
    text(name, v)?.ok_or_else(|| null(name))
}

fn to_upper<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    string(".toUpperCase", args[0])?;
    strings::upper_case(h, args)
}

fn to_lower<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    string(".toLowerCase", args[0])?;
    strings::lower_case(h, args)
}

fn char_at<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".charAt";
    let receiver = text(name, args[0])?;
    let index = int(name, args[1])?;
    let receiver = receiver.ok_or_else(|| null(name))?;
    h.charge(cost::scanned(receiver.len()) + 1)?;
    let (byte, begins) = if index < 0 { (receiver.len(), true) } else { byte_at(h, receiver, index)? };
    match receiver.get(byte..).and_then(|rest| rest.chars().next()) {
        Some(c) if begins && c.len_utf16() == 1 => h.str_view(&receiver[byte..byte + c.len_utf8()]),
        None if begins => {
            let message = format!("{index} is not an index of a string of {} UTF-16 units", units(h, receiver)?);
            Err(out_of_domain(name, &message))
        }
        _ => Err(Error::new(
            Reason::InvalidJavaString,
            format!("{name}: index {index} is inside a character of two UTF-16 units"),
        )
        .hint("use (nth s i), which counts whole characters")
        .into()),
    }
}

fn is_blank<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let text = string(".isBlank", args[0])?;
    h.charge(cost::copied(text.len()))?;
    Ok(Value::Bool(text.chars().all(strings::is_space)))
}

fn strip<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let text = string(".strip", args[0])?;
    h.charge(cost::copied(text.len()))?;
    h.str_view(text.trim_matches(strings::is_space))
}

fn concat<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let (a, b) = two_texts(h, ".concat", args)?;
    let mut out = TextBuf::new(h);
    out.push_str(a)?;
    out.push_str(b)?;
    out.finish()
}

fn repeat<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".repeat";
    let receiver = text(name, args[0])?;
    let times = int(name, args[1])?;
    let receiver = receiver.ok_or_else(|| null(name))?;
    let times = usize::try_from(times).map_err(|_| out_of_domain(name, &format!("{times} times is less than none")))?;
    let mut out = TextBuf::new(h);
    if receiver.is_empty() {
        return out.finish();
    }
    let mut chars = receiver.chars();
    if let (Some(c), None) = (chars.next(), chars.next()) {
        out.fill(c, times)?;
        return out.finish();
    }
    for _ in 0..times {
        h.charge(1)?;
        out.push_str(receiver)?;
    }
    out.finish()
}

fn same_but_case<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".equalsIgnoreCase";
    let (receiver, other) = (text(name, args[0])?, text(name, args[1])?);
    let receiver = receiver.ok_or_else(|| null(name))?;
    let Some(other) = other else { return Ok(Value::Bool(false)) };
    let folded = |c: char| c.to_uppercase().flat_map(char::to_lowercase);
    h.charge(receiver.len().min(other.len()) as u64 + 1)?;
    let (mut a, mut b) = (receiver.chars(), other.chars());
    loop {
        h.poll_every(1)?;
        match (a.next(), b.next()) {
            (None, None) => return Ok(Value::Bool(true)),
            (Some(x), Some(y)) if x == y || folded(x).eq(folded(y)) => {}
            _ => return Ok(Value::Bool(false)),
        }
    }
}

fn matches<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".matches";
    let (receiver, pattern) = (text(name, args[0])?, text(name, args[1])?);
    let (Some(receiver), Some(pattern)) = (receiver, pattern) else { return Err(null(name)) };
    Ok(Value::Bool(regex::Search::whole(h, pattern, receiver)?.next()?.is_some()))
}

fn split<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".split";
    let (receiver, pattern) = (text(name, args[0])?, text(name, args[1])?);
    let limit = args.get(2).map_or(Ok(0), |&limit| int(name, limit))?;
    let (Some(receiver), Some(pattern)) = (receiver, pattern) else { return Err(null(name)) };
    Parts::new(h, receiver, limit)?.between(regex::Search::each(h, pattern, receiver)?)
}

/// Returns the receiver and two other strings, after checking the types of all.
fn three_texts<'h>(name: &str, args: &[Value<'h>]) -> Res<[&'h str; 3]> {
    let all = (text(name, args[0])?, text(name, args[1])?, text(name, args[2])?);
    let (Some(a), Some(b), Some(c)) = all else { return Err(null(name)) };
    Ok([a, b, c])
}

fn replace<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    three_texts(".replace", args)?;
    replacement::replace(h, args)
}

fn replace_all<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let [receiver, pattern, by] = three_texts(".replaceAll", args)?;
    replacement::matches(h, Which::All, pattern, receiver, by)
}

fn replace_first<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let [receiver, pattern, by] = three_texts(".replaceFirst", args)?;
    replacement::matches(h, Which::First, pattern, receiver, by)
}

fn equals<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    if args[0].is_nil() {
        return Err(null(".equals"));
    }
    let is_float = |v: Value<'_>| matches!(v, Value::Float(_));
    Ok(Value::Bool(is_float(args[0]) == is_float(args[1]) && h.same_key(args[0], args[1])?))
}

fn compare_to<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".compareTo";
    let order = |order: Ordering| Ok(Value::Int(order as i64));
    match (args[0], args[1]) {
        (Value::Nil, _) | (_, Value::Nil) => Err(null(name)),
        (Value::Str(a), Value::Str(b)) => compare_texts(h, a.text(), b.text()),
        (a, b) if a.is_number() && b.is_number() => order(h.order(a, b)?),
        (Value::Bool(a), Value::Bool(b)) => order(a.cmp(&b)),
        (Value::Time(a), Value::Time(b)) => match (a.value, b.value) {
            (TimeValue::LocalDate(a), TimeValue::LocalDate(b)) => {
                let (a, b) = (calendar(a), calendar(b));
                let parts = [a.0 - b.0, a.1 - b.1, a.2 - b.2];
                Ok(Value::Int(parts.into_iter().find(|&part| part != 0).unwrap_or(0)))
            }
            (TimeValue::Instant(a, m), TimeValue::Instant(b, n))
            | (TimeValue::LocalDateTime(a, m), TimeValue::LocalDateTime(b, n))
            | (TimeValue::Duration(a, m), TimeValue::Duration(b, n)) => order((a, m).cmp(&(b, n))),
            (TimeValue::Date(a), TimeValue::Date(b)) => order(a.cmp(&b)),
            _ => Err(wrong_type(name, "two values of one kind", args[1])),
        },
        (Value::Str(_) | Value::Time(_) | Value::Bool(_), other) => {
            Err(wrong_type(name, "two values of one kind", other))
        }
        (a, other) if a.is_number() => Err(wrong_type(name, "two numbers", other)),
        (other, _) => Err(wrong_type(name, "strings, numbers or dates", other)),
    }
}

fn compare_to_ignore_case<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let (a, b) = two_texts(h, ".compareToIgnoreCase", args)?;
    // Counts the starts of characters of several bytes.
    let wide = |text: &str| text.bytes().filter(|&byte| byte >= 0xC0).count() as u64;
    h.charge(cost::scanned(a.len().saturating_add(b.len())) + 1)?;
    h.charge((wide(a) + wide(b)) * cost::CHARACTER + cost::parsed(a.len().saturating_add(b.len())))?;
    let units = |text: &'h str| text.chars().map(without_case).flat_map(utf16);
    compare_units(h, a, b, units(a), units(b))
}

/// Returns the UTF-16 units of a character.
fn utf16(c: char) -> impl Iterator<Item = u16> {
    let mut units = [0; 2];
    let count = c.encode_utf16(&mut units).len();
    units.into_iter().take(count)
}

/// Returns the character in lower case, if that is a single character.
fn without_case(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    let only = |letters: &mut dyn Iterator<Item = char>, c: char| match (letters.next(), letters.next()) {
        (Some(one), None) => one,
        _ => c,
    };
    let upper = only(&mut c.to_uppercase(), c);
    only(&mut upper.to_lowercase(), upper)
}

/// Returns the difference of the first units that differ, or of the lengths.
fn compare_texts<'h>(h: &'h Heap, a: &str, b: &str) -> Res<Value<'h>> {
    h.charge(cost::scanned(a.len().saturating_add(b.len())) + 1)?;
    compare_units(h, a, b, a.encode_utf16(), b.encode_utf16())
}

fn compare_units<'h>(
    h: &'h Heap,
    a: &str,
    b: &str,
    mut x: impl Iterator<Item = u16>,
    mut y: impl Iterator<Item = u16>,
) -> Res<Value<'h>> {
    loop {
        h.poll_every(1)?;
        match (x.next(), y.next()) {
            (Some(x), Some(y)) if x == y => {}
            (Some(x), Some(y)) => return Ok(Value::Int(i64::from(x) - i64::from(y))),
            (None, None) => return Ok(Value::Int(0)),
            _ => return Ok(Value::Int(units(h, a)? - units(h, b)?)),
        }
    }
}

fn value_of<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args[0] {
        Value::Nil => h.str("null"),
        same @ Value::Str(_) => Ok(same),
        other => {
            h.charge(cost::TEXT_PART)?;
            let mut out = TextBuf::new(h);
            to_str(h, &other, &mut out)?;
            out.finish()
        }
    }
}

fn new_string<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args.first() {
        None => h.str(""),
        Some(&same) => string("String.", same).map(|_| same),
    }
}

fn join<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "String/join";
    let separator = string(name, args[0])?;
    let items = match args[1] {
        Value::Nil => return Err(null(name)),
        coll @ (Value::Vector(_) | Value::Set(_)) => args::seq(h, name, coll)?,
        other => return Err(wrong_type(name, "a vector or set of strings", other)),
    };
    h.charge(items.len() as u64 * cost::TEXT_PART)?;
    let mut out = TextBuf::new(h);
    for (i, &item) in items.iter().enumerate() {
        if i > 0 {
            out.push_str(separator)?;
        }
        match item {
            Value::Nil => out.push_str("null")?,
            item => out.push_str(string(name, item)?)?,
        }
    }
    out.finish()
}
