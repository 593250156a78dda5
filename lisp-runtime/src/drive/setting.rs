//! What a run needs from its engine and its input.

use super::watchdog;
use crate::terms::cancel::Cancel;
use crate::terms::check::Check;
use crate::terms::clock::{Clock, Reading};
use crate::terms::deadline::ReplayEnd;
use crate::terms::keys::Keys;
use crate::terms::limits::Limits;
use crate::terms::print_hook::{Heartbeat, PrintHook};
use crate::terms::run_view::RunView;
use crate::tools::gate::GateSetting;
use crate::tools::search::which_there_are;
use crate::tools::signature::Signature;
use crate::tools::tool::Tool;
use crate::tools::tool_set::Tools;
use lisp_core::compile::{Program, TOOL_PAGE};
use lisp_core::{Error, Reason, Span};
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Optional parts of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Makes {
    /// The definitions as JSON.
    pub(crate) memory: bool,
    /// The bytes that the program holds at its end.
    pub(crate) live: bool,
    /// The profile.
    pub(crate) profile: bool,
    /// The check before the program runs.
    pub(crate) check: Check,
    /// Whether the run ends after the check.
    pub(crate) check_only: bool,
    /// The result as a typed value.
    pub(crate) typed: bool,
}

impl Default for Makes {
    fn default() -> Self {
        Makes { memory: true, live: false, profile: false, check: Check::Refuse, check_only: false, typed: false }
    }
}

/// The settings of a run.
#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) limits: Limits,
    pub(crate) tools: Arc<Tools>,
    /// Tools of this run only.
    pub(crate) own_tools: Option<Arc<Tools>>,
    /// The internal tool behind `(doc tool/name)`, made on first use.
    pub(crate) pages: OnceLock<Arc<Tool>>,
    pub(crate) cancel: Cancel,
    pub(crate) signature: Option<Signature>,
    /// How JSON object keys are represented.
    pub(crate) keys: Keys,
    /// Whether names of tools are not looked up before the program runs.
    pub(crate) any_tool: bool,
    /// A flag that a signal sets at the deadline, instead of the watchdog. For a run that shows lines as they are
    /// printed, in a process without threads.
    pub(crate) alarm: Option<Arc<AtomicBool>>,
    /// Whether a thread may watch it; otherwise, only cancellation interrupts a built-in.
    pub(crate) watched: bool,
    pub(crate) clock: Clock,
    /// The clock readings to replay.
    pub(crate) clock_replay: Vec<Reading>,
    pub(crate) on_print: Option<PrintHook>,
    /// Called from time to time on the thread of the run.
    pub(crate) heartbeat: Option<Heartbeat>,
    /// For a resumed run: when its time starts.
    pub(crate) replay: Option<Arc<ReplayEnd>>,
    /// The settings of the gate for tool calls, with the journal if the run is recorded.
    pub(crate) gate: GateSetting,
    /// The fuel that the run has taken from its budget.
    pub(crate) fuel: Option<u64>,
    /// The run as observers see it.
    pub(crate) view: RunView,
    /// The optional parts of its outcome.
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

    /// Returns whether a tool of the run has redacted arguments.
    pub(crate) fn redacts(&self) -> bool {
        self.tools.redacts() || self.own_tools.as_ref().is_some_and(|tools| tools.redacts())
    }

    /// Returns all tools that the run sees, its own first.
    fn shown_tools(&self) -> impl Iterator<Item = &Arc<Tool>> {
        let all = [self.own_tools.as_ref(), Some(&self.tools)].into_iter().flatten().flat_map(|tools| tools.all());
        all.filter(|tool| self.gate.shows(tool))
    }

    /// Returns whether lines are shown as they are printed.
    pub(crate) fn streams_prints(&self) -> bool {
        self.alarm.is_some() || self.on_print.is_some() || self.view.sees_prints()
    }

    /// Returns whether printed lines are kept for the outcome.
    pub(crate) fn keeps_prints(&self) -> bool {
        self.on_print.as_ref().is_none_or(|hook| hook.keeps)
    }

    /// Shows lines as they are printed. Returns false if nothing shows them.
    pub(crate) fn show(&self, lines: &[String]) -> bool {
        self.view.printed(lines);
        if let Some(hook) = &self.on_print {
            hook.show(lines);
        }
        self.on_print.is_some() || self.view.sees_prints()
    }

    /// Returns the flag that interrupts a built-in at the deadline or on cancellation.
    pub(crate) fn flag(&self, deadline: Option<Instant>, cancel: &Cancel) -> Arc<AtomicBool> {
        let watched = || if self.watched { watchdog::flag(deadline, cancel) } else { None };
        // Without the thread that would set the flag at the deadline.
        self.alarm.clone().or_else(watched).unwrap_or_else(|| cancel.flag())
    }

    /// Returns the error for tools of a program that were not granted; `None` if all were.
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

/// Returns the first position of a symbol in a source.
fn place_of(source: &str, symbol: &str) -> Option<Span> {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || "-_./?!*+<>=&".contains(c));
    let (start, _) = source.match_indices(symbol).find(|(at, _)| ends(&source[at + symbol.len()..]))?;
    Some(Span::new(u32::try_from(start).ok()?, u32::try_from(start + symbol.len()).ok()?))
}
