//! The analyzer: from forms to core forms. It resolves names, expands what other Lisps implement as macros, and finds
//! every error of form before anything runs.
//!
//! It recurses over the nesting of the source, which the reader limits. It also counts its own depth, because threading
//! forms nest steps that are written side by side.

mod bindings;
mod control;
mod effects;
mod forms;
mod function;
mod interop;
mod iterate;
mod names;
mod namespaces;
mod scope;
mod threading;

use super::core::{Bind, Constant, Kind, Node, Prim, Var};
use crate::Table;
use crate::builtins::{Lowering, Rows};
use crate::error::{Error, Reason, Span};
use crate::regex::{Regexes, doubled_backslash};
use crate::syntax::{Form, FormKind, Interrupt, NameId, Names};
pub use forms::{SPECIAL_FORMS, SpecialForm};
use function::FnScope;
use scope::Scope;
use threading::{Place, Threaded};

/// The maximum nesting after threading forms are expanded.
pub const MAX_DEPTH: usize = 320;

/// A name that must be defined before the program starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Free {
    /// Its index among the program's globals.
    pub global: u32,
    /// The position of its first use.
    pub span: Span,
}

/// The result of analyzing a program.
pub(crate) struct Analysis {
    pub(crate) body: Node,
    /// The names of definitions, data and history that the program uses.
    pub(crate) globals: Vec<Box<str>>,
    pub(crate) free: Vec<Free>,
    pub(crate) tools: Vec<Box<str>>,
    /// The regular expression literals of the program.
    pub(crate) patterns: Vec<Box<str>>,
    /// The positions of two backslashes in patterns where one is probably meant.
    pub(crate) doubled: Vec<Span>,
    /// For each variable, the first position of its name among its uses.
    pub(crate) vars: Vec<Option<Span>>,
    /// Whether the program has a `lazy-seq` or a `lazy-cat`.
    pub(crate) has_lazy: bool,
    /// The number of forms that were analyzed.
    pub(crate) nodes: usize,
}

pub(super) type Res<T> = Result<T, Error>;

/// The owner of a variable.
struct Owned {
    /// The depth of its function among those that the analyzer is in.
    owner: usize,
    /// The number of the function that last captured it; 0 for none.
    captured: u32,
    is_used: bool,
    /// The first position of its name among its uses.
    name: Option<Span>,
}

pub(crate) struct Analyzer<'a> {
    /// The text that the positions of the forms are in.
    source: &'a str,
    names: &'a Names,
    rows: &'a Rows,
    interrupt: &'a Interrupt<'a>,
    /// Names of built-ins that definitions of earlier turns shadow.
    shadowed: &'a [Box<str>],
    scope: Scope,
    /// The functions that the analyzer is in, the innermost last.
    fns: Vec<FnScope>,
    /// The number of functions so far.
    functions: u32,
    vars: Vec<Owned>,
    globals: Vec<Box<str>>,
    global_ids: Table<Box<str>, u32>,
    /// Globals that are defined earlier in the text.
    defined: Vec<bool>,
    /// Globals that are among the free names.
    is_free: Vec<bool>,
    free: Vec<Free>,
    tools: Vec<Box<str>>,
    tool_ids: Table<Box<str>, ()>,
    /// Namespaces by their aliases.
    aliases: Table<Box<str>, Box<str>>,
    /// Functions that are called without their namespace: the namespace and the name in it.
    referred: Table<Box<str>, (Box<str>, Box<str>)>,
    /// The namespace that the program declares.
    own_namespace: Option<Box<str>>,
    /// The definitions whose values the analyzer is in, and the depth of functions at which they started.
    being_defined: Vec<(Box<str>, usize)>,
    /// Whether the program has a `lazy-seq` or a `lazy-cat`.
    has_lazy: bool,
    depth: usize,
    /// The number of forms so far.
    nodes: usize,
    /// The number of `letfn` so far.
    groups: usize,
    synthetic: u32,
    in_short_fn: bool,
    /// Whether this is in a pattern of `loop`, outside of default values.
    in_loop_pattern: bool,
    /// Whether the text is the prelude: its definitions are built-ins, and calls of them use their rows.
    prelude: bool,
    /// The regular expressions of the program.
    patterns: Vec<Box<str>>,
    /// The first positions of two backslashes in them where one is probably meant.
    doubled: Vec<Span>,
    /// The effort of those that were compiled to check them.
    regex_effort: u64,
}

/// Analyzes all forms of a program.
pub(crate) fn analyze(
    forms: Vec<Form>,
    (source, names): (&str, &Names),
    rows: &Rows,
    shadowed: &[Box<str>],
    prelude: bool,
    interrupt: &Interrupt<'_>,
) -> Result<Analysis, Error> {
    let mut a = Analyzer {
        source,
        names,
        rows,
        interrupt,
        shadowed,
        scope: Scope::new(),
        fns: vec![FnScope::default()],
        functions: 0,
        vars: Vec::with_capacity(16),
        globals: Vec::new(),
        global_ids: Table::default(),
        defined: Vec::new(),
        is_free: Vec::new(),
        free: Vec::new(),
        tools: Vec::new(),
        tool_ids: Table::default(),
        aliases: Table::default(),
        referred: Table::default(),
        own_namespace: None,
        being_defined: Vec::new(),
        has_lazy: false,
        depth: 0,
        nodes: 0,
        groups: 0,
        synthetic: 0,
        in_short_fn: false,
        in_loop_pattern: false,
        patterns: Vec::new(),
        doubled: Vec::new(),
        regex_effort: 0,
        prelude,
    };
    let span = match (forms.first(), forms.last()) {
        (Some(first), Some(last)) => first.span.to(last.span),
        _ => Span::default(),
    };
    let body = a.program_body(&forms, span)?;
    let vars = a.vars.iter().map(|var| var.name).collect();
    Ok(Analysis {
        body,
        globals: a.globals,
        free: a.free,
        tools: a.tools,
        patterns: a.patterns,
        doubled: a.doubled,
        has_lazy: a.has_lazy,
        nodes: a.nodes,
        vars,
    })
}

/// Returns an error of form.
pub(super) fn invalid(span: Span, message: impl Into<String>) -> Error {
    Error::new(Reason::InvalidForm, message).at(span)
}

/// Returns the error of a special form that has too many or too few parts.
pub(super) fn arity(span: Span, name: &str, parts: usize, usage: &str) -> Error {
    let s = if parts == 1 { "" } else { "s" };
    misshapen(span, format!("{name} cannot have {parts} part{s}"), usage)
}

/// Returns the error of a special form whose parts are not what it takes.
pub(super) fn misshapen(span: Span, message: String, usage: &str) -> Error {
    Error::new(Reason::InvalidArity, message).at(span).hint(format!("write {usage}"))
}

/// Returns the error of a form whose bindings are not a vector.
pub(super) fn not_a_vector(span: Span, name: &str, usage: &str) -> Error {
    // The reason is that of the reference.
    misshapen(span, format!("{name} bindings must be a vector"), usage)
}

/// Names from here on are not in the source.
const SYNTHETIC: u32 = 0xF000_0000;

impl<'a> Analyzer<'a> {
    fn text(&self, name: NameId) -> &'a str {
        self.names.text(name)
    }

    /// Creates a variable of the innermost function.
    fn fresh(&mut self) -> Var {
        self.vars.push(Owned { owner: self.fns.len() - 1, captured: 0, is_used: false, name: None });
        Var(self.vars.len() - 1)
    }

    /// Creates a name that no source can have.
    fn synthetic_name(&mut self, span: Span) -> Res<NameId> {
        self.synthetic += 1;
        let name = SYNTHETIC.checked_add(self.synthetic).map(NameId);
        name.ok_or_else(|| {
            Error::new(Reason::ProgramTooLarge, "the program has more than 268,435,455 threading forms with tests")
                .at(span)
                .hint("split the program")
        })
    }

    /// Runs `f`; names bound inside it are no longer visible afterwards.
    fn scoped<T>(&mut self, f: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        let visible = self.scope.len();
        let out = f(self);
        self.scope.truncate(visible);
        out
    }

    /// Analyzes all forms of the program. After an error the remaining forms are analyzed too, so that each error is
    /// reported.
    fn program_body(&mut self, forms: &[Form], span: Span) -> Res<Node> {
        let (mut nodes, mut errors) = (Vec::with_capacity(forms.len()), Vec::new());
        for form in forms {
            match self.node(form, false) {
                Ok(node) => nodes.push(node),
                Err(error) => {
                    let goes_on =
                        !matches!(error.reason, Reason::Timeout | Reason::ProgramTooLarge | Reason::HostFault);
                    errors.push(error);
                    if !goes_on || errors.len() > Error::MORE {
                        break;
                    }
                    self.leave_form(form);
                }
            }
        }
        match (Error::of_several(errors), nodes.pop()) {
            (Some(error), _) => Err(error),
            (None, None) => Ok(Node::nil(span)),
            (None, Some(single)) if nodes.is_empty() => Ok(single),
            (None, Some(last)) => {
                nodes.push(last);
                Ok(Node::new(Kind::Do(nodes), span))
            }
        }
    }

    /// Leaves a form of the program after an error in it. What it was to define counts as defined.
    fn leave_form(&mut self, form: &Form) {
        self.scope.truncate(0);
        self.fns.truncate(1);
        self.fns.iter_mut().for_each(|function| *function = FnScope::default());
        (self.depth, self.in_short_fn, self.in_loop_pattern) = (0, false, false);
        self.being_defined.clear();
        if let FormKind::List(items) = &form.kind
            && let [Form { kind: FormKind::Symbol(what), .. }, Form { kind: FormKind::Symbol(name), .. }, ..] =
                &items[..]
            && matches!(self.text(*what), "def" | "defonce" | "defn" | "defn-" | "defmacro" | "defmulti" | "declare")
        {
            self.define(self.text(*name));
        }
    }

    /// Analyzes several forms; the last one is the value.
    fn body(&mut self, forms: &[Form], span: Span, tail: bool) -> Res<Node> {
        match forms {
            [] => Ok(Node::nil(span)),
            [single] => self.node(single, tail),
            [rest @ .., last] => {
                let mut nodes = Vec::with_capacity(forms.len());
                for form in rest {
                    nodes.push(self.node(form, false)?);
                }
                nodes.push(self.node(last, tail)?);
                Ok(Node::new(Kind::Do(nodes), span))
            }
        }
    }

    fn nodes(&mut self, forms: &[Form]) -> Res<Vec<Node>> {
        self.arguments(forms, None)
    }

    /// Analyzes the arguments of a call, with the value that a threading form inserts.
    fn arguments(&mut self, forms: &[Form], value: Option<Threaded<'_>>) -> Res<Vec<Node>> {
        let mut nodes = Vec::with_capacity(forms.len() + usize::from(value.is_some()));
        if let Some(value) = value.filter(|value| value.place == Place::First) {
            nodes.push(self.threaded(value, false)?);
        }
        for form in forms {
            nodes.push(self.node(form, false)?);
        }
        if let Some(value) = value.filter(|value| value.place == Place::Last) {
            nodes.push(self.threaded(value, false)?);
        }
        Ok(nodes)
    }

    /// Analyzes one form. `tail` means that its value is the value of the loop or function around it.
    fn node(&mut self, form: &Form, tail: bool) -> Res<Node> {
        self.enter_form(form.span)?;
        let out = self.node_kind(form, tail);
        self.depth -= 1;
        out
    }

    fn enter_form(&mut self, span: Span) -> Res<()> {
        self.interrupt.tick()?;
        self.depth += 1;
        self.nodes += 1;
        self.deeper(span)
    }

    fn deeper(&self, span: Span) -> Res<()> {
        if self.depth <= MAX_DEPTH {
            return Ok(());
        }
        Err(Error::new(
            Reason::ParseError,
            format!("the program is nested deeper than {MAX_DEPTH} levels, threading steps included"),
        )
        .at(span)
        .hint("give intermediate results names with let or def")
        .detail("limit", MAX_DEPTH))
    }

    fn node_kind(&mut self, form: &Form, tail: bool) -> Res<Node> {
        let span = form.span;
        let constant = |c| Ok(Node::new(Kind::Const(c), span));
        match &form.kind {
            FormKind::Nil => constant(Constant::Nil),
            FormKind::Bool(b) => constant(Constant::Bool(*b)),
            FormKind::Int(i) => constant(Constant::Int(*i)),
            FormKind::Big(b) => constant(Constant::Big(b.clone())),
            FormKind::Float(f) => constant(Constant::Float(*f)),
            FormKind::Str(s) => constant(Constant::Str(s.clone())),
            FormKind::Regex(s) => constant(self.regex(s, span)?),
            FormKind::Keyword(name) => constant(Constant::Keyword(self.text(*name).into())),
            FormKind::Quote(quoted) => constant(self.quoted(quoted)?),
            FormKind::Symbol(name) => self.symbol(*name, span),
            FormKind::Var(name) => self.symbol(*name, span),
            FormKind::Vector(items) => {
                let nodes = self.nodes(items)?;
                Ok(collection(nodes, span, Constant::Vector, Kind::Vector))
            }
            FormKind::Map(items) => {
                let nodes = self.nodes(items)?;
                Ok(collection(nodes, span, Constant::Map, Kind::Map))
            }
            FormKind::Set(items) => {
                let nodes = self.nodes(items)?;
                Ok(collection(nodes, span, Constant::Set, Kind::Set))
            }
            FormKind::ShortFn(items) => self.short_fn(items, span),
            FormKind::List(items) => self.list(items, span, tail),
        }
    }

    fn list(&mut self, items: &[Form], span: Span, tail: bool) -> Res<Node> {
        let Some((head, args)) = items.split_first() else {
            return Ok(Node::new(Kind::Const(Constant::Vector(Vec::new())), span));
        };
        if let FormKind::Symbol(name) = head.kind {
            if let Some(form) = self.special_form(name) {
                return (form.analyze)(self, args, span, tail);
            }
            if let Some(tool) = self.text(name).strip_prefix("tool/") {
                return self.tool_call(tool, args, span);
            }
        }
        self.call(head, args, None, span)
    }

    /// Returns the special form that a name means at the head of a list.
    fn special_form(&mut self, name: NameId) -> Option<&'static SpecialForm> {
        let form = SpecialForm::by_name(self.text(name))?;
        (form.is_fixed || self.local(name).is_none()).then_some(form)
    }

    /// Analyzes a call of a function, with the value that a threading form inserts.
    fn call(&mut self, head: &Form, args: &[Form], value: Option<Threaded<'_>>, span: Span) -> Res<Node> {
        if let FormKind::Keyword(name) = head.kind {
            let count = args.len() + usize::from(value.is_some());
            if count == 0 || count > 2 {
                return Err(Error::new(
                    Reason::InvalidKeywordCall,
                    format!(
                        ":{} is called with {} arguments; a keyword takes a map and a default",
                        self.text(name),
                        count
                    ),
                )
                .at(span)
                .hint(format!("write (:{} m) or (:{} m default)", self.text(name), self.text(name))));
            }
            let map = match (args, value) {
                ([map], None) => Some(self.node(map, false)?),
                ([], Some(map)) => Some(self.threaded(map, false)?),
                _ => None,
            };
            if let Some(map) = map {
                return Ok(Node::new(Kind::Key(Box::new(map), Constant::Keyword(self.text(name).into()), None), span));
            }
        }
        let called = head;
        let head = self.node(head, false).map_err(|error| self.method_error(error, head, args))?;
        if let (FormKind::Symbol(name), Kind::Const(_), [], None) = (&called.kind, &head.kind, args, value)
            && self.text(*name).contains('/')
        {
            // A constant of a class, as (Math/PI).
            return Ok(head);
        }
        if let (Kind::Builtin(id), [Form { kind: FormKind::Var(_), .. }], None) = (&head.kind, args, value)
            && self.rows.row(*id).name == "fn?"
        {
            // A var has its definition's value here, but is not a function.
            self.node(&args[0], false)?;
            return Ok(Node::new(Kind::Const(Constant::Bool(false)), span));
        }
        let lowering = match head.kind {
            Kind::Builtin(id) => self.rows.row(id).lowering,
            _ => Lowering::Call,
        };
        if let (Lowering::ShowsNames, [name]) = (lowering, args)
            && let Some(page) = self.tool_page(name, span)
        {
            return Ok(page);
        }
        let args = match lowering {
            Lowering::TakesNames if value.is_none() => self.names_or_nodes(args)?,
            Lowering::TakesDefinitions | Lowering::ShowsNames if value.is_none() => self.name_and_value(args)?,
            _ => self.arguments(args, value)?,
        };
        if let Kind::Builtin(id) = head.kind {
            let row = self.rows.row(id);
            match row.takes(args.len()) {
                true if args.len() < 250 => return Ok(Node::new(Kind::CallBuiltin(id, args), span)),
                false if row.lowering == Lowering::ChecksArity => {
                    return Err(arity(span, row.name, args.len(), row.usage));
                }
                _ => {}
            }
        }
        Ok(Node::new(Kind::Call(Box::new(head), args), span))
    }

    /// Analyzes arguments among which a bare name is a symbol, unless it is a local.
    fn names_or_nodes(&mut self, args: &[Form]) -> Res<Vec<Node>> {
        let mut nodes = Vec::with_capacity(args.len());
        for arg in args {
            let quoted = match arg.kind {
                FormKind::Symbol(name) if self.stands_for_itself(name) => Some(self.text(name)),
                _ => None,
            };
            nodes.push(match quoted {
                Some(name) => Node::new(Kind::Const(Constant::Symbol(name.into())), arg.span),
                None => self.node(arg, false)?,
            });
        }
        Ok(nodes)
    }

    /// Returns a name, and the value that it has if it is a definition.
    fn name_and_value(&mut self, args: &[Form]) -> Res<Vec<Node>> {
        let mut nodes = self.names_or_nodes(args)?;
        if let [Form { kind: FormKind::Symbol(name), span }] = *args
            && self.stands_for_itself(name)
            && let Some(global) = self.maybe_defined(name, span)
        {
            nodes.push(Node::new(Kind::Data(global), span));
        }
        Ok(nodes)
    }

    fn stands_for_itself(&mut self, name: NameId) -> bool {
        let text = self.text(name);
        !text.starts_with('%') && !matches!(text, "*1" | "*2" | "*3") && self.local(name).is_none()
    }

    fn program_form(&mut self, args: &[Form], span: Span, tail: bool) -> Res<Node> {
        if args.is_empty() {
            return Err(arity(span, "program", args.len(), "(program form ...)"));
        }
        self.body(args, span, tail)
    }

    /// Analyzes a form that ends the program with a value, or what continues there.
    fn end_form(&mut self, name: &str, kind: fn(Box<Node>) -> Kind, args: &[Form], span: Span) -> Res<Node> {
        match args {
            [value] => Ok(Node::new(kind(Box::new(self.node(value, false)?)), span)),
            _ => Err(arity(span, name, args.len(), &format!("({name} value)"))),
        }
    }

    fn quote_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        match args {
            [form] => Ok(Node::new(Kind::Const(self.quoted(form)?), span)),
            _ => Err(invalid(span, "quote takes one form").hint("write (quote name) or 'name")),
        }
    }

    /// Converts a form to data: names are symbols, lists are vectors, and a quote inside is the vector that it
    /// abbreviates.
    fn quoted(&mut self, form: &Form) -> Res<Constant> {
        self.interrupt.tick()?;
        let mut all = |items: &[Form]| items.iter().map(|item| self.quoted(item)).collect::<Res<Vec<Constant>>>();
        let symbol = |name: &str| Constant::Symbol(name.into());
        Ok(match &form.kind {
            FormKind::Vector(items) | FormKind::List(items) => Constant::Vector(all(items)?),
            FormKind::Map(items) => Constant::Map(all(items)?),
            FormKind::Set(items) => Constant::Set(all(items)?),
            FormKind::Symbol(name) => symbol(self.text(*name)),
            FormKind::Quote(inner) => Constant::Vector(vec![symbol("quote"), self.quoted(inner)?]),
            FormKind::Var(name) => Constant::Vector(vec![symbol("var"), symbol(self.text(*name))]),
            FormKind::Regex(pattern) => self.regex(pattern, form.span)?,
            _ => self.scalar(form).ok_or_else(|| {
                invalid(form.span, "quote takes names and plain values").hint("leave functions outside the quote")
            })?,
        })
    }

    /// Checks a regular expression of the program.
    fn regex(&mut self, pattern: &str, span: Span) -> Res<Constant> {
        // Beyond the limit a pattern is checked when it is used, where it costs fuel.
        if self.regex_effort < Regexes::CHECKED {
            self.interrupt.check()?;
            match Regexes::check(pattern) {
                Ok(effort) => self.regex_effort += effort,
                Err(mut error) => {
                    error.reason = Reason::InvalidForm;
                    return Err(error.at(span));
                }
            }
        }
        self.note_doubled(pattern, span);
        self.patterns.push(pattern.into());
        Ok(Constant::Regex(pattern.into()))
    }

    /// Notes where a pattern literal has two backslashes and one is probably meant.
    fn note_doubled(&mut self, pattern: &str, span: Span) {
        /// The maximum number of notes on a program.
        const NOTES: usize = 8;
        let Some(at) = doubled_backslash(pattern).filter(|_| self.doubled.len() < NOTES) else { return };
        // The literal starts with #".
        let start = span.start.saturating_add(2).saturating_add(u32::try_from(at).unwrap_or(u32::MAX));
        let place = Span::new(start, start.saturating_add(3));
        // A form may be analyzed more than once.
        if !self.doubled.contains(&place) {
            self.doubled.push(place);
        }
    }

    fn tool_call(&mut self, tool: &str, args: &[Form], span: Span) -> Res<Node> {
        self.note_tool(tool);
        let args = self.nodes(args)?;
        Ok(Node::new(Kind::Call(Box::new(Node::new(Kind::Tool(tool.into()), span)), args), span))
    }

    /// `(doc tool/name)`: prints the host's documentation of the tool.
    fn tool_page(&self, name: &Form, span: Span) -> Option<Node> {
        let FormKind::Symbol(name) = name.kind else { return None };
        let tool = self.text(name).strip_prefix("tool/")?;
        let constant = |constant| Node::new(Kind::Const(constant), span);
        let asked = vec![constant(Constant::Str("name".into())), constant(Constant::Str(tool.into()))];
        let asks = Node::new(Kind::Tool(TOOL_PAGE.into()), span);
        let page = Node::new(Kind::Call(Box::new(asks), vec![Node::new(Kind::Map(asked), span)]), span);
        Some(Node::new(Kind::CallBuiltin(self.rows.by_name("println")?, vec![page]), span))
    }

    fn note_tool(&mut self, tool: &str) {
        if !self.tool_ids.contains_key(tool) {
            self.tool_ids.insert(tool.into(), ());
            self.tools.push(tool.into());
        }
    }

    /// Returns a name as a value.
    fn builtin(&mut self, name: &str, span: Span) -> Option<Node> {
        self.rows.by_name(name).map(|id| Node::new(Kind::Builtin(id), span))
    }
}

/// A tool that every host has in addition to those that it grants. It is called with `{"name" ..}` for the
/// documentation of a tool, and returns text. No granted tool has this name.
pub const TOOL_PAGE: &str = "doc/tool";

/// Returns a literal collection: a constant if all its parts are.
fn collection(
    nodes: Vec<Node>,
    span: Span,
    constant: fn(Vec<Constant>) -> Constant,
    kind: fn(Vec<Node>) -> Kind,
) -> Node {
    if nodes.iter().all(|n| matches!(n.kind, Kind::Const(_))) {
        let parts = nodes.into_iter().filter_map(|n| match n.kind {
            Kind::Const(c) => Some(c),
            _ => None,
        });
        return Node::new(Kind::Const(constant(parts.collect())), span);
    }
    Node::new(kind(nodes), span)
}

/// `(if test then otherwise)`
fn if_node(test: Node, then: Node, otherwise: Node, span: Span) -> Node {
    Node::new(Kind::If(Box::new(test), Box::new(then), Box::new(otherwise)), span)
}

fn prim(op: Prim, args: Vec<Node>, span: Span) -> Node {
    Node::new(Kind::Prim(op, args), span)
}

fn let_node(binds: Vec<Bind>, body: Node, span: Span) -> Node {
    if binds.is_empty() { body } else { Node::new(Kind::Let(binds, Box::new(body)), span) }
}
