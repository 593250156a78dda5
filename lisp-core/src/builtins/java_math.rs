//! `java.lang.Math` and `java.lang.System`. In functions of two numbers, two integers stay integers; an integer with a
//! float is converted to a float.

use super::Builtin;
use super::java::{double, long, null, out_of_domain, text, wrong_type};
use crate::context::Ctx;
use crate::heap::{Res, Value};

/// Creates the row of a function of one float.
macro_rules! of_float {
    ($name:literal, $f:expr) => {
        Builtin::java($name, 1, 1, concat!("(", $name, " x)"), |_, args| {
            let f: fn(f64) -> f64 = $f;
            Ok(Value::Float(f(double($name, args[0])?)))
        })
    };
}

pub(super) const TABLE: &[Builtin] = &[
    Builtin::java("Math/abs", 1, 1, "(Math/abs x)", abs).doc(
        "Returns the absolute value, of the same kind as the number.",
        &[("(Math/abs -7)", "7"), ("(Math/abs -1.5)", "1.5"), ("(Math/abs nil)", "!java_type_error")],
    ),
    of_float!("Math/ceil", f64::ceil).doc(
        "Returns the smallest whole float that is not less than the number.",
        &[("(Math/ceil 1.2)", "2.0"), ("(Math/ceil \"1\")", "!java_type_error")],
    ),
    of_float!("Math/floor", f64::floor).doc(
        "Returns the largest whole float that is not greater than the number.",
        &[("(Math/floor -1.2)", "-2.0"), ("(Math/floor \"1\")", "!java_type_error")],
    ),
    Builtin::java("Math/max", 2, 2, "(Math/max x y)", max).doc(
        "Returns the greater of two numbers, a float when one is; NaN if one is NaN.",
        &[
            ("(Math/max 1 2)", "2"),
            ("(Math/max 1.0 2.5)", "2.5"),
            ("(Math/max 1 2.5)", "2.5"),
            ("(Math/max 1 nil)", "!java_type_error"),
        ],
    ),
    Builtin::java("Math/min", 2, 2, "(Math/min x y)", min).doc(
        "Returns the smaller of two numbers, a float when one is; NaN if one is NaN.",
        &[("(Math/min 1 2)", "1"), ("(Math/min 0.0 -0.0)", "-0.0"), ("(Math/min nil 1)", "!java_type_error")],
    ),
    Builtin::java("Math/pow", 2, 2, "(Math/pow base exponent)", pow).doc(
        "Returns the base raised to the exponent, a float.",
        &[("(Math/pow 2 3)", "8.0"), ("(Math/pow -1 0.5)", "##NaN"), ("(Math/pow 2 \"x\")", "!java_type_error")],
    ),
    Builtin::java("Math/round", 1, 1, "(Math/round x)", round).doc(
        "Returns the nearest integer to a number, halves towards positive infinity.",
        &[("(Math/round 2.5)", "3"), ("(Math/round -2.5)", "-2"), ("(Math/round \"1\")", "!java_type_error")],
    ),
    of_float!("Math/sqrt", f64::sqrt).doc(
        "Returns the square root, a float; NaN of a negative number.",
        &[("(Math/sqrt 9)", "3.0"), ("(Math/sqrt -1)", "##NaN"), ("(Math/sqrt \"9\")", "!java_type_error")],
    ),
    of_float!("Math/sin", f64::sin).doc(
        "Returns the sine of an angle in radians.",
        &[("(Math/sin 0)", "0.0"), ("(Math/sin nil)", "!java_type_error")],
    ),
    of_float!("Math/cos", f64::cos).doc(
        "Returns the cosine of an angle in radians.",
        &[("(Math/cos 0)", "1.0"), ("(Math/cos nil)", "!java_type_error")],
    ),
    of_float!("Math/tan", f64::tan).doc(
        "Returns the tangent of an angle in radians.",
        &[("(Math/tan 0)", "0.0"), ("(Math/tan nil)", "!java_type_error")],
    ),
    of_float!("Math/asin", f64::asin).doc(
        "Returns the angle, in radians, whose sine is x.",
        &[("(Math/asin 0)", "0.0"), ("(Math/asin nil)", "!java_type_error")],
    ),
    of_float!("Math/acos", f64::acos).doc(
        "Returns the angle, in radians, whose cosine is x.",
        &[("(Math/acos 1)", "0.0"), ("(Math/acos nil)", "!java_type_error")],
    ),
    of_float!("Math/atan", f64::atan).doc(
        "Returns the angle, in radians, whose tangent is x.",
        &[("(Math/atan 0)", "0.0"), ("(Math/atan nil)", "!java_type_error")],
    ),
    of_float!("Math/sinh", f64::sinh)
        .doc("Returns the hyperbolic sine.", &[("(Math/sinh 0)", "0.0"), ("(Math/sinh nil)", "!java_type_error")]),
    of_float!("Math/cosh", f64::cosh)
        .doc("Returns the hyperbolic cosine.", &[("(Math/cosh 0)", "1.0"), ("(Math/cosh nil)", "!java_type_error")]),
    of_float!("Math/tanh", f64::tanh)
        .doc("Returns the hyperbolic tangent.", &[("(Math/tanh 0)", "0.0"), ("(Math/tanh nil)", "!java_type_error")]),
    of_float!("Math/exp", f64::exp)
        .doc("e raised to the power of x.", &[("(Math/exp 0)", "1.0"), ("(Math/exp nil)", "!java_type_error")]),
    of_float!("Math/expm1", f64::exp_m1).doc(
        "e raised to the power of x, less one.",
        &[("(Math/expm1 0)", "0.0"), ("(Math/expm1 nil)", "!java_type_error")],
    ),
    of_float!("Math/log", f64::ln).doc(
        "Returns the natural logarithm; NaN of a negative number.",
        &[("(Math/log 1)", "0.0"), ("(Math/log nil)", "!java_type_error")],
    ),
    of_float!("Math/log10", f64::log10).doc(
        "Returns the logarithm to the base of ten.",
        &[("(Math/log10 1000)", "3.0"), ("(Math/log10 nil)", "!java_type_error")],
    ),
    of_float!("Math/log1p", f64::ln_1p).doc(
        "Returns the natural logarithm of x plus one.",
        &[("(Math/log1p 0)", "0.0"), ("(Math/log1p nil)", "!java_type_error")],
    ),
    of_float!("Math/cbrt", f64::cbrt)
        .doc("Returns the cube root.", &[("(Math/cbrt 27)", "3.0"), ("(Math/cbrt nil)", "!java_type_error")]),
    of_float!("Math/rint", f64::round_ties_even).doc(
        "Returns the nearest whole float; halves are rounded to the even one.",
        &[("(Math/rint 2.5)", "2.0"), ("(Math/rint nil)", "!java_type_error")],
    ),
    of_float!("Math/signum", |x| if x == 0.0 || x.is_nan() { x } else { x.signum() }).doc(
        "-1.0, 0.0 or 1.0 as the number is below, equal to or above zero.",
        &[("(Math/signum -7)", "-1.0"), ("(Math/signum nil)", "!java_type_error")],
    ),
    of_float!("Math/toRadians", f64::to_radians).doc(
        "Converts an angle from degrees to radians.",
        &[("(Math/toRadians 0)", "0.0"), ("(Math/toRadians nil)", "!java_type_error")],
    ),
    of_float!("Math/toDegrees", f64::to_degrees).doc(
        "Converts an angle from radians to degrees.",
        &[("(Math/toDegrees 0)", "0.0"), ("(Math/toDegrees nil)", "!java_type_error")],
    ),
    Builtin::java("Math/atan2", 2, 2, "(Math/atan2 y x)", |_, args| {
        Ok(Value::Float(double("Math/atan2", args[0])?.atan2(double("Math/atan2", args[1])?)))
    })
    .doc(
        "Returns the angle, in radians, of the point x, y.",
        &[("(Math/atan2 0 1)", "0.0"), ("(Math/atan2 nil 1)", "!java_type_error")],
    ),
    Builtin::java("Math/hypot", 2, 2, "(Math/hypot x y)", |_, args| {
        Ok(Value::Float(double("Math/hypot", args[0])?.hypot(double("Math/hypot", args[1])?)))
    })
    .doc(
        "Returns the distance of the point x, y from 0, 0.",
        &[("(Math/hypot 3 4)", "5.0"), ("(Math/hypot nil 1)", "!java_type_error")],
    ),
    Builtin::java("Math/floorDiv", 2, 2, "(Math/floorDiv x y)", |_, args| {
        Ok(Value::Int(floored("Math/floorDiv", args)?.0))
    })
    .doc(
        "Returns the quotient of two integers, rounded down.",
        &[("(Math/floorDiv -7 2)", "-4"), ("(Math/floorDiv 1 0)", "!java_domain_error")],
    ),
    Builtin::java("Math/floorMod", 2, 2, "(Math/floorMod x y)", |_, args| {
        Ok(Value::Int(floored("Math/floorMod", args)?.1))
    })
    .doc(
        "Returns the remainder of the division rounded down: it has the sign of y.",
        &[("(Math/floorMod -7 2)", "1"), ("(Math/floorMod 1 0)", "!java_domain_error")],
    ),
    Builtin::java("System/currentTimeMillis", 0, 0, "(System/currentTimeMillis)", |h, _| h.now().map(Value::Int)).doc(
        "Returns the milliseconds since 1970-01-01T00:00:00Z, by the host's clock.",
        &[("(pos? (System/currentTimeMillis))", "true"), ("(System/currentTimeMillis 1)", "!java_arity_error")],
    ),
    Builtin::java("System/getProperty", 1, 1, "(System/getProperty name)", get_property).doc(
        "Returns a newline for \"line.separator\", \"/\" for \"file.separator\"; nil for all else.",
        &[
            ("(System/getProperty \"line.separator\")", "\"\\n\""),
            ("(System/getProperty \"user.home\")", "nil"),
            ("(System/getProperty 1)", "!java_type_error"),
        ],
    ),
    Builtin::java("System/lineSeparator", 0, 0, "(System/lineSeparator)", |h, _| h.str("\n")).doc(
        "Returns the line separator: a newline.",
        &[("(System/lineSeparator)", "\"\\n\""), ("(System/lineSeparator 1)", "!java_arity_error")],
    ),
];

fn get_property<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "System/getProperty";
    match text(name, args[0])?.ok_or_else(|| null(name))? {
        "line.separator" => h.str("\n"),
        "file.separator" => h.str("/"),
        _ => Ok(Value::Nil),
    }
}

/// Two numbers of the same kind.
enum Pair {
    Ints(i64, i64),
    Floats(f64, f64),
}

/// Returns two integers, or two floats if at least one argument is a float.
fn pair(name: &str, args: &[Value<'_>]) -> Res<Pair> {
    match (args[0], args[1]) {
        (Value::Int(a), Value::Int(b)) => Ok(Pair::Ints(a, b)),
        (a, b) => Ok(Pair::Floats(double(name, a)?, double(name, b)?)),
    }
}

fn abs<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args[0] {
        // As in Java, the smallest integer has no absolute value and stays unchanged.
        Value::Int(i) => Ok(Value::Int(i.wrapping_abs())),
        Value::Float(f) => Ok(Value::Float(f.abs())),
        other => Err(wrong_type("Math/abs", "a number of 64 bits", other)),
    }
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
    // Java differs from the usual function: 1 to the power of NaN or infinity is NaN.
    let undefined = exponent.is_nan() || (exponent.is_infinite() && base.abs() == 1.0);
    Ok(Value::Float(if undefined { f64::NAN } else { base.powf(exponent) }))
}

#[expect(clippy::cast_possible_truncation, reason = "the cast saturates, and makes 0 of NaN, as Java does")]
fn round<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let f = match args[0] {
        Value::Float(f) => f,
        whole @ Value::Int(_) => return Ok(whole),
        other => return Err(wrong_type("Math/round", "a number of 64 bits", other)),
    };
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

/// Returns the quotient rounded down, and its remainder.
fn floored(name: &str, args: &[Value<'_>]) -> Res<(i64, i64)> {
    let (x, y) = (long(name, args[0])?, long(name, args[1])?);
    if y == 0 {
        return Err(out_of_domain(name, "division by zero"));
    }
    let (quotient, rem) = (x.wrapping_div(y), x.wrapping_rem(y));
    Ok(if rem != 0 && (rem < 0) != (y < 0) { (quotient - 1, rem + y) } else { (quotient, rem) })
}
