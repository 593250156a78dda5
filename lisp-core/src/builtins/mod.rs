//! Built-in functions: one row each, in one table per area. From the rows come name resolution, arity errors, `doc`,
//! "did you mean", completion and the example tests.

pub use crate::code::BuiltinId;

use crate::Table;
use crate::code::Cmp;
use crate::context::Ctx;
use crate::error::{Error, Reason};
use crate::heap::{Fault, Res, Value};
use crate::stack::Start;
use std::sync::LazyLock;

pub(crate) mod args;
pub(crate) mod bits;
pub(crate) mod comparison;
mod describe;
mod introspect;
pub(crate) mod java;
mod java_math;
mod java_parse;
mod java_text;
pub(crate) mod java_time;
mod json;
pub(crate) mod maps;
pub(crate) mod math;
pub(crate) mod numbers;
pub(crate) mod predicates;
mod print;
pub(crate) use print::text_of;
pub(crate) mod seqs;
pub(crate) mod sets;
pub(crate) mod slices;
pub mod special;
mod unknown;

pub(crate) use unknown::unknown_name;
pub use unknown::{near_names, repair};
mod format;
pub(crate) mod long_division;
mod parse;
mod preview;
pub(crate) mod regex;
pub(crate) mod strings;

/// A first-order function. It must allocate everything before its first visible effect: when it fails with
/// [`Fault::Collect`] or [`Fault::Pause`] it is run again from the start.
pub(crate) type DirectImp = for<'h> fn(&'h Ctx, &[Value<'h>]) -> Res<Value<'h>>;

/// How a built-in is done.
#[derive(Clone, Copy)]
pub(crate) enum Imp {
    /// By a function in Rust that calls no other.
    Direct(DirectImp),
    /// By a function that calls functions, which this starts.
    Calling(Start),
    /// By a function of the prelude with the same name.
    Prelude,
}

/// What the compiler knows of a built-in, besides how it is called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lowering {
    /// Nothing.
    Call,
    /// With two arguments it is a comparison.
    Compare(Cmp),
    /// With two arguments it is an addition.
    Add,
    /// With two arguments it is a subtraction.
    Sub,
    /// With two arguments it is a multiplication.
    Mul,
    /// It adds one.
    Inc,
    /// It takes one away.
    Dec,
    /// As a test it is a jump on the opposite.
    Not,
    /// An argument that is a bare name stands for itself.
    TakesNames,
    /// A wrong number of arguments is an error of the form.
    ChecksArity,
}

/// One built-in function.
#[derive(Clone, Copy)]
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// The namespace that holds it besides the core, such as `clojure.string`; empty for none.
    pub namespace: &'static str,
    /// The fewest arguments.
    pub min: u8,
    /// The most arguments; [`MANY`] for no limit.
    pub max: u8,
    /// How it is called, for people: `(take n coll)`.
    pub usage: &'static str,
    /// One line: what it does.
    pub doc: &'static str,
    /// Programs and what they answer, run as tests. An answer that begins with `!` is an error's reason.
    pub examples: &'static [(&'static str, &'static str)],
    /// How it is done.
    pub(crate) imp: Imp,
    /// What the compiler makes of a call.
    pub(crate) lowering: Lowering,
}

/// No upper limit to the number of arguments.
pub const MANY: u8 = u8::MAX;

impl Builtin {
    /// A row in the core namespace; the other fields have setters.
    const fn row(name: &'static str, min: u8, max: u8, usage: &'static str, imp: Imp) -> Self {
        let (aliases, namespace, doc, examples) = (&[], "", "", &[]);
        Builtin { name, aliases, namespace, min, max, usage, doc, examples, imp, lowering: Lowering::Call }
    }

    /// A row for a function in Rust that calls no other.
    pub(crate) const fn direct(name: &'static str, min: u8, max: u8, usage: &'static str, imp: DirectImp) -> Self {
        Self::row(name, min, max, usage, Imp::Direct(imp))
    }

    /// A row for a function that calls functions.
    pub(crate) const fn calling(name: &'static str, min: u8, max: u8, usage: &'static str, start: Start) -> Self {
        Self::row(name, min, max, usage, Imp::Calling(start))
    }

    /// A row for a function of the prelude.
    pub(crate) const fn prelude(name: &'static str, min: u8, max: u8, usage: &'static str) -> Self {
        Self::row(name, min, max, usage, Imp::Prelude)
    }

    /// Says what the compiler makes of a call.
    #[must_use]
    pub(crate) const fn lowered(mut self, lowering: Lowering) -> Self {
        self.lowering = lowering;
        self
    }

    /// Adds other names.
    #[must_use]
    pub(crate) const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Says which namespace besides the core holds it.
    #[must_use]
    pub(crate) const fn namespace(mut self, namespace: &'static str) -> Self {
        self.namespace = namespace;
        self
    }

    /// Adds the line that says what it does, and the examples.
    #[must_use]
    pub(crate) const fn doc(mut self, doc: &'static str, examples: &'static [(&'static str, &'static str)]) -> Self {
        self.doc = doc;
        self.examples = examples;
        self
    }

    /// May it be called with this many arguments?
    #[inline]
    pub fn takes(&self, count: usize) -> bool {
        count >= self.min as usize && (self.max == MANY || count <= self.max as usize)
    }

    /// The error for a wrong number of arguments.
    pub fn arity_error(&self, count: usize) -> Fault {
        let takes = match (self.min, self.max) {
            (min, MANY) => format!("at least {min}"),
            (min, max) if min == max => min.to_string(),
            (min, max) => format!("{min} to {max}"),
        };
        let reason = if self.namespace == "java" { Reason::JavaArityError } else { Reason::ArityError };
        Error::new(reason, format!("{} takes {takes} argument(s), got {count}", self.name))
            .hint(format!("write {}", self.usage))
            .into()
    }
}

/// All built-ins, area by area, each with its title.
const AREAS: &[(&str, &[Builtin])] = &[
    ("Functions that call functions", crate::natives::TABLE),
    ("Comparison", comparison::TABLE),
    ("Numbers", numbers::TABLE),
    ("Maps", maps::TABLE),
    ("Sets and vectors", sets::TABLE),
    ("Text of values", print::TABLE),
    ("Mathematics", math::TABLE),
    ("Bits", bits::TABLE),
    ("Questions about values", predicates::TABLE),
    ("Sequences", seqs::TABLE),
    ("Parts of sequences", slices::TABLE),
    ("JSON", json::TABLE),
    ("The shape of data", describe::TABLE),
    ("Java: strings", java_text::TABLE),
    ("Java: mathematics", java_math::TABLE),
    ("Java: parsing", java_parse::TABLE),
    ("Java: dates and times", java_time::TABLE),
    ("Strings", strings::TABLE),
    ("Formatting", format::TABLE),
    ("Regular expressions", regex::TABLE),
    ("Parsing", parse::TABLE),
    ("Help", introspect::TABLE),
];

/// The number of the built-in of this name, found when the interpreter is compiled.
pub(crate) const fn id_of(name: &str) -> BuiltinId {
    let (mut area, mut row, mut id) = (0, 0, 0);
    while area < AREAS.len() {
        let rows = AREAS[area].1;
        if row == rows.len() {
            (area, row) = (area + 1, 0);
            continue;
        }
        if same(rows[row].name.as_bytes(), name.as_bytes()) {
            return BuiltinId(id);
        }
        (row, id) = (row + 1, id + 1);
    }
    panic!("a built-in of this name")
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len()
}

struct Index {
    rows: Vec<&'static Builtin>,
    by_name: Table<&'static str, BuiltinId>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let rows: Vec<&'static Builtin> = AREAS.iter().flat_map(|(_, area)| area.iter()).collect();
    let mut by_name = Table::default();
    for (i, row) in (0..u16::MAX).zip(&rows) {
        let id = BuiltinId(i);
        for &name in std::iter::once(&row.name).chain(row.aliases) {
            let other = by_name.insert(name, id);
            debug_assert!(other.is_none(), "two built-ins are called {name}");
        }
    }
    Index { rows, by_name }
});

/// All built-ins in the order of their ids.
pub fn all() -> &'static [&'static Builtin] {
    &INDEX.rows
}

/// The built-ins by area: a title and its rows.
pub fn areas() -> &'static [(&'static str, &'static [Builtin])] {
    AREAS
}

/// Namespaces of Clojure and the rows' name for them; the core's is empty.
const NAMESPACES: &[(&str, &str)] = &[
    ("clojure.core", ""),
    ("core", ""),
    ("clojure.string", "clojure.string"),
    ("str", "clojure.string"),
    ("string", "clojure.string"),
    ("clojure.set", "clojure.set"),
    ("set", "clojure.set"),
    ("clojure.walk", "clojure.walk"),
    ("walk", "clojure.walk"),
    ("regex", "regex"),
];

/// The rows' name for a namespace of Clojure.
pub(crate) fn home(namespace: &str) -> Option<&'static str> {
    NAMESPACES.iter().find(|(name, _)| *name == namespace).map(|found| found.1)
}

impl BuiltinId {
    /// The built-in with this name, core or alias.
    pub fn by_name(name: &str) -> Option<BuiltinId> {
        INDEX.by_name.get(name).copied()
    }

    /// The built-in with this name in a namespace of Clojure: `join` in `clojure.string` or `str`.
    pub fn in_namespace(namespace: &str, name: &str) -> Option<BuiltinId> {
        let id = Self::by_name(name)?;
        let home = home(namespace)?;
        (home.is_empty() || id.row().namespace == home).then_some(id)
    }

    /// Its row.
    #[inline]
    pub fn row(self) -> &'static Builtin {
        INDEX.rows[self.0 as usize]
    }
}
