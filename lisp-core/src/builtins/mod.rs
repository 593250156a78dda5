//! Built-in functions: one row each, in one table per area. The rows are the source of name resolution, arity errors,
//! `doc`, "did you mean", completion and the example tests. The tables here have the functions that call no others;
//! `library` has all.

use crate::code::{BuiltinId, Cmp};
use crate::context::Ctx;
use crate::error::{Error, Reason};
use crate::heap::{Fault, Res, Step, Value};
use crate::stack::Start;
use crate::text::arguments;

mod absent;
pub(crate) mod args;
pub(crate) mod bits;
mod characters;
pub(crate) mod comparison;
mod composed;
mod describe;
mod edn;
pub(crate) mod exception_classes;
pub(crate) mod exceptions;
pub mod foreign;
mod format;
pub(crate) mod instances;
pub mod java;
mod java_calendar;
mod java_datetime;
mod java_math;
mod java_moments;
mod java_numbers;
mod java_parse;
mod java_spans;
mod java_strings;
mod java_text;
pub(crate) mod java_time;
mod json;
mod left_out;
pub(crate) mod long_division;
pub(crate) mod maps;
pub(crate) mod math;
pub(crate) mod numbers;
mod other_names;
mod parse;
pub(crate) mod predicates;
mod preview;
mod print;
pub(crate) mod regex;
pub(crate) mod renaming;
pub(crate) mod replacement;
mod rows;
pub(crate) mod seqs;
pub(crate) mod sets;
pub(crate) mod slices;
mod sorted;
mod statistics;
pub(crate) mod streams;
pub(crate) mod strings;
mod texts;
mod uuids;

pub use absent::{ABSENT, LAZY};
pub use left_out::Absent;
pub use other_names::OTHER_NAMES;
pub(crate) use preview::preview;
pub(crate) use print::text_of;
pub(crate) use rows::{MATH, Rows, concat, count, namespace_of};

/// A first-order function. It must allocate everything before its first visible effect: when it fails with
/// [`Fault::Collect`] or [`Fault::Pause`] it is run again from the start.
pub(crate) type DirectImp = for<'h> fn(&'h Ctx, &[Value<'h>]) -> Res<Value<'h>>;

/// A test of a value that does not use the run: it does not charge, allocate or fail.
pub(crate) type Test = fn(Value<'_>) -> bool;

/// Returns whether a built-in calls functions for these arguments.
pub(crate) type CallsSome = fn(&[Value<'_>]) -> bool;

/// The implementation of a built-in.
#[derive(Clone, Copy)]
pub(crate) enum Imp {
    /// A Rust function that calls no other.
    Direct(DirectImp),
    /// A test of the only argument.
    Test(Test),
    /// A function that calls other functions. The field starts it.
    Calling(Start),
    /// The second if the first returns true for the arguments, otherwise a function that calls no other.
    Either(CallsSome, Start, DirectImp),
    /// A function of the prelude with the same name.
    Prelude,
}

/// How the compiler translates a call of a built-in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lowering {
    /// As a call.
    Call,
    /// With two arguments, as a comparison.
    Compare(Cmp),
    /// With two arguments, as an addition.
    Add,
    /// With two arguments, as a subtraction.
    Sub,
    /// With two arguments, as a multiplication.
    Mul,
    /// As an addition of one.
    Inc,
    /// As a subtraction of one.
    Dec,
    /// In a condition, as a jump on the opposite.
    Not,
    /// As a call in which an argument that is a bare name is a symbol.
    TakesNames,
    /// Like `TakesNames`, and passes on the value of a definition.
    TakesDefinitions,
    /// Like `TakesDefinitions`; the name of a tool shows the host's documentation of it.
    ShowsNames,
    /// As a call in which a wrong number of arguments is an error of the form.
    ChecksArity,
    /// With a function literal, as a loop.
    Round(Round),
}

/// A function that calls another function for each element and that the compiler can translate into a loop.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Round {
    Map,
    Filter,
    Remove,
    Keep,
    Reduce,
}

impl Round {
    /// Returns true if this is the number of arguments of a call over one collection.
    pub(crate) fn takes(self, args: usize) -> bool {
        args == 2 || self == Round::Reduce && args == 3
    }

    /// Returns the number of arguments that it passes to the function.
    pub(crate) fn params(self) -> usize {
        if self == Round::Reduce { 2 } else { 1 }
    }
}

/// How a call with an endless sequence is made, in a frame if it takes elements. The implementation of the function
/// fails with [`Fault::NeedsFrame`] for such a sequence. If nothing else is said, the sequence is the last argument.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endless {
    /// It is an error.
    Refuse,
    /// Defers a step, with the first argument as its part.
    Step(Step),
    /// Defers a step without parts.
    Bare(Step),
    /// `map`, over one or several sequences.
    Map,
    /// `mapcat`, over one or several sequences.
    Mapcat,
    Some,
    Every,
    NotAny,
    NotEvery,
    Drop,
    /// Returns the sequence without its first elements.
    Rest(i64),
    /// The sequence is the first argument.
    NthRest,
    Cons,
    /// The sequence may be any argument.
    Concat,
    Partition,
    /// Returns the sequence.
    Itself,
    IsEmpty,
    Take,
    TakeWhile,
    /// Returns the element at an index.
    Element(i64),
    /// The sequence is the first argument.
    Nth,
    SplitAt,
    SplitWith,
    Reduce,
    /// Both arguments are collections; the shorter one determines the length.
    SideBySide,
    /// All arguments are collections; the shortest determines the length.
    Interleave,
    Into,
}

/// One built-in function.
#[derive(Clone, Copy)]
pub struct Builtin {
    /// The name.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// The namespace besides the core that contains it, such as `clojure.string`; empty for none.
    pub namespace: &'static str,
    /// The minimum number of arguments.
    pub min: u8,
    /// The maximum number of arguments; [`MANY`] for no limit.
    pub max: u8,
    /// The syntax of a call, for people: `(take n coll)`.
    pub usage: &'static str,
    /// The documentation, in one line.
    pub doc: &'static str,
    /// Programs and their results, run as tests. A result that starts with `!` is an error's reason.
    pub examples: &'static [(&'static str, &'static str)],
    /// The implementation.
    pub(crate) imp: Imp,
    /// How the compiler translates a call.
    pub(crate) lowering: Lowering,
    /// How a call with an endless sequence is made.
    pub(crate) endless: Endless,
    /// Whether its value depends only on its arguments and it changes nothing, so that it can be evaluated again.
    pub(crate) is_pure: bool,
    /// Whether it prints as `#fn[...]`, like composed functions.
    pub(crate) shows_as_fn: bool,
    /// Whether workers make its calls.
    pub(crate) has_workers: bool,
}

/// No maximum number of arguments.
pub const MANY: u8 = u8::MAX;

impl Builtin {
    /// Creates a row in the core namespace; the other fields have setters.
    const fn row(name: &'static str, min: u8, max: u8, usage: &'static str, imp: Imp) -> Self {
        let (aliases, namespace, doc, examples) = (&[], "", "", &[]);
        Builtin {
            name,
            aliases,
            namespace,
            min,
            max,
            usage,
            doc,
            examples,
            imp,
            lowering: Lowering::Call,
            endless: Endless::Refuse,
            is_pure: false,
            shows_as_fn: false,
            has_workers: false,
        }
    }

    /// Creates a row for a Rust function that calls no other.
    pub(crate) const fn direct(name: &'static str, min: u8, max: u8, usage: &'static str, imp: DirectImp) -> Self {
        Self::row(name, min, max, usage, Imp::Direct(imp))
    }

    /// Creates a row for a function with a Java name: a static one as `Math/abs`, a method as `.length`, a constructor
    /// as `String.`.
    pub(crate) const fn java(name: &'static str, min: u8, max: u8, usage: &'static str, imp: DirectImp) -> Self {
        Self::direct(name, min, max, usage, imp).namespace("java")
    }

    /// Creates a row for a frequently called Rust function that calls no other, and whose value depends only on its
    /// arguments.
    pub(crate) const fn pure(name: &'static str, min: u8, max: u8, usage: &'static str, imp: DirectImp) -> Self {
        let mut row = Self::direct(name, min, max, usage, imp);
        row.is_pure = true;
        row
    }

    /// Creates a row for a test of one value.
    pub(crate) const fn test(name: &'static str, usage: &'static str, test: Test) -> Self {
        let mut row = Self::row(name, 1, 1, usage, Imp::Test(test));
        row.is_pure = true;
        row
    }

    /// Creates a row for a function that calls functions.
    pub(crate) const fn calling(name: &'static str, min: u8, max: u8, usage: &'static str, start: Start) -> Self {
        Self::row(name, min, max, usage, Imp::Calling(start))
    }

    /// Creates a row for a function that calls functions only for some arguments.
    pub(crate) const fn either(
        name: &'static str,
        (min, max): (u8, u8),
        usage: &'static str,
        calls: CallsSome,
        start: Start,
        imp: DirectImp,
    ) -> Self {
        Self::row(name, min, max, usage, Imp::Either(calls, start, imp))
    }

    /// Creates a row for a function of the prelude.
    pub(crate) const fn prelude(name: &'static str, min: u8, max: u8, usage: &'static str) -> Self {
        Self::row(name, min, max, usage, Imp::Prelude)
    }

    /// Sets how the compiler translates a call.
    #[must_use]
    pub(crate) const fn lowered(mut self, lowering: Lowering) -> Self {
        self.lowering = lowering;
        self
    }

    /// Sets how a call with an endless sequence is made.
    #[must_use]
    pub(crate) const fn endless(mut self, endless: Endless) -> Self {
        self.endless = endless;
        self
    }

    /// Makes it print as `#fn[...]`; used for functions that take any number of values.
    #[must_use]
    pub(crate) const fn shown_as_fn(mut self) -> Self {
        self.shows_as_fn = true;
        self
    }

    /// Sets that workers make its calls.
    #[must_use]
    pub(crate) const fn by_workers(mut self) -> Self {
        self.has_workers = true;
        self
    }

    /// Sets the aliases.
    #[must_use]
    pub(crate) const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Sets the namespace besides the core that contains it.
    #[must_use]
    pub(crate) const fn namespace(mut self, namespace: &'static str) -> Self {
        self.namespace = namespace;
        self
    }

    /// Sets the documentation line and the examples.
    #[must_use]
    pub(crate) const fn doc(mut self, doc: &'static str, examples: &'static [(&'static str, &'static str)]) -> Self {
        self.doc = doc;
        self.examples = examples;
        self
    }

    /// Returns true if it can be called with this many arguments.
    #[inline]
    pub fn takes(&self, count: usize) -> bool {
        count >= self.min as usize && (self.max == MANY || count <= self.max as usize)
    }

    /// Returns the error for a wrong number of arguments.
    pub fn arity_error(&self, count: usize) -> Fault {
        let takes = match (self.min, self.max) {
            (min, MANY) => format!("at least {}", arguments(min.into())),
            (min, max) if min == max => arguments(min.into()),
            (min, max) => format!("{min} to {}", arguments(max.into())),
        };
        let reason = if self.namespace == "java" { Reason::JavaArityError } else { Reason::ArityError };
        Error::new(reason, format!("{} takes {takes}, got {count}", self.name)).hint(self.how_to_write()).into()
    }

    /// Returns the hint that shows its forms.
    pub(crate) fn how_to_write(&self) -> String {
        format!("write {}", self.usage.replace(") (", ") or ("))
    }
}

/// The functions that call no others, by area, each with its title.
pub(crate) const AREAS: &[(&str, &[Builtin])] = &[
    ("Functions made of functions", composed::TABLE),
    ("Exceptions", exceptions::TABLE),
    ("Exceptions of Java's classes", exceptions::CLASSES),
    ("Comparison", comparison::TABLE),
    ("Numbers", numbers::TABLE),
    ("Maps", maps::TABLE),
    ("Maps with other keys", renaming::TABLE),
    ("Sets and vectors", sets::TABLE),
    ("Text of values", print::TABLE),
    ("Mathematics", math::TABLE),
    ("Statistics", statistics::TABLE),
    ("Bits", bits::TABLE),
    ("Questions about values", predicates::TABLE),
    ("Sequences", seqs::TABLE),
    ("Parts of sequences", slices::TABLE),
    ("Sorted maps and sets", sorted::TABLE),
    ("Endless sequences", streams::TABLE),
    ("JSON", json::TABLE),
    ("The shape of data", describe::TABLE),
    ("Java: strings", java_text::TABLE),
    ("Java: strings changed and compared", java_strings::TABLE),
    ("Java: mathematics", java_math::TABLE),
    ("Java: parsing", java_parse::TABLE),
    ("Java: numbers as text", java_numbers::TABLE),
    ("Java: dates and times", java_time::TABLE),
    ("Java: the calendar", java_calendar::TABLE),
    ("Java: durations and instants", java_spans::TABLE),
    ("Java: dates with a time, and formatters", java_datetime::TABLE),
    ("Strings", strings::TABLE),
    ("Strings: changing", texts::TABLE),
    ("Characters", characters::TABLE),
    ("Formatting", format::TABLE),
    ("Regular expressions", regex::TABLE),
    ("Parsing", parse::TABLE),
    ("Reading", edn::TABLE),
    ("UUIDs", uuids::TABLE),
];

/// The rows of the functions that call no others. They have the lowest numbers.
pub(crate) static FIRST_ORDER: [Builtin; count(TABLES)] = concat(TABLES);

const TABLES: &[&[Builtin]] = &{
    let mut tables: [&[Builtin]; AREAS.len()] = [&[]; AREAS.len()];
    let mut area = 0;
    while area < AREAS.len() {
        tables[area] = AREAS[area].1;
        area += 1;
    }
    tables
};

/// Returns the implementation of a function that calls no others. Returns `None` for any other function, or for a
/// number of arguments that the function does not take.
#[inline]
pub(crate) fn first_order(id: BuiltinId, argc: usize) -> Option<DirectImp> {
    let row = FIRST_ORDER.get(id.0 as usize).filter(|row| row.takes(argc))?;
    match row.imp {
        Imp::Direct(imp) => Some(imp),
        _ => None,
    }
}

/// Returns the number of a function that calls no others, by its name, at the interpreter's compile time.
pub(crate) const fn id_of(name: &str) -> BuiltinId {
    let (mut table, mut row, mut id) = (0, 0, 0);
    while table < TABLES.len() {
        if row == TABLES[table].len() {
            (table, row) = (table + 1, 0);
            continue;
        }
        if same(TABLES[table][row].name.as_bytes(), name.as_bytes()) {
            return BuiltinId(id);
        }
        (row, id) = (row + 1, id + 1);
    }
    panic!("a built-in of this name")
}

/// Returns true if two names are equal; usable in constants.
pub(crate) const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len()
}
