//! Forms with effects: `try` and `throw`, `dotimes`, `while`, `declare`.

use super::{Analyzer, Res, arity, if_node, invalid, misshapen, not_a_vector, prim};
use crate::builtins::exception_classes;
use crate::compile::core::{Constant, Kind, Node, Prim};
use crate::error::{Error, Span};
use crate::syntax::{Form, FormKind};
use crate::text::near_names;

const TRY: &str = "(try body ... (catch Exception e body ...) (finally body ...))";

/// Returns the error for a class that `catch` does not know.
fn unknown_class(class: &str, span: Span) -> Error {
    let short = class.rsplit_once('.').map_or(class, |(_, short)| short);
    let near = near_names(short, exception_classes::class_names(), 2);
    let hint = match &near[..] {
        [] => "catch all errors with (catch Exception e ...), and look at (:reason e)".to_owned(),
        near => format!("did you mean {}? Exception catches every error of a program", near.join(" or ")),
    };
    invalid(span, format!("catch does not know the class {class}")).hint(hint)
}

/// A part of `try`.
enum Part<'f> {
    Body,
    Catch(&'f [Form]),
    Finally(&'f [Form]),
}

impl Analyzer<'_> {
    fn part<'f>(&self, form: &'f Form) -> Part<'f> {
        let FormKind::List(items) = &form.kind else { return Part::Body };
        match items.split_first() {
            Some((Form { kind: FormKind::Symbol(name), .. }, rest)) => match self.text(*name) {
                "catch" => Part::Catch(rest),
                "finally" => Part::Finally(rest),
                _ => Part::Body,
            },
            _ => Part::Body,
        }
    }

    pub(super) fn try_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        let count = args.iter().position(|form| !matches!(self.part(form), Part::Body)).unwrap_or(args.len());
        let (body, clauses) = args.split_at(count);
        let (mut catches, mut last) = (Vec::new(), None);
        for (i, form) in clauses.iter().enumerate() {
            match self.part(form) {
                Part::Catch(parts) => catches.push((form.span, parts)),
                Part::Finally(parts) if i + 1 == clauses.len() => last = Some((form.span, parts)),
                Part::Finally(_) => {
                    return Err(invalid(form.span, "finally is the last part of try").hint(format!("write {TRY}")));
                }
                Part::Body => {
                    let message = "the body of try must come before its catch and finally";
                    return Err(invalid(form.span, message).hint(format!("write {TRY}")));
                }
            }
        }
        let mut node = self.within_try(|a| a.body(body, span, false))?;
        if !catches.is_empty() {
            node = self.within_try(|a| a.catches(node, &catches, span))?;
        }
        if let Some((at, parts)) = last {
            let parts = self.within_try(|a| a.body(parts, at, false))?;
            node = Node::new(Kind::Finally(Box::new(node), Box::new(parts)), span);
        }
        Ok(node)
    }

    /// Analyzes the clauses of a `try`, each with the test for its class. Errors that no clause catches are rethrown.
    fn catches(&mut self, body: Node, catches: &[(Span, &[Form])], span: Span) -> Res<Node> {
        let error = self.fresh();
        let (mut clauses, mut rest) = (Vec::with_capacity(catches.len()), None);
        for &(at, parts) in catches {
            let wrong = |message: &str| Err(invalid(at, message).hint("write (catch Exception e body ...)"));
            let [class, Form { kind: FormKind::Symbol(name), span: name_span }, body @ ..] = parts else {
                return wrong("catch takes a class and a name");
            };
            let class = match class.kind {
                FormKind::Symbol(class) => self.text(class),
                FormKind::Keyword(keyword) if self.text(keyword) == "default" => "Throwable",
                _ => return wrong("catch takes the name of a class first"),
            };
            let Some(number) = exception_classes::class_number(class) else {
                return Err(unknown_class(class, at));
            };
            self.check_name(*name, *name_span)?;
            let body = self.scoped(|a| {
                a.scope.push(*name, error);
                a.body(body, at, false)
            })?;
            if rest.is_some() {
                // An earlier clause catches everything.
            } else if exception_classes::covers_all(number) {
                rest = Some(body);
            } else {
                clauses.push((prim(Prim::IsCaught(number), vec![Node::local(error, at)], at), body));
            }
        }
        let rest = rest.unwrap_or_else(|| Node::new(Kind::Rethrow(error), span));
        let handler = match clauses.is_empty() {
            true => rest,
            false => Node::new(Kind::Cond(clauses, Box::new(rest)), span),
        };
        Ok(Node::new(Kind::Try(Box::new(body), error, Box::new(handler)), span))
    }

    /// `catch` or `finally` outside of `try`.
    pub(super) fn part_of_try(&mut self, name: &str, span: Span) -> Res<Node> {
        Err(invalid(span, format!("{name} can be used only inside try")).hint(format!("write {TRY}")))
    }

    pub(super) fn dotimes_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        let usage = "(dotimes [i n] body ...)";
        let Some((bindings, body)) = args.split_first() else { return Err(arity(span, "dotimes", args.len(), usage)) };
        let FormKind::Vector(items) = &bindings.kind else {
            return Err(not_a_vector(bindings.span, "dotimes", usage));
        };
        let [name, count] = items.as_slice() else {
            return Err(misshapen(bindings.span, "dotimes binds exactly one name".to_owned(), usage));
        };
        let count = self.node(count, false)?;
        self.scoped(|a| {
            let Some(var) = a.bind_name(name)? else {
                return Err(invalid(name.span, "dotimes binds a plain name").hint(format!("write {usage}")));
            };
            let body = a.with_recur(None, |a| a.body(body, span, false))?;
            Ok(Node::new(Kind::Times(var, Box::new(count), Box::new(body)), span))
        })
    }

    pub(super) fn while_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        let Some((test, body)) = args.split_first() else {
            return Err(arity(span, "while", args.len(), "(while test body ...)"));
        };
        if !args.iter().any(|form| self.has_effects(form)) {
            return Err(invalid(span, "nothing in this while changes its test: values do not change")
                .hint("write (loop [x start] (if test (recur next) x))"));
        }
        let test = self.node(test, false)?;
        let body = self.with_recur(None, |a| a.body(body, span, false))?;
        Ok(Node::new(Kind::While(Box::new(test), Box::new(body)), span))
    }

    /// Returns true if evaluating the form could change the result of a test, or end the loop: forms that define, call
    /// a tool, end the program or call a function of the program.
    fn has_effects(&self, form: &Form) -> bool {
        match &form.kind {
            FormKind::Symbol(name) => {
                let text = self.text(*name);
                matches!(text, "def" | "defn" | "return" | "fail" | "throw")
                    || text.starts_with("tool/")
                    || text.starts_with("System/")
                    || self.is_defined(text).is_some()
            }
            FormKind::List(items)
            | FormKind::Vector(items)
            | FormKind::Map(items)
            | FormKind::Set(items)
            | FormKind::ShortFn(items) => items.iter().any(|item| self.has_effects(item)),
            _ => false,
        }
    }

    /// `(assert test message?)`
    pub(super) fn assert_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        let (form, message) = match args {
            [test] => (test, None),
            [test, message] => (test, Some(self.node(message, false)?)),
            _ => return Err(arity(span, "assert", args.len(), "(assert test message)")),
        };
        let test = self.node(form, false)?;
        let text = |text: &str| Node::new(Kind::Const(Constant::Str(text.into())), span);
        let message = match message {
            Some(message) => self.call_of("str", vec![text("Assert failed: "), message], span),
            None => text(&format!("Assert failed: {}", self.written(form.span))),
        };
        let error = self.call_of("AssertionError.", vec![message], span);
        Ok(if_node(test, Node::nil(span), Node::new(Kind::Throw(Box::new(error)), span), span))
    }

    /// Returns the source text of a form, cut if it is long.
    fn written(&self, span: Span) -> String {
        const BYTES: usize = 200;
        let text = self.source.get(span.start as usize..span.end as usize).unwrap_or_default();
        match text.floor_char_boundary(BYTES) {
            end if end < text.len() => format!("{}...", &text[..end]),
            _ => text.to_owned(),
        }
    }

    /// The names are defined further down. Returns the value of the last one.
    pub(super) fn declare_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        let mut value = Node::nil(span);
        for form in args {
            let FormKind::Symbol(name) = form.kind else {
                return Err(invalid(form.span, "declare takes names").hint("write (declare name ...)"));
            };
            self.check_definable(name, form.span)?;
            let global = self.define(self.text(name));
            value = Node::new(Kind::Name(global), span);
        }
        Ok(value)
    }
}
