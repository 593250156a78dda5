//! `java.lang.Math` and `java.lang.System`. In functions of two numbers, two integers stay integers; an integer with a
//! float is converted to a float.

use super::Builtin;
use super::java::{double, long, null, out_of_domain, text, wrong_type};
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
        "Returns the absolute value, of the same kind as the number.",
        &[("(Math/abs -7)", "7"), ("(Math/abs -1.5)", "1.5"), ("(Math/abs nil)", "!java_type_error")],
    ),
    function("Math/ceil", 1, "(Math/ceil x)", ceil, &["java.lang.Math/ceil"]).doc(
        "Returns the smallest whole float that is not less than the number.",
        &[("(Math/ceil 1.2)", "2.0"), ("(Math/ceil \"1\")", "!java_type_error")],
    ),
    function("Math/floor", 1, "(Math/floor x)", floor, &["java.lang.Math/floor"]).doc(
        "Returns the largest whole float that is not greater than the number.",
        &[("(Math/floor -1.2)", "-2.0"), ("(Math/floor \"1\")", "!java_type_error")],
    ),
    function("Math/max", 2, "(Math/max x y)", max, &["java.lang.Math/max"]).doc(
        "Returns the greater of two numbers, a float when one is; NaN if one is NaN.",
        &[
            ("(Math/max 1 2)", "2"),
            ("(Math/max 1.0 2.5)", "2.5"),
            ("(Math/max 1 2.5)", "2.5"),
            ("(Math/max 1 nil)", "!java_type_error"),
        ],
    ),
    function("Math/min", 2, "(Math/min x y)", min, &["java.lang.Math/min"]).doc(
        "Returns the smaller of two numbers, a float when one is; NaN if one is NaN.",
        &[("(Math/min 1 2)", "1"), ("(Math/min 0.0 -0.0)", "-0.0"), ("(Math/min nil 1)", "!java_type_error")],
    ),
    function("Math/pow", 2, "(Math/pow base exponent)", pow, &["java.lang.Math/pow"]).doc(
        "Returns the base raised to the exponent, a float.",
        &[("(Math/pow 2 3)", "8.0"), ("(Math/pow -1 0.5)", "##NaN"), ("(Math/pow 2 \"x\")", "!java_type_error")],
    ),
    function("Math/round", 1, "(Math/round x)", round, &["java.lang.Math/round"]).doc(
        "Returns the nearest integer to a number, halves towards positive infinity.",
        &[("(Math/round 2.5)", "3"), ("(Math/round -2.5)", "-2"), ("(Math/round \"1\")", "!java_type_error")],
    ),
    function("Math/sqrt", 1, "(Math/sqrt x)", sqrt, &["java.lang.Math/sqrt"]).doc(
        "Returns the square root, a float; NaN of a negative number.",
        &[("(Math/sqrt 9)", "3.0"), ("(Math/sqrt -1)", "##NaN"), ("(Math/sqrt \"9\")", "!java_type_error")],
    ),
    function("Math/sin", 1, "(Math/sin x)", sin, &["java.lang.Math/sin"]).doc(
        "Returns the sine of an angle in radians.",
        &[("(Math/sin 0)", "0.0"), ("(Math/sin nil)", "!java_type_error")],
    ),
    function("Math/cos", 1, "(Math/cos x)", cos, &["java.lang.Math/cos"]).doc(
        "Returns the cosine of an angle in radians.",
        &[("(Math/cos 0)", "1.0"), ("(Math/cos nil)", "!java_type_error")],
    ),
    function("Math/tan", 1, "(Math/tan x)", tan, &["java.lang.Math/tan"]).doc(
        "Returns the tangent of an angle in radians.",
        &[("(Math/tan 0)", "0.0"), ("(Math/tan nil)", "!java_type_error")],
    ),
    function("Math/asin", 1, "(Math/asin x)", asin, &["java.lang.Math/asin"]).doc(
        "Returns the angle, in radians, whose sine is x.",
        &[("(Math/asin 0)", "0.0"), ("(Math/asin nil)", "!java_type_error")],
    ),
    function("Math/acos", 1, "(Math/acos x)", acos, &["java.lang.Math/acos"]).doc(
        "Returns the angle, in radians, whose cosine is x.",
        &[("(Math/acos 1)", "0.0"), ("(Math/acos nil)", "!java_type_error")],
    ),
    function("Math/atan", 1, "(Math/atan x)", atan, &["java.lang.Math/atan"]).doc(
        "Returns the angle, in radians, whose tangent is x.",
        &[("(Math/atan 0)", "0.0"), ("(Math/atan nil)", "!java_type_error")],
    ),
    function("Math/sinh", 1, "(Math/sinh x)", sinh, &["java.lang.Math/sinh"])
        .doc("Returns the hyperbolic sine.", &[("(Math/sinh 0)", "0.0"), ("(Math/sinh nil)", "!java_type_error")]),
    function("Math/cosh", 1, "(Math/cosh x)", cosh, &["java.lang.Math/cosh"])
        .doc("Returns the hyperbolic cosine.", &[("(Math/cosh 0)", "1.0"), ("(Math/cosh nil)", "!java_type_error")]),
    function("Math/tanh", 1, "(Math/tanh x)", tanh, &["java.lang.Math/tanh"])
        .doc("Returns the hyperbolic tangent.", &[("(Math/tanh 0)", "0.0"), ("(Math/tanh nil)", "!java_type_error")]),
    function("Math/exp", 1, "(Math/exp x)", exp, &["java.lang.Math/exp"])
        .doc("e raised to the power of x.", &[("(Math/exp 0)", "1.0"), ("(Math/exp nil)", "!java_type_error")]),
    function("Math/expm1", 1, "(Math/expm1 x)", expm1, &["java.lang.Math/expm1"]).doc(
        "e raised to the power of x, less one.",
        &[("(Math/expm1 0)", "0.0"), ("(Math/expm1 nil)", "!java_type_error")],
    ),
    function("Math/log", 1, "(Math/log x)", log, &["java.lang.Math/log"]).doc(
        "Returns the natural logarithm; NaN of a negative number.",
        &[("(Math/log 1)", "0.0"), ("(Math/log nil)", "!java_type_error")],
    ),
    function("Math/log10", 1, "(Math/log10 x)", log10, &["java.lang.Math/log10"]).doc(
        "Returns the logarithm to the base of ten.",
        &[("(Math/log10 1000)", "3.0"), ("(Math/log10 nil)", "!java_type_error")],
    ),
    function("Math/log1p", 1, "(Math/log1p x)", log1p, &["java.lang.Math/log1p"]).doc(
        "Returns the natural logarithm of x plus one.",
        &[("(Math/log1p 0)", "0.0"), ("(Math/log1p nil)", "!java_type_error")],
    ),
    function("Math/cbrt", 1, "(Math/cbrt x)", cbrt, &["java.lang.Math/cbrt"])
        .doc("Returns the cube root.", &[("(Math/cbrt 27)", "3.0"), ("(Math/cbrt nil)", "!java_type_error")]),
    function("Math/rint", 1, "(Math/rint x)", rint, &["java.lang.Math/rint"]).doc(
        "Returns the nearest whole float; halves are rounded to the even one.",
        &[("(Math/rint 2.5)", "2.0"), ("(Math/rint nil)", "!java_type_error")],
    ),
    function("Math/signum", 1, "(Math/signum x)", signum, &["java.lang.Math/signum"]).doc(
        "-1.0, 0.0 or 1.0 as the number is below, equal to or above zero.",
        &[("(Math/signum -7)", "-1.0"), ("(Math/signum nil)", "!java_type_error")],
    ),
    function("Math/toRadians", 1, "(Math/toRadians x)", to_radians, &["java.lang.Math/toRadians"]).doc(
        "Converts an angle from degrees to radians.",
        &[("(Math/toRadians 0)", "0.0"), ("(Math/toRadians nil)", "!java_type_error")],
    ),
    function("Math/toDegrees", 1, "(Math/toDegrees x)", to_degrees, &["java.lang.Math/toDegrees"]).doc(
        "Converts an angle from radians to degrees.",
        &[("(Math/toDegrees 0)", "0.0"), ("(Math/toDegrees nil)", "!java_type_error")],
    ),
    function("Math/atan2", 2, "(Math/atan2 y x)", atan2, &["java.lang.Math/atan2"]).doc(
        "Returns the angle, in radians, of the point x, y.",
        &[("(Math/atan2 0 1)", "0.0"), ("(Math/atan2 nil 1)", "!java_type_error")],
    ),
    function("Math/hypot", 2, "(Math/hypot x y)", hypot, &["java.lang.Math/hypot"]).doc(
        "Returns the distance of the point x, y from 0, 0.",
        &[("(Math/hypot 3 4)", "5.0"), ("(Math/hypot nil 1)", "!java_type_error")],
    ),
    function("Math/floorDiv", 2, "(Math/floorDiv x y)", floor_div, &["java.lang.Math/floorDiv"]).doc(
        "Returns the quotient of two integers, rounded down.",
        &[("(Math/floorDiv -7 2)", "-4"), ("(Math/floorDiv 1 0)", "!java_domain_error")],
    ),
    function("Math/floorMod", 2, "(Math/floorMod x y)", floor_mod, &["java.lang.Math/floorMod"]).doc(
        "Returns the remainder of the division rounded down: it has the sign of y.",
        &[("(Math/floorMod -7 2)", "1"), ("(Math/floorMod 1 0)", "!java_domain_error")],
    ),
    function(
        "System/currentTimeMillis",
        0,
        "(System/currentTimeMillis)",
        current_time_millis,
        &["java.lang.System/currentTimeMillis"],
    )
    .doc(
        "Returns the milliseconds since 1970-01-01T00:00:00Z, by the host's clock.",
        &[("(pos? (System/currentTimeMillis))", "true"), ("(System/currentTimeMillis 1)", "!java_arity_error")],
    ),
    function("System/getProperty", 1, "(System/getProperty name)", get_property, &["java.lang.System/getProperty"])
        .doc(
            "A newline for \"line.separator\", \"/\" for \"file.separator\"; nil for all else.",
            &[
                ("(System/getProperty \"line.separator\")", "\"\\n\""),
                ("(System/getProperty \"user.home\")", "nil"),
                ("(System/getProperty 1)", "!java_type_error"),
            ],
        ),
    function("System/lineSeparator", 0, "(System/lineSeparator)", line_separator, &["java.lang.System/lineSeparator"])
        .doc(
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

fn line_separator<'h>(h: &'h Ctx, _: &[Value<'h>]) -> Res<Value<'h>> {
    h.str("\n")
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

fn sqrt<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    Ok(Value::Float(double("Math/sqrt", args[0])?.sqrt()))
}

fn current_time_millis<'h>(h: &'h Ctx, _: &[Value<'h>]) -> Res<Value<'h>> {
    h.now().map(Value::Int)
}

fn sin<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let x = double("Math/sin", args[0])?;
    Ok(Value::Float(x.sin()))
}

fn cos<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let x = double("Math/cos", args[0])?;
    Ok(Value::Float(x.cos()))
}

fn tan<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let x = double("Math/tan", args[0])?;
    Ok(Value::Float(x.tan()))
}

fn asin<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let x = double("Math/asin", args[0])?;
    Ok(Value::Float(x.asin()))
}

fn acos<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let x = double("Math/acos", args[0])?;
    Ok(Value::Float(x.acos()))
}

fn atan<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let x = double("Math/atan", args[0])?;
    Ok(Value::Float(x.atan()))
}

fn sinh<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let x = double("Math/sinh", args[0])?;
    Ok(Value::Float(x.sinh()))
}

fn cosh<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let x = double("Math/cosh", args[0])?;
    Ok(Value::Float(x.cosh()))
}

fn tanh<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let x = double("Math/tanh", args[0])?;
    Ok(Value::Float(x.tanh()))
}

fn exp<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let x = double("Math/exp", args[0])?;
    Ok(Value::Float(x.exp()))
}

fn expm1<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let x = double("Math/expm1", args[0])?;
    Ok(Value::Float(x.exp_m1()))
}

fn log<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let x = double("Math/log", args[0])?;
    Ok(Value::Float(x.ln()))
}

fn log10<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let x = double("Math/log10", args[0])?;
    Ok(Value::Float(x.log10()))
}

fn log1p<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let x = double("Math/log1p", args[0])?;
    Ok(Value::Float(x.ln_1p()))
}

fn cbrt<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let x = double("Math/cbrt", args[0])?;
    Ok(Value::Float(x.cbrt()))
}

fn rint<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let x = double("Math/rint", args[0])?;
    Ok(Value::Float(x.round_ties_even()))
}

fn signum<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let x = double("Math/signum", args[0])?;
    Ok(Value::Float(if x == 0.0 || x.is_nan() { x } else { x.signum() }))
}

fn to_radians<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let x = double("Math/toRadians", args[0])?;
    Ok(Value::Float(x.to_radians()))
}

fn to_degrees<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let x = double("Math/toDegrees", args[0])?;
    Ok(Value::Float(x.to_degrees()))
}

fn atan2<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    Ok(Value::Float(double("Math/atan2", args[0])?.atan2(double("Math/atan2", args[1])?)))
}

fn hypot<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    Ok(Value::Float(double("Math/hypot", args[0])?.hypot(double("Math/hypot", args[1])?)))
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

fn floor_div<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    Ok(Value::Int(floored("Math/floorDiv", args)?.0))
}

fn floor_mod<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    Ok(Value::Int(floored("Math/floorMod", args)?.1))
}
