//! Functions and definitions.

use super::{Analyzer, Res, arity, if_node, invalid, not_a_vector, prim};
use crate::Table;
use crate::compile::core::{Bind, FnGroup, FnNode, Kind, Node, Prim, Var};
use crate::error::{Error, Reason, Span};
use crate::syntax::{Form, FormKind, NameId};
use std::fmt::Write;
use std::sync::Arc;

/// The analyzer's state for a function that it is in.
#[derive(Default)]
pub(super) struct FnScope {
    /// The number of the function, counted from 1 in the order in which they start; the program itself is 0.
    pub(super) number: u32,
    pub(super) captures: Vec<Var>,
    /// The number of values that `recur` takes in tail position here; `None` outside of loops and functions.
    recur: Option<usize>,
    recurs: bool,
    /// Whether this is inside a part of `try` that is inside the innermost loop or function.
    in_try: bool,
}

/// The maximum number of functions of one `letfn`: each captures what any of them does.
const MAX_SIBLINGS: usize = 64;

/// What a function knows about itself: its name, and inside `letfn` its index among the others.
#[derive(Clone, Copy, Default)]
struct Own<'n> {
    name: Option<NameId>,
    siblings: &'n [NameId],
    group: usize,
    index: usize,
}

/// One arity of a function, as written.
struct Arity<'f> {
    params: &'f [Form],
    /// The position of the parameters.
    at: Span,
    body: &'f [Form],
    span: Span,
}

/// Checks that arities differ in their number of parameters, and that the one with a rest parameter has the most.
fn check_arities(nodes: &[FnNode], span: Span) -> Res<()> {
    let mut counts: Vec<(usize, bool)> = nodes.iter().map(|node| (node.params.len(), node.rest.is_some())).collect();
    counts.sort_unstable();
    let wrong = |message: &str| Err(invalid(span, message).hint("write one arity for each number of arguments"));
    if counts.iter().filter(|count| count.1).count() > 1 {
        return wrong("only one arity of a function may have a rest");
    }
    if counts.windows(2).any(|pair| pair[0] == pair[1]) {
        return wrong("two arities of the function have the same number of parameters");
    }
    let max = counts.iter().filter(|count| !count.1).map(|count| count.0).max();
    if counts.iter().any(|count| count.1 && max.is_some_and(|max| max > count.0)) {
        return wrong("an arity of the function has more parameters than the one with a rest");
    }
    Ok(())
}

/// The maximum placeholder number.
const MAX_PLACEHOLDER: u8 = 20;

/// Returns the name under which a placeholder is visible: `%1` to `%20`, and `%&` as 0. No source has that many names.
fn placeholder(n: u8) -> NameId {
    NameId(0xE000_0000 | u32::from(n))
}

/// Returns what a name that starts with `%` stands for: the number of a parameter, or 0 for the rest; `None` for any
/// other name.
fn placeholder_number(text: &str) -> Option<u8> {
    match text.strip_prefix('%')? {
        "" => Some(1),
        "&" => Some(0),
        digits => digits.parse().ok().filter(|n| (1..=MAX_PLACEHOLDER).contains(n)),
    }
}

/// Returns the error for a name that starts with `%` and is not a placeholder.
pub(super) fn not_a_placeholder(text: &str, span: Span) -> Error {
    let is_number = text.len() > 1 && text.bytes().skip(1).all(|b| b.is_ascii_digit());
    let message = match is_number {
        true => format!("placeholders are numbered from %1 to %{MAX_PLACEHOLDER}, got {text}"),
        false => format!("{text} is not a placeholder"),
    };
    Error::new(Reason::InvalidPlaceholder, message).at(span).hint(format!(
        "use %, %1 to %{MAX_PLACEHOLDER}, or %& for the rest; for more parameters write (fn [a b ...] ...)"
    ))
}

impl Analyzer<'_> {
    pub(super) fn recur_target(&self) -> Option<usize> {
        self.fns.last().and_then(|f| f.recur)
    }

    pub(super) fn note_recur(&mut self) {
        if let Some(scope) = self.fns.last_mut() {
            scope.recurs = true;
        }
    }

    /// Runs `f` with another target for `recur`; a `recur` inside does not belong to the function.
    pub(super) fn with_recur<T>(&mut self, target: Option<usize>, f: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        self.recurring(target, false, f)
    }

    /// Runs `f` inside a part of `try`, which no `recur` can leave.
    pub(super) fn within_try<T>(&mut self, f: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        self.recurring(None, true, f)
    }

    fn recurring<T>(&mut self, target: Option<usize>, in_try: bool, f: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        let before = self.fns.last().map(|s| (s.recur, s.recurs, s.in_try));
        if let Some(scope) = self.fns.last_mut() {
            (scope.recur, scope.in_try) = (target, in_try);
        }
        let out = f(self);
        if let (Some(scope), Some(before)) = (self.fns.last_mut(), before) {
            (scope.recur, scope.recurs, scope.in_try) = before;
        }
        out
    }

    /// Returns true if a `try` is between this position and the target of a `recur`.
    pub(super) fn is_in_try(&self) -> bool {
        self.fns.last().is_some_and(|f| f.in_try)
    }

    pub(super) fn fn_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        let (name, args) = match args {
            [Form { kind: FormKind::Symbol(own), .. }, rest @ ..] => (Some(*own), rest),
            _ => (None, args),
        };
        let node = self.fn_node("fn", Own { name, ..Own::default() }, args, span)?;
        Ok(Node::new(Kind::Fn(Box::new(node)), span))
    }

    pub(super) fn begin_function(&mut self) {
        self.functions += 1;
        self.fns.push(FnScope { number: self.functions, ..FnScope::default() });
    }

    /// Ends the innermost function and returns its captures.
    pub(super) fn end_function(&mut self) -> Vec<Var> {
        self.fns.pop().unwrap_or_default().captures
    }

    /// Analyzes a function of one arity or several: parameters and body, or a list of them for each arity.
    fn fn_node(&mut self, what: &str, own: Own<'_>, args: &[Form], span: Span) -> Res<FnNode> {
        let arities = self.arities(what, args, span)?;
        self.begin_function();
        let built = match &arities[..] {
            [only] => self.arity_node(own, only),
            several => self.several_arities(own, several, span),
        };
        let scope = self.fns.pop().unwrap_or_default();
        let mut node = built?;
        node.captures = scope.captures;
        Ok(node)
    }

    /// Analyzes the arities of the innermost function.
    fn several_arities(&mut self, own: Own<'_>, arities: &[Arity<'_>], span: Span) -> Res<FnNode> {
        let mut nodes = arities.iter().map(|arity| self.arity_node(own, arity)).collect::<Res<Vec<FnNode>>>()?;
        check_arities(&nodes, span)?;
        // The arity that calls try first has a fixed number of arguments.
        let first = nodes.iter().position(|node| node.rest.is_none()).unwrap_or(0);
        let mut node = nodes.remove(first);
        node.others = nodes;
        Ok(node)
    }

    fn arities<'f>(&self, what: &str, args: &'f [Form], span: Span) -> Res<Vec<Arity<'f>>> {
        let usage = || match what {
            "letfn" => "write (letfn [(name [parameters] body ...) ...] body ...)".to_owned(),
            what => {
                let name = if what == "fn" { "" } else { " name" };
                format!("write ({what}{name} [parameters] body ...), or ({what}{name} ([a] body ...) ([a b] body ...))")
            }
        };
        let one = |form: &'f Form, span: Span, body: &'f [Form]| match &form.kind {
            FormKind::Vector(params) => Ok(Arity { params, at: form.span, body: self.without_conditions(body), span }),
            _ => Err(invalid(form.span, format!("the parameters of {what} must be a vector")).hint(usage())),
        };
        let Some((first, body)) = args.split_first() else {
            return Err(arity(span, what, args.len(), usage().trim_start_matches("write ")));
        };
        if !matches!(first.kind, FormKind::List(_)) {
            return Ok(vec![one(first, span, body)?]);
        }
        let parts = args.iter().map(|form| match &form.kind {
            FormKind::List(items) => match items.split_first() {
                Some((params, body)) => one(params, form.span, body),
                None => Err(invalid(form.span, format!("an arity of {what} without parameters")).hint(usage())),
            },
            _ => Err(invalid(form.span, format!("{what} has several arities, and this is not an arity")).hint(usage())),
        });
        parts.collect()
    }

    /// Returns a body without the map of `:pre` and `:post` conditions before it.
    fn without_conditions<'f>(&self, body: &'f [Form]) -> &'f [Form] {
        let is_condition =
            |form: &Form| matches!(form.kind, FormKind::Keyword(name) if matches!(self.text(name), "pre" | "post"));
        match body {
            [Form { kind: FormKind::Map(items), .. }, rest @ ..]
                if !rest.is_empty() && items.chunks_exact(2).any(|pair| is_condition(&pair[0])) =>
            {
                rest
            }
            body => body,
        }
    }

    /// Analyzes one arity of the innermost function.
    fn arity_node(&mut self, own: Own<'_>, arity: &Arity<'_>) -> Res<FnNode> {
        let (leading, rest) = self.split_params(arity.params, arity.at)?;
        if leading.len() > 200 {
            return Err(invalid(arity.at, "a function has at most 200 parameters").hint("pass a map or a vector"));
        }
        let visible = self.scope.len();
        let built = self.function_parts(own, leading, rest, arity);
        self.scope.truncate(visible);
        let mut node = built?;
        node.recurs = self.fns.last_mut().is_some_and(|scope| std::mem::take(&mut scope.recurs));
        Ok(node)
    }

    /// `(letfn [(name [parameters] body ...) ...] body ...)`
    pub(super) fn letfn_form(&mut self, args: &[Form], span: Span, tail: bool) -> Res<Node> {
        let usage = "(letfn [(name [parameters] body ...) ...] body ...)";
        let Some((bindings, body)) = args.split_first() else { return Err(arity(span, "letfn", args.len(), usage)) };
        let FormKind::Vector(specs) = &bindings.kind else {
            return Err(not_a_vector(bindings.span, "letfn", usage));
        };
        let mut functions = Vec::with_capacity(specs.len());
        for spec in specs {
            if let FormKind::List(items) = &spec.kind
                && let [Form { kind: FormKind::Symbol(name), .. }, rest @ ..] = items.as_slice()
            {
                self.check_name(*name, spec.span)?;
                functions.push((*name, rest, spec.span));
            } else {
                return Err(invalid(spec.span, "letfn takes functions").hint(format!("write {usage}")));
            }
        }
        if functions.len() > MAX_SIBLINGS {
            return Err(
                invalid(span, format!("letfn has at most {MAX_SIBLINGS} functions")).hint("define some with defn")
            );
        }
        let names: Vec<NameId> = functions.iter().map(|function| function.0).collect();
        self.groups += 1;
        let group = self.groups;
        let mut nodes = Vec::with_capacity(functions.len());
        for (index, (name, rest, at)) in functions.into_iter().enumerate() {
            let own = Own { name: Some(name), siblings: &names, group, index };
            nodes.push(self.fn_node("letfn", own, rest, at)?);
        }
        let mut seen = Table::default();
        let captured = nodes.iter().flat_map(|node| &node.captures).filter(|var| seen.insert(**var, ()).is_none());
        let captures: Vec<Var> = captured.copied().collect();
        nodes.iter_mut().for_each(|node| node.captures.clone_from(&captures));
        self.scoped(|a| {
            let vars: Vec<Var> = names.iter().map(|_| a.fresh()).collect();
            for (name, var) in names.iter().zip(&vars) {
                a.scope.push(*name, *var);
            }
            let body = a.body(body, span, tail)?;
            let group = FnGroup { number: group, functions: vars.into_iter().zip(nodes).collect() };
            Ok(Node::new(Kind::Letfn(group, Box::new(body)), span))
        })
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
        own: Own<'_>,
        leading: &[Form],
        rest: Option<&Form>,
        arity: &Arity<'_>,
    ) -> Res<FnNode> {
        let mut display = String::new();
        let (mut params, mut prologue, mut siblings) = (Vec::new(), Vec::new(), Vec::new());
        for (index, &name) in own.siblings.iter().enumerate().filter(|(index, _)| *index != own.index) {
            let var = self.fresh();
            siblings.push(Bind { var: Some(var), init: prim(Prim::Sibling(own.group, index), Vec::new(), arity.span) });
            self.scope.push(name, var);
        }
        if let Some(name) = own.name {
            let var = self.fresh();
            prologue.push(Bind { var: Some(var), init: prim(Prim::SelfFn, Vec::new(), arity.span) });
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
            (scope.recur, scope.in_try) = (Some(params.len() + usize::from(rest_var.is_some())), false);
        }
        let body = self.body(arity.body, arity.span, true)?;
        let name = own.name.map(|n| self.text(n).into());
        // Only functions that are used are created.
        siblings.retain(|bind| bind.var.is_some_and(|var| self.vars[var.0].is_used));
        siblings.append(&mut prologue);
        let prologue = siblings;
        Ok(FnNode {
            name,
            display: display.into(),
            params,
            rest: rest_var,
            captures: Vec::new(),
            prologue,
            body,
            recurs: false,
            others: Vec::new(),
            definition: None,
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
                invalid(span, "#( ) cannot be used inside another #( )").hint("write the inner one as (fn [x] ...)")
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

    fn short_fn_body(&mut self, items: &[Form], span: Span, highest: u8, rest: bool) -> Res<Node> {
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
            [single] if self.is_placeholder(single) => self.called_if_function(single),
            // `#(42)` returns the value; with more parts it is a call.
            [single] if !matches!(single.kind, FormKind::Symbol(_)) => self.node(single, true),
            _ => self.list(items, span, true),
        };
        self.scope.truncate(visible);
        let scope = self.fns.pop().unwrap_or_default();
        let mut display = String::new();
        for n in 1..=highest {
            // Writing to a string cannot fail.
            let _ = write!(display, "{}p{n}", if n > 1 { " " } else { "" });
        }
        if rest {
            display.push_str(if highest > 0 { " & rest" } else { "& rest" });
        }
        let node = FnNode {
            name: None,
            display: display.into(),
            params,
            rest: rest_var,
            captures: scope.captures,
            prologue: Vec::new(),
            body: body?,
            recurs: scope.recurs,
            others: Vec::new(),
            definition: None,
        };
        Ok(Node::new(Kind::Fn(Box::new(node)), span))
    }

    /// `#(%)` calls a function given to it, as in Clojure. Anything else is returned, because it could not be called
    /// without arguments.
    fn called_if_function(&mut self, placeholder: &Form) -> Res<Node> {
        let span = placeholder.span;
        let [tested, called, given] = [(); 3].map(|()| self.node(placeholder, true));
        let test = match self.rows.by_name("fn?") {
            Some(id) => Node::new(Kind::CallBuiltin(id, vec![tested?]), span),
            None => return given,
        };
        let call = Node::new(Kind::Call(Box::new(called?), Vec::new()), span);
        Ok(if_node(test, call, given?, span))
    }

    fn is_placeholder(&self, form: &Form) -> bool {
        matches!(form.kind, FormKind::Symbol(n) if self.text(n).starts_with('%'))
    }

    fn find_placeholders(&self, form: &Form, highest: &mut u8, rest: &mut bool) -> Res<()> {
        match &form.kind {
            FormKind::Symbol(name) if self.text(*name).starts_with('%') => {
                let text = self.text(*name);
                match placeholder_number(text).ok_or_else(|| not_a_placeholder(text, form.span))? {
                    0 => *rest = true,
                    n => *highest = (*highest).max(n),
                }
            }
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

    /// Returns the name under which a placeholder is visible.
    pub(super) fn placeholder_name(&self, text: &str) -> Option<NameId> {
        placeholder_number(text).map(placeholder)
    }

    /// Returns the name, the documentation string and the value of a definition.
    fn definition<'f>(&self, what: &str, args: &'f [Form], span: Span) -> Res<(NameId, Option<&'f str>, &'f Form)> {
        let usage = || format!("({what} name value)");
        if let Some(target) = args.first()
            && !matches!(target.kind, FormKind::Symbol(_))
        {
            return Err(invalid(target.span, format!("{what} expects a symbol")).hint(format!("write {}", usage())));
        }
        let (target, doc, value) = match args {
            [target, value] => (target, None, value),
            [target, Form { kind: FormKind::Str(doc), .. }, value] => (target, Some(&**doc), value),
            _ => return Err(arity(span, what, args.len(), &usage())),
        };
        let FormKind::Symbol(name) = target.kind else {
            return Err(invalid(target.span, format!("{what} expects a symbol")).hint(format!("write {}", usage())));
        };
        self.check_definable(name, target.span)?;
        Ok((name, doc, value))
    }

    pub(super) fn check_definable(&self, name: NameId, span: Span) -> Res<()> {
        self.check_name(name, span)?;
        let text = self.text(name);
        if text.len() > 1 && text.contains('/') {
            return Err(invalid(span, format!("{text} has a namespace; definitions have plain names"))
                .hint("define a name without a slash"));
        }
        Ok(())
    }

    pub(super) fn def_form(&mut self, args: &[Form], span: Span, once: bool) -> Res<Node> {
        let (name, doc, value) = self.definition(if once { "defonce" } else { "def" }, args, span)?;
        let text = self.text(name);
        // A function may call itself by its name; any other value must not use it.
        let is_fn = matches!(&value.kind, FormKind::List(items)
            if matches!(items.first().map(|f| &f.kind), Some(FormKind::Symbol(n)) if self.text(*n) == "fn"))
            || matches!(value.kind, FormKind::ShortFn(_));
        if is_fn {
            self.define(text);
        }
        self.being_defined.push((text.into(), self.fns.len()));
        let mut value = self.node(value, false)?;
        if let Kind::Fn(function) = &mut value.kind {
            function.definition = Some((doc.map(Arc::from), span));
        }
        self.being_defined.pop();
        let global = self.define(text);
        let kind = if once { Kind::DefOnce(global, Box::new(value)) } else { Kind::Def(global, Box::new(value)) };
        Ok(Node::new(kind, span))
    }

    pub(super) fn defn_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        let usage = "(defn name [parameters] body ...)";
        let [target, rest @ ..] = args else { return Err(arity(span, "defn", args.len(), usage)) };
        let FormKind::Symbol(name) = target.kind else {
            return Err(invalid(target.span, "defn expects a symbol").hint(usage));
        };
        self.check_definable(name, target.span)?;
        let (mut rest, mut doc) = (rest, None);
        // A doc string and a map of metadata may precede the parameters.
        for is_doc in [true, false] {
            if let [first, more @ ..] = rest
                && !more.is_empty()
                && matches!((is_doc, &first.kind), (true, FormKind::Str(_)) | (false, FormKind::Map(_)))
            {
                if let FormKind::Str(text) = &first.kind {
                    doc = Some(Arc::from(&**text));
                }
                rest = more;
            }
        }
        if rest.is_empty() {
            return Err(arity(span, "defn", args.len(), usage));
        }
        let global = self.define(self.text(name));
        let mut node = self.fn_node("defn", Own::default(), rest, span)?;
        let text = self.text(name);
        node.name = Some(text.into());
        node.definition = Some((doc, span));
        node.others.iter_mut().for_each(|other| other.name = Some(text.into()));
        Ok(Node::new(Kind::Def(global, Box::new(Node::new(Kind::Fn(Box::new(node)), span))), span))
    }
}
