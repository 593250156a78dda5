//! Calls of functions.

use super::known::{Captured, Function, Habit, Known};
use super::shape::Shape;
use super::walk::Checker;
use crate::compile::core::{Constant, FnNode, Var};
use crate::error::Span;

impl<'p> Checker<'p> {
    /// Creates a function with the present values of what it captures.
    pub(super) fn closure(&mut self, function: &'p FnNode) -> Function<'p> {
        self.spend_on(function.captures.len());
        let captured = function.captures.iter().map(|var| (*var, self.value_of(*var))).collect();
        Function::Closure(function, captured)
    }

    /// Returns the function that is being called.
    pub(super) fn running(&mut self) -> Known<'p> {
        match self.active.last() {
            Some((function, captured)) => Known::function(Function::Closure(function, captured.clone())),
            None => Known::unknown(),
        }
    }

    /// Calls a value.
    pub(super) fn call(&mut self, callee: &Known<'p>, arguments: Vec<Known<'p>>, span: Span) -> Known<'p> {
        if !self.spend(1) || !self.enter() {
            return Known::unknown();
        }
        let result = self.call_known(callee, arguments, span);
        self.leave();
        result
    }

    fn call_known(&mut self, callee: &Known<'p>, arguments: Vec<Known<'p>>, span: Span) -> Known<'p> {
        if arguments.iter().any(|value| value.shape.is_never()) {
            // What is passed to it is never there, so that it is not called.
            self.escape(callee);
            self.escape_all(&arguments);
            return Known::never();
        }
        if let Some((constant, at)) = callee.constant {
            return self.call_constant(constant, at, arguments);
        }
        let Some(function) = callee.function.clone() else {
            self.escape_all(&arguments);
            return match (&callee.shape, arguments.first()) {
                // A map or a vector of which something is known, called with a constant key.
                (shape, Some(Known { constant: Some((key, at)), .. }))
                    if arguments.len() == 1 && !shape.is_unknown() =>
                {
                    let shape = shape.clone();
                    self.at_key(&shape, key, *at)
                }
                _ => Known::unknown(),
            };
        };
        match &*function {
            Function::Closure(node, captured) => self.call_closure(node, captured, arguments),
            Function::Builtin(id) => self.builtin(*id, arguments, span),
            Function::Tool(name) => self.call_tool(name, &arguments, span),
            Function::Composed(functions) => {
                let mut arguments = arguments;
                for function in functions.iter().rev() {
                    arguments = vec![self.call(function, arguments, span)];
                }
                arguments.pop().unwrap_or_else(Known::unknown)
            }
            Function::Partial(function, first) => {
                self.spend_on(first.len());
                let all = first.iter().cloned().chain(arguments).collect();
                self.call(function, all, span)
            }
            Function::Juxtaposed(functions) => {
                let call = |function| {
                    self.spend_on(arguments.len());
                    self.call(function, arguments.clone(), span)
                };
                let results: Vec<_> = functions.iter().map(call).collect();
                self.escape_all(&results);
                Known::of(Shape::tuple(results.into_iter().map(|result| result.shape).collect()))
            }
            Function::Tests(functions) => {
                self.pass(false, |checker| {
                    for function in functions {
                        checker.spend_on(arguments.len());
                        let result = checker.call(function, arguments.clone(), span);
                        checker.excuse_no_map(&result);
                    }
                });
                Known::unknown()
            }
            Function::Constant(value) => value.clone(),
            Function::WithDefaults(function) => {
                self.escape_all(&arguments);
                let unknown = arguments.iter().map(|_| Known::unknown()).collect();
                self.call(function, unknown, span)
            }
            Function::Either(f, g) => {
                let (a, b) = self.pass(false, |checker| {
                    (checker.call(f, arguments.clone(), span), checker.call(g, arguments, span))
                });
                self.join(a, b)
            }
        }
    }

    /// A keyword, set or map as a function.
    fn call_constant(&mut self, constant: &'p Constant, at: Span, arguments: Vec<Known<'p>>) -> Known<'p> {
        self.escape_all(&arguments);
        let Some(first) = arguments.first() else { return Known::unknown() };
        match constant {
            Constant::Keyword(_) => {
                let value = self.read(first, constant, at);
                self.or_default(value, arguments.get(1))
            }
            Constant::Set(members) => {
                self.compare_with_all(first, members.iter(), at);
                let member = Known::of(first.shape.clone().or_nil());
                self.or_default(member, arguments.get(1))
            }
            Constant::Map(_) => {
                let map = self.shape_of(constant);
                let value = match first.constant {
                    Some((key, at)) => self.at_key(&map, key, at),
                    None => Known::of(self.at_any_key(&map, first)),
                };
                self.or_default(value, arguments.get(1))
            }
            _ => Known::unknown(),
        }
    }

    fn call_closure(&mut self, node: &'p FnNode, captured: &Captured<'p>, arguments: Vec<Known<'p>>) -> Known<'p> {
        let is_active = |(active, _): &&(&'p FnNode, Captured<'p>)| std::ptr::eq(*active, node);
        let times = self.active.iter().filter(is_active).count();
        let arity = |function: &&'p FnNode| match function.rest {
            None => function.params.len() == arguments.len(),
            Some(_) => function.params.len() <= arguments.len(),
        };
        let chosen = std::iter::once(node).chain(&node.others).find(arity);
        let Some(chosen) = chosen.filter(|_| times < 2) else {
            self.escape_all(&arguments);
            return Known::unknown();
        };
        // A function that calls itself may be called with anything.
        let arguments = match times {
            0 => arguments,
            _ => {
                self.escape_all(&arguments);
                arguments.iter().map(|_| Known::unknown()).collect()
            }
        };
        let result = self.run(node, chosen, captured, arguments);
        if times == 0 { result } else { Known::unknown() }
    }

    /// Runs a function. Afterwards all variables are what they were.
    fn run(
        &mut self,
        node: &'p FnNode,
        chosen: &'p FnNode,
        captured: &Captured<'p>,
        mut arguments: Vec<Known<'p>>,
    ) -> Known<'p> {
        self.walked.insert(std::ptr::from_ref(node), ());
        self.spend_on(captured.len() + arguments.len());
        let replaced = self.replaced.len();
        self.active.push((node, captured.clone()));
        for (var, value) in &**captured {
            self.set(*var, value.clone());
        }
        if let Some(rest) = chosen.rest {
            let more = arguments.split_off(chosen.params.len());
            self.escape_all(&more);
            let more = Shape::tuple(more.into_iter().map(|value| value.shape).collect());
            self.set(rest, Known { habit: Some(Habit::List), ..Known::of(more) });
        }
        self.returns.push(Known::never());
        let body = |checker: &mut Self| {
            checker.binds(&chosen.prologue);
            checker.visit(&chosen.body)
        };
        let result = match chosen.recurs {
            true => {
                let vars: Vec<Var> = chosen.params.iter().copied().chain(chosen.rest).collect();
                if let Some(rest) = chosen.rest {
                    arguments.push(self.value_of(rest));
                }
                self.rounds(&vars, arguments, body)
            }
            false => {
                for (var, value) in chosen.params.iter().zip(arguments) {
                    self.set(*var, value);
                }
                body(self)
            }
        };
        let early = self.returns.pop().unwrap_or_else(Known::never);
        self.restore(replaced);
        self.active.pop();
        self.join(result, early)
    }

    /// Notes that a value goes where it is no longer followed: a function may be called there with anything.
    pub(super) fn escape(&mut self, value: &Known<'p>) {
        let Some(function) = value.function.clone() else { return };
        if !self.spend(1) || !self.enter() {
            return;
        }
        match &*function {
            Function::Closure(node, captured) => {
                let times = self.active.iter().filter(|(active, _)| std::ptr::eq(*active, *node)).count();
                if times < 2 {
                    for chosen in std::iter::once(*node).chain(&node.others) {
                        let unknown = chosen.params.iter().map(|_| Known::unknown()).collect();
                        self.conditional += 1;
                        let result = self.pass(false, |checker| checker.run(node, chosen, captured, unknown));
                        self.conditional -= 1;
                        self.escape(&result);
                    }
                }
            }
            Function::Composed(functions) | Function::Juxtaposed(functions) | Function::Tests(functions) => {
                self.escape_all(functions);
            }
            Function::Partial(function, arguments) => {
                self.escape(function);
                self.escape_all(arguments);
            }
            Function::Constant(value) | Function::WithDefaults(value) => self.escape(value),
            Function::Either(f, g) => {
                self.escape(f);
                self.escape(g);
            }
            Function::Builtin(_) | Function::Tool(_) => {}
        }
        self.leave();
    }

    pub(super) fn escape_all(&mut self, values: &[Known<'p>]) {
        for value in values {
            self.escape(value);
        }
    }
}
