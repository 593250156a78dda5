//! Compiled code as plain data: created by the compiler, run by the machine, and referred to by closures and frames.

mod bytecode;
mod instr;
mod proto;

pub(crate) use bytecode::{Bytecode, HandledBy, Handler};
pub(crate) use instr::{ArithName, Cmp, Instr, Rare};
pub(crate) use proto::{Called, Definition, InPlace, Local, LocalPlace, Proto};

/// The number of a built-in function: its index in the table of all of them, which `library` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuiltinId(pub(crate) u16);

/// The number of a program that a machine has loaded. The machine and the workers that share its heap identify the
/// program by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProgramId(pub(crate) u32);
