//! Calls of functions.

use super::shape::{Shape, Types};
use super::walk::{Checker, Function, Known};
use super::{Finding, FindingKind, Parameter, ToolShape};
use crate::compile::core::{Constant, FnNode, Var};
use crate::error::Span;

impl<'p> Checker<'p> {
    /// Creates a function with the present values of what it captures.
    pub(super) fn closure(&mut self, function: &'p FnNode) -> Function<'p> {
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
                let all = first.iter().cloned().chain(arguments).collect();
                self.call(function, all, span)
            }
            Function::Juxtaposed(functions) => {
                let results: Vec<_> =
                    functions.iter().map(|function| self.call(function, arguments.clone(), span)).collect();
                self.escape_all(&results);
                Known::of(Shape::tuple(results.into_iter().map(|result| result.shape).collect()))
            }
            Function::Tests(functions) => {
                for function in functions {
                    self.call(function, arguments.clone(), span);
                }
                Known::unknown()
            }
            Function::Constant(value) => value.clone(),
            Function::WithDefaults(function) => {
                self.escape_all(&arguments);
                let unknown = arguments.iter().map(|_| Known::unknown()).collect();
                self.call(function, unknown, span)
            }
            Function::Either(f, g) => {
                let a = self.call(f, arguments.clone(), span);
                let b = self.call(g, arguments, span);
                self.join(a, b)
            }
        }
    }

    /// A keyword, set or map as a function.
    fn call_constant(&mut self, constant: &'p Constant, at: Span, arguments: Vec<Known<'p>>) -> Known<'p> {
        self.escape_all(&arguments);
        let Some(first) = arguments.first() else { return Known::unknown() };
        match constant {
            Constant::Keyword(_) | Constant::Str(_) => {
                let value = self.at_key(&first.shape, constant, at);
                match arguments.get(1) {
                    None => value,
                    Some(default) => self.join(value, default.clone()),
                }
            }
            Constant::Set(members) => {
                self.compare_with_all(first, members.iter(), at);
                Known::of(first.shape.clone().or_nil())
            }
            Constant::Map(_) => match first.constant {
                Some((key, at)) => self.at_key(&Shape::of_constant(constant), key, at),
                None => {
                    let map = Shape::of_constant(constant);
                    Known::of(map.element().nth(1).or_nil())
                }
            },
            _ => Known::unknown(),
        }
    }

    fn call_closure(
        &mut self,
        node: &'p FnNode,
        captured: &[(Var, Known<'p>)],
        arguments: Vec<Known<'p>>,
    ) -> Known<'p> {
        let is_active = |(active, _): &&(&'p FnNode, Vec<(Var, Known<'p>)>)| std::ptr::eq(*active, node);
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

    fn run(
        &mut self,
        node: &'p FnNode,
        chosen: &'p FnNode,
        captured: &[(Var, Known<'p>)],
        mut arguments: Vec<Known<'p>>,
    ) -> Known<'p> {
        for (var, value) in captured {
            self.set(*var, value.clone());
        }
        if let Some(rest) = chosen.rest {
            let more = arguments.split_off(chosen.params.len());
            self.escape_all(&more);
            let more = Shape::tuple(more.into_iter().map(|value| value.shape).collect());
            // Without further arguments it is nil.
            self.set(rest, Known::of(more.or_nil()));
        }
        self.active.push((node, captured.to_vec()));
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
                        let result = self.run(node, chosen, captured, unknown);
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

    fn call_tool(&mut self, name: &str, arguments: &[Known<'p>], span: Span) -> Known<'p> {
        self.escape_all(arguments);
        let Some(tool) = self.facts.tool(name) else { return Known::unknown() };
        if let [given] = arguments
            && given.shape.types == Types::MAP
            && let Some(fields) = given.shape.fields.as_deref()
        {
            let is_closed = fields.others.is_none();
            let known: Vec<_> = fields.known.iter().map(|(name, field)| (name.clone(), field.shape.clone())).collect();
            self.check_arguments((name, &tool), &known, is_closed, span);
        }
        Known::of(tool.result)
    }

    fn check_arguments(
        &mut self,
        (name, tool): (&str, &ToolShape),
        given: &[(std::sync::Arc<str>, Shape)],
        is_closed: bool,
        span: Span,
    ) {
        let parameter = |name: &str| tool.parameters.iter().find(|parameter| same_name(&parameter.name, name));
        let is_missing = |parameter: &Parameter| !given.iter().any(|(name, _)| same_name(&parameter.name, name));
        let mut note = |what: &str, finding: Option<Misfit>| {
            let what = format!("{name} {what}");
            match finding {
                Some(Misfit { kind, message, repair, fails }) => {
                    self.wrong(&what, Finding { kind, span, message, repair, fails });
                }
                None => self.right(span, &what),
            }
        };
        // Parameters whose names are misspelt: one finding is enough for each.
        let mut misspelt = Vec::new();
        for (argument, shape) in given {
            let misfit = match parameter(argument) {
                None => {
                    let meant = meant(tool, argument, is_missing);
                    misspelt.extend(meant);
                    let fails = !tool.is_open || is_closed && meant.is_some_and(|meant| meant.is_required);
                    (fails || meant.is_some()).then(|| unknown_argument((name, tool), argument, meant, fails))
                }
                Some(parameter) => never_fits(shape, &parameter.shape).then(|| Misfit {
                    kind: FindingKind::WrongArgument,
                    message: format!("tool/{name} does not take this value as :{argument}"),
                    repair: None,
                    fails: true,
                }),
            };
            note(argument, misfit);
        }
        for parameter in tool.parameters.iter().filter(|parameter| parameter.is_required) {
            let is_told = misspelt.iter().any(|told| told.name == parameter.name);
            let misfit = (is_closed && is_missing(parameter) && !is_told).then(|| Misfit {
                kind: FindingKind::MissingArgument,
                message: format!("tool/{name} needs the argument :{}", parameter.name),
                repair: Some(format!("add :{} to the arguments", parameter.name)),
                fails: true,
            });
            note(&format!("needs {}", parameter.name), misfit);
        }
    }
}

/// A mistake in one argument of a call.
struct Misfit {
    kind: FindingKind,
    message: String,
    repair: Option<String>,
    fails: bool,
}

/// Hyphens and underscores are the same in names of arguments.
fn same_name(a: &str, b: &str) -> bool {
    a == b || a.len() == b.len() && a.replace('-', "_") == b.replace('-', "_")
}

/// Returns the parameter that is probably meant by an argument: one that is missing, or of a tool that takes no others, any.
fn meant<'t>(tool: &'t ToolShape, name: &str, is_missing: impl Fn(&Parameter) -> bool) -> Option<&'t Parameter> {
    let nearest = |among: &dyn Fn(&Parameter) -> bool| {
        let names: Vec<&str> = tool.parameters.iter().filter(|one| among(one)).map(|one| &*one.name).collect();
        let name = super::keys::nearest_of(names.into_iter(), name)?;
        tool.parameters.iter().find(|parameter| &*parameter.name == name)
    };
    nearest(&is_missing).or_else(|| if tool.is_open { None } else { nearest(&|_| true) })
}

/// Returns the mistake of an argument that is not among the parameters. `meant` is the one that was probably meant.
fn unknown_argument(
    (name_of_tool, tool): (&str, &ToolShape),
    name: &str,
    meant: Option<&Parameter>,
    fails: bool,
) -> Misfit {
    let all: Vec<String> = tool.parameters.iter().take(12).map(|parameter| format!(":{}", parameter.name)).collect();
    let message = match all.is_empty() {
        true => format!("tool/{name_of_tool} has no argument :{name}; it takes none"),
        false => format!("tool/{name_of_tool} has no argument :{name}; it takes {}", all.join(", ")),
    };
    let repair = meant.map(|meant| format!("write :{}", meant.name));
    Misfit { kind: FindingKind::UnknownArgument, message, repair, fails }
}

/// Returns whether no value of a shape is allowed.
fn never_fits(given: &Shape, allowed: &Shape) -> bool {
    // An integer is a float too, and a keyword is a string in JSON.
    let mut types = allowed.types;
    if types.may_be(Types::FLOAT) {
        types = types | Types::INT;
    }
    if types.may_be(Types::INT) {
        types = types | Types::FLOAT;
    }
    if types.may_be(Types::STRING) {
        types = types | Types::KEYWORD;
    }
    if types.may_be(Types::LIST) {
        types = types | Types::SET;
    }
    !given.types.may_be(types | Types::FN | Types::OTHER) && given.types != Types::NEVER
}
