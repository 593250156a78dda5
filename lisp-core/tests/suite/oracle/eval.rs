//! The oracle: it walks the tree, in environments that are lists, and recurses. Small, slow, obviously right.

use super::builtins;
use super::value::{Value, readable};
use std::fmt::Write;
use std::rc::Rc;

/// A program's tree; [`source`] writes it as text.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Const(Value),
    Var(String),
    List(Vec<Expr>),
    /// Keys are constants, all different.
    Map(Vec<(Value, Expr)>),
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Let(String, Box<Expr>, Box<Expr>),
    Do(Vec<Expr>),
    Fn(Rc<Lambda>),
    Call(Box<Expr>, Vec<Expr>),
    /// `(loop [i 0 acc start] (if (< i rounds) (recur (inc i) step) acc))`
    Loop {
        i: String,
        acc: String,
        rounds: u8,
        start: Box<Expr>,
        step: Box<Expr>,
    },
    /// `(for [var list :when test] body)`
    For {
        var: String,
        list: Box<Expr>,
        test: Box<Expr>,
        body: Box<Expr>,
    },
}

#[derive(Debug)]
pub(crate) struct Lambda {
    pub(crate) params: Vec<String>,
    pub(crate) body: Expr,
}

#[derive(Debug)]
pub(crate) struct Closure {
    lambda: Rc<Lambda>,
    env: Env,
}

/// The innermost name first.
type Env = Option<Rc<Scope>>;

#[derive(Debug)]
pub(crate) struct Scope {
    name: String,
    value: Value,
    outer: Env,
}

/// The reason of an error. It is named anew by the innermost function that calls functions, once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) reason: &'static str,
    /// Has it left the function it happened in?
    pub(crate) in_closure: bool,
    pub(crate) placed: bool,
}

pub(crate) type Res = Result<Value, Failure>;

pub(crate) fn fail<T>(reason: &'static str) -> Result<T, Failure> {
    Err(Failure { reason, in_closure: false, placed: false })
}

/// A run: what it printed, and what it did. A program that does too much is not worth comparing.
#[derive(Default)]
pub(crate) struct Run {
    pub(crate) prints: Vec<String>,
    work: usize,
}

/// The reason that the oracle gives up for, which no program fails for.
pub(crate) const TOO_MUCH: &str = "too much";
/// Expressions evaluated, elements and digits made.
const WORK: usize = 20_000;

/// How much a value holds.
fn size(v: &Value) -> usize {
    match v {
        Value::List(items) => items.iter().map(size).sum::<usize>() + 1,
        Value::Map(m) => m.iter().map(|(k, v)| size(k) + size(v)).sum::<usize>() + 1,
        Value::Set(s) => s.iter().map(size).sum::<usize>() + 1,
        Value::Int(n) => n.bits() as usize / 64 + 1,
        Value::Str(s) => s.len() / 16 + 1,
        _ => 1,
    }
}

fn bind(env: &Env, name: &str, value: Value) -> Env {
    Some(Rc::new(Scope { name: name.to_owned(), value, outer: env.clone() }))
}

fn look_up(mut env: &Env, name: &str) -> Value {
    while let Some(scope) = env {
        if scope.name == name {
            return scope.value.clone();
        }
        env = &scope.outer;
    }
    panic!("the grammar made a name that nothing binds: {name}")
}

impl Run {
    pub(crate) fn eval(&mut self, e: &Expr, env: &Env) -> Res {
        let value = self.value_of(e, env)?;
        self.work += size(&value);
        if self.work > WORK { fail(TOO_MUCH) } else { Ok(value) }
    }

    fn value_of(&mut self, e: &Expr, env: &Env) -> Res {
        Ok(match e {
            Expr::Const(v) => v.clone(),
            Expr::Var(name) => look_up(env, name),
            Expr::List(items) => Value::List(items.iter().map(|e| self.eval(e, env)).collect::<Result<_, _>>()?),
            Expr::Map(entries) => {
                let entries = entries.iter().map(|(k, e)| Ok((k.clone(), self.eval(e, env)?)));
                Value::Map(entries.collect::<Result<_, _>>()?)
            }
            Expr::If(test, then, other) => {
                let branch = if self.eval(test, env)?.truthy() { then } else { other };
                self.eval(branch, env)?
            }
            Expr::And(items) | Expr::Or(items) => {
                let stops_at = matches!(e, Expr::Or(_));
                let mut value = if stops_at { Value::Nil } else { Value::Bool(true) };
                for item in items {
                    value = self.eval(item, env)?;
                    if value.truthy() == stops_at {
                        break;
                    }
                }
                value
            }
            Expr::Let(name, init, body) => {
                let value = self.eval(init, env)?;
                self.eval(body, &bind(env, name, value))?
            }
            Expr::Do(items) => {
                let mut value = Value::Nil;
                for item in items {
                    value = self.eval(item, env)?;
                }
                value
            }
            Expr::Fn(lambda) => Value::Closure(Rc::new(Closure { lambda: lambda.clone(), env: env.clone() })),
            Expr::Call(head, args) => {
                let f = self.eval(head, env)?;
                let args = args.iter().map(|e| self.eval(e, env)).collect::<Result<Vec<_>, _>>()?;
                self.call(&f, args)?
            }
            Expr::Loop { i, acc, rounds, start, step } => {
                let mut value = self.eval(start, env)?;
                for round in 0..*rounds {
                    let env = bind(&bind(env, i, i64::from(round).into()), acc, value);
                    value = self.eval(step, &env)?;
                }
                value
            }
            Expr::For { var, list, test, body } => {
                let mut out = Vec::new();
                for item in builtins::items(&self.eval(list, env)?)? {
                    let env = bind(env, var, item);
                    if self.eval(test, &env)?.truthy() {
                        out.push(self.eval(body, &env)?);
                    }
                }
                Value::List(out)
            }
        })
    }

    pub(crate) fn call(&mut self, f: &Value, args: Vec<Value>) -> Res {
        match f {
            Value::Closure(closure) => {
                if args.len() != closure.lambda.params.len() {
                    return fail("arity_mismatch");
                }
                let mut env = closure.env.clone();
                for (name, value) in closure.lambda.params.iter().zip(args) {
                    env = bind(&env, name, value);
                }
                self.eval(&closure.lambda.body, &env).map_err(|failure| Failure { in_closure: true, ..failure })
            }
            Value::Builtin(name) => builtins::call(self, name, args),
            Value::Key(_) | Value::Map(_) | Value::Set(_) if args.len() != 1 => fail("arity_error"),
            Value::Key(_) => Ok(builtins::look(&args[0], f)),
            Value::Map(_) => Ok(builtins::look(f, &args[0])),
            Value::Set(set) => Ok(if set.contains(&args[0]) { args[0].clone() } else { Value::Nil }),
            _ => fail("not_callable"),
        }
    }

    /// A call from inside a function such as `map`: it gives the errors inside other names, the innermost one only.
    pub(crate) fn call_from(&mut self, f: &Value, args: Vec<Value>) -> Res {
        self.call(f, args).map_err(|mut failure| {
            if !failure.placed {
                failure.placed = true;
                failure.reason = match (failure.reason, failure.in_closure) {
                    ("arity_mismatch" | "arithmetic_error", false) => "runtime_error",
                    (
                        "arithmetic_error" | "destructure_error" | "not_callable" | "unbound_var" | "runtime_error"
                        | "arity_error" | "arity_mismatch",
                        true,
                    ) => "type_error",
                    (reason, _) => reason,
                };
            }
            failure
        })
    }
}

/// The expression as text.
pub(crate) fn source(e: &Expr) -> String {
    let mut out = String::new();
    write_expr(&mut out, e);
    out
}

fn write_expr(out: &mut String, e: &Expr) {
    let all = |out: &mut String, open: &str, items: &[Expr], close: &str| {
        out.push_str(open);
        for (i, item) in items.iter().enumerate() {
            if i > 0 || open.ends_with(|c: char| c.is_alphabetic()) {
                out.push(' ');
            }
            write_expr(out, item);
        }
        out.push_str(close);
    };
    match e {
        Expr::Const(Value::Builtin(name)) => out.push_str(name),
        Expr::Const(v) => out.push_str(&readable(v)),
        Expr::Var(name) => out.push_str(name),
        Expr::List(items) => all(out, "[", items, "]"),
        Expr::Map(entries) => {
            let entries: Vec<String> = entries.iter().map(|(k, e)| format!("{} {}", readable(k), source(e))).collect();
            out.push_str(&format!("{{{}}}", entries.join(" ")));
        }
        Expr::If(test, then, other) => {
            // Writing to a string cannot fail.
            let _ = write!(out, "(if {} {} {})", source(test), source(then), source(other));
        }
        Expr::And(items) => all(out, "(and", items, ")"),
        Expr::Or(items) => all(out, "(or", items, ")"),
        Expr::Let(name, init, body) => drop(write!(out, "(let [{name} {}] {})", source(init), source(body))),
        Expr::Do(items) => all(out, "(do", items, ")"),
        Expr::Fn(lambda) => drop(write!(out, "(fn [{}] {})", lambda.params.join(" "), source(&lambda.body))),
        Expr::Call(head, args) => {
            out.push('(');
            write_expr(out, head);
            for arg in args {
                out.push(' ');
                write_expr(out, arg);
            }
            out.push(')');
        }
        Expr::Loop { i, acc, rounds, start, step } => {
            let (start, step) = (source(start), source(step));
            let _ = write!(out, "(loop [{i} 0 {acc} {start}] (if (< {i} {rounds}) (recur (inc {i}) {step}) {acc}))");
        }
        Expr::For { var, list, test, body } => {
            let (list, test, body) = (source(list), source(test), source(body));
            let _ = write!(out, "(for [{var} {list} :when {test}] {body})");
        }
    }
}
