//! Branches: `if`, `when`, `cond`, `case`, `condp`, `and`, `or` and their binding forms.

use super::{Analyzer, Res, arity, if_node, invalid, let_node, not_a_vector, prim};
use crate::compile::core::{Bind, Constant, Kind, Node, Prim, Var};
use crate::error::{Error, Reason, Span};
use crate::syntax::{Form, FormKind};

impl Analyzer<'_> {
    pub(super) fn if_form(&mut self, args: &[Form], span: Span, tail: bool, negated: bool) -> Res<Node> {
        let (test, then, otherwise) = match args {
            [test, then] => (test, then, None),
            [test, then, otherwise] => (test, then, Some(otherwise)),
            _ if negated => return Err(arity(span, "if-not", args.len(), "(if-not test then else?)")),
            _ => return Err(arity(span, "if", args.len(), "(if test then else?)")),
        };
        let test = self.node(test, false)?;
        let then = self.node(then, tail)?;
        let otherwise = match otherwise {
            Some(form) => self.node(form, tail)?,
            None => Node::nil(span),
        };
        Ok(if negated { if_node(test, otherwise, then, span) } else { if_node(test, then, otherwise, span) })
    }

    pub(super) fn when_form(&mut self, args: &[Form], span: Span, tail: bool, negated: bool) -> Res<Node> {
        let name = if negated { "when-not" } else { "when" };
        let Some((test, body)) = args.split_first() else {
            return Err(arity(span, name, args.len(), &format!("({name} test body ...)")));
        };
        let test = self.node(test, false)?;
        let body = self.body(body, span, tail)?;
        let nil = Node::nil(span);
        Ok(if negated { if_node(test, nil, body, span) } else { if_node(test, body, nil, span) })
    }

    pub(super) fn cond_form(&mut self, args: &[Form], span: Span, tail: bool) -> Res<Node> {
        if !args.len().is_multiple_of(2) {
            return Err(Error::new(
                Reason::InvalidCondForm,
                "cond takes tests and results in pairs; the last test has no result",
            )
            .at(span)
            .hint("write (cond test result ... :else default)"));
        }
        let mut clauses = Vec::with_capacity(args.len() / 2);
        for pair in args.chunks_exact(2) {
            let test = self.node(&pair[0], false)?;
            clauses.push((test, self.node(&pair[1], tail)?));
        }
        Ok(Node::new(Kind::Cond(clauses, Box::new(Node::nil(span))), span))
    }

    pub(super) fn case_form(&mut self, args: &[Form], span: Span, tail: bool) -> Res<Node> {
        let Some((subject, clauses)) = args.split_first() else {
            return Err(invalid(span, "case needs a value to test").hint("write (case x :a 1 :b 2 default)"));
        };
        let subject = self.node(subject, false)?;
        let mut out = Vec::with_capacity(clauses.len() / 2);
        for pair in clauses.chunks_exact(2) {
            let tests = self.case_tests(&pair[0])?;
            out.push((tests, self.node(&pair[1], tail)?));
        }
        let default = match clauses.chunks_exact(2).remainder() {
            [form] => self.node(form, tail)?,
            _ => Node::nil(span),
        };
        Ok(Node::new(Kind::Case(Box::new(subject), out, Box::new(default)), span))
    }

    fn case_tests(&self, form: &Form) -> Res<Vec<Constant>> {
        match &form.kind {
            FormKind::List(group) if !group.is_empty() => group.iter().map(|f| self.case_test(f)).collect(),
            _ => self.case_test(form).map(|test| vec![test]),
        }
    }

    /// Returns a literal to which `case` compares. Nothing inside is evaluated, so a name is a symbol.
    fn case_test(&self, form: &Form) -> Res<Constant> {
        let all = |items: &[Form]| items.iter().map(|item| self.case_test(item)).collect::<Res<Vec<Constant>>>();
        Ok(match &form.kind {
            FormKind::Symbol(name) => Constant::Symbol(self.text(*name).into()),
            FormKind::Quote(form) => self.case_test(form)?,
            FormKind::Vector(items) | FormKind::List(items) => Constant::Vector(all(items)?),
            FormKind::Map(items) => Constant::Map(all(items)?),
            FormKind::Set(items) => Constant::Set(all(items)?),
            _ => self.scalar(form).ok_or_else(|| {
                invalid(
                    form.span,
                    "case tests literal values: keywords, strings, numbers, symbols, collections of these",
                )
                .hint("group several as (:a :b), or use cond to compare with computed values")
            })?,
        })
    }

    pub(super) fn condp_form(&mut self, args: &[Form], span: Span, tail: bool) -> Res<Node> {
        let [predicate, subject, clauses @ ..] = args else {
            return Err(invalid(span, "condp needs a predicate, a value and clauses")
                .hint("write (condp = x :a 1 :b 2 default)"));
        };
        if clauses.len() < 2 {
            return Err(
                invalid(span, "condp needs at least one test and result").hint("write (condp = x :a 1 :b 2 default)")
            );
        }
        let predicate = self.node(predicate, false)?;
        let subject = self.node(subject, false)?;
        let (p, s) = (self.fresh(), self.fresh());
        let binds = vec![Bind { var: Some(p), init: predicate }, Bind { var: Some(s), init: subject }];
        let node = self.condp_clauses(clauses, (p, s), span, tail)?;
        Ok(let_node(binds, node, span))
    }

    /// Analyzes the clauses of `condp`. After a clause with `:>>` all others are inside its else.
    fn condp_clauses(&mut self, mut clauses: &[Form], (p, s): (Var, Var), span: Span, tail: bool) -> Res<Node> {
        let is_arrow = |form: &Form, a: &Self| matches!(form.kind, FormKind::Keyword(n) if a.text(n) == ">>");
        let mut out = Vec::new();
        let default = loop {
            let (test, rest) = match clauses {
                [] => break Node::nil(span),
                [default] => break self.node(default, tail)?,
                [test, rest @ ..] => (test, rest),
            };
            let at = test.span;
            let test = self.node(test, false)?;
            let call = Kind::Call(Box::new(Node::local(p, at)), vec![test, Node::local(s, at)]);
            let call = Node::new(call, at);
            match rest {
                [arrow, function, rest @ ..] if is_arrow(arrow, self) => {
                    let found = self.fresh();
                    let function = self.node(function, false)?;
                    let then = Kind::Call(Box::new(function), vec![Node::local(found, at)]);
                    self.depth += 1;
                    let otherwise = self.deeper(span).and_then(|()| self.condp_clauses(rest, (p, s), span, tail));
                    self.depth -= 1;
                    let choice = if_node(Node::local(found, at), Node::new(then, at), otherwise?, span);
                    break let_node(vec![Bind { var: Some(found), init: call }], choice, span);
                }
                [result, rest @ ..] => {
                    out.push((call, self.node(result, tail)?));
                    clauses = rest;
                }
                [] => break Node::nil(span),
            }
        };
        Ok(if out.is_empty() { default } else { Node::new(Kind::Cond(out, Box::new(default)), span) })
    }

    /// Returns the name and value of `[name value]`.
    fn one_binding<'f>(&self, name: &str, form: &'f Form) -> Res<(&'f Form, &'f Form)> {
        match &form.kind {
            FormKind::Vector(items) => match items.as_slice() {
                [target, value] => Ok((target, value)),
                _ => Err(invalid(form.span, format!("{name} takes exactly one name and value"))
                    .hint(format!("write ({name} [name value] ...)"))),
            },
            _ => Err(not_a_vector(form.span, name, &format!("({name} [name value] ...)"))),
        }
    }

    pub(super) fn if_bound(&mut self, args: &[Form], span: Span, tail: bool, only_nil: bool) -> Res<Node> {
        let name = if only_nil { "if-some" } else { "if-let" };
        let (bindings, then, otherwise) = match args {
            [bindings, then] => (bindings, then, None),
            [bindings, then, otherwise] => (bindings, then, Some(otherwise)),
            _ => return Err(arity(span, name, args.len(), &format!("({name} [name value] then else?)"))),
        };
        let (target, value) = self.one_binding(name, bindings)?;
        let init = self.node(value, false)?;
        let otherwise = match otherwise {
            Some(form) => self.node(form, tail)?,
            None => Node::nil(span),
        };
        self.bound(target, init, only_nil, span, otherwise, |a| a.node(then, tail))
    }

    pub(super) fn when_bound(&mut self, args: &[Form], span: Span, tail: bool, only_nil: bool) -> Res<Node> {
        let name = if only_nil { "when-some" } else { "when-let" };
        let Some((bindings, body)) = args.split_first() else {
            return Err(arity(span, name, args.len(), &format!("({name} [name value] body ...)")));
        };
        let (target, value) = self.one_binding(name, bindings)?;
        let init = self.node(value, false)?;
        self.bound(target, init, only_nil, span, Node::nil(span), |a| a.body(body, span, tail))
    }

    /// Tests a whole value, and destructures it if the test holds.
    fn bound(
        &mut self,
        target: &Form,
        init: Node,
        only_nil: bool,
        span: Span,
        otherwise: Node,
        then: impl FnOnce(&mut Self) -> Res<Node>,
    ) -> Res<Node> {
        self.scoped(|a| {
            let mut parts = Vec::new();
            let var = a.fresh();
            match target.kind {
                FormKind::Symbol(name) => {
                    a.check_name(name, target.span)?;
                    a.scope.push(name, var);
                }
                _ => a.pattern(target, Node::local(var, target.span), &mut parts)?,
            }
            let then = let_node(parts, then(a)?, span);
            let value = Node::local(var, target.span);
            let node = if only_nil {
                if_node(prim(Prim::IsNil, vec![value], span), otherwise, then, span)
            } else {
                if_node(value, then, otherwise, span)
            };
            Ok(let_node(vec![Bind { var: Some(var), init }], node, span))
        })
    }

    pub(super) fn when_first(&mut self, args: &[Form], span: Span, tail: bool) -> Res<Node> {
        let Some((bindings, body)) = args.split_first() else {
            return Err(arity(span, "when-first", args.len(), "(when-first [name coll] body ...)"));
        };
        let (target, value) = self.one_binding("when-first", bindings)?;
        let init = self.node(value, false)?;
        let seq = self.fresh();
        let seq_bind = Bind { var: Some(seq), init: prim(Prim::Seq, vec![init], value.span) };
        self.scoped(|a| {
            let first = prim(Prim::Nth(0), vec![Node::local(seq, value.span)], value.span);
            let mut binds = Vec::new();
            a.pattern(target, first, &mut binds)?;
            let body = a.body(body, span, tail)?;
            let then = let_node(binds, body, span);
            let empty = prim(Prim::IsNil, vec![Node::local(seq, value.span)], value.span);
            Ok(let_node(vec![seq_bind], if_node(empty, Node::nil(span), then, span), span))
        })
    }

    pub(super) fn and_form(&mut self, args: &[Form], span: Span, tail: bool) -> Res<Node> {
        match args {
            [] => Ok(Node::new(Kind::Const(Constant::Bool(true)), span)),
            [single] => self.node(single, tail),
            [rest @ .., last] => {
                let mut nodes = self.nodes(rest)?;
                nodes.push(self.node(last, tail)?);
                Ok(Node::new(Kind::And(nodes), span))
            }
        }
    }

    /// An unknown bare name inside `or` counts as nil.
    pub(super) fn or_form(&mut self, args: &[Form], span: Span, tail: bool) -> Res<Node> {
        let mut nodes = Vec::with_capacity(args.len());
        for (i, form) in args.iter().enumerate() {
            let last = i + 1 == args.len();
            if self.is_known(form) {
                nodes.push(self.node(form, tail && last)?);
            } else if let FormKind::Symbol(name) = form.kind {
                let text = self.text(name);
                let global = self.global(text);
                nodes.push(Node::new(Kind::Data(global), form.span));
            }
        }
        Ok(match nodes.len() {
            0 => Node::nil(span),
            1 => nodes.remove(0),
            _ => Node::new(Kind::Or(nodes), span),
        })
    }
}
