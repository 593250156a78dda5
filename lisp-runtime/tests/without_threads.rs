//! An engine that starts no threads: none, whatever its programs do.

#[path = "../../lisp-core/tests/cpu/mod.rs"]
mod cpu;

use cpu::timed;
use lisp_runtime::{Cancel, Engine, Input, Limits, Verdict};
use std::time::Duration;

fn threads() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/task").ok()?.count())
}

fn own_data(engine: &Engine, json: &str) -> Verdict {
    engine.eval("(count data/big)", Input::new().json("big", json)).verdict()
}

// One test: it counts the threads of the whole process.
#[test]
fn it_starts_none() {
    let limits = Limits::default().with_timeout_ms(100).with_loop_iterations(0).with_heap_bytes(100_000_000);
    let engine = Engine::builder().limits(limits).without_threads().build().unwrap();
    let before = threads();
    if before.is_none() {
        println!("skipped: there is no /proc/self/task");
    }
    let mut patient = lisp_runtime::LimitsRequest::default();
    patient.set("timeout_ms", 600_000).unwrap();
    let own = Engine::builder()
        .limits(limits.with(&patient))
        .without_threads()
        .tool("t", |call| call.get::<i64>("x"))
        .build()
        .unwrap();
    let run = |program: &str| own.eval(program, Input::new());
    let short = |program: &str| engine.eval(program, Input::new());
    // Longer than a slice, so that other engines have it looked after.
    assert_eq!(run("(loop [i 0] (if (< i 100000) (recur (inc i)) i))").value::<i64>().unwrap(), 100_000);
    assert_eq!(run("(reduce + (pmap (fn [x] (tool/t {:x x})) (range 100)))").value::<i64>().unwrap(), 4_950);
    let (outcome, took) = timed(|| short("(loop [] (recur))"));
    assert_eq!(outcome.verdict(), Verdict::Timeout);
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(short("(pmap (fn [x] (loop [] (recur))) [1 2 3])").verdict(), Verdict::Timeout);
    let big = format!("[{}1]", "1,".repeat(500_000));
    assert_eq!(own_data(&own, &big), Verdict::Ok);
    // Long work of one built-in is not begun again and again.
    let sorted = own.eval("(count (sort (map #(mod (* % 7919) 100003) (range 100000))))", Input::new());
    assert_eq!(sorted.value::<i64>().unwrap(), 100_000);
    assert_eq!(threads(), before);
    // It is ended by cancellation; that takes a thread, of this test's own.
    let cancel = Cancel::new();
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(30));
            cancel.cancel();
        });
        own.eval("(loop [] (do (sort (range 10000)) (recur)))", Input::new().cancel_with(&cancel))
    });
    assert_eq!(outcome.verdict(), Verdict::Cancelled);
}
