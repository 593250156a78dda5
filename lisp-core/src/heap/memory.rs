//! The memory of the machine, which may be less than the limits of a run allow.
//!
//! If the allocator has no memory left, Rust ends the process. So large allocations check first, and leave [`MARGIN`]
//! free for those that cannot.

use crate::error::{Error, Reason};
use bumpalo::Bump;
use std::alloc::Layout;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;

/// Bytes left free when memory is taken for a heap: for small allocations, which end the process when they fail.
const MARGIN: usize = 1 << 20;
/// Arenas and single allocations smaller than this are not checked: a check takes longer than a short run. Well below
/// [`MARGIN`].
pub(super) const SMALL: usize = 1 << 17;

/// The machine has less memory than the limits of the run allow. Work that cannot stop in the middle unwinds with this,
/// and what it worked on is lost.
#[derive(Clone, Copy, Debug)]
pub struct OutOfMemory {
    /// The number of bytes requested.
    pub bytes: usize,
}

impl OutOfMemory {
    /// Unwinds from work that cannot stop in the middle, without the message of a panic.
    #[cold]
    pub(super) fn unwind(self) -> ! {
        resume_unwind(Box::new(self))
    }
}

/// Runs work that may unwind with [`OutOfMemory`] and is then unusable.
pub(super) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, OutOfMemory> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| match panic.downcast::<OutOfMemory>() {
        Ok(machine) => *machine,
        Err(panic) => resume_unwind(panic),
    })
}

impl From<OutOfMemory> for Error {
    fn from(OutOfMemory { bytes }: OutOfMemory) -> Self {
        let message =
            format!("the machine has no memory left: the run needs {bytes} bytes more, which its limits allow");
        Error::new(Reason::MemoryExceeded, message)
            .hint("give the process more memory, run fewer programs at once, or lower the limit heap_bytes")
            .detail("needed_bytes", bytes)
    }
}

/// Checks that the machine has this many bytes, unless they are few.
#[inline]
pub(super) fn check(bytes: usize) -> Result<(), OutOfMemory> {
    if bytes < SMALL || is_free(bytes) { Ok(()) } else { Err(OutOfMemory { bytes }) }
}

/// Returns true if this many bytes are free in addition to [`MARGIN`]. Finds out by allocating and freeing them.
#[cold]
fn is_free(bytes: usize) -> bool {
    held(bytes.saturating_add(MARGIN)).is_some()
}

/// Allocates bytes until they are dropped.
fn held(bytes: usize) -> Option<Vec<u8>> {
    let mut held = Vec::new();
    held.try_reserve_exact(bytes).ok()?;
    // Otherwise the compiler removes the unused allocation.
    Some(std::hint::black_box(held))
}

/// Allocates a block of an arena; `None` if the machine has no memory for it.
#[inline]
pub(super) fn block(bump: &Bump, layout: Layout) -> Option<NonNull<u8>> {
    let is_there = bump.chunk_capacity() >= layout.size().saturating_add(layout.align());
    if is_there { bump.try_alloc_layout(layout).ok() } else { block_of_next_chunk(bump, layout) }
}

#[cold]
fn block_of_next_chunk(bump: &Bump, layout: Layout) -> Option<NonNull<u8>> {
    let is_small = bump.allocated_bytes().saturating_add(layout.size()) < SMALL;
    let _margin = if is_small { Vec::new() } else { held(MARGIN)? };
    bump.try_alloc_layout(layout).ok()
}

/// Adds to a list that only the current work uses, or unwinds.
#[inline]
pub(super) fn push<T>(list: &mut Vec<T>, item: T) {
    if list.len() == list.capacity() {
        make_room(list);
    }
    list.push(item);
}

#[cold]
fn make_room<T>(list: &mut Vec<T>) {
    let bytes = list.len().max(4).saturating_mul(size_of::<T>());
    if check(bytes).is_err() || list.try_reserve(1).is_err() {
        OutOfMemory { bytes }.unwind();
    }
}
