//! Rounding, roots and powers, and the sum and mean of vectors.

use super::args::{at_once, fault, int, type_error};
use super::numbers::{add, big_limbs, div, limbs, not_a_number, prepare, to_bigint, to_float, whole};
use super::{Builtin, format, long_division};
use crate::context::Ctx;
use crate::cost;
use crate::error::Reason;
use crate::heap::{Heap, Res, Value};
use num_bigint::BigInt;
use num_traits::Signed;

/// Returns a number as an integer, rounding floats; infinities and NaN are returned unchanged.
fn rounded<'h>(h: &'h Heap, name: &str, v: Value<'h>, round: fn(f64) -> f64) -> Res<Value<'h>> {
    match v {
        Value::Int(_) | Value::Big(_) => Ok(v),
        Value::Float(x) if x.is_finite() => whole(h, name, round(x)),
        Value::Float(_) => Ok(v),
        other => Err(type_error(name, "a number", other)),
    }
}

fn floor<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    rounded(h, "floor", args[0], f64::floor)
}

fn ceil<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    rounded(h, "ceil", args[0], f64::ceil)
}

fn round<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match *args {
        [x, places] => round_to(h, x, int("round", places)?),
        _ => rounded(h, "round", args[0], f64::round),
    }
}

/// Returns a number with `places` digits after the point. A float stays a float; an integer changes only if `places` is
/// negative.
fn round_to<'h>(h: &'h Heap, x: Value<'h>, places: i64) -> Res<Value<'h>> {
    match x {
        Value::Float(f) if f.is_finite() => {
            h.charge(cost::float_written(0))?;
            match format::rounded(f, places) {
                rounded if rounded.is_finite() => Ok(Value::Float(rounded)),
                _ => Err(fault(Reason::ArithmeticError, "round: the result is beyond the range of floats")),
            }
        }
        Value::Float(_) => Ok(x),
        Value::Int(_) | Value::Big(_) if places >= 0 => Ok(x),
        Value::Int(_) | Value::Big(_) => round_integer(h, x, places.unsigned_abs()),
        other => Err(type_error("round", "a number", other)),
    }
}

/// Returns an integer rounded to a multiple of ten to the power of `places`, halves away from zero.
fn round_integer<'h>(h: &'h Heap, x: Value<'h>, places: u64) -> Res<Value<'h>> {
    let size = limbs(x);
    // A limb has fewer than ten digits.
    let Some(places) = u32::try_from(places).ok().filter(|&places| (places as usize) < 10 * size + 2) else {
        return Ok(Value::Int(0));
    };
    let width = places as usize / 9 + 1;
    prepare(h, "round", size.max(width) + 1, cost::limb_pairs(size.max(width), width))?;
    h.check_available((size + width) * 48 + 64)?;
    let unit = BigInt::from(10u8).pow(places);
    let (quotient, rem) = long_division::div_rem(h, &to_bigint(x), &unit)?;
    let away = if rem.magnitude() * 2u8 >= *unit.magnitude() { rem.signum() } else { BigInt::ZERO };
    h.integer(&((quotient + away) * unit))
}

fn trunc<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    rounded(h, "trunc", args[0], f64::trunc)
}

fn sqrt<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match to_float(h, args[0])? {
        Some(x) => Ok(Value::Float(x.sqrt())),
        None => Err(type_error("sqrt", "a number", args[0])),
    }
}

/// Returns `x` to the power of `y` like `java.lang.Math.pow`: unlike in C, 1 to a power that is NaN or infinite is NaN.
pub(crate) fn power(x: f64, y: f64) -> f64 {
    if y == 0.0 {
        1.0
    } else if y.is_nan() || (x.abs() == 1.0 && y.is_infinite()) {
        f64::NAN
    } else {
        x.powf(y)
    }
}

fn pow<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match (to_float(h, args[0])?, to_float(h, args[1])?) {
        (Some(x), Some(y)) => Ok(Value::Float(power(x, y))),
        // The power 0 and negative bases are decided before the other argument is checked.
        (None, Some(0.0)) => Ok(Value::Float(1.0)),
        (Some(x), None) if x < 0.0 => Ok(Value::Float(f64::NAN)),
        (None, _) => Err(type_error("pow", "a number", args[0])),
        (_, None) => Err(type_error("pow", "a number", args[1])),
    }
}

/// Returns a sum plus one more number; nil is skipped.
#[inline]
pub(crate) fn add_up<'h>(h: &'h Heap, name: &str, sum: Value<'h>, item: Value<'h>) -> Res<Value<'h>> {
    match item {
        Value::Nil => Ok(sum),
        _ if item.is_number() => add(h, sum, item),
        other => Err(not_a_number(name, other)),
    }
}

/// Returns the sum of the numbers of a vector and their count; nil is skipped. If intermediate integers take much
/// memory, it requests a frame.
fn total<'h>(h: &'h Heap, name: &str, v: Value<'h>) -> Res<(Value<'h>, usize)> {
    let items = match v {
        Value::Nil => &[],
        Value::Vector(v) => v.items(),
        other => return Err(type_error(name, "a vector of numbers", other)),
    };
    h.charge(items.len() as u64)?;
    let (mut sum, mut size, mut count) = (Value::Int(0), 0, 0);
    for &item in items {
        at_once(items.len(), size)?;
        sum = add_up(h, name, sum, item)?;
        size += big_limbs(sum);
        count += usize::from(!item.is_nil());
    }
    Ok((sum, count))
}

/// Returns the mean of `count` numbers, from their sum.
fn mean_of<'h>(h: &'h Heap, sum: Value<'h>, count: usize) -> Res<Value<'h>> {
    match count {
        0 => Ok(Value::Nil),
        count => div(h, sum, Value::count(count)),
    }
}

/// Returns the mean of numbers, some of which may be nil, from their sum.
pub(crate) fn mean<'h>(h: &'h Heap, sum: Value<'h>, items: &[Value<'h>]) -> Res<Value<'h>> {
    h.charge(items.len() as u64)?;
    mean_of(h, sum, items.iter().filter(|item| !item.is_nil()).count())
}

fn sum<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    Ok(total(h, "sum", args[0])?.0)
}

fn avg<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let (sum, count) = total(h, "avg", args[0])?;
    mean_of(h, sum, count)
}

pub(super) const TABLE: &[Builtin] = &[
    Builtin::direct("floor", 1, 1, "(floor x)", floor).doc(
        "Returns the largest integer not above the number.",
        &[
            ("(floor 3.7)", "3"),
            ("(floor -3.7)", "-4"),
            ("(floor 1.0e20)", "100000000000000000000"),
            ("(floor nil)", "!type_error"),
        ],
    ),
    Builtin::direct("ceil", 1, 1, "(ceil x)", ceil).doc(
        "Returns the smallest integer not below the number.",
        &[("(ceil 3.2)", "4"), ("(ceil -3.2)", "-3"), ("(ceil \"3\")", "!type_error")],
    ),
    Builtin::direct("round", 1, 2, "(round x) (round x n)", round).doc(
        "Returns the nearest integer, or the number rounded to n digits after the point; halves are rounded away from zero.",
        &[
            ("(round 3.5)", "4"),
            ("(round -2.5)", "-3"),
            ("(round 2.675 2)", "2.68"),
            ("(round 1250 -2)", "1300"),
            ("(round \"a\")", "!type_error"),
        ],
    ),
    Builtin::direct("trunc", 1, 1, "(trunc x)", trunc).doc(
        "Returns the number without its fraction, as an integer.",
        &[("(trunc 3.9)", "3"), ("(trunc -3.9)", "-3"), ("(trunc {})", "!type_error")],
    ),
    Builtin::direct("sqrt", 1, 1, "(sqrt x)", sqrt).doc(
        "Returns the square root, a float; NaN of negative numbers.",
        &[("(sqrt 16)", "4.0"), ("(sqrt -1)", "##NaN"), ("(sqrt nil)", "!type_error")],
    ),
    Builtin::direct("pow", 2, 2, "(pow x y)", pow).doc(
        "x to the power of y, a float.",
        &[("(pow 2 3)", "8.0"), ("(pow 2 1024)", "##Inf"), ("(pow -1 0.5)", "##NaN"), ("(pow 2 [1])", "!type_error")],
    ),
    Builtin::direct("sum", 1, 1, "(sum coll)", sum).doc(
        "Returns the sum of a vector's numbers; nil elements are ignored.",
        &[("(sum [1 2 nil 3])", "6"), ("(sum [])", "0"), ("(sum [\"a\"])", "!type_error"), ("(sum 5)", "!type_error")],
    ),
    Builtin::direct("avg", 1, 1, "(avg coll)", avg).doc(
        "Returns the mean of a vector's numbers, a float, or nil if there are none; nil elements are ignored.",
        &[("(avg [1 2])", "1.5"), ("(avg [nil])", "nil"), ("(avg #{1})", "!type_error")],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_javas() {
        assert!(power(1.0, f64::INFINITY).is_nan());
        assert!(power(-1.0, f64::NEG_INFINITY).is_nan());
        assert!(power(1.0, f64::NAN).is_nan());
        assert!(power(-1.0, 0.5).is_nan());
        assert!(power(f64::NAN, 0.0) == 1.0);
        assert!(power(-0.0, -3.0) == f64::NEG_INFINITY);
        assert!(power(f64::NEG_INFINITY, 3.0) == f64::NEG_INFINITY);
        assert!(power(f64::NEG_INFINITY, -1.0).is_sign_negative());
        assert!(power(-2.0, 1025.0) == f64::NEG_INFINITY);
    }
}
