//! Compiled programs.

use crate::terms::cancel::Cancel;
use crate::terms::deadline::{deadline, expired, run_timeout, stop_of_compiling};
use crate::terms::limits::{Limits, bytes};
use crate::terms::outcome::{Phase, Problem, lost};
use crate::terms::warning::Warning;
use lisp_core::compile::Forms;
use lisp_core::error::{Error, Reason};
use lisp_core::syntax::{Completeness, ReadLimits};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

/// A compiled program: immutable, cheap to clone, and shared by any number of runs and threads.
#[derive(Clone)]
pub struct Program {
    program: Arc<lisp_core::compile::Program>,
    /// The core forms, if its runs are checked.
    forms: Option<Arc<Forms>>,
}

impl Program {
    /// Compiles a program within limits. [`crate::Engine::compile`] does so within the limits of the engine.
    ///
    /// # Errors
    /// The first syntax or analysis error, with its position.
    pub fn compile(source: &str, limits: &Limits) -> Result<Program, Box<Problem>> {
        Self::compile_whole(source, limits, false)
    }

    /// Compiles without a deadline. `keeps_forms` says that its runs are checked.
    pub(crate) fn compile_whole(source: &str, limits: &Limits, keeps_forms: bool) -> Result<Program, Box<Problem>> {
        Self::of(source, compiled(source, limits, keeps_forms, &|| false))
    }

    /// Compiles as part of a run that started at `started`, until its deadline or its cancellation. `keeps_forms` says that
    /// its runs are checked.
    pub(crate) fn compile_since(
        started: Instant,
        source: &str,
        limits: &Limits,
        cancel: Option<&Cancel>,
        keeps_forms: bool,
    ) -> Result<Program, Box<Problem>> {
        let until = deadline(started, limits.timeout_ms);
        let end = || expired(limits, cancel, until);
        let stop = stop_of_compiling(limits, cancel, until);
        match compiled(source, limits, keeps_forms, &stop) {
            Err(error) if error.reason == Reason::Timeout => {
                let error = end().or_else(|| until.map(|_| run_timeout(limits))).unwrap_or(error);
                Err(Box::new(Problem::new(error, Phase::Compile)))
            }
            program => Self::of(source, program),
        }
    }

    fn of(source: &str, compiled: Result<Compiled, Error>) -> Result<Program, Box<Problem>> {
        match compiled {
            Ok((program, forms)) => Ok(Program { program: Arc::new(program), forms }),
            Err(error) => Err(Box::new(Problem::in_source(error, source, Phase::Compile))),
        }
    }

    /// Returns the source.
    pub fn source(&self) -> &str {
        self.program.source()
    }

    /// Returns warnings about the source, such as a Markdown code fence around it. Outcomes of its runs repeat them.
    pub fn warnings(&self) -> Vec<Warning> {
        Warning::of_program(&self.program)
    }

    /// Returns the approximate size of the compiled program in bytes, with its source, without allocator overhead.
    pub fn bytes(&self) -> usize {
        self.program.bytes() + self.forms.as_ref().map_or(0, |forms| forms.bytes())
    }

    /// Returns the program if it has at most this size, without its core forms if it is too large with them.
    pub(crate) fn within(&self, bytes: usize) -> Option<Program> {
        let bare = || Program { program: self.program.clone(), forms: None };
        let program = if self.bytes() > bytes { bare() } else { self.clone() };
        (program.bytes() <= bytes).then_some(program)
    }

    /// Returns the names of the tools that the program may call.
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.program.tool_names()
    }

    /// Returns the names of the data that the program reads as `data/name`.
    pub fn data_names(&self) -> impl Iterator<Item = &str> {
        self.program.data_names()
    }

    pub(crate) fn core(&self) -> &Arc<lisp_core::compile::Program> {
        &self.program
    }

    /// Returns the core forms, if they were kept.
    pub(crate) fn forms(&self) -> Option<&Forms> {
        self.forms.as_deref()
    }
}

type Compiled = (lisp_core::compile::Program, Option<Arc<Forms>>);

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Program").field(&self.source()).finish()
    }
}

fn compiled(source: &str, limits: &Limits, keeps_forms: bool, stop: &dyn Fn() -> bool) -> Result<Compiled, Error> {
    contained(|| {
        let (program, forms) = lisp_core::compile::Program::compile_unless(source, &read_limits(limits), stop)?;
        Ok((program, keeps_forms.then(|| Arc::new(forms))))
    })
}

/// Compiles, and turns a panic of the compiler into an ordinary error.
fn contained(compile: impl FnOnce() -> Result<Compiled, Error>) -> Result<Compiled, Error> {
    catch_unwind(AssertUnwindSafe(compile)).unwrap_or_else(|panic| Err(lost(panic)))
}

/// Returns whether more text could complete the source, for a REPL that reads several lines.
pub fn is_incomplete(source: &str) -> bool {
    matches!(lisp_core::syntax::completeness(source), Completeness::Incomplete)
}

/// Returns the names of all built-in functions, with their aliases.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    lisp_core::library::all().iter().flat_map(|row| std::iter::once(row.name).chain(row.aliases.iter().copied()))
}

pub(crate) fn read_limits(limits: &Limits) -> ReadLimits {
    ReadLimits {
        source_bytes: if limits.program_bytes == 0 { 0 } else { bytes(limits.program_bytes) },
        names: if limits.symbols == 0 { 0 } else { bytes(limits.symbols) },
        ..ReadLimits::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_compiler_is_contained() {
        let error = contained(|| std::panic::panic_any("a bug of a test")).expect_err("no program");
        assert_eq!(error.reason, Reason::HostFault);
    }
}
