//! Arenas, values and the account of every byte. The unsafe code of the crate is in this folder, but for three lines that take on
//! what it asks of its users: in `stack/roots.rs`, `vm/at_rest.rs` and `vm/exec.rs`.

mod arena;
mod big;
mod collect;
mod compare;
mod frame_regs;
mod gather;
mod header;
mod held;
mod map;
mod map_builder;
mod node;
mod scalars;
mod shapes;
mod sort;
mod space;
mod store;
mod string;
mod text;
mod tree;
mod twin;
mod value;
mod vector;
mod work;

pub use crate::error::{Fault, Res};
pub use arena::{Account, Heap};
pub(crate) use big::Big;
pub(crate) use collect::Collector;
pub(crate) use frame_regs::FrameRegs;
pub(crate) use gather::Gathered;
pub(crate) use held::List;
pub use map::{Entries, Entry, Map};
pub(crate) use map::{Keys, SMALL};
pub(crate) use map_builder::MapBuilder;
pub(crate) use scalars::compare_numbers;
pub(crate) use sort::merge_sort;
pub(crate) use store::{ExportedValue, Frozen, Store, SuspendedHeap, Trace};
pub use string::Str;
pub(crate) use string::hash_bytes;
pub(crate) use text::ShortText;
pub use text::TextBuf;
pub(crate) use value::{Closure, Compose, Composed, Source, Step};
pub use value::{Time, TimeValue, Value};
pub use vector::Vector;
pub(crate) use vector::{MAX_LEN, VecBuilder};
pub use work::Work;
