//! The threads that tools are called on: how many there are, and what becomes of calls that find all of them taken.

use lisp_runtime::outcome::{CallStatus, Detail};
use lisp_runtime::{BuildError, Cancel, Engine, EngineBuilder, Input, Limits, Outcome, Tool, Verdict};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Threads are counted for the whole process: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A figure of this process: `Threads`, or `VmRSS` in KiB.
fn status(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim_start_matches(':').split_whitespace().next()?.parse().ok()
}

/// What a sampler saw at most.
struct Peaks {
    threads: u64,
    resident_kib: u64,
}

/// Samples this process while `work` is at work.
fn sampled(work: impl FnOnce()) -> Peaks {
    /// Ends the sampler however the work ends.
    struct Done<'a>(&'a AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let mut peaks = Peaks { threads: 0, resident_kib: 0 };
            while !done.load(Ordering::Relaxed) {
                peaks.threads = peaks.threads.max(status("Threads").unwrap_or(0));
                peaks.resident_kib = peaks.resident_kib.max(status("VmRSS").unwrap_or(0));
                std::thread::sleep(Duration::from_millis(1));
            }
            peaks
        });
        {
            let _done = Done(&done);
            work();
        }
        sampler.join().unwrap()
    })
}

fn patient() -> Limits {
    Limits::default().with_timeout_ms(600_000).with_parallel_timeout_ms(600_000).with_tool_calls(0).with_fuel(0)
}

/// Many short calls from several runs at once: no more threads than the ceiling, and no more memory than the budgets.
#[test]
fn many_calls_stay_within_the_ceiling() {
    const RUNS: usize = 6;
    let _alone = alone();
    if status("Threads").is_none() {
        println!("skipped: there is no /proc/self/status");
        return;
    }
    let items = std::env::var("TOOL_CALLS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000);
    let engine = Engine::builder().limits(patient()).tool("a", |call| call.get::<i64>("x")).build().unwrap();
    let program = engine.compile(&format!("(count (pmap (fn [x] (tool/a {{:x x}})) (range {items})))")).unwrap();
    // What the process has once and keeps is there before.
    assert!(
        engine.run(&engine.compile("(pmap (fn [x] (tool/a {:x x})) (range 99))").unwrap(), Input::new()).is_success()
    );
    let (threads, resident) = (status("Threads").unwrap(), status("VmRSS").unwrap());
    let peaks = sampled(|| {
        std::thread::scope(|scope| {
            for _ in 0..RUNS {
                scope.spawn(|| {
                    let outcome = engine.run(&program, Input::new());
                    assert_eq!(outcome.value::<usize>().unwrap(), items, "{:?}", outcome.problem());
                    assert_eq!(outcome.usage.tool_calls, items as u64);
                });
            }
        });
    });
    println!("{RUNS} runs of {items} calls: {threads} then {} threads at most", peaks.threads);
    println!("resident: {resident} then {} KiB at most", peaks.resident_kib);
    assert!(peaks.threads < 150, "{} threads", peaks.threads);
    let allowed = RUNS as u64 * (2 * Limits::default().heap_bytes + (8 << 20));
    assert!(
        (peaks.resident_kib - resident) * 1024 < allowed,
        "{} KiB of {allowed} bytes",
        peaks.resident_kib - resident
    );
}

/// A gate that tools wait at.
#[derive(Clone, Default)]
struct Gate {
    open: Arc<AtomicBool>,
    calls: Arc<AtomicUsize>,
}

impl Gate {
    /// A tool that does not return before the gate opens, whatever the run does.
    fn tool(&self, name: &str) -> Tool {
        let gate = self.clone();
        Tool::new(name, move |_| {
            gate.calls.fetch_add(1, Ordering::SeqCst);
            while !gate.open.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(1)
        })
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// Lets all pass.
    fn open(&self) {
        self.open.store(true, Ordering::SeqCst);
    }
}

/// An engine with two threads for tools, both of which hang at the gate, and what holds them there.
fn with_hung_threads(gate: &Gate, builder: EngineBuilder) -> Engine {
    let engine = builder
        .tool_threads(2)
        .grant(gate.tool("hang").detached())
        .grant(gate.tool("stay"))
        .grant(Tool::new("quick", |_| Ok(1)).detached())
        .tool("plain", |_| Ok(1))
        .build()
        .unwrap();
    for _ in 0..2 {
        // They hang beyond the run.
        assert_eq!(engine.eval("(tool/hang {})", Input::new()).verdict(), Verdict::Timeout);
    }
    assert_eq!(gate.calls(), 2);
    engine
}

fn short() -> Limits {
    Limits::default().with_timeout_ms(150)
}

/// The error names the ceiling, its value, and how to raise it; the ledger says that nothing was called.
fn says_that_threads_are_taken(outcome: &Outcome, max: i64) {
    let problem = outcome.problem().unwrap();
    assert_eq!(outcome.verdict(), Verdict::Timeout, "{problem:?}");
    assert!(problem.error.message.contains(&format!("{max} tool threads")), "{}", problem.error.message);
    assert!(problem.error.hint.as_ref().unwrap().contains("tool_threads"));
    assert!(problem.error.details.contains(&("tool_threads".into(), Detail::Int(max))));
    let last = outcome.ledger.last().unwrap();
    assert_eq!(last.status, CallStatus::Error);
    assert!(last.error.as_ref().unwrap().starts_with("not made"), "{last:?}");
}

#[test]
fn a_call_waits_for_a_thread_until_the_deadline() {
    let _alone = alone();
    let gate = Gate::default();
    let engine = with_hung_threads(&gate, Engine::builder().limits(short()));
    for program in [
        "(tool/quick {})",
        "(pmap (fn [x] (tool/plain {:x x})) [1 2 3])",
        "(pmap (fn [x] (tool/quick {:x x})) [1 2 3])",
        "(pmap (fn [x] (pmap (fn [y] (tool/plain {:x x :y y})) [1 2])) [1 2])",
    ] {
        // The threads stay taken: one that waited for them would never end.
        let outcome = engine.eval(program, Input::new());
        says_that_threads_are_taken(&outcome, 2);
    }
    // What needs no thread is not held up.
    assert_eq!(engine.eval("(tool/plain {})", Input::new()).value::<i64>().unwrap(), 1);
    assert_eq!(gate.calls(), 2);
    gate.open();
    let until = Instant::now() + Duration::from_secs(10);
    while !engine.eval("(pmap (fn [x] (tool/plain {:x x})) [1 2 3])", Input::new()).is_success() {
        assert!(Instant::now() < until, "the threads are not free again");
    }
}

/// The deadline of the parallel call holds in the queue as well.
#[test]
fn a_call_waits_for_a_thread_until_the_parallel_deadline() {
    let _alone = alone();
    let gate = Gate::default();
    let engine = with_hung_threads(&gate, Engine::builder().limits(short()));
    let mut asked = lisp_runtime::LimitsRequest::default();
    asked.set("parallel_timeout_ms", 50).unwrap();
    let outcome = engine.eval("(pmap (fn [x] (tool/plain {:x x})) [1 2 3])", Input::new().limits(asked));
    says_that_threads_are_taken(&outcome, 2);
    assert!(outcome.problem().unwrap().error.message.contains("parallel call"));
    gate.open();
}

/// So does cancellation.
#[test]
fn a_call_that_waits_is_cancelled() {
    let _alone = alone();
    let gate = Gate::default();
    let engine = with_hung_threads(&gate, Engine::builder().limits(short()).ceiling(Limits::unlimited()));
    for program in ["(tool/quick {})", "(pmap (fn [x] (tool/plain {:x x})) [1 2 3])"] {
        let cancel = Cancel::new();
        let mut asked = lisp_runtime::LimitsRequest::default();
        asked.set("timeout_ms", 60_000).unwrap();
        asked.set("parallel_timeout_ms", 60_000).unwrap();
        let outcome = std::thread::scope(|scope| {
            let run = scope.spawn(|| engine.eval(program, Input::new().cancel_with(&cancel).limits(asked)));
            std::thread::sleep(Duration::from_millis(30));
            cancel.cancel();
            run.join().unwrap()
        });
        assert_eq!(outcome.verdict(), Verdict::Cancelled);
        let last = outcome.ledger.last().unwrap();
        assert!(last.error.as_ref().unwrap().starts_with("not made"), "{last:?}");
    }
    assert_eq!(gate.calls(), 2);
    gate.open();
}

/// A detached tool that a worker calls holds one thread and not its run; a call that was begun and not answered is unknown.
#[test]
fn detached_calls_of_workers_end_with_the_run() {
    let _alone = alone();
    let gate = Gate::default();
    let engine = Engine::builder().limits(short()).tool_threads(2).grant(gate.tool("hang").detached()).build().unwrap();
    let outcome = engine.eval("(pmap (fn [x] (tool/hang {:x x})) [1 2 3 4])", Input::new());
    assert_eq!(outcome.verdict(), Verdict::Timeout);
    assert_eq!(gate.calls(), 2);
    let unknown = outcome.ledger.iter().filter(|entry| entry.status == CallStatus::Unknown).count();
    let not_made = outcome.ledger.iter().filter(|entry| entry.status == CallStatus::Error).count();
    assert_eq!((unknown, not_made), (2, 2), "{:?}", outcome.ledger);
    gate.open();
}

/// With two threads two calls are under way at once, never three, and all are made.
#[test]
fn no_more_calls_at_once_than_threads() {
    let _alone = alone();
    let (now, max) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counted = {
        let (now, max) = (now.clone(), max.clone());
        move |name: &str| {
            let (now, max) = (now.clone(), max.clone());
            Tool::new(name, move |_| {
                max.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(2));
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(1)
            })
        }
    };
    let engine = Engine::builder()
        .limits(patient())
        .tool_threads(2)
        .grant(counted("plain"))
        .grant(counted("detached").detached())
        .build()
        .unwrap();
    let program = "(reduce + (pmap (fn [x] (+ (tool/plain {:x x}) (tool/detached {:x x}))) (range 40)))";
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..3).map(|_| scope.spawn(|| engine.eval(program, Input::new()))).collect();
        for run in runs {
            assert_eq!(run.join().unwrap().value::<i64>().unwrap(), 80);
        }
    });
    assert_eq!(max.load(Ordering::SeqCst), 2);
}

#[test]
fn an_engine_without_threads_for_tools() {
    let _alone = alone();
    let engine = |builder: EngineBuilder| {
        builder.grant(Tool::new("plain", |_| Ok(1))).grant(Tool::new("far", |_| Ok(1)).detached()).build()
    };
    let none = engine(Engine::builder().tool_threads(0)).unwrap();
    let sum = none.eval("(reduce + (pmap (fn [x] (tool/plain {:x x})) [1 2 3]))", Input::new());
    assert_eq!(sum.value::<i64>().unwrap(), 3);
    for program in ["(tool/far {})", "(pmap (fn [x] (tool/far {:x x})) [1 2 3])"] {
        let outcome = none.eval(program, Input::new());
        let problem = outcome.problem().unwrap();
        assert_eq!(outcome.verdict(), Verdict::Error);
        assert!(problem.error.message.contains("tool_threads is 0"), "{}", problem.error.message);
    }
    assert!(engine(Engine::builder().tool_threads(1_024)).is_ok());
    let error = engine(Engine::builder().tool_threads(1_025)).unwrap_err();
    assert_eq!(error, BuildError::ToolThreads(1_025));
    assert_eq!(error.to_string(), "tool_threads is 1025; it must be 0 to 1024");
}
