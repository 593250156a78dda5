//! Name resolution: locals, definitions, built-ins, data and tools.

use super::function::{FnScope, not_a_placeholder};
use super::{Analyzer, Free, Res, SYNTHETIC, invalid};
use crate::builtins::java::{self, JavaConstant};
use crate::builtins::{Absent, MATH, foreign, namespace_of};
use crate::code::BuiltinId;
use crate::compile::core::{Constant, Kind, Node, Var};
use crate::error::{Error, Reason, Span};
use crate::syntax::{Form, FormKind, NameId};
use crate::text::near_names;
use std::borrow::Cow;

impl Analyzer<'_> {
    /// Returns the local variable with this name, captured if it belongs to an enclosing function.
    pub(super) fn local(&mut self, name: NameId) -> Option<Var> {
        let var = self.scope.get(name)?;
        let owned = self.vars.get_mut(var.0)?;
        owned.is_used = true;
        for scope in self.fns.iter_mut().skip(owned.owner + 1) {
            // A function that captured it later started inside this one, which passes it on.
            if owned.captured < scope.number {
                scope.captures.push(var);
            }
        }
        if let Some(innermost) = self.fns.get(owned.owner + 1..).and_then(<[FnScope]>::last) {
            owned.captured = innermost.number;
        }
        Some(var)
    }

    /// Returns the index of a global of the program.
    #[expect(clippy::cast_possible_truncation, reason = "each name takes bytes of a text whose bytes 32 bits count")]
    pub(super) fn global(&mut self, name: &str) -> u32 {
        if let Some(&id) = self.global_ids.get(name) {
            return id;
        }
        let id = self.globals.len() as u32;
        self.globals.push(name.into());
        self.global_ids.insert(name.into(), id);
        self.defined.push(false);
        self.is_free.push(false);
        id
    }

    /// Notes that the text defines a global.
    pub(super) fn define(&mut self, name: &str) -> u32 {
        let id = self.global(name);
        self.defined[id as usize] = !self.prelude;
        id
    }

    pub(super) fn is_defined(&self, name: &str) -> Option<u32> {
        let id = *self.global_ids.get(name)?;
        self.defined[id as usize].then_some(id)
    }

    /// Returns true for the name of a definition whose value has a function that the analyzer is in.
    fn is_being_defined(&self, name: &str) -> bool {
        self.being_defined.iter().any(|(own, depth)| &**own == name && self.fns.len() > *depth)
    }

    /// Analyzes a symbol as a value.
    pub(super) fn symbol(&mut self, original: NameId, span: Span) -> Res<Node> {
        let name = self.placeholder_name(self.text(original)).unwrap_or(original);
        if let Some(var) = self.local(name) {
            if original.0 < SYNTHETIC {
                self.vars[var.0].name.get_or_insert(span);
            }
            return Ok(Node::local(var, span));
        }
        let text = self.own_name(self.text(original));
        if let Some(id) = self.is_defined(text) {
            return Ok(Node::new(Kind::Global(id), span));
        }
        // A function inside the value of a definition is called when the name is already defined.
        if self.is_being_defined(text) {
            let id = self.global(text);
            return Ok(Node::new(Kind::Global(id), span));
        }
        if let Some(node) = self.known(text, span)? {
            return Ok(node);
        }
        let global = self.global(text);
        if !std::mem::replace(&mut self.is_free[global as usize], true) {
            self.free.push(Free { global, span });
        }
        Ok(Node::new(Kind::Global(global), span))
    }

    /// Returns a name without the namespace of the program itself.
    fn own_name<'t>(&self, text: &'t str) -> &'t str {
        match text.split_once('/') {
            Some((namespace, name)) if !name.is_empty() && self.own_namespace.as_deref() == Some(namespace) => name,
            _ => text,
        }
    }

    /// Returns the definition that a name has, or may have from an earlier turn.
    pub(super) fn maybe_defined(&mut self, name: NameId, span: Span) -> Option<u32> {
        let text = self.own_name(self.text(name));
        let is_known = self.is_defined(text).is_none() && !matches!(self.known(text, span), Ok(None));
        (!is_known && !text.contains('/')).then(|| self.global(text))
    }

    /// Returns true if this bare symbol can be resolved without definitions of earlier turns.
    pub(super) fn is_known(&mut self, form: &Form) -> bool {
        let FormKind::Symbol(name) = form.kind else { return true };
        let text = self.own_name(self.text(name));
        self.local(name).is_some()
            || self.is_defined(text).is_some()
            || self.is_being_defined(text)
            || !matches!(self.known(text, form.span), Ok(None))
    }

    /// Resolves a name that is neither a local nor a definition of the text: built-in, data, tool, history, constant.
    fn known(&mut self, text: &str, span: Span) -> Res<Option<Node>> {
        if self.shadowed.iter().any(|s| &**s == text) {
            return Ok(None);
        }
        if let Some((namespace, name)) = self.referred.get(text).cloned() {
            return self.namespaced(&namespace, &name, text, span).map(Some);
        }
        if let Some(node) = self.builtin(text, span) {
            return Ok(Some(node));
        }
        if matches!(text, "*1" | "*2" | "*3") {
            let global = self.global(text);
            return Ok(Some(Node::new(Kind::Data(global), span)));
        }
        if text.starts_with('%') {
            return Err(match self.placeholder_name(text) {
                Some(_) => Error::new(Reason::InvalidPlaceholder, format!("{text} is only valid inside #( )"))
                    .at(span)
                    .hint("name a parameter with fn: (fn [x] ...)"),
                None => not_a_placeholder(text, span),
            });
        }
        if let Some(constant) = java::constant(text) {
            return Ok(Some(constant_node(constant, span)));
        }
        if let Some(id) = self.method_value(text) {
            return Ok(Some(Node::new(Kind::Builtin(id), span)));
        }
        if let Some(class) = text.strip_suffix('.').filter(|class| foreign::is_class_name(class)) {
            return Err(foreign::no_class(class).at(span));
        }
        if let Some(error) = java::unsupported(text) {
            return Err(error.at(span));
        }
        match text.split_once('/') {
            Some((alias, name)) if !alias.is_empty() && !name.is_empty() => {
                let namespace = self.aliases.get(alias).cloned();
                let namespace = namespace.as_deref().unwrap_or(alias);
                self.namespaced(namespace, name, text, span).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Returns the method that `Class/.method` or `String/method` names as a value.
    fn method_value(&self, text: &str) -> Option<BuiltinId> {
        let (class, method) = text.split_once('/')?;
        match method.strip_prefix('.') {
            Some(name) if !name.is_empty() && foreign::is_class_name(class) => self.rows.by_name(method),
            None if matches!(class, "String" | "java.lang.String") => self.rows.by_name(&format!(".{method}")),
            _ => None,
        }
    }

    /// Returns the error for an unknown method, with the class of the target if that is evident.
    pub(super) fn method_error(&self, error: Error, head: &Form, args: &[Form]) -> Error {
        let symbol = |form: &Form| match form.kind {
            FormKind::Symbol(name) => Some(self.text(name)),
            _ => None,
        };
        let maker = args.first().and_then(|form| match &form.kind {
            FormKind::List(items) => symbol(items.first()?),
            _ => None,
        });
        match (error.reason, symbol(head), maker) {
            (Reason::UnsupportedMethod, Some(name), Some(maker)) => {
                java::no_method(name, maker).map_or(error, |better| better.at(head.span))
            }
            _ => error,
        }
    }

    pub(super) fn namespaced(&mut self, namespace: &str, name: &str, text: &str, span: Span) -> Res<Node> {
        match namespace {
            "data" => {
                let global = self.global(text);
                return Ok(Node::new(Kind::Data(global), span));
            }
            "tool" => {
                self.note_tool(name);
                return Ok(Node::new(Kind::Tool(name.into()), span));
            }
            _ => {}
        }
        if let Some(id) = self.rows.in_namespace(namespace, name) {
            return Ok(Node::new(Kind::Builtin(id), span));
        }
        if namespace_of(namespace) == Some(MATH)
            && let Some(constant) = java::constant(&format!("Math/{name}"))
        {
            return Ok(constant_node(constant, span));
        }
        if namespace_of(namespace).is_none() {
            return Err(foreign::unknown_namespace(namespace, name, text, self.rows).at(span));
        }
        let names: Vec<Cow<'_, str>> = self.rows.names_in(namespace).collect();
        let hint = match (self.rows.by_name(name), Absent::of(name)) {
            (Some(id), _) if !self.rows.row(id).namespace.is_empty() => {
                format!("{name} is in {0}: write {0}/{name}", self.rows.row(id).namespace)
            }
            (Some(_), _) => format!("{name} is a core function: write {name}"),
            (None, Some(absent)) => absent.hint(),
            (None, None) => match &near_names(name, names.iter().map(|name| &**name), 2)[..] {
                [first] => format!("did you mean {namespace}/{first}?"),
                [first, second] => format!("did you mean {namespace}/{first} or {namespace}/{second}?"),
                _ => "find functions with (apropos \"part of a name\")".to_owned(),
            },
        };
        Err(invalid(span, format!("{namespace} has no function {name}")).hint(hint))
    }
}

pub(super) fn constant_node(constant: JavaConstant, span: Span) -> Node {
    let constant = match constant {
        JavaConstant::Float(f) => Constant::Float(f),
        JavaConstant::Int(i) => Constant::Int(i),
        JavaConstant::Text(text) => Constant::Str(text.into()),
    };
    Node::new(Kind::Const(constant), span)
}
