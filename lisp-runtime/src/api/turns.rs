//! Turns on the machine of a session: its limits, what it keeps, and its definitions as text.

use super::grant::{granted, setup_exceeded};
use super::input::Input;
use super::program::{Program, read_limits};
use super::run::{Run, heap_setting};
use super::saved::SavedText;
use crate::drive::setting::Setting;
use crate::terms::deadline::{deadline, expired, run_timeout, stop_of_compiling};
use crate::terms::limits::bytes;
use crate::terms::observer::Observed;
use crate::terms::outcome::{OutcomeKind, Phase, Problem};
use crate::terms::run_view::RunView;
use crate::terms::warning::Warning;
use crate::text::convert;
use lisp_core::heap::Fault;
use lisp_core::vm::SavedProgram;
use lisp_core::{Error, Reason};
use std::sync::Arc;
use std::time::Instant;

impl Run {
    /// Creates a session's machine with the definitions of a saved session; no program is loaded.
    ///
    /// # Errors
    /// An error in the text, with its line; `memory_exceeded` if the definitions exceed `setup_heap_bytes`;
    /// `unknown_tool` if a function calls a missing tool; `session_limit_exceeded`; `timeout`; `cancelled`.
    pub(crate) fn restored(
        started: Instant,
        setting: Setting,
        input: &Input<'_>,
        saved: &SavedText<'_>,
    ) -> Result<Run, Box<Problem>> {
        /// Temporary objects are dropped before the definitions are measured; this factor makes room for them.
        const ON_THE_WAY: usize = 3;
        let limits = setting.limits;
        let problem = |error: Error| Box::new(Problem::new(error, Phase::Setup));
        let ceiling = bytes(limits.setup_heap_bytes);
        let until = deadline(started, limits.timeout_ms);
        let (grants, baseline) = granted(&setting, input, 0, until).map_err(problem)?;
        let room = (ceiling - baseline).saturating_mul(ON_THE_WAY);
        let heap_bytes = if ceiling == usize::MAX { 0 } else { room.max(1) };
        let flag = setting.flag(until, &setting.cancel);
        let stop = stop_of_compiling(&limits, Some(&setting.cancel), until);
        let late = || {
            let error = expired(&limits, Some(&setting.cancel), until);
            error.unwrap_or_else(|| run_timeout(&limits))
        };
        let mut compile = |program: SavedProgram<'_>| {
            let SavedProgram { number, source, shadowed } = program;
            let compiled =
                lisp_core::compile::Program::compile_shadowed(&source, &read_limits(&limits), &shadowed, &stop);
            let error = match compiled {
                Ok(compiled) => match setting.missing_tool(&compiled) {
                    None => return Ok(Arc::new(compiled)),
                    Some(error) => error,
                },
                Err(error) if error.reason == Reason::Timeout => return Err(late()),
                Err(error) => error,
            };
            let message = format!("program {number} of the saved session: {}", error.message);
            Err(Error { message, span: None, ..error })
        };
        let nothing = Program::compile("nil", &limits)?;
        let mut run = Run::over(started, setting.clone(), input, grants, (baseline, heap_bytes), vec![nothing]);
        for (text, first) in [saved.definitions, saved.history] {
            run.driver.machine.restore(text, first, Some(flag.clone()), &mut compile).map_err(|fault| {
                problem(match fault {
                    Fault::Error(error) => *error,
                    Fault::Pause(_) => late(),
                    _ => setup_exceeded(ceiling),
                })
            })?;
        }
        let live = run.driver.machine.live_bytes(usize::MAX).unwrap_or(usize::MAX);
        if live > ceiling - baseline {
            return Err(problem(setup_exceeded(ceiling)));
        }
        run.driver.machine.rebaseline(heap_setting(&limits));
        run.set_up_bytes = live as u64;
        run.baseline = run.baseline.saturating_add(run.set_up_bytes);
        (run.set_ups, run.turn, run.keeps_history) = (saved.set_ups, saved.turns, true);
        run.check_definitions(OutcomeKind::Value).map_err(problem)?;
        run.make_room_for_turn(0)?;
        Ok(run)
    }

    /// Loads one more program on the same machine and resets its account.
    pub(crate) fn next_turn(
        &mut self,
        started: Instant,
        turn: u64,
        program: &Program,
        view: RunView,
    ) -> Result<(), Box<Problem>> {
        if let Some(error) = self.shared.setting.missing_tool(program.core()) {
            return Err(Box::new(Problem::in_source(error, program.source(), Phase::Compile)));
        }
        (self.programs, self.current, self.turn) = (vec![program.clone()], 0, turn);
        self.renew(started, view);
        self.make_room_for_turn(program.core().bytes())?;
        self.load()
    }

    /// Drops programs that no function in the definitions belongs to. To cost little per turn, this is done only
    /// sometimes: if many programs or bytes were added since the last time, relative to what is held and must be
    /// copied, or if a limit is reached.
    fn make_room_for_turn(&mut self, more: usize) -> Result<(), Box<Problem>> {
        /// With fewer new programs than this, nothing is dropped.
        const FEW: usize = 64;
        const SMALL: usize = 1_000;
        const PART: usize = 16;
        let machine = &self.driver.machine;
        let (count, all) = machine.programs().fold((0, 0), |(count, all), (_, bytes)| (count + 1, all + bytes));
        let (kept, kept_bytes) = self.kept_programs;
        let many = count > kept.saturating_mul(2).saturating_add(FEW);
        let large =
            all.saturating_sub(kept_bytes) > SMALL.max(kept_bytes / PART) + machine.usage().heap_live_bytes / PART;
        if many || large || self.over_ceiling(more).is_some() {
            let max = bytes(self.shared.setting.limits.session_program_bytes);
            self.driver.machine.forget_programs(max);
            self.kept_programs =
                self.driver.machine.programs().fold((0, 0), |(count, all), (_, bytes)| (count + 1, all + bytes));
        }
        match self.over_ceiling(more) {
            Some(error) => Err(self.problem(error, Phase::Compile)),
            None => Ok(()),
        }
    }

    /// Returns the error if the programs of the session, and one more of `more` bytes, exceed its limits.
    fn over_ceiling(&self, more: usize) -> Option<Error> {
        const HINT: &str =
            "define the functions of several turns in one program, or remove some as in (def name nil); or raise";
        let limits = &self.shared.setting.limits;
        let count = self.driver.machine.programs().count() + usize::from(more > 0);
        let max = bytes(limits.session_programs);
        if count > max {
            let message = format!(
                "the session would keep {count} programs for the functions of its definitions; the limit session_programs is {max}"
            );
            let error = Error::new(Reason::SessionLimitExceeded, message);
            return Some(error.hint(format!("{HINT} the limit session_programs")).detail("limit", max));
        }
        let all: usize = self.driver.machine.programs().map(|(_, bytes)| bytes).sum();
        let (all, max) = (all.saturating_add(more), bytes(limits.session_program_bytes));
        if all > max {
            let message =
                format!("the programs of the session would take {all} bytes; the limit session_program_bytes is {max}");
            let error = Error::new(Reason::SessionLimitExceeded, message);
            return Some(error.hint(format!("{HINT} the limit session_program_bytes")).detail("limit_bytes", max));
        }
        let later = self.driver.machine.programs().filter(|(number, _)| *number > self.in_baseline);
        let kept = later.map(|(_, bytes)| bytes).sum::<usize>().saturating_add(more);
        let total = usize::try_from(self.baseline).unwrap_or(usize::MAX).saturating_add(kept);
        let ceiling = bytes(limits.setup_heap_bytes);
        (total > ceiling).then(|| {
            let message = format!(
                "the programs of the session take {kept} bytes, and with what the host gives {total}; the limit setup_heap_bytes is {ceiling}"
            );
            Error::new(Reason::MemoryExceeded, message)
                .hint("start a new session with the memory of this one, or raise the limit setup_heap_bytes")
                .detail("limit_bytes", ceiling)
        })
    }

    /// Checks the number of definitions of a session.
    pub(super) fn check_definitions(&mut self, kind: OutcomeKind) -> Result<(), Error> {
        let max = bytes(self.shared.setting.limits.session_definitions);
        if !self.keeps_history || kind == OutcomeKind::Fail {
            return Ok(());
        }
        let count = self.driver.machine.definitions();
        if count <= max {
            return Ok(());
        }
        let message = format!("the session would have {count} definitions; the limit session_definitions is {max}");
        Err(Error::new(Reason::SessionLimitExceeded, message)
            .hint("keep several values in one definition, as in (def all {:a 1 :b 2}), or raise the limit session_definitions")
            .detail("limit", max))
    }

    /// Keeps a turn that succeeded: its result becomes `*1`, and it can be undone.
    pub(super) fn keep_turn(&mut self) {
        self.driver.machine.push_history();
        let max = bytes_or_none(self.shared.setting.limits.session_undo);
        let change = self.driver.machine.keep_turn(max);
        self.change.definitions |= change.definitions;
        self.change.history |= change.history;
    }

    /// Undoes the last turn that was kept.
    pub(crate) fn undo(&mut self) -> Result<(), Box<Problem>> {
        if self.driver.machine.undo_turn() {
            (self.change.definitions, self.change.history) = (true, true);
            return Ok(());
        }
        Err(nothing_to_undo(self.shared.setting.limits.session_undo, self.driver.machine.has_let_turns_go()))
    }

    /// Returns the current definitions as a JSON object. This has the time limit of a turn, which began at `started`.
    pub(crate) fn memory(&mut self, started: Instant) -> Result<String, Box<Problem>> {
        self.renew(started, RunView::quiet(&Observed::default()));
        let made = self.in_time(Run::definitions).map_err(|error| self.problem(error, Phase::Result));
        made.map(|(memory, _)| memory)
    }

    pub(super) fn definitions(&mut self) -> Result<(String, Vec<Warning>), Error> {
        let limit = bytes(self.shared.setting.limits.result_bytes);
        self.driver.machine.with_definitions(|h, all| match all {
            [] => Ok(("{}".to_owned(), Vec::new())),
            all => convert::with_room(h, limit, || convert::definitions(h, all, limit)),
        })
    }

    /// Returns the definitions or the history as text. This has the time limit of a turn.
    pub(crate) fn saved(&mut self, history: bool) -> Result<String, Error> {
        let saved = self.in_time(|run| {
            let limit = bytes(run.shared.setting.limits.session_bytes);
            run.driver.machine.save(history, limit, |h, write| convert::with_room_for_session(h, limit, write))
        });
        saved.map_err(|error| match error.reason {
            Reason::Timeout => save_timeout(self.shared.setting.limits.timeout_ms),
            _ => error,
        })
    }

    /// Returns the number of set-up programs before the first turn.
    pub(crate) fn set_ups(&self) -> usize {
        self.set_ups
    }

    /// Returns a problem of an operation between two turns.
    pub(crate) fn result_problem(&self, error: Error) -> Box<Problem> {
        self.problem(error, Phase::Result)
    }
}

/// Returns the error of a session that cannot be saved within the time of a turn.
fn save_timeout(limit: u64) -> Error {
    Error::new(Reason::Timeout, format!("saving the session takes longer than timeout_ms, which is {limit} ms"))
        .hint("define less, as in (def name nil), or raise the limit timeout_ms")
        .detail("limit_ms", limit)
}

/// Returns a limit where 0 is no limit.
fn bytes_or_none(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// Returns the error of a session without a turn to undo. It keeps the last `max` turns; `let_go` if it dropped some.
pub fn nothing_to_undo(max: u64, let_go: bool) -> Box<Problem> {
    let message = match (max, let_go) {
        (0, _) => "no turn can be undone: the limit session_undo is 0".to_owned(),
        (_, true) => "no turn can be undone: the earlier state was dropped when a program needed the memory".to_owned(),
        _ => format!("there is no turn to undo; a session keeps at most its last {max} turns (session_undo)"),
    };
    let error = Error::new(Reason::SessionLimitExceeded, message)
        .hint("to go back further another time, raise the limit session_undo first, or save the session before a turn")
        .detail("limit", max);
    Box::new(Problem::new(error, Phase::Result))
}
