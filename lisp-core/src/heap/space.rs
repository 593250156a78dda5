//! The memory of an arena: chunks, and a cursor that moves through the one being filled.

use super::memory;
use bumpalo::Bump;
use std::alloc::Layout;
use std::cell::Cell;
use std::ptr::NonNull;

/// The alignment of all objects of an arena, in bytes; their sizes are multiples of it.
pub(super) const ALIGN: usize = 8;

/// Returns the bytes that an object of `bytes` takes.
#[inline(always)]
pub(super) const fn rounded(bytes: usize) -> usize {
    bytes.saturating_add(ALIGN - 1) & !(ALIGN - 1)
}

/// Chunks of memory, one of which is being filled.
pub(super) struct Space {
    bump: Bump,
    /// Where the next object is placed. From here to `chunk_end` nothing refers to the memory of the chunk.
    cursor: Cell<NonNull<u8>>,
    chunk_end: Cell<usize>,
    /// Up to this address, objects are placed without further checks; not below the cursor and not above `chunk_end`.
    fast_end: Cell<usize>,
}

impl Space {
    /// Uses the rest of `bump`'s memory, and the chunks that it allocates.
    pub(super) fn new(bump: Bump) -> Self {
        let cursor = NonNull::<u64>::dangling().cast::<u8>();
        let end = cursor.addr().get();
        Space { bump, cursor: Cell::new(cursor), chunk_end: Cell::new(end), fast_end: Cell::new(end) }
    }

    /// Returns the address of the next object: it grows by the size of each one placed by [`Space::place`].
    #[inline]
    pub(super) fn address(&self) -> usize {
        self.cursor.get().addr().get()
    }

    /// Returns room for `bytes`, a multiple of [`ALIGN`], that nothing else refers to; `None` if it does not fit before
    /// the end set by [`Space::end_fast`].
    #[inline(always)]
    pub(super) fn place(&self, bytes: usize) -> Option<NonNull<u8>> {
        // The fast end is never below the cursor, and never beyond the chunk.
        let fits = bytes <= self.fast_end.get().wrapping_sub(self.address());
        // SAFETY: that many bytes are left.
        fits.then(|| unsafe { self.advance(bytes) })
    }

    /// Returns room like [`Space::place`], in the next chunk if needed. Then [`Space::address`] changes, and the fast
    /// end must be set again. `None` if there is no memory.
    #[cold]
    pub(super) fn place_anywhere(&self, bytes: usize) -> Option<NonNull<u8>> {
        let left = self.chunk_end.get() - self.address();
        if bytes <= left {
            // SAFETY: that many bytes are left.
            return Some(unsafe { self.advance(bytes) });
        }
        let start = memory::block(&self.bump, Layout::from_size_align(bytes, ALIGN).ok()?)?;
        // The chunk with more room is filled from now on.
        let rest = self.bump.chunk_capacity() & !(ALIGN - 1);
        if rest > left
            && let Ok(layout) = Layout::from_size_align(rest, ALIGN)
            && let Ok(rest_start) = self.bump.try_alloc_layout(layout)
        {
            self.cursor.set(rest_start);
            self.chunk_end.set(rest_start.addr().get() + rest);
        }
        self.end_fast(0);
        Some(start)
    }

    /// Allows `bytes` more to be placed without further checks, if the chunk has them.
    #[inline]
    pub(super) fn end_fast(&self, bytes: usize) {
        self.fast_end.set(self.address().saturating_add(bytes).min(self.chunk_end.get()));
    }

    /// Moves the cursor over `bytes`.
    ///
    /// # Safety
    /// At least that many bytes are left between the cursor and the end of the chunk.
    #[inline(always)]
    unsafe fn advance(&self, bytes: usize) -> NonNull<u8> {
        let start = self.cursor.get();
        // SAFETY: it stays inside the chunk or reaches its end.
        self.cursor.set(unsafe { start.add(bytes) });
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever is requested, by either function and in any order: the memory is aligned, and never overlaps.
        #[test]
        fn no_memory_is_given_twice(asked in proptest::collection::vec((0usize..3_000, 0usize..6_000), 1..100)) {
            let space = Space::new(Bump::new());
            let mut given: Vec<(usize, usize)> = Vec::new();
            for &(bytes, fast) in &asked {
                let bytes = rounded(bytes);
                space.end_fast(fast);
                let start = match space.place(bytes) {
                    Some(start) => {
                        prop_assert!(bytes <= fast, "beyond the fast end");
                        start
                    }
                    None => space.place_anywhere(bytes).expect("memory"),
                };
                let from = start.addr().get();
                prop_assert_eq!(from % ALIGN, 0);
                // SAFETY: the memory was allocated for these bytes.
                unsafe { start.write_bytes(0xA5, bytes) };
                prop_assert!(given.iter().all(|&(a, b)| from + bytes <= a || b <= from), "given twice");
                given.push((from, from + bytes));
            }
        }
    }
}
