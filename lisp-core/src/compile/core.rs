//! The core forms: the output of the analyzer. Names are resolved, patterns destructured, macros expanded.

use crate::code::BuiltinId;
use crate::error::Span;
use num_bigint::BigInt;
use std::sync::Arc;

/// A local variable. Numbers are unique in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Var(pub(crate) usize);

/// A core form and its position.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

/// A value known at compile time.
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
    /// Returns true unless it is a collection.
    pub(crate) fn is_scalar(&self) -> bool {
        !matches!(self, Constant::Vector(_) | Constant::Map(_) | Constant::Set(_))
    }
}

/// Operations that only the analyzer generates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prim {
    /// The value, which must be a vector or nil; with a rest pattern after it, anything that can be walked
    SeqArg(bool),
    /// The value, which must be a map or nil
    MapArg,
    /// The element at an index, or nil
    Nth(u16),
    /// The elements from an index on
    Rest(u16),
    /// The map of a vector of alternating keys and values
    KeywordArgs,
    /// `(nil? x)`
    IsNil,
    /// The running function
    SelfFn,
    /// The elements that `when-first` walks
    Seq,
    /// Whether the value stands for an error of the class with this number
    IsCaught(u16),
    /// Whether the value is of the class with this number
    IsInstance(u16),
    /// A function of a group, both by number, from inside another one of the group
    Sibling(usize, usize),
}

/// One step of a `let`: binds a form's value to a variable. Without a variable the form runs for its effect.
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
    /// The parameters, as shown to a person.
    pub(crate) display: Arc<str>,
    pub(crate) params: Vec<Var>,
    pub(crate) rest: Option<Var>,
    /// The variables of enclosing functions that it uses.
    pub(crate) captures: Vec<Var>,
    /// Runs before the body, and again after each `recur`.
    pub(crate) prologue: Vec<Bind>,
    pub(crate) body: Node,
    /// Whether it has a `recur` of its own.
    pub(crate) recurs: bool,
    /// Further arities, with the same captures.
    pub(crate) others: Vec<FnNode>,
    /// The documentation string and the position of its definition, if it has one.
    pub(crate) definition: Option<(Option<Arc<str>>, Span)>,
}

/// The functions of a `letfn`: they have the same captures, so each can create any other.
#[derive(Clone, Debug)]
pub(crate) struct FnGroup {
    pub(crate) number: usize,
    pub(crate) functions: Vec<(Var, FnNode)>,
}

/// One clause of `for` or `doseq`.
#[derive(Clone, Debug)]
pub(crate) enum Clause {
    /// Walk a collection: each element is bound to the variable, then the patterns are destructured.
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
    /// Alternating tests and results, then the last result
    Cond(Vec<(Node, Node)>, Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
    Let(Vec<Bind>, Box<Node>),
    /// The body, with the variables at their first values; `Recur` starts it again with others
    Loop(Vec<(Var, Node)>, Box<Node>),
    Recur(Vec<Node>),
    Fn(Box<FnNode>),
    Letfn(FnGroup, Box<Node>),
    Call(Box<Node>, Vec<Node>),
    CallBuiltin(BuiltinId, Vec<Node>),
    Prim(Prim, Vec<Node>),
    /// The value at a key or its counterpart; the default if there is neither
    Key(Box<Node>, Constant, Option<Box<Node>>),
    /// The name of a definition
    Name(u32),
    Def(u32, Box<Node>),
    DefOnce(u32, Box<Node>),
    Case(Box<Node>, Vec<(Vec<Constant>, Node)>, Box<Node>),
    /// Collects the body's values, or runs it for its effect
    For(Vec<Clause>, Box<Node>, bool),
    /// The body for each number from 0 up to the other node's value
    Times(Var, Box<Node>, Box<Node>),
    /// The body while the test holds
    While(Box<Node>, Box<Node>),
    /// The body; after an error the handler, with the variable for the error
    Try(Box<Node>, Var, Box<Node>),
    /// The body, then the other node, also after an error
    Finally(Box<Node>, Box<Node>),
    Throw(Box<Node>),
    /// Throws the error of a variable again
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
