//! Arithmetic. The machine's instructions call `add`, `less` and the like directly: small integers and floats are
//! inlined, everything else is out of line. Integers grow up to [`MAX_LIMBS`].

use super::args::{at_once, fault, type_error, type_error_as};
use super::exception_classes::of_wrong;
use super::{Builtin, Lowering, MANY, java, long_division};
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, ErrorClass, Reason};
use crate::heap::{Fault, Heap, Res, Value, compare_numbers};
use crate::text::describe;
use num_bigint::BigInt;
use num_traits::{FromPrimitive, Signed, ToPrimitive, Zero};
use std::cmp::Ordering;

/// The maximum number of 32-bit limbs of an integer: about 315,000 decimal digits. One operation on the largest
/// integers then takes far less than a second.
pub(crate) const MAX_LIMBS: usize = 1 << 15;

/// The operations with a slow path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Op {
    Add,
    Sub,
    Mul,
}

impl Op {
    fn name(self) -> &'static str {
        match self {
            Op::Add => "+",
            Op::Sub => "-",
            Op::Mul => "*",
        }
    }
}

/// `(+ a b)`
#[inline]
pub(crate) fn add<'h>(h: &'h Heap, a: Value<'h>, b: Value<'h>) -> Res<Value<'h>> {
    match (a, b) {
        (Value::Int(x), Value::Int(y)) => match x.checked_add(y) {
            Some(sum) => Ok(Value::Int(sum)),
            None => slow(h, Op::Add, a, b),
        },
        (Value::Float(x), Value::Float(y)) => Ok(Value::Float(x + y)),
        (Value::Int(x), Value::Float(y)) => Ok(Value::Float(x as f64 + y)),
        (Value::Float(x), Value::Int(y)) => Ok(Value::Float(x + y as f64)),
        _ => slow(h, Op::Add, a, b),
    }
}

/// `(- a b)`
#[inline]
pub(crate) fn sub<'h>(h: &'h Heap, a: Value<'h>, b: Value<'h>) -> Res<Value<'h>> {
    match (a, b) {
        (Value::Int(x), Value::Int(y)) => match x.checked_sub(y) {
            Some(difference) => Ok(Value::Int(difference)),
            None => slow(h, Op::Sub, a, b),
        },
        (Value::Float(x), Value::Float(y)) => Ok(Value::Float(x - y)),
        (Value::Int(x), Value::Float(y)) => Ok(Value::Float(x as f64 - y)),
        (Value::Float(x), Value::Int(y)) => Ok(Value::Float(x - y as f64)),
        _ => slow(h, Op::Sub, a, b),
    }
}

/// `(* a b)`
#[inline]
pub(crate) fn mul<'h>(h: &'h Heap, a: Value<'h>, b: Value<'h>) -> Res<Value<'h>> {
    match (a, b) {
        (Value::Int(x), Value::Int(y)) => match x.checked_mul(y) {
            Some(product) => Ok(Value::Int(product)),
            None => slow(h, Op::Mul, a, b),
        },
        (Value::Float(x), Value::Float(y)) => Ok(Value::Float(x * y)),
        (Value::Int(x), Value::Float(y)) => Ok(Value::Float(x as f64 * y)),
        (Value::Float(x), Value::Int(y)) => Ok(Value::Float(x * y as f64)),
        _ => slow(h, Op::Mul, a, b),
    }
}

/// `(/ a b)`: always a float. Division by an integer zero fails, except for NaN; by a float zero it follows IEEE 754.
#[inline]
pub(crate) fn div<'h>(h: &'h Heap, a: Value<'h>, b: Value<'h>) -> Res<Value<'h>> {
    match (a, b) {
        // Integers have no negative zero.
        (Value::Int(x), Value::Int(y)) if y != 0 => Ok(Value::Float(x as f64 / y as f64 + 0.0)),
        (Value::Float(x), Value::Float(y)) => Ok(Value::Float(x / y)),
        (Value::Int(x), Value::Float(y)) => Ok(Value::Float(x as f64 / y)),
        (Value::Float(x), Value::Int(y)) if y != 0 => Ok(Value::Float(x / y as f64)),
        _ => div_slow(h, a, b),
    }
}

/// `(inc a)`
#[inline]
pub(crate) fn inc<'h>(h: &'h Heap, a: Value<'h>) -> Res<Value<'h>> {
    match a {
        Value::Int(x) if x != i64::MAX => Ok(Value::Int(x + 1)),
        _ => step(h, "inc", Op::Add, a),
    }
}

/// `(dec a)`
#[inline]
pub(crate) fn dec<'h>(h: &'h Heap, a: Value<'h>) -> Res<Value<'h>> {
    match a {
        Value::Int(x) if x != i64::MIN => Ok(Value::Int(x - 1)),
        _ => step(h, "dec", Op::Sub, a),
    }
}

/// `(< a b)`; false with NaN.
#[inline]
pub(crate) fn less<'h>(h: &'h Heap, a: Value<'h>, b: Value<'h>) -> Res<bool> {
    match (a, b) {
        (Value::Int(x), Value::Int(y)) => Ok(x < y),
        (Value::Float(x), Value::Float(y)) => Ok(x < y),
        _ => Ok(order(h, "<", a, b)? == Some(Ordering::Less)),
    }
}

/// `(<= a b)`; false with NaN.
#[inline]
pub(crate) fn less_eq<'h>(h: &'h Heap, a: Value<'h>, b: Value<'h>) -> Res<bool> {
    match (a, b) {
        (Value::Int(x), Value::Int(y)) => Ok(x <= y),
        (Value::Float(x), Value::Float(y)) => Ok(x <= y),
        _ => Ok(matches!(order(h, "<=", a, b)?, Some(Ordering::Less | Ordering::Equal))),
    }
}

/// `(> a b)`; false with NaN.
#[inline]
pub(crate) fn greater<'h>(h: &'h Heap, a: Value<'h>, b: Value<'h>) -> Res<bool> {
    match (a, b) {
        (Value::Int(x), Value::Int(y)) => Ok(x > y),
        (Value::Float(x), Value::Float(y)) => Ok(x > y),
        _ => Ok(order(h, ">", a, b)? == Some(Ordering::Greater)),
    }
}

/// `(>= a b)`; false with NaN.
#[inline]
pub(crate) fn greater_eq<'h>(h: &'h Heap, a: Value<'h>, b: Value<'h>) -> Res<bool> {
    match (a, b) {
        (Value::Int(x), Value::Int(y)) => Ok(x >= y),
        (Value::Float(x), Value::Float(y)) => Ok(x >= y),
        _ => Ok(matches!(order(h, ">=", a, b)?, Some(Ordering::Greater | Ordering::Equal))),
    }
}

/// Compares two numbers for the function `name`; `None` with NaN.
#[inline(never)]
pub(super) fn order<'h>(h: &'h Heap, name: &str, a: Value<'h>, b: Value<'h>) -> Res<Option<Ordering>> {
    for v in [a, b] {
        if !v.is_number() {
            return Err(not_a_number(name, v));
        }
    }
    charge_comparison(h, a, b)?;
    Ok(compare_numbers(a, b))
}

/// Charges for a comparison of two numbers, which takes time only for two big ones.
#[inline]
pub(super) fn charge_comparison<'h>(h: &'h Heap, a: Value<'h>, b: Value<'h>) -> Res<()> {
    match (a, b) {
        (Value::Big(a), Value::Big(b)) => h.charge(cost::limbs_compared(a.limbs.len().min(b.limbs.len()))),
        _ => Ok(()),
    }
}

/// The hint for a string where a number is expected.
const FROM_TEXT: &str = "turn text into a number with parse-long or parse-double";

/// Returns the error of arithmetic on a value that is not a number, with a hint about the usual cause.
#[cold]
pub(crate) fn not_a_number(name: &str, got: Value<'_>) -> Fault {
    let expects = match name {
        "+" | "-" | "*" | "/" => "numbers",
        _ => "a number",
    };
    let message = format!("{name} expects {expects}, got {}", describe(got));
    let error = Error::new(Reason::TypeError, message).class(of_wrong(got));
    match (got, name) {
        (Value::Nil, "inc" | "dec") => {
            error.hint(format!("give a default for what may be missing, as in (fnil {name} 0)"))
        }
        (Value::Nil, _) => error.hint("give a default for what may be missing, as in (or x 0)"),
        (Value::Str(_), _) => error.hint(FROM_TEXT),
        _ => error,
    }
    .into()
}

#[cold]
fn division_by_zero(name: &str) -> Fault {
    Error::new(Reason::ArithmeticError, format!("{name}: division by zero"))
        .hint("test the divisor with zero? first")
        .into()
}

/// Returns the size of an integer in limbs; 0 for other values.
pub(super) fn limbs(v: Value<'_>) -> usize {
    match v {
        Value::Int(_) => 2,
        Value::Big(b) => b.limbs.len(),
        _ => 0,
    }
}

/// Returns the size of an integer in the arena, in limbs; 0 for other values.
#[inline]
pub(super) fn big_limbs(v: Value<'_>) -> usize {
    match v {
        Value::Big(b) => b.limbs.len(),
        _ => 0,
    }
}

fn is_integer(v: Value<'_>) -> bool {
    matches!(v, Value::Int(_) | Value::Big(_))
}

/// Checks that an integer of this many limbs is allowed and that there is room for it and for the copies made on the
/// way, and charges for the work.
pub(super) fn prepare(h: &Heap, name: &str, result_limbs: usize, work: u64) -> Res<()> {
    if result_limbs > MAX_LIMBS {
        return Err(Error::new(
            Reason::ArithmeticError,
            format!("{name}: the integer would have more than {} bits", MAX_LIMBS * 32),
        )
        .hint("use floats for very large numbers, or work with a remainder (mod) at each step")
        .into());
    }
    h.charge(work)?;
    h.check_available(result_limbs * 16 + 64)
}

/// Returns a copy of an integer for arithmetic. Call [`prepare`] first.
pub(super) fn to_bigint(v: Value<'_>) -> BigInt {
    match v {
        Value::Int(i) => BigInt::from(i),
        Value::Big(b) => b.to_bigint(),
        _ => BigInt::zero(),
    }
}

/// Returns the number as a float; big integers are charged for.
pub(super) fn to_float<'h>(h: &'h Heap, v: Value<'h>) -> Res<Option<f64>> {
    if let Value::Big(b) = v {
        h.charge(b.limbs.len() as u64)?;
        h.check_available(b.limbs.len() * 8)?;
    }
    Ok(v.as_f64())
}

#[cold]
fn slow<'h>(h: &'h Heap, op: Op, a: Value<'h>, b: Value<'h>) -> Res<Value<'h>> {
    let (x, y) = (limbs(a), limbs(b));
    if x > 0 && y > 0 {
        let (size, work) = match op {
            Op::Add | Op::Sub => (x.max(y) + 1, x.max(y) as u64),
            Op::Mul => (x + y, cost::limb_pairs(x, y)),
        };
        prepare(h, op.name(), size, work)?;
        let (x, y) = (to_bigint(a), to_bigint(b));
        return h.integer(&match op {
            Op::Add => x + y,
            Op::Sub => x - y,
            Op::Mul => x * y,
        });
    }
    let Some(x) = to_float(h, a)? else { return Err(not_a_number(op.name(), a)) };
    let Some(y) = to_float(h, b)? else { return Err(not_a_number(op.name(), b)) };
    Ok(Value::Float(match op {
        Op::Add => x + y,
        Op::Sub => x - y,
        Op::Mul => x * y,
    }))
}

#[cold]
fn div_slow<'h>(h: &'h Heap, a: Value<'h>, b: Value<'h>) -> Res<Value<'h>> {
    let Some(x) = to_float(h, a)? else { return Err(not_a_number("/", a)) };
    let Some(y) = to_float(h, b)? else { return Err(not_a_number("/", b)) };
    if matches!(b, Value::Int(0)) && !x.is_nan() {
        return Err(division_by_zero("/"));
    }
    if is_integer(a) && is_integer(b) && (x.is_infinite() || y.is_infinite()) {
        // Both are shortened to the size of floats first: the quotient of two huge integers may be small.
        let size = limbs(a).max(limbs(b));
        prepare(h, "/", size, size as u64)?;
        let shift = (size * 32).saturating_sub(1_000);
        let whole = |v| (to_bigint(v) >> shift).to_f64().unwrap_or(f64::NAN);
        return Ok(Value::Float(whole(a) / whole(b)));
    }
    Ok(Value::Float(x / y))
}

#[cold]
fn step<'h>(h: &'h Heap, name: &str, op: Op, a: Value<'h>) -> Res<Value<'h>> {
    match a {
        Value::Float(x) => Ok(Value::Float(if op == Op::Add { x + 1.0 } else { x - 1.0 })),
        Value::Int(_) | Value::Big(_) => slow(h, op, a, Value::Int(1)),
        other => Err(not_a_number(name, other)),
    }
}

/// `(- a)`
pub(crate) fn negate<'h>(h: &'h Heap, a: Value<'h>) -> Res<Value<'h>> {
    match a {
        Value::Float(x) => Ok(Value::Float(-x)),
        _ => sub(h, Value::Int(0), a),
    }
}

/// Returns an integer value for a whole float, which must be finite.
#[expect(clippy::cast_possible_truncation, reason = "the float is whole and within 64 bits")]
pub(super) fn whole<'h>(h: &'h Heap, name: &str, x: f64) -> Res<Value<'h>> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&x) {
        return Ok(Value::Int(x as i64));
    }
    prepare(h, name, 34, 34)?;
    match BigInt::from_f64(x) {
        Some(big) => h.integer(&big),
        None => Err(fault(Reason::ArithmeticError, format!("{name}: {x} is not an integer"))),
    }
}

/// The requested part of a division.
#[derive(Clone, Copy)]
enum Part {
    Quot,
    Rem,
    Mod,
}

fn divide<'h>(h: &'h Heap, part: Part, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = match part {
        Part::Quot => "quot",
        Part::Rem => "rem",
        Part::Mod => "mod",
    };
    let &[a, b] = args else { return Err(fault(Reason::ArityError, format!("{name} takes 2 arguments"))) };
    if let (Value::Int(x), Value::Int(y)) = (a, b)
        && y != 0
        && y != -1
    {
        let rem = x % y;
        return Ok(Value::Int(match part {
            Part::Quot => x / y,
            Part::Rem => rem,
            Part::Mod if rem != 0 && (rem < 0) != (y < 0) => rem + y,
            Part::Mod => rem,
        }));
    }
    let Some(x) = to_float(h, a)? else { return Err(not_a_number(name, a)) };
    let Some(y) = to_float(h, b)? else { return Err(not_a_number(name, b)) };
    if is_integer(a) && is_integer(b) {
        return divide_integers(h, name, part, a, b);
    }
    let special = |v: Value<'_>| matches!(v, Value::Float(f) if !f.is_finite());
    if special(a) || special(b) {
        return Ok(Value::Float(f64::NAN));
    }
    if y == 0.0 {
        return Err(division_by_zero(name));
    }
    let quotient = x / y;
    if !quotient.is_finite() {
        return Err(fault(Reason::ArithmeticError, format!("{name}: the quotient is beyond the range of floats")));
    }
    match part {
        Part::Quot => whole(h, name, quotient.trunc()),
        // As in Clojure: `(rem 1 0.1)` is 0.0.
        Part::Rem => Ok(Value::Float(x - y * quotient.trunc())),
        Part::Mod => Ok(Value::Float(x - y * quotient.floor())),
    }
}

fn divide_integers<'h>(h: &'h Heap, name: &str, part: Part, a: Value<'h>, b: Value<'h>) -> Res<Value<'h>> {
    if matches!(b, Value::Int(0)) {
        return Err(division_by_zero(name));
    }
    let (x, y) = (limbs(a), limbs(b));
    prepare(h, name, x.max(y), x.max(y) as u64)?;
    // The copies, the limbs of both, the quotient under construction.
    h.check_available((x + y) * 24 + 64)?;
    let (x, y) = (to_bigint(a), to_bigint(b));
    let (quotient, rem) = long_division::div_rem(h, &x, &y)?;
    h.integer(&match part {
        Part::Quot => quotient,
        Part::Rem => rem,
        Part::Mod => {
            if !rem.is_zero() && rem.is_negative() != y.is_negative() {
                rem + y
            } else {
                rem
            }
        }
    })
}

/// Folds `op` over two or more arguments, from the left. If intermediate integers take much memory, it requests a
/// frame.
fn fold<'h>(
    h: &'h Heap,
    first: Value<'h>,
    rest: &[Value<'h>],
    op: fn(&'h Heap, Value<'h>, Value<'h>) -> Res<Value<'h>>,
) -> Res<Value<'h>> {
    h.charge(rest.len() as u64)?;
    let (mut result, mut size) = (first, 0);
    for &arg in rest {
        at_once(rest.len() + 1, size)?;
        result = op(h, result, arg)?;
        size += big_limbs(result);
    }
    Ok(result)
}

fn sum_of<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args {
        [] => Ok(Value::Int(0)),
        [one] if one.is_number() => Ok(*one),
        [one] => Err(not_a_number("+", *one)),
        [a, b] => {
            h.charge(1)?;
            add(h, *a, *b)
        }
        [first, rest @ ..] => fold(h, *first, rest, add),
    }
}

fn difference_of<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args {
        [one] => negate(h, *one),
        [first, rest @ ..] => fold(h, *first, rest, sub),
        [] => Err(fault(Reason::ArityError, "- takes at least 1 argument, got 0")),
    }
}

fn product_of<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args {
        [] => Ok(Value::Int(1)),
        [one] if one.is_number() => Ok(*one),
        [one] => Err(not_a_number("*", *one)),
        [first, rest @ ..] => fold(h, *first, rest, mul),
    }
}

fn quotient_of<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args {
        [one] => div(h, Value::Int(1), *one),
        [first, rest @ ..] => fold(h, *first, rest, div),
        [] => Err(fault(Reason::ArityError, "/ takes at least 1 argument, got 0")),
    }
}

fn inc_of<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    inc(h, args[0])
}

fn dec_of<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    dec(h, args[0])
}

fn quot<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    divide(h, Part::Quot, args)
}

fn rem<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    divide(h, Part::Rem, args)
}

fn modulo<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    divide(h, Part::Mod, args)
}

fn abs<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args[0] {
        Value::Int(x) if x >= 0 => Ok(Value::Int(x)),
        Value::Float(x) => Ok(Value::Float(x.abs())),
        Value::Big(b) if !b.negative => Ok(args[0]),
        Value::Int(_) | Value::Big(_) => negate(h, args[0]),
        other => Err(type_error("abs", "a number", other)),
    }
}

/// Returns the largest or smallest argument. A single argument is returned whatever it is; of equal ones the first
/// wins.
fn extreme<'h>(h: &'h Heap, name: &str, wanted: Ordering, args: &[Value<'h>]) -> Res<Value<'h>> {
    let [first, rest @ ..] = args else {
        return Err(fault(Reason::ArityError, format!("{name} takes at least 1 argument, got 0")));
    };
    h.charge(rest.len() as u64)?;
    let mut best = *first;
    for &arg in rest {
        match order(h, name, best, arg)? {
            None => best = Value::Float(f64::NAN),
            Some(Ordering::Equal) => {}
            Some(found) if found == wanted => {}
            Some(_) => best = arg,
        }
    }
    Ok(best)
}

fn max<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    extreme(h, "max", Ordering::Greater, args)
}

fn min<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    extreme(h, "min", Ordering::Less, args)
}

#[expect(clippy::cast_possible_truncation, reason = "the float is within 32 bits; `int` takes its whole part")]
fn int<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let beyond = |text: &dyn std::fmt::Display| {
        Error::new(Reason::ArithmeticError, format!("int: {text} does not fit in 32 bits"))
            .class(ErrorClass::IllegalArgument)
            .hint("use trunc, floor or round for large numbers")
    };
    let small = match args[0] {
        Value::Int(x) => i32::try_from(x).map_err(|_| beyond(&x))?,
        Value::Float(x) if x.is_nan() => 0,
        Value::Float(x) if x.trunc() >= f64::from(i32::MIN) && x.trunc() <= f64::from(i32::MAX) => x as i32,
        Value::Float(x) => return Err(beyond(&x).into()),
        Value::Big(_) => return Err(beyond(&"the integer").into()),
        Value::Str(s) => {
            let mut chars = s.text().chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => return Ok(Value::Int(i64::from(u32::from(c)))),
                _ => {
                    return Err(Error::new(
                        Reason::TypeError,
                        format!("int expects a number or one character, got {}", describe(args[0])),
                    )
                    .hint("turn text into a number with parse-long")
                    .into());
                }
            }
        }
        other => return Err(type_error("int", "a number or one character", other)),
    };
    Ok(Value::Int(i64::from(small)))
}

fn long<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args[0] {
        Value::Int(_) | Value::Big(_) => Ok(args[0]),
        Value::Float(x) if x.is_nan() => Ok(Value::Int(0)),
        Value::Float(x) if x.is_finite() => whole(h, "long", x.trunc()),
        Value::Float(x) => Err(fault(Reason::ArithmeticError, format!("long: {x} is not an integer"))),
        Value::Str(s) if crate::text::characters::is_one(h, s.text())? => int(h, args),
        other => match type_error("long", "a number or one character", other) {
            Fault::Error(error) => Err(error.hint("turn text into a number with parse-long").into()),
            fault => Err(fault),
        },
    }
}

/// Parses an integer: an optional sign and decimal digits. `None` for any other text.
pub(super) fn integer_of<'h>(h: &'h Heap, name: &str, text: &str) -> Res<Option<Value<'h>>> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    h.charge(cost::scanned(digits.len()))?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(None);
    }
    // A limb has between nine and ten digits. The conversion takes quadratic time in the number of limbs.
    let limbs = digits.len() / 9 + 1;
    prepare(h, name, limbs, cost::parsed(text.len()) + cost::limb_pairs(limbs, limbs))?;
    BigInt::parse_bytes(text.as_bytes(), 10).map(|big| h.integer(&big)).transpose()
}

/// The expected argument of `bigint`.
const NUMERIC: &str = "a number or a string of digits";

fn bigint<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args[0] {
        Value::Int(_) | Value::Big(_) => Ok(args[0]),
        Value::Float(x) if x.is_finite() => whole(h, "bigint", x.trunc()),
        Value::Float(x) => Err(fault(Reason::ArithmeticError, format!("bigint: {x} is not an integer"))),
        Value::Str(s) => integer_of(h, "bigint", s.text())?
            .ok_or_else(|| type_error_as(ErrorClass::NumberFormat, "bigint", NUMERIC, args[0])),
        Value::Nil => Err(type_error("bigint", NUMERIC, args[0])),
        other => Err(type_error_as(ErrorClass::IllegalArgument, "bigint", NUMERIC, other)),
    }
}

fn exact_power<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".pow";
    if !is_integer(args[0]) {
        return Err(java::wrong_type(name, "an integer", args[0]));
    }
    let exponent = java::int(name, args[1])?;
    let Ok(exponent) = u32::try_from(exponent) else {
        return Err(java::out_of_domain(name, "the exponent is at least 0"));
    };
    let base = to_bigint(args[0]);
    let bits = base.bits().saturating_mul(u64::from(exponent));
    let size = match base.magnitude().bits() {
        0 | 1 => 1,
        _ => usize::try_from(bits / 32 + 1).unwrap_or(usize::MAX),
    };
    prepare(h, name, size, cost::limb_pairs(size.min(MAX_LIMBS), size.min(MAX_LIMBS)))?;
    h.integer(&base.pow(exponent))
}

fn double<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match to_float(h, args[0])? {
        Some(x) => Ok(Value::Float(x)),
        None => Err(type_error("double", "a number", args[0])),
    }
}

pub(super) const TABLE: &[Builtin] = &[
    Builtin::pure("+", 0, MANY, "(+ x ...)", sum_of).lowered(Lowering::Add).aliases(&["+'"]).doc(
        "Returns the sum of numbers; 0 of none. Integers never overflow.",
        &[
            ("(+ 1 2 3)", "6"),
            ("(+)", "0"),
            ("(+ 1 2.5)", "3.5"),
            ("(+ 9223372036854775807 1)", "9223372036854775808"),
            ("(+ 1 nil)", "!type_error"),
        ],
    ),
    Builtin::pure("-", 1, MANY, "(- x ...)", difference_of).lowered(Lowering::Sub).aliases(&["-'"]).doc(
        "Returns the first number less the others; of one number its negative.",
        &[("(- 10 3 2)", "5"), ("(- 5)", "-5"), ("(- nil)", "!type_error"), ("(-)", "!arity_error")],
    ),
    Builtin::pure("*", 0, MANY, "(* x ...)", product_of).lowered(Lowering::Mul).aliases(&["*'"]).doc(
        "Returns the product of numbers; 1 of none. Integers never overflow.",
        &[("(* 2 3 4)", "24"), ("(*)", "1"), ("(* ##Inf 0)", "##NaN"), ("(* 5 nil)", "!type_error")],
    ),
    Builtin::pure("/", 1, MANY, "(/ x ...)", quotient_of).doc(
        "Returns the first number divided by the others, always a float; of one number its reciprocal.",
        &[("(/ 10 5)", "2.0"), ("(/ 4)", "0.25"), ("(/ 1.0 0.0)", "##Inf"), ("(/ 1 0)", "!arithmetic_error")],
    ),
    Builtin::pure("inc", 1, 1, "(inc x)", inc_of)
        .lowered(Lowering::Inc)
        .aliases(&["inc'"])
        .doc("Returns the number plus one.", &[("(inc 5)", "6"), ("(inc nil)", "!type_error")]),
    Builtin::pure("dec", 1, 1, "(dec x)", dec_of)
        .lowered(Lowering::Dec)
        .aliases(&["dec'"])
        .doc("Returns the number less one.", &[("(dec 5)", "4"), ("(dec \"5\")", "!type_error")]),
    Builtin::pure("quot", 2, 2, "(quot x y)", quot).doc(
        "Returns the integer quotient, rounded towards zero.",
        &[("(quot 7 2)", "3"), ("(quot -7 2)", "-3"), ("(quot 7.5 2)", "3"), ("(quot 7 0)", "!arithmetic_error")],
    ),
    Builtin::pure("rem", 2, 2, "(rem x y)", rem).doc(
        "Returns the remainder of quot: it has the sign of x.",
        &[("(rem 10 3)", "1"), ("(rem -10 3)", "-1"), ("(rem 1 0)", "!arithmetic_error")],
    ),
    Builtin::pure("mod", 2, 2, "(mod x y)", modulo).doc(
        "Returns the remainder of the division rounded down: it has the sign of y.",
        &[("(mod 10 3)", "1"), ("(mod -10 3)", "2"), ("(mod 10 -3)", "-2"), ("(mod 1 0)", "!arithmetic_error")],
    ),
    Builtin::pure("abs", 1, 1, "(abs x)", abs).doc(
        "Returns the number without its sign.",
        &[("(abs -5)", "5"), ("(abs -1.5)", "1.5"), ("(abs nil)", "!type_error")],
    ),
    Builtin::pure("max", 1, MANY, "(max x ...)", max).doc(
        "Returns the largest of numbers; NaN if one is NaN.",
        &[("(max 1 5 3)", "5"), ("(max 1 ##NaN)", "##NaN"), ("(max \"a\" 1)", "!type_error")],
    ),
    Builtin::pure("min", 1, MANY, "(min x ...)", min).doc(
        "Returns the smallest of numbers; NaN if one is NaN.",
        &[("(min 1 5 3)", "1"), ("(min nil 1)", "!type_error")],
    ),
    Builtin::direct("int", 1, 1, "(int x)", int).doc(
        "Returns the number truncated to a 32-bit integer; for a character, its code.",
        &[
            ("(int 3.7)", "3"),
            ("(int \\A)", "65"),
            ("(int 2147483648)", "!arithmetic_error"),
            ("(int nil)", "!type_error"),
        ],
    ),
    Builtin::direct("bigint", 1, 1, "(bigint x)", bigint)
        .aliases(&["biginteger", "BigInteger.", "java.math.BigInteger."])
        .doc(
            "Returns the number, truncated to an integer of any size. A string is parsed as an integer.",
            &[
                ("(bigint 1e20)", "100000000000000000000"),
                ("(bigint \"12345678901234567890123\")", "12345678901234567890123"),
                ("(bigint nil)", "!type_error"),
            ],
        ),
    Builtin::java(".pow", 2, 2, "(.pow n exponent)", exact_power).doc(
        "Returns the integer raised to an integer of at least 0, exactly.",
        &[
            ("(.pow (biginteger 2) 100)", "1267650600228229401496703205376"),
            ("(.pow 2 -1)", "!java_domain_error"),
            ("(.pow 2.5 2)", "!java_type_error"),
        ],
    ),
    Builtin::direct("long", 1, 1, "(long x)", long).doc(
        "Returns the number truncated to an integer; for a character, its code.",
        &[("(long 3.9)", "3"), ("(long \\A)", "65"), ("(long \"12\")", "!type_error")],
    ),
    Builtin::direct("double", 1, 1, "(double x)", double)
        .aliases(&["float"])
        .doc("Returns the number as a float.", &[("(double 5)", "5.0"), ("(double \"1\")", "!type_error")]),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn heap() -> Ctx {
        Ctx::new(Heap::new(1, 1 << 24))
    }

    #[test]
    fn integers_grow_and_shrink_back() {
        let h = heap();
        let big = add(&h, Value::Int(i64::MAX), Value::Int(1)).unwrap();
        assert!(matches!(big, Value::Big(_)));
        assert!(matches!(dec(&h, big).unwrap(), Value::Int(i64::MAX)));
        assert!(matches!(sub(&h, big, Value::Int(1)).unwrap(), Value::Int(i64::MAX)));
        assert!(matches!(negate(&h, Value::Int(i64::MIN)).unwrap(), Value::Big(_)));
        assert!(matches!(quot(&h, &[Value::Int(i64::MIN), Value::Int(-1)]).unwrap(), Value::Big(_)));
        assert!(matches!(modulo(&h, &[Value::Int(i64::MIN), Value::Int(-1)]).unwrap(), Value::Int(0)));
    }

    #[test]
    fn quotients_of_huge_integers_are_finite() {
        let h = heap();
        let mut a = Value::Int(10);
        for _ in 0..10 {
            a = mul(&h, a, a).unwrap();
        }
        let b = mul(&h, a, Value::Int(4)).unwrap();
        assert!(matches!(div(&h, b, a).unwrap(), Value::Float(f) if (f - 4.0).abs() < 1e-9));
    }

    #[test]
    fn an_integer_has_a_ceiling() {
        let h = heap();
        let mut a = Value::Int(3);
        let error = loop {
            match mul(&h, a, a) {
                Ok(square) => a = square,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Fault::Error(e) if e.reason == Reason::ArithmeticError));
    }

    #[test]
    fn squaring_is_bounded_by_memory_too() {
        let h = Ctx::new(Heap::new(1, 4_000));
        let mut a = Value::Int(3);
        let error = loop {
            match mul(&h, a, a) {
                Ok(square) => a = square,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Fault::Collect(_)));
    }
}
