//! Compiled code as plain data: what the compiler makes, the machine runs, and closures and frames refer to.

mod bytecode;
mod instr;
mod proto;

pub(crate) use bytecode::{Bytecode, HandledBy, Handler};
pub(crate) use instr::{ArithName, Cmp, Instr, Rare};
pub(crate) use proto::{Called, InPlace, Local, LocalPlace, Proto};

/// The number of a built-in function: its place in the table of them all, which `library` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuiltinId(pub(crate) u16);

/// The number of a program that a machine has loaded. The machine, and the workers it shares its heap with, know the
/// program by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProgramId(pub(crate) u32);
