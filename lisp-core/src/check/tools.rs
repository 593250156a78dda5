//! Calls of tools.

use super::known::Known;
use super::names::{cut, keyword_shown, nearest_of, whole};
use super::shape::{Fields, Shape, Types};
use super::walk::Checker;
use super::{Finding, FindingKind, MAX_FINDINGS, Parameter, ToolShape};
use crate::compile::core::Constant;
use crate::error::Span;
use std::rc::Rc;

/// The arguments of a call.
enum Given {
    /// A map, or names and values.
    Fields(Shape),
    Unknown,
    /// Neither.
    Wrong,
}

impl<'p> Checker<'p> {
    pub(super) fn call_tool(&mut self, name: &str, arguments: &[Known<'p>], span: Span) -> Known<'p> {
        self.escape_all(arguments);
        let facts = self.facts;
        let tool = self.tools.entry(name.to_owned()).or_insert_with(|| facts.tool(name).map(Rc::new)).clone();
        let Some(tool) = tool else { return Known::unknown() };
        match given(arguments) {
            Given::Fields(shape) => {
                if let Some(fields) = shape.fields.as_deref() {
                    self.check_arguments((name, &tool), fields, span);
                }
            }
            Given::Unknown => {}
            Given::Wrong => {
                let first = tool.parameters.first().map(|first| keyword_shown(&first.name));
                let such = first.map_or_else(String::new, |first| format!(", such as {{{first} value}}"));
                let message = format!("tool/{} takes a map of arguments{such}", cut(name));
                let kind = FindingKind::WrongArgument;
                self.wrong(name, Finding { kind, span, message, repair: None, fails: self.is_unguarded() });
            }
        }
        Known::of(tool.result.clone())
    }

    fn check_arguments(&mut self, (name, tool): (&str, &ToolShape), given: &Fields, span: Span) {
        let count = given.known.len();
        if !self.spend_on(count + tool.parameters.len() + count * tool.parameters.len() / 8) {
            return;
        }
        // A value that does not fit may have ended the run before, or be for another branch.
        let is_certain = self.is_certain && !self.may_stop;
        let parameter = |name: &str| tool.parameters.iter().find(|parameter| is_read_as(name, &parameter.name));
        let is_missing =
            |parameter: &&Parameter| !given.known.iter().any(|(name, _)| is_read_as(name, &parameter.name));
        let missing: Vec<&Parameter> = tool.parameters.iter().filter(is_missing).collect();
        let unknown = given.known.iter().filter(|(name, _)| parameter(name).is_none()).count();
        // Parameters whose names are misspelt: one finding is enough for each.
        let mut misspelt = Vec::new();
        let mut looked_for = 0;
        for (argument, field) in &given.known {
            let misfit = match parameter(argument) {
                // It may be absent.
                _ if !field.is_always => None,
                None => {
                    looked_for += 1;
                    // Of more no one is told.
                    let meant = (looked_for <= MAX_FINDINGS)
                        .then(|| self.meant(tool, &missing, argument, unknown == 1))
                        .flatten();
                    misspelt.extend(meant);
                    let fails = !tool.is_open || given.others.is_none() && meant.is_some_and(|meant| meant.is_required);
                    (fails || meant.is_some()).then(|| unknown_argument((name, tool), argument, meant, fails))
                }
                // A value that is nil in all of this data may be tested elsewhere.
                Some(_) if self.may_stop || field.shape.types == Types::NIL && !is_certain => None,
                Some(parameter) => never_fits(&field.shape, &parameter.shape)
                    .then(|| wrong_argument(name, argument, &field.shape, &parameter.shape, is_certain)),
            };
            self.judge_argument(name, argument, misfit, span);
        }
        for parameter in missing.into_iter().filter(|parameter| parameter.is_required) {
            let is_told = misspelt.iter().any(|told| told.name == parameter.name);
            let misfit = (given.others.is_none() && !is_told).then(|| Misfit {
                kind: FindingKind::MissingArgument,
                message: format!("tool/{} needs the argument {}", cut(name), keyword_shown(&parameter.name)),
                repair: whole(&parameter.name).map(|name| format!("add {} to the arguments", keyword_shown(name))),
                fails: true,
            });
            self.judge_argument(name, &format!("needs {}", parameter.name), misfit, span);
        }
    }

    /// Notes that an argument of a call is wrong this time, or that it is right.
    fn judge_argument(&mut self, tool: &str, what: &str, misfit: Option<Misfit>, span: Span) {
        let what = format!("{tool} {what}");
        match misfit {
            Some(Misfit { kind, message, repair, fails }) => {
                let fails = fails && self.is_unguarded();
                self.wrong(&what, Finding { kind, span, message, repair, fails });
            }
            None => self.right(span, &what),
        }
    }

    /// Returns the parameter that is probably meant by an argument: one that is missing, or of a tool that takes no others, any. If
    /// one argument is unknown and one missing, that is it.
    fn meant<'t>(
        &mut self,
        tool: &'t ToolShape,
        missing: &[&'t Parameter],
        name: &str,
        is_one: bool,
    ) -> Option<&'t Parameter> {
        let mut pay = |steps| self.spend(steps);
        let near = nearest_of(missing.iter().map(|parameter| &*parameter.name), name, &mut pay);
        let near = match near {
            None if !tool.is_open => {
                nearest_of(tool.parameters.iter().map(|parameter| &*parameter.name), name, &mut pay)
            }
            near => near,
        };
        let near = near.and_then(|near| tool.parameters.iter().find(|parameter| &*parameter.name == near));
        near.or_else(|| {
            let mut required = missing.iter().copied().filter(|parameter| parameter.is_required);
            required.next().filter(|_| is_one && !tool.is_open && required.next().is_none())
        })
    }
}

/// Returns what a call gives: one map, or keywords and values in turn.
fn given(arguments: &[Known<'_>]) -> Given {
    match arguments {
        [] => Given::Fields(Shape::map([], true)),
        [given] if given.shape.types == Types::MAP => Given::Fields(given.shape.clone()),
        [given] if given.shape.types.may_be(Types::MAP | Types::FN | Types::OTHER) => Given::Unknown,
        pairs if pairs.len().is_multiple_of(2) => {
            let is_keyword = |pair: &[Known<'_>]| pair[0].shape.types.may_be(Types::KEYWORD);
            if !pairs.chunks_exact(2).all(is_keyword) {
                return Given::Wrong;
            }
            let named = pairs.chunks_exact(2).map(|pair| match pair[0].constant {
                Some((Constant::Keyword(name), _)) => Some(((&**name).into(), pair[1].shape.clone(), true)),
                _ => None,
            });
            named.collect::<Option<Vec<_>>>().map_or(Given::Unknown, |named| Given::Fields(Shape::map(named, true)))
        }
        _ => Given::Wrong,
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

/// Returns the mistake of an argument that is not among the parameters. `meant` is the one that was probably meant.
fn unknown_argument(
    (name_of_tool, tool): (&str, &ToolShape),
    name: &str,
    meant: Option<&Parameter>,
    fails: bool,
) -> Misfit {
    /// The maximum number and length of parameters in a message; of long names at least one.
    const SHOWN: usize = 12;
    const LENGTH: usize = 300;
    let mut all = String::new();
    for parameter in tool.parameters.iter().take(SHOWN) {
        let separator = if all.is_empty() { "" } else { ", " };
        let next = format!("{separator}{}", keyword_shown(&parameter.name));
        if all.len() + next.len() > LENGTH {
            break;
        }
        all += &next;
    }
    let takes = if all.is_empty() { "none" } else { &*all };
    let message = format!("tool/{} has no argument {}; it takes {takes}", cut(name_of_tool), keyword_shown(name));
    let repair = meant.and_then(|meant| whole(&meant.name)).map(|meant| format!("write {}", keyword_shown(meant)));
    Misfit { kind: FindingKind::UnknownArgument, message, repair, fails }
}

/// Returns the mistake of an argument of a type that the tool does not take.
fn wrong_argument(tool: &str, name: &str, given: &Shape, allowed: &Shape, fails: bool) -> Misfit {
    let (takes, gets) = (allowed.types.without(Types::NIL).named(), given.types.named());
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
        message: format!("tool/{} takes {takes} as {}, not {gets}", cut(tool), keyword_shown(name)),
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
