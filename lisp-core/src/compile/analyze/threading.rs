//! The threading forms, which insert the value of one form into the next.

use super::{Analyzer, Res, if_node, let_node, prim};
use crate::builtins::Lowering;
use crate::compile::core::{Bind, Node, Prim};
use crate::error::{Error, Reason, Span};
use crate::syntax::{Form, FormKind, NameId};

/// Where the value is inserted among the arguments of a step.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    First,
    Last,
}

/// The value of the steps so far, and where it is inserted in the next one.
#[derive(Clone, Copy)]
pub(super) struct Threaded<'f> {
    first: &'f Form,
    steps: &'f [Form],
    pub(super) place: Place,
}

fn empty_step(span: Span) -> Error {
    wrong(span, "() is not a threading step", "write (-> x (f a) :key)")
}

fn wrong(span: Span, message: &str, hint: &str) -> Error {
    Error::new(Reason::InvalidThreadForm, message).at(span).hint(hint)
}

impl Analyzer<'_> {
    /// Returns the step as a call with the value inserted.
    fn step(&self, value: Form, step: &Form, place: Place) -> Res<Form> {
        let span = step.span;
        let list = |items| Form { kind: FormKind::List(items), span };
        match &step.kind {
            FormKind::List(items) if !items.is_empty() => {
                let mut items = items.clone();
                let at = if place == Place::First { 1 } else { items.len() };
                items.insert(at, value);
                Ok(list(items))
            }
            FormKind::List(_) => Err(empty_step(span)),
            _ => Ok(list(vec![step.clone(), value])),
        }
    }

    pub(super) fn thread(&mut self, args: &[Form], span: Span, tail: bool, place: Place) -> Res<Node> {
        let Some((first, steps)) = args.split_first() else {
            let name = if place == Place::First { "->" } else { "->>" };
            return Err(wrong(
                span,
                &format!("{name} needs a value to start with"),
                &format!("write ({name} x (f a) ...)"),
            ));
        };
        if steps.len() > super::MAX_DEPTH {
            return Err(self.too_many_steps(span, steps.len()));
        }
        let is_empty = |step: &&Form| matches!(&step.kind, FormKind::List(items) if items.is_empty());
        if let Some(step) = steps.iter().find(is_empty) {
            return Err(empty_step(step.span));
        }
        self.threaded(Threaded { first, steps, place }, tail)
    }

    /// Analyzes threading steps. Calls, which most steps are, are analyzed directly; for other forms the steps are
    /// copied into one form.
    pub(super) fn threaded(&mut self, value: Threaded<'_>, tail: bool) -> Res<Node> {
        let Threaded { first, steps, place } = value;
        let Some((last, before)) = steps.split_last() else { return self.node(first, tail) };
        let (head, args) = match &last.kind {
            FormKind::List(items) => items.split_first().ok_or_else(|| empty_step(last.span))?,
            _ => (last, &[][..]),
        };
        if !self.is_called(head) {
            let mut form = first.clone();
            for step in steps {
                form = self.step(form, step, place)?;
            }
            return self.node(&form, tail);
        }
        self.enter_form(last.span)?;
        let out = self.call(head, args, Some(Threaded { first, steps: before, place }), last.span);
        self.depth -= 1;
        out
    }

    /// Returns true if a list with this head is certainly a call whose arguments are all evaluated.
    fn is_called(&mut self, head: &Form) -> bool {
        let name = match head.kind {
            FormKind::Keyword(_) => return true,
            FormKind::Symbol(name) => name,
            _ => return false,
        };
        let text = self.text(name);
        let takes_names = |id| {
            matches!(
                self.rows.row(id).lowering,
                Lowering::TakesNames | Lowering::TakesDefinitions | Lowering::ShowsNames
            )
        };
        let has_namespace = text.contains('/') && text != "/";
        !has_namespace
            && !self.referred.contains_key(text)
            && !self.rows.by_name(text).is_some_and(takes_names)
            && self.special_form(name).is_none()
    }

    fn too_many_steps(&self, span: Span, steps: usize) -> Error {
        Error::new(
            Reason::ParseError,
            format!("{steps} threading steps are more than the {} allowed", super::MAX_DEPTH),
        )
        .at(span)
        .hint("give an intermediate result a name with let")
        .detail("limit", super::MAX_DEPTH)
    }

    pub(super) fn thread_as(&mut self, args: &[Form], span: Span) -> Res<Node> {
        let hint = "write (as-> value name form ...)";
        let [first, target, steps @ ..] = args else {
            return Err(wrong(span, "as-> needs a value, a name and forms", hint));
        };
        if !matches!(target.kind, FormKind::Symbol(_)) {
            return Err(wrong(target.span, "as-> binds a plain name", hint));
        }
        self.scoped(|a| {
            let mut binds = Vec::new();
            let init = a.node(first, false)?;
            a.pattern(target, init, &mut binds)?;
            for step in steps {
                let init = a.node(step, false)?;
                a.pattern(target, init, &mut binds)?;
            }
            let last = binds.last().and_then(|b| b.var).map_or(Node::nil(span), |var| Node::local(var, span));
            Ok(let_node(binds, last, span))
        })
    }

    /// Binds a value to a name that no text can have, and returns the form that reads it.
    fn hidden(&mut self, init: Node, span: Span, binds: &mut Vec<Bind>, name: NameId) -> Form {
        let var = self.fresh();
        self.scope.push(name, var);
        binds.push(Bind { var: Some(var), init });
        Form { kind: FormKind::Symbol(name), span }
    }

    pub(super) fn thread_cond(&mut self, args: &[Form], span: Span, place: Place) -> Res<Node> {
        let name = if place == Place::First { "cond->" } else { "cond->>" };
        let hint = format!("write ({name} value test step ...)");
        let Some((first, clauses)) = args.split_first() else {
            return Err(wrong(span, &format!("{name} needs a value to start with"), &hint));
        };
        if clauses.len() % 2 != 0 {
            return Err(wrong(span, &format!("{name} takes tests and steps in pairs"), &hint));
        }
        self.scoped(|a| {
            let hidden = a.synthetic_name(span)?;
            let mut binds = Vec::new();
            let init = a.node(first, false)?;
            let mut value = a.hidden(init, first.span, &mut binds, hidden);
            for pair in clauses.chunks_exact(2) {
                let test = a.node(&pair[0], false)?;
                let keep = a.node(&value, false)?;
                let step = a.step(value, &pair[1], place)?;
                let then = a.node(&step, false)?;
                value = a.hidden(if_node(test, then, keep, pair[1].span), pair[1].span, &mut binds, hidden);
            }
            let last = a.node(&value, false)?;
            Ok(let_node(binds, last, span))
        })
    }

    pub(super) fn thread_some(&mut self, args: &[Form], span: Span, place: Place) -> Res<Node> {
        let name = if place == Place::First { "some->" } else { "some->>" };
        let Some((first, steps)) = args.split_first() else {
            return Err(wrong(
                span,
                &format!("{name} needs a value to start with"),
                &format!("write ({name} x (f a) ...)"),
            ));
        };
        self.scoped(|a| {
            let hidden = a.synthetic_name(span)?;
            let mut binds = Vec::new();
            let init = a.node(first, false)?;
            let mut value = a.hidden(init, first.span, &mut binds, hidden);
            for step in steps {
                let current = a.node(&value, false)?;
                let call = a.step(value, step, place)?;
                let then = a.node(&call, false)?;
                let at = step.span;
                let test = prim(Prim::IsNil, vec![current], at);
                value = a.hidden(if_node(test, Node::nil(at), then, at), at, &mut binds, hidden);
            }
            let last = a.node(&value, false)?;
            Ok(let_node(binds, last, span))
        })
    }
}
