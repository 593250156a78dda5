//! Equality, numeric order and the language's natural order.

use super::args::fault;
use super::numbers::{charge_comparison, greater, greater_eq, less, less_eq};
use super::{Builtin, Lowering, MANY};
use crate::code::Cmp;
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, Reason};
use crate::heap::{Fault, Heap, Res, TimeValue, Value, Work, compare_numbers};
use crate::text::describe;
use std::cmp::Ordering;

/// `(compare a b)`: nil comes first. Numbers, strings, keywords, booleans and times are comparable with their own kind;
/// vectors by length, then element by element. Anything else is a type error, including NaN.
#[inline]
pub(crate) fn compare_values<'h>(h: &'h Heap, a: Value<'h>, b: Value<'h>) -> Res<Ordering> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Ok(a.cmp(&b)),
        (Value::Vector(_), Value::Vector(_)) => compare_vectors(h, a, b),
        _ => compare_leaves(h, a, b),
    }
}

/// Compares nested vectors with a work list, so that depth uses metered memory instead of the native stack.
fn compare_vectors<'h>(h: &'h Heap, a: Value<'h>, b: Value<'h>) -> Res<Ordering> {
    let mut work = Work::new(h);
    work.push((a, b, 0usize))?;
    while let Some((a, b, at)) = work.pop() {
        h.charge(cost::COMPARED)?;
        let order = match (a, b) {
            (Value::Vector(x), Value::Vector(y)) => match (x.len().cmp(&y.len()), x.get(at), y.get(at)) {
                (Ordering::Equal, Some(first), Some(second)) => {
                    work.push((a, b, at + 1))?;
                    if let (Value::Vector(_), Value::Vector(_)) = (first, second) {
                        work.push((first, second, 0))?;
                        Ordering::Equal
                    } else {
                        compare_leaves(h, first, second)?
                    }
                }
                (order, _, _) => order,
            },
            _ => compare_leaves(h, a, b)?,
        };
        if order != Ordering::Equal {
            return Ok(order);
        }
    }
    Ok(Ordering::Equal)
}

fn compare_leaves<'h>(h: &'h Heap, a: Value<'h>, b: Value<'h>) -> Res<Ordering> {
    match (a, b) {
        (Value::Nil, Value::Nil) => Ok(Ordering::Equal),
        (Value::Nil, _) => Ok(Ordering::Less),
        (_, Value::Nil) => Ok(Ordering::Greater),
        (Value::Str(a), Value::Str(b)) | (Value::Keyword(_, a), Value::Keyword(_, b)) => {
            h.charge(1 + cost::copied(a.text().len().min(b.text().len())))?;
            Ok(compare_texts(a.text(), b.text()))
        }
        (Value::Bool(a), Value::Bool(b)) => Ok(a.cmp(&b)),
        (Value::Time(x), Value::Time(y)) => match (x.value, y.value) {
            (TimeValue::LocalDate(x), TimeValue::LocalDate(y)) | (TimeValue::Date(x), TimeValue::Date(y)) => {
                Ok(x.cmp(&y))
            }
            (TimeValue::Instant(x, i), TimeValue::Instant(y, j))
            | (TimeValue::LocalDateTime(x, i), TimeValue::LocalDateTime(y, j))
            | (TimeValue::Duration(x, i), TimeValue::Duration(y, j)) => Ok((x, i).cmp(&(y, j))),
            _ => Err(not_comparable(a, b)),
        },
        _ if a.is_number() && b.is_number() => {
            charge_comparison(h, a, b)?;
            compare_numbers(a, b).ok_or_else(|| fault(Reason::TypeError, "compare: NaN cannot be ordered"))
        }
        _ => Err(not_comparable(a, b)),
    }
}

#[cold]
fn not_comparable(a: Value<'_>, b: Value<'_>) -> Fault {
    Error::new(Reason::TypeError, format!("compare: {} and {} have no order", describe(a), describe(b)))
        .hint("sort values of one kind, or sort by a number, string, keyword or vector of these")
        .into()
}

/// Compares texts by their UTF-16 units: characters beyond the basic plane come before U+E000 to U+FFFF.
pub(super) fn compare_texts(a: &str, b: &str) -> Ordering {
    let Some(at) = a.bytes().zip(b.bytes()).position(|(x, y)| x != y) else { return a.len().cmp(&b.len()) };
    let start = (0..=at).rev().find(|&i| a.is_char_boundary(i) && b.is_char_boundary(i)).unwrap_or(0);
    let unit = |text: &str| text.get(start..).and_then(|rest| rest.encode_utf16().next());
    // Two characters with the same high surrogate are in the order of their bytes.
    unit(a).cmp(&unit(b)).then_with(|| a.cmp(b))
}

/// Returns true if every argument equals the first.
fn all_equal<'h>(h: &'h Heap, args: &[Value<'h>]) -> Res<bool> {
    h.charge(args.len() as u64)?;
    let [first, rest @ ..] = args else { return Ok(true) };
    for &arg in rest {
        if !h.equal(*first, arg)? {
            h.note_unequal(*first, arg)?;
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    Ok(Value::Bool(all_equal(h, args)?))
}

fn not_equal<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    Ok(Value::Bool(!all_equal(h, args)?))
}

/// Returns true if all neighbours are in this relation. Values after the first pair that is not are ignored.
fn chain<'h>(
    h: &'h Heap,
    args: &[Value<'h>],
    holds: fn(&'h Heap, Value<'h>, Value<'h>) -> Res<bool>,
) -> Res<Value<'h>> {
    h.charge(args.len() as u64)?;
    for (&a, &b) in args.iter().zip(args.iter().skip(1)) {
        if !holds(h, a, b)? {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn less_chain<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    chain(h, args, less)
}

fn less_eq_chain<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    chain(h, args, less_eq)
}

fn greater_chain<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    chain(h, args, greater)
}

fn greater_eq_chain<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    chain(h, args, greater_eq)
}

fn compare<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    Ok(Value::Int(compare_values(h, args[0], args[1])? as i64))
}

pub(super) const TABLE: &[Builtin] = &[
    Builtin::pure("=", 1, MANY, "(= x y ...)", equal)
        .shown_as_fn()
        .lowered(Lowering::Compare(Cmp::Eq))
        .aliases(&["=="])
        .doc(
            "Returns whether all values are equal. Numbers are compared by value, so 1 equals 1.0; NaN equals nothing.",
            &[
                ("(= 1 1)", "true"),
                ("(= 1 1.0)", "true"),
                ("(= [1 {:a 2}] [1 {:a 2}])", "true"),
                ("(= :a \"a\")", "false"),
                ("(=)", "!arity_error"),
            ],
        ),
    Builtin::pure("not=", 1, MANY, "(not= x y ...)", not_equal).shown_as_fn().doc(
        "Returns whether a value differs from the first.",
        &[("(not= 1 2)", "true"), ("(not= 1 1.0)", "false"), ("(not=)", "!arity_error")],
    ),
    Builtin::pure("<", 1, MANY, "(< x y ...)", less_chain).shown_as_fn().lowered(Lowering::Compare(Cmp::Lt)).doc(
        "Returns whether the numbers increase.",
        &[("(< 1 2 3)", "true"), ("(< 1 3 2)", "false"), ("(< ##NaN 0)", "false"), ("(< 1 nil)", "!type_error")],
    ),
    Builtin::pure("<=", 1, MANY, "(<= x y ...)", less_eq_chain)
        .shown_as_fn()
        .lowered(Lowering::Compare(Cmp::Le))
        .doc("Returns whether the numbers never decrease.", &[("(<= 1 1 2)", "true"), ("(<= nil nil)", "!type_error")]),
    Builtin::pure(">", 1, MANY, "(> x y ...)", greater_chain)
        .shown_as_fn()
        .lowered(Lowering::Compare(Cmp::Gt))
        .doc("Returns whether the numbers decrease.", &[("(> 3 2 1)", "true"), ("(> \"b\" \"a\")", "!type_error")]),
    Builtin::pure(">=", 1, MANY, "(>= x y ...)", greater_eq_chain)
        .shown_as_fn()
        .lowered(Lowering::Compare(Cmp::Ge))
        .doc("Returns whether the numbers never increase.", &[("(>= 3 3 1)", "true"), ("(>= :b :a)", "!type_error")]),
    Builtin::pure("compare", 2, 2, "(compare x y)", compare).doc(
        "-1, 0 or 1 if x sorts before, equal to or after y. nil sorts first.",
        &[
            ("(compare 1 2)", "-1"),
            ("(compare \"b\" \"a\")", "1"),
            ("(compare nil 1)", "-1"),
            ("(compare [1 2] [1 3])", "-1"),
            ("(compare \"a\" 1)", "!type_error"),
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::merge_sort;

    #[test]
    fn texts_are_ordered_by_utf16_units() {
        let mut texts =
            vec!["\u{10000}", "\u{FFFF}", "\u{E000}", "a", "", "\u{D7FF}", "ab", "\u{1F600}", "\u{1F601}", "é", "ê"];
        let mut by_units = texts.clone();
        texts.sort_by(|a, b| compare_texts(a, b));
        by_units.sort_by_key(|t| t.encode_utf16().collect::<Vec<_>>());
        assert_eq!(texts, by_units);
    }

    #[test]
    fn sorting_is_stable_and_fails_on_mixed_kinds() {
        let h = Ctx::new(Heap::new(1, 1 << 24));
        let mut items: Vec<(i32, usize)> = (0..1000).map(|i| ((i as i32 * 7919) % 13, i)).collect();
        merge_sort(&h, &mut items, |a, b| Ok(a.0.cmp(&b.0))).unwrap();
        assert!(items.windows(2).all(|w| w[0] <= w[1]));
        let mut mixed: Vec<Value<'_>> =
            (0..100).map(|i| if i == 57 { Value::Bool(true) } else { Value::Float(f64::from(-i)) }).collect();
        let sorted = merge_sort(&h, &mut mixed, |a, b| compare_values(&h, a, b));
        assert!(matches!(sorted, Err(Fault::Error(e)) if e.reason == Reason::TypeError));
    }

    #[test]
    fn deep_vectors_compare_without_native_stack() {
        let h = Ctx::new(Heap::new(1, 1 << 30));
        let nest = |leaf| (0..200_000).fold(Value::Int(leaf), |v, _| h.vector(&[v]).unwrap());
        assert_eq!(compare_values(&h, nest(1), nest(2)).unwrap(), Ordering::Less);
    }
}
