//! Functions and definitions.

use super::{Analyzer, Res, arity, invalid, prim};
use crate::compile::core::{Bind, FnNode, Kind, Node, Prim, Var};
use crate::error::Span;
use crate::syntax::{Form, FormKind, NameId};

/// What the analyzer knows of the function it is in.
#[derive(Default)]
pub(super) struct FnScope {
    /// Functions are counted as they begin, from 1; the program itself is 0.
    pub(super) number: u32,
    pub(super) captures: Vec<Var>,
    /// How many values `recur` gives in tail position here; none outside loops and functions.
    recur: Option<usize>,
    recurs: bool,
}

/// The name of a placeholder: `%1` to `%20`, and `%&` as 0.
fn placeholder(n: u32) -> NameId {
    NameId(0xE000_0000 + n)
}

/// The highest placeholder.
const MAX_PLACEHOLDER: u32 = 20;

impl Analyzer<'_> {
    pub(super) fn recur_target(&self) -> Option<usize> {
        self.fns.last().and_then(|f| f.recur)
    }

    pub(super) fn note_recur(&mut self) {
        if let Some(scope) = self.fns.last_mut() {
            scope.recurs = true;
        }
    }

    /// Runs `f` with another target for `recur`; a `recur` inside is not one of the function's own.
    pub(super) fn with_recur<T>(&mut self, target: Option<usize>, f: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        let before = self.fns.last().map(|s| (s.recur, s.recurs));
        if let Some(scope) = self.fns.last_mut() {
            scope.recur = target;
        }
        let out = f(self);
        if let (Some(scope), Some((recur, recurs))) = (self.fns.last_mut(), before) {
            (scope.recur, scope.recurs) = (recur, recurs);
        }
        out
    }

    pub(super) fn fn_form(&mut self, args: &[Form], span: Span, name: Option<NameId>) -> Res<Node> {
        let usage = "(fn [parameters] body ...)";
        let (name, args) = match args {
            [Form { kind: FormKind::Symbol(own), .. }, rest @ ..] if name.is_none() => (Some(*own), rest),
            _ => (name, args),
        };
        let Some((params, body)) = args.split_first() else { return Err(arity(span, "fn", usage)) };
        let FormKind::Vector(items) = &params.kind else {
            let hint = match params.kind {
                FormKind::List(_) => "functions have one arity: write one function for each number of arguments",
                _ => usage,
            };
            return Err(invalid(params.span, "the parameters of fn must be a vector").hint(hint));
        };
        self.function(name, items, params.span, span, |a| a.body(body, span, true))
    }

    fn begin_function(&mut self) {
        self.functions += 1;
        self.fns.push(FnScope { number: self.functions, ..FnScope::default() });
    }

    /// A function with these parameters. `body` is analyzed inside it.
    fn function(
        &mut self,
        name: Option<NameId>,
        params: &[Form],
        at: Span,
        span: Span,
        body: impl FnOnce(&mut Self) -> Res<Node>,
    ) -> Res<Node> {
        let (leading, rest) = self.split_params(params, at)?;
        if leading.len() > 200 {
            return Err(invalid(at, "a function has at most 200 parameters").hint("pass a map or a vector"));
        }
        self.begin_function();
        let visible = self.scope.len();
        let built = self.function_parts(name, leading, rest, span, body);
        self.scope.truncate(visible);
        let scope = self.fns.pop().unwrap_or_default();
        let mut node = built?;
        node.captures = scope.captures;
        node.recurs = scope.recurs;
        Ok(Node::new(Kind::Fn(Box::new(node)), span))
    }

    fn split_params<'f>(&self, params: &'f [Form], at: Span) -> Res<(&'f [Form], Option<&'f Form>)> {
        let ampersand = params.iter().position(|f| matches!(f.kind, FormKind::Symbol(n) if self.text(n) == "&"));
        match ampersand {
            None => Ok((params, None)),
            Some(i) => match &params[i + 1..] {
                [rest] => Ok((&params[..i], Some(rest))),
                _ => Err(invalid(at, "& must be followed by exactly one pattern").hint("write [a & rest]")),
            },
        }
    }

    fn function_parts(
        &mut self,
        name: Option<NameId>,
        leading: &[Form],
        rest: Option<&Form>,
        span: Span,
        body: impl FnOnce(&mut Self) -> Res<Node>,
    ) -> Res<FnNode> {
        let mut display = String::new();
        let (mut params, mut prologue) = (Vec::new(), Vec::new());
        if let Some(name) = name {
            let var = self.fresh();
            prologue.push(Bind { var: Some(var), init: prim(Prim::SelfFn, Vec::new(), span) });
            self.scope.push(name, var);
        }
        for form in leading {
            self.show_param(form, &mut display);
            if let Some(var) = self.bind_name(form)? {
                params.push(var);
            } else {
                let var = self.fresh();
                params.push(var);
                self.pattern(form, Node::local(var, form.span), &mut prologue)?;
            }
        }
        let mut rest_var = None;
        if let Some(form) = rest {
            display.push_str(if display.is_empty() { "& " } else { " & " });
            self.show_param(form, &mut display);
            display = display.replace("&  ", "& ");
            if let Some(var) = self.bind_name(form)? {
                rest_var = Some(var);
            } else {
                let var = self.fresh();
                rest_var = Some(var);
                let mut value = Node::local(var, form.span);
                if matches!(form.kind, FormKind::Map(_)) {
                    value = prim(Prim::KeywordArgs, vec![value], form.span);
                }
                self.pattern(form, value, &mut prologue)?;
            }
        }
        if let Some(scope) = self.fns.last_mut() {
            scope.recur = Some(params.len() + usize::from(rest_var.is_some()));
        }
        let body = body(self)?;
        let name = name.map(|n| self.text(n).into());
        Ok(FnNode {
            name,
            display: display.into(),
            params,
            rest: rest_var,
            captures: Vec::new(),
            prologue,
            body,
            recurs: false,
        })
    }

    fn show_param(&self, form: &Form, out: &mut String) {
        if !out.is_empty() {
            out.push(' ');
        }
        match form.kind {
            FormKind::Symbol(name) => out.push_str(self.text(name)),
            _ => out.push('_'),
        }
    }

    /// `#( ... )`: the placeholders used inside are the parameters.
    pub(super) fn short_fn(&mut self, items: &[Form], span: Span) -> Res<Node> {
        if self.in_short_fn {
            return Err(
                invalid(span, "#( ) cannot stand inside another #( )").hint("write the inner one as (fn [x] ...)")
            );
        }
        let (mut highest, mut rest) = (0, false);
        for item in items {
            self.find_placeholders(item, &mut highest, &mut rest)?;
        }
        self.in_short_fn = true;
        let out = self.short_fn_body(items, span, highest, rest);
        self.in_short_fn = false;
        out
    }

    fn short_fn_body(&mut self, items: &[Form], span: Span, highest: u32, rest: bool) -> Res<Node> {
        self.begin_function();
        let visible = self.scope.len();
        let mut params = Vec::new();
        for n in 1..=highest {
            let var = self.fresh();
            self.scope.push(placeholder(n), var);
            params.push(var);
        }
        let rest_var = rest.then(|| self.fresh());
        if let Some(var) = rest_var {
            self.scope.push(placeholder(0), var);
        }
        if let Some(scope) = self.fns.last_mut() {
            scope.recur = Some(params.len() + usize::from(rest));
        }
        let body = match items {
            [] => Ok(Node::nil(span)),
            // `#(42)` and `#(%)` answer the value; with more parts it is a call.
            [single] if !matches!(single.kind, FormKind::Symbol(_)) || self.is_placeholder(single) => {
                self.node(single, true)
            }
            _ => self.list(items, span, true),
        };
        self.scope.truncate(visible);
        let scope = self.fns.pop().unwrap_or_default();
        let mut display: Vec<String> = (1..=highest).map(|n| format!("p{n}")).collect();
        if rest {
            display.push("& rest".to_owned());
        }
        let node = FnNode {
            name: None,
            display: display.join(" ").into(),
            params,
            rest: rest_var,
            captures: scope.captures,
            prologue: Vec::new(),
            body: body?,
            recurs: scope.recurs,
        };
        Ok(Node::new(Kind::Fn(Box::new(node)), span))
    }

    fn is_placeholder(&self, form: &Form) -> bool {
        matches!(form.kind, FormKind::Symbol(n) if self.text(n).starts_with('%'))
    }

    fn find_placeholders(&self, form: &Form, highest: &mut u32, rest: &mut bool) -> Res<()> {
        match &form.kind {
            FormKind::Symbol(name) => match self.text(*name) {
                "%" => *highest = (*highest).max(1),
                "%&" => *rest = true,
                text => {
                    if let Some(digits) = text.strip_prefix('%') {
                        match digits.parse::<u32>() {
                            Ok(n) if (1..=MAX_PLACEHOLDER).contains(&n) => *highest = (*highest).max(n),
                            _ => {
                                return Err(invalid(form.span, format!("{text} is not a placeholder"))
                                    .hint(format!("use %, %1 to %{MAX_PLACEHOLDER}, or %&")));
                            }
                        }
                    }
                }
            },
            FormKind::List(items)
            | FormKind::Vector(items)
            | FormKind::Map(items)
            | FormKind::Set(items)
            | FormKind::ShortFn(items) => {
                for item in items {
                    self.find_placeholders(item, highest, rest)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The name under which a placeholder is visible.
    pub(super) fn placeholder_name(&self, text: &str) -> Option<NameId> {
        match text.strip_prefix('%')? {
            "" => Some(placeholder(1)),
            "&" => Some(placeholder(0)),
            digits => digits.parse().ok().map(placeholder),
        }
    }

    /// The name and value of a definition; a doc string between them is skipped.
    fn definition<'f>(&self, what: &str, args: &'f [Form], span: Span) -> Res<(NameId, &'f Form)> {
        let usage = format!("({what} name value)");
        if let Some(target) = args.first()
            && !matches!(target.kind, FormKind::Symbol(_))
        {
            return Err(
                invalid(target.span, format!("{what} defines a name, and this is none")).hint(format!("write {usage}"))
            );
        }
        let (target, value) = match args {
            [target, value] => (target, value),
            [target, Form { kind: FormKind::Str(_), .. }, value] => (target, value),
            _ => return Err(arity(span, what, &usage)),
        };
        let FormKind::Symbol(name) = target.kind else {
            return Err(
                invalid(target.span, format!("{what} defines a name, and this is none")).hint(format!("write {usage}"))
            );
        };
        self.check_definable(name, target.span)?;
        Ok((name, value))
    }

    fn check_definable(&self, name: NameId, span: Span) -> Res<()> {
        self.check_name(name, span)?;
        let text = self.text(name);
        if text.len() > 1 && text.contains('/') {
            return Err(invalid(span, format!("{text} has a namespace; definitions have plain names"))
                .hint("define a name without a slash"));
        }
        Ok(())
    }

    pub(super) fn def_form(&mut self, args: &[Form], span: Span, once: bool) -> Res<Node> {
        let (name, value) = self.definition(if once { "defonce" } else { "def" }, args, span)?;
        let text = self.text(name);
        // A function may call itself by the name it gets; any other value must not use it.
        let is_fn = matches!(&value.kind, FormKind::List(items)
            if matches!(items.first().map(|f| &f.kind), Some(FormKind::Symbol(n)) if self.text(*n) == "fn"))
            || matches!(value.kind, FormKind::ShortFn(_));
        if is_fn {
            self.define(text);
        }
        let value = self.node(value, false)?;
        let global = self.define(text);
        let kind = if once { Kind::DefOnce(global, Box::new(value)) } else { Kind::Def(global, Box::new(value)) };
        Ok(Node::new(kind, span))
    }

    pub(super) fn defn_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        let usage = "(defn name [parameters] body ...)";
        let [target, rest @ ..] = args else { return Err(arity(span, "defn", usage)) };
        let FormKind::Symbol(name) = target.kind else {
            return Err(invalid(target.span, "defn defines a name, and this is none").hint(usage));
        };
        self.check_definable(name, target.span)?;
        let mut rest = rest;
        // A doc string may stand before the parameters.
        if let [Form { kind: FormKind::Str(_), .. }, more @ ..] = rest
            && !more.is_empty()
        {
            rest = more;
        }
        if rest.is_empty() {
            return Err(arity(span, "defn", usage));
        }
        let global = self.define(self.text(name));
        let FormKind::Vector(params) = &rest[0].kind else {
            return Err(invalid(rest[0].span, "the parameters of defn must be a vector").hint(usage));
        };
        let visible_name = None;
        let mut function =
            self.function(visible_name, params, rest[0].span, span, |a| a.body(&rest[1..], span, true))?;
        if let Kind::Fn(node) = &mut function.kind {
            node.name = Some(self.text(name).into());
        }
        Ok(Node::new(Kind::Def(global, Box::new(function)), span))
    }
}
