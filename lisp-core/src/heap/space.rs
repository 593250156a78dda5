//! The memory of an arena. It comes in chunks, and a cursor walks through the one that is being filled.

use super::memory;
use bumpalo::Bump;
use std::alloc::Layout;
use std::cell::Cell;
use std::ptr::NonNull;

/// What all objects of an arena are aligned to, and their sizes multiples of, in bytes.
pub(super) const ALIGN: usize = 8;

/// The bytes that an object of `bytes` takes.
#[inline(always)]
pub(super) const fn rounded(bytes: usize) -> usize {
    bytes.saturating_add(ALIGN - 1) & !(ALIGN - 1)
}

/// Chunks of memory, of which one is being filled.
pub(super) struct Space {
    bump: Bump,
    /// Where the next object goes. From here to `chunk_end` nothing refers to the memory of the chunk.
    cursor: Cell<NonNull<u8>>,
    chunk_end: Cell<usize>,
    /// Up to this address objects are placed without a further look; not below the cursor and not above `chunk_end`.
    fast_end: Cell<usize>,
}

impl Space {
    /// The memory that `bump` has left, and the chunks that it will have.
    pub(super) fn new(bump: Bump) -> Self {
        let cursor = NonNull::<u64>::dangling().cast::<u8>();
        let end = cursor.addr().get();
        Space { bump, cursor: Cell::new(cursor), chunk_end: Cell::new(end), fast_end: Cell::new(end) }
    }

    /// Where the next object goes, as a number: it grows by the size of each one that [`Space::place`] finds room for.
    #[inline]
    pub(super) fn address(&self) -> usize {
        self.cursor.get().addr().get()
    }

    /// Room for `bytes`, a multiple of [`ALIGN`], that nothing else refers to; `None` when there is not as much up to the end
    /// set by [`Space::end_fast`].
    #[inline(always)]
    pub(super) fn place(&self, bytes: usize) -> Option<NonNull<u8>> {
        // The fast end is never below the cursor, and never behind the chunk's.
        let fits = bytes <= self.fast_end.get().wrapping_sub(self.address());
        // SAFETY: there are as many bytes.
        fits.then(|| unsafe { self.advance(bytes) })
    }

    /// Room as from [`Space::place`], be it in the next chunk. Then [`Space::address`] is another one, and the fast end is
    /// to be set again. `None` when there is no memory.
    #[cold]
    pub(super) fn place_anywhere(&self, bytes: usize) -> Option<NonNull<u8>> {
        let left = self.chunk_end.get() - self.address();
        if bytes <= left {
            // SAFETY: there are as many bytes left.
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

    /// `bytes` more may be placed without a further look, if the chunk has them.
    #[inline]
    pub(super) fn end_fast(&self, bytes: usize) {
        self.fast_end.set(self.address().saturating_add(bytes).min(self.chunk_end.get()));
    }

    /// Moves the cursor over `bytes`.
    ///
    /// # Safety
    /// There are as many between the cursor and the end of the chunk.
    #[inline(always)]
    unsafe fn advance(&self, bytes: usize) -> NonNull<u8> {
        let start = self.cursor.get();
        // SAFETY: it stays inside the chunk or comes to its end.
        self.cursor.set(unsafe { start.add(bytes) });
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever is asked for in whatever order, by either way: what was given is aligned, and no part of it twice.
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
                // SAFETY: it was given for these bytes.
                unsafe { start.write_bytes(0xA5, bytes) };
                prop_assert!(given.iter().all(|&(a, b)| from + bytes <= a || b <= from), "given twice");
                given.push((from, from + bytes));
            }
        }
    }
}
