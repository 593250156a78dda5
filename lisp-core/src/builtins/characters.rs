//! Characters: strings of one character, with the functions of Java's `Character`.

use super::args::type_error;
use super::java::{null, out_of_domain, wrong_type};
use super::java_parse::decimal_digit;
use super::{Builtin, strings};
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, Reason};
use crate::heap::{Res, Value};
use regex_automata::meta::Regex;
use std::sync::LazyLock;

pub(super) const TABLE: &[Builtin] = &[
    Builtin::direct("char", 1, 1, "(char x)", char_of).doc(
        "Returns the character with a code, as a string; a character is returned unchanged.",
        &[("(char 97)", "\"a\""), ("(map char [104 105])", "[\"h\" \"i\"]"), ("(char -1)", "!runtime_error")],
    ),
    Builtin::java("Character/isDigit", 1, 1, "(Character/isDigit c)", |h, args| {
        ask(h, "Character/isDigit", args, |c| decimal_digit(c).is_some())
    })
    .doc(
        "Returns whether the character is a decimal digit.",
        &[("(Character/isDigit \\7)", "true"), ("(Character/isDigit \"12\")", "!java_type_error")],
    ),
    Builtin::java("Character/isLetter", 1, 1, "(Character/isLetter c)", is_letter).doc(
        "Returns whether the character is a letter, of any script.",
        &[("(Character/isLetter \\é)", "true"), ("(Character/isLetter nil)", "!java_domain_error")],
    ),
    Builtin::java("Character/isLetterOrDigit", 1, 1, "(Character/isLetterOrDigit c)", is_letter_or_digit).doc(
        "Returns whether the character is a letter or a decimal digit.",
        &[
            ("(filter Character/isLetterOrDigit \"a-1\")", "[\"a\" \"1\"]"),
            ("(Character/isLetterOrDigit [])", "!java_type_error"),
        ],
    ),
    Builtin::java("Character/isAlphabetic", 1, 1, "(Character/isAlphabetic c)", |h, args| {
        ask(h, "Character/isAlphabetic", args, char::is_alphabetic)
    })
    .doc(
        "Returns whether the character, or the one with this code, is alphabetic.",
        &[("(Character/isAlphabetic (int \\a))", "true"), ("(Character/isAlphabetic :a)", "!java_type_error")],
    ),
    Builtin::java("Character/isUpperCase", 1, 1, "(Character/isUpperCase c)", |h, args| {
        ask(h, "Character/isUpperCase", args, char::is_uppercase)
    })
    .doc(
        "Returns whether the character is an uppercase letter.",
        &[("(Character/isUpperCase \\A)", "true"), ("(Character/isUpperCase 1.5)", "!java_type_error")],
    ),
    Builtin::java("Character/isLowerCase", 1, 1, "(Character/isLowerCase c)", |h, args| {
        ask(h, "Character/isLowerCase", args, char::is_lowercase)
    })
    .doc(
        "Returns whether the character is a lowercase letter.",
        &[("(Character/isLowerCase \\A)", "false"), ("(Character/isLowerCase \"\")", "!java_type_error")],
    ),
    Builtin::java("Character/isWhitespace", 1, 1, "(Character/isWhitespace c)", |h, args| {
        ask(h, "Character/isWhitespace", args, strings::is_space)
    })
    .aliases(&["Character/isSpace"])
    .doc(
        "Returns whether the character is white space.",
        &[("(Character/isWhitespace \\tab)", "true"), ("(Character/isWhitespace {})", "!java_type_error")],
    ),
    Builtin::java("Character/toUpperCase", 1, 1, "(Character/toUpperCase c)", to_upper).doc(
        "Returns the character in upper case.",
        &[("(Character/toUpperCase \\a)", "\"A\""), ("(Character/toUpperCase \"ab\")", "!java_type_error")],
    ),
    Builtin::java("Character/toLowerCase", 1, 1, "(Character/toLowerCase c)", to_lower).doc(
        "Returns the character in lower case.",
        &[("(Character/toLowerCase \\A)", "\"a\""), ("(Character/toLowerCase true)", "!java_type_error")],
    ),
    Builtin::java("Character/toString", 1, 1, "(Character/toString c)", to_string).doc(
        "Returns the character as a string.",
        &[("(Character/toString \\a)", "\"a\""), ("(Character/toString [])", "!java_type_error")],
    ),
    Builtin::java("Character/digit", 2, 2, "(Character/digit c radix)", digit).doc(
        "Returns the value of a character as a digit of a base from 2 to 36, or -1.",
        &[
            ("(Character/digit \\f 16)", "15"),
            ("(Character/digit \\9 8)", "-1"),
            ("(Character/digit \\1 \"x\")", "!java_type_error"),
        ],
    ),
    Builtin::java("Character/getNumericValue", 1, 1, "(Character/getNumericValue c)", numeric_value).doc(
        "Returns the value of a character as a digit, 10 to 35 for letters, or -1.",
        &[("(Character/getNumericValue \\7)", "7"), ("(Character/getNumericValue nil)", "!java_domain_error")],
    ),
];

fn char_of<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args[0] {
        Value::Int(code) => match u32::try_from(code).ok().and_then(char::from_u32) {
            Some(c) => h.str(c.encode_utf8(&mut [0; 4])),
            None => Err(Error::new(Reason::RuntimeError, format!("char: no character has the code {code}"))
                .hint("codes go from 0 to 1114111; (int c) is the code of a character")
                .into()),
        },
        Value::Str(s) if crate::text::characters::is_one(h, s.text())? => Ok(args[0]),
        other => Err(type_error("char", "the code of a character, or a string of one", other)),
    }
}

/// Returns the character of a string or a code. If a character consists of several code points, returns the first.
fn one(h: &Ctx, name: &str, v: Value<'_>) -> Res<char> {
    h.charge(1)?;
    let found = match v {
        Value::Nil => return Err(null(name)),
        Value::Str(s) if crate::text::characters::is_one(h, s.text())? => s.text().chars().next(),
        Value::Int(code) => u32::try_from(code).ok().and_then(char::from_u32),
        _ => None,
    };
    found.ok_or_else(|| wrong_type(name, "a string of one character", v))
}

fn ask<'h>(h: &'h Ctx, name: &str, args: &[Value<'h>], answer: impl Fn(char) -> bool) -> Res<Value<'h>> {
    Ok(Value::Bool(answer(one(h, name, args[0])?)))
}

/// Letters are Unicode's categories L, which are fewer than the alphabetic characters.
fn letter(c: char) -> bool {
    static LETTER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\p{L}$").ok());
    if c.is_ascii() {
        return c.is_ascii_alphabetic();
    }
    LETTER.as_ref().is_some_and(|letter| letter.is_match(&*c.encode_utf8(&mut [0; 4])))
}

fn is_letter<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    h.charge(cost::CHARACTER)?;
    ask(h, "Character/isLetter", args, letter)
}

fn is_letter_or_digit<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    h.charge(cost::CHARACTER)?;
    ask(h, "Character/isLetterOrDigit", args, |c| letter(c) || decimal_digit(c).is_some())
}

/// Returns a character in another case, if that is one character too. For a code it returns a code.
fn in_case<'h>(
    h: &'h Ctx,
    name: &str,
    v: Value<'h>,
    change: impl Fn(char) -> (Option<char>, Option<char>),
) -> Res<Value<'h>> {
    let c = one(h, name, v)?;
    let changed = match change(c) {
        (Some(changed), None) => changed,
        _ => c,
    };
    match v {
        Value::Int(_) => Ok(Value::Int(i64::from(u32::from(changed)))),
        Value::Str(s) if s.text().len() == c.len_utf8() => h.str(changed.encode_utf8(&mut [0; 4])),
        other => Ok(other),
    }
}

fn to_upper<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    in_case(h, "Character/toUpperCase", args[0], |c| {
        let mut upper = c.to_uppercase();
        (upper.next(), upper.next())
    })
}

fn to_lower<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    in_case(h, "Character/toLowerCase", args[0], |c| {
        let mut lower = c.to_lowercase();
        (lower.next(), lower.next())
    })
}

fn to_string<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let c = one(h, "Character/toString", args[0])?;
    match args[0] {
        whole @ Value::Str(_) => Ok(whole),
        _ => h.str(c.encode_utf8(&mut [0; 4])),
    }
}

/// Returns the number of a digit or a Latin letter, up to 35.
fn value_of(c: char) -> Option<u32> {
    let wide = match c {
        '\u{ff21}'..='\u{ff3a}' => Some(u32::from(c) - 0xff21 + 10),
        '\u{ff41}'..='\u{ff5a}' => Some(u32::from(c) - 0xff41 + 10),
        _ => None,
    };
    decimal_digit(c).or_else(|| c.to_digit(36)).or(wide)
}

fn digit<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "Character/digit";
    let c = one(h, name, args[0])?;
    let radix = super::java::int(name, args[1])?;
    if !(2..=36).contains(&radix) {
        return Err(out_of_domain(name, &format!("a base is from 2 to 36, got {radix}")));
    }
    Ok(Value::Int(value_of(c).map(i64::from).filter(|&value| value < radix).unwrap_or(-1)))
}

fn numeric_value<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let c = one(h, "Character/getNumericValue", args[0])?;
    Ok(Value::Int(value_of(c).map_or(-1, i64::from)))
}
