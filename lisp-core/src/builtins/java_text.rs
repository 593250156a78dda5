//! The methods of `java.lang.String`. Indexes count UTF-16 units, like Java's: a character outside the basic plane has
//! two.

use super::Builtin;
use super::java::{int, null, out_of_domain, text};
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, Reason};
use crate::heap::{Heap, Res, Value, Vector};
use crate::text::scan;

pub(super) const TABLE: &[Builtin] = &[
    Builtin::java(".length", 1, 1, "(.length s)", length).doc(
        "Length in UTF-16 units.",
        &[("(.length \"abc\")", "3"), ("(.length \"😀\")", "2"), ("(.length 5)", "!java_type_error")],
    ),
    Builtin::java(".indexOf", 2, 3, "(.indexOf s part), (.indexOf s part from), (.indexOf coll x)", index_of).doc(
        "Index of the first occurrence, counted in UTF-16 units, or of an element of a vector; or -1.",
        &[
            ("(.indexOf [:a :b] :b)", "1"),
            ("(.indexOf \"hello\" \"l\")", "2"),
            ("(.indexOf \"hello\" \"l\" 3)", "3"),
            ("(.indexOf \"hello\" \"x\")", "-1"),
            ("(.indexOf \"abc\" 1)", "!java_type_error"),
        ],
    ),
    Builtin::java(".lastIndexOf", 2, 2, "(.lastIndexOf s part)", last_index_of).doc(
        "Index of the last occurrence, counted in UTF-16 units, or -1.",
        &[("(.lastIndexOf \"hello\" \"l\")", "3"), ("(.lastIndexOf \"abca\" 97)", "!java_type_error")],
    ),
    Builtin::java(".contains", 2, 2, "(.contains s part), (.contains coll x)", contains).doc(
        "Returns whether the string contains the other one, or the vector the element.",
        &[
            ("(.contains \"hello\" \"ell\")", "true"),
            ("(.contains [1 2] 2)", "true"),
            ("(.contains \"abc\" 1)", "!java_type_error"),
        ],
    ),
    Builtin::java(".startsWith", 2, 2, "(.startsWith s prefix)", starts_with).doc(
        "Returns whether the string starts with the other one.",
        &[("(.startsWith \"hello\" \"he\")", "true"), ("(.startsWith \"abc\" 1)", "!java_type_error")],
    ),
    Builtin::java(".endsWith", 2, 2, "(.endsWith s suffix)", ends_with).doc(
        "Returns whether the string ends with the other one.",
        &[("(.endsWith \"hello\" \"lo\")", "true"), ("(.endsWith \"abc\" 1)", "!java_type_error")],
    ),
    Builtin::java(".substring", 2, 3, "(.substring s start), (.substring s start end)", substring).doc(
        "Returns the part from start up to, not including, end, counted in UTF-16 units.",
        &[
            ("(.substring \"hello\" 1 3)", "\"el\""),
            ("(.substring \"hello\" 2)", "\"llo\""),
            ("(.substring \"abc\" 4)", "!java_domain_error"),
            ("(.substring \"😀a\" 0 1)", "!invalid_java_string"),
        ],
    ),
    Builtin::java(".trim", 1, 1, "(.trim s)", trim).doc(
        "Returns the string without white space and control characters (up to U+0020) at both ends.",
        &[("(.trim \" \\tAda \")", "\"Ada\""), ("(.trim 5)", "!java_type_error")],
    ),
];

/// Returns the number of UTF-16 units of a text.
pub(super) fn units(h: &Heap, text: &str) -> Res<i64> {
    let mut count = 0;
    for piece in scan::pieces(h, text) {
        let piece = piece?;
        count += if piece.is_ascii() { piece.len() } else { piece.chars().map(char::len_utf16).sum() };
    }
    Ok(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Returns the byte position of a unit. If the unit is the second half of a character, returns the next character's
/// byte and `false`. Beyond the end it is the end.
pub(super) fn byte_at(h: &Heap, text: &str, unit: i64) -> Res<(usize, bool)> {
    let Ok(unit) = usize::try_from(unit) else { return Ok((0, true)) };
    let (mut byte, mut passed) = (0, 0);
    for piece in scan::pieces(h, text) {
        let piece = piece?;
        let Some(more) = unit.checked_sub(passed) else {
            // It was the second half of the character that ended the piece before.
            return Ok((byte, false));
        };
        if piece.is_ascii() {
            if more < piece.len() {
                return Ok((byte + more, true));
            }
            passed += piece.len();
        } else {
            for (at, c) in piece.char_indices() {
                if passed >= unit {
                    return Ok((byte + at, passed == unit));
                }
                passed += c.len_utf16();
            }
        }
        byte += piece.len();
    }
    Ok((text.len(), passed <= unit))
}

/// Returns the receiver and another string, after checking the types of both.
pub(super) fn two_texts<'h>(h: &'h Heap, name: &str, args: &[Value<'h>]) -> Res<(&'h str, &'h str)> {
    let both = (text(name, args[0])?, text(name, args[1])?);
    let (Some(receiver), Some(other)) = both else { return Err(null(name)) };
    h.charge(cost::scanned(receiver.len() + other.len()) + 1)?;
    Ok((receiver, other))
}

fn length<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let text = text(".length", args[0])?.ok_or_else(|| null(".length"))?;
    h.charge(cost::scanned(text.len()))?;
    Ok(Value::Int(units(h, text)?))
}

/// Returns the unit position of a byte; -1 for `None`.
fn unit_at<'h>(h: &'h Heap, text: &str, byte: Option<usize>) -> Res<Value<'h>> {
    match byte {
        Some(byte) => Ok(Value::Int(units(h, &text[..byte])?)),
        None => Ok(Value::Int(-1)),
    }
}

fn index_of<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".indexOf";
    if let [Value::Vector(v), item] = *args {
        return index_in(h, v, item);
    }
    // The types of all arguments are checked before nil.
    let from = match args.get(2) {
        Some(&from) => {
            text(name, args[0])?;
            text(name, args[1])?;
            int(name, from)?.max(0)
        }
        None => 0,
    };
    let (receiver, part) = two_texts(h, name, args)?;
    if part.is_empty() {
        return Ok(Value::Int(from.min(units(h, receiver)?)));
    }
    let (start, _) = byte_at(h, receiver, from)?;
    let found = scan::find(h, &receiver[start..], part)?;
    unit_at(h, receiver, found.map(|at| start + at))
}

/// Returns the index of an element that is the same key; -1 for none.
fn index_in<'h>(h: &'h Heap, v: &Vector<'h>, item: Value<'h>) -> Res<Value<'h>> {
    for (at, &other) in v.items().iter().enumerate() {
        h.charge(1)?;
        if h.same_key(other, item)? {
            return Ok(Value::count(at));
        }
    }
    Ok(Value::Int(-1))
}

fn last_index_of<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let (receiver, part) = two_texts(h, ".lastIndexOf", args)?;
    unit_at(h, receiver, scan::rfind(h, receiver, part)?)
}

fn contains<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    if let [Value::Vector(v), item] = *args {
        return Ok(Value::Bool(!matches!(index_in(h, v, item)?, Value::Int(-1))));
    }
    let (receiver, part) = two_texts(h, ".contains", args)?;
    Ok(Value::Bool(scan::find(h, receiver, part)?.is_some()))
}

fn starts_with<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let (receiver, part) = two_texts(h, ".startsWith", args)?;
    Ok(Value::Bool(receiver.starts_with(part)))
}

fn ends_with<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let (receiver, part) = two_texts(h, ".endsWith", args)?;
    Ok(Value::Bool(receiver.ends_with(part)))
}

fn substring<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".substring";
    let receiver = text(name, args[0])?;
    let start = int(name, args[1])?;
    let end = args.get(2).map(|&end| int(name, end)).transpose()?;
    let receiver = receiver.ok_or_else(|| null(name))?;
    h.charge(cost::scanned(receiver.len()))?;
    let len = units(h, receiver)?;
    let (given, end) = (end, end.unwrap_or(len));
    if start < 0 || end > len || start > end {
        let message = match given {
            Some(_) => format!("the part from {start} to {end} is not inside a string of {len} UTF-16 units"),
            None => format!("the start {start} is not from 0 to {len}, the length of the string in UTF-16 units"),
        };
        return Err(out_of_domain(name, &message));
    }
    if start == end {
        return h.str("");
    }
    let ((from, whole_start), (to, whole_end)) = (byte_at(h, receiver, start)?, byte_at(h, receiver, end)?);
    match receiver.get(from..to) {
        Some(part) if whole_start && whole_end => h.str_view(part),
        _ => Err(Error::new(
            Reason::InvalidJavaString,
            format!("{name}: the part from {start} to {end} cuts a character of two UTF-16 units in half"),
        )
        .hint("use subs, which counts whole characters")
        .into()),
    }
}

fn trim<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let text = text(".trim", args[0])?.ok_or_else(|| null(".trim"))?;
    h.charge(cost::copied(text.len()))?;
    h.str_view(text.trim_matches(|c| c <= ' '))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the byte and the unit at which each character of a text starts, followed by those of the end.
    fn places(text: &str) -> Vec<(usize, i64)> {
        let mut unit = 0;
        let mut places = Vec::new();
        for (byte, c) in text.char_indices() {
            places.push((byte, unit));
            unit += if u32::from(c) > 0xFFFF { 2 } else { 1 };
        }
        places.push((text.len(), unit));
        places
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn units_do_not_depend_on_the_pieces(text in "([a-c]{0,20}|é{0,12}|[aé😀]{0,12}){0,4}") {
            let heap = Heap::new(1, usize::MAX / 2);
            let places = places(&text);
            let end = places.last().map_or(0, |place| place.1);
            prop_assert_eq!(units(&heap, &text).expect("no limit is reached"), end);
            for unit in 0..=end + 1 {
                let first = places.iter().find(|place| place.1 >= unit);
                let wanted = first.map_or((text.len(), true), |place| (place.0, place.1 == unit));
                prop_assert_eq!(byte_at(&heap, &text, unit).expect("no limit is reached"), wanted, "unit {}", unit);
            }
        }
    }
}
