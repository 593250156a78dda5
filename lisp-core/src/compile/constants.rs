//! The constants of a program, frozen and without duplicates.

use super::core::Constant;
use crate::Table;
use crate::error::{Error, Reason};
use crate::heap::{Fault, Frozen, Heap, Map, Res, Value};
use foldhash::fast::RandomState;
use std::cell::OnceCell;

/// The constants of a program under construction.
pub(super) struct Pool<'p> {
    constants: Vec<Entry<'p>>,
    /// Keywords and strings are most frequent; the flag distinguishes them.
    texts: Table<(bool, &'p str), u32>,
}

/// A constant of a program.
enum Entry<'p> {
    Constant(&'p Constant),
    Str(&'p str),
    /// A map whose keys are these keywords, as they are written, and whose values are nil
    Keys(Vec<&'p str>),
}

/// The maximum size of the constants of a program, in bytes. Its source is limited too.
const LIMIT: usize = 1 << 30;

impl<'p> Pool<'p> {
    pub(super) fn new() -> Self {
        // Enough for a usual program.
        Pool { constants: Vec::with_capacity(16), texts: Table::with_capacity_and_hasher(14, RandomState::default()) }
    }

    /// Returns the index of a constant.
    pub(super) fn add(&mut self, constant: &'p Constant) -> u32 {
        match constant {
            Constant::Keyword(text) => self.text(true, text, Entry::Constant(constant)),
            Constant::Str(text) => self.string(text),
            _ => self.push(Entry::Constant(constant)),
        }
    }

    /// Returns the index of a string.
    pub(super) fn string(&mut self, text: &'p str) -> u32 {
        self.text(false, text, Entry::Str(text))
    }

    /// Returns the index of a map whose keys are these few keywords, as they are written.
    pub(super) fn keys(&mut self, keys: Vec<&'p str>) -> u32 {
        self.push(Entry::Keys(keys))
    }

    fn text(&mut self, is_keyword: bool, text: &'p str, entry: Entry<'p>) -> u32 {
        if let Some(&place) = self.texts.get(&(is_keyword, text)) {
            return place;
        }
        let place = self.push(entry);
        self.texts.insert((is_keyword, text), place);
        place
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "each constant takes bytes of a text whose bytes 32 bits count"
    )]
    fn push(&mut self, entry: Entry<'p>) -> u32 {
        self.constants.push(entry);
        self.constants.len() as u32 - 1
    }

    /// Returns the constants as frozen values.
    pub(super) fn freeze(self) -> Result<Frozen, Error> {
        Frozen::build_constants(LIMIT, |h, out| {
            out.reserve_exact(self.constants.len());
            let empty = OnceCell::new();
            for constant in &self.constants {
                out.push(match constant {
                    Entry::Constant(constant) => value(h, constant, &empty)?,
                    Entry::Str(text) => h.str(text)?,
                    Entry::Keys(keys) => {
                        let keys = keys.iter().map(|key| h.keyword(key)).collect::<Res<Vec<_>>>()?;
                        h.map(keys.into_iter().map(|key| (key, Value::Nil)))?
                    }
                });
            }
            Ok(())
        })
        .map_err(|fault| match fault {
            Fault::Error(error) => *error,
            Fault::Collect(_) | Fault::Pause(_) | Fault::Clock | Fault::Place | Fault::NeedsFrame => {
                Error::new(Reason::ProgramTooLarge, "the constants of the program take too much memory")
            }
        })
    }
}

/// Recursion is bounded by the nesting limit of the reader. All empty maps and sets share `empty`.
fn value<'h>(h: &'h Heap, constant: &Constant, empty: &OnceCell<&'h Map<'h>>) -> Res<Value<'h>> {
    let values = |items: &[Constant]| items.iter().map(|c| value(h, c, empty)).collect::<Res<Vec<_>>>();
    let nothing = || match empty.get() {
        Some(map) => Ok(*map),
        None => h.empty_map().map(|map| *empty.get_or_init(|| map)),
    };
    Ok(match constant {
        Constant::Nil => Value::Nil,
        Constant::Bool(b) => Value::Bool(*b),
        Constant::Int(i) => Value::Int(*i),
        Constant::Big(b) => h.integer(b)?,
        Constant::Float(f) => Value::Float(*f),
        Constant::Str(s) => h.str(s)?,
        Constant::Keyword(s) => h.keyword(s)?,
        Constant::Symbol(s) => Value::Symbol(h.text(s)?),
        Constant::Regex(s) => Value::Regex(h.text(s)?),
        Constant::Vector(items) => h.vector(&values(items)?)?,
        Constant::Map(items) if items.is_empty() => Value::Map(nothing()?),
        Constant::Set(items) if items.is_empty() => Value::Set(nothing()?),
        Constant::Map(items) => h.map(values(items)?.chunks_exact(2).map(|pair| (pair[0], pair[1])))?,
        Constant::Set(items) => h.set(values(items)?.into_iter())?,
    })
}
