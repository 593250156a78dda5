//! Numbers as text, with the names of `java.lang.Integer`, `Long` and `Double`.

use super::Builtin;
use super::java::{double, int, long, out_of_domain};
use crate::context::Ctx;
use crate::heap::{Heap, Res, TextBuf, Value};
use crate::text::to_str;

pub(super) const TABLE: &[Builtin] = &[
    Builtin::java("Integer/toString", 1, 2, "(Integer/toString n radix)", |h, args| {
        to_string(h, "Integer/toString", args)
    })
    .doc(
        "Returns the digits of an integer, of base 10 or another from 2 to 36.",
        &[("(Integer/toString 255 16)", "\"ff\""), ("(Integer/toString 1 99)", "!java_domain_error")],
    ),
    Builtin::java("Long/toString", 1, 2, "(Long/toString n radix)", |h, args| to_string(h, "Long/toString", args)).doc(
        "Returns the digits of an integer, of base 10 or another from 2 to 36.",
        &[("(Long/toString -5 2)", "\"-101\""), ("(Long/toString \"5\")", "!java_type_error")],
    ),
    Builtin::java("Integer/toBinaryString", 1, 1, "(Integer/toBinaryString n)", |h, args| {
        shown(h, &format!("{:b}", bits_32("Integer/toBinaryString", args[0])?))
    })
    .doc(
        "Returns the binary digits of an integer of 32 bits; of a negative one all of its bits.",
        &[("(Integer/toBinaryString 5)", "\"101\""), ("(Integer/toBinaryString 4294967296)", "!java_type_error")],
    ),
    Builtin::java("Integer/toHexString", 1, 1, "(Integer/toHexString n)", |h, args| {
        shown(h, &format!("{:x}", bits_32("Integer/toHexString", args[0])?))
    })
    .doc(
        "Returns the hexadecimal digits of an integer of 32 bits; of a negative one all of its bits.",
        &[
            ("(Integer/toHexString 255)", "\"ff\""),
            ("(Integer/toHexString -1)", "\"ffffffff\""),
            ("(Integer/toHexString nil)", "!java_type_error"),
        ],
    ),
    Builtin::java("Integer/toOctalString", 1, 1, "(Integer/toOctalString n)", |h, args| {
        shown(h, &format!("{:o}", bits_32("Integer/toOctalString", args[0])?))
    })
    .doc(
        "Returns the octal digits of an integer of 32 bits; of a negative one all of its bits.",
        &[("(Integer/toOctalString 8)", "\"10\""), ("(Integer/toOctalString \"8\")", "!java_type_error")],
    ),
    Builtin::java("Long/toBinaryString", 1, 1, "(Long/toBinaryString n)", |h, args| {
        shown(h, &format!("{:b}", long("Long/toBinaryString", args[0])?))
    })
    .doc(
        "Returns the binary digits of an integer of 64 bits; of a negative one all of its bits.",
        &[("(Long/toBinaryString 5)", "\"101\""), ("(Long/toBinaryString nil)", "!java_type_error")],
    ),
    Builtin::java("Long/toHexString", 1, 1, "(Long/toHexString n)", |h, args| {
        shown(h, &format!("{:x}", long("Long/toHexString", args[0])?))
    })
    .doc(
        "Returns the hexadecimal digits of an integer of 64 bits; of a negative one all of its bits.",
        &[("(Long/toHexString 255)", "\"ff\""), ("(Long/toHexString :a)", "!java_type_error")],
    ),
    Builtin::java("Double/toString", 1, 1, "(Double/toString x)", float_text).doc(
        "Returns a number as text, written as a float.",
        &[("(Double/toString 2)", "\"2.0\""), ("(Double/toString \"2\")", "!java_type_error")],
    ),
    Builtin::java("Double/isNaN", 1, 1, "(Double/isNaN x)", |_, args| {
        Ok(Value::Bool(double("Double/isNaN", args[0])?.is_nan()))
    })
    .doc(
        "Returns whether the value is NaN.",
        &[("(Double/isNaN ##NaN)", "true"), ("(Double/isNaN nil)", "!java_type_error")],
    ),
    Builtin::java("Double/isInfinite", 1, 1, "(Double/isInfinite x)", |_, args| {
        Ok(Value::Bool(double("Double/isInfinite", args[0])?.is_infinite()))
    })
    .doc(
        "Returns whether the value is positive or negative infinity.",
        &[("(Double/isInfinite 1.0)", "false"), ("(Double/isInfinite nil)", "!java_type_error")],
    ),
    Builtin::java("Long/compare", 2, 2, "(Long/compare x y)", compare_longs).aliases(&["Integer/compare"]).doc(
        "-1, 0 or 1 as the first integer is less than, equal to or greater than the other.",
        &[("(Long/compare 1 2)", "-1"), ("(Integer/compare nil 2)", "!java_type_error")],
    ),
    Builtin::java("Double/compare", 2, 2, "(Double/compare x y)", compare_doubles).doc(
        "-1, 0 or 1 as the first float is less than, equal to or greater than the other; NaN is the greatest.",
        &[("(Double/compare 1.0 2)", "-1"), ("(Double/compare nil 2)", "!java_type_error")],
    ),
];

fn to_string<'h>(h: &'h Ctx, name: &str, args: &[Value<'h>]) -> Res<Value<'h>> {
    let number = long(name, args[0])?;
    let radix = args.get(1).map_or(Ok(10), |&radix| int(name, radix))?;
    let base = u64::try_from(radix).ok().filter(|base| (2..=36).contains(base));
    let Some(base) = base else { return Err(out_of_domain(name, &format!("a base is from 2 to 36, got {radix}"))) };
    let mut digits = Vec::with_capacity(65);
    let mut rest = number.unsigned_abs();
    while rest > 0 || digits.is_empty() {
        let digit = u32::try_from(rest % base).unwrap_or_default();
        digits.push(char::from_digit(digit, 36).unwrap_or('0'));
        rest /= base;
    }
    if number < 0 {
        digits.push('-');
    }
    h.charge(8)?;
    h.str(&digits.iter().rev().collect::<String>())
}

/// Returns the bits of a 32-bit integer.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within 32 bits; its bits are shown")]
fn bits_32(name: &str, v: Value<'_>) -> Res<u32> {
    Ok(int(name, v)? as i32 as u32)
}

fn shown<'h>(h: &'h Heap, digits: &str) -> Res<Value<'h>> {
    h.charge(4)?;
    h.str(digits)
}

fn float_text<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let number = double("Double/toString", args[0])?;
    let mut out = TextBuf::new(h);
    to_str(h, &Value::Float(number), &mut out)?;
    out.finish()
}

fn compare_longs<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "Long/compare";
    Ok(Value::Int(long(name, args[0])?.cmp(&long(name, args[1])?) as i64))
}

fn compare_doubles<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "Double/compare";
    let (a, b) = (double(name, args[0])?, double(name, args[1])?);
    // Every NaN is treated as the one that comes last in the total order.
    let canonical = |f: f64| if f.is_nan() { f64::NAN.abs() } else { f };
    Ok(Value::Int(canonical(a).total_cmp(&canonical(b)) as i64))
}
