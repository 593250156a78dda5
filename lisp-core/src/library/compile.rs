//! Compiling with all functions of the language.

use super::ROWS;
use crate::compile::{Forms, Program};
use crate::error::Error;
use crate::syntax::{Interrupt, ReadLimits};

impl Program {
    /// Reads, analyzes and compiles a program.
    ///
    /// # Errors
    /// Returns `parse_error`, `program_too_large`, `symbol_limit_exceeded`, or any error of form, with the position in
    /// the text.
    pub fn compile(source: &str, limits: &ReadLimits) -> Result<Program, Error> {
        Self::build(source, limits, &ROWS, &[], false, &Interrupt::never()).map(|(program, _)| program)
    }

    /// Like [`Program::compile`], but stops when `stop` returns true; it is called about every tenth of a millisecond.
    /// Returns the core forms too.
    ///
    /// # Errors
    /// Returns the errors of [`Program::compile`], and `timeout`.
    pub fn compile_unless(
        source: &str,
        limits: &ReadLimits,
        stop: &dyn Fn() -> bool,
    ) -> Result<(Program, Forms), Error> {
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
        Self::build(source, limits, &ROWS, shadowed, false, &Interrupt::new(stop)).map(|(program, _)| program)
    }

    /// Reads and analyzes it again. Returns `None` once `stop` returns true.
    pub(crate) fn forms(&self, stop: &dyn Fn() -> bool) -> Option<Forms> {
        let shadowed: Vec<Box<str>> = self.shadowed().map(Into::into).collect();
        let built = Self::build(self.source(), self.limits(), &ROWS, &shadowed, false, &Interrupt::new(stop));
        built.ok().map(|(_, forms)| forms)
    }

    /// Compiles the same text again for a run whose definitions have names of built-ins.
    pub(crate) fn shadowed_by(&self, names: &[Box<str>], stop: &dyn Fn() -> bool) -> Result<Program, Error> {
        Self::build(self.source(), self.limits(), &ROWS, names, false, &Interrupt::new(stop))
            .map(|(program, _)| program)
    }

    /// Compiles the part of the language that is written in the language.
    pub(crate) fn compile_prelude(source: &str) -> Result<Program, Error> {
        Self::build(source, &ReadLimits::default(), &ROWS, &[], true, &Interrupt::never()).map(|(program, _)| program)
    }
}
