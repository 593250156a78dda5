//! `let`, `loop`, `recur`, and destructuring patterns.

use super::{Analyzer, Res, arity, invalid, let_node, prim};
use crate::Table;
use crate::compile::core::{Bind, Constant, Kind, Node, Prim, Var};
use crate::error::{Error, Reason, Span};
use crate::syntax::{Form, FormKind, NameId};

/// A name and its position.
type Named = (NameId, Span);

/// What `:keys` and the like read: the namespace of the keys, the names, and the function that makes a key of a name.
type NamedKeys<'t> = (&'t str, Vec<Named>, fn(Box<str>) -> Constant);

/// The maximum length of a namespace that `:space/keys` adds to each name, in bytes.
const MAX_OF_A_NAMESPACE: usize = 100;

impl Analyzer<'_> {
    pub(super) fn let_form(&mut self, args: &[Form], span: Span, tail: bool) -> Res<Node> {
        let Some((bindings, body)) = args.split_first() else {
            return Err(arity(span, "let", args.len(), "(let [name value ...] body ...)"));
        };
        let pairs = self.pairs("let", bindings)?;
        self.scoped(|a| {
            let binds = a.binds(pairs)?;
            let body = a.body(body, span, tail)?;
            Ok(let_node(binds, body, span))
        })
    }

    /// Returns the binding vector of a form, in pairs.
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

    /// Analyzes alternating patterns and values; the names stay visible.
    pub(super) fn binds(&mut self, pairs: &[Form]) -> Res<Vec<Bind>> {
        let mut binds = Vec::with_capacity(pairs.len() / 2);
        for pair in pairs.chunks_exact(2) {
            let init = self.node(&pair[1], false)?;
            self.pattern(&pair[0], init, &mut binds)?;
        }
        Ok(binds)
    }

    /// Binds a simple name to a variable.
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

    /// Destructures the value of `init`; the names become visible.
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
        let (items, whole_name) = self.split_as(items)?;
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
            return Err(
                invalid(span, "the pattern has more than 65,535 elements").hint("destructure the value in steps")
            );
        };
        let init = match whole_name {
            Some((name, at)) => {
                let var = self.fresh();
                out.push(Bind { var: Some(var), init });
                self.scope.push(name, var);
                Node::local(var, at)
            }
            None => init,
        };
        let whole = self.fresh();
        out.push(Bind { var: Some(whole), init: prim(Prim::SeqArg(rest.is_some()), vec![init], span) });
        for (i, item) in (0..count).zip(leading) {
            let element = prim(Prim::Nth(i), vec![Node::local(whole, item.span)], item.span);
            self.pattern(item, element, out)?;
        }
        if let Some(rest) = rest {
            let mut tail = prim(Prim::Rest(count), vec![Node::local(whole, rest.span)], rest.span);
            if matches!(rest.kind, FormKind::Map(_)) {
                tail = prim(Prim::KeywordArgs, vec![tail], rest.span);
            }
            self.pattern(rest, tail, out)?;
        }
        Ok(())
    }

    /// Returns the parts of a vector pattern, and the name for the whole that may end it.
    fn split_as<'f>(&self, items: &'f [Form]) -> Res<(&'f [Form], Option<Named>)> {
        let is_as = |form: &Form| matches!(form.kind, FormKind::Keyword(name) if self.text(name) == "as");
        let Some(at) = items.iter().position(is_as) else { return Ok((items, None)) };
        match &items[at + 1..] {
            [Form { kind: FormKind::Symbol(name), span }] => {
                self.check_name(*name, *span)?;
                Ok((&items[..at], Some((*name, *span))))
            }
            _ => {
                Err(invalid(items[at].span, ":as takes a name, at the end of the pattern").hint("write [a b :as all]"))
            }
        }
    }

    fn map_pattern(&mut self, items: &[Form], span: Span, init: Node, out: &mut Vec<Bind>) -> Res<()> {
        let (mut named, mut defaults, mut whole_name) = (Vec::new(), Table::default(), None);
        let mut renames = Vec::new();
        for pair in items.chunks_exact(2) {
            let special = match pair[0].kind {
                FormKind::Keyword(name) => self.text(name),
                _ => "",
            };
            // `:a/keys` reads keys of the namespace a.
            let (space, kind) = match special.rsplit_once('/') {
                Some((space, kind @ ("keys" | "syms"))) if !space.is_empty() => (space, kind),
                _ => ("", special),
            };
            if space.len() > MAX_OF_A_NAMESPACE {
                let message = format!("the namespace of keys has at most {MAX_OF_A_NAMESPACE} bytes");
                return Err(invalid(pair[0].span, message).hint("write the keys themselves: {name :space/name}"));
            }
            match kind {
                "keys" => {
                    let constant: fn(Box<str>) -> Constant = Constant::Keyword;
                    named.push((space, self.key_names(&pair[1], ":keys")?, constant));
                }
                "strs" => named.push((space, self.key_names(&pair[1], ":strs")?, Constant::Str)),
                "syms" => named.push((space, self.key_names(&pair[1], ":syms")?, Constant::Symbol)),
                "or" => defaults = self.defaults(&pair[1])?,
                "as" => whole_name = Some(&pair[1]),
                _ => renames.push((&pair[0], &pair[1])),
            }
        }
        let whole = self.fresh();
        // If all keys are numbers, the value may be a vector or a string. A name may stand for a number.
        let by_place = |(_, source): &(&Form, &Form)| {
            matches!(source.kind, FormKind::Int(_) | FormKind::Float(_) | FormKind::Symbol(_))
        };
        let is_sequence = named.is_empty() && !renames.is_empty() && renames.iter().all(by_place);
        let init = if is_sequence { init } else { prim(Prim::MapArg, vec![init], span) };
        out.push(Bind { var: Some(whole), init });
        for keys in named {
            self.keys_pattern(keys, whole, &mut defaults, out)?;
        }
        for (pattern, source) in renames {
            let name = match pattern.kind {
                FormKind::Symbol(name) => Some(name),
                _ => None,
            };
            self.check_key(source)?;
            let key = self.node(source, false)?;
            let init = match key.kind {
                Kind::Const(key) if key.is_scalar() => self.at_key(whole, key, name, &mut defaults, source.span)?,
                _ => self.at_computed_key(whole, key, name, &mut defaults, source.span)?,
            };
            self.pattern(pattern, init, out)?;
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

    /// Rejects a key that the pattern of a loop cannot have: it is compiled twice, and so would be each loop inside.
    fn check_key(&self, source: &Form) -> Res<()> {
        let is_plain = !matches!(
            source.kind,
            FormKind::List(_) | FormKind::Vector(_) | FormKind::Map(_) | FormKind::Set(_) | FormKind::ShortFn(_)
        );
        if is_plain || !self.in_loop_pattern {
            return Ok(());
        }
        Err(invalid(source.span, "the key of a loop's pattern is a name or a plain value")
            .hint("name it before the loop: (let [k (f x)] (loop [{v k} m] ...))"))
    }

    /// `:keys [a b]` and the like: each name gets the value at the key of that name.
    fn keys_pattern(
        &mut self,
        (space, names, constant): NamedKeys<'_>,
        whole: Var,
        defaults: &mut Table<NameId, Option<&Form>>,
        out: &mut Vec<Bind>,
    ) -> Res<()> {
        for (name, span) in names {
            self.interrupt.tick()?;
            let text = self.text(name);
            let key = if space.is_empty() { text.into() } else { format!("{space}/{text}").into() };
            // The name bound by `ns/name` is `name`, if any form below uses it.
            let local = match text.rsplit_once('/').filter(|(space, rest)| !space.is_empty() && !rest.is_empty()) {
                Some((_, rest)) => self.names.get(rest),
                None => Some(name),
            };
            let init = self.at_key(whole, constant(key), local, defaults, span)?;
            let var = self.fresh();
            out.push(Bind { var: Some(var), init });
            if let Some(local) = local {
                self.scope.push(local, var);
            }
        }
        Ok(())
    }

    /// Returns the value at a key of the destructured map, or the default for the name that it gets.
    fn at_key(
        &mut self,
        map: Var,
        key: Constant,
        name: Option<NameId>,
        defaults: &mut Table<NameId, Option<&Form>>,
        span: Span,
    ) -> Res<Node> {
        let default = self.default_of(name, defaults, span)?.map(Box::new);
        Ok(Node::new(Kind::Key(Box::new(Node::local(map, span)), key, default), span))
    }

    /// Like [`Analyzer::at_key`], for a key given by an expression. As in Clojure, the default is always evaluated.
    fn at_computed_key(
        &mut self,
        map: Var,
        key: Node,
        name: Option<NameId>,
        defaults: &mut Table<NameId, Option<&Form>>,
        span: Span,
    ) -> Res<Node> {
        let mut args = vec![Node::local(map, span), key];
        args.extend(self.default_of(name, defaults, span)?);
        let get = self.rows.by_name("get").ok_or_else(|| Error::new(Reason::HostFault, "there is no function get"))?;
        Ok(Node::new(Kind::CallBuiltin(get, args), span))
    }

    /// Returns the default for a name of a pattern.
    fn default_of(
        &mut self,
        name: Option<NameId>,
        defaults: &mut Table<NameId, Option<&Form>>,
        span: Span,
    ) -> Res<Option<Node>> {
        let Some(slot) = name.and_then(|name| defaults.get_mut(&name)) else { return Ok(None) };
        if let Some(constant) = slot.and_then(|form| self.scalar(form)) {
            return Ok(Some(Node::new(Kind::Const(constant), span)));
        }
        // For a name that appears twice, anything but a plain value would be compiled twice.
        let once = || invalid(span, "a name with a computed default appears twice in the pattern").hint("name it once");
        let form = slot.take().ok_or_else(once)?;
        let in_loop_pattern = std::mem::take(&mut self.in_loop_pattern);
        let default = self.node(form, false);
        self.in_loop_pattern = in_loop_pattern;
        default.map(Some)
    }

    fn key_names(&self, form: &Form, what: &str) -> Res<Vec<Named>> {
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
                    names.push((name, item.span));
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

    fn defaults<'f>(&self, form: &'f Form) -> Res<Table<NameId, Option<&'f Form>>> {
        let FormKind::Map(items) = &form.kind else {
            return Err(invalid(form.span, ":or takes a map of defaults").hint("write :or {a 0}"));
        };
        let mut out = Table::default();
        for pair in items.chunks_exact(2) {
            self.interrupt.tick()?;
            let FormKind::Symbol(name) = pair[0].kind else {
                return Err(invalid(pair[0].span, "the keys of :or are names").hint("write :or {a 0}"));
            };
            out.insert(name, Some(&pair[1]));
        }
        Ok(out)
    }

    /// Returns a literal that is not a collection.
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
        let Some((bindings, body)) = args.split_first() else { return Err(arity(span, "loop", args.len(), usage)) };
        let pairs = self.pairs("loop", bindings)?;
        self.scoped(|a| {
            // A later initial value sees the names of earlier patterns, so those are destructured once outside the
            // loop, and again at the start of each iteration.
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
                    a.loop_pattern(&pair[0], first, &mut outside)?;
                    patterns.push((&pair[0], var));
                }
            }
            for (pattern, var) in patterns {
                match pattern.kind {
                    FormKind::Symbol(name) => a.scope.push(name, var),
                    _ => a.loop_pattern(pattern, var, &mut prologue)?,
                }
            }
            let targets = vars.len();
            let body = a.with_recur(Some(targets), |a| a.body(body, span, true))?;
            let body = let_node(prologue, body, span);
            Ok(let_node(outside, Node::new(Kind::Loop(vars, Box::new(body)), span), span))
        })
    }

    fn loop_pattern(&mut self, pattern: &Form, value: Var, out: &mut Vec<Bind>) -> Res<()> {
        let around = std::mem::replace(&mut self.in_loop_pattern, true);
        let taken = self.pattern(pattern, Node::local(value, pattern.span), out);
        self.in_loop_pattern = around;
        taken
    }

    pub(super) fn recur_form(&mut self, args: &[Form], span: Span, tail: bool) -> Res<Node> {
        if self.is_in_try() {
            return Err(invalid(span, "recur cannot lead out of try")
                .hint("let try return a value, and recur with it: (let [x (try ...)] (recur x))"));
        }
        let Some(target) = self.recur_target() else {
            return Err(invalid(span, "recur needs a loop or a function directly around it")
                .hint("write (loop [i 0] (if (< i 3) (recur (inc i)) i)), or use reduce"));
        };
        if !tail {
            return Err(invalid(span, "recur must be the last thing its loop or function does")
                .hint("move recur to the end of a branch, or collect with reduce"));
        }
        if target != args.len() {
            return Err(Error::new(
                Reason::ArityMismatch,
                format!("recur passes {} values, and its loop or function takes {target}", args.len()),
            )
            .at(span)
            .hint("give recur one value for each name of the loop, or for each parameter of the function"));
        }
        let args = self.nodes(args)?;
        self.note_recur();
        Ok(Node::new(Kind::Recur(args), span))
    }
}
