//! `for` and `doseq`, `lazy-seq` and `lazy-cat`.

use super::{Analyzer, Res, arity, if_node, invalid, let_node, not_a_vector};
use crate::compile::core::{Bind, Clause, Constant, FnNode, Kind, Node};
use crate::error::Span;
use crate::syntax::{Form, FormKind};

impl Analyzer<'_> {
    pub(super) fn for_form(&mut self, args: &[Form], span: Span, collects: bool) -> Res<Node> {
        let name = if collects { "for" } else { "doseq" };
        let usage = format!("({name} [x coll ...] body ...)");
        let Some((bindings, body)) = args.split_first().filter(|(_, body)| !body.is_empty()) else {
            return Err(arity(span, name, args.len(), &usage));
        };
        let FormKind::Vector(items) = &bindings.kind else {
            return Err(not_a_vector(bindings.span, name, &usage));
        };
        if items.is_empty() {
            return Err(
                invalid(bindings.span, format!("{name} needs at least one binding")).hint(format!("write {usage}"))
            );
        }
        if items.len() % 2 != 0 {
            return Err(invalid(bindings.span, format!("{name} bindings come in pairs; the last one has no value"))
                .hint(format!("write {usage}")));
        }
        if matches!(items[0].kind, FormKind::Keyword(_)) {
            return Err(invalid(items[0].span, format!("{name} starts with a binding, not with a modifier"))
                .hint(format!("write {usage}")));
        }
        self.scoped(|a| a.clauses(name, items, Vec::new(), body, span, collects))
    }

    /// Analyzes the clauses in the pairs of `items`, after those that exist, and the body.
    fn clauses(
        &mut self,
        name: &str,
        items: &[Form],
        mut clauses: Vec<Clause>,
        body: &[Form],
        span: Span,
        collects: bool,
    ) -> Res<Node> {
        let mut rest = items;
        while let [target, value, behind @ ..] = rest {
            rest = behind;
            if matches!(target.kind, FormKind::Keyword(_)) {
                clauses.push(self.modifier(name, target, value)?);
                continue;
            }
            let mut coll = self.node(value, false)?;
            if self.is_endless(&coll) {
                if let [Form { kind: FormKind::Keyword(modifier), .. }, test, behind @ ..] = behind
                    && self.text(*modifier) == "while"
                {
                    let goes_on = self.element_function(target, span, |a| a.node(test, false))?;
                    coll = self.call_of("take-while", vec![goes_on, coll], span);
                    rest = behind;
                } else if clauses.is_empty() && collects {
                    return self.over_endless(target, coll, behind, body, span);
                }
            }
            clauses.push(self.each(target, coll)?);
        }
        let body = self.with_recur(None, |a| a.body(body, span, false))?;
        Ok(Node::new(Kind::For(clauses, Box::new(body), collects), span))
    }

    /// `for` over an endless sequence: an endless sequence of the body's values, unless `:while` ends it.
    fn over_endless(&mut self, target: &Form, coll: Node, behind: &[Form], body: &[Form], span: Span) -> Res<Node> {
        let keyword = |form: &Form| match form.kind {
            FormKind::Keyword(name) => Some(self.text(name)),
            _ => None,
        };
        let own = behind.chunks_exact(2).map_while(|pair| keyword(&pair[0]));
        let may_end = own.into_iter().any(|modifier| modifier == "while");
        let pieces = self.element_function(target, span, |a| a.pieces(behind, body, span))?;
        if !may_end {
            return Ok(self.call_of("mapcat", vec![pieces, coll], span));
        }
        let steps = vec![
            self.call_of("map", vec![pieces], span),
            self.call_of("take-while", vec![self.function_of("some?", span)], span),
            self.function_of("cat", span),
        ];
        let steps = self.call_of("comp", steps, span);
        Ok(self.call_of("sequence", vec![steps, coll], span))
    }

    /// Returns what an element of an endless sequence becomes: a vector of the body's values; nil where `:while` ends
    /// it.
    fn pieces(&mut self, items: &[Form], body: &[Form], span: Span) -> Res<Node> {
        let none = || Node::new(Kind::Const(Constant::Vector(Vec::new())), span);
        let [target, value, behind @ ..] = items else {
            let body = self.with_recur(None, |a| a.body(body, span, false))?;
            return Ok(Node::new(Kind::Vector(vec![body]), span));
        };
        if !matches!(target.kind, FormKind::Keyword(_)) {
            return self.clauses("for", items, Vec::new(), body, span, true);
        }
        match self.modifier("for", target, value)? {
            Clause::When(test) => Ok(if_node(test, self.pieces(behind, body, span)?, none(), span)),
            Clause::While(test) => Ok(if_node(test, self.pieces(behind, body, span)?, Node::nil(span), span)),
            Clause::Let(binds) => Ok(let_node(binds, self.pieces(behind, body, span)?, span)),
            Clause::Each(..) => Ok(none()),
        }
    }

    /// Returns whether a call creates an endless sequence. The functions are those of `natives/streams/endless.rs` whose
    /// results are endless.
    fn is_endless(&self, node: &Node) -> bool {
        let Kind::CallBuiltin(id, args) = &node.kind else { return false };
        match self.rows.row(*id).name {
            "range" => args.is_empty(),
            "iterate" | "cycle" => true,
            "repeat" | "repeatedly" => args.len() == 1,
            "map" | "filter" | "remove" | "keep" | "mapcat" | "map-indexed" | "keep-indexed" | "drop"
            | "drop-while" | "rest" | "next" | "nnext" | "seq" | "not-empty" | "cons" | "concat" | "partition"
            | "partition-all" | "partition-by" | "distinct" | "dedupe" | "reductions" | "take-nth" | "interpose" => {
                args.last().is_some_and(|last| self.is_endless(last))
            }
            "nthrest" | "nthnext" => args.first().is_some_and(|first| self.is_endless(first)),
            "interleave" => !args.is_empty() && args.iter().all(|arg| self.is_endless(arg)),
            _ => false,
        }
    }

    fn function_of(&self, name: &str, span: Span) -> Node {
        let id = self.rows.by_name(name);
        id.map_or_else(|| Node::nil(span), |id| Node::new(Kind::Builtin(id), span))
    }

    pub(super) fn call_of(&self, name: &str, args: Vec<Node>, span: Span) -> Node {
        match self.rows.by_name(name) {
            Some(id) => Node::new(Kind::CallBuiltin(id, args), span),
            None => Node::nil(span),
        }
    }

    /// Returns a function of one element, which the pattern destructures.
    fn element_function(&mut self, target: &Form, span: Span, body: impl FnOnce(&mut Self) -> Res<Node>) -> Res<Node> {
        self.begin_function();
        let built = self.scoped(|a| {
            let (param, mut prologue): (_, Vec<Bind>) = (a.fresh(), Vec::new());
            a.pattern(target, Node::local(param, target.span), &mut prologue)?;
            Ok((param, prologue, body(a)?))
        });
        let captures = self.end_function();
        let (param, prologue, body) = built?;
        let function = FnNode {
            name: None,
            display: "element".into(),
            params: vec![param],
            rest: None,
            captures,
            prologue,
            body,
            recurs: false,
            others: Vec::new(),
            definition: None,
        };
        Ok(Node::new(Kind::Fn(Box::new(function)), span))
    }

    /// `(lazy-seq body ...)`: the elements, which are all computed at once.
    pub(super) fn lazy_seq_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        self.has_lazy = true;
        let body = self.with_recur(None, |a| a.body(args, span, false))?;
        Ok(self.call_of("sequence", vec![body], span))
    }

    /// `(lazy-cat coll ...)`
    pub(super) fn lazy_cat_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        self.has_lazy = true;
        let args = self.nodes(args)?;
        Ok(self.call_of("concat", args, span))
    }

    fn modifier(&mut self, name: &str, target: &Form, value: &Form) -> Res<Clause> {
        let FormKind::Keyword(modifier) = target.kind else { return self.each(target, Node::nil(target.span)) };
        match self.text(modifier) {
            "when" => Ok(Clause::When(self.node(value, false)?)),
            "while" => Ok(Clause::While(self.node(value, false)?)),
            "let" => {
                let pairs = self.pairs(":let", value)?;
                Ok(Clause::Let(self.binds(pairs)?))
            }
            other => Err(invalid(target.span, format!("{name} has no modifier :{other}"))
                .hint("the modifiers are :when, :while and :let")),
        }
    }

    fn each(&mut self, target: &Form, coll: Node) -> Res<Clause> {
        let mut binds = Vec::new();
        let var = match self.bind_name(target)? {
            Some(var) => var,
            None => {
                let var = self.fresh();
                self.pattern(target, Node::local(var, target.span), &mut binds)?;
                var
            }
        };
        Ok(Clause::Each(var, coll, binds))
    }
}
