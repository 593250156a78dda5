//! JSON text to values and back, straight from and into the arena: no tree in between, no recursion.

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

/// The maximum number of arrays and objects inside each other, in a text that is read and in one that is written.
pub const MAX_DEPTH: usize = 512;

/// The maximum number of digits of an integer, in a text that is read and in one that is written.
pub const MAX_DIGITS: usize = 4_300;

/// The maximum number of bytes of a number, in a text that is read.
const MAX_NUMBER_BYTES: usize = 1 << 16;

/// What the keys of objects become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keys {
    /// Strings.
    #[default]
    Strings,
    /// Keywords, which may have any text for their names.
    Keywords,
}

/// Adds to a list outside the arena after asking for the memory.
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
