//! Strings reversed, in another case, and with some characters escaped.

use super::Builtin;
use super::args::string;
use crate::context::Ctx;
use crate::cost;
use crate::heap::{Res, TextBuf, Value};
use crate::text::characters::{self, Characters};
use crate::text::scan;

const NAMESPACE: &str = "clojure.string";

pub(super) const TABLE: &[Builtin] = &[
    Builtin::direct("clojure.string/reverse", 1, 1, "(clojure.string/reverse s)", reverse).namespace(NAMESPACE).doc(
        "Returns the string with its characters in the opposite order; reverse of the core makes a vector of them.",
        &[
            ("(clojure.string/reverse \"héy\")", "\"yéh\""),
            ("(str/reverse \"\")", "\"\""),
            ("(clojure.string/reverse [1 2])", "!type_error"),
        ],
    ),
    Builtin::direct("capitalize", 1, 1, "(capitalize s)", capitalize).namespace(NAMESPACE).doc(
        "Returns the string with its first letter in upper case and all others in lower case.",
        &[("(capitalize \"hELLO you\")", "\"Hello you\""), ("(capitalize nil)", "!type_error")],
    ),
    Builtin::direct("re-quote-replacement", 1, 1, "(re-quote-replacement s)", quote_replacement)
        .namespace(NAMESPACE)
        .doc(
            "Escapes a string for use as a literal replacement.",
            &[
                ("(replace \"a\" #\"a\" (re-quote-replacement \"$1\"))", "\"$1\""),
                ("(re-quote-replacement 1)", "!type_error"),
            ],
        ),
];

fn reverse<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let text = string("clojure.string/reverse", args[0])?;
    h.charge(cost::parsed(text.len()))?;
    // The result is copied into the arena.
    h.check_available(text.len().saturating_mul(2))?;
    if characters::are_bytes(text) {
        let mut out = String::with_capacity(text.len());
        for piece in scan::pieces_from_end(h, text) {
            out.extend(piece?.chars().rev());
        }
        return h.str(&out);
    }
    let mut bytes = vec![0; text.len()];
    let mut end = bytes.len();
    for character in Characters::new(h, text) {
        let character = character?.as_bytes();
        let start = end - character.len();
        bytes[start..end].copy_from_slice(character);
        end = start;
    }
    h.str(&String::from_utf8_lossy(&bytes))
}

fn capitalize<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let text = string("capitalize", args[0])?;
    h.charge(cost::parsed(text.len()) + cost::copied(text.len()))?;
    // A character becomes at most three, and the result is copied into the arena.
    h.check_available(text.len().saturating_mul(7))?;
    let mut out = String::with_capacity(text.len());
    let first = text.chars().next();
    out.extend(first.into_iter().flat_map(char::to_uppercase));
    let rest = text.get(first.map_or(0, char::len_utf8)..).unwrap_or_default();
    if rest.is_ascii() {
        out.push_str(&rest.to_ascii_lowercase());
    } else {
        super::strings::lower(h, rest, &mut out)?;
    }
    h.str(&out)
}

fn quote_replacement<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let text = string("re-quote-replacement", args[0])?;
    h.charge(cost::parsed(text.len()))?;
    let mut out = TextBuf::new(h);
    for part in text.split_inclusive(['$', '\\']) {
        h.charge(1)?;
        match part.chars().next_back() {
            Some(sign @ ('$' | '\\')) => {
                out.push_str(part.strip_suffix(sign).unwrap_or_default())?;
                out.push('\\')?;
                out.push(sign)?;
            }
            _ => out.push_str(part)?,
        }
    }
    out.finish()
}
