//! The reference of functions and special forms, from the interpreter's own table.

use lisp_core::builtins::Builtin;
use lisp_core::builtins::java::{CONSTANTS, Constant};
use lisp_core::compile::{SPECIAL_FORMS, SpecialForm};
use lisp_core::library::{BuiltinId, areas, repair};
use std::fmt::Write;

/// One entry: a function, special form or constant.
struct Entry {
    name: &'static str,
    aliases: &'static [&'static str],
    namespace: &'static str,
    usage: &'static str,
    doc: &'static str,
    examples: &'static [(&'static str, &'static str)],
}

impl From<&'static Builtin> for Entry {
    fn from(row: &'static Builtin) -> Self {
        let &Builtin { name, aliases, namespace, usage, doc, examples, .. } = row;
        Entry { name, aliases, namespace, usage, doc, examples }
    }
}

impl From<&'static SpecialForm> for Entry {
    fn from(form: &'static SpecialForm) -> Self {
        let &SpecialForm { name, usage, doc, examples, .. } = form;
        Entry { name, aliases: &[], namespace: "", usage, doc, examples }
    }
}

impl From<&'static Constant> for Entry {
    fn from(constant: &'static Constant) -> Self {
        let &Constant { name, doc, examples, .. } = constant;
        Entry { name, aliases: &[], namespace: "", usage: name, doc, examples }
    }
}

impl Entry {
    fn find(name: &str) -> Option<Entry> {
        if let Some(form) = SpecialForm::by_name(name) {
            return Some(form.into());
        }
        if let Some(constant) = CONSTANTS.iter().find(|constant| constant.name == name) {
            return Some(constant.into());
        }
        let in_namespace = || name.split_once('/').and_then(|(space, name)| BuiltinId::in_namespace(space, name));
        BuiltinId::by_name(name).or_else(in_namespace).map(|id| id.row().into())
    }

    /// Returns a sentence on other spellings of the name.
    fn also(&self) -> Option<String> {
        let mut names: Vec<String> = self.aliases.iter().map(|name| format!("`{name}`")).collect();
        if self.namespace.starts_with("clojure.") && !self.name.starts_with(self.namespace) {
            names.push(format!("`{}/{}`", self.namespace, self.name));
        }
        (!names.is_empty()).then(|| format!("Also {}.", names.join(", ")))
    }

    fn markdown(&self, out: &mut String) {
        let also = self.also().map_or(String::new(), |also| format!(" {also}"));
        // Writing to a string cannot fail.
        let _ = write!(out, "\n### `{}`\n\n`{}`: {}{also}\n\n```clojure\n", self.name, self.usage, self.doc);
        for (program, answer) in self.examples {
            let _ = writeln!(out, "{}", example(program, answer));
        }
        out.push_str("```\n");
    }

    fn text(&self) -> String {
        let mut out = format!("{}\n  {}\n", self.usage, self.doc);
        if let Some(also) = self.also() {
            let _ = writeln!(out, "  {}", also.replace('`', ""));
        }
        for (program, answer) in self.examples {
            let _ = writeln!(out, "  {}", example(program, answer));
        }
        out
    }
}

fn example(program: &str, answer: &str) -> String {
    match answer.starts_with('!') {
        true => format!("{program} ; {answer}"),
        false => format!("{program} ; => {answer}"),
    }
}

/// Returns the usage, description and examples of a function or special form, as plain text.
///
/// # Errors
/// The language does not have the name; with a suggestion, if anything is near.
pub fn describe_name(name: &str) -> Result<String, Option<String>> {
    Entry::find(name).map(|entry| entry.text()).ok_or_else(|| repair(name))
}

/// Returns the reference of all functions and special forms by area, as Markdown: the text of `docs/functions.md`.
pub fn functions_markdown() -> String {
    let functions: usize = areas().map(|(_, rows)| rows.len()).sum();
    let mut out = format!(
        "# Functions\n\nMade by `ptcl doc --markdown` from the interpreter's table: {} special forms, {functions} \
         functions, {} constants. The language itself is in [language.md](language.md). Each example is run by a \
         test; after `=>` comes the value, after `!` the reason of an error.\n",
        SPECIAL_FORMS.len(),
        CONSTANTS.len()
    );
    let sections = || areas().map(|(title, rows)| (title, rows.iter().map(Entry::from).collect()));
    let forms = ("Special forms", SPECIAL_FORMS.iter().map(Entry::from).collect::<Vec<_>>());
    let constants = ("Constants", CONSTANTS.iter().map(Entry::from).collect());
    for (title, mut entries) in std::iter::once(forms).chain(sections()).chain([constants]) {
        entries.sort_by_key(|entry| entry.name);
        let _ = write!(out, "\n## {title}\n");
        entries.iter().for_each(|entry| entry.markdown(&mut out));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_described() {
        let text = describe_name("mapv").expect("a function");
        assert!(
            text.starts_with("(map f coll)") && text.contains("Also mapv.") && text.contains("; => [2 3]"),
            "{text}"
        );
        assert_eq!(describe_name("clojure.string/join"), describe_name("join"));
        assert!(describe_name("if").is_ok_and(|text| text.contains("(if nil 1) ; => nil")));
        assert_eq!(describe_name("fliter"), Err(Some("did you mean filter?".to_owned())));
        assert!(describe_name("atom").is_err_and(|hint| hint.is_some_and(|h| h.contains("reduce"))));
        assert_eq!(describe_name("zzzzzzzz"), Err(None));
    }

    #[test]
    fn the_page_of_functions_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/functions.md");
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == functions_markdown(),
            "docs/functions.md is old: run `cargo run -p ptcl -- doc --markdown > docs/functions.md`"
        );
    }
}
