//! Compiled programs: immutable, shared by any number of runs and threads.

use super::analyze::{self, Free};
use super::codegen;
use super::core::Node;
use crate::builtins::Rows;
use crate::code::{Definition, Instr, Proto};
use crate::error::{Error, Span};
use crate::stack::Compiled;
use crate::syntax::{self, Interrupt, ReadLimits};
use std::sync::Arc;

/// A compiled program. Compiled once, run any number of times on any thread.
#[derive(Debug)]
pub struct Program {
    limits: ReadLimits,
    /// Names of built-ins that had another meaning when it was compiled.
    shadowed: Box<[Box<str>]>,
    code: Arc<Compiled>,
    free: Vec<Free>,
    tools: Vec<Box<str>>,
    patterns: Vec<Box<str>>,
    doubled: Vec<Span>,
}

/// The core forms of a program, for [checks](crate::check) of its runs.
#[derive(Debug)]
pub struct Forms {
    pub(crate) body: Node,
    bytes: usize,
}

impl Forms {
    /// Returns their approximate size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Program {
    /// Reads, analyzes and compiles a program. `rows` are the functions that exist, and `shadowed` the names of
    /// built-ins that definitions of earlier turns have.
    pub(crate) fn build(
        source: &str,
        limits: &ReadLimits,
        rows: &Rows,
        shadowed: &[Box<str>],
        prelude: bool,
        interrupt: &Interrupt<'_>,
    ) -> Result<(Program, Forms), Error> {
        let read = syntax::read_at(source, limits, interrupt)?;
        let analysis = analyze::analyze(read.forms, (source, &read.names), rows, shadowed, prelude, interrupt)?;
        let text: Arc<str> = source.into();
        let code = codegen::generate(analysis.body, &text, &analysis.vars, rows, interrupt)?;
        let forms = Forms { body: code.body, bytes: analysis.nodes * size_of::<Node>() + source.len() };
        let program = Program {
            limits: *limits,
            shadowed: shadowed.into(),
            code: Arc::new(Compiled {
                source: text,
                protos: code.protos,
                constants: code.constants,
                globals: analysis.globals,
                has_lazy: analysis.has_lazy,
            }),
            free: analysis.free,
            tools: analysis.tools,
            patterns: analysis.patterns,
            doubled: analysis.doubled,
        };
        Ok((program, forms))
    }

    /// Returns the source text.
    pub fn source(&self) -> &str {
        &self.code.source
    }

    /// Returns the names of built-ins that definitions shadowed when it was compiled.
    pub fn shadowed(&self) -> impl Iterator<Item = &str> {
        self.shadowed.iter().map(|name| &**name)
    }

    /// Returns the limits with which it was read.
    pub fn limits(&self) -> &ReadLimits {
        &self.limits
    }

    /// Returns the tools that the program names.
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|t| &**t)
    }

    /// Returns the data that the program names as `data/name`, without the prefix.
    pub fn data_names(&self) -> impl Iterator<Item = &str> {
        self.code.globals.iter().filter_map(|g| g.strip_prefix("data/"))
    }

    /// Returns the positions of the three characters where pattern literals have `\\` before `d`, `w`, `s` or `b` (or
    /// `D` ...), and `\d` is probably meant. Of many only the first.
    pub fn doubled_backslashes(&self) -> &[Span] {
        &self.doubled
    }

    /// Returns the position where the data with this number among the definitions is first read.
    pub(crate) fn place_of_data(&self, global: usize) -> Option<Span> {
        self.code.protos.iter().find_map(|proto| {
            let reads = |instr: &Instr| matches!(*instr, Instr::Data { g, .. } if g as usize == global);
            proto.spans.get(proto.code.instrs().iter().position(reads)?).copied()
        })
    }

    /// Returns the approximate size of the compiled program in bytes.
    pub fn bytes(&self) -> usize {
        let of_proto = |proto: &Proto| {
            std::mem::size_of::<Proto>()
                + proto.code.instrs().len() * 16
                + std::mem::size_of_val(&*proto.locals)
                + std::mem::size_of_val(&*proto.in_place)
                + proto.definition.as_deref().map_or(0, Definition::bytes)
        };
        let code: usize = self.code.protos.iter().map(of_proto).sum();
        let names: usize =
            self.code.globals.iter().chain(&self.tools).chain(&self.patterns).map(|n| n.len() + 16).sum();
        self.source().len() + code + names + self.code.constants.bytes()
    }

    /// Returns what its runs work with.
    pub(crate) fn code(&self) -> &Arc<Compiled> {
        &self.code
    }

    /// Returns the regular expression literals of the program.
    pub(crate) fn patterns(&self) -> &[Box<str>] {
        &self.patterns
    }

    pub(crate) fn free(&self) -> &[Free] {
        &self.free
    }
}
