//! Converts between JSON text and values in the arena directly, without an intermediate tree or recursion.

mod cursor;
mod escape;
mod extent;
mod fault;
mod fields;
mod read;
mod recent;
mod write;

pub use cursor::Unexpected;
pub use fault::ReadError;
pub use fields::Fields;
pub use read::{Reader, read};
pub use write::{Null, Nulls, Style, write};

use crate::heap::{Heap, Res};

/// The maximum nesting of arrays and objects, for reading and writing.
pub const MAX_DEPTH: usize = 512;

/// The maximum number of digits of an integer, for reading and writing.
pub const MAX_DIGITS: usize = 4_300;

/// The maximum length of a number in bytes, for reading.
const MAX_NUMBER_BYTES: usize = 1 << 16;

/// How JSON object keys are represented in a program.
///
/// Applies to data, definitions of earlier turns, earlier results and tool results. JSON that the program itself parses
/// with `json/parse-string` always has strings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Keys {
    /// Strings: `{"id" 7}`. A keyword also reads and writes the entry of the string with its name.
    #[default]
    Strings,
    /// Keywords, whatever their text: `{:id 7}`.
    Keywords,
}

/// Appends to a list outside the arena, after checking that the memory is available.
#[inline]
pub(crate) fn push<T>(h: &Heap, list: &mut Vec<T>, item: T) -> Res<()> {
    if list.len() == list.capacity() {
        let more = list.len().max(16);
        h.check_available((list.len() + more).saturating_mul(std::mem::size_of::<T>()))?;
        list.reserve_exact(more);
    }
    list.push(item);
    Ok(())
}
