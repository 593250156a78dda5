//! What a run needs of its engine and its input.

use super::watchdog;
use crate::terms::cancel::Cancel;
use crate::terms::clock::{Clock, Reading};
use crate::terms::deadline::ReplayEnd;
use crate::terms::keys::Keys;
use crate::terms::limits::Limits;
use crate::terms::print_hook::PrintHook;
use crate::terms::run_view::RunView;
use crate::tools::gate::GateSetting;
use crate::tools::search::which_there_are;
use crate::tools::signature::Signature;
use crate::tools::tool::{Tool, Tools};
use lisp_core::compile::{Program, TOOL_PAGE};
use lisp_core::{Error, Reason, Span};
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// What is made of a run besides its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Makes {
    /// The definitions as JSON
    pub(crate) memory: bool,
    /// What the program holds at its end
    pub(crate) live: bool,
    /// Where the work was done
    pub(crate) profile: bool,
}

impl Default for Makes {
    fn default() -> Self {
        Makes { memory: true, live: false, profile: false }
    }
}

/// What a run needs of its engine.
#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) limits: Limits,
    pub(crate) tools: Arc<Tools>,
    /// Tools of this run only.
    pub(crate) own_tools: Option<Arc<Tools>>,
    /// What `(doc tool/name)` asks, once it is asked.
    pub(crate) pages: OnceLock<Arc<Tool>>,
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
    /// What the clock told in the run that is replayed.
    pub(crate) clock_replay: Vec<Reading>,
    pub(crate) on_print: Option<PrintHook>,
    /// Of a run that goes on from a record: where its time begins.
    pub(crate) replay: Option<Arc<ReplayEnd>>,
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
        if name == TOOL_PAGE {
            return Some(self.pages.get_or_init(|| Arc::new(Tool::pages(self.shown_tools().cloned().collect()))));
        }
        let tool = self.own_tools.as_ref().and_then(|tools| tools.get(name)).or_else(|| self.tools.get(name))?;
        self.gate.shows(tool).then_some(tool)
    }

    /// Does a tool of the run keep arguments out of what is shown?
    pub(crate) fn redacts(&self) -> bool {
        self.tools.redacts() || self.own_tools.as_ref().is_some_and(|tools| tools.redacts())
    }

    /// All that the run sees, those of the run itself first.
    fn shown_tools(&self) -> impl Iterator<Item = &Arc<Tool>> {
        let all = [self.own_tools.as_ref(), Some(&self.tools)].into_iter().flatten().flat_map(|tools| tools.all());
        all.filter(|tool| self.gate.shows(tool))
    }

    /// Do printed lines leave the run as they happen?
    pub(crate) fn streams_prints(&self) -> bool {
        self.alarm.is_some() || self.on_print.is_some() || self.view.sees_prints()
    }

    /// Are printed lines kept for the outcome?
    pub(crate) fn keeps_prints(&self) -> bool {
        self.on_print.as_ref().is_none_or(|hook| hook.keeps)
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

    /// The error for the tools of a program that were not granted; `None` when all were.
    pub(crate) fn missing_tool(&self, program: &Program) -> Option<Error> {
        let unknown = program.tool_names().filter(|name| !self.any_tool && self.tool(name).is_none());
        Error::of_several(unknown.map(|name| {
            let error = self.unknown_tool(name);
            match place_of(program.source(), &format!("tool/{name}")) {
                Some(span) => error.at(span),
                None => error,
            }
        }))
    }

    pub(crate) fn unknown_tool(&self, name: &str) -> Error {
        let mut names: Vec<&str> = self.shown_tools().map(|tool| tool.name()).collect();
        names.sort_unstable();
        names.dedup();
        let hint = which_there_are(name, &names);
        Error::new(Reason::UnknownTool, format!("there is no tool/{name}")).hint(hint)
    }
}

/// Where a symbol stands first in a source text.
fn place_of(source: &str, symbol: &str) -> Option<Span> {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || "-_./?!*+<>=&".contains(c));
    let (start, _) = source.match_indices(symbol).find(|(at, _)| ends(&source[at + symbol.len()..]))?;
    Some(Span::new(u32::try_from(start).ok()?, u32::try_from(start + symbol.len()).ok()?))
}
