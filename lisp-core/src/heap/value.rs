//! Values: a tag and one word, `Copy`, at most 16 bytes. What does not fit in the word points into an arena.

use super::big::Big;
use super::header::Header;
use super::map::Map;
use super::string::Str;
use super::vector::{VecBuilder, Vector};
use super::{Heap, Res};
use crate::code::{BuiltinId, ProgramId, Proto};
use std::cell::Cell;

/// One value of a program. `'h` is the brand of the heap that was entered: no safe code can keep a value across a
/// point where the heap may move.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Value<'h> {
    /// `nil`
    Nil,
    /// `true`, `false`
    Bool(bool),
    /// An integer of 64 bits
    Int(i64),
    /// A float
    Float(f64),
    /// A keyword: the hash of its text, and its text. Texts of different regions may be equal; the hash makes the
    /// usual comparison one of words.
    Keyword(u32, &'h Str<'h>),
    /// A string
    Str(&'h Str<'h>),
    /// A vector
    Vector(&'h Vector<'h>),
    /// A map
    Map(&'h Map<'h>),
    /// A set: a map whose values are `true`
    Set(&'h Map<'h>),
    /// An integer beyond 64 bits
    Big(&'h Big<'h>),
    /// A function of the program
    Closure(&'h Closure<'h>),
    /// A built-in function
    Builtin(BuiltinId),
    /// A function made of others: `partial`, `comp`, `juxt` ...
    Composed(&'h Composed<'h>),
    /// An endless sequence: a source and steps that are still to be done with its elements
    Endless(&'h Composed<'h>),
    /// A tool as a value, by name
    Tool(&'h Str<'h>),
    /// A regular expression, by its pattern
    Regex(&'h Str<'h>),
    /// A quoted symbol
    Symbol(&'h Str<'h>),
    /// What `def` returns: the name of a definition
    Var(&'h Str<'h>),
    /// A date, instant, duration or legacy date
    Time(&'h Time),
    /// Inside the machine only: a vector under construction
    VecBuilder(&'h VecBuilder<'h>),
    /// Inside the machine only: a map or set under construction
    MapBuilder(&'h super::map_builder::MapBuilder<'h>),
    /// Inside the machine only: nothing is here yet
    Unset,
}

const _: () = assert!(std::mem::size_of::<Value<'static>>() == 16);
const _: () = assert!(std::mem::size_of::<Option<Value<'static>>>() == 16);

/// A function of the program together with the values it captured.
pub struct Closure<'h> {
    pub(super) head: Header,
    /// The loaded program that its code is part of.
    pub(crate) program: ProgramId,
    /// Its code.
    pub(crate) proto: &'h Proto,
    /// What it captured, in the order of `Proto::captures`.
    pub(super) captures: Cell<&'h [Value<'h>]>,
}

impl<'h> Closure<'h> {
    /// What it captured, in the order of `Proto::captures`.
    #[inline(always)]
    pub(crate) fn captures(&self) -> &'h [Value<'h>] {
        self.captures.get()
    }
}

/// How a composed function calls its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compose {
    /// `(partial f a ...)`: parts are f and the first arguments
    Partial,
    /// `(comp f g ...)`
    Comp,
    /// `(juxt f g ...)`
    Juxt,
    /// `(complement f)`
    Complement,
    /// `(constantly x)`
    Constantly,
    /// `(fnil f default ...)`
    Fnil,
    /// `(every-pred p ...)`
    EveryPred,
    /// `(some-fn f ...)`
    SomeFn,
    /// `(reduced x)`: what a reducing function ends a walk with
    Reduced,
    /// `(completing f g)`: parts are f, and what is done at the end
    Completing,
    /// A transducer: what is done with each element of a walk
    Step(Step),
    /// An endless sequence: parts are the vector of its steps, then what the source has
    Source(Source),
}

/// What a step of a walk does with an element, and what its parts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// f
    Map,
    /// f and how many elements of a row it gets as arguments
    MapRow,
    /// the predicate
    Filter,
    /// the predicate
    Remove,
    /// f
    Keep,
    /// f
    MapIndexed,
    /// f
    KeepIndexed,
    /// f, which returns collections
    Mapcat,
    /// none: the elements are collections
    Cat,
    /// how many
    Take,
    /// how many
    Drop,
    /// the predicate
    TakeWhile,
    /// the predicate
    DropWhile,
    /// how many from one to the next
    TakeNth,
    /// none
    Distinct,
    /// none
    Dedupe,
    /// the separator
    Interpose,
    /// f
    PartitionBy,
    /// how many
    PartitionAll,
    /// how many, and how many from the beginning of one piece to the next
    Windows,
    /// a vector of what comes before all elements
    Prefix,
    /// f, and what it begins with if that is given
    Reductions,
}

/// Where the elements of an endless sequence come from, and what its parts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// the next number and the step
    Range,
    /// the element
    Repeat,
    /// the vector and the place of the next
    Cycle,
    /// f and the first
    Iterate,
    /// f
    Repeatedly,
    /// endless sequences, whose elements make rows
    Zip,
}

/// A function made of others.
pub struct Composed<'h> {
    pub(super) head: Header,
    /// How the parts are called.
    pub(crate) kind: Compose,
    /// The parts.
    pub(super) parts: Cell<&'h [Value<'h>]>,
}

impl<'h> Composed<'h> {
    /// The parts.
    #[inline(always)]
    pub(crate) fn parts(&self) -> &'h [Value<'h>] {
        self.parts.get()
    }
}

/// A point or span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeValue {
    /// `LocalDate`: days since 1970-01-01
    LocalDate(i64),
    /// `Instant`: seconds since 1970-01-01T00:00:00Z and nanoseconds from 0 to 999,999,999
    Instant(i64, u32),
    /// `LocalDateTime`: seconds since 1970-01-01T00:00 and nanoseconds from 0 to 999,999,999
    LocalDateTime(i64, u32),
    /// `Duration`: seconds, and nanoseconds from 0 to 999,999,999
    Duration(i64, u32),
    /// `java.util.Date`: milliseconds since 1970-01-01T00:00:00Z
    Date(i64),
}

/// A time value in the arena.
pub struct Time {
    pub(super) head: Header,
    /// The value.
    pub value: TimeValue,
}

/// The integer of 64 bits that a float is, if it is one.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the float is whole and within 64 bits")]
pub(crate) fn whole(f: f64) -> Option<i64> {
    const END: f64 = 9_223_372_036_854_775_808.0;
    ((-END..END).contains(&f) && f.trunc() == f).then_some(f as i64)
}

impl<'h> Value<'h> {
    /// How many there are of what memory holds.
    #[inline]
    pub fn count(n: usize) -> Self {
        // No memory holds more than half of what a word counts.
        Value::Int(i64::try_from(n).unwrap_or(i64::MAX))
    }

    /// The address of the object that the value refers to, if it does.
    pub(crate) fn address(self) -> Option<usize> {
        fn of<T>(object: &T) -> Option<usize> {
            Some(std::ptr::from_ref(object).addr())
        }
        match self {
            Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Builtin(_) | Value::Unset => None,
            Value::Keyword(_, s)
            | Value::Str(s)
            | Value::Tool(s)
            | Value::Regex(s)
            | Value::Symbol(s)
            | Value::Var(s) => of(s),
            Value::Vector(o) => of(o),
            Value::Map(o) | Value::Set(o) => of(o),
            Value::Big(o) => of(o),
            Value::Closure(o) => of(o),
            Value::Composed(o) | Value::Endless(o) => of(o),
            Value::Time(o) => of(o),
            Value::VecBuilder(o) => of(o),
            Value::MapBuilder(o) => of(o),
        }
    }

    /// Is it the same value, without a look into objects: the same object, or the same bits?
    pub(crate) fn is_same(self, other: Self) -> bool {
        match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            (Value::Builtin(a), Value::Builtin(b)) => a == b,
            (a, b) => std::mem::discriminant(&a) == std::mem::discriminant(&b) && a.address() == b.address(),
        }
    }

    /// Neither nil nor false.
    #[inline]
    pub fn truthy(self) -> bool {
        !matches!(self, Value::Nil | Value::Bool(false))
    }

    /// `nil`?
    #[inline]
    pub fn is_nil(self) -> bool {
        matches!(self, Value::Nil)
    }

    /// The text of a string.
    #[inline]
    pub fn as_str(self) -> Option<&'h str> {
        match self {
            Value::Str(s) => Some(s.text()),
            _ => None,
        }
    }

    /// The number as a float; big integers round, beyond the range of floats to infinity.
    pub fn as_f64(self) -> Option<f64> {
        match self {
            Value::Int(i) => Some(i as f64),
            Value::Float(f) => Some(f),
            Value::Big(b) => Some(b.to_f64()),
            _ => None,
        }
    }

    /// The integer of 64 bits that the number is: a float that is whole is one too.
    #[inline]
    pub fn as_integer(self) -> Option<i64> {
        match self {
            Value::Int(i) => Some(i),
            Value::Float(f) => whole(f),
            _ => None,
        }
    }

    /// The place in a vector or string that the number names: a float that is whole names one too.
    #[inline]
    pub(crate) fn as_index(self) -> Option<usize> {
        self.as_integer().and_then(|i| usize::try_from(i).ok())
    }

    /// A number of any kind?
    pub fn is_number(self) -> bool {
        matches!(self, Value::Int(_) | Value::Float(_) | Value::Big(_))
    }

    /// Something that can be called with arguments. Vectors, strings, numbers and nil cannot.
    pub(crate) fn is_callable(self) -> bool {
        matches!(
            self,
            Value::Keyword(..)
                | Value::Map(_)
                | Value::Set(_)
                | Value::Closure(_)
                | Value::Builtin(_)
                | Value::Composed(_)
                | Value::Tool(_)
        )
    }

    /// What kind of value this is, in the words of an error message.
    pub fn type_name(self) -> &'static str {
        match self {
            Value::Nil => "nil",
            Value::Bool(_) => "boolean",
            Value::Int(_) | Value::Big(_) => "integer",
            Value::Float(_) => "float",
            Value::Keyword(..) => "keyword",
            Value::Str(_) => "string",
            Value::Vector(_) => "vector",
            Value::Map(_) => "map",
            Value::Set(_) => "set",
            Value::Closure(_) | Value::Builtin(_) | Value::Composed(_) | Value::Tool(_) => "function",
            Value::Endless(_) => "endless sequence",
            Value::Regex(_) => "regex",
            Value::Symbol(_) => "symbol",
            Value::Var(_) => "var",
            Value::Time(t) => match t.value {
                TimeValue::LocalDate(_) => "LocalDate",
                TimeValue::Instant(..) => "Instant",
                TimeValue::LocalDateTime(..) => "LocalDateTime",
                TimeValue::Duration(..) => "Duration",
                TimeValue::Date(_) => "java.util.Date",
            },
            Value::VecBuilder(_) | Value::MapBuilder(_) | Value::Unset => "internal",
        }
    }
}

impl Heap {
    /// A function of the program.
    pub(crate) fn closure<'h>(
        &'h self,
        program: ProgramId,
        proto: &'h Proto,
        captures: impl ExactSizeIterator<Item = Value<'h>>,
    ) -> Res<Value<'h>> {
        let head = self.header();
        let count = captures.len();
        self.alloc_with(count, captures, |captures| Closure { head, program, proto, captures: Cell::new(captures) })
            .map(Value::Closure)
    }

    /// A function made of others.
    pub(crate) fn composed<'h>(&'h self, kind: Compose, parts: &[Value<'h>]) -> Res<Value<'h>> {
        let head = self.header();
        let composed = |parts| Composed { head, kind, parts: Cell::new(parts) };
        self.alloc_with(parts.len(), parts.iter().copied(), composed).map(Value::Composed)
    }

    /// An endless sequence.
    pub(crate) fn endless<'h>(&'h self, source: Source, parts: &[Value<'h>]) -> Res<Value<'h>> {
        let head = self.header();
        let composed = |parts| Composed { head, kind: Compose::Source(source), parts: Cell::new(parts) };
        self.alloc_with(parts.len(), parts.iter().copied(), composed).map(Value::Endless)
    }

    /// A time value.
    pub(crate) fn time(&self, value: TimeValue) -> Res<Value<'_>> {
        Ok(Value::Time(self.alloc(Time { head: self.header(), value })?))
    }
}
