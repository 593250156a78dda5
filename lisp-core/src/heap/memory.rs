//! The memory of the machine, which may have less than the limits of a run allow.
//!
//! Where the allocator has nothing left, Rust ends the process. So whatever is large asks before, and leaves [`MARGIN`] free for what
//! cannot ask.

use crate::error::{Error, Reason};
use bumpalo::Bump;
use std::alloc::Layout;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;

/// Bytes that stay free when memory is taken for a heap: for small allocations, which end the process when they fail.
const MARGIN: usize = 1 << 20;
/// An arena of less than this takes its chunks without a look at what is free, and so does a single piece of work: looking takes
/// longer than a short run. Well below [`MARGIN`].
pub(super) const SMALL: usize = 1 << 17;

/// The machine has no memory left for what the limits of the run allow. Where work cannot be left in the middle, it unwinds with this,
/// and what it worked on is lost.
#[derive(Clone, Copy, Debug)]
pub struct OutOfMemory {
    /// The bytes that were asked for.
    pub bytes: usize,
}

impl OutOfMemory {
    /// Unwinds out of work that cannot be left in the middle. It tells nobody, as a panic would.
    #[cold]
    pub(super) fn unwind(self) -> ! {
        resume_unwind(Box::new(self))
    }
}

/// Does work that unwinds with [`OutOfMemory`] and is of no use then.
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
            .hint("give the process more memory, run fewer programs at once, or lower the limit heap_bytes to what there is")
            .detail("needed_bytes", bytes)
    }
}

/// Checks that the machine has so many bytes, if they are many.
#[inline]
pub(super) fn check(bytes: usize) -> Result<(), OutOfMemory> {
    if bytes < SMALL || is_free(bytes) { Ok(()) } else { Err(OutOfMemory { bytes }) }
}

/// Are so many bytes free, and [`MARGIN`] besides? It takes them and gives them back.
#[cold]
fn is_free(bytes: usize) -> bool {
    held(bytes.saturating_add(MARGIN)).is_some()
}

/// Bytes that nobody else has as long as this is there.
fn held(bytes: usize) -> Option<Vec<u8>> {
    let mut held = Vec::new();
    held.try_reserve_exact(bytes).ok()?;
    // Else the compiler leaves out what nobody writes to.
    Some(std::hint::black_box(held))
}

/// A block of an arena; `None` when the machine has no memory for it.
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

/// Adds to a list that only the work under way has, or unwinds.
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
