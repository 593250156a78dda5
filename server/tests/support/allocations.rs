//! Counts the bytes of all allocations of a test binary, of all its threads. A binary that counts has one test.

#![allow(dead_code, reason = "each test uses a part")]

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Returns how many bytes were allocated so far.
pub(crate) fn allocated() -> usize {
    ALLOCATOR.stats().bytes_allocated
}

/// Returns how many bytes are in use.
pub(crate) fn in_use() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

/// Returns the most bytes that are in use beyond `before` until something has happened.
pub(crate) async fn peak(before: usize, what: impl Future<Output = ()>) -> usize {
    let mut peak = 0;
    let sample = async {
        loop {
            peak = peak.max(in_use().saturating_sub(before));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        () = what => {}
        () = sample => {}
    }
    peak
}
