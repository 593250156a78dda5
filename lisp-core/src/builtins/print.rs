//! Functions that convert values to text.

use super::{Builtin, MANY, format};
use crate::context::Ctx;
use crate::cost;
use crate::heap::{Res, TextBuf, Value};
use crate::text::{pr_str, println_text, separate, short_str, to_str};
use std::borrow::Cow;

pub(super) const TABLE: &[Builtin] = &[
    Builtin::direct("pr-str", 0, MANY, "(pr-str & values)", pr_str_native).shown_as_fn().doc(
        "Returns the values as text that can be read back, with spaces between them.",
        &[
            ("(pr-str \"z\" {:b {:c 2}} 1)", "\"\\\"z\\\" {:b {:c 2}} 1\""),
            ("(pr-str)", "\"\""),
            ("(pr-str [1 2.5 nil :k])", "\"[1 2.5 nil :k]\""),
        ],
    ),
    Builtin::pure("str", 0, MANY, "(str & values)", str_native).shown_as_fn().doc(
        "Returns the values as one string; nil is the empty string.",
        &[
            ("(str \"a\" 1 nil :b)", "\"a1:b\""),
            ("(str [1 \"a\" nil])", "\"[1 \\\"a\\\" nil]\""),
            ("(str 1e16)", "\"1.0e16\""),
        ],
    ),
    Builtin::direct("println", 0, MANY, "(println & values)", println_native)
        .doc("Prints the values as a line, separated by spaces, and returns nil.", &[("(println \"a\" 1 :b)", "nil")]),
    Builtin::direct("prn", 0, MANY, "(prn & values)", prn)
        .aliases(&["pprint", "clojure.pprint/pprint"])
        .doc("Prints the values as a line, as pr-str shows them, and returns nil.", &[("(prn \"a\" 1 :b)", "nil")]),
    Builtin::direct("printf", 1, MANY, "(printf text & values)", printf).doc(
        "Prints the result of format as a line and returns nil.",
        &[("(printf \"%d items\\n\" 3)", "nil"), ("(printf \"%d\" :a)", "!runtime_error")],
    ),
    Builtin::direct("newline", 0, 0, "(newline)", newline)
        .doc("Prints an empty line and returns nil.", &[("(newline)", "nil"), ("(newline 1)", "!arity_error")]),
];

/// Returns the text of a built-in function.
pub(crate) fn text_of(row: &Builtin) -> Cow<'static, str> {
    if row.namespace == "java"
        && let Some((class, member)) = row.name.split_once('/')
    {
        let package = match class {
            _ if class.contains('.') => "",
            "LocalDate" | "LocalDateTime" | "Instant" | "Duration" | "ZoneId" => "java.time.",
            "DateTimeFormatter" => "java.time.format.",
            _ => "java.lang.",
        };
        return format!("#java[{package}{class}/{member}]").into();
    }
    if row.shows_as_fn { "#fn[...]" } else { "#<builtin>" }.into()
}

fn pr_str_native<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let mut out = TextBuf::new(h);
    for (i, &v) in args.iter().enumerate() {
        separate(&mut out, i > 0)?;
        pr_str(h, v, &mut out)?;
    }
    out.finish()
}

fn str_native<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    if let &[only @ Value::Str(_)] = args {
        return Ok(only);
    }
    h.charge_few(args.len(), cost::TEXT_PART)?;
    if let Some(text) = short_str(args) {
        return h.str(text.as_str());
    }
    let mut out = TextBuf::new(h);
    for v in args {
        to_str(h, v, &mut out)?;
    }
    out.finish()
}

fn println_native<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let mut out = TextBuf::new(h);
    println_text(h, args, &mut out)?;
    h.charge(cost::scanned(out.as_str().len()))?;
    h.print(out.as_str())?;
    Ok(Value::Nil)
}

/// Prints a line. Everything that can fail must come before the print.
fn print_line<'h>(h: &'h Ctx, line: &str) -> Res<Value<'h>> {
    h.charge(cost::scanned(line.len()))?;
    h.print(line)?;
    Ok(Value::Nil)
}

fn prn<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match pr_str_native(h, args)? {
        Value::Str(line) => print_line(h, line.text()),
        _ => Ok(Value::Nil),
    }
}

/// Prints a formatted line. A newline at the end of the text does not add another line.
fn printf<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match format::format(h, args)? {
        Value::Str(line) => print_line(h, line.text().strip_suffix('\n').unwrap_or(line.text())),
        _ => Ok(Value::Nil),
    }
}

fn newline<'h>(h: &'h Ctx, _: &[Value<'h>]) -> Res<Value<'h>> {
    print_line(h, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::Heap;

    #[test]
    fn long_lines_are_cut_with_a_mark() {
        let h = Ctx::new(Heap::new(1, usize::MAX / 2));
        h.prints.borrow_mut().line_chars = 3;
        h.print("abcdef").expect("there is no limit");
        h.print("äöü").expect("there is no limit");
        assert_eq!(h.prints.borrow().lines(), ["abc... (3/6 chars)", "äöü"]);
    }
}
