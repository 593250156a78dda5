//! Random programs, mostly of the right types, from a row of bytes: fewer and smaller bytes make smaller programs.

use super::eval::{Expr, Lambda};
use super::value::Value;
use std::rc::Rc;

/// What an expression should come to; now and then it comes to something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Int,
    Bool,
    Text,
    /// a vector of integers
    Ints,
    /// a map from keywords to integers
    Map,
    Set,
}

const TYPES: [Type; 6] = [Type::Int, Type::Bool, Type::Text, Type::Ints, Type::Map, Type::Set];

pub(crate) struct Grammar<'a> {
    bytes: &'a [u8],
    at: usize,
    names: Vec<(String, Type)>,
    count: usize,
}

/// No expression is nested deeper.
const DEPTH: usize = 6;
/// No program takes more choices.
const CHOICES: usize = 400;

/// A program of these bytes.
pub(crate) fn program(bytes: &[u8]) -> Expr {
    let mut g = Grammar { bytes, at: 0, names: Vec::new(), count: 0 };
    let parts = (0..3).map(|_| {
        let ty = TYPES[g.below(6)];
        g.expr(ty, 0)
    });
    Expr::List(parts.collect())
}

pub(crate) fn builtin(name: &'static str) -> Expr {
    Expr::Const(Value::Builtin(name))
}

fn key(n: usize) -> Value {
    match n {
        0..=4 => Value::Key(["a", "b", "c", "long-name", "e"][n].into()),
        5 => Value::Key("long_name".into()),
        _ => Value::Str(["a", "long-name", "long_name"][n - 6].into()),
    }
}

/// How many keys there are.
const KEYS: usize = 9;

impl Grammar<'_> {
    /// A choice below `n`; 0 when the bytes are used up.
    fn below(&mut self, n: usize) -> usize {
        let byte = if self.at < CHOICES { self.bytes.get(self.at).copied().unwrap_or(0) } else { 0 };
        self.at += 1;
        byte as usize % n
    }

    fn fresh(&mut self) -> String {
        self.count += 1;
        format!("x{}", self.count)
    }

    fn expr(&mut self, ty: Type, depth: usize) -> Expr {
        if depth >= DEPTH || self.at >= CHOICES {
            return self.leaf(ty);
        }
        // Something of another type: the error must be the same.
        if self.below(128) == 127 {
            return match self.below(3) {
                0 => Expr::Const(Value::Nil),
                1 => self.leaf(Type::Int),
                _ => Expr::Const(key(0)),
            };
        }
        match self.below(16) {
            0..=2 => self.leaf(ty),
            3 => {
                let parts = [self.expr(Type::Bool, depth + 1), self.expr(ty, depth + 1), self.expr(ty, depth + 1)];
                let [test, then, other] = parts.map(Box::new);
                Expr::If(test, then, other)
            }
            4 => self.binding(ty, depth),
            5 => {
                let printed = self.any(depth);
                let print = Expr::Call(Box::new(builtin("println")), vec![printed]);
                Expr::Do(vec![print, self.expr(ty, depth + 1)])
            }
            6 => {
                let params = [self.any_type(), self.any_type()];
                let f = self.lambda(&params, ty, depth);
                let args = params.map(|ty| self.expr(ty, depth + 1)).to_vec();
                Expr::Call(Box::new(f), args)
            }
            7 => {
                let (i, acc) = (self.fresh(), self.fresh());
                let (rounds, start) = (self.below(5) as u8, Box::new(self.expr(ty, depth + 1)));
                self.names.extend([(i.clone(), Type::Int), (acc.clone(), ty)]);
                let step = Box::new(self.expr(ty, depth + 1));
                self.names.truncate(self.names.len() - 2);
                Expr::Loop { i, acc, rounds, start, step }
            }
            _ => self.of_type(ty, depth + 1),
        }
    }

    fn binding(&mut self, ty: Type, depth: usize) -> Expr {
        let of = self.any_type();
        let (name, init) = (self.fresh(), self.expr(of, depth + 1));
        self.names.push((name.clone(), of));
        let body = self.expr(ty, depth + 1);
        self.names.pop();
        Expr::Let(name, Box::new(init), Box::new(body))
    }

    fn any_type(&mut self) -> Type {
        TYPES[self.below(6)]
    }

    fn any(&mut self, depth: usize) -> Expr {
        let ty = self.any_type();
        self.expr(ty, depth + 1)
    }

    fn leaf(&mut self, ty: Type) -> Expr {
        let named: Vec<String> = self.names.iter().filter(|n| n.1 == ty).map(|n| n.0.clone()).collect();
        if !named.is_empty() && self.below(3) > 0 {
            let at = self.below(named.len());
            return Expr::Var(named[at].clone());
        }
        let n = self.below(256);
        Expr::Const(match ty {
            Type::Int if n == 255 => Value::Int(i64::MAX.into()),
            Type::Int if n == 254 => Value::Int(i64::MIN.into()),
            Type::Int => ((n % 16) as i64 - 4).into(),
            Type::Bool => Value::Bool(n.is_multiple_of(2)),
            Type::Text => Value::Str(["", "s", "text", "two words"][n % 4].into()),
            Type::Ints => Value::List((0..n % 5).map(|i| ((i * 7 + n) as i64 % 11 - 3).into()).collect()),
            Type::Map => Value::Map((0..n % 4).map(|i| (key(i), (n as i64 % 9).into())).collect()),
            Type::Set => Value::Set((0..n % 4).map(|i| ((i * n) as i64).into()).collect()),
        })
    }

    fn lambda(&mut self, params: &[Type], result: Type, depth: usize) -> Expr {
        let names: Vec<String> = params.iter().map(|_| self.fresh()).collect();
        let known = self.names.len();
        self.names.extend(names.iter().cloned().zip(params.iter().copied()));
        let body = self.expr(result, depth + 1);
        self.names.truncate(known);
        Expr::Fn(Rc::new(Lambda { params: names, body }))
    }

    /// A function of integers to one result: a built-in or of the program.
    fn function(&mut self, params: &[Type], result: Type, depth: usize) -> Expr {
        let ready = match (params, result) {
            ([Type::Int], Type::Int) => Some(["inc", "dec", "abs", "-"][self.below(4)]),
            ([Type::Int], Type::Bool) => Some(["even?", "odd?", "pos?", "zero?"][self.below(4)]),
            ([Type::Int, Type::Int], Type::Int) => Some(["+", "*", "-", "max", "min", "rem"][self.below(6)]),
            ([Type::Int, Type::Int], Type::Bool) => Some(["<", ">", "="][self.below(3)]),
            _ => None,
        };
        match ready {
            Some(name) if self.below(3) == 0 => builtin(name),
            _ => self.lambda(params, result, depth),
        }
    }

    /// A call of a built-in with arguments of these types.
    fn call(&mut self, name: &'static str, args: &[Type], depth: usize) -> Expr {
        let args = args.iter().map(|ty| self.expr(*ty, depth)).collect();
        Expr::Call(Box::new(builtin(name)), args)
    }

    /// A call of a built-in that takes a function first.
    fn call_with(&mut self, name: &'static str, params: &[Type], result: Type, args: &[Type], depth: usize) -> Expr {
        let f = self.function(params, result, depth);
        let args = std::iter::once(f).chain(args.iter().map(|ty| self.expr(*ty, depth))).collect();
        Expr::Call(Box::new(builtin(name)), args)
    }

    fn of_type(&mut self, ty: Type, depth: usize) -> Expr {
        use Type::{Bool, Int, Ints, Map, Set, Text};
        let a_key = |g: &mut Self| Expr::Const(key(g.below(KEYS)));
        match ty {
            Int => match self.below(16) {
                0..=3 => {
                    let name = ["+", "-", "*", "max", "min", "quot", "rem", "mod"][self.below(8)];
                    self.call(name, &[Int, Int], depth)
                }
                4 => {
                    let name = ["+", "-", "*", "max"][self.below(4)];
                    self.call(name, &[Int, Int, Int], depth)
                }
                5 => {
                    let name = ["inc", "dec", "abs", "-"][self.below(4)];
                    self.call(name, &[Int], depth)
                }
                6 => {
                    let of = [Ints, Map, Set, Text][self.below(4)];
                    self.call("count", &[of], depth)
                }
                7 => {
                    let name = ["first", "last"][self.below(2)];
                    self.call(name, &[Ints], depth)
                }
                8 => self.call("nth", &[Ints, Int], depth),
                9 => {
                    let (map, at) = (self.expr(Map, depth), a_key(self));
                    Expr::Call(Box::new(builtin("get")), vec![map, at])
                }
                10 => {
                    let (at, map) = (a_key(self), self.expr(Map, depth));
                    Expr::Call(Box::new(at), vec![map])
                }
                11 | 12 => self.call_with("reduce", &[Int, Int], Int, &[Int, Ints], depth),
                13 => self.call_with("reduce", &[Int, Int], Int, &[Ints], depth),
                14 => self.call_with("apply", &[Int, Int], Int, &[Int, Ints], depth),
                _ => self.call_with("some", &[Int], Int, &[Ints], depth),
            },
            Bool => match self.below(9) {
                0..=2 => {
                    let name = ["<", "<=", ">", ">=", "="][self.below(5)];
                    self.call(name, &[Int, Int], depth)
                }
                3 => {
                    let name = ["even?", "odd?", "zero?", "pos?", "neg?", "nil?", "some?"][self.below(7)];
                    self.call(name, &[Int], depth)
                }
                4 => {
                    let of = self.any_type();
                    self.call("=", &[of, of], depth)
                }
                5 => self.call("not", &[Bool], depth),
                6 => {
                    let items = vec![self.expr(Bool, depth), self.expr(Int, depth), self.expr(Bool, depth)];
                    if self.below(2) == 0 { Expr::And(items) } else { Expr::Or(items) }
                }
                7 => {
                    let of = [Ints, Set][self.below(2)];
                    self.call("contains?", &[of, Int], depth)
                }
                _ => self.call_with("every?", &[Int], Bool, &[Ints], depth),
            },
            Text => match self.below(3) {
                0 => {
                    let (a, b) = (self.any_type(), self.any_type());
                    self.call("str", &[a, b], depth)
                }
                1 => {
                    let of = self.any_type();
                    self.call("pr-str", &[of], depth)
                }
                _ => self.call("str", &[Text, Int, Bool], depth),
            },
            Ints => self.ints(depth),
            Map => match self.below(11) {
                10 => {
                    let (map, at) = (self.expr(Map, depth), a_key(self));
                    Expr::Call(Box::new(builtin("dissoc")), vec![map, at])
                }
                0 | 1 => {
                    let (n, first) = (1 + self.below(5), self.below(KEYS));
                    Expr::Map((0..n).map(|i| (key((first + n - 1 - i) % KEYS), self.expr(Int, depth))).collect())
                }
                2 | 3 => {
                    let (map, at, value) = (self.expr(Map, depth), a_key(self), self.expr(Int, depth));
                    Expr::Call(Box::new(builtin("assoc")), vec![map, at, value])
                }
                4 => self.call("merge", &[Map, Map], depth),
                5 => self.call_with("merge-with", &[Int, Int], Int, &[Map, Map], depth),
                6 => {
                    let (map, at, f) = (self.expr(Map, depth), a_key(self), self.function(&[Int], Int, depth));
                    Expr::Call(Box::new(builtin("update")), vec![map, at, f])
                }
                7 => {
                    let (map, f) = (self.expr(Map, depth), self.function(&[Int], Int, depth));
                    Expr::Call(Box::new(builtin("update-vals")), vec![map, f])
                }
                8 => self.call_with("group-by", &[Int], Bool, &[Ints], depth),
                _ => self.call("frequencies", &[Ints], depth),
            },
            Set => match self.below(3) {
                0 => self.call("conj", &[Set, Int], depth),
                _ => self.call("set", &[Ints], depth),
            },
        }
    }

    fn ints(&mut self, depth: usize) -> Expr {
        use Type::{Bool, Int, Ints, Map, Set};
        match self.below(20) {
            0 => Expr::List((0..self.below(5)).map(|_| self.expr(Int, depth)).collect()),
            1 => {
                let end = self.below(12) as i64;
                Expr::Call(Box::new(builtin("range")), vec![Expr::Const(end.into())])
            }
            2..=4 => self.call_with("map", &[Int], Int, &[Ints], depth),
            5 => {
                let name = ["filter", "remove", "take-while", "drop-while"][self.below(4)];
                self.call_with(name, &[Int], Bool, &[Ints], depth)
            }
            6 => self.call_with("filter", &[Int], Bool, &[Set], depth),
            7 => self.call_with("map-indexed", &[Int, Int], Int, &[Ints], depth),
            8 => self.call_with("keep", &[Int], Int, &[Ints], depth),
            9 => self.call_with("mapcat", &[Int], Ints, &[Ints], depth),
            10 => match self.below(3) {
                0 => self.call("sort", &[Ints], depth),
                1 => self.call_with("reductions", &[Int, Int], Int, &[Ints], depth),
                _ => self.call_with("reductions", &[Int, Int], Int, &[Int, Ints], depth),
            },
            11 => {
                let order = builtin(["<", ">"][self.below(2)]);
                let list = self.expr(Ints, depth);
                Expr::Call(Box::new(builtin("sort")), vec![order, list])
            }
            12 => self.call_with("sort-by", &[Int], Int, &[Ints], depth),
            13 => {
                let name = ["reverse", "rest", "distinct", "vec"][self.below(4)];
                self.call(name, &[Ints], depth)
            }
            14 => {
                let name = ["take", "drop", "take-nth"][self.below(3)];
                self.call(name, &[Int, Ints], depth)
            }
            15 => self.call("concat", &[Ints, Ints], depth),
            16 => self.call("conj", &[Ints, Int], depth),
            17 => self.call("cons", &[Int, Ints], depth),
            18 => self.call("vals", &[Map], depth),
            _ => {
                let (var, list) = (self.fresh(), Box::new(self.expr(Ints, depth)));
                self.names.push((var.clone(), Int));
                let (test, body) = (Box::new(self.expr(Bool, depth)), Box::new(self.expr(Int, depth)));
                self.names.pop();
                Expr::For { var, list, test, body }
            }
        }
    }
}
