//! Arenas, values and the account of every byte. The only unsafe code of the crate is in this folder.

mod arena;
mod big;
mod collect;
mod compare;
mod header;
mod map;
mod map_builder;
mod shapes;
mod sort;
mod store;
mod string;
mod text;
mod value;
mod vector;
mod window;
mod work;

pub use crate::error::{Fault, Res};
pub use arena::{Account, Heap};
pub use big::Big;
pub use collect::Collector;
pub use compare::compare_numbers;
pub use map::{Entries, Entry, Keys, Map, SMALL};
pub use map_builder::MapBuilder;
pub(crate) use sort::merge_sort;
pub(crate) use store::{ExportedValue, Frozen, Store, SuspendedHeap, Trace};
pub use string::Str;
pub use text::TextBuf;
pub use value::{Closure, Compose, Composed, Time, TimeValue, Value};
pub use vector::{MAX_LEN, VecBuilder, Vector};
pub(crate) use window::Window;
pub use work::Work;
