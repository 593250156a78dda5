//! `java.lang.Math` and `java.lang.System`. Numbers keep their kind: two integers or two floats, never one of each.

use super::Builtin;
use super::java::{double, wrong_type};
use crate::context::Ctx;
use crate::heap::{Res, Value};

const fn function(
    name: &'static str,
    args: u8,
    usage: &'static str,
    imp: super::DirectImp,
    alias: &'static [&'static str],
) -> Builtin {
    Builtin::direct(name, args, args, usage, imp).aliases(alias).namespace("java")
}

pub(super) const TABLE: &[Builtin] = &[
    function("Math/abs", 1, "(Math/abs x)", abs, &["java.lang.Math/abs"]).doc(
        "The absolute value, of the same kind as the number.",
        &[("(Math/abs -7)", "7"), ("(Math/abs -1.5)", "1.5"), ("(Math/abs nil)", "!java_type_error")],
    ),
    function("Math/ceil", 1, "(Math/ceil x)", ceil, &["java.lang.Math/ceil"]).doc(
        "The smallest whole float that is not less than the number.",
        &[("(Math/ceil 1.2)", "2.0"), ("(Math/ceil \"1\")", "!java_type_error")],
    ),
    function("Math/floor", 1, "(Math/floor x)", floor, &["java.lang.Math/floor"]).doc(
        "The largest whole float that is not greater than the number.",
        &[("(Math/floor -1.2)", "-2.0"), ("(Math/floor \"1\")", "!java_type_error")],
    ),
    function("Math/max", 2, "(Math/max x y)", max, &["java.lang.Math/max"]).doc(
        "The greater of two integers or of two floats; NaN if one is NaN.",
        &[("(Math/max 1 2)", "2"), ("(Math/max 1.0 2.5)", "2.5"), ("(Math/max 1 2.0)", "!java_type_error")],
    ),
    function("Math/min", 2, "(Math/min x y)", min, &["java.lang.Math/min"]).doc(
        "The smaller of two integers or of two floats; NaN if one is NaN.",
        &[("(Math/min 1 2)", "1"), ("(Math/min 0.0 -0.0)", "-0.0"), ("(Math/min nil 1)", "!java_type_error")],
    ),
    function("Math/pow", 2, "(Math/pow base exponent)", pow, &["java.lang.Math/pow"]).doc(
        "The base raised to the exponent, a float.",
        &[("(Math/pow 2 3)", "8.0"), ("(Math/pow -1 0.5)", "##NaN"), ("(Math/pow 2 \"x\")", "!java_type_error")],
    ),
    function("Math/round", 1, "(Math/round x)", round, &["java.lang.Math/round"]).doc(
        "The nearest integer to a float, halves towards positive infinity.",
        &[("(Math/round 2.5)", "3"), ("(Math/round -2.5)", "-2"), ("(Math/round 1)", "!java_type_error")],
    ),
    function("Math/sqrt", 1, "(Math/sqrt x)", sqrt, &["java.lang.Math/sqrt"]).doc(
        "The square root, a float; NaN of a negative number.",
        &[("(Math/sqrt 9)", "3.0"), ("(Math/sqrt -1)", "##NaN"), ("(Math/sqrt \"9\")", "!java_type_error")],
    ),
    function(
        "System/currentTimeMillis",
        0,
        "(System/currentTimeMillis)",
        current_time_millis,
        &["java.lang.System/currentTimeMillis"],
    )
    .doc(
        "Milliseconds since 1970-01-01T00:00:00Z. The host lends the clock.",
        &[("(pos? (System/currentTimeMillis))", "true"), ("(System/currentTimeMillis 1)", "!java_arity_error")],
    ),
];

/// Two numbers of one kind.
enum Pair {
    Ints(i64, i64),
    Floats(f64, f64),
}

fn pair(name: &str, args: &[Value<'_>]) -> Res<Pair> {
    match (args[0], args[1]) {
        (Value::Int(a), Value::Int(b)) => Ok(Pair::Ints(a, b)),
        (Value::Float(a), Value::Float(b)) => Ok(Pair::Floats(a, b)),
        (Value::Int(_) | Value::Float(_), other) => {
            Err(wrong_type(name, "two integers of 64 bits or two floats", other))
        }
        (other, _) => Err(wrong_type(name, "two integers of 64 bits or two floats", other)),
    }
}

fn abs<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args[0] {
        // As in Java the least integer has no absolute value of its kind and stays as it is.
        Value::Int(i) => Ok(Value::Int(i.wrapping_abs())),
        Value::Float(f) => Ok(Value::Float(f.abs())),
        other => Err(wrong_type("Math/abs", "a number of 64 bits", other)),
    }
}

fn ceil<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    Ok(Value::Float(double("Math/ceil", args[0])?.ceil()))
}

fn floor<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    Ok(Value::Float(double("Math/floor", args[0])?.floor()))
}

fn max<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    Ok(match pair("Math/max", args)? {
        Pair::Ints(a, b) => Value::Int(a.max(b)),
        Pair::Floats(a, b) => Value::Float(match () {
            () if a.is_nan() || b.is_nan() => f64::NAN,
            () if a == b => f64::from_bits(a.to_bits() & b.to_bits()),
            () => a.max(b),
        }),
    })
}

fn min<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    Ok(match pair("Math/min", args)? {
        Pair::Ints(a, b) => Value::Int(a.min(b)),
        Pair::Floats(a, b) => Value::Float(match () {
            () if a.is_nan() || b.is_nan() => f64::NAN,
            () if a == b => f64::from_bits(a.to_bits() | b.to_bits()),
            () => a.min(b),
        }),
    })
}

fn pow<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let (base, exponent) = (double("Math/pow", args[0])?, double("Math/pow", args[1])?);
    // Where Java differs from the usual function: 1 to the power of NaN or of infinity is NaN.
    let undefined = exponent.is_nan() || (exponent.is_infinite() && base.abs() == 1.0);
    Ok(Value::Float(if undefined { f64::NAN } else { base.powf(exponent) }))
}

#[expect(clippy::cast_possible_truncation, reason = "the cast saturates, and makes 0 of NaN, as Java does")]
fn round<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let Value::Float(f) = args[0] else { return Err(wrong_type("Math/round", "a float", args[0])) };
    // Adding a half first would round some large whole floats up.
    let whole = f.trunc();
    let rest = f - whole;
    let nearest = match () {
        () if rest >= 0.5 => whole + 1.0,
        () if rest < -0.5 => whole - 1.0,
        () => whole,
    };
    Ok(Value::Int(nearest as i64))
}

fn sqrt<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    Ok(Value::Float(double("Math/sqrt", args[0])?.sqrt()))
}

fn current_time_millis<'h>(h: &'h Ctx, _: &[Value<'h>]) -> Res<Value<'h>> {
    h.now().map(Value::Int)
}
