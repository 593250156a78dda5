//! Values: a tag and one word, `Copy`, at most 16 bytes. Larger values point into an arena.

use super::big::Big;
use super::header::Header;
use super::map::Map;
use super::string::Str;
use super::vector::{VecBuilder, Vector};
use super::{Heap, Res};
use crate::code::{BuiltinId, ProgramId, Proto};
use std::cell::Cell;

/// A value of a program. `'h` is the brand of the heap that was entered: no safe code can keep a value across a point
/// where the heap may move.
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
    /// A keyword: the hash of its text, and its text. Texts of different regions may be equal; the hash makes the usual
    /// comparison one of words.
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
    /// An endless sequence: a source, and pending steps for its elements
    Endless(&'h Composed<'h>),
    /// A tool as a value, by name
    Tool(&'h Str<'h>),
    /// A regular expression, by its pattern
    Regex(&'h Str<'h>),
    /// A quoted symbol
    Symbol(&'h Str<'h>),
    /// The result of `def`: the name of a definition
    Var(&'h Str<'h>),
    /// A date, instant, duration or legacy date
    Time(&'h Time),
    /// Inside the machine only: a vector under construction
    VecBuilder(&'h VecBuilder<'h>),
    /// Inside the machine only: a map or set under construction
    MapBuilder(&'h super::map_builder::MapBuilder<'h>),
    /// Inside the machine only: no value
    Unset,
}

const _: () = assert!(std::mem::size_of::<Value<'static>>() == 16);
const _: () = assert!(std::mem::size_of::<Option<Value<'static>>>() == 16);

/// A function of the program together with the values it captured.
pub struct Closure<'h> {
    pub(super) head: Header,
    /// The loaded program that contains its code.
    pub(crate) program: ProgramId,
    /// Its code.
    pub(crate) proto: &'h Proto,
    /// The captured values, in the order of `Proto::captures`.
    pub(super) captures: Cell<&'h [Value<'h>]>,
}

impl<'h> Closure<'h> {
    /// Returns the captured values, in the order of `Proto::captures`.
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
    /// `(reduced x)`: the value with which a reducing function ends a walk
    Reduced,
    /// `(completing f g)`: parts are f, and g, which is called at the end
    Completing,
    /// A transducer: a step for each element of a walk
    Step(Step),
    /// An endless sequence: parts are the vector of its steps, then those of the source
    Source(Source),
}

/// What a step of a walk does with an element; each with its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// f
    Map,
    /// f, and how many elements of a row it gets as arguments
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
    /// the number
    Take,
    /// the number
    Drop,
    /// the predicate
    TakeWhile,
    /// the predicate
    DropWhile,
    /// the distance
    TakeNth,
    /// none
    Distinct,
    /// none
    Dedupe,
    /// the separator
    Interpose,
    /// f
    PartitionBy,
    /// the size
    PartitionAll,
    /// the size, and the distance between the starts of two pieces
    Windows,
    /// a vector of the elements to come first
    Prefix,
    /// f, and the initial value if given
    Reductions,
}

/// Where the elements of an endless sequence come from; each with its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// the next number and the step
    Range,
    /// the element
    Repeat,
    /// the vector and the index of the next
    Cycle,
    /// f and the first element
    Iterate,
    /// f
    Repeatedly,
    /// endless sequences, whose elements form rows
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
    /// Returns the parts.
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

/// Returns the 64-bit integer that equals a float, if there is one.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the float is whole and within 64 bits")]
pub(crate) fn whole(f: f64) -> Option<i64> {
    const END: f64 = 9_223_372_036_854_775_808.0;
    ((-END..END).contains(&f) && f.trunc() == f).then_some(f as i64)
}

impl<'h> Value<'h> {
    /// Returns a count of things in memory.
    #[inline]
    pub fn count(n: usize) -> Self {
        // Memory cannot hold more than half of what a word counts.
        Value::Int(i64::try_from(n).unwrap_or(i64::MAX))
    }

    /// Returns the address of the object that the value refers to, if any.
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

    /// Returns true for the same value without reading objects: the same object, or the same bits.
    pub(crate) fn is_same(self, other: Self) -> bool {
        match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            (Value::Builtin(a), Value::Builtin(b)) => a == b,
            (a, b) => std::mem::discriminant(&a) == std::mem::discriminant(&b) && a.address() == b.address(),
        }
    }

    /// Returns true unless the value is nil or false.
    #[inline]
    pub fn truthy(self) -> bool {
        !matches!(self, Value::Nil | Value::Bool(false))
    }

    /// Returns true for nil.
    #[inline]
    pub fn is_nil(self) -> bool {
        matches!(self, Value::Nil)
    }

    /// Returns the text of a string.
    #[inline]
    pub fn as_str(self) -> Option<&'h str> {
        match self {
            Value::Str(s) => Some(s.text()),
            _ => None,
        }
    }

    /// Returns a number as a float; big integers are rounded, beyond the range of floats to infinity.
    pub fn as_f64(self) -> Option<f64> {
        match self {
            Value::Int(i) => Some(i as f64),
            Value::Float(f) => Some(f),
            Value::Big(b) => Some(b.to_f64()),
            _ => None,
        }
    }

    /// Returns the 64-bit integer that the number equals, which may be a whole float.
    #[inline]
    pub fn as_integer(self) -> Option<i64> {
        match self {
            Value::Int(i) => Some(i),
            Value::Float(f) => whole(f),
            _ => None,
        }
    }

    /// Returns the index in a vector or string that the number equals, which may be a whole float.
    #[inline]
    pub(crate) fn as_index(self) -> Option<usize> {
        self.as_integer().and_then(|i| usize::try_from(i).ok())
    }

    /// Returns true for numbers of any kind.
    pub fn is_number(self) -> bool {
        matches!(self, Value::Int(_) | Value::Float(_) | Value::Big(_))
    }

    /// Returns true for values that can be called with arguments. Vectors, strings, numbers and nil cannot.
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

    /// Returns the kind of the value, as in error messages.
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
    /// Returns a function of the program.
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

    /// Returns a function made of others.
    pub(crate) fn composed<'h>(&'h self, kind: Compose, parts: &[Value<'h>]) -> Res<Value<'h>> {
        let head = self.header();
        let composed = |parts| Composed { head, kind, parts: Cell::new(parts) };
        self.alloc_with(parts.len(), parts.iter().copied(), composed).map(Value::Composed)
    }

    /// Returns an endless sequence.
    pub(crate) fn endless<'h>(&'h self, source: Source, parts: &[Value<'h>]) -> Res<Value<'h>> {
        let head = self.header();
        let composed = |parts| Composed { head, kind: Compose::Source(source), parts: Cell::new(parts) };
        self.alloc_with(parts.len(), parts.iter().copied(), composed).map(Value::Endless)
    }

    /// Returns a time value.
    pub(crate) fn time(&self, value: TimeValue) -> Res<Value<'_>> {
        Ok(Value::Time(self.alloc(Time { head: self.header(), value })?))
    }
}
