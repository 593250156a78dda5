//! The instruction set of the register machine. Eight bytes each; registers and small operands are 16 bits.

use super::BuiltinId;
use std::cmp::Ordering;

/// Comparison of a compare instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cmp {
    /// `<`
    Lt = 0b001,
    /// `=`
    Eq = 0b010,
    /// `<=`
    Le = 0b011,
    /// `>`
    Gt = 0b100,
    /// `>=`
    Ge = 0b110,
}

impl Cmp {
    /// Does it hold for two numbers? For a comparison that is known when this is compiled.
    #[inline(always)]
    pub(crate) fn holds_for<T: PartialOrd>(self, a: T, b: T) -> bool {
        match self {
            Cmp::Lt => a < b,
            Cmp::Eq => a == b,
            Cmp::Le => a <= b,
            Cmp::Gt => a > b,
            Cmp::Ge => a >= b,
        }
    }

    /// Does it hold for two things in this order? The bits of a comparison stand for less, equal and greater.
    #[inline(always)]
    pub(crate) fn holds(self, order: Ordering) -> bool {
        self as u8 >> (order as i8 + 1) & 1 != 0
    }
}

/// The function whose name an arithmetic instruction carries in its errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArithName {
    /// `(+ a n)`
    Plus,
    /// `(- a n)`
    Minus,
    /// `(inc a)`
    Inc,
    /// `(dec a)`
    Dec,
}

/// What an instruction does that programs seldom come to; the loop leaves it to a function of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rare {
    /// an error with the value R[src]
    Throw,
    /// the error that R[src] stands for, unless it is nil
    Rethrow,
    /// R[dst] = does R[src] stand for an error of class n?
    IsCaught,
    /// R[dst] = is R[src] of the class with the number n?
    IsInstance,
    /// R[dst] = function number n, with the captures of the running function
    Sibling,
}

/// One instruction. `R[x]` is a register of the frame, `K[k]` a constant, `G[g]` a definition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Instr {
    /// R[dst] = R[src]
    Move { dst: u16, src: u16 },
    /// R[dst] = K[k]
    Const { dst: u16, k: u32 },
    /// R[dst] = value
    Int { dst: u16, value: i32 },
    /// R[dst] = no value
    Unset { dst: u16 },
    /// R[dst] = nil
    Nil { dst: u16 },
    /// R[dst] = true or false
    Bool { value: bool, dst: u16 },
    /// R[dst] = the built-in
    Builtin { dst: u16, id: BuiltinId },
    /// R[dst] = captured value number index
    Capture { dst: u16, index: u16 },
    /// R[dst] = the running function
    SelfFn { dst: u16 },
    /// R[dst] = the tool named K[k]
    Tool { dst: u16, k: u32 },
    /// R[dst] = G[g]; an error when it is not defined
    Global { dst: u16, g: u32 },
    /// R[dst] = G[g]; nil when it is not there
    Data { dst: u16, g: u32 },
    /// G[g] = R[src]
    Define { src: u16, g: u32 },
    /// pc += off when G[g] is defined
    JumpDefined { g: u16, off: i32 },
    /// R[dst] = #'name of G[g]
    VarName { dst: u16, g: u32 },
    /// pc += off
    Jump { off: i32 },
    /// pc += off, backwards, at the end of a walk
    Repeat { off: i32 },
    /// count a round in R[counter], then pc += off
    Loop { counter: u16, off: i32 },
    /// pc += off when R[src] is nil or false
    JumpFalse { src: u16, off: i32 },
    /// pc += off when R[src] is neither nil nor false
    JumpTrue { src: u16, off: i32 },
    /// pc += off when R[src] is not nil
    JumpSome { src: u16, off: i32 },
    /// pc += off when R[src] holds a value
    JumpSet { src: u16, off: i32 },
    /// pc += off unless R[a] < R[b]
    UnlessLt { a: u16, b: u16, off: i16 },
    /// pc += off unless R[a] <= R[b]
    UnlessLe { a: u16, b: u16, off: i16 },
    /// pc += off unless R[a] > R[b]
    UnlessGt { a: u16, b: u16, off: i16 },
    /// pc += off unless R[a] >= R[b]
    UnlessGe { a: u16, b: u16, off: i16 },
    /// pc += off unless R[a] = R[b]
    UnlessEq { a: u16, b: u16, off: i16 },
    /// pc += off unless R[a] < imm
    UnlessLtInt { a: u16, imm: i16, off: i16 },
    /// pc += off unless R[a] <= imm
    UnlessLeInt { a: u16, imm: i16, off: i16 },
    /// pc += off unless R[a] > imm
    UnlessGtInt { a: u16, imm: i16, off: i16 },
    /// pc += off unless R[a] >= imm
    UnlessGeInt { a: u16, imm: i16, off: i16 },
    /// pc += off unless R[a] = imm
    UnlessEqInt { a: u16, imm: i16, off: i16 },
    /// R[dst] = R[a] op R[b]
    Compare { op: Cmp, dst: u16, a: u16, b: u16 },
    /// R[dst] = R[a] op imm
    CompareInt { op: Cmp, dst: u16, a: u16, imm: i16 },
    /// R[dst] = R[a] + R[b]
    Add { dst: u16, a: u16, b: u16 },
    /// R[dst] = R[a] - R[b]
    Sub { dst: u16, a: u16, b: u16 },
    /// R[dst] = R[a] * R[b]
    Mul { dst: u16, a: u16, b: u16 },
    /// R[dst] = R[a] + imm
    AddInt { name: ArithName, dst: u16, a: u16, imm: i16 },
    /// R[dst] = value at key K[k] of R[src], flexible
    Key { dst: u16, src: u16, k: u16 },
    /// the same; no value when the key is not there
    KeyUnset { dst: u16, src: u16, k: u16 },
    /// R[dst] = built-in id of the argc registers from base
    CallBuiltin { argc: u8, dst: u16, base: u16, id: BuiltinId },
    /// R[dst] = R[base] called with the argc registers behind it
    Call { dst: u16, base: u16, argc: u16 },
    /// R[dst] = G[g], which the code generator knows to be defined, called with the argc registers behind R[base]
    CallGlobal { argc: u8, dst: u16, base: u16, g: u16 },
    /// end of the function: its value is R[src]
    Return { src: u16 },
    /// end of the program by (return R[src])
    StopReturn { src: u16 },
    /// end of the program by (fail R[src])
    StopFail { src: u16 },
    /// R[dst] = function number proto; it captures the registers from base
    Closure { dst: u16, proto: u16, base: u16 },
    /// R[dst] = vector of n registers from base
    Vector { dst: u16, base: u16, n: u16 },
    /// R[dst] = map of n registers from base, keys and values in turn
    Map { dst: u16, base: u16, n: u16 },
    /// R[dst] = map with the keys of map K[k]; their values, in the order of the keys, are in the registers from base
    Record { dst: u16, base: u16, k: u16 },
    /// R[dst] = set of n registers from base
    Set { dst: u16, base: u16, n: u16 },
    /// R[base] = elements of R[src], R[base + 1] = 0
    Walk { base: u16, src: u16 },
    /// R[base + 2] = next element of the walk; R[base] = nil, pc += off at its end. An integer in R[base] is the end of a
    /// range
    Next { base: u16, off: i32 },
    /// R[base + 2] = next element of the walk, pc += off, backwards; R[base] = nil at its end
    Again { base: u16, off: i32 },
    /// R[base] = elements of R[base], R[base + 1] = 0; pc += off when that cannot be walked at once, or when `calls` and
    /// R[base + 3] is no function of the program
    Enter { calls: bool, base: u16, off: i32 },
    /// pc += off unless the integers from R[base + 1] up to R[base] can be walked; `calls` as before
    EnterRange { calls: bool, base: u16, off: i32 },
    /// R[dst] = a vector under construction
    Collect { dst: u16 },
    /// R[dst] = a vector under construction, for as many elements as R[base] has
    CollectAll { dst: u16, base: u16 },
    /// add R[src] to the vector under construction
    Push { builder: u16, src: u16 },
    /// R[dst] = the finished vector
    Finish { dst: u16, builder: u16 },
    /// R[dst] = R[src]; pc += off when that ends a reduction, with what it holds
    Combine { dst: u16, src: u16, off: i16 },
    /// R[dst] = R[src], which must be a vector or nil; a map or set too where there is a rest
    SeqArg { dst: u16, src: u16, rest: bool },
    /// R[dst] = R[src], which must be a map or nil
    MapArg { dst: u16, src: u16 },
    /// R[dst] = element index of R[src], or nil
    Nth { dst: u16, src: u16, index: u16 },
    /// R[dst] = elements of R[src] from index on
    Rest { dst: u16, src: u16, index: u16 },
    /// R[dst] = elements of R[src], nil when there are none
    Seq { dst: u16, src: u16 },
    /// R[dst] = map of the keys and values in vector R[src]
    KeywordArgs { dst: u16, src: u16 },
    /// R[dst] = is R[src] nil?
    IsNil { dst: u16, src: u16 },
    /// R[dst] = is R[src] the same case as K[k]?
    IsCase { dst: u16, src: u16, k: u16 },
    /// what `op` says
    Rare { op: Rare, dst: u16, src: u16, n: u16 },
}

const _: () = assert!(std::mem::size_of::<Instr>() == 8);

impl Instr {
    /// pc += off unless R[a] op R[b]: comparisons that decide a jump are the most frequent of all, so each has an
    /// instruction of its own.
    pub(crate) fn unless(op: Cmp, a: u16, b: u16, off: i16) -> Instr {
        match op {
            Cmp::Lt => Instr::UnlessLt { a, b, off },
            Cmp::Le => Instr::UnlessLe { a, b, off },
            Cmp::Gt => Instr::UnlessGt { a, b, off },
            Cmp::Ge => Instr::UnlessGe { a, b, off },
            Cmp::Eq => Instr::UnlessEq { a, b, off },
        }
    }

    /// pc += off unless R[a] op imm
    pub(crate) fn unless_int(op: Cmp, a: u16, imm: i16, off: i16) -> Instr {
        match op {
            Cmp::Lt => Instr::UnlessLtInt { a, imm, off },
            Cmp::Le => Instr::UnlessLeInt { a, imm, off },
            Cmp::Gt => Instr::UnlessGtInt { a, imm, off },
            Cmp::Ge => Instr::UnlessGeInt { a, imm, off },
            Cmp::Eq => Instr::UnlessEqInt { a, imm, off },
        }
    }

    /// One past the highest register it reads or writes, apart from rows whose length it does not say.
    pub(crate) fn reach(&self) -> usize {
        use Instr::*;
        let one = |r: u16| r as usize + 1;
        let row = |base: u16, n: u16| base as usize + n as usize;
        match *self {
            Jump { .. } | Repeat { .. } | JumpDefined { .. } => 0,
            Const { dst, .. }
            | Int { dst, .. }
            | Nil { dst }
            | Unset { dst }
            | Bool { dst, .. }
            | Builtin { dst, .. }
            | Capture { dst, .. }
            | SelfFn { dst }
            | Tool { dst, .. }
            | Global { dst, .. }
            | Data { dst, .. }
            | VarName { dst, .. }
            | Collect { dst } => one(dst),
            Define { src, .. }
            | JumpFalse { src, .. }
            | JumpTrue { src, .. }
            | JumpSome { src, .. }
            | JumpSet { src, .. }
            | Return { src }
            | StopReturn { src }
            | StopFail { src } => one(src),
            Loop { counter, .. } => one(counter),
            UnlessLtInt { a, .. }
            | UnlessLeInt { a, .. }
            | UnlessGtInt { a, .. }
            | UnlessGeInt { a, .. }
            | UnlessEqInt { a, .. } => one(a),
            UnlessLt { a, b, .. }
            | UnlessLe { a, b, .. }
            | UnlessGt { a, b, .. }
            | UnlessGe { a, b, .. }
            | UnlessEq { a, b, .. } => one(a.max(b)),
            Move { dst, src }
            | Key { dst, src, .. }
            | KeyUnset { dst, src, .. }
            | SeqArg { dst, src, .. }
            | MapArg { dst, src }
            | Nth { dst, src, .. }
            | Rest { dst, src, .. }
            | Seq { dst, src }
            | KeywordArgs { dst, src }
            | IsNil { dst, src }
            | IsCase { dst, src, .. }
            | Rare { dst, src, .. } => one(dst.max(src)),
            CompareInt { dst, a, .. } | AddInt { dst, a, .. } => one(dst.max(a)),
            Compare { dst, a, b, .. } | Add { dst, a, b } | Sub { dst, a, b } | Mul { dst, a, b } => {
                one(dst.max(a).max(b))
            }
            Push { builder, src } => one(builder.max(src)),
            Combine { dst, src, .. } => one(dst.max(src)),
            CollectAll { dst, base } => one(dst.max(base)),
            Enter { calls, base, .. } | EnterRange { calls, base, .. } => row(base, if calls { 4 } else { 2 }),
            Finish { dst, builder } => one(dst.max(builder)),
            Walk { base, src } => one(src).max(row(base, 2)),
            Next { base, .. } | Again { base, .. } => row(base, 3),
            Closure { dst, base, .. } | Record { dst, base, .. } => one(dst).max(row(base, 0)),
            Vector { dst, base, n } | Map { dst, base, n } | Set { dst, base, n } => one(dst).max(row(base, n)),
            CallBuiltin { dst, base, argc, .. } => one(dst).max(row(base, argc.into())),
            Call { dst, base, argc } => one(dst).max(row(base, argc) + 1),
            CallGlobal { dst, base, argc, .. } => one(dst).max(row(base, argc.into()) + 1),
        }
    }

    /// Where it may jump to from place `at`; beyond every code when before its beginning.
    pub(crate) fn target(&self, at: usize) -> Option<usize> {
        use Instr::*;
        match *self {
            Jump { off }
            | Repeat { off }
            | Loop { off, .. }
            | JumpFalse { off, .. }
            | JumpTrue { off, .. }
            | JumpSome { off, .. }
            | JumpSet { off, .. }
            | JumpDefined { off, .. }
            | Enter { off, .. }
            | EnterRange { off, .. }
            | Again { off, .. }
            | Next { off, .. } => Some((at + 1).wrapping_add_signed(off as isize)),
            UnlessLt { off, .. }
            | UnlessLe { off, .. }
            | UnlessGt { off, .. }
            | UnlessGe { off, .. }
            | UnlessEq { off, .. }
            | UnlessLtInt { off, .. }
            | UnlessLeInt { off, .. }
            | UnlessGtInt { off, .. }
            | UnlessGeInt { off, .. }
            | UnlessEqInt { off, .. }
            | Combine { off, .. } => Some((at + 1).wrapping_add_signed(off as isize)),
            _ => None,
        }
    }

    /// Does the next instruction run only when something jumps there?
    pub(crate) fn leaves(&self) -> bool {
        use Instr::*;
        matches!(self, Jump { .. } | Repeat { .. } | Loop { .. } | Return { .. } | StopReturn { .. } | StopFail { .. })
    }
}
