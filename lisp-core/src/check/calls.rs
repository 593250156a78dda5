//! Calls of functions.

use super::known::{Function, Habit, Known};
use super::shape::{Fields, Shape, Types};
use super::walk::Checker;
use super::{Finding, FindingKind, Parameter, ToolShape};
use crate::compile::core::{Constant, FnNode, Var};
use crate::error::Span;
use std::rc::Rc;

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
                self.pass(false, |checker| {
                    for function in functions {
                        checker.call(function, arguments.clone(), span);
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
            Constant::Keyword(_) | Constant::Str(_) => {
                let value = self.read(first, constant, at);
                match arguments.get(1) {
                    None => value,
                    Some(default) => self.join(value, default.clone()),
                }
            }
            Constant::Set(members) => {
                self.compare_with_all(first, members.iter(), at);
                let member = Known::of(first.shape.clone().or_nil());
                match arguments.get(1) {
                    None => member,
                    Some(default) => self.join(member, default.clone()),
                }
            }
            Constant::Map(_) => {
                let map = self.shape_of(constant);
                let value = match first.constant {
                    Some((key, at)) => self.at_key(&map, key, at),
                    None => Known::of(map.element().nth(1).or_nil()),
                };
                match arguments.get(1) {
                    None => value,
                    Some(default) => self.join(value, default.clone()),
                }
            }
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
        if times == 0 {
            return self.run(node, chosen, captured, arguments);
        }
        self.run_within(node, chosen, captured, arguments);
        Known::unknown()
    }

    /// Runs a function that is running already, and leaves the variables of that run as they are.
    fn run_within(
        &mut self,
        node: &'p FnNode,
        chosen: &'p FnNode,
        captured: &[(Var, Known<'p>)],
        arguments: Vec<Known<'p>>,
    ) -> Known<'p> {
        self.spend_on(self.vars.len());
        let vars = self.vars.clone();
        let result = self.run(node, chosen, captured, arguments);
        self.vars = vars;
        result
    }

    fn run(
        &mut self,
        node: &'p FnNode,
        chosen: &'p FnNode,
        captured: &[(Var, Known<'p>)],
        mut arguments: Vec<Known<'p>>,
    ) -> Known<'p> {
        self.walked.insert(std::ptr::from_ref(node), ());
        for (var, value) in captured {
            self.set(*var, value.clone());
        }
        if let Some(rest) = chosen.rest {
            let more = arguments.split_off(chosen.params.len());
            self.escape_all(&more);
            let more = Shape::tuple(more.into_iter().map(|value| value.shape).collect());
            self.set(rest, Known { habit: Some(Habit::List), ..Known::of(more) });
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
                        let result = self.pass(false, |checker| match times {
                            0 => checker.run(node, chosen, captured, unknown),
                            _ => checker.run_within(node, chosen, captured, unknown),
                        });
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
        let facts = self.facts;
        let tool = self.tools.entry(name.to_owned()).or_insert_with(|| facts.tool(name).map(Rc::new)).clone();
        let Some(tool) = tool else { return Known::unknown() };
        let nothing = Shape::map([], true);
        let fields = match arguments {
            [] => nothing.fields.as_deref(),
            [given] if given.shape.types == Types::MAP => given.shape.fields.as_deref(),
            [given] if given.shape.types.may_be(Types::MAP | Types::FN | Types::OTHER) => None,
            _ => {
                let message = format!("tool/{name} takes a map of arguments");
                let repair =
                    tool.parameters.first().map(|first| format!("write (tool/{name} {{:{} ...}})", first.name));
                let kind = FindingKind::WrongArgument;
                self.wrong(name, Finding { kind, span, message, repair, fails: true });
                None
            }
        };
        if let Some(fields) = fields {
            self.check_arguments((name, &tool), fields, span);
        }
        Known::of(tool.result.clone())
    }

    fn check_arguments(&mut self, (name, tool): (&str, &ToolShape), given: &Fields, span: Span) {
        let count = given.known.len();
        if !self.spend_on(count + tool.parameters.len() + count * tool.parameters.len() / 8) {
            return;
        }
        let is_certain = self.is_certain;
        let parameter = |name: &str| tool.parameters.iter().find(|parameter| is_read_as(name, &parameter.name));
        let is_missing =
            |parameter: &&Parameter| !given.known.iter().any(|(name, _)| is_read_as(name, &parameter.name));
        let missing: Vec<&Parameter> = tool.parameters.iter().filter(is_missing).collect();
        let unknown = given.known.iter().filter(|(name, _)| parameter(name).is_none()).count();
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
        for (argument, field) in &given.known {
            let misfit = match parameter(argument) {
                // It may be absent.
                _ if !field.is_always => None,
                None => {
                    let meant = meant(tool, &missing, argument, unknown == 1);
                    misspelt.extend(meant);
                    let fails = !tool.is_open || given.others.is_none() && meant.is_some_and(|meant| meant.is_required);
                    (fails || meant.is_some()).then(|| unknown_argument((name, tool), argument, meant, fails))
                }
                // A value that is nil in all of this data may be tested elsewhere.
                Some(_) if field.shape.types == Types::NIL && !is_certain => None,
                Some(parameter) => never_fits(&field.shape, &parameter.shape)
                    .then(|| wrong_argument(name, argument, &field.shape, &parameter.shape, is_certain)),
            };
            note(argument, misfit);
        }
        for parameter in missing.into_iter().filter(|parameter| parameter.is_required) {
            let is_told = misspelt.iter().any(|told| told.name == parameter.name);
            let misfit = (given.others.is_none() && !is_told).then(|| Misfit {
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

/// Returns whether an argument is passed as a parameter: a keyword with hyphens stands for a name with underscores.
fn is_read_as(argument: &str, parameter: &str) -> bool {
    argument == parameter
        || argument.len() == parameter.len() && argument.contains('-') && argument.replace('-', "_") == parameter
}

/// Returns the parameter that is probably meant by an argument: one that is missing, or of a tool that takes no others, any. If one
/// argument is unknown and one missing, that is it.
fn meant<'t>(tool: &'t ToolShape, missing: &[&'t Parameter], name: &str, is_one: bool) -> Option<&'t Parameter> {
    let nearest = |names: &mut dyn Iterator<Item = &'t Parameter>| {
        let among: Vec<&Parameter> = names.collect();
        let name = super::keys::nearest_of(among.iter().map(|one| &*one.name), name)?;
        among.into_iter().find(|parameter| &*parameter.name == name)
    };
    let required = || {
        let mut required = missing.iter().copied().filter(|parameter| parameter.is_required);
        required.next().filter(|_| is_one && !tool.is_open && required.next().is_none())
    };
    nearest(&mut missing.iter().copied())
        .or_else(|| if tool.is_open { None } else { nearest(&mut tool.parameters.iter()) })
        .or_else(required)
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

/// Returns the mistake of an argument of a type that the tool does not take.
fn wrong_argument(tool: &str, name: &str, given: &Shape, allowed: &Shape, fails: bool) -> Misfit {
    let (takes, gets) = (allowed.types.named(), given.types.named());
    let repair = match () {
        () if given.types == Types::STRING && allowed.types.may_be(Types::FLOAT) => {
            Some("convert it: (parse-double s)")
        }
        () if given.types == Types::STRING && allowed.types.may_be(Types::INT) => Some("convert it: (parse-long s)"),
        () if given.types.is_within(Types::NUMBER) && allowed.types.may_be(Types::STRING) => {
            Some("convert it: (str n)")
        }
        () if allowed.types.may_be(Types::LIST) && !given.types.may_be(Types::NIL) => Some("put it into a vector: [x]"),
        () => None,
    };
    Misfit {
        kind: FindingKind::WrongArgument,
        message: format!("tool/{tool} takes {takes} as :{name}, not {gets}"),
        repair: repair.map(str::to_owned),
        fails,
    }
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
