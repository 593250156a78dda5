//! JSON text to values and back, straight from and into the arena: no tree in between, no recursion.

mod read;

pub use read::{Duplicate, ReadError, ReadLimits, Reader, read};
