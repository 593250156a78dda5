//! `ns`, `require` and `import`: all functions and classes are there without them. They are read for the names that they give, and
//! for what they ask for that is not there.

use super::{Analyzer, Res, arity, invalid};
use crate::builtins::{self, java};
use crate::compile::core::Node;
use crate::error::{Error, Span};
use crate::syntax::{Form, FormKind, NameId};

const REQUIRE: &str = "(require '[clojure.string :as str])";

impl Analyzer<'_> {
    /// The text of a name, quoted or not.
    fn plain_name(&self, form: &Form) -> Option<(NameId, &str)> {
        match &form.kind {
            FormKind::Symbol(name) => Some((*name, self.text(*name))),
            FormKind::Quote(form) => self.plain_name(form),
            _ => None,
        }
    }

    pub(super) fn ns_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        let usage = "(ns name (:require [clojure.string :as str]))";
        let [name, clauses @ ..] = args else { return Err(arity(span, "ns", usage)) };
        if self.plain_name(name).is_none() {
            return Err(arity(span, "ns", usage));
        }
        for clause in clauses {
            let FormKind::List(items) = &clause.kind else {
                // A text or a map says something of the program.
                continue;
            };
            let (kind, specs) = match items.split_first() {
                Some((Form { kind: FormKind::Keyword(kind), .. }, specs)) => (self.text(*kind), specs),
                _ => return Err(arity(clause.span, "ns", usage)),
            };
            match kind {
                "require" => specs.iter().try_for_each(|spec| self.requirement(spec))?,
                "import" => specs.iter().try_for_each(|spec| self.imported(spec))?,
                "refer-clojure" | "gen-class" => {}
                other => {
                    return Err(invalid(clause.span, format!("ns has no :{other} here")).hint(format!("write {usage}")));
                }
            }
        }
        Ok(Node::nil(span))
    }

    pub(super) fn require_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        if args.is_empty() {
            return Err(arity(span, "require", REQUIRE));
        }
        args.iter().try_for_each(|spec| self.requirement(spec))?;
        Ok(Node::nil(span))
    }

    pub(super) fn in_ns_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        match args {
            [name] if self.plain_name(name).is_some() => Ok(Node::nil(span)),
            _ => Err(arity(span, "in-ns", "(in-ns 'name)")),
        }
    }

    pub(super) fn import_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        if args.is_empty() {
            return Err(arity(span, "import", "(import java.time.LocalDate)"));
        }
        args.iter().try_for_each(|spec| self.imported(spec))?;
        Ok(Node::nil(span))
    }

    /// One namespace that is required, with the names that it gets.
    fn requirement(&mut self, spec: &Form) -> Res<()> {
        let wrong = || invalid(spec.span, "require takes namespaces").hint(format!("write {REQUIRE}"));
        let (name, options) = match &spec.kind {
            // `(quote [...])` is `'[...]`.
            FormKind::List(items) if matches!(&items[..], [mark, _] if matches!(mark.kind, FormKind::Symbol(n) if self.text(n) == "quote")) =>
            {
                return self.requirement(&items[1]);
            }
            FormKind::Quote(spec) => return self.requirement(spec),
            FormKind::Vector(items) | FormKind::List(items) => items.split_first().ok_or_else(wrong)?,
            // `:reload` and its like
            FormKind::Keyword(_) => return Ok(()),
            _ => (spec, [].as_slice()),
        };
        let namespace: Box<str> = self.plain_name(name).ok_or_else(wrong)?.1.into();
        if builtins::namespace_of(&namespace).is_none() {
            return Err(no_namespace(&namespace, name.span));
        }
        for option in options.chunks(2) {
            let [Form { kind: FormKind::Keyword(key), .. }, value] = option else { return Err(wrong()) };
            match self.text(*key) {
                "as" | "as-alias" => {
                    let alias = self.plain_name(value).ok_or_else(wrong)?.1.into();
                    self.aliases.insert(alias, namespace.clone());
                }
                "refer" => self.referred_names(&namespace, value)?,
                other => {
                    return Err(
                        invalid(value.span, format!("require has no :{other} here")).hint(format!("write {REQUIRE}"))
                    );
                }
            }
        }
        Ok(())
    }

    fn referred_names(&mut self, namespace: &str, value: &Form) -> Res<()> {
        let (FormKind::Vector(names) | FormKind::List(names)) = &value.kind else {
            return Err(invalid(value.span, ":refer takes names").hint(format!("write (require '[{namespace} :as s])")));
        };
        for name in names {
            let Some((_, text)) = self.plain_name(name) else {
                return Err(invalid(name.span, ":refer takes names").hint("write :refer [name]"));
            };
            let text: Box<str> = text.into();
            self.namespaced(namespace, &text, &format!("{namespace}/{text}"), name.span)?;
            self.referred.insert(text, namespace.into());
        }
        Ok(())
    }

    /// A class, or several of one package.
    fn imported(&mut self, spec: &Form) -> Res<()> {
        let check = |package: &str, class: &str, span: Span| {
            let full = if package.is_empty() { class.to_owned() } else { format!("{package}.{class}") };
            if java::is_class(&full) { Ok(()) } else { Err(java::no_class(&full).at(span)) }
        };
        let wrong = || invalid(spec.span, "import takes classes").hint("write (import java.time.LocalDate)");
        match &spec.kind {
            FormKind::Vector(items) | FormKind::List(items) => {
                let (package, classes) = items.split_first().ok_or_else(wrong)?;
                let package = self.plain_name(package).ok_or_else(wrong)?.1;
                classes
                    .iter()
                    .try_for_each(|class| check(package, self.plain_name(class).ok_or_else(wrong)?.1, class.span))
            }
            FormKind::Quote(spec) => self.imported(spec),
            _ => check("", self.plain_name(spec).ok_or_else(wrong)?.1, spec.span),
        }
    }
}

fn no_namespace(namespace: &str, span: Span) -> Error {
    invalid(span, format!("there is no namespace {namespace} here"))
        .hint("there are clojure.string, clojure.set and clojure.walk, which need no require; delete it")
}
