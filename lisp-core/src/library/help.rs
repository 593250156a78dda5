//! Documentation of the language itself: `apropos`, `doc`, `dir`, `export-meta` and `source`.
//!
//! `dir` and `export-meta` are about components that a host attaches to a program. Programs here have none, so they find
//! nothing, which is a result and not an error. Names are given as strings or symbols; the analyzer quotes a bare name.

use super::BuiltinId;
use crate::builtins::args::type_error;
use crate::builtins::java::CONSTANTS;
use crate::builtins::{Builtin, Lowering};
use crate::code::Definition;
use crate::compile::SPECIAL_FORMS;
use crate::context::Ctx;
use crate::cost;
use crate::heap::{Res, TextBuf, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The rows of this area.
pub(super) const TABLE: &[Builtin] = &[
    Builtin::direct("apropos", 1, 1, "(apropos text)", apropos).doc(
        "Returns the names of functions and forms whose name or description contains the text, as a sorted vector.",
        &[
            ("(apropos \"upper-case\")", "[\"upper-case\"]"),
            ("(apropos \"PARTITION-\")", "[\"partition-all\" \"partition-by\"]"),
            ("(apropos \" \")", "[]"),
            ("(apropos 1)", "!type_error"),
        ],
    ),
    Builtin::direct("doc", 1, 2, "(doc name)", doc).lowered(Lowering::ShowsNames).doc(
        "Prints how a function, form or tool/name is called and what it does; of a function of the program, its documentation string.",
        &[("(doc map)", "nil"), ("(doc \"no such name\")", "nil"), ("(doc 1)", "!type_error")],
    ),
    Builtin::direct("dir", 0, 1, "(dir), (dir namespace)", dir).lowered(Lowering::TakesNames).doc(
        "Always returns []: programs here have no components, as those of PtcRunner may. apropos finds functions.",
        &[("(dir)", "[]"), ("(dir \"alpha\")", "[]"), ("(dir 1)", "!type_error")],
    ),
    Builtin::direct("export-meta", 1, 1, "(export-meta name)", export_meta).lowered(Lowering::TakesNames).doc(
        "Always returns nil: programs here have no components, as those of PtcRunner may.",
        &[("(export-meta alpha/search)", "nil"), ("(export-meta 1)", "!type_error")],
    ),
    Builtin::direct("source", 1, 2, "(source name)", source).lowered(Lowering::TakesDefinitions).doc(
        "Prints the definition of a function of the program, and returns nil.",
        &[("(source alpha/search)", "nil"), ("(source 1)", "!type_error")],
    ),
];

/// The documentation of one name.
struct Page {
    usage: &'static str,
    doc: &'static str,
    also: &'static [&'static str],
    example: Option<&'static (&'static str, &'static str)>,
    /// The text that is searched, in lower case.
    searched: String,
}

fn page(
    name: &'static str,
    usage: &'static str,
    doc: &'static str,
    also: &'static [&'static str],
    namespace: &'static str,
    examples: &'static [(&'static str, &'static str)],
) -> (&'static str, Page) {
    let searched = format!("{name}\n{usage}\n{doc}\n{}\n{namespace}", also.join("\n")).to_lowercase();
    let example = examples.iter().find(|(_, answer)| !answer.starts_with('!') && *answer != "nil");
    (name, Page { usage, doc, also, example, searched })
}

/// A page for each row, special form and constant, by name.
static PAGES: LazyLock<BTreeMap<&'static str, Page>> = LazyLock::new(|| {
    let rows =
        super::all().iter().map(|row| page(row.name, row.usage, row.doc, row.aliases, row.namespace, row.examples));
    let forms = SPECIAL_FORMS.iter().map(|form| page(form.name, form.usage, form.doc, &[], "", form.examples));
    let constants = CONSTANTS.iter().map(|c| page(c.name, c.name, c.doc, &[], "", c.examples));
    rows.chain(forms).chain(constants).collect()
});

/// Returns the page of a name, an alias, or a name with a namespace.
fn page_of(name: &str) -> Option<&'static Page> {
    if let Some(page) = PAGES.get(name) {
        return Some(page);
    }
    let id =
        BuiltinId::by_name(name).or_else(|| BuiltinId::in_namespace(name.split_once('/')?.0, name.split_once('/')?.1));
    PAGES.get(id?.row().name)
}

/// Returns the ways to call a function, which a row has in one line.
fn usages(usage: &str) -> Vec<&str> {
    let (mut found, mut depth, mut start) = (Vec::new(), 0usize, 0);
    for (i, c) in usage.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            found.push(usage[start..=i].trim_start_matches([',', ' ']));
            start = i + 1;
        }
    }
    if found.is_empty() { vec![usage] } else { found }
}

fn name_arg<'h>(function: &str, v: Value<'h>) -> Res<&'h str> {
    match v {
        Value::Str(s) | Value::Symbol(s) => Ok(s.text()),
        other => Err(type_error(function, "a name as a string or symbol", other)),
    }
}

fn apropos<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let text = name_arg("apropos", args.first().copied().unwrap_or(Value::Nil))?;
    h.charge(cost::scanned(text.len()))?;
    let wanted = text.trim();
    if wanted.is_empty() {
        return h.vector(&[]);
    }
    h.charge(PAGES.len() as u64)?;
    let longest = PAGES.values().map(|page| page.searched.len()).max().unwrap_or(0);
    if wanted.len() > longest {
        return h.vector(&[]);
    }
    let wanted = wanted.to_lowercase();
    let found = h.vec_builder(8)?;
    for (name, page) in PAGES.iter() {
        h.charge(1 + cost::copied(page.searched.len()))?;
        if page.searched.contains(&wanted) {
            found.push(h, h.str(name)?)?;
        }
    }
    h.vector(found.items())
}

fn doc<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = name_arg("doc", args.first().copied().unwrap_or(Value::Nil))?;
    let mut out = TextBuf::new(h);
    if let Some((params, definition)) = definition(args) {
        out.push_all(&["(", name, if params.is_empty() { "" } else { " " }, params, ")\n  "])?;
        out.push_all(&[definition.doc.as_deref().unwrap_or("No documentation string; source shows the definition.")])?;
        return print(h, &out);
    }
    let Some(page) = page_of(name) else {
        out.push_all(&["No documentation found for \"", name, "\"."])?;
        return print(h, &out);
    };
    for usage in usages(page.usage) {
        out.push_all(&[usage, "\n"])?;
    }
    out.push_all(&["  ", page.doc])?;
    let others: Vec<&str> = page.also.iter().copied().filter(|other| !other.contains('/')).collect();
    if !others.is_empty() {
        out.push_all(&["\n  Also called ", &others.join(", "), "."])?;
    }
    if let Some((program, answer)) = page.example {
        out.push_all(&["\n  ", program, " => ", answer])?;
    }
    print(h, &out)
}

fn dir<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    if let Some(&namespace) = args.first() {
        name_arg("dir", namespace)?;
    }
    h.vector(&[])
}

fn export_meta<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    name_arg("export-meta", args.first().copied().unwrap_or(Value::Nil))?;
    Ok(Value::Nil)
}

fn source<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = name_arg("source", args.first().copied().unwrap_or(Value::Nil))?;
    let mut out = TextBuf::new(h);
    if let Some((_, definition)) = definition(args) {
        out.push_str(definition.text())?;
        return print(h, &out);
    }
    out.push_all(&["No source available for \"", name, "\"."])?;
    print(h, &out)
}

/// Returns the parameters and the definition of a function of the program, which comes after its name.
fn definition<'h>(args: &[Value<'h>]) -> Option<(&'h str, &'h Definition)> {
    match args {
        [_, Value::Closure(closure)] => Some((&closure.proto.params, closure.proto.definition.as_deref()?)),
        _ => None,
    }
}

/// Prints a line. Everything that can fail comes first.
fn print<'h>(h: &'h Ctx, line: &TextBuf<'h>) -> Res<Value<'h>> {
    h.charge(cost::scanned(line.as_str().len()))?;
    h.print(line.as_str())?;
    Ok(Value::Nil)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::Heap;

    fn printed(name: &str) -> String {
        let h = Ctx::new(Heap::new(1, usize::MAX / 2));
        h.prints.borrow_mut().line_chars = 2_000;
        doc(&h, &[h.str(name).expect("there is room")]).expect("there is room");
        h.prints.borrow_mut().take().concat()
    }

    #[test]
    fn every_name_has_a_page() {
        for row in super::super::all() {
            for name in std::iter::once(&row.name).chain(row.aliases) {
                assert!(page_of(name).is_some(), "{name}");
            }
        }
        assert_eq!(page_of("clojure.core/map").map(|p| p.usage), page_of("mapv").map(|p| p.usage));
        assert!(page_of("clojure.string/map").is_none() && page_of("nowhere/map").is_none());
        assert!(page_of("clojure.core/").is_none() && page_of("").is_none());
    }

    #[test]
    fn pages_show_each_way_to_call() {
        assert!(printed("map").starts_with("(map f coll)\n(map f c1 c2 ...)\n  "));
        assert!(printed("if").starts_with("(if test then else?)\n  One of two values"));
        assert!(printed("if").ends_with("(if (> 2 1) :yes :no) => :yes"), "{}", printed("if"));
        assert!(printed("Double/NaN").starts_with("Double/NaN\n  "));
        assert_eq!(usages("(dir), (dir (ns))"), ["(dir)", "(dir (ns))"]);
        assert_eq!(printed("nowhere"), "No documentation found for \"nowhere\".");
    }
}
