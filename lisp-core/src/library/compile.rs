//! Compiling with all functions of the language.

use super::ROWS;
use crate::compile::Program;
use crate::error::Error;
use crate::syntax::{Interrupt, ReadLimits};

impl Program {
    /// Reads, analyzes and compiles a program.
    ///
    /// # Errors
    /// Returns `parse_error`, `program_too_large`, `symbol_limit_exceeded`, or any error of form, with the position in
    /// the text.
    pub fn compile(source: &str, limits: &ReadLimits) -> Result<Program, Error> {
        Self::build(source, limits, &ROWS, &[], false, &Interrupt::never())
    }

    /// Like [`Program::compile`], but stops when `stop` returns true; it is called about every tenth of a millisecond.
    ///
    /// # Errors
    /// Returns the errors of [`Program::compile`], and `timeout`.
    pub fn compile_unless(source: &str, limits: &ReadLimits, stop: &dyn Fn() -> bool) -> Result<Program, Error> {
        Self::build(source, limits, &ROWS, &[], false, &Interrupt::new(stop))
    }

    /// Like [`Program::compile_unless`], with definitions that have the names of the built-ins in `shadowed`.
    ///
    /// # Errors
    /// Returns the errors of [`Program::compile_unless`].
    pub fn compile_shadowed(
        source: &str,
        limits: &ReadLimits,
        shadowed: &[Box<str>],
        stop: &dyn Fn() -> bool,
    ) -> Result<Program, Error> {
        Self::build(source, limits, &ROWS, shadowed, false, &Interrupt::new(stop))
    }

    /// Compiles the same text again for a run whose definitions have names of built-ins.
    pub(crate) fn shadowed_by(&self, names: &[Box<str>], stop: &dyn Fn() -> bool) -> Result<Program, Error> {
        Self::build(self.source(), self.limits(), &ROWS, names, false, &Interrupt::new(stop))
    }

    /// Compiles the part of the language that is written in the language.
    pub(crate) fn compile_prelude(source: &str) -> Result<Program, Error> {
        Self::build(source, &ReadLimits::default(), &ROWS, &[], true, &Interrupt::never())
    }
}
