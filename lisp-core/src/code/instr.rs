//! The instruction set of the register machine. Instructions have eight bytes; registers and small operands have 16
//! bits.

use super::BuiltinId;
use std::cmp::Ordering;

/// The comparison of a compare instruction.
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
    /// Returns whether it holds for two numbers. For comparisons that are known at compile time.
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

    /// Returns whether it holds for this order. The bits of a comparison stand for less, equal and greater.
    #[inline(always)]
    pub(crate) fn holds(self, order: Ordering) -> bool {
        self as u8 >> (order as i8 + 1) & 1 != 0
    }
}

/// The function that an arithmetic instruction names in its errors.
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

/// A rare operation, which the dispatch loop leaves to a separate function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rare {
    /// an error with the value R[src]
    Throw,
    /// the error that R[src] stands for, unless it is nil
    Rethrow,
    /// R[dst] = whether R[src] stands for an error of class n
    IsCaught,
    /// R[dst] = whether R[src] is of the class with the number n
    IsInstance,
    /// R[dst] = function number n, with the captures of the running function
    Sibling,
}

/// Declares the instructions. After its fields, each lists the registers that it reads or writes: single ones, and
/// after the semicolon the first of a row and its length. Then comes what runs next: the `next` instruction, `next_or`
/// the one at an offset, `only` the one at an offset, or none.
macro_rules! instrs {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),* }:
        [$($register:ident),* $(; $base:ident, $n:expr)?] => $flow:ident $(($off:ident))?;)*) => {
        /// One instruction. `R[x]` is a register of the frame, `K[k]` a constant, `G[g]` a definition.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub(crate) enum Instr {
            $($(#[$doc])* $name { $($field: $type),* },)*
        }

        #[allow(unused_variables, reason = "an instruction has fields that are no registers")]
        impl Instr {
            /// Returns one past the highest register that it reads or writes, apart from rows of unknown length.
            pub(crate) fn reach(&self) -> usize {
                match *self {
                    $(Instr::$name { $($field),* } => {
                        let singles: &[u16] = &[$($register),*];
                        let single = singles.iter().map(|&register| usize::from(register) + 1).max().unwrap_or(0);
                        single $(.max(usize::from($base) + $n))?
                    })*
                }
            }

            /// Returns which instructions may run after it.
            fn flow(&self) -> Flow {
                match *self {
                    $(Instr::$name { $($field),* } => flow!($flow $($off)?),)*
                }
            }

            /// Returns its offset, if it has one.
            fn offset(&mut self) -> Option<Offset<'_>> {
                match self {
                    $(Instr::$name { $($field),* } => offset!($($off)?),)*
                }
            }
        }
    };
}

macro_rules! flow {
    (next) => {
        Flow { leaves: false, offset: None }
    };
    (next_or $off:ident) => {
        Flow { leaves: false, offset: Some($off.into()) }
    };
    (only $off:ident) => {
        Flow { leaves: true, offset: Some($off.into()) }
    };
    (end) => {
        Flow { leaves: true, offset: None }
    };
}

macro_rules! offset {
    () => {
        None
    };
    ($off:ident) => {
        Some(Offset::from($off))
    };
}

/// Which instructions may run after one.
struct Flow {
    /// The next instruction runs only if another one jumps there.
    leaves: bool,
    /// The distance of the jump from the next instruction.
    offset: Option<i32>,
}

/// The offset of a jump instruction.
enum Offset<'i> {
    Far(&'i mut i32),
    Near(&'i mut i16),
}

impl<'i> From<&'i mut i32> for Offset<'i> {
    fn from(offset: &'i mut i32) -> Self {
        Offset::Far(offset)
    }
}

impl<'i> From<&'i mut i16> for Offset<'i> {
    fn from(offset: &'i mut i16) -> Self {
        Offset::Near(offset)
    }
}

instrs! {
    /// R[dst] = R[src]
    Move { dst: u16, src: u16 }: [dst, src] => next;
    /// R[dst] = K[k]
    Const { dst: u16, k: u32 }: [dst] => next;
    /// R[dst] = value
    Int { dst: u16, value: i32 }: [dst] => next;
    /// R[dst] = no value
    Unset { dst: u16 }: [dst] => next;
    /// R[dst] = nil
    Nil { dst: u16 }: [dst] => next;
    /// R[dst] = true or false
    Bool { value: bool, dst: u16 }: [dst] => next;
    /// R[dst] = the built-in
    Builtin { dst: u16, id: BuiltinId }: [dst] => next;
    /// R[dst] = the captured value with this index
    Capture { dst: u16, index: u16 }: [dst] => next;
    /// R[dst] = the running function
    SelfFn { dst: u16 }: [dst] => next;
    /// R[dst] = the tool named K[k]
    Tool { dst: u16, k: u32 }: [dst] => next;
    /// R[dst] = G[g]; an error if it is not defined
    Global { dst: u16, g: u32 }: [dst] => next;
    /// R[dst] = G[g]; nil if it does not exist
    Data { dst: u16, g: u32 }: [dst] => next;
    /// G[g] = R[src]
    Define { src: u16, g: u32 }: [src] => next;
    /// pc += off if G[g] is defined
    JumpDefined { g: u16, off: i32 }: [] => next_or(off);
    /// R[dst] = #'name of G[g]
    VarName { dst: u16, g: u32 }: [dst] => next;
    /// pc += off
    Jump { off: i32 }: [] => only(off);
    /// pc += off, backwards, at the end of a walk
    Repeat { off: i32 }: [] => only(off);
    /// count an iteration in R[counter], then pc += off
    Loop { counter: u16, off: i32 }: [counter] => only(off);
    /// pc += off if R[src] is nil or false
    JumpFalse { src: u16, off: i32 }: [src] => next_or(off);
    /// pc += off if R[src] is neither nil nor false
    JumpTrue { src: u16, off: i32 }: [src] => next_or(off);
    /// pc += off if R[src] is not nil
    JumpSome { src: u16, off: i32 }: [src] => next_or(off);
    /// pc += off if R[src] holds a value
    JumpSet { src: u16, off: i32 }: [src] => next_or(off);
    /// pc += off unless R[a] < R[b]
    UnlessLt { a: u16, b: u16, off: i16 }: [a, b] => next_or(off);
    /// pc += off unless R[a] <= R[b]
    UnlessLe { a: u16, b: u16, off: i16 }: [a, b] => next_or(off);
    /// pc += off unless R[a] > R[b]
    UnlessGt { a: u16, b: u16, off: i16 }: [a, b] => next_or(off);
    /// pc += off unless R[a] >= R[b]
    UnlessGe { a: u16, b: u16, off: i16 }: [a, b] => next_or(off);
    /// pc += off unless R[a] = R[b]
    UnlessEq { a: u16, b: u16, off: i16 }: [a, b] => next_or(off);
    /// pc += off unless R[a] < imm
    UnlessLtInt { a: u16, imm: i16, off: i16 }: [a] => next_or(off);
    /// pc += off unless R[a] <= imm
    UnlessLeInt { a: u16, imm: i16, off: i16 }: [a] => next_or(off);
    /// pc += off unless R[a] > imm
    UnlessGtInt { a: u16, imm: i16, off: i16 }: [a] => next_or(off);
    /// pc += off unless R[a] >= imm
    UnlessGeInt { a: u16, imm: i16, off: i16 }: [a] => next_or(off);
    /// pc += off unless R[a] = imm
    UnlessEqInt { a: u16, imm: i16, off: i16 }: [a] => next_or(off);
    /// R[dst] = R[a] op R[b]
    Compare { op: Cmp, dst: u16, a: u16, b: u16 }: [dst, a, b] => next;
    /// R[dst] = R[a] < R[b], the number of times of `dotimes`
    Times { dst: u16, a: u16, b: u16 }: [dst, a, b] => next;
    /// R[dst] = R[a] op imm
    CompareInt { op: Cmp, dst: u16, a: u16, imm: i16 }: [dst, a] => next;
    /// R[dst] = R[a] + R[b]
    Add { dst: u16, a: u16, b: u16 }: [dst, a, b] => next;
    /// R[dst] = R[a] - R[b]
    Sub { dst: u16, a: u16, b: u16 }: [dst, a, b] => next;
    /// R[dst] = R[a] * R[b]
    Mul { dst: u16, a: u16, b: u16 }: [dst, a, b] => next;
    /// R[dst] = R[a] + imm
    AddInt { name: ArithName, dst: u16, a: u16, imm: i16 }: [dst, a] => next;
    /// R[dst] = value at key K[k] of R[src], or at its counterpart
    Key { dst: u16, src: u16, k: u16 }: [dst, src] => next;
    /// like `Key`; no value if neither key exists
    KeyUnset { dst: u16, src: u16, k: u16 }: [dst, src] => next;
    /// R[dst] = built-in id called with the argc registers from base
    CallBuiltin { argc: u8, dst: u16, base: u16, id: BuiltinId }: [dst; base, usize::from(argc)] => next;
    /// R[dst] = R[base] called with the argc registers after it
    Call { dst: u16, base: u16, argc: u16 }: [dst; base, 1 + usize::from(argc)] => next;
    /// R[dst] = G[g], which the code generator knows to be defined, called with the argc registers after R[base]
    CallGlobal { argc: u8, dst: u16, base: u16, g: u16 }: [dst; base, 1 + usize::from(argc)] => next;
    /// end of the function with value R[src]
    Return { src: u16 }: [src] => end;
    /// end of the program with (return R[src])
    StopReturn { src: u16 }: [src] => end;
    /// end of the program with (fail R[src])
    StopFail { src: u16 }: [src] => end;
    /// R[dst] = function number proto; it captures the registers from base
    Closure { dst: u16, proto: u16, base: u16 }: [dst; base, 0] => next;
    /// R[dst] = vector of n registers from base
    Vector { dst: u16, base: u16, n: u16 }: [dst; base, usize::from(n)] => next;
    /// R[dst] = map of n registers from base, alternating keys and values
    Map { dst: u16, base: u16, n: u16 }: [dst; base, usize::from(n)] => next;
    /// R[dst] = map with the keys of map K[k]; their values, in the order of the keys, are in the registers from base
    Record { dst: u16, base: u16, k: u16 }: [dst; base, 0] => next;
    /// R[dst] = set of n registers from base
    Set { dst: u16, base: u16, n: u16 }: [dst; base, usize::from(n)] => next;
    /// R[base] = elements of R[src], R[base + 1] = 0; `collects` is true for `for`, false for `doseq`
    Walk { collects: bool, base: u16, src: u16 }: [src; base, 2] => next;
    /// R[base + 2] = next element of the walk; at its end R[base] = nil, pc += off. An integer in R[base] is the end of
    /// a range
    Next { base: u16, off: i32 }: [; base, 3] => next_or(off);
    /// R[base + 2] = next element of the walk, pc += off, backwards; R[base] = nil at its end
    Again { base: u16, off: i32 }: [; base, 3] => next_or(off);
    /// R[base] = elements of R[base], R[base + 1] = 0; pc += off if it cannot be walked in place, or if `calls` and
    /// R[base + 3] is not a function of the program
    Enter { calls: bool, base: u16, off: i32 }: [; base, if calls { 4 } else { 2 }] => next_or(off);
    /// pc += off unless the integers from R[base + 1] up to R[base] can be walked; `calls` as in `Enter`
    EnterRange { calls: bool, base: u16, off: i32 }: [; base, if calls { 4 } else { 2 }] => next_or(off);
    /// R[dst] = a vector under construction
    Collect { dst: u16 }: [dst] => next;
    /// R[dst] = a vector under construction, for as many elements as R[base] has
    CollectAll { dst: u16, base: u16 }: [dst, base] => next;
    /// add R[src] to the vector under construction
    Push { builder: u16, src: u16 }: [builder, src] => next;
    /// R[dst] = the finished vector
    Finish { dst: u16, builder: u16 }: [dst, builder] => next;
    /// R[dst] = R[src]; if that is `reduced`, R[dst] = what it holds, pc += off
    Combine { dst: u16, src: u16, off: i16 }: [dst, src] => next_or(off);
    /// R[dst] = R[src], which must be a vector or nil; with `rest` a map or set too
    SeqArg { dst: u16, src: u16, rest: bool }: [dst, src] => next;
    /// R[dst] = R[src], which must be a map or nil
    MapArg { dst: u16, src: u16 }: [dst, src] => next;
    /// R[dst] = element of R[src] at the index, or nil
    Nth { dst: u16, src: u16, index: u16 }: [dst, src] => next;
    /// R[dst] = elements of R[src] from index on
    Rest { dst: u16, src: u16, index: u16 }: [dst, src] => next;
    /// R[dst] = elements of R[src], nil if there are none
    Seq { dst: u16, src: u16 }: [dst, src] => next;
    /// R[dst] = map of the keys and values in vector R[src]
    KeywordArgs { dst: u16, src: u16 }: [dst, src] => next;
    /// R[dst] = whether R[src] is nil
    IsNil { dst: u16, src: u16 }: [dst, src] => next;
    /// R[dst] = whether R[src] is the same case as K[k]
    IsCase { dst: u16, src: u16, k: u16 }: [dst, src] => next;
    /// as given by `op`
    Rare { op: Rare, dst: u16, src: u16, n: u16 }: [dst, src] => next;
}

const _: () = assert!(std::mem::size_of::<Instr>() == 8);

impl Instr {
    /// pc += off unless R[a] op R[b]. Comparisons that decide a jump are the most frequent, so each has its own
    /// instruction.
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

    /// Returns the target of a jump from `at`; beyond the end of any code if it is before the start.
    pub(crate) fn target(&self, at: usize) -> Option<usize> {
        self.flow().offset.map(|offset| (at + 1).wrapping_add_signed(offset as isize))
    }

    /// Returns true if the next instruction runs only when another one jumps there.
    pub(crate) fn leaves(&self) -> bool {
        self.flow().leaves
    }

    /// Sets the distance of the jump; false if it does not fit.
    #[must_use]
    pub(crate) fn jump_by(&mut self, distance: i32) -> bool {
        match self.offset() {
            Some(Offset::Far(offset)) => *offset = distance,
            Some(Offset::Near(offset)) => match i16::try_from(distance) {
                Ok(near) => *offset = near,
                Err(_) => return false,
            },
            None => debug_assert!(false, "{self:?} does not jump"),
        }
        true
    }
}
