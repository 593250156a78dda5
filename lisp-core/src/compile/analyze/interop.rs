//! Java interop besides `(.method x)` and `(Class/member x)`: `new`, `.`, `..` and `instance?`.

use super::names::constant_node;
use super::{Analyzer, Res, arity, invalid, misshapen, prim};
use crate::builtins::{foreign, instances, java};
use crate::compile::core::{Kind, Node, Prim};
use crate::error::Span;
use crate::syntax::{Form, FormKind};

/// The predicates for classes in `instance?`, and the classes without their package.
const CLASSES: &[(&str, &[&str])] = &[
    ("string?", &["String", "CharSequence"]),
    ("char?", &["Character"]),
    ("number?", &["Number"]),
    ("int?", &["Long", "Integer", "Short", "Byte", "BigInt", "BigInteger"]),
    ("float?", &["Double", "Float"]),
    ("boolean?", &["Boolean"]),
    ("keyword?", &["Keyword"]),
    (
        "map?",
        &["Map", "IPersistentMap", "APersistentMap", "PersistentArrayMap", "PersistentHashMap", "PersistentTreeMap"],
    ),
    ("set?", &["Set", "IPersistentSet", "APersistentSet", "PersistentHashSet", "PersistentTreeSet"]),
    (
        "vector?",
        &[
            "List",
            "IPersistentVector",
            "APersistentVector",
            "PersistentVector",
            "Sequential",
            "ISeq",
            "LazySeq",
            "IPersistentList",
            "PersistentList",
        ],
    ),
    ("coll?", &["Collection", "IPersistentCollection"]),
    ("fn?", &["Fn", "AFn"]),
    ("ifn?", &["IFn"]),
    ("regex?", &["Pattern"]),
    ("any?", &["Object"]),
];

impl Analyzer<'_> {
    /// `(new Class arg ...)`
    pub(super) fn new_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        let Some((Form { kind: FormKind::Symbol(class), .. }, args)) = args.split_first() else {
            return Err(misshapen(span, "new needs the name of a class".to_owned(), "(new Class argument ...)"));
        };
        let class = self.text(*class);
        self.member(&format!("{class}."), class, None, args, span)
    }

    /// `(. x method arg ...)`, `(. Class method arg ...)`
    pub(super) fn dot_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        match args {
            [target, Form { kind: FormKind::List(items), .. }] if !items.is_empty() => self.dot(target, items, span),
            [target, items @ ..] if !items.is_empty() => self.dot(target, items, span),
            _ => Err(arity(span, ".", args.len(), "(. x method argument ...)")),
        }
    }

    /// `(.. x (method arg ...) method ...)`
    pub(super) fn dots_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        let items = |form: &Form| match &form.kind {
            FormKind::List(items) if !items.is_empty() => items.clone(),
            _ => vec![form.clone()],
        };
        let [target, first, more @ ..] = args else {
            return Err(arity(span, "..", args.len(), "(.. x (method argument ...) method ...)"));
        };
        // Each step is inside the call of the next one.
        self.depth += more.len();
        self.deeper(span)?;
        let mut value = self.dot(target, &items(first), span)?;
        for step in more {
            self.depth -= 1;
            value = self.method(value, &items(step), span)?;
        }
        Ok(value)
    }

    fn dot(&mut self, target: &Form, items: &[Form], span: Span) -> Res<Node> {
        if let FormKind::Symbol(name) = target.kind
            && self.local(name).is_none()
            && foreign::is_class_name(self.text(name))
        {
            let (member, args) = self.member_name(items, span)?;
            let class = self.text(name);
            if let (Some(constant), []) = (java::constant(&format!("{class}/{member}")), args) {
                return Ok(constant_node(constant, span));
            }
            return self.member(&format!("{class}/{member}"), class, None, args, span);
        }
        let target = self.node(target, false)?;
        self.method(target, items, span)
    }

    fn method(&mut self, target: Node, items: &[Form], span: Span) -> Res<Node> {
        let (name, args) = self.member_name(items, span)?;
        self.member(&format!(".{name}"), "", Some(target), args, span)
    }

    /// Returns the name of a member, and its arguments.
    fn member_name<'f>(&self, items: &'f [Form], span: Span) -> Res<(&str, &'f [Form])> {
        match items.split_first() {
            // A field may have a hyphen before its name; a dot is one too many.
            Some((Form { kind: FormKind::Symbol(name), .. }, args))
                if !self.text(*name).trim_start_matches(['-', '.']).is_empty() =>
            {
                Ok((self.text(*name).trim_start_matches(['-', '.']), args))
            }
            _ => Err(invalid(span, "the name of a method is expected").hint("write (.method x argument ...)")),
        }
    }

    /// A call of a member by its name here: `.length`, `Math/abs`, `String.`
    fn member(&mut self, name: &str, class: &str, target: Option<Node>, args: &[Form], span: Span) -> Res<Node> {
        let Some(id) = self.rows.by_name(name) else {
            return Err(foreign::no_member(name, class).at(span));
        };
        let mut nodes = Vec::with_capacity(args.len() + 1);
        nodes.extend(target);
        for arg in args {
            nodes.push(self.node(arg, false)?);
        }
        let function = Node::new(Kind::Builtin(id), span);
        Ok(Node::new(Kind::Call(Box::new(function), nodes), span))
    }

    /// `(instance? Class x)`
    pub(super) fn instance_form(&mut self, args: &[Form], span: Span) -> Res<Node> {
        let [Form { kind: FormKind::Symbol(class), span: at }, value] = args else {
            return Err(misshapen(
                span,
                "instance? needs the name of a class and a value".to_owned(),
                "(instance? Class x)",
            ));
        };
        let class = self.text(*class);
        let last = class.rsplit('.').next().unwrap_or(class);
        let predicate =
            CLASSES.iter().find(|(_, classes)| classes.contains(&last)).and_then(|row| self.rows.by_name(row.0));
        let value = self.node(value, false)?;
        match (predicate, instances::number_of(class)) {
            (Some(id), _) => Ok(Node::new(Kind::CallBuiltin(id, vec![value]), span)),
            (None, Some(number)) => Ok(prim(Prim::IsInstance(number), vec![value], span)),
            (None, None) => Err(foreign::no_instances(class).at(*at)),
        }
    }
}
