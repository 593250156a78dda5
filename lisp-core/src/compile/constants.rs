//! The constants of a program: each once, frozen.

use super::core::Constant;
use crate::Table;
use crate::error::{Error, Reason};
use crate::heap::{Fault, Frozen, Heap, Res, Value};

/// The constants of a program under construction.
#[derive(Default)]
pub(super) struct Pool {
    constants: Vec<Constant>,
    /// Keywords and strings occur most; the flag tells them apart.
    texts: Table<(bool, Box<str>), u32>,
}

/// The most bytes that the constants of a program may take. Its source is limited too.
const LIMIT: usize = 1 << 30;

impl Pool {
    /// The place of a constant.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "each constant takes bytes of a text whose bytes 32 bits count"
    )]
    pub(super) fn add(&mut self, constant: Constant) -> u32 {
        let next = self.constants.len() as u32;
        let key = match &constant {
            Constant::Keyword(text) => Some((true, text.clone())),
            Constant::Str(text) => Some((false, text.clone())),
            _ => None,
        };
        if let Some(key) = key {
            let place = *self.texts.entry(key).or_insert(next);
            if place != next {
                return place;
            }
        }
        self.constants.push(constant);
        next
    }

    /// The constants as frozen values.
    pub(super) fn freeze(self) -> Result<Frozen, Error> {
        Frozen::build_constants(LIMIT, |h, out| {
            out.reserve_exact(self.constants.len());
            for constant in &self.constants {
                out.push(value(h, constant)?);
            }
            Ok(())
        })
        .map_err(|fault| match fault {
            Fault::Error(error) => *error,
            Fault::Collect(_) | Fault::Pause(_) | Fault::Clock | Fault::NeedsFrame => {
                Error::new(Reason::ProgramTooLarge, "the constants of the program take too much memory")
            }
        })
    }
}

/// Recursion is bounded by the nesting limit of the reader.
fn value<'h>(h: &'h Heap, constant: &Constant) -> Res<Value<'h>> {
    let values = |items: &[Constant]| items.iter().map(|c| value(h, c)).collect::<Res<Vec<_>>>();
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
        Constant::Map(items) => h.map(values(items)?.chunks_exact(2).map(|pair| (pair[0], pair[1])))?,
        Constant::Set(items) => h.set(values(items)?.into_iter())?,
    })
}
