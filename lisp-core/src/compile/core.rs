//! The core forms: what the analyzer makes of source forms. Names are resolved, patterns taken apart, macros gone.

use crate::code::BuiltinId;
use crate::error::Span;
use num_bigint::BigInt;
use std::sync::Arc;

/// A local variable. Numbers are unique in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Var(pub(crate) usize);

/// A core form and where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

/// A value known when the program is compiled.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Constant {
    Nil,
    Bool(bool),
    Int(i64),
    Big(BigInt),
    Float(f64),
    Str(Box<str>),
    Keyword(Box<str>),
    Symbol(Box<str>),
    Regex(Box<str>),
    Vector(Vec<Constant>),
    Map(Vec<Constant>),
    Set(Vec<Constant>),
}

impl Constant {
    /// Is it no collection?
    pub(crate) fn is_scalar(&self) -> bool {
        !matches!(self, Constant::Vector(_) | Constant::Map(_) | Constant::Set(_))
    }
}

/// Operations that only the analyzer asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prim {
    /// The value, which must be a vector or nil; with a rest behind it, anything that can be walked
    SeqArg(bool),
    /// The value, which must be a map or nil
    MapArg,
    /// The element at an index, or nil
    Nth(u16),
    /// The elements from an index on
    Rest(u16),
    /// The map of a vector of keys and values in turn
    KeywordArgs,
    /// `(nil? x)`
    IsNil,
    /// The running function
    SelfFn,
    /// What `when-first` walks: the elements
    Seq,
    /// Does the value stand for an error of the class with this number?
    IsCaught(u16),
    /// Is the value of the class with this number?
    IsInstance(u16),
    /// The function of a group, both by number, from inside another one of it
    Sibling(usize, usize),
}

/// One step of a `let`: the value of a form gets a name. Without a variable the form runs for its effect.
#[derive(Clone, Debug)]
pub(crate) struct Bind {
    pub(crate) var: Option<Var>,
    pub(crate) init: Node,
}

/// A function.
#[derive(Clone, Debug)]
pub(crate) struct FnNode {
    /// Its name, if it has one.
    pub(crate) name: Option<Arc<str>>,
    /// The parameters as a person reads them.
    pub(crate) display: Arc<str>,
    pub(crate) params: Vec<Var>,
    pub(crate) rest: Option<Var>,
    /// What it takes from the functions around it.
    pub(crate) captures: Vec<Var>,
    /// Runs before the body, and again after each `recur`.
    pub(crate) prologue: Vec<Bind>,
    pub(crate) body: Node,
    /// Has a `recur` of its own.
    pub(crate) recurs: bool,
    /// The same for other numbers of arguments, with the same captures.
    pub(crate) others: Vec<FnNode>,
}

/// The functions of a `letfn`: they have the same captures, so each can make any other.
#[derive(Clone, Debug)]
pub(crate) struct FnGroup {
    pub(crate) number: usize,
    pub(crate) functions: Vec<(Var, FnNode)>,
}

/// One clause of `for` or `doseq`.
#[derive(Clone, Debug)]
pub(crate) enum Clause {
    /// Walk a collection; each element goes to the variable, then the patterns are taken apart.
    Each(Var, Node, Vec<Bind>),
    Let(Vec<Bind>),
    When(Node),
    While(Node),
}

/// The kinds of core form.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Const(Constant),
    Local(Var),
    Global(u32),
    /// `data/name`, a definition with a reserved name
    Data(u32),
    Builtin(BuiltinId),
    /// A tool as a value
    Tool(Box<str>),
    Vector(Vec<Node>),
    Map(Vec<Node>),
    Set(Vec<Node>),
    Do(Vec<Node>),
    If(Box<Node>, Box<Node>, Box<Node>),
    /// Tests and results in turn, then the last result
    Cond(Vec<(Node, Node)>, Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
    Let(Vec<Bind>, Box<Node>),
    /// Each step replaces the variable's value while the test holds: `some->` and `cond->`
    Loop(Vec<(Var, Node)>, Box<Node>),
    Recur(Vec<Node>),
    Fn(Box<FnNode>),
    Letfn(FnGroup, Box<Node>),
    Call(Box<Node>, Vec<Node>),
    CallBuiltin(BuiltinId, Vec<Node>),
    Prim(Prim, Vec<Node>),
    /// The value at a key, flexible; the default when there is no such key
    Key(Box<Node>, Constant, Option<Box<Node>>),
    /// The name of a definition
    Name(u32),
    Def(u32, Box<Node>),
    DefOnce(u32, Box<Node>),
    Case(Box<Node>, Vec<(Vec<Constant>, Node)>, Box<Node>),
    /// Collects the body's values, or runs it for effect
    For(Vec<Clause>, Box<Node>, bool),
    /// The body for each number from 0 up to the other node's
    Times(Var, Box<Node>, Box<Node>),
    /// The body as long as the test holds
    While(Box<Node>, Box<Node>),
    /// The body; after an error the handler, with the variable for the error
    Try(Box<Node>, Var, Box<Node>),
    /// The body, then the other node, after an error too
    Finally(Box<Node>, Box<Node>),
    Throw(Box<Node>),
    /// The error of a variable goes on
    Rethrow(Var),
    Return(Box<Node>),
    Fail(Box<Node>),
}

impl Node {
    pub(crate) fn new(kind: Kind, span: Span) -> Self {
        Node { kind, span }
    }

    pub(crate) fn nil(span: Span) -> Self {
        Node::new(Kind::Const(Constant::Nil), span)
    }

    pub(crate) fn local(var: Var, span: Span) -> Self {
        Node::new(Kind::Local(var), span)
    }
}
