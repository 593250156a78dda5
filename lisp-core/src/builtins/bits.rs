//! Operations on the bits of integers, as two's complement of unlimited length.

use super::args::{at_once, type_error_as};
use super::numbers::{MAX_LIMBS, big_limbs, limbs, prepare, to_bigint};
use super::{Builtin, MANY};
use crate::context::Ctx;
use crate::error::{Error, ErrorClass, Reason};
use crate::heap::{Fault, Heap, Res, Value};
use crate::text::describe;
use num_bigint::BigInt;

#[cold]
fn not_an_integer(name: &str, got: Value<'_>) -> Fault {
    type_error_as(of_bits(got), name, "an integer", got)
}

/// Returns the class of the error for a value without bits.
fn of_bits(got: Value<'_>) -> ErrorClass {
    if got.is_nil() { ErrorClass::NullPointer } else { ErrorClass::IllegalArgument }
}

/// Returns an integer argument unchanged.
fn integer<'h>(name: &str, v: Value<'h>) -> Res<Value<'h>> {
    match v {
        Value::Int(_) | Value::Big(_) => Ok(v),
        other => Err(not_an_integer(name, other)),
    }
}

/// Returns a number of bit positions, which must not be negative. Integers beyond 64 bits are saturated.
fn places(name: &str, v: Value<'_>) -> Res<usize> {
    match v {
        Value::Int(n) if n >= 0 => Ok(usize::try_from(n).unwrap_or(usize::MAX)),
        Value::Big(b) if !b.negative => Ok(usize::MAX),
        other => Err(Error::new(
            Reason::TypeError,
            format!("{name} expects a number of bits of at least 0, got {}", describe(other)),
        )
        .class(of_bits(other))
        .into()),
    }
}

/// An operation on small integers, and the same on large ones.
#[derive(Clone, Copy)]
pub(crate) struct Op {
    name: &'static str,
    small: fn(i64, i64) -> i64,
    large: fn(BigInt, BigInt) -> BigInt,
}

pub(crate) const AND: Op = Op { name: "bit-and", small: |a, b| a & b, large: |a, b| a & b };
pub(crate) const OR: Op = Op { name: "bit-or", small: |a, b| a | b, large: |a, b| a | b };
pub(crate) const XOR: Op = Op { name: "bit-xor", small: |a, b| a ^ b, large: |a, b| a ^ b };
pub(crate) const AND_NOT: Op = Op { name: "bit-and-not", small: |a, b| a & !b, large: |a, b| a & !b };

impl Op {
    pub(crate) fn apply<'h>(self, h: &'h Heap, a: Value<'h>, b: Value<'h>) -> Res<Value<'h>> {
        match (integer(self.name, a)?, integer(self.name, b)?) {
            (Value::Int(a), Value::Int(b)) => Ok(Value::Int((self.small)(a, b))),
            (a, b) => {
                let size = limbs(a).max(limbs(b));
                prepare(h, self.name, size + 1, 4 * size as u64)?;
                h.integer(&(self.large)(to_bigint(a), to_bigint(b)))
            }
        }
    }

    fn fold<'h>(self, h: &'h Heap, args: &[Value<'h>]) -> Res<Value<'h>> {
        h.charge(args.len() as u64)?;
        let [first, rest @ ..] = args else { return Ok(Value::Int(0)) };
        let (mut result, mut size) = (*first, 0);
        for &arg in rest {
            at_once(args.len(), size)?;
            result = self.apply(h, result, arg)?;
            size += big_limbs(result);
        }
        Ok(result)
    }
}

fn not<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    Op { name: "bit-not", ..XOR }.apply(h, args[0], Value::Int(-1))
}

fn shift_left<'h>(h: &'h Heap, name: &str, a: Value<'h>, n: usize) -> Res<Value<'h>> {
    if let Value::Int(x) = a {
        if x == 0 {
            return Ok(a);
        }
        if n < 63
            && let Some(shifted) = x.checked_mul(1 << n)
        {
            return Ok(Value::Int(shifted));
        }
    }
    let size = (n / 32).saturating_add(limbs(a)).saturating_add(1);
    prepare(h, name, size, size.min(MAX_LIMBS) as u64)?;
    h.integer(&(to_bigint(a) << n))
}

fn left<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let a = integer("bit-shift-left", args[0])?;
    shift_left(h, "bit-shift-left", a, places("bit-shift-left", args[1])?)
}

fn right<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let a = integer("bit-shift-right", args[0])?;
    let n = places("bit-shift-right", args[1])?;
    match a {
        Value::Int(x) => Ok(Value::Int(x >> n.min(63))),
        a => {
            let size = limbs(a);
            prepare(h, "bit-shift-right", size, 2 * size as u64)?;
            h.integer(&(to_bigint(a) >> n.min(size * 32 + 1)))
        }
    }
}

/// Returns the integer with only bit `n` set.
fn mask<'h>(h: &'h Heap, name: &str, n: Value<'h>) -> Res<Value<'h>> {
    shift_left(h, name, Value::Int(1), places(name, n)?)
}

fn set<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let a = integer("bit-set", args[0])?;
    Op { name: "bit-set", ..OR }.apply(h, a, mask(h, "bit-set", args[1])?)
}

fn clear<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let a = integer("bit-clear", args[0])?;
    Op { name: "bit-clear", ..AND_NOT }.apply(h, a, mask(h, "bit-clear", args[1])?)
}

fn flip<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let a = integer("bit-flip", args[0])?;
    Op { name: "bit-flip", ..XOR }.apply(h, a, mask(h, "bit-flip", args[1])?)
}

fn test<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let a = integer("bit-test", args[0])?;
    let n = places("bit-test", args[1])?;
    Ok(Value::Bool(match a {
        Value::Int(x) => x >> n.min(63) & 1 == 1,
        a => {
            let size = limbs(a);
            prepare(h, "bit-test", size, size as u64)?;
            to_bigint(a).bit(n.min(size * 32 + 1) as u64)
        }
    }))
}

pub(super) const TABLE: &[Builtin] = &[
    Builtin::direct("bit-and", 2, MANY, "(bit-and x y ...)", |h, a| AND.fold(h, a)).doc(
        "Returns the bits set in all integers.",
        &[
            ("(bit-and 12 10)", "8"),
            ("(bit-and 255 15 3)", "3"),
            ("(bit-and 5 2.5)", "!type_error"),
            ("(bit-and 7)", "!arity_error"),
        ],
    ),
    Builtin::direct("bit-or", 2, MANY, "(bit-or x y ...)", |h, a| OR.fold(h, a))
        .doc("Returns the bits set in any integer.", &[("(bit-or 12 10)", "14"), ("(bit-or 1 :a)", "!type_error")]),
    Builtin::direct("bit-xor", 2, MANY, "(bit-xor x y ...)", |h, a| XOR.fold(h, a)).doc(
        "Returns the bits set in an odd number of the integers.",
        &[("(bit-xor 12 10)", "6"), ("(bit-xor 1 nil)", "!type_error")],
    ),
    Builtin::direct("bit-and-not", 2, MANY, "(bit-and-not x y ...)", |h, a| AND_NOT.fold(h, a)).doc(
        "Returns the first integer without the bits of the others.",
        &[("(bit-and-not 255 15 48)", "192"), ("(bit-and-not 1 :a)", "!type_error")],
    ),
    Builtin::direct("bit-not", 1, 1, "(bit-not x)", not).doc(
        "Returns the integer with all bits flipped.",
        &[("(bit-not 5)", "-6"), ("(bit-not \"x\")", "!type_error")],
    ),
    Builtin::direct("bit-shift-left", 2, 2, "(bit-shift-left x n)", left).doc(
        "Returns the integer times two to the power of n.",
        &[
            ("(bit-shift-left 1 4)", "16"),
            ("(bit-shift-left 1 64)", "18446744073709551616"),
            ("(bit-shift-left 1 -1)", "!type_error"),
            ("(bit-shift-left 1 1000000000000)", "!arithmetic_error"),
        ],
    ),
    Builtin::direct("bit-shift-right", 2, 2, "(bit-shift-right x n)", right).doc(
        "Returns the integer divided by two to the power of n, rounded down.",
        &[
            ("(bit-shift-right 256 4)", "16"),
            ("(bit-shift-right -16 2)", "-4"),
            ("(bit-shift-right 8 -1)", "!type_error"),
        ],
    ),
    Builtin::direct("bit-set", 2, 2, "(bit-set x n)", set)
        .doc("Returns the integer with bit n set.", &[("(bit-set 0 3)", "8"), ("(bit-set 1 -1)", "!type_error")]),
    Builtin::direct("bit-clear", 2, 2, "(bit-clear x n)", clear).doc(
        "Returns the integer with bit n cleared.",
        &[("(bit-clear 15 1)", "13"), ("(bit-clear :a 1)", "!type_error")],
    ),
    Builtin::direct("bit-flip", 2, 2, "(bit-flip x n)", flip).doc(
        "Returns the integer with bit n flipped.",
        &[("(bit-flip 0 5)", "32"), ("(bit-flip 1 -1)", "!type_error")],
    ),
    Builtin::direct("bit-test", 2, 2, "(bit-test x n)", test).doc(
        "Returns whether bit n is set.",
        &[("(bit-test 8 3)", "true"), ("(bit-test 8 2)", "false"), ("(bit-test 1 -1)", "!type_error")],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifts_agree_with_multiplication() {
        let h = Ctx::new(Heap::new(1, 1 << 24));
        for x in [1i64, -1, 3, i64::MAX, i64::MIN, i64::MIN + 1] {
            for n in [0i64, 1, 31, 32, 62, 63, 64, 200] {
                let up = left(&h, &[Value::Int(x), Value::Int(n)]).unwrap();
                let back = right(&h, &[up, Value::Int(n)]).unwrap();
                assert!(matches!(back, Value::Int(y) if y == x), "{x} << {n}");
            }
        }
    }

    #[test]
    fn absurd_shifts_end_at_once() {
        let h = Ctx::new(Heap::new(1, 1 << 24));
        let huge = Value::Int(i64::MAX);
        assert!(left(&h, &[Value::Int(1), huge]).is_err());
        assert!(matches!(left(&h, &[Value::Int(0), huge]), Ok(Value::Int(0))));
        assert!(matches!(right(&h, &[Value::Int(-5), huge]), Ok(Value::Int(-1))));
        assert!(matches!(test(&h, &[Value::Int(-5), huge]), Ok(Value::Bool(true))));
    }
}
