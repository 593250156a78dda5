//! Arenas, values and the account of every byte. All unsafe code of the crate is in this folder, except for three lines
//! that promise what the heap requires of its users: in `stack/roots.rs`, `vm/at_rest.rs` and `vm/exec.rs`.

mod arena;
mod as_written;
mod big;
mod collect;
mod compare;
mod counterpart;
mod frame_regs;
mod gather;
mod header;
mod held;
mod map;
mod map_builder;
mod memory;
mod misses;
mod node;
mod noting;
mod scalars;
mod shapes;
mod sort;
mod space;
mod store;
mod string;
mod text;
mod tree;
mod value;
mod vector;
mod work;
mod written_order;

pub use crate::error::{Fault, Res};
pub use arena::{Account, Heap};
pub(crate) use big::Big;
pub(crate) use collect::Collector;
pub(crate) use frame_regs::FrameRegs;
pub(crate) use gather::Gathered;
pub(crate) use held::List;
pub(crate) use map::KeyArray;
pub use map::{Entries, Entry, Map};
pub(crate) use map_builder::MapBuilder;
pub use memory::OutOfMemory;
pub(crate) use misses::{Misses, Noted, Vain};
pub(crate) use scalars::compare_numbers;
pub(crate) use sort::merge_sort;
pub(crate) use store::{ExportedValue, Frozen, Store, SuspendedHeap, Trace};
pub use string::Str;
pub(crate) use string::hash_bytes;
pub(crate) use text::ShortText;
pub use text::TextBuf;
pub(crate) use tree::Written;
pub(crate) use value::{Closure, Compose, Composed, Source, Step};
pub use value::{Time, TimeValue, Value};
pub use vector::Vector;
pub(crate) use vector::{MAX_LEN, VecBuilder};
pub use work::Work;

/// The maximum number of entries of an array map.
pub(crate) const SMALL: usize = 32;
