//! `ns`, `require` and `import`. All functions and classes exist without them. They are read for the names that they
//! introduce, and to report what does not exist.

use super::{Analyzer, Res, arity, invalid, misshapen};
use crate::builtins::{self, foreign, java};
use crate::compile::core::Node;
use crate::error::Span;
use crate::syntax::{Form, FormKind, NameId};

const REQUIRE: &str = "(require '[clojure.string :as str])";

impl<'a> Analyzer<'a> {
    /// Returns the text of a name, quoted or not.
    fn plain_name(&self, form: &Form) -> Option<(NameId, &'a str)> {
        match &form.kind {
            FormKind::Symbol(name) => Some((*name, self.text(*name))),
            FormKind::Quote(form) => self.plain_name(form),
            _ => None,
        }
    }

    pub(super) fn ns_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        let usage = "(ns name (:require [clojure.string :as str]))";
        let [name, clauses @ ..] = args else { return Err(arity(span, "ns", args.len(), usage)) };
        if self.plain_name(name).is_none() {
            return Err(invalid(name.span, "ns expects a name").hint(format!("write {usage}")));
        }
        for clause in clauses {
            let FormKind::List(items) = &clause.kind else {
                // A string or a map is documentation.
                continue;
            };
            let (kind, specs) = match items.split_first() {
                Some((Form { kind: FormKind::Keyword(kind), .. }, specs)) => (self.text(*kind), specs),
                _ => return Err(misshapen(clause.span, "a clause of ns begins with a keyword".to_owned(), usage)),
            };
            match kind {
                "require" => specs.iter().try_for_each(|spec| self.requirement(spec, false))?,
                "use" => specs.iter().try_for_each(|spec| self.requirement(spec, true))?,
                "import" => specs.iter().try_for_each(|spec| self.imported(spec))?,
                "refer-clojure" | "gen-class" => {}
                other => {
                    return Err(invalid(clause.span, format!("ns has no :{other} here")).hint(format!("write {usage}")));
                }
            }
        }
        self.own_namespace = self.plain_name(name).map(|(_, text)| text.into());
        Ok(Node::nil(span))
    }

    pub(super) fn require_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        if args.is_empty() {
            return Err(arity(span, "require", args.len(), REQUIRE));
        }
        args.iter().try_for_each(|spec| self.requirement(spec, false))?;
        Ok(Node::nil(span))
    }

    pub(super) fn use_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        if args.is_empty() {
            return Err(arity(span, "use", args.len(), "(use 'clojure.string)"));
        }
        args.iter().try_for_each(|spec| self.requirement(spec, true))?;
        Ok(Node::nil(span))
    }

    pub(super) fn in_ns_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        match args {
            [name] if self.plain_name(name).is_some() => Ok(Node::nil(span)),
            _ => Err(misshapen(span, "in-ns needs one name".to_owned(), "(in-ns 'name)")),
        }
    }

    pub(super) fn import_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        if args.is_empty() {
            return Err(arity(span, "import", args.len(), "(import java.time.LocalDate)"));
        }
        args.iter().try_for_each(|spec| self.imported(spec))?;
        Ok(Node::nil(span))
    }

    /// Analyzes one required namespace and its names. With `refers_all`, all its functions can be called without it.
    fn requirement(&mut self, spec: &Form, refers_all: bool) -> Res<()> {
        let wrong = || invalid(spec.span, "require takes namespaces").hint(format!("write {REQUIRE}"));
        match &spec.kind {
            // `(quote [...])` is `'[...]`.
            FormKind::List(items) if matches!(&items[..], [mark, _] if matches!(mark.kind, FormKind::Symbol(n) if self.text(n) == "quote")) => {
                self.requirement(&items[1], refers_all)
            }
            FormKind::Quote(spec) => self.requirement(spec, refers_all),
            // `(clojure [string :as s] set)`
            FormKind::List(items) if items.len() > 1 && !matches!(items[1].kind, FormKind::Keyword(_)) => {
                let prefix = self.plain_name(&items[0]).ok_or_else(wrong)?.1;
                items[1..].iter().try_for_each(|spec| self.library(prefix, spec, refers_all))
            }
            // `:reload` and the like
            FormKind::Keyword(_) => Ok(()),
            _ => self.library("", spec, refers_all),
        }
    }

    /// Analyzes a namespace given by its name, or by a list with options. The names of a list of namespaces get the
    /// prefix.
    fn library(&mut self, prefix: &str, spec: &Form, refers_all: bool) -> Res<()> {
        let wrong = || invalid(spec.span, "require takes namespaces").hint(format!("write {REQUIRE}"));
        let (name, options) = match &spec.kind {
            FormKind::Vector(items) | FormKind::List(items) => items.split_first().ok_or_else(wrong)?,
            _ => (spec, [].as_slice()),
        };
        let namespace = self.plain_name(name).ok_or_else(wrong)?.1;
        let namespace: Box<str> = match prefix {
            "" => namespace.into(),
            prefix => format!("{prefix}.{namespace}").into(),
        };
        if builtins::namespace_of(&namespace).is_none() {
            return Err(foreign::no_namespace(&namespace).at(name.span));
        }
        let (mut only, mut hidden) = (!refers_all, Vec::new());
        for option in options.chunks(2) {
            let [Form { kind: FormKind::Keyword(key), .. }, value] = option else { return Err(wrong()) };
            match self.text(*key) {
                "as" | "as-alias" => {
                    let alias = self.plain_name(value).ok_or_else(wrong)?.1.into();
                    self.aliases.insert(alias, namespace.clone());
                }
                "refer" if matches!(value.kind, FormKind::Keyword(all) if self.text(all) == "all") => only = false,
                "refer" | "only" => {
                    self.referred_names(&namespace, value)?;
                    only = true;
                }
                "exclude" => hidden = self.plain_names(value)?.into_iter().map(|(text, _)| text).collect(),
                "rename" => self.renamed(&namespace, value)?,
                other => {
                    return Err(
                        invalid(value.span, format!("require has no :{other} here")).hint(format!("write {REQUIRE}"))
                    );
                }
            }
        }
        if !only {
            let names: Vec<_> = self.rows.names_in(&namespace).filter(|name| !hidden.contains(&&**name)).collect();
            self.referred
                .extend(names.into_iter().map(|name| (Box::from(&*name), (namespace.clone(), Box::from(&*name)))));
        }
        Ok(())
    }

    /// Returns the names in a list or vector of names, and their positions.
    fn plain_names(&self, value: &Form) -> Res<Vec<(&'a str, Span)>> {
        let wrong = |span| invalid(span, "a list of names is expected").hint("write :refer [name], or :refer :all");
        let (FormKind::Vector(names) | FormKind::List(names)) = &value.kind else { return Err(wrong(value.span)) };
        let name = |form: &Form| Ok((self.plain_name(form).ok_or_else(|| wrong(form.span))?.1, form.span));
        names.iter().map(name).collect()
    }

    /// Makes a function of a namespace available under a name.
    fn refer(&mut self, namespace: &str, name: &str, by: &str, span: Span) -> Res<()> {
        self.namespaced(namespace, name, &format!("{namespace}/{name}"), span)?;
        self.referred.insert(by.into(), (namespace.into(), name.into()));
        Ok(())
    }

    fn referred_names(&mut self, namespace: &str, value: &Form) -> Res<()> {
        let names = self.plain_names(value)?;
        names.into_iter().try_for_each(|(text, span)| self.refer(namespace, text, text, span))
    }

    /// `:rename {old new}`
    fn renamed(&mut self, namespace: &str, value: &Form) -> Res<()> {
        let wrong = || invalid(value.span, ":rename takes a map of names").hint("write :rename {old new}");
        let FormKind::Map(items) = &value.kind else { return Err(wrong()) };
        for pair in items.chunks_exact(2) {
            let names = (self.plain_name(&pair[0]), self.plain_name(&pair[1]));
            let (Some((_, old)), Some((_, new))) = names else { return Err(wrong()) };
            self.refer(namespace, old, new, pair[0].span)?;
        }
        Ok(())
    }

    /// Imports a class, or several of one package.
    fn imported(&mut self, spec: &Form) -> Res<()> {
        let check = |package: &str, class: &str, span: Span| {
            let full = if package.is_empty() { class.to_owned() } else { format!("{package}.{class}") };
            if java::is_class(&full) { Ok(()) } else { Err(foreign::no_class(&full).at(span)) }
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
