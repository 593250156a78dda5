//! Branches: `if`, `when`, `cond`, `case`, `condp`, `and`, `or` and their binding forms.

use super::{Analyzer, Res, arity, if_node, invalid, let_node, prim};
use crate::compile::core::{Bind, Constant, Kind, Node, Prim};
use crate::error::{Error, Reason, Span};
use crate::syntax::{Form, FormKind};

impl Analyzer<'_> {
    pub(super) fn if_form(&mut self, args: &[Form], span: Span, tail: bool, negated: bool) -> Res<Node> {
        let (test, then, otherwise) = match args {
            [test, then] => (test, then, None),
            [test, then, otherwise] => (test, then, Some(otherwise)),
            _ if negated => return Err(arity(span, "if-not", "(if-not test then else?)")),
            _ => return Err(arity(span, "if", "(if test then else?)")),
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
            return Err(arity(span, name, &format!("({name} test body ...)")));
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
        let wrong = |form: &Form| {
            invalid(form.span, "case tests literal values: keywords, strings, numbers, booleans, nil")
                .hint("group several as (:a :b), or use cond to compare with computed values")
        };
        match &form.kind {
            FormKind::List(group) if !group.is_empty() => {
                group.iter().map(|f| self.scalar(f).ok_or_else(|| wrong(f))).collect()
            }
            _ => self.scalar(form).map(|c| vec![c]).ok_or_else(|| wrong(form)),
        }
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
        let arrow = |f: &Form| matches!(f.kind, FormKind::Keyword(n) if self.text(n) == ">>");
        if clauses.iter().skip(1).step_by(2).any(arrow) {
            return Err(invalid(span, "condp has no :>> form").hint("use cond with let"));
        }
        let predicate = self.node(predicate, false)?;
        let subject = self.node(subject, false)?;
        let (p, s) = (self.fresh(), self.fresh());
        let binds = vec![Bind { var: Some(p), init: predicate }, Bind { var: Some(s), init: subject }];
        let mut out = Vec::new();
        for pair in clauses.chunks_exact(2) {
            let test = self.node(&pair[0], false)?;
            let at = pair[0].span;
            let call = Kind::Call(Box::new(Node::local(p, at)), vec![test, Node::local(s, at)]);
            out.push((Node::new(call, at), self.node(&pair[1], tail)?));
        }
        let default = match clauses.chunks_exact(2).remainder() {
            [form] => self.node(form, tail)?,
            _ => Node::nil(span),
        };
        Ok(let_node(binds, Node::new(Kind::Cond(out, Box::new(default)), span), span))
    }

    /// The name and value of `[name value]`.
    fn one_binding<'f>(&self, name: &str, form: &'f Form) -> Res<(&'f Form, &'f Form)> {
        match &form.kind {
            FormKind::Vector(items) => match items.as_slice() {
                [target @ Form { kind: FormKind::Symbol(_), .. }, value] => Ok((target, value)),
                [_, _] => Err(invalid(form.span, format!("{name} binds a plain name, not a pattern"))
                    .hint("take the value apart with let inside")),
                _ => Err(invalid(form.span, format!("{name} takes exactly one name and value"))
                    .hint(format!("write ({name} [name value] ...)"))),
            },
            _ => Err(arity(form.span, name, &format!("({name} [name value] ...)"))),
        }
    }

    pub(super) fn if_bound(&mut self, args: &[Form], span: Span, tail: bool, only_nil: bool) -> Res<Node> {
        let name = if only_nil { "if-some" } else { "if-let" };
        let [bindings, then, otherwise] = args else {
            return Err(arity(span, name, &format!("({name} [name value] then else)")));
        };
        let (target, value) = self.one_binding(name, bindings)?;
        let init = self.node(value, false)?;
        let otherwise = self.node(otherwise, tail)?;
        self.bound(target, init, only_nil, span, otherwise, |a| a.node(then, tail))
    }

    pub(super) fn when_bound(&mut self, args: &[Form], span: Span, tail: bool, only_nil: bool) -> Res<Node> {
        let name = if only_nil { "when-some" } else { "when-let" };
        let Some((bindings, body)) = args.split_first() else {
            return Err(arity(span, name, &format!("({name} [name value] body ...)")));
        };
        let (target, value) = self.one_binding(name, bindings)?;
        let init = self.node(value, false)?;
        self.bound(target, init, only_nil, span, Node::nil(span), |a| a.body(body, span, tail))
    }

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
            let mut binds = Vec::new();
            a.pattern(target, init, &mut binds)?;
            let Some(var) = binds.last().and_then(|b| b.var) else { return Ok(Node::nil(span)) };
            let then = then(a)?;
            let value = Node::local(var, target.span);
            let node = if only_nil {
                if_node(prim(Prim::IsNil, vec![value], span), otherwise, then, span)
            } else {
                if_node(value, then, otherwise, span)
            };
            Ok(let_node(binds, node, span))
        })
    }

    pub(super) fn when_first(&mut self, args: &[Form], span: Span, tail: bool) -> Res<Node> {
        let Some((bindings, body)) = args.split_first() else {
            return Err(arity(span, "when-first", "(when-first [name coll] body ...)"));
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
