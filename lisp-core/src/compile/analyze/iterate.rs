//! `for` and `doseq`.

use super::{Analyzer, Res, arity, invalid};
use crate::compile::core::{Clause, Kind, Node};
use crate::error::Span;
use crate::syntax::{Form, FormKind};

impl Analyzer<'_> {
    pub(super) fn for_form(&mut self, args: &[Form], span: Span, collects: bool) -> Res<Node> {
        let name = if collects { "for" } else { "doseq" };
        let usage = format!("({name} [x coll ...] body ...)");
        let Some((bindings, body)) = args.split_first().filter(|(_, body)| !body.is_empty()) else {
            return Err(arity(span, name, &usage));
        };
        let FormKind::Vector(items) = &bindings.kind else {
            return Err(arity(bindings.span, name, &usage));
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
            return Err(invalid(items[0].span, format!("{name} begins with a binding, not with a modifier"))
                .hint(format!("write {usage}")));
        }
        self.scoped(|a| {
            let mut clauses = Vec::with_capacity(items.len() / 2);
            for pair in items.chunks_exact(2) {
                clauses.push(a.clause(name, &pair[0], &pair[1])?);
            }
            let body = a.with_recur(None, |a| a.body(body, span, false))?;
            Ok(Node::new(Kind::For(clauses, Box::new(body), collects), span))
        })
    }

    fn clause(&mut self, name: &str, target: &Form, value: &Form) -> Res<Clause> {
        if let FormKind::Keyword(modifier) = target.kind {
            return match self.text(modifier) {
                "when" => Ok(Clause::When(self.node(value, false)?)),
                "while" => Ok(Clause::While(self.node(value, false)?)),
                "let" => {
                    let pairs = self.pairs(":let", value)?;
                    Ok(Clause::Let(self.binds(pairs)?))
                }
                other => Err(invalid(target.span, format!("{name} has no modifier :{other}"))
                    .hint("the modifiers are :when, :while and :let")),
            };
        }
        let coll = self.node(value, false)?;
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
