//! What a run needs of its engine and its input.

use super::watchdog;
use crate::terms::cancel::Cancel;
use crate::terms::clock::{Clock, Reading};
use crate::terms::keys::Keys;
use crate::terms::limits::Limits;
use crate::terms::print_hook::PrintHook;
use crate::terms::run_view::RunView;
use crate::tools::gate::GateSetting;
use crate::tools::signature::Signature;
use crate::tools::tool::{Tool, Tools};
use lisp_core::compile::Program;
use lisp_core::text::near_names;
use lisp_core::{Error, Reason, Span};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// What is made of a run besides its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Makes {
    /// The definitions as JSON
    pub(crate) memory: bool,
    /// What the program holds at its end
    pub(crate) live: bool,
}

impl Default for Makes {
    fn default() -> Self {
        Makes { memory: true, live: false }
    }
}

/// What a run needs of its engine.
#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) limits: Limits,
    pub(crate) tools: Arc<Tools>,
    /// Tools of this run only.
    pub(crate) own_tools: Option<Arc<Tools>>,
    pub(crate) cancel: Cancel,
    pub(crate) signature: Option<Signature>,
    /// What the keys of JSON objects become.
    pub(crate) keys: Keys,
    /// Names of tools are not looked up before the program runs.
    pub(crate) any_tool: bool,
    /// For a run whose prints go out as they happen, in a process without threads: what a signal sets at the deadline,
    /// in the watchdog's place.
    pub(crate) alarm: Option<Arc<AtomicBool>>,
    /// A thread may look after it: else a built-in at work is ended by cancellation only.
    pub(crate) watched: bool,
    pub(crate) clock: Clock,
    /// How many cores count for parallel calls, when it is not this process that says so.
    pub(crate) cores: Option<usize>,
    /// What the clock told in the run that is replayed.
    pub(crate) clock_replay: Vec<Reading>,
    pub(crate) on_print: Option<PrintHook>,
    /// What every call of a tool passes; it has the journal of a run that is recorded.
    pub(crate) gate: GateSetting,
    /// The fuel that the run has taken from its budget.
    pub(crate) fuel: Option<u64>,
    /// Those who look at the run.
    pub(crate) view: RunView,
    /// What is made of it besides its result.
    pub(crate) makes: Makes,
}

impl Setting {
    pub(crate) fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        let tool = self.own_tools.as_ref().and_then(|tools| tools.get(name)).or_else(|| self.tools.get(name))?;
        self.gate.shows(tool).then_some(tool)
    }

    /// The tool of a name as it was given.
    pub(crate) fn tool_given(&self, name: &str) -> Option<&Arc<Tool>> {
        let all = [self.own_tools.as_ref(), Some(&self.tools)].into_iter().flatten().flat_map(|tools| tools.all());
        self.tool(name).or_else(|| all.into_iter().find(|tool| tool.given_name() == name))
    }

    /// Do printed lines leave the run as they happen?
    pub(crate) fn streams_prints(&self) -> bool {
        self.alarm.is_some() || self.on_print.is_some() || self.view.sees_prints()
    }

    /// Shows lines to those who want to see them as they happen. False when nobody does.
    pub(crate) fn show(&self, lines: &[String]) -> bool {
        self.view.printed(lines);
        if let Some(hook) = &self.on_print {
            hook.show(lines);
        }
        self.on_print.is_some() || self.view.sees_prints()
    }

    /// What ends a built-in at work at the deadline or on cancellation.
    pub(crate) fn flag(&self, deadline: Option<Instant>, cancel: &Cancel) -> Arc<AtomicBool> {
        let watched = || if self.watched { watchdog::flag(deadline, cancel) } else { None };
        // Without the thread that would set it at the deadline.
        self.alarm.clone().or_else(watched).unwrap_or_else(|| cancel.flag())
    }

    /// The error for the first tool of a program that was not granted; `None` when all were.
    pub(crate) fn missing_tool(&self, program: &Program) -> Option<Error> {
        let name = program.tool_names().find(|name| !self.any_tool && self.tool(name).is_none())?;
        let error = self.unknown_tool(name);
        Some(match place_of(program.source(), &format!("tool/{name}")) {
            Some(span) => error.at(span),
            None => error,
        })
    }

    pub(crate) fn unknown_tool(&self, name: &str) -> Error {
        let all = [Some(&self.tools), self.own_tools.as_ref()].into_iter().flatten().flat_map(|tools| tools.all());
        let mut names: Vec<&str> = all.filter(|tool| self.gate.shows(tool)).map(|tool| tool.name()).collect();
        names.sort_unstable();
        names.dedup();
        let hint = unknown_tool_hint(name, &names);
        Error::new(Reason::UnknownTool, format!("there is no tool/{name}")).hint(hint)
    }
}

/// The tools that may have been meant: the nearest names, or all of a few, and how many there are.
fn unknown_tool_hint(name: &str, names: &[&str]) -> String {
    /// The most names that are shown.
    const SHOWN: usize = 5;
    let listed = |names: &[&str]| names.iter().map(|name| format!("tool/{name}")).collect::<Vec<_>>().join(", ");
    let near = near_names(name, names.iter().copied(), SHOWN);
    match (names.len(), near.len()) {
        (0, _) => "there are no tools here; work on data/... alone".to_owned(),
        (_, 1..) => format!("did you mean {}?", listed(&near)),
        (count, 0) if count <= SHOWN => format!("there are {}", listed(names)),
        (count, 0) => format!("none of the {count} tools has a name like it; {} is the first", listed(&names[..1])),
    }
}

/// Where a symbol stands first in a source text.
fn place_of(source: &str, symbol: &str) -> Option<Span> {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || "-_./?!*+<>=&".contains(c));
    let (start, _) = source.match_indices(symbol).find(|(at, _)| ends(&source[at + symbol.len()..]))?;
    Some(Span::new(u32::try_from(start).ok()?, u32::try_from(start + symbol.len()).ok()?))
}
