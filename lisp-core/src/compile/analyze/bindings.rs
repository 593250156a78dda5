//! `let`, `loop`, `recur` and the patterns that take values apart.

use super::{Analyzer, Res, arity, invalid, let_node, prim};
use crate::Table;
use crate::compile::core::{Bind, Constant, Kind, Node, Prim, Var};
use crate::error::{Error, Reason, Span};
use crate::syntax::{Form, FormKind, NameId};

impl Analyzer<'_> {
    pub(super) fn let_form(&mut self, args: &[Form], span: Span, tail: bool) -> Res<Node> {
        let Some((bindings, body)) = args.split_first() else {
            return Err(arity(span, "let", "(let [name value ...] body ...)"));
        };
        let pairs = self.pairs("let", bindings)?;
        self.scoped(|a| {
            let binds = a.binds(pairs)?;
            let body = a.body(body, span, tail)?;
            Ok(let_node(binds, body, span))
        })
    }

    /// The binding vector of a form, in pairs.
    pub(super) fn pairs<'f>(&self, name: &str, form: &'f Form) -> Res<&'f [Form]> {
        let FormKind::Vector(items) = &form.kind else {
            return Err(invalid(form.span, format!("{name} bindings must be a vector"))
                .hint(format!("write ({name} [name value ...] body)")));
        };
        if items.len() % 2 != 0 {
            return Err(invalid(form.span, format!("{name} bindings come in pairs; the last one has no value"))
                .hint(format!("write ({name} [name value ...] body)")));
        }
        Ok(items)
    }

    /// Patterns and values in turn; the names stay visible.
    pub(super) fn binds(&mut self, pairs: &[Form]) -> Res<Vec<Bind>> {
        let mut binds = Vec::with_capacity(pairs.len() / 2);
        for pair in pairs.chunks_exact(2) {
            let init = self.node(&pair[1], false)?;
            self.pattern(&pair[0], init, &mut binds)?;
        }
        Ok(binds)
    }

    /// A simple name bound to a variable.
    pub(super) fn bind_name(&mut self, form: &Form) -> Res<Option<Var>> {
        let FormKind::Symbol(name) = form.kind else { return Ok(None) };
        self.check_name(name, form.span)?;
        let var = self.fresh();
        self.scope.push(name, var);
        Ok(Some(var))
    }

    pub(super) fn check_name(&self, name: NameId, span: Span) -> Res<()> {
        let text = self.text(name);
        if text.starts_with('.') && text.len() > 1 {
            return Err(invalid(span, format!("{text} is a method's name and cannot be bound")));
        }
        Ok(())
    }

    /// Takes the value of `init` apart; the names become visible.
    pub(super) fn pattern(&mut self, pattern: &Form, init: Node, out: &mut Vec<Bind>) -> Res<()> {
        match &pattern.kind {
            FormKind::Symbol(name) => {
                self.check_name(*name, pattern.span)?;
                let var = self.fresh();
                out.push(Bind { var: Some(var), init });
                self.scope.push(*name, var);
                Ok(())
            }
            FormKind::Vector(items) => self.vector_pattern(items, pattern.span, init, out),
            FormKind::Map(items) => self.map_pattern(items, pattern.span, init, out),
            _ => Err(Error::new(Reason::UnsupportedPattern, "a pattern is a name, a vector or a map")
                .at(pattern.span)
                .hint("write a name, [a b & rest] or {:keys [a b]}")),
        }
    }

    fn vector_pattern(&mut self, items: &[Form], span: Span, init: Node, out: &mut Vec<Bind>) -> Res<()> {
        let ampersand = items.iter().position(|f| matches!(f.kind, FormKind::Symbol(n) if self.text(n) == "&"));
        let (leading, rest) = match ampersand {
            None => (items, None),
            Some(at) => match &items[at + 1..] {
                [rest] => (&items[..at], Some(rest)),
                [] => return Err(invalid(span, "& must be followed by a pattern").hint("write [a & rest]")),
                _ => return Err(invalid(span, "& must be followed by exactly one pattern").hint("write [a & rest]")),
            },
        };
        let Ok(count) = u16::try_from(leading.len()) else {
            return Err(invalid(span, "the pattern has more than 65,535 elements"));
        };
        let whole = self.fresh();
        out.push(Bind { var: Some(whole), init: prim(Prim::SeqArg, vec![init], span) });
        for (i, item) in (0..count).zip(leading) {
            let element = prim(Prim::Nth(i), vec![Node::local(whole, item.span)], item.span);
            self.pattern(item, element, out)?;
        }
        if let Some(rest) = rest {
            let tail = prim(Prim::Rest(count), vec![Node::local(whole, rest.span)], rest.span);
            self.pattern(rest, tail, out)?;
        }
        Ok(())
    }

    fn map_pattern(&mut self, items: &[Form], span: Span, init: Node, out: &mut Vec<Bind>) -> Res<()> {
        let (mut keys, mut strs, mut defaults, mut whole_name) = (None, None, None, None);
        let mut renames = Vec::new();
        for pair in items.chunks_exact(2) {
            let special = match pair[0].kind {
                FormKind::Keyword(name) => self.text(name),
                _ => "",
            };
            match special {
                "keys" => keys = Some(self.key_names(&pair[1], ":keys")?),
                "strs" => strs = Some(self.key_names(&pair[1], ":strs")?),
                "or" => defaults = Some(self.defaults(&pair[1])?),
                "as" => whole_name = Some(&pair[1]),
                _ => renames.push((&pair[0], &pair[1])),
            }
        }
        let some = |list: &Option<Vec<NameId>>| list.as_ref().is_some_and(|l| !l.is_empty());
        if !some(&keys) && !some(&strs) && renames.is_empty() && defaults.as_ref().is_none_or(Table::is_empty) {
            return Err(Error::new(Reason::UnsupportedPattern, "a map pattern must name at least one key")
                .at(span)
                .hint("write {:keys [a b]}"));
        }
        let defaults = defaults.unwrap_or_default();
        let default_of = |name: NameId| defaults.get(&name).cloned();
        let whole = self.fresh();
        out.push(Bind { var: Some(whole), init: prim(Prim::MapArg, vec![init], span) });
        let key = |key: Constant, default: Option<Constant>, span: Span| {
            Node::new(Kind::Key(Box::new(Node::local(whole, span)), key, default), span)
        };
        for name in keys.unwrap_or_default() {
            self.interrupt.tick()?;
            let init = key(Constant::Keyword(self.text(name).into()), default_of(name), span);
            let var = self.fresh();
            out.push(Bind { var: Some(var), init });
            self.scope.push(name, var);
        }
        for (pattern, source) in renames {
            let source = match &source.kind {
                FormKind::Keyword(n) | FormKind::Symbol(n) => Constant::Keyword(self.text(*n).into()),
                FormKind::Str(s) => Constant::Str(s.clone()),
                _ => {
                    return Err(invalid(source.span, "the key of a pattern is a keyword or a string")
                        .hint("write {name :key} or {name \"key\"}"));
                }
            };
            let default = match pattern.kind {
                FormKind::Symbol(name) => default_of(name),
                _ => None,
            };
            self.pattern(pattern, key(source, default, pattern.span), out)?;
        }
        for name in strs.unwrap_or_default() {
            self.interrupt.tick()?;
            let init = key(Constant::Str(self.text(name).into()), default_of(name), span);
            let var = self.fresh();
            out.push(Bind { var: Some(var), init });
            self.scope.push(name, var);
        }
        if let Some(form) = whole_name {
            let FormKind::Symbol(name) = form.kind else {
                return Err(invalid(form.span, ":as takes a name").hint("write {:keys [a] :as m}"));
            };
            self.check_name(name, form.span)?;
            self.scope.push(name, whole);
        }
        Ok(())
    }

    fn key_names(&self, form: &Form, what: &str) -> Res<Vec<NameId>> {
        let FormKind::Vector(items) = &form.kind else {
            return Err(
                invalid(form.span, format!("{what} takes a vector of names")).hint(format!("write {what} [a b]"))
            );
        };
        let mut names = Vec::with_capacity(items.len());
        for item in items {
            self.interrupt.tick()?;
            match item.kind {
                FormKind::Symbol(name) | FormKind::Keyword(name) => {
                    self.check_name(name, item.span)?;
                    names.push(name);
                }
                _ => {
                    return Err(
                        invalid(item.span, format!("{what} takes names only")).hint(format!("write {what} [a b]"))
                    );
                }
            }
        }
        Ok(names)
    }

    fn defaults(&self, form: &Form) -> Res<Table<NameId, Constant>> {
        let FormKind::Map(items) = &form.kind else {
            return Err(invalid(form.span, ":or takes a map of defaults").hint("write :or {a 0}"));
        };
        let mut out = Table::default();
        for pair in items.chunks_exact(2) {
            self.interrupt.tick()?;
            let FormKind::Symbol(name) = pair[0].kind else {
                return Err(invalid(pair[0].span, "the keys of :or are names").hint("write :or {a 0}"));
            };
            let Some(value) = self.scalar(&pair[1]) else {
                return Err(invalid(
                    pair[1].span,
                    "a default in :or is a literal number, string, keyword, boolean or nil",
                )
                .hint("compute the default in the body: (or a (f x))"));
            };
            out.insert(name, value);
        }
        Ok(out)
    }

    /// A literal that is no collection.
    pub(super) fn scalar(&self, form: &Form) -> Option<Constant> {
        Some(match &form.kind {
            FormKind::Nil => Constant::Nil,
            FormKind::Bool(b) => Constant::Bool(*b),
            FormKind::Int(i) => Constant::Int(*i),
            FormKind::Big(b) => Constant::Big(b.clone()),
            FormKind::Float(f) => Constant::Float(*f),
            FormKind::Str(s) => Constant::Str(s.clone()),
            FormKind::Keyword(name) => Constant::Keyword(self.text(*name).into()),
            _ => return None,
        })
    }

    pub(super) fn loop_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        let usage = "(loop [name value ...] body ...)";
        let Some((bindings, body)) = args.split_first() else { return Err(arity(span, "loop", usage)) };
        let pairs = self.pairs("loop", bindings)?;
        self.scoped(|a| {
            // A later initial value sees the names of earlier patterns, so those are taken apart once outside the
            // loop, and again at the start of each round.
            let (mut outside, mut vars, mut prologue) = (Vec::new(), Vec::new(), Vec::new());
            let mut patterns = Vec::new();
            for pair in pairs.chunks_exact(2) {
                let init = a.node(&pair[1], false)?;
                if let FormKind::Symbol(name) = pair[0].kind {
                    a.check_name(name, pair[0].span)?;
                    let (first, var) = (a.fresh(), a.fresh());
                    outside.push(Bind { var: Some(first), init });
                    a.scope.push(name, first);
                    vars.push((var, Node::local(first, pair[0].span)));
                    patterns.push((&pair[0], var));
                } else {
                    let (first, var) = (a.fresh(), a.fresh());
                    outside.push(Bind { var: Some(first), init });
                    vars.push((var, Node::local(first, pair[0].span)));
                    a.pattern(&pair[0], Node::local(first, pair[0].span), &mut outside)?;
                    patterns.push((&pair[0], var));
                }
            }
            for (pattern, var) in patterns {
                match pattern.kind {
                    FormKind::Symbol(name) => a.scope.push(name, var),
                    _ => a.pattern(pattern, Node::local(var, pattern.span), &mut prologue)?,
                }
            }
            let targets = vars.len();
            let body = a.with_recur(Some(targets), |a| a.body(body, span, true))?;
            let body = let_node(prologue, body, span);
            Ok(let_node(outside, Node::new(Kind::Loop(vars, Box::new(body)), span), span))
        })
    }

    pub(super) fn recur_form(&mut self, args: &[Form], span: Span, tail: bool) -> Res<Node> {
        let Some(target) = self.recur_target().filter(|_| tail) else {
            return Err(invalid(span, "recur must be the last thing its loop or function does")
                .hint("move recur to the end of a branch, or collect with reduce"));
        };
        if target != args.len() {
            return Err(Error::new(
                Reason::ArityMismatch,
                format!("recur gives {} values, its loop or function takes {target}", args.len()),
            )
            .at(span));
        }
        let args = self.nodes(args)?;
        self.note_recur();
        Ok(Node::new(Kind::Recur(args), span))
    }
}
