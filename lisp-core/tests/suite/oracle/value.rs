//! The oracle's values: standard collections, in the order in which the language walks maps and sets.

use num_bigint::BigInt;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::eval::Closure;

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Nil,
    Bool(bool),
    Int(BigInt),
    Str(String),
    Key(String),
    List(Vec<Value>),
    Map(BTreeMap<Value, Value>),
    Set(BTreeSet<Value>),
    /// A built-in by name.
    Builtin(&'static str),
    Closure(Rc<Closure>),
}

impl Value {
    pub(crate) fn truthy(&self) -> bool {
        !matches!(self, Value::Nil | Value::Bool(false))
    }

    /// Kinds in their order.
    fn rank(&self) -> u8 {
        match self {
            Value::Int(_) => 0,
            Value::Nil => 1,
            Value::Bool(_) => 2,
            Value::Key(_) => 3,
            Value::Builtin(_) | Value::Closure(_) => 5,
            Value::Map(_) => 7,
            Value::Set(_) => 8,
            Value::List(_) => 9,
            Value::Str(_) => 10,
        }
    }
}

impl From<i64> for Value {
    fn from(n: i64) -> Value {
        Value::Int(n.into())
    }
}

/// The order of keys. Of collections the shorter comes first.
impl Ord for Value {
    fn cmp(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Int(a), Value::Int(b)) => a.cmp(b),
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::Str(a), Value::Str(b)) | (Value::Key(a), Value::Key(b)) => a.cmp(b),
            (Value::List(a), Value::List(b)) => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
            (Value::Map(a), Value::Map(b)) => {
                a.len().cmp(&b.len()).then_with(|| a.keys().cmp(b.keys())).then_with(|| a.values().cmp(b.values()))
            }
            (Value::Set(a), Value::Set(b)) => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
            (Value::Builtin(a), Value::Builtin(b)) => a.cmp(b),
            (Value::Closure(a), Value::Closure(b)) => Rc::as_ptr(a).cmp(&Rc::as_ptr(b)),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Value) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

/// The value as the reader reads it.
pub(crate) fn readable(v: &Value) -> String {
    let joined = |items: Vec<String>| items.join(" ");
    match v {
        Value::Nil => "nil".into(),
        Value::Bool(b) => b.to_string(),
        Value::Int(n) => n.to_string(),
        Value::Str(s) => format!("\"{}\"", s.replace('\\', "\\\\").replace('"', "\\\"")),
        Value::Key(k) => format!(":{k}"),
        Value::List(items) => format!("[{}]", joined(items.iter().map(readable).collect())),
        Value::Map(m) => {
            format!("{{{}}}", joined(m.iter().map(|(k, v)| format!("{} {}", readable(k), readable(v))).collect()))
        }
        Value::Set(s) => format!("#{{{}}}", joined(s.iter().map(readable).collect())),
        Value::Builtin(_) | Value::Closure(_) => "#fn".into(),
    }
}

/// The value as `str` and `println` show it: a text as it is, nil as nothing in a `str`.
pub(crate) fn plain(v: &Value, nil: &str) -> String {
    match v {
        Value::Str(s) => s.clone(),
        Value::Nil => nil.into(),
        other => readable(other),
    }
}
