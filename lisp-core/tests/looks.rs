//! Built-ins look at the flag that ends a run while they work. A test program of its own, because the others would be in
//! the way.

#[path = "suite/calls/mod.rs"]
mod calls;
mod cpu;

use calls::{ATTEMPTS, LARGE, calls, no_time, report, settings, values};
use cpu::{Worker, thread_time};
use lisp_core::compile::Program;
use lisp_core::library::all;
use lisp_core::syntax::ReadLimits;
use lisp_core::vm::{Grant, Machine, Settings, Step};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// When a run ends whose flag another thread raises after some time: how much its thread works after that, if it was raised in time.
fn late(source: &str, grant: &Arc<Grant>, settings: &Settings, after: Duration) -> Option<Result<Duration, Duration>> {
    let program = Program::compile(source, &ReadLimits::default()).ok()?;
    let mut machine = Machine::new(vec![grant.clone()], settings.clone());
    machine.load(Arc::new(program)).ok()?;
    let flag = Arc::new(AtomicBool::new(false));
    machine.watch(flag.clone());
    let (start, worker) = (thread_time(), Worker::current());
    let watch = std::thread::spawn({
        let flag = flag.clone();
        move || {
            std::thread::park_timeout(after);
            let worked = worker.time();
            flag.store(true, Relaxed);
            worked.saturating_sub(start)
        }
    });
    // As a driver does it.
    const SLICE: u64 = 20_000;
    let mut ended = false;
    while !ended && !flag.load(Relaxed) {
        match machine.resume(SLICE) {
            Step::Paused => {}
            // Who calls others is not at work itself.
            Step::Done(_) | Step::Effect(_) => ended = true,
        }
    }
    let took = thread_time() - start;
    watch.thread().unpark();
    let raised = watch.join().expect("a watch");
    Some(if ended || raised > took { Err(took) } else { Ok(took - raised) })
}

/// The time, and half of it again, for which this machine moves a stack as large as a call that recurs without end makes in the
/// time of this test: one piece of work, paid for before it begins.
fn growth() -> Duration {
    const SLOTS: usize = 4_000_000;
    let grow = || {
        let stack = std::hint::black_box(vec![[1u64; 2]; SLOTS * 2 / 3]);
        let start = thread_time();
        let mut larger = Vec::with_capacity(SLOTS);
        larger.extend_from_slice(&stack);
        larger.resize(SLOTS, [1; 2]);
        std::hint::black_box(larger);
        thread_time() - start
    };
    (0..3).map(|_| grow()).min().unwrap_or_default() * 3 / 2
}

#[test]
fn work_looks_at_the_flag() {
    const CAP: Duration = Duration::from_millis(60);
    // A build that is not optimized takes several times as long for the same piece of work, such as moving a vector that has grown to
    // a million elements.
    let least = if cfg!(debug_assertions) { Duration::from_millis(30) } else { Duration::ZERO };
    let larger = if cfg!(debug_assertions) { 6 } else { 4 };
    let (large, max) = (values(larger * LARGE), (no_time() * 60).max(least));
    let settings = Settings { fuel: None, heap_bytes: 1_000_000_000, ..settings() };
    let (mut failures, mut watched) = (Vec::new(), 0);
    for row in all() {
        for source in calls(row, &["identity"]) {
            let whole = match late(&source, &large, &settings, CAP) {
                None => continue,
                Some(Ok(_)) => CAP,
                Some(Err(took)) => took,
            };
            if whole < max * 3 / 2 {
                continue;
            }
            watched += 1;
            // A string is the only part of a string of one character.
            let max = if row.name == "tree-seq" { max.max(growth()) } else { max };
            for part in 1..3 {
                let attempt = || late(&source, &large, &settings, whole * part / 3).and_then(Result::ok);
                // It may have ended before; other work on the machine may be in the way a few times.
                let mut least = Duration::MAX;
                for _ in 0..ATTEMPTS {
                    least = least.min(attempt().unwrap_or_default());
                    if least <= max {
                        break;
                    }
                }
                if least > max {
                    failures.push(format!("{source}: {least:?} after {part}/3 of {whole:?}"));
                    break;
                }
            }
        }
    }
    report(&failures);
    assert!(watched > 50, "{watched} calls take long enough");
}
