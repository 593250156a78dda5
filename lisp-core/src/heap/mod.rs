//! Arenas, values and the account of every byte. The only unsafe code of the crate is in this folder.

mod big;
mod collect;
mod compare;
mod header;
mod map;
mod map_builder;
mod patterns;
mod region;
mod shapes;
mod sort;
mod store;
mod string;
mod text;
mod value;
mod vector;
mod window;
mod work;

pub use big::Big;
pub use collect::Collector;
pub use compare::compare_numbers;
pub use map::{Entries, Entry, Keys, Map, SMALL};
pub use map_builder::MapBuilder;
pub use region::{Account, Heap};
pub use sort::{merge_runs, merge_sort};
pub use store::{Frozen, Keep, Rooted, Sent, Shared, Store};
pub use string::Str;
pub use text::TextBuf;
pub use value::{Closure, Compose, Composed, Time, TimeValue, Value};
pub use vector::{MAX_LEN, VecBuilder, Vector};
pub(crate) use window::Window;
pub use work::Work;

use crate::error::Error;

/// Why an operation stopped before its end.
#[derive(Debug)]
pub enum Fault {
    /// There is no room for this many more bytes. The machine may collect and run the instruction again; a second
    /// time it is the memory error.
    Collect(usize),
    /// This much more fuel than the slice still holds is needed. The driver looks at its clock and the instruction
    /// runs again.
    Pause(u64),
    /// The time is asked for. The driver tells it and the instruction runs again.
    Clock,
    /// The program is at fault.
    Error(Box<Error>),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::Error(Box::new(error))
    }
}

/// The result of an operation on the heap.
pub type Res<T> = Result<T, Fault>;
