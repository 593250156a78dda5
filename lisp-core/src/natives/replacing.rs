//! `replace` and `replace-first` with a function: the string is split at the matches first, the function is called for
//! each match, and the results are joined.

use super::accepts::Accepts;
use super::per_element::{After, Builds, PerElement, walk_vectors};
use super::registers::{ACC, RESULT, builder, vector};
use crate::builtins::{Builtin, args, replacement};
use crate::context::Ctx;
use crate::error::Reason;
use crate::heap::{Fault, Res, Value};
use crate::stack::{Call, Control, State};
use replacement::Which;

pub(super) const TABLE: &[Builtin] = &[
    Replace::ROW,
    // The core has a `replace` of collections, with two arguments.
    Builtin::either(
        "clojure.string/replace",
        (3, 3),
        "(clojure.string/replace s pattern replacement)",
        replacement::by_function,
        Replace::start,
        replacement::replace,
    )
    .namespace(NAMESPACE)
    .doc(
        "Returns the string with all matches of a string or pattern replaced, as replace does.",
        &[
            ("(clojure.string/replace \"a-b\" \"-\" \"+\")", "\"a+b\""),
            ("(clojure.string/replace \"a-b\" \"-\")", "!arity_error"),
        ],
    ),
    ReplaceFirst::ROW,
];

const NAMESPACE: &str = "clojure.string";

/// The register for the parts of the string around the matches.
const AROUND: usize = 4;

fn start<'h, F: PerElement>(h: &'h Ctx, s: &mut State<'h>, call: Call, which: Which) -> Res<Control<'h>> {
    let at = call.args().start;
    let (text, pattern, f) = (s.stack[at], s.stack[at + 1], s.stack[at + 2]);
    let cut = replacement::cut(h, which, text, pattern)?;
    walk_vectors::<F>(h, s, call, f, [cut.matches, cut.around, Value::Unset], cut.count)
}

fn consume<'h>(h: &'h Ctx, name: &str, own: &[Value<'h>]) -> Res<After<'h>> {
    let Value::Str(_) = own[RESULT] else {
        let Fault::Error(mut error) = args::type_error(name, "a string from its function", own[RESULT]) else {
            return Ok(After::Next);
        };
        error.reason = Reason::RuntimeError;
        return Err(error
            .hint("return a string, as in (str x); with groups the function gets [match group ...]")
            .into());
    };
    if let Some(replacements) = builder(own[ACC]) {
        replacements.push(h, own[RESULT])?;
    }
    Ok(After::Next)
}

fn finish<'h>(h: &'h Ctx, own: &[Value<'h>]) -> Res<Value<'h>> {
    let replacements = builder(own[ACC]).map_or(&[][..], |replacements| replacements.items());
    replacement::join(h, vector(own[AROUND]), replacements)
}

struct Replace;

impl Replace {
    fn start<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
        start::<Self>(h, s, call, Which::All)
    }
}

impl PerElement for Replace {
    const ROW: Builtin = Builtin::either(
        "replace",
        (2, 3),
        "(replace s pattern replacement)",
        replacement::by_function,
        Replace::start,
        replacement::replace,
    )
    .namespace(NAMESPACE)
    .doc(
        "Replaces all matches of a string or pattern; matches of a pattern by a string, in which $1 is a group, or by a \
         function of the match. (replace smap coll) replaces elements by their values in the map.",
        &[
            ("(replace \"hello\" \"l\" \"L\")", "\"heLLo\""),
            ("(replace \"2024-01\" #\"(\\d+)-(\\d+)\" \"$2/$1\")", "\"01/2024\""),
            ("(replace \"a1b2\" #\"\\d\" #(str \"<\" % \">\"))", "\"a<1>b<2>\""),
            ("(replace {2 :two} [1 2 3])", "[1 :two 3]"),
            ("(replace \"a\" \"a\" 1)", "!type_error"),
            ("(replace \"a\" #\"a\" \"$1\")", "!runtime_error"),
        ],
    );
    const ACCEPTS: Accepts = Accepts::LOOK_UPS;
    const BUILDS: Builds = Builds::FullVector;

    fn consume<'h>(h: &'h Ctx, own: &mut [Value<'h>], _: Value<'h>, _: usize) -> Res<After<'h>> {
        consume(h, Self::ROW.name, own)
    }

    fn finish<'h>(h: &'h Ctx, own: &mut [Value<'h>]) -> Res<Value<'h>> {
        finish(h, own)
    }
}

struct ReplaceFirst;

impl ReplaceFirst {
    fn start<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
        start::<Self>(h, s, call, Which::First)
    }
}

impl PerElement for ReplaceFirst {
    const ROW: Builtin = Builtin::either(
        "replace-first",
        (3, 3),
        "(replace-first s pattern replacement)",
        replacement::by_function,
        ReplaceFirst::start,
        replacement::replace_first,
    )
    .namespace(NAMESPACE)
    .doc(
        "Returns the string with the first match of a string or regular expression replaced, as replace does it.",
        &[
            ("(replace-first \"hello\" \"l\" \"L\")", "\"heLlo\""),
            ("(replace-first \"a1b2\" #\"\\d\" {\"1\" \"one\"})", "\"aoneb2\""),
            ("(replace-first \"a1\" #\"\\d\" inc)", "!type_error"),
        ],
    );
    const ACCEPTS: Accepts = Accepts::LOOK_UPS;
    const BUILDS: Builds = Builds::FullVector;

    fn consume<'h>(h: &'h Ctx, own: &mut [Value<'h>], _: Value<'h>, _: usize) -> Res<After<'h>> {
        consume(h, Self::ROW.name, own)
    }

    fn finish<'h>(h: &'h Ctx, own: &mut [Value<'h>]) -> Res<Value<'h>> {
        finish(h, own)
    }
}
