//! What a run has beside its heap.

mod prints;

pub use prints::Prints;
